/* A directory of replicas agrees with its followers asked one by one, through whatever happens to
 * them; owners in doubt are told apart. Readers beside the thread that takes are in
 * test_threads_replica.c.
 */
#include "harness.h"
#include "histories.h"

#include "fault.h"

enum { HOSTS = 90, STRANGERS = 300 };

struct host {
    char name[16];
    tamis_filter *filter;
    tamis_origin *origin;
    uint64_t first, n; /* its keys are first .. first + n - 1 */
};

static uint64_t now;

static uint64_t test_clock(void *context)
{
    (void)context;
    return now;
}

static int to_replicas(void *replicas, const void *data, size_t len)
{
    tamis_taken taken;
    tamis_reason reason = {0};
    tamis_error e = tamis_replicas_take(replicas, data, len, 0, &taken, &reason);
    return CHECK_MSG(e == TAMIS_OK, "%s", reason.text) ? 0 : -1;
}

static int to_nobody(void *context, const void *data, size_t len)
{
    (void)context, (void)data, (void)len;
    return 0;
}

static void host_start(struct host *h, unsigned i, uint64_t beat)
{
    static const uint8_t keys[2][TAMIS_KEY_LEN] = {"one family", "another one"};
    tamis_options options = {.capacity = 100 + 50 * (i % 3),
                             .growth = 1 + i % 4,
                             .deletable = i % 2,
                             .layout = i % 5 == 0 || i % 4 == 1 ? TAMIS_SPREAD : TAMIS_BLOCKED,
                             .overfill = true,
                             .key = keys[i % 7 == 6]};
    snprintf(h->name, sizeof h->name, "host-%u", i);
    tamis_origin_options o = {.owner = h->name, .beat = beat, .epoch = ++now, .clock = test_clock};
    CHECK(tamis_filter_new(&h->filter, &options, NULL) == TAMIS_OK);
    CHECK(tamis_origin_new(&h->origin, h->filter, &o, NULL) == TAMIS_OK);
    h->first = (uint64_t)i << 32;
    h->n = 0;
}

static void host_add(struct host *h, uint64_t n)
{
    for (; n; n--, h->n++) {
        uint64_t key = h->first + h->n;
        CHECK(tamis_filter_add(h->filter, &key, sizeof key, NULL) == TAMIS_OK);
    }
}

/* Every owner's own answer against the directory's. */
static void compare(const tamis_replicas *r, const void *key, size_t len)
{
    tamis_place places[HOSTS];
    size_t n = tamis_replicas_locate(r, key, len, places, HOSTS), at = 0;
    CHECK(n <= HOSTS);
    for (uint32_t i = 0; i < tamis_replicas_owners(r); i++) {
        const tamis_follower *f = tamis_replicas_follower(r, i);
        if (!tamis_replicas_name(r, i))
            continue;
        bool doubt = tamis_follower_freshness(f) != TAMIS_CURRENT;
        if (!doubt && !tamis_follower_has(f, key, len))
            continue;
        if (!CHECK(at < n))
            return;
        CHECK_MSG(places[at].owner == i && places[at].doubt == doubt, "%s",
                  tamis_replicas_name(r, i));
        at++;
    }
    CHECK_MSG(at == n, "%zu of %zu", at, n);
}

static void compare_all(const tamis_replicas *r, const struct host *hosts, uint64_t *rng)
{
    for (unsigned i = 0; i < HOSTS; i++)
        for (unsigned j = 0; hosts[i].n && j < 3; j++) {
            uint64_t key = hosts[i].first + rng_next(rng) % hosts[i].n;
            compare(r, &key, sizeof key);
        }
    for (unsigned i = 0; i < STRANGERS; i++) {
        uint64_t key = rng_next(rng);
        compare(r, &key, sizeof key);
    }
}

