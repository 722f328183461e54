/*
 * Sets in states that can be reached, of every kind: filters with a history (histories.h) and records of
 * a small world (worlds.h), by one set of functions. For tests of what holds for a set with one part and
 * for a set with several.
 */
#ifndef TAMIS_TESTS_SUBJECTS_H
#define TAMIS_TESTS_SUBJECTS_H

#include "format/format.h"
#include "histories.h"
#include "worlds.h"

/* The filters of histories.h, then records: none, table and filter verifier, each plain and deletable,
   four of each. */
#define SUBJECT_KINDS (HISTORY_KINDS + 24)

/* What was done to the set. A copy of it, put back, takes another set through the same. */
struct past {
    struct history history;   /* of a filter */
    uint32_t copies[RECORDS]; /* of records */
    uint64_t rng;
};

struct subject {
    enum kind kind; /* of its bytes */
    const char *name;
    struct set *set;
    struct bytes bytes; /* of the set when it was made */
    struct past past;
    struct world world;         /* of records */
    tamis_open_options opening; /* with its key and its clock */
};

/* A set of one of the kinds 0..SUBJECT_KINDS-1 after this many steps. */
struct subject *subject_new(unsigned kind, uint64_t seed, unsigned steps);
/* One with fewer bytes than `most`. */
struct subject *subject_small(unsigned kind, uint64_t seed, size_t most);
void subject_free(struct subject *s);
/* Runs `test` with a small subject of every step-th kind, and names those for which a check failed. */
void subject_each(unsigned step, uint64_t seed, size_t most, void (*test)(struct subject *s));

bool subject_deletable(const struct subject *s);
/* Further steps of its past, done to the set or to one like it. */
void subject_steps(struct subject *s, struct set *set, unsigned n);
/* Another set with the same options and key, after this many steps of its own. */
struct set *subject_sibling(struct subject *s, unsigned steps);
/* Asks both all that may be asked; how many answers differ. */
unsigned subject_compare(const struct subject *s, struct set *x, struct set *y);
/* How many questions x answers with "maybe" and y with "no". */
unsigned subject_lost(const struct subject *s, struct set *x, struct set *y);
/* How many members are denied. */
unsigned subject_denied(const struct subject *s, struct set *set);

struct bytes bytes_of_set(const struct set *set, unsigned flags);
/* By the function of the public header for that kind. */
tamis_error set_decode(struct set **out, enum kind kind, const struct bytes *bytes,
                       const tamis_open_options *o, tamis_reason *reason);

/* ---- sets made for a purpose ---- */

/* A filter of the options `set`, or records of two attributes. */
struct set *set_of(enum kind kind, tamis_records_options o);
/* Item i: a key, or a record. */
tamis_error item_add(struct set *set, uint64_t i);
tamis_error item_remove(struct set *set, uint64_t i);
bool item_has(struct set *set, uint64_t i);

#endif
