/*
 * The promise: the stated rate is the total, for keys never added, and members are always found.
 * Every growth, layout and kind is filled to half, to the whole, to 10 and to 1000 times its first
 * capacity and asked for keys it never saw, through the public functions.
 *
 * Small filters differ from one another (with 10 keys at 1e-4, by half of the rate), so a cell
 * averages over many of them, each of a family of its own. The deviation is the larger of the
 * binomial one at the stated rate and the one seen between filters; six of them are allowed. The
 * cells of a grid are also taken together, which shows an excess that no single one would.
 *
 * TEST_VERBOSE=1 prints a line for each policy, rate and fill; --long goes to 10^6 keys.
 */
#include "harness.h"
#include "tamis.h"

#include <math.h>

#define SECOND UINT64_C(1000000000)
#define WINDOW (1000 * SECOND)
#define CHUNK  1024 /* keys digested and asked at once */

/* ---- keys: number i of a set, distinct for distinct i ---- */

enum keys { RANDOM, SEQUENTIAL, URLS, LONG };

static const char *const keys_names[] = {"random", "sequential", "urls", "4 KiB"};

struct key_set {
    enum keys kind;
    uint64_t seed;
};

static size_t url_write(char *to, uint64_t seed, uint64_t i)
{
    static const char *const hosts[] = {"www", "img", "api", "cdn-eu-1", "shop", "m", "news", "a"};
    int n =
        sprintf(to, "https://%s.example.com/%x/item?id=", hosts[i % 8], (unsigned)seed & 0xffff);
    char digits[24];
    size_t d = 0;
    for (uint64_t x = i; d == 0 || x; x /= 10)
        digits[d++] = (char)('0' + x % 10);
    while (d)
        to[n++] = digits[--d];
    memcpy(to + n, "&ref=home", 9);
    return (size_t)n + 9;
}

/* The digests of keys first..first+n-1, n <= CHUNK. */
static void digest_keys(const tamis_filter *f, const struct key_set *set, uint64_t first, size_t n,
                        tamis_digest *out)
{
    uint64_t words[CHUNK];
    static char text[4096];
    switch (set->kind) {
    case RANDOM: /* splitmix64 is a permutation, so they are distinct */
        for (size_t i = 0; i < n; i++) {
            uint64_t state = set->seed + (first + i) * UINT64_C(0x9e3779b97f4a7c15);
            words[i] = rng_next(&state);
        }
        tamis_filter_digest_fixed(f, words, sizeof *words, n, out);
        break;
    case SEQUENTIAL:
        for (size_t i = 0; i < n; i++)
            words[i] = first + i;
        tamis_filter_digest_fixed(f, words, sizeof *words, n, out);
        break;
    case URLS:
        for (size_t i = 0; i < n; i++) {
            size_t len = url_write(text, set->seed, first + i);
            out[i] = tamis_filter_digest(f, text, len);
        }
        break;
    default: /* long strings that differ in eight bytes, not always the same ones */
        memset(text, 'x', sizeof text);
        for (size_t i = 0; i < n; i++) {
            char *at = text + (first + i) % 511 * 8;
            uint64_t number = first + i;
            memcpy(at, &number, sizeof number);
            tamis_key key = {text, sizeof text};
            tamis_filter_digest_many(f, &key, 1, &out[i]);
            memset(at, 'x', sizeof number);
        }
    }
}

/* ---- one cell: a kind of filter, a rate, a size and a fill ---- */

enum time_course { NO_CLOCK, STEADY, RISING };

struct policy {
    const char *name;
    tamis_growth growth;
    enum time_course course;
    double most; /* times its first capacity that it takes */
    uint8_t lambdas[12];
};

