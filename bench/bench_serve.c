/*
 * A follower that is asked: 1,000 owners of 10^5 keys each, published to a folder, followed and served by
 * tamis follow at a unix socket, and queried by one client over one connection. Latency of one key, and keys
 * per second in batches of 100.
 *
 *     bench_serve [OWNERS [KEYS]]      $TAMIS is the program, build/release/tamis if it is not set
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "followed.h"
#include "tamis/replica.h"

enum { QUESTIONS = 20000, BATCH = 100, BATCHES = 2000 };

static const uint8_t family[TAMIS_KEY_LEN] = "tamis benchmark";

/* Its snapshot and a heartbeat. */
static void publish(struct carrier *c, unsigned owner, size_t n, uint64_t *keys)
{
    char name[16];
    tamis_filter *filter;
    tamis_origin *origin;
    struct kept m = {.n = 0};
    tamis_options one = {
        .growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .capacity = n, .key = family};
    snprintf(name, sizeof name, "host%u", owner);
    tamis_origin_options o = {
        .owner = name, .beat = UINT64_C(3600000000000), .message_bytes = 1 << 26, .epoch = 1};
    bench_keys(keys, n, owner + 1);
    if (tamis_filter_new(&filter, &one, NULL) != TAMIS_OK)
        bench_stop("no filter");
    for (size_t i = 0; i < n; i++)
        tamis_filter_add(filter, &keys[i], 8, NULL);
    if (tamis_origin_new(&origin, filter, &o, NULL) != TAMIS_OK ||
        tamis_origin_publish(origin, kept_add, &m, NULL) != TAMIS_OK ||
        !carrier_replace(c, name, 1, m.part, m.n))
        bench_stop(c->error);
    kept_free(&m);
    if (tamis_origin_beat(origin, kept_add, &m) != TAMIS_OK ||
        !carrier_send(c, name, m.part[0].data, m.part[0].len))
        bench_stop(c->error);
    kept_free(&m);
    tamis_origin_free(origin);
    tamis_filter_free(filter);
}

/* Keys are 8 bytes, as hexadecimal escapes of an address. */
static void measure_single(struct ask *ask, unsigned owners, size_t n, uint64_t *keys)
{
    static double times[QUESTIONS];
    unsigned hit = 0;
    for (unsigned i = 0; i < QUESTIONS; i++) {
        char path[64] = "/locate?key=";
        unsigned owner = (unsigned)(bench_mix(i) % owners);
        if (i % 100 == 0)
            bench_keys(keys, n, owner + 1);
        for (unsigned j = 0; j < 8; j++)
            sprintf(path + 12 + 3 * j, "%%%02x", ((const uint8_t *)&keys[i % n])[j]);
        double start = bench_now();
        if (!ask_for(ask, path, "application/json", NULL, 0))
            bench_stop(ask->why);
        times[i] = bench_now() - start;
        hit += ask_number(ask, "Tamis-Hit") != 0;
    }
    bench_sort(times, QUESTIONS);
    printf("one key a request: p50 %.0f us, p99 %.0f us, p99.9 %.0f us (%u of %d found)\n",
           1e6 * times[QUESTIONS / 2], 1e6 * times[QUESTIONS * 99 / 100],
           1e6 * times[QUESTIONS / 1000 * 999], hit, QUESTIONS);
    bench_record((struct bench_row){.filter = "follow --serve",
                                    .what = "p99, one key",
                                    .n = owners,
                                    .ns = 1e9 * times[QUESTIONS * 99 / 100]});
}

static void measure_batches(struct ask *ask, unsigned owners)
{
    struct bytes body = {0};
    double start = bench_now();
    for (unsigned i = 0; i < BATCHES; i++) {
        body.len = 0;
        bytes_put(&body, "[", 1);
        for (unsigned j = 0; j < BATCH; j++) {
            char key[40];
            int len = snprintf(key, sizeof key, "%s\"user-%llu\"", j ? "," : "",
                               (unsigned long long)bench_mix(i * BATCH + j));
            bytes_put(&body, key, (size_t)len);
        }
        bytes_put(&body, "]", 1);
        if (!ask_for(ask, "/locate", "application/json", &body, ']'))
            bench_stop(ask->why);
    }
    double took = bench_now() - start;
    printf("batches of %d: %.0f keys per second\n", BATCH, BATCH * BATCHES / took);
    bench_record((struct bench_row){.filter = "follow --serve",
                                    .what = "a key, batches of 100",
                                    .n = owners,
                                    .ns = 1e9 * took / (BATCH * BATCHES)});
    free(body.data);
}

int main(int argc, char **argv)
{
    unsigned owners = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    size_t n = argc > 2 ? (size_t)atol(argv[2]) : 100000;
    char folder[] = "/tmp/bench-serve-XXXXXX", error[256], program[4096];
    uint64_t *keys = malloc(n * sizeof *keys);
    struct ask ask = {.fd = -1};
    const char *given = getenv("TAMIS");
    if (!keys || !realpath(given ? given : "build/release/tamis", program) || !mkdtemp(folder) ||
        chdir(folder) != 0)
        bench_stop("no program, or no room in /tmp");
    struct carrier *c = carrier_open("file:exchange", error);
    if (!c)
        bench_stop(error);
    for (unsigned i = 0; i < owners; i++)
        publish(c, i, n, keys);
    double start = bench_now();
    pid_t child = fork();
    if (child == 0) {
        execl(program, "tamis", "follow", "file:exchange", "-o", "copies", "--serve",
              "unix:serve.sock", "--max-lease", "none", (char *)NULL);
        _exit(127);
    }
    bench_current(&ask, "unix:serve.sock", owners);
    printf("%u owners of %zu keys, current after %.1f s\n", owners, n, bench_now() - start);
    measure_single(&ask, owners, n, keys);
    measure_batches(&ask, owners);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    ask_close(&ask);
    carrier_close(c);
    free(keys);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    return system(remove) ? 2 : 0;
}
