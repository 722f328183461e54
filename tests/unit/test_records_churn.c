/* Long churn in deletable sets: records come and go, their number stays. Neither the size nor the
 * rate of any kind of question may drift, and nothing is left when all are gone.
 */
#include "harness.h"

#include <math.h>

#include "set/set.h"
#include "tamis/records.h"

#define ATTRIBUTES 3
#define STRANGER   UINT32_C(0x80000000)

struct churn {
    tamis_records *x;
    uint32_t *live, n, next;
    uint64_t rng;
};

/* Record i: a value of its own, one that twenty share, one of a hundred. */
static void digests_of(const tamis_records *x, uint32_t i, tamis_digest *out)
{
    uint32_t values[ATTRIBUTES] = {i, i / 20 + (i & STRANGER), i * 7 % 100 + (i & STRANGER)};
    for (uint32_t j = 0; j < x->set.stack->form->attributes; j++)
        out[j] = tamis_records_digest(x, j, (tamis_key){&values[j], sizeof values[j]});
}

static tamis_records *records_of(tamis_records_options o)
{
    static const tamis_attribute attributes[ATTRIBUTES] = {
        {.name = "own", .type = TAMIS_BYTES, .distinct = 0},
        {.name = "shared", .type = TAMIS_BYTES, .distinct = 0},
        {.name = "few", .type = TAMIS_BYTES, .distinct = 200}};
    static const uint8_t key[TAMIS_KEY_LEN] = "churn in indexes";
    tamis_records *x = NULL;
    o.attributes = attributes;
    o.n_attributes = o.n_attributes ? o.n_attributes : ATTRIBUTES;
    o.set.deletable = true;
    o.set.key = key;
    CHECK(tamis_records_new(&x, &o, NULL) == TAMIS_OK);
    return x;
}

static tamis_records_facts info_of(const tamis_records *x)
{
    tamis_records_facts info;
    tamis_records_info(x, &info);
    return info;
}

static bool add(struct churn *c, uint32_t i)
{
    tamis_digest record[ATTRIBUTES];
    digests_of(c->x, i, record);
    tamis_error e = tamis_records_add_many(c->x, record, 1, NULL, NULL);
    return CHECK_MSG(e == TAMIS_OK, "add: %s, growth %d", tamis_error_name(e),
                     (int)set_opt(&c->x->set)->growth);
}

static bool take(struct churn *c, uint32_t i)
{
    tamis_digest record[ATTRIBUTES];
    uint8_t outcome;
    digests_of(c->x, i, record);
    return CHECK(tamis_records_remove_many(c->x, record, 1, &outcome, NULL) == TAMIS_OK) &&
           CHECK(outcome != TAMIS_ABSENT);
}

static bool all_there(const struct churn *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        tamis_digest record[ATTRIBUTES];
        uint8_t found = 0;
        digests_of(c->x, c->live[i], record);
        tamis_records_has_many(c->x, rng_next(&(uint64_t){i}) % 8, record, 1, &found);
        if (!CHECK(found))
            return false;
    }
    return true;
}

/* As many removals and adds as there are records: the oldest first, or any. */
static bool churn_turn(struct churn *c, bool oldest)
{
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t *at = &c->live[oldest ? i : rng_next(&c->rng) % c->n];
        if (!take(c, *at) || !add(c, *at = c->next++))
            return false;
    }
    return all_there(c);
}

/* Of this many records of strange values, how many may be there by these attributes. */
static uint32_t false_positives(const tamis_records *x, uint64_t mask, uint32_t probes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < probes; i++) {
        tamis_digest record[ATTRIBUTES];
        uint8_t found = 0;
        digests_of(x, STRANGER + 20 * i, record);
        tamis_records_has_many(x, mask, record, 1, &found);
        n += found;
    }
    return n;
}

/* The ones that n values set have a deviation of at most 0.28 sqrt(m), as for filters. */
static void check_rates(const struct churn *c, const char *when)
{
    tamis_records_facts info = info_of(c->x);
    uint32_t probes = HARNESS_TIMES(40000, 1000000);
    for (uint32_t i = 0; i < info.attributes && i < 2; i++) {
        tamis_attribute_facts a;
        tamis_records_attribute_info(c->x, i, &a);
        const struct vector *v = set_layers(&c->x->set)->l[0]->part[i].vector;
        double m = (double)a.bits / info.layers, spread = v->bits.k * 0.28 / (0.5 * sqrt(m));
        double expected = info.set.fpp * probes * (1 + 6 * spread / sqrt(info.layers));
        uint32_t found = false_positives(c->x, UINT64_C(1) << i, probes);
        CHECK_MSG(found <= expected + 6 * sqrt(expected),
                  "%s: growth %d, layout %d, attribute %u: %u of %u, not %g", when,
                  (int)info.set.growth, (int)info.set.layout, i, found, probes,
                  info.set.fpp * probes);
        if (getenv("TEST_VERBOSE"))
            printf("%s: growth %d, layout %d, attribute %u: %u of %u; %u layers\n", when,
                   (int)info.set.growth, (int)info.set.layout, i, found, probes, info.layers);
    }
}

