/* Bytes: every state that can be reached is kept by save and load, and whatever is not such a state,
 * or is damaged, is refused with a place and a reason.
 */
#include "harness.h"
#include "histories.h"

#include "base/bytes.h"
#include "damage.h"
#include "set/set.h"
#include "forge.h"
#include "format/format.h"

static tamis_open_options opening(struct history *h)
{
    return (tamis_open_options){.key = h->key, .clock = history_clock, .clock_context = h};
}

static tamis_filter *decoded(const struct bytes *bytes, struct history *h)
{
    tamis_open_options o = opening(h);
    tamis_reason reason = {0};
    tamis_filter *f = NULL;
    tamis_error e = tamis_filter_decode(&f, bytes->data, bytes->len, &o, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s: %s at %" PRIu64, tamis_error_name(e), reason.text, reason.offset);
    return f;
}

static void check_infos(const tamis_filter *x, const tamis_filter *y)
{
    tamis_filter_facts a, b;
    tamis_filter_info(x, &a);
    tamis_filter_info(y, &b);
    CHECK(a.growth == b.growth && a.layout == b.layout && a.hash == b.hash);
    CHECK(a.deletable == b.deletable && a.unique == b.unique && a.has_key == b.has_key);
    CHECK(a.items == b.items && a.capacity == b.capacity && a.bits == b.bits);
    CHECK(a.vectors == b.vectors && a.hashes == b.hashes && a.pending == b.pending);
    CHECK_MSG(a.fpp == b.fpp && a.distinct == b.distinct && a.fill == b.fill, "%g %g, %g %g, %g %g",
              a.fpp, b.fpp, a.distinct, b.distinct, a.fill, b.fill);
    double off = a.fpp_now - b.fpp_now; /* a matrix of another width adds up in another order */
    CHECK_MSG(off * off <= 1e-18, "%.17g %.17g", a.fpp_now, b.fpp_now);
}

/* ---- identity -------------------------------------------------------------------------------- */

/* Bytes of the original, of what was loaded from them, and of a clone are the same. */
static void check_identity(struct history *h, const tamis_filter *f)
{
    struct bytes bytes = bytes_of(f, 0);
    if (!CHECK(bytes.len > 0))
        return;
    CHECK(bytes.len == tamis_filter_encoded_size(f, 0));
    tamis_filter *loaded = decoded(&bytes, h), *clone;
    if (CHECK(loaded != NULL)) {
        struct bytes again = bytes_of(loaded, 0);
        CHECK(bytes_equal(&bytes, &again));
        CHECK(tamis_filter_equal(f, loaded));
        CHECK(history_compare(f, loaded) == 0);
        check_infos(f, loaded);
        bytes_free(&again);
    }
    if (CHECK(tamis_filter_clone(&clone, f) == TAMIS_OK)) {
        struct bytes again = bytes_of(clone, 0);
        CHECK(bytes_equal(&bytes, &again));
        bytes_free(&again);
        tamis_filter_free(clone);
    }
    tamis_filter_free(loaded);
    bytes_free(&bytes);
}

TEST(every_state_is_kept)
{
    uint64_t seed = harness_seed();
    for (unsigned round = 0; round < HARNESS_TIMES(12u, 200u); round++)
        for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
            struct history h;
            tamis_filter *f = history_new(&h, kind, seed + round);
            if (!CHECK(f != NULL))
                continue;
            for (unsigned part = 0; part < 4; part++) {
                unsigned long before = atomic_load(&harness.failed_checks);
                check_identity(&h, f);
                CHECK(history_denied(&h, f) == 0);
                if (atomic_load(&harness.failed_checks) != before) {
                    printf("%s, round %u, part %u\n", history_kind(kind), round, part);
                    break;
                }
                history_steps(&h, f, 12);
            }
            tamis_filter_free(f);
        }
}

/* What was loaded goes on as if nothing had happened. */
TEST(life_goes_on_after_loading)
{
    uint64_t seed = harness_seed() + 1000;
    for (unsigned round = 0; round < HARNESS_TIMES(8u, 100u); round++)
        for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
            struct history h, other;
            tamis_filter *f = history_new(&h, kind, seed + round);
            history_steps(&h, f, 30);
            struct bytes bytes = bytes_of(f, 0);
            history_copy(&other, &h);
            tamis_filter *loaded = decoded(&bytes, &other);
            bytes_free(&bytes);
            if (!CHECK(loaded != NULL))
                continue;
            history_steps(&h, f, 15);
            history_steps(&other, loaded, 15);
            CHECK(memcmp(h.copies, other.copies, sizeof h.copies) == 0);
            CHECK_MSG(history_compare(f, loaded) == 0, "%s, round %u", history_kind(kind), round);
            CHECK(history_denied(&other, loaded) == 0);
            struct bytes x = bytes_of(f, 0), y = bytes_of(loaded, 0);
            CHECK_MSG(bytes_equal(&x, &y), "%s, round %u", history_kind(kind), round);
            bytes_free(&x);
            bytes_free(&y);
            tamis_filter_free(f);
            tamis_filter_free(loaded);
        }
}

/* ---- flags ----------------------------------------------------------------------------------- */

TEST(without_the_key_it_must_be_given)
{
    uint64_t seed = harness_seed() + 5;
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        tamis_filter *f = history_new(&h, kind, seed);
        history_steps(&h, f, 20);
        tamis_open_options o = opening(&h);
        struct set *loaded = damage_keyless(filter_set(f), &o);
        if (loaded)
            CHECK(history_compare(f, as_filter(loaded)) == 0);
        set_free(loaded);
        tamis_filter_free(f);
    }
}

