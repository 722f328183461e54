/* Golden catalogs: what was written once is read for ever. In catalog/, NAME.tamis with NAME.txt: in
 * each line the segments named when it was made ("-" for none), a tab, and the question, as ask_one
 * has it, several with tabs between them. In catalog-bad/, NAME.ERROR.tamis and the error to expect.
 *
 * With TAMIS_GOLDEN_WRITE=FOLDER it writes files that are not there yet, and changes none that are.
 */
#include "harness.h"

#include "base/bytes.h"
#include "catalog/catalog_bytes.h"
#include "golden.h"
#include "tamis/catalog.h"

#define KEY  ((const uint8_t *)"golden catalogs!")
#define ROOM 4000

/* ---- answers as text ------------------------------------------------------------------------- */

/* A question as conditions: keys of which one must be there, or each; or a range. */
struct asking {
    const tamis_schema *schema;
    tamis_condition conditions[32];
    tamis_digest keys[256];
    tamis_range ranges[8];
    size_t n, n_keys, n_ranges;
    uint32_t attribute;
    bool parts;
};

static void take_key(void *context, tamis_key key, bool part)
{
    struct asking *a = context;
    a->keys[a->n_keys++] = part ? tamis_schema_part(a->schema, a->attribute, key)
                                : tamis_schema_digest(a->schema, a->attribute, key);
    a->parts |= part;
}

static void ask_keys(struct asking *a, tamis_op op, tamis_key value)
{
    size_t first = a->n_keys;
    a->parts = false;
    tamis_need need =
        tamis_type_ask(tamis_schema_type(a->schema, a->attribute), op, value, take_key, a);
    CHECK(need != TAMIS_NEED_WRONG);
    for (size_t i = first; need != TAMIS_NEED_NONE && i < a->n_keys; i++) {
        size_t n = need == TAMIS_NEED_ALL ? 1 : a->n_keys - first;
        a->conditions[a->n++] = (tamis_condition){
            .attribute = a->attribute, .keys = &a->keys[i], .n = n, .parts = a->parts};
        if (need == TAMIS_NEED_ANY)
            break;
    }
}

static void ask_range(struct asking *a, char *text)
{
    tamis_type type = tamis_schema_type(a->schema, a->attribute);
    tamis_range *r = &a->ranges[a->n_ranges++];
    char *dots = strstr(text, "..");
    *dots = 0;
    CHECK(tamis_value_order(type, (tamis_key){text, strlen(text)}, &r->low));
    CHECK(tamis_value_order(type, (tamis_key){dots + 2, strlen(dots + 2)}, &r->high));
    a->conditions[a->n++] =
        (tamis_condition){.attribute = a->attribute, .ranges = r, .n_ranges = 1};
}

/* NAME=VALUE, NAME!, NAME/=NETWORK, NAME^=PREFIX, NAME~=PHRASE, NAME:=LOW..HIGH */
static void ask_one(struct asking *a, char *pair)
{
    char *equals = strchr(pair, '='), *end = equals ? equals : pair + strlen(pair) - 1;
    const char *op = equals && equals > pair ? strchr("/^~:", equals[-1]) : NULL;
    end[op ? -1 : 0] = 0;
    CHECK(tamis_schema_attribute(a->schema, pair, &a->attribute, NULL) == TAMIS_OK);
    tamis_key value = {equals ? equals + 1 : NULL, equals ? strlen(equals + 1) : 0};
    if (op && *op == ':')
        ask_range(a, equals + 1);
    else
        ask_keys(a,
                 !op          ? TAMIS_EQUAL
                 : *op == '/' ? TAMIS_NETWORK
                 : *op == '^' ? TAMIS_PREFIX
                              : TAMIS_PHRASE,
                 value);
}

