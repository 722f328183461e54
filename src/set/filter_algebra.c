/* Filters made from filters: intersections, and folds to half the bits. */
#include "base/err.h"
#include "set.h"

/* ---- intersection ---------------------------------------------------------------------------- */

tamis_error tamis_filter_intersect(tamis_filter **out, const tamis_filter *a, const tamis_filter *b,
                                   tamis_reason *reason)
{
    const struct layers *mine = set_layers(&a->set), *theirs = set_layers(&b->set);
    if (!family_equal(set_family(&a->set), set_family(&b->set)))
        return fail_so(reason, TAMIS_EFAMILY);
    if (set_lines(&a->set) || set_lines(&b->set))
        return fail(reason, TAMIS_EKIND, "smooth filters cannot be intersected");
    const struct vector *x = mine->v[0], *y = theirs->v[0];
    if (layers_count(mine) != 1 || layers_count(theirs) != 1)
        return fail(reason, TAMIS_EKIND, "each must have one vector, not %u and %u",
                    layers_count(mine), layers_count(theirs));
    if (!shape_equal(x, y))
        return fail(reason, TAMIS_ESHAPE, "the vectors have different shapes");
    tamis_options o = {.fpp = 0.5,
                       .capacity = x->capacity,
                       .growth = TAMIS_FIXED,
                       .layout = x->bits.kernel->layout,
                       .hash = set_family(&a->set)->hash,
                       .key = set_family(&a->set)->secrets->key,
                       .bits = vector_positions_total(x),
                       .hashes = x->bits.k,
                       .allocator = set_allocator(&a->set)};
    tamis_filter *f;
    tamis_error e = tamis_filter_new(&f, &o, reason);
    if (e != TAMIS_OK)
        return e;
    struct set *s = &f->set;
    struct vector *v = set_layers(s)->v[0];
    if (terms_own(s) != TAMIS_OK || !vector_intersect(v, x, y, set_allocator(s))) {
        tamis_filter_free(f);
        return fail_so(reason, TAMIS_ENOMEM);
    }
    double items = plan_items(set_opt(s)->layout, v->bits.units, v->bits.k, vector_count_ones(v));
    v->load = v->count = s->stack->stored = (uint64_t)(items + 0.5);
    set_family(s)->has_key = set_family(&a->set)->has_key && set_family(&b->set)->has_key;
    set_opt(s)->fpp = set_opt(s)->budget = v->fpp = x->fpp > y->fpp ? x->fpp : y->fpp;
    set_layers(s)->l[0]->fpp = v->fpp;
    terms_settle(s);
    *out = f;
    return TAMIS_OK;
}

/* ---- fold ------------------------------------------------------------------------------------ */

/* The limits of a folded vector: what half the bits hold at the same rate, or what is in it. */
static tamis_error fold_limits(struct vector *half, const struct settings *set, unsigned flags)
{
    uint64_t capacity =
        tamis_plan_capacity(half->bits.kernel->layout, half->bits.units, half->bits.k, half->fpp);
    uint64_t load = vector_load(half);
    if (capacity >= load && capacity > 0) {
        set_limits(set, half, capacity, half->fpp);
        return TAMIS_OK;
    }
    if (!(flags & TAMIS_MERGE_RESTATE))
        return TAMIS_ERATE;
    load = max_u64(1, load); /* a capacity of 0 would mean no bound */
    double rate =
        tamis_plan_rate(half->bits.kernel->layout, half->bits.units, half->bits.k, (double)load);
    set_limits(set, half, load,
               rate > half->fpp ? rate : half->fpp); /* never below the stated one */
    return TAMIS_OK;
}

/* The ones of columns that were folded. */
static tamis_error count_columns(struct set *s, const struct matrix *matrix)
{
    const struct layers *layers = set_layers(s);
    uint64_t *ones = mem_new0(set_allocator(s), matrix->width, sizeof *ones);
    if (!ones)
        return TAMIS_ENOMEM;
    matrix_count_ones(matrix->bits.words, matrix->bits.units, matrix->width, ones);
    for (uint32_t i = 0; i < layers_count(layers); i++)
        layers->v[i]->ones = ones[layers->v[i]->column];
    mem_free(set_allocator(s), ones, matrix->width, sizeof *ones);
    return TAMIS_OK;
}

/* Rates, limits and pending removals after all vectors were folded. */
static tamis_error fold_settle(struct set *s, unsigned flags)
{
    const struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    struct layers *layers = set_layers(s);
    struct settings *opt = set_opt(s);
    uint32_t n = layers_count(layers);
    double excess = 0;
    tamis_error e = matrix && opt->deletable ? count_columns(s, matrix) : TAMIS_OK;
    for (uint32_t i = 0; e == TAMIS_OK && i < n; i++) {
        e = fold_limits(layers->v[i], opt, flags);
        excess += layers->v[i]->fpp - layers->l[i]->fpp;
        layers->l[i]->capacity = layers->v[i]->capacity;
        layers->l[i]->fpp = layers->v[i]->fpp;
    }
    if (e != TAMIS_OK)
        return e;
    if (matrix)
        opt->shape.units /= 2;
    if (opt->growth == TAMIS_FIXED || opt->growth == TAMIS_DYNAMIC) {
        opt->capacity = layers->v[0]->capacity;
        for (uint32_t i = 1; i < n; i++)
            opt->capacity = min_u64(opt->capacity, layers->v[i]->capacity);
        if (opt->items_max)
            opt->items_max = opt->capacity * max_u64(1, opt->vectors_max);
    }
    if (opt->fpp > 0)
        set_restate(s, excess); /* future vectors have their share */
    return pending_rebuild(s);
}

tamis_error tamis_filter_fold(tamis_filter *f, unsigned flags, tamis_reason *reason)
{
    struct set *s = &f->set, *made;
    const struct layers *layers = set_layers(s);
    tamis_error e = set_writable(s);
    if (e == TAMIS_OK && set_lines(s))
        return fail(reason, TAMIS_EKIND, "smooth filters shrink by themselves");
    for (uint32_t i = 0; e == TAMIS_OK && i < layers_count(layers); i++) {
        const struct bits *bits = &layers->v[i]->bits;
        if (bits->units % (2 * shape_step(bits->kernel->layout)))
            return fail(reason, TAMIS_ESHAPE, "its size cannot be halved: %llu %s",
                        (unsigned long long)bits->units,
                        bits->kernel->unit_bits > 1 ? "blocks are an odd number"
                                                    : "bits are not a multiple of 16");
    }
    if (e == TAMIS_OK && (e = set_clone(&made, s, true)) == TAMIS_OK) {
        e = terms_own(made);
        e = set_become(s, made, e == TAMIS_OK ? fold_settle(made, flags) : e);
    }
    return e == TAMIS_ERATE ? fail(reason, e, "more than half full") : fail_so(reason, e);
}
