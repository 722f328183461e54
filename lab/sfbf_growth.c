/*
 * Flexible filters, growth: figures 7, 8 and 11 on synthetic items. Twice: every item is inserted, as
 * Algorithm 1 says, and an item that already tests positive is left out, which the published numbers
 * need. Then what else sections 4 and 8 say of such filters.
 */
#include <math.h>

#include "common_growth.h"
#include "tamis/plan.h"

/* Every item inserted: the closed forms beside it. */
static void closed_forms(enum speed speed, const struct trace *t)
{
    char formula[32], closed[32];
    snprintf(closed, sizeof closed, "%s closed form", speed_names[speed]);
    snprintf(formula, sizeof formula, "%s formula", speed_names[speed]);
    for (unsigned p = 0; p < TRACE_PLACES; p++) {
        double x = (double)t->upto[p];
        tamis_plan_flex plan = flexible_plan(speed, t->upto[p]);
        if (plan.vectors == 0)
            continue;
        lab_formula("f7", formula, x, (double)plan.vectors - 1);
        lab_formula("f11", formula, x, plan.bits);
        lab_formula("f8", closed, x, plan.rate);
    }
}

/* A hundred repetitions in full, as published, each with items, hashes and questions of its own: a
   hundred thousand questions, so ten million in all for every point (the paper: half a million each). */
static void figures(bool ask_first, uint64_t n)
{
    uint64_t asked = lab_size(5000, 20000, 100000), rounds = lab_size(4, 5, 100);
    struct growth g[SPEEDS] = {0};
    struct trace t;
    for (uint64_t i = 0; i < rounds; i++) {
        trace_synthetic(&t, n, i);
        for (enum speed speed = 0; speed < SPEEDS; speed++) {
            struct flexible x;
            flexible_new(&x, speed, TAMIS_XXH3, ask_first, i);
            growth_run(&g[speed], &x, &t, asked, i);
            flexible_free(&x);
        }
        if (i + 1 < rounds)
            trace_free(&t);
    }
    for (enum speed speed = 0; speed < SPEEDS; speed++) {
        growth_print(&g[speed], speed, ask_first ? "q" : "", &t, asked);
        if (!ask_first)
            closed_forms(speed, &t);
    }
    trace_free(&t);
}

/* The basic filter of figure 8: one vector of 1024 bits. */
static void basic(uint64_t n)
{
    for (unsigned p = 1; p <= TRACE_PLACES; p++) {
        double x = (double)(p * (n / TRACE_PLACES));
        lab_formula("f8", "basic formula", x, tamis_plan_rate_exp(FLEX_BITS, FLEX_K, x));
    }
}

/* The same through the published H3 matrices, at the end. */
static void with_h3(void)
{
    uint64_t n = lab_size(20000, 100000, 1000000), asked = lab_size(5000, 50000, 20000);
    for (enum speed speed = LAMBDA1; speed <= LAMBDA3; speed++) {
        struct mean rate = {0}, formula = {0};
        uint64_t *keys = lab_alloc(n, sizeof *keys);
        for (uint64_t i = 100; i < 100 + lab_size(4, 10, 100); i++) {
            struct flexible x;
            lab_keys(i, keys, n);
            flexible_new(&x, speed, TAMIS_H3, false, i);
            flexible_add(&x, keys, n);
            mean_add(&rate, lab_false_rate(x.filter[0], i, asked));
            mean_add(&formula, flexible_rate(&x));
            flexible_free(&x);
        }
        free(keys);
        lab_rate("h3", "H3", speed + 1, &rate, asked);
        lab_formula("h3", "formula", speed + 1, mean_of(&formula));
    }
}

/* Section 8.2.2: the rate of DBF after 10^6 items, asked first and not; and with one item less in a
   vector, as when a vector is left one item too early. */
static void dbf_at_a_million(void)
{
    struct mean rate = {0}, formula = {0}, rounds = {0}, early = {0};
    uint64_t asked = lab_size(20000, 50000, 500000), n = 1000000,
             *keys = lab_alloc(n, sizeof *keys);
    for (uint64_t i = 200; i < 200 + lab_size(3, 5, 100); i++) {
        lab_keys(i, keys, n);
        for (unsigned less = 0; less < 2; less++) {
            struct flexible x;
            flexible_dbf(&x, FLEX_ITEMS - less, i);
            flexible_add(&x, keys, n);
            mean_add(less ? &early : &rate, lab_false_rate(x.filter[0], i, asked));
            if (!less) {
                mean_add(&formula, flexible_rate(&x));
                mean_add(&rounds, flexible_rounds(&x));
            }
            flexible_free(&x);
        }
    }
    free(keys);
    lab_rate("million", "DBF 63 items a vector", 1e6, &early, asked);
    lab_rate("million", "DBF", 1e6, &rate, asked);
    lab_formula("million", "DBF formula", 1e6, mean_of(&formula));
    lab_measured("million", "DBF rounds", 1e6, &rounds);
    lab_formula("million", "DBF all inserted", 1e6, flexible_plan(DBF, n).rate);
}

