/*
 * What changed in a vector since its bits were published to copies elsewhere (Zhu and Jiang,
 * section 3.1): the bits that differ, how many of them are now ones (delta 1) and zeros (delta 0),
 * and how many keys stored since then the published bits deny. Kept up to date in O(k) per add or
 * removal.
 *
 * Only the difference is kept, not the published bits, which are the present bits XOR the
 * difference. Its pages are zero pages of the kernel until something in them changes.
 */
#ifndef TAMIS_CHANGES_H
#define TAMIS_CHANGES_H

#include "base/base.h"
#include "base/mem.h"
#include "page_sums.h"

struct vector;

struct changes {
    const void *owner; /* who requested them */
    struct block dirty;
    uint8_t *touched;      /* pages of it that are, or once were, not all zero */
    uint64_t positions;    /* number of bits of the vector */
    uint64_t ones;         /* number of ones published */
    uint64_t set, cleared; /* bits that became one, and zero */
    uint64_t missed;       /* keys stored since then that the published bits deny */
    bool lost;             /* changed as a whole: only `ones` is known */
};

/* Starts from the present bits; NULL if there is no memory. */
struct changes *changes_new(const tamis_allocator *a, const struct vector *v, const void *owner);
void changes_free(struct changes *c, const tamis_allocator *a);
/* The present bits have become the published ones. */
void changes_reset(struct changes *c, const struct vector *v);
/* Do the published bits deny a key of the vector with these positions? */
bool changes_deny(const struct changes *c, const struct vector *v, const uint64_t *positions);

/* Bit `position` changed to `on`. */
ALWAYS_INLINE void changes_turn(struct changes *c, uint64_t position, bool on)
{
    uint64_t *word = (uint64_t *)c->dirty.data + (position >> 6);
    uint64_t bit = UINT64_C(1) << (position & 63);
    bool back = *word & bit; /* back to the published value */
    *word ^= bit;
    c->touched[position / (8 * PAGE)] = 1;
    if (back)
        c->set -= !on, c->cleared -= on;
    else
        c->set += on, c->cleared += !on;
}

#endif
