/* Kernels of lines for AVX2: a line is two registers. */
#include "kernel.h"
#include "lines.h"
#include "lines_stash.h"

#ifdef TAMIS_X86

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))

/* The first lane of 16 bits is the bound, not a slot. */
#define SLOTS_OF_LOW _mm256_set_epi32(-1, -1, -1, -1, -1, -1, -1, -65536)

struct halves {
    __m256i low, high;
};

ALWAYS_INLINE TARGET struct halves line_halves(const uint8_t *line)
{
    return (struct halves){_mm256_loadu_si256((const __m256i *)(const void *)line),
                           _mm256_loadu_si256((const __m256i *)(const void *)(line + 32))};
}

/* The lanes, without the top bits of bytes that are used separately. */
ALWAYS_INLINE TARGET struct halves lanes_in(struct halves v, unsigned width)
{
    const __m256i lanes = _mm256_set1_epi8(0x7f);
    return width == 14
               ? (struct halves){_mm256_and_si256(v.low, lanes), _mm256_and_si256(v.high, lanes)}
               : v;
}

/* The top bits of all bytes. */
ALWAYS_INLINE TARGET uint64_t tops_in(struct halves v)
{
    return (uint32_t)_mm256_movemask_epi8(v.low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(v.high)
                                                       << 32;
}

ALWAYS_INLINE TARGET uint64_t line_tops(const uint8_t *line)
{
    return tops_in(line_halves(line));
}

/* A bit mask of the lanes of 16 bits that are all ones. */
ALWAYS_INLINE TARGET uint32_t pack16(__m256i low, __m256i high)
{
    __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
    return (uint32_t)_mm256_movemask_epi8(both);
}

ALWAYS_INLINE TARGET __m256i lanes_match16(__m256i v, __m256i q)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i differ =
        _mm256_and_si256(_mm256_xor_si256(v, q), _mm256_xor_si256(v, _mm256_sub_epi16(zero, v)));
    return _mm256_andnot_si256(_mm256_cmpeq_epi16(v, zero), _mm256_cmpeq_epi16(differ, zero));
}

ALWAYS_INLINE TARGET uint32_t match16(const uint8_t *line, unsigned width, uint32_t q)
{
    struct halves v = lanes_in(line_halves(line), width);
    __m256i wide = _mm256_set1_epi16((short)q);
    return pack16(lanes_match16(v.low, wide), lanes_match16(v.high, wide));
}

/* Not zero where half of the difference is less than the mark: the two differ in unknown bits only. */
ALWAYS_INLINE TARGET __m256i lanes_near16(__m256i v, __m256i q)
{
    __m256i mark = _mm256_and_si256(v, _mm256_sub_epi16(_mm256_setzero_si256(), v));
    return _mm256_subs_epu16(mark, _mm256_srli_epi16(_mm256_xor_si256(v, q), 1));
}

ALWAYS_INLINE TARGET bool any16(const uint8_t *line, unsigned width, uint32_t q)
{
    struct halves all = line_halves(line), v = lanes_in(all, width);
    __m256i wide = _mm256_set1_epi16((short)lane_of(width, q));
    __m256i near = _mm256_and_si256(lanes_near16(v.low, wide), SLOTS_OF_LOW);
    near = _mm256_or_si256(near, lanes_near16(v.high, wide));
    if (width == 14) {
        __m256i tops = _mm256_zextsi128_si256(_mm_cvtsi64_si128((long long)tops_in(all)));
        near = _mm256_or_si256(near, lanes_near16(tops, wide));
    }
    return !_mm256_testz_si256(near, near);
}

ALWAYS_INLINE TARGET uint64_t greatest16(const uint8_t *line, unsigned width)
{
    struct halves all = line_halves(line), v = lanes_in(all, width);
    const __m256i one = _mm256_set1_epi16(1);
    const __m128i zero = _mm_setzero_si128(), ones = _mm_set1_epi16(-1);
    __m256i low = _mm256_and_si256(v.low, _mm256_sub_epi16(v.low, one));
    __m256i high = _mm256_and_si256(v.high, _mm256_sub_epi16(v.high, one));
    __m128i tops = width == 14 ? _mm_cvtsi64_si128((long long)tops_in(all)) : zero;
    tops = _mm_and_si128(tops, _mm_sub_epi16(tops, _mm256_castsi256_si128(one)));
    low = _mm256_and_si256(low, SLOTS_OF_LOW);
    __m256i half = _mm256_max_epu16(low, high);
    __m128i most = _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    /* The minimum of the inverted values. */
    most = _mm_minpos_epu16(_mm_xor_si128(_mm_max_epu16(most, tops), ones));
    __m256i wide = _mm256_broadcastw_epi16(_mm_xor_si128(most, ones));
    uint64_t lanes = pack16(_mm256_cmpeq_epi16(low, wide), _mm256_cmpeq_epi16(high, wide));
    tops = _mm_packs_epi16(_mm_cmpeq_epi16(tops, _mm256_castsi256_si128(wide)), zero);
    if (width == 14)
        lanes |= (uint64_t)(_mm_movemask_epi8(tops) & 15) << 32;
    return lanes & ~UINT64_C(1);
}

