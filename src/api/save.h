/* Saving anything that writes its bytes in order: beside the old file, which it replaces whole. */
#ifndef TAMIS_SAVE_H
#define TAMIS_SAVE_H

#include "format/format.h"

struct saved {
    const void *of;
    /* Writes it, after it told its size if that is known. */
    tamis_error (*encode)(const void *of, unsigned flags, size_fn size, tamis_write write,
                          void *context);
    bool key_inside; /* for its owner's eyes only */
    unsigned flags;
};

tamis_error file_save(const struct saved *what, const char *path, tamis_reason *reason);

#endif
