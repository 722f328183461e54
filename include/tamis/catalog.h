/*
 * tamis: catalogs, files that say which segments of a data set may have a record. After tamis/records.h.
 */
#ifndef TAMIS_CATALOG_PUBLIC_H
#define TAMIS_CATALOG_PUBLIC_H

#include "records.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A catalog is a file about the segments of a data set (pieces of log files, tables, whatever can be
 * read apart from the rest), whose records have named attributes. Asked for some values it names the
 * segments that may have a matching record. Every attribute and every declared combination of
 * attributes is a *relation*; of each, every segment has a column of a bit-sliced matrix.
 *
 * The stated rate is for each segment where one attribute is asked for, and for all segments
 * together where a declared combination is: of a hundred questions about pairs of values that never
 * occur together, though each occurs everywhere, 99 name no segment at 1 %.
 *
 * A schema says what the attributes are. It belongs to the catalog or the writer it comes from, never
 * changes, and may be used by any number of threads.
 */
typedef struct tamis_schema tamis_schema;

/* The number of the attribute of this name; if there is none, the reason lists those there are. */
TAMIS_API tamis_error tamis_schema_attribute(const tamis_schema *schema, const char *name,
                                             uint32_t *number, tamis_reason *reason);
TAMIS_API uint32_t tamis_schema_attributes(const tamis_schema *schema);
TAMIS_API const char *tamis_schema_name(const tamis_schema *schema, uint32_t attribute);
TAMIS_API tamis_type tamis_schema_type(const tamis_schema *schema, uint32_t attribute);
/* Lowest and highest alone are kept: keys of the attribute are not, and reject nothing. */
TAMIS_API bool tamis_schema_bounds_only(const tamis_schema *schema, uint32_t attribute);
/* Combination i, as a mask; 0 if there is none. */
TAMIS_API uint64_t tamis_schema_combo(const tamis_schema *schema, uint32_t i);
TAMIS_API tamis_verifier tamis_schema_verifier(const tamis_schema *schema);
TAMIS_API double tamis_schema_fpp(const tamis_schema *schema);
/* As in an index: the value is brought to the normal form of its type, without data it is missing. */
TAMIS_API tamis_digest tamis_schema_digest(const tamis_schema *schema, uint32_t attribute,
                                           tamis_key value);
/* Of a part of a value (see tamis_type_keys). */
TAMIS_API tamis_digest tamis_schema_part(const tamis_schema *schema, uint32_t attribute,
                                         tamis_key part);

/*
 * Gathering: what one segment has of each relation, exactly and once. One for each thread. A record
 * takes some 16 to 64 bytes for each relation in which it is new; see tamis_gather_bytes, and cut the
 * segment before it is too much.
 */
typedef struct tamis_gather tamis_gather;

TAMIS_API tamis_error tamis_gather_new(tamis_gather **out, const tamis_schema *schema);
TAMIS_API void tamis_gather_free(tamis_gather *gather);
/* One value for each attribute, in order; without data it is missing. */
TAMIS_API tamis_error tamis_gather_add(tamis_gather *gather, const tamis_key *record);
/* The same with a list of values for each attribute: a question matches if one of them does. None: it
   is missing. Combinations are of one value each; a record with more than 64 of some makes that one
   unknown for the segment, which then is a candidate whatever is asked of it. */
typedef struct tamis_values {
    const tamis_key *value;
    size_t n;
} tamis_values;

TAMIS_API tamis_error tamis_gather_add_lists(tamis_gather *gather, const tamis_values *record);
TAMIS_API uint64_t tamis_gather_records(const tamis_gather *gather);
/* How long the text of the segment is, which the sizes of some things are a share of; unless it is told,
   it is that of all values. Told several times, it adds up. */
TAMIS_API void tamis_gather_text(tamis_gather *gather, uint64_t bytes);
/* Memory that what was gathered takes. Empty it is 0: memory that was taken for a segment serves the
   next one. */
TAMIS_API uint64_t tamis_gather_bytes(tamis_gather *gather);
TAMIS_API void tamis_gather_clear(tamis_gather *gather); /* lets go of what was gathered */

