/* Small filters answer, grow and are saved like the whole sets that they stand for, in less memory. */
#include "fault.h"
#include "harness.h"
#include "histories.h"
#include "set/set.h"

#include <math.h>

enum { NO_CAPACITY = 0, MOST_PLACES = 24 };

static struct set *make_as(tamis_growth growth, uint64_t capacity, tamis_hash hash,
                           const tamis_allocator *a)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "small";
    tamis_options o = {
        .growth = growth, .capacity = capacity, .key = key, .hash = hash, .allocator = a};
    struct set *s = NULL;
    CHECK(filter_new(&s, &o, capacity > 0, NULL) == TAMIS_OK);
    return s;
}

static struct set *make(uint64_t capacity, tamis_hash hash, const tamis_allocator *a)
{
    return make_as(TAMIS_GROWTH_DEFAULT, capacity, hash, a);
}

static struct small *small(uint64_t capacity, tamis_hash hash, const tamis_allocator *a)
{
    struct small *m = NULL;
    CHECK(small_of(make(capacity, hash, a), true, &m) && m);
    return m;
}

static enum small_added add(struct small **m, uint64_t i)
{
    return small_add(m, small_digest(*m, &i, sizeof i));
}

static bool has(const struct small *m, uint64_t i)
{
    return small_has(m, small_digest(m, &i, sizeof i));
}

/* The same bytes as the set to which the same keys were added. */
static void check_whole(const struct small *m, const struct set *like)
{
    struct set *whole = small_whole(m);
    CHECK(whole != NULL);
    struct bytes x = bytes_of(as_filter(whole), 0),
                 y = bytes_of(as_filter((struct set *)(uintptr_t)like), 0);
    CHECK(x.len > 0 && x.len == y.len && memcmp(x.data, y.data, x.len) == 0);
    CHECK(set_memory_limit(whole) == set_memory_limit(like));
    bytes_free(&x);
    bytes_free(&y);
    set_free(whole);
}

static void check_answers(const struct small *m, const struct set *like, uint64_t members,
                          bool places)
{
    uint64_t differ = 0, missed = 0, wrong = 0;
    for (uint64_t i = 0; i < members; i++)
        missed += !has(m, i);
    for (uint64_t i = UINT64_C(1) << 40; i < (UINT64_C(1) << 40) + 2000; i++) {
        bool here = has(m, i);
        differ += here != tamis_filter_has(as_filter((struct set *)(uintptr_t)like), &i, sizeof i);
        wrong += here;
    }
    CHECK(missed == 0 && (places ? wrong == 0 : differ == 0));
}

/* Up to its capacity; with keys that are added twice. */
TEST(bits_answer_and_are_saved_like_their_set)
{
    static const uint64_t capacities[] = {PAGE_CAPACITY + 1, 333, 1000, 4000, SMALL_CAPACITY};
    for (size_t c = 0; c < 2 * sizeof capacities / sizeof *capacities; c++) {
        uint64_t capacity = capacities[c / 2];
        tamis_hash hash = c % 2 ? TAMIS_XXH3 : TAMIS_SIP;
        struct set *like = make(capacity, hash, NULL);
        struct small *m = small(capacity, hash, NULL);
        uint32_t parts;
        CHECK(!small_keeps(m));
        for (uint64_t i = 0; i < capacity; i++) {
            bool fresh;
            CHECK(tamis_filter_add(as_filter(like), &i, sizeof i, &fresh) == TAMIS_OK);
            CHECK(add(&m, i) == (fresh ? SMALL_NEW : SMALL_OLD));
            uint64_t again = i / 2;
            CHECK(tamis_filter_add(as_filter(like), &again, sizeof again, NULL) == TAMIS_OK);
            CHECK(add(&m, again) == SMALL_OLD);
            if (i != capacity / 2 && i + 1 != capacity)
                continue;
            tamis_filter_facts facts;
            set_brief(like, &facts);
            check_whole(m, like);
            check_answers(m, like, i + 1, false);
            CHECK(small_items(m, &parts) == facts.items && small_bytes(m) < facts.bytes);
            CHECK(parts == 1);
        }
        small_clear(&m);
        CHECK(set_clear(like) == TAMIS_OK);
        check_answers(m, like, 0, false);
        CHECK(small_items(m, &parts) == 0 && parts == 1 && add(&m, 7) == SMALL_NEW);
        small_free(m);
        set_free(like);
    }
}

