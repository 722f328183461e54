/*
 * The list of a set's layers, which readers walk while a writer appends or drops layers: a list is replaced as
 * a whole, and the old one is freed when no reader is inside. See set.h.
 */
#include "set.h"

/* A single part is a vector, and has no table. */
size_t layer_size(uint32_t parts)
{
    return sizeof(struct layer) +
           (parts == 1 ? offsetof(struct part, table) : parts * sizeof(struct part));
}

struct layer *layer_new(const tamis_allocator *a, uint32_t parts)
{
    struct layer *layer = mem_new0(a, 1, layer_size(parts));
    if (layer)
        layer->parts = parts;
    return layer;
}

void layer_free(struct layer *layer, const tamis_allocator *a)
{
    if (!layer)
        return;
    for (uint32_t i = 0; i < layer->parts; i++) {
        vector_free(layer->part[i].vector, a);
        if (layer->parts > 1)
            table_free(&layer->part[i].table, a);
    }
    mem_free(a, layer, 1, layer_size(layer->parts));
}

static size_t layers_size(uint32_t room)
{
    return sizeof(struct layers) + room * (sizeof(struct vector *) + sizeof(struct layer *));
}

struct layers *layers_new(const tamis_allocator *a, uint32_t room)
{
    struct layers *layers = mem_new0(a, 1, layers_size(room));
    if (layers) {
        layers->room = room;
        layers->l = (struct layer **)(void *)(layers->v + room);
    }
    return layers;
}

void layers_free(struct layers *layers, const tamis_allocator *a)
{
    while (layers) {
        struct layers *older = layers->retired;
        mem_free(a, layers, 1, layers_size(layers->room));
        layers = older;
    }
}

static void layers_put(struct layers *layers, struct layer *layer)
{
    uint32_t n = layers_count(layers);
    layers->l[n] = layer;
    layers->v[n] = layer->part[0].vector;
    if (layers->v[n]->bits.kernel != layers->v[0]->bits.kernel)
        atomic_store_explicit(&layers->mixed, true, memory_order_relaxed);
    atomic_store_explicit(&layers->n, n + 1, memory_order_release);
}

/* A copy of a list from layer `first` on; NULL if there is no memory. */
static struct layers *layers_copy(const struct layers *from, uint32_t first, uint32_t room,
                                  const tamis_allocator *a)
{
    struct layers *layers = layers_new(a, room);
    for (uint32_t i = first; layers && i < layers_count(from); i++)
        layers_put(layers, from->l[i]);
    return layers;
}

/* Publishes a new list and retires the present one. */
static void layers_replace(struct set *s, struct layers *layers)
{
    layers->retired = set_layers(s);
    atomic_store(&s->stack->layers, layers);
}

uint32_t set_index_of(const struct set *s, uint32_t id)
{
    const struct layers *layers = set_layers(s);
    uint32_t n = layers_count(layers), at = 0;
    if (set_opt(s)->growth == TAMIS_WINDOW) /* in other sets ids ascend */
        while (at < n && layers->l[at]->id != id)
            at++;
    else
        at = SEARCH(i, n, layers->l[i]->id < id);
    return at < n && layers->l[at]->id == id ? at : n;
}

struct layer *set_layer_by_id(const struct set *s, uint32_t id)
{
    const struct layers *layers = set_layers(s);
    uint32_t i = set_index_of(s, id);
    return i < layers_count(layers) ? layers->l[i] : NULL;
}

/* Is there anything replaced that is not freed yet? */
static bool set_replaced(const struct set *s)
{
    const struct layers *layers = set_layers(s);
    const struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    if (layers->retired || (matrix && matrix->retired) || s->stack->more->gone)
        return true;
    for (uint32_t i = 0; s->stack->form && i < layers_count(layers); i++)
        for (uint32_t j = s->stack->form->attributes; j < layers->l[i]->parts; j++)
            if (table_replaced(&layers->l[i]->part[j].table))
                return true;
    return false;
}

