/* A copy of lines that follows them, for an origin: see lines_follow.c. */
#ifndef TAMIS_LINES_FOLLOW_H
#define TAMIS_LINES_FOLLOW_H

#include "lines_bytes.h"

/* What a copy lacks. */
struct lines_follow {
    struct lines *copy;
    bool first; /* there was none before */
    const tamis_allocator *allocator;
    struct shelf *shelf;       /* for several parts */
    struct body *made[PLACES]; /* parts of another size, by their first places */
    bool kept[PLACES];
};

/* Makes what `copy`, or NULL, needs to become the present of `l`; `copy` stays as it is. */
tamis_error lines_follow_begin(struct lines_follow *f, struct lines *copy, const struct lines *l,
                               const tamis_allocator *a); /* the copy keeps the pointer */
/* The copy, which is the present now: `l` is as it was when it began. */
struct lines *lines_follow_end(struct lines_follow *f, const struct lines *l);
/* Instead of that; for one that was never begun or has ended, nothing. */
void lines_follow_drop(struct lines_follow *f);
void lines_copy_free(struct lines *copy, const tamis_allocator *a);

#endif
