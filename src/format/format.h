/*
 * The byte format (docs/format.md): one container for every kind of structure, whatever
 * the way in. Only this folder knows offsets, and src/delta, src/catalog and src/replica for bytes of
 * their own.
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

#include "base/base.h"
#include "base/bytes.h"
#include "hash/digest.h"
#include "base/mem.h"
#include "pieces.h"
#include "set/set.h"

#define FORMAT_VERSION 1
#define SECTION_ALIGN  64
#define CATALOG_PAGE   ((uint64_t)4096)    /* what headers of catalogs end on */
#define CHUNK          ((uint64_t)1 << 20) /* bytes of payload under one checksum */
#define BODY_AT        128                 /* where the body begins */

/* The numbers of tamis_kind. */
enum kind { KIND_FILTER = 1, KIND_INDEX = 2, KIND_CATALOG = 4, KIND_END };

enum section_type {
    SECTION_BITS = 1,   /* of vector `owner` */
    SECTION_MATRIX,     /* all vectors, bit-sliced */
    SECTION_COUNTERS,   /* of vector `owner`, 4 bits each */
    SECTION_ESCAPES,    /* of vector `owner`: position and value of its counters from 15 on */
    SECTION_PENDING,    /* removals */
    SECTION_CANDIDATES, /* ids of vectors, for all pending removals in turn */
    SECTION_TABLE,      /* values and copies of part `owner` of an index */
    SECTION_END
};

struct section {
    uint32_t type, owner;
    uint64_t offset, len; /* from the start of the bytes; without the zeros up to the next line */
};

/* The sections that a structure must have, in order of type, then owner: all bits are together in
   front, where a mapped file is asked. */
struct section_walk {
    /* Its length; false if there is none. */
    bool (*length)(const void *of, uint32_t type, uint32_t owner, uint64_t *len);
    const void *of;
    uint32_t owners;
    uint32_t type, owner; /* where it is; start with zeros */
    uint64_t offset;
};

bool section_next(struct section_walk *walk, struct section *out);

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
    uint8_t check[TAMIS_KEY_LEN];
    const uint8_t *late; /* where only the header is in `data`: the payload from `late_at` on */
    uint64_t late_at;
};

#define KEY_AT     72 /* the family key, or zeros */
#define PREFIX_LEN 64 /* bytes from which the lengths of the whole and of its header are known */
/* As they are stated, not yet compared; false if these bytes begin nothing of ours. */
bool prefix_lengths(const void *data, size_t len, uint64_t *total, uint64_t *header);
#define FAMILY_END 128 /* bytes from which it is known whether there is a key in them */
/* A structure of ours that says so; nothing else is looked at. */
bool family_has_key(const void *data, size_t len);
/* How a file is replaced by one with or without a key (beside_open): access to a key is never widened. */
unsigned family_beside(const char *path, bool key_inside);
/* Reads hash, key and check from the first FAMILY_END bytes of c->data. */
tamis_error container_family(struct container *c, tamis_reason *reason);
/* Looks at nothing but the header. */
tamis_error container_open(struct container *c, const void *data, size_t len, enum kind want,
                           tamis_reason *reason);
struct section container_section(const struct container *c, uint32_t i);
/* Where the section of a type and owner begins; NULL and length 0 if there is none. */
const uint8_t *container_find(const struct container *c, uint32_t type, uint32_t owner,
                              uint64_t *len);
uint64_t container_offset(const struct container *c, const uint8_t *at); /* of what it found */
/* Compares the sections with what they must be. */
tamis_error container_check_sections(const struct container *c, struct section_walk walk,
                                     tamis_reason *reason);
/* Checks the chunks of the payload that have a byte in from..to-1. */
tamis_error container_verify(const struct container *c, uint64_t from, uint64_t to,
                             tamis_reason *reason);
/* Compares the checksum of chunk i. */
tamis_error container_check_sum(const struct container *c, uint64_t i, uint64_t sum,
                                tamis_reason *reason);
/* Checks that what lies between the sections is zero. */
tamis_error container_check_gaps(const struct container *c, tamis_reason *reason);
/* Both, for the whole payload. */
tamis_error container_check_payload(const struct container *c, tamis_reason *reason);
/* The family key: the stored one, or the given one (may be NULL) if it is the right one. */
tamis_error container_key(const struct container *c, const uint8_t *given, const uint8_t **key,
                          tamis_reason *reason);

