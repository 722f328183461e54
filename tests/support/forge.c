/* See forge.h. */
#include "forge.h"

#include "base/bytes.h"
#include "format/format.h"
#include "harness.h"

void bytes_forge(struct bytes *out, const struct bytes *good, uint64_t *rng)
{
    uint64_t header = get_u64(good->data + 24);
    uint64_t within = rng_next(rng) % 3 ? header - 12 : good->len - 12;
    uint64_t at = 12 + rng_next(rng) % within;
    out->len = 0;
    bytes_write(out, good->data, good->len);
    uint8_t value[] = {0, 1, 0xff, (uint8_t)rng_next(rng), 0x7f, (uint8_t)(out->data[at] + 1)};
    out->data[at] = value[rng_next(rng) % sizeof value];
    if (rng_next(rng) % 8 == 0)
        out->data[12 + rng_next(rng) % within] ^= 1;
    if (memcmp(out->data + 16, good->data + 16, 32) == 0)
        bytes_repair(out);
    else /* other lengths: the header alone is made right */
        put_u64(out->data + header - 8, hash_of(out->data, header - 8));
}

static void *capped_alloc(void *context, size_t size)
{
    struct capped *c = context;
    if (size > c->cap || c->live > c->cap - size) {
        c->refused++;
        return NULL;
    }
    void *memory = malloc(size);
    c->live += memory ? size : 0;
    return memory;
}

static void capped_free(void *context, void *memory, size_t size)
{
    ((struct capped *)context)->live -= size;
    free(memory);
}

void capped_init(struct capped *c, size_t len)
{
    size_t cap = 16 * len + (UINT64_C(1) << 20);
    *c = (struct capped){.allocator = {.alloc = capped_alloc, .free = capped_free, .context = c},
                         .cap = cap};
}

int failing_write(void *context, const void *data, size_t len)
{
    struct failing *w = context;
    (void)data, (void)len;
    return ++w->calls == w->fail_at ? 7 : 0;
}
