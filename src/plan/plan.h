/*
 * What sets and replicas are sized and judged by, beyond the public formulas of tamis/plan.h, and the
 * shapes of columns (columns_plan.c).
 */
#ifndef TAMIS_PLAN_H
#define TAMIS_PLAN_H

#include "base/base.h"
#include "tamis/plan.h"

#define LN2        0.6931471805599453
#define LAMBDA_MAX 40 /* of a filter */

/* ---- one vector ---- */

/* As filters are filled: adds that set no bit do not count, so that more keys than n come until n of
 * them did. Smallest vector whose rate is at most p then; and the adds that set a bit until the rate of a
 * vector is p. At one half that is 39 % more bits than tamis_plan_vector's, at a tenth 3 %, at 1 % 0.2 %;
 * with those a filter that is filled until it refuses would be over a rate of a tenth by 6.5 % of it. */
tamis_plan_size plan_filled(tamis_layout layout, uint64_t n, double p);
uint64_t plan_takes(tamis_layout layout, uint64_t units, unsigned k, double p);

/* The same as tamis_plan_vector with k given. */
tamis_plan_size plan_vector_of(tamis_layout layout, uint64_t n, double p, unsigned k);

/* Rate of a vector in which the share `fill` of the bits is set: fill^k (spread), or the rate at
 * the number of keys that gives this fill (blocked). */
double plan_fill_rate(tamis_layout layout, uint64_t units, unsigned k, double fill);

/* The blocked layout's form of tamis_plan_items. */
double plan_items_blocked(uint64_t units, unsigned k, double ones);

/* sum_i w[i] B(t,i): the chance that t throws into m cells cover i given ones, where w[i] is that of
 * i, below n. */
double plan_cover_sum(double m, double t, const double *w, unsigned n);

/* ---- growing stacks ---- */

/* Slots for the small vectors of the start, before those for large ones. */
#define PLAN_SMALL 4

/* Share of the total rate p that vector `slot` of a growing stack gets. The sum over all slots is at
 * most p. */
double plan_share(unsigned slot, double p);

/* The first slot for a vector of this capacity, given that of the first: 0 or PLAN_SMALL. */
unsigned plan_slot(uint64_t first, uint64_t capacity);

/* The vector for n keys with this share of the total rate p. Blocked vectors of one stack have the
 * same k, that of a large vector, because then a lookup makes the bits of a key once; only shares below
 * p/1000, and vectors that would pass 2^40 bits with it, have the best of their own. */
tamis_plan_size plan_in_stack(tamis_layout layout, uint64_t n, double share, double p);

/* No vector of a growing stack is smaller than this part of all before it, whatever the expansion or
 * the forecast says: n keys are in some 16 + 11 log2(n / (16 first)) vectors at most, so that adding
 * them costs n log n and not n^2. */
#define PLAN_PARTS 16

/* Capacity of the next vector, given those of the first and the largest so far and their total.
 * expansion 0: x6 up to 216 times the first, then to a total of 1,600 times the first, then the total
 * doubles; >= 1: ceil(largest * expansion), or ceil(total / PLAN_PARTS) if that is more; anything else
 * counts as 1. At most 2^40. */
uint64_t plan_next_capacity(uint64_t first, uint64_t largest, uint64_t total, double expansion);

/* Holt's linear forecaster on the logarithm of an arrival rate. Start with all zero. */
struct plan_holt {
    double level, trend;
    uint32_t n;
};

void plan_holt_add(struct plan_holt *h, double rate); /* ignores rates not in (0, inf) */
double plan_holt_next(const struct plan_holt *h);     /* NaN before the first rate */

/* ---- replicas ---- */

/* One vector of an origin and of its copy: ones in the one, in the other, and in both. A vector that
 * the copy does not have yet has 0 and 0 of the latter, one that the origin has no more 0 and 0 of
 * the origin's. Blocks are taken to be filled as their ones tell. */
struct plan_copy {
    tamis_layout layout;
    uint64_t units;
    unsigned k;
    uint64_t ones, copy_ones, both;
};

/* The same for a stack of vectors, from what was counted: the origin says "maybe" if any of its
 * vectors does. items, added and member_miss are NaN. */
tamis_plan_replica plan_replica_stack(const struct plan_copy *vectors, size_t n, double hosts,
                                      double w_pos, double w_neg);
/* (a/n)(1-rate), with the number of members added known exactly */
double plan_member_miss(double added, double n, double copy_rate);

/* ---- columns_plan.c ----
 *
 * Shapes for columns, from the sizes of the sets that are to share them. One shape for all would be as
 * large as the largest set asks for; one shape for each set would be no matrix. Sets of about one size
 * share a shape; where sizes in one shape differ, a set takes as many columns as it needs, and how many
 * columns the largest one takes is the number with the fewest bits for these sizes (Guo et al., section
 * 4.2: every column then has the rate 1-(1-p)^(1/s)).
 */

#define PLANS_MAX 64

struct column_plan {
    uint64_t units; /* bits of a column, spread */
    uint32_t k;
    uint32_t most;     /* columns that a set may take */
    uint64_t capacity; /* keys of a column */
    double rate;       /* of a column with so many */
};

/* Columns that a set of n keys takes; 0 if it does not fit. */
uint32_t column_plan_columns(const struct column_plan *plan, uint64_t n);
/* One column for n keys and some more: sizes near one another give one plan. */
bool column_plan_one(struct column_plan *out, uint64_t n, double rate);
/* Plans for sets of these sizes, each at most at this rate; returns how many, at most PLANS_MAX, or 0
   if it cannot be done. `sizes` is sorted here; none is 0. `spare`: sets to come may be a little
   larger. */
size_t column_plans(struct column_plan *out, uint64_t *sizes, size_t n, double rate, bool spare);
/* Does the plan suit n keys at this rate, with little to spare? The fewer bits the better: returns
   them, or 0 if it does not fit or is past `waste` times the least. */
uint64_t column_plan_cost(const struct column_plan *plan, uint64_t n, double rate, double waste);

#endif
