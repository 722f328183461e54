/*
 * What the next vector of a filter is: the growth policies. Each vector has a share of the total
 * rate (a slot); shares in use never sum to more than the stated rate.
 */
#include "filter.h"

#include "err.h"

/* Of n slots taken one in from .. from+n is free; past the larger shares those only fall. */
uint32_t slot_search(const struct slot_owner *owner, uint32_t from, double fpp)
{
    enum { LARGER = 16, WORDS = (STACK_MAX + LARGER) / 64 + 1 };
    uint64_t taken[WORDS] = {0};
    uint32_t last = owner->n + LARGER;
    for (uint32_t i = 0; i < owner->n; i++) {
        uint32_t at = owner->slot(owner->of, i) - from; /* those before it wrap to far beyond */
        if (at <= last)
            taken[at >> 6] |= UINT64_C(1) << (at & 63);
    }
    for (uint32_t at = 0; at <= last; at++)
        if (!(taken[at >> 6] >> (at & 63) & 1) && tamis_plan_share(from + at, owner->budget) >= fpp)
            return from + at;
    return SLOT_NONE;
}

static uint32_t slot_of(const void *of, uint32_t i)
{
    return filter_stack(of)->v[i]->slot;
}

uint32_t growth_slot(const tamis_filter *f, uint32_t from, double fpp)
{
    struct slot_owner owner = {slot_of, f, stack_count(filter_stack(f)), f->set.budget};
    return slot_search(&owner, from, fpp);
}

struct next {
    struct shape shape;
    uint64_t capacity;
    double fpp;
    uint32_t slot;
};

/* A growing stack: a capacity, then the first free share that suits it. The small first vectors
   of the default schedule have small shares: their extra bits cost little. */
static tamis_error next_in_stack(tamis_filter *f, uint64_t capacity, uint32_t from,
                                 struct next *out)
{
    out->capacity = capacity;
    out->slot = growth_slot(f, from, 0);
    out->fpp = tamis_plan_share(out->slot, f->set.budget);
    return shape_from_plan(
        f->set.layout, tamis_plan_in_stack((int)f->set.layout, capacity, out->fpp, f->set.budget),
        &out->shape);
}

static tamis_error next_scalable(tamis_filter *f, struct next *out)
{
    const struct stack *stack = filter_stack(f);
    uint64_t largest = 0, total = 0;
    for (uint32_t i = 0; i < stack_count(stack); i++) {
        largest = max_u64(largest, stack->v[i]->capacity);
        total += stack->v[i]->capacity;
    }
    uint64_t first = f->set.capacity;
    uint64_t capacity = tamis_plan_next_capacity(first, largest, total, f->set.expansion);
    return next_in_stack(f, capacity, tamis_plan_slot(first, capacity), out);
}

/* Xie et al., section 4.3: the rate at which the last one filled goes into the forecast, and
   lambda = ceil(log2(predicted / first rate)) + 1. */
unsigned forecast_next(struct forecast *f, const struct filling *last, uint64_t base, uint64_t now)
{
    uint64_t born = last->born, least = (last->total + TAMIS_PLAN_PARTS - 1) / TAMIS_PLAN_PARTS;
    unsigned lambda = 1;
    if (now > born) { /* a clock that stood still tells nothing */
        double rate = (double)last->load / (double)(now - born);
        if (f->holt.n == 0)
            f->base_rate = rate;
        tamis_plan_holt_add(&f->holt, rate);
    }
    while (lambda < LAMBDA_MAX && base << (lambda - 1) < least)
        lambda++;
    unsigned told = tamis_plan_lambda(tamis_plan_holt_next(&f->holt), f->base_rate, LAMBDA_MAX);
    return told > lambda ? told : lambda;
}

static unsigned next_lambda(tamis_filter *f)
{
    const struct settings *set = &f->set;
    if (f->grown == 0 && set->n_lambdas == 0)
        return 1;
    if (set->n_lambdas)
        return set->lambdas[min_u64(f->grown, set->n_lambdas - 1)];
    const struct stack *stack = filter_stack(f);
    const struct vector *newest = stack->v[stack_count(stack) - 1];
    struct filling last = {newest->capacity, newest->born, 0};
    for (uint32_t i = 0; i < stack_count(stack) && !set->published; i++)
        last.total += stack->v[i]->capacity;
    return forecast_next(&f->forecast, &last, set->capacity, filter_now(f));
}

