/* Golden files: what was written once is read for ever. In filters/ and records/, NAME.tamis with NAME.txt
 * ("maybe QUESTION" or "no QUESTION", as answered when it was made: a key, or NAME=VALUE and NAME! with
 * tabs between them), NAME.old.tamis and NAME.patch that lead to it, and NAME.key where the family key was
 * left out. In filters-bad/ and records-bad/, NAME.ERROR.tamis and the error to expect.
 *
 * With TAMIS_GOLDEN_WRITE=FOLDER it writes files that are not there yet, and changes none that are.
 */
#include "harness.h"

#include "base/bytes.h"
#include "golden.h"
#include "set/set.h"
#include "subjects.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void check_patch(const char *stem)
{
    char path[GOLDEN_PATH];
    snprintf(path, sizeof path, "%s.patch", stem);
    struct bytes patch = file_bytes(path);
    if (patch.len == 0)
        return;
    snprintf(path, sizeof path, "%s.old.tamis", stem);
    struct bytes older = file_bytes(path);
    snprintf(path, sizeof path, "%s.tamis", stem);
    struct bytes newer = file_bytes(path);
    tamis_filter *f = NULL;
    tamis_reason reason = {0};
    CHECK(tamis_filter_decode(&f, older.data, older.len, NULL, &reason) == TAMIS_OK);
    CHECK_MSG(tamis_filter_apply(f, patch.data, patch.len, &reason) == TAMIS_OK, "%s: %s", stem,
              reason.text);
    struct bytes result = bytes_of(f, 0);
    CHECK_MSG(bytes_equal(&result, &newer), "%s", stem);
    bytes_free(&result), bytes_free(&newer), bytes_free(&older), bytes_free(&patch);
    tamis_filter_free(f);
}

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

static bool has(struct set *set, char *question)
{
    return set_kind(set) == TAMIS_KIND_FILTER
               ? tamis_filter_has(as_filter(set), question, strlen(question))
               : ask(as_records(set), question);
}

static const struct {
    enum kind kind;
    const char *good, *bad;
    unsigned n_good, n_bad, questions; /* there are at least this many; questions of each file */
} kinds[] = {{KIND_FILTER, "filters", "filters-bad", 40, 20, 40},
             {KIND_RECORDS, "records", "records-bad", 20, 15, 20}};
static unsigned at; /* in kinds */

static void check_good(const char *stem)
{
    size_t len = strlen(stem);
    if (len > 4 && strcmp(stem + len - 4, ".old") == 0)
        return;
    golden_is_read(stem, kinds[at].kind, has, kinds[at].questions);
    check_patch(stem);
}

TEST(good_files_are_read)
{
    for (at = 0; at < sizeof kinds / sizeof *kinds; at++)
        CHECK(golden_each(kinds[at].good, check_good) >= kinds[at].n_good);
}

static void check_bad(const char *stem)
{
    golden_is_refused(stem, kinds[at].kind);
}

TEST(bad_files_are_refused)
{
    for (at = 0; at < sizeof kinds / sizeof *kinds; at++)
        CHECK(golden_each(kinds[at].bad, check_bad) >= kinds[at].n_bad);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_set(const char *name, const struct set *set, unsigned flags)
{
    struct bytes bytes = bytes_of_set(set, flags);
    golden_write(name, ".tamis", bytes.data, bytes.len);
    bytes_free(&bytes);
}

static void write_key(struct bytes *text, const tamis_filter *f, unsigned i, bool hidden)
{
    char key[24], line[64];
    size_t len = history_key(i, key);
    tamis_digest digest = tamis_filter_digest(f, key, len);
    uint8_t bits;
    bool has = tamis_filter_has(f, key, len);
    filter_bits_have(&f->set, &digest, 1, &bits);
    if (hidden && !(bits && !has))
        return;
    int n = snprintf(line, sizeof line, "%s %.*s\n", has ? "maybe" : "no", (int)len, key);
    bytes_write(text, line, (size_t)n);
}

/* Some keys, some non-members, and all that the bits have and a pending removal hides. */
static void write_keys(const char *name, const tamis_filter *f)
{
    struct bytes text = {0};
    for (unsigned i = 0; i < 60; i++)
        write_key(&text, f, i < 40 ? i * 17 % HISTORY_KEYS : HISTORY_KEYS + i, false);
    for (unsigned i = 0; i < HISTORY_KEYS; i++)
        write_key(&text, f, i, true);
    golden_write(name, ".txt", text.data, text.len);
    bytes_free(&text);
}

/* A history worth keeping: small, neither empty nor full, and with removals pending if it can. */
static uint64_t find_seed(unsigned kind)
{
    uint64_t best = 1;
    double score = -1;
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct history h;
        tamis_filter_facts info;
        tamis_filter *f = history_new(&h, kind, seed);
        history_steps(&h, f, 38);
        tamis_filter_info(f, &info);
        uint64_t size = tamis_filter_encoded_size(f, 0);
        double here = info.fill > 0.2 && info.fill < 0.8 ? 1 : 0;
        here += (info.pending > 4 ? 4 : (double)info.pending) + (info.vectors > 1 ? 1 : 0);
        if (size < 9000 && info.items > 20 && here > score) {
            score = here;
            best = seed;
        }
        tamis_filter_free(f);
    }
    return best;
}

