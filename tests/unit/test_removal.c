/* Removal: what it answers, what stays pending, that nothing is left, and that long churn neither
 * grows the filter nor raises its rate.
 */
#include <math.h>

#include "set/set.h"
#include "harness.h"
#define KEY_TYPE uint32_t
#include "keys.h"

static const uint8_t family_key[TAMIS_KEY_LEN] = "removal";
static uint64_t clock_now;

static uint64_t fake_clock(void *context)
{
    (void)context;
    return clock_now += 1000;
}

static tamis_filter *filter_of(tamis_options o)
{
    tamis_filter *f = NULL;
    o.deletable = true;
    o.key = o.key ? o.key : family_key;
    o.clock = fake_clock;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    return f;
}

static void shuffle(uint32_t *keys, uint32_t n, uint64_t *rng)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)(rng_next(rng) % i), key = keys[j];
        keys[j] = keys[i - 1];
        keys[i - 1] = key;
    }
}

enum order { INSERTED, REVERSED, RANDOM };

static uint32_t *keys_in_order(uint32_t n, enum order order, uint64_t *rng)
{
    uint32_t *keys = malloc(n * sizeof *keys);
    for (uint32_t i = 0; keys && i < n; i++)
        keys[i] = order == REVERSED ? n - 1 - i : i;
    if (keys && order == RANDOM)
        shuffle(keys, n, rng);
    return keys;
}

/* Empty: no item, nothing pending, no bit, no counter, one vector, the memory of a new one. */
static bool nothing_left(const tamis_filter *f, const tamis_filter *new)
{
    tamis_filter_facts is = info_of(f), was = info_of(new);
    const struct vector *v = set_layers(&f->set)->v[0];
    uint64_t bits = 0, counters = 0;
    for (uint64_t i = 0; i < vector_positions_total(v); i++) {
        bits += vector_bit(v, i);
        counters += counters_get(&v->counters, i);
    }
    return CHECK_MSG(is.items == 0 && is.pending == 0 && is.vectors == 1 && is.fill == 0,
                     "items %" PRIu64 ", pending %" PRIu64 ", vectors %u", is.items, is.pending,
                     is.vectors) &&
           CHECK(bits == 0 && counters == 0 && v->count == 0 && v->load == 0) &&
           CHECK_MSG(is.bytes <= was.bytes + was.bytes / 4 + 4096,
                     "%" PRIu64 " bytes, new %" PRIu64, is.bytes, was.bytes);
}

/* Adds n keys and takes them out in this order; the keys still in are found at every `step`. */
static bool fill_and_empty(tamis_options o, uint32_t n, enum order order, uint32_t step,
                           uint64_t *rng)
{
    tamis_filter *f = filter_of(o), *new = filter_of(o);
    uint32_t *keys = keys_in_order(n, order, rng);
    bool good = f && new &&keys;
    for (uint32_t i = 0; good && i < n; i++)
        good = put(f, i);
    for (uint32_t i = 0; good && i < n; i++) {
        if (i % step == 0)
            for (uint32_t j = i; good && j < n; j++)
                good = CHECK_MSG(has(f, keys[j]), "key %u after %u removals", keys[j], i);
        good =
            good && CHECK(take(f, keys[i]) != TAMIS_ABSENT) && CHECK(info_of(f).items == n - 1 - i);
    }
    good = good && nothing_left(f, new);
    free(keys);
    tamis_filter_free(f);
    tamis_filter_free(new);
    return good;
}

static const tamis_options paper = {
    .growth = TAMIS_DYNAMIC, .bits = 1280, .hashes = 7, .capacity = 133};
static const tamis_options tiny = {
    .growth = TAMIS_DYNAMIC, .bits = 48, .hashes = 3, .capacity = 10};

/* ---- nothing is left ------------------------------------------------------------------------- */

