/* Patches: from any version to any later one, close to the entropy of the change, and to nothing
 * else.
 */
#include "harness.h"
#include "format/format.h"
#include "histories.h"

#include "base/bytes.h"
#include "fault.h"
#include "set/set.h"
#include "common_plan.h"
#include "tamis/replica.h"

static struct bytes patch_of(const tamis_filter *older, const tamis_filter *newer, unsigned flags)
{
    struct bytes patch = {0};
    tamis_reason reason = {0};
    tamis_error e = tamis_filter_diff(older, newer, flags, bytes_write, &patch, &reason);
    if (!CHECK_MSG(e == TAMIS_OK, "%s: %s", tamis_error_name(e), reason.text))
        bytes_free(&patch);
    return patch;
}

static bool apply(tamis_filter *f, const struct bytes *patch)
{
    tamis_reason reason = {0};
    tamis_error e = tamis_filter_apply(f, patch->data, patch->len, &reason);
    return CHECK_MSG(e == TAMIS_OK, "%s: %s", tamis_error_name(e), reason.text);
}

static bool same_bytes(const tamis_filter *x, const tamis_filter *y, unsigned flags)
{
    struct bytes a = bytes_of(x, flags), b = bytes_of(y, flags);
    bool same = bytes_equal(&a, &b);
    bytes_free(&a);
    bytes_free(&b);
    return same;
}

/* ---- histories ------------------------------------------------------------------------------- */

/* older + patch = newer, to the byte; and what was patched can go on. */
static void check_patch(struct history *h, const tamis_filter *older, const tamis_filter *newer)
{
    struct bytes patch = patch_of(older, newer, 0), again = {0};
    tamis_filter *copy = NULL, *bits = NULL;
    if (patch.len == 0 || !CHECK(tamis_filter_clone(&copy, older) == TAMIS_OK))
        return;
    if (apply(copy, &patch)) {
        tamis_filter_facts info;
        CHECK(same_bytes(copy, newer, 0));
        CHECK(history_compare(copy, newer) == 0);
        CHECK(history_denied(h, copy) == 0);
        tamis_filter_info(copy, &info);
        CHECK(!info.read_only);
    }
    again = patch_of(older, newer, TAMIS_SAVE_BITS_ONLY);
    if (CHECK(tamis_filter_clone(&bits, older) == TAMIS_OK) && apply(bits, &again)) {
        tamis_filter_facts info;
        tamis_filter_info(bits, &info);
        CHECK(info.read_only);
        CHECK(same_bytes(bits, newer, TAMIS_SAVE_BITS_ONLY));
        CHECK(tamis_filter_add(bits, "x", 1, NULL) == TAMIS_EREADONLY);
        CHECK(history_denied(h, bits) == 0);
    }
    bytes_free(&patch);
    bytes_free(&again);
    tamis_filter_free(copy);
    tamis_filter_free(bits);
}

TEST(a_patch_leads_from_any_version_to_any_later_one)
{
    uint64_t seed = harness_seed();
    for (unsigned round = 0; round < HARNESS_TIMES(10u, 150u); round++)
        for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
            struct history h;
            tamis_filter *f = history_new(&h, kind, seed + round), *older;
            history_steps(&h, f, round % 3 * 15);
            for (unsigned part = 0; part < 3; part++) {
                unsigned long before = atomic_load(&harness.failed_checks);
                if (!CHECK(tamis_filter_clone(&older, f) == TAMIS_OK))
                    break;
                history_steps(&h, f, part * 8);
                check_patch(&h, older, f);
                tamis_filter_free(older);
                if (atomic_load(&harness.failed_checks) != before)
                    printf("%s, round %u, part %u\n", history_kind(kind), round, part);
            }
            tamis_filter_free(f);
        }
}

