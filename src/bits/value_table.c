/* Exact verification values with their number of copies: open addressing, one cache miss per
   lookup. Values are added while others read; a table is saved, merged and loaded in the order
   of hashes, in linear time. */
#include "value_table.h"

#include "base/bytes.h"

static struct table_slots *slots_of(const struct table *table)
{
    return atomic_load_explicit(&table->slots, memory_order_acquire);
}

static uint64_t slot_count(const struct table_slot *slot)
{
    return atomic_load_explicit(&slot->count, memory_order_acquire);
}

static uint64_t slot_value(const struct table_slot *slot)
{
    return atomic_load_explicit(&slot->value, memory_order_relaxed);
}

static void slot_set(struct table_slot *slot, uint64_t value, uint64_t count)
{
    atomic_store_explicit(&slot->value, value, memory_order_relaxed);
    atomic_store_explicit(&slot->count, count, memory_order_release);
}

uint64_t table_hash(uint64_t value)
{
    return mul_fold(value ^ GOLDEN, GOLDEN);
}

static size_t home_of(const struct table_slots *slots, uint64_t value)
{
    return (size_t)(table_hash(value) >> slots->shift);
}

/* The slot of the value, or the free one where it would be stored. */
static struct table_slot *seek(const struct table_slots *slots, uint64_t value)
{
    size_t i = home_of(slots, value);
    while (slot_count(&slots->slot[i]) != 0 && slot_value(&slots->slot[i]) != value)
        i = (i + 1) & (slots->room - 1);
    return &slots->slot[i];
}

static struct table_slots *slots_new(const tamis_allocator *a, size_t room)
{
    struct table_slots *slots = mem_new0(a, 1, sizeof *slots);
    size_t bytes;
    if (slots && mul_size(room, sizeof *slots->slot, &bytes) &&
        block_new(a, bytes, &slots->memory)) {
        slots->room = room;
        slots->shift = (unsigned)__builtin_clzll(room) + 1;
        slots->slot = slots->memory.data;
        return slots;
    }
    mem_free(a, slots, 1, sizeof *slots);
    return NULL;
}

static void slots_free(struct table_slots *slots, const tamis_allocator *a)
{
    while (slots) {
        struct table_slots *older = slots->retired;
        block_free(a, &slots->memory);
        mem_free(a, slots, 1, sizeof *slots);
        slots = older;
    }
}

void table_free(struct table *table, const tamis_allocator *a)
{
    slots_free(slots_of(table), a);
    *table = (struct table){.slots = NULL};
}

void table_clear(struct table *table)
{
    struct table_slots *slots = slots_of(table);
    if (slots)
        memset(slots->memory.data, 0, slots->room * sizeof *slots->slot);
    table->used = 0;
}

bool table_replaced(const struct table *table)
{
    const struct table_slots *slots = slots_of(table);
    return slots && slots->retired;
}

void table_reclaim(struct table *table, const tamis_allocator *a)
{
    struct table_slots *slots = slots_of(table);
    if (!slots)
        return;
    slots_free(slots->retired, a);
    slots->retired = NULL;
}

unsigned table_shift(size_t values)
{
    unsigned bits = 4;
    while (bits < 62 && values > ((size_t)3 << bits) / 4)
        bits++;
    return 64 - bits;
}

/* At most three quarters are in use: unsuccessful lookups end after about eight slots, two cache
   lines. 0: there cannot be that many. */
static size_t slots_for(const struct table *table, size_t more)
{
    size_t need = table->used + more, room = slots_of(table) ? slots_of(table)->room : 16;
    if (need < more || need > SIZE_MAX / 4)
        return 0;
    while (need > room - room / 4)
        room *= 2;
    return room;
}

uint64_t table_growth(const struct table *table, size_t more)
{
    const struct table_slots *old = slots_of(table);
    size_t room = slots_for(table, more);
    if (room == 0)
        return UINT64_MAX;
    return old ? (room - old->room) * sizeof *old->slot : room * sizeof *old->slot + sizeof *old;
}

bool table_reserve(struct table *table, const tamis_allocator *a, size_t more)
{
    struct table_slots *old = slots_of(table);
    size_t room = slots_for(table, more);
    if (room == 0 || (old && room == old->room))
        return room != 0;
    struct table_slots *slots = slots_new(a, room);
    if (!slots)
        return false;
    for (size_t i = 0; old && i < old->room; i++) {
        uint64_t count = slot_count(&old->slot[i]), value = slot_value(&old->slot[i]);
        if (count)
            slot_set(seek(slots, value), value, count);
    }
    slots->retired = old;
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return true;
}

/* ---- a mapped file --------------------------------------------------------------------------- */

/* The expected index of a hash among n hashes that are spread evenly from `low` to `high`. */
static size_t guess(size_t n, uint64_t low, uint64_t high, uint64_t hash)
{
    unsigned __int128 part = (unsigned __int128)(n - 1) * (hash - low);
    return high > low ? (size_t)(part / (high - low)) : n / 2;
}

/* Hashes are evenly spread, so a guess is off by about the square root of the remaining range:
   about four reads for millions of values. Every fourth read halves the range, whatever the
   bytes are. */
static uint64_t view_get(const struct table *table, uint64_t value)
{
    uint64_t hash = table_hash(value), from = 0, to = UINT64_MAX;
    size_t low = 0, high = table->used;
    for (unsigned look = 0; low < high; look++) {
        size_t n = high - low, at = low + (look % 4 == 3 ? n / 2 : guess(n, from, to, hash));
        const uint8_t *pair = table->view + TABLE_PAIR * at;
        uint64_t there = get_u64(pair), its = table_hash(there);
        if (there == value)
            return get_u64(pair + 8);
        if (its < hash || (its == hash && there < value)) {
            low = at + 1;
            from = its;
        } else {
            high = at;
            to = its;
        }
    }
    return 0;
}

