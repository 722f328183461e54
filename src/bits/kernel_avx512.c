/* Blocked kernels for AVX-512, compiled for any build target and chosen at run time. Blocks are
   64-byte lines; see kernel.h for the bits. */
#include "kernel_stack.h"

#ifdef TAMIS_X86

#include <immintrin.h>

ALWAYS_INLINE AVX512 __mmask8 lanes_rotated(unsigned r, uint64_t b)
{
    unsigned ones = (1u << r) - 1, s = (unsigned)(b >> 61);
    return (__mmask8)((ones << s) | (ones >> (8 - s)));
}

/* One bit in each lane, at the lane's field of w. The rotate takes the field modulo 64. */
ALWAYS_INLINE AVX512 __m512i lane_bits(__m512i w, uint64_t one)
{
    const __m512i fields = _mm512_set_epi64(42, 36, 30, 24, 18, 12, 6, 0);
    return _mm512_rolv_epi64(_mm512_set1_epi64((long long)one), _mm512_srlv_epi64(w, fields));
}

ALWAYS_INLINE AVX512 __m512i round_bits(uint64_t w, __mmask8 lanes)
{
    return _mm512_maskz_mov_epi64(lanes, lane_bits(_mm512_set1_epi64((long long)w), 1));
}

/* All k bits. `rounds` is the number of rounds if known, otherwise 0. */
ALWAYS_INLINE AVX512 __m512i key_bits(uint64_t b, unsigned k, int rounds)
{
    if (rounds == 1)
        return round_bits(b, lanes_rotated(k, b));
    __m512i bits = round_bits(b, 0xff);
    uint64_t w = mul_fold(b, BLOCK_MIX);
    if (rounds == 2)
        return _mm512_or_si512(bits, round_bits(w, lanes_rotated(k - 8, b)));
    for (k -= 8; k; w = mul_fold(w, BLOCK_MIX)) {
        unsigned r = k < 8 ? k : 8;
        bits = _mm512_or_si512(bits, round_bits(w, lanes_rotated(r, b)));
        k -= r;
    }
    return bits;
}

ALWAYS_INLINE AVX512 bool has_key_512(const struct bits *bits, tamis_digest d, int rounds)
{
    __m512i want = key_bits(d.b, bits->k, rounds);
    __m512i have = _mm512_load_si512(bits->words + block_index(bits, d));
    __m512i miss = _mm512_andnot_si512(have, want);
    return _mm512_test_epi64_mask(miss, miss) == 0;
}

static AVX512 bool has_one_avx512(const struct bits *bits, tamis_digest digest)
{
    return bits->k <= 8 ? has_key_512(bits, digest, 1) : has_key_512(bits, digest, 0);
}

/*
 * One key from its bytes; see struct quick. Word b is mixed in all lanes at once, where registers
 * are free, and stays there. Lane l is probed in the last round if (l - rotation) mod 8 is less
 * than the number of probes: that is, if the top 3 bits of b minus l + 1 are at least 8 minus the
 * probes.
 */
struct quick_ask {
    __m512i *line, first, last; /* equal if there is one round */
    __mmask8 lanes;             /* of the last round */
};

ALWAYS_INLINE AVX512 struct quick_ask quick_bits(const struct quick *quick, const void *key,
                                                 int rounds)
{
    const __m512i next = _mm512_slli_epi64(_mm512_set_epi64(8, 7, 6, 5, 4, 3, 2, 1), 61);
    tamis_digest d = digest_eight(quick->flip, key);
    struct quick_ask ask = {.line =
                                (void *)((char *)quick->words + 64 * mul_high(d.a, quick->units))};
    __m512i b = _mm512_set1_epi64((long long)d.b);
    b = _mm512_xor_si512(b, _mm512_srli_epi64(b, 37));
    b = _mm512_mullo_epi64(b, _mm512_set1_epi64((long long)quick->mix));
    b = _mm512_xor_si512(b, _mm512_srli_epi64(b, 32));
    ask.lanes = _mm512_cmpge_epu64_mask(_mm512_sub_epi64(b, next),
                                        _mm512_set1_epi64((long long)quick->least));
    ask.first = ask.last = lane_bits(b, quick->one);
    if (rounds == 1)
        return ask;
    uint64_t w = mul_fold((uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(b)), BLOCK_MIX);
    ask.last = lane_bits(_mm512_set1_epi64((long long)w), quick->one);
    return ask;
}

ALWAYS_INLINE AVX512 unsigned quick_missing(const struct quick_ask *ask, __m512i line, int rounds)
{
    unsigned last = _mm512_mask_testn_epi64_mask(ask->lanes, ask->last, line);
    return rounds == 1 ? last : last | _mm512_testn_epi64_mask(ask->first, line);
}

ALWAYS_INLINE AVX512 bool quick_512(const struct quick *quick, const void *key, int rounds)
{
    struct quick_ask ask = quick_bits(quick, key, rounds);
    return quick_missing(&ask, *ask.line, rounds) == 0;
}

ALWAYS_INLINE AVX512 bool quick_add_512(const struct quick *quick, const void *key, int rounds)
{
    struct quick_ask ask = quick_bits(quick, key, rounds);
    __m512i line = *ask.line, more = rounds == 1 ? line : _mm512_or_si512(line, ask.first);
    *ask.line = _mm512_mask_or_epi64(more, ask.lanes, more, ask.last);
    return quick_missing(&ask, line, rounds) != 0;
}

static AVX512 bool has_key_8_avx512(const struct set *set, const void *key, size_t len)
{
    return LIKELY(len == 8) ? quick_512(quick_in(set), key, 1) : quick_other(set, key, len);
}

