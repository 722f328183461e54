/* The options as a set stores them: chooses defaults and refuses impossible combinations. */
#include "set.h"

#include "base/err.h"

const char *const growth_names[7] = {"",         "fixed",  "dynamic", "scalable",
                                     "flexible", "window", "smooth"};
const char *const layout_names[3] = {"", "spread", "blocked"};
const char *const hash_names[4] = {"", "xxh3", "sip", "h3"};
const char *const verifier_names[4] = {"", "none", "table", "filter"};

tamis_error shape_from_plan(tamis_layout layout, tamis_plan_size size, struct shape *out)
{
    if (size.bits == 0)
        return TAMIS_ELIMIT;
    *out = (struct shape){layout, size.units, size.k};
    return TAMIS_OK;
}

tamis_error shape_for(tamis_layout layout, uint64_t n, double p, struct shape *out)
{
    return shape_from_plan(layout, plan_filled(layout, n, p), out);
}

/* Dynamic without a bound N (Guo et al., section 4.3): one vector meets fpp, and there are more until
   the whole reaches `tolerate`. Keys that some vector has are not added, so what a vector covers, the next
   ones hardly cover again: the paper's product of rows is right with 6 probes or more, while with fewer
   (rates of 3 % and more) the rates add up, or nearly so. */
static tamis_error tolerant_settings(struct settings *set, tamis_reason *reason)
{
    if (!(set->tolerate > set->fpp && set->tolerate < 1))
        return fail(reason, TAMIS_EARG, "the tolerated rate must lie between the rate and 1");
    tamis_error e = shape_for(set->layout, set->capacity, set->fpp, &set->shape);
    if (e != TAMIS_OK)
        return fail(reason, e, "a vector for this capacity and rate is too large");
    const struct shape *one = &set->shape;
    tamis_plan_limits limits =
        tamis_plan_dynamic_limits(one->k, (double)set->capacity, set->fpp, set->tolerate);
    uint64_t items = limits.dynamic_whole;
    if (one->k < 6) {
        uint64_t rows = (uint64_t)(set->tolerate / set->fpp);
        double rest = set->tolerate - (double)rows * set->fpp;
        items = rows * set->capacity +
                (rest > 0 ? plan_takes(one->layout, one->units, one->k, rest) : 0);
    }
    set->items_max = max_u64(items, set->capacity);
    set->vectors_max =
        (uint32_t)min_u64(MATRIX_COLUMNS_MAX, (set->items_max + set->capacity - 1) / set->capacity);
    return TAMIS_OK;
}

/* Dynamic, bound N known (Guo et al., section 4.2): equal vectors, each with an equal part of the
   keys and of the rate. Their number, unless given, is the best for sizes uniform in 1..N, found on
   a scale of 1024 steps since only proportions matter. */
static tamis_error dynamic_settings(struct settings *set, uint32_t vectors, tamis_reason *reason)
{
    double cumulative[1024];
    size_t steps = (size_t)min_u64(1024, set->capacity);
    if (set->tolerate != 0)
        return tolerant_settings(set, reason);
    if (vectors == 0) {
        tamis_plan_sizes_uniform(cumulative, steps);
        tamis_plan_sizes_cumulate(cumulative, steps);
        vectors = (uint32_t)tamis_plan_dynamic_best(cumulative, steps, set->fpp).s;
    }
    if (vectors == 0 || vectors > MATRIX_COLUMNS_MAX || vectors > set->capacity)
        return fail(reason, TAMIS_EARG,
                    "a dynamic filter has 1 to %u vectors, each for a key or more",
                    MATRIX_COLUMNS_MAX);
    set->items_max = set->capacity;
    set->vectors_max = vectors;
    set->capacity = (set->capacity + vectors - 1) / vectors;
    if (shape_for(set->layout, set->capacity, set->fpp / vectors, &set->shape) != TAMIS_OK)
        return fail(reason, TAMIS_ELIMIT, "a vector for this capacity and rate is too large");
    return TAMIS_OK;
}

static tamis_error window_settings(struct settings *set, uint32_t vectors, tamis_reason *reason)
{
    set->vectors_max = vectors ? vectors : WINDOW_VECTORS;
    if (set->vectors_max < 2 || set->vectors_max > WINDOW_VECTORS_MAX)
        return fail(reason, TAMIS_EARG, "a window has 2 to %d vectors", WINDOW_VECTORS_MAX);
    return TAMIS_OK;
}

