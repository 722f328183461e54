/*
 * Vectors of many owners, bit-sliced: who may have this key? Vectors of one shape are the columns of
 * one matrix, so a question reads k rows of each matrix and ands them, whether there are ten owners or
 * ten thousand. An owner has any number of columns in any number of matrices, and may have the key if
 * one of them has.
 *
 *     matrix of a shape      column 0  1  2  3 ...            owner[0] = 4, owner[1] = 0,
 *              row 0                1  0  0  1                owner[2] = none, owner[3] = 4
 *              row 1                0  1  0  1                ...
 *
 * Readers are beside one writer without locks. Bits are written into columns that no reader looks at;
 * then a new state takes the place of the old one: matrices, and who owns which column. A column that
 * was given up is used again when no reader can be in a state that has it.
 */
#ifndef TAMIS_COLUMNS_H
#define TAMIS_COLUMNS_H

#include <stdatomic.h>

#include "kernel.h"
#include "mem.h"

#define COLUMN_FREE UINT32_MAX       /* nobody's */
#define COLUMN_GONE (UINT32_MAX - 1) /* nobody's, but readers may still be looking */
#define OWNERS_MAX  UINT32_C(0xFFFFFF00)

/* One matrix. */
struct columns_group {
    struct bits bits; /* shape of a column, and the words of the whole */
    uint64_t rows;
    uint64_t width; /* columns: bits from row to row, a power of two below 64 or a multiple of it */
    uint32_t used;  /* columns with an owner */
    struct block memory;
    struct columns_group *retired;
    uint32_t owner[]; /* of each column */
};

struct columns_state {
    struct columns_state *retired;
    uint32_t n;
    struct columns_group *group[];
};

struct columns {
    tamis_allocator allocator;
    struct columns_state *_Atomic state;
    struct columns_state *retired_states;
    struct columns_group *retired_groups;
    struct guard guard;
};

tamis_error columns_init(struct columns *c, const tamis_allocator *a);
void columns_free(struct columns *c);

/* The owner's columns are now these vectors, whose words are as vectors have them; the ones before
   are gone. Vectors are alike if units, k and kernel are; the family must outlive the columns. */
tamis_error columns_put(struct columns *c, uint32_t owner, const struct bits *vectors, size_t n);
/* Its columns go. Nothing to do is no error. */
tamis_error columns_drop(struct columns *c, uint32_t owner);

/* Bit i of `owners`, of n words, is set for each owner i that may have the key. */
void columns_locate(struct columns *c, tamis_digest digest, uint64_t *owners, size_t n);

/* For the writer, or while nothing changes. */
struct columns_state *columns_now(const struct columns *c);
uint64_t columns_bytes(const struct columns *c);
/* Bits 64 i .. 64 i + 63 of a column. */
uint64_t columns_word(const struct columns_group *g, uint64_t column, uint64_t i);
/* The least width for so many. */
uint64_t columns_width(uint64_t columns);
/* A matrix made elsewhere: all its owners must be new. It belongs to the columns then, on success. */
struct columns_group *columns_group_new(const tamis_allocator *a, const struct bits *shape,
                                        uint64_t width, bool memory);
void columns_group_free(struct columns_group *g, const tamis_allocator *a);
tamis_error columns_adopt(struct columns *c, struct columns_group *g);

#endif
