/* Creates, copies, clears and frees sets. See set.h. */
#include "set.h"

#include "base/err.h"

uint64_t set_clock(struct set *s)
{
    uint64_t now = s->stack->more->clock(s->stack->more->clock_context);
    const struct layers *layers = set_layers(s);
    uint32_t n = layers_count(layers);
    const struct layer *newest = n ? layers->l[n - 1] : NULL;
    uint64_t latest = newest ? max_u64(newest->born, newest->last) : 0;
    for (uint32_t i = 0; latest > now && i < n; i++) {
        struct layer *layer = layers->l[i];
        layer->born -= min_u64(layer->born, latest - now);
        layer->last -= min_u64(layer->last, latest - now);
    }
    return now;
}

bool set_counted(const struct set *s)
{
    return !set_opt(s)->deletable ||
           (set_lines(s) ? !s->bits_only : set_layers(s)->v[0]->deletable);
}

tamis_error set_writable(const struct set *s)
{
    return s->read_only ? TAMIS_EREADONLY : TAMIS_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static size_t form_size(const struct record_form *form)
{
    return sizeof *form + form->names_len;
}

static struct record_form *form_copy(const struct record_form *form, const tamis_allocator *a)
{
    struct record_form *copy = mem_new(a, 1, form_size(form));
    if (!copy)
        return NULL;
    *copy = *form;
    copy->names = memcpy(copy + 1, form->names, form->names_len);
    return copy;
}

static const struct layers layers_none;
static const struct set_more more_none = {.removals = REMOVALS_NONE};
const struct stack stack_none = {.layers = (struct layers *)(uintptr_t)&layers_none,
                                 .more = (struct set_more *)(uintptr_t)&more_none};

static struct set_more *more_new(const tamis_allocator *a, const struct settings *opt,
                                 const struct record_form *form)
{
    if (opt->growth == TAMIS_SMOOTH)
        return (struct set_more *)(uintptr_t)&more_none;
    struct set_more *more = mem_new0(a, 1, sizeof *more);
    if (!more)
        return NULL;
    more->clock = clock_real;
    more->removals = (struct removals)REMOVALS_NONE;
    if (form)
        more->removals.width = form->attributes;
    return more;
}

static void stack_free(struct stack *stack, const tamis_allocator *a)
{
    if (stack == &stack_none)
        return;
    layers_free(atomic_load(&stack->layers), a);
    mem_free(a, stack->form, 1, stack->form ? form_size(stack->form) : 0);
    if (stack->more && stack->more != &more_none) {
        matrix_free(atomic_load(&stack->more->matrix), a);
        removals_free(&stack->more->removals, a);
        mem_free(a, stack->more, 1, sizeof *stack->more);
    }
    mapping_free(&stack->mapping);
    mem_free(a, stack, 1, sizeof *stack);
}

static struct stack *stack_new(const tamis_allocator *a, const struct settings *opt,
                               const struct record_form *form, uint32_t room)
{
    struct stack *stack = mem_new0(a, 1, sizeof *stack);
    if (!stack)
        return NULL;
    stack->more = more_new(a, opt, form);
    stack->form = form ? form_copy(form, a) : NULL;
    struct layers *layers = layers_new(a, room);
    atomic_store(&stack->layers, layers);
    if (layers && stack->more && (stack->form || !form))
        return stack;
    stack_free(stack, a);
    return NULL;
}

tamis_error set_stack(struct set *s, uint32_t room)
{
    if (set_has_stack(s))
        return TAMIS_OK;
    const struct terms *t = set_terms(s);
    struct stack *stack = stack_new(&t->allocator, &t->opt, NULL, room);
    if (stack)
        s->stack = stack;
    return stack ? TAMIS_OK : TAMIS_ENOMEM;
}

/* Consumes the terms, also if it fails. */
static struct set *make(struct terms *terms, const struct record_form *form, uint32_t room,
                        size_t size)
{
    const tamis_allocator *a = &terms->allocator;
    const struct settings *opt = &terms->opt;
    struct set *s = mem_new0(a, 1, size);
    if (s)
        s->stack = room ? stack_new(a, opt, form, room) : (struct stack *)(uintptr_t)&stack_none;
    if (!s || !s->stack) {
        mem_free(a, s, 1, size);
        terms_release(terms);
        return NULL;
    }
    s->size = (uint8_t)size;
    s->lines.allocator = a;
    s->guarded = form ? form->verifier == TAMIS_VERIFIER_TABLE
                      : opt->growth == TAMIS_DYNAMIC || opt->growth == TAMIS_WINDOW;
    return s;
}

struct set *set_blank(struct terms *terms, const struct record_form *form, uint32_t room)
{
    size_t size = terms->family.hash == TAMIS_XXH3 ? (room ? sizeof(struct set) : SET_BRIEF)
                  : room                           ? SET_OTHER
                                                   : SET_LEAST;
    return make(terms, form, room, size);
}

tamis_error set_make(struct set **out, const tamis_allocator *a, const struct settings *opt,
                     const struct record_form *form, struct family_key key, uint32_t room)
{
    struct terms *terms;
    tamis_error e = terms_get(&terms, a, opt, key);
    struct set *s = e == TAMIS_OK ? set_blank(terms, form, room) : NULL;
    if (!s)
        return TAMIS_ENOMEM;
    s->memory_limit = opt->memory_limit;
    *out = s;
    return TAMIS_OK;
}

/* Does a filter start with lines alone? */
static bool lines_alone(const tamis_options *o, const struct settings *opt, bool compact)
{
    uint64_t least = o->growth || compact ? 1 : SMOOTH_SIZED;
    return opt->growth == TAMIS_SMOOTH &&
           (opt->deletable || opt->capacity < least || smooth_packs(opt));
}

/* Creates a set with its first layer. */
static tamis_error set_new(struct set **out, const tamis_options *o, const struct settings *opt,
                           const struct record_form *form, tamis_reason *reason)
{
    const tamis_allocator *a = o->allocator ? o->allocator : &mem_system;
    struct set *s;
    struct layer *first;
    bool smooth = opt->growth == TAMIS_SMOOTH, alone = lines_alone(o, opt, opt->compact);
    struct family_key key = {o->hash ? o->hash : TAMIS_XXH3, o->key, true};
    tamis_error e = set_make(&s, a, opt, form, key, alone ? 0 : smooth ? 1 : 4);
    if (e != TAMIS_OK)
        return fail(reason, e, "no memory for %s", form ? "records" : "a filter");
    if (o->clock && set_stacked(s)) {
        s->stack->more->clock = o->clock;
        s->stack->more->clock_context = o->clock_context;
    }
    e = alone ? smooth_start(s) : growth_grow(s, &first);
    set_quick(s);
    if (e != TAMIS_OK) {
        set_free(s);
        return fail(reason, e, "the first %s cannot be made: %s", form ? "layer" : "vector",
                    tamis_error_text(e));
    }
    *out = s;
    return TAMIS_OK;
}

static void layers_dispose(struct set *s)
{
    const struct layers *layers = set_layers(s);
    set_reclaim(s, true);
    for (uint32_t i = 0; i < layers_count(layers); i++)
        layer_free(layers->l[i], set_allocator(s));
    stack_free(s->stack, set_allocator(s));
}

void set_unstack(struct set *s)
{
    layers_dispose(s);
    s->stack = (struct stack *)(uintptr_t)&stack_none;
    set_quick(s);
}

/* Frees what the set holds, but not the set itself. */
static void dispose(struct set *s)
{
    struct terms *terms = set_terms(s);
    smooth_free(s);
    layers_dispose(s);
    terms_release(terms);
}

void set_free(struct set *s)
{
    if (!s)
        return;
    tamis_allocator a = set_terms(s)->allocator;
    size_t size = s->size;
    dispose(s);
    mem_free(&a, s, 1, size);
}

/* ---- copies ---------------------------------------------------------------------------------- */

struct layer *layer_clone(const struct layer *layer, const struct set *to, bool half)
{
    const tamis_allocator *a = set_allocator(to);
    struct layer *copy = layer_new(a, layer->parts);
    bool made = copy != NULL;
    if (made)
        memcpy(copy, layer, sizeof *copy);
    for (uint32_t i = 0; made && i < layer->parts; i++) {
        const struct vector *v = layer->part[i].vector;
        if (v)
            copy->part[i].vector =
                half ? vector_fold(v, set_family(to), a) : vector_clone(v, set_family(to), a);
        made = v ? copy->part[i].vector != NULL
                 : table_unite(&copy->part[i].table, &layer->part[i].table, a);
    }
    if (!made) {
        layer_free(copy, a);
        return NULL;
    }
    return copy;
}

static tamis_error clone_parts(struct set *to, const struct set *from, bool half)
{
    const struct layers *layers = set_layers(from);
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        struct layer *copy = layer_clone(layers->l[i], to, half);
        if (!copy)
            return TAMIS_ENOMEM;
        set_put_back(to, copy);
    }
    if (atomic_load(&from->stack->more->matrix))
        e = set_clone_columns(to, from, half);
    if (set_lines(from)) {
        e = lines_clone(&to->lines, &from->lines, to->lines.allocator);
        if (e == TAMIS_OK)
            set_quick(to); /* there may be no vector */
    }
    for (uint32_t i = 0; e == TAMIS_OK && i < from->stack->more->removals.room; i++) {
        const struct pending *p = removals_entry(&from->stack->more->removals, i);
        uint64_t copies = p ? atomic_load(&p->copies) : 0;
        if (copies)
            e = pending_remember(to, removals_key(&from->stack->more->removals, i), copies,
                                 p->candidates, p->n, p->hides);
    }
    return e;
}

