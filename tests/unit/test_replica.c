/* Replicas: whatever happens to the filter, the messages, the origin and the follower, a copy is a
 * version of the origin to the bit, and what is no next version is refused by name.
 */
#include "harness.h"
#include "keys.h"
#include "histories.h"

#include "base/bytes.h"
#include "fault.h"
#include "set/set.h"
#include "tamis/replica.h"

/* ---- a channel that keeps, loses, repeats, swaps and damages --------------------------------- */

enum { QUEUE = 65536, VERSIONS = 4096 };
#define BITS  (TAMIS_SAVE_BITS_ONLY | TAMIS_SAVE_NO_KEY) /* what copies have in any case */
#define LEASE (UINT64_C(30) * 1000000000)                /* of the default heartbeats */

struct version {
    uint64_t epoch, number;
    struct bytes bits; /* the origin's filter when it was published, bits only */
};

struct world {
    uint64_t rng, now, epochs;
    uint64_t step; /* of the clock, whenever it is read */
    struct history history;
    tamis_filter *filter;
    tamis_origin *origin;
    tamis_follower *follower;
    struct bytes queue[QUEUE];
    size_t queued;
    uint64_t message_bytes;
    struct version versions[VERSIONS];
    size_t n_versions;
    size_t largest;
};

static uint64_t world_clock(void *context)
{
    struct world *w = context;
    w->now += w->step;
    return w->now;
}

static int enqueue(void *context, const void *data, size_t len)
{
    struct world *w = context;
    if (w->queued == QUEUE)
        return -1;
    w->queue[w->queued] = (struct bytes){0};
    w->largest = len > w->largest ? len : w->largest;
    return bytes_write(&w->queue[w->queued++], data, len);
}

static int refuse(void *context, const void *data, size_t len)
{
    (void)data, (void)len;
    unsigned *left = context;
    return (*left)-- == 0 ? -1 : 0;
}

static bool start_origin(struct world *w)
{
    tamis_reason reason = {0};
    tamis_origin_options o = {.owner = "store-7",
                              .epoch = ++w->epochs,
                              .message_bytes = w->message_bytes,
                              .clock = world_clock,
                              .clock_context = w};
    tamis_error e = tamis_origin_new(&w->origin, w->filter, &o, &reason);
    return CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
}

static bool start_follower(struct world *w)
{
    tamis_follower_options o = {.clock = world_clock, .clock_context = w};
    return CHECK(tamis_follower_new(&w->follower, &o, NULL) == TAMIS_OK);
}

/* False for filters that cannot be origins. */
static bool world_begin(struct world *w, unsigned kind, uint64_t seed, uint64_t message_bytes)
{
    memset(w, 0, sizeof *w);
    w->rng = seed;
    w->now = 1000;
    w->message_bytes = message_bytes;
    w->filter = history_new(&w->history, kind, seed);
    if (w->history.options.shared_adds) {
        tamis_filter_free(w->filter);
        return false;
    }
    return start_origin(w) && start_follower(w);
}

static void world_end(struct world *w)
{
    tamis_origin_free(w->origin);
    tamis_filter_free(w->filter);
    tamis_follower_free(w->follower);
    for (size_t i = 0; i < w->queued; i++)
        bytes_free(&w->queue[i]);
    for (size_t i = 0; i < w->n_versions; i++)
        bytes_free(&w->versions[i].bits);
}

/* What was published, to compare with. */
static void remember(struct world *w)
{
    tamis_origin_facts facts;
    tamis_origin_info(w->origin, &facts);
    for (size_t i = 0; i < w->n_versions; i++)
        if (w->versions[i].epoch == facts.epoch && w->versions[i].number == facts.version)
            return;
    if (w->n_versions < VERSIONS)
        w->versions[w->n_versions++] =
            (struct version){facts.epoch, facts.version, bytes_of(w->filter, BITS)};
}

