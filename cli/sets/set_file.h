/* Filters and records in files: opened for queries, or locked, loaded, changed and saved. All
   functions complain. */
#ifndef TAMIS_STORE_H
#define TAMIS_STORE_H

#include "api/api.h"
#include "base/base.h"
#include "ui/cli.h"

/* Options of every verb that opens files. */
struct store_options {
    const char *key_file; /* for files saved without their key */
    bool no_wait;         /* fail if another process is writing */
    bool verify;          /* check every byte before queries */
    bool replays;         /* reads FILE.changes; other verbs wait for it */
};
#define STORE_KEY_ARG(o)   ARG("key-file", 0, ARG_TEXT, &(o).key_file)
#define STORE_WRITE_ARG(o) ARG("no-wait", 0, ARG_FLAG, &(o).no_wait)
#define STORE_READ_ARG(o)  ARG("verify", 0, ARG_FLAG, &(o).verify)

/* A file; it is locked if this process changes it. */
struct store {
    const char *path;
    tamis_lock *lock;
    struct set *set; /* NULL: not read */
};

/* How much of a file to read. */
enum store_how {
    STORE_ASK,   /* mapped, read-only, without the counters of a deletable one */
    STORE_WHOLE, /* with its counters: in memory if it has some, otherwise mapped */
    STORE_LOAD,  /* in memory, every byte checked, can be changed */
};
/* How the library is to open the file; `key` has room for the one in the key file. */
bool store_open(const struct store_options *options, const char *path, uint8_t key[TAMIS_KEY_LEN],
                tamis_open_options *out);
/* Reads a file, which must be of this kind, or with TAMIS_KIND_NONE a filter or records; NULL
   after complaining. */
struct set *store_read(const char *path, tamis_kind kind, enum store_how how,
                       const struct store_options *options);
/* For queries; or locked and loaded, for changes. */
bool store_ask(struct store *store, const char *path, const struct store_options *options);
bool store_change(struct store *store, const char *path, tamis_kind kind,
                  const struct store_options *options);
static inline bool store_has_records(const struct store *store)
{
    return set_kind(store->set) == TAMIS_KIND_RECORDS;
}
/* Locks a file that will be written, whether it exists or not; reads nothing. */
bool store_lock(struct store *store, const char *path, const struct store_options *options);
bool store_save(const struct store *store, unsigned save_flags);
/* Saves it and, for JSON, prints its figures; returns the exit status. */
int store_finish(const struct store *store, unsigned save_flags, bool json);
/* May a file of this name be written? Complains if there is one, unless it may be replaced. */
bool store_may_make(const char *path, bool force);
void store_end(struct store *store); /* unlocks and frees */

/* 16 bytes, or 32 hexadecimal digits and perhaps a newline. */
bool store_read_key(const char *path, uint8_t key[TAMIS_KEY_LEN]);
bool store_exists(const char *path);

/* The figures that `info` prints; `all`: also a table of the vectors of a filter. */
void store_report(const struct store *store, bool json, bool all);
/* ---- catalogs -------------------------------------------------------------------------------- */

/* logs, logs/ or access.log is indexed in a file of that name with .tamis behind it. False: it has no name, as . and /;
   *path is NULL then, and if there is no memory. */
bool catalog_beside(const char *input, char **path);
/* The catalog that is meant: by its name, or by that of the file or folder from which it was made. Complains if there is
   none. */
char *catalog_meant(const char *operand);
/* The figures of the catalog that is meant; returns the exit status. */
int catalog_report(const char *operand, const struct store_options *options, bool json);
/* Its inputs in their present state. */
int catalog_inputs(const char *operand, const struct store_options *options, bool json);

#endif
