/* Segments taken over from other catalogs, and what was gathered put together: the answers are those of
 * the catalogs they come from, and the bytes those of one gathering.
 */
#include "fault.h"
#include "harness.h"
#include "tamis/catalog.h"

#define KEY ((const uint8_t *)"0123456789abcdef")

/* Two values that must be one. */
#define SAME(x, y) CHECK((x) == (y))

enum { HOSTS = 24, RECORDS = 300, ATTRIBUTES = 4 };

static const tamis_attribute attributes[ATTRIBUTES] = {{.name = "ip", .type = TAMIS_IP},
                                                       {.name = "user"},
                                                       {.name = "line", .type = TAMIS_WORDS},
                                                       {.name = "n", .type = TAMIS_INT}};
static const uint64_t pair = 3;

static tamis_catalog_options options_of(const uint8_t *key)
{
    return (tamis_catalog_options){.attributes = attributes,
                                   .n_attributes = ATTRIBUTES,
                                   .combos = &pair,
                                   .n_combos = 1,
                                   .joinable = true,
                                   .fpp = 0.001,
                                   .segments = 1000,
                                   .key = key};
}

struct text {
    char of[ATTRIBUTES][40];
};

/* Record i of a host: few users, some addresses that other hosts have too. */
static void record_of(uint32_t host, uint32_t i, struct text *t, tamis_key *keys)
{
    uint32_t x = (host * 7919 + i) * 2654435761u;
    snprintf(t->of[0], sizeof t->of[0], "10.%u.%u.%u", x >> 8 & 3, x >> 16 & 255, i % 200);
    snprintf(t->of[1], sizeof t->of[1], "user%u", x >> 20 & 63);
    snprintf(t->of[2], sizeof t->of[2], "GET page%u", i);
    snprintf(t->of[3], sizeof t->of[3], "%u", 1000 * host + i);
    for (uint32_t a = 0; a < ATTRIBUTES; a++)
        keys[a] = (tamis_key){t->of[a], strlen(t->of[a])};
}

static void gather_some(tamis_gather *g, uint32_t host, uint32_t from, uint32_t to)
{
    struct text t;
    tamis_key keys[ATTRIBUTES];
    for (uint32_t i = from; i < to; i++) {
        record_of(host, i, &t, keys);
        SAME(tamis_gather_add(g, keys), TAMIS_OK);
    }
    tamis_gather_text(g, 70 * (to - from));
}

static void write_host(const char *path, uint32_t host, uint32_t n, const uint8_t *key)
{
    tamis_catalog_options o = options_of(key);
    tamis_catalog_writer *w;
    tamis_gather *g;
    char tag[16];
    SAME(tamis_catalog_create(&w, path, &o, NULL), TAMIS_OK);
    SAME(tamis_gather_new(&g, tamis_catalog_writer_schema(w)), TAMIS_OK);
    gather_some(g, host, 0, n);
    snprintf(tag, sizeof tag, "host%u", host);
    SAME(tamis_catalog_put(w, g, tag, strlen(tag), NULL), TAMIS_OK);
    SAME(tamis_catalog_commit(w, NULL, 0, NULL), TAMIS_OK);
    tamis_gather_free(g);
    tamis_catalog_abandon(w);
}

static void name_of(uint32_t host, char path[32])
{
    snprintf(path, 32, "host%u.tamis", host);
}

/* Does segment `at` of a catalog have a record with this address and user? */
static bool asks(const tamis_catalog *c, uint64_t at, const tamis_key *keys)
{
    const tamis_schema *s = tamis_catalog_schema(c);
    uint64_t bits[16] = {0};
    tamis_digest d[2] = {tamis_schema_digest(s, 0, keys[0]), tamis_schema_digest(s, 1, keys[1])};
    tamis_condition asked[2] = {{.attribute = 0, .keys = &d[0], .n = 1},
                                {.attribute = 1, .keys = &d[1], .n = 1}};
    SAME(tamis_catalog_ask(c, asked, 2, bits, NULL, NULL), TAMIS_OK);
    return bits[at / 64] >> at % 64 & 1;
}

static tamis_catalog *open_host(uint32_t host)
{
    char path[32];
    tamis_catalog *c;
    name_of(host, path);
    SAME(tamis_catalog_open(&c, path, NULL, NULL), TAMIS_OK);
    return c;
}

