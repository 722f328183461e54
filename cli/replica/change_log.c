/* The log of changes beside a published file. See change_log.h. */
#include "change_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "os/file.h"
#include "ui/growing.h"

#define LOG_HEAD   24
#define GROUP_MOST 256 /* most digests */
#define GROUP_LEN  (16 + sizeof(tamis_digest) * GROUP_MOST)

enum log_group { GROUP_ADD = 1, GROUP_REMOVE = 2, GROUP_SAVING = 3 };

static const char magic[8] = {'T', 'A', 'M', 'I', 'S', 'L', 'O', 'G'};

static bool log_failed(struct change_log *log, const char *what)
{
    if (!log->failed)
        complain("%s: %s: %s", strerror(errno), log->path, what);
    log->failed = true;
    return false;
}

/* Reads everything from an offset; false with errno. */
static bool read_all(int fd, void *to, size_t len, uint64_t at, size_t *got)
{
    ssize_t n;
    for (*got = 0; *got < len; *got += (size_t)n) {
        n = pread(fd, (char *)to + *got, len - *got, (off_t)(at + *got));
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0)
            break;
        n = n < 0 ? 0 : n;
    }
    return true;
}

/* Reading the file back takes a small part of the time of saving it. */
static bool file_sum(const char *path, uint64_t *sum)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    static char piece[1 << 16];
    struct hash_stream hash;
    size_t got = sizeof piece;
    bool good = fd >= 0;
    hash_begin(&hash);
    for (uint64_t at = 0; good && got == sizeof piece; at += got) {
        good = read_all(fd, piece, sizeof piece, at, &got);
        hash_add(&hash, piece, got);
    }
    *sum = hash_end(&hash);
    fd_close(&fd);
    return good;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool append(struct change_log *log, const void *data, size_t len)
{
    if (file_write(log->fd, data, len, (int64_t)log->end) != 0)
        return log_failed(log, "make room and publish again; what is in it is safe");
    log->end += len;
    return true;
}

static bool append_group(struct change_log *log, enum log_group what, const tamis_digest *digests,
                         size_t n)
{
    unsigned char group[GROUP_LEN];
    uint32_t front[2] = {what, (uint32_t)n};
    size_t len = sizeof front + n * sizeof *digests;
    memcpy(group, front, sizeof front);
    if (n)
        memcpy(group + sizeof front, digests, n * sizeof *digests);
    uint64_t sum = hash_of(group, len);
    memcpy(group + len, &sum, sizeof sum);
    return append(log, group, len + sizeof sum);
}

bool change_log_add(struct change_log *log, bool removing, const tamis_digest *digests, size_t n)
{
    return n == 0 || append_group(log, removing ? GROUP_REMOVE : GROUP_ADD, digests, n);
}

bool change_log_sync(struct change_log *log)
{
    if (log->synced == log->end)
        return true;
    if (fdatasync(log->fd) != 0)
        return log_failed(log, "what was not acknowledged may be lost");
    log->synced = log->end;
    return true;
}

/* Empties the log, for the file as it is now. */
static bool begin(struct change_log *log, const char *path)
{
    unsigned char front[LOG_HEAD];
    uint64_t sum;
    if (!file_sum(path, &sum))
        return refuse("%s: %s: it cannot be read back", strerror(errno), path);
    memcpy(front, magic, sizeof magic);
    memcpy(front + 8, &sum, sizeof sum);
    sum = hash_of(front, 16);
    memcpy(front + 16, &sum, sizeof sum);
    if (ftruncate(log->fd, 0) != 0)
        return log_failed(log, "it cannot be emptied");
    log->end = log->synced = 0;
    return append(log, front, sizeof front) && change_log_sync(log);
}

