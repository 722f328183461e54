/*
 * Dynamic filters, rates: figures 1 to 4, 8 and 9 of the paper. One vector has m = 1280 bits, k = 7
 * hashes and room for c = 133 items; a standard filter (SBF) is one vector that goes on being
 * filled, a dynamic one (DBF) appends vectors. The sizes of figures 2 and 4 are not printed; 320 to
 * 2560 bits are taken.
 */
#include <math.h>

#include "common.h"
#include "tamis/plan.h"

#define K 7
#define C 133
#define M 1280
#define S 10

static const uint64_t sizes[] = {320, 640, 1280, 2560};

static uint64_t capacity_of(uint64_t m)
{
    return m == M ? C : tamis_plan_capacity_whole((double)m, K, 0.0098);
}

/* ---- figures 1, 2, 4, 9: rates over the size of the set -------------------------------------- */

#define STEPS 30 /* places a capacity apart by thirds */

struct rates {
    struct mean sbf[STEPS], dbf[STEPS], grown[STEPS];
};

static uint64_t place(uint64_t c, unsigned i)
{
    return (i + 1) * c / 3;
}

static void one_round(struct rates *r, uint64_t m, uint64_t round, uint64_t asked)
{
    uint64_t c = capacity_of(m), *keys = lab_alloc(S * c, sizeof *keys), at = 0;
    tamis_filter *sbf = lab_published(TAMIS_FIXED, m, K, c, round),
                 *dbf = lab_published(TAMIS_DYNAMIC, m, K, c, round);
    lab_keys(round, keys, S * c);
    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t n = place(c, i), stream = round * STEPS + i;
        lab_add(sbf, keys + at, n - at);
        lab_add(dbf, keys + at, n - at);
        at = n;
        mean_add(&r->sbf[i], lab_false_rate(sbf, stream, asked));
        mean_add(&r->dbf[i], lab_false_rate(dbf, stream, asked));
        if (m != M)
            continue;
        tamis_filter *grown = lab_published(TAMIS_FIXED, m * ((n + c - 1) / c), K, n, round);
        lab_add(grown, keys, n);
        mean_add(&r->grown[i], lab_false_rate(grown, stream, asked));
        tamis_filter_free(grown);
    }
    tamis_filter_free(sbf);
    tamis_filter_free(dbf);
    free(keys);
}

/* Both means vary by themselves. */
static void ratio_of(const char *series, const struct mean *over, const struct mean *under)
{
    double ratio = mean_of(over) / mean_of(under);
    lab_value("f1", series, S, ratio,
              ratio * hypot(mean_error(over) / mean_of(over), mean_error(under) / mean_of(under)),
              over->n);
}

static void print_rates(const struct rates *r, uint64_t m, uint64_t asked)
{
    uint64_t c = capacity_of(m);
    char name[48];
    for (unsigned i = 0; i < STEPS; i++) {
        double n = (double)place(c, i), x = n / (double)c;
        double one = tamis_plan_rate_exp((double)m, K, n),
               rows = tamis_plan_dynamic_rate((double)m, K, c, (uint64_t)n);
        snprintf(name, sizeof name, "ratio m=%" PRIu64, m);
        lab_formula("f2", name, x, one / rows);
        snprintf(name, sizeof name, "ratio m=%" PRIu64 " measured", m);
        double ratio = mean_of(&r->sbf[i]) / mean_of(&r->dbf[i]),
               relative = mean_error(&r->dbf[i]) / mean_of(&r->dbf[i]) +
                          mean_error(&r->sbf[i]) / mean_of(&r->sbf[i]);
        if (i >= 2) /* below, too few wrong answers to divide by */
            lab_value("f2", name, x, ratio, relative * ratio, r->dbf[i].n);
        snprintf(name, sizeof name, "m=%" PRIu64, m);
        lab_formula("f4", name, n, rows);
        snprintf(name, sizeof name, "m=%" PRIu64 " measured", m);
        lab_rate("f4", name, n, &r->dbf[i], asked);
        if (m != M)
            continue;
        lab_rate("f1", "SBF", n, &r->sbf[i], asked);
        lab_rate("f1", "DBF", n, &r->dbf[i], asked);
        lab_formula("f1", "SBF formula", n, one);
        lab_formula("f1", "DBF formula", n, rows);
        lab_rate("f9", "DBF", n, &r->dbf[i], asked);
        lab_rate("f9", "NBF", n, &r->grown[i], asked);
        lab_formula("f9", "DBF formula", n, rows);
        lab_formula("f9", "NBF formula", n,
                    tamis_plan_dynamic_one_rate((double)m, K, c, (uint64_t)n));
    }
    if (m == M) { /* section 3.2: "about one hundred times", "about ten times" at n = 10 c */
        ratio_of("SBF growth", &r->sbf[STEPS - 1], &r->sbf[2]);
        ratio_of("DBF growth", &r->dbf[STEPS - 1], &r->sbf[2]);
    }
}

static void rates_over_size(void)
{
    uint64_t asked = 10000, rounds = lab_size(12, 100, 400);
    for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++) {
        struct rates r = {0};
        for (uint64_t i = 0; i < rounds; i++)
            one_round(&r, sizes[j], i, asked);
        print_rates(&r, sizes[j], asked);
    }
}

/* ---- figure 3: unions ------------------------------------------------------------------------ */

