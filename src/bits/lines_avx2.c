/* Kernels of lines for AVX2: a line is two registers. */
#include "kernel.h"
#include "lines.h"

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

/* A bit mask of the lanes of 16 bits that are all ones. */
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

/* Not zero where half of the difference is less than the mark: the two differ in unknown bits only. */
ALWAYS_INLINE TARGET __m256i lanes_near16(__m256i v, __m256i q)
{
    __m256i mark = _mm256_and_si256(v, _mm256_sub_epi16(_mm256_setzero_si256(), v));
    return _mm256_subs_epu16(mark, _mm256_srli_epi16(_mm256_xor_si256(v, q), 1));
}

ALWAYS_INLINE TARGET bool any16(const uint8_t *line, uint16_t q)
{
    struct halves v = line_halves(line);
    __m256i wide = _mm256_set1_epi16((short)q);
    __m256i near = _mm256_and_si256(lanes_near16(v.low, wide), SLOTS_OF_LOW);
    near = _mm256_or_si256(near, lanes_near16(v.high, wide));
    return !_mm256_testz_si256(near, near);
}

ALWAYS_INLINE TARGET unsigned greatest16(const uint8_t *line)
{
    struct halves v = line_halves(line);
    const __m256i one = _mm256_set1_epi16(1);
    __m256i low = _mm256_and_si256(v.low, _mm256_sub_epi16(v.low, one));
    __m256i high = _mm256_and_si256(v.high, _mm256_sub_epi16(v.high, one));
    low = _mm256_and_si256(low, SLOTS_OF_LOW);
    __m256i half = _mm256_max_epu16(low, high);
    __m128i most = _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    /* The minimum of the inverted values. */
    most = _mm_minpos_epu16(_mm_xor_si128(most, _mm_set1_epi16(-1)));
    __m256i wide = _mm256_broadcastw_epi16(_mm_xor_si128(most, _mm_set1_epi16(-1)));
    return 30 - (unsigned)__builtin_clz(
                    pack16(_mm256_cmpeq_epi16(low, wide), _mm256_cmpeq_epi16(high, wide)));
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
#include "lines_place.h"

/* ---- pouring --------------------------------------------------------------------------------- */

/* The line being filled: its bound and slots, and room for what is written beyond them. */
struct open_line {
    uint16_t lane[32 + 32 + 8] __attribute__((aligned(32)));
    unsigned used;
    struct border border;
    uint64_t poured; /* into all lines */
};

ALWAYS_INLINE TARGET void line_open(const struct pour *p, struct open_line *open)
{
    if (UNLIKELY(open->border.line >= p->to->lines))
        return;
    struct halves v = line_halves(body_line(p->to, open->border.line));
    _mm256_storeu_si256((__m256i *)(void *)open->lane, v.low);
    _mm256_storeu_si256((__m256i *)(void *)(open->lane + 16), v.high);
    open->used = p->used[open->border.line];
}

ALWAYS_INLINE TARGET void line_close(const struct pour *p, const struct open_line *open)
{
    if (UNLIKELY(open->border.line >= p->to->lines))
        return;
    const __m256i low = _mm256_set_epi16(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                  high = _mm256_add_epi16(low, _mm256_set1_epi16(16));
    __m256i end = _mm256_set1_epi16((short)(open->used + 1));
    struct halves v = line_halves((const uint8_t *)open->lane);
    __m256i *to = (__m256i *)(void *)body_line(p->to, open->border.line);
    _mm256_storeu_si256(to, _mm256_and_si256(v.low, _mm256_cmpgt_epi16(end, low)));
    _mm256_storeu_si256(to + 1, _mm256_and_si256(v.high, _mm256_cmpgt_epi16(end, high)));
    p->used[open->border.line] = (uint8_t)open->used;
}

/* For slots that do not fit into a single line with room. p->rest may write to the open line. */
static __attribute__((noinline)) TARGET tamis_error pour_slowly(struct pour *p,
                                                                struct open_line *open,
                                                                const uint8_t *at, uint64_t first,
                                                                uint32_t lanes)
{
    tamis_error e = TAMIS_OK;
    line_close(p, open);
    for (; lanes && e == TAMIS_OK; lanes &= lanes - 1) {
        uint32_t slot = load16(at + 2 * (unsigned)__builtin_ctz(lanes));
        uint64_t low = first + ((slot_order(slot) / 2 - first) & 0x7fff);
        e = p->rest(p->context, low << 1 | (slot & -slot));
    }
    line_open(p, open);
    return e;
}

/* For every set of lanes out of eight: the byte shuffle that packs them, in order. Lane k of the result is the
   lane of the set with k others below it. */
#define BIT(m, i)   ((m) >> (i)&1)
#define BELOW(m, i) __builtin_popcount((m) & ((1 << (i)) - 1))
#define IS(m, i, k) (BIT(m, i) && BELOW(m, i) == (k) ? 0x0100 + (i)*0x0202 : 0)
#define LANE(m, k)                                                                       \
    (IS(m, 0, k) | IS(m, 1, k) | IS(m, 2, k) | IS(m, 3, k) | IS(m, 4, k) | IS(m, 5, k) | \
     IS(m, 6, k) | IS(m, 7, k))
#define ROW(m)                                                                              \
    {                                                                                       \
        LANE(m, 0), LANE(m, 1), LANE(m, 2), LANE(m, 3), LANE(m, 4), LANE(m, 5), LANE(m, 6), \
            LANE(m, 7)                                                                      \
    }
#define ROWS4(m)  ROW(m), ROW((m) + 1), ROW((m) + 2), ROW((m) + 3)
#define ROWS16(m) ROWS4(m), ROWS4((m) + 4), ROWS4((m) + 8), ROWS4((m) + 12)
#define ROWS64(m) ROWS16(m), ROWS16((m) + 16), ROWS16((m) + 32), ROWS16((m) + 48)
static const uint16_t together[256][8]
    __attribute__((aligned(64))) = {ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192)};

/* Packs lanes of a line into the open one, as far as there is room, and returns those that did not fit. Garbage
   beyond them is overwritten later, or cleared when the line is closed. */
ALWAYS_INLINE TARGET uint32_t pour_into(struct open_line *open, const uint8_t *at, uint32_t lanes,
                                        int more)
{
    uint32_t left = 0;
    unsigned n = (unsigned)__builtin_popcount(lanes), used = open->used;
    for (; UNLIKELY(n > 31 - used); n--) {
        left |= lanes & -lanes;
        lanes &= lanes - 1;
    }
    uint16_t *to = open->lane + 1 + used;
    for (unsigned i = 0; i < 4; i++) {
        unsigned set = lanes >> 8 * i & 0xff;
        __m128i slots = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
        slots =
            _mm_shuffle_epi8(slots, _mm_load_si128((const __m128i *)(const void *)together[set]));
        _mm_storeu_si128((__m128i *)(void *)to, more ? _mm_add_epi16(slots, slots) : slots);
        to += __builtin_popcount(set);
    }
    open->used = used + n;
    open->poured += n;
    return left;
}

/* The entries that begin in a line, with their first and last w in the new body, relative to the first of the line so
   that they fit into 16 bits. Entries with more than ten unknown bits before or after the move are left out. */
struct lanes16 {
    __m256i place, last, mark, fine, all;
};

ALWAYS_INLINE TARGET struct lanes16 lanes_of(__m256i v, uint64_t first, uint64_t end, int more)
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1),
                  known = _mm256_set1_epi16(0x7ff);
    __m256i low = _mm256_srli_epi16(_mm256_and_si256(v, _mm256_sub_epi16(v, one)), 1);
    __m256i place = _mm256_and_si256(_mm256_sub_epi16(low, _mm256_set1_epi16((short)first)),
                                     _mm256_set1_epi16(0x7fff));
    __m256i out =
        _mm256_or_si256(_mm256_cmpeq_epi16(_mm256_and_si256(v, known), zero),
                        _mm256_cmpgt_epi16(place, _mm256_set1_epi16((short)(end - first - 1))));
    struct lanes16 lanes;
    lanes.all = _mm256_andnot_si256(out, _mm256_set1_epi16(-1));
    if (more) {
        v = _mm256_add_epi16(v, v);
        place = _mm256_add_epi16(place, place);
        out = _mm256_or_si256(out, _mm256_cmpeq_epi16(_mm256_and_si256(v, known), zero));
    }
    lanes.place = place;
    lanes.fine = _mm256_andnot_si256(out, _mm256_set1_epi16(-1));
    lanes.mark = _mm256_and_si256(v, _mm256_sub_epi16(zero, v));
    lanes.last = _mm256_adds_epu16(place, _mm256_sub_epi16(lanes.mark, one));
    return lanes;
}

