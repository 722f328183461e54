/*
 * Moves the slots of whole parts into bodies of another size: included by the vector kernels. A set that grows moves
 * each entry five to twelve times: 3 to 4 ns each, with the memory for it, where one by one it takes 10 to 12.
 *
 * A line is spread over 32 lanes of 32 bits, and one of 14 bits over one more register, for the slots that are in the
 * top bits of its bytes. Lines are read and written in the order of w, so each slot goes to the line being filled, the
 * open line, or to one after it; the slots that go to the open line are squeezed together behind those that it has. Values of w are relative to the first of the line read, so that they fit into 31 bits.
 *
 * A file that includes this defines LANES, the number of lanes in a register, LANE_NUMBERS, their numbers, lane_v, a
 * register of lanes, and
 *
 *     lane_v lanes_load16(at), lanes_load8(at)   zero-extended
 *     void lanes_store16(v, to), lanes_store8    stores the low bits of all lanes
 *     uint32_t lanes_below(v, bound)             a bit for each lane that is less; all values are below 2^31
 *     uint32_t lanes_test(v, mask)               a bit for each lane that has a bit of the mask
 *     lane_v lanes_squeeze(v, set)               the lanes of a set, in order, then zeros
 *     void line_store(line, lanes, tops)         stores lanes of 16 bits, with the top bits of their bytes
 */
#include "base/bytes.h"
#include "lines_place.h"

#define REGISTERS (32 / LANES) /* and one for slots in top bits */

/* The line being filled. Zeros are written behind its slots, into the next line. Slots of more than 16 bits are
   collected here, and so are those of a line whose next one is not empty. */
struct open_line {
    uint16_t *slot; /* `low`, or in the line itself */
    uint16_t bound; /* of 14 bits: with what follows, the lanes of a line, and then its top bits */
    uint16_t low[35 + LANES];
    uint8_t high[32 + LANES];
    unsigned used;
    struct border border;
};

#define NIBBLES UINT64_C(0x0f0f0f0f0f0f0f0f)
#define PAIRS   UINT64_C(0x0303030303030303)

/* The high bits of all slots, a byte each. */
ALWAYS_INLINE TARGET void high_spread(const uint8_t *line, unsigned width, uint8_t high[32])
{
    if (width == 18) {
        for (unsigned i = 0; i < 4; i++)
            put_u64(high + 8 * i, _pdep_u64(get_u64(line + 54) >> 16 * i, PAIRS));
    } else if (width == 20) {
        uint64_t a = get_u64(line + 48), b = get_u64(line + 52);
        put_u64(high, a & NIBBLES);
        put_u64(high + 4, b & NIBBLES);
        put_u64(high + 12, a >> 4 & NIBBLES);
        put_u64(high + 16, b >> 4 & NIBBLES);
        put_u64(high + 24, 0);
    } else {
        memcpy(high, line + 40, 24);
        put_u64(high + 24, 0);
    }
}

ALWAYS_INLINE TARGET void high_pack(uint8_t *line, unsigned width, const uint8_t *high)
{
    if (width == 18) {
        uint64_t word = 0;
        for (unsigned i = 0; i < 4; i++)
            word |= _pext_u64(get_u64(high + 8 * i), PAIRS) << 16 * i;
        memcpy(line + 54, &word, 7);
    } else if (width == 20) {
        put_u64(line + 48, get_u64(high) | get_u64(high + 12) << 4);
        uint64_t rest = get_u64(high + 8) | get_u64(high + 20) << 4;
        memcpy(line + 56, &rest, 4);
    } else {
        memcpy(line + 40, high, 20);
    }
}

/* A line that has slots already has those that came one by one. */
ALWAYS_INLINE TARGET void line_open(const struct pour *p, struct open_line *open, unsigned width)
{
    uint64_t number = open->border.line;
    if (UNLIKELY(number >= p->to->lines))
        return;
    uint8_t *line = body_line(p->to, number);
    open->used = p->used[number];
    open->slot = (uint16_t *)(void *)(line + 2);
    if (width == 16 && LIKELY(number + 1 < p->to->lines && p->used[number + 1] == 0))
        return;
    open->slot = open->low;
    open->bound = (uint16_t)bound_raw(line, 14);
    memset(open->low, 0, 70);
    memset(open->high, 0, 32);
    for (unsigned i = 0; UNLIKELY(i < open->used); i++) {
        uint32_t slot = slot_get(line, width, i);
        open->low[i] = (uint16_t)lane_of(width, slot);
        open->high[i] = (uint8_t)(slot >> 16);
    }
}

