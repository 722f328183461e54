/*
 * Parts of lines, for src/format and src/delta. As bytes, a part has up to four pieces, in the same form as in
 * memory: its lines, its stash, and its two lists.
 */
#ifndef TAMIS_LINES_BYTES_H
#define TAMIS_LINES_BYTES_H

#include "base/bytes.h"
#include "lines.h"

enum part_bytes { PART_LINES, PART_STASH, PART_COARSE, PART_EXCESS, PART_PIECES };

/* The header of a part. */
struct part_facts {
    uint32_t lines, depth, width;
    uint32_t stash, stashed; /* cells, and those in use */
    uint32_t coarse, excess; /* entries of the two lists */
    uint64_t used, keys, mass;
};

/* The bits of all lines; *taken is increased by the bits of used slots. */
uint64_t lines_bits(const struct lines *l, uint64_t *taken);
/* The number of distinct keys, from at most a few thousand lines, spread over all of them. */
double lines_distinct(const struct lines *l);
uint32_t lines_parts(const struct lines *l);
struct body *lines_part(const struct lines *l, uint32_t number);
struct part_facts part_facts(const struct body *b);
const char *part_facts_wrong(const struct part_facts *p);
uint64_t part_len(const struct part_facts *p, enum part_bytes what);
/* The bytes of a piece that has a length. */
uint8_t *part_data(const struct body *b, enum part_bytes what);

/* Checksums of the pages of its lines or its stash, computed by the first call and kept from then on; NULL if there
   is no memory. */
struct kept_sums *part_sums(const struct body *b, enum part_bytes what, const tamis_allocator *a);
/* The same, or NULL if none are kept. */
struct kept_sums *part_sums_kept(const struct body *b, enum part_bytes what);

/* Moves the memory blocks of a part, or the shelf: `move` copies a block and returns its new address, or returns
   NULL. */
void part_move(struct lines *l, uint32_t number, void *(*move)(void *context, void *memory),
               void *context);
void lines_move(struct lines *l, void *(*move)(void *context, void *memory), void *context);

/* Takes a snapshot of the parts, whose bytes can then be read while keys are added: a part is copied before its first
   change. False: no memory. */
bool lines_hold(struct lines *l);
void lines_hold_end(struct lines *l);
/* Copies the parts that these keys would change. False: no memory, and the keys must not be added. */
bool lines_hold_for(struct lines *l, const tamis_digest *digests, size_t n);
/* A part of the snapshot. */
const struct body *lines_held(const struct lines *l, uint32_t number);

/* Starts a set of this many parts, which are then appended in the order of their positions. */
tamis_error lines_begin(struct lines *l, const tamis_allocator *a, double fpp, unsigned width,
                        uint32_t parts);
/* Creates a part with room for its pieces; lines and stash may be elsewhere. NULL if there is no memory. */
struct body *lines_append(struct lines *l, uint32_t position, const struct part_facts *p,
                          const uint8_t *lines, const uint8_t *stash);

/* The check of one part: the lines that have arrived, then the stash, the lists and the end. Each function returns
   what is wrong, or NULL. */
struct part_check {
    struct part_facts facts;
    bool skim; /* lines and stash are not checked */
    uint64_t line, from, end;
    uint64_t used, keys, mass, stashed;
    uint64_t straddling, coarse; /* sums that must be 0 at the end */
    uint64_t coarse_slots, derived;
    /* If only what differs from another version of the part is checked: a bit for each line that does; the stash of
       the other version, NULL if it has another size; the slots of coarse entries that are the same in both. */
    const uint8_t *changed, *other;
    uint64_t coarse_elsewhere;
};

void part_check_begin(struct part_check *c, const struct part_facts *facts);
const char *part_check_lines(struct part_check *c, const uint8_t *lines, uint64_t n);
const char *part_check_stash(struct part_check *c, const uint8_t *lines, const uint8_t *stash);
const char *part_check_list(struct part_check *c, enum part_bytes what, const struct apart *list);
const char *part_check_end(const struct part_check *c);
/* The whole check, for a part in memory. */
const char *part_wrong(const struct body *b);
/* The same at the cost of what changed since another version with lines of the same number and width, which was right;
   `changed` has a bit for each line. */
const char *part_wrong_since(const struct body *b, const struct body *before,
                             const uint8_t *changed);

#endif
