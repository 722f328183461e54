/* Standard input in pieces that end with a whole line, and the threads that work on them. Only
   for keys.c. */
#ifndef TAMIS_SLABS_H
#define TAMIS_SLABS_H

#include "keys.h"

int slabs_run(struct keys *keys, const struct work *work);

/* keys.c: cuts the next lines from [from, to), which ends with a line end; returns where the
   next batch starts. */
const char *batch_cut(struct batch *batch, const struct keys *keys, const char *from,
                      const char *to);
/* keys.c: finds the fields, hashes and queries. */
void batch_ask(struct batch *batch, const struct keys *keys, const struct work *work);
/* keys.c: counts the lines without the field; false if that is an error. */
bool batch_judge(const struct batch *batch, struct keys *keys);

#endif
