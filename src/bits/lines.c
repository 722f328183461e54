/* Fingerprint lines: add, remove, look up. See lines.h; lines_rebuild.c changes the sizes of parts. */
#include "lines.h"

#include "kernel.h"
#include "lines_place.h"
#include "lines_stash.h"

/* ---- putting entries into lines -------------------------------------------------------------- */

static void stash_dispose(struct retired *retired, const tamis_allocator *a)
{
    stash_free(PART_OF(retired, struct stash, retired), a);
}

/* The room of a stash for this many entries. When a part grows, its stash has 0.45 entries per line, whatever the
   width; a large part approaches this in steps of sqrt 2. Each step copies all entries. */
static uint64_t stash_room(const struct body *b, uint64_t before, uint64_t used)
{
    uint64_t last = (uint64_t)b->lines * 9 / 16;
    if (b->depth == 0 && before < 64) /* a small set */
        return used * 21 / 16 + 3;
    for (unsigned step = 8; b->depth && step-- > 0;) {
        uint64_t room = (last >> step / 2) * (step % 2 ? 181 : 256) / 256;
        if (room >= used * 5 / 4 + 8)
            return room;
    }
    return used * 3 / 2 + 8;
}

/* Makes room for `more` entries in the stash. Others may be reading the old one. An empty stash counts as none,
   whatever its room: only used stashes are saved, and sets must stay equal when one of them is loaded. */
static tamis_error stash_reserve(const struct line_target *t, uint64_t more)
{
    struct lines *l = t->lines;
    struct body *b = t->body;
    struct stash *old = atomic_load_explicit(&b->stash, memory_order_relaxed);
    uint64_t used = old ? old->used : 0, room = stash_room(b, used, used + more);
    if (LIKELY(stash_fits(old, more)) && (used || old->room == room))
        return TAMIS_OK;
    uint64_t grows = stash_bytes((uint32_t)room) - (old ? stash_bytes(old->room) : 0);
    if (!t->used && l->limit && l->bytes + grows > l->limit)
        return TAMIS_ESPACE;
    struct stash *larger = room < UINT32_MAX ? stash_new(l->allocator, (uint32_t)room) : NULL;
    if (!larger)
        return TAMIS_ENOMEM;
    if (!stash_pour(larger, old)) {
        stash_free(larger, l->allocator);
        return TAMIS_ELIMIT;
    }
    if (!t->used) /* a new body is counted when it is complete */
        l->bytes += grows;
    atomic_store_explicit(&b->stash, larger, memory_order_release);
    stash_sums_drop(b, l->allocator);
    if (t->used) { /* no reader has seen it */
        stash_free(old, l->allocator);
    } else if (old) {
        retire(&l->retired, &old->retired, stash_dispose);
        lines_reclaim(l, false);
    }
    return TAMIS_OK;
}

/* Puts a slot into the stash and lowers the bound of its line. False if the stash cannot count this many copies. */
static bool to_stash(struct body *b, uint64_t line, uint32_t slot, uint64_t copies)
{
    uint8_t *at = body_line(b, line);
    uint32_t bound = line_bound(at, b->width), least = slot_order(slot) | 1;
    enum stash_added added = stash_add(b, line, slot, copies);
    b->used += added == STASH_NEW;
    if (added == STASH_NEW && least < (bound & ~LINE_BARE)) {
        line_set_bound(at, b->width, least | (bound & LINE_BARE));
        line_changed(b, line);
    }
    return added != STASH_FULL;
}

/* The number of copies of a slot that the stash can still count. */
static uint64_t stash_left(const struct body *b, uint64_t line, uint32_t slot)
{
    const struct stash *stash = atomic_load(&b->stash);
    uint32_t at = stash ? stash_find(stash, line, slot) : 0;
    return STASH_COPIES - (stash && at < stash->room ? stash_copies(stash->entry[at]) : 0);
}

/* In a full line, the slot with the greatest order, `last`, moves to the stash. */
static void overflow(struct body *b, uint64_t line, uint32_t slot, unsigned last)
{
    uint8_t *at = body_line(b, line);
    uint32_t leaves = slot_get(at, b->width, last);
    if (slot_order(leaves) <= slot_order(slot) || !to_stash(b, line, leaves, 1))
        to_stash(b, line, slot, 1);
    else {
        /* A reader that no longer sees the slot in the line sees it in the stash: see stash_has(). */
        atomic_thread_fence(memory_order_release);
        slot_put(at, b->width, last, slot);
    }
    line_changed(b, line);
}