static tamis_error next_flexible(tamis_filter *f, struct next *out)
{
    unsigned lambda = next_lambda(f);
    tamis_error e;
    do { /* the largest that a vector can be */
        uint64_t capacity = f->set.capacity << (lambda - 1);
        bool fits = capacity >> (lambda - 1) == f->set.capacity && capacity <= BITS_MAX;
        e = fits ? next_in_stack(f, capacity, f->grown == 0 ? 0 : TAMIS_PLAN_SMALL, out)
                 : TAMIS_ELIMIT;
    } while (e == TAMIS_ELIMIT && --lambda);
    return e;
}

/* Vectors of a window that are due to go. */
static uint32_t count_old(const tamis_filter *f, uint64_t now)
{
    const struct stack *stack = filter_stack(f);
    uint32_t n = 0;
    while (now >= f->set.window && n + 1 < stack_count(stack) &&
           stack->v[n]->last < now - f->set.window)
        n++;
    return n;
}

/*
 * A window begins a vector when the last one is a span, W/(G-1), old: of those in use G at most began so.
 * A vector that is full before its time is followed by one twice as large as the largest full one, at
 * least: what fills before its span is over was smaller than the capacity, so that the first vector,
 * 5/4 capacity / (G-1), doubles few times. Those places come on top, and however the keys of a window
 * arrive, there is a place for them.
 */
uint32_t window_places(uint32_t vectors)
{
    uint32_t doublings = 0;
    while (UINT64_C(5) << doublings < 4 * (uint64_t)(vectors - 1))
        doublings++;
    return vectors + doublings;
}

uint32_t growth_places(const struct settings *set)
{
    return set->growth == TAMIS_WINDOW ? window_places(set->vectors_max) : set->vectors_max;
}

static uint64_t window_span(const tamis_filter *f)
{
    return f->set.window / (f->set.vectors_max - 1);
}

/* What will come in a span at the pace of the last vector, and a quarter more; but no more than the
   whole capacity before one vector held that, and 8 times the last at most: a burst tells little. */
static uint64_t window_need(const tamis_filter *f, const struct stack *stack, uint32_t n,
                            uint64_t now)
{
    const struct vector *last = stack->v[n - 1];
    double elapsed = now > last->born ? (double)(now - last->born) : 1;
    double need = 1.25 * (double)last->load * (double)window_span(f) / elapsed;
    uint64_t most = 8 * last->capacity, least = f->set.capacity;
    uint64_t whole = least * (f->set.vectors_max - 1);
    if (last->capacity < whole)
        most = min_u64(most, whole);
    for (uint32_t i = count_old(f, now); i < n; i++)
        if (vector_full(stack->v[i]))
            least = max_u64(least, 2 * stack->v[i]->capacity);
    return max_u64(least, need < (double)most ? (uint64_t)need : most);
}

static tamis_error next_window(tamis_filter *f, struct next *out)
{
    const struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack);
    uint64_t capacity = n ? window_need(f, stack, n, filter_now(f)) : f->set.capacity;
    out->capacity = min_u64(capacity, BITS_MAX);
    out->fpp = f->set.budget / growth_places(&f->set);
    out->slot = f->grown;
    return shape_for(f->set.layout, out->capacity, out->fpp, &out->shape);
}

/* The first double of the base above all vectors there are: those that removals emptied, or that a
   union brought, do not count. */
static unsigned next_doubling(const tamis_filter *f)
{
    const struct stack *stack = filter_stack(f);
    uint64_t largest = 0;
    unsigned shift = 0;
    for (uint32_t i = 0; i < stack_count(stack); i++)
        largest = max_u64(largest, stack->v[i]->bits.units);
    while (largest >> shift >= f->set.shape.units)
        shift++;
    return shift;
}

