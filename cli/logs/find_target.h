/*
 * The catalogs that find asks: each with its own fields and types, so that each reads the question for
 * itself. A field that only another of them has is missing in all records of this one.
 */
#ifndef TAMIS_FIND_TARGET_H
#define TAMIS_FIND_TARGET_H

#include "find.h"
#include "sets/set_file.h"

struct target {
    char *path; /* of the catalog */
    char *base;
    tamis_catalog *catalog;
    uint64_t seen; /* bits: columns of the question that nothing known has, but some record */
    struct inputs inputs;
    struct fields own, fields; /* of its inputs; and with those of the other catalogs */
    struct time_context time;
    struct question question;
    bool *prunes;      /* by clause */
    const char **name; /* of the fields to print, */
    size_t *column;    /* their columns, */
    size_t n_fields;
    uint64_t *bits; /* candidates, */
    uint64_t *hit;  /* and those in which something matched */
    tamis_catalog_answer answer;
    struct sight sight;
    struct missed missed;
    struct places places;
};

/* What is asked of all of them. */
struct target_question {
    char **words;
    size_t n;
    const char *since, *until;
    const char *fields; /* to print, with commas between them; NULL: none */
    bool all_fields;    /* all there are, unless some are named */
    bool one;           /* there must be one */
    bool tag;
};

/* A catalog, or the file or folder that it was made of. Complains. */
bool target_open(struct target *target, const char *operand, const struct store_options *options);
/* One that is open, and then the target's; its path was set. Complains. */
bool target_take(struct target *target, tamis_catalog *catalog);
void target_free(struct target *target);
/* Lets each know the fields of the others. */
bool targets_join(struct target *targets, size_t n);
/* And those of catalogs elsewhere. */
bool targets_know(struct target *targets, size_t n, const struct note_field *known, size_t n_known);
/* Reads the question for each of them. Complains. */
bool targets_read(struct target *targets, size_t n, const struct target_question *asked);
/* Once all is read: complains of an attribute that was asked for and that no record has; false if so. */
bool targets_unseen(struct target *targets, size_t n);
/* What can be asked, on standard output; the exit status. */
int targets_about(struct target *targets, size_t n, bool json);

/* Words of 64 bits for the segments. */
uint64_t target_words(const struct target *target);

#endif