ALWAYS_INLINE TARGET void line_close(const struct pour *p, const struct open_line *open,
                                     unsigned width)
{
    if (UNLIKELY(open->border.line >= p->to->lines))
        return;
    uint8_t *line = body_line(p->to, open->border.line);
    p->used[open->border.line] = (uint8_t)open->used;
    if (width == 16 && LIKELY(open->slot != open->low))
        return;
    if (width == 14) {
        line_store(line, &open->bound, get_u64((const uint8_t *)(open->low + 31)));
        return;
    }
    memcpy(slot_low(line, width, 0), open->low, 2 * line_slots(width));
    if (width > 16)
        high_pack(line, width, open->high);
}

/* For slots that do not fit into a single line with room. p->rest may write to the open line. */
static __attribute__((noinline)) TARGET tamis_error move_slowly(struct pour *p,
                                                                struct open_line *open,
                                                                const uint8_t *at, uint64_t first,
                                                                uint64_t lanes)
{
    unsigned width = p->from->width, to = p->to->width;
    tamis_error e = TAMIS_OK;
    line_close(p, open, to);
    for (; lanes && e == TAMIS_OK; lanes &= lanes - 1) {
        uint32_t slot = slot_get(at, width, (unsigned)__builtin_ctzll(lanes) - (width <= 16));
        uint64_t low = first + ((slot_order(slot) / 2 - first) & slot_ones(width - 1));
        e = p->rest(p->context, low << 1 | (slot & -slot));
    }
    line_open(p, open, to);
    return e;
}

/* One line on its way: all values are those of the new body. */
struct moving {
    lane_v slot[REGISTERS + 1];                       /* of 14 bits as lanes */
    lane_v place[REGISTERS + 1], last[REGISTERS + 1]; /* the w that the slots cover */
    uint64_t used;                                    /* lanes with a slot */
    uint64_t here; /* those whose entry begins in this line and is moved */
    uint64_t fine; /* those of them that the new slot identifies, without the flag LINE_BARE */
};

/* Calls a function for every register, as constants, so that what it has stays in registers. */
#define EACH_REGISTER(width, call, ...)                                         \
    do {                                                                        \
        call(__VA_ARGS__, 0), call(__VA_ARGS__, 1);                             \
        if (REGISTERS > 2)                                                      \
            call(__VA_ARGS__, 2 % REGISTERS), call(__VA_ARGS__, 3 % REGISTERS); \
        if (width == 14)                                                        \
            call(__VA_ARGS__, REGISTERS);                                       \
    } while (0)

ALWAYS_INLINE TARGET void line_append(struct open_line *open, const struct moving *m, uint64_t set,
                                      unsigned width, unsigned i)
{
    uint32_t some = (uint32_t)(set >> LANES * i) & UINT32_MAX >> (32 - LANES);
    lane_v squeezed = lanes_squeeze(m->slot[i], some);
    lanes_store16(squeezed, open->slot + open->used);
    if (width > 16)
        lanes_store8(squeezed >> 16, open->high + open->used);
    open->used += (unsigned)__builtin_popcount(some);
}

/* The lanes with an entry that is not coarse have one of these bits. */
ALWAYS_INLINE uint32_t fine_bits(unsigned width)
{
    return (UINT32_C(1) << (width - 5)) - 1;
}

/* A line to be moved: its first w, and the bounds of those that are moved, relative to it. */
struct line_source {
    const uint8_t *line, *high; /* the high bits of its slots, a byte each */
    uint16_t tops[LANES];       /* the lanes in top bits */
    uint32_t first, from, till;
    unsigned more;
};

ALWAYS_INLINE TARGET void line_spread(struct moving *m, const struct line_source *s, lane_v *mass,
                                      unsigned width, unsigned to, unsigned i)
{
    const lane_v number = (lane_v)LANE_NUMBERS + LANES * i, zero = number ^ number;
    const void *at = i < REGISTERS ? s->line + 2 * LANES * i : (const void *)s->tops;
    lane_v v = lanes_load16(at);
    if (width == 14)
        v = (v & 0x7f) | (v >> 1 & 0x3f80);
    if (width > 16)
        v |= lanes_load8(s->high + LANES * i) << 16;
    v &= (lane_v)(width <= 16 ? number > 0 : number < line_slots(width));
    lane_v mark = v & -v;
    lane_v place = (((v ^ mark) >> 1) - s->first) & slot_ones(width - 1);
    lane_v slot = ((place + s->first) << 1 | mark) << s->more & slot_ones(to);
    uint32_t here = lanes_test(v, fine_bits(width)) & lanes_below(place, zero + s->till) &
                    ~lanes_below(place, zero + s->from);
    mark <<= s->more;
    *mass += mark & fine_bits(width) << s->more;
    m->slot[i] = to == 14 ? slot + (slot & 0x3f80) : slot;
    m->place[i] = place << s->more;
    m->last[i] = m->place[i] + mark - 1;
    m->used |= (uint64_t)lanes_test(v, UINT32_MAX) << LANES * i;
    m->here |= (uint64_t)here << LANES * i;
    m->fine |= (uint64_t)(here & lanes_test(slot, fine_bits(to) & 0xffff)) << LANES * i;
}

