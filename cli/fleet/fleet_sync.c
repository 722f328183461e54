/*
 * Updating the copies: fetches the manifest of every host and the pieces that are new, and joins them with others
 * of their schema. Pieces that no manifest names are left out.
 *
 * New pieces are written to a new file, together with existing files of up to four times its size and those from
 * which a piece is left out. Live pieces are new and so in the smallest files; an old piece has been copied a
 * logarithmic number of times.
 */
#define _GNU_SOURCE
#include "fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* A file of copies. */
struct kept_file {
    uint64_t number, bytes;
    tamis_catalog *catalog;
    uint64_t *keep; /* segments that a manifest names */
    size_t group;
    bool rewrite;
};

/* A piece in the copies. */
struct present {
    char host[HOST_MAX + 1];
    uint64_t epoch, serial;
    size_t file;
    uint64_t segment;
    bool wanted;
};

/* Catalogs that can be joined: with the same schema, time attribute and zone. */
struct group {
    const tamis_catalog *like; /* of a file, or of `first` */
    tamis_catalog *first;
    struct inputs note;
    tamis_catalog_writer *writer; /* of the new file */
    uint64_t number, bytes;       /* of the new file; of new pieces */
};

struct syncing {
    struct copies *copies, was;
    struct carrier *carrier;
    const char *url;
    struct kept_file *file;
    size_t n_files, files_room;
    struct present *present; /* by host, epoch and serial */
    size_t n_present, present_room;
    struct group *group;
    size_t n_groups, groups_room;
    char piece[4096]; /* a temporary file */
    char **name;      /* hosts */
    size_t n_names, names_room;
    size_t strange;
    bool failed;
};

static bool out_of_memory(struct syncing *s)
{
    if (!s->failed)
        no_memory(s->copies->folder);
    s->failed = true;
    return false;
}

