/*
 * The operating system: files are opened safely, mapped, read, replaced whole and locked. Nothing
 * here knows a format; the caller tells how much of a mapped file is its header, and whether the
 * file to be replaced was as private as the new one.
 */
#ifndef TAMIS_FILE_H
#define TAMIS_FILE_H

#include <limits.h>

#include "base/base.h"
#include "base/mem.h"

struct stat;

/* Opens a regular file for reading and returns the descriptor, or -1 with errno. Never blocks,
   as opening a FIFO would: anything but a regular file is refused with ENXIO, a folder with
   EISDIR. Names that the user did not give (from a catalog, a shared folder, a message) are
   opened without `links`: a link at the end of the path is then refused with ELOOP. st may be
   NULL. */
int file_open(const char *path, bool links, struct stat *st);
/* The system's text for an error, with specific texts for ENXIO and ELOOP. */
void file_why(int error, char text[80]);

/* Sets the reason to "DOING PATH: the system's text", with errno. Returns ENOMEM or EIO. */
tamis_error file_fail(tamis_reason *reason, int error, const char *path, const char *doing);
/* Follows links, so that the file they point to is replaced, not the link. It need not exist.
   Returns false with errno. */
bool file_resolve(char out[PATH_MAX], const char *path);

/* Given the first page of a mapped file, returns how many leading bytes to copy so that nobody
   can change them; 0: only that page. */
typedef size_t (*front_fn)(const uint8_t *data, size_t len);
struct spill;
/* The whole file, read-only: either mapped, with its front copied (`front` may be NULL), or read
   into memory. */
tamis_error file_map(struct mapping *out, const char *path, front_fn front, bool read,
                     tamis_reason *reason);
/* Opens a file for sequential reading up to its `end`. Close it with spill_close, even after an
   error. */
tamis_error file_read_open(struct spill *file, const char *path, tamis_reason *reason);
/* Reads up to `len` leading bytes and returns how many; 0 if the file cannot be read. */
size_t file_front(const char *path, void *to, size_t len);
/* Prefixes the reason with the path of the file. */
tamis_error file_named(tamis_reason *reason, tamis_error e, const char *path);

/* ---- beside.c ---- */

/* A new file that will replace another. */
struct beside {
    char target[PATH_MAX];
    const char *name; /* of the target in its folder */
    char temp[32];
    bool loose; /* see BESIDE_LOOSE */
    bool named; /* temp exists and must be removed on failure */
    int folder, fd;
};

enum beside_flags {
    BESIDE_PRIVATE = 1, /* readable by its owner only */
    BESIDE_KEEP = 2,    /* with the owner and permissions of the file that it replaces */
    BESIDE_STRANGE = 4, /* in a shared folder: a link of that name is replaced, not followed */
    BESIDE_LOOSE = 8,   /* not synced: it can be fetched again, and damage is noticed */
    BESIDE_INNER = 16   /* the folder too is under others' control: no link in its place */
};

/* The folder is opened here, once: renaming it, or planting a link under its name, does not lead
   the file elsewhere. Close it even after an error. */
tamis_error beside_open(struct beside *s, const char *path, unsigned flags, tamis_reason *reason);
/* Reserves space: returns ENOSPC now rather than after minutes of writing, otherwise 0. */
int file_reserve(int fd, uint64_t size);
/* Syncs the new file and renames it over the old one. */
tamis_error beside_replace(struct beside *s, const char *path, tamis_reason *reason);
void beside_close(struct beside *s);
/* Writes everything at an offset, or with -1 at the current end; returns 0 or errno. */
int file_write(int fd, const void *data, size_t len, int64_t offset);

/* Bytes that need not stay in memory, in an unnamed file in the same folder. It is never mapped,
   so that only the part being read takes memory. Functions that can fail return 0 or errno. */
struct spill {
    int fd;
    uint64_t end; /* end of the space given out so far */
};

int spill_open(struct spill *spill, const struct beside *beside);
uint64_t spill_room(struct spill *spill, uint64_t len); /* returns its offset */
int spill_read(const struct spill *spill, void *data, size_t len, uint64_t at);
void spill_forget(struct spill *spill, uint64_t from, uint64_t len);
void spill_close(struct spill *spill);

#endif