static void publish(struct world *w, bool snapshot)
{
    tamis_reason reason = {0};
    tamis_estimate now;
    tamis_error e = snapshot ? tamis_origin_snapshot(w->origin, enqueue, w, &reason)
                             : tamis_origin_publish(w->origin, enqueue, w, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
    remember(w);
    CHECK(tamis_origin_due(w->origin) == TAMIS_DUE_NOT);
    tamis_origin_estimate(w->origin, &now);
    CHECK(now.set == 0 && now.cleared == 0 && now.missed == 0 && now.disagree == 0);
    CHECK(now.positive == now.own);
}

/* The copy is one of the versions, to the bit. */
static void check_copy(struct world *w)
{
    tamis_follower_facts facts;
    tamis_filter *copy;
    tamis_follower_info(w->follower, &facts);
    if (facts.version == 0)
        return;
    if (!CHECK(tamis_follower_filter(&copy, w->follower, NULL) == TAMIS_OK))
        return;
    struct bytes bits = bytes_of(copy, BITS);
    bool found = false;
    for (size_t i = 0; i < w->n_versions && !found; i++)
        if (w->versions[i].epoch == facts.epoch && w->versions[i].number == facts.version) {
            CHECK_MSG(bytes_equal(&bits, &w->versions[i].bits), "version %" PRIu64, facts.version);
            found = true;
        }
    CHECK(found);
    bytes_free(&bits);
    tamis_filter_free(copy);
}

/* Takes message i out of the queue and gives it to the follower. */
static tamis_error deliver(struct world *w, size_t i, bool keep, bool damage)
{
    struct bytes message = w->queue[i];
    tamis_taken taken;
    tamis_reason reason = {0};
    tamis_follower_facts before, after;
    tamis_follower_info(w->follower, &before);
    size_t at = rng_next(&w->rng) % message.len;
    uint8_t bit = (uint8_t)(1u << rng_next(&w->rng) % 8);
    if (damage)
        message.data[at] ^= bit;
    tamis_error e = tamis_follower_take(w->follower, message.data, message.len, 0, &taken, &reason);
    tamis_follower_info(w->follower, &after);
    CHECK((e == TAMIS_OK) == (taken != TAMIS_REFUSED));
    CHECK((e == TAMIS_OK) == (reason.text[0] == 0));
    CHECK((taken == TAMIS_APPLIED) ==
          (after.version != before.version || after.epoch != before.epoch));
    if (damage) {
        CHECK_MSG(e != TAMIS_OK, "byte %zu of %zu", at, message.len);
        message.data[at] ^= bit;
    } else if (e != TAMIS_OK) {
        CHECK_MSG(e == TAMIS_EBASE, "%s: %s", tamis_error_name(e), reason.text);
    }
    if (!keep) {
        bytes_free(&message);
        memmove(&w->queue[i], &w->queue[i + 1], (--w->queued - i) * sizeof *w->queue);
    }
    if (taken == TAMIS_APPLIED || rng_next(&w->rng) % 16 == 0) /* flexible ones may be large */
        check_copy(w);
    return e;
}

static void restart_follower_with(struct world *w, const tamis_follower_options *o)
{
    struct bytes file = {0};
    tamis_taken taken;
    tamis_follower_facts before, after;
    tamis_follower_info(w->follower, &before);
    tamis_error e = tamis_follower_encode(w->follower, bytes_write, &file);
    CHECK(e == (before.version ? TAMIS_OK : TAMIS_EKIND));
    tamis_follower_free(w->follower);
    CHECK(tamis_follower_new(&w->follower, o, NULL) == TAMIS_OK);
    if (e != TAMIS_OK)
        return;
    e = tamis_follower_take(w->follower, file.data, file.len, UINT64_MAX, &taken, NULL);
    CHECK(e == TAMIS_OK && taken == TAMIS_APPLIED);
    tamis_follower_info(w->follower, &after);
    CHECK(after.version == before.version && after.epoch == before.epoch);
    CHECK(strcmp(after.owner, before.owner) == 0 && after.freshness == TAMIS_STALE);
    CHECK(memcmp(&after.targets, &before.targets, sizeof after.targets) == 0);
    check_copy(w);
    bytes_free(&file);
}

static void restart_follower(struct world *w)
{
    restart_follower_with(w, &(tamis_follower_options){.clock = world_clock, .clock_context = w});
}

/* The origin's process ends; what it had is loaded again, and goes on as a new epoch. */
static void restart_origin(struct world *w)
{
    struct bytes file = bytes_of(w->filter, 0);
    tamis_open_options options = {.clock = history_clock, .clock_context = &w->history};
    tamis_reason reason = {0};
    tamis_origin_free(w->origin);
    tamis_filter_free(w->filter);
    tamis_error e = tamis_filter_decode(&w->filter, file.data, file.len, &options, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
    bytes_free(&file);
    start_origin(w);
}

/* Everything is delivered in the end, and a snapshot if one is needed. */
static void converge(struct world *w)
{
    tamis_follower_facts facts;
    tamis_origin_facts origin;
    publish(w, false);
    while (w->queued)
        deliver(w, 0, false, false);
    tamis_follower_info(w->follower, &facts);
    tamis_origin_info(w->origin, &origin);
    if (facts.needs_snapshot || facts.version != origin.version || facts.epoch != origin.epoch) {
        publish(w, true);
        while (w->queued)
            deliver(w, 0, false, false);
    }
    w->now += LEASE; /* a message of an earlier life may have made it contested */
    CHECK(tamis_origin_beat(w->origin, enqueue, w) == TAMIS_OK);
    CHECK(deliver(w, 0, false, false) == TAMIS_OK);
    tamis_follower_info(w->follower, &facts);
    tamis_origin_info(w->origin, &origin);
    CHECK(facts.version == origin.version && facts.epoch == origin.epoch);
    CHECK(facts.freshness == TAMIS_CURRENT && !facts.needs_snapshot);
    CHECK(history_compare(w->filter, w->filter) == 0);
    for (unsigned i = 0; i < HISTORY_KEYS; i++) {
        char key[24];
        size_t len = history_key(i, key);
        if (tamis_filter_has(w->filter, key, len))
            CHECK(tamis_follower_has(w->follower, key, len));
    }
}

static void random_step(struct world *w, bool trouble)
{
    unsigned pick = (unsigned)(rng_next(&w->rng) % 16);
    size_t any = w->queued ? rng_next(&w->rng) % w->queued : 0;
    w->now += rng_next(&w->rng) % 1000;
    if (pick < 5)
        history_steps(&w->history, w->filter, 1 + (unsigned)(rng_next(&w->rng) % 8));
    else if (pick < 8)
        publish(w, false);
    else if (pick == 8)
        CHECK(tamis_origin_beat(w->origin, enqueue, w) == TAMIS_OK ||
              tamis_origin_due(w->origin) == TAMIS_DUE_FIRST);
    else if (pick < 11 && w->queued)
        deliver(w, 0, false, false);
    else if (pick == 11)
        restart_follower(w);
    else if (!trouble || !w->queued)
        return;
    else if (pick == 12)
        deliver(w, any, false, false); /* out of turn */
    else if (pick == 13)
        deliver(w, any, true, rng_next(&w->rng) % 2); /* twice, or damaged */
    else if (pick == 14) {                            /* lost */
        bytes_free(&w->queue[any]);
        memmove(&w->queue[any], &w->queue[any + 1], (--w->queued - any) * sizeof *w->queue);
    } else if (rng_next(&w->rng) % 4 == 0)
        restart_origin(w);
    else
        publish(w, true);
}

static void run_world(unsigned kind, uint64_t seed, uint64_t message_bytes, bool trouble)
{
    static struct world w;
    unsigned long before = atomic_load(&harness.failed_checks);
    if (!world_begin(&w, kind, seed, message_bytes))
        return;
    for (unsigned part = 0; part < 3; part++) {
        for (unsigned i = 0; i < 40; i++)
            random_step(&w, trouble);
        converge(&w);
    }
    CHECK(!message_bytes || w.largest <= message_bytes);
    if (atomic_load(&harness.failed_checks) != before)
        printf("kind %u (%s), seed %" PRIu64 "\n", kind, history_kind(kind), seed);
    world_end(&w);
}

TEST(copies_are_versions_to_the_bit)
{
    uint64_t seed = harness_seed();
    for (unsigned round = 0; round < HARNESS_TIMES(4u, 60u); round++)
        for (unsigned kind = 0; kind < HISTORY_KINDS; kind++)
            run_world(kind, seed + 1000 * round + kind, round % 2 ? 1024 : 0, false);
}

TEST(lost_repeated_swapped_and_damaged_messages)
{
    uint64_t seed = harness_seed() ^ 77;
    for (unsigned round = 0; round < HARNESS_TIMES(5u, 60u); round++)
        for (unsigned kind = 0; kind < HISTORY_KINDS; kind++)
            run_world(kind, seed + 1000 * round + kind, round % 2 ? 1024 : 0, true);
}

/* ---- what changed ---------------------------------------------------------------------------- */

static const struct vector *with_id(const tamis_filter *f, uint32_t id)
{
    const struct layer *layer = set_layer_by_id(&f->set, id);
    return layer ? layer->part[0].vector : NULL;
}

/* Ones and zeros by which the filter differs from what it was, looked at bit by bit. */
static void count_changes(const tamis_filter *now, const tamis_filter *then, uint64_t *set,
                          uint64_t *cleared)
{
    const struct layers *a = set_layers(&now->set), *b = set_layers(&then->set);
    *set = *cleared = 0;
    for (uint32_t i = 0; i < layers_count(a); i++) {
        const struct vector *v = a->v[i], *old = with_id(then, a->l[i]->id);
        for (uint64_t p = 0; p < vector_positions_total(v); p++) {
            bool is = vector_bit(v, p), was = old && vector_bit(old, p);
            *set += is && !was;
            *cleared += was && !is;
        }
    }
    for (uint32_t i = 0; i < layers_count(b); i++)
        if (!with_id(now, b->l[i]->id))
            for (uint64_t p = 0; p < vector_positions_total(b->v[i]); p++)
                *cleared += vector_bit(b->v[i], p);
}

TEST(changed_bits_are_counted_as_they_change)
{
    static struct world w;
    uint64_t seed = harness_seed() ^ 4711;
    unsigned compared = 0, whole = 0;
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        if (!world_begin(&w, kind, seed + kind, 0))
            continue;
        for (unsigned i = 0; i < 40; i++) {
            tamis_filter *then;
            tamis_estimate now;
            publish(&w, false);
            if (!CHECK(tamis_filter_clone(&then, w.filter) == TAMIS_OK))
                break;
            history_steps(&w.history, w.filter, 1 + i % 7);
            tamis_origin_estimate(w.origin, &now);
            if (tamis_origin_due(w.origin) == TAMIS_DUE_WHOLE) {
                whole++;
            } else {
                uint64_t set, cleared;
                count_changes(w.filter, then, &set, &cleared);
                const struct lines *x = set_lines(&w.filter->set), *y = set_lines(&then->set);
                if (x) { /* adds and removals are counted, at the bits of a slot each */
                    bool same = y && lines_added(y) <= lines_added(x) && y->removed <= x->removed;
                    uint64_t removed = same ? x->removed - y->removed : y ? y->keys : 0;
                    set += (lines_added(x) - (same ? lines_added(y) : 0)) * x->width;
                    cleared += removed * x->width; /* others after a clear: all that there were */
                }
                CHECK_MSG(now.set == set && now.cleared == cleared,
                          "kind %u: %" PRIu64 " %" PRIu64 " for %" PRIu64 " %" PRIu64, kind,
                          now.set, now.cleared, set, cleared);
                compared++;
            }
            tamis_filter_free(then);
        }
        world_end(&w);
    }
    CHECK_MSG(compared > 500 && whole > 20, "%u compared, %u whole", compared, whole);
}

/* Members that the published version denies, counted by asking it. */
TEST(missed_members_are_counted)
{
    static const tamis_growth growths[] = {TAMIS_FIXED, TAMIS_DYNAMIC, TAMIS_SCALABLE,
                                           TAMIS_FLEXIBLE, TAMIS_SMOOTH};
    for (unsigned kind = 0; kind < 10; kind++) {
        tamis_growth growth = growths[kind % 5];
        tamis_options options = {.capacity = 4000,
                                 .growth = growth,
                                 .layout =
                                     growth == TAMIS_DYNAMIC ? TAMIS_SPREAD : TAMIS_LAYOUT_DEFAULT,
                                 .deletable = kind >= 5,
                                 .overfill = growth != TAMIS_SMOOTH};
        tamis_origin_options o = {.owner = "x"};
        static struct world w;
        tamis_filter *f, *then;
        tamis_origin *origin;
        tamis_estimate now;
        uint64_t denied = 0, n = 3000, gone = options.deletable ? 400 : 0;
        memset(&w, 0, sizeof w);
        if (!CHECK(tamis_filter_new(&f, &options, NULL) == TAMIS_OK) ||
            !CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK))
            return;
        for (uint64_t i = 0; i < 2000; i++)
            CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
        CHECK(tamis_origin_publish(origin, enqueue, &w, NULL) == TAMIS_OK);
        CHECK(tamis_filter_clone(&then, f) == TAMIS_OK);
        for (uint64_t i = 2000; i < n; i++)
            CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
        for (uint64_t i = 1800; i < 1800 + gone; i++)
            CHECK(tamis_filter_remove(f, &i, sizeof i, NULL) == TAMIS_OK);
        for (uint64_t i = 0; i < n; i++)
            if (i < 1800 || i >= 1800 + gone)
                denied += !tamis_filter_has(then, &i, sizeof i);
        tamis_origin_estimate(origin, &now);
        /* Lines count adds and removals, and not which of the added keys were removed again. */
        double expected = growth == TAMIS_SMOOTH ? (double)(n - 2000) : (double)denied;
        double off = ((double)now.missed - expected) / expected;
        CHECK_MSG(off > -0.02 && off < 0.02, "kind %u: %" PRIu64 " for %g", kind, now.missed,
                  expected);
        CHECK_MSG((double)now.missed > 0.98 * (double)denied, "kind %u: %" PRIu64 " of %" PRIu64,
                  kind, now.missed, denied);
        double miss = expected / (double)(n - gone);
        CHECK_MSG(now.member_miss > 0.95 * miss && now.member_miss < 1.05 * miss, "%g for %g",
                  now.member_miss, miss);
        tamis_origin_free(origin);
        tamis_filter_free(f);
        tamis_filter_free(then);
        for (size_t i = 0; i < w.queued; i++)
            bytes_free(&w.queue[i]);
    }
}