bool line_overflow(struct body *b, uint64_t line, uint32_t slot, unsigned last)
{
    const struct stash *stash = atomic_load_explicit(&b->stash, memory_order_relaxed);
    if (!stash_fits(stash, 1) || stash->used == 0 || stash_crowded(stash, line, 1))
        return false; /* an empty stash counts as none: see stash_reserve() */
    overflow(b, line, slot, last);
    b->keys++;
    b->mass++;
    return true;
}

/* Puts one copy of a slot into a line with `used` slots in use; the stash has room for one more. */
ALWAYS_INLINE void put_slot(struct body *b, uint64_t line, uint32_t slot, unsigned used)
{
    uint8_t *at = body_line(b, line);
    if (UNLIKELY(slot_bare(b->width, slot)))
        line_set_bound(at, b->width, line_bound(at, b->width) | LINE_BARE);
    if (UNLIKELY(used >= line_slots(b->width))) {
        overflow(b, line, slot, lines_kernel()->greatest(at, b->width));
        return;
    }
    slot_put(at, b->width, used, slot);
    line_changed(b, line);
    b->used++;
}

static unsigned target_used(const struct line_target *t, uint64_t line)
{
    return t->used ? t->used[line] : lines_kernel()->used(body_line(t->body, line), t->body->width);
}

bool slot_in_line(const uint8_t *line, unsigned width, uint32_t slot)
{
    for (uint64_t like = lines_kernel()->match(line, width, slot); like; like &= like - 1)
        if (slot_get(line, width, (unsigned)__builtin_ctzll(like)) == slot)
            return true;
    return false;
}

bool slot_present(const struct body *b, uint64_t line, uint32_t slot)
{
    const uint8_t *at = body_line(b, line);
    const struct stash *stash = atomic_load_explicit(&b->stash, memory_order_relaxed);
    if (slot_in_line(at, b->width, slot))
        return true;
    return stash && (slot_order(slot) | 1) >= (line_bound(at, b->width) & ~LINE_BARE) &&
           stash_find(stash, line, slot) < stash->room;
}

/* Copies after the first go to the stash, so that one key does not fill a line. */
static void target_put(const struct line_target *t, uint64_t line, uint32_t slot, uint64_t copies,
                       bool fresh)
{
    unsigned used = fresh ? target_used(t, line) : 0;
    if (fresh) {
        put_slot(t->body, line, slot, used);
        if (t->used && used < line_slots(t->body->width))
            t->used[line]++;
    }
    if (copies > fresh)
        to_stash(t->body, line, slot, copies - fresh);
}

/* The number of copies of an entry that the stash can still count for all lines of a span. */
static uint64_t span_left(const struct body *b, struct line_span span, uint32_t slot)
{
    uint64_t left = STASH_COPIES;
    for (uint64_t line = span.first; line <= span.last; line++)
        left = min_u64(left, stash_left(b, line, slot));
    return left;
}

/* Makes room in the stash for an entry in all lines of its span. Where lines have many entries each, as in a union of sets
   with keys in common, the runs of a full stash are long, and those of a larger one short. */
static tamis_error stash_ready(const struct line_target *t, struct line_span span)
{
    tamis_error e = stash_reserve(t, 2 * (span.last - span.first + 1));
    for (uint64_t line = span.first; e == TAMIS_OK && line <= span.last;) {
        const struct stash *stash = atomic_load(&t->body->stash);
        if (!stash_crowded(stash, line, 2))
            line++;
        else
            e = stash->used * 2ul > stash->room ? stash_reserve(t, stash->used) : TAMIS_ELIMIT;
    }
    return e;
}

