/*
 * What growth, deletion and threads cost: a scalable filter grown from 1,000 keys beside one sized in
 * advance, allocated bits per key along the way, a dynamic filter of 500 vectors beside one spread
 * vector with the same keys and probes, deletable beside plain, two threads beside one; and a smooth filter
 * grown from 1,000 keys: lookups beside a sized one, adds, removals, bits per key, other rates, the longest
 * add; and beside peers that grow or take removals, one key at a time. BENCH_FULL=1 grows to 10^8 keys too.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench.h"
#include "set/set.h"

#define QUERIES ((size_t)1 << 21)
#define FIRST   1000 /* keys a growing filter starts with */

static double lookup(tamis_filter *f, const uint64_t *queries, double *rate)
{
    struct lookups run = {f, queries, QUERIES, 0};
    double ns = bench_median(bench_lookups, &run, QUERIES);
    *rate = bench_rate(run.found, QUERIES);
    return ns;
}

static tamis_filter *make(tamis_options o)
{
    tamis_filter *f;
    tamis_reason reason;
    if (tamis_filter_new(&f, &o, &reason) != TAMIS_OK) {
        fprintf(stderr, "bench: %s\n", reason.text);
        exit(2);
    }
    return f;
}

/* tamis_filter_add_many or tamis_filter_remove_many */
typedef tamis_error (*change_fn)(tamis_filter *f, const tamis_digest *digests, size_t n,
                                 uint8_t *answers, size_t *done);

/* Keys 1..n of stream `seed`, added or removed in chunks; nanoseconds per key. */
static double change(tamis_filter *f, change_fn many, uint64_t seed, size_t from, size_t to)
{
    uint64_t keys[BENCH_CHUNK];
    tamis_digest digests[BENCH_CHUNK];
    double spent = 0;
    for (size_t i = from; i < to; i += BENCH_CHUNK) {
        size_t some = to - i < BENCH_CHUNK ? to - i : BENCH_CHUNK;
        bench_keys(keys, some, seed + i * UINT64_C(0x9E3779B97F4A7C15));
        double start = bench_used();
        tamis_filter_digest_fixed(f, keys, 8, some, digests);
        if (many(f, digests, some, NULL, NULL) != TAMIS_OK)
            exit(2);
        spent += bench_used() - start;
    }
    return spent * 1e9 / (double)(to - from);
}

static double fill(tamis_filter *f, uint64_t seed, size_t from, size_t to)
{
    return change(f, tamis_filter_add_many, seed, from, to);
}

static double bits_of(const tamis_filter *f)
{
    const struct layers *stack = set_layers(&f->set);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < layers_count(stack); i++)
        bits += vector_positions_total(stack->v[i]);
    return (double)bits;
}

struct curve {
    double sum, late, worst;
    size_t points, late_points;
    double insert; /* nanoseconds in all */
};

/* Grows the filter to n keys and looks at its size on the way, n uniform on a log scale. */
static struct curve grow(tamis_filter *f, size_t n)
{
    struct curve c = {0};
    size_t at = 0;
    for (double next = FIRST; at < n; next *= 1.02) {
        size_t to = next < (double)n ? (size_t)next : n;
        if (to <= at)
            continue;
        c.insert += fill(f, 1, at, to) * (double)(to - at);
        at = to;
        double a_key = bits_of(f) / (double)at;
        c.sum += a_key, c.points++;
        if (at >= 1000000) {
            c.late += a_key, c.late_points++;
            c.worst = a_key > c.worst ? a_key : c.worst;
        }
        bench_record((struct bench_row){.filter = "tamis scalable",
                                        .what = "curve",
                                        .n = (double)at,
                                        .fpp = 0.01,
                                        .bits = a_key});
        if (c.points % 40 == 1)
            printf("    n %9zu: %7.2f bits per key\n", at, a_key);
    }
    return c;
}

static void grown_row(const char *what, size_t n, double ns, double sized, double bits)
{
    printf("  %s %.2f ns, %.2f times sized in advance (%.2f ns)\n", what, ns, ns / sized, sized);
    bench_record((struct bench_row){.filter = "tamis scalable",
                                    .what = what,
                                    .n = (double)n,
                                    .fpp = 0.01,
                                    .ns = ns,
                                    .bits = bits,
                                    .times = ns / sized});
}