static void write_kind(unsigned kind)
{
    struct history h;
    char name[64], part[80];
    snprintf(name, sizeof name, "filters/%s", history_kind(kind));
    for (char *p = name; *p; p++)
        *p = *p == ' ' ? '-' : *p;
    tamis_filter *f = history_new(&h, kind, find_seed(kind)), *older;
    history_steps(&h, f, 32);
    CHECK(tamis_filter_clone(&older, f) == TAMIS_OK);
    history_steps(&h, f, 6);
    write_set(name, filter_set(f), 0);
    write_keys(name, f);
    if (kind % 2) {
        struct bytes patch = {0};
        CHECK(tamis_filter_diff(older, f, 0, bytes_write, &patch, NULL) == TAMIS_OK);
        snprintf(part, sizeof part, "%s.old", name);
        write_set(part, filter_set(older), 0);
        golden_write(name, ".patch", patch.data, patch.len);
        bytes_free(&patch);
    }
    if (kind % 9 == 1) {
        snprintf(part, sizeof part, "%s-no-key", name);
        write_set(part, filter_set(f), TAMIS_SAVE_NO_KEY);
        write_keys(part, f);
        golden_write(part, ".key", h.key, TAMIS_KEY_LEN);
    }
    if (kind % 6 == 5) {
        tamis_filter *copy;
        struct bytes bytes = bytes_of(f, TAMIS_SAVE_BITS_ONLY);
        snprintf(part, sizeof part, "%s-bits-only", name);
        write_set(part, filter_set(f), TAMIS_SAVE_BITS_ONLY);
        CHECK(tamis_filter_decode(&copy, bytes.data, bytes.len, NULL, NULL) == TAMIS_OK);
        write_keys(part, copy);
        tamis_filter_free(copy);
        bytes_free(&bytes);
    }
    tamis_filter_free(older);
    tamis_filter_free(f);
}

/* A unique filter with pending removals and large counters, if one is found. */
static struct bytes rich_filter(void)
{
    for (uint64_t seed = 1;; seed++) {
        struct history h;
        tamis_filter *f = history_new(&h, 17, seed);
        history_steps(&h, f, 40);
        struct bytes bytes = bytes_of(f, 0);
        tamis_filter_free(f);
        if (get_u64(bytes.data + 352) >= 2 && get_u64(bytes.data + 384 + 80) >= 2)
            return bytes;
        bytes_free(&bytes);
    }
}