static tamis_error take_slowly(const struct line_target *t, uint64_t place, unsigned known,
                               uint64_t copies)
{
    struct body *b = t->body;
    const tamis_allocator *a = t->lines->allocator;
    uint64_t key = key_of(b, place, known);
    struct line_span span = span_of(b, key);
    uint32_t slot = slot_in(b, key, span.first);
    bool coarse = is_coarse(b->width, (unsigned)__builtin_ctzll(key));
    uint64_t put = coarse ? copies : min_u64(copies, span_left(b, span, slot));
    struct rare *rare = b->rare;
    if (coarse || put < copies) {
        const struct apart_list *list = !rare ? NULL : coarse ? &rare->coarse : &rare->excess;
        uint64_t grows = t->used ? 0 : apart_needs(rare, list);
        if (t->lines->limit && grows && t->lines->bytes + grows > t->lines->limit)
            return TAMIS_ESPACE;
        rare = rare_of(b, a);
        if (!rare || !apart_reserve(coarse ? &rare->coarse : &rare->excess, a))
            return TAMIS_ENOMEM;
        t->lines->bytes += grows;
    }
    tamis_error e = stash_ready(t, span);
    if (e != TAMIS_OK)
        return e;
    bool fresh = coarse ? apart_add(&rare->coarse, key, copies)
                        : t->fresh || !slot_present(b, span.first, slot);
    b->keys += copies;
    b->mass += fresh ? key & -key : 0;
    if (coarse) {
        put = fresh;
        rare->beyond_known &= !fresh;
    } else if (put < copies) {
        apart_add(&rare->excess, key, copies - put);
    }
    for (uint64_t line = span.first; put && line <= span.last; line++)
        target_put(t, line, coarse ? slot_in(b, key, line) : slot, put, fresh);
    return TAMIS_OK;
}

/* Puts an entry that is not coarse, not present and in a single line: nearly all are. */
ALWAYS_INLINE bool take_quickly(const struct line_target *t, uint64_t place, unsigned known)
{
    struct body *b = t->body;
    uint64_t key = key_of(b, place, known), mark = key & -key, low = (key ^ mark) >> 1;
    uint64_t line = line_of(b, low);
    uint32_t slot = (uint32_t)key & slot_ones(b->width);
    if (UNLIKELY(is_coarse(b->width, (unsigned)__builtin_ctzll(key)) ||
                 (mark > 1 && line_of(b, low + mark - 1) != line)))
        return false;
    unsigned used = target_used(t, line);
    bool full = used >= line_slots(b->width);
    if (UNLIKELY(!t->fresh && slot_present(b, line, slot)))
        return false;
    if (UNLIKELY(full) &&
        (stash_reserve(t, 2) != TAMIS_OK || /* as many as take_slowly() reserves */
         stash_crowded(atomic_load(&b->stash), line, 1)))
        return false;
    put_slot(b, line, slot, used);
    if (t->used && !full)
        t->used[line]++;
    b->keys++;
    b->mass += mark;
    return true;
}

tamis_error lines_take(void *target, uint64_t place, unsigned known, uint64_t copies)
{
    const struct line_target *t = target;
    if (copies == 1 && take_quickly(t, place, known))
        return TAMIS_OK;
    return take_slowly(t, place, known, copies);
}

/* ---- the set --------------------------------------------------------------------------------- */

const struct lines_kernel *lines_kernel(void)
{
#ifdef TAMIS_X86
    static const struct lines_kernel *chosen;
    const struct lines_kernel *kernel = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (UNLIKELY(!kernel)) {
        enum isa isa = cpu_isa();
        kernel = isa == ISA_SCALAR   ? &lines_scalar
                 : isa == ISA_AVX512 ? &lines_avx512
                                     : &lines_avx2;
        __atomic_store_n(&chosen, kernel, __ATOMIC_RELAXED);
    }
    return kernel;
#else
    return &lines_scalar;
#endif
}

ALWAYS_INLINE uint32_t better_slot(uint32_t slot, uint32_t than)
{
    return than == 0 || (slot & -slot) < (than & -than) ? slot : than;
}

/* The known bits with which copies of an entry are stored: those of the best slot of its line that matches all that it
   matches and has copies in the stash already, or else of the best of all if there are two. A key that is added again
   whenever the set has grown would otherwise have a slot for every size, and copies of each in the stash. */
