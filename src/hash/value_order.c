/*
 * The order of numbers and times: exact, between two normal forms; and as a tamis_order, which is
 * coarser but never reversed: if one value is below another, its order is not above the other's.
 * The lowest and highest values of a segment need no more than that to reject it safely.
 */
#include "types.h"

#include "base/bytes.h"

#define PART_DIGITS  19 /* digits of a fraction: 10^19 < 2^64 */
#define PLAIN_DIGITS 9  /* of a fraction that needs no wide division: 10^9 < 2^32 */

/* Digits after the point as a fraction of 2^64. */
static uint64_t part_of(const char *digits, size_t n)
{
    uint64_t value = 0, ten = UINT64_C(10000000000000000000);
    if (n <= PLAIN_DIGITS) { /* the quotient in two halves */
        uint64_t unit = 1;
        for (size_t i = 0; i < n; i++, unit *= 10)
            value = 10 * value + (uint64_t)(digits[i] - '0');
        return (value << 32) / unit << 32 | ((value << 32) % unit << 32) / unit;
    }
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

/* ---- values as logs write them ----------------------------------------------------------------- */

#define EIGHT_ZEROS UINT64_C(0x3030303030303030)

/* Is every byte 0 to 9? */
ALWAYS_INLINE bool eight_below_ten(uint64_t x)
{
    return !((x | (x + UINT64_C(0x0606060606060606))) & UINT64_C(0xF0F0F0F0F0F0F0F0));
}

/* The number of one to eight digits. False: other bytes are among them. */
static bool eight_digits(const char *at, size_t n, uint64_t *value)
{
    const uint8_t *b = (const uint8_t *)at;
    uint64_t x;
    if (n == 8)
        x = get_u64(b);
    else if (n >= 4)
        x = get_u32(b) | (uint64_t)get_u32(b + n - 4) << (8 * (n - 4));
    else
        x = b[0] | (uint64_t)b[n / 2] << (8 * (n / 2)) | (uint64_t)b[n - 1] << (8 * (n - 1));
    x = (x ^ EIGHT_ZEROS) << (8 * (8 - n)); /* zeros in front */
    if (!eight_below_ten(x))
        return false;
    x = 10 * x + (x >> 8); /* pairs of digits, then fours, then all */
    *value = ((x & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064) +
              (x >> 16 & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001)) >>
             32;
    return true;
}

bool plain_int(const char *at, size_t len, struct plain *plain)
{
    uint64_t high = 0, low;
    size_t first = len > 8 ? len - 8 : 0;
    if (len - 1 >= 16 || (*at == '0' && len > 1) || (first && !eight_digits(at, first, &high)) ||
        !eight_digits(at + first, len - first, &low))
        return false;
    plain->order = (tamis_order){(int64_t)(high * 100000000 + low), 0};
    return true;
}

/* The digits of eight bytes, 0 at separators; false: they do not look like the pattern, in which
   '0' stands for any digit. */
static bool eight_like(const char *at, uint64_t pattern, uint64_t separators, uint64_t *digits)
{
    uint64_t x = get_u64(at) ^ pattern;
    *digits = x;
    return eight_below_ten(x) && !(x & separators);
}

/* Z, or the digits of a fraction, of which the last is not 0, and Z. */
static bool plain_part(const char *at, size_t len, uint64_t *part)
{
    *part = 0;
    if (at[len - 1] != 'Z' || len == 1)
        return len == 1 && *at == 'Z';
    if (*at != '.' || len < 3 || len > 2 + PLAIN_DIGITS || at[len - 2] == '0')
        return false;
    for (size_t i = 1; i < len - 1; i++)
        if (!is_digit(at[i]))
            return false;
    *part = part_of(at + 1, len - 2);
    return true;
}

/* A time in the same minute as the last one: of it, only ":ssZ" is read. */
static bool same_minute(const char *at, size_t len, struct plain *plain)
{
    uint32_t x = get_u32(at + 16) ^ UINT32_C(0x5A30303A);
    unsigned ten = x >> 8 & 0xFF, one = x >> 16 & 0xFF;
    if (len != 20 || get_u64(at) != plain->minute[0] || get_u64(at + 8) != plain->minute[1] ||
        (x & UINT32_C(0xFF0000FF)) || ten >= 6 || one >= 10)
        return false;
    plain->order = (tamis_order){plain->start + 10 * ten + one, 0};
    return true;
}

/* YYYY-MM-DDThh:mm:ss[.digits]Z on one of the first 28 days: readers of logs write times like that,
   one per record. */
bool plain_time(const char *at, size_t len, struct plain *plain)
{
    uint64_t date, hours, clock, part;
    if (len < 20)
        return false;
    if (LIKELY(same_minute(at, len, plain)))
        return true;
    if (!eight_like(at, UINT64_C(0x2D30302D30303030), UINT64_C(0xFF0000FF00000000), &date) ||
        !eight_like(at + 8, UINT64_C(0x30303A3030543030), UINT64_C(0x0000FF0000FF0000), &hours) ||
        !eight_like(at + 11, UINT64_C(0x30303A30303A3030), UINT64_C(0x0000FF0000FF0000), &clock) ||
        !plain_part(at + 19, len - 19, &part))
        return false;
    date = 10 * date + (date >> 8); /* pairs of digits */
    hours = 10 * hours + (hours >> 8);
    clock = 10 * clock + (clock >> 8);
    unsigned year = 100 * (date & 0xFF) + (date >> 16 & 0xFF), month = date >> 40 & 0xFF,
             day = hours & 0xFF, hour = clock & 0xFF, minute = clock >> 24 & 0xFF,
             second = clock >> 48 & 0xFF;
    if (month - 1 >= 12 || day - 1 >= 28 || hour >= 24 || minute >= 60 || second >= 60)
        return false;
    plain->minute[0] = get_u64(at);
    plain->minute[1] = get_u64(at + 8);
    plain->start = 86400 * days_of(year, month, day) + 3600 * hour + 60 * minute;
    plain->order = (tamis_order){plain->start + second, part};
    return true;
}

/* ---- exactly --------------------------------------------------------------------------------- */

static int compare_bytes(const char *x, size_t x_len, const char *y, size_t y_len)
{
    int by = memcmp(x, y, x_len < y_len ? x_len : y_len);
    return by ? by : ORDER(x_len, y_len, 0);
}

int compare_int(const char *x, size_t x_len, const char *y, size_t y_len)
{
    bool minus = *x == '-';
    if (minus != (*y == '-'))
        return minus ? -1 : 1;
    int by = ORDER(x_len, y_len, 0);
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
    int by = ORDER(a.point, b.point, 0);
    by = by ? by : compare_bytes(a.digits, a.n, b.digits, b.n);
    return a.minus ? -by : by;
}

/* "…:59Z", "…:59.5Z": compares the digits of the fraction one by one. */
int compare_time(const char *x, size_t x_len, const char *y, size_t y_len)
{
    return compare_bytes(x, x_len - 1, y, y_len - 1);
}