/* ---- targets, time, refusals ----------------------------------------------------------------- */

TEST(each_target_asks_for_itself)
{
    static struct world w;
    const tamis_targets targets[] = {{.member_miss = 0.05},
                                     {.member_miss = -1, .false_rate = 0.03, .w_disagree = 10},
                                     {.member_miss = -1, .dirty = 0.02},
                                     {.member_miss = -1, .max_age = 5000}};
    const tamis_due due[] = {TAMIS_DUE_MEMBER_MISS, TAMIS_DUE_FALSE_RATE, TAMIS_DUE_DIRTY,
                             TAMIS_DUE_AGE};
    for (unsigned i = 0; i < 4; i++) {
        tamis_options options = {.capacity = 20000, .growth = TAMIS_FIXED, .deletable = true};
        memset(&w, 0, sizeof w);
        tamis_origin_options o = {
            .owner = "x", .targets = targets[i], .clock = world_clock, .clock_context = &w};
        tamis_filter *f;
        tamis_origin *origin;
        uint64_t n = 10000;
        CHECK(tamis_filter_new(&f, &options, NULL) == TAMIS_OK);
        CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
        w.now = 1;
        add_all(f, 0, n);
        CHECK(tamis_origin_due(origin) == TAMIS_DUE_FIRST);
        CHECK(tamis_origin_publish(origin, enqueue, &w, NULL) == TAMIS_OK);
        while (tamis_origin_due(origin) == TAMIS_DUE_NOT && n < 20000) {
            add_all(f, n, n + 10);
            n += 10;
            w.now += 10;
        }
        tamis_estimate now;
        tamis_origin_estimate(origin, &now);
        CHECK_MSG(tamis_origin_due(origin) == due[i], "%d at %" PRIu64,
                  (int)tamis_origin_due(origin), n);
        CHECK_MSG(i != 0 || (now.member_miss > 0.05 && now.member_miss < 0.0512), "%g",
                  now.member_miss);
        CHECK_MSG(i != 1 || (now.weighted > 0.03 && now.weighted < 0.032), "%g", now.weighted);
        CHECK_MSG(i != 2 || (now.dirty > 0.02 && now.dirty < 0.0205), "%g", now.dirty);
        tamis_origin_free(origin);
        tamis_filter_free(f);
        for (size_t j = 0; j < w.queued; j++)
            bytes_free(&w.queue[j]);
    }
}