static unsigned known_for_copies(const struct body *b, uint64_t place, unsigned known)
{
    uint64_t key = key_of(b, place, known), line = line_of(b, (key & (key - 1)) >> 1);
    const struct stash *stash = atomic_load_explicit(&b->stash, memory_order_relaxed);
    uint32_t best = 0, counted = 0, n = 0;
    for (uint64_t like = lines_kernel()->match(body_line(b, line), b->width, (uint32_t)key | 1);
         like; like &= like - 1) {
        uint32_t slot = slot_get(body_line(b, line), b->width, (unsigned)__builtin_ctzll(like));
        if ((slot & -slot) < (key & -key) || is_coarse(b->width, (unsigned)__builtin_ctz(slot)))
            continue;
        n++;
        best = better_slot(slot, best);
        if (stash && stash_find(stash, line, slot) < stash->room)
            counted = better_slot(slot, counted);
    }
    best = counted ? counted : n > 1 ? best : 0;
    return best ? b->depth + body_bits(b) - (unsigned)__builtin_ctz(best) : known;
}

static tamis_error put(struct lines *l, uint64_t place, unsigned known, uint64_t copies, bool fresh)
{
    const struct lines_root *root = lines_root_of(l);
    struct line_target t = {
        .lines = l, .fresh = fresh, .body = body_at(root, shelf_position(root, place))};
    tamis_error e = TAMIS_OK;
    if (UNLIKELY(t.body->used >= body_room(t.body))) {
        e = part_grow(l, place);
        root = lines_root_of(l);
        t.body = body_at(root, shelf_position(root, place));
        t.fresh = false; /* an entry that keeps fewer known bits may have become that of the key */
    }
    if (e == TAMIS_OK && !t.fresh)
        known = known_for_copies(t.body, place, known);
    if (e == TAMIS_OK)
        e = lines_take(&t, place, known, copies);
    if (e == TAMIS_OK)
        l->keys += copies;
    return e;
}

tamis_error lines_add_many(struct lines *l, const tamis_digest *digests, size_t n, bool once,
                           uint8_t *fresh, size_t *done)
{
    return lines_kernel()->add(l, digests, n, once, fresh, done);
}

tamis_error lines_put(void *lines, uint64_t place, unsigned known, uint64_t copies)
{
    return put(lines, place, known, copies, false);
}

/* The entries of the smaller set go into the larger one: lines that are still small would cut off bits of what
   comes first. */
tamis_error lines_unite(struct lines *l, const struct lines *from)
{
    struct lines made, old = *l;
    if (from->keys <= l->keys)
        return lines_each(from, lines_put, l);
    tamis_error e = lines_clone(&made, from, l->allocator);
    if (e != TAMIS_OK)
        return e;
    made.fpp = l->fpp;
    made.width = l->width;
    made.limit = l->limit;
    made.refused = 0;
    made.removed = l->removed;
    e = l->limit && made.bytes > l->limit ? TAMIS_ESPACE : lines_each(l, lines_put, &made);
    if (e == TAMIS_OK)
        *l = made;
    lines_free(e == TAMIS_OK ? &old : &made);
    return e;
}

/* ---- removal --------------------------------------------------------------------------------- */

/* The matching slot with the fewest unknown bits, in a line or in the stash for it; 0 if there is none. */
static uint32_t best_slot(const struct body *b, uint64_t line, uint32_t q)
{
    const uint8_t *at = body_line(b, line);
    const struct stash *stash = atomic_load(&b->stash);
    uint64_t matching = lines_kernel()->match(at, b->width, q);
    uint32_t best = 0;
    q &= slot_ones(b->width);
    for (; matching; matching &= matching - 1)
        best = better_slot(slot_get(at, b->width, (unsigned)__builtin_ctzll(matching)), best);
    if (!stash || q < (line_bound(at, b->width) & ~LINE_BARE))
        return best;
    STASH_RUN(stash, line, i)
    {
        uint32_t slot = stash_matching(stash->entry[i], line, q);
        best = slot ? better_slot(slot, best) : best;
    }
    return best;
}

