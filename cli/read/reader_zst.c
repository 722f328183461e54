/* Zstandard. A frame can only be entered at its start: the library does not expose what a block
   needs from earlier ones (tables of codes, repeated offsets). Skippable frames are frames
   without text. */
#include "reader_source.h"

#include "base/err.h"

#ifdef TAMIS_HAVE_ZSTD

#include <zstd.h>
#include <zstd_errors.h>

static tamis_error zst_start(struct source *s, const struct restart *from, tamis_reason *reason)
{
    (void)from;
    s->state = ZSTD_createDStream();
    return s->state ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", s->path);
}

static void zst_stop(struct source *s)
{
    ZSTD_freeDStream(s->state);
}

/*
 * Decodes a frame at once, directly to its destination: a third faster than through the stream's
 * window. 0: not possible, or the frame is incomplete.
 */
static size_t zst_frame(struct source *s, uint8_t *out, size_t room)
{
    const uint8_t *in = s->in + s->in_at;
    size_t len = ZSTD_findFrameCompressedSize(in, s->in_len - s->in_at);
    size_t made = ZSTD_isError(len) ? len : ZSTD_decompressDCtx(s->state, out, room, in, len);
    if (ZSTD_isError(made) || made == 0) {
        ZSTD_DCtx_reset(s->state, ZSTD_reset_session_only);
        s->at_once = false;
        return 0;
    }
    s->in_at += len;
    s->out += made;
    return made;
}

static size_t zst_step(struct source *s, uint8_t *out, size_t room)
{
    bool more = s->in_at < s->in_len || source_fill(s);
    if (s->between && !more) {
        s->ended = true;
        return 0;
    }
    if (s->between && s->out >= s->want)
        source_note(s, NULL, 0);
    size_t made = s->between && s->at_once ? zst_frame(s, out, room) : 0;
    if (made)
        return made;
    s->between = false;
    ZSTD_inBuffer in = {s->in, s->in_len, s->in_at};
    ZSTD_outBuffer to = {out, room, 0};
    size_t result = ZSTD_decompressStream(s->state, &to, &in);
    s->in_at = in.pos;
    s->out += to.pos;
    if (ZSTD_isError(result)) {
        bool memory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
        source_damaged(s, memory ? TAMIS_ENOMEM : TAMIS_EFORMAT, ZSTD_getErrorName(result));
    } else if (result == 0) {
        s->between = true;
    } else if (!more && to.pos == 0) {
        source_damaged(s, TAMIS_EFORMAT, "the file is cut off");
    }
    return to.pos;
}

const struct decoder decoder_zst = {
    .name = "zstd", .start = zst_start, .step = zst_step, .stop = zst_stop};

#else

const struct decoder decoder_zst = {.name = "zstd", .library = "libzstd"};

#endif
