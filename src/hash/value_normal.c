/* Normal forms of numbers and times, computed from their digits. */
#include "types.h"

/* 10^15; values with larger exponents are plain bytes */
#define EXPONENT_MAX INT64_C(1000000000000000)
#define TIME_FIRST   (-INT64_C(62167219200)) /* 0000-01-01T00:00:00Z */
#define TIME_LAST    INT64_C(253402300799)   /* 9999-12-31T23:59:59Z */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void trim(struct text *t)
{
    while (t->at < t->end && is_space(*t->at))
        t->at++;
    while (t->at < t->end && is_space(t->end[-1]))
        t->end--;
}

static bool take(struct text *t, char c)
{
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

/* The digits at the current position. */
static struct text take_digits(struct text *t)
{
    struct text digits = {t->at, t->at};
    while (t->at < t->end && is_digit(*t->at))
        t->at++;
    digits.end = t->at;
    return digits;
}

static size_t text_len(struct text t)
{
    return (size_t)(t.end - t.at);
}

static void put(struct out *o, const char *from, size_t len)
{
    memcpy(o->at, from, len);
    o->at += len;
}

static void skip_zeros(struct text *digits)
{
    while (digits->at < digits->end && *digits->at == '0')
        digits->at++;
}

static void drop_zeros(struct text *digits)
{
    while (digits->at < digits->end && digits->end[-1] == '0')
        digits->end--;
}

static bool take_sign(struct text *t)
{
    bool minus = take(t, '-');
    if (!minus)
        take(t, '+');
    return minus;
}

/* ---- integers -------------------------------------------------------------------------------- */

bool normal_int(struct text t, struct out *o)
{
    bool minus = take_sign(&t);
    struct text digits = take_digits(&t);
    if (digits.at == digits.end || t.at != t.end)
        return false;
    skip_zeros(&digits);
    if (digits.at == digits.end)
        digits.at--; /* keep one zero, without a sign */
    else if (minus)
        put(o, "-", 1);
    put(o, digits.at, text_len(digits));
    return true;
}

/* ---- decimals -------------------------------------------------------------------------------- */

/* False if something other than an exponent follows. Stops at the limit. */
static bool take_exponent(struct text *t, int64_t *exponent)
{
    *exponent = 0;
    if (!take(t, 'e') && !take(t, 'E'))
        return t->at == t->end;
    bool minus = take_sign(t);
    struct text digits = take_digits(t);
    if (digits.at == digits.end || t->at != t->end)
        return false;
    for (; digits.at < digits.end; digits.at++)
        if (*exponent <= EXPONENT_MAX)
            *exponent = 10 * *exponent + (*digits.at - '0');
    *exponent = minus ? -*exponent : *exponent;
    return true;
}

/* Digits without leading and trailing zeros, times a power of ten. */
bool normal_dec(struct text t, struct out *o)
{
    bool minus = take_sign(&t);
    int64_t exponent;
    struct text whole = take_digits(&t), part = {t.at, t.at};
    if (take(&t, '.'))
        part = take_digits(&t);
    if ((whole.at == whole.end && part.at == part.end) || !take_exponent(&t, &exponent))
        return false;
    drop_zeros(&part);
    skip_zeros(&whole);
    bool out_of_range = exponent > EXPONENT_MAX || exponent < -EXPONENT_MAX;
    exponent -= (int64_t)text_len(part);
    if (whole.at == whole.end)
        skip_zeros(&part);
    size_t len = text_len(whole);
    if (part.at == part.end) {
        drop_zeros(&whole);
        exponent += (int64_t)(len - text_len(whole));
    }
    if (whole.at == whole.end && part.at == part.end) {
        put(o, "0", 1);
        return true;
    }
    if (out_of_range)
        return false;
    if (minus)
        put(o, "-", 1);
    put(o, whole.at, text_len(whole));
    put(o, part.at, text_len(part));
    if (exponent) {
        put(o, exponent < 0 ? "e-" : "e", exponent < 0 ? 2 : 1);
        put_number(o, (uint64_t)(exponent < 0 ? -exponent : exponent), 10, 1);
    }
    return true;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* A moment: whole seconds since 1970 in UTC, and the digits of a fraction to be added. */
struct moment {
    int64_t seconds;
    struct text fraction;
};

/* Exactly n digits, within bounds. */
static bool take_field(struct text *t, unsigned n, int64_t least, int64_t most, int64_t *value)
{
    *value = 0;
    if ((size_t)(t->end - t->at) < n)
        return false;
    for (unsigned i = 0; i < n; i++, t->at++) {
        if (!is_digit(*t->at))
            return false;
        *value = 10 * *value + (*t->at - '0');
    }
    return *value >= least && *value <= most;
}

/* Z, +hh:mm, +hhmm, +hh, or nothing. */
static bool take_offset(struct text *t, int64_t *seconds)
{
    int64_t hours, minutes = 0;
    *seconds = 0;
    if (t->at == t->end)
        return true;
    take(t, ' ');
    if (take(t, 'Z') || take(t, 'z'))
        return t->at == t->end;
    bool minus = take(t, '-');
    if ((!minus && !take(t, '+')) || !take_field(t, 2, 0, 23, &hours))
        return false;
    bool colon = take(t, ':');
    if ((colon || t->at != t->end) && !take_field(t, 2, 0, 59, &minutes))
        return false;
    *seconds = (minus ? -60 : 60) * (60 * hours + minutes);
    return t->at == t->end;
}

/* hh:mm or hh:mm:ss with a fraction, with or without colons; then the offset. */
static bool take_time(struct text *t, bool basic, struct moment *m)
{
    int64_t hour, minute, second = 0, offset;
    if (!take_field(t, 2, 0, 23, &hour) || (!basic && !take(t, ':')) ||
        !take_field(t, 2, 0, 59, &minute))
        return false;
    bool seconds = basic ? t->at < t->end && is_digit(*t->at) : take(t, ':');
    if (seconds && !take_field(t, 2, 0, 60, &second))
        return false;
    if (seconds && (take(t, '.') || take(t, ','))) {
        m->fraction = take_digits(t);
        if (m->fraction.at == m->fraction.end)
            return false;
    }
    if (!take_offset(t, &offset))
        return false;
    m->seconds += 3600 * hour + 60 * minute + second - offset;
    return true;
}

static bool take_date_time(struct text t, struct moment *m)
{
    int64_t year, month, day, next;
    if (!take_field(&t, 4, 0, 9999, &year))
        return false;
    bool basic = !take(&t, '-');
    if (!take_field(&t, 2, 1, 12, &month) || (!basic && !take(&t, '-')) ||
        !take_field(&t, 2, 1, 31, &day))
        return false;
    next = month < 12 ? days_of(year, month + 1, 1) : days_of(year + 1, 1, 1);
    if (days_of(year, month, day) >= next)
        return false;
    m->seconds = 86400 * days_of(year, month, day);
    if (t.at == t.end)
        return !basic; /* digits without anything else are seconds */
    if (!take(&t, 'T') && !take(&t, 't') && (basic || !take(&t, ' ')))
        return false;
    return take_time(&t, basic, m);
}

/* Seconds since 1970; before that the fraction counts down. */
static bool take_epoch(struct text t, struct moment *m, bool *minus)
{
    *minus = take_sign(&t);
    struct text digits = take_digits(&t);
    if (digits.at == digits.end)
        return false;
    if (take(&t, '.')) {
        m->fraction = take_digits(&t);
        if (m->fraction.at == m->fraction.end)
            return false;
    }
    skip_zeros(&digits);
    if (t.at != t.end || text_len(digits) > 12)
        return false;
    m->seconds = 0;
    for (; digits.at < digits.end; digits.at++)
        m->seconds = 10 * m->seconds + (*digits.at - '0');
    return true;
}

static void put_moment(struct out *o, const struct moment *m, bool minus)
{
    int64_t days = (m->seconds - TIME_FIRST) / 86400 + TIME_FIRST / 86400;
    int64_t of_day = m->seconds - 86400 * days, year, month, day;
    date_of(days, &year, &month, &day);
    const int64_t field[] = {year, month, day, of_day / 3600, of_day / 60 % 60, of_day % 60};
    struct text f = m->fraction;
    for (unsigned i = 0; i < 6; i++) {
        put_number(o, (uint64_t)field[i], 10, i ? 2 : 4);
        put(o, &"--T::."[i], i < 5 || f.at < f.end);
    }
    for (; f.at < f.end; f.at++) {
        char digit = !minus ? *f.at : (char)('0' + '9' + (f.at + 1 == f.end) - *f.at);
        put(o, &digit, 1);
    }
    put(o, "Z", 1);
}

bool normal_time(struct text t, struct out *o)
{
    struct moment m = {0};
    bool minus = false;
    struct plain plain = {0};
    if (plain_time(t.at, text_len(t), &plain)) {
        put(o, t.at, text_len(t));
        return true;
    }
    if (!take_date_time(t, &m)) {
        m = (struct moment){0};
        if (!take_epoch(t, &m, &minus))
            return false;
    }
    drop_zeros(&m.fraction);
    if (minus)
        m.seconds = -m.seconds - (m.fraction.at < m.fraction.end);
    if (m.seconds < TIME_FIRST || m.seconds > TIME_LAST)
        return false;
    put_moment(o, &m, minus);
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

bool normal_fold(struct text t, struct out *o)
{
    for (; t.at < t.end; t.at++)
        *o->at++ = fold(*t.at);
    return true;
}

void trim_quoted(struct text *t)
{
    bool some = t->end > t->at;
    if (some && t->at[0] > '"' && t->end[-1] > '"') /* nothing to trim, as almost always */
        return;
    trim(t);
    if (t->end - t->at >= 2 && *t->at == '"' && t->end[-1] == '"') {
        t->at++;
        t->end--;
        trim(t);
    }
}

tamis_key value_normal(tamis_type type, tamis_key value, char normal[NORMAL_ROOM])
{
    const struct type *row = &types[type];
    struct text t = {value.data, (const char *)value.data + value.len};
    struct out o = {normal, normal};
    if (!row->normal || !value.data || value.len > VALUE_LEN_MAX)
        return value;
    if (row->trims)
        trim_quoted(&t);
    return row->normal(t, &o) ? (tamis_key){normal, (size_t)(o.at - o.start)} : value;
}

size_t tamis_value_normal(tamis_type type, const void *value, size_t len, void *out, size_t room)
{
    char made[NORMAL_ROOM];
    if ((unsigned)type >= TAMIS_TYPES)
        return 0;
    tamis_key normal = value_normal(type, (tamis_key){value, len}, made);
    if (normal.data != made || normal.len > room)
        return 0;
    memcpy(out, made, normal.len);
    return normal.len;
}
