/* Sets written and read in pieces of random sizes, some of them twice. */
#ifndef TAMIS_TESTS_PIECES_H
#define TAMIS_TESTS_PIECES_H

#include "format/format.h"
#include "fault.h"
#include "format/pieces.h"
#include "subjects.h"

uint64_t pieces_draw(uint64_t *rng, uint64_t n); /* 0..n-1 */
/* All pieces of up to `room`, some of them read twice; `during` (may be NULL) is called between the
   calls. */
tamis_error pieces_pull(struct set *set, struct bytes *out, size_t room, uint64_t *rng,
                        void (*during)(struct set *));
/* Pieces of up to `most`; what came is encoded again now and then. */
tamis_error pieces_push(struct set **out, const struct bytes *bytes, size_t most, uint64_t *rng,
                        const tamis_open_options *options, tamis_reason *reason);

/* Bytes that are wrong, checksums and all: at once, in pieces and where they lie they are refused, for
   this reason. */
void refused_everywhere(const struct bytes *bytes, enum kind kind, const char *text);
/* The same with this many bytes at `at` of a section changed to `value`, and its checksums made right. */
void refused_with(const struct bytes *good, enum kind kind, struct section s, uint64_t at,
                  uint64_t value, size_t len, const char *text);

#endif
