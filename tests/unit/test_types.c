/*
 * Types of values: normal forms, keys, questions and order. What is asked for must be among what a value
 * gives whenever the value matches: shown by the table below, and by random values and questions.
 */
#include "harness.h"
#include "hash/types.h"
#include "tamis/catalog.h"

#include <arpa/inet.h>
#include <ctype.h>

static tamis_key key_of(const char *text)
{
    return (tamis_key){text, text ? strlen(text) : 0};
}

/* ---- keys as text ---------------------------------------------------------------------------- */

struct keys {
    char text[4096];
    unsigned n;
};

/* Parts in brackets; bytes that are not printed as hex. */
static void collect(void *context, tamis_key key, bool part)
{
    struct keys *k = context;
    size_t at = strlen(k->text);
    at += (size_t)sprintf(k->text + at, "%s%s", k->n ? " " : "", part ? "[" : "");
    for (size_t i = 0; i < key.len && at < sizeof k->text - 20; i++) {
        uint8_t c = ((const uint8_t *)key.data)[i];
        at += (size_t)sprintf(k->text + at, isgraph(c) ? "%c" : "%%%02x", c);
    }
    sprintf(k->text + at, "%s", part ? "]" : "");
    k->n++;
}

static const struct {
    tamis_type type;
    const char *value, *keys;
} gives[] = {
    {TAMIS_BYTES, "Ann", "Ann"},
    {TAMIS_INT, "007", "7"},
    {TAMIS_FOLD, " Ann", "%20ann"},
    {TAMIS_IP, "10.1.2.3", "[%04%18%0a%01%02] [%04%10%0a%01] [%04%08%0a] 10.1.2.3"},
    {TAMIS_IP, "::ffff:10.1.2.3", "[%04%18%0a%01%02] [%04%10%0a%01] [%04%08%0a] 10.1.2.3"},
    {TAMIS_IP, "2001:DB8::1",
     "[%06@%20%01%0d%b8%00%00%00%00] [%060%20%01%0d%b8%00%00] [%06%20%20%01%0d%b8] 2001:db8::1"},
    {TAMIS_IP, "10.1.2.300", "10.1.2.300"},
    {TAMIS_PATH, "/a/b.c", "[/a/] [/] /a/b.c"},
    {TAMIS_PATH, "a/", "[a/] a/"},
    {TAMIS_PATH, "", ""},
    {TAMIS_WORDS, "Connection refused: 10.1.2.3!",
     "[connection] [refused] [10.1.2.3] [10] [1] [2] [3]"},
    {TAMIS_WORDS, "a.b..c - d_1@x", "[a.b] [a] [b] [c] [d_1@x] [d_1] [x]"},
    {TAMIS_WORDS, "--", "--"},
};

/* A time in normal form is recognised as such, and nothing else is: with a fraction of zero the same
   time takes the long way. */
TEST(times_in_normal_form)
{
    static const char start[] = "2024-02-28T19:59:59Z", other[] = "0123456789-:TZ. ";
    char with[32], x[40], y[40];
    for (unsigned at = 0; at < 20; at++)
        for (unsigned next = 0; next < 20; next++)
            for (const char *c = other; *c; c++)
                for (const char *d = other; *d; d++) {
                    char text[sizeof start];
                    memcpy(text, start, sizeof text);
                    text[at] = *c;
                    text[next] = *d;
                    int len = sprintf(with, "%.19s.0%c", text, text[19]);
                    size_t n = tamis_value_normal(TAMIS_TIME, text, 20, x, sizeof x);
                    size_t m = tamis_value_normal(TAMIS_TIME, with, (size_t)len, y, sizeof y);
                    if (text[19] != 'Z' || text[16] != ':' || text[10] != 'T')
                        continue; /* a fraction would change what it is */
                    CHECK_MSG(n == m && memcmp(x, y, n) == 0, "%s: %.*s, not %.*s", text, (int)n, x,
                              (int)m, y);
                }
}

TEST(a_value_gives_its_keys)
{
    for (size_t i = 0; i < sizeof gives / sizeof *gives; i++) {
        struct keys k = {{0}, 0};
        tamis_type_keys(gives[i].type, key_of(gives[i].value), collect, &k);
        CHECK_MSG(strcmp(k.text, gives[i].keys) == 0, "%s gives %s", gives[i].value, k.text);
    }
    struct keys long_one = {{0}, 0};
    char text[600];
    memset(text, 'X', sizeof text);
    tamis_type_keys(TAMIS_WORDS, (tamis_key){text, sizeof text}, collect, &long_one);
    CHECK(strlen(long_one.text) == 257);
}

