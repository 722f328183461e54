/* Whole filters: unions, intersections, folds, copies, comparison. Two ways to one filter must give
 * the same bits, and what is refused changes nothing.
 */
#include <math.h>

#include "set/set.h"
#include "harness.h"
#define KEY_TYPE uint32_t
#include "keys.h"

static const uint8_t family_key[TAMIS_KEY_LEN] = "algebra";
static uint64_t clock_now = 1000000;

static tamis_filter *filter_of(tamis_options o)
{
    tamis_filter *f = NULL;
    o.key = o.key ? o.key : family_key;
    o.clock = harness_clock;
    o.clock_context = &clock_now;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    return f;
}

static tamis_filter *copy_of(const tamis_filter *f)
{
    tamis_filter *copy = NULL;
    CHECK(tamis_filter_clone(&copy, f) == TAMIS_OK);
    return copy;
}

static void add_range(tamis_filter *f, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        tamis_error e = add(f, i);
        clock_now += 10;
        if (!CHECK_MSG(e == TAMIS_OK, "key %u: %s", i, tamis_error_name(e)))
            return;
    }
}

static tamis_filter *filled(tamis_options o, uint32_t from, uint32_t to)
{
    tamis_filter *f = filter_of(o);
    add_range(f, from, to);
    return f;
}

/* Vectors alike bit by bit; counts aside, which a union can only estimate. */
static bool same_bits(const tamis_filter *a, const tamis_filter *b)
{
    const struct layers *x = set_layers(&a->set), *y = set_layers(&b->set);
    if (layers_count(x) != layers_count(y))
        return false;
    for (uint32_t i = 0; i < layers_count(x); i++) {
        if (!shape_equal(x->v[i], y->v[i]))
            return false;
        for (uint64_t p = 0; p < vector_positions_total(x->v[i]); p++)
            if (vector_bit(x->v[i], p) != vector_bit(y->v[i], p))
                return false;
    }
    return true;
}

/* False positives among keys never added, at most as stated, by six sigma. */
static void check_rate(const tamis_filter *f, double fpp, const char *what)
{
    uint32_t probes = 100000, found = 0;
    for (uint32_t i = 0; i < probes; i++)
        found += has(f, UINT32_C(0x80000000) + i);
    CHECK_MSG(found <= fpp * probes + 6 * sqrt(fpp * probes), "%s: %u of %u, stated %g", what,
              found, probes, fpp);
}

/* One vector each; several hashes and layouts. */
static const tamis_options fixed[] = {
    {.growth = TAMIS_FIXED, .capacity = 1000},
    {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .capacity = 1000},
    {.growth = TAMIS_FIXED, .hash = TAMIS_SIP, .capacity = 1000, .fpp = 1e-4},
    {.growth = TAMIS_FIXED, .hash = TAMIS_H3, .capacity = 1000},
};

/* ---- union ----------------------------------------------------------------------------------- */

TEST(union_is_adding_both)
{
    for (unsigned k = 0; k < 4; k++) {
        tamis_filter *a = filled(fixed[k], 0, 500), *b = filled(fixed[k], 300, 800);
        tamis_filter *both = filled(fixed[k], 0, 800), *other = copy_of(b);
        CHECK(tamis_filter_merge(b, a, 0, NULL) == TAMIS_OK);
        CHECK(tamis_filter_merge(a, other, 0, NULL) == TAMIS_OK);
        CHECK(same_bits(a, both) && same_bits(b, both));
        uint64_t items = info_of(a).items;
        CHECK_MSG(items >= 500 && items <= 1000, "%" PRIu64 " items", items);
        CHECK(fabs((double)items - 800) < 60);
        tamis_filter_free(a);
        tamis_filter_free(b);
        tamis_filter_free(both);
        tamis_filter_free(other);
    }
}