static const struct policy fixed = {.name = "fixed", .growth = TAMIS_FIXED, .most = 1};
static const struct policy dynamic = {.name = "dynamic", .growth = TAMIS_DYNAMIC, .most = 1};
static const struct policy scalable = {.name = "scalable", .growth = TAMIS_SCALABLE, .most = 1000};
static const struct policy given = {.name = "flexible, given",
                                    .growth = TAMIS_FLEXIBLE,
                                    .most = 1000,
                                    .lambdas = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
static const struct policy steady = {
    .name = "flexible, steady", .growth = TAMIS_FLEXIBLE, .course = STEADY, .most = 10};
static const struct policy rising = {
    .name = "flexible, rising", .growth = TAMIS_FLEXIBLE, .course = RISING, .most = 1000};
static const struct policy equal = {
    .name = "flexible, equal", .growth = TAMIS_FLEXIBLE, .most = 1000, .lambdas = {1}};
static const struct policy window = {
    .name = "window", .growth = TAMIS_WINDOW, .course = STEADY, .most = 10};

struct cell {
    const struct policy *policy;
    tamis_layout layout;
    bool deletable;
    tamis_hash hash;
    enum keys keys;
    double p;
    uint64_t n;
    double times;     /* n over the first capacity */
    double positives; /* false positives to expect at the stated rate */
    double expansion;
};

struct result {
    double rate, sigma; /* measured, and its deviation */
    double now;         /* as the filters estimate it */
    double distinct, distinct_sigma, items;
    double bits_per_key;
    uint64_t asked, missing, refused;
    unsigned filters;
    uint32_t vectors, hashes;
};

static uint64_t seed_next(void)
{
    static uint64_t state;
    static bool started;
    if (!started)
        state = harness_seed();
    started = true;
    return rng_next(&state);
}

/* Keys that went in before those that must be found: windows have some that are older. */
static uint64_t keys_before(const struct cell *c)
{
    return c->policy->growth == TAMIS_WINDOW ? c->n : 0;
}

static tamis_filter *cell_filter(const struct cell *c, uint64_t *now)
{
    uint64_t words[2] = {seed_next(), seed_next()};
    uint8_t key[TAMIS_KEY_LEN];
    memcpy(key, words, sizeof key);
    double capacity = (double)c->n / c->times;
    tamis_options o = {.fpp = c->p,
                       .capacity = capacity < 1 ? 1 : (uint64_t)capacity,
                       .growth = c->policy->growth,
                       .layout = c->layout,
                       .hash = c->hash,
                       .key = key,
                       .deletable = c->deletable,
                       .expansion = c->expansion,
                       .window = WINDOW};
    if (c->policy->course != NO_CLOCK) {
        o.clock = harness_clock;
        o.clock_context = now;
    }
    if (c->policy->lambdas[0]) {
        o.lambdas = c->policy->lambdas;
        o.n_lambdas = strlen((const char *)c->policy->lambdas);
    }
    tamis_filter *f = NULL;
    tamis_reason reason = {.text = ""};
    CHECK_MSG(tamis_filter_new(&f, &o, &reason) == TAMIS_OK, "%s", reason.text);
    return f;
}

/* Time from key i to the next: n keys a window; or each capacity faster than the one before. */
static uint64_t pause_after(const struct cell *c, uint64_t i)
{
    if (c->policy->course == RISING)
        return (uint64_t)((double)SECOND / (1 + c->times * (double)i / (double)c->n));
    return WINDOW / c->n;
}

/* Adds all keys, every other filter one by one. */
static void cell_fill(const struct cell *c, tamis_filter *f, const struct key_set *set,
                      uint64_t *now, bool one_by_one, struct result *r)
{
    tamis_digest digests[CHUNK];
    uint64_t all = keys_before(c) + c->n;
    double few = (double)c->n / c->times / 16;
    size_t step = few < 1 ? 1 : few > 16 ? 16 : (size_t)few; /* keys that arrive together */
    for (uint64_t i = 0; i < all;) {
        size_t n = all - i < CHUNK ? (size_t)(all - i) : CHUNK;
        digest_keys(f, set, i, n, digests);
        for (size_t j = 0; j < n;) {
            size_t some = c->policy->course == NO_CLOCK ? n : step, done = 0;
            some = one_by_one ? 1 : some < n - j ? some : n - j;
            r->refused += tamis_filter_add_many(f, digests + j, some, NULL, &done) != TAMIS_OK;
            *now += some * pause_after(c, i + j);
            j += some;
        }
        i += n;
    }
}

static uint64_t count_found(const tamis_filter *f, const struct key_set *set, uint64_t first,
                            uint64_t n)
{
    tamis_digest digests[CHUNK];
    uint8_t found[CHUNK];
    uint64_t all = 0;
    for (uint64_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? (size_t)(n - i) : CHUNK;
        digest_keys(f, set, first + i, some, digests);
        tamis_filter_has_many(f, digests, some, found);
        for (size_t j = 0; j < some; j++)
            all += found[j];
    }
    return all;
}

/* Variance of the estimate of keys: a vector of m cells and t throws a cell has m(e^-t-(1+t)e^-2t)
   as the variance of its ones. Blocks do not fill evenly, which adds a tenth. */
static double distinct_variance(const tamis_filter *f)
{
    tamis_vector_facts v;
    double sum = 0;
    for (uint32_t i = 0; tamis_filter_vector(f, i, &v); i++) {
        double t = (double)v.hashes * (double)v.items / (double)v.bits;
        sum += 1.1 * (double)v.bits * (exp(t) - t - 1) / v.hashes / v.hashes;
    }
    return sum;
}

static unsigned cell_filters(const struct cell *c)
{
    unsigned n = c->n <= 10 ? 240 : c->n <= 100 ? 100 : c->n <= 1000 ? 20 : c->n <= 10000 ? 4 : 2;
    return harness_slow() ? (n + 3) / 4 : n;
}

static struct result cell_measure(const struct cell *c)
{
    struct result r = {.filters = cell_filters(c)};
    uint64_t asked = (uint64_t)(c->positives / c->p / r.filters) + 1;
    double sum = 0, squares = 0, variance = 0;
    for (unsigned i = 0; i < r.filters; i++) {
        uint64_t now = 77 * WINDOW;
        struct key_set set = {c->keys, seed_next()};
        tamis_filter *f = cell_filter(c, &now);
        tamis_filter_facts info;
        if (!f)
            return r;
        cell_fill(c, f, &set, &now, i % 2, &r);
        r.missing += c->n - count_found(f, &set, keys_before(c), c->n);
        double rate = (double)count_found(f, &set, keys_before(c) + c->n, asked) / (double)asked;
        tamis_filter_info(f, &info);
        sum += rate;
        squares += rate * rate;
        r.now += info.fpp_now / r.filters;
        r.distinct += info.distinct / r.filters;
        r.items += (double)info.items / r.filters;
        variance += distinct_variance(f);
        r.bits_per_key += (double)info.bits / (double)c->n / r.filters;
        r.vectors = info.vectors > r.vectors ? info.vectors : r.vectors;
        r.hashes = info.hashes > r.hashes ? info.hashes : r.hashes;
        r.asked += asked;
        CHECK(info.fpp == c->p);
        tamis_filter_free(f);
    }
    double n = r.filters, binomial = sqrt(c->p * (1 - c->p) / (double)r.asked);
    r.rate = sum / n;
    double between = n > 1 ? sqrt(fmax(0, squares / n - r.rate * r.rate) / (n - 1)) : 0;
    r.sigma = fmax(binomial, between);
    r.distinct_sigma = sqrt(variance) / n;
    return r;
}

/* ---- what must hold in every cell ---- */

static const char *layout_name(tamis_layout layout)
{
    return layout == TAMIS_SPREAD ? "spread" : "blocked";
}

static void cell_say(const struct cell *c, char *to, size_t len)
{
    snprintf(to, len, "%s, %s, %s, %s keys, hash %d, rate %g, %" PRIu64 " keys, %g times",
             c->policy->name, layout_name(c->layout), c->deletable ? "deletable" : "plain",
             keys_names[c->keys], (int)c->hash, c->p, c->n, c->times);
}

static void cell_check(const struct cell *c, const struct result *r)
{
    char name[200];
    cell_say(c, name, sizeof name);
    CHECK_MSG(r->missing == 0, "%s: %" PRIu64 " members denied", name, r->missing);
    CHECK_MSG(r->refused == 0, "%s: %" PRIu64 " adds refused", name, r->refused);
    CHECK_MSG(r->rate <= c->p + 6 * r->sigma, "%s: measured %g, %.1f deviations above", name,
              r->rate, (r->rate - c->p) / r->sigma);
    CHECK_MSG(fabs(r->now - r->rate) <= 6 * r->sigma + 0.03 * r->now, "%s: measured %g, said %g",
              name, r->rate, r->now);
    /* A key whose bits were all set leaves no trace: the estimate may miss this many. */
    double most = keys_before(c) ? r->items / (1 - c->p) : (double)c->n;
    double least = c->deletable ? (double)c->n * (1 - c->p) : r->items;
    CHECK_MSG(r->distinct >= least - 5 * r->distinct_sigma &&
                  r->distinct <= most + 5 * r->distinct_sigma,
              "%s: %.1f keys estimated, deviation %.1f, expected %.1f to %.1f", name, r->distinct,
              r->distinct_sigma, least, most);
}

static bool verbose(void)
{
    const char *text = getenv("TEST_VERBOSE");
    return text && *text && *text != '0';
}

/* ---- the grid ---- */

static const double rates[] = {0.1, 0.01, 0.001, 0.0001};
static const double fills[] = {0.5, 1, 10, 1000};

/* Cells taken together: the sum of their excesses over the stated rate, in units of that rate. */
struct pool {
    double excess, variance;
};

static void pool_add(struct pool *pool, const struct cell *c, const struct result *r)
{
    pool->excess += r->rate / c->p - 1;
    pool->variance += r->sigma / c->p * r->sigma / c->p;
}

/* One row of the table: all sizes at one rate and fill. */
static void row_measure(struct cell c, struct pool *pool)
{
    /* Steady and given sizes grow as rising ones do. */
    bool alike = c.policy == &given || c.policy == &steady;
    uint64_t most = harness_long()   ? (harness_slow() ? 100000 : 1000000)
                    : harness_slow() ? 1000
                    : alike          ? 10000
                                     : 100000;
    double per_key = 0;
    char line[200];
    int at = 0;
    bool any = false;
    for (uint64_t n = 10; n <= most; n *= 10) {
        c.n = n;
        if ((double)n < c.times) {
            at += snprintf(line + at, sizeof line - (size_t)at, "%9s", "");
            continue;
        }
        struct result r = cell_measure(&c);
        cell_check(&c, &r);
        pool_add(pool, &c, &r);
        at += snprintf(line + at, sizeof line - (size_t)at, "%9.2g", r.rate);
        per_key = r.bits_per_key;
        any = true;
    }
    if (verbose() && any)
        printf("%-17s %-7s %-9s %6g %6g |%s | %7.2f\n", c.policy->name, layout_name(c.layout),
               c.deletable ? "deletable" : "plain", c.p, c.times, line, per_key);
}

/* False positives to ask for. A growing filter is far below its rate before it grows, a scalable one and a
   window always; and counters are not asked, so deletable filters differ in what they hold only. */
static double positives_for(const struct policy *policy, double times, bool deletable)
{
    bool slack = times < 1 || (times == 1 && policy->most == 1000) || policy == &scalable ||
                 policy == &window;
    double positives = slack ? 30 : deletable ? 60 : 120;
    return positives * (harness_long() ? 10 : 1) / (harness_slow() ? 3 : 1);
}

static void grid(const struct policy *policy)
{
    struct pool pools[4] = {{0, 0}};
    if (verbose())
        printf("%-17s %-7s %-9s %6s %6s | measured at 10, 100, ... keys | bits per key at most\n",
               "growth", "layout", "kind", "stated", "times");
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++)
        for (int deletable = 0; deletable <= 1; deletable++) {
            if ((policy->growth == TAMIS_DYNAMIC && layout == TAMIS_BLOCKED) ||
                (policy->growth == TAMIS_WINDOW && deletable))
                continue;
            for (size_t p = 0; p < 4; p++)
                for (size_t i = 0; i < 4 && fills[i] <= policy->most; i++)
                    row_measure(
                        (struct cell){.policy = policy,
                                      .layout = (tamis_layout)layout,
                                      .deletable = deletable,
                                      .keys = i % 2 ? SEQUENTIAL : RANDOM,
                                      .p = rates[p],
                                      .times = fills[i],
                                      .positives = positives_for(policy, fills[i], deletable)},
                        &pools[i]);
        }
    for (size_t i = 0; i < 4; i++)
        CHECK_MSG(pools[i].excess <= 6 * sqrt(pools[i].variance),
                  "%s at %g times, taken together: %.1f deviations above", policy->name, fills[i],
                  pools[i].excess / sqrt(pools[i].variance));
}

