/* The attributes of records as options say them: --attrs ip,user,bytes:int --combo ip+user. */
#ifndef TAMIS_ATTRS_H
#define TAMIS_ATTRS_H

#include "args.h"

struct attrs {
    tamis_attribute list[TAMIS_ATTRIBUTES_MAX];
    const char *names[TAMIS_ATTRIBUTES_MAX]; /* the same, for the reader */
    size_t n;
    uint64_t combos[TAMIS_COMBOS_MAX];
    size_t n_combos;
    bool no_combos; /* --combo none */
    char *text;     /* what the names point into */
};

/* False after complaining. */
bool attrs_read(struct attrs *attrs, const char *list, const struct texts *combos);
void attrs_free(struct attrs *attrs);

#endif
