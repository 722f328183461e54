/* Filters: making, asking, adding. See filter.h. */
#include "filter.h"

#include <time.h>

#include "err.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static uint64_t system_clock(void *context)
{
    (void)context;
    struct timespec now; /* of the day, not monotonic: filters outlive processes and boots */
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t filter_now(tamis_filter *f)
{
    if (f->set.growth != TAMIS_FLEXIBLE && f->set.growth != TAMIS_WINDOW)
        return 0;
    uint64_t now = f->clock(f->clock_context);
    const struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack);
    const struct vector *newest = n ? stack->v[n - 1] : NULL;
    uint64_t latest = newest ? max_u64(newest->born, newest->last) : 0;
    for (uint32_t i = 0; latest > now && i < n; i++) {
        struct vector *v = stack->v[i];
        v->born -= min_u64(v->born, latest - now);
        v->last -= min_u64(v->last, latest - now);
    }
    return now;
}

bool filter_counted(const tamis_filter *f)
{
    return !f->set.deletable || filter_stack(f)->v[0]->deletable;
}

tamis_error filter_writable(const tamis_filter *f)
{
    return f->read_only ? TAMIS_EREADONLY : TAMIS_OK;
}

/* At the bound of the whole filter? */
bool filter_is_full(const tamis_filter *f)
{
    if (f->set.items_max == 0)
        return false;
    const struct stack *stack = filter_stack(f);
    uint64_t load = 0, ones = 0, most = 0, m = 0;
    if (f->set.growth != TAMIS_FIXED && f->stored < f->set.items_max &&
        (!f->set.deletable || stack_count(stack) < f->set.vectors_max))
        return false; /* a load counts for its vector's count at most, and `stored` is their sum */
    for (uint32_t i = 0; i < stack_count(stack); i++) {
        const struct vector *v = stack->v[i];
        uint64_t now = __atomic_load_n(&v->load, __ATOMIC_RELAXED);
        load += v->deletable ? min_u64(now, v->count) : now;
        ones += v->ones;
        most += v->ones_max;
        m += vector_positions_total(v);
    }
    if (load >= f->set.items_max)
        return true;
    if (!f->set.deletable || stack_count(stack) < f->set.vectors_max || ones <= most)
        return false;
    /* load has drifted, but the bits tell: see filter_set_limits */
    return ones > most + 2 * growth_root(m);
}

