/* Whole filters beside a model that goes bit by bit: folds of all kinds, shapes and fills, and unions
 * and intersections of vectors that are columns of a matrix.
 */
#include "set/set.h"
#include "harness.h"

static const uint8_t family_key[TAMIS_KEY_LEN] = "algebra model";

static uint64_t fake_clock(void *context)
{
    (void)context;
    return 1000000;
}

static const tamis_options kinds[] = {
    {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD},
    {.growth = TAMIS_FIXED, .layout = TAMIS_BLOCKED},
    {.growth = TAMIS_FIXED, .layout = TAMIS_SPREAD, .hash = TAMIS_H3},
    {.growth = TAMIS_SCALABLE, .layout = TAMIS_SPREAD},
    {.growth = TAMIS_SCALABLE, .layout = TAMIS_BLOCKED},
    {.growth = TAMIS_WINDOW, .layout = TAMIS_BLOCKED, .window = UINT64_C(1) << 40},
    {.growth = TAMIS_DYNAMIC},
    {.growth = TAMIS_DYNAMIC, .hash = TAMIS_SIP},
    {.growth = TAMIS_DYNAMIC},
};
enum { KINDS = sizeof kinds / sizeof *kinds, DYNAMIC = 6 };

/* A filter of the kind, of any size and fill: some keys many times, some taken out again. */
static tamis_filter *some_filter(unsigned kind, bool deletable, uint64_t units, uint64_t *rng)
{
    tamis_options o = kinds[kind];
    tamis_filter *f = NULL;
    o.deletable = deletable && o.growth != TAMIS_WINDOW;
    o.bits = units * (o.layout == TAMIS_BLOCKED ? 512 * 8 : 16);
    o.hashes = 1 + (uint32_t)(units % 7);
    o.capacity = 1 + o.bits / 16 % 100;
    o.overfill = o.growth == TAMIS_FIXED;
    o.key = family_key;
    o.clock = fake_clock;
    o.expansion = 1;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    uint64_t most = o.capacity * (1 + rng_next(rng) % 40);
    uint32_t n = (uint32_t)(rng_next(rng) % most);
    uint32_t from = (uint32_t)(rng_next(rng) % 100000), often = from + (uint32_t)(n ? n / 2 : 0);
    for (uint32_t i = from; i < from + n; i++)
        tamis_filter_add(f, &i, sizeof i, NULL);
    for (int i = 0; n && i < 20; i++) /* past 15 */
        tamis_filter_add(f, &often, sizeof often, NULL);
    for (uint32_t i = from; o.deletable && i < from + n; i++)
        if (rng_next(rng) % 4 == 0)
            CHECK(tamis_filter_remove(f, &i, sizeof i, NULL) == TAMIS_OK);
    return f;
}

static tamis_filter *copy_of(const tamis_filter *f)
{
    tamis_filter *copy = NULL;
    CHECK(tamis_filter_clone(&copy, f) == TAMIS_OK);
    return copy;
}

/* ---- fold ------------------------------------------------------------------------------------ */

/* Bit by bit: each goes to half its position, or its block to half its number. */
static struct vector *slow_fold_vector(const struct vector *v, const struct family *family)
{
    struct shape shape = vector_shape(v);
    uint64_t unit = shape.layout == TAMIS_BLOCKED ? 512 : 1;
    shape.units /= 2;
    struct vector *half = vector_new(&mem_system, family, shape, v->deletable, true);
    if (!CHECK(half))
        return NULL;
    half->count = v->count;
    for (uint64_t i = 0; i < vector_positions_total(v); i++) {
        if (!vector_bit(v, i))
            continue;
        uint64_t at = i / (2 * unit) * unit + i % unit;
        half->ones += v->deletable && !vector_bit(half, at);
        vector_bit_set(half, at);
        if (v->deletable) {
            CHECK(counters_reserve(&half->counters, &mem_system, 1));
            counters_add(&half->counters, at, counters_get(&v->counters, i));
        }
    }
    return half;
}

