/* Kernels of lines for AVX-512: a line is one register, and a comparison a mask. */
#include "kernel.h"
#include "lines.h"
#include "lines_stash.h"

#ifdef TAMIS_X86

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi,bmi2")))

/* The lanes, without the top bits of bytes that are used separately. */
ALWAYS_INLINE TARGET __m512i lanes_in(__m512i v, unsigned width)
{
    return width == 14 ? _mm512_and_si512(v, _mm512_set1_epi8(0x7f)) : v;
}

/* The top bits of all bytes. */
ALWAYS_INLINE TARGET uint64_t line_tops(const uint8_t *line)
{
    return _mm512_movepi8_mask(_mm512_loadu_si512(line));
}

ALWAYS_INLINE TARGET uint32_t match16(const uint8_t *line, unsigned width, uint32_t q)
{
    __m512i v = lanes_in(_mm512_loadu_si512(line), width);
    __m512i above = _mm512_xor_si512(v, _mm512_sub_epi16(_mm512_setzero_si512(), v));
    __m512i differ = _mm512_xor_si512(v, _mm512_set1_epi16((short)q));
    return _mm512_mask_testn_epi16_mask(_mm512_test_epi16_mask(v, v), differ, above);
}

/* (v ^ q) & ~(v ^ less), by bits. */
#define TERNARY_DIFFER 0x24

/* A slot matches if it differs from q in its mark and below at most, where v and v - 1 differ. Of a free slot, 0, nothing
   is subtracted, and it differs from q, which is odd. The first lane is the bound. */
ALWAYS_INLINE TARGET bool any16(const uint8_t *line, unsigned width, uint32_t q)
{
    __m512i one = _mm512_set1_epi16(1);
    __m512i all = _mm512_loadu_si512(line), wide = _mm512_set1_epi16((short)lane_of(width, q));
    __asm__("" : "+v"(all), "+v"(one)); /* loaded once, not for each use */
    __m512i v = lanes_in(all, width), less = _mm512_subs_epu16(v, one);
    __m512i differ = _mm512_ternarylogic_epi64(v, wide, less, TERNARY_DIFFER);
    if (width != 14)
        return _mm512_testn_epi16_mask(differ, differ) > 1;
    __m128i tops = _mm_cvtsi64_si128((long long)_mm512_movepi8_mask(all));
    __m128i under = _mm_subs_epu16(tops, _mm512_castsi512_si128(one));
    __m128i apart =
        _mm_ternarylogic_epi64(tops, _mm512_castsi512_si128(wide), under, TERNARY_DIFFER);
    return !_kortestz_mask32_u8(_mm512_mask_testn_epi16_mask(0xfffffffe, differ, differ),
                                _mm_testn_epi16_mask(apart, apart));
}

ALWAYS_INLINE TARGET uint64_t greatest16(const uint8_t *line, unsigned width)
{
    const __m512i one = _mm512_set1_epi16(1);
    const __m128i ones = _mm_set1_epi16(-1);
    __m512i v = lanes_in(_mm512_loadu_si512(line), width);
    __m512i order =
        _mm512_maskz_mov_epi16(0xfffffffe, _mm512_and_si512(v, _mm512_sub_epi16(v, one)));
    __m128i tops = _mm_cvtsi64_si128(width == 14 ? (long long)line_tops(line) : 0);
    tops = _mm_and_si128(tops, _mm_sub_epi16(tops, _mm512_castsi512_si128(one)));
    __m256i half =
        _mm256_max_epu16(_mm512_castsi512_si256(order), _mm512_extracti64x4_epi64(order, 1));
    __m128i most = _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    most = _mm_minpos_epu16(_mm_xor_si128(_mm_max_epu16(most, tops), ones));
    __m512i wide = _mm512_broadcastw_epi16(_mm_xor_si128(most, ones));
    uint64_t lanes = _mm512_mask_cmpeq_epi16_mask(0xfffffffe, order, wide);
    if (width == 14)
        lanes |= (uint64_t)_mm_mask_cmpeq_epi16_mask(15, tops, _mm512_castsi512_si128(wide)) << 32;
    return lanes;
}

ALWAYS_INLINE TARGET uint32_t zero16(const uint8_t *line, unsigned width)
{
    __m512i v = lanes_in(_mm512_loadu_si512(line), width);
    return _mm512_testn_epi16_mask(v, v);
}

#define CELLS 8

ALWAYS_INLINE TARGET struct stash_look stash_compare(const uint64_t *cell, uint64_t query)
{
    __m512i v = _mm512_loadu_si512(cell), entry = _mm512_srli_epi64(v, 12);
    __m512i known = _mm512_xor_si512(entry, _mm512_sub_epi64(_mm512_setzero_si512(), entry));
    __m512i differ = _mm512_xor_si512(entry, _mm512_set1_epi64((long long)query));
    __mmask8 used = _mm512_test_epi64_mask(v, v);
    return (struct stash_look){_mm512_mask_testn_epi64_mask(used, differ, known) != 0,
                               used != 0xff};
}

#include "lines_kernel.h"

#define LANES 16
#define LANE_NUMBERS                                         \
    {                                                        \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 \
    }
typedef uint32_t lane_v __attribute__((vector_size(64)));

ALWAYS_INLINE TARGET lane_v lanes_load16(const uint8_t *at)
{
    return (lane_v)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

ALWAYS_INLINE TARGET lane_v lanes_load8(const uint8_t *at)
{
    return (lane_v)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
}

ALWAYS_INLINE TARGET void lanes_store16(lane_v v, uint16_t *to)
{
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16((__m512i)v));
}

ALWAYS_INLINE TARGET void lanes_store8(lane_v v, uint8_t *to)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8((__m512i)v));
}

ALWAYS_INLINE TARGET uint32_t lanes_below(lane_v v, lane_v bound)
{
    return _mm512_cmplt_epu32_mask((__m512i)v, (__m512i)bound);
}

ALWAYS_INLINE TARGET uint32_t lanes_test(lane_v v, uint32_t mask)
{
    return _mm512_test_epi32_mask((__m512i)v, _mm512_set1_epi32((int)mask));
}

ALWAYS_INLINE TARGET lane_v lanes_squeeze(lane_v v, uint32_t set)
{
    return (lane_v)_mm512_maskz_compress_epi32((__mmask16)set, (__m512i)v);
}

ALWAYS_INLINE TARGET void line_store(uint8_t *line, const void *lanes, uint64_t tops)
{
    __m512i top = _mm512_maskz_mov_epi8(tops, _mm512_set1_epi8(-128));
    _mm512_storeu_si512(line, _mm512_or_si512(_mm512_loadu_si512(lanes), top));
}

#include "lines_move.h"

const struct lines_kernel lines_avx512 = LINES_KERNEL("avx512", kernel_has_key, kernel_pour);

#endif
