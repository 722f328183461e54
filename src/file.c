/* Files: the only place that knows POSIX, but for the pages of mem.c. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "format.h"
#include "replica.h"

#define RANDOM_FROM \
    ((size_t)64 << 20) /* a mapped file of this size is read where it is asked only */
#define LINKS_MAX 40

/* ---- errors and names ------------------------------------------------------------------------ */

/* A reason has room for 200 letters: of a long path its end is shown. */
static const char *shown(const char *path)
{
    size_t len = strlen(path);
    return len > 110 ? path + len - 110 : path;
}

tamis_error file_fail(tamis_reason *reason, int error, const char *path, const char *doing)
{
    tamis_error e = error == ENOMEM ? TAMIS_ENOMEM : TAMIS_EIO;
    char text[80];
    const char *why = strerror_r(error, text, sizeof text) == 0 ? text : "unknown error";
    fail(reason, e, "%s%s%s: %s", doing, *doing ? " " : "", shown(path), why);
    if (reason)
        reason->system_error = error;
    return e;
}

tamis_error file_named(tamis_reason *reason, tamis_error e, const char *path)
{
    if (reason && e != TAMIS_OK) {
        char text[sizeof reason->text];
        memcpy(text, reason->text, sizeof text);
        uint64_t offset = reason->offset;
        fail_at(reason, e, offset, "%s: %s", shown(path), text);
    }
    return e;
}

bool file_resolve(char out[PATH_MAX], const char *path)
{
    size_t len = strlen(path);
    if (len == 0 || len >= PATH_MAX) {
        errno = len ? ENAMETOOLONG : ENOENT;
        return false;
    }
    memcpy(out, path, len + 1);
    for (int i = 0; i < LINKS_MAX; i++) {
        char target[PATH_MAX];
        ssize_t n = readlink(out, target, sizeof target - 1);
        if (n < 0)
            return errno == EINVAL || errno == ENOENT; /* no link, or nothing yet: the end */
        target[n] = 0;
        char *slash = strrchr(out, '/');
        size_t folder = target[0] == '/' || !slash ? 0 : (size_t)(slash - out) + 1;
        if (folder + (size_t)n >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(out + folder, target, (size_t)n + 1);
    }
    errno = ELOOP;
    return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

static tamis_error map_fd(struct mapping *out, int fd, const char *path, tamis_reason *reason)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return file_fail(reason, errno, path, "");
    if (S_ISDIR(st.st_mode))
        return file_fail(reason, EISDIR, path, "");
    if (!S_ISREG(st.st_mode))
        return fail(reason, TAMIS_EIO, "%s: not a regular file", path);
    if (st.st_size == 0)
        return fail(reason, TAMIS_EFORMAT, "%s: the file is empty", path);
    if ((uint64_t)st.st_size > SIZE_MAX / 2)
        return fail(reason, TAMIS_ELIMIT, "%s: too large to map", path);
    out->len = (size_t)st.st_size;
    out->data = mmap(NULL, out->len, PROT_READ, MAP_SHARED, fd, 0);
    if ((const void *)out->data == MAP_FAILED)
        return file_fail(reason, errno, path, "mapping");
    return TAMIS_OK;
}

tamis_error file_map(struct mapping *out, const char *path, tamis_reason *reason)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return file_fail(reason, errno, path, "");
    tamis_error e = map_fd(out, fd, path, reason);
    close(fd);
    return e;
}

/* What is left to do once something was, or was not, made of a mapped file that it keeps. */
static tamis_error mapped(struct mapping *mapping, tamis_error e, const char *path,
                          tamis_reason *reason)
{
    if (e != TAMIS_OK)
        mapping_free(mapping);
    else if (mapping->len >= RANDOM_FROM)
        madvise((void *)(uintptr_t)mapping->data, mapping->len, MADV_RANDOM);
    return file_named(reason, e, path);
}

/* To be read from end to end, and let go. */
static tamis_error map_to_read(struct mapping *mapping, const char *path, tamis_reason *reason)
{
    tamis_error e = file_map(mapping, path, reason);
    if (e == TAMIS_OK)
        madvise((void *)(uintptr_t)mapping->data, mapping->len, MADV_SEQUENTIAL);
    return e;
}

static tamis_error was_read(struct mapping *mapping, tamis_error e, const char *path,
                            tamis_reason *reason)
{
    mapping_free(mapping);
    return file_named(reason, e, path);
}

tamis_error tamis_filter_open(tamis_filter **out, const char *path,
                              const tamis_open_options *options, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, reason);
    return e == TAMIS_OK
               ? mapped(&mapping, filter_from_mapping(out, mapping, options, reason), path, reason)
               : e;
}

tamis_error tamis_filter_load(tamis_filter **out, const char *path,
                              const tamis_open_options *options, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = map_to_read(&mapping, path, reason);
    if (e != TAMIS_OK)
        return e;
    e = tamis_filter_decode(out, mapping.data, mapping.len, options, reason);
    return was_read(&mapping, e, path, reason);
}

tamis_error tamis_index_open(tamis_index **out, const char *path, const tamis_open_options *options,
                             tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, reason);
    return e == TAMIS_OK
               ? mapped(&mapping, index_from_mapping(out, mapping, options, reason), path, reason)
               : e;
}

tamis_error tamis_index_load(tamis_index **out, const char *path, const tamis_open_options *options,
                             tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = map_to_read(&mapping, path, reason);
    if (e != TAMIS_OK)
        return e;
    e = tamis_index_decode(out, mapping.data, mapping.len, options, reason);
    return was_read(&mapping, e, path, reason);
}

tamis_error tamis_catalog_open(tamis_catalog **out, const char *path,
                               const tamis_open_options *options, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, reason);
    return e == TAMIS_OK
               ? mapped(&mapping, catalog_from_mapping(out, mapping, options, reason), path, reason)
               : e;
}

tamis_error tamis_file_kind(const char *path, tamis_kind *kind, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, reason);
    if (e != TAMIS_OK)
        return e;
    *kind = tamis_kind_of(mapping.data, mapping.len);
    mapping_free(&mapping);
    return TAMIS_OK;
}

tamis_error tamis_file_verify(const char *path, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = map_to_read(&mapping, path, reason);
    if (e != TAMIS_OK)
        return e;
    tamis_kind kind = tamis_kind_of(mapping.data, mapping.len);
    e = kind == TAMIS_KIND_PATCH     ? patch_verify(mapping.data, mapping.len, reason)
        : kind == TAMIS_KIND_INDEX   ? index_verify(mapping.data, mapping.len, reason)
        : kind == TAMIS_KIND_CATALOG ? catalog_verify(mapping, true, reason)
        : kind == TAMIS_KIND_MESSAGE ? message_verify(mapping.data, mapping.len, reason)
                                     : filter_verify(mapping.data, mapping.len, reason);
    return was_read(&mapping, e, path, reason);
}