TEST(fixed_grid)
{
    grid(&fixed);
}

TEST(dynamic_grid)
{
    grid(&dynamic);
}

TEST(scalable_grid)
{
    grid(&scalable);
}

TEST(flexible_given_grid)
{
    grid(&given);
}

TEST(flexible_steady_grid)
{
    grid(&steady);
}

TEST(flexible_rising_grid)
{
    grid(&rising);
}

TEST(window_grid)
{
    grid(&window);
}

/* ---- kinds of keys and hashes ---- */

static void keys_and_hash(tamis_hash hash)
{
    for (int kind = RANDOM; kind <= LONG; kind++)
        for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
            if (hash == TAMIS_H3 && layout == TAMIS_BLOCKED)
                continue;
            const struct policy *const all[] = {&fixed, &scalable};
            for (size_t i = 0; i < 2; i++) {
                struct cell c = {.policy = all[i],
                                 .layout = (tamis_layout)layout,
                                 .hash = hash,
                                 .keys = (enum keys)kind,
                                 .p = kind == LONG ? 0.01 : 0.001,
                                 .n = kind == LONG ? 1000 : 20000,
                                 .times = i == 0 ? 1 : 100,
                                 .positives = harness_slow()                      ? 20
                                              : kind == LONG && hash == TAMIS_SIP ? 200
                                                                                  : 400};
                struct result r = cell_measure(&c);
                cell_check(&c, &r);
                if (verbose())
                    printf("%-17s %-7s hash %d %-10s stated %g measured %.3g\n", c.policy->name,
                           layout_name(c.layout), (int)hash, keys_names[kind], c.p, r.rate);
            }
        }
}

