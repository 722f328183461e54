/*
 * Flexible filters on traces: figures 7, 8 and 11 where items repeat. The papers' traces cannot be
 * had, so two are made from what a Debian machine holds (common_trace.h), and a third stands in for
 * MAWI: a million arrivals of D distinct sources, where D is chosen so that DBF comes to its published
 * size. All other published sizes and ratios for MAWI must then follow.
 */
#include "common_flexible.h"
#include "common_trace.h"

/* ---- the stand-in for MAWI ------------------------------------------------------------------- */

#define MAWI_ROUNDS 1232 /* 1,261,568 published bits, the first vector left out, of 1024 each */

/* Distinct items, inserted when they do not test positive, until DBF has opened that many vectors;
   in the middle of the last one. */
static uint64_t distinct_for(uint64_t rounds, uint64_t stream)
{
    struct flexible x;
    uint64_t keys[FLEX_ITEMS / 2], n = 0, *all = lab_alloc(1 << 20, sizeof *all);
    lab_keys(stream, all, 1 << 20);
    flexible_new(&x, DBF, TAMIS_XXH3, true, stream);
    while (flexible_rounds(&x) < rounds) {
        memcpy(keys, all + n, sizeof keys);
        flexible_add(&x, keys, FLEX_ITEMS / 2);
        n += FLEX_ITEMS / 2;
    }
    tamis_filter_free(x.filter);
    free(all);
    return n + FLEX_ITEMS;
}

static void mawi(void)
{
    struct mean distinct = {0}, rate[SPEEDS] = {0}, bits[SPEEDS] = {0}, over[SPEEDS] = {0};
    uint64_t asked = lab_size(20000, 50000, 500000), rounds = lab_size(4, 8, 20);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t n = distinct_for(MAWI_ROUNDS, 300 + i), *keys = lab_alloc(n, sizeof *keys);
        mean_add(&distinct, (double)n);
        lab_keys(300 + i, keys, n);
        double dbf = 1;
        for (enum speed speed = SPEEDS; speed-- > 0;) { /* DBF is the last of them */
            struct flexible x;
            flexible_new(&x, speed, TAMIS_XXH3, true, 300 + i);
            flexible_add(&x, keys, n);
            double wrong = lab_false_rate(x.filter, 300 + i, asked);
            dbf = speed == DBF ? wrong : dbf;
            mean_add(&over[speed], wrong / dbf);
            mean_add(&rate[speed], wrong);
            mean_add(&bits[speed], flexible_bits(&x) - FLEX_BITS);
            tamis_filter_free(x.filter);
        }
        free(keys);
    }
    lab_measured("mawi", "distinct", 0, &distinct);
    for (enum speed speed = 0; speed < SPEEDS; speed++) {
        double x = speed + 1;
        lab_measured("mawi", "bits", x, &bits[speed]);
        lab_value("mawi", "bits over DBF", x, mean_of(&bits[speed]) / mean_of(&bits[DBF]),
                  mean_error(&bits[speed]) / mean_of(&bits[DBF]), rounds);
        lab_rate("mawi", "rate", x, &rate[speed], asked);
        lab_measured("mawi", "rate over DBF", x, &over[speed]);
    }
}

/* ---- the machine's own traces ---------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t count_distinct(const uint64_t *items, size_t n)
{
    uint64_t *sorted = lab_alloc(n, sizeof *sorted), distinct = n > 0;
    memcpy(sorted, items, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t i = 1; i < n; i++)
        distinct += sorted[i] != sorted[i - 1];
    free(sorted);
    return distinct;
}

static void one_trace(const char *figure, enum trace trace)
{
    size_t n;
    uint64_t *items = lab_trace(trace, lab_size(8000, 150000, 1000000), &n);
    uint64_t asked = lab_size(20000, 100000, 500000);
    lab_exact(figure, "items", 0, (double)n);
    lab_exact(figure, "distinct", 0, (double)count_distinct(items, n));
    for (unsigned ask_first = 0; ask_first < 2; ask_first++)
        for (enum speed speed = 0; speed < SPEEDS; speed++) {
            struct flexible x;
            struct mean rate = {0};
            char name[48];
            const char *how = ask_first ? " asked first" : "";
            flexible_new(&x, speed, TAMIS_XXH3, ask_first, 400);
            flexible_add(&x, items, n);
            size_t missed = n - lab_count(x.filter, items, n);
            mean_add(&rate, lab_false_rate(x.filter, 400, asked));
            snprintf(name, sizeof name, "rate%s", how);
            lab_rate(figure, name, speed + 1, &rate, asked);
            snprintf(name, sizeof name, "rate formula%s", how);
            lab_formula(figure, name, speed + 1, flexible_rate(&x));
            snprintf(name, sizeof name, "rounds%s", how);
            lab_exact(figure, name, speed + 1, flexible_rounds(&x));
            snprintf(name, sizeof name, "bits%s", how);
            lab_exact(figure, name, speed + 1, flexible_bits(&x));
            lab_exact(figure, "members denied", speed + 1, (double)missed);
            tamis_filter_free(x.filter);
        }
    free(items);
}

int main(void)
{
    lab_head();
    mawi();
    one_trace("packages", TRACE_PACKAGES);
    one_trace("files", TRACE_FILES);
    return 0;
}
