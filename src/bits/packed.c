/* Packed fingerprints: pages of sorted values, and sets of pages. See packed.h. */
#include "packed.h"

#include <string.h>

#include "base/bytes.h"
#include "packed_page.h"

/* ---- pages ----------------------------------------------------------------------------------- */

uint32_t page_words(struct page_form form, uint32_t n)
{
    return words_for(form, n);
}

bool page_find(const uint64_t *page, uint32_t n, struct page_form form, uint64_t value,
               struct page_at *at)
{
    return find_in(page, n, form, value, at, nth_one);
}

void page_insert(uint64_t *page, uint32_t n, struct page_form form, uint64_t value,
                 struct page_at at)
{
    insert_in(page, n, form, value, at);
}

/* The first bits and the last ones may share a word. */
void page_widen(uint64_t *to, const uint64_t *from, uint32_t n, struct page_form form)
{
    uint64_t head = (UINT64_C(1) << form.quotient) + n, tail = (uint64_t)n * form.rest;
    uint32_t was = page_words(form, n), words = page_words(form, n + 1);
    uint64_t low = (uint64_t)was * 64 - tail;
    memcpy(to, from, (head + 63) / 64 * sizeof *to);
    to[(head - 1) >> 6] &= mask_below((head - 1) & ~UINT64_C(63), head);
    for (uint64_t k = low >> 6; k < was; k++) /* the first of them may be the last of those */
        to[k + words - was] |= k << 6 < low ? from[k] >> (low & 63) << (low & 63) : from[k];
}

/* Writes sorted values into zeroed memory. */
static void page_fill(uint64_t *page, const uint64_t *value, uint32_t n, struct page_form form)
{
    uint32_t words = page_words(form, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bit = (value[i] >> form.rest) + i;
        page[bit >> 6] |= UINT64_C(1) << (bit & 63);
        set_bits(page, rest_at(form, words, i), form.rest, value[i] & ones(form.rest));
    }
}

bool page_valid(const uint64_t *page, uint32_t n, struct page_form form)
{
    uint64_t all = (UINT64_C(1) << form.quotient) + n, found = 0, last = 0, value;
    for (uint64_t bit = 0; bit < all; bit++)
        found += page[bit >> 6] >> (bit & 63) & 1;
    if (found != n || (page[(all - 1) >> 6] >> ((all - 1) & 63) & 1))
        return false;
    struct page_walk w = walk_of(page, n, form);
    for (uint32_t i = 0; walk_next(&w, &value); i++, last = value)
        if ((i && value <= last) || (form.marked && !(value & ones(form.rest))))
            return false;
    return true;
}

/* ---- sets of pages --------------------------------------------------------------------------- */

ALWAYS_INLINE uint16_t *counts(const struct packed *p)
{
    return (uint16_t *)(uintptr_t)(p->page + ((size_t)1 << p->depth));
}

static size_t head_size(unsigned depth)
{
    return sizeof(struct packed) + ((sizeof(uint64_t *) + sizeof(uint16_t)) << depth);
}

ALWAYS_INLINE struct page_form form_of(const struct packed *p)
{
    unsigned rest = p->known + p->marked - p->depth - p->quotient;
    return (struct page_form){p->quotient, (uint8_t)rest, p->marked};
}

uint32_t packed_room(const struct packed *p)
{
    uint32_t quotients = UINT32_C(1) << (p->quotient + p->depth);
    return quotients + quotients / 32;
}

static struct packed *blank(const tamis_allocator *a, unsigned quotient, unsigned known,
                            unsigned depth, bool marked)
{
    struct packed *p = NULL;
    if (known <= PACKED_KNOWN && quotient + depth <= PACKED_QUOTIENTS && quotient <= 8 &&
        known > depth + quotient)
        p = mem_new0(a, 1, head_size(depth));
    if (p)
        *p = (struct packed){.bytes = (uint32_t)head_size(depth),
                             .quotient = (uint8_t)quotient,
                             .known = (uint8_t)known,
                             .depth = (uint8_t)depth,
                             .marked = marked};
    return p;
}

struct packed *packed_new(const tamis_allocator *a, unsigned quotient, unsigned known)
{
    return blank(a, quotient, known, 0, false);
}

void packed_free(struct packed *p, const tamis_allocator *a)
{
    for (size_t i = 0; p && i < (size_t)1 << p->depth; i++)
        mem_free(a, p->page[i], page_words(form_of(p), counts(p)[i]), sizeof(uint64_t));
    if (p)
        mem_free(a, p, 1, head_size(p->depth));
}

