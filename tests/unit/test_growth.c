/*
 * How filters grow: the published algorithms to the vector, our schedules as the plan says them, the
 * bounds at which an add is refused and what stays as it was then, and what a window remembers.
 */
#include "harness.h"
#include "keys.h"
#include "plan/plan.h"

#include <math.h>

#include "set/set.h"

#define SECOND UINT64_C(1000000000)

/* ---- help ---- */

static tamis_filter *make(tamis_options o)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "growth";
    tamis_filter *f = NULL;
    tamis_reason reason = {.text = ""};
    if (!o.key)
        o.key = key;
    CHECK_MSG(tamis_filter_new(&f, &o, &reason) == TAMIS_OK, "%s", reason.text);
    if (!f)
        exit(1); /* nothing below can do without */
    return f;
}

static bool add_fresh(tamis_filter *f, uint64_t key)
{
    bool fresh = false;
    CHECK(tamis_filter_add(f, &key, sizeof key, &fresh) == TAMIS_OK);
    return fresh;
}

static tamis_vector_facts vector_of(const tamis_filter *f, uint32_t i)
{
    tamis_vector_facts v = {.bits = 0};
    CHECK_MSG(tamis_filter_vector(f, i, &v), "there is no vector %u", i);
    return v;
}

/* Adds keys from `first` on until one is refused; how many were taken. */
static uint64_t add_until_full(tamis_filter *f, uint64_t first, uint64_t most)
{
    uint64_t n = 0;
    tamis_error e = TAMIS_OK;
    while (n < most && (e = add(f, first + n)) == TAMIS_OK)
        n++;
    CHECK_MSG(e == TAMIS_EFULL, "%s after %" PRIu64, tamis_error_name(e), n);
    return n;
}

/* The refused add left no trace. */
static void check_refusal(tamis_filter *f, uint64_t key, tamis_error why)
{
    tamis_filter *before;
    if (!CHECK(tamis_filter_clone(&before, f) == TAMIS_OK))
        return;
    struct plan_holt holt = f->set.stack->more->forecast.holt;
    tamis_filter_facts a = info_of(f);
    CHECK(add(f, key) == why);
    tamis_filter_facts b = info_of(f);
    CHECK(tamis_filter_equal(before, f));
    CHECK(a.items == b.items && a.vectors == b.vectors && a.bytes == b.bytes);
    CHECK(a.capacity == b.capacity && a.fpp_now == b.fpp_now);
    CHECK(holt.n == f->set.stack->more->forecast.holt.n &&
          holt.level == f->set.stack->more->forecast.holt.level &&
          before->set.stack->grown == f->set.stack->grown);
    tamis_filter_free(before);
}

/* ---- dynamic: Guo et al. ---- */

/* Algorithm 1: the first vector with room takes the item, else a new one: ceil(n/c) of them. */
TEST(dynamic_as_published)
{
    for (int deletable = 0; deletable <= 1; deletable++) {
        tamis_filter *f = make((tamis_options){.growth = TAMIS_DYNAMIC,
                                               .bits = 1280,
                                               .hashes = 7,
                                               .capacity = 133,
                                               .add_always = true,
                                               .deletable = deletable});
        uint64_t in_order = 0;
        for (uint64_t n = 1; n <= 2000; n++) {
            CHECK(add(f, n) == TAMIS_OK);
            uint64_t rows = tamis_plan_dynamic_rows(133, n);
            in_order += info_of(f).vectors == rows;
        }
        tamis_filter_facts info = info_of(f);
        CHECK(info.fpp == 0 && info.hashes == 7 && has_all(f, 1, 2001));
        /* Counters keep keys together with what covers them, so a few vectors fill later. */
        CHECK_MSG(deletable ? info.vectors >= 14 && info.vectors <= 16 : in_order == 2000,
                  "%u vectors, as published %" PRIu64 " times", info.vectors, in_order);
        for (uint32_t i = 0; i < info.vectors; i++) {
            tamis_vector_facts v = vector_of(f, i);
            CHECK(v.bits == 1280 && v.hashes == 7 && v.capacity == 133);
            if (!deletable)
                CHECK(v.items == (i + 1 < info.vectors ? 133 : 2000 % 133));
        }
        double rate = tamis_plan_dynamic_rate(1280, 7, 133, 2000);
        CHECK_MSG(fabs(info.fpp_now / rate - 1) < 0.1, "%g, by (3) %g", info.fpp_now, rate);
        tamis_filter_free(f);
    }
}

