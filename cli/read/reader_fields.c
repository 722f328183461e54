/*
 * Every field of the records of a text, for choosing among them: first the names, then a selection
 * of all of them, so that the values are those that index and find will see.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "reader_parse.h"

/* Names in the order in which they came, zero-terminated; at most what a selection takes. */
struct names {
    char **name;
    size_t n, room;
    bool full; /* no memory */
};

#define NAMES_MAX 4096

static void names_free(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
}

static void names_add(struct names *names, const uint8_t *name, size_t len)
{
    if (len == 0 || memchr(name, 0, len) || names->n == NAMES_MAX)
        return;
    for (size_t i = 0; i < names->n; i++)
        if (strlen(names->name[i]) == len && memcmp(names->name[i], name, len) == 0)
            return;
    if (names->n == names->room) {
        size_t room = names->room ? 2 * names->room : 64;
        char **fresh = realloc(names->name, room * sizeof *fresh);
        if (!fresh) {
            names->full = true;
            return;
        }
        names->name = fresh;
        names->room = room;
    }
    char *copy = strndup((const char *)name, len);
    names->full |= !copy;
    if (copy)
        names->name[names->n++] = copy;
}

/* The columns of a header, or their numbers: those of the first line. */
static void table_names(const struct input *input, const struct input_text *text,
                        struct names *names)
{
    const uint8_t *at = input->header ? input->header : text->data;
    size_t len = input->header ? input->header_len : text->len;
    const uint8_t *line = len ? memchr(at, '\n', len) : NULL, *end = at + len;
    if (!input->header && line)
        end = line;
    uint8_t *name = malloc((size_t)(end - at) + 16);
    names->full |= !name;
    for (unsigned c = 1; at && name && len; c++) {
        size_t n = csv_header_field(&input->dialect, &at, end, name);
        if (!input->header)
            n = (size_t)sprintf((char *)name, "%u", c);
        names_add(names, name, n);
    }
    free(name);
}

static void find_names(const struct input *input, const struct input_text *text,
                       struct names *names)
{
    size_t n;
    const struct read_field *field = read_fields(input->dialect.format, &n);
    for (size_t i = 0; i < n; i++)
        names_add(names, (const uint8_t *)field[i].name, strlen(field[i].name));
    if (input->dialect.format == READ_CSV || input->dialect.format == READ_TSV)
        table_names(input, text, names);
}

static tamis_error visit_all(struct parser *ps, const struct names *names, read_visit visit,
                             void *context)
{
    struct record record;
    enum parsed parsed;
    for (uint64_t n = 0; (parsed = parser_next(ps, &record)) != PARSED_END; n++) {
        if (parsed == PARSED_NOMEM)
            return TAMIS_ENOMEM;
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
    struct names names = {0};
    struct selection *selection = NULL;
    struct parser *ps = parser_new();
    tamis_error error = ps ? TAMIS_OK : TAMIS_ENOMEM;
    if (ps)
        find_names(input, text, &names);
    if (names.full)
        error = TAMIS_ENOMEM;
    if (error == TAMIS_OK && names.n) {
        error = selection_new(&selection, &input->dialect, (const char *const *)names.name, names.n,
                              input->header, input->header_len, reason);
        if (error == TAMIS_OK)
            error = parser_begin(ps, selection, text->data, text->len);
        if (error == TAMIS_OK) {
            parser_context(ps, text);
            error = visit_all(ps, &names, visit, context);
        }
    }
    if (error == TAMIS_ENOMEM)
        fail(reason, error, "no memory for the fields of %.120s", input->path);
    selection_free(selection);
    parser_free(ps);
    names_free(&names);
    return error;
}