/* A follower that has bits only, fed with one patch after the other. */
TEST(a_copy_of_bits_follows)
{
    uint64_t seed = harness_seed() + 77;
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        tamis_filter *f = history_new(&h, kind, seed), *copy = NULL, *older;
        struct bytes bytes = bytes_of(f, TAMIS_SAVE_BITS_ONLY);
        tamis_open_options o = {.clock = history_clock, .clock_context = &h};
        CHECK(tamis_filter_decode(&copy, bytes.data, bytes.len, &o, NULL) == TAMIS_OK);
        bytes_free(&bytes);
        for (unsigned i = 0; i < 10; i++) {
            CHECK(tamis_filter_clone(&older, f) == TAMIS_OK);
            history_steps(&h, f, 5);
            struct bytes patch = patch_of(older, f, TAMIS_SAVE_BITS_ONLY);
            apply(copy, &patch);
            CHECK(history_denied(&h, copy) == 0);
            CHECK(same_bytes(copy, f, TAMIS_SAVE_BITS_ONLY));
            bytes_free(&patch);
            tamis_filter_free(older);
        }
        tamis_filter_free(copy);
        tamis_filter_free(f);
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint64_t changed_bits(const struct vector *x, const struct vector *y, uint64_t *touched)
{
    uint64_t m = vector_positions_total(x), changed = 0, here = 0;
    *touched = 0;
    for (uint64_t i = 0; i < (m + 63) / 64; i++) {
        uint64_t word = vector_word(x, i) ^ vector_word(y, i);
        changed += (uint64_t)__builtin_popcountll(word);
        here |= word;
        if (i % 8 == 7) {
            *touched += here != 0;
            here = 0;
        }
    }
    return changed;
}

static void add_fresh(tamis_filter *f, uint64_t *next, uint64_t n)
{
    tamis_digest digests[64];
    uint64_t keys[64];
    for (uint64_t i = 0; i < n; i += 64) {
        size_t some = n - i < 64 ? (size_t)(n - i) : 64;
        for (size_t j = 0; j < some; j++)
            keys[j] = (*next)++;
        tamis_filter_digest_fixed(f, keys, sizeof *keys, some, digests);
        CHECK(tamis_filter_add_many(f, digests, some, NULL, NULL) == TAMIS_OK);
    }
}

/* Keys added to a filter of m bits until about the share `density` of the bits changed. */
static void measure(tamis_layout layout, double density, uint64_t m, bool from_empty)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "entropy entropy";
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = layout,
                       .bits = m,
                       .hashes = 7,
                       .capacity = m,
                       .key = key,
                       .overfill = true};
    tamis_filter *f, *older;
    uint64_t next = harness_seed(), touched;
    if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
        return;
    if (!from_empty)
        add_fresh(f, &next, m / 40);
    CHECK(tamis_filter_clone(&older, f) == TAMIS_OK);
    const struct vector *x = set_layers(&older->set)->v[0], *y = set_layers(&f->set)->v[0];
    double here = from_empty ? 0 : 0.16; /* fill before: some bits of a new key are set already */
    add_fresh(f, &next, (uint64_t)((double)m * density * (1 + density) / (1 - here) / 7) + 1);
    uint64_t changed = changed_bits(x, y, &touched);
    struct bytes patch = patch_of(older, f, 0);
    double entropy =
        layout == TAMIS_SPREAD
            ? tamis_plan_entropy((double)m, (double)changed)
            : lab_plan_entropy_blocks((double)m / 512, (double)touched, (double)changed);
    double ratio = 8 * (double)patch.len / entropy;
    printf("%-7s %s density %-8.2g changed %9" PRIu64
           "  coded %9zu bytes  entropy %11.1f  ratio %.4f\n",
           layout == TAMIS_SPREAD ? "spread" : "blocked", from_empty ? "empty" : "used ",
           (double)changed / (double)m, changed, patch.len, entropy / 8, ratio);
    CHECK_MSG(ratio <= 1.05, "%.4f", ratio);
    CHECK(apply(older, &patch) && same_bytes(older, f, 0));
    bytes_free(&patch);
    tamis_filter_free(older);
    tamis_filter_free(f);
}

TEST(coded_close_to_the_entropy)
{
    static const double densities[] = {1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3};
    for (unsigned layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++)
        for (unsigned i = harness_slow(); i < sizeof densities / sizeof *densities; i++) {
            uint64_t m = densities[i] < 1e-4   ? UINT64_C(1) << 29
                         : densities[i] < 1e-2 ? UINT64_C(1) << 26
                                               : UINT64_C(1) << 23;
            measure((tamis_layout)layout, densities[i], m, true);
            measure((tamis_layout)layout, densities[i], m, false);
        }
    for (unsigned layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++)
        for (int used = 0; used < 2; used++) /* some 1300 bits changed, the front and all */
            measure((tamis_layout)layout, 1e-5, UINT64_C(1) << 27, !used);
}

