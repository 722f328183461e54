/* Times as logs write them. See time_read.h. */
#define _GNU_SOURCE
#include "time_read.h"

#include <endian.h>
#include <string.h>

#include "base/base.h"

/* Text from `at` to `end`. A prefix is removed only if it matches. */
struct time_text {
    const uint8_t *at, *end;
};

/* A time as it is written. */
struct civil {
    int64_t year;
    unsigned month, day, hour, minute, second;
    uint32_t nanoseconds;
    bool yearless, zoned;
    int64_t offset; /* seconds east */
};

/* ---- calendar -------------------------------------------------------------------------------- */

static bool leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool valid(const struct civil *c)
{
    static const uint8_t days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return c->year >= 1 && c->year <= 9999 && c->month >= 1 && c->month <= 12 && c->day >= 1 &&
           c->day <= days[c->month - 1] && (c->day < 29 || c->month != 2 || leap(c->year)) &&
           c->hour <= 23 && c->minute <= 59 && c->second <= 60;
}

/* Seconds since 1970 as if it were UTC. */
static int64_t local_seconds(const struct civil *c)
{
    return days_of(c->year, c->month, c->day) * 86400 + c->hour * 3600 + c->minute * 60 + c->second;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool digit(const struct time_text *r)
{
    return r->at < r->end && (uint8_t)(*r->at - '0') < 10;
}

static bool take(struct time_text *r, char c)
{
    if (r->at == r->end || *r->at != (uint8_t)c)
        return false;
    r->at++;
    return true;
}

/* A number of exactly n digits. */
static bool take_digits(struct time_text *r, unsigned n, unsigned *out)
{
    unsigned x = 0;
    if ((size_t)(r->end - r->at) < n)
        return false;
    for (unsigned i = 0; i < n; i++) {
        unsigned c = (unsigned)(r->at[i] - '0');
        if (c > 9)
            return false;
        x = 10 * x + c;
    }
    r->at += n;
    *out = x;
    return true;
}

/* A number of one or two digits, with a space in place of a missing first one. */
static bool take_day(struct time_text *r, unsigned *out)
{
    return take_digits(r, 2, out) || (take(r, ' '), take_digits(r, 1, out));
}

/* One of n names of three letters, in any case. */
static bool take_name(struct time_text *r, const char *names, unsigned n, unsigned *out)
{
    for (*out = 1; r->end - r->at >= 3 && *out <= n; ++*out, names += 3)
        if ((r->at[0] | 0x20) == names[0] && (r->at[1] | 0x20) == names[1] &&
            (r->at[2] | 0x20) == names[2]) {
            r->at += 3;
            return true;
        }
    return false;
}

static bool take_month(struct time_text *r, unsigned *out)
{
    return take_name(r, "janfebmaraprmayjunjulaugsepoctnovdec", 12, out);
}

/* Digits after the point; those after the ninth are ignored. */
static void take_fraction(struct time_text *r, uint32_t *nanoseconds)
{
    uint32_t unit = 100000000, x = 0;
    for (r->at++; digit(r); r->at++, unit /= 10)
        x += (uint32_t)(*r->at - '0') * unit;
    *nanoseconds = x;
}

/* 22:14, 22:14:15, 22:14:15.003 */
static bool take_clock(struct time_text *r, struct civil *c)
{
    if (!take_digits(r, 2, &c->hour) || !take(r, ':') || !take_digits(r, 2, &c->minute))
        return false;
    struct time_text more = *r;
    if (!take(&more, ':') || !take_digits(&more, 2, &c->second))
        return c->second = 0, true;
    *r = more;
    if (r->end - r->at > 1 && (*r->at == '.' || *r->at == ',') && (uint8_t)(r->at[1] - '0') < 10)
        take_fraction(r, &c->nanoseconds);
    return true;
}

/* Z, +02:00, +0200, +02, UTC, GMT; a space may precede the words, and with *blank the numbers. */
static void take_zone(struct time_text *r, struct civil *c)
{
    struct time_text z = *r;
    unsigned hours, minutes = 0;
    bool blank = take(&z, ' ');
    if (!blank && (take(&z, 'Z') || take(&z, 'z'))) {
        c->zoned = true;
    } else if (z.end - z.at >= 3 && (memcmp(z.at, "UTC", 3) == 0 || memcmp(z.at, "GMT", 3) == 0)) {
        z.at += 3;
        c->zoned = true;
    } else if (z.at < z.end && (*z.at == '+' || *z.at == '-')) {
        int sign = *z.at++ == '-' ? -1 : 1;
        if (!take_digits(&z, 2, &hours) || hours > 23)
            return;
        struct time_text rest = z;
        take(&rest, ':');
        if (take_digits(&rest, 2, &minutes))
            z = rest;
        else
            minutes = 0;
        if (minutes > 59)
            return;
        c->zoned = true;
        c->offset = sign * (int64_t)(hours * 3600 + minutes * 60);
    }
    if (c->zoned && !(z.at < z.end && ((*z.at | 0x20) >= 'a' && (*z.at | 0x20) <= 'z')))
        *r = z;
    else
        c->zoned = false, c->offset = 0;
}

/* ---- forms ----------------------------------------------------------------------------------- */

/* 2024-05-01T10:00:00.123+02:00 and similar forms; *dated: there is no time of day. */
static bool iso_form(struct time_text *r, struct civil *c, bool *dated)
{
    unsigned year;
    if (!take_digits(r, 4, &year))
        return false;
    char dash = take(r, '-') ? '-' : take(r, '/') ? '/' : '.';
    if ((dash == '.' && !take(r, '.')) || !take_digits(r, 2, &c->month) || !take(r, dash) ||
        !take_digits(r, 2, &c->day))
        return false;
    c->year = year;
    struct time_text clock = *r;
    *dated = !(take(&clock, 'T') || take(&clock, 't') || take(&clock, ' ') || take(&clock, '_')) ||
             !take_clock(&clock, c);
    if (*dated) /* with dots it may be a version */
        return c->hour = c->minute = c->second = 0, dash != '.';
    *r = clock;
    take_zone(r, c);
    return true;
}

/* 10/Oct/2000:13:55:36 -0700, 10-Oct-2000 13:55:36.123 */
static bool access_form(struct time_text *r, struct civil *c, char dash)
{
    unsigned year;
    if (!take_digits(r, 2, &c->day) || !take(r, dash) || !take_month(r, &c->month) ||
        !take(r, dash) || !take_digits(r, 4, &year) || !(take(r, ':') || take(r, ' ')) ||
        !take_clock(r, c))
        return false;
    c->year = year;
    take_zone(r, c);
    return true;
}

/* 11 Oct 2023 22:14:15 GMT */
static bool mail_form(struct time_text *r, struct civil *c)
{
    unsigned year;
    if (!take_day(r, &c->day) || !take(r, ' ') || !take_month(r, &c->month) || !take(r, ' ') ||
        !take_digits(r, 4, &year) || !take(r, ' ') || !take_clock(r, c))
        return false;
    c->year = year;
    take_zone(r, c);
    return true;
}

/* Oct 11 22:14:15, with a year before the time of day, after it, or none. */
static bool syslog_form(struct time_text *r, struct civil *c, bool behind)
{
    unsigned year = 0;
    if (!take_month(r, &c->month) || !take(r, ' ') || !take_day(r, &c->day) || !take(r, ' '))
        return false;
    struct time_text more = *r;
    c->yearless = !take_digits(&more, 4, &year) || !take(&more, ' ');
    if (!c->yearless)
        *r = more;
    if (!take_clock(r, c))
        return false;
    more = *r;
    if (behind && c->yearless && take(&more, ' ') && take_digits(&more, 4, &year) &&
        !digit(&more)) {
        *r = more;
        c->yearless = false;
    }
    c->year = year;
    return true;
}

/* 0501 10:00:00.123456 of klog, or with a year. Other logs with such dates have no microseconds. */
static bool klog_form(struct time_text *r, struct civil *c)
{
    unsigned year = 0;
    const uint8_t *end = r->at + ((c->yearless = r->at[4] == ' ') ? 20 : 24);
    bool good = (c->yearless || take_digits(r, 4, &year)) && take_digits(r, 2, &c->month) &&
                take_digits(r, 2, &c->day) && take(r, ' ') && take_clock(r, c);
    c->year = year;
    return good && r->at == end;
}

/* The newest year that is not later than the reference plus a day. */
static bool settle_year(struct time_context *x, struct civil *c, int64_t *seconds)
{
    int64_t month, day;
    date_of((x->reference + 86400) / 86400, &c->year, &month, &day);
    c->year++;
    for (int i = 0; i < 10; i++, c->year--) { /* leap days are up to eight years apart */
        if (!valid(c))
            continue;
        *seconds = local_seconds(c);
        *seconds -= c->zoned ? c->offset : time_zone_offset(x, *seconds);
        if (*seconds <= x->reference + 86400)
            return true;
    }
    return false;
}

/* ---- like the last one ----------------------------------------------------------------------- */

/* hh:mm:ss, eight bytes at once; a leap second is left to the slow way. */
static bool clock_at(const uint8_t *p, unsigned *seconds)
{
    const uint64_t high = UINT64_C(0xF0F0F0F0F0F0F0F0);
    uint64_t x;
    memcpy(&x, p, sizeof x);
    x = le64toh(x) ^ UINT64_C(0x30303A30303A3030); /* digits become 0 to 9, colons 0 */
    if ((x | (x + UINT64_C(0x0606060606060606))) & high || x & UINT64_C(0x0000FF0000FF0000))
        return false;
    x = 10 * x + (x >> 8); /* pairs of digits in bytes 0, 3 and 6 */
    unsigned hour = x & 0xFF, minute = x >> 24 & 0xFF, second = x >> 48 & 0xFF;
    *seconds = 3600 * hour + 60 * minute + second;
    return hour < 24 && minute < 60 && second < 60;
}

static bool like_last(struct time_context *x, const uint8_t *text, size_t len, struct stamp *out)
{
    unsigned clock;
    if (x->date_len == 0 || len < x->date_len + 8 || memcmp(text, x->date, x->date_len) != 0 ||
        !clock_at(text + x->date_len, &clock))
        return false;
    struct time_text r = {text + x->date_len + 8, text + len};
    out->nanoseconds = 0;
    if (r.end - r.at > 1 && (*r.at == '.' || *r.at == ',') && (uint8_t)(r.at[1] - '0') < 10)
        take_fraction(&r, &out->nanoseconds);
    if ((size_t)(r.end - r.at) != x->east_len || memcmp(r.at, x->east, x->east_len) != 0)
        return false;
    int64_t local = x->midnight + clock;
    out->seconds = local - (x->zoned ? x->ahead : time_zone_offset(x, local));
    return true;
}

/* Remembers a time that was read completely: a date of `lead` bytes, hh:mm:ss, a fraction, a zone. */
static void remember(struct time_context *x, const uint8_t *text, size_t len, size_t lead,
                     const struct civil *c)
{
    size_t east = lead + 8;
    unsigned clock;
    x->date_len = 0;
    if (len < east || lead > sizeof x->date || !clock_at(text + lead, &clock))
        return;
    if (len > east && (text[east] == '.' || text[east] == ','))
        for (east++; east < len && (uint8_t)(text[east] - '0') < 10;)
            east++;
    if (len - east > sizeof x->east)
        return;
    x->date_len = (unsigned)lead;
    x->east_len = (unsigned)(len - east);
    memcpy(x->date, text, lead);
    memcpy(x->east, text + east, len - east);
    x->zoned = c->zoned;
    x->ahead = c->offset;
    x->midnight = days_of(c->year, c->month, c->day) * 86400;
    x->normal =
        lead == 11 && text[4] == '-' && text[10] == 'T' && len - east == 1 && text[east] == 'Z';
}

/* ---- all forms ------------------------------------------------------------------------------- */

/* A time at the start, except numbers; returns its length. */
static size_t take_time(struct time_context *x, const uint8_t *text, size_t len, bool *dated,
                        struct stamp *out)
{
    struct time_text r = {text, text + len};
    struct civil c = {0};
    size_t lead = 0;
    bool good, month = len && (*text | 0x20) >= 'a' && (*text | 0x20) <= 'z';
    *dated = false;
    if (len < 10 || (!month && !digit(&r) && *text != ' '))
        return 0;
    if (month) {
        unsigned day;
        bool weekday = take_name(&r, "montuewedthufrisatsun", 7, &day);
        if (weekday && take(&r, ','))
            good = take(&r, ' ') && mail_form(&r, &c);
        else
            good = (!weekday || take(&r, ' ')) && syslog_form(&r, &c, weekday);
    } else if (text[2] == '/' || text[2] == '-') {
        good = access_form(&r, &c, (char)text[2]);
        lead = 12;
    } else if (text[4] == '-' || text[4] == '/' || text[4] == '.') {
        good = iso_form(&r, &c, dated);
        lead = 11;
    } else if (text[4] == ' ' || text[8] == ' ') {
        good = klog_form(&r, &c);
    } else {
        good = mail_form(&r, &c);
    }
    if (!good)
        return 0;
    if (c.yearless) {
        if (!settle_year(x, &c, &out->seconds))
            return 0;
        lead = 0; /* another reference may mean another year */
    } else if (valid(&c)) {
        out->seconds = local_seconds(&c);
        out->seconds -= c.zoned ? c.offset : time_zone_offset(x, out->seconds);
    } else {
        return 0;
    }
    out->nanoseconds = c.nanoseconds;
    if (lead && r.at == r.end && !*dated)
        remember(x, text, len, lead, &c);
    return (size_t)(r.at - text);
}

#define YEAR_1    (-62135596800) /* seconds */
#define YEAR_9999 253402300799

/* A number of units since 1970; unit 0: it follows from the size of the number. */
static bool since_1970(const uint8_t *text, size_t len, int64_t unit, struct stamp *out)
{
    struct time_text r = {text, text + len};
    bool negative = take(&r, '-');
    int64_t x = 0;
    uint32_t part = 0;
    if (!digit(&r) || len > 40)
        return false;
    for (; digit(&r); r.at++)
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *r.at - '0', &x))
            return false;
    if (r.end - r.at > 1 && *r.at == '.')
        take_fraction(&r, &part);
    if (r.at != r.end)
        return false;
    if (!unit)
        unit = x < INT64_C(100000000000)         ? 1
               : x < INT64_C(100000000000000)    ? 1000
               : x < INT64_C(100000000000000000) ? 1000000
                                                 : 1000000000;
    /* below the unit, the fraction of the number continues */
    int64_t nanoseconds = x % unit * (1000000000 / unit) + part / unit;
    x /= unit;
    if (negative) {
        x = -x - (nanoseconds > 0);
        nanoseconds = nanoseconds ? 1000000000 - nanoseconds : 0;
    }
    *out = (struct stamp){x, (uint32_t)nanoseconds};
    return x >= YEAR_1 && x <= YEAR_9999;
}

