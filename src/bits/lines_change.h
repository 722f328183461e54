/*
 * Adding and removing keys: the part of the kernels of lines that changes them, included by lines_kernel.h. What needs
 * memory, and the few keys that are in the stash or in two lines, are left to lines.c.
 */
#define NEAR 8 /* keys whose lines are prefetched into the first-level cache */

/* An addition or removal in progress. */
struct change {
    struct body *body;
    uint8_t *line;
    uint32_t q;
};

ALWAYS_INLINE void change_start(const struct lines_root *root, uint64_t place,
                                struct change *change, enum many many)
{
    struct body *b = (struct body *)(uintptr_t)body_for(root, place, many);
    struct look look = look_of(b, place);
    unsigned width = many_width(many, b->width);
    __builtin_prefetch(look.line, 0, 2);
    *change = (struct change){b, (uint8_t *)(uintptr_t)look.line, look.q & slot_ones(width)};
}

ALWAYS_INLINE uint64_t change_number(const struct change *c)
{
    return (uint64_t)(c->line - c->body->line) / LINE_BYTES;
}

/* A full line, one in ten, needs the stash too. */
ALWAYS_INLINE void change_near(const struct change *c, enum many many)
{
    if (many < MANY_14)
        return;
    const uint64_t *half =
        (const uint64_t *)(const void *)c->line + 6; /* of 14 bits: of the last slot */
    uint64_t last = many == MANY_14 ? (word_load(half) | word_load(half + 1)) & BYTE_TOPS
                                    : load16(slot_low(c->line, many, line_slots(many) - 1));
    if (LIKELY(!last))
        return;
    const struct stash *stash = atomic_load_explicit(&c->body->stash, memory_order_relaxed);
    if (stash)
        stash_prefetch(stash, change_number(c));
}

/* Starts the keys from `from` on, as many as the ring holds. */
ALWAYS_INLINE void changes_start(const struct lines_root *root, const tamis_digest *digests,
                                 size_t from, size_t n, struct change ring[GROUP], enum many many)
{
    for (size_t i = from; i < n && i < from + GROUP; i++)
        change_start(root, digests[i].a, &ring[i % GROUP], many);
}

ALWAYS_INLINE struct change changes_next(const struct lines_root *root, const tamis_digest *digests,
                                         size_t n, size_t i, struct change ring[GROUP],
                                         enum many many)
{
    struct change now = ring[i % GROUP];
    if (i + GROUP < n)
        change_start(root, digests[i + GROUP].a, &ring[i % GROUP], many);
    if (i + NEAR < n)
        change_near(&ring[(i + NEAR) % GROUP], many);
    return now;
}

/* Puts a key into its line, unless `once` and it is found; false if this needs memory, or the key may be present. */
ALWAYS_INLINE TARGET bool add_to(const struct change *c, bool once, uint8_t *fresh, unsigned width)
{
    struct body *b = c->body;
    bool stash, found = look_in(c->line, c->q, width, &stash);
    if (UNLIKELY(stash) && !found)
        found = stash_has(b, change_number(c), c->q);
    *fresh = !found;
    if (found && once && (LIKELY(!b->rare) || b->rare->coarse.n == 0)) /* see lines_keep() */
        return true;
    if (UNLIKELY(found || b->used >= (uint64_t)b->lines * line_load(width)))
        return false;
    unsigned used = width <= 16 ? used_in(c->line, width) : kernel_used(c->line, width);
    if (UNLIKELY(used >= line_slots(width)))
        return line_overflow(b, change_number(c), c->q, kernel_greatest(c->line, width));
    slot_put(c->line, width, used, c->q);
    b->used++;
    b->keys++;
    b->mass++;
    line_changed(b, change_number(c));
    return true;
}

/* Continues at key *done, as long as the root stays the same. */
ALWAYS_INLINE TARGET tamis_error add_stream(struct lines *l, const struct lines_root *root,
                                            const tamis_digest *digests, size_t n, bool once,
                                            uint8_t *fresh, size_t *done, enum many many)
{
    size_t i = *done;
    struct change ring[GROUP];
    tamis_error e = TAMIS_OK;
    uint64_t added = 0;
    changes_start(root, digests, i, n, ring, many);
    for (; i < n && e == TAMIS_OK && lines_root_of(l) == root; i++) {
        struct change now = changes_next(root, digests, n, i, ring, many);
        bool good = add_to(&now, once, &fresh[i], many_width(many, now.body->width));
        added += good & fresh[i];
        if (UNLIKELY(!good))
            e = lines_add_slowly(l, digests[i], once, fresh[i]);
    }
    *done = i;
    l->keys += added;
    return e;
}

