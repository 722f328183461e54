/* Blocked kernels for AVX2, with a line as two halves; see kernel_avx512.c. */
#include "kernel_stack.h"

#ifdef TAMIS_X86

#include <immintrin.h>

/* Row r, read from word 8 - s: all ones in the lanes of a round of r probes with rotation s. */
#define ON ~UINT64_C(0)
#define ROW(a, b, c, d, e, f, g, h)                    \
    {                                                  \
        a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h \
    }
static const uint64_t lanes_table[9][16] = {
    ROW(0, 0, 0, 0, 0, 0, 0, 0),        ROW(ON, 0, 0, 0, 0, 0, 0, 0),
    ROW(ON, ON, 0, 0, 0, 0, 0, 0),      ROW(ON, ON, ON, 0, 0, 0, 0, 0),
    ROW(ON, ON, ON, ON, 0, 0, 0, 0),    ROW(ON, ON, ON, ON, ON, 0, 0, 0),
    ROW(ON, ON, ON, ON, ON, ON, 0, 0),  ROW(ON, ON, ON, ON, ON, ON, ON, 0),
    ROW(ON, ON, ON, ON, ON, ON, ON, ON)};

struct half_pair {
    __m256i low, high;
};

ALWAYS_INLINE AVX2 __m256i load_four(const uint64_t *words)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)words);
}

ALWAYS_INLINE AVX2 __m256i half_bits(uint64_t w, __m256i fields, const uint64_t *lanes)
{
    __m256i shifts = _mm256_srlv_epi64(_mm256_set1_epi64x((long long)w), fields);
    shifts = _mm256_and_si256(shifts, _mm256_set1_epi64x(63));
    __m256i ones = _mm256_sllv_epi64(_mm256_set1_epi64x(1), shifts);
    return _mm256_and_si256(ones, load_four(lanes));
}

ALWAYS_INLINE AVX2 struct half_pair round_halves(uint64_t w, const uint64_t *lanes)
{
    const __m256i low = _mm256_set_epi64x(18, 12, 6, 0), high = _mm256_set_epi64x(42, 36, 30, 24);
    return (struct half_pair){half_bits(w, low, lanes), half_bits(w, high, lanes + 4)};
}

/* `rounds` is 1 if k <= 8 is known, otherwise 0. */
ALWAYS_INLINE AVX2 struct half_pair key_halves(uint64_t b, unsigned k, int rounds)
{
    unsigned s = (unsigned)(b >> 61);
    if (rounds == 1)
        return round_halves(b, &lanes_table[k][8 - s]);
    struct half_pair bits = round_halves(b, &lanes_table[k < 8 ? k : 8][8 - s]);
    for (uint64_t w = b; k > 8;) {
        k -= 8;
        w = mul_fold(w, BLOCK_MIX);
        struct half_pair more = round_halves(w, &lanes_table[k < 8 ? k : 8][8 - s]);
        bits.low = _mm256_or_si256(bits.low, more.low);
        bits.high = _mm256_or_si256(bits.high, more.high);
    }
    return bits;
}

/* The bits that either half lacks are tested together, since each test takes two micro-operations. */
ALWAYS_INLINE AVX2 bool halves_have(__m256i low, __m256i high, struct half_pair want)
{
    __m256i miss =
        _mm256_or_si256(_mm256_andnot_si256(low, want.low), _mm256_andnot_si256(high, want.high));
    return _mm256_testz_si256(miss, miss);
}

ALWAYS_INLINE AVX2 bool line_has(const void *line, struct half_pair want)
{
    const __m256i *halves = line;
    return halves_have(_mm256_load_si256(halves), _mm256_load_si256(halves + 1), want);
}

ALWAYS_INLINE AVX2 bool has_256(const struct bits *bits, tamis_digest d, int rounds)
{
    return line_has(bits->words + block_index(bits, d), key_halves(d.b, bits->k, rounds));
}

static AVX2 bool has_one_avx2(const struct bits *bits, tamis_digest digest)
{
    return bits->k <= 8 ? has_256(bits, digest, 1) : has_256(bits, digest, 0);
}

ALWAYS_INLINE AVX2 tamis_digest quick_digest(const struct quick *quick, const void *key)
{
    tamis_digest d = digest_eight(quick->flip, key);
    d.b = (d.b ^ d.b >> 37) * EIGHT_B;
    d.b ^= d.b >> 32;
    return d;
}

