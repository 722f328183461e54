/*
 * Parts of lines in other sizes: larger, smaller, split into 16, 16 joined. A new body is made aside, filled
 * with all entries of the old one, and takes its place in one store.
 */
#include "kernel.h"
#include "lines_place.h"
#include "lines_stash.h"

/* ---- bodies and shelves ---------------------------------------------------------------------- */

#define FROM_PAGES 255

/* Lines of a mapped file are not behind the header. */
static size_t body_size(const struct body *b)
{
    bool view = b->line != (const uint8_t *)(b + 1);
    return sizeof *b + (view ? 0 : (size_t)b->lines * LINE_BYTES);
}

uint64_t body_bytes(const struct body *b)
{
    const struct stash *stash = atomic_load(&b->stash);
    return body_size(b) + (stash ? stash_bytes(stash->room) : 0) + rare_bytes(b->rare);
}

struct body *body_new(const tamis_allocator *a, unsigned depth, uint64_t lines, unsigned width,
                      const uint8_t *view)
{
    struct block memory;
    size_t size = sizeof(struct body) + (view ? 0 : lines * LINE_BYTES);
    if (lines >= STASH_LINES || !block_new(a, size, &memory))
        return NULL;
    struct body *b = memory.data;
    b->behind = memory.mapped ? FROM_PAGES : (uint8_t)((char *)memory.data - (char *)memory.base);
    b->lines = (uint32_t)lines;
    b->line = view ? view : (uint8_t *)(b + 1);
    b->width = (uint8_t)width;
    b->depth = (uint8_t)depth;
    b->shift = shift_for(lines, width);
    return b;
}

/* What it is in: header and lines. */
static struct block body_block(struct body *b)
{
    struct block memory = {.data = b, .mapped = b->behind == FROM_PAGES};
    memory.base = memory.mapped ? (char *)b : (char *)b - b->behind;
    memory.size = block_size(body_size(b), memory.mapped);
    return memory;
}

static void body_let_go(struct body *b, const tamis_allocator *a)
{
    struct block memory = body_block(b);
    block_free(a, &memory);
}

