/* Messages of several lives of an origin, in any order, repeated and lost: a copy that counts as
 * current is of the last life and version of which anything was heard. The model is the largest pair
 * of numbers that was delivered.
 */
#include "harness.h"
#include "histories.h"

#include <unistd.h>

#include "tamis/replica.h"

enum { LIVES = 3, VERSIONS = 5, MESSAGES = 256 };

struct sent {
    struct bytes bytes;
    tamis_message m;
};

struct box {
    struct sent sent[MESSAGES];
    size_t n;
};

static uint64_t now;

static int keep(void *context, const void *data, size_t len)
{
    struct box *box = context;
    struct sent *s = &box->sent[box->n];
    if (!CHECK(box->n < MESSAGES) || bytes_write(&s->bytes, data, len) != 0)
        return -1;
    box->n++;
    return CHECK(tamis_message_read(&s->m, data, len, NULL) == TAMIS_OK) ? 0 : -1;
}

static void box_free(struct box *box)
{
    for (size_t i = 0; i < box->n; i++)
        bytes_free(&box->sent[i].bytes);
    memset(box, 0, sizeof *box);
}

/* All that an origin sends in one life: versions, heartbeats between them, a snapshot at the end. */
static void live_with_beat(struct box *box, uint64_t epoch, uint64_t message_bytes, uint64_t beat)
{
    static const uint8_t family[TAMIS_KEY_LEN] = "one family";
    tamis_filter *f;
    tamis_origin *origin;
    tamis_origin_options o = {.owner = "store",
                              .epoch = epoch,
                              .beat = beat,
                              .message_bytes = message_bytes,
                              .clock = harness_clock,
                              .clock_context = &now};
    CHECK(tamis_filter_new(&f, &(tamis_options){.capacity = 1000, .key = family}, NULL) ==
          TAMIS_OK);
    CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
    for (uint64_t version = 0; version < VERSIONS; version++) {
        for (uint64_t i = 0; i < 40; i++) {
            uint64_t key = version << 32 | i;
            CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
        }
        CHECK(tamis_origin_publish(origin, keep, box, NULL) == TAMIS_OK);
        CHECK(tamis_origin_beat(origin, keep, box) == TAMIS_OK);
    }
    CHECK(tamis_origin_snapshot(origin, keep, box, NULL) == TAMIS_OK);
    tamis_origin_free(origin);
    tamis_filter_free(f);
}

static void live(struct box *box, uint64_t epoch, uint64_t message_bytes)
{
    live_with_beat(box, epoch, message_bytes, 100);
}

static tamis_error take_aged(tamis_follower *f, const struct sent *s, uint64_t age)
{
    return tamis_follower_take(f, s->bytes.data, s->bytes.len, age, NULL, NULL);
}

static tamis_error take(tamis_follower *f, const struct sent *s)
{
    return take_aged(f, s, 0);
}

static void check_current(const tamis_follower *f, const tamis_message *last)
{
    tamis_follower_facts facts;
    tamis_follower_info(f, &facts);
    if (facts.freshness == TAMIS_CURRENT)
        CHECK_MSG(facts.epoch == last->epoch && facts.version == last->version,
                  "version %llu of life %llu, when %llu of %llu was heard of",
                  (unsigned long long)facts.version, (unsigned long long)facts.epoch,
                  (unsigned long long)last->version, (unsigned long long)last->epoch);
    else
        CHECK(facts.freshness == TAMIS_UNKNOWN || facts.needs_snapshot ||
              facts.freshness == TAMIS_BEHIND);
}

/* Some in their order, some again, some left out, some from anywhere. */
static void shuffle(const struct box *box, uint64_t seed)
{
    tamis_follower *f;
    tamis_message last = {0};
    uint64_t rng = seed;
    CHECK(tamis_follower_new(
              &f, &(tamis_follower_options){.clock = harness_clock, .clock_context = &now}, NULL) ==
          TAMIS_OK);
    for (size_t i = 0; i < box->n; i++) {
        uint64_t pick = rng_next(&rng) % 8;
        const struct sent *s = &box->sent[pick < 6 ? i : rng_next(&rng) % box->n];
        if (pick == 0)
            continue;
        take(f, s);
        if (s->m.epoch > last.epoch || (s->m.epoch == last.epoch && s->m.version > last.version))
            last = s->m;
        check_current(f, &last);
    }
    const struct sent *end = &box->sent[box->n - 1]; /* all parts of the last snapshot */
    for (uint32_t part = 0; part < end->m.parts; part++)
        take(f, end - (end->m.parts - 1 - part));
    CHECK(tamis_follower_freshness(f) == TAMIS_CURRENT);
    tamis_follower_free(f);
}

TEST(a_current_copy_is_of_the_last_life_heard_of)
{
    static struct box box;
    uint64_t rng = harness_seed();
    now = 1000;
    for (uint64_t bytes = 0; bytes <= 1024; bytes += 1024) {
        for (uint64_t epoch = 1; epoch <= LIVES; epoch++)
            live(&box, epoch, bytes);
        for (unsigned i = 0; i < HARNESS_TIMES(500u, 20000u); i++)
            shuffle(&box, rng_next(&rng));
        box_free(&box);
    }
}

/* The first message of `type` of a life. */
static const struct sent *first(const struct box *box, uint64_t epoch, tamis_message_type type)
{
    for (size_t i = 0; i < box->n; i++)
        if (box->sent[i].m.epoch == epoch && box->sent[i].m.type == type)
            return &box->sent[i];
    return NULL;
}

