/* What an index is made of: its settings, and the sizes of the next layer. */
#include "index.h"

#include "err.h"

/* ---- settings -------------------------------------------------------------------------------- */

static tamis_error check_attributes(const tamis_index_options *o, tamis_reason *reason)
{
    if (o->n_attributes < 1 || o->n_attributes > TAMIS_ATTRIBUTES_MAX || !o->attributes)
        return fail(reason, TAMIS_EARG, "an index has 1 to %d attributes", TAMIS_ATTRIBUTES_MAX);
    for (size_t i = 0; i < o->n_attributes; i++) {
        const tamis_attribute *at = &o->attributes[i];
        size_t len = at->name ? strlen(at->name) : 0;
        if (len < 1 || len > ATTRIBUTE_LEN)
            return fail(reason, TAMIS_EARG, "the name of attribute %zu has %zu bytes, not 1 to %d",
                        i + 1, len, ATTRIBUTE_LEN);
        for (size_t j = 0; j < i; j++)
            if (strcmp(o->attributes[j].name, at->name) == 0)
                return fail(reason, TAMIS_EARG, "two attributes are named \"%.100s\"", at->name);
        if ((unsigned)at->type > TAMIS_TIME)
            return fail(reason, TAMIS_EARG, "attribute \"%.100s\" has an unknown type", at->name);
        if (at->distinct > BITS_MAX)
            return fail(reason, TAMIS_EARG, "attribute \"%.100s\" can have 2^40 values at most",
                        at->name);
    }
    return TAMIS_OK;
}

static void add_mask(struct index_settings *set, uint64_t mask)
{
    for (uint32_t i = 0; i < set->verifiers; i++)
        if (set->masks[i] == mask)
            return;
    set->masks[set->verifiers++] = mask;
}

/* One attribute alone needs no filter beside it; a table still makes it exact. */
static tamis_error settle_combos(struct index_settings *set, const tamis_index_options *o,
                                 tamis_reason *reason)
{
    uint32_t p = set->attributes;
    uint64_t all = UINT64_MAX >> (TAMIS_ATTRIBUTES_MAX - p);
    bool verifies = set->verifier != TAMIS_VERIFIER_NONE;
    if (o->n_combos > TAMIS_COMBOS_MAX || (o->n_combos && !o->combos))
        return fail(reason, TAMIS_EARG, "at most %d combinations", TAMIS_COMBOS_MAX);
    if (o->n_combos && (o->no_combos || !verifies))
        return fail(reason, TAMIS_EARG, "combinations of attributes need a verifier");
    if (verifies && (p > 1 || set->verifier == TAMIS_VERIFIER_TABLE))
        add_mask(set, all);
    for (size_t i = 0; i < o->n_combos; i++) {
        uint64_t mask = o->combos[i];
        if (mask & ~all || (mask & (mask - 1)) == 0)
            return fail(reason, TAMIS_EARG,
                        "a combination is a set of two or more of the attributes");
        add_mask(set, mask);
    }
    for (uint32_t i = 0; verifies && p == 3 && i < p && !o->n_combos && !o->no_combos; i++)
        add_mask(set, all & ~(UINT64_C(1) << (p - 1 - i)));
    return TAMIS_OK;
}

tamis_error index_settings_from(struct index_settings *set, const tamis_index_options *o,
                                tamis_reason *reason)
{
    tamis_error e = check_attributes(o, reason);
    if (e != TAMIS_OK)
        return e;
    *set = (struct index_settings){
        .attributes = (uint32_t)o->n_attributes,
        .verifier = o->verifier ? o->verifier : TAMIS_VERIFIER_FILTER,
        .value = o->value ? o->value : TAMIS_VERIFY_MIXED,
    };
    tamis_options grow = {.fpp = o->fpp,
                          .capacity = o->capacity,
                          .growth = o->growth,
                          .layout = o->layout,
                          .hash = o->hash,
                          .deletable = o->deletable,
                          .overfill = o->overfill,
                          .expansion = o->expansion,
                          .vectors = o->layers,
                          .lambdas = o->lambdas,
                          .n_lambdas = o->n_lambdas,
                          .memory_limit = o->memory_limit};
    if ((unsigned)o->verifier > TAMIS_VERIFIER_FILTER ||
        (unsigned)o->value > TAMIS_VERIFY_ATTENUATED)
        return fail(reason, TAMIS_EARG, "an unknown verifier or verification value");
    if (o->growth == TAMIS_WINDOW)
        return fail(reason, TAMIS_EARG, "an index does not forget by age: no window");
    e = settings_from(&set->grow, &grow, reason);
    if (e != TAMIS_OK)
        return e;
    if (set->grow.vectors_max > STACK_MAX)
        return fail(reason, TAMIS_EARG, "an index has at most %d layers", STACK_MAX);
    for (size_t i = 0; i < o->n_attributes; i++) {
        set->types[i] = o->attributes[i].type;
        set->distinct[i] = o->attributes[i].distinct;
    }
    return settle_combos(set, o, reason);
}