/* Removals alone: the copies say "maybe" too often, and never "no" wrongly. */
TEST(removals_raise_the_false_positives_of_copies)
{
    tamis_options options = {.capacity = 10000, .growth = TAMIS_FIXED, .deletable = true};
    tamis_origin_options o = {.owner = "x", .targets = {.member_miss = -1, .false_rate = 0.002}};
    static struct world w;
    tamis_filter *f;
    tamis_origin *origin;
    tamis_estimate now;
    memset(&w, 0, sizeof w);
    CHECK(tamis_filter_new(&f, &options, NULL) == TAMIS_OK);
    CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
    add_all(f, 0, 10000);
    CHECK(tamis_origin_publish(origin, enqueue, &w, NULL) == TAMIS_OK);
    tamis_origin_estimate(origin, &now);
    CHECK(now.unreachable); /* full, the filter itself has 1 % */
    CHECK(tamis_origin_due(origin) == TAMIS_DUE_NOT);
    take_all(f, 0, 9000);
    tamis_origin_estimate(origin, &now);
    CHECK(!now.unreachable && now.missed == 0 && now.set == 0 && now.cleared > 30000);
    CHECK(now.positive > 0.009 && now.own < 1e-4 && now.disagree == 0);
    CHECK(tamis_origin_due(origin) == TAMIS_DUE_FALSE_RATE);
    tamis_origin_free(origin);
    tamis_filter_free(f);
    bytes_free(&w.queue[0]);
}

TEST(a_lease_runs_out_and_is_renewed)
{
    static struct world w;
    if (!CHECK(world_begin(&w, 15, 1, 0)))
        return;
    tamis_origin_free(w.origin);
    tamis_origin_options o = {
        .owner = "store-7", .beat = 100, .clock = world_clock, .clock_context = &w};
    CHECK(tamis_origin_new(&w.origin, w.filter, &o, NULL) == TAMIS_OK);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_UNKNOWN);
    CHECK(tamis_follower_has(w.follower, "anything", 8));
    publish(&w, false);
    deliver(&w, 0, false, false);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    CHECK(!tamis_follower_has(w.follower, "anything", 8));
    w.now += 299;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    w.now += 1;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    tamis_follower_facts facts;
    CHECK(tamis_follower_take(w.follower, w.queue[0].data, w.queue[0].len, 250, NULL, NULL) ==
          TAMIS_OK); /* it was on its way for 250 */
    tamis_follower_info(w.follower, &facts);
    CHECK(facts.freshness == TAMIS_CURRENT && facts.age == 250 && facts.lease == 300);
    w.now += 50;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    CHECK(tamis_follower_take(w.follower, w.queue[0].data, w.queue[0].len, 1000, NULL, NULL) ==
          TAMIS_OK);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    deliver(&w, 0, false, false);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    CHECK(tamis_origin_farewell(w.origin, enqueue, &w) == TAMIS_OK);
    CHECK(
        tamis_follower_take(w.follower, w.queue[0].data, w.queue[0].len, 200, NULL, NULL) ==
        TAMIS_OK); /* the last of its run, even if a clock says that it is older than the one before */
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_GONE);
    world_end(&w);
}

