/*
 * A directory inside: columns, and who has them. An owner's set takes one column or several of one
 * shape; shapes are planned from the sizes of the owners there are, and again when one comes that no
 * shape suits. Columns stay as they were made: the keys are not kept.
 *
 * Readers look at columns and names beside the writer: owners are in pieces that never move, and
 * numbers and names are for life.
 */
#ifndef TAMIS_DIRECTORY_H
#define TAMIS_DIRECTORY_H

#include "columns.h"
#include "columns_plan.h"

#define OWNER_PIECE   1024
#define OWNER_PIECES  (TAMIS_OWNERS_MAX / OWNER_PIECE)
#define OWNER_NAME    65535 /* longest name, in bytes */
#define DIRECTORY_MAX (UINT64_C(1) << 32)

struct named {
    char *name;
    _Atomic bool live;
    _Atomic uint64_t items;
    uint32_t plan, columns;
};

struct tamis_directory {
    tamis_allocator allocator;
    struct family family;
    double fpp;
    struct columns columns;
    struct column_plan *plans;
    size_t n_plans, plans_room;
    struct named *_Atomic piece[OWNER_PIECES];
    _Atomic uint32_t n;
    uint32_t *table; /* names: number + 1 of an owner, open addressing */
    size_t table_size;
};

/* Without owners; the family is to be filled in. */
tamis_error directory_make(tamis_directory **out, const tamis_allocator *a, double fpp);
struct named *directory_owner(const tamis_directory *d, uint32_t number);
/* The owner of this name, made if there is none; its number, or TAMIS_OWNERS_MAX without memory. */
uint32_t directory_number(tamis_directory *d, const char *name, bool make);
bool directory_plan_add(tamis_directory *d, const struct column_plan *plan);
struct bits directory_bits(const tamis_directory *d, const struct column_plan *plan);

#endif
