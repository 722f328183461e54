/* Building with several threads: the same bits as adding one by one, whatever the layout and the number
 * of threads, on top of what is there, and to the capacity and not past it.
 */
#include "harness.h"

#include "tamis.h"

enum { KEYS = 60000, BEFORE = 500 };

/* Large enough for threads: 32 MiB. */
static tamis_filter *make(tamis_layout layout, tamis_hash hash, uint64_t capacity, bool overfill)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "one family";
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = layout,
                       .hash = hash,
                       .bits = UINT64_C(1) << 28,
                       .hashes = 7,
                       .capacity = capacity,
                       .overfill = overfill,
                       .key = key};
    tamis_filter *f = NULL;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    return f;
}

/* Some come several times, next to one another and far apart. */
static void make_digests(const tamis_filter *f, tamis_digest *digests)
{
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t key = i % 7 == 0 ? i / 2 : i;
        digests[i] = tamis_filter_digest(f, &key, sizeof key);
    }
}

static void compare(tamis_layout layout, tamis_hash hash)
{
    static tamis_digest digests[KEYS];
    tamis_filter *one = make(layout, hash, 2 * KEYS, false);
    tamis_filter_facts serial, built;
    make_digests(one, digests);
    CHECK(tamis_filter_add_many(one, digests, KEYS, NULL, NULL) == TAMIS_OK);
    tamis_filter_brief(one, &serial);
    for (unsigned threads = 0; threads <= 5; threads++) {
        tamis_filter *f = make(layout, hash, 2 * KEYS, false);
        CHECK(tamis_filter_add_many(f, digests, BEFORE, NULL, NULL) == TAMIS_OK);
        CHECK(tamis_filter_build(f, digests, KEYS, threads) == TAMIS_OK);
        tamis_filter_brief(f, &built);
        CHECK_MSG(tamis_filter_equal(f, one), "%u threads", threads);
        /* Threads that add one key at the same time may both have set some of its bits. */
        uint64_t more = layout == TAMIS_SPREAD ? 50 : 0;
        CHECK_MSG(built.items >= serial.items - more && built.items <= serial.items + more,
                  "%llu, not %llu", (unsigned long long)built.items,
                  (unsigned long long)serial.items);
        tamis_filter_free(f);
    }
    tamis_filter_free(one);
}

TEST(threads_build_what_one_builds)
{
    compare(TAMIS_BLOCKED, TAMIS_XXH3);
    compare(TAMIS_SPREAD, TAMIS_SIP);
}

TEST(a_build_keeps_to_the_capacity)
{
    static tamis_digest digests[KEYS];
    tamis_filter *f = make(TAMIS_BLOCKED, TAMIS_XXH3, KEYS / 2, false);
    tamis_filter_facts info;
    uint8_t found[KEYS];
    make_digests(f, digests);
    CHECK(tamis_filter_build(f, digests, KEYS, 4) == TAMIS_EFULL);
    tamis_filter_brief(f, &info);
    CHECK(info.items == KEYS / 2); /* as with tamis_filter_add_many: the first ones are in */
    tamis_filter_free(f);
    f = make(TAMIS_BLOCKED, TAMIS_XXH3, KEYS / 2, true);
    CHECK(tamis_filter_build(f, digests, KEYS, 4) == TAMIS_OK);
    memset(found, 0, sizeof found);
    tamis_filter_has_many(f, digests, KEYS, found);
    CHECK(memchr(found, 0, KEYS) == NULL);
    tamis_filter_free(f);
}

TEST(others_are_not_built)
{
    tamis_options kinds[] = {{.growth = TAMIS_SCALABLE},
                             {.growth = TAMIS_DYNAMIC},
                             {.growth = TAMIS_FIXED, .deletable = true}};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tamis_filter *f;
        tamis_digest digest = {1, 2};
        CHECK(tamis_filter_new(&f, &kinds[i], NULL) == TAMIS_OK);
        CHECK(tamis_filter_build(f, &digest, 1, 2) == TAMIS_EKIND);
        tamis_filter_free(f);
    }
}

HARNESS_MAIN
