/*
 * Carriers transport the messages of replicas: an ordered sequence of messages per name, and the latest snapshot of
 * each owner beside it. A carrier never looks into a message. There are three kinds: Redis Streams
 * (redis://HOST:PORT/NAME, or rediss:// with TLS: carrier_redis.c), a folder that all sides can reach (file:FOLDER:
 * carrier_folder.c) and, for followers, such a folder behind a web server (https://HOST/PATH: carrier_http.c).
 *
 * A call either does everything it promises or fails with a text; after a failure it may be repeated. What was sent twice
 * arrives twice, which followers notice. No call waits longer than the times stated here.
 *
 * The upper bound on a message's age needs nobody else's clock: what was not there when the caller last received
 * everything has arrived since. Only what was there before the first call is dated, by the carrier's clock; if that
 * says the message is from the future, its age is unknown.
 */
#ifndef TAMIS_CARRIER_H
#define TAMIS_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CARRIER_POSITION 64 /* bytes of a position */

struct carrier {
    const struct carrier_kind *kind;
    char error[256];  /* why the last call failed */
    bool hopeless;    /* retrying will not help: wrong password, not a stream */
    bool open_to_all; /* nothing that is sent is secret: files may be world-readable */
    /* carrier_clock at the start of the last carrier_receive that delivered everything; 0: none. */
    uint64_t reached;
};

#define AGE_UNKNOWN UINT64_MAX

/* A new message, sent at most `age` nanoseconds ago. */
typedef void (*carrier_take)(void *context, const char *owner, const void *data, size_t len,
                             uint64_t age);

struct carrier_part {
    const void *data;
    size_t len;
};

/* What the carrier has of an owner. */
struct carrier_state {
    bool there;     /* it has a snapshot */
    uint64_t epoch; /* of the snapshot */
    bool whole;     /* it also has everything that was sent after the snapshot */
};

typedef void (*carrier_each)(void *context, const char *owner, bool forgotten);

struct carrier_kind { /* without `send` it can only be followed */
    bool (*send)(struct carrier *c, const char *owner, const void *data, size_t len);
    bool (*replace)(struct carrier *c, const char *owner, uint64_t epoch,
                    const struct carrier_part *parts, size_t n);
    int (*fetch)(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                 carrier_take take, void *context);
    bool (*state)(struct carrier *c, const char *owner, struct carrier_state *state);
    bool (*advance)(struct carrier *c, const char *owner);
    int (*receive)(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                   carrier_take take, void *context);
    bool (*owners)(struct carrier *c, carrier_each each, void *context);
    bool (*retire)(struct carrier *c, const char *owner, bool forget);
    void (*close)(struct carrier *c);
};

/* NULL with a text if the address is not valid. Connects at first use. */
struct carrier *carrier_open(const char *url, char error[256]);
void carrier_close(struct carrier *c);

/* ---- origins ---- */

/* Appends a message. */
bool carrier_send(struct carrier *c, const char *owner, const void *data, size_t len);
/* Makes these messages the owner's snapshot, as of everything sent so far, and removes messages that no snapshot needs
   any longer. An owner that has been silent for an hour keeps nothing but its snapshot. */
bool carrier_replace(struct carrier *c, const char *owner, uint64_t epoch,
                     const struct carrier_part *parts, size_t n);
/* What is there of the owner: its snapshot, its epoch, everything sent after it? */
bool carrier_state(struct carrier *c, const char *owner, struct carrier_state *state);
/* Only heartbeats were sent since the snapshot: they need not be kept. */
bool carrier_advance(struct carrier *c, const char *owner);
/* Removes what is kept for the owner, after its farewell; or, with `forget`, without one: carrier_owners then tells
   followers. */
bool carrier_retire(struct carrier *c, const char *owner, bool forget);

/* ---- followers ---- */

/* Delivers the messages after the position and advances it; waits for the first. Returns how many, or -1. An empty
   position is before all messages. */
int carrier_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                    carrier_take take, void *context);
/* Delivers the messages of the owner's snapshot, and the owner's messages after it up to the position. Returns 1, 0 if
   there is no snapshot, or -1. */
int carrier_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                  carrier_take take, void *context);
bool carrier_owners(struct carrier *c, carrier_each each, void *context);

/* ---- for the kinds ---- */

struct carrier *carrier_folder_open(const char *folder, char error[256]);
struct carrier *carrier_redis_open(const char *url, char error[256]);
struct carrier *carrier_http_open(const char *url, char error[256]);
/* Sets the text; returns false. */
bool carrier_fail(struct carrier *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t carrier_clock(void); /* nanoseconds; cannot be set, runs while the machine sleeps */
uint64_t carrier_now(void);   /* the same in milliseconds */
/* now - clock; AGE_UNKNOWN if clock is 0 or in the future. */
uint64_t carrier_since(uint64_t clock, uint64_t now);
/* False with a text: the snapshot there has a later epoch. */
bool carrier_yields(struct carrier *c, const char *owner, const struct carrier_state *state,
                    uint64_t epoch);
/* Hands over a message, decompressed if carrier_replace compressed it. */
void carrier_deliver(carrier_take take, void *context, const char *owner, const void *data,
                     size_t len, uint64_t age);
void carrier_sleep(uint64_t milliseconds);
/* A name as part of a file name: letters, digits, - and _ as they are, other bytes as %XX. */
void carrier_quote(const char *name, char *out, size_t room);
bool carrier_unquote(const char *text, size_t len, char *out, size_t room);

#endif
