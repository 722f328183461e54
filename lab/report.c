/*
 * The course report: tables 4.2 and 4.3, figures 4.1 and 4.2. A plain filter of m bits and five
 * hashes gets 100,000 keys and is asked for 10,000 others; a stack of such filters, each of twice the
 * bits of the one before, opens a new layer when the last holds the keys that the limit allows.
 *
 * Run three times: with the report's own hash functions, generator, seed and order of insertion,
 * where its printed digits must come out; with this library's hashes, repeated; and with the
 * library's scalable growth for the same limit, which it holds in total.
 */
#include <math.h>

#include "common.h"
#include "tamis/plan.h"

#define N       100000
#define T       10000
#define HASHES  5
#define LAYERS  8
#define SEED    1024
#define N_SIZES 11

static const uint64_t sizes[N_SIZES] = {50000,  100000, 200000, 300000, 400000, 500000,
                                        600000, 700000, 800000, 900000, 1000000};

/* ---- the report's keys ----------------------------------------------------------------------- */

/* default_random_engine of GNU's C++ library is minstd_rand0. */
static uint32_t minstd_next(uint32_t *state)
{
    return *state = (uint32_t)((uint64_t)*state * 16807 % 2147483647);
}

/*
 * The keys go into the filters in the order in which GNU's unordered_set<int> walks them, and that
 * order decides which layer a key lies in. It is one list through all buckets. A key whose bucket is
 * not empty goes after the node before that bucket's first; otherwise to the front of the list. When
 * full, the table takes the next prime of its own list from twice the size on, and links all nodes
 * anew in list order by the same rule.
 */
struct walk {
    uint32_t *key;    /* node i + 1; node 0 is before the first */
    uint32_t *next;   /* 0: the end */
    uint32_t *before; /* a bucket: node before its first, or NONE */
    uint32_t n, buckets;
};
#define NONE UINT32_MAX

static const uint32_t primes[] = {13,   29,   59,    127,   257,   541,   1109,
                                  2357, 5087, 10273, 20753, 42043, 85229, 172933};

static void walk_link(struct walk *w, uint32_t node)
{
    uint32_t bucket = w->key[node] % w->buckets;
    if (w->before[bucket] != NONE) {
        w->next[node] = w->next[w->before[bucket]];
        w->next[w->before[bucket]] = node;
        return;
    }
    w->next[node] = w->next[0];
    w->next[0] = node;
    if (w->next[node])
        w->before[w->key[w->next[node]] % w->buckets] = node;
    w->before[bucket] = 0;
}

static void walk_rehash(struct walk *w, uint32_t buckets)
{
    uint32_t node = w->next[0];
    w->buckets = buckets;
    memset(w->before, 0xFF, buckets * sizeof *w->before);
    w->next[0] = 0;
    while (node) {
        uint32_t after = w->next[node];
        walk_link(w, node);
        node = after;
    }
}

/* keys[0..n-1] become what a set of them walks through. */
static void walk_order(uint32_t *keys, uint32_t n)
{
    struct walk w = {.key = lab_alloc(n + 1, sizeof *w.key),
                     .next = lab_alloc(n + 1, sizeof *w.next),
                     .before = lab_alloc(primes[13], sizeof *w.before)};
    unsigned prime = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (w.n + 1 > w.buckets)
            walk_rehash(&w, primes[prime++]);
        w.key[++w.n] = keys[i];
        walk_link(&w, w.n);
    }
    uint32_t at = 0;
    for (uint32_t node = w.next[0]; node; node = w.next[node])
        keys[at++] = w.key[node];
    free(w.key);
    free(w.next);
    free(w.before);
}

/* ---- the report's filters -------------------------------------------------------------------- */

/* Its five functions; digest word a is the key. */
static void report_probe(const struct family *family, tamis_digest digest, uint64_t units,
                         unsigned k, uint64_t *positions)
{
    static const unsigned right[] = {3, 7, 13, 19, 29}, left[] = {5, 11, 17, 23, 2};
    uint32_t v = (uint32_t)digest.a;
    (void)family;
    for (unsigned j = 0; j < k; j++)
        positions[j] = (((v >> right[j]) ^ (v << left[j])) & 0x7FFFFFFF) % units;
}

static tamis_filter *report_filter(uint64_t bits)
{
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = TAMIS_SPREAD,
                       .bits = bits,
                       .hashes = HASHES,
                       .overfill = true};
    return lab_filter_own(&o, report_probe, NULL);
}

static void add_values(tamis_filter *f, const uint32_t *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tamis_digest d = {keys[i], 0};
        MUST(tamis_filter_add_many(f, &d, 1, NULL, NULL));
    }
}

