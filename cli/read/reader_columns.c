/*
 * Logs that name their columns in lines that start with #: Zeek's and the extended format of the W3C
 * (IIS, many proxies).
 *
 *     #separator \x09                      #Version: 1.0
 *     #set_separator    ,                  #Fields: date time cs-method cs-uri-stem sc-status
 *     #empty_field      (empty)            2002-05-02 17:42:15 GET /default.htm 200
 *     #unset_field      -
 *     #fields   ts      uid     id.orig_h
 *     #types    time    string  addr
 *     1258531221.486539 CHhAvVGS1DHFjwGM9 192.168.1.102
 *
 * A record has as many columns as there are names; other lines do not fit. "-" is missing (Zeek: the
 * text of #unset_field), Zeek's #empty_field is empty, and its sets and vectors are lists. The time of a
 * W3C log is UTC: `time` combines both columns, 2002-05-02 17:42:15Z; without a column `date`, the date is that of
 * the last line #Date:.
 */
#include "reader_parse.h"

#include <stdlib.h>

#include "reader_scan.h"

/* ---- the header ------------------------------------------------------------------------------ */

/* What follows `name` in a line of the header that starts with it; NULL: no line does. The last one counts. */
static const uint8_t *directive(const uint8_t *header, size_t len, const char *name, size_t *out)
{
    const uint8_t *found = NULL, *end = header + len;
    size_t n = strlen(name);
    for (const uint8_t *line = header; line < end;) {
        const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        if ((size_t)(stop - line) > n && memcmp(line, name, n) == 0) {
            found = line + n + 1; /* one byte between them */
            *out = (size_t)(stop - found) - (stop > found && stop[-1] == '\r');
        }
        line = stop + 1;
    }
    return found;
}

static void keep_mark(struct mark *mark, const uint8_t *text, size_t len, const char *otherwise)
{
    size_t most = sizeof mark->text;
    mark->len = (uint8_t)(text && len <= most ? len : strlen(otherwise));
    memcpy(mark->text, text && len <= most ? (const void *)text : otherwise, mark->len);
}

/* \x09 or the byte itself. */
static uint8_t separator_of(const uint8_t *text, size_t len, uint8_t otherwise)
{
    char digits[3] = {0};
    if (!text || len == 0)
        return otherwise;
    if (len < 4 || memcmp(text, "\\x", 2) != 0)
        return *text;
    memcpy(digits, text + 2, 2);
    return (uint8_t)strtoul(digits, NULL, 16);
}

void columns_read(struct log_columns *c, enum read_format format, const uint8_t *header, size_t len)
{
    size_t n = 0;
    bool zeek = format == READ_ZEEK;
    *c = (struct log_columns){.separator = ' ', .set_separator = ','};
    c->date = c->clock = NO_SLOT;
    if (!header)
        return;
    if (zeek) {
        const uint8_t *text = directive(header, len, "#separator", &n);
        c->separator = separator_of(text, n, '\t');
        text = directive(header, len, "#set_separator", &n);
        c->set_separator = separator_of(text, n, ',');
        text = directive(header, len, "#empty_field", &n);
        keep_mark(&c->empty, text, n, "(empty)");
        text = directive(header, len, "#unset_field", &n);
        keep_mark(&c->unset, text, n, "-");
        c->types = directive(header, len, "#types", &n);
        c->types_end = c->types ? c->types + n : NULL;
    } else {
        const uint8_t *day = directive(header, len, "#Date:", &n);
        keep_mark(&c->unset, NULL, 0, "-");
        for (; day && n && *day == ' '; n--)
            day++;
        if (day)
            value_set(&c->day, day,
                      (size_t)(scan_for(day, day + n, ' ', '\t', ' ', SCAN_HAS_VECTOR) - day));
    }
    c->names = directive(header, len, zeek ? "#fields" : "#Fields:", &n);
    if (!c->names)
        return;
    for (; n && (*c->names == ' ' || *c->names == '\t') && !zeek; n--)
        c->names++;
    while (n && c->names[n - 1] == ' ')
        n--;
    c->names_end = c->names + n;
    if (!zeek && memchr(c->names, '\t', n))
        c->separator = '\t';
}

bool columns_next(const struct log_columns *c, const uint8_t **at, const uint8_t *end,
                  const uint8_t **text, size_t *len)
{
    if (!*at || *at > end)
        return false;
    const uint8_t *stop = *at < end ? memchr(*at, c->separator, (size_t)(end - *at)) : NULL;
    *text = *at;
    *len = (size_t)((stop ? stop : end) - *at);
    *at = stop ? stop + 1 : NULL;
    return true;
}

