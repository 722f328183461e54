/*
 * FILE.changes: what tamis publish changed since FILE was saved, so that a killed process loses nothing
 * that it acknowledged. A group of changes is one write, as the run of keys that it is; whoever needs to
 * know that it is on the disk has it synced. At the next start the groups are done again.
 *
 *     8 bytes "TAMISLOG", u64 XXH3 of FILE as it was when the log began, u64 XXH3 of these 16 bytes
 *     groups: u32 what (1 add, 2 remove, 3 FILE is about to be saved), u32 n, n digests of 16 bytes,
 *     u64 XXH3 of the group
 *
 * FILE is replaced whole by a save, and the log begins anew after it. A log that ends with group 3 and
 * is not of the FILE that is there is one whose save was carried out: it is dropped. A group whose sum
 * is wrong was being written when the machine stopped, and nothing of it was acknowledged.
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

/* After the file of the store was loaded: applies its log. False after complaining. */
bool change_log_open(struct change_log *log, const struct store *store, uint64_t *replayed);
/* At most 256 digests. False after complaining. */
bool change_log_add(struct change_log *log, bool removing, const tamis_digest *digests, size_t n);
bool change_log_sync(struct change_log *log);
/* Saves the file of the store and empties the log. */
bool change_log_save(struct change_log *log, const struct store *store);
/* Removes it if it is empty. */
void change_log_close(struct change_log *log);

#endif