/* A busy machine: between any two looks at the clock more than a lease passes. */
TEST(the_time_that_taking_a_message_takes_counts)
{
    static struct world w;
    tamis_follower_facts facts;
    if (!CHECK(world_begin(&w, 15, 1, 0)))
        return;
    tamis_origin_free(w.origin);
    tamis_origin_options o = {
        .owner = "store-7", .beat = 100, .clock = world_clock, .clock_context = &w};
    CHECK(tamis_origin_new(&w.origin, w.filter, &o, NULL) == TAMIS_OK);
    for (unsigned kind = 0; kind < 2; kind++) { /* a snapshot, a delta */
        add_all(w.filter, 10 * kind, 10 * kind + 10);
        publish(&w, false);
        uint64_t arrived = w.now + 400;
        w.step = 400;
        CHECK(tamis_follower_take(w.follower, w.queue[kind].data, w.queue[kind].len, 0, NULL,
                                  NULL) == TAMIS_OK);
        w.step = 0;
        w.now = arrived + 4000;
        tamis_follower_info(w.follower, &facts);
        CHECK_MSG(facts.freshness == TAMIS_STALE && facts.age == 4000, "%u: %llu", kind,
                  (unsigned long long)facts.age);
    }
    world_end(&w);
}

/* The clock of an origin was set back, and it lives on with a lower epoch. */
TEST(a_stale_copy_takes_an_earlier_epoch)
{
    static struct world w;
    if (!CHECK(world_begin(&w, 15, 1, 0)))
        return;
    w.epochs = 9;
    restart_origin(&w);
    publish(&w, false);
    deliver(&w, 0, false, false);
    w.epochs = 4;
    restart_origin(&w);
    publish(&w, false);
    w.now += 7; /* sent after the higher one began: both are alive, as far as can be told */
    CHECK(deliver(&w, 0, true, false) == TAMIS_EBASE);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CONTESTED);
    w.now += UINT64_C(1) << 40;
    CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    world_end(&w);
}

/* A world whose origin beats every 100, with a first copy. */
static bool beating_world(struct world *w, const tamis_follower_options *options, bool no_key)
{
    if (!CHECK(world_begin(w, 15, 1, 0)))
        return false;
    tamis_origin_free(w->origin);
    tamis_follower_free(w->follower);
    tamis_origin_options o = {.owner = "store-7",
                              .epoch = 5,
                              .beat = 100,
                              .no_key = no_key,
                              .clock = world_clock,
                              .clock_context = w};
    w->now = UINT64_C(1) << 40;
    CHECK(tamis_origin_new(&w->origin, w->filter, &o, NULL) == TAMIS_OK);
    CHECK(tamis_follower_new(&w->follower, options, NULL) == TAMIS_OK);
    publish(w, false);
    return true;
}

static uint64_t other_clock(void *context) /* of another machine, which was started later */
{
    return ((struct world *)context)->now - (UINT64_C(1) << 39);
}

/* Messages that waited together, in a server that was stopped: the carrier takes them for new. */
TEST(late_messages_renew_no_lease)
{
    static struct world w;
    tamis_follower_options options = {.clock = other_clock, .clock_context = &w};
    if (!beating_world(&w, &options, false))
        return;
    deliver(&w, 0, false, false);
    for (unsigned i = 0; i < 20; i++) { /* never at once, but sometimes after 3 */
        CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
        w.now += 3 + 5 * (i % 4);
        CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
        CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
        w.now += 90;
    }
    for (unsigned i = 0; i < 10; i++) {
        CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
        w.now += 100;
    }
    w.now += 250; /* the last of them is 350 old, more than a lease */
    while (w.queued)
        CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    w.now += 203; /* this one is 200 late, and good for 100 */
    CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    w.now += 100;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    world_end(&w);
}

/* A server that was restored from older data sends what earlier runs left there, and then a heartbeat that waited at
   the origin for as long as the server was down: nobody but the yardstick of its run knows that it did. */
TEST(messages_of_earlier_runs_do_not_hide_that_one_is_late)
{
    static struct world w, runs[2];
    tamis_follower_options options = {.clock = other_clock, .clock_context = &w};
    if (!beating_world(&w, &options, false))
        return;
    for (unsigned i = 0; i < 2; i++) { /* epochs 3 and 4; the one that counts has 5 */
        memset(&runs[i], 0, sizeof runs[i]);
        tamis_origin_options o = {.owner = "store-7",
                                  .epoch = 3 + i,
                                  .beat = 100,
                                  .clock = world_clock,
                                  .clock_context = &w};
        CHECK(tamis_filter_clone(&runs[i].filter, w.filter) == TAMIS_OK);
        CHECK(tamis_origin_new(&runs[i].origin, runs[i].filter, &o, NULL) == TAMIS_OK);
        CHECK(tamis_origin_publish(runs[i].origin, enqueue, &runs[i], NULL) == TAMIS_OK);
        CHECK(tamis_origin_beat(runs[i].origin, enqueue, &runs[i]) == TAMIS_OK);
    }
    deliver(&w, 0, false, false);
    w.now += 100;
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    w.now += 350; /* more than a lease */
    for (unsigned i = 0; i < 2; i++)
        tamis_follower_take(w.follower, runs[i].queue[1].data, runs[i].queue[1].len, UINT64_MAX,
                            NULL, NULL);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_BEHIND);
    CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    world_end(&w);
    world_end(&runs[0]);
    world_end(&runs[1]);
}

/* A heartbeat that waited at the origin is the first message after the follower was started again: only the delay that
   was kept beside the copy shows that it waited. */
