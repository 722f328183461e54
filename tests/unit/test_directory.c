/* Directories against a plain model: the keys of every owner. An owner that has the key is always
 * named, whatever was put, replaced and dropped; others are named at the stated rate,
 * each owner for itself, however different their sizes.
 */
#include "directory.h"
#include "fault.h"
#include "harness.h"
#include "tamis.h"

#include <math.h>

#define KEY ((const uint8_t *)"0123456789abcdef")

enum { OWNERS = 60 };

/* Owner i has the keys first .. first + n - 1. */
struct plain {
    bool live[OWNERS];
    uint64_t first[OWNERS], n[OWNERS];
};

static void name_of(uint32_t i, char name[16])
{
    snprintf(name, 16, "host-%u", i);
}

static tamis_error put_range(tamis_directory *d, uint32_t owner, uint64_t first, uint64_t n)
{
    char name[16];
    tamis_digest *digests = malloc((n + 1) * sizeof *digests);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = first + i;
        digests[i] = tamis_directory_digest(d, &key, sizeof key);
    }
    name_of(owner, name);
    tamis_error e = tamis_directory_put(d, name, digests, n);
    free(digests);
    return e;
}

/* The named owners of a key, by their number in the name. */
static void locate(const tamis_directory *d, uint64_t key, bool named[OWNERS])
{
    uint32_t found[OWNERS];
    size_t n =
        tamis_directory_locate(d, tamis_directory_digest(d, &key, sizeof key), found, OWNERS);
    memset(named, 0, OWNERS);
    for (size_t i = 0; i < n; i++) {
        const char *name = tamis_directory_name(d, found[i]);
        CHECK(i == 0 || found[i] > found[i - 1]);
        if (CHECK(name != NULL))
            named[atoi(name + 5)] = true;
    }
}

static void compare(const struct plain *m, const tamis_directory *d, uint64_t *rng)
{
    uint64_t missed = 0, ghosts = 0;
    bool named[OWNERS];
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        uint64_t key = m->first[owner] + (m->n[owner] ? rng_next(rng) % m->n[owner] : 0);
        locate(d, key, named);
        for (uint32_t i = 0; i < OWNERS; i++) {
            bool has = m->live[i] && key - m->first[i] < m->n[i];
            missed += has && !named[i];
            ghosts += named[i] && !m->live[i];
        }
    }
    CHECK_MSG(missed == 0 && ghosts == 0, "%" PRIu64 " missed, %" PRIu64 " dropped ones named",
              missed, ghosts);
}

static uint64_t some_size(uint64_t *rng)
{
    uint64_t size = UINT64_C(1) << rng_next(rng) % 13;
    return rng_next(rng) % 10 ? size + rng_next(rng) % size : 0;
}

static void step(struct plain *m, tamis_directory *d, uint64_t *rng)
{
    uint32_t owner = (uint32_t)(rng_next(rng) % OWNERS);
    char name[16];
    name_of(owner, name);
    if (rng_next(rng) % 4 == 0) {
        CHECK(tamis_directory_drop(d, name) == (m->live[owner] ? TAMIS_OK : TAMIS_EARG));
        m->live[owner] = false;
        return;
    }
    m->live[owner] = true;
    m->first[owner] = rng_next(rng) >> 20;
    m->n[owner] = some_size(rng);
    CHECK(put_range(d, owner, m->first[owner], m->n[owner]) == TAMIS_OK);
}

