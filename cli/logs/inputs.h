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

#include "ui/cli.h"
#include "read/reader.h"

/* Memory from malloc that lives as long as something else. Start with {0}. */
struct owned {
    void **memory;
    size_t n, room;
};
bool owned_adopt(struct owned *own, void *memory); /* false: no memory, or NULL; then it is freed */
void owned_free(struct owned *own);

struct root {
    const char *path;
    bool folder;
};

/* Which files of folders count, and what was promised of them: the order is that of the bytes. */
enum rule_kind { RULE_INCLUDE = 1, RULE_EXCLUDE, RULE_APPEND_ONLY };

struct rule {
    enum rule_kind kind;
    const char *glob;
};

/* A field that some input has, indexed or not, and what its values look like. */
struct note_field {
    const char *name;
    tamis_type type;
};

/* Records; lines that their format does not fit, which are among them; and damaged ones, which are not. */
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
    const uint8_t *sums;     /* of its bytes, unless it is unread or passed over */
    enum read_format format; /* how it was read, */
    uint8_t delimiter;       /* as dialects have it */
    bool headless, returns;
    const char *array; /* JSON: where its records are; else NULL */
    uint64_t text;     /* bytes of text known */
    struct counts count;
    /* Where to go on when it grows: behind the last record that has its line end. */
    bool resumable;
    struct input_segment resume;
    struct counts open; /* of those counted, behind that place */
    bool damaged;       /* its compression broke off: what came before is known */
    bool unread;        /* it could not be opened, or changed while it was read: nothing is known */
    const char *passed; /* it is nothing that can be read, but this */
    bool unknown;       /* which may have records */
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
    bool chosen;       /* the attributes were, nobody gave them */
    bool skip_unknown; /* files that cannot be read are none of our business */
    struct entry *entry;
    size_t n, room;
    struct owned own; /* what does not lie in a catalog */
};

void inputs_free(struct inputs *inputs);
/* How an entry was read, kept in it; false: no memory. And the other way: so it is read again,
   whatever it looks like now. */
bool entry_keep(struct inputs *inputs, struct entry *entry, const struct dialect *dialect);
void entry_restore(const struct entry *entry, struct dialect *dialect);
/* A copy of a string, that lives as long as the inputs; NULL: no memory. */
const char *inputs_keep(struct inputs *inputs, const char *text);
bool inputs_add_root(struct inputs *inputs, const char *path, bool folder);
/* Without the root and its entries. */
void inputs_forget(struct inputs *inputs, uint32_t root);
bool inputs_add_rule(struct inputs *inputs, enum rule_kind kind, const char *glob);
bool inputs_add_field(struct inputs *inputs, const char *name, tamis_type type);
/* Does a rule of this kind hold for a path, as entries have it? A glob without a slash is about the
   last name of the path alone. `none`: the answer if there is no such rule. */
bool inputs_rule(const struct inputs *inputs, enum rule_kind kind, const char *path, bool none);
/* Entries that are no files passed over. */
size_t inputs_count(const struct inputs *inputs);
/* A new entry, all zero; NULL: no memory. Entries move when one is added. */
struct entry *inputs_add(struct inputs *inputs);

/* Bytes that grow. */
struct bytes {
    uint8_t *data;
    size_t len, room;
    bool failed; /* no memory */
};
void bytes_put(struct bytes *bytes, const void *data, size_t len);
void bytes_end(struct bytes *bytes);
uint64_t bytes_hash(const uint8_t *data, size_t len); /* for tables in memory */
/* Room for one more in an array of elements of `size` bytes; false: no memory. */
bool room_for(void *array, size_t n, size_t *room, size_t size);
bool inputs_encode(const struct inputs *inputs, struct bytes *out);
tamis_error inputs_decode(struct inputs *inputs, const void *data, size_t len,
                          tamis_reason *reason);

/* A piece of the text of one file, in a segment. */
struct part {
    uint64_t id; /* of its entry */
    struct counts count;
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

/*
 * The files that the roots stand for, in the order of entries; the folders that could not be read,
 * or are empty though they had inputs (a file system that is not mounted): what is in them is not
 * known, so their entries are among the files; and what is out of scope. Complains of lacking memory
 * alone.
 */
struct name {
    uint32_t root;
    char *path;
    const char *why; /* it is shut, out of scope, or among the files though nobody saw it */
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

enum look {
    LOOK_NEW,     /* read whole */
    LOOK_CHANGED, /* its name is known, its bytes are not: read whole */
    LOOK_SAME,    /* as it was; its name may be another */
    LOOK_GROWN,   /* what was known is there, and more */
    LOOK_SHUT,    /* it cannot be looked at: what is known of it is in doubt */
    LOOK_GONE,    /* it was named, or its folder is gone */
    LOOK_PASSED   /* nothing that can be read */
};

#define NOWHERE SIZE_MAX

/* A file of today. */
struct seen {
    uint32_t root;
    const char *path;
    enum look look;
    size_t entry;       /* what is known of it; NOWHERE: nothing */
    bool hidden;        /* its folder is shut */
    struct raw_id file; /* of SAME: when it was */
    const char *why;    /* SHUT, GONE, PASSED */
    bool unknown;       /* PASSED: it may have records */
};

struct sight {
    struct names names;
    struct seen *seen; /* in the order of names */
    size_t n;
    bool trusted;    /* nobody looked */
    size_t *where;   /* of each entry: the seen that has its bytes, else its name; NOWHERE: gone */
    uint64_t bytes;  /* of all files */
    uint64_t hashed; /* bytes read to compare sums */
};

/* Looks at all inputs, with so many threads. Complains. */
bool sight_take(struct sight *sight, const struct inputs *inputs, const char *base,
                unsigned threads);
/* Without looking: all is as it was. */
bool sight_trust(struct sight *sight, const struct inputs *inputs);
void sight_free(struct sight *sight);
const char *look_name(enum look look);
/* A line for each on standard output: what is searched, and what is not and why. */
void inputs_report(const struct inputs *inputs, const struct sight *sight, const char *base,
                   bool json);

#endif
