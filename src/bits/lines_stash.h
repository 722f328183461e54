/*
 * What a part stores besides its lines. The stash holds slots for which their line had no room, about 1 % of them, and
 * further copies of slots, in a hash table by line: open addressing, any number of cells. The entries of a line share
 * their home, so runs are long: a lookup passes 15 to 28 cells. An entry is one word:
 *
 *     line << 36 | slot << 12 | copies        0: free
 *
 * Sorted lists hold coarse entries, and copies beyond those that the stash can count.
 */
#ifndef TAMIS_LINES_STASH_H
#define TAMIS_LINES_STASH_H

#include "lines_place.h"

#define STASH_LINES  (UINT64_C(1) << 28)
#define STASH_COPIES UINT64_C(4095)
/* A lookup reads one run, so no stash has longer runs, and files with longer ones are refused. Runs of random keys
   are far shorter: one table in e^94 has a run of 4096. */
#define STASH_RUN_MAX 4096

ALWAYS_INLINE uint64_t stash_line(uint64_t entry)
{
    return entry >> 36;
}

ALWAYS_INLINE uint32_t stash_slot(uint64_t entry)
{
    return (uint32_t)(entry >> 12) & 0xffffff;
}

ALWAYS_INLINE uint64_t stash_copies(uint64_t entry)
{
    return entry & STASH_COPIES;
}

ALWAYS_INLINE uint32_t stash_home(const struct stash *stash, uint64_t line)
{
    uint64_t hash = line * GOLDEN;
    return (uint32_t)((hash >> 32) * stash->room >> 32);
}

ALWAYS_INLINE uint32_t stash_next(const struct stash *stash, uint32_t at)
{
    return at + 1 < stash->room ? at + 1 : 0;
}

/* The cells of the run that a line is in. The run ends at a free cell; if others overwrite the mapped file, after
   every cell was read once. */
#define STASH_RUN(stash, line, at)                                     \
    for (uint32_t at = stash_home(stash, line), left_ = (stash)->room; \
         left_ && (stash)->entry[at]; at = stash_next(stash, at), left_--)

/* A run may reach far: two lines of the cache. */
ALWAYS_INLINE void stash_prefetch(const struct stash *stash, uint64_t line)
{
    const uint64_t *cell = &stash->entry[stash_home(stash, line)];
    __builtin_prefetch(cell, 0, 3);
    __builtin_prefetch(cell + 8, 0, 3);
}

/* The slot of an entry of this line that matches a query of `width` bits; 0: it is of another line, or does not match, or
   a file that others overwrite has no slot there. */
ALWAYS_INLINE uint32_t stash_matching(uint64_t entry, uint64_t line, uint32_t q)
{
    uint32_t slot = stash_slot(entry);
    return stash_line(entry) == line && slot_matches(slot, q) ? slot : 0;
}

/* What a lookup compares entries with: a line and the query of a key. */
ALWAYS_INLINE uint64_t stash_query(const struct body *body, uint64_t line, uint32_t q)
{
    return line << 24 | (q & slot_ones(body->width));
}

/* Of some cells: does an entry match the query, and is a cell free? */
struct stash_look {
    bool match, free;
};

/* The lowest one bit of an entry without its copies is the mark of its slot, so the line is compared together with the
   known bits. */
ALWAYS_INLINE struct stash_look stash_compare_one(const uint64_t *cell, uint64_t query)
{
    uint64_t entry = __atomic_load_n(cell, __ATOMIC_ACQUIRE) >> 12;
    return (struct stash_look){entry && ((entry ^ query) & (entry ^ -entry)) == 0, entry == 0};
}

size_t stash_bytes(uint32_t room);
struct stash *stash_new(const tamis_allocator *a, uint32_t room);
/* A stash whose entries are elsewhere. */
struct stash *stash_view(const tamis_allocator *a, uint32_t room, const uint64_t *entry);
/* In a mapped file that was not checked, or that others overwrite, cells may hold anything: entries without a slot, and
   those that would leave too few cells free, are left out. */
struct stash *stash_copy(const tamis_allocator *a, const struct stash *from);
void stash_free(struct stash *stash, const tamis_allocator *a);
/* Do this many more entries fit? At a load of four fifths runs are twice as long as at two thirds, but less than one
   lookup in a hundred goes through one, and a fifth of the memory is saved. */
ALWAYS_INLINE bool stash_fits(const struct stash *stash, uint64_t more)
{
    return stash && (stash->used + more) * 5 <= stash->room * 4ul;
}
/* Would the run of this line, with `more` entries, be too long? Then adds are refused; only keys chosen by someone
   who knows the family key cause this. The limit is half of STASH_RUN_MAX, because an entry may be in two lines. */
bool stash_crowded(const struct stash *stash, uint64_t line, unsigned more);
/* Copies all entries into a stash with room for them; false if it has a run longer than STASH_RUN_MAX. */
bool stash_pour(struct stash *to, const struct stash *from);
/* Adds copies; there must be room. STASH_FULL: there would be more than STASH_COPIES, and nothing changed. */
enum stash_added { STASH_OLD, STASH_NEW, STASH_FULL };
enum stash_added stash_add(struct body *b, uint64_t line, uint32_t slot, uint64_t copies);
/* The cell of an entry, or room if there is none. */
uint32_t stash_find(const struct stash *stash, uint64_t line, uint32_t slot);
/* The cell of the line's entry with the smallest order, or room. */
uint32_t stash_least(const struct stash *stash, uint64_t line);
/* Removes one copy; true if it was the last. Needs exclusive access. */
bool stash_take(struct body *b, uint32_t at);

/* ---- entries apart ---- */
#define NOT_LISTED UINT32_MAX

uint32_t apart_find(const struct apart_list *list, uint64_t key);
/* The matching entry with the fewest unknown bits. */
uint32_t apart_match(const struct apart_list *list, uint64_t w);
/* The bytes by which the lists of a part grow for one more entry in one of them; NULL: it has no lists. */
uint64_t apart_needs(const struct rare *rare, const struct apart_list *list);
/* Makes room for one more entry. */
bool apart_reserve(struct apart_list *list, const tamis_allocator *a);
/* Adds copies; true if the entry is new. There must be room. */
bool apart_add(struct apart_list *list, uint64_t key, uint64_t copies);
/* Removes one copy; true if it was the last. */
bool apart_take(struct apart_list *list, uint32_t i);
/* The lists of a part, created when first needed; NULL if there is no memory. */
struct rare *rare_of(struct body *b, const tamis_allocator *a);
void rare_free(struct rare *rare, const tamis_allocator *a);
/* The bytes of its lists. */
uint64_t rare_bytes(const struct rare *rare);
/* Drops the checksums of a stash that was replaced. */
void stash_sums_drop(struct body *b, const tamis_allocator *a);

#endif
