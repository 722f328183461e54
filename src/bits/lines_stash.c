/* The stash of a part and its lists of entries outside of lines: the writer's side. See lines_stash.h. */
#include "lines_stash.h"

size_t stash_bytes(uint32_t room)
{
    return sizeof(struct stash) + room * sizeof(uint64_t);
}

static bool stash_views(const struct stash *stash)
{
    return stash->entry != (const uint64_t *)(const void *)(stash + 1);
}

struct stash *stash_view(const tamis_allocator *a, uint32_t room, const uint64_t *entry)
{
    struct stash *stash = mem_new0(a, 1, sizeof *stash);
    if (stash) {
        stash->room = room;
        stash->entry = (uint64_t *)(uintptr_t)entry;
    }
    return stash;
}

struct stash *stash_new(const tamis_allocator *a, uint32_t room)
{
    struct stash *stash = mem_new0(a, 1, stash_bytes(room));
    if (stash) {
        stash->room = room;
        stash->entry = (uint64_t *)(void *)(stash + 1);
    }
    return stash;
}

struct stash *stash_copy(const tamis_allocator *a, const struct stash *from)
{
    struct stash *copy = stash_new(a, from->room);
    for (uint32_t i = 0; copy && i < from->room; i++) {
        uint64_t entry = word_load(&from->entry[i]);
        if (stash_slot(entry) && stash_fits(copy, 1)) {
            copy->entry[i] = entry;
            copy->used++;
        }
    }
    return copy;
}

void stash_free(struct stash *stash, const tamis_allocator *a)
{
    if (stash)
        mem_free(a, stash, 1, stash_bytes(stash_views(stash) ? 0 : stash->room));
}

uint32_t stash_find(const struct stash *stash, uint64_t line, uint32_t slot)
{
    STASH_RUN(stash, line, at)
    if (stash->entry[at] >> 12 == (line << 24 | slot))
        return at;
    return stash->room;
}

uint32_t stash_least(const struct stash *stash, uint64_t line)
{
    uint32_t best = stash->room;
    STASH_RUN(stash, line, at)
    if (stash_line(stash->entry[at]) == line &&
        (best == stash->room ||
         slot_order(stash_slot(stash->entry[at])) < slot_order(stash_slot(stash->entry[best]))))
        best = at;
    return best;
}

/* Is a run around a cell, with this many more entries, longer than `most`? These fill the next free cells, so runs beyond
   them may be joined. */
static bool run_exceeds(const struct stash *stash, uint32_t cell, unsigned more, uint32_t most)
{
    uint32_t at = cell, run = more;
    for (unsigned left = more; run <= most; at = stash_next(stash, at))
        if (stash->entry[at])
            run++;
        else if (left-- == 0)
            break;
    at = cell;
    while (run <= most && stash->entry[at = at ? at - 1 : stash->room - 1])
        run++;
    return run > most;
}

bool stash_crowded(const struct stash *stash, uint64_t line, unsigned more)
{
    return UNLIKELY(stash->room > STASH_RUN_MAX) &&
           run_exceeds(stash, stash_home(stash, line), more, STASH_RUN_MAX / 2);
}

static void stash_put(struct stash *stash, uint64_t entry)
{
    uint32_t at = stash_home(stash, stash_line(entry));
    while (stash->entry[at])
        at = stash_next(stash, at);
    __atomic_store_n(&stash->entry[at], entry, __ATOMIC_RELEASE);
    stash->used++;
}

enum stash_added stash_add(struct body *b, uint64_t line, uint32_t slot, uint64_t copies)
{
    struct stash *stash = atomic_load_explicit(&b->stash, memory_order_relaxed);
    uint32_t at = stash_home(stash, line);
    uint64_t entry;
    for (; (entry = stash->entry[at]) != 0; at = stash_next(stash, at)) {
        if (entry >> 12 != (line << 24 | slot))
            continue;
        if (stash_copies(entry) + copies > STASH_COPIES)
            return STASH_FULL;
        __atomic_store_n(&stash->entry[at], entry + copies, __ATOMIC_RELAXED);
        stash_changed(b, at);
        return STASH_OLD;
    }
    entry = line << 36 | (uint64_t)slot << 12 | copies;
    __atomic_store_n(&stash->entry[at], entry, __ATOMIC_RELEASE);
    stash_changed(b, at);
    stash->used++;
    return STASH_NEW;
}

/* A run that is too long contains one of the cells that are looked at. */
bool stash_pour(struct stash *to, const struct stash *from)
{
    bool good = true;
    for (uint32_t i = 0; from && i < from->room; i++)
        if (from->entry[i])
            stash_put(to, from->entry[i]);
    for (uint64_t i = 0; i < to->room && to->room > STASH_RUN_MAX && good; i += STASH_RUN_MAX)
        good = !run_exceeds(to, (uint32_t)i, 0, STASH_RUN_MAX);
    return good;
}

