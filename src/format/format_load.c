/* Sets from bytes: memory of their own, or views of a mapped file. What is read here was checked
   before; only memory can be missing. */
#include "format.h"

#include "base/err.h"
#include "tamis/records.h"

struct source {
    const struct container *c;
    const struct head *head;
    bool view;
};

static bool counters_load(const struct container *c, struct vector *v, uint32_t owner,
                          const tamis_allocator *a)
{
    uint64_t len, escapes_len;
    const uint8_t *nibbles = container_find(c, SECTION_COUNTERS, owner, &len);
    const uint8_t *escapes = container_find(c, SECTION_ESCAPES, owner, &escapes_len);
    if (!counters_reserve(&v->counters, a, (size_t)(escapes_len / 16)))
        return false;
    memcpy(v->counters.nibbles.data, nibbles, len);
    for (uint64_t at = 0; at < escapes_len; at += 16)
        counters_escape(&v->counters, get_u64(escapes + at), get_u64(escapes + at + 8));
    return true;
}

/* With bits of its own, or a view of them; NULL without memory. */
static struct vector *read_vector(const struct source *src, const struct record *r, uint32_t owner,
                                  const struct family *family, const tamis_allocator *a)
{
    const struct container *c = src->c;
    const struct head *head = src->head;
    bool view = src->view;
    struct shape shape = {head->set.layout, r->units, r->k};
    bool sliced = head->width != 0, counted = head->counted && !view;
    uint64_t len;
    const uint8_t *bits = container_find(c, SECTION_BITS, owner, &len);
    struct vector *v = view && !sliced ? vector_view(a, family, shape, (const void *)bits)
                                       : vector_new(a, family, shape, counted, !sliced);
    if (!v)
        return NULL;
    if (counted && !counters_load(c, v, owner, a)) {
        vector_free(v, a);
        return NULL;
    }
    if (!sliced && !view)
        memcpy(v->bits.words, bits, len);
    v->view = view;
    vector_from_record(v, r);
    v->column = sliced ? owner : 0;
    return v;
}

static bool load_table(const struct source *src, struct table *table, uint32_t owner,
                       const tamis_allocator *a)
{
    uint64_t len;
    struct table pairs = {.view = container_find(src->c, SECTION_TABLE, owner, &len)};
    pairs.used = (size_t)(len / TABLE_PAIR);
    if (!src->view)
        return table_unite(table, &pairs, a);
    *table = pairs;
    return true;
}

static void layer_from_record(struct layer *layer, const struct layer_record *r)
{
    layer->id = r->id, layer->slot = r->slot, layer->capacity = r->capacity;
    layer->load = r->load, layer->count = r->count, layer->fpp = r->fpp;
    layer->born = r->born, layer->last = r->last;
}

bool layer_read(struct set *s, const struct head *head, uint32_t number, part_fn make,
                const void *context)
{
    const tamis_allocator *a = &s->allocator;
    struct layer_record l = head_layer(head, number);
    struct layer *layer = layer_new(a, head->parts);
    bool made = layer != NULL;
    for (uint32_t i = 0; made && i < head->parts; i++) {
        uint32_t owner = number * head->parts + i;
        struct record r = head_record(head, owner);
        made = make(context, s, &layer->part[i], &r, owner);
    }
    if (!made) {
        layer_free(layer, a);
        return false;
    }
    layer_from_record(layer, &l);
    set_put_back(s, layer);
    return true;
}

bool part_blank(const void *context, struct set *s, struct part *part, const struct record *r,
                uint32_t owner)
{
    const struct head *head = context;
    const tamis_allocator *a = &s->allocator;
    struct shape shape = {head->set.layout, r->units, r->k};
    if (r->units == 0)
        return r->load == 0 || table_reserve(&part->table, a, (size_t)r->load);
    struct vector *v = vector_new(a, &s->family, shape, head->counted, head->width == 0);
    part->vector = v;
    if (!v || (head->counted && !counters_reserve(&v->counters, a, (size_t)r->escapes)))
        return false;
    vector_from_record(v, r);
    v->column = head->width ? owner : 0;
    return true;
}

static bool load_part(const void *source, struct set *s, struct part *part, const struct record *r,
                      uint32_t owner)
{
    if (r->units == 0)
        return load_table(source, &part->table, owner, &s->allocator);
    part->vector = read_vector(source, r, owner, &s->family, &s->allocator);
    return part->vector != NULL;
}

