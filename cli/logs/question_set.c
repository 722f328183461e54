/* Values, ranges, networks, prefixes and lists of them in a question. See question_parts.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "question_parts.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* The normal form of a value of this type, owned by the question; false: it has none. */
static bool normal_of(struct question *q, tamis_type type, const char *text, size_t len,
                      struct span *out)
{
    size_t room = len + TIME_NORMAL_MAX;
    uint8_t *normal = malloc(room);
    if (!owned_adopt(&q->own, normal))
        return !(q->full = true);
    out->data = normal;
    out->len = type == TAMIS_TIME ? time_normal(q->time, (const uint8_t *)text, len, (char *)normal)
                                  : tamis_value_normal(type, text, len, normal, room);
    return out->len > 0;
}

/* A value that is not of its type stands for itself: *plain. */
static bool add_value(struct question *q, struct clause *c, tamis_type type, const char *text,
                      size_t len, bool *plain)
{
    struct wanted value = {.given = text};
    *plain = type == TAMIS_BYTES || !normal_of(q, type, text, len, &value.is);
    if (*plain)
        value.is = (struct span){(const uint8_t *)text, len};
    return (!q->full &&
            array_add(&c->value, &c->n_values, &c->values_room, &value, sizeof value)) ||
           question_no_memory(q);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* A bound in the form of its type. Times that name a day, an hour or a minute mean all of it:
   `from` is its start and `to` the start of the next one; *exact: a single moment. */
static bool bound_of(struct question *q, const struct field *field, const char *text, size_t len,
                     struct end *from, struct end *to, bool *exact, const char *word)
{
    static const char *const forms[][2] = {
        [TAMIS_INT] = {"whole number", "digits such as 500"},
        [TAMIS_DEC] = {"number", "digits such as 500 or 1.5"},
        [TAMIS_TIME] = {"time", "2h or 7d (ago), 2024-05-31, 2024-05-31T10:00 or "
                                "2024-05-31T10:00:00Z"}};
    const char *const *form = forms[field->type];
    bool good;
    *from = *to = (struct end){.there = true};
    *exact = true;
    if (field->type == TAMIS_TIME)
        good = moment_of(q->time, text, len, &from->time, &to->time, exact);
    else
        good = normal_of(q, field->type, text, len, &from->text);
    to->text = from->text;
    if (q->full)
        return question_no_memory(q);
    return good ||
           wrong(q, "not a %s: '%.*s' in %.200s: write %s", form[0], (int)len, text, word, form[1]);
}

static bool add_range(struct question *q, struct clause *c, const struct range *range)
{
    return array_add(&c->range, &c->n_ranges, &c->ranges_room, range, sizeof *range) ||
           question_no_memory(q);
}

/* a=v1..v2 */
static bool read_range(struct question *q, struct clause *c, const struct word *w, const char *text,
                       const char *dots)
{
    struct range r = {.given = text};
    struct end other;
    bool exact, good = true;
    size_t len = (size_t)(dots - text), rest = strlen(dots + 2);
    if (len == 0 && rest == 0)
        return wrong(q, "a range without ends: %.200s: write %s=1.., ..9 or 1..9", w->whole,
                     w->field->name);
    if (len)
        good = bound_of(q, w->field, text, len, &r.low, &other, &exact, w->whole);
    if (good && rest) {
        good = bound_of(q, w->field, dots + 2, rest, &other, &r.high, &exact, w->whole);
        r.high.outside = !exact;
    }
    if (good && range_is_empty(&r, w->field->type) && !c->doubt) {
        c->doubt = w->whole;
        c->doubted = DOUBT_RANGE;
    }
    return good && add_range(q, c, &r);
}

/* a<v and similar. */
bool question_compare(struct question *q, struct clause *c, const struct word *w)
{
    struct range r = {.given = w->whole};
    struct end from, to;
    bool exact;
    if (!bound_of(q, w->field, w->text, strlen(w->text), &from, &to, &exact, w->whole))
        return false;
    if (w->op == OP_FROM || w->op == OP_ABOVE) {
        r.low = w->op == OP_FROM ? from : to;
        r.low.outside = w->op == OP_ABOVE && exact;
    } else {
        r.high = w->op == OP_BELOW ? from : to;
        r.high.outside = w->op == OP_BELOW || !exact;
    }
    return add_range(q, c, &r);
}

bool question_period(struct question *q, const char *since, const char *until)
{
    static const struct field time = {"time", TAMIS_TIME, NOT_INDEXED, false};
    const struct word from = {since, since, &time, OP_FROM}, to = {until, until, &time, OP_UP_TO};
    struct clause period = {.column = PERIOD, .word = since ? since : until};
    struct range both = {.given = period.word};
    bool good = (!since || question_compare(q, &period, &from)) &&
                (!until || question_compare(q, &period, &to));
    if (good && since)
        both.low = period.range[0].low;
    if (good && until)
        both.high = period.range[period.n_ranges - 1].high;
    if (good)
        period.range[0] = both;
    if (good && range_is_empty(&both, TAMIS_TIME)) {
        period.doubt = since;
        period.doubted = DOUBT_RANGE;
    }
    period.n_ranges = 1;
    good = good && (array_add(&q->clause, &q->n, &q->room, &period, sizeof period) ||
                    question_no_memory(q));
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

bool question_like_network(const char *text)
{
    struct network network;
    return network_of(text, strlen(text), &network);
}

static bool add_network(struct question *q, struct clause *c, const struct network *network)
{
    return array_add(&c->network, &c->n_networks, &c->networks_room, network, sizeof *network) ||
           question_no_memory(q);
}

/* A range of numbers or times; "a..b" and "../x" are text. */
static bool like_range(struct question *q, const char *text)
{
    const char *dots = strstr(text, ".."), *part[2] = {text, dots ? dots + 2 : NULL};
    uint8_t room[80];
    struct stamp from, to;
    bool exact;
    size_t ends = 0;
    for (size_t i = 0; dots && i < 2; i++) {
        size_t len = i ? strlen(part[i]) : (size_t)(dots - text);
        if (len && (len >= sizeof room - TIME_NORMAL_MAX ||
                    (!tamis_value_normal(TAMIS_DEC, part[i], len, room, sizeof room) &&
                     !moment_of(q->time, part[i], len, &from, &to, &exact))))
            return false;
        ends += len > 0;
    }
    return ends > 0;
}

/* A range, a network or a pattern, where the attribute has none: hardly any value is equal to such a text. */
static bool means_nothing(struct question *q, const struct word *w, const char *text)
{
    const struct field *f = w->field;
    const char *type = field_type_told(f);
    int lead = (int)(w->text - w->whole);
    if (strchr(text, '*'))
        return !wrong(q,
                      "* has no meaning here: %.200s: write %s^=PREFIX, %s~/regex/, or %.*s=%.100s "
                      "for the text",
                      w->whole, f->name, f->name, lead, w->whole, text);
    size_t len = strlen(text);
    bool regex = len > 3 && strncmp(text, "~/", 2) == 0 && text[len - 1] == '/';
    if (regex)
        return !wrong(q, "~ stands alone: %.200s: write %s%.100s, or %.*s=%.100s for the text",
                      w->whole, f->name, text, lead, w->whole, text);
    if (f->type == TAMIS_TIME && compact_date(text, len))
        return !wrong(q, "not a time: %.200s: write 2024-05-01, or %.*s=%.100s for the number",
                      w->whole, lead, w->whole, text);
    if (!tamis_type_ordered(f->type) && like_range(q, text))
        return !wrong(q,
                      "%s is %s, which has no ranges: %.200s: write %.*s=%.100s for the text, or "
                      "index it as a number or time, with --attrs %s:int, %s:dec or %s:time",
                      f->name, type, w->whole, lead, w->whole, text, f->name, f->name, f->name);
    if (f->type != TAMIS_IP && question_like_network(text))
        return !wrong(q,
                      "%s is %s, which has no networks: %.200s: write %.*s=%.100s for the text, or "
                      "index it as addresses, with --attrs %s:ip",
                      f->name, type, w->whole, lead, w->whole, text, f->name);
    return false;
}

static bool read_network(struct question *q, struct clause *c, const struct word *w,
                         const char *text)
{
    struct network network;
    int lead = (int)(w->text - w->whole);
    if (network_of(text, strlen(text), &network))
        return add_network(q, c, &network);
    return wrong(q, "not a network: %.200s: write %.*s10.1.0.0/16, or %.*s=%.100s for the text",
                 w->whole, lead, w->whole, lead, w->whole, text);
}

/* Is the text between two of these? */
static bool within(const char *text, char mark)
{
    size_t len = strlen(text);
    return len > 2 && text[0] == mark && text[len - 1] == mark;
}

/* Parses a value. */
static bool read_value(struct question *q, struct clause *c, const struct word *w)
{
    tamis_type type = w->field->type;
    const char *text = w->text, *dots;
    size_t len = strlen(text);
    struct stamp from, to;
    bool exact, plain;
    if (text[0] == '=')
        return add_value(q, c, type, text + 1, len - 1, &plain);
    if (means_nothing(q, w, text))
        return false;
    if (tamis_type_ordered(type) && (dots = strstr(text, "..")) != NULL)
        return read_range(q, c, w, text, dots);
    if (type == TAMIS_IP && strchr(text, '/'))
        return read_network(q, c, w, text);
    if (type == TAMIS_TIME && moment_of(q->time, text, len, &from, &to, &exact) && !exact) {
        struct range day = {{.there = true, .time = from},
                            {.there = true, .outside = true, .time = to},
                            .given = text};
        return add_range(q, c, &day);
    }
    if (!add_value(q, c, type, text, len, &plain))
        return false;
    bool typed = tamis_type_ordered(type) || type == TAMIS_IP;
    bool quoted = within(text, '"'), slashed = type != TAMIS_PATH && within(text, '/');
    if (!c->doubt && ((plain && typed && len) || quoted || slashed)) {
        c->doubt = w->whole;
        c->doubted = quoted ? DOUBT_QUOTES : slashed ? DOUBT_REGEX : DOUBT_TYPE;
    }
    return true;
}

/* A line of a list: what may follow a=, except another list. */
static bool read_item(struct question *q, struct clause *c, const struct word *w, const char *line,
                      size_t len)
{
    char *copy = strdup(line);
    const struct word item = {copy, copy, w->field, w->op};
    if (!owned_adopt(&q->own, copy))
        return question_no_memory(q);
    if (strlen(copy) != len)
        return wrong(q, "not text: a NUL byte in the list: convert it to UTF-8");
    if (copy[0] == '@' && copy[1])
        return wrong(q, "a list in a list: %.200s: write =%.100s for the text", copy, copy);
    return read_value(q, c, &item);
}

/* A remark about a line names the line. */
static bool place_doubt(struct question *q, struct clause *c, const char *path, size_t number)
{
    char *text = NULL;
    if (asprintf(&text, "%s:%zu: %s", path, number, c->doubt) < 0 || !owned_adopt(&q->own, text))
        return false;
    c->doubt = text;
    return true;
}

/* Values on the lines of a file. */
static bool read_list(struct question *q, struct clause *c, const struct word *w, const char *path)
{
    static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark of UTF-8 */
    char told[sizeof q->why];
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, n = 0, number = 0;
    ssize_t len;
    bool good = file || wrong(q, "%s: %.200s: give a file with a value on each line, or %s==@...",
                              strerror(errno), path, w->field->name);
    while (good && (len = getline(&line, &room, file)) >= 0) {
        bool marked = ++number == 1 && strncmp(line, mark, strlen(mark)) == 0;
        const char *text = line + (marked ? strlen(mark) : 0);
        len -= text - line;
        while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
            line[text - line + --len] = 0;
        if (len == 0)
            continue;
        bool doubted = c->doubt;
        good = read_item(q, c, w, text, (size_t)len);
        if (good && c->doubt && !doubted && !place_doubt(q, c, path, number))
            good = question_no_memory(q);
        n++;
    }
    if (!good && n) {
        memcpy(told, q->why, sizeof told);
        wrong(q, "%.200s:%zu: %.499s", path, number, told);
    }
    if (good && ferror(file))
        good = wrong(q, "%s: %.200s: give a file with a value on each line", strerror(errno), path);
    if (good && n == 0)
        good = wrong(q, "an empty list: %.200s: give a file with a value on each line", path);
    if (file)
        fclose(file);
    free(line);
    return good;
}

/* Parses what follows a= or a!=. */
bool question_set(struct question *q, struct clause *c, const struct word *w)
{
    bool list = w->text[0] == '@' && w->text[1];
    if (strcmp(w->text, "@") == 0)
        return wrong(q, "a list without a file: %.200s: write %.200sFILE, or %.*s=@ for the text",
                     w->whole, w->whole, (int)(w->text - w->whole), w->whole);
    return list ? read_list(q, c, w, w->text + 1) : read_value(q, c, w);
}

bool question_prefix(struct question *q, struct clause *c, const struct word *w)
{
    struct wanted prefix = {{(const uint8_t *)w->text, strlen(w->text)}, w->text};
    if (!prefix.is.len)
        return wrong(q, "an empty prefix: %.200s: write %s^=TEXT", w->whole, w->field->name);
    if (strchr(w->text, '*'))
        return wrong(q, "* has no meaning here: %.200s: write %s^=%.*s, or '%s~/regex/'", w->whole,
                     w->field->name, (int)strcspn(w->text, "*"), w->text, w->field->name);
    if (w->text[0] == '@' && w->text[1])
        return wrong(q, "lists are for =: %.200s: write %s=%.100s, or '%s~/^%.100s/' for the text",
                     w->whole, w->field->name, w->text, w->field->name, w->text);
    if (w->field->type == TAMIS_IP && strchr(w->text, '/'))
        return wrong(q, "networks are for =: %.200s: write %s=%.100s", w->whole, w->field->name,
                     w->text);
    if (w->field->type == TAMIS_FOLD)
        normal_of(q, TAMIS_FOLD, w->text, prefix.is.len, &prefix.is);
    return (!q->full &&
            array_add(&c->prefix, &c->n_prefixes, &c->prefixes_room, &prefix, sizeof prefix)) ||
           question_no_memory(q);
}
