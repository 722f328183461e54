/*
 * Who waits for which counter to fall. A watch says: tell this one when the counter there is at or below
 * that level. There may be many on one counter, by chance in small vectors, by the values of records, by
 * the will of whoever made the bytes; so those of one counter are a heap with the highest level on
 * top, and a counter that fell finds those that it concerns and no others, each in O(log n).
 *
 * Heaps are pairing heaps (Fredman et al. 1986): linked, so a watch leaves from anywhere. They are found
 * by a hash of what is watched, of 32 bits and with a secret; where two meet, the one may be told what
 * concerns the other, which costs it a look.
 */
#ifndef TAMIS_WATCH_H
#define TAMIS_WATCH_H

#include "base/base.h"
#include "base/mem.h"

#define NO_ENTRY UINT32_MAX

struct watch {
    uint64_t level;
    uint32_t who, hash;
    uint32_t own;   /* the next watch of the same one; or the next that is free */
    uint32_t child; /* the first of those below it in the heap */
    uint32_t next;  /* beside it; of tops, the next with the same head */
    uint32_t prev;  /* the one it is `next` or `child` of; NO_ENTRY: the head */
};

struct watches {
    struct watch *list;
    uint32_t *heads;      /* by hash, the tops of heaps; as many as watches */
    uint32_t room;        /* 0 or a power of two */
    uint32_t fresh, free; /* those from `fresh` on were never used; the first that is free again */
};

void watches_init(struct watches *w);
void watches_free(struct watches *w, const tamis_allocator *a);
void watches_clear(struct watches *w); /* no watches; the memory stays */
size_t watches_bytes(const struct watches *w);
/* Room for so many in all. */
bool watches_reserve(struct watches *w, const tamis_allocator *a, size_t n);

/* One more of `who`, before its others: returns the first of them. There must be room. */
uint32_t watch_add(struct watches *w, uint32_t hash, uint64_t level, uint32_t who, uint32_t others);
/* Takes away this watch and its `own` ones. */
void watch_remove(struct watches *w, uint32_t first);
/* One that waits for a counter of this value, or NO_ENTRY. */
uint32_t watch_told(const struct watches *w, uint32_t hash, uint64_t value);

#endif