const char *index_settings_wrong(const struct index_settings *set, const struct family *family)
{
    uint32_t p = set->attributes;
    if (p < 1 || p > TAMIS_ATTRIBUTES_MAX)
        return "the number of attributes";
    if (set->verifier < TAMIS_VERIFIER_NONE || set->verifier > TAMIS_VERIFIER_FILTER ||
        set->value < TAMIS_VERIFY_MIXED || set->value > TAMIS_VERIFY_ATTENUATED)
        return "the verifier";
    uint64_t all = UINT64_MAX >> (TAMIS_ATTRIBUTES_MAX - p);
    bool whole =
        set->verifier != TAMIS_VERIFIER_NONE && (p > 1 || set->verifier == TAMIS_VERIFIER_TABLE);
    if (set->verifiers > VERIFIERS_MAX || (set->verifiers > 0) != whole ||
        (whole && set->masks[0] != all))
        return "the verifiers";
    for (uint32_t i = 1; i < set->verifiers; i++) {
        bool repeated = false;
        for (uint32_t j = 0; j < i; j++)
            repeated |= set->masks[j] == set->masks[i];
        if (repeated || set->masks[i] & ~all || (set->masks[i] & (set->masks[i] - 1)) == 0)
            return "a combination";
    }
    for (uint32_t i = 0; i < p; i++)
        if ((unsigned)set->types[i] > TAMIS_TIME || set->distinct[i] > BITS_MAX)
            return "an attribute";
    if (set->grow.growth == TAMIS_WINDOW || set->grow.unique || set->grow.published)
        return "the growth";
    if (set->grow.vectors_max > STACK_MAX)
        return "the most layers";
    return settings_wrong(&set->grow, family);
}

/* ---- the next layer -------------------------------------------------------------------------- */

struct plan {
    uint64_t capacity;
    double fpp;
    uint32_t slot;
    struct shape shape[PARTS_MAX]; /* units 0: a table */
    uint64_t asked[PARTS_MAX];     /* values that each part is made for, */
    uint64_t room[PARTS_MAX];      /* and that it holds */
};

uint64_t layer_load(const struct layer *layer, bool deletable)
{
    return deletable ? min_u64(layer->load, layer->count) : layer->load;
}

static uint32_t slot_of(const void *of, uint32_t i)
{
    return index_layers(of)->l[i]->slot;
}

uint32_t index_slot(const tamis_index *x, uint32_t from, double fpp)
{
    struct slot_owner owner = {slot_of, x, layers_count(index_layers(x)), x->set.grow.budget};
    return slot_search(&owner, from, fpp);
}

/* As the vectors of a scalable filter; but where many records would still fit and some attribute has
   no room for their values, a layer like the largest. Of the last quarter the bits of a deletable
   layer may say that it is full, a little before its time. */
static void next_scalable(const tamis_index *x, struct plan *plan)
{
    const struct settings *set = &x->set.grow;
    const struct layers *layers = index_layers(x);
    uint64_t largest = 0, total = 0, first = set->capacity;
    bool room = false;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct layer *layer = layers->l[i];
        largest = max_u64(largest, layer->capacity);
        total += layer->capacity;
        uint64_t most = layer->capacity - (set->deletable ? layer->capacity / 4 : 0);
        room |= layer_load(layer, set->deletable) < most;
    }
    plan->capacity =
        room ? largest : tamis_plan_next_capacity(first, largest, total, set->expansion);
    plan->slot = index_slot(x, tamis_plan_slot(first, plan->capacity), 0);
}

