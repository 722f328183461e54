/* Files: the only place that knows POSIX, but for the pages of mem.c. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "format/format.h"
#include "format/pieces.h"
#include "replica/replica.h"

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

void file_why(int error, char text[80])
{
    const char *own = error == ENXIO   ? "not a regular file"
                      : error == ELOOP ? "a symbolic link, or too many of them"
                                       : NULL;
    if (own || strerror_r(error, text, 80) != 0)
        snprintf(text, 80, "%s", own ? own : "unknown error");
}

tamis_error file_fail(tamis_reason *reason, int error, const char *path, const char *doing)
{
    tamis_error e = error == ENOMEM ? TAMIS_ENOMEM : TAMIS_EIO;
    char why[80];
    file_why(error, why);
    fail(reason, e, "%s%s%s: %s", doing, *doing ? " " : "", shown(path), why);
    if (reason)
        reason->system_error = error == ENXIO ? 0 : error; /* its text would mislead */
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

int file_open(const char *path, bool links, struct stat *st)
{
    struct stat own = {0};
    st = st ? st : &own;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (links ? 0 : O_NOFOLLOW));
    if (fd < 0)
        return -1;
    int error = fstat(fd, st) != 0     ? errno
                : S_ISREG(st->st_mode) ? 0
                : S_ISDIR(st->st_mode) ? EISDIR
                                       : ENXIO; /* as the system says of a socket */
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* Pages of a private mapping that were written to are the process's own: nobody changes them. So the
   first `len` bytes are as they are now. */
static bool keep(struct mapping *m, size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), end = (len + page - 1) / page * page;
    volatile uint8_t *front = (uint8_t *)(uintptr_t)m->data;
    if (mprotect((void *)(uintptr_t)m->data, end, PROT_READ | PROT_WRITE) != 0)
        return false;
    for (size_t at = m->kept; at < end; at += page) {
        uint8_t byte = front[at];
        front[at] = byte;
    }
    m->kept = end < m->len ? end : m->len;
    return mprotect((void *)(uintptr_t)m->data, end, PROT_READ) == 0;
}

/* The first page says how long the header is; then all of it is kept. */
static bool map_fd(struct mapping *out, int fd)
{
    uint64_t total, header;
    out->kept = 0;
    out->data = mmap(NULL, out->len, PROT_READ, MAP_PRIVATE, fd, 0);
    if ((const void *)out->data == MAP_FAILED)
        return false;
    bool kept = keep(out, 1);
    if (kept && prefix_lengths(out->data, out->len, &total, &header) && header <= out->len)
        kept = keep(out, (size_t)header);
    int error = errno;
    if (!kept)
        munmap((void *)(uintptr_t)out->data, out->len);
    errno = error;
    return kept;
}

/* All of it into memory: whatever becomes of the file, the bytes stay. */
static bool read_fd(struct mapping *out, int fd)
{
    struct spill file = {.fd = fd};
    void *own = mmap(NULL, out->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED)
        return false;
    int error = spill_read(&file, own, out->len, 0); /* EIO: it became shorter */
    if (error)
        munmap(own, out->len);
    out->data = own;
    out->kept = out->len;
    errno = error;
    return error == 0;
}

static tamis_error open_and_map(struct mapping *out, int *fd, const char *path, bool read,
                                tamis_reason *reason)
{
    struct stat st;
    *fd = file_open(path, true, &st);
    if (*fd < 0)
        return file_fail(reason, errno, path, "");
    out->len = (size_t)st.st_size;
    if (st.st_size == 0)
        return fail(reason, TAMIS_EFORMAT, "%s: the file is empty", path);
    if ((uint64_t)st.st_size > SIZE_MAX / 2)
        return fail(reason, TAMIS_ELIMIT, "%s: too large to map", path);
    if (read ? !read_fd(out, *fd) : !map_fd(out, *fd))
        return file_fail(reason, errno, path, read ? "reading" : "mapping");
    return TAMIS_OK;
}

tamis_error file_map(struct mapping *out, const char *path, bool read, tamis_reason *reason)
{
    int fd;
    tamis_error e = open_and_map(out, &fd, path, read, reason);
    if (fd >= 0)
        close(fd);
    return e;
}

/* What something is made of that keeps it, and what is left to do once it was made, or not. */
static tamis_error map_to_keep(struct mapping *mapping, const char *path,
                               const tamis_open_options *options, tamis_reason *reason)
{
    return file_map(mapping, path, options && options->read, reason);
}

static tamis_error mapped(struct mapping *mapping, tamis_error e, const char *path,
                          tamis_reason *reason)
{
    if (e != TAMIS_OK)
        mapping_free(mapping);
    else if (mapping->len - mapping->kept >= RANDOM_FROM)
        madvise((void *)(uintptr_t)mapping->data, mapping->len, MADV_RANDOM);
    return file_named(reason, e, path);
}

/* To be let go afterwards. */
static tamis_error was_read(struct mapping *mapping, tamis_error e, const char *path,
                            tamis_reason *reason)
{
    mapping_free(mapping);
    return file_named(reason, e, path);
}

