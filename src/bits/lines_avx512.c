/* Kernels of lines for AVX-512: a line is one register, and a comparison a mask. */
#include "kernel.h"
#include "lines.h"

#ifdef TAMIS_X86

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi,bmi2")))

ALWAYS_INLINE TARGET uint32_t match16(const uint8_t *line, uint16_t q)
{
    __m512i v = _mm512_loadu_si512(line);
    __m512i above = _mm512_xor_si512(v, _mm512_sub_epi16(_mm512_setzero_si512(), v));
    __m512i differ = _mm512_xor_si512(v, _mm512_set1_epi16((short)q));
    return _mm512_mask_testn_epi16_mask(_mm512_test_epi16_mask(v, v), differ, above);
}

ALWAYS_INLINE TARGET bool any16(const uint8_t *line, uint16_t q)
{
    return match16(line, q) >> 1;
}

ALWAYS_INLINE TARGET unsigned greatest16(const uint8_t *line)
{
    __m512i v = _mm512_loadu_si512(line);
    __m512i order = _mm512_and_si512(v, _mm512_sub_epi16(v, _mm512_set1_epi16(1)));
    order = _mm512_maskz_mov_epi16(0xfffffffe, order);
    __m256i half =
        _mm256_max_epu16(_mm512_castsi512_si256(order), _mm512_extracti64x4_epi64(order, 1));
    __m128i most = _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    most = _mm_minpos_epu16(_mm_xor_si128(most, _mm_set1_epi16(-1)));
    __m512i wide = _mm512_broadcastw_epi16(_mm_xor_si128(most, _mm_set1_epi16(-1)));
    return 30 - (unsigned)__builtin_clz(_mm512_mask_cmpeq_epi16_mask(0xfffffffe, order, wide));
}

ALWAYS_INLINE TARGET uint64_t match8(const uint8_t *line, uint8_t q)
{
    __m512i v = _mm512_loadu_si512(line);
    __m512i above = _mm512_xor_si512(v, _mm512_sub_epi8(_mm512_setzero_si512(), v));
    __m512i differ = _mm512_xor_si512(v, _mm512_set1_epi8((char)q));
    return _mm512_mask_testn_epi8_mask(_mm512_test_epi8_mask(v, v), differ, above);
}

ALWAYS_INLINE TARGET uint32_t zero16(const uint8_t *line)
{
    __m512i v = _mm512_loadu_si512(line);
    return _mm512_testn_epi16_mask(v, v);
}

ALWAYS_INLINE TARGET uint64_t zero8(const uint8_t *line)
{
    __m512i v = _mm512_loadu_si512(line);
    return _mm512_testn_epi8_mask(v, v);
}

#include "lines_kernel.h"
#include "lines_place.h"

/* ---- pouring --------------------------------------------------------------------------------- */

#define POUR \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,avx2,bmi,bmi2,popcnt")))

/* The line of `to` being filled, and the w at which it ends. */
struct edge {
    uint64_t line, end;
};

ALWAYS_INLINE POUR tamis_error pour_slowly(struct pour *p, uint64_t first, __m512i slots,
                                           __mmask32 lanes)
{
    uint16_t slot[32];
    tamis_error e = TAMIS_OK;
    _mm512_storeu_si512(slot, slots);
    for (; lanes && e == TAMIS_OK; lanes &= lanes - 1) {
        uint32_t here = slot[__builtin_ctz(lanes)];
        uint64_t low = first + ((slot_order(here) / 2 - first) & 0x7fff);
        e = p->rest(p->context, low << 1 | (here & -here));
    }
    return e;
}

