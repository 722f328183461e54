/*
 * A question sent to a host: one JSON object on the standard input of `tamis find --question -`, never part of a
 * remote command line.
 *
 *     {"tamis_question": 1, "catalog": "/var/log/web.tamis", "words": ["ip=10.1.2.3", "user=@0"],
 *      "lists": ["", "ann", "bob"], "since": "2h", "count": "true", "known": ["ip", "user"], ...}
 *
 * The lines of a=@FILE are sent along: =@0 means the first list, and an empty string in "lists" starts the next
 * one. A host opens no file that a question names except the catalog, and not even that if its command line
 * names one. "known" and "types" are the fields that any host has: those that this host does not have are
 * missing in its records.
 *
 * The answer is "tamis answer 1", the output of find, and "tamis end STATUS", which shows that it is complete.
 */
#ifndef TAMIS_FLEET_QUESTION_H
#define TAMIS_FLEET_QUESTION_H

#include "fleet.h"

#define ANSWER_FIRST "tamis answer 1\n"
#define ANSWER_LAST  "tamis end "

struct travelling {
    const char *catalog;
    char **words;
    size_t n;
    const char *since, *until, *fields, *count_by;
    bool count, json, file, line, tag, limited;
    uint64_t limit;
    struct note_field *known;
    size_t n_known;
    struct owned own;
};

/* As JSON, in two parts: the one that differs between hosts, and an object with the rest, which follows it without its
   bracket. False after complaining. */
bool travelling_begin(const char *catalog, struct bytes *out);
bool travelling_write(const struct travelling *q, struct bytes *out);
/* Reads an untrusted question. False after complaining. */
bool travelling_read(struct travelling *q, int fd);
void travelling_free(struct travelling *q);
/* How it queries catalogs, and what it prints: the counts, once everything was read. */
struct target_question travelling_asks(const struct travelling *q);
void travelling_counts(const struct travelling *q, struct tally *tally, uint64_t matches);

/* fleet_find.c */
struct fleet_find {
    const char *address, *folder, *via, *seal;
    bool fresh, verbose;
    uint64_t parallel;
    uint64_t timeout; /* nanoseconds of silence; 0: the default */
};

/* Returns the exit status. */
int fleet_find(const struct fleet_find *f, struct travelling *q);

#endif
