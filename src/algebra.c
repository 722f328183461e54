/* Whole filters: copies, unions, intersections, folds, comparison. */
#include "filter.h"

#include "err.h"

/* ---- copies ---------------------------------------------------------------------------------- */

/* The vectors as they are, or folded to half. */
static tamis_error clone_vectors(tamis_filter *to, const tamis_filter *from, bool half)
{
    const struct stack *stack = filter_stack(from);
    const tamis_allocator *a = &to->allocator;
    uint32_t n = stack_count(stack);
    struct stack *copy = stack_new(a, stack->room);
    if (!copy)
        return TAMIS_ENOMEM;
    atomic_store(&to->stack, copy);
    for (uint32_t i = 0; i < n; i++) {
        copy->v[i] = half ? vector_fold(stack->v[i], &to->family, a)
                          : vector_clone(stack->v[i], &to->family, a);
        if (!copy->v[i])
            return TAMIS_ENOMEM;
        atomic_store(&copy->n, i + 1);
    }
    const struct matrix *matrix = atomic_load(&from->matrix);
    if (matrix) {
        struct matrix *same =
            half ? matrix_fold(matrix, a) : matrix_resize(matrix, a, matrix->width);
        if (!same)
            return TAMIS_ENOMEM;
        same->bits.family = &to->family;
        atomic_store(&to->matrix, same);
        filter_place_columns(to);
    }
    return TAMIS_OK;
}

static tamis_error clone_removals(tamis_filter *to, const tamis_filter *from)
{
    for (uint32_t i = 0; i < from->removals.room; i++) {
        const struct pending *p = removals_entry(&from->removals, i);
        uint64_t copies = p ? atomic_load(&p->copies) : 0;
        if (copies == 0)
            continue;
        tamis_error e = removals_remember(to, p->digest, copies, p->candidates, p->n, p->hides);
        if (e != TAMIS_OK)
            return e;
    }
    return TAMIS_OK;
}

static tamis_error clone(tamis_filter **out, const tamis_filter *from, bool half)
{
    tamis_filter *f = mem_new0(&from->allocator, 1, sizeof *f);
    if (!f)
        return TAMIS_ENOMEM;
    f->allocator = from->allocator;
    f->set = from->set;
    f->next_id = from->next_id;
    f->forecast = from->forecast;
    f->grown = from->grown;
    f->clock = from->clock;
    f->clock_context = from->clock_context;
    f->stored = from->stored;
    f->bits_only = from->bits_only || !filter_counted(from);
    f->read_only = from->read_only && (f->bits_only || !from->mapping.data);
    removals_init(&f->removals);
    tamis_error e = family_copy(&f->family, &from->family, &f->allocator);
    if (e == TAMIS_OK && from->guard) {
        f->guard = mem_new0(&f->allocator, 1, sizeof *f->guard);
        e = f->guard ? TAMIS_OK : TAMIS_ENOMEM;
    }
    if (e == TAMIS_OK)
        e = clone_vectors(f, from, half);
    if (e == TAMIS_OK)
        e = clone_removals(f, from);
    if (e != TAMIS_OK) {
        tamis_filter_free(f);
        return e;
    }
    filter_set_quick(f);
    *out = f;
    return TAMIS_OK;
}

tamis_error tamis_filter_clone(tamis_filter **out, const tamis_filter *from)
{
    return clone(out, from, false);
}

/* Vectors point at their family, which moves. */
void filter_become(tamis_filter *f, tamis_filter *made)
{
    filter_dispose(f);
    *f = *made;
    const struct stack *stack = filter_stack(f);
    for (uint32_t i = 0; i < stack_count(stack); i++)
        stack->v[i]->bits.family = &f->family;
    struct matrix *matrix = atomic_load(&f->matrix);
    if (matrix)
        matrix->bits.family = &f->family;
    filter_set_quick(f);
    mem_free_secret(&f->allocator, made, 1, sizeof *made);
}

/* ---- union ----------------------------------------------------------------------------------- */

