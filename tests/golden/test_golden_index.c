/* Golden indexes: what was written once is read for ever. In index/, NAME.tamis with NAME.txt ("maybe
 * QUESTION" or "no QUESTION", as asked when it was made; a question is NAME=VALUE or NAME!, several
 * with tabs between them) and NAME.key where the family key was left out. In index-bad/,
 * NAME.ERROR.tamis and the error to expect.
 *
 * With TAMIS_GOLDEN_WRITE=FOLDER it writes files that are not there yet, and changes none that are.
 */
#include "harness.h"
#include "worlds.h"

#include "base/bytes.h"
#include "format/format.h"
#include "golden.h"
#include "tamis/records.h"

/* ---- reading --------------------------------------------------------------------------------- */

static bool ask(const tamis_records *x, char *question)
{
    tamis_key values[TAMIS_ATTRIBUTES_MAX] = {{NULL, 0}};
    uint64_t mask = 0;
    char *rest = question;
    for (char *pair; (pair = strsep(&rest, "\t"));) {
        char *equals = strchr(pair, '=');
        uint32_t number;
        if (equals)
            *equals = 0;
        else
            pair[strlen(pair) - 1] = 0;
        if (!CHECK(tamis_records_attribute(x, pair, &number, NULL) == TAMIS_OK))
            return false;
        if (equals)
            values[number] = (tamis_key){equals + 1, strlen(equals + 1)};
        mask |= UINT64_C(1) << number;
    }
    return tamis_records_has(x, values, mask).maybe;
}

static bool has(const struct golden *of, char *question)
{
    return ask(of->index, question);
}

static void check_good(const char *stem)
{
    golden_is_read(stem, TAMIS_KIND_RECORDS, has, 20);
}

TEST(good_indexes_are_read)
{
    CHECK(golden_each("index", check_good) >= 20);
}

static void check_bad(const char *stem)
{
    golden_is_refused(stem, TAMIS_KIND_RECORDS);
}