/* ---- records --------------------------------------------------------------------------------- */

ALWAYS_INLINE bool is_mark(const struct mark *mark, const uint8_t *p, size_t len)
{
    return len == mark->len && memcmp(p, mark->text, len) == 0;
}

/* The elements of a set or a vector. */
static void give_list(struct parser *ps, struct read_value *value, const uint8_t *p,
                      const uint8_t *end)
{
    const struct log_columns *c = &ps->selection->columns;
    for (struct read_value *last = NULL;;) {
        const uint8_t *stop = memchr(p, c->set_separator, (size_t)(end - p));
        const uint8_t *to = stop ? stop : end;
        if (!is_mark(&c->unset, p, (size_t)(to - p))) {
            struct read_value *next = last ? parser_element(ps, last) : value;
            if (!next)
                return;
            size_t len = is_mark(&c->empty, p, (size_t)(to - p)) ? 0 : (size_t)(to - p);
            value_set(next, p, len);
            last = next;
        }
        if (!stop)
            return;
        p = stop + 1;
    }
}

ALWAYS_INLINE void give(struct parser *ps, size_t column, const uint8_t *p, const uint8_t *end)
{
    const struct selection *s = ps->selection;
    const struct log_columns *c = &s->columns;
    uint32_t slot = column < s->n_columns ? s->slot[column] : NO_SLOT;
    if (slot == NO_SLOT || is_mark(&c->unset, p, (size_t)(end - p)))
        return;
    if (c->empty.len && is_mark(&c->empty, p, (size_t)(end - p)))
        value_set(&ps->value[slot], p, 0);
    else if (c->listed && c->listed[column])
        give_list(ps, &ps->value[slot], p, end);
    else
        value_set(&ps->value[slot], p, (size_t)(end - p));
}

bool zeek_fit(struct parser *ps, const uint8_t *p, const uint8_t *end)
{
    const struct log_columns *c = &ps->selection->columns;
    size_t column = 0;
    for (;; column++) {
        const uint8_t *stop =
            scan_for(p, end, c->separator, c->separator, c->separator, SCAN_HAS_VECTOR);
        give(ps, column, p, stop);
        if (stop == end)
            break;
        p = stop + 1;
    }
    return column + 1 == c->n && !ps->full;
}

/* Joins date and time, wherever the columns are. */
static void give_time(struct parser *ps, const struct read_value *date,
                      const struct read_value *time)
{
    struct read_value *to = &ps->value[ps->selection->slot[ps->selection->columns.clock]];
    if (date->len == 0 || time->len == 0 || date->len + time->len > sizeof ps->joined - 2)
        return;
    memcpy(ps->joined, date->data, date->len);
    ps->joined[date->len] = ' ';
    memcpy(ps->joined + date->len + 1, time->data, time->len);
    ps->joined[date->len + 1 + time->len] = 'Z';
    value_set(to, ps->joined, date->len + time->len + 2);
}

/* Fields in quotes may contain spaces, as in the draft of the W3C. */
bool w3c_fit(struct parser *ps, const uint8_t *p, const uint8_t *end)
{
    const struct log_columns *c = &ps->selection->columns;
    struct read_value date = c->date == NO_SLOT ? c->day : (struct read_value){0}, time = {0};
    size_t column = 0;
    while (p < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    for (;; column++) {
        const uint8_t *stop, *text = p;
        if (p < end && *p == '"' && (stop = memchr(p + 1, '"', (size_t)(end - p - 1))) &&
            (stop + 1 == end || stop[1] == ' ' || stop[1] == '\t')) {
            give(ps, column, p + 1, stop);
            p = stop + 1;
        } else {
            p = scan_for(p, end, ' ', '\t', ' ', SCAN_HAS_VECTOR);
            give(ps, column, text, p);
        }
        if (column == c->date)
            value_set(&date, text, (size_t)(p - text));
        if (column == c->clock)
            value_set(&time, text, (size_t)(p - text));
        if (p == end)
            break;
        p++;
    }
    if (c->clock != NO_SLOT && c->clock < ps->selection->n_columns &&
        ps->selection->slot[c->clock] != NO_SLOT)
        give_time(ps, &date, &time);
    return column + 1 == c->n;
}