ALWAYS_INLINE TARGET uint32_t zero16(const uint8_t *line, unsigned width)
{
    struct halves v = lanes_in(line_halves(line), width);
    const __m256i zero = _mm256_setzero_si256();
    return pack16(_mm256_cmpeq_epi16(v.low, zero), _mm256_cmpeq_epi16(v.high, zero));
}

#define CELLS 4

ALWAYS_INLINE TARGET struct stash_look stash_compare(const uint64_t *cell, uint64_t query)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)cell);
    __m256i entry = _mm256_srli_epi64(v, 12), wide = _mm256_set1_epi64x((long long)query);
    __m256i known = _mm256_xor_si256(entry, _mm256_sub_epi64(zero, entry));
    __m256i differ = _mm256_and_si256(_mm256_xor_si256(entry, wide), known);
    __m256i free = _mm256_cmpeq_epi64(v, zero);
    __m256i match = _mm256_andnot_si256(free, _mm256_cmpeq_epi64(differ, zero));
    return (struct stash_look){!_mm256_testz_si256(match, match), !_mm256_testz_si256(free, free)};
}

#include "lines_kernel.h"

#define LANES 8
#define LANE_NUMBERS           \
    {                          \
        0, 1, 2, 3, 4, 5, 6, 7 \
    }
typedef uint32_t lane_v __attribute__((vector_size(32)));

ALWAYS_INLINE TARGET lane_v lanes_load16(const uint8_t *at)
{
    return (lane_v)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
}

ALWAYS_INLINE TARGET lane_v lanes_load8(const uint8_t *at)
{
    return (lane_v)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at));
}

ALWAYS_INLINE TARGET void lanes_store16(lane_v v, uint16_t *to)
{
    __m256i halves = _mm256_packus_epi32((__m256i)(v & 0xffff), _mm256_setzero_si256());
    halves = _mm256_permute4x64_epi64(halves, 0xd8);
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(halves));
}

/* In each half, four lanes become four bytes. */
ALWAYS_INLINE TARGET void lanes_store8(lane_v v, uint8_t *to)
{
    __m256i bytes = _mm256_shuffle_epi8((__m256i)v, _mm256_set1_epi32(0x0c080400));
    __m128i first = _mm256_castsi256_si128(bytes), second = _mm256_extracti128_si256(bytes, 1);
    _mm_storel_epi64((__m128i *)(void *)to, _mm_unpacklo_epi32(first, second));
}

ALWAYS_INLINE TARGET uint32_t lanes_below(lane_v v, lane_v bound)
{
    __m256i less = _mm256_cmpgt_epi32((__m256i)bound, (__m256i)v);
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(less));
}

ALWAYS_INLINE TARGET uint32_t lanes_test(lane_v v, uint32_t mask)
{
    __m256i none = _mm256_cmpeq_epi32((__m256i)(v & mask), _mm256_setzero_si256());
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(none)) ^ 0xff;
}

ALWAYS_INLINE TARGET lane_v lanes_squeeze(lane_v v, uint32_t set)
{
    uint64_t bytes = _pdep_u64(set, UINT64_C(0x0101010101010101)) * 255;
    uint64_t from = _pext_u64(UINT64_C(0x0807060504030201), bytes); /* lane + 1; 0: none */
    __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)from));
    __m256i there = _mm256_cmpgt_epi32(lanes, _mm256_setzero_si256());
    lanes = _mm256_add_epi32(lanes, _mm256_set1_epi32(-1));
    return (lane_v)_mm256_and_si256(_mm256_permutevar8x32_epi32((__m256i)v, lanes), there);
}

/* A byte of the top bits for eight bytes each, in which it selects one bit. */
ALWAYS_INLINE TARGET __m256i tops_spread(uint64_t tops)
{
    const __m256i from =
        _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m256i bit = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int)tops), from);
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(set, _mm256_set1_epi8(-128));
}

ALWAYS_INLINE TARGET void line_store(uint8_t *line, const void *lanes, uint64_t tops)
{
    struct halves v = line_halves(lanes);
    _mm256_storeu_si256((__m256i *)(void *)line, _mm256_or_si256(v.low, tops_spread(tops)));
    _mm256_storeu_si256((__m256i *)(void *)(line + 32),
                        _mm256_or_si256(v.high, tops_spread(tops >> 32)));
}

#include "lines_move.h"

const struct lines_kernel lines_avx2 = LINES_KERNEL("avx2", kernel_has_key, kernel_pour);

#endif