TEST(an_owner_that_has_the_key_is_named)
{
    static const tamis_hash hashes[] = {TAMIS_XXH3, TAMIS_SIP, TAMIS_H3};
    for (int h = 0; h < 3; h++) {
        uint64_t rng = harness_seed() + (uint64_t)h;
        struct plain m = {0};
        struct fault fault;
        fault_init(&fault);
        tamis_directory_options o = {.hash = hashes[h], .key = KEY, .allocator = &fault.allocator};
        tamis_directory *d = NULL;
        tamis_reason reason = {0};
        CHECK(tamis_directory_new(&d, &o, &reason) == TAMIS_OK);
        for (int i = 0; i < 500; i++) {
            step(&m, d, &rng);
            if (i % 25 == 0)
                compare(&m, d, &rng);
        }
        compare(&m, d, &rng);
        tamis_directory_free(d);
        CHECK(fault_clean(&fault));
    }
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* What one small vector does depends on its few keys, so the rate is a mean over families; six
   deviations of that mean are allowed. */
struct mean {
    double sum, squares;
};

static bool within(const struct mean *m, double n, double rate)
{
    double mean = m->sum / n, variance = (m->squares / n - mean * mean) / (n - 1);
    return mean <= rate + 6 * sqrt(variance > 0 ? variance : 0);
}

static const uint64_t sizes[] = {1,   2,    3,    7,    10,   30,   100,  100,  120,  130,
                                 150, 1000, 1010, 1500, 3000, 3100, 5000, 9000, 20000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* One family: the rate of every owner is added to its mean. */
static void rates_once(double rate, uint64_t seed, struct mean *means)
{
    enum { TRIES = 4000 };
    uint64_t rng = seed, wrong[OWNERS] = {0};
    uint8_t key[TAMIS_KEY_LEN];
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)rng_next(&rng);
    tamis_directory_options o = {.fpp = rate, .key = key};
    tamis_directory *d = NULL;
    tamis_directory_facts facts;
    double bits = 0;
    CHECK(tamis_directory_new(&d, &o, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < SIZES; i++) {
        CHECK(put_range(d, i, (uint64_t)(i + 1) << 32, sizes[i]) == TAMIS_OK);
        bits += tamis_plan_bits_best((double)sizes[i], rate);
    }
    for (int i = 0; i < TRIES; i++) {
        bool named[OWNERS];
        locate(d, rng_next(&rng) | UINT64_C(1) << 63, named);
        for (uint32_t j = 0; j < SIZES; j++)
            wrong[j] += named[j];
    }
    for (uint32_t j = 0; j < SIZES; j++) {
        double here = (double)wrong[j] / TRIES;
        means[j].sum += here;
        means[j].squares += here * here;
    }
    tamis_directory_info(d, &facts);
    CHECK(facts.owners == SIZES && facts.fpp == rate && facts.fpp_now <= rate * 1.01);
    CHECK_MSG((double)facts.bits < 1.5 * bits, "%g of the least", (double)facts.bits / bits);
    tamis_directory_free(d);
}

TEST(every_owner_keeps_the_stated_rate)
{
    static const double rates[] = {0.01, 0.1, 0.001};
    enum { FAMILIES = 24 };
    for (int r = 0; r < 3; r++) {
        struct mean means[SIZES] = {{0}};
        for (unsigned i = 0; i < FAMILIES; i++)
            rates_once(rates[r], harness_seed() + i, means);
        for (uint32_t j = 0; j < SIZES; j++)
            CHECK_MSG(within(&means[j], FAMILIES, rates[r]), "owner of %" PRIu64 " keys: %g at %g",
                      sizes[j], means[j].sum / FAMILIES, rates[r]);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

TEST(without_memory_nothing_changes)
{
    uint64_t rng = harness_seed();
    struct plain m = {0};
    struct fault fault;
    fault_init(&fault);
    tamis_directory_options o = {.key = KEY, .allocator = &fault.allocator};
    tamis_directory *d = NULL;
    for (uint64_t at = 1; at < 20 && !d; at++) {
        fault_arm(&fault, at, false);
        tamis_error e = tamis_directory_new(&d, &o, NULL);
        CHECK(e == TAMIS_OK || (e == TAMIS_ENOMEM && fault.blocks == 0));
    }
    for (int i = 0; i < 40; i++) {
        uint32_t owner = (uint32_t)(rng_next(&rng) % OWNERS);
        uint64_t first = rng_next(&rng) >> 20, n = some_size(&rng), at = 1;
        tamis_error e;
        do {
            fault_arm(&fault, at++, false);
            e = put_range(d, owner, first, n);
            CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
            if (e != TAMIS_OK && at == 3)
                compare(&m, d, &rng);
        } while (e != TAMIS_OK && at < 60);
        CHECK(e == TAMIS_OK);
        m.live[owner] = true;
        m.first[owner] = first;
        m.n[owner] = n;
        fault_arm(&fault, 0, false);
    }
    compare(&m, d, &rng);
    tamis_directory_free(d);
    CHECK(fault_clean(&fault));
}

TEST(arguments_are_checked)
{
    tamis_reason reason = {0};
    tamis_directory *d = NULL;
    tamis_directory_options bad = {.fpp = 2};
    CHECK(tamis_directory_new(&d, &bad, &reason) == TAMIS_EARG && reason.text[0]);
    CHECK(tamis_directory_new(&d, NULL, &reason) == TAMIS_OK);
    CHECK(tamis_directory_put(d, "", NULL, 0) == TAMIS_EARG);
    CHECK(tamis_directory_drop(d, "nobody") == TAMIS_EARG);
    CHECK(tamis_directory_put(d, "empty", NULL, 0) == TAMIS_OK);
    CHECK(tamis_directory_owners(d) == 1 && strcmp(tamis_directory_name(d, 0), "empty") == 0);
    CHECK(tamis_directory_locate(d, (tamis_digest){1, 2}, NULL, 0) == 0);
    tamis_directory_free(d);
}

HARNESS_MAIN