TEST(dynamic_asks_before_it_adds)
{
    tamis_options o = {.growth = TAMIS_DYNAMIC, .bits = 1280, .hashes = 7, .capacity = 133};
    tamis_filter *f = make(o);
    uint64_t fresh = 0;
    for (uint64_t n = 0; n < 20 * 133; n++)
        fresh += add_fresh(f, n);
    double skipped = tamis_plan_dynamic_present(1280, 7, 133, 20 * 133);
    CHECK(info_of(f).items == fresh);
    CHECK(info_of(f).vectors == tamis_plan_dynamic_rows(133, fresh));
    CHECK_MSG(fabs(2660 - (double)fresh - skipped) < 6 * sqrt(skipped),
              "%" PRIu64 " fresh, %g by "
              "the formula",
              fresh, 2660 - skipped);
    tamis_filter_free(f);
}

TEST(dynamic_is_full_at_its_bound)
{
    for (int deletable = 0; deletable <= 1; deletable++) {
        tamis_options o = {
            .growth = TAMIS_DYNAMIC, .capacity = 5000, .fpp = 0.001, .deletable = deletable};
        tamis_filter *f = make(o);
        uint64_t n = add_until_full(f, 0, 6000);
        tamis_filter_facts info = info_of(f);
        CHECK_MSG(n >= 5000 && n < 5030, "%" PRIu64, n);
        CHECK(info.capacity == 5000 && info.fpp == 0.001);
        CHECK_MSG(info.fpp_now < 0.001 * 1.1, "%g", info.fpp_now);
        CHECK(has_all(f, 0, n));
        check_refusal(f, n, TAMIS_EFULL);
        CHECK(add(f, 0) == TAMIS_OK); /* a member needs no room */
        /* Rebuilt from the keys it goes on. */
        CHECK(tamis_filter_clear(f) == TAMIS_OK);
        CHECK(info_of(f).vectors == 1 && info_of(f).items == 0 && !has(f, 3));
        CHECK(add_until_full(f, 0, 6000) == n);
        tamis_filter_free(f);
    }
}

TEST(dynamic_overfilled_says_its_rate)
{
    tamis_filter *f = make(
        (tamis_options){.growth = TAMIS_DYNAMIC, .capacity = 1000, .fpp = 0.01, .overfill = true});
    double last = 0;
    for (uint64_t n = 0; n < 3000; n++) {
        CHECK(add(f, n) == TAMIS_OK);
        if (n % 250 == 249) {
            double now = info_of(f).fpp_now;
            CHECK_MSG(now > last && (n < 1000 ? now < 0.012 : now > 0.012), "%g after %g", now,
                      last);
            last = now;
        }
    }
    CHECK(last > 0.5 && info_of(f).fpp == 0.01 && has_all(f, 0, 3000));
    tamis_filter_free(f);
}

/* Section 4.3: vectors for n0 items at beta, until the whole passes gamma. */
TEST(dynamic_between_beta_and_gamma)
{
    static const struct {
        double beta, gamma;
    } pairs[] = {{0.0098, 0.02}, {0.01, 0.1}, {0.001, 0.0035}, {0.01, 0.0100001}};
    for (size_t i = 0; i < 4; i++) {
        tamis_options o = {.growth = TAMIS_DYNAMIC,
                           .capacity = 1330,
                           .fpp = pairs[i].beta,
                           .tolerate = pairs[i].gamma};
        tamis_filter *f = make(o);
        uint64_t n = add_until_full(f, 0, 100000);
        tamis_filter_facts info = info_of(f);
        tamis_plan_limits limits =
            tamis_plan_dynamic_limits(info.hashes, 1330, pairs[i].beta, pairs[i].gamma);
        CHECK_MSG(info.items == limits.dynamic_whole, "%" PRIu64 " items, %" PRIu64, info.items,
                  limits.dynamic_whole);
        CHECK(n >= info.items);
        CHECK(info.vectors == (limits.dynamic_whole + 1329) / 1330);
        CHECK(info.fpp == pairs[i].gamma && info.capacity == limits.dynamic_whole);
        CHECK_MSG(info.fpp_now < 1.08 * pairs[i].gamma && info.fpp_now > 0.85 * pairs[i].gamma,
                  "%g at the bound %g", info.fpp_now, pairs[i].gamma);
        CHECK(vector_of(f, 0).fpp == pairs[i].beta);
        tamis_filter_free(f);
    }
}

