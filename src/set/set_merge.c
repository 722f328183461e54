/* Unions and comparisons of sets. */
#include "base/err.h"
#include "set.h"

/* ---- pairs of layers ------------------------------------------------------------------------- */

/* Do the keys of two vectors fit into one? There are no more keys than copies. Otherwise both the load,
   which drifts where keys cover one another, and the bits, which could all differ, must allow it. */
static bool fit_in_one(uint64_t counts, uint64_t loads, uint64_t ones, const struct vector *to)
{
    if (!to->deletable)
        return loads <= to->capacity;
    return counts <= to->capacity || (loads <= to->capacity && ones <= to->ones_max);
}

static bool fit_together(const struct vector *to, const struct vector *from)
{
    return fit_in_one(to->count + from->count, vector_load(to) + vector_load(from),
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

uint64_t set_pair_distance(const struct set *s)
{
    const struct layers *layers = set_layers(s);
    uint64_t loads[2] = {INT64_MAX, INT64_MAX}, most = 0;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        keep_least(loads, vector_load(layers->v[i]));
        most = max_u64(most, layers->v[i]->capacity);
    }
    return loads[0] + loads[1] > most ? loads[0] + loads[1] - most : 0;
}

/* Is it worth searching for a pair? */
static bool may_have_pair(const struct layers *layers)
{
    enum { HALF = INT64_MAX };
    uint64_t counts[2] = {HALF, HALF}, loads[2] = {HALF, HALF}, ones[2] = {HALF, HALF};
    bool may = false;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        keep_least(counts, layers->v[i]->count);
        keep_least(loads, vector_load(layers->v[i]));
        keep_least(ones, layers->v[i]->ones);
    }
    for (uint32_t i = 0; i < layers_count(layers) && !may; i++)
        may =
            fit_in_one(counts[0] + counts[1], loads[0] + loads[1], ones[0] + ones[1], layers->v[i]);
    return may;
}

/* A union costs as much as this many comparisons: the list and the matrix are compacted. */
#define UNITED 4096

tamis_error set_merge_pairs(struct set *s, uint64_t looks, bool *merged)
{
    const struct layers *layers = set_layers(s);
    *merged = false;
    if (!may_have_pair(layers))
        return TAMIS_OK;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        for (uint32_t j = i + 1; j < layers_count(layers); j++) {
            struct vector *to = layers->v[i], *from = layers->v[j];
            if (looks-- == 0) {
                *merged = false;
                return TAMIS_OK;
            }
            if (!shape_equal(to, from) || !fit_together(to, from))
                continue;
            if (!vector_unite_reserve(to, from, set_allocator(s)))
                return TAMIS_ENOMEM;
            vector_unite(to, from);
            from->count = 0; /* they are in `to` now, and the total stays the same */
            uint32_t gone = layers->l[j]->id, kept = layers->l[i]->id;
            set_drop(s, j);
            pending_rename(s, gone, kept);
            *merged = true;
            looks -= min_u64(looks, UNITED);
            j--;
        }
    return TAMIS_OK;
}

static bool same_shapes(const struct layer *x, const struct layer *y)
{
    for (uint32_t i = 0; i < x->parts; i++)
        if (x->part[i].vector && !shape_equal(x->part[i].vector, y->part[i].vector))
            return false;
    return true;
}

static bool fits_into(const struct set *s, const struct layer *to, const struct layer *from)
{
    bool fits = !s->stack->form || layer_load(s, to) + layer_load(s, from) <= to->capacity;
    for (uint32_t i = 0; i < to->parts && fits; i++)
        fits = !to->part[i].vector || fit_together(to->part[i].vector, from->part[i].vector);
    return fits;
}

