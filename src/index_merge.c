/* Whole indexes: copies, unions, comparison. */
#include "index.h"

/* ---- copies ---------------------------------------------------------------------------------- */

static struct layer *layer_clone(const struct layer *layer, const tamis_index *to)
{
    const tamis_allocator *a = &to->allocator;
    struct layer *copy = layer_new(a, layer->parts);
    if (!copy)
        return NULL;
    copy->id = layer->id, copy->slot = layer->slot, copy->capacity = layer->capacity;
    copy->load = layer->load, copy->count = layer->count, copy->fpp = layer->fpp;
    copy->born = layer->born;
    for (uint32_t i = 0; i < layer->parts; i++) {
        const struct part *part = &layer->part[i];
        if (part->vector)
            copy->part[i].vector = vector_clone(part->vector, &to->family, a);
        if (part->vector ? !copy->part[i].vector
                         : !table_unite(&copy->part[i].table, &part->table, a)) {
            layer_free(copy, a);
            return NULL;
        }
    }
    return copy;
}

static tamis_error clone_parts(tamis_index *to, const tamis_index *from)
{
    const struct layers *layers = index_layers(from);
    struct layers *copies = index_layers(to);
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        copies->l[i] = layer_clone(layers->l[i], to);
        if (!copies->l[i])
            return TAMIS_ENOMEM;
        atomic_store(&copies->n, i + 1);
    }
    struct removing w = index_removing(to);
    for (uint32_t i = 0; i < from->removals.room; i++) {
        const struct pending *p = removals_entry(&from->removals, i);
        uint64_t copies_left = p ? atomic_load(&p->copies) : 0;
        if (copies_left == 0)
            continue;
        tamis_error e = pending_remember(&w, removals_key(&from->removals, i), copies_left,
                                         p->candidates, p->n, p->hides);
        if (e != TAMIS_OK)
            return e;
    }
    return TAMIS_OK;
}

tamis_error tamis_index_clone(tamis_index **out, const tamis_index *from)
{
    tamis_index *x;
    tamis_error e = index_make(&x, &from->allocator, &from->set, from->names, from->names_len,
                               index_layers(from)->room);
    if (e != TAMIS_OK)
        return e;
    x->stored = from->stored;
    x->next_id = from->next_id;
    x->forecast = from->forecast;
    x->grown = from->grown;
    x->clock = from->clock;
    x->clock_context = from->clock_context;
    x->bits_only = from->bits_only || !index_counted(from);
    x->read_only = from->read_only && (x->bits_only || !from->mapping.data);
    e = family_copy(&x->family, &from->family, &x->allocator);
    if (e == TAMIS_OK)
        e = clone_parts(x, from);
    if (e != TAMIS_OK) {
        tamis_index_free(x);
        return e;
    }
    *out = x;
    return TAMIS_OK;
}

/* The index becomes what `made` is, and `made` is gone. Vectors point at their family, which moves. */
static void index_become(tamis_index *x, tamis_index *made)
{
    index_dispose(x);
    *x = *made;
    const struct layers *layers = index_layers(x);
    for (uint32_t i = 0; i < layers_count(layers); i++)
        for (uint32_t j = 0; j < layers->l[i]->parts; j++)
            if (layers->l[i]->part[j].vector)
                layers->l[i]->part[j].vector->bits.family = &x->family;
    mem_free_secret(&x->allocator, made, 1, sizeof *made);
}

/* ---- union ----------------------------------------------------------------------------------- */

static uint64_t vector_load(const struct vector *v)
{
    return v->deletable ? min_u64(v->load, v->count) : v->load;
}

static bool same_shapes(const struct layer *x, const struct layer *y)
{
    for (uint32_t i = 0; i < x->parts; i++)
        if (x->part[i].vector && !shape_equal(x->part[i].vector, y->part[i].vector))
            return false;
    return x->capacity == y->capacity;
}

static bool fits_into(const tamis_index *x, const struct layer *to, const struct layer *from)
{
    bool deletable = x->set.grow.deletable;
    bool fits = layer_load(to, deletable) + layer_load(from, deletable) <= to->capacity;
    for (uint32_t i = 0; i < to->parts && fits; i++) {
        const struct vector *v = to->part[i].vector;
        fits = !v || vector_load(v) + vector_load(from->part[i].vector) <= v->capacity;
    }
    return fits;
}