static const struct {
    tamis_type type;
    tamis_op op;
    const char *asked;
    tamis_need need;
    const char *keys;
} asks[] = {
    {TAMIS_IP, TAMIS_EQUAL, "::ffff:1.2.3.4", TAMIS_NEED_ANY, "1.2.3.4"},
    {TAMIS_IP, TAMIS_NETWORK, "10.1.128.0/17", TAMIS_NEED_ANY, "[%04%10%0a%01]"},
    {TAMIS_IP, TAMIS_NETWORK, "10.1.2.3/32", TAMIS_NEED_ANY, "10.1.2.3"},
    {TAMIS_IP, TAMIS_NETWORK, "10.1.2.3/31", TAMIS_NEED_ANY, "[%04%18%0a%01%02]"},
    {TAMIS_IP, TAMIS_NETWORK, "::ffff:10.1.2.3/112", TAMIS_NEED_ANY, "[%04%10%0a%01]"},
    {TAMIS_IP, TAMIS_NETWORK, "10.0.0.0/7", TAMIS_NEED_ANY, "[%04%08%0a] [%04%08%0b]"},
    {TAMIS_IP, TAMIS_NETWORK, "0.0.0.0/0", TAMIS_NEED_NONE, ""},
    {TAMIS_IP, TAMIS_NETWORK, "2001:db8::/63", TAMIS_NEED_ANY, "[%060%20%01%0d%b8%00%00]"},
    {TAMIS_IP, TAMIS_NETWORK, "2001::/16", TAMIS_NEED_NONE, ""},
    {TAMIS_IP, TAMIS_NETWORK, "10.0.0.0/33", TAMIS_NEED_WRONG, ""},
    {TAMIS_IP, TAMIS_NETWORK, "10.0.0/8", TAMIS_NEED_WRONG, ""},
    {TAMIS_IP, TAMIS_PREFIX, "10.", TAMIS_NEED_NONE, ""},
    {TAMIS_BYTES, TAMIS_NETWORK, "10.0.0.0/8", TAMIS_NEED_WRONG, ""},
    {TAMIS_PATH, TAMIS_PREFIX, "/admin/lo", TAMIS_NEED_ANY, "[/admin/]"},
    {TAMIS_PATH, TAMIS_PREFIX, "admin", TAMIS_NEED_NONE, ""},
    {TAMIS_BYTES, TAMIS_PREFIX, "/admin/", TAMIS_NEED_NONE, ""},
    {TAMIS_WORDS, TAMIS_PHRASE, "Two words", TAMIS_NEED_ALL, "[two] [words]"},
    {TAMIS_WORDS, TAMIS_PHRASE, "from 10.1.2.3.", TAMIS_NEED_ALL, "[from] [10.1.2.3]"},
    {TAMIS_WORDS, TAMIS_PHRASE, "...", TAMIS_NEED_WRONG, ""},
    {TAMIS_BYTES, TAMIS_PHRASE, "...", TAMIS_NEED_WRONG, ""},
    {TAMIS_BYTES, TAMIS_PHRASE, "word", TAMIS_NEED_NONE, ""},
    {TAMIS_WORDS, TAMIS_EQUAL, "a b", TAMIS_NEED_ALL, "[a] [b]"},
    {TAMIS_WORDS, TAMIS_EQUAL, "", TAMIS_NEED_ANY, ""},
    {TAMIS_FOLD, TAMIS_EQUAL, "ANN", TAMIS_NEED_ANY, "ann"},
};

TEST(a_question_needs_its_keys)
{
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        struct keys k = {{0}, 0};
        tamis_need need =
            tamis_type_ask(asks[i].type, asks[i].op, key_of(asks[i].asked), collect, &k);
        CHECK_MSG(need == asks[i].need && strcmp(k.text, asks[i].keys) == 0, "%s: %d, %s",
                  asks[i].asked, need, k.text);
    }
}

