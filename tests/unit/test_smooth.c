/* Smooth filters by the public functions: any size, removal, capacity stated in advance, union, limits. */
#include <math.h>

#include "fault.h"
#include "harness.h"
#include "histories.h"
#include "set/set.h"

static void key_of(uint64_t i, char out[24], size_t *len)
{
    *len = (size_t)snprintf(out, 24, "key-%" PRIu64, i);
}

static bool has(const tamis_filter *f, uint64_t i)
{
    char key[24];
    size_t len;
    key_of(i, key, &len);
    return tamis_filter_has(f, key, len);
}

static tamis_error add(tamis_filter *f, uint64_t i, bool *fresh)
{
    char key[24];
    size_t len;
    key_of(i, key, &len);
    return tamis_filter_add(f, key, len, fresh);
}

static tamis_removed take(tamis_filter *f, uint64_t i)
{
    char key[24];
    size_t len;
    tamis_removed outcome = TAMIS_PENDING;
    key_of(i, key, &len);
    CHECK(tamis_filter_remove(f, key, len, &outcome) == TAMIS_OK);
    return outcome;
}

static void fill(tamis_filter *f, uint64_t from, uint64_t to)
{
    enum { RUN = 300 };
    tamis_digest digests[RUN];
    uint8_t fresh[RUN];
    for (uint64_t i = from; i < to; i += RUN) {
        size_t n = to - i < RUN ? to - i : RUN, done;
        for (size_t j = 0; j < n; j++) {
            char key[24];
            size_t len;
            key_of(i + j, key, &len);
            digests[j] = tamis_filter_digest(f, key, len);
        }
        CHECK(tamis_filter_add_many(f, digests, n, fresh, &done) == TAMIS_OK && done == n);
    }
}

/* All of [from, to) are found, in batches and one by one. */
static void check_all(const tamis_filter *f, uint64_t from, uint64_t to)
{
    uint64_t missed = 0;
    for (uint64_t i = from; i < to; i++) {
        char key[24];
        size_t len;
        uint8_t found;
        key_of(i, key, &len);
        tamis_digest digest = tamis_filter_digest(f, key, len);
        tamis_filter_has_many(f, &digest, 1, &found);
        missed += !found || !tamis_filter_has(f, key, len);
    }
    CHECK_MSG(missed == 0, "%g of %g", (double)missed, (double)(to - from));
}

static void check_rate(const tamis_filter *f, double fpp)
{
    enum { ASKED = 100000 };
    tamis_filter_facts facts;
    uint64_t hits = 0;
    for (uint64_t i = 0; i < ASKED; i++)
        hits += has(f, (UINT64_C(1) << 50) + i);
    tamis_filter_info(f, &facts);
    double expected = facts.fpp_now * ASKED;
    CHECK_MSG((double)hits <= fpp * ASKED + 6 * sqrt(fpp * ASKED), "%g found at %g", (double)hits,
              fpp);
    CHECK_MSG(fabs((double)hits - expected) <= 6 * sqrt(expected) + 0.03 * expected + 2,
              "%g found, %g expected", (double)hits, expected);
}

static tamis_filter *make(double fpp, uint64_t capacity, bool deletable)
{
    tamis_filter *f = NULL;
    tamis_options o = {
        .fpp = fpp, .capacity = capacity, .growth = TAMIS_SMOOTH, .deletable = deletable};
    tamis_reason reason = {0};
    CHECK_MSG(tamis_filter_new(&f, &o, &reason) == TAMIS_OK, "%s", reason.text);
    return f;
}

TEST(plain_counts_fresh_keys)
{
    tamis_filter *f = make(0.01, 0, false);
    tamis_filter_facts facts;
    bool fresh;
    CHECK(add(f, 1, &fresh) == TAMIS_OK && fresh);
    CHECK(add(f, 1, &fresh) == TAMIS_OK && !fresh);
    fill(f, 0, 50000);
    fill(f, 0, 50000);
    check_all(f, 0, 50000);
    check_rate(f, 0.01);
    tamis_filter_info(f, &facts);
    CHECK(facts.items <= 50000 && facts.items > 49500);
    CHECK(facts.growth == TAMIS_SMOOTH && facts.fpp == 0.01 && facts.fpp_now < 0.01);
    CHECK_MSG((double)facts.bytes * 8 / 50000 < 26, "%g bits per key",
              (double)facts.bytes * 8 / 50000);
    tamis_filter_free(f);
}

TEST(deletable_is_exact)
{
    tamis_filter *f = make(0.01, 0, true);
    tamis_filter_facts facts;
    fill(f, 0, 30000);
    fill(f, 0, 30000); /* a multiset */
    for (uint64_t i = 0; i < 30000; i++)
        CHECK(take(f, i) == TAMIS_REMOVED);
    check_all(f, 0, 30000);
    tamis_filter_info(f, &facts);
    CHECK(facts.items == 30000 && facts.pending == 0);
    CHECK_MSG(facts.distinct <= 30000 && facts.distinct > 29800, "%g", facts.distinct);
    for (uint64_t i = 0; i < 30000; i++)
        CHECK(take(f, i) == TAMIS_REMOVED);
    tamis_filter_info(f, &facts);
    CHECK(facts.items == 0 && facts.fpp_now == 0 && !has(f, 5));
    CHECK(take(f, 5) == TAMIS_ABSENT);
    CHECK_MSG(facts.bytes < 2048, "%g bytes when empty", (double)facts.bytes);
    tamis_filter_free(f);
}

