/*
 * Dynamic filters, memory: figures 10 to 16 of the paper (section 4.2). The set has n items, n drawn
 * from a distribution over 1..N, and the rate must not pass alpha. One filter is made for N; a dynamic
 * one has s equal vectors, and uses as many as n needs. The formulas give the expected bits and the
 * best s; the measurement builds filters for sets of such sizes and counts their bits.
 */
#include <math.h>

#include "common.h"
#include "set/set.h"
#include "tamis/plan.h"

#define ZIPF  0.4
#define ALPHA 0.0098

enum kind { UNIFORM, NORMAL, ZIPF_MIN, ZIPF_MAX, ZIPF_RANDOM, KINDS };
static const char *const names[KINDS] = {"uniform", "normal", "Zipf minimum", "Zipf maximum",
                                         "Zipf random"};

/* Cumulative probabilities of the sizes 1..N. */
static double *sizes_of(enum kind kind, size_t N, double theta, double sd)
{
    double *p = lab_alloc(N, sizeof *p);
    bool good = kind == UNIFORM    ? tamis_plan_sizes_uniform(p, N)
                : kind == NORMAL   ? tamis_plan_sizes_normal(p, N, (double)((N + 1) / 2), sd)
                : kind == ZIPF_MIN ? tamis_plan_sizes_zipf_min(p, N, theta)
                : kind == ZIPF_MAX ? tamis_plan_sizes_zipf_max(p, N, theta)
                                   : tamis_plan_sizes_zipf_random(p, N, theta, lab_seed());
    MUST(good && tamis_plan_sizes_cumulate(p, N) ? TAMIS_OK : TAMIS_EARG);
    return p;
}

#define SD 4.47213595499958 /* sigma^2 = 20 */

/* The size below which the share u of all sets lies. */
static size_t size_at(const double *cum, size_t N, double u)
{
    return SEARCH(i, N - 1, cum[i] <= u) + 1;
}

/* Bits that the library's filters really use, over sets whose sizes are evenly spaced quantiles of
   the distribution. Each of the s - 1 places where a vector more is needed is rounded to one of these
   sets, so the sum errs as that of s - 1 roundings to whole sets does. One filter grows through all sizes, from the smallest to the largest. */
struct used {
    double bits, error;
    double sized; /* what the vectors as the library sizes them should come to */
};

static struct used measure(const double *cum, size_t N, uint64_t s, double rate)
{
    struct mean bits = {0};
    uint64_t rounds = lab_size(200, 500, 2000), *keys = lab_alloc(N, sizeof *keys);
    tamis_options o = {.growth = TAMIS_DYNAMIC,
                       .fpp = rate,
                       .capacity = N,
                       .vectors = (uint32_t)s,
                       .add_always = true};
    tamis_filter *f = lab_filter(&o);
    size_t n = 0, room = (N + s - 1) / s;
    double one = (double)lab_bits(f), vectors = 1;
    lab_keys(0, keys, N);
    for (uint64_t i = 0; i < rounds; i++) {
        size_t next = size_at(cum, N, ((double)i + 0.5) / (double)rounds);
        lab_add(f, keys + n, next - n);
        n = next;
        mean_add(&bits, one * layers_count(set_layers(&f->set)));
    }
    for (uint64_t i = 1; i < s; i++) /* the probability that this many are not enough */
        vectors += i * room <= N ? 1 - cum[i * room - 1] : 0;
    tamis_filter_free(f);
    free(keys);
    return (struct used){mean_of(&bits), one / (double)rounds * sqrt((double)(s - 1) / 12),
                         one * vectors};
}

static void print_used(const char *figure, const char *series, double x, struct used used,
                       double over)
{
    char name[64];
    lab_value(figure, series, x, used.bits / over, used.error / over, 0);
    snprintf(name, sizeof name, "%s as sized", series);
    lab_formula(figure, name, x, used.sized / over);
}

/* Figure 10: over the number of vectors. */
static void figure_10(void)
{
    const size_t N = 1330;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        double *cum = sizes_of(kind, N, ZIPF, SD);
        char name[48];
        snprintf(name, sizeof name, "%s measured", names[kind]);
        for (uint64_t s = 1; s <= 30; s++) {
            tamis_plan_rows rows = tamis_plan_dynamic_at(cum, N, ALPHA, s);
            lab_formula("f10", names[kind], (double)s, rows.bits);
            lab_formula("f10", "one filter", (double)s, rows.one);
            if (s <= 4 || s % 5 == 0)
                print_used("f10", name, (double)s, measure(cum, N, s, ALPHA), 1);
        }
        free(cum);
    }
}

