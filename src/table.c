/* See table.h. */
#include "table.h"

#define TABLE_MIX UINT64_C(0x9E3779B97F4A7C15)

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

static size_t home_of(const struct table_slots *slots, uint64_t value)
{
    return mul_fold(value ^ TABLE_MIX, TABLE_MIX) & (slots->room - 1);
}

/* The slot of the value, or the free one where it would go. */
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

void table_reclaim(struct table *table, const tamis_allocator *a)
{
    struct table_slots *slots = slots_of(table);
    if (!slots)
        return;
    slots_free(slots->retired, a);
    slots->retired = NULL;
}

/* At most three quarters are used: lookups that fail end after some eight slots, two lines. */
bool table_reserve(struct table *table, const tamis_allocator *a, size_t more)
{
    struct table_slots *old = slots_of(table);
    size_t need = table->used + more, room = old ? old->room : 16;
    if (need < more || need > SIZE_MAX / 4)
        return false;
    if (old && need <= room - room / 4)
        return true;
    while (need > room - room / 4)
        room *= 2;
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

uint64_t table_get(const struct table *table, uint64_t value)
{
    const struct table_slots *slots = slots_of(table);
    return slots ? slot_count(seek(slots, value)) : 0;
}

void table_prefetch(const struct table *table, uint64_t value)
{
    const struct table_slots *slots = slots_of(table);
    if (slots)
        __builtin_prefetch(&slots->slot[home_of(slots, value)]);
}

uint64_t table_add(struct table *table, uint64_t value, uint64_t copies)
{
    struct table_slot *slot = seek(slots_of(table), value);
    uint64_t before = slot_count(slot);
    table->used += before == 0 && copies != 0;
    slot_set(slot, value, before + copies);
    return before;
}

/* Closes the gap by moving back what would no longer be found. */
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

bool table_unite(struct table *to, const struct table *from, const tamis_allocator *a)
{
    const struct table_slots *slots = slots_of(from);
    if (from->used == 0)
        return true;
    if (!table_reserve(to, a, from->used))
        return false;
    for (size_t i = 0; i < slots->room; i++)
        if (slot_count(&slots->slot[i]))
            table_add(to, slot_value(&slots->slot[i]), slot_count(&slots->slot[i]));
    return true;
}

bool table_equal(const struct table *x, const struct table *y)
{
    const struct table_slots *slots = slots_of(x);
    if (x->used != y->used)
        return false;
    for (size_t i = 0; slots && i < slots->room; i++) {
        uint64_t count = slot_count(&slots->slot[i]);
        if (count && table_get(y, slot_value(&slots->slot[i])) != count)
            return false;
    }
    return true;
}

size_t table_bytes(const struct table *table)
{
    size_t bytes = 0;
    for (const struct table_slots *slots = slots_of(table); slots; slots = slots->retired)
        bytes += sizeof *slots + slots->memory.size;
    return bytes;
}
