/*
 * Messages of replicas (docs/format.md): a few fields, and what is carried: a filter of bits only (a
 * snapshot) or a patch of bits only (a delta), cut into parts where that is larger than a message may
 * be. A heartbeat is sent for every owner every few seconds and takes about 65 bytes: what only
 * changes with the life of the origin is told by its snapshots alone.
 *
 * Where the family key is not published, a message ends with a MAC under a key made from it. Whoever
 * has the family key can speak for any of its owners; others for none.
 */
#ifndef TAMIS_FORMAT_MESSAGE_H
#define TAMIS_FORMAT_MESSAGE_H

#include "base/base.h"
#include "format/format.h"
#include "tamis/replica.h"

#define MESSAGE_BYTES_MIN 1024
#define BEAT_MAX          (UINT64_C(1) << 60)
#define BEAT_DEFAULT      (UINT64_C(10) * 1000000000)

/* Bytes that grow. A tamis_write. */
struct sink {
    const tamis_allocator *a;
    uint8_t *data;
    size_t len, room;
    bool failed; /* no memory */
};

int sink_write(void *sink, const void *data, size_t len);
void sink_free(struct sink *sink);

struct envelope {
    tamis_message m;
    uint64_t whole_len, whole_sum; /* of what the parts carry together, and its XXH3 */
    uint32_t family;               /* see family_tag */
    bool sealed;                   /* it ends with a MAC */
    const uint8_t *part;           /* this part of it */
    uint64_t part_len;
    const uint8_t *data; /* all of the message, where one was opened */
    size_t len;
};

/* Tells families apart, as the check of the key does, in the few bytes that a heartbeat has for it. */
uint32_t family_tag(const struct family *family);

tamis_error envelope_open(struct envelope *e, const void *data, size_t len, tamis_reason *reason);
/* Is the MAC there, and made with this key? */
bool envelope_sealed_by(const struct envelope *e, const uint8_t key[TAMIS_KEY_LEN]);
/* Every byte, and of what it carries too if that is all there. */
tamis_error message_verify(const void *data, size_t len, tamis_reason *reason);
/* Writes the parts that it takes, in one call each; `most` bytes each, 0: one part whatever its
   size. Owner, versions, time, targets, estimate and whether it is sealed are the
   envelope's. */
tamis_error envelope_send(const struct envelope *e, const struct family *family, const void *whole,
                          size_t len, uint64_t most, const tamis_allocator *a, tamis_write write,
                          void *context);
bool targets_wrong(const tamis_targets *targets);

#endif
