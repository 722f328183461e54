/*
 * What a catalog knows about the files it was made from.
 *
 * A catalog stores two things besides its bits, both of which belong to the command line
 * (docs/format.md, "Inputs of a catalog"):
 *
 *     the note   about the whole: how the inputs are read, the names that were given (roots), and
 *                an entry for each file, in the order of the roots and by name within a folder
 *     a tag      about a segment: its parts, each a piece of the text of one file
 *
 * An entry has a permanent id, so that tags need not change when other entries come and go. Paths are
 * as given; relative ones are relative to the folder of the catalog, and `base` is that folder as the
 * running program sees it.
 *
 * Data read from a catalog points into it.
 */
#ifndef TAMIS_INPUTS_H
#define TAMIS_INPUTS_H

#include "ui/growing.h"
#include "read/reader.h"

#define NOWHERE SIZE_MAX

struct root {
    const char *path;
    bool folder;
};

/* Which files of folders count, and promises about them; the order is that of the encoding. */
enum rule_kind { RULE_INCLUDE = 1, RULE_EXCLUDE, RULE_APPEND_ONLY };

struct rule {
    enum rule_kind kind;
    const char *glob;
};

/* A field that some input has, indexed or not, and the type of its values. */
struct note_field {
    const char *name;
    tamis_type type;
};

/* Records; among them lines that do not fit their format; and damaged records, which are not
   among them. */
struct counts {
    uint64_t records, unfit, bad;
};
void counts_add(struct counts *to, const struct counts *more);
void counts_take(struct counts *from, const struct counts *less); /* never below 0 */

struct entry {
    uint64_t id;
    uint32_t root;
    const char *path;
    struct raw_id file;      /* when it was read */
    const uint8_t *sums;     /* of its bytes, unless it is unread or skipped */
    enum read_format format; /* how it was read */
    uint8_t delimiter;       /* as in dialects */
    bool headless, returns, in_lines;
    const char *array; /* JSON: where its records are; otherwise NULL */
    const char *time;  /* the attribute with the time, unless the format defines it; NULL: none */
    uint64_t text;     /* bytes of text known */
    struct counts count;
    /* Where to continue when it grows: after the last record that has its line end. */
    bool resumable;
    struct input_segment resume;
    struct counts open; /* of those counted, after that position */
    bool damaged;       /* its compressed data is damaged: what came before is known */
    bool unread;        /* it could not be opened, or changed while it was read: nothing is known */
    const char *passed; /* what it is, if it cannot be read */
    bool unknown;       /* it may contain records */
};

struct inputs {
    struct dialect dialect;
    size_t segment;
    uint64_t next_id;
    struct root *root;
    size_t n_roots, roots_room;
    struct rule *rule;
    size_t n_rules, rules_room;
    struct note_field *field;
    size_t n_fields, fields_room;
    bool chosen;       /* the attributes were chosen, not given */
    bool skip_unknown; /* files that cannot be read are ignored */
    struct entry *entry;
    size_t n, room;
    struct owned own; /* what is not stored in a catalog */
};

void inputs_free(struct inputs *inputs);
/* Stores in an entry how it was read; false: no memory. The second function returns that, so
   that it is read in the same way again. */
bool entry_keep(struct inputs *inputs, struct entry *entry, const struct dialect *dialect);
void entry_restore(const struct entry *entry, struct dialect *dialect);
/* A copy of a string that lives as long as the inputs; NULL: no memory. */
const char *inputs_keep(struct inputs *inputs, const char *text);
bool inputs_add_root(struct inputs *inputs, const char *path, bool folder);
/* Removes the root and its entries. */
void inputs_forget(struct inputs *inputs, uint32_t root);
bool inputs_add_rule(struct inputs *inputs, enum rule_kind kind, const char *glob);
bool inputs_add_field(struct inputs *inputs, const char *name, tamis_type type);
/* Does a rule of this kind apply to a path of an entry? A glob without a slash applies to the
   last name of the path. `none`: the answer if there is no such rule. */
