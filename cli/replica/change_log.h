/*
 * FILE.changes: what tamis publish has changed since FILE was saved, so that a process that is killed loses
 * nothing that it acknowledged. A run of keys is written as one group, and synced before it is acknowledged.
 * At the next start the groups are replayed.
 *
 *     8 bytes "TAMISLOG", u64 XXH3 of FILE as it was when the log began, u64 XXH3 of these 16 bytes
 *     groups: u32 what (1 add, 2 remove, 3 FILE is about to be saved), u32 n, n digests of 16 bytes,
 *     u64 XXH3 of the group
 *
 * A save replaces FILE atomically and then empties the log. A log that ends with group 3 and belongs to another
 * FILE was not emptied after the save, and is dropped. A group with a wrong checksum was being written when the
 * machine stopped, and was never acknowledged.
 */
#ifndef TAMIS_CHANGE_LOG_H
#define TAMIS_CHANGE_LOG_H

#include <limits.h>

#include "sets/set_file.h"

struct change_log {
    char path[PATH_MAX];
    int fd;
    uint64_t end, synced; /* bytes */
    bool failed;          /* and it was reported */
};

/* Replays the log of a store that was just loaded. False after complaining. */
bool change_log_open(struct change_log *log, const struct store *store, uint64_t *replayed);
/* At most 256 digests. False after complaining. */
bool change_log_add(struct change_log *log, bool removing, const tamis_digest *digests, size_t n);
bool change_log_sync(struct change_log *log);
/* Saves the file of the store and empties the log. */
bool change_log_save(struct change_log *log, const struct store *store);
/* Removes it if it is empty. */
void change_log_close(struct change_log *log);

#endif
