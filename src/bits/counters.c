/* Counters of 4 bits beside the bits of a deletable vector. Adds and removals touch k of them,
   queries none. Counters above 14, which occur only with repeated keys or in small vectors, are
   in a separate hash table. */
#include "counters.h"

#include "hash/digest.h"

static uint8_t nibble_get(const struct counters *counters, uint64_t position)
{
    const uint8_t *nibbles = counters->nibbles.data;
    return (nibbles[position >> 1] >> (4 * (position & 1))) & 15;
}

static void nibble_set(struct counters *counters, uint64_t position, uint8_t value)
{
    uint8_t *byte = (uint8_t *)counters->nibbles.data + (position >> 1);
    unsigned shift = 4 * (position & 1);
    *byte = (uint8_t)((*byte & ~(15u << shift)) | (unsigned)value << shift);
}

/* ---- the side table -------------------------------------------------------------------------- */

/* Folded twice: folded once it is nearly linear in the position, and for one secret in a
   hundred, neighbouring positions formed runs of 100 slots and more instead of 16 (measured with
   40,000 in 131,072). */
static size_t escape_home(const struct counters *counters, uint64_t position)
{
    uint64_t secret = process_secret();
    return mul_fold(mul_fold(position ^ GOLDEN, secret), secret) & (counters->room - 1);
}

static struct escape *escape_find(const struct counters *counters, uint64_t position)
{
    size_t i = escape_home(counters, position);
    while (counters->escapes[i].position != position + 1)
        i = (i + 1) & (counters->room - 1);
    return &counters->escapes[i];
}

void counters_escape(struct counters *counters, uint64_t position, uint64_t value)
{
    size_t i = escape_home(counters, position);
    while (counters->escapes[i].position != 0)
        i = (i + 1) & (counters->room - 1);
    counters->escapes[i] = (struct escape){position + 1, value};
    counters->used++;
}

/* Closes the gap by moving back entries that would no longer be found. */
static void escape_delete(struct counters *counters, struct escape *gone)
{
    size_t mask = counters->room - 1, hole = (size_t)(gone - counters->escapes);
    for (size_t i = (hole + 1) & mask; counters->escapes[i].position; i = (i + 1) & mask) {
        size_t home = escape_home(counters, counters->escapes[i].position - 1);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            counters->escapes[hole] = counters->escapes[i];
            hole = i;
        }
    }
    counters->escapes[hole].position = 0;
    counters->used--;
}

/* ---- counters -------------------------------------------------------------------------------- */

bool counters_new(struct counters *counters, const tamis_allocator *a, uint64_t n)
{
    *counters = (struct counters){.n = n};
    return block_new(a, (size_t)(n + 1) / 2, &counters->nibbles);
}

void counters_free(struct counters *counters, const tamis_allocator *a)
{
    block_free(a, &counters->nibbles);
    mem_free(a, counters->escapes, counters->room, sizeof *counters->escapes);
    *counters = (struct counters){0};
}

bool counters_reserve(struct counters *counters, const tamis_allocator *a, size_t more)
{
    size_t need = 2 * (counters->used + more);
    if (LIKELY(need <= counters->room))
        return true;
    struct counters grown = *counters;
    grown.room = counters->room ? counters->room : 64;
    while (grown.room < need)
        grown.room *= 2;
    grown.escapes = mem_new0(a, grown.room, sizeof *grown.escapes);
    if (!grown.escapes)
        return false;
    grown.used = 0;
    for (size_t i = 0; i < counters->room; i++)
        if (counters->escapes[i].position)
            counters_escape(&grown, counters->escapes[i].position - 1, counters->escapes[i].value);
    mem_free(a, counters->escapes, counters->room, sizeof *counters->escapes);
    *counters = grown;
    return true;
}

bool counters_copy(struct counters *to, const struct counters *from, const tamis_allocator *a)
{
    size_t len = (size_t)(from->n + 1) / 2;
    *to = (struct counters){.n = from->n};
    if (!block_copy(a, from->nibbles.data, len, len, &to->nibbles) ||
        !counters_reserve(to, a, from->used)) {
        counters_free(to, a);
        return false;
    }
    for (size_t i = 0; i < from->room; i++)
        if (from->escapes[i].position)
            counters_escape(to, from->escapes[i].position - 1, from->escapes[i].value);
    return true;
}

