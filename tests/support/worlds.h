/*
 * Records in states that can be reached: random options and a small universe of records, with few
 * values, tiny sizes and high rates, so that layers cover one another and removals stay pending. For
 * tests beside a model, and of bytes.
 */
#ifndef TAMIS_TESTS_WORLDS_H
#define TAMIS_TESTS_WORLDS_H

#include "histories.h"
#include "tamis/records.h"

#define RECORDS 96 /* in the universe, at most */

struct world {
    tamis_records_options options;
    tamis_attribute attributes[TAMIS_ATTRIBUTES_MAX];
    char names[TAMIS_ATTRIBUTES_MAX][16];
    uint8_t key[TAMIS_KEY_LEN];
    uint64_t combos[8];
    uint32_t p, n; /* attributes, records in the universe */
    uint32_t value[RECORDS][TAMIS_ATTRIBUTES_MAX];
    tamis_digest *digests; /* n times p */
};

void world_draw(struct world *w, uint64_t *rng, bool deletable);
/* Makes the set and the digests of all records; NULL if it cannot be made. */
tamis_records *world_start(struct world *w);
uint64_t world_clock(void *context); /* stands still */
void world_free(struct world *w);
/* A value by its number: 0 is missing, 1 empty, the others short texts. */
tamis_key world_value(uint32_t value, char text[16]);
/* The values of a record; short texts go to `text`. */
void world_keys(const struct world *w, uint32_t record, tamis_key *keys, char text[][16]);
const tamis_digest *world_digests(const struct world *w, uint32_t record);
/* Random adds and, where it is deletable, legal removals; `copies` says what is in it. */
void world_steps(const struct world *w, tamis_records *x, uint64_t *rng, uint32_t *copies,
                 unsigned steps);
/* Asks both about all records, by every kind of question; how many answers differ. */
unsigned world_compare(const struct world *w, const tamis_records *x, const tamis_records *y);

struct bytes bytes_of_records(const tamis_records *x, unsigned flags); /* len 0: it failed */

#endif
