/*
 * Library figures: one filter sized in advance, at n = 10^6, 10^7 (and 10^8 with BENCH_FULL=1) and
 * rates of 1 % and 0.1 %, beside the floor, the hash, and the peers from Debian in the same run.
 * Keys are 8 random bytes; lookups are of absent keys, hashing included.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "tamis.h"

#define QUERIES ((size_t)1 << 22)
#define CHUNK   1024

struct run {
    tamis_filter *filter;
    const struct peer *peer;
    void *peer_filter;
    const uint64_t *keys;
    size_t n;
    uint64_t found;
};

static void hash_body(void *context)
{
    struct run *run = context;
    tamis_digest digests[CHUNK];
    for (size_t i = 0; i < run->n; i += CHUNK) {
        tamis_filter_digest_fixed(run->filter, run->keys + i, 8, CHUNK, digests);
        run->found += digests[CHUNK - 1].a & 1;
    }
}

static void batch_body(void *context)
{
    struct run *run = context;
    tamis_digest digests[CHUNK];
    uint8_t found[CHUNK];
    for (size_t i = 0; i < run->n; i += CHUNK) {
        tamis_filter_digest_fixed(run->filter, run->keys + i, 8, CHUNK, digests);
        tamis_filter_has_many(run->filter, digests, CHUNK, found);
        for (size_t j = 0; j < CHUNK; j++)
            run->found += found[j];
    }
}

static void single_body(void *context)
{
    struct run *run = context;
    for (size_t i = 0; i < run->n; i++)
        run->found += tamis_filter_has(run->filter, &run->keys[i], 8);
}

static void peer_batch_body(void *context)
{
    struct run *run = context;
    uint8_t found[CHUNK];
    for (size_t i = 0; i < run->n; i += CHUNK) {
        run->peer->has_many(run->peer_filter, run->keys + i, CHUNK, found);
        for (size_t j = 0; j < CHUNK; j++)
            run->found += found[j];
    }
}

static void peer_single_body(void *context)
{
    struct run *run = context;
    for (size_t i = 0; i < run->n; i++)
        run->found += run->peer->has(run->peer_filter, run->keys[i]);
}

static void row(const char *name, const char *what, double ns, double floor_ns, double bits)
{
    printf("  %-22s %-16s %8.2f ns  %6.2f x floor", name, what, ns, ns / floor_ns);
    if (bits > 0)
        printf("  %6.2f bits a key", bits);
    printf("\n");
}

/* Adds all keys in batches of `batch`; nanoseconds a key. */
static double insert(tamis_filter *f, const uint64_t *keys, size_t n, size_t batch)
{
    tamis_digest *digests = malloc(batch * sizeof *digests);
    tamis_filter_clear(f);
    double start = bench_now();
    for (size_t i = 0; i < n; i += batch) {
        size_t some = n - i < batch ? n - i : batch;
        tamis_filter_digest_fixed(f, keys + i, 8, some, digests);
        tamis_filter_add_many(f, digests, some, NULL, NULL);
    }
    double ns = (bench_now() - start) * 1e9 / (double)n;
    free(digests);
    return ns;
}

static double insert_single(tamis_filter *f, const uint64_t *keys, size_t n)
{
    tamis_filter_clear(f);
    double start = bench_now();
    for (size_t i = 0; i < n; i++)
        tamis_filter_add(f, &keys[i], 8, NULL);
    return (bench_now() - start) * 1e9 / (double)n;
}

static void peer_rows(const struct peer *peer, const uint64_t *keys, size_t n, double fpp,
                      const uint64_t *queries, double floor_ns)
{
    double start = bench_now();
    struct run run = {.peer = peer, .keys = queries, .n = QUERIES};
    run.peer_filter = peer->make(n, fpp, keys);
    if (!run.peer_filter)
        return;
    double build = (bench_now() - start) * 1e9 / (double)n;
    double bits = (double)peer->bytes(run.peer_filter) * 8 / (double)n;
    row(peer->name, "insert", build, floor_ns, bits);
    if (peer->has_many)
        row(peer->name, "lookup, batch", bench_median(peer_batch_body, &run, QUERIES), floor_ns, 0);
    run.found = 0;
    double single = bench_median(peer_single_body, &run, QUERIES);
    row(peer->name, "lookup, one", single, floor_ns, 0);
    printf("  %-22s %-16s %8.5f\n", peer->name, "measured rate",
           (double)run.found / (BENCH_RUNS + 1) / (double)QUERIES);
    peer->free(run.peer_filter);
}

static void measure(size_t n, double fpp, tamis_layout layout, bool peers)
{
    uint64_t *keys = malloc(n * 8), *queries = malloc(QUERIES * 8);
    tamis_options o = {.growth = TAMIS_FIXED, .layout = layout, .fpp = fpp, .capacity = n};
    tamis_filter *f;
    if (!keys || !queries || tamis_filter_new(&f, &o, NULL) != TAMIS_OK)
        exit(2);
    bench_keys(keys, n, 1);
    bench_keys(queries, QUERIES, 2);
    tamis_info info;
    insert(f, keys, n, 1 << 16);
    double single_add = insert_single(f, keys, n);
    double small = insert(f, keys, n, CHUNK), large = insert(f, keys, n, 1 << 20);
    tamis_filter_info(f, &info);
    struct run run = {.filter = f, .keys = queries, .n = QUERIES};
    double floor_ns = bench_floor(info.bits / 8, queries, QUERIES);
    double hash = bench_median(hash_body, &run, QUERIES);
    run.found = 0;
    double batch = bench_median(batch_body, &run, QUERIES);
    double rate = (double)run.found / (BENCH_RUNS + 1) / (double)QUERIES;
    double single = bench_median(single_body, &run, QUERIES);
    const char *name = layout == TAMIS_SPREAD ? "tamis spread" : "tamis blocked";
    double bits = (double)info.bits / (double)n;
    printf("n = %zu, rate %g: floor %.2f ns, hash %.2f ns\n", n, fpp, floor_ns, hash);
    row(name, "lookup, batch", batch, floor_ns, bits);
    row(name, "lookup, one", single, floor_ns, 0);
    row(name, "insert, one", single_add, floor_ns, 0);
    row(name, "insert, by 1024", small, floor_ns, 0);
    row(name, "insert, by 2^20", large, floor_ns, 0);
    printf("  %-22s %-16s %8.5f\n", name, "measured rate", rate);
    tamis_filter_free(f);
    if (peers && !getenv("NOPEERS")) {
        peer_rows(&peer_rocksdb, keys, n, fpp, queries, floor_ns);
        peer_rows(&peer_libbloom, keys, n, fpp, queries, floor_ns);
    }
    free(keys);
    free(queries);
}

int main(int argc, char **argv)
{
    size_t most = getenv("BENCH_FULL") ? 100000000 : 10000000;
    if (argc > 1)
        most = (size_t)atof(argv[1]);
    bench_pin();
    for (size_t n = argc > 2 ? (size_t)atof(argv[2]) : 1000000; n <= most; n *= 10)
        for (int i = 0; i < 2; i++) {
            measure(n, i ? 0.001 : 0.01, TAMIS_BLOCKED, true);
            if (n <= 10000000)
                measure(n, i ? 0.001 : 0.01, TAMIS_SPREAD, false);
        }
    return 0;
}
