/* The attributes of records as given in options, --attrs ip,user,bytes:int --combo ip+user. */
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

/* "ip+user", the attributes of a mask in the form of --combo, as far as there is room. */
typedef const char *attribute_name(const void *of, uint32_t attribute);
void combo_text(uint64_t mask, attribute_name *name, const void *of, char *out, size_t room);
void schema_names(const tamis_schema *schema, uint64_t mask, char *out, size_t room);

#endif
