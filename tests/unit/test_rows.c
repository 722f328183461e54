/* Fields of rows of bits, and counters that are folded: words at a time must do what a bit at a time
 * does. The model has one byte a bit. Memory ends where the bits do, so that a sanitizer notices what
 * goes past them.
 */

#include "bits/counters.h"
#include "hash/digest.h"
#include "harness.h"
#include "bits/bit_rows.h"

struct plane {
    uint64_t *words;
    uint8_t *bits; /* the model */
    uint64_t n;
};

static struct plane plane_new(uint64_t n, uint64_t *rng, unsigned density)
{
    uint64_t words = (n + 63) / 64;
    struct plane p = {calloc(words ? words : 1, 8), calloc(n ? n : 1, 1), n};
    for (uint64_t i = 0; p.words && p.bits && i < n; i++)
        if (rng_next(rng) % 100 < density) {
            p.bits[i] = 1;
            p.words[i / 64] |= UINT64_C(1) << i % 64;
        }
    return p;
}

static bool plane_is(const struct plane *p)
{
    for (uint64_t i = 0; i < (p->n + 63) / 64 * 64; i++)
        if ((p->words[i / 64] >> i % 64 & 1) != (i < p->n ? p->bits[i] : 0))
            return false;
    return true;
}

static void plane_free(struct plane *p)
{
    free(p->words);
    free(p->bits);
}

/* Widths of matrices, and others. */
static uint64_t some_period(uint64_t *rng)
{
    static const uint16_t ladder[] = {1,  2,  3,  4,   6,   8,   12,  16, 24,
                                      32, 48, 64, 128, 192, 256, 384, 512};
    return rng_next(rng) % 3 ? ladder[rng_next(rng) % 17] : 1 + rng_next(rng) % 130;
}

static uint64_t some_rows(uint64_t *rng)
{
    return rng_next(rng) % 4 ? rng_next(rng) % 70 : rng_next(rng) % 2200;
}

/* A field somewhere in rows of this period; the last row ends with it. */
static struct rows some_field(struct plane *p, uint64_t n, uint64_t period, uint64_t bits,
                              uint64_t *rng, unsigned density)
{
    uint64_t first = rng_next(rng) % (period - bits + 1);
    first += period * (rng_next(rng) % 3);
    *p = plane_new(n ? (n - 1) * period + first + bits : 0, rng, density);
    return (struct rows){p->words, period, first};
}

TEST(fields_are_united)
{
    uint64_t rng = harness_seed();
    for (int run = 0; run < 1200; run++) {
        uint64_t n = some_rows(&rng), x = some_period(&rng),
                 y = rng_next(&rng) % 3 ? some_period(&rng) : x;
        uint64_t least = min_u64(x, y);
        uint64_t bits = rng_next(&rng) % 2 ? 1 + rng_next(&rng) % least : run % 3 ? least : 1;
        struct plane to, from;
        struct rows mine = some_field(&to, n, x, bits, &rng, 20);
        struct rows theirs = some_field(&from, n, y, bits, &rng, 50);
        rows_or(&mine, &theirs, n, bits);
        for (uint64_t i = 0; i < n * bits; i++)
            to.bits[i / bits * x + mine.first + i % bits] |=
                from.bits[i / bits * y + theirs.first + i % bits];
        CHECK_MSG(plane_is(&to) && plane_is(&from),
                  "%" PRIu64 " rows, %" PRIu64 " bits, %" PRIu64 " to %" PRIu64 " apart", n, bits,
                  y, x);
        plane_free(&to);
        plane_free(&from);
    }
}

/* One column of a matrix into another of the same. */
TEST(fields_of_the_same_words_are_united)
{
    uint64_t rng = harness_seed();
    for (int run = 0; run < 400; run++) {
        uint64_t n = some_rows(&rng), period = 1 + some_period(&rng);
        struct plane p = plane_new(n * period, &rng, 40);
        uint64_t x = rng_next(&rng) % period, y = (x + 1 + rng_next(&rng) % (period - 1)) % period;
        rows_or(&(struct rows){p.words, period, x}, &(struct rows){p.words, period, y}, n, 1);
        for (uint64_t i = 0; i < n; i++)
            p.bits[i * period + x] |= p.bits[i * period + y];
        CHECK_MSG(plane_is(&p), "%" PRIu64 " rows, %" PRIu64 " apart", n, period);
        plane_free(&p);
    }
}

