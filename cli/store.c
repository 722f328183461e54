/* Filters in files. See store.h. */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

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
    if (!good)
        complain("not a key: %s: a key is 16 bytes or 32 hexadecimal digits", path);
    return good;
}

/* ---- opening --------------------------------------------------------------------------------- */

typedef tamis_error open_fn(tamis_filter **, const char *, const tamis_open_options *,
                            tamis_reason *);

static tamis_filter *open_with(open_fn *open_file, const char *path,
                               const struct store_options *options)
{
    uint8_t key[TAMIS_KEY_LEN];
    tamis_open_options o = {.verify = options->verify, .clock = store_clock};
    tamis_reason reason = {0};
    tamis_filter *filter;
    if (options->key_file) {
        if (!store_read_key(options->key_file, key))
            return NULL;
        o.key = key;
    }
    tamis_error e = open_file(&filter, path, &o, &reason);
    if (e == TAMIS_OK)
        return filter;
    complain_of(e, &reason, path);
    return NULL;
}

tamis_filter *store_open(const char *path, const struct store_options *options)
{
    return open_with(tamis_filter_open, path, options);
}

tamis_filter *store_load(const char *path, const struct store_options *options)
{
    return open_with(tamis_filter_load, path, options);
}

tamis_filter *store_whole(const char *path, const struct store_options *options)
{
    tamis_filter *filter = store_open(path, options);
    tamis_info info = {0};
    if (filter)
        tamis_filter_info(filter, &info);
    if (!info.deletable || info.bits_only)
        return filter;
    tamis_filter_free(filter);
    return store_load(path, options);
}

/* ---- changing -------------------------------------------------------------------------------- */

bool store_lock(struct store *store, const char *path, const struct store_options *options)
{
    tamis_open_options o = {.wait = !options->no_wait};
    tamis_reason reason = {0};
    *store = (struct store){.path = path};
    tamis_error e = tamis_file_lock(&store->lock, path, &o, &reason);
    if (e != TAMIS_OK)
        complain_of(e, &reason, path);
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

bool store_save(const struct store *store, unsigned save_flags)
{
    tamis_reason reason = {0};
    tamis_error e = tamis_filter_save(store->filter, store->path, save_flags, &reason);
    if (e != TAMIS_OK)
        complain_of(e, &reason, store->path);
    return e == TAMIS_OK;
}

void store_end(struct store *store)
{
    tamis_filter_free(store->filter);
    if (store->lock)
        tamis_file_unlock(store->lock);
    *store = (struct store){0};
}

/* ---- telling --------------------------------------------------------------------------------- */

static void report_vectors(const tamis_filter *filter)
{
    static const struct report_column columns[] = {
        {"bits", "bits"},   {"hashes", "hashes"}, {"capacity", "capacity"},
        {"items", "items"}, {"ones", "ones"},     {"fpp", "fpp"},
    };
    tamis_vector_info v;
    report_table("vector_list", "vectors, oldest first", columns, COUNT(columns));
    for (uint32_t i = 0; tamis_filter_vector(filter, i, &v); i++) {
        const double row[] = {(double)v.bits,  (double)v.hashes, (double)v.capacity,
                              (double)v.items, (double)v.ones,   v.fpp};
        report_row(row);
    }
    report_table_end();
}

void store_report(const tamis_filter *filter, bool json, bool all)
{
    static const char *const growths[] = {"", "fixed", "dynamic", "scalable", "flexible", "window"};
    static const char *const layouts[] = {"", "spread", "blocked"};
    static const char *const hashes[] = {"", "xxh3", "sip", "h3"};
    tamis_info i;
    tamis_filter_info(filter, &i);
    report_open(json);
    report_text("kind", "kind", "filter");
    report_text("growth", "growth", growths[i.growth]);
    report_text("layout", "layout", layouts[i.layout]);
    report_text("hash", "hash", hashes[i.hash]);
    report_flag("deletable", "deletable", i.deletable);
    report_flag("unique", "unique", i.unique);
    report_flag("bits_only", "bits only", i.bits_only);
    report_flag("has_key", "key stored", i.has_key);
    report_count("items", "items", i.items);
    report_real("distinct", "distinct (estimated)",
                json ? i.distinct : (double)(uint64_t)(i.distinct + 0.5));
    report_count("capacity", "capacity", i.capacity);
    report_size("bytes", "bytes", i.bytes);
    report_count("bits", "bits", i.bits);
    report_count("vectors", "vectors", i.vectors);
    report_count("hashes", "hashes (most)", i.hashes);
    report_count("pending", "pending removals", i.pending);
    report_rate("fpp", "fpp (stated)", i.fpp);
    report_rate("fpp_now", "fpp now (estimated)", i.fpp_now);
    report_rate("fill", "fill", i.fill);
    if (all)
        report_vectors(filter);
    report_close();
}