/* Which lanes end before a bound, and which begin before it? */
ALWAYS_INLINE TARGET void lines_split(const struct moving *m, uint32_t bound, uint64_t *inside,
                                      uint64_t *begin, unsigned i)
{
    lane_v wide = (m->place[i] ^ m->place[i]) + bound;
    *inside |= (uint64_t)lanes_below(m->last[i], wide) << LANES * i;
    *begin |= (uint64_t)lanes_below(m->place[i], wide) << LANES * i;
}

/* Distributes the slots of a line to the lines of the new body. */
ALWAYS_INLINE TARGET tamis_error line_move(struct pour *p, const uint8_t *at, uint64_t first,
                                           uint64_t end, struct open_line *open, unsigned width,
                                           unsigned to, lane_v *mass)
{
    struct moving m = {.used = 0};
    uint8_t high[32];
    uint64_t from = max_u64(first, p->first), till = min_u64(end, p->end);
    struct line_source s = {.line = at,
                            .high = high,
                            .first = (uint32_t)first,
                            .from = (uint32_t)(from - first),
                            .till = (uint32_t)(till - first),
                            .more = p->more};
    if (width == 14)
        put_u64((uint8_t *)s.tops, line_tops(at));
    if (width > 16)
        high_spread(at, width, high);
    EACH_REGISTER(width, line_spread, &m, &s, mass, width, to);
    uint64_t origin = (first - p->first) << p->more, stop = (till - p->first) << p->more;
    uint64_t went = 0;
    for (bool on = true; on;) {
        uint64_t here = open->border.first - origin;
        uint32_t bound = (uint32_t)min_u64(here, INT32_MAX);
        uint64_t inside = 0, begin = 0;
        EACH_REGISTER(width, lines_split, &m, bound, &inside, &begin);
        inside &= m.fine;
        m.fine &= ~begin;
        unsigned room = line_slots(to) - open->used;
        if (UNLIKELY((unsigned)__builtin_popcountll(inside) > room))
            inside = _pdep_u64((UINT64_C(1) << room) - 1, inside);
        EACH_REGISTER(width, line_append, open, &m, inside, to);
        went |= inside;
        on = open->border.first < stop;
        if (open->border.first <= stop) {
            line_close(p, open, to);
            border_move(&open->border);
            line_open(p, open, to);
        }
    }
    p->keys += (unsigned)__builtin_popcountll(went);
    for (uint64_t lanes = m.used & ~went; UNLIKELY(lanes); lanes &= lanes - 1) {
        uint32_t slot = slot_get(at, width, (unsigned)__builtin_ctzll(lanes) - (width <= 16));
        p->mass -= (slot & -slot & fine_bits(width)) << p->more; /* added by line_spread() */
    }
    went = m.here & ~went;
    return UNLIKELY(went) ? move_slowly(p, open, at, first, went) : TAMIS_OK;
}

ALWAYS_INLINE TARGET tamis_error pour_move(struct pour *p, unsigned width, unsigned to)
{
    const struct body *b = p->from;
    struct open_line open = {.border = border_at(p->to, 0)};
    uint64_t line = line_of(b, p->first), last = line_of(b, p->end - 1), first = first_of(b, line);
    struct border border = border_at(b, line);
    lane_v mass = {0};
    tamis_error e = TAMIS_OK;
    line_open(p, &open, to);
    for (; line <= last && e == TAMIS_OK; line++) {
        e = line_move(p, body_line(b, line), first, border.first, &open, width, to, &mass);
        first = border.first;
        border_move(&border);
        if (line % 64 == 63 || line == last) { /* before the 32-bit sums overflow */
            for (unsigned i = 0; i < LANES; i++)
                p->mass += mass[i];
            mass ^= mass;
        }
    }
    return e;
}

static TARGET tamis_error kernel_pour(struct pour *p)
{
    unsigned width = p->from->width, to = p->to->width;
    if (width == 14)
        return to == 14 ? pour_move(p, 14, 14) : pour_move(p, 14, to);
    return width == 16 && to == 16   ? pour_move(p, 16, 16)
           : width == 18 && to == 18 ? pour_move(p, 18, 18)
                                     : pour_move(p, width, to);
}
