/*
 * Counters beside the bits of a deletable vector: how many probes of stored keys hit each position
 * (a repeated address counts twice). Four bits each; 15 means that the exact number, 15 or more, is
 * in a side table, so no counter sticks or wraps. Touched by add and remove only.
 */
#ifndef TAMIS_COUNTERS_H
#define TAMIS_COUNTERS_H

#include "base.h"
#include "mem.h"

#define COUNTER_ESCAPE 15

struct escape {
    uint64_t position; /* plus 1; 0: free */
    uint64_t value;
};

struct counters {
    struct block nibbles;
    uint64_t n;             /* positions */
    struct escape *escapes; /* open addressing, a power of two */
    size_t room, used;
};

bool counters_new(struct counters *counters, const tamis_allocator *a, uint64_t n);
void counters_free(struct counters *counters, const tamis_allocator *a);
bool counters_copy(struct counters *to, const struct counters *from, const tamis_allocator *a);
/* Room for so many more escapes, so that as many counters_add cannot fail. */
bool counters_reserve(struct counters *counters, const tamis_allocator *a, size_t more);
uint64_t counters_get(const struct counters *counters, uint64_t position);
/* Returns the number before. */
uint64_t counters_add(struct counters *counters, uint64_t position, uint64_t by);
/* Returns the number after; never below 0. */
uint64_t counters_sub(struct counters *counters, uint64_t position, uint64_t by);
size_t counters_bytes(const struct counters *counters);
bool counters_equal(const struct counters *x, const struct counters *y);

#endif
