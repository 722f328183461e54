/*
 * A catalog at work. Records of about 120 bytes have an address, a user and a path, each drawn with
 * Zipf's law (20,000 addresses, 20,000 users, 500,000 paths). How fast they are gathered and written,
 * how large the catalog is against the records, how long it takes to open it and to ask it; and, for
 * pairs of an address and a user that occur in most segments (ranks 200 to 2,000), how many segments
 * are false candidates: by the two values alone, and with the pair verified. What is true is counted in a
 * second pass over the records.
 *
 *     bench_catalog [SEGMENTS [RECORDS [COMBINATIONS]]]      1000 50000 1
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "tamis/catalog.h"

enum { RAW = 120, VALUES = 20000, PATHS = 500000, STEPS = 65536, QUESTIONS = 200 };

struct load {
    uint32_t segments, records, combos;
    uint32_t rank[STEPS], path[STEPS]; /* the inverse of Zipf's law */
    uint32_t asked[QUESTIONS][2];
};

static uint64_t draw(uint64_t *state)
{
    return bench_mix(*state += 0x9e3779b97f4a7c15);
}

static void load_init(struct load *load)
{
    uint64_t state = 4711;
    for (unsigned i = 0; i < STEPS; i++) {
        load->rank[i] = (uint32_t)pow(VALUES, (i + 0.5) / STEPS);
        load->path[i] = (uint32_t)pow(PATHS, (i + 0.5) / STEPS);
    }
    for (unsigned i = 0; i < QUESTIONS; i++)
        for (unsigned j = 0; j < 2; j++)
            load->asked[i][j] = 200 + (uint32_t)(draw(&state) % 1800);
}

/* Ranks of the values of record j of a segment. */
static void ranks_of(const struct load *load, uint64_t *state, uint32_t ranks[3])
{
    uint64_t bits = draw(state), spread = draw(state);
    ranks[0] = load->rank[bits & 65535];
    ranks[1] = load->rank[bits >> 16 & 65535];
    ranks[2] = load->path[bits >> 32 & 65535] + (uint32_t)(spread % 7);
}

static tamis_key text_of(unsigned attribute, uint32_t rank, char *text)
{
    static const char *const front[] = {"10.20.", "user-", "/path/to/"};
    size_t at = strlen(front[attribute]);
    memcpy(text, front[attribute], at);
    do
        text[at++] = (char)('0' + rank % 10);
    while (rank /= 10);
    return (tamis_key){text, at};
}

static void stop(const char *what, tamis_error e, const tamis_reason *reason)
{
    fprintf(stderr, "%s: %s (%s)\n", what, tamis_error_text(e), reason->text);
    exit(1);
}

static double gather_segment(const struct load *load, uint32_t segment, tamis_gather *g,
                             char (*text)[3][24], tamis_key (*records)[3])
{
    uint64_t state = segment + 1;
    for (uint32_t j = 0; j < load->records; j++) {
        uint32_t ranks[3];
        ranks_of(load, &state, ranks);
        for (unsigned at = 0; at < 3; at++)
            records[j][at] = text_of(at, ranks[at], text[j][at]);
    }
    double start = bench_now();
    for (uint32_t j = 0; j < load->records; j++)
        if (tamis_gather_add(g, records[j]) != TAMIS_OK)
            exit(1);
    return bench_now() - start;
}

static void write_catalog(const struct load *load, const char *path)
{
    static const tamis_attribute attributes[] = {
        {.name = "ip"}, {.name = "user"}, {.name = "path"}};
    static const uint64_t combos[] = {3, 5, 6, 7};
    tamis_catalog_options o = {.attributes = attributes,
                               .n_attributes = 3,
                               .combos = combos,
                               .n_combos = load->combos,
                               .no_combos = load->combos == 0,
                               .segments = load->segments,
                               .key = (const uint8_t *)"0123456789abcdef"};
    tamis_catalog_writer *w;
    tamis_gather *g = NULL;
    tamis_reason reason = {0};
    double adding = 0, putting = 0;
    tamis_error e = tamis_catalog_create(&w, path, &o, &reason);
    if (e != TAMIS_OK || tamis_gather_new(&g, tamis_catalog_writer_schema(w)) != TAMIS_OK)
        stop("create", e, &reason);
    char(*text)[3][24] = malloc(load->records * sizeof *text);
    tamis_key(*records)[3] = malloc(load->records * sizeof *records);
    for (uint32_t i = 0; i < load->segments; i++) {
        adding += gather_segment(load, i, g, text, records);
        double start = bench_now();
        e = tamis_catalog_put(w, g, &i, sizeof i, &reason);
        if (e != TAMIS_OK)
            stop("put", e, &reason);
        putting += bench_now() - start;
    }
    free(text), free(records);
    double start = bench_now(), n = (double)load->segments * load->records;
    e = tamis_catalog_commit(w, NULL, 0, &reason);
    if (e != TAMIS_OK)
        stop("commit", e, &reason);
    double ending = bench_now() - start;
    printf("gather %.2f M records/s, put %.2f, both and the commit (%.2f s) %.2f\n",
           n / adding / 1e6, n / putting / 1e6, ending, n / (adding + putting + ending) / 1e6);
    tamis_gather_free(g);
    tamis_catalog_abandon(w);
}

