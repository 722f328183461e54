/* Smooth filters of many parts as bytes: saved, mapped, patched; and bytes that somebody arranged. */
#include <sys/mman.h>

#include "bits/lines_place.h"
#include "bits/lines_stash.h"
#include "fault.h"
#include "format/format.h"
#include "harness.h"
#include "histories.h"
#include "pieces.h"
#include "tamis/replica.h"

static const uint8_t family_key[TAMIS_KEY_LEN] = "smooth in bytes";

static void fill(tamis_filter *f, uint64_t from, uint64_t to)
{
    enum { RUN = 256 };
    uint64_t keys[RUN];
    tamis_digest digests[RUN];
    for (uint64_t i = from; i < to; i += RUN) {
        size_t n = to - i < RUN ? (size_t)(to - i) : RUN;
        for (size_t j = 0; j < n; j++)
            keys[j] = i + j;
        tamis_filter_digest_fixed(f, keys, sizeof *keys, n, digests);
        CHECK(tamis_filter_add_many(f, digests, n, NULL, NULL) == TAMIS_OK);
    }
}

static uint64_t missed(const tamis_filter *f, uint64_t from, uint64_t to)
{
    uint64_t n = 0;
    for (uint64_t i = from; i < to; i++)
        n += !tamis_filter_has(f, &i, sizeof i);
    return n;
}

/* Grown from nothing, with one key so often that no stash counts it. */
static tamis_filter *grown(double fpp, uint64_t keys, bool deletable)
{
    tamis_options o = {
        .growth = TAMIS_SMOOTH, .fpp = fpp, .deletable = deletable, .key = family_key};
    tamis_filter *f = NULL;
    uint64_t often = 3;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    fill(f, 0, keys);
    for (unsigned i = 0; deletable && i < 5000; i++)
        CHECK(tamis_filter_add(f, &often, sizeof often, NULL) == TAMIS_OK);
    return f;
}

static tamis_filter *loaded(const struct bytes *bytes)
{
    tamis_filter *f = NULL;
    tamis_reason reason = {0};
    CHECK_MSG(tamis_filter_decode(&f, bytes->data, bytes->len, NULL, &reason) == TAMIS_OK, "%s",
              reason.text);
    return f;
}