/* Section 4.2: the number of vectors with the fewest expected bits, or the one given. */
TEST(dynamic_vectors_as_planned)
{
    static const uint64_t bounds[] = {1, 2, 10, 133, 1000};
    double cumulative[1000];
    for (size_t i = 0; i < 5; i++) {
        uint64_t bound = bounds[i];
        tamis_plan_sizes_uniform(cumulative, bound);
        tamis_plan_sizes_cumulate(cumulative, bound);
        tamis_plan_rows plan = tamis_plan_dynamic_best(cumulative, bound, 0.01);
        tamis_filter *f = make((tamis_options){.growth = TAMIS_DYNAMIC, .capacity = bound});
        add_until_full(f, 0, 2 * bound + 2000);
        tamis_filter_facts info = info_of(f);
        CHECK_MSG(info.vectors == (bound + plan.c - 1) / plan.c, "%u vectors, planned %" PRIu64,
                  info.vectors, plan.s);
        CHECK(vector_of(f, 0).capacity == plan.c);
        tamis_filter_free(f);
    }
    static const uint32_t given[] = {1, 2, 7, 65, 200, 600};
    for (size_t i = 0; i < 6; i++) {
        tamis_filter *f = make((tamis_options){
            .growth = TAMIS_DYNAMIC, .capacity = 12000, .vectors = given[i], .fpp = 0.001});
        uint64_t n = add_until_full(f, 0, 13000), c = (12000 + given[i] - 1) / given[i];
        CHECK(info_of(f).vectors == (12000 + c - 1) / c && vector_of(f, 0).capacity == c);
        CHECK(vector_of(f, 0).fpp == 0.001 / given[i] && has_all(f, 0, n));
        tamis_filter_free(f);
    }
}

/* ---- scalable ---- */

/* Successive vectors are what the plan says, layer by layer, and their rates sum to at most p. */
TEST(scalable_follows_the_plan)
{
    static const struct {
        double expansion;
        uint64_t first, n;
    } runs[] = {{0, 2, 60000},  {0, 100, 150000}, {1, 20, 3000},  {1.5, 10, 5000},
                {2, 16, 60000}, {4, 3, 60000},    {12, 3, 60000}, {2000, 3, 60000}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
            tamis_filter *f = make((tamis_options){.growth = TAMIS_SCALABLE,
                                                   .layout = (tamis_layout)layout,
                                                   .fpp = 0.001,
                                                   .capacity = runs[i].first,
                                                   .expansion = runs[i].expansion});
            for (uint64_t n = 0; n < runs[i].n; n++)
                CHECK(add(f, n) == TAMIS_OK);
            tamis_plan_layer layers[200];
            tamis_plan_stack plan = tamis_plan_grow(layout, runs[i].first, runs[i].expansion, 0.001,
                                                    info_of(f).items, layers, 200);
            double sum = 0;
            uint64_t largest = 0, total = 0;
            CHECK_MSG(info_of(f).vectors == plan.layers, "%u vectors, planned %zu",
                      info_of(f).vectors, plan.layers);
            for (uint32_t j = 0; j < plan.layers; j++) {
                tamis_vector_facts v = vector_of(f, j);
                CHECK_MSG(v.capacity ==
                              plan_next_capacity(runs[i].first, largest, total, runs[i].expansion),
                          "vector %u: %" PRIu64, j, v.capacity);
                largest = v.capacity > largest ? v.capacity : largest;
                total += v.capacity;
                sum += v.fpp;
                CHECK(tamis_plan_rate(layout, v.bits / (layout == TAMIS_BLOCKED ? 512 : 1),
                                      v.hashes, (double)v.capacity) <= v.fpp);
                CHECK_MSG(v.bits == layers[j].bits && v.fpp == layers[j].share,
                          "vector %u: share %g, planned %g", j, v.fpp, layers[j].share);
            }
            CHECK_MSG(sum <= 0.001, "shares sum to %g", sum);
            CHECK(info_of(f).capacity == total);
            tamis_filter_free(f);
        }
}

/* Whatever the expansion or the forecast says, the number of vectors grows with the logarithm of the
   keys: else adding n of them costs n^2. */
TEST(vectors_stay_few)
{
    for (int growth = TAMIS_SCALABLE; growth <= TAMIS_FLEXIBLE; growth++)
        for (int deletable = 0; deletable <= 1; deletable++) {
            uint64_t now = SECOND;
            tamis_filter *f = make((tamis_options){.growth = (tamis_growth)growth,
                                                   .capacity = 1,
                                                   .expansion = growth == TAMIS_SCALABLE,
                                                   .deletable = deletable,
                                                   .clock = harness_clock,
                                                   .clock_context = &now});
            for (uint64_t n = 0; n < 400; n++)
                CHECK(add(f, n) == TAMIS_OK);
            double sum = 0;
            tamis_filter_facts info = info_of(f);
            for (uint32_t i = 0; i < info.vectors; i++)
                sum += vector_of(f, i).fpp;
            CHECK_MSG(info.vectors >= 16 && info.vectors <= 16 + 11 * 5, "%u vectors",
                      info.vectors);
            CHECK(sum <= 0.01 && has_all(f, 0, 400));
            tamis_filter_free(f);
        }
}

/* Where equal vectors were asked for, or unions pile them up, there is a bound: every key is asked of
   all of them. */
