/*
 * Parts of lines as bytes: the pieces to save, parts created for bytes to come or in a mapped file, and checks of
 * untrusted bytes. A part is checked in one pass over its lines, its stash and its lists. Both halves of an entry
 * that straddles two lines must be present, and the slots that lines have of coarse entries: this is checked with
 * sums that do not depend on the order. No lookups are needed, so crafted bytes cost no more than others.
 */
#include "lines_bytes.h"

#include "lines_stash.h"

/* ---- parts ----------------------------------------------------------------------------------- */

uint32_t lines_parts(const struct lines *l)
{
    const struct lines_root *root = lines_root_of(l);
    uint32_t n = 0, known = root->lines ? 1 : shelf_of(root)->parts;
    if (known)
        return known;
    for (uint32_t i = 0; i < root_positions(root); n++)
        i += body_positions(root, body_at(root, i));
    return n;
}

/* The first position of a part. */
static uint32_t lines_position(const struct lines_root *root, uint32_t number)
{
    uint32_t i = 0;
    if (!root->lines && shelf_of(root)->parts == SHELF_LEN)
        return number;
    while (number--)
        i += body_positions(root, body_at(root, i));
    return i;
}

struct body *lines_part(const struct lines *l, uint32_t number)
{
    const struct lines_root *root = lines_root_of(l);
    return body_at(root, lines_position(root, number));
}

uint64_t lines_bits(const struct lines *l, uint64_t *taken)
{
    const struct lines_root *root = lines_root_of(l);
    uint64_t lines = 0;
    for (uint32_t i = 0; i < root_positions(root);) {
        const struct body *b = body_at(root, i);
        lines += b->lines;
        *taken += b->used * b->width;
        i += body_positions(root, b);
    }
    return 8 * LINE_BYTES * lines;
}

struct part_facts part_facts(const struct body *b)
{
    const struct stash *stash = atomic_load(&b->stash);
    return (struct part_facts){
        .lines = b->lines,
        .depth = b->depth,
        .width = b->width,
        .used = b->used,
        .keys = b->keys,
        .mass = b->mass,
        .stash = stash && stash->used ? stash->room : 0,
        .stashed = stash ? stash->used : 0,
        .coarse = b->rare ? b->rare->coarse.n : 0,
        .excess = b->rare ? b->rare->excess.n : 0,
    };
}

const char *part_facts_wrong(const struct part_facts *p)
{
    if (p->lines == 0 || p->lines >= STASH_LINES || lines_fit(p->lines) != p->lines)
        return "an impossible number of lines";
    if (!width_valid(p->width) || (p->depth && p->depth != DEPTH_SOME && p->depth != DEPTH_LAST))
        return "an impossible width or depth";
    if ((uint64_t)p->stashed * 5 > (uint64_t)p->stash * 4 || (p->stash && !p->stashed))
        return "a stash that is too full, or empty";
    if (p->used > (uint64_t)p->lines * line_slots(p->width) + p->stashed ||
        p->mass > UINT64_MAX / 2)
        return "more slots in use than there are";
    return NULL;
}

uint64_t part_len(const struct part_facts *p, enum part_bytes what)
{
    return what == PART_LINES    ? (uint64_t)p->lines * LINE_BYTES
           : what == PART_STASH  ? sizeof(uint64_t) * (uint64_t)p->stash
           : what == PART_COARSE ? sizeof(struct apart) * (uint64_t)p->coarse
                                 : sizeof(struct apart) * (uint64_t)p->excess;
}

uint8_t *part_data(const struct body *b, enum part_bytes what)
{
    const struct stash *stash = atomic_load(&b->stash);
    return what == PART_LINES    ? body_line(b, 0)
           : what == PART_STASH  ? (uint8_t *)stash->entry
           : what == PART_COARSE ? (uint8_t *)b->rare->coarse.entry
                                 : (uint8_t *)b->rare->excess.entry;
}

/* ---- checksums ------------------------------------------------------------------------------- */

struct kept_sums *part_sums_kept(const struct body *b, enum part_bytes what)
{
    const struct rare *rare = __atomic_load_n(&b->rare, __ATOMIC_ACQUIRE);
    if (!rare || what > PART_STASH)
        return NULL;
    return __atomic_load_n(what == PART_LINES ? &rare->line_sums : &rare->stash_sums,
                           __ATOMIC_ACQUIRE);
}

