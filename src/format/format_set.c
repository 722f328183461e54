/* The encoding of sets and their fingerprints, and sets from bytes: with their own memory, or
   views of a mapped file. */
#include "format.h"

#include "base/err.h"

uint64_t pieces_total(const void *data, size_t len)
{
    uint64_t total, header;
    return prefix_lengths(data, len, &total, &header) && total >= len ? total : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct head head_of(const struct set *s, bool counted)
{
    const struct layers *layers = set_layers(s);
    struct head head = {
        .kind = s->stack->form ? KIND_RECORDS : KIND_FILTER,
        .set = set_terms(s)->opt,
        .next_id = s->stack->next_id,
        .grown = s->stack->grown,
        .forecast = s->stack->more->forecast,
        .n = layers_count(layers),
        .counted = counted,
        .parts = set_parts(s),
    };
    head.set.memory_limit = s->memory_limit;
    if (s->stack->form)
        head.form = *s->stack->form;
    if (set_sliced(s))
        head.width = matrix_width_for(head.n);
    for (uint32_t i = 0; i < head.n; i++)
        head.stored += layer_count(s, layers->l[i]);
    const struct lines *lines = set_lines(s);
    if (lines) {
        head.stored += lines->keys;
        head.line_parts = lines_parts(lines);
        head.line_fpp = lines->fpp;
        head.line_width = lines->width;
    }
    return head;
}

/* Reads it again: what could not be read is never written. */
tamis_error set_body(const struct set *s, const struct pending_list *pending, bool bits_only,
                     struct head *head, uint8_t **body)
{
    *head = head_of(s, set_opt(s)->deletable && !bits_only);
    if (head->counted)
        pending_list_count(pending, head);
    uint64_t len = head_body_len(head);
    *body = mem_new0(set_allocator(s), 1, len);
    if (!*body)
        return TAMIS_ENOMEM;
    if (head_write(head, s, *body) &&
        head_parse(head, head->kind, *body, len, bits_only, set_family(s)->hash, NULL) == TAMIS_OK)
        return TAMIS_OK;
    mem_free(set_allocator(s), *body, 1, len);
    *body = NULL;
    return TAMIS_EARG;
}

static tamis_error write_mapped(const struct set *s, unsigned flags, tamis_write write,
                                void *context)
{
    struct container c;
    tamis_error e = container_open(&c, s->stack->mapping.data, s->stack->mapping.len,
                                   s->stack->form ? KIND_RECORDS : KIND_FILTER, NULL);
    return e == TAMIS_OK
               ? container_write(&c, flags & TAMIS_SAVE_NO_KEY, set_allocator(s), write, context)
               : e;
}

tamis_error set_encode_sized(const struct set *s, unsigned flags, size_fn size, tamis_write write,
                             void *context)
{
    struct pieces_out *o;
    bool counters_mapped = !set_counted(s) && !(flags & TAMIS_SAVE_BITS_ONLY) && !s->bits_only;
    if (counters_mapped && family_standard(set_family(s))) { /* the bytes of the file again */
        tamis_error e = size ? size(context, s->stack->mapping.len) : TAMIS_OK;
        return e == TAMIS_OK && write ? write_mapped(s, flags, write, context) : e;
    }
    tamis_error e = set_out_begin(&o, s, flags, UINT64_MAX, true);
    if (e != TAMIS_OK)
        return e;
    if (size)
        e = size(context, pieces_out_size(o));
    if (e == TAMIS_OK && write)
        e = pieces_out_write(o, s, write, context);
    pieces_out_end(o);
    return e;
}

tamis_error set_encode(const struct set *s, unsigned flags, tamis_write write, void *context)
{
    return set_encode_sized(s, flags, NULL, write, context);
}

static tamis_error take_size(void *context, uint64_t size)
{
    *(uint64_t *)context = size;
    return TAMIS_OK;
}

uint64_t set_encoded_size(const struct set *s, unsigned flags)
{
    uint64_t size = 0;
    tamis_error e = set_encode_sized(s, flags, take_size, NULL, &size);
    return e == TAMIS_OK ? size : 0;
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

/* ---- reading --------------------------------------------------------------------------------- */

tamis_error set_from_head(struct set **out, const struct head *head, const tamis_allocator *a,
                          struct family_key key, bool bits_only)
{
    struct set *s;
    bool alone = head->set.growth == TAMIS_SMOOTH && !head->n && !head->next_id && !head->grown;
    tamis_error e =
        set_make(&s, a, &head->set, head->kind == KIND_RECORDS ? &head->form : NULL, key,
                 alone ? 0 : (uint32_t)max_u64(head->set.growth == TAMIS_SMOOTH ? 1 : 4, head->n));
    if (e != TAMIS_OK)
        return e;
    if (!alone) {
        s->stack->next_id = head->next_id;
        s->stack->grown = head->grown;
    }
    if (set_stacked(s))
        s->stack->more->forecast = head->forecast;
    s->bits_only = s->read_only = bits_only;
    *out = s;
    return TAMIS_OK;
}

static bool part_read(struct set *s, struct part *part, const struct head *head, uint32_t owner,
                      const struct container *view)
{
    const tamis_allocator *a = set_allocator(s);
    struct part_record r = head_record(head, owner);
    struct shape shape = record_shape(head, &r);
    uint64_t len;
    if (r.units == 0 && view) {
        part->table = (struct table){.view = container_find(view, SECTION_TABLE, owner, &len),
                                     .used = (size_t)r.load};
        return true;
    }
    if (r.units == 0)
        return r.load == 0 || table_reserve(&part->table, a, (size_t)r.load);
    bool sliced = head->width != 0, counted = head->counted && !view;
    struct vector *v = part->vector =
        view && !sliced ? vector_view(a, set_family(s), shape,
                                      (const void *)container_find(view, SECTION_BITS, owner, &len))
                        : vector_new(a, set_family(s), shape, counted, !sliced);
    if (!v || (counted && !counters_reserve(&v->counters, a, (size_t)r.escapes)))
        return false;
    v->capacity = r.capacity, v->fpp = r.fpp, v->ones_max = r.ones_max;
    v->load = r.load, v->count = r.count;
    v->view = view != NULL;
    v->column = sliced ? owner : 0;
    return true;
}

bool layer_read(struct set *s, const struct head *head, uint32_t number,
                const struct container *view)
{
    const tamis_allocator *a = set_allocator(s);
    struct layer_record r = head_layer(head, number);
    struct layer *layer = layer_new(a, head->parts);
    bool made = layer != NULL;
    for (uint32_t i = 0; made && i < head->parts; i++)
        made = part_read(s, &layer->part[i], head, number * head->parts + i, view);
    if (!made) {
        layer_free(layer, a);
        return false;
    }
    layer->id = r.id, layer->slot = r.slot, layer->capacity = r.capacity;
    layer->load = r.load, layer->count = r.count, layer->fpp = r.fpp;
    layer->born = r.born, layer->last = r.last;
    set_put_back(s, layer);
    return true;
}

bool matrix_read(struct set *s, const struct head *head, const struct container *view)
{
    uint64_t len;
    if (!head->width)
        return true;
    const struct bits *shape = &set_layers(s)->v[0]->bits;
    struct matrix *matrix =
        view ? matrix_view(set_allocator(s), shape, head->width,
                           (const void *)container_find(view, SECTION_MATRIX, 0, &len))
             : matrix_new(set_allocator(s), shape, head->width);
    if (!matrix)
        return false;
    atomic_store(&s->stack->more->matrix, matrix);
    set_place_columns(s);
    return true;
}

/* The lists of entries are small, and always in memory. */
static bool part_view(struct lines *l, uint32_t position, const struct part_facts *facts,
                      uint32_t i, const struct container *view)
{
    const uint8_t *piece[PART_PIECES] = {0};
    uint64_t len;
    for (uint32_t what = 0; view && what < PART_PIECES; what++)
        piece[what] = container_find(view, SECTION_LINES, PART_PIECES * i + what, &len);
    const struct body *b = lines_append(l, position, facts, piece[PART_LINES], piece[PART_STASH]);
    for (unsigned what = PART_COARSE; b && what < PART_PIECES; what++)
        if (piece[what])
            memcpy(part_data(b, what), piece[what], (size_t)part_len(facts, what));
    return b != NULL;
}

bool lines_read(struct set *s, const struct head *head, const struct container *view)
{
    if (head->line_parts == 0)
        return true;
    struct lines *l = &s->lines;
    bool made = lines_begin(l, l->allocator, head->line_fpp, head->line_width, head->line_parts) ==
                TAMIS_OK;
    for (uint32_t i = 0, position = 0; made && i < head->line_parts; i++) {
        struct part_facts facts = head_part(head, i);
        made = part_view(l, position, &facts, i, view);
        position += SHELF_LEN >> facts.depth;
    }
    smooth_limit(s);
    set_quick(s);
    return made;
}

tamis_error set_verify(enum kind kind, const void *data, size_t len, tamis_reason *reason)
{
    return set_read(NULL, kind, data, len, READ_VIEW | READ_VERIFY, NULL, reason);
}

tamis_error set_from_mapping(struct set **out, enum kind kind, struct mapping mapping,
                             const tamis_open_options *options, tamis_reason *reason)
{
    bool all = (options && options->verify) || mapping.len <= CHECKED_MAX;
    tamis_error e = set_read(out, kind, mapping.data, mapping.len,
                             READ_VIEW | (all ? 0 : READ_SKIM), options, reason);
    if (e != TAMIS_OK)
        return e;
    e = fail_so(reason, set_stack(*out, 1));
    if (e != TAMIS_OK)
        set_free(*out);
    else
        (*out)->stack->mapping = mapping;
    return e;
}

tamis_error tamis_filter_decode(tamis_filter **out, const void *data, size_t len,
                                const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    return give_filter(set_read(&s, KIND_FILTER, data, len, 0, options, reason), &s, out);
}

tamis_error tamis_records_decode(tamis_records **out, const void *data, size_t len,
                                 const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    return give_records(set_read(&s, KIND_RECORDS, data, len, 0, options, reason), &s, out);
}