TEST(vectors_that_are_asked_one_by_one_have_a_bound)
{
    static const uint8_t one[] = {1};
    tamis_filter *f = make((tamis_options){.growth = TAMIS_FLEXIBLE,
                                           .capacity = 1,
                                           .bits = 512,
                                           .hashes = 4,
                                           .lambdas = one,
                                           .n_lambdas = 1}),
                 *before;
    CHECK(add(f, 1) == TAMIS_OK);
    while (info_of(f).vectors < 4096)
        CHECK(tamis_filter_merge(f, f, TAMIS_MERGE_CONCAT, NULL) == TAMIS_OK);
    CHECK(tamis_filter_clone(&before, f) == TAMIS_OK);
    CHECK(tamis_filter_merge(f, before, TAMIS_MERGE_CONCAT, NULL) == TAMIS_ELIMIT);
    CHECK(add(f, 2) == TAMIS_ELIMIT);
    CHECK(tamis_filter_equal(before, f) && add(f, 1) == TAMIS_OK && !has(f, 2));
    tamis_filter_free(before);
    tamis_filter_free(f);
}

/* The course report: every vector twice the one before, the same k, no bound on the total. */
TEST(scalable_as_published)
{
    tamis_filter *f = make((tamis_options){.growth = TAMIS_SCALABLE,
                                           .layout = TAMIS_SPREAD,
                                           .bits = 5000,
                                           .hashes = 7,
                                           .capacity = 500,
                                           .add_always = true});
    for (uint64_t n = 0; n < 15 * 500; n++)
        CHECK(add(f, n) == TAMIS_OK);
    CHECK(info_of(f).vectors == 4 && info_of(f).fpp == 0);
    for (uint32_t i = 0; i < 4; i++) {
        tamis_vector_facts v = vector_of(f, i);
        CHECK(v.bits == UINT64_C(5000) << i && v.capacity == UINT64_C(500) << i && v.hashes == 7);
        CHECK(v.items == v.capacity);
    }
    CHECK(add(f, 1) == TAMIS_OK && info_of(f).vectors == 5);
    tamis_filter_free(f);
}

/* ---- flexible: Xie et al. ---- */

/* Figure 3: m0 = 8, k = 2, n0 = 2; thirteen items a..n with lambda 2 and 3 make 8, 16, 32 bits. */
TEST(flexible_figure_3)
{
    static const uint8_t lambdas[] = {1, 2, 3};
    static const tamis_hash hashes[] = {TAMIS_XXH3, TAMIS_H3};
    CHECK(tamis_plan_capacity_whole(8, 2, 0.155) == 2);
    for (int h = 0; h < 2; h++) {
        tamis_filter *f = make((tamis_options){.growth = TAMIS_FLEXIBLE,
                                               .layout = TAMIS_SPREAD,
                                               .hash = hashes[h],
                                               .bits = 8,
                                               .hashes = 2,
                                               .capacity = 2,
                                               .add_always = true,
                                               .lambdas = lambdas,
                                               .n_lambdas = 3});
        const char *items = "abcdefghijkmn";
        for (uint32_t i = 0; i < 13; i++) {
            CHECK(tamis_filter_add(f, items + i, 1, NULL) == TAMIS_OK);
            uint32_t want = i < 2 ? 1 : i < 6 ? 2 : 3;
            CHECK_MSG(info_of(f).vectors == want, "%u vectors after %c", info_of(f).vectors,
                      items[i]);
        }
        for (uint32_t i = 0; i < 3; i++) {
            tamis_vector_facts v = vector_of(f, i);
            CHECK(v.bits == 8u << i && v.hashes == 2 && v.capacity == 2u << i);
            CHECK(v.items == (i < 2 ? 2u << i : 7));
        }
        for (uint32_t i = 0; i < 13; i++)
            CHECK(tamis_filter_has(f, items + i, 1));
        tamis_filter_free(f);
    }
}

/* Section 8's sequences. The first lambda is the baseline's, the last one repeats. */
TEST(flexible_given_lambdas)
{
    static const uint8_t sequences[3][8] = {
        {1, 2, 3, 4, 5, 6, 7, 8}, {1, 3, 5, 7, 9, 11}, {1, 1, 2, 2, 3, 3, 4, 4}};
    static const size_t lengths[3] = {8, 6, 8};
    for (size_t s = 0; s < 3; s++)
        for (int published = 0; published <= 1; published++) {
            tamis_options o = {.growth = TAMIS_FLEXIBLE,
                               .layout = TAMIS_SPREAD,
                               .capacity = 20,
                               .add_always = true,
                               .lambdas = sequences[s],
                               .n_lambdas = lengths[s]};
            o.bits = published ? 256 : 0;
            o.hashes = published ? 8 : 0;
            tamis_filter *f = make(o);
            for (uint64_t n = 0; n < 10000; n++)
                CHECK(add(f, n) == TAMIS_OK);
            unsigned lambda[8];
            for (size_t i = 0; i < 8; i++)
                lambda[i] = sequences[s][i];
            tamis_plan_flex plan = tamis_plan_flexible(256, 20, 8, 10000, lambda, lengths[s]);
            tamis_filter_facts info = info_of(f);
            double sum = 0;
            CHECK_MSG(info.vectors == plan.vectors, "%u vectors, %zu by (5)", info.vectors,
                      plan.vectors);
            CHECK(!published || (double)info.bits == plan.bits);
            for (uint32_t i = 0; i < info.vectors; i++) {
                unsigned here = lambda[i < lengths[s] ? i : lengths[s] - 1];
                CHECK(vector_of(f, i).capacity == UINT64_C(20) << (here - 1));
                sum += vector_of(f, i).fpp;
            }
            CHECK(published || sum <= 0.01);
            CHECK(has_all(f, 0, 10000));
            tamis_filter_free(f);
        }
}