TEST(a_follower_that_starts_again_knows_that_a_message_is_late)
{
    const char *path = "late.replica";
    for (unsigned many = 0; many < 2; many++) {
        static struct world w;
        tamis_follower_options options = {.clock = other_clock, .clock_context = &w};
        tamis_follower_facts facts;
        if (!beating_world(&w, &options, false))
            return;
        tamis_follower_info(w.follower, &facts);
        CHECK(facts.delay == TAMIS_DELAY_UNKNOWN);
        w.now += 7;
        deliver(&w, 0, false, false);
        tamis_follower_info(w.follower, &facts);
        CHECK(facts.delay == 7 - (INT64_C(1) << 39));
        CHECK(tamis_follower_save(w.follower, path, NULL) == TAMIS_OK);
        w.now += 1000; /* heartbeats that left no trace in the file */
        CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
        w.now += 9;
        CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
        tamis_follower_info(w.follower, &facts);
        CHECK(facts.delay == 7 - (INT64_C(1) << 39));
        CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
        w.now += 350; /* more than a lease */

        tamis_directory_options together = {.clock = other_clock, .clock_context = &w};
        tamis_directory *d = NULL;
        const tamis_follower *again = NULL;
        tamis_follower_free(w.follower);
        CHECK(tamis_follower_new(&w.follower, &options, NULL) == TAMIS_OK);
        if (many && CHECK(tamis_directory_new(&d, &together, NULL) == TAMIS_OK) &&
            CHECK(tamis_directory_load(d, "store-7", path, UINT64_MAX, facts.delay, NULL) ==
                  TAMIS_OK))
            again = tamis_directory_follower(d, tamis_directory_number(d, "store-7"));
        if (!many &&
            CHECK(tamis_follower_load(w.follower, path, UINT64_MAX, facts.delay, NULL) == TAMIS_OK))
            again = w.follower;
        for (unsigned i = 0; again && i < 2; i++) { /* the late one, then a new one */
            const struct bytes *m = &w.queue[0];
            CHECK(tamis_follower_freshness(again) == TAMIS_STALE);
            CHECK(!many ||
                  tamis_directory_take(d, NULL, m->data, m->len, 0, NULL, NULL) == TAMIS_OK);
            deliver(&w, 0, false, false);
            CHECK(tamis_follower_freshness(again) == (i ? TAMIS_CURRENT : TAMIS_STALE));
            CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
        }
        tamis_directory_free(d);
        world_end(&w);
        unlink(path);
    }
}

/* The way became permanently longer, by more than a lease: late at first, then the measure. */
TEST(a_longer_way_becomes_the_measure)
{
    static struct world w;
    tamis_follower_options options = {.clock = world_clock, .clock_context = &w};
    uint64_t stale = 0, current = 0;
    if (!beating_world(&w, &options, false))
        return;
    deliver(&w, 0, false, false);
    for (unsigned i = 0; i < 40; i++) {
        CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
        w.now += 100;
        if (w.queued > 5)
            deliver(&w, 0, false, false);
        stale += i > 4 && i < 10 && tamis_follower_freshness(w.follower) == TAMIS_STALE;
        current += i > 20 && tamis_follower_freshness(w.follower) == TAMIS_CURRENT;
    }
    CHECK_MSG(stale == 5 && current == 19, "%d stale, %d current", (int)stale, (int)current);
    world_end(&w);
}

TEST(who_is_cut_off_doubts_after_one_beat)
{
    static struct world w;
    tamis_follower_options options = {.clock = world_clock, .clock_context = &w};
    if (!beating_world(&w, &options, false))
        return;
    deliver(&w, 0, false, false);
    tamis_follower_contact(w.follower, 0);
    w.now += 99;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    tamis_follower_contact(w.follower, 0);
    w.now += 99;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    w.now += 1;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    tamis_follower_contact(w.follower, 30); /* the lease of three beats is still on */
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    w.now += 70;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    w.now += 31;
    tamis_follower_contact(w.follower, 0);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    world_end(&w);
}

TEST(leases_have_a_ceiling)
{
    static struct world w;
    tamis_follower_options options = {.lease_most = 150, .clock = world_clock, .clock_context = &w};
    if (!beating_world(&w, &options, false))
        return;
    deliver(&w, 0, false, false);
    w.now += 149;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    w.now += 1;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_STALE);
    world_end(&w);
}

/* Two origins under one name, both alive: the higher epoch counts, and the copy is contested as long as
   the other one speaks. What was on its way when the first one ended makes no doubt. */
TEST(two_origins_with_one_name_are_contested)
{
    static struct world w, other;
    tamis_follower_options options = {.clock = world_clock, .clock_context = &w};
    if (!beating_world(&w, &options, false))
        return;
    deliver(&w, 0, false, false);
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK); /* on its way */
    w.now += 20;
    memset(&other, 0, sizeof other);
    tamis_origin_options o = {
        .owner = "store-7", .epoch = 6, .beat = 100, .clock = world_clock, .clock_context = &w};
    CHECK(tamis_filter_clone(&other.filter, w.filter) == TAMIS_OK);
    CHECK(tamis_origin_new(&other.origin, other.filter, &o, NULL) == TAMIS_OK);
    add_all(other.filter, 0, 10);
    CHECK(tamis_origin_publish(other.origin, enqueue, &other, NULL) == TAMIS_OK);
    CHECK(tamis_follower_take(w.follower, other.queue[0].data, other.queue[0].len, 0, NULL, NULL) ==
          TAMIS_OK);
    w.now += 5;
    CHECK(tamis_follower_take(w.follower, w.queue[0].data, w.queue[0].len, 0, NULL, NULL) ==
          TAMIS_EBASE);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    w.now += 50;
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    CHECK(tamis_follower_take(w.follower, w.queue[1].data, w.queue[1].len, 0, NULL, NULL) ==
          TAMIS_EBASE);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CONTESTED);
    w.now += 299;
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CONTESTED);
    w.now += 1;
    CHECK(tamis_origin_beat(other.origin, enqueue, &other) == TAMIS_OK);
    CHECK(tamis_follower_take(w.follower, other.queue[1].data, other.queue[1].len, 0, NULL, NULL) ==
          TAMIS_OK);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    world_end(&w);
    world_end(&other);
}

/* A forged empty snapshot with everything right that can be read off the stream: the tag of the family,
   owner, epoch and version. Its filter is of another key, which the forger does not have to name. */