static double single(tamis_filter *f, const uint64_t *queries)
{
    struct lookups run = {f, queries, QUERIES, 0};
    return bench_median(bench_singles, &run, QUERIES);
}

static void grown(size_t n, const uint64_t *queries)
{
    double rate_grown, rate_sized;
    tamis_filter *f = make((tamis_options){.growth = TAMIS_SCALABLE, .capacity = FIRST});
    struct curve c = grow(f, n);
    tamis_filter *sized = make((tamis_options){.growth = TAMIS_FIXED, .capacity = n});
    double insert_sized = fill(sized, 1, 0, n), bits = bits_of(f) / (double)n;
    double look_sized = lookup(sized, queries, &rate_sized);
    double look_grown = lookup(f, queries, &rate_grown);
    printf("grown from 1,000 to %zu keys at 1 %%: %u vectors, rate %.5f (sized: %.5f)\n", n,
           layers_count(set_layers(&f->set)), rate_grown, rate_sized);
    grown_row("lookup, batch", n, look_grown, look_sized, bits);
    grown_row("lookup, one", n, single(f, queries), single(sized, queries), bits);
    grown_row("insert, by 1024", n, c.insert / (double)n, insert_sized, bits);
    printf("  bits per key: average %.2f over all, %.2f past 10^6; worst past 10^6 %.2f\n",
           c.sum / (double)c.points, c.late / (double)(c.late_points ? c.late_points : 1), c.worst);
    tamis_filter_free(f);
    tamis_filter_free(sized);
}

static void dynamic(const uint64_t *queries)
{
    size_t n = 5000000;
    tamis_filter *f = make((tamis_options){.growth = TAMIS_DYNAMIC, .capacity = n, .vectors = 500});
    fill(f, 1, 0, n - n / 100);
    tamis_filter_facts info;
    tamis_filter_info(f, &info);
    tamis_filter *one = make((tamis_options){.growth = TAMIS_FIXED,
                                             .layout = TAMIS_SPREAD,
                                             .capacity = n,
                                             .bits = info.bits,
                                             .hashes = info.hashes});
    fill(one, 1, 0, n - n / 100);
    double rate, rate_one, many = lookup(f, queries, &rate),
                           single = lookup(one, queries, &rate_one);
    printf(
        "dynamic, %u vectors, %u probes: lookup %.2f ns, %.2f times one spread vector (%.2f ns); "
        "rate %.5f\n",
        info.vectors, info.hashes, many, many / single, single, rate);
    bench_record((struct bench_row){.filter = "tamis dynamic",
                                    .what = "lookup, batch",
                                    .n = (double)n,
                                    .fpp = 0.01,
                                    .ns = many,
                                    .times = many / single});
    tamis_filter_free(f);
    tamis_filter_free(one);
}

/* One key at a time, which must not cost more the more vectors there are. */
static void dynamic_singles(void)
{
    size_t n = 1000000, some = 20000;
    for (size_t at = n / 10; at <= n; at *= 10) {
        tamis_filter *f = make((tamis_options){
            .growth = TAMIS_DYNAMIC, .capacity = n, .vectors = 1000, .deletable = true});
        uint64_t *keys = malloc(some * sizeof *keys);
        if (!keys)
            exit(2);
        fill(f, 1, 0, at - some);
        bench_keys(keys, some, 2);
        double start = bench_used();
        for (size_t i = 0; i < some; i++)
            tamis_filter_add(f, &keys[i], 8, NULL);
        double added = bench_used();
        for (size_t i = 0; i < some; i++)
            tamis_filter_remove(f, &keys[i], 8, NULL);
        double removed = bench_used();
        tamis_filter_facts info;
        tamis_filter_info(f, &info);
        printf("dynamic, deletable, %u vectors, one by one: insert %.0f ns, remove %.0f ns\n",
               info.vectors, (added - start) * 1e9 / (double)some,
               (removed - added) * 1e9 / (double)some);
        free(keys);
        tamis_filter_free(f);
    }
}

