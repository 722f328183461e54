/* Blocked kernels for AVX2 and AVX-512, compiled whatever the build's own target and chosen at run
   time. Blocks are 64-byte lines; see kernel.h for the bits. */
#include "kernel.h"

#if defined(__x86_64__) && !defined(TAMIS_SCALAR_ONLY)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx2,bmi2")))
#define AVX2   __attribute__((target("avx2,bmi2")))

ALWAYS_INLINE uint64_t block_index(const struct bits *bits, tamis_digest d)
{
    return 8 * mul_high(d.a, bits->units);
}

/* ---- AVX-512 --------------------------------------------------------------------------------- */

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

/* All k bits. `rounds` is the number of rounds when known, or 0. */
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

ALWAYS_INLINE void line_ahead(const struct bits *bits, const tamis_digest *digests, size_t i,
                              size_t n)
{
    if (LIKELY(i + AHEAD < n))
        fetch(bits->words + block_index(bits, digests[i + AHEAD]));
}

ALWAYS_INLINE AVX512 void has_512(const struct bits *bits, const tamis_digest *digests, size_t n,
                                  uint8_t *found, int rounds)
{
    for (size_t i = 0; i < n; i++)
        found[i] |= has_key_512(bits, digests[i], rounds);
}

ALWAYS_INLINE AVX512 void stream_512(const struct bits *bits, const tamis_digest *digests, size_t n,
                                     uint8_t *found, int rounds)
{
    blocked_prefetch(bits, digests, n < AHEAD ? n : AHEAD);
    for (size_t i = 0; i < n; i++) {
        line_ahead(bits, digests, i, n);
        found[i] = has_key_512(bits, digests[i], rounds);
    }
}

static AVX512 bool has_one_avx512(const struct bits *bits, tamis_digest digest)
{
    return bits->k <= 8 ? has_key_512(bits, digest, 1) : has_key_512(bits, digest, 0);
}

/*
 * One key from its bytes; see struct quick. Word b is mixed in all lanes at once, where registers are
 * free, and stays there. Lane l is asked in the last round if (l - rotation) mod 8 is less than the
 * probes of the round: that is, if the top 3 bits of b less l + 1 are at least 8 less the probes.
 */
ALWAYS_INLINE AVX512 bool quick_512(const struct quick *quick, const void *key, int rounds)
{
    const __m512i next = _mm512_slli_epi64(_mm512_set_epi64(8, 7, 6, 5, 4, 3, 2, 1), 61);
    tamis_digest d = digest_eight(quick->flip, key);
    const __m512i *line =
        (const void *)((const char *)quick->words + 64 * mul_high(d.a, quick->units));
    __m512i b = _mm512_set1_epi64((long long)d.b);
    b = _mm512_xor_si512(b, _mm512_srli_epi64(b, 37));
    b = _mm512_mullo_epi64(b, _mm512_set1_epi64((long long)quick->mix));
    b = _mm512_xor_si512(b, _mm512_srli_epi64(b, 32));
    __mmask8 lanes = _mm512_cmpge_epu64_mask(_mm512_sub_epi64(b, next),
                                             _mm512_set1_epi64((long long)quick->least));
    if (rounds == 1)
        return _mm512_mask_testn_epi64_mask(lanes, lane_bits(b, quick->one), *line) == 0;
    uint64_t w = mul_fold((uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(b)), BLOCK_MIX);
    return (_mm512_testn_epi64_mask(lane_bits(b, quick->one), *line) |
            _mm512_mask_testn_epi64_mask(
                lanes, lane_bits(_mm512_set1_epi64((long long)w), quick->one), *line)) == 0;
}

static AVX512 bool has_key_8_avx512(const struct quick *quick, const void *key, size_t len)
{
    return LIKELY(len == 8) ? quick_512(quick, key, 1) : quick_other(quick, key, len);
}

static AVX512 bool has_key_16_avx512(const struct quick *quick, const void *key, size_t len)
{
    return LIKELY(len == 8) ? quick_512(quick, key, 2) : quick_other(quick, key, len);
}

ALWAYS_INLINE AVX512 void add_512(const struct bits *bits, const tamis_digest *digests, size_t n,
                                  uint8_t *fresh, int rounds)
{
    blocked_prefetch(bits, digests, n < AHEAD ? n : AHEAD);
    for (size_t i = 0; i < n; i++) {
        line_ahead(bits, digests, i, n);
        __m512i want = key_bits(digests[i].b, bits->k, rounds);
        uint64_t *block = bits->words + block_index(bits, digests[i]);
        __m512i have = _mm512_load_si512(block);
        __m512i miss = _mm512_andnot_si512(have, want);
        fresh[i] = _mm512_test_epi64_mask(miss, miss) != 0;
        _mm512_store_si512(block, _mm512_or_si512(have, want));
    }
}

