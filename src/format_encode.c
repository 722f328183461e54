/* Writing filters. The same state gives the same bytes: what an allocator, a hash table or the order
   of columns in a matrix came to be does not show. */
#include "format.h"

#include <stdlib.h>

#define PIECE 32768 /* bytes made at a time where memory is not written as it is */

/* ---- pending removals ------------------------------------------------------------------------ */

static int pending_order(const void *left, const void *right)
{
    const struct pending *x = *(const struct pending *const *)left;
    const struct pending *y = *(const struct pending *const *)right;
    if (x->digest.a != y->digest.a)
        return x->digest.a < y->digest.a ? -1 : 1;
    return x->digest.b < y->digest.b ? -1 : x->digest.b > y->digest.b;
}

bool pending_has(const struct pending *p, uint32_t id)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->candidates[i] == id)
            return true;
    return false;
}

/* Candidates that are still vectors. */
static uint32_t pending_candidates(const tamis_filter *f, const struct pending *p)
{
    const struct stack *stack = filter_stack(f);
    uint32_t n = 0;
    for (uint32_t i = 0; i < stack_count(stack); i++)
        n += pending_has(p, stack->v[i]->id);
    return n;
}

tamis_error filter_pending(const tamis_filter *f, const struct pending ***out, uint64_t *n)
{
    *n = 0;
    *out = NULL;
    if (f->removals.used == 0)
        return TAMIS_OK;
    const struct pending **list = mem_new(&f->allocator, f->removals.used, sizeof *list);
    if (!list)
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < f->removals.room; i++) {
        const struct pending *p = removals_entry(&f->removals, i);
        if (p && atomic_load(&p->copies) && pending_candidates(f, p))
            list[(*n)++] = p;
    }
    qsort(list, *n, sizeof *list, pending_order);
    *out = list;
    return TAMIS_OK;
}

void filter_pending_free(const tamis_filter *f, const struct pending **list)
{
    mem_free(&f->allocator, list, f->removals.used, sizeof *list);
}

/* ---- the body -------------------------------------------------------------------------------- */

static struct record record_of(const struct vector *v, bool counted)
{
    return (struct record){
        .id = v->id,
        .slot = v->slot,
        .k = v->bits.k,
        .units = v->bits.units,
        .capacity = v->capacity,
        .load = v->load,
        .count = v->count,
        .ones_max = counted ? v->ones_max : UINT64_MAX,
        .fpp = v->fpp,
        .born = v->born,
        .last = v->last,
        .escapes = counted ? v->counters.used : 0,
    };
}

static struct filter_head head_of(const tamis_filter *f, bool counted)
{
    const struct stack *stack = filter_stack(f);
    struct filter_head head = {
        .set = f->set,
        .next_id = f->next_id,
        .grown = f->grown,
        .holt = f->holt,
        .base_rate = f->base_rate,
        .n = stack_count(stack),
        .counted = counted,
    };
    if (f->set.growth == TAMIS_DYNAMIC)
        head.width = matrix_width_for(head.n);
    for (uint32_t i = 0; i < head.n; i++)
        head.stored += stack->v[i]->count;
    return head;
}

/* Ones of the columns, for plain dynamic filters: one pass over the matrix. */
static uint64_t *column_ones(const tamis_filter *f)
{
    const struct matrix *matrix = atomic_load(&f->matrix);
    uint64_t *ones = mem_new0(&f->allocator, matrix->width, sizeof *ones);
    if (ones)
        matrix_count_ones(matrix->bits.words, matrix->bits.units, matrix->width, ones);
    return ones;
}