ALWAYS_INLINE TARGET __m256i most16(__m256i v, __m256i bound)
{
    return _mm256_cmpeq_epi16(_mm256_min_epu16(v, bound), v);
}

/* Distributes the slots of one line to the lines of the new body. */
ALWAYS_INLINE TARGET tamis_error pour_line(struct pour *p, const uint8_t *at, uint64_t first,
                                           uint64_t end, int more, struct open_line *open,
                                           __m256i *mass)
{
    struct halves v = line_halves(at);
    const __m256i one = _mm256_set1_epi16(1);
    struct lanes16 low = lanes_of(v.low, first, end, more),
                   high = lanes_of(v.high, first, end, more);
    uint32_t slow = pack16(low.all, high.all) & ~UINT32_C(1), over = 0;
    uint64_t from = first << more, to = end << more;
    __m256i went_low = _mm256_setzero_si256(), went_high = went_low;
    for (bool on = true; on;) {
        uint64_t here = open->border.first - from - 1;
        __m256i bound = _mm256_set1_epi16((short)(here < 0xffff ? here : 0xffff));
        __m256i in_low = _mm256_and_si256(low.fine, most16(low.last, bound));
        __m256i in_high = _mm256_and_si256(high.fine, most16(high.last, bound));
        uint32_t lanes = pack16(in_low, in_high) & ~UINT32_C(1);
        slow &= ~lanes;
        over |= pour_into(open, at, lanes, more);
        went_low = _mm256_or_si256(went_low, in_low);
        went_high = _mm256_or_si256(went_high, in_high);
        low.fine = _mm256_andnot_si256(most16(low.place, bound), low.fine);
        high.fine = _mm256_andnot_si256(most16(high.place, bound), high.fine);
        on = open->border.first < to;
        if (open->border.first <= to) {
            line_close(p, open);
            border_move(&open->border);
            line_open(p, open);
        }
    }
    went_low = _mm256_and_si256(went_low, SLOTS_OF_LOW);
    *mass = _mm256_add_epi32(
        *mass, _mm256_add_epi32(_mm256_madd_epi16(_mm256_and_si256(went_low, low.mark), one),
                                _mm256_madd_epi16(_mm256_and_si256(went_high, high.mark), one)));
    for (uint32_t lanes = over; UNLIKELY(lanes); lanes &= lanes - 1) {
        uint32_t slot = load16(at + 2 * (unsigned)__builtin_ctz(lanes));
        p->mass -= (uint64_t)(slot & -slot) << more; /* counted above */
    }
    slow |= over;
    return UNLIKELY(slow) ? pour_slowly(p, open, at, first, slow) : TAMIS_OK;
}