/* Counters add up: a union of multisets is the multiset of both. */
TEST(union_of_multisets_adds_up)
{
    for (unsigned k = 0; k < 4; k++) {
        tamis_options o = fixed[k];
        o.deletable = true;
        tamis_filter *a = filled(o, 0, 500), *b = filled(o, 300, 700), *both = filled(o, 0, 500);
        for (int i = 0; i < 20; i++) /* past 15, into the side table */
            add_range(a, 7, 9), add_range(b, 8, 10), add_range(both, 7, 9), add_range(both, 8, 10);
        add_range(both, 300, 700);
        CHECK(tamis_filter_merge(a, b, 0, NULL) == TAMIS_OK);
        CHECK(tamis_filter_equal(a, both) && info_of(a).items == 980);
        for (uint32_t i = 300; i < 700; i++)
            CHECK(take(a, i) == TAMIS_REMOVED);
        CHECK(has_all(a, 0, 500) && info_of(a).items == 580);
        tamis_filter_free(a);
        tamis_filter_free(b);
        tamis_filter_free(both);
    }
}

static void check_refused(tamis_filter *a, tamis_filter *b, unsigned flags, tamis_error expected,
                          int line)
{
    tamis_filter *was = copy_of(a), *was_other = copy_of(b);
    tamis_filter_facts before = info_of(a);
    tamis_error e = tamis_filter_merge(a, b, flags, NULL);
    tamis_filter_facts after = info_of(a);
    CHECK_MSG(e == expected, "line %d: %s, not %s", line, tamis_error_name(e),
              tamis_error_name(expected));
    CHECK(tamis_filter_equal(a, was) && tamis_filter_equal(b, was_other));
    CHECK(before.items == after.items && before.fpp == after.fpp &&
          before.vectors == after.vectors && before.unique == after.unique &&
          before.capacity == after.capacity);
    tamis_filter_free(was);
    tamis_filter_free(was_other);
}

static void refuse(tamis_options x, tamis_options y, uint32_t n, tamis_error expected, int line)
{
    tamis_filter *a = filled(x, 0, n), *b = filled(y, n, 2 * n);
    check_refused(a, b, 0, expected, line);
    check_refused(b, a, 0, expected, line);
    tamis_filter_free(a);
    tamis_filter_free(b);
}

TEST(unions_that_cannot_be_change_nothing)
{
    static const uint8_t other_key[TAMIS_KEY_LEN] = "another family";
    tamis_options base = fixed[0], o = base;
    o.key = other_key;
    refuse(base, o, 100, TAMIS_EFAMILY, __LINE__);
    o = base, o.hash = TAMIS_SIP;
    refuse(base, o, 100, TAMIS_EFAMILY, __LINE__);
    o = base, o.capacity = 5000;
    refuse(base, o, 100, TAMIS_ESHAPE, __LINE__);
    o = base, o.layout = TAMIS_SPREAD;
    refuse(base, o, 100, TAMIS_ESHAPE, __LINE__);
    o = base, o.growth = TAMIS_SCALABLE;
    refuse(base, o, 100, TAMIS_EKIND, __LINE__);
    o = base, o.deletable = true;
    refuse(base, o, 100, TAMIS_EKIND, __LINE__);
    refuse(base, base, 800, TAMIS_ERATE, __LINE__);
    tamis_options dynamic = {.growth = TAMIS_DYNAMIC, .capacity = 1000, .vectors = 5};
    o = dynamic, o.vectors = 10;
    refuse(dynamic, o, 100, TAMIS_ESHAPE, __LINE__);
    refuse(dynamic, dynamic, 900, TAMIS_ERATE, __LINE__);
    tamis_options window = {.growth = TAMIS_WINDOW, .capacity = 1000, .window = 1000000};
    o = window, o.window = 2000000;
    refuse(window, o, 100, TAMIS_ESHAPE, __LINE__);
}

TEST(a_union_may_restate_the_rate)
{
    tamis_options dynamic = {.growth = TAMIS_DYNAMIC, .capacity = 900, .vectors = 5};
    tamis_options scalable = {.capacity = 100, .expansion = 1, .layout = TAMIS_SPREAD};
    const tamis_options kinds[] = {fixed[0], fixed[1], dynamic, scalable};
    for (unsigned k = 0; k < 4; k++)
        for (int deletable = 0; deletable < 2; deletable++) {
            tamis_options o = kinds[k];
            o.deletable = deletable;
            tamis_filter *a = filled(o, 0, 900), *b = filled(o, 900, 1800);
            double stated = info_of(a).fpp;
            if (k < 3)
                check_refused(a, b, 0, TAMIS_ERATE, __LINE__);
            tamis_error e = tamis_filter_merge(a, b, TAMIS_MERGE_RESTATE, NULL);
            CHECK_MSG(e == TAMIS_OK, "kind %u: %s", k, tamis_error_name(e));
            double now = info_of(a).fpp;
            CHECK_MSG(now > stated && now <= 1, "kind %u: %g, then %g", k, stated, now);
            CHECK(has_all(a, 0, 1800));
            check_rate(a, now, "restated");
            tamis_filter_free(a);
            tamis_filter_free(b);
        }
}

