/*
 * Examines the inputs: which present files have the bytes that the catalog knows?
 *
 * The workload: thousands of inputs of which a few grew or were rotated since the last update. An
 * input costs a stat() and its name in the folder, a microsecond each, and one thread reads the
 * folders while others already examine files. Files that are not obviously unchanged are then paired
 * with entries:
 *
 *     by name and inode     a log that is written to
 *     by inode              a log that was renamed
 *     by name               a file that was replaced: restored, say
 *     by its first chunk    a copy under another name
 *
 * A pair is valid if the file begins with the bytes that were indexed (raw_sums.h). A file and an entry
 * are paired at most once per round, by merging two sorted lists, so everything is linear except sorting.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inputs.h"
#include "read/reader_sniff.h"

/* When a query reads nothing, a second thread saves a tenth with 500 inputs and a quarter with
   1,000, nothing with 200. fstatat() from the folder saves 5 to 20 % of the time of stat(),
   depending on the depth of the path; statx() saves nothing. */
#define LOOK_EACH 250 /* inputs per thread */
#define LOOK_MOST 16  /* threads */

struct pair {
    size_t seen, entry;
};

struct looking {
    const struct inputs *in;
    const char *base;
    struct sight *s;
    unsigned threads;
    bool *plain;   /* entries that are unchanged without a closer look */
    size_t *at;    /* for each seen file: the entry of its name */
    size_t *tried; /* for each seen file: an entry that it is not */
    size_t *open;  /* seen files that are not plain */
    size_t n_open;
    struct pair *pair;
    size_t n_pairs;
    struct key *key; /* room for all seen files, then for all entries */
    atomic_uint_fast64_t hashed;
};

/* ---- threads --------------------------------------------------------------------------------- */

typedef void each_fn(struct looking *w, size_t i);

struct team {
    struct looking *w;
    each_fn *each;
    size_t n, chunk;
    atomic_size_t next;
    pthread_t helper[LOOK_MOST];
    unsigned helpers;
};

static void *team_work(void *context)
{
    struct team *t = context;
    for (size_t from; (from = atomic_fetch_add(&t->next, t->chunk)) < t->n;)
        for (size_t i = from; i < t->n && i < from + t->chunk; i++)
            t->each(t->w, i);
    return NULL;
}

/* `worth`: the number of inputs that are worth a thread. */
static void team_start(struct team *t, struct looking *w, each_fn *each, size_t n, size_t worth)
{
    t->w = w;
    t->each = each;
    t->n = n;
    t->chunk = worth / 8 + 1;
    t->next = 0;
    t->helpers = 0;
    while (t->helpers + 1 < w->threads && t->helpers < LOOK_MOST && t->helpers + 1 < n / worth &&
           pthread_create(&t->helper[t->helpers], NULL, team_work, t) == 0)
        t->helpers++;
}

static void team_end(struct team *t)
{
    team_work(t);
    while (t->helpers)
        pthread_join(t->helper[--t->helpers], NULL);
}

