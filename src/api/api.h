/*
 * Files of either kind of set, for the command line, which takes whatever a file contains; and
 * saving any structure that writes its bytes in order, to a new file that replaces the old one.
 */
#ifndef TAMIS_API_H
#define TAMIS_API_H

#include "set/any_set.h"

/* Like the functions of the public headers. TAMIS_KIND_NONE accepts a filter or records. */
tamis_error set_file_open(struct set **out, tamis_kind kind, const char *path,
                          const tamis_open_options *options, tamis_reason *reason);
tamis_error set_file_load(struct set **out, tamis_kind kind, const char *path,
                          const tamis_open_options *options, tamis_reason *reason);
tamis_error set_file_save(const struct set *s, const char *path, unsigned flags,
                          tamis_reason *reason);

struct saved {
    const void *of;
    /* Writes the bytes, after announcing their number if it is known. */
    tamis_error (*encode)(const void *of, unsigned flags,
                          tamis_error (*size)(void *context, uint64_t size), tamis_write write,
                          void *context);
    bool key_inside; /* readable by its owner only */
    bool loose;      /* not synced: what is lost can be fetched again */
    unsigned flags;
};

tamis_error file_save(const struct saved *what, const char *path, tamis_reason *reason);

#endif
