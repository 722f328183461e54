/* Threads: readers beside one thread that adds records, layers and tables growing. Run under the
 * thread sanitizer too.
 */
#include <pthread.h>
#include <sched.h>

#include "harness.h"
#include "tamis/records.h"

enum { READERS = 3, P = 3, RECORDS = 8000, MANY = 40 };

struct scene {
    tamis_records *x;
    tamis_digest *records;
    _Atomic uint32_t published; /* so many are members */
    _Atomic bool over;
    _Atomic uint64_t asked;
};

static void *read_along(void *argument)
{
    struct scene *s = argument;
    uint64_t rng = harness_seed() + (uint64_t)(uintptr_t)&rng;
    uint8_t found[MANY];
    while (!atomic_load(&s->over)) {
        uint32_t n = atomic_load_explicit(&s->published, memory_order_acquire);
        if (n == 0)
            continue;
        uint32_t i = (uint32_t)(rng_next(&rng) % n), some = n - i < MANY ? n - i : MANY;
        uint64_t mask = rng_next(&rng) % 8;
        tamis_records_has_many(s->x, mask, s->records + (size_t)i * P, some, found);
        for (uint32_t j = 0; j < some; j++)
            CHECK_MSG(found[j], "record %u, mask %u", i + j, (unsigned)mask);
        const tamis_digest *record = s->records + (size_t)i * P;
        tamis_choice choices[2] = {{0, record, 1}, {2, record + 2, 1}};
        tamis_answer answer = {false, false};
        CHECK(tamis_records_ask(s->x, choices, 2, &answer, NULL) == TAMIS_OK && answer.maybe);
        tamis_digest other[P] = {{rng_next(&rng), 1}, {2, 3}, {rng_next(&rng), 4}};
        tamis_records_has_many(s->x, 0, other, 1, found);
        atomic_fetch_add(&s->asked, 1);
    }
    return NULL;
}

static void play(tamis_records_options o)
{
    static const tamis_attribute at[P] = {
        {.name = "a"}, {.name = "b", .distinct = 9}, {.name = "c"}};
    struct scene s = {0};
    pthread_t readers[READERS];
    o.attributes = at;
    o.n_attributes = P;
    o.set.capacity = 50;
    if (!CHECK(tamis_records_new(&s.x, &o, NULL) == TAMIS_OK))
        return;
    s.records = calloc((size_t)RECORDS * P, sizeof *s.records);
    for (uint64_t i = 0; i < RECORDS; i++)
        for (uint32_t j = 0; j < P; j++) {
            uint64_t value = j == 1 ? i % 30 : i;
            s.records[i * P + j] = tamis_records_digest(s.x, j, (tamis_key){&value, sizeof value});
        }
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_along, &s) == 0);
    for (uint32_t i = 0; i < RECORDS;) {
        uint32_t some = i % 7 ? 1 : RECORDS - i < 90 ? RECORDS - i : 90; /* one, or many */
        if (!CHECK(tamis_records_add_many(s.x, s.records + (size_t)i * P, some, NULL, NULL) ==
                   TAMIS_OK))
            break;
        i += some;
        atomic_store_explicit(&s.published, i, memory_order_release);
        while (atomic_load(&s.asked) < UINT64_C(2000) * i / RECORDS)
            sched_yield(); /* the readers get their turn */
    }
    atomic_store(&s.over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    tamis_records_free(s.x);
    free(s.records);
}

TEST(readers_beside_adds)
{
    for (int deletable = 0; deletable < 2; deletable++)
        for (int verifier = 1; verifier <= 3; verifier++)
            play((tamis_records_options){.set.deletable = deletable,
                                         .verifier = (tamis_verifier)verifier,
                                         .set.layout = 1 + verifier % 2,
                                         .value = verifier == 3 ? 1 + deletable : 1});
}

HARNESS_MAIN
