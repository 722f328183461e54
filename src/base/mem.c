/* Blocks of at least HUGE_PAGE bytes come directly from the kernel: zeroed without being touched,
   and on huge pages, which avoid most TLB misses of random access. See mem.h. */
#define _GNU_SOURCE /* mremap */
#include "mem.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LINE ((size_t)64)

static void *system_alloc(void *context, size_t size)
{
    (void)context;
    return malloc(size);
}

static void system_free(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

const tamis_allocator mem_system = {system_alloc, system_free, NULL, NULL};

void *mem_new(const tamis_allocator *a, size_t n, size_t size)
{
    size_t bytes;
    if (!mul_size(n, size, &bytes))
        return NULL;
    return a->alloc(a->context, bytes ? bytes : 1);
}

void *mem_new0(const tamis_allocator *a, size_t n, size_t size)
{
    void *memory = mem_new(a, n, size);
    if (memory)
        memset(memory, 0, n * size);
    return memory;
}

void mem_free(const tamis_allocator *a, void *memory, size_t n, size_t size)
{
    if (memory)
        a->free(a->context, memory, n && size ? n * size : 1);
}

void mem_free_secret(const tamis_allocator *a, void *memory, size_t n, size_t size)
{
    if (memory)
        explicit_bzero(memory, n * size);
    mem_free(a, memory, n, size);
}

void *mem_grow(const tamis_allocator *a, void *memory, size_t old, size_t n, size_t size)
{
    void *grown = mem_new(a, n, size);
    if (!grown)
        return NULL;
    if (memory)
        memcpy(grown, memory, (old < n ? old : n) * size);
    mem_free(a, memory, old, size);
    return grown;
}

int sink_write(void *context, const void *data, size_t len)
{
    struct sink *s = context;
    if (len > s->room - s->len) {
        struct sink larger = {s->a, NULL, s->len, max_u64(s->len + len, 2 * s->room + 256)};
        if (!(larger.data = mem_new(s->a, larger.room, 1)))
            return -1;
        if (s->len)
            memcpy(larger.data, s->data, s->len);
        sink_free(s);
        *s = larger;
    }
    memcpy(s->data + s->len, data, len);
    s->len += len;
    return 0;
}

void sink_free(struct sink *s)
{
    mem_free_secret(s->a, s->data, s->room, 1);
    *s = (struct sink){.a = s->a};
}

bool array_room(const tamis_allocator *a, void *array, size_t n, size_t *room, size_t size)
{
    void *now, *grown;
    if (n < *room)
        return true;
    size_t more = max_u64(*room ? 2 * *room : 16, n + 1), bytes;
    memcpy(&now, array, sizeof now); /* it points to another type */
    if (a)
        grown = mem_grow(a, now, *room, more, size);
    else
        grown = mul_size(more, size, &bytes) ? realloc(now, bytes) : NULL;
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *room = more;
    return true;
}

/* ---- copies that are put off ----------------------------------------------------------------- */

#define LONG ((size_t)1 << 12) /* a microsecond, and touching the memory takes as long again */

struct mem_copy {
    void *to;
    const void *from;
    size_t len;
};

static _Thread_local struct mem_later *put_off;

void mem_copy_later(struct mem_later *later)
{
    put_off = later;
}

void mem_copy(void *to, const void *from, size_t len)
{
    struct mem_later *l = len < LONG ? NULL : put_off;
    if (l && array_room(NULL, &l->list, l->n, &l->room, sizeof *l->list))
        l->list[l->n++] = (struct mem_copy){to, from, len};
    else
        memcpy(to, from, len);
}

void mem_copy_now(struct mem_later *later)
{
    for (size_t i = 0; i < later->n; i++)
        memcpy(later->list[i].to, later->list[i].from, later->list[i].len);
    mem_later_free(later);
}

void mem_later_free(struct mem_later *later)
{
    free(later->list);
    *later = (struct mem_later){0};
}

static char *pages_map(char *near, size_t bytes, int more)
{
    char *at = mmap(near, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
    if (at == MAP_FAILED) /* valgrind may refuse an address instead of choosing another */
        return near ? pages_map(NULL, bytes, more) : NULL;
    return at;
}

void *mem_undumped_new(size_t bytes)
{
    void *pages = pages_map(NULL, bytes, 0);
    if (pages)
        madvise(pages, bytes, MADV_DONTDUMP);
    return pages;
}

void *mem_pages_new(char *at, size_t bytes, size_t align)
{
    /* small pages are populated at once: touching each would be a fault */
    char *start = pages_map(at, bytes, align < HUGE_PAGE ? MAP_POPULATE : 0);
    if (start && ((uintptr_t)start & (align - 1))) {
        /* not aligned: map more, and unmap both ends */
        munmap(start, bytes);
        size_t span = bytes + align;
        char *raw = pages_map(NULL, span, 0);
        if (!raw)
            return NULL;
        start = (char *)round_up((uintptr_t)raw, align);
        size_t head = (size_t)(start - raw);
        if (span - head > bytes)
            munmap(start + bytes, span - head - bytes);
        if (head)
            munmap(raw, head);
    }
    if (start && align >= HUGE_PAGE)
        madvise(start, bytes, MADV_HUGEPAGE);
    return start;
}

void mem_pages_free(void *pages, size_t bytes)
{
    munmap(pages, bytes);
}

bool mem_pages_move(void *to, void *pages, size_t bytes)
{
    return mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

size_t block_size(size_t bytes, bool mapped)
{
    bytes = round_up(bytes ? bytes : 1, LINE);
    return mapped ? round_up(bytes, 4096) : bytes + LINE;
}

/* `zeros` says whether the bytes must be zero, and on return whether they are. */
static bool block_take(const tamis_allocator *a, size_t bytes, struct block *out, bool *zeros)
{
    if (bytes > SIZE_MAX / 2)
        return false;
    out->mapped = a->alloc == system_alloc && bytes > HUGE_PAGE - LINE;
    out->size = block_size(bytes, out->mapped);
    if (out->mapped) {
        out->base = out->data = mem_pages_new(NULL, out->size, HUGE_PAGE);
        *zeros = true;
        return out->base != NULL;
    }
    *zeros &= a->zeroed != NULL;
    out->base = *zeros ? a->zeroed(a->context, out->size) : a->alloc(a->context, out->size);
    out->data = (void *)round_up((uintptr_t)out->base, LINE);
    return out->base != NULL;
}

bool block_new(const tamis_allocator *a, size_t bytes, struct block *out)
{
    return block_copy(a, "", 0, bytes, out);
}

bool block_bare(const tamis_allocator *a, size_t bytes, struct block *out)
{
    bool zeros = false;
    return block_take(a, bytes, out, &zeros);
}

bool block_copy(const tamis_allocator *a, const void *data, size_t len, size_t bytes,
                struct block *out)
{
    bool zeros = len == 0; /* bytes that are overwritten need not be zero */
    if (!block_take(a, bytes, out, &zeros))
        return false;
    mem_copy(out->data, data, len);
    if (!zeros)
        memset((char *)out->data + len, 0, out->size - LINE - len);
    return true;
}

void block_free(const tamis_allocator *a, struct block *block)
{
    if (!block->base)
        return;
    if (block->mapped)
        mem_pages_free(block->base, block->size);
    else
        a->free(a->context, block->base, block->size);
    *block = (struct block){0};
}

void block_moved(struct block *block, void *base)
{
    const char *data = (char *)base + ((char *)block->data - (char *)block->base);
    block->base = base;
    block->data = (void *)round_up((uintptr_t)base, LINE);
    if (data != block->data)
        memmove(block->data, data, block->size - LINE);
}

void mapping_free(struct mapping *mapping)
{
    if (mapping->data)
        munmap((void *)(uintptr_t)mapping->data, mapping->len);
    *mapping = (struct mapping){0};
}

void mapping_rest(const struct mapping *mapping)
{
    if (mapping->kept < mapping->len)
        madvise((void *)(uintptr_t)(mapping->data + mapping->kept), mapping->len - mapping->kept,
                MADV_DONTNEED);
}

static void *page_of(const void *at)
{
    return (void *)((uintptr_t)at & ~(uintptr_t)4095);
}

bool mapping_resident(const void *at)
{
    unsigned char in = 1;
    return mincore(page_of(at), 1, &in) != 0 || (in & 1);
}

void mapping_will_need(const void *at, size_t len)
{
    char *from = page_of(at);
    madvise(from, (size_t)((const char *)at - from) + len, MADV_WILLNEED);
}

void mapping_expect(const struct mapping *mapping, bool random)
{
    madvise((void *)(uintptr_t)mapping->data, mapping->len, random ? MADV_RANDOM : MADV_SEQUENTIAL);
}
