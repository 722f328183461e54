/* Readers beside one thread that puts, replaces, changes and drops: an owner whose vectors had the key before
 * and after a change is named all the time. Run under the thread sanitizer too.
 */
#include <pthread.h>
#include <sched.h>

#include "owners/columns.h"
#include "harness.h"
#include "bits/vector.h"

enum { READERS = 3, OWNERS = 150, ROUNDS = 1500 };

struct scene {
    struct family family;
    struct columns c;
    struct columns_held held[OWNERS];
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
    tamis_key asked = {&key, sizeof key};
    while (!atomic_load(&s->over)) {
        uint64_t inside = readers_enter();
        uint32_t changing = columns_locate(&s->c, &asked, 1, owners, 3);
        readers_leave(inside);
        if (changing < 64)
            owners[0] |= UINT64_C(1) << changing;
        CHECK_MSG(owners[0] == UINT64_MAX, "%" PRIx64, owners[0]);
        CHECK_MSG(changing == COLUMNS_STILL || changing % 8 == 0, "%u", changing);
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
    columns_init(&s.c, &mem_system);
    for (uint32_t i = 0; i < OWNERS; i++) {
        struct vector *v = some_vector(&s.family, i, &rng);
        CHECK(columns_put(&s.c, &(struct columns_put){i, &s.held[i], &v, 1}, 1) == TAMIS_OK);
        vector_free(v, &mem_system);
    }
    for (unsigned i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_along, &s) == 0);
    struct vector *kept[OWNERS] = {NULL}; /* of those whose columns are changed in place */
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t owner = (uint32_t)(rng_next(&rng) % OWNERS);
        struct vector *v = some_vector(&s.family, owner, &rng);
        struct columns_put put = {owner, &s.held[owner], &v, 1};
        if (owner >= 64 && rng_next(&rng) % 2)
            columns_drop(&s.c, &s.held[owner]);
        else if (owner % 8 || !kept[owner] || !columns_change(&s.c, &put, &kept[owner]))
            CHECK(columns_put(&s.c, &put, 1) == TAMIS_OK);
        if (kept[owner])
            vector_free(kept[owner], &mem_system);
        kept[owner] = s.held[owner].n ? v : NULL;
        if (!kept[owner])
            vector_free(v, &mem_system);
    }
    while (atomic_load(&s.asked) < 100)
        sched_yield();
    atomic_store(&s.over, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    CHECK(atomic_load(&s.asked) >= 100);
    for (uint32_t i = 0; i < OWNERS; i++) {
        columns_forget(&s.c, &s.held[i]);
        if (kept[i])
            vector_free(kept[i], &mem_system);
    }
    columns_free(&s.c);
}

/* ---- changes in place ------------------------------------------------------------------------ */

static void *read_one(void *argument)
{
    struct scene *s = argument;
    uint64_t owners, key = 0;
    tamis_key asked = {&key, sizeof key};
    while (!atomic_load(&s->over)) {
        uint64_t inside = readers_enter();
        uint32_t changing = columns_locate(&s->c, &asked, 1, &owners, 1);
        readers_leave(inside);
        CHECK_MSG(owners == 3 || changing == 0, "%" PRIx64, owners);
        CHECK(changing == 0 || changing == COLUMNS_STILL);
        atomic_fetch_add(&s->asked, 1);
    }
    return NULL;
}

/* The key goes from one vector of its owner to the other and back: whoever asks meanwhile finds it, or
   is told that this owner's columns are changing. */
TEST(a_key_that_moves_between_vectors_is_not_missed)
{
    struct scene s = {0};
    pthread_t readers[READERS];
    struct vector *v[2][2];
    uint64_t key = 0;
    struct shape shape = {TAMIS_SPREAD, 1024, 12};
    CHECK(family_init(&s.family, &mem_system, TAMIS_XXH3, NULL) == TAMIS_OK);
    columns_init(&s.c, &mem_system);
    tamis_digest d = family_digest(&s.family, &key, sizeof key);
    for (int i = 0; i < 4; i++) {
        struct vector *one = v[i / 2][i % 2] =
            vector_new(&mem_system, &s.family, shape, false, true);
        uint8_t fresh;
        if (i / 2 == i % 2)
            one->bits.kernel->add(&one->bits, &d, 1, &fresh);
    }
    for (uint32_t i = 0; i < 2; i++)
        CHECK(columns_put(&s.c, &(struct columns_put){i, &s.held[i], v[0], 2}, 1) == TAMIS_OK);
    for (unsigned i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_one, &s) == 0);
    for (unsigned i = 0; i < 10 * ROUNDS || atomic_load(&s.asked) < 100; i++) {
        struct columns_put put = {0, &s.held[0], v[(i + 1) % 2], 2};
        CHECK(columns_change(&s.c, &put, v[i % 2]));
        if (i % 1024 == 0)
            sched_yield();
    }
    atomic_store(&s.over, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    for (int i = 0; i < 4; i++)
        vector_free(v[i / 2][i % 2], &mem_system);
    for (uint32_t i = 0; i < 2; i++)
        columns_forget(&s.c, &s.held[i]);
    columns_free(&s.c);
}

HARNESS_MAIN
