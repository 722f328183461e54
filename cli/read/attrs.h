/* The attributes of records as options say them: --attrs ip,user,bytes:int --combo ip+user; and as words
   of a question or a record: ip=192.0.2.1. */
#ifndef TAMIS_ATTRS_H
#define TAMIS_ATTRS_H

#include "ui/args.h"

struct attrs {
    tamis_attribute list[TAMIS_ATTRIBUTES_MAX];
    const char *names[TAMIS_ATTRIBUTES_MAX]; /* the same, for the reader */
    bool typed[TAMIS_ATTRIBUTES_MAX];        /* with their types */
    size_t n, n_known;                       /* known: of a catalog that exists */
    uint64_t combos[TAMIS_COMBOS_MAX];
    size_t n_combos;
    bool no_combos; /* --combo none */
    char *text;     /* what the names point into */
};

/* Those that a catalog has: what is read after that comes behind them. */
void attrs_known(struct attrs *attrs, const tamis_schema *schema);
/* Adds a list (or NULL) and combinations to attrs, {0} at first. False after complaining. */
bool attrs_read(struct attrs *attrs, const char *list, const struct texts *combos);
void attrs_free(struct attrs *attrs);

/* The number of an attribute of an index or a schema. */
typedef tamis_error (*attribute_fn)(const void *of, const char *name, uint32_t *number,
                                    tamis_reason *reason);
/* attr=value, attr= or attr!, which says that it is missing: the value is NULL then. The attribute is
   what stands before the first "=" with which it is one. False with the reason of the shortest that
   was tried, or with none: there is neither "=" nor "!". */
bool attribute_cut(char *word, attribute_fn find, const void *of, uint32_t *attribute,
                   const char **value, tamis_reason *reason);

#endif