uint64_t table_get(const struct table *table, uint64_t value)
{
    const struct table_slots *slots = slots_of(table);
    if (slots)
        return slot_count(seek(slots, value));
    return table->view ? view_get(table, value) : 0;
}

void table_prefetch(const struct table *table, uint64_t value)
{
    const struct table_slots *slots = slots_of(table);
    if (slots)
        __builtin_prefetch(&slots->slot[home_of(slots, value)]);
    else if (table->used)
        __builtin_prefetch(table->view +
                           TABLE_PAIR * guess(table->used, 0, UINT64_MAX, table_hash(value)));
}

uint64_t table_add(struct table *table, uint64_t value, uint64_t copies)
{
    struct table_slot *slot = seek(slots_of(table), value);
    uint64_t before = slot_count(slot);
    table->used += before == 0 && copies != 0;
    slot_set(slot, value, before + copies);
    return before;
}

void table_append(struct table *table, size_t *next, uint64_t value, uint64_t copies)
{
    struct table_slots *slots = slots_of(table);
    size_t mask = slots->room - 1, home = home_of(slots, value), at = home > *next ? home : *next;
    while (slot_count(&slots->slot[at & mask])) /* only past the end, where it wraps around */
        at++;
    slot_set(&slots->slot[at & mask], value, copies);
    table->used++;
    *next = at + 1;
}

/* Closes the gap by moving back entries that would no longer be found. */
static void slot_delete(struct table_slots *slots, struct table_slot *gone)
{
    size_t mask = slots->room - 1, hole = (size_t)(gone - slots->slot);
    for (size_t i = (hole + 1) & mask; slot_count(&slots->slot[i]); i = (i + 1) & mask) {
        uint64_t value = slot_value(&slots->slot[i]);
        size_t home = home_of(slots, value);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            slot_set(&slots->slot[hole], value, slot_count(&slots->slot[i]));
            hole = i;
        }
    }
    slot_set(&slots->slot[hole], 0, 0);
}

uint64_t table_sub(struct table *table, uint64_t value, uint64_t copies)
{
    struct table_slots *slots = slots_of(table);
    struct table_slot *slot = slots ? seek(slots, value) : NULL;
    uint64_t before = slot ? slot_count(slot) : 0;
    if (before == 0)
        return 0;
    if (copies < before) {
        slot_set(slot, value, before - copies);
        return before - copies;
    }
    slot_delete(slots, slot);
    table->used--;
    return 0;
}

/* ---- all values ------------------------------------------------------------------------------ */

/* The next run of used slots. The first is the one at slot 0; entries of it that wrapped around
   from the end belong to the last run, which continues past the end. False after the last run,
   or to pause. */
static bool next_run(const struct table_slots *slots, struct table_walk *w)
{
    size_t room = slots->room, stop = w->stop && w->stop < room ? w->stop : room;
    bool first = w->high == 0;
    if (!first && w->to >= room)
        return false;
    w->from = w->to;
    while (!first && w->from < stop && slot_count(&slots->slot[w->from]) == 0)
        w->from++;
    w->to = w->from;
    while (w->to < room && slot_count(&slots->slot[w->to]))
        w->to++;
    w->high = first ? w->to + 1 : room;
    for (size_t i = 0; !first && w->to == room + i && slot_count(&slots->slot[i]); i++)
        w->to++;
    return w->from < w->to || first;
}

/* The smallest entry of the run after the previous one: runs are short, so scanning again is
   cheap. */
static bool next_in_run(const struct table_slots *slots, struct table_walk *w)
{
    w->looked += w->to - w->from;
    struct table_walk best = *w;
    bool found = false;
    for (size_t i = w->from; i < w->to; i++) {
        const struct table_slot *slot = &slots->slot[i & (slots->room - 1)];
        uint64_t value = slot_value(slot), hash = table_hash(value);
        size_t home = (size_t)(hash >> slots->shift);
        bool after = w->passed == 0 || hash > w->hash || (hash == w->hash && value > w->value);
        if (home >= w->high || !after)
            continue;
        if (found && (hash > best.hash || (hash == best.hash && value > best.value)))
            continue;
        best.hash = hash, best.value = value, best.count = slot_count(slot);
        found = true;
    }
    *w = best;
    w->passed += found;
    return found;
}

bool table_next(struct table_walk *w)
{
    const struct table_slots *slots = slots_of(w->table);
    if (w->passed == w->table->used)
        return false;
    if (!slots) {
        const uint8_t *pair = w->table->view + TABLE_PAIR * w->passed++;
        w->value = get_u64(pair);
        w->count = get_u64(pair + 8);
        return true;
    }
    while (!next_in_run(slots, w))
        if (!next_run(slots, w))
            return false;
    return true;
}

bool table_unite(struct table *to, const struct table *from, const tamis_allocator *a)
{
    struct table_walk walk = {.table = from};
    if (from->used && !table_reserve(to, a, from->used))
        return false;
    while (table_next(&walk))
        table_add(to, walk.value, walk.count);
    return true;
}

bool table_equal(const struct table *x, const struct table *y)
{
    struct table_walk walk = {.table = x};
    if (x->used != y->used)
        return false;
    while (table_next(&walk))
        if (table_get(y, walk.value) != walk.count)
            return false;
    return true;
}

size_t table_bytes(const struct table *table)
{
    size_t bytes = 0;
    for (const struct table_slots *slots = slots_of(table); slots; slots = slots->retired)
        bytes += sizeof *slots + slots->memory.size;
    return bytes;
}
