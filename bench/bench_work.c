/*
 * One piece of work of size n, for counting instructions: bench/work.py runs it under cachegrind with n
 * and 4n, and what grows with a square shows. Sizes are what untrusted bytes may state: tiny capacities, equal
 * vectors, digests that share all positions, as many attributes as there may be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "tamis/records.h"
#include "tamis/plan.h"

static const uint8_t family[TAMIS_KEY_LEN] = "tamis work";

static uint64_t clock_stands(void *context)
{
    (void)context;
    return 1;
}

static tamis_filter *filter_of(tamis_options o)
{
    tamis_filter *f;
    o.key = family;
    o.clock = clock_stands;
    bench_must(tamis_filter_new(&f, &o, NULL), NULL);
    return f;
}

static void add_keys(tamis_filter *f, size_t n)
{
    for (uint64_t i = 0; i < n; i++)
        bench_must(tamis_filter_add(f, &i, sizeof i, NULL), NULL);
}

static void add_and_free(tamis_options o, size_t n)
{
    tamis_filter *f = filter_of(o);
    add_keys(f, n);
    tamis_filter_free(f);
}

/* ---- keys, as many vectors as they make ---- */

static void scalable(size_t n)
{
    add_and_free((tamis_options){.capacity = 1, .expansion = 1}, n);
}

static void scalable_deletable(size_t n)
{
    add_and_free((tamis_options){.capacity = 1, .expansion = 1, .deletable = true}, n);
}

static void flexible(size_t n)
{
    add_and_free((tamis_options){.growth = TAMIS_FLEXIBLE, .capacity = 1}, n);
}

static void dynamic(size_t n)
{
    add_and_free(
        (tamis_options){
            .growth = TAMIS_DYNAMIC, .bits = 64, .hashes = 1, .capacity = 1, .add_always = true},
        n);
}

/* ---- vectors: n of them made, saved and loaded, and few keys added to the last ---- */

struct saved {
    uint8_t *data;
    size_t len;
};

static int saved_take(void *context, const void *data, size_t len)
{
    struct saved *saved = context;
    memcpy(saved->data + saved->len, data, len);
    saved->len += len;
    return 0;
}

static void stack_of(size_t n, bool deletable)
{
    static const uint8_t one[] = {1};
    tamis_filter *all = NULL, *loaded = NULL;
    for (size_t i = 1; i < n;
         i *= 2) { /* by doubling, as merges do: each key is not asked of all */
        if (!all) {
            all = filter_of((tamis_options){.growth = TAMIS_FLEXIBLE,
                                            .capacity = 1,
                                            .bits = 64,
                                            .hashes = 2,
                                            .lambdas = one,
                                            .n_lambdas = 1,
                                            .deletable = deletable});
            add_keys(all, 1);
        }
        bench_must(tamis_filter_merge(all, all, TAMIS_MERGE_CONCAT, NULL), NULL);
    }
    if (!all)
        return;
    struct saved saved = {malloc(tamis_filter_encoded_size(all, 0)), 0};
    bench_must(tamis_filter_encode(all, 0, saved_take, &saved), NULL);
    bench_must(tamis_filter_decode(&loaded, saved.data, saved.len, NULL, NULL), NULL);
    add_keys(loaded, 16);
    free(saved.data);
    tamis_filter_free(all);
    tamis_filter_free(loaded);
}

static void vectors(size_t n)
{
    stack_of(n, false);
}

static void vectors_deletable(size_t n)
{
    stack_of(n, true);
}

/* A window that turns at each key: n vectors come and go. */
static uint64_t clock_runs(void *context)
{
    return *(uint64_t *)context;
}

static void window(size_t n)
{
    uint64_t now = 1 << 20;
    tamis_filter *f;
    tamis_options o = {.growth = TAMIS_WINDOW,
                       .capacity = 1024,
                       .vectors = 8,
                       .window = 1000,
                       .key = family,
                       .clock = clock_runs,
                       .clock_context = &now};
    bench_must(tamis_filter_new(&f, &o, NULL), NULL);
    for (uint64_t i = 0; i < n; i++, now += 200)
        bench_must(tamis_filter_add(f, &i, sizeof i, NULL), NULL);
    tamis_filter_free(f);
}

/* ---- pending removals ---- */

/* Digests with the same positions in two vectors, added, removed, and added again one by one: each step
   moves a counter that all of them wait for. */
