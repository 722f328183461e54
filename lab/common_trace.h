/*
 * Traces of real data that every Debian machine has:
 *
 *   packages   what the installed packages say of others: the names, with versions, in the fields of
 *              /var/lib/dpkg/status that list packages. Thousands of mentions, most of them repeated.
 *   files      path and size of every file under /usr, none of them twice.
 *
 * An item is the 64-bit hash of its text (the paper takes 32 bits).
 */
#ifndef TAMIS_LAB_TRACE_H
#define TAMIS_LAB_TRACE_H

#include "common.h"

enum trace { TRACE_PACKAGES, TRACE_FILES };

/* Items in the order met, at most `most`; the caller frees them. */
uint64_t *lab_trace(enum trace trace, size_t most, size_t *n);

/* A file's three attributes in the experiment on records: name, device, time of last change. */
struct lab_file {
    char name[256];
    uint64_t device, changed;
};
struct lab_file *lab_files(size_t most, size_t *n);

#endif
