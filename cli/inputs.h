/*
 * What a catalog knows of the files it was made from.
 *
 * Two things are kept in a catalog besides its bits, and both are the command line's own
 * (docs/format.md, "Inputs of a catalog"):
 *
 *     the note   about the whole: how the inputs are read, the names that were given (roots), and
 *                an entry for each file, in the order of the roots and by name within a folder
 *     a tag      about a segment: its parts, each a piece of the text of one file
 *
 * An entry has an id that stays when others come and go, so that tags need not change with them.
 * Paths are as given; relative ones are relative to the folder of the catalog, and `base` is that
 * folder as the running program sees it.
 *
 * What is read from a catalog points into it.
 */
#ifndef TAMIS_INPUTS_H
#define TAMIS_INPUTS_H

#include "cli.h"
#include "reader.h"

struct root {
    const char *path;
    bool folder;
};

struct entry {
    uint64_t id;
    uint32_t root;
    const char *path;
    uint64_t size; /* of the file, when it was read */
    int64_t mtime; /* nanoseconds */
    uint64_t mark; /* of its first and last bytes: see mark_of() */
    uint64_t text; /* bytes of text known */
    uint64_t records, bad;
    /* Where to go on when it grows: behind the last record that has its line end. */
    bool resumable;
    struct input_segment resume;
    uint64_t open_records, open_bad; /* of those counted, behind that place */
    bool damaged;                    /* its compression broke off: what came before is known */
    bool unread;                     /* it could not be opened: nothing is known */
};

struct inputs {
    struct dialect dialect;
    size_t segment;
    uint64_t next_id;
    struct root *root;
    size_t n_roots, roots_room;
    struct entry *entry;
    size_t n, room;
    void **own; /* what does not lie in a catalog */
    size_t n_own, own_room;
};

void inputs_free(struct inputs *inputs);
/* A copy of a string, that lives as long as the inputs; NULL: no memory. */
const char *inputs_keep(struct inputs *inputs, const char *text);
/* Memory from malloc, freed with the inputs. */
bool inputs_adopt(struct inputs *inputs, void *memory);
bool inputs_add_root(struct inputs *inputs, const char *path, bool folder);
/* A new entry, all zero; NULL: no memory. Entries move when one is added. */
struct entry *inputs_add(struct inputs *inputs);

/* Bytes that grow. */
struct bytes {
    uint8_t *data;
    size_t len, room;
    bool failed; /* no memory */
};
bool inputs_encode(const struct inputs *inputs, struct bytes *out);
tamis_error inputs_decode(struct inputs *inputs, const void *data, size_t len,
                          tamis_reason *reason);

/* A piece of the text of one file, in a segment. */
struct part {
    uint64_t id; /* of its entry */
    uint64_t records, bad;
    struct input_segment where;
};
void tag_start(struct bytes *out);
bool tag_add(struct bytes *out, const struct part *part);
/* The parts of a tag one after the other: start with *at = 0; false at the end, *bad if it is no
   tag. */
bool tag_next(const void *tag, size_t len, size_t *at, struct part *part, bool *bad);

/* ---- files ----------------------------------------------------------------------------------- */

/* The folder of a catalog, with a slash, or "" for the current one: what relative paths get in
   front. False: no memory, or it is not there. */
bool base_of(const char *catalog, char **base);
/* What a path given in the current folder is called from there, the shortest way: a catalog among
   its inputs goes with them wherever their folder goes. The caller's; NULL: no memory, or a folder is
   not there. */
char *base_call(const char *base, const char *given);
/* The path to open; the caller's. */
char *base_join(const char *base, const char *path);

/* The files that the roots stand for, in the order of entries, and the folders that could not be
   read: what is in them is not known. Complains of lacking memory alone. */
struct name {
    uint32_t root;
    char *path;
    int error; /* of a folder: errno */
};
struct names {
    struct name_list {
        struct name *name;
        size_t n, room;
    } files, shut;
};
bool names_walk(struct names *names, const struct inputs *inputs, const char *base);
void names_free(struct names *names);
/* Tells of the shut folders, and what comes of it. */
void names_tell_shut(const struct names *names, const char *base, const char *done);
/* Is it a folder that may well be there, and its files too? */
bool name_hides(const struct name *shut);
/* Lies the entry in such a folder? */
bool names_hide(const struct names *names, const struct entry *entry);

/* XXH3 of the first and the last 4,096 of `size` bytes; false if they cannot be read. */
bool mark_of(const char *path, uint64_t size, uint64_t *mark);

enum look {
    LOOK_SAME,
    LOOK_GROWN,   /* what was known is there, and more */
    LOOK_CHANGED, /* anything else */
    LOOK_GONE
};
/* What became of a file, and its size now. `deep`: one of the same size and time is looked into. */
enum look look_at(const char *base, const struct entry *entry, bool deep, uint64_t *size);

#endif
