/* Where entries are stored: the arithmetic of lines.h. */
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

/* The number of entries at which the part grows. */
ALWAYS_INLINE uint64_t body_room(const struct body *b)
{
    return (uint64_t)b->lines * line_load(b->width);
}

ALWAYS_INLINE uint64_t line_of(const struct body *b, uint64_t w)
{
    return mul_high(w << b->shift, b->lines);
}

/* The smallest w of a line; for the line after the last, one more than the greatest. */
ALWAYS_INLINE uint64_t first_of(const struct body *b, uint64_t line)
{
    unsigned __int128 at = ((unsigned __int128)line << body_bits(b)) + b->lines - 1;
    return at >> 64 ? (uint64_t)(at / b->lines) : (uint64_t)at / b->lines;
}

/* Computes first_of() for consecutive lines without a division for each. */
struct border {
    uint64_t first;           /* first_of(line + 1) */
    uint64_t whole, part;     /* whole * M + part = (line + 1) << b */
    uint64_t step, step_part; /* the same for one line */
    uint64_t line, lines;
};

ALWAYS_INLINE struct border border_at(const struct body *b, uint64_t line)
{
    uint64_t span = UINT64_C(1) << body_bits(b), step = span / b->lines, part = span % b->lines;
    uint64_t parts = part * (line + 1), whole = step * (line + 1) + parts / b->lines;
    parts %= b->lines;
    return (struct border){whole + (parts > 0), whole, parts, step, part, line, b->lines};
}

ALWAYS_INLINE void border_move(struct border *at)
{
    uint64_t part = at->part + at->step_part, carry = part >= at->lines;
    at->part = part - (carry ? at->lines : 0);
    at->whole += at->step + carry;
    at->first = at->whole + (at->part > 0);
    at->line++;
}

/* An entry with this many unknown bits may be in several lines, and its slot does not tell in which one it begins.
   Other slots do, because a line covers at most 16/17 of the values that a slot can express, or exactly all
   (lines_fit). */
ALWAYS_INLINE bool is_coarse(unsigned width, unsigned unknown)
{
    return unknown + 5 >= width;
}

/* An entry as a body has it: w << 1 | 1 << u. */
ALWAYS_INLINE uint64_t key_of(const struct body *b, uint64_t place, unsigned known)
{
    unsigned bits = body_bits(b) + b->depth;
    unsigned u = known < bits ? bits - known : 0;
    return (place << b->depth >> b->shift >> u << u << 1) | UINT64_C(1) << u;
}

/* The share of the keys of a part that entries of this mass match. */
ALWAYS_INLINE double mass_share(const struct body *b, uint64_t mass)
{
    return (double)mass / (double)(UINT64_C(1) << body_bits(b));
}

struct line_span {
    uint64_t first, last;
};

/* The lines that contain an entry. */
ALWAYS_INLINE struct line_span span_of(const struct body *b, uint64_t key)
{
    unsigned u = (unsigned)__builtin_ctzll(key);
    uint64_t low = (key & (key - 1)) >> 1;
    return (struct line_span){line_of(b, low), line_of(b, low + ((UINT64_C(1) << u) - 1))};
}

/* What a line has of a coarse entry: the smallest piece of the entry that begins with known bits and covers all w of the
   line that the entry matches, and is still coarse. The whole entry would match more keys of the lines where it begins
   and ends. */
ALWAYS_INLINE uint64_t coarse_piece(const struct body *b, uint64_t key, uint64_t line)
{
    uint64_t low = (key & (key - 1)) >> 1, from = first_of(b, line), to = first_of(b, line + 1) - 1;
    from = low > from ? low : from;
    to = low + (key & -key) - 1 < to ? low + (key & -key) - 1 : to;
    unsigned least = b->width - 5u, u = from == to ? 0 : 64 - (unsigned)__builtin_clzll(from ^ to);
    u = u > least ? u : least;
    return from >> u << u << 1 | UINT64_C(1) << u;
}

/* The slot of an entry in one of its lines. */
ALWAYS_INLINE uint32_t slot_in(const struct body *b, uint64_t key, uint64_t line)
{
    if (UNLIKELY(is_coarse(b->width, (unsigned)__builtin_ctzll(key))))
        key = coarse_piece(b, key, line);
    uint32_t slot = (uint32_t)key & slot_ones(b->width);
    return slot ? slot : UINT32_C(1) << (b->width - 1); /* matches the whole line */
}

/* The entry of a slot in a line that covers w from `from` to `to`. If it begins in an earlier line, it is below
   `from`. Not for coarse entries. */
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

ALWAYS_INLINE void stash_changed(const struct body *b, uint32_t cell)
{
    if (UNLIKELY(b->rare != NULL) && b->rare->stash_sums)
        kept_sums_mark(b->rare->stash_sums, sizeof(uint64_t) * cell);
}

/* ---- depths ---- */

ALWAYS_INLINE unsigned depth_after(unsigned depth)
{
    return depth ? DEPTH_LAST : DEPTH_SOME;
}

ALWAYS_INLINE unsigned depth_before(unsigned depth)
{
    return depth == DEPTH_LAST ? DEPTH_SOME : 0;
}

/* ---- shelves: positions are counted as if there were always SHELF_LEN ---- */

ALWAYS_INLINE const struct shelf *shelf_of(const struct lines_root *root)
{
    return (const struct shelf *)(const void *)root;
}

