/*
 * The memory of lines: creates, copies, moves, retires and frees the parts, the shelf, and whole sets.
 */
#include "lines_bytes.h"
#include "lines_place.h"
#include "lines_stash.h"

/* From these sizes of a set on, new bodies come from an arena, and from an arena of huge pages, the last of which
   is half empty on average. */
#define ARENA_FROM ((uint64_t)1 << 19)
#define HUGE_FROM  ((uint64_t)16 << 20)
#define SMALL_PAGE ((size_t)1 << 12)

/* The smaller body of a set that is not split is not aligned to cache lines: the padding would cost more memory than
   it saves time for lines that are in the cache. */
static bool on_a_line(size_t bytes, unsigned depth)
{
    return bytes >= 4096 || (depth > 0 && bytes > sizeof(struct body));
}

/* Lines in a mapped file do not follow the header. */
static size_t body_size(const struct body *b)
{
    bool view = b->line != (const uint8_t *)(b + 1);
    return sizeof *b + (view ? 0 : (size_t)b->lines * LINE_BYTES);
}

static size_t size_taken(size_t bytes, unsigned depth)
{
    return on_a_line(bytes, depth) ? block_size(bytes, false) : bytes;
}

uint64_t body_needs(uint64_t lines, unsigned depth)
{
    return size_taken(sizeof(struct body) + lines * LINE_BYTES, depth);
}

uint64_t body_bytes(const struct body *b)
{
    const struct stash *stash = atomic_load(&b->stash);
    return (b->arena ? 0 : size_taken(body_size(b), b->depth)) +
           (stash ? stash_bytes(stash->room) : 0) + rare_bytes(b->rare);
}

bool from_arena(const struct lines *l, size_t bytes)
{
    return max_u64(l->bytes, bytes) >= ARENA_FROM && l->allocator->alloc == mem_system.alloc;
}

struct lines_memory *memory_of(struct lines *l)
{
    if (!l->memory && (l->memory = mem_new0(l->allocator, 1, sizeof *l->memory)) != NULL) {
        l->memory->small.page = SMALL_PAGE;
        l->memory->large.page = HUGE_PAGE;
    }
    return l->memory;
}

struct arena *arena_of(struct lines *l)
{
    struct lines_memory *memory = memory_of(l);
    return !memory ? NULL : l->bytes < HUGE_FROM ? &memory->small : &memory->large;
}

/* With no body in it. */
static void memory_free(struct lines *l)
{
    if (!l->memory)
        return;
    arena_end(&l->memory->small);
    arena_end(&l->memory->large);
    mem_free(l->allocator, l->memory, 1, sizeof *l->memory);
    l->memory = NULL;
}

void memory_count(struct lines *l)
{
    struct lines_memory *memory = l->memory;
    if (!memory)
        return;
    if (memory->small.blocks + memory->large.blocks == 0 && !memory->held) {
        l->bytes -= memory->counted;
        memory_free(l);
        return;
    }
    uint64_t now = sizeof *memory + memory->small.mapped + memory->large.mapped +
                   (memory->small.room + memory->large.room) * sizeof(struct extent);
    l->bytes += now - memory->counted;
    memory->counted = now;
}

/* `zeros`: the lines must be zero. */
static struct body *body_make(struct lines *l, unsigned depth, uint64_t lines, unsigned width,
                              const uint8_t *view, bool zeros)
{
    size_t bytes = sizeof(struct body) + (view ? 0 : lines * LINE_BYTES);
    struct block memory = {0};
    struct arena *arena = NULL;
    if (lines >= STASH_LINES)
        return NULL;
    if (!view && from_arena(l, bytes))
        memory.base = memory.data = (arena = arena_of(l)) ? arena_new(arena, bytes) : NULL;
    else if (!on_a_line(bytes, depth))
        memory.base = memory.data = mem_new(l->allocator, 1, bytes);
    else if (zeros)
        block_new(l->allocator, bytes, &memory);
    else
        block_bare(l->allocator, bytes, &memory);
    struct body *b = memory.data;
    if (!b)
        return NULL;
    memset(b, 0, zeros && (arena || !on_a_line(bytes, depth)) ? bytes : sizeof *b);
    b->arena = arena;
    b->behind = (uint8_t)((char *)memory.data - (char *)memory.base);
    b->lines = (uint32_t)lines;
    b->line = view ? view : (uint8_t *)(b + 1);
    b->width = (uint8_t)width;
    b->depth = (uint8_t)depth;
    b->shift = shift_for(lines, width);
    return b;
}

struct body *body_new(struct lines *l, unsigned depth, uint64_t lines, unsigned width,
                      const uint8_t *view)
{
    return body_make(l, depth, lines, width, view, true);
}

