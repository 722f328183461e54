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

#define FIELD(field) (UINT32_C(1) << (field))
#define TARGET       (FIELD(PATH) | FIELD(QUERY) | FIELD(PROTOCOL))
#define QUOTED       (FIELD(REFERER) | FIELD(AGENT))

ALWAYS_INLINE bool is_dash(const uint8_t *from, const uint8_t *to)
{
    return to - from == 1 && *from == '-';
}

ALWAYS_INLINE bool wanted(const struct parser *ps, uint32_t fields)
{
    return ps->selection->fields & fields;
}

ALWAYS_INLINE void give(struct parser *ps, size_t field, const uint8_t *from, const uint8_t *to)
{
    if (wanted(ps, FIELD(field)) && !is_dash(from, to))
        value_set(&ps->value[ps->selection->slot[field]], from, (size_t)(to - from));
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
    if (!wanted(ps, TARGET))
        return;
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

/* host - user, as in nearly every line; returns the position of the bracket, NULL if it is something else. */
ALWAYS_INLINE const uint8_t *take_usual_words(struct parser *ps, const uint8_t *p,
                                              const uint8_t *end)
{
    const uint8_t *blank = word_end(p, end);
    if (!blank || *p == '[' || end - blank < 5 || memcmp(blank, " - ", 3) != 0 || blank[3] == '[')
        return NULL;
    const uint8_t *user = blank + 3, *stop = word_end(user, end);
    if (!stop || stop + 1 == end || stop[1] != '[')
        return NULL;
    give(ps, HOST, p, blank);
    give(ps, USER, user, stop);
    return stop + 1;
}

/* host ident user, optionally preceded by a name; returns the position of the bracket, NULL if it does not match. */
static const uint8_t *take_words(struct parser *ps, const uint8_t *p, const uint8_t *end)
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
    return p;
}

/* All up to [time]; returns the position after the bracket, NULL if it does not match. */
ALWAYS_INLINE const uint8_t *take_client(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    const uint8_t *p = take_usual_words(ps, line, end);
    p = p ? p : take_words(ps, line, end);
    if (!p)
        return NULL;
    const uint8_t *close = scan_for(++p, end, ']', '"', ']', SCAN_HAS_VECTOR);
    if (close - p < 20 || close >= end || *close != ']' || p[2] != '/' || p[6] != '/')
        return NULL;
    give(ps, TIME, p, close);
    return close + 1;
}

/* The end of the digits at p; eight at a time, where a borrow or carry only reaches bytes after the first other one. */
ALWAYS_INLINE const uint8_t *digits_end(const uint8_t *p, const uint8_t *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t x;
        memcpy(&x, p, sizeof x);
        x ^= UINT64_C(0x3030303030303030);
        uint64_t other = ((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080);
        if (other)
            return p + __builtin_ctzll(other) / 8;
    }
    while (p < end && (uint8_t)(*p - '0') < 10)
        p++;
    return p;
}

/* A number or "-", up to a space or the end. */
ALWAYS_INLINE const uint8_t *take_number(struct parser *ps, size_t field, const uint8_t *p,
                                         const uint8_t *end)
{
    const uint8_t *stop = digits_end(p, end);
    stop += stop == p && p < end && *p == '-';
    if (stop == p || (stop < end && *stop != ' '))
        return NULL;
    give(ps, field, p, stop);
    return stop;
}

/* Does a line end with a quote that is not escaped? Then every quoted field is closed, at the latest by it. */
ALWAYS_INLINE bool closed(const uint8_t *p, const uint8_t *end)
{
    return end - p > 2 && end[-1] == '"' && end[-2] != '\\';
}

/* The fields of a line; returns how many quoted fields follow the request, -1 if it is not a
   line of such a log. With `counted` false, any number from 0 on: only whether it fits. */
ALWAYS_INLINE int take_access(struct parser *ps, const uint8_t *p, const uint8_t *end, bool counted)
{
    p = take_client(ps, p, end);
    if (!p || end - p < 2 || p[0] != ' ' || p[1] != '"')
        return -1;
    const uint8_t *request = p + 2, *quote = quote_end(request, end);
    if (!quote || quote + 1 == end)
        return -1;
    give(ps, REQUEST, request, quote);
    if (wanted(ps, FIELD(METHOD) | TARGET) && !is_dash(request, quote))
        give_request(ps, request, quote);
    p = take_number(ps, STATUS, quote + 2, end);
    p = p && p < end ? take_number(ps, BYTES, p + 1, end) : NULL;
    if (!p)
        return -1;
    int n = 0;
    if (!counted && !wanted(ps, QUOTED) && closed(p, end))
        return n;
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
    return take_access(ps, line, end, false) >= 0;
}

bool combined_sniff(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    return take_access(ps, line, end, true) == 2;
}