static void together(struct looking *w, each_fn *each, size_t n, size_t worth)
{
    struct team t;
    team_start(&t, w, each, n, worth);
    team_end(&t);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The path to open; *own must be freed. */
static const char *path_of(const struct looking *w, const char *path, char **own)
{
    bool joined = w->base[0] && path[0] != '/';
    *own = joined ? base_join(w->base, path) : NULL;
    return joined ? *own : path;
}

static bool look(const struct looking *w, uint32_t root, const char *path, struct raw_id *id,
                 const char **why)
{
    char *own;
    const char *opened = path_of(w, path, &own);
    bool good = opened && raw_look(opened, !w->in->root[root].folder, id, why);
    int error = opened ? errno : ENOMEM;
    if (!opened)
        *why = strerror(ENOMEM);
    free(own);
    errno = error;
    return good;
}

static void look_plain(struct looking *w, size_t i)
{
    const struct entry *e = &w->in->entry[i];
    struct raw_id id;
    const char *why;
    w->plain[i] = !e->unread && look(w, e->root, e->path, &id, &why) && raw_same(&e->file, &id);
}

static void look_closer(struct looking *w, size_t i)
{
    struct seen *s = &w->s->seen[w->open[i]];
    if (!look(w, s->root, s->path, &s->file, &s->why))
        s->look = errno == ENOENT || errno == ENOTDIR ? LOOK_GONE : LOOK_SHUT;
}

static int open_seen(struct looking *w, struct seen *s)
{
    char *own;
    const char *opened = path_of(w, s->path, &own), *why = strerror(ENOMEM);
    int fd = opened ? raw_open(opened, !w->in->root[s->root].folder, &s->file, &why) : -1;
    if (fd < 0) {
        s->look = LOOK_SHUT;
        s->why = why;
    }
    free(own);
    return fd;
}

/* The state of a file of that size, if it begins with the bytes of the entry. */
static enum file_look grown(const struct seen *s, const struct entry *e)
{
    if (s->file.size == e->file.size)
        return LOOK_SAME;
    return s->file.size > e->file.size && e->resumable ? LOOK_GROWN : LOOK_NEW;
}

static bool promised(const struct inputs *in, const struct seen *s, const struct entry *e)
{
    return s->file.device == e->file.device && s->file.inode == e->file.inode &&
           (inputs_rule(in, RULE_APPEND_ONLY, e->path, false) ||
            inputs_rule(in, RULE_APPEND_ONLY, s->path, false));
}

/* A text of few lines may have been the first lines of something else: a log that begins with a banner. */
static bool was_too_short(const struct looking *w, const struct seen *s, const struct entry *e)
{
    struct sniff sniff;
    char *own;
    if (e->format != READ_TEXT || e->text >= SNIFF_LEN || w->in->dialect.format != READ_AUTO)
        return false;
    const char *opened = path_of(w, s->path, &own);
    bool other = opened && sniff_file(opened, &w->in->dialect, &sniff, NULL) == TAMIS_OK &&
                 sniff.class == SNIFF_READABLE && sniff.format != READ_TEXT;
    free(own);
    return other;
}

static void look_pair(struct looking *w, size_t i)
{
    struct seen *s = &w->s->seen[w->pair[i].seen];
    const struct entry *e = &w->in->entry[w->pair[i].entry];
    uint64_t hashed = 0;
    if (promised(w->in, s, e)) {
        s->look = grown(s, e);
    } else if (raw_same(&e->file, &s->file)) {
        s->look = LOOK_SAME;
    } else if (grown(s, e) != LOOK_NEW) {
        int fd = open_seen(w, s);
        if (fd >= 0 && s->file.size >= e->file.size &&
            raw_sums_hold(fd, e->sums, e->file.size, &hashed))
            s->look = grown(s, e);
        fd_close(&fd);
    }
    if (s->look == LOOK_GROWN && was_too_short(w, s, e))
        s->look = LOOK_CHANGED;
    atomic_fetch_add(&w->hashed, hashed);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static bool may_pair(const struct looking *w, size_t entry)
{
    const struct entry *e = &w->in->entry[entry];
    return w->s->where[entry] == NOWHERE && !e->unread && !e->passed;
}

static void add_pair(struct looking *w, size_t seen, size_t entry)
{
    if (w->s->seen[seen].look != LOOK_NEW || !may_pair(w, entry) || w->tried[seen] == entry)
        return;
    w->pair[w->n_pairs++] = (struct pair){seen, entry};
    w->s->where[entry] = seen;
    w->tried[seen] = entry;
}

/* A pair that is not valid frees its entry for later rounds. */
static void try_pairs(struct looking *w)
{
    together(w, look_pair, w->n_pairs, 1);
    for (size_t i = 0; i < w->n_pairs; i++) {
        struct seen *s = &w->s->seen[w->pair[i].seen];
        if (s->look != LOOK_NEW && s->look != LOOK_SHUT)
            s->entry = w->pair[i].entry;
        else
            w->s->where[w->pair[i].entry] = NOWHERE;
    }
    w->n_pairs = 0;
}

static void pair_names(struct looking *w, bool inode)
{
    for (size_t i = 0; i < w->n_open; i++) {
        size_t j = w->open[i], at = w->at[j];
        if (at != NOWHERE && (!inode || w->in->entry[at].file.inode == w->s->seen[j].file.inode))
            add_pair(w, j, at);
    }
    try_pairs(w);
}

struct key {
    uint64_t a, b;
    size_t which;
};

static int by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    return ORDER(x->a, y->a, ORDER(x->b, y->b, ORDER(x->which, y->which, 0)));
}

static int by_first(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    return ORDER(x->a, y->a, 0);
}

/* Pairs equal keys of `n` seen files and of `m` entries, which are sorted. */
static void pair_keys(struct looking *w, struct key *seen, size_t n, const struct key *known,
                      size_t m)
{
    if (n)
        qsort(seen, n, sizeof *seen, by_key);
    for (size_t i = 0, j = 0; i < n && j < m;) {
        const struct key *x = &seen[i], *y = &known[j];
        bool before = x->a != y->a ? x->a < y->a : x->b < y->b;
        if (x->a == y->a && x->b == y->b) {
            add_pair(w, x->which, y->which);
            i++, j++;
        } else if (before) {
            i++;
        } else {
            j++;
        }
    }
    try_pairs(w);
}

static uint64_t first_len(uint64_t size)
{
    return size < RAW_CHUNK ? size : RAW_CHUNK;
}

/* Keys of the entries that are not found yet, sorted: by inode, or by their first chunks. */
static size_t entry_keys(struct looking *w, struct key *key, bool inode)
{
    size_t n = 0;
    for (size_t i = 0; i < w->in->n; i++) {
        const struct entry *e = &w->in->entry[i];
        struct key k = {e->file.inode, 0, i};
        if (!may_pair(w, i) || (!inode && e->file.size == 0))
            continue;
        if (!inode) {
            k.a = first_len(e->file.size);
            memcpy(&k.b, e->sums, sizeof k.b);
        }
        key[n++] = k;
    }
    if (n)
        qsort(key, n, sizeof *key, by_key);
    return n;
}

static void pair_inodes(struct looking *w)
{
    struct key *known = w->key + w->s->n;
    size_t n = 0, m = entry_keys(w, known, true);
    for (size_t i = 0; m && i < w->n_open; i++)
        if (w->s->seen[w->open[i]].look == LOOK_NEW)
            w->key[n++] = (struct key){w->s->seen[w->open[i]].file.inode, 0, w->open[i]};
    pair_keys(w, w->key, n, known, m);
}

static void sum_first(struct looking *w, size_t i)
{
    struct key *k = &w->key[i];
    struct seen *s = &w->s->seen[k->which];
    struct raw_sums sums;
    int fd = open_seen(w, s);
    uint8_t *sum =
        fd >= 0 && raw_sums_start(&sums, NULL, 0, 0) ? raw_sums_end(&sums, fd, k->a) : NULL;
    if (sum)
        memcpy(&k->b, sum, sizeof k->b);
    else
        k->a = 0; /* no entry has this */
    atomic_fetch_add(&w->hashed, k->a);
    free(sum);
    if (fd >= 0) {
        raw_sums_free(&sums);
        close(fd);
    }
}

static void pair_copies(struct looking *w)
{
    struct key *known = w->key + w->s->n;
    size_t n = 0, m = entry_keys(w, known, false);
    for (size_t i = 0; m && i < w->n_open; i++) {
        const struct seen *s = &w->s->seen[w->open[i]];
        const struct key k = {first_len(s->file.size), 0, w->open[i]};
        if (s->look == LOOK_NEW && k.a && bsearch(&k, known, m, sizeof k, by_first))
            w->key[n++] = k;
    }
    together(w, sum_first, n, 4);
    pair_keys(w, w->key, n, known, m);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void settle(struct looking *w, size_t seen, size_t entry)
{
    struct seen *s = &w->s->seen[seen];
    const struct entry *e = &w->in->entry[entry];
    s->look = e->passed ? LOOK_PASSED : LOOK_SAME;
    s->why = e->passed;
    s->unknown = e->unknown;
    s->entry = entry;
    s->file = e->file;
    w->s->where[entry] = seen;
}

/* Names and entries have the same order. */
static void merge(struct looking *w)
{
    const struct inputs *in = w->in;
    struct sight *s = w->s;
    size_t i = 0;
    for (size_t j = 0; j < s->n; j++) {
        const struct name *name = &s->names.files.name[j];
        int order = 1;
        for (; i < in->n; i++) {
            const struct entry *e = &in->entry[i];
            order =
                e->root == name->root ? strcmp(e->path, name->path) : ORDER(e->root, name->root, 0);
            if (order >= 0)
                break;
        }
        s->seen[j] = (struct seen){
            .root = name->root, .path = name->path, .entry = NOWHERE, .hidden = name->why != NULL};
        w->at[j] = i < in->n && order == 0 ? i++ : NOWHERE;
        w->tried[j] = NOWHERE;
        if (w->at[j] != NOWHERE && w->plain[w->at[j]])
            settle(w, j, w->at[j]);
        else
            w->open[w->n_open++] = j;
    }
}

/* Files that exist for a moment: one about to be written, a lock. */
static bool passing(const struct seen *s)
{
    size_t len = strlen(s->path);
    return !read_format_named(s->path) &&
           (s->file.size == 0 ||
            (s->file.size < 32 && len > 5 && strcmp(s->path + len - 5, ".lock") == 0));
}

/* The state of a file without an entry, and whether it can be read. */
static void look_new(struct looking *w, size_t i)
{
    struct seen *s = &w->s->seen[w->open[i]];
    struct sniff sniff = {.class = SNIFF_READABLE};
    char *own;
    if (s->look != LOOK_NEW || !w->in->root[s->root].folder)
        return; /* if it was given by name, the reader refuses it */
    const char *opened = path_of(w, s->path, &own);
    if (passing(s)) {
        s->look = LOOK_PASSED;
        s->why = "empty, or a lock";
    } else if (opened && sniff_file(opened, &w->in->dialect, &sniff, NULL) == TAMIS_OK &&
               sniff.class != SNIFF_READABLE) {
        s->look = LOOK_PASSED;
        s->why = sniff.what;
        s->unknown = sniff.class == SNIFF_UNKNOWN;
    }
    free(own);
}

/* An entry whose bytes no file has is judged by its name: changed, or out of reach. */
static void name_rest(struct looking *w)
{
    for (size_t i = 0; i < w->n_open; i++) {
        size_t j = w->open[i], at = w->at[j];
        struct seen *s = &w->s->seen[j];
        if (at == NOWHERE || w->s->where[at] != NOWHERE)
            continue;
        w->s->where[at] = j;
        bool passed = w->in->entry[at].passed != NULL;
        if (s->look == LOOK_NEW && !passed)
            s->look = LOOK_CHANGED;
        if (s->look == LOOK_SHUT || s->look == LOOK_GONE ||
            s->look == (passed ? LOOK_PASSED : LOOK_CHANGED))
            s->entry = at;
        /* it had records; an empty one has none left */
        s->unknown |= !passed && s->look == LOOK_PASSED && s->file.size > 0;
    }
}

static bool sight_room(struct sight *s, const struct inputs *in)
{
    s->where = calloc(in->n + 1, sizeof *s->where);
    for (size_t i = 0; s->where && i < in->n; i++)
        s->where[i] = NOWHERE;
    return s->where != NULL;
}

static bool looking_room(struct looking *w)
{
    struct sight *s = w->s;
    s->n = s->names.files.n;
    s->seen = calloc(s->n + 1, sizeof *s->seen);
    w->at = calloc(s->n + 1, sizeof *w->at);
    w->tried = calloc(s->n + 1, sizeof *w->tried);
    w->open = calloc(s->n + 1, sizeof *w->open);
    w->pair = calloc(s->n + 1, sizeof *w->pair);
    w->key = calloc(s->n + w->in->n + 1, sizeof *w->key);
    return s->seen && w->at && w->tried && w->open && w->pair && w->key;
}

static void look_all(struct looking *w)
{
    merge(w);
    together(w, look_closer, w->n_open, LOOK_EACH);
    pair_names(w, true);
    pair_inodes(w);
    pair_names(w, false);
    pair_copies(w);
    together(w, look_new, w->n_open, 4);
    name_rest(w);
    for (size_t i = 0; i < w->s->n; i++)
        w->s->bytes += w->s->seen[i].look == LOOK_PASSED ? 0 : w->s->seen[i].file.size;
    w->s->hashed = w->hashed;
}

bool sight_take(struct sight *s, const struct inputs *in, const char *base, unsigned threads)
{
    struct looking w = {.in = in, .base = base, .s = s, .threads = threads};
    struct team t;
    *s = (struct sight){0};
    w.plain = calloc(in->n + 1, sizeof *w.plain);
    if (!w.plain || !sight_room(s, in))
        return free(w.plain), no_memory("inputs");
    team_start(&t, &w, look_plain, in->n, LOOK_EACH);
    bool walked = names_walk(&s->names, in, base);
    team_end(&t);
    bool good = walked && (looking_room(&w) || no_memory("inputs"));
    if (good)
        look_all(&w);
    free(w.plain);
    free(w.at);
    free(w.tried);
    free(w.open);
    free(w.pair);
    free(w.key);
    return good;
}

bool sight_trust(struct sight *s, const struct inputs *in)
{
    *s = (struct sight){.n = in->n, .trusted = true, .seen = calloc(in->n + 1, sizeof *s->seen)};
    if (!s->seen || !sight_room(s, in))
        return no_memory("inputs");
    for (size_t i = 0; i < in->n; i++) {
        const struct entry *e = &in->entry[i];
        s->seen[i] = (struct seen){.root = e->root, .path = e->path, .entry = i, .file = e->file};
        s->seen[i].why = e->passed;
        s->seen[i].unknown = e->unknown;
        s->seen[i].look = e->passed ? LOOK_PASSED : e->unread ? LOOK_CHANGED : LOOK_SAME;
        s->where[i] = i;
        s->bytes += e->passed ? 0 : e->file.size;
    }
    return true;
}

void sight_free(struct sight *s)
{
    names_free(&s->names);
    free(s->seen);
    free(s->where);
    *s = (struct sight){0};
}

const char *look_name(enum file_look look)
{
    static const char *const names[] = {"new",  "changed", "same",       "grown",
                                        "shut", "gone",    "passed over"};
    return names[look];
}
