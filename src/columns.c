/* See columns.h. */
#include "columns.h"

#define CHUNK_WORDS 64 /* columns looked at together: 4096 */
#define LINES_AHEAD 4  /* of each row, fetched before the first is looked at */

struct columns_state *columns_now(const struct columns *c)
{
    return atomic_load_explicit(&c->state, memory_order_acquire);
}

/* ---- matrices -------------------------------------------------------------------------------- */

static size_t group_size(uint64_t width)
{
    return sizeof(struct columns_group) + (size_t)width * sizeof(uint32_t);
}

struct columns_group *columns_group_new(const tamis_allocator *a, const struct bits *shape,
                                        uint64_t width, bool memory)
{
    struct columns_group *g = mem_new(a, 1, group_size(width));
    size_t bytes;
    if (!g)
        return NULL;
    *g = (struct columns_group){.bits = *shape, .width = width};
    g->rows = shape->units * shape->kernel->unit_bits;
    g->bits.words = NULL;
    memset(g->owner, 0xff, (size_t)width * sizeof *g->owner);
    if (memory && (!mul_size((size_t)g->rows, (size_t)width, &bytes) ||
                   !block_new(a, bytes / 8 + 8, &g->memory))) {
        mem_free(a, g, 1, group_size(width));
        return NULL;
    }
    g->bits.words = g->memory.data;
    return g;
}

void columns_group_free(struct columns_group *g, const tamis_allocator *a)
{
    block_free(a, &g->memory);
    mem_free(a, g, 1, group_size(g->width));
}

static uint64_t wider(uint64_t width)
{
    return width < 512 ? 2 * width : round_up(width + width / 4, 512);
}

uint64_t columns_width(uint64_t columns)
{
    uint64_t width = 1;
    while (width < columns && width < 64)
        width *= 2;
    return width < columns ? round_up(columns, 64) : width;
}

/* A row of less than a word; words hold whole rows. */
ALWAYS_INLINE uint64_t narrow_row(const uint64_t *words, uint64_t row, uint64_t width)
{
    uint64_t at = row * width;
    return word_load(&words[at >> 6]) >> (at & 63) & ((UINT64_C(1) << width) - 1);
}

/* A copy to be changed: with the same words, or, if a wider one is wanted, with words of its own. */
static struct columns_group *group_copy(const struct columns_group *g, const tamis_allocator *a,
                                        uint64_t width)
{
    bool same = width == g->width;
    struct columns_group *copy = columns_group_new(a, &g->bits, width, !same);
    if (!copy)
        return NULL;
    memcpy(copy->owner, g->owner, (size_t)g->width * sizeof *g->owner);
    copy->used = g->used;
    if (same) {
        copy->bits.words = g->bits.words;
        return copy;
    }
    for (uint64_t row = 0; row < g->rows; row++) {
        uint64_t *to = copy->bits.words + (row * width >> 6);
        if (g->width < 64)
            *to |= narrow_row(g->bits.words, row, g->width) << (row * width & 63);
        else
            memcpy(to, g->bits.words + row * (g->width / 64), (size_t)g->width / 8);
    }
    return copy;
}

static void column_write(struct columns_group *g, uint64_t column, const uint64_t *words)
{
    uint64_t at = column;
    for (uint64_t row = 0; row < g->rows; row++, at += g->width) {
        uint64_t *to = &g->bits.words[at >> 6], bit = UINT64_C(1) << (at & 63);
        uint64_t old = word_load(to), on = words[row >> 6] >> (row & 63) & 1;
        uint64_t now = on ? old | bit : old & ~bit;
        if (now != old)
            word_store(to, now);
    }
}

uint64_t columns_word(const struct columns_group *g, uint64_t column, uint64_t i)
{
    uint64_t value = 0, last = min_u64(64, g->rows - 64 * i), at = 64 * i * g->width + column;
    for (uint64_t j = 0; j < last; j++, at += g->width)
        value |= (word_load(&g->bits.words[at >> 6]) >> (at & 63) & 1) << j;
    return value;
}

/* ---- states ---------------------------------------------------------------------------------- */

static struct columns_state *state_new(const tamis_allocator *a, uint32_t n)
{
    struct columns_state *s = mem_new0(a, 1, sizeof *s + n * sizeof *s->group);
    if (s)
        s->n = n;
    return s;
}

static void state_free(struct columns_state *s, const tamis_allocator *a, uint32_t room)
{
    mem_free(a, s, 1, sizeof *s + room * sizeof *s->group);
}

tamis_error columns_init(struct columns *c, const tamis_allocator *a)
{
    memset(c, 0, sizeof *c);
    c->allocator = *a;
    struct columns_state *s = state_new(a, 0);
    atomic_store(&c->state, s);
    return s ? TAMIS_OK : TAMIS_ENOMEM;
}

static void free_retired(struct columns *c)
{
    while (c->retired_states) {
        struct columns_state *s = c->retired_states;
        c->retired_states = s->retired;
        state_free(s, &c->allocator, s->n);
    }
    while (c->retired_groups) {
        struct columns_group *g = c->retired_groups;
        c->retired_groups = g->retired;
        columns_group_free(g, &c->allocator);
    }
}