ALWAYS_INLINE size_t page_of(const struct packed *p, uint64_t place)
{
    return p->depth ? place >> (64 - p->depth) : 0;
}

ALWAYS_INLINE uint64_t placed_in(const struct packed *p, uint64_t place)
{
    return place << p->depth >> (64 + p->depth - p->known) << p->marked | p->marked;
}

ALWAYS_INLINE bool has_in(const struct packed *p, uint64_t place, nth_fn nth)
{
    struct page_at at;
    size_t i = page_of(p, place);
    return p->page[i] &&
           find_in(p->page[i], counts(p)[i], form_of(p), placed_in(p, place), &at, nth);
}

/* A page with room for one more; NULL: no memory. */
static uint64_t *page_for(struct packed *p, const tamis_allocator *a, size_t i, uint32_t was,
                          uint32_t words)
{
    uint64_t *page = p->page[i], *wider = mem_new0(a, words, sizeof *wider);
    if (!wider)
        return NULL;
    if (page)
        page_widen(wider, page, counts(p)[i], form_of(p));
    mem_free(a, page, was, sizeof *page);
    p->bytes += (uint32_t)((page ? words - was : words) * sizeof *wider);
    p->page[i] = wider;
    return wider;
}

ALWAYS_INLINE enum packed_added add_in(struct packed *p, const tamis_allocator *a, uint64_t limit,
                                       uint64_t place, nth_fn nth)
{
    struct page_form form = form_of(p);
    size_t i = page_of(p, place);
    uint32_t n = counts(p)[i], was = words_for(form, n), words = words_for(form, n + 1);
    uint64_t value = placed_in(p, place), *page = p->page[i];
    struct page_at at = {(uint32_t)(value >> form.rest), 0};
    if (page && find_in(page, n, form, value, &at, nth))
        return PACKED_OLD;
    if (n == PACKED_MOST)
        return PACKED_CROWDED;
    if (words > was || !page) {
        if (p->bytes + (page ? words - was : words) * sizeof *page > limit)
            return PACKED_NO_SPACE;
        if (!(page = page_for(p, a, i, was, words)))
            return PACKED_NO_MEMORY;
    }
    insert_in(page, n, form, value, at);
    counts(p)[i]++;
    p->n++;
    return PACKED_NEW;
}

#ifdef TAMIS_X86
static FAST bool has_fast(const struct packed *p, uint64_t place)
{
    return has_in(p, place, nth_one_fast);
}

static FAST enum packed_added add_fast(struct packed *p, const tamis_allocator *a, uint64_t limit,
                                       uint64_t place)
{
    return add_in(p, a, limit, place, nth_one_fast);
}
#endif

bool packed_has(const struct packed *p, uint64_t place)
{
#ifdef TAMIS_X86
    if (cpu_isa() >= ISA_AVX2)
        return has_fast(p, place);
#endif
    return has_in(p, place, nth_one);
}

enum packed_added packed_add(struct packed *p, const tamis_allocator *a, uint64_t limit,
                             uint64_t place)
{
#ifdef TAMIS_X86
    if (cpu_isa() >= ISA_AVX2)
        return add_fast(p, a, limit, place);
#endif
    return add_in(p, a, limit, place, nth_one);
}

/* ---- other sizes ----------------------------------------------------------------------------- */

/* A set that is being made of entries in the order of their places. */
struct building {
    const tamis_allocator *a;
    struct packed *to;
    enum packed_added result;
    uint32_t page, n;
    uint64_t value[PACKED_MOST];
};

static void end_page(struct building *b)
{
    struct page_form form = form_of(b->to);
    uint32_t words = page_words(form, b->n);
    uint64_t *page = b->n ? mem_new0(b->a, words, sizeof *page) : NULL;
    if (b->n && !page)
        b->result = PACKED_NO_MEMORY;
    if (page) {
        page_fill(page, b->value, b->n, form);
        b->to->page[b->page] = page;
        b->to->bytes += (uint32_t)(words * sizeof *page);
        counts(b->to)[b->page] = (uint16_t)b->n;
        b->to->n += b->n;
    }
    b->page++;
    b->n = 0;
}

