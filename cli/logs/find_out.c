/* Prints a matching record: the record itself, some of its fields, or JSON. */
#include <stdio.h>
#include <string.h>

#include "find.h"
#include "ui/escape.h"
#include "ui/out.h"

#define RED  "\033[1;31m"
#define DIM  "\033[35m"
#define BACK "\033[0m"

static void put(struct bytes *out, const char *text)
{
    bytes_put(out, text, strlen(text));
}

static void put_number(struct bytes *out, uint64_t n)
{
    char text[24];
    bytes_put(out, text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)n));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_string(struct bytes *out, const uint8_t *s, size_t len)
{
    bytes_put(out, "\"", 1);
    for (size_t i = 0; i < len;) {
        char shown[8];
        size_t n;
        i += json_char(s + i, len - i, shown, &n);
        bytes_put(out, shown, n);
    }
    bytes_put(out, "\"", 1);
}

/* The reader accepts more than RFC JSON: control characters in strings, NaN and Infinity, bytes
   that are not UTF-8. Does the record have none of these? */
static bool strict(const uint8_t *s, size_t len)
{
    bool inside = false;
    for (size_t i = 0; i < len;) {
        size_t n = utf8_char(s + i, len - i);
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
static void put_value(struct bytes *out, const struct value *v)
{
    bool list = v->next != NULL;
    if (list)
        put(out, "[");
    for (; v; v = v->next) {
        put_string(out, v->data, v->len);
        if (v->next)
            put(out, ", ");
    }
    if (list)
        put(out, "]");
}

static void json_fields(const struct output *o, struct bytes *out, const struct record *r)
{
    bool first = true;
    put(out, ", \"fields\": {");
    for (size_t i = 0; i < o->n_fields; i++) {
        const struct value *v = &r->values[o->column[i]];
        if (v->state == VALUE_MISSING)
            continue;
        if (!first)
            put(out, ", ");
        first = false;
        put_string(out, (const uint8_t *)o->name[i], strlen(o->name[i]));
        put(out, ": ");
        put_value(out, v);
    }
    put(out, "}");
}

static void json_record(const struct output *o, struct bytes *out, const struct found *f)
{
    const struct record *r = f->record;
    bool object = f->json && !r->unfit && !memchr(r->data, '\n', r->len) && strict(r->data, r->len);
    put(out, "{\"file\": ");
    put_string(out, (const uint8_t *)f->path, strlen(f->path));
    put(out, ", \"offset\": ");
    put_number(out, f->offset);
    put(out, ", \"line\": ");
    put_number(out, f->line);
    if (o->tag) {
        put(out, ", \"tag\": ");
        put_string(out, (const uint8_t *)f->check->tag, strlen(f->check->tag));
    }
    put(out, ", \"record\": ");
    if (object)
        bytes_put(out, r->data, r->len);
    else
        put_string(out, r->data, r->len);
    if (!f->json || o->chosen)
        json_fields(o, out, r);
    put(out, "}\n");
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* RFC 4180; the elements of a list are separated by semicolons. */
static void put_cell(struct bytes *out, const uint8_t *data, size_t len)
{
    bool quoted = false;
    for (size_t i = 0; i < len && !quoted; i++)
        quoted = data[i] == ',' || data[i] == '"' || data[i] == '\n' || data[i] == '\r';
    if (!quoted) {
        bytes_put(out, data, len);
        return;
    }
    put(out, "\"");
    for (size_t i = 0; i < len; i++)
        bytes_put(out, data[i] == '"' ? "\"\"" : (const char *)data + i, 1 + (data[i] == '"'));
    put(out, "\"");
}

static void put_cells(const struct output *o, struct bytes *out, const struct found *f)
{
    bool alone = o->n_fields == 1 && !o->tag && !o->file && !o->line;
    if (o->tag)
        put_cell(out, (const uint8_t *)f->check->tag, strlen(f->check->tag));
    if (o->file) {
        put(out, o->tag ? "," : "");
        put_cell(out, (const uint8_t *)f->path, strlen(f->path));
    }
    if (o->line) {
        put(out, o->tag || o->file ? "," : "");
        put_number(out, f->line);
    }
    for (size_t i = 0; i < o->n_fields; i++) {
        const struct value *v = &f->record->values[o->column[i]];
        if (i || o->tag || o->file || o->line)
            put(out, ",");
        if (alone && v->len == 0 && !v->next)
            put(out, "\"\""); /* an empty line would not be a row */
        if (v->state != VALUE_MISSING && !v->next) {
            put_cell(out, v->data, v->len);
            continue;
        }
        struct bytes list = {0};
        for (; v && v->state != VALUE_MISSING; v = v->next) {
            bytes_put(&list, v->data, v->len);
            if (v->next)
                put(&list, ";");
        }
        put_cell(out, list.data, list.len);
        out->failed |= list.failed;
        bytes_end(&list);
    }
    put(out, "\n");
}

void out_header(const struct output *o)
{
    struct bytes line = {0};
    put(&line, o->tag ? "tag," : "");
    put(&line, o->file ? "file," : "");
    put(&line, o->line ? "line," : "");
    for (size_t i = 0; i < o->n_fields; i++) {
        if (i)
            put(&line, ",");
        put_cell(&line, (const uint8_t *)o->name[i], strlen(o->name[i]));
    }
    put(&line, "\n");
    put_bytes(line.data, line.len);
    bytes_end(&line);
}

/* ---- records --------------------------------------------------------------------------------- */

void out_shown(struct bytes *out, const uint8_t *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        char shown[8];
        size_t n;
        if (s[i] == '\t' || s[i] == '\n') {
            bytes_put(out, s + i++, 1);
            continue;
        }
        i += escape_char(s + i, len - i, shown, &n);
        bytes_put(out, shown, n);
    }
}

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

static void put_coloured(struct bytes *out, const struct found *f)
{
    struct spots s = {.record = f->record};
    const uint8_t *at = f->record->data, *end = at + f->record->len;
    check_spots(f->check, f->record->values, add_spot, &s);
    for (size_t i = 0; i < s.n; i++) {
        const uint8_t *from = s.spot[i].data > at ? s.spot[i].data : at;
        const uint8_t *to = s.spot[i].data + s.spot[i].len;
        if (to <= at)
            continue;
        out_shown(out, at, (size_t)(from - at));
        put(out, RED);
        out_shown(out, from, (size_t)(to - from));
        put(out, BACK);
        at = to;
    }
    out_shown(out, at, (size_t)(end - at));
}

/* Prints file:line: first, like grep. */
static void put_place(const struct output *o, struct bytes *out, const struct found *f)
{
    if (o->tag) {
        put(out, f->check->tag);
        put(out, "\t");
    }
    if (o->file) {
        if (o->colour)
            put(out, DIM);
        if (o->terminal)
            out_shown(out, (const uint8_t *)f->path, strlen(f->path));
        else
            put(out, f->path);
        put(out, o->colour ? BACK ":" : ":");
    }
    if (o->line) {
        put_number(out, f->line);
        put(out, ":");
    }
}

void out_record(const struct output *o, struct bytes *out, const struct found *f)
{
    const struct record *r = f->record;
    size_t len = r->len + r->end_len; /* the line end may be a lone \r at the end of the file */
    if (o->form == OUT_JSON) {
        json_record(o, out, f);
        return;
    }
    if (o->form == OUT_FIELDS) {
        put_cells(o, out, f);
        return;
    }
    put_place(o, out, f);
    if (o->terminal) {
        if (o->colour)
            put_coloured(out, f);
        else
            out_shown(out, r->data, r->len);
        put(out, r->end_len == 2 ? "\r\n" : "\n");
    } else {
        bytes_put(out, r->data, len);
        if (r->end_len == 0 || r->data[len - 1] != '\n')
            put(out, "\n");
    }
}
