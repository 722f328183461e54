/*
 * The body of the kernels of lines, compiled once for each instruction set. A file that includes it
 * defines TARGET and, always inline, which lanes of a line hold a low part that is not zero and matches q,
 * and which hold zero:
 *
 *     uint32_t match16(line, q)  zero16(line)     32 lanes of 16 bits
 *     uint64_t match8(line, q)   zero8(line)      64 lanes of 8 bits
 *
 * Batches take the lines of the next 64 keys on their way to the second level of the cache while those
 * of these 64 are looked at; each is brought into the first level three keys ahead. Lookups in the
 * stash, half a percent of them, wait until the 64 are done.
 */
#include "kernel.h"
#include "lines_stash.h"

#define GROUP 64

ALWAYS_INLINE TARGET uint64_t match_in(const uint8_t *line, unsigned width, uint32_t q)
{
    uint64_t lanes, matching = 0;
    if (width == 16)
        return match16(line, (uint16_t)q) >> 1;
    if (width == 12)
        lanes = match8(line, (uint8_t)q) & ((UINT64_C(1) << 41) - 1);
    else
        lanes = match16(line, (uint16_t)q) & ((UINT64_C(1) << line_slots(width)) - 1);
    if (UNLIKELY(line_bound(line, width) & LINE_BARE))
        lanes = (UINT64_C(1) << line_slots(width)) - 1;
    for (; lanes; lanes &= lanes - 1) {
        uint32_t slot = slot_get(line, width, (unsigned)__builtin_ctzll(lanes));
        if (slot && slot_matches(slot, q))
            matching |= lanes & -lanes;
    }
    return matching;
}

static TARGET uint64_t kernel_match(const uint8_t *line, unsigned width, uint32_t q)
{
    return match_in(line, width, q & slot_ones(width));
}

static TARGET unsigned kernel_used(const uint8_t *line, unsigned width)
{
    unsigned slots = line_slots(width);
    uint64_t free = width == 12   ? zero8(line) | UINT64_C(1) << 41
                    : width == 16 ? (uint64_t)zero16(line) >> 1 | UINT64_C(1) << 31
                                  : zero16(line) | UINT64_C(1) << slots;
    unsigned i = (unsigned)__builtin_ctzll(free);
    while (i < slots && slot_get(line, width, i)) {
        free &= free - 1;
        i = (unsigned)__builtin_ctzll(free);
    }
    return i < slots ? i : slots;
}

/* A key on its way. */
struct look {
    const uint8_t *line;
    const struct body *body;
    uint64_t at;
    uint32_t q;
};

ALWAYS_INLINE struct look look_of(const struct lines_root *root, uint64_t place)
{
    const struct body *body = body_at(root, (uint32_t)(place >> (64 - DEPTH_LAST)));
    uint64_t w = place << body->depth >> body->shift;
    uint64_t at = line_of(body, w);
    return (struct look){body_line(body, at), body, at, (uint32_t)w << 1 | 1};
}

enum { LOOK_NO, LOOK_YES, LOOK_STASH };

ALWAYS_INLINE TARGET unsigned look_in(const struct look *look)
{
    unsigned width = look->body->width;
    uint32_t q = look->q & slot_ones(width);
    if (LIKELY(width == 16)) {
        if (match16(look->line, (uint16_t)q) >> 1)
            return LOOK_YES;
    } else if (match_in(look->line, width, q)) {
        return LOOK_YES;
    }
    atomic_thread_fence(memory_order_acquire); /* the bound after the slots */
    return q < (line_bound(look->line, width) & ~LINE_BARE) ? LOOK_NO : LOOK_STASH;
}

static TARGET bool kernel_has_one(const struct lines_root *root, tamis_digest digest)
{
    struct look look = look_of(root, digest.a);
    unsigned found = look_in(&look);
    return LIKELY(found != LOOK_STASH) ? found : stash_has(look.body, look.at, look.q);
}

ALWAYS_INLINE void group_start(const struct lines_root *root, const tamis_digest *digests, size_t n,
                               struct look *looks)
{
    for (size_t i = 0; i < n; i++) {
        looks[i] = look_of(root, digests[i].a);
        __builtin_prefetch(looks[i].line, 0, 2);
    }
}

ALWAYS_INLINE TARGET void group_end(const struct look *looks, size_t n, uint8_t *found)
{
    uint8_t later[GROUP];
    size_t waiting = 0;
    for (size_t i = 0; i < n; i++) {
        __builtin_prefetch(looks[i + 3].line, 0, 3);
        unsigned answer = look_in(&looks[i]);
        found[i] = answer & 1;
        later[waiting] = (uint8_t)i;
        waiting += answer >> 1;
    }
    for (size_t j = 0; j < waiting; j++) {
        const struct look *look = &looks[later[j]];
        found[later[j]] = stash_has(look->body, look->at, look->q);
    }
}

static TARGET void kernel_has(const struct lines_root *root, const tamis_digest *digests, size_t n,
                              uint8_t *found)
{
    struct look looks[2][GROUP + 3];
    size_t now = n < GROUP ? n : GROUP;
    for (unsigned i = 0; i < 3; i++)
        looks[0][GROUP + i].line = looks[1][GROUP + i].line = NULL;
    group_start(root, digests, now, looks[0]);
    for (size_t done = 0, turn = 0; done < n; turn ^= 1) {
        size_t next = n - done - now < GROUP ? n - done - now : GROUP;
        group_start(root, digests + done + now, next, looks[turn ^ 1]);
        for (unsigned i = 0; i < 3; i++)
            looks[turn][now + i].line = looks[turn ^ 1][i < next ? i : 0].line;
        group_end(looks[turn], now, found + done);
        done += now;
        now = next;
    }
}