/* The layer that can take `from` in, or NULL. Fixed indexes have one, and must. */
static struct layer *home_for(const tamis_index *x, const struct layer *from, unsigned flags)
{
    const struct layers *layers = index_layers(x);
    bool fixed = x->set.grow.growth == TAMIS_FIXED;
    for (uint32_t i = 0; i < layers_count(layers) && (fixed || !(flags & TAMIS_MERGE_CONCAT)); i++)
        if (same_shapes(layers->l[i], from) && (fixed || fits_into(x, layers->l[i], from)))
            return layers->l[i];
    return NULL;
}

static tamis_error unite(tamis_index *x, struct layer *to, const struct layer *from)
{
    const tamis_allocator *a = &x->allocator;
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
    if (!x->set.grow.deletable && x->set.verifiers) { /* they may share records */
        const struct part *whole = &to->part[x->set.attributes];
        to->load = min_u64(to->load, whole->vector ? whole->vector->load : whole->table.used);
        to->count = to->load;
    }
    to->born = min_u64(to->born, from->born);
    return TAMIS_OK;
}

static void restate(tamis_index *x, double more)
{
    x->set.grow.fpp = x->set.grow.fpp + more < 1 ? x->set.grow.fpp + more : 1;
}

/* Appends a copy of a layer. Its share must come out of the budget, or be restated. */
static tamis_error append_copy(tamis_index *x, const struct layer *from, unsigned flags)
{
    const struct settings *set = &x->set.grow;
    uint32_t slot = from->slot;
    if (set->growth == TAMIS_SCALABLE || set->growth == TAMIS_FLEXIBLE) {
        slot = from->slot == SLOT_NONE ? SLOT_NONE : index_slot(x, 0, from->fpp);
        if (slot == SLOT_NONE && !(flags & TAMIS_MERGE_RESTATE))
            return TAMIS_ERATE;
        if (slot == SLOT_NONE)
            restate(x, from->fpp);
    } else if (set->vectors_max && layers_count(index_layers(x)) >= set->vectors_max) {
        if (!(flags & TAMIS_MERGE_RESTATE))
            return TAMIS_ERATE;
        restate(x, from->fpp);
    }
    struct layer *copy = layer_clone(from, x);
    if (!copy)
        return TAMIS_ENOMEM;
    copy->slot = slot;
    return index_append(x, copy);
}

static tamis_error unite_layers(tamis_index *x, const tamis_index *other, unsigned flags)
{
    const struct layers *theirs = index_layers(other);
    for (uint32_t i = 0; i < layers_count(theirs); i++) {
        const struct layer *from = theirs->l[i];
        struct layer *home = home_for(x, from, flags);
        tamis_error e = TAMIS_OK;
        if (!home && x->set.grow.growth == TAMIS_FIXED)
            return TAMIS_ESHAPE;
        if (home)
            e = unite(x, home, from);
        else if (from->count)
            e = append_copy(x, from, flags);
        if (e != TAMIS_OK)
            return e;
    }
    return TAMIS_OK;
}

/* The pending removals of one side, with every layer that matches as a candidate. */
static tamis_error merge_removals(tamis_index *x, const tamis_index *side)
{
    struct removing w = index_removing(x);
    uint32_t room = layers_count(index_layers(x));
    uint32_t *ids = mem_new(&x->allocator, room, sizeof *ids);
    tamis_error e = ids ? TAMIS_OK : TAMIS_ENOMEM;
    for (uint32_t i = 0; e == TAMIS_OK && i < side->removals.room; i++) {
        const struct pending *p = removals_entry(&side->removals, i);
        uint64_t copies = p ? atomic_load(&p->copies) : 0;
        const tamis_digest *key = removals_key(&side->removals, i);
        if (copies)
            e = pending_remember(&w, key, copies, ids, index_matches(x, key, ids), false);
    }
    mem_free(&x->allocator, ids, room, sizeof *ids);
    return e;
}