static void deletable(const uint64_t *queries)
{
    size_t n = 4000000;
    double rate, ns[2];
    for (int i = 0; i < 2; i++) {
        tamis_filter *f =
            make((tamis_options){.growth = TAMIS_FIXED, .capacity = n, .deletable = i});
        double add = fill(f, 1, 0, n);
        ns[i] = lookup(f, queries, &rate);
        printf("%s: lookup %.2f ns, insert %.2f ns\n", i ? "deletable" : "plain", ns[i], add);
        if (i)
            printf("deletable: remove %.2f ns\n", change(f, tamis_filter_remove_many, 1, 0, n));
        tamis_filter_free(f);
    }
    printf("deletable lookups take %.3f times plain ones\n", ns[1] / ns[0]);
    bench_record((struct bench_row){.filter = "tamis deletable",
                                    .what = "lookup, batch",
                                    .n = (double)n,
                                    .fpp = 0.01,
                                    .ns = ns[1],
                                    .times = ns[1] / ns[0]});
}

struct turns {
    void (*body)(void *context);
    void *context;
};

static void *take_turns(void *context)
{
    struct turns *turns = context;
    for (int i = 0; i < 4; i++)
        turns->body(turns->context);
    return NULL;
}

/* How many times as much two threads get done as one: the best of some turns. */
static double two_threads(void (*body)(void *context), void *first, void *second)
{
    double best[3] = {0};
    for (int round = 0; round < BENCH_RUNS; round++)
        for (int t = 1; t <= 2; t++) {
            pthread_t id[2];
            struct turns turns[2] = {{body, first}, {body, second}};
            double start = bench_now();
            for (int i = 0; i < t; i++)
                pthread_create(&id[i], NULL, take_turns, &turns[i]);
            for (int i = 0; i < t; i++)
                pthread_join(id[i], NULL);
            double rate = t / (bench_now() - start);
            best[t] = rate > best[t] ? rate : best[t];
        }
    return best[2] / best[1];
}

static void threads(const uint64_t *queries)
{
    size_t n = 10000000;
    tamis_filter *f = make((tamis_options){.growth = TAMIS_FIXED, .capacity = n});
    fill(f, 1, 0, n);
    const struct bits *bits = &set_layers(&f->set)->v[0]->bits;
    struct lookups run[2] = {{f, queries, QUERIES, 0}, {f, queries, QUERIES, 0}};
    struct far_lines lines[2] = {{bits->words, bits->units, queries, QUERIES, 0},
                                 {bits->words, bits->units, queries, QUERIES, 0}};
    double times = two_threads(bench_lookups, &run[0], &run[1]);
    double floor = two_threads(bench_lines, &lines[0], &lines[1]);
    printf("two threads look up %.2f times as fast as one; the floor: %.2f times\n", times, floor);
    bench_record((struct bench_row){.filter = "tamis blocked",
                                    .what = "two threads",
                                    .n = (double)n,
                                    .fpp = 0.01,
                                    .times = times});
    bench_record((struct bench_row){
        .filter = "floor", .what = "two threads", .n = (double)n, .fpp = 0.01, .times = floor});
    tamis_filter_free(f);
}

/* ---- smooth filters -------------------------------------------------------------------------- */

/* Grown from 1,000 keys beside sized ones: in turns, so that what else the machine does falls on both. */
struct pair {
    tamis_filter *grown, *sized;
    size_t n;
};

static void pair_row(const struct pair *p, const char *what, void (*body)(void *context),
                     const uint64_t *queries)
{
    double ns[2][BENCH_RUNS], times[BENCH_RUNS];
    for (int round = 0; round < BENCH_RUNS; round++) {
        for (int i = 0; i < 2; i++) {
            struct lookups run = {i ? p->grown : p->sized, queries, QUERIES, 0};
            double start = bench_used();
            body(&run);
            ns[i][round] = (bench_used() - start) * 1e9 / QUERIES;
        }
        times[round] = ns[1][round] / ns[0][round];
    }
    double sized = bench_sort(ns[0], BENCH_RUNS), grown = bench_sort(ns[1], BENCH_RUNS);
    double ratio = bench_sort(times, BENCH_RUNS);
    printf("  %s %.2f ns, %.2f times sized in advance (%.2f ns)\n", what, grown, ratio, sized);
    bench_record((struct bench_row){.filter = "tamis smooth",
                                    .what = what,
                                    .n = (double)p->n,
                                    .fpp = 0.01,
                                    .ns = grown,
                                    .times = ratio});
}

static void smooth_row(const char *what, size_t n, double fpp, double ns, double bits)
{
    bench_record((struct bench_row){.filter = "tamis smooth",
                                    .what = what,
                                    .n = (double)n,
                                    .fpp = fpp,
                                    .ns = ns,
                                    .bits = bits});
}

