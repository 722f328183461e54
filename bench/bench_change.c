/*
 * What a small change costs in a large filter: 1,024 adds, then the delta that an origin publishes, what a
 * follower does with it, the patch between two versions and its application, for filters of 10^6 keys and
 * more. All of it should cost what changed; a copy of a follower is made anew, which is one pass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "tamis/replica.h"

enum { CHANGED = 1024, ROUNDS = 9 };

struct message {
    uint8_t *data;
    size_t len, room;
};

static int gather(void *context, const void *data, size_t len)
{
    struct message *m = context;
    if (m->len + len > m->room) {
        m->room = 2 * (m->len + len);
        m->data = realloc(m->data, m->room);
        if (!m->data)
            return 1;
    }
    memcpy(m->data + m->len, data, len);
    m->len += len;
    return 0;
}

/* A snapshot is one message for a follower, whatever its size. */
static int take(void *context, const void *data, size_t len)
{
    tamis_reason reason;
    bench_must(tamis_follower_take(context, data, len, 0, NULL, &reason), &reason);
    return 0;
}

static void add_keys(tamis_filter *f, uint64_t from, uint64_t n)
{
    tamis_digest digests[BENCH_CHUNK];
    uint64_t keys[BENCH_CHUNK];
    for (uint64_t i = 0; i < n; i += BENCH_CHUNK) {
        for (uint64_t j = 0; j < BENCH_CHUNK; j++)
            keys[j] = bench_mix(from + i + j);
        tamis_filter_digest_fixed(f, keys, sizeof *keys, BENCH_CHUNK, digests);
        bench_must(tamis_filter_add_many(f, digests, BENCH_CHUNK, NULL, NULL), NULL);
    }
}

static double median(double *times)
{
    return 1e3 * bench_sort(times, ROUNDS);
}

static void changes(uint64_t n, tamis_growth growth, const char *name)
{
    tamis_options options = {.growth = growth};
    tamis_origin_options o = {.owner = "bench"};
    tamis_reason reason = {0};
    struct message m = {0};
    tamis_filter *f, *copy;
    tamis_origin *origin;
    tamis_follower *follower;
    double publish[ROUNDS], follow[ROUNDS], diff[ROUNDS], apply[ROUNDS], t[5];
    uint64_t bytes = 0;
    if (growth == TAMIS_FIXED)
        options.capacity = n + (1 << 20);
    bench_must(tamis_filter_new(&f, &options, &reason), &reason);
    add_keys(f, 0, n / BENCH_CHUNK * BENCH_CHUNK);
    bench_must(tamis_origin_new(&origin, f, &o, &reason), &reason);
    bench_must(tamis_follower_new(&follower, NULL, NULL), NULL);
    bench_must(tamis_origin_publish(origin, take, follower, &reason), &reason);
    bench_must(tamis_filter_clone(&copy, f), NULL);
    for (int i = -1; i < ROUNDS; i++) { /* what is kept from then on is made the first time */
        add_keys(f, n + (uint64_t)(i + 1) * CHANGED, CHANGED);
        m.len = 0;
        t[0] = bench_spent();
        bench_must(tamis_origin_publish(origin, gather, &m, &reason), &reason);
        t[1] = bench_spent();
        take(follower, m.data, m.len);
        t[2] = bench_spent();
        m.len = 0;
        bench_must(tamis_filter_diff(copy, f, 0, gather, &m, &reason), &reason);
        t[3] = bench_spent();
        bench_must(tamis_filter_apply(copy, m.data, m.len, &reason), &reason);
        t[4] = bench_spent();
        bytes = m.len;
        if (i >= 0)
            publish[i] = t[1] - t[0], follow[i] = t[2] - t[1], diff[i] = t[3] - t[2],
            apply[i] = t[4] - t[3];
    }
    printf("%10llu %9s %11.2f %11.2f %11.2f %11.2f %9llu\n", (unsigned long long)n, name,
           median(publish), median(follow), median(diff), median(apply), (unsigned long long)bytes);
    free(m.data);
    tamis_origin_free(origin);
    tamis_follower_free(follower);
    tamis_filter_free(copy);
    tamis_filter_free(f);
}

int main(void)
{
    uint64_t most = getenv("BENCH_FULL") ? 100000000 : 10000000;
    printf("1,024 adds to a filter, 1 %%: milliseconds (median of %d)\n", ROUNDS);
    printf("%10s %9s %11s %11s %11s %11s %9s\n", "keys", "growth", "publish", "follow", "diff",
           "apply", "bytes");
    for (uint64_t n = 1000000; n <= most; n *= 10) {
        changes(n, TAMIS_FIXED, "fixed");
        changes(n, TAMIS_SMOOTH, "smooth");
        changes(n, TAMIS_SCALABLE, "scalable");
    }
    return 0;
}
