/* Plans an update: which files to read, which segments and parts to drop. */
#include <stdlib.h>
#include <string.h>

#include "index_verb.h"

/* An old entry, and what happens to it. */
struct fate {
    const struct entry *old;
    bool kept, grown;
    size_t fresh;  /* its number among the new entries */
    uint64_t size; /* present size of the file */
    uint64_t keep; /* parts from this byte of the text on are read again */
};

/* A part of a file that has grown. */
struct grown_part {
    size_t fate;
    struct input_part part;
};

struct planning {
    struct index_run *run;
    const struct inputs *old;
    const tamis_catalog *catalog;
    struct update *update;
    struct fate *fate; /* parallel to the old entries */
    size_t *by_id;     /* old entries by their ids */
    struct grown_part *piece;
    size_t n_pieces, pieces_room;
};

/* ---- entries --------------------------------------------------------------------------------- */

/* A task: `bytes` of the file must be read. */
static bool plan_task(struct index_run *run, size_t entry, uint64_t bytes)
{
    const struct task task = {.entry = entry, .bytes = bytes};
    return array_add(&run->task, &run->n_tasks, &run->tasks_room, &task, sizeof task) ||
           no_memory("inputs");
}

/* An entry for a new file of that many bytes, and a task to read it. */
static bool plan_new(struct index_run *run, uint32_t root, const char *path, uint64_t bytes)
{
    struct inputs *in = run->inputs;
    struct entry *e = inputs_add(in);
    const char *kept = e ? inputs_keep(in, path) : NULL;
    if (!kept)
        return no_memory("inputs");
    *e = (struct entry){.id = in->next_id++, .root = root, .path = kept};
    return plan_task(run, in->n - 1, bytes);
}

/* Keeps what is known of a file, under its present name. */
static bool keep_entry(struct planning *p, const struct seen *s)
{
    struct inputs *in = p->run->inputs;
    struct update *u = p->update;
    struct fate *f = &p->fate[s->entry];
    struct entry *e = inputs_add(in);
    bool renamed = f->old->root != s->root || strcmp(f->old->path, s->path) != 0;
    const char *path = renamed ? inputs_keep(in, s->path) : f->old->path;
    if (!e || !path)
        return no_memory("inputs");
    *e = *f->old;
    e->root = s->root;
    e->path = path;
    f->fresh = in->n - 1;
    f->size = s->file.size;
    f->keep = UINT64_MAX;
    f->kept = true;
    f->grown = s->look == LOOK_GROWN;
    u->grown += f->grown;
    u->renamed += renamed;
    u->same += s->look == LOOK_SAME && !renamed;
    if (s->look == LOOK_SAME) { /* so that it need not be hashed again */
        u->touched |= !raw_equal(&e->file, &s->file) || e->file.racy != s->file.racy;
        e->file = s->file;
    }
    return true;
}

/* Unreadable files are remembered, so that they are not examined each time. */
static bool keep_passed(struct planning *p, const struct seen *s)
{
    struct inputs *in = p->run->inputs;
    struct entry *e = inputs_add(in);
    if (!e)
        return no_memory("inputs");
    *e = (struct entry){
        .id = in->next_id++, .root = s->root, .file = s->file, .unknown = s->unknown};
    e->path = inputs_keep(in, s->path);
    e->passed = inputs_keep(in, s->why);
    if (s->unknown && s->entry == NOWHERE && !in->skip_unknown && p->update->passed++ == 0)
        p->update->first_passed = in->n - 1;
    return (e->path && e->passed) || no_memory("inputs");
}

static bool out_of_reach(struct planning *p, const struct seen *s)
{
    struct index_run *run = p->run;
    char *path = base_join(run->base, s->path);
    if (!s->hidden) {
        run->tally.failed++;
        remark("%s: %s: %s", s->why, path ? path : s->path,
               run->strict            ? "nothing was changed"
               : s->look == LOOK_GONE ? "what is known of it stays; bring it back, or give --forget"
                                      : "what is known of it stays");
    }
    free(path);
    return keep_entry(p, s);
}

