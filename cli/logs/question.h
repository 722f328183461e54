/*
 * Questions about records, one word of the command line each.
 *
 *     a=v            equal in the normal form of the type; with a== v is literal text
 *     a=@FILE        any of the lines of a file, each as after a=
 *     a=v1..v2       a range including both ends, one of which may be open; on int, dec, time
 *     a=10.1.0.0/16  a network; on ip
 *     a= a! a^=text  empty; missing; what it begins with
 *     a<v a<=v a>v a>=v
 *     a!=…           the complement of a=…
 *     a~"two words"  consecutive words, a~/regex/ a regular expression (PCRE2), /regex/i without case
 *     word           of the whole line
 *
 * `=`, `!` and `^=` on one attribute are alternatives, one *clause*, a set; the values of `!=` form
 * another, none of which may occur. Every other word is a separate clause, and a record matches if all
 * clauses hold. Each clause is checked on the values of the record, whatever a catalog could rule out
 * before, so that find prints what a scan would print.
 *
 * Fields have types, which determine how a word is parsed: the type of the catalog's attribute, or the
 * one that was guessed for a field that is not indexed.
 */
#ifndef TAMIS_QUESTION_H
#define TAMIS_QUESTION_H

#include "inputs.h"
#include "read/reader.h"
#include "read/time_read.h"
#include "tamis/catalog.h"

#define NOT_INDEXED UINT32_MAX

/* A field that a question may name. */
struct field {
    const char *name;
    tamis_type type;
    uint32_t attribute; /* of the catalog, or NOT_INDEXED */
    bool unseen;        /* no indexed or sampled record has it, but other records may */
};

struct fields {
    struct field *field;
    size_t n, room;
    bool open; /* inputs define their own fields: there may be more */
};

/* Text, not terminated. */
struct span {
    const uint8_t *data;
    size_t len;
};

/* A value of the question, in the normal form of its type. */
struct wanted {
    struct span is;
    const char *given; /* as it was written, for --tag */
};

/* From `low` to `high`: the text of numbers, the moment of times. */
struct end {
    bool there;   /* otherwise the range is open here */
    bool outside; /* the end itself is excluded */
    struct span text;
    struct stamp time;
};
struct range {
    struct end low, high;
    const char *given;
    size_t widest; /* once sorted: the range with the highest end among those up to this one */
};

struct network {
    uint8_t address[16]; /* the bits after the network are zero; IPv4 as ::ffff:10.1.0.0 */
    unsigned bits;       /* of the 128 */
    const char *given;
};

enum clause_kind { CLAUSE_SET, CLAUSE_WORDS, CLAUSE_REGEX };

/* What was perhaps meant by a value: one of the type; an expression, as in a=/x/; what is within quotes; a range
   whose ends are the other way round. By words: an attribute, as in user:ann; addresses. */
enum doubt { DOUBT_TYPE, DOUBT_REGEX, DOUBT_QUOTES, DOUBT_RANGE, DOUBT_NAME, DOUBT_NETWORK };
#define NAME_ENDS " :=<>!~" /* an attribute's name that may have been meant ends here */

struct clause {
    enum clause_kind kind;
    bool negative;     /* no value is in the set */
    bool open;         /* a set that takes more */
    bool missing;      /* missing is an alternative */
    size_t column;     /* its field, among those of the question */
    const char *word;  /* the first word that made it, as given */
    const char *doubt; /* a word whose value may not have been meant */
    enum doubt doubted;
    struct wanted *value, *prefix; /* values are sorted */
    size_t n_values, values_room, n_prefixes, prefixes_room;
    struct range *range; /* sorted by their low ends */
    size_t n_ranges, ranges_room;
    struct network *network;
    size_t n_networks, networks_room;
    struct span phrase; /* words */
    void *regex;
    bool tagged; /* the value that it finds is the record's tag */
};

struct question {
    struct field *column; /* the fields that are tested */
    const char **name;    /* their names, for the reader */
    size_t n_columns, columns_room, names_room;
    size_t *period; /* columns that have the times of records, depending on the format */
    size_t n_periods, periods_room;
    size_t n_pruning; /* the first of them are those of indexed inputs */
    struct clause *clause;
    size_t n, room;
    struct time_context *time; /* for times without a zone */
    struct owned own;
    bool full;     /* no memory for the normal form of a value */
    char why[800]; /* after a step that failed: "what: where: what to do" */
};

/* Parses the words. False: `why` says why; free the question anyway. Words, fields and context must
   outlive the question. */
bool question_read(struct question *q, char *const *words, size_t n, const struct fields *fields,
                   struct time_context *time);
void question_free(struct question *q);
/* The column of a field, added if necessary. */
#define NO_COLUMN SIZE_MAX /* no memory */
size_t question_column(struct question *q, const struct field *field);
/* --since and --until, of which one may be NULL: a last clause, whose column is PERIOD, which
   stands for one of those in `period`, depending on the input. */
#define PERIOD (SIZE_MAX - 1)
bool question_period(struct question *q, const char *since, const char *until);
bool question_period_field(struct question *q, const struct field *field); /* false: no memory */

#endif
