/*
 * The raw bytes of an input: opened as a regular file, recognised by identity and by checksums.
 *
 * That a file "only grew" must be proved, since a "no" of the catalog depends on it. A file with the
 * same inode, size, mtime and ctime has not changed, unless its ctime is within RAW_RACY of the moment
 * at which it was examined: a later write may then have the same time. Otherwise its bytes are compared
 * with checksums: XXH3 with 64 bits of each RAW_CHUNK, the last one of the rest. One checksum of the
 * whole would be enough as a proof, but chunks need no second pass: a file that grew is summed from the
 * chunk in which it ended, and one that changed is recognised by the first chunk that differs. They take
 * 8 bytes in the catalog for a file up to 1 MiB, and 8 bytes per MiB. The checksums are not keyed: they
 * are not meant to defend against someone who may write to the inputs.
 *
 * The checksums cover the very bytes that were parsed, as the system returned them (reader_source.c).
 * Summing the file afterwards would cover bytes that were never read.
 */
#ifndef TAMIS_RAW_H
#define TAMIS_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define RAW_CHUNK ((uint64_t)1 << 20)
#define RAW_RACY  ((int64_t)2000000000) /* nanoseconds: the coarsest clock of a file system (FAT) */

struct raw_id {
    uint64_t device, inode, size;
    int64_t mtime, ctime; /* nanoseconds since 1970 */
    bool racy;            /* it may be written to again without a new ctime */
};

/* Opens a regular file for reading, and its identity; -1: *why is the reason. `follow`: a link
   may lead to it. Never blocks, as opening a FIFO would. */
int raw_open(const char *path, bool follow, struct raw_id *id, const char **why);
/* Only the identity; false: *why, and errno, which is 0 for anything but a regular file. */
bool raw_look(const char *path, bool follow, struct raw_id *id, const char **why);
/* Does it have the identity `known`? The device is not compared: its number may differ after a
   reboot. */
bool raw_equal(const struct raw_id *known, const struct raw_id *now);
/* And are its bytes therefore the known ones? */
bool raw_same(const struct raw_id *known, const struct raw_id *now);

/* Bytes of the checksums of a file. */
uint64_t raw_sums_len(uint64_t size);
/* Does the file begin with the bytes that were summed? Adds the bytes read for this to *hashed. */
bool raw_sums_hold(int fd, const uint8_t *sums, uint64_t size, uint64_t *hashed);

/* Checksums that grow with what is read. */
struct raw_sums {
    uint64_t at; /* bytes summed, from the start of the file */
    uint8_t *sum;
    size_t room;
    struct hash_stream state; /* of the present chunk */
    const uint8_t *known;     /* of the first `known_size` bytes: they must not differ */
    uint64_t known_size;
    bool failed; /* no memory, or they differ */
};

/* Bytes from `from` on will follow; what is before is as known. False: no memory. */
bool raw_sums_start(struct raw_sums *sums, const uint8_t *known, uint64_t known_size,
                    uint64_t from);
/* Bytes of the file from `at` on; those that do not continue what is summed are ignored. */
void raw_sums_feed(struct raw_sums *sums, uint64_t at, const void *data, size_t len);
/* Reads what is missing up to a byte of the file; false: not possible. */
bool raw_sums_rest(struct raw_sums *sums, int fd, uint64_t up_to);
/* The checksums of the first `size` bytes, from malloc; bytes not read yet are read. NULL: not
   possible, or the file is no longer what was known. */
uint8_t *raw_sums_end(struct raw_sums *sums, int fd, uint64_t size);
void raw_sums_free(struct raw_sums *sums);

#endif
