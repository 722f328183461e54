/*
 * Memory for blocks of 4 KB to many MB that are frequently replaced by slightly larger ones, such as the parts of lines
 * (bits/lines.h). Compared with malloc it saves a fifth of the memory, which free blocks that are just too small would
 * waste, and the blocks share huge pages: random lookups in 28 MB of blocks of 100 KB take half as long as on pages
 * of 4 KB.
 *
 * Blocks are placed one below the other, as in a log: a new one below the one before it, in pages that are mapped
 * for it. A caller that replaces its blocks in turn frees the oldest, so that whole pages become free at the other
 * end. Huge ones move below the log when it needs pages, since a new one takes 0.1 to 6 ms when it is first touched;
 * the others are returned to the system: 1 to 3 % of 300 MB is free space, where first fit would leave 12 %.
 * Where blocks are freed in another order, so that more than a quarter is free, they are placed first fit.
 */
#ifndef TAMIS_ARENA_H
#define TAMIS_ARENA_H

#include "base.h"

struct extent {
    char *at;
    size_t bytes;
};

struct arena {
    /* The unit of taking memory from the system and returning it: a power of two; huge pages from 2 MiB on. */
    size_t page;
    size_t mapped; /* bytes taken from the system */
    size_t unused; /* those of them that are in no block */
    char *low; /* where the pages of the log begin; the next block ends where its free space does */
    size_t blocks;       /* in use */
    struct extent *free; /* sorted by address, not adjacent to one another */
    uint32_t n, room;
};

/* A block aligned to 64 bytes, not zeroed; NULL if there is no memory. */
void *arena_new(struct arena *a, size_t bytes);
/* Cannot fail. `bytes` as passed to arena_new(). */
void arena_free(struct arena *a, void *block, size_t bytes);
/* The most bytes that a new block would take from the system. */
size_t arena_needs(const struct arena *a, size_t bytes);
void arena_end(struct arena *a); /* no block may be in use */

#endif
