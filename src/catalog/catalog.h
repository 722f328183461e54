/*
 * The inside of a catalog: the segments of a data set, and the values of each in every relation. A
 * relation is an attribute, or a combination of attributes; relations 0 .. p-1 are the attributes.
 *
 * A relation is stored in strips: bit-sliced matrices of up to 512 columns of one shape, so that a row
 * is at most one cache line. Segments with similar numbers of values share a shape; a segment takes one
 * or more columns of one shape, and has a value if one of them does.
 *
 *     strip 0   relation 0   rows 672,008   k 7    columns: segments 0 1 2 ... 511
 *     strip 1   relation 3   rows 1,707,200 k 17   columns: segments 0 1 2 ... 511
 *     strip 2   relation 0   rows 31,400    k 7    columns: segments 77 912
 *
 * The column of an attribute has the stated rate for each segment. The column of a combination has a
 * share of it, and all shares together are at most the stated rate (catalog_share), so a query for
 * values that occur everywhere, but never together, usually returns no segment.
 */
#ifndef TAMIS_CATALOG_H
#define TAMIS_CATALOG_H

#include <stdatomic.h>

#include "format/format.h"
#include "hash/types.h"
#include "plan/plan.h"
#include "set/set.h"
#include "tamis/catalog.h"

#define RELATIONS_MAX    (TAMIS_ATTRIBUTES_MAX + TAMIS_COMBOS_MAX)
#define STRIP_COLUMNS    512
#define DISTINCT_UNKNOWN UINT32_MAX /* number of values of a relation in a segment: not known */
#define STRIP_NONE       UINT32_MAX /* the segment of a column that was dropped */
#define ORDER_NONE       UINT8_MAX
#define SEGMENTS_MAX     (UINT64_C(1) << 31)
#define CATALOG_FPP      0.003 /* takes a third more space than 0.01; see docs/design.md */
#define CATALOG_MEMORY   ((uint64_t)96 << 20)
/* bytes of a mapped catalog that are in memory at a time */
#define CATALOG_WINDOW ((uint64_t)4 << 20)

struct tamis_schema {
    const struct family *family;
    const tamis_allocator *allocator;
    uint32_t attributes, combos;
    uint64_t masks[TAMIS_COMBOS_MAX];
    tamis_type types[TAMIS_ATTRIBUTES_MAX];
    bool bounds_only[TAMIS_ATTRIBUTES_MAX];
    uint32_t ordered;                       /* number of attributes with bounds */
    uint8_t order_at[TAMIS_ATTRIBUTES_MAX]; /* and their index among those, or ORDER_NONE */
    tamis_verifier verifier;
    double fpp;
    uint64_t segments; /* expected number */
    uint64_t memory;   /* of the writer; 0: this is not one's schema */
    char names[NAMES_MAX];
    uint32_t names_len;
    uint16_t name_at[TAMIS_ATTRIBUTES_MAX];
};

/* Bounds of a segment without values, and of unknown values. */
#define ORDER_LOWEST   ((tamis_order){INT64_MIN, 0})
#define ORDER_HIGHEST  ((tamis_order){INT64_MAX, UINT64_MAX})
#define BOUNDS_NONE    ((tamis_range){ORDER_HIGHEST, ORDER_LOWEST})
#define BOUNDS_UNKNOWN ((tamis_range){ORDER_LOWEST, ORDER_HIGHEST})

/* ---- catalog_schema.c ---- */
tamis_error schema_from(tamis_schema *s, const tamis_catalog_options *o, tamis_reason *reason);
/* A schema with the attributes and combinations of `o->like`. */
tamis_error schema_like(tamis_schema *s, const tamis_catalog_options *o, tamis_reason *reason);
/* Adds attributes and combinations. */
tamis_error schema_extend(tamis_schema *s, const tamis_catalog_options *more, tamis_reason *reason);
/* Checks a schema from untrusted bytes: returns NULL, or what is wrong. Indexes the names. */
const char *schema_wrong(tamis_schema *s);
ALWAYS_INLINE uint32_t schema_relations(const tamis_schema *s)
{
    return s->attributes + s->combos;
}
/* The attributes of a relation, as a mask. */
uint64_t schema_mask(const tamis_schema *s, uint32_t relation);
/* The share of the stated rate for the next segment of a combination, when `live` segments have
   used `used` of it so far. Shares are powers of two, so that segments can have the same shapes. */
double catalog_share(const tamis_schema *s, uint64_t live, double used);

/* ---- catalog_gather.c ---- */

/* A set of digests: open addressing, zero marks a free slot. */
struct digest_set {
    struct block memory;
    uint64_t size; /* slots, a power of two */
    uint64_t n;
    bool zero; /* the digest that looks like a free slot is in the set */
};

