/* Active defragmentation of the values of the server, by the module's own callback under an API of our
 * own: Debian's server has an allocator that cannot do it. Every block moves, in slices.
 */
#include "harness.h"
#include "histories.h"

#include <malloc.h>
#include <stdlib.h>

#include "module.h"
#include "set/set.h"
#include "tamis/records.h"
#include "tamis/replica.h"

/* ---- the server ------------------------------------------------------------------------------ */

static RedisModuleTypeMethods *methods;

struct RedisModuleDefragCtx {
    unsigned long cursor;
    bool late; /* it is asked in slices */
    unsigned moved, slices;
};

static void *fake_move(RedisModuleDefragCtx *ctx, void *memory)
{
    size_t size = malloc_usable_size(memory);
    void *moved = malloc(size);
    memcpy(moved, memory, size);
    memset(memory, 0xee, size);
    free(memory);
    ctx->moved++;
    return moved;
}

static int fake_stop(RedisModuleDefragCtx *ctx)
{
    return ctx->late;
}

static int fake_set(RedisModuleDefragCtx *ctx, unsigned long cursor)
{
    ctx->cursor = cursor;
    return ctx->late ? RM_OK : RM_ERR;
}

static int fake_get(RedisModuleDefragCtx *ctx, unsigned long *cursor)
{
    *cursor = ctx->cursor;
    return ctx->late ? RM_OK : RM_ERR;
}

static RedisModuleType *fake_type(RedisModuleCtx *ctx, const char *name, int version,
                                  RedisModuleTypeMethods *of)
{
    (void)ctx;
    (void)name;
    (void)version;
    methods = of;
    return (RedisModuleType *)&rm;
}

static void server_start(void)
{
    rm.TryAlloc = malloc;
    rm.Free = free;
    rm.DefragAlloc = fake_move;
    rm.DefragShouldStop = fake_stop;
    rm.DefragCursorSet = fake_set;
    rm.DefragCursorGet = fake_get;
    rm.CreateDataType = fake_type;
    CHECK(type_register(NULL, false));
}

/* ---- values ---------------------------------------------------------------------------------- */

/* As the server does it: again while there is more. */
static struct value *defragged(struct value *v, bool late, unsigned *moved)
{
    RedisModuleDefragCtx ctx = {.late = late};
    void *value = v;
    while (methods->defrag(&ctx, NULL, &value))
        ctx.slices++;
    CHECK(late ? ctx.slices > 0 : ctx.slices == 0);
    *moved = ctx.moved;
    return value;
}

static void check_value(struct value *v, unsigned least)
{
    struct bytes before = {0}, after = {0};
    size_t usage = methods->mem_usage(v);
    unsigned moved;
    CHECK(value_encode(v, 0, bytes_write, &before) == TAMIS_OK && before.len > 0);
    for (unsigned late = 0; late < 2; late++) {
        v = defragged(v, late, &moved);
        CHECK_MSG(moved >= least, "%u", moved);
        CHECK(methods->mem_usage(v) == usage);
        after.len = 0;
        CHECK(value_encode(v, 0, bytes_write, &after) == TAMIS_OK && bytes_equal(&before, &after));
    }
    methods->free(v);
    bytes_free(&before);
    bytes_free(&after);
}

static void add_some(tamis_filter *f, uint64_t from, uint64_t to)
{
    for (uint64_t key = from; key < to; key++)
        CHECK(tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK);
}

TEST(values_move)
{
    static const tamis_options kinds[] = {
        {.capacity = 100},
        {.capacity = 100, .deletable = true},
        {.capacity = 200000, .growth = TAMIS_FIXED},
        {.capacity = 3000, .growth = TAMIS_DYNAMIC, .vectors = 30, .deletable = true},
        {.capacity = 100, .growth = TAMIS_WINDOW},
        {.growth = TAMIS_SMOOTH},
        {.growth = TAMIS_SMOOTH, .capacity = 100},
        {.growth = TAMIS_SMOOTH, .deletable = true},
        {.capacity = 100, .growth = TAMIS_FLEXIBLE, .hash = TAMIS_H3}};
    server_start();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tamis_options o = kinds[i];
        tamis_filter *f;
        o.allocator = &value_allocator;
        if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
            continue;
        add_some(f, 0, 2000);
        for (uint64_t key = 0; o.deletable && key < 200; key++)
            CHECK(tamis_filter_remove(f, &key, sizeof key, NULL) == TAMIS_OK);
        /* value, head, lines and their stash; stacks and vectors have more */
        check_value(value_of(filter_set(f)), set_has_stack(filter_set(f)) ? 6 : 4);
    }
    CHECK(value_counts().values == 0);
}

/* Sixteen parts, each with a stash, and the shelf. All that is found before is found after. */
TEST(lines_of_many_parts_move)
{
    enum { KEYS = 100000 };
    server_start();
    for (unsigned deletable = 0; deletable < 2; deletable++) {
        tamis_options o = {
            .growth = TAMIS_SMOOTH, .deletable = deletable, .allocator = &value_allocator};
        tamis_filter *f;
        if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
            continue;
        add_some(f, 0, KEYS);
        struct value *v = value_of(filter_set(f));
        for (unsigned late = 0; late < 2; late++) {
            unsigned moved;
            v = defragged(v, late, &moved);
            CHECK_MSG(moved >= 2 + 16 * 2, "%u", moved);
            uint64_t missed = 0;
            for (uint64_t key = 0; key < KEYS; key++)
                missed += !tamis_filter_has(as_filter(v->set), &key, sizeof key);
            CHECK_MSG(missed == 0, "%g", (double)missed);
            add_some(as_filter(v->set), (late + 1) * KEYS, (late + 2) * KEYS); /* it still grows */
        }
        check_value(v, 2 + 16 * 2);
    }
    CHECK(value_counts().values == 0);
}

TEST(records_move)
{
    static const tamis_attribute attributes[] = {{.name = "a"}, {.name = "b"}};
    tamis_records_options o = {.attributes = attributes,
                               .n_attributes = 2,
                               .set.capacity = 50,
                               .verifier = TAMIS_VERIFIER_TABLE,
                               .set.deletable = true,
                               .set.allocator = &value_allocator};
    tamis_records *x;
    server_start();
    if (!CHECK(tamis_records_new(&x, &o, NULL) == TAMIS_OK))
        return;
    for (uint64_t i = 0; i < 500; i++) {
        uint64_t b = i % 7;
        tamis_key record[] = {{&i, sizeof i}, {&b, sizeof b}};
        CHECK(tamis_records_add(x, record, NULL) == TAMIS_OK);
    }
    check_value(value_of(records_set(x)), 10);
}

/* The first bytes of a value that is being loaded, and one whose head others know. */
TEST(what_stays)
{
    server_start();
    struct value *v = value_partial(1000, false, NULL);
    CHECK(v && partial_add(v, "some bytes", 10, true, NULL) == TAMIS_OK);
    unsigned moved;
    v = defragged(v, false, &moved);
    CHECK(moved == 1 && partial_have(v) == 10);
    methods->free(v);
    tamis_options o = {.capacity = 100, .allocator = &value_allocator};
    tamis_filter *f;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    struct publication known = {.origin = (tamis_origin *)&rm};
    v = value_of(filter_set(f));
    v->publication = &known;
    v = defragged(v, false, &moved);
    CHECK(moved == 2 && v->set == filter_set(f)); /* the value and the lines */
    v->publication = NULL;
    methods->free(v);
}

HARNESS_MAIN
