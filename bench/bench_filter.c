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

#define QUERIES ((size_t)1 << 22)

static void hash_body(void *context)
{
    struct lookups *run = context;
    tamis_digest digests[BENCH_CHUNK];
    for (size_t i = 0; i < run->n; i += BENCH_CHUNK) {
        tamis_filter_digest_fixed(run->filter, run->keys + i, 8, BENCH_CHUNK, digests);
        run->found += digests[BENCH_CHUNK - 1].a & 1;
    }
}

/* What the bodies of common.c ask, of a peer. */
struct peer_lookups {
    const struct peer *peer;
    void *filter;
    const uint64_t *keys;
    size_t n;
    uint64_t found;
};

static void peer_batch_body(void *context)
{
    struct peer_lookups *run = context;
    uint8_t found[BENCH_CHUNK];
    for (size_t i = 0; i < run->n; i += BENCH_CHUNK) {
        run->peer->has_many(run->filter, run->keys + i, BENCH_CHUNK, found);
        for (size_t j = 0; j < BENCH_CHUNK; j++)
            run->found += found[j];
    }
}

static void peer_single_body(void *context)
{
    const struct peer_lookups run = *(struct peer_lookups *)context;
    uint64_t found = 0;
    for (size_t i = 0; i < run.n; i++)
        found += run.peer->has(run.filter, run.keys[i]);
    ((struct peer_lookups *)context)->found += found;
}

/* What is measured: set by measure(), so that rows need not repeat it. */
static struct {
    size_t n;
    double fpp, floor_ns;
} now;

static void row(const char *name, const char *what, double ns, double bits)
{
    printf("  %-22s %-16s %8.2f ns  %6.2f x floor", name, what, ns, ns / now.floor_ns);
    if (bits > 0)
        printf("  %6.2f bits per key", bits);
    printf("\n");
    bench_record((struct bench_row){.filter = name,
                                    .what = what,
                                    .n = (double)now.n,
                                    .fpp = now.fpp,
                                    .ns = ns,
                                    .floor_ns = now.floor_ns,
                                    .bits = bits});
}

static void rate_row(const char *name, uint64_t found)
{
    double rate = bench_rate(found, QUERIES);
    printf("  %-22s %-16s %8.5f\n", name, "measured rate", rate);
    bench_record((struct bench_row){
        .filter = name, .what = "rate", .n = (double)now.n, .fpp = now.fpp, .rate = rate});
}

/* Adds all keys in batches of `batch`; nanoseconds per key. */
static double insert(tamis_filter *f, const uint64_t *keys, size_t n, size_t batch)
{
    tamis_digest *digests = malloc(batch * sizeof *digests);
    tamis_filter_clear(f);
    double start = bench_used();
    for (size_t i = 0; i < n; i += batch) {
        size_t some = n - i < batch ? n - i : batch;
        tamis_filter_digest_fixed(f, keys + i, 8, some, digests);
        tamis_filter_add_many(f, digests, some, NULL, NULL);
    }
    double ns = (bench_used() - start) * 1e9 / (double)n;
    free(digests);
    return ns;
}

static double insert_single(tamis_filter *f, const uint64_t *keys, size_t n)
{
    tamis_filter_clear(f);
    double start = bench_used();
    for (size_t i = 0; i < n; i++)
        tamis_filter_add(f, &keys[i], 8, NULL);
    return (bench_used() - start) * 1e9 / (double)n;
}

static double peer_rows(const struct peer *peer, const uint64_t *keys, const uint64_t *queries)
{
    double start = bench_used();
    struct peer_lookups run = {.peer = peer, .keys = queries, .n = QUERIES};
    run.filter = peer->make(now.n, now.fpp, keys);
    if (!run.filter)
        return 0;
    double build = (bench_used() - start) * 1e9 / (double)now.n;
    double bits = (double)peer->bytes(run.filter) * 8 / (double)now.n;
    if (peer->has_many)
        row(peer->name, "lookup, batch", bench_median(peer_batch_body, &run, QUERIES), bits);
    run.found = 0;
    row(peer->name, "lookup, one", bench_median(peer_single_body, &run, QUERIES), bits);
    rate_row(peer->name, run.found);
    row(peer->name, "insert, one", build, bits);
    peer->free(run.filter);
    return bits;
}

