/*
 * The layout of one line: 64 bytes that hold slots of 12, 16, 20 or 24 bits, and a bound.
 *
 *     width   slots   low bits of slots    high bits of slots       bound
 *        12      41   bytes 0..40          nibbles of bytes 41..61  u16 at 62
 *        16      31   u16 at 2, 4 .. 62    none                     u16 at 0
 *        20      24   u16 at 0, 2 .. 46    nibbles of bytes 48..59  u32 at 60
 *        24      20   u16 at 0, 2 .. 38    bytes 40..59             u32 at 60
 *
 * The first half of the slots use the low nibbles, the second half the high ones. Free slots are 0 and follow
 * the used ones. A kernel compares the low bits of all slots at once, and then the few matching slots as a whole.
 * It takes a slot whose low bits are 0 for free: the flag LINE_BARE says that the line has such a slot in use.
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

#define LINE_BARE \
    UINT32_C(0x80000000) /* in the result of line_bound(); in a bound of 16 bits it is
                                          stored as bit 15 */

ALWAYS_INLINE unsigned line_slots(unsigned width)
{
    return width == 16 ? 31 : width == 20 ? 24 : width == 24 ? 20 : 41;
}

/* The mean number of entries per line at which a part grows. At that load 1.4 to 2.3 % of the entries
   are in the stash; on average it is half of that. */
ALWAYS_INLINE unsigned line_load(unsigned width)
{
    return width == 16 ? 26 : width == 20 ? 20 : width == 24 ? 16 : 35;
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

ALWAYS_INLINE uint32_t high_nibble(const uint8_t *at, unsigned half, unsigned i)
{
    unsigned high = i >= half;
    return __atomic_load_n(at + i - (high ? half : 0), __ATOMIC_RELAXED) >> 4 * high & 15;
}

ALWAYS_INLINE void high_nibble_put(uint8_t *at, unsigned half, unsigned i, uint32_t value)
{
    unsigned high = i >= half;
    uint8_t *byte = at + i - (high ? half : 0);
    uint8_t rest = *byte & (high ? 15 : 240);
    __atomic_store_n(byte, (uint8_t)(rest | value << 4 * high), __ATOMIC_RELAXED);
}

ALWAYS_INLINE uint32_t slot_get(const uint8_t *line, unsigned width, unsigned i)
{
    if (width == 16)
        return load16(line + 2 + 2 * i);
    if (width == 20)
        return load16(line + 2 * i) | high_nibble(line + 48, 12, i) << 16;
    if (width == 24)
        return load16(line + 2 * i) | (uint32_t)__atomic_load_n(line + 40 + i, __ATOMIC_RELAXED)
                                          << 16;
    return __atomic_load_n(line + i, __ATOMIC_RELAXED) | high_nibble(line + 41, 21, i) << 8;
}

ALWAYS_INLINE void slot_put(uint8_t *line, unsigned width, unsigned i, uint32_t value)
{
    if (width == 20)
        high_nibble_put(line + 48, 12, i, value >> 16);
    else if (width == 24)
        __atomic_store_n(line + 40 + i, (uint8_t)(value >> 16), __ATOMIC_RELAXED);
    else if (width == 12)
        high_nibble_put(line + 41, 21, i, value >> 8);
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

/* The bound, with LINE_BARE. */
ALWAYS_INLINE uint32_t line_bound(const uint8_t *line, unsigned width)
{
    uint32_t raw;
    if (width >= 20)
        raw = __atomic_load_n((const uint32_t *)(const void *)(line + 60), __ATOMIC_RELAXED);
    else if (width == 16)
        return load16(line) ^ 0xffff;
    else
        raw = load16(line + 62), raw = (raw & 0x7fff) | (raw & 0x8000) << 16;
    return raw ^ slot_ones(width);
}

ALWAYS_INLINE void line_set_bound(uint8_t *line, unsigned width, uint32_t bound)
{
    uint32_t raw = bound ^ slot_ones(width);
    if (width >= 20)
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