/* Fills `vectors` vectors; during vector i a key takes second * factor^-i. */
static tamis_filter *fill_timed(double factor, uint32_t vectors, uint64_t *now)
{
    tamis_filter *f = make((tamis_options){.growth = TAMIS_FLEXIBLE,
                                           .capacity = 64,
                                           .add_always = true,
                                           .clock = harness_clock,
                                           .clock_context = now});
    for (uint64_t n = 0; info_of(f).vectors <= vectors; n++) {
        CHECK(add(f, n) == TAMIS_OK);
        *now += (uint64_t)((double)SECOND * pow(factor, 1.0 - info_of(f).vectors));
    }
    return f;
}

TEST(flexible_lambda_follows_the_forecast)
{
    uint64_t now = 12345;
    tamis_filter *f = fill_timed(1, 12, &now);
    for (uint32_t i = 0; i <= 12; i++)
        CHECK_MSG(vector_of(f, i).capacity == 64, "steady, vector %u: %" PRIu64, i,
                  vector_of(f, i).capacity);
    tamis_filter_free(f);

    /* Doubling: nothing is known of the second vector; then the trend is, and lambda is i + 1. */
    f = fill_timed(2, 7, &now);
    for (uint32_t i = 0; i <= 7; i++)
        CHECK_MSG(vector_of(f, i).capacity == (i < 2 ? 64 : UINT64_C(64) << i),
                  "doubling, vector %u: %" PRIu64, i, vector_of(f, i).capacity);
    CHECK(f->set.stack->more->forecast.holt.n && f->set.stack->more->forecast.base_rate > 0);
    CHECK(tamis_filter_clear(f) == TAMIS_OK);
    CHECK(f->set.stack->more->forecast.holt.n == 0 && f->set.stack->more->forecast.base_rate == 0);
    tamis_filter_free(f);

    f = fill_timed(0.5, 8, &now);
    for (uint32_t i = 0; i <= 8; i++)
        CHECK_MSG(vector_of(f, i).capacity == 64, "falling, vector %u: %" PRIu64, i,
                  vector_of(f, i).capacity);
    tamis_filter_free(f);
}

TEST(flexible_with_a_clock_that_stops_or_goes_back)
{
    uint64_t now = 1000 * SECOND;
    tamis_filter *f = make((tamis_options){
        .growth = TAMIS_FLEXIBLE, .capacity = 64, .clock = harness_clock, .clock_context = &now});
    for (uint64_t n = 0; n < 2000; n++) {
        CHECK(add(f, n) == TAMIS_OK);
        if (n < 500)
            now += SECOND;
        else if (n == 1000)
            now /= 2;
    }
    tamis_filter_facts info = info_of(f);
    CHECK_MSG(info.capacity < 16000, "%" PRIu64 " keys made room for", info.capacity);
    CHECK(has_all(f, 0, 2000));
    tamis_filter_free(f);
}

/* ---- windows ---- */

#define WINDOW (1000 * SECOND)

static tamis_filter *make_window(uint64_t *now, uint64_t capacity, uint32_t vectors)
{
    *now = 5000 * SECOND;
    return make((tamis_options){.growth = TAMIS_WINDOW,
                                .layout = TAMIS_SPREAD,
                                .fpp = 1e-9, /* a "maybe" by chance would spoil the tests */
                                .capacity = capacity,
                                .vectors = vectors,
                                .window = WINDOW,
                                .clock = harness_clock,
                                .clock_context = now});
}

/* Found for W after the last add; gone W + W/(G-1) after it, if adds or expire let the vectors turn.
   Some keys come again, at random. */