/* One body for each number of rounds, so that none is counted key by key. */
#define BY_ROUNDS(body, bits, ...)      \
    do {                                \
        if ((bits)->k <= 8)             \
            body(bits, __VA_ARGS__, 1); \
        else if ((bits)->k <= 16)       \
            body(bits, __VA_ARGS__, 2); \
        else                            \
            body(bits, __VA_ARGS__, 0); \
    } while (0)

static AVX512 void has_avx512(const struct bits *bits, const tamis_digest *digests, size_t n,
                              uint8_t *found)
{
    BY_ROUNDS(has_512, bits, digests, n, found);
}

static AVX512 void has_stream_avx512(const struct bits *bits, const tamis_digest *digests, size_t n,
                                     uint8_t *found)
{
    BY_ROUNDS(stream_512, bits, digests, n, found);
}

static AVX512 void add_avx512(const struct bits *bits, const tamis_digest *digests, size_t n,
                              uint8_t *fresh)
{
    BY_ROUNDS(add_512, bits, digests, n, fresh);
}

/*
 * A stack. The bits of a key depend on k alone, not on the size, so vectors of one k share them. What
 * is left for each vector and key is to find the line, once to fetch it and once to look. A line goes
 * to the second level of the cache FAR keys ahead and, where the stack is larger than the caches, from
 * there to the first a key ahead: a load that waits while the second level is busy with misses holds
 * up all that follow. Lines are found again rather than kept: that would be more loads.
 */
#define FAR         24
#define STACK_MOST  64
#define STACK_LARGE (UINT64_C(1) << 25) /* bytes of a stack that no cache holds */

/* The vectors of one k; the first `fetched` of them are not in cache unasked. */
struct levels {
    const uint64_t *words[STACK_MOST];
    uint64_t units[STACK_MOST];
    size_t n, fetched;
    unsigned k;
};

static void levels_add(struct levels *levels, const void *stack, size_t vectors, bool small)
{
    for (size_t i = 0; i < vectors; i++) {
        const struct bits *bits = bits_at(stack, i);
        if (bits->k == levels->k && bits_small(bits) == small) {
            levels->words[levels->n] = bits->words;
            levels->units[levels->n++] = bits->units;
        }
    }
}

ALWAYS_INLINE const void *level_line(const struct levels *levels, size_t j, uint64_t a)
{
    return (const char *)levels->words[j] + 64 * mul_high(a, levels->units[j]);
}

/* With 8 probes each lane has one, and all of them are there if no lane is without. */
ALWAYS_INLINE AVX512 unsigned level_has(const struct levels *levels, size_t j, uint64_t a,
                                        __m512i want, bool eight)
{
    __m512i have = _mm512_load_si512(level_line(levels, j, a));
    return eight ? _mm512_testn_epi64_mask(want, have) == 0
                 : _mm512_cmpneq_epi64_mask(_mm512_and_si512(want, have), want) == 0;
}

ALWAYS_INLINE AVX512 void levels_512(const struct levels *levels, const tamis_digest *digests,
                                     size_t n, uint8_t *found, bool eight, bool twice)
{
    unsigned k = levels->k;
    int rounds = k <= 8 ? 1 : k <= 16 ? 2 : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t a = digests[i].a, far = digests[i + FAR < n ? i + FAR : i].a;
        uint64_t next = digests[i + 1 < n ? i + 1 : i].a;
        __m512i want = eight ? key_bits(digests[i].b, 8, 1) : key_bits(digests[i].b, k, rounds);
        unsigned hit = 0;
        size_t j = 0;
        for (; j < levels->fetched; j++) {
            fetch(level_line(levels, j, far));
            if (twice)
                __builtin_prefetch(level_line(levels, j, next), 0, 3);
            hit |= level_has(levels, j, a, want, eight);
        }
        for (; j < levels->n; j++)
            hit |= level_has(levels, j, a, want, eight);
        found[i] |= (uint8_t)hit;
    }
}

static AVX512 void levels_have(const struct levels *levels, const tamis_digest *digests, size_t n,
                               uint8_t *found)
{
    uint64_t units = 0;
    for (size_t j = 0; j < levels->fetched; j++) {
        for (size_t i = 0; i < n && i < FAR; i++)
            fetch(level_line(levels, j, digests[i].a));
        units += levels->units[j];
    }
    bool twice = 64 * units > STACK_LARGE;
    if (levels->k == 8 && twice)
        levels_512(levels, digests, n, found, true, true);
    else if (levels->k == 8)
        levels_512(levels, digests, n, found, true, false);
    else if (twice)
        levels_512(levels, digests, n, found, false, true);
    else
        levels_512(levels, digests, n, found, false, false);
}