/* What is kept, put back into what begins like it: the same again. */
static struct small *kept(const struct small *m)
{
    struct small *back = NULL;
    size_t len = small_kept(m);
    uint8_t *bytes = malloc(2 * len);
    small_keep(m, bytes);
    CHECK(small_of(small_start(m), true, &back) && back);
    CHECK(small_put_back(&back, bytes, len) && small_kept(back) == len);
    small_keep(back, bytes + len);
    CHECK(memcmp(bytes, bytes + len, len) == 0);
    free(bytes);
    return back;
}

static void check_pages(const struct small *m, uint64_t n, uint64_t items)
{
    uint32_t parts;
    struct set *whole = small_whole(m);
    struct small *back = kept(m), *copy = small_copy(m);
    uint64_t found = 0, asked = 200000, wrong = 0;
    CHECK(small_items(m, &parts) == items && set_items(whole, &parts) == items);
    check_whole(back, whole);
    check_whole(copy, whole);
    for (uint64_t i = 0; i < n; i++)
        CHECK(has(m, i) && has(back, i) && tamis_filter_has(as_filter(whole), &i, sizeof i));
    for (uint64_t i = UINT64_C(1) << 40; i < (UINT64_C(1) << 40) + asked; i++) {
        bool here = has(m, i), there = tamis_filter_has(as_filter(whole), &i, sizeof i);
        CHECK(here <= there && has(copy, i) == here);
        found += here;
        wrong += there;
    }
    double rate = set_opt(whole)->fpp * (double)asked;
    CHECK_MSG((double)wrong < rate + 6 * sqrt(rate), "%" PRIu64 " in pages, %" PRIu64 " in lines",
              found, wrong);
    CHECK(n < 1000 || small_bytes(m) < set_bytes(whole));
    set_free(whole);
    small_free(back);
    small_free(copy);
}

/* Pages answer as their set does, but with fewer false positives; members are never missed, the rate is kept. */
TEST(pages_have_all_keys_and_keep_the_rate)
{
    static const uint64_t capacities[] = {1, 7, 50, 100, PAGE_CAPACITY, 300, 1000, 10000};
    for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
        struct small *m = small(capacities[c], TAMIS_SIP, NULL);
        uint64_t most = 60 * capacities[c] < 40000 ? 60 * capacities[c] : 40000, items = 0,
                 next = 1;
        for (uint64_t i = 0; i < most; i++) {
            bool there = has(m, i);
            CHECK(add(&m, i) == (there ? SMALL_OLD : SMALL_NEW) && has(m, i));
            CHECK(add(&m, i / 2) == SMALL_OLD);
            items += !there;
            if ((i + 1 != next && i + 1 != most) || (i < capacities[c] && !small_keeps(m)))
                continue;
            check_pages(m, i + 1, items);
            next = i * 3 + 1;
        }
        small_clear(&m);
        CHECK(!has(m, 3) && add(&m, 3) == SMALL_NEW);
        small_free(m);
    }
}

TEST(places_answer_and_are_saved_like_their_set)
{
    struct set *like = make(NO_CAPACITY, TAMIS_SIP, NULL);
    struct small *m = small(NO_CAPACITY, TAMIS_SIP, NULL);
    uint32_t parts;
    uint8_t key[TAMIS_KEY_LEN];
    check_whole(m, like);
    for (uint64_t i = 0; i < MOST_PLACES; i++) {
        CHECK(tamis_filter_add(as_filter(like), &i, sizeof i, NULL) == TAMIS_OK);
        CHECK(add(&m, i) == SMALL_NEW && add(&m, i / 2) == SMALL_OLD);
        check_whole(m, like);
        check_answers(m, like, i + 1, true);
        CHECK(small_items(m, &parts) == i + 1 && parts == 1);
        CHECK(small_bytes(m) < set_bytes(like));
    }
    CHECK(small_key(m, key) && memcmp(key, "small", 6) == 0);
    CHECK(add(&m, MOST_PLACES) == SMALL_OUTGROWN && small_items(m, &parts) == MOST_PLACES);
    check_whole(m, like);
    small_clear(&m);
    for (uint64_t i = 0; i < MOST_PLACES; i++)
        CHECK(!has(m, i));
    CHECK(small_items(m, &parts) == 0 && add(&m, 7) == SMALL_NEW);
    small_free(m);
    set_free(like);
}

