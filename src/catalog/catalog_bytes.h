/*
 * The bytes of a catalog (docs/format.md). It is written from front to back before its length is known:
 * the strips, then all tables, last the checksums of pages and the checksums of those, and then the header,
 * whose length depends on the schema alone.
 */
#ifndef TAMIS_CATALOG_BYTES_H
#define TAMIS_CATALOG_BYTES_H

#include "catalog.h"
#include "format/format.h"
#include "tamis/catalog.h"

enum {
    CATALOG_STRIPS,
    CATALOG_FRONTS,
    CATALOG_TABLE,
    CATALOG_TAGS,
    CATALOG_NOTE,
    CATALOG_SUMS,
    CATALOG_TOPS
};
#define CATALOG_SECTIONS 7

/* The body, but for the schema. */
struct catalog_head {
    uint64_t segments, shapes, strips, columns;
    uint64_t strips_len, tags_len, note_len;
    uint64_t tops_sum; /* checksum of the last section */
    uint64_t fronts, fronts_len;
};

uint64_t catalog_body_len(const tamis_schema *schema);
void catalog_body(const tamis_schema *schema, const struct catalog_head *head, uint8_t *body);
/* Where the sections are, `at` being the end of the header; returns the end. */
uint64_t catalog_sections(const tamis_schema *schema, const struct catalog_head *head, uint64_t at,
                          struct section out[CATALOG_SECTIONS]);

/* The table: shapes, strips, fronts, segments of columns, then of every segment its records, text and the end of
   its tag; of every relation the distinct values, of every attribute with an order the bounds of each. */
struct catalog_table { /* where each begins, from the beginning of the table; shapes at 0 */
    uint64_t strips, fronts, columns, records, texts, tag_ends, distinct, bounds, len;
};

struct catalog_table catalog_table_of(const tamis_schema *schema, const struct catalog_head *head);
#define SHAPE_LEN  40
#define STRIP_LEN  16
#define FRONT_LEN  40
#define BOUNDS_LEN 32
void catalog_shape_put(uint8_t to[SHAPE_LEN], const struct catalog_shape *shape);
void catalog_strip_put(uint8_t to[STRIP_LEN], const struct catalog_strip *strip);
void catalog_front_put(uint8_t to[FRONT_LEN], const struct catalog_front *front);
void catalog_bounds_put(uint8_t to[BOUNDS_LEN], tamis_range bounds);

/* A catalog from bytes that stay where they are: header and table checked. */
tamis_error catalog_from_bytes(tamis_catalog **out, const void *data, size_t len,
                               const tamis_open_options *options, tamis_reason *reason);
/* The mapping is its own, unless this fails. */
tamis_error catalog_from_mapping(tamis_catalog **out, struct mapping mapping,
                                 const tamis_open_options *options, tamis_reason *reason);
/* Every byte. */
tamis_error catalog_check_all(const tamis_catalog *c, tamis_reason *reason);
/* A mapping passes through memory, and stays the caller's. */
tamis_error catalog_verify(struct mapping bytes, bool mapped, tamis_reason *reason);

#endif
