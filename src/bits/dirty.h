/*
 * What changed in a vector since its bits were published to copies elsewhere (Zhu and Jiang, section
 * 3.1): the bits that differ, how many of them are ones now (delta 1) and zeros (delta 0), and how
 * many keys stored since the published bits deny. Kept up to date in O(k) an add or removal.
 *
 * Only the difference is kept, not the published bits: these are the present bits xor the difference.
 * Its pages are zeros of the system until something changes in them.
 */
#ifndef TAMIS_CHANGES_H
#define TAMIS_CHANGES_H

#include "base/base.h"
#include "base/mem.h"
#include "page_sums.h"

struct vector;

struct changes {
    const void *owner; /* who asked for them */
    struct block dirty;
    uint8_t *touched;      /* pages of it that are not all zero, or were not */
    uint64_t positions;    /* of the vector */
    uint64_t ones;         /* that are published */
    uint64_t set, cleared; /* bits that became one, and zero */
    uint64_t missed;       /* keys stored since that the published bits deny */
    bool lost;             /* changed as a whole: nothing is known but `ones` */
};

/* From the present bits on; NULL without memory. */
struct changes *changes_new(const tamis_allocator *a, const struct vector *v, const void *owner);
void changes_free(struct changes *c, const tamis_allocator *a);
/* The present bits are the published ones. */
void changes_reset(struct changes *c, const struct vector *v);
/* Do the published bits deny a key of the vector with these positions? */
bool changes_deny(const struct changes *c, const struct vector *v, const uint64_t *positions);

/* Bit `position` was turned, to `on`. */
ALWAYS_INLINE void changes_turn(struct changes *c, uint64_t position, bool on)
{
    uint64_t *word = (uint64_t *)c->dirty.data + (position >> 6);
    uint64_t bit = UINT64_C(1) << (position & 63);
    bool back = *word & bit; /* to what was published */
    *word ^= bit;
    c->touched[position / (8 * PAGE)] = 1;
    if (back)
        c->set -= !on, c->cleared -= on;
    else
        c->set += on, c->cleared += !on;
}

#endif
