/*
 * Vectors of many owners, bit-sliced: who may have this key? Vectors of one family and shape are the
 * columns of one matrix, so a query reads k rows of each matrix and ANDs them, for ten owners or for
 * ten thousand. An owner has any number of columns in any number of matrices, and may have the key if
 * one of them does.
 *
 *     matrix of a shape      column 0  1  2  3 ...            owner[0] = 4, owner[1] = 0,
 *              row 0                1  0  0  1                owner[2] = none, owner[3] = 4
 *              row 1                0  1  0  1                ...
 *
 * Any number of threads read while one writes, without locks, and see each owner either before or after
 * a change. New vectors are written into columns without an owner, then assigned to their owner; only
 * then are the old ones released. A delta is written in place, bit by bit: meanwhile `changing` names
 * the owner, and queries use its filter instead. Every change increments `version`; a query during
 * which it changed is repeated. So a change costs the rows that change and touches no other owner.
 * Rejected: a second column for each owner (1.5 times the memory), and rewriting all rows of a column
 * (thousands of times as many for a small delta).
 */
#ifndef TAMIS_COLUMNS_H
#define TAMIS_COLUMNS_H

#include "base/lookup.h"
#include "os/readers.h"
#include "bits/bits.h"

#define COLUMN_FREE   UINT32_MAX
#define COLUMNS_STILL UINT32_MAX /* no owner's columns are being changed in place */
#define COLUMNS_RUN   16         /* keys queried together */

/* The matrix of a shape and the owners of its columns; a wider one replaces both. */
struct columns_matrix {
    struct retired retired;
    struct matrix *bits;    /* its width is a power of two below 64 or a multiple of 64 */
    uint32_t *free, n_free; /* columns without an owner; the next one to use is last */
    _Atomic uint32_t owner[];
};

struct columns_family {
    struct lookup_entry entry;
    struct retired retired;
    struct family family;
    struct columns_group *_Atomic groups;
    struct columns_family *_Atomic next, *_Atomic *back;
};

/* All columns of one shape. */
struct columns_group {
    struct lookup_entry entry;
    struct retired retired;
    struct columns_family *family;
    struct bits bits; /* the shape */
    uint64_t rows;    /* bits of a column */
    uint64_t used;    /* columns with an owner */
    uint64_t wanted;  /* columns that will be added */
    struct columns_matrix *_Atomic matrix;
    struct columns_group *_Atomic next, *_Atomic *back;
};

struct columns {
    tamis_allocator allocator;
    rows_fn and_rows; /* for this processor */
    struct columns_family *_Atomic families;
    _Atomic uint64_t version;
    _Atomic uint32_t changing;
    struct lookup by_family, by_shape;
    struct retired *retired;
};

/* The columns of an owner, one for each of its vectors; stored by the owner, initially zero. */
struct columns_held {
    struct column_place {
        struct columns_group *group;
        uint32_t column;
    } * place;
    size_t n;
};

struct columns_put {
    uint32_t owner;
    struct columns_held *held;
    struct vector *const *vectors; /* of any families and shapes */
    size_t n;
};

void columns_init(struct columns *c, const tamis_allocator *a);
/* Before this, free what owners hold with columns_forget; there must be no readers. */
void columns_free(struct columns *c);
void columns_forget(struct columns *c, struct columns_held *held);

/* Replaces the columns of each owner by its vectors. With several owners, 64 columns are written
   at a time. On failure nothing has changed. */
tamis_error columns_put(struct columns *c, const struct columns_put *puts, size_t n);
/* Removes the owner's columns. */
void columns_drop(struct columns *c, struct columns_held *held);
/* The owner's vectors were `before`, like its columns, and the new ones must differ from them
   only in bits: only differing rows are written. False if they differ otherwise. */
bool columns_change(struct columns *c, const struct columns_put *put, struct vector *const *before);

/* For each of n keys, at most COLUMNS_RUN: sets bit i of its `words` words for each owner i that
   may have it. Returns COLUMNS_STILL, or the owner whose bits are unreliable: query its vectors.
   The caller must be inside (readers_enter). */
uint32_t columns_locate(struct columns *c, const tamis_key *keys, size_t n, uint64_t *owners,
                        size_t words);

#endif