struct kept_sums *part_sums(const struct body *b, enum part_bytes what, const tamis_allocator *a)
{
    struct body *own = (struct body *)(uintptr_t)b;
    struct part_facts facts = part_facts(b);
    struct rare *rare = __atomic_load_n(&own->rare, __ATOMIC_ACQUIRE), *first = NULL;
    if (!rare) {
        if (!(rare = mem_new0(a, 1, sizeof *rare)))
            return NULL;
        if (!__atomic_compare_exchange_n(&own->rare, &first, rare, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            mem_free(a, rare, 1, sizeof *rare);
            rare = first;
        }
    }
    return kept_sums_at(what == PART_LINES ? &rare->line_sums : &rare->stash_sums, a,
                        part_len(&facts, what));
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool list_new(struct apart_list *list, uint32_t n, const tamis_allocator *a)
{
    list->entry = n ? mem_new0(a, n, sizeof *list->entry) : NULL;
    list->n = list->room = list->entry ? n : 0;
    return list->n == n;
}

static struct body *part_new(struct lines *l, const struct part_facts *p, const uint8_t *lines,
                             const uint8_t *entries)
{
    const tamis_allocator *a = l->allocator;
    struct body *b = body_new(l, p->depth, p->lines, p->width, lines);
    if (!b)
        return NULL;
    struct stash *stash = p->stash == 0 ? NULL
                          : entries     ? stash_view(a, p->stash, (const void *)entries)
                                        : stash_new(a, p->stash);
    if (stash)
        stash->used = p->stashed;
    atomic_store(&b->stash, stash);
    b->used = p->used, b->keys = p->keys, b->mass = p->mass;
    bool good = stash || p->stash == 0;
    if (good && (p->coarse || p->excess))
        good = rare_of(b, a) && list_new(&b->rare->coarse, p->coarse, a) &&
               list_new(&b->rare->excess, p->excess, a);
    if (good)
        return b;
    body_free(b, a);
    return NULL;
}

tamis_error lines_begin(struct lines *l, const tamis_allocator *a, double fpp, unsigned width,
                        uint32_t parts)
{
    *l = (struct lines){.allocator = a, .fpp = fpp, .width = (uint8_t)width};
    unsigned deepest = parts > 1 << DEPTH_SOME ? DEPTH_LAST : DEPTH_SOME;
    struct shelf *shelf = parts > 1 ? shelf_new(a, deepest) : NULL;
    atomic_store(&l->root, (struct lines_root *)(void *)shelf);
    l->bytes = shelf ? shelf_bytes(shelf) : 0;
    return shelf || parts == 1 ? TAMIS_OK : TAMIS_ENOMEM;
}

struct body *lines_append(struct lines *l, uint32_t position, const struct part_facts *p,
                          const uint8_t *lines, const uint8_t *stash)
{
    struct shelf *shelf = (struct shelf *)(void *)atomic_load(&l->root);
    struct body *b = part_new(l, p, lines, stash);
    if (!b)
        return NULL;
    if (!shelf)
        atomic_store(&l->root, (struct lines_root *)(void *)b);
    if (shelf)
        shelf_put(shelf, position, b);
    if (shelf && position + (SHELF_LEN >> p->depth) == SHELF_LEN)
        shelf_settle(shelf);
    l->keys += p->keys;
    l->bytes += body_bytes(b);
    memory_count(l);
    return b;
}

/* ---- holding a moment ------------------------------------------------------------------------ */

bool lines_hold(struct lines *l)
{
    const struct lines_root *root = lines_root_of(l);
    lines_hold_end(l);
    struct held_parts *held = memory_of(l) ? mem_new0(l->allocator, 1, sizeof *held) : NULL;
    for (uint32_t i = 0; held && i < root_positions(root); held->parts++) {
        uint32_t positions = body_positions(root, body_at(root, i));
        held->first[held->parts] = (uint16_t)i;
        for (uint32_t end = i + positions; i < end; i++)
            held->number[i] = (uint16_t)held->parts;
    }
    if (held) {
        held->left = held->parts;
        l->memory->held = held;
    }
    memory_count(l);
    return held != NULL;
}

void lines_hold_end(struct lines *l)
{
    struct held_parts *held = lines_moment(l);
    for (uint32_t i = 0; held && i < held->parts; i++)
        body_free(held->copy[i], l->allocator);
    mem_free(l->allocator, held, 1, sizeof *held);
    if (l->memory)
        l->memory->held = NULL;
    memory_count(l);
}

bool lines_hold_for(struct lines *l, const tamis_digest *digests, size_t n)
{
    struct held_parts *held = lines_moment(l);
    for (size_t i = 0; i < n && held->left; i++) {
        uint32_t number = held->number[held->parts > 1 ? digests[i].a >> (64 - DEPTH_LAST) : 0];
        if (held->copy[number])
            continue;
        held->copy[number] = body_copy(l, lines_held(l, number));
        if (!held->copy[number])
            return false;
        held->left--;
        memory_count(l);
    }
    return true;
}

/* A part that was not copied has not changed and is still in its position. */
const struct body *lines_held(const struct lines *l, uint32_t number)
{
    const struct held_parts *held = lines_moment(l);
    return held->copy[number] ? held->copy[number] : body_at(lines_root_of(l), held->first[number]);
}

/* ---- moving ---------------------------------------------------------------------------------- */

typedef void *(*move_fn)(void *context, void *memory);

static void *moved(void *memory, move_fn move, void *context)
{
    void *now = memory ? move(context, memory) : NULL;
    return now ? now : memory;
}

void lines_move(struct lines *l, move_fn move, void *context)
{
    struct lines_root *root = atomic_load(&l->root);
    if (root && !root->lines)
        atomic_store(&l->root, moved(root, move, context));
}

void part_move(struct lines *l, uint32_t number, move_fn move, void *context)
{
    uint32_t position = lines_position(lines_root_of(l), number);
    struct body *old = lines_part(l, number), *b = body_move(old, move, context);
    struct stash *stash = atomic_load(&b->stash);
    bool behind = stash && stash->entry == (const uint64_t *)(const void *)(stash + 1);
    stash = moved(stash, move, context);
    if (behind)
        stash->entry = (uint64_t *)(void *)(stash + 1);
    atomic_store(&b->stash, stash);
    b->rare = moved(b->rare, move, context);
    if (b->rare) {
        b->rare->coarse.entry = moved(b->rare->coarse.entry, move, context);
        b->rare->excess.entry = moved(b->rare->excess.entry, move, context);
        kept_sums_move(&b->rare->line_sums, move, context);
        kept_sums_move(&b->rare->stash_sums, move, context);
    }
    struct lines_root *root = atomic_load(&l->root);
    if ((void *)root == old)
        atomic_store(&l->root, (struct lines_root *)(void *)b);
    else
        shelf_put((struct shelf *)(void *)root, position, b);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x, uint64_t y)
{
    return mul_fold(x ^ GOLDEN, y + UINT64_C(0xD6E8FEB86659FD93));
}

void part_check_begin(struct part_check *c, const struct part_facts *facts)
{
    *c = (struct part_check){.facts = *facts};
}

/* A body of this shape, for the arithmetic only. */
static struct body shape_of(const struct part_check *c)
{
    const struct part_facts *p = &c->facts;
    return (struct body){.lines = p->lines,
                         .depth = (uint8_t)p->depth,
                         .width = (uint8_t)p->width,
                         .shift = shift_for(p->lines, p->width)};
}

/* Can copies of a slot be in a line that covers w from c->from to c->end - 1? Adds to the sums. */
static bool check_slot(struct part_check *c, uint64_t line, uint32_t slot, uint64_t copies,
                       bool differs)
{
    unsigned width = c->facts.width, u = (unsigned)__builtin_ctz(slot);
    uint64_t mask = slot_ones(width - 1u), mark = UINT64_C(1) << u;
    if (is_coarse(width, u)) {
        c->coarse_slots += copies;
        c->coarse += copies * mixed(line, slot);
        return true;
    }
    uint64_t low = c->from + ((slot_order(slot) / 2 - c->from) & mask);
    if (low < c->end) {
        c->keys += copies;
        c->mass += differs ? mark : 0;
        if (low + mark > c->end)
            c->straddling += copies * mixed(low, u);
        return true;
    }
    if (low <= mask || low - mask - 1 + mark <= c->from) /* ends before the line */
        return false;
    c->straddling -= copies * mixed(low - mask - 1, u);
    return true;
}

static const char *check_line(struct part_check *c, const uint8_t *line)
{
    unsigned width = c->facts.width, used = lines_kernel()->used(line, width);
    uint32_t bound = line_bound(line, width);
    if ((bound & ~LINE_BARE) > slot_ones(width))
        return "the bound of a line";
    if (width == 14 && tops_stray(line))
        return "bits of a line that belong to no slot";
    for (unsigned i = used; i < line_slots(width); i++)
        if (slot_get(line, width, i))
            return "a slot behind a free one";
    for (unsigned i = 0; i < used; i++) {
        uint32_t slot = slot_get(line, width, i);
        if (slot_bare(width, slot) && !(bound & LINE_BARE))
            return "a slot that lookups would not see";
        if (!check_slot(c, c->line, slot, 1, true)) /* no line has a slot twice */
            return "a slot that does not belong to its line";
    }
    c->used += used;
    return NULL;
}

/* Works on a copy of each line, because a mapped file may change between two reads. */
static const char *check_line_at(struct part_check *c, const struct body *shape,
                                 const uint8_t *lines)
{
    _Alignas(LINE_BYTES) uint8_t line[LINE_BYTES];
    memcpy(line, lines + LINE_BYTES * c->line, LINE_BYTES);
    c->end = first_of(shape, c->line + 1);
    return check_line(c, line);
}

const char *part_check_lines(struct part_check *c, const uint8_t *lines, uint64_t n)
{
    const struct body shape = shape_of(c);
    const char *wrong = NULL;
    for (; c->line < n && !wrong; c->line++, c->from = c->end)
        wrong = check_line_at(c, &shape, lines);
    return wrong;
}

static const char *check_stashed(struct part_check *c, const uint8_t *lines, uint64_t entry)
{
    unsigned width = c->facts.width;
    uint64_t number = stash_line(entry);
    uint32_t slot = stash_slot(entry);
    _Alignas(LINE_BYTES) uint8_t line[LINE_BYTES];
    if (number >= c->facts.lines || slot == 0 || slot > slot_ones(width) || !stash_copies(entry))
        return "an entry of its stash";
    memcpy(line, lines + LINE_BYTES * number, LINE_BYTES);
    if ((line_bound(line, width) & ~LINE_BARE) > (slot_order(slot) | 1))
        return "an entry of its stash that lookups would not see";
    const struct body shape = shape_of(c);
    c->from = first_of(&shape, number);
    c->end = first_of(&shape, number + 1);
    c->used++;
    c->stashed++;
    bool differs = !slot_in_line(line, width, slot);
    return check_slot(c, number, slot, stash_copies(entry), differs)
               ? NULL
               : "an entry of its stash that does not belong to its line";
}

/* Does the entry of a cell, or its line, differ from the other version of the part? */
static bool stash_differs(const struct part_check *c, uint64_t entry, uint32_t at)
{
    uint64_t line = stash_line(entry);
    return !c->changed || line >= c->facts.lines || c->changed[line / 8] >> line % 8 & 1 ||
           !c->other || fetch_u64(c->other + sizeof(uint64_t) * at) != entry;
}

/* Goes round from a free cell: the home of an entry must be in the run that leads to it. */
const char *part_check_stash(struct part_check *c, const uint8_t *lines, const uint8_t *stash)
{
    uint32_t room = c->facts.stash, first = 0, run = 0;
    const struct stash table = {.room = room};
    while (first < room && fetch_u64(stash + sizeof(uint64_t) * first))
        first++;
    if (first == room)
        return "no cell of its stash is free";
    for (uint32_t i = 1; i <= room; i++) {
        uint32_t at = (uint32_t)(((uint64_t)first + i) % room);
        uint64_t entry = fetch_u64(stash + sizeof(uint64_t) * at);
        if (entry == 0) {
            run = 0;
            continue;
        }
        uint32_t home = stash_home(&table, stash_line(entry));
        uint32_t far = at >= home ? at - home : at + (room - home);
        if (far > run || ++run > STASH_RUN_MAX)
            return far >= run ? "an entry of its stash that lookups would not reach"
                              : "the entries of its stash are too close to one another";
        const char *wrong = stash_differs(c, entry, at) ? check_stashed(c, lines, entry) : NULL;
        if (wrong)
            return wrong;
    }
    return NULL;
}

const char *part_check_list(struct part_check *c, enum part_bytes what, const struct apart *list)
{
    const struct body shape = shape_of(c);
    unsigned bits = body_bits(&shape), width = c->facts.width;
    uint32_t n = what == PART_COARSE ? c->facts.coarse : c->facts.excess;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t key = list[i].key;
        unsigned u = key ? (unsigned)__builtin_ctzll(key) : 64;
        if (u > bits || key >> (bits + 1) || list[i].copies == 0 || (i && key <= list[i - 1].key) ||
            is_coarse(width, u) != (what == PART_COARSE) ||
            __builtin_add_overflow(c->keys, list[i].copies, &c->keys))
            return "an entry of its lists";
        if (what == PART_EXCESS)
            continue;
        struct line_span span = span_of(&shape, key);
        c->mass += key & -key;
        if (c->skim)
            continue;
        if (span.last - span.first >= c->coarse_slots - c->derived)
            return "copies of its lists that no line has";
        c->derived += span.last - span.first + 1;
        for (uint64_t line = span.first; line <= span.last; line++)
            c->coarse -= mixed(line, slot_in(&shape, key, line));
    }
    return NULL;
}

const char *part_check_end(const struct part_check *c)
{
    const struct part_facts *p = &c->facts;
    if (c->straddling)
        return "an entry between two lines that only one has";
    if (c->coarse || c->coarse_slots != c->derived)
        return "slots that its lists do not have";
    if (c->used != p->used || c->keys != p->keys || c->mass != p->mass || c->stashed != p->stashed)
        return "its number of entries is wrong";
    return NULL;
}

/* The stash and the lists. */
static const char *check_rest(struct part_check *c, const struct body *b)
{
    const char *wrong = NULL;
    if (c->facts.stash)
        wrong = part_check_stash(c, b->line, part_data(b, PART_STASH));
    c->coarse_slots += c->coarse_elsewhere;
    for (unsigned what = PART_COARSE; !wrong && what < PART_PIECES; what++)
        if (part_len(&c->facts, what))
            wrong = part_check_list(c, what, (const void *)part_data(b, what));
    return wrong;
}

const char *part_wrong(const struct body *b)
{
    struct part_facts facts = part_facts(b);
    struct part_check c;
    part_check_begin(&c, &facts);
    const char *wrong = part_check_lines(&c, b->line, b->lines);
    wrong = wrong ? wrong : check_rest(&c, b);
    return wrong ? wrong : part_check_end(&c);
}

/* Adds what differs from the other version. */
static const char *check_changed(struct part_check *c, const struct body *b)
{
    const struct body shape = shape_of(c);
    const char *wrong = NULL;
    for (uint64_t i = 0; i < b->lines && !wrong; i++)
        if (c->changed[i / 8] >> i % 8 & 1) {
            c->line = i;
            c->from = first_of(&shape, i);
            wrong = check_line_at(c, &shape, b->line);
        }
    return wrong ? wrong : check_rest(c, b);
}

/* Only sums over slots and entries are checked. Where these differ, the old ones are subtracted from the sums of the old
   part, and the new ones are added. */
const char *part_wrong_since(const struct body *b, const struct body *before,
                             const uint8_t *changed)
{
    struct part_facts facts = part_facts(b), had = part_facts(before);
    struct part_check now, old;
    bool same = had.stash == facts.stash && facts.stash;
    part_check_begin(&now, &facts);
    part_check_begin(&old, &had);
    now.changed = old.changed = changed;
    now.other = same ? part_data(before, PART_STASH) : NULL;
    old.other = same ? part_data(b, PART_STASH) : NULL;
    old.coarse_elsewhere = UINT64_MAX / 2; /* it is right: its lists are not compared */
    const char *wrong = check_changed(&old, before);
    uint64_t coarse = old.coarse_slots - old.coarse_elsewhere;
    now.coarse_elsewhere = old.derived - coarse;
    wrong = wrong ? wrong : check_changed(&now, b);
    if (wrong)
        return wrong;
    now.used += had.used - old.used;
    if (__builtin_add_overflow(now.keys, had.keys - old.keys, &now.keys))
        return "an entry of its lists";
    now.mass += had.mass - old.mass;
    now.stashed += had.stashed - old.stashed;
    now.straddling -= old.straddling;
    now.coarse -= old.coarse;
    return part_check_end(&now);
}