/* As published: every vector with the ratio of bits to keys, and the k, of the first. */
static tamis_error next_published(tamis_filter *f, struct next *out)
{
    unsigned shift = 0;
    if (f->set.growth == TAMIS_FLEXIBLE)
        shift = next_lambda(f) - 1;
    else if (f->set.growth == TAMIS_SCALABLE)
        shift = next_doubling(f);
    if (shift >= 40 || f->set.shape.units > BITS_MAX >> shift)
        return TAMIS_ELIMIT;
    out->shape = f->set.shape;
    out->shape.units <<= shift;
    out->capacity = f->set.capacity << shift;
    out->fpp =
        tamis_plan_rate((int)f->set.layout, out->shape.units, out->shape.k, (double)out->capacity);
    out->slot = f->grown;
    return shape_valid(&out->shape, &f->family) ? TAMIS_OK : TAMIS_ELIMIT;
}

static tamis_error next_of(tamis_filter *f, struct next *out)
{
    if (f->set.published)
        return next_published(f, out);
    switch (f->set.growth) {
    case TAMIS_SCALABLE:
        return next_scalable(f, out);
    case TAMIS_FLEXIBLE:
        return next_flexible(f, out);
    case TAMIS_WINDOW:
        return next_window(f, out);
    case TAMIS_DYNAMIC:
        *out = (struct next){f->set.shape, f->set.capacity, 0, f->grown};
        out->fpp = f->set.tolerate != 0 ? f->set.fpp : f->set.budget / f->set.vectors_max;
        return TAMIS_OK;
    default:
        *out = (struct next){.capacity = f->set.capacity, .fpp = f->set.budget};
        return shape_for(f->set.layout, out->capacity, out->fpp, &out->shape);
    }
}