static const struct {
    tamis_type type;
    tamis_op op;
    const char *value, *asked;
    bool is;
} matches[] = {
    {TAMIS_IP, TAMIS_NETWORK, "10.1.200.3", "10.1.128.0/17", true},
    {TAMIS_IP, TAMIS_NETWORK, "10.1.100.3", "10.1.128.0/17", false},
    {TAMIS_IP, TAMIS_NETWORK, "\"::ffff:10.1.200.3\"", "10.1.128.0/17", true},
    {TAMIS_IP, TAMIS_NETWORK, "::1", "0.0.0.0/0", false},
    {TAMIS_IP, TAMIS_NETWORK, "1.2.3.4", "::/0", false},
    {TAMIS_IP, TAMIS_NETWORK, "2001:db8:0:1::7", "2001:db8::/63", true},
    {TAMIS_IP, TAMIS_NETWORK, "2001:db8:0:2::7", "2001:db8::/63", false},
    {TAMIS_IP, TAMIS_EQUAL, "2001:0DB8:0:0::7", "2001:db8::7", true},
    {TAMIS_PATH, TAMIS_PREFIX, "/admin/login", "/admin/lo", true},
    {TAMIS_PATH, TAMIS_PREFIX, "/admin", "/admin/", false},
    {TAMIS_FOLD, TAMIS_PREFIX, "ANN", "an", true},
    {TAMIS_BYTES, TAMIS_PREFIX, "ANN", "an", false},
    {TAMIS_FOLD, TAMIS_EQUAL, "ANN", "ann", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "Connection refused.", "connection REFUSED", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "connection was refused", "connection refused", false},
    {TAMIS_WORDS, TAMIS_PHRASE, "connections refused", "connection", false},
    {TAMIS_WORDS, TAMIS_PHRASE, "two-words", "two words", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "two words", "two-words", false},
    {TAMIS_WORDS, TAMIS_PHRASE, "10.1.2.3", "1.2", false},
    {TAMIS_WORDS, TAMIS_PHRASE, "10.1.2.3", "1 2", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "at 10.1.2.3:80", "10.1.2.3", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "at 10.1.2.3:80", "3:80", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "at 10.1.2.3:80", "10.1.2.3:80", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "at 10.1.2.3.4", "10.1.2.3", false},
    {TAMIS_WORDS, TAMIS_PHRASE, "http://10.1.2.3/x.html", "10.1.2.3", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "a a b", "a b", true},
    {TAMIS_WORDS, TAMIS_PHRASE, "a", "a b", false},
    {TAMIS_BYTES, TAMIS_PHRASE, "x refused y", "refused", true},
};

TEST(a_value_matches_or_not)
{
    for (size_t i = 0; i < sizeof matches / sizeof *matches; i++)
        CHECK_MSG(tamis_type_match(matches[i].type, matches[i].op, key_of(matches[i].value),
                                   key_of(matches[i].asked)) == matches[i].is,
                  "%s, %s", matches[i].value, matches[i].asked);
    tamis_key none = {NULL, 0};
    CHECK(tamis_type_match(TAMIS_INT, TAMIS_EQUAL, none, none));
    CHECK(!tamis_type_match(TAMIS_INT, TAMIS_EQUAL, none, key_of("")));
    CHECK(!tamis_type_match(TAMIS_BYTES, TAMIS_PREFIX, none, key_of("")));
}

/* ---- what matches has the keys --------------------------------------------------------------- */

struct found {
    struct keys keys;
    unsigned there, n;
};

static void look_up(void *context, tamis_key key, bool part)
{
    struct found *f = context;
    struct keys one = {{0}, 0};
    char text[4200], all[4200];
    collect(&one, key, part);
    snprintf(text, sizeof text, " %s ", one.text);
    snprintf(all, sizeof all, " %s ", f->keys.text);
    f->there += strstr(all, text) != NULL;
    f->n++;
}

static void draw(tamis_type type, tamis_op op, bool asked, char *out, uint64_t *rng)
{
    static const char *const pieces[] = {"a", "B", "1", ".", "/", " ", "-", "ab", ":", "a/b"};
    if (type == TAMIS_IP) {
        unsigned n = (unsigned)sprintf(
            out, "%s10.%u.%u.%u", rng_next(rng) % 4 ? "" : "::ffff:", (unsigned)(rng_next(rng) % 3),
            (unsigned)(rng_next(rng) % 3), (unsigned)(rng_next(rng) % 3));
        if (rng_next(rng) % 4 == 0)
            n = (unsigned)sprintf(out, "2001:db8:%x:%x::%x", (unsigned)(rng_next(rng) % 2),
                                  (unsigned)(rng_next(rng) % 2), (unsigned)(rng_next(rng) % 2));
        if (asked && op == TAMIS_NETWORK)
            sprintf(out + n, "/%u", (unsigned)(rng_next(rng) % 129));
        return;
    }
    *out = 0;
    for (uint64_t n = rng_next(rng) % (asked ? 4 : 9); n; n--)
        strcat(out, pieces[rng_next(rng) % 10]);
}