/* How many of the keys one of the filters has. */
static double found_share(tamis_filter *const *f, unsigned layers, const uint32_t *keys)
{
    unsigned hits = 0;
    for (size_t i = 0; i < T; i++) {
        tamis_digest d = {keys[i], 0};
        uint8_t found = 0;
        for (unsigned l = 0; l < layers && !found; l++)
            tamis_filter_has_many(f[l], &d, 1, &found);
        hits += found;
    }
    return (double)hits / T;
}

static void as_reported(const char *table, uint64_t m, double limit, const uint32_t *keys)
{
    tamis_filter *plain = report_filter(m), *layer[LAYERS];
    add_values(plain, keys, N);
    lab_exact(table, "fp1 report", (double)m, found_share(&plain, 1, keys + N));
    tamis_filter_free(plain);

    unsigned layers = 0;
    double bits = 0;
    for (size_t at = 0; at < N; layers++) { /* its code: a new layer when num >= N_i */
        uint64_t size = m << layers;
        double room = ceil(tamis_plan_report_capacity((double)m, HASHES, limit, layers));
        size_t some = (double)(N - at) < room ? N - at : (size_t)room;
        layer[layers] = report_filter(size);
        add_values(layer[layers], keys + at, some);
        at += some;
        bits += (double)size;
    }
    lab_exact(table, "fp2 report", (double)m, found_share(layer, layers, keys + N));
    lab_exact(table, "capacity", (double)m, bits);
    lab_exact(table, "expansions", (double)m, layers - 1);
    for (unsigned l = 0; l < layers; l++)
        tamis_filter_free(layer[l]);
}

/* ---- the same with our hashes, and with our growth ------------------------------------------- */

struct rates {
    struct mean plain, stack, ours, bits;
};

static void one_round(struct rates *r, uint64_t m, double limit, uint64_t round,
                      const uint64_t *keys)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(round, family);
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = TAMIS_SPREAD,
                       .key = family,
                       .bits = m,
                       .hashes = HASHES,
                       .overfill = true};
    tamis_filter *f = lab_filter(&o);
    lab_add(f, keys, N);
    mean_add(&r->plain, lab_false_rate(f, round, T));
    tamis_filter_free(f);

    o.growth = TAMIS_SCALABLE;
    o.add_always = true;
    o.overfill = false;
    o.capacity = (uint64_t)ceil(tamis_plan_report_capacity((double)m, HASHES, limit, 0));
    f = lab_filter(&o);
    lab_add(f, keys, N);
    mean_add(&r->stack, lab_false_rate(f, round, T));
    tamis_filter_free(f);

    tamis_options ours = {.fpp = limit,
                          .key = family,
                          .capacity = o.capacity,
                          .expansion = 2,
                          .layout = TAMIS_SPREAD};
    f = lab_filter(&ours);
    lab_add(f, keys, N);
    mean_add(&r->ours, lab_false_rate(f, round, T));
    mean_add(&r->bits, (double)lab_bits(f));
    tamis_filter_free(f);
}

static void with_ours(const char *table, uint64_t m, double limit)
{
    struct rates r = {0};
    uint64_t *keys = lab_alloc(N, sizeof *keys), rounds = lab_size(4, 20, 100);
    tamis_plan_layer layers[LAYERS];
    for (uint64_t i = 0; i < rounds; i++) {
        lab_keys(i, keys, N);
        one_round(&r, m, limit, i, keys);
    }
    free(keys);
    lab_rate(table, "fp1 ours", (double)m, &r.plain, T);
    lab_rate(table, "fp2 ours", (double)m, &r.stack, T);
    lab_rate(table, "fp scalable", (double)m, &r.ours, T);
    lab_measured(table, "bits scalable", (double)m, &r.bits);
    lab_formula(table, "fp1", (double)m, tamis_plan_rate_exp((double)m, HASHES, N));
    lab_formula(table, "fp2", (double)m,
                tamis_plan_report((double)m, HASHES, limit, N, 1, layers, LAYERS).rate);
}

int main(void)
{
    uint32_t *keys = lab_alloc(N + T, sizeof *keys), state = SEED;
    for (size_t i = 0; i < N + T; i++)
        keys[i] = minstd_next(&state);
    walk_order(keys, N);
    lab_head();
    for (unsigned table = 0; table < 2; table++)
        for (unsigned i = 0; i < N_SIZES; i++) {
            const char *name = table ? "t43" : "t42";
            double limit = table ? 0.001 : 0.01;
            as_reported(name, sizes[i], limit, keys);
            if (!lab_is("small") || i % 5 == 0)
                with_ours(name, sizes[i], limit);
        }
    free(keys);
    return 0;
}
