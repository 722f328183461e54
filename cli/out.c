/* Standard output and JSON. See out.h. */
#include "out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"

#define ROOM   ((size_t)256 << 10)
#define DIRECT ((size_t)32 << 10) /* from here on a copy costs more than a write of its own */

static struct {
    char held[ROOM];
    size_t n;
    int error;    /* errno of the first failure */
    int terminal; /* 1: it is one, -1: it is not, 0: nobody looked */
} out;

static void write_all(const char *data, size_t len)
{
    if (out.terminal == 0)
        out.terminal = isatty(STDOUT_FILENO) ? 1 : -1;
    if (out.terminal > 0)
        progress_hide();
    while (len && !out.error) {
        ssize_t n = write(STDOUT_FILENO, data, len);
        if (n < 0 && errno != EINTR)
            out.error = errno;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
}

bool put_failed(void)
{
    return out.error != 0;
}

bool put_flush(void)
{
    if (out.n)
        write_all(out.held, out.n);
    out.n = 0;
    return !out.error;
}

void put_bytes(const void *data, size_t len)
{
    if (len == 0)
        return;
    if (len > ROOM - out.n || len >= DIRECT)
        put_flush();
    if (len >= DIRECT) {
        write_all(data, len);
        return;
    }
    memcpy(out.held + out.n, data, len);
    out.n += len;
}

void put_text(const char *text)
{
    put_bytes(text, strlen(text));
}

void put_format(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len > 0)
        put_bytes(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

int put_end(int status)
{
    put_flush();
    if (close(STDOUT_FILENO) != 0 && !out.error && errno != EBADF)
        out.error = errno;
    if (!out.error)
        return status;
    if (out.error == EPIPE) /* the reader has what it wanted */
        return TROUBLE;
    bool full = out.error == ENOSPC || out.error == EDQUOT;
    return complain("%s: standard output: results are missing; %s", strerror(out.error),
                    full                 ? "make room and run again"
                    : out.error == EFBIG ? "raise the limit on the size of files"
                                         : "run again with one that can be written");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct {
    int depth;
    bool later; /* a value was written at this depth: a comma comes first */
} json;

size_t utf8_char(const uint8_t *s, size_t len)
{
    static const struct {
        uint8_t mask, lead;
        size_t len;
        uint32_t least;
    } forms[] = {
        {0x80, 0, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};
    for (size_t i = 0; i < COUNT(forms); i++) {
        if ((s[0] & forms[i].mask) != forms[i].lead)
            continue;
        uint32_t c = s[0] & (uint8_t)~forms[i].mask;
        if (forms[i].len > len)
            return 0;
        for (size_t j = 1; j < forms[i].len; j++) {
            if ((s[j] & 0xC0) != 0x80)
                return 0;
            c = c << 6 | (s[j] & 0x3F);
        }
        bool fits = c >= forms[i].least && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
        return fits ? forms[i].len : 0;
    }
    return 0;
}

static void json_string(const void *data, size_t left)
{
    put_text("\"");
    const uint8_t *s = data;
    while (left) {
        size_t len = utf8_char(s, left);
        if (len == 0)
            put_text("\\ufffd");
        else if (*s == '"' || *s == '\\')
            put_format("\\%c", *s);
        else if (*s < 0x20 || *s == 0x7F)
            put_format("\\u%04x", *s);
        else
            put_bytes(s, len);
        len = len ? len : 1;
        s += len;
        left -= len;
    }
    put_text("\"");
}

static void json_key(const char *key)
{
    if (json.later)
        put_text(", ");
    json.later = true;
    if (key) {
        json_string(key, strlen(key));
        put_text(": ");
    }
}

void json_open(const char *key, char bracket)
{
    json_key(key);
    put_format("%c", bracket);
    json.later = false;
    json.depth++;
}

void json_close(char bracket)
{
    put_format("%c", bracket);
    json.later = true;
    if (--json.depth == 0) {
        put_text("\n");
        json.later = false;
    }
}

void json_text(const char *key, const char *text)
{
    json_bytes(key, text, strlen(text));
}

void json_bytes(const char *key, const void *data, size_t len)
{
    json_key(key);
    json_string(data, len);
}

void json_count(const char *key, uint64_t value)
{
    json_key(key);
    put_format("%llu", (unsigned long long)value);
}

void json_real(const char *key, double value)
{
    json_key(key);
    if (value - value != 0) /* neither NaN nor infinity has a place in JSON */
        put_text("null");
    else
        put_format("%.17g", value);
}

void json_flag(const char *key, bool value)
{
    json_key(key);
    put_text(value ? "true" : "false");
}