/* A vector half full, as a filter at its capacity is: no patch is much longer than the bits. */
TEST(a_new_half_full_vector_costs_its_bits)
{
    for (unsigned layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        tamis_options o = {.growth = TAMIS_FIXED,
                           .layout = (tamis_layout)layout,
                           .capacity = 800000,
                           .overfill = true};
        tamis_filter *f, *older;
        uint64_t next = 0;
        tamis_filter_facts info;
        CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
        CHECK(tamis_filter_clone(&older, f) == TAMIS_OK);
        for (int part = 0; part < 4; part++) { /* fills from a quarter to nine tenths */
            add_fresh(f, &next, part < 2 ? 400000 : 600000);
            struct bytes patch = patch_of(older, f, 0);
            tamis_filter_info(f, &info);
            double raw = (double)info.bits / 8;
            printf("fill %.3f: coded %zu bytes, raw %.0f, ratio %.4f\n", info.fill, patch.len, raw,
                   (double)patch.len / raw);
            CHECK((double)patch.len <= 1.001 * raw + 100);
            bytes_free(&patch);
        }
        tamis_filter_free(older);
        tamis_filter_free(f);
    }
}

/* What a deletable filter's patch costs beside its bits; printed, and bounded loosely. */
TEST(counters_cost_a_few_bits_a_change)
{
    tamis_options o = {.growth = TAMIS_FIXED, .capacity = 200000, .deletable = true, .overfill = 1};
    tamis_filter *f, *older;
    uint64_t next = 0, gone = 0;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    add_fresh(f, &next, 150000);
    CHECK(tamis_filter_clone(&older, f) == TAMIS_OK);
    add_fresh(f, &next, 20000);
    for (; gone < 20000; gone++) {
        tamis_digest digest;
        tamis_filter_digest_fixed(f, &gone, sizeof gone, 1, &digest);
        CHECK(tamis_filter_remove_many(f, &digest, 1, NULL, NULL) == TAMIS_OK);
    }
    struct bytes all = patch_of(older, f, 0), bits = patch_of(older, f, TAMIS_SAVE_BITS_ONLY);
    printf("40000 keys changed: %zu bytes with counters, %zu bits only\n", all.len, bits.len);
    CHECK(all.len < 3 * bits.len);
    CHECK(apply(older, &all) && same_bytes(older, f, 0));
    bytes_free(&all);
    bytes_free(&bits);
    tamis_filter_free(older);
    tamis_filter_free(f);
}

