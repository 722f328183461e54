/*
 * A multiset of 64-bit values, each with the number of its copies, in open addressing. Verifiers
 * that must be exact keep their values here (PBF-HT); two records may have the same value, so
 * copies are counted.
 *
 * Others may read while one thread adds: a slot gets its value before its count, and a larger table
 * replaces the old one, which stays until table_reclaim.
 *
 * The home slot of a value is proportional to its hash, so a table is nearly sorted by hash. Values
 * are saved, merged and loaded in that order, and a mapped file of them is searched in place.
 */
#ifndef TAMIS_TABLE_H
#define TAMIS_TABLE_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/mem.h"

struct table_slot {
    _Atomic uint64_t value;
    _Atomic uint64_t count; /* 0: free */
};

struct table_slots {
    struct table_slots *retired;
    struct block memory;
    size_t room;    /* a power of two, */
    unsigned shift; /* 2^(64 - shift) */
    struct table_slot *slot;
};

#define TABLE_PAIR 16 /* bytes of a value and its count in a file */

struct table {
    struct table_slots *_Atomic slots; /* NULL before the first value */
    const uint8_t *view;               /* or pairs in a mapped file, read-only, sorted */
    size_t used;                       /* distinct values */
};

/* Values are sorted by this hash, then by value. */
uint64_t table_hash(uint64_t value);
/* For a table with room for that many values: the home of a value is its hash shifted right by
   this. */
unsigned table_shift(size_t values);

void table_free(struct table *table, const tamis_allocator *a);
void table_clear(struct table *table);
/* Is there an old table that readers may still use? */
bool table_replaced(const struct table *table);
/* Frees it; the caller knows that no reader is inside. */
void table_reclaim(struct table *table, const tamis_allocator *a);
/* Number of values that fit: at most three quarters of the slots are in use. */
ALWAYS_INLINE size_t table_fits(const struct table *table)
{
    const struct table_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    return slots ? slots->room - slots->room / 4 - table->used : 0;
}
/* Bytes by which the table grows to fit this many more values; 0 if they fit already. */
uint64_t table_growth(const struct table *table, size_t more);
/* Makes room for this many more values, so that as many calls of table_add cannot fail. */
bool table_reserve(struct table *table, const tamis_allocator *a, size_t more);
uint64_t table_get(const struct table *table, uint64_t value);
void table_prefetch(const struct table *table, uint64_t value);
/* Returns the number of copies before. */
uint64_t table_add(struct table *table, uint64_t value, uint64_t copies);
/* Appends values that arrive in order and are new, in O(1) on average whatever they are; there
   must be room for them, and `next` starts at 0. */
void table_append(struct table *table, size_t *next, uint64_t value, uint64_t copies);
/* Returns the number of copies left; never below 0. Needs exclusive access. */
uint64_t table_sub(struct table *table, uint64_t value, uint64_t copies);

/* Iterates over all values in order. Initialise with the table and zeros. */
struct table_walk {
    const struct table *table;
    size_t from, to; /* the current run of used slots, numbered past the last slot */
    size_t high;     /* entries with their home before this slot are done */
    size_t passed;   /* pairs returned so far */
    size_t looked;   /* slots read for that, some of them several times */
    size_t stop;     /* pause at this slot and return false if nothing comes before it; 0: never */
    uint64_t hash, value, count;
};

bool table_next(struct table_walk *walk);

/* to += from; false if there is no memory, and then nothing changed. */
bool table_unite(struct table *to, const struct table *from, const tamis_allocator *a);
bool table_equal(const struct table *x, const struct table *y);
size_t table_bytes(const struct table *table);

#endif
