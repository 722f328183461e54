/* Small promises of the header that no other test is about: what schemas, catalogs, directories and
 * saved followers say of themselves, and functions of the planner that are forms of others.
 */
#include "harness.h"
#include "histories.h"

#include <math.h>
#include <unistd.h>

#include "tamis/catalog.h"
#include "tamis/replica.h"
#include "plan/plan.h"

/* ---- schemas, gathering, catalogs ------------------------------------------------------------ */

enum { SEGMENTS = 5, RECORDS = 400 };

static const tamis_attribute attributes[] = {
    {.name = "ip"}, {.name = "port", .type = TAMIS_INT}, {.name = "at", .type = TAMIS_TIME}};

static void check_schema(const tamis_schema *s)
{
    uint32_t number = 9;
    tamis_reason reason = {0};
    CHECK(tamis_schema_attributes(s) == 3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(strcmp(tamis_schema_name(s, i), attributes[i].name) == 0);
        CHECK(tamis_schema_type(s, i) == attributes[i].type);
        CHECK(tamis_schema_attribute(s, attributes[i].name, &number, NULL) == TAMIS_OK);
        CHECK(number == i);
    }
    CHECK(tamis_schema_attribute(s, "user", &number, &reason) == TAMIS_EARG);
    CHECK_MSG(strstr(reason.text, "port") != NULL, "%s", reason.text);
    CHECK(tamis_schema_name(s, 3) == NULL);
    CHECK(tamis_schema_combo(s, 0) == 5 && tamis_schema_combo(s, 1) == 3);
    CHECK(tamis_schema_combo(s, 2) == 0);
    tamis_digest x = tamis_schema_digest(s, 1, (tamis_key){"007", 3});
    tamis_digest y = tamis_schema_digest(s, 1, (tamis_key){"+7", 2});
    tamis_digest other = tamis_schema_digest(s, 0, (tamis_key){"7", 1});
    CHECK(x.a == y.a && x.b == y.b && (x.a != other.a || x.b != other.b));
}

static void gather_some(tamis_gather *g, uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++) {
        char port[24];
        tamis_key record[3] = {{&i, sizeof i},
                               {port, (size_t)snprintf(port, sizeof port, "%u", (unsigned)i)},
                               {NULL, 0}};
        CHECK(tamis_gather_add(g, record) == TAMIS_OK);
    }
}

TEST(a_catalog_says_what_it_is)
{
    const char *path = "promises.tamis";
    const uint64_t combos[] = {5, 3};
    tamis_catalog_options o = {
        .attributes = attributes, .n_attributes = 3, .combos = combos, .n_combos = 2, .fpp = 0.002};
    tamis_catalog_writer *w;
    tamis_gather *g;
    tamis_catalog *c;
    tamis_catalog_facts facts;
    CHECK(tamis_catalog_create(&w, path, &o, NULL) == TAMIS_OK);
    check_schema(tamis_catalog_writer_schema(w));
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (uint64_t i = 0; i < SEGMENTS; i++) {
        CHECK(tamis_gather_bytes(g) == 0);
        gather_some(g, i * RECORDS, RECORDS);
        uint64_t once = tamis_gather_bytes(g);
        gather_some(g, i * RECORDS, RECORDS); /* nothing new */
        CHECK(once >= RECORDS * 3 * 16 && tamis_gather_bytes(g) == once);
        CHECK(tamis_gather_records(g) == 2 * RECORDS);
        if (i == 0) {
            tamis_gather_clear(g);
            CHECK(tamis_gather_records(g) == 0 && tamis_gather_bytes(g) == 0);
            gather_some(g, 0, RECORDS);
        }
        CHECK(tamis_catalog_put(w, g, NULL, 0, NULL) == TAMIS_OK);
    }
    CHECK(tamis_catalog_commit(w, "note", 4, NULL) == TAMIS_OK);
    tamis_gather_free(g);
    tamis_catalog_abandon(w);
    CHECK(tamis_catalog_open(&c, path, NULL, NULL) == TAMIS_OK);
    check_schema(tamis_catalog_schema(c));
    tamis_catalog_info(c, &facts);
    struct bytes bytes = file_bytes(path);
    CHECK(facts.attributes == 3 && facts.combos == 2 && facts.segments == SEGMENTS);
    CHECK(facts.records == (2 * SEGMENTS - 1) * RECORDS && facts.bytes == bytes.len);
    CHECK(facts.fpp == 0.002 && facts.has_key && facts.verifier == TAMIS_VERIFIER_FILTER);
    bytes_free(&bytes);
    for (uint64_t i = 0; i < SEGMENTS * RECORDS; i += 37) { /* after a rest as before */
        uint64_t found;
        tamis_digest d = tamis_schema_digest(tamis_catalog_schema(c), 0, (tamis_key){&i, sizeof i});
        tamis_condition choice = {.attribute = 0, .keys = &d, .n = 1};
        tamis_catalog_answer answer;
        CHECK(tamis_catalog_ask(c, &choice, 1, &found, &answer, NULL) == TAMIS_OK);
        CHECK(found >> (i / RECORDS) & 1);
        tamis_catalog_rest(c);
    }
    tamis_catalog_close(c);
    unlink(path);
}

