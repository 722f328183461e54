/*
 * Replicas: what publishing costs the origin, what locating and taking a delta cost with 1,000 copies, how
 * large a delta is, and the contract: hosts whose sets change at changing rates for a day, each publishing by one of
 * three rules. A copy is held by every other host; what was sent is counted once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "followed.h"
#include "tamis/replica.h"

static int count_bytes(void *context, const void *data, size_t len)
{
    (void)data;
    *(uint64_t *)context += len;
    return 0;
}

/* ---- publishing ------------------------------------------------------------------------------ */

static double add_keys(tamis_filter *f, tamis_origin *origin, uint64_t from, uint64_t n,
                       uint64_t *bytes)
{
    enum { RUN = 64 };
    tamis_digest digests[RUN];
    uint64_t keys[RUN];
    double start = bench_spent();
    for (uint64_t i = 0; i < n; i += RUN) {
        for (uint64_t j = 0; j < RUN; j++)
            keys[j] = bench_mix(from + i + j);
        tamis_filter_digest_fixed(f, keys, sizeof *keys, RUN, digests);
        bench_must(tamis_filter_add_many(f, digests, RUN, NULL, NULL), NULL);
        if (origin && tamis_origin_due(origin) != TAMIS_DUE_NOT)
            bench_must(tamis_origin_publish(origin, count_bytes, bytes, NULL), NULL);
    }
    return (bench_spent() - start) / (double)n * 1e9;
}

static void publishing(uint64_t n, bool deletable)
{
    tamis_options options = {.growth = TAMIS_FIXED, .capacity = 2 * n, .deletable = deletable};
    tamis_origin_options o = {.owner = "bench"};
    tamis_filter *plain, *f;
    tamis_origin *origin;
    tamis_origin_facts facts;
    uint64_t bytes = 0;
    bench_must(tamis_filter_new(&plain, &options, NULL), NULL);
    bench_must(tamis_filter_new(&f, &options, NULL), NULL);
    add_keys(plain, NULL, 0, n, NULL);
    add_keys(f, NULL, 0, n, NULL);
    bench_must(tamis_origin_new(&origin, f, &o, NULL), NULL);
    bench_must(tamis_origin_publish(origin, count_bytes, &bytes, NULL), NULL);
    uint64_t more = n / 2, snapshot = bytes;
    double alone = add_keys(plain, NULL, n, more, NULL);
    double with = add_keys(f, origin, n, more, &bytes);
    tamis_origin_info(origin, &facts);
    printf("%10llu %9s %12.0f %12.0f %12.2f %9llu %12.1f\n", (unsigned long long)n,
           deletable ? "deletable" : "plain", alone, with, (with - alone) / 1000,
           (unsigned long long)facts.deltas, (double)(bytes - snapshot) / (double)more);
    tamis_origin_free(origin);
    tamis_filter_free(f);
    tamis_filter_free(plain);
}

static void one_delta(void)
{
    tamis_options options = {.growth = TAMIS_FIXED, .capacity = 11000000};
    tamis_origin_options o = {.owner = "bench"};
    tamis_filter *f;
    tamis_origin *origin;
    uint64_t snapshot = 0, delta = 0;
    bench_must(tamis_filter_new(&f, &options, NULL), NULL);
    add_keys(f, NULL, 0, 10000000, NULL);
    bench_must(tamis_origin_new(&origin, f, &o, NULL), NULL);
    bench_must(tamis_origin_publish(origin, count_bytes, &snapshot, NULL), NULL);
    add_keys(f, NULL, 10000000, 1024, NULL);
    bench_must(tamis_origin_publish(origin, count_bytes, &delta, NULL), NULL);
    printf("\n1,024 adds to 10 million keys: delta %llu bytes, snapshot %llu, 1/%.0f\n",
           (unsigned long long)delta, (unsigned long long)snapshot,
           (double)snapshot / (double)delta);
    tamis_origin_free(origin);
    tamis_filter_free(f);
}

/* ---- locating -------------------------------------------------------------------------------- */

static int to_replicas(void *replicas, const void *data, size_t len)
{
    return tamis_directory_take(replicas, NULL, data, len, 0, NULL, NULL) != TAMIS_OK;
}