/* Does the union keep the stated rate? Restates it if asked to. */
static tamis_error check_rate(tamis_index *x, unsigned flags)
{
    struct settings *set = &x->set.grow;
    const struct layers *layers = index_layers(x);
    uint64_t load = 0;
    double worst = 0;
    bool over = false;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct layer *layer = layers->l[i];
        double rate = 0;
        load += layer_load(layer, set->deletable);
        over |= layer_load(layer, set->deletable) > layer->capacity;
        for (uint32_t j = 0; j < layer->parts; j++) {
            const struct vector *v = layer->part[j].vector;
            double here = v ? tamis_plan_rate((int)set->layout, v->bits.units, v->bits.k,
                                              (double)max_u64(vector_load(v), v->capacity))
                            : 0;
            over |= v && vector_load(v) > v->capacity;
            rate = here > rate ? here : rate;
        }
        worst += rate;
    }
    over |= set->items_max && load > set->items_max;
    if (!over)
        return TAMIS_OK;
    if (!(flags & TAMIS_MERGE_RESTATE))
        return TAMIS_ERATE;
    set->fpp = worst < 1 ? worst : 1;
    if (set->items_max)
        set->items_max = max_u64(set->items_max, load);
    if (set->growth == TAMIS_FIXED)
        set->capacity = layers->l[0]->capacity = max_u64(load, layers->l[0]->capacity);
    return TAMIS_OK;
}

static bool same_questions(const struct index_settings *x, const struct index_settings *y)
{
    bool same = x->attributes == y->attributes && x->verifiers == y->verifiers &&
                x->verifier == y->verifier && x->value == y->value;
    for (uint32_t i = 0; i < x->verifiers && same; i++)
        same = x->masks[i] == y->masks[i];
    for (uint32_t i = 0; i < x->attributes && same; i++)
        same = x->types[i] == y->types[i];
    return same;
}

static bool same_names(const tamis_index *x, const tamis_index *y)
{
    return x->names_len == y->names_len && memcmp(x->names, y->names, x->names_len) == 0;
}

static tamis_error may_merge(const tamis_index *x, const tamis_index *other)
{
    const struct settings *mine = &x->set.grow, *theirs = &other->set.grow;
    if (!family_equal(&x->family, &other->family))
        return TAMIS_EFAMILY;
    if (mine->growth != theirs->growth || mine->deletable != theirs->deletable)
        return TAMIS_EKIND;
    if (!same_names(x, other) || !same_questions(&x->set, &other->set) ||
        mine->layout != theirs->layout)
        return TAMIS_ESHAPE;
    return TAMIS_OK;
}

static tamis_error merge_into(tamis_index *x, const tamis_index *before, const tamis_index *other,
                              unsigned flags)
{
    tamis_error e = unite_layers(x, other, flags);
    const struct layers *layers = index_layers(x);
    x->stored = 0;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        x->stored += layers->l[i]->count;
    removals_clear(&x->removals);
    if (e == TAMIS_OK)
        e = merge_removals(x, before);
    if (e == TAMIS_OK)
        e = merge_removals(x, other);
    struct removing w = index_removing(x);
    if (e == TAMIS_OK)
        e = pending_rebuild(&w);
    return e == TAMIS_OK ? check_rate(x, flags) : e;
}

tamis_error tamis_index_merge(tamis_index *x, const tamis_index *other, unsigned flags)
{
    tamis_error e = index_writable(x);
    if (e == TAMIS_OK)
        e = may_merge(x, other);
    if (e == TAMIS_OK && !index_counted(other))
        e = TAMIS_EREADONLY; /* its counters are not here to be added */
    tamis_index *made;
    if (e == TAMIS_OK)
        e = tamis_index_clone(&made, x);
    if (e != TAMIS_OK)
        return e;
    e = merge_into(made, x, other, flags);
    if (e == TAMIS_OK)
        index_become(x, made);
    else
        tamis_index_free(made);
    return e;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static bool layer_equal(const struct layer *x, const struct layer *y)
{
    for (uint32_t i = 0; i < x->parts; i++) {
        const struct part *mine = &x->part[i], *theirs = &y->part[i];
        if (mine->vector ? !vector_equal(mine->vector, theirs->vector)
                         : !table_equal(&mine->table, &theirs->table))
            return false;
    }
    return true;
}

bool tamis_index_equal(const tamis_index *x, const tamis_index *y)
{
    const struct layers *mine = index_layers(x), *theirs = index_layers(y);
    if (may_merge(x, y) != TAMIS_OK || layers_count(mine) != layers_count(theirs))
        return false;
    for (uint32_t i = 0; i < layers_count(mine); i++)
        if (!layer_equal(mine->l[i], theirs->l[i]))
            return false;
    return pending_equal(&x->removals, &y->removals);
}
