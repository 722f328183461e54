/* Columns against plain vectors: whatever was put, replaced and dropped, an owner is named exactly if
 * one of its vectors, asked alone, has the key.
 */
#include "owners/columns.h"
#include "plan/plan.h"
#include "fault.h"
#include "harness.h"
#include "bits/vector.h"
#include "tamis/plan.h"

enum { SHAPES = 4, VECTORS = 3, DIGESTS = 300 };

static const struct shape shapes[SHAPES] = {
    {TAMIS_SPREAD, 64, 3}, {TAMIS_SPREAD, 200, 7}, {TAMIS_SPREAD, 64, 4}, {TAMIS_BLOCKED, 8, 6}};

/* What owners have, side by side. */
struct plain {
    struct family family;
    uint32_t owners;
    struct vector *(*v)[VECTORS];
    struct columns_held *held;
};

static void plain_init(struct plain *p, uint32_t owners)
{
    CHECK(family_init(&p->family, &mem_system, TAMIS_XXH3, (const uint8_t *)"0123456789abcdef") ==
          TAMIS_OK);
    p->owners = owners;
    p->v = calloc(owners, sizeof *p->v);
    p->held = calloc(owners, sizeof *p->held);
}

static void plain_drop(struct plain *p, uint32_t owner)
{
    for (unsigned i = 0; i < VECTORS; i++) {
        if (p->v[owner][i])
            vector_free(p->v[owner][i], &mem_system);
        p->v[owner][i] = NULL;
    }
}

static void plain_free(struct plain *p)
{
    for (uint32_t i = 0; i < p->owners; i++)
        plain_drop(p, i);
    free(p->v);
    free(p->held);
}

static void forget_all(struct columns *c, struct plain *p)
{
    for (uint32_t i = 0; i < p->owners; i++)
        columns_forget(c, &p->held[i]);
    columns_free(c);
}

/* Some vectors with some keys, as both have them. */
static struct columns_put plain_put(struct plain *p, uint32_t owner, uint64_t *rng)
{
    unsigned n = 1 + (unsigned)(rng_next(rng) % VECTORS);
    plain_drop(p, owner);
    for (unsigned i = 0; i < n; i++) {
        struct vector *v =
            vector_new(&mem_system, &p->family, shapes[rng_next(rng) % SHAPES], false, true);
        uint64_t keys = rng_next(rng) % 30;
        for (uint64_t j = 0; j < keys; j++) {
            uint64_t key = rng_next(rng) % DIGESTS;
            tamis_digest d = family_digest(&p->family, &key, sizeof key);
            uint8_t fresh;
            v->bits.kernel->add(&v->bits, &d, 1, &fresh);
        }
        p->v[owner][i] = v;
    }
    return (struct columns_put){owner, &p->held[owner], p->v[owner], n};
}

static bool plain_has(const struct plain *p, uint32_t owner, tamis_digest d)
{
    bool has = false;
    for (unsigned i = 0; i < VECTORS; i++)
        has |= p->v[owner][i] && vector_has(p->v[owner][i], d);
    return has;
}

static void locate(struct columns *c, const uint64_t *key, uint64_t *owners, size_t words)
{
    tamis_key asked = {key, sizeof *key};
    uint64_t inside = readers_enter();
    CHECK(columns_locate(c, &asked, 1, owners, words) == COLUMNS_STILL);
    readers_leave(inside);
}

static void compare(const struct plain *p, struct columns *c, uint64_t keys)
{
    size_t words = (p->owners + 63) / 64;
    uint64_t *owners = calloc(words, sizeof *owners);
    for (uint64_t key = 0; key < keys; key++) {
        tamis_digest d = family_digest(&p->family, &key, sizeof key);
        uint64_t wrong = 0;
        locate(c, &key, owners, words);
        for (uint32_t i = 0; i < p->owners; i++)
            wrong += (owners[i / 64] >> (i % 64) & 1) != plain_has(p, i, d);
        CHECK_MSG(wrong == 0, "key %" PRIu64 ": %" PRIu64 " owners", key, wrong);
    }
    free(owners);
}