static bool plan_seen(struct planning *p, const struct seen *s)
{
    struct update *u = p->update;
    switch (s->look) {
    case LOOK_SAME:
    case LOOK_GROWN:
        return keep_entry(p, s);
    case LOOK_SHUT:
    case LOOK_GONE:
        if (s->entry != NOWHERE)
            return out_of_reach(p, s);
        break; /* the reader reports what is wrong with it */
    case LOOK_PASSED:
        return keep_passed(p, s);
    default:
        break;
    }
    u->changed += s->look == LOOK_CHANGED;
    u->fresh += s->look != LOOK_CHANGED;
    return plan_new(p->run, s->root, s->path, s->file.size);
}

/* A folder that cannot be read is reported and counts as an input that failed. */
static void tell_shut(struct index_run *run, const struct names *names)
{
    for (size_t i = 0; i < names->shut.n; i++) {
        const struct name *name = &names->shut.name[i];
        char *path = base_join(run->base, name->path);
        bool root = strcmp(name->path, run->inputs->root[name->root].path) == 0;
        remark("%s: %s: %s", name->why, path ? path : name->path,
               run->strict ? "nothing was changed"
               : root      ? "what is known of its files stays; bring it back, or give --forget"
                           : "its files are not found");
        free(path);
    }
    run->tally.failed += names->shut.n;
}

