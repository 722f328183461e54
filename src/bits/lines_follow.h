/* An origin's copy of its lines, brought up to date at each publication: see lines_follow.c. */
#ifndef TAMIS_LINES_FOLLOW_H
#define TAMIS_LINES_FOLLOW_H

#include "lines_bytes.h"

/* An update of a copy in progress. */
struct lines_follow {
    struct lines *copy;
    bool first; /* there was no copy before */
    const tamis_allocator *allocator;
    struct shelf *shelf;          /* if there are several parts */
    struct body *made[SHELF_LEN]; /* parts of another size, by their first positions */
    bool kept[SHELF_LEN];
};

/* Prepares the update of `copy`, which may be NULL, to the present state of `l`; `copy` does not change yet. */
tamis_error lines_follow_begin(struct lines_follow *f, struct lines *copy, const struct lines *l,
                               const tamis_allocator *a); /* the copy keeps the pointer */
/* Completes the update and returns the copy; `l` must not have changed since the begin. */
struct lines *lines_follow_end(struct lines_follow *f, const struct lines *l);
/* Abandons the update; does nothing if it was never begun or has ended. */
void lines_follow_drop(struct lines_follow *f);
void lines_copy_free(struct lines *copy, const tamis_allocator *a);

#endif