TEST(window_remembers_long_enough_and_not_longer)
{
    static const uint32_t counts[] = {2, 3, 8, 50};
    enum { KEYS = 1000, STEPS = 6000 };
    for (size_t c = 0; c < 4; c++) {
        uint64_t now, rng = harness_seed(), last[KEYS] = {0};
        tamis_filter *f = make_window(&now, KEYS / 2, counts[c]);
        uint64_t gone_after = WINDOW + WINDOW / (counts[c] - 1);
        unsigned early = 0, late = 0, live = 0;
        for (unsigned step = 0; step < STEPS; step++) {
            uint64_t key = rng_next(&rng) % KEYS;
            now += rng_next(&rng) % (4 * SECOND);
            if (step % 7 == 0)
                CHECK(tamis_filter_expire(f) == TAMIS_OK);
            CHECK(add(f, key) == TAMIS_OK);
            last[key] = now;
            live = info_of(f).vectors > live ? info_of(f).vectors : live;
            for (unsigned i = 0; i < 20; i++) {
                uint64_t other = rng_next(&rng) % KEYS;
                bool found = has(f, other);
                early += !found && last[other] && now - last[other] <= WINDOW;
                late += found && (!last[other] || now - last[other] > gone_after + 8 * SECOND);
            }
        }
        CHECK_MSG(early == 0 && late == 0, "%u vectors: %u forgotten early, %u found late",
                  counts[c], early, late);
        CHECK_MSG(live <= counts[c] && live * (gone_after - WINDOW + 4 * SECOND) >= WINDOW,
                  "%u live vectors of %u", live, counts[c]);
        tamis_filter_free(f);
    }
}

TEST(window_readded_key_is_young_again)
{
    uint64_t now;
    tamis_filter *f = make_window(&now, 700, 0);
    CHECK(add_fresh(f, 1) && add_fresh(f, 2) && !add_fresh(f, 1));
    now += WINDOW - SECOND;
    CHECK(!add_fresh(f, 1)); /* remembered, so not fresh; and remembered anew */
    now += WINDOW - SECOND;
    CHECK(tamis_filter_expire(f) == TAMIS_OK);
    CHECK(has(f, 1) && !has(f, 2));
    now += WINDOW / 2;
    CHECK(tamis_filter_expire(f) == TAMIS_OK);
    CHECK(!has(f, 1) && info_of(f).items == 0 && info_of(f).vectors == 1);
    CHECK(add_fresh(f, 1));
    tamis_filter_free(f);
}

TEST(window_takes_far_more_than_expected)
{
    /* 100 times the capacity, steadily: the vectors find the right size. */
    uint64_t now;
    tamis_filter *f = make_window(&now, 100, 0);
    for (uint64_t n = 0; n < 30000; n++) {
        CHECK_MSG(add(f, n) == TAMIS_OK, "key %" PRIu64, n);
        now += WINDOW / 10000;
    }
    tamis_filter_facts info = info_of(f);
    CHECK(info.vectors <= 8 && has_all(f, 20000, 30000) && !has(f, 18000));
    CHECK_MSG(info.capacity < 30000, "%" PRIu64 " keys made room for", info.capacity);
    tamis_filter_free(f);
}

TEST(window_full_early)
{
    uint64_t now;
    tamis_filter *f = make_window(&now, 7, 4);
    uint64_t n = add_until_full(f, 0, 1000000); /* all in one moment */
    tamis_filter_facts info = info_of(f);
    CHECK(info.vectors == 6 && info.items == n && info.capacity == n && has_all(f, 0, n));
    for (uint32_t i = 1; i < 6; i++) {
        uint64_t before = vector_of(f, i - 1).capacity, here = vector_of(f, i).capacity;
        CHECK_MSG(here >= 2 * before && here <= 8 * before, "%" PRIu64 " after %" PRIu64, here,
                  before);
    }
    check_refusal(f, n, TAMIS_EFULL);
    CHECK(add(f, n - 1) == TAMIS_OK); /* in the newest vector already */
    CHECK(add(f, 0) == TAMIS_EFULL);  /* a member, but it cannot be made young again */
    now += WINDOW + SECOND;
    CHECK(add(f, n) == TAMIS_OK && has(f, n) && !has(f, 0));
    tamis_filter_free(f);

    now = SECOND;
    f = make((tamis_options){.growth = TAMIS_WINDOW,
                             .capacity = 70,
                             .overfill = true,
                             .vectors = 3,
                             .window = WINDOW,
                             .clock = harness_clock,
                             .clock_context = &now});
    for (n = 0; n < 40000; n++)
        CHECK(add(f, n) == TAMIS_OK);
    CHECK(info_of(f).fpp_now > 0.01 && info_of(f).vectors == 4 && has_all(f, 0, n));
    tamis_filter_free(f);
}

