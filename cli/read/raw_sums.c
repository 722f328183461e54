/* The raw bytes of an input. See raw_sums.h. */
#define _GNU_SOURCE
#include "raw_sums.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ui/growing.h"

/* ---- identity -------------------------------------------------------------------------------- */

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* `now`: the time before. */
static bool take_id(const struct stat *st, int64_t now, struct raw_id *id, const char **why)
{
    *id = (struct raw_id){st->st_dev,
                          st->st_ino,
                          (uint64_t)st->st_size,
                          nanoseconds(st->st_mtim),
                          nanoseconds(st->st_ctim),
                          now - nanoseconds(st->st_ctim) < RAW_RACY};
    if (S_ISREG(st->st_mode))
        return true;
    *why = S_ISDIR(st->st_mode) ? strerror(EISDIR) : "not a regular file";
    errno = 0;
    return false;
}

bool raw_look(const char *path, bool follow, struct raw_id *id, const char **why)
{
    struct stat st;
    int64_t now = (int64_t)clock_real(NULL);
    if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0)
        return take_id(&st, now, id, why);
    *why = strerror(errno);
    return false;
}

int raw_open(const char *path, bool follow, struct raw_id *id, const char **why)
{
    struct stat st;
    int64_t now = (int64_t)clock_real(NULL);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0) { /* a link, a socket */
        bool odd = (errno == ELOOP && !follow) || errno == ENXIO;
        *why = odd ? "not a regular file" : strerror(errno);
        return -1;
    }
    if (fstat(fd, &st) != 0) {
        *why = strerror(errno);
    } else if (take_id(&st, now, id, why)) {
        return fd;
    }
    fd_close(&fd);
    return -1;
}

bool raw_equal(const struct raw_id *known, const struct raw_id *now)
{
    return known->inode == now->inode && known->size == now->size && known->mtime == now->mtime &&
           known->ctime == now->ctime;
}

bool raw_same(const struct raw_id *known, const struct raw_id *now)
{
    return !known->racy && raw_equal(known, now);
}

/* ---- sums ------------------------------------------------------------------------------------ */

#define SUM_LEN   sizeof(uint64_t)
#define RAW_PIECE ((size_t)128 << 10) /* bytes read at a time: they stay in the cache */

uint64_t raw_sums_len(uint64_t size)
{
    return (size / RAW_CHUNK + (size % RAW_CHUNK != 0)) * SUM_LEN;
}

bool raw_sums_start(struct raw_sums *s, const uint8_t *known, uint64_t known_size, uint64_t from)
{
    uint64_t chunks = (from < known_size ? from : known_size) / RAW_CHUNK;
    *s = (struct raw_sums){.at = chunks * RAW_CHUNK,
                           .known = known,
                           .known_size = known_size,
                           .room = (size_t)(chunks + 1) * SUM_LEN};
    s->sum = malloc(s->room);
    if (!s->sum)
        return !(s->failed = true);
    if (chunks)
        memcpy(s->sum, known, (size_t)chunks * SUM_LEN);
    hash_begin(&s->state);
    return true;
}

void raw_sums_free(struct raw_sums *s)
{
    free(s->sum);
    *s = (struct raw_sums){.failed = true};
}

/* A chunk ends here, or the known bytes do: stores its checksum, and compares it. */
static void settle(struct raw_sums *s)
{
    size_t at = (size_t)((s->at - 1) / RAW_CHUNK) * SUM_LEN;
    s->failed |= !array_room(NULL, &s->sum, at + SUM_LEN - 1, &s->room, 1);
    if (s->failed)
        return;
    put_u64(s->sum + at, hash_end(&s->state));
    if (s->at <= s->known_size && memcmp(s->sum + at, s->known + at, SUM_LEN) != 0)
        s->failed = true;
    if (s->at % RAW_CHUNK == 0)
        hash_begin(&s->state);
}

void raw_sums_feed(struct raw_sums *s, uint64_t at, const void *data, size_t len)
{
    if (s->failed || at > s->at || s->at - at >= len)
        return;
    const uint8_t *from = (const uint8_t *)data + (s->at - at);
    for (len -= (size_t)(s->at - at); len && !s->failed;) {
        uint64_t most = RAW_CHUNK - s->at % RAW_CHUNK;
        if (s->at < s->known_size && s->known_size - s->at < most)
            most = s->known_size - s->at;
        size_t take = len < most ? len : (size_t)most;
        hash_add(&s->state, from, take);
        s->at += take;
        from += take;
        len -= take;
        if (s->at % RAW_CHUNK == 0 || s->at == s->known_size)
            settle(s);
    }
}

bool raw_sums_rest(struct raw_sums *s, int fd, uint64_t up_to)
{
    uint8_t piece[RAW_PIECE];
    while (s->at < up_to && !s->failed) {
        uint64_t left = up_to - s->at;
        ssize_t got = pread(fd, piece, left < RAW_PIECE ? (size_t)left : RAW_PIECE, (off_t)s->at);
        if (got > 0)
            raw_sums_feed(s, s->at, piece, (size_t)got);
        else if (got == 0 || errno != EINTR)
            return false;
    }
    return !s->failed;
}

uint8_t *raw_sums_end(struct raw_sums *s, int fd, uint64_t size)
{
    if (!s->sum || !raw_sums_rest(s, fd, size) || s->at != size)
        return NULL;
    if (size % RAW_CHUNK)
        settle(s);
    uint8_t *sum = s->failed ? NULL : s->sum;
    if (sum)
        s->sum = NULL;
    return sum;
}

bool raw_sums_hold(int fd, const uint8_t *sums, uint64_t size, uint64_t *hashed)
{
    struct raw_sums s;
    bool good = raw_sums_start(&s, sums, size, 0) && raw_sums_rest(&s, fd, size);
    *hashed += s.at;
    raw_sums_free(&s);
    return good;
}
