/* The extents of an arena: placing blocks, and returning pages to the system. See arena.h. */
#include "arena.h"

#include "mem.h"

#define LINE ((size_t)64)

/* The first extent after the address. */
static uint32_t extent_behind(const struct arena *a, const char *at)
{
    return SEARCH(i, a->n, a->free[i].at < at);
}

/* The free space at the end of the log. */
static struct extent log_end(const struct arena *a)
{
    uint32_t i = a->low ? extent_behind(a, a->low) : a->n;
    return i < a->n && a->free[i].at == a->low ? a->free[i] : (struct extent){a->low, 0};
}

/* Where a block goes: the end of the log, or the highest extent that fits; n if it needs more pages. */
static uint32_t extent_for(const struct arena *a, size_t bytes)
{
    uint32_t i = a->n;
    if (log_end(a).bytes >= bytes)
        return extent_behind(a, a->low);
    if (a->unused <= a->mapped / 4 + a->page)
        return a->n;
    while (i > 0 && a->free[i - 1].bytes < bytes)
        i--;
    return i > 0 ? i - 1 : a->n;
}

static void extent_drop(struct arena *a, uint32_t i)
{
    memmove(a->free + i, a->free + i + 1, (--a->n - i) * sizeof *a->free);
}

static void extent_insert(struct arena *a, uint32_t i, struct extent new)
{
    memmove(a->free + i + 1, a->free + i, (a->n++ - i) * sizeof *a->free);
    a->free[i] = new;
}

static void extent_add(struct arena *a, char *at, size_t bytes)
{
    uint32_t i = extent_behind(a, at);
    a->unused += bytes;
    bool before = i > 0 && a->free[i - 1].at + a->free[i - 1].bytes == at;
    bool behind = i < a->n && at + bytes == a->free[i].at;
    if (before) {
        a->free[i - 1].bytes += bytes + (behind ? a->free[i].bytes : 0);
        if (behind)
            extent_drop(a, i);
    } else if (behind) {
        a->free[i] = (struct extent){at, bytes + a->free[i].bytes};
    } else {
        extent_insert(a, i, (struct extent){at, bytes});
    }
}

static bool room_for_one(struct arena *a)
{
    size_t most =
        a->n + 2 * a->blocks + 4; /* freeing a block may add an extent, and so may unmapping */
    if (most <= a->room)
        return true;
    size_t room = most + most / 2 + 8;
    struct extent *larger =
        room < UINT32_MAX ? mem_grow(&mem_system, a->free, a->room, room, sizeof *larger) : NULL;
    if (!larger)
        return false;
    a->free = larger;
    a->room = (uint32_t)room;
    return true;
}

size_t arena_needs(const struct arena *a, size_t bytes)
{
    bytes = round_up(bytes, LINE);
    return extent_for(a, bytes) < a->n ? 0 : round_up(bytes - log_end(a).bytes, a->page);
}

/* The whole pages of an extent; empty if there are none. */
static struct extent whole_pages(const struct arena *a, uint32_t i)
{
    struct extent e = a->free[i];
    char *from = (char *)round_up((uintptr_t)e.at, a->page);
    char *to = (char *)((uintptr_t)(e.at + e.bytes) & ~(uintptr_t)(a->page - 1));
    return (struct extent){from, from < to ? (size_t)(to - from) : 0};
}

/* Takes pages out of an extent that has them; there is room for one more extent. */
static void pages_drop(struct arena *a, uint32_t i, struct extent pages)
{
    struct extent whole = a->free[i];
    char *to = pages.at + pages.bytes;
    size_t behind = (size_t)(whole.at + whole.bytes - to);
    a->mapped -= pages.bytes;
    a->unused -= pages.bytes;
    a->free[i].bytes = (size_t)(pages.at - whole.at);
    if (whole.at == a->low)
        a->low = pages.at > whole.at ? a->low : behind ? to : NULL;
    if (behind)
        extent_insert(a, i + 1, (struct extent){to, behind});
    if (a->free[i].bytes == 0)
        extent_drop(a, i);
}

/* Replaces new pages by free ones of the other end, which have been touched. Small pages are populated anyway. */
static void log_recycle(struct arena *a, struct extent new)
{
    for (uint32_t i = a->n; i-- > 0 && new.bytes && a->page >= HUGE_PAGE;) {
        struct extent pages = whole_pages(a, i);
        pages.bytes = pages.bytes < new.bytes ? pages.bytes : new.bytes;
        if (pages.bytes == 0 || a->free[i].at == a->low)
            continue;
        new.bytes -= pages.bytes;
        if (a->n == a->room || !mem_pages_move(new.at + new.bytes, pages.at, pages.bytes))
            return;
        pages_drop(a, i, pages);
    }
}

/* Adds pages to the log, below those that it has if that place is free. */
static bool log_extend(struct arena *a, size_t bytes)
{
    size_t more = arena_needs(a, bytes);
    char *below = a->low ? a->low - more : NULL, *pages = mem_pages_new(below, more, a->page);
    if (pages && pages != below && more < bytes) {
        mem_pages_free(pages, more);
        more = round_up(bytes, a->page);
        pages = mem_pages_new(NULL, more, a->page);
    }
    if (!pages)
        return false;
    log_recycle(a, (struct extent){pages, more});
    a->mapped += more;
    extent_add(a, pages, more);
    a->low = a->free[extent_behind(a, pages + 1) - 1].at; /* they may follow free space */
    return true;
}

void *arena_new(struct arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 4 || !room_for_one(a))
        return NULL;
    bytes = round_up(bytes, LINE);
    if (extent_for(a, bytes) == a->n && !log_extend(a, bytes))
        return NULL;
    uint32_t i = extent_for(a, bytes);
    a->free[i].bytes -= bytes;
    char *at = a->free[i].at + a->free[i].bytes;
    if (a->free[i].bytes == 0)
        extent_drop(a, i);
    a->unused -= bytes;
    a->blocks++;
    return at;
}

/* Returns the whole pages of an extent to the system; there is room for one more extent. */
static void unmap(struct arena *a, uint32_t i)
{
    struct extent pages = whole_pages(a, i);
    if (pages.bytes == 0)
        return;
    mem_pages_free(pages.at, pages.bytes);
    pages_drop(a, i, pages);
}

void arena_free(struct arena *a, void *block, size_t bytes)
{
    extent_add(a, block, round_up(bytes, LINE));
    a->blocks--;
    for (uint32_t i = a->n; i-- > 0 && a->unused > a->mapped / 32 + a->page;)
        if (a->n < a->room)
            unmap(a, i);
}

void arena_end(struct arena *a)
{
    while (a->n) /* every extent is whole pages now */
        unmap(a, 0);
    mem_free(&mem_system, a->free, a->room, sizeof *a->free);
    *a = (struct arena){.page = a->page};
}
