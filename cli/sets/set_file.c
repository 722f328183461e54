/* Filters and indexes in files. See set_file.h. */
#include "set_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t store_clock(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool store_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool store_read_key(const char *path, uint8_t key[TAMIS_KEY_LEN])
{
    char text[2 * TAMIS_KEY_LEN + 8];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (len < 0)
        return complain("%s: %s: give a readable key file", strerror(error), path), false;
    if (len == TAMIS_KEY_LEN) {
        memcpy(key, text, TAMIS_KEY_LEN);
        explicit_bzero(text, sizeof text);
        return true;
    }
    while (len > 2 * TAMIS_KEY_LEN && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    bool good = len == 2 * TAMIS_KEY_LEN;
    for (int i = 0; good && i < TAMIS_KEY_LEN; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        good = high >= 0 && low >= 0;
        key[i] = (uint8_t)(high * 16 + low);
    }
    explicit_bzero(text, sizeof text);
    if (!good)
        complain("not a key: %s: a key is 16 bytes or 32 hexadecimal digits", path);
    return good;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* How files are opened; complains. */
struct opening {
    tamis_open_options options;
    uint8_t key[TAMIS_KEY_LEN];
    tamis_reason reason;
};

static bool opening_make(struct opening *o, const struct store_options *options)
{
    *o = (struct opening){.options = {.verify = options->verify, .clock = store_clock}};
    if (options->key_file) {
        if (!store_read_key(options->key_file, o->key))
            return false;
        o->options.key = o->key;
    }
    return true;
}

static tamis_filter *get_filter(const char *path, const struct store_options *options, bool mapped)
{
    struct opening o;
    tamis_filter *filter;
    if (!opening_make(&o, options))
        return NULL;
    mapped_name = path;
    tamis_error e = mapped ? tamis_filter_open(&filter, path, &o.options, &o.reason)
                           : tamis_filter_load(&filter, path, &o.options, &o.reason);
    explicit_bzero(o.key, sizeof o.key);
    if (e == TAMIS_OK)
        return filter;
    complain_of(e, &o.reason, path);
    return NULL;
}

static tamis_records *get_index(const char *path, const struct store_options *options, bool mapped)
{
    struct opening o;
    tamis_records *index;
    if (!opening_make(&o, options))
        return NULL;
    mapped_name = path;
    tamis_error e = mapped ? tamis_records_open(&index, path, &o.options, &o.reason)
                           : tamis_records_load(&index, path, &o.options, &o.reason);
    explicit_bzero(o.key, sizeof o.key);
    if (e == TAMIS_OK)
        return index;
    complain_of(e, &o.reason, path);
    return NULL;
}

tamis_filter *store_open(const char *path, const struct store_options *options)
{
    return get_filter(path, options, true);
}

tamis_filter *store_load(const char *path, const struct store_options *options)
{
    return get_filter(path, options, false);
}

bool store_get(struct store *store, const char *path, const struct store_options *options,
               bool mapped)
{
    tamis_kind kind = TAMIS_KIND_NONE;
    tamis_reason reason = {0};
    tamis_error e = tamis_file_kind(path, &kind, &reason);
    if (e != TAMIS_OK)
        return complain_of(e, &reason, path), false;
    if (kind == TAMIS_KIND_RECORDS)
        store->index = get_index(path, options, mapped);
    else
        store->filter = get_filter(path, options, mapped);
    return store->index || store->filter;
}

bool store_ask(struct store *store, const char *path, const struct store_options *options)
{
    *store = (struct store){.path = path};
    return store_get(store, path, options, true);
}

tamis_records *store_whole_index(const char *path, const struct store_options *options)
{
    tamis_records *index = get_index(path, options, true);
    tamis_records_facts info = {0};
    if (index)
        tamis_records_info(index, &info);
    if (!info.deletable || info.bits_only)
        return index;
    tamis_records_free(index);
    return get_index(path, options, false);
}

tamis_filter *store_whole(const char *path, const struct store_options *options)
{
    tamis_filter *filter = store_open(path, options);
    tamis_filter_facts info = {0};
    if (filter)
        tamis_filter_info(filter, &info);
    if (!info.deletable || info.bits_only)
        return filter;
    tamis_filter_free(filter);
    return store_load(path, options);
}

/* ---- changing -------------------------------------------------------------------------------- */

/* A lock that is there and cannot be had, as another user's may be, is what stands in the way. */
static void complain_of_lock(tamis_error e, const tamis_reason *reason, const char *path)
{
    char lock[PATH_MAX];
    int len = snprintf(lock, sizeof lock, "%s.lock", path);
    bool there = reason->system_error && len < (int)sizeof lock && store_exists(lock);
    if (there)
        complain("%s: %s: remove it if no other tamis is at work", strerror(reason->system_error),
                 lock);
    else
        complain_of(e, reason, path);
}

bool store_lock(struct store *store, const char *path, const struct store_options *options)
{
    tamis_open_options o = {.wait = !options->no_wait};
    tamis_reason reason = {0};
    *store = (struct store){.path = path};
    tamis_error e = tamis_file_lock(&store->lock, path, &o, &reason);
    if (e != TAMIS_OK)
        complain_of_lock(e, &reason, path);
    return e == TAMIS_OK;
}

bool store_begin(struct store *store, const char *path, const struct store_options *options)
{
    if (!store_lock(store, path, options))
        return false;
    store->filter = store_load(path, options);
    if (!store->filter)
        store_end(store);
    return store->filter != NULL;
}

bool store_change(struct store *store, const char *path, const struct store_options *options)
{
    bool good = store_lock(store, path, options) && store_get(store, path, options, false);
    if (!good)
        store_end(store);
    return good;
}

bool store_save(const struct store *store, unsigned save_flags)
{
    tamis_reason reason = {0};
    tamis_error e = store->index
                        ? tamis_records_save(store->index, store->path, save_flags, &reason)
                        : tamis_filter_save(store->filter, store->path, save_flags, &reason);
    if (e != TAMIS_OK)
        complain_of(e, &reason, store->path);
    return e == TAMIS_OK;
}

void store_end(struct store *store)
{
    tamis_filter_free(store->filter);
    tamis_records_free(store->index);
    if (store->lock)
        tamis_file_unlock(store->lock);
    *store = (struct store){0};
}
