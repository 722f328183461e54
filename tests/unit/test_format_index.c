/* Bytes of indexes: every state that can be reached is kept by save, load and map, and whatever is not
 * such a state, or is damaged, is refused with a place and a reason.
 */
#include "harness.h"
#include "worlds.h"

#include "base/bytes.h"
#include "damage.h"
#include "forge.h"
#include "format/format.h"
#include "tamis/records.h"

#define WORLDS 40 /* of tests that go over all kinds */

/* A world after some steps; the index may be read but not changed by what comes after. */
struct subject {
    struct world world;
    tamis_records *x;
    uint32_t copies[RECORDS];
    struct bytes bytes;
};

static struct subject *subject_new(uint64_t seed, bool deletable, unsigned steps)
{
    struct subject *s = calloc(1, sizeof *s);
    uint64_t rng = seed;
    world_draw(&s->world, &rng, deletable);
    s->x = world_start(&s->world);
    world_steps(&s->world, s->x, &rng, s->copies, steps);
    s->bytes = bytes_of_index(s->x, 0);
    CHECK_MSG(s->bytes.len > 0, "world %" PRIx64, seed);
    return s;
}

static void subject_free(struct subject *s)
{
    tamis_records_free(s->x);
    world_free(&s->world);
    bytes_free(&s->bytes);
    free(s);
}

/* The seeds of small worlds: at most some KiB of bytes. */
static struct subject *subject_small(uint64_t *rng, bool deletable)
{
    for (;;) {
        struct subject *s = subject_new(rng_next(rng), deletable, 60);
        if (s->bytes.len < 12000)
            return s;
        subject_free(s);
    }
}

static tamis_records *decoded(const struct bytes *bytes, unsigned *failed)
{
    tamis_reason reason = {0};
    tamis_records *x = NULL;
    tamis_open_options o = {.clock = world_clock};
    tamis_error e = tamis_records_decode(&x, bytes->data, bytes->len, &o, &reason);
    *failed += !CHECK_MSG(e == TAMIS_OK, "%s: %s at %" PRIu64, tamis_error_name(e), reason.text,
                          reason.offset);
    return x;
}

/* ---- identity -------------------------------------------------------------------------------- */

static void check_infos(const tamis_records *x, const tamis_records *y)
{
    tamis_records_facts a, b;
    tamis_records_info(x, &a);
    tamis_records_info(y, &b);
    CHECK(a.attributes == b.attributes && a.combos == b.combos && a.verifier == b.verifier);
    CHECK(a.value == b.value && a.set.growth == b.set.growth && a.set.layout == b.set.layout &&
          a.set.hash == b.set.hash);
    CHECK(a.set.deletable == b.set.deletable && a.set.has_key == b.set.has_key &&
          a.set.bits_only == b.set.bits_only);
    CHECK(a.set.items == b.set.items && a.set.capacity == b.set.capacity &&
          a.set.bits == b.set.bits);
    CHECK(a.layers == b.layers && a.set.pending == b.set.pending && a.set.fpp == b.set.fpp);
    CHECK(a.fpp_attribute == b.fpp_attribute && a.fpp_fresh == b.fpp_fresh &&
          a.fpp_record == b.fpp_record);
    for (uint32_t i = 0; i <= a.attributes; i++) {
        tamis_attribute_facts mine, theirs;
        bool there = tamis_records_attribute_info(x, i, &mine);
        CHECK(there == tamis_records_attribute_info(y, i, &theirs) && there == (i < a.attributes));
        CHECK(!there || (strcmp(mine.name, theirs.name) == 0 && mine.type == theirs.type &&
                         mine.bits == theirs.bits && mine.distinct == theirs.distinct));
    }
    for (uint32_t i = 0; i <= a.combos; i++)
        CHECK(tamis_records_combo(x, i) == tamis_records_combo(y, i));
}

