/*
 * The one writer of bytes and the one validator. Both go from front to back, with all of the bytes in one
 * piece (files, messages, values that are saved) or a piece at a time, for a program that may not stop
 * for long (a server with one thread): then the work in each call is bounded by the size of the piece,
 * and there is no second copy of the bytes.
 */
#ifndef TAMIS_FORMAT_PIECES_H
#define TAMIS_FORMAT_PIECES_H

#include "set/any_set.h"

/* At once: as tamis_filter_encode. */
tamis_error set_encode(const struct set *s, unsigned flags, tamis_write write, void *context);
uint64_t set_encoded_size(const struct set *s, unsigned flags);

/* What is not vectors and tables (large counters, pending removals) is kept aside, and so is the
   header: up to so many bytes. What has more goes as a whole only. */
#define PIECES_ASIDE ((uint64_t)16 << 20)

/* ---- out: pieces_out.c ----
 *
 * Nothing of the whole is held between calls; each gets it anew. It may not have changed since
 * pieces_out_begin, but for what was added after pieces_keep.
 */
struct pieces_out;

/* The first call of out brings at least so many bytes; from as many of them in, whether the family key
   is the right one is known: the first piece should have them. */
#define PIECES_HEAD 128

/* Flags: TAMIS_SAVE_NO_KEY or none. EKIND: it can be written as a whole only. */
tamis_error pieces_out_begin(struct pieces_out **out, const struct set *s, unsigned flags);
void pieces_out_end(struct pieces_out *out);
uint64_t pieces_out_size(const struct pieces_out *out);
/* The bytes from `at` on, at most `room` (from 64 KiB on): in turn, or the last ones again. EARG: not
   these. 0 bytes: the end, or counters or a table were looked through and there is more. */
tamis_error pieces_out_read(struct pieces_out *out, const struct set *s, uint64_t at, void *to,
                            size_t room, size_t *len);

/* From now on what adding changes is remembered, so that the bits of this moment can still be read;
   and no more. False: it cannot be, or there is no memory. */
bool pieces_keep(struct set *s);
void pieces_keep_end(struct set *s);

/* ---- in: pieces_in.c ----
 *
 * Bytes from anywhere, in pieces. They go to where they will be used, and are checked as they come;
 * after an error nothing but pieces_in_free may follow.
 */
struct pieces_in;

/* The length that the first bytes of a structure (64 or more) state; 0: they begin none. */
uint64_t pieces_total(const void *data, size_t len);
/* For a structure of `total` bytes, of which it keeps up to `aside` as they are; NULL without memory.
   The key of the options (may be NULL) is for structures that were saved without theirs; what they
   make has it, and is saved with it. */
struct pieces_in *pieces_in_begin(uint64_t total, uint64_t aside,
                                  const tamis_open_options *options);
tamis_error pieces_in_add(struct pieces_in *in, const void *data, size_t len, tamis_reason *reason);
uint64_t pieces_in_have(const struct pieces_in *in); /* bytes that came */
/* All have come: what they make; `in` is still to be freed. */
tamis_error pieces_in_end(struct pieces_in *in, struct set **out, tamis_reason *reason);
void pieces_in_free(struct pieces_in *in);
/* The key of the options, NULL if there was none; and whether the bytes need it (false before
   PIECES_HEAD of them have come). */
const uint8_t *pieces_in_key(const struct pieces_in *in);
bool pieces_in_keyless(const struct pieces_in *in);
/* Bytes that come without their key make a value that is saved with it: to be said before they come. */
void pieces_in_adopt(struct pieces_in *in);
/* The bytes that came, again. */
tamis_error pieces_in_encode(const struct pieces_in *in, tamis_write write, void *context);
/* Of memory: what it makes, from the header on, and all that it has. */
uint64_t pieces_in_makes(const struct pieces_in *in);
size_t pieces_in_bytes(const struct pieces_in *in);

#endif
