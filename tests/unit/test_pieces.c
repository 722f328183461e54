/* Filters written and read a piece at a time: the same bytes as at once, and the same refusals. */
#include "harness.h"
#include "histories.h"

#include "base/bytes.h"
#include "fault.h"
#include "set/set.h"
#include "forge.h"
#include "format/format.h"
#include "pieces.h"

static tamis_open_options opening(struct history *h)
{
    return (tamis_open_options){.key = h->key, .clock = history_clock, .clock_context = h};
}

TEST(every_state_goes_out_and_in)
{
    uint64_t seed = harness_seed(), rng = seed;
    for (unsigned round = 0; round < HARNESS_TIMES(6u, 100u); round++)
        for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
            struct history h;
            tamis_filter *f = history_new(&h, kind, seed + round);
            history_steps(&h, f, 10 + 10 * round);
            struct bytes bytes = bytes_of(f, 0);
            tamis_open_options o = opening(&h);
            tamis_filter *loaded =
                as_filter(pieces_round(filter_set(f), &bytes, round % 2, &o, &rng));
            if (CHECK_MSG(loaded, "%s, round %u", history_kind(kind), round)) {
                history_steps(&h, loaded, 5); /* it lives */
                CHECK(history_denied(&h, loaded) == 0);
            }
            tamis_filter_free(loaded);
            bytes_free(&bytes);
            tamis_filter_free(f);
        }
}

/* Written without its key: under another one nothing is made of it, from the first 128 bytes on; under its
   own it is as before, and has it. */
TEST(the_key_is_looked_at_first)
{
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        struct pieces_out *out;
        tamis_filter *f = history_new(&h, kind, 3);
        struct set *set = filter_set(f), *made;
        struct bytes with = bytes_of(f, 0), without = bytes_of(f, TAMIS_SAVE_NO_KEY);
        uint8_t *piece = malloc(without.len + 65536), other[TAMIS_KEY_LEN] = {1};
        size_t len = 0;
        CHECK(pieces_out_begin(&out, set, TAMIS_SAVE_NO_KEY) == TAMIS_OK);
        CHECK(pieces_out_read(out, set, 0, piece, 65536, &len) == TAMIS_OK);
        CHECK(len >= PIECES_HEAD && memcmp(piece, without.data, len) == 0);
        pieces_out_end(out);
        tamis_open_options o = opening(&h);
        for (int right = 0; right < 2; right++) {
            o.key = right ? h.key : other;
            struct pieces_in *in = pieces_in_begin(without.len, without.len, &o);
            if (kind % 2)
                pieces_in_adopt(in);
            CHECK(pieces_in_add(in, without.data, PIECES_HEAD - 1, NULL) == TAMIS_OK);
            CHECK(!pieces_in_keyless(in));
            tamis_error e = pieces_in_add(in, without.data + PIECES_HEAD - 1, 1, NULL);
            CHECK(e == (right ? TAMIS_OK : TAMIS_EKEY) && pieces_in_keyless(in));
            if (right) {
                size_t at = PIECES_HEAD;
                CHECK(memcmp(pieces_in_key(in), h.key, TAMIS_KEY_LEN) == 0);
                CHECK(pieces_in_add(in, without.data + at, without.len - at, NULL) == TAMIS_OK);
                CHECK(pieces_in_end(in, &made, NULL) == TAMIS_OK);
                struct bytes again = bytes_of(as_filter(made), 0);
                CHECK(bytes_equal(&again, kind % 2 ? &with : &without));
                bytes_free(&again);
                tamis_filter_free(as_filter(made));
            }
            pieces_in_free(in);
        }
        free(piece);
        bytes_free(&with);
        bytes_free(&without);
        tamis_filter_free(f);
    }
}

/* Whatever is freed was wiped of the key before: structures, and the headers that are written. */
TEST(freed_memory_has_no_key)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "sixteen secret b";
    uint64_t rng = harness_seed();
    for (unsigned hash = TAMIS_XXH3; hash <= TAMIS_H3; hash++) {
        struct fault fault;
        struct set *loaded;
        tamis_filter *f, *copy;
        struct bytes bytes = {0}, again = {0};
        fault_init(&fault);
        fault.secret = key;
        tamis_options o = {
            .capacity = 1000, .key = key, .hash = hash, .allocator = &fault.allocator};
        tamis_open_options open = {.key = key, .allocator = &fault.allocator};
        CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
        CHECK(tamis_filter_add(f, "x", 1, NULL) == TAMIS_OK);
        CHECK(tamis_filter_encode(f, 0, bytes_write, &bytes) == TAMIS_OK);
        CHECK(pieces_pull(filter_set(f), &again, 1 << 16, &rng, NULL) == TAMIS_OK &&
              bytes_equal(&bytes, &again));
        CHECK(pieces_push(&loaded, &bytes, 100, &rng, &open, NULL) == TAMIS_OK);
        CHECK(tamis_filter_clone(&copy, as_filter(loaded)) == TAMIS_OK);
        tamis_filter_free(copy);
        tamis_filter_free(as_filter(loaded));
        tamis_filter_free(f);
        CHECK_MSG(fault.left == 0, "%u", (unsigned)fault.left);
        CHECK(fault_clean(&fault));
        bytes_free(&bytes);
        bytes_free(&again);
    }
}

