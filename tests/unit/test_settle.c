/*
 * Pending removals, looked at from inside after every step: none may wait that could be settled, none
 * may be settled that could not, and what counters can refute is refused. Vectors are so small, or so
 * full, that their keys cover one another all the time.
 */
#include "harness.h"
#include "tamis.h"

#include "set/set.h"

enum { KEYS = 120, BLOCKED_KEYS = 2400 };

static tamis_filter *make_tiny(tamis_growth growth, tamis_layout layout, bool unique, uint64_t seed)
{
    uint64_t words[2] = {seed, ~seed};
    uint8_t key[TAMIS_KEY_LEN];
    memcpy(key, words, sizeof key);
    tamis_options o = {.growth = growth,
                       .layout = layout,
                       .bits = layout == TAMIS_SPREAD ? 48 : 4096, /* eight blocks: the fewest */
                       .hashes = layout == TAMIS_SPREAD ? 3 : 1,
                       .capacity = layout == TAMIS_SPREAD ? 10 : 500,
                       .deletable = true,
                       .unique = unique,
                       .key = key};
    tamis_filter *f = NULL;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    return f;
}

/* Every pending removal has two candidates or more, each of which may hold the key, and fewer copies
   than they allow together. Their sum is what the filter says. */
static bool all_must_wait(const tamis_filter *f)
{
    const struct removals *r = &f->set.stack->more->removals;
    uint64_t total = 0;
    bool good = true;
    for (uint32_t i = 0; i < r->room; i++) {
        const struct pending *p = removals_entry(r, i);
        uint64_t copies = p ? atomic_load(&p->copies) : 0, allowed = 0;
        if (copies == 0)
            continue;
        for (uint32_t j = 0; j < p->n; j++) {
            const struct layer *layer = set_layer_by_id(&f->set, p->candidates[j]);
            uint64_t here = layer ? vector_copies(layer->part[0].vector, p->digest) : 0;
            good = CHECK_MSG(here > 0, "a candidate that cannot hold the key") && good;
            allowed += here;
        }
        good = CHECK_MSG(p->n > 1 && copies < allowed,
                         "%u candidates, %" PRIu64 " copies of %" PRIu64, p->n, copies, allowed) &&
               good;
        total += copies;
    }
    return CHECK(total == atomic_load(&r->total)) && good;
}

/* Random adds and legal removals, with phases in which one or the other prevails. */
static void history(tamis_growth growth, tamis_layout layout, bool unique, uint64_t *rng)
{
    tamis_filter *f = make_tiny(growth, layout, unique, rng_next(rng));
    unsigned keys = layout == TAMIS_SPREAD ? KEYS : BLOCKED_KEYS, some = keys > KEYS ? 100 : 1;
    unsigned pending = 0;
    unsigned copies[BLOCKED_KEYS] = {0};
    if (!f)
        return;
    for (unsigned step = 0; step < 10 * keys; step++) {
        uint64_t key = rng_next(rng) % keys;
        bool adds = rng_next(rng) % 8 < (step / (2 * keys) % 2 ? 2 : 6);
        if (adds && !(unique && copies[key])) {
            CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
            copies[key]++;
        } else if (!adds && copies[key]) {
            tamis_removed outcome = TAMIS_ABSENT;
            CHECK(tamis_filter_remove(f, &key, sizeof key, &outcome) == TAMIS_OK);
            CHECK(outcome != TAMIS_ABSENT);
            copies[key]--;
            pending += outcome == TAMIS_PENDING;
        }
        if (!all_must_wait(f))
            break;
        for (uint64_t i = step % some; i < keys; i += some) /* of few keys all, of many some */
            CHECK(!copies[i] || tamis_filter_has(f, &i, sizeof i));
    }
    CHECK_MSG(pending > 3, "%u removals of %u keys were pending", pending, keys);
    tamis_filter_free(f);
}

static void histories(tamis_growth growth, tamis_layout layout, uint64_t rng)
{
    for (unsigned round = 0; round < (harness_long() ? 100 : 6); round++)
        for (int unique = 0; unique <= 1; unique++)
            history(growth, layout, unique, &rng);
}

TEST(nothing_waits_that_could_be_settled)
{
    histories(TAMIS_DYNAMIC, TAMIS_SPREAD, harness_seed());
    histories(TAMIS_SCALABLE, TAMIS_SPREAD, harness_seed() + 1);
}

TEST(nothing_waits_in_blocks_that_could_be_settled)
{
    histories(TAMIS_SCALABLE, TAMIS_BLOCKED, harness_seed());
}

/* A key that hits one address twice needs two there. With others' keys on all its addresses, but only
   once each, it is "maybe"; its removal would take what is not its own, and is refused. */
