/* Searching for a string, with or without regard to case: most of what find does with a text, so
   it must not cost more than reading it. */
#define _GNU_SOURCE
#include "reader_scan.h"

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
/* Tests for both the first and the last byte of the needle, 16 positions at a time. */
static const uint8_t *search_vector(const uint8_t *p, const uint8_t *end,
                                    const struct needle_bytes *needle, bool fold)
{
    size_t len = needle->len;
    uint8_t one = needle->data[0], two = needle->data[len - 1];
    const __m128i first = _mm_set1_epi8((char)(fold ? small(one) : one)),
                  First = _mm_set1_epi8((char)(fold ? capital(one) : one)),
                  last = _mm_set1_epi8((char)(fold ? small(two) : two)),
                  Last = _mm_set1_epi8((char)(fold ? capital(two) : two));
    for (; (size_t)(end - p) >= len + 15; p += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)p);
        __m128i b = _mm_loadu_si128((const __m128i *)(p + len - 1));
        __m128i both =
            _mm_and_si128(_mm_or_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(a, First)),
                          _mm_or_si128(_mm_cmpeq_epi8(b, last), _mm_cmpeq_epi8(b, Last)));
        for (unsigned mask = (unsigned)_mm_movemask_epi8(both); mask; mask &= mask - 1) {
            const uint8_t *at = p + __builtin_ctz(mask);
            if (same(at, needle, fold))
                return at;
        }
    }
    return (size_t)(end - p) < len ? NULL : search_plain(p, end, needle, fold);
}
#endif

const uint8_t *scan_find(const uint8_t *p, const uint8_t *end, const void *bytes, size_t len,
                         bool fold)
{
    const struct needle_bytes all = {bytes, len}, *needle = &all;
    const uint8_t *at;
#if SCAN_HAS_VECTOR
    if (scan_choose())
        at = search_vector(p, end, needle, fold);
    else
#endif
        at = search_plain(p, end, needle, fold);
    return at ? at : end;
}