TEST(bad_indexes_are_refused)
{
    CHECK(golden_each("index-bad", check_bad) >= 15);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_index(const char *name, const tamis_records *x, unsigned flags)
{
    struct bytes bytes = bytes_of_index(x, flags);
    golden_write(name, ".tamis", bytes.data, bytes.len);
    bytes_free(&bytes);
}

static void write_answer(struct bytes *text, const tamis_records *x, const char *question)
{
    char asked[2000], line[2100];
    strcpy(asked, question);
    int n = snprintf(line, sizeof line, "%s %s\n", ask(x, asked) ? "maybe" : "no", question);
    bytes_write(text, line, (size_t)n);
}

/* Some of a record's values as a question. */
static void question_of(const struct world *w, uint32_t record, uint64_t mask, char *out)
{
    char text[16];
    *out = 0;
    for (uint32_t i = 0; i < w->p; i++) {
        if (!(mask >> i & 1))
            continue;
        tamis_key key = world_value(w->value[record][i], text);
        out += sprintf(out, "%s%s%s%.*s", mask & ((UINT64_C(1) << i) - 1) ? "\t" : "", w->names[i],
                       key.data ? "=" : "!", (int)key.len, key.data ? (const char *)key.data : "");
    }
}

/* Every record by all of its attributes, by one of them, and by combinations. */
static void write_answers(const char *name, const struct world *w, const tamis_records *x)
{
    struct bytes text = {0};
    char question[2000];
    uint64_t every = UINT64_MAX >> (TAMIS_ATTRIBUTES_MAX - w->p);
    for (uint32_t r = 0; r < w->n; r++) {
        uint64_t combo = tamis_records_combo(x, r % 3), one = UINT64_C(1) << r % w->p;
        uint64_t masks[] = {every, one, combo ? combo : every & ~one};
        for (unsigned i = 0; i < 3; i++)
            if (masks[i]) {
                question_of(w, r, masks[i], question);
                write_answer(&text, x, question);
            }
    }
    golden_write(name, ".txt", text.data, text.len);
    bytes_free(&text);
}

/* Worth keeping: small, with something in it, pending removals and layers where there can be. */
static double score_of(const tamis_records *x)
{
    tamis_records_facts info;
    tamis_records_info(x, &info);
    if (tamis_records_encoded_size(x, 0) > 9000 || info.set.items < 10)
        return -1;
    return (info.set.pending > 3 ? 3 : (double)info.set.pending) + (info.layers > 1) +
           (info.layers > 2) + (info.attributes > 1) + (info.combos > 0);
}

/* Where the class of a world is in its options. */
static bool of_class(const struct world *w, unsigned class)
{
    const tamis_records_options *o = &w->options;
    return o->verifier == 1 + class % 3 && o->set.deletable == (class / 3 % 2 == 1) &&
           (o->set.layout == TAMIS_BLOCKED) == (class / 6 % 2 == 1) && w->n >= 20 && w->p <= 20;
}

static void write_class(unsigned class)
{
    static struct world w, best;
    uint64_t best_seed = 0;
    double best_score = -1;
    for (uint64_t seed = 1; seed < 4000; seed++) {
        uint64_t rng = seed;
        uint32_t copies[RECORDS] = {0};
        world_draw(&w, &rng, class / 3 % 2);
        if (!of_class(&w, class))
            continue;
        tamis_records *x = world_start(&w);
        world_steps(&w, x, &rng, copies, 80);
        double score = score_of(x) + (w.options.value == 1 + class / 12 % 3 ? 4 : 0);
        if (score > best_score)
            best_score = score, best_seed = seed;
        tamis_records_free(x);
        world_free(&w);
    }
    uint64_t rng = best_seed;
    uint32_t copies[RECORDS] = {0};
    char name[120], part[140];
    world_draw(&best, &rng, class / 3 % 2);
    tamis_records *x = world_start(&best);
    world_steps(&best, x, &rng, copies, 80);
    static const char *const verifiers[] = {"none", "table", "filter"};
    static const char *const values[] = {"mixed", "basic", "attenuated"};
    snprintf(name, sizeof name, "index/%s-%s%s%s", verifiers[class % 3],
             class / 6 % 2 ? "blocked" : "spread", class / 3 % 2 ? "-deletable" : "",
             class % 3 == 0 ? "" : "-");
    if (class % 3)
        strcat(name, values[best.options.value - 1]);
    write_index(name, x, 0);
    write_answers(name, &best, x);
    if (class % 8 == 4) {
        snprintf(part, sizeof part, "%s-no-key", name);
        write_index(part, x, TAMIS_SAVE_NO_KEY);
        write_answers(part, &best, x);
        golden_write(part, ".key", best.key, TAMIS_KEY_LEN);
    }
    if (class / 3 % 2 && class % 4 == 3) {
        snprintf(part, sizeof part, "%s-bits-only", name);
        write_index(part, x, TAMIS_SAVE_BITS_ONLY);
        write_answers(part, &best, x);
    }
    tamis_records_free(x);
    world_free(&best);
}

/* Numbers and times: asked as they were written, and otherwise. */
static void write_typed(void)
{
    static const tamis_attribute attributes[] = {{.name = "n", .type = TAMIS_INT, .distinct = 0},
                                                 {.name = "d", .type = TAMIS_DEC, .distinct = 0},
                                                 {.name = "t", .type = TAMIS_TIME, .distinct = 0},
                                                 {.name = "s", .type = TAMIS_BYTES, .distinct = 0}};
    static const char *const records[][4] = {
        {"07", "1.50", "2024-01-31T23:59:59.50+01:00", "07"},
        {"-0", "-0.0", "1706741999", "x"},
        {" +12 ", "1e3", "1969-12-31 23:59:58,250", "\"q\""},
        {"\"7\"", ".5", "-1.75", ""},
        {"no number", "1e99999999999999999", "2024-02-30", "z"},
        {"123456789012345678901234567890", "00120.00", "0000-01-01", "z"},
        {"8", "-15e-1", "20240131T225959.5Z", "z"},
        {"9", "1.", "2016-12-31T23:59:60Z", "z"}};
    static const char *const questions[] = {"n=7",
                                            "n=007",
                                            "n=-0",
                                            "n=0",
                                            "n=12",
                                            "n=+12",
                                            "n=no number",
                                            "n= no number",
                                            "n=8.0",
                                            "n=123456789012345678901234567890",
                                            "d=1.5",
                                            "d=15e-1",
                                            "d=0",
                                            "d=1000",
                                            "d=-0",
                                            "d=0.5",
                                            "d=1e99999999999999999",
                                            "d=120",
                                            "d=12e1",
                                            "d=1",
                                            "d=-1.5",
                                            "d=1.5\tn=7",
                                            "d=1.5\tn=0",
                                            "t=2024-01-31T22:59:59.5Z",
                                            "t=1706741999.5",
                                            "t=1706741999",
                                            "t=2024-01-31T22:59:59Z",
                                            "t=1969-12-31T23:59:58.25Z",
                                            "t=-1.750",
                                            "t=2024-02-30",
                                            "t=0000-01-01T00:00:00Z",
                                            "t=2017-01-01",
                                            "t=2024-02-29",
                                            "s=07",
                                            "s=7",
                                            "s=x",
                                            "s=q",
                                            "s=\"q\"",
                                            "s=",
                                            "s!",
                                            "n!",
                                            "s=z\tn=8",
                                            "s=z\tn=7",
                                            "n=7\td=5e-1\tt=1969-12-31T23:59:58.25Z\ts="};
    uint8_t key[TAMIS_KEY_LEN] = "the key of typed";
    tamis_records_options o = {.attributes = attributes,
                               .n_attributes = 4,
                               .combos = (uint64_t[]){3, 9},
                               .n_combos = 2,
                               .verifier = TAMIS_VERIFIER_TABLE,
                               .set.fpp = 1e-4,
                               .set.capacity = 8,
                               .set.hash = TAMIS_SIP,
                               .set.key = key};
    struct bytes text = {0};
    tamis_records *x;
    CHECK(tamis_records_new(&x, &o, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < sizeof records / sizeof *records; i++) {
        tamis_key record[4];
        for (unsigned j = 0; j < 4; j++)
            record[j] = (tamis_key){records[i][j], strlen(records[i][j])};
        CHECK(tamis_records_add(x, record, NULL) == TAMIS_OK);
    }
    for (unsigned i = 0; i < sizeof questions / sizeof *questions; i++)
        write_answer(&text, x, questions[i]);
    write_index("index/typed", x, 0);
    golden_write("index/typed", ".txt", text.data, text.len);
    bytes_free(&text);
    tamis_records_free(x);
}

/* Has its first table two values? */
static bool two_values(const struct bytes *bytes)
{
    struct container c;
    struct head head;
    uint64_t len;
    return set_open(&c, &head, KIND_INDEX, bytes->data, bytes->len, NULL) == TAMIS_OK &&
           golden_section(bytes, SECTION_TABLE) &&
           container_find(&c, SECTION_TABLE, head.digests, &len) && len >= 2 * TABLE_PAIR;
}

/* A deletable index with tables, pending removals and large counters. */
static struct bytes rich_index(uint32_t *attributes, uint32_t *verifiers)
{
    static struct world w;
    for (uint64_t seed = 1;; seed++) {
        uint64_t rng = seed;
        uint32_t copies[RECORDS] = {0};
        world_draw(&w, &rng, true);
        tamis_records *x = world_start(&w);
        world_steps(&w, x, &rng, copies, 120);
        struct bytes bytes = bytes_of_index(x, 0);
        bool tables = w.options.verifier == TAMIS_VERIFIER_TABLE;
        *attributes = x->set.stack->form->attributes, *verifiers = x->set.stack->form->verifiers;
        tamis_records_free(x);
        world_free(&w);
        if (tables && bytes.len < 9000 && *attributes > 1 && *verifiers > 1 &&
            get_u64(bytes.data + 352) >= 2 && get_u32(bytes.data + 332) > 1 &&
            golden_section(&bytes, SECTION_ESCAPES) && two_values(&bytes))
            return bytes;
        bytes_free(&bytes);
    }
}

static void write_bad_ones(void)
{
    uint32_t p, v;
    struct bytes good = rich_index(&p, &v);
    uint64_t lists = 416 + 8 * v, names = lists + 16 * p, n = get_u32(good.data + 332);
    uint64_t layers = names + round_up(get_u64(good.data + 400), 8), parts = layers + 64 * n;
    const struct {
        const char *name;
        uint64_t at;
        uint8_t by;
    } bad[] = {
        {"no-attributes.EFORMAT", 384, (uint8_t)-p},
        {"many-attributes.EFORMAT", 384, 64},
        {"verifiers.EFORMAT", 388, 255},
        {"verifier.EFORMAT", 392, 9},
        {"value.EFORMAT", 396, 9},
        {"names-length.EFORMAT", 400, 1},
        {"reserved.EFORMAT", 408, 1},
        {"whole-mask.EFORMAT", 416, 255},
        {"combination.EFORMAT", 416 + 8 + 7, 128},
        {"distinct.EFORMAT", lists + 7, 1},
        {"type.EFORMAT", lists + 8, 9},
        {"name-empty.EFORMAT", names, (uint8_t)-good.data[names]},
        {"name-twice.EFORMAT", names + 4, 255},
        {"window.EFORMAT", 128, (uint8_t)(5 - good.data[128])},
        {"unique.EFORMAT", 136, 2},
        {"matrix.EFORMAT", 344, 1},
        {"layers.EFORMAT", 332, 1},
        {"layer-id.EFORMAT", layers + 3, 1},
        {"layer-count.EFORMAT", layers + 24, 1},
        {"layer-reserved.EFORMAT", layers + 50, 1},
        {"probes.EFORMAT", parts + 16, 100},
        {"units.EFORMAT", parts + 8 + 4, 100},
        {"ones.EFORMAT", golden_section(&good, SECTION_ONES), 1},
        {"table-units.EFORMAT", parts + 88 * (uint64_t)p + 8, 8},
        {"table-size.EFORMAT", parts + 88 * (uint64_t)p + 32, 1},
        {"counters.EFORMAT", golden_section(&good, SECTION_COUNTERS), 16},
        {"large-counters.EFORMAT", golden_section(&good, SECTION_ESCAPES), 1},
        {"removals-hide.EFORMAT", golden_section(&good, SECTION_PENDING) + 16 * p + 8, 1},
        {"removals-copies.EFORMAT", golden_section(&good, SECTION_PENDING) + 16 * p, 1},
        {"candidates.EFORMAT", golden_section(&good, SECTION_CANDIDATES) + 1, 1},
        {"table-copies.EFORMAT", golden_section(&good, SECTION_TABLE) + 8, 1},
        {"gap.EFORMAT", golden_section(&good, SECTION_PENDING) - 1, 1},
        {"filter.EKIND", 12, 255},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        golden_write_bad(&good, "index-bad", bad[i].name, bad[i].at, bad[i].by, true);
    uint64_t table = golden_section(&good, SECTION_TABLE);
    uint64_t first = get_u64(good.data + table), second = get_u64(good.data + table + TABLE_PAIR);
    uint8_t by = 1; /* that brings the first value behind the second */
    while (table_hash((first & ~UINT64_C(255)) | ((first + by) & 255)) < table_hash(second))
        by++;
    golden_write_bad(&good, "index-bad", "table-order.EFORMAT", table, by, true);
    golden_write_bad(&good, "index-bad", "flipped-table.ECHECKSUM", table, 1, false);
    golden_write("index-bad/cut.EFORMAT", ".tamis", good.data, good.len - 64);
    bytes_free(&good);
}

TEST(new_indexes_are_written_when_asked_for)
{
    if (!golden_folder())
        return;
    for (unsigned class = 0; class < 36; class ++)
        write_class(class);
    write_typed();
    write_bad_ones();
}

HARNESS_MAIN