static uint64_t effective_load(const struct vector *v)
{
    return v->deletable ? min_u64(v->load, v->count) : v->load;
}

/* Do the keys of two vectors fit into one? There are no more keys than copies. Else both the load,
   which drifts where keys cover one another, and the bits, which could all differ, must allow it. */
static bool fit_in_one(uint64_t counts, uint64_t loads, uint64_t ones, const struct vector *to)
{
    if (!to->deletable)
        return loads <= to->capacity;
    return counts <= to->capacity || (loads <= to->capacity && ones <= to->ones_max);
}

static bool fit_together(const struct vector *to, const struct vector *from)
{
    return fit_in_one(to->count + from->count, effective_load(to) + effective_load(from),
                      to->ones + from->ones, to);
}

static void keep_least(uint64_t least[2], uint64_t value)
{
    if (value < least[1])
        least[1] = value;
    if (least[1] < least[0]) {
        least[1] = least[0];
        least[0] = value;
    }
}

uint64_t filter_pair_distance(const tamis_filter *f)
{
    const struct stack *stack = filter_stack(f);
    uint64_t loads[2] = {INT64_MAX, INT64_MAX}, most = 0;
    for (uint32_t i = 0; i < stack_count(stack); i++) {
        keep_least(loads, effective_load(stack->v[i]));
        most = max_u64(most, stack->v[i]->capacity);
    }
    return loads[0] + loads[1] > most ? loads[0] + loads[1] - most : 0;
}

/* Is it worth looking for a pair? */
static bool may_have_pair(const struct stack *stack)
{
    enum { HALF = INT64_MAX };
    uint64_t counts[2] = {HALF, HALF}, loads[2] = {HALF, HALF}, ones[2] = {HALF, HALF};
    bool may = false;
    for (uint32_t i = 0; i < stack_count(stack); i++) {
        keep_least(counts, stack->v[i]->count);
        keep_least(loads, effective_load(stack->v[i]));
        keep_least(ones, stack->v[i]->ones);
    }
    for (uint32_t i = 0; i < stack_count(stack) && !may; i++)
        may =
            fit_in_one(counts[0] + counts[1], loads[0] + loads[1], ones[0] + ones[1], stack->v[i]);
    return may;
}

#define UNITED 4096 /* looks that uniting two counts for: the stack and the matrix close up */

tamis_error filter_merge_pairs(tamis_filter *f, uint64_t looks, bool *merged)
{
    struct stack *stack = filter_stack(f);
    *merged = false;
    if (!may_have_pair(stack))
        return TAMIS_OK;
    for (uint32_t i = 0; i < stack_count(stack); i++)
        for (uint32_t j = i + 1; j < stack_count(stack); j++) {
            struct vector *to = stack->v[i], *from = stack->v[j];
            if (looks-- == 0) {
                *merged = false;
                return TAMIS_OK;
            }
            if (!shape_equal(to, from) || !fit_together(to, from))
                continue;
            if (!vector_unite_reserve(to, from, &f->allocator))
                return TAMIS_ENOMEM;
            vector_unite(to, from);
            from->count = 0; /* they are in `to` now, and the sum of all stays */
            uint32_t gone = from->id, kept = to->id;
            filter_drop(f, j);
            removals_rename(f, gone, kept);
            *merged = true;
            looks -= min_u64(looks, UNITED);
            j--;
        }
    return TAMIS_OK;
}

/* The vector of `f` that can take `v` in, or NULL. Fixed filters have one, and must. */
static struct vector *home_for(const tamis_filter *f, const struct vector *v, unsigned flags)
{
    const struct stack *stack = filter_stack(f);
    bool fixed = f->set.growth == TAMIS_FIXED;
    for (uint32_t i = 0; i < stack_count(stack) && (fixed || !(flags & TAMIS_MERGE_CONCAT)); i++) {
        struct vector *to = stack->v[i];
        if (!shape_equal(to, v) || (to->capacity != v->capacity && !fixed))
            continue;
        if (fixed || fit_together(to, v))
            return to;
    }
    return NULL;
}

