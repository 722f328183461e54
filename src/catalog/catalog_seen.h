/* The slots of values gathered recently; see catalog.h. */
#ifndef TAMIS_CATALOG_SEEN_H
#define TAMIS_CATALOG_SEEN_H

#include "base/bytes.h"
#include "catalog.h"

/* Up to 12 bytes as two words, padded with zeros, or 13 to 28 as four: in registers, since a word that was
   just stored in pieces is slow to load as a whole. */
ALWAYS_INLINE void words_alone(const uint8_t *data, size_t len, unsigned words, uint64_t x[4])
{
    x[1] = 0;
    if (words == 4) {
        bool above = len >= 16;
        x[0] = get_u64(data);
        x[1] = above ? get_u64(data + 8) : get_u64(data + len - 8) >> (8 * (16 - len));
        uint64_t end = above ? get_u64(data + len - 8) : 0; /* of 16 to 28 bytes */
        x[2] = len >= 24 ? get_u64(data + 16) : end >> (8 * (23 - len) & 63) >> 8;
        x[3] = len > 24 ? end >> (8 * (32 - len)) : 0;
    } else if (len >= 8) {
        x[0] = get_u64(data);
        x[1] = (uint64_t)get_u32(data + len - 4) >> (8 * (12 - len));
    } else if (len >= 4) {
        x[0] = get_u32(data) | (uint64_t)get_u32(data + len - 4) << (8 * (len - 4));
    } else {
        x[0] = 0;
        for (size_t i = 0; i < len; i++)
            x[0] |= (uint64_t)data[i] << (8 * i);
    }
}

/* The same if 32 bytes can be read from `data` on. */
ALWAYS_INLINE void words_within(const uint8_t *data, size_t len, unsigned words, uint64_t x[4])
{
    static const uint8_t keep[64] = {[0 ... 31] = 0xff};
    for (unsigned i = 0; i < words; i++)
        x[i] = get_u64(data + 8 * i) & get_u64(keep + 32 - len + 8 * i);
}

/* Adds the tag to the bytes of a value or part, and returns its slot. */
ALWAYS_INLINE uint32_t seen_slot(const tamis_gather *g, uint32_t slots, unsigned words,
                                 uint64_t x[4], size_t len, bool part)
{
    uint64_t hash = 0;
    x[words - 1] |= (uint64_t)(g->epoch << 8 | (unsigned)part << 6 | (unsigned)(len + 1)) << 32;
    for (unsigned i = 0; i < words; i++)
        hash = (hash ^ x[i]) * EIGHT_A;
    return (uint32_t)((hash >> 32) * slots >> 32); /* the leading bits depend on every byte */
}

/* Was it seen in this segment? If not, it is recorded. */
ALWAYS_INLINE bool seen_before(uint64_t *slots, uint32_t slot, unsigned words, const uint64_t x[4])
{
    uint64_t differs = 0, *there = slots + (size_t)words * slot;
    for (unsigned i = 0; i < words; i++)
        differs |= there[i] ^ x[i];
    if (LIKELY(!differs))
        return true;
    for (unsigned i = 0; i < words; i++)
        there[i] = x[i];
    return false;
}

#endif
