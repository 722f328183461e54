/*
 * Parts of lines for src/format and src/delta. In bytes a part has up to four pieces, each as it lies in memory:
 * its lines, its stash, and its two lists of entries apart.
 */
#ifndef TAMIS_LINES_BYTES_H
#define TAMIS_LINES_BYTES_H

#include "base/bytes.h"
#include "lines.h"

enum part_bytes { PART_LINES, PART_STASH, PART_COARSE, PART_EXCESS, PART_PIECES };

/* What a part says of itself. */
struct part_facts {
    uint32_t lines, depth, width;
    uint32_t stash, stashed; /* places, and those in use */
    uint32_t coarse, excess; /* entries of its lists */
    uint64_t used, keys, mass;
};

/* Of all lines, and those that slots in use have. */
uint64_t lines_bits(const struct lines *l, uint64_t *taken);
/* Entries that differ. Looks at all of them. */
uint64_t lines_distinct(const struct lines *l);
uint32_t lines_parts(const struct lines *l);
struct body *lines_part(const struct lines *l, uint32_t number);
struct part_facts part_facts(const struct body *b);
const char *part_facts_wrong(const struct part_facts *p);
uint64_t part_len(const struct part_facts *p, enum part_bytes what);
/* Where they are, if they have a length. */
uint8_t *part_place(const struct body *b, enum part_bytes what);

/* Checksums of the pages of its lines or of its stash, made by the first call and kept from then on; NULL if there
   is no memory. */
struct kept_sums *part_sums(const struct body *b, enum part_bytes what, const tamis_allocator *a);
/* Those that are kept, or NULL. */
struct kept_sums *part_sums_kept(const struct body *b, enum part_bytes what);

/* The blocks of memory of a part in other places: `move` says where, with the same bytes, or NULL. So is the root,
   where that is no part. */
void part_move(struct lines *l, uint32_t number, void *(*move)(void *context, void *memory),
               void *context);
void lines_move(struct lines *l, void *(*move)(void *context, void *memory), void *context);

/* Holds the parts as they are, so that their bytes can be read while keys are added: a part is copied before it first
   changes. False: no memory. */
bool lines_hold(struct lines *l);
void lines_hold_end(struct lines *l);
/* Before these are added. False: no memory, and they must not be. */
bool lines_hold_for(struct lines *l, const tamis_digest *digests, size_t n);
/* A part of the moment. */
const struct body *lines_held(const struct lines *l, uint32_t number);

/* A set of so many parts, which are then appended: the places are in order and each once. */
tamis_error lines_begin(struct lines *l, const tamis_allocator *a, double fpp, unsigned width,
                        uint32_t parts);
/* A part with room for what it says; its lines and stash may be elsewhere. NULL if there is no memory. */
struct body *lines_append(struct lines *l, uint32_t place, const struct part_facts *p,
                          const uint8_t *lines, const uint8_t *stash);

/* The check of one part: lines, as many as have come, then the stash, the lists and the end. Each says what is
   wrong, or NULL. */
struct part_check {
    struct part_facts facts;
    bool skim; /* lines and stash are not looked at */
    uint64_t line, from, end;
    uint64_t used, keys, mass, stashed;
    uint64_t straddling, coarse; /* sums that come to nothing */
    uint64_t coarse_slots, derived;
};

void part_check_begin(struct part_check *c, const struct part_facts *facts);
const char *part_check_lines(struct part_check *c, const uint8_t *lines, uint64_t n);
const char *part_check_stash(struct part_check *c, const uint8_t *lines, const uint8_t *stash);
const char *part_check_list(struct part_check *c, enum part_bytes what, const struct apart *list);
const char *part_check_end(const struct part_check *c);
/* All of it, of a part in memory. */
const char *part_wrong(const struct body *b);

#endif
