/*
 * An allocator that counts, checks and fails on request. Every block carries its size in front, so a
 * free with another size, or of memory that is not ours, is noticed.
 */
#ifndef TAMIS_TESTS_FAULT_H
#define TAMIS_TESTS_FAULT_H

#include "tamis.h"

struct fault {
    tamis_allocator allocator; /* its context is this struct: do not move it */
    size_t blocks, bytes;      /* live now */
    uint64_t calls;            /* of alloc */
    uint64_t fail_at;          /* the call that fails, counted from 1 as `calls` is; 0: none */
    bool and_after;            /* those that follow it fail too */
    uint64_t failed;           /* calls that failed */
    uint64_t wrong;            /* frees with another size, or of foreign memory */
    const uint8_t *secret;     /* 16 bytes, or NULL: */
    uint64_t left;             /* frees of memory that still had them */
};

void fault_init(struct fault *fault);
/* The n-th allocation from now fails (0: none). */
void fault_arm(struct fault *fault, uint64_t n, bool and_after);
/* Nothing live and no free was wrong. */
bool fault_clean(const struct fault *fault);

#endif