/* All that it has, as its allocator gave it. */
static double smooth_bits(const tamis_filter *f, size_t n)
{
    tamis_filter_facts info;
    tamis_filter_info(f, &info);
    return (double)info.bytes * 8 / (double)n;
}

/* Adds up to n keys, n uniform on a log scale; nanoseconds per key, and bits per key on the way. */
static double smooth_grow(tamis_filter *f, size_t n, double fpp)
{
    double spent = 0, sum = 0, worst = 0, points = 0;
    size_t at = 0;
    for (double next = FIRST; at < n; next *= 1.02) {
        size_t to = next < (double)n ? (size_t)next : n;
        if (to <= at)
            continue;
        spent += fill(f, 1, at, to) * (double)(to - at);
        at = to;
        double bits = smooth_bits(f, at);
        sum += bits;
        points++;
        worst = bits > worst ? bits : worst;
        smooth_row("curve", at, fpp, 0, bits);
    }
    printf(
        "smooth, grown from 1,000 to %zu keys at %g: %.2f bits per key, on average %.2f, at worst %.2f\n",
        n, fpp, smooth_bits(f, n), sum / points, worst);
    return spent / (double)n;
}

/* Touches pages and frees them. A virtual machine that gave them back to its host, as some do with what is free for two
   seconds, waits 5 ms for each huge page. */
static void touch(void)
{
    size_t bytes = (size_t)1 << 25;
    void *pages = mem_pages_new(NULL, bytes, (size_t)1 << 21);
    if (pages) {
        memset(pages, 1, bytes);
        mem_pages_free(pages, bytes);
    }
}

/* The longest of the single adds of some keys, all in this thread. */
static void smooth_longest(tamis_filter *f, size_t n, uint64_t from, uint64_t to, bool touched)
{
    const char *what = touched ? "insert, longest, touched memory" : "insert, longest";
    double longest = 0;
    for (uint64_t i = from; i < to; i++) {
        if (touched && i % 65536 == 0)
            touch();
        uint64_t key = bench_mix(i ^ UINT64_C(0xA0761D6478BD642F));
        double start = bench_used();
        if (tamis_filter_add(f, &key, sizeof key, NULL) != TAMIS_OK)
            exit(2);
        double took = bench_used() - start;
        longest = took > longest ? took : longest;
    }
    printf("  %s of %.0f: %.3f ms\n", what, (double)(to - from), longest * 1e3);
    smooth_row(what, n, 0.01, longest * 1e9, 0);
}

/* What the sizes of both cost when keys are looked up one by one, whatever is in them. */
static void smooth_floors(const struct pair *p, const uint64_t *absent)
{
    tamis_filter_facts grown, sized;
    tamis_filter_info(p->grown, &grown);
    tamis_filter_info(p->sized, &sized);
    double floor = bench_floor(grown.bytes, absent, QUERIES).call;
    double small = bench_floor(sized.bytes, absent, QUERIES).call;
    printf("  floor, by calls %.2f ns, %.2f times that of the sized one (%.2f ns)\n", floor,
           floor / small, small);
    bench_record((struct bench_row){.filter = "floor, by calls, of a smooth filter",
                                    .what = "lookup, one",
                                    .n = (double)p->n,
                                    .fpp = 0.01,
                                    .ns = floor,
                                    .times = floor / small});
}

static void smooth(size_t n, const uint64_t *absent)
{
    struct pair p = {make((tamis_options){.growth = TAMIS_SMOOTH, .deletable = true}),
                     make((tamis_options){.growth = TAMIS_FIXED, .capacity = n}), n};
    uint64_t *present = malloc(QUERIES * sizeof *present);
    if (!present)
        exit(2);
    double insert = smooth_grow(p.grown, n, 0.01);
    fill(p.sized, 1, 0, n);
    for (size_t i = 0; i < QUERIES;
         i += BENCH_CHUNK) /* chunks as fill() made them, from all over */
        bench_keys(present + i, BENCH_CHUNK,
                   1 + bench_mix(i) % (n / BENCH_CHUNK) * BENCH_CHUNK *
                           UINT64_C(0x9E3779B97F4A7C15));
    pair_row(&p, "lookup, batch", bench_lookups, absent);
    pair_row(&p, "lookup, batch, present", bench_lookups, present);
    pair_row(&p, "lookup, one", bench_singles, absent);
    smooth_floors(&p, absent);
    double removal =
        change(p.grown, tamis_filter_remove_many, 1, 0, n / 4 / BENCH_CHUNK * BENCH_CHUNK);
    printf("  insert %.1f ns, remove %.1f ns\n", insert, removal);
    smooth_row("insert, by 1024", n, 0.01, insert, 0);
    smooth_row("remove, by 1024", n, 0.01, removal, 0);
    fill(p.grown, 1, 0, n / 4 / BENCH_CHUNK * BENCH_CHUNK);
    smooth_longest(p.grown, n, 0, n / 8, false);
    smooth_longest(p.grown, n, n / 8, n / 4, true);
    free(present);
    tamis_filter_free(p.grown);
    tamis_filter_free(p.sized);
}