TEST(without_the_key_it_must_be_given)
{
    struct history h;
    uint64_t rng = harness_seed();
    tamis_filter *f = history_new(&h, 3, 3);
    history_steps(&h, f, 10);
    tamis_open_options o = opening(&h);
    pieces_keyless(filter_set(f), &o, &rng);
    tamis_filter_free(f);
}

/* ---- damage ---------------------------------------------------------------------------------- */

TEST(refuses_what_the_decoder_refuses)
{
    uint64_t rng = harness_seed();
    unsigned let_in = 0;
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        tamis_filter *f = history_new(&h, kind, 3);
        history_steps(&h, f, 25);
        struct bytes bytes = bytes_of(f, 0);
        tamis_open_options o = {.clock = history_clock, .clock_context = &h};
        let_in += pieces_forged(&bytes, KIND_FILTER, &o, &rng, HARNESS_TIMES(500, 20000));
        bytes_free(&bytes);
        tamis_filter_free(f);
    }
    CHECK(let_in > 0);
}

/* One of two large counters said to be where there is a small one. */
TEST(refuses_large_counters_elsewhere)
{
    uint64_t rng = harness_seed();
    tamis_options o = {.growth = TAMIS_SCALABLE, .capacity = 100, .deletable = true};
    tamis_filter *f;
    struct set *made;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < 40; i++)
        CHECK(tamis_filter_add(f, "many", 4, NULL) == TAMIS_OK);
    struct bytes bytes = bytes_of(f, 0);
    struct container c;
    uint64_t len, at;
    CHECK(container_open(&c, bytes.data, bytes.len, KIND_FILTER, NULL) == TAMIS_OK);
    uint8_t *escapes = bytes.data + (container_find(&c, SECTION_ESCAPES, 0, &len) - c.data);
    CHECK(len >= 32);
    for (at = 0; at < len && get_u64(escapes + at) == at / 16; at += 16)
        ;
    put_u64(escapes + at, get_u64(escapes + at) - 1);
    bytes_repair(&bytes);
    CHECK(pieces_push(&made, &bytes, 1000, &rng, NULL, NULL) == TAMIS_EFORMAT && !made);
    bytes_free(&bytes);
    tamis_filter_free(f);
}