/* (6): bits per item between those of the first vector and that plus those of the last. */
static void load_factor(uint64_t n)
{
    for (enum speed speed = 0; speed < SPEEDS; speed++) {
        struct flexible x;
        uint64_t *keys = lab_alloc(n, sizeof *keys);
        double most = 0, over = 0;
        lab_keys(80, keys, n);
        flexible_new(&x, speed, TAMIS_XXH3, false, 80);
        for (uint64_t at = 0; at < n; at += 97) {
            flexible_add(&x, keys + at, n - at < 97 ? n - at : 97);
            double load = flexible_bits(&x) / flexible_items(&x),
                   first = (double)FLEX_BITS / FLEX_ITEMS;
            double bound = first + flexible_last(&x);
            most = fmax(most, load / first);
            over = fmax(over, load / bound);
        }
        lab_exact("load", "most bits over the first's", speed + 1, most);
        lab_exact("load", "most of the bound", speed + 1, over);
        flexible_free(&x);
        free(keys);
    }
}

/* CSFBF, section 4.5: a deletable flexible filter. Half of the items go; of those that stay none may
   be denied, and the rate must be that of fewer items. */
static void counting(enum speed speed, uint64_t n)
{
    uint8_t family[TAMIS_KEY_LEN], lambdas[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    uint64_t *keys = lab_alloc(n, sizeof *keys), asked = lab_size(20000, 50000, 500000);
    struct mean before = {0}, after = {0}, denied = {0};
    for (unsigned i = 0; i < 12 && speed == LAMBDA2; i++)
        lambdas[i] = (uint8_t)(2 * i + 1);
    for (uint64_t round = 0; round < lab_size(2, 4, 10); round++) {
        lab_family(90 + round, family);
        tamis_options o = {.growth = TAMIS_FLEXIBLE,
                           .layout = TAMIS_SPREAD,
                           .bits = FLEX_BITS,
                           .hashes = FLEX_K,
                           .capacity = FLEX_ITEMS,
                           .key = family,
                           .deletable = true,
                           .lambdas = lambdas,
                           .n_lambdas = sizeof lambdas};
        tamis_filter *f = lab_filter(&o);
        lab_keys(90 + round, keys, n);
        lab_add(f, keys, n);
        mean_add(&before, lab_false_rate(f, 90 + round, asked));
        for (uint64_t i = 0; i < n; i += 2) {
            tamis_removed outcome;
            MUST(tamis_filter_remove(f, &keys[i], 8, &outcome));
        }
        uint64_t missed = 0;
        for (uint64_t i = 1; i < n; i += 2)
            missed += !tamis_filter_has(f, &keys[i], 8);
        mean_add(&denied, (double)missed);
        mean_add(&after, lab_false_rate(f, 90 + round, asked));
        tamis_filter_free(f);
    }
    free(keys);
    lab_rate("csfbf", "before", speed + 1, &before, asked);
    lab_rate("csfbf", "after", speed + 1, &after, asked);
    lab_measured("csfbf", "members denied", speed + 1, &denied);
}

/* The worked examples of sections 4.2, 6.1 and 7.2: 8 bits, 2 hashes and a rate of .155 hold two
   items; thirteen items take vectors of 8, 16 and 32 bits; index 69 under matrices (13) and (15). */
static void examples(void)
{
    static const uint64_t rows[] = {0x6D, 0xC4, 0x1E}; /* 01101101, 11000100, 00011110 */
    static const unsigned lambda[] = {1, 2, 3};
    struct h3_matrix two, three;
    h3_from_rows(&two, rows, 2, 0);
    h3_from_rows(&three, rows, 3, 0);
    lab_exact("examples", "capacity", 8, (double)tamis_plan_capacity_whole(8, 2, 0.155));
    lab_exact("examples", "vectors", 13,
              (double)tamis_plan_flexible(8, 2, 2, 13, lambda, 3).vectors);
    lab_exact("examples", "bits", 13, tamis_plan_flexible(8, 2, 2, 13, lambda, 3).bits);
    lab_exact("examples", "h1(69)", 69, h3_address(&two, 69) >> 30);
    lab_exact("examples", "h2(69)", 69, h3_address(&three, 69) >> 29);
    lab_exact("examples", "h2(69) shifted", 69, (h3_address(&three, 69) >> 29) >> 1);
}

int main(void)
{
    uint64_t n = lab_size(20000, 200000, 1000000);
    lab_head();
    examples();
    figures(false, n);
    figures(true, n);
    basic(n);
    with_h3();
    load_factor(lab_size(20000, 100000, 1000000));
    counting(LAMBDA1, lab_size(10000, 50000, 200000));
    counting(LAMBDA2, lab_size(10000, 50000, 200000));
    dbf_at_a_million();
    return 0;
}