ALWAYS_INLINE struct body **shelf_bodies(const struct shelf *shelf)
{
    const struct view *end = shelf->view + (UINT64_C(1) << (64 - shelf->top));
    return (struct body **)(uintptr_t)end;
}

ALWAYS_INLINE struct body *shelf_body(const struct shelf *shelf, uint32_t number)
{
    return shelf_bodies(shelf)[number >> (shelf->top - (64 - DEPTH_LAST))];
}

ALWAYS_INLINE uint32_t root_positions(const struct lines_root *root)
{
    return root->lines ? 1 : SHELF_LEN;
}

ALWAYS_INLINE uint32_t shelf_position(const struct lines_root *root, uint64_t place)
{
    return root->lines ? 0 : (uint32_t)(place >> (64 - DEPTH_LAST));
}

ALWAYS_INLINE struct body *body_at(const struct lines_root *root, uint32_t number)
{
    return root->lines ? (struct body *)(uintptr_t)root : shelf_body(shelf_of(root), number);
}

/* The number of positions that a part fills. */
ALWAYS_INLINE uint32_t body_positions(const struct lines_root *root, const struct body *b)
{
    return root_positions(root) >> (root->lines ? 0 : b->depth);
}

/* ---- lines.c: putting entries ---- */

/* Where entries are put: a body in use, or a new one, for which the number of used slots of each line is known. */
struct line_target {
    struct lines *lines;
    struct body *body;
    uint8_t *used;
    bool fresh; /* no entry matches the new ones */
};

bool slot_in_line(const uint8_t *line, unsigned width, uint32_t slot);
/* Does a line, or the stash for it, have exactly this slot? */
bool slot_present(const struct body *b, uint64_t line, uint32_t slot);

/* Adds a key that the kernels leave: it needs memory, or may be present already. `once`: unless it is found and will
   stay so; `fresh`: no entry matches it. */
tamis_error lines_add_slowly(struct lines *l, tamis_digest digest, bool once, bool fresh);
/* Removes a key that is in the stash or in two lines, or whose part should shrink; false if it is not a member. */
bool lines_take_slowly(struct lines *l, tamis_digest digest);
/* Puts a slot that matches nothing into a full line, whose slot `last` has the greatest order; false if the stash
   would have to grow. */
bool line_overflow(struct body *b, uint64_t line, uint32_t slot, unsigned last);
/* Moves the slot of the line that is smallest in the stash back to slot `at`, the first free one. */
void line_refill(struct body *b, uint64_t line, unsigned at);

/* An entry_fn: puts copies of an entry into a target. Everything that can fail comes first. */
tamis_error lines_take(void *target, uint64_t place, unsigned known, uint64_t copies);

/* ---- lines_rate.c ---- */
/* The number of w that the slots of coarse entries match beyond these, for the writer, who asks for those of all parts
   whenever one is rebuilt. */
uint64_t part_beyond(const struct body *b);

/* ---- lines_body.c ---- */
/* An empty part; or a view of lines in a mapped file. */
struct body *body_new(struct lines *l, unsigned depth, uint64_t lines, unsigned width,
                      const uint8_t *view);
/* Does a body of this many bytes come from an arena? Only if the allocator is the system's. Large bodies always do,
   also the first one of a loaded set, because body_block() does not handle pages mapped for a single block. */
bool from_arena(const struct lines *l, size_t bytes);
struct arena *arena_of(struct lines *l); /* NULL: no memory */
void body_free(struct body *b, const tamis_allocator *a);
/* Frees it when no reader can hold it. Readers use the stash and the lines, never `rare`. */
void body_retire(struct lines *l, struct body *b);
/* Moves header and lines, if `move` returns a new address; the caller updates the pointers to the body. */
struct body *body_move(struct body *b, void *(*move)(void *context, void *memory), void *context);
/* Includes its stash and lists, but not memory in an arena, which is counted there. */
uint64_t body_bytes(const struct body *b);
/* A copy that belongs to the set `l`. */
struct body *body_copy(struct lines *l, const struct body *b);
/* Updates the bytes of the set with those of its arenas. */
void memory_count(struct lines *l);
struct lines_memory *memory_of(struct lines *l); /* NULL: no memory */
/* The bytes of a body with this many lines. */
uint64_t body_needs(uint64_t lines, unsigned depth);
/* A shelf for parts of at most this depth. */
struct shelf *shelf_new(const tamis_allocator *a, unsigned depth);
size_t shelf_bytes(const struct shelf *shelf);
void shelf_free(struct shelf *shelf, const tamis_allocator *a);
void shelf_retire(struct lines *l, struct shelf *shelf);
/* Stores a part that begins at a position. */
void shelf_put(struct shelf *shelf, uint32_t position, struct body *b);
/* Completes a shelf that was filled. */
void shelf_settle(struct shelf *shelf);

/* ---- lines_rebuild.c ---- */
/* The largest number of lines up to this one for which slots identify entries. */
uint64_t lines_fit(uint64_t lines);
/* The empty part of a set without keys. */
struct body *body_first(struct lines *l);
/* Replaces the part by a larger one, or by several. */
tamis_error part_grow(struct lines *l, uint64_t place);
/* Replaces a part that is at most half full by a smaller one, or joins it with its neighbours. */
tamis_error part_shrink(struct lines *l, uint64_t place);

#endif