bool change_log_save(struct change_log *log, const struct store *store)
{
    return append_group(log, GROUP_SAVING, NULL, 0) && change_log_sync(log) &&
           store_save(store, 0) && begin(log, store->path);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads the next group: its length, or 0 if it is incomplete. */
static size_t read_group(const struct change_log *log, unsigned char group[GROUP_LEN])
{
    uint32_t front[2];
    uint64_t sum;
    size_t got;
    if (!read_all(log->fd, group, GROUP_LEN, log->end, &got) || got < 16)
        return 0;
    memcpy(front, group, sizeof front);
    size_t len = sizeof front + front[1] * sizeof(tamis_digest);
    if (front[0] < GROUP_ADD || front[0] > GROUP_SAVING || front[1] > GROUP_MOST ||
        got < len + sizeof sum)
        return 0;
    memcpy(&sum, group + len, sizeof sum);
    return sum == hash_of(group, len) ? len + sizeof sum : 0;
}

static tamis_error do_again(tamis_filter *f, const unsigned char *group, uint64_t *replayed)
{
    uint32_t front[2];
    tamis_digest digests[GROUP_MOST];
    uint8_t outcomes[GROUP_MOST];
    size_t done;
    memcpy(front, group, sizeof front);
    memcpy(digests, group + sizeof front, front[1] * sizeof *digests);
    if (front[0] == GROUP_SAVING)
        return TAMIS_OK;
    *replayed += front[1];
    return front[0] == GROUP_REMOVE
               ? tamis_filter_remove_many(f, digests, front[1], outcomes, &done)
               : tamis_filter_add_many(f, digests, front[1], NULL, &done);
}

/* Reads all groups, and applies them unless the filter is NULL; returns the kind of the last one. */
static bool go_over(struct change_log *log, tamis_filter *f, uint64_t *replayed, uint32_t *last)
{
    unsigned char group[GROUP_LEN];
    *last = 0;
    log->end = LOG_HEAD;
    for (size_t len; (len = read_group(log, group)); log->end += len) {
        tamis_error e = f ? do_again(f, group, replayed) : TAMIS_OK;
        memcpy(last, group, sizeof *last);
        if (!succeeded(e, NULL, log->path))
            return false;
    }
    log->synced = 0;
    return f ? ftruncate(log->fd, (off_t)log->end) == 0 || log_failed(log, "it cannot be truncated")
             : true;
}

/* 1 if the log belongs to this file, 0 if it can be dropped, -1 after complaining. */
static int belongs(struct change_log *log, const char *path)
{
    unsigned char front[LOG_HEAD];
    uint64_t sum, of;
    size_t got;
    uint32_t last;
    if (!read_all(log->fd, front, sizeof front, 0, &got))
        return log_failed(log, "it cannot be read") - 1;
    if (got < sizeof front)
        return 0; /* it was being created */
    memcpy(&sum, front + 16, sizeof sum);
    if (memcmp(front, magic, sizeof magic) != 0 || sum != hash_of(front, 16))
        return complain("not a log of changes, or damaged: %s: remove it to continue without it",
                        log->path),
               -1;
    memcpy(&of, front + 8, sizeof of);
    if (!file_sum(path, &sum))
        return complain("%s: %s: it cannot be read", strerror(errno), path), -1;
    if (of == sum)
        return 1;
    if (!go_over(log, NULL, NULL, &last))
        return -1;
    if (log->end == LOG_HEAD || last == GROUP_SAVING)
        return 0;
    return complain("its changes are for another version of %s: %s: put that version back, or "
                    "remove the log",
                    path, log->path),
           -1;
}

bool change_log_open(struct change_log *log, const struct store *store, uint64_t *replayed)
{
    uint32_t last;
    *replayed = 0;
    log->fd = -1;
    if (snprintf(log->path, sizeof log->path, "%s.changes", store->path) >= (int)sizeof log->path)
        return refuse("the name is too long: %s", store->path);
    log->fd = open(log->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (log->fd < 0)
        return log_failed(log, "check the permissions of the folder");
    int ours = belongs(log, store->path);
    return ours > 0   ? go_over(log, as_filter(store->set), replayed, &last)
           : ours < 0 ? false
                      : begin(log, store->path);
}

void change_log_close(struct change_log *log)
{
    if (log->fd < 0)
        return;
    if (log->end == LOG_HEAD)
        unlink(log->path);
    fd_close(&log->fd);
}
