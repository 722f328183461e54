/* Values: memory of the server's allocator, the clock of the present command, and bytes that come
   from anywhere. */
#include "module.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* ---- memory ---------------------------------------------------------------------------------- */

static void *server_alloc(void *context, size_t size)
{
    (void)context;
    return rm.TryAlloc(size);
}

static void server_free(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    rm.Free(memory);
}

const tamis_allocator value_allocator = {server_alloc, server_free, NULL};

bool buffer_add(struct buffer *b, const void *data, size_t len)
{
    if (len > SIZE_MAX / 4 - b->len)
        return false;
    if (b->len + len > b->room) {
        size_t room = b->len + len + (b->len + len) / 4 + 64;
        char *grown = rm.TryAlloc(room);
        if (!grown)
            return false;
        if (b->len)
            memcpy(grown, b->data, b->len);
        rm.Free(b->data);
        b->data = grown;
        b->room = room;
    }
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return true;
}

void buffer_free(struct buffer *b)
{
    rm.Free(b->data);
    *b = (struct buffer){0};
}

/* ---- the clock ------------------------------------------------------------------------------- */

static uint64_t moment; /* commands run one at a time, in one thread */

void time_of_command(uint64_t at)
{
    struct timespec now = {0};
    if (at == 0)
        clock_gettime(CLOCK_REALTIME, &now);
    moment = at ? at : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t value_clock(void *unused)
{
    (void)unused;
    return moment;
}

/* ---- values ---------------------------------------------------------------------------------- */

static atomic_ullong values; /* the server frees large ones in a thread of its own */

unsigned long long value_count(void)
{
    return values;
}

struct value *value_new(enum kind kind, tamis_filter *filter)
{
    struct value *v = rm.TryAlloc(sizeof *v);
    if (!v) {
        tamis_filter_free(filter);
        return NULL;
    }
    *v = (struct value){.kind = kind, .filter = filter};
    if (filter) {
        tamis_info info;
        tamis_filter_brief(filter, &info);
        v->growth = info.growth;
        v->deletable = info.deletable;
        v->limit = info.memory_limit;
    }
    values++;
    return v;
}

void value_free(struct value *v)
{
    if (!v)
        return;
    tamis_filter_free(v->filter);
    buffer_free(&v->bytes);
    rm.Free(v);
    values--;
}

struct value *value_copy(const struct value *v)
{
    tamis_filter *filter = NULL;
    if (v->filter && tamis_filter_clone(&filter, v->filter) != TAMIS_OK)
        return NULL;
    struct value *copy = value_new(v->kind, filter);
    if (copy && v->kind == KIND_PARTIAL) {
        copy->total = v->total;
        if (!buffer_add(&copy->bytes, v->bytes.data, v->bytes.len)) {
            value_free(copy);
            return NULL;
        }
    }
    return copy;
}

size_t value_bytes(const struct value *v)
{
    size_t bytes = sizeof *v + v->bytes.room;
    if (v->filter) {
        tamis_info info;
        tamis_filter_brief(v->filter, &info);
        bytes += (size_t)info.bytes;
    }
    return bytes;
}

/* The one entrance for bytes. A structure saved without its key may belong to this server's family. */
tamis_error value_decode(struct value **out, const void *data, size_t len, tamis_reason *reason)
{
    tamis_open_options options = {.clock = value_clock, .allocator = &value_allocator};
    tamis_filter *filter = NULL;
    tamis_error e = tamis_filter_decode(&filter, data, len, &options, reason);
    if (e == TAMIS_EKEY) {
        options.key = server.key;
        e = tamis_filter_decode(&filter, data, len, &options, reason);
    }
    if (e != TAMIS_OK)
        return e;
    *out = value_new(KIND_FILTER, filter);
    return *out ? TAMIS_OK : TAMIS_ENOMEM;
}