static bool plan_entries(struct planning *p, const struct sight *sight)
{
    struct index_run *run = p->run;
    bool good = true;
    tell_shut(run, &sight->names);
    for (size_t i = 0; good && i < sight->n; i++)
        good = plan_seen(p, &sight->seen[i]);
    for (size_t i = 0; good && i < p->old->n; i++)
        p->update->gone += sight->where[i] == NOWHERE && !p->old->entry[i].passed;
    return good && !(run->strict && run->tally.failed);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Calls `each` for the parts of all segments; false: it complained, or a tag is damaged. */
typedef bool part_fn(struct planning *p, struct fate *fate, struct input_part *part, bool *keep);

static bool scan_tag(struct planning *p, uint64_t segment, part_fn *each, struct bytes *tag,
                     bool *differs)
{
    size_t len, at = 0;
    const void *old = tamis_catalog_tag(p->catalog, segment, &len);
    struct input_part part;
    bool bad = !old, keep, good = true;
    tag->len = 0;
    *differs = false;
    while (good && old && tag_next(old, len, &at, &part, &bad)) {
        size_t entry = inputs_find(p->old, p->by_id, part.id);
        struct fate *fate = entry == NOWHERE ? NULL : &p->fate[entry];
        uint64_t before = part.where.len;
        keep = fate && fate->kept;
        if (keep)
            good = each(p, fate, &part, &keep);
        *differs |= !keep || part.where.len != before;
        if (good && keep)
            good = tag_add(tag, &part) || no_memory("inputs");
    }
    if (bad)
        complain("a segment has no valid tag: catalog: make a new one with -o");
    return good && !bad;
}

#define SCAN_WINDOW ((uint64_t)4 << 20) /* bytes of the tags in memory at a time */

static bool scan_tags(struct planning *p, part_fn *each, bool apply)
{
    struct bytes tag = {0};
    uint64_t n = tamis_catalog_segments(p->catalog), seen = 0;
    bool good = true, differs;
    for (uint64_t i = 0; good && i < n; i++) {
        size_t len;
        tamis_catalog_tag(p->catalog, i, &len);
        if ((seen += len) > SCAN_WINDOW) {
            tamis_catalog_rest(p->catalog);
            seen = 0;
        }
        good = scan_tag(p, i, each, &tag, &differs);
        if (!good || !apply || !differs)
            continue;
        tamis_reason reason = {0};
        tamis_error error = tag.len
                                ? tamis_catalog_retag(p->run->writer, i, tag.data, tag.len, &reason)
                                : tamis_catalog_drop(p->run->writer, i, &reason);
        good = succeeded(error, &reason, p->run->path);
    }
    free(tag.data);
    return good;
}

static bool collect(struct planning *p, struct fate *fate, struct input_part *part, bool *keep)
{
    const struct grown_part piece = {(size_t)(fate - p->fate), *part};
    (void)keep;
    return !fate->grown ||
           array_add(&p->piece, &p->n_pieces, &p->pieces_room, &piece, sizeof piece) ||
           no_memory("inputs");
}

/* Parts of a grown file that are read again are dropped; one that ends with an open record is
   clipped. */
static bool settle(struct planning *p, struct fate *fate, struct input_part *part, bool *keep)
{
    struct input_segment *where = &part->where;
    (void)p;
    if (!fate->grown)
        return true;
    if (where->offset >= fate->keep) {
        *keep = false;
    } else if (where->offset + where->len > fate->keep) {
        uint64_t cut = where->offset + where->len - fate->keep;
        where->len -= cut;
        if (where->at == where->offset && where->at_len == where->len + cut && !where->skip)
            where->at_len -= cut;
        counts_take(&part->count, &fate->old->open);
    }
    return true;
}

/* ---- growth ---------------------------------------------------------------------------------- */

/* The last parts first. */
static int compare_pieces(const void *a, const void *b)
{
    const struct grown_part *x = a, *y = b;
    return ORDER(x->fate, y->fate, ORDER(y->part.where.offset, x->part.where.offset, 0));
}

/*
 * The tail of a file that grew becomes a segment, and a file that grows by a line per minute would
 * have half a million of them in a year. So the last parts are read again with the tail as long as
 * each is no longer than what follows it, and together they fit in a segment: as in a binary
 * counter, a byte is read at most log2 times, and a segment's worth of text has log2 parts.
 */
static bool plan_tail(struct planning *p, size_t number, const struct grown_part *piece, size_t n)
{
    struct fate *f = &p->fate[number];
    struct entry *e = &p->run->inputs->entry[f->fresh];
    uint64_t size = f->size, segment = p->run->inputs->segment;
    uint64_t tail = text_expected(e->path, size > e->file.size ? size - e->file.size : 0);
    struct input_segment from = e->resume;
    counts_take(&e->count, &e->open);
    for (size_t i = 0; i < n; i++) {
        const struct input_part *part = &piece[i].part;
        uint64_t len = part->where.len;
        if (part->where.offset + len < from.offset || len > tail || tail + len > segment)
            break;
        struct counts again = part->count;
        if (i == 0)
            counts_take(&again, &e->open);
        counts_take(&e->count, &again);
        from = part->where;
        tail += len;
    }
    f->keep = from.offset;
    e->resumable = false; /* decided when it is read */
    if (!plan_task(p->run, f->fresh, size > from.at ? size - from.at : 0))
        return false;
    struct task *t = &p->run->task[p->run->n_tasks - 1];
    t->tail = true;
    t->from = from;
    return true;
}

static bool plan_tails(struct planning *p)
{
    size_t at = 0;
    if (p->n_pieces)
        qsort(p->piece, p->n_pieces, sizeof *p->piece, compare_pieces);
    for (size_t i = 0; i < p->old->n; i++) {
        size_t n = 0;
        if (!p->fate[i].grown)
            continue;
        while (at < p->n_pieces && p->piece[at].fate < i)
            at++;
        while (at + n < p->n_pieces && p->piece[at + n].fate == i)
            n++;
        if (!plan_tail(p, i, p->piece + at, n))
            return false;
    }
    return true;
}

bool update_plan(struct index_run *run, const struct inputs *old, const tamis_catalog *catalog,
                 struct update *update)
{
    struct planning p = {run, old, catalog, update, NULL, NULL, NULL, 0, 0};
    struct sight sight = {0};
    p.fate = calloc(old->n + 1, sizeof *p.fate);
    p.by_id = inputs_by_id(old);
    bool good = (p.fate && p.by_id) || no_memory("inputs");
    for (size_t i = 0; good && i < old->n; i++)
        p.fate[i].old = &old->entry[i];
    good = good && sight_take(&sight, old, run->base, (unsigned)run->threads) &&
           plan_entries(&p, &sight);
    update->any |= update->fresh || update->changed || update->grown || update->gone ||
                   update->renamed || update->touched;
    if (good && update->any && catalog)
        good = run->start(run);
    if (good && update->any && catalog) {
        good = !update->grown || (scan_tags(&p, collect, false) && plan_tails(&p));
        good = good && scan_tags(&p, settle, true);
    }
    sight_free(&sight);
    free(p.fate);
    free(p.by_id);
    free(p.piece);
    return good;
}
