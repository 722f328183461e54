/* Where entries lie: the arithmetic of lines.h. */
#ifndef TAMIS_LINES_PLACE_H
#define TAMIS_LINES_PLACE_H

#include "line.h"
#include "lines.h"

/* 64 - b. */
ALWAYS_INLINE uint8_t shift_for(uint64_t lines, unsigned width)
{
    return (uint8_t)(64 - (width - 1) - (63 - (unsigned)__builtin_clzll(lines)));
}

ALWAYS_INLINE unsigned body_bits(const struct body *b)
{
    return 64u - b->shift;
}

ALWAYS_INLINE uint8_t *body_line(const struct body *b, uint64_t line)
{
    return (uint8_t *)(uintptr_t)b->line + LINE_BYTES * line;
}

/* Entries that lines have room for before the part grows. */
ALWAYS_INLINE uint64_t body_room(const struct body *b)
{
    return (uint64_t)b->lines * line_load(b->width);
}

ALWAYS_INLINE uint64_t line_of(const struct body *b, uint64_t w)
{
    return mul_high(w << b->shift, b->lines);
}

/* The least w of a line; of the line after the last, one more than the greatest. */
ALWAYS_INLINE uint64_t first_of(const struct body *b, uint64_t line)
{
    unsigned __int128 at = ((unsigned __int128)line << body_bits(b)) + b->lines - 1;
    return at >> 64 ? (uint64_t)(at / b->lines) : (uint64_t)at / b->lines;
}

/* first_of() of one line after the other, without a division for each. */
struct border {
    uint64_t first;           /* of the line after `line` */
    uint64_t whole, part;     /* of `line + 1` lines: whole * M + part = (line + 1) << b */
    uint64_t step, step_part; /* of one line */
    uint64_t line, lines;
};

ALWAYS_INLINE struct border border_at_first(const struct body *b)
{
    uint64_t span = UINT64_C(1) << body_bits(b), whole = span / b->lines, part = span % b->lines;
    return (struct border){whole + (part > 0), whole, part, whole, part, 0, b->lines};
}

ALWAYS_INLINE void border_move(struct border *at)
{
    uint64_t part = at->part + at->step_part, carry = part >= at->lines;
    at->part = part - (carry ? at->lines : 0);
    at->whole += at->step + carry;
    at->first = at->whole + (at->part > 0);
    at->line++;
}

/* Entries with so many unknown bits may be in lines twice, and which line they begin in cannot be
   told from a slot: lines span 15/16 of what a slot can tell, or just all of it (lines_fit). */
ALWAYS_INLINE bool is_coarse(unsigned width, unsigned unknown)
{
    return unknown + 5 >= width;
}

/* An entry in a body: w << 1 | 1 << u. */
ALWAYS_INLINE uint64_t key_of(const struct body *b, uint64_t place, unsigned known)
{
    unsigned bits = body_bits(b) + b->depth;
    unsigned u = known < bits ? bits - known : 0;
    return (place << b->depth >> b->shift >> u << u << 1) | UINT64_C(1) << u;
}

ALWAYS_INLINE uint32_t slot_of(const struct body *b, uint64_t key)
{
    uint32_t slot = (uint32_t)key & slot_ones(b->width);
    return slot ? slot : UINT32_C(1) << (b->width - 1); /* all that is in the line */
}

/* The share of all keys of the part that entries of this mass match. */
ALWAYS_INLINE double mass_share(const struct body *b, uint64_t mass)
{
    return (double)mass / (double)(UINT64_C(1) << body_bits(b));
}

struct span {
    uint64_t first, last;
};

/* The lines that an entry is in. */
ALWAYS_INLINE struct span span_of(const struct body *b, uint64_t key)
{
    unsigned u = (unsigned)__builtin_ctzll(key);
    uint64_t low = (key & (key - 1)) >> 1;
    return (struct span){line_of(b, low), line_of(b, low + ((UINT64_C(1) << u) - 1))};
}

/* The entry of a slot in a line whose least w is `from` and whose greatest is `to`. Where it begins in an
   earlier line, it is below `from`. Not for coarse ones. */
ALWAYS_INLINE uint64_t key_in(const struct body *b, uint32_t slot, uint64_t from, uint64_t to)
{
    uint64_t mask = slot_ones(b->width - 1u);
    uint64_t low = from + ((slot_order(slot) / 2 - from) & mask);
    if (low > to)
        low -= mask + 1;
    return low << 1 | (slot & -slot);
}

/* ---- pages that changed ---- */

ALWAYS_INLINE void line_changed(const struct body *b, uint64_t line)
{
    if (UNLIKELY(b->rare != NULL) && b->rare->line_sums)
        kept_sums_mark(b->rare->line_sums, LINE_BYTES * line);
}

