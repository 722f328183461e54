/* What the benchmarks share: a clock, medians, keys, the floor, and the peers behind one interface. */
#ifndef TAMIS_BENCH_H
#define TAMIS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tamis.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_RUNS  5    /* medians of this many */
#define BENCH_CHUNK 1024 /* keys that are asked or added at once */

double bench_now(void);   /* seconds by the clock */
double bench_used(void);  /* seconds of processor time of this thread: others do not count in */
double bench_spent(void); /* the same of all threads */
/* Ends the program if a call of the library failed; the reason may be NULL. */
void bench_must(tamis_error e, const tamis_reason *reason);
void bench_pin(void); /* to one core, so that the caches are ours */
uint64_t bench_mix(uint64_t x);
/* A rank from 0 to most - 1 by Zipf's law, exponent 1; most <= BENCH_NAMES. */
#define BENCH_NAMES 100000
unsigned bench_zipf(uint64_t random, unsigned most);
void bench_keys(uint64_t *keys, size_t n, uint64_t seed);

/* Sorts the values, and returns their median. */
double bench_sort(double *values, size_t n);
/* Median of BENCH_RUNS runs of body(context), in nanoseconds for each of n. */
double bench_median(void (*body)(void *context), void *context, size_t n);

/* Lookups of n keys of 8 bytes, n a multiple of BENCH_CHUNK, hashing included. */
struct lookups {
    const tamis_filter *filter;
    const uint64_t *keys;
    size_t n;
    uint64_t found;
};
void bench_lookups(void *lookups);           /* a body: in batches */
void bench_singles(void *lookups);           /* and one by one */
double bench_rate(uint64_t found, size_t n); /* found by all runs of bench_median, of n each */

/* Random lines, fetched ahead, over `bytes` of memory allocated as a filter's is: what any structure
   with one cache miss per lookup pays, at best and as usually fetched. */
struct far_lines {
    const uint64_t *words;
    uint64_t n_lines;
    const uint64_t *queries;
    size_t n;
    uint64_t sum;
};
void bench_lines(void *lines); /* the body of the floor at its best */

/* One by one nothing is fetched ahead: a call that hashes its key and looks at one word of its line is
   what a lookup by a call cannot be faster than. */
struct floors {
    double best, usual, call; /* nanoseconds per line */
};
struct floors bench_floor(size_t bytes, const uint64_t *queries, size_t n);

/* One figure for programs: appended as a line of JSON to the file that BENCH_ROWS names, if it does.
   0 or less: not known. */
struct bench_row {
    const char *filter, *what;
    double n, fpp, ns, floor_ns, bits, rate, times;
};
void bench_record(struct bench_row row);

/* A filter of another library. */
struct peer {
    const char *name;
    void *(*make)(size_t n, double fpp, const uint64_t *keys); /* built from the keys */
    size_t (*bytes)(void *filter);
    bool (*has)(void *filter, uint64_t key);
    void (*has_many)(void *filter, const uint64_t *keys, size_t n, uint8_t *found); /* or NULL */
    void (*free)(void *filter);
};

extern const struct peer peer_libbloom, peer_rocksdb;

/* One that takes keys one by one, and grows from 1,000; or is sized for n, where it cannot grow. */
struct grower {
    const char *name;
    void *(*make)(size_t n, double fpp); /* NULL: its source was not there */
    bool (*add)(void *filter, uint64_t key);
    bool (*has)(void *filter, uint64_t key);
    bool (*remove)(void *filter, uint64_t key); /* or NULL */
    size_t (*bytes)(void *filter);
    void (*free)(void *filter);
};

extern const struct grower grower_smooth, grower_libbloom, grower_cuckoo, grower_taffy;

#ifdef __cplusplus
}
#endif
#endif
