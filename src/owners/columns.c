/* The matrices of columns.h: shapes and their memory, changes, queries. */
#include "columns.h"

#include <stdlib.h>

#define LINES_AHEAD 4 /* lines of each row, prefetched before the first is read */

/* ---- matrices -------------------------------------------------------------------------------- */

static size_t columns_matrix_size(uint64_t width)
{
    return sizeof(struct columns_matrix) + 2 * (size_t)width * sizeof(uint32_t);
}

static void columns_matrix_dispose(struct retired *retired, const tamis_allocator *a)
{
    struct columns_matrix *m = PART_OF(retired, struct columns_matrix, retired);
    uint64_t width = m->bits->width;
    matrix_free(m->bits, a);
    mem_free(a, m, 1, columns_matrix_size(width));
}

/* Columns without owners. Takes over the matrix, which may be NULL: no memory. */
static struct columns_matrix *columns_matrix_new(const tamis_allocator *a, struct matrix *bits)
{
    uint64_t width = bits ? bits->width : 0;
    struct columns_matrix *m = bits ? mem_new0(a, 1, columns_matrix_size(width)) : NULL;
    if (!m) {
        matrix_free(bits, a);
        return NULL;
    }
    m->bits = bits;
    m->free = (uint32_t *)(void *)&m->owner[width];
    for (uint64_t i = width; i-- > 0;) {
        atomic_init(&m->owner[i], COLUMN_FREE);
        m->free[m->n_free++] = (uint32_t)i;
    }
    return m;
}

static uint64_t wider(uint64_t width)
{
    return width < 512 ? 2 * width : round_up(width + width / 4, 512);
}

/* Makes room for all columns that are wanted: the wider matrix has the same columns and more. */
static bool group_widen(struct columns *c, struct columns_group *g)
{
    struct columns_matrix *old = atomic_load(&g->matrix);
    uint64_t before = old->bits->width, width = before;
    while (width - before + old->n_free < g->wanted)
        width = wider(width);
    if (width == before)
        return true;
    struct columns_matrix *m =
        columns_matrix_new(&c->allocator, matrix_resize(old->bits, &c->allocator, width));
    if (!m)
        return false;
    for (uint64_t i = 0; i < before; i++)
        atomic_init(&m->owner[i], atomic_load(&old->owner[i]));
    m->n_free -= (uint32_t)before; /* the last free entries are the first columns */
    memcpy(m->free + m->n_free, old->free, old->n_free * sizeof *old->free);
    m->n_free += old->n_free;
    atomic_store(&g->matrix, m);
    retire(&c->retired, &old->retired, columns_matrix_dispose);
    return true;
}

/* ---- families and shapes --------------------------------------------------------------------- */

/* Lists with `next` and `back`, the pointer to the element. Readers inside an element that is removed continue
   through its `next`. */
#define LIST_ADD(list, element)                         \
    ({                                                  \
        __typeof__(element) first_ = atomic_load(list); \
        atomic_store(&(element)->next, first_);         \
        (element)->back = (list);                       \
        if (first_)                                     \
            first_->back = &(element)->next;            \
        atomic_store(list, element);                    \
    })
#define LIST_REMOVE(element)                                       \
    ({                                                             \
        __typeof__(element) next_ = atomic_load(&(element)->next); \
        atomic_store((element)->back, next_);                      \
        if (next_)                                                 \
            next_->back = (element)->back;                         \
    })

static void family_dispose(struct retired *retired, const tamis_allocator *a)
{
    struct columns_family *f = PART_OF(retired, struct columns_family, retired);
    family_free(&f->family, a);
    mem_free(a, f, 1, sizeof *f);
}

static void group_dispose(struct retired *retired, const tamis_allocator *a)
{
    mem_free(a, PART_OF(retired, struct columns_group, retired), 1, sizeof(struct columns_group));
}

static struct columns_family *family_get(struct columns *c, const struct family *family)
{
    uint64_t hash = family->secrets->entry.hash + family->hash;
    for (struct lookup_entry *at = NULL; (at = lookup_next(&c->by_family, hash, at));) {
        struct columns_family *f = PART_OF(at, struct columns_family, entry);
        if (family_equal(&f->family, family))
            return f;
    }
    struct columns_family *f = mem_new0(&c->allocator, 1, sizeof *f);
    if (!f || !lookup_reserve(&c->by_family, &c->allocator) ||
        family_copy(&f->family, family, &c->allocator) != TAMIS_OK) {
        mem_free(&c->allocator, f, 1, sizeof *f);
        return NULL;
    }
    lookup_add(&c->by_family, &f->entry, hash);
    LIST_ADD(&c->families, f);
    return f;
}