static struct section section_of(const struct bytes *bytes, enum kind kind, uint32_t type)
{
    struct container c;
    struct head head;
    CHECK(set_open(&c, &head, kind, bytes->data, bytes->len, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < c.sections; i++)
        if (container_section(&c, i).type == type)
            return container_section(&c, i);
    return (struct section){0};
}

/* What must hold among the bits, their numbers and the counters, each broken alone. */
TEST(what_does_not_agree_is_refused)
{
    tamis_options o = {.growth = TAMIS_FIXED, .capacity = 1000, .deletable = true};
    tamis_filter *f;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (unsigned i = 0; i < 40; i++)
        CHECK(tamis_filter_add(f, "many", 4, NULL) == TAMIS_OK);
    struct bytes good = bytes_of(f, 0), plain = bytes_of(f, TAMIS_SAVE_BITS_ONLY);
    struct section bits = section_of(&good, KIND_FILTER, SECTION_BITS);
    struct section counters = section_of(&good, KIND_FILTER, SECTION_COUNTERS);
    struct section large = section_of(&good, KIND_FILTER, SECTION_ESCAPES);
    struct section ones = section_of(&good, KIND_FILTER, SECTION_ONES);
    uint64_t at = get_u64(good.data + large.offset), zero = 0; /* a counter of 15, a byte of none */
    while (good.data[bits.offset + zero])
        zero++;
    refused_with(&good, KIND_FILTER, bits, zero, 1, 1, "bits and counters do not agree");
    refused_with(&good, KIND_FILTER, bits, at / 8, 0, 1, "bits and counters do not agree");
    refused_with(&good, KIND_FILTER, counters, 4 * zero, 1, 1, "bits and counters do not agree");
    refused_with(&good, KIND_FILTER, counters, at / 2, at & 1 ? 0xe0 : 0x0e, 1,
                 "not in their table");
    refused_with(&good, KIND_FILTER, large, 8, 14, 8, "not in their table");
    refused_with(&good, KIND_FILTER, large, 0, 8 * zero, 8, "not in their table");
    refused_with(&good, KIND_FILTER, large, 16, at, 8, "not in their table");
    refused_with(&good, KIND_FILTER, large, large.len - 16, UINT64_MAX, 8, "not in their table");
    refused_with(&good, KIND_FILTER, ones, 0, 1, 8, "bits set, not 1");
    refused_with(&plain, KIND_FILTER, section_of(&plain, KIND_FILTER, SECTION_BITS), zero, 1, 1,
                 "bits set, not");
    bytes_free(&good), bytes_free(&plain);
    tamis_filter_free(f);
}

/* Five vectors in six columns, the last of which is nobody's. */
TEST(a_column_without_a_vector_is_refused)
{
    tamis_options o = {.growth = TAMIS_DYNAMIC, .capacity = 100, .vectors = 10};
    tamis_filter *f;
    tamis_filter_facts info;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (uint64_t i = 0; tamis_filter_info(f, &info), info.vectors < 5; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    struct bytes good = bytes_of(f, 0);
    struct section matrix = section_of(&good, KIND_FILTER, SECTION_MATRIX);
    uint8_t first = good.data[matrix.offset];
    refused_with(&good, KIND_FILTER, matrix, 0, first | 32u, 1, "a column without a vector");
    refused_with(&good, KIND_FILTER, matrix, 0, first ^ 4u, 1, "vector 2 has");
    bytes_free(&good);
    tamis_filter_free(f);
}

TEST(too_much_aside_is_refused)
{
    struct history h;
    tamis_filter *f = history_new(&h, 0, 3);
    struct bytes bytes = bytes_of(f, 0);
    struct pieces_in *in = pieces_in_begin(bytes.len, 64, NULL);
    CHECK(pieces_in_add(in, bytes.data, bytes.len, NULL) == TAMIS_EKIND);
    pieces_in_free(in);
    bytes_free(&bytes);
    tamis_filter_free(f);
}

TEST(more_than_was_said_is_refused)
{
    struct history h;
    tamis_filter *f = history_new(&h, 0, 3);
    struct set *out;
    struct bytes bytes = bytes_of(f, 0);
    tamis_open_options o = opening(&h);
    struct pieces_in *in = pieces_in_begin(bytes.len, bytes.len, &o);
    CHECK(pieces_in_end(in, &out, NULL) == TAMIS_EFORMAT);
    CHECK(pieces_in_add(in, bytes.data, bytes.len - 1, NULL) == TAMIS_OK);
    CHECK(pieces_in_end(in, &out, NULL) == TAMIS_EFORMAT);
    CHECK(pieces_in_add(in, bytes.data, 2, NULL) == TAMIS_EFORMAT);
    pieces_in_free(in);
    bytes_free(&bytes);
    tamis_filter_free(f);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(without_memory_nothing_is_left)
{
    uint64_t rng = harness_seed();
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
        struct history h;
        struct fault fault;
        tamis_filter *original = history_new(&h, kind, 3);
        history_steps(&h, original, 25);
        struct bytes bytes = bytes_of(original, 0);
        tamis_open_options o = opening(&h);
        fault_init(&fault);
        set_free(pieces_failing(&bytes, &fault, &o, &rng));
        CHECK(fault_clean(&fault));
        bytes_free(&bytes);
        tamis_filter_free(original);
    }
}

/* ---- a moment that is kept ------------------------------------------------------------------- */

static uint64_t next_key;

static void add_some(struct set *set)
{
    for (unsigned i = 0; i < 50; i++, next_key++)
        CHECK(tamis_filter_add(as_filter(set), &next_key, sizeof next_key, NULL) == TAMIS_OK);
}

/* Keys added meanwhile, past the capacity, do not show; they are there all the same. */
TEST(the_moment_is_kept_while_keys_are_added)
{
    static const tamis_options kinds[] = {{.capacity = 3000},
                                          {.capacity = 200, .hash = TAMIS_SIP},
                                          {.capacity = 300000, .layout = TAMIS_SPREAD},
                                          {.capacity = 500, .growth = TAMIS_FLEXIBLE},
                                          {.capacity = 100000, .growth = TAMIS_FIXED},
                                          {.growth = TAMIS_SMOOTH},
                                          {.growth = TAMIS_SMOOTH, .fpp = 0.1},
                                          {.deletable = true},
                                          {.capacity = 500, .growth = TAMIS_SMOOTH},
                                          {.capacity = 3000, .growth = TAMIS_SMOOTH}};
    uint64_t rng = harness_seed();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tamis_filter *f;
        CHECK(tamis_filter_new(&f, &kinds[i], NULL) == TAMIS_OK);
        next_key = 0;
        struct set *set = filter_set(f);
        for (unsigned j = 0; j < 20; j++)
            add_some(set);
        pieces_moment(set, add_some, &rng);
        CHECK(next_key > 1000);
        for (uint64_t key = 0; key < next_key; key++)
            CHECK(tamis_filter_has(f, &key, sizeof key));
        tamis_filter_free(f);
    }
}

/* Parts that split and grow while one after the other is read; and one whose copies find no memory. */
TEST(the_moment_of_large_lines_is_kept)
{
    struct fault fault;
    fault_init(&fault);
    tamis_options o = {.growth = TAMIS_SMOOTH, .allocator = &fault.allocator};
    tamis_filter *f;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (next_key = 0; next_key < 60000; next_key++)
        CHECK(tamis_filter_add(f, &next_key, sizeof next_key, NULL) == TAMIS_OK);
    struct bytes before = bytes_of(f, 0), pieces = {0};
    CHECK(pieces_keep(filter_set(f)));
    uint64_t key = next_key;
    fault_arm(&fault, 1, false); /* the copy of a part */
    CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_ENOMEM);
    fault_arm(&fault, 0, false);
    struct pieces_out *out;
    CHECK(pieces_out_begin(&out, filter_set(f), 0) == TAMIS_OK);
    uint8_t piece[65536];
    for (uint64_t at = 0; at < pieces_out_size(out);) {
        size_t len;
        CHECK(pieces_out_read(out, filter_set(f), at, piece, sizeof piece, &len) == TAMIS_OK);
        bytes_write(&pieces, piece, len);
        at += len;
        for (unsigned i = 0; i < 50000; i++, next_key++)
            CHECK(tamis_filter_add(f, &next_key, sizeof next_key, NULL) == TAMIS_OK);
    }
    CHECK(bytes_equal(&before, &pieces) && next_key > 150000);
    pieces_out_end(out);
    pieces_keep_end(filter_set(f));
    for (key = 0; key < next_key; key++)
        CHECK(tamis_filter_has(f, &key, sizeof key));
    bytes_free(&before);
    bytes_free(&pieces);
    tamis_filter_free(f);
    CHECK(fault_clean(&fault));
}

