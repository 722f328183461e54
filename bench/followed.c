/* Messages that are kept, and waiting for a follower. See followed.h. */
#define _GNU_SOURCE
#include "followed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bench_stop(const char *why)
{
    fprintf(stderr, "bench: %s\n", why);
    exit(2);
}

int kept_add(void *context, const void *data, size_t len)
{
    struct kept *m = context;
    void *copy = malloc(len);
    if (!copy || m->n == 64)
        return -1;
    memcpy(copy, data, len);
    m->part[m->n++] = (struct carrier_part){copy, len};
    return 0;
}

void kept_free(struct kept *m)
{
    while (m->n > 0)
        free((void *)(uintptr_t)m->part[--m->n].data);
}

void bench_current(struct ask *ask, const char *address, unsigned owners)
{
    char current[32];
    struct serve_address at;
    snprintf(current, sizeof current, "\"current\": %u,", owners);
    if (!serve_address_read(&at, address))
        bench_stop("address");
    while (!ask_connect(ask, &at))
        usleep(20000);
    for (;;) {
        if (ask->fd < 0 && !ask_connect(ask, &at))
            bench_stop(ask->why);
        bool good = ask_for(ask, "/healthz", "*/*", NULL, 0) || ask->status == 503;
        if (good && memmem(ask->body.data, ask->body.len, current, strlen(current)))
            return;
        usleep(50000);
    }
}