/* Most keys twice, and one of them many times, so that the keys of some parts are no sample of all. */
TEST(distinct_keys_of_a_multiset_are_estimated)
{
    const uint64_t n = harness_slow() ? 400000 : 1500000;
    tamis_filter *f = make(0.01, 0, true);
    tamis_filter_facts facts;
    fill(f, 0, n);
    fill(f, 0, 2 * n / 3);
    for (uint64_t i = 0; i < n / 4; i++)
        CHECK(add(f, 7, NULL) == TAMIS_OK);
    tamis_filter_info(f, &facts);
    CHECK_MSG(fabs(facts.distinct / (double)n - 1) < 0.05, "%g of %g", facts.distinct, (double)n);
    CHECK(facts.fpp_now > 0 && facts.fpp_now < 0.01);
    tamis_filter_free(f);
}

static void ask_for_facts(unsigned times)
{
    tamis_filter *f = make(0.01, 0, true);
    tamis_filter_facts facts;
    fill(f, 0, harness.size ? harness.size : 10000);
    for (unsigned i = 0; i < times; i++)
        tamis_filter_info(f, &facts);
    tamis_filter_free(f);
}

/* tests/python/test_costs.py counts the instructions of the first without those of the second. */
TEST(facts_of_a_multiset_are_asked_for)
{
    ask_for_facts(3);
}

TEST(facts_of_a_multiset_are_prepared)
{
    ask_for_facts(0);
}

TEST(a_stated_capacity_is_cheap)
{
    tamis_filter *f = make(0.01, 100000, false);
    tamis_filter_facts facts;
    fill(f, 0, 100000);
    tamis_filter_info(f, &facts);
    CHECK_MSG((double)facts.bytes * 8 / 100000 < 12, "%g bits per key",
              (double)facts.bytes * 8 / 100000);
    check_all(f, 0, 100000);
    check_rate(f, 0.01);
    fill(f, 100000, 300000);
    check_all(f, 0, 300000);
    check_rate(f, 0.01);
    tamis_filter *copy;
    CHECK(tamis_filter_clone(&copy, f) == TAMIS_OK && tamis_filter_equal(copy, f));
    check_all(copy, 0, 300000);
    CHECK(tamis_filter_clear(f) == TAMIS_OK && !has(f, 1) && !tamis_filter_equal(copy, f));
    fill(f, 0, 1000);
    check_all(f, 0, 1000);
    tamis_filter_free(copy);
    tamis_filter_free(f);
}

/* Its memory is all there from the start. */
TEST(ten_million_stated_keys_take_15_mb)
{
    tamis_filter *f = make(0.01, 10000000, false);
    tamis_filter_facts facts;
    tamis_filter_info(f, &facts);
    CHECK_MSG(facts.bytes <= 15000000, "%g bytes", (double)facts.bytes);
    tamis_filter_free(f);
}

TEST(unions)
{
    uint8_t key[TAMIS_KEY_LEN] = {1};
    for (int deletable = 0; deletable < 2; deletable++) {
        tamis_options o = {.growth = TAMIS_SMOOTH, .deletable = deletable, .key = key};
        tamis_filter *a, *b;
        CHECK(tamis_filter_new(&a, &o, NULL) == TAMIS_OK);
        CHECK(tamis_filter_new(&b, &o, NULL) == TAMIS_OK);
        fill(a, 0, 20000);
        fill(b, 15000, 90000);
        CHECK(tamis_filter_merge(a, b, 0, NULL) == TAMIS_OK);
        check_all(a, 0, 90000);
        check_rate(a, 0.01);
        for (uint64_t i = 0; deletable && i < 20000; i++)
            CHECK(take(a, i) == TAMIS_REMOVED);
        for (uint64_t i = 15000; deletable && i < 90000; i++)
            CHECK(take(a, i) == TAMIS_REMOVED);
        tamis_filter_facts facts;
        tamis_filter_info(a, &facts);
        CHECK(!deletable || (facts.items == 0 && facts.fpp_now == 0));
        tamis_filter_free(a);
        tamis_filter_free(b);
    }
}

/* A filter of n keys, of which ten times as many have come and gone, then with n others in a union, then a tenth of it. */
static void keep_rate(double fpp, uint64_t n)
{
    tamis_filter *f = make(fpp, 0, true), *other;
    CHECK(tamis_filter_clone(&other, f) == TAMIS_OK);
    fill(f, 0, n);
    check_rate(f, fpp);
    uint64_t first = 0;
    for (unsigned turn = 0; turn < 10; turn++, first += n) {
        for (uint64_t i = 0, step = n / 10; i < n; i += step) {
            for (uint64_t j = first + i; j < first + i + step; j++)
                CHECK(take(f, j) == TAMIS_REMOVED);
            fill(f, first + n + i, first + n + i + step);
        }
        check_rate(f, fpp);
    }
    check_all(f, first, first + n);
    fill(other, first + n, first + 2 * n);
    CHECK(tamis_filter_merge(f, other, 0, NULL) == TAMIS_OK);
    check_all(f, first, first + 2 * n);
    check_rate(f, fpp);
    for (uint64_t j = first; j < first + 2 * n; j++)
        CHECK(j % 10 == 0 || take(f, j) == TAMIS_REMOVED);
    check_rate(f, fpp);
    for (uint64_t j = first; j < first + 2 * n; j += 10)
        CHECK(has(f, j));
    tamis_filter_free(other);
    tamis_filter_free(f);
}

TEST(the_rate_is_kept_through_churn_unions_and_shrinking)
{
    static const double rates[] = {0.1, 0.01, 0.001, 0.0001};
    uint64_t most = harness_long() ? 1000000 : harness_slow() ? 1000 : 10000;
    for (unsigned i = 0; i < 4; i++)
        for (uint64_t n = 10; n <= most; n *= 10)
            keep_rate(rates[i], n);
}

