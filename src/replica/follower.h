/* The state of a follower, shared by replica_follower.c (queries) and replica_take.c (messages). */
#ifndef TAMIS_FOLLOWER_H
#define TAMIS_FOLLOWER_H

#include "replica.h"

/* From the clock of one run of the origin to ours: the smallest difference in this span and in
   the previous one. A span lasts at least a lease by both clocks: a burst after a stall does not
   end it, and clocks that drift apart by a second per day are off by less than a millisecond. */
struct delays {
    uint64_t epoch;
    int64_t least[2];
    uint64_t here, there; /* clocks when the span began */
};

/* What is known about the origin; together with the copy it is a version. */
struct told {
    struct envelope last;                          /* the last one accepted */
    uint64_t epoch, version, newest_epoch, newest; /* held, and known */
    uint64_t heard;                                /* clock when the last one was sent */
    uint64_t delay_epoch;                          /* the run of the last one, and */
    int64_t delay;                                 /* the delay of the fastest one of this run */
    tamis_targets targets;                         /* from the last snapshot */
    uint64_t applied, refused, repeated, bytes;
    bool needs_snapshot;
};
#define TOLD_WORDS ((sizeof(struct told) + 7) / 8)

struct tamis_follower {
    tamis_allocator a;
    tamis_filter *_Atomic copy;
    _Atomic uint64_t turn; /* odd while these words and the copy change together */
    _Atomic uint64_t told[TOLD_WORDS];
    _Atomic int condition;              /* a tamis_freshness, without regard to the lease */
    _Atomic uint64_t expires;           /* clock at which the lease expires */
    _Atomic uint64_t contact;           /* at which the carrier was reached; 0: unknown */
    const _Atomic uint64_t *contact_at; /* the one that counts: this one, or its directory's */
    _Atomic uint64_t contested;         /* until when another origin of its name counts as alive */
    _Atomic uint64_t beat;
    tamis_clock clock;
    void *clock_context;
    uint32_t lease;
    uint64_t lease_most;
    struct secrets *given; /* of a key for snapshots without theirs, or NULL */
    /* Only for the thread that takes messages. */
    struct retired *retired;
    struct told t;
    struct delays delays, rival; /* of the newest run, and of the previous one */
    uint64_t taken_over;         /* clock when the newest run was first heard of */
    uint64_t arrived;            /* clock when the message being taken arrived */
    struct envelope held;        /* the message whose parts are being collected; parts 0: none */
    struct sink parts;
    follower_swap swap; /* of a directory, or NULL */
    void *swap_context;
    struct retired gone; /* from a directory whose readers may be in it */
};

/* Publishes the copy, and what is known from now on: other threads see both as before or both as after. */
void follower_tell(tamis_follower *f, tamis_filter *copy);
/* How long a heartbeat is good for. */
uint64_t follower_lease_span(const tamis_follower *f);

#endif