/* Closes a gap: entries after it, up to the next free cell, move back if their home allows it. */
static void stash_close(struct body *b, uint32_t hole)
{
    struct stash *stash = atomic_load(&b->stash);
    for (uint32_t at = stash_next(stash, hole); stash->entry[at]; at = stash_next(stash, at)) {
        uint32_t home = stash_home(stash, stash_line(stash->entry[at]));
        bool stays = hole < at ? hole < home && home <= at : hole < home || home <= at;
        if (stays)
            continue;
        stash->entry[hole] = stash->entry[at];
        stash_changed(b, hole);
        hole = at;
    }
    stash->entry[hole] = 0;
    stash_changed(b, hole);
}

bool stash_take(struct body *b, uint32_t at)
{
    struct stash *stash = atomic_load(&b->stash);
    if (stash_copies(stash->entry[at]) > 1) {
        stash->entry[at]--;
        stash_changed(b, at);
        return false;
    }
    stash->used--;
    stash_close(b, at);
    return true;
}

/* ---- entries apart --------------------------------------------------------------------------- */

/* The first entry that is not less than the key. */
static uint32_t apart_from(const struct apart_list *list, uint64_t key)
{
    return SEARCH(i, list->n, list->entry[i].key < key);
}

uint32_t apart_find(const struct apart_list *list, uint64_t key)
{
    uint32_t i = apart_from(list, key);
    return i < list->n && list->entry[i].key == key ? i : NOT_LISTED;
}

uint32_t apart_match(const struct apart_list *list, uint64_t w)
{
    uint32_t at = apart_from(list, w << 1 | 1), i = NOT_LISTED;
    uint64_t below = at ? list->entry[at - 1].key : 0;
    uint64_t above = at < list->n ? list->entry[at].key : UINT64_MAX;
    uint64_t last = list->n ? list->entry[list->n - 1].key : 0;
    for (unsigned u = 0; u < 63 && UINT64_C(1) << u <= last && i == NOT_LISTED; u++) {
        uint64_t key = w >> u << u << 1 | UINT64_C(1) << u;
        if (key <= below || key >= above) /* most are between the neighbours of the key */
            i = apart_find(list, key);
    }
    return i;
}

static uint32_t apart_room(const struct apart_list *list)
{
    return list->n < list->room ? list->room : list->room + list->room / 2 + 4;
}

uint64_t apart_needs(const struct rare *rare, const struct apart_list *list)
{
    uint64_t more = list ? apart_room(list) - list->room : 4;
    return more * sizeof(struct apart) + (more && rare_bytes(rare) == 0 ? sizeof *rare : 0);
}

bool apart_reserve(struct apart_list *list, const tamis_allocator *a)
{
    uint32_t room = apart_room(list);
    if (room == list->room)
        return true;
    struct apart *larger = mem_grow(a, list->entry, list->room, room, sizeof *larger);
    if (!larger)
        return false;
    list->entry = larger;
    list->room = room;
    return true;
}

bool apart_add(struct apart_list *list, uint64_t key, uint64_t copies)
{
    uint32_t i = apart_from(list, key);
    bool fresh = i == list->n || list->entry[i].key != key;
    if (fresh) {
        memmove(list->entry + i + 1, list->entry + i, (list->n - i) * sizeof *list->entry);
        list->entry[i] = (struct apart){key, 0};
        list->n++;
    }
    list->entry[i].copies += copies;
    return fresh;
}

bool apart_take(struct apart_list *list, uint32_t i)
{
    if (--list->entry[i].copies)
        return false;
    memmove(list->entry + i, list->entry + i + 1, (--list->n - i) * sizeof *list->entry);
    return true;
}

struct rare *rare_of(struct body *b, const tamis_allocator *a)
{
    if (!b->rare)
        b->rare = mem_new0(a, 1, sizeof *b->rare);
    return b->rare;
}

void rare_free(struct rare *rare, const tamis_allocator *a)
{
    if (!rare)
        return;
    kept_sums_free(rare->line_sums, a);
    kept_sums_free(rare->stash_sums, a);
    mem_free(a, rare->coarse.entry, rare->coarse.room, sizeof(struct apart));
    mem_free(a, rare->excess.entry, rare->excess.room, sizeof(struct apart));
    mem_free(a, rare, 1, sizeof *rare);
}

uint64_t rare_bytes(const struct rare *rare)
{
    uint64_t room = rare ? (uint64_t)rare->coarse.room + rare->excess.room : 0;
    return room ? sizeof *rare + room * sizeof(struct apart) : 0;
}

void stash_sums_drop(struct body *b, const tamis_allocator *a)
{
    if (!b->rare)
        return;
    kept_sums_free(b->rare->stash_sums, a);
    b->rare->stash_sums = NULL;
}
