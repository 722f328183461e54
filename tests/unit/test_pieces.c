/* Sets written and read a piece at a time: the same bytes as at once, and the same refusals. */
#include "harness.h"

#include "base/bytes.h"
#include "fault.h"
#include "forge.h"
#include "pieces.h"
#include "set/set.h"

#define SMALL 12000 /* bytes of subjects that are damaged */

static const enum kind kinds[] = {KIND_FILTER, KIND_RECORDS};

/* ---- identity -------------------------------------------------------------------------------- */

/* In pieces the same bytes come out, and they make an equal set, which goes on. */
static void out_and_in(struct subject *s, bool small, uint64_t *rng)
{
    struct bytes pieces = {0};
    struct set *made;
    tamis_reason reason = {0};
    CHECK(pieces_pull(s->set, &pieces, small ? 512 : 1 << 16, rng, NULL) == TAMIS_OK);
    CHECK(bytes_equal(&s->bytes, &pieces));
    tamis_error e = pieces_push(&made, &s->bytes, small ? 50 : 5000, rng, &s->opening, &reason);
    if (CHECK_MSG(e == TAMIS_OK && made, "%s: %s", s->name, reason.text)) {
        struct bytes again = bytes_of_set(made, 0);
        CHECK(set_kind(made) == set_kind(s->set) && bytes_equal(&s->bytes, &again));
        CHECK(set_equal(s->set, made) && subject_compare(s, s->set, made) == 0);
        subject_steps(s, made, 5); /* it lives */
        CHECK_MSG(subject_denied(s, made) == 0, "%s", s->name);
        bytes_free(&again);
    }
    set_free(made);
    bytes_free(&pieces);
}

TEST(every_state_goes_out_and_in)
{
    uint64_t seed = harness_seed(), rng = seed;
    for (unsigned round = 0; round < HARNESS_TIMES(12u, 200u); round++)
        for (unsigned kind = 0; kind < SUBJECT_KINDS; kind++) {
            struct subject *s = subject_new(kind, seed + round, 5 + 5 * round);
            out_and_in(s, round % 2, &rng);
            subject_free(s);
        }
}

/* Pieces all of one size. */
static void in_pieces_of(const struct subject *s, size_t size)
{
    struct pieces_in *in = pieces_in_begin(s->bytes.len, PIECES_ASIDE, &s->opening);
    struct set *set = NULL;
    for (size_t at = 0; at < s->bytes.len; at += size) {
        size_t len = s->bytes.len - at < size ? s->bytes.len - at : size;
        CHECK(pieces_in_add(in, s->bytes.data + at, len, NULL) == TAMIS_OK);
    }
    CHECK(pieces_in_end(in, &set, NULL) == TAMIS_OK);
    CHECK(set && set_equal(set, s->set));
    set_free(set);
    pieces_in_free(in);
}

static void in_pieces_of_every_size(struct subject *s)
{
    for (size_t size = 1; size <= s->bytes.len; size += size < 200 ? 1 : 97)
        in_pieces_of(s, size);
}

TEST(every_size_of_a_piece)
{
    subject_each(5, harness_seed() + 1, 6000, in_pieces_of_every_size);
}

/* ---- the key --------------------------------------------------------------------------------- */

/* Bytes without their key, in two pieces: under another key nothing is made of them, from the first 128
   bytes on; under their own they make the set, which is saved with it if it adopts it. */
static void with_key(const struct subject *s, const struct bytes *bytes, bool right, bool adopts)
{
    uint8_t other[TAMIS_KEY_LEN] = {1};
    tamis_open_options o = s->opening;
    struct set *made = NULL;
    o.key = right ? o.key : other;
    struct pieces_in *in = pieces_in_begin(bytes->len, bytes->len, &o);
    if (adopts)
        pieces_in_adopt(in);
    CHECK(pieces_in_add(in, bytes->data, PIECES_HEAD - 1, NULL) == TAMIS_OK);
    CHECK(!pieces_in_keyless(in));
    tamis_error e = pieces_in_add(in, bytes->data + PIECES_HEAD - 1, 1, NULL);
    CHECK(e == (right ? TAMIS_OK : TAMIS_EKEY) && pieces_in_keyless(in));
    if (right) {
        size_t at = PIECES_HEAD;
        CHECK(memcmp(pieces_in_key(in), s->opening.key, TAMIS_KEY_LEN) == 0);
        CHECK(pieces_in_add(in, bytes->data + at, bytes->len - at, NULL) == TAMIS_OK);
        CHECK(pieces_in_end(in, &made, NULL) == TAMIS_OK && set_equal(made, s->set));
        struct bytes again = bytes_of_set(made, 0);
        CHECK(bytes_equal(&again, adopts ? &s->bytes : bytes));
        bytes_free(&again);
        set_free(made);
    }
    pieces_in_free(in);
}

