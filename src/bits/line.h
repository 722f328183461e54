/*
 * The layout of one line: 64 bytes that hold slots of 12, 16, 18, 20 or 24 bits, and a bound.
 *
 *     width   slots   low bits of slots    high bits of slots       bound
 *        12      41   bytes 0..40          4 bits, bytes 41..61     u16 at 62
 *        16      31   u16 at 2, 4 .. 62    none                     u16 at 0
 *        18      27   u16 at 0, 2 .. 52    2 bits, bytes 54..60     the upper 24 bits of the u32 at 60
 *        20      24   u16 at 0, 2 .. 46    4 bits, bytes 48..59     u32 at 60
 *        24      20   u16 at 0, 2 .. 38    8 bits, bytes 40..59     u32 at 60
 *
 * Of 2 bits, four slots share a byte, the first its lowest bits; of 4 bits, the first half of the slots use the low
 * nibbles, the second half the high ones. Free slots are 0 and follow the used ones. A kernel compares the low bits
 * of all slots at once, and then the few matching slots as a whole. It takes a slot whose low bits are 0 for free:
 * the flag LINE_BARE says that the line has such a slot in use.
 *
 * A line that overflows keeps its smallest slots, compared by their bits above the mark (slot_order). The others
 * are in the stash of the part, and only queries at or above the bound need to look there. The bound is stored
 * inverted, so that a line of zeros is an empty line.
 *
 * While others read, a slot that moves to the stash is first written there, then the bound is lowered, then the
 * slot is overwritten. Readers read the slots, then the bound, then the stash.
 */
#ifndef TAMIS_LINE_H
#define TAMIS_LINE_H

#include "base/base.h"

#define WIDTH_LAST 24
#define LINE_BARE \
    UINT32_C(0x80000000) /* in the result of line_bound(); in a bound of 16 bits it is
                                          stored as bit 15 */

ALWAYS_INLINE unsigned line_slots(unsigned width)
{
    return width == 16 ? 31 : width == 18 ? 27 : width == 20 ? 24 : width == 24 ? 20 : 41;
}

/* The next wider slots. */
ALWAYS_INLINE unsigned width_after(unsigned width)
{
    return width + (width == 16 || width == 18 ? 2 : 4);
}

ALWAYS_INLINE bool width_valid(unsigned width)
{
    return width == 12 || width == 16 || width == 18 || width == 20 || width == WIDTH_LAST;
}

/* The mean number of entries per line at which a part grows. At that load 1.5 to 2.5 % of the entries
   are in the stash; on average it is half of that. */
ALWAYS_INLINE unsigned line_load(unsigned width)
{
    return width == 16 ? 26 : width == 18 ? 23 : width == 20 ? 20 : width == 24 ? 16 : 35;
}

ALWAYS_INLINE uint32_t slot_ones(unsigned width)
{
    return (UINT32_C(1) << width) - 1;
}

ALWAYS_INLINE uint32_t load16(const uint8_t *at)
{
    return __atomic_load_n((const uint16_t *)(const void *)at, __ATOMIC_RELAXED);
}

ALWAYS_INLINE void store16(uint8_t *at, uint32_t value)
{
    __atomic_store_n((uint16_t *)(void *)at, (uint16_t)value, __ATOMIC_RELAXED);
}

/* Where the high bits of a slot are. */
struct high_bits {
    unsigned byte, shift, ones;
};

ALWAYS_INLINE struct high_bits high_bits(unsigned width, unsigned i)
{
    if (width == 18)
        return (struct high_bits){54 + i / 4, i % 4 * 2, 3};
    if (width == 24)
        return (struct high_bits){40 + i, 0, 255};
    unsigned half = width == 12 ? 21 : 12, from = width == 12 ? 41 : 48;
    return i < half ? (struct high_bits){from + i, 0, 15}
                    : (struct high_bits){from + i - half, 4, 15};
}

ALWAYS_INLINE uint32_t high_get(const uint8_t *line, unsigned width, unsigned i)
{
    struct high_bits high = high_bits(width, i);
    return __atomic_load_n(line + high.byte, __ATOMIC_RELAXED) >> high.shift & high.ones;
}

ALWAYS_INLINE void high_put(uint8_t *line, unsigned width, unsigned i, uint32_t value)
{
    struct high_bits high = high_bits(width, i);
    uint32_t rest = line[high.byte] & ~(high.ones << high.shift);
    __atomic_store_n(line + high.byte, (uint8_t)(rest | value << high.shift), __ATOMIC_RELAXED);
}

ALWAYS_INLINE uint32_t slot_get(const uint8_t *line, unsigned width, unsigned i)
{
    if (width == 16)
        return load16(line + 2 + 2 * i);
    if (width == 12)
        return __atomic_load_n(line + i, __ATOMIC_RELAXED) | high_get(line, 12, i) << 8;
    return load16(line + 2 * i) | high_get(line, width, i) << 16;
}

ALWAYS_INLINE void slot_put(uint8_t *line, unsigned width, unsigned i, uint32_t value)
{
    if (width != 16)
        high_put(line, width, i, value >> (width == 12 ? 8 : 16));
    if (width == 12)
        __atomic_store_n(line + i, (uint8_t)value, __ATOMIC_RELAXED);
    else
        store16(line + (width == 16 ? 2 : 0) + 2 * i, value);
}

/* Does a used slot match a query? Both have `width` bits. */
ALWAYS_INLINE bool slot_matches(uint32_t slot, uint32_t q)
{
    return ((slot ^ q) & (slot ^ -slot)) == 0;
}

/* A line that overflows keeps the slots with the smallest order. */
ALWAYS_INLINE uint32_t slot_order(uint32_t slot)
{
    return slot & (slot - 1);
}

ALWAYS_INLINE uint32_t load32(const uint8_t *at)
{
    return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_RELAXED);
}

/* The bound as it is stored, inverted; the flag LINE_BARE is above its bits. */
ALWAYS_INLINE uint32_t bound_raw(const uint8_t *line, unsigned width)
{
    return width >= 20   ? load32(line + 60)
           : width == 18 ? load32(line + 60) >> 8
                         : load16(line + (width == 16 ? 0 : 62));
}

/* The bound, with LINE_BARE. */
ALWAYS_INLINE uint32_t line_bound(const uint8_t *line, unsigned width)
{
    uint32_t raw = bound_raw(line, width);
    if (width == 18)
        raw = (raw & 0x7fffff) | (raw & 0x800000) << 8;
    else if (width == 12)
        raw = (raw & 0x7fff) | (raw & 0x8000) << 16;
    return raw ^ slot_ones(width);
}

ALWAYS_INLINE void line_set_bound(uint8_t *line, unsigned width, uint32_t bound)
{
    uint32_t raw = bound ^ slot_ones(width);
    if (width == 18)
        raw = (raw & 0x7fffff) << 8 | (raw & LINE_BARE) | line[60];
    if (width >= 18)
        __atomic_store_n((uint32_t *)(void *)(line + 60), raw, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint16_t *)(void *)(line + (width == 16 ? 0 : 62)),
                         (uint16_t)(raw | raw >> 16), __ATOMIC_RELEASE);
}

ALWAYS_INLINE bool slot_bare(unsigned width, uint32_t slot)
{
    return width != 16 && (slot & (width == 12 ? 0xff : 0xffff)) == 0;
}

#endif