/* Loaded, loaded and cloned, mapped: the same bytes, figures and answers. */
static void check_identity(const struct subject *s)
{
    unsigned failed = 0;
    tamis_records *loaded = decoded(&s->bytes, &failed), *clone = NULL, *mapped = NULL;
    tamis_reason reason = {0};
    CHECK(s->bytes.len == tamis_records_encoded_size(s->x, 0));
    CHECK(bytes_to_file(&s->bytes, "x.tamis"));
    if (failed || !CHECK(tamis_records_clone(&clone, loaded) == TAMIS_OK) ||
        !CHECK_MSG(tamis_records_open(&mapped, "x.tamis", NULL, &reason) == TAMIS_OK, "%s",
                   reason.text))
        return;
    CHECK(tamis_file_verify("x.tamis", &reason) == TAMIS_OK);
    const tamis_records *all[] = {loaded, clone, mapped};
    for (unsigned i = 0; i < 3; i++) {
        struct bytes again = bytes_of_index(all[i], 0);
        CHECK_MSG(bytes_equal(&s->bytes, &again), "%u", i);
        CHECK(world_compare(&s->world, s->x, all[i]) == 0);
        check_infos(s->x, all[i]);
        bytes_free(&again);
    }
    CHECK(tamis_records_equal(s->x, loaded) && tamis_records_equal(s->x, clone));
    tamis_records_free(loaded);
    tamis_records_free(clone);
    tamis_records_free(mapped);
}

TEST(every_state_is_kept)
{
    uint64_t rng = harness_seed();
    for (unsigned i = 0; i < HARNESS_TIMES(300u, 5000u); i++) {
        uint64_t seed = rng_next(&rng);
        unsigned long before = atomic_load(&harness.failed_checks);
        struct subject *s = subject_new(seed, i % 3, (unsigned)(rng_next(&rng) % 200));
        check_identity(s);
        subject_free(s);
        if (atomic_load(&harness.failed_checks) != before) {
            printf("world %" PRIx64 "\n", seed);
            return;
        }
    }
}