/* As filter_now. */
static uint64_t index_now(tamis_index *x)
{
    if (x->set.grow.growth != TAMIS_FLEXIBLE)
        return 0;
    const struct layers *layers = index_layers(x);
    uint32_t n = layers_count(layers);
    uint64_t now = x->clock(x->clock_context), latest = n ? layers->l[n - 1]->born : 0;
    for (uint32_t i = 0; latest > now && i < n; i++)
        layers->l[i]->born -= min_u64(layers->l[i]->born, latest - now);
    return now;
}

/* As the vectors of a flexible filter (Xie et al., section 4.3). */
static void next_flexible(tamis_index *x, struct plan *plan)
{
    const struct settings *set = &x->set.grow;
    const struct layers *layers = index_layers(x);
    unsigned lambda = 1;
    if (set->n_lambdas) {
        lambda = set->lambdas[min_u64(x->grown, set->n_lambdas - 1)];
    } else if (layers_count(layers)) {
        const struct layer *newest = layers->l[layers_count(layers) - 1];
        struct filling last = {newest->load, newest->born, 0};
        for (uint32_t i = 0; i < layers_count(layers); i++)
            last.total += layers->l[i]->capacity;
        lambda = forecast_next(&x->forecast, &last, set->capacity, index_now(x));
    }
    while (lambda > 1 && set->capacity > BITS_MAX >> (lambda - 1))
        lambda--;
    plan->capacity = set->capacity << (lambda - 1);
    plan->slot = index_slot(x, x->grown == 0 ? 0 : TAMIS_PLAN_SMALL, 0);
}

static void next_records(tamis_index *x, struct plan *plan)
{
    const struct settings *set = &x->set.grow;
    plan->capacity = set->capacity;
    plan->slot = x->grown;
    if (set->growth == TAMIS_FIXED)
        plan->fpp = set->budget;
    else if (set->growth == TAMIS_DYNAMIC)
        plan->fpp = set->budget / set->vectors_max;
    else if (set->growth == TAMIS_SCALABLE)
        next_scalable(x, plan);
    else
        next_flexible(x, plan);
    if (set->growth == TAMIS_SCALABLE || set->growth == TAMIS_FLEXIBLE)
        plan->fpp = tamis_plan_share(plan->slot, set->budget);
}

/* Values of an attribute to plan for: what was said or, once a layer has seen more, what it was made
   for then. An attribute that is full gets at least twice as much, and as much as records bring at
   the rate of the layer that it filled: new values come ever more slowly, so that is enough. */