/*
 * Values gathered recently, by their bytes: most values of a log occurred a moment ago, and nothing
 * has to be done for them. A value or a part of one has a slot of two or four words, found by a
 * quick hash: its bytes, and in the last four bytes a tag with segment, whole or part, and length.
 * A value that was not seen costs ten times one that was: an attribute has as many slots as fit into
 * the cache of a processor beside those of the others.
 */
#define SEEN_SHORT  12
#define SEEN_LONG   28
#define SEEN_DIGEST 62   /* length code for values that are longer */
#define SEEN_SHARE  4096 /* bytes of the writer's memory per slot, short and long each */
#define SEEN_LEAST  (UINT32_C(1) << 10) /* slots per attribute */
#define SEEN_MOST   (UINT32_C(8) << 10)

#define GATHER_BATCH 64 /* digests prefetched together; 256 took about 5 % more time */
#define LIST_MAX     64 /* most choices of values of one record for a combination */

struct gathered {
    tamis_digest digest;
    uint32_t relation;
};

/* What is needed to gather the values of an attribute. */
struct gathering {
    const struct type *type;
    uint64_t *seen_short, *seen_long;
    tamis_digest
        *whole;     /* of an attribute in a combination: digests of the values in the slots, short,
                            then long ones */
    uint32_t slots; /* 0: only lowest and highest are kept, and nothing is looked up */
    struct plain plain;
};

/* A value of up to 28 bytes whose slot is being fetched. */
struct fetched {
    uint64_t x[4]; /* its bytes and its tag, as in the slot */
    uint32_t slot;
    uint8_t len, words, attribute, record;
};

struct tamis_gather {
    const tamis_schema *schema;
    tamis_allocator allocator;
    uint32_t relations;
    uint64_t records, text, values_len; /* values_len: of all values, if no text is given */
    tamis_range bounds[TAMIS_ATTRIBUTES_MAX];
    bool unknown[RELATIONS_MAX]; /* too many values to record for the segment */
    struct block scratch;        /* of the writer: the column being built */
    bool failed;                 /* no memory for pending digests */
    size_t waiting;
    struct gathered batch[GATHER_BATCH];
    tamis_digest *whole; /* of a record with lists: up to LIST_MAX values of each attribute */
    uint32_t epoch;      /* of the recent values */
    struct block seen, seen_whole;
    struct gathering lane[TAMIS_ATTRIBUTES_MAX];
    uint32_t batch_records; /* as many as are looked up together */
    uint32_t n_records, n_pending;
    struct fetched pending[GATHER_BATCH];
    tamis_digest digests[GATHER_BATCH]; /* of the values of those records, for combinations */
    struct digest_set set[];
};

/* Inserts all that is pending. */
tamis_error gather_settle(tamis_gather *g);
uint64_t digest_set_count(const struct digest_set *set);
/* Lists all digests, approximately in the order of their first probe. */
void digest_set_list(const struct digest_set *set, tamis_digest *out);

/* ---- gather_bytes.c ---- */

/* Adds digests to a relation. In the `slots` of a table a zero is an empty slot, not a digest. */
bool gather_digests(tamis_gather *g, uint32_t relation, const tamis_digest *digests, uint64_t n,
                    bool slots);
void bounds_widen(tamis_range *bounds, const tamis_range *by);

/* ---- catalog_strip.c ---- */

/* Bits between rows for this many columns: 1, 2, 4, or a multiple of 8. */
uint32_t strip_width(uint32_t columns);
bool strip_width_valid(uint32_t width);
/* bytes; the number of rows is a multiple of 8 */
uint64_t strip_len(uint64_t rows, uint32_t width);
/* Transposes columns to rows of a strip: 64 rows for each word of a column. out has 64 * words *
   width / 8 bytes. */
void strip_rows(const uint64_t *const *columns, uint32_t n, uint64_t words, uint32_t width,
                uint8_t *out);
/* The reverse: column i of `rows` goes to words[i], padded with zeros, for those that are not
   NULL. */
void strip_columns(const uint8_t *rows, uint64_t n_rows, uint32_t width, uint64_t *const *columns,
                   uint32_t n);
/* Builds columns of a shape from n digests, distributed over `columns` columns that are
   `column_words` words apart, in zeroed words. */
void strip_build(const struct bits *shape, const tamis_digest *digests, uint64_t n,
                 uint32_t columns, uint64_t column_words, uint64_t *words);
uint64_t strip_column_words(uint64_t rows);

/* ---- a catalog that can be asked: catalog_ask.c, catalog_info.c ---- */

struct catalog_shape {
    uint32_t relation;
    struct column_plan plan;
};

struct catalog_strip {
    uint32_t shape, width, n;
    uint64_t offset; /* of its first byte */
    uint64_t column; /* number of its first column */
    uint32_t next;   /* next strip of the same relation, or STRIP_NONE */
};

