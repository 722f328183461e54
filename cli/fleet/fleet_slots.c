/* The slots of a host in the carrier: fetched and retired. See fleet.h. */
#include "fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void collect(void *context, const char *owner, const void *data, size_t len, uint64_t age)
{
    (void)owner;
    (void)age;
    bytes_put(context, data, len);
}

int fleet_fetch(struct carrier *c, const char *owner, struct bytes *out)
{
    char position[CARRIER_POSITION] = "";
    out->len = 0;
    int there = carrier_fetch(c, owner, position, collect, out);
    if (!out->failed)
        return there;
    carrier_fail(c, "out of memory");
    return -1;
}

struct leftovers {
    const struct manifest *m;
    char (*name)[HOST_MAX + 32];
    size_t n, room;
    bool failed;
};

/* A slot of this host that the manifest does not name. */
static void find_leftover(void *context, const char *owner, bool forgotten)
{
    struct leftovers *l = context;
    size_t len = strlen(l->m->host);
    if (forgotten || strncmp(owner, l->m->host, len) != 0 || owner[len] != '/' ||
        strlen(owner) >= HOST_MAX + 32)
        return;
    for (size_t i = 0; i < l->m->n; i++) {
        char named[HOST_MAX + 32];
        snprintf(named, sizeof named, "%s/%" PRIu32, l->m->host, l->m->piece[i].slot);
        if (!l->m->piece[i].gone && strcmp(named, owner) == 0)
            return;
    }
    l->failed |= !room_for(&l->name, l->n, &l->room, sizeof *l->name);
    if (!l->failed)
        memcpy(l->name[l->n++], owner, strlen(owner) + 1);
}

bool slots_forget(struct carrier *c, const struct manifest *m)
{
    struct leftovers l = {.m = m};
    bool good =
        carrier_owners(c, find_leftover, &l) && (!l.failed || carrier_fail(c, "out of memory"));
    for (size_t i = 0; good && i < l.n; i++)
        good = carrier_retire(c, l.name[i], true);
    free(l.name);
    return good;
}

bool fleet_forget(struct carrier *c, const char *owner)
{
    struct bytes bytes = {0};
    struct manifest m = {0};
    int there = host_valid(owner) ? fleet_fetch(c, owner, &bytes) : 0;
    bool good = there >= 0;
    if (there == 1 && manifest_read(&m, bytes.data, bytes.len, false, NULL)) {
        m.n = 0;
        good = slots_forget(c, &m);
    }
    manifest_free(&m);
    free(bytes.data);
    return good;
}