/* Removes the family when it is empty. */
static void family_settle(struct columns *c, struct columns_family *f)
{
    if (atomic_load(&f->groups))
        return;
    LIST_REMOVE(f);
    lookup_remove(&c->by_family, &f->entry);
    retire(&c->retired, &f->retired, family_dispose);
}

static void group_settle(struct columns *c, struct columns_group *g)
{
    if (g->used || g->wanted)
        return;
    LIST_REMOVE(g);
    lookup_remove(&c->by_shape, &g->entry);
    retire(&c->retired, &atomic_load(&g->matrix)->retired, columns_matrix_dispose);
    retire(&c->retired, &g->retired, group_dispose);
    family_settle(c, g->family);
}

static struct columns_group *group_new(struct columns *c, struct columns_family *f,
                                       const struct bits *shape, uint64_t hash)
{
    const tamis_allocator *a = &c->allocator;
    struct columns_group *g = mem_new0(a, 1, sizeof *g);
    struct bits rows = {.units = shape->units * shape->kernel->unit_bits, .k = shape->k};
    struct columns_matrix *m = g && lookup_reserve(&c->by_shape, a)
                                   ? columns_matrix_new(a, matrix_new(a, &rows, 1))
                                   : NULL;
    if (!m) {
        mem_free(a, g, 1, sizeof *g);
        return NULL;
    }
    g->family = f;
    g->rows = rows.units;
    g->bits = *shape;
    g->bits.words = NULL;
    g->bits.family = &f->family;
    atomic_init(&g->matrix, m);
    lookup_add(&c->by_shape, &g->entry, hash);
    LIST_ADD(&f->groups, g);
    return g;
}

/* The group for vectors of this shape; NULL: no memory. */
static struct columns_group *group_get(struct columns *c, const struct bits *shape)
{
    struct columns_family *f = family_get(c, shape->family);
    if (!f)
        return NULL;
    uint64_t hash = mul_fold(shape->units ^ process_secret(), shape->k ^ f->entry.hash);
    for (struct lookup_entry *at = NULL; (at = lookup_next(&c->by_shape, hash, at));) {
        struct columns_group *g = PART_OF(at, struct columns_group, entry);
        if (g->family == f && g->bits.units == shape->units && g->bits.k == shape->k &&
            g->bits.kernel == shape->kernel)
            return g;
    }
    struct columns_group *g = group_new(c, f, shape, hash);
    if (!g)
        family_settle(c, f);
    return g;
}

void columns_init(struct columns *c, const tamis_allocator *a)
{
    memset(c, 0, sizeof *c);
    c->allocator = *a;
    c->and_rows = kernel_rows();
    atomic_init(&c->changing, COLUMNS_STILL);
}

void columns_free(struct columns *c)
{
    for (struct columns_family *f = atomic_load(&c->families); f; f = atomic_load(&c->families)) {
        struct columns_group *g = atomic_load(&f->groups);
        g->used = 0;
        group_settle(c, g);
    }
    retired_free(&c->retired, true, &c->allocator);
    lookup_free(&c->by_family, &c->allocator);
    lookup_free(&c->by_shape, &c->allocator);
}

/* ---- changing -------------------------------------------------------------------------------- */

void columns_forget(struct columns *c, struct columns_held *held)
{
    mem_free(&c->allocator, held->place, held->n, sizeof *held->place);
    *held = (struct columns_held){0};
}

