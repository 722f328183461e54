/* Filters and indexes in files: opened to ask, or locked, loaded, changed and saved. All of these
   complain. */
#ifndef TAMIS_STORE_H
#define TAMIS_STORE_H

#include "base/base.h"
#include "ui/cli.h"

/* Options of every verb that opens files. */
struct store_options {
    const char *key_file; /* for files saved without their key */
    bool no_wait;         /* fail when another process writes */
    bool verify;          /* check every byte before asking */
};
#define STORE_KEY_ARG(o)   ARG("key-file", 0, ARG_TEXT, &(o).key_file)
#define STORE_WRITE_ARG(o) ARG("no-wait", 0, ARG_FLAG, &(o).no_wait)
#define STORE_READ_ARG(o)  ARG("verify", 0, ARG_FLAG, &(o).verify)

/* Mapped and read-only; NULL after complaining. */
tamis_filter *store_open(const char *path, const struct store_options *options);
/* The same with the counters of a deletable one, which a mapped file leaves aside. */
tamis_filter *store_whole(const char *path, const struct store_options *options);
/* In memory, every byte checked. */
tamis_filter *store_load(const char *path, const struct store_options *options);

/* A file, or one that this process alone changes: then it is locked. */
struct store {
    const char *path;
    tamis_lock *lock;
    tamis_filter *filter; /* or */
    tamis_records *index;
};
/* Filters alone. */
bool store_begin(struct store *store, const char *path, const struct store_options *options);
/* Whatever the file is; not locked, or locked. */
bool store_ask(struct store *store, const char *path, const struct store_options *options);
bool store_change(struct store *store, const char *path, const struct store_options *options);
/* Loads whatever it is into a store that may be locked; `mapped`: read-only, in place; else in
   memory. */
bool store_get(struct store *store, const char *path, const struct store_options *options,
               bool mapped);
/* An index with its counters, in place if it has none. */
tamis_records *store_whole_index(const char *path, const struct store_options *options);
/* Locks a file that is to be written, whether it exists or not; loads nothing. */
bool store_lock(struct store *store, const char *path, const struct store_options *options);
bool store_save(const struct store *store, unsigned save_flags);
void store_end(struct store *store); /* unlocks and frees */

/* 16 bytes, or 32 hexadecimal digits and perhaps a newline. */
bool store_read_key(const char *path, uint8_t key[TAMIS_KEY_LEN]);
/* The time of day: what window and flexible filters in files go by, across processes. */
uint64_t store_clock(void *context);
bool store_exists(const char *path);

/* The figures as `info` prints them; `all`: a table of the vectors of a filter too. */
void store_report(const struct store *store, bool json, bool all);
/* Those of a catalog; the exit status. */
int catalog_report(const char *path, const struct store_options *options, bool json);
/* Its inputs, as they are now. */
int catalog_inputs(const char *path, const struct store_options *options, bool json);

#endif
