/*
 * Syslog: RFC 3164, in files usually without the priority; the same with the times of rsyslog and
 * journald; and RFC 5424.
 *
 *     Oct 11 22:14:15 host su[12]: message
 *     2023-10-11T22:14:15.003+02:00 host su[12]: message
 *     <34>1 2003-10-11T22:14:15.003Z host su 12 ID47 [id a="b"] message
 *
 * The fields have the names of RFC 5424: TAG and its number in RFC 3164 are app-name and procid. The
 * host before a tag is optional (programs write to the socket without it), and so is the tag before a
 * message. "-" is missing only in RFC 5424.
 */
#include "reader_parse.h"

#include "reader_scan.h"

enum syslog_field {
    PRI,
    FACILITY,
    SEVERITY,
    VERSION,
    TIME,
    HOSTNAME,
    APP_NAME,
    PROCID,
    MSGID,
    STRUCTURED_DATA,
    MSG
};

ALWAYS_INLINE void give(struct parser *ps, size_t field, const uint8_t *from, const uint8_t *to)
{
    const struct selection *s = ps->selection;
    uint32_t slot = field < s->n_columns ? s->slot[field] : NO_SLOT;
    if (slot != NO_SLOT)
        value_set(&ps->value[slot], from, (size_t)(to - from));
}

/* <34>: returns the position after it, or NULL. Its parts are numbers that are not in the text. */
static const uint8_t *take_priority(struct parser *ps, const uint8_t *p, const uint8_t *end)
{
    static const char numbers[] = "0 1 2 3 4 5 6 7 8 9 101112131415161718192021222324";
    const uint8_t *digits = ++p;
    unsigned x = 0;
    while (p < end && p - digits < 3 && is_digit((char)*p))
        x = 10 * x + (unsigned)(*p++ - '0');
    if (p == digits || p == end || *p != '>' || x > 191)
        return NULL;
    const uint8_t *facility = (const uint8_t *)numbers + 2 * (x / 8),
                  *severity = (const uint8_t *)numbers + 2 * (x % 8);
    give(ps, PRI, digits, p);
    give(ps, FACILITY, facility, facility + (x / 8 < 10 ? 1 : 2));
    give(ps, SEVERITY, severity, severity + 1);
    return p + 1;
}

/* The space after the word at p, or the end. */
ALWAYS_INLINE const uint8_t *word_end(const uint8_t *p, const uint8_t *end)
{
    return scan_for(p, end, ' ', ' ', ' ', SCAN_HAS_VECTOR);
}

/* ---- RFC 5424 -------------------------------------------------------------------------------- */

/* The position after the structured data at p, "-" or elements in brackets; NULL: it is neither. */
static const uint8_t *data_end(const uint8_t *p, const uint8_t *end)
{
    if (p < end && *p == '-')
        return p + 1;
    if (p == end || *p != '[')
        return NULL;
    while (p < end && *p == '[') {
        bool quoted = false;
        for (p++; p < end && (quoted || *p != ']'); p++) {
            if (quoted && *p == '\\')
                p++;
            else if (*p == '"')
                quoted = !quoted;
        }
        if (p >= end)
            return NULL;
        p++;
    }
    return p;
}

/* From the version on. */
static bool take_5424(struct parser *ps, const uint8_t *p, const uint8_t *end)
{
    struct stamp stamp;
    static const uint8_t fields[] = {VERSION, TIME, HOSTNAME, APP_NAME, PROCID, MSGID};
    for (size_t i = 0; i < sizeof fields; i++) {
        const uint8_t *stop = word_end(p, end);
        bool none = stop - p == 1 && *p == '-';
        size_t len = (size_t)(stop - p);
        if (stop == end || len == 0 ||
            (fields[i] == TIME && !none && time_lead(&ps->clock, p, len, &stamp) != len))
            return false;
        if (!none)
            give(ps, fields[i], p, stop);
        p = stop + 1;
    }
    const uint8_t *stop = data_end(p, end);
    if (!stop || (stop < end && *stop != ' '))
        return false;
    if (*p != '-')
        give(ps, STRUCTURED_DATA, p, stop);
    if (stop < end) {
        p = stop + 1;
        p += end - p >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        give(ps, MSG, p, end);
    }
    return true;
}

/* ---- RFC 3164 -------------------------------------------------------------------------------- */

/* Reads "su:" or "su[12]:" at p, and returns the position after it and a space. NULL: there is no tag, or, with `all`,
   more text follows it. */
static const uint8_t *take_tag(struct parser *ps, const uint8_t *p, const uint8_t *end, bool all)
{
    const uint8_t *tag = scan_for(p, end, ' ', ':', '[', SCAN_HAS_VECTOR), *stop = tag, *id = NULL;
    while (tag > p && tag < end && *tag == ':' && tag + 1 < end && tag[1] != ' ') /* a::b: */
        tag = stop = scan_for(tag + 1, end, ' ', ':', '[', SCAN_HAS_VECTOR);
    if (tag == p || tag >= end || *tag == ' ')
        return NULL;
    if (*tag == '[') {
        id = tag + 1;
        stop = scan_for(id, end, ']', ' ', ']', SCAN_HAS_VECTOR);
        if (stop == end || *stop != ']')
            return NULL;
        stop++;
    }
    const uint8_t *id_end = stop - 1;
    if (stop < end && *stop == ':')
        stop++;
    else if (!id)
        return NULL;
    if (all && stop != end)
        return NULL;
    give(ps, APP_NAME, p, tag);
    if (id)
        give(ps, PROCID, id, id_end);
    return stop + (stop < end && *stop == ' ');
}

/* Reads a line from its time on; *tagged: it has a tag. */
static bool take_3164(struct parser *ps, const uint8_t *p, const uint8_t *end, bool *tagged)
{
    struct stamp stamp;
    size_t len = time_lead(&ps->clock, p, (size_t)(end - p), &stamp);
    bool letters = (uint8_t)((*p | 0x20) - 'a') < 26;
    if (len == 0 || (size_t)(end - p) <= len || p[len] != ' ' || !(letters || p[10] == 'T'))
        return false;
    give(ps, TIME, p, p + len);
    p += len + 1;
    const uint8_t *host = p, *stop = word_end(p, end), *message = take_tag(ps, p, stop, true);
    if (message) {
        message = stop + (stop < end); /* no host, directly a tag */
    } else if (stop == end || stop == host) {
        return false;
    } else {
        give(ps, HOSTNAME, host, stop);
        message = take_tag(ps, stop + 1, end, false);
    }
    *tagged = message != NULL;
    give(ps, MSG, message ? message : stop + 1, end);
    return true;
}

ALWAYS_INLINE bool take_line(struct parser *ps, const uint8_t *p, const uint8_t *end, bool *tagged)
{
    if (*p == '<') {
        p = take_priority(ps, p, end);
        if (!p || p == end)
            return false;
        if (end - p > 2 && *p == '1' && p[1] == ' ')
            return *tagged = true, take_5424(ps, p, end);
    }
    return take_3164(ps, p, end, tagged);
}

bool syslog_fit(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    bool tagged;
    return take_line(ps, line, end, &tagged);
}

/* Other logs also start with a time and a word. */
bool syslog_sniff(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    bool tagged = false;
    return take_line(ps, line, end, &tagged) && tagged;
}
