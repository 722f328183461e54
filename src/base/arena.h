/*
 * Memory for blocks of 4 KB to many MB that are replaced by slightly larger ones all the time, such as the
 * parts of lines (bits/lines.h). Beside malloc it saves a fifth of the memory, which free blocks that are just too
 * small would take, and the blocks share huge pages: random lookups in 28 MB of blocks of 100 KB take half
 * as long as on pages of 4 KB.
 *
 * Blocks are placed first fit, from high addresses to low ones, as the system places its mappings, and free
 * neighbours are joined. A caller that replaces its blocks in turn frees them in the order of their addresses, so
 * that the free space stays contiguous. Free pages go back to the system once they are more than a 32nd of all.
 */
#ifndef TAMIS_ARENA_H
#define TAMIS_ARENA_H

#include "base.h"

struct extent {
    char *at;
    size_t bytes;
};

struct arena {
    size_t
        page; /* what it takes from the system and gives back: a power of two; huge pages from 2 MiB on */
    size_t mapped;       /* bytes it has of the system, */
    size_t unused;       /* and those of them that are in no block */
    size_t blocks;       /* in use */
    struct extent *free; /* by address, none touches another */
    uint32_t n, room;
};

/* On a line of 64 bytes, not zeroed; NULL if there is no memory. */
void *arena_new(struct arena *a, size_t bytes);
/* Cannot fail. `bytes` as they were asked for. */
void arena_free(struct arena *a, void *block, size_t bytes);
/* What a new block would take from the system. */
size_t arena_needs(const struct arena *a, size_t bytes);
void arena_end(struct arena *a); /* with no block in use */

#endif
