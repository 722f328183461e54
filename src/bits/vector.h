/*
 * One vector of a set: m bits and k probes, with its share of the keys and of the error rate, and
 * counters if it is deletable. Its bits are its own memory, a view into a mapped file, or one
 * column of a matrix; in a matrix they are `stride` bits apart, and the hot paths go through the
 * matrix.
 */
#ifndef TAMIS_VECTOR_H
#define TAMIS_VECTOR_H

#include "base/base.h"
#include "dirty.h"
#include "counters.h"
#include "kernel.h"
#include "base/mem.h"
#include "page_sums.h"

/* Everything that two vectors of one family must have in common to be merged. */
struct shape {
    tamis_layout layout;
    uint64_t units;
    uint32_t k;
};

struct vector {
    struct bits bits;
    uint64_t stride, column; /* position p is bit p * stride + column of the words */
    bool sliced;             /* a column of a matrix */
    bool view;               /* of a mapped file: nothing changes, and `ones` is as saved */
    struct block memory;     /* unused for a column or a view */
    bool deletable;
    uint64_t capacity; /* keys that fit at its rate */
    uint64_t load;     /* adds that set a bit, minus removals that cleared one */
    uint64_t count;    /* copies stored: adds minus settled removals */
    uint64_t ones;     /* bits set; maintained in deletable vectors and views only */
    uint64_t ones_max; /* deletable: bits set at which it is full, whatever `load` is */
    double fpp;
    struct changes *changes; /* changes since its bits were published, if anyone needs them */
    struct block turned;     /* bits set while it is being written (pieces_out.c), or none */
    struct kept_sums *sums;  /* of its bits, if anyone needs them */
    /* The rest exists in deletable vectors only: see vector_size. */
    struct kept_sums *counter_sums;
    struct counters counters;
};

ALWAYS_INLINE size_t vector_size(bool deletable)
{
    return deletable ? sizeof(struct vector) : offsetof(struct vector, counter_sums);
}

/* Does anyone need to know about changes? */
ALWAYS_INLINE bool vector_watched(const struct vector *v)
{
    return ((uintptr_t)v->changes | (uintptr_t)v->turned.data | (uintptr_t)v->sums) != 0;
}

bool shape_valid(const struct shape *shape, const struct family *family);
/* The granularity of units: whole bytes, or whole blocks. Planned sizes are multiples of
   UNIT_STEP, so that they can be halved; folded ones need not be. */
uint64_t shape_step(tamis_layout layout);
bool shape_equal(const struct vector *x, const struct vector *y);
struct shape vector_shape(const struct vector *v);
uint64_t vector_positions_total(const struct vector *v); /* m */

/* With bits of its own, all zero. NULL: no memory. `counted` without `bits` is for columns. */
struct vector *vector_new(const tamis_allocator *a, const struct family *family, struct shape shape,
                          bool deletable, bool own_bits);
/* Read-only, on bits stored elsewhere; no counters. */
struct vector *vector_view(const tamis_allocator *a, const struct family *family,
                           struct shape shape, const uint64_t *words);
void vector_free(struct vector *v, const tamis_allocator *a);
struct vector *vector_clone(const struct vector *v, const struct family *family,
                            const tamis_allocator *a);
void vector_clear(struct vector *v);
/* Checksums of the pages of its bits (its own or a view, not a column) or counters, created on
   the first call and kept from then on; NULL if there is no memory. */
struct kept_sums *vector_sums(const struct vector *v, bool counters, const tamis_allocator *a);
/* The bit at this position changed; the second is for its counter. */
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

/* For any layout and stride. */
void vector_positions(const struct vector *v, tamis_digest digest, uint64_t *positions);
ALWAYS_INLINE bool vector_bit(const struct vector *v, uint64_t position)
{
    uint64_t at = position * v->stride + v->column;
    return word_load(&v->bits.words[at >> 6]) >> (at & 63) & 1;
}
ALWAYS_INLINE void vector_bit_set(struct vector *v, uint64_t position)
{
    uint64_t at = position * v->stride + v->column, *word = &v->bits.words[at >> 6];
    word_store(word, word_load(word) | UINT64_C(1) << (at & 63));
}
ALWAYS_INLINE void vector_bit_clear(struct vector *v, uint64_t position)
{
    uint64_t at = position * v->stride + v->column, *word = &v->bits.words[at >> 6];
    word_store(word, word_load(word) & ~(UINT64_C(1) << (at & 63)));
}
/* Bits 64 i .. 64 i + 63, zeros past the end. */
uint64_t vector_word(const struct vector *v, uint64_t i);
bool vector_has(const struct vector *v, tamis_digest digest);
uint64_t vector_count_ones(const struct vector *v);
double vector_rate_now(const struct vector *v);
size_t vector_bytes(const struct vector *v);
/* The load that counts towards the capacity. `load` drifts slightly when keys cover one another
   (a removal may clear a bit for an add that set none), so it is limited to the number of copies
   stored. */
ALWAYS_INLINE uint64_t vector_load(const struct vector *v)
{
    /* other threads may add at the same time */
    uint64_t load = __atomic_load_n(&v->load, __ATOMIC_RELAXED);
    return v->deletable ? min_u64(load, v->count) : load;
}
/* A vector whose bits show that it is full has no room, whatever its load. */
ALWAYS_INLINE bool vector_full(const struct vector *v)
{
    return vector_load(v) >= v->capacity || v->ones > v->ones_max;
}

/* Prefetches the bits and counters that adds and removals touch; at most BATCH digests. */
void vector_fetch(const struct vector *v, const tamis_digest *digests, size_t n);
/* Deletable vectors. Inserting may need memory for escapes: reserve first, then it cannot fail. */
bool vector_reserve(struct vector *v, const tamis_allocator *a);
bool vector_insert(struct vector *v, tamis_digest digest); /* true if a bit was set */
/* How often the j-th of k positions occurs among them. */
uint64_t positions_repeat(const uint64_t *positions, unsigned k, unsigned j);
/* The largest number of copies of the digest that the counters allow. */
uint64_t vector_copies(const struct vector *v, tamis_digest digest);
void vector_erase(struct vector *v, tamis_digest digest, uint64_t copies);

/* Copies n adjacent columns to n others, which are empty. */
void vector_fill_columns(struct vector *to, const struct vector *from, uint64_t n);
/* to |= from, for equal shapes; counters and counts are added. Room for the escapes must be
   reserved first. */
bool vector_unite_reserve(struct vector *to, const struct vector *from, const tamis_allocator *a);
void vector_unite(struct vector *to, const struct vector *from);
/* Makes v, a plain vector with bits of its own, all zero, x & y; false if there is no memory. */
bool vector_intersect(struct vector *v, const struct vector *x, const struct vector *y,
                      const tamis_allocator *a);
/* A new vector of half the units; NULL: no memory. The caller sets rate and capacity, and for a
   column its bits and their number. */
struct vector *vector_fold(const struct vector *v, const struct family *family,
                           const tamis_allocator *a);
bool vector_equal(const struct vector *x, const struct vector *y);

#endif
