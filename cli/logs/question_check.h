/* Records against a question. */
#ifndef TAMIS_QUESTION_CHECK_H
#define TAMIS_QUESTION_CHECK_H

#include "question.h"

/* One for each thread. */
struct check {
    const struct question *question;
    struct time_context time; /* set `reference` to that of the text */
    size_t period;       /* the column that has the time of a record in this input, or NO_COLUMN */
    const char *tag;     /* of the record last checked: which of the values it has */
    const char *gave_up; /* a word whose regular expression took too long */
    uint64_t timeless;   /* records that only lack a time */
    struct matcher *matcher; /* for regular expressions, */
    struct span spot;        /* and where the last one matched */
};

bool check_start(struct check *check, const struct question *question); /* false: no memory */
void check_end(struct check *check);
/* Whether a record with these values, one a column, is what is asked for. */
bool check_holds(struct check *check, const struct value *values);
/* What in the record made it so, for people: calls `spot` for bytes of its values. */
void check_spots(struct check *check, const struct value *values,
                 void (*spot)(void *context, struct span bytes), void *context);

/*
 * The segments of a catalog that may have a record for which the question holds: their bits are added to
 * `segments`. `prunes[i]`: clause i could rule segments out; the others only filter records.
 */
tamis_error question_ask(const struct question *question, const tamis_catalog *catalog,
                         uint64_t *segments, bool *prunes, tamis_catalog_answer *answer,
                         tamis_reason *reason);

#endif
