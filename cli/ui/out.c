/* Standard output and JSON. See out.h. */
#define _GNU_SOURCE
#include "out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "escape.h"
#include "os/file.h"
#include "progress.h"

#define ROOM ((size_t)256 << 10)
/* larger pieces are written directly: copying would cost more than a write */
#define DIRECT ((size_t)32 << 10)

static struct {
    char held[ROOM];
    size_t n;
    int error;    /* errno of the first failure */
    int terminal; /* 1: yes, -1: no, 0: not determined yet */
} out;

static _Thread_local struct bytes *into;

static bool terminal(void)
{
    if (into)
        return false;
    if (out.terminal == 0)
        out.terminal = isatty(STDOUT_FILENO) ? 1 : -1;
    return out.terminal > 0;
}

/* A larger pipe, if it is one and the system permits, makes the two processes take turns less often. */
static void widen_pipe(void)
{
    static bool tried;
    if (!tried)
        fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20);
    tried = true;
}

static void write_raw(const void *data, size_t len)
{
    if (len >= DIRECT)
        widen_pipe();
    if (!out.error)
        out.error = file_write(STDOUT_FILENO, data, len, -1);
}

/* Shows control characters, except line ends and tabs. */
static void show(const char *data, size_t len, void (*put)(const void *data, size_t len))
{
    char shown[4096];
    size_t used = 0;
    for (size_t i = 0, n; i < len;) {
        bool passes = data[i] == '\n' || data[i] == '\t' ||
                      (data[i] == '\r' && i + 1 < len && data[i + 1] == '\n');
        if (passes) {
            shown[used++] = data[i++];
        } else {
            i += escape_char((const uint8_t *)data + i, len - i, shown + used, &n);
            used += n;
        }
        if (used > sizeof shown - 8 || i == len) {
            put(shown, used);
            used = 0;
        }
    }
}

static void write_all(const char *data, size_t len)
{
    if (terminal()) {
        progress_hide();
        show(data, len, write_raw);
    } else {
        write_raw(data, len);
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
    if (into) {
        bytes_put(into, data, len);
        return;
    }
    if (len > ROOM - out.n || len >= DIRECT)
        put_flush();
    if (len >= DIRECT) {
        write_all(data, len);
        return;
    }
    memcpy(out.held + out.n, data, len);
    out.n += len;
}

void put_raw(const void *data, size_t len)
{
    put_flush();
    if (terminal())
        progress_hide();
    write_raw(data, len);
}

void put_shown(const void *data, size_t len)
{
    show(data, len, put_bytes);
}

void put_text(const char *text)
{
    put_bytes(text, strlen(text));
}

void put_name(const char *name)
{
    char shown[8192];
    if (terminal())
        put_bytes(shown, escape_text(shown, sizeof shown, name));
    else
        put_text(name);
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
    if (out.error == EPIPE) /* the reader has what it needed */
        return TROUBLE;
    bool full = out.error == ENOSPC || out.error == EDQUOT;
    return complain("%s: standard output: results are missing; %s", strerror(out.error),
                    full                 ? "make room and run again"
                    : out.error == EFBIG ? "raise the limit on the size of files"
                                         : "run again with one that can be written");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static _Thread_local struct {
    int depth;
    uint64_t lists; /* the innermost 64 brackets, the last one lowest: 1 is a list */
    bool later;     /* a value was written at this depth: a comma comes next */
} json;

void put_into(struct bytes *text)
{
    into = text;
    json.depth = 0;
    json.later = false;
}

/* The character at s as it is written in a string, like escape_char(); U+FFFD stands for bytes that
   are not UTF-8. */
static size_t json_char(const uint8_t *s, size_t len, char to[8], size_t *n)
{
    size_t took = escape_char(s, len, to, n);
    if (*s == '"' || *s == '\\') {
        to[0] = '\\';
        to[1] = (char)*s;
        *n = 2;
    } else if (to[0] == '\\' && to[1] == 'x') {
        memcpy(to, "\\ufffd", *n = 6);
    }
    return took;
}

static void json_string(const void *data, size_t left)
{
    put_text("\"");
    for (const uint8_t *s = data; left;) {
        char shown[8];
        size_t n, took = 0;
        while (took < left && s[took] >= ' ' && s[took] < 0x7F && s[took] != '"' && s[took] != '\\')
            took++; /* most strings as they are */
        if (took) {
            put_bytes(s, took);
        } else {
            took = json_char(s, left, shown, &n);
            put_bytes(shown, n);
        }
        s += took;
        left -= took;
    }
    put_text("\"");
}

static void json_name(const char *key)
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
    json_name(key);
    put_format("%c", bracket);
    json.later = false;
    json.lists = json.lists << 1 | (bracket == '[');
    json.depth++;
}

void json_close(void)
{
    put_text(json.lists & 1 ? "]" : "}");
    json.lists >>= 1;
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
    json_name(key);
    json_string(data, len);
}

void json_raw(const char *key, const void *json_text, size_t len)
{
    json_name(key);
    put_bytes(json_text, len);
}

void json_count(const char *key, uint64_t value)
{
    json_name(key);
    put_format("%llu", (unsigned long long)value);
}

void json_real(const char *key, double value)
{
    json_name(key);
    if (value - value != 0) /* JSON has neither NaN nor infinity */
        put_text("null");
    else
        put_format("%.17g", value);
}

void json_flag(const char *key, bool value)
{
    json_name(key);
    put_text(value ? "true" : "false");
}