static void key_is_looked_at(struct subject *s)
{
    struct bytes without = bytes_of_set(s->set, TAMIS_SAVE_NO_KEY);
    uint64_t rng = harness_seed();
    uint8_t *piece = malloc(65536);
    size_t len = 0;
    struct pieces_out *out;
    struct set *made;
    CHECK(pieces_out_begin(&out, s->set, TAMIS_SAVE_NO_KEY) == TAMIS_OK);
    CHECK(pieces_out_read(out, s->set, 0, piece, 65536, &len) == TAMIS_OK);
    CHECK(len >= PIECES_HEAD && memcmp(piece, without.data, len) == 0);
    pieces_out_end(out);
    CHECK(pieces_push(&made, &without, 200, &rng, NULL, NULL) == TAMIS_EKEY && !made);
    for (unsigned i = 0; i < 4; i++)
        with_key(s, &without, i % 2, i / 2);
    free(piece);
    bytes_free(&without);
}

TEST(the_key_is_looked_at_first)
{
    subject_each(1, harness_seed() + 2, SIZE_MAX, key_is_looked_at);
}

/* Whatever is freed was wiped of the key before: structures, and the headers that are written. */
static void no_key_is_left(enum kind kind, tamis_hash hash)
{
    static const uint8_t key[TAMIS_KEY_LEN] = "sixteen secret b";
    uint64_t rng = harness_seed();
    struct fault fault;
    struct set *loaded, *copy;
    struct bytes again = {0};
    fault_init(&fault);
    fault.secret = key;
    tamis_open_options open = {.key = key, .allocator = &fault.allocator};
    struct set *set = set_of(kind, (tamis_records_options){.set.capacity = 1000,
                                                           .set.key = key,
                                                           .set.hash = hash,
                                                           .set.allocator = &fault.allocator});
    CHECK(item_add(set, 1) == TAMIS_OK);
    struct bytes bytes = bytes_of_set(set, 0);
    CHECK(pieces_pull(set, &again, 1 << 16, &rng, NULL) == TAMIS_OK);
    CHECK(bytes_equal(&bytes, &again));
    CHECK(pieces_push(&loaded, &bytes, 100, &rng, &open, NULL) == TAMIS_OK);
    CHECK(set_clone(&copy, loaded, false) == TAMIS_OK);
    set_free(copy);
    set_free(loaded);
    set_free(set);
    CHECK_MSG(fault.left == 0, "%u", (unsigned)fault.left);
    CHECK(fault_clean(&fault));
    bytes_free(&bytes);
    bytes_free(&again);
}