/* A restated filter can be united again with its like. */
TEST(restated_unions_go_on)
{
    tamis_filter *a = filled(fixed[0], 0, 900);
    for (uint32_t i = 1; i < 4; i++) {
        tamis_filter *b = filled(fixed[0], 900 * i, 900 * (i + 1));
        tamis_error e = tamis_filter_merge(a, b, TAMIS_MERGE_RESTATE, NULL);
        CHECK_MSG(e == TAMIS_OK, "%s", tamis_error_name(e));
        tamis_filter_free(b);
    }
    CHECK(has_all(a, 0, 3600));
    check_rate(a, info_of(a).fpp, "restated three times");
    tamis_filter_free(a);
}

/* Guo et al., section 3.3: side by side, or pairs of vectors whose items fit into one. */
TEST(dynamic_unions_concatenate_or_merge_pairs)
{
    for (int deletable = 0; deletable < 2; deletable++) {
        tamis_options o = {.growth = TAMIS_DYNAMIC,
                           .bits = 1280,
                           .hashes = 7,
                           .capacity = 133,
                           .deletable = deletable};
        tamis_filter *a = filled(o, 0, 133 * 3 + 50), *b = filled(o, 1000, 1000 + 133 * 2 + 60);
        tamis_filter *side = copy_of(a);
        CHECK(info_of(a).vectors == 4 && info_of(b).vectors == 3);
        CHECK(tamis_filter_merge(side, b, TAMIS_MERGE_CONCAT, NULL) == TAMIS_OK);
        CHECK_MSG(info_of(side).vectors == 7, "%u vectors", info_of(side).vectors);
        CHECK(tamis_filter_merge(a, b, 0, NULL) == TAMIS_OK);
        CHECK_MSG(info_of(a).vectors == 6, "%u vectors", info_of(a).vectors);
        uint64_t items = 0;
        for (uint32_t i = 0; i < info_of(a).vectors; i++) {
            tamis_vector_facts v;
            /* a key that a vector covers goes into it, full or not */
            CHECK(tamis_filter_vector(a, i, &v) && v.items <= 133u + 3 * deletable);
            items += v.items;
        }
        uint64_t added = info_of(side).items;
        CHECK_MSG(deletable ? items == 133 * 5 + 110 : items <= added && items + 3 >= added,
                  "%" PRIu64 " items of %" PRIu64, items, added);
        for (int i = 0; i < 2; i++) {
            tamis_filter *f = i ? side : a;
            CHECK(has_all(f, 0, 449) && has_all(f, 1000, 1326));
            for (uint32_t key = 0; deletable && key < 1326; key++)
                if (key < 449 || key >= 1000)
                    CHECK(take(f, key) != TAMIS_ABSENT);
            CHECK(!deletable || (info_of(f).items == 0 && info_of(f).fill == 0));
        }
        tamis_filter_free(a);
        tamis_filter_free(b);
        tamis_filter_free(side);
    }
}

TEST(growing_unions_find_all)
{
    static const tamis_options kinds[] = {
        {.capacity = 20},
        {.capacity = 20, .expansion = 2, .layout = TAMIS_SPREAD},
        {.capacity = 20, .deletable = true},
        {.growth = TAMIS_FLEXIBLE, .capacity = 40},
        {.growth = TAMIS_FLEXIBLE, .capacity = 40, .deletable = true, .layout = TAMIS_SPREAD},
    };
    for (unsigned k = 0; k < 5; k++)
        for (unsigned flags = 0; flags < 4; flags++) {
            tamis_filter *a = filled(kinds[k], 0, 400), *b = filled(kinds[k], 300, 700);
            tamis_error e = tamis_filter_merge(a, b, flags, NULL);
            CHECK(e == TAMIS_OK || (e == TAMIS_ERATE && !(flags & TAMIS_MERGE_RESTATE)));
            CHECK(has_all(a, 0, 400) && (e != TAMIS_OK || has_all(a, 300, 700)));
            check_rate(a, info_of(a).fpp, "union");
            add_range(a, 700, 900); /* and it goes on growing within what it states */
            CHECK(has_all(a, 700, 900));
            check_rate(a, info_of(a).fpp, "grown union");
            tamis_filter_free(a);
            tamis_filter_free(b);
        }
}

