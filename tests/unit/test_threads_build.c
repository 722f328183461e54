/* Building with several threads: the same bits as adding one by one, whatever the layout and the number
 * of threads, on top of what is there, and to the capacity and not past it. And families, which sets of
 * several threads share.
 */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

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

/* ---- families -------------------------------------------------------------------------------- */

static atomic_bool enough;

/* Of keys that the other threads have too, each filter for a moment. */
static void *come_and_go(void *of)
{
    for (unsigned i = 0; i < 3000 || (of && !atomic_load(&enough)); i++) {
        uint8_t key[TAMIS_KEY_LEN] = {(uint8_t)(i % 5)};
        tamis_options o = {.capacity = 8, .growth = TAMIS_FIXED, .hash = TAMIS_SIP, .key = key};
        tamis_filter *f = NULL, *clone = NULL;
        uint8_t told[TAMIS_KEY_LEN];
        CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
        CHECK(tamis_filter_clone(&clone, f) == TAMIS_OK);
        tamis_filter_free(f);
        CHECK(tamis_filter_key(clone, told) && memcmp(told, key, sizeof key) == 0);
        tamis_filter_free(clone);
    }
    return NULL;
}

/* Sanitizers have locks of their own, which a child may find taken. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define CHILDREN 0
#else
#define CHILDREN 100
#endif

/* A child of fork() has the lock of the families free, whoever held it: it would wait for ever. */
TEST(families_come_and_go_in_threads_and_children)
{
    pthread_t thread[3];
    bool on = true;
    atomic_store(&enough, false);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&thread[i], NULL, come_and_go, &on) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            tamis_options o = {.capacity = 8, .growth = TAMIS_FIXED};
            tamis_filter *f;
            _exit(tamis_filter_new(&f, &o, NULL) == TAMIS_OK ? 0 : 1);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    come_and_go(NULL);
}

HARNESS_MAIN
