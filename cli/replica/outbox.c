/* The messages that an origin has to send. See outbox.h. */
#include "outbox.h"

#include <stdlib.h>
#include <string.h>

#include "ui/growing.h"

#define SNAPSHOT_MIN ((uint64_t)1 << 18) /* bytes of messages that do not justify a snapshot */

int outbox_add(void *context, const void *data, size_t len)
{
    struct outbox *box = context;
    tamis_message message;
    if (!room_for(&box->message, box->n, &box->room, sizeof *box->message) ||
        tamis_message_read(&message, data, len, NULL) != TAMIS_OK)
        return -1;
    struct outbox_message *next = &box->message[box->n];
    *next = (struct outbox_message){malloc(len), len, message.type};
    if (!next->data)
        return -1;
    memcpy(next->data, data, len);
    box->n++;
    return 0;
}

static void drop(struct outbox *box, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(box->message[i].data);
    if (n)
        memmove(box->message, box->message + n, (box->n - n) * sizeof *box->message);
    box->n -= n;
}

/* The snapshot at the front of the box, with all its parts. */
static bool send_snapshot(struct outbox *box)
{
    size_t n = 0;
    uint64_t bytes = 0;
    while (n < box->n && box->message[n].type == TAMIS_SNAPSHOT)
        bytes += box->message[n++].len;
    struct carrier_part *parts = malloc(n * sizeof *parts);
    if (!parts)
        return carrier_fail(box->carrier, "out of memory");
    for (size_t i = 0; i < n; i++)
        parts[i] = (struct carrier_part){box->message[i].data, box->message[i].len};
    bool sent = carrier_replace(box->carrier, box->owner, box->epoch, parts, n);
    free(parts);
    if (!sent)
        return false;
    drop(box, n);
    box->since = box->deltas = 0;
    box->last = bytes;
    return true;
}

static bool send_one(struct outbox *box)
{
    const struct outbox_message *m = &box->message[0];
    if (m->type == TAMIS_SNAPSHOT)
        return send_snapshot(box);
    if (!carrier_send(box->carrier, box->owner, m->data, m->len))
        return false;
    box->since += m->len;
    box->deltas += m->type == TAMIS_DELTA;
    drop(box, 1);
    return true;
}

bool outbox_send(struct outbox *box)
{
    while (box->n)
        if (!send_one(box)) {
            if (!box->cut_off)
                remark("%s: trying again", box->carrier->error);
            box->cut_off = true;
            return false;
        }
    if (box->cut_off)
        remark("%s: reachable again", box->owner);
    box->cut_off = false;
    return true;
}

bool outbox_snapshot_due(const struct outbox *box)
{
    uint64_t most = box->last > SNAPSHOT_MIN ? box->last : SNAPSHOT_MIN;
    return box->last && box->since > most;
}

void outbox_free(struct outbox *box)
{
    drop(box, box->n);
    free(box->message);
}
