/*
 * The operating system: files opened safely, mapped, read, replaced whole, locked. Nothing here knows a
 * format; whoever does says how much of a mapped file is its header, and whether a file that is replaced
 * was as private as the new one.
 */
#ifndef TAMIS_FILE_H
#define TAMIS_FILE_H

#include <limits.h>

#include "base/base.h"
#include "base/mem.h"

struct stat;

/* Opens a regular file for reading: the descriptor, or -1 with errno. Never waits, as a FIFO would
   make it: what is no file is refused with ENXIO, a folder with EISDIR. Names that the user did not
   give (from a catalog, a shared folder, a stranger) are opened without `links`: then a link at the
   end of the path is refused with ELOOP. st may be NULL. */
int file_open(const char *path, bool links, struct stat *st);
/* The system's text for it; says what ENXIO and ELOOP mean here. */
void file_why(int error, char text[80]);

/* "DOING PATH: the system's text", with errno. ENOMEM for that, else EIO. */
tamis_error file_fail(tamis_reason *reason, int error, const char *path, const char *doing);
/* Follows links, so that the file they lead to is replaced, not the link. It need not exist. False
   with errno. */
bool file_resolve(char out[PATH_MAX], const char *path);

/* How many bytes of the front of a mapped file to copy, given its first page: nobody can change those
   any more. 0: that page alone. */
typedef size_t (*front_fn)(const uint8_t *data, size_t len);
struct spill;
/* The whole file, read-only: mapped, its front a copy (`front` may be NULL); or read into memory. */
tamis_error file_map(struct mapping *out, const char *path, front_fn front, bool read,
                     tamis_reason *reason);
/* To be read from front to back, up to its `end`, and closed as a spill, whatever this says. */
tamis_error file_read_open(struct spill *file, const char *path, tamis_reason *reason);
/* The first bytes of a file: how many there are, up to `len`; 0 if it cannot be read. */
size_t file_front(const char *path, void *to, size_t len);
/* Puts the path in front of what was found wrong in the file. */
tamis_error file_named(tamis_reason *reason, tamis_error e, const char *path);

/* ---- beside.c ---- */

/* A new file that is to take the place of another. */
struct beside {
    char target[PATH_MAX], folder[PATH_MAX], temp[PATH_MAX];
    bool named; /* temp is there and must go if we fail */
    int fd;
};

enum beside_flags {
    BESIDE_PRIVATE = 1, /* for its owner's eyes only */
    BESIDE_KEEP = 2,    /* with the owner and the permissions of the file that it replaces */
    BESIDE_STRANGE = 4  /* among strangers: links of that name are replaced, not followed */
};

tamis_error beside_open(struct beside *s, const char *path, unsigned flags, tamis_reason *reason);
/* Room for so many bytes: ENOSPC now rather than after minutes, or 0. */
int file_reserve(int fd, uint64_t size);
/* Syncs it and gives it its place. */
tamis_error beside_replace(struct beside *s, const char *path, tamis_reason *reason);
void beside_close(struct beside *s);
/* All of it, at an offset or (-1) at the end of what was written; 0 or errno. */
int file_write(int fd, const void *data, size_t len, int64_t offset);

/* Bytes that need not stay in memory, in a file without a name in the same folder. It is never
   mapped, so that no more of it is in memory than what is being read. What may fail returns 0 or errno. */
struct spill {
    int fd;
    uint64_t end; /* room was given out up to here */
};

int spill_open(struct spill *spill, const struct beside *beside);
uint64_t spill_room(struct spill *spill, uint64_t len); /* its offset */
int spill_write(const struct spill *spill, const void *data, size_t len, uint64_t at);
int spill_read(const struct spill *spill, void *data, size_t len, uint64_t at);
void spill_forget(struct spill *spill, uint64_t from, uint64_t len);
void spill_close(struct spill *spill);

#endif
