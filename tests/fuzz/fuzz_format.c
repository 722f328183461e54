/* Bytes from anywhere, their checksums made right: refused, or a filter that is saved as exactly
   these bytes. Never more memory than some times their length. */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "format.h"
#include "histories.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct capped {
    tamis_allocator allocator;
    size_t live, cap;
};

static void *capped_alloc(void *context, size_t size)
{
    struct capped *c = context;
    if (size > c->cap || c->live > c->cap - size)
        abort();
    c->live += size;
    return malloc(size);
}

static void capped_free(void *context, void *memory, size_t size)
{
    ((struct capped *)context)->live -= size;
    free(memory);
}

/* Where lengths allow it. */
static void repair(uint8_t *d, size_t len)
{
    if (len < 192)
        return;
    uint64_t header = get_u64(d + 24), body = get_u64(d + 32), sections = get_u32(d + 40);
    put_u64(d + 16, len);
    if (header > len || header < 136 || body > len || sections > len / 24)
        return;
    uint64_t sums = BODY_AT + body + 24 * sections;
    for (uint64_t at = header; at < len && sums + 16 <= header; at += CHUNK, sums += 8)
        put_u64(d + sums, hash_of(d + at, (size_t)min_u64(CHUNK, len - at)));
    put_u64(d + header - 8, hash_of(d, header - 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len + 1);
    memcpy(copy, data, len);
    repair(copy, len);
    struct capped capped = {{capped_alloc, capped_free, &capped}, 0, 16 * len + (1 << 20)};
    tamis_open_options o = {.allocator = &capped.allocator};
    tamis_reason reason = {0};
    tamis_filter *f;
    if (tamis_filter_decode(&f, copy, len, &o, &reason) == TAMIS_OK) {
        struct bytes again = bytes_of(f, 0);
        if (again.len != len || memcmp(again.data, copy, len) != 0)
            abort();
        tamis_filter_has(f, data, len);
        bytes_free(&again);
        tamis_filter_free(f);
    } else if (reason.text[0] == 0 || reason.offset > len) {
        abort();
    }
    if (capped.live)
        abort();
    free(copy);
    return 0;
}
