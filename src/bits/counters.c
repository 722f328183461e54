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

/* Keyed, so that nobody can choose positions that crowd the table: without the secret, 40,000 of them
   could form one run of slots. */
static uint64_t escape_name(uint64_t position)
{
    return mix64(position + process_secret());
}

void counters_escape(struct counters *counters, uint64_t position, uint64_t value)
{
    table_add(&counters->escapes, escape_name(position), value);
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
    table_free(&counters->escapes, a);
    *counters = (struct counters){0};
}

bool counters_widen(struct counters *counters, const tamis_allocator *a, size_t more)
{
    bool made = table_reserve(&counters->escapes, a, more);
    table_reclaim(&counters->escapes, a); /* lookups do not read counters */
    return made;
}

bool counters_copy(struct counters *to, const struct counters *from, const tamis_allocator *a)
{
    size_t len = (size_t)(from->n + 1) / 2;
    *to = (struct counters){.n = from->n};
    if (block_copy(a, from->nibbles.data, len, len, &to->nibbles) &&
        table_unite(&to->escapes, &from->escapes, a))
        return true;
    counters_free(to, a);
    return false;
}

uint64_t counters_get(const struct counters *counters, uint64_t position)
{
    uint8_t value = nibble_get(counters, position);
    return value < COUNTER_ESCAPE ? value : table_get(&counters->escapes, escape_name(position));
}

/* No key is added 2^64 times, but foreign bytes may claim it: sums saturate. */
static uint64_t sum_capped(uint64_t x, uint64_t y)
{
    return x + y < x ? UINT64_MAX : x + y;
}

/* Adds to a counter of 15, or to one that becomes 15. */
static __attribute__((noinline)) uint64_t escape_add(struct counters *counters, uint64_t position,
                                                     uint8_t value, uint64_t by)
{
    uint64_t name = escape_name(position);
    if (value < COUNTER_ESCAPE) {
        nibble_set(counters, position, COUNTER_ESCAPE);
        table_add(&counters->escapes, name, sum_capped(value, by));
        return value;
    }
    return table_add(&counters->escapes, name,
                     min_u64(by, UINT64_MAX - table_get(&counters->escapes, name)));
}

uint64_t counters_add(struct counters *counters, uint64_t position, uint64_t by)
{
    uint8_t value = nibble_get(counters, position);
    if (UNLIKELY(by >= (uint64_t)COUNTER_ESCAPE - value))
        return escape_add(counters, position, value, by);
    nibble_set(counters, position, (uint8_t)(value + by));
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
        uint64_t name = escape_name(position), left = table_sub(&counters->escapes, name, by);
        if (left < COUNTER_ESCAPE) {
            table_sub(&counters->escapes, name, left);
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
    return x->n == y->n && table_equal(&x->escapes, &y->escapes) &&
           memcmp(x->nibbles.data, y->nibbles.data, (size_t)(x->n + 1) / 2) == 0;
}