uint64_t counters_get(const struct counters *counters, uint64_t position)
{
    uint8_t value = nibble_get(counters, position);
    return value < COUNTER_ESCAPE ? value : escape_find(counters, position)->value;
}

/* No key is added 2^64 times, but foreign bytes may claim it: sums saturate. */
static uint64_t sum_capped(uint64_t x, uint64_t y)
{
    return x + y < x ? UINT64_MAX : x + y;
}

uint64_t counters_add(struct counters *counters, uint64_t position, uint64_t by)
{
    uint8_t value = nibble_get(counters, position);
    if (UNLIKELY(value == COUNTER_ESCAPE)) {
        struct escape *escape = escape_find(counters, position);
        uint64_t before = escape->value;
        escape->value = sum_capped(before, by);
        return before;
    }
    if (LIKELY(by < (uint64_t)COUNTER_ESCAPE - value)) {
        nibble_set(counters, position, (uint8_t)(value + by));
    } else {
        nibble_set(counters, position, COUNTER_ESCAPE);
        counters_escape(counters, position, sum_capped(value, by));
    }
    return value;
}

/* Sixteen counters; `at` is a multiple of 16. */
static uint64_t sixteen(const struct counters *counters, uint64_t at)
{
    uint64_t word;
    memcpy(&word, (const uint8_t *)counters->nibbles.data + at / 2, sizeof word);
    return word;
}

#define LOW_NIBBLES UINT64_C(0x0F0F0F0F0F0F0F0F)
#define ONES        UINT64_C(0x0101010101010101)

/* Does a sum of two counters need an escape? Nibbles are added in bytes, so that there is no
   carry between them. */
static bool sixteen_escape(uint64_t x, uint64_t y)
{
    uint64_t even = (x & LOW_NIBBLES) + (y & LOW_NIBBLES) + ONES;
    uint64_t odd = (x >> 4 & LOW_NIBBLES) + (y >> 4 & LOW_NIBBLES) + ONES;
    return ((even | odd) & ONES << 4) != 0;
}

size_t counters_sum_escapes(const struct counters *to, const struct counters *from)
{
    size_t escapes = 0;
    for (uint64_t at = 0; at < to->n; at += 16) {
        uint64_t n = min_u64(16, to->n - at);
        if (n == 16 && !sixteen_escape(sixteen(to, at), sixteen(from, at)))
            continue;
        for (uint64_t i = at; i < at + n; i++)
            escapes += sum_capped(counters_get(to, i), counters_get(from, i)) >= COUNTER_ESCAPE;
    }
    return escapes;
}

void counters_sum(struct counters *to, const struct counters *from)
{
    for (uint64_t at = 0; at < to->n; at += 16) {
        uint64_t n = min_u64(16, to->n - at);
        if (n == 16 && !sixteen_escape(sixteen(to, at), sixteen(from, at))) {
            uint64_t sum = sixteen(to, at) + sixteen(from, at);
            memcpy((uint8_t *)to->nibbles.data + at / 2, &sum, sizeof sum);
            continue;
        }
        for (uint64_t i = at; i < at + n; i++)
            counters_add(to, i, counters_get(from, i));
    }
}

/* Packs the low nibbles of eight bytes. */
static uint64_t nibbles_join(uint64_t x)
{
    x = (x | x >> 4) & UINT64_C(0x00FF00FF00FF00FF);
    x = (x | x >> 8) & UINT64_C(0x0000FFFF0000FFFF);
    return (x | x >> 16) & UINT32_MAX;
}

/* Sixteen sums of pairs from `at` on; false if one needs an escape. In runs of one, the pair is
   the two halves of a byte. */
static bool sixteen_fold(const struct counters *from, uint64_t at, uint64_t run, uint64_t *sum)
{
    if (run > 1) {
        uint64_t first = at / run * 2 * run + at % run;
        uint64_t x = sixteen(from, first), y = sixteen(from, first + run);
        *sum = x + y;
        return !sixteen_escape(x, y);
    }
    uint64_t x = sixteen(from, 2 * at), y = sixteen(from, 2 * at + 16);
    x = (x & LOW_NIBBLES) + (x >> 4 & LOW_NIBBLES);
    y = (y & LOW_NIBBLES) + (y >> 4 & LOW_NIBBLES);
    *sum = nibbles_join(x) | nibbles_join(y) << 32;
    return (((x + ONES) | (y + ONES)) & ONES << 4) == 0;
}