TEST(union_with_itself_and_with_nothing)
{
    for (int deletable = 0; deletable < 2; deletable++) {
        tamis_options o = fixed[1];
        o.deletable = deletable;
        tamis_filter *a = filled(o, 0, 300), *was = copy_of(a), *none = filter_of(o);
        CHECK(tamis_filter_merge(a, none, 0, NULL) == TAMIS_OK && tamis_filter_equal(a, was));
        CHECK(tamis_filter_merge(none, a, 0, NULL) == TAMIS_OK && tamis_filter_equal(none, was));
        CHECK(tamis_filter_merge(a, a, 0, NULL) == TAMIS_OK);
        CHECK(same_bits(a, was) && info_of(a).items == (deletable ? 600u : 300u));
        tamis_filter_free(a);
        tamis_filter_free(was);
        tamis_filter_free(none);
    }
}

/* Vectors by age: what the older filter brought goes first. */
TEST(window_unions_forget_by_age)
{
    tamis_options o = {.growth = TAMIS_WINDOW, .capacity = 700, .window = 70000, .vectors = 16};
    tamis_filter *a = filled(o, 0, 500);
    clock_now += 50000;
    tamis_filter *b = filled(o, 1000, 1500);
    CHECK(tamis_filter_merge(a, b, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
    CHECK(has_all(a, 0, 500) && has_all(a, 1000, 1500));
    clock_now += 40000;
    CHECK(tamis_filter_expire(a) == TAMIS_OK);
    uint32_t old = 0;
    for (uint32_t i = 0; i < 500; i++)
        old += has(a, i);
    CHECK_MSG(has_all(a, 1000, 1500) && old < 100, "%u old ones", old);
    tamis_filter_free(a);
    tamis_filter_free(b);
}

/* ---- unions while removals are pending ------------------------------------------------------- */

static const tamis_options crowded[] = {
    {.growth = TAMIS_DYNAMIC, .bits = 48, .hashes = 3, .capacity = 10, .deletable = true},
    {.layout = TAMIS_SPREAD, .bits = 48, .hashes = 3, .capacity = 10, .deletable = true},
    {.growth = TAMIS_FLEXIBLE,
     .layout = TAMIS_SPREAD,
     .bits = 48,
     .hashes = 3,
     .capacity = 10,
     .deletable = true},
};

enum { KEYS = 100 };

/* Keys 0..KEYS-1, each up to `most` times, some of them taken out again. Returns what is pending. */
static uint64_t fill_crowded(tamis_filter *f, uint8_t *copies, uint32_t most, uint64_t *rng)
{
    for (uint32_t i = 0; i < KEYS; i++)
        for (uint32_t n = (uint32_t)(rng_next(rng) % (most + 1)); n; n--, copies[i]++)
            add_range(f, i, i + 1);
    for (uint32_t i = 0; i < KEYS; i++)
        if (copies[i] && rng_next(rng) % 5 == 0) {
            take(f, i);
            copies[i]--;
        }
    return info_of(f).pending;
}

static bool holds(tamis_filter *f, const uint8_t *copies)
{
    uint64_t items = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        items += copies[i];
        if (copies[i] && !CHECK_MSG(has(f, i), "key %u is denied", i))
            return false;
    }
    return CHECK_MSG(info_of(f).items == items, "%" PRIu64 " items, not %" PRIu64, info_of(f).items,
                     items);
}

static bool empties(tamis_filter *f, uint8_t *copies)
{
    bool good = true;
    for (uint32_t i = 0; i < KEYS; i++)
        for (; good && copies[i]; copies[i]--)
            good = CHECK_MSG(has(f, i) && take(f, i) != TAMIS_ABSENT, "key %u", i);
    tamis_filter_facts info = info_of(f);
    return CHECK(info.items == 0 && info.pending == 0 && info.fill == 0 && info.vectors == 1);
}

TEST(unions_keep_pending_removals)
{
    uint64_t rng = harness_seed(), pending = 0;
    for (int run = 0; run < 300; run++) {
        uint8_t copies[2][KEYS] = {{0}};
        unsigned flags = TAMIS_MERGE_RESTATE | (run & 1 ? TAMIS_MERGE_CONCAT : 0);
        tamis_options o = crowded[run % 3];
        tamis_filter *a = filter_of(o), *b = filter_of(o);
        pending += fill_crowded(a, copies[0], 2, &rng);
        pending += fill_crowded(b, copies[1], 2, &rng);
        CHECK(tamis_filter_merge(a, b, flags, NULL) == TAMIS_OK);
        CHECK(holds(b, copies[1]));
        for (uint32_t i = 0; i < KEYS; i++)
            copies[0][i] += copies[1][i];
        CHECK_MSG(holds(a, copies[0]) && empties(a, copies[0]), "run %d", run);
        CHECK(empties(b, copies[1]));
        tamis_filter_free(a);
        tamis_filter_free(b);
    }
    CHECK_MSG(pending > 500, "%" PRIu64 " pending", pending);
}

/* A key pending in one filter, and denied there, is a member of the other: the sets are disjoint, and
   their union has it. Both ways round, vectors united or not. */
TEST(unique_unions_do_not_deny_members)
{
    uint64_t rng = harness_seed();
    uint32_t crossed = 0;
    for (int run = 0; run < 600; run++) {
        uint8_t copies[2][KEYS] = {{0}};
        unsigned flags =
            TAMIS_MERGE_RESTATE | TAMIS_MERGE_DISJOINT | (run & 1 ? TAMIS_MERGE_CONCAT : 0);
        tamis_options o = crowded[run % 3];
        o.unique = true;
        tamis_filter *a = filter_of(o), *b = filter_of(o);
        fill_crowded(a, copies[0], 1, &rng);
        for (uint32_t i = 0; i < KEYS; i++) /* what a lost, b has */
            if (!copies[0][i] && rng_next(&rng) % 4) {
                add_range(b, i, i + 1);
                copies[1][i] = 1;
                tamis_digest d = tamis_filter_digest(a, &i, sizeof i);
                crossed += set_hides(&a->set, &d);
            }
        tamis_filter *to = run & 2 ? a : b, *from = run & 2 ? b : a;
        CHECK(tamis_filter_merge(to, from, flags, NULL) == TAMIS_OK && info_of(to).unique);
        for (uint32_t i = 0; i < KEYS; i++)
            copies[0][i] += copies[1][i];
        CHECK_MSG(holds(to, copies[0]) && empties(to, copies[0]), "run %d", run);
        tamis_filter_free(a);
        tamis_filter_free(b);
    }
    CHECK_MSG(crossed > 100, "%u keys", crossed);
}

TEST(unique_needs_disjoint_unions)
{
    tamis_options o = crowded[0];
    o.unique = true;
    tamis_filter *a = filled(o, 0, 30), *b = filled(o, 30, 60), *c = filled(o, 60, 90);
    CHECK(tamis_filter_merge(a, b, TAMIS_MERGE_DISJOINT, NULL) == TAMIS_OK && info_of(a).unique);
    CHECK(tamis_filter_merge(a, c, 0, NULL) == TAMIS_OK && !info_of(a).unique);
    tamis_filter_free(a);
    tamis_filter_free(b);
    tamis_filter_free(c);
}

/* ---- intersection ---------------------------------------------------------------------------- */

TEST(intersection_has_the_bits_of_both)
{
    for (unsigned k = 0; k < 4; k++)
        for (int deletable = 0; deletable < 2; deletable++) {
            tamis_options o = fixed[k];
            o.deletable = deletable;
            tamis_filter *a = filled(o, 0, 600), *b = filled(o, 400, 1000), *both = NULL;
            CHECK(tamis_filter_intersect(&both, a, b, NULL) == TAMIS_OK);
            const struct vector *x = set_layers(&a->set)->v[0], *y = set_layers(&b->set)->v[0],
                                *z = set_layers(&both->set)->v[0];
            bool same = shape_equal(x, z);
            for (uint64_t p = 0; p < vector_positions_total(x) && same; p++)
                same = vector_bit(z, p) == (vector_bit(x, p) && vector_bit(y, p));
            CHECK(same && has_all(both, 400, 600));
            CHECK(!info_of(both).deletable && info_of(both).growth == TAMIS_FIXED);
            check_rate(both, info_of(a).fpp, "intersection");
            tamis_filter_free(a);
            tamis_filter_free(b);
            tamis_filter_free(both);
        }
}

TEST(intersections_that_cannot_be)
{
    tamis_options far = fixed[0];
    far.capacity = 5000;
    tamis_filter *a = filled(fixed[0], 0, 100), *b = filled(far, 0, 100), *out = NULL;
    tamis_filter *sip = filled(fixed[2], 0, 100);
    tamis_filter *grown = filled((tamis_options){.capacity = 10}, 0, 100);
    CHECK(tamis_filter_intersect(&out, a, b, NULL) == TAMIS_ESHAPE);
    CHECK(tamis_filter_intersect(&out, a, sip, NULL) == TAMIS_EFAMILY);
    CHECK(tamis_filter_intersect(&out, grown, grown, NULL) == TAMIS_EKIND);
    CHECK(out == NULL);
    tamis_filter_free(a);
    tamis_filter_free(b);
    tamis_filter_free(sip);
    tamis_filter_free(grown);
}

/* ---- fold ------------------------------------------------------------------------------------ */

/* Addresses are prefixes, so half the vector is what half the size would have been. */
TEST(fold_is_building_at_half_the_size)
{
    static const tamis_hash hashes[] = {TAMIS_XXH3, TAMIS_SIP, TAMIS_H3};
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++)
        for (int h = 0; h < 3; h++)
            for (int deletable = 0; deletable < 2; deletable++) {
                tamis_options o = {.growth = TAMIS_FIXED,
                                   .layout = (tamis_layout)layout,
                                   .hash = hashes[h],
                                   .bits = UINT64_C(4096) * 24,
                                   .hashes = 11,
                                   .capacity = 400,
                                   .deletable = deletable};
                if (layout == TAMIS_BLOCKED && hashes[h] == TAMIS_H3)
                    continue;
                tamis_filter *f = filled(o, 0, 400);
                add_range(f, 0, deletable ? 50 : 0);
                for (o.bits /= 2; o.bits >= 4096 * 3; o.bits /= 2) {
                    tamis_filter *built = filled(o, 0, 400);
                    add_range(built, 0, deletable ? 50 : 0);
                    CHECK(tamis_filter_fold(f, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
                    CHECK_MSG(same_bits(f, built) && tamis_filter_equal(f, built),
                              "layout %d, hash %d, %" PRIu64 " bits", layout, (int)hashes[h],
                              o.bits);
                    tamis_filter_free(built);
                }
                tamis_filter_free(f);
            }
}

TEST(folded_dynamic_is_built_dynamic)
{
    for (int deletable = 0; deletable < 2; deletable++) {
        tamis_options o = {.growth = TAMIS_DYNAMIC,
                           .bits = 2560,
                           .hashes = 7,
                           .capacity = 133,
                           .deletable = deletable,
                           .add_always = !deletable};
        tamis_filter *f = filled(o, 0, 133 * 6 + 20);
        CHECK(tamis_filter_fold(f, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
        CHECK(info_of(f).vectors == 7 && info_of(f).bits == 7 * 1280);
        CHECK(has_all(f, 0, 133 * 6 + 20));
        o.bits = 1280;
        tamis_filter *built = filled(o, 0, 133 * 6 + 20);
        if (!deletable) /* every add counts, so the same keys are in the same vectors */
            CHECK(same_bits(f, built));
        add_range(f, 5000, 5200); /* columns still move and grow */
        CHECK(has_all(f, 0, 133 * 6 + 20) && has_all(f, 5000, 5200));
        for (uint32_t i = 0; deletable && i < 133 * 6 + 20; i++)
            CHECK(take(f, i) != TAMIS_ABSENT);
        CHECK(has_all(f, 5000, 5200));
        tamis_filter *copy = copy_of(f); /* a clone and a union of what was folded */
        CHECK(tamis_filter_equal(copy, f));
        CHECK(tamis_filter_merge(copy, f, TAMIS_MERGE_CONCAT, NULL) == TAMIS_OK);
        CHECK(has_all(copy, 5000, 5200));
        tamis_filter_free(f);
        tamis_filter_free(copy);
        tamis_filter_free(built);
    }
}

TEST(folded_filters_are_emptied)
{
    static const tamis_options kinds[] = {
        {.growth = TAMIS_FIXED, .bits = 8192, .hashes = 4, .capacity = 500},
        {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .bits = 4096, .hashes = 4, .capacity = 500},
        {.growth = TAMIS_DYNAMIC, .bits = 256, .hashes = 4, .capacity = 50},
        {.layout = TAMIS_SPREAD, .bits = 256, .hashes = 4, .capacity = 50},
        {.growth = TAMIS_FLEXIBLE, .bits = 8192, .hashes = 4, .capacity = 50},
    };
    for (unsigned k = 0; k < 5; k++)
        for (int after = 0; after < 2; after++) { /* removals pending before the fold, or not */
            tamis_options o = kinds[k];
            o.deletable = true;
            tamis_filter *f = filled(o, 0, 300);
            for (uint32_t i = 0; i < 100 && !after; i++)
                CHECK(take(f, i) != TAMIS_ABSENT);
            CHECK_MSG(tamis_filter_fold(f, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK, "kind %u", k);
            CHECK(has_all(f, after ? 0 : 100, 300));
            for (uint32_t i = after ? 0 : 100; i < 300; i++)
                CHECK(take(f, i) != TAMIS_ABSENT);
            tamis_filter_facts info = info_of(f);
            CHECK_MSG(info.items == 0 && info.pending == 0 && info.fill == 0 && info.vectors == 1,
                      "kind %u", k);
            tamis_filter_free(f);
        }
}

TEST(fold_keeps_or_restates_the_rate)
{
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        tamis_options o = {
            .growth = TAMIS_FIXED, .layout = (tamis_layout)layout, .fpp = 0.01, .capacity = 40000};
        tamis_filter *f = filter_of(o);
        while (info_of(f).bits % (2 * 8 * (layout == TAMIS_BLOCKED ? 512 : 1))) {
            tamis_filter_free(f);
            o.capacity += 5;
            f = filter_of(o);
        }
        add_range(f, 0, 15000);
        CHECK(tamis_filter_fold(f, 0, NULL) == TAMIS_OK); /* less than half full */
        CHECK(info_of(f).fpp == 0.01 && has_all(f, 0, 15000));
        CHECK(info_of(f).capacity >= 15000 && info_of(f).capacity < o.capacity);
        check_rate(f, 0.01, "folded");
        tamis_filter_free(f);
        f = filled(o, 0, 30000);
        tamis_filter *was = copy_of(f);
        CHECK(tamis_filter_fold(f, 0, NULL) == TAMIS_ERATE && tamis_filter_equal(f, was));
        CHECK(info_of(f).fpp == 0.01 && info_of(f).capacity == o.capacity);
        CHECK(tamis_filter_fold(f, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
        CHECK(info_of(f).fpp > 0.01 && has_all(f, 0, 30000));
        check_rate(f, info_of(f).fpp, "folded and restated");
        CHECK(tamis_filter_clear(f) == TAMIS_OK && info_of(f).fill == 0);
        tamis_filter_free(f);
        tamis_filter_free(was);
    }
}

TEST(odd_sizes_do_not_fold)
{
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = TAMIS_SPREAD,
                       .bits = 4096 + 8,
                       .hashes = 4,
                       .capacity = 400};
    tamis_filter *f = filled(o, 0, 10), *was = copy_of(f);
    CHECK(tamis_filter_fold(f, TAMIS_MERGE_RESTATE, NULL) == TAMIS_ESHAPE &&
          tamis_filter_equal(f, was));
    tamis_filter_free(f);
    tamis_filter_free(was);
}

/* Planned sizes are multiples of 8 blocks: blocked vectors fold three times and more, until their
   blocks are odd, and what is left works on, is saved and loaded. */
TEST(blocks_fold_until_they_are_odd)
{
    tamis_options o = {.growth = TAMIS_FIXED, .bits = 512 * 8 * 3, .hashes = 5, .capacity = 100};
    for (int deletable = 0; deletable < 2; deletable++) {
        o.deletable = deletable;
        tamis_filter *f = filled(o, 0, 100), *loaded;
        for (int i = 0; i < 3; i++)
            CHECK(tamis_filter_fold(f, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK &&
                  has_all(f, 0, 100));
        CHECK(info_of(f).bits == 512 * 3);
        tamis_filter *was = copy_of(f);
        CHECK(tamis_filter_fold(f, TAMIS_MERGE_RESTATE, NULL) == TAMIS_ESHAPE);
        CHECK(tamis_filter_equal(f, was));
        tamis_reason reason;
        CHECK(tamis_filter_save(f, "odd.tamis", 0, &reason) == TAMIS_OK);
        CHECK(tamis_filter_load(&loaded, "odd.tamis", NULL, &reason) == TAMIS_OK);
        CHECK(tamis_filter_equal(f, loaded) && has_all(loaded, 0, 100));
        tamis_filter_free(f);
        tamis_filter_free(was);
        tamis_filter_free(loaded);
    }
}

/* ---- copies and comparison ------------------------------------------------------------------- */

TEST(clones_are_equal_and_apart)
{
    static const tamis_options kinds[] = {
        {.growth = TAMIS_FIXED, .capacity = 1000},
        {.growth = TAMIS_DYNAMIC, .bits = 48, .hashes = 3, .capacity = 10, .deletable = true},
        {.capacity = 10, .deletable = true, .unique = true},
        {.growth = TAMIS_FLEXIBLE, .hash = TAMIS_H3, .capacity = 10},
        {.growth = TAMIS_WINDOW, .capacity = 1000, .window = 100000},
    };
    for (unsigned k = 0; k < 5; k++) {
        tamis_filter *f = filled(kinds[k], 0, 100);
        for (uint32_t i = 0; kinds[k].deletable && i < 40; i++)
            take(f, i);
        tamis_filter *copy = copy_of(f), *was = copy_of(f);
        CHECK(tamis_filter_equal(f, copy) && tamis_filter_equal(copy, f));
        CHECK(info_of(copy).pending == info_of(f).pending &&
              info_of(copy).unique == info_of(f).unique);
        add_range(f, 1000, 1200); /* the same to both gives the same */
        add_range(copy, 1000, 1200);
        CHECK(k == 3 || k == 4 || tamis_filter_equal(f, copy)); /* those two look at the clock */
        CHECK(!tamis_filter_equal(f, was) && !tamis_filter_equal(was, f));
        tamis_filter_free(f);
        CHECK(has_all(copy, 1000, 1200));
        tamis_filter_free(copy);
        tamis_filter_free(was);
    }
}

TEST(filters_that_differ_are_not_equal)
{
    static const uint8_t other_key[TAMIS_KEY_LEN] = "another family";
    tamis_options o = crowded[0], other = o;
    tamis_filter *a = filled(o, 0, 40), *b = filled(o, 0, 39);
    CHECK(!tamis_filter_equal(a, b));
    add_range(b, 39, 40);
    CHECK(tamis_filter_equal(a, b) && tamis_filter_same_family(a, b));
    uint32_t key = 0;
    while (key < 40 && take(a, key) != TAMIS_PENDING)
        add_range(a, key, key + 1), key++;
    if (CHECK(key < 40)) {
        CHECK(!tamis_filter_equal(a, b) && !tamis_filter_equal(b, a)); /* pending here only */
        take(b, key);
        CHECK(tamis_filter_equal(a, b));
    }
    other.key = other_key;
    tamis_filter *c = filled(other, 0, 40);
    CHECK(!tamis_filter_equal(a, c) && !tamis_filter_same_family(a, c));
    uint8_t got[TAMIS_KEY_LEN];
    CHECK(tamis_filter_key(c, got) && memcmp(got, other_key, sizeof got) == 0);
    tamis_filter_free(a);
    tamis_filter_free(b);
    tamis_filter_free(c);
}

HARNESS_MAIN
