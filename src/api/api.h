/*
 * Files of sets of either kind, for the command line, which has whatever a file is; and saving anything
 * that writes its bytes in order: beside the old file, which it replaces whole.
 */
#ifndef TAMIS_API_H
#define TAMIS_API_H

#include "set/any_set.h"

/* As the functions of the public headers; TAMIS_KIND_NONE: a filter or records, as the file says. */
tamis_error set_file_open(struct set **out, tamis_kind kind, const char *path,
                          const tamis_open_options *options, tamis_reason *reason);
tamis_error set_file_load(struct set **out, tamis_kind kind, const char *path,
                          const tamis_open_options *options, tamis_reason *reason);
tamis_error set_file_save(const struct set *s, const char *path, unsigned flags,
                          tamis_reason *reason);

struct saved {
    const void *of;
    /* Writes it, after it told its size if that is known. */
    tamis_error (*encode)(const void *of, unsigned flags,
                          tamis_error (*size)(void *context, uint64_t size), tamis_write write,
                          void *context);
    bool key_inside; /* for its owner's eyes only */
    unsigned flags;
};

tamis_error file_save(const struct saved *what, const char *path, tamis_reason *reason);

#endif