TEST(a_directory_is_its_followers)
{
    static struct host hosts[HOSTS];
    uint64_t rng = harness_seed();
    tamis_replicas *r;
    tamis_follower_options options = {.clock = test_clock};
    now = 1000;
    CHECK(tamis_replicas_new(&r, &options) == TAMIS_OK);
    for (unsigned i = 0; i < HOSTS; i++) {
        host_start(&hosts[i], i, 100 + i);
        host_add(&hosts[i], 80 + rng_next(&rng) % 200);
        CHECK(tamis_replicas_expect(r, hosts[i].name) == TAMIS_OK);
    }
    compare_all(r, hosts, &rng);
    for (unsigned step = 0; step < (harness_long() ? 3000u : 300u); step++) {
        struct host *h = &hosts[rng_next(&rng) % HOSTS];
        unsigned pick = (unsigned)(rng_next(&rng) % 8);
        now += rng_next(&rng) % 8;
        if (pick < 3)
            host_add(h, 1 + rng_next(&rng) % 30);
        if (pick < 5)
            CHECK(tamis_origin_publish(h->origin, to_replicas, r, NULL) == TAMIS_OK);
        else if (pick == 5)
            tamis_origin_beat(h->origin, to_replicas, r);
        else if (pick == 6 && step % 4 == 0) {
            tamis_error e = tamis_replicas_forget(r, h->name);
            CHECK(e == TAMIS_OK || e == TAMIS_EARG);
            CHECK(tamis_replicas_forget(r, h->name) == TAMIS_EARG);
            if (step % 8 == 0)
                CHECK(tamis_replicas_expect(r, h->name) == TAMIS_OK);
            tamis_origin_free(h->origin); /* and it comes back as another */
            tamis_filter_free(h->filter);
            host_start(h, (unsigned)(h - hosts), 100);
        }
        if (step % 20 == 19)
            compare_all(r, hosts, &rng);
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        tamis_origin_free(hosts[i].origin);
        tamis_filter_free(hosts[i].filter);
    }
    tamis_replicas_free(r);
}

TEST(owners_in_doubt_are_told_apart)
{
    static struct host h[3];
    tamis_replicas *r;
    tamis_follower_options options = {.clock = test_clock};
    tamis_place places[4];
    uint64_t key = 5, stranger = 77777;
    now = 1000;
    CHECK(tamis_replicas_new(&r, &options) == TAMIS_OK);
    CHECK(tamis_replicas_locate(r, &key, sizeof key, places, 4) == 0);
    for (unsigned i = 0; i < 3; i++) {
        host_start(&h[i], 5, 100);
        snprintf(h[i].name, sizeof h[i].name, "host-%u", i);
        tamis_origin_free(h[i].origin);
        tamis_origin_options o = {
            .owner = h[i].name, .beat = i == 1 ? 1000 : 100, .epoch = 1, .clock = test_clock};
        CHECK(tamis_origin_new(&h[i].origin, h[i].filter, &o, NULL) == TAMIS_OK);
        CHECK(tamis_replicas_expect(r, h[i].name) == TAMIS_OK);
    }
    h[1].first = 0;
    host_add(&h[1], 20);
    CHECK(tamis_replicas_locate(r, &key, sizeof key, places, 4) == 3);
    CHECK(places[0].doubt && places[1].doubt && places[2].doubt);
    for (unsigned i = 0; i < 3; i++)
        CHECK(tamis_origin_publish(h[i].origin, to_replicas, r, NULL) == TAMIS_OK);
    CHECK(tamis_replicas_locate(r, &key, sizeof key, places, 4) == 1);
    CHECK(places[0].owner == 1 && !places[0].doubt);
    CHECK(tamis_replicas_locate(r, &stranger, sizeof stranger, places, 4) == 0);
    now += 300; /* the leases of 0 and 2 run out */
    CHECK(tamis_replicas_locate(r, &key, sizeof key, places, 4) == 3);
    CHECK(places[0].doubt && !places[1].doubt && places[2].doubt);
    CHECK(tamis_origin_beat(h[0].origin, to_replicas, r) == TAMIS_OK);
    CHECK(tamis_replicas_locate(r, &stranger, sizeof stranger, places, 4) == 1);
    CHECK(places[0].owner == 2 && places[0].doubt);
    /* A version that did not come: being rebuilt. */
    host_add(&h[0], 10);
    CHECK(tamis_origin_publish(h[0].origin, to_nobody, NULL, NULL) == TAMIS_OK);
    static struct bytes beat;
    CHECK(tamis_origin_beat(h[0].origin, bytes_write, &beat) == TAMIS_OK);
    CHECK(tamis_replicas_take(r, beat.data, beat.len, 0, NULL, NULL) == TAMIS_EBASE);
    CHECK(tamis_replicas_locate(r, &stranger, sizeof stranger, places, 4) == 2);
    CHECK(tamis_origin_snapshot(h[0].origin, to_replicas, r, NULL) == TAMIS_OK);
    CHECK(tamis_replicas_locate(r, &stranger, sizeof stranger, places, 4) == 1);
    bytes_free(&beat);
    for (unsigned i = 0; i < 3; i++) {
        tamis_origin_free(h[i].origin);
        tamis_filter_free(h[i].filter);
    }
    tamis_replicas_free(r);
}

