/*
 * Lines seen before, for one pass over a stream: what dedup uses when no file is to be kept.
 *
 * At 1e-9 one blocked vector takes 81 bits a key and one spread vector 43 bits, but 27 cache misses
 * to add. Two blocked vectors at the square root of the rate, asked with independent digests and
 * both believed or none, take 52 bits and two misses; and adding is asking. Above 1e-5 one does.
 *
 * A sieve has levels, each a pair of fixed filters. The first is small enough for the cache. The
 * next is sized for what is still to come where that can be foreseen, so that most inputs end with
 * two; else the levels grow, quickly at first, then by half of all there is.
 */
#ifndef TAMIS_SIEVE_H
#define TAMIS_SIEVE_H

#include "ui/cli.h"

struct sieve;

/* fpp: rate over all levels. capacity: keys to expect, 0 if that is not known. NULL: no memory, or
   too large. */
struct sieve *sieve_new(double fpp, uint64_t capacity);
void sieve_free(struct sieve *sieve);

/* The filter whose family hashes the keys. */
const tamis_filter *sieve_family(const struct sieve *sieve);
/* Adds; fresh[i]: key i was not seen before. At most SIEVE_BATCH keys. */
#define SIEVE_BATCH 1024
tamis_error sieve_add(struct sieve *sieve, const tamis_digest *digests, size_t n, uint8_t *fresh);
/* Says how many keys are still to come, new or not, as far as that is known; 0: it is not. */
void sieve_foresee(struct sieve *sieve, uint64_t keys);
/* How many new keys were taken for old ones, as the levels' sizes and loads let expect. */
double sieve_lost(const struct sieve *sieve);

#endif
