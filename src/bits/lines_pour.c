/*
 * Entries on their way: all those of a set or of some parts, one by one; and whole parts into bodies of another size,
 * or 16 of them, which takes 3 to 12 ns per entry.
 */
#include "lines_pour.h"

#include "kernel.h"
#include "lines_stash.h"

/* ---- all entries of a body ------------------------------------------------------------------- */

ALWAYS_INLINE tamis_error visit_key(const struct visit *v, uint64_t key, uint64_t copies)
{
    const struct body *b = v->body;
    uint64_t place = v->top | (key & (key - 1)) >> 1 << b->shift >> b->depth;
    unsigned known = b->depth + body_bits(b) - (unsigned)__builtin_ctzll(key);
    return v->take(v->context, place, known, copies);
}

/* Visits a slot of a line, or of the stash for it, if its entry begins in the line. */
ALWAYS_INLINE tamis_error visit_slot(const struct visit *v, uint32_t slot, uint64_t from,
                                     uint64_t to, uint64_t copies)
{
    if (is_coarse(v->body->width, (unsigned)__builtin_ctz(slot)))
        return TAMIS_OK;
    uint64_t key = key_in(v->body, slot, from, to);
    return (key & (key - 1)) >> 1 < from ? TAMIS_OK : visit_key(v, key, copies);
}

ALWAYS_INLINE tamis_error visit_line(const struct visit *v, unsigned width, uint64_t line,
                                     uint64_t from, uint64_t end)
{
    const uint8_t *at = body_line(v->body, line);
    tamis_error e = TAMIS_OK;
    for (unsigned i = 0; i < line_slots(width) && e == TAMIS_OK; i++) {
        uint32_t slot = slot_get(at, width, i);
        if (slot == 0)
            break;
        e = visit_slot(v, slot, from, end - 1, 1);
    }
    return e;
}

ALWAYS_INLINE tamis_error visit_lines(const struct visit *v, unsigned width)
{
    const struct body *b = v->body;
    tamis_error e = TAMIS_OK;
    uint64_t from = 0;
    for (uint64_t line = 0; line < b->lines && e == TAMIS_OK; line++) {
        uint64_t end = first_of(b, line + 1);
        e = visit_line(v, width, line, from, end);
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

struct pouring;
static tamis_error visit_stash(const struct visit *v, const struct pouring *pour);

/* `pour`, unless NULL, takes entries that fit into a line with room. */
static tamis_error visit_rest(const struct visit *v, const struct pouring *pour)
{
    const struct rare *rare = v->body->rare;
    tamis_error e = rare ? visit_apart(v, &rare->coarse) : TAMIS_OK;
    if (e == TAMIS_OK)
        e = visit_stash(v, pour);
    return rare && e == TAMIS_OK ? visit_apart(v, &rare->excess) : e;
}

/* The part at position i. */
static struct visit visit_part(const struct lines_root *root, uint32_t i, entry_fn take,
                               void *context)
{
    uint64_t top = root_positions(root) > 1 ? (uint64_t)i << (64 - DEPTH_LAST) : 0;
    return (struct visit){body_at(root, i), top, take, context};
}

tamis_error visit_positions(const struct lines_root *root, uint32_t first, uint32_t n,
                            entry_fn take, void *context)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = first; i < first + n && e == TAMIS_OK;) {
        struct visit v = visit_part(root, i, take, context);
        const struct body *b = v.body;
        e = b->width == 16 ? visit_lines(&v, 16) : visit_lines(&v, b->width);
        if (e == TAMIS_OK)
            e = visit_rest(&v, NULL);
        i += body_positions(root, b);
    }
    return e;
}

/* In ascending order, the entries would crowd a few lines of the set that receives them, and its stash, before that
   set grows. So each round visits the same line of all parts, and the line numbers are bit-reversed: the entries
   visited so far are spread evenly. */
