/* Parses words into clauses. See question.h. */
#define _GNU_SOURCE
#include "question.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "question_parts.h"
#include "read/regex.h"

/* ---- memory ---------------------------------------------------------------------------------- */

void question_free(struct question *q)
{
    for (size_t i = 0; i < q->n; i++) {
        struct clause *c = &q->clause[i];
        regex_free(c->regex);
        free(c->value);
        free(c->prefix);
        free(c->range);
        free(c->network);
    }
    owned_free(&q->own);
    free(q->clause);
    free(q->column);
    free(q->name);
    free(q->period);
    *q = (struct question){0};
}

bool wrong(char why[QUESTION_WHY], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, QUESTION_WHY, format, args);
    va_end(args);
    return false;
}

static bool out_of_memory(char why[QUESTION_WHY])
{
    return wrong(why, "out of memory: question: free some memory and run again");
}

/* ---- words ----------------------------------------------------------------------------------- */

enum op { OP_EQUAL, OP_NOT, OP_PREFIX, OP_BELOW, OP_UP_TO, OP_ABOVE, OP_FROM, OP_HAS, OP_MISSING };

/* A word split in two. */
struct word {
    const char *whole, *text; /* text: after the operator */
    const struct field *field;
    enum op op;
};

/* The operator here, and its length; 0: there is none. */
static size_t op_at(const char *p, enum op *op)
{
    bool equals = p[0] && p[1] == '=';
    switch (p[0]) {
    case '=':
        return *op = OP_EQUAL, 1;
    case '!':
        *op = equals ? OP_NOT : OP_MISSING;
        return equals ? 2 : p[1] == 0;
    case '^':
        return *op = OP_PREFIX, equals ? 2 : 0;
    case '<':
        return *op = equals ? OP_UP_TO : OP_BELOW, 1 + equals;
    case '>':
        return *op = equals ? OP_FROM : OP_ABOVE, 1 + equals;
    case '~':
        return *op = OP_HAS, 1;
    default:
        return 0;
    }
}

const struct field *field_named(const struct fields *fields, const char *name, size_t len)
{
    for (size_t i = 0; i < fields->n; i++)
        if (strncmp(fields->field[i].name, name, len) == 0 && !fields->field[i].name[len])
            return &fields->field[i];
    return NULL;
}

const struct field *field_asked(const struct fields *fields, const char *name, size_t len)
{
    static const struct field line = {READ_LINE, TAMIS_WORDS, NOT_INDEXED, false};
    const struct field *field = field_named(fields, name, len);
    if (!field && len == strlen(READ_LINE) && memcmp(name, READ_LINE, len) == 0)
        field = &line;
    return field;
}

/* The attribute is the text before the first operator that makes it one. */
static bool cut_word(struct word *w, const char *text, const struct fields *fields)
{
    for (size_t i = 1; text[0] && text[i]; i++) {
        enum op op;
        size_t len = op_at(text + i, &op);
        const struct field *field = len ? field_asked(fields, text, i) : NULL;
        if (field) {
            *w = (struct word){text, text + i + len, field, op};
            return true;
        }
    }
    return false;
}

bool unknown_field(const char *name, size_t len, const char *word, const struct fields *fields,
                   char why[QUESTION_WHY])
{
    char list[400] = "";
    size_t at = 0, i = 0;
    for (; i < fields->n && at + strlen(fields->field[i].name) + 30 < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "",
                               fields->field[i].name);
    if (i < fields->n)
        snprintf(list + at, sizeof list - at, " and %zu more", fields->n - i);
    return wrong(why,
                 "no input has an attribute '%.*s'; there are %s: %.100s: check the name, or put "
                 "text in double quotes",
                 len > 100 ? 100 : (int)len, name, list, word);
}

const struct field *unseen_field(struct question *q, const char *name, size_t len)
{
    struct field *field = malloc(sizeof *field + len + 1);
    if (!owned_adopt(&q->own, field))
        return NULL;
    char *copy = (char *)(field + 1);
    memcpy(copy, name, len);
    copy[len] = 0;
    *field = (struct field){copy, TAMIS_BYTES, NOT_INDEXED, true};
    return field;
}

