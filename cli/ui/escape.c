/* Untrusted text on a terminal; see escape.h. Also called by a signal handler: no memory, no
   locale. */
#include "escape.h"

#include <string.h>

#include "base/bytes.h"

/* Control characters, and marks that reorder or break a line of text. */
static bool commands(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

size_t escape_char(const uint8_t *s, size_t len, char out[8], size_t *n)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t c;
    size_t took = utf8_decode(s, len, &c);
    if (took && !commands(c)) {
        memcpy(out, s, took);
        return *n = took;
    }
    c = took ? c : s[0];
    char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : took ? 'u' : 'x';
    int shift = letter == 'u' ? 12 : letter == 'x' ? 4 : -4;
    out[0] = '\\';
    out[1] = letter;
    for (*n = 2; shift >= 0; shift -= 4)
        out[(*n)++] = digits[c >> shift & 15];
    return took ? took : 1;
}

size_t escape_text(char *out, size_t room, const char *text)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t left = strlen(text), len = 0;
    while (left) {
        char shown[8];
        size_t n, took = escape_char(s, left, shown, &n);
        if (n >= room - len)
            break;
        memcpy(out + len, shown, n);
        len += n;
        s += took;
        left -= took;
    }
    out[len] = 0;
    return len;
}
