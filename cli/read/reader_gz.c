/*
 * gzip, by ISA-L, which inflates logs 2.6 times as fast as zlib. A member can be entered at the end of any
 * deflate block, given the 32 KiB of text before it and the bits of the byte in which the block ends (as in
 * zlib's example zran.c). A restart point stores:
 *
 *     0  u8   1, the version of these bytes
 *     1  u8   bits of the byte before `at` that belong to the next block
 *     2  u8   those bits, the highest of a byte
 *     3  u8   0
 *     4  u32  length of the text before, little-endian, up to 32768
 *     8  …    that text, zlib
 *
 * ISA-L does not stop at the end of a block, but it stops within the header of the next one if the input
 * ends there, and then the header has yet to be read: all of its bits are in `read_in` and `tmp_in_buffer`.
 * So when a point is needed the input is given in pieces that are shorter than nearly all headers of text;
 * a shorter header is missed unless a piece ends within it, and then a later one will do. A call costs 1 µs
 * whatever its length, and a block has some 20 KB, so leaps come first: a leap whose codes changed passed the
 * end of a block, and is taken back and repeated in shorter ones. Everything else is inflated at once.
 */
#include "reader_source.h"

#include <stdlib.h>

#include "base/err.h"

#ifdef TAMIS_HAVE_ISAL

#include <isa-l/igzip_lib.h>

#define WINDOW   32768
#define BLOB_LEN 8
#define GZ_PIECE 32 /* headers of access logs have 32 to 60 bytes */
#define PACKED   (WINDOW + 256)
#define LEAP     4096 /* a multiple of SHORT, as that is of GZ_PIECE */
#define SHORT    512

struct gz {
    struct inflate_state z;
    struct isal_gzip_header head;
    bool heading; /* in the header of a member */
    int result;   /* of z; an error comes after the text before it */
    /* In search of a point: */
    size_t leap;                 /* input to decode at once; 0: LEAP */
    size_t suspect;              /* bytes of input in which a block ends, if leap < LEAP */
    struct inflate_state before; /* the leap */
};

/* Text that the decoder holds back because there is no room for it. */
static size_t gz_held(const struct inflate_state *z)
{
    return z->tmp_out_valid - z->tmp_out_processed;
}

static tamis_error gz_enter(struct source *s, struct inflate_state *z, const struct restart *from)
{
    uint8_t window[WINDOW], b[BLOB_LEN]; /* a copy, since it may be in a mapped catalog */
    if (from->len < BLOB_LEN || from->len > BLOB_LEN + PACKED)
        return TAMIS_EFORMAT;
    memcpy(b, from->blob, BLOB_LEN);
    uint32_t want = b[4] | (uint32_t)b[5] << 8 | (uint32_t)b[6] << 16 | (uint32_t)b[7] << 24;
    isal_inflate_init(z);
    z->crc_flag = ISAL_ZLIB;
    z->next_in = from->blob + BLOB_LEN;
    z->avail_in = (uint32_t)(from->len - BLOB_LEN);
    z->next_out = window;
    z->avail_out = WINDOW;
    if (b[0] != 1 || b[1] > 7 || isal_inflate_stateless(z) != ISAL_DECOMP_OK ||
        z->total_out != want)
        return TAMIS_EFORMAT;
    isal_inflate_init(z);
    z->read_in = b[2] >> (8 - b[1]);
    z->read_in_length = b[1];
    isal_inflate_set_dict(z, window, want);
    s->raw = true;
    s->between = false;
    return TAMIS_OK;
}

static tamis_error gz_start(struct source *s, const struct restart *from, tamis_reason *reason)
{
    if (!from || gz_enter(s, s->state, from) == TAMIS_OK)
        return TAMIS_OK;
    return fail_at(reason, TAMIS_EFORMAT, from->at, "%.120s: the restart point is damaged",
                   s->path);
}

