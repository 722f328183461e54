/*
 * Lists every field of the records of a text, from which attributes are chosen: first the names, then a selection of
 * all of them, so that the values are those that index and find will see.
 */
#define _GNU_SOURCE /* tdestroy */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/err.h"
#include "reader_parse.h"
#include "regex.h"

/* Names in the order in which they occur, zero-terminated; at most as many as a selection takes. */
struct field_names {
    char **name;
    size_t n, room;
    void *tree; /* the same names, to search */
    bool full;  /* no memory */
};

#define FIELDS_MAX 4096

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void keep(void *name)
{
    (void)name;
}

static void field_names_free(struct field_names *names)
{
    tdestroy(names->tree, keep);
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
}

static void names_add(struct field_names *names, const uint8_t *name, size_t len)
{
    if (len == 0 || memchr(name, 0, len) || names->n == FIELDS_MAX)
        return;
    char *copy = array_room(NULL, &names->name, names->n, &names->room, sizeof *names->name)
                     ? strndup((const char *)name, len)
                     : NULL;
    char **found = copy ? tsearch(copy, &names->tree, by_text) : NULL;
    names->full |= !found;
    if (found && *found == copy)
        names->name[names->n++] = copy;
    else
        free(copy);
}

/* The columns of a table's header; without one their numbers, from its first line. */
static void table_names(const struct dialect *dialect, const uint8_t *at, size_t len, bool header,
                        struct field_names *names)
{
    const uint8_t *line = len ? memchr(at, '\n', len) : NULL, *end = at + len;
    if (!header && line)
        end = line;
    uint8_t *name = malloc((size_t)(end - at) + 16);
    names->full |= !name;
    for (unsigned c = 1; at && name && len; c++) {
        size_t n = csv_header_field(dialect, &at, end, name);
        if (!header)
            n = (size_t)sprintf((char *)name, "%u", c);
        names_add(names, name, n);
    }
    free(name);
}

static void header_names(const struct dialect *dialect, const uint8_t *header, size_t header_len,
                         struct field_names *names)
{
    struct log_columns c;
    const uint8_t *at, *text;
    size_t len;
    if (dialect->format == READ_CSV || dialect->format == READ_TSV) {
        table_names(dialect, header, header_len, true, names);
        return;
    }
    columns_read(&c, dialect->format, header, header_len);
    for (at = c.names; columns_next(&c, &at, c.names_end, &text, &len);)
        names_add(names, text, len);
}

/* The names in headers within the text. */
static tamis_error later_names(const struct input *input, const struct input_text *text,
                               struct field_names *names, tamis_reason *reason)
{
    const char *line = READ_LINE;
    struct parsing p = {0};
    struct record r;
    enum parsed parsed = PARSED_END;
    tamis_error error = parsing_begin(&p, &input->dialect, &line, 1, input->header,
                                      input->header_len, text->data, text->len, reason);
    if (error == TAMIS_OK)
        parser_context(p.parser, text);
    for (const struct selection *last = NULL;
         error == TAMIS_OK && (parsed = parser_row(p.parser, &r)) != PARSED_END;) {
        if (parsed == PARSED_NOMEM)
            error = TAMIS_ENOMEM;
        else if (p.parser->selection != last)
            header_names(&input->dialect, p.parser->head.data, p.parser->head.len, names);
        last = p.parser->selection;
    }
    parsing_end(&p);
    return error;
}

static void pattern_names(const struct selection *s, struct field_names *names)
{
    const char *name;
    uint32_t group;
    for (size_t i = 0; regex_group(s->pattern, i, &name, &group); i++)
        names_add(names, (const uint8_t *)name, strlen(name));
}

/* A dotted path. */
struct path {
    uint8_t text[512];
    size_t len, parts;
};

static void string_names(struct parser *ps, const uint8_t *p, const uint8_t *quote,
                         struct path *path, struct field_names *names);
static void array_names(struct parser *ps, const uint8_t *p, const uint8_t *end, struct path *path,
                        struct field_names *names);

/*
 * The keys of the JSON object at p, a valid value, each below `path`; for objects inside it, and
 * JSON in strings, their keys instead of their own. Returns the position after the object.
 */
static const uint8_t *object_names(struct parser *ps, const uint8_t *p, const uint8_t *end,
                                   struct path *path, struct field_names *names)
{
    struct fault fault;
    for (p++; p && p < end;) {
        const uint8_t *key, *value;
        size_t key_len, before = path->len;
        while ((p = json_blanks(p, end)) < end && *p == ',')
            p++;
        if (p == end || *p == '}')
            return p + 1;
        p = value = json_key(p, end, &key, &key_len, &fault);
        if (!p)
            return NULL;
        p = json_value(ps, p, end, false, &fault);
        if (!p || key_len + 1 > sizeof path->text - path->len || path->parts == PATH_PARTS - 1)
            continue;
        if (before)
            path->text[path->len++] = '.';
        path->len += json_unescape(key, key + key_len, path->text + path->len);
        path->parts++;
        if (*value == '{')
            object_names(ps, value, p, path, names);
        else if (*value == '[')
            array_names(ps, value, p, path, names);
        else if (*value == '"')
            string_names(ps, value + 1, p - 1, path, names);
        else
            names_add(names, path->text, path->len);
        path->len = before;
        path->parts--;
    }
    return p;
}

/* The keys of the objects in an array; its own name, unless it contains only objects. */
static void array_names(struct parser *ps, const uint8_t *p, const uint8_t *end, struct path *path,
                        struct field_names *names)
{
    struct fault fault;
    bool objects = false, others = false;
    for (p = json_blanks(p + 1, end); p && p < end && *p != ']';) {
        const uint8_t *value = p;
        p = json_value(ps, p, end, false, &fault);
        if (!p)
            break;
        objects |= *value == '{';
        others |= *value != '{';
        if (*value == '{')
            object_names(ps, value, p, path, names);
        for (p = json_blanks(p, end); p < end && *p == ','; p = json_blanks(p + 1, end))
            ;
    }
    if (others || !objects)
        names_add(names, path->text, path->len);
}

