/*
 * bzip2, xz and lz4: a sequence of frames (called streams by two of them), each of which can be
 * entered only at its start. pbzip2, pixz and appending write many frames, the usual tools write
 * one: then a segment is read by decoding everything before it, or by continuing from the present
 * position of the decoder.
 */
#include "reader_source.h"

#include <stdlib.h>

#include "base/err.h"

#if defined TAMIS_HAVE_BZ2 || defined TAMIS_HAVE_LZMA || defined TAMIS_HAVE_LZ4

enum run { RUN_ON, RUN_END, RUN_DAMAGED, RUN_NOMEM };

/* Decodes [*in, *in + *len) to `out`; returns the rest of the input and the number of bytes
   made. */
typedef enum run (*run_fn)(struct source *s, const uint8_t **in, size_t *len, uint8_t *out,
                           size_t *room);

/* The text of the frames, each started with begin(). */
static size_t frames_step(struct source *s, uint8_t *out, size_t room,
                          bool (*begin)(struct source *), run_fn run)
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
        if (!begin(s)) {
            source_damaged(s, TAMIS_ENOMEM, "no memory");
            return 0;
        }
        s->between = false;
    }
    const uint8_t *in = s->in + s->in_at;
    size_t left = s->in_len - s->in_at, made = room;
    enum run result = run(s, &in, &left, out, &made);
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

/* The state of a decoder, zeroed. */
static tamis_error frames_start(struct source *s, size_t size, tamis_reason *reason)
{
    s->state = calloc(1, size);
    return s->state ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", s->path);
}

#endif

#define ABSENT(name, library)                                                             \
    static tamis_error name##_none(struct source *s, const struct restart *from,          \
                                   tamis_reason *reason)                                  \
    {                                                                                     \
        (void)from;                                                                       \
        return fail(reason, TAMIS_EKIND, "%.120s: this tamis was built without " library, \
                    s->path);                                                             \
    }                                                                                     \
    const struct decoder decoder_##name = {#name, name##_none, NULL, NULL};

/* ---- bzip2 ----------------------------------------------------------------------------------- */

#ifdef TAMIS_HAVE_BZ2
#include <bzlib.h>

static tamis_error bz2_start(struct source *s, const struct restart *from, tamis_reason *reason)
{
    (void)from;
    return frames_start(s, sizeof(bz_stream), reason);
}

static bool bz2_begin(struct source *s)
{
    bz_stream *bz = s->state;
    BZ2_bzDecompressEnd(bz);
    *bz = (bz_stream){0};
    return BZ2_bzDecompressInit(bz, 0, 0) == BZ_OK;
}

static enum run bz2_run(struct source *s, const uint8_t **in, size_t *len, uint8_t *out,
                        size_t *room)
{
    bz_stream *bz = s->state;
    bz->next_in = (char *)(uintptr_t)*in;
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

static size_t bz2_step(struct source *s, uint8_t *out, size_t room)
{
    return frames_step(s, out, room, bz2_begin, bz2_run);
}

static void bz2_stop(struct source *s)
{
    BZ2_bzDecompressEnd(s->state);
    free(s->state);
}

const struct decoder decoder_bz2 = {"bzip2", bz2_start, bz2_step, bz2_stop};
#else
ABSENT(bz2, "libbz2")
#endif

/* ---- xz -------------------------------------------------------------------------------------- */

#ifdef TAMIS_HAVE_LZMA
#include <lzma.h>

#define XZ_MEMORY ((uint64_t)512 << 20) /* xz -9 needs 65 MiB */

static tamis_error xz_start(struct source *s, const struct restart *from, tamis_reason *reason)
{
    (void)from;
    return frames_start(s, sizeof(lzma_stream), reason);
}

static bool xz_begin(struct source *s)
{
    return lzma_stream_decoder(s->state, XZ_MEMORY, 0) == LZMA_OK;
}

static enum run xz_run(struct source *s, const uint8_t **in, size_t *len, uint8_t *out,
                       size_t *room)
{
    lzma_stream *z = s->state;
    z->next_in = *in;
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

static size_t xz_step(struct source *s, uint8_t *out, size_t room)
{
    return frames_step(s, out, room, xz_begin, xz_run);
}

static void xz_stop(struct source *s)
{
    lzma_end(s->state);
    free(s->state);
}

const struct decoder decoder_xz = {"xz", xz_start, xz_step, xz_stop};
#else
ABSENT(xz, "liblzma")
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

static enum run lz4_run(struct source *s, const uint8_t **in, size_t *len, uint8_t *out,
                        size_t *room)
{
    size_t used = *len;
    size_t result = LZ4F_decompress(s->state, out, room, *in, &used, NULL);
    *len -= used;
    if (LZ4F_isError(result))
        return *room = 0, RUN_DAMAGED;
    return result == 0 ? RUN_END : RUN_ON;
}

static size_t lz4_step(struct source *s, uint8_t *out, size_t room)
{
    return frames_step(s, out, room, lz4_begin, lz4_run);
}

static void lz4_stop(struct source *s)
{
    LZ4F_freeDecompressionContext(s->state);
}

const struct decoder decoder_lz4 = {"lz4", lz4_start, lz4_step, lz4_stop};
#else
ABSENT(lz4, "liblz4")
#endif
