/* What the bytes of a set are tested for, whatever its kind: damaged and forged, without their key, and where
 * writes or allocations fail. `o` is what opens them, with their key. */
#ifndef TAMIS_TESTS_DAMAGE_H
#define TAMIS_TESTS_DAMAGE_H

#include "format/format.h"
#include "histories.h"

/* Every truncation, and one byte too many, is refused with a place and a reason. */
void damage_cut(const struct bytes *bytes, enum kind kind, const tamis_open_options *o);
/* So is every flipped bit; in a short run, those of the header and a sample of the others. */
void damage_flip(struct bytes *bytes, enum kind kind, const tamis_open_options *o);
/* Bytes that someone made on purpose, checksums and all: refused (NULL), or a set that is saved as exactly
   these bytes. */
struct set *damage_forged(const struct bytes *forged, enum kind kind, const tamis_open_options *o);
/* Bytes without the key: refused without it and with a wrong one. With it they make an equal set, without a key,
   which is returned (NULL: they do not). */
struct set *damage_keyless(struct set *set, const tamis_open_options *o);
/* A write that fails is told, at whatever call, and none follows. */
void damage_writes(const struct set *set);
/* Every allocation of decoding and of encoding fails once, and nothing else happens. */
void damage_memory(const struct bytes *bytes, enum kind kind, const tamis_open_options *o);

#endif