/* The memory block of header and lines. */
static struct block body_block(struct body *b)
{
    return (struct block){
        .data = b, .base = (char *)b - b->behind, .size = size_taken(body_size(b), b->depth)};
}

static void body_let_go(struct body *b, const tamis_allocator *a)
{
    struct block memory = body_block(b);
    if (b->arena) {
        arena_free(b->arena, b, body_size(b));
        return;
    }
    block_free(a, &memory);
}

struct body *body_move(struct body *b, void *(*move)(void *context, void *memory), void *context)
{
    struct block memory = body_block(b);
    bool own = b->line == (const uint8_t *)(b + 1), aligned = on_a_line(body_size(b), b->depth);
    void *moved = b->arena ? NULL : move(context, memory.base);
    if (!moved)
        return b;
    if (aligned)
        block_moved(&memory, moved);
    else
        memory.data = memory.base = moved;
    b = memory.data;
    b->behind = (uint8_t)((char *)memory.data - (char *)memory.base);
    if (own)
        b->line = (uint8_t *)(b + 1);
    return b;
}

void body_free(struct body *b, const tamis_allocator *a)
{
    if (!b)
        return;
    stash_free(atomic_load(&b->stash), a);
    rare_free(b->rare, a);
    body_let_go(b, a);
}

static void body_clear(struct body *b, const tamis_allocator *a)
{
    memset(body_line(b, 0), 0, (size_t)b->lines * LINE_BYTES);
    stash_free(atomic_exchange(&b->stash, NULL), a);
    rare_free(b->rare, a);
    b->rare = NULL;
    b->used = b->keys = b->mass = 0;
}

static void body_dispose(struct retired *retired, const tamis_allocator *a)
{
    struct body *b = PART_OF(retired, struct body, retired);
    stash_free(atomic_load(&b->stash), a);
    body_let_go(b, a);
}

void body_retire(struct lines *l, struct body *b)
{
    rare_free(b->rare, l->allocator);
    retire(&l->retired, &b->retired, body_dispose);
}

static bool apart_copy(struct apart_list *to, const struct apart_list *from,
                       const tamis_allocator *a)
{
    if (from->n == 0)
        return true;
    to->entry = mem_new(a, from->n, sizeof *to->entry);
    if (!to->entry)
        return false;
    memcpy(to->entry, from->entry, from->n * sizeof *to->entry);
    to->n = to->room = from->n;
    return true;
}

struct body *body_copy(struct lines *l, const struct body *b)
{
    const tamis_allocator *a = l->allocator;
    struct body *copy = body_make(l, b->depth, b->lines, b->width, NULL, false);
    const struct stash *stash = atomic_load(&b->stash);
    if (!copy)
        return NULL;
    mem_copy(body_line(copy, 0), b->line, (size_t)b->lines * LINE_BYTES);
    copy->used = b->used;
    copy->keys = b->keys;
    copy->mass = b->mass;
    bool good = true;
    if (stash) {
        struct stash *made = stash_copy(a, stash);
        good = made != NULL;
        atomic_store(&copy->stash, made);
    }
    if (b->rare && good)
        good = rare_of(copy, a) && apart_copy(&copy->rare->coarse, &b->rare->coarse, a) &&
               apart_copy(&copy->rare->excess, &b->rare->excess, a);
    if (good)
        return copy;
    body_free(copy, a);
    return NULL;
}

/* ---- shelves --------------------------------------------------------------------------------- */

static size_t shelf_size(unsigned depth)
{
    return sizeof(struct shelf) +
           (sizeof(struct view) + sizeof(struct body *)) * ((size_t)1 << depth);
}

size_t shelf_bytes(const struct shelf *shelf)
{
    return shelf_size(64u - shelf->top);
}

struct shelf *shelf_new(const tamis_allocator *a, unsigned depth)
{
    struct shelf *shelf = mem_new0(a, 1, shelf_size(depth));
    if (shelf)
        shelf->top = (uint8_t)(64 - depth);
    return shelf;
}

void shelf_free(struct shelf *shelf, const tamis_allocator *a)
{
    if (shelf)
        mem_free(a, shelf, 1, shelf_bytes(shelf));
}

static void shelf_dispose(struct retired *retired, const tamis_allocator *a)
{
    shelf_free(PART_OF(retired, struct shelf, retired), a);
}

void shelf_retire(struct lines *l, struct shelf *shelf)
{
    l->bytes -= shelf_bytes(shelf);
    retire(&l->retired, &shelf->retired, shelf_dispose);
}

