/*
 * The growth policies: what the next layer of a set is. Each layer has a share of the total rate (a
 * slot); the shares in use never add up to more than the stated rate.
 */
#include "set.h"

static double share_of(const struct settings *opt, unsigned slot)
{
    return opt->compact ? plan_share_compact(slot, opt->budget) : plan_share(slot, opt->budget);
}

/* With n slots taken, one in from .. from+n is free; past the larger shares they only fall. */
uint32_t growth_slot(const struct set *s, uint32_t from, double fpp)
{
    enum { LARGER = 16, WORDS = (STACK_MAX + LARGER) / 64 + 1 };
    const struct layers *layers = set_layers(s);
    uint64_t taken[WORDS] = {0};
    uint32_t n = layers_count(layers), last = n + LARGER;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = layers->l[i]->slot - from; /* slots before `from` wrap to large numbers */
        if (at <= last)
            taken[at >> 6] |= UINT64_C(1) << (at & 63);
    }
    for (uint32_t at = 0; at <= last; at++)
        if (!(taken[at >> 6] >> (at & 63) & 1) && share_of(set_opt(s), from + at) >= fpp)
            return from + at;
    return SLOT_NONE;
}

/* A growing stack: a capacity, then the first free share that fits. The small first layers of
   the default schedule have small shares, whose extra bits cost little. */
static tamis_error next_in_stack(const struct set *s, uint64_t capacity, uint32_t from,
                                 struct layer_plan *plan)
{
    plan->capacity = capacity;
    plan->slot = growth_slot(s, from, 0);
    plan->fpp = share_of(set_opt(s), plan->slot);
    return plan_parts(s, plan);
}

/* If many records would still fit but some attribute has no room for their values, a layer like the
   largest. In the last quarter, the bits of a deletable layer may make it full slightly early. */
static tamis_error next_scalable(const struct set *s, struct layer_plan *plan)
{
    const struct layers *layers = set_layers(s);
    const struct settings *opt = set_opt(s);
    uint64_t largest = 0, total = 0, first = opt->capacity;
    double expansion = opt->compact && opt->expansion == 0 ? 2 : opt->expansion;
    bool room = false;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct layer *layer = layers->l[i];
        largest = max_u64(largest, layer->capacity);
        total += layer->capacity;
        uint64_t most = layer->capacity - (opt->deletable ? layer->capacity / 4 : 0);
        room |= s->stack->form && layer_load(s, layer) < most;
    }
    uint64_t capacity = room ? largest : plan_next_capacity(first, largest, total, expansion);
    return next_in_stack(s, capacity, opt->compact ? 0 : plan_slot(first, capacity), plan);
}

/* Xie et al., section 4.3: the rate at which the last one filled enters the forecast, and lambda
   = ceil(log2(predicted / first rate)) + 1; the next one gets 2^(lambda-1) times the base, but
   at least a fraction of all existing ones (not as published). */
static unsigned next_lambda(struct set *s)
{
    const struct layers *layers = set_layers(s);
    uint32_t n = layers_count(layers);
    struct forecast *f = &s->stack->more->forecast;
    if (set_opt(s)->n_lambdas)
        return set_opt(s)->lambdas[min_u64(s->stack->grown, set_opt(s)->n_lambdas - 1)];
    if (s->stack->grown == 0 || n == 0)
        return 1;
    const struct layer *last = layers->l[n - 1];
    uint64_t now = set_now(s), total = 0;
    unsigned least = 1;
    for (uint32_t i = 0; i < n && !set_opt(s)->published; i++)
        total += layers->l[i]->capacity;
    while (least < LAMBDA_MAX &&
           set_opt(s)->capacity << (least - 1) < (total + PLAN_PARTS - 1) / PLAN_PARTS)
        least++;
    if (now > last->born) { /* a clock that stood still says nothing */
        double rate = (double)layer_load(s, last) / (double)(now - last->born);
        if (f->holt.n == 0)
            f->base_rate = rate;
        plan_holt_add(&f->holt, rate);
    }
    unsigned told = tamis_plan_lambda(plan_holt_next(&f->holt), f->base_rate, LAMBDA_MAX);
    return told > least ? told : least;
}