/* What it costs a directory of 1,000 owners of 10^5 keys to take a delta of one of them. */
static void taking(void)
{
    enum { HOSTS = 1000, KEYS = 1600 * 64, ROUNDS = 50 };
    static const uint8_t key[TAMIS_KEY_LEN] = "one family";
    tamis_options options = {
        .growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .capacity = KEYS + 60000, .key = key};
    tamis_directory *r;
    tamis_filter *f;
    tamis_origin *origin = NULL;
    bench_must(tamis_directory_new(&r, NULL, NULL), NULL);
    bench_must(tamis_filter_new(&f, &options, NULL), NULL);
    add_keys(f, NULL, 0, KEYS, NULL);
    for (uint64_t i = 0; i < HOSTS; i++) {
        char name[24];
        tamis_origin_options o = {.owner = name, .beat = (uint64_t)3600 * 1000000000};
        snprintf(name, sizeof name, "host-%llu", (unsigned long long)i);
        tamis_origin_free(origin);
        bench_must(tamis_origin_new(&origin, f, &o, NULL), NULL);
        bench_must(tamis_origin_publish(origin, to_replicas, r, NULL), NULL);
    }
    printf("\na delta taken at %d owners of %d keys\n\n%10s %14s %14s\n", HOSTS, KEYS, "keys",
           "bytes", "microseconds");
    for (unsigned changes = 1, next = KEYS; changes <= 1000; changes *= 10) {
        double took = 0;
        uint64_t bytes = 0;
        for (unsigned i = 0; i < ROUNDS; i++) {
            struct kept m = {.n = 0};
            for (unsigned j = 0; j < changes; j++)
                bench_must(tamis_filter_add(f, &(uint64_t){bench_mix(next++)}, 8, NULL), NULL);
            bench_must(tamis_origin_publish(origin, kept_add, &m, NULL), NULL);
            double start = bench_spent();
            bench_must(tamis_directory_take(r, NULL, m.part[0].data, m.part[0].len, 0, NULL, NULL),
                       NULL);
            took += bench_spent() - start;
            bytes += m.part[0].len;
            kept_free(&m);
        }
        printf("%10u %14.0f %14.1f\n", changes, (double)bytes / ROUNDS, 1e6 * took / ROUNDS);
        bench_record((struct bench_row){.filter = "directory",
                                        .what = "a delta taken, 1,000 owners of 10^5 keys",
                                        .n = changes,
                                        .ns = 1e9 * took / ROUNDS});
    }
    tamis_origin_free(origin);
    tamis_filter_free(f);
    tamis_directory_free(r);
}

static void locating(uint64_t keys_each)
{
    enum { HOSTS = 1000, ASKED = 200000 };
    static const uint8_t key[TAMIS_KEY_LEN] = "one family";
    tamis_options options = {.growth = TAMIS_FIXED, .capacity = keys_each, .key = key};
    tamis_directory *r;
    tamis_filter *f = NULL;
    tamis_place places[16];
    uint64_t found = 0, doubts = 0;
    bench_must(tamis_directory_new(&r, NULL, NULL), NULL);
    for (uint64_t i = 0; i < HOSTS; i++) {
        char name[24];
        tamis_origin *origin;
        tamis_origin_options o = {.owner = name, .beat = (uint64_t)3600 * 1000000000};
        snprintf(name, sizeof name, "host-%llu", (unsigned long long)i);
        tamis_filter_free(f);
        bench_must(tamis_filter_new(&f, &options, NULL), NULL);
        add_keys(f, NULL, i << 40, keys_each / 64 * 64, NULL);
        bench_must(tamis_origin_new(&origin, f, &o, NULL), NULL);
        bench_must(tamis_origin_publish(origin, to_replicas, r, NULL), NULL);
        tamis_origin_free(origin);
    }
    double best = 1e9, single = 1e9;
    for (int run = 0; run < BENCH_RUNS; run++) {
        double start = bench_spent();
        for (uint64_t i = 0; i < ASKED; i++) {
            uint64_t asked = bench_mix(UINT64_C(1) << 60 | i);
            size_t n = tamis_directory_locate(r, &asked, sizeof asked, places, 16);
            found += n;
            doubts += n && places[0].doubt;
        }
        double ns = (bench_spent() - start) / ASKED * 1e9;
        best = ns < best ? ns : best;
        start = bench_spent();
        for (uint64_t i = 0; i < ASKED; i++) {
            uint64_t asked = bench_mix(UINT64_C(1) << 60 | i);
            found += tamis_filter_has(f, &asked, sizeof asked);
        }
        ns = (bench_spent() - start) / ASKED * 1e9;
        single = ns < single ? ns : single;
    }
    printf("%10llu %14.0f %14.1f %9.0f x %16.2f %8llu\n", (unsigned long long)keys_each, best,
           single, best / single, (double)found / ASKED / BENCH_RUNS, (unsigned long long)doubts);
    tamis_filter_free(f);
    tamis_directory_free(r);
}

