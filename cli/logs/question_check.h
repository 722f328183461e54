/* Tests records against a question. */
#ifndef TAMIS_QUESTION_CHECK_H
#define TAMIS_QUESTION_CHECK_H

#include "question.h"

/* One per thread. */
struct check {
    const struct question *question;
    struct time_context time; /* set `reference` to that of the text */
    size_t period;            /* the column with the time of a record in this input, or NO_COLUMN */
    const char *tag;          /* of the last record: which of the values it has */
    const char *gave_up;      /* a word whose regular expression took too long */
    uint64_t timeless;        /* records that only lack a time, or one that can be read */
    bool timed;               /* a time of the last record could be read */
    struct matcher *matcher;  /* for regular expressions */
    struct span spot;         /* where the last one matched */
};

bool check_start(struct check *check, const struct question *question); /* false: no memory */
void check_end(struct check *check);
/* Does a record with these values, one per column, match? */
bool check_holds(struct check *check, const struct read_value *values);
/* For highlighting: calls `spot` for the bytes of its values that made it match. */
void check_spots(struct check *check, const struct read_value *values,
                 void (*spot)(void *context, struct span bytes), void *context);

/*
 * The segments of a catalog that may have a matching record: adds their bits to `segments`.
 * `prunes[i]`: clause i could rule out segments; the others only filter records.
 */
tamis_error question_ask(const struct question *question, const tamis_catalog *catalog,
                         uint64_t *segments, bool *prunes, tamis_catalog_answer *answer,
                         tamis_reason *reason);

#endif