static void restate(tamis_filter *f, double more)
{
    f->set.fpp = f->set.fpp + more < 1 ? f->set.fpp + more : 1;
}

/* Appends a copy of v, with an empty column if v is one. Its share must come out of the budget, or be
   restated. */
static tamis_error append_copy(tamis_filter *f, const struct vector *v, unsigned flags)
{
    bool stack_budget = f->set.growth == TAMIS_SCALABLE || f->set.growth == TAMIS_FLEXIBLE;
    uint32_t slot = v->slot;
    if (stack_budget && !f->set.published) {
        slot = v->slot == SLOT_NONE ? SLOT_NONE : growth_slot(f, 0, v->fpp);
        if (slot == SLOT_NONE) {
            if (!(flags & TAMIS_MERGE_RESTATE))
                return TAMIS_ERATE;
            restate(f, v->fpp);
        }
    }
    struct vector *copy = vector_clone(v, &f->family, &f->allocator);
    if (!copy)
        return TAMIS_ENOMEM;
    if (v->sliced)
        filter_set_limits(&f->set, copy, v->capacity, v->fpp);
    copy->slot = slot;
    return filter_append(f, copy);
}

/* The pending removals of one side, with every vector that matches as a candidate. A key pending here
   may be a member of the other side, and then must not be hidden. */
static tamis_error merge_removals(tamis_filter *f, const tamis_filter *side,
                                  const tamis_filter *opposite)
{
    const struct stack *stack = filter_stack(f);
    uint32_t room = stack_count(stack);
    uint32_t *ids = mem_new(&f->allocator, room, sizeof *ids);
    tamis_error e = ids ? TAMIS_OK : TAMIS_ENOMEM;
    for (uint32_t i = 0; e == TAMIS_OK && i < side->removals.room; i++) {
        const struct pending *p = removals_entry(&side->removals, i);
        uint64_t copies = p ? atomic_load(&p->copies) : 0;
        uint32_t found = 0;
        uint8_t there;
        if (copies == 0)
            continue;
        for (uint32_t j = 0; j < room; j++)
            if (vector_has(stack->v[j], p->digest))
                ids[found++] = stack->v[j]->id;
        filter_bits_have(opposite, &p->digest, 1, &there);
        e = removals_remember(f, p->digest, copies, ids, found,
                              p->hides && f->set.unique && !there);
    }
    mem_free(&f->allocator, ids, room, sizeof *ids);
    return e;
}

/* Columns of another filter that were appended to this one: their bits come over together. */
struct appended {
    uint32_t to, from, n; /* the first of n in either stack */
};

static void fill_columns(tamis_filter *f, const tamis_filter *other, struct appended *some)
{
    struct vector **mine = filter_stack(f)->v + some->to;
    struct vector **theirs = filter_stack(other)->v + some->from;
    for (uint32_t i = 0, n = 0; i < some->n; i += n) {
        for (n = 1; i + n < some->n && theirs[i + n]->column == theirs[i]->column + n;)
            n++;
        vector_fill_columns(mine[i], theirs[i], n);
    }
    some->n = 0;
}