/* What is checked is what was read, once; and there is no second copy of it. */
static tamis_error load_pieces(struct whole *out, int fd, uint64_t total,
                               const tamis_open_options *options, tamis_reason *reason)
{
    struct spill file = {.fd = fd};
    struct pieces_in *in = pieces_in_begin(total, UINT64_MAX, options);
    uint8_t *buffer = mem_new(&mem_system, 1, CHUNK);
    tamis_error e = in && buffer ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory for it");
    for (uint64_t at = 0, n; e == TAMIS_OK && at < total; at += n) {
        n = min_u64(CHUNK, total - at);
        int error = spill_read(&file, buffer, (size_t)n, at); /* EIO: it became shorter */
        e = error ? fail(reason, TAMIS_EIO, "it could not be read to its end")
                  : pieces_in_add(in, buffer, (size_t)n, reason);
    }
    if (e == TAMIS_OK)
        e = pieces_in_end(in, out, reason);
    mem_free_secret(&mem_system, buffer, 1, CHUNK);
    pieces_in_free(in);
    return e;
}

/* The header alone is mapped: what it is, and what is wrong with it, is said before it is read. */
static tamis_error load_whole(struct whole *out, enum kind kind, const char *path,
                              const tamis_open_options *options, tamis_reason *reason)
{
    struct mapping front = {0};
    struct container c;
    uint8_t key[TAMIS_KEY_LEN];
    int fd;
    *out = (struct whole){0};
    tamis_error e = open_and_map(&front, &fd, path, false, reason);
    if (e == TAMIS_OK) {
        e = container_open(&c, front.data, front.len, kind, reason);
        if (e == TAMIS_OK)
            e = container_key(&c, options ? options->key : NULL, key, reason);
        if (e == TAMIS_OK)
            e = load_pieces(out, fd, front.len, options, reason);
        if (e == TAMIS_OK && (kind == KIND_FILTER ? !out->filter : !out->index))
            e = fail(reason, TAMIS_EKIND, "it became another kind while it was read");
        if (e != TAMIS_OK) {
            tamis_filter_free(out->filter);
            tamis_index_free(out->index);
        }
        e = was_read(&front, e, path, reason);
    }
    if (fd >= 0)
        close(fd);
    return e;
}

static tamis_error set_open_file(struct set **out, enum kind kind, const char *path,
                                 const tamis_open_options *options, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = map_to_keep(&mapping, path, options, reason);
    if (e != TAMIS_OK)
        return e;
    e = set_from_mapping(out, kind, mapping, options, reason);
    return mapped(&mapping, e, path, reason);
}

tamis_error tamis_filter_open(tamis_filter **out, const char *path,
                              const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    tamis_error e = set_open_file(&s, KIND_FILTER, path, options, reason);
    if (e == TAMIS_OK)
        *out = as_filter(s);
    return e;
}

tamis_error tamis_index_open(tamis_index **out, const char *path, const tamis_open_options *options,
                             tamis_reason *reason)
{
    struct set *s;
    tamis_error e = set_open_file(&s, KIND_INDEX, path, options, reason);
    if (e == TAMIS_OK)
        *out = as_index(s);
    return e;
}

tamis_error tamis_filter_load(tamis_filter **out, const char *path,
                              const tamis_open_options *options, tamis_reason *reason)
{
    struct whole whole;
    tamis_error e = load_whole(&whole, KIND_FILTER, path, options, reason);
    if (e == TAMIS_OK)
        *out = whole.filter;
    return e;
}

tamis_error tamis_index_load(tamis_index **out, const char *path, const tamis_open_options *options,
                             tamis_reason *reason)
{
    struct whole whole;
    tamis_error e = load_whole(&whole, KIND_INDEX, path, options, reason);
    if (e == TAMIS_OK)
        *out = whole.index;
    return e;
}

tamis_error tamis_catalog_open(tamis_catalog **out, const char *path,
                               const tamis_open_options *options, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = map_to_keep(&mapping, path, options, reason);
    return e == TAMIS_OK
               ? mapped(&mapping, catalog_from_mapping(out, mapping, options, reason), path, reason)
               : e;
}

tamis_error tamis_file_kind(const char *path, tamis_kind *kind, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, false, reason);
    if (e != TAMIS_OK)
        return e;
    *kind = tamis_kind_of(mapping.data, mapping.len);
    mapping_free(&mapping);
    return TAMIS_OK;
}

/* Patches and messages are gone over from end to end and back; of others only the header is. */
tamis_error tamis_file_verify(const char *path, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_kind kind;
    tamis_error e = tamis_file_kind(path, &kind, reason);
    if (e == TAMIS_OK)
        e = file_map(&mapping, path, kind == TAMIS_KIND_PATCH || kind == TAMIS_KIND_MESSAGE,
                     reason);
    if (e != TAMIS_OK)
        return e;
    if (mapping.kept < mapping.len)
        madvise((void *)(uintptr_t)mapping.data, mapping.len, MADV_SEQUENTIAL);
    e = kind == TAMIS_KIND_PATCH     ? patch_verify(mapping.data, mapping.len, reason)
        : kind == TAMIS_KIND_INDEX   ? set_verify(KIND_INDEX, mapping.data, mapping.len, reason)
        : kind == TAMIS_KIND_CATALOG ? catalog_verify(mapping, true, reason)
        : kind == TAMIS_KIND_MESSAGE ? message_verify(mapping.data, mapping.len, reason)
                                     : set_verify(KIND_FILTER, mapping.data, mapping.len, reason);
    return was_read(&mapping, e, path, reason);
}
