/* Counting distinct values by their hashes, in an open table. See distinct_growth.h. */
#include "distinct_growth.h"

#include <stdlib.h>

/* The place of the hash, or the free one where it belongs. */
static uint64_t *slot_of(uint64_t *slots, size_t room, uint64_t hash)
{
    size_t at = (size_t)hash & (room - 1);
    while (slots[at] && slots[at] != hash)
        at = (at + 1) & (room - 1);
    return &slots[at];
}

bool growth_put(struct distinct_growth *g, uint64_t hash)
{
    hash += hash == 0;
    if (2 * g->n >= g->room) {
        size_t room = g->room ? 2 * g->room : 64;
        uint64_t *fresh = calloc(room, sizeof *fresh);
        if (!fresh)
            return false;
        for (size_t i = 0; i < g->room; i++)
            if (g->slot[i])
                *slot_of(fresh, room, g->slot[i]) = g->slot[i];
        free(g->slot);
        g->slot = fresh;
        g->room = room;
    }
    uint64_t *slot = slot_of(g->slot, g->room, hash);
    g->n += !*slot;
    *slot = hash;
    g->seen++;
    if ((g->seen & (g->seen - 1)) == 0) {
        g->at_half = g->at_mark;
        g->at_mark = (double)g->n;
    }
    return true;
}

double growth_at(const struct distinct_growth *g, double scale)
{
    double power = g->at_half > 0 && g->at_mark > 0 ? __builtin_log2(g->at_mark / g->at_half) : 1;
    if (scale < 1)
        return (double)g->n * scale;
    return (double)g->n * __builtin_pow(scale, power < 0 ? 0 : power > 1 ? 1 : power);
}
