/* The parts of a layer: their shapes, the memory they take, and the limits at which each counts as full. */
#include "set.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The vectors of a growing filter have the same k where possible (plan_in_stack), unless it is compact. */
static tamis_error plan_keys(const struct set *s, struct layer_plan *plan)
{
    const struct settings *opt = set_opt(s);
    bool stack = (opt->growth == TAMIS_SCALABLE && !opt->compact) || opt->growth == TAMIS_FLEXIBLE;
    plan->room[0] = plan->capacity;
    if (opt->growth == TAMIS_DYNAMIC) {
        plan->shape[0] = opt->shape;
        return TAMIS_OK;
    }
    bool first = layers_count(set_layers(s)) == 0 || opt->growth != TAMIS_SMOOTH;
    tamis_layout layout = first ? opt->layout : TAMIS_SPREAD;
    bool close = opt->growth == TAMIS_SMOOTH && layout == TAMIS_BLOCKED;
    tamis_plan_size size = stack
                               ? plan_in_stack(opt->layout, plan->capacity, plan->fpp, opt->budget)
                           : close ? plan_close(plan->capacity, plan->fpp)
                                   : plan_filled(layout, plan->capacity, plan->fpp);
    return shape_from_plan(layout, size, &plan->shape[0]);
}

/* The number of values of an attribute to plan for: as given, or, once a layer has seen more, what that
   layer was made for. An attribute that is full gets at least twice as much, and as much as the records
   will bring at the rate at which it filled: new values become rarer, so this is enough. */
static uint64_t next_values(const struct set *s, uint32_t attribute, uint64_t capacity)
{
    const struct layers *layers = set_layers(s);
    uint64_t most = s->stack->form->distinct[attribute];
    if (most == 0)
        return capacity;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct layer *layer = layers->l[i];
        const struct vector *v = layer->part[attribute].vector;
        most = max_u64(most, v->capacity);
        if (!vector_full(v))
            continue;
        double rate = (double)v->capacity / (double)max_u64(1, layer->load);
        double need = rate * (double)capacity;
        most = max_u64(most, 2 * v->capacity);
        most = max_u64(most, need < (double)capacity ? (uint64_t)need + 1 : capacity);
    }
    return min_u64(most, capacity);
}

/* A shape for n values, and the number it really holds: small ones hold more in the same bits. */
static tamis_error plan_values(const struct set *s, struct layer_plan *plan, uint32_t part,
                               uint64_t n)
{
    tamis_layout layout = set_opt(s)->layout;
    plan->asked[part] = n;
    for (uint32_t i = 0; i < part; i++)
        if (plan->asked[i] <= n && n <= plan->room[i]) { /* the same as before */
            plan->shape[part] = plan->shape[i];
            plan->room[part] = plan->room[i];
            return TAMIS_OK;
        }
    tamis_error e = shape_for(layout, n, plan->fpp, &plan->shape[part]);
    const struct shape *shape = &plan->shape[part];
    if (e == TAMIS_OK)
        plan->room[part] = max_u64(n, plan_takes(layout, shape->units, shape->k, plan->fpp));
    return e;
}

/* No more combinations than records, nor than the values of the attributes allow. */
static uint64_t next_combinations(const struct layer_plan *plan, uint64_t mask)
{
    uint64_t n = 1;
    for (; mask && n < plan->capacity; mask &= mask - 1) {
        uint64_t values = plan->room[__builtin_ctzll(mask)];
        n = n > plan->capacity / values ? plan->capacity : n * values;
    }
    return min_u64(n, plan->capacity);
}

static tamis_error plan_record_parts(const struct set *s, struct layer_plan *plan)
{
    const struct record_form *form = s->stack->form;
    bool tables = form->verifier == TAMIS_VERIFIER_TABLE;
    uint32_t p = form->attributes;
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; i < p && e == TAMIS_OK; i++)
        e = plan_values(s, plan, i, next_values(s, i, plan->capacity));
    for (uint32_t i = 0; i < form->verifiers && e == TAMIS_OK && !tables; i++)
        e = plan_values(s, plan, p + i, next_combinations(plan, form->masks[i]));
    return e;
}