TEST(more_owners_than_a_word_of_words)
{
    tamis_replicas *r;
    enum { MANY = 4200 };
    static tamis_place places[MANY];
    static struct bytes message;
    tamis_filter *f;
    tamis_options plain = {
        .growth = TAMIS_FIXED, .capacity = 100, .key = (const uint8_t *)"0123456789abcdef"};
    uint64_t key = 3;
    CHECK(tamis_replicas_new(&r, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&f, &plain, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        if (i % 100 == 99 || i == MANY - 2) {
            tamis_origin *origin;
            tamis_origin_options o = {.owner = name};
            CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
            CHECK(tamis_origin_publish(origin, to_replicas, r, NULL) == TAMIS_OK);
            tamis_origin_free(origin);
        } else {
            CHECK(tamis_replicas_expect(r, name) == TAMIS_OK);
        }
    }
    size_t n = tamis_replicas_locate(r, &key, sizeof key, places, MANY);
    CHECK(n == MANY);
    for (size_t i = 0; i < n; i++)
        CHECK(places[i].owner == i && places[i].doubt == !(i % 100 == 99 || i == MANY - 2));
    bytes_free(&message);
    tamis_filter_free(f);
    tamis_replicas_free(r);
}

TEST(without_memory_an_owner_is_in_doubt)
{
    struct fault fault;
    static struct bytes message, beat;
    tamis_replicas *r;
    struct host h;
    tamis_place places[2];
    uint64_t stranger = 99;
    fault_init(&fault);
    now = 1000;
    host_start(&h, 0, 100);
    host_add(&h, 50);
    CHECK(tamis_origin_publish(h.origin, bytes_write, &message, NULL) == TAMIS_OK);
    CHECK(tamis_origin_beat(h.origin, bytes_write, &beat) == TAMIS_OK);
    tamis_follower_options options = {.clock = test_clock, .allocator = &fault.allocator};
    for (uint64_t n = 1;; n++) {
        CHECK(tamis_replicas_new(&r, &options) == TAMIS_OK);
        CHECK(tamis_replicas_expect(r, h.name) == TAMIS_OK);
        fault_arm(&fault, n, false);
        tamis_error e = tamis_replicas_take(r, message.data, message.len, 0, NULL, NULL);
        fault_arm(&fault, 0, false);
        CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
        bool done = e == TAMIS_OK;
        size_t found = tamis_replicas_locate(r, &stranger, sizeof stranger, places, 2);
        CHECK(e == TAMIS_OK ? found == 0 : found == 1 && places[0].doubt);
        /* When there is memory again, the same message or a heartbeat puts it right. */
        const struct bytes *next = n % 2 ? &message : &beat;
        e = tamis_replicas_take(r, next->data, next->len, 0, NULL, NULL);
        if (e == TAMIS_EBASE) /* there was no copy to go on with */
            e = tamis_replicas_take(r, message.data, message.len, 0, NULL, NULL);
        CHECK(e == TAMIS_OK);
        CHECK(tamis_replicas_locate(r, &stranger, sizeof stranger, places, 2) == 0);
        CHECK(tamis_replicas_locate(r, &h.first, sizeof h.first, places, 2) == 1);
        CHECK(!places[0].doubt);
        tamis_replicas_free(r);
        if (!CHECK(n < 200) || done)
            break;
    }
    CHECK(fault_clean(&fault));
    tamis_origin_free(h.origin);
    tamis_filter_free(h.filter);
    bytes_free(&message);
    bytes_free(&beat);
}

HARNESS_MAIN
