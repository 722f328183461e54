/*
 * The reader: bytes per second of processor time for parsing alone, and with the digests of four
 * attributes; then whole files (plain, gzip, zstd) with one thread and with two; then one segment
 * read alone. Records of about 120 bytes: ts, ip, user, path, status, bytes. Targets: 400 MB/s of
 * CSV and 300 of JSONL on one core for parsing alone; with two threads and digests 300 and 200.
 * "own time" is a second of the process's processor time, "kept" the bytes of a restart point.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "bench.h"
#include "read/reader.h"
#include "read/reader_cut.h"
#include "tamis.h"

#define TEXT_LEN ((size_t)64 << 20)
#define ATTRS    4

static const char *const names[ATTRS] = {"ip", "user", "path", "status"};
static tamis_filter *hasher;

/* ---- texts ----------------------------------------------------------------------------------- */

enum shape { JSON, JSON_ESCAPED, CSV, CSV_QUOTED, TSV, SHAPES };
static const char *const shape_name[SHAPES] = {"jsonl", "jsonl, escapes in paths", "csv",
                                               "csv, every cell quoted", "tsv"};
static const char *const shape_form[SHAPES] = {
    "{\"ts\":\"%s\",\"ip\":\"%s\",\"user\":\"%s\",\"path\":\"%s\",\"status\":%s,\"bytes\":%s}\n",
    "{\"ts\":\"%s\",\"ip\":\"%s\",\"user\":\"%s\",\"path\":\"\\/%s\",\"status\":%s,\"bytes\":%s}\n",
    "%s,%s,%s,%s,%s,%s\n", "\"%s\",\"%s\",\"%s\",\"%s\",\"%s\",\"%s\"\n",
    "%s\t%s\t%s\t%s\t%s\t%s\n"};

struct text {
    char *data;
    size_t len, records;
    struct dialect dialect;
    const char *header;
};

static struct text make_text(enum shape shape)
{
    struct text t = {.data = malloc(TEXT_LEN + 1024)};
    bool json = shape <= JSON_ESCAPED;
    t.header = json           ? NULL
               : shape == TSV ? "ts\tip\tuser\tpath\tstatus\tbytes"
                              : "ts,ip,user,path,status,bytes";
    t.dialect.format = json ? READ_JSONL : shape == TSV ? READ_TSV : READ_CSV;
    t.dialect.delimiter = shape == TSV ? '\t' : ',';
    if (!t.data)
        exit(2);
    while (t.len < TEXT_LEN) {
        uint64_t x = bench_mix(++t.records), y = bench_mix(x);
        char ts[32], ip[32], user[32], path[64], status[8], bytes[16];
        snprintf(ts, sizeof ts, "2024-05-01T%02u:%02u:%02uZ", (unsigned)(t.records / 3600 % 24),
                 (unsigned)(t.records / 60 % 60), (unsigned)(t.records % 60));
        snprintf(ip, sizeof ip, "10.%u.%u.%u", (unsigned)x & 255, (unsigned)(x >> 8) & 255,
                 (unsigned)(x >> 16) & 255);
        snprintf(user, sizeof user, "user%u", (unsigned)(x >> 32) % 50000);
        snprintf(path, sizeof path, "/api/v1/items/%u/view", (unsigned)y % 1000000);
        snprintf(status, sizeof status, "%u", y >> 60 < 12 ? 200 : y >> 60 < 15 ? 404 : 500);
        snprintf(bytes, sizeof bytes, "%u", (unsigned)(y >> 32) % 100000);
        t.len +=
            (size_t)sprintf(t.data + t.len, shape_form[shape], ts, ip, user, path, status, bytes);
    }
    return t;
}

/* ---- parsing --------------------------------------------------------------------------------- */

struct run {
    const struct text *text;
    struct selection *selection;
    struct parser *parser;
    bool digests;
    uint64_t records, bad, sum;
};

static void parse(struct run *run, const void *data, size_t len)
{
    tamis_key keys[ATTRS];
    tamis_digest digests[ATTRS];
    struct record r;
    enum parsed kind;
    if (parser_begin(run->parser, run->selection, data, len) != TAMIS_OK)
        exit(2);
    while ((kind = parser_next(run->parser, &r)) != PARSED_END) {
        run->bad += kind == PARSED_BAD;
        run->records++;
        if (!run->digests) {
            for (int i = 0; i < ATTRS; i++)
                run->sum += r.values[i].len;
            continue;
        }
        for (int i = 0; i < ATTRS; i++)
            keys[i] = (tamis_key){r.values[i].data, r.values[i].len};
        tamis_filter_digest_many(hasher, keys, ATTRS, digests);
        for (int i = 0; i < ATTRS; i++)
            run->sum += digests[i].a ^ digests[i].b;
    }
}

