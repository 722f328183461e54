/*
 * Records in batches: one from arguments (attr=value attr= attr!), or those of standard input in
 * any format. A batch is hashed at once; records are printed unchanged.
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
    const char *attrs; /* check: the attributes that count; NULL: all that the input has */
    char **word;
    size_t n_words;
    uint64_t mask;              /* result: the attributes that counted */
    uint64_t bad, first_bad;    /* result: number of records skipped, line of the first one */
    const char *first_bad_text; /* and the reason */
};

/* In the order of the input; records_run allocates the digests. */
struct record_batch {
    size_t n;
    tamis_key text[RECORDS_BATCH]; /* unchanged, with their line ends */
    tamis_digest *digest;          /* one per attribute for each record */
    uint8_t mark[RECORDS_BATCH];
};

struct records_work {
    const tamis_records *set;
    bool asks; /* missing attributes do not count, and an attribute may have several values */
    /* A batch from standard input; false stops. */
    bool (*take)(void *context, struct record_batch *batch);
    /* The record of the arguments, n choices. Only for queries; others get a batch. */
    void (*ask)(void *context, const tamis_choice *choices, size_t n);
    void *context;
};

/* FOUND when everything was read or `take` stopped, TROUBLE after complaining. */
int records_run(struct records *records, const struct records_work *work);

/* Warns if nothing verifies a query with these attributes. */
void records_warn(const tamis_records *set, uint64_t mask);

/* "a+b", in the form of --combo; truncated if it does not fit. */
void records_names(const tamis_records *set, uint64_t mask, char *out, size_t room);

#define RECORDS_ARGS(r)                                   \
    ARG_ONE_OF("format", &(r).format, READ_FORMAT_NAMES), \
        ARG("no-header", 0, ARG_FLAG, &(r).headless)

#endif
