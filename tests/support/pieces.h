/* Filters and indexes written and read in pieces of random sizes, some of them twice. */
#ifndef TAMIS_TESTS_PIECES_H
#define TAMIS_TESTS_PIECES_H

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

#endif
