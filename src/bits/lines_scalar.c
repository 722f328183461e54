/* Kernels of lines in plain C: four lanes of 16 bits in a word. */
#include "line.h"
#include "lines.h"
#include "lines_stash.h"

#define TARGET

#define LOW16  UINT64_C(0x0001000100010001)
#define HIGH16 UINT64_C(0x8000800080008000)

/* The top bit of every lane that is not zero. */
ALWAYS_INLINE uint64_t lanes_set(uint64_t x)
{
    return (((x & ~HIGH16) + ~HIGH16) | x) & HIGH16;
}

ALWAYS_INLINE uint64_t lanes_match(uint64_t x, uint64_t q)
{
    uint64_t negative = ((~x & ~HIGH16) + LOW16) ^ (~x & HIGH16);
    return lanes_set(x) & ~lanes_set((x ^ q) & (x ^ negative));
}

/* The top bits of the lanes, packed. */
ALWAYS_INLINE uint32_t pack16(uint64_t tops)
{
    return (uint32_t)((tops >> 15) * UINT64_C(0x0001000200040008) >> 48 & 15);
}

ALWAYS_INLINE uint64_t line_word(const uint8_t *line, unsigned i)
{
    return word_load((const uint64_t *)(const void *)line + i);
}

/* Four lanes, without the top bits of bytes that are used separately. */
ALWAYS_INLINE uint64_t line_lanes(const uint8_t *line, unsigned width, unsigned i)
{
    return line_word(line, i) & (width == 14 ? ~BYTE_TOPS : UINT64_MAX);
}

ALWAYS_INLINE uint32_t match16(const uint8_t *line, unsigned width, uint32_t q)
{
    uint32_t lanes = 0;
    for (unsigned i = 0; i < 8; i++)
        lanes |= pack16(lanes_match(line_lanes(line, width, i), (uint16_t)q * LOW16)) << 4 * i;
    return lanes;
}

ALWAYS_INLINE uint64_t line_tops(const uint8_t *line)
{
    uint64_t tops = 0;
    for (unsigned i = 0; i < 8; i++)
        tops |= (uint64_t)tops_get(line_word(line, i)) << 8 * i;
    return tops;
}

ALWAYS_INLINE bool any16(const uint8_t *line, unsigned width, uint32_t q)
{
    return match16(line, width, lane_of(width, q)) >> 1 ||
           (width == 14 && lanes_match(line_tops(line), lane_of(14, q) * LOW16));
}

ALWAYS_INLINE uint64_t greatest16(const uint8_t *line, unsigned width)
{
    (void)line;
    return ((UINT64_C(1) << line_slots(width)) - 1) << 1; /* all: the caller compares them */
}

ALWAYS_INLINE uint32_t zero16(const uint8_t *line, unsigned width)
{
    uint32_t lanes = 0;
    for (unsigned i = 0; i < 8; i++)
        lanes |= pack16(HIGH16 & ~lanes_set(line_lanes(line, width, i))) << 4 * i;
    return lanes;
}

#define CELLS         1
#define stash_compare stash_compare_one

#include "lines_kernel.h"

const struct lines_kernel lines_scalar = LINES_KERNEL("scalar", NULL, NULL);