/* A string that contains an object has names below it, besides its own. */
static void string_names(struct parser *ps, const uint8_t *p, const uint8_t *quote,
                         struct path *path, struct field_names *names)
{
    struct fault fault;
    size_t len = (size_t)(quote - p);
    names_add(names, path->text, path->len);
    if (!memchr(p, '{', len))
        return;
    uint8_t *plain = malloc(len);
    names->full |= !plain;
    if (!plain)
        return;
    const uint8_t *end = plain + json_unescape(p, quote, plain), *at = json_blanks(plain, end);
    if (at < end && *at == '{') {
        const uint8_t *stop = json_value(ps, at, end, false, &fault);
        if (stop && json_blanks(stop, end) == end)
            object_names(ps, at, stop, path, names);
    }
    free(plain);
}

/* For formats that name fields in each record. */
static tamis_error record_names(const struct input *input, const struct input_text *text,
                                struct field_names *names, tamis_reason *reason)
{
    const char *line = READ_LINE;
    struct parsing lines = {0};
    struct parser *walker = parser_new();
    struct record r;
    enum parsed parsed;
    tamis_error error = walker ? parsing_begin(&lines, &input->dialect, &line, 1, NULL, 0,
                                               text->data, text->len, reason)
                               : TAMIS_ENOMEM;
    if (error == TAMIS_OK)
        error = parser_begin(walker, lines.selection, text->data, 0);
    while (error == TAMIS_OK && (parsed = parser_next(lines.parser, &r)) != PARSED_END) {
        const uint8_t *p = r.data, *end = r.data + r.len, *key;
        struct path path = {.len = 0};
        size_t len;
        if (parsed == PARSED_NOMEM || names->full)
            error = TAMIS_ENOMEM;
        else if (r.unfit)
            continue;
        else if (input->dialect.format == READ_LOGFMT)
            while (p < end && (p = logfmt_key(p, end, &key, &len)))
                names_add(names, key, len);
        else if (*(p = json_blanks(p, end)) == '{')
            object_names(walker, p, end, &path, names);
    }
    parsing_end(&lines);
    parser_free(walker);
    return error;
}

static tamis_error find_names(const struct input *input, const struct input_text *text,
                              struct field_names *names, tamis_reason *reason)
{
    size_t n;
    const char *line = READ_LINE;
    struct selection *s = NULL;
    tamis_error error = TAMIS_OK;
    const struct read_field *field = read_fields(input->dialect.format, &n);
    for (size_t i = 0; i < n; i++)
        names_add(names, (const uint8_t *)field[i].name, strlen(field[i].name));
    switch (input->dialect.format) {
    case READ_CSV:
    case READ_TSV:
    case READ_ZEEK:
    case READ_W3C:
        if (input->header)
            header_names(&input->dialect, input->header, input->header_len, names);
        else
            table_names(&input->dialect, text->data, text->len, false, names);
        if (text->of.turns || text->of.header)
            error = later_names(input, text, names, reason);
        break;
    case READ_PATTERN:
        error = selection_new(&s, &input->dialect, &line, 1, NULL, 0, reason);
        if (error == TAMIS_OK)
            pattern_names(s, names);
        selection_free(s);
        break;
    case READ_JSONL:
    case READ_JSON:
    case READ_LOGFMT:
        error = record_names(input, text, names, reason);
        break;
    default:
        break;
    }
    return names->full ? TAMIS_ENOMEM : error;
}

/* Rows that have as many fields as the header, and others. */
struct row_counts {
    uint64_t even, odd;
};

/* Is a row a line between the others, such as part of a stack trace, whose fields mean nothing? Not where most rows differ
   from their header. */
static bool is_between(const struct parser *ps, const struct record *record,
                       struct row_counts *rows)
{
    const struct selection *s = ps->selection;
    bool even = !s->n_headed || csv_fields(&s->dialect, record->data, record->len) == s->n_headed;
    rows->even += even;
    rows->odd += !even;
    return !even && rows->odd <= rows->even;
}

static tamis_error visit_all(struct parser *ps, const struct field_names *names, read_visit visit,
                             void *context)
{
    struct record record;
    struct row_counts rows = {0};
    enum parsed parsed;
    for (uint64_t n = 0; (parsed = parser_next(ps, &record)) != PARSED_END; n++) {
        if (parsed == PARSED_NOMEM)
            return TAMIS_ENOMEM;
        if (is_between(ps, &record, &rows))
            continue;
        for (size_t i = 0; i < names->n; i++)
            if (record.values[i].state != VALUE_MISSING &&
                !visit(context, n, names->name[i], &record.values[i]))
                return TAMIS_OK;
    }
    return TAMIS_OK;
}

tamis_error reader_fields(const struct input *input, const struct input_text *text,
                          read_visit visit, void *context, tamis_reason *reason)
{
    struct field_names names = {0};
    struct parsing p = {0};
    tamis_error error = find_names(input, text, &names, reason);
    if (error == TAMIS_OK && names.n) {
        error = parsing_begin(&p, &input->dialect, (const char *const *)names.name, names.n,
                              input->header, input->header_len, text->data, text->len, reason);
        if (error == TAMIS_OK) {
            parser_context(p.parser, text);
            error = visit_all(p.parser, &names, visit, context);
        }
    }
    if (error == TAMIS_ENOMEM)
        fail(reason, error, "no memory for the fields of %.120s", input->path);
    parsing_end(&p);
    field_names_free(&names);
    return error;
}
