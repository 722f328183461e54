/* Determines which parts of the inputs must be read. See find.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "find.h"

/* ---- inputs that are missed ------------------------------------------------------------------ */

void missed_add(struct missed *m, const char *base, const char *path, const char *why, bool weak)
{
    char *name = base_join(base, path);
    bool again =
        name && m->path && strcmp(m->path, name) == 0; /* known as damaged, and read again */
    m->n += !weak && !again;
    m->unknown += weak && !again;
    if (again || (m->path && (weak || !m->weak))) {
        free(name);
        return;
    }
    free(m->path);
    m->path = name;
    m->weak = weak;
    strncpy(m->why, why, sizeof m->why - 1);
}

int missed_tell(const struct missed *m, const char *catalog, int status)
{
    size_t n = m->n + m->unknown;
    char more[40] = "";
    if (n == 0)
        return status;
    if (n > 1)
        snprintf(more, sizeof more, " and %zu more", n - 1);
    remark("not searched: %s%s: %s: %s%s", m->path ? m->path : "inputs", more, m->why,
           m->slow   ? "write a simpler one"
           : m->weak ? "give --exclude or --skip-unknown to tamis index --update "
           : m->gone ? "bring it back, or run tamis index --update "
                     : "see tamis info --inputs ",
           m->slow ? "" : catalog);
    return m->n || status == NONE ? TROUBLE : status;
}

void sight_missed(const struct sight *s, const struct inputs *in, const char *base,
                  struct missed *m)
{
    for (size_t i = 0; i < s->names.shut.n; i++)
        missed_add(m, base, s->names.shut.name[i].path, s->names.shut.name[i].why, false);
    m->gone = m->n == 0;
    for (size_t i = 0; i < in->n; i++)
        if (s->where[i] == NOWHERE && !in->entry[i].passed)
            missed_add(m, base, in->entry[i].path, "removed since it was indexed", false);
    for (size_t i = 0; i < s->n; i++) {
        const struct seen *seen = &s->seen[i];
        if (seen->look == LOOK_GONE || seen->look == LOOK_SHUT) {
            m->gone = m->n == 0 ? seen->look == LOOK_GONE : m->gone;
            missed_add(m, base, seen->path, seen->why, false);
        }
    }
    m->gone &= m->n > 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct seen *seen = &s->seen[i];
        if (seen->look == LOOK_PASSED && seen->unknown && !in->skip_unknown)
            missed_add(m, base, seen->path, seen->why, true);
        else if (seen->look == LOOK_SAME && in->entry[seen->entry].damaged)
            missed_add(m, base, seen->path, "damaged part way through when it was indexed", false);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool add_place(struct places *p, const struct place *place)
{
    return array_add(&p->place, &p->n, &p->room, place, sizeof *place) || no_memory("inputs");
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return ORDER(x->seen, y->seen, ORDER(x->where.offset, y->where.offset, 0));
}

/* The part as it is now; false if nothing of it is left. */
static bool still_there(struct place *place, const struct inputs *in, const struct sight *sight)
{
    enum file_look look = sight->seen[place->seen].look;
    struct input_segment *where = &place->where;
    if (look == LOOK_SAME)
        return true;
    const struct entry *e = look == LOOK_GROWN ? &in->entry[sight->seen[place->seen].entry] : NULL;
    if (!e || where->offset >= e->resume.offset)
        return false;
    if (where->offset + where->len > e->resume.offset) /* its last record may have grown */
        where->len = e->resume.offset - where->offset;
    return true;
}

static bool add_parts(struct places *p, const struct inputs *in, const struct sight *sight,
                      const size_t *by_id, const tamis_catalog *catalog, uint64_t segment)
{
    size_t len, at = 0;
    const void *tag = tamis_catalog_tag(catalog, segment, &len);
    struct input_part part;
    bool bad = !tag, good = true;
    while (good && tag && tag_next(tag, len, &at, &part, &bad)) {
        size_t entry = inputs_find(in, by_id, part.id);
        struct place place = {.segment = segment, .where = part.where};
        bad = entry == NOWHERE;
        if (bad)
            break;
        place.seen = sight->where[entry];
        if (place.seen != NOWHERE && sight->seen[place.seen].entry == entry &&
            still_there(&place, in, sight))
            good = add_place(p, &place);
    }
    if (bad)
        complain("a segment has no valid tag: catalog: make a new one with tamis index -o");
    return good && !bad;
}

static bool add_candidates(struct places *p, const struct inputs *in, const struct sight *sight,
                           const tamis_catalog *catalog, const uint64_t *segments)
{
    uint64_t n = tamis_catalog_segments(catalog);
    size_t *by_id = inputs_by_id(in);
    bool good = by_id || no_memory("inputs");
    for (uint64_t i = 0; good && i < (n + 63) / 64; i++)
        for (uint64_t bits = segments[i]; good && bits; bits &= bits - 1)
            good =
                add_parts(p, in, sight, by_id, catalog, 64 * i + (unsigned)__builtin_ctzll(bits));
    free(by_id);
    return good;
}

bool places_find(struct places *p, const struct inputs *in, const struct sight *sight,
                 const tamis_catalog *catalog, const uint64_t *segments)
{
    bool any = false, good = true;
    for (uint64_t i = 0; i < (tamis_catalog_segments(catalog) + 63) / 64; i++)
        any |= segments[i] != 0;
    if (any)
        good = add_candidates(p, in, sight, catalog, segments);
    for (size_t i = 0; good && i < sight->n; i++) {
        struct place place = {.seen = i};
        enum file_look look = sight->seen[i].look;
        if (look == LOOK_GROWN) {
            place.kind = PLACE_TAIL;
            place.where = in->entry[sight->seen[i].entry].resume;
            good = add_place(p, &place);
        } else if (look == LOOK_CHANGED || look == LOOK_NEW) {
            place.kind = PLACE_WHOLE;
            good = add_place(p, &place);
        }
    }
    if (good && p->n)
        qsort(p->place, p->n, sizeof *p->place, by_place);
    return good;
}
