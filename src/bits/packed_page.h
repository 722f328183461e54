/* The bits of a page: found, inserted and walked through. Bodies for functions of packed.c, which compiles some of them for
   other processors too. */
#ifndef TAMIS_PACKED_PAGE_H
#define TAMIS_PACKED_PAGE_H

#include <string.h>

#include "kernel.h"
#include "packed.h"

/* ---- bits ------------------------------------------------------------------------------------ */

ALWAYS_INLINE uint64_t ones(unsigned bits)
{
    return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
}

ALWAYS_INLINE uint64_t get_bits(const uint64_t *w, uint64_t at, unsigned n)
{
    unsigned shift = at & 63;
    uint64_t x = w[at >> 6] >> shift;
    if (shift + n > 64)
        x |= w[(at >> 6) + 1] << (64 - shift);
    return x & ones(n);
}

ALWAYS_INLINE void set_bits(uint64_t *w, uint64_t at, unsigned n, uint64_t x)
{
    unsigned shift = at & 63;
    uint64_t *word = &w[at >> 6];
    word[0] = (word[0] & ~(ones(n) << shift)) | x << shift;
    if (shift + n > 64)
        word[1] = (word[1] & ~(ones(n) >> (64 - shift))) | x >> (64 - shift);
}

/* Puts the bits of `x` that are in `mask` into a word. */
ALWAYS_INLINE void put_masked(uint64_t *word, uint64_t x, uint64_t mask)
{
    *word = (*word & ~mask) | (x & mask);
}

/* Bits 0 to `end` - 1, of a word that begins with bit `base`. */
ALWAYS_INLINE uint64_t mask_below(uint64_t base, uint64_t end)
{
    return end < base + 64 ? ones((unsigned)(end - base)) : UINT64_MAX;
}

typedef uint64_t words4 __attribute__((vector_size(32)));

/* Moves bits `from` to `end` - 1 down. */
ALWAYS_INLINE void bits_down(uint64_t *w, uint64_t from, uint64_t end, unsigned by)
{
    uint64_t last = (end - 1) >> 6, k = (from - by) >> 6, to = end - by;
    if (from == end)
        return;
    uint64_t first = UINT64_MAX << ((from - by) & 63), ends = to >> 6;
    if (k < ends) {
        put_masked(&w[k], w[k] >> by | w[k + 1] << (64 - by), first);
        first = UINT64_MAX;
        for (k++; k + 4 <= ends; k += 4) {
            words4 x, next;
            memcpy(&x, w + k, sizeof x);
            memcpy(&next, w + k + 1, sizeof next);
            x = x >> by | next << (64 - by);
            memcpy(w + k, &x, sizeof x);
        }
        for (; k < ends; k++)
            w[k] = w[k] >> by | w[k + 1] << (64 - by);
    }
    if (k << 6 < to)
        put_masked(&w[k], w[k] >> by | (k < last ? w[k + 1] << (64 - by) : 0),
                   first & ones(to & 63));
}

/* Inserts a one before bit `at`; bits up to `end` - 1 move up. */
ALWAYS_INLINE void insert_one(uint64_t *w, uint64_t at, uint64_t end)
{
    uint64_t k = end >> 6, mask = mask_below(end & ~UINT64_C(63), end + 1);
    for (; k > at >> 6; k--, mask = UINT64_MAX)
        put_masked(&w[k], w[k] << 1 | w[k - 1] >> 63, mask);
    uint64_t here = UINT64_C(1) << (at & 63), above = mask & ~(here - 1);
    put_masked(&w[k], (w[k] & above) << 1 | here, above);
}

/* The position of the x-th one of a word, from 1 on. */
typedef unsigned (*nth_fn)(uint64_t word, uint32_t x);

static unsigned nth_one(uint64_t word, uint32_t x)
{
    for (; x > 1; x--)
        word &= word - 1;
    return (unsigned)__builtin_ctzll(word);
}

#ifdef TAMIS_X86
#include <immintrin.h>

#define FAST __attribute__((target("avx2,bmi,bmi2,popcnt")))

static inline FAST unsigned nth_one_fast(uint64_t word, uint32_t x)
{
    return (unsigned)__builtin_ctzll(_pdep_u64(UINT64_C(1) << (x - 1), word));
}
#endif

/* The position after the x-th zero, from 1 on. */
ALWAYS_INLINE uint32_t after_zero(const uint64_t *w, uint32_t x, nth_fn nth)
{
    for (uint32_t base = 0;; base += 64) {
        uint64_t zeros = ~*w++;
        uint32_t n = (uint32_t)__builtin_popcountll(zeros);
        if (n >= x)
            return base + nth(zeros, x) + 1;
        x -= n;
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

ALWAYS_INLINE uint32_t words_for(struct page_form form, uint32_t n)
{
    return ((UINT32_C(1) << form.quotient) + n + n * form.rest + 63) / 64;
}

ALWAYS_INLINE uint64_t rest_at(struct page_form form, uint32_t words, uint32_t i)
{
    return (uint64_t)words * 64 - (uint64_t)(i + 1) * form.rest;
}

ALWAYS_INLINE bool matches(struct page_form form, uint64_t entry, uint64_t rest)
{
    uint64_t differ = entry ^ rest;
    return form.marked ? differ < (entry & -entry) << 1 : differ == 0;
}

ALWAYS_INLINE bool find_in(const uint64_t *page, uint32_t n, struct page_form form, uint64_t value,
                           struct page_at *at, nth_fn nth)
{
    uint32_t words = words_for(form, n), quotient = (uint32_t)(value >> form.rest);
    uint64_t rest = value & ones(form.rest);
    uint32_t bit = quotient ? after_zero(page, quotient, nth) : 0, i = bit - quotient;
    *at = (struct page_at){bit, i};
    for (; page[bit >> 6] >> (bit & 63) & 1; bit++, i++) {
        uint64_t entry = get_bits(page, rest_at(form, words, i), form.rest);
        if (matches(form, entry, rest))
            return true;
        if (entry < rest)
            *at = (struct page_at){bit + 1, i + 1};
    }
    return false;
}

ALWAYS_INLINE void insert_in(uint64_t *page, uint32_t n, struct page_form form, uint64_t value,
                             struct page_at at)
{
    uint32_t words = words_for(form, n + 1);
    insert_one(page, at.bit, (UINT64_C(1) << form.quotient) + n);
    bits_down(page, (uint64_t)words * 64 - (uint64_t)n * form.rest,
              (uint64_t)words * 64 - (uint64_t)at.index * form.rest, form.rest);
    set_bits(page, rest_at(form, words, at.index), form.rest, value & ones(form.rest));
}

/* All values, in order; false at the end. `bit` begins with 0. */
struct page_walk {
    const uint64_t *page;
    uint32_t n, words, bit, i;
    struct page_form form;
};

ALWAYS_INLINE struct page_walk walk_of(const uint64_t *page, uint32_t n, struct page_form form)
{
    return (struct page_walk){.page = page, .n = n, .words = page_words(form, n), .form = form};
}

ALWAYS_INLINE bool walk_next(struct page_walk *w, uint64_t *value)
{
    if (w->i == w->n)
        return false;
    uint64_t left = w->page[w->bit >> 6] >> (w->bit & 63);
    while (!left) {
        w->bit = (w->bit | 63) + 1;
        left = w->page[w->bit >> 6];
    }
    w->bit += (uint32_t)__builtin_ctzll(left);
    *value = (uint64_t)(w->bit - w->i) << w->form.rest |
             get_bits(w->page, rest_at(w->form, w->words, w->i), w->form.rest);
    w->bit++;
    w->i++;
    return true;
}

#endif
