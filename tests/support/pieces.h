/* Filters and indexes written and read in pieces of random sizes, some of them twice. */
#ifndef TAMIS_TESTS_PIECES_H
#define TAMIS_TESTS_PIECES_H

#include "format/format.h"
#include "fault.h"
#include "format/pieces.h"
#include "histories.h"

uint64_t pieces_draw(uint64_t *rng, uint64_t n); /* 0..n-1 */
/* All pieces of up to `room`, some of them read twice; `during` (may be NULL) is called between the
   calls. */
tamis_error pieces_pull(struct set *set, struct bytes *out, size_t room, uint64_t *rng,
                        void (*during)(struct set *));
/* Pieces of up to `most`; what came is encoded again now and then. */
tamis_error pieces_push(struct set **out, const struct bytes *bytes, size_t most, uint64_t *rng,
                        const tamis_open_options *options, tamis_reason *reason);

/* Out and in again: in pieces the same bytes come out, and they make an equal set, which is returned. */
struct set *pieces_round(struct set *set, const struct bytes *bytes, bool small,
                         const tamis_open_options *options, uint64_t *rng);
/* The bytes of a set without its key make none, and with `key` an equal one. */
void pieces_keyless(struct set *set, const tamis_open_options *options, uint64_t *rng);
/* Some bytes are forged, with right checksums: they are let in, or refused, as by the decoder. */
bool pieces_as_decoder(const struct bytes *bytes, enum kind kind, const tamis_open_options *options,
                       uint64_t *rng);
/* The same for n forgeries of good bytes, of which some bits are flipped; returns how many were let in. */
unsigned pieces_forged(const struct bytes *good, enum kind kind, const tamis_open_options *options,
                       uint64_t *rng, unsigned n);
/* Read and written while every allocation fails once: nothing is left of what failed. The set that was
   made at last. */
struct set *pieces_failing(const struct bytes *bytes, struct fault *fault,
                           const tamis_open_options *options, uint64_t *rng);
/* What `add` adds while a dump is under way does not show in it. */
void pieces_moment(struct set *set, void (*add)(struct set *), uint64_t *rng);

/* Bytes that are wrong, checksums and all: at once, in pieces and where they lie they are refused, for
   this reason. */
void refused_everywhere(const struct bytes *bytes, enum kind kind, const char *text);
/* The same with so many bytes at `at` of a section changed to `value`, and its checksums made right. */
void refused_with(const struct bytes *good, enum kind kind, struct section s, uint64_t at,
                  uint64_t value, size_t len, const char *text);

#endif
