/*
 * What the experiments share. An experiment is a program that prints lines of CSV
 *
 *     figure,series,kind,x,y,error,spread,runs,asked
 *
 * where kind is "formula" (the rest empty) or "measured": the standard error of y, the deviation of
 * one repetition from another, how many repetitions there were, and for a share of questions how many
 * were asked in all. All are 0 where nothing is random. Intervals are made from them by
 * lab/labdata.py, which compares with what lab/expected/ says was published.
 *
 * LAB in the environment sets the size: "small" for the tests (a second or two a program), "full" for
 * the papers' own sizes, anything else a run of minutes in all. Everything random comes from LAB_SEED
 * (a number; 1), so a run can be repeated digit for digit, times apart.
 */
#ifndef TAMIS_LAB_COMMON_H
#define TAMIS_LAB_COMMON_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash/digest.h"
#include "tamis.h"

/* The value for this run's size. */
uint64_t lab_size(uint64_t small, uint64_t normal, uint64_t full);
bool lab_is(const char *size);

/* Ends the program when a call of the library failed: an experiment has no use for half a result. */
#define MUST(call) lab_must((call), #call, __FILE__, __LINE__)
void lab_must(tamis_error error, const char *call, const char *file, int line);
void *lab_alloc(size_t n, size_t size);

/* ---- numbers ---- */

uint64_t lab_seed(void);
uint64_t rng_next(uint64_t *state);
uint64_t rng_below(uint64_t *state, uint64_t n);
void rng_shuffle(uint64_t *state, uint64_t *values, size_t n);
/* n distinct numbers, other ones for every `stream`. */
void lab_keys(uint64_t stream, uint64_t *keys, size_t n);
/* A family key of its own for every repetition. */
void lab_family(uint64_t stream, uint8_t key[TAMIS_KEY_LEN]);
double lab_seconds(void); /* of the processor, whatever else runs beside */

/* Mean and spread of what the repetitions gave. */
struct mean {
    uint64_t n;
    double sum, squares;
};

void mean_add(struct mean *s, double value);
double mean_of(const struct mean *s);
double mean_error(const struct mean *s); /* standard error of the mean */

/* ---- lines ---- */

void lab_head(void);
void lab_formula(const char *figure, const char *series, double x, double y);
void lab_exact(const char *figure, const char *series, double x, double y);
/* The mean of the repetitions. */
void lab_measured(const char *figure, const char *series, double x, const struct mean *s);
/* Computed from the measurements of `runs` repetitions, with the standard error that follows from
   theirs. */
void lab_value(const char *figure, const char *series, double x, double y, double error,
               uint64_t runs);
/* Mean rate of s->n repetitions with `asked` questions each. */
void lab_rate(const char *figure, const char *series, double x, const struct mean *s,
              uint64_t asked);

/* ---- filters ---- */

/* Asked with the digests of keys that were never added: share of "maybe". */
double lab_false_rate(const tamis_filter *filter, uint64_t stream, uint64_t asked);
void lab_add(tamis_filter *filter, const uint64_t *keys, size_t n);
size_t lab_count(const tamis_filter *filter, const uint64_t *keys, size_t n);
/* A filter whose probes are the positions that `probe` gives for digest words a (the key) and b. */
tamis_filter *lab_filter_own(const tamis_options *options, probe_fn probe, void *context);
/* The same for a filter that is still empty. */
void lab_own_probes(tamis_filter *filter, probe_fn probe, void *context);
/* The hash functions of the dynamic Bloom filter paper (11): positions (g1 + i g2) mod m. */
void lab_probe_11(const struct family *family, tamis_digest digest, uint64_t units, unsigned k,
                  uint64_t *positions);
tamis_filter *lab_filter(const tamis_options *options);
/* Spread and of a published size: every add counts, past the capacity too. */
tamis_filter *lab_published(tamis_growth growth, uint64_t bits, unsigned hashes, uint64_t capacity,
                            uint64_t stream);
uint64_t lab_bits(const tamis_filter *filter);
/* A tamis_write that adds the number of bytes to the uint64_t at `context`. */
int lab_count_bytes(void *context, const void *data, size_t len);

#endif
