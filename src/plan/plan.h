/*
 * How sets and replicas are sized and judged, beyond the public formulas of tamis/plan.h, and the
 * shapes of columns (columns_plan.c).
 */
#ifndef TAMIS_PLAN_H
#define TAMIS_PLAN_H

#include "base/base.h"
#include "tamis/plan.h"

#define LN2        0.6931471805599453
#define LAMBDA_MAX 40 /* of a filter */

/* ---- one vector ---- */

/* For filters as they are filled: adds that set no bit do not count, so more than n keys arrive
   before n of them counted. plan_filled: the smallest vector whose rate is then at most p. The
   other: the number of adds that set a bit until the rate of a vector is p. Compared to
   tamis_plan_vector this takes 39 % more bits at a rate of 1/2, 3 % at 1/10 and 0.2 % at 1 %;
   without it, a filter for a rate of 1/10 that is filled until it refuses would exceed its rate
   by 6.5 %. */
tamis_plan_size plan_filled(tamis_layout layout, uint64_t n, double p);
/* The same for a blocked vector that will not be folded: small ones may have any number of blocks. */
tamis_plan_size plan_close(uint64_t n, double p);
uint64_t plan_takes(tamis_layout layout, uint64_t units, unsigned k, double p);

/* Like tamis_plan_vector, for a given k. */
tamis_plan_size plan_vector_of(tamis_layout layout, uint64_t n, double p, unsigned k);

/* Rate of a vector with the share `fill` of its bits set: fill^k (spread), or the rate for the
   number of keys that gives this fill (blocked). */
double plan_fill_rate(tamis_layout layout, uint64_t units, unsigned k, double fill);

/* Number of distinct keys that leave this many ones: -(m/k) ln(1-ones/m), with the exact
   probability that a key leaves a bit untouched in place of e^{-k/m}. A full vector only gives a
   lower bound; it is treated as half a bit short of full. */
double plan_items(tamis_layout layout, uint64_t units, unsigned k, uint64_t ones);
/* The same for the blocked layout. */
double plan_items_blocked(uint64_t units, unsigned k, double ones);

/* The mean of what exceeds `room`, of a number that is Poisson with this mean. */
double plan_excess(double mean, unsigned room);

/* The rates of the verification values of n records with p attributes of q probes in m cells. */
tamis_plan_verify plan_verify_rates(unsigned p, unsigned q, double m, double n);

/* sum_i w[i] B(t,i): the probability that t throws into m cells cover i given ones, where i has
   probability w[i], i below n. */
double plan_cover_sum(double m, double t, const double *w, unsigned n);

/* p[j], for j up to `most`, is the probability that j of m cells are occupied: after one more throw. */
void plan_throw(double *p, unsigned most, double m);

/* ---- growing stacks ---- */

/* Slots for the small vectors at the start, before those for large ones. */
#define PLAN_SMALL 4

/* Share of the total rate p for vector `slot` of a growing stack. The sum over all slots is at
   most p. */
double plan_share(unsigned slot, double p);

/* The shares of a compact stack, whose first vector is meant to take most keys: each is half of the one before, and from
   the ninth on they fall as 1/i^2, because there may be hundreds. */
double plan_share_compact(unsigned slot, double p);

/* Known bits of the fingerprints of a small set that grows (set/small.c): of its first keys, unless these are in a vector,
   and of the key that follows n others; `last` is the number of keys up to which that holds. */
unsigned plan_first_known(double p);
unsigned plan_known(uint64_t capacity, uint64_t n, double p, uint64_t *last);

/* The first slot for a vector of this capacity, given the capacity of the first vector: 0 or
   PLAN_SMALL. */
unsigned plan_slot(uint64_t first, uint64_t capacity);

/* The vector for n keys with this share of the total rate p. The blocked vectors of a stack have
   the same k, that of a large vector, so that a lookup computes the bits of a key once. Only
   shares below p/1000, and vectors that would exceed 2^40 bits with it, use their own best k. */