static tamis_error published_settings(struct settings *set, const tamis_options *o,
                                      tamis_reason *reason)
{
    if (o->bits == 0 || o->hashes == 0)
        return fail(reason, TAMIS_EARG, "bits and hashes must be given together");
    if (o->bits > BITS_MAX || o->hashes > K_MAX)
        return fail(reason, TAMIS_ELIMIT, "a vector has at most 2^40 bits and %d hashes", K_MAX);
    uint64_t unit = layout_unit_bits(set->layout);
    uint64_t step = unit * shape_step(set->layout);
    set->published = true; /* a possible size is kept: it may be that of a folded vector */
    set->shape = (struct shape){
        set->layout, o->bits % step ? round_up(o->bits, UNIT_STEP * unit) / unit : o->bits / unit,
        o->hashes};
    if (o->capacity == 0)
        set->capacity =
            max_u64(1, tamis_plan_capacity(set->layout, set->shape.units, set->shape.k, set->fpp));
    set->fpp = set->growth == TAMIS_FIXED ? tamis_plan_rate(set->layout, set->shape.units,
                                                            set->shape.k, (double)set->capacity)
                                          : 0;
    set->items_max = set->growth == TAMIS_FIXED ? set->capacity : 0;
    set->vectors_max = set->growth == TAMIS_DYNAMIC ? MATRIX_COLUMNS_MAX : 0;
    if (set->growth == TAMIS_WINDOW)
        return window_settings(set, o->vectors, reason);
    return TAMIS_OK;
}

static tamis_error check_options(const tamis_options *o, const struct settings *set,
                                 tamis_reason *reason)
{
    if (!(set->fpp > 0 && set->fpp < 1)) /* also NaN */
        return fail(reason, TAMIS_EARG, "the rate must lie between 0 and 1");
    if (set->capacity > BITS_MAX)
        return fail(reason, TAMIS_EARG, "the capacity must be at most 2^40");
    if ((unsigned)o->growth > TAMIS_SMOOTH || (unsigned)o->layout > TAMIS_BLOCKED ||
        (unsigned)o->hash > TAMIS_H3)
        return fail(reason, TAMIS_EARG, "an unknown growth, layout or hash");
    if (o->hash == TAMIS_H3 && set->layout != TAMIS_SPREAD)
        return fail(reason, TAMIS_EARG,
                    "h3 gives an address for each probe: use the spread layout");
    if (set->growth == TAMIS_DYNAMIC && set->layout != TAMIS_SPREAD)
        return fail(reason, TAMIS_EARG, "dynamic filters are bit-sliced: use the spread layout");
    if (set->growth == TAMIS_SMOOTH && set->fpp < LINES_RATE_MIN)
        return fail(
            reason, TAMIS_EARG,
            "smooth filters support rates of 0.0001 or more: use scalable growth for lower ones");
    if (set->growth == TAMIS_SMOOTH && (set->layout != TAMIS_BLOCKED || o->bits || o->hashes))
        return fail(reason, TAMIS_EARG, "smooth filters have a layout of their own");
    if (set->growth == TAMIS_WINDOW && set->deletable)
        return fail(reason, TAMIS_EARG,
                    "window filters expire keys by age; they cannot be deletable");
    if (set->unique && !set->deletable)
        return fail(reason, TAMIS_EARG, "unique is a promise about removals: add deletable");
    if (set->shared_adds && (set->deletable || set->growth != TAMIS_FIXED))
        return fail(reason, TAMIS_EARG, "only plain fixed filters take adds from several threads");
    if (!(set->expansion == 0 || (set->expansion >= 1 && set->expansion <= 65536)))
        return fail(reason, TAMIS_EARG, "the expansion must lie between 1 and 65536");
    if (!(set->tolerate >= 0 && set->tolerate < 1))
        return fail(reason, TAMIS_EARG, "the tolerated rate must lie between the rate and 1");
    if (set->tolerate != 0 && set->growth != TAMIS_DYNAMIC)
        return fail(reason, TAMIS_EARG, "only dynamic filters tolerate a higher rate");
    if (o->n_lambdas > TAMIS_LAMBDAS_MAX || (o->n_lambdas && !o->lambdas))
        return fail(reason, TAMIS_EARG, "at most %d lambdas", TAMIS_LAMBDAS_MAX);
    for (size_t i = 0; i < o->n_lambdas; i++)
        if (o->lambdas[i] < 1 || o->lambdas[i] > LAMBDA_MAX)
            return fail(reason, TAMIS_EARG, "a lambda lies between 1 and %d", LAMBDA_MAX);
    return TAMIS_OK;
}

/* Below this rate the uneven load of blocks costs more than a third in bits: spread is the default. */
#define BLOCKED_RATE_MIN 1e-5

static tamis_layout default_layout(const struct settings *set, const tamis_options *o)
{
    if (o->layout != TAMIS_LAYOUT_DEFAULT)
        return o->layout;
    bool spread =
        set->growth == TAMIS_DYNAMIC || o->hash == TAMIS_H3 || set->fpp < BLOCKED_RATE_MIN;
    return spread ? TAMIS_SPREAD : TAMIS_BLOCKED;
}