/* A front of an attribute; see catalog_front.c. */
struct catalog_front {
    uint32_t attribute;
    uint32_t bits, buckets; /* bits of a fingerprint, and how many of them select the bucket */
    uint32_t next;          /* next front of the same attribute, or STRIP_NONE */
    uint64_t n, most;       /* keys, and the number it was planned for */
    uint64_t given;         /* sum of the distinct keys of the segments that were put */
    uint64_t offset;
};

enum {
    CATALOG_STRIPS,
    CATALOG_FRONTS,
    CATALOG_TABLE,
    CATALOG_TAGS,
    CATALOG_NOTE,
    CATALOG_SUMS,
    CATALOG_TOPS
};
#define CATALOG_SECTIONS 7

/* The body of the file without the schema. */
struct catalog_head {
    uint64_t segments, shapes, strips, columns;
    uint64_t strips_len, tags_len, note_len;
    uint64_t tops_sum; /* checksum of the last section */
    uint64_t fronts, fronts_len;
};

/* The table: shapes, strips, fronts, the segments of columns; then for every segment its
   records, text and the end of its tag; for every relation the distinct values, and for every
   ordered attribute the bounds, of each segment. */
struct catalog_table { /* offset of each part in the file, little-endian and possibly unaligned */
    uint64_t shapes, strips, fronts;
    uint64_t columns;                  /* u32 each */
    uint64_t records, texts, tag_ends; /* u64 per segment */
    uint64_t distinct;                 /* u32 per relation and segment */
    uint64_t bounds;                   /* BOUNDS_LEN per ordered attribute and segment */
    uint64_t end;
};

struct tamis_catalog {
    tamis_allocator allocator;
    struct mapping mapping; /* or bytes of the caller, which are not freed */
    const uint8_t *data;
    uint64_t len, payload;
    struct family family;
    tamis_schema schema;
    struct catalog_head head;
    struct section at[CATALOG_SECTIONS];
    struct catalog_table table;
    struct catalog_shape *shapes;
    struct catalog_strip *strips;
    struct catalog_front *fronts;
    uint32_t first[RELATIONS_MAX]; /* first strip of each relation, or STRIP_NONE */
    uint32_t first_front[TAMIS_ATTRIBUTES_MAX];
    uint64_t *checked, *checked_sums; /* one bit per page, and per page of checksums */
};
/* How many words have the bits of the pages whose checksums this section has. */
#define CHECKED_WORDS(c, sums) ((c)->at[sums].len / (64 * sizeof(uint64_t)) + 1)

/* Checks the pages that contain bytes from .. from + len - 1, unless they were checked before. */
tamis_error catalog_check(const tamis_catalog *c, uint64_t from, uint64_t len,
                          tamis_reason *reason);
/* The same for long ranges, a window at a time, so that no more of a mapping stays in memory. */
tamis_error catalog_check_long(const tamis_catalog *c, uint64_t from, uint64_t len,
                               tamis_reason *reason);
/* The segment of a column; STRIP_NONE if it was dropped. A mapped table may change after it was
   checked: returns false, with a reason, for a number that no segment has. */
bool catalog_column_segment(const tamis_catalog *c, uint64_t column, uint32_t *segment,
                            tamis_reason *reason);
uint32_t catalog_distinct(const tamis_catalog *c, uint64_t segment, uint32_t relation);
tamis_range catalog_bounds(const tamis_catalog *c, uint64_t segment, uint32_t attribute);
struct bits shape_bits(const struct catalog_shape *shape, const struct family *family);
uint64_t catalog_text(const tamis_catalog *c, uint64_t segment); /* bytes */
void catalog_dispose(tamis_catalog *c); /* frees everything but the mapping */

/* ---- catalog_front.c ---- */

#define ENTRY_BITS_MAX 56
#define FRONTS_MAX     64   /* most fronts per attribute */
#define FRONT_REST     4096 /* buckets read before their pages are released */

uint64_t front_len(const struct catalog_front *f);
double front_rate(const struct catalog_front *f); /* rate for keys that occur nowhere */
bool front_valid(const struct catalog_front *f, const tamis_schema *s);
/* Does any front of the attribute, which has at least one, contain a digest with this first
   word? */
tamis_error fronts_find(const tamis_catalog *c, uint32_t attribute, uint64_t word, bool *found,
                        tamis_reason *reason);
/* Reads all entries of a front in order: fingerprints as the leading bits of a word. */
struct front_reader {
    const tamis_catalog *catalog;
    const struct catalog_front *front;
    uint64_t bucket, at, to;
};
bool front_next(struct front_reader *r, uint64_t *word, tamis_error *e, tamis_reason *reason);
tamis_error front_check(const tamis_catalog *c, const struct catalog_front *f,
                        tamis_reason *reason);

#endif