static uint64_t next_values(const tamis_index *x, uint32_t attribute, uint64_t capacity)
{
    const struct layers *layers = index_layers(x);
    uint64_t most = x->set.distinct[attribute];
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

/* A shape for n values, and how many it really holds: small ones hold more for the same bits. */
static tamis_error plan_part(const tamis_index *x, struct plan *plan, uint32_t part, uint64_t n)
{
    tamis_layout layout = x->set.grow.layout;
    plan->asked[part] = n;
    for (uint32_t i = 0; i < part; i++)
        if (plan->asked[i] <= n && n <= plan->room[i]) { /* the same again */
            plan->shape[part] = plan->shape[i];
            plan->room[part] = plan->room[i];
            return TAMIS_OK;
        }
    tamis_plan_size size = tamis_plan_vector((int)layout, n, plan->fpp);
    if (size.bits == 0)
        return TAMIS_ELIMIT;
    plan->shape[part] = (struct shape){layout, size.units, size.k};
    plan->room[part] = max_u64(n, tamis_plan_capacity((int)layout, size.units, size.k, plan->fpp));
    return shape_valid(&plan->shape[part], &x->family) ? TAMIS_OK : TAMIS_ELIMIT;
}

/* No more combinations than records, nor than the values of the attributes can make. */
static uint64_t next_combinations(const struct plan *plan, uint64_t mask)
{
    uint64_t n = 1;
    for (; mask && n < plan->capacity; mask &= mask - 1) {
        uint64_t values = plan->room[__builtin_ctzll(mask)];
        n = n > plan->capacity / values ? plan->capacity : n * values;
    }
    return min_u64(n, plan->capacity);
}

static tamis_error plan_layer(tamis_index *x, struct plan *plan)
{
    uint32_t p = x->set.attributes;
    tamis_error e = TAMIS_OK;
    next_records(x, plan);
    for (uint32_t i = 0; i < p && e == TAMIS_OK; i++)
        e = plan_part(x, plan, i, next_values(x, i, plan->capacity));
    for (uint32_t i = 0; i < x->set.verifiers && e == TAMIS_OK; i++) {
        uint64_t n = next_combinations(plan, x->set.masks[i]);
        if (x->set.verifier != TAMIS_VERIFIER_TABLE)
            e = plan_part(x, plan, p + i, n);
    }
    return e;
}

static size_t layer_size(uint32_t parts)
{
    return sizeof(struct layer) + parts * sizeof(struct part);
}

/* That a new table has room for: those of a batch, so that adding to a layer just made cannot fail. */
static size_t first_values(const tamis_index *x)
{
    return x->set.grow.deletable ? 1 : BATCH;
}

static tamis_error within_limit(const tamis_index *x, const struct plan *plan)
{
    const struct table none = {.slots = NULL};
    uint32_t parts = x->set.attributes + x->set.verifiers;
    if (x->set.grow.memory_limit == 0)
        return TAMIS_OK;
    uint64_t bytes = index_bytes(x) + layer_size(parts);
    for (uint32_t i = 0; i < parts; i++)
        bytes += plan->shape[i].units ? vector_cost(&plan->shape[i], x->set.grow.deletable, true)
                                      : table_growth(&none, first_values(x));
    return bytes <= x->set.grow.memory_limit ? TAMIS_OK : TAMIS_ESPACE;
}

void layer_free(struct layer *layer, const tamis_allocator *a)
{
    if (!layer)
        return;
    for (uint32_t i = 0; i < layer->parts; i++) {
        vector_free(layer->part[i].vector, a);
        table_free(&layer->part[i].table, a);
    }
    mem_free(a, layer, 1, layer_size(layer->parts));
}

struct layer *layer_new(const tamis_allocator *a, uint32_t parts)
{
    struct layer *layer = mem_new0(a, 1, layer_size(parts));
    if (layer)
        layer->parts = parts;
    return layer;
}

static bool part_make(tamis_index *x, const struct plan *plan, uint32_t i, struct part *part)
{
    const tamis_allocator *a = &x->allocator;
    bool deletable = x->set.grow.deletable;
    if (plan->shape[i].units == 0)
        return table_reserve(&part->table, a, first_values(x));
    part->vector = vector_new(a, &x->family, plan->shape[i], deletable, true);
    if (!part->vector)
        return false;
    filter_set_limits(&x->set.grow, part->vector, plan->room[i], plan->fpp);
    return !deletable || vector_reserve(part->vector, a);
}

tamis_error index_next_layer(tamis_index *x, struct layer **out)
{
    struct plan plan = {0};
    const tamis_allocator *a = &x->allocator;
    struct layer *layer = NULL;
    tamis_error e = plan_layer(x, &plan);
    if (e == TAMIS_OK)
        e = within_limit(x, &plan);
    if (e == TAMIS_OK && !(layer = layer_new(a, x->set.attributes + x->set.verifiers)))
        e = TAMIS_ENOMEM;
    for (uint32_t i = 0; e == TAMIS_OK && i < layer->parts; i++)
        if (!part_make(x, &plan, i, &layer->part[i]))
            e = TAMIS_ENOMEM;
    if (e != TAMIS_OK) {
        layer_free(layer, a);
        return e;
    }
    layer->capacity = plan.capacity;
    layer->fpp = plan.fpp;
    layer->slot = plan.slot;
    layer->born = index_now(x);
    *out = layer;
    return TAMIS_OK;
}

tamis_error index_grow(tamis_index *x)
{
    struct forecast before = x->forecast;
    struct layer *layer;
    tamis_error e = index_next_layer(x, &layer);
    if (e == TAMIS_OK)
        e = index_append(x, layer);
    if (e != TAMIS_OK) { /* the forecast is as it was */
        x->forecast = before;
    }
    return e;
}
