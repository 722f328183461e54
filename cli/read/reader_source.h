/*
 * The bytes of a file or pipe, decompressed, from which the reader takes its text. A source can
 * start in the middle of a file, at a point that another source recorded.
 *
 * Files are read, not mapped. A mapping would save a copy (0.05 to 0.1 ns per byte, of 0.9 in
 * total), but a log that is truncated while mapped ends the program, and one that is overwritten
 * changes while it is parsed.
 */
#ifndef TAMIS_READER_SOURCE_H
#define TAMIS_READER_SOURCE_H

#include "base/base.h"
#include "raw_sums.h"
#include "reader.h"

#define SOURCE_CHUNK ((size_t)256 << 10) /* compressed bytes read at a time */
#define NEVER        UINT64_MAX

/* Where a decoder can start: byte `at` of the file is byte `out` of the text. */
struct restart {
    uint64_t at, out;
    uint8_t *blob; /* further state, from malloc; or NULL */
    size_t len;
};

struct source {
    const char *path; /* belongs to the input */
    int fd;           /* belongs to the input */
    bool regular;
    uint64_t limit;        /* number of bytes of a regular file to read */
    struct raw_sums *sums; /* checksums of what is read; or NULL */
    const struct decoder *decoder;
    struct source *packed; /* UTF-16 that is compressed: where its bytes come from, else NULL */

    uint8_t *in; /* unused bytes of the file: [in_at, in_len) */
    size_t in_at, in_len, in_room;
    uint64_t at;  /* offset in the file after them */
    uint8_t last; /* the byte before in[0] */

    uint64_t out;         /* bytes of text so far */
    uint64_t stop;        /* text to read: up to this byte, which it must reach */
    uint64_t want;        /* record the first restart point at or after this byte of the text */
    struct restart point; /* the one recorded */
    bool noted;
    bool ended;
    tamis_error error; /* why it stopped */
    tamis_reason reason;

    void *state;  /* of the decoder */
    bool returns; /* a \r is a line end: it becomes \n */
    bool between; /* gz: before a member; others: before a frame */
    bool at_once; /* zst: the output has room for the text of whole frames in `in` */
    bool raw;     /* gz: started inside a member, whose checksum cannot be verified */
    uint8_t trailer;
};

/* A kind of compression. `step` decodes up to `room` bytes and returns how many; after 0 without an error it
   is called again, unless the source has ended. It reports errors with source_damaged(). */
enum run { RUN_ON, RUN_END, RUN_DAMAGED, RUN_NOMEM };

struct decoder {
    const char *name;
    const char *library; /* it needs this one; in a build without it, only both names are set */
    size_t state; /* bytes of s->state, zeroed before `start` and freed after `stop`; 0: none */
    tamis_error (*start)(struct source *s, const struct restart *from,
                         tamis_reason *reason); /* or NULL */
    size_t (*step)(struct source *s, uint8_t *out, size_t room);
    void (*stop)(struct source *s); /* or NULL */
    /* For reader_frames.c: `begin` starts a frame; `run` decodes [in, in + *len) to `out` and stores how much
       input is left and how many bytes it wrote. */
    bool (*begin)(struct source *s);
    enum run (*run)(struct source *s, const uint8_t *in, size_t *len, uint8_t *out, size_t *room);
};

extern const struct decoder decoder_gz, decoder_zst, decoder_bz2, decoder_xz, decoder_lzma,
    decoder_lz4, decoder_utf16le, decoder_utf16be;

/* The first bytes of a source determine its kind. */
tamis_error source_kind(struct source *s, enum packing *kind, tamis_reason *reason);

struct source *source_new(const char *path, int fd, bool regular, uint64_t limit);
/* `from` NULL: at the start. */
tamis_error source_start(struct source *s, enum packing kind, const struct restart *from,
                         tamis_reason *reason);
void source_free(struct source *s);
/* The text of `packed`, which is UTF-16 of this kind; `from` as for source_start(). Owns `packed` from then
   on; NULL if there is no memory. A restart point is one of `packed` after a byte with the number of bytes of
   UTF-16 between that point and the next character. */
struct source *source_wide(struct source *packed, enum packing kind, const struct restart *from);

/* Reads up to `room` bytes of text. Fewer if it ended, with s->error if that was premature, or if a pipe has
   no more yet. */
size_t source_read(struct source *s, uint8_t *out, size_t room);

/* Why it stopped. */
tamis_error source_failed(const struct source *s, tamis_reason *reason);

/* For decoders: more bytes of the file in `in`; false: there are none. */
bool source_fill(struct source *s);
/* For decoders: the text at s->out can be reached again from here. Takes the blob. */
void source_note(struct source *s, uint8_t *blob, size_t len);
/* For decoders: the file is damaged. */
void source_damaged(struct source *s, tamis_error error, const char *what);

/* Each \r becomes \n. */
void text_returns(uint8_t *text, size_t len);

ALWAYS_INLINE uint64_t source_at(const struct source *s)
{
    s = s->packed ? s->packed : s;
    return s->at - (s->in_len - s->in_at);
}

#endif