/* One key: all lines are on their way before the first is there, since none waits for another. */
static AVX512 bool has_any_avx512(const void *stack, size_t vectors, tamis_digest digest)
{
    __m512i want = _mm512_setzero_si512();
    unsigned k = 0, hit = 0;
    for (size_t j = 0; j < vectors; j++) {
        const struct bits *bits = bits_at(stack, j);
        if (UNLIKELY(bits->k != k)) {
            k = bits->k;
            want = key_bits(digest.b, k, k <= 8 ? 1 : k <= 16 ? 2 : 0);
        }
        __m512i have = _mm512_load_si512(bits->words + block_index(bits, digest));
        hit |= _mm512_cmpneq_epi64_mask(_mm512_and_si512(want, have), want) == 0;
    }
    return hit;
}

static AVX512 void has_stack_avx512(const void *stack, size_t vectors, const tamis_digest *digests,
                                    size_t n, uint8_t *found)
{
    struct levels levels;
    uint64_t ks = 0;
    if (vectors > STACK_MOST) {
        stack_by_groups(stack, vectors, digests, n, found);
        return;
    }
    for (size_t i = 0; i < vectors; i++)
        ks |= UINT64_C(1) << (bits_at(stack, i)->k - 1);
    memset(found, 0, n);
    for (; ks; ks &= ks - 1) {
        levels.k = (unsigned)__builtin_ctzll(ks) + 1;
        levels.n = 0;
        levels_add(&levels, stack, vectors, false);
        levels.fetched = levels.n;
        levels_add(&levels, stack, vectors, true);
        levels_have(&levels, digests, n, found);
    }
}

static AVX512 bool rows_avx512(const uint64_t *words, uint64_t stride, uint64_t n,
                               const uint64_t *rows, unsigned k, uint64_t *acc)
{
    bool any = false;
    for (uint64_t i = 0; i < n; i += 8) {
        __mmask8 in = n - i >= 8 ? 0xff : (__mmask8)((1u << (n - i)) - 1);
        __m512i left = _mm512_maskz_loadu_epi64(in, acc + i);
        for (unsigned j = 0; j < k && _mm512_test_epi64_mask(left, left); j++)
            left =
                _mm512_and_si512(left, _mm512_maskz_loadu_epi64(in, words + rows[j] * stride + i));
        _mm512_mask_storeu_epi64(acc + i, in, left);
        any |= _mm512_test_epi64_mask(left, left) != 0;
    }
    return any;
}

/* ---- AVX2 ------------------------------------------------------------------------------------ */

/* Row r, read from word 8 - s: all ones for the lanes of a round of r probes with rotation s. */
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

ALWAYS_INLINE AVX2 __m256i half_bits(uint64_t w, __m256i fields, const uint64_t *lanes)
{
    __m256i shifts = _mm256_srlv_epi64(_mm256_set1_epi64x((long long)w), fields);
    shifts = _mm256_and_si256(shifts, _mm256_set1_epi64x(63));
    __m256i ones = _mm256_sllv_epi64(_mm256_set1_epi64x(1), shifts);
    return _mm256_and_si256(ones, _mm256_loadu_si256((const __m256i *)(const void *)lanes));
}

ALWAYS_INLINE AVX2 struct half_pair round_halves(uint64_t w, const uint64_t *lanes)
{
    const __m256i low = _mm256_set_epi64x(18, 12, 6, 0), high = _mm256_set_epi64x(42, 36, 30, 24);
    return (struct half_pair){half_bits(w, low, lanes), half_bits(w, high, lanes + 4)};
}

/* `rounds` is 1 when k <= 8 is known, or 0. */
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

ALWAYS_INLINE AVX2 bool has_256(const struct bits *bits, tamis_digest d, int rounds)
{
    struct half_pair want = key_halves(d.b, bits->k, rounds);
    const __m256i *block = (const __m256i *)(const void *)(bits->words + block_index(bits, d));
    return _mm256_testc_si256(_mm256_load_si256(block), want.low) &
           _mm256_testc_si256(_mm256_load_si256(block + 1), want.high);
}

static AVX2 bool has_one_avx2(const struct bits *bits, tamis_digest digest)
{
    return bits->k <= 8 ? has_256(bits, digest, 1) : has_256(bits, digest, 0);
}

static AVX2 bool has_key_8_avx2(const struct quick *quick, const void *key, size_t len)
{
    if (UNLIKELY(len != 8))
        return quick_other(quick, key, len);
    tamis_digest d = digest_eight(quick->flip, key);
    d.b = (d.b ^ d.b >> 37) * EIGHT_B;
    d.b ^= d.b >> 32;
    return has_256(quick->bits, d, 1);
}