/* Earlier writes become visible before it, later writes after it. */
static void version_move(struct columns *c)
{
    atomic_fetch_add(&c->version, 1);
/* it does not support fences and needs none: everything it sees is atomic */
#ifndef __SANITIZE_THREAD__
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static void columns_give(const struct columns_held *held, uint32_t owner)
{
    for (size_t i = 0; i < held->n; i++) {
        struct columns_matrix *m = atomic_load(&held->place[i].group->matrix);
        atomic_store(&m->owner[held->place[i].column], owner);
    }
}

/* For reuse: readers no longer treat it as the owner's column. */
static void column_release(struct columns *c, const struct column_place *place)
{
    struct columns_matrix *m = atomic_load(&place->group->matrix);
    m->free[m->n_free++] = place->column;
    place->group->used--;
    group_settle(c, place->group);
}

static void columns_release(struct columns *c, struct columns_held *held)
{
    for (size_t i = 0; i < held->n; i++)
        column_release(c, &held->place[i]);
    columns_forget(c, held);
}

/* A vector to be written into its column. */
struct column_write {
    struct column_place to;
    const struct vector *from;
};

static int compare_writes(const void *x, const void *y)
{
    const struct column_write *a = x, *b = y;
    uintptr_t p = (uintptr_t)a->to.group, q = (uintptr_t)b->to.group;
    return ORDER(p, q, ORDER(a->to.column, b->to.column, 0));
}

/* Columns within one word of every row, 64 rows at a time. A single one needs no transposition. */
static void write_word(const struct column_write *w, size_t n)
{
    const struct columns_group *g = w->to.group;
    const struct matrix *m = atomic_load(&g->matrix)->bits;
    uint64_t *words = m->bits.words, mask = 0, at = m->width < 64 ? 0 : w->to.column & ~63u;
    for (size_t i = 0; i < n; i++)
        mask |= UINT64_C(1) << (w[i].to.column & 63);
    for (uint64_t first = 0; first < g->rows; first += 64) {
        uint64_t rows = min_u64(64, g->rows - first), lanes[64] = {0};
        for (size_t i = 0; i < n; i++)
            lanes[w[i].to.column & 63] = vector_word(w[i].from, first / 64);
        if (n > 1) {
            bits_transpose(lanes);
        } else {
            uint64_t word = lanes[w->to.column & 63];
            for (unsigned i = 0; i < 64; i++)
                lanes[i] = (word >> i & 1) << (w->to.column & 63);
        }
        for (uint64_t i = 0; i < rows; i++, at += m->width) {
            uint64_t *to = &words[at >> 6], old = word_load(to);
            uint64_t now = (old & ~(mask << (at & 63))) | lanes[i] << (at & 63);
            if (now != old)
                word_store(to, now);
        }
    }
}

/* Reserves a column for every vector, or none. Groups come first, so that each is widened only
   once. */
static bool reserve(struct columns *c, struct column_write *writes, size_t n)
{
    size_t found = 0, taken = 0;
    for (; found < n; found++) {
        struct columns_group *g = group_get(c, &writes[found].from->bits);
        if (!g)
            break;
        writes[found].to.group = g;
        g->wanted++;
    }
    for (; found == n && taken < n && group_widen(c, writes[taken].to.group); taken++) {
        struct columns_group *g = writes[taken].to.group;
        struct columns_matrix *m = atomic_load(&g->matrix);
        writes[taken].to.column = m->free[--m->n_free];
        g->wanted--;
        g->used++;
    }
    for (size_t i = 0; taken < n && i < found; i++) {
        if (i < taken) {
            column_release(c, &writes[i].to);
        } else {
            writes[i].to.group->wanted--;
            group_settle(c, writes[i].to.group);
        }
    }
    return taken == n;
}

/* The owner gets its new columns before it loses the old ones. Readers see new columns only
   complete, and no longer see the old ones by the time they are written again. */
static void hand_over(struct columns *c, const struct columns_put *put, struct columns_held *made)
{
    version_move(c);
    columns_give(made, put->owner);
    version_move(c);
    columns_give(put->held, COLUMN_FREE);
    version_move(c);
    columns_release(c, put->held);
    *put->held = *made;
}

/* Allocates what each owner will hold, and lists all vectors. */
static bool list_vectors(struct columns *c, const struct columns_put *puts, size_t n,
                         struct columns_held *made, struct column_write *writes)
{
    for (size_t i = 0; i < n; i++) {
        if (puts[i].n && !(made[i].place = mem_new(&c->allocator, puts[i].n, sizeof *made->place)))
            return false;
        made[i].n = puts[i].n;
        for (size_t j = 0; j < puts[i].n; j++)
            *writes++ = (struct column_write){.from = puts[i].vectors[j]};
    }
    return true;
}

static void write_all(struct column_write *writes, size_t n)
{
    qsort(writes, n, sizeof *writes, compare_writes);
    for (size_t i = 0, some; i < n; i += some) {
        const struct column_place *first = &writes[i].to; /* all of one word at once */
        for (some = 1; i + some < n && writes[i + some].to.group == first->group &&
                       writes[i + some].to.column / 64 == first->column / 64;)
            some++;
        write_word(&writes[i], some);
    }
}

tamis_error columns_put(struct columns *c, const struct columns_put *puts, size_t n)
{
    const tamis_allocator *a = &c->allocator;
    size_t total = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        total += puts[i].n;
    retired_free(&c->retired, false, a);
    struct columns_held *made = mem_new0(a, n, sizeof *made);
    struct column_write *writes = mem_new(a, total, sizeof *writes);
    bool good =
        made && writes && list_vectors(c, puts, n, made, writes) && reserve(c, writes, total);
    for (size_t i = 0; good && i < n; i++)
        for (size_t j = 0; j < made[i].n; j++)
            made[i].place[j] = writes[at++].to;
    if (good && total)
        write_all(writes, total);
    for (size_t i = 0; made && i < n; i++)
        if (good)
            hand_over(c, &puts[i], &made[i]);
        else
            columns_forget(c, &made[i]);
    mem_free(a, made, n, sizeof *made);
    mem_free(a, writes, total, sizeof *writes);
    retired_free(&c->retired, false, a);
    return good ? TAMIS_OK : TAMIS_ENOMEM;
}

void columns_drop(struct columns *c, struct columns_held *held)
{
    columns_give(held, COLUMN_FREE);
    version_move(c);
    columns_release(c, held);
    retired_free(&c->retired, false, &c->allocator);
}

/* Flips the bits of one column that differ. */
static void flip_column(const struct column_place *at, const struct vector *before,
                        const struct vector *after)
{
    const struct matrix *m = atomic_load(&at->group->matrix)->bits;
    uint64_t *words = m->bits.words;
    for (uint64_t i = 0; i < (at->group->rows + 63) / 64; i++) {
        if (i % (PAGE / 8) == 0 && !kept_sums_differ(before->sums, after->sums, i / (PAGE / 8))) {
            i += PAGE / 8 - 1;
            continue;
        }
        uint64_t turned = vector_word(before, i) ^ vector_word(after, i);
        for (; turned; turned &= turned - 1) {
            uint64_t row = 64 * i + (unsigned)__builtin_ctzll(turned);
            uint64_t bit = row * m->width + at->column;
            word_store(&words[bit >> 6], word_load(&words[bit >> 6]) ^ UINT64_C(1) << (bit & 63));
        }
    }
}

bool columns_change(struct columns *c, const struct columns_put *put, struct vector *const *before)
{
    if (put->held->n != put->n)
        return false;
    for (size_t i = 0; i < put->n; i++)
        if (!shape_equal(before[i], put->vectors[i]) ||
            !family_equal(before[i]->bits.family, put->vectors[i]->bits.family))
            return false;
    atomic_store(&c->changing, put->owner);
    version_move(c);
    for (size_t i = 0; i < put->n; i++)
        flip_column(&put->held->place[i], before[i], put->vectors[i]);
    version_move(c);
    atomic_store(&c->changing, COLUMNS_STILL);
    return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void mark_owners(const struct columns_matrix *m, uint64_t first, const uint64_t *left,
                        uint64_t words, uint64_t *owners, size_t n)
{
    for (uint64_t i = 0; i < words; i++)
        for (uint64_t bits = left[i]; bits; bits &= bits - 1) {
            uint64_t column = 64 * (first + i) + (unsigned)__builtin_ctzll(bits);
            uint32_t owner = atomic_load_explicit(&m->owner[column], memory_order_relaxed);
            if (owner >> 6 < n)
                owners[owner >> 6] |= UINT64_C(1) << (owner & 63);
        }
}

static void matrix_locate(const struct columns_matrix *m, rows_fn and_rows, const uint64_t *rows,
                          uint64_t *owners, size_t n)
{
    uint64_t left[COLUMNS_CHUNK], words = matrix_words(m->bits);
    for (uint64_t first = 0; first < words; first += COLUMNS_CHUNK) {
        uint64_t some = min_u64(COLUMNS_CHUNK, words - first);
        if (columns_match(m->bits, rows, first, some, left, and_rows))
            mark_owners(m, first, left, some, owners, n);
    }
}

/* The rows of several keys are prefetched before the first is tested. */
static void group_locate(const struct columns_group *g, rows_fn and_rows,
                         const tamis_digest *digests, size_t n, uint64_t *owners, size_t words)
{
    uint64_t rows[COLUMNS_RUN][K_MAX];
    const struct columns_matrix *m = atomic_load(&g->matrix);
    uint64_t width = m->bits->width;
    const uint64_t *words_at = m->bits->bits.words;
    uint64_t lines = min_u64(LINES_AHEAD, (width + BLOCK_BITS - 1) / BLOCK_BITS);
    for (size_t i = 0; i < n; i++) {
        g->bits.kernel->positions(&g->bits, digests[i], rows[i]);
        for (uint64_t line = 0; n > 1 && line < lines; line++)
            for (unsigned j = 0; j < g->bits.k; j++)
                __builtin_prefetch(words_at + (rows[i][j] * width >> 6) + 8 * line);
    }
    for (size_t i = 0; i < n; i++)
        matrix_locate(m, and_rows, rows[i], owners + i * words, words);
}

uint32_t columns_locate(struct columns *c, const tamis_key *keys, size_t n, uint64_t *owners,
                        size_t words)
{
    tamis_digest digests[COLUMNS_RUN];
    uint64_t version;
    uint32_t changing;
    do {
        version = atomic_load(&c->version);
        changing = atomic_load(&c->changing);
        memset(owners, 0, n * words * sizeof *owners);
        for (const struct columns_family *f = atomic_load(&c->families); f;
             f = atomic_load(&f->next)) {
            family_digest_many(&f->family, keys, n, digests);
            for (const struct columns_group *g = atomic_load(&f->groups); g;
                 g = atomic_load(&g->next))
                group_locate(g, c->and_rows, digests, n, owners, words);
        }
        /* reads must complete before the version is read */
        atomic_thread_fence(memory_order_acquire);
    } while (atomic_load(&c->version) != version);
    return changing;
}
