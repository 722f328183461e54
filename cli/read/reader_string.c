/* JSON strings with escapes, which are rare. */
#include "reader_parse.h"

/* The number in the four digits at p, -1 if one is not a digit. */
static int32_t hex4(const uint8_t *p)
{
    int32_t x = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        x = x << 4 | digit;
    }
    return x;
}

/* The byte that the letter of an escape stands for, 0 if none; u is not included. */
static uint8_t escape_of(uint8_t letter)
{
    switch (letter) {
    case '"':
    case '\\':
    case '/':
        return letter;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

const uint8_t *json_string_end(const uint8_t *p, const uint8_t *end, const uint8_t **bad)
{
    for (; p < end && *p != '\n'; p++) {
        if (*p == '"')
            return p;
        if (*p != '\\')
            continue;
        if (end - p >= 6 && p[1] == 'u' && hex4(p + 2) >= 0)
            p += 5;
        else if (end - p >= 2 && escape_of(p[1]))
            p++;
        else
            break;
    }
    *bad = p;
    return NULL;
}

size_t utf8_put(uint32_t c, uint8_t *out)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

/* The character of the \u at p, with a second one if the two are a surrogate pair. */
static uint32_t take_u(const uint8_t **p, const uint8_t *quote)
{
    uint32_t c = (uint32_t)hex4(*p + 2);
    *p += 6;
    if (c >= 0xD800 && c < 0xDC00 && quote - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        uint32_t low = (uint32_t)hex4(*p + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            *p += 6;
            return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return c;
}

size_t json_unescape(const uint8_t *p, const uint8_t *quote, uint8_t *out)
{
    uint8_t *const start = out;
    while (p < quote) {
        const uint8_t *stop = memchr(p, '\\', (size_t)(quote - p));
        size_t plain = (size_t)((stop ? stop : quote) - p);
        memcpy(out, p, plain);
        out += plain;
        if (!stop)
            break;
        p = stop;
        if (p[1] == 'u' && quote - p >= 6 && hex4(p + 2) >= 0) {
            out += utf8_put(take_u(&p, quote), out);
        } else {
            uint8_t c = escape_of(p[1]);
            if (!c)
                *out++ = '\\';
            *out++ = c ? c : p[1];
            p += 2;
        }
    }
    return (size_t)(out - start);
}
