/*
 * tamis bench: the speed of the library on this machine, in a few seconds. Keys are 8 random bytes,
 * lookups are of absent keys, hashing is included; times are medians of RUNS. The floor is the time that any filter
 * with one cache miss per lookup needs: random lines, prefetched, from as much memory as the
 * filter has. make bench measures more, and compares with other libraries.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/base.h"
#include "ui/args.h"
#include "ui/report.h"

#define RUNS           5
#define CHUNK          1024
#define QUERIES        ((size_t)1 << 20)
#define FIRST_CAPACITY 1000 /* capacity that a growing filter starts with */

/* ---- clock, keys, medians -------------------------------------------------------------------- */

/* Nanoseconds: by the clock, or of processor time of this thread, so that other programs running
   in between do not count. */
static double nanoseconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double now(void)
{
    return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

/* Key i of a stream: distinct numbers, well mixed. */
static uint64_t key_at(uint64_t stream, uint64_t i)
{
    return mix64((stream << 56) + i * GOLDEN);
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return ORDER(a, b, 0);
}

struct bench_run {
    const tamis_filter *filter;
    const uint64_t *lines, *queries;
    uint64_t n_lines, found;
};

/* Nanoseconds per query for QUERIES of them: the median, after a run that warms the caches. */
static double median(void (*body)(struct bench_run *run), struct bench_run *run)
{
    double times[RUNS];
    body(run);
    run->found = 0;
    for (int i = 0; i < RUNS; i++) {
        double start = now();
        body(run);
        times[i] = (now() - start) / (double)QUERIES;
    }
    qsort(times, RUNS, sizeof *times, by_value);
    return times[RUNS / 2];
}

/* ---- operations that are timed --------------------------------------------------------------- */

static const uint64_t *line_of(const struct bench_run *run, size_t i)
{
    unsigned __int128 place = (unsigned __int128)run->queries[i] * run->n_lines;
    return &run->lines[8 * (uint64_t)(place >> 64)];
}

/* Prefetches some keys ahead into the L2 cache, as the filters do. */
static void fetch_lines(struct bench_run *run)
{
    enum { AHEAD = 64 };
    for (size_t i = 0; i < QUERIES; i++) {
        if (i + AHEAD < QUERIES)
            __builtin_prefetch(line_of(run, i + AHEAD), 0, 2);
        run->found += *line_of(run, i);
    }
}

static void hash_all(struct bench_run *run)
{
    tamis_digest digests[CHUNK];
    for (size_t i = 0; i < QUERIES; i += CHUNK) {
        tamis_filter_digest_fixed(run->filter, run->queries + i, 8, CHUNK, digests);
        run->found += digests[CHUNK - 1].a & 1;
    }
}

static void ask_many(struct bench_run *run)
{
    tamis_digest digests[CHUNK];
    uint8_t found[CHUNK];
    for (size_t i = 0; i < QUERIES; i += CHUNK) {
        tamis_filter_digest_fixed(run->filter, run->queries + i, 8, CHUNK, digests);
        tamis_filter_has_many(run->filter, digests, CHUNK, found);
        for (size_t j = 0; j < CHUNK; j++)
            run->found += found[j];
    }
}

static void ask_each(struct bench_run *run)
{
    uint64_t found = 0;
    for (size_t i = 0; i < QUERIES; i++)
        found += tamis_filter_has(run->filter, &run->queries[i], 8);
    run->found += found;
}

/* Adds keys 0..n-1, one at a time or in chunks; returns nanoseconds per key, or -1 if there is
   no memory. */
static double add_all(tamis_filter *f, uint64_t n, bool many)
{
    uint64_t keys[CHUNK];
    tamis_digest digests[CHUNK];
    double spent = 0;
    for (uint64_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? (size_t)(n - i) : CHUNK;
        tamis_error e = TAMIS_OK;
        for (size_t j = 0; j < some; j++)
            keys[j] = key_at(1, i + j);
        double start = now();
        if (many) {
            tamis_filter_digest_fixed(f, keys, 8, some, digests);
            e = tamis_filter_add_many(f, digests, some, NULL, NULL);
        } else {
            for (size_t j = 0; j < some && e == TAMIS_OK; j++)
                e = tamis_filter_add(f, &keys[j], 8, NULL);
        }
        spent += now() - start;
        if (e != TAMIS_OK)
            return -1;
    }
    return spent / (double)n;
}

/* ---- the report ------------------------------------------------------------------------------ */

static double rounded(double x)
{
    return (double)(uint64_t)(x * 100 + 0.5) / 100;
}

static double floor_of(uint64_t bytes, const uint64_t *queries)
{
    size_t size = (size_t)bytes + 2 * HUGE_PAGE;
    char *raw = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED)
        return 0;
    char *start = raw + (HUGE_PAGE - (uintptr_t)raw % HUGE_PAGE) % HUGE_PAGE;
    if (bytes >= HUGE_PAGE)
        madvise(start, (size_t)bytes, MADV_HUGEPAGE);
    struct bench_run run = {.lines = (const uint64_t *)(const void *)start, .queries = queries};
    run.n_lines = bytes / 64;
    for (uint64_t i = 0; i < bytes; i += 64)
        start[i] = 1;
    double ns = median(fetch_lines, &run);
    munmap(raw, size);
    return ns;
}

struct bench {
    uint64_t items;
    double fpp, floor, alone; /* ns of the floor and of a batch lookup in the fixed filter */
    uint64_t *queries;
    bool json;
};