static tamis_error body_fill(const tamis_filter *f, struct filter_head *head, bool exact,
                             uint8_t *body, uint64_t len)
{
    const struct stack *stack = filter_stack(f);
    const struct matrix *matrix = atomic_load(&f->matrix);
    uint64_t *ones = NULL;
    if (matrix && exact && !(ones = column_ones(f)))
        return TAMIS_ENOMEM;
    struct cursor c = cursor_write(body, len);
    head_fields(&c, head);
    for (uint32_t i = 0; i < head->n; i++) {
        const struct vector *v = stack->v[i];
        struct record r = record_of(v, head->counted);
        if (exact)
            r.ones = ones ? ones[v->column] : vector_count_ones(v);
        else
            r.ones = r.escapes;
        record_fields(&c, &r);
    }
    if (matrix)
        mem_free(&f->allocator, ones, matrix->width, sizeof *ones);
    return c.wrong ? TAMIS_EARG : TAMIS_OK;
}

tamis_error filter_body(const tamis_filter *f, bool bits_only, bool exact, uint8_t **body,
                        uint64_t *len)
{
    const struct pending **list;
    struct filter_head head = head_of(f, f->set.deletable && !bits_only);
    uint64_t n;
    *body = NULL;
    tamis_error e = filter_pending(f, &list, &n);
    if (e != TAMIS_OK)
        return e;
    for (uint64_t i = 0; i < n && head.counted; i++) {
        head.pending++;
        head.copies += atomic_load(&list[i]->copies);
        head.candidates += pending_candidates(f, list[i]);
    }
    filter_pending_free(f, list);
    *len = HEAD_LEN + RECORD_LEN * (uint64_t)head.n;
    *body = mem_new0(&f->allocator, 1, *len);
    if (!*body)
        return TAMIS_ENOMEM;
    e = body_fill(f, &head, exact, *body, *len);
    if (e != TAMIS_OK) {
        mem_free(&f->allocator, *body, 1, *len);
        *body = NULL;
    }
    return e;
}

/* ---- the payload ----------------------------------------------------------------------------- */

struct writer {
    const tamis_filter *f;
    const struct filter_head *head;
    const struct pending **pending;
    uint64_t n_pending;
    uint32_t *columns, *moved; /* where the columns are, and which are not at home */
    uint32_t n_moved;
    uint64_t *buffer; /* for rows of the matrix */
    size_t buffer_len;
    tamis_write write;
    void *context;
    bool failed;
};

static void put(struct writer *w, const void *data, uint64_t len)
{
    if (!w->failed && len)
        w->failed = w->write(w->context, data, len) != 0;
}

static void put_matrix(struct writer *w)
{
    const struct matrix *matrix = atomic_load(&w->f->matrix);
    uint64_t width = w->head->width, rows = matrix->bits.units;
    if (w->n_moved == 0 && matrix->width == width) {
        put(w, matrix->bits.words, rows * width / 8);
        return;
    }
    uint64_t step = 8 * w->buffer_len / width;
    struct arrangement order = {w->columns, w->moved, w->n_moved};
    if (width < 64)
        step = step / 64 * 64; /* rows that fill whole words */
    for (uint64_t row = 0; row < rows; row += step) {
        uint64_t n = min_u64(step, rows - row);
        memset(w->buffer, 0, w->buffer_len);
        matrix_rows(matrix, &order, row, n, width, w->buffer);
        put(w, w->buffer, n * width / 8);
    }
}

/* In order of position, found by looking for counters of 15: no memory, no sorting. */
static void put_escapes(struct writer *w, const struct counters *counters)
{
    uint64_t buffer[PIECE / 8];
    size_t n = 0;
    const uint8_t *nibbles = counters->nibbles.data;
    for (uint64_t i = 0; i < counters->n; i += 2) {
        uint8_t both = nibbles[i / 2];
        if ((both & 15) != COUNTER_ESCAPE && both >> 4 != COUNTER_ESCAPE)
            continue;
        for (uint64_t at = i; at < i + 2; at++) {
            if ((both >> (4 * (at - i)) & 15) != COUNTER_ESCAPE)
                continue;
            buffer[n++] = at;
            buffer[n++] = counters_get(counters, at);
        }
        if (n + 4 > PIECE / 8) {
            put(w, buffer, n * sizeof *buffer);
            n = 0;
        }
    }
    put(w, buffer, n * sizeof *buffer);
}