/* Zero means default. */
typedef struct tamis_catalog_options {
    const tamis_attribute *attributes; /* `distinct` is not used: it is counted */
    size_t n_attributes;
    const uint64_t *combos;  /* sets of attributes to verify, bit i for attribute i. If none is */
    size_t n_combos;         /* given: all pairs when there are two or three attributes, */
    bool no_combos;          /* or with this none */
    tamis_verifier verifier; /* filter, or none: then there are no combinations */
    double fpp;              /* 0.003 */
    uint64_t segments;       /* expected in all; 1000. With more the rate still holds, but those
                                past it take more bits for their combinations */
    uint64_t memory; /* bytes the writer may hold, whatever the size of the data, beside some
                                200 a segment; 96 MiB */
    tamis_hash hash;
    const uint8_t *key;
    const tamis_allocator *allocator;
} tamis_catalog_options;

/*
 * Writing: a new file, or a new version of one. It is made beside (as large again while it is written)
 * and takes its place at the commit, synced; until then, whatever happens, nothing has changed.
 */
typedef struct tamis_catalog_writer tamis_catalog_writer;

TAMIS_API tamis_error tamis_catalog_create(tamis_catalog_writer **out, const char *path,
                                           const tamis_catalog_options *options,
                                           tamis_reason *reason);
/* Starts with all the file has. `more` (or NULL): attributes that come behind those there are, and
   combinations, bit i for attribute i of all; segments from before answer "maybe" to them. Of its other
   options only the memory counts. Takes no lock: see tamis_file_lock. */
TAMIS_API tamis_error tamis_catalog_update(tamis_catalog_writer **out, const char *path,
                                           const tamis_open_options *options,
                                           const tamis_catalog_options *more, tamis_reason *reason);
TAMIS_API const tamis_schema *tamis_catalog_writer_schema(const tamis_catalog_writer *writer);
/* A segment of the old file, by its number there. EARG if there is none or it was dropped. */
TAMIS_API tamis_error tamis_catalog_drop(tamis_catalog_writer *writer, uint64_t segment);
TAMIS_API tamis_error tamis_catalog_retag(tamis_catalog_writer *writer, uint64_t segment,
                                          const void *tag, size_t len, tamis_reason *reason);
/* One segment more: all that was gathered (which is empty afterwards), and bytes of the caller's
   about it. Threads may call it together. After an error there is nothing to do but to abandon. */
TAMIS_API tamis_error tamis_catalog_put(tamis_catalog_writer *writer, tamis_gather *gather,
                                        const void *tag, size_t len, tamis_reason *reason);
/* `note`: bytes of the caller's about the whole. */
TAMIS_API tamis_error tamis_catalog_commit(tamis_catalog_writer *writer, const void *note,
                                           size_t len, tamis_reason *reason);
/* Frees the writer, after a commit too; without one the file is as it was. */
TAMIS_API void tamis_catalog_abandon(tamis_catalog_writer *writer);

/* Both ends counted. */
typedef struct tamis_range {
    tamis_order low, high;
} tamis_range;

/*
 * Asking. The file is mapped and ready at once whatever its size: what names and places everything is
 * checked, and each piece of the rest when a question touches it for the first time. Any number of
 * threads may ask.
 */
typedef struct tamis_catalog tamis_catalog;

TAMIS_API tamis_error tamis_catalog_open(tamis_catalog **out, const char *path,
                                         const tamis_open_options *options, tamis_reason *reason);
TAMIS_API void tamis_catalog_close(tamis_catalog *catalog);
/* The pages of the file that were read need not stay in memory: they come back when they are touched.
   For one who goes through much of a large one. */
TAMIS_API void tamis_catalog_rest(const tamis_catalog *catalog);
TAMIS_API const tamis_schema *tamis_catalog_schema(const tamis_catalog *catalog);
TAMIS_API bool tamis_catalog_key(const tamis_catalog *catalog, uint8_t key[TAMIS_KEY_LEN]);
/* Segments are numbered from 0 in the order they were put, dropped ones gone. What is returned is as
   long-lived as the catalog. */
