/*
 * How many distinct values a text would have, from how their number grows in a sample of it: d(2n) = 2^b d(n), with b
 * from the last two powers of two. Names of a closed set stop growing, addresses of new clients never do.
 */
#ifndef TAMIS_DISTINCT_GROWTH_H
#define TAMIS_DISTINCT_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts distinct values as they occur. */
struct distinct_growth {
    uint64_t *slot; /* hashes, 0: none */
    size_t n, room;
    uint64_t seen;           /* number of values, distinct or not */
    double at_half, at_mark; /* distinct values at the last two powers of two of `seen` */
};

bool growth_put(struct distinct_growth *growth, uint64_t hash); /* false: no memory */
/* Distinct values in `scale` times as much text as was sampled. */
double growth_at(const struct distinct_growth *growth, double scale);

#endif
