/* Removals from a filter: the places of pending.h are its vectors, and a key is one digest. */
#ifndef TAMIS_REMOVAL_H
#define TAMIS_REMOVAL_H

#include "pending.h"

/* Reads beside a writer that adds. */
bool removals_hide(const struct removals *r, tamis_digest digest);
/* An add takes back a pending removal of the same key. */
bool removals_cancel(struct removals *r, tamis_digest digest);

/* The removals of a filter, to be worked on. */
struct removing filter_removing(tamis_filter *f);
/* The operations on a filter. */
tamis_error filter_remove_one(tamis_filter *f, tamis_digest digest, tamis_removed *outcome);
/* Watches anew after positions changed (fold), then settles what can be. Needs no new memory when
   the vectors have as many probes as before. */
tamis_error removals_rebuild(tamis_filter *f);
/* Remembers copies of a digest with these candidates (adds to an entry that is there). */
tamis_error removals_remember(tamis_filter *f, tamis_digest digest, uint64_t copies,
                              const uint32_t *candidates, uint32_t n, bool hides);
/* Vector `from` went into `to`. */
void removals_rename(tamis_filter *f, uint32_t from, uint32_t to);

#endif
