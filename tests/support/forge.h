/* Damaged and forged bytes, and what shows whether those who read them take care. */
#ifndef TAMIS_TESTS_FORGE_H
#define TAMIS_TESTS_FORGE_H

#include "histories.h"

/* Changes a byte or two, most often in the header, and repairs what lengths allow. */
void bytes_forge(struct bytes *out, const struct bytes *good, uint64_t *rng);

/* An allocator that refuses to go past a bound: what decoding this many bytes may take, some times the
   bytes, the tables of h3, and change. */
struct capped {
    tamis_allocator allocator;
    size_t live, cap, refused;
};

void capped_init(struct capped *c, size_t len);

/* A tamis_write that fails at its n-th call; 0: never. */
struct failing {
    unsigned calls, fail_at;
};

int failing_write(void *context, const void *data, size_t len);

#endif
