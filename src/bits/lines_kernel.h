/*
 * The kernels of lines, compiled once for each instruction set. A file that includes this defines TARGET and, always
 * inline, functions that take a line as 32 lanes of 16 bits; in slots of 14 bits, a lane leaves out the top bits of its
 * two bytes:
 *
 *     uint32_t match16(line, width, lane)  the lanes that are not zero and match, as bits
 *     uint32_t zero16(line, width)         those that are zero
 *     uint64_t greatest16(line, width)     the lanes, without the first, that as slots have the greatest order; those in
 *                                          top bits are lanes 32 to 35
 *     bool any16(line, width, q)           does any slot of 14 or 16 bits match?
 *     uint64_t line_tops(line)             the top bits of all bytes
 *     struct stash_look stash_compare(cell, query)  compares CELLS cells of a stash
 *
 * A batch prefetches the line of each key 64 keys ahead into the second-level cache and 8 keys ahead into the
 * first level. Keys that need the stash, about 1 % of them, are looked up later, up to 64 at a time.
 */
#include "kernel.h"
#include "lines_stash.h"

#define GROUP 64

/* The slots that a line of 14 bits has in the top bits of its bytes. */
ALWAYS_INLINE TARGET uint64_t match_tops(const uint8_t *line, uint32_t q)
{
    uint64_t tops = line_tops(line), matching = 0;
    for (unsigned i = 31; tops; i++, tops >>= 16) {
        uint32_t slot = lane_slot(14, (uint32_t)tops);
        matching |= (uint64_t)(slot && slot_matches(slot, q)) << i;
    }
    return matching;
}

ALWAYS_INLINE TARGET uint64_t match_in(const uint8_t *line, unsigned width, uint32_t q)
{
    uint64_t lanes = match16(line, width, lane_of(width, q)), matching = 0;
    if (width <= 16)
        return lanes >> 1 | (width == 14 ? match_tops(line, q) : 0);
    lanes &= (UINT64_C(1) << line_slots(width)) - 1;
    if (UNLIKELY(line_bound(line, width) & LINE_BARE))
        lanes = (UINT64_C(1) << line_slots(width)) - 1;
    for (; lanes; lanes &= lanes - 1) {
        uint32_t slot = slot_get(line, width, (unsigned)__builtin_ctzll(lanes));
        if (slot && slot_matches(slot, q))
            matching |= lanes & -lanes;
    }
    return matching;
}

static TARGET uint64_t kernel_match(const uint8_t *line, unsigned width, uint32_t q)
{
    return match_in(line, width, q & slot_ones(width));
}

/* The number of slots before the first free one in the top bits, without a branch: of the lines that get a slot, a quarter
   has one there. */
ALWAYS_INLINE TARGET unsigned tops_used(const uint8_t *line)
{
    uint64_t tops = line_tops(line), low = UINT64_C(0x0001000100010001);
    uint64_t zero = (tops - low) & ~tops & low << 15;
    return zero ? (unsigned)__builtin_ctzll(zero) / 16 : 4;
}

ALWAYS_INLINE TARGET unsigned used_in(const uint8_t *line, unsigned width)
{
    unsigned slots = line_slots(width), i;
    uint64_t free = zero16(line, width);
    if (width <= 16) {
        i = (unsigned)__builtin_ctzll(free >> 1 | UINT64_C(1) << 31);
        return i + (width == 14 ? tops_used(line) & -(unsigned)(i == 31) : 0);
    }
    free |= UINT64_C(1) << slots;
    for (i = (unsigned)__builtin_ctzll(free); i < slots && slot_get(line, width, i);) {
        free &= free - 1; /* its low bits are zero */
        i = (unsigned)__builtin_ctzll(free);
    }
    return i < slots ? i : slots;
}

static TARGET unsigned kernel_used(const uint8_t *line, unsigned width)
{
    return used_in(line, width);
}

/* Of slots of the same order, the one with more unknown bits, wherever it is: what leaves a line must not depend on
   the arrangement of its slots, which adds in batches and one by one do not share. Slot i is bit i << apart. */
