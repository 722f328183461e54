/* Directories against a plain model: the keys of every owner. An owner that has the key is always
 * named, whatever was put, replaced and dropped; others are named at the stated rate, each owner for
 * itself, however different their sizes. Owners told by messages are as their followers asked one by
 * one, through whatever happens to them, and those in doubt are told apart. Readers beside the thread
 * that takes are in test_threads_replica.c.
 */
#include "owners/directory.h"
#include "fault.h"
#include "harness.h"
#include "histories.h"
#include "tamis/replica.h"
#include "tamis/plan.h"

#include <math.h>

#define KEY ((const uint8_t *)"0123456789abcdef")

enum { OWNERS = 60 };

/* Owner i has the keys first .. first + n - 1. */
struct plain {
    bool live[OWNERS];
    uint64_t first[OWNERS], n[OWNERS];
};

static void name_of(uint32_t i, char name[16])
{
    snprintf(name, 16, "host-%u", i);
}

static tamis_error put_range(tamis_directory *d, uint32_t owner, uint64_t first, uint64_t n)
{
    char name[16];
    tamis_digest *digests = malloc((n + 1) * sizeof *digests);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = first + i;
        digests[i] = tamis_directory_digest(d, &key, sizeof key);
    }
    name_of(owner, name);
    tamis_error e = tamis_directory_put(d, name, digests, n, NULL);
    free(digests);
    return e;
}

/* The named owners of a key, by their number in the name. */
static void locate(const tamis_directory *d, uint64_t key, bool named[OWNERS])
{
    tamis_place found[OWNERS];
    size_t n = tamis_directory_locate(d, &key, sizeof key, found, OWNERS);
    memset(named, 0, OWNERS);
    for (size_t i = 0; i < n; i++) {
        const char *name = tamis_directory_name(d, found[i].owner);
        CHECK(!found[i].doubt && (i == 0 || found[i].owner > found[i - 1].owner));
        if (CHECK(name != NULL))
            named[atoi(name + 5)] = true;
    }
}

static void compare_plain(const struct plain *m, const tamis_directory *d, uint64_t *rng)
{
    uint64_t missed = 0, ghosts = 0;
    bool named[OWNERS];
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        uint64_t key = m->first[owner] + (m->n[owner] ? rng_next(rng) % m->n[owner] : 0);
        locate(d, key, named);
        for (uint32_t i = 0; i < OWNERS; i++) {
            bool has = m->live[i] && key - m->first[i] < m->n[i];
            missed += has && !named[i];
            ghosts += named[i] && !m->live[i];
        }
    }
    CHECK_MSG(missed == 0 && ghosts == 0, "%" PRIu64 " missed, %" PRIu64 " dropped ones named",
              missed, ghosts);
}

static uint64_t some_size(uint64_t *rng)
{
    uint64_t size = UINT64_C(1) << rng_next(rng) % 13;
    return rng_next(rng) % 10 ? size + rng_next(rng) % size : 0;
}

static void step(struct plain *m, tamis_directory *d, uint64_t *rng)
{
    uint32_t owner = (uint32_t)(rng_next(rng) % OWNERS);
    char name[16];
    name_of(owner, name);
    if (rng_next(rng) % 4 == 0) {
        CHECK(tamis_directory_drop(d, name, NULL) == (m->live[owner] ? TAMIS_OK : TAMIS_EARG));
        m->live[owner] = false;
        return;
    }
    m->live[owner] = true;
    m->first[owner] = rng_next(rng) >> 20;
    m->n[owner] = some_size(rng);
    CHECK(put_range(d, owner, m->first[owner], m->n[owner]) == TAMIS_OK);
}