static tamis_error unite_vectors(tamis_filter *f, const tamis_filter *other, unsigned flags)
{
    const struct stack *theirs = filter_stack(other);
    struct matrix *matrix = atomic_load(&f->matrix);
    uint64_t width = matrix ? matrix->width : 0;
    struct appended some = {0};
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; e == TAMIS_OK && i < stack_count(theirs); i++) {
        const struct vector *v = theirs->v[i];
        struct vector *home = home_for(f, v, flags);
        bool empty = effective_load(v) == 0 && v->count == 0;
        if (!home && f->set.growth == TAMIS_FIXED)
            return TAMIS_ESHAPE;
        if (home || empty)
            fill_columns(f, other, &some);
        if (home) {
            if (!vector_unite_reserve(home, v, &f->allocator))
                return TAMIS_ENOMEM;
            vector_unite(home, v);
        } else if (!empty) {
            uint32_t n = stack_count(filter_stack(f)), more = stack_count(theirs) - i;
            if (v->sliced && !filter_reserve_columns(f, n + more, &v->bits))
                return TAMIS_ENOMEM;
            if (some.n == 0)
                some.to = n, some.from = i;
            some.n += v->sliced;
            e = append_copy(f, v, flags);
        }
    }
    if (e != TAMIS_OK)
        return e;
    fill_columns(f, other, &some);
    matrix = atomic_load(&f->matrix);
    if (matrix && matrix->width > width)
        filter_narrow(f); /* some found a home after all */
    return TAMIS_OK;
}

static void count_stored(tamis_filter *f)
{
    const struct stack *stack = filter_stack(f);
    f->stored = 0;
    for (uint32_t i = 0; i < stack_count(stack); i++)
        f->stored += stack->v[i]->count;
}

/* Does the union keep the stated rate? Restates it if asked to. */
static tamis_error check_rate(tamis_filter *f, unsigned flags)
{
    const struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack);
    uint64_t load = 0;
    double pass = 1;
    bool over = false;
    for (uint32_t i = 0; i < n; i++) {
        const struct vector *v = stack->v[i];
        uint64_t here = effective_load(v);
        load += here;
        over |= here > v->capacity;
        pass *= 1 - tamis_plan_rate((int)f->set.layout, v->bits.units, v->bits.k,
                                    (double)max_u64(here, v->capacity));
    }
    over |= f->set.vectors_max && n > f->set.vectors_max;
    over |= f->set.items_max && load > f->set.items_max;
    if (!over || f->set.published)
        return TAMIS_OK;
    if (!(flags & TAMIS_MERGE_RESTATE))
        return TAMIS_ERATE;
    f->set.fpp = 1 - pass;
    if (f->set.items_max)
        f->set.items_max = max_u64(f->set.items_max, load);
    if (f->set.vectors_max)
        f->set.vectors_max = (uint32_t)max_u64(f->set.vectors_max, n);
    if (f->set.growth == TAMIS_FIXED)
        f->set.capacity = stack->v[0]->capacity = max_u64(load, stack->v[0]->capacity);
    return TAMIS_OK;
}

/* Windows: the oldest first, by the time of the last add. */
static void sort_by_age(tamis_filter *f)
{
    struct stack *stack = filter_stack(f);
    for (uint32_t i = 1; i < stack_count(stack); i++)
        for (uint32_t j = i; j && stack->v[j]->born < stack->v[j - 1]->born; j--) {
            struct vector *v = stack->v[j];
            stack->v[j] = stack->v[j - 1];
            stack->v[j - 1] = v;
        }
}

static tamis_error may_merge(const tamis_filter *f, const tamis_filter *other)
{
    if (!family_equal(&f->family, &other->family))
        return TAMIS_EFAMILY;
    if (!filter_counted(other))
        return TAMIS_EREADONLY; /* its counters are not here to be added */
    if (f->set.growth != other->set.growth || f->set.deletable != other->set.deletable ||
        f->set.published != other->set.published)
        return TAMIS_EKIND;
    bool shapes = f->set.layout == other->set.layout && f->set.window == other->set.window;
    if (f->set.growth == TAMIS_DYNAMIC)
        shapes &= f->set.shape.units == other->set.shape.units &&
                  f->set.shape.k == other->set.shape.k && f->set.capacity == other->set.capacity;
    return shapes ? TAMIS_OK : TAMIS_ESHAPE;
}

