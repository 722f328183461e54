/*
 * What the tests of the reader share: records as text, files written and read. All of it is here,
 * since only they link with the reader and the compression libraries.
 */
#ifndef TAMIS_TESTS_READER_HELP_H
#define TAMIS_TESTS_READER_HELP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "read/reader_parse.h"

/* Text that grows. */
struct buf {
    char *data;
    size_t len, room;
};

#define SHOW_RAW   1 /* the record itself too */
#define SHOW_PLACE 2 /* its offset and line too */
#define SHOW_ALL   4 /* whether it is unfit, its values even if it is bad, elements of lists */

static inline void die(const char *what)
{
    fprintf(stderr, "reader_help: %s\n", what);
    abort();
}

static inline void buf_add(struct buf *buf, const void *data, size_t len)
{
    if (buf->len + len + 1 > buf->room) {
        buf->room = 2 * (buf->len + len + 1);
        buf->data = realloc(buf->data, buf->room);
        if (!buf->data)
            die("no memory");
    }
    if (len)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

static inline void buf_say(struct buf *buf, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_add(buf, text, (size_t)len);
}

static inline void buf_free(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}

static inline void show_bytes(struct buf *out, const uint8_t *data, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        uint8_t c = data[i];
        if (c >= ' ' && c < 127 && c != '|' && c != '~' && c != '\\')
            buf_add(out, &data[i], 1);
        else
            buf_add(out, (char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
    }
}

/*
 * The records of a text, one a line: its values with | between, bytes that are not plain as \xHH,
 * a missing one ~, an empty one nothing, and "bad: why" for a bad one.
 */
static inline void show_records(struct buf *out, const struct selection *selection,
                                const uint8_t *data, size_t len, unsigned what, uint64_t offset,
                                uint64_t line, const struct input_text *text)
{
    struct parser *parser = parser_new();
    struct record r;
    enum parsed kind;
    if (!parser || parser_begin(parser, selection, data, len) != TAMIS_OK)
        die("parser_begin");
    if (text)
        parser_context(parser, text);
    while ((kind = parser_next(parser, &r)) != PARSED_END) {
        if (kind == PARSED_NOMEM)
            die("no memory");
        if (what & SHOW_PLACE)
            buf_say(out, "%llu:%llu ", (unsigned long long)(offset + (uint64_t)(r.data - data)),
                    (unsigned long long)(line + parser_line(parser)));
        if (what & SHOW_RAW) {
            buf_say(out, "[");
            show_bytes(out, r.data, r.len + r.end_len);
            buf_say(out, "] ");
        }
        if (kind == PARSED_BAD)
            buf_say(out, "bad: %s", r.complaint);
        if (what & SHOW_ALL && r.unfit)
            buf_say(out, "unfit ");
        for (size_t i = 0; (kind == PARSED_RECORD || what & SHOW_ALL) && i < selection->n; i++) {
            const struct read_value *v = &r.values[i];
            if (i)
                buf_add(out, "|", 1);
            for (; v; v = what & SHOW_ALL ? v->next : NULL) {
                if (v->state == VALUE_MISSING)
                    buf_add(out, "~", 1);
                else if ((v->state == VALUE_EMPTY) != (v->len == 0))
                    buf_say(out, "state!");
                show_bytes(out, v->data, v->len);
                buf_say(out, v->next && what & SHOW_ALL ? "+" : "");
            }
        }
        buf_add(out, "\n", 1);
    }
    parser_free(parser);
}

/* Attributes separated by blanks. */
static inline struct selection *select_words(const struct dialect *dialect, const char *attributes,
                                             const void *header, size_t header_len)
{
    char *words = strdup(attributes), *save = NULL;
    const char *names[64];
    size_t n = 0;
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        names[n++] = w;
    struct selection *s = NULL;
    tamis_reason reason = {0};
    if (selection_new(&s, dialect, names, n, header, header_len, &reason) != TAMIS_OK)
        die(reason.text);
    free(words);
    return s;
}

/* The records of a text that is one segment; header NULL: none. */
static inline char *show_text(enum read_format format, const char *attributes, const char *header,
                              const void *data, size_t len)
{
    struct dialect dialect = {.format = format, .headless = !header};
    struct selection *s = select_words(&dialect, attributes, header, header ? strlen(header) : 0);
    struct buf out = {0};
    /* A copy of just the size, so that the sanitizers see what is read beyond. */
    uint8_t *copy = malloc(len ? len : 1);
    if (len)
        memcpy(copy, data, len);
    buf_add(&out, "", 0);
    show_records(&out, s, copy, len, 0, 0, 1, NULL);
    free(copy);
    selection_free(s);
    return out.data;
}

static inline void write_file(const char *path, const void *data, size_t len)
{
    remove(path); /* a file cut to nothing is flushed to the disk when it is closed */
    FILE *f = fopen(path, "wb");
    if (!f || (len && fwrite(data, 1, len, f) != len) || fclose(f) != 0)
        die("cannot write a file");
}

/* Opens a file, goes through its segments, shows their records. `texts` gets the bytes of all
   segments; *n the number of segments. The error it ended with. */
static inline tamis_error show_input(struct buf *out, struct buf *texts, const char *path,
                                     const struct input_options *options, const char *attributes,
                                     unsigned what, size_t *n, tamis_reason *reason)
{
    struct input *input;
    tamis_error error = input_open(&input, path, options, reason);
    if (error != TAMIS_OK)
        return error;
    struct selection *s =
        select_words(&input->dialect, attributes, input->header, input->header_len);
    struct input_text text = {0};
    struct input_segment segment;
    bool more;
    size_t count = 0;
    while ((error = input_next(input, &segment, &text, &more, reason)) == TAMIS_OK && more) {
        count++;
        if (texts)
            buf_add(texts, text.data, text.len);
        if (out)
            show_records(out, s, text.data, text.len, what, segment.offset, segment.line, &text);
        input_segment_free(&segment);
    }
    if (n)
        *n = count;
    input_text_free(&text);
    selection_free(s);
    input_close(input);
    return error;
}

static inline void gz_member(struct buf *out, const uint8_t *data, size_t len, size_t flush)
{
    z_stream z = {0};
    uint8_t packed[4096];
    if (deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        die("deflate");
    int result = Z_OK;
    size_t done = 0;
    while (result != Z_STREAM_END) {
        size_t some = flush && len - done > flush ? flush : len - done;
        int how = done + some == len ? Z_FINISH : Z_BLOCK;
        z.next_in = (uint8_t *)(uintptr_t)(data + done);
        z.avail_in = (uInt)some;
        do {
            z.next_out = packed;
            z.avail_out = sizeof packed;
            result = deflate(&z, how);
            buf_add(out, packed, sizeof packed - z.avail_out);
        } while (z.avail_out == 0);
        done += some;
    }
    deflateEnd(&z);
}

/* gzip members of `part` bytes of text each (0: one for all), with a block end after each `flush`
   bytes (0: as zlib likes). */
static inline void pack_gz(struct buf *out, const void *data, size_t len, size_t part, size_t flush)
{
    size_t done = 0;
    do {
        size_t some = part && len - done > part ? part : len - done;
        gz_member(out, (const uint8_t *)data + done, some, flush);
        done += some;
    } while (done < len);
}

/* zstd frames of `part` bytes of text each (0: one for all). */
static inline void pack_zst(struct buf *out, const void *data, size_t len, size_t part)
{
    size_t done = 0;
    do {
        size_t some = part && len - done > part ? part : len - done;
        size_t room = ZSTD_compressBound(some);
        uint8_t *packed = malloc(room);
        size_t made = ZSTD_compress(packed, room, (const uint8_t *)data + done, some, 3);
        if (ZSTD_isError(made))
            die("zstd");
        buf_add(out, packed, made);
        free(packed);
        done += some;
    } while (done < len);
}

static inline size_t pack_lzma(uint8_t *out, size_t room, const uint8_t *data, size_t len)
{
    lzma_stream z = LZMA_STREAM_INIT;
    lzma_options_lzma options;
    if (lzma_lzma_preset(&options, 0) || lzma_alone_encoder(&z, &options) != LZMA_OK)
        die("lzma");
    z.next_in = data;
    z.avail_in = len;
    z.next_out = out;
    z.avail_out = room;
    if (lzma_code(&z, LZMA_FINISH) != LZMA_STREAM_END)
        die("lzma");
    lzma_end(&z);
    return room - z.avail_out;
}

/* The same with bzip2, xz, lzma and lz4. */
static inline void pack_frames(struct buf *out, enum packing kind, const void *data, size_t len,
                               size_t part)
{
    size_t done = 0;
    do {
        size_t some = part && len - done > part ? part : len - done, made = 0;
        size_t room = some + some / 8 + 65536;
        uint8_t *packed = malloc(room), *from = (uint8_t *)(uintptr_t)data + done;
        unsigned made_bz2 = (unsigned)room;
        if (kind == PACK_BZIP2) {
            if (BZ2_bzBuffToBuffCompress((char *)packed, &made_bz2, (char *)from, (unsigned)some, 1,
                                         0, 0) != BZ_OK)
                die("bzip2");
            made = made_bz2;
        } else if (kind == PACK_XZ) {
            if (lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, from, some, packed, &made,
                                        room) != LZMA_OK)
                die("xz");
        } else if (kind == PACK_LZMA) {
            made = pack_lzma(packed, room, from, some);
        } else {
            made = LZ4F_compressFrame(packed, room, from, some, NULL);
            if (LZ4F_isError(made))
                die("lz4");
        }
        buf_add(out, packed, made);
        free(packed);
        done += some;
    } while (done < len);
}

#endif