ALWAYS_INLINE void stash_changed(const struct body *b, uint32_t place)
{
    if (UNLIKELY(b->rare != NULL) && b->rare->stash_sums)
        kept_sums_mark(b->rare->stash_sums, sizeof(uint64_t) * place);
}

/* ---- shelves ---- */

ALWAYS_INLINE struct body *shelf_body(const struct shelf *shelf, uint32_t number)
{
    return atomic_load_explicit(&shelf->body[number], memory_order_acquire);
}

ALWAYS_INLINE uint32_t root_places(const struct lines_root *root)
{
    return root->lines ? 1 : PLACES;
}

ALWAYS_INLINE uint32_t place_number(const struct lines_root *root, uint64_t place)
{
    return root->lines ? 0 : (uint32_t)(place >> (64 - DEPTH_LAST));
}

ALWAYS_INLINE struct body *body_at(const struct lines_root *root, uint32_t number)
{
    return root->lines ? (struct body *)(uintptr_t)root
                       : shelf_body((const struct shelf *)(const void *)root, number);
}

/* Places that a part takes. */
ALWAYS_INLINE uint32_t body_places(const struct lines_root *root, const struct body *b)
{
    return root_places(root) >> (root->lines ? 0 : b->depth);
}

/* ---- lines.c: putting entries ---- */

/* Where entries go: a body in use, or one that is being filled, with the number of used slots of each
   line at hand. */
struct target {
    struct lines *lines;
    struct body *body;
    uint8_t *used;
    bool fresh; /* nothing there matches what comes */
};

bool slot_in_line(const uint8_t *line, unsigned width, uint32_t slot);
/* Is there a copy of just this slot in a line, or in the stash for it? */
bool slot_present(const struct body *b, uint64_t line, uint32_t slot);

/* What kernels leave: keys that need memory, or may be there already. */
tamis_error lines_add_slowly(struct lines *l, tamis_digest digest, bool once, bool fresh);
/* Those that are in the stash or in two lines, or whose part should shrink; false: it is no member. */
bool lines_take_slowly(struct lines *l, tamis_digest digest);
/* A slot that nothing matches into a line that is full, and whose slot `last` has the greatest order; false if the
   stash must grow for that. */
bool line_overflow(struct body *b, uint64_t line, uint32_t slot, unsigned last);
/* The least slot that the stash has of a line comes back to slot `at`, the first free one. */
void line_refill(struct body *b, uint64_t line, unsigned at);

/* An entry_fn: copies of an entry into a target. All that may fail comes first. */
tamis_error lines_take(void *target, uint64_t place, unsigned known, uint64_t copies);

/* ---- lines_body.c ---- */
/* An empty part; or one of lines elsewhere, in a mapped file. */
struct body *body_new(struct lines *l, unsigned depth, uint64_t lines, unsigned width,
                      const uint8_t *view);
/* Does a body of so many bytes come from an arena? Only where the allocator is the system's. A large one always
   does, also as the first part of a file: body_block() knows no pages that were mapped for one block. */
bool from_arena(const struct lines *l, size_t bytes);
struct arena *arena_of(struct lines *l); /* which one; NULL: no memory */
void body_free(struct body *b, const tamis_allocator *a);
/* When no reader is in it any more. Readers look at the stash and the lines, never at what is rare. */
void body_retire(struct lines *l, struct body *b);
/* Header and lines in another place, if there is one for them; nobody knows of it yet. */
struct body *body_move(struct body *b, void *(*move)(void *context, void *memory), void *context);
/* With its stash and its lists, as they were asked for; what is in an arena is counted there. */
uint64_t body_bytes(const struct body *b);
void body_clear(struct body *b, const tamis_allocator *a);
/* For the set `l`. */
struct body *body_copy(struct lines *l, const struct body *b);
/* Brings what arenas have of the system into the bytes of the set. */
void memory_count(struct lines *l);
struct lines_memory *memory_of(struct lines *l); /* NULL: no memory */
void memory_free(struct lines *l);               /* with no body in it */
/* What a body of so many lines takes. */
uint64_t body_needs(uint64_t lines);
struct shelf *shelf_new(const tamis_allocator *a);
void shelf_retire(struct lines *l, struct shelf *shelf);
void root_free(struct lines_root *root, const tamis_allocator *a);

/* ---- lines_rebuild.c ---- */
/* A number of lines that slots can tell apart, at most so many. */
uint64_t lines_fit(uint64_t lines);
/* An empty part for a set of no keys. */
struct body *body_first(struct lines *l);
/* When a shelf is filled. */
void shelf_settle(struct shelf *shelf);
/* A larger body in the place, or 16 of them. */
tamis_error part_grow(struct lines *l, uint64_t place);
/* A part with half of its lines to spare: smaller, or with its neighbours one again. */
tamis_error part_shrink(struct lines *l, uint64_t place);

#endif
