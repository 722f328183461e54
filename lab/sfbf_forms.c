/*
 * Flexible filters: the worked examples, the published hashes, the deletable form, and DBF after a
 * million items.
 */
#include "common_flexible.h"
#include "tamis/plan.h"

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
    lab_head();
    examples();
    with_h3();
    counting(LAMBDA1, lab_size(10000, 50000, 200000));
    counting(LAMBDA2, lab_size(10000, 50000, 200000));
    dbf_at_a_million();
    return 0;
}