/* Guo et al., section 3.4, leave residues here; their filter of ten vectors. */
TEST(paper_filter_is_emptied)
{
    uint64_t rng = harness_seed();
    tamis_filter *f = filter_of(paper);
    for (uint32_t i = 0; i < 1330; i++)
        put(f, i);
    tamis_filter_facts info = info_of(f);
    CHECK_MSG(info.vectors == 10, "%u vectors", info.vectors);
    tamis_filter_free(f);
    CHECK(fill_and_empty(paper, 1330, INSERTED, 100, &rng));
    CHECK(fill_and_empty(paper, 1330, REVERSED, 100, &rng));
    for (int i = 0; i < 5; i++)
        CHECK(fill_and_empty(paper, 1330, RANDOM, 100, &rng));
}

/* Vectors so small that most keys match several. */
TEST(tiny_filters_are_emptied)
{
    uint64_t rng = harness_seed();
    int runs = HARNESS_TIMES(2000, 20000);
    for (int i = 0; i < runs; i++) {
        uint8_t key[TAMIS_KEY_LEN] = "tiny";
        tamis_options o = tiny;
        uint64_t salt = rng_next(&rng);
        memcpy(key + 8, &salt, sizeof salt);
        o.key = key;
        o.unique = i & 1;
        if (!CHECK_MSG(fill_and_empty(o, 100, RANDOM, 25, &rng), "run %d", i))
            return;
    }
}

TEST(every_growth_is_emptied)
{
    static const tamis_options kinds[] = {
        {.growth = TAMIS_FIXED, .capacity = 700},
        {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .capacity = 700},
        {.growth = TAMIS_DYNAMIC, .capacity = 700, .vectors = 7},
        {.growth = TAMIS_SCALABLE, .capacity = 10},
        {.growth = TAMIS_SCALABLE, .capacity = 20, .expansion = 1, .fpp = 0.2},
        {.growth = TAMIS_SCALABLE, .layout = TAMIS_SPREAD, .capacity = 20, .expansion = 2},
        {.growth = TAMIS_SCALABLE, .layout = TAMIS_SPREAD, .bits = 48, .hashes = 3, .capacity = 10},
        {.growth = TAMIS_FLEXIBLE, .capacity = 20, .fpp = 0.2},
        {.growth = TAMIS_FLEXIBLE, .layout = TAMIS_SPREAD, .capacity = 20, .fpp = 0.2},
        {.growth = TAMIS_FLEXIBLE, .hash = TAMIS_H3, .capacity = 20, .fpp = 0.2},
        {.growth = TAMIS_FLEXIBLE, .hash = TAMIS_SIP, .bits = 64, .hashes = 3, .capacity = 10},
    };
    uint64_t rng = harness_seed();
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int unique = 0; unique < 2; unique++)
            for (enum order order = INSERTED; order <= RANDOM; order++) {
                tamis_options o = kinds[k];
                o.unique = unique;
                CHECK_MSG(fill_and_empty(o, 700, order, 70, &rng), "kind %u, unique %d, order %d",
                          k, unique, (int)order);
            }
}

/* Refilling what was emptied gives what a new one gives. */
TEST(emptied_is_as_new)
{
    tamis_filter *f = filter_of(paper), *new = filter_of(paper);
    for (uint32_t i = 0; i < 500; i++)
        put(f, i);
    for (uint32_t i = 0; i < 500; i++)
        take(f, i);
    for (uint32_t i = 1000; i < 1400; i++)
        put(f, i), put(new, i);
    CHECK(tamis_filter_equal(f, new));
    tamis_filter_free(f);
    tamis_filter_free(new);
}

/* ---- outcomes -------------------------------------------------------------------------------- */

/* A tiny filter of 60 keys, and a member of it whose removal is pending; 0 if there is none. */
static tamis_filter *with_pending(bool unique, uint32_t *key)
{
    tamis_options o = tiny;
    o.unique = unique;
    tamis_filter *f = filter_of(o);
    for (uint32_t i = 0; i < 60; i++)
        put(f, i);
    for (uint32_t i = 0; i < 60; i++) {
        tamis_filter *trial;
        CHECK(tamis_filter_clone(&trial, f) == TAMIS_OK);
        bool pending = take(trial, i) == TAMIS_PENDING;
        tamis_filter_free(trial);
        if (!pending)
            continue;
        *key = i;
        CHECK(take(f, i) == TAMIS_PENDING);
        return f;
    }
    CHECK(!"a key is pending");
    return f;
}

