/* The taffy cuckoo filter of its author (github.com/jbapple/libfilter), if its source is found: it is no part of this
   tree. It grows by doubling, keeps fingerprints of ten bits whatever rate is asked for, and removes nothing. */
#include "bench.h"

#if __has_include(<../lib/taffy-cuckoo.c>)

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <../lib/taffy-cuckoo.c>

#define FIRST 1000

static void *taffy_make(size_t n, double fpp)
{
    libfilter_taffy_cuckoo *f = calloc(1, sizeof *f);
    (void)n;
    (void)fpp;
    if (f)
        libfilter_taffy_cuckoo_init(4 * FIRST, f);
    return f;
}

static bool taffy_add(void *f, uint64_t key)
{
    return libfilter_taffy_cuckoo_add_hash(f, XXH3_64bits(&key, sizeof key));
}

static bool taffy_has(void *f, uint64_t key)
{
    return libfilter_taffy_cuckoo_find_hash(f, XXH3_64bits(&key, sizeof key));
}

static size_t taffy_bytes(void *f)
{
    return libfilter_taffy_cuckoo_size_in_bytes(f);
}

static void taffy_free(void *f)
{
    libfilter_taffy_cuckoo_destruct(f);
    free(f);
}

const struct grower grower_taffy = {"taffy cuckoo filter", taffy_make, taffy_add, taffy_has, NULL,
                                    taffy_bytes,           taffy_free};

#else
const struct grower grower_taffy = {"taffy cuckoo filter", NULL, NULL, NULL, NULL, NULL, NULL};
#endif
