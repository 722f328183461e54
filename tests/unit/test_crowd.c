/*
 * Pending removals that have all their positions in common, by the ten thousand. Hashes never crowd so,
 * but digests from elsewhere (bytes that someone made) do, and records do, whose attributes have few
 * values. What they cost must grow with their number, not with its square.
 */
#include "forge.h"
#include "harness.h"

#include <time.h>

#include "set.h"

enum { RESIDENTS = 40 };

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static tamis_filter *make_tiny(uint64_t seed)
{
    uint64_t words[2] = {seed, ~seed};
    uint8_t key[TAMIS_KEY_LEN];
    memcpy(key, words, sizeof key);
    tamis_options o = {.growth = TAMIS_DYNAMIC,
                       .bits = 64,
                       .hashes = 3,
                       .capacity = 10,
                       .deletable = true,
                       .key = key};
    tamis_filter *f = NULL;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (uint64_t i = 0; f && i < RESIDENTS; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    return f;
}

/* A digest that two vectors or more have, and with it 2^20 that have the same positions in them. */
static tamis_digest shared_digest(const tamis_filter *f, uint64_t *rng)
{
    const struct layers *stack = set_layers(&f->set);
    for (;;) {
        tamis_digest d = {rng_next(rng) >> 20 << 20, rng_next(rng)};
        uint32_t n = 0;
        for (uint32_t i = 0; i < layers_count(stack); i++)
            n += vector_copies(stack->v[i], d) > 0;
        if (n >= 2)
            return d;
    }
}

static void add_crowd(tamis_filter *f, tamis_digest d, unsigned n)
{
    for (unsigned i = 0; i < n; i++, d.a++)
        CHECK(tamis_filter_add_many(f, &d, 1, NULL, NULL) == TAMIS_OK);
}

static void remove_crowd(tamis_filter *f, tamis_digest d, unsigned n)
{
    unsigned pending = 0;
    for (unsigned i = 0; i < n; i++, d.a++) {
        uint8_t outcome = TAMIS_ABSENT;
        CHECK(tamis_filter_remove_many(f, &d, 1, &outcome, NULL) == TAMIS_OK);
        pending += outcome == TAMIS_PENDING;
    }
    CHECK_MSG(pending == n, "%u pending of %u", pending, n);
}

static tamis_filter *saved_and_loaded(tamis_filter *f)
{
    struct bytes bytes = bytes_of(f, 0), again;
    tamis_reason reason = {0};
    tamis_filter_free(f);
    f = NULL;
    CHECK_MSG(tamis_filter_decode(&f, bytes.data, bytes.len, NULL, &reason) == TAMIS_OK, "%s",
              reason.text);
    again = f ? bytes_of(f, 0) : (struct bytes){0};
    CHECK(bytes_equal(&bytes, &again));
    bytes_free(&bytes);
    bytes_free(&again);
    return f;
}

/* n digests of the same positions, each added and removed `copies` times; then what kept them from
   being settled goes too. Returns the seconds it took. */
static double crowd(unsigned n, unsigned copies, uint64_t *rng)
{
    tamis_filter *f = make_tiny(rng_next(rng));
    if (!f)
        return 0;
    tamis_digest d = shared_digest(f, rng);
    double start = cpu_seconds(), added, removed, loaded;
    for (unsigned c = 0; c < copies; c++)
        add_crowd(f, d, n);
    added = cpu_seconds();
    for (unsigned c = 0; c < copies; c++)
        remove_crowd(f, d, n);
    removed = cpu_seconds();
    f = saved_and_loaded(f);
    loaded = cpu_seconds();
    for (uint64_t i = 0; f && i < RESIDENTS; i++) {
        tamis_removed outcome = TAMIS_ABSENT;
        CHECK(tamis_filter_has(f, &i, sizeof i));
        CHECK(tamis_filter_remove(f, &i, sizeof i, &outcome) == TAMIS_OK);
        CHECK(outcome != TAMIS_ABSENT);
    }
    double settled = cpu_seconds();
    tamis_info info = {0};
    if (f)
        tamis_filter_info(f, &info);
    CHECK(info.items == 0 && info.pending == 0 && info.fill == 0);
    tamis_filter_free(f);
    if (getenv("TEST_VERBOSE"))
        printf("# %u x %u: add %.3f remove %.3f load %.3f settle %.3f s\n", n, copies,
               added - start, removed - added, loaded - removed, settled - loaded);
    return settled - start;
}

TEST(equal_positions_do_not_multiply)
{
    uint64_t rng = harness_seed();
    for (unsigned copies = 1; copies <= 3; copies++) {
        double took = crowd(40000, copies, &rng);
        CHECK_MSG(took < 4, "%.1f s", took);
    }
}

/* One vector after the other with the same bits, so that a removal may belong to any of them. */
TEST(many_candidates_do_not_multiply)
{
    enum { VECTORS = 3000, REMOVALS = 400 };
    uint64_t rng = harness_seed();
    tamis_options o = {
        .growth = TAMIS_DYNAMIC, .bits = 64, .hashes = 1, .capacity = 1, .deletable = true};
    tamis_filter *f = NULL, *other = NULL;
    uint8_t key[TAMIS_KEY_LEN] = {1};
    tamis_digest d = {rng_next(&rng) >> 20 << 20, rng_next(&rng)};
    o.key = key;
    double start = cpu_seconds();
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&other, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add_many(f, &d, 1, NULL, NULL) == TAMIS_OK);
    add_crowd(other, d, REMOVALS);
    for (unsigned n = 1; n < VECTORS; n *= 2) /* doubles what there is */
        CHECK(tamis_filter_merge(f, n == 1 ? other : f, TAMIS_MERGE_CONCAT) == TAMIS_OK);
    CHECK_MSG(layers_count(set_layers(&f->set)) > VECTORS, "%u", layers_count(set_layers(&f->set)));
    remove_crowd(f, d, REMOVALS);
    f = saved_and_loaded(f);
    double took = cpu_seconds() - start;
    CHECK_MSG(took < 4, "%.1f s", took);
    tamis_filter_free(other);
    tamis_filter_free(f);
}

