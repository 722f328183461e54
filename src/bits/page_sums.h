/*
 * Checksums of pages of 4096 bytes, as the encoding of sets contains them (format.h), kept up to
 * date while the bytes change: whoever changes a page marks it, and it is summed again when the
 * checksums are next needed. They identify a filter (set_fingerprint) and serve to compare filters,
 * so that publishing 1,024 adds among 10^8 keys costs the pages touched, 4 MB, instead of several
 * passes over 120 MB. They take 9 bytes per page, 0.2 %, from the first time they are needed.
 *
 * Smaller pages would make small changes cheaper and files larger: pages of 1 KiB would take 0.8 %.
 */
#ifndef TAMIS_PAGE_SUMS_H
#define TAMIS_PAGE_SUMS_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"
#include "base/mem.h"

#define PAGE      ((uint64_t)4096) /* bytes per checksum */
#define PAGES_TOP 512              /* pages per top checksum: one page of checksums */

ALWAYS_INLINE uint64_t pages_of(uint64_t len)
{
    return (len + PAGE - 1) / PAGE;
}

/* Computes checksums of pages from bytes in pieces of any size. */
struct page_sums {
    uint8_t *next; /* where the next one is stored */
    uint64_t used; /* bytes of the current page so far */
    uint8_t page[PAGE];
};

void page_sums_add(struct page_sums *sums, const void *data, uint64_t len);
void page_sums_end(struct page_sums *sums); /* the last page may be shorter */
/* XXH3 of every PAGES_TOP of the n checksums, each added to the hash. */
void tops_add(struct hash_stream *hash, const void *sums, uint64_t n);

struct kept_sums {
    uint64_t len, pages;
    atomic_flag busy; /* a thread is summing */
    uint64_t *sum, *top;
    uint8_t *stale; /* marked pages */
};

/* For that many bytes, all marked; NULL if there is no memory. */
struct kept_sums *kept_sums_new(const tamis_allocator *a, uint64_t len);
/* Those in this place, created there if there are none: if several readers do so at the same time, all but the first
   are freed. */
struct kept_sums *kept_sums_at(struct kept_sums **place, const tamis_allocator *a, uint64_t len);
/* A copy, for a copy of the same bytes. */
struct kept_sums *kept_sums_copy(const tamis_allocator *a, const struct kept_sums *from);
void kept_sums_adopt(struct kept_sums *k, const struct kept_sums *from); /* of the same length */
/* To other addresses: `move` says where, or NULL. */
void kept_sums_move(struct kept_sums **k, void *(*move)(void *context, void *memory),
                    void *context);
void kept_sums_free(struct kept_sums *k, const tamis_allocator *a);
/* Sums the marked pages. Several threads may call it at once, but none may change the bytes. */
void kept_sums_refresh(struct kept_sums *k, const void *data);
void kept_sums_spoil(struct kept_sums *k); /* marks all pages; NULL is allowed */

ALWAYS_INLINE void kept_sums_mark(struct kept_sums *k, uint64_t byte)
{
    __atomic_store_n(&k->stale[byte / PAGE], 1, __ATOMIC_RELAXED);
}

/* May the bytes of a page differ? Not if both checksums are known and equal. */
ALWAYS_INLINE bool kept_sums_differ(const struct kept_sums *x, const struct kept_sums *y,
                                    uint64_t page)
{
    return !x || !y || x->stale[page] || y->stale[page] || x->sum[page] != y->sum[page];
}

#endif
