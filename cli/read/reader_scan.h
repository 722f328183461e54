/*
 * Searching for bytes: 16 at a time with SSE2, which every x86-64 has, so that the only choice at
 * run time is the one for tests (TAMIS_ISA=scalar); elsewhere 8 at a time in a word. Fields and
 * strings are short: most searches end in the first step, and 32 at a time with AVX2 was 5 %
 * slower.
 */
#ifndef TAMIS_READER_SCAN_H
#define TAMIS_READER_SCAN_H

#include "base/base.h"

#if defined(__x86_64__) && !defined(TAMIS_SCALAR_ONLY)
#include <emmintrin.h>
#define SCAN_HAS_VECTOR true
#else
#define SCAN_HAS_VECTOR false
#endif

/* Whether to use vectors: a constant in every instance of a body. */
typedef bool scan_how;
/* The choice for this machine and TAMIS_ISA. */
scan_how scan_choose(void);

#if SCAN_HAS_VECTOR
ALWAYS_INLINE unsigned scan_mask(const uint8_t *p, uint8_t a, uint8_t b, uint8_t c)
{
    __m128i x = _mm_loadu_si128((const __m128i *)p);
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8((char)a)),
                               _mm_cmpeq_epi8(x, _mm_set1_epi8((char)b)));
    hit = _mm_or_si128(hit, _mm_cmpeq_epi8(x, _mm_set1_epi8((char)c)));
    return (unsigned)_mm_movemask_epi8(hit);
}
#endif

/* Bytes of x that are zero get their high bit set; bytes above one of them may too. */
ALWAYS_INLINE uint64_t scan_zero_bytes(uint64_t x)
{
    return (x - UINT64_C(0x0101010101010101)) & ~x & UINT64_C(0x8080808080808080);
}

ALWAYS_INLINE bool scan_word_has(const uint8_t *p, uint8_t a, uint8_t b, uint8_t c)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t x;
    memcpy(&x, p, 8);
    return (scan_zero_bytes(x ^ each * a) | scan_zero_bytes(x ^ each * b) |
            scan_zero_bytes(x ^ each * c)) != 0;
}

/* reader_search.c: the first position in [p, end) of a string of at least 1 byte, or end. fold:
   ignores the case of ASCII letters. */
const uint8_t *scan_find(const uint8_t *p, const uint8_t *end, const void *bytes, size_t len,
                         bool fold);

/* The first byte of [p, end) that is a, b or c, or end. */
ALWAYS_INLINE const uint8_t *scan_for(const uint8_t *p, const uint8_t *end, uint8_t a, uint8_t b,
                                      uint8_t c, scan_how vector)
{
#if SCAN_HAS_VECTOR
    if (vector) {
        for (; end - p >= 16; p += 16) {
            unsigned mask = scan_mask(p, a, b, c);
            if (mask)
                return p + __builtin_ctz(mask);
        }
    }
#endif
    if (!vector)
        while (end - p >= 8 && !scan_word_has(p, a, b, c))
            p += 8;
    while (p < end && *p != a && *p != b && *p != c)
        p++;
    return p;
}

#endif
