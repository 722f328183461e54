/*
 * Messages of replicas. A message is a container of its own kind; what it carries is a filter of bits
 * only (a snapshot) or a patch of bits only (a delta), cut into parts where that is larger than a
 * message may be.
 */
#ifndef TAMIS_FORMAT_MESSAGE_H
#define TAMIS_FORMAT_MESSAGE_H

#include "base/base.h"
#include "format/format.h"
#include "tamis/replica.h"

#define MESSAGE_BYTES_MIN 1024
#define BEAT_MAX          (UINT64_C(1) << 60)

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
    tamis_hash hash;
    uint8_t check[TAMIS_KEY_LEN]; /* of the family */
    const uint8_t *part;          /* this part of it */
    uint64_t part_len;
};

tamis_error envelope_open(struct envelope *e, const void *data, size_t len, tamis_reason *reason);
/* Every byte, and of what it carries too if that is all there. */
tamis_error message_verify(const void *data, size_t len, tamis_reason *reason);
/* Writes the parts that it takes, in one call each; `most` bytes each, 0: one part whatever its
   size. Owner, versions, time, targets and estimate are the envelope's. */
tamis_error envelope_send(const struct envelope *e, const struct family *family, const void *whole,
                          size_t len, uint64_t most, const tamis_allocator *a, tamis_write write,
                          void *context);
bool targets_wrong(const tamis_targets *targets);

#endif
