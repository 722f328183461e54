/*
 * Moving the memory of sets elsewhere, block by block, for a server that puts its memory
 * together again while it runs. The caller has the structure to itself; nothing else changes.
 */
#ifndef TAMIS_MOVE_H
#define TAMIS_MOVE_H

#include <stdbool.h>

#include "tamis/records.h"

struct mover {
    /* The new place of the block, with the same bytes, the old one freed; NULL: it stays. */
    void *(*move)(void *context, void *memory);
    bool (*stop)(void *context); /* time is up */
    void *context;
    bool pinned; /* the head stays: others know it */
};

/* From part `from` on, which is 0 at first; returns the part to go on with, or 0 if all is done. What
   changed between two calls may be passed over. */
unsigned long filter_move(tamis_filter **f, const struct mover *m, unsigned long from);
unsigned long index_move(tamis_records **x, const struct mover *m, unsigned long from);

#endif