/* Copies of bits: read-only, and never deny what the original does not. */
TEST(bits_only_is_read_only)
{
    uint64_t seed = harness_seed() + 6;
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        tamis_filter *f = history_new(&h, kind, seed), *clone = NULL;
        history_steps(&h, f, 40);
        struct bytes bytes = bytes_of(f, TAMIS_SAVE_BITS_ONLY);
        CHECK(bytes.len == tamis_filter_encoded_size(f, TAMIS_SAVE_BITS_ONLY));
        tamis_filter *loaded = decoded(&bytes, &h);
        tamis_filter_facts info, original;
        tamis_filter_info(loaded, &info);
        tamis_filter_info(f, &original);
        CHECK(info.read_only && info.pending == 0 && info.deletable == original.deletable);
        CHECK(info.fill == original.fill);
        CHECK(tamis_filter_add(loaded, "x", 1, NULL) == TAMIS_EREADONLY);
        CHECK(tamis_filter_clear(loaded) == TAMIS_EREADONLY);
        CHECK(tamis_filter_fold(loaded, TAMIS_MERGE_RESTATE, NULL) == TAMIS_EREADONLY);
        CHECK(tamis_filter_merge(loaded, f, 0, NULL) == TAMIS_EREADONLY);
        if (info.deletable) {
            CHECK(tamis_filter_remove(loaded, "x", 1, NULL) == TAMIS_EREADONLY);
            CHECK(tamis_filter_merge(f, loaded, 0, NULL) == TAMIS_EREADONLY);
        }
        for (unsigned i = 0; i < 2 * HISTORY_KEYS; i++) {
            char key[24];
            size_t len = history_key(i, key);
            if (tamis_filter_has(f, key, len))
                CHECK(tamis_filter_has(loaded, key, len));
        }
        CHECK(tamis_filter_clone(&clone, loaded) == TAMIS_OK);
        CHECK(tamis_filter_add(clone, "x", 1, NULL) == TAMIS_EREADONLY);
        struct bytes again = bytes_of(clone, 0);
        CHECK(bytes_equal(&bytes, &again));
        bytes_free(&again);
        bytes_free(&bytes);
        tamis_filter_free(clone);
        tamis_filter_free(loaded);
        tamis_filter_free(f);
    }
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
    check_identity(&h, young);
    h.now += 60000;
    CHECK(tamis_filter_expire(young) == TAMIS_OK);
    CHECK(!tamis_filter_has(young, "old", 3) && tamis_filter_has(young, "young", 5));
    check_identity(&h, young);
    tamis_filter_free(old);
    tamis_filter_free(young);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* A small filter of each kind, its bytes, and what opens them. */
static void each_small(void (*try)(tamis_filter *, struct bytes *, const tamis_open_options *))
{
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        unsigned long before = atomic_load(&harness.failed_checks);
        tamis_filter *f = history_new(&h, kind, 3);
        history_steps(&h, f, 25);
        struct bytes bytes = bytes_of(f, 0);
        tamis_open_options o = opening(&h);
        try(f, &bytes, &o);
        if (atomic_load(&harness.failed_checks) != before)
            printf("%s\n", history_kind(kind));
        bytes_free(&bytes);
        tamis_filter_free(f);
    }
}

static void cut(tamis_filter *f, struct bytes *bytes, const tamis_open_options *o)
{
    (void)f;
    damage_cut(bytes, KIND_FILTER, o);
}

TEST(every_truncation_is_refused)
{
    each_small(cut);
}

static void flip(tamis_filter *f, struct bytes *bytes, const tamis_open_options *o)
{
    (void)f;
    damage_flip(bytes, KIND_FILTER, o);
}

TEST(every_flipped_bit_is_found)
{
    each_small(flip);
}

static void forge(tamis_filter *f, struct bytes *bytes, const tamis_open_options *o)
{
    static uint64_t rng; /* another sequence for each filter */
    struct bytes forged = {0};
    rng ^= harness_seed();
    (void)f;
    for (unsigned i = 0; i < HARNESS_TIMES(1200u, 20000u); i++) {
        bytes_forge(&forged, bytes, &rng);
        struct set *out = damage_forged(&forged, KIND_FILTER, o);
        if (!out)
            continue;
        uint8_t found =
            (uint8_t)tamis_filter_has(as_filter(out), "key", 3); /* asked, and changed */
        CHECK(found <= 1);
        tamis_filter_add(as_filter(out), "key", 3, NULL);
        set_free(out);
    }
    bytes_free(&forged);
}

TEST(forged_bytes_are_refused_or_kept)
{
    each_small(forge);
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
    BAD(12, KIND_INDEX);
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

static void fail_writes(tamis_filter *f, struct bytes *bytes, const tamis_open_options *o)
{
    (void)bytes, (void)o;
    damage_writes(filter_set(f));
}

TEST(a_write_that_fails_is_told)
{
    each_small(fail_writes);
}

static void fail_memory(tamis_filter *f, struct bytes *bytes, const tamis_open_options *o)
{
    (void)f;
    damage_memory(bytes, KIND_FILTER, o);
}

TEST(without_memory_nothing_changes)
{
    each_small(fail_memory);
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