/* The layer that can take `from`, or NULL. Fixed sets have one, and must use it. */
static struct layer *home_for(const struct set *s, const struct layer *from, unsigned flags)
{
    const struct layers *layers = set_layers(s);
    bool fixed = set_opt(s)->growth == TAMIS_FIXED;
    for (uint32_t i = 0; i < layers_count(layers) && (fixed || !(flags & TAMIS_MERGE_CONCAT));
         i++) {
        struct layer *to = layers->l[i];
        if (same_shapes(to, from) &&
            (fixed || (to->capacity == from->capacity && fits_into(s, to, from))))
            return to;
    }
    return NULL;
}

static tamis_error unite(struct set *s, struct layer *to, const struct layer *from)
{
    const tamis_allocator *a = set_allocator(s);
    for (uint32_t i = 0; i < to->parts; i++) {
        struct vector *v = to->part[i].vector;
        if (v ? !vector_unite_reserve(v, from->part[i].vector, a)
              : !table_unite(&to->part[i].table, &from->part[i].table, a))
            return TAMIS_ENOMEM;
        if (v)
            vector_unite(v, from->part[i].vector);
    }
    to->load += from->load;
    to->count += from->count;
    if (s->stack->form && !set_opt(s)->deletable &&
        s->stack->form->verifiers) { /* they may share records */
        const struct part *whole = &to->part[s->stack->form->attributes];
        to->load = min_u64(to->load, whole->vector ? whole->vector->load : whole->table.used);
        to->count = to->load;
    }
    to->born = min_u64(to->born, from->born);
    to->last = max_u64(to->last, from->last);
    return TAMIS_OK;
}

/* ---- union ----------------------------------------------------------------------------------- */

void set_restate(struct set *s, double more)
{
    set_opt(s)->fpp = set_opt(s)->fpp + more < 1 ? set_opt(s)->fpp + more : 1;
}

/* Appends a copy of a layer, with an empty column if its vector is one. Its share must fit the
   budget, or the rate is restated. */
static tamis_error append_copy(struct set *s, const struct layer *from, unsigned flags)
{
    const struct settings *opt = set_opt(s);
    bool budget = opt->growth == TAMIS_SCALABLE || opt->growth == TAMIS_FLEXIBLE;
    uint32_t slot = opt->growth == TAMIS_SMOOTH ? SLOT_NONE : from->slot; /* smooth_settle() */
    if (budget && !opt->published) {
        slot = from->slot == SLOT_NONE ? SLOT_NONE : growth_slot(s, 0, from->fpp);
        if (slot == SLOT_NONE && !(flags & TAMIS_MERGE_RESTATE))
            return TAMIS_ERATE;
        if (slot == SLOT_NONE)
            set_restate(s, from->fpp);
    }
    struct layer *copy = layer_clone(from, s, false);
    if (!copy)
        return TAMIS_ENOMEM;
    struct vector *v = copy->part[0].vector;
    if (v->sliced)
        set_limits(set_opt(s), v, v->capacity, v->fpp);
    copy->slot = slot;
    return set_append(s, copy);
}

/* The pending removals of one side, with every layer that matches as a candidate. A key pending
   here may be a member of the other side, and must not be hidden then. */
static tamis_error merge_removals(struct set *s, const struct set *side, const struct set *opposite)
{
    uint32_t room = layers_count(set_layers(s));
    uint32_t *ids = mem_new(set_allocator(s), room, sizeof *ids);
    tamis_error e = ids ? TAMIS_OK : TAMIS_ENOMEM;
    for (uint32_t i = 0; e == TAMIS_OK && i < side->stack->more->removals.room; i++) {
        const struct pending *p = removals_entry(&side->stack->more->removals, i);
        const tamis_digest *key = removals_key(&side->stack->more->removals, i);
        uint64_t copies = p ? atomic_load(&p->copies) : 0;
        uint8_t there = 0;
        if (copies == 0)
            continue;
        if (p->hides)
            filter_bits_have(opposite, key, 1, &there);
        e = pending_remember(s, key, copies, ids, set_matches(s, key, ids),
                             p->hides && set_opt(s)->unique && !there);
    }
    mem_free(set_allocator(s), ids, room, sizeof *ids);
    return e;
}

