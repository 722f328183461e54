/* Writing filters. The same state gives the same bytes: what an allocator, a hash table or the order
   of columns in a matrix came to be does not show. */
#include "format.h"

#define PIECE 32768 /* bytes of the matrix made at a time, where it is not written as it lies */

/* ---- pending removals ------------------------------------------------------------------------ */

static bool alive(const void *owner, uint32_t id)
{
    return filter_vector_by_id(owner, id) != NULL;
}

struct pending_list filter_pending_list(const tamis_filter *f)
{
    return (struct pending_list){.removals = &f->removals, .alive = alive, .owner = f};
}

tamis_error filter_pending(const tamis_filter *f, const struct pending ***out, uint64_t *n)
{
    struct pending_list list = filter_pending_list(f);
    tamis_error e = pending_list_make(&list, &f->allocator);
    *out = list.list;
    *n = list.n;
    return e;
}

void filter_pending_free(const tamis_filter *f, const struct pending **list)
{
    mem_free(&f->allocator, list, f->removals.used, sizeof *list);
}

/* ---- the body -------------------------------------------------------------------------------- */

static struct head head_of(const tamis_filter *f, bool counted)
{
    const struct stack *stack = filter_stack(f);
    struct head head = {
        .set = f->set,
        .next_id = f->next_id,
        .grown = f->grown,
        .forecast = f->forecast,
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

static tamis_error body_fill(const tamis_filter *f, struct head *head, bool exact, uint8_t *body,
                             uint64_t len)
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
    struct pending_list list = filter_pending_list(f);
    struct head head = head_of(f, f->set.deletable && !bits_only);
    *body = NULL;
    tamis_error e = pending_list_make(&list, &f->allocator);
    if (e != TAMIS_OK)
        return e;
    if (head.counted)
        pending_list_count(&list, &head);
    pending_list_free(&list, &f->allocator);
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

struct payload {
    const tamis_filter *f;
    const struct head *head;
    struct pending_list pending;
    uint32_t *columns, *moved; /* where the columns are, and which are not at home */
    uint32_t n_moved;
    uint64_t *buffer; /* for rows of the matrix */
    size_t buffer_len;
};

static void put_matrix(const struct payload *p, struct writer *w)
{
    const struct matrix *matrix = atomic_load(&p->f->matrix);
    uint64_t width = p->head->width, rows = matrix->bits.units;
    if (p->n_moved == 0 && matrix->width == width) {
        put(w, matrix->bits.words, rows * width / 8);
        return;
    }
    uint64_t step = 8 * p->buffer_len / width;
    struct arrangement order = {p->columns, p->moved, p->n_moved};
    if (width < 64)
        step = step / 64 * 64; /* rows that fill whole words */
    for (uint64_t row = 0; row < rows; row += step) {
        uint64_t n = min_u64(step, rows - row);
        memset(p->buffer, 0, p->buffer_len);
        matrix_rows(matrix, &order, row, n, width, p->buffer);
        put(w, p->buffer, n * width / 8);
    }
}

static tamis_error put_payload(void *what, tamis_write write, void *context)
{
    const struct payload *p = what;
    struct section_walk walk = filter_sections(p->head);
    struct writer w = {.write = write, .context = context};
    struct section s;
    while (section_next(&walk, &s)) {
        const struct vector *v = filter_stack(p->f)->v[s.owner];
        if (s.type == SECTION_BITS)
            put(&w, v->bits.words, s.len);
        else if (s.type == SECTION_MATRIX)
            put_matrix(p, &w);
        else if (s.type == SECTION_COUNTERS)
            put(&w, v->counters.nibbles.data, s.len);
        else if (s.type == SECTION_ESCAPES)
            counters_put_escapes(&v->counters, &w);
        else if (s.type == SECTION_PENDING)
            pending_put(&p->pending, &w);
        else
            pending_put_candidates(&p->pending, &w);
        put_zeros(&w, round_up(s.len, SECTION_ALIGN) - s.len);
    }
    return w.failed ? TAMIS_EIO : TAMIS_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static tamis_error find_columns(struct payload *p)
{
    const struct stack *stack = filter_stack(p->f);
    if (!atomic_load(&p->f->matrix))
        return TAMIS_OK;
    p->columns = mem_new(&p->f->allocator, p->head->n, sizeof *p->columns);
    p->moved = mem_new(&p->f->allocator, p->head->n, sizeof *p->moved);
    p->buffer_len = (size_t)max_u64(PIECE, p->head->width / 8);
    p->buffer = mem_new(&p->f->allocator, 1, p->buffer_len);
    if (!p->columns || !p->moved || !p->buffer)
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < p->head->n; i++) {
        p->columns[i] = (uint32_t)stack->v[i]->column;
        if (p->columns[i] != i)
            p->moved[p->n_moved++] = i;
    }
    return TAMIS_OK;
}

struct outline filter_outline(const tamis_filter *f, const struct head *head, unsigned flags)
{
    struct outline o = {
        .kind = KIND_FILTER,
        .bits_only = (flags & TAMIS_SAVE_BITS_ONLY) || f->bits_only,
        .no_key = (flags & TAMIS_SAVE_NO_KEY) || !f->family.has_key,
        .family = &f->family,
        .body = head->records - HEAD_LEN,
        .body_len = HEAD_LEN + RECORD_LEN * (uint64_t)head->n,
    };
    outline_count(&o, filter_sections(head));
    return o;
}

static tamis_error encode_body(const tamis_filter *f, unsigned flags, const uint8_t *body,
                               uint64_t len, tamis_write write, void *context)
{
    bool bits_only = (flags & TAMIS_SAVE_BITS_ONLY) || f->bits_only;
    struct head head;
    tamis_error e = head_parse(&head, body, len, bits_only, f->family.hash, NULL);
    if (e != TAMIS_OK)
        return TAMIS_EARG; /* never write what would not be read */
    struct payload p = {.f = f, .head = &head, .pending = filter_pending_list(f)};
    struct outline o = filter_outline(f, &head, flags);
    e = find_columns(&p);
    if (e == TAMIS_OK && head.pending)
        e = pending_list_make(&p.pending, &f->allocator);
    if (e == TAMIS_OK)
        e = outline_write(&o, filter_sections(&head), put_payload, &p, &f->allocator, write,
                          context);
    pending_list_free(&p.pending, &f->allocator);
    mem_free(&f->allocator, p.columns, head.n, sizeof *p.columns);
    mem_free(&f->allocator, p.moved, head.n, sizeof *p.moved);
    mem_free(&f->allocator, p.buffer, 1, p.buffer_len);
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
    struct head head;
    uint8_t *body;
    uint64_t len, size = 0;
    if (only_mapped(f, flags))
        return f->mapping.len;
    if (filter_body(f, bits_only, false, &body, &len) != TAMIS_OK)
        return 0;
    if (head_parse(&head, body, len, bits_only, f->family.hash, NULL) == TAMIS_OK) {
        struct outline o = filter_outline(f, &head, flags);
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
