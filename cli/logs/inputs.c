/* The encoding of the inputs of a catalog: the note and the tags. See inputs.h. */
#include "inputs.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/err.h"

#define NOTE_VERSION 3

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
    if (!room_for(&in->root, in->n_roots, &in->roots_room, sizeof *in->root))
        return false;
    in->root[in->n_roots++] = (struct root){path, folder};
    return true;
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
    if (!room_for(&in->rule, in->n_rules, &in->rules_room, sizeof *in->rule))
        return false;
    in->rule[in->n_rules++] = (struct rule){kind, glob};
    return true;
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
    if (!room_for(&in->field, in->n_fields, &in->fields_room, sizeof *in->field))
        return false;
    in->field[in->n_fields++] = (struct note_field){name, type};
    return true;
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
    if (!room_for(&in->entry, in->n, &in->room, sizeof *in->entry))
        return NULL;
    in->entry[in->n] = (struct entry){0};
    return &in->entry[in->n++];
}

bool entry_keep(struct inputs *in, struct entry *e, const struct dialect *d)
{
    e->format = d->format;
    e->delimiter = d->delimiter;
    e->headless = d->headless;
    e->returns = d->returns;
    e->array = d->format == READ_JSON ? inputs_keep(in, d->records) : NULL;
    return d->format != READ_JSON || e->array;
}

void entry_restore(const struct entry *e, struct dialect *d)
{
    d->format = e->format;
    d->delimiter = e->delimiter;
    d->headless = e->headless;
    d->returns = e->returns;
    d->records = e->array;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

uint64_t bytes_hash(const uint8_t *data, size_t len)
{
    return XXH3_64bits(data, len);
}

/* Seven bits per byte, the lowest first; the last byte has its top bit clear. */
static void put_number(struct bytes *b, uint64_t value)
{
    uint8_t out[10];
    size_t n = 0;
    for (; value > 127; value >>= 7)
        out[n++] = (uint8_t)(value | 128);
    out[n++] = (uint8_t)value;
    bytes_put(b, out, n);
}

static void put_word(struct bytes *b, uint64_t value)
{
    uint8_t out[8];
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> 8 * i);
    bytes_put(b, out, sizeof out);
}

static void put_string(struct bytes *b, const char *text)
{
    size_t len = strlen(text);
    put_number(b, len);
    bytes_put(b, text, len + 1);
}

struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t get_number(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; c->at < c->end; shift += 7) {
        uint64_t byte = *c->at++;
        if (shift == 63 && byte > 1)
            break;
        value |= (byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    c->bad = true;
    return 0;
}

static const uint8_t *get_raw(struct cursor *c, uint64_t len)
{
    if (c->bad || len > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *data = c->at;
    c->at += len;
    return data;
}

static uint64_t get_word(struct cursor *c)
{
    uint64_t value = 0;
    const uint8_t *data = get_raw(c, 8);
    for (int i = 0; data && i < 8; i++)
        value |= (uint64_t)data[i] << 8 * i;
    return value;
}

static const char *get_string(struct cursor *c)
{
    uint64_t len = get_number(c);
    const uint8_t *data = get_raw(c, len < UINT64_MAX ? len + 1 : len);
    if (!data || data[len] || memchr(data, 0, len)) {
        c->bad = true;
        return "";
    }
    return (const char *)data;
}

static void put_counts(struct bytes *b, const struct counts *n)
{
    put_number(b, n->records);
    put_number(b, n->unfit);
    put_number(b, n->bad);
}

static struct counts get_counts(struct cursor *c)
{
    struct counts n = {.records = get_number(c)};
    n.unfit = get_number(c);
    n.bad = get_number(c);
    return n;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A piece of text: offset and length, line, and a byte that tells how it is reached. 0: at its
   offset. Bit 0: at, at_len, skip follow. Bit 1: then a restart point. Bit 2: then the time
   before it. Bit 3: then the modification time of the file. Bit 4: then the header that it
   begins with; bit 5: there are headers in it. */
static void put_place(struct bytes *b, const struct input_segment *s)
{
    bool apart = s->at != s->offset || s->at_len != s->len || s->skip || s->restart_len;
    uint8_t how = (uint8_t)((apart ? 1 : 0) | (s->restart_len ? 2 : 0) | (s->timed ? 4 : 0) |
                            (s->reference ? 8 : 0) | (s->header ? 16 : 0) | (s->turns ? 32 : 0));
    put_number(b, s->offset);
    put_number(b, s->len);
    put_number(b, s->line);
    bytes_put(b, &how, 1);
    if (apart) {
        put_number(b, s->at);
        put_number(b, s->at_len);
        put_number(b, s->skip);
    }
    if (s->restart_len) {
        put_number(b, s->restart_len);
        bytes_put(b, s->restart, s->restart_len);
    }
    if (s->timed) {
        put_word(b, (uint64_t)s->time_before.seconds);
        put_number(b, s->time_before.nanoseconds);
    }
    if (s->reference)
        put_word(b, (uint64_t)s->reference);
    if (s->header) {
        put_number(b, s->header_len);
        bytes_put(b, s->header, s->header_len);
    }
}

static struct input_segment get_place(struct cursor *c)
{
    struct input_segment s = {0};
    s.offset = get_number(c);
    s.len = get_number(c);
    s.line = get_number(c);
    const uint8_t *at = get_raw(c, 1);
    const uint8_t how = at ? *(const volatile uint8_t *)at : 0; /* read once: it may be mapped */
    s.at = s.offset;
    s.at_len = s.len;
    if (how & 1) {
        s.at = get_number(c);
        s.at_len = get_number(c);
        s.skip = get_number(c);
    }
    if (how & 2) {
        uint64_t len = get_number(c);
        s.restart = (uint8_t *)get_raw(c, len); /* read-only */
        s.restart_len = (size_t)len;
    }
    if (how & 4) {
        s.timed = true;
        s.time_before.seconds = (int64_t)get_word(c);
        s.time_before.nanoseconds = (uint32_t)get_number(c);
    }
    if (how & 8)
        s.reference = (int64_t)get_word(c);
    if (how & 16) {
        uint64_t len = get_number(c);
        s.header = (uint8_t *)get_raw(c, len);
        s.header_len = (size_t)len;
    }
    s.turns = how & 32;
    if (how > 63 || s.time_before.nanoseconds > 999999999 || s.skip > s.offset ||
        s.len > UINT64_MAX - s.offset || s.at_len > UINT64_MAX - s.at)
        c->bad = true;
    return s;
}

/* ---- tags ------------------------------------------------------------------------------------ */

void tag_start(struct bytes *out)
{
    out->len = 0;
}

bool tag_add(struct bytes *out, const struct part *part)
{
    put_number(out, part->id);
    put_counts(out, &part->count);
    put_place(out, &part->where);
    return !out->failed;
}

bool tag_next(const void *tag, size_t len, size_t *at, struct part *part, bool *bad)
{
    const uint8_t *data = tag;
    *bad = false;
    if (*at == len)
        return false;
    struct cursor c = {data + *at, data + len, false};
    part->id = get_number(&c);
    part->count = get_counts(&c);
    part->where = get_place(&c);
    *at = (size_t)(c.at - data);
    *bad = c.bad;
    return !c.bad;
}

/* ---- the note -------------------------------------------------------------------------------- */

enum entry_flags {
    RESUMABLE = 1,
    DAMAGED = 2,
    UNREAD = 4,
    RACY = 8,
    PASSED = 16,
    UNKNOWN = 32,
    HEADLESS = 64,
    RETURNS = 128
};

static void put_entry(struct bytes *b, const struct entry *e)
{
    uint8_t flags = (uint8_t)((e->resumable ? RESUMABLE : 0) | (e->damaged ? DAMAGED : 0) |
                              (e->unread ? UNREAD : 0) | (e->file.racy ? RACY : 0) |
                              (e->passed ? PASSED : 0) | (e->unknown ? UNKNOWN : 0) |
                              (e->headless ? HEADLESS : 0) | (e->returns ? RETURNS : 0));
    const uint8_t how[] = {(uint8_t)e->format, e->delimiter};
    put_number(b, e->id);
    put_number(b, e->root);
    put_string(b, e->path);
    bytes_put(b, &flags, 1);
    bytes_put(b, how, sizeof how);
    if (e->format == READ_JSON)
        put_string(b, e->array);
    put_number(b, e->file.device);
    put_number(b, e->file.inode);
    put_number(b, e->file.size);
    put_word(b, (uint64_t)e->file.mtime);
    put_word(b, (uint64_t)e->file.ctime);
    if (e->passed)
        put_string(b, e->passed);
    else if (!e->unread)
        bytes_put(b, e->sums, (size_t)raw_sums_len(e->file.size));
    put_number(b, e->text);
    put_counts(b, &e->count);
    if (e->resumable) {
        put_place(b, &e->resume);
        put_counts(b, &e->open);
    }
}

bool inputs_encode(const struct inputs *in, struct bytes *out)
{
    const uint8_t head[] = {NOTE_VERSION, (uint8_t)in->dialect.format, in->dialect.delimiter,
                            in->dialect.headless, (uint8_t)(in->skip_unknown | in->chosen << 1)};
    out->len = 0;
    const char *const text[] = {in->dialect.records, in->dialect.pattern, in->dialect.time,
                                in->dialect.zone};
    bytes_put(out, head, sizeof head);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        put_string(out, text[i] ? text[i] : "");
    put_number(out, in->segment);
    put_number(out, in->next_id);
    put_number(out, in->n_roots);
    for (size_t i = 0; i < in->n_roots; i++) {
        uint8_t folder = in->root[i].folder;
        bytes_put(out, &folder, 1);
        put_string(out, in->root[i].path);
    }
    put_number(out, in->n_rules);
    for (size_t i = 0; i < in->n_rules; i++) {
        uint8_t kind = (uint8_t)in->rule[i].kind;
        bytes_put(out, &kind, 1);
        put_string(out, in->rule[i].glob);
    }
    put_number(out, in->n_fields);
    for (size_t i = 0; i < in->n_fields; i++) {
        uint8_t type = (uint8_t)in->field[i].type;
        bytes_put(out, &type, 1);
        put_string(out, in->field[i].name);
    }
    put_number(out, in->n);
    for (size_t i = 0; i < in->n; i++)
        put_entry(out, &in->entry[i]);
    return !out->failed;
}

static void get_entry(struct cursor *c, struct entry *e)
{
    e->id = get_number(c);
    e->root = (uint32_t)get_number(c);
    e->path = get_string(c);
    const uint8_t *flags = get_raw(c, 3);
    if (flags && flags[1] == READ_JSON)
        e->array = get_string(c);
    e->file.device = get_number(c);
    e->file.inode = get_number(c);
    e->file.size = get_number(c);
    e->file.mtime = (int64_t)get_word(c);
    e->file.ctime = (int64_t)get_word(c);
    if (flags && *flags & PASSED)
        e->passed = get_string(c);
    else if (flags && !(*flags & UNREAD))
        e->sums = get_raw(c, raw_sums_len(e->file.size));
    e->text = get_number(c);
    e->count = get_counts(c);
    if (!flags)
        return;
    e->resumable = *flags & RESUMABLE;
    e->damaged = *flags & DAMAGED;
    e->unread = *flags & UNREAD;
    e->file.racy = *flags & RACY;
    e->unknown = *flags & UNKNOWN;
    e->headless = *flags & HEADLESS;
    e->returns = *flags & RETURNS;
    e->format = flags[1];
    e->delimiter = flags[2];
    c->bad |= e->format >= READ_FORMATS;
    if (e->resumable) {
        e->resume = get_place(c);
        e->open = get_counts(c);
    }
}

static bool get_head(struct cursor *c, struct inputs *in)
{
    const uint8_t *head = get_raw(c, 5);
    if (!head || head[0] != NOTE_VERSION || head[1] >= READ_FORMATS || head[3] > 1 || head[4] > 3)
        return false;
    in->skip_unknown = head[4] & 1;
    in->chosen = head[4] & 2;
    in->dialect =
        (struct dialect){.format = head[1], .delimiter = head[2], .headless = head[3] == 1};
    const char **const text[] = {&in->dialect.records, &in->dialect.pattern, &in->dialect.time,
                                 &in->dialect.zone};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        *text[i] = get_string(c);
        if (**text[i] == 0)
            *text[i] = NULL;
    }
    in->segment = (size_t)get_number(c);
    in->next_id = get_number(c);
    return !c->bad && in->segment > 0;
}

/* True: complete; false: it is damaged, or (*full) there is no memory. */
static bool get_lists(struct cursor *c, struct inputs *in, bool *full)
{
    uint64_t n_roots = get_number(c);
    for (uint64_t i = 0; i < n_roots && !c->bad; i++) {
        const uint8_t *folder = get_raw(c, 1);
        const char *path = get_string(c);
        if (!c->bad && folder && !inputs_add_root(in, path, *folder == 1))
            return *full = true, false;
    }
    uint64_t n_rules = get_number(c);
    for (uint64_t i = 0; i < n_rules && !c->bad; i++) {
        const uint8_t *kind = get_raw(c, 1);
        const char *glob = get_string(c);
        c->bad |= !kind || *kind < RULE_INCLUDE || *kind > RULE_APPEND_ONLY;
        if (!c->bad && !inputs_add_rule(in, *kind, glob))
            return *full = true, false;
    }
    uint64_t n_fields = get_number(c);
    for (uint64_t i = 0; i < n_fields && !c->bad; i++) {
        const uint8_t *type = get_raw(c, 1);
        const char *name = get_string(c);
        c->bad |= !type || *type >= TAMIS_TYPES;
        if (!c->bad && !inputs_add_field(in, name, *type))
            return *full = true, false;
    }
    uint64_t n = get_number(c);
    for (uint64_t i = 0; i < n && !c->bad; i++) {
        struct entry *e = inputs_add(in);
        if (!e)
            return *full = true, false;
        get_entry(c, e);
        c->bad |= e->root >= in->n_roots || e->id >= in->next_id;
    }
    return !c->bad && c->at == c->end;
}

tamis_error inputs_decode(struct inputs *in, const void *data, size_t len, tamis_reason *reason)
{
    uint8_t *copy = malloc(len ? len : 1); /* a mapped file may change after it was checked */
    struct cursor c = {copy, copy + len, false};
    *in = (struct inputs){0};
    bool full = !owned_adopt(&in->own, copy);
    if (!full && len) {
        memcpy(copy, data, len);
        if (get_head(&c, in) && get_lists(&c, in, &full))
            return TAMIS_OK;
    }
    bool newer = !full && len && *copy > NOTE_VERSION;
    inputs_free(in);
    if (full)
        return fail(reason, TAMIS_ENOMEM, "no memory for the table of inputs");
    if (newer)
        return fail(reason, TAMIS_EVERSION, "its table of inputs is of a newer version");
    if (len && *(const uint8_t *)data && *(const uint8_t *)data < NOTE_VERSION)
        return fail(reason, TAMIS_EFORMAT,
                    "its table of inputs is of an older version; make a new one");
    return fail(reason, TAMIS_EFORMAT, "it has no table of inputs, or a damaged one");
}