tamis_error set_clone(struct set **out, const struct set *from, bool half)
{
    struct terms *terms = terms_share(set_terms(from));
    uint32_t room = set_layers(from)->room; /* 0: it never had a layer */
    struct set *s = terms ? make(terms, from->stack->form, room, from->size) : NULL;
    if (!s)
        return TAMIS_ENOMEM;
    s->memory_limit = from->memory_limit;
    if (set_has_stack(s)) {
        s->stack->next_id = from->stack->next_id;
        s->stack->grown = from->stack->grown;
    }
    if (set_stacked(s)) {
        s->stack->more->forecast = from->stack->more->forecast;
        s->stack->more->clock = from->stack->more->clock;
        s->stack->more->clock_context = from->stack->more->clock_context;
    }
    s->bits_only = from->bits_only || !set_counted(from);
    s->read_only = from->read_only && (s->bits_only || !from->stack->mapping.data);
    tamis_error e = clone_parts(s, from, half);
    if (set_has_stack(s))
        s->stack->stored = from->stack->stored;
    if (e == TAMIS_OK)
        *out = s;
    else
        set_free(s);
    return e;
}

void set_adopt_family(struct set *s)
{
    const struct layers *layers = set_layers(s);
    struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    for (uint32_t i = 0; i < layers_count(layers); i++)
        for (uint32_t j = 0; j < layers->l[i]->parts; j++)
            if (layers->l[i]->part[j].vector)
                layers->l[i]->part[j].vector->bits.family = set_family(s);
    if (matrix)
        matrix->bits.family = set_family(s);
    set_quick(s);
}

