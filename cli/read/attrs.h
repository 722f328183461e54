/* The attributes of records as given in options, --attrs ip,user,bytes:int --combo ip+user, and
   in words of a question or a record: ip=192.0.2.1. */
#ifndef TAMIS_ATTRS_H
#define TAMIS_ATTRS_H

#include "ui/args.h"

struct attrs {
    tamis_attribute list[TAMIS_ATTRIBUTES_MAX];
    const char *names[TAMIS_ATTRIBUTES_MAX]; /* the same, for the reader */
    bool typed[TAMIS_ATTRIBUTES_MAX];        /* a type was given */
    size_t n, n_known;                       /* known: attributes of an existing catalog */
    uint64_t combos[TAMIS_COMBOS_MAX];
    size_t n_combos;
    bool no_combos; /* --combo none */
    char *text;     /* storage of the names */
};

/* The attributes of an existing catalog; attributes read later are appended. */
void attrs_known(struct attrs *attrs, const tamis_schema *schema);
/* Adds a list (or NULL) and combinations to attrs, {0} at first. False after complaining. */
bool attrs_read(struct attrs *attrs, const char *list, const struct texts *combos);
void attrs_free(struct attrs *attrs);

/* The number of an attribute of records or a schema. */
typedef tamis_error (*attribute_fn)(const void *of, const char *name, uint32_t *number,
                                    tamis_reason *reason);
/* Parses attr=value, attr= or attr!, which means missing: the value is then NULL. The attribute
   is the text before the first "=" that makes it one. False with the reason for the shortest
   that was tried, or without one: there is neither "=" nor "!". */
bool attribute_cut(char *word, attribute_fn find, const void *of, uint32_t *attribute,
                   const char **value, tamis_reason *reason);

#endif