void columns_free(struct columns *c)
{
    struct columns_state *s = columns_now(c);
    free_retired(c);
    for (uint32_t i = 0; s && i < s->n; i++)
        columns_group_free(s->group[i], &c->allocator);
    if (s)
        state_free(s, &c->allocator, s->n);
    atomic_store(&c->state, NULL);
}

/* ---- changing -------------------------------------------------------------------------------- */

/* A change under way: groups[i] is the new form of state->group[i], or NULL where that stays; those
   from state->n on are new. */
struct change {
    struct columns *c;
    struct columns_state *from;
    struct columns_group **groups;
    uint32_t n, room;
};

/* What readers have left behind: nothing is retired any more, and columns given up are free. */
static void reclaim(struct columns *c)
{
    if (!c->retired_states || !guard_idle(&c->guard))
        return;
    struct columns_state *s = columns_now(c);
    free_retired(c);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint64_t j = 0; j < s->group[i]->width; j++)
            if (s->group[i]->owner[j] == COLUMN_GONE)
                __atomic_store_n(&s->group[i]->owner[j], COLUMN_FREE, __ATOMIC_RELAXED);
}

static tamis_error change_begin(struct change *x, struct columns *c, size_t vectors)
{
    reclaim(c);
    *x = (struct change){.c = c, .from = columns_now(c)};
    x->n = x->from->n;
    if (vectors > UINT32_MAX / 2 - x->n)
        return TAMIS_ELIMIT;
    x->room = x->n + (uint32_t)vectors;
    x->groups = mem_new0(&c->allocator, x->room, sizeof *x->groups);
    return x->groups ? TAMIS_OK : TAMIS_ENOMEM;
}

static void change_abandon(struct change *x)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->groups[i])
            columns_group_free(x->groups[i], &x->c->allocator);
    mem_free(&x->c->allocator, x->groups, x->room, sizeof *x->groups);
}

/* The group as it will be, made changeable, with at least this width. */
static struct columns_group *change_group(struct change *x, uint32_t i, uint64_t width)
{
    struct columns_group *now = x->groups[i] ? x->groups[i] : x->from->group[i];
    if (x->groups[i] && now->width >= width)
        return now;
    struct columns_group *copy =
        group_copy(now, &x->c->allocator, width > now->width ? width : now->width);
    if (copy && x->groups[i])
        columns_group_free(x->groups[i], &x->c->allocator);
    if (copy)
        x->groups[i] = copy;
    return copy;
}

static bool alike(const struct bits *x, const struct bits *y)
{
    return x->units == y->units && x->k == y->k && x->kernel == y->kernel;
}

/* The group for such a vector; a new one if there is none. NULL: no memory. */
static struct columns_group *change_find(struct change *x, const struct bits *vector, uint32_t *at)
{
    for (*at = 0; *at < x->n; ++*at) {
        struct columns_group *g = x->groups[*at] ? x->groups[*at] : x->from->group[*at];
        if (alike(&g->bits, vector))
            return change_group(x, *at, g->width);
    }
    x->groups[*at] = columns_group_new(&x->c->allocator, vector, 1, true);
    x->n += x->groups[*at] != NULL;
    return x->groups[*at];
}

/* No reader sees the column yet: the state that says whose it is comes later. */
static tamis_error change_add(struct change *x, uint32_t owner, const struct bits *vector)
{
    uint32_t at;
    struct columns_group *g = change_find(x, vector, &at);
    uint64_t column = 0;
    if (!g)
        return TAMIS_ENOMEM;
    while (column < g->width && g->owner[column] != COLUMN_FREE)
        column++;
    if (column == g->width) {
        g = change_group(x, at, wider(g->width));
        if (!g)
            return TAMIS_ENOMEM;
    }
    column_write(g, column, vector->words);
    g->owner[column] = owner;
    g->used++;
    return TAMIS_OK;
}

/* Takes the columns that the owner has in the state before. */
static tamis_error change_drop(struct change *x, uint32_t owner)
{
    for (uint32_t i = 0; i < x->from->n; i++) {
        const struct columns_group *before = x->from->group[i];
        for (uint64_t j = 0; j < before->width; j++) {
            if (before->owner[j] != owner)
                continue;
            struct columns_group *g = change_group(x, i, before->width);
            if (!g)
                return TAMIS_ENOMEM;
            g->owner[j] = COLUMN_GONE;
            g->used--;
        }
    }
    return TAMIS_OK;
}

/* The new form of group i takes over; words that both have go with it. */
static struct columns_group *change_replace(struct change *x, uint32_t i)
{
    struct columns_group *old = i < x->from->n ? x->from->group[i] : NULL;
    struct columns_group *g = x->groups[i];
    if (!g)
        return old;
    if (old && g->bits.words == old->bits.words) {
        g->memory = old->memory;
        old->memory = (struct block){0};
    }
    if (old) {
        old->retired = x->c->retired_groups;
        x->c->retired_groups = old;
    }
    if (g->used)
        return g;
    g->retired = x->c->retired_groups; /* empty: readers may be in its words */
    x->c->retired_groups = g;
    return NULL;
}