/* ---- the contract ---------------------------------------------------------------------------- */

enum { STEPS = 1440, START_KEYS = 4000, LOOKS = 24 }; /* minutes of a day; keys asked a minute */

#define W_DISAGREE 20.0 /* a disagreement costs as much as this many false positives */

enum rule { BY_MISS, BY_RATE, BY_DIRTY, BY_TIMER };

struct host {
    tamis_filter *filter;
    tamis_origin *origin;
    tamis_follower *copy;
    uint64_t first, next; /* members are first .. next - 1 */
    uint64_t bytes, updates;
};

struct outcome {
    double miss, rate, weighted, updates, bytes; /* the last two for each host */
};

static int to_copy(void *context, const void *data, size_t len)
{
    struct host *h = context;
    h->bytes += len;
    return tamis_follower_take(h->copy, data, len, 0, NULL, NULL) != TAMIS_OK;
}

static void host_start(struct host *h, uint64_t number, enum rule rule, double value)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "the same hosts";
    tamis_options options = {.growth = TAMIS_FIXED,
                             .capacity = 5000,
                             .deletable = true,
                             .fpp = 0.01,
                             .key = key,
                             .overfill = true};
    tamis_targets t = {.member_miss = rule == BY_MISS ? value : -1,
                       .false_rate = rule == BY_RATE ? value : -1,
                       .w_positive = 1,
                       .w_disagree = W_DISAGREE,
                       .dirty = rule == BY_DIRTY ? value : -1};
    tamis_origin_options o = {.owner = "host", .targets = t};
    memset(h, 0, sizeof *h);
    bench_must(tamis_filter_new(&h->filter, &options, NULL), NULL);
    bench_must(tamis_origin_new(&h->origin, h->filter, &o, NULL), NULL);
    bench_must(tamis_follower_new(&h->copy, NULL, NULL), NULL);
    h->first = h->next = number << 32;
    for (; h->next < h->first + START_KEYS; h->next++)
        bench_must(tamis_filter_add(h->filter, &h->next, sizeof h->next, NULL), NULL);
    bench_must(tamis_origin_publish(h->origin, to_copy, h, NULL), NULL);
    h->bytes = 0;
}

static void host_end(struct host *h)
{
    tamis_origin_free(h->origin);
    tamis_filter_free(h->filter);
    tamis_follower_free(h->copy);
}

static void publish_if_due(struct host *h, enum rule rule)
{
    if (rule == BY_TIMER || tamis_origin_due(h->origin) == TAMIS_DUE_NOT)
        return;
    bench_must(tamis_origin_publish(h->origin, to_copy, h, NULL), NULL);
    h->updates++;
}

/* A day has a quiet night, a busy day and two bursts; every host has its own hours. */
static void change(struct host *h, uint64_t host, unsigned step, enum rule rule)
{
    unsigned hour = (step / 60 + (unsigned)host * 5) % 24;
    unsigned adds = hour < 6 ? 1 : hour < 18 ? 6 : 3, removals = hour < 6 ? 2 : hour < 18 ? 5 : 3;
    if (hour == 9 && step % 60 < 10)
        adds = 60;
    if (hour == 20 && step % 60 < 10)
        removals = 50;
    for (unsigned i = 0; i < adds; i++, h->next++) {
        bench_must(tamis_filter_add(h->filter, &h->next, sizeof h->next, NULL), NULL);
        publish_if_due(h, rule);
    }
    for (unsigned i = 0; i < removals && h->next - h->first > START_KEYS / 2; i++, h->first++) {
        bench_must(tamis_filter_remove(h->filter, &h->first, sizeof h->first, NULL), NULL);
        publish_if_due(h, rule);
    }
}

static struct outcome simulate(unsigned hosts, enum rule rule, double value)
{
    struct host *h = calloc(hosts, sizeof *h);
    struct outcome out = {0};
    uint64_t rng = 1;
    double looks = (double)hosts * STEPS * LOOKS;
    for (unsigned i = 0; h && i < hosts; i++)
        host_start(&h[i], i, rule, value);
    for (unsigned step = 0; step < STEPS; step++)
        for (unsigned i = 0; i < hosts; i++) {
            change(&h[i], i, step, rule);
            if (rule == BY_TIMER && step % (unsigned)value == (unsigned)value - 1) {
                bench_must(tamis_origin_snapshot(h[i].origin, to_copy, &h[i], NULL), NULL);
                h[i].updates++;
            }
            for (unsigned j = 0; j < LOOKS; j++) {
                uint64_t member = h[i].first + bench_mix(++rng) % (h[i].next - h[i].first);
                uint64_t stranger = bench_mix(++rng) | UINT64_C(1) << 63;
                bool copy = tamis_follower_has(h[i].copy, &stranger, sizeof stranger);
                bool own = tamis_filter_has(h[i].filter, &stranger, sizeof stranger);
                out.miss += !tamis_follower_has(h[i].copy, &member, sizeof member) / looks;
                out.rate += (copy + (own && !copy)) / looks;
                out.weighted += (copy + W_DISAGREE * (own && !copy)) / looks;
            }
        }
    for (unsigned i = 0; h && i < hosts; i++) {
        out.updates += (double)h[i].updates / hosts;
        out.bytes += (double)h[i].bytes / hosts;
        host_end(&h[i]);
    }
    free(h);
    return out;
}