static tamis_filter *mapped(const struct bytes *bytes)
{
    struct set *s = NULL;
    tamis_reason reason = {0};
    void *pages =
        mmap(NULL, bytes->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(pages, bytes->data, bytes->len);
    struct mapping mapping = {.data = pages, .len = bytes->len};
    CHECK_MSG(set_from_mapping(&s, KIND_FILTER, mapping, NULL, &reason) == TAMIS_OK, "%s",
              reason.text);
    return s ? as_filter(s) : NULL;
}

/* Loaded it is the same in all, and lives on; mapped it answers where it lies. */
static void check_kept(tamis_filter *f, uint64_t keys, bool deletable)
{
    struct bytes bytes = bytes_of(f, 0);
    tamis_filter *copy = loaded(&bytes), *view = mapped(&bytes);
    if (!copy || !view)
        return;
    struct bytes again = bytes_of(copy, 0), seen = bytes_of(view, 0);
    CHECK(bytes_equal(&bytes, &again) && bytes_equal(&bytes, &seen));
    CHECK(tamis_filter_equal(f, copy) && tamis_filter_equal(view, f));
    CHECK(missed(f, 0, keys) == 0 && missed(copy, 0, keys) == 0 && missed(view, 0, keys) == 0);
    for (uint64_t i = 0; i < keys; i++) {
        uint64_t stranger = i + (UINT64_C(1) << 40);
        CHECK(tamis_filter_has(f, &stranger, 8) == tamis_filter_has(view, &stranger, 8));
    }
    uint64_t often = 3;
    uint64_t counted = tamis_filter_count(copy, &often, sizeof often);
    CHECK_MSG(deletable ? counted >= 5001 && counted < 5010 : counted == 1, "%g", (double)counted);
    for (unsigned i = 0; deletable && i < 5000; i++)
        CHECK(tamis_filter_remove(copy, &often, sizeof often, NULL) == TAMIS_OK);
    for (uint64_t i = 0; deletable && i < keys; i += 2)
        CHECK(tamis_filter_remove(copy, &i, sizeof i, NULL) == TAMIS_OK);
    fill(copy, keys, keys + keys / 2);
    CHECK(missed(copy, keys, keys + keys / 2) == 0);
    bytes_free(&again);
    again = bytes_of(copy, 0);
    tamis_filter *last = loaded(&again);
    CHECK(last && tamis_filter_equal(last, copy));
    tamis_filter_free(last);
    tamis_filter_free(copy);
    tamis_filter_free(view);
    bytes_free(&bytes);
    bytes_free(&again);
    bytes_free(&seen);
}

TEST(every_width_and_size_is_kept)
{
    static const double rates[] = {0.1, 0.01, 0.005, 0.001, 0.0001};
    uint64_t coarse = 0, excess = 0, stashed = 0, deepest = 0;
    for (unsigned i = 0; i < 5; i++)
        for (unsigned size = 0; size < 3; size++) {
            static const uint64_t sizes[] = {300, 20000, 2300000};
            uint64_t keys = size == 2 && i > 1 ? 60000 : sizes[size];
            tamis_filter *f = grown(rates[i], keys, i % 2);
            const struct lines *lines = set_lines(&f->set);
            for (uint32_t p = 0; p < lines_parts(lines); p++) {
                struct part_facts facts = part_facts(lines_part(lines, p));
                coarse += facts.coarse;
                excess += facts.excess;
                stashed += facts.stashed;
                deepest = max_u64(deepest, facts.depth);
                CHECK_MSG(part_wrong(lines_part(lines, p)) == NULL, "%s",
                          part_wrong(lines_part(lines, p)));
            }
            check_kept(f, keys, i % 2);
            tamis_filter_free(f);
        }
    CHECK_MSG(coarse > 100 && excess && stashed > 1000 && deepest == 9, "%g %g %g %g",
              (double)coarse, (double)excess, (double)stashed, (double)deepest);
}

/* What comes later changes a filter that was saved and loaded as it changes the one that lived on, to the same
   bytes. A stash that removals emptied, for one, is not in the bytes. */
TEST(a_loaded_filter_lives_on_alike)
{
    uint64_t rng = harness_seed(), there[4000];
    for (unsigned i = 0; i < HARNESS_TIMES(100, 1000); i++) {
        tamis_options o = {
            .growth = TAMIS_SMOOTH, .fpp = 0.01, .deletable = true, .key = family_key};
        tamis_filter *f = NULL;
        uint64_t n = 0;
        CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
        for (unsigned step = 0; step < 40; step++) {
            struct bytes before = bytes_of(f, 0);
            tamis_filter *copy = loaded(&before);
            for (unsigned j = 0; j < 100; j++) {
                bool adds = n == 0 || rng_next(&rng) % 5 < 3;
                uint64_t at = adds ? n++ : rng_next(&rng) % n;
                uint64_t key = there[at] = adds ? rng_next(&rng) : there[at];
                there[at] = adds ? key : there[--n];
                for (unsigned which = 0; which < 2; which++)
                    CHECK((adds ? tamis_filter_add(which ? copy : f, &key, sizeof key, NULL)
                                : tamis_filter_remove(which ? copy : f, &key, sizeof key, NULL)) ==
                          TAMIS_OK);
            }
            struct bytes lived = bytes_of(f, 0), went_on = bytes_of(copy, 0);
            CHECK_MSG(bytes_equal(&lived, &went_on), "filter %u, step %u", i, step);
            bytes_free(&before);
            bytes_free(&lived);
            bytes_free(&went_on);
            tamis_filter_free(copy);
        }
        tamis_filter_free(f);
    }
}

TEST(patches_have_the_lines_that_changed)
{
    tamis_filter *older = grown(0.01, 205000, true), *newer = NULL; /* no part grows meanwhile */
    CHECK(tamis_filter_clone(&newer, older) == TAMIS_OK);
    fill(newer, 205000, 205300);
    for (uint64_t i = 0; i < 300; i++)
        CHECK(tamis_filter_remove(newer, &i, sizeof i, NULL) == TAMIS_OK);
    struct bytes patch = {0}, whole = bytes_of(newer, 0);
    CHECK(tamis_filter_diff(older, newer, 0, bytes_write, &patch, NULL) == TAMIS_OK);
    CHECK_MSG(patch.len < whole.len / 20, "%zu of %zu", patch.len, whole.len);
    CHECK(tamis_filter_apply(older, patch.data, patch.len, NULL) == TAMIS_OK);
    struct bytes made = bytes_of(older, 0);
    CHECK(bytes_equal(&made, &whole));
    bytes_free(&patch);
    bytes_free(&whole);
    bytes_free(&made);
    tamis_filter_free(older);
    tamis_filter_free(newer);
}

/* ---- copies ----------------------------------------------------------------------------------- */

static int take_message(void *follower, const void *data, size_t len)
{
    tamis_taken taken;
    tamis_reason reason = {0};
    tamis_error e = tamis_follower_take(follower, data, len, 0, &taken, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
    return 0;
}

/* The checksums that are kept are those of the bytes, and the copy has just these. */
static void check_copy(const tamis_filter *f, const tamis_follower *follower)
{
    tamis_filter *clone = NULL, *copy = NULL;
    uint8_t kept[16], fresh[16], copied[16];
    CHECK(tamis_filter_clone(&clone, f) == TAMIS_OK);
    CHECK(tamis_follower_filter(&copy, follower, NULL) == TAMIS_OK);
    CHECK(set_fingerprint(&f->set, true, kept) == TAMIS_OK);
    CHECK(set_fingerprint(&clone->set, true, fresh) == TAMIS_OK);
    CHECK(set_fingerprint(&copy->set, true, copied) == TAMIS_OK);
    CHECK(memcmp(kept, fresh, sizeof kept) == 0 && memcmp(kept, copied, sizeof kept) == 0);
    tamis_filter_free(clone);
    tamis_filter_free(copy);
}

/* Published while it is split, and joined again; memory runs out now and then, and then once more. */
TEST(copies_follow_growth_and_shrinking)
{
    struct fault fault;
    fault_init(&fault);
    uint64_t state = harness_seed(), from = 0, to = 0;
    tamis_options o = {.growth = TAMIS_SMOOTH,
                       .deletable = true,
                       .key = family_key,
                       .allocator = &fault.allocator};
    tamis_filter *f = NULL;
    tamis_origin *origin = NULL;
    tamis_follower *follower = NULL;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    CHECK(tamis_origin_new(&origin, f, &(tamis_origin_options){.owner = "x"}, NULL) == TAMIS_OK);
    CHECK(tamis_follower_new(&follower, &(tamis_follower_options){.lease = 3}, NULL) == TAMIS_OK);
    for (unsigned round = 0; round < 60; round++) {
        uint64_t some = round % 3 ? rng_next(&state) % 50 : to - from < 20000 ? 7000 : 20000;
        if (round < 30)
            fill(f, to, to + some), to += some;
        for (some = round < 30 ? some / 4 : some; some && from < to; some--, from++)
            CHECK(tamis_filter_remove(f, &from, sizeof from, NULL) == TAMIS_OK);
        if (round % 4 == 1)
            fault_arm(&fault, 1 + rng_next(&state) % 20, false);
        tamis_error e = tamis_origin_publish(origin, take_message, follower, NULL);
        CHECK(e == TAMIS_OK || (e == TAMIS_ENOMEM && round % 4 == 1));
        fault_arm(&fault, 0, false);
        if (e != TAMIS_OK)
            CHECK(tamis_origin_publish(origin, take_message, follower, NULL) == TAMIS_OK);
        check_copy(f, follower);
    }
    CHECK(lines_parts(set_lines(&f->set)) == 1);
    tamis_follower_free(follower);
    tamis_origin_free(origin);
    tamis_filter_free(f);
    CHECK(fault_clean(&fault));
}

/* ---- bytes that somebody arranged ------------------------------------------------------------ */

static struct section piece_of(const struct bytes *bytes, enum part_bytes what)
{
    struct container c;
    CHECK(container_open(&c, bytes->data, bytes->len, KIND_FILTER, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < c.sections; i++) {
        struct section s = container_section(&c, i);
        if (s.type == SECTION_LINES && s.owner % PART_PIECES == what)
            return s;
    }
    CHECK_MSG(false, "piece %d is not there", (int)what);
    return (struct section){0};
}

TEST(forged_lines_are_refused)
{
    tamis_filter *f = grown(0.01, 30000, true);
    struct bytes good = bytes_of(f, 0);
    struct section lines = piece_of(&good, PART_LINES), stash = piece_of(&good, PART_STASH);
    const uint64_t *entries = (const void *)(good.data + stash.offset);
    uint64_t at = 0, room = stash.len / 8;
    while (!entries[at] || entries[(at + 1) % room])
        at++; /* the last of a run */
    uint64_t entry = entries[at], line = entry >> 36, roomy = 0;
    unsigned width = lines_part(set_lines(&f->set), 0)->width, last = line_slots(width) - 1;
    while (slot_get(good.data + lines.offset + 64 * roomy, width, last - 1))
        roomy++;
    refused_with(&good, KIND_FILTER, lines, 64 * roomy + (width == 16 ? 2 : 0) + 2 * last, 0x101, 2,
                 "a slot behind a free one");
    refused_with(&good, KIND_FILTER, lines, 64 * line + (width == 16 ? 0 : 60), 0,
                 width == 16 ? 2 : 4, "an entry of its stash that lookups would not see");
    refused_with(&good, KIND_FILTER, stash, 8 * at, UINT64_C(1) << 63 | 0x1001, 8,
                 "an entry of its stash");
    refused_with(&good, KIND_FILTER, stash, 8 * at, entry & ~UINT64_C(0xffffff000), 8,
                 "an entry of its stash");
    refused_with(&good, KIND_FILTER, stash, 8 * at, entry + 1, 8, "its number of entries is wrong");
    refused_with(&good, KIND_FILTER, stash, 8 * at, 0, 8, "its number of entries is wrong");
    refused_with(&good, KIND_FILTER, stash, 8 * ((at + 1) % room), entry, 8, "");
    struct section excess = piece_of(&good, PART_EXCESS);
    refused_with(&good, KIND_FILTER, excess, 0, 0, 8, "an entry of its lists");
    refused_with(&good, KIND_FILTER, excess, 8, 0, 8, "an entry of its lists");
    refused_with(&good, KIND_FILTER, excess, 0, UINT64_C(1) << 62 | 1, 8, "an entry of its lists");
    bytes_free(&good);
    tamis_filter_free(f);
    f = grown(0.1, 300000, false);
    good = bytes_of(f, 0);
    struct section coarse = piece_of(&good, PART_COARSE);
    lines = piece_of(&good, PART_LINES);
    CHECK(lines_part(set_lines(&f->set), 0)->width == 14);
    for (unsigned i = 7; i < 64; i += 8)
        refused_with(&good, KIND_FILTER, lines, i, good.data[lines.offset + i] | 0x80, 1,
                     "bits of a line that belong to no slot");
    refused_with(&good, KIND_FILTER, coarse, 0, 1, 8, "an entry of its lists");
    refused_with(&good, KIND_FILTER, coarse, 8, 1000000, 8, "its number of entries is wrong");
    bytes_free(&good);
    tamis_filter_free(f);
}

/* Whatever is let through can be lived with. */
TEST(turned_bits_do_no_harm)
{
    uint64_t rng = harness_seed();
    unsigned taken = 0, rounds = HARNESS_TIMES(400, 5000);
    tamis_filter *f = grown(0.1, 40000, true);
    struct bytes good = bytes_of(f, 0), bad = {0};
    struct section lines = piece_of(&good, PART_LINES);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t from = i % 2 ? lines.offset : 128, n = i % 2 ? lines.len : good.len - 128;
        bad.len = 0;
        bytes_write(&bad, good.data, good.len);
        for (unsigned j = 0; j <= i % 3; j++)
            bad.data[from + rng_next(&rng) % n] ^= (uint8_t)(1 << rng_next(&rng) % 8);
        bytes_repair(&bad);
        tamis_filter *made = NULL;
        if (tamis_filter_decode(&made, bad.data, bad.len, NULL, NULL) != TAMIS_OK)
            continue;
        taken += i % 2;
        for (uint64_t key = 0; key < 300; key++)
            tamis_filter_remove(made, &key, sizeof key, NULL);
        fill(made, 50000, 54000);
        CHECK(missed(made, 50000, 54000) == 0);
        tamis_filter_free(made);
    }
    /* Another fingerprint is as good as the one that was there; half of all bits are other things. */
    CHECK_MSG(taken && taken < rounds * 2 / 5, "%u of %u were taken", taken, rounds / 2);
    bytes_free(&good);
    bytes_free(&bad);
    tamis_filter_free(f);
}

/* Hides a slot of the stash from lookups, which its line alone tells. */
static void hide_stashed(struct body *b, uint64_t *rng)
{
    const struct stash *stash = atomic_load(&b->stash);
    uint32_t at = (uint32_t)(rng_next(rng) % stash->room);
    while (!stash->entry[at])
        at = stash_next(stash, at);
    line_set_bound(body_line(b, stash_line(stash->entry[at])), b->width, slot_ones(b->width));
}

/* Turns a bit somewhere in a part: in its lines, its stash, its lists or its numbers. */
static void turn_bit(struct body *b, uint64_t *rng)
{
    struct part_facts facts = part_facts(b);
    unsigned what = (unsigned)(rng_next(rng) % (PART_PIECES + 1));
    uint64_t len = what < PART_PIECES ? part_len(&facts, what) : 0;
    uint8_t *at = len ? part_data(b, what) + rng_next(rng) % len
                      : (uint8_t *)(rng_next(rng) % 2 ? &b->mass : &b->keys);
    *at ^= (uint8_t)(1 << rng_next(rng) % 8);
}

/* Are all parts judged alike as a whole and by what changed? Returns how many are wrong. */
static unsigned judged_alike(const struct lines *l, const struct lines *before)
{
    unsigned bad = 0;
    for (uint32_t i = 0; i < lines_parts(l) && lines_parts(l) == lines_parts(before); i++) {
        const struct body *b = lines_part(l, i), *old = lines_part(before, i);
        uint8_t *changed = calloc(b->lines / 8 + 1, 1);
        CHECK(changed);
        if (b->lines == old->lines && b->width == old->width && b->depth == old->depth) {
            for (uint64_t line = 0; line < b->lines; line++)
                if (memcmp(body_line(b, line), body_line(old, line), LINE_BYTES) != 0)
                    changed[line / 8] |= (uint8_t)(1 << line % 8);
            const char *whole = part_wrong(b), *since = part_wrong_since(b, old, changed);
            CHECK_MSG(!whole == !since, "%s, but %s", whole ? whole : "right",
                      since ? since : "right");
            bad += whole != NULL;
        }
        free(changed);
    }
    return bad;
}

TEST(changes_are_judged_like_whole_parts)
{
    uint64_t rng = harness_seed();
    unsigned bad = 0, coarse = 0, rounds = HARNESS_TIMES(60, 1000);
    for (unsigned kind = 0; kind < 3; kind++) {
        static const double rates[] = {0.1, 0.01, 0.0001};
        tamis_filter *f = grown(rates[kind], kind ? 42000 : 300000, true);
        for (uint32_t i = 0; i < lines_parts(set_lines(&f->set)); i++)
            coarse += part_facts(lines_part(set_lines(&f->set), i)).coarse;
        for (unsigned i = 0; i < rounds; i++) {
            tamis_filter *other;
            uint64_t n = rng_next(&rng) % 100, often = 3;
            CHECK(tamis_filter_clone(&other, f) == TAMIS_OK);
            fill(other, 500000, 500000 + n);
            for (uint64_t key = n; key < n + n / 2; key++)
                CHECK(tamis_filter_remove(other, &key, sizeof key, NULL) == TAMIS_OK);
            if (i % 4 == 0)
                CHECK(tamis_filter_remove(other, &often, sizeof often, NULL) == TAMIS_OK);
            CHECK(judged_alike(set_lines(&other->set), set_lines(&f->set)) == 0);
            for (unsigned j = i % 8; j < 7; j++)
                turn_bit(lines_part(set_lines(&other->set), 0), &rng);
            if (i % 8 == 7)
                hide_stashed(lines_part(set_lines(&other->set), 0), &rng);
            bad += judged_alike(set_lines(&other->set), set_lines(&f->set));
            tamis_filter_free(other);
        }
        tamis_filter_free(f);
    }
    CHECK_MSG(bad > rounds && coarse, "%u wrong in %u, %u coarse", bad, rounds * 3, coarse);
}

/* What is made of a set whose bytes may be anything: a copy that changes, and unions with a smaller and a larger set. */
static void live_on(const tamis_filter *view)
{
    uint64_t sizes[] = {100, 60000};
    tamis_filter *copy = NULL;
    missed(view, 0, 30000);
    for (uint64_t i = 0; i < 30000; i++)
        tamis_filter_count(view, &i, sizeof i);
    CHECK(tamis_filter_clone(&copy, view) == TAMIS_OK);
    fill(copy, 100000, 101000);
    CHECK(missed(copy, 100000, 101000) == 0);
    for (uint64_t i = 0; i < 30000; i++)
        tamis_filter_remove(copy, &i, sizeof i, NULL);
    fill(copy, 0, 1000);
    CHECK(missed(copy, 0, 1000) == 0);
    tamis_filter_free(copy);
    for (unsigned i = 0; i < 2; i++) {
        tamis_filter *f = grown(0.01, sizes[i], true);
        CHECK(tamis_filter_merge(f, view, TAMIS_MERGE_RESTATE, NULL) == TAMIS_OK);
        CHECK(missed(f, 0, sizes[i]) == 0);
        tamis_filter_free(f);
    }
}

/* A mapped file that others overwrite: everything ends, lookups in lines and stash, copies, and what is done with them. */
TEST(a_file_that_others_overwrite)
{
    tamis_filter *f = grown(0.01, 30000, true), *view;
    struct bytes good = bytes_of(f, 0);
    uint64_t rng = harness_seed();
    view = mapped(&good);
    CHECK(missed(view, 0, 30000) == 0);
    uint8_t *pages = (uint8_t *)(uintptr_t)view->set.stack->mapping.data;
    struct section lines = piece_of(&good, PART_LINES), stash = piece_of(&good, PART_STASH);
    for (uint64_t i = 0; i < stash.len; i += 8) /* no cell is free, and some have no slot */
        put_u64(pages + stash.offset + i, i % 16 ? i / 16 << 36 | 1 : rng_next(&rng) >> 24 | 1);
    live_on(view);
    memset(pages + stash.offset, 0x55, stash.len);
    memset(pages + lines.offset, 0xff, 64 * 40); /* bounds of nothing: all go to the stash */
    live_on(view);
    tamis_filter_free(view);
    bytes_free(&good);
    tamis_filter_free(f);
}

HARNESS_MAIN
