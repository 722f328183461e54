/* Golden catalogs: what was written once is read for ever. In catalog/, NAME.tamis with NAME.txt: in
 * each line the segments named when it was made ("-" for none), a tab, and the question, NAME=VALUE or
 * NAME!, several with tabs between them. In catalog-bad/, NAME.ERROR.tamis and the error to expect.
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

static void catalog_answer(const tamis_catalog *c, const char *asked, char *out)
{
    tamis_condition choices[8] = {0};
    tamis_digest digests[8];
    uint64_t found[8];
    char question[ROOM], *rest = question;
    const tamis_schema *s = tamis_catalog_schema(c);
    size_t n = 0, at = 0;
    strcpy(question, asked);
    for (char *pair; (pair = strsep(&rest, "\t"));) {
        char *equals = strchr(pair, '=');
        tamis_key value = {NULL, 0};
        if (equals) {
            *equals = 0;
            value = (tamis_key){equals + 1, strlen(equals + 1)};
        } else {
            pair[strlen(pair) - 1] = 0;
        }
        CHECK(tamis_schema_attribute(s, pair, &choices[n].attribute, NULL) == TAMIS_OK);
        digests[n] = tamis_schema_digest(s, choices[n].attribute, value);
        choices[n].keys = &digests[n];
        choices[n].n = 1;
        n++;
    }
    CHECK(tamis_catalog_ask(c, choices, n, found, NULL, NULL) == TAMIS_OK);
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

static void write_questions(const char *stem, const tamis_catalog *c, uint32_t p, uint64_t *rng)
{
    struct bytes text = {0};
    for (int q = 0; q < 40; q++) {
        char question[ROOM] = "", answer[ROOM], value[40];
        uint64_t mask = 1 + rng_next(rng) % ((UINT64_C(1) << p) - 1);
        for (uint32_t at = 0; at < p; at++) {
            if (!(mask >> at & 1))
                continue;
            tamis_key key = value_of(at, rng_next(rng), value);
            if (*question)
                strcat(question, "\t");
            sprintf(question + strlen(question), key.data ? "%s=%s" : "%s!", names[at], value);
        }
        catalog_answer(c, question, answer);
        bytes_write(&text, answer, strlen(answer));
        bytes_write(&text, "\t", 1);
        bytes_write(&text, question, strlen(question));
        bytes_write(&text, "\n", 1);
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
            CHECK(tamis_catalog_drop(w, i) == TAMIS_OK);
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

/* A byte changed, and all checksums of a catalog made right again. */
static void write_bad(const struct bytes *good, const char *name, uint64_t at, uint8_t by, bool fix)
{
    struct bytes bytes = {0};
    char stem[100];
    bytes_write(&bytes, good->data, good->len);
    uint8_t *data = bytes.data;
    data[at] = (uint8_t)(data[at] + by);
    uint64_t header = get_u64(data + 24), sections = BODY_AT + get_u64(data + 32);
    uint64_t sums = get_u64(data + sections + 24 * 4 + 8),
             n = get_u64(data + sections + 24 * 4 + 16);
    uint64_t tops = get_u64(data + sections + 24 * 5 + 8),
             m = get_u64(data + sections + 24 * 5 + 16);
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
    uint64_t table = golden_section(&good, 17), shapes = get_u64(good.data + 168);
    uint64_t strips = table + 40 * shapes, columns = strips + 16 * get_u64(good.data + 176);
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
        {"reserved.EFORMAT", 230, 1},
        {"combination.EFORMAT", 256, 128},
        {"type.EFORMAT", 256 + 24, 9},
        {"shape-relation.EFORMAT", table, 100},
        {"shape-probes.EFORMAT", table + 4, 100},
        {"shape-units.EFORMAT", table + 8, 1},
        {"shape-rate.EFORMAT", table + 31, 128},
        {"strip-shape.EFORMAT", strips, 100},
        {"strip-width.EFORMAT", strips + 4, 8},
        {"strip-reserved.EFORMAT", strips + 12, 1},
        {"column-segment.EFORMAT", columns, 200},
        {"tag-end.EFORMAT", ends, 200},
        {"gap.EFORMAT", good.len - 1, 1},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        write_bad(&good, bad[i].name, bad[i].at, bad[i].by, true);
    write_bad(&good, "flipped-strip.ECHECKSUM", get_u64(good.data + 24) + 5, 1, false);
    write_bad(&good, "flipped-sums.ECHECKSUM", golden_section(&good, 20), 1, false);
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
    write_bad_ones();
}

HARNESS_MAIN