TEST(three_outcomes)
{
    tamis_filter *f = filter_of((tamis_options){.growth = TAMIS_FIXED, .capacity = 1000});
    CHECK(take(f, 1) == TAMIS_ABSENT);
    put(f, 1);
    CHECK(take(f, 1) == TAMIS_REMOVED && !has(f, 1));
    CHECK(take(f, 1) == TAMIS_ABSENT);
    tamis_filter_free(f);
    uint32_t key = 0;
    f = with_pending(false, &key);
    CHECK(info_of(f).pending == 1 && info_of(f).items == 59);
    tamis_filter_free(f);
}

TEST(pending_answers_maybe_or_no)
{
    uint32_t key = 0;
    tamis_filter *multi = with_pending(false, &key);
    CHECK(has(multi, key));
    tamis_filter_free(multi);
    tamis_filter *unique = with_pending(true, &key);
    CHECK(!has(unique, key));
    for (uint32_t i = 0; i < 60; i++)
        CHECK(i == key || has(unique, i));
    tamis_digest digest = tamis_filter_digest(unique, &key, sizeof key);
    uint8_t found = 1;
    tamis_filter_has_many(unique, &digest, 1, &found);
    CHECK(!found);
    tamis_filter_free(unique);
}

TEST(add_takes_a_pending_removal_back)
{
    for (int unique = 0; unique < 2; unique++) {
        uint32_t key = 0;
        bool fresh = false;
        tamis_filter *f = with_pending(unique, &key);
        CHECK(tamis_filter_add(f, &key, sizeof key, &fresh) == TAMIS_OK);
        CHECK(fresh == unique); /* as has() answered before */
        CHECK(has(f, key) && info_of(f).pending == 0 && info_of(f).items == 60);
        for (uint32_t i = 0; i < 60; i++)
            CHECK(has(f, i) && take(f, i) != TAMIS_ABSENT);
        CHECK(info_of(f).items == 0 && info_of(f).fill == 0 && info_of(f).vectors == 1);
        tamis_filter_free(f);
    }
}

TEST(refutable_removals_are_absent)
{
    uint32_t key = 0, absent = 1000, n = 0;
    tamis_filter *f = with_pending(true, &key), *before;
    CHECK(tamis_filter_clone(&before, f) == TAMIS_OK);
    CHECK(take(f, key) == TAMIS_ABSENT); /* a second removal of a unique key */
    for (; n < 20; absent++)
        if (!has(f, absent)) {
            CHECK(take(f, absent) == TAMIS_ABSENT);
            n++;
        }
    CHECK(tamis_filter_equal(f, before));
    tamis_filter_free(f);
    tamis_filter_free(before);
    f = with_pending(false, &key); /* more often than the counters allow in all vectors */
    tamis_removed last = TAMIS_PENDING;
    for (n = 0; n < 60 && last != TAMIS_ABSENT; n++)
        last = take(f, key);
    CHECK_MSG(last == TAMIS_ABSENT && n < 30, "%u removals", n);
    tamis_filter_free(f);
}

