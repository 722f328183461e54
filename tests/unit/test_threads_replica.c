/* Readers beside the thread that takes messages: what every version has is always found, while
 * versions come, go and are freed.
 */
#include "harness.h"

#include <pthread.h>

#include "carrier/carrier.h"
#include "tamis/replica.h"

enum { READERS = 3, ALWAYS = 200, BATCH_KEYS = 64, VERSIONS = 4096 };

struct shared {
    tamis_follower *follower;
    tamis_directory *directory;
    atomic_bool stop;
    atomic_ulong asked, missing, unlocated, torn;
    atomic_ulong items[VERSIONS]; /* of each version, told before it is published */
};

/* The version and the copy belong together, whoever asks and whenever. */
static bool whole(struct shared *s, const tamis_follower_facts *facts)
{
    return facts->version < VERSIONS && facts->items == atomic_load(&s->items[facts->version]) &&
           strcmp(facts->owner, "x") == 0;
}

struct kept {
    uint8_t data[1 << 16];
    size_t len;
};

static int keep(void *context, const void *data, size_t len)
{
    struct kept *k = context;
    if (len > sizeof k->data)
        return -1;
    memcpy(k->data, data, len);
    k->len = len;
    return 0;
}

/* So do those of a copy that is encoded meanwhile. */
static bool encodes_whole(struct shared *s)
{
    struct kept kept = {.len = 0};
    tamis_follower *again;
    tamis_follower_facts facts;
    if (tamis_follower_encode(s->follower, keep, &kept) != TAMIS_OK ||
        tamis_follower_new(&again, NULL, NULL) != TAMIS_OK)
        return false;
    bool good = tamis_follower_take(again, kept.data, kept.len, 0, NULL, NULL) == TAMIS_OK;
    tamis_follower_info(again, &facts);
    tamis_follower_free(again);
    return good && whole(s, &facts);
}

static int deliver(void *context, const void *data, size_t len)
{
    struct shared *s = context;
    return tamis_follower_take(s->follower, data, len, 0, NULL, NULL) != TAMIS_OK ||
           tamis_directory_take(s->directory, NULL, data, len, 0, NULL, NULL) != TAMIS_OK;
}

static void *read_all(void *context)
{
    struct shared *s = context;
    uint64_t rng = 1;
    while (!atomic_load(&s->stop)) {
        uint64_t key = rng_next(&rng) % ALWAYS;
        tamis_key keys[2] = {{&key, sizeof key}, {&key, sizeof key}};
        uint8_t found[2];
        tamis_place place;
        atomic_fetch_add(&s->missing, !tamis_follower_has(s->follower, &key, sizeof key));
        tamis_follower_has_many(s->follower, keys, 2, found);
        atomic_fetch_add(&s->missing, !found[0] || !found[1]);
        size_t n = tamis_directory_locate(s->directory, &key, sizeof key, &place, 1);
        atomic_fetch_add(&s->unlocated, n != 1 || place.doubt);
        tamis_follower_facts facts;
        tamis_follower_info(s->follower, &facts);
        atomic_fetch_add(&s->torn, !whole(s, &facts));
        bool there = tamis_directory_copy(s->directory, 0, &facts);
        atomic_fetch_add(&s->torn, !there || !whole(s, &facts));
        if (rng % 16 == 0)
            atomic_fetch_add(&s->torn, !encodes_whole(s));
        atomic_fetch_add(&s->asked, 1);
    }
    return NULL;
}

static void publish(struct shared *s, const tamis_filter *f, tamis_origin *origin)
{
    tamis_filter_facts facts;
    tamis_origin_facts so_far;
    tamis_filter_info(f, &facts);
    tamis_origin_info(origin, &so_far);
    atomic_store(&s->items[so_far.version + 1], facts.items);
    CHECK(tamis_origin_publish(origin, deliver, s, NULL) == TAMIS_OK);
}