/* Values that are all stored, but not together. */
static void check_recombined(const struct churn *c)
{
    tamis_records_facts info = info_of(c->x);
    uint32_t probes = 20000, found = 0;
    uint64_t rng = harness_seed();
    for (uint32_t i = 0; i < probes; i++) {
        tamis_digest record[ATTRIBUTES], other[ATTRIBUTES];
        uint32_t a = c->live[rng_next(&rng) % c->n], b = c->live[rng_next(&rng) % c->n];
        uint8_t here = 0;
        digests_of(c->x, a, record);
        digests_of(c->x, b, other);
        record[1] = other[1];
        if (a / 20 == b / 20)
            continue;
        tamis_records_has_many(c->x, 3, record, 1, &here);
        found += here;
    }
    double expected = info.set.fpp * probes * 1.6;
    CHECK_MSG(found <= expected + 6 * sqrt(expected), "growth %d: %u of %u recombined",
              (int)info.set.growth, found, probes);
}

static void churn_one(tamis_records_options o, uint32_t live, bool oldest)
{
    struct churn c = {records_of(o), malloc(live * sizeof *c.live), live, 0, harness_seed()};
    uint32_t layers = 0, turns = harness_long() ? 200 : 14;
    uint64_t bytes = 0, later = 0;
    bool good = true;
    for (uint32_t i = 0; i < live && good; i++)
        good = add(&c, c.live[i] = c.next++);
    check_rates(&c, "filled");
    for (uint32_t turn = 0; turn < turns && good; turn++) {
        good = churn_turn(&c, oldest);
        tamis_records_facts info = info_of(c.x);
        uint64_t *most = turn < turns / 2 ? &bytes : &later;
        *most = info.set.bytes > *most ? info.set.bytes : *most;
        if (turn == turns / 2)
            layers = info.layers;
        CHECK(info.set.items == live);
        CHECK_MSG(turn <= turns / 2 || info.layers <= layers + 2, "%u layers, then %u", layers,
                  info.layers);
    }
    check_rates(&c, "after churn");
    if (info_of(c.x).attributes > 1)
        check_recombined(&c);
    /* the table of pending removals may double when more of them than before come together */
    CHECK_MSG((double)later <= 1.6 * (double)bytes, "%" PRIu64 " bytes, later %" PRIu64, bytes,
              later);
    for (uint32_t i = 0; i < live && good; i++)
        good = take(&c, c.live[i]);
    const struct layers *all = set_layers(&c.x->set);
    CHECK(info_of(c.x).set.items == 0 && info_of(c.x).layers == 1 &&
          all->l[0]->part[0].vector->ones == 0);
    tamis_records_free(c.x);
    free(c.live);
}

TEST(churn_keeps_size_and_rates)
{
    static const uint8_t once[] = {1};
    const tamis_records_options kinds[] = {
        {.set.growth = TAMIS_FIXED, .set.capacity = 1000},
        {.set.growth = TAMIS_FIXED, .set.capacity = 1000, .set.fpp = 0.2},
        {.set.growth = TAMIS_DYNAMIC, .set.capacity = 1000, .set.vectors = 5, .set.fpp = 0.2},
        {.set.growth = TAMIS_SCALABLE,
         .set.capacity = 50,
         .set.layout = TAMIS_SPREAD,
         .set.expansion = 1,
         .set.fpp = 0.2},
        {.set.growth = TAMIS_FIXED, .set.capacity = 1000, .set.fpp = 0.2, .n_attributes = 1},
        {.set.growth = TAMIS_DYNAMIC,
         .set.capacity = 1000,
         .set.vectors = 5,
         .set.fpp = 0.2,
         .n_attributes = 1},
        {.set.growth = TAMIS_SCALABLE,
         .set.capacity = 50,
         .set.layout = TAMIS_SPREAD,
         .set.expansion = 1,
         .set.fpp = 0.2,
         .n_attributes = 1},
        {.set.growth = TAMIS_FIXED, .set.layout = TAMIS_SPREAD, .set.capacity = 1000},
        {.set.growth = TAMIS_DYNAMIC, .set.capacity = 1000, .set.vectors = 5},
        {.set.growth = TAMIS_SCALABLE, .set.capacity = 50},
        {.set.growth = TAMIS_SCALABLE,
         .set.layout = TAMIS_SPREAD,
         .set.capacity = 50,
         .set.expansion = 1},
        {.set.growth = TAMIS_SCALABLE,
         .set.layout = TAMIS_SPREAD,
         .set.capacity = 60,
         .set.expansion = 2},
        {.set.growth = TAMIS_SCALABLE,
         .set.layout = TAMIS_SPREAD,
         .set.capacity = 60,
         .set.expansion = 2,
         .verifier = TAMIS_VERIFIER_TABLE},
        {.set.growth = TAMIS_FLEXIBLE,
         .set.capacity = 100,
         .set.lambdas = once,
         .set.n_lambdas = 1},
    };
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int oldest = 0; oldest < 2; oldest++)
            churn_one(kinds[k], 1000, oldest);
}

HARNESS_MAIN