TEST(with_the_key_only_sealed_messages_are_taken)
{
    static struct world w, forged;
    uint8_t key[TAMIS_KEY_LEN];
    tamis_reason reason = {0};
    tamis_taken taken;
    if (!CHECK(world_begin(&w, 15, 1, 0)))
        return;
    memcpy(key, set_family(&w.filter->set)->secrets->key, sizeof key);
    world_end(&w);
    tamis_follower_options options = {.key = key, .clock = world_clock, .clock_context = &w};
    if (!beating_world(&w, &options, true))
        return;
    CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
    memset(&forged, 0, sizeof forged);
    tamis_origin_options o = {
        .owner = "store-7", .epoch = 6, .clock = world_clock, .clock_context = &w};
    tamis_options empty = {.capacity = 100, .key = key};
    for (unsigned sealed = 0; sealed < 2; sealed++) {
        uint8_t other[TAMIS_KEY_LEN] = "another key";
        empty.key = sealed ? other : key; /* not sealed, or with a key of his own */
        o.no_key = sealed;
        CHECK(tamis_filter_new(&forged.filter, &empty, NULL) == TAMIS_OK);
        CHECK(tamis_origin_new(&forged.origin, forged.filter, &o, NULL) == TAMIS_OK);
        CHECK(tamis_origin_publish(forged.origin, enqueue, &forged, NULL) == TAMIS_OK);
        CHECK(tamis_origin_beat(forged.origin, enqueue, &forged) == TAMIS_OK);
        CHECK(tamis_origin_farewell(forged.origin, enqueue, &forged) == TAMIS_OK);
        for (size_t i = 0; i < forged.queued; i++) {
            CHECK(tamis_follower_take(w.follower, forged.queue[i].data, forged.queue[i].len, 0,
                                      &taken, &reason) == TAMIS_EFAMILY);
            CHECK_MSG(strstr(reason.text, "not sealed"), "%s", reason.text);
        }
        CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
        world_end(&forged);
        memset(&forged, 0, sizeof forged);
    }
    restart_follower_with(&w, &options); /* what it saves it takes again */
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    for (size_t at = 0; at < w.queue[0].len;
         at++) { /* nor with a byte changed and the sum made right */
        struct bytes *m = &w.queue[0];
        uint64_t sum;
        m->data[at] ^= 1;
        if (at < m->len - 24)
            sum = hash_of(m->data, m->len - 24), memcpy(m->data + m->len - 24, &sum, sizeof sum);
        CHECK(tamis_follower_take(w.follower, m->data, m->len, 0, NULL, NULL) != TAMIS_OK);
        m->data[at] ^= 1;
        sum = hash_of(m->data, m->len - 24), memcpy(m->data + m->len - 24, &sum, sizeof sum);
    }
    CHECK(deliver(&w, 0, false, false) == TAMIS_OK);
    world_end(&w);
}

TEST(heartbeats_are_small)
{
    static struct world w;
    if (!CHECK(world_begin(&w, 15, 1, 0)))
        return;
    add_all(w.filter, 0, 300);
    publish(&w, false);
    add_all(w.filter, 300, 400);
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    CHECK_MSG(w.queue[w.queued - 1].len <= 68, "%zu bytes", w.queue[w.queued - 1].len);
    world_end(&w);
}

TEST(what_does_not_belong_is_named)
{
    static struct world w, other;
    tamis_reason reason = {0};
    tamis_taken taken;
    if (!CHECK(world_begin(&w, 15, 1, 0)))
        return;
    if (!CHECK(world_begin(&other, 15, 2, 0)))
        return;
    publish(&w, false);
    publish(&other, false);
    deliver(&w, 0, false, false);
    tamis_origin_free(other.origin);
    tamis_origin_options o = {.owner = "store-8", .epoch = 1};
    CHECK(tamis_origin_new(&other.origin, other.filter, &o, NULL) == TAMIS_OK);
    publish(&other, false);
    CHECK(tamis_follower_take(w.follower, other.queue[1].data, other.queue[1].len, 0, &taken,
                              &reason) == TAMIS_EFAMILY);
    CHECK_MSG(strstr(reason.text, "store-8") && strstr(reason.text, "store-7"), "%s", reason.text);
    add_all(other.filter, 0, 10);
    tamis_origin_free(other.origin); /* the right name and epoch, another family */
    o.owner = "store-7";
    CHECK(tamis_origin_new(&other.origin, other.filter, &o, NULL) == TAMIS_OK);
    publish(&other, false);
    add_all(other.filter, 10, 20);
    publish(&other, false);
    CHECK(tamis_follower_take(w.follower, other.queue[3].data, other.queue[3].len, 0, &taken,
                              &reason) == TAMIS_EFAMILY);
    CHECK_MSG(strstr(reason.text, "another family"), "%s", reason.text);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    /* two deltas, the second first */
    add_all(w.filter, 0, 5);
    publish(&w, false);
    add_all(w.filter, 5, 9);
    publish(&w, false);
    CHECK(tamis_follower_take(w.follower, w.queue[1].data, w.queue[1].len, 0, &taken, &reason) ==
          TAMIS_EBASE);
    CHECK_MSG(strstr(reason.text, "version 2") && strstr(reason.text, "version 1") &&
                  strstr(reason.text, "snapshot"),
              "%s", reason.text);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_BEHIND);
    deliver(&w, 0, false, false);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_BEHIND);
    deliver(&w, 0, false, false);
    CHECK(tamis_follower_freshness(w.follower) == TAMIS_CURRENT);
    /* no message at all */
    struct bytes filter = bytes_of(w.filter, 0);
    CHECK(tamis_follower_take(w.follower, filter.data, filter.len, 0, &taken, &reason) ==
          TAMIS_EKIND);
    CHECK(tamis_follower_take(w.follower, "nothing", 7, 0, &taken, &reason) == TAMIS_EFORMAT);
    bytes_free(&filter);
    world_end(&w);
    world_end(&other);
}

TEST(every_damaged_byte_is_noticed)
{
    static struct world w;
    if (!CHECK(world_begin(&w, 17, 5, 0)))
        return;
    publish(&w, false);
    history_steps(&w.history, w.filter, 20);
    publish(&w, false);
    CHECK(tamis_origin_beat(w.origin, enqueue, &w) == TAMIS_OK);
    for (size_t i = 0; i < w.queued; i++) {
        struct bytes *m = &w.queue[i];
        tamis_message read;
        unsigned seen = 0;
        CHECK(tamis_message_read(&read, m->data, m->len, NULL) == TAMIS_OK);
        CHECK(strcmp(read.owner, "store-7") == 0);
        for (size_t at = 0; at < m->len; at++) {
            m->data[at] ^= (uint8_t)(1u << at % 8);
            seen += tamis_message_read(&read, m->data, m->len, NULL) == TAMIS_OK;
            m->data[at] ^= (uint8_t)(1u << at % 8);
        }
        for (size_t len = 0; len < m->len; len += 1 + len / 8)
            seen += tamis_message_read(&read, m->data, len, NULL) == TAMIS_OK;
        CHECK(seen == 0);
    }
    world_end(&w);
}

