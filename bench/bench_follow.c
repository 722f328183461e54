/*
 * Following many: 10,000 owners of 1,000 keys publish to a Redis server of their own, each with a heartbeat every
 * ten seconds and 100 changes a second among them. How long tamis follow takes until all copies are current, what it
 * takes of a core from then on, and how long a change takes to be found.
 *
 *     bench_follow [OWNERS [KEYS [SECONDS]]]      $TAMIS is the program, build/release/tamis if it is not set
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "followed.h"
#include "tamis/replica.h"

enum { BEAT_S = 10, CHANGES = 100 /* a second */ };

static const uint8_t family[TAMIS_KEY_LEN] = "tamis benchmark";

struct owner {
    char name[16];
    tamis_filter *filter;
    tamis_origin *origin;
};

static void name_of(struct owner *o, unsigned number)
{
    snprintf(o->name, sizeof o->name, "host%u", number);
}

static void send_kept(struct carrier *c, const struct owner *o, struct kept *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (!carrier_send(c, o->name, m->part[i].data, m->part[i].len))
            bench_stop(c->error);
    kept_free(m);
}

static void beat(struct carrier *c, struct owner *o)
{
    struct kept m = {.n = 0};
    if (tamis_origin_beat(o->origin, kept_add, &m) != TAMIS_OK)
        bench_stop("no heartbeat");
    send_kept(c, o, &m);
}

/* Its snapshot and a heartbeat. */
static void begin(struct carrier *c, struct owner *o, unsigned number, uint64_t *keys, size_t n)
{
    struct kept m = {.n = 0};
    tamis_options planned = {.growth = TAMIS_DYNAMIC,
                             .layout = TAMIS_SPREAD,
                             .capacity = n + n / 4 + 100,
                             .key = family};
    name_of(o, number);
    tamis_origin_options how = {.owner = o->name,
                                .beat = BEAT_S * UINT64_C(1000000000),
                                .message_bytes = 1 << 26,
                                .epoch = 1};
    if (tamis_filter_new(&o->filter, &planned, NULL) != TAMIS_OK)
        bench_stop("no filter");
    bench_keys(keys, n, number + 1);
    for (size_t i = 0; i < n; i++)
        tamis_filter_add(o->filter, &keys[i], 8, NULL);
    if (tamis_origin_new(&o->origin, o->filter, &how, NULL) != TAMIS_OK ||
        tamis_origin_publish(o->origin, kept_add, &m, NULL) != TAMIS_OK)
        bench_stop("no origin");
    if (!carrier_replace(c, o->name, 1, m.part, m.n))
        bench_stop(c->error);
    kept_free(&m);
    beat(c, o);
}

static void change(struct carrier *c, struct owner *o, unsigned number)
{
    struct kept m = {.n = 0};
    char key[24];
    int len = snprintf(key, sizeof key, "change%u", number);
    if (tamis_filter_add(o->filter, key, (size_t)len, NULL) != TAMIS_OK ||
        tamis_origin_publish(o->origin, kept_add, &m, NULL) != TAMIS_OK)
        bench_stop("no change");
    send_kept(c, o, &m);
}

