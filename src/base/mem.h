/*
 * Memory: the allocator of an object, zeroed and aligned blocks for vectors, bytes of mapped files.
 */
#ifndef TAMIS_MEM_H
#define TAMIS_MEM_H

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

/* The struct that this is the member of. */
#define PART_OF(part, type, member) ((type *)(void *)((char *)(part)-offsetof(type, member)))

#endif
