/*
 * Rows of bits in words, some distance apart: a field of every row is moved, cleared or counted. Row r
 * of a field begins at bit r * period + first. The columns of a matrix are such fields; so are the
 * units of a vector, which is folded by uniting each two rows.
 *
 * Narrow rows are handled as many at a time as fit a word. To bring 2^t of them from one distance to
 * another takes t steps, each of which moves every second block of rows: two masks and a shift.
 */
#ifndef TAMIS_ROWS_H
#define TAMIS_ROWS_H

#include "base/base.h"

struct rows {
    uint64_t *words;
    uint64_t period, first;
};

/* Ors `bits` bits of n rows into those of another field, which nobody reads meanwhile. The words may
   be the same, the bits not. */
void rows_or(const struct rows *to, const struct rows *from, uint64_t n, uint64_t bits);
/* One bit of n rows. */
void rows_clear(const struct rows *rows, uint64_t n);
uint64_t rows_ones(const struct rows *rows, uint64_t n);
/* Row i of n, `width` bits wide and apart, is the union of rows 2 i and 2 i + 1; into zeroed words. */
void rows_fold(uint64_t *out, const uint64_t *words, uint64_t n, uint64_t width);

/* `n` (1..64) bits from bit `at`, and above them whatever is there. */
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

/* Ors them in, where no reader is. */
ALWAYS_INLINE void bits_or(uint64_t *words, uint64_t at, unsigned n, uint64_t value)
{
    unsigned shift = at & 63;
    words[at >> 6] |= value << shift;
    if (shift + n > 64)
        words[(at >> 6) + 1] |= value >> (64 - shift);
}

/* Bit j of word i goes to bit i of word j. */
void bits_transpose(uint64_t m[64]);

#endif
