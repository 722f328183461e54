/*
 * How many distinct keys lines have, for INFO in a server and `tamis info`: of a multiset, where most keys may be there
 * twice and one of them a million times. All entries would be 50 instructions per key, so a sample is read: as many lines
 * of each part, spread over all of it, and as much of its stash.
 */
#include "lines_bytes.h"

#include "lines_stash.h"

#define DISTINCT_SAMPLE 2048 /* lines: their 57,000 entries determine the number to 0.4 % */

/* Does the entry of a slot begin in its line? */
static bool begins_in(const struct body *b, uint32_t slot, uint64_t from, uint64_t to)
{
    uint64_t key = key_in(b, slot, from, to);
    return (key & (key - 1)) >> 1 >= from;
}

/* Is the entry of a slot a copy of one before it in the line, or covered by one that knows fewer bits? Then it is
   probably of the same key: others are covered at the false-positive rate. */
static bool is_copy(const uint32_t *slots, unsigned n, unsigned i)
{
    uint32_t slot = slots[i];
    for (unsigned j = 0; j < n; j++) {
        uint32_t unknown = slots[j] ^ (slots[j] - 1); /* up to the mark of the other */
        if ((slot ^ slots[j]) <= unknown && (slot == slots[j] ? j < i : (slot & unknown >> 1) != 0))
            return true;
    }
    return false;
}

static unsigned line_distinct(const struct body *b, uint64_t line)
{
    uint32_t slots[8 * LINE_BYTES];
    uint64_t from = first_of(b, line), to = first_of(b, line + 1) - 1;
    unsigned used = lines_kernel()->used(body_line(b, line), b->width), n = 0;
    for (unsigned i = 0; i < used; i++)
        slots[i] = slot_get(body_line(b, line), b->width, i);
    for (unsigned i = 0; i < used; i++)
        n += !is_coarse(b->width, (unsigned)__builtin_ctz(slots[i])) &&
             begins_in(b, slots[i], from, to) && !is_copy(slots, used, i);
    return n;
}

/* Of the stash, the entries that their lines do not have. */
static bool stashed_distinct(const struct body *b, uint64_t entry)
{
    uint64_t line = stash_line(entry);
    uint32_t slot = stash_slot(entry);
    if (slot == 0 || line >= b->lines || is_coarse(b->width, (unsigned)__builtin_ctz(slot)))
        return false;
    return begins_in(b, slot, first_of(b, line), first_of(b, line + 1) - 1) &&
           !slot_in_line(body_line(b, line), b->width, slot);
}

/* From every step-th line and cell of the stash. */
static double part_distinct(const struct body *b, uint64_t step)
{
    const struct stash *stash = atomic_load(&b->stash);
    uint64_t n = 0, seen = 0;
    for (uint64_t line = 0; line < b->lines; line += step, seen++)
        n += line_distinct(b, line);
    double all = (double)n * (double)b->lines / (double)seen;
    n = seen = 0;
    for (uint64_t i = 0; stash && i < stash->room; i += step, seen++)
        n += stashed_distinct(b, stash->entry[i]);
    if (seen)
        all += (double)n * stash->room / (double)seen;
    return all + (b->rare ? b->rare->coarse.n : 0);
}

double lines_distinct(const struct lines *l)
{
    const struct lines_root *root = lines_root_of(l);
    uint64_t taken = 0, step = 1 + lines_bits(l, &taken) / (8 * LINE_BYTES * DISTINCT_SAMPLE);
    double n = 0;
    for (uint32_t i = 0; i < root_positions(root);) {
        const struct body *b = body_at(root, i);
        n += part_distinct(b, step);
        i += body_positions(root, b);
    }
    return n;
}
