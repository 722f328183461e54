/* XXH3-128 of eight 8-byte keys at a time, one per lane; see digest_eight() for the steps. */
#include "digest.h"

#if defined(__x86_64__) && !defined(TAMIS_SCALAR_ONLY)

#include <immintrin.h>

struct wide {
    __m512i low, high;
};

/* The 128-bit product of x and y in each lane. */
ALWAYS_INLINE AVX512 struct wide mul_wide(__m512i x, uint64_t y)
{
    const __m512i half = _mm512_set1_epi64(UINT32_MAX);
    const __m512i y_low = _mm512_set1_epi64((long long)(y & UINT32_MAX));
    const __m512i y_high = _mm512_set1_epi64((long long)(y >> 32));
    __m512i x_high = _mm512_srli_epi64(x, 32);
    __m512i low = _mm512_mul_epu32(x, y_low), cross = _mm512_mul_epu32(x, y_high);
    __m512i middle = _mm512_add_epi64(_mm512_mul_epu32(x_high, y_low), _mm512_srli_epi64(low, 32));
    middle = _mm512_add_epi64(middle, _mm512_and_si512(cross, half));
    __m512i high = _mm512_add_epi64(_mm512_mul_epu32(x_high, y_high), _mm512_srli_epi64(cross, 32));
    return (struct wide){
        _mm512_or_si512(_mm512_slli_epi64(middle, 32), _mm512_and_si512(low, half)),
        _mm512_add_epi64(high, _mm512_srli_epi64(middle, 32))};
}

ALWAYS_INLINE AVX512 __m512i fold_right(__m512i x, unsigned bits)
{
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, bits));
}

static AVX512 size_t eights_512(uint64_t flip, const uint8_t *keys, size_t n, tamis_digest *out)
{
    const __m512i first = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
    const __m512i second = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
    const __m512i mix_a = _mm512_set1_epi64((long long)EIGHT_A);
    const __m512i mix_b = _mm512_set1_epi64((long long)EIGHT_B);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m512i x = _mm512_loadu_si512(keys + 8 * i);
        struct wide p = mul_wide(_mm512_xor_si512(x, _mm512_set1_epi64((long long)flip)),
                                 XXH_PRIME64_1 + (8 << 2));
        __m512i b = _mm512_add_epi64(p.high, _mm512_slli_epi64(p.low, 1));
        __m512i a = _mm512_xor_si512(p.low, _mm512_srli_epi64(b, 3));
        a = fold_right(_mm512_mullo_epi64(fold_right(a, 35), mix_a), 28);
        b = fold_right(_mm512_mullo_epi64(fold_right(b, 37), mix_b), 32);
        _mm512_storeu_si512(out + i, _mm512_permutex2var_epi64(a, first, b));
        _mm512_storeu_si512(out + i + 4, _mm512_permutex2var_epi64(a, second, b));
    }
    return i;
}

size_t digest_eights(const struct family *family, const uint8_t *keys, size_t n, tamis_digest *out)
{
    return n >= 8 && cpu_isa() == ISA_AVX512 ? eights_512(digest_flip(family), keys, n, out) : 0;
}

#else

size_t digest_eights(const struct family *family, const uint8_t *keys, size_t n, tamis_digest *out)
{
    (void)family, (void)keys, (void)n, (void)out;
    return 0;
}

#endif
