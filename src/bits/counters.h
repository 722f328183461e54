/*
 * Counters beside the bits of a deletable vector: how many probes of stored keys hit each position
 * (a repeated address counts twice). They have four bits; 15 means that the exact number, 15 or
 * more, is in a side table, so no counter sticks or wraps. Only adds and removals touch them.
 */
#ifndef TAMIS_COUNTERS_H
#define TAMIS_COUNTERS_H

#include "value_table.h"

#define COUNTER_ESCAPE 15

struct counters {
    struct block nibbles;
    uint64_t n;           /* number of positions */
    struct table escapes; /* of counters of 15: positions, under a name each, with their numbers */
};

bool counters_new(struct counters *counters, const tamis_allocator *a, uint64_t n);
void counters_free(struct counters *counters, const tamis_allocator *a);
bool counters_copy(struct counters *to, const struct counters *from, const tamis_allocator *a);
bool counters_widen(struct counters *counters, const tamis_allocator *a, size_t more);
/* Reserves room for this many more escapes, so that as many calls of counters_add cannot fail. */
ALWAYS_INLINE bool counters_reserve(struct counters *counters, const tamis_allocator *a,
                                    size_t more)
{
    return LIKELY(more <= table_fits(&counters->escapes)) || counters_widen(counters, a, more);
}
uint64_t counters_get(const struct counters *counters, uint64_t position);
/* Adds the other counters, of the same positions. The first function returns how many escapes to
   reserve before. */
size_t counters_sum_escapes(const struct counters *to, const struct counters *from);
void counters_sum(struct counters *to, const struct counters *from);
/* Fills `half`, all zero before, with sums of pairs: a run of this many counters (1, or a multiple
   of 16) and the following run are added. False if there is no memory. */
bool counters_fold(struct counters *half, const struct counters *from, uint64_t run,
                   const tamis_allocator *a);
/* Returns the count before. */
uint64_t counters_add(struct counters *counters, uint64_t position, uint64_t by);
/* Returns the count after; never below 0. */
uint64_t counters_sub(struct counters *counters, uint64_t position, uint64_t by);
/* For up to 64 counters (2 per byte): bit i tells whether counter i is not 0, and whether it is
   15. */
void counters_masks(const uint8_t *nibbles, size_t len, uint64_t *set, uint64_t *large);
/* Which of the counters 64 i .. 64 i + 63 differ; y may be NULL, meaning all zero. */
uint64_t counters_changed(const struct counters *x, const struct counters *y, uint64_t i);
/* Sets the number for a counter of 15, after the nibbles were filled in; reserve first. */
void counters_escape(struct counters *counters, uint64_t position, uint64_t value);
bool counters_equal(const struct counters *x, const struct counters *y);

#endif
