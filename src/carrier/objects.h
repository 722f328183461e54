/*
 * Messages as objects under one address: files of a folder, or what a web server makes of it. Whoever
 * follows needs nothing but to read an object by its name:
 *
 *     owners                       a line for each owner: its name, quoted
 *     OWNER/index                  "tamis objects 1", "epoch E", "messages FIRST LAST" (0 0: none), and
 *                                  "forgotten" if it is no owner any more
 *     OWNER/00000000000000000007   the message with this number
 *     OWNER/snapshot               u64 epoch, u64 number of the last message before it, and for each
 *                                  of its messages u64 length and the message
 *
 * A look reads the list and every index that changed, and then the messages that are new. It takes time
 * for each owner, so looks are as rare as they are long: at most a part of the time is spent on them.
 */
#ifndef TAMIS_OBJECTS_H
#define TAMIS_OBJECTS_H

#include "base/lookup.h"
#include "carrier.h"

struct object {
    uint8_t *data; /* to be freed */
    size_t len;
    uint64_t age; /* nanoseconds since it was written, at most; or AGE_UNKNOWN */
};

/* What an object was like when it was read last, for whoever can tell that it is still the same. */
struct object_mark {
    char text[160]; /* "": not known */
    uint64_t since; /* clock when it was first like this */
};

enum object_result { OBJECT_FAILED = -1, OBJECT_NONE = 0, OBJECT_READ = 1, OBJECT_SAME = 2 };

struct objects {
    struct carrier carrier;
    /* The first `most` bytes of an object; with a mark, OBJECT_SAME if it is as it was. */
    enum object_result (*get)(struct objects *o, const char *name, size_t most,
                              struct object_mark *mark, struct object *out);
    uint64_t look_ms, share; /* least time between looks; a look takes one of so many parts of it */
    uint64_t next_look;
    bool failed; /* the last look */
    struct object_mark owners;
    struct lookup places;
    struct owner_messages **place;
    size_t n_places, places_room;
};

/* ---- for carriers of objects ---- */

int objects_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                    carrier_take take, void *context);
int objects_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                  carrier_take take, void *context);
bool objects_owners(struct carrier *c, carrier_each each, void *context);
void objects_free(struct objects *o);
void object_number(uint64_t number, char out[24]);

#endif