/* /Date(1714557600000)/, in milliseconds; a zone before the bracket does not change the moment. */
static bool net_form(const uint8_t *text, size_t len, struct stamp *out)
{
    unsigned digits;
    if (len < 9 || memcmp(text, "/Date(", 6) != 0 || memcmp(text + len - 2, ")/", 2) != 0)
        return false;
    struct time_text zone = {text + len - 7, text + len - 2};
    bool zoned = (take(&zone, '+') || take(&zone, '-')) && take_digits(&zone, 4, &digits);
    return since_1970(text + 6, len - 8 - (zoned ? 5 : 0), 1000, out);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void trim(const uint8_t **text, size_t *len)
{
    for (; *len && is_space(**text); --*len)
        ++*text;
    while (*len && is_space((*text)[*len - 1]))
        --*len;
}

/* What may stand around a value of any type but text: blanks, and quotes with blanks inside. */
static void unwrap(const uint8_t **text, size_t *len)
{
    trim(text, len);
    if (*len >= 2 && **text == '"' && (*text)[*len - 1] == '"') {
        ++*text;
        *len -= 2;
        trim(text, len);
    }
}

bool time_read(struct time_context *x, const uint8_t *text, size_t len, struct stamp *out)
{
    bool dated;
    if (UNLIKELY(len && (text[0] <= '"' || text[len - 1] <= '"')))
        unwrap(&text, &len);
    if (LIKELY(like_last(x, text, len, out)))
        return true;
    size_t taken = take_time(x, text, len, &dated, out);
    if (taken)
        return taken == len;
    return since_1970(text, len, 0, out) || net_form(text, len, out);
}

size_t time_lead(struct time_context *x, const uint8_t *text, size_t len, struct stamp *out)
{
    bool dated;
    size_t taken = take_time(x, text, len < 64 ? len : 64, &dated, out);
    return dated ? 0 : taken;
}

size_t time_lead_line(struct time_context *x, const uint8_t *line, size_t len, size_t *bracket,
                      struct stamp *out)
{
    unsigned digits;
    bool klog = len > 20 && memchr("IWEF", *line, 4) && (line[5] == ' ' || line[9] == ' ');
    *bracket = klog || (len && *line == '[');
    struct time_text r = {line + *bracket, line + len};
    const uint8_t *start = r.at;
    size_t taken = time_lead(x, start, len - *bracket, out);
    if (LIKELY(taken))
        return taken;
    if (len < 12 || *start == '0' || !take_digits(&r, 5, &digits) || !take_digits(&r, 5, &digits))
        return 0;
    bool part = r.end - r.at > 1 && *r.at == '.' && (uint8_t)(r.at[1] - '0') < 10;
    if (part)
        take_fraction(&r, &out->nanoseconds);
    taken = (size_t)(r.at - start);
    return take(&r, *bracket ? ']' : ' ') && (part || *bracket) && since_1970(start, taken, 0, out)
               ? taken
               : 0;
}

static char *put_two(char *p, unsigned x, char behind)
{
    *p++ = (char)('0' + x / 10);
    *p++ = (char)('0' + x % 10);
    *p = behind;
    return p + (behind != 0);
}

static void write_day(int64_t days, char out[11])
{
    int64_t year, month, day;
    date_of(days, &year, &month, &day);
    char *p = put_two(out, (unsigned)year / 100, 0);
    p = put_two(p, (unsigned)year % 100, '-');
    p = put_two(p, (unsigned)month, '-');
    put_two(p, (unsigned)day, 'T');
}

/* *day is that of `date`; both change if the time is on another. */
static size_t write_time(struct stamp stamp, int64_t *day, char date[11], char *out)
{
    int64_t days = (stamp.seconds >= 0 ? stamp.seconds : stamp.seconds - 86399) / 86400;
    unsigned second = (unsigned)(stamp.seconds - days * 86400);
    uint32_t part = stamp.nanoseconds;
    if (UNLIKELY(days != *day || !date[0])) {
        write_day(days, date);
        *day = days;
    }
    memcpy(out, date, 11);
    char *p = put_two(out + 11, second / 3600, ':');
    p = put_two(p, second / 60 % 60, ':');
    p = put_two(p, second % 60, part ? '.' : 'Z');
    if (part) {
        for (uint32_t unit = 100000000; part; unit /= 10) {
            *p++ = (char)('0' + part / unit);
            part %= unit;
        }
        *p++ = 'Z';
    }
    return (size_t)(p - out);
}

size_t time_write(struct stamp stamp, char out[TIME_NORMAL_MAX])
{
    int64_t day = 0;
    char date[11] = {0};
    return write_time(stamp, &day, date, out);
}

size_t time_normal(struct time_context *x, const uint8_t *text, size_t len,
                   char out[TIME_NORMAL_MAX])
{
    struct stamp stamp;
    bool like = like_last(x, text, len, &stamp);
    if (like && x->normal && len == x->date_len + 9) {
        memcpy(out, text, len);
        return len;
    }
    return (like || time_read(x, text, len, &stamp)) && stamp.seconds >= YEAR_1 &&
                   stamp.seconds <= YEAR_9999
               ? write_time(stamp, &x->day, x->written, out)
               : 0;
}
