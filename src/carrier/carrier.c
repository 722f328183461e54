/* Which carrier a URL names, to which every call then goes; and what carriers share: errors, waiting, names
   of owners as they can stand in keys and paths. */
#include "carrier.h"

#include "base/base.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct carrier *carrier_open(const char *url, char error[256])
{
    if (strncmp(url, "file:", 5) == 0 && url[5])
        return carrier_folder_open(url + 5, error);
    if (strncmp(url, "redis://", 8) == 0 || strncmp(url, "redis+unix://", 13) == 0) {
#ifdef TAMIS_HAVE_HIREDIS
        return carrier_redis_open(url, error);
#else
        snprintf(error, 256, "built without hiredis, which Redis needs");
        return NULL;
#endif
    }
    snprintf(error, 256, "not an address: give redis://HOST:PORT/NAME or file:FOLDER");
    return NULL;
}

void carrier_close(struct carrier *c)
{
    if (c)
        c->kind->close(c);
}

bool carrier_send(struct carrier *c, const char *owner, const void *data, size_t len)
{
    return c->kind->send(c, owner, data, len);
}

bool carrier_replace(struct carrier *c, const char *owner, uint64_t epoch,
                     const struct carrier_part *parts, size_t n)
{
    return c->kind->replace(c, owner, epoch, parts, n);
}

int carrier_last_epoch(struct carrier *c, const char *owner, uint64_t *epoch)
{
    return c->kind->last_epoch(c, owner, epoch);
}

bool carrier_retire(struct carrier *c, const char *owner)
{
    return c->kind->retire(c, owner);
}

int carrier_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                    carrier_take take, void *context)
{
    return c->kind->receive(c, position, milliseconds, take, context);
}

int carrier_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                  carrier_take take, void *context)
{
    return c->kind->fetch(c, owner, position, take, context);
}

bool carrier_owners(struct carrier *c, void (*each)(void *context, const char *owner),
                    void *context)
{
    return c->kind->owners(c, each, context);
}

bool carrier_fail(struct carrier *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->error, sizeof c->error, format, args);
    va_end(args);
    return false;
}

uint64_t carrier_now(void)
{
    return clock_steady(NULL) / 1000000;
}

void carrier_sleep(uint64_t milliseconds)
{
    struct timespec time = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000};
    nanosleep(&time, NULL); /* a signal ends it */
}

void carrier_quote(const char *name, char *out, size_t room)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;
    for (; *name && n + 4 < room; name++) {
        unsigned char byte = (unsigned char)*name;
        if (isalnum(byte) || byte == '-' || byte == '_') {
            out[n++] = (char)byte;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[byte >> 4];
        out[n++] = digits[byte & 15];
    }
    out[n] = 0;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool carrier_unquote(const char *text, size_t len, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (n + 1 >= room)
            return false;
        if (text[i] != '%') {
            out[n++] = text[i];
            continue;
        }
        int high = i + 2 < len ? digit(text[i + 1]) : -1, low = high < 0 ? -1 : digit(text[i + 2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        out[n++] = (char)(high * 16 + low);
        i += 2;
    }
    out[n] = 0;
    return n > 0;
}
