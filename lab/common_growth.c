/* See common_growth.h. */
#include "common_growth.h"

void growth_run(struct growth *g, struct flexible *x, const struct trace *t, uint64_t asked,
                uint64_t stream)
{
    struct questions q;
    questions_new(&q, x, stream, asked);
    for (unsigned p = 0; p < TRACE_PLACES; p++) {
        size_t from = p ? t->upto[p - 1] : 0;
        flexible_add(x, t->keys + from, t->upto[p] - from);
        g->last_rate = questions_ask(&q, x);
        g->last_bits = flexible_bits(x);
        mean_add(&g->rate[p], g->last_rate);
        mean_add(&g->formula[p], flexible_rate(x));
        mean_add(&g->rounds[p], flexible_rounds(x));
        mean_add(&g->bits[p], g->last_bits);
    }
    questions_free(&q);
}

void growth_print(const struct growth *g, enum speed speed, const char *suffix, size_t arrivals,
                  uint64_t asked)
{
    char f7[24], f8[24], f11[24], formula[32];
    snprintf(f7, sizeof f7, "f7%s", suffix);
    snprintf(f8, sizeof f8, "f8%s", suffix);
    snprintf(f11, sizeof f11, "f11%s", suffix);
    snprintf(formula, sizeof formula, "%s formula", speed_names[speed]);
    for (unsigned p = 0; p < TRACE_PLACES; p++) {
        double x = (double)((p + 1) * (arrivals / TRACE_PLACES));
        lab_measured(f7, speed_names[speed], x, &g->rounds[p]);
        lab_measured(f11, speed_names[speed], x, &g->bits[p]);
        lab_rate(f8, speed_names[speed], x, &g->rate[p], asked);
        lab_formula(f8, formula, x, mean_of(&g->formula[p]));
    }
}

void growth_synthetic(bool ask_first, size_t n)
{
    uint64_t asked = lab_size(5000, 20000, 100000);
    struct growth g[SPEEDS] = {0};
    for (uint64_t i = 0; i < lab_size(4, 5, 100); i++) {
        struct trace t;
        trace_synthetic(&t, n, i);
        for (enum speed speed = 0; speed < SPEEDS; speed++) {
            struct flexible x;
            flexible_new(&x, speed, TAMIS_XXH3, ask_first, i);
            growth_run(&g[speed], &x, &t, asked, i);
            flexible_free(&x);
        }
        trace_free(&t);
    }
    for (enum speed speed = 0; speed < SPEEDS; speed++)
        growth_print(&g[speed], speed, ask_first ? "q" : "", n, asked);
}
