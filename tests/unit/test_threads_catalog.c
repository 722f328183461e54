/* Threads that put segments into one writer together, and threads that ask one catalog, whose pages
 * are checked as they are touched. Run under the thread sanitizer too.
 */
#include <pthread.h>

#include "harness.h"
#include "tamis/catalog.h"

enum { THREADS = 4, EACH = 60, RECORDS = 40 };

static const tamis_attribute attributes[2] = {{.name = "a"}, {.name = "b"}};

struct part {
    tamis_catalog_writer *w;
    const tamis_catalog *c;
    uint32_t number;
};

static void *put_part(void *argument)
{
    const struct part *p = argument;
    tamis_gather *g = NULL;
    tamis_reason reason = {0};
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(p->w)) == TAMIS_OK);
    for (uint32_t i = 0; i < EACH; i++) {
        uint32_t id = p->number * EACH + i;
        for (uint32_t j = 0; j < RECORDS + i % 5; j++)
            CHECK(tamis_gather_add(g, (tamis_key[]){{&id, 4}, {&j, 4}}) == TAMIS_OK);
        CHECK_MSG(tamis_catalog_put(p->w, g, &id, 4, &reason) == TAMIS_OK, "%s", reason.text);
    }
    tamis_gather_free(g);
    return NULL;
}

static void *ask_part(void *argument)
{
    const struct part *p = argument;
    const tamis_schema *s = tamis_catalog_schema(p->c);
    uint64_t found[(THREADS * EACH + 63) / 64], n = tamis_catalog_segments(p->c);
    for (uint64_t i = 0; i < n; i++) {
        size_t len;
        const void *tag = tamis_catalog_tag(p->c, i, &len);
        uint32_t j = (uint32_t)(i % RECORDS);
        tamis_digest d[2] = {tamis_schema_digest(s, 0, (tamis_key){tag, len}),
                             tamis_schema_digest(s, 1, (tamis_key){&j, 4})};
        tamis_condition choices[2] = {{.attribute = 0, .keys = &d[0], .n = 1},
                                      {.attribute = 1, .keys = &d[1], .n = 1}};
        tamis_catalog_answer answer;
        CHECK(tamis_catalog_ask(p->c, choices, 2, found, &answer, NULL) == TAMIS_OK);
        CHECK(answer.verified && (found[i / 64] >> (i % 64) & 1));
    }
    return NULL;
}

static void run(void *(*body)(void *), tamis_catalog_writer *w, const tamis_catalog *c)
{
    pthread_t threads[THREADS];
    struct part parts[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        parts[i] = (struct part){w, c, i};
        CHECK(pthread_create(&threads[i], NULL, body, &parts[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

TEST(segments_come_and_are_asked_together)
{
    static const uint64_t memories[] = {0, 1 << 16}; /* planned at the end, and soon */
    for (int i = 0; i < 2; i++) {
        tamis_catalog_options o = {
            .attributes = attributes, .n_attributes = 2, .memory = memories[i]};
        tamis_catalog_writer *w = NULL;
        tamis_catalog *c = NULL;
        tamis_reason reason = {0};
        bool seen[THREADS * EACH] = {0};
        CHECK(tamis_catalog_create(&w, "t.tamis", &o, &reason) == TAMIS_OK);
        run(put_part, w, NULL);
        CHECK_MSG(tamis_catalog_commit(w, NULL, 0, &reason) == TAMIS_OK, "%s", reason.text);
        tamis_catalog_abandon(w);
        if (!CHECK(tamis_catalog_open(&c, "t.tamis", NULL, &reason) == TAMIS_OK))
            return;
        CHECK(tamis_catalog_segments(c) == THREADS * EACH);
        for (uint64_t j = 0; j < THREADS * EACH; j++) {
            size_t len;
            uint32_t id;
            memcpy(&id, tamis_catalog_tag(c, j, &len), 4);
            CHECK(id < THREADS * EACH && !seen[id]);
            seen[id < THREADS * EACH ? id : 0] = true;
        }
        run(ask_part, NULL, c);
        tamis_catalog_close(c);
    }
}

HARNESS_MAIN
