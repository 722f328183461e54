/* Bytes of filters and of records: every state that can be reached is kept by save, load and map, and
 * whatever is not such a state, or is damaged, is refused with a place and a reason.
 */
#include "harness.h"

#include "api/api.h"
#include "base/bytes.h"
#include "damage.h"
#include "forge.h"
#include "format/pieces.h"
#include "set/set.h"

#define SMALL 12000 /* bytes of subjects that are damaged */

static struct set *decoded(const struct subject *s, const struct bytes *bytes)
{
    tamis_reason reason = {0};
    struct set *set = NULL;
    tamis_error e = set_decode(&set, s->kind, bytes, &s->opening, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s: %s at %" PRIu64, tamis_error_name(e), reason.text, reason.offset);
    return set;
}

static struct set *mapped(const struct subject *s, const char *path)
{
    tamis_reason reason = {0};
    struct set *set = NULL;
    CHECK_MSG(set_file_open(&set, TAMIS_KIND_NONE, path, &s->opening, &reason) == TAMIS_OK, "%s",
              reason.text);
    return set;
}

/* Of a filter, those that it has. */
static tamis_records_facts facts_of(struct set *set)
{
    tamis_records_facts facts = {0};
    if (set_kind(set) == TAMIS_KIND_FILTER)
        tamis_filter_info(as_filter(set), &facts.set);
    else
        tamis_records_info(as_records(set), &facts);
    return facts;
}

static void check_facts(struct set *x, struct set *y)
{
    tamis_records_facts all = facts_of(x), others = facts_of(y);
    const tamis_filter_facts a = all.set, b = others.set;
    CHECK(a.growth == b.growth && a.layout == b.layout && a.hash == b.hash);
    CHECK(a.deletable == b.deletable && a.unique == b.unique && a.has_key == b.has_key);
    CHECK(a.items == b.items && a.capacity == b.capacity && a.bits == b.bits);
    CHECK(a.vectors == b.vectors && a.hashes == b.hashes && a.pending == b.pending);
    CHECK(a.bits_only == b.bits_only && a.expansion == b.expansion && a.window == b.window);
    CHECK_MSG(a.fpp == b.fpp && a.distinct == b.distinct && a.fill == b.fill, "%g %g, %g %g, %g %g",
              a.fpp, b.fpp, a.distinct, b.distinct, a.fill, b.fill);
    double off = a.fpp_now - b.fpp_now; /* a matrix of another width adds up in another order */
    CHECK_MSG(off * off <= 1e-18, "%.17g %.17g", a.fpp_now, b.fpp_now);
    CHECK(all.attributes == others.attributes && all.combos == others.combos);
    CHECK(all.verifier == others.verifier && all.value == others.value);
    CHECK(all.layers == others.layers && all.fpp_attribute == others.fpp_attribute);
    CHECK(all.fpp_fresh == others.fpp_fresh && all.fpp_record == others.fpp_record);
    for (uint32_t i = 0; all.attributes && i <= all.attributes; i++) {
        tamis_attribute_facts mine, theirs;
        bool there = tamis_records_attribute_info(as_records(x), i, &mine);
        CHECK(there == tamis_records_attribute_info(as_records(y), i, &theirs));
        CHECK(there == (i < all.attributes));
        CHECK(!there || (strcmp(mine.name, theirs.name) == 0 && mine.type == theirs.type &&
                         mine.bits == theirs.bits && mine.distinct == theirs.distinct));
    }
    for (uint32_t i = 0; all.attributes && i <= all.combos; i++)
        CHECK(tamis_records_combo(as_records(x), i) == tamis_records_combo(as_records(y), i));
}

/* ---- identity -------------------------------------------------------------------------------- */

/* Loaded, loaded and cloned, cloned, mapped: the same bytes, figures and answers. */
static void check_identity(const struct subject *s, bool file)
{
    struct bytes bytes = bytes_of_set(s->set, 0);
    tamis_reason reason = {0};
    struct set *all[4] = {decoded(s, &bytes)};
    CHECK(bytes.len && bytes.len == set_encoded_size(s->set, 0));
    CHECK(all[0] && set_clone(&all[1], all[0], false) == TAMIS_OK);
    CHECK(set_clone(&all[2], s->set, false) == TAMIS_OK);
    if (file) {
        CHECK(bytes_to_file(&bytes, "x.tamis"));
        CHECK_MSG(tamis_file_verify("x.tamis", &reason) == TAMIS_OK, "%s", reason.text);
        all[3] = mapped(s, "x.tamis");
    }
    for (unsigned i = 0; i < (file ? 4 : 3); i++) {
        if (!CHECK_MSG(all[i] != NULL, "%u", i))
            continue;
        struct bytes again = bytes_of_set(all[i], 0);
        CHECK_MSG(bytes_equal(&bytes, &again), "%u", i);
        CHECK_MSG(subject_compare(s, s->set, all[i]) == 0, "%u", i);
        CHECK(i == 3 || set_equal(s->set, all[i]));
        check_facts(s->set, all[i]);
        bytes_free(&again);
        set_free(all[i]);
    }
    bytes_free(&bytes);
}

TEST(every_state_is_kept)
{
    uint64_t seed = harness_seed();
    for (unsigned round = 0; round < HARNESS_TIMES(12u, 200u); round++)
        for (unsigned kind = 0; kind < SUBJECT_KINDS; kind++) {
            struct subject *s = subject_new(kind, seed + round, 0);
            for (unsigned part = 0; part < 4; part++) {
                unsigned long before = atomic_load(&harness.failed_checks);
                check_identity(s, part == 3);
                CHECK(subject_denied(s, s->set) == 0);
                if (atomic_load(&harness.failed_checks) != before) {
                    printf("kind %u: %s, round %u, part %u\n", kind, s->name, round, part);
                    break;
                }
                subject_steps(s, s->set, 12);
            }
            subject_free(s);
        }
}

/* What was loaded goes on as if nothing had happened. */
TEST(life_goes_on_after_loading)
{
    uint64_t seed = harness_seed() + 1000;
    for (unsigned round = 0; round < HARNESS_TIMES(8u, 125u); round++)
        for (unsigned kind = 0; kind < SUBJECT_KINDS; kind++) {
            struct subject *s = subject_new(kind, seed + round, 30);
            struct set *loaded = decoded(s, &s->bytes);
            struct past past = s->past, other;
            if (!CHECK(loaded != NULL))
                continue;
            subject_steps(s, s->set, 30);
            other = s->past;
            s->past = past;
            subject_steps(s, loaded, 30);
            CHECK(memcmp(&s->past, &other, sizeof other) == 0);
            CHECK_MSG(subject_compare(s, s->set, loaded) == 0, "%s, round %u", s->name, round);
            CHECK(subject_denied(s, loaded) == 0);
            struct bytes x = bytes_of_set(s->set, 0), y = bytes_of_set(loaded, 0);
            CHECK_MSG(bytes_equal(&x, &y), "%s, round %u", s->name, round);
            bytes_free(&x), bytes_free(&y);
            set_free(loaded);
            subject_free(s);
        }
}

/* Tables of all sizes, in order in memory or not, asked where they lie. */
TEST(tables_are_asked_where_they_lie)
{
    uint64_t rng = harness_seed() + 2;
    for (size_t n = 0; n < 40000; n = n < 40 ? n + 1 : n * 3 / 2) {
        struct table table = {.slots = NULL}, view = {.slots = NULL};
        uint64_t *values = calloc(n + 1, sizeof *values);
        for (size_t i = 0; i < n; i++) {
            values[i] = rng_next(&rng) >> (rng_next(&rng) % 3 ? 0 : 44);
            CHECK(table_reserve(&table, &mem_system, 1));
            table_add(&table, values[i], 1 + i % 3);
        }
        for (size_t i = 0; i < n / 3; i++)
            table_sub(&table, values[rng_next(&rng) % n], UINT64_MAX);
        struct table_walk walk = {.table = &table};
        struct bytes pairs = {0};
        uint64_t hash = 0, value = 0;
        size_t seen = 0;
        for (; table_next(&walk); seen++) {
            uint64_t pair[2] = {walk.value, walk.count}, next = table_hash(walk.value);
            CHECK(seen == 0 || next > hash || (next == hash && walk.value > value));
            hash = next, value = walk.value;
            bytes_write(&pairs, pair, sizeof pair);
        }
        CHECK_MSG(seen == table.used, "%zu of %zu, %zu", seen, table.used, n);
        view.view = pairs.data, view.used = seen;
        for (size_t i = 0; i < n; i++) {
            CHECK(table_get(&view, values[i]) == table_get(&table, values[i]));
            uint64_t stranger = rng_next(&rng);
            CHECK(table_get(&view, stranger) == table_get(&table, stranger));
        }
        CHECK(table_equal(&table, &view) && table_equal(&view, &table));
        bytes_free(&pairs);
        table_free(&table, &mem_system);
        free(values);
    }
}

/* ---- flags ----------------------------------------------------------------------------------- */

TEST(without_the_key_it_must_be_given)
{
    subject_each(1, harness_seed() + 5, SIZE_MAX, damage_keyless);
}

/* What cannot change a read-only set; one whose counters are missing cannot be merged into another. */
static void check_read_only(const struct subject *s, struct set *set)
{
    tamis_key keys[TAMIS_ATTRIBUTES_MAX] = {{NULL, 0}};
    bool filter = s->kind == KIND_FILTER;
    CHECK((filter ? tamis_filter_add(as_filter(set), "x", 1, NULL)
                  : tamis_records_add(as_records(set), keys, NULL)) == TAMIS_EREADONLY);
    CHECK(set_clear(set) == TAMIS_EREADONLY);
    CHECK(set_merge(set, s->set, 0, NULL) == TAMIS_EREADONLY);
    if (filter)
        CHECK(tamis_filter_fold(as_filter(set), TAMIS_MERGE_RESTATE, NULL) == TAMIS_EREADONLY);
    tamis_filter_facts facts = facts_of(set).set;
    if (facts.deletable) {
        CHECK((filter ? tamis_filter_remove(as_filter(set), "x", 1, NULL)
                      : tamis_records_remove(as_records(set), keys, NULL)) == TAMIS_EREADONLY);
        if (facts.bits_only || facts.growth != TAMIS_SMOOTH) /* without counters */
            CHECK(set_merge(s->set, set, TAMIS_MERGE_RESTATE, NULL) == TAMIS_EREADONLY);
    }
}

/* Copies of bits never deny what the original does not. */
static void check_bits_only(struct subject *s)
{
    struct bytes bytes = bytes_of_set(s->set, TAMIS_SAVE_BITS_ONLY);
    struct set *loaded = decoded(s, &bytes), *clone = NULL;
    tamis_filter_facts original = facts_of(s->set).set, facts = facts_of(loaded).set;
    CHECK(bytes.len == set_encoded_size(s->set, TAMIS_SAVE_BITS_ONLY));
    CHECK(facts.bits_only && facts.read_only && facts.pending == 0);
    CHECK(facts.deletable == original.deletable && facts.fill == original.fill);
    CHECK(subject_lost(s, s->set, loaded) == 0);
    check_read_only(s, loaded);
    CHECK(set_clone(&clone, loaded, false) == TAMIS_OK);
    check_read_only(s, clone);
    struct bytes again = bytes_of_set(clone, 0);
    CHECK(bytes_equal(&bytes, &again));
    bytes_free(&again), bytes_free(&bytes);
    set_free(clone);
    set_free(loaded);
}

TEST(bits_only_is_read_only)
{
    subject_each(1, harness_seed() + 6, SIZE_MAX, check_bits_only);
}

/* A mapped set is read-only; a clone is not if nothing stayed in the file, and a plain one can be merged
   into another. */
static void check_mapped(struct subject *s)
{
    struct set *view, *clone = NULL, *loaded = NULL;
    tamis_reason reason = {0};
    CHECK_MSG(set_file_save(s->set, "m.tamis", 0, &reason) == TAMIS_OK, "%s", reason.text);
    view = mapped(s, "m.tamis");
    tamis_filter_facts facts = facts_of(view).set;
    bool counters = facts.deletable && facts.growth != TAMIS_SMOOTH;
    CHECK(facts.read_only && !facts.bits_only && facts.bytes == s->bytes.len);
    check_read_only(s, view);
    CHECK(set_clone(&clone, view, false) == TAMIS_OK);
    facts = facts_of(clone).set;
    CHECK(facts.read_only == counters && facts.bits_only == counters);
    CHECK(subject_lost(s, s->set, clone) == 0);
    if (!facts.deletable) {
        tamis_error e = set_merge(clone, view, TAMIS_MERGE_RESTATE, NULL);
        CHECK_MSG(e == TAMIS_OK, "%s", tamis_error_name(e));
        CHECK(subject_lost(s, s->set, clone) == 0);
    }
    CHECK(set_file_load(&loaded, TAMIS_KIND_NONE, "m.tamis", &s->opening, &reason) == TAMIS_OK);
    CHECK(loaded && set_equal(loaded, s->set));
    set_free(loaded);
    set_free(view);
    set_free(clone);
}

TEST(mapped_sets_stay_as_they_are)
{
    subject_each(1, harness_seed() + 7, SIZE_MAX, check_mapped);
}

TEST(kinds_are_told_apart)
{
    tamis_filter *other = NULL;
    tamis_records *x = NULL;
    tamis_kind kind = TAMIS_KIND_NONE;
    tamis_reason reason = {0};
    struct set *f = set_of(KIND_FILTER, (tamis_records_options){0});
    struct set *r = set_of(KIND_RECORDS, (tamis_records_options){0});
    CHECK(set_file_save(f, "f.tamis", 0, NULL) == TAMIS_OK);
    CHECK(set_file_save(r, "r.tamis", 0, NULL) == TAMIS_OK);
    CHECK(tamis_file_kind("f.tamis", &kind, NULL) == TAMIS_OK && kind == TAMIS_KIND_FILTER);
    CHECK(tamis_file_kind("r.tamis", &kind, NULL) == TAMIS_OK && kind == TAMIS_KIND_RECORDS);
    CHECK(tamis_file_kind("none", &kind, &reason) == TAMIS_EIO && reason.system_error);
    CHECK(tamis_kind_of("TAMISPAT", 8) == TAMIS_KIND_PATCH && tamis_kind_of("", 0) == 0);
    CHECK(tamis_records_load(&x, "f.tamis", NULL, &reason) == TAMIS_EKIND);
    CHECK(strstr(reason.text, "this is a filter, not a set of records") != NULL);
    CHECK(tamis_filter_open(&other, "r.tamis", NULL, &reason) == TAMIS_EKIND);
    CHECK(strstr(reason.text, "this is a set of records, not a filter") != NULL);
    set_free(f);
    set_free(r);
}

/* A window forgets by age, whoever holds it: an hour in a file is an hour. */
TEST(a_window_forgets_while_it_is_saved)
{
    struct history h = {.now = UINT64_C(1700000000) * 1000000000};
    const uint64_t hour = UINT64_C(3600) * 1000000000;
    tamis_options o = {.growth = TAMIS_WINDOW,
                       .window = hour,
                       .capacity = 1000,
                       .fpp = 1e-6,
                       .clock = history_clock,
                       .clock_context = &h};
    tamis_filter *f;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(f, "old", 3, NULL) == TAMIS_OK);
    h.now += hour / 2;
    CHECK(tamis_filter_add(f, "young", 5, NULL) == TAMIS_OK);
    struct bytes bytes = bytes_of(f, 0);
    tamis_filter_free(f);
    tamis_open_options opening = {.clock = history_clock, .clock_context = &h};
    h.now += hour * 7 / 10;
    CHECK(tamis_filter_decode(&f, bytes.data, bytes.len, &opening, NULL) == TAMIS_OK);
    CHECK(tamis_filter_expire(f) == TAMIS_OK);
    CHECK(!tamis_filter_has(f, "old", 3) && tamis_filter_has(f, "young", 5));
    h.now -= hour * 6 / 10; /* a clock set back: what is added now is not older than before */
    CHECK(tamis_filter_add(f, "late", 4, NULL) == TAMIS_OK);
    h.now += hour;
    CHECK(tamis_filter_expire(f) == TAMIS_OK);
    CHECK(tamis_filter_has(f, "late", 4));
    tamis_filter_free(f);
    bytes_free(&bytes);
}