static bool load_matrix(struct set *s, const struct source *src)
{
    uint64_t len;
    const uint8_t *words = container_find(src->c, SECTION_MATRIX, 0, &len);
    const struct bits *shape = &set_layers(s)->v[0]->bits;
    struct matrix *matrix =
        src->view ? matrix_view(&s->allocator, shape, src->head->width, (const void *)words)
                  : matrix_new(&s->allocator, shape, src->head->width);
    if (!matrix)
        return false;
    if (!src->view)
        memcpy(matrix->bits.words, words, len);
    atomic_store(&s->matrix, matrix);
    set_place_columns(s);
    return true;
}

tamis_error set_from_head(struct set **out, const struct container *c, const struct head *head,
                          const tamis_open_options *options, const uint8_t key[TAMIS_KEY_LEN])
{
    struct set *s;
    tamis_error e = set_make(&s, open_allocator(options), &head->set,
                             head->kind == KIND_INDEX ? &head->form : NULL, c->hash, key,
                             (uint32_t)max_u64(4, head->n));
    if (e != TAMIS_OK)
        return e;
    if (options && options->clock) {
        s->clock = options->clock;
        s->clock_context = options->clock_context;
    }
    s->next_id = head->next_id;
    s->grown = head->grown;
    s->forecast = head->forecast;
    s->family.has_key = c->has_key;
    s->bits_only = s->read_only = c->bits_only;
    *out = s;
    return TAMIS_OK;
}

static tamis_error load_parts(struct set *s, const struct source *src)
{
    const struct head *head = src->head;
    s->read_only |= src->view;
    for (uint32_t i = 0; i < head->n; i++)
        if (!layer_read(s, head, i, load_part, src))
            return TAMIS_ENOMEM;
    if (head->width && !load_matrix(s, src))
        return TAMIS_ENOMEM;
    return head->pending ? pending_load(src->c, head, s) : TAMIS_OK;
}

static tamis_error load(struct set **out, const struct source *src,
                        const tamis_open_options *options, tamis_reason *reason)
{
    const uint8_t *key;
    struct set *s;
    tamis_error e = container_key(src->c, options ? options->key : NULL, &key, reason);
    if (e != TAMIS_OK)
        return e;
    e = set_from_head(&s, src->c, src->head, options, key);
    if (e != TAMIS_OK)
        return fail(reason, e, "no memory for %s",
                    src->head->kind == KIND_INDEX ? "an index" : "a filter");
    e = load_parts(s, src);
    if (e != TAMIS_OK) {
        set_free(s);
        return fail(reason, e, "%s", load_wrong(e));
    }
    *out = s;
    return TAMIS_OK;
}

static tamis_error set_decode(struct set **out, enum kind kind, const void *data, size_t len,
                              const tamis_open_options *options, tamis_reason *reason)
{
    struct container c;
    struct head head;
    tamis_error e = set_open(&c, &head, kind, data, len, reason);
    if (e == TAMIS_OK)
        e = set_check(&c, &head, open_allocator(options), reason);
    struct source source = {&c, &head, false};
    return e == TAMIS_OK ? load(out, &source, options, reason) : e;
}

tamis_error set_from_mapping(struct set **out, enum kind kind, struct mapping mapping,
                             const tamis_open_options *options, tamis_reason *reason)
{
    struct container c;
    struct head head;
    tamis_error e = set_open(&c, &head, kind, mapping.data, mapping.len, reason);
    if (e == TAMIS_OK)
        e = open_checks_all(options, &c) ? set_check(&c, &head, &mem_system, reason)
                                         : pending_check_mapped(&c, &head, reason);
    struct source source = {&c, &head, true};
    if (e == TAMIS_OK)
        e = load(out, &source, options, reason);
    if (e == TAMIS_OK)
        (*out)->mapping = mapping;
    return e;
}

tamis_error tamis_filter_decode(tamis_filter **out, const void *data, size_t len,
                                const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    tamis_error e = set_decode(&s, KIND_FILTER, data, len, options, reason);
    if (e == TAMIS_OK)
        *out = as_filter(s);
    return e;
}

tamis_error tamis_records_decode(tamis_records **out, const void *data, size_t len,
                                 const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    tamis_error e = set_decode(&s, KIND_INDEX, data, len, options, reason);
    if (e == TAMIS_OK)
        *out = as_records(s);
    return e;
}