/* Takes the place of the vectors; dynamic ones are no columns any more. */
static void slow_fold(tamis_filter *f)
{
    struct layers *stack = set_layers(&f->set);
    for (uint32_t i = 0; i < layers_count(stack); i++) {
        struct vector *half = slow_fold_vector(stack->v[i], set_family(&f->set));
        vector_free(stack->v[i], set_allocator(&f->set));
        stack->v[i] = stack->l[i]->part[0].vector = half;
    }
    matrix_free(atomic_load(&f->set.stack->more->matrix), set_allocator(&f->set));
    atomic_store(&f->set.stack->more->matrix, NULL);
    CHECK(pending_rebuild(&f->set) == TAMIS_OK);
}

static bool ones_agree(const tamis_filter *x, const tamis_filter *y)
{
    const struct layers *mine = set_layers(&x->set), *theirs = set_layers(&y->set);
    for (uint32_t i = 0; i < layers_count(mine); i++)
        if (vector_count_ones(mine->v[i]) != vector_count_ones(theirs->v[i]))
            return false;
    return true;
}

TEST(folds_are_those_of_the_model)
{
    uint64_t rng = harness_seed(), pending = 0, large = 0, columns = 0;
    for (int run = 0; run < (harness_long() ? 6000 : 540); run++) {
        unsigned kind = (unsigned)run % KINDS;
        bool deletable = run / KINDS % 3;
        tamis_filter *f = some_filter(kind, deletable, 1 + rng_next(&rng) % 60, &rng);
        tamis_filter *model = copy_of(f);
        pending += atomic_load(&f->set.stack->more->removals.total);
        columns +=
            set_opt(&f->set)->growth == TAMIS_DYNAMIC ? layers_count(set_layers(&f->set)) : 0;
        for (uint32_t i = 0; i < layers_count(set_layers(&f->set)); i++) {
            const struct vector *v = set_layers(&f->set)->v[i];
            large += v->deletable ? v->counters.escapes.used : 0; /* windows never are */
        }
        tamis_error e = tamis_filter_fold(f, TAMIS_MERGE_RESTATE, NULL);
        slow_fold(model);
        CHECK_MSG(e == TAMIS_OK && tamis_filter_equal(f, model) && ones_agree(f, model) &&
                      set_stored(&f->set) == set_stored(&model->set),
                  "run %d, kind %u: %s", run, kind, tamis_error_name(e));
        tamis_filter_free(f);
        tamis_filter_free(model);
    }
    CHECK_MSG(pending > 50 && large > 500 && columns > 1000,
              "%" PRIu64 " pending, %" PRIu64 " large, %" PRIu64 " columns", pending, large,
              columns);
}

/* ---- unions of columns ----------------------------------------------------------------------- */

/* How often each position is counted in all vectors, and whether a bit is set in any. */
struct sums {
    uint64_t *counters;
    uint8_t *bits;
};

static void sum_up(struct sums *sums, const tamis_filter *f)
{
    const struct layers *stack = set_layers(&f->set);
    for (uint32_t i = 0; i < layers_count(stack); i++)
        for (uint64_t p = 0; p < vector_positions_total(stack->v[i]); p++) {
            sums->bits[p] |= vector_bit(stack->v[i], p);
            if (set_opt(&f->set)->deletable)
                sums->counters[p] += counters_get(&stack->v[i]->counters, p);
        }
}

/* Bits as the counters, ones as the bits, nothing in columns that nobody has. */
static bool is_sound(const tamis_filter *f)
{
    const struct layers *stack = set_layers(&f->set);
    const struct matrix *matrix = atomic_load(&f->set.stack->more->matrix);
    uint64_t total = 0, in_matrix = 0;
    for (uint32_t i = 0; i < layers_count(stack); i++) {
        const struct vector *v = stack->v[i];
        uint64_t ones = 0;
        for (uint64_t p = 0; p < vector_positions_total(v); p++) {
            ones += vector_bit(v, p);
            if (v->deletable && vector_bit(v, p) != (counters_get(&v->counters, p) > 0))
                return false;
        }
        total += ones;
        if (ones != vector_count_ones(v) || v->stride != matrix->width)
            return false;
    }
    for (uint64_t i = 0; i < matrix->width * matrix->bits.units; i++)
        in_matrix += matrix->bits.words[i / 64] >> i % 64 & 1;
    return in_matrix == total && matrix->width >= layers_count(stack);
}