static tamis_error merge_into(tamis_filter *f, const tamis_filter *before,
                              const tamis_filter *other, unsigned flags)
{
    bool merged = true;
    tamis_error e = unite_vectors(f, other, flags);
    if (e == TAMIS_OK)
        count_stored(f);
    f->set.unique = f->set.unique && other->set.unique && (flags & TAMIS_MERGE_DISJOINT);
    removals_clear(&f->removals); /* what is pending is remembered anew, candidates and all */
    if (e == TAMIS_OK)
        e = merge_removals(f, before, other);
    if (e == TAMIS_OK)
        e = merge_removals(f, other, before);
    while (e == TAMIS_OK && merged && f->set.growth == TAMIS_DYNAMIC &&
           !(flags & TAMIS_MERGE_CONCAT))
        e = filter_merge_pairs(f, UINT64_MAX, &merged);
    count_stored(f); /* plain vectors that were united share keys */
    if (e == TAMIS_OK)
        e = removals_rebuild(f);
    if (e == TAMIS_OK)
        e = check_rate(f, flags);
    if (f->set.growth == TAMIS_WINDOW)
        sort_by_age(f);
    return e;
}

tamis_error tamis_filter_merge(tamis_filter *f, const tamis_filter *other, unsigned flags)
{
    tamis_error e = filter_writable(f);
    if (e == TAMIS_OK)
        e = may_merge(f, other);
    tamis_filter *made;
    if (e == TAMIS_OK)
        e = tamis_filter_clone(&made, f);
    if (e != TAMIS_OK)
        return e;
    e = merge_into(made, f, other, flags);
    if (e == TAMIS_OK)
        filter_become(f, made);
    else
        tamis_filter_free(made);
    return e;
}

/* ---- intersection ---------------------------------------------------------------------------- */

tamis_error tamis_filter_intersect(tamis_filter **out, const tamis_filter *a, const tamis_filter *b)
{
    const struct stack *mine = filter_stack(a), *theirs = filter_stack(b);
    if (!family_equal(&a->family, &b->family))
        return TAMIS_EFAMILY;
    if (stack_count(mine) != 1 || stack_count(theirs) != 1)
        return TAMIS_EKIND;
    const struct vector *x = mine->v[0], *y = theirs->v[0];
    if (!shape_equal(x, y))
        return TAMIS_ESHAPE;
    tamis_options o = {.fpp = 0.5,
                       .capacity = x->capacity,
                       .growth = TAMIS_FIXED,
                       .layout = x->bits.kernel->layout,
                       .hash = a->family.hash,
                       .key = a->family.key,
                       .bits = vector_positions_total(x),
                       .hashes = x->bits.k,
                       .allocator = &a->allocator};
    tamis_filter *f;
    tamis_error e = tamis_filter_new(&f, &o, NULL);
    if (e != TAMIS_OK)
        return e;
    struct vector *v = filter_stack(f)->v[0];
    if (!vector_intersect(v, x, y, &f->allocator)) {
        tamis_filter_free(f);
        return TAMIS_ENOMEM;
    }
    double items =
        tamis_plan_items((int)f->set.layout, v->bits.units, v->bits.k, vector_count_ones(v));
    v->load = v->count = f->stored = (uint64_t)(items + 0.5);
    f->family.has_key = a->family.has_key && b->family.has_key;
    f->set.fpp = f->set.budget = v->fpp = x->fpp > y->fpp ? x->fpp : y->fpp;
    *out = f;
    return TAMIS_OK;
}

/* ---- fold ------------------------------------------------------------------------------------ */

/* The limits of a folded vector: what half the bits hold at the same rate, or what is in it. */
static tamis_error fold_limits(struct vector *half, const struct settings *set, unsigned flags)
{
    uint64_t capacity = tamis_plan_capacity((int)half->bits.kernel->layout, half->bits.units,
                                            half->bits.k, half->fpp);
    uint64_t load = effective_load(half);
    if (capacity >= load && capacity > 0) {
        filter_set_limits(set, half, capacity, half->fpp);
        return TAMIS_OK;
    }
    if (!(flags & TAMIS_MERGE_RESTATE))
        return TAMIS_ERATE;
    load = max_u64(1, load); /* a capacity of 0 would mean no bound */
    double rate = tamis_plan_rate((int)half->bits.kernel->layout, half->bits.units, half->bits.k,
                                  (double)load);
    filter_set_limits(set, half, load,
                      rate > half->fpp ? rate : half->fpp); /* never less than was stated */
    return TAMIS_OK;
}