/* A filter that is full or adds a vector is whole from then on. */
TEST(other_growths_are_small_up_to_their_capacity)
{
    static const tamis_growth growths[] = {TAMIS_FIXED, TAMIS_SCALABLE};
    for (unsigned g = 0; g < 2; g++)
        for (uint64_t capacity = 1; capacity <= SMALL_CAPACITY; capacity *= 10) {
            struct set *like = make_as(growths[g], capacity, TAMIS_SIP, NULL);
            struct small *m = NULL;
            uint64_t n = 0, items = 0;
            uint32_t parts;
            CHECK(small_of(make_as(growths[g], capacity, TAMIS_SIP, NULL), false, &m) && m);
            for (; items < capacity; n++) {
                bool fresh;
                CHECK(tamis_filter_add(as_filter(like), &n, sizeof n, &fresh) == TAMIS_OK);
                CHECK(add(&m, n) == (fresh ? SMALL_NEW : SMALL_OLD));
                items += fresh;
            }
            check_whole(m, like);
            check_answers(m, like, n, false);
            CHECK(small_items(m, &parts) == capacity && parts == 1);
            CHECK(small_bytes(m) + 400 < set_bytes(like));
            while (has(m, n))
                CHECK(add(&m, n++) == SMALL_OLD);
            CHECK(add(&m, n) == SMALL_OUTGROWN && small_items(m, &parts) == capacity);
            struct set *whole = small_whole(m);
            CHECK(tamis_filter_add(as_filter(whole), &n, sizeof n, NULL) ==
                  (growths[g] == TAMIS_FIXED ? TAMIS_EFULL : TAMIS_OK));
            set_free(whole);
            small_free(m);
            set_free(like);
        }
}

TEST(pages_are_outgrown)
{
    static const uint64_t capacities[] = {1, 100, 1000};
    for (unsigned c = 0; c < 3; c++) {
        struct small *m = small(capacities[c], TAMIS_SIP, NULL);
        uint64_t n = 0;
        while (add(&m, n) != SMALL_OUTGROWN)
            n++;
        CHECK_MSG(n > (c ? 127000 : 10000) && n < 150000, "%" PRIu64, n);
        struct set *whole = small_whole(m), *was = whole;
        uint64_t most =
            small_bytes(m) * (c < 2 ? 17 : 16) / 10; /* lines have room to grow, or not */
        CHECK_MSG(set_bytes(whole) < most, "%" PRIu64, set_bytes(whole));
        for (uint64_t i = 0; i < n; i++)
            CHECK(tamis_filter_has(as_filter(whole), &i, sizeof i));
        struct small *again;
        CHECK(small_of(whole, true, &again) && !again && whole == was);
        small_free(m);
        set_free(whole);
    }
}

/* Pages made anew, the first set of them, the lines that follow: nothing exceeds the limit, and little of it is left. */
TEST(pages_end_at_the_memory_limit)
{
    static const uint64_t capacities[] = {100, 128, 1000, 10000};
    for (unsigned c = 0; c < 4; c++)
        for (uint64_t limit = 300; limit < 320000; limit += limit / (limit < 10000 ? 9 : 2)) {
            struct small *m = NULL;
            struct set *s = make(capacities[c], TAMIS_SIP, NULL);
            CHECK(set_limit(s, limit) == TAMIS_OK && small_of(s, true, &m) && m);
            uint64_t n = 0, least = small_bytes(m);
            while (add(&m, n) <= SMALL_NEW)
                n++;
            CHECK(add(&m, n) == SMALL_NO_SPACE && (n == 0 || add(&m, n / 2) == SMALL_OLD));
            CHECK_MSG(small_bytes(m) <= max_u64(limit, least),
                      "%" PRIu64 " bytes, limit %" PRIu64 ", capacity %" PRIu64, small_bytes(m),
                      limit, capacities[c]);
            CHECK(small_bytes(m) * 3 > limit * 2 || limit < 2 * least);
            small_free(m);
        }
}

