/*
 * What to index when nobody says: the fields of the inputs, their types, and which of them are worth
 * their bits. See index_choose.c.
 */
#ifndef TAMIS_INDEX_CHOOSE_H
#define TAMIS_INDEX_CHOOSE_H

#include "inputs.h"
#include "read/attrs.h"

/*
 * Samples these entries, of so much text together; notes every field and its type (inputs_add_field), and
 * which one says when; and chooses attributes among the new ones if `inputs->chosen`, else fills in the
 * types that were not given. Deterministic: the same files give the same choice. `say`: explains it on
 * standard error. Complains.
 */
bool choose_attributes(struct inputs *inputs, const char *base, const size_t *entries, size_t n,
                       uint64_t text, struct attrs *attrs, bool say);

#endif
