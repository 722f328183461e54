/* Small filters answer, grow and are saved like the whole sets that they stand for, in less memory. */
#include "fault.h"
#include "harness.h"
#include "histories.h"
#include "set/set.h"

enum { NO_CAPACITY = 0, MOST_PLACES = SMALL_PLACES_LEN / 8 };

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
    return small_add(m, &i, sizeof i);
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

static void check_answers(const struct small *m, const struct set *like, uint64_t members)
{
    uint64_t differ = 0, missed = 0, wrong = 0;
    bool places = small_has_places(m);
    for (uint64_t i = 0; i < members; i++)
        missed += !small_has(m, &i, sizeof i);
    for (uint64_t i = UINT64_C(1) << 40; i < (UINT64_C(1) << 40) + 2000; i++) {
        bool here = small_has(m, &i, sizeof i);
        differ += here != tamis_filter_has(as_filter((struct set *)(uintptr_t)like), &i, sizeof i);
        wrong += here;
    }
    CHECK(missed == 0 && (places ? wrong == 0 : differ == 0));
}

/* Up to its capacity and past it; with keys that are added twice. */
TEST(bits_answer_and_are_saved_like_their_set)
{
    static const uint64_t capacities[] = {1, 2, 10, 50, 100, 333, 1000, 4000, SMALL_CAPACITY};
    for (size_t c = 0; c < 2 * sizeof capacities / sizeof *capacities; c++) {
        uint64_t capacity = capacities[c / 2];
        tamis_hash hash = c % 2 ? TAMIS_XXH3 : TAMIS_SIP;
        struct set *like = make(capacity, hash, NULL);
        struct small *m = small(capacity, hash, NULL);
        uint64_t most = 2 * capacity < capacity + 3000 ? 2 * capacity + 10 : capacity + 3000;
        CHECK(!small_has_places(m));
        for (uint64_t i = 0; i < most; i++) {
            bool fresh;
            CHECK(tamis_filter_add(as_filter(like), &i, sizeof i, &fresh) == TAMIS_OK);
            CHECK(add(&m, i) == (fresh ? SMALL_NEW : SMALL_OLD));
            uint64_t again = i / 2;
            CHECK(tamis_filter_add(as_filter(like), &again, sizeof again, NULL) == TAMIS_OK);
            CHECK(add(&m, again) == SMALL_OLD);
            if (i == capacity / 2 || i == capacity || i + 1 == most) {
                uint32_t parts;
                tamis_filter_facts facts;
                set_brief(like, &facts);
                check_whole(m, like);
                check_answers(m, like, i + 1);
                CHECK(small_items(m, &parts) == facts.items && small_bytes(m) < facts.bytes);
                CHECK(parts == facts.vectors + (set_lines(like) != NULL));
            }
        }
        small_clear(m);
        CHECK(set_clear(like) == TAMIS_OK);
        check_answers(m, like, 0);
        uint32_t parts;
        CHECK(small_items(m, &parts) == 0 && parts == 1 && add(&m, 7) == SMALL_NEW);
        small_free(m);
        set_free(like);
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
        check_answers(m, like, i + 1);
        CHECK(small_items(m, &parts) == i + 1 && parts == 1);
        CHECK(small_bytes(m) < set_bytes(like));
    }
    CHECK(small_key(m, key) && memcmp(key, "small", 6) == 0);
    CHECK(add(&m, MOST_PLACES) == SMALL_OUTGROWN && small_items(m, &parts) == MOST_PLACES);
    check_whole(m, like);
    small_clear(m);
    for (uint64_t i = 0; i < MOST_PLACES; i++)
        CHECK(!small_has(m, &i, sizeof i));
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
            check_answers(m, like, n);
            CHECK(small_items(m, &parts) == capacity && parts == 1);
            CHECK(small_bytes(m) + 400 < set_bytes(like));
            while (small_has(m, &n, sizeof n))
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

/* The keys past the capacity are few, or the filter is large and made whole. */
TEST(bits_are_outgrown)
{
    struct small *m = small(100, TAMIS_SIP, NULL);
    uint64_t n = 0;
    while (add(&m, n) != SMALL_OUTGROWN)
        n++;
    CHECK_MSG(n > 3000 && n < 10000, "%g", (double)n);
    struct set *whole = small_whole(m), *was = whole;
    for (uint64_t i = 0; i < n; i++)
        CHECK(tamis_filter_has(as_filter(whole), &i, sizeof i));
    struct small *again;
    CHECK(small_of(whole, true, &again) && !again && whole == was);
    small_free(m);
    set_free(whole);
}

/* A set becomes small again, also with lines behind its vector; but not with what a small filter cannot hold. */
TEST(which_sets_have_a_small_form)
{
    struct small *m = small(100, TAMIS_SIP, NULL), *other = NULL;
    for (uint64_t i = 0; i < 150; i++)
        add(&m, i);
    struct set *whole = small_whole(m), *like = small_whole(m);
    CHECK(small_of(whole, false, &other) && other);
    check_whole(other, like);
    check_answers(other, like, 150);
    small_free(other);
    CHECK(tamis_filter_merge(as_filter(like), as_filter(like), TAMIS_MERGE_RESTATE, NULL) ==
              TAMIS_OK &&
          tamis_filter_merge(as_filter(like), as_filter(like),
                             TAMIS_MERGE_CONCAT | TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
    CHECK(small_of(like, true, &other) && !other);
    set_free(like);
    small_free(m);

    struct set *watched = make(100, TAMIS_SIP, NULL);
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
    uint8_t bytes[SMALL_PLACES_LEN + 8] = {0};
    struct small *m = small(NO_CAPACITY, TAMIS_SIP, NULL), *n = NULL;
    for (uint64_t i = 0; i < MOST_PLACES; i++)
        CHECK(add(&m, i) == SMALL_NEW);
    CHECK(small_places(m, bytes) == SMALL_PLACES_LEN);
    CHECK(small_of(small_start(m), true, &n) && n);
    CHECK(small_put_places(&n, bytes, SMALL_PLACES_LEN));
    for (uint64_t i = 0; i < MOST_PLACES; i++)
        CHECK(small_has(n, &i, sizeof i));
    small_free(n);
    n = small(NO_CAPACITY, TAMIS_SIP, NULL);
    CHECK(!small_put_places(&n, bytes, 7) && !small_put_places(&n, bytes, SMALL_PLACES_LEN + 8));
    memcpy(bytes + 8, bytes, 8);
    CHECK(!small_put_places(&n, bytes, 16)); /* one place twice */
    small_free(n);
    n = small(10, TAMIS_SIP, NULL);
    CHECK(!small_put_places(&n, bytes, 8));
    small_free(n);
    small_free(m);
}

/* Every allocation fails once: nothing changes, and nothing leaks. */
TEST(without_memory_nothing_changes)
{
    static const uint64_t capacities[] = {NO_CAPACITY, 20};
    for (unsigned c = 0; c < 4; c++) {
        struct fault fault;
        fault_init(&fault);
        struct small *m = small(capacities[c % 2], TAMIS_SIP, &fault.allocator), *copy = NULL;
        uint64_t n = c < 2 ? 8 : 24, failures = 0;
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
            if (c < 2 && add(&m, 1000 + at) > SMALL_NEW) {
                CHECK(small_items(m, &parts) == before);
                failures++;
            }
            fault_arm(&fault, 0, false);
        }
        CHECK(failures > 3);
        for (uint64_t i = 0; i < n; i++)
            CHECK(small_has(m, &i, sizeof i));
        small_free(m);
        for (uint64_t at = 1; at < 4; at++) { /* becoming small */
            struct set *s = make(capacities[c % 2], TAMIS_SIP, &fault.allocator);
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
    static const uint64_t sizes[][2] = {{10, 48}, {100, 160}, {1000, 1296}, {10000, 12616}};
    struct small *m = small(NO_CAPACITY, TAMIS_SIP, NULL);
    CHECK(small_bytes(m) == 64);
    for (uint64_t i = 0; i < 10; i++)
        add(&m, i);
    CHECK(small_bytes(m) == 128);
    small_free(m);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        m = small(sizes[i][0], TAMIS_SIP, NULL);
        CHECK_MSG(small_bytes(m) <= sizes[i][1], "%g", (double)small_bytes(m));
        small_free(m);
    }
}

HARNESS_MAIN
