/*
 * The size of a patch against the entropy of the change it carries. A filter for 100,000 keys at 1 %
 * is half full; then more keys are added, and the change is coded (tamis_filter_diff, bits alone).
 * Spread vectors: the entropy of m bits of which a share changed. Blocked ones: which blocks were
 * touched, then the bits within.
 */
#include "common.h"
#include "set/set.h"
#include "common_plan.h"

#define BLOCK_BITS_N 512

/* Bits changed, and blocks of 512 that they are in. */
static void changes(const tamis_filter *x, const tamis_filter *y, uint64_t *changed,
                    uint64_t *touched)
{
    const struct vector *a = set_layers(&x->set)->v[0], *b = set_layers(&y->set)->v[0];
    uint64_t words = vector_positions_total(a) / 64, last = UINT64_MAX;
    *changed = *touched = 0;
    for (uint64_t i = 0; i < words; i++) {
        uint64_t d = vector_word(a, i) ^ vector_word(b, i);
        *changed += (uint64_t)__builtin_popcountll(d);
        if (d && i / 8 != last) {
            (*touched)++;
            last = i / 8;
        }
    }
}

static void patch(const tamis_filter *older, tamis_layout layout, uint64_t capacity,
                  const uint64_t *keys, uint64_t added)
{
    tamis_filter *newer;
    uint64_t bytes = 0, nothing = 0, changed, touched;
    MUST(tamis_filter_clone(&newer, older));
    MUST(tamis_filter_diff(older, newer, TAMIS_SAVE_BITS_ONLY, lab_count_bytes, &nothing, NULL));
    lab_add(newer, keys + capacity / 2, added);
    MUST(tamis_filter_diff(older, newer, TAMIS_SAVE_BITS_ONLY, lab_count_bytes, &bytes, NULL));
    changes(older, newer, &changed, &touched);
    double m = (double)lab_bits(older), x = (double)added;
    double entropy =
        layout == TAMIS_SPREAD
            ? tamis_plan_entropy(m, (double)changed)
            : lab_plan_entropy_blocks(m / BLOCK_BITS_N, (double)touched, (double)changed);
    const char *figure = layout == TAMIS_SPREAD ? "delta spread" : "delta blocked";
    lab_exact(figure, "patch", x, (double)bytes);
    lab_formula(figure, "entropy", x, entropy / 8);
    lab_formula(figure, "whole filter", x, m / 8);
    lab_exact(figure, "patch less an empty one", x, (double)(bytes - nothing));
    lab_exact(figure, "over entropy", x, ((double)(bytes - nothing)) / (entropy / 8));
    tamis_filter_free(newer);
}

int main(void)
{
    uint64_t capacity = lab_size(100000, 100000, 1000000);
    uint64_t *keys = lab_alloc(capacity, sizeof *keys);
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(3000, family);
    lab_keys(3000, keys, capacity);
    lab_head();
    for (unsigned layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        tamis_options o = {.growth = TAMIS_FIXED,
                           .layout = (tamis_layout)layout,
                           .capacity = capacity,
                           .key = family};
        tamis_filter *f = lab_filter(&o);
        lab_add(f, keys, capacity / 2);
        for (uint64_t added = 10; added <= capacity / 2; added = added * 7 / 3)
            patch(f, (tamis_layout)layout, capacity, keys, added);
        tamis_filter_free(f);
    }
    free(keys);
    return 0;
}
