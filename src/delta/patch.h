/* What making and applying patches share; told in patch.c. */
#ifndef TAMIS_FORMAT_PATCH_H
#define TAMIS_FORMAT_PATCH_H

#include "delta.h"
#include "format/format.h"

#define PATCH_FRONT 56
#define PATCH_SUM   8
#define PATCH_BITS  1u /* flag: bits only */

struct patch_front {
    uint32_t version, kind, flags, family;
    uint8_t older[16], newer[16];
};

/* What adapts over the whole of a patch. */
struct patch_models {
    struct byte_models head, record;
    struct model in_turn, kept;
    struct number_models base, numbers;
    struct vector_models vectors;
};

/* Every byte of a patch, but for what only the older version can tell. */
tamis_error patch_verify(const void *data, size_t len, tamis_reason *reason);

void patch_models_reset(struct patch_models *m);
/* An older version that is not there any more: what is known of it, and in the vectors of the newer
   one their changes since. */
struct patch_base {
    uint8_t *body; /* patch_body, bits only */
    uint64_t len;
    uint8_t print[16];
    const void *owner; /* of the changes */
};

/* A patch, bits only, from `base` to the filter as it is; `print` is its fingerprint. */
tamis_error patch_changes(const struct set *s, const struct patch_base *base,
                          const uint8_t print[16], tamis_write write, void *context);
/* The filter that the patch makes of it, which stays as it is. */
tamis_error patch_apply(const struct set *s, const void *patch, size_t len, struct set **out,
                        tamis_reason *reason);
/* Reads and checks all but the coded stream. */
tamis_error patch_open(struct patch_front *front, const uint8_t *data, size_t len,
                       tamis_reason *reason);
/* The body of a version with what follows from the rest left out. */
tamis_error patch_body(const struct set *s, bool bits_only, uint8_t **body, uint64_t *len);
/* Record i - 1 of a body; zeros for i = 0. */
const uint8_t *patch_record(const uint8_t *body, uint32_t i);
uint32_t patch_family(const struct family *family);

#endif
