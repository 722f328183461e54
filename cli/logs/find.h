/*
 * tamis find: the records that match, reading only segments that may have one.
 *
 *     question  the query as clauses, for catalogs and for records (question.h)
 *     places    what has to be read: parts of candidate segments, tails of files that grew, files
 *               that changed; in the order of the inputs
 *     scan      reads them with several threads and prints the matches in that order
 *     out       what is printed of a record
 */
#ifndef TAMIS_FIND_H
#define TAMIS_FIND_H

#include "inputs.h"
#include "question_check.h"

struct target; /* a catalog that is queried: find_target.h */

/* The column with the times of records of such an input, or NO_COLUMN. */
size_t question_period_of(const struct question *question, const struct dialect *dialect);

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

/* What is in scope but was not searched: one line names the first and counts the others. Files that
   may have records but cannot be read, which tamis index has reported, come last. */
struct missed {
    size_t n, unknown;
    char *path;      /* of the first */
    char why[200];   /* the reason */
    bool gone, weak; /* the first is gone; it is unknown */
    bool slow;       /* a regular expression took too long on the first */
};
void missed_add(struct missed *missed, const char *base, const char *path, const char *why,
                bool weak);
/* Reports, and returns the status of an answer that would have been `status`. */
int missed_tell(const struct missed *missed, const char *catalog, int status);

struct places {
    struct place *place;
    size_t n, room;
};

/* The inputs that cannot be searched, as they were seen. */
void sight_missed(const struct sight *sight, const struct inputs *inputs, const char *base,
                  struct missed *missed);
/* Finds the parts of the segments whose bits are set (`segments` words), and what has changed since indexing. */
bool places_find(struct places *places, const struct inputs *inputs, const struct sight *sight,
                 const tamis_catalog *catalog, const uint64_t *segments);

/* ---- records of a text ----------------------------------------------------------------------- */

/* Bytes that occur in every matching record of an input. */
struct needle {
    struct span bytes; /* empty: there are none */
    bool fold;         /* ignore case; the bytes are in lower case */
    struct span other; /* or these, in any case */
};
void needle_of(struct needle *needle, const struct question *question,
               const struct selection *selection);

/* The records of a text that may match, in turn; most of the others are not parsed. */
struct seek {
    struct parser *parser;
    const struct input_text *text;
    const struct needle *needle; /* NULL: all records are parsed */
    bool escapes, running;
    const uint8_t *start, *at, *end;
    const uint8_t *hit, *escape, *other; /* the next ones, unless already passed */
    uint64_t runs;
    const uint8_t *counted;
    uint64_t lines; /* number of lines before it */
};

tamis_error seek_begin(struct seek *seek, struct parser *parser, const struct selection *selection,
                       const struct needle *needle, const struct input_text *text);
enum parsed seek_next(struct seek *seek, struct record *record);
/* The number of lines before a record, which is not before the previous one. */
uint64_t seek_line(struct seek *seek, const struct record *record);

/* ---- counting values ------------------------------------------------------------------------- */

struct counted;
struct tally {
    struct counted **slot;
    size_t n, room;
};
bool tally_put(struct tally *tally, const uint8_t *data, size_t len, bool missing, uint64_t n);
bool tally_add(struct tally *tally, const struct read_value *value); /* false: no memory */
bool tally_merge(struct tally *tally, const struct tally *from);
/* Prints the most frequent first; at most `most`. */
void tally_print(struct tally *tally, uint64_t most, bool json);
void tally_free(struct tally *tally);

/* ---- printing -------------------------------------------------------------------------------- */

enum out_form { OUT_NOTHING, OUT_RECORDS, OUT_FIELDS, OUT_JSON, OUT_TALLY };

struct output {
    enum out_form form;
    bool file, line, tag;        /* printed before the record */
    bool terminal, colour;       /* properties of the output */
    bool chosen;                 /* the fields were given by the user */
    const struct target *target; /* its fields are printed */
};

/* A matching record. */
struct found {
    const char *path;
    bool json; /* it is an object */
    uint64_t offset, line;
    const struct record *record;
    struct check *check;
};

void out_header(const struct output *output); /* for OUT_FIELDS */
void out_record(const struct output *output, struct bytes *to, const struct found *found);

/* ---- reading --------------------------------------------------------------------------------- */

struct scan {
    struct target *target; /* its places are read; what was hit, missed or seen is noted there */
    const struct output *output;
    unsigned threads;
    uint64_t limit; /* records; UINT64_MAX: all */

    struct bytes *header; /* for tables: the one printed last, to a terminal */
    struct tally *tally;  /* for OUT_TALLY */
    uint64_t matches;
    uint64_t timeless; /* records that match but have no time */
    uint64_t unseen;   /* bits: columns that no known record has */
    uint64_t bytes_read, text_read;
    uint64_t unindexed; /* bytes read that the catalog does not know */
};

/* False: it complained and could not continue. */
bool scan_run(struct scan *scan);

#endif