/* The ones at which the estimate of keys reaches the capacity. */
static uint64_t ones_at(const struct vector *v, uint64_t capacity)
{
    uint64_t low = 0, high = vector_positions_total(v);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (tamis_plan_items((int)v->bits.kernel->layout, v->bits.units, v->bits.k, middle) <
            (double)capacity)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
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

/* Deletable vectors also count as full when their bits say so: at the ones expected at capacity and
   six standard deviations (at most sqrt(m)/2 each). */
void vector_set_limits(struct vector *v, uint64_t capacity, double fpp)
{
    v->capacity = capacity;
    v->fpp = fpp;
    v->ones_max = UINT64_MAX;
    if (!v->deletable)
        return;
    v->ones_max = ones_at(v, capacity) + 3 * growth_root(vector_positions_total(v));
}

/*
 * Of several vectors none gets the six deviations: in the long run each would end there. A key that
 * another vector covers goes into that one without being counted, and its removal may lower the load
 * of it, so load drifts down and the bits alone say what is full. Vectors made as published hold
 * their capacity.
 */
void filter_set_limits(const struct settings *set, struct vector *v, uint64_t capacity, double fpp)
{
    vector_set_limits(v, capacity, fpp);
    if (v->deletable && set->growth != TAMIS_FIXED && !set->published)
        v->ones_max = ones_at(v, capacity);
}

/* What a block takes, edges included. */
static uint64_t block_bytes(uint64_t bytes)
{
    return bytes < UINT64_C(1) << 21 ? round_up(bytes, 64) + 64 : round_up(bytes, 4096);
}

uint64_t vector_cost(const struct shape *shape, bool deletable, bool own_bits)
{
    uint64_t m = shape->units * layout_unit_bits(shape->layout), bytes = sizeof(struct vector);
    if (deletable)
        bytes += block_bytes(m / 2) + 64 * sizeof(struct escape);
    return bytes + (own_bits ? block_bytes(m / 8) : 0);
}

/* What the filter grows by with one more vector: its bits, or those of a wider matrix, and counters. */
static uint64_t bytes_for(const tamis_filter *f, const struct shape *shape)
{
    const struct matrix *matrix = atomic_load(&f->matrix);
    bool own_bits = f->set.growth != TAMIS_DYNAMIC;
    uint64_t bytes = vector_cost(shape, f->set.deletable, own_bits);
    uint64_t m = shape->units, n = stack_count(filter_stack(f));
    if (own_bits)
        return bytes;
    uint64_t width = matrix && matrix->width > n ? matrix->width : matrix_width_for(n + 1);
    uint64_t whole = sizeof *matrix + block_bytes(m * width / 8 + 16);
    return bytes + whole - (matrix ? sizeof *matrix + matrix->memory.size : 0);
}

tamis_error growth_next(tamis_filter *f, struct vector **out)
{
    struct next next = {0};
    if (f->next_id == UINT32_MAX || f->grown == UINT32_MAX) /* bytes from elsewhere may say so */
        return TAMIS_ELIMIT;
    tamis_error e = next_of(f, &next);
    if (e != TAMIS_OK)
        return e;
    if (!shape_valid(&next.shape, &f->family))
        return TAMIS_ELIMIT;
    if (f->set.memory_limit) {
        tamis_info info;
        tamis_filter_brief(f, &info);
        if (info.bytes + bytes_for(f, &next.shape) > f->set.memory_limit)
            return TAMIS_ESPACE;
    }
    struct vector *v = vector_new(&f->allocator, &f->family, next.shape, f->set.deletable,
                                  f->set.growth != TAMIS_DYNAMIC);
    if (!v || (f->set.deletable && !vector_reserve(v, &f->allocator))) { /* for its first key */
        vector_free(v, &f->allocator);
        return TAMIS_ENOMEM;
    }
    filter_set_limits(&f->set, v, next.capacity, next.fpp);
    v->slot = next.slot;
    v->born = v->last = filter_now(f);
    *out = v;
    return TAMIS_OK;
}

/* Dynamic: all vectors are full by their bits, though the keys that were promised are not all in. */
static struct vector *fewest_ones(const struct stack *stack)
{
    struct vector *best = stack->v[0];
    for (uint32_t i = 1; i < stack_count(stack); i++)
        if (stack->v[i]->ones < best->ones)
            best = stack->v[i];
    return best;
}

/* The first; NULL: all are full. Who makes room says so (`open`), so each is looked at once. */
static struct vector *first_with_room(tamis_filter *f, const struct stack *stack, uint32_t n)
{
    while (f->open < n && vector_full(stack->v[f->open]))
        f->open++;
    return f->open < n ? stack->v[f->open] : NULL;
}

tamis_error growth_active(tamis_filter *f, struct vector **out)
{
    const struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack);
    struct vector *newest = stack->v[n - 1];
    bool at_bound = filter_is_full(f);
    if (at_bound)
        *out = NULL;
    else if (n == 1 || f->set.growth == TAMIS_WINDOW)
        *out = vector_full(newest) ? NULL : newest;
    else
        *out = first_with_room(f, stack, n);
    if (*out)
        return TAMIS_OK;
    bool may_grow = f->set.growth != TAMIS_FIXED && !at_bound &&
                    !(f->set.vectors_max && n >= growth_places(&f->set));
    if (!may_grow) {
        *out = at_bound || !f->set.deletable ? NULL : fewest_ones(stack);
        if (*out)
            return TAMIS_OK;
        if (!f->set.overfill)
            return TAMIS_EFULL;
        *out = newest;
        return TAMIS_OK;
    }
    struct forecast before = f->forecast;
    struct vector *made;
    tamis_error e = growth_next(f, &made);
    if (e == TAMIS_OK)
        e = filter_append(f, made);
    if (e == TAMIS_OK) {
        *out = made;
    } else { /* the forecast is as it was */
        f->forecast = before;
    }
    return e;
}

/* ---- windows --------------------------------------------------------------------------------- */

tamis_error growth_turn(tamis_filter *f, uint64_t now)
{
    const struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack), old = count_old(f, now), places = growth_places(&f->set);
    struct vector *newest = stack->v[n - 1], *made = NULL;
    bool due = now - newest->born > window_span(f);
    tamis_error e = TAMIS_OK;
    if (due && newest->load && n - old < places) {
        e = growth_next(f, &made); /* what can fail comes first */
        if (e == TAMIS_ESPACE && old && filter_let_go(f, old)) {
            old = 0; /* at the limit of memory: the old make room */
            e = growth_next(f, &made);
        }
        if (e != TAMIS_OK)
            return e;
    }
    if (old && !filter_let_go(f, old) && n == places) { /* without memory they go another time */
        vector_free(made, &f->allocator);
        return TAMIS_OK;
    }
    if (due && newest->load == 0)
        newest->born = now;
    if (!made)
        return TAMIS_OK;
    e = filter_append(f, made); /* if old ones went there is room: then it does not fail */
    old = e == TAMIS_OK ? count_old(f, now) : 0;
    if (old)
        filter_let_go(f, old);
    return e;
}
