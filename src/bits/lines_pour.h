/* Moving entries from some bodies into others: see lines_pour.c. */
#ifndef TAMIS_LINES_POUR_H
#define TAMIS_LINES_POUR_H

#include "lines_place.h"

/* Calls `take` for all entries of a body. */
struct visit {
    const struct body *body;
    uint64_t top; /* the bits of the place that chose the part, followed by zeros */
    entry_fn take;
    void *context;
};

/* For the parts at n positions from `first` on. */
tamis_error visit_positions(const struct lines_root *root, uint32_t first, uint32_t n,
                            entry_fn take, void *context);
/* Moves a whole part into another of the same depth, or into n = 16 deeper ones; `take` gets the few entries that do not
   fit into a single line with room. */
tamis_error pour(struct visit *v, const struct line_target *targets, uint32_t n);

#endif
