/* Moves and counts fields of rows of bits, a word at a time. Folding a vector, widening a matrix
   and dropping a column spend their time here. */
#include "bit_rows.h"

#include "base/bytes.h"

/* ---- some rows in a word --------------------------------------------------------------------- */

/* How to change the distance between the rows in a word. */
struct regroup {
    unsigned rows; /* rows at a time, a power of two */
    unsigned n;    /* number of steps */
    bool apart;    /* to a larger distance */
    struct {
        unsigned shift;
        uint64_t stay, moved; /* the blocks of rows that stay, and the others after the move */
    } step[6];
};

/* The bits of this many rows at this distance. */
static uint64_t comb(unsigned rows, uint64_t period, uint64_t bits)
{
    uint64_t one = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1, all = 0;
    for (unsigned r = 0; r < rows; r++)
        all |= one << (r * period);
    return all;
}

static unsigned rows_in_word(uint64_t period)
{
    unsigned rows = 1;
    while (2 * rows * period <= 64)
        rows *= 2;
    return rows;
}

/* Step i joins blocks of 2^i rows, `wide` apart per row, into pairs that are `narrow` apart; in
   the opposite direction the steps run in reverse. */
static struct regroup regroup_plan(uint64_t from, uint64_t to, uint64_t bits)
{
    uint64_t wide = max_u64(from, to), narrow = min_u64(from, to);
    struct regroup g = {.rows = rows_in_word(wide), .apart = from < to};
    for (unsigned h = 1; h < g.rows && wide != narrow; h *= 2, g.n++) {
        uint64_t block = comb(h, narrow, bits);
        g.step[g.n].shift = (unsigned)(h * (wide - narrow));
        for (unsigned r = 0; r < g.rows; r += 2 * h) {
            g.step[g.n].stay |= block << (r * wide);
            g.step[g.n].moved |= block << (r * wide + h * narrow);
        }
    }
    return g;
}

/* Many words at once, which the compiler vectorises. */
enum { WORDS = 32 };

static void regroup(const struct regroup *g, uint64_t x[WORDS])
{
    for (unsigned i = 0; i < g->n; i++) {
        unsigned at = g->apart ? g->n - 1 - i : i, shift = g->step[at].shift;
        uint64_t stay = g->step[at].stay, moved = g->step[at].moved;
        if (g->apart)
            for (unsigned j = 0; j < WORDS; j++)
                x[j] = (x[j] & stay) | (x[j] & moved) << shift;
        else
            for (unsigned j = 0; j < WORDS; j++)
                x[j] = (x[j] & stay) | (x[j] >> shift & moved);
    }
}

/* The rows of a field, 2^log of them per word. */
struct bunch {
    uint64_t *words;
    uint64_t period, first, bits;
    unsigned log;
    uint64_t field;
};

static struct bunch bunch_of(const struct rows *rows, uint64_t bits, unsigned some)
{
    return (struct bunch){.words = rows->words,
                          .period = rows->period,
                          .first = rows->first,
                          .bits = bits,
                          .log = (unsigned)__builtin_ctz(some),
                          .field = comb(some, rows->period, bits)};
}

/* Rows `row` to `end`, in whole words and a remainder; `span` is the number of bits from the
   first to the last row of a word. */
struct pieces {
    uint64_t at, step, n, left;
    unsigned span, left_span;
};

ALWAYS_INLINE struct pieces pieces_of(const struct bunch *b, uint64_t row, uint64_t end)
{
    struct pieces p = {.at = row * b->period + b->first,
                       .step = b->period << b->log,
                       .n = (end - row) >> b->log,
                       .left = (end - row) & ((UINT64_C(1) << b->log) - 1)};
    p.span = (unsigned)(p.step - b->period + b->bits);
    p.left_span = (unsigned)((p.left - 1) * b->period + b->bits);
    return p;
}

static void bunch_read(const struct bunch *b, uint64_t row, uint64_t end, uint64_t x[WORDS])
{
    struct pieces p = pieces_of(b, row, end);
    const uint64_t *words = b->words, field = b->field;
    for (uint64_t i = 0; i < p.n; i++, p.at += p.step)
        x[i] = bits_from(words, p.at, p.span) & field;
    if (p.left)
        x[p.n] = bits_read(words, p.at, p.left_span) & field;
}