TEST(only_deletable_filters_remove)
{
    tamis_filter *f = NULL;
    tamis_removed outcome;
    CHECK(tamis_filter_new(&f, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_remove(f, "x", 1, &outcome) == TAMIS_EKIND);
    tamis_filter_free(f);
}

/* Bits and counters agree in every vector, whatever was done to it. */
static bool counters_sound(const tamis_filter *f)
{
    const struct layers *stack = set_layers(&f->set);
    bool sound = true;
    for (uint32_t i = 0; i < layers_count(stack); i++) {
        const struct vector *v = stack->v[i];
        uint64_t ones = 0;
        for (uint64_t p = 0; p < vector_positions_total(v); p++) {
            uint64_t counter = counters_get(&v->counters, p);
            sound &= vector_bit(v, p) == (counter > 0) && counter < 100000;
            ones += counter > 0;
        }
        sound &= ones == v->ones;
    }
    return sound;
}

/* What the header warns of. Keys that were never added but answer "maybe" are removed: others are
   denied then, since the bits go that they share. That is all: no counter wraps, nothing crashes,
   and what is left can be used and emptied. */
TEST(illegal_removals_harm_other_keys_only)
{
    const tamis_options kinds[] = {
        {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .fpp = 0.2, .capacity = 300},
        {.growth = TAMIS_SCALABLE, .fpp = 0.2, .capacity = 30},
        tiny,
        paper,
    };
    uint32_t denied = 0;
    for (unsigned k = 0; k < 4; k++)
        for (int unique = 0; unique < 2; unique++) {
            tamis_options o = kinds[k];
            o.unique = unique;
            tamis_filter *f = filter_of(o);
            for (uint32_t i = 0; i < 300; i++)
                put(f, i);
            for (uint32_t i = 1000; i < 4000; i++) {
                take(f, i);
                CHECK(info_of(f).items <= 300);
            }
            CHECK(counters_sound(f));
            for (uint32_t i = 0; i < 300; i++)
                denied += !has(f, i);
            for (uint32_t i = 0; i < 300; i++) {
                take(f, i);
                CHECK(info_of(f).items <= 300);
            }
            CHECK(counters_sound(f));
            CHECK(tamis_filter_clear(f) == TAMIS_OK && put(f, 7) && has(f, 7));
            CHECK(take(f, 7) == TAMIS_REMOVED && info_of(f).fill == 0);
            tamis_filter_free(f);
        }
    CHECK(denied > 0);
}

/* ---- multisets ------------------------------------------------------------------------------- */

static void remove_to_last_copy(tamis_filter *f, uint32_t key, uint32_t copies)
{
    for (uint32_t i = 0; i < copies; i++)
        if (!CHECK_MSG(has(f, key) && take(f, key) != TAMIS_ABSENT, "copy %u of %u", i, copies))
            return;
}

/* Past 15 copies a counter is in the side table. */
TEST(copies_are_removed_exactly)
{
    static const tamis_options kinds[] = {
        {.growth = TAMIS_FIXED, .capacity = 1000},
        {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .capacity = 1000},
        {.growth = TAMIS_SCALABLE, .capacity = 8},
        {.growth = TAMIS_DYNAMIC, .bits = 256, .hashes = 5, .capacity = 20},
    };
    static const uint32_t copies[] = {1, 14, 15, 16, 17, 31, 1000, 5000};
    for (unsigned k = 0; k < 4; k++) {
        tamis_filter *f = filter_of(kinds[k]), *new = filter_of(kinds[k]);
        uint64_t total = 0;
        for (uint32_t key = 0; key < 8; key++)
            for (uint32_t i = 0; i < copies[key]; i++, total++)
                put(f, key);
        for (uint32_t key = 100; key < 150; key++, total++)
            put(f, key);
        CHECK(info_of(f).items == total);
        for (uint32_t key = 0; key < 8; key++)
            CHECK(tamis_filter_count(f, &key, sizeof key) >= copies[key]);
        for (uint32_t key = 0; key < 8; key++)
            remove_to_last_copy(f, key, copies[key]);
        CHECK_MSG(info_of(f).items == 50, "%" PRIu64 " items", info_of(f).items);
        for (uint32_t key = 100; key < 150; key++)
            CHECK(has(f, key) && take(f, key) != TAMIS_ABSENT);
        CHECK(nothing_left(f, new));
        tamis_filter_free(f);
        tamis_filter_free(new);
    }
}

/* Where no other key is, the count is exact, removals that wait included; a plain filter has one. */
TEST(copies_are_counted)
{
    tamis_filter *f = filter_of((tamis_options){.growth = TAMIS_SCALABLE, .capacity = 8});
    tamis_filter *plain = NULL;
    uint32_t key = 7, other = 8;
    for (uint32_t i = 1; i <= 40; i++) {
        put(f, key);
        CHECK_MSG(tamis_filter_count(f, &key, sizeof key) == i, "%u", i);
    }
    for (uint32_t i = 40; i-- > 0;) {
        take(f, key);
        CHECK_MSG(tamis_filter_count(f, &key, sizeof key) == i, "%u", i);
    }
    CHECK(tamis_filter_new(&plain, &(tamis_options){.capacity = 100}, NULL) == TAMIS_OK);
    put(plain, key), put(plain, key);
    CHECK(tamis_filter_count(plain, &key, sizeof key) == 1);
    CHECK(tamis_filter_count(plain, &other, sizeof other) == 0);
    tamis_filter_free(plain);
    tamis_filter_free(f);
}

/* A filter with the keys taken out again is the filter before, where no key was pending. */
TEST(add_and_remove_is_nothing)
{
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        tamis_filter *f = filter_of((tamis_options){
            .growth = TAMIS_FIXED, .layout = (tamis_layout)layout, .capacity = 1000});
        tamis_filter *before;
        for (uint32_t i = 0; i < 500; i++)
            put(f, i);
        CHECK(tamis_filter_clone(&before, f) == TAMIS_OK);
        for (uint32_t i = 500; i < 1000; i++)
            put(f, i), put(f, i);
        for (uint32_t i = 500; i < 1000; i++)
            take(f, i), take(f, i);
        CHECK(tamis_filter_equal(f, before));
        tamis_filter_free(f);
        tamis_filter_free(before);
    }
}

