/* Saving anything that writes its bytes in order: beside the old file, which it replaces whole. */
#ifndef TAMIS_SAVE_H
#define TAMIS_SAVE_H

#include "base/base.h"

struct saved {
    const void *of;
    tamis_error (*encode)(const void *of, unsigned flags, tamis_write write, void *context);
    uint64_t size;   /* that it will have; 0: not known */
    bool key_inside; /* for its owner's eyes only */
    unsigned flags;
};

tamis_error file_save(const struct saved *what, const char *path, tamis_reason *reason);

#endif