/* Sets the bound of a line according to the stash. */
static void renew_bound(struct body *b, uint64_t line)
{
    uint8_t *at = body_line(b, line);
    const struct stash *stash = atomic_load(&b->stash);
    uint32_t i = stash_least(stash, line), bound = slot_ones(b->width);
    if (i < stash->room)
        bound = slot_order(stash_slot(stash->entry[i])) | 1;
    line_set_bound(at, b->width, bound | (line_bound(at, b->width) & LINE_BARE));
    line_changed(b, line);
}

/* Does not put back a slot that the line has already: it would count twice in the mass of the next body. */
void line_refill(struct body *b, uint64_t line, unsigned at)
{
    struct stash *stash = atomic_load(&b->stash);
    uint32_t i = stash_least(stash, line), slot = i < stash->room ? stash_slot(stash->entry[i]) : 0;
    if (slot == 0 || slot_in_line(body_line(b, line), b->width, slot))
        return;
    slot_put(body_line(b, line), b->width, at, slot);
    b->used += 1u - stash_take(b, i);
    renew_bound(b, line);
}

/* Removes one copy of a slot from a line or from the stash for it. */
static void take_slot(struct body *b, uint64_t line, uint32_t slot)
{
    uint8_t *at = body_line(b, line);
    struct stash *stash = atomic_load(&b->stash);
    uint32_t bound = line_bound(at, b->width) & ~LINE_BARE, none = slot_ones(b->width);
    /* The greatest slot of all does not lower the bound when it is stashed. */
    bool stashed = stash && (bound != none || (slot_order(slot) | 1) == none);
    uint32_t i = stashed ? stash_find(stash, line, slot) : 0;
    if (stashed && i < stash->room) {
        b->used -= stash_take(b, i);
        renew_bound(b, line);
        return;
    }
    unsigned used = lines_kernel()->used(at, b->width), here = 0;
    while (here < used && slot_get(at, b->width, here) != slot)
        here++;
    if (here == used)
        return;
    slot_put(at, b->width, here, slot_get(at, b->width, used - 1));
    slot_put(at, b->width, used - 1, 0);
    line_changed(b, line);
    b->used--;
    if (stashed)
        line_refill(b, line, used - 1);
}

/* Removes one copy of an entry; true if it was the last. */
static bool take_key(struct body *b, uint64_t key)
{
    struct line_span span = span_of(b, key);
    for (uint64_t line = span.first; line <= span.last; line++)
        take_slot(b, line, slot_in(b, key, line));
    return !slot_present(b, span.first, slot_in(b, key, span.first));
}

/* Removes the entry that matches w with the most known bits and returns it; 0 if there is none. */
static uint64_t body_take(struct body *b, uint64_t w)
{
    uint64_t line = line_of(b, w), key;
    uint32_t slot = best_slot(b, line, (uint32_t)w << 1 | 1), i = NOT_LISTED;
    if (slot == 0)
        return 0;
    bool coarse = is_coarse(b->width, (unsigned)__builtin_ctz(slot));
    if (coarse) {
        i = b->rare ? apart_match(&b->rare->coarse, w) : NOT_LISTED;
        if (i == NOT_LISTED) /* only if the bytes of a file are inconsistent */
            return 0;
        key = b->rare->coarse.entry[i].key;
        if (apart_take(&b->rare->coarse, i)) {
            b->rare->beyond_known = false;
            take_key(b, key);
            b->mass -= key & -key;
        }
        return key;
    }
    key = slot & 1 ? w << 1 | 1 : key_in(b, slot, first_of(b, line), first_of(b, line + 1) - 1);
    if (b->rare)
        i = apart_find(&b->rare->excess, key);
    if (i != NOT_LISTED)
        apart_take(&b->rare->excess, i);
    else if (take_key(b, key))
        b->mass -= key & -key;
    return key;
}

/* Will a key that is found be found at every later size? Not if the only match is the slot of a coarse entry that
   does not match the key: such a slot matches more than its entry does, and lines of another body differ. For the
   writer. */
static bool lines_keep(const struct lines *l, tamis_digest digest)
{
    const struct lines_root *root = lines_root_of(l);
    const struct body *b = body_at(root, shelf_position(root, digest.a));
    if (LIKELY(!b->rare || b->rare->coarse.n == 0))
        return true;
    uint64_t w = digest.a << b->depth >> b->shift;
    uint32_t slot = best_slot(b, line_of(b, w), (uint32_t)w << 1 | 1);
    return !is_coarse(b->width, (unsigned)__builtin_ctz(slot)) ||
           apart_match(&b->rare->coarse, w) != NOT_LISTED;
}