TEST(fields_are_counted_and_cleared)
{
    uint64_t rng = harness_seed();
    for (int run = 0; run < 600; run++) {
        uint64_t n = some_rows(&rng), period = some_period(&rng), ones = 0;
        struct plane p;
        struct rows field = some_field(&p, n, period, 1, &rng, 30);
        for (uint64_t i = 0; i < n; i++)
            ones += p.bits[i * period + field.first];
        CHECK_MSG(rows_ones(&field, n) == ones, "%" PRIu64 " rows, %" PRIu64 " apart", n, period);
        rows_clear(&field, n);
        for (uint64_t i = 0; i < n; i++)
            p.bits[i * period + field.first] = 0;
        CHECK_MSG(plane_is(&p), "%" PRIu64 " rows, %" PRIu64 " apart", n, period);
        plane_free(&p);
    }
}

TEST(rows_are_folded)
{
    uint64_t rng = harness_seed();
    for (int run = 0; run < 800; run++) {
        uint64_t n = some_rows(&rng), width = some_period(&rng);
        struct plane whole = plane_new(2 * n * width, &rng, 40),
                     half = plane_new(n * width, &rng, 0);
        rows_fold(half.words, whole.words, n, width);
        for (uint64_t i = 0; i < 2 * n * width; i++)
            half.bits[i / (2 * width) * width + i % width] |= whole.bits[i];
        CHECK_MSG(plane_is(&half), "%" PRIu64 " rows of %" PRIu64, n, width);
        plane_free(&whole);
        plane_free(&half);
    }
}

/* Sums that stay small, that reach 15 and go past it, from counters below it and beyond. */
TEST(counters_are_folded)
{
    static const uint8_t limits[] = {2, 7, 8, 9, 15, 16, 40};
    uint64_t rng = harness_seed(), escaped = 0;
    for (int run = 0; run < 400; run++) {
        uint64_t wanted = run % 2 ? 512 : 1, n = wanted * 16 * (1 + rng_next(&rng) % 9);
        if (wanted == 1)
            n += 8 * (rng_next(&rng) % 2); /* sizes are whole bytes */
        uint64_t limit = limits[rng_next(&rng) % 7], *model = calloc(n, sizeof *model);
        struct counters whole, half;
        CHECK(counters_new(&whole, &mem_system, 2 * n) && counters_new(&half, &mem_system, n));
        for (uint64_t i = 0; model && i < 2 * n; i++) {
            uint64_t value = rng_next(&rng) % 3 ? 0 : rng_next(&rng) % limit;
            if (rng_next(&rng) % 300 == 0)
                value = rng_next(&rng); /* two may be more than a number holds */
            CHECK(counters_reserve(&whole, &mem_system, 1));
            counters_add(&whole, i, value);
            uint64_t *sum = &model[i / (2 * wanted) * wanted + i % wanted];
            *sum = *sum + value < value ? UINT64_MAX : *sum + value;
        }
        CHECK(counters_fold(&half, &whole, wanted, &mem_system));
        size_t large = 0;
        bool same = model != NULL;
        for (uint64_t i = 0; same && i < n; i++) {
            large += model[i] >= COUNTER_ESCAPE;
            same = counters_get(&half, i) == model[i];
        }
        CHECK_MSG(same && half.escapes.used == large, "runs of %" PRIu64 ", %" PRIu64 " counters",
                  wanted, n);
        escaped += large;
        counters_free(&whole, &mem_system);
        counters_free(&half, &mem_system);
        free(model);
    }
    CHECK_MSG(escaped > 1000, "%" PRIu64 " large ones", escaped);
}

/* ---- forged places --------------------------------------------------------------------------- */

/* The most slots that a lookup in the table of large counters may go over. */
static size_t longest_run(const struct table_slots *slots)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < slots->room; i++) {
        run = slots->slot[i].count ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Large counters at positions that their hash, were its secret known, would put into a sixteenth of the
   table, one behind the other. It is not known, so they are placed like any others. */
TEST(large_counters_cannot_be_crowded)
{
    enum { N = 40000, ROOM = 65536 };
    uint64_t total = 32 * N, n = 0;
    struct counters c;
    if (!CHECK(counters_new(&c, &mem_system, total) && counters_reserve(&c, &mem_system, N)))
        return;
    const struct table_slots *slots = c.escapes.slots;
    CHECK_MSG(slots->room == ROOM, "%zu", slots->room);
    for (uint64_t at = 0; at < total && n < N; at++) {
        if (table_hash(mix64(at + GOLDEN)) >> slots->shift >= ROOM / 16)
            continue;
        counters_add(&c, at, COUNTER_ESCAPE);
        n++;
    }
    CHECK(n == N);
    CHECK_MSG(longest_run(slots) < 1000, "%zu slots in a run", longest_run(slots));
    counters_free(&c, &mem_system);
}

HARNESS_MAIN