static uint64_t items_of(const tamis_directory *d)
{
    tamis_directory_facts facts;
    tamis_directory_info(d, &facts);
    return facts.items;
}

TEST(a_directory_counts_the_keys_of_its_owners)
{
    tamis_directory *d;
    tamis_digest digests[300];
    CHECK(tamis_directory_new(&d, NULL, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < 300; i++)
        digests[i] = tamis_directory_digest(d, &i, sizeof i);
    CHECK(tamis_directory_put(d, "a", digests, 300, NULL) == TAMIS_OK);
    CHECK(tamis_directory_put(d, "b", digests, 0, NULL) == TAMIS_OK);
    CHECK(items_of(d) == 300);
    CHECK(tamis_directory_put(d, "b", digests, 20, NULL) == TAMIS_OK && items_of(d) == 320);
    CHECK(tamis_directory_put(d, "a", digests, 7, NULL) == TAMIS_OK);
    CHECK(items_of(d) == 27);
    CHECK(tamis_directory_drop(d, "a", NULL) == TAMIS_OK && items_of(d) == 20);
    tamis_directory_free(d);
}

/* ---- the limit of memory ------------------------------------------------------------------- */

/* Adds until the index is full, by one or by many; returns how many records there are. */
static uint64_t fill_index(tamis_records *x, uint64_t limit, size_t batch)
{
    tamis_digest digests[3 * 100];
    tamis_records_facts info;
    tamis_error e = TAMIS_OK;
    uint64_t n = 0;
    while (e == TAMIS_OK && CHECK(n < 100000)) {
        size_t done;
        for (uint64_t i = 0; i < 3 * batch; i++) {
            uint64_t value = n + i / 3;
            digests[i] = tamis_records_digest(x, i % 3, (tamis_key){&value, sizeof value});
        }
        e = tamis_records_add_many(x, digests, batch, NULL, &done);
        n += done;
        tamis_records_brief(x, &info);
        CHECK_MSG(info.set.bytes <= limit, "%llu bytes", (unsigned long long)info.set.bytes);
    }
    CHECK(e == TAMIS_ESPACE || (e == TAMIS_EFULL && info.set.growth <= TAMIS_DYNAMIC));
    for (uint64_t i = 0; i < n; i += 11) {
        tamis_key record[3] = {{&i, sizeof i}, {&i, sizeof i}, {&i, sizeof i}};
        CHECK(tamis_records_has(x, record, 0).maybe);
        CHECK(tamis_records_add(x, record, NULL) == TAMIS_OK); /* a member is welcome */
    }
    return n;
}

TEST(an_index_keeps_to_its_limit)
{
    static const uint8_t family[TAMIS_KEY_LEN] = "one family";
    const uint64_t limit = 1 << 18;
    for (tamis_growth g = TAMIS_FIXED; g <= TAMIS_FLEXIBLE; g++)
        for (unsigned kind = 0; kind < 6; kind++) {
            tamis_records_options o = {.attributes = attributes,
                                       .n_attributes = 3,
                                       .verifier = TAMIS_VERIFIER_NONE + kind % 3,
                                       .set.deletable = kind >= 3,
                                       .set.growth = g,
                                       .set.capacity = g <= TAMIS_DYNAMIC ? 9000 : 500,
                                       .set.fpp = 0.1,
                                       .set.key = family,
                                       .set.memory_limit = limit};
            uint64_t most[2] = {0};
            for (unsigned way = 0; way < 2; way++) {
                tamis_records *x;
                tamis_error e = tamis_records_new(&x, &o, NULL);
                CHECK(e == TAMIS_OK || e == TAMIS_ESPACE);
                if (e != TAMIS_OK)
                    continue;
                most[way] = fill_index(x, limit, way ? 100 : 1);
                tamis_records_free(x);
            }
            /* A batch ends as its records one by one. The clock of flexible ones sees a difference. */
            CHECK_MSG(most[0] == most[1] || g == TAMIS_FLEXIBLE, "growth %d kind %u: %llu, %llu", g,
                      kind, (unsigned long long)most[0], (unsigned long long)most[1]);
        }
}

/* ---- followers in files ---------------------------------------------------------------------- */

static uint64_t now;

static int to_follower(void *follower, const void *data, size_t len)
{
    return tamis_follower_take(follower, data, len, 0, NULL, NULL) != TAMIS_OK;
}

/* A new follower goes on where the saved one stopped: with the next delta, when it has heard. */
TEST(a_saved_follower_goes_on)
{
    const char *path = "follower.tamis";
    tamis_filter *f, *copy;
    tamis_origin *origin;
    tamis_follower *first, *second;
    tamis_follower_facts facts;
    tamis_reason reason = {0};
    tamis_follower_options o = {.clock = harness_clock, .clock_context = &now};
    now = 1000;
    CHECK(tamis_filter_new(&f, NULL, NULL) == TAMIS_OK);
    tamis_origin_options origin_options = {
        .owner = "x", .beat = 100, .clock = harness_clock, .clock_context = &now};
    CHECK(tamis_origin_new(&origin, f, &origin_options, NULL) == TAMIS_OK);
    CHECK(tamis_follower_new(&first, &o, NULL) == TAMIS_OK);
    CHECK(tamis_follower_new(&second, &o, NULL) == TAMIS_OK);
    CHECK(tamis_follower_save(first, path, &reason) == TAMIS_EKIND && reason.text[0]);
    CHECK(tamis_follower_load(first, path, 0, TAMIS_DELAY_UNKNOWN, &reason) == TAMIS_EIO);
    for (uint64_t i = 0; i < 100; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(origin, to_follower, first, NULL) == TAMIS_OK);
    CHECK(tamis_follower_save(first, path, NULL) == TAMIS_OK);
    CHECK(tamis_follower_load(second, path, UINT64_MAX, TAMIS_DELAY_UNKNOWN, NULL) == TAMIS_OK);
    CHECK(tamis_follower_freshness(second) == TAMIS_STALE);
    CHECK(tamis_origin_beat(origin, to_follower, second) == TAMIS_OK);
    CHECK(tamis_follower_freshness(second) == TAMIS_CURRENT);
    for (uint64_t i = 100; i < 200; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(origin, to_follower, second, NULL) == TAMIS_OK);
    tamis_follower_info(second, &facts);
    CHECK(facts.freshness == TAMIS_CURRENT && facts.version == 2 && !facts.needs_snapshot);
    CHECK(tamis_follower_filter(&copy, second, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < 200; i++)
        CHECK(tamis_filter_has(copy, &i, sizeof i));
    tamis_filter_free(copy);
    tamis_follower_free(first);
    tamis_follower_free(second);
    tamis_origin_free(origin);
    tamis_filter_free(f);
    unlink(path);
}

/* A change waits no longer than it may, though the clock was set back while it waited. */
TEST(a_clock_set_back_does_not_make_changes_wait)
{
    tamis_filter *f;
    tamis_origin *origin;
    tamis_follower *follower;
    uint64_t key = 1;
    now = 1000000;
    CHECK(tamis_filter_new(&f, NULL, NULL) == TAMIS_OK);
    tamis_origin_options o = {.owner = "x",
                              .targets = {.member_miss = -1, .max_age = 100},
                              .clock = harness_clock,
                              .clock_context = &now};
    CHECK(tamis_origin_new(&origin, f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_follower_new(&follower, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(origin, to_follower, follower, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
    CHECK(tamis_origin_due(origin) == TAMIS_DUE_NOT);
    now = 1000;
    CHECK(tamis_origin_due(origin) == TAMIS_DUE_NOT);
    now += 99;
    CHECK(tamis_origin_due(origin) == TAMIS_DUE_NOT);
    now += 1;
    CHECK(tamis_origin_due(origin) == TAMIS_DUE_AGE);
    CHECK(tamis_origin_publish(origin, to_follower, follower, NULL) == TAMIS_OK);
    CHECK(tamis_origin_due(origin) == TAMIS_DUE_NOT);
    tamis_follower_free(follower);
    tamis_origin_free(origin);
    tamis_filter_free(f);
}

/* ---- the planner ----------------------------------------------------------------------------- */

static bool near(double x, double y, double part)
{
    return fabs(x - y) <= part * fabs(y);
}

TEST(forms_of_one_formula_agree)
{
    static double sizes[500];
    for (uint64_t units = 8; units <= 8192; units *= 4)
        for (unsigned k = 1; k <= 20; k += 3) {
            double n = 40.0 * (double)units;
            uint64_t ones = 200 * units;
            CHECK(tamis_plan_rate_blocked(units, k, n) ==
                  tamis_plan_rate(TAMIS_BLOCKED, units, k, n));
            CHECK(plan_items_blocked(units, k, (double)ones) ==
                  plan_items(TAMIS_BLOCKED, units, k, ones));
        }
    CHECK(tamis_plan_sizes_uniform(sizes, 500) && tamis_plan_sizes_cumulate(sizes, 500));
    tamis_plan_rows best = tamis_plan_dynamic_best(sizes, 500, 0.01);
    tamis_plan_rows same = tamis_plan_dynamic_at(sizes, 500, 0.01, best.s);
    CHECK(same.s == best.s && same.c == best.c && same.m == best.m && same.bits == best.bits);
    for (uint64_t s = 1; s <= 500; s++)
        CHECK(tamis_plan_dynamic_at(sizes, 500, 0.01, s).bits >= best.bits);
    CHECK(tamis_plan_dynamic_at(sizes, 500, 0.01, 0).s == 0);
}

/* A stack of one vector is a vector, and of two that are alike says "maybe" if either does. */
TEST(a_stack_of_copies_is_its_vectors)
{
    const double m = 1 << 20, k = 7, n = 100000;
    uint64_t ones = (uint64_t)(m * -expm1(-k * n / m));
    struct plan_copy copy = {.layout = TAMIS_SPREAD,
                             .units = 1 << 20,
                             .k = 7,
                             .ones = ones,
                             .copy_ones = ones - 30000,
                             .both = ones - 40000};
    struct plan_copy two[2] = {copy, copy};
    tamis_plan_replica one = plan_replica_stack(two, 1, 4, 2, 3);
    tamis_plan_replica of = tamis_plan_replica_of(m, k, n, 40000 / m, 10000 / m, 4, 2, 3);
    CHECK(near(one.own, of.own, 1e-3) && near(one.positive, of.positive, 1e-3));
    CHECK(near(one.disagree, of.disagree, 1e-3) && near(one.weighted, of.weighted, 1e-3));
    CHECK(near(one.host, of.host, 1e-3));
    tamis_plan_replica both = plan_replica_stack(two, 2, 4, 2, 3);
    double fill = (double)ones / m, kept = (double)(ones - 40000) / m;
    double was = (double)(ones - 30000) / m;
    double own = 1 - (1 - pow(fill, k)) * (1 - pow(fill, k));
    double positive = 1 - (1 - pow(was, k)) * (1 - pow(was, k));
    CHECK(near(both.own, own, 1e-6) && near(both.positive, positive, 1e-6));
    /* No copy says so: neither has all bits in the copy, and one has them in the origin. With the
       chances of a vector of yes-yes, yes-no and no-yes, both "no" in the copies is (1 - was^k)^2. */
    double neither = 1 - pow(was, k), quiet = neither - (pow(fill, k) - pow(kept, k));
    CHECK(near(both.disagree, neither * neither - quiet * quiet, 1e-6));
}

HARNESS_MAIN
