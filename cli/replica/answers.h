/*
 * Which owners may have a key, as tamis locate prints it and tamis follow --serve answers: names in order,
 * those in doubt apart. A run of keys is asked at once, and what is found goes to out.h.
 */
#ifndef TAMIS_ANSWERS_H
#define TAMIS_ANSWERS_H

#include "ui/cli.h"

#define ANSWERS_RUN 64 /* keys that are asked together */

enum answers_form {
    ANSWERS_TEXT,   /* KEY, a tab, OWNER ?OWNER: keys that nobody has are left out */
    ANSWERS_LINES,  /* {"key": ..., "owners": [...], "maybe": [...]}, a line for each key */
    ANSWERS_OBJECT, /* {"answers": [{"key": ..., "owners": [...]}], "maybe": [...]} */
};

struct answers_name {
    const char *name;
    bool doubt;
    uint64_t version; /* of a list of owners */
};

struct answers {
    const tamis_directory *directory;
    enum answers_form form;
    char end;               /* of a line of text */
    size_t words;           /* for a bit an owner */
    uint64_t *hits, *doubt; /* of a run of keys; of all */
    uint64_t *doubtful;     /* all that was in doubt meanwhile */
    struct answers_name *names;
    uint64_t keys, keys_hit, keys_doubtful; /* so far */
};

/* With the directory and the form set: room for all owners there are. False: no memory. */
bool answers_begin(struct answers *a);
void answers_print(struct answers *a, const tamis_key *keys, size_t n);
/* What is left to print, and frees it. */
void answers_end(struct answers *a);
/* A list of owners, which it puts in order: as text, or a line of JSON each. */
void answers_owners(enum answers_form form, struct answers_name *names, size_t n);

#endif
