/*
 * Which owners may have a key, as tamis locate prints it and tamis follow --serve answers: sorted
 * names, those in doubt separately. A run of keys is queried at once, and the results go to out.h.
 */
#ifndef TAMIS_ANSWERS_H
#define TAMIS_ANSWERS_H

#include "ui/cli.h"

#define ANSWERS_RUN 64 /* keys queried together */

enum answers_form {
    ANSWERS_TEXT,   /* KEY, a tab, OWNER ?OWNER: keys without owners are left out */
    ANSWERS_LINES,  /* {"key": ..., "owners": [...], "maybe": [...]}, one line per key */
    ANSWERS_OBJECT, /* {"answers": [{"key": ..., "owners": [...]}], "maybe": [...]} */
};

struct answers_name {
    const char *name; /* first: see answers_by_name */
    bool doubt;
    uint64_t version; /* of a list of owners */
};

struct answers {
    const tamis_directory *directory;
    enum answers_form form;
    char end;               /* of a line of text */
    size_t words;           /* words for one bit per owner */
    uint64_t *hits, *doubt; /* of a run of keys; at the last query */
    uint64_t *doubtful;     /* owners that were in doubt at any query */
    struct answers_name *names;
    uint64_t keys, keys_hit, keys_doubtful; /* so far */
};

/* Set `directory`, `form` and `end` first. False: no memory. */
bool answers_begin(struct answers *a);
void answers_print(struct answers *a, const tamis_key *keys, size_t n);
/* Prints the rest and frees it. */
void answers_end(struct answers *a);
/* Orders structs that begin with a name. */
int answers_by_name(const void *x, const void *y);
/* Prints an owner of a list: as text, or one line of JSON. */
void answers_owner(enum answers_form form, const char *name, bool doubt, uint64_t version);

#endif
