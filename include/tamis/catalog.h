/*
 * tamis: catalogs, files that tell which segments of a data set may contain a record. Read
 * tamis/records.h first.
 */
#ifndef TAMIS_CATALOG_PUBLIC_H
#define TAMIS_CATALOG_PUBLIC_H

#include "records.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A catalog is a file about the segments of a data set (pieces of log files, tables, anything that
 * can be read independently), whose records have named attributes. For given values it returns the
 * segments that may contain a matching record. Every attribute and every declared combination of
 * attributes is a *relation*; in each relation every segment has a column of a bit-sliced matrix.
 *
 * The stated rate applies to each segment when one attribute is queried, and to all segments
 * together when a declared combination is queried: at 1 %, of a hundred queries for pairs of values
 * that never occur together, though each value occurs everywhere, 99 return no segment.
 *
 * A schema describes the attributes. It belongs to its catalog or writer and never changes.
 */
typedef struct tamis_schema tamis_schema;

/* Finds the number of the attribute with this name; if there is none, the reason lists the
   existing ones. */
TAMIS_API tamis_error tamis_schema_attribute(const tamis_schema *schema, const char *name,
                                             uint32_t *number, tamis_reason *reason);
TAMIS_API uint32_t tamis_schema_attributes(const tamis_schema *schema);
TAMIS_API const char *tamis_schema_name(const tamis_schema *schema, uint32_t attribute);
TAMIS_API tamis_type tamis_schema_type(const tamis_schema *schema, uint32_t attribute);
/* True if only the lowest and highest value are kept: the attribute has no keys, so an equality
   query rejects no segment. */
TAMIS_API bool tamis_schema_bounds_only(const tamis_schema *schema, uint32_t attribute);
/* Combination i, as a mask; 0 if there is none. */
TAMIS_API uint64_t tamis_schema_combo(const tamis_schema *schema, uint32_t i);
/* True if both have the same family, attributes and combinations, so that a value has the same
   digests in both. */
TAMIS_API bool tamis_schema_alike(const tamis_schema *x, const tamis_schema *y);
/* As for records: the value is brought to the normal form of its type; a value without data is
   missing. */
TAMIS_API tamis_digest tamis_schema_digest(const tamis_schema *schema, uint32_t attribute,
                                           tamis_key value);
/* The digest of a part of a value (see tamis_type_keys). */
TAMIS_API tamis_digest tamis_schema_part(const tamis_schema *schema, uint32_t attribute,
                                         tamis_key part);

/*
 * A gatherer collects the distinct keys of one segment in each relation, exactly. A record takes 16
 * to 64 bytes in each relation in which it is new; check tamis_gather_bytes and end the segment
 * before it grows too large.
 */
typedef struct tamis_gather tamis_gather;

TAMIS_API tamis_error tamis_gather_new(tamis_gather **out, const tamis_schema *schema);
TAMIS_API void tamis_gather_free(tamis_gather *gather);
/* One value per attribute, in order; a value without data is missing. */
TAMIS_API tamis_error tamis_gather_add(tamis_gather *gather, const tamis_key *record);
/* The same with a list of values per attribute; a query matches if one of them does, and an
   empty list is a missing value. Combinations take one value of each attribute. If a record has
   more than 64 of one combination, that combination is unknown for the segment, which is then a
   candidate for every query of it. */
typedef struct tamis_values {
    const tamis_key *value;
    size_t n;
} tamis_values;

TAMIS_API tamis_error tamis_gather_add_lists(tamis_gather *gather, const tamis_values *record);
TAMIS_API uint64_t tamis_gather_records(const tamis_gather *gather);
/* Adds to the length of the segment's text, by which some structures are sized. If it is never
   called, the length of all values is used. */
TAMIS_API void tamis_gather_text(tamis_gather *gather, uint64_t bytes);
/* Memory that the collected keys take. It is 0 when empty, although the memory is kept for the
   next segment. */
TAMIS_API uint64_t tamis_gather_bytes(tamis_gather *gather);
TAMIS_API void tamis_gather_clear(tamis_gather *gather); /* discards the collected keys */
/* Adds what `from` has collected; its schema must be alike, and it keeps its keys. Attributes in the
   mask `without` are left out: the segment is then a candidate for every value of theirs. After a
   failure part of the keys may have been added. */
TAMIS_API tamis_error tamis_gather_merge(tamis_gather *gather, tamis_gather *from, uint64_t without,
                                         tamis_reason *reason);
