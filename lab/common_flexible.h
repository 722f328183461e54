/*
 * Flexible filters as the paper's section 8 sets them up: the first vector has 1024 bits, 6 hashes and
 * room for 64 items; the next ones 2^(lambda-1) times as much. DBF is the case of lambda always 1.
 */
#ifndef TAMIS_LAB_FLEXIBLE_H
#define TAMIS_LAB_FLEXIBLE_H

#include "common.h"
#include "tamis/plan.h"

#define FLEX_BITS  1024
#define FLEX_ITEMS 64
#define FLEX_K     6

/* DBF_ROWS: the same as DBF, but each vector apart, not bit-sliced. */
enum speed { LAMBDA1, LAMBDA2, LAMBDA3, LAMBDA4, LAMBDA5, DBF, SPEEDS, DBF_ROWS = SPEEDS };
extern const char *const speed_names[SPEEDS];

struct flexible {
    tamis_filter *filter;
    enum speed speed;
    uint64_t state; /* of the random speeds */
    uint32_t vectors;
};

/* DBF, an item that tests positive not inserted, with room for other than FLEX_ITEMS in a vector. */
void flexible_dbf(struct flexible *x, uint64_t items, uint64_t stream);

/* ask_first: an item that already tests positive is not inserted. */
void flexible_new(struct flexible *x, enum speed speed, tamis_hash hash, bool ask_first,
                  uint64_t stream);
void flexible_add(struct flexible *x, const uint64_t *keys, size_t n);
/* The random speeds are drawn one by one, when a vector was opened; adding does it by itself. */
void flexible_draw(struct flexible *x);
/* Formulas (3), (4) with the loads as they are; and (5), the baseline included. */
double flexible_rate(const struct flexible *x);
double flexible_bits(const struct flexible *x);
uint32_t flexible_rounds(const struct flexible *x); /* vectors less the first */
double flexible_items(const struct flexible *x);
/* The closed form for n items, all inserted; NaN for random speeds. */
tamis_plan_flex flexible_plan(enum speed speed, uint64_t n);

#endif
