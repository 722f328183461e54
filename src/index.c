/* Indexes: making, names, layers. See index.h. */
#include "index.h"

#include <time.h>

#include "err.h"

static uint64_t system_clock(void *context)
{
    (void)context;
    struct timespec now; /* of the day, as for filters */
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

tamis_error index_writable(const tamis_index *x)
{
    return x->read_only ? TAMIS_EREADONLY : TAMIS_OK;
}

bool index_counted(const tamis_index *x)
{
    const struct layers *layers = index_layers(x);
    return !x->set.grow.deletable || layers->l[0]->part[0].vector->deletable;
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *index_name(const tamis_index *x, uint32_t attribute)
{
    const char *name = x->names;
    for (uint32_t i = 0; i < attribute; i++)
        name += strlen(name) + 1;
    return name;
}

/* "a, b, c", as far as there is room, and then "...". */
static void list_names(const char *names, uint32_t n, char *out, size_t room)
{
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t len = strlen(names), need = len + (i ? 2 : 0);
        if (at + need + sizeof ", ..." > room) {
            memcpy(out + at, i ? ", ..." : "...", i ? 6 : 4);
            return;
        }
        memcpy(out + at, ", ", i ? 2 : 0);
        memcpy(out + at + need - len, names, len + 1);
        at += need;
        names += len + 1;
    }
}

tamis_error attribute_find(const char *names, uint32_t n, const char *name, uint32_t *number,
                           tamis_reason *reason)
{
    char known[130];
    const char *here = names;
    for (uint32_t i = 0; name && i < n; i++, here += strlen(here) + 1)
        if (strcmp(here, name) == 0) {
            *number = i;
            return TAMIS_OK;
        }
    list_names(names, n, known, sizeof known);
    return fail(reason, TAMIS_EARG, "no attribute \"%.40s\"; there are: %s", name ? name : "",
                known);
}

tamis_error tamis_index_attribute(const tamis_index *x, const char *name, uint32_t *number,
                                  tamis_reason *reason)
{
    return attribute_find(x->names, x->set.attributes, name, number, reason);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static size_t layers_size(uint32_t room)
{
    return sizeof(struct layers) + room * sizeof(struct layer *);
}

struct layers *layers_new(const tamis_allocator *a, uint32_t room)
{
    struct layers *layers = mem_new0(a, 1, layers_size(room));
    if (layers)
        layers->room = room;
    return layers;
}

static void layers_free(struct layers *layers, const tamis_allocator *a)
{
    while (layers) {
        struct layers *older = layers->retired;
        mem_free(a, layers, 1, layers_size(layers->room));
        layers = older;
    }
}

struct layer *index_layer_by_id(const tamis_index *x, uint32_t id)
{
    const struct layers *layers = index_layers(x);
    uint32_t low = 0, n = layers_count(layers), high = n; /* ids rise */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (layers->l[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && layers->l[low]->id == id ? layers->l[low] : NULL;
}

void index_reclaim(tamis_index *x, bool alone)
{
    if (!alone && !(x->guard && guard_idle(x->guard)))
        return;
    struct layers *layers = index_layers(x);
    layers_free(layers->retired, &x->allocator);
    layers->retired = NULL;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        for (uint32_t j = 0; j < layers->l[i]->parts; j++)
            table_reclaim(&layers->l[i]->part[j].table, &x->allocator);
}

tamis_error index_append(tamis_index *x, struct layer *layer)
{
    struct layers *layers = index_layers(x);
    uint32_t n = layers_count(layers);
    if (n >= STACK_MAX) {
        layer_free(layer, &x->allocator);
        return TAMIS_ELIMIT;
    }
    if (n == layers->room) {
        struct layers *larger = layers_new(&x->allocator, 2 * n);
        if (!larger) {
            layer_free(layer, &x->allocator);
            return TAMIS_ENOMEM;
        }
        memcpy(larger->l, layers->l, n * sizeof *layers->l);
        atomic_store_explicit(&larger->n, n, memory_order_relaxed);
        larger->retired = layers;
        atomic_store(&x->layers, larger);
        layers = larger;
    }
    layer->id = x->next_id++;
    x->grown++;
    layers->l[n] = layer;
    atomic_store_explicit(&layers->n, n + 1, memory_order_release);
    return TAMIS_OK;
}

void index_put_back(tamis_index *x, struct layer *layer)
{
    struct layers *layers = index_layers(x);
    uint32_t n = layers_count(layers);
    layers->l[n] = layer;
    x->stored += layer->count;
    atomic_store_explicit(&layers->n, n + 1, memory_order_release);
}

void index_drop(tamis_index *x, uint32_t i)
{
    struct layers *layers = index_layers(x);
    struct layer *layer = layers->l[i];
    uint32_t last = layers_count(layers) - 1;
    x->stored -= layer->count;
    memmove(&layers->l[i], &layers->l[i + 1], (last - i) * sizeof *layers->l);
    atomic_store(&layers->n, last);
    layer_free(layer, &x->allocator);
}

/* ---- making ---------------------------------------------------------------------------------- */

tamis_error index_make(tamis_index **out, const tamis_allocator *a,
                       const struct index_settings *set, const char *names, size_t names_len,
                       uint32_t room)
{
    tamis_index *x = mem_new0(a, 1, sizeof *x);
    if (!x)
        return TAMIS_ENOMEM;
    x->allocator = *a;
    x->set = *set;
    x->clock = system_clock;
    removals_init(&x->removals);
    x->removals.width = set->attributes;
    x->names = mem_new(a, names_len, 1);
    x->names_len = x->names ? names_len : 0;
    struct layers *layers = layers_new(a, room);
    atomic_store(&x->layers, layers);
    bool guarded = set->verifier == TAMIS_VERIFIER_TABLE;
    if (guarded)
        x->guard = mem_new0(a, 1, sizeof *x->guard);
    if (!x->names || !layers || (guarded && !x->guard)) {
        tamis_index_free(x);
        return TAMIS_ENOMEM;
    }
    memcpy(x->names, names, names_len);
    *out = x;
    return TAMIS_OK;
}

static tamis_error make_with_names(tamis_index **out, const tamis_index_options *o,
                                   const struct index_settings *set, const tamis_allocator *a)
{
    char names[TAMIS_ATTRIBUTES_MAX * (ATTRIBUTE_LEN + 1)];
    size_t len = 0;
    for (size_t i = 0; i < o->n_attributes; i++) {
        size_t here = strlen(o->attributes[i].name) + 1;
        memcpy(names + len, o->attributes[i].name, here);
        len += here;
    }
    return index_make(out, a, set, names, len, 4);
}

tamis_error tamis_index_new(tamis_index **out, const tamis_index_options *o, tamis_reason *reason)
{
    static const tamis_index_options none;
    struct index_settings set;
    o = o ? o : &none;
    tamis_error e = index_settings_from(&set, o, reason);
    if (e != TAMIS_OK)
        return e;
    const tamis_allocator *a = o->allocator ? o->allocator : &mem_system;
    tamis_index *x;
    e = make_with_names(&x, o, &set, a);
    if (e != TAMIS_OK)
        return fail(reason, e, "no memory for an index");
    if (o->clock) {
        x->clock = o->clock;
        x->clock_context = o->clock_context;
    }
    e = family_init(&x->family, a, o->hash ? o->hash : TAMIS_XXH3, o->key);
    struct layer *first = NULL;
    if (e == TAMIS_OK)
        e = index_next_layer(x, &first);
    if (e == TAMIS_OK)
        e = index_append(x, first);
    if (e != TAMIS_OK) {
        tamis_index_free(x);
        return fail(reason, e, "the first layer cannot be made: %s", tamis_error_text(e));
    }
    *out = x;
    return TAMIS_OK;
}

void index_dispose(tamis_index *x)
{
    struct layers *layers = index_layers(x);
    for (uint32_t i = 0; layers && i < layers_count(layers); i++)
        layer_free(layers->l[i], &x->allocator);
    layers_free(layers, &x->allocator);
    mem_free(&x->allocator, x->names, x->names_len, 1);
    mem_free(&x->allocator, x->guard, 1, sizeof *x->guard);
    removals_free(&x->removals, &x->allocator);
    family_free(&x->family, &x->allocator);
    mapping_free(&x->mapping);
}

void tamis_index_free(tamis_index *x)
{
    if (!x)
        return;
    tamis_allocator a = x->allocator;
    index_dispose(x);
    mem_free(&a, x, 1, sizeof *x);
}

/* ---- clearing -------------------------------------------------------------------------------- */

static void layer_clear(struct layer *layer)
{
    for (uint32_t i = 0; i < layer->parts; i++) {
        if (layer->part[i].vector)
            vector_clear(layer->part[i].vector);
        table_clear(&layer->part[i].table);
    }
    layer->load = layer->count = 0;
}

/* The first layer made anew, as on the first day; NULL without memory. */
static struct layer *first_again(tamis_index *x)
{
    struct layers *layers = index_layers(x);
    uint32_t n = layers_count(layers), grown = x->grown;
    struct layer *first = NULL;
    atomic_store(&layers->n, 0);
    x->grown = 0;
    if (index_next_layer(x, &first) != TAMIS_OK) {
        atomic_store(&layers->n, n);
        x->grown = grown;
        return NULL;
    }
    atomic_store(&layers->n, n);
    return first;
}

void index_empty(tamis_index *x)
{
    index_reclaim(x, true);
    x->forecast = (struct forecast){0};
    struct layers *layers = index_layers(x);
    bool first_day = layers_count(layers) == 1 && layers->l[0]->slot == 0 &&
                     layers->l[0]->capacity == x->set.grow.capacity;
    struct layer *first = first_day ? NULL : first_again(x);
    for (uint32_t i = layers_count(layers); i-- > 1;)
        index_drop(x, i);
    if (first) {
        layer_free(layers->l[0], &x->allocator);
        first->id = x->next_id++;
        layers->l[0] = first;
    } else { /* in place, where no memory is needed */
        layer_clear(layers->l[0]);
    }
    x->stored = 0;
    x->grown = 1;
    removals_clear(&x->removals);
}

tamis_error tamis_index_clear(tamis_index *x)
{
    tamis_error e = index_writable(x);
    if (e == TAMIS_OK)
        index_empty(x);
    return e;
}