/* Smooth, unless an option was given that only vectors support. */
static tamis_growth default_growth(const tamis_options *o)
{
    bool vectors = o->layout || o->hash == TAMIS_H3 || o->bits || o->hashes || o->vectors ||
                   o->expansion != 0 || o->n_lambdas || o->shared_adds;
    return vectors || (o->fpp != 0 && o->fpp < LINES_RATE_MIN) ? TAMIS_SCALABLE : TAMIS_SMOOTH;
}

tamis_error settings_from(struct settings *set, const tamis_options *o, tamis_reason *reason)
{
    tamis_growth growth = o->growth ? o->growth : default_growth(o);
    *set = (struct settings){
        .growth = growth,
        .fpp = o->fpp != 0 ? o->fpp : 0.01,
        .capacity = o->capacity || growth == TAMIS_SMOOTH ? o->capacity : CAPACITY_DEFAULT,
        .deletable = o->deletable,
        .unique = o->unique,
        .overfill = o->overfill,
        .shared_adds = o->shared_adds,
        .add_always = o->add_always && o->growth != TAMIS_FIXED && !o->deletable,
        .expansion = o->expansion,
        .tolerate = o->tolerate,
        .n_lambdas = (uint32_t)o->n_lambdas,
        .window = o->window ? o->window : WINDOW_DEFAULT,
        .memory_limit = o->memory_limit,
    };
    set->layout = default_layout(set, o);
    tamis_error e = check_options(o, set, reason);
    if (e != TAMIS_OK)
        return e;
    if (o->n_lambdas)
        memcpy(set->lambdas, o->lambdas, o->n_lambdas);
    set->budget = set->fpp;
    if (o->bits || o->hashes)
        return published_settings(set, o, reason);
    if (set->growth == TAMIS_DYNAMIC)
        return dynamic_settings(set, o->vectors, reason);
    if (set->growth == TAMIS_FIXED)
        set->items_max = set->capacity;
    if (set->growth == TAMIS_WINDOW) {
        e = window_settings(set, o->vectors, reason);
        if (e != TAMIS_OK)
            return e;
        uint64_t spans = set->vectors_max - 1;
        set->capacity = (set->capacity + set->capacity / 4 + spans - 1) / spans;
    }
    return TAMIS_OK;
}

static const char *numbers_wrong(const struct settings *set)
{
    if (!(set->fpp >= 0 && set->budget >= 0 && set->tolerate >= 0 && set->tolerate < 1))
        return "a rate";
    if (!(set->expansion == 0 || (set->expansion >= 1 && set->expansion <= 65536)))
        return "the expansion";
    if (set->capacity > INT64_MAX || set->items_max > INT64_MAX)
        return "a capacity";
    if (set->n_lambdas > TAMIS_LAMBDAS_MAX)
        return "the number of lambdas";
    for (uint32_t i = 0; i < TAMIS_LAMBDAS_MAX; i++)
        if (i < set->n_lambdas ? set->lambdas[i] < 1 || set->lambdas[i] > LAMBDA_MAX
                               : set->lambdas[i] != 0)
            return "a lambda";
    return NULL;
}

const char *settings_wrong(const struct settings *set, const struct family *family)
{
    bool dynamic = set->growth == TAMIS_DYNAMIC, window = set->growth == TAMIS_WINDOW;
    if (set->growth < TAMIS_FIXED || set->growth > TAMIS_SMOOTH)
        return "the growth";
    if (set->layout < TAMIS_SPREAD || set->layout > TAMIS_BLOCKED)
        return "the layout";
    if (set->layout != TAMIS_SPREAD && (dynamic || family->hash == TAMIS_H3))
        return "the layout";
    if (set->growth == TAMIS_SMOOTH && (family->hash == TAMIS_H3 || set->published))
        return "the layout";
    if ((set->deletable && window) || (set->unique && !set->deletable) ||
        (set->shared_adds && (set->deletable || set->growth != TAMIS_FIXED)) ||
        (set->compact && !may_be_compact(set)))
        return "settings that exclude one another";
    if (set->vectors_max > (window ? WINDOW_VECTORS_MAX : MATRIX_COLUMNS_MAX) ||
        (dynamic || window ? set->vectors_max < 1u + window : set->vectors_max != 0))
        return "the most vectors";
    if (window && set->window == 0)
        return "the window";
    if (dynamic || set->published) {
        if (set->shape.layout != set->layout || !shape_valid(&set->shape, family))
            return "the shape";
    } else if (set->shape.layout || set->shape.units || set->shape.k) {
        return "the shape";
    }
    return numbers_wrong(set);
}
