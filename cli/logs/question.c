/* Parses words into clauses. See question.h. */
#define _GNU_SOURCE
#include "question.h"

#include <ctype.h>
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

bool wrong(struct question *q, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(q->why, sizeof q->why, format, args);
    va_end(args);
    return false;
}

bool question_no_memory(struct question *q)
{
    return wrong(q, "out of memory: question: free some memory and run again");
}

/* ---- words ----------------------------------------------------------------------------------- */

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

/* Operators that other tools have: a!~x, a^x. */
static bool foreign_op(const char *p)
{
    return (p[0] == '!' && p[1] == '~') || (p[0] == '^' && p[1] != '=');
}

/* The attribute is the text before the first operator that makes it one; operators of other tools, which names may
   contain, only if no other does. */
static bool cut_word(struct word *w, const char *text, const struct fields *fields)
{
    for (int foreign = 0; foreign < 2; foreign++)
        for (size_t i = 1; text[0] && text[i]; i++) {
            enum op op = OP_FOREIGN;
            size_t len = foreign ? 0 : op_at(text + i, &op);
            bool cuts = foreign ? foreign_op(text + i) : len > 0;
            const struct field *field = cuts ? field_asked(fields, text, i) : NULL;
            if (field) {
                *w = (struct word){text, text + i + len, field, op};
                return true;
            }
        }
    return false;
}

