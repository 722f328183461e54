/* Vectors of one shape, bit-sliced: a query ANDs k rows, for 2 columns or for 500. Columns are
   added while others read; widening makes a new matrix and retires the old one. */
#include "matrix.h"

#define TOGETHER 16 /* queries whose rows are prefetched together */

uint64_t matrix_width_for(uint64_t columns)
{
    static const uint16_t ladder[] = {1,  2,  3,  4,   6,   8,   12,  16, 24,
                                      32, 48, 64, 128, 192, 256, 384, 512};
    for (size_t i = 0; i < sizeof ladder / sizeof *ladder; i++)
        if (columns <= ladder[i])
            return ladder[i];
    uint64_t width = 512;
    while (width < columns)
        width = round_up(width + width / 4, 512);
    return width;
}

/* Uses these words, or zeroed ones of its own if NULL. */
static struct matrix *matrix_alloc(const tamis_allocator *a, const struct bits *shape,
                                   uint64_t width, const uint64_t *words)
{
    struct matrix *matrix = mem_new0(a, 1, sizeof *matrix);
    size_t bits, slack = 16;
    if (!matrix)
        return NULL;
    matrix->bits = *shape;
    matrix->width = width;
    bool made = mul_size((size_t)shape->units, (size_t)width, &bits);
    if (made && words)
        made = block_copy(a, words, bits / 8, bits / 8 + slack, &matrix->memory);
    else if (made)
        made = block_new(a, bits / 8 + slack, &matrix->memory);
    if (!made) {
        mem_free(a, matrix, 1, sizeof *matrix);
        return NULL;
    }
    matrix->bits.words = matrix->memory.data;
    return matrix;
}

struct matrix *matrix_new(const tamis_allocator *a, const struct bits *shape, uint64_t width)
{
    return matrix_alloc(a, shape, width, NULL);
}

struct matrix *matrix_view(const tamis_allocator *a, const struct bits *shape, uint64_t width,
                           const uint64_t *words)
{
    struct matrix *matrix = mem_new0(a, 1, sizeof *matrix);
    if (!matrix)
        return NULL;
    matrix->bits = *shape;
    matrix->bits.words = (uint64_t *)(uintptr_t)words;
    matrix->width = width;
    return matrix;
}

void matrix_free(struct matrix *matrix, const tamis_allocator *a)
{
    while (matrix) {
        struct matrix *older = matrix->retired;
        block_free(a, &matrix->memory);
        mem_free(a, matrix, 1, sizeof *matrix);
        matrix = older;
    }
}

void matrix_rows(const struct matrix *matrix, const struct arrangement *order, uint64_t first,
                 uint64_t n, uint64_t width, uint64_t *out)
{
    const uint64_t *words = matrix->bits.words;
    rows_or(&(struct rows){out, width, 0},
            &(struct rows){matrix->bits.words, matrix->width, first * matrix->width}, n,
            min_u64(width, matrix->width));
    for (uint64_t row = 0; row < n && order->n_moved; row++) {
        uint64_t from = (first + row) * matrix->width, to = row * width;
        for (uint32_t i = 0; i < order->n_moved; i++) {
            uint64_t at = to + order->moved[i];
            out[at >> 6] &= ~(UINT64_C(1) << (at & 63));
            bits_or(out, at, 1, bits_read(words, from + order->columns[order->moved[i]], 1));
        }
    }
}

struct matrix *matrix_resize(const struct matrix *matrix, const tamis_allocator *a, uint64_t width)
{
    bool same = width == matrix->width;
    struct matrix *other = matrix_alloc(a, &matrix->bits, width, same ? matrix->bits.words : NULL);
    if (!other || same)
        return other;
    rows_or(&(struct rows){other->bits.words, width, 0},
            &(struct rows){matrix->bits.words, matrix->width, 0}, matrix->bits.units,
            min_u64(width, matrix->width));
    return other;
}

struct matrix *matrix_fold(const struct matrix *matrix, const tamis_allocator *a)
{
    struct bits shape = matrix->bits;
    shape.units /= 2;
    struct matrix *half = matrix_new(a, &shape, matrix->width);
    if (half)
        rows_fold(half->bits.words, matrix->bits.words, shape.units, matrix->width);
    return half;
}

