/* The counting quotient filter of its authors (github.com/splatlab/cqf), if its headers are found: its source is no part
   of this tree. It doubles, and a fingerprint has one bit less to tell keys apart then, so that it is given those
   of its last size in advance. */
#include "bench.h"

#if __has_include(<gqf.h>)

#include <../src/gqf.c>
#include <../src/hashutil.c>
#include <../src/partitioned_counter.c>

static void *make(size_t n, double fpp)
{
    QF *qf = calloc(1, sizeof *qf);
    unsigned bits = 0;
    while ((double)(UINT64_C(1) << bits) < (double)n / 0.95)
        bits++;
    for (double rate = 1; rate > fpp; rate /= 2)
        bits++;
    if (!qf || !qf_malloc(qf, 1024, bits, 0, QF_HASH_DEFAULT, 1)) {
        free(qf);
        return NULL;
    }
    qf_set_auto_resize(qf, true);
    return qf;
}

static bool add(void *qf, uint64_t key)
{
    return qf_insert(qf, key, 0, 1, QF_NO_LOCK) >= 0;
}

static bool has(void *qf, uint64_t key)
{
    uint64_t value;
    return qf_query(qf, key, &value, QF_NO_LOCK) > 0;
}

static bool take(void *qf, uint64_t key)
{
    return qf_remove(qf, key, 0, 1, QF_NO_LOCK) >= 0;
}

static size_t bytes(void *qf)
{
    return (size_t)qf_get_total_size_in_bytes(qf);
}

static void release(void *qf)
{
    qf_free(qf);
    free(qf);
}

const struct grower grower_cqf = {"quotient filter", make, add, has, take, bytes, release};

#else
const struct grower grower_cqf = {"quotient filter", NULL, NULL, NULL, NULL, NULL, NULL};
#endif
