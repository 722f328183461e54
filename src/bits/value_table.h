/*
 * A multiset of 64-bit values: each with the number of its copies, in open addressing. Verifiers that
 * must not err keep their values here (PBF-HT); two records may share a value, so it is counted.
 *
 * Readers may ask beside one writer that adds: a slot gets its value before its count, and a larger
 * table takes the place of the old one, which stays until table_reclaim.
 *
 * A value's home is where its hash lies among all hashes, so a table is nearly in order of hashes; in
 * that order its values are saved, merged and loaded, and a file of them is searched where it lies.
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

#define TABLE_PAIR 16 /* bytes of a value and its copies in a file */

struct table {
    struct table_slots *_Atomic slots; /* NULL before the first value */
    const uint8_t *view;               /* or pairs of a mapped file, read-only, in order */
    size_t used;                       /* distinct values */
};

/* What values are ordered by, then by themselves. */
uint64_t table_hash(uint64_t value);
/* Of a table with room for so many: the home of a value is its hash shifted right by this. */
unsigned table_shift(size_t values);

void table_free(struct table *table, const tamis_allocator *a);
void table_clear(struct table *table);
/* Is there something that readers may have held? */
bool table_replaced(const struct table *table);
/* Frees it; the caller knows that none is inside. */
void table_reclaim(struct table *table, const tamis_allocator *a);
/* Values that there is room for. */
size_t table_fits(const struct table *table);
/* What it grows by with room for so many values more, in bytes; 0: there is room. */
uint64_t table_growth(const struct table *table, size_t more);
/* Room for so many values more, so that as many table_add cannot fail. */
bool table_reserve(struct table *table, const tamis_allocator *a, size_t more);
uint64_t table_get(const struct table *table, uint64_t value);
void table_prefetch(const struct table *table, uint64_t value);
/* Returns the copies before. */
uint64_t table_add(struct table *table, uint64_t value, uint64_t copies);
/* Adds, in O(1) on the average whatever they are, values that come in order and are new; there is room
   for them, and `next` starts at 0. */
void table_append(struct table *table, size_t *next, uint64_t value, uint64_t copies);
/* Returns the copies left; never below 0. Needs the table to itself. */
uint64_t table_sub(struct table *table, uint64_t value, uint64_t copies);

/* All values in order: start with the table and zeros. */
struct table_walk {
    const struct table *table;
    size_t from, to; /* the run of used slots it is in, numbered on past the last slot */
    size_t high;     /* what has its home before this slot is taken */
    size_t passed;   /* pairs so far */
    size_t looked;   /* slots, at that; some of them many times */
    size_t stop;     /* it pauses at this slot, and says false, if there is nothing before; 0: no */
    uint64_t hash, value, count;
};

bool table_next(struct table_walk *walk);

/* to += from; false without memory, and nothing changed. */
bool table_unite(struct table *to, const struct table *from, const tamis_allocator *a);
bool table_equal(const struct table *x, const struct table *y);
size_t table_bytes(const struct table *table);

#endif
