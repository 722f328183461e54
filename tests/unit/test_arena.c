/*
 * Arenas: blocks do not overlap and keep their bytes, what is counted is what there is, free pages go back, and
 * blocks that are replaced in turn by larger ones leave few holes.
 */
#include <sys/mman.h>

#include "base/arena.h"
#include "base/mem.h"
#include "harness.h"

#define BLOCKS 200

struct block_of {
    unsigned char *at;
    size_t bytes;
    unsigned char fill;
};

static void check_bytes(const struct block_of *b)
{
    CHECK((uintptr_t)b->at % 64 == 0);
    for (size_t i = 0; i < b->bytes; i += 509)
        CHECK_MSG(b->at[i] == b->fill, "byte %zu of %zu", i, b->bytes);
    CHECK(b->bytes == 0 || b->at[b->bytes - 1] == b->fill);
}

static void take(struct arena *a, struct block_of *b, size_t bytes, unsigned char fill)
{
    size_t mapped = a->mapped, needs = arena_needs(a, bytes);
    *b = (struct block_of){arena_new(a, bytes), bytes, fill};
    bool elsewhere = needs && a->mapped == mapped + round_up(bytes, a->page); /* others are below */
    bool recycled = a->page > 4096 && a->mapped < mapped + needs; /* pages that were free */
    CHECK(b->at && (a->mapped == mapped + needs || elsewhere || recycled));
    memset(b->at, fill, bytes);
}

/* Free extents are in order, apart from each other, and what is counted. */
static void check_arena(const struct arena *a, const struct block_of *blocks)
{
    size_t live = 0, unused = 0, n = 0;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].at) {
            live += round_up(blocks[i].bytes, 64);
            n++;
        }
    for (uint32_t i = 0; i < a->n; i++) {
        unused += a->free[i].bytes;
        CHECK(a->free[i].bytes &&
              (i == 0 || a->free[i - 1].at + a->free[i - 1].bytes < a->free[i].at));
    }
    CHECK(a->unused == unused && a->mapped == live + unused && a->blocks == n);
    CHECK(a->mapped % a->page == 0);
}

/* Pages of others just below those of the arena, which then has to go elsewhere. */
struct obstacles {
    void *at[64];
    unsigned n;
};

static void obstruct(struct obstacles *o, const struct arena *a)
{
    void *at = a->low && o->n < 64 ? mmap(a->low - a->page, a->page, PROT_NONE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
                                   : MAP_FAILED;
    if (at != MAP_FAILED)
        o->at[o->n++] = at;
}

static void live(size_t page, size_t most, unsigned steps)
{
    struct obstacles others = {.n = 0};
    struct arena a = {.page = page};
    struct block_of blocks[BLOCKS] = {{0}};
    uint64_t rng = harness_seed() + page;
    for (unsigned step = 0; step < steps; step++) {
        struct block_of *b = &blocks[rng_next(&rng) % BLOCKS];
        if (b->at) {
            check_bytes(b);
            arena_free(&a, b->at, b->bytes);
            *b = (struct block_of){0};
        } else {
            take(&a, b, 1 + rng_next(&rng) % most, (unsigned char)step);
        }
        if (step % 16 == 0)
            check_arena(&a, blocks);
        if (step % 32 == 0)
            obstruct(&others, &a);
    }
    for (unsigned i = 0; i < others.n; i++)
        munmap(others.at[i], page);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].at) {
            check_bytes(&blocks[i]);
            arena_free(&a, blocks[i].at, blocks[i].bytes);
        }
    CHECK(a.blocks == 0 && a.unused == a.mapped);
    arena_end(&a);
    CHECK(a.mapped == 0 && a.unused == 0 && a.n == 0 && a.page == page);
}

TEST(blocks_come_and_go)
{
    live(4096, 30000, harness_long() ? 200000 : 6000);
    live((size_t)1 << 21, 300000, harness_long() ? 20000 : 1500);
}

/* As parts of lines do: one after the other, a fifth larger each. */
TEST(blocks_that_grow_in_turn_leave_few_holes)
{
    struct arena a = {.page = 4096};
    struct block_of blocks[BLOCKS] = {{0}};
    for (unsigned i = 0; i < 64; i++)
        take(&a, &blocks[i], 20000, (unsigned char)i);
    for (unsigned step = 0; step < 64 * 15; step++) {
        struct block_of *b = &blocks[step % 64], old = *b;
        take(&a, b, old.bytes + old.bytes * 3 / 16, old.fill);
        check_bytes(&old);
        arena_free(&a, old.at, old.bytes);
        if (step < 64)
            continue;
        CHECK_MSG(a.mapped - a.unused > a.mapped - a.mapped / 20, "%zu of %zu unused", a.unused,
                  a.mapped);
    }
    check_arena(&a, blocks);
    for (unsigned i = 0; i < 64; i++)
        arena_free(&a, blocks[i].at, blocks[i].bytes);
    arena_end(&a);
}

/* Bytes of a block that nobody has written to: those of new pages are zero. */
static size_t fresh_bytes(struct arena *a, struct block_of *b, size_t bytes)
{
    size_t fresh = 0;
    *b = (struct block_of){arena_new(a, bytes), bytes, b->fill};
    CHECK(b->at);
    for (size_t i = 0; i < bytes; i += 4096)
        fresh += b->at[i] ? 0 : 4096;
    memset(b->at, b->fill, bytes);
    return fresh;
}

/* Pages that become free are used again. */
TEST(huge_pages_are_recycled)
{
    struct arena a = {.page = (size_t)1 << 21};
    struct block_of blocks[BLOCKS] = {{0}};
    size_t taken = 0, fresh = 0;
    for (unsigned i = 0; i < 64; i++)
        take(&a, &blocks[i], (size_t)1 << 20, (unsigned char)(i + 1));
    size_t mapped = a.mapped;
    for (unsigned step = 0; step < 64 * 3; step++) {
        struct block_of *b = &blocks[step % 64], old = *b;
        fresh += fresh_bytes(&a, b, old.bytes + old.bytes / 8);
        taken += b->bytes;
        check_bytes(&old);
        arena_free(&a, old.at, old.bytes);
    }
    size_t more = a.mapped - mapped;
    CHECK_MSG(fresh < more + taken / 4, "%zu fresh bytes for %zu more", fresh, more);
    check_arena(&a, blocks);
    for (unsigned i = 0; i < 64; i++) {
        check_bytes(&blocks[i]);
        arena_free(&a, blocks[i].at, blocks[i].bytes);
    }
    arena_end(&a);
}

TEST(what_is_too_large_is_refused)
{
    struct arena a = {.page = 4096};
    CHECK(!arena_new(&a, SIZE_MAX) && !arena_new(&a, SIZE_MAX / 8));
    CHECK(a.mapped == 0 && a.blocks == 0);
    void *small = arena_new(&a, 1);
    CHECK(small && a.mapped == 4096);
    arena_free(&a, small, 1);
    arena_end(&a);
}

HARNESS_MAIN