bool unknown_field(struct question *q, const char *name, size_t len, const char *word,
                   const struct fields *fields)
{
    char list[400] = "";
    size_t at = 0, i = 0;
    for (; i < fields->n && at + strlen(fields->field[i].name) + 30 < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "",
                               fields->field[i].name);
    if (i < fields->n)
        snprintf(list + at, sizeof list - at, " and %zu more", fields->n - i);
    return wrong(q,
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

const char *field_type_told(const struct field *field)
{
    return field->unseen ? "in no sampled record (is the name right?), therefore text"
                         : tamis_type_name(field->type);
}

/* What a!~x, a^x or !x should have been. */
static bool explain_op(struct question *q, const char *word, const char *name, size_t len,
                       const char *op)
{
    const char *text = op + 1 + (op[1] == '~');
    size_t n = strlen(text);
    if (op[0] == '^')
        return wrong(q, "no such operator: %.200s: write %.*s^=%.100s", word, (int)len, name, text);
    if (n > 2 && text[0] == '/' && text[n - 1] == '/') {
        text++;
        n -= 2;
    }
    return wrong(
        q,
        "! stands before = or at the end: %.200s: write '%.*s~/(?s)^(?!.*%.*s)/' for those "
        "without it, or '\"%.100s\"' for the text",
        word, (int)len, name, n > 100 ? 100 : (int)n, text, word);
}

/* A word that names no attribute is searched in the line, unless an attribute was meant. */
static bool bare_word(struct question *q, struct word *w, const char *text,
                      const struct fields *fields)
{
    size_t name =
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@-");
    enum op op;
    *w = (struct word){text, text, field_asked(fields, READ_LINE, strlen(READ_LINE)), OP_HAS};
    if (text[0] == '"')
        return true;
    size_t len = name ? op_at(text + name, &op) : 0;
    if (name && text[name] == '!' && text[name + 1] == '~')
        return explain_op(q, text, text, name, text + name);
    if (text[0] == '!' && text[1] && text[1] != '=')
        return explain_op(q, text, READ_LINE, strlen(READ_LINE), text);
    if (len) { /* with a misspelt name, all records would match, since they lack it */
        if (!fields->open || op == OP_MISSING || op == OP_NOT)
            return unknown_field(q, text, name, text, fields);
        *w = (struct word){text, text + name + len, unseen_field(q, text, name), op};
        return w->field || question_no_memory(q);
    }
    if (!name && op_at(text, &op) && op != OP_BELOW && op != OP_ABOVE) /* <none> is text */
        return wrong(q,
                     "no attribute: %.200s: write attr%.100s, line%.100s for the whole line, or "
                     "'\"%.100s\"' for the text",
                     text, text, text, text);
    const char *slash = text[0] == '/' ? strrchr(text + 1, '/') : NULL;
    if (slash && slash > text + 1 && (!slash[1] || strcmp(slash + 1, "i") == 0))
        return wrong(
            q,
            "a regular expression without an attribute: %.200s: write line~%.100s, or '\"%.100s\"' for "
            "the text",
            text, text, text);
    if (field_asked(fields, text, strlen(text)))
        return wrong(
            q,
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

/* ---- text ------------------------------------------------------------------------------------ */

/* a~/regex/ or a~/regex/i */
static bool read_regex(struct question *q, struct clause *c, const struct word *w)
{
    const char *end = strrchr(w->text, '/');
    bool fold = end[1] == 'i' && !end[2];
    if (end == w->text || (end[1] && !fold))
        return wrong(q, "a regular expression without its end: %.200s: write %s~/regex/", w->whole,
                     w->field->name);
    char text[REGEX_WHY];
    size_t at, len = (size_t)(end - w->text) - 1;
    c->kind = CLAUSE_REGEX;
    c->regex = regex_new(w->text + 1, len, REGEX_UTF | (fold ? REGEX_FOLD : 0), text, &at);
    if (c->regex)
        return true;
    return text[0]
               ? wrong(q, "%s at byte %zu of the regular expression: %.200s: see man pcre2pattern",
                       text, at, w->whole)
               : wrong(q,
                       "built without PCRE2: %.200s: install it and build again, or ask for words",
                       w->whole);
}

static void no_key(void *context, tamis_key key, bool part)
{
    (void)context, (void)key, (void)part;
}

/* Is there a class of characters, as patterns have it? A line has numbers and whole words in brackets: sshd[42], [error]. */
static bool has_class(const char *text)
{
    const char *open = strchr(text, '['), *end = open ? strchr(open, ']') : NULL;
    if (!end)
        return false;
    bool attached =
        open > text || isalnum((unsigned char)end[1]) || (end[1] && strchr("+?{", end[1]));
    size_t digits = strspn(open + 1, "0123456789"), n = (size_t)(end - open) - 1;
    return open[1] == '^' || (attached && digits < n) || has_class(end);
}

/* Words that are not in double quotes may not contain signs of lists or patterns. Brackets and bars between
   words may be those of a line. */
static bool plain_words(struct question *q, const struct word *w)
{
    const char *text = w->text, *name = w->field->name;
    int lead = (int)(text - w->whole);
    bool one = !strpbrk(text, " \t");
    if (text[0] == '"')
        return true;
    if (one && text[0] == '@' && text[1])
        return wrong(q,
                     "lists are for =: %.200s: write %s=%.100s, or '%.*s\"%.100s\"' for the text",
                     w->whole, name, text, lead, w->whole, text);
    if (strchr(text, '*'))
        return wrong(q,
                     "* has no meaning here: %.200s: write '%s~/regex/', or '%.*s\"%.100s\"' for "
                     "the text",
                     w->whole, name, lead, w->whole, text);
    if (one && (has_class(text) || strchr(text, '|') || text[0] == '^'))
        return wrong(
            q,
            "words are not a pattern: %.200s: write '%s~/%.100s/', or '%.*s\"%.100s\"' for "
            "the text",
            w->whole, name, text, lead, w->whole, text);
    return true;
}

/* a~words, or a bare word; quotes around it are removed by the shell. */
static bool read_words(struct question *q, struct clause *c, const struct word *w)
{
    const tamis_key phrase = {w->text, strlen(w->text)};
    c->phrase = (struct span){phrase.data, phrase.len};
    if (!plain_words(q, w))
        return false;
    if (tamis_type_ask(TAMIS_WORDS, TAMIS_PHRASE, phrase, no_key, NULL) == TAMIS_NEED_ALL)
        return true;
    return wrong(q, "no word in it: %.200s: write letters or digits, or %s~/regex/", w->whole,
                 w->field->name);
}

/* user:ann and 'user = ann', as other tools have it: words of the line, but is an attribute named so? */
static bool may_name_field(const char *text, const struct fields *fields)
{
    size_t len = strcspn(text, NAME_ENDS);
    const char *op = text + len + strspn(text + len, " ");
    return *op && strchr(NAME_ENDS, *op) && field_asked(fields, text, len);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool read_word(struct question *q, const char *text, const struct fields *fields)
{
    struct word w;
    if (!text[0])
        return wrong(q, "an empty word: '': write attr=VALUE or a word of the line");
    if ((text[0] == '"' || !cut_word(&w, text, fields)) && !bare_word(q, &w, text, fields))
        return false;
    if (w.op == OP_FOREIGN)
        return explain_op(q, text, w.field->name, strlen(w.field->name), w.text);
    bool compared = w.op == OP_BELOW || w.op == OP_UP_TO || w.op == OP_ABOVE || w.op == OP_FROM;
    if (compared && !tamis_type_ordered(w.field->type))
        return wrong(
            q,
            "%s is %s, which has no order: %.200s: index it as a number or time, with --attrs "
            "%s:int, %s:dec or %s:time",
            w.field->name, field_type_told(w.field), text, w.field->name, w.field->name,
            w.field->name);
    struct clause *c = clause_for(q, &w);
    if (!c)
        return question_no_memory(q);
    bool network = w.op == OP_HAS && question_like_network(w.text);
    if (network || (w.op == OP_HAS && w.text == text && may_name_field(text, fields))) {
        c->doubt = text;
        c->doubted = network ? DOUBT_NETWORK : DOUBT_NAME;
    }
    if (compared)
        return question_compare(q, c, &w);
    switch (w.op) {
    case OP_MISSING:
        return c->missing = true;
    case OP_PREFIX:
        return question_prefix(q, c, &w);
    case OP_HAS:
        return w.text[0] == '/' && w.text != w.whole ? read_regex(q, c, &w) : read_words(q, c, &w);
    default:
        return question_set(q, c, &w);
    }
}

bool question_read(struct question *q, char *const *words, size_t n, const struct fields *fields,
                   struct time_context *time)
{
    bool good = true;
    *q = (struct question){.time = time};
    for (size_t i = 0; good && i < n; i++)
        good = read_word(q, words[i], fields);
    for (size_t i = 0; good && i < q->n; i++)
        clause_sort(&q->clause[i], q->column[q->clause[i].column].type);
    return good;
}
