/* Kernels of lines for AVX2: a line is two registers. */
#include "kernel.h"
#include "lines.h"

#ifdef TAMIS_X86

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2")))

struct halves {
    __m256i low, high;
};

ALWAYS_INLINE TARGET struct halves line_halves(const uint8_t *line)
{
    return (struct halves){_mm256_load_si256((const __m256i *)(const void *)line),
                           _mm256_load_si256((const __m256i *)(const void *)(line + 32))};
}

/* The lanes of 16 bits that are all ones, as bits. */
ALWAYS_INLINE TARGET uint32_t pack16(__m256i low, __m256i high)
{
    __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
    return (uint32_t)_mm256_movemask_epi8(both);
}

ALWAYS_INLINE TARGET uint64_t pack8(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

ALWAYS_INLINE TARGET __m256i lanes_match16(__m256i v, __m256i q)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i differ =
        _mm256_and_si256(_mm256_xor_si256(v, q), _mm256_xor_si256(v, _mm256_sub_epi16(zero, v)));
    return _mm256_andnot_si256(_mm256_cmpeq_epi16(v, zero), _mm256_cmpeq_epi16(differ, zero));
}

ALWAYS_INLINE TARGET __m256i lanes_match8(__m256i v, __m256i q)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i differ =
        _mm256_and_si256(_mm256_xor_si256(v, q), _mm256_xor_si256(v, _mm256_sub_epi8(zero, v)));
    return _mm256_andnot_si256(_mm256_cmpeq_epi8(v, zero), _mm256_cmpeq_epi8(differ, zero));
}

ALWAYS_INLINE TARGET uint32_t match16(const uint8_t *line, uint16_t q)
{
    struct halves v = line_halves(line);
    __m256i wide = _mm256_set1_epi16((short)q);
    return pack16(lanes_match16(v.low, wide), lanes_match16(v.high, wide));
}

ALWAYS_INLINE TARGET uint64_t match8(const uint8_t *line, uint8_t q)
{
    struct halves v = line_halves(line);
    __m256i wide = _mm256_set1_epi8((char)q);
    return pack8(lanes_match8(v.low, wide), lanes_match8(v.high, wide));
}

ALWAYS_INLINE TARGET uint32_t zero16(const uint8_t *line)
{
    struct halves v = line_halves(line);
    const __m256i zero = _mm256_setzero_si256();
    return pack16(_mm256_cmpeq_epi16(v.low, zero), _mm256_cmpeq_epi16(v.high, zero));
}

ALWAYS_INLINE TARGET uint64_t zero8(const uint8_t *line)
{
    struct halves v = line_halves(line);
    const __m256i zero = _mm256_setzero_si256();
    return pack8(_mm256_cmpeq_epi8(v.low, zero), _mm256_cmpeq_epi8(v.high, zero));
}

#include "lines_kernel.h"

const struct lines_kernel lines_avx2 = {"avx2",       kernel_has_one, kernel_has,
                                        kernel_match, kernel_used,    NULL};

#endif