/* Entries that came in their order would crowd the lines of a small set. */
TEST(unions_of_a_large_set_into_a_small_one)
{
    uint8_t key[TAMIS_KEY_LEN] = {1};
    uint64_t many = harness_slow() ? 300000 : 2000000;
    for (int deletable = 0; deletable < 2; deletable++) {
        tamis_options o = {.growth = TAMIS_SMOOTH, .deletable = deletable, .key = key};
        tamis_filter *a, *b;
        CHECK(tamis_filter_new(&a, &o, NULL) == TAMIS_OK);
        CHECK(tamis_filter_new(&b, &o, NULL) == TAMIS_OK);
        fill(a, many, many + 1);
        fill(b, 0, many);
        CHECK(tamis_filter_merge(a, b, 0, NULL) == TAMIS_OK);
        check_all(a, 0, many + 1);
        check_rate(a, 0.01);
        tamis_filter_free(a);
        tamis_filter_free(b);
    }
}

/* Of the keys from `from` on, each is added `copies` times in a row, or as often on average, in any order. */
static void fill_copies(tamis_filter *f, uint64_t from, uint64_t n, uint64_t copies, bool in_a_row)
{
    uint64_t rng = harness_seed() + from;
    for (uint64_t i = 0; i < n * copies; i++)
        CHECK(add(f, from + (in_a_row ? i / copies : rng_next(&rng) % n), NULL) == TAMIS_OK);
}

static double bits_per_distinct(const tamis_filter *f, uint64_t n)
{
    tamis_filter_facts facts;
    tamis_filter_brief(f, &facts);
    return 8 * (double)facts.bytes / (double)n;
}

/* The copies of most keys are in the stash, of which the other set has the homes but not yet the size. */
TEST(unions_of_sets_with_copies)
{
    static const double rates[] = {0.5, 0.01, 0.0001};
    uint8_t key[TAMIS_KEY_LEN] = {1};
    for (unsigned i = 0; i < 3; i++)
        for (uint64_t n = 4000; n <= 16000; n += 4000) {
            tamis_options o = {
                .growth = TAMIS_SMOOTH, .deletable = true, .fpp = rates[i], .key = key};
            tamis_filter *a, *b;
            CHECK(tamis_filter_new(&a, &o, NULL) == TAMIS_OK);
            CHECK(tamis_filter_new(&b, &o, NULL) == TAMIS_OK);
            fill_copies(a, 1000000, 1, 3 * n, true);
            fill_copies(b, 0, n, 3, true);
            tamis_error e = tamis_filter_merge(a, b, 0, NULL);
            CHECK_MSG(e == TAMIS_OK, "%s at %g, %g keys", tamis_error_name(e), rates[i], (double)n);
            check_all(a, 0, n);
            tamis_filter_free(a);
            tamis_filter_free(b);
        }
}

/* However often a key comes, also while the set grows: it has two slots at most, and copies of one of them. */
TEST(copies_take_a_limited_number_of_bits)
{
    enum { KEYS = 16000, COPIES = 100 };
    static const double rates[] = {0.5, 0.01, 0.0001}, most[] = {150, 160, 195};
    uint8_t key[TAMIS_KEY_LEN] = {1};
    for (unsigned i = 0; i < 3; i++) {
        tamis_options o = {.growth = TAMIS_SMOOTH, .deletable = true, .fpp = rates[i], .key = key};
        tamis_filter *f[2];
        for (unsigned j = 0; j < 2; j++) {
            CHECK(tamis_filter_new(&f[j], &o, NULL) == TAMIS_OK);
            fill_copies(f[j], 0, KEYS, COPIES, j == 1);
            CHECK_MSG(bits_per_distinct(f[j], KEYS) <= most[i], "%g bits at %g",
                      bits_per_distinct(f[j], KEYS), rates[i]);
        }
        CHECK(tamis_filter_merge(f[0], f[1], 0, NULL) == TAMIS_OK);
        CHECK_MSG(bits_per_distinct(f[0], KEYS) <= most[i] + 80, "%g bits at %g in a union",
                  bits_per_distinct(f[0], KEYS), rates[i]);
        check_all(f[0], 0, KEYS);
        for (unsigned j = 0; j < 2; j++)
            tamis_filter_free(f[j]);
    }
}

/* After a union the free slots of the parts fill up before any part is rebuilt, and parts are rebuilt with wider slots for
   what coarse entries match beyond their keys. */
static void unite_and_grow(double fpp, uint64_t size, unsigned sets, unsigned flags, uint64_t most)
{
    uint8_t key[TAMIS_KEY_LEN] = {1};
    uint64_t n = sets * size, step = size / 16;
    tamis_filter *all = NULL, *f;
    tamis_filter_facts facts;
    for (uint64_t from = 0; from < n; from += size) {
        tamis_options o = {.growth = TAMIS_SMOOTH, .fpp = fpp, .key = key};
        CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
        fill(f, from, from + size);
        if (!all) {
            all = f;
            continue;
        }
        CHECK(tamis_filter_merge(all, f, flags, NULL) == TAMIS_OK);
        tamis_filter_free(f);
    }
    for (; n<most; n += step, step = most> 4 * size ? n / 12 : step) {
        tamis_filter_info(all, &facts);
        CHECK_MSG(facts.fpp_now <= facts.fpp, "%g of %g at %g keys", facts.fpp_now, facts.fpp,
                  (double)n);
        fill(all, n, n + step);
    }
    check_all(all, 0, n);
    tamis_filter_free(all);
}

