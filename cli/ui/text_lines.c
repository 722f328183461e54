/* Text that is kept in files. See text_lines.h. */
#include "text_lines.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "carrier/carrier.h"

/* ---- writing --------------------------------------------------------------------------------- */

void text_put(struct bytes *out, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bytes_put(out, line, len < 0 ? 0 : (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
}

void text_put_word(struct bytes *out, const char *text)
{
    size_t room = text ? 3 * strlen(text) + 8 : 8;
    char *quoted = malloc(room);
    out->failed |= !quoted;
    if (quoted) {
        snprintf(quoted, room, "-");
        if (text)
            carrier_quote(text, quoted, room);
        bytes_put(out, " ", 1);
        bytes_put(out, quoted, strlen(quoted));
    }
    free(quoted);
}

/* ---- reading --------------------------------------------------------------------------------- */

char *text_word(struct line *l)
{
    char *start = l->at;
    l->bad |= !start || *start == 0;
    if (l->bad)
        return "";
    char *space = strchr(start, ' ');
    l->at = space ? space + 1 : NULL;
    if (space)
        *space = 0;
    return start;
}

uint64_t text_number(struct line *l, int base)
{
    char *text = text_word(l), *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, base);
    l->bad |= !isxdigit((unsigned char)*text) || *end || errno;
    return value;
}

int64_t text_whole(struct line *l)
{
    char *text = text_word(l), *end;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    l->bad |= isspace((unsigned char)*text) || end == text || *end || errno;
    return value;
}

char *text_quoted(struct line *l)
{
    const char *text = text_word(l);
    size_t len = strlen(text);
    bool none = strcmp(text, "-") == 0;
    char *out = none ? NULL : malloc(len + 2);
    l->bad |= !none && (!out || !carrier_unquote(text, len, out, len + 2));
    return out;
}

void text_copy(struct line *l, char *out, size_t room)
{
    const char *text = text_word(l);
    size_t len = strlen(text);
    l->bad |= len >= room;
    if (!l->bad)
        memcpy(out, text, len + 1);
}

bool text_read(const struct bytes *text, const char *title, const char *end, line_fn take,
               void *context)
{
    size_t titled = strlen(title);
    if (text->len < titled || memcmp(text->data, title, titled) != 0 ||
        memchr(text->data, 0, text->len))
        return false;
    char *copy = strndup((const char *)text->data, text->len), *next;
    bool good = copy, ended = false;
    for (char *at = copy + titled; good && !ended && *at; at = next) {
        struct line line = {at, false};
        next = strchr(at, '\n');
        good = next;
        if (!good)
            break;
        *next++ = 0;
        ended = end && strcmp(at, end) == 0;
        good = ended || (take(context, text_word(&line), &line) && !line.bad && !line.at);
    }
    free(copy);
    return good && (ended || !end);
}

/* ---- files ----------------------------------------------------------------------------------- */

bool file_slurp(const char *path, struct bytes *out)
{
    out->len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && bytes_read(out, fd, SIZE_MAX);
    fd_close(&fd);
    return good;
}

static tamis_error put_whole(const void *of, unsigned flags,
                             tamis_error (*size)(void *context, uint64_t size), tamis_write write,
                             void *context)
{
    const struct carrier_part *whole = of;
    (void)flags;
    tamis_error e = size(context, whole->len);
    return e != TAMIS_OK ? e : write(context, whole->data, whole->len) == 0 ? TAMIS_OK : TAMIS_EIO;
}

bool file_put(const char *path, const void *data, size_t len, unsigned flags)
{
    const struct carrier_part whole = {data, len};
    const struct saved what = {.of = &whole,
                               .encode = put_whole,
                               .key_inside = flags & PUT_PRIVATE,
                               .loose = flags & PUT_LOOSE};
    tamis_reason reason = {0};
    return succeeded(file_save(&what, path, &reason), &reason, path);
}
