/*
 * Lines seen before, for one pass over a stream: used by dedup without a file.
 *
 * At 1e-9 one blocked vector takes 81 bits per key and one spread vector 43 bits, but 27 cache
 * misses per add. Two blocked vectors at the square root of the rate, queried with independent
 * digests and trusted only if they agree, take 52 bits and two misses, and an add is also the
 * query. Above 1e-5 one is enough.
 *
 * A sieve has levels, each a pair of fixed filters. The first is small enough for the cache. The
 * next is sized for what is still to come if that can be estimated, so that most inputs end with
 * two levels; otherwise the levels grow, quickly at first, then by half of the total.
 */
#ifndef TAMIS_SIEVE_H
#define TAMIS_SIEVE_H

#include "ui/cli.h"

struct sieve;

/* fpp: rate over all levels. capacity: expected keys, 0 if unknown. NULL: no memory, or too
   large. */
struct sieve *sieve_new(double fpp, uint64_t capacity);
void sieve_free(struct sieve *sieve);

/* The filter whose family hashes the keys. */
const tamis_filter *sieve_family(const struct sieve *sieve);
/* Adds keys; fresh[i]: key i was not seen before. At most SIEVE_BATCH keys. */
#define SIEVE_BATCH 1024
tamis_error sieve_add(struct sieve *sieve, const tamis_digest *digests, size_t n, uint8_t *fresh);
/* Announces how many keys are still to come, new or not; 0: unknown. */
void sieve_foresee(struct sieve *sieve, uint64_t keys);
/* The expected number of new keys mistaken for old ones, given the levels' sizes and loads. */
double sieve_lost(const struct sieve *sieve);

#endif
