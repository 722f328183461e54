/* Indexes written and read a piece at a time: the same bytes as at once, and the same refusals. */
#include "harness.h"
#include "worlds.h"

#include "base/bytes.h"
#include "fault.h"
#include "forge.h"
#include "format/format.h"
#include "pieces.h"
#include "tamis/records.h"

struct subject {
    struct world world;
    tamis_records *x;
    uint32_t copies[RECORDS];
    struct bytes bytes;
};

static void subject_free(struct subject *s)
{
    tamis_records_free(s->x);
    world_free(&s->world);
    bytes_free(&s->bytes);
    free(s);
}

/* A world after some steps, of at most so many bytes. */
static struct subject *subject_new(uint64_t *rng, bool deletable, unsigned steps, size_t most)
{
    for (;;) {
        struct subject *s = calloc(1, sizeof *s);
        world_draw(&s->world, rng, deletable);
        s->x = world_start(&s->world);
        world_steps(&s->world, s->x, rng, s->copies, steps);
        s->bytes = bytes_of_index(s->x, 0);
        if (CHECK(s->bytes.len > 0) && s->bytes.len < most)
            return s;
        subject_free(s);
    }
}

static const tamis_attribute attributes[] = {{.name = "a"}, {.name = "b", .distinct = 50}};

static tamis_error add_record(tamis_records *x, uint64_t i)
{
    uint64_t b = i % 50;
    return tamis_records_add(x, (tamis_key[]){{&i, sizeof i}, {&b, sizeof b}}, NULL);
}

static tamis_records *index_of(tamis_records_options o)
{
    tamis_records *x = NULL;
    o.attributes = attributes;
    o.n_attributes = 2;
    CHECK(tamis_records_new(&x, &o, NULL) == TAMIS_OK);
    return x;
}

/* ---- identity -------------------------------------------------------------------------------- */

TEST(every_state_goes_out_and_in)
{
    uint64_t rng = harness_seed();
    for (unsigned i = 0; i < HARNESS_TIMES(400u, 5000u); i++) {
        unsigned steps = (unsigned)pieces_draw(&rng, 200);
        struct subject *s = subject_new(&rng, i % 3, steps, SIZE_MAX);
        tamis_open_options o = {.clock = world_clock};
        tamis_records *loaded =
            as_records(pieces_round(records_set(s->x), &s->bytes, i % 2, &o, &rng));
        if (CHECK_MSG(loaded, "world %u", i)) {
            CHECK(tamis_records_equal(s->x, loaded));
            CHECK(world_compare(&s->world, s->x, loaded) == 0);
            world_steps(&s->world, loaded, &rng, s->copies, 20); /* it lives */
        }
        tamis_records_free(loaded);
        subject_free(s);
    }
}

/* Pieces all of one size, whichever it is. */
TEST(every_size_of_a_piece)
{
    uint64_t rng = harness_seed() + 1;
    for (unsigned i = 0; i < 6; i++) {
        struct subject *s = subject_new(&rng, i % 2, 60, 6000);
        for (size_t size = 1; size <= s->bytes.len; size += size < 200 ? 1 : 97) {
            struct pieces_in *in = pieces_in_begin(s->bytes.len, PIECES_ASIDE, NULL);
            struct set *set = NULL;
            for (size_t at = 0; at < s->bytes.len; at += size) {
                size_t len = s->bytes.len - at < size ? s->bytes.len - at : size;
                CHECK(pieces_in_add(in, s->bytes.data + at, len, NULL) == TAMIS_OK);
            }
            CHECK(pieces_in_end(in, &set, NULL) == TAMIS_OK);
            CHECK(set && tamis_records_equal(as_records(set), s->x));
            set_free(set);
            pieces_in_free(in);
        }
        subject_free(s);
    }
}

