/*
 * Changes, coded close to their entropy. A patch is one stream of decisions through a binary
 * arithmetic coder with a range of 56 bits and adaptive probabilities of 16 bits. Numbers, gaps and
 * counters are split into decisions here; patch.c defines what a patch contains, and in which
 * order.
 *
 * Changed positions are coded as the gaps between them. At density d a gap is geometric, and the
 * bits of a geometric number are independent of one another, so a gap costs its entropy if every
 * bit has its own probability: the lower bits as bits, the rest as a run. One scheme covers
 * densities from 10^-9, where a change takes about 30 decisions and the zeros between cost nothing,
 * to dense, where every bit is a decision. Golomb codes alone lose 3 % near d = 0.1 and more above.
 *
 * In a blocked vector changes come in clusters: the gaps between changed blocks are coded, and the
 * gaps between changed bits, counted over those blocks only.
 */
#ifndef TAMIS_DELTA_H
#define TAMIS_DELTA_H

#include "base/base.h"
#include "base/bytes.h"
#include "bits/bits.h"
#include "tamis/replica.h"

/* The probability of a one, in units of 2^-16, and how many bits it was learnt from (up to 255). */
struct model {
    uint16_t chance, seen;
};

#define NUMBER_MODELS 65
#define GAP_RUN       16
#define GAP_LEVELS    8
#define DELTA_PIECE   32768

struct number_models {
    struct model bits[NUMBER_MODELS];
};

struct gap_models {
    unsigned low; /* bits below the run */
    struct model run[GAP_RUN], level[GAP_LEVELS];
};

void models_reset(struct model *models, size_t n);

/* ---- the coder ---- */

struct delta_out {
    uint64_t low, range, pending; /* pending: number of 0xff bytes that a carry would change */
    uint8_t cache;
    bool any, failed;
    size_t used;
    tamis_write write;
    void *context;
    struct hash_stream hash; /* of all bytes so far */
    uint8_t buffer[DELTA_PIECE];
};

void out_begin(struct delta_out *o, tamis_write write, void *context);
void out_bytes(struct delta_out *o, const void *data, size_t len); /* copied before coding starts */
void out_bit(struct delta_out *o, struct model *model, bool bit);
void out_direct(struct delta_out *o, uint64_t value, unsigned bits); /* at most 64 bits */
void out_number(struct delta_out *o, struct number_models *models, uint64_t value);
/* Ends the stream with the checksum of everything; false if a write failed. */
bool out_end(struct delta_out *o);

/* Reads zeros past the end; `broken` is set after too many of them, or on an impossible number. */
struct delta_in {
    const uint8_t *data;
    size_t len, at;
    uint64_t code, range;
    bool broken;
};

void in_begin(struct delta_in *in, const uint8_t *data, size_t len);
bool in_bit(struct delta_in *in, struct model *model);
uint64_t in_direct(struct delta_in *in, unsigned bits);
uint64_t in_number(struct delta_in *in, struct number_models *models);

/* Codes bytes relative to others of the same length. */
struct byte_models {
    struct model word[2], byte;
};

void out_image(struct delta_out *o, struct byte_models *models, const uint8_t *from,
               const uint8_t *to, size_t len);
void in_image(struct delta_in *in, struct byte_models *models, const uint8_t *from, uint8_t *to,
              size_t len);

/* ---- vectors: delta_vector.c ---- */

/* Models that adapt over all vectors of a patch. */
struct vector_models {
    struct number_models mode, count, large;
    struct model value[16][16]; /* of a counter, given its old value */
};

/* From `base` (same shape; NULL: all zero) to `v`: their counters if `counted`, otherwise their bits.
   Pages with equal checksums, and pages that are not `touched` (NULL: all are), are skipped. */
struct step {
    const struct vector *base, *v;
    bool counted;
    const uint8_t *touched;
};

void out_vector(struct delta_out *o, struct vector_models *models, const struct step *step);
/* Changes v, which must equal `base`. False if the stream is broken or if there is no memory
   (then `memory` is false). */
bool in_vector(struct delta_in *in, struct vector_models *models, struct vector *v, bool counted,
               const tamis_allocator *a, bool *memory);
/* Number of bits in which they differ; y may be NULL. */
uint64_t vector_distance(const struct vector *x, const struct vector *y);

/* ---- parts of lines: delta_lines.c ---- */

/* Models for lines and for words. */
struct lines_models {
    struct number_models gap[2];
    struct byte_models image[2];
};

/* Codes a part relative to the part that was in the same position (NULL: there was none). */
void out_part(struct delta_out *o, struct lines_models *models, const struct body *base,
              const struct body *b);
/* Decodes into an empty part with room; false if the stream is not a part. */
bool in_part(struct delta_in *in, struct lines_models *models, const struct body *base,
             struct body *b, const tamis_allocator *a);

#endif
