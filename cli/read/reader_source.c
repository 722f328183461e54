/* Files and pipes, plain or through a decoder. See reader_source.h. */
#define _GNU_SOURCE
#include "reader_source.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"

struct source *source_new(const char *path, int fd, bool regular, uint64_t limit)
{
    struct source *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->path = path;
    s->fd = fd;
    s->regular = regular;
    s->limit = limit;
    s->want = s->stop = NEVER;
    s->in_room = SOURCE_CHUNK;
    return s;
}

void source_free(struct source *s)
{
    if (!s)
        return;
    if (s->decoder && s->decoder->stop)
        s->decoder->stop(s);
    if (s->decoder && s->decoder->state)
        free(s->state);
    source_free(s->packed);
    free(s->in);
    free(s->point.blob);
    free(s);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Reads bytes of the file to `out`; 0 at its end, or with s->error. */
static size_t read_file(struct source *s, uint8_t *out, size_t room)
{
    ssize_t got;
    if (s->packed) {
        size_t text = source_read(s->packed, out, room);
        s->at += text;
        if (text == 0 && room) { /* what came before an error is text */
            s->error = s->packed->error;
            s->reason = s->packed->reason;
        }
        return text;
    }
    if (s->regular) {
        uint64_t left = s->at < s->limit ? s->limit - s->at : 0;
        room = room < left ? room : (size_t)left;
    }
    if (s->error != TAMIS_OK || room == 0)
        return 0;
    do
        got = s->regular ? pread(s->fd, out, room, (off_t)s->at) : read(s->fd, out, room);
    while (got < 0 && errno == EINTR);
    if (got == 0 && s->regular)
        s->error = fail_at(&s->reason, TAMIS_EIO, s->at,
                           "%.120s: shorter than when it was opened: it ends at byte %llu", s->path,
                           (unsigned long long)s->at);
    if (got < 0) {
        int error = errno;
        s->error =
            fail_at(&s->reason, TAMIS_EIO, s->at, "reading %.120s: %s", s->path, strerror(error));
        s->reason.system_error = error;
        return 0;
    }
    if (s->sums)
        raw_sums_feed(s->sums, s->at, out, (size_t)got);
    s->at += (uint64_t)got;
    return (size_t)got;
}

bool source_fill(struct source *s)
{
    if (!s->in && !(s->in = malloc(s->in_room))) {
        s->error = fail(&s->reason, TAMIS_ENOMEM, "no memory to read %.120s", s->path);
        return false;
    }
    size_t kept = s->in_len - s->in_at;
    if (s->in_at)
        s->last = s->in[s->in_at - 1];
    memmove(s->in, s->in + s->in_at, kept);
    s->in_at = 0;
    s->in_len = kept;
    s->in_len += read_file(s, s->in + kept, s->in_room - kept);
    return s->in_len > kept;
}

static size_t plain_step(struct source *s, uint8_t *out, size_t room)
{
    size_t kept = s->in_len - s->in_at;
    if (kept) {
        kept = kept < room ? kept : room;
        memcpy(out, s->in + s->in_at, kept);
        s->in_at += kept;
        return kept;
    }
    size_t got = read_file(s, out, room);
    s->ended = got == 0;
    return got;
}

static const struct decoder decoder_plain = {.name = "plain", .step = plain_step};

/* ---- kinds ----------------------------------------------------------------------------------- */

static const struct magic {
    const char *bytes;
    uint8_t len;
    enum packing kind;
} magics[] = {
    {"\x1F\x8B", 2, PACK_GZIP},
    {"\x28\xB5\x2F\xFD", 4, PACK_ZSTD},
    {"BZh?1AY&SY", 10, PACK_BZIP2},
    {"BZh?\x17\x72\x45\x38\x50\x90", 10, PACK_BZIP2},
    {"\xFD\x37zXZ\x00", 6, PACK_XZ},
    {"\x04\x22\x4D\x18", 4, PACK_LZ4},
    /* lzma has none: the usual parameters; a dictionary; a length that is unknown, or below 2^40 */
    {"\x5D\0\0??\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 13, PACK_LZMA},
    {"\x5D\0\0???????\0\0\0", 13, PACK_LZMA},
    {"\xFF\xFE", 2, PACK_UTF16LE},
    {"\xFE\xFF", 2, PACK_UTF16BE}};

/* Do the bytes match? ? stands for any byte. */
static bool is_magic(const uint8_t *data, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (data[i] != (uint8_t)bytes[i] && bytes[i] != '?')
            return false;
    return true;
}

/* The magic number that the source starts with, NULL if none. *open: it may still be one, with
   more bytes. */
static const struct magic *find_magic(const struct source *s, bool *open)
{
    *open = s->in_len == 0;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        size_t len = s->in_len < magics[i].len ? s->in_len : magics[i].len;
        if (!is_magic(s->in, magics[i].bytes, len))
            continue;
        if (len == magics[i].len)
            return &magics[i];
        *open = true;
    }
    return NULL;
}

/* A skippable zstd frame: pzstd writes one first. */
static bool skippable(const struct source *s, bool *open)
{
    static const uint8_t magic[] = {0x50, 0x2A, 0x4D, 0x18};
    bool first = s->in_len > 0 && (s->in[0] & 0xF0) == magic[0];
    size_t len = s->in_len < 4 ? s->in_len : 4;
    if (!first || memcmp(s->in + 1, magic + 1, len - 1) != 0)
        return false;
    *open |= len < 4;
    return len == 4;
}

tamis_error source_kind(struct source *s, enum packing *kind, tamis_reason *reason)
{
    bool open, frame;
    const struct magic *magic;
    if (!source_fill(s) && s->error == TAMIS_OK) {
        *kind = PACK_NONE;
        return TAMIS_OK;
    }
    do { /* no more than needed: the first line of a pipe may be short */
        if (s->error != TAMIS_OK)
            return source_failed(s, reason);
        magic = find_magic(s, &open);
        frame = skippable(s, &open);
    } while (!magic && !frame && open && source_fill(s));
    *kind = magic ? magic->kind : frame ? PACK_ZSTD : PACK_NONE;
    return TAMIS_OK;
}

tamis_error source_start(struct source *s, enum packing kind, const struct restart *from,
                         tamis_reason *reason)
{
    static const struct decoder *const decoders[] = {
        &decoder_plain, &decoder_gz,  &decoder_zst,     &decoder_bz2,    &decoder_xz,
        &decoder_lzma,  &decoder_lz4, &decoder_utf16le, &decoder_utf16be};
    if (from && from->at > s->limit)
        return fail_at(reason, TAMIS_EFORMAT, from->at, "%.120s: ends before byte %llu", s->path,
                       (unsigned long long)from->at);
    s->between = true;
    if (from) {
        s->at = from->at;
        s->out = from->out;
    }
    const struct decoder *d = decoders[kind];
    if (!d->step)
        return fail(reason, TAMIS_EKIND, "%.120s: this tamis was built without %s", s->path,
                    d->library);
    if (d->state && !(s->state = calloc(1, d->state)))
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", s->path);
    tamis_error error = d->start ? d->start(s, from && from->blob ? from : NULL, reason) : TAMIS_OK;
    if (error == TAMIS_OK) {
        s->decoder = d;
    } else {
        free(s->state);
        s->state = NULL;
    }
    return error;
}

struct source *source_wide(struct source *packed, enum packing kind, const struct restart *from)
{
    struct source *s = source_new(packed->path, packed->fd, packed->regular, NEVER);
    if (!s || source_start(s, kind, from, NULL) != TAMIS_OK) {
        source_free(s);
        source_free(packed);
        return NULL;
    }
    s->packed = packed;
    s->in_room = SOURCE_CHUNK / 8; /* a restart point is as far ahead as this has been unpacked */
    s->returns = packed->returns;
    packed->returns = false;
    return s;
}

void source_note(struct source *s, uint8_t *blob, size_t len)
{
    free(s->point.blob);
    s->point = (struct restart){source_at(s), s->out, blob, len};
    s->noted = true;
    s->want = NEVER;
}

tamis_error source_failed(const struct source *s, tamis_reason *reason)
{
    if (reason)
        *reason = s->reason;
    return s->error;
}

void source_damaged(struct source *s, tamis_error error, const char *what)
{
    if (s->error == TAMIS_OK)
        s->error = fail_at(&s->reason, error, source_at(s), "%.120s: %s at byte %llu: %.50s",
                           s->path, s->decoder->name, (unsigned long long)source_at(s), what);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Does a plain pipe have more immediately, so that waiting for it causes no delay? */
static bool ready(const struct source *s)
{
    struct pollfd poll_one = {.fd = s->fd, .events = POLLIN};
    return s->regular || s->decoder != &decoder_plain || poll(&poll_one, 1, 0) > 0;
}

size_t source_read(struct source *s, uint8_t *out, size_t room)
{
    size_t len = 0;
    bool cut = s->stop - s->out < room;
    if (cut)
        room = (size_t)(s->stop - s->out);
    while (len < room && !s->ended && (len == 0 || ready(s))) {
        size_t made = s->decoder->step(s, out + len, room - len);
        len += made;
        s->ended |= s->error != TAMIS_OK;
    }
    if (s->decoder == &decoder_plain)
        s->out += len;
    if (s->ended && s->out < s->stop && s->stop != NEVER && s->error == TAMIS_OK)
        s->error = fail_at(&s->reason, TAMIS_EFORMAT, source_at(s), "%.120s: shorter than it was",
                           s->path);
    s->ended |= cut && len == room;
    if (s->returns)
        text_returns(out, len);
    return len;
}

void text_returns(uint8_t *text, size_t len)
{
    for (uint8_t *end = text + len; len && (text = memchr(text, '\r', (size_t)(end - text)));)
        *text = '\n';
}
