/*
 * Queries several vectors for the same keys; and code that the blocked rows of wide registers
 * share.
 *
 * The bits of a key depend only on k, not on the size, so blocked vectors of equal k share them;
 * they are called levels. For each vector and key it remains to find the line, fetch it and test
 * it. A line is prefetched to the L2 cache FAR keys ahead, and from there to L1 one key ahead: a
 * load that waits while L2 is busy with misses delays everything behind it, which makes a stack
 * larger than the caches 25 % slower, while the second prefetch makes a smaller one 5 % slower.
 * Line addresses are recomputed rather than stored, which would take more loads.
 */
#ifndef TAMIS_KERNEL_STACK_H
#define TAMIS_KERNEL_STACK_H

#include "kernel.h"

#define FAR        24
#define STACK_MOST 64 /* vectors; taller stacks are queried vector by vector */

/* The vectors of one k; the first `fetched` of them need prefetching. */
struct levels {
    const uint64_t *words[STACK_MOST];
    uint64_t units[STACK_MOST];
    size_t n, fetched;
    unsigned k;
};

ALWAYS_INLINE const void *level_line(const struct levels *levels, size_t j, uint64_t a)
{
    return (const char *)levels->words[j] + 64 * mul_high(a, levels->units[j]);
}

/* At digest i of n: prefetches the lines that later digests need in level j. */
ALWAYS_INLINE void level_fetch(const struct levels *levels, size_t j, const tamis_digest *digests,
                               size_t i, size_t n)
{
    fetch(level_line(levels, j, digests[i + FAR < n ? i + FAR : i].a));
    __builtin_prefetch(level_line(levels, j, digests[i + 1 < n ? i + 1 : i].a), 0, 3);
}

/* found[i] |= one of the levels has all bits of digest i; the first FAR lines are already
   requested. */
typedef void (*levels_fn)(const struct levels *levels, const tamis_digest *digests, size_t n,
                          uint8_t *found);

/* has_stack by levels. */
void stack_by_levels(const void *stack, size_t vectors, const tamis_digest *digests, size_t n,
                     uint8_t *found, levels_fn have);

ALWAYS_INLINE uint64_t block_index(const struct bits *bits, tamis_digest d)
{
    return 8 * mul_high(d.a, bits->units);
}

/* Prefetches the line of the key AHEAD of this one. */
ALWAYS_INLINE void line_ahead(const struct bits *bits, const tamis_digest *digests, size_t i,
                              size_t n)
{
    if (LIKELY(i + AHEAD < n))
        fetch(bits->words + block_index(bits, digests[i + AHEAD]));
}

/* Tests or adds a key; `rounds` is the number of rounds of 8 probes if it is known, otherwise 0. */
typedef bool (*key_fn)(const struct bits *bits, tamis_digest digest, int rounds);

/* Any number of keys through `one`, which is inlined, with lines prefetched ahead. */
ALWAYS_INLINE void each_key(const struct bits *bits, const tamis_digest *digests, size_t n,
                            uint8_t *out, key_fn one, int rounds)
{
    blocked_prefetch(bits, digests, n < AHEAD ? n : AHEAD);
    for (size_t i = 0; i < n; i++) {
        line_ahead(bits, digests, i, n);
        out[i] = one(bits, digests[i], rounds);
    }
}

/* The same for keys whose lines were prefetched; keeps what was found before. */
ALWAYS_INLINE void or_each_key(const struct bits *bits, const tamis_digest *digests, size_t n,
                               uint8_t *found, key_fn one, int rounds)
{
    for (size_t i = 0; i < n; i++)
        found[i] |= one(bits, digests[i], rounds);
}

/* One body per number of rounds, so that rounds are not counted for each key. */
#define BY_ROUNDS(body, bits, ...)      \
    do {                                \
        if ((bits)->k <= 8)             \
            body(bits, __VA_ARGS__, 1); \
        else if ((bits)->k <= 16)       \
            body(bits, __VA_ARGS__, 2); \
        else                            \
            body(bits, __VA_ARGS__, 0); \
    } while (0)

/* The row of an instruction set; functions that are not hot come from the scalar row. */
#define BLOCKED_ROW(isa)                                                                           \
    {                                                                                              \
        .name = "blocked, " #isa, .layout = TAMIS_BLOCKED, .unit_bits = BLOCK_BITS, .local = true, \
        .has_one = has_one_##isa, .has_any = has_any_##isa,                                        \
        .has_key = {has_key_8_##isa, has_key_16_##isa},                                            \
        .add_key = {add_key_8_##isa, add_key_16_##isa}, .prefetch = blocked_prefetch,              \
        .has = has_##isa, .has_stack = has_stack_##isa, .has_stream = has_stream_##isa,            \
        .add = add_##isa, .add_one = add_one_##isa, .add_shared = blocked_add_shared,              \
        .fill = fill_positions, .positions = blocked_positions, .rate = blocked_rate,              \
    }

#endif
