/*
 * gzip. A member can be entered at the end of any deflate block, given the 32 KiB of text before it
 * and the bits of the byte in which the block ends (as in zlib's example zran.c). A restart point stores:
 *
 *     0  u8   1, the version of these bytes
 *     1  u8   bits of the byte before `at` that belong to the next block
 *     2  u8   that byte
 *     3  u8   0
 *     4  u32  length of the text before, little-endian, up to 32768
 *     8  …    that text, zlib
 *
 * The ends of blocks are searched only when a point is needed; everything else is inflated at once.
 */
#include "reader_source.h"

#include <stdlib.h>

#include "base/err.h"

#ifdef TAMIS_HAVE_ZLIB

#include <zlib.h>

#define WINDOW   32768
#define BLOB_LEN 8

static tamis_error gz_enter(struct source *s, z_stream *z, const struct restart *from)
{
    uint8_t window[WINDOW], b[BLOB_LEN]; /* a copy, since it may be in a mapped catalog */
    if (from->len < BLOB_LEN)
        return TAMIS_EFORMAT;
    memcpy(b, from->blob, BLOB_LEN);
    if (b[0] != 1 || b[1] > 7)
        return TAMIS_EFORMAT;
    uLong want = b[4] | (uLong)b[5] << 8 | (uLong)b[6] << 16 | (uLong)b[7] << 24;
    uLongf len = WINDOW;
    if (want > WINDOW ||
        uncompress(window, &len, from->blob + BLOB_LEN, from->len - BLOB_LEN) != Z_OK ||
        len != want)
        return TAMIS_EFORMAT;
    if (b[1] && inflatePrime(z, b[1], b[2] >> (8 - b[1])) != Z_OK)
        return TAMIS_EFORMAT;
    if (inflateSetDictionary(z, window, (uInt)len) != Z_OK)
        return TAMIS_EFORMAT;
    s->raw = true;
    s->between = false;
    return TAMIS_OK;
}

static tamis_error gz_start(struct source *s, const struct restart *from, tamis_reason *reason)
{
    z_stream *z = calloc(1, sizeof *z);
    if (!z || inflateInit2(z, from ? -15 : 31) != Z_OK) {
        free(z);
        return fail(reason, TAMIS_ENOMEM, "no memory to inflate %.120s", s->path);
    }
    s->state = z;
    tamis_error error = from ? gz_enter(s, z, from) : TAMIS_OK;
    if (error != TAMIS_OK) {
        inflateEnd(z);
        free(z);
        s->state = NULL;
        return fail_at(reason, error, from->at, "%.120s: the restart point is damaged", s->path);
    }
    return TAMIS_OK;
}

static void gz_stop(struct source *s)
{
    inflateEnd(s->state);
    free(s->state);
}

/* Records a point at the end of a block. If there is no memory there is no point, and the
   segment becomes longer. */
static void gz_note(struct source *s, z_stream *z)
{
    uint8_t window[WINDOW];
    uInt len = 0;
    if (inflateGetDictionary(z, window, &len) != Z_OK)
        return;
    uLongf packed = compressBound(len);
    uint8_t *blob = malloc(BLOB_LEN + packed);
    if (!blob || compress2(blob + BLOB_LEN, &packed, window, len, 6) != Z_OK) {
        free(blob);
        return;
    }
    uint8_t byte = s->in_at ? s->in[s->in_at - 1] : s->last;
    const uint8_t head[BLOB_LEN] = {1,
                                    (uint8_t)(z->data_type & 7),
                                    byte,
                                    0,
                                    (uint8_t)len,
                                    (uint8_t)(len >> 8),
                                    (uint8_t)(len >> 16),
                                    0};
    memcpy(blob, head, BLOB_LEN);
    source_note(s, blob, BLOB_LEN + packed);
}

/* Zeros may follow the last member: tapes and some copies are padded with them. */
static void gz_padding(struct source *s)
{
    do {
        for (; s->in_at < s->in_len; s->in_at++)
            if (s->in[s->in_at] != 0) {
                source_damaged(s, TAMIS_EFORMAT, "what follows the last member is none");
                return;
            }
    } while (source_fill(s));
    s->ended = true;
}

/* Between members: the next one, or the end. */
static void gz_between(struct source *s, z_stream *z)
{
    while (s->in_len - s->in_at < 2 && source_fill(s))
        ;
    if (s->in_at == s->in_len) {
        s->ended = true;
        return;
    }
    const uint8_t *magic = s->in + s->in_at;
    if (s->in_len - s->in_at < 2 || magic[0] != 0x1F || magic[1] != 0x8B) {
        gz_padding(s);
        return;
    }
    inflateReset2(z, 31);
    s->raw = s->between = false;
    if (s->out >= s->want)
        source_note(s, NULL, 0);
}

static void gz_after(struct source *s, z_stream *z, int result, bool blocks)
{
    if (result == Z_STREAM_END) {
        s->between = true;
        s->trailer = s->raw ? 8 : 0;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
        source_damaged(s, result == Z_MEM_ERROR ? TAMIS_ENOMEM : TAMIS_EFORMAT,
                       z->msg ? z->msg : "damaged");
    } else if (blocks && (z->data_type & 128) && !(z->data_type & 64) && s->out >= s->want) {
        gz_note(s, z);
    }
}

static size_t gz_step(struct source *s, uint8_t *out, size_t room)
{
    z_stream *z = s->state;
    bool more = s->in_at < s->in_len || source_fill(s);
    if (s->trailer && more) {
        s->trailer--;
        s->in_at++;
        return 0;
    }
    if (s->between) {
        if (s->trailer)
            source_damaged(s, TAMIS_EFORMAT, "the file is cut off");
        else
            gz_between(s, z);
        return 0;
    }
    bool blocks = s->out >= s->want;
    if (!blocks && s->want - s->out < room)
        room = (size_t)(s->want - s->out);
    room = room < (1u << 30) ? room : 1u << 30;
    z->next_in = s->in + s->in_at;
    z->avail_in = (uInt)(s->in_len - s->in_at);
    z->next_out = out;
    z->avail_out = (uInt)room;
    int result = inflate(z, blocks ? Z_BLOCK : Z_NO_FLUSH);
    size_t made = room - z->avail_out;
    s->in_at = s->in_len - z->avail_in;
    s->out += made;
    gz_after(s, z, result, blocks);
    if (!more && made == 0 && !s->between) { /* zlib may have held back some text, but has none */
        if (!blocks)
            source_damaged(s, TAMIS_EFORMAT, "the file is cut off");
        s->want = NEVER;
    }
    return made;
}

const struct decoder decoder_gz = {
    .name = "gzip", .start = gz_start, .step = gz_step, .stop = gz_stop};

#else

const struct decoder decoder_gz = {.name = "gzip", .library = "zlib"};

#endif