static void parse_body(void *context)
{
    struct run *run = context;
    run->records = 0;
    parse(run, run->text->data, run->text->len);
}

static void lines_body(void *context)
{
    struct run *run = context;
    run->sum += count_lines((const uint8_t *)run->text->data, run->text->len);
}

static void cut_body(void *context)
{
    struct run *run = context;
    struct dialect dialect = run->text->dialect;
    dialect.record_max = READ_RECORD_MAX, dialect.quoted_max = READ_QUOTED_MAX;
    struct cut cut = {.dialect = &dialect};
    run->sum += cut_search(&cut, (const uint8_t *)run->text->data, run->text->len, TEXT_LEN, true);
}

static struct run run_new(const struct text *t)
{
    struct run run = {.text = t, .parser = parser_new()};
    if (!run.parser || selection_new(&run.selection, &t->dialect, names, ATTRS, t->header,
                                     t->header ? strlen(t->header) : 0, NULL) != TAMIS_OK)
        exit(2);
    return run;
}

static void run_free(struct run *run)
{
    parser_free(run->parser);
    selection_free(run->selection);
}

/* MB per second, the best of some runs. */
static double speed(void (*body)(void *), struct run *run)
{
    double best = 1e9;
    for (int i = 0; i <= BENCH_RUNS; i++) {
        double start = bench_used();
        body(run);
        double spent = bench_used() - start;
        best = spent < best ? spent : best;
    }
    return (double)run->text->len / best / 1e6;
}

static void one_core(const struct text *t, const char *name)
{
    struct run run = run_new(t);
    double alone = speed(parse_body, &run);
    run.digests = true;
    double hashed = speed(parse_body, &run);
    printf("%-26s %5.0f %8.0f %8.0f %8.0f ", name, (double)t->len / (double)t->records, alone,
           hashed, speed(lines_body, &run));
    if (t->dialect.format == READ_CSV) /* the others are cut at a line end, wherever */
        printf("%8.0f", speed(cut_body, &run));
    printf("%s\n", run.records == t->records && run.bad == 0 ? "" : " WRONG");
    run_free(&run);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_all(const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, len, f) != len || fclose(f) != 0)
        exit(2);
}

static void write_gz(const char *path, const struct text *t)
{
    gzFile f = gzopen(path, "wb1");
    if (!f || gzwrite(f, t->data, (unsigned)t->len) != (int)t->len || gzclose(f) != Z_OK)
        exit(2);
}

static void write_zst(const char *path, const struct text *t, size_t part)
{
    size_t room = ZSTD_compressBound(t->len), len = 0;
    char *packed = malloc(room + (t->len / part + 1) * 64);
    for (size_t at = 0; at < t->len; at += part) {
        size_t some = t->len - at < part ? t->len - at : part;
        len += ZSTD_compress(packed + len, room, t->data + at, some, 3);
    }
    write_all(path, packed, len);
    free(packed);
}

struct shared {
    struct input *input;
    struct input_segment segment[64];
    size_t n;
    pthread_mutex_t lock;
    struct run run[2];
};

struct worker {
    struct shared *shared;
    struct run *run;
};

static void *work(void *context)
{
    struct worker *w = context;
    struct input_text text = {0};
    struct input_segment segment;
    tamis_reason reason;
    bool more;
    while (input_next(w->shared->input, &segment, &text, &more, &reason) == TAMIS_OK && more) {
        parse(w->run, text.data, text.len);
        pthread_mutex_lock(&w->shared->lock);
        w->shared->segment[w->shared->n++] = segment;
        pthread_mutex_unlock(&w->shared->lock);
    }
    input_text_free(&text);
    return NULL;
}