TAMIS_API uint64_t tamis_catalog_segments(const tamis_catalog *catalog);
/* NULL if there is no such segment, or the file was changed since it was opened. Tags and the note are
   bytes of the file: unless it was read, check what was copied. */
TAMIS_API const void *tamis_catalog_tag(const tamis_catalog *catalog, uint64_t segment,
                                        size_t *len);
TAMIS_API const void *tamis_catalog_note(const tamis_catalog *catalog, size_t *len);
TAMIS_API uint64_t tamis_catalog_records(const tamis_catalog *catalog, uint64_t segment);
TAMIS_API uint64_t tamis_catalog_text(const tamis_catalog *catalog, uint64_t segment);
/* Lowest and highest value of a segment. False if it has none, or the attribute no order; a segment
   of which it is not known has the lowest and highest there are. */
TAMIS_API bool tamis_catalog_bounds(const tamis_catalog *catalog, uint64_t segment,
                                    uint32_t attribute, tamis_range *bounds);

typedef struct tamis_catalog_answer {
    bool verified; /* something covers just these attributes: one alone, or a declared combination;
                      else the values may stem from several records */
    uint64_t segments;      /* asked, */
    uint64_t by_attributes; /* rejected by the attributes, */
    uint64_t by_verifier;   /* then by combinations, */
    uint64_t candidates;    /* and left */
} tamis_catalog_answer;

/*
 * A condition holds for a segment if one of the keys is there, or a value within one of the ranges (int,
 * dec and time only). Several conditions must all hold, also on one attribute.
 */
typedef struct tamis_condition {
    uint32_t attribute;
    const tamis_digest *keys; /* tamis_schema_digest, tamis_schema_part */
    size_t n;
    bool parts; /* some keys are of parts of values, about which combinations know nothing */
    const tamis_range *ranges;
    size_t n_ranges;
} tamis_condition;

/* Bit i of `segments` ((n + 63) / 64 words for n segments): segment i may have a record for which all
   conditions hold. Every combination is used whose attributes all have a condition with whole values
   alone, as long as there are at most 65,536 choices of them; past that it is not verified. */
TAMIS_API tamis_error tamis_catalog_ask(const tamis_catalog *catalog,
                                        const tamis_condition *conditions, size_t n,
                                        uint64_t *segments, tamis_catalog_answer *answer,
                                        tamis_reason *reason);

typedef struct tamis_catalog_facts {
    uint32_t attributes, combos;
    tamis_verifier verifier;
    tamis_hash hash;
    bool has_key;
    uint64_t segments, records, text, bytes; /* text: of all segments; bytes: of the file */
    uint32_t strips;                         /* matrices of up to 512 columns */
    double fpp;
} tamis_catalog_facts;

typedef struct tamis_relation_facts {
    uint64_t mask; /* one attribute, or a combination */
    uint32_t shapes, strips;
    uint64_t columns, bytes;
    uint64_t distinct, distinct_most; /* summed over the segments, and of one of them */
    uint64_t rows;                    /* bits of the longest column */
    uint32_t hashes;                  /* of the column with the most */
    double fpp;     /* stated: of a segment (attributes), of all together (combinations) */
    double fpp_now; /* as the columns are: the highest of a segment, or all together */
    /* In front of the columns of an attribute, but for words and times, stand the keys of all segments,
       within a 200th of the text; 0 keys where that is too little. */
    uint64_t front_bytes, front_keys;
    double front_fpp;       /* at which a key that is nowhere passes */
    double front_forgotten; /* about: the share of keys of segments that were dropped */
} tamis_relation_facts;

TAMIS_API void tamis_catalog_info(const tamis_catalog *catalog, tamis_catalog_facts *facts);
/* Relation i: attributes first, then combinations; false if there is none. */
TAMIS_API bool tamis_catalog_relation(const tamis_catalog *catalog, uint32_t i,
                                      tamis_relation_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