bool counters_fold(struct counters *half, const struct counters *from, uint64_t run,
                   const tamis_allocator *a)
{
    for (uint64_t at = 0; at < half->n; at += 16) {
        uint64_t n = min_u64(16, half->n - at), sum;
        if (n == 16 && sixteen_fold(from, at, run, &sum)) {
            memcpy((uint8_t *)half->nibbles.data + at / 2, &sum, sizeof sum);
            continue;
        }
        for (uint64_t i = at; i < at + n; i++) {
            uint64_t first = i / run * 2 * run + i % run;
            if (!counters_reserve(half, a, 1))
                return false;
            counters_add(half, i,
                         sum_capped(counters_get(from, first), counters_get(from, first + run)));
        }
    }
    return true;
}

uint64_t counters_sub(struct counters *counters, uint64_t position, uint64_t by)
{
    uint8_t value = nibble_get(counters, position);
    if (UNLIKELY(value == COUNTER_ESCAPE)) {
        struct escape *escape = escape_find(counters, position);
        escape->value -= min_u64(by, escape->value);
        uint64_t left = escape->value;
        if (left < COUNTER_ESCAPE) {
            escape_delete(counters, escape);
            nibble_set(counters, position, (uint8_t)left);
        }
        return left;
    }
    uint8_t left = by < value ? (uint8_t)(value - by) : 0;
    nibble_set(counters, position, left);
    return left;
}

#define LOW_BITS UINT64_C(0x1111111111111111)

/* Bit i of the result is bit 4 i of x. */
static uint64_t every_fourth(uint64_t x)
{
    x = (x | x >> 3) & UINT64_C(0x0303030303030303);
    x = (x | x >> 6) & UINT64_C(0x000f000f000f000f);
    x = (x | x >> 12) & UINT64_C(0x000000ff000000ff);
    return (x | x >> 24) & 0xffff;
}

void counters_masks(const uint8_t *nibbles, size_t len, uint64_t *set, uint64_t *large)
{
    uint64_t words[4] = {0};
    memcpy(words, nibbles, len);
    *set = *large = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t x = words[i];
        *set |= every_fourth((x | x >> 1 | x >> 2 | x >> 3) & LOW_BITS) << (16 * i);
        *large |= every_fourth(x & x >> 1 & x >> 2 & x >> 3 & LOW_BITS) << (16 * i);
    }
}

uint64_t counters_changed(const struct counters *x, const struct counters *y, uint64_t i)
{
    size_t len = (size_t)min_u64(32, (x->n - 64 * i) / 2);
    const uint8_t *mine = (const uint8_t *)x->nibbles.data + 32 * i;
    uint64_t changed, set, large, unused;
    counters_masks(mine, len, &set, &large);
    if (!y)
        return set;
    uint64_t a[4] = {0}, b[4] = {0};
    memcpy(a, mine, len);
    memcpy(b, (const uint8_t *)y->nibbles.data + 32 * i, len);
    for (unsigned j = 0; j < 4; j++)
        a[j] ^= b[j];
    counters_masks((const uint8_t *)a, sizeof a, &changed, &unused);
    for (uint64_t both = large & ~changed; both; both &= both - 1) {
        uint64_t at = 64 * i + (uint64_t)__builtin_ctzll(both);
        if (counters_get(x, at) != counters_get(y, at))
            changed |= both & -both;
    }
    return changed;
}

bool counters_equal(const struct counters *x, const struct counters *y)
{
    if (x->n != y->n || x->used != y->used ||
        memcmp(x->nibbles.data, y->nibbles.data, (size_t)(x->n + 1) / 2) != 0)
        return false;
    for (size_t i = 0; i < x->room; i++)
        if (x->escapes[i].position &&
            escape_find(y, x->escapes[i].position - 1)->value != x->escapes[i].value)
            return false;
    return true;
}