/* Columns of another filter that were appended to this one: their bits are copied together. */
struct appended {
    uint32_t to, from, n; /* the first of n in either list */
};

static void fill_columns(struct set *s, const struct set *other, struct appended *some)
{
    struct vector **mine = set_layers(s)->v + some->to;
    struct vector **theirs = set_layers(other)->v + some->from;
    for (uint32_t i = 0, n = 0; i < some->n; i += n) {
        for (n = 1; i + n < some->n && theirs[i + n]->column == theirs[i]->column + n;)
            n++;
        vector_fill_columns(mine[i], theirs[i], n);
    }
    some->n = 0;
}

static tamis_error unite_layers(struct set *s, const struct set *other, unsigned flags)
{
    const struct layers *theirs = set_layers(other);
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    uint64_t width = matrix ? matrix->width : 0;
    struct appended some = {0};
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; e == TAMIS_OK && i < layers_count(theirs); i++) {
        const struct layer *from = theirs->l[i];
        struct layer *home = home_for(s, from, flags);
        bool empty = layer_load(other, from) == 0 && layer_count(other, from) == 0;
        if (!home && set_opt(s)->growth == TAMIS_FIXED)
            return TAMIS_ESHAPE;
        if (home || empty)
            fill_columns(s, other, &some);
        if (home) {
            e = unite(s, home, from);
        } else if (!empty) {
            uint32_t n = layers_count(set_layers(s)), more = layers_count(theirs) - i;
            const struct vector *v = theirs->v[i];
            if (v->sliced && !set_reserve_columns(s, n + more, &v->bits))
                return TAMIS_ENOMEM;
            if (some.n == 0)
                some.to = n, some.from = i;
            some.n += v->sliced;
            e = append_copy(s, from, flags);
        }
    }
    if (e != TAMIS_OK)
        return e;
    fill_columns(s, other, &some);
    matrix = atomic_load(&s->stack->more->matrix);
    if (matrix && matrix->width > width)
        set_narrow(s); /* some could be united after all */
    return TAMIS_OK;
}

static void count_stored(struct set *s)
{
    const struct layers *layers = set_layers(s);
    uint64_t stored = 0;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        stored += layer_count(s, layers->l[i]);
    if (stored != s->stack->stored)
        s->stack->stored = stored;
}

/* The highest rate of its parts, at their planned load or above; `over`: above. */
static double layer_rate_full(const struct set *s, const struct layer *layer, bool *over)
{
    double rate = 0;
    *over |= layer_load(s, layer) > layer->capacity;
    for (uint32_t i = 0; i < layer->parts; i++) {
        const struct vector *v = layer->part[i].vector;
        if (!v)
            continue;
        uint64_t load = vector_load(v);
        double here = tamis_plan_rate(set_opt(s)->layout, v->bits.units, v->bits.k,
                                      (double)max_u64(load, v->capacity));
        *over |= load > v->capacity;
        rate = here > rate ? here : rate;
    }
    return rate;
}

/* Does the union keep the stated rate? Restates it if requested. */
static tamis_error check_rate(struct set *s, unsigned flags)
{
    const struct layers *layers = set_layers(s);
    struct settings *opt = set_opt(s);
    struct layer *first = layers->l[0];
    uint32_t n = layers_count(layers);
    uint64_t load = 0;
    double pass = 1;
    bool over = opt->vectors_max && n > growth_layers_max(opt);
    for (uint32_t i = 0; i < n; i++) {
        load += layer_load(s, layers->l[i]);
        pass *= 1 - layer_rate_full(s, layers->l[i], &over);
    }
    over |= opt->items_max && load > opt->items_max;
    if (!over || opt->published)
        return TAMIS_OK;
    if (!(flags & TAMIS_MERGE_RESTATE))
        return TAMIS_ERATE;
    opt->fpp = 1 - pass;
    if (opt->items_max)
        opt->items_max = max_u64(opt->items_max, load);
    if (opt->growth == TAMIS_DYNAMIC)
        opt->vectors_max = (uint32_t)max_u64(opt->vectors_max, n);
    else if (opt->vectors_max)
        opt->vectors_max = (uint32_t)min_u64(WINDOW_VECTORS_MAX, max_u64(opt->vectors_max, n));
    if (opt->growth == TAMIS_FIXED) {
        opt->capacity = first->capacity = max_u64(load, first->capacity);
        if (!s->stack->form)
            layers->v[0]->capacity = first->capacity;
    }
    return TAMIS_OK;
}

