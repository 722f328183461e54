/*
 * The rate of a set. The entries of a part match a share of its keys that follows from their known bits: its mass. The slots
 * of coarse entries match a little more, in the lines where these begin and end: up to a fiftieth of the rate at 10 %, less
 * at lower ones. It is computed from the list of them.
 */
#include "lines_place.h"

/* How many w of a line, from `first` to `end` - 1, are from `low` to `low` + `n` - 1? All are signed: `low` may be moved
   below 0. */
static int64_t line_overlap(int64_t first, int64_t end, int64_t low, int64_t n)
{
    int64_t from = low > first ? low : first, to = low + n < end ? low + n : end;
    return to > from ? to - from : 0;
}

/* In the lines where the entry begins and ends, its slots match those w too that are as many away from what they stand for
   as a slot can express. */
static uint64_t coarse_beyond(const struct body *b, uint64_t key)
{
    struct line_span span = span_of(b, key);
    int64_t period = INT64_C(1) << (b->width - 1);
    uint64_t all = 0;
    for (uint64_t line = span.first;; line = span.last) {
        int64_t first = (int64_t)first_of(b, line), end = (int64_t)first_of(b, line + 1);
        uint64_t piece = coarse_piece(b, key, line);
        int64_t low = (int64_t)((piece & (piece - 1)) >> 1), n = (int64_t)(piece & -piece);
        if (n >= period)
            all += (uint64_t)(end - first - line_overlap(first, end, low, n));
        else
            all += (uint64_t)(line_overlap(first, end, low - period, n) +
                              line_overlap(first, end, low + period, n));
        if (line == span.last)
            return all;
    }
}

static uint64_t list_beyond(const struct body *b)
{
    uint64_t all = 0;
    for (uint32_t i = 0; b->rare && i < b->rare->coarse.n; i++)
        all += coarse_beyond(b, b->rare->coarse.entry[i].key);
    return all;
}

uint64_t part_beyond(const struct body *b)
{
    struct rare *rare = b->rare;
    if (!rare || rare->coarse.n == 0)
        return 0;
    if (!rare->beyond_known)
        rare->beyond = list_beyond(b);
    rare->beyond_known = true;
    return rare->beyond;
}

static double rate_of_parts(const struct lines *l, bool beyond)
{
    const struct lines_root *root = lines_root_of(l);
    double sum = 0;
    for (uint32_t i = 0; i < root_positions(root);) {
        const struct body *b = body_at(root, i);
        sum += mass_share(b, b->mass + (beyond ? list_beyond(b) : 0)) * body_positions(root, b);
        i += body_positions(root, b);
    }
    return sum / root_positions(root);
}

double lines_rate(const struct lines *l)
{
    return rate_of_parts(l, true);
}

double lines_rate_rough(const struct lines *l)
{
    return rate_of_parts(l, false);
}
