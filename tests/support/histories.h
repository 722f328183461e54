/*
 * Filters in states that can be reached: random options, then random steps (adds, repeats, legal
 * removals, merges, folds, time that passes). For tests of bytes, files and patches, which must keep
 * every such state.
 */
#ifndef TAMIS_TESTS_HISTORIES_H
#define TAMIS_TESTS_HISTORIES_H

#include "tamis.h"

#define HISTORY_KEYS 700

struct history {
    uint64_t rng, now; /* now: the filter's clock */
    tamis_options options;
    uint8_t key[TAMIS_KEY_LEN], lambdas[4];
    uint32_t copies[HISTORY_KEYS]; /* of each key that were added and not removed */
    bool forgets;                  /* a window, or a restated filter: members are not tracked */
};

/* A new filter of one of the kinds 0..HISTORY_KINDS-1: growth, layout, hash, deletable, unique. */
#define HISTORY_KINDS 35
const char *history_kind(unsigned kind);
tamis_filter *history_new(struct history *h, unsigned kind, uint64_t seed);
void history_copy(struct history *to, const struct history *from);
void history_steps(struct history *h, tamis_filter *f, unsigned n);
/* The clock of a history, for filters loaded from bytes. */
uint64_t history_clock(void *history);
/* Key i as bytes; those from HISTORY_KEYS on were never added. */
size_t history_key(unsigned i, char out[24]);
/* Asks both about all keys and as many non-members; how many answers differ. */
unsigned history_compare(const tamis_filter *x, const tamis_filter *y);
/* How many members are denied. */
unsigned history_denied(const struct history *h, const tamis_filter *f);

/* Bytes that grow; a tamis_write. */
struct bytes {
    uint8_t *data;
    size_t len, room;
};

int bytes_write(void *bytes, const void *data, size_t len);
void bytes_free(struct bytes *bytes);
struct bytes bytes_of(const tamis_filter *f, unsigned flags); /* len 0: it failed */
bool bytes_to_file(const struct bytes *bytes, const char *path);
bool bytes_equal(const struct bytes *x, const struct bytes *y);
/* All of a file; nothing if there is none. */
struct bytes file_bytes(const char *path);
/* Makes the checksums of a container right again, so that only the other checks can refuse it. */
void bytes_repair(struct bytes *bytes);
void container_repair(uint8_t *data, size_t len); /* the same, as far as the lengths allow it */

#endif