void set_reclaim(struct set *s, bool alone)
{
    if (!alone && !(s->guarded && set_replaced(s) && readers_oldest() == UINT64_MAX))
        return;
    struct layers *layers = set_layers(s);
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    if (layers->retired) {
        layers_free(layers->retired, set_allocator(s));
        layers->retired = NULL;
    }
    if (matrix) {
        matrix_free(matrix->retired, set_allocator(s));
        matrix->retired = NULL;
    }
    for (uint32_t i = 0; s->stack->form && i < layers_count(layers); i++)
        for (uint32_t j = s->stack->form->attributes; j < layers->l[i]->parts; j++)
            table_reclaim(&layers->l[i]->part[j].table, set_allocator(s));
    while (s->stack->more->gone) {
        struct layer *next = s->stack->more->gone->next_gone;
        layer_free(s->stack->more->gone, set_allocator(s));
        s->stack->more->gone = next;
    }
}

tamis_error set_append(struct set *s, struct layer *layer)
{
    uint32_t n = layers_count(set_layers(s));
    bool most = n >= layers_max(set_opt(s)->growth, s->stack->form);
    if (most || set_stack(s, 1) != TAMIS_OK) {
        layer_free(layer, set_allocator(s));
        return most ? TAMIS_ELIMIT : TAMIS_ENOMEM;
    }
    struct layers *layers = set_layers(s), *larger = NULL;
    bool room = n < layers->room || (larger = layers_copy(layers, 0, 2 * n, set_allocator(s)));
    if (!room || (set_sliced(s) && set_place_column(s, layer->part[0].vector, n) != TAMIS_OK)) {
        layers_free(larger, set_allocator(s));
        layer_free(layer, set_allocator(s));
        return TAMIS_ENOMEM;
    }
    layer->id = s->stack->next_id++;
    s->stack->grown++;
    if (larger)
        layers_replace(s, larger);
    layers_put(set_layers(s), layer);
    uint32_t open = s->stack->open;
    set_quick(s);
    s->stack->open = n ? open : 0; /* appending does not affect earlier layers */
    set_reclaim(s, false);
    return TAMIS_OK;
}

void set_put_back(struct set *s, struct layer *layer)
{
    layers_put(set_layers(s), layer);
    s->stack->stored += layer_count(s, layer);
    set_quick(s);
}

bool set_let_go(struct set *s, uint32_t old)
{
    struct layers *layers = set_layers(s);
    struct layers *shorter = layers_copy(layers, old, layers->room, set_allocator(s));
    if (!shorter)
        return false;
    layers_replace(s, shorter);
    for (uint32_t i = 0; i < old; i++) { /* retired, and freed when no reader is inside */
        s->stack->stored -= layer_count(s, layers->l[i]);
        layers->l[i]->next_gone = s->stack->more->gone;
        s->stack->more->gone = layers->l[i];
    }
    set_reclaim(s, false);
    return true;
}

void set_drop(struct set *s, uint32_t i)
{
    struct layers *layers = set_layers(s);
    struct layer *layer = layers->l[i];
    uint32_t last = layers_count(layers) - 1;
    s->stack->stored -= layer_count(s, layer);
    memmove(&layers->l[i], &layers->l[i + 1], (last - i) * sizeof *layers->l);
    memmove(&layers->v[i], &layers->v[i + 1], (last - i) * sizeof *layers->v);
    atomic_store(&layers->n, last);
    if (atomic_load(&s->stack->more->matrix))
        set_drop_column(s, layer->part[0].vector);
    layer_free(layer, set_allocator(s));
    set_quick(s);
}

/* While others read, one vector may become several, never the reverse: a reader that still queries only the
   first one sees the filter as it was. */
void set_quick(struct set *s)
{
    const struct layers *layers = set_layers(s);
    quick_fn has = s->guarded || set_opt(s)->unique ? filter_has_with_care : filter_has_in_layers;
    if (set_has_stack(s)) {
        s->stack->into = NULL;
        s->stack->open = 0;
        s->stack->tidy_till = 0;
    }
    if (set_lines(s)) {
        has = smooth_quick(s);
    } else if (layers_count(layers) == 1 && !s->guarded && s->size >= SET_OTHER &&
               !set_opt(s)->unique && !s->stack->form) {
        struct vector *v = layers->v[0];
        bool one = set_opt(s)->growth == TAMIS_FIXED || set_opt(s)->growth == TAMIS_SMOOTH;
        has = quick_set(&s->quick, &v->bits, s->size < sizeof *s);
        if (one && !set_opt(s)->deletable && !set_opt(s)->shared_adds && !set_opt(s)->add_always &&
            v->stride == 1)
            s->stack->into = v;
    }
    __atomic_store_n(&s->quick.has, has, __ATOMIC_RELEASE);
}