uint64_t matrix_words(const struct matrix *matrix)
{
    return (matrix->width + 63) / 64;
}

bool matrix_match(const struct matrix *matrix, tamis_digest digest, uint64_t *columns)
{
    uint64_t rows[K_MAX];
    matrix->bits.kernel->positions(&matrix->bits, digest, rows);
    return columns_match(matrix, rows, 0, matrix_words(matrix), columns, kernel_rows());
}

/* The number of rows that a query reads before a non-member is rejected: each row leaves half the columns. */
static unsigned rows_expected(const struct matrix *matrix)
{
    unsigned n = 3;
    for (uint64_t width = matrix->width; width > 1; width >>= 1)
        n++;
    return n < matrix->bits.k ? n : matrix->bits.k;
}

static bool any_column(const struct matrix *matrix, const uint64_t *rows, rows_fn wide)
{
    uint64_t left[COLUMNS_CHUNK], words = matrix_words(matrix);
    for (uint64_t i = 0; i < words; i += COLUMNS_CHUNK)
        if (columns_match(matrix, rows, i, min_u64(COLUMNS_CHUNK, words - i), left, wide))
            return true;
    return false;
}

void matrix_has(const struct matrix *matrix, const tamis_digest *digests, size_t n, uint8_t *found)
{
    uint64_t rows[TOGETHER][K_MAX];
    unsigned expected = rows_expected(matrix);
    rows_fn wide = kernel_rows();
    for (size_t i = 0; i < n; i += TOGETHER) {
        size_t group = n - i < TOGETHER ? n - i : TOGETHER;
        for (size_t g = 0; g < group; g++) {
            matrix->bits.kernel->positions(&matrix->bits, digests[i + g], rows[g]);
            for (unsigned j = 0; j < expected; j++)
                fetch(&matrix->bits.words[rows[g][j] * matrix->width >> 6]);
        }
        for (size_t g = 0; g < group; g++)
            found[i + g] |= any_column(matrix, rows[g], wide);
    }
}

/*
 * Rows repeat every `period` words. The words of one residue are added bit by bit in planes: bit b
 * of plane j is bit j of the count at b. 255 words fill the planes, which are then emptied.
 */
enum { PLANES = 8, PLANES_FULL = 255 };

static void planes_empty(const uint64_t planes[PLANES], uint64_t first, uint64_t width,
                         uint64_t *counts)
{
    for (unsigned b = 0; b < 64; b++) {
        uint64_t count = 0;
        for (unsigned j = 0; j < PLANES; j++)
            count |= (planes[j] >> b & 1) << j;
        counts[(first + b) % width] += count;
    }
}

void matrix_count_ones(const void *words, uint64_t rows, uint64_t width, uint64_t *counts)
{
    const uint8_t *bytes = words;
    uint64_t len = rows * width / 8; /* the number of rows is a multiple of 8 */
    uint64_t period = width >= 64 ? width / 64 : 64 % width == 0 ? 1 : 3;
    uint64_t n = (len + 7) / 8;
    for (uint64_t start = 0; start < n; start += PLANES_FULL * period)
        for (uint64_t residue = 0; residue < period; residue++) {
            uint64_t planes[PLANES] = {0};
            uint64_t end = min_u64(n, start + PLANES_FULL * period);
            for (uint64_t i = start + residue; i < end; i += period) {
                uint64_t carry = 0;
                memcpy(&carry, bytes + 8 * i, (size_t)min_u64(8, len - 8 * i));
                for (unsigned j = 0; carry && j < PLANES; j++) {
                    uint64_t both = planes[j] & carry;
                    planes[j] ^= carry;
                    carry = both;
                }
            }
            planes_empty(planes, 64 * residue, width, counts);
        }
}

void matrix_column_move(struct matrix *matrix, uint64_t to, uint64_t from)
{
    struct rows target = {matrix->bits.words, matrix->width, to};
    struct rows source = {matrix->bits.words, matrix->width, from};
    rows_clear(&target, matrix->bits.units);
    rows_or(&target, &source, matrix->bits.units, 1);
}
