/* Writing sets. The same state gives the same bytes: what an allocator, a hash table or the order of
   columns in a matrix came to be does not show. */
#include "format.h"
#include "tamis/records.h"

#define PIECE   32768 /* bytes of the matrix made at a time, where it is not written as it lies */
#define PAIRS   1024  /* of a table, written at a time */
#define ESCAPES 4096  /* words written at a time */

static bool bits_alone(const struct set *s, unsigned flags)
{
    return (flags & TAMIS_SAVE_BITS_ONLY) || s->bits_only;
}

/* ---- the body -------------------------------------------------------------------------------- */

static struct head head_of(const struct set *s, bool counted)
{
    const struct layers *layers = set_layers(s);
    struct head head = {
        .kind = s->form ? KIND_INDEX : KIND_FILTER,
        .set = s->opt,
        .next_id = s->next_id,
        .grown = s->grown,
        .forecast = s->forecast,
        .n = layers_count(layers),
        .counted = counted,
        .parts = set_parts(s),
    };
    if (s->form)
        head.form = *s->form;
    if (set_sliced(s))
        head.width = matrix_width_for(head.n);
    for (uint32_t i = 0; i < head.n; i++)
        head.stored += layer_count(s, layers->l[i]);
    return head;
}

/* Ones of the columns, for plain dynamic filters: one pass over the matrix. */
static uint64_t *column_ones(const struct set *s, const struct matrix *matrix)
{
    uint64_t *ones = mem_new0(&s->allocator, matrix->width, sizeof *ones);
    if (ones)
        matrix_count_ones(matrix->bits.words, matrix->bits.units, matrix->width, ones);
    return ones;
}

/* Read again: never write what would not be read. */
tamis_error set_body(const struct set *s, const struct pending_list *pending, bool bits_only,
                     bool exact, struct head *head, uint8_t **body)
{
    const struct matrix *matrix = atomic_load(&s->matrix);
    uint64_t *ones = NULL;
    *head = head_of(s, s->opt.deletable && !bits_only);
    if (head->counted)
        pending_list_count(pending, head);
    uint64_t len = head_body_len(head);
    *body = mem_new0(&s->allocator, 1, len);
    if (!*body || (matrix && exact && !(ones = column_ones(s, matrix)))) {
        mem_free(&s->allocator, *body, 1, len);
        *body = NULL;
        return TAMIS_ENOMEM;
    }
    bool right =
        head_write(head, s, ones, exact, *body) &&
        head_parse(head, head->kind, *body, len, bits_only, s->family.hash, NULL) == TAMIS_OK;
    mem_free(&s->allocator, ones, matrix ? matrix->width : 0, sizeof *ones);
    if (right)
        return TAMIS_OK;
    mem_free(&s->allocator, *body, 1, len);
    *body = NULL;
    return TAMIS_EARG;
}

/* ---- the payload ----------------------------------------------------------------------------- */

struct payload {
    const struct set *s;
    const struct head *head;
    const struct pending_list *pending;
    uint32_t *columns, *moved; /* where the columns are, and which are not at home */
    uint32_t n_moved;
    uint64_t *buffer; /* for rows of the matrix */
    size_t buffer_len;
};

static void put_matrix(const struct payload *p, struct writer *w)
{
    const struct matrix *matrix = atomic_load(&p->s->matrix);
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

static void put_table(const struct table *table, struct writer *w)
{
    uint64_t buffer[2 * PAIRS];
    size_t n = 0;
    struct table_walk walk = {.table = table};
    while (table_next(&walk)) {
        buffer[n++] = walk.value;
        buffer[n++] = walk.count;
        if (n == 2 * PAIRS) {
            put(w, buffer, sizeof buffer);
            n = 0;
        }
    }
    put(w, buffer, n * sizeof *buffer);
}

/* In order of position, found by looking for counters of 15: no memory, no sorting. */
static void put_escapes(const struct counters *counters, struct writer *w)
{
    uint64_t buffer[ESCAPES];
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
        if (n + 4 > ESCAPES) {
            put(w, buffer, n * sizeof *buffer);
            n = 0;
        }
    }
    put(w, buffer, n * sizeof *buffer);
}

static tamis_error put_payload(void *what, tamis_write write, void *context)
{
    const struct payload *p = what;
    struct section_walk walk = head_sections(p->head);
    struct writer w = {.write = write, .context = context};
    struct section s;
    while (section_next(&walk, &s)) {
        const struct part *part = set_part(p->s, s.owner);
        if (s.type == SECTION_BITS)
            put(&w, part->vector->bits.words, s.len);
        else if (s.type == SECTION_MATRIX)
            put_matrix(p, &w);
        else if (s.type == SECTION_COUNTERS)
            put(&w, part->vector->counters.nibbles.data, s.len);
        else if (s.type == SECTION_ESCAPES)
            put_escapes(&part->vector->counters, &w);
        else if (s.type == SECTION_PENDING)
            pending_put(p->pending, &w);
        else if (s.type == SECTION_CANDIDATES)
            pending_put_candidates(p->pending, &w);
        else
            put_table(&part->table, &w);
        put_zeros(&w, round_up(s.len, SECTION_ALIGN) - s.len);
    }
    return w.failed ? TAMIS_EIO : TAMIS_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static tamis_error find_columns(struct payload *p)
{
    const struct layers *layers = set_layers(p->s);
    if (!atomic_load(&p->s->matrix))
        return TAMIS_OK;
    p->columns = mem_new(&p->s->allocator, p->head->n, sizeof *p->columns);
    p->moved = mem_new(&p->s->allocator, p->head->n, sizeof *p->moved);
    p->buffer_len = (size_t)max_u64(PIECE, p->head->width / 8);
    p->buffer = mem_new(&p->s->allocator, 1, p->buffer_len);
    if (!p->columns || !p->moved || !p->buffer)
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < p->head->n; i++) {
        p->columns[i] = (uint32_t)layers->v[i]->column;
        if (p->columns[i] != i)
            p->moved[p->n_moved++] = i;
    }
    return TAMIS_OK;
}

