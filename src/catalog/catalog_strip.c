/*
 * Strips: transposes columns to rows and back, 64 by 64 bits at a time. Rows are `width` bits
 * apart: 1, 2 or 4 for as few columns, otherwise whole bytes, at most 64.
 */
#include "bits/bits.h"
#include "catalog.h"

uint32_t strip_width(uint32_t columns)
{
    if (columns <= 2)
        return columns;
    return columns <= 4 ? 4 : (uint32_t)round_up(columns, 8);
}

bool strip_width_valid(uint32_t width)
{
    return width == 1 || width == 2 || width == 4 ||
           (width >= 8 && width <= STRIP_COLUMNS && width % 8 == 0);
}

uint64_t strip_len(uint64_t rows, uint32_t width)
{
    return rows * width / 8;
}

uint64_t strip_column_words(uint64_t rows)
{
    return round_up(rows, 512) / 64;
}

/* Packs 64 rows of `width` bits, less than 8. */
static void narrow_rows(const uint64_t m[64], uint32_t width, uint8_t *out)
{
    uint64_t packed[4] = {0};
    for (unsigned i = 0; i < 64; i++)
        packed[i * width / 64] |= (m[i] & ((1u << width) - 1)) << (i * width % 64);
    memcpy(out, packed, (size_t)width * 8);
}

/* Bit i of byte j and bit j of byte i change places. */
ALWAYS_INLINE uint64_t transpose_eight(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & UINT64_C(0x00AA00AA00AA00AA);
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & UINT64_C(0x0000CCCC0000CCCC);
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & UINT64_C(0x00000000F0F0F0F0);
    return x ^ t ^ t << 28;
}

/* For up to eight columns, which a folder of up to 64 MB has: a fifth of the instructions of transposing
   64 by 64 bits. */
static void few_rows(const uint64_t *const *columns, uint32_t n, uint64_t words, uint32_t width,
                     uint8_t *out)
{
    uint64_t m[64];
    for (uint64_t w = 0; w < words; w++, out += (size_t)8 * width)
        for (unsigned k = 0; k < 8; k++) {
            uint64_t x = 0;
            for (uint32_t i = 0; i < n; i++)
                x |= (columns[i][w] >> (8 * k) & 0xFF) << (8 * i);
            x = transpose_eight(x);
            if (width == 8)
                memcpy(out + 8 * (size_t)k, &x, 8);
            for (unsigned i = 0; i < 8 && width < 8; i++)
                m[8 * k + i] = x >> (8 * i) & 0xFF;
            if (k == 7 && width < 8)
                narrow_rows(m, width, out);
        }
}

void strip_rows(const uint64_t *const *columns, uint32_t n, uint64_t words, uint32_t width,
                uint8_t *out)
{
    uint64_t m[64];
    if (n <= 8 && width <= 8) {
        few_rows(columns, n, words, width, out);
        return;
    }
    for (uint64_t w = 0; w < words; w++)
        for (uint32_t first = 0; first < n; first += 64) {
            uint32_t some = n - first < 64 ? n - first : 64;
            for (uint32_t i = 0; i < some; i++)
                m[i] = columns[first + i][w];
            memset(m + some, 0, (64 - some) * sizeof *m);
            bits_transpose(m);
            size_t bytes = width - first < 64 ? (width - first) / 8 : 8;
            uint8_t *row = out + 8 * w * width + first / 8;
            for (unsigned i = 0; i < 64; i++, row += width / 8)
                memcpy(row, &m[i], bytes);
        }
}

/* 64 columns, from `first` on, of up to 64 rows. */
static void rows_read(const uint8_t *rows, uint64_t row, uint64_t n, uint32_t width, uint32_t first,
                      uint64_t m[64])
{
    memset(m, 0, 64 * sizeof *m);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = (row + i) * width;
        if (width < 8)
            m[i] = rows[at / 8] >> (at % 8) & ((1u << width) - 1);
        else
            memcpy(&m[i], rows + at / 8 + first / 8, width - first < 64 ? (width - first) / 8 : 8);
    }
}

void strip_columns(const uint8_t *rows, uint64_t n_rows, uint32_t width, uint64_t *const *columns,
                   uint32_t n)
{
    uint64_t m[64];
    for (uint64_t row = 0; row < n_rows; row += 64)
        for (uint32_t first = 0; first < n; first += 64) {
            rows_read(rows, row, min_u64(64, n_rows - row), width, first, m);
            bits_transpose(m);
            for (uint32_t i = first; i < n && i < first + 64; i++)
                if (columns[i])
                    columns[i][row / 64] = m[i - first];
        }
}

void strip_build(const struct bits *shape, const tamis_digest *digests, uint64_t n,
                 uint32_t columns, uint64_t column_words, uint64_t *words)
{
    for (uint32_t i = 0; i < columns; i++) {
        struct bits bits = *shape;
        bits.words = words + i * column_words;
        column_fill(&bits, digests, n, i, columns);
    }
}