TEST(xxh3_takes_all_kinds_of_keys)
{
    keys_and_hash(TAMIS_XXH3);
}

TEST(sip_takes_all_kinds_of_keys)
{
    keys_and_hash(TAMIS_SIP);
}

TEST(h3_takes_all_kinds_of_keys)
{
    keys_and_hash(TAMIS_H3);
}

TEST(h3_holds_in_small_filters_and_in_a_matrix)
{
    static const struct policy *const all[] = {&fixed, &dynamic, &steady};
    for (size_t i = 0; i < 3; i++)
        for (uint64_t n = 10; n <= 1000; n *= 10) {
            struct cell c = {.policy = all[i],
                             .layout = TAMIS_SPREAD,
                             .hash = TAMIS_H3,
                             .deletable = i % 2,
                             .p = 0.001,
                             .n = n,
                             .times = all[i]->most,
                             .positives = harness_slow() ? 20 : 200};
            struct result r = cell_measure(&c);
            cell_check(&c, &r);
        }
}

/* ---- where it is tight ---- */

/* Full filters sized to the bit have no slack: measured to a hundredth. */
TEST(full_filters_to_a_hundredth)
{
    static const struct policy *const all[] = {&fixed, &dynamic};
    for (size_t i = 0; i < 2; i++)
        for (int layout = TAMIS_SPREAD; layout <= (i == 0 ? TAMIS_BLOCKED : TAMIS_SPREAD); layout++)
            for (size_t p = 0; p < (harness_long() ? 4 : 3); p++) {
                struct cell c = {.policy = all[i],
                                 .layout = (tamis_layout)layout,
                                 .p = rates[p],
                                 .n = harness_slow() ? 5000 : 50000,
                                 .times = 1,
                                 .positives = harness_slow() ? 500 : 10000};
                struct result r = cell_measure(&c);
                cell_check(&c, &r);
                if (verbose())
                    printf("%-8s %-7s stated %-6g measured %.4g, deviation %.2g\n", c.policy->name,
                           layout_name(c.layout), c.p, r.rate, r.sigma);
            }
}

