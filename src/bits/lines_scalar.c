/* Kernels of lines in plain C: four lanes of 16 bits, or eight of 8, in a word. */
#include "line.h"
#include "lines.h"
#include "lines_stash.h"

#define TARGET

#define LOW16  UINT64_C(0x0001000100010001)
#define HIGH16 UINT64_C(0x8000800080008000)
#define LOW8   UINT64_C(0x0101010101010101)
#define HIGH8  UINT64_C(0x8080808080808080)

/* The top bit of every lane that is not zero; `high` has the top bits of all lanes. */
ALWAYS_INLINE uint64_t lanes_set(uint64_t x, uint64_t high)
{
    return (((x & ~high) + ~high) | x) & high;
}

ALWAYS_INLINE uint64_t lanes_match(uint64_t x, uint64_t q, uint64_t low, uint64_t high)
{
    uint64_t negative = ((~x & ~high) + low) ^ (~x & high);
    return lanes_set(x, high) & ~lanes_set((x ^ q) & (x ^ negative), high);
}

/* The top bits of the lanes, packed. */
ALWAYS_INLINE uint32_t pack16(uint64_t tops)
{
    return (uint32_t)((tops >> 15) * UINT64_C(0x0001000200040008) >> 48 & 15);
}

ALWAYS_INLINE uint64_t pack8(uint64_t tops)
{
    return (tops >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

ALWAYS_INLINE uint64_t line_word(const uint8_t *line, unsigned i)
{
    return word_load((const uint64_t *)(const void *)line + i);
}

ALWAYS_INLINE uint32_t match16(const uint8_t *line, uint16_t q)
{
    uint32_t lanes = 0;
    for (unsigned i = 0; i < 8; i++)
        lanes |= pack16(lanes_match(line_word(line, i), q * LOW16, LOW16, HIGH16)) << 4 * i;
    return lanes;
}

ALWAYS_INLINE bool any16(const uint8_t *line, uint16_t q)
{
    return match16(line, q) >> 1;
}

ALWAYS_INLINE uint32_t greatest16(const uint8_t *line)
{
    (void)line;
    return ~UINT32_C(1); /* all: the caller compares them */
}

ALWAYS_INLINE uint64_t match8(const uint8_t *line, uint8_t q)
{
    uint64_t lanes = 0;
    for (unsigned i = 0; i < 8; i++)
        lanes |= pack8(lanes_match(line_word(line, i), q * LOW8, LOW8, HIGH8)) << 8 * i;
    return lanes;
}

ALWAYS_INLINE uint32_t zero16(const uint8_t *line)
{
    uint32_t lanes = 0;
    for (unsigned i = 0; i < 8; i++)
        lanes |= pack16(HIGH16 & ~lanes_set(line_word(line, i), HIGH16)) << 4 * i;
    return lanes;
}

ALWAYS_INLINE uint64_t zero8(const uint8_t *line)
{
    uint64_t lanes = 0;
    for (unsigned i = 0; i < 8; i++)
        lanes |= pack8(HIGH8 & ~lanes_set(line_word(line, i), HIGH8)) << 8 * i;
    return lanes;
}

#define CELLS         1
#define stash_compare stash_compare_one

#include "lines_kernel.h"

const struct lines_kernel lines_scalar = LINES_KERNEL("scalar", NULL, NULL);