/* A word that names no attribute is searched in the line, unless an attribute was meant. */
static bool bare_word(struct question *q, struct word *w, const char *text,
                      const struct fields *fields, char why[QUESTION_WHY])
{
    size_t name =
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@-");
    enum op op;
    *w = (struct word){text, text, field_asked(fields, READ_LINE, strlen(READ_LINE)), OP_HAS};
    if (text[0] == '"')
        return true;
    size_t len = name ? op_at(text + name, &op) : 0;
    if (len) { /* with a wrong name, everything that lacks it would match */
        if (!fields->open || op == OP_MISSING || op == OP_NOT)
            return unknown_field(text, name, text, fields, why);
        *w = (struct word){text, text + name + len, unseen_field(q, text, name), op};
        return w->field || out_of_memory(why);
    }
    if (!name && op_at(text, &op) && op != OP_BELOW && op != OP_ABOVE) /* <none> is text */
        return wrong(why,
                     "no attribute: %.200s: write attr%.100s, line%.100s for the whole line, or "
                     "'\"%.100s\"' for the text",
                     text, text, text, text);
    if (strchr(text, '*'))
        return wrong(why, "* has no meaning here: %.200s: write line~/regex/, or '\"%.100s\"'",
                     text, text);
    if (field_asked(fields, text, strlen(text)))
        return wrong(
            why,
            "an attribute's name alone: %.200s: write %.100s=VALUE, or '\"%.100s\"' for the "
            "word",
            text, text, text);
    return true;
}

/* ---- clauses --------------------------------------------------------------------------------- */

size_t question_column(struct question *q, const struct field *field)
{
    size_t i = 0;
    while (i < q->n_columns && strcmp(q->column[i].name, field->name) != 0)
        i++;
    if (i < q->n_columns)
        return i;
    if (!room_for(&q->name, i, &q->names_room, sizeof *q->name) ||
        !room_for(&q->column, i, &q->columns_room, sizeof *q->column))
        return NO_COLUMN;
    q->column[i] = *field;
    q->name[i] = field->name;
    q->n_columns++;
    return i;
}

/* The clause that a word belongs to: the alternatives for its attribute, or a new one. */
static struct clause *clause_for(struct question *q, const struct word *w)
{
    size_t column = question_column(q, w->field);
    bool negative = w->op == OP_NOT;
    bool open = negative || w->op == OP_EQUAL || w->op == OP_PREFIX || w->op == OP_MISSING;
    for (size_t i = 0; open && i < q->n; i++)
        if (q->clause[i].open && q->clause[i].negative == negative && q->clause[i].column == column)
            return &q->clause[i];
    const struct clause fresh = {.kind = w->op == OP_HAS ? CLAUSE_WORDS : CLAUSE_SET,
                                 .negative = negative,
                                 .open = open,
                                 .column = column,
                                 .word = w->whole};
    bool good = column != NO_COLUMN && array_add(&q->clause, &q->n, &q->room, &fresh, sizeof fresh);
    return good ? &q->clause[q->n - 1] : NULL;
}

/* The normal form of a value of this type, owned by the question; false: it has none. */
static bool normal_of(struct question *q, tamis_type type, const char *text, size_t len,
                      struct span *out, bool *no_room)
{
    size_t room = len + TIME_NORMAL_MAX;
    uint8_t *normal = malloc(room);
    if (!owned_adopt(&q->own, normal)) {
        *no_room = true;
        return false;
    }
    out->data = normal;
    out->len = type == TAMIS_TIME ? time_normal(q->time, (const uint8_t *)text, len, (char *)normal)
                                  : tamis_value_normal(type, text, len, normal, room);
    return out->len > 0;
}

