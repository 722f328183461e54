/* What the bytes of a set are tested for, whatever its kind: damaged and forged, without their key, and where
 * writes or allocations fail. */
#ifndef TAMIS_TESTS_DAMAGE_H
#define TAMIS_TESTS_DAMAGE_H

#include "subjects.h"

/* Every truncation, and one byte too many, is refused with a place and a reason. */
void damage_cut(struct subject *s);
/* So is every flipped bit; in a short run, those of the header and a sample of the others. */
void damage_flip(struct subject *s);
/* Bytes that someone made on purpose, checksums and all: refused (NULL), or a set that is saved as exactly
   these bytes. */
struct set *damage_forged(const struct subject *s, const struct bytes *forged);
/* Bytes without the key: refused without it and with a wrong one. With it they make an equal set, without
   a key, that answers alike. */
void damage_keyless(struct subject *s);
/* A write that fails is told, at whatever call, and none follows. */
void damage_writes(struct subject *s);
/* Every allocation of decoding and of encoding fails once, and nothing else happens. */
void damage_memory(struct subject *s);

#endif
