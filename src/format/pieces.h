/*
 * The one writer of bytes and the one validator. Both go from front to back, either with all bytes
 * at once (files, messages, values that are saved) or a piece at a time, for a program that may not
 * block for long (a server with one thread): the work per call is then bounded by the size of the
 * piece, and there is no second copy of the bytes.
 */
#ifndef TAMIS_FORMAT_PIECES_H
#define TAMIS_FORMAT_PIECES_H

#include "set/any_set.h"

/* All at once, like tamis_filter_encode. */
tamis_error set_encode(const struct set *s, unsigned flags, tamis_write write, void *context);
uint64_t set_encoded_size(const struct set *s, unsigned flags);

/* Everything except vectors and tables (large counters, pending removals), and the header, is
   buffered, up to this many bytes. A set with more can only be written as a whole. */
#define PIECES_ASIDE ((uint64_t)16 << 20)

/* ---- out: pieces_out.c ----
 *
 * No pointer to the set is kept between calls; each call gets it again. It must not have changed since
 * pieces_out_begin, except by adds after pieces_keep.
 */
struct pieces_out;

/* The first call of pieces_out_read returns at least this many bytes; pieces_in knows after that
   many whether the family key is right, so the first piece should contain them. */
#define PIECES_HEAD 128

/* Flags: TAMIS_SAVE_NO_KEY or none. EKIND: it can only be written as a whole. */
tamis_error pieces_out_begin(struct pieces_out **out, const struct set *s, unsigned flags);
void pieces_out_end(struct pieces_out *out);
uint64_t pieces_out_size(const struct pieces_out *out);
/* The bytes from `at` on, at most `room` (at least 64 KiB): the next ones, or the last ones
   again. EARG: any others. 0 bytes: the end, or counters or a table were scanned and there is
   more. */
tamis_error pieces_out_read(struct pieces_out *out, const struct set *s, uint64_t at, void *to,
                            size_t room, size_t *len);

/* From now on, changes by adds are recorded, so that the bits of this moment can still be read;
   other changes are not allowed. False: not possible, or no memory. */
bool pieces_keep(struct set *s);
void pieces_keep_end(struct set *s);

/* ---- in: pieces_in.c ----
 *
 * Untrusted bytes, in pieces. They are stored where they will be used, and checked as they arrive; after
 * an error only pieces_in_free may be called.
 */
struct pieces_in;

/* The length that the first bytes of a structure (64 or more) state; 0: not a structure. */
uint64_t pieces_total(const void *data, size_t len);
/* For a structure of `total` bytes, of which it buffers up to `aside`; NULL if there is no
   memory. The key of the options (may be NULL) is for structures that were saved without theirs;
   the result has it, and is saved with it. */
struct pieces_in *pieces_in_begin(uint64_t total, uint64_t aside,
                                  const tamis_open_options *options);
tamis_error pieces_in_add(struct pieces_in *in, const void *data, size_t len, tamis_reason *reason);
uint64_t pieces_in_total(const struct pieces_in *in); /* bytes that there will be, */
uint64_t pieces_in_have(const struct pieces_in *in);  /* and those received so far */
/* All bytes were received: the result; `in` must still be freed. */
tamis_error pieces_in_end(struct pieces_in *in, struct set **out, tamis_reason *reason);
void pieces_in_free(struct pieces_in *in);
/* The key of the options, NULL if there was none; and whether the bytes need it (false before
   PIECES_HEAD of them were received). */
const uint8_t *pieces_in_key(const struct pieces_in *in);
bool pieces_in_keyless(const struct pieces_in *in);
/* Bytes without their key make a value that is saved with it; call it before they are received. */
void pieces_in_adopt(struct pieces_in *in);
/* Writes the received bytes again. */
tamis_error pieces_in_encode(const struct pieces_in *in, tamis_write write, void *context);
/* Memory: of the result, known from the header on, and of everything so far. */
uint64_t pieces_in_makes(const struct pieces_in *in);
size_t pieces_in_bytes(const struct pieces_in *in);

#endif