TEST(an_owner_that_has_the_key_is_named)
{
    static const tamis_hash hashes[] = {TAMIS_XXH3, TAMIS_SIP, TAMIS_H3};
    for (int h = 0; h < 3; h++) {
        uint64_t rng = harness_seed() + (uint64_t)h;
        struct plain m = {0};
        struct fault fault;
        fault_init(&fault);
        tamis_directory_options o = {.hash = hashes[h], .key = KEY, .allocator = &fault.allocator};
        tamis_directory *d = NULL;
        tamis_reason reason = {0};
        CHECK(tamis_directory_new(&d, &o, &reason) == TAMIS_OK);
        for (int i = 0; i < 500; i++) {
            step(&m, d, &rng);
            if (i % 25 == 0)
                compare_plain(&m, d, &rng);
        }
        compare_plain(&m, d, &rng);
        tamis_directory_free(d);
        CHECK(fault_clean(&fault));
    }
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* What one small vector does depends on its few keys, so the rate is a mean over families; six
   deviations of that mean are allowed. */
struct mean {
    double sum, squares;
};

static bool within(const struct mean *m, double n, double rate)
{
    double mean = m->sum / n, variance = (m->squares / n - mean * mean) / (n - 1);
    return mean <= rate + 6 * sqrt(variance > 0 ? variance : 0);
}

static const uint64_t sizes[] = {1,   2,    3,    7,    10,   30,   100,  100,  120,  130,
                                 150, 1000, 1010, 1500, 3000, 3100, 5000, 9000, 20000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* One family: the rate of every owner is added to its mean. */
static void rates_once(double rate, uint64_t seed, struct mean *means)
{
    enum { TRIES = 4000 };
    uint64_t rng = seed, wrong[OWNERS] = {0};
    uint8_t key[TAMIS_KEY_LEN];
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)rng_next(&rng);
    tamis_directory_options o = {.fpp = rate, .key = key};
    tamis_directory *d = NULL;
    tamis_directory_facts facts;
    double bits = 0;
    CHECK(tamis_directory_new(&d, &o, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < SIZES; i++) {
        CHECK(put_range(d, i, (uint64_t)(i + 1) << 32, sizes[i]) == TAMIS_OK);
        bits += tamis_plan_bits_best((double)sizes[i], rate);
    }
    for (int i = 0; i < TRIES; i++) {
        bool named[OWNERS];
        locate(d, rng_next(&rng) | UINT64_C(1) << 63, named);
        for (uint32_t j = 0; j < SIZES; j++)
            wrong[j] += named[j];
    }
    for (uint32_t j = 0; j < SIZES; j++) {
        double here = (double)wrong[j] / TRIES;
        means[j].sum += here;
        means[j].squares += here * here;
    }
    tamis_directory_info(d, &facts);
    CHECK(facts.owners == SIZES && facts.fpp == rate && facts.fpp_now <= rate * 1.01);
    CHECK_MSG((double)facts.bits < 1.5 * bits, "%g of the least", (double)facts.bits / bits);
    tamis_directory_free(d);
}

TEST(every_owner_keeps_the_stated_rate)
{
    static const double rates[] = {0.01, 0.1, 0.001};
    enum { FAMILIES = 24 };
    for (int r = 0; r < 3; r++) {
        struct mean means[SIZES] = {{0}};
        for (unsigned i = 0; i < FAMILIES; i++)
            rates_once(rates[r], harness_seed() + i, means);
        for (uint32_t j = 0; j < SIZES; j++)
            CHECK_MSG(within(&means[j], FAMILIES, rates[r]), "owner of %" PRIu64 " keys: %g at %g",
                      sizes[j], means[j].sum / FAMILIES, rates[r]);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

TEST(without_memory_nothing_is_put)
{
    uint64_t rng = harness_seed();
    struct plain m = {0};
    struct fault fault;
    fault_init(&fault);
    tamis_directory_options o = {.key = KEY, .allocator = &fault.allocator};
    tamis_directory *d = NULL;
    for (uint64_t at = 1; at < 20 && !d; at++) {
        fault_arm(&fault, at, false);
        tamis_error e = tamis_directory_new(&d, &o, NULL);
        CHECK(e == TAMIS_OK || (e == TAMIS_ENOMEM && fault.blocks == 0));
    }
    for (int i = 0; i < 40; i++) {
        uint32_t owner = (uint32_t)(rng_next(&rng) % OWNERS);
        uint64_t first = rng_next(&rng) >> 20, n = some_size(&rng), at = 1;
        tamis_error e;
        do {
            fault_arm(&fault, at++, false);
            e = put_range(d, owner, first, n);
            CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
            if (e != TAMIS_OK && at == 3)
                compare_plain(&m, d, &rng);
        } while (e != TAMIS_OK && at < 60);
        CHECK(e == TAMIS_OK);
        m.live[owner] = true;
        m.first[owner] = first;
        m.n[owner] = n;
        fault_arm(&fault, 0, false);
    }
    compare_plain(&m, d, &rng);
    tamis_directory_free(d);
    CHECK(fault_clean(&fault));
}

TEST(arguments_are_checked)
{
    tamis_reason reason = {0};
    tamis_directory *d = NULL;
    tamis_directory_options bad = {.fpp = 2};
    CHECK(tamis_directory_new(&d, &bad, &reason) == TAMIS_EARG && reason.text[0]);
    CHECK(tamis_directory_new(&d, NULL, &reason) == TAMIS_OK);
    CHECK(tamis_directory_put(d, "", NULL, 0, NULL) == TAMIS_EARG);
    CHECK(tamis_directory_expect(d, "", NULL, NULL) == TAMIS_EARG);
    CHECK(tamis_directory_drop(d, "nobody", NULL) == TAMIS_EARG);
    CHECK(tamis_directory_put(d, "empty", NULL, 0, NULL) == TAMIS_OK);
    CHECK(tamis_directory_owners(d) == 1 && strcmp(tamis_directory_name(d, 0), "empty") == 0);
    CHECK(tamis_directory_locate(d, "x", 1, NULL, 0) == 0);
    tamis_directory_free(d);
}

/* ---- copies of origins ----------------------------------------------------------------------- */

enum { HOSTS = 90, STRANGERS = 300 };

struct host {
    char name[16];
    tamis_filter *filter;
    tamis_origin *origin;
    uint64_t first, n; /* its keys are first .. first + n - 1 */
};

static uint64_t now;
static bool with_lines; /* some hosts are smooth */

static int to_directory(void *directory, const void *data, size_t len)
{
    tamis_taken taken;
    tamis_reason reason = {0};
    tamis_error e = tamis_directory_take(directory, NULL, data, len, 0, &taken, &reason);
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
    if (with_lines &&
        i % 6 == 5) { /* lines, from the first key on or past a capacity: no columns */
        options.growth = TAMIS_SMOOTH;
        options.layout = TAMIS_LAYOUT_DEFAULT;
    }
    snprintf(h->name, sizeof h->name, "host-%u", i);
    tamis_origin_options o = {.owner = h->name,
                              .beat = beat,
                              .epoch = ++now,
                              .clock = harness_clock,
                              .clock_context = &now};
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

static void host_remove(struct host *h, uint64_t n)
{
    for (; n && h->n; n--, h->n--, h->first++)
        CHECK(tamis_filter_remove(h->filter, &h->first, sizeof h->first, NULL) == TAMIS_OK);
}

/* Every owner's own answer against the directory's. */
static void compare(const tamis_directory *r, const void *key, size_t len)
{
    tamis_place places[HOSTS];
    size_t n = tamis_directory_locate(r, key, len, places, HOSTS), at = 0;
    CHECK(n <= HOSTS);
    for (uint32_t i = 0; i < tamis_directory_owners(r); i++) {
        const tamis_follower *f = tamis_directory_follower(r, i);
        if (!tamis_directory_name(r, i))
            continue;
        bool doubt = tamis_follower_freshness(f) != TAMIS_CURRENT;
        if (!doubt && !tamis_follower_has(f, key, len))
            continue;
        if (!CHECK(at < n))
            return;
        CHECK_MSG(places[at].owner == i && places[at].doubt == doubt, "%s",
                  tamis_directory_name(r, i));
        at++;
    }
    CHECK_MSG(at == n, "%zu of %zu", at, n);
}

static void compare_all(const tamis_directory *r, const struct host *hosts, uint64_t *rng)
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

static void follow_hosts(bool whole)
{
    static struct host hosts[HOSTS];
    uint64_t rng = harness_seed();
    tamis_directory *r;
    tamis_directory_options options = {
        .clock = harness_clock, .clock_context = &now, .whole = whole};
    now = 1000;
    CHECK(tamis_directory_new(&r, &options, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < HOSTS; i++) {
        host_start(&hosts[i], i, 100 + i);
        host_add(&hosts[i], 80 + rng_next(&rng) % 200);
        CHECK(tamis_directory_expect(r, hosts[i].name, NULL, NULL) == TAMIS_OK);
    }
    compare_all(r, hosts, &rng);
    for (unsigned step = 0; step < HARNESS_TIMES(300u, 3000u); step++) {
        struct host *h = &hosts[rng_next(&rng) % HOSTS];
        unsigned pick = (unsigned)(rng_next(&rng) % 8);
        now += rng_next(&rng) % 8;
        if (pick < 3)
            host_add(h, 1 + rng_next(&rng) % 30);
        if (pick < 2 && (h - hosts) % 2)
            host_remove(h, rng_next(&rng) % 30);
        if (pick < 5)
            CHECK(tamis_origin_publish(h->origin, to_directory, r, NULL) == TAMIS_OK);
        else if (pick == 5)
            tamis_origin_beat(h->origin, to_directory, r);
        else if (pick == 6 && step % 4 == 0) {
            tamis_error e = tamis_directory_drop(r, h->name, NULL);
            CHECK(e == TAMIS_OK || e == TAMIS_EARG);
            CHECK(tamis_directory_drop(r, h->name, NULL) == TAMIS_EARG);
            if (step % 8 == 0)
                CHECK(tamis_directory_expect(r, h->name, NULL, NULL) == TAMIS_OK);
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
    tamis_directory_free(r);
}

TEST(a_directory_is_its_followers)
{
    with_lines = true;
    follow_hosts(false);
    follow_hosts(true);
    with_lines = false;
}

/* Lines have no columns: never a directory that would deny what they have. */
TEST(smooth_filters_are_not_put)
{
    const char *name = "smooth";
    tamis_options o = {.growth = TAMIS_SMOOTH};
    tamis_reason reason = {0};
    tamis_filter *f;
    tamis_directory *d;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_directory_new(&d, NULL, NULL) == TAMIS_OK);
    const tamis_filter *one = f;
    CHECK(tamis_directory_put_filters(d, &name, &one, 1, &reason) == TAMIS_EKIND);
    CHECK(strstr(reason.text, "smooth") && tamis_directory_owners(d) == 0);
    tamis_directory_free(d);
    tamis_filter_free(f);
}

TEST(owners_in_doubt_are_told_apart)
{
    static struct host h[3];
    tamis_directory *r;
    tamis_directory_options options = {.clock = harness_clock, .clock_context = &now};
    tamis_place places[4];
    uint64_t key = 5, stranger = 77777;
    now = 1000;
    CHECK(tamis_directory_new(&r, &options, NULL) == TAMIS_OK);
    CHECK(tamis_directory_locate(r, &key, sizeof key, places, 4) == 0);
    for (unsigned i = 0; i < 3; i++) {
        host_start(&h[i], 5, 100);
        snprintf(h[i].name, sizeof h[i].name, "host-%u", i);
        tamis_origin_free(h[i].origin);
        tamis_origin_options o = {.owner = h[i].name,
                                  .beat = i == 1 ? 1000 : 100,
                                  .epoch = 1,
                                  .clock = harness_clock,
                                  .clock_context = &now};
        CHECK(tamis_origin_new(&h[i].origin, h[i].filter, &o, NULL) == TAMIS_OK);
        CHECK(tamis_directory_expect(r, h[i].name, NULL, NULL) == TAMIS_OK);
    }
    h[1].first = 0;
    host_add(&h[1], 20);
    CHECK(tamis_directory_locate(r, &key, sizeof key, places, 4) == 3);
    CHECK(places[0].doubt && places[1].doubt && places[2].doubt);
    for (unsigned i = 0; i < 3; i++)
        CHECK(tamis_origin_publish(h[i].origin, to_directory, r, NULL) == TAMIS_OK);
    CHECK(tamis_directory_locate(r, &key, sizeof key, places, 4) == 1);
    CHECK(places[0].owner == 1 && !places[0].doubt);
    CHECK(tamis_directory_locate(r, &stranger, sizeof stranger, places, 4) == 0);
    now += 300; /* the leases of 0 and 2 run out */
    CHECK(tamis_directory_locate(r, &key, sizeof key, places, 4) == 3);
    CHECK(places[0].doubt && !places[1].doubt && places[2].doubt);
    CHECK(tamis_origin_beat(h[0].origin, to_directory, r) == TAMIS_OK);
    CHECK(tamis_directory_locate(r, &stranger, sizeof stranger, places, 4) == 1);
    CHECK(places[0].owner == 2 && places[0].doubt);
    /* A version that did not come: being rebuilt. */
    host_add(&h[0], 10);
    CHECK(tamis_origin_publish(h[0].origin, to_nobody, NULL, NULL) == TAMIS_OK);
    static struct bytes beat;
    CHECK(tamis_origin_beat(h[0].origin, bytes_write, &beat) == TAMIS_OK);
    CHECK(tamis_directory_take(r, NULL, beat.data, beat.len, 0, NULL, NULL) == TAMIS_EBASE);
    CHECK(tamis_directory_locate(r, &stranger, sizeof stranger, places, 4) == 2);
    CHECK(tamis_origin_snapshot(h[0].origin, to_directory, r, NULL) == TAMIS_OK);
    CHECK(tamis_directory_locate(r, &stranger, sizeof stranger, places, 4) == 1);
    bytes_free(&beat);
    for (unsigned i = 0; i < 3; i++) {
        tamis_origin_free(h[i].origin);
        tamis_filter_free(h[i].filter);
    }
    tamis_directory_free(r);
}

TEST(more_owners_than_a_word_of_words)
{
    tamis_directory *r;
    enum { MANY = 4200 };
    static tamis_place places[MANY];
    static struct bytes message;
    tamis_filter *f;
    tamis_options plain = {
        .growth = TAMIS_FIXED, .capacity = 100, .key = (const uint8_t *)"0123456789abcdef"};
    uint64_t key = 3;
    CHECK(tamis_directory_new(&r, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&f, &plain, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        if (i % 100 == 99 || i == MANY - 2) {
            tamis_origin *origin;
            tamis_origin_options o = {.owner = name};
            CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
            CHECK(tamis_origin_publish(origin, to_directory, r, NULL) == TAMIS_OK);
            tamis_origin_free(origin);
        } else {
            CHECK(tamis_directory_expect(r, name, NULL, NULL) == TAMIS_OK);
        }
    }
    size_t n = tamis_directory_locate(r, &key, sizeof key, places, MANY);
    CHECK(n == MANY);
    for (size_t i = 0; i < n; i++)
        CHECK(places[i].owner == i && places[i].doubt == !(i % 100 == 99 || i == MANY - 2));
    bytes_free(&message);
    tamis_filter_free(f);
    tamis_directory_free(r);
}

TEST(without_memory_an_owner_is_in_doubt)
{
    struct fault fault;
    static struct bytes message, beat;
    tamis_directory *r;
    struct host h;
    tamis_place places[2];
    uint64_t stranger = 99;
    fault_init(&fault);
    now = 1000;
    host_start(&h, 0, 100);
    host_add(&h, 50);
    CHECK(tamis_origin_publish(h.origin, bytes_write, &message, NULL) == TAMIS_OK);
    CHECK(tamis_origin_beat(h.origin, bytes_write, &beat) == TAMIS_OK);
    tamis_directory_options options = {
        .clock = harness_clock, .clock_context = &now, .allocator = &fault.allocator};
    for (uint64_t n = 1;; n++) {
        CHECK(tamis_directory_new(&r, &options, NULL) == TAMIS_OK);
        CHECK(tamis_directory_expect(r, h.name, NULL, NULL) == TAMIS_OK);
        fault_arm(&fault, n, false);
        tamis_error e = tamis_directory_take(r, NULL, message.data, message.len, 0, NULL, NULL);
        fault_arm(&fault, 0, false);
        CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
        bool done = e == TAMIS_OK;
        size_t found = tamis_directory_locate(r, &stranger, sizeof stranger, places, 2);
        CHECK(e == TAMIS_OK ? found == 0 : found == 1 && places[0].doubt);
        /* When there is memory again, the same message or a heartbeat puts it right. */
        const struct bytes *next = n % 2 ? &message : &beat;
        e = tamis_directory_take(r, NULL, next->data, next->len, 0, NULL, NULL);
        if (e == TAMIS_EBASE) /* there was no copy to go on with */
            e = tamis_directory_take(r, NULL, message.data, message.len, 0, NULL, NULL);
        CHECK(e == TAMIS_OK);
        CHECK(tamis_directory_locate(r, &stranger, sizeof stranger, places, 2) == 0);
        CHECK(tamis_directory_locate(r, &h.first, sizeof h.first, places, 2) == 1);
        CHECK(!places[0].doubt);
        tamis_directory_free(r);
        if (!CHECK(n < 200) || done)
            break;
    }
    CHECK(fault_clean(&fault));
    tamis_origin_free(h.origin);
    tamis_filter_free(h.filter);
    bytes_free(&message);
    bytes_free(&beat);
}

/* ---- filters, and copies that stay whole ----------------------------------------------------- */

/* Filters of any kind, put many at a time: each owner is named as its filter says. */
TEST(owners_put_as_filters_are_their_filters)
{
    static struct host hosts[HOSTS];
    uint64_t rng = harness_seed();
    const char *names[HOSTS];
    const tamis_filter *filters[HOSTS];
    struct fault fault;
    tamis_directory *d = NULL;
    fault_init(&fault);
    now = 1000;
    CHECK(tamis_directory_new(&d, &(tamis_directory_options){.allocator = &fault.allocator},
                              NULL) == TAMIS_OK);
    for (unsigned round = 0; round < 3; round++) {
        uint64_t at = 0;
        tamis_error e;
        for (unsigned i = 0; i < HOSTS; i++) {
            host_start(&hosts[i], i, 100);
            host_add(&hosts[i], 1 + rng_next(&rng) % 400);
            names[i] = hosts[i].name;
            filters[i] = hosts[i].filter;
        }
        do { /* all or none */
            fault_arm(&fault, at += 1 + at / 8, false);
            e = tamis_directory_put_filters(d, names, filters, HOSTS, NULL);
            fault_arm(&fault, 0, false);
            CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
            CHECK(round > 0 || e == TAMIS_OK ||
                  tamis_directory_locate(d, &hosts[0].first, 8, NULL, 0) == 0);
        } while (e != TAMIS_OK && at < 10000);
        CHECK(e == TAMIS_OK && tamis_directory_owners(d) == HOSTS);
        for (unsigned i = 0; i < 2 * HOSTS; i++) {
            uint64_t key = i < HOSTS ? hosts[i].first + hosts[i].n / 2 : rng_next(&rng), hits[2];
            uint64_t doubt[2];
            tamis_key asked = {&key, sizeof key};
            tamis_directory_locate_many(d, &asked, 1, hits, doubt, 2);
            CHECK(doubt[0] == 0 && doubt[1] == 0);
            for (unsigned j = 0; j < HOSTS; j++)
                CHECK((hits[j / 64] >> j % 64 & 1) ==
                      tamis_filter_has(hosts[j].filter, &key, sizeof key));
        }
        uint64_t items = 0;
        for (unsigned i = 0; i < HOSTS; i++) {
            tamis_filter_facts info;
            tamis_filter_info(hosts[i].filter, &info);
            items += info.items;
            tamis_origin_free(hosts[i].origin);
            tamis_filter_free(hosts[i].filter);
        }
        tamis_directory_facts facts;
        tamis_directory_info(d, &facts);
        CHECK(facts.items == items);
    }
    tamis_directory_free(d);
    CHECK(fault_clean(&fault));
}

/* A delta costs the bits that it changes, whatever the size of the set and the number of owners. */
TEST(a_delta_changes_its_bits_alone)
{
    enum { OTHERS = 300, KEYS = 20000 };
    tamis_directory *d = NULL;
    tamis_filter *f = NULL;
    tamis_origin *origin = NULL;
    tamis_options options = {.growth = TAMIS_FIXED, .capacity = 2 * KEYS, .deletable = true};
    tamis_origin_options o = {.owner = "one"};
    CHECK(tamis_directory_new(&d, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&f, &options, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < KEYS; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < OTHERS; i++) {
        char name[16];
        const char *names[] = {name};
        const tamis_filter *filters[] = {f};
        snprintf(name, sizeof name, "other-%u", i);
        CHECK(tamis_directory_put_filters(d, names, filters, 1, NULL) == TAMIS_OK);
    }
    CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(origin, to_directory, d, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t more = KEYS + i;
        CHECK(tamis_filter_add(f, &more, sizeof more, NULL) == TAMIS_OK);
        CHECK(tamis_filter_remove(f, &i, sizeof i, NULL) == TAMIS_OK);
    }
    d->whole = true; /* columns that could not be changed in place would stay behind */
    CHECK(tamis_origin_publish(origin, to_directory, d, NULL) == TAMIS_OK);
    CHECK(!d->taking->behind);
    d->whole = false;
    for (uint64_t i = 0; i < KEYS + 10; i += i < 20 || i > KEYS - 20 ? 1 : 37) {
        tamis_place place[OTHERS + 1];
        size_t n = tamis_directory_locate(d, &i, sizeof i, place, OTHERS + 1);
        bool named = n && place[n - 1].owner == OTHERS;
        CHECK(n <= OTHERS + 1 && named == tamis_filter_has(f, &i, sizeof i));
    }
    tamis_origin_free(origin);
    tamis_filter_free(f);
    tamis_directory_free(d);
}

TEST(messages_of_others_are_refused)
{
    static struct bytes message;
    struct host h;
    tamis_directory *d = NULL;
    tamis_reason reason = {0};
    tamis_taken taken = TAMIS_APPLIED;
    tamis_digest digest = {1, 2};
    uint32_t number = 7;
    now = 1000;
    host_start(&h, 3, 100);
    CHECK(tamis_origin_publish(h.origin, bytes_write, &message, NULL) == TAMIS_OK);
    CHECK(tamis_directory_new(&d, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_directory_expect(d, "host-2", &number, NULL) == TAMIS_OK && number == 0);
    CHECK(tamis_directory_take(d, "host-2", message.data, message.len, 0, &taken, &reason) ==
          TAMIS_EFAMILY);
    CHECK(taken == TAMIS_REFUSED && strstr(reason.text, "host-3"));
    CHECK(tamis_directory_owners(d) == 1);
    CHECK(tamis_directory_put(d, "host-3", &digest, 1, NULL) == TAMIS_OK);
    CHECK(tamis_directory_take(d, NULL, message.data, message.len, 0, &taken, &reason) ==
          TAMIS_EKIND);
    CHECK(tamis_directory_drop(d, "host-3", NULL) == TAMIS_OK);
    CHECK(tamis_directory_take(d, "host-3", message.data, message.len, 0, &taken, &reason) ==
          TAMIS_OK);
    CHECK(taken == TAMIS_APPLIED && tamis_directory_owners(d) == 2);
    CHECK(tamis_directory_follower(d, 1) && strcmp(tamis_directory_name(d, 1), "host-3") == 0);
    tamis_directory_free(d);
    bytes_free(&message);
    tamis_origin_free(h.origin);
    tamis_filter_free(h.filter);
}

/* ---- contact and cost ------------------------------------------------------------------------ */

static uint64_t told_clock(void *context)
{
    return *(const uint64_t *)context;
}

static tamis_origin *origin_of(const char *name, uint64_t beat, uint64_t *clock, tamis_filter **f)
{
    tamis_options options = {
        .growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .capacity = 64, .key = KEY};
    tamis_origin_options o = {
        .owner = name, .beat = beat, .epoch = 1, .clock = told_clock, .clock_context = clock};
    tamis_origin *origin = NULL;
    CHECK(tamis_filter_new(f, &options, NULL) == TAMIS_OK);
    CHECK(tamis_origin_new(&origin, *f, &o, NULL) == TAMIS_OK);
    return origin;
}

/* Which of two owners are in doubt, as bits, by the answers and by what is known of the copies. */
static unsigned in_doubt(const tamis_directory *d)
{
    uint64_t none, doubt = 0;
    tamis_directory_locate_many(d, NULL, 0, &none, &doubt, 1);
    for (uint32_t i = 0; i < 2; i++) {
        tamis_follower_facts facts;
        CHECK(tamis_directory_copy(d, i, &facts));
        CHECK((facts.freshness != TAMIS_CURRENT) == (doubt >> i & 1));
    }
    return (unsigned)doubt;
}

/* Whoever is cut off knows: an owner is trusted for one of its own heartbeats after the last contact. */
TEST(contact_is_for_all_owners_and_each_has_its_own_beat)
{
    uint64_t clock = 1000;
    tamis_directory *d;
    tamis_directory_options options = {.clock = told_clock, .clock_context = &clock};
    tamis_filter *fast_filter, *slow_filter;
    CHECK(tamis_directory_new(&d, &options, NULL) == TAMIS_OK);
    tamis_origin *fast = origin_of("fast", 10, &clock, &fast_filter);
    tamis_origin *slow = origin_of("slow", 100, &clock, &slow_filter);
    CHECK(tamis_origin_publish(fast, to_directory, d, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(slow, to_directory, d, NULL) == TAMIS_OK);
    clock += 25;
    CHECK(in_doubt(d) == 0); /* nobody speaks of contact: the leases of three beats hold */
    tamis_directory_contact(d, 0);
    clock += 4;
    CHECK(in_doubt(d) == 0);
    CHECK(tamis_origin_beat(fast, to_directory, d) == TAMIS_OK);
    clock += 6;
    CHECK(in_doubt(d) == 1); /* 10 after the contact */
    tamis_directory_contact(d, 0);
    CHECK(in_doubt(d) == 0); /* there again, without a message */
    tamis_directory_contact(d, 15);
    CHECK(in_doubt(d) == 1); /* what was reached earlier is no news */
    clock += 84;
    CHECK(in_doubt(d) == 1);
    clock += 1;
    CHECK(in_doubt(d) == 3);
    tamis_directory_contact(d, 0);
    CHECK(in_doubt(d) == 1); /* the lease of the fast one ran out meanwhile */
    CHECK(tamis_origin_beat(fast, to_directory, d) == TAMIS_OK);
    CHECK(in_doubt(d) == 0);
    tamis_origin_free(fast);
    tamis_origin_free(slow);
    tamis_filter_free(fast_filter);
    tamis_filter_free(slow_filter);
    tamis_directory_free(d);
}

/* A round of a follower, one change of one owner and the news that the carrier was reached, costs the
   same whatever the number of owners. */
COST(rounds_cost_their_messages_not_the_owners, 2048)
{
    uint64_t clock = 1000;
    tamis_directory *d;
    tamis_directory_options options = {.clock = told_clock, .clock_context = &clock};
    tamis_filter **filters = calloc(n, sizeof *filters);
    tamis_origin **origins = calloc(n, sizeof *origins);
    CHECK(tamis_directory_new(&d, &options, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        name_of(i, name);
        origins[i] = origin_of(name, 1 << 20, &clock, &filters[i]);
        CHECK(tamis_origin_publish(origins[i], to_directory, d, NULL) == TAMIS_OK);
    }
    for (uint64_t i = 0; i < n; i++) {
        CHECK(tamis_filter_add(filters[i], &i, sizeof i, NULL) == TAMIS_OK);
        CHECK(tamis_origin_publish(origins[i], to_directory, d, NULL) == TAMIS_OK);
        for (int j = 0; j < 16; j++)
            tamis_directory_contact(d, 0);
    }
    tamis_follower_facts facts;
    CHECK(tamis_directory_copy(d, (uint32_t)n - 1, &facts) && facts.items == 1);
    for (size_t i = 0; i < n; i++) {
        tamis_origin_free(origins[i]);
        tamis_filter_free(filters[i]);
    }
    free(filters);
    free(origins);
    tamis_directory_free(d);
}

HARNESS_MAIN