static void catalog_answer(const tamis_catalog *c, const char *asked, char *out)
{
    struct asking a = {.schema = tamis_catalog_schema(c)};
    uint64_t found[8];
    char question[ROOM], *rest = question;
    size_t at = 0;
    strcpy(question, asked);
    for (char *pair; (pair = strsep(&rest, "\t"));)
        ask_one(&a, pair);
    CHECK(tamis_catalog_ask(c, a.conditions, a.n, found, NULL, NULL) == TAMIS_OK);
    strcpy(out, "-");
    for (uint64_t i = 0; i < tamis_catalog_segments(c); i++)
        if (found[i / 64] >> (i % 64) & 1)
            at += (size_t)sprintf(out + at, at ? ",%u" : "%u", (unsigned)i);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void check_good(const char *stem)
{
    char path[GOLDEN_PATH], line[ROOM], answer[ROOM];
    tamis_kind kind;
    tamis_catalog *c = NULL;
    tamis_reason reason = {0};
    unsigned n = 0;
    snprintf(path, sizeof path, "%s.tamis", stem);
    CHECK_MSG(tamis_file_verify(path, &reason) == TAMIS_OK, "%s", reason.text);
    CHECK(tamis_file_kind(path, &kind, &reason) == TAMIS_OK && kind == TAMIS_KIND_CATALOG);
    tamis_error e = tamis_catalog_open(&c, path, NULL, &reason);
    snprintf(path, sizeof path, "%s.txt", stem);
    FILE *file = fopen(path, "r");
    if (!CHECK_MSG(e == TAMIS_OK && file, "%s", reason.text))
        return;
    for (; fgets(line, sizeof line, file); n++) {
        line[strcspn(line, "\n")] = 0;
        char *asked = strchr(line, '\t');
        *asked++ = 0;
        catalog_answer(c, asked, answer);
        CHECK_MSG(strcmp(answer, line) == 0, "%s: %s is %s now", stem, line, answer);
    }
    CHECK(n >= 20);
    fclose(file);
    tamis_catalog_close(c);
}

static void check_bad(const char *stem)
{
    char path[GOLDEN_PATH];
    tamis_reason reason = {0};
    snprintf(path, sizeof path, "%s.tamis", stem);
    tamis_error e = tamis_file_verify(path, &reason);
    CHECK_MSG(strcmp(strrchr(stem, '.') + 1, tamis_error_name(e) + 6) == 0, "%s: %s (%s)", stem,
              tamis_error_name(e), reason.text);
}

TEST(golden_catalogs_answer_as_ever)
{
    unsigned n = golden_each("catalog", check_good);
    CHECK_MSG(n >= 6 || golden_folder(), "%u", n);
}

TEST(bad_catalogs_and_directories_are_refused)
{
    unsigned n = golden_each("catalog-bad", check_bad);
    CHECK_MSG(n >= 20 || golden_folder(), "%u", n);
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *const names[4] = {"ip", "user", "when", "n"};

/* A value that other files have too, or none. */
static tamis_key value_of(uint32_t attribute, uint64_t draw, char *text)
{
    uint32_t number = (uint32_t)(draw % 60);
    int len;
    if (draw % 23 == 0)
        return (tamis_key){NULL, 0};
    if (attribute == 2)
        len = sprintf(text, "2024-01-%02uT%02u:00:00+01:00", 1 + number % 28, number % 24);
    else if (attribute == 3)
        len = sprintf(text, "%s%u", number % 2 ? "0" : "", number);
    else
        len = sprintf(text, "%s%u", names[attribute], number);
    return (tamis_key){text, (size_t)len};
}

static void put_segments(tamis_catalog_writer *w, uint32_t p, uint32_t n, uint64_t *rng)
{
    tamis_gather *g = NULL;
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t records = rng_next(rng) % 5 ? 10 + rng_next(rng) % 4 : rng_next(rng) % 80;
        for (uint64_t j = 0; j < records; j++) {
            char text[4][40];
            tamis_key record[4];
            for (uint32_t at = 0; at < p; at++)
                record[at] = value_of(at, rng_next(rng), text[at]);
            CHECK(tamis_gather_add(g, record) == TAMIS_OK);
        }
        CHECK(tamis_catalog_put(w, g, &i, sizeof i, NULL) == TAMIS_OK);
    }
    tamis_gather_free(g);
}

static void write_question(struct bytes *text, const tamis_catalog *c, const char *question)
{
    char answer[ROOM], line[2 * ROOM];
    catalog_answer(c, question, answer);
    int len = snprintf(line, sizeof line, "%s\t%s\n", answer, question);
    bytes_write(text, line, (size_t)len);
}

static void write_questions(const char *stem, const tamis_catalog *c, uint32_t p, uint64_t *rng)
{
    struct bytes text = {0};
    for (int q = 0; q < 40; q++) {
        char question[ROOM] = "", value[40];
        uint64_t mask = 1 + rng_next(rng) % ((UINT64_C(1) << p) - 1);
        for (uint32_t at = 0; at < p; at++) {
            if (!(mask >> at & 1))
                continue;
            tamis_key key = value_of(at, rng_next(rng), value);
            if (*question)
                strcat(question, "\t");
            sprintf(question + strlen(question), key.data ? "%s=%s" : "%s!", names[at], value);
        }
        write_question(&text, c, question);
    }
    golden_write(stem, ".txt", text.data, text.len);
    bytes_free(&text);
}

static void write_catalog(const char *stem, tamis_catalog_options o, uint32_t segments, bool twice)
{
    static const tamis_attribute typed[4] = {{.name = "ip"},
                                             {.name = "user"},
                                             {.name = "when", .type = TAMIS_TIME},
                                             {.name = "n", .type = TAMIS_INT}};
    uint64_t rng = harness_seed() + segments;
    uint32_t p = (uint32_t)o.n_attributes;
    tamis_catalog_writer *w = NULL;
    tamis_catalog *c = NULL;
    o.attributes = typed;
    o.key = KEY;
    CHECK(tamis_catalog_create(&w, "new.tamis", &o, NULL) == TAMIS_OK);
    put_segments(w, p, segments, &rng);
    CHECK(tamis_catalog_commit(w, stem, strlen(stem), NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    if (twice) {
        CHECK(tamis_catalog_update(&w, "new.tamis", NULL, NULL, NULL) == TAMIS_OK);
        for (uint32_t i = 0; i < segments; i += 9)
            CHECK(tamis_catalog_drop(w, i, NULL) == TAMIS_OK);
        put_segments(w, p, 5, &rng);
        CHECK(tamis_catalog_commit(w, stem, strlen(stem), NULL) == TAMIS_OK);
        tamis_catalog_abandon(w);
    }
    struct bytes bytes = file_bytes("new.tamis");
    golden_write(stem, ".tamis", bytes.data, bytes.len);
    bytes_free(&bytes);
    CHECK(tamis_catalog_open(&c, "new.tamis", NULL, NULL) == TAMIS_OK);
    write_questions(stem, c, p, &rng);
    tamis_catalog_close(c);
}

/* ---- a catalog of every type ----------------------------------------------------------------- */

enum { TYPED = 7 };

static const tamis_attribute every[TYPED] = {
    {.name = "ip", .type = TAMIS_IP},      {.name = "path", .type = TAMIS_PATH},
    {.name = "line", .type = TAMIS_WORDS}, {.name = "user", .type = TAMIS_FOLD},
    {.name = "t", .type = TAMIS_TIME},     {.name = "d", .type = TAMIS_DEC, .bounds_only = true},
    {.name = "later", .type = TAMIS_INT}};

static tamis_key typed_value(uint32_t attribute, uint32_t near, uint64_t draw, char *text)
{
    static const char *const words[] = {"Error", "refused", "10.1.2.3", "a-b", "user@host", "x_1"};
    uint32_t x = (uint32_t)(draw >> 8) % 5, y = (uint32_t)(draw >> 16) % 7, z = near * 10 + y;
    const char *first = words[draw >> 24 & 3], *then = words[(draw >> 26) % 6];
    switch (attribute) {
    case 0:
        return (tamis_key){text, (size_t)(x ? sprintf(text, "10.%u.%u.%u", near, x, y)
                                            : sprintf(text, "2001:db8:%x::%x", near, y))};
    case 1:
        return (tamis_key){text, (size_t)sprintf(text, "/a%u/b%u/c%u", near, x, y)};
    case 2:
        return (tamis_key){text, (size_t)sprintf(text, "%s %s: n%u", first, then, z)};
    case 3:
        return (tamis_key){text, (size_t)sprintf(text, "%s%u", x % 2 ? "Ann" : "ANN", z)};
    case 4:
        return (tamis_key){text, (size_t)sprintf(text, "2024-01-%02uT0%u:00:00.5Z", 1 + near, x)};
    case 5:
        return (tamis_key){text, (size_t)sprintf(text, "-%u.%u25e1", near, y)};
    default:
        return (tamis_key){text, (size_t)sprintf(text, "%u", z)};
    }
}

/* Lists of up to two values; in the first segment of some too many for a combination. */
static void put_typed(tamis_catalog_writer *w, uint32_t p, uint32_t from, uint32_t to,
                      uint64_t *rng)
{
    tamis_gather *g = NULL;
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (uint32_t i = from; i < to; i++) {
        for (int j = 0; j < 30; j++) {
            char text[TYPED][70][64];
            tamis_key keys[TYPED][70];
            tamis_values record[TYPED];
            for (uint32_t at = 0; at < p; at++) {
                record[at] = (tamis_values){keys[at], (size_t)(rng_next(rng) % 3)};
                if (at == 0 && i == 3 && j == 0)
                    record[at].n = 65;
                for (size_t v = 0; v < record[at].n; v++)
                    keys[at][v] = typed_value(at, i, rng_next(rng), text[at][v]);
            }
            CHECK(tamis_gather_add_lists(g, record) == TAMIS_OK);
        }
        tamis_gather_text(g, 100000);
        CHECK(tamis_catalog_put(w, g, &i, sizeof i, NULL) == TAMIS_OK);
    }
    tamis_gather_free(g);
}

static void write_typed(const char *stem)
{
    static const char *const shapes[] = {"%s=%s",
                                         "ip/=10.%u.0.0/%u",
                                         "path^=/a%u/b%u",
                                         "line~=error %s",
                                         "t:=2024-01-%02u..2024-01-%02u",
                                         "d:=-%u..-%u",
                                         "later=%u%u",
                                         "line~=n%u%u",
                                         "ip/=2001:db8:%x::/%u"};
    static const char *const phrases[] = {"refused", "10.1.2.3", "a b", "USER@host", "host"};
    const uint64_t combos[] = {9};
    tamis_catalog_options o = {
        .attributes = every, .n_attributes = 6, .key = KEY, .combos = combos, .n_combos = 1};
    tamis_catalog_options more = {.attributes = every + 6, .n_attributes = 1};
    uint64_t rng = harness_seed();
    tamis_catalog_writer *w = NULL;
    tamis_catalog *c = NULL;
    CHECK(tamis_catalog_create(&w, "new.tamis", &o, NULL) == TAMIS_OK);
    put_typed(w, 6, 0, 8, &rng);
    CHECK(tamis_catalog_commit(w, NULL, 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(tamis_catalog_update(&w, "new.tamis", NULL, &more, NULL) == TAMIS_OK);
    put_typed(w, 7, 8, 12, &rng);
    CHECK(tamis_catalog_commit(w, NULL, 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    struct bytes bytes = file_bytes("new.tamis"), text = {0};
    golden_write(stem, ".tamis", bytes.data, bytes.len);
    CHECK(tamis_catalog_open(&c, "new.tamis", NULL, NULL) == TAMIS_OK);
    for (int q = 0; q < 240; q++) {
        char question[ROOM], value[64];
        const char *shape = shapes[q % 9];
        uint32_t x = (uint32_t)(rng_next(&rng) % 13), y = (uint32_t)(rng_next(&rng) % 8);
        uint32_t at = (uint32_t)(rng_next(&rng) % 4);
        if (q % 9 == 0) {
            typed_value(at, x, rng_next(&rng), value);
            int n = sprintf(question, shape, every[at].name, value);
            if (at == 0 && q % 2)
                sprintf(question + n, "\tuser=ann%u", x * 10 + y);
        } else if (q % 9 == 3) {
            sprintf(question, shape, phrases[y % 5]);
        } else {
            uint32_t first[] = {0, x, x, 0, 1 + x, 10 * x + 9, x, x, x};
            uint32_t second[] = {0, 4 + 4 * y, y, 0, 2 + x + y, 10 * x, y, y, 24 + 8 * y};
            sprintf(question, shape, first[q % 9], second[q % 9]);
        }
        write_question(&text, c, question);
    }
    golden_write(stem, ".txt", text.data, text.len);
    tamis_catalog_close(c);
    bytes_free(&bytes), bytes_free(&text);
}

/* A byte changed, and all checksums of a catalog made right again. */
static void write_bad(const struct bytes *good, const char *name, uint64_t at, uint8_t by, bool fix)
{
    struct bytes bytes = {0};
    char stem[100];
    bytes_write(&bytes, good->data, good->len);
    uint8_t *data = bytes.data;
    data[at] = (uint8_t)(data[at] + by);
    uint64_t header = get_u64(data + 24), sections = BODY_AT + get_u64(data + 32);
    uint64_t sums = get_u64(data + sections + 24 * 5 + 8),
             n = get_u64(data + sections + 24 * 5 + 16);
    uint64_t tops = get_u64(data + sections + 24 * 6 + 8),
             m = get_u64(data + sections + 24 * 6 + 16);
    for (uint64_t i = 0; fix && i < n / 8; i++) {
        uint64_t from = header + CATALOG_PAGE * i;
        put_u64(data + sums + 8 * i, hash_of(data + from, min_u64(CATALOG_PAGE, sums - from)));
    }
    for (uint64_t i = 0; fix && i < m / 8; i++)
        put_u64(data + tops + 8 * i, hash_of(data + sums + CATALOG_PAGE * i,
                                             min_u64(CATALOG_PAGE, n - CATALOG_PAGE * i)));
    if (fix && (at < 216 || at >= 224))
        put_u64(data + 216, hash_of(data + tops, m));
    if (fix)
        put_u64(data + header - 8, hash_of(data, header - 8));
    snprintf(stem, sizeof stem, "catalog-bad/%s", name);
    golden_write(stem, ".tamis", bytes.data, bytes.len);
    bytes_free(&bytes);
}

static void write_bad_ones(void)
{
    char path[GOLDEN_PATH];
    snprintf(path, sizeof path, "%s/catalog/three.tamis", golden_folder());
    struct bytes good = file_bytes(path);
    uint64_t table = golden_section(&good, 18), shapes = get_u64(good.data + 168);
    uint64_t strips = table + 40 * shapes,
             columns = strips + 16 * get_u64(good.data + 176) + 40 * get_u64(good.data + 224);
    uint64_t fronts = strips + 16 * get_u64(good.data + 176);
    uint64_t ends =
        columns + round_up(4 * get_u64(good.data + 184), 8) + 16 * get_u64(good.data + 160);
    const struct {
        const char *name;
        uint64_t at;
        uint8_t by;
    } bad[] = {
        {"attributes.EFORMAT", 128, 100},
        {"combos.EFORMAT", 132, 100},
        {"verifier.EFORMAT", 136, 255}, /* table */
        {"names-length.EFORMAT", 140, 8},
        {"rate.EFORMAT", 151, 128},
        {"expected.EFORMAT", 159, 1},
        {"segments.EFORMAT", 160, 1},
        {"many-segments.EFORMAT", 167, 1},
        {"shapes.EFORMAT", 168, 1},
        {"strips.EFORMAT", 176, 1},
        {"columns.EFORMAT", 184, 255},
        {"strips-length.EFORMAT", 192, 64},
        {"tags-length.EFORMAT", 200, 1},
        {"note-length.EFORMAT", 208, 1},
        {"tops.ECHECKSUM", 216, 1},
        {"fronts.EFORMAT", 224, 1},
        {"fronts-length.EFORMAT", 232, 64},
        {"reserved.EFORMAT", 250, 1},
        {"combination.EFORMAT", 256, 128},
        {"type.EFORMAT", 256 + 24, 9},
        {"shape-relation.EFORMAT", table, 100},
        {"shape-probes.EFORMAT", table + 4, 100},
        {"shape-units.EFORMAT", table + 8, 1},
        {"shape-rate.EFORMAT", table + 31, 128},
        {"strip-shape.EFORMAT", strips, 100},
        {"strip-width.EFORMAT", strips + 4, 8},
        {"strip-reserved.EFORMAT", strips + 12, 1},
        {"front-attribute.EFORMAT", fronts, 100},
        {"front-bits.EFORMAT", fronts + 4, 100},
        {"front-buckets.EFORMAT", fronts + 8, 200},
        {"front-reserved.EFORMAT", fronts + 12, 1},
        {"front-keys.EFORMAT", fronts + 16, 1},
        {"front-order.EFORMAT", golden_section(&good, 17) + 3, 30},
        {"column-segment.EFORMAT", columns, 200},
        {"tag-end.EFORMAT", ends, 200},
        {"gap.EFORMAT", good.len - 1, 1},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        write_bad(&good, bad[i].name, bad[i].at, bad[i].by, true);
    write_bad(&good, "flipped-strip.ECHECKSUM", get_u64(good.data + 24) + 5, 1, false);
    write_bad(&good, "flipped-sums.ECHECKSUM", golden_section(&good, 21), 1, false);
    golden_write("catalog-bad/cut.EFORMAT", ".tamis", good.data, good.len - 64);
    bytes_free(&good);
}

TEST(new_files_are_written_when_asked_for)
{
    uint64_t combos[2] = {3, 13};
    if (!golden_folder())
        return;
    write_catalog("catalog/one", (tamis_catalog_options){.n_attributes = 1}, 1, false);
    write_catalog("catalog/empty", (tamis_catalog_options){.n_attributes = 2}, 0, false);
    write_catalog("catalog/three", (tamis_catalog_options){.n_attributes = 3, .segments = 20}, 14,
                  false);
    write_catalog("catalog/updated", (tamis_catalog_options){.n_attributes = 3, .segments = 20}, 30,
                  true);
    write_catalog("catalog/four",
                  (tamis_catalog_options){
                      .n_attributes = 4, .combos = combos, .n_combos = 2, .hash = TAMIS_SIP},
                  11, false);
    write_catalog("catalog/unverified",
                  (tamis_catalog_options){
                      .n_attributes = 3, .verifier = TAMIS_VERIFIER_NONE, .hash = TAMIS_H3},
                  9, true);
    write_typed("catalog/typed");
    write_bad_ones();
}

HARNESS_MAIN
