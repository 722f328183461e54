/*
 * Shapes for columns, from the sizes of the sets that are to share them. One shape for all would be as
 * large as the largest set asks for; one shape for each set would be no matrix. Sets of about one size
 * share a shape; where sizes in one shape differ, a set takes as many columns as it needs, and how many
 * columns the largest one takes is the number with the fewest bits for these sizes (Guo et al., section
 * 4.2: every column then has the rate 1-(1-p)^(1/s)).
 */
#ifndef TAMIS_COLUMNS_PLAN_H
#define TAMIS_COLUMNS_PLAN_H

#include "base/base.h"

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
