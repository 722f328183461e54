/*
 * The order of numbers and times: exact, between two normal forms; and as a tamis_order, which is
 * coarser but never reversed: if one value is below another, its order is not above the other's.
 * The lowest and highest values of a segment need no more than that to reject it safely.
 */
#include "types.h"

#define PART_DIGITS 19 /* digits of a fraction: 10^19 < 2^64 */

/* Digits after the point as a fraction of 2^64. */
static uint64_t part_of(const char *digits, size_t n)
{
    uint64_t value = 0, ten = UINT64_C(10000000000000000000);
    if (n == 0)
        return 0;
    for (unsigned i = 0; i < PART_DIGITS; i++)
        value = 10 * value + (i < n ? (uint64_t)(digits[i] - '0') : 0);
    return (uint64_t)(((unsigned __int128)value << 64) / ten);
}

/* Combines sign, whole digits and fraction, limited to the lowest or highest order past 64 bits. */
static tamis_order order_of(bool minus, uint64_t whole, bool over, const char *part, size_t n)
{
    if (over || whole > INT64_MAX)
        return minus ? (tamis_order){INT64_MIN, 0} : (tamis_order){INT64_MAX, UINT64_MAX};
    uint64_t fraction = part_of(part, n);
    if (!minus)
        return (tamis_order){(int64_t)whole, fraction};
    return n ? (tamis_order){-(int64_t)whole - 1, ~fraction} : (tamis_order){-(int64_t)whole, 0};
}

static uint64_t whole_of(const char *digits, size_t n, bool *over)
{
    uint64_t value = 0;
    *over = n > PART_DIGITS;
    for (size_t i = 0; i < n && !*over; i++)
        value = 10 * value + (uint64_t)(digits[i] - '0');
    return value;
}

tamis_order order_int(const char *at, size_t len)
{
    bool minus = *at == '-', over;
    uint64_t whole = whole_of(at + minus, len - minus, &over);
    return order_of(minus, whole, over, NULL, 0);
}

/* A decimal in normal form: 0.DIGITS times ten to the power of `point`. */
struct decimal {
    bool minus;
    const char *digits;
    size_t n;
    int64_t point;
};

static struct decimal decimal_of(const char *at, size_t len)
{
    struct decimal d = {.minus = *at == '-'};
    const char *end = at + len;
    d.digits = at + d.minus;
    const char *e = memchr(d.digits, 'e', (size_t)(end - d.digits));
    d.n = (size_t)((e ? e : end) - d.digits);
    d.point = (int64_t)d.n;
    if (!e)
        return d;
    bool below = e[1] == '-';
    int64_t exponent = 0;
    for (const char *c = e + 1 + below; c < end; c++)
        exponent = 10 * exponent + (*c - '0');
    d.point += below ? -exponent : exponent;
    return d;
}

tamis_order order_dec(const char *at, size_t len)
{
    struct decimal d = decimal_of(at, len);
    char digits[PART_DIGITS];
    bool over;
    memset(digits, '0', sizeof digits);
    if (*d.digits == '0')
        return (tamis_order){0, 0};
    if (d.point > PART_DIGITS)
        return order_of(d.minus, 0, true, NULL, 0);
    if (d.point <= 0) { /* leading zeros, then the digits */
        size_t skip = d.point < -PART_DIGITS ? PART_DIGITS : (size_t)-d.point;
        memcpy(digits + skip, d.digits, d.n < PART_DIGITS - skip ? d.n : PART_DIGITS - skip);
        return order_of(d.minus, 0, false, digits, PART_DIGITS);
    }
    size_t n = d.n < (size_t)d.point ? d.n : (size_t)d.point;
    memcpy(digits, d.digits, n);
    uint64_t whole = whole_of(digits, (size_t)d.point, &over);
    return order_of(d.minus, whole, over, d.digits + n, d.n - n);
}

static int64_t field_of(const char *at, unsigned n)
{
    int64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value = 10 * value + (at[i] - '0');
    return value;
}

/* YYYY-MM-DDThh:mm:ss[.digits]Z */
tamis_order order_time(const char *at, size_t len)
{
    int64_t days = days_of(field_of(at, 4), field_of(at + 5, 2), field_of(at + 8, 2));
    int64_t of_day = 3600 * field_of(at + 11, 2) + 60 * field_of(at + 14, 2) + field_of(at + 17, 2);
    return (tamis_order){86400 * days + of_day, len > 21 ? part_of(at + 20, len - 21) : 0};
}

/* ---- exactly --------------------------------------------------------------------------------- */

static int compare_lens(uint64_t x, uint64_t y)
{
    return (x > y) - (x < y);
}

static int compare_bytes(const char *x, size_t x_len, const char *y, size_t y_len)
{
    int by = memcmp(x, y, x_len < y_len ? x_len : y_len);
    return by ? by : compare_lens(x_len, y_len);
}

int compare_int(const char *x, size_t x_len, const char *y, size_t y_len)
{
    bool minus = *x == '-';
    if (minus != (*y == '-'))
        return minus ? -1 : 1;
    int by = compare_lens(x_len, y_len);
    by = by ? by : memcmp(x, y, x_len);
    return minus ? -by : by;
}

int compare_dec(const char *x, size_t x_len, const char *y, size_t y_len)
{
    struct decimal a = decimal_of(x, x_len), b = decimal_of(y, y_len);
    bool no_a = *a.digits == '0', no_b = *b.digits == '0';
    if (no_a || no_b)
        return no_a && no_b ? 0 : no_a ? (b.minus ? 1 : -1) : a.minus ? -1 : 1;
    if (a.minus != b.minus)
        return a.minus ? -1 : 1;
    int by = (a.point > b.point) - (a.point < b.point);
    by = by ? by : compare_bytes(a.digits, a.n, b.digits, b.n);
    return a.minus ? -by : by;
}

/* "…:59Z", "…:59.5Z": compares the digits of the fraction one by one. */
int compare_time(const char *x, size_t x_len, const char *y, size_t y_len)
{
    return compare_bytes(x, x_len - 1, y, y_len - 1);
}
