/*
 * Memory: the allocator of an object, zeroed and aligned blocks for vectors, and the guard that says
 * when no reader is inside.
 */
#ifndef TAMIS_MEM_H
#define TAMIS_MEM_H

#include <stdatomic.h>

#include "base.h"

extern const tamis_allocator mem_system; /* libc; large blocks as zeroed pages of the system */

/* n * size bytes, not zeroed; NULL when there is no memory or the product does not fit. */
void *mem_new(const tamis_allocator *a, size_t n, size_t size);
void *mem_new0(const tamis_allocator *a, size_t n, size_t size);
void mem_free(const tamis_allocator *a, void *memory, size_t n, size_t size);
/* The same for what has a family key in it: wiped first. */
void mem_free_secret(const tamis_allocator *a, void *memory, size_t n, size_t size);
/* Zeroed pages that core dumps leave out. */
void *mem_undumped_new(size_t size);
void mem_undumped_free(void *memory, size_t size);
/* A copy with room for `n` instead of `old`; the old one stays on failure. */
void *mem_grow(const tamis_allocator *a, void *memory, size_t old, size_t n, size_t size);
void *mem_grow_secret(const tamis_allocator *a, void *memory, size_t old, size_t n); /* bytes */

/* Zeroed bytes on a 64-byte line. `base` and `size` are what the allocator gave. */
struct block {
    void *data;
    void *base;
    size_t size;
    bool mapped; /* pages of the system, not of the allocator */
};

bool block_new(const tamis_allocator *a, size_t bytes, struct block *out);
/* A copy of `len` bytes, with zeros after them up to `bytes`. */
bool block_copy(const tamis_allocator *a, const void *data, size_t len, size_t bytes,
                struct block *out);
void block_free(const tamis_allocator *a, struct block *block);
void block_moved(struct block *block, void *base); /* by the allocator, with its bytes */

/* Bytes of a file, mapped read-only by src/os/file.c. Others may change the file while it is mapped: what is
   not kept is read once and bounded where it is used. */
struct mapping {
    const uint8_t *data;
    size_t len;
    size_t kept; /* so many at the front are a copy in memory: the header, or all */
};

void mapping_free(struct mapping *mapping);
/* Lets go of the pages that were read: they come back from the file when they are touched. */
void mapping_rest(const struct mapping *mapping);
/* Is the page in memory? And has the system begin to read what is not. */
bool mapping_resident(const void *at);
void mapping_will_need(const void *at, size_t len);
/* How it will be read. */
void mapping_random(const struct mapping *mapping);
void mapping_sequential(const struct mapping *mapping);

unsigned mem_cores(void); /* processors to run on, at least 1 */

/*
 * A guard counts readers, in stripes so that threads do not share a line. Readers enter before they
 * load a pointer and leave after they used what it led to. A writer that replaced the pointer may
 * free the old object once guard_idle() was true after the replacement.
 */
#define GUARD_STRIPES 16

struct guard {
    union { /* a line apart; not aligned to lines, since allocators need not be */
        atomic_uint_fast32_t inside;
        char line[64];
    } stripe[GUARD_STRIPES];
};

unsigned guard_enter(struct guard *guard); /* the stripe, for guard_leave */
void guard_leave(struct guard *guard, unsigned stripe);
bool guard_idle(struct guard *guard);
/* The stripes that are empty now, as bits. An object may also be freed once every stripe was seen
   empty at some time after it was replaced: under steady readers they are hardly empty all at once. */
uint32_t guard_empty(struct guard *guard);
#define GUARD_ALL ((UINT32_C(1) << GUARD_STRIPES) - 1)
/* For a reader inside: what it read before is read before anything after. */
void guard_order(struct guard *guard, unsigned stripe);

/* Part of what was replaced and readers may still be in: it is disposed of when no reader can be. */
struct retired {
    struct retired *next;
    uint32_t seen; /* stripes that were empty since */
    void (*dispose)(struct retired *retired, const tamis_allocator *a);
};

void retire(struct retired **list, struct retired *retired,
            void (*dispose)(struct retired *retired, const tamis_allocator *a));
/* `guard` NULL: the caller knows that no reader is inside. */
void retired_free(struct retired **list, struct guard *guard, const tamis_allocator *a);

/* The struct that this is the member of. */
#define PART_OF(part, type, member) ((type *)(void *)((char *)(part)-offsetof(type, member)))

#endif
