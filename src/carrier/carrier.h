/*
 * How messages of replicas travel: an order of messages for each name, and the last snapshot of each
 * owner beside it. A carrier does not look into messages. Three kinds: Redis Streams
 * (redis://HOST:PORT/NAME, or rediss:// with TLS, carrier_redis.c), a folder that all see (file:FOLDER, carrier_folder.c), and
 * for followers such a folder behind a web server (https://HOST/PATH, carrier_http.c).
 *
 * A call either did all it says or failed with a text; after a failure it may be made again. What was
 * sent twice arrives twice, which followers notice. Nothing waits longer than the times given here.
 *
 * How old a message is at most needs no clock of anyone else: what was not there when the caller last
 * took all there was has come since. Only what was there before the first look is dated, by the
 * carrier's clock; if that says that it is yet to come, its age is not known.
 */
#ifndef TAMIS_CARRIER_H
#define TAMIS_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CARRIER_POSITION 64 /* bytes of a position */

struct carrier {
    const struct carrier_kind *kind;
    char error[256];  /* of the last call that failed */
    bool hopeless;    /* and trying again will not help: wrong password, not a stream */
    bool open_to_all; /* nothing that is sent is a secret: files may be read by everybody */
    uint64_t
        reached; /* carrier_clock when the last carrier_receive began that left nothing; 0: none */
};

#define AGE_UNKNOWN UINT64_MAX

/* One message more than the caller has seen, sent `age` nanoseconds ago at most. */
typedef void (*carrier_take)(void *context, const char *owner, const void *data, size_t len,
                             uint64_t age);

struct carrier_part {
    const void *data;
    size_t len;
};

/* What the carrier has of an owner. */
struct carrier_state {
    bool there;     /* a snapshot, */
    uint64_t epoch; /* of this life of the origin */
    bool whole;     /* and all that this carrier sent since then */
};

typedef void (*carrier_each)(void *context, const char *owner, bool forgotten);

struct carrier_kind { /* without send: it is only followed */
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

/* NULL with a text if the address cannot be one; connects when it is first used. */
struct carrier *carrier_open(const char *url, char error[256]);
void carrier_close(struct carrier *c);

/* ---- origins ---- */

/* Appends a message. */
bool carrier_send(struct carrier *c, const char *owner, const void *data, size_t len);
/* The owner's snapshot is now these messages, as of all that was sent so far. Then nothing is kept
   that no snapshot needs any more; an owner of which nothing came for an hour keeps nothing but its
   snapshot. */
bool carrier_replace(struct carrier *c, const char *owner, uint64_t epoch,
                     const struct carrier_part *parts, size_t n);
/* Whether the owner's snapshot and all that was sent on it are still there, and whose they are. */
bool carrier_state(struct carrier *c, const char *owner, struct carrier_state *state);
/* What was sent since the snapshot were heartbeats: nothing of it needs to be kept. */
bool carrier_advance(struct carrier *c, const char *owner);
/* Nothing is kept for the owner any more, after its farewell; or, `forget`, without one: followers are
   told when they ask for the owners. */
bool carrier_retire(struct carrier *c, const char *owner, bool forget);

/* ---- followers ---- */

/* Messages after the position, which moves on; waits for the first. How many, or -1. An empty
   position is before all. */
int carrier_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                    carrier_take take, void *context);
/* The messages of the owner's snapshot, and those of the owner that follow on it up to the position:
   1, or 0 if there is none, or -1. */
int carrier_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                  carrier_take take, void *context);
bool carrier_owners(struct carrier *c, carrier_each each, void *context);

/* ---- for the kinds ---- */

struct carrier *carrier_folder_open(const char *folder, char error[256]);
struct carrier *carrier_redis_open(const char *url, char error[256]);
struct carrier *carrier_http_open(const char *url, char error[256]);
/* Sets the text; returns false. */
bool carrier_fail(struct carrier *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t carrier_clock(void); /* nanoseconds, never set, and on while the machine sleeps */
uint64_t carrier_now(void);   /* the same in milliseconds */
/* How long ago by that clock, at most; AGE_UNKNOWN if that was never, or is yet to come. */
uint64_t carrier_since(uint64_t clock, uint64_t now);
/* False with the text: the snapshot that is there is of a later life. */
bool carrier_yields(struct carrier *c, const char *owner, const struct carrier_state *state,
                    uint64_t epoch);
/* Takes what was sent as it is, or what carrier_replace made smaller. */
void carrier_deliver(carrier_take take, void *context, const char *owner, const void *data,
                     size_t len, uint64_t age);
void carrier_sleep(uint64_t milliseconds);
/* A name as part of a file name: letters, digits, - and _ as they are, other bytes as %XX. */
void carrier_quote(const char *name, char *out, size_t room);
bool carrier_unquote(const char *text, size_t len, char *out, size_t room);

#endif
