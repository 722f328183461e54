/* Every allocation made to fail once: the call says ENOMEM or does without, nothing changes on an
 * error, the same call works afterwards, and no byte is lost.
 */
#include "fault.h"
#include "set/set.h"
#include "harness.h"

enum { KEYS = 300 };

static uint64_t clock_now;

static const uint8_t family_key[TAMIS_KEY_LEN] = "faults";

/* The kinds, small enough to grow soon; `adds` keys bring one to where something is about to
   happen. */
struct kind {
    const char *name;
    tamis_options options;
    uint32_t adds;
};

static const struct kind kinds[] = {
    {"fixed", {.growth = TAMIS_FIXED, .bits = 16384, .hashes = 5, .capacity = 200}, 100},
    {"fixed spread deletable",
     {.growth = TAMIS_FIXED,
      .layout = TAMIS_SPREAD,
      .bits = 2048,
      .hashes = 5,
      .capacity = 200,
      .deletable = true},
     100},
    {"fixed h3",
     {.growth = TAMIS_FIXED, .hash = TAMIS_H3, .bits = 2048, .hashes = 5, .capacity = 200},
     100},
    {"dynamic", {.growth = TAMIS_DYNAMIC, .bits = 64, .hashes = 3, .capacity = 10}, 40},
    {"dynamic deletable",
     {.growth = TAMIS_DYNAMIC, .bits = 64, .hashes = 3, .capacity = 10, .deletable = true},
     120},
    {"dynamic unique",
     {.growth = TAMIS_DYNAMIC,
      .bits = 64,
      .hashes = 3,
      .capacity = 10,
      .deletable = true,
      .unique = true},
     70},
    {"dynamic planned", {.growth = TAMIS_DYNAMIC, .capacity = 480, .vectors = 16}, 100},
    {"scalable", {.capacity = 8, .expansion = 2}, 120},
    {"scalable deletable", {.capacity = 8, .expansion = 1, .deletable = true}, 128},
    {"scalable published deletable",
     {.layout = TAMIS_SPREAD, .bits = 48, .hashes = 3, .capacity = 10, .deletable = true},
     70},
    {"flexible deletable", {.growth = TAMIS_FLEXIBLE, .capacity = 10, .deletable = true}, 60},
    {"smooth", {.growth = TAMIS_SMOOTH}, 200},
    {"smooth past a capacity", {.growth = TAMIS_SMOOTH, .capacity = 20}, 120},
    {"smooth deletable", {.growth = TAMIS_SMOOTH, .deletable = true}, 200},
    {"window", {.growth = TAMIS_WINDOW, .capacity = 100, .window = 80000}, 100},
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

static tamis_error add_range(tamis_filter *f, uint32_t from, uint32_t n)
{
    for (uint32_t i = from; i < from + n; i++) {
        tamis_error e = tamis_filter_add(f, &i, sizeof i, NULL);
        clock_now += 1000;
        if (e != TAMIS_OK)
            return e;
    }
    return TAMIS_OK;
}

static tamis_error make(tamis_filter **out, const struct kind *kind, struct fault *fault)
{
    tamis_options o = kind->options;
    o.key = family_key;
    o.clock = harness_clock;
    o.clock_context = &clock_now;
    o.allocator = &fault->allocator;
    return tamis_filter_new(out, &o, NULL);
}

/* ---- what is tried --------------------------------------------------------------------------- */

struct stage {
    tamis_filter *filter, *other, *made;
    uint32_t key; /* to add or to remove */
    size_t done;
};

typedef tamis_error (*operation)(struct stage *stage);

static tamis_error op_add(struct stage *stage)
{
    return tamis_filter_add(stage->filter, &stage->key, sizeof stage->key, NULL);
}

static void digest_range(const struct stage *stage, uint32_t first, uint32_t n, tamis_digest *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = tamis_filter_digest(stage->filter, &(uint32_t){first + i}, sizeof first);
}

static tamis_error op_add_many(struct stage *stage)
{
    tamis_digest digests[64];
    digest_range(stage, 200000, 64, digests);
    return tamis_filter_add_many(stage->filter, digests, 64, NULL, &stage->done);
}

static tamis_error op_remove(struct stage *stage)
{
    return tamis_filter_remove(stage->filter, &stage->key, sizeof stage->key, NULL);
}

static tamis_error op_remove_many(struct stage *stage)
{
    tamis_digest digests[60];
    digest_range(stage, 0, 60, digests);
    return tamis_filter_remove_many(stage->filter, digests, 60, NULL, &stage->done);
}

static tamis_error op_merge(struct stage *stage)
{
    return tamis_filter_merge(stage->filter, stage->other, TAMIS_MERGE_RESTATE, NULL);
}

static tamis_error op_concat(struct stage *stage)
{
    return tamis_filter_merge(stage->filter, stage->other, TAMIS_MERGE_RESTATE | TAMIS_MERGE_CONCAT,
                              NULL);
}

static tamis_error op_fold(struct stage *stage)
{
    return tamis_filter_fold(stage->filter, TAMIS_MERGE_RESTATE, NULL);
}

static tamis_error op_clone(struct stage *stage)
{
    return tamis_filter_clone(&stage->made, stage->filter);
}

static tamis_error op_intersect(struct stage *stage)
{
    return tamis_filter_intersect(&stage->made, stage->filter, stage->other, NULL);
}

static tamis_error op_clear(struct stage *stage)
{
    return tamis_filter_clear(stage->filter);
}

static tamis_error op_expire(struct stage *stage)
{
    return tamis_filter_expire(stage->filter);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same(const tamis_filter *x, const tamis_filter *y)
{
    tamis_filter_facts a, b;
    tamis_filter_info(x, &a);
    tamis_filter_info(y, &b);
    bool info = a.items == b.items && a.vectors == b.vectors && a.pending == b.pending &&
                a.capacity == b.capacity && a.fpp == b.fpp && a.unique == b.unique &&
                x->set.stack->grown == y->set.stack->grown &&
                x->set.stack->more->forecast.holt.n == y->set.stack->more->forecast.holt.n &&
                x->set.stack->more->forecast.holt.level == y->set.stack->more->forecast.holt.level;
    for (uint32_t i = 0; i < 2 * KEYS; i++)
        if (tamis_filter_has(x, &i, sizeof i) != tamis_filter_has(y, &i, sizeof i))
            return false;
    return info && tamis_filter_equal(x, y);
}

static bool all_found(const tamis_filter *f, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (!tamis_filter_has(f, &i, sizeof i))
            return false;
    return true;
}

static bool set_stage(struct stage *stage, const struct kind *kind, struct fault *fault)
{
    *stage = (struct stage){0};
    clock_now = 1000000;
    return make(&stage->filter, kind, fault) == TAMIS_OK &&
           make(&stage->other, kind, fault) == TAMIS_OK &&
           add_range(stage->filter, 0, kind->adds) == TAMIS_OK &&
           add_range(stage->other, kind->adds / 2, kind->adds / 2) == TAMIS_OK;
}

static void strike_stage(struct stage *stage)
{
    tamis_filter_free(stage->filter);
    tamis_filter_free(stage->other);
    tamis_filter_free(stage->made);
}

typedef void (*preparation)(struct stage *stage);

/* Fails the n-th allocation of the operation. True while there was one to fail. */
static bool try_nth(const char *what, const struct kind *kind, preparation prepare, operation op,
                    uint64_t n, bool and_after)
{
    struct fault fault;
    struct stage stage;
    tamis_filter *before = NULL;
    fault_init(&fault);
    if (!CHECK_MSG(set_stage(&stage, kind, &fault), "%s", kind->name))
        return false;
    if (prepare)
        prepare(&stage);
    CHECK(tamis_filter_clone(&before, stage.filter) == TAMIS_OK);
    fault_arm(&fault, n, and_after);
    uint64_t failed = fault.failed;
    tamis_error e = op(&stage);
    fault_arm(&fault, 0, false);
    failed = fault.failed - failed;
    if (e != TAMIS_OK) {
        CHECK_MSG(e == TAMIS_ENOMEM || !failed, "%s of %s: %s", what, kind->name,
                  tamis_error_name(e));
        if (stage.done == 0) /* of many, some are done: see below */
            CHECK_MSG(same(stage.filter, before), "%s of %s changed something, allocation %d", what,
                      kind->name, (int)n);
        CHECK(stage.made == NULL);
        tamis_error again = failed ? op(&stage) : TAMIS_OK;
        CHECK_MSG(again == TAMIS_OK || again == TAMIS_ESHAPE, "%s of %s, again: %s", what,
                  kind->name, tamis_error_name(again));
    }
    strike_stage(&stage);
    tamis_filter_free(before);
    CHECK_MSG(fault_clean(&fault), "%s of %s: %zu blocks, %zu bytes live, %d wrong frees", what,
              kind->name, fault.blocks, fault.bytes, (int)fault.wrong);
    return failed > 0;
}

/* Returns how many allocations there were to fail. */
static unsigned try_each(const char *what, const struct kind *kind, preparation prepare,
                         operation op)
{
    unsigned n = 0;
    for (int and_after = 0; and_after < 2; and_after++)
        for (n = 1; try_nth(what, kind, prepare, op, n, and_after); n++)
            if (!CHECK(n < 5000))
                break;
    return n - 1;
}

/* The next add makes a vector: found by trying on a copy. */
static void until_growth(struct stage *stage)
{
    for (uint32_t i = 5000; i < 5400; i++) {
        tamis_filter *copy;
        tamis_filter_facts was, is;
        for (stage->key = 100000; tamis_filter_has(stage->filter, &stage->key, sizeof stage->key);)
            stage->key++;
        if (!CHECK(tamis_filter_clone(&copy, stage->filter) == TAMIS_OK))
            return;
        tamis_filter_info(copy, &was);
        tamis_filter_add(copy, &stage->key, sizeof stage->key, NULL);
        tamis_filter_info(copy, &is);
        tamis_filter_free(copy);
        if (was.bits != is.bits)
            return;
        tamis_filter_add(stage->filter, &i, sizeof i, NULL);
    }
}

static void until_escape(struct stage *stage)
{
    stage->key = 3;
    for (int i = 0; i < 13; i++)
        CHECK(op_add(stage) == TAMIS_OK);
}

/* The next removal cannot be settled: found by trying on a copy. */
static void until_pending(struct stage *stage)
{
    tamis_removed outcome = TAMIS_REMOVED;
    for (stage->key = 0; stage->key < KEYS && outcome != TAMIS_PENDING; stage->key++) {
        tamis_filter *copy;
        if (!CHECK(tamis_filter_clone(&copy, stage->filter) == TAMIS_OK))
            return;
        tamis_filter_remove(copy, &stage->key, sizeof stage->key, &outcome);
        tamis_filter_free(copy);
    }
    stage->key--;
}

/* Removes every second key: some are pending, and vectors are about to go. */
static void half_removed(struct stage *stage)
{
    for (uint32_t i = 60; i < KEYS; i += 2)
        if (tamis_filter_has(stage->filter, &i, sizeof i))
            tamis_filter_remove(stage->filter, &i, sizeof i, NULL);
}

static void half_removed_until_pending(struct stage *stage)
{
    half_removed(stage);
    until_pending(stage);
}

static void time_passed(struct stage *stage)
{
    stage->key = 100000;
    clock_now += 60000;
}

static void much_time_passed(struct stage *stage)
{
    stage->key = 100000;
    clock_now += 200000;
}

static bool deletable(const struct kind *kind)
{
    return kind->options.deletable;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(new_without_memory)
{
    for (unsigned k = 0; k < N_KINDS; k++)
        for (int and_after = 0; and_after < 2; and_after++)
            for (uint64_t n = 1; CHECK(n < 100); n++) {
                struct fault fault;
                tamis_filter *f = NULL;
                tamis_reason reason = {0};
                tamis_options o = kinds[k].options;
                fault_init(&fault);
                fault_arm(&fault, n, and_after);
                o.allocator = &fault.allocator;
                tamis_error e = tamis_filter_new(&f, &o, &reason);
                bool failed = fault.failed > 0;
                CHECK_MSG(e == (failed ? TAMIS_ENOMEM : TAMIS_OK), "%s: %s", kinds[k].name,
                          tamis_error_name(e));
                CHECK((f == NULL) == failed && (reason.text[0] != 0) == failed);
                tamis_filter_free(f);
                CHECK(fault_clean(&fault));
                if (!failed)
                    break;
            }
}

TEST(add_without_memory)
{
    for (unsigned k = 0; k < N_KINDS; k++) {
        unsigned failed = try_each("add", &kinds[k], until_growth, op_add);
        CHECK_MSG(failed > 0 || kinds[k].options.growth == TAMIS_FIXED, "%s", kinds[k].name);
        if (deletable(&kinds[k]) && !kinds[k].options.unique)
            try_each("add to 15", &kinds[k], until_escape, op_add);
    }
}

TEST(expire_without_memory)
{
    const struct kind *window = &kinds[N_KINDS - 1];
    CHECK(try_each("expire", window, time_passed, op_expire) > 0);
    CHECK(try_each("expire", window, much_time_passed, op_expire) > 0);
    CHECK(try_each("add", window, time_passed, op_add) > 0);
    CHECK(try_each("add", window, much_time_passed, op_add) > 0);
}

TEST(remove_without_memory)
{
    unsigned failed = 0;
    for (unsigned k = 0; k < N_KINDS; k++)
        if (deletable(&kinds[k])) {
            failed += try_each("remove", &kinds[k], until_pending, op_remove);
            failed += try_each("remove", &kinds[k], half_removed_until_pending, op_remove);
        }
    CHECK(failed > 10);
}

TEST(algebra_without_memory)
{
    for (unsigned k = 0; k < N_KINDS; k++) {
        preparation prepare = deletable(&kinds[k]) ? half_removed : NULL;
        CHECK(try_each("merge", &kinds[k], prepare, op_merge) > 0);
        CHECK(try_each("concat", &kinds[k], prepare, op_concat) > 0);
        CHECK(try_each("clone", &kinds[k], prepare, op_clone) > 0);
        if (kinds[k].options.growth != TAMIS_SMOOTH) /* they are not folded */
            CHECK_MSG(try_each("fold", &kinds[k], prepare, op_fold) > 0, "%s", kinds[k].name);
        try_each("clear", &kinds[k], prepare, op_clear);
        if (kinds[k].options.growth == TAMIS_FIXED)
            CHECK(try_each("intersect", &kinds[k], prepare, op_intersect) > 0);
    }
}

/* Clear needs no memory: without it the filter is empty all the same. */
TEST(clear_never_fails)
{
    for (unsigned k = 0; k < N_KINDS; k++) {
        struct fault fault;
        struct stage stage;
        tamis_filter_facts info;
        fault_init(&fault);
        if (!CHECK(set_stage(&stage, &kinds[k], &fault)))
            return;
        fault_arm(&fault, 1, true);
        CHECK(tamis_filter_clear(stage.filter) == TAMIS_OK);
        tamis_filter_info(stage.filter, &info);
        bool vector = kinds[k].options.growth != TAMIS_SMOOTH || kinds[k].options.capacity;
        CHECK(info.items == 0 && info.fill == 0 && info.vectors == vector && info.pending == 0);
        fault_arm(&fault, 0, false);
        CHECK(add_range(stage.filter, 0, kinds[k].adds) == TAMIS_OK);
        if (kinds[k].options.growth != TAMIS_WINDOW)
            CHECK_MSG(all_found(stage.filter, 0, kinds[k].adds), "%s", kinds[k].name);
        strike_stage(&stage);
        CHECK(fault_clean(&fault));
    }
}

/* Of many, `done` were done: as if they alone had been asked for. True if an allocation failed. */
static bool try_many(const struct kind *kind, bool removing, uint64_t n)
{
    struct fault fault;
    struct stage stage, twin;
    fault_init(&fault);
    if (!CHECK(set_stage(&twin, kind, &fault)) || !CHECK(set_stage(&stage, kind, &fault)))
        return false;
    fault_arm(&fault, n, true);
    tamis_error e = removing ? op_remove_many(&stage) : op_add_many(&stage);
    fault_arm(&fault, 0, false);
    bool failed = fault.failed > 0;
    if (failed && e == TAMIS_OK)
        CHECK(stage.done == (removing ? 60 : 64));
    else if (failed)
        CHECK((e == TAMIS_ENOMEM || e == TAMIS_EFULL) && stage.done < 64);
    for (uint32_t i = 0; i < stage.done; i++) {
        uint32_t key = removing ? i : 200000 + i;
        tamis_error one = removing ? tamis_filter_remove(twin.filter, &key, sizeof key, NULL)
                                   : tamis_filter_add(twin.filter, &key, sizeof key, NULL);
        CHECK(one == TAMIS_OK && (removing || tamis_filter_has(stage.filter, &key, sizeof key)));
    }
    /* Without memory old vectors of a window stay, and small ones of a dynamic filter apart. */
    if (e == TAMIS_ENOMEM && !removing && kind->options.growth != TAMIS_WINDOW)
        CHECK_MSG(same(stage.filter, twin.filter), "%s: %zu done", kind->name, stage.done);
    strike_stage(&stage);
    strike_stage(&twin);
    CHECK(fault_clean(&fault));
    return failed;
}

TEST(many_stop_where_memory_ends)
{
    for (unsigned k = 0; k < N_KINDS; k++)
        for (int removing = 0; removing <= kinds[k].options.deletable; removing++)
            for (uint64_t n = 1; CHECK(n < 2000) && try_many(&kinds[k], removing, n); n++)
                continue;
}

HARNESS_MAIN