/* ---- churn ----------------------------------------------------------------------------------- */

struct churn {
    tamis_filter *f;
    uint32_t *live, n, next;
    uint64_t rng;
};

/* As many removals and adds as there are keys: the oldest first, or any. */
static bool churn_turn(struct churn *c, bool oldest)
{
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t *at = &c->live[oldest ? i : rng_next(&c->rng) % c->n];
        if (!CHECK(take(c->f, *at) != TAMIS_ABSENT))
            return false;
        *at = c->next++;
        tamis_error e = add(c->f, *at);
        if (!CHECK_MSG(e == TAMIS_OK, "add: %s", tamis_error_name(e)))
            return false;
    }
    for (uint32_t i = 0; i < c->n; i++)
        if (!CHECK(has(c->f, c->live[i])))
            return false;
    return true;
}

/* Answers "maybe" among so many keys that were never added. */
static uint32_t false_positives(const tamis_filter *f, uint32_t probes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < probes; i++)
        n += has(f, UINT32_C(0x80000000) + i);
    return n;
}

/* The rate of a fixed or dynamic filter depends on the keys in it a little: the ones that n keys set
   have a deviation of at most 0.28 sqrt(m), so the rate of k |relative deviation of ones|. */
static void check_rate(const tamis_filter *f, const char *when)
{
    tamis_filter_facts info = info_of(f);
    uint32_t probes = HARNESS_TIMES(100000, 1000000);
    double m = (double)info.bits / info.vectors, spread = info.hashes * 0.28 / (0.5 * sqrt(m));
    double expected = info.fpp * probes * (1 + 6 * spread / sqrt(info.vectors));
    uint32_t found = false_positives(f, probes);
    CHECK_MSG(found <= expected + 6 * sqrt(expected), "%s: growth %d, layout %d: %u of %u, not %g",
              when, (int)info.growth, (int)info.layout, found, probes, info.fpp * probes);
}