/* What was loaded goes on as if nothing had happened. */
TEST(life_goes_on_after_loading)
{
    uint64_t rng = harness_seed() + 1;
    for (unsigned i = 0; i < HARNESS_TIMES(200u, 3000u); i++) {
        struct subject *s = subject_new(rng_next(&rng), i % 3, 80);
        uint32_t copies[RECORDS];
        unsigned failed = 0;
        tamis_records *loaded = decoded(&s->bytes, &failed);
        memcpy(copies, s->copies, sizeof copies);
        uint64_t one = rng_next(&rng), same = one;
        world_steps(&s->world, s->x, &one, s->copies, 120);
        world_steps(&s->world, loaded, &same, copies, 120);
        struct bytes x = bytes_of_index(s->x, 0), y = bytes_of_index(loaded, 0);
        CHECK(memcmp(s->copies, copies, sizeof copies) == 0);
        CHECK(bytes_equal(&x, &y));
        bytes_free(&x), bytes_free(&y);
        tamis_records_free(loaded);
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
    uint64_t rng = harness_seed() + 3;
    for (unsigned i = 0; i < WORLDS; i++) {
        struct subject *s = subject_new(rng_next(&rng), i % 2, 60);
        struct set *loaded =
            damage_keyless(records_set(s->x), &(tamis_open_options){.key = s->world.key});
        if (loaded)
            CHECK(world_compare(&s->world, s->x, as_records(loaded)) == 0);
        set_free(loaded);
        subject_free(s);
    }
}

/* What cannot change a read-only index, and a mapped one cannot be merged into another. */
static void check_read_only(const struct subject *s, tamis_records *x)
{
    tamis_key keys[TAMIS_ATTRIBUTES_MAX] = {{NULL, 0}};
    CHECK(tamis_records_add(x, keys, NULL) == TAMIS_EREADONLY);
    CHECK(tamis_records_clear(x) == TAMIS_EREADONLY);
    CHECK(tamis_records_merge(x, s->x, 0, NULL) == TAMIS_EREADONLY);
    if (s->world.options.set.deletable) {
        CHECK(tamis_records_remove(x, keys, NULL) == TAMIS_EREADONLY);
        CHECK(tamis_records_merge(s->x, x, TAMIS_MERGE_RESTATE, NULL) == TAMIS_EREADONLY);
    }
}

TEST(bits_only_is_read_only)
{
    uint64_t rng = harness_seed() + 4;
    for (unsigned i = 0; i < WORLDS; i++) {
        struct subject *s = subject_new(rng_next(&rng), i % 2, 100);
        struct bytes bytes = bytes_of_index(s->x, TAMIS_SAVE_BITS_ONLY);
        unsigned failed = 0;
        tamis_records *loaded = decoded(&bytes, &failed), *clone = NULL;
        tamis_records_facts info;
        CHECK(bytes.len == tamis_records_encoded_size(s->x, TAMIS_SAVE_BITS_ONLY));
        tamis_records_info(loaded, &info);
        CHECK(info.set.bits_only && info.set.read_only && info.set.pending == 0);
        CHECK(world_compare(&s->world, s->x, loaded) == 0);
        check_read_only(s, loaded);
        CHECK(tamis_records_clone(&clone, loaded) == TAMIS_OK);
        check_read_only(s, clone);
        struct bytes again = bytes_of_index(clone, 0);
        CHECK(bytes_equal(&bytes, &again));
        bytes_free(&again), bytes_free(&bytes);
        tamis_records_free(clone);
        tamis_records_free(loaded);
        subject_free(s);
    }
}

/* A mapped index is read-only; a clone is not if nothing stayed in the file, and a plain one can be
   merged into another. */
TEST(mapped_indexes_stay_as_they_are)
{
    uint64_t rng = harness_seed() + 5;
    for (unsigned i = 0; i < WORLDS; i++) {
        bool deletable = i % 2;
        struct subject *s = subject_new(rng_next(&rng), deletable, 100);
        tamis_records *mapped = NULL, *clone = NULL;
        tamis_reason reason = {0};
        tamis_records_facts info;
        CHECK_MSG(tamis_records_save(s->x, "m.tamis", 0, &reason) == TAMIS_OK, "%s", reason.text);
        CHECK_MSG(tamis_records_open(&mapped, "m.tamis", NULL, &reason) == TAMIS_OK, "%s",
                  reason.text);
        tamis_records_info(mapped, &info);
        CHECK(info.set.read_only && !info.set.bits_only && info.set.bytes == s->bytes.len);
        check_read_only(s, mapped);
        CHECK(tamis_records_clone(&clone, mapped) == TAMIS_OK);
        tamis_records_info(clone, &info);
        CHECK(info.set.read_only == deletable && info.set.bits_only == deletable);
        CHECK(world_compare(&s->world, clone, s->x) == 0);
        if (!deletable) {
            tamis_error e = tamis_records_merge(clone, mapped, TAMIS_MERGE_RESTATE, NULL);
            CHECK_MSG(e == TAMIS_OK, "%s", tamis_error_name(e));
            CHECK(world_compare(&s->world, clone, s->x) == 0);
        }
        tamis_records_free(mapped);
        CHECK(tamis_records_load(&mapped, "m.tamis", NULL, &reason) == TAMIS_OK);
        CHECK(tamis_records_equal(mapped, s->x));
        tamis_records_free(mapped);
        tamis_records_free(clone);
        subject_free(s);
    }
}

TEST(kinds_are_told_apart)
{
    struct subject *s = subject_new(3, true, 20);
    tamis_filter *f = NULL;
    tamis_records *x = NULL;
    tamis_kind kind = TAMIS_KIND_NONE;
    tamis_reason reason = {0};
    CHECK(tamis_filter_new(&f, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_save(f, "f.tamis", 0, NULL) == TAMIS_OK);
    CHECK(tamis_records_save(s->x, "i.tamis", 0, NULL) == TAMIS_OK);
    CHECK(tamis_file_kind("f.tamis", &kind, NULL) == TAMIS_OK && kind == TAMIS_KIND_FILTER);
    CHECK(tamis_file_kind("i.tamis", &kind, NULL) == TAMIS_OK && kind == TAMIS_KIND_RECORDS);
    CHECK(tamis_file_kind("none", &kind, &reason) == TAMIS_EIO && reason.system_error);
    CHECK(tamis_kind_of("TAMISPAT", 8) == TAMIS_KIND_PATCH && tamis_kind_of("", 0) == 0);
    CHECK(tamis_records_load(&x, "f.tamis", NULL, &reason) == TAMIS_EKIND);
    CHECK(strstr(reason.text, "this is a filter, not a set of records") != NULL);
    tamis_filter *other = NULL;
    CHECK(tamis_filter_open(&other, "i.tamis", NULL, &reason) == TAMIS_EKIND);
    CHECK(strstr(reason.text, "this is a set of records, not a filter") != NULL);
    tamis_filter_free(f);
    subject_free(s);
}

/* ---- damage ---------------------------------------------------------------------------------- */

TEST(every_truncation_is_refused)
{
    uint64_t rng = harness_seed() + 6;
    for (unsigned i = 0; i < WORLDS; i++) {
        struct subject *s = subject_small(&rng, i % 2);
        damage_cut(&s->bytes, KIND_INDEX, &(tamis_open_options){0});
        subject_free(s);
    }
}

TEST(every_flipped_bit_is_found)
{
    uint64_t rng = harness_seed() + 7;
    for (unsigned i = 0; i < WORLDS; i++) {
        struct subject *s = subject_small(&rng, i % 2);
        damage_flip(&s->bytes, KIND_INDEX, &(tamis_open_options){0});
        subject_free(s);
    }
}

/* What is not refused can be asked and changed. */
static unsigned check_forged(const struct subject *s, struct bytes *forged, uint64_t *rng)
{
    struct set *made = damage_forged(forged, KIND_INDEX, &(tamis_open_options){0});
    if (!made)
        return 0;
    tamis_records *out = as_records(made);
    tamis_records_facts info;
    tamis_records_info(out, &info);
    if (info.attributes == s->world.p) {
        uint32_t copies[RECORDS];
        memcpy(copies, s->copies, sizeof copies);
        world_steps(&s->world, out, rng, copies, 20);
        CHECK(world_compare(&s->world, out, out) == 0);
    }
    tamis_records_free(out);
    return 1;
}

TEST(forged_bytes_are_refused_or_kept)
{
    uint64_t rng = harness_seed() + 8;
    unsigned kept = 0;
    for (unsigned i = 0; i < WORLDS; i++) {
        struct subject *s = subject_small(&rng, i % 4);
        struct bytes forged = {0};
        for (unsigned j = 0; j < HARNESS_TIMES(400u, 20000u); j++) {
            bytes_forge(&forged, &s->bytes, &rng);
            kept += check_forged(s, &forged, &rng);
        }
        bytes_free(&forged);
        subject_free(s);
    }
    CHECK_MSG(kept > 100, "%u", kept);
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
    CHECK(container_open(&c, bytes->data, bytes->len, KIND_INDEX, NULL) == TAMIS_OK);
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
    struct bytes bytes = bytes_of_index(x, 0);
    CHECK(decode_with_values(&bytes, 0, &reason) == TAMIS_OK);
    CHECK(decode_with_values(&bytes, 8, &reason) == TAMIS_EFORMAT);
    CHECK_MSG(strstr(reason.text, "too close") != NULL, "%s", reason.text);
    bytes_free(&bytes);
    tamis_records_free(x);
}

/* ---- faults ---------------------------------------------------------------------------------- */

TEST(a_write_that_fails_is_told)
{
    uint64_t rng = harness_seed() + 9;
    for (unsigned i = 0; i < WORLDS; i++) {
        struct subject *s = subject_small(&rng, i % 2);
        damage_writes(records_set(s->x));
        subject_free(s);
    }
}

TEST(without_memory_nothing_changes)
{
    uint64_t rng = harness_seed() + 10;
    for (unsigned i = 0; i < WORLDS; i++) {
        struct subject *s = subject_small(&rng, i % 4);
        damage_memory(&s->bytes, KIND_INDEX, &(tamis_open_options){0});
        subject_free(s);
    }
}

HARNESS_MAIN
