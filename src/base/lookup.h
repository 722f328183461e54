/*
 * A hash table whose entries are part of the things they find: owners by name, families by key,
 * matrices by shape. Chained, so that entries never move and leave in O(1); buckets double. Of one
 * thread. Hashes must be keyed where names come from strangers, or they could all share a bucket.
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

/* Room for one entry more, so that the next lookup_add cannot fail. */
bool lookup_reserve(struct lookup *l, const tamis_allocator *a);
void lookup_add(struct lookup *l, struct lookup_entry *entry, uint64_t hash);
void lookup_remove(struct lookup *l, struct lookup_entry *entry);
void lookup_free(struct lookup *l, const tamis_allocator *a); /* the buckets */

/* The first entry of this hash, or after `from` the next one; NULL: there is none. */
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
