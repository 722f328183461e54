/*
 * A catalog at work: records of about 120 bytes with three attributes (an address, a user, a path),
 * Zipf-like, in segments of 8 MiB. How fast they are gathered and written, how large the catalog is
 * against the records, how long it takes to open it and to ask it, and how many segments are named in
 * vain with combinations and without.
 *
 *     bench_catalog [SEGMENTS [RECORDS [COMBINATIONS]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "tamis.h"

#define RAW 120 /* bytes of a record as JSON, keys and punctuation included */

struct load {
    uint32_t segments, records, combos;
    uint64_t state;
};

static uint64_t draw(uint64_t *state)
{
    return bench_mix(*state += 0x9e3779b97f4a7c15);
}

/* Roughly Zipf over n: a random number of a random number. */
static uint64_t skewed(uint64_t *state, uint64_t n)
{
    uint64_t most = 1 + draw(state) % n;
    return draw(state) % (1 + draw(state) % most);
}

static void record_of(uint64_t *state, char text[3][32], tamis_key record[3])
{
    uint64_t ip = draw(state) % 4000000, user = skewed(state, 200000), path = draw(state) % 500000;
    int n[3] = {snprintf(text[0], 32, "10.%u.%u.%u", (unsigned)(ip >> 16),
                         (unsigned)(ip >> 8 & 255), (unsigned)(ip & 255)),
                snprintf(text[1], 32, "user%u", (unsigned)user),
                snprintf(text[2], 32, "/a/%u", (unsigned)path)};
    for (int i = 0; i < 3; i++)
        record[i] = (tamis_key){text[i], (size_t)n[i]};
}

static void stop(const char *what, tamis_error e, const tamis_reason *reason)
{
    fprintf(stderr, "%s: %s (%s)\n", what, tamis_error_text(e), reason->text);
    exit(1);
}

static void write_catalog(struct load *load, const char *path)
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
    tamis_gather *g;
    tamis_reason reason = {0};
    double adding = 0, putting = 0;
    tamis_error e = tamis_catalog_create(&w, path, &o, &reason);
    if (e != TAMIS_OK || tamis_gather_new(&g, tamis_catalog_writer_schema(w)) != TAMIS_OK)
        stop("create", e, &reason);
    char(*text)[3][32] = malloc(load->records * sizeof *text);
    tamis_key(*records)[3] = malloc(load->records * sizeof *records);
    for (uint32_t i = 0; i < load->segments; i++) {
        for (uint32_t j = 0; j < load->records; j++)
            record_of(&load->state, text[j], records[j]);
        double start = bench_now();
        for (uint32_t j = 0; j < load->records; j++)
            if (tamis_gather_add(g, records[j]) != TAMIS_OK)
                stop("gather", TAMIS_ENOMEM, &reason);
        adding += bench_now() - start;
        start = bench_now();
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
    printf(
        "gather %.2f M records/s, put %.1f M records/s, commit %.2f s; with all: %.2f M records/s\n",
        n / adding / 1e6, n / putting / 1e6, bench_now() - start,
        n / (adding + putting + bench_now() - start) / 1e6);
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
        printf("  relation %llx: %.2f %% of raw, %u shapes, %u strips, k %u, rate %.2g\n",
               (unsigned long long)r.mask, 100 * (double)r.bytes / raw, r.shapes, r.strips,
               r.hashes, r.fpp_now);
    printf("catalog %.1f MB, %.2f %% of raw\n", (double)facts.bytes / 1e6,
           100 * (double)facts.bytes / raw);
}

/* Opened anew for each question, as a command would. */
static void ask(const char *path, const struct load *load)
{
    enum { TIMES = 200 };
    double opening = 0, first = 0, second = 0, vain = 0, alone = 0;
    uint64_t *found = calloc(load->segments / 64 + 1, sizeof *found), state = 77;
    tamis_reason reason = {0};
    for (int i = 0; i < TIMES; i++) {
        tamis_catalog *c;
        char text[3][32], other[3][32];
        tamis_key record[3], elsewhere[3];
        double start = bench_now();
        tamis_error e = tamis_catalog_open(&c, path, NULL, &reason);
        if (e != TAMIS_OK)
            stop("open", e, &reason);
        opening += bench_now() - start;
        record_of(&state, text, record);
        record_of(&state, other, elsewhere);
        const tamis_schema *s = tamis_catalog_schema(c);
        tamis_digest d[2] = {tamis_schema_digest(s, 0, record[0]),
                             tamis_schema_digest(s, 1, elsewhere[1])};
        tamis_choice choices[2] = {{0, &d[0], 1}, {1, &d[1], 1}};
        tamis_catalog_answer answer;
        start = bench_now();
        e = tamis_catalog_ask(c, choices, 2, found, &answer, &reason);
        first += bench_now() - start;
        start = bench_now();
        e = e == TAMIS_OK ? tamis_catalog_ask(c, choices, 2, found, &answer, &reason) : e;
        second += bench_now() - start;
        if (e != TAMIS_OK)
            stop("ask", e, &reason);
        vain += (double)answer.candidates / TIMES;
        alone += (double)(answer.candidates + answer.by_verifier) / TIMES;
        tamis_catalog_close(c);
    }
    printf("open %.0f us, first question %.0f us, again %.1f us\n", 1e6 * opening / TIMES,
           1e6 * first / TIMES, 1e6 * second / TIMES);
    printf(
        "a pair drawn at random: %.2f segments by its values alone, %.3f with the pair verified\n",
        alone, vain);
    free(found);
}

int main(int argc, char **argv)
{
    struct load load = {.segments = argc > 1 ? (uint32_t)atoi(argv[1]) : 200,
                        .records = argc > 2 ? (uint32_t)atoi(argv[2]) : 69905,
                        .combos = argc > 3 ? (uint32_t)atoi(argv[3]) : 1,
                        .state = 1};
    const char *path = "bench_catalog.tamis";
    tamis_catalog *c;
    tamis_reason reason = {0};
    write_catalog(&load, path);
    if (tamis_catalog_open(&c, path, NULL, &reason) != TAMIS_OK)
        stop("open", TAMIS_EIO, &reason);
    print_sizes(c, &load);
    tamis_catalog_close(c);
    ask(path, &load);
    unlink(path);
    return 0;
}
