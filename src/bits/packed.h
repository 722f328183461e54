/*
 * Packed fingerprints: a set of at most some 130,000 keys that begins empty and is not sized in advance, in about half
 * the bits that lines take, for a server with millions of small filters, most of which have a few hundred keys. Lookups and adds take about as many
 * instructions as in lines; there are no removals, no copies and no readers beside the writer.
 *
 * As in lines (lines.h), an entry is a prefix of the place of its key. The top `depth` bits of the place choose a page.
 * A page is a sorted list of values of `quotient` + `rest` bits, coded as by Elias and Fano: the top bits of all values
 * in unary, the rest of each as it is.
 *
 *     page:  for each quotient, a one per entry, then a zero | free bits | rest of entry n-1 | ... | rest of entry 0
 *
 * While all entries know as many bits, these are the value. From then on a value is marked, as in lines: of w, whose
 * last u bits are unknown, (2 (w >> u) + 1) << u. The mark must be within the rest.
 */
#ifndef TAMIS_PACKED_H
#define TAMIS_PACKED_H

#include "base/base.h"
#include "base/mem.h"

#define PACKED_MOST      1000 /* entries of a page: only chosen keys crowd one so much */
#define PACKED_QUOTIENTS 18   /* bits: depth and quotient, at most */
#define PACKED_KNOWN     40   /* bits that an entry knows, at most */

struct page_form {
    uint8_t quotient, rest;
    bool marked;
};

struct page_at {
    uint32_t bit, index;
};

/* The words of a page of n entries: the last one may have free bits. */
uint32_t page_words(struct page_form form, uint32_t n);
/* Is there an entry that matches? If not, says where its own would be. */
bool page_find(const uint64_t *page, uint32_t n, struct page_form form, uint64_t value,
               struct page_at *at);
/* Inserts the entry that page_find() did not find. `page` has n entries, and room for one more: it was copied by
   page_widen() if page_words() differs. */
void page_insert(uint64_t *page, uint32_t n, struct page_form form, uint64_t value,
                 struct page_at at);
/* Copies a page of n entries into zeroed memory with room for one more. */
void page_widen(uint64_t *to, const uint64_t *from, uint32_t n, struct page_form form);

struct packed {
    uint32_t n, bytes;
    uint32_t most; /* for the caller: the number of entries up to which `known` holds */
    uint8_t known, depth, quotient;
    bool marked : 1;
    bool refused : 1; /* made anew it would exceed the limit: not tried again for each key */
    uint64_t *page[]; /* of 2^depth pages, NULL if empty; then the number of entries of each */
};

enum packed_added { PACKED_OLD, PACKED_NEW, PACKED_CROWDED, PACKED_NO_MEMORY, PACKED_NO_SPACE };

/* Pages have 2^quotient quotients, and half to all of that many entries on average: fewer are quicker to change, and take
   80 bits more for each page. */
struct packed *packed_new(const tamis_allocator *a, unsigned quotient, unsigned known);
/* A new set with the entries of a page that is not marked, and whose values are the top bits of places. */
enum packed_added packed_of_page(const tamis_allocator *a, const uint64_t *page, uint32_t n,
                                 struct page_form form, unsigned quotient, unsigned known,
                                 struct packed **out);
void packed_free(struct packed *p, const tamis_allocator *a);
struct packed *packed_copy(const struct packed *p, const tamis_allocator *a);
bool packed_has(const struct packed *p, uint64_t place);
/* All but PACKED_NEW change nothing. PACKED_NO_SPACE: it would have more bytes than the limit. */
enum packed_added packed_add(struct packed *p, const tamis_allocator *a, uint64_t limit,
                             uint64_t place);
/* From now on new entries know this many bits, and there is room for one more: in larger pages up to this quotient, then
   in twice as many. PACKED_CROWDED: an entry would have more unknown bits than the rest of a value. */
enum packed_added packed_renew(struct packed **p, const tamis_allocator *a, uint64_t limit,
                               unsigned quotient, unsigned known);
uint32_t packed_room(const struct packed *p); /* entries for which there are pages */

typedef tamis_error (*packed_fn)(void *context, uint64_t place, unsigned known, uint64_t copies);
tamis_error packed_each(const struct packed *p, packed_fn take, void *context);
tamis_error page_each(const uint64_t *page, uint32_t n, struct page_form form, packed_fn take,
                      void *context);

/* Writes the set as bytes, and reads it: NULL if the bytes are damaged, or if there is no memory. */
size_t packed_len(const struct packed *p);
void packed_put(const struct packed *p, uint8_t *out);
struct packed *packed_get(const tamis_allocator *a, const uint8_t *bytes, size_t len);
bool page_valid(const uint64_t *page, uint32_t n, struct page_form form);

/* Blocks are moved by `move`, which returns NULL if one stays where it is. */
void packed_move(struct packed **p, void *(*move)(void *context, void *block), void *context);

#endif