static void pending(size_t n)
{
    tamis_filter *f = filter_of((tamis_options){
        .growth = TAMIS_DYNAMIC, .bits = 64, .hashes = 3, .capacity = 10, .deletable = true});
    uint8_t outcome;
    add_keys(f, 40);
    tamis_digest d = {UINT64_C(1) << 40, 12345};
    for (uint32_t tried = 0; tried < 100000; tried++, d.b += UINT64_C(0x9e3779b97f4a7c15)) {
        bench_must(tamis_filter_add_many(f, &d, 1, NULL, NULL), NULL);
        bench_must(tamis_filter_remove_many(f, &d, 1, &outcome, NULL), NULL);
        if (outcome == TAMIS_PENDING)
            break;
    }
    for (size_t i = 0; i < n; i++, d.a++)
        bench_must(tamis_filter_add_many(f, &d, 1, NULL, NULL), NULL);
    d.a -= n;
    for (size_t i = 0; i < n; i++, d.a++)
        bench_must(tamis_filter_remove_many(f, &d, 1, &outcome, NULL), NULL);
    for (size_t i = 0; i < n; i++) {
        uint64_t key = i % 40;
        bench_must(tamis_filter_add(f, &key, sizeof key, NULL), NULL);
        bench_must(tamis_filter_remove(f, &key, sizeof key, NULL), NULL);
    }
    tamis_filter_free(f);
}

/* ---- records ---- */

static void records(size_t n, tamis_records_options o, bool remove)
{
    tamis_records *x;
    o.set.key = family;
    o.set.clock = clock_stands;
    bench_must(tamis_records_new(&x, &o, NULL), NULL);
    tamis_key record[TAMIS_ATTRIBUTES_MAX];
    uint64_t value[TAMIS_ATTRIBUTES_MAX];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < o.n_attributes; j++) {
            value[j] = i;
            record[j] = (tamis_key){&value[j], sizeof *value};
        }
        bench_must(tamis_records_add(x, record, NULL), NULL);
    }
    for (uint64_t i = 0; remove && i < n; i++) {
        for (size_t j = 0; j < o.n_attributes; j++)
            value[j] = i;
        bench_must(tamis_records_remove(x, record, NULL), NULL);
    }
    tamis_records_free(x);
}

static const tamis_attribute names[TAMIS_ATTRIBUTES_MAX] = {
#define FOUR(x)                                        \
    {.name = x "0"}, {.name = x "1"}, {.name = x "2"}, \
    {                                                  \
        .name = x "3"                                  \
    }
    FOUR("a"), FOUR("b"), FOUR("c"), FOUR("d"), FOUR("e"), FOUR("f"), FOUR("g"), FOUR("h"),
    FOUR("i"), FOUR("j"), FOUR("k"), FOUR("l"), FOUR("m"), FOUR("n"), FOUR("o"), FOUR("p")};

static void layers(size_t n)
{
    records(n,
            (tamis_records_options){
                .attributes = names, .n_attributes = 2, .set.capacity = 1, .set.expansion = 1},
            false);
}

static void layers_flexible(size_t n)
{
    records(n,
            (tamis_records_options){.attributes = names,
                                    .n_attributes = 2,
                                    .set.capacity = 1,
                                    .set.growth = TAMIS_FLEXIBLE,
                                    .set.deletable = true},
            true);
}

/* n attributes and n-1 combinations of two. */
static void attributes(size_t n)
{
    uint64_t combos[TAMIS_COMBOS_MAX];
    for (size_t i = 0; i + 1 < n && i < TAMIS_COMBOS_MAX; i++)
        combos[i] = UINT64_C(3) << i;
    if (n > 1)
        records(200,
                (tamis_records_options){.attributes = names,
                                        .n_attributes = n,
                                        .combos = combos,
                                        .n_combos = n - 1,
                                        .set.capacity = 32,
                                        .set.deletable = true},
                true);
}

/* ---- plans ---- */

/* The rate of a vector of (n/4)^8 bits, which is far below the least number with all its digits: what
   it costs does not depend on m. */
static void plan_exact(size_t n)
{
    uint64_t m = 1;
    for (unsigned i = 0; i < 8; i++)
        m *= n / 4;
    for (unsigned i = 0; m && i < 100; i++)
        if (!(tamis_plan_rate_exact(m, 64, (double)(m >> 22)) >= 0))
            exit(2);
}

static const struct {
    const char *name;
    void (*run)(size_t n);
    size_t n;
} works[] = {{"scalable", scalable, 1000},   {"scalable_deletable", scalable_deletable, 1000},
             {"flexible", flexible, 1000},   {"dynamic", dynamic, 2500},
             {"vectors", vectors, 512},      {"vectors_deletable", vectors_deletable, 512},
             {"window", window, 1000},       {"pending", pending, 1000},
             {"layers", layers, 500},        {"layers_flexible", layers_flexible, 500},
             {"attributes", attributes, 16}, {"plan_exact", plan_exact, 64}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (argc < 3)
            printf("%s %zu\n", works[i].name, works[i].n);
        else if (strcmp(argv[1], works[i].name) == 0)
            works[i].run((size_t)atol(argv[2]));
    return 0;
}