bool inputs_rule(const struct inputs *inputs, enum rule_kind kind, const char *path, bool none);
/* Number of entries that were not skipped. */
size_t inputs_count(const struct inputs *inputs);
/* A new entry, zeroed; NULL: no memory. Entries move when one is added. */
struct entry *inputs_add(struct inputs *inputs);
/* The entries sorted by their ids, from malloc; NULL: no memory. And the one with this id, or NOWHERE. */
size_t *inputs_by_id(const struct inputs *inputs);
size_t inputs_find(const struct inputs *inputs, const size_t *by_id, uint64_t id);

bool inputs_encode(const struct inputs *inputs, struct bytes *out);
tamis_error inputs_decode(struct inputs *inputs, const void *data, size_t len,
                          tamis_reason *reason);
bool names_have(const char *list, const char *name); /* in a list of names, each followed by \n? */
/* Is it the attribute with the time, in some input? */
bool inputs_time(const struct inputs *inputs, const char *name);
/* Refuses a catalog whose zone this machine does not have: its times would be read in another. */
bool inputs_zone(const struct inputs *inputs, const char *catalog);

/* A piece of the text of one file, in a segment. */
struct input_part {
    uint64_t id; /* of its entry */
    struct counts count;
    struct input_segment where;
};
bool tag_add(struct bytes *tag, const struct input_part *part); /* appends it; false: no memory */
/* The parts of a tag in turn: start with *at = 0; false at the end, *bad if it is damaged. */
bool tag_next(const void *tag, size_t len, size_t *at, struct input_part *part, bool *bad);

/* ---- files ----------------------------------------------------------------------------------- */

/* The folder of a catalog, with a slash, or "" for the current one, which is prefixed to
   relative paths. False: no memory, or it does not exist. */
bool base_of(const char *catalog, char **base);
/* The shortest path from there to a path given in the current folder, so that a catalog and its
   inputs can be moved together. The caller frees it; NULL: no memory, or a folder does not
   exist. */
char *base_call(const char *base, const char *given);
/* The path to open; the caller frees it. */
char *base_join(const char *base, const char *path);

/*
 * The files that the roots stand for, in the order of entries; the folders that could not be read,
 * or are empty although they had inputs (a file system that is not mounted), whose contents are
 * unknown, so that their entries are among the files; and what is out of scope. Complains only
 * about memory.
 */
struct name {
    uint32_t root;
    char *path;
    const char *why; /* why it is shut or out of scope, or is listed although it was not seen */
};
struct names {
    struct name_list {
        struct name *name;
        size_t n, room;
    } files, shut, out;
};
bool names_walk(struct names *names, const struct inputs *inputs, const char *base);
void names_free(struct names *names);

/* ---- looking --------------------------------------------------------------------------------- */

enum file_look {
    LOOK_NEW, /* read whole */
    LOOK_CHANGED, /* its name is known, its bytes are not, or were not enough to know its format: read whole */
    LOOK_SAME,  /* unchanged; its name may be different */
    LOOK_GROWN, /* the known bytes, and more */
    LOOK_SHUT,  /* it cannot be examined: what is known about it is in doubt */
    LOOK_GONE,  /* it was given by name, or its folder is gone */
    LOOK_PASSED /* not readable */
};

/* A present file. */
struct seen {
    uint32_t root;
    const char *path;
    enum file_look look;
    size_t entry;       /* the entry with its bytes; NOWHERE: none */
    bool hidden;        /* its folder cannot be read */
    struct raw_id file; /* of SAME: when it was */
    const char *why;    /* SHUT, GONE, PASSED */
    bool unknown;       /* PASSED: it may have records */
};

struct sight {
    struct names names;
    struct seen *seen; /* in the order of names */
    size_t n;
    bool trusted;    /* not examined */
    size_t *where;   /* per entry: the seen file with its bytes, or its name; NOWHERE: gone */
    uint64_t bytes;  /* of all files */
    uint64_t hashed; /* bytes read to compare checksums */
};

/* Examines all inputs, with this many threads. Complains. */
bool sight_take(struct sight *sight, const struct inputs *inputs, const char *base,
                unsigned threads);
/* Without examining them: assumes that nothing changed. */
bool sight_trust(struct sight *sight, const struct inputs *inputs);
void sight_free(struct sight *sight);
const char *look_name(enum file_look look);
/* Prints a line for each: what is searched, and what is not and why. */
void inputs_report(const struct inputs *inputs, const struct sight *sight, const char *base,
                   bool json);

#endif
