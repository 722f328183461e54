/* Streams from anywhere, as patches of filters that are there, checksums made right: refused, or the
   version that they name (which nobody can guess). The first byte chooses the filter. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "delta/patch.h"
#include "histories.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static tamis_filter *bases[HISTORY_KINDS];
static struct bytes fronts[HISTORY_KINDS];
static struct history histories[HISTORY_KINDS]; /* the clocks of the filters */

static void prepare(unsigned kind)
{
    struct history *h = &histories[kind];
    tamis_filter *f = history_new(h, kind, 3);
    history_steps(h, f, 30);
    if (tamis_filter_diff(f, f, 0, bytes_write, &fronts[kind], NULL) != TAMIS_OK)
        abort();
    bases[kind] = f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    unsigned kind = data[0] % HISTORY_KINDS;
    if (!bases[kind])
        prepare(kind);
    size_t size = PATCH_FRONT + len - 1 + PATCH_SUM;
    uint8_t *patch = malloc(size);
    memcpy(patch, fronts[kind].data, PATCH_FRONT);
    memcpy(patch + PATCH_FRONT, data + 1, len - 1);
    put_u64(patch + size - PATCH_SUM, hash_of(patch, size - PATCH_SUM));
    tamis_filter *f;
    tamis_reason reason = {0};
    if (tamis_filter_clone(&f, bases[kind]) != TAMIS_OK)
        abort();
    tamis_error e = tamis_filter_apply(f, patch, size, &reason);
    if (e != TAMIS_OK && reason.text[0] == 0)
        abort();
    if (!tamis_filter_equal(f, bases[kind])) /* the front leads from the version to itself */
        abort();
    tamis_filter_free(f);
    free(patch);
    return 0;
}
