/*
 * Removals that cannot be settled yet. A key may match several vectors; which one stores it is not
 * known, and a guess could deny other keys. So the removal is remembered exactly: digest, number of
 * copies, and the candidates, the vectors that matched when it came. It is settled
 *
 *   - when one candidate is left: the others lost a bit of the key, so they never stored it;
 *   - when the copies to remove are all that the counters allow in the candidates together;
 *   - with everything else, when as much is pending as is stored.
 *
 * To notice, every position of a pending key in each candidate is watched: a removal that lowers a
 * counter looks it up (O(1) a position) and looks again at the keys that watch it.
 */
#ifndef TAMIS_REMOVAL_H
#define TAMIS_REMOVAL_H

#include <stdatomic.h>

#include "base.h"
#include "mem.h"

#define NONE UINT32_MAX

struct pending {
    tamis_digest digest;
    _Atomic uint64_t copies; /* 0: cancelled by an add; goes at the next removal */
    uint32_t *candidates;    /* ids of vectors */
    uint32_t n, room;
    uint32_t next_free;
    bool used, queued;
    bool hides; /* the key answers "no": nothing else can be it (unique keys) */
};

struct watch {
    uint32_t next, entry;
};

struct removals {
    struct pending *entries;
    uint32_t room, used, first_free; /* used counts entries in use */
    uint32_t *index;                 /* open addressing over entries, entry + 1; 2 * room or more */
    uint32_t index_room;
    uint32_t *queue; /* entries to look at again; room of them */
    uint32_t queued;
    struct watch *watches;
    uint32_t *heads; /* of the chains of watches, heads_room a power of two */
    uint32_t watches_room, watches_used, first_watch, heads_room;
    _Atomic uint64_t total; /* copies pending */
    uint32_t cancelled;     /* entries with no copies left */
};

void removals_init(struct removals *r);
void removals_free(struct removals *r, const tamis_allocator *a);
void removals_clear(struct removals *r); /* nothing pending; the memory stays */

/* Reads beside a writer that adds. */
bool removals_hide(const struct removals *r, tamis_digest digest);
/* An add takes back a pending removal of the same key. */
bool removals_cancel(struct removals *r, tamis_digest digest);

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
/* Entry i in use, or NULL; for i < room. */
const struct pending *removals_entry(const struct removals *r, uint32_t i);

#endif