uint32_t filter_place_of(const tamis_filter *f, uint32_t id)
{
    const struct stack *stack = filter_stack(f);
    uint32_t low = 0, high = stack_count(stack), n = high;
    if (f->set.growth == TAMIS_WINDOW) { /* elsewhere ids rise */
        while (low < n && stack->v[low]->id != id)
            low++;
        high = low;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (stack->v[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && stack->v[low]->id == id ? low : n;
}

struct vector *filter_vector_by_id(const tamis_filter *f, uint32_t id)
{
    const struct stack *stack = filter_stack(f);
    uint32_t i = filter_place_of(f, id);
    return i < stack_count(stack) ? stack->v[i] : NULL;
}

bool filter_match(const tamis_filter *f, tamis_digest digest, struct match *match)
{
    const struct matrix *matrix = atomic_load(&f->matrix);
    match->digest = digest;
    match->known = matrix && matrix_words(matrix) <= sizeof match->columns / 8;
    if (match->known)
        return matrix_match(matrix, digest, match->columns);
    const struct stack *stack = filter_stack(f);
    if (!matrix)
        return stack->v[0]->bits.kernel->has_any(stack->v, stack_count(stack), digest);
    uint8_t found = 0;
    matrix_has(matrix, &digest, 1, &found);
    return found;
}

static size_t stack_size(uint32_t room)
{
    return sizeof(struct stack) + room * sizeof(struct vector *);
}

struct stack *stack_new(const tamis_allocator *a, uint32_t room)
{
    struct stack *stack = mem_new0(a, 1, stack_size(room));
    if (stack)
        stack->room = room;
    return stack;
}

static void stack_free(struct stack *stack, const tamis_allocator *a)
{
    while (stack) {
        struct stack *older = stack->retired;
        mem_free(a, stack, 1, stack_size(stack->room));
        stack = older;
    }
}

/* Publishes a stack with other vectors; the present one is retired. */
static void stack_replace(tamis_filter *f, struct stack *stack)
{
    stack->retired = filter_stack(f);
    atomic_store(&f->stack, stack);
}

void filter_reclaim(tamis_filter *f, bool alone)
{
    if (!alone && !(f->guard && guard_idle(f->guard)))
        return;
    struct stack *stack = filter_stack(f);
    struct matrix *matrix = atomic_load(&f->matrix);
    stack_free(stack->retired, &f->allocator);
    stack->retired = NULL;
    if (matrix) {
        matrix_free(matrix->retired, &f->allocator);
        matrix->retired = NULL;
    }
    while (f->gone) {
        struct vector *next = f->gone->next_gone;
        vector_free(f->gone, &f->allocator);
        f->gone = next;
    }
}

void filter_place_columns(tamis_filter *f)
{
    struct matrix *matrix = atomic_load(&f->matrix);
    const struct stack *stack = filter_stack(f);
    for (uint32_t i = 0; i < stack_count(stack); i++) {
        stack->v[i]->bits.words = matrix->bits.words;
        stack->v[i]->stride = matrix->width;
    }
}

bool filter_reserve_columns(tamis_filter *f, uint32_t n, const struct bits *shape)
{
    struct matrix *matrix = atomic_load(&f->matrix);
    if (matrix && matrix->width >= n)
        return true;
    uint64_t width = matrix_width_for(n);
    struct matrix *wider = matrix ? matrix_resize(matrix, &f->allocator, width)
                                  : matrix_new(&f->allocator, shape, width);
    if (!wider)
        return false;
    wider->retired = matrix;
    atomic_store(&f->matrix, wider);
    filter_place_columns(f);
    return true;
}

/* A column for vector number n of a dynamic filter, in a wider matrix if need be. */
static tamis_error place_column(tamis_filter *f, struct vector *v, uint32_t n)
{
    if (!filter_reserve_columns(f, n + 1, &v->bits))
        return TAMIS_ENOMEM;
    const struct matrix *matrix = atomic_load(&f->matrix);
    v->bits.words = matrix->bits.words;
    v->stride = matrix->width;
    v->column = n;
    return TAMIS_OK;
}

tamis_error filter_append(tamis_filter *f, struct vector *v)
{
    struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack);
    struct stack *larger = NULL;
    if (n >= filter_vectors_max(f->set.growth)) {
        vector_free(v, &f->allocator);
        return TAMIS_ELIMIT;
    }
    if (n == stack->room) {
        larger = stack_new(&f->allocator, 2 * n);
        if (!larger) {
            vector_free(v, &f->allocator);
            return TAMIS_ENOMEM;
        }
        memcpy(larger->v, stack->v, n * sizeof *stack->v);
        atomic_store_explicit(&larger->n, n, memory_order_relaxed);
    }
    if (f->set.growth == TAMIS_DYNAMIC && place_column(f, v, n) != TAMIS_OK) {
        stack_free(larger, &f->allocator);
        vector_free(v, &f->allocator);
        return TAMIS_ENOMEM;
    }
    v->id = f->next_id++;
    f->grown++;
    if (larger) {
        stack_replace(f, larger);
        stack = larger;
    }
    stack->v[n] = v;
    atomic_store_explicit(&stack->n, n + 1, memory_order_release);
    uint32_t open = f->open;
    filter_set_quick(f);
    f->open = n ? open : 0; /* one more at the end does not change those before */
    filter_reclaim(f, false);
    return TAMIS_OK;
}

bool filter_let_go(tamis_filter *f, uint32_t old)
{
    struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack);
    struct stack *shorter = stack_new(&f->allocator, stack->room);
    if (!shorter)
        return false;
    memcpy(shorter->v, stack->v + old, (n - old) * sizeof *stack->v);
    atomic_store_explicit(&shorter->n, n - old, memory_order_relaxed);
    stack_replace(f, shorter);
    for (uint32_t i = 0; i < old; i++) { /* retired with them, until no reader is inside */
        f->stored -= stack->v[i]->count;
        stack->v[i]->next_gone = f->gone;
        f->gone = stack->v[i];
    }
    filter_reclaim(f, false);
    return true;
}

void filter_narrow(tamis_filter *f)
{
    struct matrix *matrix = atomic_load(&f->matrix);
    uint64_t width = matrix_width_for(max_u64(1, stack_count(filter_stack(f))));
    struct matrix *narrow =
        width < matrix->width ? matrix_resize(matrix, &f->allocator, width) : NULL;
    if (!narrow)
        return;
    matrix_free(matrix, &f->allocator);
    atomic_store(&f->matrix, narrow);
    filter_place_columns(f);
}

void filter_drop(tamis_filter *f, uint32_t i)
{
    struct stack *stack = filter_stack(f);
    struct vector *v = stack->v[i];
    uint32_t last = stack_count(stack) - 1;
    struct matrix *matrix = atomic_load(&f->matrix);
    f->stored -= v->count;
    memmove(&stack->v[i], &stack->v[i + 1], (last - i) * sizeof *stack->v);
    atomic_store(&stack->n, last);
    if (matrix) { /* the last column takes its place, so columns stay 0..n-1 in some order */
        for (uint32_t j = 0; j < last && v->column != last; j++)
            if (stack->v[j]->column == last) {
                matrix_column_move(matrix, v->column, last);
                stack->v[j]->column = v->column;
                v->column = last;
            }
        vector_clear(v);
        if (3 * matrix_width_for(last ? last : 1) <= matrix->width)
            filter_narrow(f);
    }
    vector_free(v, &f->allocator);
    filter_set_quick(f);
}

/* ---- making ---------------------------------------------------------------------------------- */

tamis_error filter_make(tamis_filter **out, const tamis_allocator *a, const struct settings *set,
                        tamis_hash hash, const uint8_t *key, uint32_t room)
{
    tamis_filter *f = mem_new0(a, 1, sizeof *f);
    if (!f)
        return TAMIS_ENOMEM;
    f->allocator = *a;
    f->set = *set;
    f->clock = system_clock;
    removals_init(&f->removals);
    tamis_error e = family_init(&f->family, &f->allocator, hash, key);
    struct stack *stack = stack_new(&f->allocator, room);
    atomic_store(&f->stack, stack);
    bool guarded = set->growth == TAMIS_DYNAMIC || set->growth == TAMIS_WINDOW;
    if (guarded)
        f->guard = mem_new0(&f->allocator, 1, sizeof *f->guard);
    if (e == TAMIS_OK && (!stack || (guarded && !f->guard)))
        e = TAMIS_ENOMEM;
    if (e == TAMIS_OK)
        *out = f;
    else
        tamis_filter_free(f);
    return e;
}

void filter_put_back(tamis_filter *f, struct vector *v)
{
    struct stack *stack = filter_stack(f);
    uint32_t n = stack_count(stack);
    stack->v[n] = v;
    atomic_store(&stack->n, n + 1);
    f->stored += v->count;
    filter_set_quick(f);
}

tamis_error tamis_filter_new(tamis_filter **out, const tamis_options *options, tamis_reason *reason)
{
    static const tamis_options defaults;
    const tamis_options *o = options ? options : &defaults;
    struct settings set;
    tamis_error e = settings_from(&set, o, reason);
    if (e != TAMIS_OK)
        return e;
    const tamis_allocator *a = o->allocator ? o->allocator : &mem_system;
    tamis_filter *f;
    e = filter_make(&f, a, &set, o->hash ? o->hash : TAMIS_XXH3, o->key, 4);
    if (e != TAMIS_OK)
        return fail(reason, e, "no memory for a filter");
    if (o->clock) {
        f->clock = o->clock;
        f->clock_context = o->clock_context;
    }
    struct vector *first;
    e = growth_next(f, &first);
    if (e == TAMIS_OK)
        e = filter_append(f, first);
    if (e != TAMIS_OK) {
        tamis_filter_free(f);
        return fail(reason, e, "the first vector cannot be made: %s", tamis_error_text(e));
    }
    *out = f;
    return TAMIS_OK;
}

void filter_dispose(tamis_filter *f)
{
    struct stack *stack = filter_stack(f);
    if (stack) {
        for (uint32_t i = 0; i < stack_count(stack); i++)
            vector_free(stack->v[i], &f->allocator);
        filter_reclaim(f, true);
        stack_free(stack, &f->allocator);
    }
    matrix_free(atomic_load(&f->matrix), &f->allocator);
    mem_free(&f->allocator, f->guard, 1, sizeof *f->guard);
    removals_free(&f->removals, &f->allocator);
    mapping_free(&f->mapping);
    family_free(&f->family, &f->allocator);
}

void tamis_filter_free(tamis_filter *f)
{
    if (!f)
        return;
    tamis_allocator a = f->allocator;
    filter_dispose(f);
    mem_free(&a, f, 1, sizeof *f);
}

/* In place, where no memory is needed: the oldest vector stays. */
static void clear_in_place(tamis_filter *f)
{
    struct stack *stack = filter_stack(f);
    for (uint32_t i = stack_count(stack); i-- > 1;)
        filter_drop(f, i);
    vector_clear(stack->v[0]);
    stack->v[0]->born = stack->v[0]->last = filter_now(f);
    f->stored = 0;
    f->open = 0;
    f->grown = 1;
    f->forecast = (struct forecast){0};
    removals_free(&f->removals, &f->allocator); /* what it took while it was large goes too */
}

/* Makes the first vector anew, as on the first day. */
static tamis_error clear_anew(tamis_filter *f)
{
    struct stack *stack = filter_stack(f);
    struct matrix *matrix = atomic_load(&f->matrix);
    struct forecast forecast = f->forecast;
    uint32_t n = stack_count(stack), grown = f->grown;
    struct vector *first;
    atomic_store(&stack->n, 0);
    f->grown = 0;
    f->forecast = (struct forecast){0};
    tamis_error e = growth_next(f, &first);
    if (e != TAMIS_OK) {
        atomic_store(&stack->n, n);
        f->grown = grown;
        f->forecast = forecast;
        return e;
    }
    for (uint32_t i = 0; i < n; i++)
        vector_free(stack->v[i], &f->allocator);
    if (matrix) {
        struct matrix *narrow = matrix_new(&f->allocator, &matrix->bits, 1);
        memset(matrix->memory.data, 0, (size_t)(matrix->width * matrix->bits.units / 8));
        if (narrow) {
            matrix_free(matrix, &f->allocator);
            atomic_store(&f->matrix, narrow);
        }
    }
    f->stored = 0;
    removals_free(&f->removals, &f->allocator); /* what it took while it was large goes too */
    return filter_append(f, first);             /* there is room and a column: it cannot fail */
}

tamis_error tamis_filter_clear(tamis_filter *f)
{
    tamis_error e = filter_writable(f);
    if (e != TAMIS_OK)
        return e;
    filter_empty(f);
    return TAMIS_OK;
}

void filter_empty(tamis_filter *f)
{
    struct stack *stack = filter_stack(f);
    filter_reclaim(f, true);
    const struct vector *v = stack->v[0];
    bool first_day = stack_count(stack) == 1 && v->slot == 0 && v->capacity == f->set.capacity;
    if (first_day || clear_anew(f) != TAMIS_OK)
        clear_in_place(f);
}

/* ---- asking ---------------------------------------------------------------------------------- */

tamis_digest tamis_filter_digest(const tamis_filter *f, const void *key, size_t len)
{
    return family_digest(&f->family, key, len);
}

void tamis_filter_digest_many(const tamis_filter *f, const tamis_key *keys, size_t n,
                              tamis_digest *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = family_digest(&f->family, keys[i].data, keys[i].len);
}

void tamis_filter_digest_fixed(const tamis_filter *f, const void *keys, size_t width, size_t n,
                               tamis_digest *out)
{
    family_digest_fixed(&f->family, keys, width, n, out);
}

static void stack_has(const struct stack *stack, const tamis_digest *digests, size_t n,
                      uint8_t *found)
{
    const struct bits *first = &stack->v[0]->bits; /* all vectors have the filter's layout */
    uint32_t vectors = stack_count(stack);
    if (n == 1)
        found[0] = first->kernel->has_any(stack->v, vectors, digests[0]);
    else if (vectors == 1)
        first->kernel->has_stream(first, digests, n, found);
    else
        first->kernel->has_stack(stack->v, vectors, digests, n, found);
}

void filter_bits_have(const tamis_filter *f, const tamis_digest *digests, size_t n, uint8_t *found)
{
    if (!f->guard) {
        stack_has(filter_stack(f), digests, n, found);
        return;
    }
    unsigned stripe = guard_enter(f->guard);
    const struct matrix *matrix = atomic_load(&f->matrix);
    if (matrix) {
        memset(found, 0, n);
        matrix_has(matrix, digests, n, found);
    } else {
        stack_has(atomic_load(&f->stack), digests, n, found);
    }
    guard_leave(f->guard, stripe);
}

void tamis_filter_has_many(const tamis_filter *f, const tamis_digest *digests, size_t n,
                           uint8_t *found)
{
    filter_bits_have(f, digests, n, found);
    if (!f->set.unique)
        return;
    for (size_t i = 0; i < n; i++)
        if (found[i] && removals_hide(&f->removals, digests[i]))
            found[i] = 0;
}

/* The way when there are several vectors, or one is not all there is to ask. */
static bool has_in_stack(const struct quick *quick, const void *key, size_t len)
{
    const tamis_filter *f = (const tamis_filter *)quick;
    tamis_digest digest = family_digest(&f->family, key, len);
    if (f->guard || f->set.unique) {
        uint8_t found;
        tamis_filter_has_many(f, &digest, 1, &found);
        return found;
    }
    const struct stack *stack = filter_stack(f);
    return stack->v[0]->bits.kernel->has_any(stack->v, stack_count(stack), digest);
}

/* Beside readers one vector may become several, never the other way: who still asks the first alone
   sees the filter as it was. */
void filter_set_quick(tamis_filter *f)
{
    const struct stack *stack = filter_stack(f);
    quick_fn has = has_in_stack;
    f->into = NULL;
    f->open = 0;
    f->tidy_till = 0;
    if (stack && stack_count(stack) == 1 && !f->guard && !f->set.unique) {
        struct vector *v = stack->v[0];
        has = quick_set(&f->quick, &v->bits);
        if (f->set.growth == TAMIS_FIXED && !f->set.deletable && !f->set.shared_adds &&
            v->stride == 1)
            f->into = v;
    }
    __atomic_store_n(&f->quick.has, has, __ATOMIC_RELEASE);
}

bool tamis_filter_has(const tamis_filter *f, const void *key, size_t len)
{
    return __atomic_load_n(&f->quick.has, __ATOMIC_ACQUIRE)(&f->quick, key, len);
}