/* Every second vector is empty, which only bytes from elsewhere can bring about. A removal drops some of
   them, and nothing is lost. */
TEST(empty_vectors_do_not_multiply)
{
    uint8_t key[TAMIS_KEY_LEN] = {1};
    tamis_options o = {.growth = TAMIS_DYNAMIC,
                       .bits = 64,
                       .hashes = 1,
                       .capacity = 1,
                       .deletable = true,
                       .key = key};
    tamis_filter *f = NULL, *other = NULL;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&other, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(f, "a", 1, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(other, "b", 1, NULL) == TAMIS_OK);
    for (unsigned n = 1; n < 1 << 16; n *= 2)
        CHECK(tamis_filter_merge(f, n == 1 ? other : f, TAMIS_MERGE_CONCAT) == TAMIS_OK);
    const struct layers *stack = set_layers(&f->set);
    for (uint32_t i = 1; i < layers_count(stack); i += 2) {
        f->set.stored -= stack->v[i]->count;
        vector_clear(stack->v[i]);
    }
    f = saved_and_loaded(f);
    double start = cpu_seconds();
    for (unsigned i = 0; f && i < 4; i++) {
        uint32_t before = layers_count(set_layers(&f->set));
        tamis_removed outcome = TAMIS_ABSENT;
        CHECK(tamis_filter_remove(f, "a", 1, &outcome) == TAMIS_OK && outcome != TAMIS_ABSENT);
        CHECK(layers_count(set_layers(&f->set)) < before);
        CHECK(tamis_filter_has(f, "a", 1));
    }
    double took = cpu_seconds() - start;
    CHECK_MSG(took < 2, "%.1f s", took);
    tamis_filter_free(other);
    tamis_filter_free(f);
}

/* Records of few values, without a verifier to tell them apart: half of the layers match any. */
TEST(records_of_few_values_do_not_multiply)
{
    enum { N = 60000, VALUES = 100 };
    static const tamis_attribute names[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    tamis_index_options o = {.attributes = names,
                             .n_attributes = 3,
                             .verifier = TAMIS_VERIFIER_NONE,
                             .set.capacity = 100,
                             .set.deletable = true};
    uint64_t rng = harness_seed();
    tamis_index *x = NULL;
    tamis_reason reason = {0};
    if (!CHECK_MSG(tamis_index_new(&x, &o, &reason) == TAMIS_OK, "%s", reason.text))
        return;
    static uint8_t values[N][3];
    for (unsigned i = 0; i < N; i++)
        for (unsigned j = 0; j < 3; j++)
            values[i][j] = (uint8_t)(rng_next(&rng) % VALUES);
    double start = cpu_seconds();
    unsigned pending = 0;
    for (unsigned i = 0; i < N; i++) {
        tamis_key record[] = {{&values[i][0], 1}, {&values[i][1], 1}, {&values[i][2], 1}};
        CHECK(tamis_index_add(x, record, NULL) == TAMIS_OK);
    }
    for (unsigned i = 0; i < N; i++) {
        tamis_key record[] = {{&values[i][0], 1}, {&values[i][1], 1}, {&values[i][2], 1}};
        tamis_removed outcome = TAMIS_ABSENT;
        CHECK(tamis_index_has(x, record, 0).maybe);
        CHECK(tamis_index_remove(x, record, &outcome) == TAMIS_OK);
        CHECK(outcome != TAMIS_ABSENT);
        pending += outcome == TAMIS_PENDING;
    }
    double took = cpu_seconds() - start;
    CHECK_MSG(pending > N / 10, "%u pending", pending);
    CHECK_MSG(took < 4, "%.1f s", took);
    tamis_index_free(x);
}

HARNESS_MAIN
