/* Messages from anywhere, checksums made right: a follower refuses them with a reason, or has a version
   more; what it had before answers on. The first bytes choose what is changed in a good message. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/format.h"
#include "histories.h"
#include "tamis/replica.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct bytes good[3]; /* a snapshot, a delta, a heartbeat */

static void prepare(void)
{
    struct history *h = malloc(sizeof *h);
    tamis_filter *f = history_new(h, 17, 3);
    tamis_origin *origin;
    tamis_origin_options o = {.owner = "fuzz", .epoch = 7};
    if (tamis_origin_new(&origin, f, &o, NULL) != TAMIS_OK ||
        tamis_origin_publish(origin, bytes_write, &good[0], NULL) != TAMIS_OK)
        abort();
    history_steps(h, f, 12);
    if (tamis_origin_publish(origin, bytes_write, &good[1], NULL) != TAMIS_OK ||
        tamis_origin_beat(origin, bytes_write, &good[2]) != TAMIS_OK)
        abort();
    tamis_origin_free(origin);
    tamis_filter_free(f);
    free(h);
}

/* Both checksums of a message with one chunk of payload or none. */
static void repair(uint8_t *data, size_t len)
{
    uint64_t header = get_u64(data + 24), body = get_u64(data + 32);
    uint32_t sections = get_u32(data + 40);
    if (header > len || header < BODY_AT + 8 || body > header || sections > 1 ||
        BODY_AT + body + 24 * sections + 16 > header)
        return;
    if (header < len)
        put_u64(data + BODY_AT + body + 24 * sections, hash_of(data + header, len - header));
    put_u64(data + header - 8, hash_of(data, header - 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!good[0].data)
        prepare();
    if (len < 4)
        return 0;
    const struct bytes *from = &good[data[0] % 3];
    uint8_t *message = malloc(from->len);
    memcpy(message, from->data, from->len);
    for (size_t i = 1; i + 2 < len; i += 3) { /* place and value */
        size_t at = (data[i] | (size_t)data[i + 1] << 8) % from->len;
        message[at] = data[i + 2];
    }
    repair(message, from->len);
    tamis_follower *follower;
    tamis_reason reason = {0};
    tamis_taken taken;
    if (tamis_follower_new(&follower, NULL) != TAMIS_OK ||
        tamis_follower_take(follower, good[0].data, good[0].len, 0, NULL, NULL) != TAMIS_OK)
        abort();
    tamis_error e = tamis_follower_take(follower, message, from->len, 0, &taken, &reason);
    if ((e != TAMIS_OK) != (taken == TAMIS_REFUSED) || (e != TAMIS_OK && reason.text[0] == 0))
        abort();
    tamis_follower_has(follower, "key", 3);
    tamis_follower_free(follower);
    free(message);
    return 0;
}