TEST(what_cannot_be_kept)
{
    static const tamis_options kinds[] = {{.growth = TAMIS_SCALABLE, .deletable = true},
                                          {.growth = TAMIS_DYNAMIC, .capacity = 1000},
                                          {.growth = TAMIS_WINDOW, .capacity = 1000}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tamis_filter *f;
        CHECK(tamis_filter_new(&f, &kinds[i], NULL) == TAMIS_OK);
        CHECK(!pieces_keep(filter_set(f)));
        tamis_filter_free(f);
    }
}

/* Several chunks, large counters, and removals that wait. */
TEST(a_large_one_with_large_counters)
{
    uint64_t rng = harness_seed();
    for (unsigned dynamic = 0; dynamic < 2; dynamic++) {
        tamis_options o = {.capacity = 600000,
                           .deletable = true,
                           .growth = dynamic ? TAMIS_DYNAMIC : TAMIS_SCALABLE,
                           .hash = TAMIS_SIP};
        struct set *made;
        tamis_filter *f;
        CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
        for (uint64_t key = 0; key < 150000; key++)
            for (unsigned copies = key % 500 == 0 ? 40 : 1; copies; copies--)
                CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
        for (uint64_t key = 0; key < 100; key++)
            CHECK(tamis_filter_remove(f, &key, sizeof key, NULL) == TAMIS_OK);
        struct bytes bytes = bytes_of(f, 0), pieces = {0};
        tamis_reason reason = {0};
        CHECK(bytes.len > 1 << 20);
        CHECK(pieces_pull(filter_set(f), &pieces, 1 << 20, &rng, NULL) == TAMIS_OK);
        CHECK(bytes_equal(&bytes, &pieces));
        tamis_error e = pieces_push(&made, &bytes, 300000, &rng, NULL, &reason);
        CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
        CHECK(made && set_equal(filter_set(f), made));
        set_free(made);
        bytes_free(&bytes);
        bytes_free(&pieces);
        tamis_filter_free(f);
    }
}

HARNESS_MAIN
