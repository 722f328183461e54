/* The encoding of the inputs of a catalog: the note and the tags. See inputs.h. */
#define _GNU_SOURCE /* qsort_r */
#include "inputs.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define NOTE_VERSION 4

void inputs_free(struct inputs *in)
{
    owned_free(&in->own);
    free(in->root);
    free(in->rule);
    free(in->field);
    free(in->entry);
    *in = (struct inputs){0};
}

const char *inputs_keep(struct inputs *in, const char *text)
{
    char *copy = strdup(text);
    return owned_adopt(&in->own, copy) ? copy : NULL;
}

bool inputs_add_root(struct inputs *in, const char *path, bool folder)
{
    const struct root root = {path, folder};
    return array_add(&in->root, &in->n_roots, &in->roots_room, &root, sizeof root);
}

void inputs_forget(struct inputs *in, uint32_t root)
{
    size_t kept = 0;
    for (size_t i = 0; i < in->n; i++)
        if (in->entry[i].root != root) {
            in->entry[kept] = in->entry[i];
            in->entry[kept++].root -= in->entry[i].root > root;
        }
    in->n = kept;
    in->n_roots--;
    memmove(in->root + root, in->root + root + 1, (in->n_roots - root) * sizeof *in->root);
}

bool inputs_add_rule(struct inputs *in, enum rule_kind kind, const char *glob)
{
    const struct rule rule = {kind, glob};
    return array_add(&in->rule, &in->n_rules, &in->rules_room, &rule, sizeof rule);
}

bool inputs_rule(const struct inputs *in, enum rule_kind kind, const char *path, bool none)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < in->n_rules; i++) {
        const struct rule *r = &in->rule[i];
        if (r->kind != kind)
            continue;
        if (fnmatch(r->glob, strchr(r->glob, '/') ? path : name, 0) == 0)
            return true;
        none = false;
    }
    return none;
}

bool inputs_add_field(struct inputs *in, const char *name, tamis_type type)
{
    const struct note_field field = {name, type};
    return array_add(&in->field, &in->n_fields, &in->fields_room, &field, sizeof field);
}

void counts_add(struct counts *to, const struct counts *more)
{
    to->records += more->records;
    to->unfit += more->unfit;
    to->bad += more->bad;
}

void counts_take(struct counts *from, const struct counts *less)
{
    from->records -= less->records < from->records ? less->records : from->records;
    from->unfit -= less->unfit < from->unfit ? less->unfit : from->unfit;
    from->bad -= less->bad < from->bad ? less->bad : from->bad;
}

size_t inputs_count(const struct inputs *in)
{
    size_t n = 0;
    for (size_t i = 0; i < in->n; i++)
        n += !in->entry[i].passed;
    return n;
}

struct entry *inputs_add(struct inputs *in)
{
    const struct entry entry = {0};
    return array_add(&in->entry, &in->n, &in->room, &entry, sizeof entry) ? &in->entry[in->n - 1]
                                                                          : NULL;
}

static int compare_ids(const void *a, const void *b, void *entries)
{
    const struct entry *entry = entries;
    uint64_t x = entry[*(const size_t *)a].id, y = entry[*(const size_t *)b].id;
    return ORDER(x, y, 0);
}

size_t *inputs_by_id(const struct inputs *in)
{
    size_t *by_id = malloc((in->n + 1) * sizeof *by_id);
    for (size_t i = 0; by_id && i < in->n; i++)
        by_id[i] = i;
    if (by_id && in->n)
        qsort_r(by_id, in->n, sizeof *by_id, compare_ids, in->entry);
    return by_id;
}

size_t inputs_find(const struct inputs *in, const size_t *by_id, uint64_t id)
{
    size_t at = SEARCH(i, in->n, in->entry[by_id[i]].id < id);
    return at < in->n && in->entry[by_id[at]].id == id ? by_id[at] : NOWHERE;
}

bool entry_keep(struct inputs *in, struct entry *e, const struct dialect *d)
{
    e->format = d->format;
    e->delimiter = d->delimiter;
    e->headless = d->headless;
    e->returns = d->returns;
    e->in_lines = d->in_lines;
    e->array = d->format == READ_JSON ? inputs_keep(in, d->records) : NULL;
    e->time = d->time ? inputs_keep(in, d->time) : NULL;
    return (d->format != READ_JSON || e->array) && (!d->time || e->time);
}