ALWAYS_INLINE unsigned greatest_in(const uint8_t *line, unsigned width, uint64_t slots,
                                   unsigned apart)
{
    unsigned greatest = 0;
    uint64_t most = 0;
    for (; slots; slots &= slots - 1) {
        unsigned i = (unsigned)__builtin_ctzll(slots) >> apart;
        uint32_t slot = slot_get(line, width, i);
        uint64_t order = (uint64_t)slot_order(slot) << 32 | slot;
        greatest = order >= most ? i : greatest;
        most = order >= most ? order : most;
    }
    return greatest;
}

/* The slots of 18 bits whose high bits are greatest, two bits apart: of 27 slots usually seven. Their order begins with
   the high bits, unless their low bits are 0. */
ALWAYS_INLINE uint64_t greatest18(const uint8_t *line)
{
    uint64_t high, all = UINT64_C(0x5555555555555555) >> 10;
    memcpy(&high, line + 54, sizeof high);
    uint64_t two = high >> 1 & all, one = high & all;
    if (UNLIKELY(line_bound(line, 18) & LINE_BARE))
        return all;
    return two & one ? two & one : two ? two : one ? one : all;
}

static TARGET unsigned kernel_greatest(const uint8_t *line, unsigned width)
{
    uint64_t all = (UINT64_C(1) << line_slots(width)) - 1;
    return LIKELY(width == 16) ? greatest_in(line, 16, greatest16(line, 16) >> 1, 0)
           : width == 14       ? greatest_in(line, 14, greatest16(line, 14) >> 1, 0)
           : width == 18       ? greatest_in(line, 18, greatest18(line), 1)
           : width == 20       ? greatest_in(line, 20, all, 0)
                               : greatest_in(line, width, all, 0);
}

/* Does the stash have a slot of the line that matches q? Most queries are of absent keys and pass the whole run, CELLS
   cells at a time and a cell at a time where the table ends. One pass at most: others may overwrite a mapped file. */
ALWAYS_INLINE TARGET bool stash_has(const struct body *body, uint64_t line, uint32_t q)
{
    atomic_thread_fence(
        memory_order_acquire); /* after the line was read: see overflow() in lines.c */
    const struct stash *stash = atomic_load_explicit(&body->stash, memory_order_acquire);
    uint64_t query = stash_query(body, line, q);
    uint32_t room = stash ? stash->room : 0, at = room ? stash_home(stash, line) : 0;
    for (uint32_t passed = 0, some; passed < room; passed += some) {
        some = at + CELLS <= room ? CELLS : 1;
        struct stash_look look = LIKELY(some == CELLS)
                                     ? stash_compare(&stash->entry[at], query)
                                     : stash_compare_one(&stash->entry[at], query);
        if (look.match || look.free)
            return look.match;
        at = at + some < room ? at + some : 0;
    }
    return false;
}

/* A lookup in progress. */
struct look {
    const uint8_t *line;
    uint32_t q, width;
};

/* What is the same for all keys of a batch. */
enum many {
    MANY_ONE, /* there is only one part */
    MANY_OTHER,
    MANY_14 = 14, /* all parts have slots of 14 bits, */
    MANY_16 = 16, /* of 16, */
    MANY_18 = 18  /* or of 18 */
};

/* Calls a function with `many` as a constant. */
#define WITH_MANY(call, many, ...)                      \
    ((many) == MANY_14    ? call(__VA_ARGS__, MANY_14)  \
     : (many) == MANY_16  ? call(__VA_ARGS__, MANY_16)  \
     : (many) == MANY_18  ? call(__VA_ARGS__, MANY_18)  \
     : (many) == MANY_ONE ? call(__VA_ARGS__, MANY_ONE) \
                          : call(__VA_ARGS__, MANY_OTHER))

ALWAYS_INLINE const struct body *body_for(const struct lines_root *root, uint64_t place,
                                          enum many many)
{
    if (many == MANY_ONE)
        return (const struct body *)(const void *)root;
    return shelf_bodies(shelf_of(root))[place >> shelf_of(root)->top];
}