static AVX512 bool has_key_16_avx512(const struct set *set, const void *key, size_t len)
{
    return LIKELY(len == 8) ? quick_512(quick_in(set), key, 2) : quick_other(set, key, len);
}

static AVX512 bool add_key_8_avx512(const struct set *set, const void *key, size_t len)
{
    return LIKELY(len == 8) ? quick_add_512(quick_in(set), key, 1) : quick_add_other(set, key, len);
}

static AVX512 bool add_key_16_avx512(const struct set *set, const void *key, size_t len)
{
    return LIKELY(len == 8) ? quick_add_512(quick_in(set), key, 2) : quick_add_other(set, key, len);
}

ALWAYS_INLINE AVX512 bool add_key_512(const struct bits *bits, tamis_digest d, int rounds)
{
    __m512i want = key_bits(d.b, bits->k, rounds);
    uint64_t *block = bits->words + block_index(bits, d);
    __m512i have = _mm512_load_si512(block);
    __m512i miss = _mm512_andnot_si512(have, want);
    _mm512_store_si512(block, _mm512_or_si512(have, want));
    return _mm512_test_epi64_mask(miss, miss) != 0;
}

static AVX512 bool add_one_avx512(const struct bits *bits, tamis_digest digest)
{
    return bits->k <= 8 ? add_key_512(bits, digest, 1) : add_key_512(bits, digest, 0);
}

static AVX512 void has_avx512(const struct bits *bits, const tamis_digest *digests, size_t n,
                              uint8_t *found)
{
    BY_ROUNDS(or_each_key, bits, digests, n, found, has_key_512);
}

static AVX512 void has_stream_avx512(const struct bits *bits, const tamis_digest *digests, size_t n,
                                     uint8_t *found)
{
    BY_ROUNDS(each_key, bits, digests, n, found, has_key_512);
}

static AVX512 void add_avx512(const struct bits *bits, const tamis_digest *digests, size_t n,
                              uint8_t *fresh)
{
    BY_ROUNDS(each_key, bits, digests, n, fresh, add_key_512);
}

/* With 8 probes each lane has one, and all are present if no lane lacks its bit. */
ALWAYS_INLINE AVX512 unsigned level_has(const struct levels *levels, size_t j, uint64_t a,
                                        __m512i want, bool eight)
{
    __m512i have = _mm512_load_si512(level_line(levels, j, a));
    return eight ? _mm512_testn_epi64_mask(want, have) == 0
                 : _mm512_cmpneq_epi64_mask(_mm512_and_si512(want, have), want) == 0;
}

ALWAYS_INLINE AVX512 void levels_512(const struct levels *levels, const tamis_digest *digests,
                                     size_t n, uint8_t *found, bool eight)
{
    unsigned k = levels->k;
    int rounds = k <= 8 ? 1 : k <= 16 ? 2 : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t a = digests[i].a;
        __m512i want = eight ? key_bits(digests[i].b, 8, 1) : key_bits(digests[i].b, k, rounds);
        unsigned hit = 0;
        size_t j = 0;
        for (; j < levels->fetched; j++) {
            level_fetch(levels, j, digests, i, n);
            hit |= level_has(levels, j, a, want, eight);
        }
        for (; j < levels->n; j++)
            hit |= level_has(levels, j, a, want, eight);
        found[i] |= (uint8_t)hit;
    }
}

static AVX512 void levels_have_avx512(const struct levels *levels, const tamis_digest *digests,
                                      size_t n, uint8_t *found)
{
    if (levels->k == 8)
        levels_512(levels, digests, n, found, true);
    else
        levels_512(levels, digests, n, found, false);
}

/* One key, newest vector first: a key that is present is usually in a large one. All lines are
   requested before the first arrives, because the processor speculates past the test. */
static AVX512 bool has_any_avx512(const void *stack, size_t vectors, tamis_digest digest)
{
    __m512i want = _mm512_setzero_si512();
    unsigned k = 0;
    for (size_t j = vectors; j-- > 0;) {
        const struct bits *bits = bits_at(stack, j);
        if (UNLIKELY(bits->k != k)) {
            k = bits->k;
            want = key_bits(digest.b, k, k <= 8 ? 1 : k <= 16 ? 2 : 0);
        }
        __m512i have = _mm512_load_si512(bits->words + block_index(bits, digest));
        if (UNLIKELY(_mm512_cmpneq_epi64_mask(_mm512_and_si512(want, have), want) == 0))
            return true;
    }
    return false;
}

static void has_stack_avx512(const void *stack, size_t vectors, const tamis_digest *digests,
                             size_t n, uint8_t *found)
{
    stack_by_levels(stack, vectors, digests, n, found, levels_have_avx512);
}

AVX512 bool rows_avx512(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                        unsigned k, uint64_t *left)
{
    bool any = false;
    for (uint64_t i = 0; i < n; i += 8) {
        __mmask8 in = n - i >= 8 ? 0xff : (__mmask8)((1u << (n - i)) - 1);
        __m512i all = _mm512_maskz_loadu_epi64(in, words + rows[0] * stride + i);
        for (unsigned j = 1; j < k && _mm512_test_epi64_mask(all, all); j++)
            all = _mm512_and_si512(all, _mm512_maskz_loadu_epi64(in, words + rows[j] * stride + i));
        _mm512_mask_storeu_epi64(left + i, in, all);
        any |= _mm512_test_epi64_mask(all, all) != 0;
    }
    return any;
}

const struct kernel kernel_avx512 = BLOCKED_ROW(avx512);

#endif
