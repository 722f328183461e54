/*
 * tamis find: the records that match, reading only segments that may have one.
 *
 *     when      the conditions: which values of which attributes, for the catalog and for a record
 *     places    what there is to read: parts of candidate segments, tails of files that grew, files
 *               that changed; in the order of the inputs
 *     scan      reads them with several threads and prints the matches in that order
 */
#ifndef TAMIS_FIND_H
#define TAMIS_FIND_H

#include "inputs.h"

/* ---- conditions ------------------------------------------------------------------------------ */

/* A value asked for, in the normal form of its type. */
struct wanted {
    const uint8_t *data;
    size_t len;
    bool missing;
};

/* An attribute and the values it may have. */
struct clause {
    uint32_t attribute;
    tamis_type type;
    struct wanted *value; /* in order */
    tamis_digest *digest; /* as they were given */
    size_t n;
};

struct when {
    struct clause *clause;
    size_t n;
    const char **name; /* of the clauses' attributes: what the reader looks for */
    uint8_t *memory;   /* for normal forms */
};

/* Words such as ip=10.1.2.3, user=, path!. Complains. */
bool when_read(struct when *when, char **words, size_t n, const tamis_schema *schema);
void when_free(struct when *when);
/* Whether the values of a record, one a clause, are what is asked for. */
bool when_holds(const struct when *when, const struct value *values);

/* ---- places ---------------------------------------------------------------------------------- */

enum place_kind {
    PLACE_PART,
    PLACE_TAIL, /* from its start to the end of the file */
    PLACE_WHOLE
};

struct place {
    size_t seen; /* the file, among those seen */
    enum place_kind kind;
    uint64_t segment; /* of the catalog; for PLACE_PART */
    struct input_segment where;
};

/* What was in scope and was not searched: one line names the first and counts the others. What may
   have records but cannot be read, which the index has told of, comes after all else. */
struct missed {
    size_t n, unknown;
    char *path;      /* of the first */
    char why[200];   /* it was not */
    bool gone, weak; /* the first is gone; it is unknown */
};
void missed_add(struct missed *missed, const char *base, const char *path, const char *why);
/* Tells, and gives the status of an answer that would have been `status`. */
int missed_tell(const struct missed *missed, const char *catalog, int status);

struct places {
    struct place *place;
    size_t n, room;
};

/* What of the inputs cannot be searched, as they were seen. */
void sight_missed(const struct sight *sight, const struct inputs *inputs, const char *base,
                  struct missed *missed);
/* The parts of the segments whose bits are set (`segments` words), and what has changed since. */
bool places_find(struct places *places, const struct inputs *inputs, const struct sight *sight,
                 const tamis_catalog *catalog, const uint64_t *segments);

/* ---- records of a text ----------------------------------------------------------------------- */

/* The records of a text that may match, one after the other; most of the others are not parsed. */
struct seek {
    struct parser *parser;
    const struct selection *selection;
    const struct input_text *text;
    const struct wanted *needle; /* NULL: all records are parsed */
    bool escapes, running;
    const uint8_t *start, *at, *end;
    const uint8_t *hit, *escape; /* the next ones, if they are not behind */
    uint64_t runs;
    const uint8_t *counted;
    uint64_t lines; /* before it */
};

tamis_error seek_begin(struct seek *seek, struct parser *parser, const struct selection *selection,
                       const struct when *when, const struct input_text *text);
enum parsed seek_next(struct seek *seek, struct record *record);
/* The lines of the text before a record, which is not before the one asked about last. */
uint64_t seek_line(struct seek *seek, const struct record *record);

/* ---- reading --------------------------------------------------------------------------------- */

struct scan {
    const struct inputs *inputs;
    const struct sight *sight;
    const char *base;
    const struct when *when;
    const struct places *places;
    unsigned threads;
    bool quiet; /* print nothing */
    bool json;
    uint64_t limit; /* records; UINT64_MAX: all */

    uint64_t *hit; /* bits: segments in which something matched */
    uint64_t matches;
    uint64_t bytes_read, text_read;
    uint64_t unindexed; /* of the bytes read, those that the catalog does not know */
    struct missed *missed;
};

/* False: it complained and could not go on. */
bool scan_run(struct scan *scan);

/* A record for --json; the path is JSON already. */
void json_record(struct bytes *out, const char *path_json, const struct dialect *dialect,
                 uint64_t offset, uint64_t line, const struct record *record);
void json_path(struct bytes *out, const char *path); /* a string of JSON, and a zero */
void bytes_put(struct bytes *out, const void *data, size_t len);

#endif