static void write_bad_filters(void)
{
    struct bytes good = rich_filter();
    uint64_t header = get_u64(good.data + 24), table = BODY_AT + get_u64(good.data + 32);
    golden_write("filters-bad/empty.EFORMAT", ".tamis", "", 0);
    golden_write("filters-bad/text.EFORMAT", ".tamis", "no filter\n", 10);
    golden_write("filters-bad/cut-in-magic.EFORMAT", ".tamis", good.data, 6);
    golden_write("filters-bad/cut-in-header.EFORMAT", ".tamis", good.data, 300);
    golden_write("filters-bad/cut-in-payload.EFORMAT", ".tamis", good.data, good.len - 64);
    golden_write_bad(&good, "filters-bad", "flipped-header.ECHECKSUM", 200, 1, false);
    golden_write_bad(&good, "filters-bad", "flipped-payload.ECHECKSUM", header + 1, 1, false);
    golden_write_bad(&good, "filters-bad", "flipped-checksum.ECHECKSUM", header - 1, 1, false);
    golden_write_bad(&good, "filters-bad", "flipped-page-checksum.ECHECKSUM", good.len - 64, 1,
                     false);
    golden_write_bad(&good, "filters-bad", "version-3.EVERSION", 8, 1, true);
    golden_write_bad(&good, "filters-bad", "version-1.EVERSION", 8, 255, true);
    golden_write_bad(&good, "filters-bad", "version-0.EFORMAT", 8, 254, true);
    golden_write_bad(&good, "filters-bad", "records.EKIND", 12, 1, true);
    golden_write_bad(&good, "filters-bad", "unknown-kind.EFORMAT", 12, 90, true);
    golden_write_bad(&good, "filters-bad", "flags.EFORMAT", 44, 2, true);
    golden_write_bad(&good, "filters-bad", "reserved.EFORMAT", 55, 1, true);
    golden_write_bad(&good, "filters-bad", "hash.EFORMAT", 64, 7, true);
    golden_write_bad(&good, "filters-bad", "other-key.EFORMAT", 75, 1, true);
    golden_write_bad(&good, "filters-bad", "growth.EFORMAT", 128, 9, true);
    golden_write_bad(&good, "filters-bad", "deletable-window.EFORMAT", 128, 2, true);
    golden_write_bad(&good, "filters-bad", "stored.EFORMAT", 296, 1, true);
    golden_write_bad(&good, "filters-bad", "huge-vectors.EFORMAT", 334, 8, true);
    golden_write_bad(&good, "filters-bad", "many-pending.EFORMAT", 352 + 3, 8, true);
    golden_write_bad(&good, "filters-bad", "huge-units.EFORMAT", 384 + 8 + 4, 100, true);
    golden_write_bad(&good, "filters-bad", "probes.EFORMAT", 384 + 16, 100, true);
    golden_write_bad(&good, "filters-bad", "ones.EFORMAT", golden_section(&good, SECTION_ONES), 1,
                     true);
    golden_write_bad(&good, "filters-bad", "ids.EFORMAT", 384 + 3, 1, true);
    golden_write_bad(&good, "filters-bad", "section-offset.EFORMAT", table + 8, 64, true);
    golden_write_bad(&good, "filters-bad", "section-length.EFORMAT", table + 16, 1, true);
    uint64_t counter = golden_section(&good, SECTION_COUNTERS);
    while (good.data[counter] >> 4) /* one that is zero, as its bit is */
        counter++;
    golden_write_bad(&good, "filters-bad", "counters.EFORMAT", counter, 16, true);
    golden_write_bad(&good, "filters-bad", "large-counters.EFORMAT",
                     golden_section(&good, SECTION_ESCAPES), 1, true);
    uint64_t first = golden_section(&good, SECTION_PENDING) + 7; /* the top byte of its digest */
    golden_write_bad(&good, "filters-bad", "removals-order.EFORMAT", first,
                     (uint8_t)(255 - good.data[first]), true);
    golden_write_bad(&good, "filters-bad", "removals-hide.EFORMAT",
                     golden_section(&good, SECTION_PENDING) + 24, 1, true);
    golden_write_bad(&good, "filters-bad", "candidates.EFORMAT",
                     golden_section(&good, SECTION_CANDIDATES) + 1, 1, true);
    golden_write_bad(&good, "filters-bad", "gap.EFORMAT", golden_section(&good, SECTION_ONES) - 1,
                     1, true);
    golden_write_bad(&good, "filters-bad", "gap-of-checksums.EFORMAT", good.len - 1, 1, true);
    uint8_t nan[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
    struct bytes bad = {0};
    bytes_write(&bad, good.data, good.len);
    memcpy(bad.data + 144, nan, sizeof nan);
    bytes_repair(&bad);
    golden_write("filters-bad/nan.EFORMAT", ".tamis", bad.data, bad.len);
    bytes_free(&bad), bytes_free(&good);
}

static void write_other_bad_filters(void)
{
    struct history h;
    tamis_filter *f = history_new(&h, 1, 7);
    history_steps(&h, f, 10);
    write_set("filters-bad/no-key.EKEY", filter_set(f), TAMIS_SAVE_NO_KEY);
    struct bytes patch = {0};
    CHECK(tamis_filter_diff(f, f, 0, bytes_write, &patch, NULL) == TAMIS_OK);
    golden_write("filters-bad/patch.EKIND", ".tamis", patch.data, patch.len);
    bytes_free(&patch);
    tamis_filter_free(f);
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

/* The world of one of the seeds 1 to 3999 that is most worth keeping. */
static uint64_t find_world(unsigned class)
{
    static struct world w;
    uint64_t best = 0;
    double most = -1;
    for (uint64_t seed = 1; seed < 4000; seed++) {
        uint64_t rng = seed;
        uint32_t copies[RECORDS] = {0};
        world_draw(&w, &rng, class / 3 % 2);
        if (!of_class(&w, class))
            continue;
        tamis_records *x = world_start(&w);
        world_steps(&w, x, &rng, copies, 80);
        double score = score_of(x) + (w.options.value == 1 + class / 12 % 3 ? 4 : 0);
        if (score > most)
            most = score, best = seed;
        tamis_records_free(x);
        world_free(&w);
    }
    return best;
}

static void write_class(unsigned class)
{
    static const char *const verifiers[] = {"none", "table", "filter"};
    static const char *const values[] = {"mixed", "basic", "attenuated"};
    static struct world w;
    uint64_t rng = find_world(class);
    uint32_t copies[RECORDS] = {0};
    char name[120], part[140];
    world_draw(&w, &rng, class / 3 % 2);
    tamis_records *x = world_start(&w);
    world_steps(&w, x, &rng, copies, 80);
    snprintf(name, sizeof name, "records/%s-%s%s%s", verifiers[class % 3],
             class / 6 % 2 ? "blocked" : "spread", class / 3 % 2 ? "-deletable" : "",
             class % 3 == 0 ? "" : "-");
    if (class % 3)
        strcat(name, values[w.options.value - 1]);
    write_set(name, records_set(x), 0);
    write_answers(name, &w, x);
    if (class % 8 == 4) {
        snprintf(part, sizeof part, "%s-no-key", name);
        write_set(part, records_set(x), TAMIS_SAVE_NO_KEY);
        write_answers(part, &w, x);
        golden_write(part, ".key", w.key, TAMIS_KEY_LEN);
    }
    if (class / 3 % 2 && class % 4 == 3) {
        snprintf(part, sizeof part, "%s-bits-only", name);
        write_set(part, records_set(x), TAMIS_SAVE_BITS_ONLY);
        write_answers(part, &w, x);
    }
    tamis_records_free(x);
    world_free(&w);
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
    write_set("records/typed", records_set(x), 0);
    golden_write("records/typed", ".txt", text.data, text.len);
    bytes_free(&text);
    tamis_records_free(x);
}

/* Has its first table two values? */
static bool two_values(const struct bytes *bytes)
{
    struct container c;
    struct head head;
    uint64_t len;
    return set_open(&c, &head, KIND_RECORDS, bytes->data, bytes->len, NULL) == TAMIS_OK &&
           golden_section(bytes, SECTION_TABLE) &&
           container_find(&c, SECTION_TABLE, head.digests, &len) && len >= 2 * TABLE_PAIR;
}

/* Deletable records with tables, pending removals and large counters. */
static struct bytes rich_records(uint32_t *attributes, uint32_t *verifiers)
{
    static struct world w;
    for (uint64_t seed = 1;; seed++) {
        uint64_t rng = seed;
        uint32_t copies[RECORDS] = {0};
        world_draw(&w, &rng, true);
        tamis_records *x = world_start(&w);
        world_steps(&w, x, &rng, copies, 120);
        struct bytes bytes = bytes_of_set(records_set(x), 0);
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

static void write_bad_records(void)
{
    uint32_t p, v;
    struct bytes good = rich_records(&p, &v);
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
        golden_write_bad(&good, "records-bad", bad[i].name, bad[i].at, bad[i].by, true);
    uint64_t table = golden_section(&good, SECTION_TABLE);
    uint64_t first = get_u64(good.data + table), second = get_u64(good.data + table + TABLE_PAIR);
    uint8_t by = 1; /* that brings the first value behind the second */
    while (table_hash((first & ~UINT64_C(255)) | ((first + by) & 255)) < table_hash(second))
        by++;
    golden_write_bad(&good, "records-bad", "table-order.EFORMAT", table, by, true);
    golden_write_bad(&good, "records-bad", "flipped-table.ECHECKSUM", table, 1, false);
    golden_write("records-bad/cut.EFORMAT", ".tamis", good.data, good.len - 64);
    bytes_free(&good);
}

TEST(new_files_are_written_when_asked_for)
{
    if (!golden_folder())
        return;
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++)
        write_kind(kind);
    write_bad_filters();
    write_other_bad_filters();
    for (unsigned class = 0; class < 36; class ++)
        write_class(class);
    write_typed();
    write_bad_records();
}

HARNESS_MAIN
