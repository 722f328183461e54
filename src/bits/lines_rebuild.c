/*
 * Changes the sizes of parts: larger, smaller, split into 16 or 32, or as many joined. A new body is filled with all
 * entries of the old one and then replaces it in one store.
 */
#include "kernel.h"
#include "lines_pour.h"
#include "plan/plan.h"
#include "lines_stash.h"

/* What a new part has to hold. */
struct content {
    uint64_t used;    /* slots */
    uint64_t entries; /* a lower bound of the entries in them */
    double rate;      /* the share of keys that they match */
    unsigned known;   /* the most bits of the place that an entry knows */
    bool last;        /* there will be no others: some need two slots, but none room for growth */
};

/* The rebuild of the parts at some positions: one of another size, several out of one, or one out of
   several. */
struct rebuild {
    const struct content *come; /* into an empty set; NULL: what the old parts have */
    struct lines *lines;
    struct lines_root *root;
    uint32_t first, positions;
    unsigned depth; /* of the new parts */
    uint32_t n;
    struct line_target target[SPLIT_MOST];
    uint64_t keys[SPLIT_MOST];
};

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Entries are identified if the number is a power of two, or well above one (is_coarse). */
uint64_t lines_fit(uint64_t lines)
{
    uint64_t power = UINT64_C(1) << (63 - __builtin_clzll(lines));
    return lines > power && lines - power < power / 16 ? power : lines;
}

struct size {
    uint64_t lines;
    unsigned width;
};

/* Each doubling of a set adds line_load() / 2^(width - 1) to its rate: 0.37 percentage points in slots of 14 bits, 0.08 in
   those of 16. Where LASTS doublings would add too much, a set of fewer lines than NARROW_FROM has slots of the next width,
   and of the one after while it is tiny, so that its entries add little to the rate of the large set: at 1 %, slots of 16
   bits then suffice for 1.5 * 10^8 keys, and at 5 %, slots of 14 bits for 3 * 10^8. */
#define SMALL       32768
#define TINY        512
#define NARROW_FROM 4096
#define LASTS       20

/* The entries that a part gains when it grows: few where that costs little. */
static uint64_t growth_step(uint64_t used, unsigned depth)
{
    return depth == DEPTH_LAST ? used / 16 * 3 : used / (depth ? 8 : used < 4096 ? 24 : 12);
}

/* The width that a part with this many slots in use starts with. */
static unsigned width_for(const struct lines *l, uint64_t used, unsigned depth, bool last)
{
    unsigned width = l->width;
    bool stays = last || (l->limit && l->limit < SMALL * 4); /* the set will not become large */
    bool lasts = line_load(width) * LASTS <= l->fpp * (1u << (width - 1));
    if (stays || lasts || width == WIDTH_LAST || used / line_load(width) << depth >= NARROW_FROM)
        return width;
    width = width_after(width);
    return used << depth < TINY && width < WIDTH_LAST ? width_after(width) : width;
}

/* The rate of the whole set when all parts are full, if the rebuilt positions have this rate. */
static double whole_rate(const struct rebuild *r, double rate)
{
    double sum = rate * r->positions;
    for (uint32_t i = 0; i < root_positions(r->root); i++) {
        const struct body *b = body_at(r->root, i);
        uint64_t room = body_room(b);
        if (i - r->first >= r->positions)
            sum += mass_share(b, b->mass + part_beyond(b) + (b->used < room ? room - b->used : 0));
    }
    return sum / root_positions(r->root);
}

double lines_rate_full(const struct lines *l)
{
    return whole_rate(&(struct rebuild){.root = lines_root_of(l)}, 0);
}

/* The size for this content and some growth. `phase`, in 1/256 of a growth step, spreads the times at which parts
   grow. The stated rate is that of the whole set: parts with the first keys of the set may exceed it. A reserve is
   kept for what two more doublings with wider slots would add. */
static struct size size_for(const struct lines *l, const struct rebuild *r, struct content content,
                            unsigned depth, unsigned phase)
{
    uint64_t used = content.used;
    struct size size = {0, width_for(l, used, depth, content.last)};
    uint64_t step = content.last ? used / 64 : growth_step(used, depth);
    for (;; size.width = width_after(size.width)) {
        unsigned load = line_load(size.width);
        size.lines = lines_fit(used / load + step * phase / 256 / load + 1);
        if (size.lines * load <= used) /* rounded down to the old size */
            size.lines += size.lines / 16 + 1;
        unsigned bits = size.width - 1 + (63 - (unsigned)__builtin_clzll(size.lines));
        double come = (double)(size.lines * load) - (double)content.entries;
        /* Known bits are lost: at worst, each old entry then weighs as much as a new one. */
        if (depth + bits < content.known)
            come += (double)content.entries;
        double after = content.rate + come / (double)(UINT64_C(1) << bits);
        if (size.width == WIDTH_LAST)
            return size;
        unsigned next = width_after(size.width);
        double left = 2.0 * line_load(next) / (double)(UINT64_C(1) << (next - 1));
        if (content.last)
            left = 0;
        if ((r ? whole_rate(r, after) : after) <= l->fpp - left)
            return size;
    }
}