/* What the options of who opens it say; they may be NULL. */
const tamis_allocator *open_allocator(const tamis_open_options *options);
/* Is all of a mapped file checked at once? If that is asked, or if it is small; of others only what is
   read now. */
bool open_checks_all(const tamis_open_options *options, const struct container *c);

/* Is it a patch? Then its own functions read it. */
extern const uint8_t patch_magic[8], message_magic[4];
bool patch_is(const void *data, size_t len);

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

/* Writes the payload. Called twice, for the checksums and for good. */
typedef tamis_error (*payload_fn)(void *what, tamis_write write, void *context);

uint64_t outline_header_len(const struct outline *o);
/* The header of a catalog, whose checksums are in its payload; into zeroed bytes. Sections from the
   start of the whole. */
void outline_header(const struct outline *o, const struct section *sections, uint8_t *header);
/* The header of others, into zeroed bytes, but for the checksums of the payload, whose place it
   returns; header_seal is the last step. */
uint8_t *outline_front(const struct outline *o, struct section_walk walk, uint8_t *header);
void header_seal(uint8_t *header, uint64_t len);

/* Fills the table of checksums, given the payload in pieces of any size; sums_write is a
   tamis_write. */
struct chunk_sums {
    struct hash_stream hash;
    uint64_t room; /* of the chunk */
    uint8_t *next;
};

void sums_begin(struct chunk_sums *sums, uint8_t *next);
int sums_write(void *sums, const void *data, size_t len);
void sums_end(struct chunk_sums *sums);

/* Counts the sections and their bytes. */
void outline_count(struct outline *o, struct section_walk walk);
tamis_error outline_write(const struct outline *o, struct section_walk walk, payload_fn payload,
                          void *what, const tamis_allocator *a, tamis_write write, void *context);

/* Writes until a write fails. */
struct writer {
    tamis_write write;
    void *context;
    bool failed;
};

void put(struct writer *w, const void *data, uint64_t len);
void put_zeros(struct writer *w, uint64_t len); /* less than SECTION_ALIGN */

/* The same bytes again, without the key if that is wanted. */
tamis_error container_write(const struct container *c, bool no_key, const tamis_allocator *a,
                            tamis_write write, void *context);

/* ---- the bodies of filters and indexes: format_head.c ---- */

struct head {
    enum kind kind; /* filter or index */
    struct settings set;
    uint64_t stored;
    uint32_t next_id, grown, n; /* n layers */
    struct forecast forecast;
    uint64_t width;                       /* of the matrix, 0 if there is none */
    uint64_t pending, candidates, copies; /* removals: entries, all their candidates and copies */
    struct record_form form;              /* of an index; its names lie in the body */
    bool counted;                         /* there are counters */
    uint32_t parts;                       /* of a layer */
    uint32_t digests;                     /* of a pending key */
    const uint8_t *layers;                /* their records; each begins with the id */
    uint32_t layer_len;
    const uint8_t *records; /* of the parts, layer by layer; owner is their number */
};

struct record { /* id, slot, born and last: in a filter only */
    uint32_t id, slot, k;
    uint64_t units, capacity, load, count, ones, ones_max;
    double fpp;
    uint64_t born, last, escapes;
};

struct layer_record {
    uint32_t id, slot;
    uint64_t capacity, load, count;
    double fpp;
    uint64_t born, last;
};

#define HEAD_LEN   256
#define RECORD_LEN 96

/* What all bodies begin with, and a record of a part. */
void head_fields(struct cursor *c, struct head *head);
void record_fields(struct cursor *c, struct record *record);
/* Reads a body and checks all that can be checked without the payload. */
tamis_error head_parse(struct head *head, enum kind kind, const uint8_t *body, uint64_t len,
                       bool bits_only, tamis_hash hash, tamis_reason *reason);
/* Writes one; `exact` has the ones of the columns of a matrix, or NULL, and counts all others. False:
   there is what cannot be written. */
bool head_write(struct head *head, const struct set *s, const uint64_t *ones, bool exact,
                uint8_t *body);
