/*
 * A hash table whose entries are embedded in the objects that it finds: owners by name, families by
 * key, matrices by shape. Entries are chained, so they never move and are removed in O(1); the
 * buckets double. For one thread. Hashes must be keyed where untrusted parties choose the names, or
 * they could all fall into one bucket.
 */
#ifndef TAMIS_LOOKUP_H
#define TAMIS_LOOKUP_H

#include "mem.h"

struct lookup_entry {
    struct lookup_entry *next;
    uint64_t hash;
};

struct lookup {
    struct lookup_entry **bucket;
    size_t buckets, n;
};

/* Makes room for one more entry, so that the next lookup_add cannot fail. */
bool lookup_reserve(struct lookup *l, const tamis_allocator *a);
void lookup_add(struct lookup *l, struct lookup_entry *entry, uint64_t hash);
void lookup_remove(struct lookup *l, struct lookup_entry *entry);
void lookup_free(struct lookup *l, const tamis_allocator *a); /* frees the buckets only */

/* The first entry with this hash, or the next one after `from`; NULL if there is none. */
ALWAYS_INLINE struct lookup_entry *lookup_next(const struct lookup *l, uint64_t hash,
                                               const struct lookup_entry *from)
{
    struct lookup_entry *entry = from         ? from->next
                                 : l->buckets ? l->bucket[hash & (l->buckets - 1)]
                                              : NULL;
    while (entry && entry->hash != hash)
        entry = entry->next;
    return entry;
}

#endif
