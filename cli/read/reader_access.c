/*
 * Access logs: the common format of NCSA httpd, the combined format of Apache and nginx, and similar
 * ones.
 *
 *     host ident user [time] "request" status bytes "referer" "agent" …
 *
 * A name and a port before the host are those of vhost_combined. Names of users may contain spaces: if
 * the ident is "-", as almost always, all that follows it is the user. Anything after the agent is ignored. A
 * quote that follows a backslash, or is not followed by a space, is text; values are not unescaped. "-"
 * is missing.
 */
#include "reader_parse.h"

#include "reader_scan.h"

enum access_field {
    HOST,
    IDENT,
    USER,
    TIME,
    REQUEST,
    METHOD,
    PATH,
    QUERY,
    PROTOCOL,
    STATUS,
    BYTES,
    VHOST,
    REFERER,
    AGENT
};

ALWAYS_INLINE bool is_dash(const uint8_t *from, const uint8_t *to)
{
    return to - from == 1 && *from == '-';
}

ALWAYS_INLINE void give(struct parser *ps, size_t field, const uint8_t *from, const uint8_t *to)
{
    const struct selection *s = ps->selection;
    uint32_t slot = field < s->n_columns ? s->slot[field] : NO_SLOT;
    if (slot != NO_SLOT && !is_dash(from, to))
        value_set(&ps->value[slot], from, (size_t)(to - from));
}

/* The space after the word at p, NULL if there is none. */
ALWAYS_INLINE const uint8_t *word_end(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *stop = scan_for(p, end, ' ', ' ', ' ', SCAN_HAS_VECTOR);
    return stop < end && stop > p ? stop : NULL;
}

/* The closing quote for one opened before p. */
ALWAYS_INLINE const uint8_t *quote_end(const uint8_t *p, const uint8_t *end)
{
    for (;; p++) {
        p = scan_for(p, end, '"', '\\', '"', SCAN_HAS_VECTOR);
        if (p >= end)
            return NULL;
        if (*p == '\\')
            p++;
        else if (p + 1 == end || p[1] == ' ')
            return p;
    }
}

/* GET /path?query HTTP/1.1; the protocol is optional. */
static void give_request(struct parser *ps, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *blank = word_end(p, end), *stop = end;
    if (!blank)
        return;
    give(ps, METHOD, p, blank);
    const uint8_t *target = blank + 1, *last = stop;
    while (last > target && last[-1] != ' ')
        last--;
    if (last > target && end - last > 5 && memcmp(last, "HTTP/", 5) == 0) {
        give(ps, PROTOCOL, last, end);
        stop = last - 1;
    }
    const uint8_t *query = scan_for(target, stop, '?', '?', '?', SCAN_HAS_VECTOR);
    give(ps, PATH, target, query);
    if (query < stop)
        give(ps, QUERY, query + 1, stop);
}

/* host ident user [time], optionally preceded by a name; returns the position after the bracket,
   NULL if it does not match. */
static const uint8_t *take_client(struct parser *ps, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *word[4], *stop[4];
    size_t n = 0, first = 0;
    while (p < end && *p != '[') {
        const uint8_t *blank = word_end(p, end);
        if (!blank)
            return NULL;
        if (n == 3)
            first = !is_dash(word[1], stop[1]);
        if (n > first + 2) { /* more of the user's name */
            if (!is_dash(word[first + 1], stop[first + 1]))
                return NULL;
            stop[first + 2] = blank;
        } else {
            word[n] = p;
            stop[n++] = blank;
        }
        p = blank + 1;
    }
    if (n < 3 || p == end)
        return NULL;
    if (first)
        give(ps, VHOST, word[0], stop[0]);
    give(ps, HOST, word[first], stop[first]);
    give(ps, IDENT, word[first + 1], stop[first + 1]);
    give(ps, USER, word[first + 2], stop[first + 2]);
    const uint8_t *close = scan_for(++p, end, ']', '"', ']', SCAN_HAS_VECTOR);
    if (close - p < 20 || close >= end || *close != ']' || p[2] != '/' || p[6] != '/')
        return NULL;
    give(ps, TIME, p, close);
    return close + 1;
}

/* A number or "-", up to a space or the end. */
static const uint8_t *take_number(struct parser *ps, size_t field, const uint8_t *p,
                                  const uint8_t *end)
{
    const uint8_t *stop = p;
    while (stop < end && (uint8_t)(*stop - '0') < 10)
        stop++;
    stop += stop == p && p < end && *p == '-';
    if (stop == p || (stop < end && *stop != ' '))
        return NULL;
    give(ps, field, p, stop);
    return stop;
}

/* The fields of a line; returns how many quoted fields follow the request, -1 if it is not a
   line of such a log. */
ALWAYS_INLINE int take_access(struct parser *ps, const uint8_t *p, const uint8_t *end)
{
    p = take_client(ps, p, end);
    if (!p || end - p < 2 || p[0] != ' ' || p[1] != '"')
        return -1;
    const uint8_t *request = p + 2, *quote = quote_end(request, end);
    if (!quote || quote + 1 == end)
        return -1;
    give(ps, REQUEST, request, quote);
    if (ps->selection->requests && !is_dash(request, quote))
        give_request(ps, request, quote);
    p = take_number(ps, STATUS, quote + 2, end);
    p = p && p < end ? take_number(ps, BYTES, p + 1, end) : NULL;
    if (!p)
        return -1;
    int n = 0;
    for (; n < 2 && end - p > 2 && p[1] == '"'; n++) {
        const uint8_t *text = p + 2;
        quote = quote_end(text, end);
        if (!quote)
            return -1;
        give(ps, REFERER + (size_t)n, text, quote);
        p = quote + 1;
    }
    return n;
}

bool access_fit(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    return take_access(ps, line, end) >= 0;
}

bool access_requests(const struct selection *s)
{
    return s->slot[METHOD] != NO_SLOT || s->slot[PATH] != NO_SLOT || s->slot[QUERY] != NO_SLOT ||
           s->slot[PROTOCOL] != NO_SLOT;
}

bool combined_sniff(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    return take_access(ps, line, end) == 2;
}