TEST(nothing_changed_costs_almost_nothing)
{
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        tamis_filter *f = history_new(&h, kind, harness_seed() + 2);
        tamis_filter_facts info;
        history_steps(&h, f, 30);
        struct bytes patch = patch_of(f, f, 0);
        tamis_filter_info(f, &info);
        CHECK_MSG(patch.len <= 70 + info.vectors, "%s: %zu bytes", history_kind(kind), patch.len);
        CHECK(apply(f, &patch));
        bytes_free(&patch);
        tamis_filter_free(f);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static tamis_error try_apply(tamis_filter *f, const struct bytes *patch, tamis_reason *reason)
{
    *reason = (tamis_reason){0};
    uint8_t *copy = malloc(patch->len + 1); /* of this very size */
    memcpy(copy, patch->data, patch->len);
    tamis_error e = tamis_filter_apply(f, copy, patch->len, reason);
    free(copy);
    if (e != TAMIS_OK)
        CHECK(reason->text[0] != 0);
    return e;
}

TEST(a_patch_fits_one_version_only)
{
    struct history h, other;
    tamis_filter *f = history_new(&h, 17, 1), *older, *plain = history_new(&other, 14, 1), *copy;
    tamis_reason reason;
    history_steps(&h, f, 30);
    CHECK(tamis_filter_clone(&older, f) == TAMIS_OK);
    history_steps(&h, f, 10);
    struct bytes patch = patch_of(older, f, 0), bits = patch_of(older, f, TAMIS_SAVE_BITS_ONLY);
    struct bytes before = bytes_of(f, 0);
    CHECK(try_apply(f, &patch, &reason) == TAMIS_EBASE);
    CHECK(try_apply(f, &bits, &reason) == TAMIS_EBASE);
    struct bytes after = bytes_of(f, 0);
    CHECK(bytes_equal(&before, &after));
    CHECK(try_apply(plain, &patch, &reason) == TAMIS_EFAMILY);
    struct bytes unused = {0};
    CHECK(tamis_filter_diff(plain, f, 0, bytes_write, &unused, &reason) == TAMIS_EFAMILY);
    tamis_options o = h.options;
    o.growth = TAMIS_FIXED;
    CHECK(tamis_filter_new(&copy, &o, NULL) == TAMIS_OK);
    CHECK(tamis_filter_diff(copy, f, 0, bytes_write, &unused, &reason) == TAMIS_EKIND);
    CHECK(tamis_filter_diff(older, f, 32, bytes_write, &unused, &reason) == TAMIS_EARG);
    CHECK(try_apply(copy, &patch, &reason) == TAMIS_EBASE);
    tamis_filter_free(copy);
    /* a full patch needs counters */
    CHECK(tamis_filter_clone(&copy, older) == TAMIS_OK);
    CHECK(apply(copy, &bits));
    CHECK(try_apply(copy, &patch, &reason) == TAMIS_EREADONLY);
    /* and a filter is not a patch */
    CHECK(try_apply(older, &before, &reason) == TAMIS_EKIND);
    CHECK(try_apply(older, &(struct bytes){(uint8_t *)"x", 1, 0}, &reason) == TAMIS_EFORMAT);
    for (uint8_t version = 1; version <= 3; version += 2) {
        patch.data[8] = version;
        CHECK(try_apply(older, &patch, &reason) == TAMIS_EVERSION && reason.offset == 8);
    }
    bytes_free(&patch), bytes_free(&bits), bytes_free(&before), bytes_free(&after);
    bytes_free(&unused);
    tamis_filter_free(copy), tamis_filter_free(older), tamis_filter_free(f);
    tamis_filter_free(plain);
}

/* A small change of each kind. */
static struct bytes small_patch(struct history *h, unsigned kind, tamis_filter **older)
{
    tamis_filter *f = history_new(h, kind, 3);
    history_steps(h, f, 25);
    CHECK(tamis_filter_clone(older, f) == TAMIS_OK);
    history_steps(h, f, 4);
    struct bytes patch = patch_of(*older, f, 0);
    tamis_filter_free(f);
    return patch;
}

TEST(damaged_patches_are_refused)
{
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        tamis_filter *older;
        tamis_reason reason;
        struct bytes patch = small_patch(&h, kind, &older), before = bytes_of(older, 0);
        size_t step = harness_long() ? 1 : 1 + patch.len * 8 / HARNESS_TIMES(4000, 1);
        for (size_t bit = 0; bit < 8 * patch.len; bit += bit < 1024 ? 1 : step) {
            patch.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            tamis_error e = try_apply(older, &patch, &reason);
            CHECK_MSG(e == TAMIS_EFORMAT || e == TAMIS_ECHECKSUM || e == TAMIS_EVERSION ||
                          e == TAMIS_EKIND,
                      "bit %zu: %s", bit, tamis_error_name(e));
            patch.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        for (size_t len = 0; len < patch.len; len += len < 256 || !harness_slow() ? 1 : 5) {
            tamis_error e = try_apply(older, &(struct bytes){patch.data, len, 0}, &reason);
            CHECK(e == TAMIS_EFORMAT || e == TAMIS_ECHECKSUM);
        }
        struct bytes after = bytes_of(older, 0);
        CHECK(bytes_equal(&before, &after));
        bytes_free(&before), bytes_free(&after), bytes_free(&patch);
        tamis_filter_free(older);
    }
}

/* An allocator with a bound, for patches that ask for too much. */
struct bounded {
    tamis_allocator allocator;
    size_t live;
};

static void *bounded_alloc(void *context, size_t size)
{
    struct bounded *b = context;
    if (b->live + size > (size_t)64 << 20)
        return NULL;
    b->live += size;
    return malloc(size);
}

static void bounded_free(void *context, void *memory, size_t size)
{
    ((struct bounded *)context)->live -= size;
    free(memory);
}

/* From now on. */
static void keep_sums(const tamis_filter *f)
{
    uint8_t print[16];
    CHECK(set_fingerprint(&f->set, false, print) == TAMIS_OK);
}

/* Made on purpose, checksum and all: it is refused, or leads to the very version it names; nothing
   leaks. */
TEST(forged_patches_do_no_harm)
{
    uint64_t rng = harness_seed();
    unsigned rounds = HARNESS_TIMES(700, 20000);
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        struct bounded bounded = {
            .allocator = {.alloc = bounded_alloc, .free = bounded_free, .context = &bounded}};
        tamis_filter *older, *newer, *f = NULL;
        struct bytes patch = small_patch(&h, kind, &older), bytes = bytes_of(older, 0),
                     forged = {0};
        tamis_open_options o = {
            .allocator = &bounded.allocator, .clock = history_clock, .clock_context = &h};
        CHECK(tamis_filter_decode(&f, bytes.data, bytes.len, &o, NULL) == TAMIS_OK);
        keep_sums(f);
        size_t live = bounded.live;
        CHECK(tamis_filter_clone(&newer, older) == TAMIS_OK && apply(newer, &patch));
        for (unsigned i = 0; i < rounds && patch.len > 66; i++) {
            tamis_reason reason;
            size_t at = 56 + rng_next(&rng) % (patch.len - 64);
            forged.len = 0;
            bytes_write(&forged, patch.data, patch.len);
            if (rng_next(&rng) % 2)
                forged.data[at] ^= (uint8_t)(1u << rng_next(&rng) % 8);
            else
                for (size_t j = at; j < patch.len - 8; j++)
                    forged.data[j] = (uint8_t)rng_next(&rng);
            if (rng_next(&rng) % 8 == 0) {
                memmove(forged.data + at, forged.data + patch.len - 8, 8);
                forged.len = at + 8;
            }
            put_u64(forged.data + forged.len - 8, hash_of(forged.data, forged.len - 8));
            tamis_error e = try_apply(f, &forged, &reason);
            if (e == TAMIS_OK) { /* another number in the last range: the same stream */
                CHECK(same_bytes(f, newer, 0));
                tamis_filter_free(f);
                CHECK(tamis_filter_decode(&f, bytes.data, bytes.len, &o, NULL) == TAMIS_OK);
                keep_sums(f);
            } else {
                CHECK_MSG(e == TAMIS_EFORMAT || e == TAMIS_ECHECKSUM || e == TAMIS_ENOMEM ||
                              e == TAMIS_ELIMIT,
                          "%s: %s", history_kind(kind), tamis_error_name(e));
            }
            CHECK(bounded.live == live);
        }
        bytes_free(&forged), bytes_free(&bytes), bytes_free(&patch);
        tamis_filter_free(older), tamis_filter_free(newer), tamis_filter_free(f);
        CHECK(bounded.live == 0);
    }
}