/* Windows: the oldest first. What the newest states about time holds for all. */
static void sort_by_age(struct set *s)
{
    struct layers *layers = set_layers(s);
    for (uint32_t i = 1; i < layers_count(layers); i++)
        for (uint32_t j = i; j && layers->l[j]->born < layers->l[j - 1]->born; j--) {
            struct layer *layer = layers->l[j];
            layers->l[j] = layers->l[j - 1];
            layers->l[j - 1] = layer;
            layers->v[j] = layers->l[j]->part[0].vector;
            layers->v[j - 1] = layer->part[0].vector;
        }
    struct layer *newest = layers->l[layers_count(layers) - 1];
    for (uint32_t i = 0; i < layers_count(layers); i++)
        newest->last = max_u64(newest->last, layers->l[i]->last);
}

/* A smooth filter may have lines alone, and then its layout says nothing. */
static bool both_stacked(const struct set *s, const struct set *other)
{
    return layers_count(set_layers(s)) > 0 && layers_count(set_layers(other)) > 0;
}

static tamis_error may_merge(const struct set *s, const struct set *other, tamis_reason *reason)
{
    const struct settings *mine = set_opt(s), *theirs = set_opt(other);
    if (!set_counted(other))
        return fail(reason, TAMIS_EREADONLY, "its counters are in the file: load it to merge it");
    const char *kind = mine->growth != theirs->growth         ? "growth"
                       : mine->deletable != theirs->deletable ? "whether they are deletable"
                       : mine->published != theirs->published ? "whether sizes are as published"
                                                              : NULL;
    if (kind)
        return fail(reason, TAMIS_EKIND, "they differ in %s", kind);
    bool columns = mine->shape.units == theirs->shape.units && mine->shape.k == theirs->shape.k &&
                   mine->capacity == theirs->capacity;
    const char *shape = !record_form_equal(s->stack->form, other->stack->form)
                            ? "attributes, combinations or verifier"
                        : mine->layout != theirs->layout && both_stacked(s, other) ? "layout"
                        : mine->window != theirs->window                           ? "window"
                        : set_sliced(s) && !columns ? "the shape of their vectors"
                                                    : NULL;
    return shape ? fail(reason, TAMIS_ESHAPE, "they differ in %s", shape) : TAMIS_OK;
}

static tamis_error merge_into(struct set *s, const struct set *before, const struct set *other,
                              unsigned flags)
{
    bool merged = set_sliced(s) && !(flags & TAMIS_MERGE_CONCAT);
    uint64_t bytes = set_bytes(s);
    if (layers_count(set_layers(s)) == 0)
        set_opt(s)->layout = set_opt(other)->layout;
    tamis_error e = unite_layers(s, other, flags);
    if (e == TAMIS_OK && set_lines(other))
        e = smooth_unite(s, other);
    if (e == TAMIS_OK)
        count_stored(s);
    set_opt(s)->unique =
        set_opt(s)->unique && set_opt(other)->unique && (flags & TAMIS_MERGE_DISJOINT);
    if (set_stacked(s)) /* pending removals are remembered again, with new candidates */
        removals_clear(&s->stack->more->removals);
    if (e == TAMIS_OK)
        e = merge_removals(s, before, other);
    if (e == TAMIS_OK)
        e = merge_removals(s, other, before);
    while (e == TAMIS_OK && merged)
        e = set_merge_pairs(s, UINT64_MAX, &merged);
    count_stored(s); /* plain vectors that were united share keys */
    if (e == TAMIS_OK)
        e = pending_rebuild(s);
    if (e == TAMIS_OK)
        e = set_opt(s)->growth == TAMIS_SMOOTH ? smooth_settle(s, flags) : check_rate(s, flags);
    if (e == TAMIS_OK && s->memory_limit && set_bytes(s) > max_u64(s->memory_limit, bytes))
        e = TAMIS_ESPACE;
    if (set_opt(s)->growth == TAMIS_WINDOW)
        sort_by_age(s);
    return e;
}