/* Side by side: the vectors of both, bit by bit. */
static bool is_both(const tamis_filter *f, const tamis_filter *x, const tamis_filter *y)
{
    const struct layers *all = set_layers(&f->set), *mine = set_layers(&x->set),
                        *theirs = set_layers(&y->set);
    uint32_t at = layers_count(mine);
    for (uint32_t i = 0; i < at; i++)
        if (!vector_equal(all->v[i], mine->v[i]))
            return false;
    for (uint32_t i = 0; i < layers_count(theirs); i++)
        if (theirs->v[i]->count && !vector_equal(all->v[at++], theirs->v[i]))
            return false;
    return at == layers_count(all);
}

TEST(unions_of_columns_are_those_of_the_model)
{
    uint64_t rng = harness_seed(), columns = 0, united = 0;
    for (int run = 0; run < (harness_long() ? 4000 : 400); run++) {
        unsigned kind = DYNAMIC + (unsigned)(rng_next(&rng) % (KINDS - DYNAMIC));
        uint64_t units = 1 + rng_next(&rng) % 40, m = 16 * units;
        bool concat = run % 3 == 0;
        tamis_filter *x = some_filter(kind, run % 2, units, &rng);
        tamis_filter *y = some_filter(kind, run % 2, units, &rng), *f = copy_of(x);
        struct sums expected = {calloc(m, 8), calloc(m, 1)}, got = {calloc(m, 8), calloc(m, 1)};
        sum_up(&expected, x);
        sum_up(&expected, y);
        bool settled = atomic_load(&x->set.stack->more->removals.total) +
                           atomic_load(&y->set.stack->more->removals.total) ==
                       0;
        tamis_error e =
            tamis_filter_merge(f, y, TAMIS_MERGE_RESTATE | (concat ? TAMIS_MERGE_CONCAT : 0), NULL);
        sum_up(&got, f);
        CHECK_MSG(e == TAMIS_OK && is_sound(f) && is_sound(x) && is_sound(y), "run %d", run);
        if (settled) /* else what was pending may be settled now */
            CHECK_MSG(memcmp(expected.counters, got.counters, 8 * m) == 0 &&
                          memcmp(expected.bits, got.bits, m) == 0 && (!concat || is_both(f, x, y)),
                      "run %d, %u and %u columns", run, layers_count(set_layers(&x->set)),
                      layers_count(set_layers(&y->set)));
        columns += layers_count(set_layers(&y->set));
        united += layers_count(set_layers(&x->set)) + layers_count(set_layers(&y->set)) -
                  layers_count(set_layers(&f->set));
        free(expected.counters), free(expected.bits), free(got.counters), free(got.bits);
        tamis_filter_free(f);
        tamis_filter_free(x);
        tamis_filter_free(y);
    }
    CHECK_MSG(columns > 1000 && united > 50, "%" PRIu64 " columns, %" PRIu64 " united", columns,
              united);
}

/* A dynamic filter of one vector may have a matrix with room for more. */
TEST(intersections_of_columns)
{
    uint64_t rng = harness_seed(), wide = 0;
    for (int run = 0; run < 300; run++) {
        uint64_t units = 1 + rng_next(&rng) % 40;
        tamis_filter *f[2], *both = NULL;
        for (int i = 0; i < 2; i++) {
            f[i] = some_filter(DYNAMIC, true, units, &rng);
            while (layers_count(set_layers(&f[i]->set)) > 1)
                set_drop(&f[i]->set, 0);
            const struct matrix *matrix = atomic_load(&f[i]->set.stack->more->matrix);
            wide += matrix->width > 1;
        }
        const struct vector *x = set_layers(&f[0]->set)->v[0], *y = set_layers(&f[1]->set)->v[0];
        tamis_error e = tamis_filter_intersect(&both, f[0], f[1], NULL);
        bool same = e == TAMIS_OK;
        for (uint64_t p = 0; same && p < vector_positions_total(x); p++)
            same = vector_bit(set_layers(&both->set)->v[0], p) ==
                   (vector_bit(x, p) && vector_bit(y, p));
        CHECK_MSG(same, "run %d: %s", run, tamis_error_name(e));
        tamis_filter_free(f[0]);
        tamis_filter_free(f[1]);
        tamis_filter_free(both);
    }
    CHECK_MSG(wide > 20, "%" PRIu64 " wide ones", wide);
}

HARNESS_MAIN