static void bunch_or(const struct bunch *b, uint64_t row, uint64_t end, const uint64_t x[WORDS])
{
    struct pieces p = pieces_of(b, row, end);
    uint64_t *words = b->words;
    for (uint64_t i = 0; i < p.n; i++, p.at += p.step)
        bits_or(words, p.at, p.span, x[i]);
    if (p.left)
        bits_or(words, p.at, p.left_span, x[p.n]);
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void long_row_or(uint64_t *to, uint64_t to_at, const uint64_t *from, uint64_t from_at,
                        uint64_t bits)
{
    uint64_t i = 0;
    if (((to_at | from_at) & 63) == 0)
        for (; i + 64 <= bits; i += 64)
            to[(to_at + i) >> 6] |= word_load(&from[(from_at + i) >> 6]);
    for (; i < bits; i += 64) {
        unsigned n = (unsigned)min_u64(64, bits - i);
        bits_or(to, to_at + i, n, bits_read(from, from_at + i, n));
    }
}

void rows_or(const struct rows *to, const struct rows *from, uint64_t n, uint64_t bits)
{
    /* the rows are contiguous: treat them as one */
    if (bits == to->period && bits == from->period) {
        long_row_or(to->words, to->first, from->words, from->first, n * bits);
        return;
    }
    if (max_u64(to->period, from->period) > 32) {
        for (uint64_t row = 0; row < n; row++)
            long_row_or(to->words, row * to->period + to->first, from->words,
                        row * from->period + from->first, bits);
        return;
    }
    struct regroup g = regroup_plan(from->period, to->period, bits);
    struct bunch source = bunch_of(from, bits, g.rows), target = bunch_of(to, bits, g.rows);
    for (uint64_t row = 0, end; row < n; row = end) {
        uint64_t x[WORDS] = {0};
        end = min_u64(n, row + WORDS * g.rows);
        bunch_read(&source, row, end, x);
        regroup(&g, x);
        bunch_or(&target, row, end, x);
    }
}

void rows_clear(const struct rows *rows, uint64_t n)
{
    unsigned some = rows_in_word(rows->period);
    uint64_t field = comb(some, rows->period, 1);
    for (uint64_t row = 0; row < n; row += some) {
        uint64_t at = row * rows->period + rows->first, here = field;
        if (n - row < some)
            here = comb((unsigned)(n - row), rows->period, 1);
        rows->words[at >> 6] &= ~(here << (at & 63));
        if (at & 63 && here >> (64 - (at & 63)))
            rows->words[(at >> 6) + 1] &= ~(here >> (64 - (at & 63)));
    }
}

uint64_t rows_ones(const struct rows *rows, uint64_t n)
{
    unsigned some = rows_in_word(rows->period);
    struct bunch source = bunch_of(rows, 1, some);
    uint64_t ones = 0;
    for (uint64_t row = 0, end; row < n; row = end) {
        uint64_t x[WORDS] = {0};
        end = min_u64(n, row + WORDS * some);
        bunch_read(&source, row, end, x);
        ones += bytes_ones(x, sizeof x);
    }
    return ones;
}

void rows_fold(uint64_t *out, const uint64_t *words, uint64_t n, uint64_t width)
{
    if (width > 32) {
        for (uint64_t row = 0; row < n; row++) {
            long_row_or(out, row * width, words, 2 * row * width, width);
            long_row_or(out, row * width, words, (2 * row + 1) * width, width);
        }
        return;
    }
    struct regroup g = regroup_plan(2 * width, width, width);
    struct rows whole = {(uint64_t *)(uintptr_t)words, 2 * width, 0}, half = {out, width, 0};
    struct bunch source = bunch_of(&whole, 2 * width, g.rows),
                 target = bunch_of(&half, width, g.rows);
    uint64_t field = comb(g.rows, 2 * width, width);
    for (uint64_t row = 0, end; row < n; row = end) {
        uint64_t x[WORDS] = {0};
        end = min_u64(n, row + WORDS * g.rows);
        bunch_read(&source, row, end, x);
        for (unsigned i = 0; i < WORDS; i++)
            x[i] = (x[i] | x[i] >> width) & field;
        regroup(&g, x);
        bunch_or(&target, row, end, x);
    }
}

/* Swaps blocks of 32, 16, ... 1. */
void bits_transpose(uint64_t m[64])
{
    uint64_t mask = UINT64_C(0x00000000FFFFFFFF);
    for (unsigned size = 32; size; size >>= 1, mask ^= mask << size)
        for (unsigned i = 0; i < 64; i = ((i | size) + 1) & ~size) {
            uint64_t swap = ((m[i] >> size) ^ m[i | size]) & mask;
            m[i] ^= swap << size;
            m[i | size] ^= swap;
        }
}