TEST(joined_segments_answer_as_they_did_apart)
{
    tamis_catalog_options o = options_of(KEY);
    tamis_catalog_writer *w;
    tamis_catalog *all, *again;
    uint64_t odd = 0xaaaaaa;
    SAME(tamis_catalog_create(&w, "all.tamis", &o, NULL), TAMIS_OK);
    for (uint32_t h = 0; h < HOSTS; h++) {
        char path[32];
        name_of(h, path);
        write_host(path, h, RECORDS - h, KEY);
        tamis_catalog *c = open_host(h);
        SAME(tamis_catalog_join(w, c, NULL, NULL), TAMIS_OK);
        tamis_catalog_close(c);
    }
    SAME(tamis_catalog_commit(w, NULL, 0, NULL), TAMIS_OK);
    tamis_catalog_abandon(w);
    SAME(tamis_file_verify("all.tamis", NULL), TAMIS_OK);
    SAME(tamis_catalog_open(&all, "all.tamis", NULL, NULL), TAMIS_OK);
    SAME(tamis_catalog_create(&w, "again.tamis", &o, NULL), TAMIS_OK);
    SAME(tamis_catalog_join(w, all, &odd, NULL), TAMIS_OK);
    SAME(tamis_catalog_commit(w, NULL, 0, NULL), TAMIS_OK);
    tamis_catalog_abandon(w);
    SAME(tamis_catalog_open(&again, "again.tamis", NULL, NULL), TAMIS_OK);
    SAME(tamis_catalog_segments(all), HOSTS);
    SAME(tamis_catalog_segments(again), HOSTS / 2);
    for (uint32_t h = 0; h < HOSTS; h++) {
        tamis_catalog *c = open_host(h);
        tamis_range x, y;
        size_t len, len_apart;
        CHECK(tamis_catalog_bounds(c, 0, 3, &x) && tamis_catalog_bounds(all, h, 3, &y));
        CHECK(memcmp(&x, &y, sizeof x) == 0);
        SAME(tamis_catalog_records(all, h), RECORDS - h);
        const void *tag = tamis_catalog_tag(all, h, &len);
        const void *apart = tamis_catalog_tag(c, 0, &len_apart);
        CHECK(len == len_apart && memcmp(tag, apart, len) == 0);
        for (uint32_t i = 0; i < RECORDS; i++) { /* the last ones are not there */
            struct text t;
            tamis_key keys[ATTRIBUTES];
            record_of(h, i, &t, keys);
            bool there = asks(c, 0, keys);
            CHECK(there || i >= RECORDS - h);
            SAME(asks(all, h, keys), there);
            if (h % 2)
                SAME(asks(again, h / 2, keys), there);
        }
        tamis_catalog_close(c);
    }
    tamis_catalog_close(all);
    tamis_catalog_close(again);
}

TEST(columns_of_hosts_lie_side_by_side)
{
    tamis_catalog_options o = options_of(KEY);
    tamis_catalog_writer *w;
    tamis_catalog *all;
    tamis_catalog_facts facts;
    SAME(tamis_catalog_create(&w, "all.tamis", &o, NULL), TAMIS_OK);
    for (uint32_t h = 0; h < HOSTS; h++) {
        char path[32];
        name_of(h, path);
        write_host(path, h, RECORDS, KEY);
        tamis_catalog *c = open_host(h);
        SAME(tamis_catalog_join(w, c, NULL, NULL), TAMIS_OK);
        tamis_catalog_close(c);
    }
    SAME(tamis_catalog_commit(w, NULL, 0, NULL), TAMIS_OK);
    tamis_catalog_abandon(w);
    SAME(tamis_catalog_open(&all, "all.tamis", NULL, NULL), TAMIS_OK);
    tamis_catalog_info(all, &facts);
    CHECK(facts.strips <= 3 * (ATTRIBUTES + 1)); /* one each would be 24 */
    tamis_catalog_close(all);
}

TEST(another_key_or_schema_is_not_joined)
{
    tamis_catalog_options o = options_of(KEY);
    tamis_catalog_writer *w;
    tamis_reason reason = {0};
    write_host("host0.tamis", 0, 10, (const uint8_t *)"another key 6789");
    tamis_catalog *c = open_host(0);
    SAME(tamis_catalog_create(&w, "all.tamis", &o, NULL), TAMIS_OK);
    SAME(tamis_catalog_join(w, c, NULL, &reason), TAMIS_EARG);
    tamis_catalog_abandon(w);
    tamis_catalog_close(c);
}