struct body *body_move(struct body *b, void *(*move)(void *context, void *memory), void *context)
{
    struct block memory = body_block(b);
    bool own = b->line == (const uint8_t *)(b + 1);
    void *moved = memory.mapped ? NULL : move(context, memory.base);
    if (!moved)
        return b;
    block_moved(&memory, moved);
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

void body_clear(struct body *b, const tamis_allocator *a)
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

/* Readers look at the stash and the lines, never at what is rare. */
static void body_retire(struct lines *l, struct body *b)
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

struct body *body_copy(const struct body *b, const tamis_allocator *a)
{
    struct body *copy = body_new(a, b->depth, b->lines, b->width, NULL);
    const struct stash *stash = atomic_load(&b->stash);
    if (!copy)
        return NULL;
    memcpy(body_line(copy, 0), b->line, (size_t)b->lines * LINE_BYTES);
    copy->used = b->used;
    copy->keys = b->keys;
    copy->mass = b->mass;
    bool good = true;
    if (stash) {
        struct stash *made = stash_new(a, stash->room);
        good = made != NULL;
        if (made) {
            memcpy(made->entry, stash->entry, stash->room * sizeof *stash->entry);
            made->used = stash->used;
        }
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

struct shelf *shelf_new(const tamis_allocator *a)
{
    return mem_new0(a, 1, sizeof(struct shelf));
}

static void shelf_dispose(struct retired *retired, const tamis_allocator *a)
{
    mem_free(a, PART_OF(retired, struct shelf, retired), 1, sizeof(struct shelf));
}

/* A shelf that is being filled may have empty places. */
void root_free(struct lines_root *root, const tamis_allocator *a)
{
    if (!root)
        return;
    uint32_t places = root_places(root);
    for (uint32_t i = 0; i < places;) {
        struct body *b = body_at(root, i);
        i += b ? body_places(root, b) : 1;
        body_free(b, a);
    }
    if (places > 1) /* else the body was the root, and is gone */
        mem_free(a, root, 1, sizeof(struct shelf));
}

/* ---- all entries of a body ------------------------------------------------------------------- */

struct visit {
    const struct body *body;
    uint64_t top; /* the bits of the place that chose the part, and zeros */
    entry_fn take;
    void *context;
};

ALWAYS_INLINE tamis_error visit_key(const struct visit *v, uint64_t key, uint64_t copies)
{
    const struct body *b = v->body;
    uint64_t place = v->top | (key & (key - 1)) >> 1 << b->shift >> b->depth;
    unsigned known = b->depth + body_bits(b) - (unsigned)__builtin_ctzll(key);
    return v->take(v->context, place, known, copies);
}

/* What a line, or the stash for a line, has: only entries that begin in it. */
ALWAYS_INLINE tamis_error visit_slot(const struct visit *v, uint32_t slot, uint64_t from,
                                     uint64_t to, uint64_t copies)
{
    if (is_coarse(v->body->width, (unsigned)__builtin_ctz(slot)))
        return TAMIS_OK;
    uint64_t key = key_in(v->body, slot, from, to);
    return (key & (key - 1)) >> 1 < from ? TAMIS_OK : visit_key(v, key, copies);
}

ALWAYS_INLINE tamis_error visit_lines(const struct visit *v, unsigned width)
{
    const struct body *b = v->body;
    tamis_error e = TAMIS_OK;
    uint64_t from = 0;
    for (uint64_t line = 0; line < b->lines && e == TAMIS_OK; line++) {
        uint64_t end = first_of(b, line + 1);
        const uint8_t *at = body_line(b, line);
        for (unsigned i = 0; i < line_slots(width) && e == TAMIS_OK; i++) {
            uint32_t slot = slot_get(at, width, i);
            if (slot == 0)
                break;
            e = visit_slot(v, slot, from, end - 1, 1);
        }
        from = end;
    }
    return e;
}

static tamis_error visit_apart(const struct visit *v, const struct apart_list *list)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; i < list->n && e == TAMIS_OK; i++)
        e = visit_key(v, list->entry[i].key, list->entry[i].copies);
    return e;
}

static tamis_error visit_rest(const struct visit *v)
{
    const struct body *b = v->body;
    const struct stash *stash = atomic_load(&b->stash);
    tamis_error e = TAMIS_OK;
    if (b->rare)
        e = visit_apart(v, &b->rare->coarse);
    for (uint32_t i = 0; stash && i < stash->room && e == TAMIS_OK; i++) {
        uint64_t entry = stash->entry[i], line = stash_line(entry);
        if (entry)
            e = visit_slot(v, stash_slot(entry), first_of(b, line), first_of(b, line + 1) - 1,
                           stash_copies(entry));
    }
    if (b->rare && e == TAMIS_OK)
        e = visit_apart(v, &b->rare->excess);
    return e;
}

static tamis_error visit_places(const struct lines_root *root, uint32_t first, uint32_t n,
                                entry_fn take, void *context)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = first; i < first + n && e == TAMIS_OK;) {
        const struct body *b = body_at(root, i);
        uint64_t top = root_places(root) > 1 ? (uint64_t)i << (64 - DEPTH_LAST) : 0;
        struct visit v = {b, top, take, context};
        e = b->width == 16 ? visit_lines(&v, 16) : visit_lines(&v, b->width);
        if (e == TAMIS_OK)
            e = visit_rest(&v);
        i += body_places(root, b);
    }
    return e;
}

tamis_error lines_each(const struct lines *l, entry_fn take, void *context)
{
    const struct lines_root *root = lines_root_of(l);
    return visit_places(root, 0, root_places(root), take, context);
}

/* ---- the same part in another size ----------------------------------------------------------- */