TEST(unions_keep_the_rate_until_the_parts_are_full)
{
    unite_and_grow(0.1, 188951, 4, TAMIS_MERGE_RESTATE, 5 * 188951);
    if (harness_slow())
        return;
    unite_and_grow(0.1, 188951, 6, TAMIS_MERGE_RESTATE, 7 * 188951);
    unite_and_grow(0.1, 531649, 2, TAMIS_MERGE_RESTATE, 3 * 531649);
    unite_and_grow(0.1, 188951, 2, 0, 4000000);
    unite_and_grow(0.01, 2208039, 2, TAMIS_MERGE_RESTATE, 4 * 2208039);
}

/* Two of a stated capacity, of one size or of two, far past it: nine tenths of the rate are the vectors', and lines
   take what is left. */
TEST(unions_past_the_stated_capacity)
{
    static const uint64_t capacities[][2] = {{5000, 5000}, {20000, 3000}, {30000, 30000}};
    uint8_t key[TAMIS_KEY_LEN] = {1};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        tamis_filter *f[2], *third;
        for (unsigned j = 0; j < 2; j++) {
            tamis_options o = {.capacity = capacities[i][j], .key = key};
            CHECK(tamis_filter_new(&f[j], &o, NULL) == TAMIS_OK);
            fill(f[j], j * 80000, j * 80000 + 60000);
        }
        CHECK(tamis_filter_clone(&third, f[1]) == TAMIS_OK);
        CHECK(tamis_filter_merge(f[0], f[1], 0, NULL) == TAMIS_OK);
        check_all(f[0], 0, 60000);
        check_all(f[0], 80000, 140000);
        fill(f[0], 60000, 80000);
        fill(f[0], 140000, 300000);
        check_all(f[0], 0, 300000);
        check_rate(f[0], 0.01);
        tamis_filter_facts facts;
        tamis_filter_info(f[0], &facts);
        CHECK(facts.vectors == 2 && facts.fpp == 0.01 && facts.fpp_now <= 0.01);
        /* The same vector again is past the rate, as the bits alone say. */
        CHECK(tamis_filter_merge(f[0], third, 0, NULL) == TAMIS_ERATE);
        CHECK(tamis_filter_merge(f[0], third, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
        tamis_filter_info(f[0], &facts);
        CHECK(facts.fpp > 0.01 && facts.fpp < 0.016);
        check_all(f[0], 0, 300000);
        for (unsigned j = 0; j < 2; j++)
            tamis_filter_free(f[j]);
        tamis_filter_free(third);
    }
}

/* Two filters that hold this many keys each, more than stated, are united within their rate. */
static void unite_past_capacity(double fpp, uint64_t capacity, uint64_t n)
{
    uint8_t key[TAMIS_KEY_LEN] = {7};
    tamis_options o = {.fpp = fpp, .capacity = capacity, .growth = TAMIS_SMOOTH, .key = key};
    tamis_filter *f[2];
    for (unsigned i = 0; i < 2; i++) {
        CHECK(tamis_filter_new(&f[i], &o, NULL) == TAMIS_OK);
        fill(f[i], i * n, i * n + n);
    }
    tamis_error e = tamis_filter_merge(f[0], f[1], 0, NULL);
    CHECK_MSG(e == TAMIS_OK, "%s: two of %" PRIu64 " with a capacity of %" PRIu64 " at %g",
              tamis_error_name(e), n, capacity, fpp);
    check_all(f[0], 0, 2 * n);
    check_rate(f[0], fpp);
    for (unsigned i = 0; i < 2; i++)
        tamis_filter_free(f[i]);
}

/* Lines must leave room for those of another filter at every rate from 0.1 % on, whatever their first keys cost. */
TEST(unions_past_the_stated_capacity_at_every_rate)
{
    static const double rates[] = {0.1, 0.01, 0.003, 0.001};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (uint64_t capacity = 1000; capacity <= 100000; capacity *= 10) {
            unite_past_capacity(rates[i], capacity, capacity / 10 * 11);
            unite_past_capacity(rates[i], capacity, capacity * 4);
        }
}

/* A set of lines alone has the whole rate for them; beside a vector it has what the vector leaves. */
TEST(unions_of_lines_with_a_vector)
{
    uint8_t key[TAMIS_KEY_LEN] = {1};
    for (unsigned first = 0; first < 2; first++) {
        tamis_filter *f[2];
        for (unsigned j = 0; j < 2; j++) {
            tamis_options o = {
                .growth = TAMIS_SMOOTH, .fpp = 0.1, .capacity = j ? 60000 : 0, .key = key};
            CHECK(tamis_filter_new(&f[j], &o, NULL) == TAMIS_OK);
            fill(f[j], j * 80000, j * 80000 + 60000);
        }
        tamis_filter *into = f[first];
        CHECK(tamis_filter_merge(into, f[!first], 0, NULL) == TAMIS_OK);
        fill(into, 140000, 1500000);
        check_all(into, 0, 60000);
        check_all(into, 80000, 1500000);
        check_rate(into, 0.1);
        tamis_filter_facts facts;
        tamis_filter_info(into, &facts);
        CHECK_MSG(facts.fpp_now <= 0.1, "%g", facts.fpp_now);
        for (unsigned j = 0; j < 2; j++)
            tamis_filter_free(f[j]);
    }
}

static tamis_filter *compact(uint64_t capacity)
{
    static const uint8_t key[TAMIS_KEY_LEN] = {1};
    tamis_options o = {.capacity = capacity, .key = key};
    struct set *s = NULL;
    CHECK(filter_new(&s, &o, true, NULL) == TAMIS_OK);
    return as_filter(s);
}

/* The vector uses its share of the rate, and those that follow it never exceed the rest; clearing leaves the first. */
TEST(compact_filters_keep_the_rate)
{
    static const uint64_t capacities[] = {512, 600, 777, 1000, 1700, 3000, 10000, 40000};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        uint64_t n = capacities[i], full = n;
        tamis_filter *f = compact(n), *usual = make(0.01, n, false);
        tamis_filter_facts facts, other;
        for (fill(f, 0, n); tamis_filter_brief(f, &facts), facts.items < n; full++)
            CHECK(add(f, full, NULL) == TAMIS_OK); /* some set no bit */
        tamis_filter_info(f, &facts);
        tamis_filter_info(usual, &other);
        CHECK(facts.bytes < other.bytes && facts.vectors == 1 && set_lines(&f->set) == NULL);
        double share = smooth_vector_rate(set_opt(&f->set));
        CHECK_MSG(fabs(facts.fpp_now - share) < 0.12 * share, "%g at %g", facts.fpp_now, (double)n);
        check_rate(f, 0.01);
        fill(f, 0, 10 * n);
        check_all(f, 0, 10 * n);
        check_rate(f, 0.01);
        CHECK(tamis_filter_clear(f) == TAMIS_OK);
        tamis_filter_info(f, &other);
        CHECK(other.bytes < facts.bytes + 200 &&
              other.items == 0); /* the list of vectors is longer */
        tamis_filter_free(f);
        tamis_filter_free(usual);
    }
}