tamis_error lines_each(const struct lines *l, entry_fn take, void *context)
{
    const struct lines_root *root = lines_root_of(l);
    uint32_t positions = root_positions(root), most = 1;
    unsigned bits = 0;
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; i < positions; i += body_positions(root, body_at(root, i)))
        if (body_at(root, i)->lines > most)
            most = (uint32_t)body_at(root, i)->lines;
    while (UINT64_C(1) << bits < most)
        bits++;
    for (uint64_t turn = 0; turn < UINT64_C(1) << bits && e == TAMIS_OK; turn++) {
        uint64_t line = 0;
        for (unsigned bit = 0; bit < bits; bit++)
            line |= (turn >> bit & 1) << (bits - 1 - bit);
        for (uint32_t i = 0; i < positions && e == TAMIS_OK;) {
            struct visit v = visit_part(root, i, take, context);
            const struct body *b = v.body;
            if (line < b->lines)
                e = visit_line(&v, b->width, line, first_of(b, line), first_of(b, line + 1));
            i += body_positions(root, b);
        }
    }
    for (uint32_t i = 0; i < positions && e == TAMIS_OK;) {
        struct visit v = visit_part(root, i, take, context);
        e = visit_rest(&v, NULL);
        i += body_positions(root, v.body);
    }
    return e;
}

/* ---- a part in another size, or split -------------------------------------------------------- */

/* A part on its way into another of the same depth, or into 16 deeper ones, which the top bits of w choose. */
struct pouring {
    const struct visit *visit;
    const struct line_target *target;
    unsigned cut; /* the number of the other bits of w */
    bool stashed; /* what comes was in the stash: an entry may be a copy of one in a line */
};

/* The body that entries go into: a copy of what the loops need, so that it stays in registers while slots are
   written. */
struct into {
    uint32_t number;
    bool fewer; /* bits of w; or copies: an entry may be present already */
    int more;   /* bits that w gains, those that chose the body included */
    struct body *body;
    uint8_t *used;       /* number of used slots in each line */
    uint64_t keys, mass; /* of the entries moved: their number, and the sum of 2^u */
};

ALWAYS_INLINE struct into into_number(const struct pouring *p, uint32_t i)
{
    const struct body *from = p->visit->body;
    struct body *to = p->target[i].body;
    int more = (int)from->shift - to->shift + to->depth - from->depth;
    return (struct into){i, p->stashed || more < 0, more, to, p->target[i].used, 0, 0};
}

ALWAYS_INLINE void into_count(const struct into *in)
{
    in->body->keys += in->keys;
    in->body->used += in->keys;
    in->body->mass += in->mass;
}

/* Puts an entry into a new body, if it fits into a single line with room. Nearly all do. */
ALWAYS_INLINE bool pour_entry(struct into *in, uint64_t low, unsigned u, unsigned width)
{
    struct body *b = in->body;
    uint64_t line = line_of(b, low), mark = UINT64_C(1) << u;
    unsigned used = in->used[line];
    uint32_t slot = (uint32_t)(low << 1 | mark) & slot_ones(width);
    if (UNLIKELY(is_coarse(width, u) || (u && line_of(b, low + mark - 1) != line) ||
                 used >= line_slots(width) || slot_bare(width, slot) ||
                 (in->fewer && slot_present(b, line, slot))))
        return false;
    slot_put(body_line(b, line), width, used, slot);
    in->used[line] = (uint8_t)(used + 1);
    in->keys++;
    in->mass += mark;
    return true;
}

/* The same for a slot of a line; what it knows beyond the bits of w in the new body is lost. `width`: of the new
   bodies; 0: they differ. */
ALWAYS_INLINE bool pour_slot(const struct pouring *p, struct into *in, uint32_t slot, uint64_t low,
                             unsigned width)
{
    if (UNLIKELY(low >> p->cut != in->number)) {
        into_count(in);
        *in = into_number(p, (uint32_t)(low >> p->cut));
    }
    int left = (int)__builtin_ctz(slot) + in->more;
    low &= (UINT64_C(1) << p->cut) - 1;
    return pour_entry(in, in->more >= 0 ? low << in->more : low >> -in->more,
                      left > 0 ? (unsigned)left : 0, width ? width : in->body->width);
}

static uint32_t common_divisor(uint32_t x, uint32_t y)
{
    return y ? common_divisor(y, x % y) : x;
}

/* Cells are visited a golden section of the table apart. In the order of their homes, the entries would fill the start
   of a stash with the same homes, which is still small, as a single run. */
