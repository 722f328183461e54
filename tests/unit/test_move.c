/* Filters and indexes whose memory is moved from under them, all of it or some: they stay the same, and
 * go on as their twins do. The old places are freed, so the sanitizer sees who still looks there.
 */
#include "harness.h"
#include "histories.h"
#include "worlds.h"

#include <stdlib.h>

#include "set/set.h"
#include "format/pieces.h"
#include "set/set.h"
#include "tamis/records.h"

/* ---- memory that moves: a header of two words, at an odd multiple of 16 ------------------------ */

struct movable {
    tamis_allocator allocator;
    uint64_t rng;
    size_t live, moved;
    unsigned stop_after; /* moves, then time is up; 0: never */
    unsigned moves;
};

static void *movable_alloc(void *context, size_t size)
{
    struct movable *m = context;
    char *raw = malloc(size + 96);
    if (!raw)
        return NULL;
    m->rng = m->rng * UINT64_C(6364136223846793005) + 1;
    char *memory = raw + 16 * (1 + (m->rng >> 40) % 4);
    memcpy(memory - 16, &raw, sizeof raw);
    memcpy(memory - 8, &size, sizeof size);
    m->live++;
    return memory;
}

static void movable_free(void *context, void *memory, size_t size)
{
    struct movable *m = context;
    size_t was;
    char *raw;
    memcpy(&raw, (char *)memory - 16, sizeof raw);
    memcpy(&was, (char *)memory - 8, sizeof was);
    CHECK(was == size);
    memset(memory, 0xee, was);
    free(raw);
    m->live--;
}

static void *movable_move(void *context, void *memory)
{
    struct movable *m = context;
    size_t size;
    m->moves++;
    m->rng = m->rng * UINT64_C(6364136223846793005) + 1;
    if ((m->rng >> 40) % 8 == 0)
        return NULL; /* it may stay */
    memcpy(&size, (char *)memory - 8, sizeof size);
    void *moved = movable_alloc(m, size);
    if (!moved)
        return NULL;
    memcpy(moved, memory, size);
    movable_free(m, memory, size);
    m->moved++;
    return moved;
}

static bool movable_stop(void *context)
{
    struct movable *m = context;
    if (m->stop_after == 0 || m->moves < m->stop_after)
        return false;
    m->moves = 0;
    return true;
}

static void movable_init(struct movable *m, uint64_t seed)
{
    *m = (struct movable){.rng = seed};
    m->allocator = (tamis_allocator){movable_alloc, movable_free, m, NULL};
}

static struct mover mover_of(struct movable *m, bool pinned)
{
    return (struct mover){movable_move, movable_stop, m, pinned};
}

/* ---- filters --------------------------------------------------------------------------------- */

/* All parts, in slices; when it is pinned the head stays where it is. */
static void move_all(struct set **set, struct movable *m, unsigned round)
{
    struct mover mover = mover_of(m, round % 3 == 0);
    const struct set *before = *set;
    unsigned long part = 0;
    m->stop_after = round % 4;
    do
        part = set_move(set, &mover, part);
    while (part);
    CHECK(round % 3 != 0 || *set == before);
}

TEST(filters_that_move_are_as_their_twins)
{
    uint64_t seed = harness_seed();
    size_t moved = 0;
    for (unsigned round = 0; round < HARNESS_TIMES(4u, 60u); round++)
        for (unsigned kind = 0; kind < HISTORY_KINDS; kind++) {
            struct history h, other;
            struct movable m;
            movable_init(&m, seed + round);
            tamis_filter *twin = history_new(&h, kind, seed + round), *f = NULL;
            history_steps(&h, twin, 20);
            struct bytes bytes = bytes_of(twin, 0);
            history_copy(&other, &h);
            tamis_open_options o = {
                .clock = history_clock, .clock_context = &other, .allocator = &m.allocator};
            CHECK(tamis_filter_decode(&f, bytes.data, bytes.len, &o, NULL) == TAMIS_OK);
            for (unsigned part = 0; f && part < 4; part++) {
                struct set *set = filter_set(f);
                move_all(&set, &m, round + part);
                f = as_filter(set);
                struct bytes x = bytes_of(twin, 0), y = bytes_of(f, 0);
                CHECK_MSG(bytes_equal(&x, &y), "%s, round %u", history_kind(kind), round);
                bytes_free(&x);
                bytes_free(&y);
                CHECK(history_compare(twin, f) == 0 && history_denied(&other, f) == 0);
                char key[24];
                size_t len = history_key(1, key);
                CHECK(tamis_filter_has(f, key, len) == tamis_filter_has(twin, key, len));
                history_steps(&h, twin, 8);
                history_steps(&other, f, 8);
            }
            moved += m.moved;
            tamis_filter_free(f);
            CHECK(m.live == 0);
            bytes_free(&bytes);
            tamis_filter_free(twin);
        }
    CHECK(moved > 1000);
}