static void put_pending(struct writer *w)
{
    for (uint64_t i = 0; i < w->n_pending; i++) {
        const struct pending *p = w->pending[i];
        uint8_t entry[32];
        put_u64(entry, p->digest.a);
        put_u64(entry + 8, p->digest.b);
        put_u64(entry + 16, atomic_load(&p->copies));
        put_u32(entry + 24, p->hides);
        put_u32(entry + 28, pending_candidates(w->f, p));
        put(w, entry, sizeof entry);
    }
}

static void put_candidates(struct writer *w)
{
    const struct stack *stack = filter_stack(w->f);
    for (uint64_t i = 0; i < w->n_pending; i++)
        for (uint32_t j = 0; j < w->head->n; j++)
            if (pending_has(w->pending[i], stack->v[j]->id)) {
                uint8_t id[4];
                put_u32(id, stack->v[j]->id);
                put(w, id, sizeof id);
            }
}

static tamis_error put_payload(void *what, tamis_write write, void *context)
{
    static const uint8_t zeros[SECTION_ALIGN];
    struct writer *w = what;
    struct section_walk walk = {.head = w->head};
    struct section s;
    w->write = write;
    w->context = context;
    while (filter_section_next(&walk, &s)) {
        const struct vector *v = filter_stack(w->f)->v[s.owner];
        if (s.type == SECTION_BITS)
            put(w, v->bits.words, s.len);
        else if (s.type == SECTION_MATRIX)
            put_matrix(w);
        else if (s.type == SECTION_COUNTERS)
            put(w, v->counters.nibbles.data, s.len);
        else if (s.type == SECTION_ESCAPES)
            put_escapes(w, &v->counters);
        else if (s.type == SECTION_PENDING)
            put_pending(w);
        else
            put_candidates(w);
        put(w, zeros, round_up(s.len, SECTION_ALIGN) - s.len);
    }
    return w->failed ? TAMIS_EIO : TAMIS_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static tamis_error find_columns(struct writer *w)
{
    const struct stack *stack = filter_stack(w->f);
    if (!atomic_load(&w->f->matrix))
        return TAMIS_OK;
    w->columns = mem_new(&w->f->allocator, w->head->n, sizeof *w->columns);
    w->moved = mem_new(&w->f->allocator, w->head->n, sizeof *w->moved);
    w->buffer_len = (size_t)max_u64(PIECE, w->head->width / 8);
    w->buffer = mem_new(&w->f->allocator, 1, w->buffer_len);
    if (!w->columns || !w->moved || !w->buffer)
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < w->head->n; i++) {
        w->columns[i] = (uint32_t)stack->v[i]->column;
        if (w->columns[i] != i)
            w->moved[w->n_moved++] = i;
    }
    return TAMIS_OK;
}

static struct outline outline_of(const tamis_filter *f, const struct filter_head *head,
                                 unsigned flags)
{
    struct section_walk walk = {.head = head};
    struct section s;
    struct outline o = {
        .kind = KIND_FILTER,
        .bits_only = (flags & TAMIS_SAVE_BITS_ONLY) || f->bits_only,
        .no_key = (flags & TAMIS_SAVE_NO_KEY) || !f->family.has_key,
        .family = &f->family,
        .body = head->records - HEAD_LEN,
        .body_len = HEAD_LEN + RECORD_LEN * (uint64_t)head->n,
    };
    while (filter_section_next(&walk, &s))
        o.sections++;
    o.payload_len = walk.offset;
    return o;
}

