/*
 * A folder of replicas, which tamis follow writes and tamis locate reads: a file OWNER.replica for each copy, and
 * a file "status", written after them so that it never promises more than they have:
 *
 *     tamis replicas 3
 *     boot ID                                      of the machine: times are those of its steady clock
 *     reached TIME EVERY                           when the carrier was last reached, and the interval
 *                                                  between writes of the status, in nanoseconds
 *     position POSITION                            of the follower in its stream
 *     serve ADDRESS                                of the HTTP server, if there is one
 *     owner NAME EPOCH VERSION HEARD LEASE BEAT DELAY
 *                                                  the time of the last message, how long the copy is
 *                                                  trusted (0: in doubt), and the delay of messages
 *
 * A copy is trusted during its lease, but not longer than one beat and one EVERY after the carrier was reached: if
 * the follower is cut off or has ended, nobody renews it. On another machine, and after a reboot, all copies are in
 * doubt.
 */
#ifndef TAMIS_REPLICAS_H
#define TAMIS_REPLICAS_H

#include "carrier/carrier.h"
#include "ui/cli.h"

struct replica {
    const char *name;        /* of the owner; NULL: none */
    uint64_t epoch, version; /* of the file; 0, 0: there is none */
    uint64_t heard, lease;   /* carrier_clock of the last message; how long it is trusted */
    uint64_t beat;
    int64_t delay; /* see tamis_follower_facts */
};

struct replicas {
    const char *folder;
    char position[CARRIER_POSITION];
    char boot[64];           /* "": another machine, or before a reboot */
    uint64_t reached, every; /* nanoseconds */
    uint64_t lease_most;     /* 0: the default of the library */
    char serve[512];         /* "": it does not serve */
    tamis_lock *lock;        /* of the process that writes to it */
    tamis_directory *directory;
    struct replica *replica; /* by number of owner in the directory */
    size_t room;
};

/* Room for this many owners; false after complaining. */
bool replicas_reserve(struct replicas *r, size_t owners);
/* Creates the directory and reads the status into it; with `fresh` the status may be missing. `key`: of the
   family, for copies saved without it, or NULL. `whole`: few keys will be queried. False after complaining. */
bool replicas_read(struct replicas *r, const uint8_t *key, bool whole, bool fresh);
/* Excludes other writers. False after complaining. */
bool replicas_lock(struct replicas *r);
/* Writes the status. False after complaining. */
bool replicas_write(const struct replicas *r);
/* The file of a copy; room for PATH_MAX bytes. */
void replicas_path(const struct replicas *r, const char *name, char *out);
void replicas_remove(struct replicas *r, uint32_t number); /* its file too */
/* The next owner from `number` on, whose name is set; false if there is none. */
bool replicas_next(const struct replicas *r, uint32_t *number, const char **name);
size_t replicas_count(const struct replicas *r);
bool replica_trusted(const struct replicas *all, const struct replica *r);
void replicas_free(struct replicas *r);

#endif
