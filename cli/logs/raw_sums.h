/*
 * The raw bytes of an input: opened as a regular file, known again by identity and by sums.
 *
 * Whether a file "only grew" must be proved: a "no" of the catalog depends on it. A file of the same
 * inode, size, mtime and ctime has not changed since; unless its ctime is within RAW_RACY of the
 * moment it was looked at, when a write after that may carry the same time. Otherwise its bytes are
 * compared with sums: XXH3 with 64 bits of each RAW_CHUNK of them, the last one of what is left. One
 * sum of all would do to prove it, but chunks need no second pass: a file that grew is summed on from
 * the chunk in which it ended, and one that changed is known by the first chunk that differs. They
 * take 8 bytes of the catalog for a file up to a MiB, and then 8 bytes per MiB. The sums are not
 * keyed: they are no defence against one who may write to the inputs anyway.
 *
 * What is summed are the very bytes that were parsed, as they come from the system (reader_source.c).
 * Summing the file afterwards would vouch for bytes that nobody read.
 */
#ifndef TAMIS_RAW_H
#define TAMIS_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAW_CHUNK ((uint64_t)1 << 20)
#define RAW_RACY  ((int64_t)2000000000) /* nanoseconds: the coarsest clock of a file system (FAT) */

struct raw_id {
    uint64_t device, inode, size;
    int64_t mtime, ctime; /* nanoseconds since 1970 */
    bool racy;            /* it may be written to again without a new ctime */
};

/* A regular file, open for reading, and its identity; -1: *why says why not. `follow`: a link may
   lead to it. Never waits, as opening a FIFO would. */
int raw_open(const char *path, bool follow, struct raw_id *id, const char **why);
/* The identity alone; false: *why, and errno, which is 0 for what is no regular file. */
bool raw_look(const char *path, bool follow, struct raw_id *id, const char **why);
/* Has it the identity that was `known`? The device is not compared: its number may be another one
   after a reboot. */
bool raw_equal(const struct raw_id *known, const struct raw_id *now);
/* And are its bytes therefore those that were known? */
bool raw_same(const struct raw_id *known, const struct raw_id *now);

/* Bytes of the sums of a file. */
uint64_t raw_sums_len(uint64_t size);
/* Does the file begin with the bytes that were summed? Adds to *hashed what was read for that. */
bool raw_sums_hold(int fd, const uint8_t *sums, uint64_t size, uint64_t *hashed);

/* Sums that grow with what is read. */
struct raw_sums {
    uint64_t at; /* bytes summed, from the start of the file */
    uint8_t *sum;
    size_t room;
    void *state;
    const uint8_t *known; /* of the first `known_size` bytes, from before: they must not differ */
    uint64_t known_size;
    bool failed; /* no memory, or they differ */
};

/* Bytes from `from` on are to come; what is before is as it is known. False: no memory. */
bool raw_sums_start(struct raw_sums *sums, const uint8_t *known, uint64_t known_size,
                    uint64_t from);
/* Bytes of the file from `at` on; those that do not follow on what is summed are passed over. */
void raw_sums_feed(struct raw_sums *sums, uint64_t at, const void *data, size_t len);
/* Reads what is missing up to a byte of the file; false: it cannot. */
bool raw_sums_rest(struct raw_sums *sums, int fd, uint64_t up_to);
/* Those of the first `size` bytes, from malloc; what nobody has read is read. NULL: it cannot be, or
   the file is no longer what was known. */
uint8_t *raw_sums_end(struct raw_sums *sums, int fd, uint64_t size);
void raw_sums_free(struct raw_sums *sums);

#endif
