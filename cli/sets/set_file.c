/* Filters and records in files. See set_file.h. */
#define _GNU_SOURCE
#include "set_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ui/growing.h"

bool store_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

bool store_read_key(const char *path, uint8_t key[TAMIS_KEY_LEN])
{
    char text[2 * TAMIS_KEY_LEN + 8];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    fd_close(&fd);
    if (len < 0)
        return refuse("%s: %s: give a readable key file", strerror(errno), path);
    if (len == TAMIS_KEY_LEN) {
        memcpy(key, text, TAMIS_KEY_LEN);
        explicit_bzero(text, sizeof text);
        return true;
    }
    while (len > 2 * TAMIS_KEY_LEN && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    bool good = len == 2 * TAMIS_KEY_LEN && hex_bytes(key, text, TAMIS_KEY_LEN);
    explicit_bzero(text, sizeof text);
    if (!good)
        complain("not a key: %s: a key is 16 bytes or 32 hexadecimal digits", path);
    return good;
}

/* ---- opening --------------------------------------------------------------------------------- */

bool store_open(const struct store_options *options, const char *path, uint8_t key[TAMIS_KEY_LEN],
                tamis_open_options *out)
{
    *out = (tamis_open_options){.verify = options->verify, .key = options->key_file ? key : NULL};
    mapped_name = path;
    return !options->key_file || store_read_key(options->key_file, key);
}

struct set *store_read(const char *path, tamis_kind kind, enum store_how how,
                       const struct store_options *options)
{
    WIPED_KEY key[TAMIS_KEY_LEN];
    tamis_open_options o;
    tamis_reason reason = {0};
    tamis_filter_facts facts;
    struct set *set = NULL;
    if (!store_open(options, path, key, &o))
        return NULL;
    tamis_error e =
        (how == STORE_LOAD ? set_file_load : set_file_open)(&set, kind, path, &o, &reason);
    if (e == TAMIS_OK && how == STORE_WHOLE) {
        set_brief(set, &facts);
        if (facts.deletable && !facts.bits_only) {
            set_free(set);
            e = set_file_load(&set, kind, path, &o, &reason);
        }
    }
    return succeeded(e, &reason, path) ? set : NULL;
}

bool store_ask(struct store *store, const char *path, const struct store_options *options)
{
    *store = (struct store){path, NULL, store_read(path, TAMIS_KIND_NONE, STORE_ASK, options)};
    return store->set != NULL;
}

/* ---- changing -------------------------------------------------------------------------------- */

/* A lock file that exists but cannot be opened, such as another user's, is the obstacle. */
static void complain_of_lock(tamis_error e, const tamis_reason *reason, const char *path)
{
    char lock[PATH_MAX];
    int len = snprintf(lock, sizeof lock, "%s.lock", path);
    bool there = reason->system_error && len < (int)sizeof lock && store_exists(lock);
    if (there)
        complain("%s: %s: remove it if no other tamis is running", strerror(reason->system_error),
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

/* Changes that a killed tamis publish left apply to the file in its present state. */
static bool nothing_waits(const char *path, const struct store_options *options)
{
    char log[PATH_MAX];
    if (options->replays || snprintf(log, sizeof log, "%s.changes", path) >= (int)sizeof log ||
        !store_exists(log))
        return true;
    return refuse("it has changes of a tamis publish that was killed: %s: publish the file again "
                  "first, or remove it",
                  log);
}

bool store_change(struct store *store, const char *path, tamis_kind kind,
                  const struct store_options *options)
{
    if (!store_lock(store, path, options))
        return false;
    store->set = nothing_waits(path, options) ? store_read(path, kind, STORE_LOAD, options) : NULL;
    if (store->set)
        return true;
    store_end(store);
    return false;
}

bool store_save(const struct store *store, unsigned save_flags)
{
    tamis_reason reason = {0};
    tamis_error e = set_file_save(store->set, store->path, save_flags, &reason);
    return succeeded(e, &reason, store->path);
}

int store_finish(const struct store *store, unsigned save_flags, bool json)
{
    if (!store_save(store, save_flags))
        return TROUBLE;
    if (json)
        store_report(store, true, false);
    return FOUND;
}

bool store_may_make(const char *path, bool force)
{
    return force || !store_exists(path) ||
           refuse("the file exists: %s: give another name, or --force", path);
}

void store_end(struct store *store)
{
    set_free(store->set);
    if (store->lock)
        tamis_file_unlock(store->lock);
    *store = (struct store){0};
}

/* ---- catalogs -------------------------------------------------------------------------------- */

bool catalog_beside(const char *input, char **path)
{
    size_t len = strlen(input);
    while (len > 1 && input[len - 1] == '/')
        len--;
    const char *last = memrchr(input, '/', len);
    last = last ? last + 1 : input;
    size_t name = (size_t)(input + len - last);
    *path = NULL;
    if (last[0] == '.' && (name == 1 || (name == 2 && last[1] == '.'))) { /* the name is above it */
        char *real = realpath(input, NULL);
        bool named = real && real[1] && catalog_beside(real, path);
        free(real);
        return named;
    }
    if (name == 0)
        return false;
    if (asprintf(path, "%.*s.tamis", (int)len, input) < 0)
        *path = NULL;
    return true;
}

static bool is_structure(const char *path)
{
    tamis_kind kind = TAMIS_KIND_NONE;
    return tamis_file_kind(path, &kind, NULL) == TAMIS_OK && kind != TAMIS_KIND_NONE;
}

/* A catalog by its name, or one that is damaged. */
static bool names_catalog(const char *operand, const struct stat *st)
{
    size_t len = strlen(operand);
    bool suffixed = len > 6 && strcmp(operand + len - 6, ".tamis") == 0;
    return suffixed || !S_ISREG(st->st_mode) || is_structure(operand);
}

char *catalog_meant(const char *operand)
{
    struct stat st;
    char *path = NULL;
    bool there = stat(operand, &st) == 0;
    if (there ? !S_ISDIR(st.st_mode) && names_catalog(operand, &st) : errno != ENOENT)
        return strdup(operand);
    bool named = catalog_beside(operand, &path);
    if (path && store_exists(path))
        return path;
    if (!named)
        refuse("no catalog: %s: give the one that was made of it with -o", operand);
    else if (!path)
        no_memory(operand);
    else if (there)
        refuse("no catalog: %s: make it with tamis index %s", path, operand);
    else
        refuse("no catalog: %s: give one first, made by tamis index, or what it was made of",
               operand);
    free(path);
    return NULL;
}
