/* The buckets of lookup tables; they double when there are as many entries as buckets. */
#include "lookup.h"

#define BUCKETS_MIN 16

bool lookup_reserve(struct lookup *l, const tamis_allocator *a)
{
    size_t larger = l->buckets ? 2 * l->buckets : BUCKETS_MIN;
    if (l->n < l->buckets)
        return true;
    struct lookup_entry **bucket = mem_new0(a, larger, sizeof *bucket);
    if (!bucket)
        return false;
    for (size_t i = 0; i < l->buckets; i++)
        for (struct lookup_entry *entry = l->bucket[i], *next; entry; entry = next) {
            struct lookup_entry **to = &bucket[entry->hash & (larger - 1)];
            next = entry->next;
            entry->next = *to;
            *to = entry;
        }
    mem_free(a, l->bucket, l->buckets, sizeof *bucket);
    l->bucket = bucket;
    l->buckets = larger;
    return true;
}

void lookup_add(struct lookup *l, struct lookup_entry *entry, uint64_t hash)
{
    struct lookup_entry **at = &l->bucket[hash & (l->buckets - 1)];
    *entry = (struct lookup_entry){*at, hash};
    *at = entry;
    l->n++;
}

void lookup_remove(struct lookup *l, struct lookup_entry *entry)
{
    struct lookup_entry **at = &l->bucket[entry->hash & (l->buckets - 1)];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    l->n--;
}

void lookup_free(struct lookup *l, const tamis_allocator *a)
{
    mem_free(a, l->bucket, l->buckets, sizeof *l->bucket);
    *l = (struct lookup){0};
}
