/*
 * Removals that cannot be settled yet. A key may match several layers of a set; which one stores it is
 * unknown, and a guess could deny other keys. So the removal is remembered exactly: key, number of
 * copies, and the candidates, the layers that matched when it was requested. It is settled
 *
 *   - when one candidate is left: the others lost a bit of the key, so they never stored it;
 *   - when the copies to remove are all that the counters allow in the candidates together;
 *   - together with all others, when as much is pending as is stored.
 *
 * To notice this, every position of a pending key in each candidate is watched for the level at which it
 * could matter (pending_watch.h): with fewer copies than candidates that is 0, a bit that is cleared. A
 * removal that lowers a counter to that level has the keys that wait for it checked again. A pending key
 * either watches or is in the queue of those to check.
 *
 * A key is one digest, or one per attribute of a record. In a layer it is in vectors and tables, each of
 * which has its own digest of the key.
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
    _Atomic uint64_t copies; /* 0: cancelled by an add; removed at the next removal */
    uint32_t *candidates;    /* ids of layers, rising */
    uint32_t n, room;
    uint32_t next_free;
    uint32_t watches; /* its first watch, or NO_ENTRY */
    uint32_t probes;  /* most watches that it may have */
    bool used, queued;
    bool hides; /* the key answers "no": nothing else can match it (unique keys) */
};

struct removals {
    uint32_t width; /* digests per key */
    struct pending *entries;
    tamis_digest *keys;              /* `width` of them per entry, if that is more than 1 */
    uint32_t room, used, first_free; /* used: number of entries in use */
    uint32_t *index;                 /* open addressing over entries, entry + 1; at least 2 *
                                        room */
    uint32_t index_room;
    uint32_t *queue; /* entries to check again; has `room` slots */
    uint32_t queued;
    struct watches watches;
    size_t probes;          /* of all entries: there is room for that many watches */
    size_t probes_max;      /* while untrusted bytes are read; 0: any number */
    _Atomic uint64_t total; /* copies pending */
};

/* A part of a layer, and its digest of the key: for a table, the value is `a`. */
struct spot {
    struct vector *vector; /* or */
    struct table *table;
    tamis_digest digest;
};

uint64_t spot_copies(const struct spot *spot); /* the most that its counters allow */

struct set;
/* The parts of layer `id`, at most SPOTS_MAX; 0: it is gone. */
uint32_t candidate_spots(const struct set *s, uint32_t id, const tamis_digest *key,
                         struct spot *out);
/* Removes copies from the layer, which has them. */
void candidate_erase(struct set *s, uint32_t id, const tamis_digest *key, uint64_t copies);

#define REMOVALS_NONE                                               \
    {                                                               \
        .width = 1, .first_free = NO_ENTRY, .watches = WATCHES_NONE \
    }
void removals_free(struct removals *r, const tamis_allocator *a);
void removals_clear(struct removals *r); /* nothing pending; keeps the memory */
size_t removals_bytes(const struct removals *r);

/* Entry i in use, or NULL; for i < room. */
const struct pending *removals_entry(const struct removals *r, uint32_t i);
const tamis_digest *removals_key(const struct removals *r, uint32_t i);
/* The entry of a key, or NO_ENTRY. */
uint32_t pending_find(const struct removals *r, const tamis_digest *key);

/* An add cancels a pending removal of the same key, while others may read. The entry is removed
   later, when no reader is inside and the queue is checked. */
bool pending_cancel(struct removals *r, const tamis_digest *key);
/* Is the layer among its candidates? */
bool pending_has(const struct pending *p, uint32_t id);
/* Remembers copies of a key with these candidates (adds to an existing entry). */
tamis_error pending_remember(struct set *s, const tamis_digest *key, uint64_t copies,
                             const uint32_t *candidates, uint32_t n, bool hides);
/* One more copy of a key that is pending; false if there cannot be one. Settle afterwards. */
bool pending_again(struct set *s, uint32_t entry);
/* Removes copies from a layer; entries that this may settle are queued. */
void pending_erase(struct set *s, uint32_t id, const tamis_digest *key, uint64_t copies);
void pending_settle(struct set *s);
/* Sets up all watches again after positions changed, then settles what can be. Needs no new
   memory if the layers have as many probes as before. */
tamis_error pending_rebuild(struct set *s);
/* Layer `from` was merged into `to`. */
void pending_rename(struct set *s, uint32_t from, uint32_t to);
/* True for the same keys and copies. */
bool pending_equal(const struct removals *x, const struct removals *y);

#endif