uint64_t head_body_len(const struct head *head);
struct layer_record head_layer(const struct head *head, uint32_t i);
/* Of part `owner`; a table has no units. */
struct record head_record(const struct head *head, uint32_t owner);
/* Index of the layer with this id, or n. */
uint32_t head_find(const struct head *head, uint32_t id);
/* Bits of a vector. */
uint64_t record_positions(const struct head *head, const struct record *record);
void vector_from_record(struct vector *v, const struct record *record);

struct section_walk head_sections(const struct head *head);
/* Opens a container of this kind and compares its sections with what they must be. */
tamis_error set_open(struct container *c, struct head *head, enum kind kind, const void *data,
                     size_t len, tamis_reason *reason);

/* ---- checks: format_check.c ---- */

/* Every byte of the payload: checksums, and all that must agree in it. */
tamis_error set_check(const struct container *c, const struct head *head, const tamis_allocator *a,
                      tamis_reason *reason);
/* Everything but memory is checked. */
tamis_error set_verify(enum kind kind, const void *data, size_t len, tamis_reason *reason);

/* The pairs of a table as they come. */
struct table_check {
    uint64_t most; /* that `far` may be */
    unsigned shift;
    uint64_t n, hash, value, copies;
    uint64_t far, next; /* how far they will lie from their homes; the first slot after the last */
};

/* Of part `owner`. The others: NULL or what is wrong. */
struct table_check table_check_begin(const struct head *head, uint32_t owner);
const char *table_check_pair(struct table_check *t, const uint8_t pair[TABLE_PAIR]);
const char *table_check_end(const struct table_check *t, const struct head *head, uint32_t owner);

/* ---- pending removals: pending_bytes.c ---- */

/* Those that have copies and candidates left, in the order of their keys. */
struct pending_list {
    const struct set *set;
    const struct pending **list;
    uint64_t n;
};

/* The length of their sections, owner 0; false if there is none. */
bool pending_section(const struct head *head, uint32_t type, uint64_t *len);
tamis_error pending_list_make(struct pending_list *out, const struct set *s);
void pending_list_free(struct pending_list *list);
void pending_list_count(const struct pending_list *list, struct head *head);
/* Sections 5 and 6. */
void pending_put(const struct pending_list *list, struct writer *w);
void pending_put_candidates(const struct pending_list *list, struct writer *w);
tamis_error pending_check(const struct container *c, const struct head *head, tamis_reason *reason);
/* The same where a mapped file is not checked otherwise. */
tamis_error pending_check_mapped(const struct container *c, const struct head *head,
                                 tamis_reason *reason);
tamis_error pending_load(const struct container *c, const struct head *head, struct set *s);
/* The most probes to watch for the pending removals of a structure of so many bytes. */
size_t probes_for(uint64_t len);
/* Why what was checked could not be loaded. */
const char *load_wrong(tamis_error e);

/* ---- filters and indexes: format_encode.c, format_load.c ---- */

/* The body of a set as it would be saved, and the head read from it again; `exact` counts the ones. */
tamis_error set_body(const struct set *s, const struct pending_list *pending, bool bits_only,
                     bool exact, struct head *head, uint8_t **body);
struct outline set_outline(const struct set *s, const struct head *head, const uint8_t *body,
                           unsigned flags);
/* XXH3-128 of the bytes that would be saved without the key. */
tamis_error set_fingerprint(const struct set *s, bool bits_only, uint8_t out[16]);

/* A set without layers, with the settings of the head. */
tamis_error set_from_head(struct set **out, const struct container *c, const struct head *head,
                          const tamis_open_options *options, const uint8_t key[TAMIS_KEY_LEN]);
/* Reads layer `number`, whose parts `make` makes; false without memory. */
typedef bool (*part_fn)(const void *context, struct set *s, struct part *part,
                        const struct record *r, uint32_t owner);
bool layer_read(struct set *s, const struct head *head, uint32_t number, part_fn make,
                const void *context);
/* Such a one, of a head: without a bit or value, but with room for those that the record says. */
bool part_blank(const void *head, struct set *s, struct part *part, const struct record *r,
                uint32_t owner);
/* A set from a mapped file: views of it, read-only. On success the mapping belongs to it. */
tamis_error set_from_mapping(struct set **out, enum kind kind, struct mapping mapping,
                             const tamis_open_options *options, tamis_reason *reason);

#endif
