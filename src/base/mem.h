/*
 * Memory: allocation through an object's allocator, zeroed aligned blocks for vectors, mapped
 * files.
 */
#ifndef TAMIS_MEM_H
#define TAMIS_MEM_H

#include "base.h"

extern const tamis_allocator mem_system; /* libc; large blocks are zeroed pages from the kernel */

/* n * size bytes, not zeroed; NULL if there is no memory or the product overflows. */
void *mem_new(const tamis_allocator *a, size_t n, size_t size);
void *mem_new0(const tamis_allocator *a, size_t n, size_t size);
void mem_free(const tamis_allocator *a, void *memory, size_t n, size_t size);
/* For memory that holds a family key: wipes it first. */
void mem_free_secret(const tamis_allocator *a, void *memory, size_t n, size_t size);
/* Zeroed pages that are left out of core dumps; free them with mem_pages_free(). */
void *mem_undumped_new(size_t bytes);
/* Zeroed pages of the system, at a multiple of `align`; huge pages from 2 MiB on. At the address `at` if that place is
   free; NULL: anywhere. */
void *mem_pages_new(char *at, size_t bytes, size_t align);
void mem_pages_free(void *pages, size_t bytes);
/* Moves pages with their contents to other pages, which they replace; false if the system cannot, and nothing changed. */
bool mem_pages_move(void *to, void *pages, size_t bytes);
/* Moves an array to one with room for `n` elements instead of `old`; on failure the old one stays. */
void *mem_grow(const tamis_allocator *a, void *memory, size_t old, size_t n, size_t size);

/* A growing buffer. It may hold a family key: what it leaves is wiped. */
struct sink {
    const tamis_allocator *a;
    uint8_t *data;
    size_t len, room;
};

int sink_write(void *sink, const void *data, size_t len); /* a tamis_write; not 0: no memory */
void sink_free(struct sink *sink);

/*
 * Copies large structures in two steps: memory is allocated at once, and the bytes are copied later, possibly in
 * another thread. While copies are deferred in a thread, mem_copy() only notes the long ones; nobody may read the
 * copy, or change the original, before mem_copy_now() has done them.
 */
struct mem_later {
    struct mem_copy *list;
    size_t n, room;
};

void mem_copy_later(struct mem_later *later); /* for this thread; NULL: no longer defer */
void mem_copy(void *to, const void *from, size_t len);
void mem_copy_now(struct mem_later *later); /* does all copies and frees the list */
void mem_later_free(struct mem_later *later);

/* Zeroed bytes, aligned to 64. `base` and `size` are what the allocator returned. */
struct block {
    void *data;
    void *base;
    size_t size;
    bool mapped; /* from the kernel, not from the allocator */
};

bool block_new(const tamis_allocator *a, size_t bytes, struct block *out);
bool block_bare(const tamis_allocator *a, size_t bytes, struct block *out); /* not zeroed */
/* Copies `len` bytes and fills with zeros up to `bytes`. */
bool block_copy(const tamis_allocator *a, const void *data, size_t len, size_t bytes,
                struct block *out);
/* The bytes that block_new takes for this many. */
size_t block_size(size_t bytes, bool mapped);
void block_free(const tamis_allocator *a, struct block *block);
void block_moved(struct block *block, void *base); /* the allocator moved it, including its bytes */

/* A file mapped read-only by src/os/file.c. Others may change the file while it is mapped: bytes
   beyond `kept` must be read only once and checked where they are used. */
struct mapping {
    const uint8_t *data;
    size_t len;
    size_t kept; /* number of leading bytes that are a private copy: the header, or all */
};

void mapping_free(struct mapping *mapping);
/* Releases the pages that were read; they are read again when touched. */
void mapping_rest(const struct mapping *mapping);
/* Is the page in memory? The second function starts reading pages that are not. */
bool mapping_resident(const void *at);
void mapping_will_need(const void *at, size_t len);
/* The expected access pattern: random or sequential. */
void mapping_expect(const struct mapping *mapping, bool random);

/* The struct that contains this member. */
#define PART_OF(part, type, member) ((type *)(void *)((char *)(part)-offsetof(type, member)))

#endif
