/*
 * A store publishes the keys it has; others hold a copy and know them without asking: a gateway that
 * follows many stores, and a cache that follows only this one. Here a function call is the network.
 */
#include <stdio.h>
#include <string.h>

#include <tamis/replica.h>

enum { KEYS = 100000, SOME = 1000 };

struct hosts {
    tamis_directory *gateway;
    tamis_follower *cache;
};

/* A tamis_write: each message goes to both. */
static int carry(void *context, const void *message, size_t len)
{
    struct hosts *to = (struct hosts *)context;
    tamis_follower_contact(to->cache, 0); /* the network was reached just now */
    return tamis_directory_take(to->gateway, NULL, message, len, 0, NULL, NULL) != TAMIS_OK ||
           tamis_follower_take(to->cache, message, len, 0, NULL, NULL) != TAMIS_OK;
}

/* The store works as before, and publishes as often as its target requires. */
static int add_keys(tamis_filter *stock, tamis_origin *store, struct hosts *to)
{
    for (int i = 0; i < KEYS; i++) {
        if (tamis_filter_add(stock, &i, sizeof i, NULL) != TAMIS_OK)
            return 1;
        if (tamis_origin_due(store) != TAMIS_DUE_NOT &&
            tamis_origin_publish(store, carry, to, NULL) != TAMIS_OK)
            return 1;
    }
    return 0;
}

/* A tamis_write: what a copy writes may be kept anywhere. */
static int count(void *context, const void *data, size_t len)
{
    size_t *total = (size_t *)context;
    (void)data;
    *total += len;
    return 0;
}

static int located(const tamis_directory *gateway)
{
    int known = 0;
    for (int i = 0; i < KEYS; i++) {
        tamis_place place;
        known += tamis_directory_locate(gateway, &i, sizeof i, &place, 1) == 1 && !place.doubt;
    }
    return known;
}

/* The cache is restarted: it saves its copy and goes on from there. */
static int known_after_restart(const tamis_follower *cache)
{
    const char *path = "example-copy.tamis";
    tamis_follower *again = NULL;
    tamis_key keys[SOME];
    int of_keys[SOME], known = 0;
    uint8_t found[SOME];
    for (int i = 0; i < SOME; i++) {
        of_keys[i] = i;
        keys[i].data = &of_keys[i];
        keys[i].len = sizeof of_keys[i];
    }
    memset(found, 0, sizeof found);
    if (tamis_follower_save(cache, path, NULL) == TAMIS_OK &&
        tamis_follower_new(&again, NULL, NULL) == TAMIS_OK &&
        tamis_follower_load(again, path, 0, TAMIS_DELAY_UNKNOWN, NULL) == TAMIS_OK)
        tamis_follower_has_many(again, keys, SOME, found);
    for (int i = 0; i < SOME; i++)
        known += found[i];
    remove(path);
    tamis_follower_free(again);
    return known;
}

int main(void)
{
    tamis_filter *stock;
    tamis_origin *store;
    struct hosts to;
    tamis_origin_options options;
    tamis_origin_facts facts;
    memset(&options, 0, sizeof options);
    options.owner = "store-1";
    options.targets.member_miss = 0.01; /* copies may deny 1 % of the members, no more */

    if (tamis_filter_new(&stock, NULL, NULL) != TAMIS_OK ||
        tamis_origin_new(&store, stock, &options, NULL) != TAMIS_OK ||
        tamis_directory_new(&to.gateway, NULL, NULL) != TAMIS_OK ||
        tamis_follower_new(&to.cache, NULL, NULL) != TAMIS_OK || add_keys(stock, store, &to))
        return 1;

    int known = located(to.gateway), cached = known_after_restart(to.cache);
    int last = KEYS - 1;
    tamis_estimate estimate;
    tamis_origin_estimate(store,
                          &estimate); /* what the copies are like now, since the last message */
    printf("the newest key is %s; copies deny %.2f %% of the members\n",
           tamis_follower_has(to.cache, &last, sizeof last) ? "known" : "not published yet",
           100 * estimate.member_miss);
    size_t whole = 0;
    if (tamis_follower_encode(to.cache, count, &whole) != TAMIS_OK)
        return 1;
    printf("a new cache would take %u bytes to begin with\n", (unsigned)whole);
    tamis_origin_info(store, &facts);
    printf("%d of %d keys are located at %s\n", known, KEYS, tamis_directory_name(to.gateway, 0));
    printf("%llu versions, %.1f bytes per key\n", (unsigned long long)facts.version,
           (double)facts.bytes / KEYS);
    printf("the cache knows %d of the first %d after a restart\n", cached, SOME);

    tamis_follower_free(to.cache);
    tamis_directory_free(to.gateway);
    tamis_origin_free(store);
    tamis_filter_free(stock);
    return known >= 98900 && cached == SOME ? 0 : 1;
}