/* The length of a window that is packed to `out`; 0: no memory. */
static size_t gz_pack(const uint8_t *window, size_t len, uint8_t *out)
{
    struct {
        struct isal_zstream z;
        uint8_t level[ISAL_DEF_LVL1_MEDIUM];
    } *work = calloc(1, sizeof *work); /* the hash table in it decides how well it packs */
    if (!work)
        return 0;
    struct isal_zstream *z = &work->z;
    isal_deflate_stateless_init(z);
    z->level = 1;
    z->level_buf = work->level;
    z->level_buf_size = sizeof work->level;
    z->gzip_flag = IGZIP_ZLIB;
    z->end_of_stream = 1;
    z->next_in = (uint8_t *)(uintptr_t)window;
    z->avail_in = (uint32_t)len;
    z->next_out = out;
    z->avail_out = PACKED;
    size_t packed = isal_deflate_stateless(z) == COMP_OK ? z->total_out : 0;
    free(work);
    return packed;
}

/* Records a point at the end of a block. If there is no memory there is no point, and the
   segment becomes longer. */
static void gz_note(struct source *s, const struct inflate_state *z)
{
    size_t len = z->tmp_out_valid < WINDOW ? z->tmp_out_valid : WINDOW, packed = 0;
    unsigned bits = (unsigned)z->read_in_length % 8;
    uint8_t *blob = malloc(BLOB_LEN + PACKED);
    if (blob)
        packed = gz_pack(z->tmp_out_buffer + z->tmp_out_valid - len, len, blob + BLOB_LEN);
    if (packed == 0) {
        free(blob);
        return;
    }
    const uint8_t head[BLOB_LEN] = {1,
                                    (uint8_t)bits,
                                    (uint8_t)(z->read_in << (8 - bits)),
                                    0,
                                    (uint8_t)len,
                                    (uint8_t)(len >> 8),
                                    (uint8_t)(len >> 16),
                                    0};
    memcpy(blob, head, BLOB_LEN);
    source_note(s, blob, BLOB_LEN + packed);
    s->point.at -= z->tmp_in_size + (unsigned)z->read_in_length / 8;
}

/* Zeros may follow the last member: tapes and some copies are padded with them. */
static void gz_padding(struct source *s)
{
    do {
        for (; s->in_at < s->in_len; s->in_at++)
            if (s->in[s->in_at] != 0) {
                source_damaged(s, TAMIS_EFORMAT, "data after the last member is not gzip");
                return;
            }
    } while (source_fill(s));
    s->ended = true;
}

/* Between members: the next one, or the end. */
static void gz_between(struct source *s, struct gz *g)
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
    isal_inflate_init(&g->z);
    isal_gzip_header_init(&g->head);
    g->z.crc_flag = ISAL_GZIP_NO_HDR_VER;
    g->heading = true;
    s->raw = s->between = false;
    if (s->out >= s->want)
        source_note(s, NULL, 0);
}

static const char *gz_complaint(int result)
{
    switch (result) {
    case ISAL_INVALID_BLOCK:
        return "invalid block";
    case ISAL_INVALID_SYMBOL:
        return "invalid code";
    case ISAL_INVALID_LOOKBACK:
        return "invalid distance";
    case ISAL_INCORRECT_CHECKSUM:
        return "incorrect checksum";
    case ISAL_UNSUPPORTED_METHOD:
        return "unknown compression method";
    default:
        return "damaged";
    }
}

/* Gives `len` bytes of input to the decoder, and sets g->result. */
static size_t gz_inflate(struct source *s, struct gz *g, size_t len, uint8_t *out, size_t room)
{
    struct inflate_state *z = &g->z;
    z->next_in = s->in + s->in_at;
    z->avail_in = (uint32_t)len;
    z->next_out = out;
    z->avail_out = (uint32_t)room;
    if (g->heading) {
        g->result = isal_read_gzip_header(z, &g->head);
        g->heading = g->result != ISAL_DECOMP_OK;
    } else {
        g->result = isal_inflate(z);
    }
    s->in_at += len - z->avail_in;
    if (!g->heading && z->block_state == ISAL_BLOCK_FINISH) {
        s->between = true; /* raw: up to 8 bytes of the trailer are among the bits read ahead */
        s->trailer = s->raw ? (uint8_t)(8 - z->read_in_length / 8) : 0;
    }
    return room - z->avail_out;
}

