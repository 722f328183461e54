/*
 * Chooses what to index if the user does not say: the fields of the inputs, their types, and which
 * of them are worth their bits. See index_choose.c.
 */
#ifndef TAMIS_INDEX_CHOOSE_H
#define TAMIS_INDEX_CHOOSE_H

#include "logs/inputs.h"
#include "read/attrs.h"

/*
 * Samples these entries, which have this much text together; records every field and its type
 * (inputs_add_field), and the field with the time; and chooses attributes among the new ones if
 * `inputs->chosen`, otherwise sets the types that were not given. Deterministic: the same files
 * give the same choice. `say`: explains it on standard error. Complains.
 */
bool choose_attributes(struct inputs *inputs, const char *base, const size_t *entries, size_t n,
                       uint64_t text, struct attrs *attrs, bool say);
/* Adds the bounds of the time, unless it is indexed: summaries contain them. */
void choose_times(const struct inputs *inputs, struct attrs *attrs);

#endif