/* A part of the segments may have been taken over by then. */
TEST(after_a_failed_join_nothing_is_committed)
{
    struct fault fault;
    tamis_error joined = TAMIS_ENOMEM;
    uint64_t failures = 0;
    fault_init(&fault);
    remove("joined.tamis"); /* of an earlier run in this folder */
    write_host("host0.tamis", 0, 30, KEY);
    tamis_catalog *c = open_host(0);
    for (uint64_t at = 1; joined != TAMIS_OK; at++) {
        tamis_catalog_options o = options_of(KEY);
        tamis_catalog_writer *w;
        tamis_reason reason = {0};
        o.allocator = &fault.allocator;
        SAME(tamis_catalog_create(&w, "joined.tamis", &o, NULL), TAMIS_OK);
        fault_arm(&fault, at, false);
        joined = tamis_catalog_join(w, c, NULL, NULL);
        fault_arm(&fault, 0, false);
        SAME(tamis_catalog_commit(w, NULL, 0, &reason), joined);
        SAME(reason.text[0] == 0, joined == TAMIS_OK);
        SAME(access("joined.tamis", F_OK) == 0, joined == TAMIS_OK);
        failures += joined != TAMIS_OK;
        tamis_catalog_abandon(w);
        CHECK(fault_clean(&fault));
    }
    CHECK(failures > 2);
    tamis_catalog_close(c);
}

struct kept {
    uint8_t *data;
    size_t len;
};

static int keep(void *context, const void *data, size_t len)
{
    struct kept *k = context;
    CHECK(k->data == NULL);
    k->data = malloc(len);
    k->len = len;
    memcpy(k->data, data, len);
    return 0;
}

static struct kept file_of(const char *path)
{
    struct kept k = {malloc(1 << 20), 0};
    FILE *f = fopen(path, "rb");
    CHECK(f);
    k.len = f ? fread(k.data, 1, 1 << 20, f) : 0;
    if (f)
        fclose(f);
    return k;
}

/* Gathered in thirds: one here, one merged, one through bytes. */
TEST(gathered_apart_is_gathered_together)
{
    tamis_catalog_options o = options_of(KEY);
    tamis_catalog_writer *w;
    tamis_gather *g, *more;
    struct kept bytes = {0};
    tamis_reason reason = {0};
    write_host("host7.tamis", 7, RECORDS, KEY);
    SAME(tamis_catalog_create(&w, "apart.tamis", &o, NULL), TAMIS_OK);
    SAME(tamis_gather_new(&g, tamis_catalog_writer_schema(w)), TAMIS_OK);
    SAME(tamis_gather_new(&more, tamis_catalog_writer_schema(w)), TAMIS_OK);
    gather_some(more, 7, 0, 100);
    SAME(tamis_gather_encode(more, keep, &bytes), TAMIS_OK);
    tamis_gather_clear(more);
    gather_some(more, 7, 100, 200);
    SAME(tamis_gather_merge(g, more, 0, NULL), TAMIS_OK);
    SAME(tamis_gather_decode(g, bytes.data, bytes.len, NULL), TAMIS_OK);
    gather_some(g, 7, 200, RECORDS);
    SAME(tamis_gather_records(g), RECORDS);
    SAME(tamis_catalog_put(w, g, "host7", 5, NULL), TAMIS_OK);
    SAME(tamis_catalog_commit(w, NULL, 0, NULL), TAMIS_OK);
    struct kept x = file_of("host7.tamis"), y = file_of("apart.tamis");
    SAME(x.len, y.len);
    CHECK(memcmp(x.data, y.data, x.len) == 0);
    for (size_t i = 0; i < bytes.len; i += 1 + bytes.len / 200) { /* damaged bytes are refused */
        bytes.data[i] ^= 1;
        SAME(tamis_gather_decode(more, bytes.data, bytes.len, &reason), TAMIS_EFORMAT);
        bytes.data[i] ^= 1;
        SAME(tamis_gather_decode(more, bytes.data, i, &reason), TAMIS_EFORMAT);
    }
    free(x.data);
    free(y.data);
    free(bytes.data);
    tamis_gather_free(g);
    tamis_gather_free(more);
    tamis_catalog_abandon(w);
}

