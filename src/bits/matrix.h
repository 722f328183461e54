/*
 * Vectors of one shape stored bit-sliced: row p holds bit p of every vector, one column each. A
 * query reads the k rows of its positions and ANDs them, for 2 columns or for 500; the remaining
 * bits are the columns that match (Guo et al., section 3.5.3).
 *
 * Rows are `width` bits apart. A matrix widens by a factor (columns 1, 2, 3, 4, 6, 8, 12 ... 512,
 * then by a quarter), so a new column costs amortised O(rows). Widening makes a new matrix, since
 * readers may still be in the old one.
 */
#ifndef TAMIS_MATRIX_H
#define TAMIS_MATRIX_H

#include "base/base.h"
#include "base/mem.h"
#include "bit_rows.h"
#include "kernel.h"

#define MATRIX_COLUMNS_MAX (UINT32_C(1) << 20)

struct matrix {
    struct bits bits; /* shape of a column, and the words of the whole matrix */
    uint64_t width;   /* bits between rows */
    struct block memory;
    struct matrix *retired; /* the matrix that this one replaced, while readers may use it */
};

/* Smallest width on the ladder for that many columns. */
uint64_t matrix_width_for(uint64_t columns);
struct matrix *matrix_new(const tamis_allocator *a, const struct bits *shape, uint64_t width);
/* Read-only, on bits stored elsewhere. */
struct matrix *matrix_view(const tamis_allocator *a, const struct bits *shape, uint64_t width,
                           const uint64_t *words);
void matrix_free(struct matrix *matrix, const tamis_allocator *a);
/* A copy of another width; columns past it are omitted and must be empty. */
struct matrix *matrix_resize(const struct matrix *matrix, const tamis_allocator *a, uint64_t width);

/* ORs pairs of rows, which folds every column to half its size. */
struct matrix *matrix_fold(const struct matrix *matrix, const tamis_allocator *a);

#define COLUMNS_CHUNK \
    64 /* words of columns that are tested together, so that they fit on the stack: 4096 columns */

/* Which columns have a one in each of these k rows? Sets left[i] to word first + i of the answer, for
   i below n, and returns whether there are any. Rows of less than 64 bits have one word. */
ALWAYS_INLINE bool columns_match(const struct matrix *matrix, const uint64_t *rows, uint64_t first,
                                 uint64_t n, uint64_t *left, rows_fn and_rows)
{
    const uint64_t *words = matrix->bits.words;
    uint64_t width = matrix->width;
    unsigned k = matrix->bits.k;
    if (width < 64) {
        uint64_t all = (UINT64_C(1) << width) - 1;
        for (unsigned j = 0; j < k && all; j++)
            all &= bits_from(words, rows[j] * width, (unsigned)width);
        *left = all;
        return all != 0;
    }
    return and_rows(words + first, width / 64, n, rows, k, left);
}

/* found[i] |= some column has digest i. */
void matrix_has(const struct matrix *matrix, const tamis_digest *digests, size_t n, uint8_t *found);
/* The columns that match, as (width + 63) / 64 words. */
uint64_t matrix_words(const struct matrix *matrix);
bool matrix_match(const struct matrix *matrix, tamis_digest digest, uint64_t *columns);
/* Adds the ones of every column to counts[0..width-1]. `words` need not be aligned. */
void matrix_count_ones(const void *words, uint64_t rows, uint64_t width, uint64_t *counts);
/* Columns in another order: position i gets column columns[i]. `moved` lists each i that differs
   from columns[i]. */
struct arrangement {
    const uint32_t *columns, *moved;
    uint32_t n_moved;
};
/* Rows first .. first + n - 1 in this order, `width` bits apart, written to zeroed words. */
void matrix_rows(const struct matrix *matrix, const struct arrangement *order, uint64_t first,
                 uint64_t n, uint64_t width, uint64_t *out);
/* Copies column `from` to another column `to`. Needs exclusive access. */
void matrix_column_move(struct matrix *matrix, uint64_t to, uint64_t from);

#endif
