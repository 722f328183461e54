/*
 * A question on its way to a host: one JSON object on the standard input of `tamis find --question -`,
 * never words of a remote command line.
 *
 *     {"tamis_question": 1, "catalog": "/var/log/web.tamis", "words": ["ip=10.1.2.3", "user=@0"],
 *      "lists": ["", "ann", "bob"], "since": "2h", "count": "true", "known": ["ip", "user"], ...}
 *
 * The lines of a=@FILE travel with it: =@0 stands for the first list, and an empty string in "lists" starts
 * the next one. A host opens no file that a question names but the catalog, and not even that if it is given
 * one of its own. "known" and "types" are the fields that any host has: one that is not among those of this
 * host is missing in its records.
 *
 * The answer is "tamis answer 1", then what find prints, then "tamis end STATUS": one that was cut off is
 * noticed.
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

/* As JSON. The object of travelling_write, for which lists are read, is the same for all hosts; without its
   bracket it follows what travelling_begin writes for one of them. False after complaining. */
bool travelling_begin(const char *catalog, struct bytes *out);
bool travelling_write(const struct travelling *q, struct bytes *out);
/* From a file descriptor, by others. False after complaining. */
bool travelling_read(struct travelling *q, int fd);
void travelling_free(struct travelling *q);

/* fleet_find.c */
struct fleet_find {
    const char *address, *folder, *via, *seal;
    bool fresh, verbose;
    uint64_t parallel;
    uint64_t timeout; /* nanoseconds of silence; 0: the default */
};

/* find --fleet: the exit status. */
int fleet_find(const struct fleet_find *f, struct travelling *q);

#endif
