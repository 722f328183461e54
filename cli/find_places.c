/* What there is to read. See find.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "find.h"

static bool no_memory(void)
{
    complain("out of memory: inputs: free some memory and run again");
    return false;
}

/* ---- looking --------------------------------------------------------------------------------- */

#define NAMED_MOST 5 /* files named one by one */

static void name_file(size_t *n, const char *what, const char *base, const char *path,
                      const char *advice)
{
    char *full = base_join(base, path);
    if (++*n <= NAMED_MOST && full)
        remark("%s: %s: %s", what, full, advice);
    free(full);
}

/* The names of today that are in folders and that no entry knows: both are in one order. */
static void name_fresh(struct looked *l, const struct inputs *in, const char *base,
                       const struct names *names)
{
    size_t i = 0;
    for (size_t j = 0; j < names->files.n; j++) {
        const struct name *name = &names->files.name[j];
        int order = -1;
        for (; i < in->n; i++) {
            const struct entry *e = &in->entry[i];
            order = e->root == name->root ? strcmp(e->path, name->path)
                                          : (e->root > name->root) - (e->root < name->root);
            if (order >= 0)
                break;
        }
        if ((i == in->n || order > 0) && in->root[name->root].folder)
            name_file(&l->fresh, "new file, not searched", base, name->path,
                      "run tamis index --update");
    }
}

/* A microsecond of the system's time for each input, and most of another for its name in the folder:
   one thread reads the folders while others begin to look. Of a question that reads nothing a second
   thread saves a tenth with 500 inputs and a quarter with 1,000, with 200 nothing. fstatat() from the
   folder saves a twentieth to a fifth of the time of stat() by the depth of the path, statx() nothing. */
#define LOOK_EACH  250 /* inputs that are worth a thread */
#define LOOK_CHUNK 32
#define LOOK_MOST  16 /* threads */

struct looking {
    const struct inputs *in;
    const char *base;
    enum look *state;
    atomic_size_t next;
    atomic_uint_fast64_t bytes;
};

static void *look_some(void *context)
{
    struct looking *w = context;
    uint64_t bytes = 0, size;
    for (size_t from; (from = atomic_fetch_add(&w->next, LOOK_CHUNK)) < w->in->n;)
        for (size_t i = from; i < w->in->n && i < from + LOOK_CHUNK; i++, bytes += size)
            w->state[i] = look_at(w->base, &w->in->entry[i], false, &size);
    atomic_fetch_add(&w->bytes, bytes);
    return NULL;
}

/* States of all entries, and the names of today if some root is a folder. */
static bool look_together(struct looked *l, const struct inputs *in, const char *base,
                          unsigned threads, struct names *names)
{
    struct looking w = {.in = in, .base = base, .state = l->state};
    pthread_t helper[LOOK_MOST];
    unsigned helpers = 0;
    bool folders = false;
    for (size_t i = 0; i < in->n_roots; i++)
        folders |= in->root[i].folder;
    while (helpers + 1 < threads && helpers < LOOK_MOST && helpers + 1 < in->n / LOOK_EACH &&
           pthread_create(&helper[helpers], NULL, look_some, &w) == 0)
        helpers++;
    bool good = !folders || names_walk(names, in, base);
    look_some(&w);
    while (helpers)
        pthread_join(helper[--helpers], NULL);
    l->bytes = w.bytes;
    return good;
}

bool look_all(struct looked *l, const struct inputs *in, const char *base, unsigned threads)
{
    struct names names = {0};
    bool good = look_together(l, in, base, threads, &names);
    for (size_t i = 0; i < in->n; i++) {
        l->grown += l->state[i] == LOOK_GROWN;
        l->changed += l->state[i] == LOOK_CHANGED;
        if (l->state[i] == LOOK_GONE)
            name_file(&l->gone, "removed since it was indexed", base, in->entry[i].path,
                      "run tamis index --update");
    }
    names_tell_shut(&names, base, "new files in it are not found");
    name_fresh(l, in, base, &names);
    names_free(&names);
    if (l->gone > NAMED_MOST)
        remark("%zu more inputs were removed: run tamis index --update", l->gone - NAMED_MOST);
    if (l->fresh > NAMED_MOST)
        remark("%zu more new files are not searched: run tamis index --update",
               l->fresh - NAMED_MOST);
    return good;
}

