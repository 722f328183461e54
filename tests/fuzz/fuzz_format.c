/* Bytes from anywhere, their checksums made right: refused, or a filter or records that are saved as
   exactly these bytes. Never more memory than some times their length. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "forge.h"
#include "format/format.h"
#include "worlds.h"
#include "tamis/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void same(struct bytes *again, const uint8_t *data, size_t len)
{
    need(again->len == len && memcmp(again->data, data, len) == 0);
    bytes_free(again);
}

static tamis_error try_filter(const uint8_t *data, size_t len, const tamis_open_options *o,
                              tamis_reason *reason)
{
    tamis_filter *f;
    tamis_error e = tamis_filter_decode(&f, data, len, o, reason);
    if (e != TAMIS_OK)
        return e;
    struct bytes again = bytes_of(f, 0);
    same(&again, data, len);
    tamis_filter_has(f, data, len);
    tamis_filter_free(f);
    return e;
}

static tamis_error try_index(const uint8_t *data, size_t len, const tamis_open_options *o,
                             tamis_reason *reason)
{
    tamis_key record[TAMIS_ATTRIBUTES_MAX];
    tamis_records *x;
    tamis_error e = tamis_records_decode(&x, data, len, o, reason);
    if (e != TAMIS_OK)
        return e;
    struct bytes again = bytes_of_records(x, 0);
    same(&again, data, len);
    for (unsigned i = 0; i < TAMIS_ATTRIBUTES_MAX; i++)
        record[i] = (tamis_key){data, i};
    tamis_records_has(x, record, 0);
    tamis_records_has(x, record, get_u64(data));
    tamis_records_free(x);
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len + 1);
    struct capped capped;
    tamis_reason reason = {0};
    memcpy(copy, data, len);
    if (len >= 192) {
        put_u64(copy + 16, len);
        container_repair(copy, len);
    }
    capped_init(&capped, len);
    tamis_open_options o = {.allocator = &capped.allocator};
    tamis_error e = tamis_kind_of(copy, len) == TAMIS_KIND_RECORDS
                        ? try_index(copy, len, &o, &reason)
                        : try_filter(copy, len, &o, &reason);
    need(e == TAMIS_OK || (reason.text[0] && reason.offset <= len));
    need(capped.live == 0 && capped.refused == 0);
    free(copy);
    return 0;
}
