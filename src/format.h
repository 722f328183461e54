/*
 * The byte format (docs/format.md): one container for every kind of structure, one validator for
 * every way in. Only format*.c know offsets.
 *
 *     +---------+--------+------+----------+-----------+-----+ +---------+   +---------+
 *     | prefix  | family | body | sections | checksums | sum | | section |...| section |
 *     +---------+--------+------+----------+-----------+-----+ +---------+   +---------+
 *     0         64       128    header, a multiple of 64     | payload, each on a line of 64
 *
 * The body is what the kind makes of it (settings, counts, a table of vectors). Everything else is
 * alike: a table of the sections of the payload, a checksum for each MiB of the payload, and one for
 * the header itself. What can be derived is derived, and compared with what is written.
 */
#ifndef TAMIS_FORMAT_H
#define TAMIS_FORMAT_H

#include "base.h"
#include "bytes.h"
#include "digest.h"
#include "filter.h"
#include "mem.h"

#define FORMAT_VERSION 1
#define SECTION_ALIGN  64
#define CHUNK          ((uint64_t)1 << 20) /* bytes of payload under one checksum */
#define BODY_AT        128                 /* where the body begins */

enum kind { KIND_FILTER = 1, KIND_INDEX, KIND_DIRECTORY, KIND_CATALOG, KIND_MESSAGE, KIND_END };

enum section_type {
    SECTION_BITS = 1,   /* of vector `owner` */
    SECTION_MATRIX,     /* all vectors, bit-sliced */
    SECTION_COUNTERS,   /* of vector `owner`, 4 bits each */
    SECTION_ESCAPES,    /* of vector `owner`: position and value of its counters from 15 on */
    SECTION_PENDING,    /* removals */
    SECTION_CANDIDATES, /* ids of vectors, for all pending removals in turn */
};

struct section {
    uint32_t type, owner;
    uint64_t offset, len; /* from the start of the bytes; without the zeros up to the next line */
};

/* ---- reading: format.c ---- */

/* A structure's bytes, the header checked. */
struct container {
    const uint8_t *data;
    uint64_t len;
    uint64_t payload; /* where it begins: the length of the header */
    uint64_t body_len;
    uint32_t sections;
    bool bits_only;
    tamis_hash hash;
    bool has_key;
    uint8_t key[TAMIS_KEY_LEN], check[TAMIS_KEY_LEN];
};

tamis_error container_open(struct container *c, const void *data, size_t len, enum kind want,
                           tamis_reason *reason);
struct section container_section(const struct container *c, uint32_t i);
/* Checks the chunks of the payload that have a byte in from..to-1. */
tamis_error container_verify(const struct container *c, uint64_t from, uint64_t to,
                             tamis_reason *reason);
/* Checks that what lies between the sections is zero. */
tamis_error container_check_gaps(const struct container *c, tamis_reason *reason);
/* The family key: the stored one, or the given one (may be NULL) if it is the right one. */
tamis_error container_key(const struct container *c, const uint8_t *given,
                          uint8_t key[TAMIS_KEY_LEN], tamis_reason *reason);

/* Is it a patch? Then its own functions read it. */
bool patch_is(const void *data, size_t len);
tamis_error patch_verify(const void *data, size_t len, tamis_reason *reason);

/* ---- writing: format.c ---- */

struct outline {
    enum kind kind;
    bool bits_only, no_key;
    const struct family *family;
    const uint8_t *body;
    uint64_t body_len;
    uint32_t sections;
    uint64_t payload_len; /* each section rounded up to whole lines */
};

/* Gives the next section (offsets from 0); false after the last. */
typedef bool (*section_fn)(void *walk, struct section *out);
/* Writes the payload. Called twice, for the checksums and for good. */
typedef tamis_error (*payload_fn)(void *what, tamis_write write, void *context);