ALWAYS_INLINE enum many root_many(const struct lines_root *root)
{
    if (root->lines)
        return MANY_ONE;
    unsigned width = shelf_of(root)->width;
    return width >= 14 && width <= 18 ? (enum many)width : MANY_OTHER;
}

/* The width, if it is the same for all keys; otherwise that of the body of a key. */
ALWAYS_INLINE unsigned many_width(enum many many, unsigned width)
{
    return many >= MANY_14 ? (unsigned)many : width;
}

ALWAYS_INLINE struct look look_of(const struct body *body, uint64_t place)
{
    uint64_t w = place << body->depth >> body->shift;
    return (struct look){body_line(body, line_of(body, w)), (uint32_t)w << 1 | 1, body->width};
}

/* The same by the view of a shelf whose parts all have the width `many`. */
ALWAYS_INLINE struct look look_at(const struct shelf *shelf, uint64_t place, enum many many)
{
    const struct view *view = &shelf->view[place >> shelf->top];
    uint64_t at = view->at, w = place >> at % LINE_BYTES;
    at += LINE_BYTES * mul_high(w, view->factor);
    return (struct look){(const uint8_t *)(at & -(uint64_t)LINE_BYTES), (uint32_t)w << 1 | 1, many};
}

/* Is the key in the line? *stash: if not, it may be in the stash. */
ALWAYS_INLINE TARGET bool look_in(const uint8_t *line, uint32_t q, unsigned width, bool *stash)
{
    bool found;
    q &= slot_ones(width);
    found = LIKELY(width <= 16) ? any16(line, width, q) : match_in(line, width, q) != 0;
    atomic_thread_fence(memory_order_acquire); /* read the bound after the slots */
    *stash = width <= 16
                 ? bound_raw(line, width) >= (lane_of(width, q) ^ lane_of(width, slot_ones(width)))
                 : q >= (line_bound(line, width) & ~LINE_BARE);
    return found;
}

static __attribute__((noinline)) TARGET bool look_behind(const struct body *body, uint64_t place)
{
    uint64_t w = place << body->depth >> body->shift;
    return stash_has(body, line_of(body, w), (uint32_t)w << 1 | 1);
}

ALWAYS_INLINE TARGET bool has_place(const struct lines_root *root, uint64_t place)
{
    const struct body *body = body_for(root, place, root->lines ? MANY_ONE : MANY_OTHER);
    struct look look = look_of(body, place);
    bool stash, found = look.width == 16   ? look_in(look.line, look.q, 16, &stash)
                        : look.width == 14 ? look_in(look.line, look.q, 14, &stash)
                        : look.width == 18 ? look_in(look.line, look.q, 18, &stash)
                                           : look_in(look.line, look.q, look.width, &stash);
    return UNLIKELY(stash) && !found ? look_behind(body, place) : found;
}

static TARGET bool kernel_has_one(const struct lines_root *root, tamis_digest digest)
{
    return has_place(root, digest.a);
}

ALWAYS_INLINE const struct lines *lines_in(const struct set *set)
{
    return (const struct lines *)(const void *)quick_in(set) - 1;
}

static __attribute__((noinline)) TARGET bool has_slowly(const struct lines *l, uint64_t place)
{
    uint64_t inside = readers_enter();
    bool found = has_place(lines_root_of(l), place);
    readers_leave(inside);
    return found;
}

/* Is the key in the line? *sure: this is the whole answer. It is not for 1 % of the keys, at or above the bound, in lines
   with the flag LINE_BARE, and where the low bits of several slots match. */