static void union_at(uint64_t na, uint64_t nb, const char *series, const char *formula)
{
    struct mean gap = {0};
    uint64_t asked = 10000, rounds = lab_size(8, 40, 400), *keys = lab_alloc(na + nb, sizeof *keys);
    for (uint64_t i = 0; i < rounds; i++) {
        tamis_filter *f[4];
        lab_keys(i + 7000, keys, na + nb);
        for (unsigned j = 0; j < 4; j++) {
            f[j] = lab_published(j < 2 ? TAMIS_FIXED : TAMIS_DYNAMIC, M, K, C, i);
            lab_add(f[j], keys + (j % 2 ? na : 0), j % 2 ? nb : na);
        }
        MUST(tamis_filter_merge(f[0], f[1], TAMIS_MERGE_RESTATE, NULL));
        MUST(tamis_filter_merge(f[2], f[3], TAMIS_MERGE_CONCAT, NULL));
        mean_add(&gap, lab_false_rate(f[0], i, asked) - lab_false_rate(f[2], i, asked));
        for (unsigned j = 0; j < 4; j++)
            tamis_filter_free(f[j]);
    }
    free(keys);
    lab_measured("f3", series, (double)na, &gap);
    lab_formula("f3", formula, (double)na,
                tamis_plan_rate_exp(M, K, (double)(na + nb)) -
                    tamis_plan_dynamic_union(M, K, C, na, nb));
}

static void unions(void)
{
    static const uint64_t others[] = {33, 133, 399};
    for (unsigned j = 0; j < 3; j++) {
        char series[32], formula[48];
        snprintf(series, sizeof series, "nb=%" PRIu64, others[j]);
        snprintf(formula, sizeof formula, "nb=%" PRIu64 " formula", others[j]);
        for (uint64_t na = 33; na <= 532; na += lab_size(133, 33, 19))
            union_at(na, others[j], series, formula);
    }
}

/* ---- figure 8: one filter of equal rate ------------------------------------------------------ */

static void equal_rate(uint64_t s)
{
    struct mean rate = {0}, rows = {0};
    double ratio = tamis_plan_dynamic_size_ratio(M, K, C, (double)s);
    uint64_t n = s * C, asked = 20000, *keys = lab_alloc(n, sizeof *keys);
    for (uint64_t i = 0; i < lab_size(10, 60, 300); i++) {
        tamis_filter *one =
                         lab_published(TAMIS_FIXED, (uint64_t)(ratio * (double)(s * M)), K, n, i),
                     *dbf = lab_published(TAMIS_DYNAMIC, M, K, C, i);
        lab_keys(i + 9000, keys, n);
        lab_add(one, keys, n);
        lab_add(dbf, keys, n);
        mean_add(&rate, lab_false_rate(one, i, asked));
        mean_add(&rows, lab_false_rate(dbf, i, asked));
        tamis_filter_free(one);
        tamis_filter_free(dbf);
    }
    free(keys);
    lab_formula("f8", "ratio", (double)s, ratio);
    lab_formula("f8", "ratio best k", (double)s,
                tamis_plan_dynamic_size_ratio_best(M, K, C, (double)s));
    lab_rate("f8", "rate one", (double)s, &rate, asked);
    lab_rate("f8", "rate rows", (double)s, &rows, asked);
    lab_formula("f8", "rate formula", (double)s, tamis_plan_dynamic_bound(M, K, C, n));
}

/* ---- (11): double hashing in small vectors --------------------------------------------------- */

static void double_hashing(uint64_t m)
{
    struct mean published = {0}, ours = {0};
    uint64_t n = tamis_plan_capacity_whole((double)m, K, 0.01), asked = 20000;
    uint64_t rounds = lab_size(150, 200, 1000), *keys = lab_alloc(n, sizeof *keys);
    for (uint64_t i = 0; i < rounds; i++) {
        uint8_t family[TAMIS_KEY_LEN];
        lab_family(i, family);
        tamis_options o = {.growth = TAMIS_FIXED,
                           .layout = TAMIS_SPREAD,
                           .bits = m,
                           .hashes = K,
                           .capacity = n,
                           .key = family};
        tamis_filter *f[2] = {lab_filter_own(&o, lab_probe_11, NULL), lab_filter(&o)};
        lab_keys(i, keys, n);
        for (unsigned j = 0; j < 2; j++) {
            lab_add(f[j], keys, n);
            mean_add(j ? &ours : &published, lab_false_rate(f[j], i, asked));
            tamis_filter_free(f[j]);
        }
    }
    free(keys);
    lab_rate("e11", "double hashing", (double)m, &published, asked);
    lab_rate("e11", "ours", (double)m, &ours, asked);
    lab_formula("e11", "exact", (double)m, tamis_plan_rate_exact(m, K, (double)n));
    double exact = tamis_plan_rate_exact(m, K, (double)n);
    lab_value("e11", "excess", (double)m, mean_of(&published) / exact - 1,
              mean_error(&published) / exact, published.n);
}

int main(void)
{
    lab_head();
    rates_over_size();
    unions();
    for (uint64_t s = 1; s <= 20; s += lab_size(3, 1, 1))
        equal_rate(s);
    for (uint64_t m = 320; m <= 10240; m *= 2)
        double_hashing(m);
    return 0;
}