/* Gives `len` bytes to the decoder, all within one block; false: they are not, or it is not known, and nothing
   was done. */
static bool gz_leap(struct source *s, struct gz *g, size_t len, uint8_t *out, size_t room,
                    size_t *made)
{
    struct inflate_state *z = &g->z, *old = &g->before;
    size_t at = s->in_at;
    int result = g->result;
    if (g->heading || z->block_state != ISAL_BLOCK_CODED)
        return false;
    *old = *z;
    *made = gz_inflate(s, g, len, out, room);
    if (g->result >= 0 && !gz_held(z) && z->avail_in == 0 && z->block_state == ISAL_BLOCK_CODED &&
        memcmp(&z->lit_huff_code, &old->lit_huff_code, sizeof z->lit_huff_code) == 0 &&
        memcmp(&z->dist_huff_code, &old->dist_huff_code, sizeof z->dist_huff_code) == 0)
        return true;
    *z = *old;
    s->in_at = at;
    s->between = false;
    s->trailer = 0;
    g->result = result;
    return false;
}

/* Gives input to the decoder so that it stops at the end of a block, sooner or later. */
static size_t gz_search(struct source *s, struct gz *g, size_t len, uint8_t *out, size_t room)
{
    size_t made = 0, step = 0;
    if (!g->leap)
        g->leap = LEAP;
    for (; g->leap > GZ_PIECE; g->leap = g->leap == LEAP ? SHORT : GZ_PIECE, g->suspect = step) {
        step = len < g->leap ? len : g->leap;
        if (gz_leap(s, g, step, out, room, &made))
            break;
    }
    if (g->leap == GZ_PIECE) {
        step = len < GZ_PIECE ? len : GZ_PIECE;
        made = gz_inflate(s, g, step, out, room);
    }
    g->suspect -= g->suspect < step ? g->suspect : step;
    if (g->suspect == 0) /* its end was missed */
        g->leap = LEAP;
    return made;
}

static size_t gz_step(struct source *s, uint8_t *out, size_t room)
{
    struct gz *g = s->state;
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
            gz_between(s, g);
        return 0;
    }
    bool search = s->out >= s->want;
    size_t held = gz_held(&g->z), len = s->in_len - s->in_at, made;
    if (search && !held && g->z.block_state == ISAL_BLOCK_HDR) {
        gz_note(s, &g->z);
        s->want = NEVER;
        g->leap = 0;
        search = false;
    }
    if (!search && s->want - s->out < room)
        room = (size_t)(s->want - s->out);
    room = room < (1u << 30) ? room : 1u << 30;
    if (g->result < 0) {
        made = held < room ? held : room;
        memcpy(out, g->z.tmp_out_buffer + g->z.tmp_out_processed, made);
        g->z.tmp_out_processed += (uint32_t)made;
    } else if (search && !held) {
        made = gz_search(s, g, len, out, room);
    } else {
        made = gz_inflate(s, g, search ? 0 : len, out, room);
    }
    s->out += made;
    if (g->result < 0 && gz_held(&g->z) == 0)
        source_damaged(s, TAMIS_EFORMAT, gz_complaint(g->result));
    else if (!more && made == 0 && !s->between)
        source_damaged(s, TAMIS_EFORMAT, "the file is cut off");
    return made;
}

const struct decoder decoder_gz = {.name = "gzip",
                                   .library = "libisal",
                                   .state = sizeof(struct gz),
                                   .start = gz_start,
                                   .step = gz_step};

#else

const struct decoder decoder_gz = {.name = "gzip", .library = "libisal"};

#endif