static bool same_text(const char *x, const char *y)
{
    return strcmp(x ? x : "", y ? y : "") == 0;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool add_fields(struct group *g, const struct inputs *note)
{
    for (size_t i = 0; i < note->n_fields; i++) {
        size_t j = 0;
        while (j < g->note.n_fields && strcmp(g->note.field[j].name, note->field[i].name) != 0)
            j++;
        const char *name = j == g->note.n_fields ? inputs_keep(&g->note, note->field[i].name) : "";
        if (!name || (*name && !inputs_add_field(&g->note, name, note->field[i].type)))
            return false;
    }
    return true;
}

/* Finds or makes the group of a catalog; SIZE_MAX: it is not a piece, or no memory. */
static size_t group_of(struct syncing *s, const tamis_catalog *catalog)
{
    struct inputs note;
    size_t len, i = 0;
    const void *data = tamis_catalog_note(catalog, &len);
    if (!data || inputs_decode(&note, data, len, NULL) != TAMIS_OK)
        return SIZE_MAX;
    for (; i < s->n_groups; i++)
        if (tamis_schema_alike(tamis_catalog_schema(s->group[i].like),
                               tamis_catalog_schema(catalog)) &&
            same_text(s->group[i].note.dialect.zone, note.dialect.zone) &&
            same_text(s->group[i].note.dialect.time, note.dialect.time))
            break;
    bool good = true;
    if (i < s->n_groups) {
        good = add_fields(&s->group[i], &note);
        if (read_names_fields(note.dialect.format))
            s->group[i].note.dialect.format = note.dialect.format;
        inputs_free(&note);
    } else {
        const struct group fresh = {.like = catalog, .note = note};
        good = array_add(&s->group, &s->n_groups, &s->groups_room, &fresh, sizeof fresh);
    }
    return good || out_of_memory(s) ? i : SIZE_MAX;
}

/* Adds segments of a catalog to the new file of a group, which is begun if necessary. */
static bool group_join(struct syncing *s, struct group *g, const tamis_catalog *from,
                       const uint64_t *segments)
{
    char path[4096];
    tamis_reason reason = {0};
    const tamis_catalog_options options = {.like = tamis_catalog_schema(g->like), .joinable = true};
    tamis_error e = TAMIS_OK;
    g->number = g->writer ? g->number : s->copies->next++;
    copies_path(s->copies, g->number, path);
    if (!g->writer)
        e = tamis_catalog_create(&g->writer, path, &options, &reason);
    if (e == TAMIS_OK)
        e = tamis_catalog_join(g->writer, from, segments, &reason);
    s->failed |= e != TAMIS_OK;
    return succeeded(e, &reason, path);
}

/* ---- pieces in the copies -------------------------------------------------------------------- */

static int compare_present(const void *a, const void *b)
{
    const struct present *x = a, *y = b;
    int order = strcmp(x->host, y->host);
    if (order)
        return order;
    return ORDER(x->epoch, y->epoch, ORDER(x->serial, y->serial, 0));
}

/* The pieces of a file that cannot be opened are fetched again. */
static bool open_file(struct syncing *s, uint64_t number)
{
    char path[4096];
    struct kept_file f = {.number = number};
    copies_path(s->copies, number, path);
    if (tamis_catalog_open(&f.catalog, path, NULL, NULL) != TAMIS_OK)
        return true;
    tamis_catalog_facts facts;
    tamis_catalog_info(f.catalog, &facts);
    f.bytes = facts.bytes;
    f.keep = calloc(facts.segments / 64 + 1, sizeof *f.keep);
    f.group = group_of(s, f.catalog);
    bool good = f.keep != NULL, kept = good && f.group != SIZE_MAX;
    if (kept)
        good = array_add(&s->file, &s->n_files, &s->files_room, &f, sizeof f);
    if (!good || !kept) {
        free(f.keep);
        tamis_catalog_close(f.catalog);
        return good || out_of_memory(s);
    }
    for (uint64_t i = 0; i < facts.segments; i++) {
        size_t len;
        const void *tag = tamis_catalog_tag(f.catalog, i, &len);
        struct piece piece;
        struct present p = {.file = s->n_files - 1, .segment = i};
        if (!tag_read(tag, len, p.host, &p.epoch, &piece))
            continue;
        p.serial = piece.serial;
        if (!array_add(&s->present, &s->n_present, &s->present_room, &p, sizeof p))
            return out_of_memory(s);
    }
    return true;
}

static bool look_here(struct syncing *s)
{
    for (size_t i = 0; i < s->was.n_files; i++)
        if (!open_file(s, s->was.file[i]))
            return false;
    if (s->n_present)
        qsort(s->present, s->n_present, sizeof *s->present, compare_present);
    return true;
}

static struct present *find_present(const struct syncing *s, const struct manifest *m,
                                    uint64_t serial)
{
    struct present key = {.epoch = m->epoch, .serial = serial};
    memcpy(key.host, m->host, sizeof key.host);
    return s->n_present ? bsearch(&key, s->present, s->n_present, sizeof key, compare_present)
                        : NULL;
}

/* ---- pieces at the carrier ------------------------------------------------------------------- */

/* 1, 0: nothing there, -1: the carrier cannot be reached, and the sync fails. */
static int fetch_bytes(struct syncing *s, const char *owner, struct bytes *out)
{
    int there = fleet_fetch(s->carrier, owner, out);
    if (there < 0 && !s->failed)
        complain("%s: %s: check the address, or ask the folder %s, as of its last copies",
                 s->carrier->error, s->url, s->copies->folder);
    s->failed |= there < 0;
    return there;
}

/* Is it a catalog of one segment with the tag of this piece? */
static bool piece_right(const struct manifest *m, const struct piece *p, const tamis_catalog *c)
{
    char tag[PIECE_TAG];
    size_t len;
    int expected = tag_write(tag, m->host, m->epoch, p);
    const void *there = tamis_catalog_segments(c) == 1 ? tamis_catalog_tag(c, 0, &len) : NULL;
    return there && len == (size_t)expected && memcmp(there, tag, len) == 0;
}

/* Joins a piece; false: it is damaged or forged, or s->failed. */
static bool take_piece(struct syncing *s, const struct manifest *m, const struct piece *p,
                       const struct bytes *bytes)
{
    uint64_t sum[2];
    tamis_catalog *c = NULL;
    const tamis_open_options options = {.verify = true};
    sum_of(bytes->data, bytes->len, sum);
    if (bytes->len != p->bytes || sum[0] != p->sum[0] || sum[1] != p->sum[1])
        return false;
    if (!file_put(s->piece, bytes->data, bytes->len, PUT_PRIVATE | PUT_LOOSE)) /* to be mapped */
        return s->failed = true, false;
    bool right =
        tamis_catalog_open(&c, s->piece, &options, NULL) == TAMIS_OK && piece_right(m, p, c);
    size_t group = right ? group_of(s, c) : SIZE_MAX;
    bool good = group != SIZE_MAX && group_join(s, &s->group[group], c, NULL);
    if (good)
        s->group[group].bytes += bytes->len;
    if (good && s->group[group].like == c)
        s->group[group].first = c; /* closed with the group */
    else
        tamis_catalog_close(c);
    unlink(s->piece);
    return good;
}

/* Fetches the missing pieces of a manifest. *behind: one of them does not match the manifest. */
static bool take_pieces(struct syncing *s, const struct manifest *m, struct known_host *h,
                        bool *behind)
{
    struct bytes bytes = {0};
    char owner[HOST_MAX + 32], why[160], day[16];
    *behind = false;
    for (size_t i = 0; i < m->n && !s->failed; i++) {
        const struct piece *p = &m->piece[i];
        struct present *here = find_present(s, m, p->serial);
        if (here) {
            here->wanted = true;
            continue;
        }
        snprintf(owner, sizeof owner, "%s/%" PRIu32, m->host, p->slot);
        if (fetch_bytes(s, owner, &bytes) == 1 && take_piece(s, m, p, &bytes))
            continue;
        *behind = true;
        day_write(p->day, day);
        snprintf(why, sizeof why, "its summary of %s is missing or damaged", day);
        free(h->doubt);
        h->doubt = strdup(why);
    }
    free(bytes.data);
    return !s->failed;
}

/* The manifest cannot be used: the host is in doubt, and its copies stay. */
static bool doubt_host(struct syncing *s, struct known_host *h, bool old)
{
    const struct known_host *was = copies_host(&s->was, h->name);
    for (size_t i = 0; i < s->n_present; i++)
        s->present[i].wanted |= strcmp(s->present[i].host, h->name) == 0;
    h->as_of = was ? was->as_of : 0;
    free(h->catalog);
    free(h->doubt);
    h->catalog = was && was->catalog ? strdup(was->catalog) : NULL;
    h->doubt = strdup(old                     ? "its manifest is older than one seen before"
                      : s->copies->seal.given ? "its manifest is missing, damaged or not sealed"
                                              : "its manifest is missing or damaged");
    return h->doubt || out_of_memory(s);
}

/* A manifest may be replaced while its pieces are fetched. */
#define TRIES 3

static bool take_host(struct syncing *s, const char *name)
{
    struct bytes bytes = {0};
    const struct known_host *was = copies_host(&s->was, name);
    struct known_host *h = copies_add(s->copies, name);
    bool behind = true, read = false, old = false, good = h || out_of_memory(s);
    if (h)
        h->version = was ? was->version : 0;
    for (int i = 0; good && behind && i < TRIES; i++) {
        struct manifest m = {0};
        read = fetch_bytes(s, name, &bytes) == 1 &&
               manifest_read(&m, bytes.data, bytes.len, false, &s->copies->seal) &&
               strcmp(m.host, name) == 0;
        old = read && m.version < h->version; /* replayed, or from a backup */
        read &= !old;
        good = !s->failed;
        if (!read || !good) {
            manifest_free(&m);
            break;
        }
        free(h->doubt);
        free(h->catalog);
        h->doubt = NULL;
        h->version = m.version;
        h->as_of = m.as_of;
        h->failed = m.failed;
        h->catalog = m.catalog;
        m.catalog = NULL;
        good = take_pieces(s, &m, h, &behind);
        manifest_free(&m);
    }
    free(bytes.data);
    return good && (read || doubt_host(s, h, old));
}

static void note_owner(void *context, const char *owner, bool forgotten)
{
    struct syncing *s = context;
    struct known_host *was = copies_host(&s->was, owner);
    if (was && !(forgotten && s->copies->seal.given)) /* forgetting cannot be sealed */
        was->listed = true;
    if (forgotten || strchr(owner, '/'))
        return;
    if (!host_valid(owner)) {
        s->strange++;
        return;
    }
    char *name = strdup(owner);
    if (!name || !array_add(&s->name, &s->n_names, &s->names_room, &name, sizeof name)) {
        free(name);
        out_of_memory(s);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    const struct kept_file *x = a, *y = b;
    return ORDER(x->bytes, y->bytes, 0);
}

/* Decides which files to rewrite, smallest first, and joins their pieces. */
static bool join_files(struct syncing *s)
{
    bool good = true;
    for (size_t i = 0; i < s->n_present; i++)
        if (s->present[i].wanted)
            s->file[s->present[i].file].keep[s->present[i].segment / 64] |=
                UINT64_C(1) << s->present[i].segment % 64;
    if (s->n_files)
        qsort(s->file, s->n_files, sizeof *s->file, by_bytes);
    for (size_t i = 0; good && i < s->n_files; i++) {
        struct kept_file *f = &s->file[i];
        struct group *g = &s->group[f->group];
        uint64_t n = tamis_catalog_segments(f->catalog), kept = 0;
        for (uint64_t j = 0; j < n / 64 + 1; j++)
            kept += (uint64_t)__builtin_popcountll(f->keep[j]);
        f->rewrite = kept < n || 4 * g->bytes >= f->bytes;
        if (!f->rewrite)
            continue;
        g->bytes += n ? f->bytes / n * kept : 0;
        if (kept)
            good = group_join(s, g, f->catalog, f->keep);
    }
    return good;
}

static bool commit_group(struct syncing *s, struct group *g)
{
    struct bytes note = {0};
    char path[4096];
    tamis_reason reason = {0};
    struct copies *c = s->copies;
    g->note.segment = 1;
    bool good = inputs_encode(&g->note, &note) || out_of_memory(s);
    copies_path(c, g->number, path);
    good = good &&
           succeeded(tamis_catalog_commit(g->writer, note.data, note.len, &reason), &reason, path);
    free(note.data);
    return good && (copies_add_file(c, g->number) || out_of_memory(s));
}

static bool write_files(struct syncing *s)
{
    struct copies *c = s->copies;
    bool good = join_files(s);
    for (size_t i = 0; good && i < s->n_groups; i++)
        if (s->group[i].writer)
            good = commit_group(s, &s->group[i]);
    for (size_t i = 0; good && i < s->n_files; i++)
        good = s->file[i].rewrite || copies_add_file(c, s->file[i].number) || out_of_memory(s);
    return good && copies_write(c);
}

/* Removes the new files, or if all went well those that the status no longer names. */
static void remove_files(const struct syncing *s, bool good)
{
    char path[4096];
    for (uint64_t number = s->was.next; number < s->copies->next && !good; number++) {
        copies_path(s->copies, number, path);
        unlink(path);
    }
    for (size_t i = 0; good && i < s->was.n_files; i++) {
        bool named = false;
        for (size_t j = 0; j < s->copies->n_files; j++)
            named |= s->copies->file[j] == s->was.file[i];
        copies_path(s->copies, s->was.file[i], path);
        if (!named)
            unlink(path);
    }
}

/* ---- the sync -------------------------------------------------------------------------------- */

static void syncing_free(struct syncing *s)
{
    for (size_t i = 0; i < s->n_groups; i++) {
        tamis_catalog_abandon(s->group[i].writer);
        tamis_catalog_close(s->group[i].first);
        inputs_free(&s->group[i].note);
    }
    for (size_t i = 0; i < s->n_files; i++) {
        tamis_catalog_close(s->file[i].catalog);
        free(s->file[i].keep);
    }
    for (size_t i = 0; i < s->n_names; i++)
        free(s->name[i]);
    free(s->name);
    free(s->group);
    free(s->file);
    free(s->present);
    copies_free(&s->was);
    carrier_close(s->carrier);
}

static bool sync_locked(struct syncing *s)
{
    struct copies *c = s->copies;
    if (copies_read(c) < 0)
        return false;
    s->was = *c;
    c->host = NULL;
    c->file = NULL;
    c->n = c->room = c->n_files = c->files_room = 0;
    snprintf(s->piece, sizeof s->piece, "%s/piece.tamis", c->folder);
    if (!look_here(s))
        return false;
    if (!carrier_owners(s->carrier, note_owner, s))
        return refuse("%s: %s: check the address, or ask the folder %s, as of its last copies",
                      s->carrier->error, s->url, c->folder);
    bool good = !s->failed;
    for (size_t i = 0; good && i < s->n_names; i++)
        good = take_host(s, s->name[i]);
    /* A host that is no longer listed, but was not forgotten, may still have any record. */
    for (size_t i = 0; good && i < s->was.n; i++)
        good = s->was.host[i].listed || take_host(s, s->was.host[i].name);
    good = good && write_files(s);
    remove_files(s, good);
    if (good && s->strange)
        remark("%zu names at %s are not valid host names: ignored", s->strange, s->url);
    return good;
}

bool copies_sync(struct copies *c, const char *url)
{
    char error[256];
    struct syncing s = {.copies = c, .url = url};
    s.carrier = carrier_open(url, error);
    if (!s.carrier)
        return refuse("%s: %s", error, url);
    tamis_lock *lock = copies_lock(c);
    bool good = lock && sync_locked(&s);
    syncing_free(&s);
    tamis_file_unlock(lock);
    return good;
}