static tamis_error encode_body(const tamis_filter *f, unsigned flags, const uint8_t *body,
                               uint64_t len, tamis_write write, void *context)
{
    bool bits_only = (flags & TAMIS_SAVE_BITS_ONLY) || f->bits_only;
    struct filter_head head;
    tamis_error e = head_parse(&head, body, len, bits_only, f->family.hash, NULL);
    if (e != TAMIS_OK)
        return TAMIS_EARG; /* never write what would not be read */
    struct writer w = {.f = f, .head = &head};
    struct section_walk walk = {.head = &head};
    struct outline o = outline_of(f, &head, flags);
    e = find_columns(&w);
    if (e == TAMIS_OK && head.pending)
        e = filter_pending(f, &w.pending, &w.n_pending);
    if (e == TAMIS_OK)
        e = outline_write(&o, filter_section_next, &walk, put_payload, &w, &f->allocator, write,
                          context);
    filter_pending_free(f, w.pending);
    mem_free(&f->allocator, w.columns, head.n, sizeof *w.columns);
    mem_free(&f->allocator, w.moved, head.n, sizeof *w.moved);
    mem_free(&f->allocator, w.buffer, 1, w.buffer_len);
    return e;
}

/* A mapped file whose counters are not in memory: its own bytes again. */
static tamis_error encode_mapping(const tamis_filter *f, unsigned flags, tamis_write write,
                                  void *context)
{
    struct container c;
    tamis_error e = container_open(&c, f->mapping.data, f->mapping.len, KIND_FILTER, NULL);
    return e == TAMIS_OK
               ? container_write(&c, flags & TAMIS_SAVE_NO_KEY, &f->allocator, write, context)
               : e;
}

static bool only_mapped(const tamis_filter *f, unsigned flags)
{
    return !filter_counted(f) && !f->bits_only && !(flags & TAMIS_SAVE_BITS_ONLY);
}

tamis_error tamis_filter_encode(const tamis_filter *f, unsigned flags, tamis_write write,
                                void *context)
{
    uint8_t *body;
    uint64_t len;
    if (flags & ~(unsigned)(TAMIS_SAVE_NO_KEY | TAMIS_SAVE_BITS_ONLY))
        return TAMIS_EARG;
    if (!family_standard(&f->family))
        return TAMIS_EKIND; /* its probes are a function of the caller's */
    if (only_mapped(f, flags))
        return encode_mapping(f, flags, write, context);
    tamis_error e =
        filter_body(f, (flags & TAMIS_SAVE_BITS_ONLY) || f->bits_only, true, &body, &len);
    if (e != TAMIS_OK)
        return e;
    e = encode_body(f, flags, body, len, write, context);
    mem_free(&f->allocator, body, 1, len);
    return e;
}

uint64_t tamis_filter_encoded_size(const tamis_filter *f, unsigned flags)
{
    bool bits_only = (flags & TAMIS_SAVE_BITS_ONLY) || f->bits_only;
    struct filter_head head;
    uint8_t *body;
    uint64_t len, size = 0;
    if (only_mapped(f, flags))
        return f->mapping.len;
    if (filter_body(f, bits_only, false, &body, &len) != TAMIS_OK)
        return 0;
    if (head_parse(&head, body, len, bits_only, f->family.hash, NULL) == TAMIS_OK) {
        struct outline o = outline_of(f, &head, flags);
        size = outline_header_len(&o) + o.payload_len;
    }
    mem_free(&f->allocator, body, 1, len);
    return size;
}

static int digest_write(void *context, const void *data, size_t len)
{
    hash_add_128(context, data, len);
    return 0;
}

tamis_error filter_fingerprint(const tamis_filter *f, bool bits_only, uint8_t out[16])
{
    struct hash_stream hash;
    hash_begin_128(&hash);
    tamis_error e = tamis_filter_encode(
        f, TAMIS_SAVE_NO_KEY | (bits_only ? TAMIS_SAVE_BITS_ONLY : 0u), digest_write, &hash);
    if (e == TAMIS_OK)
        hash_end_128(&hash, out);
    return e;
}
