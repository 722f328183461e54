/*
 * A folder of replicas, as tamis follow keeps it and tamis locate reads it: a file OWNER.replica for
 * each copy, and a file "status" written after them, so that it never promises more than they hold:
 *
 *     tamis replicas 2
 *     boot ID                                      of the machine: times are by its clock, which goes
 *                                                  on while it sleeps, and is never set
 *     reached TIME EVERY                           what carries the messages, and how often this is
 *                                                  written, in nanoseconds
 *     position POSITION                            of the follower in its stream
 *     serve ADDRESS                                where it can be asked, if it serves
 *     owner NAME EPOCH VERSION HEARD LEASE BEAT    heard of at this time, and trusted for so long; 0:
 *                                                  in doubt
 *
 * A copy is trusted while its lease lasts, and no longer than a beat after the follower was due to
 * write that it reached its carrier: if that is cut off, or the follower is gone, nobody renews it. On
 * another machine, and after a restart of this one, all are in doubt.
 *
 * Owners and their copies are in a directory of the library; here is what the folder knows of each.
 */
#ifndef TAMIS_REPLICAS_H
#define TAMIS_REPLICAS_H

#include "carrier/carrier.h"
#include "ui/cli.h"

struct replica {
    const char *name;        /* of the owner; NULL: none */
    uint64_t epoch, version; /* of the file; 0, 0: there is none */
    uint64_t heard, lease;   /* carrier_clock when it was last heard of, how long it is trusted */
    uint64_t beat;
};

struct replicas {
    const char *folder;
    char position[CARRIER_POSITION];
    char boot[64];           /* "": not of this machine as it runs now */
    uint64_t reached, every; /* nanoseconds */
    uint64_t lease_most;     /* 0: as the library has it */
    char serve[512];         /* "": nowhere */
    tamis_lock *lock;        /* of who writes to it */
    tamis_directory *directory;
    struct replica *replica; /* by the owner's number there */
    size_t room;
};

/* Room for so many owners; false after complaining. */
bool replicas_reserve(struct replicas *r, size_t owners);
/* Finds the owner or adds it, in doubt; NULL after complaining of memory. */
struct replica *replicas_get(struct replicas *r, const char *name);
/* Makes the directory and reads the status into it; where one may be made (`fresh`), none is an empty
   one. `key` of the family, where copies come without it, or NULL; `whole`: few questions will be asked,
   or none. False after complaining. */
bool replicas_read(struct replicas *r, const uint8_t *key, bool whole, bool fresh);
/* Only one process writes to the folder. False after complaining. */
bool replicas_lock(struct replicas *r);
/* Writes the status; false with errno. */
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
