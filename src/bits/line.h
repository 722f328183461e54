/*
 * The layout of one line: 64 bytes that hold slots of 14, 16, 18, 20 or 24 bits, and a bound.
 *
 *     width   slots   low bits of slots    high bits of slots       bound
 *        14      35   see below                                     u16 at 0
 *        16      31   u16 at 2, 4 .. 62    none                     u16 at 0
 *        18      27   u16 at 0, 2 .. 52    2 bits, bytes 54..60     the upper 24 bits of the u32 at 60
 *        20      24   u16 at 0, 2 .. 46    4 bits, bytes 48..59     u32 at 60
 *        24      20   u16 at 0, 2 .. 38    8 bits, bytes 40..59     u32 at 60
 *
 * Of 2 bits, four slots share a byte, the first its lowest bits; of 4 bits, the first half of the slots use the low
 * nibbles, the second half the high ones. Of 14 bits, the bound and 31 slots are where those of 16 bits are, 7 bits in
 * each of two bytes, and the top bits of the bytes from 16 k to 16 k + 15 are slot 31 + k in the same form, its lowest bit
 * first: those of bytes 16 k + 7 and 16 k + 15 are 0.
 *
 * Free slots are 0 and follow the used ones. A kernel compares slots of 14 or 16 bits as a whole, all at once. Of wider
 * ones it compares the low bits, and then the few matching slots as a whole. It takes a slot whose low bits are 0 for
 * free: the flag LINE_BARE says that the line has such a slot in use.
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
#define LINE_BARE  UINT32_C(0x80000000) /* in the result of line_bound() */

ALWAYS_INLINE unsigned line_slots(unsigned width)
{
    return width == 14 ? 35 : width == 16 ? 31 : width == 18 ? 27 : width == 20 ? 24 : 20;
}

/* The next wider slots. */
ALWAYS_INLINE unsigned width_after(unsigned width)
{
    return width + (width < 20 ? 2 : 4);
}

ALWAYS_INLINE bool width_valid(unsigned width)
{
    return width == 14 || width == 16 || width == 18 || width == 20 || width == WIDTH_LAST;
}

/* The mean number of entries per line at which a part grows. At that load 1.5 to 2.5 % of the entries
   are in the stash; on average it is half of that. */
ALWAYS_INLINE unsigned line_load(unsigned width)
{
    return width == 14 ? 30 : width == 16 ? 26 : width == 18 ? 23 : width == 20 ? 20 : 16;
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

/* ---- 14 bits: the top bits of bytes are used separately ---- */

#define LANE_BITS 0x7f7f
#define BYTE_TOPS UINT64_C(0x8080808080808080)

/* A slot as a lane. */
ALWAYS_INLINE uint32_t lane_of(unsigned width, uint32_t slot)
{
    return width == 14 ? slot + (slot & 0x3f80) : slot;
}

ALWAYS_INLINE uint32_t lane_slot(unsigned width, uint32_t lane)
{
    return width == 14 ? (lane & 0x7f) | (lane >> 1 & 0x3f80) : lane;
}

/* The top bits of the eight bytes of a word. */
ALWAYS_INLINE uint32_t tops_get(uint64_t word)
{
    return (uint32_t)(((word & BYTE_TOPS) >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

ALWAYS_INLINE uint64_t tops_put(uint64_t word, uint32_t tops)
{
    uint64_t each = ((tops & 255) * UINT64_C(0x0101010101010101)) & UINT64_C(0x8040201008040201);
    return (word & ~BYTE_TOPS) | ((each + ~BYTE_TOPS) & BYTE_TOPS);
}

/* What a line of 14 bits never has: top bits that belong to no slot. */
ALWAYS_INLINE bool tops_stray(const uint8_t *line)
{
    unsigned all = 0;
    for (unsigned i = 7; i < 64; i += 8)
        all |= line[i];
    return all & 0x80;
}

/* ---- slots ---- */

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
    return i < 12 ? (struct high_bits){48 + i, 0, 15} : (struct high_bits){36 + i, 4, 15};
}

/* The low bits of a slot of 16 bits or more, and all of one of 14 bits that is a lane. */
ALWAYS_INLINE uint8_t *slot_low(const uint8_t *line, unsigned width, unsigned i)
{
    return (uint8_t *)(uintptr_t)line + (width <= 16 ? 2 : 0) + 2 * i;
}

ALWAYS_INLINE uint32_t slot_get(const uint8_t *line, unsigned width, unsigned i)
{
    if (width == 14 && i >= 31) {
        const uint64_t *word = (const uint64_t *)(const void *)line + 2 * (i - 31);
        return lane_slot(14, tops_get(word_load(word)) | tops_get(word_load(word + 1)) << 8);
    }
    uint32_t low = load16(slot_low(line, width, i));
    if (width <= 16)
        return lane_slot(width, low);
    struct high_bits high = high_bits(width, i);
    uint32_t bits = __atomic_load_n(line + high.byte, __ATOMIC_RELAXED) >> high.shift & high.ones;
    return low | bits << 16;
}

/* Slots of 14 bits share their bytes with others, and no other thread writes. */
ALWAYS_INLINE void slot_put(uint8_t *line, unsigned width, unsigned i, uint32_t value)
{
    uint8_t *low = slot_low(line, width, i);
    if (width == 14 && i >= 31) {
        uint64_t *word = (uint64_t *)(void *)line + 2 * (i - 31);
        for (unsigned j = 0; j < 2; j++)
            word_store(word + j, tops_put(word[j], lane_of(14, value) >> 8 * j));
        return;
    }
    if (width > 16) {
        struct high_bits high = high_bits(width, i);
        uint32_t rest = line[high.byte] & ~(high.ones << high.shift);
        __atomic_store_n(line + high.byte, (uint8_t)(rest | value >> 16 << high.shift),
                         __ATOMIC_RELAXED);
    }
    store16(low, width == 14 ? (load16(low) & ~LANE_BITS) | lane_of(14, value) : value);
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

/* The bound as it is stored, inverted: of 14 bits as a lane; the flag LINE_BARE is above its bits. */
ALWAYS_INLINE uint32_t bound_raw(const uint8_t *line, unsigned width)
{
    return width >= 20   ? load32(line + 60)
           : width == 18 ? load32(line + 60) >> 8
                         : load16(line) & (width == 14 ? LANE_BITS : 0xffff);
}

/* The bound, with LINE_BARE. */
ALWAYS_INLINE uint32_t line_bound(const uint8_t *line, unsigned width)
{
    uint32_t raw = bound_raw(line, width);
    if (width == 18)
        raw = (raw & 0x7fffff) | (raw & 0x800000) << 8;
    return lane_slot(width, raw) ^ slot_ones(width);
}

ALWAYS_INLINE void line_set_bound(uint8_t *line, unsigned width, uint32_t bound)
{
    uint32_t raw = lane_of(width, bound ^ slot_ones(width));
    if (width == 18)
        raw = (raw & 0x7fffff) << 8 | (raw & LINE_BARE) | line[60];
    if (width == 14)
        raw |= load16(line) & ~LANE_BITS;
    if (width >= 18)
        __atomic_store_n((uint32_t *)(void *)(line + 60), raw, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint16_t *)(void *)line, (uint16_t)raw, __ATOMIC_RELEASE);
}

ALWAYS_INLINE bool slot_bare(unsigned width, uint32_t slot)
{
    return width > 16 && (slot & 0xffff) == 0;
}

#endif