static void run(const tamis_options *options, unsigned versions)
{
    static struct shared s;
    memset(&s, 0, sizeof s);
    tamis_filter *f;
    tamis_origin *origin;
    tamis_origin_options o = {.owner = "x", .targets = {.member_miss = 0.001}};
    pthread_t threads[READERS];
    CHECK(tamis_follower_new(&s.follower, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_directory_new(&s.directory, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&f, options, NULL) == TAMIS_OK);
    CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < ALWAYS; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    publish(&s, f, origin);
    for (unsigned i = 0; i < READERS; i++)
        CHECK(pthread_create(&threads[i], NULL, read_all, &s) == 0);
    for (unsigned v = 0; v < versions; v++) {
        for (uint64_t i = 0; i < BATCH_KEYS; i++) {
            uint64_t key = 1000 + (v & ~1u) * BATCH_KEYS + i;
            if (v % 2 == 0 || !options->deletable)
                CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
            else
                CHECK(tamis_filter_remove(f, &key, sizeof key, NULL) == TAMIS_OK);
        }
        publish(&s, f, origin);
    }
    while (atomic_load(&s.asked) < 1000)
        ;
    atomic_store(&s.stop, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    CHECK_MSG(atomic_load(&s.missing) == 0, "%lu of %lu", atomic_load(&s.missing),
              atomic_load(&s.asked));
    CHECK_MSG(atomic_load(&s.unlocated) == 0, "%lu", atomic_load(&s.unlocated));
    CHECK_MSG(atomic_load(&s.torn) == 0, "%lu", atomic_load(&s.torn));
    tamis_origin_free(origin);
    tamis_filter_free(f);
    tamis_follower_free(s.follower);
    tamis_directory_free(s.directory);
}

TEST(readers_see_whole_versions)
{
    unsigned versions = harness_long() ? 2000 : 60;
    run(&(tamis_options){.growth = TAMIS_SCALABLE, .capacity = 100}, versions);
    run(&(tamis_options){.growth = TAMIS_SCALABLE, .capacity = 100, .deletable = true}, versions);
    run(&(tamis_options){.growth = TAMIS_DYNAMIC, .capacity = 20000, .deletable = true}, versions);
}

/* ---- owners that become known, and owners that change their family --------------------------- */

enum { OWNERS = 3000, LIVES = 300 };

struct crowd {
    tamis_directory *directory;
    atomic_uint expected; /* owners that have the key, or are in doubt */
    atomic_bool stop;
    atomic_ulong asked, missing;
};

static void *count_owners(void *context)
{
    struct crowd *c = context;
    uint64_t key = 1;
    while (!atomic_load(&c->stop)) {
        unsigned expected = atomic_load(&c->expected);
        size_t n = tamis_directory_locate(c->directory, &key, sizeof key, NULL, 0);
        atomic_fetch_add(&c->missing, n < expected);
        atomic_fetch_add(&c->asked, 1);
    }
    return NULL;
}

static int to_crowd(void *context, const void *data, size_t len)
{
    struct crowd *c = context;
    return tamis_directory_take(c->directory, NULL, data, len, 0, NULL, NULL) != TAMIS_OK;
}

/* A snapshot of the owner in a new life: it has the key, and the family is one of two. */
static void introduce(struct crowd *c, const char *owner, uint64_t epoch, bool other)
{
    static const uint8_t families[2][TAMIS_KEY_LEN] = {"one family", "another one"};
    tamis_options options = {.capacity = 16, .layout = TAMIS_SPREAD, .key = families[other]};
    uint64_t key = 1;
    tamis_filter *f;
    tamis_origin *origin;
    tamis_origin_options o = {.owner = owner, .epoch = epoch};
    CHECK(tamis_filter_new(&f, &options, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
    CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(origin, to_crowd, c, NULL) == TAMIS_OK);
    tamis_origin_free(origin);
    tamis_filter_free(f);
}

static void crowd_begin(struct crowd *c, pthread_t threads[READERS])
{
    CHECK(tamis_directory_new(&c->directory, NULL, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < READERS; i++)
        CHECK(pthread_create(&threads[i], NULL, count_owners, c) == 0);
}

static void crowd_end(struct crowd *c, pthread_t threads[READERS])
{
    while (atomic_load(&c->asked) < 1000)
        ;
    atomic_store(&c->stop, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    CHECK_MSG(atomic_load(&c->missing) == 0, "%lu of %lu", atomic_load(&c->missing),
              atomic_load(&c->asked));
    tamis_directory_free(c->directory);
}

/* First in doubt, then known to have the key: it is never neither. */
TEST(an_owner_that_becomes_known_is_not_missed)
{
    struct crowd c = {0};
    pthread_t threads[READERS];
    char name[16];
    crowd_begin(&c, threads);
    for (unsigned i = 0; i < OWNERS; i++) {
        snprintf(name, sizeof name, "owner-%u", i);
        CHECK(tamis_directory_expect(c.directory, name, NULL, NULL) == TAMIS_OK);
        atomic_fetch_add(&c.expected, 1);
        introduce(&c, name, 1, i % 2);
    }
    crowd_end(&c, threads);
}

TEST(an_owner_that_changes_its_family_is_not_missed)
{
    struct crowd c = {0};
    pthread_t threads[READERS];
    crowd_begin(&c, threads);
    introduce(&c, "aside", 1, true);
    introduce(&c, "owner", 1, false);
    atomic_store(&c.expected, 2);
    for (unsigned life = 2; life < (harness_long() ? 20u : 1u) * LIVES; life++)
        introduce(&c, "owner", life, life % 2);
    crowd_end(&c, threads);
}

/* ---- leases that run out and are renewed beside readers -------------------------------------- */

enum { ROUNDS = 20000 };

static atomic_ulong hour;

static uint64_t hour_clock(void *context)
{
    (void)context;
    return atomic_load(&hour);
}

static int keep_beat(void *context, const void *data, size_t len)
{
    struct message {
        size_t len;
        char data[4096];
    } *m = context;
    m->len = len;
    return CHECK(len <= sizeof m->data) ? (memcpy(m->data, data, len), 0) : -1;
}

/* Whenever readers looked at the leases while one was renewed: it runs out. */
TEST(a_lease_renewed_beside_readers_runs_out)
{
    struct crowd c = {0};
    struct {
        size_t len;
        char data[4096];
    } beat = {0};
    pthread_t threads[READERS];
    uint64_t stranger = 2;
    unsigned held = 0;
    tamis_filter *f;
    tamis_origin *origin;
    tamis_place place;
    atomic_store(&hour, 1000);
    CHECK(tamis_directory_new(&c.directory, &(tamis_directory_options){.clock = hour_clock},
                              NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&f, &(tamis_options){.fpp = 1e-9}, NULL) == TAMIS_OK);
    tamis_origin_options o = {.owner = "owner", .beat = 10, .clock = hour_clock};
    CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(origin, to_crowd, &c, NULL) == TAMIS_OK);
    CHECK(tamis_origin_beat(origin, keep_beat, &beat) == TAMIS_OK);
    for (unsigned i = 0; i < READERS; i++)
        CHECK(pthread_create(&threads[i], NULL, count_owners, &c) == 0);
    for (unsigned i = 0; i < (harness_long() ? 20u : 1u) * ROUNDS; i++) {
        atomic_fetch_add(&hour, 100);
        CHECK(tamis_directory_take(c.directory, NULL, beat.data, beat.len, 0, NULL, NULL) ==
              TAMIS_OK);
        atomic_fetch_add(&hour, 100);
        size_t n = tamis_directory_locate(c.directory, &stranger, sizeof stranger, &place, 1);
        held += n != 1 || !place.doubt;
    }
    CHECK_MSG(held == 0, "%u", held);
    crowd_end(&c, threads);
    tamis_origin_free(origin);
    tamis_filter_free(f);
}

/* ---- libraries that are loaded at first use -------------------------------------------------- */

static void *open_carriers(void *context)
{
    atomic_ulong *opened = context;
    char error[256];
    for (unsigned i = 0; i < 20; i++) {
        struct carrier *c = carrier_open("http://127.0.0.1:9/exchange", error);
        atomic_fetch_add(opened, c != NULL || strstr(error, "built without") != NULL);
        carrier_close(c);
    }
    return NULL;
}

TEST(followers_in_several_threads_may_be_the_first)
{
    pthread_t threads[READERS];
    atomic_ulong opened = 0;
    for (size_t i = 0; i < READERS; i++)
        CHECK(pthread_create(&threads[i], NULL, open_carriers, &opened) == 0);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    CHECK(atomic_load(&opened) == 20 * READERS);
}

HARNESS_MAIN