/* Seconds of processor time of a process so far. */
static double used_by(pid_t pid)
{
    char path[64], text[1024] = "";
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    const char *end = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    if (!end ||
        sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        bench_stop("no such process");
    fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static pid_t start(const char *const words[])
{
    pid_t child = fork();
    if (child == 0) {
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return child;
}

/* Until an owner is found for the key; how many seconds. */
static double wait_for(struct ask *ask, unsigned number)
{
    char path[64];
    double begun = bench_now();
    snprintf(path, sizeof path, "/locate?key=change%u", number);
    do {
        if (!ask_for(ask, path, "application/json", NULL, 0))
            bench_stop(ask->why);
    } while (ask_number(ask, "Tamis-Hit") == 0 && bench_now() - begun < 60);
    return bench_now() - begun;
}

/* Until the folder has all of them. */
static void wait_saved(unsigned owners)
{
    char line[1024];
    for (unsigned n = 0; n < owners; usleep(100000)) {
        FILE *file = fopen("copies/status", "r");
        n = 0;
        while (file && fgets(line, sizeof line, file))
            n += strncmp(line, "owner ", 6) == 0;
        if (file)
            fclose(file);
    }
}

static void measure(struct carrier *c, struct ask *ask, struct owner *owner, unsigned owners,
                    unsigned seconds, pid_t follower)
{
    double begun = bench_now(), before = used_by(follower), lag = 0;
    unsigned changes = 0, beats = 0;
    for (double now = 0; now < seconds; now = bench_now() - begun) {
        for (; changes < now * CHANGES; changes++)
            change(c, &owner[bench_mix(changes) % owners], changes);
        for (; beats < now * owners / BEAT_S; beats++)
            beat(c, &owner[beats % owners]);
        double took = changes ? wait_for(ask, changes - 1) : 0;
        lag = took > lag ? took : lag;
        usleep(100000);
    }
    double took = bench_now() - begun, share = (used_by(follower) - before) / took;
    bench_current(ask, "unix:serve.sock", owners);
    printf(
        "%u changes and %u heartbeats in %.0f s: %.1f %% of a core, a change found after %.0f ms at most\n",
        changes, beats, took, 100 * share, 1e3 * lag);
    bench_record((struct bench_row){.filter = "follow",
                                    .what = "processor time for a message",
                                    .n = owners,
                                    .ns = 1e9 * share * took / (changes + beats)});
    bench_record((struct bench_row){
        .filter = "follow", .what = "change to answer, most", .n = owners, .ns = 1e9 * lag});
}

int main(int argc, char **argv)
{
    unsigned owners = argc > 1 ? (unsigned)atoi(argv[1]) : 10000;
    size_t n = argc > 2 ? (size_t)atol(argv[2]) : 1000;
    unsigned seconds = argc > 3 ? (unsigned)atoi(argv[3]) : 30;
    char folder[] = "/tmp/bench-follow-XXXXXX", error[256], program[4096], url[128], remove[64];
    uint64_t *keys = malloc(n * sizeof *keys);
    struct owner *owner = calloc(owners, sizeof *owner);
    struct ask ask = {.fd = -1};
    const char *given = getenv("TAMIS");
    if (!keys || !owner || !realpath(given ? given : "build/release/tamis", program) ||
        !mkdtemp(folder) || chdir(folder) != 0)
        bench_stop("no program, or no room in /tmp");
    snprintf(url, sizeof url, "redis+unix://%s/redis.sock?name=hosts", folder);
    pid_t server =
        start((const char *[]){"redis-server", "--port", "0", "--unixsocket", "redis.sock",
                               "--save", "", "--logfile", "redis.log", NULL});
    struct carrier *c = carrier_open(url, error);
    struct carrier_state state;
    for (int i = 0; c && i < 200 && !carrier_state(c, "none", &state); i++)
        usleep(50000);
    double begun = bench_now();
    for (unsigned i = 0; i < owners; i++)
        begin(c, &owner[i], i, keys, n);
    printf("%u owners of %zu keys published in %.1f s\n", owners, n, bench_now() - begun);
    begun = bench_now();
    pid_t follower = start((const char *[]){program, "follow", url, "-o", "copies", "--serve",
                                            "unix:serve.sock", NULL});
    while (access("serve.sock", F_OK) != 0 && bench_now() - begun < 60)
        usleep(10000);
    for (unsigned i = 0; i < owners; i++) /* the snapshots are older than their heartbeats may be */
        beat(c, &owner[i]);
    bench_current(&ask, "unix:serve.sock", owners);
    double current = bench_now() - begun;
    printf("all current after %.1f s\n", current);
    bench_record((struct bench_row){
        .filter = "follow", .what = "start to all current", .n = owners, .ns = 1e9 * current});
    wait_saved(owners);
    measure(c, &ask, owner, owners, seconds, follower);
    kill(follower, SIGTERM);
    kill(server, SIGTERM);
    waitpid(follower, NULL, 0);
    waitpid(server, NULL, 0);
    ask_close(&ask);
    carrier_close(c);
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    return system(remove) ? 2 : 0; /* the system frees the origins */
}