static void *ask_often(void *context)
{
    for (int i = 0; i < RUNS; i++)
        ask_many(context);
    return NULL;
}

/* Lookups per second on all cores relative to one core: the best of RUNS. */
static void report_threads(const struct bench *b, const tamis_filter *f)
{
    unsigned cores = processors();
    double best[2] = {0, 0};
    struct bench_run run[THREADS_MAX];
    for (unsigned i = 0; i < cores; i++)
        run[i] = (struct bench_run){.filter = f, .queries = b->queries};
    for (int i = 0; i < 2 * RUNS; i++) {
        unsigned n = i % 2 ? cores : 1;
        double start = nanoseconds(CLOCK_MONOTONIC);
        threads_run(ask_often, run, sizeof *run, n);
        double rate = n / (nanoseconds(CLOCK_MONOTONIC) - start);
        best[i % 2] = rate > best[i % 2] ? rate : best[i % 2];
    }
    report_count("threads", "threads", cores);
    report_real("threads_speedup", "speedup of lookups",
                best[0] > 0 ? rounded(best[1] / best[0]) : 1);
}

static void report_filter(struct bench *b, tamis_filter *f, const double add[2])
{
    struct bench_run run = {.filter = f, .queries = b->queries};
    tamis_filter_facts info;
    tamis_filter_info(f, &info);
    double many = median(ask_many, &run), rate = (double)run.found / RUNS / (double)QUERIES;
    if (info.growth == TAMIS_FIXED && !info.deletable) {
        b->floor = floor_of(info.bits / 8, b->queries);
        b->alone = many;
        report_real("floor_ns", "floor, ns", rounded(b->floor));
        report_real("hash_ns", "hash alone, ns", rounded(median(hash_all, &run)));
    }
    report_real("lookup_many_ns", "lookup in batches, ns", rounded(many));
    if (b->floor > 0)
        report_real("lookup_many_floors", "  times the floor", rounded(many / b->floor));
    if (info.growth != TAMIS_FIXED || info.deletable)
        report_real("lookup_many_fixed", "  times the fixed filter", rounded(many / b->alone));
    report_real("lookup_ns", "lookup one by one, ns", rounded(median(ask_each, &run)));
    report_real("add_many_ns", "insert in batches, ns", rounded(add[1]));
    report_real("add_ns", "insert one by one, ns", rounded(add[0]));
    report_rate("rate", "measured rate", rate);
    report_real("bits_per_item", "bits per key", rounded((double)info.bits / (double)b->items));
    report_count("vectors", "vectors", info.vectors);
}

/* One kind of filter, filled twice and queried. */
static int bench_kind(struct bench *b, const char *key, const char *title, tamis_options o)
{
    tamis_filter *f;
    tamis_reason reason;
    o.fpp = b->fpp;
    tamis_error e = tamis_filter_new(&f, &o, &reason);
    if (e != TAMIS_OK)
        return complain_of(e, &reason, NULL);
    add_all(f, b->items < CHUNK ? b->items : CHUNK, true); /* brings the code into memory */
    double add[2];
    for (int many = 0; many < 2; many++) {
        tamis_filter_clear(f);
        add[many] = add_all(f, b->items, many);
    }
    int status = FOUND;
    if (add[0] < 0 || add[1] < 0) {
        status = complain("out of memory: --items: give fewer");
    } else {
        report_group(key, title);
        report_filter(b, f, add);
        if (o.growth == TAMIS_FIXED && !o.deletable)
            report_threads(b, f);
        report_end();
    }
    tamis_filter_free(f);
    return status;
}

static int bench_all(struct bench *b)
{
    for (size_t i = 0; i < QUERIES; i++)
        b->queries[i] = key_at(2, i);
    report_open(b->json);
    report_text("version", "version", TAMIS_VERSION);
    report_count("items", "items", b->items);
    report_rate("fpp", "rate", b->fpp);
    int status = bench_kind(b, "fixed", "sized in advance",
                            (tamis_options){.growth = TAMIS_FIXED, .capacity = b->items});
    if (status == FOUND)
        status = bench_kind(b, "growing", "grown from nothing, the default", (tamis_options){0});
    if (status == FOUND)
        status = bench_kind(b, "scalable", "scalable, grown from 1,000 keys",
                            (tamis_options){.growth = TAMIS_SCALABLE, .capacity = FIRST_CAPACITY});
    if (status == FOUND)
        status = bench_kind(
            b, "deletable", "deletable, sized in advance",
            (tamis_options){.growth = TAMIS_FIXED, .capacity = b->items, .deletable = true});
    report_end();
    return status;
}

int verb_bench(int argc, char **argv)
{
    struct bench b = {.items = 10000000, .fpp = 0.01};
    const struct arg args[] = {ARG("items", 0, ARG_COUNT, &b.items),
                               ARG("fpp", 0, ARG_RATE, &b.fpp), ARG("json", 0, ARG_FLAG, &b.json)};
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n)
        return complain("unexpected word: %s: tamis bench takes options only", words.word[0]);
    if (b.items == 0)
        return complain("wrong value '0': --items: give 1 or more");
    b.queries = malloc(QUERIES * sizeof *b.queries);
    if (!b.queries)
        return complain("out of memory: close other programs");
    int status = bench_all(&b);
    free(b.queries);
    return status;
}