#define has_key_16_avx2 NULL

static AVX2 void has_avx2(const struct bits *bits, const tamis_digest *digests, size_t n,
                          uint8_t *found)
{
    if (bits->k <= 8)
        for (size_t i = 0; i < n; i++)
            found[i] |= has_256(bits, digests[i], 1);
    else
        for (size_t i = 0; i < n; i++)
            found[i] |= has_256(bits, digests[i], 0);
}

ALWAYS_INLINE AVX2 void stream_256(const struct bits *bits, const tamis_digest *digests, size_t n,
                                   uint8_t *found, int rounds)
{
    blocked_prefetch(bits, digests, n < AHEAD ? n : AHEAD);
    for (size_t i = 0; i < n; i++) {
        line_ahead(bits, digests, i, n);
        found[i] = has_256(bits, digests[i], rounds);
    }
}

static AVX2 void has_stream_avx2(const struct bits *bits, const tamis_digest *digests, size_t n,
                                 uint8_t *found)
{
    if (bits->k <= 8)
        stream_256(bits, digests, n, found, 1);
    else
        stream_256(bits, digests, n, found, 0);
}

ALWAYS_INLINE AVX2 void add_256(const struct bits *bits, const tamis_digest *digests, size_t n,
                                uint8_t *fresh, int rounds)
{
    blocked_prefetch(bits, digests, n < AHEAD ? n : AHEAD);
    for (size_t i = 0; i < n; i++) {
        line_ahead(bits, digests, i, n);
        struct half_pair want = key_halves(digests[i].b, bits->k, rounds);
        __m256i *block = (__m256i *)(void *)(bits->words + block_index(bits, digests[i]));
        __m256i low = _mm256_load_si256(block), high = _mm256_load_si256(block + 1);
        fresh[i] = !(_mm256_testc_si256(low, want.low) & _mm256_testc_si256(high, want.high));
        _mm256_store_si256(block, _mm256_or_si256(low, want.low));
        _mm256_store_si256(block + 1, _mm256_or_si256(high, want.high));
    }
}

static AVX2 void add_avx2(const struct bits *bits, const tamis_digest *digests, size_t n,
                          uint8_t *fresh)
{
    if (bits->k <= 8)
        add_256(bits, digests, n, fresh, 1);
    else
        add_256(bits, digests, n, fresh, 0);
}

#define has_any_avx2   any_in_turn
#define has_stack_avx2 stack_by_groups

static AVX2 bool rows_avx2(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                           unsigned k, uint64_t *acc)
{
    bool any = false;
    uint64_t whole = n & ~UINT64_C(3);
    for (uint64_t i = 0; i < whole; i += 4) {
        __m256i left = _mm256_loadu_si256((const __m256i *)(const void *)(acc + i));
        for (unsigned j = 0; j < k && !_mm256_testz_si256(left, left); j++) {
            const uint64_t *row = words + rows[j] * stride + i;
            left = _mm256_and_si256(left, _mm256_loadu_si256((const __m256i *)(const void *)row));
        }
        _mm256_storeu_si256((__m256i *)(void *)(acc + i), left);
        any |= !_mm256_testz_si256(left, left);
    }
    return (whole < n && rows_scalar(words + whole, stride, n - whole, rows, k, acc + whole)) ||
           any;
}

/* What is not hot is the scalar row's. */
#define ROW_OF(isa)                                                                                \
    {                                                                                              \
        .name = "blocked, " #isa, .layout = TAMIS_BLOCKED, .unit_bits = BLOCK_BITS, .local = true, \
        .has_one = has_one_##isa, .has_any = has_any_##isa,                                        \
        .has_key = {has_key_8_##isa, has_key_16_##isa}, .prefetch = blocked_prefetch,              \
        .has = has_##isa, .has_stack = has_stack_##isa, .has_stream = has_stream_##isa,            \
        .add = add_##isa, .add_shared = blocked_add_shared, .fill = blocked_fill,                  \
        .positions = blocked_positions, .rate = blocked_rate,                                      \
    }
static const struct kernel kernel_avx2 = ROW_OF(avx2), kernel_avx512 = ROW_OF(avx512);

const struct kernel *kernel_x86_blocked(bool avx512)
{
    return avx512 ? &kernel_avx512 : &kernel_avx2;
}

rows_fn rows_x86(bool avx512)
{
    return avx512 ? rows_avx512 : rows_avx2;
}

#else

const struct kernel *kernel_x86_blocked(bool avx512)
{
    (void)avx512;
    return NULL;
}

rows_fn rows_x86(bool avx512)
{
    (void)avx512;
    return NULL;
}

#endif
