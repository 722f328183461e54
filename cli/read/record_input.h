/*
 * Records for an index, in batches: one from arguments (attr=value attr= attr!), else those of standard
 * input, CSV, TSV or JSONL. A batch is hashed at once; what is printed is the record as it was.
 */
#ifndef TAMIS_RECORDS_H
#define TAMIS_RECORDS_H

#include "ui/cli.h"
#include "reader.h"
#include "tamis/records.h"

#define RECORDS_BATCH 1024

struct records {
    unsigned format; /* enum read_format, plus 1 */
    bool headless, delimited, strict;
    char delimiter;
    const char *attrs; /* check: the attributes that count; NULL: all that are there */
    char **word;
    size_t n_words;
    uint64_t mask;              /* result: the attributes that counted */
    uint64_t bad, first_bad;    /* result: records skipped, the line of the first, */
    const char *first_bad_text; /* and why */
};

/* In the order of the input; memory for digests is made by records_run. */
struct record_batch {
    size_t n;
    tamis_key text[RECORDS_BATCH]; /* as they were, with their line ends */
    tamis_digest *digest;          /* as many for each as the index has attributes */
    uint8_t mark[RECORDS_BATCH];
};

struct records_work {
    const tamis_records *index;
    bool asks; /* attributes that are not there do not count, and one may have several values */
    /* A batch from standard input; false stops. */
    bool (*take)(void *context, struct record_batch *batch);
    /* The record of the arguments, n choices; false stops. Not for those that ask: then a batch. */
    void (*ask)(void *context, const tamis_choice *choices, size_t n);
    void *context;
};

/* FOUND when all is read or `take` stopped, TROUBLE after complaining. */
int records_run(struct records *records, const struct records_work *work);

/* Says so if nothing verifies a question about these attributes. */
void records_warn(const tamis_records *index, uint64_t mask);

/* "a+b", as --combo would have it; cut short if there is no room. */
void records_names(const tamis_records *index, uint64_t mask, char *out, size_t room);

#define RECORDS_ARGS(r)                                   \
    ARG_ONE_OF("format", &(r).format, READ_FORMAT_NAMES), \
        ARG("no-header", 0, ARG_FLAG, &(r).headless)

#endif
