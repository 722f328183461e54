/*
 * Saving: a new file is written, synced and renamed over the old one, and the folder is synced.
 * Until the rename the new file has no name if the system supports that (O_TMPFILE), so a process
 * killed half-way leaves nothing behind. Otherwise, and for the moment before the rename, it is
 * called .tamis-XY, where X is derived from the name of the old file and Y is one of TEMPS letters.
 * Its writer holds a lock on it: a file of such a name without a lock was left by a killed process,
 * and the next save removes it.
 */
#define _GNU_SOURCE /* O_TMPFILE, O_PATH, fallocate */

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"

#define TEMPS 8 /* most processes that write one file at the same time */

/* ---- names ----------------------------------------------------------------------------------- */

/* Opens the folder once: whatever then happens to its name, all that follows is done in it. */
static bool open_folder(struct beside *s, const char *path, unsigned flags)
{
    char folder[PATH_MAX];
    if (flags & BESIDE_STRANGE && strlen(path) < PATH_MAX)
        memcpy(s->target, path, strlen(path) + 1);
    else if (!file_resolve(s->target, path))
        return false;
    const char *slash = strrchr(s->target, '/');
    int len = !slash ? 0 : slash == s->target ? 1 : (int)(slash - s->target);
    snprintf(folder, sizeof folder, "%.*s", len ? len : 1, len ? s->target : ".");
    s->name = slash ? slash + 1 : s->target;
    int how = O_DIRECTORY | O_CLOEXEC | (flags & BESIDE_INNER ? O_NOFOLLOW : 0);
    s->folder = open(folder, O_RDONLY | how);
    if (s->folder < 0 && errno == EACCES) /* it may be writable nevertheless */
        s->folder = open(folder, O_PATH | how);
    return s->folder >= 0;
}

static void temp_name(struct beside *s, unsigned i)
{
    snprintf(s->temp, sizeof s->temp, ".tamis-%016llx%c",
             (unsigned long long)hash_of(s->name, strlen(s->name)), 'a' + (int)i);
}

