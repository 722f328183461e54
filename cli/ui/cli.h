/*
 * What the verbs of the command line share. A verb is one function: it reads its own options
 * (args.h), works, and returns the exit status, as grep does. Results go to standard output through
 * out.h; every problem is one line on standard error: complain().
 */
#ifndef TAMIS_CLI_H
#define TAMIS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tamis/catalog.h"
#include "tamis/plan.h"
#include "tamis/replica.h"

enum status { FOUND = 0, NONE = 1, TROUBLE = 2 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Prints one line "tamis VERB: what: where: what to do"; returns TROUBLE. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same; returns false. */
bool refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "out of memory: WHAT: free some memory and run again"; returns false. */
bool no_memory(const char *what);
/* For an error of the library about a file (or NULL), with advice for that error. */
int complain_of(tamis_error error, const tamis_reason *reason, const char *path);
/* True for TAMIS_OK; false after complaining of any other error. */
bool succeeded(tamis_error error, const tamis_reason *reason, const char *path);
/* About an input; `done` tells how it was handled, instead of advice. */
int complain_input(tamis_error error, const tamis_reason *reason, const char *path,
                   const char *done);
/* Only the description of the problem. */
const char *input_trouble(tamis_error error, const tamis_reason *reason, const char *path);
/* A line that is not an error: what was skipped, what may be lost. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The verb that runs, for complaints. */
extern const char *verb_name;
/* The file mapped last, and the handler for SIGBUS, which the system sends if the file is
   truncated while it is read (overwritten by a copy instead of renamed). */
extern const char *mapped_name;
void complain_of_mapped(int signal_number);

/* The functions of the verbs; argv[0] is the verb. */
typedef int verb_fn(int argc, char **argv);
extern verb_fn verb_index, verb_find, verb_create, verb_change_keys, verb_check, verb_dedup,
    verb_info, verb_verify, verb_change_file, verb_combine, verb_diff, verb_apply, verb_plan,
    verb_bench, verb_publish, verb_follow, verb_locate, verb_forget, verb_where;

/* help.c: prints the help of a verb; NULL: the list of verbs. False: no such verb. */
bool help_print(const char *verb);
extern const char help_first[]; /* one screen for new users */
extern const char help_plan[], help_index[], help_find[];
extern const char help_publish[], help_follow[], help_locate[], help_forget[], help_where[];

#endif
