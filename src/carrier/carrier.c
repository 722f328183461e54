/* Opens the carrier of a URL and dispatches calls to it; and what carriers share: compression of snapshots, errors,
   clocks, quoting of names. */
#include "carrier.h"

#include "base/base.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef TAMIS_HAVE_ZSTD
#include <zstd.h>
#endif

#define UNPACKED_MOST ((size_t)1 << 28) /* bytes of a message after decompression */

struct carrier *carrier_open(const char *url, char error[256])
{
    if (strncmp(url, "file:", 5) == 0 && url[5])
        return carrier_folder_open(url + 5, error);
    if (strncmp(url, "redis://", 8) == 0 || strncmp(url, "rediss://", 9) == 0 ||
        strncmp(url, "redis+unix://", 13) == 0) {
#ifdef TAMIS_HAVE_HIREDIS
        return carrier_redis_open(url, error);
#else
        snprintf(error, 256, "built without hiredis, which Redis needs");
        return NULL;
#endif
    }
    if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) {
#ifdef TAMIS_HAVE_CURL
        return carrier_http_open(url, error);
#else
        snprintf(error, 256, "built without libcurl, which web servers need");
        return NULL;
#endif
    }
    snprintf(
        error, 256,
        "not an address: give redis://HOST:PORT/NAME or file:FOLDER (or, to follow, https://)");
    return NULL;
}

void carrier_close(struct carrier *c)
{
    if (c)
        c->kind->close(c);
}

static bool may_send(struct carrier *c)
{
    if (c->kind->send)
        return true;
    c->hopeless = true;
    return carrier_fail(c,
                        "web servers can only be followed: publish to file:FOLDER and serve that");
}

bool carrier_send(struct carrier *c, const char *owner, const void *data, size_t len)
{
    return may_send(c) && c->kind->send(c, owner, data, len);
}

/* ---- compression ----------------------------------------------------------------------------- */

#ifdef TAMIS_HAVE_ZSTD
/* A filter that is less than half full shrinks to about a third; a full one hardly shrinks and is sent as it is. */
static struct carrier_part pack(struct carrier_part part)
{
    size_t room = part.len - part.len / 8;
    void *to = part.len <= UNPACKED_MOST ? malloc(room + 1) : NULL;
    size_t len = to ? ZSTD_compress(to, room, part.data, part.len, 1) : 0;
    if (len && !ZSTD_isError(len))
        return (struct carrier_part){to, len};
    free(to);
    return part;
}

void carrier_deliver(carrier_take take, void *context, const char *owner, const void *data,
                     size_t len, uint64_t age)
{
    static const uint8_t magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
    bool packed = len > sizeof magic && memcmp(data, magic, sizeof magic) == 0;
    unsigned long long room = packed ? ZSTD_getFrameContentSize(data, len) : 0;
    void *to = packed && room <= UNPACKED_MOST ? malloc((size_t)room + 1) : NULL;
    size_t made = to ? ZSTD_decompress(to, (size_t)room, data, len) : 0;
    if (to && !ZSTD_isError(made))
        take(context, owner, to, made, age);
    else
        take(context, owner, data, len, age); /* if it is damaged, the receiver refuses it */
    free(to);
}
#else
static struct carrier_part pack(struct carrier_part part)
{
    return part;
}

void carrier_deliver(carrier_take take, void *context, const char *owner, const void *data,
                     size_t len, uint64_t age)
{
    take(context, owner, data, len, age);
}
#endif

bool carrier_replace(struct carrier *c, const char *owner, uint64_t epoch,
                     const struct carrier_part *parts, size_t n)
{
    if (!may_send(c))
        return false;
    struct carrier_part *packed = calloc(n + 1, sizeof *packed);
    if (!packed)
        return carrier_fail(c, "out of memory");
    for (size_t i = 0; i < n; i++)
        packed[i] = pack(parts[i]);
    bool good = c->kind->replace(c, owner, epoch, packed, n);
    for (size_t i = 0; i < n; i++)
        if (packed[i].data != parts[i].data)
            free((void *)(uintptr_t)packed[i].data);
    free(packed);
    return good;
}

bool carrier_state(struct carrier *c, const char *owner, struct carrier_state *state)
{
    *state = (struct carrier_state){0};
    return may_send(c) && c->kind->state(c, owner, state);
}

bool carrier_advance(struct carrier *c, const char *owner)
{
    return may_send(c) && c->kind->advance(c, owner);
}

bool carrier_retire(struct carrier *c, const char *owner, bool forget)
{
    return may_send(c) && c->kind->retire(c, owner, forget);
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

bool carrier_owners(struct carrier *c, carrier_each each, void *context)
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

bool carrier_yields(struct carrier *c, const char *owner, const struct carrier_state *state,
                    uint64_t epoch)
{
    return !state->there || state->epoch <= epoch ||
           carrier_fail(c, "another origin publishes as %.100s", owner);
}

uint64_t carrier_clock(void)
{
    return clock_steady(NULL);
}

uint64_t carrier_now(void)
{
    return carrier_clock() / 1000000;
}

uint64_t carrier_since(uint64_t clock, uint64_t now)
{
    return clock && clock <= now ? now - clock : AGE_UNKNOWN;
}

void carrier_sleep(uint64_t milliseconds)
{
    struct timespec time = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000};
    nanosleep(&time, NULL); /* may end early, by a signal */
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
