/* tamis plan dynamic: equal vectors, for a set of unknown size (Guo et al.). */
#include "plan_verb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/args.h"
#include "plot.h"
#include "ui/report.h"

#define SIZES_MAX ((uint64_t)100000000) /* set sizes: 8 bytes each */

/* ---- rates ----------------------------------------------------------------------------------- */

static const struct plot rates_plot = {
    "Dynamic filter and one filter of equal vectors", "items", "rate",
    .name = {"dynamic, eq. 3", "one vector of m bits", "one filter of all bits, eq. 14"}};

static void rates_at(const void *context, double n, double *y)
{
    const struct plan *p = context;
    double m = (double)p->bits, k = (double)p->hashes;
    y[0] = tamis_plan_dynamic_rate(m, k, p->capacity, (uint64_t)n);
    y[1] = tamis_plan_rate_exp(m, k, n);
    y[2] = tamis_plan_dynamic_one_rate(m, k, p->capacity, (uint64_t)n);
}

static void report_union(const struct plan *p, double m, double k)
{
    uint64_t na = p->items, nb = p->union_items;
    report_group("union", "union with a second set");
    report_count("items", "items of the second set", nb);
    report_rate("rate_4", "rate of the union, rows side by side (4)",
                tamis_plan_dynamic_union(m, k, p->capacity, na, nb));
    report_rate("rate_or", "rate of the OR of two single vectors",
                tamis_plan_rate_exp(m, k, (double)na + (double)nb));
    report_rate("gain_6", "OR of two single vectors minus two rows (6)",
                tamis_plan_dynamic_union_gain(m, k, (double)na, (double)nb));
    report_end();
}

