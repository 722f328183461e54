/* Searches for a string, with or without regard to case: most of what find does with a text, so it
   must not cost more than reading the text. */
#define _GNU_SOURCE
#include "reader_scan.h"

#if SCAN_HAS_VECTOR
#include <immintrin.h>
#endif

struct needle_bytes {
    const uint8_t *data;
    size_t len;
};

static uint8_t small(uint8_t c)
{
    return (uint8_t)(c - 'A') < 26 ? c | 32 : c;
}

static uint8_t capital(uint8_t c)
{
    return (uint8_t)(c - 'a') < 26 ? c & ~32 : c;
}

static bool same(const uint8_t *at, const struct needle_bytes *needle, bool fold)
{
    if (!fold)
        return memcmp(at, needle->data, needle->len) == 0;
    for (size_t i = 0; i < needle->len; i++)
        if (small(at[i]) != small(needle->data[i]))
            return false;
    return true;
}

static const uint8_t *search_plain(const uint8_t *p, const uint8_t *end,
                                   const struct needle_bytes *needle, bool fold)
{
    if (!fold)
        return memmem(p, (size_t)(end - p), needle->data, needle->len);
    for (; (size_t)(end - p) >= needle->len; p++)
        if (same(p, needle, true))
            return p;
    return NULL;
}

#if SCAN_HAS_VECTOR
/* The first and the last byte of a needle, in lower and upper case. */
struct ends {
    __m128i first, First, last, Last;
    size_t far; /* the distance between them */
};

ALWAYS_INLINE struct ends ends_of(const struct needle_bytes *needle, bool fold)
{
    uint8_t one = needle->data[0], two = needle->data[needle->len - 1];
    return (struct ends){_mm_set1_epi8((char)(fold ? small(one) : one)),
                         _mm_set1_epi8((char)capital(one)),
                         _mm_set1_epi8((char)(fold ? small(two) : two)),
                         _mm_set1_epi8((char)capital(two)), needle->len - 1};
}

/* Which of the 16 positions from p on have both bytes. */
ALWAYS_INLINE __m128i both_at(const uint8_t *p, const struct ends *e, bool fold)
{
    __m128i a = _mm_loadu_si128((const __m128i *)p);
    __m128i b = _mm_loadu_si128((const __m128i *)(p + e->far));
    __m128i one = _mm_cmpeq_epi8(a, e->first), two = _mm_cmpeq_epi8(b, e->last);
    if (fold) {
        one = _mm_or_si128(one, _mm_cmpeq_epi8(a, e->First));
        two = _mm_or_si128(two, _mm_cmpeq_epi8(b, e->Last));
    }
    return _mm_and_si128(one, two);
}

/* The needle at one of the positions of a mask, or NULL. */
ALWAYS_INLINE const uint8_t *among(const uint8_t *p, uint64_t mask,
                                   const struct needle_bytes *needle, bool fold)
{
    size_t middle = needle->len / 2;
    for (; mask; mask &= mask - 1) {
        const uint8_t *at = p + __builtin_ctzll(mask);
        if ((fold || at[middle] == needle->data[middle]) && same(at, needle, fold))
            return at;
    }
    return NULL;
}

/* 64 positions at a time, then 16. */
ALWAYS_INLINE const uint8_t *search_vector(const uint8_t *p, const uint8_t *end,
                                           const struct needle_bytes *needle, bool fold)
{
    size_t len = needle->len;
    const struct ends e = ends_of(needle, fold);
    const uint8_t *at;
    for (; (size_t)(end - p) >= len + 63; p += 64) {
        __m128i a = both_at(p, &e, fold), b = both_at(p + 16, &e, fold),
                c = both_at(p + 32, &e, fold), d = both_at(p + 48, &e, fold);
        if (LIKELY(!_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d)))))
            continue;
        uint64_t mask = (uint64_t)(unsigned)_mm_movemask_epi8(a) |
                        (uint64_t)(unsigned)_mm_movemask_epi8(b) << 16 |
                        (uint64_t)(unsigned)_mm_movemask_epi8(c) << 32 |
                        (uint64_t)(unsigned)_mm_movemask_epi8(d) << 48;
        if ((at = among(p, mask, needle, fold)))
            return at;
    }
    for (; (size_t)(end - p) >= len + 15; p += 16)
        if ((at = among(p, (unsigned)_mm_movemask_epi8(both_at(p, &e, fold)), needle, fold)))
            return at;
    return (size_t)(end - p) < len ? NULL : search_plain(p, end, needle, fold);
}

/*
 * The same 32 bytes at a time. Unlike fields, texts are long: on access logs this takes 0.6 times
 * the instructions. The remainder is searched 16 at a time.
 */

AVX2 ALWAYS_INLINE __m256i both_of(const uint8_t *p, const struct ends *e, bool fold)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)p);
    __m256i b = _mm256_loadu_si256((const __m256i *)(p + e->far));
    __m256i one = _mm256_cmpeq_epi8(a, _mm256_broadcastsi128_si256(e->first));
    __m256i two = _mm256_cmpeq_epi8(b, _mm256_broadcastsi128_si256(e->last));
    if (fold) {
        one = _mm256_or_si256(one, _mm256_cmpeq_epi8(a, _mm256_broadcastsi128_si256(e->First)));
        two = _mm256_or_si256(two, _mm256_cmpeq_epi8(b, _mm256_broadcastsi128_si256(e->Last)));
    }
    return _mm256_and_si256(one, two);
}

AVX2 ALWAYS_INLINE const uint8_t *search_wide(const uint8_t *p, const uint8_t *end,
                                              const struct needle_bytes *needle, bool fold)
{
    const struct ends e = ends_of(needle, fold);
    const uint8_t *at;
    for (; (size_t)(end - p) >= needle->len + 63; p += 64) {
        __m256i a = both_of(p, &e, fold), b = both_of(p + 32, &e, fold),
                any = _mm256_or_si256(a, b);
        if (LIKELY(_mm256_testz_si256(any, any)))
            continue;
        uint64_t mask =
            (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
        if ((at = among(p, mask, needle, fold)))
            return at;
    }
    return search_vector(p, end, needle, fold);
}

AVX2 static const uint8_t *exact_wide(const uint8_t *p, const uint8_t *end,
                                      const struct needle_bytes *needle)
{
    return search_wide(p, end, needle, false);
}

AVX2 static const uint8_t *folded_wide(const uint8_t *p, const uint8_t *end,
                                       const struct needle_bytes *needle)
{
    return search_wide(p, end, needle, true);
}

static const uint8_t *search_exact(const uint8_t *p, const uint8_t *end,
                                   const struct needle_bytes *needle)
{
    return search_vector(p, end, needle, false);
}

static const uint8_t *search_folded(const uint8_t *p, const uint8_t *end,
                                    const struct needle_bytes *needle)
{
    return search_vector(p, end, needle, true);
}
#endif

const uint8_t *scan_find(const uint8_t *p, const uint8_t *end, const void *bytes, size_t len,
                         bool fold)
{
    const struct needle_bytes all = {bytes, len}, *needle = &all;
    const uint8_t *at;
#if SCAN_HAS_VECTOR
    if (cpu_isa() >= ISA_AVX2)
        at = fold ? folded_wide(p, end, needle) : exact_wide(p, end, needle);
    else if (scan_choose())
        at = fold ? search_folded(p, end, needle) : search_exact(p, end, needle);
    else
#endif
        at = search_plain(p, end, needle, fold);
    return at ? at : end;
}