TEST(repeated_addresses_refute)
{
    tamis_filter *f = make_tiny(TAMIS_FIXED, TAMIS_SPREAD, false, 5);
    unsigned refused = 0;
    if (!f)
        return;
    struct vector *v = set_layers(&f->set)->v[0];
    for (uint64_t key = 0; key < 3; key++)
        CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
    for (uint64_t key = 1000; key < 200000 && refused < 5; key++) {
        uint64_t at[K_MAX];
        vector_positions(v, tamis_filter_digest(f, &key, sizeof key), at);
        bool twice = at[0] == at[1] || at[1] == at[2] || at[0] == at[2], lacks = false;
        for (unsigned j = 0; j < 3; j++) {
            unsigned repeats = (at[j] == at[0]) + (at[j] == at[1]) + (at[j] == at[2]);
            lacks |= counters_get(&v->counters, at[j]) < repeats;
        }
        if (!twice || !lacks || !tamis_filter_has(f, &key, sizeof key))
            continue;
        tamis_removed outcome = TAMIS_REMOVED;
        CHECK(tamis_filter_remove(f, &key, sizeof key, &outcome) == TAMIS_OK);
        CHECK(outcome == TAMIS_ABSENT);
        refused++;
    }
    CHECK_MSG(refused == 5, "%u keys of this kind", refused);
    for (uint64_t key = 0; key < 3; key++)
        CHECK(tamis_filter_has(f, &key, sizeof key));
    tamis_filter_free(f);
}

/* Counters far past 15 and back, twice, while another key keeps the vector from being emptied. */
TEST(counters_escape_and_come_back)
{
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        tamis_options o = {.growth = TAMIS_FIXED,
                           .layout = (tamis_layout)layout,
                           .capacity = 200,
                           .fpp = 1e-9,
                           .deletable = true};
        uint64_t resident = 77777;
        tamis_filter *f;
        if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
            return;
        CHECK(tamis_filter_add(f, &resident, sizeof resident, NULL) == TAMIS_OK);
        uint64_t ones = set_layers(&f->set)->v[0]->ones;
        for (unsigned round = 0; round < 2; round++) {
            for (unsigned copy = 0; copy < 30; copy++)
                for (uint64_t key = 0; key < 150; key++)
                    CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
            CHECK(set_layers(&f->set)->v[0]->counters.escapes.used >= 1000);
            for (unsigned copy = 0; copy < 30; copy++)
                for (uint64_t key = 150; key-- > 0;) {
                    tamis_removed outcome = TAMIS_ABSENT;
                    CHECK(tamis_filter_has(f, &key, sizeof key));
                    CHECK(tamis_filter_remove(f, &key, sizeof key, &outcome) == TAMIS_OK);
                    CHECK(outcome == TAMIS_REMOVED);
                }
            CHECK(set_layers(&f->set)->v[0]->ones == ones);
            CHECK(set_layers(&f->set)->v[0]->counters.escapes.used == 0);
            for (uint64_t key = 0; key < 150; key++)
                CHECK(!tamis_filter_has(f, &key, sizeof key));
            CHECK(tamis_filter_has(f, &resident, sizeof resident));
        }
        tamis_filter_free(f);
    }
}

/* ---- forged keys ----------------------------------------------------------------------------- */

/* Where a key of this many digests would begin to be looked for, were this the secret. */
static uint64_t home_if(uint64_t secret, const tamis_digest *key, uint32_t width)
{
    uint64_t home = secret;
    for (uint32_t i = 0; i < width; i++)
        home = mul_fold(home ^ key[i].a, secret ^ key[i].b);
    return home;
}

/* The most slots that a lookup in the table may go over. */
static uint32_t longest_run(const struct removals *r)
{
    uint32_t longest = 0, run = 0;
    for (uint32_t i = 0; i < r->index_room; i++) {
        run = r->index[i] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Bytes from elsewhere may state any digests. These would all lie in a sixteenth of the table, one
   behind the other, if its hash had no secret, or one that is known. */
TEST(pending_removals_cannot_be_crowded)
{
    enum { N = 20000, ROOM = 65536, WIDTH = 3 };
    static const uint64_t known[] = {0, GOLDEN};
    static const uint32_t candidates[] = {0, 1};
    static const struct settings settings = {.growth = TAMIS_FIXED};
    uint64_t rng = harness_seed();
    for (unsigned run = 0; run < 4; run++) {
        struct set *s = NULL; /* without layers: candidates need not be there */
        tamis_digest key[WIDTH];
        if (!CHECK(set_make(&s, &mem_system, &settings, NULL,
                            (struct family_key){TAMIS_XXH3, NULL, true}, 4) == TAMIS_OK))
            return;
        struct removals *r = &s->stack->more->removals;
        r->width = run % 2 ? WIDTH : 1;
        while (r->used < N) {
            for (uint32_t i = 0; i < r->width; i++)
                key[i] = (tamis_digest){rng_next(&rng), rng_next(&rng)};
            if ((home_if(known[run / 2], key, r->width) & (ROOM - 1)) >= ROOM / 16)
                continue;
            if (!CHECK(pending_remember(s, key, 1, candidates, 2, false) == TAMIS_OK))
                break;
        }
        CHECK_MSG(r->index_room == ROOM, "%u", r->index_room);
        CHECK(r->used && pending_find(r, key) != NO_ENTRY);
        CHECK_MSG(longest_run(r) < 1000, "%u slots in a run", longest_run(r));
        set_free(s);
    }
}

HARNESS_MAIN