ALWAYS_INLINE TARGET tamis_error pour_part(struct pour *p, int more)
{
    const struct body *b = p->from;
    struct open_line open = {.border = border_at_first(p->to)};
    struct border border = border_at_first(b);
    __m256i mass = _mm256_setzero_si256();
    uint64_t first = 0;
    tamis_error e = TAMIS_OK;
    line_open(p, &open);
    for (uint64_t line = 0; line < b->lines && e == TAMIS_OK; line++) {
        e = pour_line(p, body_line(b, line), first, border.first, more, &open, &mass);
        first = border.first;
        border_move(&border);
        if ((line & 0xffff) == 0xffff ||
            line + 1 == b->lines) { /* before the 32-bit sums overflow */
            uint32_t sum[8];
            _mm256_storeu_si256((__m256i *)(void *)sum, mass);
            for (unsigned i = 0; i < 8; i++)
                p->mass += sum[i];
            mass = _mm256_setzero_si256();
        }
    }
    p->keys = open.poured;
    return e;
}

static TARGET tamis_error kernel_pour(struct pour *p)
{
    return p->from->shift == p->to->shift ? pour_part(p, 0) : pour_part(p, 1);
}

const struct lines_kernel lines_avx2 = LINES_KERNEL("avx2", kernel_has_key, kernel_pour);

#endif