/* An entry into a body that is being filled, if it goes into one line that has room. Nearly all do. */
ALWAYS_INLINE bool pour_entry(struct pour *p, uint64_t low, unsigned u)
{
    struct body *b = p->to;
    unsigned width = b->width;
    uint64_t line = line_of(b, low), mark = UINT64_C(1) << u;
    unsigned used = p->used[line];
    uint32_t slot = (uint32_t)(low << 1 | mark) & slot_ones(width);
    if (UNLIKELY(is_coarse(width, u) || line_of(b, low + mark - 1) != line ||
                 used >= line_slots(width) || slot_bare(width, slot) ||
                 (p->fewer && slot_present(b, line, slot))))
        return false;
    slot_put(body_line(b, line), width, used, slot);
    p->used[line] = (uint8_t)(used + 1);
    p->keys++;
    p->mass += mark;
    return true;
}

/* The slots of all lines, in order, so that both bodies are gone through once. */
static tamis_error pour_lines(struct pour *p)
{
    const struct body *b = p->from;
    int more = (int)b->shift - (int)p->to->shift; /* bits that w has more in the new body */
    p->fewer = more < 0;
    unsigned slots = line_slots(b->width);
    uint64_t first = 0, mask = slot_ones(b->width - 1u);
    tamis_error e = TAMIS_OK;
    for (uint64_t line = 0; line < b->lines && e == TAMIS_OK; line++) {
        uint64_t end = first_of(b, line + 1);
        const uint8_t *at = body_line(b, line);
        for (unsigned i = 0; i < slots && e == TAMIS_OK; i++) {
            uint32_t slot = slot_get(at, b->width, i);
            if (slot == 0)
                break;
            unsigned u = (unsigned)__builtin_ctz(slot);
            uint64_t low = first + ((slot_order(slot) / 2 - first) & mask);
            if (UNLIKELY(is_coarse(b->width, u) || low >= end))
                continue;
            int left = (int)u + more;
            uint64_t moved = more >= 0 ? low << more : low >> -more;
            if (UNLIKELY(left < 0 || !pour_entry(p, moved, (unsigned)left)))
                e = p->rest(p->context, low << 1 | (slot & -slot));
        }
        first = end;
    }
    return e;
}

static tamis_error pour_rest(void *visit, uint64_t key)
{
    return visit_key(visit, key, 1);
}