/* A clock that stands still or goes back: no member is denied, adds go on, and time heals. */
TEST(window_with_a_clock_that_stops_or_goes_back)
{
    uint64_t now;
    tamis_filter *f = make_window(&now, 700, 0);
    uint64_t n = 0;
    for (; n < 100; n++) {
        CHECK(add(f, n) == TAMIS_OK);
        now += WINDOW / 100;
    }
    now -= WINDOW / 2;
    for (; n < 200; n++) {
        CHECK(add(f, n) == TAMIS_OK);
        CHECK(tamis_filter_expire(f) == TAMIS_OK);
        CHECK(has_all(f, 20, n));
        now += n % 2 ? WINDOW / 500 : 0;
    }
    now = 0;
    CHECK(add(f, n) == TAMIS_OK && tamis_filter_expire(f) == TAMIS_OK);
    CHECK(has_all(f, 20, n + 1));
    now = 20000 * SECOND;
    CHECK(tamis_filter_expire(f) == TAMIS_OK);
    CHECK(info_of(f).items == 0 && !has(f, n));
    CHECK(add_fresh(f, 7) && has(f, 7));
    tamis_filter_free(f);
}

TEST(only_windows_expire)
{
    for (int growth = TAMIS_FIXED; growth <= TAMIS_FLEXIBLE; growth++) {
        tamis_filter *f = make((tamis_options){.growth = (tamis_growth)growth});
        CHECK(tamis_filter_expire(f) == TAMIS_EKIND);
        tamis_filter_free(f);
    }
}

/* ---- what counts ---- */

TEST(members_never_make_a_plain_filter_grow)
{
    static const tamis_growth growths[] = {TAMIS_DYNAMIC, TAMIS_SCALABLE, TAMIS_FLEXIBLE};
    for (size_t g = 0; g < 3; g++) {
        tamis_options o = {.growth = growths[g], .capacity = g == 0 ? 2000 : 100};
        tamis_filter *f = make(o);
        for (uint64_t n = 0; n < 2000; n++)
            CHECK(add(f, n) == TAMIS_OK);
        tamis_filter_facts before = info_of(f);
        for (unsigned round = 0; round < 5; round++)
            for (uint64_t n = 0; n < 2000; n++)
                CHECK(!add_fresh(f, n));
        tamis_filter_facts after = info_of(f);
        CHECK(after.vectors == before.vectors && after.items == before.items);
        CHECK(after.fill == before.fill);
        tamis_filter_free(f);
    }
}

TEST(add_always_counts_every_add)
{
    tamis_options o = {.growth = TAMIS_SCALABLE, .capacity = 100, .add_always = true};
    tamis_filter *f = make(o);
    for (unsigned i = 0; i < 101; i++)
        CHECK(add_fresh(f, 1) == (i == 0 || i == 100)); /* the new vector has not seen it */
    CHECK(info_of(f).items == 101 && info_of(f).vectors == 2);
    tamis_filter_free(f);
}

/* 64 bits can be set once each: no more than 64 adds can count, however many keys come. */
TEST(capacity_counts_adds_that_set_a_bit)
{
    for (int deletable = 0; deletable <= 1; deletable++) {
        tamis_filter *f = make((tamis_options){.growth = TAMIS_FIXED,
                                               .layout = TAMIS_SPREAD,
                                               .bits = 64,
                                               .hashes = 2,
                                               .capacity = 65,
                                               .deletable = deletable});
        for (uint64_t n = 0; n < 2000; n++)
            CHECK(add(f, n) == TAMIS_OK);
        tamis_filter_facts info = info_of(f);
        CHECK(deletable ? info.items == 2000 : info.items <= 64);
        CHECK(info.fill == 1 && info.fpp_now == 1 && has_all(f, 5000, 5100));
        tamis_filter_free(f);
    }
}

TEST(fixed_is_full_at_its_capacity)
{
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++)
        for (int deletable = 0; deletable <= 1; deletable++) {
            tamis_options o = {.growth = TAMIS_FIXED,
                               .layout = (tamis_layout)layout,
                               .capacity = 1000,
                               .fpp = 1e-6,
                               .deletable = deletable};
            tamis_filter *f = make(o);
            CHECK(add_until_full(f, 0, 2000) == 1000);
            check_refusal(f, 1000, TAMIS_EFULL);
            CHECK(add(f, 999) == TAMIS_OK);
            CHECK(info_of(f).items == (deletable ? 1001 : 1000));
            if (deletable) { /* what goes makes room */
                CHECK(take(f, 3) == TAMIS_REMOVED && add(f, 1000) == TAMIS_OK);
                CHECK(add(f, 1001) == TAMIS_EFULL);
            }
            tamis_filter_free(f);
            o.overfill = true;
            f = make(o);
            for (uint64_t n = 0; n < 3000; n++)
                CHECK(add(f, n) == TAMIS_OK);
            CHECK(info_of(f).fpp_now > 1e-4 && has_all(f, 0, 3000));
            tamis_filter_free(f);
        }
}