TEST(what_is_left_out_may_be_anything)
{
    tamis_catalog_options o = options_of(KEY);
    tamis_catalog_writer *w;
    tamis_gather *g, *from;
    tamis_catalog *c;
    struct text t;
    tamis_key keys[ATTRIBUTES];
    SAME(tamis_catalog_create(&w, "part.tamis", &o, NULL), TAMIS_OK);
    SAME(tamis_gather_new(&g, tamis_catalog_writer_schema(w)), TAMIS_OK);
    SAME(tamis_gather_new(&from, tamis_catalog_writer_schema(w)), TAMIS_OK);
    gather_some(from, 1, 0, RECORDS);
    SAME(tamis_gather_merge(g, from, 4, NULL), TAMIS_OK);
    SAME(tamis_catalog_put(w, g, "x", 1, NULL), TAMIS_OK);
    SAME(tamis_catalog_commit(w, NULL, 0, NULL), TAMIS_OK);
    SAME(tamis_catalog_open(&c, "part.tamis", NULL, NULL), TAMIS_OK);
    record_of(1, 5, &t, keys);
    tamis_digest word = tamis_schema_part(tamis_catalog_schema(c), 2, (tamis_key){"nowhere", 7});
    tamis_condition asked = {.attribute = 2, .keys = &word, .n = 1, .parts = true};
    uint64_t bits = 0;
    SAME(tamis_catalog_ask(c, &asked, 1, &bits, NULL, NULL), TAMIS_OK);
    SAME(bits, 1);
    CHECK(asks(c, 0, keys));
    keys[0] = (tamis_key){"192.0.2.99", 10};
    CHECK(!asks(c, 0, keys));
    tamis_catalog_close(c);
    tamis_gather_free(g);
    tamis_gather_free(from);
    tamis_catalog_abandon(w);
}

/* A catalog with the family and attributes of another, and a segment of which the bounds alone are known. */
TEST(bounds_alone_are_candidates_within_them)
{
    tamis_catalog_writer *w;
    tamis_gather *g;
    tamis_catalog *c, *gap;
    struct text t;
    tamis_key keys[ATTRIBUTES];
    uint64_t bits = 0;
    write_host("host3.tamis", 3, RECORDS, KEY);
    c = open_host(3);
    tamis_catalog_options o = {.like = tamis_catalog_schema(c), .joinable = true};
    SAME(tamis_catalog_create(&w, "gap.tamis", &o, NULL), TAMIS_OK);
    CHECK(tamis_schema_alike(tamis_catalog_writer_schema(w), tamis_catalog_schema(c)));
    SAME(tamis_gather_new(&g, tamis_catalog_writer_schema(w)), TAMIS_OK);
    SAME(tamis_gather_bounds(g, c, 0, NULL), TAMIS_OK);
    SAME(tamis_gather_bounds(g, c, 1, NULL), TAMIS_EARG);
    SAME(tamis_catalog_put(w, g, "gap", 3, NULL), TAMIS_OK);
    SAME(tamis_catalog_commit(w, NULL, 0, NULL), TAMIS_OK);
    SAME(tamis_catalog_open(&gap, "gap.tamis", NULL, NULL), TAMIS_OK);
    record_of(99, 5, &t, keys);
    CHECK(asks(gap, 0, keys));
    for (int inside = 0; inside < 2; inside++) {
        tamis_range r = {{inside ? 3100 : 9000, 0}, {inside ? 3200 : 9999, 0}};
        tamis_condition asked = {.attribute = 3, .ranges = &r, .n_ranges = 1};
        CHECK(tamis_value_order(TAMIS_INT, (tamis_key){inside ? "3100" : "9000", 4}, &r.low));
        CHECK(tamis_value_order(TAMIS_INT, (tamis_key){inside ? "3200" : "9999", 4}, &r.high));
        bits = 0;
        SAME(tamis_catalog_ask(gap, &asked, 1, &bits, NULL, NULL), TAMIS_OK);
        SAME(bits, (uint64_t)inside);
    }
    tamis_catalog_close(gap);
    tamis_catalog_close(c);
    tamis_gather_free(g);
    tamis_catalog_abandon(w);
}

HARNESS_MAIN