static void smooth_threads(const uint64_t *queries)
{
    size_t n = 10000000;
    tamis_filter *f = make((tamis_options){.growth = TAMIS_SMOOTH});
    fill(f, 1, 0, n);
    struct lookups run[2] = {{f, queries, QUERIES, 0}, {f, queries, QUERIES, 0}};
    double times = two_threads(bench_lookups, &run[0], &run[1]);
    printf("smooth: two threads look up %.2f times as fast as one\n", times);
    bench_record((struct bench_row){.filter = "tamis smooth",
                                    .what = "two threads",
                                    .n = (double)n,
                                    .fpp = 0.01,
                                    .times = times});
    tamis_filter_free(f);
}

static void smooth_rates(const uint64_t *queries)
{
    static const double rates[] = {0.1, 0.001, 0.0001};
    for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
        tamis_filter *f = make((tamis_options){.growth = TAMIS_SMOOTH, .fpp = rates[i]});
        double rate, insert = smooth_grow(f, 3000000, rates[i]), ns = lookup(f, queries, &rate);
        printf("  lookup %.2f ns, insert %.1f ns, rate %.6f\n", ns, insert, rate);
        smooth_row("lookup, batch", 3000000, rates[i], ns, smooth_bits(f, 3000000));
        tamis_filter_free(f);
    }
}

/* One key at a time, as the peers take them, in one run. */
static void grower(const struct grower *g, size_t n, const uint64_t *absent)
{
    void *f = g->make ? g->make(n, 0.01) : NULL;
    if (!f)
        return;
    bool good = true;
    uint64_t found = 0;
    double start = bench_used();
    for (uint64_t i = 1; i <= n && good; i++)
        good = g->add(f, bench_mix(i));
    double added = bench_used();
    for (size_t i = 0; i < QUERIES; i++)
        found += g->has(f, absent[i]);
    double asked = bench_used(), rate = (double)found / QUERIES;
    for (uint64_t i = 1; i <= n / 4 && g->remove; i++)
        good &= g->remove(f, bench_mix(i));
    double removed = bench_used(), bits = (double)g->bytes(f) * 8 / (double)n;
    printf(
        "%-21s %9zu keys: insert %.0f ns, lookup %.0f, remove %.0f; %.1f bits per key, rate %.5f%s\n",
        g->name, n, (added - start) * 1e9 / (double)n, (asked - added) * 1e9 / QUERIES,
        (removed - asked) * 4e9 / (double)n, bits, rate, good ? "" : "; it failed");
    bench_record((struct bench_row){.filter = g->name,
                                    .what = "grown, lookup, one",
                                    .n = (double)n,
                                    .fpp = 0.01,
                                    .ns = (asked - added) * 1e9 / QUERIES,
                                    .bits = bits,
                                    .rate = rate});
    g->free(f);
}

static void growers(size_t n, const uint64_t *absent)
{
    grower(&grower_smooth, n, absent);
    grower(&grower_libbloom, n, absent);
    grower(&grower_taffy, n, absent);
    grower(&grower_cuckoo, n, absent);
}

int main(void)
{
    uint64_t *queries = malloc(QUERIES * 8);
    if (!queries)
        return 2;
    bench_keys(queries, QUERIES, 2);
    threads(queries);
    smooth_threads(queries);
    bench_pin();
    smooth(1000000, queries);
    smooth(10000000, queries);
    smooth_rates(queries);
    growers(1000000, queries);
    growers(10000000, queries);
    deletable(queries);
    dynamic(queries);
    dynamic_singles();
    grown(10000000, queries);
    if (getenv("BENCH_FULL")) {
        grown(100000000, queries);
        smooth(100000000, queries);
    }
    free(queries);
    return 0;
}