tamis_error set_become(struct set *s, struct set *made, tamis_error e)
{
    if (e != TAMIS_OK) {
        set_free(made);
        return e;
    }
    uint8_t size = s->size, taken = made->size;
    dispose(s);
    memcpy(s, made, size < taken ? size : taken);
    s->size = size;
    set_adopt_family(s);
    terms_settle(s);
    mem_free(set_allocator(s), made, 1, taken);
    return TAMIS_OK;
}

/* ---- clearing -------------------------------------------------------------------------------- */

static void layer_clear(struct layer *layer, uint64_t now)
{
    for (uint32_t i = 0; i < layer->parts; i++) {
        if (layer->part[i].vector)
            vector_clear(layer->part[i].vector);
        else
            table_clear(&layer->part[i].table);
    }
    layer->load = layer->count = 0;
    layer->born = layer->last = now;
}

/* Clears in place, which needs no memory: the oldest layer is kept. */
static void clear_in_place(struct set *s)
{
    struct layers *layers = set_layers(s);
    for (uint32_t i = layers_count(layers); i-- > 1;)
        set_drop(s, i);
    layer_clear(layers->l[0], set_now(s));
    s->stack->open = 0;
    s->stack->grown = 1;
    if (set_stacked(s))
        s->stack->more->forecast = (struct forecast){0};
}