TEST(freed_memory_has_no_key)
{
    for (unsigned kind = 0; kind < 2; kind++)
        for (unsigned hash = TAMIS_XXH3; hash <= TAMIS_H3; hash++)
            no_key_is_left(kinds[kind], (tamis_hash)hash);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Let in, or refused, as by the decoder. */
static bool as_decoder(const struct bytes *bytes, enum kind kind, const tamis_open_options *o,
                       uint64_t *rng)
{
    struct set *whole = NULL, *made;
    tamis_reason reason = {0};
    tamis_error want = set_read(&whole, kind, bytes->data, bytes->len, 0, o, NULL);
    tamis_error e = pieces_push(&made, bytes, 3000, rng, o, &reason);
    CHECK_MSG((e == TAMIS_OK) == (want == TAMIS_OK), "%s, not %s: %s", tamis_error_name(e),
              tamis_error_name(want), reason.text);
    CHECK(e == TAMIS_OK || reason.text[0] != 0);
    bool in = e == TAMIS_OK && want == TAMIS_OK;
    if (in)
        CHECK(set_equal(whole, made));
    set_free(want == TAMIS_OK ? whole : NULL);
    set_free(made);
    return in;
}

static unsigned seen[KIND_END];

static void forge(struct subject *s)
{
    struct bytes forged = {0};
    uint64_t rng = harness_seed() + s->bytes.len;
    tamis_open_options o = s->opening;
    o.key = NULL; /* that of the bytes */
    for (unsigned i = 0; i < HARNESS_TIMES(500u, 20000u); i++) {
        bytes_forge(&forged, &s->bytes, &rng);
        if (i % 4 == 0)
            forged.data[pieces_draw(&rng, forged.len)] ^= (uint8_t)(1u << pieces_draw(&rng, 8));
        seen[s->kind] += as_decoder(&forged, s->kind, &o, &rng);
    }
    bytes_free(&forged);
}

TEST(refuses_what_the_decoder_refuses)
{
    memset(seen, 0, sizeof seen);
    subject_each(1, harness_seed() + 3, SMALL, forge);
    for (unsigned i = 0; i < 2; i++)
        CHECK_MSG(seen[kinds[i]] > 100, "%u: %u let in", i, seen[kinds[i]]);
}

/* A piece in the place of another, of another set, or missing. */
static void elsewhere(struct subject *s)
{
    uint64_t rng = harness_seed() + s->bytes.len;
    struct bytes other = {0}, cut = s->bytes;
    size_t size = 64 + (size_t)pieces_draw(&rng, s->bytes.len / 4), n = s->bytes.len / size;
    size_t a = (size_t)pieces_draw(&rng, n) * size, b = (size_t)pieces_draw(&rng, n) * size;
    bytes_write(&other, s->bytes.data, s->bytes.len);
    memcpy(other.data + a, s->bytes.data + b, size);
    memcpy(other.data + b, s->bytes.data + a, size);
    bool same = bytes_equal(&other, &s->bytes);
    CHECK(as_decoder(&other, s->kind, &s->opening, &rng) == same);
    bytes_free(&other);
    struct set *sibling = subject_sibling(s, 20);
    other = bytes_of_set(sibling, 0);
    if (other.len == s->bytes.len) {
        memcpy(other.data + a, s->bytes.data + a, size);
        seen[s->kind] += !as_decoder(&other, s->kind, &s->opening, &rng);
    }
    cut.len -= 1 + (size_t)pieces_draw(&rng, cut.len - 64);
    CHECK(!as_decoder(&cut, s->kind, &s->opening, &rng));
    bytes_free(&other);
    set_free(sibling);
}

TEST(pieces_of_elsewhere_are_refused)
{
    memset(seen, 0, sizeof seen);
    for (unsigned round = 0; round < 3; round++)
        subject_each(1, harness_seed() + 4 + round, SMALL, elsewhere);
    for (unsigned i = 0; i < 2; i++)
        CHECK_MSG(seen[kinds[i]] > 3, "%u: %u", i, seen[kinds[i]]);
}

/* Every cut: there is nothing to be had, and what came can be had again. */
static void cut(struct subject *s)
{
    for (size_t len = 1; len < s->bytes.len; len += 1 + len % 3) {
        struct pieces_in *in = pieces_in_begin(s->bytes.len, PIECES_ASIDE, &s->opening);
        struct set *set = NULL;
        struct bytes again = {0}, first = {s->bytes.data, len, len};
        CHECK(pieces_in_add(in, s->bytes.data, len, NULL) == TAMIS_OK);
        CHECK(pieces_in_end(in, &set, NULL) == TAMIS_EFORMAT && !set);
        CHECK(pieces_in_encode(in, bytes_write, &again) == TAMIS_OK);
        CHECK_MSG(bytes_equal(&again, &first), "%zu of %zu bytes", len, s->bytes.len);
        bytes_free(&again);
        pieces_in_free(in);
    }
}

TEST(cut_short)
{
    subject_each(5, harness_seed() + 5, 5000, cut);
}

static void said_otherwise(struct subject *s)
{
    struct set *out;
    struct pieces_in *in = pieces_in_begin(s->bytes.len, 64, NULL);
    CHECK(pieces_in_add(in, s->bytes.data, s->bytes.len, NULL) == TAMIS_EKIND);
    pieces_in_free(in);
    in = pieces_in_begin(s->bytes.len, s->bytes.len, &s->opening);
    CHECK(pieces_in_end(in, &out, NULL) == TAMIS_EFORMAT);
    CHECK(pieces_in_add(in, s->bytes.data, s->bytes.len - 1, NULL) == TAMIS_OK);
    CHECK(pieces_in_end(in, &out, NULL) == TAMIS_EFORMAT);
    CHECK(pieces_in_add(in, s->bytes.data, 2, NULL) == TAMIS_EFORMAT);
    pieces_in_free(in);
}

TEST(more_than_was_said_or_fits_aside_is_refused)
{
    subject_each(1, harness_seed(), SMALL, said_otherwise);
}

/* A set in which one key, or one record, has many copies. */
static struct set *many_copies(enum kind kind, tamis_growth growth)
{
    struct set *set = set_of(kind, (tamis_records_options){.set.growth = growth,
                                                           .set.capacity = 1000,
                                                           .set.deletable = true,
                                                           .verifier = TAMIS_VERIFIER_NONE});
    for (unsigned i = 0; i < 40; i++)
        CHECK(item_add(set, 7) == TAMIS_OK);
    return set;
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
static void broken_vectors(enum kind kind, tamis_growth growth)
{
    struct set *set = many_copies(kind, growth);
    struct bytes good = bytes_of_set(set, 0), plain = bytes_of_set(set, TAMIS_SAVE_BITS_ONLY);
    struct section bits = section_of(&good, kind, SECTION_BITS);
    struct section counters = section_of(&good, kind, SECTION_COUNTERS);
    struct section large = section_of(&good, kind, SECTION_ESCAPES);
    struct section ones = section_of(&good, kind, SECTION_ONES);
    uint64_t at = get_u64(good.data + large.offset), zero = 0, free = 0;
    while (good.data[bits.offset + zero]) /* a counter of 15, a byte of none */
        zero++;
    refused_with(&good, kind, bits, zero, 1, 1, "bits and counters do not agree");
    refused_with(&good, kind, bits, at / 8, 0, 1, "bits and counters do not agree");
    refused_with(&good, kind, counters, 4 * zero, 1, 1, "bits and counters do not agree");
    refused_with(&good, kind, counters, at / 2, at & 1 ? 0xe0 : 0x0e, 1, "not in their table");
    refused_with(&good, kind, large, 8, 14, 8, "not in their table");
    refused_with(&good, kind, large, 0, 8 * zero, 8, "not in their table");
    refused_with(&good, kind, large, 16, at, 8, "not in their table");
    refused_with(&good, kind, large, large.len - 16, UINT64_MAX, 8, "not in their table");
    while (free < large.len && get_u64(good.data + large.offset + free) == free / 16)
        free += 16;
    refused_with(&good, kind, large, free, get_u64(good.data + large.offset + free) - 1, 8,
                 "not in their table"); /* said to be where there is a small one */
    refused_with(&good, kind, ones, 0, 1, 8, "bits set, not 1");
    refused_with(&plain, kind, section_of(&plain, kind, SECTION_BITS), zero, 1, 1, "bits set, not");
    bytes_free(&good), bytes_free(&plain);
    set_free(set);
}

TEST(what_does_not_agree_is_refused)
{
    for (unsigned i = 0; i < 2; i++) {
        broken_vectors(kinds[i], TAMIS_FIXED);
        broken_vectors(kinds[i], TAMIS_SCALABLE);
    }
}

/* Five vectors in six columns, the last of which has no vector. */
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

/* Deletable records, none so far, which say that there is one: the table is empty, and not there. */
TEST(refuses_a_record_without_its_value)
{
    uint64_t rng = harness_seed();
    struct set *x = set_of(KIND_RECORDS, (tamis_records_options){.set.capacity = 100,
                                                                 .set.deletable = true,
                                                                 .verifier = TAMIS_VERIFIER_TABLE});
    struct bytes bytes = bytes_of_set(x, 0);
    struct container c;
    struct head head;
    CHECK(as_decoder(&bytes, KIND_RECORDS, NULL, &rng));
    CHECK(set_open(&c, &head, KIND_RECORDS, bytes.data, bytes.len, NULL) == TAMIS_OK);
    put_u64(bytes.data + (head.layers - bytes.data) + 24, 1);
    put_u64(bytes.data + BODY_AT + 168, 1);
    bytes_repair(&bytes);
    CHECK(set_open(&c, &head, KIND_RECORDS, bytes.data, bytes.len, NULL) == TAMIS_OK);
    CHECK(!as_decoder(&bytes, KIND_RECORDS, NULL, &rng));
    bytes_free(&bytes);
    set_free(x);
}

/* What must hold in a table, each broken alone. */
TEST(tables_that_cannot_be_are_refused)
{
    struct set *x = set_of(KIND_RECORDS, (tamis_records_options){.set.capacity = 100,
                                                                 .set.deletable = true,
                                                                 .verifier = TAMIS_VERIFIER_TABLE});
    for (uint64_t i = 0; i < 20; i++)
        CHECK(item_add(x, i) == TAMIS_OK);
    struct bytes good = bytes_of_set(x, 0);
    struct container c;
    struct head head;
    CHECK(set_open(&c, &head, KIND_RECORDS, good.data, good.len, NULL) == TAMIS_OK);
    struct section table = {0};
    for (uint32_t i = 0; i < c.sections && table.type != SECTION_TABLE; i++)
        table = container_section(&c, i);
    uint64_t second = get_u64(good.data + table.offset + TABLE_PAIR);
    refused_with(&good, KIND_RECORDS, table, 0, second, 8, "not in order");
    refused_with(&good, KIND_RECORDS, table, 8, 0, 8, "copies of a value");
    refused_with(&good, KIND_RECORDS, table, 8, UINT64_MAX, 8, "copies of a value");
    refused_with(&good, KIND_RECORDS, table, 8, 2, 8, "not the records of the layer");
    bytes_free(&good);
    set_free(x);
}

/* Two values of a table in the wrong order. Whether that is damage is known when all bytes are here;
   until then what came can be had again. */
TEST(cut_short_with_something_wrong)
{
    struct set *x = set_of(
        KIND_RECORDS, (tamis_records_options){.set.capacity = 5, .verifier = TAMIS_VERIFIER_TABLE});
    for (uint64_t i = 0; i < 20; i++) /* in several layers, each with its table */
        CHECK(item_add(x, i) == TAMIS_OK);
    for (unsigned repaired = 0; repaired < 2; repaired++) {
        struct bytes bytes = bytes_of_set(x, 0);
        struct container c;
        uint64_t len;
        uint8_t pair[TABLE_PAIR];
        tamis_reason reason = {0};
        CHECK(container_open(&c, bytes.data, bytes.len, KIND_RECORDS, NULL) == TAMIS_OK);
        uint8_t *pairs =
            bytes.data + (container_find(&c, SECTION_TABLE, 2, &len) - (const uint8_t *)c.data);
        CHECK(len >= 2 * TABLE_PAIR);
        memcpy(pair, pairs + TABLE_PAIR, TABLE_PAIR);
        memcpy(pairs + TABLE_PAIR, pairs, TABLE_PAIR);
        memcpy(pairs, pair, TABLE_PAIR);
        if (repaired)
            bytes_repair(&bytes);
        struct pieces_in *in = pieces_in_begin(bytes.len, PIECES_ASIDE, NULL);
        for (size_t at = 0; at + 1 < bytes.len; at++) {
            struct bytes again = {0}, first = {bytes.data, at + 1, at + 1};
            CHECK(pieces_in_add(in, bytes.data + at, 1, &reason) == TAMIS_OK);
            CHECK(pieces_in_encode(in, bytes_write, &again) == TAMIS_OK);
            CHECK_MSG(bytes_equal(&again, &first), "%zu of %zu bytes", at + 1, bytes.len);
            bytes_free(&again);
        }
        tamis_error e = pieces_in_add(in, bytes.data + bytes.len - 1, 1, &reason);
        CHECK(e != TAMIS_OK && e != TAMIS_ENOMEM);
        CHECK_MSG((strstr(reason.text, "order") != NULL) == repaired, "%s", reason.text);
        pieces_in_free(in);
        bytes_free(&bytes);
    }
    set_free(x);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Read and written while every allocation fails once: nothing is left of what failed. The set that was
   made at last. */
static struct set *failing(const struct subject *s, struct fault *fault, uint64_t *rng)
{
    tamis_open_options o = s->opening;
    struct set *made = NULL;
    tamis_error e = TAMIS_ENOMEM;
    o.allocator = &fault->allocator;
    for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 5000; n++) {
        fault_arm(fault, n, n % 2);
        e = pieces_push(&made, &s->bytes, 1000, rng, &o, NULL);
        if (e != TAMIS_OK)
            CHECK(e == TAMIS_ENOMEM && fault_clean(fault));
    }
    CHECK(e == TAMIS_OK);
    size_t blocks = fault->blocks;
    e = TAMIS_ENOMEM;
    for (uint64_t n = 1; made && e == TAMIS_ENOMEM && n < 100; n++) {
        struct bytes again = {0};
        fault_arm(fault, n, n % 2);
        e = pieces_pull(made, &again, 1 << 16, rng, NULL);
        CHECK(e == TAMIS_OK ? bytes_equal(&s->bytes, &again) : e == TAMIS_ENOMEM);
        CHECK(fault->blocks == blocks);
        bytes_free(&again);
    }
    CHECK(e == TAMIS_OK);
    return made;
}

/* Can its moment be kept? Not if adds change counters, a table or a matrix, drop a vector, or
   come from several threads. */
static bool can_be_kept(const struct subject *s)
{
    const tamis_options *o =
        s->kind == KIND_FILTER ? &s->past.history.options : &s->world.options.set;
    if (s->kind == KIND_RECORDS)
        return !o->deletable && s->world.options.verifier != TAMIS_VERIFIER_TABLE;
    return o->growth == TAMIS_SMOOTH || (!o->deletable && !o->shared_adds &&
                                         o->growth != TAMIS_DYNAMIC && o->growth != TAMIS_WINDOW);
}

static void without_memory(struct subject *s)
{
    struct fault fault;
    uint64_t rng = harness_seed() + s->bytes.len;
    fault_init(&fault);
    struct set *set = failing(s, &fault, &rng);
    size_t blocks = fault.blocks;
    bool keeps = false; /* all or nothing */
    for (uint64_t n = 1; set && !keeps && n < 500; n++) {
        fault_arm(&fault, n, false);
        uint64_t failed = fault.failed;
        keeps = pieces_keep(set);
        CHECK(keeps || fault.blocks == blocks);
        if (fault.failed == failed)
            break;
    }
    fault_arm(&fault, 0, false);
    CHECK(keeps == can_be_kept(s));
    set_free(set);
    CHECK(fault_clean(&fault));
}

TEST(without_memory_nothing_is_left)
{
    subject_each(1, harness_seed() + 6, SMALL, without_memory);
}

/* ---- a moment that is kept ------------------------------------------------------------------- */

static uint64_t next_item;

static void add_some(struct set *set)
{
    for (unsigned i = 0; i < 50; i++)
        CHECK(item_add(set, next_item++) == TAMIS_OK);
}

/* What is added while a dump is under way, past the capacity, does not show in it; it is there all the
   same. */
static void moment(enum kind kind, const tamis_records_options *o, uint64_t *rng)
{
    struct set *set = set_of(kind, *o);
    next_item = 0;
    for (unsigned j = 0; j < 20; j++)
        add_some(set);
    struct bytes before = bytes_of_set(set, 0), pieces = {0}, again = {0};
    CHECK(pieces_keep(set));
    CHECK(pieces_pull(set, &pieces, 2000, rng, add_some) == TAMIS_OK);
    CHECK(bytes_equal(&before, &pieces) && next_item > 1000);
    struct bytes whole = bytes_of_set(set, 0); /* not of the moment: the bytes of now */
    pieces_keep_end(set);
    struct bytes now = bytes_of_set(set, 0);
    CHECK(bytes_equal(&whole, &now) && !bytes_equal(&before, &now));
    CHECK(pieces_pull(set, &again, 2000, rng, NULL) == TAMIS_OK && bytes_equal(&now, &again));
    for (uint64_t i = 0; i < next_item; i++)
        CHECK(item_has(set, i));
    bytes_free(&before), bytes_free(&pieces), bytes_free(&again);
    bytes_free(&whole), bytes_free(&now);
    set_free(set);
}

TEST(the_moment_is_kept_while_items_are_added)
{
    static const struct {
        bool filter, records; /* made of these options */
        tamis_records_options o;
    } of[] = {
        {1, 1, {.set.capacity = 3000}},
        {1, 1, {.set.capacity = 200, .set.hash = TAMIS_SIP}},
        {1, 0, {.set.capacity = 300000, .set.layout = TAMIS_SPREAD}},
        {0, 1, {.set.capacity = 60000, .set.layout = TAMIS_SPREAD}},
        {1, 1, {.set.capacity = 500, .set.growth = TAMIS_FLEXIBLE}},
        {1, 1, {.set.capacity = 3000, .set.growth = TAMIS_SCALABLE}},
        {1, 0, {.set.capacity = 100000, .set.growth = TAMIS_FIXED}},
        {0, 1, {.set.capacity = 30000, .set.growth = TAMIS_FIXED}},
        {0,
         1,
         {.set.capacity = 40000, .set.growth = TAMIS_DYNAMIC, .verifier = TAMIS_VERIFIER_NONE}},
        {1, 0, {.set.growth = TAMIS_SMOOTH}},
        {1, 0, {.set.growth = TAMIS_SMOOTH, .set.fpp = 0.1}},
        {1, 0, {.set.deletable = true}},
        {1, 0, {.set.capacity = 500, .set.growth = TAMIS_SMOOTH}},
        {1, 0, {.set.capacity = 3000, .set.growth = TAMIS_SMOOTH}}};
    uint64_t rng = harness_seed() + 7;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        if (of[i].filter)
            moment(KIND_FILTER, &of[i].o, &rng);
        if (of[i].records)
            moment(KIND_RECORDS, &of[i].o, &rng);
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
    for (next_item = 0; next_item < 60000; next_item++)
        CHECK(tamis_filter_add(f, &next_item, sizeof next_item, NULL) == TAMIS_OK);
    struct bytes before = bytes_of(f, 0), pieces = {0};
    CHECK(pieces_keep(filter_set(f)));
    uint64_t key = next_item;
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
        for (unsigned i = 0; i < 50000; i++, next_item++)
            CHECK(tamis_filter_add(f, &next_item, sizeof next_item, NULL) == TAMIS_OK);
    }
    CHECK(bytes_equal(&before, &pieces) && next_item > 150000);
    pieces_out_end(out);
    pieces_keep_end(filter_set(f));
    for (key = 0; key < next_item; key++)
        CHECK(tamis_filter_has(f, &key, sizeof key));
    bytes_free(&before);
    bytes_free(&pieces);
    tamis_filter_free(f);
    CHECK(fault_clean(&fault));
}

TEST(what_cannot_be_kept)
{
    static const struct {
        enum kind kind;
        tamis_records_options o;
    } of[] = {{KIND_FILTER, {.set.growth = TAMIS_SCALABLE, .set.deletable = true}},
              {KIND_FILTER, {.set.growth = TAMIS_DYNAMIC, .set.capacity = 1000}},
              {KIND_FILTER, {.set.growth = TAMIS_WINDOW, .set.capacity = 1000}},
              {KIND_RECORDS, {.set.capacity = 1000, .set.deletable = true}},
              {KIND_RECORDS, {.set.capacity = 1000, .verifier = TAMIS_VERIFIER_TABLE}},
              {KIND_RECORDS,
               {.set.capacity = 1000, .set.deletable = true, .verifier = TAMIS_VERIFIER_TABLE}}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct set *set = set_of(of[i].kind, of[i].o);
        CHECK(!pieces_keep(set));
        set_free(set);
    }
}

/* ---- large ones ------------------------------------------------------------------------------ */

/* Of more bytes than `least`, in several chunks. */
static void large(struct set *set, size_t least, uint64_t *rng)
{
    struct bytes bytes = bytes_of_set(set, 0), pieces = {0};
    tamis_reason reason = {0};
    struct set *made;
    CHECK(bytes.len > least);
    CHECK(pieces_pull(set, &pieces, 1 << 20, rng, NULL) == TAMIS_OK);
    CHECK(bytes_equal(&bytes, &pieces));
    tamis_error e = pieces_push(&made, &bytes, 300000, rng, NULL, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
    CHECK(made && set_equal(set, made));
    set_free(made);
    bytes_free(&bytes);
    bytes_free(&pieces);
}

/* Large counters, and removals that wait. */
TEST(large_filters_with_large_counters)
{
    uint64_t rng = harness_seed();
    for (unsigned dynamic = 0; dynamic < 2; dynamic++) {
        struct set *set =
            set_of(KIND_FILTER,
                   (tamis_records_options){.set.capacity = 600000,
                                           .set.deletable = true,
                                           .set.growth = dynamic ? TAMIS_DYNAMIC : TAMIS_SCALABLE,
                                           .set.hash = TAMIS_SIP});
        for (uint64_t i = 0; i < 150000; i++)
            for (unsigned copies = i % 500 == 0 ? 40 : 1; copies; copies--)
                CHECK(item_add(set, i) == TAMIS_OK);
        for (uint64_t i = 0; i < 100; i++)
            CHECK(item_remove(set, i) == TAMIS_OK);
        large(set, 1 << 20, &rng);
        set_free(set);
    }
}

/* Tables; then few values in many slots, which are looked through in several calls. */
TEST(large_tables)
{
    uint64_t rng = harness_seed() + 8, n = 300000;
    struct set *set = set_of(KIND_RECORDS, (tamis_records_options){.set.capacity = n,
                                                                   .set.deletable = true,
                                                                   .verifier = TAMIS_VERIFIER_TABLE,
                                                                   .set.hash = TAMIS_SIP});
    for (uint64_t i = 0; i < n; i++)
        CHECK(item_add(set, i) == TAMIS_OK);
    large(set, 4 << 20, &rng);
    for (uint64_t i = 0; i < n; i++)
        if (i % 1000)
            CHECK(item_remove(set, i) == TAMIS_OK);
    large(set, 1 << 20, &rng);
    set_free(set);
}

static unsigned calls;

static void count_call(struct set *set)
{
    (void)set;
    calls++;
}

/* Values that someone chose so that they are all in one run, which is looked through for each of them: in
   many calls. */
TEST(a_table_of_one_run)
{
    uint64_t rng = harness_seed() + 10;
    tamis_records_options o = {.set.capacity = 100, .verifier = TAMIS_VERIFIER_TABLE};
    struct set *x = set_of(KIND_RECORDS, o);
    struct table *table = &set_part(x, 2)->table;
    CHECK(table_reserve(table, &mem_system, 8000));
    for (uint64_t value = 0; table->used < 8000; value++)
        if (table_hash(value) >> 56 == 77)
            table_add(table, value, 1);
    struct bytes bytes = bytes_of_set(x, 0), pieces = {0};
    calls = 0;
    CHECK(pieces_pull(x, &pieces, 1 << 20, &rng, count_call) == TAMIS_OK);
    CHECK(bytes_equal(&bytes, &pieces));
    CHECK_MSG(calls > 12, "%u", calls); /* 8000 times 8000 looks, 4 million a call */
    bytes_free(&bytes);
    bytes_free(&pieces);
    set_free(x);
}

/* A table with its last values in slots from the first on, made by appending as by adding. */
TEST(appended_as_added)
{
    uint64_t rng = harness_seed() + 9;
    for (unsigned round = 0; round < 2000; round++) {
        struct table x = {.slots = NULL}, y = {.slots = NULL};
        size_t n = 1 + (size_t)pieces_draw(&rng, 60), next = 0;
        CHECK(table_reserve(&x, &mem_system, n) && table_reserve(&y, &mem_system, n));
        while (x.used < n) {
            uint64_t value = rng_next(&rng);
            if (round % 2 == 0 || table_hash(value) >> 61 == 7)
                table_add(&x, value, 1 + value % 9);
        }
        struct table_walk walk = {.table = &x}, slow = {.table = &x, .stop = 1};
        while (table_next(&walk)) {
            table_append(&y, &next, walk.value, walk.count);
            while (!table_next(&slow)) /* it pauses */
                slow.stop = slow.from + 1;
            CHECK(slow.value == walk.value && slow.count == walk.count);
        }
        CHECK(y.used == n && table_equal(&x, &y) && table_equal(&y, &x));
        table_free(&x, &mem_system);
        table_free(&y, &mem_system);
    }
}

HARNESS_MAIN
