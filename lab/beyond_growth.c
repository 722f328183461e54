/*
 * All growth policies over five decades of n, for a stated rate of 1 %: what was measured, and the
 * bits per key. `fixed` is made for each n anew; dynamic and window know a bound on n beforehand;
 * scalable and flexible start at 1024 keys and know nothing. Flexible goes by the clock: once with even
 * arrivals, once with arrivals that double every second. Beside them the published way of growing,
 * by doubling, which states no total.
 */
#include <math.h>

#include "common.h"

#define FPP 0.01

struct policy {
    const char *name;
    tamis_options options;
    bool made_for_n; /* made anew for each size, with that capacity */
    bool bounded;    /* its capacity is the largest size */
    uint64_t most;   /* sizes beyond take too long: vectors by the hundred */
};

static uint64_t arrived; /* keys so far, which is what the clocks go by */

static uint64_t clock_even(void *context)
{
    (void)context;
    return 1000000 * arrived;
}

static uint64_t clock_doubling(void *context)
{
    (void)context;
    return (uint64_t)(1e9 * log2(1 + (double)arrived / 1024));
}

#define FIRST          1024
#define PUBLISHED_BITS 9824 /* of FIRST keys at 1 % with 7 hashes */

static const struct policy policies[] = {
    {.name = "fixed", .options = {.growth = TAMIS_FIXED}, .made_for_n = true},
    {.name = "fixed spread",
     .options = {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD},
     .made_for_n = true},
    {.name = "dynamic", .options = {.growth = TAMIS_DYNAMIC}, .bounded = true},
    {.name = "scalable", .options = {.growth = TAMIS_SCALABLE, .capacity = FIRST}},
    {.name = "scalable spread",
     .options = {.growth = TAMIS_SCALABLE, .layout = TAMIS_SPREAD, .capacity = FIRST}},
    {.name = "flexible even",
     .options = {.growth = TAMIS_FLEXIBLE, .capacity = FIRST, .clock = clock_even},
     .most = 200000},
    {.name = "flexible doubling",
     .options = {.growth = TAMIS_FLEXIBLE, .capacity = FIRST, .clock = clock_doubling}},
    {.name = "window",
     .options = {.growth = TAMIS_WINDOW, .clock = clock_even, .window = UINT64_C(1) << 62},
     .bounded = true},
    {.name = "doubling as published",
     .options = {.growth = TAMIS_SCALABLE,
                 .layout = TAMIS_SPREAD,
                 .bits = PUBLISHED_BITS,
                 .hashes = 7,
                 .capacity = FIRST,
                 .add_always = true}},
};

#define PLACES 18

/* Sizes 10, 20, 50, 100, ... up to the largest. */
static unsigned places(uint64_t most, uint64_t *out)
{
    static const uint64_t steps[] = {1, 2, 5};
    unsigned n = 0;
    for (uint64_t ten = 10; ten <= most; ten *= 10)
        for (unsigned i = 0; i < 3 && steps[i] * ten <= most; i++)
            out[n++] = steps[i] * ten;
    return n;
}

static tamis_filter *make(const struct policy *p, uint64_t capacity, uint64_t round)
{
    uint8_t family[TAMIS_KEY_LEN];
    tamis_options o = p->options;
    lab_family(round, family);
    o.key = family;
    o.fpp = FPP;
    if (p->made_for_n || p->bounded)
        o.capacity = capacity;
    return lab_filter(&o);
}

static void run(const struct policy *p, const uint64_t *keys, const uint64_t *sizes, unsigned n,
                uint64_t round, uint64_t asked, struct mean *rate, struct mean *bits)
{
    uint64_t at = arrived = 0;
    tamis_filter *f = p->made_for_n ? NULL : make(p, sizes[n - 1], round);
    for (unsigned i = 0; i < n; i++) {
        if (p->made_for_n) {
            f = make(p, sizes[i], round);
            at = 0;
        }
        for (; at < sizes[i]; at = arrived) { /* in steps, for the clocks */
            uint64_t some = sizes[i] - at < 64 ? sizes[i] - at : 64;
            arrived = at + some;
            lab_add(f, keys + at, some);
        }
        mean_add(&rate[i], lab_false_rate(f, round * PLACES + i, asked));
        mean_add(&bits[i], (double)lab_bits(f) / (double)at);
        if (p->made_for_n)
            tamis_filter_free(f);
    }
    if (!p->made_for_n)
        tamis_filter_free(f);
}

int main(void)
{
    uint64_t sizes[PLACES], most = lab_size(100000, 1000000, 1000000);
    uint64_t asked = lab_size(5000, 20000, 100000), rounds = lab_size(6, 10, 20);
    uint64_t *keys = lab_alloc(most, sizeof *keys);
    lab_head();
    for (unsigned j = 0; j < sizeof policies / sizeof *policies; j++) {
        struct mean rate[PLACES] = {0}, bits[PLACES] = {0};
        uint64_t here = policies[j].most && policies[j].most < most ? policies[j].most : most;
        unsigned n = places(here, sizes);
        for (uint64_t i = 0; i < rounds; i++) {
            lab_keys(2000 + i, keys, most);
            run(&policies[j], keys, sizes, n, 2000 + i, asked, rate, bits);
        }
        for (unsigned i = 0; i < n; i++) {
            lab_rate("rate", policies[j].name, (double)sizes[i], &rate[i], asked);
            lab_measured("space", policies[j].name, (double)sizes[i], &bits[i]);
        }
    }
    for (unsigned i = 0, n = places(most, sizes); i < n; i++)
        lab_formula("space", "least", (double)sizes[i], 6.643856189774724); /* log2(1/0.01) */
    free(keys);
    return 0;
}
