/*
 * Pending removals that have all their positions in common, by the ten thousand. Hashes never crowd so,
 * but digests from elsewhere (bytes that someone made) do, and records do, whose attributes have few
 * values. What they cost must grow with their number, not with its square.
 */
#include "forge.h"
#include "harness.h"

#include "set/set.h"
#include "tamis/records.h"

enum { RESIDENTS = 40 };

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

static void add_crowd(tamis_filter *f, tamis_digest d, size_t n)
{
    for (size_t i = 0; i < n; i++, d.a++)
        CHECK(tamis_filter_add_many(f, &d, 1, NULL, NULL) == TAMIS_OK);
}

static void remove_crowd(tamis_filter *f, tamis_digest d, size_t n)
{
    size_t pending = 0;
    for (size_t i = 0; i < n; i++, d.a++) {
        uint8_t outcome = TAMIS_ABSENT;
        CHECK(tamis_filter_remove_many(f, &d, 1, &outcome, NULL) == TAMIS_OK);
        pending += outcome == TAMIS_PENDING;
    }
    CHECK_MSG(pending == n, "%zu pending of %zu", pending, n);
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
   being settled goes too. */
static void crowd(size_t n, unsigned copies)
{
    uint64_t rng = harness_seed() + copies;
    tamis_filter *f = make_tiny(rng_next(&rng));
    if (!f)
        return;
    tamis_digest d = shared_digest(f, &rng);
    for (unsigned c = 0; c < copies; c++)
        add_crowd(f, d, n);
    for (unsigned c = 0; c < copies; c++)
        remove_crowd(f, d, n);
    f = saved_and_loaded(f);
    for (uint64_t i = 0; f && i < RESIDENTS; i++) {
        tamis_removed outcome = TAMIS_ABSENT;
        CHECK(tamis_filter_has(f, &i, sizeof i));
        CHECK(tamis_filter_remove(f, &i, sizeof i, &outcome) == TAMIS_OK);
        CHECK(outcome != TAMIS_ABSENT);
    }
    tamis_filter_facts info = {.items = 1};
    if (f)
        tamis_filter_info(f, &info);
    CHECK(info.items == 0 && info.pending == 0 && info.fill == 0);
    tamis_filter_free(f);
}

COST(equal_positions_do_not_multiply, 40000)
{
    crowd(n, 1);
}

COST(copies_of_equal_positions_do_not_multiply, 40000)
{
    crowd(n, 3);
}

/* One vector after the other with the same bits, so that a removal may belong to any of them. */
static void candidates(size_t vectors, size_t removals)
{
    uint64_t rng = harness_seed();
    tamis_options o = {
        .growth = TAMIS_DYNAMIC, .bits = 64, .hashes = 1, .capacity = 1, .deletable = true};
    tamis_filter *f = NULL, *other = NULL;
    uint8_t key[TAMIS_KEY_LEN] = {1};
    tamis_digest d = {rng_next(&rng) >> 20 << 20, rng_next(&rng)};
    o.key = key;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&other, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add_many(f, &d, 1, NULL, NULL) == TAMIS_OK);
    add_crowd(other, d, removals);
    for (size_t n = 1; n < vectors; n *= 2) /* doubles what there is */
        CHECK(tamis_filter_merge(f, n == 1 ? other : f, TAMIS_MERGE_CONCAT, NULL) == TAMIS_OK);
    CHECK_MSG(layers_count(set_layers(&f->set)) >= vectors, "%u",
              layers_count(set_layers(&f->set)));
    remove_crowd(f, d, removals);
    f = saved_and_loaded(f);
    tamis_filter_free(other);
    tamis_filter_free(f);
}

COST(many_candidates_do_not_multiply, 2048)
{
    candidates(n, 100);
}

COST(removals_with_many_candidates_do_not_multiply, 1600)
{
    candidates(256, n);
}

/* Every second vector is empty, which only bytes from elsewhere can bring about. A removal drops some of
   them, and nothing is lost. */
COST(empty_vectors_do_not_multiply, 1 << 16)
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
    for (size_t vectors = 1; vectors < n; vectors *= 2)
        CHECK(tamis_filter_merge(f, vectors == 1 ? other : f, TAMIS_MERGE_CONCAT, NULL) ==
              TAMIS_OK);
    const struct layers *stack = set_layers(&f->set);
    for (uint32_t i = 1; i < layers_count(stack); i += 2) {
        f->set.stack->stored -= stack->v[i]->count;
        vector_clear(stack->v[i]);
    }
    f = saved_and_loaded(f);
    for (unsigned i = 0; f && i < 4; i++) {
        uint32_t before = layers_count(set_layers(&f->set));
        tamis_removed outcome = TAMIS_ABSENT;
        CHECK(tamis_filter_remove(f, "a", 1, &outcome) == TAMIS_OK && outcome != TAMIS_ABSENT);
        CHECK(layers_count(set_layers(&f->set)) < before);
        CHECK(tamis_filter_has(f, "a", 1));
    }
    tamis_filter_free(other);
    tamis_filter_free(f);
}

/* Records of few values, without a verifier to tell them apart: half of the layers match any. */
COST(records_of_few_values_do_not_multiply, 60000)
{
    enum { VALUES = 100 };
    static const tamis_attribute names[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    tamis_records_options o = {.attributes = names,
                               .n_attributes = 3,
                               .verifier = TAMIS_VERIFIER_NONE,
                               .set.capacity = 100,
                               .set.deletable = true};
    uint64_t rng = harness_seed();
    tamis_records *x = NULL;
    tamis_reason reason = {0};
    if (!CHECK_MSG(tamis_records_new(&x, &o, &reason) == TAMIS_OK, "%s", reason.text))
        return;
    uint8_t(*values)[3] = malloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        for (unsigned j = 0; j < 3; j++)
            values[i][j] = (uint8_t)(rng_next(&rng) % VALUES);
    size_t pending = 0;
    for (size_t i = 0; i < n; i++) {
        tamis_key record[] = {{&values[i][0], 1}, {&values[i][1], 1}, {&values[i][2], 1}};
        CHECK(tamis_records_add(x, record, NULL) == TAMIS_OK);
    }
    for (size_t i = 0; i < n; i++) {
        tamis_key record[] = {{&values[i][0], 1}, {&values[i][1], 1}, {&values[i][2], 1}};
        tamis_removed outcome = TAMIS_ABSENT;
        CHECK(tamis_records_has(x, record, 0).maybe);
        CHECK(tamis_records_remove(x, record, &outcome) == TAMIS_OK);
        CHECK(outcome != TAMIS_ABSENT);
        pending += outcome == TAMIS_PENDING;
    }
    CHECK_MSG(pending > n / 10, "%zu pending", pending);
    free(values);
    tamis_records_free(x);
}

HARNESS_MAIN
