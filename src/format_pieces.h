/*
 * Filters as bytes, a piece at a time, for a program that may not stop for long (a server with one
 * thread): the same bytes as tamis_filter_encode writes, and the same checks as tamis_filter_decode
 * makes, with work in each call that the size of the piece bounds, and no second copy of the bytes.
 */
#ifndef TAMIS_FORMAT_PIECES_H
#define TAMIS_FORMAT_PIECES_H

#include <stdbool.h>

#include "tamis.h"

/* What is not vectors (large counters, pending removals) is kept aside, and so is the header: up to
   so many bytes. What has more goes as a whole only. */
#define PIECES_ASIDE ((uint64_t)16 << 20)

/* ---- out: format_out.c ----
 *
 * The header has checksums of what follows it, so a filter is gone over twice. The first bytes of
 * the header are known before: of these a call returns one while it works on the rest, so that every
 * call brings something. Nothing of the filter is held between calls; each gets it anew. It may not
 * have changed since filter_out_begin, but for keys added after filter_keep.
 */
struct filter_out;

/* EKIND: it can be written as a whole only. */
tamis_error filter_out_begin(struct filter_out **out, const tamis_filter *f);
void filter_out_end(struct filter_out *out);
uint64_t filter_out_size(const struct filter_out *out);
/* The bytes from `at` on, at most `room` (from 64 KiB on): in turn, or the last ones again (of the
   header perhaps more of them). The first call, at 0, brings at least 64. EARG: not these. 0 bytes:
   the end, or counters were looked through and there is more. */
tamis_error filter_out_read(struct filter_out *out, const tamis_filter *f, uint64_t at, void *to,
                            size_t room, size_t *len);

/* From now on what adding changes is remembered, so that the bits of this moment can still be read;
   and no more. False: it cannot be, or there is no memory. */
bool filter_keep(tamis_filter *f);
void filter_keep_end(tamis_filter *f);

/* ---- in: format_in.c ----
 *
 * Bytes from anywhere, in pieces. They go to where they will be used, and are checked as they come;
 * after an error nothing but filter_in_free may follow.
 */
struct filter_in;

/* The length that the first bytes of a structure (64 or more) state; 0: they begin none. */
uint64_t pieces_total(const void *data, size_t len);
/* For a structure of `total` bytes, of which it keeps up to `aside` as they are; NULL without memory.
   The key of the options (may be NULL) is for structures that were saved without theirs. */
struct filter_in *filter_in_begin(uint64_t total, uint64_t aside,
                                  const tamis_open_options *options);
tamis_error filter_in_add(struct filter_in *in, const void *data, size_t len, tamis_reason *reason);
uint64_t filter_in_have(const struct filter_in *in); /* bytes that came */
/* All have come: the filter; `in` is still to be freed. */
tamis_error filter_in_end(struct filter_in *in, tamis_filter **out, tamis_reason *reason);
void filter_in_free(struct filter_in *in);
/* The bytes that came, again. */
tamis_error filter_in_encode(const struct filter_in *in, tamis_write write, void *context);
size_t filter_in_bytes(const struct filter_in *in); /* of memory */

#endif