static void print_row(unsigned hosts, const char *rule, const struct outcome *o)
{
    printf("%6u  %-28s %8.3f %8.3f %10.3f %8.0f %10.1f\n", hosts, rule, 100 * o->miss,
           100 * o->rate, 100 * o->weighted, o->updates, o->bytes / 1024);
    fflush(stdout);
}

/* The value at which another rule misses as many members, found with 5 hosts on a scale of ratios. */
static double equal_miss(enum rule rule, double low, double high, double miss)
{
    for (int i = 0; i < 9; i++) {
        double middle = low;
        for (double step = high / low / 2; step > 0.0001; step /= 2) /* the geometric mean */
            if ((middle + step * low) * (middle + step * low) < low * high)
                middle += step * low;
        if (rule == BY_TIMER)
            middle = (double)(unsigned)(middle + 0.5);
        if (middle <= low || middle >= high)
            break;
        if (simulate(5, rule, middle).miss > miss)
            high = middle;
        else
            low = middle;
    }
    return low;
}

static void contract(void)
{
    static const double misses[] = {0.005, 0.01, 0.02, 0.05}, rates[] = {0.02, 0.03, 0.05};
    double dirty[4], minutes[4];
    char text[64];
    for (int i = 0; i < 4; i++) {
        double miss = simulate(5, BY_MISS, misses[i]).miss;
        dirty[i] = equal_miss(BY_DIRTY, 1e-4, 0.2, miss);
        minutes[i] = equal_miss(BY_TIMER, 1, 240, miss);
    }
    printf(
        "\na day of hosts of about 4,000 keys, for each host; updates are deltas unless they are "
        "full copies.\nweighted: false positives and %.0f times the disagreements\n\n",
        W_DISAGREE);
    printf("%6s  %-28s %8s %8s %10s %8s %10s\n", "hosts", "rule", "miss %", "false %", "weighted %",
           "updates", "KiB sent");
    for (unsigned hosts = 5; hosts <= 50; hosts *= 10) {
        for (int i = 0; i < 4; i++) {
            struct outcome o = simulate(hosts, BY_MISS, misses[i]);
            snprintf(text, sizeof text, "member miss <= %g %%", 100 * misses[i]);
            print_row(hosts, text, &o);
            o = simulate(hosts, BY_DIRTY, dirty[i]);
            snprintf(text, sizeof text, "  dirty bits > %.3f %%", 100 * dirty[i]);
            print_row(hosts, text, &o);
            o = simulate(hosts, BY_TIMER, minutes[i]);
            snprintf(text, sizeof text, "  full copy, %.0f minutes", minutes[i]);
            print_row(hosts, text, &o);
        }
        for (int i = 0; i < 3; i++) {
            struct outcome o = simulate(hosts, BY_RATE, rates[i]);
            snprintf(text, sizeof text, "weighted rate <= %g %%", 100 * rates[i]);
            print_row(hosts, text, &o);
        }
        struct outcome o = simulate(hosts, BY_TIMER, 60);
        print_row(hosts, "full copy, hourly", &o);
    }
}

int main(void)
{
    bench_pin();
    printf(
        "publishing at 1 %% member miss, nanoseconds per add\n\n%10s %9s %12s %12s %12s %9s %12s\n",
        "keys", "kind", "alone", "published", "us more", "deltas", "bytes/add");
    for (uint64_t n = 6400; n <= 6400000; n *= 10) {
        publishing(n, false);
        publishing(n, true);
    }
    one_delta();
    printf("\nlocate over 1,000 replicas, nanoseconds per key\n\n%10s %14s %14s %11s %16s %8s\n",
           "keys each", "locate", "one filter", "ratio", "owners per key", "doubts");
    locating(1024);
    locating(10240);
    taking();
    contract();
    return 0;
}