static void churn_one(tamis_options o, uint32_t live, bool oldest)
{
    struct churn c = {filter_of(o), malloc(live * sizeof *c.live), live, 0, harness_seed()};
    for (uint32_t i = 0; i < live; i++)
        put(c.f, c.live[i] = c.next++);
    uint64_t bytes = 0, later = 0, pending = 0;
    uint32_t vectors = 0, turns = harness_long() ? 300 : 30;
    check_rate(c.f, "filled");
    for (uint32_t turn = 0; turn < turns && churn_turn(&c, oldest); turn++) {
        tamis_filter_facts info = info_of(c.f);
        uint64_t *most = turn < turns / 3 ? &bytes : &later;
        *most = info.bytes > *most ? info.bytes : *most;
        pending = info.pending > pending ? info.pending : pending;
        if (turn == turns / 3)
            vectors = info.vectors;
        CHECK(info.items == live);
        CHECK_MSG(turn <= turns / 3 || info.vectors <= vectors + 2, "%u vectors, then %u", vectors,
                  info.vectors);
    }
    check_rate(c.f, "after churn");
    CHECK_MSG((double)later <= 1.3 * (double)bytes, "%" PRIu64 " bytes, later %" PRIu64, bytes,
              later);
    CHECK_MSG(pending <= live / 4, "%" PRIu64 " pending", pending);
    for (uint32_t i = 0; i < live; i++)
        take(c.f, c.live[i]);
    CHECK(info_of(c.f).items == 0 && info_of(c.f).fill == 0 && info_of(c.f).vectors == 1);
    tamis_filter_free(c.f);
    free(c.live);
}

TEST(churn_keeps_size_and_rate)
{
    static const tamis_options kinds[] = {
        {.growth = TAMIS_FIXED, .capacity = 2000},
        {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .capacity = 2000},
        {.growth = TAMIS_DYNAMIC, .capacity = 2000, .vectors = 10},
        {.growth = TAMIS_DYNAMIC, .capacity = 2000, .vectors = 10, .unique = true},
        {.growth = TAMIS_SCALABLE, .capacity = 50},
        {.growth = TAMIS_SCALABLE, .layout = TAMIS_SPREAD, .capacity = 50, .expansion = 1},
        {.growth = TAMIS_SCALABLE, .layout = TAMIS_SPREAD, .capacity = 60, .expansion = 2},
        {.growth = TAMIS_FLEXIBLE, .capacity = 100},
        {.growth = TAMIS_FLEXIBLE, .layout = TAMIS_SPREAD, .capacity = 100, .unique = true},
    };
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int oldest = 0; oldest < 2; oldest++)
            churn_one(kinds[k], 2000, oldest);
}

/* Published shapes state no rate, but must not grow either. */
TEST(churn_of_published_shapes_is_bounded)
{
    tamis_options scalable = {.layout = TAMIS_SPREAD, .bits = 96, .hashes = 5, .capacity = 10};
    const tamis_options kinds[] = {paper, scalable};
    for (unsigned k = 0; k < 2; k++) {
        struct churn c = {filter_of(kinds[k]), malloc(1000 * sizeof *c.live), 1000, 0,
                          harness_seed()};
        for (uint32_t i = 0; i < 1000; i++)
            put(c.f, c.live[i] = c.next++);
        uint64_t bits = info_of(c.f).bits;
        for (int turn = 0; turn < 30 && churn_turn(&c, turn & 1); turn++)
            CHECK_MSG(info_of(c.f).bits <= 4 * bits, "%" PRIu64 " bits, then %" PRIu64, bits,
                      info_of(c.f).bits);
        tamis_filter_free(c.f);
        free(c.live);
    }
}

/* ---- cost ------------------------------------------------------------------------------------ */

/* A key goes into the first vector with room, and a removal makes room, here in a vector long full. No
   two vectors fit into one meanwhile. */
TEST(room_made_by_removals_is_filled_first)
{
    enum { VECTORS = 7, SOME = 50 };
    tamis_filter *f = filter_of((tamis_options){
        .growth = TAMIS_DYNAMIC, .capacity = 20000, .vectors = 20, .fpp = 0.001, .unique = true});
    const struct layers *stack = set_layers(&f->set);
    uint32_t next = 0;
    while (layers_count(stack) < VECTORS || stack->v[VECTORS - 1]->count < 900) {
        put(f, next++);
        stack = set_layers(&f->set);
    }
    for (uint32_t gone = 0; gone < 3; gone++) { /* the oldest keys: of the first vector */
        const struct vector *first = stack->v[0];
        uint64_t before = first->count;
        for (uint32_t i = 0; i < SOME; i++)
            take(f, SOME * gone + i);
        CHECK(first->count + SOME <= before + 5 && layers_count(stack) == VECTORS);
        for (uint32_t i = 0; i < SOME / 2; i++)
            put(f, next++);
        CHECK(first->count + SOME / 2 + 5 >= before && layers_count(stack) == VECTORS);
    }
    for (uint32_t i = 3 * SOME; i < next; i++)
        CHECK(has(f, i));
    tamis_filter_free(f);
}