TEST(deletable_filters_are_multisets)
{
    for (int growth = TAMIS_FIXED; growth <= TAMIS_FLEXIBLE; growth++)
        for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
            if (growth == TAMIS_DYNAMIC && layout == TAMIS_BLOCKED)
                continue;
            tamis_filter *f = make((tamis_options){.growth = (tamis_growth)growth,
                                                   .layout = (tamis_layout)layout,
                                                   .capacity = 50,
                                                   .fpp = 1e-9,
                                                   .deletable = true});
            for (unsigned copy = 0; copy < 40; copy++) /* past 15 the counters escape */
                for (uint64_t n = 0; n < 40; n++)
                    CHECK(add_fresh(f, n) == (copy == 0));
            CHECK(info_of(f).items == 1600 && info_of(f).capacity <= 50);
            for (unsigned copy = 0; copy < 40; copy++) {
                CHECK(has_all(f, 0, 40));
                for (uint64_t n = 0; n < 40; n++)
                    CHECK(take(f, n) == TAMIS_REMOVED);
            }
            tamis_filter_facts info = info_of(f);
            CHECK(info.items == 0 && info.fill == 0 && info.pending == 0);
            CHECK(take(f, 0) == TAMIS_ABSENT);
            tamis_filter_free(f);
        }
}

/* ---- the limit on memory ---- */

TEST(memory_limit)
{
    for (int growth = TAMIS_DYNAMIC; growth <= TAMIS_WINDOW; growth++)
        for (int deletable = 0; deletable <= (growth != TAMIS_WINDOW); deletable++) {
            uint64_t now = 3 * SECOND;
            tamis_options o = {.growth = (tamis_growth)growth,
                               .capacity = growth == TAMIS_DYNAMIC ? 1000000 : 1000,
                               .vectors = growth == TAMIS_DYNAMIC ? 100 : 0,
                               .deletable = deletable,
                               .memory_limit = growth == TAMIS_DYNAMIC ? 1500000 : 700000,
                               .clock = harness_clock,
                               .clock_context = &now};
            tamis_filter *f = make(o);
            uint64_t n = 0;
            tamis_error e = TAMIS_OK;
            for (; n < 1000000 && e == TAMIS_OK; now += 1000)
                n += (e = add(f, n)) == TAMIS_OK;
            CHECK_MSG(e == TAMIS_ESPACE, "growth %d: %s", growth, tamis_error_name(e));
            CHECK_MSG(info_of(f).bytes <= o.memory_limit,
                      "growth %d, deletable %d: %" PRIu64 " bytes, limit %" PRIu64, growth,
                      deletable, info_of(f).bytes, o.memory_limit);
            CHECK_MSG(n > 1000 && info_of(f).vectors > 1, "growth %d: %" PRIu64, growth, n);
            CHECK(has_all(f, 0, n));
            check_refusal(f, n, TAMIS_ESPACE);
            tamis_filter_free(f);
        }
}

TEST(memory_limit_too_small_for_the_first_vector)
{
    for (int growth = TAMIS_FIXED; growth <= TAMIS_WINDOW; growth++) {
        tamis_options o = {
            .growth = (tamis_growth)growth, .capacity = 1000000, .memory_limit = 10000};
        tamis_filter *f = NULL;
        tamis_reason reason = {.text = ""};
        CHECK_MSG(tamis_filter_new(&f, &o, &reason) == TAMIS_ESPACE && !f, "growth %d", growth);
        CHECK(reason.text[0] != 0);
    }
}

/* A filter of one vector is asked another way than one of several: both say what a batch says, on
   the way up and after a clear. */
/* Single keys of 8 bytes are hashed, looked up and added by functions of their own. */
static void compare_one_with_many(tamis_growth growth, tamis_layout layout)
{
    tamis_filter *f = make((tamis_options){
        .growth = growth, .layout = layout, .capacity = 200, .fpp = 0.05, .overfill = true});
    for (int turn = 0; turn < 2; turn++) {
        for (uint64_t i = 0; i < 1000; i++) {
            CHECK(add(f, i) == TAMIS_OK && has(f, i) && has(f, i / 2));
            uint64_t keys[] = {i, i + 1000000};
            tamis_digest digests[2];
            uint8_t found[2];
            for (int j = 0; j < 2; j++)
                digests[j] = tamis_filter_digest(f, &keys[j], sizeof keys[j]);
            tamis_filter_has_many(f, digests, 2, found);
            CHECK(found[0] && has(f, keys[1]) == found[1]);
        }
        CHECK(tamis_filter_clear(f) == TAMIS_OK && !has(f, 1));
    }
    tamis_filter_free(f);
}

TEST(one_key_is_asked_as_many_are)
{
    static const tamis_growth growths[] = {TAMIS_FIXED, TAMIS_SCALABLE, TAMIS_FLEXIBLE,
                                           TAMIS_DYNAMIC, TAMIS_WINDOW};
    for (size_t g = 0; g < sizeof growths / sizeof *growths; g++) {
        compare_one_with_many(growths[g], 0);
        compare_one_with_many(growths[g], TAMIS_SPREAD);
    }
}

HARNESS_MAIN
