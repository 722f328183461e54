/*
 * The words of a short text, for indexing whole lines: about fifty keys in 200 bytes, most of them
 * seen before, so a byte may cost a few nanoseconds. The text is folded into a buffer padded with
 * zeros, and 64 bytes at a time are split into compounds and single tokens. A caller that has seen
 * a compound recently has seen its tokens too, and is not given them again. Words point into the
 * buffer: 32 bytes from the start of a word are readable, whatever its length.
 */
#ifndef TAMIS_WORDS_H
#define TAMIS_WORDS_H

#include "types.h"

#if defined(__SSE2__) && !defined(TAMIS_SCALAR_ONLY)
#include <emmintrin.h>
#define WORDS_HAVE_VECTOR 1
#else
#define WORDS_HAVE_VECTOR 0
#endif

#define WORDS_TEXT ((size_t)16 << 10) /* longer texts are split token by token */
#define WORDS_ROOM (WORDS_TEXT + 128)

enum { BYTE_WORD = 1, BYTE_JOIN = 2 };
extern const uint8_t byte_kinds[256];

#if WORDS_HAVE_VECTOR
ALWAYS_INLINE __m128i bytes_in(__m128i x, char first, char n)
{
    __m128i at = _mm_sub_epi8(x, _mm_set1_epi8(first));
    return _mm_cmpeq_epi8(_mm_min_epu8(at, _mm_set1_epi8(n)), at);
}

/* Folds 16 bytes in place; returns which belong to words and which may join words. */
ALWAYS_INLINE void words_sixteen(uint8_t *text, unsigned shift, uint64_t *word, uint64_t *join)
{
    __m128i x = _mm_loadu_si128((const __m128i *)text);
    x = _mm_or_si128(x, _mm_and_si128(bytes_in(x, 'A', 25), _mm_set1_epi8(0x20)));
    _mm_storeu_si128((__m128i *)text, x);
    __m128i w = _mm_or_si128(bytes_in(x, 'a', 25), bytes_in(x, '0', 9));
    w = _mm_or_si128(w, _mm_cmpeq_epi8(x, _mm_set1_epi8('_')));
    w = _mm_or_si128(w, x); /* bytes from 0x80 on */
    __m128i j = _mm_or_si128(bytes_in(x, '-', 2), _mm_cmpeq_epi8(x, _mm_set1_epi8(':')));
    j = _mm_or_si128(j, _mm_cmpeq_epi8(x, _mm_set1_epi8('@')));
    *word |= (uint64_t)(unsigned)_mm_movemask_epi8(w) << shift;
    *join |= (uint64_t)(unsigned)_mm_movemask_epi8(j) << shift;
}
#endif

/* Does the same for 64 bytes. */
ALWAYS_INLINE void words_masks(uint8_t *text, uint64_t *word, uint64_t *join)
{
    *word = *join = 0;
#if WORDS_HAVE_VECTOR
    for (unsigned i = 0; i < 64; i += 16)
        words_sixteen(text + i, i, word, join);
#else
    for (unsigned i = 0; i < 64; i++) {
        text[i] = (uint8_t)fold((char)text[i]);
        *word |= (uint64_t)(byte_kinds[text[i]] == BYTE_WORD) << i;
        *join |= (uint64_t)(byte_kinds[text[i]] == BYTE_JOIN) << i;
    }
#endif
}

/* Takes a word; returns true if its tokens are not needed. Inlined. */
typedef bool (*words_fn)(void *context, const uint8_t *word, size_t len);

/* Yields what is joined, then its tokens and compounds, or a single token; returns how many.
   Text joined by different bytes is not a compound, but a caller that has seen it recently has
   seen all of it. */
ALWAYS_INLINE unsigned words_unit(const uint8_t *at, const uint8_t *end, words_fn give,
                                  void *context)
{
    const uint8_t *start = at, *first = at;
    unsigned n = 1, before = 0;
    if (give(context, at, (size_t)(end - at)))
        return n;
    for (const uint8_t *to = at; at < end; at = to + 1, n++) {
        for (to = at; to < end && byte_kinds[*to] == BYTE_WORD; to++)
            ;
        if (n == 1 && to == end)
            return n;
        give(context, at, (size_t)(to - at));
        unsigned after = to < end ? *to : 0;
        if (before && before != after && (first != start || to != end)) {
            give(context, first, (size_t)(to - first));
            n++;
        }
        first = before == after ? first : at;
        before = after;
    }
    return n;
}

/* Returns how many. The text has at most WORDS_TEXT bytes. */
ALWAYS_INLINE unsigned words_each(tamis_key text, words_fn give, void *context)
{
    uint8_t buffer[WORDS_ROOM];
    const uint8_t *start = NULL;
    uint64_t word, join, word_before = 0, unit_before = 0;
    unsigned n = 0;
    memcpy(buffer, text.data, text.len);
    memset(buffer + text.len, 0, 128);
    for (size_t base = 0; base < text.len; base += 64) {
        words_masks(buffer + base, &word, &join);
        uint64_t next = byte_kinds[buffer[base + 64]] == BYTE_WORD;
        uint64_t unit = word | (join & (word << 1 | word_before) & (word >> 1 | next << 63));
        uint64_t edges = unit ^ (unit << 1 | unit_before);
        word_before = word >> 63;
        unit_before = unit >> 63;
        for (; edges; edges &= edges - 1) {
            const uint8_t *at = buffer + base + __builtin_ctzll(edges);
            if (start)
                n += words_unit(start, at, give, context);
            start = start ? NULL : at;
        }
    }
    return start ? n + words_unit(start, buffer + text.len, give, context) : n;
}

#endif