static tamis_error next_flexible(struct set *s, struct layer_plan *plan)
{
    unsigned lambda = next_lambda(s);
    tamis_error e;
    do { /* the largest possible vector */
        uint64_t capacity = set_opt(s)->capacity << (lambda - 1);
        bool fits = capacity >> (lambda - 1) == set_opt(s)->capacity && capacity <= BITS_MAX;
        e = fits ? next_in_stack(s, capacity, s->stack->grown == 0 ? 0 : PLAN_SMALL, plan)
                 : TAMIS_ELIMIT;
    } while (e == TAMIS_ELIMIT && --lambda);
    return e;
}

/* Layers of a window that have expired. */
static uint32_t count_old(const struct set *s, uint64_t now)
{
    const struct layers *layers = set_layers(s);
    uint32_t n = 0;
    while (now >= set_opt(s)->window && n + 1 < layers_count(layers) &&
           layers->l[n]->last < now - set_opt(s)->window)
        n++;
    return n;
}

/*
 * A window starts a layer when the last one is a span, W/(G-1), old, so at most G of those in use were
 * started for this reason. A layer that fills early is followed by one at least twice as large as the
 * largest full one. A layer that fills within its span is smaller than the capacity, so the first layer,
 * of 5/4 capacity / (G-1), is doubled only a few times. These doublings get extra slots, so that the
 * keys of a window always fit, however they arrive.
 */
uint32_t growth_layers_max(const struct settings *set)
{
    uint32_t vectors = set->vectors_max, doublings = 0;
    while (set->growth == TAMIS_WINDOW && UINT64_C(5) << doublings < 4 * (uint64_t)(vectors - 1))
        doublings++;
    return vectors + doublings;
}

static uint64_t window_span(const struct set *s)
{
    return set_opt(s)->window / (set_opt(s)->vectors_max - 1);
}

/* The keys expected in a span at the pace of the last layer, plus a quarter; but not more than the whole capacity
   until a layer has held that many, and at most 8 times the last layer, because a burst says little. */
static uint64_t window_need(const struct set *s, const struct layers *layers, uint32_t n,
                            uint64_t now)
{
    const struct vector *v = layers->v[n - 1];
    uint64_t born = layers->l[n - 1]->born;
    double elapsed = now > born ? (double)(now - born) : 1;
    double need = 1.25 * (double)v->load * (double)window_span(s) / elapsed;
    uint64_t most = 8 * v->capacity, least = set_opt(s)->capacity;
    uint64_t whole = least * (set_opt(s)->vectors_max - 1);
    if (v->capacity < whole)
        most = min_u64(most, whole);
    for (uint32_t i = count_old(s, now); i < n; i++)
        if (vector_full(layers->v[i]))
            least = max_u64(least, 2 * layers->v[i]->capacity);
    return max_u64(least, need < (double)most ? (uint64_t)need : most);
}

static tamis_error next_window(struct set *s, struct layer_plan *plan)
{
    const struct layers *layers = set_layers(s);
    uint32_t n = layers_count(layers);
    uint64_t capacity = n ? window_need(s, layers, n, set_now(s)) : set_opt(s)->capacity;
    plan->capacity = min_u64(capacity, BITS_MAX);
    plan->fpp = set_opt(s)->budget / growth_layers_max(set_opt(s));
    return plan_parts(s, plan);
}

/* The first doubling of the base above all existing vectors: those that removals emptied, or
   that a union added, do not count. */
static unsigned next_doubling(const struct set *s)
{
    const struct layers *layers = set_layers(s);
    uint64_t largest = 0;
    unsigned shift = 0;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        largest = max_u64(largest, layers->v[i]->bits.units);
    while (largest >> shift >= set_opt(s)->shape.units)
        shift++;
    return shift;
}