/* Vectors of a key or two, and low rates with few keys: here probes that are not quite independent
   show first. */
TEST(tiny_filters_at_low_rates)
{
    static const struct {
        uint64_t n;
        double p;
    } tiny[] = {{1, 1e-2}, {1, 1e-4}, {2, 1e-4}, {3, 1e-5}, {5, 1e-4}, {10, 1e-5}, {30, 1e-5}};
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++) {
        struct cell c = {.policy = &fixed,
                         .layout = TAMIS_SPREAD,
                         .p = tiny[i].p,
                         .n = tiny[i].n,
                         .times = 1,
                         .positives = harness_slow()   ? 20
                                      : harness_long() ? 2000
                                                       : 200};
        struct result r = cell_measure(&c);
        cell_check(&c, &r);
    }
}

/* Equal vectors, the first of them far too small: hundreds of vectors hold the rate. */
TEST(hundreds_of_vectors)
{
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        struct cell c = {.policy = &equal,
                         .layout = (tamis_layout)layout,
                         .p = 0.01,
                         .n = harness_slow() ? 2000 : 10000,
                         .times = harness_slow() ? 200 : 1000,
                         .positives = harness_slow() ? 20 : 200};
        struct result r = cell_measure(&c);
        cell_check(&c, &r);
        CHECK_MSG(r.vectors > c.times / 2, "%u vectors", r.vectors);
        CHECK_MSG(r.hashes <= 40, "%u probes", r.hashes);
    }
}

/* Expansion factors other than the default. */
TEST(expansion_factors)
{
    static const double factors[] = {1, 1.5, 2, 4};
    for (size_t i = 0; i < 4; i++)
        for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
            struct cell c = {.policy = &scalable,
                             .layout = (tamis_layout)layout,
                             .p = 0.01,
                             .n = 10000,
                             .times = factors[i] == 1 ? 40 : 1000,
                             .expansion = factors[i],
                             .positives = harness_slow() ? 20 : 400};
            struct result r = cell_measure(&c);
            cell_check(&c, &r);
        }
}

HARNESS_MAIN
