/*
 * The messages that an origin has to send, in order, kept until the carrier has accepted them. Counts bytes and
 * deltas since the last snapshot.
 */
#ifndef TAMIS_OUTBOX_H
#define TAMIS_OUTBOX_H

#include "carrier/carrier.h"
#include "ui/cli.h"

struct outbox_message {
    void *data;
    size_t len;
    tamis_message_type type;
};

struct outbox {
    struct carrier *carrier;
    const char *owner;
    uint64_t epoch;
    struct outbox_message *message;
    size_t n, room;
    uint64_t since;  /* bytes sent since the last snapshot */
    uint64_t deltas; /* among them */
    uint64_t last;   /* bytes of that snapshot */
    bool cut_off;    /* the carrier failed, and it was reported */
};

/* A tamis_write; the context is the outbox. */
int outbox_add(void *outbox, const void *data, size_t len);
/* Sends all messages; false if some are left. */
bool outbox_send(struct outbox *box);
/* Is a new snapshot due, so that the messages since the last one can be dropped? */
bool outbox_snapshot_due(const struct outbox *box);
void outbox_free(struct outbox *box);

#endif