ALWAYS_INLINE TARGET bool look_short(const uint8_t *line, uint32_t q, unsigned width, bool *sure)
{
    if (width <= 16) {
        bool stash, found = look_in(line, q, width, &stash);
        *sure = found | !stash;
        return found;
    }
    uint64_t lanes = match16(line, width, q) & ((UINT64_C(1) << line_slots(width)) - 1);
    q &= slot_ones(width);
    bool found = lanes && slot_matches(slot_get(line, width, (unsigned)__builtin_ctzll(lanes)), q);
    atomic_thread_fence(memory_order_acquire); /* read the bound after the slots */
    *sure = found || (bound_raw(line, width) < (q ^ slot_ones(width)) && !(lanes & (lanes - 1)));
    return found;
}

/* The rest of has_quickly() for a key that is not in its line and may be in the stash. */
static __attribute__((noinline)) TARGET bool
has_behind(struct reader *r, const struct lines_root *root, uint64_t place)
{
    bool found = look_behind(body_for(root, place, MANY_OTHER), place);
    atomic_store_explicit(&r->since, 0, memory_order_release);
    return found;
}

/* The rest of has_quickly() for a shelf whose parts all have the width `many`, 14 or 16. */
ALWAYS_INLINE TARGET bool has_in_view(struct reader *r, const struct lines_root *root,
                                      uint64_t place, enum many many)
{
    struct look look = look_at(shelf_of(root), place, many);
    bool stash, found = look_in(look.line, look.q, many, &stash);
    if (UNLIKELY(stash) && !found)
        return has_behind(r, root, place);
    atomic_store_explicit(&r->since, 0, memory_order_release);
    return found;
}

static __attribute__((noinline)) TARGET bool has_14(struct reader *r, const struct lines_root *root,
                                                    uint64_t place)
{
    return has_in_view(r, root, place, MANY_14);
}

/* The rest of has_quickly() for parts of other widths, or of several: of sets below 1.3 * 10^5 keys or above 10^8, or at
   other rates than 1 %. */
static __attribute__((noinline)) TARGET bool
has_inside(const struct set *set, struct reader *r, const struct lines_root *root, uint64_t place)
{
    if (shelf_of(root)->width == 14)
        return has_14(r, root, place);
    struct look look = look_of(body_for(root, place, root->lines ? MANY_ONE : MANY_OTHER), place);
    bool sure, found = look.width == 14   ? look_short(look.line, look.q, 14, &sure)
                       : look.width == 18 ? look_short(look.line, look.q, 18, &sure)
                       : look.width == 16 ? look_short(look.line, look.q, 16, &sure)
                       : look.width == 20 ? look_short(look.line, look.q, 20, &sure)
                                          : look_short(look.line, look.q, 24, &sure);
    atomic_store_explicit(&r->since, 0, memory_order_release);
    return LIKELY(sure) ? found : has_slowly(lines_in(set), place);
}

/* For a thread that is not inside as a reader; see struct quick. It is shortest in a set that is split, with slots of 16
   bits. Other cases are calls at the end, so that this path saves no registers. */