void shelf_put(struct shelf *shelf, uint32_t position, struct body *b)
{
    unsigned deepest = 64u - shelf->top;
    uint32_t number = position >> (DEPTH_LAST - b->depth), n = 1u << (deepest - b->depth);
    uint64_t before = LINE_BYTES * (uint64_t)number * b->lines;
    struct view view = {((uintptr_t)b->line - before) | (b->shift - (unsigned)b->depth),
                        (uint64_t)b->lines << b->shift};
    for (uint32_t i = number * n; i < (number + 1) * n; i++) {
        shelf->view[i] = view;
        shelf_bodies(shelf)[i] = b;
    }
}

void shelf_settle(struct shelf *shelf)
{
    shelf->width = shelf_body(shelf, 0)->width;
    shelf->parts = 0;
    for (uint32_t i = 0; i < SHELF_LEN; shelf->parts++) {
        const struct body *b = shelf_body(shelf, i);
        if (b->width != shelf->width || (uintptr_t)b->line % LINE_BYTES)
            shelf->width = 0;
        i += SHELF_LEN >> b->depth;
    }
}

/* A shelf that is being filled may have empty positions. */
static void root_free(struct lines_root *root, const tamis_allocator *a)
{
    if (!root)
        return;
    uint32_t positions = root_positions(root);
    for (uint32_t i = 0; i < positions;) {
        struct body *b = body_at(root, i);
        i += b ? body_positions(root, b) : 1;
        body_free(b, a);
    }
    if (positions > 1) /* otherwise the body was the root, and is freed */
        shelf_free((struct shelf *)(void *)root, a);
}

/* ---- the set --------------------------------------------------------------------------------- */

/* Recomputes `bytes`. */
static uint64_t bytes_of(const struct lines *l)
{
    const struct lines_root *root = lines_root_of(l);
    uint64_t bytes = root && !root->lines ? shelf_bytes(shelf_of(root)) : 0;
    bytes += l->memory ? l->memory->counted : 0;
    for (uint32_t i = 0; root && i < root_positions(root);) {
        const struct body *b = body_at(root, i);
        bytes += body_bytes(b);
        i += body_positions(root, b);
    }
    return bytes;
}

unsigned lines_width(double fpp)
{
    static const double least[] = {0.05, 0.01, 0.0025, 0.001};
    unsigned width = 14;
    for (unsigned i = 0; i < sizeof least / sizeof *least && fpp < least[i] * 0.999; i++)
        width = width_after(width);
    return width;
}

tamis_error lines_init(struct lines *l, const tamis_allocator *a, double fpp)
{
    if (l->allocator != a) /* readers go by it */
        l->allocator = a;
    l->fpp = fpp;
    l->width = (uint8_t)lines_width(fpp);
    lines_clear(l);
    return atomic_load(&l->root) ? TAMIS_OK : TAMIS_ENOMEM;
}

void lines_clear(struct lines *l)
{
    struct lines_root *root = atomic_load(&l->root);
    l->bytes = 0; /* a small first part does not come from the arenas, which end here */
    struct body *first = body_first(l);
    l->removed += l->keys;
    l->keys = 0;
    if (first) {
        lines_free(l);
        atomic_store(&l->root, (struct lines_root *)(void *)first);
    }
    for (uint32_t i = 0; !first && root && i < root_positions(root);) {
        struct body *b = body_at(root, i);
        body_clear(b, l->allocator);
        i += body_positions(root, b);
    }
    l->bytes = bytes_of(l);
}

void lines_reclaim(struct lines *l, bool alone)
{
    if (!l->retired)
        return;
    retired_free(&l->retired, alone, l->allocator);
    memory_count(l);
}

void lines_free(struct lines *l)
{
    lines_hold_end(l);
    lines_reclaim(l, true);
    root_free(atomic_load(&l->root), l->allocator);
    atomic_store(&l->root, NULL);
    memory_free(l);
}

tamis_error lines_clone(struct lines *out, const struct lines *l, const tamis_allocator *a)
{
    struct lines_root *from = lines_root_of(l);
    *out = *l;
    out->allocator = a;
    out->retired = NULL;
    out->memory = NULL;
    atomic_store(&out->root, NULL);
    struct shelf *shelf =
        from->lines ? NULL : shelf_new(a, 64u - ((struct shelf *)(void *)from)->top);
    struct body *copy = NULL;
    bool good = from->lines || shelf;
    for (uint32_t i = 0; i < root_positions(from) && good;) {
        const struct body *b = body_at(from, i);
        good = (copy = body_copy(out, b)) != NULL;
        if (good && shelf)
            shelf_put(shelf, i, copy);
        i += body_positions(from, b);
    }
    atomic_store(&out->root, (struct lines_root *)(shelf ? (void *)shelf : (void *)copy));
    if (!good) {
        lines_free(out);
        return TAMIS_ENOMEM;
    }
    if (shelf)
        shelf_settle(shelf);
    memory_count(out);
    out->bytes = bytes_of(out);
    return TAMIS_OK;
}