/* One key, without what a batch prepares, which takes as many instructions again. */
static TARGET tamis_error add_alone(struct lines *l, tamis_digest digest, bool once, uint8_t *fresh)
{
    struct change now;
    const struct lines_root *root = lines_root_of(l);
    change_start(root, digest.a, &now, root->lines ? MANY_ONE : MANY_OTHER);
    unsigned width = now.body->width;
    bool good = width == 16   ? add_to(&now, once, fresh, 16)
                : width == 14 ? add_to(&now, once, fresh, 14)
                : width == 18 ? add_to(&now, once, fresh, 18)
                              : add_to(&now, once, fresh, width);
    if (UNLIKELY(!good))
        return lines_add_slowly(l, digest, once, *fresh);
    l->keys += *fresh;
    return TAMIS_OK;
}

static TARGET tamis_error kernel_add(struct lines *l, const tamis_digest *digests, size_t n,
                                     bool once, uint8_t *fresh, size_t *done)
{
    tamis_error e = TAMIS_OK;
    if (n == 1) {
        e = add_alone(l, digests[0], once, fresh);
        *done = e == TAMIS_OK;
        return e;
    }
    size_t i = 0;
    while (i < n && e == TAMIS_OK) {
        const struct lines_root *root = lines_root_of(l);
        e = WITH_MANY(add_stream, root_many(root), l, root, digests, n, once, fresh, &i);
    }
    *done = i - (e != TAMIS_OK);
    return e;
}

/* Removes the matching slot with the fewest unknown bits, if it is in this line only: below the bound there are none
   in the stash. */
ALWAYS_INLINE TARGET bool take_from(const struct change *c, uint64_t place, unsigned width)
{
    struct body *b = c->body;
    uint32_t bound = line_bound(c->line, width) & ~LINE_BARE, best = 0;
    unsigned at = 0;
    if (UNLIKELY(c->q >= bound || b->used * 2 <= (uint64_t)b->lines * line_load(width) ||
                 (b->rare && b->rare->excess.n)))
        return false;
    for (uint64_t like = match_in(c->line, width, c->q); like; like &= like - 1) {
        unsigned i = (unsigned)__builtin_ctzll(like);
        uint32_t slot = slot_get(c->line, width, i);
        bool better = best == 0 || (slot & -slot) < (best & -best);
        best = better ? slot : best;
        at = better ? i : at;
    }
    uint64_t mark = best & -best, low = place << b->depth >> b->shift & -mark;
    if (UNLIKELY(best == 0 || is_coarse(width, (unsigned)__builtin_ctz(best)) ||
                 line_of(b, low) != line_of(b, low + mark - 1)))
        return false;
    unsigned used = width <= 16 ? used_in(c->line, width) : kernel_used(c->line, width);
    slot_put(c->line, width, at, slot_get(c->line, width, used - 1));
    slot_put(c->line, width, used - 1, 0);
    line_changed(b, change_number(c));
    b->used--;
    b->keys--;
    b->mass -= mark;
    if (UNLIKELY(bound != slot_ones(width)))
        line_refill(b, change_number(c), used - 1);
    return true;
}

ALWAYS_INLINE TARGET void take_stream(struct lines *l, const struct lines_root *root,
                                      const tamis_digest *digests, size_t n, uint8_t *taken,
                                      size_t *done, enum many many)
{
    size_t i = *done;
    struct change ring[GROUP];
    uint64_t removed = 0;
    changes_start(root, digests, i, n, ring, many);
    for (; i < n && lines_root_of(l) == root; i++) {
        struct change now = changes_next(root, digests, n, i, ring, many);
        bool there = take_from(&now, digests[i].a, many_width(many, now.body->width));
        if (UNLIKELY(!there))
            there = lines_take_slowly(l, digests[i]);
        removed += taken[i] = there;
    }
    *done = i;
    l->keys -= removed;
    l->removed += removed;
}

static TARGET void kernel_take(struct lines *l, const tamis_digest *digests, size_t n,
                               uint8_t *taken)
{
    for (size_t i = 0; i < n;) {
        const struct lines_root *root = lines_root_of(l);
        WITH_MANY(take_stream, root_many(root), l, root, digests, n, taken, &i);
    }
}
