/*
 * Messages of replicas (docs/format.md): a few fields and a payload, which is a bits-only filter (a
 * snapshot) or a bits-only patch (a delta), split into parts if it exceeds the message size. A
 * heartbeat is sent for every owner every few seconds and takes about 65 bytes: what changes only
 * when the origin restarts is in its snapshots.
 *
 * If the family key is not published, a message ends with a MAC under a key derived from it.
 * Whoever has the family key can speak for any owner of the family; nobody else can.
 */
#ifndef TAMIS_FORMAT_MESSAGE_H
#define TAMIS_FORMAT_MESSAGE_H

#include "format/format.h"
#include "tamis/replica.h"

#define MESSAGE_BYTES_MIN 1024
#define BEAT_MAX          (UINT64_C(1) << 60)
#define BEAT_DEFAULT      (UINT64_C(10) * 1000000000)

struct envelope {
    tamis_message m;
    uint64_t whole_len, whole_sum; /* of the whole payload in all parts, and its XXH3 */
    uint32_t family;               /* see family_tag */
    bool sealed;                   /* it ends with a MAC */
    const uint8_t *part;           /* this part of the payload */
    uint64_t part_len;
    const uint8_t *data; /* the whole message, if one was opened */
    size_t len;
};

tamis_error envelope_open(struct envelope *e, const void *data, size_t len, tamis_reason *reason);
/* Is there a MAC made with this key? */
bool envelope_sealed_by(const struct envelope *e, const uint8_t key[TAMIS_KEY_LEN]);
/* Checks every byte, including the payload if it is complete. */
tamis_error message_verify(const void *data, size_t len, tamis_reason *reason);
/* Writes the parts, each in one call, of at most `most` bytes; 0: one part of any size. Owner,
   versions, time, targets, estimate and whether it is sealed come from the envelope. */
tamis_error envelope_send(const struct envelope *e, const struct family *family, const void *whole,
                          size_t len, uint64_t most, const tamis_allocator *a, tamis_write write,
                          void *context);
bool targets_wrong(const tamis_targets *targets);

#endif