/* All of a part into another of the same depth. */
static tamis_error pour(struct visit *v, const struct target *t)
{
    struct body *to = t->body;
    struct pour p = {.from = v->body, .to = to, .used = t->used, .rest = pour_rest, .context = v};
    int more = (int)v->body->shift - (int)to->shift;
    bool quick =
        lines_kernel()->pour && v->body->width == 16 && to->width == 16 && (more == 0 || more == 1);
    tamis_error e = quick ? lines_kernel()->pour(&p) : pour_lines(&p);
    to->keys += p.keys;
    to->used += p.keys;
    to->mass += p.mass;
    return e == TAMIS_OK ? visit_rest(v) : e;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A number of lines that slots can tell apart: a power of two, or well above one (is_coarse). */
uint64_t lines_fit(uint64_t lines)
{
    uint64_t power = UINT64_C(1) << (63 - __builtin_clzll(lines));
    return lines > power && lines - power < power / 16 ? power : lines;
}

struct size {
    uint64_t lines;
    unsigned width;
};

/* So small, slots are four bits wider, so that the first keys of a set that grows large weigh little in its
   rate; and parts grow in small steps, each of which costs little. */
#define SMALL 16384

/* For so many slots and some to come, and for the rate of the entries there are. `phase`, of 256, spreads
   the moments at which parts grow; 256 is a whole step. */
static struct size size_for(const struct lines *l, uint64_t used, double rate, unsigned depth,
                            unsigned phase)
{
    bool small = depth == 0 && used < SMALL;
    struct size size = {0, small && l->width < WIDTH_LAST ? l->width + 4u : l->width};
    uint64_t step = small ? used / 24 : used / 16 * 3;
    for (;; size.width += 4) {
        unsigned load = line_load(size.width);
        size.lines = lines_fit(used / load + step * phase / 256 / load + 1);
        if (size.lines * load <= used) /* rounded down to what there was */
            size.lines += size.lines / 16 + 1;
        unsigned bits = size.width - 1 + (63 - (unsigned)__builtin_clzll(size.lines));
        double after = rate + (double)(size.lines * load) / (double)(UINT64_C(1) << bits);
        if (after <= l->fpp || size.width == WIDTH_LAST)
            return size;
    }
}

struct body *body_first(const struct lines *l)
{
    struct size size = size_for(l, 0, 0, 0, 256);
    return body_new(l->allocator, 0, size.lines, size.width, NULL);
}

/* Slots at which a part is split, and at a third of which 16 become one: a rebuild takes about 2 ns per
   key, and a body costs some 100 bytes beside its lines. */
static uint64_t split_at(unsigned depth)
{
    return depth == 0 ? 32768 : depth < DEPTH_LAST ? 65536 : UINT64_MAX;
}

/* ---- other bodies ---------------------------------------------------------------------------- */

/* An empty body to be filled; false if there is no memory. */
static bool target_new(struct target *t, struct lines *l, struct size size, unsigned depth)
{
    *t = (struct target){.lines = l};
    t->body = body_new(l->allocator, depth, size.lines, size.width, NULL);
    t->used = t->body ? mem_new0(l->allocator, size.lines, 1) : NULL;
    return t->used;
}

/* The parts in some places, made anew: one in another size, split into 16, or 16 joined. */
struct rebuild {
    struct lines *lines;
    struct lines_root *root;
    uint32_t first, places;
    unsigned depth; /* of the new ones */
    uint32_t n;
    struct target target[1 << DEPTH_STEP];
    uint64_t keys[1 << DEPTH_STEP];
};

static uint32_t rebuild_which(const struct rebuild *r, uint64_t place)
{
    return r->n > 1 ? (uint32_t)(place >> (64 - r->depth)) & (r->n - 1) : 0;
}

static tamis_error rebuild_count(void *context, uint64_t place, unsigned known, uint64_t copies)
{
    struct rebuild *r = context;
    (void)known;
    r->keys[rebuild_which(r, place)] +=
        min_u64(copies, 2); /* one in a line, the others one entry of the stash */
    return TAMIS_OK;
}

static tamis_error rebuild_take(void *context, uint64_t place, unsigned known, uint64_t copies)
{
    struct rebuild *r = context;
    return lines_take(&r->target[rebuild_which(r, place)], place, known, copies);
}

static tamis_error rebuild_fill(struct rebuild *r)
{
    struct lines *l = r->lines;
    const struct body *old = body_at(r->root, r->first);
    uint64_t old_bytes = body_bytes(old);
    bool same = r->n == 1 && body_places(r->root, old) == r->places; /* one part, as before */
    r->keys[0] = same ? old->used : 0;
    if (!same)
        visit_places(r->root, r->first, r->places, rebuild_count, r);
    double rate = 0; /* the mean of theirs: new parts have the like */
    for (uint32_t i = r->first; i < r->first + r->places;) {
        const struct body *b = body_at(r->root, i);
        rate += mass_share(b, b->mass) * body_places(r->root, b) / r->places;
        i += body_places(r->root, b);
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        unsigned phase = r->n > 1 ? (i * 7 % r->n * 256 + r->first) / r->n % 256 : 256;
        struct size size = size_for(l, r->keys[i], rate, r->depth, phase);
        bytes += size.lines * LINE_BYTES + size.lines * 4; /* and its stash */
        if (l->limit && l->bytes + bytes > l->limit + old_bytes)
            return TAMIS_ESPACE;
        if (!target_new(&r->target[i], l, size, r->depth))
            return TAMIS_ENOMEM;
    }
    if (!same)
        return visit_places(r->root, r->first, r->places, rebuild_take, r);
    uint64_t top = r->depth ? (uint64_t)r->first << (64 - DEPTH_LAST) : 0;
    return pour(&(struct visit){old, top, lines_take, &r->target[0]}, &r->target[0]);
}

/* The new parts into their places, and those before into the list of what can be freed. */
static void rebuild_publish(struct rebuild *r, struct shelf *shelf)
{
    struct lines *l = r->lines;
    struct lines_root *root = r->root, *now = root;
    if (r->depth == 0)
        now = (struct lines_root *)(void *)r->target[0].body;
    else if (root->lines)
        now = (struct lines_root *)(void *)shelf;
    uint32_t first = root->lines ? 0 : r->first, places = root->lines ? PLACES : r->places;
    struct body *old[1 << DEPTH_STEP];
    uint32_t n_old = 0;
    for (uint32_t i = r->first; i < r->first + r->places;) {
        old[n_old++] = body_at(root, i);
        i += body_places(root, old[n_old - 1]);
    }
    for (uint32_t i = 0; i < r->n; i++)
        l->bytes += body_bytes(r->target[i].body);
    for (uint32_t i = 0; i < n_old; i++)
        l->bytes -= body_bytes(old[i]);
    for (uint32_t i = 0; r->depth && i < places; i++)
        atomic_store_explicit(&((struct shelf *)(void *)now)->body[first + i],
                              r->target[i / (places / r->n)].body, memory_order_release);
    if (now != root)
        atomic_store_explicit(&l->root, now, memory_order_release);
    for (uint32_t i = 0; i < n_old; i++)
        body_retire(l, old[i]);
    if (shelf)
        l->bytes += sizeof *shelf;
    if (now == root || root->lines)
        return;
    l->bytes -= sizeof *shelf;
    retire(&l->retired, &((struct shelf *)(void *)root)->retired, shelf_dispose);
}

static tamis_error rebuild(struct lines *l, uint32_t first, uint32_t places, unsigned depth)
{
    struct lines_root *root = lines_root_of(l);
    unsigned before = body_at(root, first)->depth;
    struct rebuild r = {.lines = l, .root = root, .first = first, .places = places};
    struct shelf *shelf = depth && root->lines ? shelf_new(l->allocator) : NULL;
    r.depth = depth;
    r.n = depth > before ? 1u << (depth - before) : 1;
    tamis_error e = depth && root->lines && !shelf ? TAMIS_ENOMEM : rebuild_fill(&r);
    for (uint32_t i = 0; i < r.n; i++) {
        if (r.target[i].body)
            mem_free(l->allocator, r.target[i].used, r.target[i].body->lines, 1);
        if (e != TAMIS_OK)
            body_free(r.target[i].body, l->allocator);
    }
    if (e == TAMIS_OK)
        rebuild_publish(&r, shelf);
    else
        mem_free(l->allocator, shelf, 1, sizeof *shelf);
    lines_reclaim(l, false);
    return e;
}

tamis_error part_grow(struct lines *l, uint64_t place)
{
    const struct lines_root *root = lines_root_of(l);
    uint32_t number = place_number(root, place);
    const struct body *b = body_at(root, number);
    uint32_t places = body_places(root, b);
    bool split = b->used >= split_at(b->depth);
    return rebuild(l, number / places * places, places, b->depth + (split ? DEPTH_STEP : 0));
}

tamis_error part_shrink(struct lines *l, uint64_t place)
{
    const struct lines_root *root = lines_root_of(l);
    uint32_t number = place_number(root, place);
    const struct body *b = body_at(root, number);
    uint32_t places = body_places(root, b);
    if (b->depth) {
        uint32_t wide = places << DEPTH_STEP, first = number / wide * wide;
        uint64_t used = 0;
        bool deeper = false;
        for (uint32_t i = first; i < first + wide; i += places) {
            const struct body *beside = body_at(root, i);
            deeper |= beside->depth != b->depth;
            used += beside->used;
        }
        if (!deeper && used < split_at(b->depth - DEPTH_STEP) / 3)
            return rebuild(l, first, wide, b->depth - DEPTH_STEP);
    }
    return b->lines > 1 ? rebuild(l, number / places * places, places, b->depth) : TAMIS_OK;
}