/* ---- failures -------------------------------------------------------------------------------- */

TEST(a_failed_write_burns_the_version)
{
    static struct world w;
    if (!CHECK(world_begin(&w, 15, 11, 1024)))
        return;
    publish(&w, false);
    while (w.queued)
        deliver(&w, 0, false, false);
    add_all(w.filter, 0, 500);
    tamis_origin_facts facts;
    unsigned left = 1;
    CHECK(tamis_origin_publish(w.origin, refuse, &left, NULL) == TAMIS_EIO);
    tamis_origin_info(w.origin, &facts);
    CHECK(facts.version == 1);
    CHECK(tamis_origin_due(w.origin) == TAMIS_DUE_FIRST);
    add_all(w.filter, 500, 600);
    publish(&w, false);
    tamis_message m;
    CHECK(tamis_message_read(&m, w.queue[0].data, w.queue[0].len, NULL) == TAMIS_OK);
    CHECK(m.type == TAMIS_SNAPSHOT && m.version == 3 && m.parts > 1);
    converge(&w);
    world_end(&w);
}

TEST(without_memory_nothing_changes)
{
    static struct world w;
    for (unsigned kind = 0; kind < 3; kind++) {
        struct fault fault;
        fault_init(&fault);
        memset(&w, 0, sizeof w);
        tamis_options options = {.capacity = 1000,
                                 .growth = kind == 2 ? TAMIS_DYNAMIC : TAMIS_SCALABLE,
                                 .deletable = kind == 1,
                                 .allocator = &fault.allocator};
        tamis_origin_options o = {.owner = "x", .message_bytes = 1024};
        tamis_follower_options fo = {.allocator = &fault.allocator};
        CHECK(tamis_filter_new(&w.filter, &options, NULL) == TAMIS_OK);
        CHECK(tamis_origin_new(&w.origin, w.filter, &o, NULL) == TAMIS_OK);
        CHECK(tamis_follower_new(&w.follower, &fo, NULL) == TAMIS_OK);
        for (unsigned round = 0; round < 3; round++) {
            add_all(w.filter, 200 * round, 200 * (round + 1));
            tamis_error e = TAMIS_ENOMEM;
            for (uint64_t n = 1; e != TAMIS_OK && n < 1000; n++) {
                size_t before = w.queued;
                fault_arm(&fault, n, false);
                e = tamis_origin_publish(w.origin, enqueue, &w, NULL);
                fault_arm(&fault, 0, false);
                CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
                if (e == TAMIS_OK)
                    break;
                while (w.queued > before) /* a torn version: those parts are lost */
                    bytes_free(&w.queue[--w.queued]);
            }
            remember(&w);
            e = TAMIS_ENOMEM;
            for (uint64_t n = 1; e != TAMIS_OK && n < 1000; n++) { /* all parts, again and again */
                fault_arm(&fault, n, false);
                e = TAMIS_OK;
                for (size_t i = 0; i < w.queued && e == TAMIS_OK; i++)
                    e = tamis_follower_take(w.follower, w.queue[i].data, w.queue[i].len, 0, NULL,
                                            NULL);
                fault_arm(&fault, 0, false);
                CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
                check_copy(&w);
            }
            CHECK(e == TAMIS_OK);
            for (size_t i = 0; i < w.queued; i++)
                bytes_free(&w.queue[i]);
            w.queued = 0;
            tamis_follower_facts facts;
            tamis_follower_info(w.follower, &facts);
            CHECK_MSG(facts.version != 0, "kind %u round %u", kind, round);
        }
        world_end(&w);
        CHECK(fault_clean(&fault));
    }
}

TEST(options_are_checked)
{
    tamis_filter *f, *shared;
    tamis_origin *origin = NULL, *second = NULL;
    tamis_reason reason = {0};
    tamis_options plain = {.growth = TAMIS_FIXED},
                  many = {.growth = TAMIS_FIXED, .shared_adds = true};
    char name[300];
    static struct world w;
    memset(&w, 0, sizeof w);
    memset(name, 'x', sizeof name);
    name[256] = 0;
    CHECK(tamis_filter_new(&f, &plain, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&shared, &many, NULL) == TAMIS_OK);
    const tamis_origin_options bad[] = {{0},
                                        {.owner = ""},
                                        {.owner = name},
                                        {.owner = "x", .message_bytes = 1000},
                                        {.owner = "x", .beat = UINT64_MAX},
                                        {.owner = "x", .targets = {.w_positive = -1}},
                                        {.owner = "x", .targets = {.member_miss = 0.0 / 0.0}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reason.text[0] = 0;
        CHECK_MSG(tamis_origin_new(&origin, f, &bad[i], &reason) == TAMIS_EARG, "%zu", i);
        CHECK(reason.text[0] != 0);
    }
    tamis_origin_options good = {.owner = "x"};
    CHECK(tamis_origin_new(&origin, shared, &good, &reason) == TAMIS_EKIND);
    CHECK(tamis_origin_new(&origin, f, &good, NULL) == TAMIS_OK);
    CHECK(tamis_origin_beat(origin, enqueue, &w) == TAMIS_EKIND); /* nothing to speak of yet */
    CHECK(tamis_origin_new(&second, f, &good, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(origin, enqueue, &w, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(second, enqueue, &w, &reason) == TAMIS_EARG);
    CHECK_MSG(strstr(reason.text, "another origin"), "%s", reason.text);
    tamis_origin_free(second);
    add_all(f, 0, 100);
    CHECK(tamis_origin_due(origin) == TAMIS_DUE_MEMBER_MISS);
    CHECK(tamis_origin_publish(origin, enqueue, &w, NULL) == TAMIS_OK);
    CHECK(w.queued == 2);
    CHECK(tamis_origin_publish(origin, enqueue, &w, NULL) == TAMIS_OK); /* nothing changed */
    CHECK(w.queued == 2);
    tamis_origin_free(origin);
    tamis_filter_free(f);
    tamis_filter_free(shared);
    for (size_t i = 0; i < w.queued; i++)
        bytes_free(&w.queue[i]);
}

HARNESS_MAIN