/* Removes files that a killed process left under these names. */
static void remove_left(struct beside *s)
{
    for (unsigned i = 0; i < TEMPS; i++) {
        temp_name(s, i);
        int fd = openat(s->folder, s->temp, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(s->folder, s->temp, 0);
        close(fd);
    }
}

/* ---- the new file ---------------------------------------------------------------------------- */

static bool open_new(struct beside *s, mode_t mode)
{
#ifdef O_TMPFILE
    if (access("/proc/self/fd", X_OK) == 0) {
        s->fd = openat(s->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
        if (s->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
            return s->fd >= 0;
    }
#endif
    errno = EEXIST;
    for (unsigned i = 0; s->fd < 0 && errno == EEXIST && i < TEMPS; i++) {
        temp_name(s, i);
        s->fd =
            openat(s->folder, s->temp, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, mode);
    }
    s->named = s->fd >= 0;
    return s->named;
}

static bool give_name(struct beside *s)
{
    char self[40];
    int done = -1;
    if (s->named)
        return true;
    snprintf(self, sizeof self, "/proc/self/fd/%d", s->fd);
    errno = EEXIST;
    for (unsigned i = 0; done != 0 && errno == EEXIST && i < TEMPS; i++) {
        temp_name(s, i);
        done = linkat(AT_FDCWD, self, s->folder, s->temp, AT_SYMLINK_FOLLOW);
    }
    s->named = done == 0;
    return s->named;
}

static tamis_error check_target(const struct beside *s, const char *path, tamis_reason *reason)
{
    struct stat st;
    if (fstatat(s->folder, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? TAMIS_OK : file_fail(reason, errno, path, "");
    if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) /* a link itself is replaced */
        return TAMIS_OK;
    return file_fail(reason, S_ISDIR(st.st_mode) ? EISDIR : ENXIO, path, "");
}

/* ---- owner and permissions ------------------------------------------------------------------- */

/* Gives the new file the owner and permissions of the old one, so that whoever had access keeps
   it. Where the system does not allow that, access is never widened: if the group cannot be
   kept, the new group gets no rights. */
static void pass_on(int fd, const struct stat *old)
{
    struct stat fresh;
    mode_t mode = old->st_mode & 0777;
    if (fstat(fd, &fresh) != 0)
        return;
    if (fresh.st_uid != old->st_uid && fchown(fd, old->st_uid, (gid_t)-1) != 0)
        errno = 0; /* it then belongs to this user */
    if (fresh.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode &= ~(mode_t)070;
    if (fchmod(fd, mode) != 0)
        errno = 0; /* it stays as private as it was created */
}

tamis_error beside_replace(struct beside *s, const char *path, tamis_reason *reason)
{
    if (!s->loose && fsync(s->fd) != 0)
        return file_fail(reason, errno, path, "writing");
    if (!give_name(s))
        return file_fail(reason, errno, path, "writing");
    if (renameat(s->folder, s->temp, s->folder, s->name) != 0)
        return file_fail(reason, errno, path, "replacing");
    s->named = false;
    /* A folder that is writable but not readable (EBADF) cannot be synced. */
    if (s->loose || fsync(s->folder) == 0 || errno == EINVAL || errno == EROFS || errno == EBADF)
        return TAMIS_OK;
    file_fail(reason, errno, path, "syncing the folder of");
    return TAMIS_ESYNC;
}

tamis_error beside_open(struct beside *s, const char *path, unsigned flags, tamis_reason *reason)
{
    struct stat old;
    *s = (struct beside){.fd = -1, .folder = -1, .loose = flags & BESIDE_LOOSE};
    if (!open_folder(s, path, flags))
        return file_fail(reason, errno, path, "writing");
    remove_left(s);
    tamis_error e = check_target(s, path, reason);
    if (e == TAMIS_OK && !open_new(s, flags & BESIDE_PRIVATE ? 0600 : 0644))
        e = file_fail(reason, errno, path, "writing");
    if (e == TAMIS_OK && flock(s->fd, LOCK_EX) != 0)
        errno = 0; /* no locks in this folder, so no other process removes it either */
    if (e == TAMIS_OK && flags & BESIDE_KEEP &&
        fstatat(s->folder, s->name, &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(old.st_mode))
        pass_on(s->fd, &old);
    return e;
}

void beside_close(struct beside *s)
{
    if (s->named)
        unlinkat(s->folder, s->temp, 0);
    if (s->fd >= 0)
        close(s->fd);
    if (s->folder >= 0)
        close(s->folder);
    s->named = false;
    s->fd = s->folder = -1;
}

/* ---- writing --------------------------------------------------------------------------------- */

int file_reserve(int fd, uint64_t size)
{
    return fallocate(fd, 0, 0, (off_t)size) != 0 && errno == ENOSPC ? ENOSPC : 0;
}

int file_write(int fd, const void *data, size_t len, int64_t offset)
{
    const uint8_t *from = data;
    while (len) {
        ssize_t n = offset < 0 ? write(fd, from, len) : pwrite(fd, from, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        from += n;
        len -= (size_t)n;
        offset += offset < 0 ? 0 : n;
    }
    return 0;
}

/* ---- a file for a while ---------------------------------------------------------------------- */

int spill_open(struct spill *spill, const struct beside *beside)
{
    struct beside other = {.fd = -1, .folder = beside->folder, .name = beside->name};
    *spill = (struct spill){.fd = -1};
    if (!open_new(&other, 0600))
        return errno;
    if (other.named)
        unlinkat(other.folder, other.temp, 0);
    spill->fd = other.fd;
    return 0;
}

uint64_t spill_room(struct spill *spill, uint64_t len)
{
    uint64_t at = spill->end;
    spill->end += len;
    return at;
}

int spill_read(const struct spill *spill, void *data, size_t len, uint64_t at)
{
    uint8_t *to = data;
    while (len) {
        ssize_t n = pread(spill->fd, to, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO; /* EIO: the file is shorter than what was written */
        to += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

void spill_forget(struct spill *spill, uint64_t from, uint64_t len)
{
#ifdef FALLOC_FL_PUNCH_HOLE
    int error = errno; /* space that cannot be freed now is freed on close */
    if (fallocate(spill->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)len) !=
        0)
        errno = error;
#else
    (void)spill, (void)from, (void)len;
#endif
}

void spill_close(struct spill *spill)
{
    if (spill->fd >= 0)
        close(spill->fd);
    spill->fd = -1;
}
