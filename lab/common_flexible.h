/*
 * Flexible filters as the paper's section 8 sets them up: the first vector has 1024 bits, 6 hashes and
 * room for 64 items; the next ones 2^(lambda-1) times as much. DBF is the case of lambda always 1.
 *
 * λ1 to λ3 come to a few dozen vectors for a million items: a flexible filter of the library. λ4, λ5 and
 * DBF come to thousands, more than the library queries one by one; the vectors of each size are a
 * dynamic filter then, which is bit-sliced. The bits are the same ones.
 */
#ifndef TAMIS_LAB_FLEXIBLE_H
#define TAMIS_LAB_FLEXIBLE_H

#include "common.h"
#include "tamis/plan.h"

#define FLEX_BITS  1024
#define FLEX_ITEMS 64
#define FLEX_K     6
#define FLEX_SIZES 5 /* of λ5 */

enum speed { LAMBDA1, LAMBDA2, LAMBDA3, LAMBDA4, LAMBDA5, DBF, SPEEDS };
extern const char *const speed_names[SPEEDS];

struct flexible {
    tamis_filter *filter[FLEX_SIZES]; /* one, or one for each size */
    unsigned filters;
    enum speed speed;
    bool sliced, ask_first;
    uint64_t state;   /* of the random speeds */
    uint32_t vectors; /* in one filter: when a speed was last drawn */
    unsigned size;    /* sliced: of the vector that is being filled, */
    uint64_t room;    /* what a vector of size 0 holds, */
    uint64_t load;    /* and the items in it */
};

/* ask_first: an item that already tests positive is not inserted. */
void flexible_new(struct flexible *x, enum speed speed, tamis_hash hash, bool ask_first,
                  uint64_t stream);
/* DBF, asked first, with room for other than FLEX_ITEMS in a vector. */
void flexible_dbf(struct flexible *x, uint64_t items, uint64_t stream);
/* Any speed in one filter whose vectors are queried one by one, asked first. */
void flexible_rows(struct flexible *x, enum speed speed, uint64_t stream);
void flexible_free(struct flexible *x);
void flexible_add(struct flexible *x, const uint64_t *keys, size_t n);
bool flexible_has(const struct flexible *x, uint64_t key);
void flexible_add_digest(struct flexible *x, tamis_digest digest);
/* Formulas (3), (4) with the loads as they are; and (5), the baseline included. */
double flexible_rate(const struct flexible *x);
double flexible_bits(const struct flexible *x);
uint32_t flexible_rounds(const struct flexible *x); /* vectors less the first */
double flexible_items(const struct flexible *x);
double
flexible_last(const struct flexible *x); /* bits per item of the vector that is being filled */
/* Distinct items, inserted when they do not test positive, that bring DBF to its published size for the
   trace MAWI; the middle of its last vector is taken. */
uint64_t flexible_mawi(uint64_t stream);
/* The closed form for n items, all inserted; NaN for random speeds. */
tamis_plan_flex flexible_plan(enum speed speed, uint64_t n);

/* Items that were never added, asked for again and again while the filter grows. Bits are only ever set,
   so an answer "maybe" stays: only those that were denied are asked for again, and only of vectors that
   were not full the last time. */
struct questions {
    tamis_digest *denied;
    size_t n, asked;
    uint32_t from;
};

void questions_new(struct questions *q, const struct flexible *x, uint64_t stream, size_t asked);
double questions_ask(struct questions *q, const struct flexible *x); /* share of "maybe" */
void questions_free(struct questions *q);

#endif
