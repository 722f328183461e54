/*
 * A folder of replicas, as tamis follow keeps it and tamis locate reads it: a file OWNER.replica for
 * each copy, and a file "status" written after them, so that it never promises more than they hold:
 *
 *     tamis replicas 1
 *     position POSITION                            of the follower in its stream
 *     owner NAME EPOCH VERSION HEARD LEASE         heard of at this time since 1970, and trusted for
 *                                                  so long, in nanoseconds; 0: in doubt
 *
 * Owners and their copies are in a directory of the library; here is what the folder knows of each.
 */
#ifndef TAMIS_REPLICAS_H
#define TAMIS_REPLICAS_H

#include "carrier/carrier.h"
#include "ui/cli.h"

struct replica {
    uint64_t epoch, version;    /* of the file; 0, 0: there is none */
    uint64_t heard, lease;      /* real time it was last heard of, and how long it may be trusted */
    bool told;                  /* why it cannot be followed */
    uint64_t next_fetch, pause; /* milliseconds: when a snapshot may be asked for again */
};

struct replicas {
    const char *folder;
    char position[CARRIER_POSITION];
    tamis_directory *directory;
    struct replica *replica; /* by the owner's number there */
    size_t room;
};

/* Finds the owner or adds it, in doubt; NULL after complaining of memory. */
struct replica *replicas_get(struct replicas *r, const char *name);
/* Makes the directory and reads the status into it; where one may be made (`fresh`), none is an empty
   one. `key` of the family, where copies come without it, or NULL; `whole`: few questions will be asked,
   or none. False after complaining. */
bool replicas_read(struct replicas *r, const uint8_t *key, bool whole, bool fresh);
/* Writes the status; false with errno. */
bool replicas_write(const struct replicas *r);
/* The file of a copy; room for PATH_MAX bytes. */
void replicas_path(const struct replicas *r, const char *name, char *out);
void replicas_drop(struct replicas *r, uint32_t number); /* its file too */
/* The next owner from `number` on, whose name is set; false if there is none. */
bool replicas_next(const struct replicas *r, uint32_t *number, const char **name);
size_t replicas_count(const struct replicas *r);
bool replica_trusted(const struct replica *r);
void replicas_free(struct replicas *r);

#endif