/* As published: every vector with the k and the ratio of bits to keys of the first. */
static tamis_error next_published(struct set *s, struct layer_plan *plan)
{
    unsigned shift = 0;
    if (set_opt(s)->growth == TAMIS_FLEXIBLE)
        shift = next_lambda(s) - 1;
    else if (set_opt(s)->growth == TAMIS_SCALABLE)
        shift = next_doubling(s);
    if (shift >= 40 || set_opt(s)->shape.units > BITS_MAX >> shift)
        return TAMIS_ELIMIT;
    plan->shape[0] = set_opt(s)->shape;
    plan->shape[0].units <<= shift;
    plan->capacity = plan->room[0] = set_opt(s)->capacity << shift;
    for (uint32_t i = 1; i < set_parts(s); i++) /* of records: attributes and filters alike */
        if (i < s->stack->form->attributes || s->stack->form->verifier != TAMIS_VERIFIER_TABLE) {
            plan->shape[i] = plan->shape[0];
            plan->asked[i] = plan->room[i] = plan->capacity;
        }
    plan->fpp = tamis_plan_rate(set_opt(s)->layout, plan->shape[0].units, plan->shape[0].k,
                                (double)plan->capacity);
    return shape_valid(&plan->shape[0], set_family(s)) ? TAMIS_OK : TAMIS_ELIMIT;
}

/* The vectors of a compact filter: together they have room for (2^i - 1) times the capacity, in the order in which
   RedisBloom's do, and each has half of the rate that is left. All but the first are spread: at such rates blocked ones
   take a fifth more bits. */
static tamis_error next_smooth(const struct set *s, struct layer_plan *plan)
{
    const struct settings *opt = set_opt(s);
    bool more = layers_count(set_layers(s)) > 0;
    uint64_t first = max_u64(1, opt->capacity), end = first, stored = more ? set_stored(s) : 0;
    while (end <= stored && end <= BITS_MAX)
        end = 2 * end + first;
    plan->capacity = end - stored;
    plan->fpp = more ? smooth_rate_left(s) / 2 : smooth_vector_rate(opt);
    return plan_parts(s, plan);
}

double growth_first_rate(const struct settings *opt)
{
    return opt->growth == TAMIS_SCALABLE ? share_of(opt, 0)
           : opt->growth == TAMIS_SMOOTH ? smooth_vector_rate(opt)
                                         : opt->budget;
}

static tamis_error next_of(struct set *s, struct layer_plan *plan)
{
    plan->slot = s->stack->grown;
    if (set_opt(s)->published)
        return next_published(s, plan);
    switch (set_opt(s)->growth) {
    case TAMIS_SCALABLE:
        return next_scalable(s, plan);
    case TAMIS_FLEXIBLE:
        return next_flexible(s, plan);
    case TAMIS_WINDOW:
        return next_window(s, plan);
    case TAMIS_SMOOTH:
        return next_smooth(s, plan);
    default:
        plan->capacity = set_opt(s)->capacity;
        plan->fpp = set_opt(s)->growth == TAMIS_FIXED ? set_opt(s)->budget
                    : set_opt(s)->tolerate != 0       ? set_opt(s)->fpp
                                                : set_opt(s)->budget / set_opt(s)->vectors_max;
        return plan_parts(s, plan);
    }
}

tamis_error growth_next(struct set *s, struct layer **out)
{
    struct layer_plan plan = {0};
    if (s->stack->next_id == UINT32_MAX ||
        s->stack->grown == UINT32_MAX) /* untrusted bytes may claim so */
        return TAMIS_ELIMIT;
    tamis_error e = next_of(s, &plan);
    return e == TAMIS_OK ? plan_make(s, &plan, out) : e;
}

tamis_error growth_grow(struct set *s, struct layer **out)
{
    struct forecast before = s->stack->more->forecast;
    tamis_error e = growth_next(s, out);
    if (e == TAMIS_OK)
        e = set_append(s, *out);
    if (e != TAMIS_OK && set_stacked(s))
        s->stack->more->forecast = before;
    return e;
}

/* ---- room for a key -------------------------------------------------------------------------- */

uint64_t growth_room(const struct set *s)
{
    const struct layers *layers = set_layers(s);
    uint64_t load = 0, most = set_opt(s)->items_max;
    if (most == 0)
        return UINT64_MAX;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        load += layer_load(s, layers->l[i]);
    return most > load ? most - load : 0;
}

