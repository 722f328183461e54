/*
 * Encoding and checking the bytes of a catalog; the layout is described in catalog_bytes.c.
 */
#ifndef TAMIS_CATALOG_BYTES_H
#define TAMIS_CATALOG_BYTES_H

#include "catalog.h"
#include "format/format.h"
#include "tamis/catalog.h"

uint64_t catalog_body_len(const tamis_schema *schema);
void catalog_body(const tamis_schema *schema, const struct catalog_head *head, uint8_t *body);
/* Computes the positions of the sections, which start at `at`, the end of the header; returns
   the end. */
uint64_t catalog_sections(const tamis_schema *schema, const struct catalog_head *head, uint64_t at,
                          struct section out[CATALOG_SECTIONS]);

/* The table from `at` on. */
struct catalog_table catalog_table_of(const tamis_schema *schema, const struct catalog_head *head,
                                      uint64_t at);
#define SHAPE_LEN  40
#define STRIP_LEN  16
#define FRONT_LEN  40
#define BOUNDS_LEN 32
/* The fields of records of these lengths, written or read. */
void catalog_shape_fields(struct cursor *c, struct catalog_shape *shape);
void catalog_strip_fields(struct cursor *c, struct catalog_strip *strip);
void catalog_front_fields(struct cursor *c, struct catalog_front *front);
void catalog_bounds_put(uint8_t to[BOUNDS_LEN], tamis_range bounds);

/* Checks header and table, and takes over the mapping, unless this fails. If no byte of it is kept, these are bytes of
   the caller, who keeps them in place. */
tamis_error catalog_from_mapping(tamis_catalog **out, struct mapping mapping,
                                 const tamis_open_options *options, tamis_reason *reason);
/* Checks every byte of a mapping, which still belongs to the caller. */
tamis_error catalog_verify(struct mapping mapping, tamis_reason *reason);

#endif