/* Writes the collected keys as bytes, in one call; and adds such bytes, as tamis_gather_merge does. */
TAMIS_API tamis_error tamis_gather_encode(tamis_gather *gather, tamis_write write, void *context);
TAMIS_API tamis_error tamis_gather_decode(tamis_gather *gather, const void *data, size_t len,
                                          tamis_reason *reason);

/* Zero selects the default. */
typedef struct tamis_catalog_options {
    const tamis_attribute *attributes; /* `distinct` is ignored; the keys are counted */
    size_t n_attributes;
    const uint64_t *combos;   /* sets of attributes to verify, bit i for attribute i. Default: */
    size_t n_combos;          /* all pairs if there are two or three attributes, */
    bool no_combos;           /* or none, with this set */
    tamis_verifier verifier;  /* filter or none; without a verifier there are no combinations */
    const tamis_schema *like; /* copies all of the above, the hash and the key from this schema */
    double fpp;               /* default 0.003 */
    uint64_t segments;        /* number expected in total; default 1000. With more segments the
                                rate still holds, but the combinations of the additional ones
                                take more bits */
    bool joinable;   /* for tamis_catalog_join: column sizes come from steps that all such catalogs
                        share, and there are no front filters */
    uint64_t memory; /* bytes that the writer may hold for any size of data, plus about 200 per
                        segment; default 96 MiB */
    tamis_hash hash;
    const uint8_t *key;
    const tamis_allocator *allocator;
} tamis_catalog_options;

/*
 * Writing a new file, or a new version of one. It is built as a separate file, which takes as much
 * disk space again, and replaces the old one at the commit, synced. Until then the old file is
 * unchanged, whatever happens.
 */
typedef struct tamis_catalog_writer tamis_catalog_writer;

TAMIS_API tamis_error tamis_catalog_create(tamis_catalog_writer **out, const char *path,
                                           const tamis_catalog_options *options,
                                           tamis_reason *reason);
/* Starts from the existing file. `more` (or NULL) lists attributes to append to the existing
   ones, and combinations, in which bit i stands for attribute i of all; older segments answer
   "maybe" to them. Of its other fields only `memory` is used. Takes no lock: see
   tamis_file_lock. */
TAMIS_API tamis_error tamis_catalog_update(tamis_catalog_writer **out, const char *path,
                                           const tamis_open_options *options,
                                           const tamis_catalog_options *more, tamis_reason *reason);
TAMIS_API const tamis_schema *tamis_catalog_writer_schema(const tamis_catalog_writer *writer);
/* Both take the number of a segment in the old file. EARG if there is no such segment or it was
   dropped. */
TAMIS_API tamis_error tamis_catalog_drop(tamis_catalog_writer *writer, uint64_t segment,
                                         tamis_reason *reason);
TAMIS_API tamis_error tamis_catalog_retag(tamis_catalog_writer *writer, uint64_t segment,
                                          const void *tag, size_t len, tamis_reason *reason);
/* Adds a segment: everything that was gathered, after which the gatherer is empty, and a tag,
   bytes that belong to the caller. After an error the writer can only be abandoned. */
TAMIS_API tamis_error tamis_catalog_put(tamis_catalog_writer *writer, tamis_gather *gather,
                                        const void *tag, size_t len, tamis_reason *reason);
/* `note`: bytes that belong to the caller, about the whole catalog. */
TAMIS_API tamis_error tamis_catalog_commit(tamis_catalog_writer *writer, const void *note,
                                           size_t len, tamis_reason *reason);
/* Frees the writer, also after a commit; without a commit the file stays as it was. */
TAMIS_API void tamis_catalog_abandon(tamis_catalog_writer *writer);

/* Both ends are included. */
typedef struct tamis_range {
    tamis_order low, high;
} tamis_range;

/*
 * Queries. The file is mapped, which takes the same time for any size: the tables are checked when
 * it is opened, every other page when a query first touches it.
 */
typedef struct tamis_catalog tamis_catalog;

TAMIS_API tamis_error tamis_catalog_open(tamis_catalog **out, const char *path,
                                         const tamis_open_options *options, tamis_reason *reason);
TAMIS_API void tamis_catalog_close(tamis_catalog *catalog);
/* Releases the pages that were read; they are read again when needed. Use this when scanning
   large catalogs. */
TAMIS_API void tamis_catalog_rest(const tamis_catalog *catalog);
TAMIS_API const tamis_schema *tamis_catalog_schema(const tamis_catalog *catalog);
TAMIS_API bool tamis_catalog_key(const tamis_catalog *catalog, uint8_t key[TAMIS_KEY_LEN]);
/* Segments are numbered from 0 in the order in which they were put, without dropped ones.
   Returned pointers are valid as long as the catalog. */