TEST(a_value_that_matches_gives_what_the_question_needs)
{
    uint64_t rng = harness_seed(), matched = 0;
    for (int i = 0; i < 400000; i++) {
        tamis_type type = (tamis_type)(rng_next(&rng) % TAMIS_TYPES);
        tamis_op op = (tamis_op)(rng_next(&rng) % 4);
        char value[200], asked[200];
        draw(type, op, false, value, &rng);
        draw(type, op, true, asked, &rng);
        if (!tamis_type_match(type, op, key_of(value), key_of(asked)))
            continue;
        struct found f = {.there = 0};
        tamis_type_keys(type, key_of(value), collect, &f.keys);
        tamis_need need = tamis_type_ask(type, op, key_of(asked), look_up, &f);
        CHECK_MSG(need == TAMIS_NEED_NONE || (need == TAMIS_NEED_ANY && f.there) ||
                      (need == TAMIS_NEED_ALL && f.n && f.there == f.n),
                  "%s, %s: %s, %u of %u", value, asked, f.keys.text, f.there, f.n);
        matched++;
    }
    CHECK(matched > 1000);
}

/* ---- order ----------------------------------------------------------------------------------- */

static const struct {
    tamis_type type;
    const char *below, *above; /* the same if equal */
} pairs[] = {
    {TAMIS_INT, "-10", "-9"},
    {TAMIS_INT, "-1", "0"},
    {TAMIS_INT, "9", "10"},
    {TAMIS_INT, "9223372036854775807", "9223372036854775808"},
    {TAMIS_INT, "99999999999999999998", "99999999999999999999"},
    {TAMIS_INT, "-99999999999999999999", "-99999999999999999998"},
    {TAMIS_DEC, "-1.5", "-1.25"},
    {TAMIS_DEC, "-0.5", "0"},
    {TAMIS_DEC, "0", "1e-30"},
    {TAMIS_DEC, "-1e-30", "0"},
    {TAMIS_DEC, "0.1", "0.11"},
    {TAMIS_DEC, "0.09", "0.1"},
    {TAMIS_DEC, "99.5", "1e2"},
    {TAMIS_DEC, "12345678901234567.8", "12345678901234567.9"},
    {TAMIS_DEC, "1e999", "1e1000"},
    {TAMIS_DEC, "-1e1000", "-1e999"},
    {TAMIS_TIME, "2024-01-31T23:59:59.5Z", "2024-01-31T23:59:59.55Z"},
    {TAMIS_TIME, "2024-01-31T23:59:59Z", "2024-01-31T23:59:59.5Z"},
    {TAMIS_TIME, "2024-02-01T00:30:00+01:00", "2024-01-31T23:30:01Z"},
    {TAMIS_TIME, "-1.5", "-1"},
};

TEST(values_are_ordered)
{
    bool is;
    tamis_order low, high;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        tamis_key x = key_of(pairs[i].below), y = key_of(pairs[i].above);
        CHECK_MSG(tamis_value_compare(pairs[i].type, x, y, &is) < 0 && is, "%s", pairs[i].below);
        CHECK(tamis_value_compare(pairs[i].type, y, x, &is) > 0 && is);
        CHECK(tamis_value_compare(pairs[i].type, x, x, &is) == 0 && is);
        CHECK(tamis_value_order(pairs[i].type, x, &low) &&
              tamis_value_order(pairs[i].type, y, &high));
        CHECK_MSG(tamis_order_compare(low, high) <= 0, "%s", pairs[i].below);
    }
    CHECK(!tamis_value_order(TAMIS_INT, key_of("x"), &low));
    CHECK(!tamis_value_order(TAMIS_BYTES, key_of("1"), &low));
    CHECK(!tamis_value_order(TAMIS_INT, key_of(NULL), &low));
    tamis_value_compare(TAMIS_DEC, key_of("1"), key_of("one"), &is);
    CHECK(!is);
    CHECK(tamis_value_order(TAMIS_TIME, key_of("1706741999.25"), &low) && low.whole == 1706741999 &&
          low.part == UINT64_C(1) << 62);
    CHECK(tamis_value_order(TAMIS_DEC, key_of("-2.75"), &low) && low.whole == -3);
}

TEST(order_is_never_turned_around)
{
    uint64_t rng = harness_seed();
    for (int i = 0; i < 200000; i++) {
        char text[2][64];
        tamis_order order[2];
        bool is;
        for (int j = 0; j < 2; j++) {
            int n = sprintf(text[j], "%s%u", rng_next(&rng) % 2 ? "-" : "",
                            (unsigned)(rng_next(&rng) % 30));
            n += sprintf(text[j] + n, ".%u", (unsigned)(rng_next(&rng) % 12));
            sprintf(text[j] + n, "e%d", (int)(rng_next(&rng) % 44) - 22);
            CHECK(tamis_value_order(TAMIS_DEC, key_of(text[j]), &order[j]));
        }
        int exact = tamis_value_compare(TAMIS_DEC, key_of(text[0]), key_of(text[1]), &is);
        int coarse = tamis_order_compare(order[0], order[1]);
        CHECK_MSG(is && (coarse == 0 || (coarse < 0) == (exact < 0)) && (exact || !coarse),
                  "%s %s: %d %d", text[0], text[1], exact, coarse);
        double x = strtod(text[0], NULL), y = strtod(text[1], NULL);
        CHECK((x < y) == (exact < 0) || x == y);
    }
}

