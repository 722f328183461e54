/*
 * Locks: the file PATH.lock, held with flock. The data file itself cannot be locked, since every
 * save replaces it. The lock file is removed while it is still held; a process that was waiting for
 * it finds that the name now refers to another file, or none, and tries again. When a process dies
 * its lock is released, and the next process takes over the file it left.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

struct tamis_lock {
    int fd;
    char path[PATH_MAX];
};

/* Does the name still refer to the file that we hold? */
static bool still_there(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

/* Returns 0 or errno. */
static int hold(struct tamis_lock *lock, bool wait)
{
    for (;;) {
        lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (lock->fd < 0)
            return errno;
        if (flock(lock->fd, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
            int error = errno;
            close(lock->fd);
            return error;
        }
        if (still_there(lock->fd, lock->path))
            return 0;
        close(lock->fd);
    }
}

/* The process that holds the lock, for the message; 0 if unknown. */
static long holder(const char *path)
{
    char text[24] = "";
    int fd = file_open(path, false, NULL);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

static void sign(int fd)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) < 0)
        return; /* only for the message */
}

static tamis_error busy(tamis_reason *reason, const char *path, const char *lock_path)
{
    long pid = holder(lock_path);
    char who[48] = "another process";
    if (pid > 0)
        snprintf(who, sizeof who, "process %ld", pid);
    return fail(reason, TAMIS_EBUSY, "%s is writing to %s: wait for it, or try again later", who,
                path);
}

tamis_error tamis_file_lock(tamis_lock **out, const char *path, const tamis_open_options *options,
                            tamis_reason *reason)
{
    struct tamis_lock *lock = mem_new0(&mem_system, 1, sizeof *lock);
    if (!lock)
        return fail(reason, TAMIS_ENOMEM, "no memory to lock %s", path);
    size_t len = 0;
    int error = 0;
    if (!file_resolve(lock->path, path))
        error = errno;
    else if ((len = strlen(lock->path)) + sizeof ".lock" > PATH_MAX)
        error = ENAMETOOLONG;
    if (!error) {
        memcpy(lock->path + len, ".lock", sizeof ".lock");
        error = hold(lock, options && options->wait);
    }
    if (!error) {
        sign(lock->fd);
        *out = lock;
        return TAMIS_OK;
    }
    tamis_error e = error == EWOULDBLOCK ? busy(reason, path, lock->path)
                                         : file_fail(reason, error, path, "locking");
    mem_free(&mem_system, lock, 1, sizeof *lock);
    return e;
}

void tamis_file_unlock(tamis_lock *lock)
{
    if (!lock)
        return;
    unlink(lock->path);
    close(lock->fd);
    mem_free(&mem_system, lock, 1, sizeof *lock);
}