/* Packs lanes into a line, as far as there is room, and returns those that fitted. */
ALWAYS_INLINE POUR __mmask32 pour_into(struct pour *p, uint64_t line, __m512i slots,
                                       __mmask32 lanes)
{
    unsigned used = p->used[line], room = 31 - used;
    if (UNLIKELY((unsigned)__builtin_popcount(lanes) > room))
        lanes = _pdep_u32(room ? UINT32_MAX >> (32 - room) : 0, lanes);
    unsigned n = (unsigned)__builtin_popcount(lanes);
    __m512i packed = _mm512_maskz_compress_epi16(lanes, slots);
    _mm512_mask_storeu_epi16(body_line(p->to, line) + 2 + 2 * used, n ? UINT32_MAX >> (32 - n) : 0,
                             packed);
    p->used[line] = (uint8_t)(used + n);
    p->keys += n;
    return lanes;
}

/* Distributes the slots of one line; entries that straddle two lines or find no room go through
   pour_slowly(). Values of w are relative to the first of the line, so that they fit into 16 bits. */
ALWAYS_INLINE POUR tamis_error pour_line(struct pour *p, const uint8_t *at, uint64_t first,
                                         uint64_t end, int more, struct edge *edge, __m512i *mass)
{
    const __m512i one = _mm512_set1_epi16(1);
    __m512i v = _mm512_loadu_si512(at);
    __m512i low = _mm512_srli_epi16(_mm512_and_si512(v, _mm512_sub_epi16(v, one)), 1);
    __m512i place = _mm512_and_si512(_mm512_sub_epi16(low, _mm512_set1_epi16((short)first)),
                                     _mm512_set1_epi16(0x7fff));
    __mmask32 all = _mm512_mask_test_epi16_mask(0xfffffffe, v, _mm512_set1_epi16(0x7ff));
    all = _mm512_mask_cmplt_epu16_mask(all, place, _mm512_set1_epi16((short)(end - first)));
    __m512i slots = more ? _mm512_add_epi16(v, v) : v;
    __m512i mark = _mm512_and_si512(slots, _mm512_sub_epi16(_mm512_setzero_si512(), slots));
    if (more)
        place = _mm512_add_epi16(place, place);
    __m512i last = _mm512_adds_epu16(place, _mm512_sub_epi16(mark, one));
    __mmask32 fine = _mm512_mask_test_epi16_mask(all, slots, _mm512_set1_epi16(0x7ff)), went = 0;
    uint64_t from = first << more, to = end << more;
    for (bool on = true; on;) {
        uint64_t here = edge->end - from;
        __m512i bound = _mm512_set1_epi16((short)(here < 0xffff ? here : 0xffff));
        went |= pour_into(p, edge->line, slots, _mm512_mask_cmplt_epu16_mask(fine, last, bound));
        fine = _mm512_mask_cmpge_epu16_mask(fine, place, bound);
        on = edge->end < to;
        if (edge->end <= to) {
            edge->line++;
            edge->end = first_of(p->to, edge->line + 1);
        }
    }
    *mass = _mm512_add_epi32(*mass, _mm512_madd_epi16(_mm512_maskz_mov_epi16(went, mark), one));
    return all & ~went ? pour_slowly(p, first, v, all & ~went) : TAMIS_OK;
}

static POUR tamis_error kernel_pour(struct pour *p)
{
    const struct body *b = p->from;
    int more = (int)b->shift - (int)p->to->shift;
    struct edge edge = {0, first_of(p->to, 1)};
    uint64_t first = 0;
    __m512i mass = _mm512_setzero_si512();
    tamis_error e = TAMIS_OK;
    for (uint64_t line = 0; line < b->lines && e == TAMIS_OK; line++) {
        uint64_t end = first_of(b, line + 1);
        e = pour_line(p, body_line(b, line), first, end, more, &edge, &mass);
        first = end;
        if ((line & 0xffff) == 0xffff || line + 1 == b->lines) {
            p->mass += (uint64_t)_mm512_reduce_add_epi64(
                           _mm512_and_si512(mass, _mm512_set1_epi64(0xffffffff))) +
                       (uint64_t)_mm512_reduce_add_epi64(_mm512_srli_epi64(mass, 32));
            mass = _mm512_setzero_si512();
        }
    }
    return e;
}

const struct lines_kernel lines_avx512 = LINES_KERNEL("avx512", kernel_has_key, kernel_pour);

#endif