/* A value with up to two bytes changed, removed or added. */
static void damage(char *text, const char *bytes, uint64_t *rng)
{
    for (uint64_t n = rng_next(rng) % 3; n; n--) {
        size_t len = strlen(text), at = rng_next(rng) % (len + 1);
        uint64_t how = rng_next(rng) % 3;
        char byte = bytes[rng_next(rng) % strlen(bytes)];
        if (how == 0 && at < len)
            text[at] = byte;
        else if (how == 1 && at < len)
            memmove(text + at, text + at + 1, len - at);
        else if (how == 2) {
            memmove(text + at + 1, text + at, len - at + 1);
            text[at] = byte;
        }
    }
}

TEST(a_plain_value_is_its_own_normal_form)
{
    uint64_t rng = harness_seed();
    unsigned plain[3] = {0}, near = 0;
    struct plain read = {0};
    char before[64] = "";
    for (int i = 0; i < HARNESS_TIMES(300000, 3000000); i++) {
        char text[64], other[80], normal[64];
        uint8_t bytes[4];
        tamis_order slow;
        unsigned r[4];
        for (int j = 0; j < 4; j++)
            r[j] = (unsigned)(rng_next(&rng) % (rng_next(&rng) % 2 ? 12 : 270));
        sprintf(text, "%u.%u.%u.%u", r[0], r[1], r[2], r[3]);
        damage(text, ".0129:/ ", &rng);
        bool is = plain_ip(text, strlen(text), &read);
        CHECK_MSG(is == (inet_pton(AF_INET, text, bytes) == 1), "%s", text);
        plain[0] += is;

        uint64_t number = rng_next(&rng) >> rng_next(&rng) % 64;
        sprintf(text, "%llu", (unsigned long long)number);
        damage(text, "0123456789-+/: ", &rng);
        if (plain_int(text, strlen(text), &read)) {
            sprintf(other, "%lld", strtoll(text, NULL, 10));
            CHECK_MSG(strcmp(text, other) == 0 && read.order.whole == strtoll(text, NULL, 10) &&
                          read.order.part == 0,
                      "%s", text);
            plain[1]++;
        }

        int n = sprintf(text, "%04u-%02u-%02uT%02u:%02u:%02u", (unsigned)(rng_next(&rng) % 10000),
                        (unsigned)(rng_next(&rng) % 14), (unsigned)(rng_next(&rng) % 31), r[0] % 25,
                        r[1] % 61, r[2] % 61);
        if (r[3] % 2)
            n += sprintf(text + n, ".%0*u", 1 + r[3] / 2 % 9, r[0] % 10);
        strcpy(text + n, "Z");
        if (r[2] % 2 && *before) /* in the minute of the last one */
            n = sprintf(text, "%.16s:%02uZ", before, r[1] % 62), near++;
        damage(text, "019.:-TZ ", &rng);
        if (plain_time(text, strlen(text), &read)) {
            strcpy(before, text);
            sprintf(other, "%.*s+00:00", (int)strlen(text) - 1, text);
            size_t len =
                tamis_value_normal(TAMIS_TIME, other, strlen(other), normal, sizeof normal);
            CHECK_MSG(len == strlen(text) && memcmp(text, normal, len) == 0, "%s", text);
            CHECK(tamis_value_order(TAMIS_TIME, key_of(other), &slow));
            CHECK_MSG(tamis_order_compare(read.order, slow) == 0, "%s", text);
            plain[2]++;
        }
    }
    CHECK_MSG(plain[0] > 10000 && plain[1] > 10000 && plain[2] > 10000 && near > 10000,
              "%u %u %u %u", plain[0], plain[1], plain[2], near);
}

TEST(types_have_names)
{
    tamis_type type;
    for (int i = 0; i < TAMIS_TYPES; i++)
        CHECK(tamis_type_named(tamis_type_name((tamis_type)i), &type) && (int)type == i);
    CHECK(!tamis_type_named("real", &type) && !tamis_type_name((tamis_type)TAMIS_TYPES));
    CHECK(tamis_type_ordered(TAMIS_TIME) && !tamis_type_ordered(TAMIS_IP));
}

HARNESS_MAIN
