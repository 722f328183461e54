/*
 * One vector of a set: m bits and k probes, with its share of the keys and of the error rate, and
 * counters if it is deletable. Its bits are memory of its own, a view into a mapped file, or one
 * column of a matrix: then they lie `stride` bits apart, and the hot paths go through the matrix.
 */
#ifndef TAMIS_VECTOR_H
#define TAMIS_VECTOR_H

#include "base/base.h"
#include "dirty.h"
#include "counters.h"
#include "kernel.h"
#include "base/mem.h"
#include "page_sums.h"

/* All that makes two vectors of one family alike: equal shapes alone may merge. */
struct shape {
    tamis_layout layout;
    uint64_t units;
    uint32_t k;
};

struct vector {
    struct bits bits;
    uint64_t stride, column; /* position p is bit p * stride + column of the words */
    bool sliced;             /* a column of a matrix */
    bool view;               /* of a mapped file: nothing changes, `ones` is as saved */
    struct block memory;     /* none for a column or a view */
    bool deletable;
    struct counters counters;
    uint64_t capacity; /* keys it holds at its rate */
    uint64_t load;     /* adds that set a bit, less removals that cleared one */
    uint64_t count;    /* copies stored: adds less settled removals */
    uint64_t ones;     /* bits set; kept up to date in deletable vectors and views only */
    uint64_t ones_max; /* deletable: bits set at which it counts as full whatever load says */
    double fpp;
    struct changes *changes; /* since its bits were published, if anyone wants to know */
    struct block turned;     /* bits set since they were to be kept (pieces_out.c), or none */
    struct kept_sums *sums, *counter_sums; /* of its bits and counters, if anyone wants to know */
};

/* Does anyone want to know of its changes? */
ALWAYS_INLINE bool vector_watched(const struct vector *v)
{
    return ((uintptr_t)v->changes | (uintptr_t)v->turned.data | (uintptr_t)v->sums) != 0;
}

bool shape_valid(const struct shape *shape, const struct family *family);
/* Units come in so many: whole bytes, or whole blocks. Planned sizes are multiples of UNIT_STEP, so
   that they can be halved; what was folded need not be. */
uint64_t shape_step(tamis_layout layout);
bool shape_equal(const struct vector *x, const struct vector *y);
struct shape vector_shape(const struct vector *v);
uint64_t vector_positions_total(const struct vector *v); /* m */

/* Own bits, all zero. NULL: no memory. `counted` without `bits` is for columns. */
struct vector *vector_new(const tamis_allocator *a, const struct family *family, struct shape shape,
                          bool deletable, bool own_bits);
/* Bits that lie elsewhere, to be read only; no counters. */
struct vector *vector_view(const tamis_allocator *a, const struct family *family,
                           struct shape shape, const uint64_t *words);
void vector_free(struct vector *v, const tamis_allocator *a);
struct vector *vector_clone(const struct vector *v, const struct family *family,
                            const tamis_allocator *a);
void vector_clear(struct vector *v);
/* Checksums of the pages of its bits (own or a view, not a column) or counters, made if there are none;
   NULL without memory. They are kept from then on. */
struct kept_sums *vector_sums(const struct vector *v, bool counters, const tamis_allocator *a);
/* A bit at this position changed; its counter did. */
ALWAYS_INLINE void vector_mark(struct vector *v, uint64_t position)
{
    if (v->sums)
        kept_sums_mark(v->sums, position / 8);
}
ALWAYS_INLINE void vector_mark_counter(struct vector *v, uint64_t position)
{
    if (v->counter_sums)
        kept_sums_mark(v->counter_sums, position / 2);
}
void vector_mark_digests(struct vector *v, const tamis_digest *digests, const uint8_t *fresh,
                         size_t n);

/* Any layout and stride. */
void vector_positions(const struct vector *v, tamis_digest digest, uint64_t *positions);
bool vector_bit(const struct vector *v, uint64_t position);
/* Bits 64 i .. 64 i + 63, zeros past the end. */
uint64_t vector_word(const struct vector *v, uint64_t i);
void vector_bit_set(struct vector *v, uint64_t position);
void vector_bit_clear(struct vector *v, uint64_t position);
bool vector_has(const struct vector *v, tamis_digest digest);
uint64_t vector_count_ones(const struct vector *v);
double vector_rate_now(const struct vector *v);
size_t vector_bytes(const struct vector *v);
bool vector_full(const struct vector *v);
/* What counts for its capacity. `load` drifts a little when keys cover one another (an add that set no
   bit may be removed by clearing one), so it is never more than the copies stored. */
ALWAYS_INLINE uint64_t vector_load(const struct vector *v)
{
    uint64_t load = __atomic_load_n(&v->load, __ATOMIC_RELAXED); /* others may add at once */
    return v->deletable ? min_u64(load, v->count) : load;
}

/* Brings near the bits and counters that adds and removals touch; at most BATCH digests. */
void vector_fetch(const struct vector *v, const tamis_digest *digests, size_t n);
/* Deletable vectors. Insert may need memory for escapes: reserve first, then it cannot fail. */
bool vector_reserve(struct vector *v, const tamis_allocator *a);
bool vector_insert(struct vector *v, tamis_digest digest); /* true if a bit was set */
/* How often the j-th of k positions is among them. */
uint64_t positions_repeat(const uint64_t *positions, unsigned k, unsigned j);
/* Most copies of the digest that the counters allow. */
uint64_t vector_copies(const struct vector *v, tamis_digest digest);
void vector_erase(struct vector *v, tamis_digest digest, uint64_t copies);

/* The bits of n columns, side by side from these on, are those of n others; all of `to` are empty. */
void vector_fill_columns(struct vector *to, const struct vector *from, uint64_t n);
/* to |= from, same shape; counters and counts added. Room for the escapes must be reserved. */
bool vector_unite_reserve(struct vector *to, const struct vector *from, const tamis_allocator *a);
void vector_unite(struct vector *to, const struct vector *from);
/* v, a plain one with bits of its own, all zero, becomes x & y; false without memory. */
bool vector_intersect(struct vector *v, const struct vector *x, const struct vector *y,
                      const tamis_allocator *a);
/* A new vector of half the units; NULL: no memory. The caller sees to rate and capacity, and to the
   bits and their number where they are a column. */
struct vector *vector_fold(const struct vector *v, const struct family *family,
                           const tamis_allocator *a);
bool vector_equal(const struct vector *x, const struct vector *y);

#endif