/* Windows made at different times, merged: the vectors are in order of age, and can be saved. */
TEST(merged_windows_are_kept)
{
    struct history h = {.now = 1000000};
    tamis_options o = {.growth = TAMIS_WINDOW,
                       .window = 100000,
                       .capacity = 100,
                       .key = h.key,
                       .clock = history_clock,
                       .clock_context = &h};
    tamis_filter *old, *young;
    CHECK(tamis_filter_new(&old, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(old, "old", 3, NULL) == TAMIS_OK);
    h.now += 50000;
    CHECK(tamis_filter_new(&young, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(young, "young", 5, NULL) == TAMIS_OK);
    CHECK(tamis_filter_merge(young, old, TAMIS_MERGE_CONCAT, NULL) == TAMIS_OK);
    struct subject s = {.kind = KIND_FILTER, .set = filter_set(young), .opening.key = h.key};
    s.opening.clock = history_clock, s.opening.clock_context = &h;
    check_identity(&s, true);
    h.now += 60000;
    CHECK(tamis_filter_expire(young) == TAMIS_OK);
    CHECK(!tamis_filter_has(young, "old", 3) && tamis_filter_has(young, "young", 5));
    check_identity(&s, true);
    tamis_filter_free(old);
    tamis_filter_free(young);
}

/* ---- damage ---------------------------------------------------------------------------------- */

TEST(every_truncation_is_refused)
{
    subject_each(1, harness_seed() + 8, SMALL, damage_cut);
}

TEST(every_flipped_bit_is_found)
{
    subject_each(1, harness_seed() + 9, SMALL, damage_flip);
}

static unsigned let_in[KIND_END];

/* What is not refused can be asked and changed. */
static void forge(struct subject *s)
{
    struct bytes forged = {0};
    uint64_t rng = harness_seed() + s->bytes.len;
    for (unsigned i = 0; i < HARNESS_TIMES(1200u, 20000u); i++) {
        bytes_forge(&forged, &s->bytes, &rng);
        struct set *out = damage_forged(s, &forged);
        if (!out)
            continue;
        if (s->kind == KIND_FILTER || facts_of(out).attributes == s->world.p) {
            struct past past = s->past;
            subject_steps(s, out, 1);
            CHECK(let_in[s->kind] % 8 || subject_compare(s, out, out) == 0);
            s->past = past;
        }
        let_in[s->kind]++;
        set_free(out);
    }
    bytes_free(&forged);
}

TEST(forged_bytes_are_refused_or_kept)
{
    subject_each(1, harness_seed() + 10, SMALL, forge);
    CHECK_MSG(let_in[KIND_FILTER] > 100 && let_in[KIND_RECORDS] > 100, "%u, %u",
              let_in[KIND_FILTER], let_in[KIND_RECORDS]);
}

/* Values that someone chose so that they all want the same slots: a table of them would take hours to
   make. Refused at once; as many others are welcome. */
static int hash_order(const void *x, const void *y)
{
    uint64_t a = table_hash(get_u64(x)), b = table_hash(get_u64(y));
    return a < b ? -1 : a > b;
}

static tamis_error decode_with_values(struct bytes *bytes, unsigned bits, tamis_reason *reason)
{
    struct container c;
    uint64_t len, value = 0;
    tamis_records *x = NULL;
    CHECK(container_open(&c, bytes->data, bytes->len, KIND_RECORDS, NULL) == TAMIS_OK);
    uint8_t *pairs = bytes->data + (container_find(&c, SECTION_TABLE, 1, &len) - c.data);
    for (uint64_t at = 0; at < len; value++)
        if (table_hash(value) >> 32 < UINT64_C(1) << (32 - bits)) {
            put_u64(pairs + at, value);
            at += TABLE_PAIR;
        }
    qsort(pairs, len / TABLE_PAIR, TABLE_PAIR, hash_order);
    bytes_repair(bytes);
    tamis_error e = tamis_records_decode(&x, bytes->data, bytes->len, NULL, reason);
    tamis_records_free(x);
    return e;
}

TEST(tables_of_chosen_values_are_refused)
{
    static const tamis_attribute attribute = {.name = "a"};
    tamis_records_options o = {.attributes = &attribute,
                               .n_attributes = 1,
                               .set.capacity = 30000,
                               .set.growth = TAMIS_FIXED,
                               .verifier = TAMIS_VERIFIER_TABLE};
    tamis_reason reason = {0};
    tamis_records *x;
    if (!CHECK(tamis_records_new(&x, &o, NULL) == TAMIS_OK))
        return;
    for (uint64_t i = 0; i < 30000; i++)
        CHECK(tamis_records_add(x, &(tamis_key){&i, sizeof i}, NULL) == TAMIS_OK);
    struct bytes bytes = bytes_of_set(records_set(x), 0);
    CHECK(decode_with_values(&bytes, 0, &reason) == TAMIS_OK);
    CHECK(decode_with_values(&bytes, 8, &reason) == TAMIS_EFORMAT);
    CHECK_MSG(strstr(reason.text, "too close") != NULL, "%s", reason.text);
    bytes_free(&bytes);
    tamis_records_free(x);
}

static void expect(const struct bytes *bytes, tamis_error want, uint64_t offset, const char *text)
{
    tamis_filter *out;
    tamis_reason reason;
    static struct capped capped;
    capped_init(&capped, bytes->len);
    tamis_open_options o = {.allocator = &capped.allocator};
    tamis_error e = tamis_filter_decode(&out, bytes->data, bytes->len, &o, &reason);
    CHECK_MSG(e == want && reason.offset == offset && strstr(reason.text, text),
              "%s at %" PRIu64 ": %s", tamis_error_name(e), reason.offset, reason.text);
}

TEST(reasons_are_clear)
{
    struct history h;
    tamis_filter *f = history_new(&h, 15, 1);
    history_steps(&h, f, 20);
    struct bytes good = bytes_of(f, 0), bad = {0}, patch = {0};
#define BAD(offset, value)                                                                     \
    (bad.len = 0, bytes_write(&bad, good.data, good.len), bad.data[offset] = (uint8_t)(value), \
     bytes_repair(&bad))
    expect(&(struct bytes){(uint8_t *)"", 0, 0}, TAMIS_EFORMAT, 0, "empty");
    expect(&(struct bytes){(uint8_t *)"hello, world", 12, 0}, TAMIS_EFORMAT, 0,
           "not a tamis structure");
    expect(&(struct bytes){good.data, 100, 0}, TAMIS_EFORMAT, 100, "cut short after 100 bytes");
    expect(&(struct bytes){good.data, good.len - 64, 0}, TAMIS_EFORMAT, 16, "cut short");
    BAD(8, 3);
    expect(&bad, TAMIS_EVERSION, 8, "format version 3");
    BAD(8, 1);
    expect(&bad, TAMIS_EVERSION, 8, "format version 1");
    BAD(8, 0);
    expect(&bad, TAMIS_EFORMAT, 8, "version 0");
    BAD(12, KIND_RECORDS);
    expect(&bad, TAMIS_EKIND, 12, "this is a set of records, not a filter");
    BAD(12, 99);
    expect(&bad, TAMIS_EFORMAT, 12, "unknown kind");
    BAD(44, 8);
    expect(&bad, TAMIS_EFORMAT, 44, "unknown flags");
    BAD(50, 1);
    expect(&bad, TAMIS_EFORMAT, 48, "reserved");
    BAD(64, 9);
    expect(&bad, TAMIS_EFORMAT, 64, "hash");
    BAD(73, 0x55);
    expect(&bad, TAMIS_EFORMAT, 88, "key");
    BAD(128, 9);
    expect(&bad, TAMIS_EFORMAT, 128, "growth");
    BAD(144 + 7, 0xff);
    bad.data[144 + 6] = 0xf8;
    bytes_repair(&bad);
    expect(&bad, TAMIS_EFORMAT, 144, "rate");
    BAD(384 + 16, 65);
    expect(&bad, TAMIS_EFORMAT, 384, "shape");
    BAD(384 + 40, good.data[384 + 40] + 1);
    expect(&bad, TAMIS_EFORMAT, 296, "add up");
    BAD(384 + 80, 1);
    expect(&bad, TAMIS_EFORMAT, 384, "large counters");
    struct container c;
    struct head head;
    CHECK(set_open(&c, &head, KIND_FILTER, good.data, good.len, NULL) == TAMIS_OK);
    struct section ones = container_section(&c, c.sections - 1);
    BAD(ones.offset, good.data[ones.offset] + 1);
    expect(&bad, TAMIS_EFORMAT, ones.offset, "bits set");
    BAD(ones.offset + ones.len, 1);
    expect(&bad, TAMIS_EFORMAT, ones.offset + ones.len, "padding");
    BAD(good.len - 1, 1);
    expect(&bad, TAMIS_EFORMAT, c.sums + 8 * c.pages, "padding");
    BAD(0, good.data[0]);
    bad.data[c.payload + 1] ^= 1; /* and the ones are not right either */
    expect(&bad, TAMIS_ECHECKSUM, c.payload, "checksum of bytes");
    BAD(0, good.data[0]);
    bad.data[c.sums] ^= 1;
    expect(&bad, TAMIS_ECHECKSUM, c.payload, "checksum of bytes");
    CHECK(tamis_filter_diff(f, f, 0, bytes_write, &patch, NULL) == TAMIS_OK);
    expect(&patch, TAMIS_EKIND, 0, "patch");
    CHECK(tamis_filter_encode(f, 64, bytes_write, &patch) == TAMIS_EARG);
    bytes_free(&good);
    bytes_free(&bad);
    bytes_free(&patch);
    tamis_filter_free(f);
}

/* ---- faults ---------------------------------------------------------------------------------- */

TEST(a_write_that_fails_is_told)
{
    subject_each(1, harness_seed() + 11, SMALL, damage_writes);
}

TEST(without_memory_nothing_changes)
{
    subject_each(1, harness_seed() + 12, SMALL, damage_memory);
}

/* ---- parts ----------------------------------------------------------------------------------- */

TEST(ones_are_counted)
{
    uint64_t rng = harness_seed();
    uint8_t bytes[300];
    for (unsigned round = 0; round < 2000; round++) {
        size_t from = rng_next(&rng) % 9, len = rng_next(&rng) % (sizeof bytes - from);
        uint64_t want = 0;
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)rng_next(&rng);
        for (size_t i = 0; i < len; i++)
            want += (uint64_t)__builtin_popcount(bytes[from + i]);
        CHECK(bytes_ones(bytes + from, len) == want);
    }
}

/* Of every width on the ladder, and past it. */
TEST(ones_of_columns_are_counted)
{
    uint64_t rng = harness_seed();
    for (uint64_t n = 1; n < 900; n = n < 66 ? n + 1 : n + 97) {
        uint64_t width = matrix_width_for(n), rows = 8 * (1 + rng_next(&rng) % 300);
        size_t len = (size_t)(rows * width / 8);
        uint8_t *bits = malloc(len + 1);
        uint64_t *want = calloc(width, sizeof *want), *got = calloc(width, sizeof *got);
        for (size_t i = 0; i < len; i++)
            bits[i + 1] = (uint8_t)(rng_next(&rng) | rng_next(&rng));
        for (uint64_t at = 0; at < rows * width; at++)
            want[at % width] += bits[1 + at / 8] >> at % 8 & 1;
        matrix_count_ones(bits + 1, rows, width, got);
        CHECK_MSG(memcmp(want, got, width * sizeof *want) == 0, "width %" PRIu64, width);
        free(bits);
        free(want);
        free(got);
    }
}

HARNESS_MAIN
