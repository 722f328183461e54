/* Moments and spans of time in a question. See question_parts.h. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "question_parts.h"
#include "ui/args.h"

static bool digits(const char *p, size_t n)
{
    return strspn(p, "0123456789") >= n;
}

static bool read_at(struct time_context *time, int year, int month, int day, int hour, int minute,
                    const char *zone, struct stamp *out)
{
    char text[80];
    int len = snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:00%s", year, month, day, hour,
                       minute, zone);
    return time_read(time, (const uint8_t *)text, (size_t)len, out);
}

/* A year or a month. A number of four digits is no second of 1970. */
static bool long_span_of(struct time_context *time, const char *text, struct stamp *from,
                         struct stamp *to)
{
    size_t len = strlen(text);
    int year = 0, month = 0;
    bool form =
        digits(text, 4) && (len == 4 || (len == 7 && text[4] == '-' && digits(text + 5, 2)));
    if (!form || sscanf(text, "%4d-%2d", &year, &month) != 1 + (len == 7))
        return false;
    bool next = month == 0 || month == 12;
    return read_at(time, year, month ? month : len == 4, 1, 0, 0, "", from) &&
           read_at(time, year + next, next ? 1 : month + 1, 1, 0, 0, "", to);
}

bool compact_date(const char *text, size_t len)
{
    static const unsigned lows[] = {1900, 1, 1, 0, 0, 0}, highs[] = {2199, 12, 31, 23, 59, 60};
    if ((len != 6 && len != 8 && len != 12 && len != 14) || strspn(text, "0123456789") < len)
        return false;
    for (size_t i = 0, at = 0; at < len; i++) {
        unsigned part = 0;
        for (size_t end = at + (i ? 2 : 4); at < end; at++)
            part = 10 * part + (unsigned)(text[at] - '0');
        if (part < lows[i] || part > highs[i])
            return false;
    }
    return true;
}

/* A day, an hour or a minute, with or without a zone. */
static bool span_of(struct time_context *time, const char *text, struct stamp *from,
                    struct stamp *to)
{
    int year, month, day, hour = 0, minute = 0;
    int64_t unit = 0;
    const char *p = text + 10;
    if (!digits(text, 4) || (text[4] != '-' && text[4] != '/') || !digits(text + 5, 2) ||
        text[7] != text[4] || !digits(text + 8, 2) ||
        sscanf(text, "%4d%*c%2d%*c%2d", &year, &month, &day) != 3)
        return false;
    if ((p[0] == 'T' || p[0] == ' ') && digits(p + 1, 2)) {
        hour = (p[1] - '0') * 10 + p[2] - '0';
        unit = 3600;
        p += 3;
        if (p[0] == ':' && digits(p + 1, 2)) {
            minute = (p[1] - '0') * 10 + p[2] - '0';
            unit = 60;
            p += 3;
        }
    }
    bool zoned = p[0] == 'Z' || ((p[0] == '+' || p[0] == '-') && digits(p + 1, 2));
    if ((p[0] && !zoned) || strlen(p) > 6 ||
        !read_at(time, year, month, day, hour, minute, p, from))
        return false;
    if (unit) {
        *to = *from;
        to->seconds += unit;
        return true;
    }
    int64_t next[3];
    date_of(days_of(year, month, day) + 1, &next[0], &next[1], &next[2]);
    return read_at(time, (int)next[0], (int)next[1], (int)next[2], 0, 0, p, to);
}

bool moment_of(struct time_context *time, const char *text, size_t len, struct stamp *from,
               struct stamp *to, bool *exact)
{
    char copy[64];
    uint64_t ago;
    if (len >= sizeof copy || compact_date(text, len))
        return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    *exact = false;
    if (len >= 10 ? span_of(time, copy, from, to) : long_span_of(time, copy, from, to))
        return true;
    *exact = true;
    if (parse_time(copy, &ago)) {
        int64_t then = (int64_t)clock_real(NULL) - (int64_t)ago, nano = then % 1000000000;
        from->seconds = then / 1000000000 - (nano < 0);
        from->nanoseconds = (uint32_t)(nano < 0 ? nano + 1000000000 : nano);
    } else if (!time_read(time, (const uint8_t *)copy, len, from)) {
        return false;
    }
    *to = *from;
    return true;
}