int plan_dynamic_rates(const struct plan *p)
{
    double m = (double)p->bits, k = (double)p->hashes;
    uint64_t c = p->capacity, n = p->items, s = tamis_plan_dynamic_rows(c, n);
    if (p->bits == 0 || c == 0 || n == 0)
        return complain("wrong value '0': --bits, --capacity, --items: give 1 or more");
    double f = tamis_plan_rate_exp(m, k, (double)c);
    plan_begin(p);
    report_count("bits", "bits m of a row", p->bits);
    report_count("hashes", "hashes k", p->hashes);
    report_count("capacity", "capacity c of a row", c);
    report_count("items", "items n", n);
    report_count("rows", "rows s", s);
    report_rate("rate_row", "rate of a full row (1)", f);
    report_rate("rate_3", "rate (3)", tamis_plan_dynamic_rate(m, k, c, n));
    report_rate("bound_12", "upper bound of the rate (12)", tamis_plan_dynamic_bound(m, k, c, n));
    report_rate("rate_single", "rate of one vector of m bits",
                tamis_plan_rate_exp(m, k, (double)n));
    report_rate("rate_14", "rate of one filter of all s m bits (14)",
                tamis_plan_dynamic_one_rate(m, k, c, n));
    report_real("size_ratio_13", "bits of one filter of equal rate / s m (13)",
                tamis_plan_dynamic_size_ratio(m, k, (double)c, (double)s));
    report_real("size_ratio_13_best", "the same with the best k",
                tamis_plan_dynamic_size_ratio_best(m, k, (double)c, (double)s));
    report_rate("f1_9", "probability that an item of a full row meets another (9)",
                tamis_plan_dynamic_f1(m, k, c, n));
    report_rate("f2_10", "probability that one of the last row does (10)",
                tamis_plan_dynamic_f2(m, k, c, n));
    report_real("multi_expected", "items in several rows, expected",
                tamis_plan_dynamic_multi(m, k, c, n));
    report_real("multi_bound", "items in several rows, bound n f2",
                tamis_plan_dynamic_multi_bound(m, k, c, n));
    report_real("present_expected", "items already present when added, expected",
                tamis_plan_dynamic_present(m, k, c, n));
    report_real("insert_ratio", "ratio of section 3.5.1",
                tamis_plan_dynamic_insert_ratio(f, (double)s));
    if (p->given[PLAN_union_items])
        report_union(p, m, k);
    report_end();
    return plot_draw(p->plot, &rates_plot, 2 * (double)n, rates_at, p);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A file of set sizes: one size per line, with its frequency if that is more than 1. */
static bool read_sizes(const char *path, double *weight, uint64_t N)
{
    char line[256];
    FILE *file = fopen(path, "re");
    uint64_t number = 0, good = 0;
    if (!file)
        return refuse("%s: %s: give uniform, normal:MU,SIGMA, zipf-min:T, zipf-max:T, "
                      "zipf-random:T,SEED or a file of sizes",
                      strerror(errno), path);
    memset(weight, 0, N * sizeof *weight);
    while (fgets(line, sizeof line, file)) {
        unsigned long long size;
        double times = 1;
        number++;
        int n = sscanf(line, "%llu %lf", &size, &times);
        if (n <= 0 && line[strspn(line, " \t\r\n")] == 0)
            continue;
        if (n < 1 || size < 1 || size > N || !(times >= 0 && times < 1e300)) {
            complain("no size from 1 to %llu: %s, line %llu: a line is SIZE or SIZE TIMES",
                     (unsigned long long)N, path, (unsigned long long)number);
            fclose(file);
            return false;
        }
        weight[size - 1] += times;
        good++;
    }
    fclose(file);
    if (!good)
        complain("no sizes: %s: a line is SIZE or SIZE TIMES", path);
    return good > 0;
}

/* The distribution that --sizes names, as probabilities of 1..N. */
static bool fill_sizes(const char *text, double *chance, uint64_t N)
{
    static const char *const names[] = {"normal:", "zipf-min:", "zipf-max:", "zipf-random:"};
    double v[2] = {0, 0};
    size_t which = 0, n = 0;
    bool good = false;
    if (strcmp(text, "uniform") == 0)
        return tamis_plan_sizes_uniform(chance, N);
    for (; which < COUNT(names); which++)
        if (strncmp(text, names[which], strlen(names[which])) == 0) {
            n = parse_list(text + strlen(names[which]), v, 2);
            break;
        }
    if (which == COUNT(names))
        return read_sizes(text, chance, N);
    if (which == 0 && n == 2)
        good = tamis_plan_sizes_normal(chance, N, v[0], v[1]);
    else if (which == 1 && n == 1)
        good = tamis_plan_sizes_zipf_min(chance, N, v[0]);
    else if (which == 2 && n == 1)
        good = tamis_plan_sizes_zipf_max(chance, N, v[0]);
    else if (which == 3 && n >= 1)
        good = tamis_plan_sizes_zipf_random(chance, N, v[0], (uint64_t)v[1]);
    return good ||
           refuse("wrong value '%s': --sizes: give normal:MU,SIGMA, zipf-min:T, zipf-max:T or "
                  "zipf-random:T,SEED",
                  text);
}

struct sized {
    const struct plan *plan;
    const double *cum;
    double one; /* bits of one filter for all */
};

static const struct plot sizes_plot = {"Expected bits by the number of vectors", "vectors s",
                                       "expected bits",
                                       .name = {"dynamic filter", "one filter for N"}};

static void sizes_at(const void *context, double s, double *y)
{
    const struct sized *v = context;
    uint64_t vectors = s < 1 ? 1 : (uint64_t)s;
    y[0] = tamis_plan_dynamic_at(v->cum, v->plan->max_items, v->plan->fpp, vectors).bits;
    y[1] = v->one;
}

int plan_dynamic_sizes(const struct plan *p)
{
    uint64_t N = p->max_items;
    if (N == 0 || N > SIZES_MAX)
        return complain("wrong value '%llu': --max-items: give 1 to 100M", (unsigned long long)N);
    double *cum = malloc(N * sizeof *cum);
    if (!cum)
        return complain("out of memory: --max-items: give fewer");
    if (!fill_sizes(p->sizes, cum, N) || !tamis_plan_sizes_cumulate(cum, N)) {
        free(cum);
        return TROUBLE;
    }
    tamis_plan_rows best = tamis_plan_dynamic_best(cum, N, p->fpp);
    plan_begin(p);
    report_count("max_items", "largest set N", N);
    report_rate("fpp", "rate for N items", p->fpp);
    report_text("sizes", "sizes", p->sizes);
    report_count("vectors", "best number of vectors s", best.s);
    report_count("capacity", "capacity c of each, N/s", best.c);
    report_rate("rate_vector", "rate allowed to each", best.delta);
    report_count("bits_vector", "bits m of each, by the formula", best.m);
    report_count("bits_vector_whole", "bits of each that keep it with a whole k", best.m_whole);
    report_count("hashes", "hashes k", best.k);
    report_real("vectors_expected", "vectors in use, expected", best.used);
    report_real("bits_expected", "bits, expected", best.bits);
    report_real("bits_one", "bits of one filter for N", best.one);
    report_real("ratio", "ratio", best.ratio);
    report_end();
    uint64_t to = 4 * best.s > 20 ? 4 * best.s : 20;
    const struct sized sized = {p, cum, best.one};
    int status = plot_draw(p->plot, &sizes_plot, (double)(to < N ? to : N), sizes_at, &sized);
    free(cum);
    return status;
}

/* ---- thresholds ------------------------------------------------------------------------------ */

static const struct plot thresholds_plot = {"How far the rate goes", "items", "rate",
                                            .name = {"one filter", "dynamic filter", "tolerated"}};

static void thresholds_at(const void *context, double n, double *y)
{
    const struct plan *p = context;
    double k = (double)p->hashes; /* and the bits that give the items this rate: */
    double m = (double)p->items / tamis_plan_capacity_real(1, k, p->fpp);
    y[0] = tamis_plan_rate_exp(m, k, n);
    y[1] = tamis_plan_dynamic_rate(m, k, p->items, (uint64_t)n);
    y[2] = p->tolerate;
}

int plan_dynamic_thresholds(const struct plan *p)
{
    if (p->items == 0)
        return complain("wrong value '0': --items: give 1 or more");
    if (p->tolerate <= p->fpp)
        return complain("not above --fpp: --tolerate: give a higher rate");
    tamis_plan_limits v =
        tamis_plan_dynamic_limits((double)p->hashes, (double)p->items, p->fpp, p->tolerate);
    plan_begin(p);
    report_count("hashes", "hashes k", p->hashes);
    report_count("items", "items n0 that a vector is made for", p->items);
    report_rate("fpp", "rate then, beta", p->fpp);
    report_rate("tolerate", "rate tolerated, gamma", p->tolerate);
    report_real("one_real", "items one filter takes up to gamma, real", v.one);
    report_count("one_whole", "items one filter takes, whole", v.one_whole);
    report_real("rows", "full rows of a dynamic filter", v.rows);
    report_real("partial", "items of the row that follows, real", v.partial);
    report_real("dynamic_real", "items a dynamic filter takes, real", v.dynamic);
    report_count("dynamic_whole", "items a dynamic filter takes, whole", v.dynamic_whole);
    report_end();
    return plot_draw(p->plot, &thresholds_plot, 1.25 * (v.dynamic > v.one ? v.dynamic : v.one),
                     thresholds_at, p);
}