/* A late heartbeat of the life before does not make the old copy current again. */
TEST(a_life_that_ended_is_not_heard_again)
{
    static struct box box;
    tamis_follower *f;
    now = 1000;
    live(&box, 5, 0);
    live(&box, 6, 0);
    CHECK(tamis_follower_new(
              &f, &(tamis_follower_options){.clock = harness_clock, .clock_context = &now}, NULL) ==
          TAMIS_OK);
    CHECK(take(f, first(&box, 5, TAMIS_SNAPSHOT)) == TAMIS_OK);
    CHECK(take(f, first(&box, 6, TAMIS_HEARTBEAT)) == TAMIS_EBASE);
    CHECK(tamis_follower_freshness(f) == TAMIS_BEHIND);
    CHECK(take(f, first(&box, 5, TAMIS_HEARTBEAT)) == TAMIS_EBASE);
    CHECK(tamis_follower_freshness(f) == TAMIS_BEHIND);
    CHECK(take(f, first(&box, 5, TAMIS_DELTA)) == TAMIS_EBASE);
    CHECK(tamis_follower_freshness(f) == TAMIS_BEHIND);
    CHECK(take(f, first(&box, 6, TAMIS_SNAPSHOT)) == TAMIS_OK);
    CHECK(tamis_follower_freshness(f) == TAMIS_CURRENT);
    tamis_follower_free(f);
    box_free(&box);
}

/* A copy that fell behind, of an origin that is silent for longer than its lease, takes an earlier
 * epoch too: the origin's clock was set back while it was away. */
TEST(a_copy_that_is_behind_has_a_lease_too)
{
    static struct box box;
    tamis_follower *f;
    now = 1000;
    live(&box, 5, 0);
    live(&box, 4, 0);
    CHECK(tamis_follower_new(
              &f, &(tamis_follower_options){.clock = harness_clock, .clock_context = &now}, NULL) ==
          TAMIS_OK);
    CHECK(take(f, first(&box, 5, TAMIS_SNAPSHOT)) == TAMIS_OK);
    CHECK(take(f, &box.sent[3]) == TAMIS_EBASE); /* a heartbeat of version 2 */
    CHECK(tamis_follower_freshness(f) == TAMIS_BEHIND);
    CHECK(take(f, first(&box, 4, TAMIS_SNAPSHOT)) == TAMIS_EBASE);
    now += 300;
    CHECK(take(f, first(&box, 4, TAMIS_SNAPSHOT)) == TAMIS_OK);
    CHECK(tamis_follower_freshness(f) == TAMIS_CURRENT);
    tamis_follower_free(f);
    box_free(&box);
}

/* The messages after a snapshot arrive once more with it, and a carrier measures their ages again, some of them as greater
   than before: the lease is nevertheless that of the snapshot. */
TEST(messages_that_come_again_with_a_snapshot_have_its_lease)
{
    static struct box box;
    tamis_follower *f;
    now = 1000;
    live(&box, 5, 0);
    live_with_beat(&box, 6, 0, 10000);
    CHECK(tamis_follower_new(
              &f, &(tamis_follower_options){.clock = harness_clock, .clock_context = &now}, NULL) ==
          TAMIS_OK);
    CHECK(take(f, first(&box, 5, TAMIS_SNAPSHOT)) == TAMIS_OK);
    CHECK(take(f, first(&box, 6, TAMIS_DELTA)) == TAMIS_EBASE);
    CHECK(take_aged(f, first(&box, 6, TAMIS_SNAPSHOT), 20) == TAMIS_OK);
    CHECK(take_aged(f, first(&box, 6, TAMIS_DELTA), 1) == TAMIS_OK);
    CHECK(tamis_follower_freshness(f) == TAMIS_CURRENT);
    now += 29998;
    CHECK(tamis_follower_freshness(f) == TAMIS_CURRENT);
    now += 2;
    CHECK(tamis_follower_freshness(f) == TAMIS_STALE);
    tamis_follower_free(f);
    box_free(&box);
}

/* A follower that starts again with a saved copy finds the delta that led to it, and perhaps no later message. */
TEST(the_delta_of_the_version_that_is_held_renews_the_lease)
{
    static struct box box;
    tamis_follower *f;
    now = 1000;
    live(&box, 5, 0);
    CHECK(tamis_follower_new(
              &f, &(tamis_follower_options){.clock = harness_clock, .clock_context = &now}, NULL) ==
          TAMIS_OK);
    CHECK(take(f, first(&box, 5, TAMIS_SNAPSHOT)) == TAMIS_OK);
    CHECK(take(f, first(&box, 5, TAMIS_DELTA)) == TAMIS_OK);
    CHECK(tamis_follower_save(f, "order.replica", NULL) == TAMIS_OK);
    tamis_follower_free(f);
    now += 300;
    CHECK(tamis_follower_new(
              &f, &(tamis_follower_options){.clock = harness_clock, .clock_context = &now}, NULL) ==
          TAMIS_OK);
    CHECK(tamis_follower_load(f, "order.replica", UINT64_MAX, TAMIS_DELAY_UNKNOWN, NULL) ==
          TAMIS_OK);
    CHECK(tamis_follower_freshness(f) == TAMIS_STALE);
    CHECK(take_aged(f, first(&box, 5, TAMIS_DELTA), 40) == TAMIS_OK);
    CHECK(tamis_follower_freshness(f) == TAMIS_CURRENT);
    now += 260;
    CHECK(tamis_follower_freshness(f) == TAMIS_STALE);
    tamis_follower_free(f);
    unlink("order.replica");
    box_free(&box);
}

HARNESS_MAIN