/* A value that is not of its type stands for itself: *plain. */
static bool add_value(struct question *q, struct clause *c, tamis_type type, const char *text,
                      size_t len, bool *plain, char why[QUESTION_WHY])
{
    struct wanted value = {.given = text};
    bool no_room = false;
    *plain = type == TAMIS_BYTES || !normal_of(q, type, text, len, &value.is, &no_room);
    if (*plain)
        value.is = (struct span){(const uint8_t *)text, len};
    return (!no_room &&
            array_add(&c->value, &c->n_values, &c->values_room, &value, sizeof value)) ||
           out_of_memory(why);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* A bound in the form of its type. Times that name a day, an hour or a minute mean all of it:
   `from` is its start and `to` the start of the next one; *exact: a single moment. */
static bool bound_of(struct question *q, const struct field *field, const char *text, size_t len,
                     struct end *from, struct end *to, bool *exact, const char *word,
                     char why[QUESTION_WHY])
{
    static const char *const names[] = {
        [TAMIS_INT] = "whole number", [TAMIS_DEC] = "number", [TAMIS_TIME] = "time"};
    bool no_room = false, good;
    *from = *to = (struct end){.there = true};
    *exact = true;
    if (field->type == TAMIS_TIME)
        good = moment_of(q->time, text, len, &from->time, &to->time, exact);
    else
        good = normal_of(q, field->type, text, len, &from->text, &no_room);
    to->text = from->text;
    if (no_room)
        return out_of_memory(why);
    if (!good)
        return wrong(
            why, "not a %s: '%.*s' in %.200s: %s", names[field->type], (int)len, text, word,
            field->type == TAMIS_TIME
                ? "write 2h or 7d (ago), 2024-05-31, 2024-05-31T10:00 or 2024-05-31T10:00:00Z"
                : "write digits such as 500 or 1.5");
    return true;
}

static bool add_range(struct clause *c, const struct range *range, char why[QUESTION_WHY])
{
    return array_add(&c->range, &c->n_ranges, &c->ranges_room, range, sizeof *range) ||
           out_of_memory(why);
}

/* a=v1..v2 */
static bool read_range(struct question *q, struct clause *c, const struct word *w, const char *text,
                       const char *dots, char why[QUESTION_WHY])
{
    struct range r = {0};
    struct end other;
    bool exact, good = true;
    size_t len = (size_t)(dots - text), rest = strlen(dots + 2);
    if (len == 0 && rest == 0)
        return wrong(why, "a range without ends: %.200s: write %s=1.., ..9 or 1..9", w->whole,
                     w->field->name);
    if (len)
        good = bound_of(q, w->field, text, len, &r.low, &other, &exact, w->whole, why);
    if (good && rest) {
        good = bound_of(q, w->field, dots + 2, rest, &other, &r.high, &exact, w->whole, why);
        r.high.outside = !exact;
    }
    return good && add_range(c, &r, why);
}

/* a<v and similar. */
static bool read_compare(struct question *q, struct clause *c, const struct word *w,
                         char why[QUESTION_WHY])
{
    struct range r = {0};
    struct end from, to;
    bool exact;
    if (!bound_of(q, w->field, w->text, strlen(w->text), &from, &to, &exact, w->whole, why))
        return false;
    if (w->op == OP_FROM || w->op == OP_ABOVE) {
        r.low = w->op == OP_FROM ? from : to;
        r.low.outside = w->op == OP_ABOVE && exact;
    } else {
        r.high = w->op == OP_BELOW ? from : to;
        r.high.outside = w->op == OP_BELOW || !exact;
    }
    return add_range(c, &r, why);
}

bool question_period(struct question *q, const char *since, const char *until,
                     char why[QUESTION_WHY])
{
    static const struct field time = {"time", TAMIS_TIME, NOT_INDEXED, false};
    const struct word from = {since, since, &time, OP_FROM}, to = {until, until, &time, OP_UP_TO};
    struct clause period = {.column = PERIOD, .word = since ? since : until};
    struct range both = {0};
    bool good = (!since || read_compare(q, &period, &from, why)) &&
                (!until || read_compare(q, &period, &to, why));
    if (good && since)
        both.low = period.range[0].low;
    if (good && until)
        both.high = period.range[period.n_ranges - 1].high;
    if (good)
        period.range[0] = both;
    period.n_ranges = 1;
    good = good &&
           (array_add(&q->clause, &q->n, &q->room, &period, sizeof period) || out_of_memory(why));
    if (!good)
        free(period.range);
    return good;
}

bool question_period_field(struct question *q, const struct field *field)
{
    size_t column = question_column(q, field);
    for (size_t i = 0; i < q->n_periods; i++)
        if (q->period[i] == column)
            return true;
    return column != NO_COLUMN &&
           array_add(&q->period, &q->n_periods, &q->periods_room, &column, sizeof column);
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* 10.1.0.0/16, 2001:db8::/32; false: not a network. */
static bool network_of(const char *text, size_t len, struct network *out)
{
    const char *slash = memchr(text, '/', len);
    size_t digits = slash ? (size_t)(text + len - slash) - 1 : 0, n = slash ? len - digits - 1 : 0;
    if (digits < 1 || digits > 3 || strspn(slash + 1, "0123456789") < digits)
        return false;
    unsigned version = address_of(text, n, out->address);
    out->bits = (unsigned)atoi(slash + 1) + (version == 4 ? 96 : 0);
    out->given = text;
    network_mask(out->address, out->bits);
    return version && out->bits <= 128;
}

static bool add_network(struct clause *c, const struct network *network, char why[QUESTION_WHY])
{
    return array_add(&c->network, &c->n_networks, &c->networks_room, network, sizeof *network) ||
           out_of_memory(why);
}

/* The lines of a file, each a value; or a network if the attribute has addresses. */
static bool read_list(struct question *q, struct clause *c, const struct word *w, const char *path,
                      char why[QUESTION_WHY])
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, n = 0;
    ssize_t len;
    bool plain;
    bool good = file || wrong(why, "%s: %.200s: give a file with a value on each line, or %s==@...",
                              strerror(errno), path, w->field->name);
    while (good && (len = getline(&line, &room, file)) >= 0) {
        struct network network;
        while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            line[--len] = 0;
        if (len == 0)
            continue;
        char *copy = strdup(line);
        if (!owned_adopt(&q->own, copy))
            good = out_of_memory(why);
        else if (w->field->type == TAMIS_IP && network_of(copy, (size_t)len, &network))
            good = add_network(c, &network, why);
        else
            good = add_value(q, c, w->field->type, copy, (size_t)len, &plain, why);
        n++;
    }
    if (good && ferror(file))
        good =
            wrong(why, "%s: %.200s: give a file with a value on each line", strerror(errno), path);
    if (good && n == 0)
        good = wrong(why, "an empty list: %.200s: give a file with a value on each line", path);
    if (file)
        fclose(file);
    free(line);
    return good;
}

/* Parses what follows a= or a!=. */
static bool read_set(struct question *q, struct clause *c, const struct word *w,
                     char why[QUESTION_WHY])
{
    const struct field *f = w->field;
    const char *text = w->text, *dots;
    size_t len = strlen(text);
    struct network network;
    struct stamp from, to;
    bool exact, plain;
    if (text[0] == '=')
        return add_value(q, c, f->type, text + 1, len - 1, &plain, why);
    if (text[0] == '@' && text[1])
        return read_list(q, c, w, text + 1, why);
    if (strchr(text, '*'))
        return wrong(
            why,
            "* has no meaning here: %.200s: write %s^=PREFIX, %s~/regex/, or %s==%.100s for "
            "the text",
            w->whole, f->name, f->name, f->name, text);
    if (tamis_type_ordered(f->type) && (dots = strstr(text, "..")) != NULL)
        return read_range(q, c, w, text, dots, why);
    if (f->type == TAMIS_IP && memchr(text, '/', len)) {
        if (network_of(text, len, &network))
            return add_network(c, &network, why);
        return wrong(why, "not a network: %.200s: write %s=10.1.0.0/16, or %s==%.100s for the text",
                     w->whole, f->name, f->name, text);
    }
    if (f->type == TAMIS_TIME && moment_of(q->time, text, len, &from, &to, &exact) && !exact) {
        struct range day = {{.there = true, .time = from},
                            {.there = true, .outside = true, .time = to}};
        return add_range(c, &day, why);
    }
    if (!add_value(q, c, f->type, text, len, &plain, why))
        return false;
    if (len && plain && (tamis_type_ordered(f->type) || f->type == TAMIS_IP))
        c->doubt = w->whole;
    return true;
}

static bool add_prefix(struct question *q, struct clause *c, const struct word *w,
                       char why[QUESTION_WHY])
{
    struct wanted prefix = {{(const uint8_t *)w->text, strlen(w->text)}, w->text};
    bool no_room = false;
    if (!prefix.is.len)
        return wrong(why, "an empty prefix: %.200s: write %s^=TEXT", w->whole, w->field->name);
    if (w->field->type == TAMIS_FOLD)
        normal_of(q, TAMIS_FOLD, w->text, prefix.is.len, &prefix.is, &no_room);
    return (!no_room &&
            array_add(&c->prefix, &c->n_prefixes, &c->prefixes_room, &prefix, sizeof prefix)) ||
           out_of_memory(why);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* a~/regex/ or a~/regex/i */
static bool read_regex(struct clause *c, const struct word *w, char why[QUESTION_WHY])
{
    const char *end = strrchr(w->text, '/');
    bool fold = end[1] == 'i' && !end[2];
    if (end == w->text || (end[1] && !fold))
        return wrong(why, "a regular expression without its end: %.200s: write %s~/regex/",
                     w->whole, w->field->name);
    char text[REGEX_WHY];
    size_t at, len = (size_t)(end - w->text) - 1;
    c->kind = CLAUSE_REGEX;
    c->regex = regex_new(w->text + 1, len, REGEX_UTF | (fold ? REGEX_FOLD : 0), text, &at);
    if (c->regex)
        return true;
    return text[0]
               ? wrong(why,
                       "%s at byte %zu of the regular expression: %.200s: see man pcre2pattern",
                       text, at, w->whole)
               : wrong(why,
                       "built without PCRE2: %.200s: install it and build again, or ask for words",
                       w->whole);
}

static void no_key(void *context, tamis_key key, bool part)
{
    (void)context, (void)key, (void)part;
}

/* a~words, or a bare word; quotes around it are removed by the shell. */
static bool read_words(struct clause *c, const struct word *w, char why[QUESTION_WHY])
{
    const tamis_key phrase = {w->text, strlen(w->text)};
    c->phrase = (struct span){phrase.data, phrase.len};
    if (tamis_type_ask(TAMIS_WORDS, TAMIS_PHRASE, phrase, no_key, NULL) == TAMIS_NEED_ALL)
        return true;
    return wrong(why, "no word in it: %.200s: write letters or digits, or %s~/regex/", w->whole,
                 w->field->name);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool read_word(struct question *q, const char *text, const struct fields *fields,
                      char why[QUESTION_WHY])
{
    struct word w;
    if (!text[0])
        return wrong(why, "an empty word: '': write attr=VALUE or a word of the line");
    if ((text[0] == '"' || !cut_word(&w, text, fields)) && !bare_word(q, &w, text, fields, why))
        return false;
    bool compared = w.op == OP_BELOW || w.op == OP_UP_TO || w.op == OP_ABOVE || w.op == OP_FROM;
    if (compared && !tamis_type_ordered(w.field->type))
        return wrong(
            why,
            "%s is %s, which has no order: %.200s: index it as a number or time, with --attrs "
            "%s:int, %s:dec or %s:time",
            w.field->name, tamis_type_name(w.field->type), text, w.field->name, w.field->name,
            w.field->name);
    struct clause *c = clause_for(q, &w);
    if (!c)
        return out_of_memory(why);
    if (compared)
        return read_compare(q, c, &w, why);
    switch (w.op) {
    case OP_MISSING:
        return c->missing = true;
    case OP_PREFIX:
        return add_prefix(q, c, &w, why);
    case OP_HAS:
        return w.text[0] == '/' && w.text != w.whole ? read_regex(c, &w, why)
                                                     : read_words(c, &w, why);
    default:
        return read_set(q, c, &w, why);
    }
}

bool question_read(struct question *q, char *const *words, size_t n, const struct fields *fields,
                   struct time_context *time, char why[QUESTION_WHY])
{
    bool good = true;
    *q = (struct question){.time = time};
    for (size_t i = 0; good && i < n; i++)
        good = read_word(q, words[i], fields, why);
    for (size_t i = 0; good && i < q->n; i++)
        clause_sort(&q->clause[i]);
    if (!good)
        question_free(q);
    return good;
}