/* However often they grow. Every step of a quarter is looked at, since small vectors may have a bit too few. */
TEST(compact_filters_keep_every_rate)
{
    static const double rates[] = {0.1, 0.01, 0.001, 0.0005, 0.0001};
    uint8_t key[TAMIS_KEY_LEN] = {2};
    uint64_t seed = harness_seed();
    memcpy(key, &seed, sizeof seed);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (uint64_t n = 1000; n <= (harness_slow() ? 1000 : 20000); n *= 20) {
            tamis_options o = {.capacity = n, .fpp = rates[i], .key = key};
            struct set *s = NULL;
            CHECK(filter_new(&s, &o, true, NULL) == TAMIS_OK);
            tamis_filter *f = as_filter(s);
            uint64_t at = 0;
            for (uint64_t keys = n; keys <= (harness_slow() ? 32 : 128) * n; keys += keys / 4) {
                fill(f, at, keys);
                at = keys;
                tamis_filter_facts facts;
                tamis_filter_info(f, &facts);
                CHECK_MSG(facts.fpp_now < rates[i] * 1.02 && !set_lines(s),
                          "%g of %g, %g keys of %g", facts.fpp_now, rates[i], (double)keys,
                          (double)n);
                CHECK(facts.capacity >= facts.items && facts.capacity < 2 * facts.items + 2 * n);
            }
            check_rate(f, rates[i]);
            tamis_filter_free(f);
        }
}

/* Other growths too: one that does not grow has the whole rate, the first vector of a stack half of it, and the stack
   keeps the rate however often it grows. */
TEST(compact_vectors_keep_every_rate)
{
    static const double rates[] = {0.05, 0.01, 0.001, 0.00001};
    static const tamis_growth growths[] = {TAMIS_FIXED, TAMIS_SCALABLE};
    static const uint8_t key[TAMIS_KEY_LEN] = {
        3}; /* the rates of vectors this small differ by some percent */
    for (size_t i = 0; i < 2 * sizeof rates / sizeof *rates; i++) {
        double p = rates[i / 2];
        uint64_t n = 1000;
        tamis_options o = {.capacity = n, .fpp = p, .growth = growths[i % 2], .key = key};
        struct set *s = NULL;
        tamis_filter_facts facts;
        CHECK(filter_new(&s, &o, true, NULL) == TAMIS_OK);
        tamis_filter *f = as_filter(s);
        double bits = log2((double)(1 + i % 2) / p) / log(2) * (double)n;
        tamis_filter_info(f, &facts);
        CHECK_MSG(facts.layout == TAMIS_SPREAD && (double)facts.bits < 1.01 * bits + 128,
                  "%g bits of %g", (double)facts.bits, bits);
        for (uint64_t k = 0; tamis_filter_brief(f, &facts), facts.items < n; k++)
            CHECK(add(f, k, NULL) == TAMIS_OK);
        check_rate(f, p);
        if (i % 2) {
            fill(f, 0, 300 * n); /* nine vectors */
            check_all(f, 0, 300 * n);
            tamis_filter_info(f, &facts);
            CHECK(facts.vectors == 9);
            check_rate(f, p);
        }
        tamis_filter_free(f);
    }
}