/* The least of the paper's objective with rooms of N/s, not rounded up to whole items: relative to
   one filter, (rows used / s) ln delta / ln alpha. */
static double best_unrounded(const double *cum, size_t N, double alpha)
{
    double least = 1;
    for (uint64_t s = 2; s <= 40; s++) {
        double rows = 1;
        for (uint64_t i = 1; i < s; i++)
            rows += 1 - cum[i * N / s - 1];
        least = fmin(least, rows / (double)s * log(1 - pow(1 - alpha, 1 / (double)s)) / log(alpha));
    }
    return least;
}

/* Figures 11 and 12: over the bound N. */
static void figures_11_12(void)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        char name[48], unrounded[48];
        snprintf(name, sizeof name, "%s measured", names[kind]);
        for (size_t N = 1330; N <= 13300; N += 1330) {
            double *cum = sizes_of(kind, N, ZIPF, SD);
            tamis_plan_rows best = tamis_plan_dynamic_best(cum, N, ALPHA);
            lab_formula("f11", names[kind], (double)N, best.bits);
            lab_formula("f11", "one filter", (double)N, best.one);
            lab_formula("f12", names[kind], (double)N, best.ratio);
            snprintf(unrounded, sizeof unrounded, "%s unrounded", names[kind]);
            lab_formula("f12", unrounded, (double)N, best_unrounded(cum, N, ALPHA));
            if (N % 3990 == 1330 || !lab_is("small")) {
                tamis_plan_size one = tamis_plan_vector(TAMIS_SPREAD, N, ALPHA);
                struct used used = measure(cum, N, best.s, ALPHA);
                print_used("f12", name, (double)N, used, (double)one.bits);
                print_used("f11", name, (double)N, used, 1);
            }
            free(cum);
        }
    }
}

/* Figures 13 and 14: over the rate. */
static void figures_13_14(void)
{
    const size_t N = 13300;
    static const double rates[] = {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.02,
                                   0.03,   0.04,   0.05,  0.06,  0.08, 0.1};
    for (enum kind kind = 0; kind < KINDS; kind++) {
        double *cum = sizes_of(kind, N, ZIPF, SD);
        char name[48];
        snprintf(name, sizeof name, "%s measured", names[kind]);
        for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
            tamis_plan_rows best = tamis_plan_dynamic_best(cum, N, rates[i]);
            lab_formula("f13", names[kind], rates[i], best.bits);
            lab_formula("f13", "one filter", rates[i], best.one);
            lab_formula("f14", names[kind], rates[i], best.ratio);
            if (i % 4 == 0 || !lab_is("small")) {
                tamis_plan_size one = tamis_plan_vector(TAMIS_SPREAD, N, rates[i]);
                struct used used = measure(cum, N, best.s, rates[i]);
                print_used("f13", name, rates[i], used, 1);
                print_used("f14", name, rates[i], used, (double)one.bits);
            }
        }
        free(cum);
    }
}

/* Figures 15 and 16: over the parameter of the Zipf distribution, and over sigma. */
static void figures_15_16(void)
{
    const size_t N = 1330;
    for (enum kind kind = ZIPF_MIN; kind < KINDS; kind++)
        for (double theta = 0.1; theta < 1.25; theta += 0.1) {
            double *cum = sizes_of(kind, N, theta, SD);
            tamis_plan_rows best = tamis_plan_dynamic_best(cum, N, ALPHA);
            char several[48], name[48];
            snprintf(several, sizeof several, "%s several", names[kind]);
            snprintf(name, sizeof name, "%s measured", names[kind]);
            double least = 0;
            for (uint64_t s = 2; s <= 40; s++) {
                double bits = tamis_plan_dynamic_at(cum, N, ALPHA, s).bits;
                least = s == 2 || bits < least ? bits : least;
            }
            lab_formula("f15", names[kind], theta, best.bits);
            lab_formula("f15", several, theta, least);
            lab_formula("f15", "one filter", theta, best.one);
            print_used("f15", name, theta, measure(cum, N, best.s, ALPHA), 1);
            free(cum);
        }
    for (double sd = 5; sd <= 400; sd *= 1.5) {
        double *cum = sizes_of(NORMAL, N, 0, sd);
        tamis_plan_rows best = tamis_plan_dynamic_best(cum, N, ALPHA);
        lab_formula("f16", "normal", sd, best.bits);
        lab_formula("f16", "one filter", sd, best.one);
        print_used("f16", "normal measured", sd, measure(cum, N, best.s, ALPHA), 1);
        free(cum);
    }
}

int main(void)
{
    lab_head();
    figure_10();
    figures_11_12();
    figures_13_14();
    figures_15_16();
    return 0;
}