/* ---- what a small change costs ---------------------------------------------------------------- */

/* A filter of many pages of checksums, changed in a few places again and again: what is kept up to date is
   what is made anew, and so are the patches. */
TEST(kept_sums_are_those_of_the_bits)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        bool deletable = kind & 1, smooth = kind & 2;
        tamis_options o = {
            .growth = TAMIS_FIXED, .capacity = 4 << 20, .deletable = deletable, .overfill = true};
        tamis_options lines = {.growth = TAMIS_SMOOTH, .deletable = deletable};
        tamis_filter *f = NULL, *copy = NULL;
        CHECK(tamis_filter_new(&f, smooth ? &lines : &o, NULL) == TAMIS_OK);
        for (uint64_t i = 0; smooth && i < 100000; i++) {
            uint64_t key = i << 20;
            CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
        }
        keep_sums(f);
        CHECK(smooth || set_layers(&f->set)->v[0]->sums->pages > 2 * PAGES_TOP);
        CHECK(!smooth || lines_part(set_lines(&f->set), 3)->rare->line_sums->pages > 2);
        CHECK(tamis_filter_clone(&copy, f) == TAMIS_OK);
        for (uint64_t i = 0; i < 20; i++) {
            for (uint64_t j = 10 * i; j < 10 * i + 10; j++)
                CHECK(tamis_filter_add(f, &j, sizeof j, NULL) == TAMIS_OK);
            uint64_t gone = 3 * i;
            if (deletable)
                tamis_filter_remove(f, &gone, sizeof gone, NULL);
            uint8_t kept[16], fresh[16];
            tamis_filter *clone;
            CHECK(tamis_filter_clone(&clone, f) == TAMIS_OK);
            CHECK(set_fingerprint(&f->set, false, kept) == TAMIS_OK);
            CHECK(set_fingerprint(&clone->set, false, fresh) == TAMIS_OK);
            CHECK(memcmp(kept, fresh, sizeof kept) == 0);
            struct bytes patch = patch_of(copy, f, 0);
            CHECK(apply(copy, &patch) && tamis_filter_equal(copy, f));
            bytes_free(&patch);
            tamis_filter_free(clone);
        }
        tamis_filter_free(f), tamis_filter_free(copy);
    }
}