TEST(without_the_key_it_must_be_given)
{
    uint64_t rng = harness_seed() + 2;
    struct subject *s = subject_new(&rng, true, 60, 12000);
    tamis_open_options o = {.key = s->world.key, .clock = world_clock};
    pieces_keyless(records_set(s->x), &o, &rng);
    subject_free(s);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static bool check_as_decoder(const struct bytes *bytes, uint64_t *rng)
{
    tamis_open_options o = {.clock = world_clock};
    return pieces_as_decoder(bytes, KIND_INDEX, &o, rng);
}

TEST(refuses_what_the_decoder_refuses)
{
    uint64_t rng = harness_seed() + 3;
    tamis_open_options o = {.clock = world_clock};
    unsigned let_in = 0;
    for (unsigned i = 0; i < 40; i++) {
        struct subject *s = subject_new(&rng, i % 4, 60, 12000);
        let_in += pieces_forged(&s->bytes, KIND_INDEX, &o, &rng, HARNESS_TIMES(400u, 20000u));
        subject_free(s);
    }
    CHECK_MSG(let_in > 100, "%u", let_in);
}

/* A piece in the place of another, of another index, or missing. */
TEST(pieces_of_elsewhere_are_refused)
{
    uint64_t rng = harness_seed() + 4;
    unsigned foreign = 0;
    for (unsigned i = 0; i < 60; i++) {
        struct subject *s = subject_new(&rng, i % 2, 60, 12000);
        struct bytes other = {0};
        tamis_records *x = NULL; /* of the same settings and key */
        uint32_t copies[RECORDS] = {0};
        CHECK(tamis_records_new(&x, &s->world.options, NULL) == TAMIS_OK);
        size_t size = 64 + (size_t)pieces_draw(&rng, 500), n = s->bytes.len / size;
        size_t a = (size_t)pieces_draw(&rng, n) * size, b = (size_t)pieces_draw(&rng, n) * size;
        bytes_write(&other, s->bytes.data, s->bytes.len);
        memcpy(other.data + a, s->bytes.data + b, size);
        memcpy(other.data + b, s->bytes.data + a, size);
        bool same = bytes_equal(&other, &s->bytes);
        CHECK(check_as_decoder(&other, &rng) == same);
        bytes_free(&other);
        world_steps(&s->world, x, &rng, copies, 60);
        other = bytes_of_index(x, 0);
        if (other.len == s->bytes.len) {
            memcpy(other.data + a, s->bytes.data + a, size);
            foreign += !check_as_decoder(&other, &rng);
        }
        s->bytes.len -= 1 + (size_t)pieces_draw(&rng, s->bytes.len - 64);
        CHECK(!check_as_decoder(&s->bytes, &rng));
        bytes_free(&other);
        tamis_records_free(x);
        subject_free(s);
    }
    CHECK_MSG(foreign > 3, "%u", foreign);
}

/* Every cut: there is nothing to be had, and what came can be had again. */
TEST(cut_short)
{
    uint64_t rng = harness_seed() + 5;
    for (unsigned i = 0; i < 8; i++) {
        struct subject *s = subject_new(&rng, i % 2, 60, 5000);
        for (size_t len = 1; len < s->bytes.len; len += 1 + i % 3) {
            struct pieces_in *in = pieces_in_begin(s->bytes.len, PIECES_ASIDE, NULL);
            struct set *set = NULL;
            struct bytes again = {0}, first = {s->bytes.data, len, len};
            CHECK(pieces_in_add(in, s->bytes.data, len, NULL) == TAMIS_OK);
            CHECK(pieces_in_end(in, &set, NULL) == TAMIS_EFORMAT && !set);
            CHECK(pieces_in_encode(in, bytes_write, &again) == TAMIS_OK);
            CHECK_MSG(bytes_equal(&again, &first), "%zu of %zu bytes", len, s->bytes.len);
            bytes_free(&again);
            pieces_in_free(in);
        }
        subject_free(s);
    }
}

/* A deletable index without records, which says that it has one: its table is empty, and not there. */
TEST(refuses_a_record_without_its_value)
{
    uint64_t rng = harness_seed();
    tamis_records *x = index_of((tamis_records_options){
        .set.capacity = 100, .set.deletable = true, .verifier = TAMIS_VERIFIER_TABLE});
    struct bytes bytes = bytes_of_index(x, 0);
    struct container c;
    struct head head;
    CHECK(check_as_decoder(&bytes, &rng));
    CHECK(set_open(&c, &head, KIND_INDEX, bytes.data, bytes.len, NULL) == TAMIS_OK);
    put_u64(bytes.data + (head.layers - bytes.data) + 24, 1);
    put_u64(bytes.data + BODY_AT + 168, 1);
    bytes_repair(&bytes);
    CHECK(set_open(&c, &head, KIND_INDEX, bytes.data, bytes.len, NULL) == TAMIS_OK);
    CHECK(!check_as_decoder(&bytes, &rng));
    bytes_free(&bytes);
    tamis_records_free(x);
}

/* What must hold in a table, each broken alone. */
TEST(tables_that_cannot_be_are_refused)
{
    tamis_records *x = index_of((tamis_records_options){
        .set.capacity = 100, .set.deletable = true, .verifier = TAMIS_VERIFIER_TABLE});
    for (uint64_t i = 0; i < 20; i++)
        CHECK(add_record(x, i) == TAMIS_OK);
    struct bytes good = bytes_of_index(x, 0);
    struct container c;
    struct head head;
    CHECK(set_open(&c, &head, KIND_INDEX, good.data, good.len, NULL) == TAMIS_OK);
    struct section table = {0};
    for (uint32_t i = 0; i < c.sections && table.type != SECTION_TABLE; i++)
        table = container_section(&c, i);
    uint64_t second = get_u64(good.data + table.offset + TABLE_PAIR);
    refused_with(&good, KIND_INDEX, table, 0, second, 8, "not in order");
    refused_with(&good, KIND_INDEX, table, 8, 0, 8, "copies of a value");
    refused_with(&good, KIND_INDEX, table, 8, UINT64_MAX, 8, "copies of a value");
    refused_with(&good, KIND_INDEX, table, 8, 2, 8, "not the records of the layer");
    bytes_free(&good);
    tamis_records_free(x);
}

/* Two values of a table in the wrong order. Whether that is damage is known when all bytes are here;
   until then what came can be had again. */
TEST(cut_short_with_something_wrong)
{
    tamis_records *x =
        index_of((tamis_records_options){.set.capacity = 5, .verifier = TAMIS_VERIFIER_TABLE});
    for (uint64_t i = 0; i < 20; i++) /* in several layers, each with its table */
        CHECK(add_record(x, i) == TAMIS_OK);
    for (unsigned repaired = 0; repaired < 2; repaired++) {
        struct bytes bytes = bytes_of_index(x, 0);
        struct container c;
        uint64_t len;
        uint8_t pair[TABLE_PAIR];
        tamis_reason reason = {0};
        CHECK(container_open(&c, bytes.data, bytes.len, KIND_INDEX, NULL) == TAMIS_OK);
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
    tamis_records_free(x);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(without_memory_nothing_is_left)
{
    uint64_t rng = harness_seed() + 6;
    for (unsigned i = 0; i < 40; i++) {
        struct subject *s = subject_new(&rng, i % 4, 60, 12000);
        struct fault fault;
        fault_init(&fault);
        tamis_open_options o = {.clock = world_clock};
        struct set *x = pieces_failing(&s->bytes, &fault, &o, &rng);
        size_t blocks = fault.blocks;
        bool keeps = false; /* all or nothing */
        for (uint64_t n = 1; x && !keeps && n < 500; n++) {
            fault_arm(&fault, n, false);
            uint64_t failed = fault.failed;
            keeps = pieces_keep(x);
            CHECK(keeps || fault.blocks == blocks);
            if (fault.failed == failed)
                break;
        }
        fault_arm(&fault, 0, false);
        CHECK(!keeps || (!s->world.options.set.deletable &&
                         s->world.options.verifier != TAMIS_VERIFIER_TABLE));
        set_free(x);
        CHECK(fault_clean(&fault));
        subject_free(s);
    }
}

/* ---- a moment that is kept ------------------------------------------------------------------- */

static uint64_t next_record;

static void add_some(struct set *set)
{
    for (unsigned i = 0; i < 50; i++)
        CHECK(add_record(as_records(set), next_record++) == TAMIS_OK);
}

/* Records added meanwhile, past the capacity, do not show; they are there all the same. */
TEST(the_moment_is_kept_while_records_are_added)
{
    static const tamis_records_options kinds[] = {
        {.set.capacity = 3000},
        {.set.capacity = 200, .set.hash = TAMIS_SIP},
        {.set.capacity = 60000, .set.layout = TAMIS_SPREAD},
        {.set.capacity = 500, .set.growth = TAMIS_FLEXIBLE},
        {.set.capacity = 40000, .set.growth = TAMIS_DYNAMIC, .verifier = TAMIS_VERIFIER_NONE},
        {.set.capacity = 30000, .set.growth = TAMIS_FIXED}};
    uint64_t rng = harness_seed() + 7;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tamis_records *x = index_of(kinds[i]);
        struct set *set = records_set(x);
        next_record = 0;
        for (unsigned j = 0; j < 20; j++)
            add_some(set);
        pieces_moment(set, add_some, &rng);
        CHECK(next_record > 1000);
        for (uint64_t r = 0; r < next_record; r++) {
            uint64_t b = r % 50;
            tamis_key keys[] = {{&r, sizeof r}, {&b, sizeof b}};
            CHECK(tamis_records_has(x, keys, 3).maybe);
        }
        tamis_records_free(x);
    }
}

TEST(what_cannot_be_kept)
{
    static const tamis_records_options kinds[] = {
        {.set.capacity = 1000, .set.deletable = true},
        {.set.capacity = 1000, .verifier = TAMIS_VERIFIER_TABLE},
        {.set.capacity = 1000, .set.deletable = true, .verifier = TAMIS_VERIFIER_TABLE}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tamis_records *x = index_of(kinds[i]);
        struct set *set = records_set(x);
        CHECK(!pieces_keep(set));
        tamis_records_free(x);
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Several chunks of them; then few values in many slots, which are looked through in several calls. */
TEST(large_tables)
{
    uint64_t rng = harness_seed() + 8;
    unsigned n = 300000;
    tamis_records *x = index_of((tamis_records_options){.set.capacity = n,
                                                        .set.deletable = true,
                                                        .verifier = TAMIS_VERIFIER_TABLE,
                                                        .set.hash = TAMIS_SIP});
    for (uint64_t r = 0; r < n; r++)
        CHECK(add_record(x, r) == TAMIS_OK);
    for (unsigned sparse = 0; sparse < 2; sparse++) {
        struct bytes bytes = bytes_of_index(x, 0), pieces = {0};
        struct set *set = records_set(x);
        tamis_reason reason = {0};
        struct set *made;
        CHECK(bytes.len > (sparse ? 1u : 4u) << 20);
        CHECK(pieces_pull(set, &pieces, 1 << 20, &rng, NULL) == TAMIS_OK);
        CHECK(bytes_equal(&bytes, &pieces));
        tamis_error e = pieces_push(&made, &bytes, 300000, &rng, NULL, &reason);
        CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
        CHECK(made && set_equal(set, made));
        set_free(made);
        bytes_free(&bytes);
        bytes_free(&pieces);
        for (uint64_t r = 0; r < n && !sparse; r++) {
            uint64_t b = r % 50;
            tamis_key keys[] = {{&r, sizeof r}, {&b, sizeof b}};
            if (r % 1000)
                CHECK(tamis_records_remove(x, keys, NULL) == TAMIS_OK);
        }
    }
    tamis_records_free(x);
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
    tamis_records *x = index_of(o);
    struct set *set = records_set(x);
    struct table *table = &set_part(set, 2)->table;
    CHECK(table_reserve(table, &mem_system, 8000));
    for (uint64_t value = 0; table->used < 8000; value++)
        if (table_hash(value) >> 56 == 77)
            table_add(table, value, 1);
    struct bytes bytes = bytes_of_index(x, 0), pieces = {0};
    calls = 0;
    CHECK(pieces_pull(set, &pieces, 1 << 20, &rng, count_call) == TAMIS_OK);
    CHECK(bytes_equal(&bytes, &pieces));
    CHECK_MSG(calls > 12, "%u", calls); /* 8000 times 8000 looks, 4 million a call */
    bytes_free(&bytes);
    bytes_free(&pieces);
    tamis_records_free(x);
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