/* With as many bits as the peer takes, whatever rate that gives. */
static void same_bits_rows(double bits, const uint64_t *keys, const uint64_t *queries)
{
    const char *name = "tamis, as many bits";
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = TAMIS_BLOCKED,
                       .bits = (uint64_t)(bits * (double)now.n) / 4096 * 4096,
                       .hashes = now.fpp < 0.005 ? 9 : 6,
                       .capacity = now.n};
    tamis_filter *f;
    tamis_filter_facts info;
    if (tamis_filter_new(&f, &o, NULL) != TAMIS_OK)
        exit(2);
    insert(f, keys, now.n, 1 << 16);
    tamis_filter_info(f, &info);
    struct lookups run = {.filter = f, .keys = queries, .n = QUERIES};
    row(name, "lookup, batch", bench_median(bench_lookups, &run, QUERIES),
        (double)info.bits / (double)now.n);
    rate_row(name, run.found);
    tamis_filter_free(f);
}

static void tamis_rows(tamis_layout layout, const uint64_t *keys, const uint64_t *queries)
{
    const char *name = layout == TAMIS_SPREAD ? "tamis spread" : "tamis blocked";
    tamis_options o = {.growth = TAMIS_FIXED, .layout = layout, .fpp = now.fpp, .capacity = now.n};
    tamis_filter *f;
    if (tamis_filter_new(&f, &o, NULL) != TAMIS_OK)
        exit(2);
    insert(f, keys, now.n, 1 << 16);
    double one = insert_single(f, keys, now.n);
    double small = insert(f, keys, now.n, BENCH_CHUNK), large = insert(f, keys, now.n, 1 << 20);
    tamis_filter_facts info;
    tamis_filter_info(f, &info);
    struct lookups run = {.filter = f, .keys = queries, .n = QUERIES};
    struct floors floor = bench_floor(info.bits / 8, queries, QUERIES);
    now.floor_ns = floor.best;
    printf("n = %zu, rate %g: floor %.2f ns (as usual %.2f ns), hash %.2f ns\n", now.n, now.fpp,
           floor.best, floor.usual, bench_median(hash_body, &run, QUERIES));
    double bits = (double)info.bits / (double)now.n;
    if (layout == TAMIS_BLOCKED) {
        row("floor", "lookup, batch", floor.best, 0);
        row("floor, as usual", "lookup, batch", floor.usual, 0);
        row("floor, by calls", "lookup, one", floor.call, 0);
    }
    run.found = 0;
    row(name, "lookup, batch", bench_median(bench_lookups, &run, QUERIES), bits);
    rate_row(name, run.found);
    row(name, "lookup, one", bench_median(bench_singles, &run, QUERIES), bits);
    row(name, "insert, one", one, bits);
    row(name, "insert, by 1024", small, bits);
    row(name, "insert, by 2^20", large, bits);
    tamis_filter_free(f);
}

static void measure(size_t n, double fpp, tamis_layout layout, bool peers)
{
    uint64_t *keys = malloc(n * 8), *queries = malloc(QUERIES * 8);
    if (!keys || !queries)
        exit(2);
    now.n = n, now.fpp = fpp;
    bench_keys(keys, n, 1);
    bench_keys(queries, QUERIES, 2);
    tamis_rows(layout, keys, queries);
    if (peers && !getenv("NOPEERS")) {
        same_bits_rows(peer_rows(&peer_rocksdb, keys, queries), keys, queries);
        peer_rows(&peer_libbloom, keys, queries);
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
    if (getenv("BENCH_QUICK")) { /* for the test of the driver */
        measure(10000, 0.01, TAMIS_BLOCKED, false);
        measure(100000, 0.01, TAMIS_BLOCKED, false);
        return 0;
    }
    for (size_t n = argc > 2 ? (size_t)atof(argv[2]) : 1000000; n <= most; n *= 10)
        for (int i = 0; i < 2; i++) {
            measure(n, i ? 0.001 : 0.01, TAMIS_BLOCKED, true);
            if (n <= 10000000)
                measure(n, i ? 0.001 : 0.01, TAMIS_SPREAD, false);
        }
    return 0;
}
