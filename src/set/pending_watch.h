/*
 * Which entries wait for which counter to fall. A watch means: notify this entry when that counter
 * is at or below a level. Many may watch one counter, by chance in small vectors, because of the
 * values of records, or because someone forged the bytes. So the watches of one counter form a heap
 * with the highest level on top, and a counter that fell finds exactly the entries it concerns,
 * each in O(log n).
 *
 * Heaps are pairing heaps (Fredman et al. 1986): linked, so a watch can be removed from anywhere.
 * They are found by a keyed hash of 32 bits of what is watched; when two hashes collide, an entry
 * may be notified for another's counter, which costs one check.
 */
#ifndef TAMIS_WATCH_H
#define TAMIS_WATCH_H

#include "base/base.h"
#include "base/mem.h"

#define NO_ENTRY UINT32_MAX

struct watch {
    uint64_t level;
    uint32_t who, hash;
    uint32_t own;   /* the next watch of the same entry; or the next free one */
    uint32_t child; /* the first of those below it in the heap */
    uint32_t next;  /* sibling; for tops, the next one with the same head */
    uint32_t prev;  /* whose `next` or `child` it is; NO_ENTRY: the head */
};

struct watches {
    struct watch *list;
    uint32_t *heads;      /* tops of heaps, by hash; as many as watches */
    uint32_t room;        /* 0 or a power of two */
    uint32_t fresh, free; /* those from `fresh` on were never used; the first free one */
};

#define WATCHES_NONE     \
    {                    \
        .free = NO_ENTRY \
    }
void watches_free(struct watches *w, const tamis_allocator *a);
void watches_clear(struct watches *w); /* no watches; keeps the memory */
/* Room for that many in all. */
bool watches_reserve(struct watches *w, const tamis_allocator *a, size_t n);

/* One more watch of `who`, before its others: returns the first of them. There must be room. */
uint32_t watch_add(struct watches *w, uint32_t hash, uint64_t level, uint32_t who, uint32_t others);
/* Removes this watch and the following ones of the same entry. */
void watch_remove(struct watches *w, uint32_t first);
/* An entry that waits for a counter of this value, or NO_ENTRY. */
uint32_t watch_told(const struct watches *w, uint32_t hash, uint64_t value);

#endif