/* Vectors alike with a few more keys, or fewer. */
static void change(struct plain *p, struct columns *c, uint32_t owner, uint64_t *rng)
{
    struct vector *after[VECTORS] = {NULL};
    unsigned n = 0;
    for (; n < VECTORS && p->v[owner][n]; n++) {
        after[n] = vector_clone(p->v[owner][n], &p->family, &mem_system);
        for (unsigned i = 0; i < 5; i++) {
            uint64_t bit = rng_next(rng) % vector_positions_total(after[n]);
            if (rng_next(rng) % 2)
                vector_bit_set(after[n], bit);
            else
                vector_bit_clear(after[n], bit);
        }
    }
    struct columns_put put = {owner, &p->held[owner], after, n};
    CHECK(columns_change(c, &put, p->v[owner]));
    put.n--;
    CHECK(n == 0 || !columns_change(c, &put, p->v[owner]));
    plain_drop(p, owner);
    memcpy(p->v[owner], after, sizeof after);
}

static void play(uint32_t owners, unsigned steps, uint64_t *rng)
{
    struct plain p;
    struct columns c;
    struct fault fault;
    fault_init(&fault);
    plain_init(&p, owners);
    columns_init(&c, &fault.allocator);
    for (unsigned i = 0; i < steps; i++) {
        uint32_t owner = (uint32_t)(rng_next(rng) % owners);
        switch (rng_next(rng) % 6) {
        case 0:
            plain_drop(&p, owner);
            columns_drop(&c, &p.held[owner]);
            break;
        case 1:
            change(&p, &c, owner, rng);
            break;
        case 2: { /* several at once, and one of them twice: the later counts */
            struct columns_put puts[70];
            size_t n = 0;
            for (; n < 69 && n < owners; n++)
                puts[n] = plain_put(&p, (uint32_t)(owner + n) % owners, rng);
            puts[n] = puts[0];
            CHECK(columns_put(&c, puts, n + 1) == TAMIS_OK);
            break;
        }
        default: {
            struct columns_put put = plain_put(&p, owner, rng);
            CHECK(columns_put(&c, &put, 1) == TAMIS_OK);
        }
        }
        if (i % (steps / 5) == 0)
            compare(&p, &c, 50);
    }
    compare(&p, &c, DIGESTS + 20);
    for (uint32_t i = 0; i < owners; i++)
        columns_drop(&c, &p.held[i]);
    CHECK(!atomic_load(&c.families) && c.by_family.n == 0 && c.by_shape.n == 0);
    CHECK(!c.retired); /* nobody is inside: what was replaced is gone */
    forget_all(&c, &p);
    CHECK(fault_clean(&fault));
    plain_free(&p);
}

TEST(owners_are_those_whose_vectors_have_the_key)
{
    uint64_t rng = harness_seed();
    play(3, 60, &rng);
    play(70, 500, &rng);
    play(300, 1500, &rng);
}

TEST(thousands_of_owners)
{
    uint64_t rng = harness_seed();
    struct plain p;
    struct columns c;
    enum { OWNERS = 6000 };
    plain_init(&p, OWNERS);
    columns_init(&c, &mem_system);
    for (uint32_t i = 0; i < OWNERS; i++) {
        struct columns_put put = plain_put(&p, i, &rng);
        CHECK(columns_put(&c, &put, 1) == TAMIS_OK);
    }
    compare(&p, &c, 40);
    for (uint32_t i = 0; i < OWNERS; i++) { /* each has the columns that the matrices say it has */
        size_t n = 0;
        while (n < VECTORS && p.v[i][n])
            n++;
        CHECK(p.held[i].n == n);
        for (size_t j = 0; j < n; j++) {
            const struct columns_matrix *m = atomic_load(&p.held[i].place[j].group->matrix);
            CHECK(atomic_load(&m->owner[p.held[i].place[j].column]) == i);
        }
    }
    forget_all(&c, &p);
    plain_free(&p);
}

/* Many keys are many times one key. */
TEST(keys_asked_together)
{
    uint64_t rng = harness_seed(), keys[COLUMNS_RUN], all[COLUMNS_RUN * 2], one[2];
    tamis_key asked[COLUMNS_RUN];
    struct plain p;
    struct columns c;
    plain_init(&p, 100);
    columns_init(&c, &mem_system);
    for (uint32_t i = 0; i < 100; i++) {
        struct columns_put put = plain_put(&p, i, &rng);
        CHECK(columns_put(&c, &put, 1) == TAMIS_OK);
    }
    for (size_t i = 0; i < COLUMNS_RUN; i++) {
        keys[i] = rng_next(&rng) % DIGESTS;
        asked[i] = (tamis_key){&keys[i], sizeof keys[i]};
    }
    uint64_t inside = readers_enter();
    CHECK(columns_locate(&c, asked, COLUMNS_RUN, all, 2) == COLUMNS_STILL);
    readers_leave(inside);
    for (size_t i = 0; i < COLUMNS_RUN; i++) {
        locate(&c, &keys[i], one, 2);
        CHECK(memcmp(one, all + 2 * i, sizeof one) == 0);
    }
    forget_all(&c, &p);
    plain_free(&p);
}