/* Four adds to a filter of harness.size keys, so many times published and taken as a patch. */
static void change_and_publish(unsigned rounds, int growth)
{
    static const uint8_t family[16] = "no part grows"; /* of this one, while it is measured */
    uint64_t n = harness.size ? harness.size : 10000;
    tamis_options o = {.growth = growth, .key = family};
    if (growth == TAMIS_FIXED)
        o.capacity = n + 1000;
    tamis_origin_options origin_options = {.owner = "x"};
    tamis_filter *f = NULL, *older = NULL;
    tamis_origin *origin = NULL;
    struct bytes snapshot = {0};
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < n; i++)
        tamis_filter_add(f, &i, sizeof i, NULL);
    CHECK(tamis_origin_new(&origin, f, &origin_options, NULL) == TAMIS_OK);
    CHECK(tamis_origin_publish(origin, bytes_write, &snapshot, NULL) == TAMIS_OK);
    CHECK(tamis_filter_clone(&older, f) == TAMIS_OK);
    keep_sums(f), keep_sums(older);
    for (uint64_t i = 0; i < 4 * rounds; i++) {
        uint64_t key = n + i;
        CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
        if (i % 4 != 3)
            continue;
        struct bytes message = {0}, patch = patch_of(older, f, 0);
        CHECK(tamis_origin_publish(origin, bytes_write, &message, NULL) == TAMIS_OK);
        CHECK(message.len < 4096 && patch.len < 2048);
        bytes_free(&message), bytes_free(&patch);
    }
    bytes_free(&snapshot);
    tamis_origin_free(origin);
    tamis_filter_free(older), tamis_filter_free(f);
}

/* tests/python/test_costs.py counts the instructions of the first without those of the second. */
TEST(small_changes_are_published)
{
    change_and_publish(8, TAMIS_FIXED);
}

TEST(small_changes_are_prepared)
{
    change_and_publish(0, TAMIS_FIXED);
}

TEST(small_changes_of_lines_are_published)
{
    change_and_publish(8, TAMIS_SMOOTH);
}

TEST(small_changes_of_lines_are_prepared)
{
    change_and_publish(0, TAMIS_SMOOTH);
}

/* ---- faults ---------------------------------------------------------------------------------- */

struct failing {
    unsigned calls, fail_at;
};

static int failing_write(void *context, const void *data, size_t len)
{
    struct failing *w = context;
    (void)data, (void)len;
    return ++w->calls == w->fail_at;
}

TEST(without_memory_or_writes_nothing_changes)
{
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        struct fault fault;
        tamis_filter *original, *older = NULL, *newer = NULL;
        struct bytes patch = small_patch(&h, kind, &original), bytes = bytes_of(original, 0);
        fault_init(&fault);
        tamis_open_options o = {
            .allocator = &fault.allocator, .clock = history_clock, .clock_context = &h};
        CHECK(tamis_filter_decode(&older, bytes.data, bytes.len, &o, NULL) == TAMIS_OK);
        CHECK(tamis_filter_clone(&newer, older) == TAMIS_OK);
        tamis_error e = TAMIS_ENOMEM;
        for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 5000; n++) {
            uint8_t print[16]; /* its checksums are kept */
            fault_arm(&fault, n, n % 2);
            e = set_fingerprint(&newer->set, false, print);
        }
        size_t blocks = fault.blocks;
        e = TAMIS_ENOMEM;
        for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 5000; n++) {
            fault_arm(&fault, n, n % 2);
            e = tamis_filter_apply(newer, patch.data, patch.len, NULL);
            if (e != TAMIS_OK)
                CHECK(e == TAMIS_ENOMEM && fault.blocks == blocks);
        }
        CHECK(e == TAMIS_OK);
        e = TAMIS_ENOMEM;
        fault_arm(&fault, 0, false);
        keep_sums(older), keep_sums(newer);
        blocks = fault.blocks;
        for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 200; n++) {
            struct bytes again = {0};
            fault_arm(&fault, n, n % 2);
            e = tamis_filter_diff(older, newer, 0, bytes_write, &again, NULL);
            CHECK(fault.blocks == blocks);
            CHECK(e == TAMIS_ENOMEM || bytes_equal(&patch, &again));
            bytes_free(&again);
        }
        fault_arm(&fault, 0, false);
        for (unsigned i = 1; i <= 2; i++) {
            struct failing w = {0, i};
            CHECK(tamis_filter_diff(older, newer, 0, failing_write, &w, NULL) == TAMIS_EIO);
        }
        bytes_free(&patch), bytes_free(&bytes);
        tamis_filter_free(original), tamis_filter_free(older), tamis_filter_free(newer);
        CHECK(fault_clean(&fault));
    }
}

HARNESS_MAIN