ALWAYS_INLINE tamis_error build(void *context, uint64_t place, unsigned known, uint64_t copies)
{
    struct building *b = context;
    const struct packed *p = b->to;
    unsigned unknown = p->known - known;
    (void)copies;
    while (b->page < page_of(p, place) && b->result == PACKED_NEW)
        end_page(b);
    if (b->result == PACKED_NEW && (b->n == PACKED_MOST || known > p->known ||
                                    (p->marked ? unknown >= form_of(p).rest : unknown > 0)))
        b->result = PACKED_CROWDED;
    if (b->result != PACKED_NEW)
        return TAMIS_ELIMIT;
    uint64_t value = placed_in(p, place);
    b->value[b->n++] = p->marked ? (value ^ 1) | UINT64_C(1) << unknown : value;
    return TAMIS_OK;
}

static enum packed_added built(struct building *b, struct packed **out)
{
    while (b->result == PACKED_NEW && b->page < UINT32_C(1) << b->to->depth)
        end_page(b);
    if (b->result == PACKED_NEW)
        *out = b->to;
    else
        packed_free(b->to, b->a);
    return b->result;
}

ALWAYS_INLINE tamis_error page_entries(const uint64_t *page, uint32_t n, struct page_form form,
                                       uint32_t number, unsigned depth, packed_fn take,
                                       void *context)
{
    unsigned bits = form.quotient + form.rest - form.marked;
    uint64_t value, top = depth ? (uint64_t)number << (64 - depth) : 0;
    struct page_walk w = walk_of(page, n, form);
    tamis_error e = TAMIS_OK;
    while (e == TAMIS_OK && walk_next(&w, &value)) {
        unsigned unknown = form.marked ? (unsigned)__builtin_ctzll(value) : 0;
        uint64_t known = form.marked ? (value & (value - 1)) >> 1 : value;
        e = take(context, known << (64 - bits) >> depth | top, depth + bits - unknown, 1);
    }
    return e;
}

tamis_error page_each(const uint64_t *page, uint32_t n, struct page_form form, packed_fn take,
                      void *context)
{
    return page_entries(page, n, form, 0, 0, take, context);
}

ALWAYS_INLINE tamis_error each_of(const struct packed *p, packed_fn take, void *context)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; e == TAMIS_OK && i < UINT32_C(1) << p->depth; i++)
        e = page_entries(p->page[i], counts(p)[i], form_of(p), i, p->depth, take, context);
    return e;
}

tamis_error packed_each(const struct packed *p, packed_fn take, void *context)
{
    return each_of(p, take, context);
}

enum packed_added packed_of_page(const tamis_allocator *a, const uint64_t *page, uint32_t n,
                                 struct page_form form, unsigned quotient, unsigned known,
                                 struct packed **out)
{
    struct building b = {.a = a, .to = blank(a, quotient, known, 0, true), .result = PACKED_NEW};
    if (!b.to)
        return PACKED_NO_MEMORY;
    page_each(page, n, form, build, &b);
    return built(&b, out);
}

enum packed_added packed_renew(struct packed **p, const tamis_allocator *a, uint64_t limit,
                               unsigned quotient, unsigned known)
{
    const struct packed *old = *p;
    bool full = old->n >= packed_room(old), later = known > old->known;
    bool grows = old->quotient < quotient;
    unsigned bits = old->quotient + old->depth;
    /* Half full is enough if they are made anew in any case: then the next time that `known` changes is soon enough. */
    bool more = !grows &&
                (full || (later && old->n >= packed_room(old) / 2 && bits + 1 < PACKED_QUOTIENTS));
    if (grows && full)
        quotient = (unsigned)min_u64(quotient, old->quotient + 2u);
    else
        quotient = old->quotient;
    if ((more && bits == PACKED_QUOTIENTS) || known > PACKED_KNOWN)
        return PACKED_CROWDED;
    if (old->refused)
        return PACKED_NO_SPACE;
    struct building b = {
        .a = a,
        .to = blank(a, quotient, known, old->depth + more, old->marked || (later && old->n > 0)),
        .result = PACKED_NEW};
    if (!b.to)
        return PACKED_NO_MEMORY;
    each_of(old, build, &b);
    struct packed *made = NULL;
    enum packed_added e = built(&b, &made);
    if (e != PACKED_NEW)
        return e;
    bool fits = made->bytes <= max_u64(limit, old->bytes);
    packed_free(fits ? *p : made, a);
    if (!fits) {
        (*p)->refused = true;
        return PACKED_NO_SPACE;
    }
    *p = made;
    return PACKED_NEW;
}

