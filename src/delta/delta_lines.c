/*
 * The changes of one part of lines: gaps between the lines that changed and what changed in each, and the same for
 * the words of its stash and its lists. A part of another size is coded from nothing: its lines have little in
 * common with the old ones, and a part grows by a fifth at a time. Pages with equal checksums are skipped, so that
 * a small change costs what changed.
 */
#include "delta.h"

/* The unit of a piece: a line or a word. */
static size_t unit_of(enum part_bytes what)
{
    return what == PART_LINES ? LINE_BYTES : sizeof(uint64_t);
}

/* The same piece of the old part, or NULL if it had none of this size. */
static const uint8_t *piece_before(const struct body *base, const struct part_facts *facts,
                                   enum part_bytes what)
{
    if (!base)
        return NULL;
    struct part_facts old = part_facts(base);
    bool same = old.lines == facts->lines && old.width == facts->width &&
                part_len(&old, what) == part_len(facts, what) && part_len(&old, what);
    return same ? part_data(base, what) : NULL;
}

void out_part(struct delta_out *o, struct lines_models *models, const struct body *base,
              const struct body *b)
{
    static const uint8_t zeros[LINE_BYTES];
    struct part_facts facts = part_facts(b);
    for (unsigned what = 0; what < PART_PIECES; what++) {
        size_t unit = unit_of(what);
        uint64_t n = part_len(&facts, what) / unit, next = 0;
        const uint8_t *now = n ? part_data(b, what) : NULL;
        const uint8_t *before = piece_before(base, &facts, what);
        const struct kept_sums *old = before ? part_sums_kept(base, what) : NULL;
        const struct kept_sums *sums = part_sums_kept(b, what);
        for (uint64_t i = 0; i < n; i++) {
            const uint8_t *from = before ? before + unit * i : zeros;
            if (unit * i % PAGE == 0 && !kept_sums_differ(old, sums, unit * i / PAGE)) {
                i += PAGE / unit - 1;
                continue;
            }
            if (memcmp(from, now + unit * i, unit) == 0)
                continue;
            out_number(o, &models->gap[what != PART_LINES], i - next);
            out_image(o, &models->image[what != PART_LINES], from, now + unit * i, unit);
            next = i + 1;
        }
        if (next < n)
            out_number(o, &models->gap[what != PART_LINES], n - next);
    }
}

/* The checksums of the old part are valid for pages that do not change. */
static struct kept_sums *sums_before(const struct body *base, const struct body *b,
                                     enum part_bytes what, const tamis_allocator *a)
{
    const struct kept_sums *old = part_sums_kept(base, what);
    struct kept_sums *sums = old ? part_sums(b, what, a) : NULL;
    if (sums)
        kept_sums_adopt(sums, old);
    return sums;
}

/* A bit for each line, if the old part is one that was checked: not in a mapped file. NULL: check all. */
static uint8_t *changed_lines(const struct body *base, const struct part_facts *facts,
                              const tamis_allocator *a)
{
    bool checked = base && base->line == (const uint8_t *)(base + 1);
    return checked && piece_before(base, facts, PART_LINES) ? mem_new0(a, facts->lines / 8 + 1, 1)
                                                            : NULL;
}

bool in_part(struct delta_in *in, struct lines_models *models, const struct body *base,
             struct body *b, const tamis_allocator *a)
{
    struct part_facts facts = part_facts(b);
    uint8_t *changed = changed_lines(base, &facts, a);
    bool good = true;
    for (unsigned what = 0; what < PART_PIECES && good; what++) {
        size_t unit = unit_of(what);
        uint64_t n = part_len(&facts, what) / unit;
        uint8_t *now = n ? part_data(b, what) : NULL;
        const uint8_t *before = piece_before(base, &facts, what);
        struct kept_sums *sums = before ? sums_before(base, b, what, a) : NULL;
        if (before)
            memcpy(now, before, (size_t)(n * unit));
        for (uint64_t next = 0; next < n; next++) {
            uint64_t gap = in_number(in, &models->gap[what != PART_LINES]);
            good = !in->broken && gap <= n - next;
            next += good ? gap : n - next;
            uint8_t from[LINE_BYTES];
            if (next == n)
                break;
            memcpy(from, now + unit * next, unit);
            in_image(in, &models->image[what != PART_LINES], from, now + unit * next, unit);
            if (sums)
                kept_sums_mark(sums, unit * next);
            if (what == PART_LINES && changed)
                changed[next / 8] |= (uint8_t)(1 << next % 8);
        }
    }
    good = good && !in->broken && !(changed ? part_wrong_since(b, base, changed) : part_wrong(b));
    mem_free(a, changed, facts.lines / 8 + 1, 1);
    return good;
}
