/*
 * What a filter as a whole costs: a copy, a union with its like, an intersection, a fold, in
 * milliseconds for each MB that it takes. The module counts so much work before it starts
 * (redis/algebra.c). BENCH_MB is another size than 8.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "tamis.h"

struct kind {
    const char *name;
    tamis_options options;
    unsigned vectors; /* of a dynamic filter */
};

static const struct kind kinds[] = {
    {"blocked", {.growth = TAMIS_FIXED, .layout = TAMIS_BLOCKED}, 1},
    {"blocked deletable", {.growth = TAMIS_FIXED, .layout = TAMIS_BLOCKED, .deletable = true}, 1},
    {"spread", {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD}, 1},
    {"spread deletable", {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .deletable = true}, 1},
    {"dynamic 1", {.growth = TAMIS_DYNAMIC}, 1},
    {"dynamic 2", {.growth = TAMIS_DYNAMIC}, 2},
    {"dynamic 3", {.growth = TAMIS_DYNAMIC}, 3},
    {"dynamic 8", {.growth = TAMIS_DYNAMIC}, 8},
    {"dynamic 100", {.growth = TAMIS_DYNAMIC}, 100},
    {"dynamic deletable 1", {.growth = TAMIS_DYNAMIC, .deletable = true}, 1},
    {"dynamic deletable 3", {.growth = TAMIS_DYNAMIC, .deletable = true}, 3},
    {"dynamic deletable 100", {.growth = TAMIS_DYNAMIC, .deletable = true}, 100},
};

enum { RUNS = 3, HASHES = 7, BITS_A_KEY = 20 /* half full, so that all fits when folded */ };

static void check(tamis_error e, const char *what)
{
    if (e != TAMIS_OK) {
        fprintf(stderr, "bench: %s: %s\n", what, tamis_error_name(e));
        exit(2);
    }
}

/* Of about this many bytes, with a share of its keys from `first` on. */
static tamis_filter *make(const struct kind *kind, double bytes, double share, uint64_t first)
{
    tamis_options o = kind->options;
    static const uint8_t key[TAMIS_KEY_LEN] = "bench";
    tamis_filter *f;
    double bits = bytes * 8 / (o.deletable ? 5 : 1) / kind->vectors;
    o.bits = (uint64_t)bits / 8192 * 8192;
    o.hashes = HASHES;
    o.capacity = o.bits / BITS_A_KEY * 2;
    o.key = key;
    check(tamis_filter_new(&f, &o, NULL), "making");
    uint64_t n = (uint64_t)((double)(o.capacity * kind->vectors) * share);
    for (uint64_t i = first; i < first + n; i++)
        check(tamis_filter_add(f, &i, sizeof i, NULL), "adding");
    return f;
}

struct times {
    double copy, merge, intersect, fold;
};

static void keep_least(double *least, double seconds)
{
    *least = *least == 0 || seconds < *least ? seconds : *least;
}

static void measure(const tamis_filter *f, const tamis_filter *other, struct times *t)
{
    tamis_filter *copy, *both;
    double start = bench_used();
    check(tamis_filter_clone(&copy, f), "copy");
    keep_least(&t->copy, bench_used() - start);
    start = bench_used();
    tamis_error e = tamis_filter_intersect(&both, f, other, NULL);
    keep_least(&t->intersect, bench_used() - start);
    if (e == TAMIS_OK)
        tamis_filter_free(both);
    else
        t->intersect = -1; /* of more than one vector */
    start = bench_used();
    check(tamis_filter_merge(copy, other, TAMIS_MERGE_RESTATE, NULL), "merge");
    keep_least(&t->merge, bench_used() - start);
    tamis_filter_free(copy);
    check(tamis_filter_clone(&copy, f), "copy");
    start = bench_used();
    check(tamis_filter_fold(copy, TAMIS_MERGE_RESTATE, NULL), "fold");
    keep_least(&t->fold, bench_used() - start);
    tamis_filter_free(copy);
}

static void show(double ms)
{
    if (ms < 0)
        printf("%11s", "-");
    else
        printf("%11.3f", ms);
}

int main(void)
{
    const char *mb = getenv("BENCH_MB");
    double size = mb ? atof(mb) : 8;
    bench_pin();
    printf("whole filters of %g MB, milliseconds a MB\n%-24s%9s%11s%11s%11s%11s\n", size, "filter",
           "bytes", "copy", "merge", "intersect", "fold");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tamis_filter *f = make(&kinds[i], size * 1e6, 0.9, 0);
        tamis_filter *other = make(&kinds[i], size * 1e6, 0.9, UINT64_C(1) << 40);
        tamis_filter_facts info;
        struct times t = {0};
        tamis_filter_info(f, &info);
        for (int run = 0; run < RUNS; run++)
            measure(f, other, &t);
        double per = 1e9 / (double)info.bytes;
        printf("%-24s%9llu", kinds[i].name, (unsigned long long)info.bytes);
        show(t.copy * per);
        show(t.merge * per);
        show(t.intersect < 0 ? -1 : t.intersect * per);
        show(t.fold * per);
        printf("\n");
        tamis_filter_free(f);
        tamis_filter_free(other);
    }
    return 0;
}