void entry_restore(const struct entry *e, struct dialect *d)
{
    d->format = e->format;
    d->delimiter = e->delimiter;
    d->headless = e->headless;
    d->returns = e->returns;
    d->in_lines = e->in_lines;
    d->records = e->array;
    d->time = e->time;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* The bytes of a note or tag: every list of fields below writes them, or reads them. */
struct note {
    struct bytes *out; /* writing; otherwise */
    const uint8_t *at, *end;
    bool bad, full; /* damaged; no memory */
};

/* The next bytes, where they are; NULL if there are fewer. */
static const uint8_t *note_bytes(struct note *n, uint64_t len)
{
    n->bad |= len > (uint64_t)(n->end - n->at);
    n->at += n->bad ? 0 : len;
    return n->bad ? NULL : n->at - len;
}

static void field_view(struct note *n, const uint8_t **data, uint64_t len)
{
    if (n->out)
        bytes_put(n->out, *data, (size_t)len);
    else
        *data = note_bytes(n, len);
}

/* Copied at once: in a mapped file it may change until the next read. */
static void field_fixed(struct note *n, void *value, size_t len)
{
    const uint8_t *from = n->out ? NULL : note_bytes(n, len);
    if (n->out)
        bytes_put(n->out, value, len);
    else if (from)
        memcpy(value, from, len);
    else
        memset(value, 0, len);
}

/* Seven bits per byte, the lowest first; the last byte has its top bit clear. */
static void field_number(struct note *n, uint64_t *value)
{
    uint8_t byte = 128;
    uint64_t left = *value;
    *value = n->out ? left : 0;
    for (unsigned shift = 0; byte & 128 && !n->bad; shift += 7, left >>= 7) {
        byte = (uint8_t)(left | (left > 127 ? 128 : 0));
        field_fixed(n, &byte, 1);
        if (n->out)
            continue;
        n->bad |= shift == 63 && byte > 1;
        *value |= n->bad ? 0 : (uint64_t)(byte & 127) << shift;
    }
    *value = n->bad ? 0 : *value;
}

static void field_size(struct note *n, size_t *value)
{
    uint64_t number = *value;
    field_number(n, &number);
    *value = (size_t)number;
}

/* Followed by a zero byte; "" if it is damaged. */
static void field_string(struct note *n, const char **text)
{
    const uint8_t *data = n->out ? (const uint8_t *)*text : NULL;
    uint64_t len = n->out ? strlen(*text) : 0;
    field_number(n, &len);
    field_view(n, &data, len < UINT64_MAX ? len + 1 : len);
    n->bad |= !data || data[len] || memchr(data, 0, (size_t)len);
    *text = n->bad ? "" : (const char *)data;
}

/* Read-only where they are read. */
static void field_blob(struct note *n, uint8_t **data, size_t *len)
{
    const uint8_t *bytes = *data;
    field_size(n, len);
    field_view(n, &bytes, *len);
    *data = (uint8_t *)(uintptr_t)bytes;
}

static void counts_fields(struct note *n, struct counts *counts)
{
    field_number(n, &counts->records);
    field_number(n, &counts->unfit);
    field_number(n, &counts->bad);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A piece of text: offset and length, line, and a byte that tells how it is reached. 0: at its
   offset. Bit 0: at, at_len, skip follow. Bit 1: then a restart point. Bit 2: then the time
   before it. Bit 3: then the modification time of the file. Bit 4: then the header that it
   begins with; bit 5: there are headers in it. Bit 6: each of its lines is a record (CSV). */
static void place_fields(struct note *n, struct input_segment *s)
{
    bool apart = s->at != s->offset || s->at_len != s->len || s->skip || s->restart_len;
    uint8_t how = (uint8_t)((apart ? 1 : 0) | (s->restart_len ? 2 : 0) | (s->timed ? 4 : 0) |
                            (s->reference ? 8 : 0) | (s->header ? 16 : 0) | (s->turns ? 32 : 0) |
                            (s->lined ? 64 : 0));
    uint64_t nanoseconds = s->time_before.nanoseconds;
    field_number(n, &s->offset);
    field_number(n, &s->len);
    field_number(n, &s->line);
    field_fixed(n, &how, 1);
    if (how & 1) {
        field_number(n, &s->at);
        field_number(n, &s->at_len);
        field_number(n, &s->skip);
    } else {
        s->at = s->offset;
        s->at_len = s->len;
    }
    if (how & 2)
        field_blob(n, &s->restart, &s->restart_len);
    if (how & 4) {
        field_fixed(n, &s->time_before.seconds, sizeof s->time_before.seconds);
        field_number(n, &nanoseconds);
    }
    if (how & 8)
        field_fixed(n, &s->reference, sizeof s->reference);
    if (how & 16)
        field_blob(n, &s->header, &s->header_len);
    s->timed = how & 4;
    s->turns = how & 32;
    s->lined = how & 64;
    s->time_before.nanoseconds = (uint32_t)nanoseconds;
    n->bad |= how > 127 || nanoseconds > 999999999 || s->skip > s->offset ||
              s->len > UINT64_MAX - s->offset || s->at_len > UINT64_MAX - s->at;
}

/* ---- tags ------------------------------------------------------------------------------------ */

static void tag_part_fields(struct note *n, struct input_part *part)
{
    field_number(n, &part->id);
    counts_fields(n, &part->count);
    place_fields(n, &part->where);
}

bool tag_add(struct bytes *out, const struct input_part *part)
{
    struct input_part copy = *part;
    tag_part_fields(&(struct note){.out = out}, &copy);
    return !out->failed;
}

bool tag_next(const void *tag, size_t len, size_t *at, struct input_part *part, bool *bad)
{
    const uint8_t *data = tag;
    struct note n = {.at = data + *at, .end = data + len};
    *bad = false;
    if (*at == len)
        return false;
    *part = (struct input_part){0};
    tag_part_fields(&n, part);
    *at = (size_t)(n.at - data);
    *bad = n.bad;
    return !n.bad;
}

/* ---- the note -------------------------------------------------------------------------------- */

/* Up to eight flags in a byte, the first one lowest. */
static void field_flags(struct note *n, bool *const *flags, size_t count)
{
    uint8_t byte = 0;
    for (size_t i = 0; i < count; i++)
        byte |= (uint8_t)(*flags[i] << i);
    field_fixed(n, &byte, 1);
    for (size_t i = 0; i < count; i++)
        *flags[i] = byte >> i & 1;
}

/* NULL is "" there. */
static void field_text(struct note *n, const char **text)
{
    const char *there = *text ? *text : "";
    field_string(n, &there);
    *text = *there ? there : NULL;
}

#define IN_LINES 0x80 /* beside the format */

static void entry_fields(struct note *n, struct entry *e)
{
    bool passed = e->passed != NULL;
    bool *const flags[] = {&e->resumable, &e->damaged, &e->unread,   &e->file.racy,
                           &passed,       &e->unknown, &e->headless, &e->returns};
    uint8_t format = (uint8_t)(e->format | (e->in_lines ? IN_LINES : 0));
    uint64_t root = e->root;
    field_number(n, &e->id);
    field_number(n, &root);
    field_string(n, &e->path);
    field_flags(n, flags, COUNT(flags));
    field_fixed(n, &format, 1);
    e->in_lines = format & IN_LINES;
    format &= IN_LINES - 1;
    field_fixed(n, &e->delimiter, 1);
    if (format == READ_JSON)
        field_string(n, &e->array);
    field_text(n, &e->time);
    field_number(n, &e->file.device);
    field_number(n, &e->file.inode);
    field_number(n, &e->file.size);
    field_fixed(n, &e->file.mtime, sizeof e->file.mtime);
    field_fixed(n, &e->file.ctime, sizeof e->file.ctime);
    if (passed)
        field_string(n, &e->passed);
    else if (!e->unread)
        field_view(n, &e->sums, raw_sums_len(e->file.size));
    field_number(n, &e->text);
    counts_fields(n, &e->count);
    n->bad |= format >= READ_FORMATS;
    e->root = (uint32_t)root;
    e->format = format;
    if (e->resumable) {
        place_fields(n, &e->resume);
        counts_fields(n, &e->open);
    }
}

static void note_head_fields(struct note *n, struct inputs *in)
{
    uint8_t head[] = {NOTE_VERSION, (uint8_t)in->dialect.format, in->dialect.delimiter,
                      in->dialect.headless, (uint8_t)(in->skip_unknown | in->chosen << 1)};
    const char **const texts[] = {&in->dialect.records, &in->dialect.pattern, &in->dialect.time,
                                  &in->dialect.zone};
    field_fixed(n, head, sizeof head);
    n->bad |= head[0] != NOTE_VERSION || head[1] >= READ_FORMATS || head[3] > 1 || head[4] > 3;
    in->dialect.format = head[1];
    in->dialect.delimiter = head[2];
    in->dialect.headless = head[3];
    in->skip_unknown = head[4] & 1;
    in->chosen = head[4] & 2;
    for (size_t i = 0; i < COUNT(texts); i++)
        field_text(n, texts[i]);
    field_size(n, &in->segment);
    field_number(n, &in->next_id);
    n->bad |= in->segment == 0;
}

/* An element of a list: a byte and a text. False if it is damaged. */
static bool pair_fields(struct note *n, uint8_t *byte, const char **text)
{
    field_fixed(n, byte, 1);
    field_string(n, text);
    return !n->bad;
}

static void list_fields(struct note *n, struct inputs *in)
{
    uint64_t roots = in->n_roots, rules = in->n_rules, fields = in->n_fields, entries = in->n;
    bool reads = !n->out;
    field_number(n, &roots);
    for (uint64_t i = 0; i < roots && !n->bad && !n->full; i++) {
        struct root r = {0};
        if (!reads)
            r = in->root[i];
        uint8_t folder = r.folder;
        if (pair_fields(n, &folder, &r.path) && reads)
            n->full |= !inputs_add_root(in, r.path, folder == 1);
    }
    field_number(n, &rules);
    for (uint64_t i = 0; i < rules && !n->bad && !n->full; i++) {
        struct rule r = {0};
        if (!reads)
            r = in->rule[i];
        uint8_t kind = (uint8_t)r.kind;
        pair_fields(n, &kind, &r.glob);
        n->bad |= kind < RULE_INCLUDE || kind > RULE_APPEND_ONLY;
        if (reads && !n->bad)
            n->full |= !inputs_add_rule(in, kind, r.glob);
    }
    field_number(n, &fields);
    for (uint64_t i = 0; i < fields && !n->bad && !n->full; i++) {
        struct note_field f = {0};
        if (!reads)
            f = in->field[i];
        uint8_t type = (uint8_t)f.type;
        pair_fields(n, &type, &f.name);
        n->bad |= type >= TAMIS_TYPES;
        if (reads && !n->bad)
            n->full |= !inputs_add_field(in, f.name, type);
    }
    field_number(n, &entries);
    for (uint64_t i = 0; i < entries && !n->bad && !n->full; i++) {
        struct entry copy = {0}, *e = reads ? inputs_add(in) : &copy;
        n->full |= !e;
        if (!e)
            return;
        if (!reads)
            copy = in->entry[i];
        entry_fields(n, e);
        n->bad |= reads && (e->root >= in->n_roots || e->id >= in->next_id);
    }
}

bool inputs_encode(const struct inputs *in, struct bytes *out)
{
    struct inputs copy = *in;
    struct note n = {.out = out};
    out->len = 0;
    note_head_fields(&n, &copy);
    list_fields(&n, &copy);
    return !out->failed && !n.bad;
}

tamis_error inputs_decode(struct inputs *in, const void *data, size_t len, tamis_reason *reason)
{
    uint8_t *copy = malloc(len ? len : 1); /* a mapped file may change after it was checked */
    struct note n = {.at = copy, .end = copy + len};
    *in = (struct inputs){0};
    n.full = !owned_adopt(&in->own, copy);
    if (!n.full && len) {
        memcpy(copy, data, len);
        note_head_fields(&n, in);
        list_fields(&n, in);
        if (!n.bad && !n.full && n.at == n.end)
            return TAMIS_OK;
    }
    bool newer = !n.full && len && *copy > NOTE_VERSION;
    inputs_free(in);
    if (n.full)
        return fail(reason, TAMIS_ENOMEM, "no memory for the table of inputs");
    if (newer)
        return fail(reason, TAMIS_EVERSION, "its table of inputs is of a newer version");
    if (len && *(const uint8_t *)data && *(const uint8_t *)data < NOTE_VERSION)
        return fail(reason, TAMIS_EFORMAT,
                    "its table of inputs is of an older version; make a new one");
    return fail(reason, TAMIS_EFORMAT, "it has no table of inputs, or a damaged one");
}

bool names_have(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *end; (end = strchr(list, '\n')); list = end + 1)
        if ((size_t)(end - list) == len && memcmp(list, name, len) == 0)
            return true;
    return false;
}

bool inputs_time(const struct inputs *in, const char *name)
{
    const char *list = in->dialect.time;
    return strcmp(name, READ_TIME) == 0 ||
           (list && (strcmp(name, list) == 0 || names_have(list, name)));
}

bool inputs_zone(const struct inputs *in, const char *catalog)
{
    const char *zone = in->dialect.zone;
    return !zone || time_zone_known(zone) ||
           refuse("unknown time zone %s: %s: install tzdata, or index again with --tz", zone,
                  catalog);
}