bool growth_over(const struct layers *layers, uint32_t part)
{
    uint64_t ones = 0, most = 0, units = 0;
    const struct vector *v = NULL;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        v = layers->l[i]->part[part].vector;
        if (!v)
            return false;
        ones += v->ones;
        most += v->ones_max;
        units += v->bits.units;
    }
    return ones > most && ones > most + 2 * growth_root(units * v->bits.kernel->unit_bits);
}

/* Is the whole filter at its bound? */
static bool filter_is_full(const struct set *s)
{
    const struct settings *opt = set_opt(s);
    const struct layers *layers = set_layers(s);
    if (opt->items_max == 0)
        return false;
    /* A load is at most its vector's count, and `stored` is their sum, except while others add. */
    if ((opt->shared_adds || s->stack->stored >= opt->items_max) && growth_room(s) == 0)
        return true;
    /* A load may have drifted, but the bits tell: see set_limits. */
    bool maybe = layers_count(layers) > 1 || layers->v[0]->ones > layers->v[0]->ones_max;
    return opt->deletable && layers_count(layers) >= opt->vectors_max && maybe &&
           growth_over(layers, 0);
}

/* Dynamic: all vectors are full by their bits, although fewer keys than promised were added. */
static struct layer *fewest_ones(const struct layers *layers)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < layers_count(layers); i++)
        if (layers->v[i]->ones < layers->v[best]->ones)
            best = i;
    return layers->l[best];
}

tamis_error growth_active(struct set *s, struct layer **out)
{
    const struct layers *layers = set_layers(s);
    uint32_t n = layers_count(layers);
    struct layer *newest = layers->l[n - 1];
    bool at_bound = filter_is_full(s);
    uint32_t *open = &s->stack->open;
    if (at_bound) {
        *out = NULL;
    } else if (n == 1 || set_opt(s)->growth == TAMIS_WINDOW) {
        *out = vector_full(layers->v[n - 1]) ? NULL : newest;
    } else { /* whoever makes room sets `open`, so each layer is tested once */
        while (*open < n && vector_full(layers->v[*open]))
            ++*open;
        *out = *open < n ? layers->l[*open] : NULL;
    }
    if (*out)
        return TAMIS_OK;
    if (at_bound || !growth_bound(s) || !set_opt(s)->deletable)
        return growth_layer(s, at_bound, out);
    *out = fewest_ones(layers);
    return TAMIS_OK;
}

tamis_error growth_layer(struct set *s, bool full, struct layer **out)
{
    const struct layers *layers = set_layers(s);
    if (!full && !growth_bound(s))
        return growth_grow(s, out);
    *out = layers->l[layers_count(layers) - 1];
    return set_opt(s)->overfill ? TAMIS_OK : TAMIS_EFULL;
}

bool growth_bound(const struct set *s)
{
    return set_opt(s)->growth == TAMIS_FIXED ||
           (set_opt(s)->vectors_max &&
            layers_count(set_layers(s)) >= growth_layers_max(set_opt(s)));
}

/* ---- windows --------------------------------------------------------------------------------- */

tamis_error growth_turn(struct set *s, uint64_t now)
{
    const struct layers *layers = set_layers(s);
    uint32_t n = layers_count(layers), old = count_old(s, now),
             most = growth_layers_max(set_opt(s));
    struct layer *newest = layers->l[n - 1], *made = NULL;
    bool due = now - newest->born > window_span(s), empty = layers->v[n - 1]->load == 0;
    tamis_error e = TAMIS_OK;
    if (due && !empty && n - old < most) {
        e = growth_next(s, &made); /* what can fail comes first */
        if (e == TAMIS_ESPACE && old && set_let_go(s, old)) {
            old = 0; /* at the memory limit: old ones make room */
            e = growth_next(s, &made);
        }
        if (e != TAMIS_OK)
            return e;
    }
    /* if there is no memory they are dropped later */
    if (old && !set_let_go(s, old) && n == most) {
        layer_free(made, set_allocator(s));
        return TAMIS_OK;
    }
    if (due && empty)
        newest->born = now;
    if (!made)
        return TAMIS_OK;
    e = set_append(s, made); /* if old ones were dropped there is room: it cannot fail */
    old = e == TAMIS_OK ? count_old(s, now) : 0;
    if (old)
        set_let_go(s, old);
    return e;
}