static tamis_error visit_stash(const struct visit *v, const struct pouring *pour)
{
    const struct body *b = v->body;
    const struct stash *stash = atomic_load(&b->stash);
    struct into in = pour ? into_number(pour, 0) : (struct into){0};
    uint32_t room = stash ? stash->room : 0, step = (uint32_t)(room * UINT64_C(618) / 1000) | 1;
    tamis_error e = TAMIS_OK;
    while (room && common_divisor(room, step) > 1)
        step++;
    for (uint64_t n = 0, i = 0; n < room && e == TAMIS_OK;
         n++, i += i + step < room ? step : (uint64_t)step - room) {
        uint64_t entry = stash->entry[i], line = stash_line(entry);
        uint32_t slot = stash_slot(entry);
        if (slot == 0 || line >= b->lines || is_coarse(b->width, (unsigned)__builtin_ctz(slot)))
            continue; /* free, or in a file that others overwrite */
        uint64_t from = first_of(b, line);
        uint64_t low = from + ((slot_order(slot) / 2 - from) & slot_ones(b->width - 1u));
        if (line_of(b, low) != line || /* begins in an earlier line */
            (pour && stash_copies(entry) == 1 && pour_slot(pour, &in, slot, low, 0)))
            continue;
        e = visit_key(v, low << 1 | (slot & -slot), stash_copies(entry));
    }
    if (pour)
        into_count(&in);
    return e;
}

/* Moves the slots of all lines, in order, so that all bodies are read or written only once. */
ALWAYS_INLINE tamis_error pour_lines(const struct pouring *p, unsigned width, unsigned to)
{
    const struct body *b = p->visit->body;
    unsigned slots = line_slots(width);
    uint64_t first = 0, mask = slot_ones(width - 1u);
    struct border border = border_at(b, 0);
    struct into in = into_number(p, 0);
    tamis_error e = TAMIS_OK;
    for (uint64_t line = 0; line < b->lines && e == TAMIS_OK; line++) {
        const uint8_t *at = body_line(b, line);
        for (unsigned i = 0; i < slots && e == TAMIS_OK; i++) {
            uint32_t slot = slot_get(at, width, i);
            if (slot == 0)
                break;
            uint64_t low = first + ((slot_order(slot) / 2 - first) & mask);
            if (UNLIKELY(is_coarse(width, (unsigned)__builtin_ctz(slot)) || low >= border.first))
                continue;
            if (UNLIKELY(!pour_slot(p, &in, slot, low, to)))
                e = visit_key(p->visit, low << 1 | (slot & -slot), 1);
        }
        first = border.first;
        border_move(&border);
    }
    into_count(&in);
    return e;
}

static tamis_error pour_rest(void *visit, uint64_t key)
{
    return visit_key(visit, key, 1);
}

/* Can the kernel move the part into each of the targets? */
static bool is_quick(const struct pouring *p, uint32_t n)
{
    unsigned width = p->visit->body->width;
    bool quick = lines_kernel()->pour;
    for (uint32_t i = 0; i < n && quick; i++) {
        int more = into_number(p, i).more, to = p->target[i].body->width;
        quick = more >= 0 && more <= to - (int)width + 2;
    }
    return quick;
}

static tamis_error pour_quickly(const struct pouring *p, struct visit *v, uint32_t n)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; i < n && e == TAMIS_OK; i++) {
        struct into in = into_number(p, i);
        struct pour pour = {.from = v->body,
                            .to = in.body,
                            .first = (uint64_t)i << p->cut,
                            .end = (uint64_t)(i + 1) << p->cut,
                            .more = (unsigned)in.more,
                            .used = in.used,
                            .rest = pour_rest,
                            .context = v};
        e = lines_kernel()->pour(&pour);
        in.keys = pour.keys;
        in.mass = pour.mass;
        into_count(&in);
    }
    return e;
}

tamis_error pour(struct visit *v, const struct line_target *targets, uint32_t n)
{
    unsigned width = v->body->width, to = targets[0].body->width;
    for (uint32_t i = 1; i < n; i++)
        to = targets[i].body->width == to ? to : 0;
    struct pouring p = {v, targets, body_bits(v->body) - (unsigned)__builtin_ctz(n), false};
    tamis_error e = is_quick(&p, n)           ? pour_quickly(&p, v, n)
                    : width == 18 && to == 16 ? pour_lines(&p, 18, 16)
                                              : pour_lines(&p, width, to);
    p.stashed = true;
    return e == TAMIS_OK ? visit_rest(v, &p) : e;
}