struct outline set_outline(const struct set *s, const struct head *head, const uint8_t *body,
                           unsigned flags)
{
    struct outline o = {
        .kind = head->kind,
        .bits_only = bits_alone(s, flags),
        .no_key = (flags & TAMIS_SAVE_NO_KEY) || !s->family.has_key,
        .family = &s->family,
        .body = body,
        .body_len = head_body_len(head),
    };
    outline_count(&o, head_sections(head));
    return o;
}

static tamis_error write_out(struct payload *p, const struct outline *o, tamis_write write,
                             void *context)
{
    const tamis_allocator *a = &p->s->allocator;
    tamis_error e = find_columns(p);
    if (e == TAMIS_OK)
        e = outline_write(o, head_sections(p->head), put_payload, p, a, write, context);
    mem_free(a, p->columns, p->head->n, sizeof *p->columns);
    mem_free(a, p->moved, p->head->n, sizeof *p->moved);
    mem_free(a, p->buffer, 1, p->buffer_len);
    return e;
}

/* Only its size (write is NULL), or all of it. */
static tamis_error encode(const struct set *s, unsigned flags, tamis_write write, void *context,
                          uint64_t *size)
{
    struct pending_list pending;
    struct head head;
    uint8_t *body = NULL;
    tamis_error e = pending_list_make(&pending, s);
    if (e == TAMIS_OK)
        e = set_body(s, &pending, bits_alone(s, flags), write != NULL, &head, &body);
    if (e == TAMIS_OK) {
        struct outline o = set_outline(s, &head, body, flags);
        struct payload p = {.s = s, .head = &head, .pending = &pending};
        *size = outline_header_len(&o) + o.payload_len;
        if (write)
            e = write_out(&p, &o, write, context);
        mem_free(&s->allocator, body, 1, o.body_len);
    }
    pending_list_free(&pending);
    return e;
}

/* A mapped file whose counters are not in memory: its own bytes again. */
static bool only_mapped(const struct set *s, unsigned flags)
{
    return !set_counted(s) && !bits_alone(s, flags);
}

tamis_error set_encode(const struct set *s, unsigned flags, tamis_write write, void *context)
{
    struct container c;
    uint64_t size;
    if (flags & ~(unsigned)(TAMIS_SAVE_NO_KEY | TAMIS_SAVE_BITS_ONLY))
        return TAMIS_EARG;
    if (!family_standard(&s->family))
        return TAMIS_EKIND; /* its probes are a function of the caller's */
    if (!only_mapped(s, flags))
        return encode(s, flags, write, context, &size);
    tamis_error e = container_open(&c, s->mapping.data, s->mapping.len,
                                   s->form ? KIND_INDEX : KIND_FILTER, NULL);
    return e == TAMIS_OK
               ? container_write(&c, flags & TAMIS_SAVE_NO_KEY, &s->allocator, write, context)
               : e;
}

uint64_t set_encoded_size(const struct set *s, unsigned flags)
{
    uint64_t size = 0;
    if (only_mapped(s, flags))
        return s->mapping.len;
    return encode(s, flags, NULL, NULL, &size) == TAMIS_OK ? size : 0;
}

tamis_error tamis_filter_encode(const tamis_filter *f, unsigned flags, tamis_write write,
                                void *context)
{
    return set_encode(&f->set, flags, write, context);
}

tamis_error tamis_records_encode(const tamis_records *x, unsigned flags, tamis_write write,
                                 void *context)
{
    return set_encode(&x->set, flags, write, context);
}

uint64_t tamis_filter_encoded_size(const tamis_filter *f, unsigned flags)
{
    return set_encoded_size(&f->set, flags);
}

uint64_t tamis_records_encoded_size(const tamis_records *x, unsigned flags)
{
    return set_encoded_size(&x->set, flags);
}

static int digest_write(void *context, const void *data, size_t len)
{
    hash_add_128(context, data, len);
    return 0;
}

tamis_error set_fingerprint(const struct set *s, bool bits_only, uint8_t out[16])
{
    struct hash_stream hash;
    hash_begin_128(&hash);
    tamis_error e = set_encode(s, TAMIS_SAVE_NO_KEY | (bits_only ? TAMIS_SAVE_BITS_ONLY : 0u),
                               digest_write, &hash);
    if (e == TAMIS_OK)
        hash_end_128(&hash, out);
    return e;
}
