/* Shared by making and applying patches; described in patch.c. */
#ifndef TAMIS_FORMAT_PATCH_H
#define TAMIS_FORMAT_PATCH_H

#include "delta.h"
#include "format/format.h"

#define PATCH_FRONT 56
#define PATCH_SUM   8
#define PATCH_BITS  1u /* flag: contains only bits */

struct patch_front {
    uint32_t version, kind, flags, family;
    uint8_t older[16], newer[16];
};

/* Models that adapt over a whole patch; nothing else, so that they are reset together. */
struct patch_models {
    struct byte_models head, record;
    struct model in_turn, kept;
    struct number_models base, numbers;
    struct vector_models vectors;
    struct lines_models lines;
};
#define PATCH_MODELS (sizeof(struct patch_models) / sizeof(struct model))

/* Checks every byte of a patch, except what only the older version can prove. */
tamis_error patch_verify(const void *data, size_t len, tamis_reason *reason);

/* An older version that no longer exists: what is known about it; the changes since then are in
   the vectors of the newer version. */
struct patch_base {
    uint8_t *body; /* patch_body, bits only */
    uint64_t len;
    uint8_t print[16];
    const void *owner;   /* of the changes */
    struct lines *lines; /* a copy of the lines, or NULL if there were none */
};

/* A bits-only patch from `base` to the present filter; `print` is its fingerprint. */
tamis_error patch_changes(const struct set *s, const struct patch_base *base,
                          const uint8_t print[16], tamis_write write, void *context);
/* Makes the filter that results from the patch; `s` stays as it is. */
tamis_error patch_apply(const struct set *s, const void *patch, size_t len, struct set **out,
                        tamis_reason *reason);
/* Reads and checks everything but the coded stream. */
tamis_error patch_open(struct patch_front *front, const uint8_t *data, size_t len,
                       tamis_reason *reason);
/* The body of a version, without derived values. */
tamis_error patch_body(const struct set *s, bool bits_only, uint8_t **body, uint64_t *len);
/* Record i - 1 of a body; zeros for i = 0. */
const uint8_t *patch_record(const uint8_t *body, uint32_t i);
/* The parts of lines in a body, in order. */
struct patch_parts {
    const struct lines *lines;
    const uint8_t *records;
    uint32_t n, i, position; /* the next part, and its first position */
};

struct patch_parts patch_parts(const uint8_t *body, const struct lines *lines);
/* The number plus 1 of the part that begins at a position, 0 if none does. Positions must ascend. */
uint32_t patch_part_at(struct patch_parts *parts, uint32_t position);
/* Record i - 1; zeros for i = 0. */
const uint8_t *patch_part_record(const struct patch_parts *parts, uint32_t i);
/* The rate and width of the lines; zeros if there are none. */
const uint8_t *patch_lines_record(const struct patch_parts *parts);

#endif