static AVX2 bool has_key_8_avx2(const struct set *set, const void *key, size_t len)
{
    const struct quick *quick = quick_in(set);
    return LIKELY(len == 8) ? has_256(quick->bits, quick_digest(quick, key), 1)
                            : quick_other(set, key, len);
}

#define has_key_16_avx2 NULL

static AVX2 void has_avx2(const struct bits *bits, const tamis_digest *digests, size_t n,
                          uint8_t *found)
{
    BY_ROUNDS(or_each_key, bits, digests, n, found, has_256);
}

static AVX2 void has_stream_avx2(const struct bits *bits, const tamis_digest *digests, size_t n,
                                 uint8_t *found)
{
    BY_ROUNDS(each_key, bits, digests, n, found, has_256);
}

ALWAYS_INLINE AVX2 bool add_key_256(const struct bits *bits, tamis_digest d, int rounds)
{
    struct half_pair want = key_halves(d.b, bits->k, rounds);
    __m256i *block = (__m256i *)(void *)(bits->words + block_index(bits, d));
    __m256i low = _mm256_load_si256(block), high = _mm256_load_si256(block + 1);
    _mm256_store_si256(block, _mm256_or_si256(low, want.low));
    _mm256_store_si256(block + 1, _mm256_or_si256(high, want.high));
    return !halves_have(low, high, want);
}

static AVX2 bool add_one_avx2(const struct bits *bits, tamis_digest digest)
{
    return bits->k <= 8 ? add_key_256(bits, digest, 1) : add_key_256(bits, digest, 0);
}

static AVX2 bool add_key_8_avx2(const struct set *set, const void *key, size_t len)
{
    const struct quick *quick = quick_in(set);
    return LIKELY(len == 8) ? add_key_256(quick->bits, quick_digest(quick, key), 1)
                            : quick_add_other(set, key, len);
}

#define add_key_16_avx2 NULL

static AVX2 void add_avx2(const struct bits *bits, const tamis_digest *digests, size_t n,
                          uint8_t *fresh)
{
    BY_ROUNDS(each_key, bits, digests, n, fresh, add_key_256);
}

static AVX2 void levels_have_avx2(const struct levels *levels, const tamis_digest *digests,
                                  size_t n, uint8_t *found)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t a = digests[i].a, b = digests[i].b;
        struct half_pair want = key_halves(b, levels->k, levels->k <= 8 ? 1 : 0);
        unsigned hit = 0;
        size_t j = 0;
        for (; j < levels->fetched; j++) {
            level_fetch(levels, j, digests, i, n);
            hit |= line_has(level_line(levels, j, a), want);
        }
        for (; j < levels->n; j++)
            hit |= line_has(level_line(levels, j, a), want);
        found[i] |= (uint8_t)hit;
    }
}

static void has_stack_avx2(const void *stack, size_t vectors, const tamis_digest *digests, size_t n,
                           uint8_t *found)
{
    stack_by_levels(stack, vectors, digests, n, found, levels_have_avx2);
}

static AVX2 bool has_any_avx2(const void *stack, size_t vectors, tamis_digest digest)
{
    struct half_pair want = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    unsigned k = 0;
    for (size_t j = vectors; j-- > 0;) {
        const struct bits *bits = bits_at(stack, j);
        if (UNLIKELY(bits->k != k)) {
            k = bits->k;
            want = key_halves(digest.b, k, 0);
        }
        if (UNLIKELY(line_has(bits->words + block_index(bits, digest), want)))
            return true;
    }
    return false;
}

AVX2 bool rows_avx2(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                    unsigned k, uint64_t *left)
{
    bool any = false;
    uint64_t whole = n & ~UINT64_C(3);
    for (uint64_t i = 0; i < whole; i += 4) {
        __m256i all = load_four(words + rows[0] * stride + i);
        for (unsigned j = 1; j < k && !_mm256_testz_si256(all, all); j++)
            all = _mm256_and_si256(all, load_four(words + rows[j] * stride + i));
        _mm256_storeu_si256((__m256i *)(void *)(left + i), all);
        any |= !_mm256_testz_si256(all, all);
    }
    return (whole < n && rows_scalar(words + whole, stride, n - whole, rows, k, left + whole)) ||
           any;
}

const struct kernel kernel_avx2 = BLOCKED_ROW(avx2);

#endif