tamis_plan_size plan_in_stack(tamis_layout layout, uint64_t n, double share, double p);

/* No vector of a growing stack is smaller than this fraction of all earlier ones, whatever the
   expansion or the forecast says: n keys take at most about 16 + 11 log2(n / (16 first))
   vectors, so adding them costs n log n and not n^2. */
#define PLAN_PARTS 16

/* Capacity of the next vector, given the first, the largest so far and their total. expansion 0:
   times 6 up to 216 times the first, then up to a total of 1,600 times the first, then the total
   doubles. expansion >= 1: ceil(largest * expansion), but at least ceil(total / PLAN_PARTS).
   Anything else counts as 1. At most 2^40. */
uint64_t plan_next_capacity(uint64_t first, uint64_t largest, uint64_t total, double expansion);

/* Holt's linear forecast of the logarithm of an arrival rate. Initialise with zeros. */
struct plan_holt {
    double level, trend;
    uint32_t n;
};

void plan_holt_add(struct plan_holt *h, double rate); /* ignores rates not in (0, inf) */
double plan_holt_next(const struct plan_holt *h);     /* NaN before the first rate */

/* ---- replicas ---- */

/* One vector of an origin and of its copy: the ones in the first, in the second and in both. A
   vector that the copy does not have yet has zeros for the copy, one that the origin no longer
   has zeros for the origin. Blocks are assumed to be filled as their number of ones implies. */
struct plan_copy {
    tamis_layout layout;
    uint64_t units;
    unsigned k;
    uint64_t ones, copy_ones, both;
    double rates[3]; /* where units is 0, instead: own, of the copy, and of what both have */
};

/* The same for a stack of vectors, from counted bits: the origin says "maybe" if any of its
   vectors does. items, added and member_miss are NaN. */
tamis_plan_replica plan_replica_stack(const struct plan_copy *vectors, size_t n, double hosts,
                                      double w_pos, double w_neg);
/* (a/n)(1-rate), with the number of added members known exactly */
double plan_member_miss(double added, double n, double copy_rate);

/* ---- columns_plan.c ----
 *
 * Shapes of columns, from the sizes of the sets that will share them. One shape for all would be as large
 * as the largest set requires; one shape per set would not be a matrix. Sets of similar size share a
 * shape. Where sizes within a shape differ, a set takes as many columns as it needs, and the number for
 * the largest one is chosen so that these sizes take the fewest bits (Guo et al., section 4.2: every
 * column then has the rate 1-(1-p)^(1/s)).
 */

#define PLANS_MAX 64

struct column_plan {
    uint64_t units; /* bits of a column, spread layout */
    uint32_t k;
    uint32_t most;     /* most columns of a set */
    uint64_t capacity; /* keys of a column */
    double rate;       /* of a column with that many keys */
};

/* Number of columns for a set of n keys; 0 if it does not fit. */
uint32_t column_plan_columns(const struct column_plan *plan, uint64_t n);
/* One column for n keys with some room to spare, so that similar sizes share a plan. */
bool column_plan_one(struct column_plan *out, uint64_t n, double rate);
/* Plans for sets of these sizes, each at most at this rate; returns their number, at most
   PLANS_MAX, or 0 if it is not possible. Sorts `sizes`, none of which is 0. `spare`: later sets
   may be a little larger. */
size_t column_plans(struct column_plan *out, uint64_t *sizes, size_t n, double rate, bool spare);
/* The rate of a set of n keys over all its columns. */
double column_plan_rate(const struct column_plan *plan, uint64_t n);

/* Selects, among the plans offered, the one with the fewest bits for a set. */
struct column_choice {
    uint64_t n;    /* keys of the set */
    double rate;   /* at most, over all its columns */
    double waste;  /* most bits accepted, as a multiple of the minimum */
    uint64_t bits; /* of the best plan so far; 0: none fits */
    size_t best;   /* its number */
};
void column_choice_offer(struct column_choice *c, const struct column_plan *plan, size_t number);

#endif
