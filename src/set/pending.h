/*
 * Removals that cannot be settled yet. A key may match several places, the layers of a set; which one
 * stores it is not known, and a guess could deny other keys. So the removal is remembered exactly: key,
 * number of copies, and the candidates, the places that matched when it came. It is settled
 *
 *   - when one candidate is left: the others lost a bit of the key, so they never stored it;
 *   - when the copies to remove are all that the counters allow in the candidates together;
 *   - with everything else, when as much is pending as is stored.
 *
 * To notice, every position of a pending key in each candidate is watched for the level at which it
 * could matter (pending_watch.h): with fewer copies than candidates that is 0, a bit that goes. A removal that
 * lowers a counter so far looks again at the keys that wait for it. A pending key either watches or is
 * in the queue of those to look at.
 *
 * A key is one digest, or in an index one for each attribute. In a place it is vectors and tables, each
 * with the digest that it has of the key.
 */
#ifndef TAMIS_PENDING_H
#define TAMIS_PENDING_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/mem.h"
#include "bits/bits.h"
#include "pending_watch.h"

#define SPOTS_MAX 128

struct pending {
    tamis_digest digest;     /* of the key, or of all its digests together */
    _Atomic uint64_t copies; /* 0: cancelled by an add; goes at the next removal */
    uint32_t *candidates;    /* ids of places, rising */
    uint32_t n, room;
    uint32_t next_free;
    uint32_t watches; /* the first of its own, or NO_ENTRY */
    uint32_t probes;  /* the most that it may have */
    bool used, queued;
    bool hides; /* the key answers "no": nothing else can be it (unique keys) */
};

struct removals {
    uint32_t width; /* digests of a key */
    struct pending *entries;
    tamis_digest *keys;              /* width of them an entry, where that is more than 1 */
    uint32_t room, used, first_free; /* used counts entries in use */
    uint32_t *index;                 /* open addressing over entries, entry + 1; 2 * room or more */
    uint32_t index_room;
    uint32_t *queue; /* entries to look at again; room of them */
    uint32_t queued;
    struct watches watches;
    size_t probes;          /* of all entries: so many watches there is room for */
    size_t probes_max;      /* while bytes from elsewhere are read; 0: any number */
    _Atomic uint64_t total; /* copies pending */
    uint32_t cancelled;     /* entries with no copies left */
};

/* A part of a place, and the digest that it has of the key: for a table, the value is `a`. */
struct spot {
    struct vector *vector; /* or */
    struct table *table;
    tamis_digest digest;
};

uint64_t spot_copies(const struct spot *spot); /* most that its counters allow */

struct set;
/* The parts of place `id`, at most SPOTS_MAX; 0: it is gone. */
uint32_t place_spots(const struct set *s, uint32_t id, const tamis_digest *key, struct spot *out);
/* Takes copies out of the place, which has them. */
void place_erase(struct set *s, uint32_t id, const tamis_digest *key, uint64_t copies);

void removals_init(struct removals *r); /* of keys of one digest; else set the width */
void removals_free(struct removals *r, const tamis_allocator *a);
void removals_clear(struct removals *r); /* nothing pending; the memory stays */
size_t removals_bytes(const struct removals *r);

/* Entry i in use, or NULL; for i < room. */
const struct pending *removals_entry(const struct removals *r, uint32_t i);
const tamis_digest *removals_key(const struct removals *r, uint32_t i);
/* The entry of a key, or NO_ENTRY. */
uint32_t pending_find(const struct removals *r, const tamis_digest *key);

/* An add takes back a pending removal of the same key; beside readers. The entry goes later, when
   they are out and the queue is looked at. */
bool pending_cancel(struct removals *r, const tamis_digest *key);
/* Is the place among its candidates? */
bool pending_has(const struct pending *p, uint32_t id);
/* Remembers copies of a key with these candidates (adds to an entry that is there). */
tamis_error pending_remember(struct set *s, const tamis_digest *key, uint64_t copies,
                             const uint32_t *candidates, uint32_t n, bool hides);
/* One copy more of a key that is pending; false if there cannot be one. Then settle. */
bool pending_again(struct set *s, uint32_t entry);
/* Takes copies out of a place; what that may settle waits in the queue. */
void pending_erase(struct set *s, uint32_t id, const tamis_digest *key, uint64_t copies);
void pending_settle(struct set *s);
/* Watches anew after positions changed, then settles what can be. Needs no new memory when the
   places have as many probes as before. */
tamis_error pending_rebuild(struct set *s);
/* Place `from` went into `to`. */
void pending_rename(struct set *s, uint32_t from, uint32_t to);
/* The same keys and copies. */
bool pending_equal(const struct removals *x, const struct removals *y);

#endif