static void print_sizes(const tamis_catalog *c, const struct load *load)
{
    tamis_catalog_facts facts;
    tamis_relation_facts r;
    double raw = (double)load->segments * load->records * RAW;
    tamis_catalog_info(c, &facts);
    for (uint32_t i = 0; tamis_catalog_relation(c, i, &r); i++)
        printf("  relation %llx: %.2f %% of the records, %u shapes, %u strips, k %u, rate %.2g\n",
               (unsigned long long)r.mask, 100 * (double)r.bytes / raw, r.shapes, r.strips,
               r.hashes, r.fpp_now);
    printf("catalog %.1f MB, %.2f %% of the records\n", (double)facts.bytes / 1e6,
           100 * (double)facts.bytes / raw);
}

/* Which of the questions each segment has a record for, as bits by question and segment. */
static void count_truth(const struct load *load, uint64_t *truth, size_t words)
{
    static uint8_t wanted[VALUES][VALUES / 8]; /* pairs asked for */
    for (unsigned i = 0; i < QUESTIONS; i++)
        wanted[load->asked[i][0]][load->asked[i][1] / 8] |= (uint8_t)(1u << load->asked[i][1] % 8);
    for (uint32_t s = 0; s < load->segments; s++) {
        uint64_t state = s + 1;
        for (uint32_t j = 0; j < load->records; j++) {
            uint32_t r[3];
            ranks_of(load, &state, r);
            if (!(wanted[r[0]][r[1] / 8] >> r[1] % 8 & 1))
                continue;
            for (unsigned i = 0; i < QUESTIONS; i++)
                if (load->asked[i][0] == r[0] && load->asked[i][1] == r[1])
                    truth[i * words + s / 64] |= UINT64_C(1) << s % 64;
        }
    }
}

struct tally {
    unsigned n;
    double opening[QUESTIONS], first[QUESTIONS], again[QUESTIONS]; /* seconds */
    double named, both, wrong;
};

static double median(double *times)
{
    return 1e6 * bench_sort(times, QUESTIONS);
}

/* Opened anew for each question, as a command would. */
static void ask_one(const char *path, const uint32_t *pair, const uint64_t *truth, size_t words,
                    struct tally *t)
{
    tamis_catalog *c;
    tamis_reason reason = {0};
    tamis_catalog_answer answer;
    uint64_t *found = calloc(words, sizeof *found);
    char text[2][24];
    double start = bench_now();
    tamis_error e = tamis_catalog_open(&c, path, NULL, &reason);
    if (e != TAMIS_OK)
        stop("open", e, &reason);
    t->opening[t->n] = bench_now() - start;
    const tamis_schema *s = tamis_catalog_schema(c);
    tamis_digest d[2] = {tamis_schema_digest(s, 0, text_of(0, pair[0], text[0])),
                         tamis_schema_digest(s, 1, text_of(1, pair[1], text[1]))};
    tamis_condition choices[2] = {{.attribute = 0, .keys = &d[0], .n = 1},
                                  {.attribute = 1, .keys = &d[1], .n = 1}};
    start = bench_now();
    e = tamis_catalog_ask(c, choices, 2, found, &answer, &reason);
    t->first[t->n] = bench_now() - start;
    start = bench_now();
    e = e == TAMIS_OK ? tamis_catalog_ask(c, choices, 2, found, &answer, &reason) : e;
    t->again[t->n++] = bench_now() - start;
    if (e != TAMIS_OK)
        stop("ask", e, &reason);
    double true_ones = 0;
    for (size_t i = 0; i < words; i++) {
        true_ones += __builtin_popcountll(truth[i]);
        t->wrong += __builtin_popcountll(found[i] & ~truth[i]);
        if (truth[i] & ~found[i])
            stop("a segment was missed", TAMIS_EFORMAT, &reason);
    }
    t->named += (double)(answer.candidates + answer.by_verifier) - true_ones;
    t->both += true_ones;
    free(found);
    tamis_catalog_close(c);
}

/* The same with nothing of the file in memory, where the system drops its pages. */
static void ask_cold(const struct load *load, const char *path, const uint64_t *truth, size_t words)
{
    static struct tally t;
    for (unsigned i = 0; i < QUESTIONS; i++) {
        int fd = open(path, O_RDONLY);
        if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
            exit(1);
        close(fd);
        ask_one(path, load->asked[i], truth + i * words, words, &t);
    }
    printf("from disk: open %.0f us, first question %.0f us\n", median(t.opening), median(t.first));
}

int main(int argc, char **argv)
{
    struct load *load = calloc(1, sizeof *load);
    load->segments = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000;
    load->records = argc > 2 ? (uint32_t)atoi(argv[2]) : 50000;
    load->combos = argc > 3 ? (uint32_t)atoi(argv[3]) : 1;
    const char *path = "bench_catalog.tamis";
    size_t words = load->segments / 64 + 1;
    uint64_t *truth = calloc(QUESTIONS * words, sizeof *truth);
    static struct tally t;
    tamis_catalog *c;
    tamis_reason reason = {0};
    load_init(load);
    write_catalog(load, path);
    tamis_error e = tamis_catalog_open(&c, path, NULL, &reason);
    if (e != TAMIS_OK)
        stop("open", e, &reason);
    print_sizes(c, load);
    tamis_catalog_close(c);
    count_truth(load, truth, words);
    for (unsigned i = 0; i < QUESTIONS; i++)
        ask_one(path, load->asked[i], truth + i * words, words, &t);
    ask_cold(load, path, truth, words);
    unlink(path);
    printf("medians: open %.0f us, first question %.0f us, again %.1f us\n", median(t.opening),
           median(t.first), median(t.again));
    printf("a pair is in %.2f segments; false candidates by its values alone %.1f, verified %.4f\n",
           t.both / QUESTIONS, t.named / QUESTIONS, t.wrong / QUESTIONS);
    free(truth), free(load);
    return t.named >= 20 * t.wrong ? 0 : 1;
}
