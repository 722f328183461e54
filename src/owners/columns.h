/*
 * Vectors of many owners, bit-sliced: who may have this key? Vectors of one family and shape are the
 * columns of one matrix, so a question reads k rows of each matrix and ands them, whether there are ten
 * owners or ten thousand. An owner has any number of columns in any number of matrices, and may have
 * the key if one of them has.
 *
 *     matrix of a shape      column 0  1  2  3 ...            owner[0] = 4, owner[1] = 0,
 *              row 0                1  0  0  1                owner[2] = none, owner[3] = 4
 *              row 1                0  1  0  1                ...
 *
 * Readers are beside one writer without locks, and see each owner before or after a change. New
 * vectors are written into columns that are nobody's, then given to their owner; only then the old ones
 * are taken from it. A delta is written in place, bit by bit: meanwhile `changing` names the owner,
 * and whoever asks must ask its filter instead. Every change moves `version` on; a question during
 * which it moved is asked again. So a change costs the rows that change, and no other owner is looked
 * at; tried and left: a second column for each owner (half as much memory again), and writing all
 * rows of a column anew (thousands of times as many for a small delta).
 */
#ifndef TAMIS_COLUMNS_H
#define TAMIS_COLUMNS_H

#include "base/lookup.h"
#include "os/readers.h"
#include "bits/bits.h"

#define COLUMN_FREE   UINT32_MAX
#define COLUMNS_STILL UINT32_MAX /* no owner's columns are changing in place */
#define COLUMNS_RUN   16         /* keys that are asked together */
#define OWNERS_MAX    UINT32_C(0xFFFFFF00)

/* The memory of a shape; a wider one takes its place. */
struct columns_matrix {
    struct retired retired;
    uint64_t width; /* columns: bits from row to row, a power of two below 64 or a multiple of it */
    struct block memory;
    uint32_t *free, n_free; /* columns of nobody, the next one last */
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
    uint64_t rows;
    uint64_t used;   /* columns with an owner */
    uint64_t wanted; /* and to come */
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

/* The columns of an owner, one for each of its vectors: the owner's to keep, zeros to begin with. */
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
/* What owners held is to be freed before, with columns_forget, readers being gone. */
void columns_free(struct columns *c);
void columns_forget(struct columns *c, struct columns_held *held);

/* The columns of each owner are now its vectors; those before are gone. Several owners at once are
   written 64 columns at a time. On failure nothing has changed. */
tamis_error columns_put(struct columns *c, const struct columns_put *puts, size_t n);
/* The owner's columns go. */
void columns_drop(struct columns *c, struct columns_held *held);
/* The owner's vectors were `before`, as its columns are, and are to be alike in all but bits: only rows
   that differ are written, and `written` says how many. False if they are not alike. */
bool columns_change(struct columns *c, const struct columns_put *put, struct vector *const *before,
                    uint64_t *written);

/* For each of n keys, at most COLUMNS_RUN: bit i of its `words` words is set for each owner i that may
   have it. Returns COLUMNS_STILL, or the owner whose bits are not to be trusted: ask its vectors. The
   caller has gone in (readers_enter). */
uint32_t columns_locate(struct columns *c, const tamis_key *keys, size_t n, uint64_t *owners,
                        size_t words);

#endif
