/*
 * The byte format (docs/format.md): one container for every kind of structure, however
 * it arrives. Only this folder knows offsets, and src/delta, src/catalog and src/replica those of their
 * own bytes.
 *
 *     +--------+--------+------+----------+-----+ +---------+   +---------+ +-----------+
 *     | prefix | family | body | sections | sum | | section |...| section | | checksums |
 *     +--------+--------+------+----------+-----+ +---------+   +---------+ +-----------+
 *     0        64       128    header, lines of 64| payload, each on a line of 64
 *
 * The body depends on the kind (settings, counts, a table of vectors). Everything else is
 * the same for all: a table of the sections of the payload, and a checksum for the header and for every page of every
 * section. Everything that can be derived is derived and compared with the stated value.
 *
 * There is one writer, pieces_out, and one validator, pieces_in; both take the bytes from front to back,
 * whole or in pieces. So the checksums, and the number of ones of every vector, follow what they are
 * computed from. A kind of section is a row of one table (section_kinds): how long it is, where its bytes
 * are in memory, how it is written if they are not, and what must hold in it.
 */
#ifndef TAMIS_FORMAT_H
#define TAMIS_FORMAT_H

#include "base/bytes.h"
#include "pieces.h"
#include "set/set.h"

#define FORMAT_VERSION 2
#define SECTION_ALIGN  64
#define CATALOG_PAGE   ((uint64_t)4096) /* headers of catalogs are padded to this */
#define BODY_AT        128              /* where the body begins */

/* The numbers of tamis_kind. */
enum kind { KIND_FILTER = 1, KIND_RECORDS = 2, KIND_CATALOG = 4, KIND_END };

enum section_type {
    SECTION_BITS = 1,   /* of vector `owner` */
    SECTION_MATRIX,     /* all vectors, bit-sliced */
    SECTION_COUNTERS,   /* of vector `owner`, 4 bits each */
    SECTION_ESCAPES,    /* of vector `owner`: position and value of its counters of 15 and more */
    SECTION_PENDING,    /* removals */
    SECTION_CANDIDATES, /* ids of vectors, for all pending removals in turn */
    SECTION_TABLE,      /* values and copies of part `owner` of records */
    SECTION_LINES,      /* of a smooth filter: piece `owner` % 4 (part_bytes) of part `owner` / 4 */
    SECTION_ONES,       /* of every part: how many bits are set */
    SECTION_END
};

struct section {
    uint32_t type, owner;
    uint64_t offset, len; /* from the start of the bytes; without the padding */
};

/* The sections that a structure must have, in order of type, then owner: all bits are together
   at the front, where a mapped file is queried. */
struct section_walk {
    /* Its length; false if there is none. */
    bool (*length)(const void *of, uint32_t type, uint32_t owner, uint64_t *len);
    const void *of;
    uint32_t owners;
    uint32_t type, owner; /* current position; start with zeros */
    uint64_t offset;
    uint64_t page, pages; /* the first page of the current section; all up to its end */
};

bool section_next(struct section_walk *walk, struct section *out);

/* ---- reading: format.c ---- */

/* The bytes of a structure whose header was checked. */
struct container {
    const uint8_t *data;
    uint64_t len;
    uint64_t payload; /* where it begins: the length of the header */
    uint64_t sums,
        pages; /* where the checksums begin, and their number: container_check_sections */
    uint64_t body_len;
    uint32_t sections;
    bool bits_only;
    tamis_hash hash;
    bool has_key;
    uint8_t check[TAMIS_KEY_LEN];
};

#define KEY_AT     72 /* the family key, or zeros */
#define PREFIX_LEN 64 /* bytes that contain the lengths of the whole and of its header */
/* The lengths as stated, not yet compared; false if these bytes do not begin a structure. */
bool prefix_lengths(const void *data, size_t len, uint64_t *total, uint64_t *header);
#define FAMILY_END 128 /* bytes that tell whether they contain a key */
/* How a file is replaced by one with or without a key (beside_open): access to a key is never widened. */
unsigned family_beside(const char *path, bool key_inside);
/* Reads hash, key and check from the first FAMILY_END bytes of c->data. */
tamis_error container_family(struct container *c, tamis_reason *reason);
/* Checks magic, version and lengths, from the first PREFIX_LEN bytes of `len`, or all of them. */
tamis_error prefix_check(const void *data, uint64_t len, tamis_reason *reason);
/* Reads only the header. */
tamis_error container_open(struct container *c, const void *data, size_t len, enum kind want,
                           tamis_reason *reason);
struct section container_section(const struct container *c, uint32_t i);
/* The section of a type and owner; NULL and length 0 if there is none. */
const uint8_t *container_find(const struct container *c, uint32_t type, uint32_t owner,
                              uint64_t *len);