tamis_error lines_add_slowly(struct lines *l, tamis_digest digest, bool once, bool fresh)
{
    bool there = once && !fresh && lines_keep(l, digest);
    return there ? TAMIS_OK : put(l, digest.a, 64, 1, fresh);
}

static uint64_t apart_count(const struct apart_list *list, uint64_t w)
{
    uint64_t copies = 0;
    for (unsigned u = 0; u < 63 && list->n; u++) {
        uint32_t i = apart_find(list, w >> u << u << 1 | UINT64_C(1) << u);
        copies += i == NOT_LISTED ? 0 : list->entry[i].copies;
    }
    return copies;
}

/* Slots of coarse entries are derived: only the list counts them. */
uint64_t lines_count(const struct lines *l, tamis_digest digest)
{
    const struct lines_root *root = lines_root_of(l);
    const struct body *b = body_at(root, shelf_position(root, digest.a));
    const struct stash *stash = atomic_load(&b->stash);
    uint64_t w = digest.a << b->depth >> b->shift, line = line_of(b, w), copies = 0;
    uint32_t q = ((uint32_t)w << 1 | 1) & slot_ones(b->width);
    const uint8_t *at = body_line(b, line);
    for (uint64_t like = lines_kernel()->match(at, b->width, q); like; like &= like - 1) {
        uint32_t slot = slot_get(at, b->width, (unsigned)__builtin_ctzll(like));
        copies += !is_coarse(b->width, (unsigned)__builtin_ctz(slot));
    }
    if (stash)
        STASH_RUN(stash, line, i)
        {
            uint32_t slot = stash_matching(stash->entry[i], line, q);
            if (slot && !is_coarse(b->width, (unsigned)__builtin_ctz(slot)))
                copies += stash_copies(stash->entry[i]);
        }
    if (b->rare)
        copies += apart_count(&b->rare->coarse, w) + apart_count(&b->rare->excess, w);
    return copies;
}

bool lines_take_slowly(struct lines *l, tamis_digest digest)
{
    const struct lines_root *root = lines_root_of(l);
    struct body *b = body_at(root, shelf_position(root, digest.a));
    if (body_take(b, digest.a << b->depth >> b->shift) == 0)
        return false;
    b->keys--;
    if (UNLIKELY(b->used * 2 < body_room(b)))
        part_shrink(l, digest.a); /* if there is no memory, the part keeps its size */
    lines_reclaim(l, true);
    return true;
}

void lines_remove_many(struct lines *l, const tamis_digest *digests, size_t n, uint8_t *taken)
{
    lines_kernel()->take(l, digests, n, taken);
}

/* ---- asking, and all of it ------------------------------------------------------------------- */

bool lines_has_one(const struct lines *l, tamis_digest digest)
{
    return lines_kernel()->has_one(lines_root_of(l), digest);
}

void lines_has(const struct lines *l, const tamis_digest *digests, size_t n, uint8_t *found)
{
    lines_kernel()->has(lines_root_of(l), digests, n, found);
}

/* ---- equality -------------------------------------------------------------------------------- */

/* A sum over all entries that does not depend on their order. */
struct digest_sum {
    uint64_t a, b;
};

static tamis_error sum_entry(void *context, uint64_t place, unsigned known, uint64_t copies)
{
    struct digest_sum *sum = context;
    uint64_t mixed = mul_fold(place ^ GOLDEN, known + BLOCK_MIX);
    sum->a += copies * mul_fold(mixed, BLOCK_MIX);
    sum->b += copies * mul_fold(mixed ^ place, UINT64_C(0xA0761D6478BD642F) + 2 * known);
    return TAMIS_OK;
}

bool lines_equal(const struct lines *x, const struct lines *y)
{
    struct digest_sum mine = {0}, other = {0};
    if (x->keys != y->keys)
        return false;
    lines_each(x, sum_entry, &mine);
    lines_each(y, sum_entry, &other);
    return mine.a == other.a && mine.b == other.b;
}
