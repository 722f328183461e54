/* A flexible filter grows along a trace; at five places the extension rounds, the bits and the rate of
   wrong answers are taken: figures 7, 8 and 11. */
#ifndef TAMIS_LAB_GROWTH_H
#define TAMIS_LAB_GROWTH_H

#include "common_flexible.h"
#include "common_trace.h"

struct growth {
    struct mean rate[TRACE_PLACES], formula[TRACE_PLACES], rounds[TRACE_PLACES], bits[TRACE_PLACES];
    double last_rate, last_bits; /* what the last run came to */
};

/* Adds the trace to the filter, which is empty, and asks for `asked` other items. */
void growth_run(struct growth *g, struct flexible *x, const struct trace *t, uint64_t asked,
                uint64_t stream);
/* As figures "f7SUFFIX", "f8SUFFIX" and "f11SUFFIX". */
void growth_print(const struct growth *g, enum speed speed, const char *suffix, size_t arrivals,
                  uint64_t asked);
/* All speeds on n synthetic items: a hundred repetitions in full, as published, each with items, hashes
   and questions of its own. A hundred thousand questions each, so ten million for every point (the
   paper: half a million each). */
void growth_synthetic(bool ask_first, size_t n);

#endif
