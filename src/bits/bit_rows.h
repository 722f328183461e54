/*
 * Rows of bits in words, at a fixed distance: a field of every row is moved, cleared or counted.
 * Row r of a field begins at bit r * period + first. The columns of a matrix are such fields, and
 * so are the units of a vector, which is folded by ORing pairs of rows.
 *
 * Narrow rows are handled as many at a time as fit into a word. Changing the distance of 2^t of
 * them takes t steps, each of which moves every second block of rows: two masks and a shift.
 */
#ifndef TAMIS_ROWS_H
#define TAMIS_ROWS_H

#include "base/base.h"

struct rows {
    uint64_t *words;
    uint64_t period, first;
};

/* ORs `bits` bits of n rows into those of another field, which has no readers meanwhile. Both
   may be in the same words, but must not overlap. */
void rows_or(const struct rows *to, const struct rows *from, uint64_t n, uint64_t bits);
/* Clears one bit of n rows. */
void rows_clear(const struct rows *rows, uint64_t n);
uint64_t rows_ones(const struct rows *rows, uint64_t n);
/* Row i of n, `width` bits wide, becomes the OR of rows 2 i and 2 i + 1; `out` is zeroed words. */
void rows_fold(uint64_t *out, const uint64_t *words, uint64_t n, uint64_t width);

/* `n` (1..64) bits from bit `at` on; the bits above them are undefined. */
ALWAYS_INLINE uint64_t bits_from(const uint64_t *words, uint64_t at, unsigned n)
{
    unsigned shift = at & 63;
    uint64_t value = word_load(&words[at >> 6]) >> shift;
    if (shift + n > 64)
        value |= word_load(&words[(at >> 6) + 1]) << (64 - shift);
    return value;
}

ALWAYS_INLINE uint64_t bits_read(const uint64_t *words, uint64_t at, unsigned n)
{
    uint64_t value = bits_from(words, at, n);
    return n == 64 ? value : value & ((UINT64_C(1) << n) - 1);
}

/* ORs them in; there must be no readers. */
ALWAYS_INLINE void bits_or(uint64_t *words, uint64_t at, unsigned n, uint64_t value)
{
    unsigned shift = at & 63;
    words[at >> 6] |= value << shift;
    if (shift + n > 64)
        words[(at >> 6) + 1] |= value >> (64 - shift);
}

/* Moves bit j of word i to bit i of word j. */
void bits_transpose(uint64_t m[64]);

#endif