static bool has_pending(const struct set *s)
{
    return s->stack->more->removals.used > 0;
}

/* Into a copy, which a failure does not change `s` for, or in place. Pending removals are remembered with candidates
   on both sides as they were, so they need the copy. */
static tamis_error merge(struct set *s, const struct set *other, unsigned flags, bool copy,
                         tamis_reason *reason)
{
    struct set *made;
    tamis_error e = set_writable(s);
    if (e == TAMIS_OK && !family_equal(set_family(s), set_family(other)))
        e = TAMIS_EFAMILY;
    if (e != TAMIS_OK)
        return fail_so(reason, e);
    if ((e = may_merge(s, other, reason)) != TAMIS_OK)
        return e;
    if (!copy && !has_pending(s) && !has_pending(other)) {
        if ((e = terms_own(s)) == TAMIS_OK)
            e = merge_into(s, s, other, flags);
        terms_settle(s);
    } else if ((e = set_clone(&made, s, false)) == TAMIS_OK) {
        e = terms_own(made);
        e = set_become(s, made, e == TAMIS_OK ? merge_into(made, s, other, flags) : e);
    }
    return fail_so(reason, e);
}

tamis_error set_merge(struct set *s, const struct set *other, unsigned flags, tamis_reason *reason)
{
    return merge(s, other, flags, true, reason);
}

tamis_error set_unite(struct set *s, const struct set *other, unsigned flags, tamis_reason *reason)
{
    return merge(s, other, flags, false, reason);
}

tamis_error tamis_filter_merge(tamis_filter *f, const tamis_filter *other, unsigned flags,
                               tamis_reason *reason)
{
    return set_merge(&f->set, &other->set, flags, reason);
}

tamis_error tamis_records_merge(tamis_records *x, const tamis_records *other, unsigned flags,
                                tamis_reason *reason)
{
    return set_merge(&x->set, &other->set, flags, reason);
}

/* ---- comparison ------------------------------------------------------------------------------ */

bool set_equal(const struct set *x, const struct set *y)
{
    const struct layers *mine = set_layers(x), *theirs = set_layers(y);
    uint32_t n = layers_count(mine);
    bool same = family_equal(set_family(x), set_family(y)) &&
                set_opt(x)->growth == set_opt(y)->growth &&
                set_opt(x)->deletable == set_opt(y)->deletable && n == layers_count(theirs) &&
                record_form_equal(x->stack->form, y->stack->form);
    for (uint32_t i = 0; same && i < n * set_parts(x); i++) {
        const struct part *a = set_part(x, i), *b = set_part(y, i);
        same = a->vector ? vector_equal(a->vector, b->vector) : table_equal(&a->table, &b->table);
    }
    return same && smooth_equal(x, y) &&
           pending_equal(&x->stack->more->removals, &y->stack->more->removals);
}

bool tamis_filter_equal(const tamis_filter *a, const tamis_filter *b)
{
    return set_equal(&a->set, &b->set);
}

bool tamis_records_equal(const tamis_records *a, const tamis_records *b)
{
    return set_equal(&a->set, &b->set);
}