tamis_error plan_parts(const struct set *s, struct layer_plan *plan)
{
    tamis_error e = s->stack->form ? plan_record_parts(s, plan) : plan_keys(s, plan);
    for (uint32_t i = 0; i < set_parts(s) && e == TAMIS_OK; i++)
        if (plan->shape[i].units && !shape_valid(&plan->shape[i], set_family(s)))
            e = TAMIS_ELIMIT;
    return e;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Memory of a block, including alignment. */
static uint64_t block_bytes(uint64_t bytes)
{
    return bytes < UINT64_C(1) << 21 ? round_up(bytes, 64) + 64 : round_up(bytes, 4096);
}

/* Memory of a vector with its first key: its bits, unless they are a column, and counters with
   their first escapes. */
static uint64_t vector_cost(const struct shape *shape, bool deletable, bool own_bits)
{
    uint64_t m = shape->units * layout_unit_bits(shape->layout), bytes = vector_size(deletable);
    if (deletable)
        bytes += block_bytes(m / 2) + table_growth(&(struct table){.slots = NULL}, shape->k);
    return bytes + (own_bits ? block_bytes(m / 8) : 0);
}

/* Growth of the matrix for one more column. */
static uint64_t column_cost(const struct set *s, const struct shape *shape)
{
    const struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    uint64_t n = layers_count(set_layers(s));
    uint64_t width = matrix && matrix->width > n ? matrix->width : matrix_width_for(n + 1);
    uint64_t whole = sizeof *matrix + block_bytes(shape->units * width / 8 + 16);
    return whole - (matrix ? sizeof *matrix + matrix->memory.size : 0);
}

/* Initial room of a table: the values of a batch, so that adding to a new layer cannot fail. */
static size_t first_values(const struct set *s)
{
    return set_opt(s)->deletable ? 1 : BATCH;
}

static bool within_limit(const struct set *s, const struct layer_plan *plan)
{
    const struct table none = {.slots = NULL};
    uint32_t parts = set_parts(s);
    if (s->memory_limit == 0)
        return true;
    uint64_t bytes = set_bytes(s) + layer_size(parts);
    for (uint32_t i = 0; i < parts; i++)
        bytes += plan->shape[i].units
                     ? vector_cost(&plan->shape[i], set_opt(s)->deletable, !set_sliced(s))
                     : table_growth(&none, first_values(s));
    bytes += set_sliced(s) ? column_cost(s, &plan->shape[0]) : 0;
    return bytes <= s->memory_limit;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* The number of ones at which the estimated number of keys reaches the capacity. */
static uint64_t ones_at(const struct vector *v, uint64_t capacity)
{
    tamis_layout layout = v->bits.kernel->layout;
    return SEARCH(ones, vector_positions_total(v),
                  plan_items(layout, v->bits.units, v->bits.k, ones) < (double)capacity);
}

uint64_t growth_root(uint64_t m)
{
    uint64_t root = 1;
    while (root * root < m)
        root *= 2;
    for (uint64_t step = root / 4; step; step /= 2)
        root -= (root - step) * (root - step) >= m ? step : 0;
    return root;
}

/*
 * Deletable vectors also count as full when their bits say so: at the ones expected at capacity
 * plus six standard deviations (at most sqrt(m)/2 each).
 *
 * With several vectors none gets the six deviations: in the long run each would end there. A key
 * that another vector covers goes into that one without being counted, and its removal may lower
 * that vector's load, so the load drifts down and only the bits show when a vector is full. Vectors
 * made as published hold their capacity.
 */
void set_limits(const struct settings *set, struct vector *v, uint64_t capacity, double fpp)
{
    bool several = set->growth != TAMIS_FIXED && !set->published;
    v->capacity = capacity;
    v->fpp = fpp;
    v->ones_max = v->deletable ? ones_at(v, capacity) : UINT64_MAX;
    if (v->deletable && !several)
        v->ones_max += 3 * growth_root(vector_positions_total(v));
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Makes a part with room for its first key. */
static bool part_make(struct set *s, const struct layer_plan *plan, uint32_t i, struct part *part)
{
    const tamis_allocator *a = set_allocator(s);
    if (plan->shape[i].units == 0)
        return table_reserve(&part->table, a, first_values(s));
    part->vector =
        vector_new(a, set_family(s), plan->shape[i], set_opt(s)->deletable, !set_sliced(s));
    if (!part->vector)
        return false;
    set_limits(set_opt(s), part->vector, plan->room[i], plan->fpp);
    return !set_opt(s)->deletable || vector_reserve(part->vector, a);
}

tamis_error plan_make(struct set *s, const struct layer_plan *plan, struct layer **out)
{
    if (!within_limit(s, plan))
        return TAMIS_ESPACE;
    struct layer *layer = layer_new(set_allocator(s), set_parts(s));
    bool made = layer != NULL;
    for (uint32_t i = 0; made && i < layer->parts; i++)
        made = part_make(s, plan, i, &layer->part[i]);
    if (!made) {
        layer_free(layer, set_allocator(s));
        return TAMIS_ENOMEM;
    }
    layer->capacity = plan->capacity;
    layer->fpp = plan->fpp;
    layer->slot = plan->slot;
    layer->born = layer->last = set_now(s);
    *out = layer;
    return TAMIS_OK;
}
