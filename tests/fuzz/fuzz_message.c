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

/* The checksum is right, whatever was changed; that of a sealed one is in front of the MAC. */
static void repair(uint8_t *data, size_t len)
{
    size_t end = len - 8 - (data[6] & 1 ? 16 : 0);
    put_u64(data + end, hash_of(data, end));
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
    if (tamis_follower_new(&follower, NULL, NULL) != TAMIS_OK ||
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