/* While it is dumped, and with what changed since it was published. */
/* ---- indexes --------------------------------------------------------------------------------- */

TEST(indexes_that_move_are_as_their_twins)
{
    uint64_t seed = harness_seed();
    size_t moved = 0;
    for (unsigned round = 0; round < HARNESS_TIMES(60u, 400u); round++) {
        struct world w = {0};
        struct movable m;
        movable_init(&m, seed + round);
        uint64_t rng = seed + round;
        uint32_t copies[RECORDS] = {0}, others[RECORDS];
        world_draw(&w, &rng, round % 2);
        tamis_records *twin = world_start(&w), *x = NULL;
        world_steps(&w, twin, &rng, copies, 80);
        struct bytes bytes = bytes_of_records(twin, 0);
        tamis_open_options o = {.clock = world_clock, .allocator = &m.allocator};
        CHECK(tamis_records_decode(&x, bytes.data, bytes.len, &o, NULL) == TAMIS_OK);
        memcpy(others, copies, sizeof copies);
        for (unsigned part = 0; x && part < 3; part++) {
            struct set *set = records_set(x);
            move_all(&set, &m, round + 2 * part);
            x = as_records(set);
            struct bytes a = bytes_of_records(twin, 0), b = bytes_of_records(x, 0);
            CHECK_MSG(bytes_equal(&a, &b), "round %u", round);
            bytes_free(&a);
            bytes_free(&b);
            CHECK(world_compare(&w, twin, x) == 0);
            uint64_t same = rng;
            world_steps(&w, twin, &rng, copies, 30);
            world_steps(&w, x, &same, others, 30);
        }
        moved += m.moved;
        tamis_records_free(x);
        CHECK(m.live == 0);
        bytes_free(&bytes);
        tamis_records_free(twin);
        world_free(&w);
    }
    CHECK(moved > 1000);
}

static struct set *set_of(unsigned kind, const tamis_allocator *allocator)
{
    static const tamis_attribute attribute = {.name = "a"};
    tamis_options o = {.capacity = 20000, .allocator = allocator};
    tamis_records_options r = {.attributes = &attribute,
                               .n_attributes = 1,
                               .verifier = kind == 1 ? TAMIS_VERIFIER_FILTER : TAMIS_VERIFIER_TABLE,
                               .set = o};
    tamis_filter *f = NULL;
    tamis_records *x = NULL;
    CHECK((kind ? tamis_records_new(&x, &r, NULL) : tamis_filter_new(&f, &o, NULL)) == TAMIS_OK);
    return kind ? records_set(x) : filter_set(f);
}

static tamis_error add_number(struct set *set, uint64_t n)
{
    return set_kind(set) == TAMIS_KIND_RECORDS
               ? tamis_records_add(as_records(set), &(tamis_key){&n, sizeof n}, NULL)
               : tamis_filter_add(as_filter(set), &n, sizeof n, NULL);
}

static bool has_number(struct set *set, uint64_t n)
{
    return set_kind(set) == TAMIS_KIND_RECORDS
               ? tamis_records_has(as_records(set), &(tamis_key){&n, sizeof n}, 1).maybe
               : tamis_filter_has(as_filter(set), &n, sizeof n);
}

/* A filter, records with vectors alone, while keys are added; and records with a table. */
TEST(a_set_moves_while_it_is_dumped)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        bool table = kind == 2;
        struct movable m;
        movable_init(&m, harness_seed() + kind);
        struct set *set = set_of(kind, &m.allocator);
        uint64_t next = 0;
        for (; next < 30000; next++)
            CHECK(add_number(set, next) == TAMIS_OK);
        struct bytes before = {0}, pieces = {0};
        struct pieces_out *out;
        CHECK(set_encode(set, 0, bytes_write, &before) == TAMIS_OK);
        CHECK(pieces_out_begin(&out, set, 0) == TAMIS_OK && pieces_keep(set) == !table);
        static uint8_t piece[65536];
        while (pieces.len < pieces_out_size(out)) {
            size_t len = 0;
            move_all(&set, &m, (unsigned)(next + pieces.len));
            for (uint64_t end = next + 100; !table && next < end; next++)
                CHECK(add_number(set, next) == TAMIS_OK);
            if (!CHECK(pieces_out_read(out, set, pieces.len, piece, sizeof piece, &len) ==
                       TAMIS_OK))
                break;
            CHECK(bytes_write(&pieces, piece, len) == 0);
        }
        CHECK(bytes_equal(&before, &pieces));
        for (uint64_t key = 0; key < next; key++)
            CHECK(has_number(set, key));
        pieces_keep_end(set);
        pieces_out_end(out);
        bytes_free(&before);
        bytes_free(&pieces);
        set_free(set);
        CHECK(m.live == 0);
    }
}

HARNESS_MAIN
