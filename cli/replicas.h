/*
 * A folder of replicas, as tamis follow keeps it and tamis locate reads it: a file OWNER.replica for
 * each copy, and a file "status" written after them, so that it never promises more than they hold:
 *
 *     tamis replicas 1
 *     position POSITION                            of the follower in its stream
 *     owner NAME EPOCH VERSION HEARD LEASE         heard of at this time since 1970, and trusted for
 *                                                  so long, in nanoseconds; 0: in doubt
 */
#ifndef TAMIS_REPLICAS_H
#define TAMIS_REPLICAS_H

#include "carrier.h"
#include "cli.h"

struct replica {
    char name[TAMIS_OWNER_MAX + 1];
    uint64_t epoch, version; /* of the file; 0, 0: there is none */
    uint64_t heard, lease;   /* real time it was last heard of, and how long it may be trusted */
    tamis_follower *follower;
    bool told;                  /* why it cannot be followed */
    uint64_t next_fetch, pause; /* milliseconds: when a snapshot may be asked for again */
};

struct replicas {
    const char *folder;
    char position[CARRIER_POSITION];
    struct replica *replica;
    size_t n, room;
};

/* Finds the owner or adds it; NULL after complaining of memory. */
struct replica *replicas_get(struct replicas *r, const char *name);
/* Reads the status; where one may be made (`fresh`), none is an empty one. False after complaining. */
bool replicas_read(struct replicas *r, bool fresh);
/* Writes the status; false with errno. */
bool replicas_write(const struct replicas *r);
/* The file of a copy; room for PATH_MAX bytes. */
void replicas_path(const struct replicas *r, const char *name, char *out);
void replicas_drop(struct replicas *r, size_t i); /* its file too */
bool replica_trusted(const struct replica *r);
void replicas_sort(struct replicas *r); /* by name */
void replicas_free(struct replicas *r);

#endif