/* Compares the sections with what they must be. */
tamis_error container_check_sections(struct container *c, struct section_walk walk,
                                     tamis_reason *reason);
/* Compares the checksum of page i of a section with these checksums. */
tamis_error page_check(const struct section *s, uint64_t i, uint64_t sum, const uint8_t *sums,
                       tamis_reason *reason);
/* The padding between sections must be zero: checks one gap, or all of a complete structure. */
tamis_error gap_check(const uint8_t *gap, uint64_t len, uint64_t at, tamis_reason *reason);
tamis_error container_check_gaps(const struct container *c, tamis_reason *reason);
/* The family key: the stored one, or the given one (may be NULL) if it is correct. */
tamis_error container_key(const struct container *c, const uint8_t *given, const uint8_t **key,
                          tamis_reason *reason);

/* From the options for opening, which may be NULL. */
const tamis_allocator *open_allocator(const tamis_open_options *options);
/* mapped files up to this size are checked when they are opened */
#define CHECKED_MAX ((uint64_t)64 << 20)

/* Is it a patch? Then other functions read it. */
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
    uint64_t pages;       /* with a checksum after the payload; those of a catalog are inside it */
};

uint64_t outline_header_len(const struct outline *o);
uint64_t sums_len(uint64_t pages); /* of their checksums, up to a whole line */
/* Counts the sections, their bytes and their pages. */
void outline_count(struct outline *o, struct section_walk walk);
/* Writes the header to zeroed bytes; that of a catalog has separate sections, from the start of the whole. */
void outline_front(const struct outline *o, struct section_walk walk, uint8_t *header);
void outline_header(const struct outline *o, const struct section *sections, uint8_t *header);

/* Writes the same bytes again, without the key if requested. */
tamis_error container_write(const struct container *c, bool no_key, const tamis_allocator *a,
                            tamis_write write, void *context);

/* ---- the bodies of filters and records: format_head.c ---- */

struct head {
    enum kind kind; /* filter or records */
    struct settings set;
    uint64_t stored;
    uint32_t next_id, grown, n; /* n layers */
    struct forecast forecast;
    uint64_t width;                       /* of the matrix, 0 if there is none */
    uint64_t pending, candidates, copies; /* removals: entries; totals of the others */
    struct record_form form;              /* of records; its names are in the body */
    bool counted;                         /* there are counters */
    uint32_t parts;                       /* of a layer */
    uint32_t line_parts;                  /* of a smooth filter: records of parts */
    const uint8_t *lines; /* rate and width of the lines, followed by those records */
    double line_fpp;      /* the rate for which the lines were made */
    uint32_t line_width;
    uint32_t digests;      /* per pending key */
    const uint8_t *layers; /* their records; each begins with the id */
    uint32_t layer_len;
    const uint8_t *records; /* of the parts, layer by layer; owner is their number */
};

