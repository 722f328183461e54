/*
 * The catalogs that find queries: each has its own fields and types and interprets the question
 * accordingly. A field that only another catalog has is missing in all records of this one.
 */
#ifndef TAMIS_FIND_TARGET_H
#define TAMIS_FIND_TARGET_H

#include "find.h"
#include "sets/set_file.h"

struct target {
    char *path; /* of the catalog */
    char *base;
    tamis_catalog *catalog;
    uint64_t seen; /* bits: columns of the question that only some record has */
    struct inputs inputs;
    struct fields own, fields; /* of its inputs; and together with those of the other catalogs */
    struct time_context time;
    struct question question;
    bool *prunes;      /* by clause */
    const char **name; /* of the fields to print */
    size_t *column;    /* their columns */
    size_t n_fields;
    uint64_t *bits; /* candidates */
    uint64_t *hit;  /* those in which something matched */
    tamis_catalog_answer answer;
    struct sight sight;
    struct missed missed;
    struct places places;
};

/* The query, the same for all of them. */
struct target_question {
    char **words;
    size_t n;
    const char *since, *until;
    const char *fields; /* to print, separated by commas; NULL: none */
    bool all_fields;    /* all fields, unless some are given */
    bool one;           /* there must be one */
    bool tag;
};

/* The operand is a catalog, or the file or folder from which it was made. *path, the name of the catalog, is to be freed
   after it. NULL and false after complaining. */
tamis_catalog *catalog_open(const char *operand, const struct store_options *options, char **path);
bool target_open(struct target *target, const char *operand, const struct store_options *options);
/* Takes an open catalog; its path was set. Complains. */
bool target_take(struct target *target, tamis_catalog *catalog);
/* Which of its inputs are as they were? Files that are read whole may have any fields. */
bool target_look(struct target *target, bool trust, unsigned threads);
void target_free(struct target *target);
void targets_free(struct target *targets, size_t n);
/* Asks the catalog, whose candidates are then in `bits`. Complains. */
bool target_ask(struct target *target);
/* Tells each about the fields of the others. */
bool targets_join(struct target *targets, size_t n);
/* And about those of catalogs elsewhere. */
bool targets_know(struct target *targets, size_t n, const struct note_field *known, size_t n_known);
/* Parses the question for each of them. Complains. */
bool targets_read(struct target *targets, size_t n, const struct target_question *asked);
/* After reading: complains if the question names an attribute that no record has; returns false
   then. If some records were not read, because they cannot match or because reading was `stopped`
   at --limit, it only remarks that none of those read has it. */
bool targets_unseen(struct target *targets, size_t n, bool stopped);
/* Prints the attributes that can be queried; returns the exit status. */
int targets_about(struct target *targets, size_t n, bool json);

/* Words of 64 bits for the segments. */
uint64_t target_words(const struct target *target);

#endif