/* A set becomes small again if it has no lines; but not with what a small filter cannot hold. */
TEST(which_sets_have_a_small_form)
{
    struct small *m = small(300, TAMIS_SIP, NULL), *other = NULL;
    for (uint64_t i = 0; i < 250; i++)
        add(&m, i);
    struct set *whole = small_whole(m), *like = small_whole(m);
    CHECK(small_of(whole, false, &other) && other);
    check_whole(other, like);
    check_answers(other, like, 250, false);
    small_free(other);
    CHECK(tamis_filter_merge(as_filter(like), as_filter(like), TAMIS_MERGE_RESTATE, NULL) ==
              TAMIS_OK &&
          tamis_filter_merge(as_filter(like), as_filter(like),
                             TAMIS_MERGE_CONCAT | TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
    CHECK(small_of(like, true, &other) && !other);
    set_free(like);
    for (uint64_t i = 250; i < 400; i++)
        add(&m, i);
    whole = small_whole(m);
    CHECK(small_of(whole, true, &other) && !other);
    set_free(whole);
    small_free(m);

    struct set *watched = make(300, TAMIS_SIP, NULL);
    CHECK(vector_sums(set_layers(watched)->v[0], false, set_allocator(watched)) != NULL);
    CHECK(small_of(watched, true, &other) && !other);
    set_free(watched);

    struct set *lines = make(NO_CAPACITY, TAMIS_SIP, NULL);
    CHECK(small_of(lines, false, &other) && !other);
    CHECK(tamis_filter_add(as_filter(lines), "x", 1, NULL) == TAMIS_OK);
    CHECK(small_of(lines, true, &other) && !other);
    CHECK(set_clear(lines) == TAMIS_OK && small_of(lines, true, &other) && !other);
    set_free(lines);

    static const tamis_options kinds[] = {
        {.capacity = 100, .growth = TAMIS_FLEXIBLE},
        {.capacity = 100, .growth = TAMIS_FIXED, .overfill = true},
        {.capacity = 100, .growth = TAMIS_FIXED, .deletable = true},
        {.capacity = 100, .growth = TAMIS_FIXED, .hash = TAMIS_H3},
        {.deletable = true},
        {.capacity = SMALL_CAPACITY + 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct set *s = NULL;
        CHECK(filter_new(&s, &kinds[i], true, NULL) == TAMIS_OK);
        CHECK(small_of(s, true, &other) && !other);
        set_free(s);
    }
}

TEST(places_are_saved_as_bytes)
{
    uint8_t bytes[8 * MOST_PLACES + 8] = {0};
    struct small *m = small(NO_CAPACITY, TAMIS_SIP, NULL), *n = NULL;
    for (uint64_t i = 0; i < MOST_PLACES; i++)
        CHECK(add(&m, i) == SMALL_NEW);
    CHECK(small_kept(m) == 8 * MOST_PLACES);
    small_keep(m, bytes);
    n = kept(m);
    for (uint64_t i = 0; i < MOST_PLACES; i++)
        CHECK(has(n, i));
    small_free(n);
    n = small(NO_CAPACITY, TAMIS_SIP, NULL);
    CHECK(!small_put_back(&n, bytes, 7) && !small_put_back(&n, bytes, sizeof bytes));
    memcpy(bytes + 8, bytes, 8);
    CHECK(!small_put_back(&n, bytes, 16)); /* one place twice */
    small_free(n);
    n = small(1000, TAMIS_SIP, NULL);
    CHECK(!small_put_back(&n, bytes, 8));
    small_free(n);
    small_free(m);
}

/* What is put back is not believed: not another form, not more than fits, not with other known bits. */
TEST(pages_that_are_put_back_are_checked)
{
    static const uint64_t counts[] = {60, 250, 2500};
    for (unsigned c = 0; c < 3; c++) {
        struct small *m = small(100, TAMIS_SIP, NULL), *other = NULL;
        for (uint64_t i = 0; i < counts[c]; i++)
            add(&m, i);
        size_t len = small_kept(m), refused = 0;
        uint8_t *bytes = malloc(len);
        small_keep(m, bytes);
        for (size_t i = 0; i < len && i < 700; i++) {
            bytes[i] ^= (uint8_t)(1 << i % 8);
            CHECK(small_of(small_start(m), true, &other) && other);
            refused += !small_put_back(&other, bytes, len);
            small_free(other);
            bytes[i] ^= (uint8_t)(1 << i % 8);
        }
        CHECK_MSG(refused > 5, "%zu", refused);
        other = small(300, TAMIS_SIP, NULL); /* of another filter */
        CHECK(!small_put_back(&other, bytes, len));
        small_free(other);
        other = small(NO_CAPACITY, TAMIS_SIP, NULL);
        CHECK(!small_put_back(&other, bytes, len));
        small_free(other);
        free(bytes);
        small_free(m);
    }
}

/* Every allocation fails once: nothing changes, and nothing leaks. */
TEST(without_memory_nothing_changes)
{
    static const uint64_t capacities[] = {NO_CAPACITY, 20, 300};
    for (unsigned c = 0; c < 6; c++) {
        struct fault fault;
        fault_init(&fault);
        struct small *m = small(capacities[c % 3], TAMIS_SIP, &fault.allocator), *copy = NULL;
        uint64_t n = c < 3 ? 8 : c == 5 ? 320 : 24, failures = 0;
        for (uint64_t i = 0; i < n; i++)
            while (add(&m, i) > SMALL_NEW) /* the vector is full: the rest, or more places */
                CHECK(false);
        for (uint64_t at = 1; at < 40; at++) {
            fault_arm(&fault, at, false);
            copy = small_copy(m);
            failures += !copy;
            small_free(copy);
            fault_arm(&fault, at, false);
            struct set *whole = small_whole(m);
            failures += !whole;
            set_free(whole);
            fault_arm(&fault, at, true);
            uint32_t parts;
            uint64_t before = small_items(m, &parts);
            if (c % 3 < 2 && c != 3 && add(&m, 1000 + at) > SMALL_NEW) {
                CHECK(small_items(m, &parts) == before);
                failures++;
            }
            fault_arm(&fault, 0, false);
        }
        CHECK(failures > 3);
        for (uint64_t i = 0; i < n; i++)
            CHECK(has(m, i));
        small_free(m);
        for (uint64_t at = 1; at < 4; at++) { /* becoming small */
            struct set *s = make(capacities[c % 3], TAMIS_SIP, &fault.allocator);
            fault_arm(&fault, at, false);
            bool ok = small_of(s, true, &m);
            fault_arm(&fault, 0, false);
            CHECK(ok == (m != NULL));
            if (m)
                small_free(m);
            else
                set_free(s);
        }
        CHECK(fault_clean(&fault));
    }
}

/* Bytes beside the key and the value of a server, which take 88 to 104. */
TEST(how_much_they_take)
{
    static const uint64_t sizes[][2] = {{10, 32}, {100, 48}, {1000, 1392}, {10000, 13600}};
    struct small *m = small(NO_CAPACITY, TAMIS_SIP, NULL);
    CHECK(small_bytes(m) == 56);
    for (uint64_t i = 0; i < 10; i++)
        add(&m, i);
    CHECK(small_bytes(m) == 120);
    small_free(m);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        m = small(sizes[i][0], TAMIS_SIP, NULL);
        CHECK_MSG(small_bytes(m) <= sizes[i][1], "%g", (double)small_bytes(m));
        small_free(m);
    }
}

HARNESS_MAIN
