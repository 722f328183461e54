/*
 * Finds the records of a text that may match. A value occurs in its record as it is in the query, or in another
 * case, unless something is escaped: a line with a backslash, a CSV field with quotes. So a search for these bytes
 * finds the lines that must be parsed, several times faster than parsing all lines; if nearly every line has them,
 * all are parsed. Values with several forms have no needle:
 * decimal numbers, times, IPv6 addresses, networks, ranges, lists, regular expressions.
 */
#define _GNU_SOURCE
#include "find.h"

#include <string.h>

#include "question_parts.h"
#include "read/reader_cut.h"
#include "read/reader_parse.h"
#include "read/reader_scan.h"

#define DENSE 256 /* bytes between hits below which everything is parsed */

/* ---- needles --------------------------------------------------------------------------------- */

/* The longest token of a phrase, as it was given: a compound occurs in the text unchanged. */
struct longest {
    size_t len;
    char bytes[256];
};

static void take_longest(void *context, tamis_key key, bool part)
{
    struct longest *l = context;
    (void)part;
    if (key.len <= l->len || key.len > sizeof l->bytes)
        return;
    memcpy(l->bytes, key.data, key.len);
    l->len = key.len;
}

static const uint8_t *find_folded(const struct span *text, const char *bytes, size_t len)
{
    for (size_t i = 0; len && i + len <= text->len; i++)
        if (strncasecmp((const char *)text->data + i, bytes, len) == 0)
            return text->data + i;
    return NULL;
}

static void words_needle(const struct clause *c, struct needle *n)
{
    struct longest l = {0};
    tamis_type_ask(TAMIS_WORDS, TAMIS_PHRASE, (tamis_key){c->phrase.data, c->phrase.len},
                   take_longest, &l);
    n->bytes = (struct span){find_folded(&c->phrase, l.bytes, l.len), l.len};
    n->fold = true;
}

static void value_needle(const struct span *value, tamis_type type, struct needle *n)
{
    uint8_t address[16];
    n->bytes = *value;
    switch (type) {
    case TAMIS_INT: /* leading zeros and a plus sign do no harm */
        n->bytes.data += value->len && value->data[0] == '-';
        n->bytes.len -= value->len && value->data[0] == '-';
        break;
    case TAMIS_IP: /* or mapped: ::ffff:a01:203 */
        n->other = (struct span){(const uint8_t *)"ffff", 4};
        n->bytes.len = address_of(value->data, value->len, address) == 4 ? value->len : 0;
        break;
    case TAMIS_DEC:
        n->bytes.len = 0;
        break;
    default:
        n->fold = type == TAMIS_FOLD;
    }
}

static void clause_needle(const struct question *q, const struct clause *c,
                          const struct selection *selection, struct needle *n)
{
    size_t ways = c->n_values + c->n_prefixes + c->n_networks + c->n_ranges + c->missing;
    *n = (struct needle){{NULL, 0}, false, {NULL, 0}};
    if (c->negative || c->column == PERIOD)
        return;
    tamis_type type = q->column[c->column].type;
    if (type == TAMIS_TIME || !selection_plain(selection, c->column))
        return;
    if (c->kind == CLAUSE_WORDS)
        words_needle(c, n);
    if (c->kind != CLAUSE_SET || ways != 1)
        return;
    if (c->n_values)
        value_needle(&c->value->is, type, n);
    if (c->n_prefixes)
        *n = (struct needle){c->prefix->is, type == TAMIS_FOLD, {NULL, 0}};
}

void needle_of(struct needle *needle, const struct question *q, const struct selection *selection)
{
    *needle = (struct needle){{NULL, 0}, false, {NULL, 0}};
    for (size_t i = 0; i < q->n_columns; i++)
        if (q->column[i].unseen) /* it must be determined whether any record has it */
            return;
    for (size_t i = 0; i < q->n; i++) {
        struct needle n;
        clause_needle(q, &q->clause[i], selection, &n);
        if (n.bytes.data && n.bytes.len > needle->bytes.len)
            *needle = n;
    }
}

/* Everything is parsed if a line may not be a whole record, or may contain the needle in another form. */
static bool lines_alone(const struct dialect *dialect, const struct input_text *text,
                        const struct span *needle)
{
    if (dialect->format == READ_JSON || dialect->returns || text->len == 0 || text->of.turns ||
        text->of.header)
        return false;
    if (dialect->format == READ_CSV)
        return (text->of.lined && !memchr(needle->data, '"', needle->len) &&
                !memchr(needle->data, '\r', needle->len)) ||
               !memchr(text->data, '"', text->len);
    return true;
}

tamis_error seek_begin(struct seek *k, struct parser *parser, const struct selection *selection,
                       const struct needle *needle, const struct input_text *text)
{
    const struct dialect *dialect = &selection->dialect;
    *k = (struct seek){.parser = parser,
                       .text = text,
                       .start = text->data,
                       .at = text->data,
                       .end = text->data + text->len,
                       .counted = text->data};
    k->needle = needle->bytes.len && lines_alone(dialect, text, &needle->bytes) ? needle : NULL;
    k->escapes = dialect->format == READ_JSONL || dialect->format == READ_LOGFMT ||
                 dialect->format == READ_SYSLOG || dialect->format == READ_ZEEK;
    if (!k->needle)
        k->at = k->end;
    tamis_error error = parser_begin(parser, selection, text->data, text->len);
    parser_context(parser, text);
    return error;
}

/* ---- searching ------------------------------------------------------------------------------- */

/* The next position worth parsing from k->at on; the end if there is none. */
static const uint8_t *next_place(struct seek *k)
{
    const uint8_t *place;
    if (k->hit < k->at)
        k->hit =
            scan_find(k->at, k->end, k->needle->bytes.data, k->needle->bytes.len, k->needle->fold);
    place = k->hit;
    if (k->needle->other.len && k->other < k->at)
        k->other = scan_find(k->at, k->end, k->needle->other.data, k->needle->other.len, true);
    if (k->needle->other.len && k->other < place)
        place = k->other;
    if (k->escapes && k->escape < k->at) { /* up to the hit is enough */
        const uint8_t *at = memchr(k->at, '\\', (size_t)(place - k->at));
        k->escape = at ? at : place;
    }
    return k->escapes && k->escape < place ? k->escape : place;
}

/* Passes the line of the next position to the parser; false: there is none. */
static bool next_line(struct seek *k)
{
    const uint8_t *place = next_place(k), *line, *end;
    if (place == k->end)
        return false;
    line = memrchr(k->at, '\n', (size_t)(place - k->at));
    line = line ? line + 1 : k->at;
    end = memchr(place, '\n', (size_t)(k->end - place));
    end = end ? end + 1 : k->end;
    k->runs++;
    if (k->runs > 64 && k->runs * DENSE > (uint64_t)(end - k->start))
        end = k->end;
    parser_piece(k->parser, k->text, line, (size_t)(end - line));
    k->at = end;
    return true;
}

enum parsed seek_next(struct seek *k, struct record *record)
{
    for (;;) {
        if (!k->needle || k->running) {
            enum parsed parsed = parser_next(k->parser, record);
            if (parsed != PARSED_END || !k->needle)
                return parsed;
            k->running = false;
        }
        if (k->at == k->end || !next_line(k))
            return PARSED_END;
        k->running = true;
    }
}

uint64_t seek_line(struct seek *k, const struct record *record)
{
    k->lines += count_lines(k->counted, (size_t)(record->data - k->counted));
    k->counted = record->data;
    return k->lines;
}
