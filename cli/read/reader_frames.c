/*
 * bzip2, xz, lzma and lz4: a sequence of frames (called streams by two of them), each of which can be
 * entered only at its start. pbzip2, pixz and appending write many frames, the usual tools write
 * one: then a segment is read by decoding everything before it, or by continuing from the present
 * position of the decoder.
 */
#include "reader_source.h"

#include "base/err.h"

#if defined TAMIS_HAVE_BZ2 || defined TAMIS_HAVE_LZMA || defined TAMIS_HAVE_LZ4

static size_t frames_step(struct source *s, uint8_t *out, size_t room)
{
    bool more = s->in_at < s->in_len || source_fill(s);
    if (s->between) {
        /* xz files may be padded, and tapes and copies pad with zeros */
        while (more && s->out && s->in[s->in_at] == 0) {
            s->in_at++;
            more = s->in_at < s->in_len || source_fill(s);
        }
        if (!more) {
            s->ended = true;
            return 0;
        }
        if (s->out >= s->want)
            source_note(s, NULL, 0);
        if (!s->decoder->begin(s)) {
            source_damaged(s, TAMIS_ENOMEM, "no memory");
            return 0;
        }
        s->between = false;
    }
    size_t left = s->in_len - s->in_at, made = room;
    enum run result = s->decoder->run(s, s->in + s->in_at, &left, out, &made);
    s->in_at = s->in_len - left;
    s->out += made;
    s->between = result == RUN_END;
    if (result == RUN_NOMEM)
        source_damaged(s, TAMIS_ENOMEM, "no memory");
    else if (result == RUN_DAMAGED)
        source_damaged(s, TAMIS_EFORMAT, "damaged");
    else if (result == RUN_ON && !more && made == 0)
        source_damaged(s, TAMIS_EFORMAT, "the file is cut off");
    return made;
}

#endif

/* ---- bzip2 ----------------------------------------------------------------------------------- */

#ifdef TAMIS_HAVE_BZ2
#include <bzlib.h>

static bool bz2_begin(struct source *s)
{
    bz_stream *bz = s->state;
    BZ2_bzDecompressEnd(bz);
    *bz = (bz_stream){0};
    return BZ2_bzDecompressInit(bz, 0, 0) == BZ_OK;
}

static enum run bz2_run(struct source *s, const uint8_t *in, size_t *len, uint8_t *out,
                        size_t *room)
{
    bz_stream *bz = s->state;
    bz->next_in = (char *)(uintptr_t)in;
    bz->avail_in = (unsigned)*len;
    bz->next_out = (char *)out;
    bz->avail_out = *room < (1u << 30) ? (unsigned)*room : 1u << 30;
    unsigned asked = bz->avail_out;
    int result = BZ2_bzDecompress(bz);
    *len = bz->avail_in;
    *room = asked - bz->avail_out;
    return result == BZ_STREAM_END  ? RUN_END
           : result == BZ_OK        ? RUN_ON
           : result == BZ_MEM_ERROR ? RUN_NOMEM
                                    : RUN_DAMAGED;
}

static void bz2_stop(struct source *s)
{
    BZ2_bzDecompressEnd(s->state);
}

const struct decoder decoder_bz2 = {.name = "bzip2",
                                    .library = "libbz2",
                                    .step = frames_step,
                                    .stop = bz2_stop,
                                    .state = sizeof(bz_stream),
                                    .begin = bz2_begin,
                                    .run = bz2_run};
#else
const struct decoder decoder_bz2 = {.name = "bzip2", .library = "libbz2"};
#endif

/* ---- xz -------------------------------------------------------------------------------------- */

#ifdef TAMIS_HAVE_LZMA
#include <lzma.h>

#define XZ_MEMORY ((uint64_t)512 << 20) /* xz -9 needs 65 MiB */

static bool xz_begin(struct source *s)
{
    return lzma_stream_decoder(s->state, XZ_MEMORY, 0) == LZMA_OK;
}

static bool lzma_begin(struct source *s)
{
    return lzma_alone_decoder(s->state, XZ_MEMORY) == LZMA_OK;
}

static enum run xz_run(struct source *s, const uint8_t *in, size_t *len, uint8_t *out, size_t *room)
{
    lzma_stream *z = s->state;
    z->next_in = in;
    z->avail_in = *len;
    z->next_out = out;
    z->avail_out = *room;
    lzma_ret result = lzma_code(z, LZMA_RUN);
    *len = z->avail_in;
    *room -= z->avail_out;
    return result == LZMA_STREAM_END                                   ? RUN_END
           : result == LZMA_OK || result == LZMA_BUF_ERROR             ? RUN_ON
           : result == LZMA_MEM_ERROR || result == LZMA_MEMLIMIT_ERROR ? RUN_NOMEM
                                                                       : RUN_DAMAGED;
}

static void xz_stop(struct source *s)
{
    lzma_end(s->state);
}

const struct decoder decoder_xz = {.name = "xz",
                                   .library = "liblzma",
                                   .step = frames_step,
                                   .stop = xz_stop,
                                   .state = sizeof(lzma_stream),
                                   .begin = xz_begin,
                                   .run = xz_run};
const struct decoder decoder_lzma = {.name = "lzma",
                                     .library = "liblzma",
                                     .step = frames_step,
                                     .stop = xz_stop,
                                     .state = sizeof(lzma_stream),
                                     .begin = lzma_begin,
                                     .run = xz_run};
#else
const struct decoder decoder_xz = {.name = "xz", .library = "liblzma"};
const struct decoder decoder_lzma = {.name = "lzma", .library = "liblzma"};
#endif

/* ---- lz4 ------------------------------------------------------------------------------------- */

#ifdef TAMIS_HAVE_LZ4
#include <lz4frame.h>

static tamis_error lz4_start(struct source *s, const struct restart *from, tamis_reason *reason)
{
    LZ4F_dctx *context = NULL;
    (void)from;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", s->path);
    s->state = context;
    return TAMIS_OK;
}

static bool lz4_begin(struct source *s)
{
    LZ4F_resetDecompressionContext(s->state);
    return true;
}

static enum run lz4_run(struct source *s, const uint8_t *in, size_t *len, uint8_t *out,
                        size_t *room)
{
    size_t used = *len;
    size_t result = LZ4F_decompress(s->state, out, room, in, &used, NULL);
    *len -= used;
    if (LZ4F_isError(result))
        return *room = 0, RUN_DAMAGED;
    return result == 0 ? RUN_END : RUN_ON;
}

static void lz4_stop(struct source *s)
{
    LZ4F_freeDecompressionContext(s->state);
}

const struct decoder decoder_lz4 = {.name = "lz4",
                                    .library = "liblz4",
                                    .start = lz4_start,
                                    .step = frames_step,
                                    .stop = lz4_stop,
                                    .begin = lz4_begin,
                                    .run = lz4_run};
#else
const struct decoder decoder_lz4 = {.name = "lz4", .library = "liblz4"};
#endif