/* Creates the first layer again. */
static tamis_error clear_anew(struct set *s)
{
    struct layers *layers = set_layers(s);
    struct forecast forecast = s->stack->more->forecast;
    uint32_t n = layers_count(layers), grown = s->stack->grown;
    struct layer *first;
    atomic_store(&layers->n, 0);
    s->stack->grown = 0;
    if (set_stacked(s))
        s->stack->more->forecast = (struct forecast){0};
    tamis_error e = growth_next(s, &first);
    if (e != TAMIS_OK) {
        atomic_store(&layers->n, n);
        s->stack->grown = grown;
        if (set_stacked(s))
            s->stack->more->forecast = forecast;
        return e;
    }
    for (uint32_t i = 0; i < n; i++)
        layer_free(layers->l[i], set_allocator(s));
    if (atomic_load(&s->stack->more->matrix))
        set_clear_columns(s);
    return set_append(s, first); /* there is room and a column: it cannot fail */
}

void set_empty(struct set *s)
{
    const struct layers *layers = set_layers(s);
    set_reclaim(s, true);
    if (set_lines(s) && layers_count(layers))
        smooth_free(s);
    else if (set_lines(s))
        lines_clear(set_lines(s));
    bool first_day = layers_count(layers) == 1 && layers->l[0]->slot == 0 &&
                     layers->l[0]->capacity == set_opt(s)->capacity;
    if (layers_count(layers) && (first_day || clear_anew(s) != TAMIS_OK))
        clear_in_place(s);
    if (set_has_stack(s))
        s->stack->stored = 0;
    if (set_stacked(s)) /* also frees what it took while it was large */
        removals_free(&s->stack->more->removals, set_allocator(s));
}

tamis_error set_clear(struct set *s)
{
    tamis_error e = set_writable(s);
    if (e == TAMIS_OK)
        set_empty(s);
    return e;
}

/* ---- filters and records --------------------------------------------------------------------- */

/* Vectors of lower rates are spread: blocked ones would take more bits than those of half the rate, 19 % more at
   0.0001. */
#define COMPACT_BLOCKED_MIN 0.004

tamis_error filter_new(struct set **out, const tamis_options *o, bool compact, tamis_reason *reason)
{
    static const tamis_options none;
    struct settings opt;
    o = o ? o : &none;
    tamis_error e = settings_from(&opt, o, reason);
    opt.compact = compact && may_be_compact(&opt) && !lines_alone(o, &opt, compact);
    if (opt.compact && !o->layout &&
        (opt.capacity <= SMALL_CAPACITY || opt.fpp < COMPACT_BLOCKED_MIN ||
         opt.growth == TAMIS_SCALABLE))
        opt.layout = TAMIS_SPREAD;
    return e == TAMIS_OK ? set_new(out, o, &opt, NULL, reason) : e;
}

tamis_error tamis_filter_new(tamis_filter **out, const tamis_options *o, tamis_reason *reason)
{
    struct set *s;
    return give_filter(filter_new(&s, o, false, reason), &s, out);
}

tamis_error tamis_records_new(tamis_records **out, const tamis_records_options *o,
                              tamis_reason *reason)
{
    static const tamis_records_options none;
    struct settings opt = {0};
    struct record_form form;
    char names[NAMES_MAX];
    struct set *s;
    o = o ? o : &none;
    tamis_error e = record_form_from(&form, names, o, reason);
    tamis_options of_set = o->set;
    if (!of_set.growth)
        of_set.growth = TAMIS_SCALABLE;
    if (e == TAMIS_OK)
        e = settings_from(&opt, &of_set, reason);
    if (e == TAMIS_OK && opt.growth == TAMIS_SMOOTH)
        e = fail(reason, TAMIS_EARG, "smooth growth is for keys: records grow by layers");
    if (e == TAMIS_OK && opt.vectors_max > STACK_MAX)
        e = fail(reason, TAMIS_EARG, "records have at most %d layers", STACK_MAX);
    if (e == TAMIS_OK)
        e = set_new(&s, &o->set, &opt, &form, reason);
    return give_records(e, &s, out);
}

void tamis_filter_free(tamis_filter *f)
{
    set_free(f ? &f->set : NULL);
}

void tamis_records_free(tamis_records *x)
{
    set_free(x ? &x->set : NULL);
}

tamis_error tamis_filter_clone(tamis_filter **out, const tamis_filter *from)
{
    struct set *s;
    return give_filter(set_clone(&s, &from->set, false), &s, out);
}

tamis_error tamis_records_clone(tamis_records **out, const tamis_records *from)
{
    struct set *s;
    return give_records(set_clone(&s, &from->set, false), &s, out);
}

tamis_error tamis_filter_clear(tamis_filter *f)
{
    return set_clear(&f->set);
}

tamis_error tamis_records_clear(tamis_records *x)
{
    return set_clear(&x->set);
}
