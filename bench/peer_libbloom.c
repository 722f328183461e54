#include "bench.h"

#include <bloom.h>
#include <stdlib.h>

static void *make(size_t n, double fpp, const uint64_t *keys)
{
    struct bloom *bloom = calloc(1, sizeof *bloom);
    if (n > 2000000000 || bloom_init(bloom, (int)n, fpp) != 0) {
        free(bloom);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        bloom_add(bloom, &keys[i], 8);
    return bloom;
}

static size_t bytes(void *filter)
{
    return (size_t)((struct bloom *)filter)->bytes;
}

static bool has(void *filter, uint64_t key)
{
    return bloom_check(filter, &key, 8);
}

static void release(void *filter)
{
    bloom_free(filter);
    free(filter);
}

const struct peer peer_libbloom = {"libbloom", make, bytes, has, NULL, release};
