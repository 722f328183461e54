/* What the benchmarks of followers share: messages on their way to a carrier, and a follower that is asked. */
#ifndef TAMIS_FOLLOWED_H
#define TAMIS_FOLLOWED_H

#include "bench.h"
#include "carrier/carrier.h"
#include "replica/ask.h"

struct kept {
    struct carrier_part part[64];
    size_t n;
};

void bench_stop(const char *why) __attribute__((noreturn));
int kept_add(void *kept, const void *data, size_t len); /* a tamis_write */
void kept_free(struct kept *kept);
/* Waits until this many owners are current there. */
void bench_current(struct ask *ask, const char *address, unsigned owners);

#endif
