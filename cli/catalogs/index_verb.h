/*
 * tamis index: reading the inputs and filling a catalog.
 *
 * The inputs to read are cut into jobs. Small files are packed: a job of several is one segment, or
 * as few as fit. A file of more than half a segment is a job of its own, whose segments any thread
 * may take: a thread opens a file of its own as long as there is one, so that decompression runs in
 * all threads, and then helps with the files that others have open.
 */
#ifndef TAMIS_INDEX_VERB_H
#define TAMIS_INDEX_VERB_H

#include <pthread.h>

#include "logs/inputs.h"

struct publisher; /* fleet/fleet.h */

/* A file to read, or the end of one. */
struct task {
    size_t entry;
    bool tail; /* from `from` on */
    struct input_segment from;
    uint64_t bytes; /* of the file, to be read */
};

/* The results. */
struct index_tally {
    uint64_t inputs, bytes, segments; /* read in this run */
    struct counts count;
    uint64_t headers; /* rows after the first that were treated as headers, not records */
    uint64_t failed;  /* inputs that could not be read to the end */
    uint64_t present; /* attributes that some record had */
};

struct index_run {
    struct inputs *inputs;
    const char *path; /* of the catalog */
    char *base;
    tamis_catalog_writer *writer;
    const tamis_schema *schema;
    uint64_t threads;
    bool strict;
    struct task *task;
    size_t n_tasks, tasks_room;
    struct index_tally tally;
    struct publisher *publisher; /* of summaries, or NULL */
    /* Makes the writer of an update, once it is known that there is something to do. */
    bool (*start)(struct index_run *run);
};

/* Expected bytes of text of a file. */
uint64_t text_expected(const char *path, uint64_t bytes);
/* Reads all tasks. False: it has complained, or was interrupted, and nothing may be committed. */
bool index_work(struct index_run *run);

/* index_update.c: what to do for an existing catalog. */
struct update {
    size_t fresh, changed, grown, renamed, gone, same;
    bool touched;        /* the times of a file changed, its bytes did not */
    size_t passed;       /* files that may have records, but cannot be read */
    size_t first_passed; /* the first of them, among the entries */
    bool any;            /* something has to be done */
};
/* Copies the entries of `old` to run->inputs as far as they are valid, finds the tasks, drops
   segments and parts that are gone (catalog NULL: there are none). Inputs out of reach are
   reported, stay as they were, and count as failed; with --strict they end the run. Complains. */
bool update_plan(struct index_run *run, const struct inputs *old, const tamis_catalog *catalog,
                 struct update *update);

/* index_report.c: the figures of a run; `update` NULL: of a new catalog. */
void index_report(const struct index_run *run, const struct update *update, bool json, bool verbose,
                  double seconds);
/* Reports files that may have records and were not read. */
void index_tell_passed(const struct index_run *run, const struct update *update);
/* False: there is no record, or none has any of the attributes, which it reports. */
bool index_worth_keeping(const struct index_run *run);

#endif