ALWAYS_INLINE TARGET bool has_quickly(const struct set *set, uint64_t place)
{
    struct reader *r = reader_quick;
    if (UNLIKELY(atomic_load_explicit(&r->since, memory_order_relaxed)))
        return has_slowly(lines_in(set), place);
    atomic_store_explicit(&r->since, atomic_load_explicit(&readers_clock, memory_order_acquire),
                          memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    const struct lines_root *root = lines_root_of(lines_in(set));
    if (UNLIKELY(shelf_of(root)->width != 16)) /* a body has its depth, 0, there */
        return has_inside(set, r, root, place);
    return has_in_view(r, root, place, MANY_16);
}

static TARGET bool kernel_has_place(const struct set *set, uint64_t place)
{
    return has_quickly(set, place);
}

/* A key of 8 bytes under xxh3. */
static __attribute__((unused)) TARGET bool kernel_has_key(const struct set *set, const void *key,
                                                          size_t len)
{
    if (UNLIKELY(len != 8))
        return quick_in(set)->other(set, key, len);
    return has_quickly(set, digest_eight(quick_in(set)->flip, key).a);
}

ALWAYS_INLINE void look_start(const struct lines_root *root, uint64_t place, struct look *look,
                              enum many many)
{
    struct look new = many >= MANY_14 ? look_at(shelf_of(root), place, many)
                                      : look_of(body_for(root, place, many), place);
    __builtin_prefetch(new.line, 0, 2);
    look->line = new.line;
    look->q = new.q;
    if (many == MANY_OTHER)
        look->width = new.width;
}

/* Keys that are not in their line and may be in the stash. */
struct later {
    size_t n, key[GROUP];
};

/* Each step follows a pointer of every key, so that their misses overlap: at 10^8 keys, with a batch of 1,024, this saves
   4 of 16 ns per key. */
static __attribute__((noinline)) TARGET void look_later(const struct lines_root *root,
                                                        const tamis_digest *digests, uint8_t *found,
                                                        struct later *later)
{
    const struct body *body[GROUP];
    const struct stash *stash[GROUP];
    for (size_t i = 0; i < later->n; i++) {
        uint64_t place = digests[later->key[i]].a;
        body[i] = body_for(root, place, root->lines ? MANY_ONE : MANY_OTHER);
        __builtin_prefetch(body[i], 0, 3);
    }
    for (size_t i = 0; i < later->n; i++) {
        stash[i] = atomic_load_explicit(&body[i]->stash, memory_order_acquire);
        __builtin_prefetch(stash[i], 0, 3);
    }
    for (size_t i = 0; i < later->n; i++) {
        uint64_t w = digests[later->key[i]].a << body[i]->depth >> body[i]->shift;
        if (stash[i])
            stash_prefetch(stash[i], line_of(body[i], w));
    }
    for (size_t i = 0; i < later->n; i++) {
        size_t key = later->key[i];
        if (!found[key]) /* also in the line: the part may have been replaced */
            found[key] = has_place(root, digests[key].a);
    }
    later->n = 0;
}

/* `only`: the width of the only part. Small sets have slots of 14, 18 or 20 bits, if their rate is 10, 1 or 0.1 %. */
ALWAYS_INLINE TARGET void stream(const struct lines_root *root, const tamis_digest *digests,
                                 size_t n, uint8_t *found, unsigned only, enum many many)
{
    struct look ring[GROUP];
    struct later later = {.n = 0};
    for (size_t i = 0; i < GROUP; i++)
        look_start(root, digests[i < n ? i : 0].a, &ring[i], many);
    for (size_t i = 0; i < n; i++) {
        struct look *look = &ring[i % GROUP];
        const uint8_t *line = look->line;
        uint32_t q = look->q;
        unsigned width = many == MANY_OTHER ? look->width : many_width(many, only);
        bool stash;
        look_start(root, digests[i + GROUP < n ? i + GROUP : i].a, look, many);
        __builtin_prefetch(ring[(i + 8) % GROUP].line, 0, 3);
        found[i] = look_in(line, q, width, &stash);
        if (UNLIKELY(stash)) {
            later.key[later.n++] = i;
            if (later.n == GROUP)
                look_later(root, digests, found, &later);
        }
    }
    look_later(root, digests, found, &later);
}

static TARGET void kernel_has(const struct lines_root *root, const tamis_digest *digests, size_t n,
                              uint8_t *found)
{
    enum many many = root_many(root);
    unsigned only = ((const struct body *)(const void *)root)->width;
    if (many == MANY_ONE && only == 14)
        stream(root, digests, n, found, 14, MANY_ONE);
    else if (many == MANY_ONE && only == 18)
        stream(root, digests, n, found, 18, MANY_ONE);
    else if (many == MANY_ONE && only == 20)
        stream(root, digests, n, found, 20, MANY_ONE);
    else
        WITH_MANY(stream, many, root, digests, n, found, only);
}

#include "lines_change.h"

#define LINES_KERNEL(name, has_key, pour)                                                     \
    {                                                                                         \
        name, has_key, kernel_has_place, kernel_has_one, kernel_has, kernel_add, kernel_take, \
            kernel_match, kernel_used, kernel_greatest, pour,                                 \
    }