static double with_threads(const char *path, const struct text *t, struct shared *shared, int n)
{
    pthread_t id[2];
    struct worker worker[2];
    struct input_options options = {.dialect = t->dialect};
    options.dialect.headless = true; /* the text has none */
    for (size_t i = 0; i < shared->n; i++)
        input_segment_free(&shared->segment[i]);
    shared->n = 0;
    double start = bench_now();
    if (input_open(&shared->input, path, &options, NULL) != TAMIS_OK)
        exit(2);
    for (int i = 0; i < n; i++) {
        shared->run[i].digests = true;
        shared->run[i].records = 0;
        worker[i] = (struct worker){shared, &shared->run[i]};
        pthread_create(&id[i], NULL, work, &worker[i]);
    }
    uint64_t records = 0;
    for (int i = 0; i < n; i++) {
        pthread_join(id[i], NULL);
        records += shared->run[i].records;
    }
    double spent = bench_now() - start;
    input_close(shared->input);
    if (records != t->records)
        printf("WRONG: %llu records\n", (unsigned long long)records);
    return (double)t->len / spent / 1e6;
}

/* Milliseconds to open the file and read one segment, on average. */
static double read_alone(const char *path, struct shared *shared, const struct text *t)
{
    struct input_options options = {.dialect = t->dialect};
    double sum = 0;
    options.dialect.headless = true;
    for (size_t i = shared->n; i-- > 0;) {
        struct input_text text = {0};
        double start = bench_now();
        if (input_open(&shared->input, path, &options, NULL) != TAMIS_OK ||
            input_read(shared->input, &shared->segment[i], &text, NULL) != TAMIS_OK)
            exit(2);
        sum += bench_now() - start;
        input_text_free(&text);
        input_close(shared->input);
    }
    return sum / (double)shared->n * 1e3;
}

static void file(const char *path, const char *name, const struct text *t)
{
    struct shared *shared = calloc(1, sizeof *shared);
    double best[3] = {0}, own = 0;
    pthread_mutex_init(&shared->lock, NULL);
    for (int i = 0; i < 2; i++)
        shared->run[i] = run_new(t);
    for (int round = 0; round < BENCH_RUNS; round++)
        for (int n = 1; n <= 2; n++) {
            double before = bench_spent();
            double rate = with_threads(path, t, shared, n);
            double spent = bench_spent() - before;
            best[n] = rate > best[n] ? rate : best[n];
            rate = (double)t->len / spent / 1e6;
            own = rate > own ? rate : own;
        }
    size_t kept = 0;
    for (size_t i = 0; i < shared->n; i++)
        kept += shared->segment[i].restart_len;
    printf("%-26s %8.0f %8.0f %8.0f %9zu %9.1f %9zu\n", name, own, best[1], best[2], shared->n,
           read_alone(path, shared, t), kept / shared->n);
    for (size_t i = 0; i < shared->n; i++)
        input_segment_free(&shared->segment[i]);
    for (int i = 0; i < 2; i++)
        run_free(&shared->run[i]);
    free(shared);
    unlink(path);
}

int main(void)
{
    struct text text[SHAPES];
    char path[64];
    snprintf(path, sizeof path, "/tmp/bench_reader.%d", (int)getpid());
    if (tamis_filter_new(&hasher, &(tamis_options){0}, NULL) != TAMIS_OK)
        return 2;
    for (int i = 0; i < SHAPES; i++)
        text[i] = make_text((enum shape)i);

    printf("%-26s %5s %8s %8s %8s %8s\n", "MB a processor second", "bytes", "parse", "+digests",
           "lines", "cut");
    for (int i = 0; i < SHAPES; i++)
        one_core(&text[i], shape_name[i]);

    printf("\n%-26s %8s %8s %8s %9s %9s %9s\n", "files, with digests, MB/s", "own time", "1 thread",
           "2", "segments", "ms alone", "kept");
    for (int i = 0; i < SHAPES; i++) {
        write_all(path, text[i].data, text[i].len);
        file(path, shape_name[i], &text[i]);
    }
    write_gz(path, &text[JSON]);
    file(path, "jsonl.gz", &text[JSON]);
    write_zst(path, &text[JSON], TEXT_LEN * 2);
    file(path, "jsonl.zst, one frame", &text[JSON]);
    write_zst(path, &text[JSON], (size_t)4 << 20);
    file(path, "jsonl.zst, frames of 4 MiB", &text[JSON]);
    for (int i = 0; i < SHAPES; i++)
        free(text[i].data);
    tamis_filter_free(hasher);
    return 0;
}