/* Keys of an early vector go one by one, and it goes with the last of them. */
TEST(an_emptied_vector_goes)
{
    tamis_filter *f = filter_of(
        (tamis_options){.growth = TAMIS_SCALABLE, .capacity = 64, .fpp = 1e-6, .unique = true});
    uint32_t next = 0;
    while (info_of(f).vectors < 3)
        put(f, next++);
    uint64_t first = set_layers(&f->set)->v[0]->count;
    for (uint32_t i = 0; i < first; i++) {
        CHECK(info_of(f).vectors == 3);
        CHECK(take(f, i) == TAMIS_REMOVED);
    }
    CHECK(info_of(f).vectors == 2);
    for (uint32_t i = (uint32_t)first; i < next; i++)
        CHECK(has(f, i));
    tamis_filter_free(f);
}

/* Two vectors become one as soon as their keys fit. */
TEST(vectors_that_fit_are_united)
{
    tamis_filter *f = filter_of((tamis_options){
        .growth = TAMIS_DYNAMIC, .capacity = 10000, .vectors = 10, .fpp = 1e-6, .unique = true});
    uint32_t next = 0, vectors = 4, of_first, gone = 0;
    while (layers_count(set_layers(&f->set)) <= vectors)
        put(f, next++);
    CHECK(take(f, next - 1) == TAMIS_REMOVED); /* all that are left are full */
    const struct layers *stack = set_layers(&f->set);
    of_first = (uint32_t)stack->v[0]->count;
    CHECK(layers_count(stack) == vectors && stack->v[0]->load == of_first);
    for (; layers_count(stack) == vectors && gone < of_first; gone++, stack = set_layers(&f->set))
        CHECK(take(f, gone / 2 + (gone % 2 ? of_first : 0)) == TAMIS_REMOVED); /* by turns */
    CHECK_MSG(gone + 20 > of_first, "united after %u of %u", gone, of_first);
    CHECK_MSG(layers_count(stack) == vectors - 1, "not united after %u of %u", gone, of_first);
    tamis_filter_free(f);
}

/* More of them than are matched together. */
TEST(thousands_of_vectors)
{
    tamis_filter *f = filter_of((tamis_options){
        .growth = TAMIS_DYNAMIC, .capacity = 45000, .vectors = 4500, .fpp = 0.01, .unique = true});
    uint32_t n = 42500;
    for (uint32_t i = 0; i < n; i++)
        put(f, i);
    CHECK(info_of(f).vectors > 4096);
    uint32_t pending = 0;
    for (uint32_t i = 0; i < n; i += 100) {
        tamis_removed outcome = take(f, i);
        CHECK(outcome != TAMIS_ABSENT);
        pending += outcome == TAMIS_PENDING;
    }
    CHECK(pending < 20);
    for (uint32_t i = 0; i < n; i++)
        CHECK(i % 100 == 0 || has(f, i));
    CHECK(take(f, n + 1) == TAMIS_ABSENT);
    tamis_filter_free(f);
}

/* Thousands pending at a time, and each removal looks at those it may settle alone. */
COST(pending_removals_do_not_multiply, 100000)
{
    tamis_filter *f = filter_of((tamis_options){
        .growth = TAMIS_DYNAMIC, .bits = 96 * n / 100, .hashes = 7, .capacity = n / 10});
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        put(f, i);
    CHECK(info_of(f).vectors == 10);
    for (uint32_t i = 0; i < n; i++) {
        take(f, i);
        if (i % (n / 100) == 0)
            most = info_of(f).pending > most ? info_of(f).pending : most;
    }
    CHECK_MSG(most > n / 100, "%" PRIu64 " pending at most", most);
    CHECK(info_of(f).items == 0 && info_of(f).fill == 0);
    tamis_filter_free(f);
}

HARNESS_MAIN
