/*
 * Saving: a new file beside the old one, synced, renamed over it, and the folder synced. Until the
 * rename the new file has no name where the system can do that (O_TMPFILE), so that a process killed
 * half-way leaves nothing behind; elsewhere it is called .tamis-RANDOM and stays.
 */
#define _GNU_SOURCE /* O_TMPFILE, fallocate */

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "format.h"

#define BUFFER 32768

struct save {
    char target[PATH_MAX], folder[PATH_MAX], temp[PATH_MAX];
    bool named; /* temp is there and must go if we fail */
    int fd, error;
    size_t used;
    uint8_t buffer[BUFFER];
};

/* ---- names ----------------------------------------------------------------------------------- */

static bool find_names(struct save *s, const char *path)
{
    if (!file_resolve(s->target, path))
        return false;
    const char *slash = strrchr(s->target, '/');
    size_t len = slash ? (size_t)(slash - s->target) : 0;
    memcpy(s->folder, slash && len == 0 ? "/" : ".", 2);
    if (len) {
        memcpy(s->folder, s->target, len);
        s->folder[len] = 0;
    }
    return true;
}

/* A name in the folder that nobody else has. */
static bool draw_name(struct save *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    uint8_t drawn[12];
    size_t len = strlen(s->folder);
    if (len + 2 + 7 + sizeof drawn + 1 > PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (getentropy(drawn, sizeof drawn) != 0)
        return false;
    memcpy(s->temp, s->folder, len);
    memcpy(s->temp + len, "/.tamis-", 8);
    for (size_t i = 0; i < sizeof drawn; i++)
        s->temp[len + 8 + i] = letters[drawn[i] & 31];
    s->temp[len + 8 + sizeof drawn] = 0;
    return true;
}

/* ---- the new file ---------------------------------------------------------------------------- */

static bool open_new(struct save *s, mode_t mode)
{
#ifdef O_TMPFILE
    if (access("/proc/self/fd", X_OK) == 0) {
        s->fd = open(s->folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
        if (s->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
            return s->fd >= 0;
    }
#endif
    do {
        if (!draw_name(s))
            return false;
        s->fd = open(s->temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, mode);
    } while (s->fd < 0 && errno == EEXIST);
    s->named = s->fd >= 0;
    return s->named;
}

static bool give_name(struct save *s)
{
    char self[40];
    int done;
    if (s->named)
        return true;
    snprintf(self, sizeof self, "/proc/self/fd/%d", s->fd);
    do {
        if (!draw_name(s))
            return false;
        done = linkat(AT_FDCWD, self, AT_FDCWD, s->temp, AT_SYMLINK_FOLLOW);
    } while (done != 0 && errno == EEXIST);
    s->named = done == 0;
    return s->named;
}

static int write_all(struct save *s, const uint8_t *data, size_t len)
{
    while (len) {
        ssize_t n = write(s->fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            s->error = n < 0 ? errno : EIO;
            return -1;
        }
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int flush(struct save *s)
{
    size_t n = s->used;
    s->used = 0;
    return write_all(s, s->buffer, n);
}

/* A tamis_write: small pieces are gathered, large ones go out as they are. */
static int save_write(void *context, const void *data, size_t len)
{
    struct save *s = context;
    if (s->used + len > BUFFER && flush(s) != 0)
        return -1;
    if (len > BUFFER)
        return write_all(s, data, len);
    memcpy(s->buffer + s->used, data, len);
    s->used += len;
    return 0;
}

static bool sync_folder(const struct save *s)
{
    int fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES; /* a folder we may write to and not read: nothing more to do */
    bool synced = fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
    int error = errno;
    close(fd);
    errno = error;
    return synced;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static tamis_error check_target(const struct save *s, const char *path, tamis_reason *reason)
{
    struct stat st;
    if (stat(s->target, &st) != 0)
        return errno == ENOENT ? TAMIS_OK : file_fail(reason, errno, path, "");
    if (S_ISDIR(st.st_mode))
        return file_fail(reason, EISDIR, path, "");
    if (!S_ISREG(st.st_mode))
        return fail(reason, TAMIS_EIO, "%s: not a regular file", path);
    return TAMIS_OK;
}

static tamis_error fill(struct save *s, const struct saved *what, const char *path,
                        tamis_reason *reason)
{
    uint64_t size = what->size;
    /* A full disk is noticed now, not after minutes. Where this cannot be told, we try. */
    if (size > BUFFER && fallocate(s->fd, 0, 0, (off_t)size) != 0 && errno == ENOSPC)
        return file_fail(reason, ENOSPC, path, "writing");
    tamis_error e = what->encode(what->of, what->flags, save_write, s);
    if (e == TAMIS_OK && (flush(s) != 0))
        e = TAMIS_EIO;
    if (e == TAMIS_EIO)
        return file_fail(reason, s->error, path, "writing");
    if (e != TAMIS_OK)
        return fail(reason, e, "%s cannot be written: %s", path, tamis_error_text(e));
    if (fsync(s->fd) != 0)
        return file_fail(reason, errno, path, "writing");
    return TAMIS_OK;
}

static tamis_error replace(struct save *s, const char *path, tamis_reason *reason)
{
    if (!give_name(s))
        return file_fail(reason, errno, path, "writing");
    if (rename(s->temp, s->target) != 0)
        return file_fail(reason, errno, path, "replacing");
    s->named = false;
    return sync_folder(s) ? TAMIS_OK : file_fail(reason, errno, s->folder, "syncing");
}

tamis_error file_save(const struct saved *what, const char *path, tamis_reason *reason)
{
    struct save *s = mem_new0(&mem_system, 1, sizeof *s);
    if (!s)
        return fail(reason, TAMIS_ENOMEM, "no memory to write %s", path);
    s->fd = -1;
    tamis_error e = TAMIS_OK;
    if (!find_names(s, path))
        e = file_fail(reason, errno, path, "");
    if (e == TAMIS_OK)
        e = check_target(s, path, reason);
    if (e == TAMIS_OK && !open_new(s, what->key_inside ? 0600 : 0644))
        e = file_fail(reason, errno, path, "writing");
    if (e == TAMIS_OK)
        e = fill(s, what, path, reason);
    if (e == TAMIS_OK)
        e = replace(s, path, reason);
    if (s->named)
        unlink(s->temp);
    if (s->fd >= 0)
        close(s->fd);
    mem_free(&mem_system, s, 1, sizeof *s);
    return e;
}

static tamis_error encode_filter(const void *of, unsigned flags, tamis_write write, void *context)
{
    return tamis_filter_encode(of, flags, write, context);
}

tamis_error tamis_filter_save(const tamis_filter *f, const char *path, unsigned flags,
                              tamis_reason *reason)
{
    struct saved what = {.of = f,
                         .encode = encode_filter,
                         .size = tamis_filter_encoded_size(f, flags),
                         .key_inside = f->family.has_key && !(flags & TAMIS_SAVE_NO_KEY),
                         .flags = flags};
    return file_save(&what, path, reason);
}

static tamis_error encode_index(const void *of, unsigned flags, tamis_write write, void *context)
{
    return tamis_index_encode(of, flags, write, context);
}

tamis_error tamis_index_save(const tamis_index *x, const char *path, unsigned flags,
                             tamis_reason *reason)
{
    struct saved what = {.of = x,
                         .encode = encode_index,
                         .size = tamis_index_encoded_size(x, flags),
                         .key_inside = x->family.has_key && !(flags & TAMIS_SAVE_NO_KEY),
                         .flags = flags};
    return file_save(&what, path, reason);
}
