#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bits/kernel.h"
#include "base/mem.h"

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_now(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double bench_used(void)
{
    return seconds(CLOCK_THREAD_CPUTIME_ID);
}

double bench_spent(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

void bench_must(tamis_error e, const tamis_reason *reason)
{
    if (e == TAMIS_OK)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name,
            reason ? reason->text : tamis_error_text(e));
    exit(2);
}

void bench_pin(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
}

uint64_t bench_mix(uint64_t x)
{
    return mix64(x);
}

unsigned bench_zipf(uint64_t random, unsigned most)
{
    static double share[BENCH_NAMES]; /* cumulated */
    unsigned low = 0, high = most - 1;
    for (int i = 0; share[BENCH_NAMES - 1] == 0 && i < BENCH_NAMES; i++)
        share[i] = (i ? share[i - 1] : 0) + 1.0 / (i + 1);
    double u = (double)(random >> 11) * 0x1p-53 * share[high];
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (share[middle] < u)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void bench_keys(uint64_t *keys, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = mix64(seed + (i + 1) * GOLDEN);
}

static void record_number(FILE *out, const char *key, double value)
{
    if (value > 0)
        fprintf(out, ", \"%s\": %.7g", key, value);
}

void bench_record(struct bench_row row)
{
    const char *path = getenv("BENCH_ROWS");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (!out)
        return;
    fprintf(out, "{\"filter\": \"%s\", \"what\": \"%s\"", row.filter, row.what);
    record_number(out, "n", row.n);
    record_number(out, "fpp", row.fpp);
    record_number(out, "ns", row.ns);
    record_number(out, "floor_ns", row.floor_ns);
    record_number(out, "bits", row.bits);
    record_number(out, "rate", row.rate);
    record_number(out, "times", row.times);
    fprintf(out, "}\n");
    fclose(out);
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double bench_sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

double bench_median(void (*body)(void *context), void *context, size_t n)
{
    double runs[BENCH_RUNS];
    body(context); /* warm */
    for (int i = 0; i < BENCH_RUNS; i++) {
        double start = bench_used();
        body(context);
        runs[i] = (bench_used() - start) * 1e9 / (double)n;
    }
    return bench_sort(runs, BENCH_RUNS);
}

void bench_lookups(void *context)
{
    struct lookups *run = context;
    tamis_digest digests[BENCH_CHUNK];
    uint8_t found[BENCH_CHUNK];
    for (size_t i = 0; i < run->n; i += BENCH_CHUNK) {
        tamis_filter_digest_fixed(run->filter, run->keys + i, 8, BENCH_CHUNK, digests);
        tamis_filter_has_many(run->filter, digests, BENCH_CHUNK, found);
        for (size_t j = 0; j < BENCH_CHUNK; j++)
            run->found += found[j];
    }
}

/* In locals, so that the loop itself loads nothing: loads are what a window has least of. */
void bench_singles(void *context)
{
    const struct lookups run = *(struct lookups *)context;
    uint64_t found = 0;
    for (size_t i = 0; i < run.n; i++)
        found += tamis_filter_has(run.filter, &run.keys[i], 8);
    ((struct lookups *)context)->found += found;
}

double bench_rate(uint64_t found, size_t n)
{
    return (double)found / (BENCH_RUNS + 1) / (double)n;
}

/* As a filter fetches them: some ahead, into the second level. */
void bench_lines(void *context)
{
    struct far_lines *run = context;
    uint64_t sum = 0;
    for (size_t i = 0; i < run->n; i++) {
        if (i + AHEAD < run->n)
            fetch(&run->words[8 * mul_high(run->queries[i + AHEAD], run->n_lines)]);
        sum += run->words[8 * mul_high(run->queries[i], run->n_lines)];
    }
    run->sum += sum;
}

/* The usual way: 64 at a time, into the first level. */
static void floor_usual_body(void *context)
{
    struct far_lines *run = context;
    uint64_t at[64], sum = 0;
    for (size_t i = 0; i + 64 <= run->n; i += 64) {
        for (size_t j = 0; j < 64; j++) {
            at[j] = 8 * mul_high(run->queries[i + j], run->n_lines);
            __builtin_prefetch(&run->words[at[j]]);
        }
        for (size_t j = 0; j < 64; j++)
            sum += run->words[at[j]];
    }
    run->sum += sum;
}

/* Called by way of a pointer, as a filter calls the lookup for its layout. What the hash starts from
   does not matter here. */
static uint64_t line_of_key(const struct far_lines *run, const void *key, size_t len)
{
    if (len != 8)
        return 0;
    tamis_digest d = digest_eight(run->n_lines, key);
    return run->words[8 * mul_high(d.a, run->n_lines)] == d.b;
}

static void floor_call_body(void *context)
{
    uint64_t (*volatile chosen)(const struct far_lines *, const void *, size_t) = line_of_key;
    uint64_t (*call)(const struct far_lines *, const void *, size_t) = chosen;
    const struct far_lines run = *(struct far_lines *)context;
    uint64_t sum = 0;
    for (size_t i = 0; i < run.n; i++)
        sum += call(context, &run.queries[i], 8);
    ((struct far_lines *)context)->sum += sum;
}

struct floors bench_floor(size_t bytes, const uint64_t *queries, size_t n)
{
    struct floors floor = {0, 0, 0};
    struct block block;
    if (!block_new(&mem_system, bytes, &block))
        return floor;
    uint64_t *lines = block.data;
    for (size_t i = 0; i < bytes / 8; i++)
        lines[i] = i;
    struct far_lines run = {lines, bytes / 64, queries, n, 0};
    floor.best = bench_median(bench_lines, &run, n);
    floor.usual = bench_median(floor_usual_body, &run, n);
    floor.call = bench_median(floor_call_body, &run, n);
    floor.best = floor.best < floor.usual ? floor.best : floor.usual;
    volatile uint64_t sink = run.sum;
    (void)sink;
    block_free(&mem_system, &block);
    return floor;
}