TEST(without_memory_nothing_changes)
{
    uint64_t rng = harness_seed();
    struct plain p;
    struct columns c;
    struct fault fault;
    fault_init(&fault);
    plain_init(&p, 200);
    columns_init(&c, &fault.allocator);
    for (uint32_t i = 0; i < 200; i++) {
        struct columns_put put = plain_put(&p, i, &rng);
        unsigned failures = 0;
        uint64_t at = 1;
        tamis_error e;
        do {
            fault_arm(&fault, at++, false);
            e = columns_put(&c, &put, 1);
            CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
            failures += e != TAMIS_OK;
            if (e != TAMIS_OK && i % 50 == 0) { /* as if it had not been tried */
                uint64_t owners[4], key = rng_next(&rng) % DIGESTS;
                locate(&c, &key, owners, 4);
                CHECK((owners[i / 64] >> (i % 64) & 1) == 0);
            }
        } while (e != TAMIS_OK && at < 50);
        CHECK(e == TAMIS_OK && failures > 0);
        fault_arm(&fault, 0, false);
    }
    compare(&p, &c, DIGESTS);
    forget_all(&c, &p);
    CHECK(fault_clean(&fault));
    plain_free(&p);
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Every size fits some plan at the rate, in columns that have it together; and the bits are
   near the least, the less the sizes differ the nearer. */
static bool try_plans(uint64_t *sizes, size_t n, double rate, double most)
{
    struct column_plan plans[PLANS_MAX];
    double bits = 0, least = 0;
    bool several = false;
    size_t made = column_plans(plans, sizes, n, rate, false);
    CHECK(made > 0 && made <= PLANS_MAX);
    for (size_t i = 0; i < n; i++) {
        uint64_t best = 0;
        for (size_t j = 0; j < made; j++) {
            uint32_t columns = column_plan_columns(&plans[j], sizes[i]);
            if (columns == 0)
                continue;
            double each = (double)((sizes[i] + columns - 1) / columns), none = 1;
            for (uint32_t c = 0; c < columns; c++)
                none *= 1 - tamis_plan_rate(TAMIS_SPREAD, plans[j].units, plans[j].k, each);
            CHECK_MSG(1 - none <= rate * 1.001, "%g in %u columns", 1 - none, columns);
            several |= columns > 1;
            uint64_t here = columns * plans[j].units;
            best = best == 0 || here < best ? here : best;
        }
        CHECK_MSG(best > 0, "%" PRIu64 " keys fit no plan", sizes[i]);
        bits += (double)best;
        least += tamis_plan_bits_best((double)sizes[i], rate);
    }
    CHECK_MSG(bits <= most * least, "%g of the least", bits / least);
    return several;
}

TEST(plans_suit_the_sizes)
{
    enum { N = 300 };
    static const double rates[] = {0.1, 0.01, 8e-6};
    uint64_t rng = harness_seed(), sizes[N];
    bool several = false;
    for (int r = 0; r < 3; r++)
        for (int round = 0; round < 6; round++) {
            for (size_t i = 0; i < N; i++)
                sizes[i] = 60000 + rng_next(&rng) % 3000;
            several |= try_plans(sizes, N, rates[r], 1.06);
            for (size_t i = 0; i < N; i++)
                sizes[i] = 1 + rng_next(&rng) % 70000;
            several |= try_plans(sizes, N, rates[r], 1.25);
            for (size_t i = 0; i < N; i++)
                sizes[i] = 1 + (rng_next(&rng) % 70000 >> rng_next(&rng) % 17);
            several |= try_plans(sizes, N, rates[r], 1.4);
            several |= try_plans(sizes, 1 + round, rates[r], 2.5);
        }
    for (size_t i = 0; i < N; i++)
        sizes[i] = i % 10 ? 1 : 2; /* some take two columns of one key */
    several |= try_plans(sizes, N, 0.01, 3);
    CHECK(several);
}

HARNESS_MAIN