/* ---- copies, bytes --------------------------------------------------------------------------- */

struct packed *packed_copy(const struct packed *p, const tamis_allocator *a)
{
    struct packed *copy = blank(a, p->quotient, p->known, p->depth, p->marked);
    bool good = copy;
    for (size_t i = 0; good && i < (size_t)1 << p->depth; i++) {
        uint32_t words = page_words(form_of(p), counts(p)[i]);
        if (!p->page[i])
            continue;
        copy->page[i] = mem_new(a, words, sizeof(uint64_t));
        good = copy->page[i];
        if (good) {
            memcpy(copy->page[i], p->page[i], words * sizeof(uint64_t));
            counts(copy)[i] = counts(p)[i];
        }
    }
    if (!good) {
        packed_free(copy, a);
        return NULL;
    }
    copy->n = p->n;
    copy->bytes = p->bytes;
    copy->most = p->most;
    return copy;
}

void packed_move(struct packed **p, void *(*move)(void *context, void *block), void *context)
{
    struct packed *moved = move(context, *p);
    if (moved)
        *p = moved;
    for (size_t i = 0; i < (size_t)1 << (*p)->depth; i++) {
        uint64_t *page = (*p)->page[i] ? move(context, (*p)->page[i]) : NULL;
        if (page)
            (*p)->page[i] = page;
    }
}

/* known | depth | marked | quotient | for each page: its entries, u32 | for each page: its words */
enum { PACKED_HEAD = 4, PACKED_COUNT = 4 };

size_t packed_len(const struct packed *p)
{
    size_t len = PACKED_HEAD + ((size_t)PACKED_COUNT << p->depth);
    for (size_t i = 0; i < (size_t)1 << p->depth; i++)
        len += p->page[i] ? page_words(form_of(p), counts(p)[i]) * sizeof(uint64_t) : 0;
    return len;
}

void packed_put(const struct packed *p, uint8_t *out)
{
    size_t pages = (size_t)1 << p->depth;
    out[0] = p->known;
    out[1] = p->depth;
    out[2] = p->marked;
    out[3] = p->quotient;
    uint8_t *to = out + PACKED_HEAD + PACKED_COUNT * pages;
    for (size_t i = 0; i < pages; i++) {
        put_u32(out + PACKED_HEAD + PACKED_COUNT * i, counts(p)[i]);
        for (uint32_t k = 0; p->page[i] && k < page_words(form_of(p), counts(p)[i]); k++, to += 8)
            put_u64(to, p->page[i][k]);
    }
}

/* Reads a page of untrusted bytes and advances *at; false if it is damaged. */
static bool page_get(struct building *b, size_t number, uint32_t n, const uint8_t **at,
                     const uint8_t *end)
{
    uint64_t page[(256 + PACKED_MOST * (2 + PACKED_KNOWN) + 63) / 64]; /* a mark is one bit more */
    struct page_form form = form_of(b->to);
    uint32_t words = page_words(form, n);
    if (n == 0)
        return true;
    if (n > PACKED_MOST || (size_t)(end - *at) / 8 < words)
        return false;
    for (uint32_t k = 0; k < words; k++, *at += 8)
        page[k] = get_u64(*at);
    return page_valid(page, n, form) &&
           page_entries(page, n, form, (uint32_t)number, b->to->depth, build, b) == TAMIS_OK;
}

struct packed *packed_get(const tamis_allocator *a, const uint8_t *bytes, size_t len)
{
    struct packed *p = NULL;
    if (len < PACKED_HEAD || bytes[1] > PACKED_QUOTIENTS || bytes[2] > 1 ||
        len < PACKED_HEAD + ((size_t)PACKED_COUNT << bytes[1]))
        return NULL;
    struct building b = {
        .a = a, .to = blank(a, bytes[3], bytes[0], bytes[1], bytes[2]), .result = PACKED_NEW};
    size_t pages = (size_t)1 << bytes[1];
    const uint8_t *at = bytes + PACKED_HEAD + PACKED_COUNT * pages;
    bool good = b.to;
    for (size_t i = 0; good && i < pages; i++)
        good = page_get(&b, i, get_u32(bytes + PACKED_HEAD + PACKED_COUNT * i), &at, bytes + len);
    if (b.to && (!good || at != bytes + len))
        b.result = PACKED_CROWDED;
    if (b.to)
        built(&b, &p);
    return p;
}
