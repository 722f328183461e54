/*
 * Flexible filters, growth: figures 7, 8 and 11 on synthetic items, every item inserted, as Algorithm 1
 * says; and (6), the bits per item.
 */
#include <math.h>

#include "common_growth.h"
#include "tamis/plan.h"

/* The closed forms beside it. */
static void closed_forms(enum speed speed, uint64_t n)
{
    char formula[32], closed[32];
    snprintf(closed, sizeof closed, "%s closed form", speed_names[speed]);
    snprintf(formula, sizeof formula, "%s formula", speed_names[speed]);
    for (unsigned p = 0; p < TRACE_PLACES; p++) {
        uint64_t x = (p + 1) * (n / TRACE_PLACES);
        tamis_plan_flex plan = flexible_plan(speed, x);
        if (plan.vectors == 0)
            continue;
        lab_formula("f7", formula, (double)x, (double)plan.vectors - 1);
        lab_formula("f11", formula, (double)x, plan.bits);
        lab_formula("f8", closed, (double)x, plan.rate);
    }
}

/* The basic filter of figure 8: one vector of 1024 bits. */
static void basic(uint64_t n)
{
    for (unsigned p = 1; p <= TRACE_PLACES; p++) {
        double x = (double)(p * (n / TRACE_PLACES));
        lab_formula("f8", "basic formula", x, tamis_plan_rate_exp(FLEX_BITS, FLEX_K, x));
    }
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

int main(void)
{
    uint64_t n = lab_size(20000, 200000, 1000000);
    lab_head();
    growth_synthetic(false, n);
    for (enum speed speed = 0; speed < SPEEDS; speed++)
        closed_forms(speed, n);
    basic(n);
    load_factor(lab_size(20000, 100000, 1000000));
    return 0;
}
