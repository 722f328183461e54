/* What the files of file*.c share. */
#ifndef TAMIS_FILE_H
#define TAMIS_FILE_H

#include <limits.h>

#include "base.h"

/* "DOING PATH: the system's text", with errno. ENOMEM for that, else EIO. */
tamis_error file_fail(tamis_reason *reason, int error, const char *path, const char *doing);
/* Follows links, so that the file they lead to is replaced, not the link. It need not exist. False
   with errno. */
bool file_resolve(char out[PATH_MAX], const char *path);

/* Something to be saved. */
struct saved {
    const void *of;
    tamis_error (*encode)(const void *of, unsigned flags, tamis_write write, void *context);
    uint64_t size;   /* that it will have; 0: not known */
    bool key_inside; /* for its owner's eyes only */
    unsigned flags;
};

tamis_error file_save(const struct saved *what, const char *path, tamis_reason *reason);

#endif
