/* Prints a matching record: the record itself, some of its fields, or JSON. */
#include <string.h>

#include "find_target.h"
#include "base/bytes.h"
#include "ui/out.h"

#define RED  "\033[1;31m"
#define DIM  "\033[35m"
#define BACK "\033[0m"

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The reader accepts more than RFC JSON: control characters in strings, NaN and Infinity, bytes
   that are not UTF-8. Does the record have none of these? */
static bool strict(const uint8_t *s, size_t len)
{
    bool inside = false;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        size_t n = utf8_decode(s + i, len - i, &c);
        if (n == 0 || (inside && s[i] < 0x20) || (!inside && (s[i] == 'N' || s[i] == 'I')))
            return false;
        if (s[i] == '"')
            inside = !inside;
        else if (inside && s[i] == '\\')
            i++; /* an escape is complete, and ASCII */
        i += n;
    }
    return true;
}

/* A list becomes an array. */
static void json_field(const char *name, const struct read_value *v)
{
    bool list = v->next != NULL;
    if (list)
        json_open(name, '[');
    for (; v; v = v->next)
        json_bytes(list ? NULL : name, v->data, v->len);
    if (list)
        json_close();
}

/* A name occurs once in an object, however often --fields has it. */
static bool named_before(const struct output *o, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (o->target->column[j] == o->target->column[i])
            return true;
    return false;
}

static void json_record(const struct output *o, const struct found *f)
{
    const struct record *r = f->record;
    bool object = f->json && !r->unfit && !memchr(r->data, '\n', r->len) && strict(r->data, r->len);
    json_open(NULL, '{');
    json_text("file", f->path);
    json_count("offset", f->offset);
    json_count("line", f->line);
    if (o->tag)
        json_text("tag", f->check->tag);
    if (object)
        json_raw("record", r->data, r->len);
    else
        json_bytes("record", r->data, r->len);
    if (!f->json || o->chosen) {
        json_open("fields", '{');
        for (size_t i = 0; i < o->target->n_fields; i++)
            if (r->values[o->target->column[i]].state != VALUE_MISSING && !named_before(o, i))
                json_field(o->target->name[i], &r->values[o->target->column[i]]);
        json_close();
    }
    json_close();
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* RFC 4180; the elements of a list are separated by semicolons. */
static void put_cell(const struct read_value *v)
{
    bool quoted = false;
    for (const struct read_value *e = v; e; e = e->next)
        for (size_t i = 0; i < e->len && !quoted; i++)
            quoted =
                e->data[i] == ',' || e->data[i] == '"' || e->data[i] == '\n' || e->data[i] == '\r';
    put_text(quoted ? "\"" : "");
    for (; v; v = v->next) {
        const uint8_t *at = v->data, *end = at + v->len, *quote;
        for (; quoted && at < end && (quote = memchr(at, '"', (size_t)(end - at)));
             at = quote + 1) {
            put_bytes(at, (size_t)(quote + 1 - at));
            put_text("\"");
        }
        put_bytes(at, (size_t)(end - at));
        put_text(v->next ? ";" : "");
    }
    put_text(quoted ? "\"" : "");
}

static void put_word(const char *text)
{
    put_cell(&(struct read_value){(const uint8_t *)text, strlen(text), VALUE_PRESENT, NULL});
}

static void put_cells(const struct output *o, const struct found *f)
{
    const char *comma = "";
    bool alone = o->target->n_fields == 1 && !o->tag && !o->file && !o->line;
    if (o->tag) {
        put_word(f->check->tag);
        comma = ",";
    }
    if (o->file) {
        put_text(comma);
        put_word(f->path);
        comma = ",";
    }
    if (o->line) {
        put_format("%s%llu", comma, (unsigned long long)f->line);
        comma = ",";
    }
    for (size_t i = 0; i < o->target->n_fields; i++, comma = ",") {
        const struct read_value *v = &f->record->values[o->target->column[i]];
        put_text(comma);
        if (alone && v->len == 0 && !v->next)
            put_text("\"\""); /* an empty line would not be a row */
        if (v->state != VALUE_MISSING)
            put_cell(v);
    }
    put_text("\n");
}

void out_header(const struct output *o)
{
    put_text(o->tag ? "tag," : "");
    put_text(o->file ? "file," : "");
    put_text(o->line ? "line," : "");
    for (size_t i = 0; i < o->target->n_fields; i++) {
        put_text(i ? "," : "");
        put_word(o->target->name[i]);
    }
    put_text("\n");
}

/* ---- records --------------------------------------------------------------------------------- */

/* What to highlight: pieces of the record, in order and disjoint. */
struct spots {
    const struct record *record;
    struct span spot[32];
    size_t n;
};

static void add_spot(void *context, struct span bytes)
{
    struct spots *s = context;
    const uint8_t *from = s->record->data, *to = from + s->record->len;
    size_t i = s->n;
    if (!bytes.len || s->n == COUNT(s->spot) || bytes.data < from || bytes.data + bytes.len > to)
        return;
    for (; i && s->spot[i - 1].data > bytes.data; i--)
        s->spot[i] = s->spot[i - 1];
    s->spot[i] = bytes;
    s->n++;
}

static void put_coloured(const struct found *f)
{
    struct spots s = {.record = f->record};
    const uint8_t *at = f->record->data, *end = at + f->record->len;
    check_spots(f->check, f->record->values, add_spot, &s);
    for (size_t i = 0; i < s.n; i++) {
        const uint8_t *from = s.spot[i].data > at ? s.spot[i].data : at;
        const uint8_t *to = s.spot[i].data + s.spot[i].len;
        if (to <= at)
            continue;
        put_shown(at, (size_t)(from - at));
        put_text(RED);
        put_shown(from, (size_t)(to - from));
        put_text(BACK);
        at = to;
    }
    put_shown(at, (size_t)(end - at));
}

static void put_foreign(const struct output *o, const char *text)
{
    if (o->terminal)
        put_shown(text, strlen(text));
    else
        put_text(text);
}

/* Prints file:line: first, like grep. */
static void put_place(const struct output *o, const struct found *f)
{
    if (o->tag) {
        put_foreign(o, f->check->tag);
        put_text("\t");
    }
    if (o->file) {
        if (o->colour)
            put_text(DIM);
        put_foreign(o, f->path);
        put_text(o->colour ? BACK ":" : ":");
    }
    if (o->line)
        put_format("%llu:", (unsigned long long)f->line);
}

void out_record(const struct output *o, struct bytes *out, const struct found *f)
{
    const struct record *r = f->record;
    size_t len = r->len + r->end_len; /* the line end may be a lone \r at the end of the file */
    put_into(out);
    if (o->form == OUT_JSON) {
        json_record(o, f);
    } else if (o->form == OUT_FIELDS) {
        put_cells(o, f);
    } else {
        put_place(o, f);
        if (o->colour)
            put_coloured(f);
        else if (o->terminal)
            put_shown(r->data, r->len);
        else
            put_bytes(r->data, len);
        if (o->terminal)
            put_text(r->end_len == 2 ? "\r\n" : "\n");
        else if (r->end_len == 0 || r->data[len - 1] != '\n')
            put_text("\n");
    }
    put_into(NULL);
}
