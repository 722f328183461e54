/* A small filter in memory: see small.c. */
#ifndef TAMIS_SMALL_FORM_H
#define TAMIS_SMALL_FORM_H

#include "set.h"

#define PLACES     24 /* beyond this, lines take less */
#define UNITS_MAX  (1u << 24)
#define PROBES_MAX (1u << 6)
/* The most keys in pages, which become lines at once. Behind a vector they do so when the keys come to (2^i - 1) times the
   capacity: then RedisBloom takes its next vector too. */
#define PACKED_KEYS (UINT32_C(9) << 14)

enum small_form { FORM_PLACES, FORM_PAGE, FORM_PACKED, FORM_BITS };

struct small {
    struct terms *terms;
    uint64_t memory_limit;
    uint32_t n; /* keys of the places, the page or the vector */
    /* Of the vector; `units` of places and of a page is the number of words. */
    uint32_t units : 24, k : 6, form : 2;
    /* Places or a page; or the address of the set of pages, followed by the bits of the vector. */
    uint64_t word[];
};

/* Of FORM_PACKED and FORM_BITS; NULL: no key has exceeded the capacity. */
ALWAYS_INLINE struct packed *rest_of(const struct small *m)
{
    struct packed *rest = NULL;
    if (m->form >= FORM_PACKED)
        memcpy(&rest, m->word, sizeof rest);
    return rest;
}

ALWAYS_INLINE void rest_put(struct small *m, struct packed *rest)
{
    memcpy(m->word, &rest, sizeof rest);
}

ALWAYS_INLINE struct page_form first_page(const struct settings *opt)
{
    unsigned quotient = 0, known = plan_first_known(opt->budget);
    while (UINT64_C(1) << quotient < opt->capacity)
        quotient++;
    return (struct page_form){(uint8_t)quotient, (uint8_t)(known - quotient), false};
}

/* The first key needs no memory: a filter that is created for it is not left without it. */
ALWAYS_INLINE uint32_t words_of_page(struct page_form form, uint32_t n)
{
    return page_words(form, n ? n : 1);
}

ALWAYS_INLINE size_t small_size(const struct small *m)
{
    size_t units = m->units, words = 1 + (m->form == FORM_BITS) * ((units + 63) / 64);
    return sizeof *m + 8 * (m->form <= FORM_PAGE ? units : words);
}

/* Adds an exact place. */
enum small_added small_add_place(struct small **at, uint64_t place);
/* How many bits are known of the key that follows n others, and up to how many keys, of those in pages. */
unsigned small_known(const struct settings *opt, uint64_t n, uint32_t *most);

#endif