/* Two full ones exceed the rate together, and it is restated on request. */
TEST(unions_of_compact_filters)
{
    tamis_filter *a = compact(5000), *b = compact(5000);
    tamis_filter_facts facts;
    fill(a, 0, 2000);
    fill(b, 2000, 4000);
    CHECK(tamis_filter_merge(a, b, 0, NULL) == TAMIS_OK);
    tamis_filter_info(a, &facts);
    CHECK(facts.vectors == 1 && facts.items > 3900);
    fill(a, 4000, 9000);
    fill(b, 10000, 20000);
    CHECK(tamis_filter_merge(a, b, 0, NULL) == TAMIS_ERATE);
    check_rate(a, 0.01);
    CHECK(tamis_filter_merge(a, b, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
    tamis_filter_info(a, &facts);
    CHECK_MSG(facts.fpp > 0.015 && facts.fpp < 0.02, "%g", facts.fpp);
    fill(a, 30000, 60000);
    check_all(a, 0, 9000);
    check_all(a, 10000, 20000);
    check_rate(a, facts.fpp);
    tamis_filter_free(a);
    tamis_filter_free(b);
}

/* Compact filters have spread vectors, others blocked ones: lines go with either, but not the two together. */
TEST(unions_of_compact_filters_and_lines)
{
    static const uint8_t key[TAMIS_KEY_LEN] = {1};
    tamis_options o = {.key = key};
    for (unsigned into = 0; into < 2; into++) {
        tamis_filter *f[2] = {compact(5000), NULL}, *large;
        tamis_filter_facts facts;
        struct bytes bytes;
        CHECK(tamis_filter_new(&f[1], &o, NULL) == TAMIS_OK);
        CHECK(tamis_filter_new(&large, &(tamis_options){.key = key, .capacity = 50000}, NULL) ==
              TAMIS_OK);
        fill(f[0], 0, 4000);
        fill(f[1], 4000, 7000);
        fill(large, 0, 10);
        CHECK(tamis_filter_merge(f[into], f[1 - into], TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
        check_all(f[into], 0, 7000);
        tamis_filter_info(f[into], &facts);
        CHECK(facts.layout == TAMIS_SPREAD && facts.vectors == 1);
        check_rate(f[into], facts.fpp);
        bytes = bytes_of(f[into], 0);
        tamis_filter *loaded = NULL;
        CHECK(tamis_filter_decode(&loaded, bytes.data, bytes.len, NULL, NULL) == TAMIS_OK);
        check_all(loaded, 0, 7000);
        CHECK(tamis_filter_merge(f[into], large, TAMIS_MERGE_RESTATE, NULL) == TAMIS_ESHAPE);
        bytes_free(&bytes);
        tamis_filter_free(loaded);
        tamis_filter_free(large);
        tamis_filter_free(f[0]);
        tamis_filter_free(f[1]);
    }
}

static void check_loaded(tamis_filter *f, uint64_t from, uint64_t n, double rate)
{
    struct bytes bytes = bytes_of(f, 0);
    tamis_filter *loaded = NULL;
    CHECK(tamis_filter_decode(&loaded, bytes.data, bytes.len, NULL, NULL) == TAMIS_OK);
    check_all(loaded, from, n);
    CHECK(tamis_filter_equal(loaded, f));
    fill(loaded, n, 2 * n); /* goes on as the other would */
    fill(f, n, 2 * n);
    CHECK(tamis_filter_equal(loaded, f));
    check_all(f, from, 2 * n);
    check_rate(f, rate);
    bytes_free(&bytes);
    tamis_filter_free(loaded);
}

/* The pages of a small one are lines then; a union has the vectors and the lines of both, and grows by further vectors. */
TEST(unions_of_grown_compact_filters)
{
    enum { N = 3000, KEYS = 200000 };
    struct set *sets[2];
    for (unsigned j = 0; j < 2; j++) {
        struct small *m;
        struct set *s = filter_set(compact(N));
        CHECK(small_of(s, false, &m) && m);
        uint64_t n = j * KEYS;
        for (enum small_added added = SMALL_NEW; added != SMALL_OUTGROWN; n++) {
            char key[24];
            size_t len;
            key_of(n, key, &len);
            added = small_add(&m, small_digest(m, key, len));
        }
        n--;
        CHECK(n > 30 * N && (sets[j] = small_whole(m)) && set_lines(sets[j]));
        small_free(m);
        fill(as_filter(sets[j]), n, j * KEYS + KEYS / 2);
        CHECK(set_layers(sets[j])->v[1]->load > 0 && layers_count(set_layers(sets[j])) == 2);
        check_all(as_filter(sets[j]), j * KEYS, j * KEYS + KEYS / 2);
        check_rate(as_filter(sets[j]), 0.01);
    }
    tamis_filter *f = as_filter(sets[0]);
    tamis_filter_facts facts;
    tamis_filter_info(f, &facts);
    CHECK(facts.capacity >= facts.items && facts.items > KEYS / 2 * 98 / 100);
    CHECK(tamis_filter_merge(f, as_filter(sets[1]), 0, NULL) == TAMIS_ERATE);
    CHECK(tamis_filter_merge(f, as_filter(sets[1]), TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
    tamis_filter_info(f, &facts);
    CHECK_MSG(facts.fpp > 0.015 && facts.fpp < 0.022, "%g", facts.fpp);
    CHECK(facts.vectors == 3); /* the second ones had room for both */
    check_all(f, 0, KEYS / 2);
    fill(f, 2 * KEYS, 3 * KEYS);
    tamis_filter_info(f, &facts);
    CHECK(facts.vectors > 3);
    check_loaded(f, KEYS, KEYS + KEYS / 2, facts.fpp);
    tamis_filter_free(f);
    tamis_filter_free(as_filter(sets[1]));
}

/* The first vector of a large compact filter is blocked, the others are spread; so are those of a union, in any order, and
   with a filter that is not compact. */
TEST(vectors_of_two_layouts)
{
    enum { N = 12000, GROWN = 100000 };
    static const uint8_t key[TAMIS_KEY_LEN] = {1};
    for (unsigned other = 0; other < 2; other++) {
        tamis_filter *f = compact(N), *g = NULL;
        tamis_options o = {.key = key, .capacity = 2 * N};
        tamis_filter_facts facts;
        fill(f, 0, GROWN);
        check_all(f, 0, GROWN);
        tamis_filter_info(f, &facts);
        CHECK(facts.vectors == 4 && facts.layout == TAMIS_BLOCKED && facts.fpp_now < 0.01);
        CHECK(fabs(facts.distinct - GROWN) < 0.02 * GROWN && set_layers(&f->set)->mixed);
        if (other)
            CHECK(tamis_filter_new(&g, &o, NULL) == TAMIS_OK);
        else
            g = compact(2 * N);
        fill(g, GROWN, GROWN + 50000);
        CHECK(tamis_filter_merge(other ? g : f, other ? f : g, TAMIS_MERGE_RESTATE, NULL) ==
              TAMIS_OK);
        check_all(other ? g : f, 0, GROWN + 50000);
        tamis_filter_info(other ? g : f, &facts);
        check_loaded(other ? g : f, 0, GROWN + 50000, facts.fpp);
        CHECK(tamis_filter_clear(f) == TAMIS_OK && !has(f, 1));
        tamis_filter_free(f);
        tamis_filter_free(g);
    }
}

/* Within the capacity two vectors become one, and it still takes keys. */
TEST(unions_within_the_stated_capacity)
{
    uint8_t key[TAMIS_KEY_LEN] = {1};
    tamis_options o = {.capacity = 50000, .key = key};
    tamis_filter *a, *b;
    tamis_filter_facts facts;
    CHECK(tamis_filter_new(&a, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&b, &o, NULL) == TAMIS_OK);
    fill(a, 0, 20000);
    fill(b, 15000, 40000);
    CHECK(tamis_filter_merge(a, b, 0, NULL) == TAMIS_OK);
    fill(a, 40000, 45000);
    tamis_filter_info(a, &facts);
    CHECK(facts.vectors == 1 && facts.growth == TAMIS_SMOOTH && facts.bytes < 80000);
    check_all(a, 0, 45000);
    check_rate(a, 0.01);
    tamis_filter_free(a);
    tamis_filter_free(b);
}

TEST(memory_has_a_limit)
{
    struct fault fault;
    fault_init(&fault);
    tamis_options o = {
        .growth = TAMIS_SMOOTH, .memory_limit = 100000, .allocator = &fault.allocator};
    tamis_filter *f;
    tamis_error e = TAMIS_OK;
    uint64_t n = 0;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    while (n < 100000 && (e = add(f, n, NULL)) == TAMIS_OK)
        n++;
    tamis_filter_facts facts;
    tamis_filter_info(f, &facts);
    CHECK_MSG(e == TAMIS_ESPACE && n > 30000 && facts.bytes <= 100000, "%g keys in %g bytes",
              (double)n, (double)facts.bytes);
    check_all(f, 0, n);
    CHECK(tamis_filter_limit(f, 0) == TAMIS_OK && add(f, n, NULL) == TAMIS_OK);
    tamis_filter_free(f);
    CHECK(fault_clean(&fault));
}

/* Keys come and go, some of them again and again: what the filter takes is never more than the limit, and nearly as much
   is used. */
static void live_within(uint64_t limit, double fpp, unsigned copies, uint64_t seed)
{
    enum { STEPS = 60000, MOST = 30000 };
    static uint64_t there[STEPS];
    tamis_options o = {
        .growth = TAMIS_SMOOTH, .deletable = true, .fpp = fpp, .memory_limit = limit};
    tamis_filter *f;
    tamis_filter_facts facts;
    uint64_t rng = seed, n = 0, most = 0, refused = 0, above = 0;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < STEPS; i++) {
        bool full = refused > 100, adds = n == 0 || rng_next(&rng) % 4 > full;
        uint64_t key = rng_next(&rng) % (MOST / copies), at = n ? rng_next(&rng) % n : 0;
        tamis_error e = adds ? add(f, key, NULL) : TAMIS_OK;
        CHECK(e == TAMIS_OK || e == TAMIS_ESPACE);
        if (!adds) {
            CHECK(take(f, there[at]) == TAMIS_REMOVED);
            there[at] = there[--n];
        } else if (e == TAMIS_OK) {
            there[n++] = key;
        }
        refused = e == TAMIS_ESPACE ? refused + 1 : full && n < STEPS / 8 ? 0 : refused;
        tamis_filter_brief(f, &facts);
        most = facts.bytes > most ? facts.bytes : most;
        above += facts.bytes > limit;
    }
    CHECK_MSG(above == 0 && most > limit * 3 / 4,
              "%g of %g bytes at most, at %g, %u copies; %g times too many", (double)most,
              (double)limit, fpp, copies, (double)above);
    for (uint64_t i = 0; i < n; i++)
        CHECK(has(f, there[i]));
    tamis_filter_free(f);
}

TEST(a_limit_holds_whatever_comes_and_goes)
{
    static const double rates[] = {0.5, 0.1, 0.01, 0.0001};
    uint64_t rng = harness_seed();
    for (unsigned i = 0; i < 4; i++)
        for (unsigned copies = 1; copies <= 16; copies *= 4)
            for (unsigned j = 0; j < (harness_slow() ? 1 : 4); j++)
                live_within(20000 + rng_next(&rng) % 20000, rates[i], copies, rng_next(&rng));
}

TEST(options_are_checked)
{
    tamis_filter *f;
    tamis_options low = {.growth = TAMIS_SMOOTH, .fpp = 1e-6};
    tamis_options spread = {.growth = TAMIS_SMOOTH, .layout = TAMIS_SPREAD};
    CHECK(tamis_filter_new(&f, &low, NULL) == TAMIS_EARG);
    CHECK(tamis_filter_new(&f, &spread, NULL) == TAMIS_EARG);
}

/* ---- small sets, and what sets share --------------------------------------------------------- */

TEST(small_sets_take_little)
{
    struct fault fault;
    fault_init(&fault);
    uint8_t key[TAMIS_KEY_LEN] = {1}; /* one family, as a server has */
    tamis_options o = {.key = key, .allocator = &fault.allocator};
    tamis_filter *f, *other;
    tamis_filter_facts facts;
    CHECK(tamis_filter_new(&other, &o, NULL) == TAMIS_OK);
    size_t before = fault.bytes;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (uint64_t n = 0; n < 20000; n++) {
        CHECK(add(f, n, NULL) == TAMIS_OK);
        tamis_filter_brief(f, &facts);
        CHECK_MSG(facts.bytes == fault.bytes - before, "%g of %g bytes", (double)facts.bytes,
                  (double)(fault.bytes - before));
        double bits = 8 * (double)facts.bytes / (double)(n + 1);
        CHECK_MSG(n >= 10 || facts.bytes <= 256, "%g bytes for ten keys", (double)facts.bytes);
        CHECK_MSG(n < 999 || bits <= 30, "%g bits per key at %g", bits, (double)(n + 1));
    }
    tamis_filter_free(other);
    tamis_filter_free(f);
    CHECK(fault_clean(&fault));
}

/* One that was restated has its own terms, and those of a set beside it stay. */
TEST(terms_are_shared_until_they_change)
{
    struct fault fault;
    fault_init(&fault);
    uint8_t key[TAMIS_KEY_LEN] = {1};
    tamis_options o = {.capacity = 600, .key = key, .allocator = &fault.allocator};
    enum { KINDS = 300, EACH = 3 };
    tamis_filter *f[3], *copy, *kind[KINDS * EACH];
    tamis_filter_facts facts;
    for (unsigned i = 0; i < 3; i++) {
        CHECK(tamis_filter_new(&f[i], &o, NULL) == TAMIS_OK);
        fill(f[i], 1000 * i, 1000 * i + 900);
    }
    CHECK(tamis_filter_clone(&copy, f[0]) == TAMIS_OK);
    CHECK(set_terms(&f[0]->set) == set_terms(&f[1]->set) &&
          set_terms(&copy->set) == set_terms(&f[1]->set));
    for (unsigned i = 1; i < 3; i++)
        CHECK(tamis_filter_merge(f[0], f[i], TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
    tamis_filter_brief(f[0], &facts);
    CHECK(facts.fpp > 0.01 && set_terms(&f[0]->set) != set_terms(&f[1]->set));
    tamis_filter_brief(f[1], &facts);
    CHECK(facts.fpp == 0.01);
    check_all(f[0], 0, 900);
    check_all(f[0], 2000, 2900);
    /* Any number of kinds: only the first of each takes the memory of its terms. */
    for (unsigned i = 0; i < KINDS * EACH; i++) {
        o.capacity = 10 + i % KINDS;
        size_t before = fault.bytes;
        CHECK(tamis_filter_new(&kind[i], &o, NULL) == TAMIS_OK);
        tamis_filter_brief(kind[i], &facts);
        size_t terms = i < KINDS ? sizeof(struct terms) : 0;
        CHECK(facts.bytes == fault.bytes - before - terms);
        CHECK(i < KINDS || set_terms(&kind[i]->set) == set_terms(&kind[i - KINDS]->set));
        CHECK(add(kind[i], i, NULL) == TAMIS_OK);
    }
    for (unsigned i = 0, n = KINDS * EACH; i < n;
         i++) { /* in another order, with others made between */
        unsigned gone = i * 7 % n;
        tamis_filter_free(kind[gone]);
        kind[gone] = NULL;
        for (unsigned j = gone % KINDS; j < n; j += KINDS)
            CHECK(!kind[j] || has(kind[j], j));
        o.capacity = 10 + gone % KINDS;
        CHECK(tamis_filter_new(&kind[gone], &o, NULL) == TAMIS_OK);
        for (unsigned j = gone % KINDS; j < n; j += KINDS)
            CHECK(!kind[j] || set_terms(&kind[j]->set) == set_terms(&kind[gone]->set));
        tamis_filter_free(kind[gone]);
        kind[gone] = NULL;
    }
    for (unsigned i = 0; i < 3; i++)
        tamis_filter_free(f[i]);
    tamis_filter_free(copy);
    CHECK(fault_clean(&fault));
}

/* ---- keys of 8 bytes, one by one -------------------------------------------------------------- */

/* Their lookup has a body of its own, for slots of each width: it finds what batches find. */
static void compare_short_lookups(const tamis_filter *f, uint64_t members)
{
    enum { RUN = 1000 };
    static uint64_t keys[RUN];
    static tamis_digest digests[RUN];
    static uint8_t found[RUN];
    uint64_t others = 0, missed = 0, asked = members + 100 * RUN;
    for (uint64_t i = 0; i < asked;
         i += RUN) { /* the first members, the last ones, and non-members */
        if (i >= 100 * RUN && i + 100 * RUN < members)
            continue;
        for (uint64_t j = 0; j < RUN; j++)
            keys[j] = i + j;
        tamis_filter_digest_fixed(f, keys, sizeof *keys, RUN, digests);
        tamis_filter_has_many(f, digests, RUN, found);
        for (uint64_t j = 0; j < RUN; j++) {
            bool has = tamis_filter_has(f, &keys[j], sizeof *keys);
            others += has != (found[j] != 0);
            missed += i + j < members && !has;
        }
    }
    CHECK_MSG(others == 0 && missed == 0, "%g differ, %g denied, of %g keys", (double)others,
              (double)missed, (double)members);
}

/* At 0.1 % the first keys have more unknown bits than the low bits of their slots, in the end. */
TEST(short_lookups_find_what_batches_find)
{
    static const double rates[] = {0.1, 0.01, 0.001, 0.0001};
    for (unsigned i = 0; i < 4; i++) {
        tamis_filter *f = make(rates[i], 0, false);
        uint64_t most = harness_slow() ? 50000 : i == 2 ? 4000000 : 150000;
        for (uint64_t n = 0, next = 1; n < most; next *= 4) {
            next = next < most ? next : most;
            for (; n < next; n++)
                CHECK(tamis_filter_add(f, &n, sizeof n, NULL) == TAMIS_OK);
            compare_short_lookups(f, n);
        }
        tamis_filter_free(f);
    }
}

HARNESS_MAIN
