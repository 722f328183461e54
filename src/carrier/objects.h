/*
 * Messages as objects that followers read by name: files of a folder, or of a folder behind a web server.
 *
 *     owners                       a line for each owner: its name, quoted
 *     OWNER/index                  "tamis objects 1", "epoch E", "messages FIRST LAST" (0 0: none), and
 *                                  "forgotten" if the owner was removed
 *     OWNER/00000000000000000007   the message with this number
 *     OWNER/snapshot               u64 epoch, u64 number of the last message before it, and for each
 *                                  of its messages u64 length and the message
 *
 * A check reads the list, every index that has changed, and the new messages. It takes time for each owner, so
 * the interval between checks grows with the time they take.
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

/* The state of an object when it was last read, to recognise that it has not changed. */
struct object_mark {
    char text[160]; /* "": not known */
    uint64_t since; /* carrier_clock when it was first seen in this state */
};

enum object_result { OBJECT_FAILED = -1, OBJECT_NONE = 0, OBJECT_READ = 1, OBJECT_SAME = 2 };

struct objects {
    struct carrier carrier;
    /* Reads the first `most` bytes of an object; with a mark, OBJECT_SAME if it has not changed. */
    enum object_result (*get)(struct objects *o, const char *name, size_t most,
                              struct object_mark *mark, struct object *out);
    uint64_t look_ms,
        share; /* between checks: at least look_ms, and `share` times as long as a check */
    uint64_t next_look;
    bool failed; /* the last check */
    struct object_mark owners;
    struct lookup by_name;
    struct owner_messages **sender;
    size_t n_senders, senders_room;
};

/* ---- for carriers of objects ---- */

int objects_receive(struct carrier *c, char position[CARRIER_POSITION], int milliseconds,
                    carrier_take take, void *context);
int objects_fetch(struct carrier *c, const char *owner, char position[CARRIER_POSITION],
                  carrier_take take, void *context);
bool objects_owners(struct carrier *c, carrier_each each, void *context);
void objects_free(struct objects *o);
void object_number(uint64_t number, char out[24]);
/* OWNER/NAME, or one of them if the other is "". */
void object_path(const char *owner, const char *name, char out[1024]);

#endif