TAMIS_API uint64_t tamis_catalog_segments(const tamis_catalog *catalog);
/* NULL if there is no such segment, or if the file was modified after it was opened. Tags and
   the note point into the mapped file: unless it was opened with `read`, copy them before
   checking them. */
TAMIS_API const void *tamis_catalog_tag(const tamis_catalog *catalog, uint64_t segment,
                                        size_t *len);
TAMIS_API const void *tamis_catalog_note(const tamis_catalog *catalog, size_t *len);
TAMIS_API uint64_t tamis_catalog_records(const tamis_catalog *catalog, uint64_t segment);
/* Lowest and highest value in a segment. False if it has no value or the attribute has no order.
   A segment whose bounds are unknown returns the lowest and highest possible order. */
TAMIS_API bool tamis_catalog_bounds(const tamis_catalog *catalog, uint64_t segment,
                                    uint32_t attribute, tamis_range *bounds);

/* Adds the bounds of a catalog's segment; its schema must be alike. All keys then count as unknown. */
TAMIS_API tamis_error tamis_gather_bounds(tamis_gather *gather, const tamis_catalog *catalog,
                                          uint64_t segment, tamis_reason *reason);
/* Adds segments of another catalog, whose schema must be alike, with their tags: segment i if bit i of
   `segments` is set (NULL: all). Columns are copied unchanged, so columns of one size are adjacent,
   whichever catalog they come from. A writer that joins writes no front filters. After an error the
   writer can only be abandoned. */
TAMIS_API tamis_error tamis_catalog_join(tamis_catalog_writer *writer, const tamis_catalog *from,
                                         const uint64_t *segments, tamis_reason *reason);

typedef struct tamis_catalog_answer {
    /* Just one attribute, or a declared combination; otherwise the values may come from several
       records. */
    bool verified;
    uint64_t segments;      /* queried */
    uint64_t by_attributes; /* rejected by attributes */
    uint64_t by_verifier;   /* rejected by combinations */
    uint64_t candidates;    /* remaining */
} tamis_catalog_answer;

/*
 * A condition holds for a segment that has one of the keys, or a value within one of the ranges
 * (int, dec and time only). Several conditions must all hold, also on the same attribute.
 */
typedef struct tamis_condition {
    uint32_t attribute;
    const tamis_digest *keys; /* tamis_schema_digest, tamis_schema_part */
    size_t n;
    bool parts; /* some keys are parts of values, which combinations do not contain */
    const tamis_range *ranges;
    size_t n_ranges;
} tamis_condition;

/* Sets bit i of `segments` ((n + 63) / 64 words for n segments) if segment i may contain a
   record for which all conditions hold. Every combination is used whose attributes all have a
   condition on whole values only, up to 65,536 choices of values; past that the answer is not
   verified. */
TAMIS_API tamis_error tamis_catalog_ask(const tamis_catalog *catalog,
                                        const tamis_condition *conditions, size_t n,
                                        uint64_t *segments, tamis_catalog_answer *answer,
                                        tamis_reason *reason);

typedef struct tamis_catalog_facts {
    uint32_t attributes, combos;
    tamis_verifier verifier;
    tamis_hash hash;
    bool has_key;
    uint64_t segments, records, text, bytes; /* text: in all segments; bytes: size of the file */
    uint32_t strips;                         /* matrices of up to 512 columns */
    double fpp;
} tamis_catalog_facts;

typedef struct tamis_relation_facts {
    uint64_t mask; /* one attribute, or a combination */
    uint32_t shapes, strips;
    uint64_t columns, bytes;
    uint64_t distinct, distinct_most; /* total over the segments, and most in one segment */
    uint64_t rows;                    /* bits of the longest column */
    uint32_t hashes;                  /* most probes of any column */
    double fpp;     /* stated, per segment (attributes) or for all together (combinations) */
    double fpp_now; /* of the actual columns: the highest of any segment, or all together */
    /* In front of the columns of each attribute, except words and times, is a list of the keys
       of all segments, limited to 1/200 of the text; 0 keys if it does not fit. */
    uint64_t front_bytes, front_keys;
    double front_fpp;       /* rate at which a key that occurs nowhere passes */
    double front_forgotten; /* estimated share of the keys that belong to dropped segments */
} tamis_relation_facts;

TAMIS_API void tamis_catalog_info(const tamis_catalog *catalog, tamis_catalog_facts *facts);
/* Relation i: attributes first, then combinations; false if there is no such relation. */
TAMIS_API bool tamis_catalog_relation(const tamis_catalog *catalog, uint32_t i,
                                      tamis_relation_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