/* The ones of columns that were folded. */
static tamis_error count_columns(tamis_filter *f, const struct matrix *matrix)
{
    const struct stack *stack = filter_stack(f);
    uint64_t *ones = mem_new0(&f->allocator, matrix->width, sizeof *ones);
    if (!ones)
        return TAMIS_ENOMEM;
    matrix_count_ones(matrix->bits.words, matrix->bits.units, matrix->width, ones);
    for (uint32_t i = 0; i < stack_count(stack); i++)
        stack->v[i]->ones = ones[stack->v[i]->column];
    mem_free(&f->allocator, ones, matrix->width, sizeof *ones);
    return TAMIS_OK;
}

/* Rates, limits and what is pending after all vectors were folded. */
static tamis_error fold_settle(tamis_filter *f, const tamis_filter *from, unsigned flags)
{
    const struct matrix *matrix = atomic_load(&f->matrix);
    struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack);
    double excess = 0;
    tamis_error e = matrix && f->set.deletable ? count_columns(f, matrix) : TAMIS_OK;
    for (uint32_t i = 0; e == TAMIS_OK && i < n; i++) {
        e = fold_limits(stack->v[i], &f->set, flags);
        excess += stack->v[i]->fpp - filter_stack(from)->v[i]->fpp;
    }
    if (e != TAMIS_OK)
        return e;
    if (matrix)
        f->set.shape.units /= 2;
    if (f->set.growth == TAMIS_FIXED || f->set.growth == TAMIS_DYNAMIC) {
        f->set.capacity = stack->v[0]->capacity;
        for (uint32_t i = 0; i < n; i++)
            f->set.capacity = min_u64(f->set.capacity, stack->v[i]->capacity);
        if (f->set.items_max)
            f->set.items_max = f->set.capacity * (f->set.vectors_max ? f->set.vectors_max : 1);
    }
    if (f->set.fpp > 0)
        restate(f, excess); /* vectors to come have their share */
    return removals_rebuild(f);
}

tamis_error tamis_filter_fold(tamis_filter *f, unsigned flags)
{
    const struct stack *stack = filter_stack(f);
    tamis_error e = filter_writable(f);
    for (uint32_t i = 0; e == TAMIS_OK && i < stack_count(stack); i++)
        if (stack->v[i]->bits.units % (2 * shape_step(stack->v[i]->bits.kernel->layout)))
            e = TAMIS_ESHAPE;
    tamis_filter *made;
    if (e == TAMIS_OK)
        e = clone(&made, f, true);
    if (e != TAMIS_OK)
        return e;
    e = fold_settle(made, f, flags);
    if (e == TAMIS_OK)
        filter_become(f, made);
    else
        tamis_filter_free(made);
    return e;
}

/* ---- comparison ------------------------------------------------------------------------------ */

bool tamis_filter_equal(const tamis_filter *a, const tamis_filter *b)
{
    const struct stack *mine = filter_stack(a), *theirs = filter_stack(b);
    uint32_t n = stack_count(mine);
    if (!family_equal(&a->family, &b->family) || a->set.growth != b->set.growth ||
        a->set.deletable != b->set.deletable || n != stack_count(theirs))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!vector_equal(mine->v[i], theirs->v[i]))
            return false;
    return pending_equal(&a->removals, &b->removals);
}

bool tamis_filter_same_family(const tamis_filter *a, const tamis_filter *b)
{
    return family_equal(&a->family, &b->family);
}

bool tamis_filter_key(const tamis_filter *f, uint8_t key[TAMIS_KEY_LEN])
{
    if (f->family.has_key)
        memcpy(key, f->family.key, TAMIS_KEY_LEN);
    return f->family.has_key;
}