static tamis_error change_publish(struct change *x)
{
    struct columns *c = x->c;
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < x->n; i++)
        n += (x->groups[i] ? x->groups[i] : x->from->group[i])->used != 0;
    struct columns_state *s = state_new(&c->allocator, n);
    if (!s) {
        change_abandon(x);
        return TAMIS_ENOMEM;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        struct columns_group *g = change_replace(x, i);
        if (g)
            s->group[kept++] = g;
    }
    atomic_store(&c->state, s);
    x->from->retired = c->retired_states;
    c->retired_states = x->from;
    mem_free(&c->allocator, x->groups, x->room, sizeof *x->groups);
    reclaim(c);
    return TAMIS_OK;
}

tamis_error columns_put(struct columns *c, uint32_t owner, const struct bits *vectors, size_t n)
{
    struct change x;
    if (owner >= OWNERS_MAX)
        return TAMIS_ELIMIT;
    tamis_error e = change_begin(&x, c, n);
    if (e != TAMIS_OK)
        return e;
    e = change_drop(&x, owner);
    for (size_t i = 0; i < n && e == TAMIS_OK; i++)
        e = change_add(&x, owner, &vectors[i]);
    if (e == TAMIS_OK)
        return change_publish(&x);
    change_abandon(&x);
    return e;
}

tamis_error columns_drop(struct columns *c, uint32_t owner)
{
    return columns_put(c, owner, NULL, 0);
}

tamis_error columns_adopt(struct columns *c, struct columns_group *g)
{
    struct change x;
    tamis_error e = change_begin(&x, c, 1);
    if (e != TAMIS_OK)
        return e;
    x.groups[x.n] = g;
    x.n++;
    for (uint64_t i = 0; i < g->width; i++)
        g->used += g->owner[i] < COLUMN_GONE;
    struct columns_state *s = state_new(&c->allocator, x.n);
    if (!s) {
        x.n--;
        change_abandon(&x);
        return TAMIS_ENOMEM;
    }
    memcpy(s->group, x.from->group, x.from->n * sizeof *s->group);
    s->group[x.from->n] = g;
    atomic_store(&c->state, s);
    x.from->retired = c->retired_states;
    c->retired_states = x.from;
    mem_free(&c->allocator, x.groups, x.room, sizeof *x.groups);
    reclaim(c);
    return TAMIS_OK;
}

uint64_t columns_bytes(const struct columns *c)
{
    const struct columns_state *s = columns_now(c);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n; i++)
        bytes += group_size(s->group[i]->width) + s->group[i]->memory.size;
    return bytes;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void mark_owners(const struct columns_group *g, uint64_t first, const uint64_t *left,
                        uint64_t words, uint64_t *owners, size_t n)
{
    for (uint64_t i = 0; i < words; i++)
        for (uint64_t bits = left[i]; bits; bits &= bits - 1) {
            uint64_t column = 64 * (first + i) + (unsigned)__builtin_ctzll(bits);
            uint32_t owner = __atomic_load_n(&g->owner[column], __ATOMIC_RELAXED);
            if (owner >> 6 < n)
                owners[owner >> 6] |= UINT64_C(1) << (owner & 63);
        }
}

static void group_locate(const struct columns_group *g, const uint64_t *rows, rows_fn and_rows,
                         uint64_t *owners, size_t n)
{
    uint64_t left[CHUNK_WORDS], stride = g->width / 64;
    if (stride == 0) {
        left[0] = UINT64_MAX;
        for (unsigned j = 0; j < g->bits.k && left[0]; j++)
            left[0] &= narrow_row(g->bits.words, rows[j], g->width);
        mark_owners(g, 0, left, 1, owners, n);
    }
    for (uint64_t first = 0; first < stride; first += CHUNK_WORDS) {
        uint64_t some = min_u64(CHUNK_WORDS, stride - first);
        memset(left, 0xff, (size_t)some * sizeof *left);
        if (and_rows(g->bits.words + first, stride, some, rows, g->bits.k, left))
            mark_owners(g, first, left, some, owners, n);
    }
}

void columns_locate(struct columns *c, tamis_digest digest, uint64_t *owners, size_t n)
{
    uint64_t rows[K_MAX];
    rows_fn and_rows = kernel_rows();
    memset(owners, 0, n * sizeof *owners);
    unsigned stripe = guard_enter(&c->guard);
    const struct columns_state *s = atomic_load(&c->state);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct columns_group *g = s->group[i];
        uint64_t lines = min_u64(LINES_AHEAD, (g->width + BLOCK_BITS - 1) / BLOCK_BITS);
        g->bits.kernel->positions(&g->bits, digest, rows);
        for (unsigned j = 0; j < g->bits.k; j++)
            for (uint64_t line = 0; line < lines; line++)
                __builtin_prefetch(g->bits.words + (rows[j] * g->width >> 6) + 8 * line);
        group_locate(g, rows, and_rows, owners, n);
    }
    guard_leave(&c->guard, stripe);
}