struct body *body_first(struct lines *l)
{
    struct size size = size_for(l, NULL, (struct content){0}, 0, 256);
    return body_new(l, 0, size.lines, size.width, NULL);
}

uint64_t lines_least(double fpp)
{
    const struct lines l = {.fpp = fpp, .width = (uint8_t)lines_width(fpp)};
    return body_needs(size_for(&l, NULL, (struct content){0}, 0, 256).lines, 0);
}

/* The used slots at which a part is split; its parts are joined at a third of it. A rebuild takes 3 to 12 ns per key,
   and a body costs some 100 bytes besides its lines. */
static uint64_t split_at(unsigned depth)
{
    return depth == 0 ? SMALL : depth < DEPTH_LAST ? 131072 : UINT64_MAX;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Bits per key of lines and stash. The size of a single part is known; of many, some have just grown by 3/16 and some
   are about to. A stash has 1.25 to 1.8 cells per entry. */
static double plan_memory(struct size size, double keys, unsigned depth)
{
    double load = depth ? line_load(size.width) * (1 - 3 / 38.0) : keys / (double)size.lines;
    double lines = keys / load, stashed = plan_excess(load, line_slots(size.width)) * lines;
    double part = (lines * LINE_BYTES + stashed * 1.5 * sizeof(uint64_t) + sizeof(struct body)) * 8;
    return part / keys;
}

/* Follows an average part through all its sizes. */
tamis_plan_lines tamis_plan_smooth(uint64_t n, double p)
{
    tamis_plan_lines out = {0, 1, 0, 0};
    if (n == 0 || n > UINT64_C(1) << 40 || !(p >= LINES_RATE_MIN && p < 1))
        return out;
    const struct lines l = {.fpp = p, .width = (uint8_t)lines_width(p)};
    struct size size = size_for(&l, NULL, (struct content){0}, 0, 256);
    double used = 0, rate = 0;
    for (unsigned depth = 0;;) {
        double keys = (double)n / out.parts, room = (double)size.lines * line_load(size.width);
        unsigned bits = size.width - 1 + (63 - (unsigned)__builtin_clzll(size.lines));
        rate += ((keys < room ? keys : room) - used) / (double)(UINT64_C(1) << bits);
        if (keys <= room) {
            out.width = size.width, out.rate = rate;
            out.bits = plan_memory(size, keys, depth);
            return out;
        }
        unsigned known = depth + bits;
        bool split = (uint64_t)room >= split_at(depth);
        unsigned into = split ? depth_after(depth) - depth : 0;
        depth += into;
        out.parts <<= into;
        used = room / (1 << into);
        struct content content = {(uint64_t)used, (uint64_t)used, rate, known, false};
        size = size_for(&l, NULL, content, depth, split ? 128 : 256);
        bits = size.width - 1 + (63 - (unsigned)__builtin_clzll(size.lines));
        /* Known bits are lost: half of the entries knew them all, a quarter all but one, and so on. */
        for (unsigned lost = known - min_u64(known, depth + bits), j = 0; j < lost; j++)
            rate += used / (double)(UINT64_C(2) << j) *
                    (1 - 1 / (double)(UINT64_C(1) << (lost - j))) / (double)(UINT64_C(1) << bits);
    }
}

/* ---- other bodies ---------------------------------------------------------------------------- */

/* Creates an empty body to be filled; false if there is no memory. */
static bool target_new(struct line_target *t, struct lines *l, struct size size, unsigned depth)
{
    *t = (struct line_target){.lines = l};
    t->body = body_new(l, depth, size.lines, size.width, NULL);
    t->used = t->body ? mem_new0(l->allocator, size.lines, 1) : NULL;
    return t->used;
}

static uint32_t rebuild_which(const struct rebuild *r, uint64_t place)
{
    return r->n > 1 ? (uint32_t)(place >> (64 - r->depth)) & (r->n - 1) : 0;
}

static tamis_error rebuild_take(void *context, uint64_t place, unsigned known, uint64_t copies)
{
    struct rebuild *r = context;
    return lines_take(&r->target[rebuild_which(r, place)], place, known, copies);
}

/* The slots that each of the new parts will have, within those of a line. */
static void rebuild_count(struct rebuild *r, const struct body *b)
{
    const struct stash *stash = atomic_load(&b->stash);
    for (uint64_t line = 0; line < b->lines; line++)
        r->keys[line * r->n / b->lines] += lines_kernel()->used(body_line(b, line), b->width);
    for (uint32_t i = 0; stash && i < stash->room; i++)
        if (stash->entry[i] && stash_line(stash->entry[i]) < b->lines)
            r->keys[stash_line(stash->entry[i]) * r->n / b->lines]++;
}

/* The entries of a stash that are copies of slots, which will be in the next stash too: others are half as many as lines
   at most. */
static uint64_t copies_stashed(const struct body *b)
{
    const struct stash *stash = atomic_load(&b->stash);
    return stash && stash->used > b->lines / 2 ? stash->used - b->lines / 2 : 0;
}

static tamis_error rebuild_fill(struct rebuild *r)
{
    struct lines *l = r->lines;
    const struct body *old = body_at(r->root, r->first);
    uint64_t old_bytes = 0 /* will be freed */, copies = 0;
    bool one = body_positions(r->root, old) == r->positions, same = one && r->n == 1 && !r->come;
    struct content content = {0};
    if (r->n > 1)
        rebuild_count(r, old);
    for (uint32_t i = 0; r->come && i < r->n; i++)
        r->keys[i] = r->come->used / r->n;
    for (uint32_t i = r->first; i < r->first + r->positions;) {
        const struct body *b = body_at(r->root, i);
        content.rate += /* the mean of the old parts, which the new ones inherit */
            mass_share(b, b->mass + part_beyond(b)) * body_positions(r->root, b) / r->positions;
        content.known = (unsigned)max_u64(content.known, b->depth + body_bits(b));
        old_bytes += body_bytes(b);
        copies += copies_stashed(b);
        r->keys[0] += r->n > 1 ? 0 : b->used;
        i += body_positions(r->root, b);
    }
    if (r->come) {
        content.rate = r->come->rate;
        content.known = r->come->known;
        content.last = r->come->last;
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        unsigned phase = r->n > 1 ? (i * 7 % r->n * 256 + r->first) / r->n % 256 : 256;
        content.used = r->keys[i];
        content.entries = same ? min_u64(old->used, old->keys) : r->keys[i];
        struct size size = size_for(l, r, content, r->depth, phase);
        uint64_t bare = sizeof(struct body) + size.lines * LINE_BYTES;
        const struct arena *arena = from_arena(l, bare) ? arena_of(l) : NULL;
        uint64_t more = arena ? arena_needs(arena, bare) : body_needs(size.lines, r->depth);
        uint64_t now = bytes + more;
        uint64_t stash = max_u64(size.lines * 8, copies / r->n * 10);
        bytes += (arena ? 0 : more) + stash; /* arenas are counted separately */
        if (l->limit && l->bytes + now + stash > l->limit + old_bytes)
            return TAMIS_ESPACE;
        if (!target_new(&r->target[i], l, size, r->depth))
            return TAMIS_ENOMEM;
        memory_count(l);
    }
    if (!one)
        return visit_positions(r->root, r->first, r->positions, rebuild_take, r);
    uint64_t top = r->depth ? (uint64_t)r->first << (64 - DEPTH_LAST) : 0;
    return pour(&(struct visit){old, top, rebuild_take, r}, r->target, r->n);
}

/* Of the new parts and of all others. */
static unsigned deepest_part(const struct rebuild *r)
{
    unsigned depth = r->depth;
    for (uint32_t i = 0; i < root_positions(r->root); i++)
        if (i - r->first >= r->positions)
            depth = (unsigned)max_u64(depth, body_at(r->root, i)->depth);
    return depth;
}

/* Would the set exceed its limit, and grow, with the new parts? Their stashes may be larger than rebuild_fill() expects.
   Memory of arenas is included in the bytes of the set already. */
static bool exceeds_limit(const struct rebuild *r, const struct shelf *shelf)
{
    const struct lines_root *root = r->root;
    uint64_t now = shelf ? shelf_bytes(shelf) : 0;
    uint64_t before = root->lines ? 0 : shelf_bytes(shelf_of(root));
    for (uint32_t i = 0; i < r->n; i++)
        now += body_bytes(r->target[i].body);
    for (uint32_t i = r->first; i < r->first + r->positions;) {
        const struct body *b = body_at(root, i);
        before += body_bytes(b);
        i += body_positions(root, b);
    }
    return r->lines->limit && now > before && r->lines->bytes + now - before > r->lines->limit;
}

/* Stores the new parts in the new shelf, if there is one, with all others, and retires the old parts. */
static void rebuild_publish(struct rebuild *r, struct shelf *shelf)
{
    struct lines *l = r->lines;
    struct lines_root *root = r->root, *now = (void *)r->target[0].body;
    struct shelf *before = root->lines ? NULL : (struct shelf *)(void *)root;
    struct body *old[SPLIT_MOST];
    uint32_t n_old = 0, positions = SHELF_LEN >> r->depth;
    for (uint32_t i = r->first; i < r->first + r->positions;) {
        old[n_old++] = body_at(root, i);
        i += body_positions(root, old[n_old - 1]);
    }
    for (uint32_t i = 0; i < r->n; i++)
        l->bytes += body_bytes(r->target[i].body);
    for (uint32_t i = 0; i < n_old; i++)
        l->bytes -= body_bytes(old[i]);
    if (shelf) {
        for (uint32_t i = 0; before && i < SHELF_LEN; i += SHELF_LEN >> body_at(root, i)->depth)
            if (i - r->first >= r->positions)
                shelf_put(shelf, i, shelf_body(before, i));
        for (uint32_t i = 0; i < r->n; i++)
            shelf_put(shelf, r->first + i * positions, r->target[i].body);
        shelf_settle(shelf);
        l->bytes += shelf_bytes(shelf);
        now = (void *)shelf;
    }
    atomic_store_explicit(&l->root, now, memory_order_release);
    for (uint32_t i = 0; i < n_old; i++)
        body_retire(l, old[i]);
    if (before)
        shelf_retire(l, before);
}

static tamis_error rebuild(struct lines *l, uint32_t first, uint32_t positions, unsigned depth,
                           const struct content *come)
{
    struct lines_root *root = lines_root_of(l);
    unsigned before = body_at(root, first)->depth;
    struct rebuild r = {
        .come = come, .lines = l, .root = root, .first = first, .positions = positions};
    struct shelf *shelf = NULL;
    r.depth = depth;
    r.n = depth > before ? 1u << (depth - before) : 1;
    tamis_error e = rebuild_fill(&r);
    if (e == TAMIS_OK && depth && !(shelf = shelf_new(l->allocator, deepest_part(&r))))
        e = TAMIS_ENOMEM;
    if (e == TAMIS_OK && exceeds_limit(&r, shelf)) {
        shelf_free(shelf, l->allocator);
        e = TAMIS_ESPACE;
    }
    for (uint32_t i = 0; i < r.n; i++) {
        if (r.target[i].body)
            mem_free(l->allocator, r.target[i].used, r.target[i].body->lines, 1);
        if (e != TAMIS_OK)
            body_free(r.target[i].body, l->allocator);
    }
    if (e == TAMIS_OK)
        rebuild_publish(&r, shelf);
    lines_reclaim(l, false);
    memory_count(l);
    return e;
}

unsigned lines_known(const struct lines *l, uint64_t n)
{
    uint64_t lines = lines_fit(n / line_load(l->width) + 1);
    return l->width - 1u + (63 - (unsigned)__builtin_clzll(lines));
}

tamis_error lines_expect(struct lines *l, uint64_t n, double rate, unsigned known, bool last)
{
    const struct body *b = body_at(lines_root_of(l), 0);
    struct content come = {n, n, rate, known, last};
    return rebuild(l, 0, body_positions(lines_root_of(l), b),
                   last || n < split_at(0) ? 0 : DEPTH_SOME, &come);
}

/* A rebuild may be refused only when it is complete, so it is not tried again with every key. */
tamis_error part_grow(struct lines *l, uint64_t place)
{
    const struct lines_root *root = lines_root_of(l);
    uint32_t number = shelf_position(root, place);
    const struct body *b = body_at(root, number);
    uint32_t positions = body_positions(root, b);
    bool split = b->used >= split_at(b->depth);
    if (l->refused && l->keys / 256 >= l->refused)
        return TAMIS_ESPACE;
    tamis_error e = rebuild(l, number / positions * positions, positions,
                            split ? depth_after(b->depth) : b->depth, NULL);
    l->refused = e == TAMIS_ESPACE ? (uint32_t)(l->keys / 256) : 0;
    return e;
}

tamis_error part_shrink(struct lines *l, uint64_t place)
{
    const struct lines_root *root = lines_root_of(l);
    uint32_t number = shelf_position(root, place);
    const struct body *b = body_at(root, number);
    uint32_t positions = body_positions(root, b);
    if (b->depth) {
        unsigned before = depth_before(b->depth);
        uint32_t wide = SHELF_LEN >> before, first = number / wide * wide;
        uint64_t used = 0;
        bool deeper = false;
        for (uint32_t i = first; i < first + wide; i += positions) {
            const struct body *beside = body_at(root, i);
            deeper |= beside->depth != b->depth;
            used += beside->used;
        }
        if (!deeper && used < split_at(before) / 3 &&
            rebuild(l, first, wide, before, NULL) == TAMIS_OK)
            return TAMIS_OK; /* otherwise there may be memory for a smaller part */
    }
    return b->lines > 1 ? rebuild(l, number / positions * positions, positions, b->depth, NULL)
                        : TAMIS_OK;
}
