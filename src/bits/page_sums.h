/*
 * Checksums of pages of 4096 bytes, as bytes of sets carry them (format.h), kept up to date while the bytes
 * change: who changes a page marks it, and it is summed again when the checksums are next asked for. A
 * filter is known by them (set_fingerprint) and compared by them, so that publishing 1,024 adds among
 * 10^8 keys costs the pages that they touched, 4 MB, and not 120 MB several times over. They take a byte
 * for a page and 8 for its checksum, 0.2 % of what they are of, from when they are first asked for.
 *
 * Smaller pages would make small changes cheaper and files larger: 1 KiB is 0.8 %.
 */
#ifndef TAMIS_PAGE_SUMS_H
#define TAMIS_PAGE_SUMS_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"
#include "base/mem.h"

#define PAGE      ((uint64_t)4096) /* bytes under one checksum */
#define PAGES_TOP 512              /* pages under one top: a page of checksums */

ALWAYS_INLINE uint64_t pages_of(uint64_t len)
{
    return (len + PAGE - 1) / PAGE;
}

/* Makes checksums of pages, given bytes in pieces of any size. */
struct page_sums {
    uint8_t *next; /* where the next one goes */
    uint64_t used; /* bytes of the page */
    uint8_t page[PAGE];
};

void page_sums_add(struct page_sums *sums, const void *data, uint64_t len);
void page_sums_end(struct page_sums *sums); /* the last page may be shorter */
/* XXH3 of every PAGES_TOP of n checksums, each added to the hash. */
void tops_add(struct hash_stream *hash, const void *sums, uint64_t n);

struct kept_sums {
    uint64_t len, pages;
    atomic_flag busy; /* somebody is summing */
    uint64_t *sum, *top;
    uint8_t *stale; /* pages that were marked */
};

/* Of so many bytes, all of them marked; NULL without memory. */
struct kept_sums *kept_sums_new(const tamis_allocator *a, uint64_t len);
/* As those of the same bytes elsewhere. */
struct kept_sums *kept_sums_copy(const tamis_allocator *a, const struct kept_sums *from);
/* Its checksums are in another place. */
void kept_sums_place(struct kept_sums *k);
void kept_sums_free(struct kept_sums *k, const tamis_allocator *a);
/* Sums the pages that were marked. Several threads may ask at once, beside none that changes them. */
void kept_sums_refresh(struct kept_sums *k, const void *data);
void kept_sums_spoil(struct kept_sums *k); /* marks all, if there are any; NULL: none are kept */

ALWAYS_INLINE void kept_sums_mark(struct kept_sums *k, uint64_t byte)
{
    __atomic_store_n(&k->stale[byte / PAGE], 1, __ATOMIC_RELAXED);
}

/* May the bytes of a page differ? Not if their checksums are known and alike. */
ALWAYS_INLINE bool kept_sums_differ(const struct kept_sums *x, const struct kept_sums *y,
                                    uint64_t page)
{
    return !x || !y || x->stale[page] || y->stale[page] || x->sum[page] != y->sum[page];
}

#endif