uint64_t outline_header_len(const struct outline *o);
tamis_error outline_write(const struct outline *o, section_fn next, void *walk, payload_fn payload,
                          void *what, const tamis_allocator *a, tamis_write write, void *context);

/* The same bytes again, without the key if that is wanted. */
tamis_error container_write(const struct container *c, bool no_key, const tamis_allocator *a,
                            tamis_write write, void *context);

/* ---- filters: format_filter.c ---- */

/* The body of a filter, but for the records of its vectors. */
struct filter_head {
    struct settings set;
    uint64_t stored;
    uint32_t next_id, grown, n; /* n vectors */
    tamis_plan_holt holt;
    double base_rate;
    uint64_t width;                       /* of the matrix, 0 if there is none */
    uint64_t pending, candidates, copies; /* removals: entries, all their candidates and copies */
    bool counted;                         /* there are counters */
    const uint8_t *records;
};

struct record {
    uint32_t id, slot, k;
    uint64_t units, capacity, load, count, ones, ones_max;
    double fpp;
    uint64_t born, last, escapes;
};

#define HEAD_LEN   256
#define RECORD_LEN 96

void head_fields(struct cursor *c, struct filter_head *head);
void record_fields(struct cursor *c, struct record *record);
/* Reads a body and checks all that can be checked without the payload. */
tamis_error head_parse(struct filter_head *head, const uint8_t *body, uint64_t len, bool bits_only,
                       tamis_hash hash, tamis_reason *reason);
struct record head_record(const struct filter_head *head, uint32_t i);
/* Bits of a vector. */
uint64_t record_positions(const struct filter_head *head, const struct record *record);
/* Index of the vector with this id, or n. */
uint32_t head_find(const struct filter_head *head, uint32_t id);

/* The sections that a filter must have, one after the other. */
struct section_walk {
    const struct filter_head *head;
    uint32_t stage, i;
    uint64_t offset;
};

bool filter_section_next(void *walk, struct section *out);
/* Opens a container of kind filter and compares its sections with what they must be. */
tamis_error filter_open(struct container *c, struct filter_head *head, const void *data, size_t len,
                        tamis_reason *reason);

/* ---- filters: format_check.c ---- */

/* Every byte of the payload: checksums, and all that must agree in it. */
tamis_error filter_check(const struct container *c, const struct filter_head *head,
                         const tamis_allocator *a, tamis_reason *reason);
/* The pending removals alone. */
tamis_error filter_check_pending(const struct container *c, const struct filter_head *head,
                                 tamis_reason *reason);
/* Where the first section of a type begins; NULL if there is none. */
const uint8_t *filter_section(const struct container *c, uint32_t type, uint32_t owner,
                              uint64_t *len);

/* ---- filters: format_encode.c, format_load.c ---- */

/* The head and the records of a filter as it would be saved; `exact` counts the ones. The bytes
   are HEAD_LEN + n * RECORD_LEN. */
tamis_error filter_body(const tamis_filter *f, bool bits_only, bool exact, uint8_t **body,
                        uint64_t *len);
/* XXH3-128 of the bytes that tamis_filter_encode would write without the key. */
tamis_error filter_fingerprint(const tamis_filter *f, bool bits_only, uint8_t out[16]);
/* The pending removals that have copies and candidates left, in the order of their digests. */
tamis_error filter_pending(const tamis_filter *f, const struct pending ***out, uint64_t *n);
void filter_pending_free(const tamis_filter *f, const struct pending **list);
bool pending_has(const struct pending *p, uint32_t id);

/* A filter from a mapped file: views of it, read-only. On success the mapping belongs to it. */
tamis_error filter_from_mapping(tamis_filter **out, struct mapping mapping,
                                const tamis_open_options *options, tamis_reason *reason);
/* Everything but memory is checked. */
tamis_error filter_verify(const void *data, size_t len, tamis_reason *reason);
/* Sets a vector from its record. */
void vector_from_record(struct vector *v, const struct record *record);

#endif
