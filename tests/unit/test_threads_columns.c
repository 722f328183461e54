/* Readers beside one thread that puts, replaces and drops: an owner whose vectors had the key before
 * and after a change is named all the time. Run under the thread sanitizer too.
 */
#include <pthread.h>
#include <sched.h>

#include "columns.h"
#include "harness.h"
#include "vector.h"

enum { READERS = 3, OWNERS = 150, ROUNDS = 1500 };

struct scene {
    struct family family;
    struct columns c;
    _Atomic bool over;
    _Atomic uint64_t asked;
};

/* Owners below 64 always have key 0; the others come and go, and never have it. */
static struct vector *some_vector(const struct family *family, uint32_t owner, uint64_t *rng)
{
    struct shape shape = {TAMIS_SPREAD, 64 + 64 * (rng_next(rng) % 2), 5};
    struct vector *v = vector_new(&mem_system, family, shape, false, true);
    for (uint64_t key = owner < 64 ? 0 : 1, i = 0; i < 8; i++, key = 1 + rng_next(rng) % 100) {
        tamis_digest d = family_digest(family, &key, sizeof key);
        uint8_t fresh;
        v->bits.kernel->add(&v->bits, &d, 1, &fresh);
    }
    return v;
}

static void *read_along(void *argument)
{
    struct scene *s = argument;
    uint64_t owners[(OWNERS + 63) / 64], key = 0;
    tamis_digest d = family_digest(&s->family, &key, sizeof key);
    while (!atomic_load(&s->over)) {
        columns_locate(&s->c, d, owners, 3);
        CHECK_MSG(owners[0] == UINT64_MAX, "%" PRIx64, owners[0]);
        atomic_fetch_add(&s->asked, 1);
        sched_yield(); /* now and then nobody is inside */
    }
    return NULL;
}

TEST(an_owner_that_stays_is_named_all_the_time)
{
    struct scene s = {0};
    pthread_t readers[READERS];
    uint64_t rng = harness_seed();
    CHECK(family_init(&s.family, &mem_system, TAMIS_XXH3, NULL) == TAMIS_OK);
    CHECK(columns_init(&s.c, &mem_system) == TAMIS_OK);
    for (uint32_t i = 0; i < OWNERS; i++) {
        struct vector *v = some_vector(&s.family, i, &rng);
        CHECK(columns_put(&s.c, i, &v->bits, 1) == TAMIS_OK);
        vector_free(v, &mem_system);
    }
    for (unsigned i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_along, &s) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t owner = (uint32_t)(rng_next(&rng) % OWNERS);
        struct vector *v = some_vector(&s.family, owner, &rng);
        if (owner >= 64 && rng_next(&rng) % 2)
            CHECK(columns_drop(&s.c, owner) == TAMIS_OK);
        else
            CHECK(columns_put(&s.c, owner, &v->bits, 1) == TAMIS_OK);
        vector_free(v, &mem_system);
    }
    while (atomic_load(&s.asked) < 100)
        sched_yield();
    atomic_store(&s.over, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    CHECK(atomic_load(&s.asked) >= 100);
    columns_free(&s.c);
}

HARNESS_MAIN
