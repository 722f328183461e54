/* Pairing heaps of watches, found by a hash of what is watched: a counter that falls finds its
   waiting entries in O(log n), for any number of them. */
#include "pending_watch.h"

void watches_free(struct watches *w, const tamis_allocator *a)
{
    mem_free(a, w->list, w->room, sizeof *w->list);
    mem_free(a, w->heads, w->room, sizeof *w->heads);
    *w = (struct watches)WATCHES_NONE;
}

void watches_clear(struct watches *w)
{
    w->fresh = 0;
    w->free = NO_ENTRY;
    for (uint32_t i = 0; i < w->room; i++)
        w->heads[i] = NO_ENTRY;
}

static uint32_t *head_of(const struct watches *w, uint32_t hash)
{
    return &w->heads[hash & (w->room - 1)];
}

/* ---- heaps ----------------------------------------------------------------------------------- */

static uint32_t top_of(const struct watches *w, uint32_t hash)
{
    uint32_t at = w->room ? *head_of(w, hash) : NO_ENTRY;
    while (at != NO_ENTRY && w->list[at].hash != hash)
        at = w->list[at].next;
    return at;
}

/* Makes it a heap that is found by its hash. */
static void show(struct watches *w, uint32_t top)
{
    uint32_t *head = head_of(w, w->list[top].hash);
    w->list[top].next = *head;
    w->list[top].prev = NO_ENTRY;
    if (*head != NO_ENTRY)
        w->list[*head].prev = top;
    *head = top;
}

/* Unlinks it from its list; what is below it stays there. */
static void unlink_watch(struct watches *w, uint32_t at)
{
    const struct watch *gone = &w->list[at];
    if (gone->prev == NO_ENTRY)
        *head_of(w, gone->hash) = gone->next;
    else if (w->list[gone->prev].child == at)
        w->list[gone->prev].child = gone->next;
    else
        w->list[gone->prev].next = gone->next;
    if (gone->next != NO_ENTRY)
        w->list[gone->next].prev = gone->prev;
}

/* Melds two heaps that are in no list: the lower one goes below the other. */
static uint32_t meld(struct watches *w, uint32_t x, uint32_t y)
{
    uint32_t high = w->list[x].level < w->list[y].level ? y : x, low = high == x ? y : x;
    uint32_t child = w->list[high].child;
    w->list[low].next = child;
    w->list[low].prev = high;
    if (child != NO_ENTRY)
        w->list[child].prev = low;
    w->list[high].child = low;
    return high;
}

/* Melds a list of heaps into one: in pairs from the first on, then all from the last on. */
static uint32_t meld_all(struct watches *w, uint32_t first)
{
    uint32_t pairs = NO_ENTRY, all = NO_ENTRY;
    while (first != NO_ENTRY) {
        uint32_t x = first, y = w->list[x].next;
        first = y == NO_ENTRY ? NO_ENTRY : w->list[y].next;
        x = y == NO_ENTRY ? x : meld(w, x, y);
        w->list[x].next = pairs;
        pairs = x;
    }
    while (pairs != NO_ENTRY) {
        uint32_t next = w->list[pairs].next;
        all = all == NO_ENTRY ? pairs : meld(w, all, pairs);
        pairs = next;
    }
    return all;
}

/* Adds it to the others with its hash. */
static void join(struct watches *w, uint32_t heap)
{
    uint32_t top = top_of(w, w->list[heap].hash);
    if (top != NO_ENTRY) {
        unlink_watch(w, top);
        heap = meld(w, top, heap);
    }
    show(w, heap);
}

/* ---- memory ---------------------------------------------------------------------------------- */

bool watches_reserve(struct watches *w, const tamis_allocator *a, size_t n)
{
    struct watches grown = *w;
    size_t room = w->room ? w->room : 256;
    while (room < n && room <= NO_ENTRY / 2)
        room *= 2;
    if (n <= w->room)
        return true;
    if (room > NO_ENTRY / 2)
        return false;
    grown.list = mem_new(a, room, sizeof *grown.list);
    grown.heads = mem_new(a, room, sizeof *grown.heads);
    grown.room = (uint32_t)room;
    if (!grown.list || !grown.heads) {
        mem_free(a, grown.list, room, sizeof *grown.list);
        mem_free(a, grown.heads, room, sizeof *grown.heads);
        return false;
    }
    if (w->fresh)
        memcpy(grown.list, w->list, w->fresh * sizeof *grown.list);
    for (uint32_t i = 0; i < grown.room; i++)
        grown.heads[i] = NO_ENTRY;
    for (uint32_t i = 0; i < w->room; i++)
        for (uint32_t top = w->heads[i]; top != NO_ENTRY; top = w->list[top].next)
            show(&grown, top);
    mem_free(a, w->list, w->room, sizeof *w->list);
    mem_free(a, w->heads, w->room, sizeof *w->heads);
    *w = grown;
    return true;
}

/* ---- watches --------------------------------------------------------------------------------- */

uint32_t watch_add(struct watches *w, uint32_t hash, uint64_t level, uint32_t who, uint32_t others)
{
    uint32_t at = w->free;
    if (at == NO_ENTRY)
        at = w->fresh++;
    else
        w->free = w->list[at].own;
    w->list[at] = (struct watch){level, who, hash, others, NO_ENTRY, NO_ENTRY, NO_ENTRY};
    join(w, at);
    return at;
}

void watch_remove(struct watches *w, uint32_t first)
{
    while (first != NO_ENTRY) {
        uint32_t at = first, below = meld_all(w, w->list[at].child);
        unlink_watch(w, at);
        if (below != NO_ENTRY)
            join(w, below);
        first = w->list[at].own;
        w->list[at].own = w->free;
        w->free = at;
    }
}

uint32_t watch_told(const struct watches *w, uint32_t hash, uint64_t value)
{
    uint32_t top = top_of(w, hash);
    return top != NO_ENTRY && w->list[top].level >= value ? top : NO_ENTRY;
}
