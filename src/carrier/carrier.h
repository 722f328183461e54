/*
 * How messages of replicas travel: an order of messages for each name, and the last snapshot of each
 * owner beside it. A carrier does not look into messages. Two kinds: Redis Streams
 * (redis://HOST:PORT/NAME, carrier_redis.c) and a folder that all see (file:FOLDER, carrier_folder.c).
 *
 * A call either did all it says or failed with a text; after a failure it may be made again. What was
 * sent twice arrives twice, which followers notice. Nothing waits longer than the times given here.
 */
#ifndef TAMIS_CARRIER_H
#define TAMIS_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CARRIER_POSITION 64 /* bytes of a position */

struct carrier {
    const struct carrier_kind *kind;
    char error[256]; /* of the last call that failed */
    bool hopeless;   /* and trying again will not help: wrong password, not a stream */
};

/* One message more than the caller has seen. */
typedef void (*carrier_take)(void *context, const char *owner, const void *data, size_t len,
                             uint64_t age);

struct carrier_part {
    const void *data;
    size_t len;
};

struct carrier_kind {
    bool (*send)(struct carrier *c, const char *owner, const void *data, size_t len);
    bool (*replace)(struct carrier *c, const char *owner, uint64_t epoch,
                    const struct carrier_part *parts, size_t n);
    int (*fetch)(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                 carrier_take take, void *context);
    int (*last_epoch)(struct carrier *c, const char *owner, uint64_t *epoch);
    int (*receive)(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                   carrier_take take, void *context);
    bool (*owners)(struct carrier *c, void (*each)(void *context, const char *owner),
                   void *context);
    bool (*retire)(struct carrier *c, const char *owner);
    void (*close)(struct carrier *c);
};

/* NULL with a text if the address cannot be one; connects when it is first used. */
struct carrier *carrier_open(const char *url, char error[256]);
void carrier_close(struct carrier *c);

/* ---- origins ---- */

/* Appends a message. */
bool carrier_send(struct carrier *c, const char *owner, const void *data, size_t len);
/* The owner's snapshot is now these messages, as of all that was sent so far. Then nothing is kept
   that no snapshot needs any more. */
bool carrier_replace(struct carrier *c, const char *owner, uint64_t epoch,
                     const struct carrier_part *parts, size_t n);
/* The epoch of the owner's snapshot: 1, or 0 if there is none, or -1 if that cannot be told. */
int carrier_last_epoch(struct carrier *c, const char *owner, uint64_t *epoch);
/* Nothing is kept for the owner any more. */
bool carrier_retire(struct carrier *c, const char *owner);

/* ---- followers ---- */

/* Messages after the position, which moves on; waits for the first. How many, or -1. An empty
   position is before all. */
int carrier_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                    carrier_take take, void *context);
/* The messages of the owner's snapshot: 1, or 0 if there is none, or -1. The position goes back to
   where the snapshot was made, so that what follows on it comes (again). */
int carrier_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                  carrier_take take, void *context);
bool carrier_owners(struct carrier *c, void (*each)(void *context, const char *owner),
                    void *context);

/* ---- for the kinds ---- */

struct carrier *carrier_folder_open(const char *folder, char error[256]);
struct carrier *carrier_redis_open(const char *url, char error[256]);
/* Sets the text; returns false. */
bool carrier_fail(struct carrier *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t carrier_now(void); /* milliseconds, monotonic */
void carrier_sleep(uint64_t milliseconds);
/* A name as part of a file name: letters, digits, - and _ as they are, other bytes as %XX. */
void carrier_quote(const char *name, char *out, size_t room);
bool carrier_unquote(const char *text, size_t len, char *out, size_t room);

#endif
