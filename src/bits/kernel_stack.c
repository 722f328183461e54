/* Queries stacks of vectors through the kernels of one vector, for rows without a specific body. */
#include "kernel_stack.h"

#include <string.h>

bool any_in_turn(const void *stack, size_t vectors, tamis_digest digest)
{
    for (size_t j = 0; j + 1 < vectors; j++)
        bits_at(stack, j)->kernel->prefetch(bits_at(stack, j), &digest, 1);
    for (size_t j = vectors; j-- > 0;) /* newest first: most keys are there */
        if (bits_at(stack, j)->kernel->has_one(bits_at(stack, j), digest))
            return true;
    return false;
}

void stack_by_groups(const void *stack, size_t vectors, const tamis_digest *digests, size_t n,
                     uint8_t *found)
{
    enum { GROUP = BATCH / 4 };
    memset(found, 0, n);
    for (size_t j = 0; j < vectors; j++)
        bits_at(stack, j)->kernel->prefetch(bits_at(stack, j), digests, n < GROUP ? n : GROUP);
    for (size_t i = 0; i < n; i += GROUP) {
        size_t some = n - i < GROUP ? n - i : GROUP, next = n - i - some;
        next = next < GROUP ? next : GROUP;
        for (size_t j = 0; j < vectors; j++) {
            const struct bits *bits = bits_at(stack, j);
            if (next && !bits_small(bits))
                bits->kernel->prefetch(bits, digests + i + some, next);
            bits->kernel->has(bits, digests + i, some, found + i);
        }
    }
}

static void levels_add(struct levels *levels, const void *stack, size_t vectors, bool small)
{
    for (size_t i = 0; i < vectors; i++) {
        const struct bits *bits = bits_at(stack, i);
        if (bits->k == levels->k && bits_small(bits) == small) {
            levels->words[levels->n] = bits->words;
            levels->units[levels->n++] = bits->units;
        }
    }
}

void stack_by_levels(const void *stack, size_t vectors, const tamis_digest *digests, size_t n,
                     uint8_t *found, levels_fn have)
{
    struct levels levels;
    uint64_t ks = 0;
    if (vectors > STACK_MOST) {
        stack_by_groups(stack, vectors, digests, n, found);
        return;
    }
    for (size_t i = 0; i < vectors; i++)
        ks |= UINT64_C(1) << (bits_at(stack, i)->k - 1);
    memset(found, 0, n);
    for (; ks; ks &= ks - 1) {
        levels.k = (unsigned)__builtin_ctzll(ks) + 1;
        levels.n = 0;
        levels_add(&levels, stack, vectors, false);
        levels.fetched = levels.n;
        levels_add(&levels, stack, vectors, true);
        for (size_t j = 0; j < levels.fetched; j++)
            for (size_t i = 0; i < n && i < FAR; i++)
                fetch(level_line(&levels, j, digests[i].a));
        have(&levels, digests, n, found);
    }
}