struct part_record { /* id, slot, born and last: only in a filter */
    uint32_t id, slot, k;
    uint32_t layout; /* if it is not that of the filter */
    uint64_t units, capacity, load, count, ones_max;
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
#define RECORD_LEN 88

/* After the records of the vectors: the rate of the lines, and a record for each part. */
#define LINES_LEN 16
#define PART_LEN  64

/* The fields that all bodies begin with, and those of a part. */
void head_fields(struct cursor *c, struct head *head);
void record_fields(struct cursor *c, struct part_record *record);
void part_fields(struct cursor *c, struct part_facts *part);
/* Reads a body and checks everything that can be checked without the payload. */
tamis_error head_parse(struct head *head, enum kind kind, const uint8_t *body, uint64_t len,
                       bool bits_only, tamis_hash hash, tamis_reason *reason);
/* Writes one. False: something cannot be written. */
bool head_write(struct head *head, const struct set *s, uint8_t *body);
uint64_t head_body_len(const struct head *head);
/* The body was copied. */
void head_moved(struct head *head, const uint8_t *from, const uint8_t *to);
struct layer_record head_layer(const struct head *head, uint32_t i);
/* For part `owner`; a table has no units. */
struct part_record head_record(const struct head *head, uint32_t owner);
/* For part i of the lines. */
struct part_facts head_part(const struct head *head, uint32_t i);
/* Index of the layer with this id, or n. */
uint32_t head_find(const struct head *head, uint32_t id);
/* The shape of a vector, and its bits. */
struct shape record_shape(const struct head *head, const struct part_record *record);
uint64_t record_positions(const struct head *head, const struct part_record *record);

struct section_walk head_sections(const struct head *head);
/* Opens a container of this kind and compares its sections with what they must be. */
tamis_error set_open(struct container *c, struct head *head, enum kind kind, const void *data,
                     size_t len, tamis_reason *reason);

/* ---- kinds of sections ---- */

struct pieces_in;
struct pieces_out;

/* Writes some of the next bytes of a section, possibly none, and returns how many; adds to *work how much work it was. */
typedef size_t make_fn(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                       uint64_t *work);
/* Checks what arrived since the last call. */
typedef void look_fn(struct pieces_in *in);

struct section_kind {
    /* Its length; false if there is none. */
    bool (*length)(const struct head *head, uint32_t owner, uint64_t *len);
    /* Its bytes in memory, as they are written; NULL: nowhere. */
    uint8_t *(*data)(const struct set *s, uint32_t owner);
    make_fn *make; /* for what is not in memory in that form */
    look_fn *look;
};

extern const struct section_kind section_kinds[SECTION_END];

/* ---- writing and reading: pieces_out.c, pieces_in.c; in pieces, see pieces.h ---- */

/* For a set. What has to be buffered may be `most` bytes, otherwise EKIND. A fingerprint alone needs no checksums. */
tamis_error set_out_begin(struct pieces_out **out, const struct set *s, unsigned flags,
                          uint64_t most, bool sums);
/* All bytes. The set is NULL if there is none. */
tamis_error pieces_out_write(struct pieces_out *o, const struct set *s, tamis_write write,
                             void *context);

/* XXH3-128 of the header without the key and its checksum, and of the tops of each section except the ones:
   XXH3 of every 512 checksums of its pages. The checksums of bits and counters are kept from then on. */
tamis_error set_fingerprint(const struct set *s, bool bits_only, uint8_t out[16]);

enum read_flags {
    READ_VIEW = 1,   /* the bytes stay in place: the result has views of them */
    READ_SKIM = 2,   /* checks only what is read immediately */
    READ_VERIFY = 4, /* creates nothing, and needs no key */
};

/* A set from complete bytes. */
tamis_error set_read(struct set **out, enum kind kind, const void *data, size_t len, unsigned how,
                     const tamis_open_options *options, tamis_reason *reason);
/* From pieces (pieces.h), only of this kind. */
void pieces_in_want(struct pieces_in *in, enum kind kind);

/* ---- pending removals: pending_bytes.c ---- */

/* Removals that have copies and candidates left, in the order of their keys. */
struct pending_list {
    const struct set *set;
    const struct pending **list;
    uint64_t n;
};

/* The bytes of an entry. */
#define PENDING_LEN(digests) (sizeof(tamis_digest) * (digests) + 16)
tamis_error pending_list_make(struct pending_list *out, const struct set *s);
void pending_list_free(struct pending_list *list);
void pending_list_count(const struct pending_list *list, struct head *head);
/* Their encoding: all entries, then all candidates. */
void pending_put(const struct pending_list *list, uint8_t *to);
/* Reads the entries; valid ones go to the set, unless it is NULL. `at` is their offset. */
tamis_error pending_take(const struct head *head, const uint8_t *entries, const uint8_t *candidates,
                         uint64_t at, struct set *s, tamis_reason *reason);
/* Most probes to watch for the pending removals of a structure of that many bytes. */
size_t probes_for(uint64_t len);

/* ---- filters and records: format_set.c ---- */

/* The body of a set as it would be saved, and the head read from it again. */
tamis_error set_body(const struct set *s, const struct pending_list *pending, bool bits_only,
                     struct head *head, uint8_t **body);
/* Before the first byte is written, `size` (may be NULL), with the same context, receives the number of bytes. */
typedef tamis_error (*size_fn)(void *context, uint64_t size);
tamis_error set_encode_sized(const struct set *s, unsigned flags, size_fn size, tamis_write write,
                             void *context);
/* A set without layers, with the settings of the head. */
tamis_error set_from_head(struct set **out, const struct head *head, const tamis_allocator *a,
                          struct family_key key, bool bits_only);
/* Layer `number`: without a bit or value, but with room for those that its records state; or,
   for a container, with views of them. False if there is no memory. */
bool layer_read(struct set *s, const struct head *head, uint32_t number,
                const struct container *view);
/* Its lines, if it has any: as its parts state, or views of them. False if there is no memory. */
bool lines_read(struct set *s, const struct head *head, const struct container *view);
/* Its matrix, if it has one: false if there is no memory. */
bool matrix_read(struct set *s, const struct head *head, const struct container *view);
/* A set from a mapped file: views of it, read-only. On success the mapping belongs to it. */
tamis_error set_from_mapping(struct set **out, enum kind kind, struct mapping mapping,
                             const tamis_open_options *options, tamis_reason *reason);
/* Checks everything, without creating the set. */
tamis_error set_verify(enum kind kind, const void *data, size_t len, tamis_reason *reason);

#endif