void name_damaged(struct looked *l, const struct inputs *in, const char *base)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->entry[i].damaged && l->state[i] == LOOK_SAME)
            name_file(&l->damaged, "damaged when it was indexed", base, in->entry[i].path,
                      "what is behind the damage is not searched");
    if (l->damaged > NAMED_MOST)
        remark("%zu more inputs are damaged: what is behind that is not searched",
               l->damaged - NAMED_MOST);
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool add_place(struct places *p, const struct place *place)
{
    if (p->n == p->room) {
        size_t room = p->room ? 2 * p->room : 64;
        struct place *fresh = realloc(p->place, room * sizeof *fresh);
        if (!fresh)
            return no_memory();
        p->place = fresh;
        p->room = room;
    }
    p->place[p->n++] = *place;
    return true;
}

struct known {
    uint64_t id;
    size_t entry;
};

static int by_id(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    return (x->where.offset > y->where.offset) - (x->where.offset < y->where.offset);
}

/* A part as it can be read today; false if there is nothing left of it. */
static bool still_there(struct place *place, const struct inputs *in, const struct looked *l)
{
    const struct entry *e = &in->entry[place->entry];
    enum look state = l->state[place->entry];
    struct input_segment *where = &place->where;
    if (state == LOOK_SAME)
        return true;
    if (state != LOOK_GROWN || where->offset >= e->resume.offset)
        return false;
    if (where->offset + where->len > e->resume.offset) /* its last record may have grown */
        where->len = e->resume.offset - where->offset;
    return true;
}

static bool add_parts(struct places *p, const struct inputs *in, const struct looked *l,
                      const struct known *known, const tamis_catalog *catalog, uint64_t segment)
{
    size_t len, at = 0;
    const void *tag = tamis_catalog_tag(catalog, segment, &len);
    struct part part;
    bool bad = !tag, good = true;
    while (good && tag && tag_next(tag, len, &at, &part, &bad)) {
        const struct known wanted = {part.id, 0};
        const struct known *k = bsearch(&wanted, known, in->n, sizeof *known, by_id);
        struct place place = {.segment = segment, .where = part.where};
        if (!k) {
            bad = true;
            break;
        }
        place.entry = k->entry;
        if (still_there(&place, in, l))
            good = add_place(p, &place);
    }
    if (bad)
        complain("a segment has no valid tag: catalog: make a new one with tamis index -o");
    return good && !bad;
}

static bool add_candidates(struct places *p, const struct inputs *in, const struct looked *l,
                           const tamis_catalog *catalog, const uint64_t *segments)
{
    uint64_t n = tamis_catalog_segments(catalog);
    struct known *known = calloc(in->n + 1, sizeof *known);
    if (!known)
        return no_memory();
    for (size_t i = 0; i < in->n; i++)
        known[i] = (struct known){in->entry[i].id, i};
    qsort(known, in->n, sizeof *known, by_id);
    bool good = true;
    for (uint64_t i = 0; good && i < (n + 63) / 64; i++)
        for (uint64_t bits = segments[i]; good && bits; bits &= bits - 1)
            good = add_parts(p, in, l, known, catalog, 64 * i + (unsigned)__builtin_ctzll(bits));
    free(known);
    return good;
}

bool places_find(struct places *p, const struct inputs *in, const struct looked *l,
                 const tamis_catalog *catalog, const uint64_t *segments)
{
    bool any = false, good = true;
    for (uint64_t i = 0; i < (tamis_catalog_segments(catalog) + 63) / 64; i++)
        any |= segments[i] != 0;
    if (any)
        good = add_candidates(p, in, l, catalog, segments);
    for (size_t i = 0; good && i < in->n; i++) {
        struct place place = {.entry = i};
        if (l->state[i] == LOOK_GROWN) {
            place.kind = PLACE_TAIL;
            place.where = in->entry[i].resume;
            good = add_place(p, &place);
        } else if (l->state[i] == LOOK_CHANGED) {
            place.kind = PLACE_WHOLE;
            good = add_place(p, &place);
        }
    }
    if (good && p->n)
        qsort(p->place, p->n, sizeof *p->place, by_place);
    return good;
}
