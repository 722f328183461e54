/* Opens files that may come from untrusted parties, maps them or reads them whole, and makes
   errors that name them. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define LINKS_MAX 40

/* ---- errors and names ------------------------------------------------------------------------ */

/* A reason has room for 200 characters: of a long path the end is shown. */
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
        reason->system_error = error == ENXIO ? 0 : error; /* the system's text would mislead */
    return e;
}

tamis_error file_named(tamis_reason *reason, tamis_error e, const char *path)
{
    if (reason && e != TAMIS_OK) {
        char text[sizeof reason->text];
        memcpy(text, reason->text, sizeof text);
        uint64_t offset = reason->offset;
        int error = reason->system_error;
        fail_at(reason, e, offset, "%s: %s", shown(path), text);
        reason->system_error = error;
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
            return errno == EINVAL || errno == ENOENT; /* not a link, or not existing yet: done */
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
                                       : ENXIO; /* the system's own error for opening a socket */
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* Copies the first `len` bytes: writing to a page of a private mapping makes it the process's
   own, so later changes of the file do not reach it. */
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

/* Given the first page, `front` tells how many leading bytes to copy. */
static bool map_fd(struct mapping *out, int fd, front_fn front)
{
    out->kept = 0;
    out->data = mmap(NULL, out->len, PROT_READ, MAP_PRIVATE, fd, 0);
    if ((const void *)out->data == MAP_FAILED)
        return false;
    madvise((void *)(uintptr_t)out->data, out->len, MADV_DONTDUMP); /* it may have the key */
    bool kept = keep(out, 1);
    size_t len = kept && front ? front(out->data, out->len) : 0;
    if (len)
        kept = keep(out, len);
    int error = errno;
    if (!kept)
        munmap((void *)(uintptr_t)out->data, out->len);
    errno = error;
    return kept;
}

/* Reads the whole file into memory, so that later changes of the file do not matter. */
static bool read_fd(struct mapping *out, int fd)
{
    struct spill file = {.fd = fd};
    void *own = mem_undumped_new(out->len);
    if (!own)
        return false;
    int error = spill_read(&file, own, out->len, 0); /* EIO: the file became shorter */
    if (error)
        mem_pages_free(own, out->len);
    out->data = own;
    out->kept = out->len;
    errno = error;
    return error == 0;
}

tamis_error file_read_open(struct spill *file, const char *path, tamis_reason *reason)
{
    struct stat st;
    *file = (struct spill){.fd = file_open(path, true, &st)};
    if (file->fd < 0)
        return file_fail(reason, errno, path, "");
    file->end = (uint64_t)st.st_size;
    if (st.st_size == 0)
        return fail(reason, TAMIS_EFORMAT, "%s: the file is empty", path);
    if ((uint64_t)st.st_size > SIZE_MAX / 2)
        return fail(reason, TAMIS_ELIMIT, "%s: too large to map", path);
    return TAMIS_OK;
}

tamis_error file_map(struct mapping *out, const char *path, front_fn front, bool read,
                     tamis_reason *reason)
{
    struct spill file;
    tamis_error e = file_read_open(&file, path, reason);
    out->len = (size_t)file.end;
    if (e == TAMIS_OK && (read ? !read_fd(out, file.fd) : !map_fd(out, file.fd, front)))
        e = file_fail(reason, errno, path, read ? "reading" : "mapping");
    spill_close(&file);
    return e;
}

size_t file_front(const char *path, void *to, size_t len)
{
    int fd = file_open(path, true, NULL);
    ssize_t n = fd < 0 ? 0 : pread(fd, to, len, 0);
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}
