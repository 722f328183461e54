/* Writing indexes. As for filters, the same state gives the same bytes. */
#include "format.h"

#define PAIRS 1024 /* of a table, written at a time */

static bool alive(const void *owner, uint32_t id)
{
    return index_layer_by_id(owner, id) != NULL;
}

struct pending_list index_pending_list(const tamis_index *x)
{
    return (struct pending_list){.removals = &x->removals, .alive = alive, .owner = x};
}

static bool bits_alone(const tamis_index *x, unsigned flags)
{
    return (flags & TAMIS_SAVE_BITS_ONLY) || x->bits_only;
}

/* ---- the body -------------------------------------------------------------------------------- */

static struct index_head head_of(const tamis_index *x, bool counted)
{
    const struct layers *layers = index_layers(x);
    struct index_head head = {
        .head = {.set = x->set.grow,
                 .next_id = x->next_id,
                 .grown = x->grown,
                 .forecast = x->forecast,
                 .n = layers_count(layers),
                 .counted = counted},
        .set = x->set,
        .names = x->names,
        .names_len = x->names_len,
        .parts = x->set.attributes + x->set.verifiers,
    };
    for (uint32_t i = 0; i < head.head.n; i++)
        head.head.stored += layers->l[i]->count;
    return head;
}

static void put_part(struct cursor *c, const struct part *part, bool counted, bool exact)
{
    struct record r = {.load = part->table.used};
    if (part->vector) {
        r = record_of(part->vector, counted);
        r.ones = exact ? vector_count_ones(part->vector) : r.escapes;
    }
    record_fields(c, &r);
}

static tamis_error body_fill(const tamis_index *x, struct index_head *head, bool exact,
                             uint8_t *body, uint64_t len)
{
    const struct layers *layers = index_layers(x);
    struct cursor c = cursor_write(body, len);
    index_head_fields(&c, head);
    field_bytes(&c, x->names, x->names_len);
    field_zero(&c, round_up(x->names_len, 8) - x->names_len);
    for (uint32_t i = 0; i < head->head.n; i++) {
        const struct layer *l = layers->l[i];
        struct layer_record r = {.id = l->id,
                                 .slot = l->slot,
                                 .capacity = l->capacity,
                                 .load = l->load,
                                 .count = l->count,
                                 .fpp = l->fpp,
                                 .born = l->born};
        layer_fields(&c, &r);
    }
    for (uint32_t i = 0; i < head->head.n; i++)
        for (uint32_t j = 0; j < head->parts; j++)
            put_part(&c, &layers->l[i]->part[j], head->head.counted, exact);
    return c.wrong ? TAMIS_EARG : TAMIS_OK;
}

/* Read again: never write what would not be read. */
tamis_error index_body(const tamis_index *x, const struct pending_list *pending, unsigned flags,
                       bool exact, struct index_head *head, uint8_t **body, uint64_t *len)
{
    bool bits_only = bits_alone(x, flags);
    *head = head_of(x, x->set.grow.deletable && !bits_only);
    if (head->head.counted)
        pending_list_count(pending, &head->head);
    *len = index_body_len(head);
    *body = mem_new0(&x->allocator, 1, *len);
    if (!*body)
        return TAMIS_ENOMEM;
    tamis_error e = body_fill(x, head, exact, *body, *len);
    if (e == TAMIS_OK &&
        index_head_parse(head, *body, *len, bits_only, x->family.hash, NULL) != TAMIS_OK)
        e = TAMIS_EARG;
    return e;
}

/* ---- the payload ----------------------------------------------------------------------------- */

struct payload {
    const tamis_index *x;
    const struct index_head *head;
    const struct pending_list *pending;
};

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

static tamis_error put_payload(void *what, tamis_write write, void *context)
{
    const struct payload *p = what;
    struct section_walk walk = index_sections(p->head);
    struct writer w = {.write = write, .context = context};
    struct section s;
    while (section_next(&walk, &s)) {
        const struct part *part = index_part(p->x, s.owner);
        if (s.type == SECTION_BITS)
            put(&w, part->vector->bits.words, s.len);
        else if (s.type == SECTION_COUNTERS)
            put(&w, part->vector->counters.nibbles.data, s.len);
        else if (s.type == SECTION_ESCAPES)
            counters_put_escapes(&part->vector->counters, &w);
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

struct outline index_outline(const tamis_index *x, const struct index_head *head,
                             const uint8_t *body, uint64_t len, unsigned flags)
{
    struct outline o = {
        .kind = KIND_INDEX,
        .bits_only = bits_alone(x, flags),
        .no_key = (flags & TAMIS_SAVE_NO_KEY) || !x->family.has_key,
        .family = &x->family,
        .body = body,
        .body_len = len,
    };
    outline_count(&o, index_sections(head));
    return o;
}

/* Only its size (write is NULL), or all of it. */
static tamis_error encode(const tamis_index *x, unsigned flags, tamis_write write, void *context,
                          uint64_t *size)
{
    struct pending_list pending = index_pending_list(x);
    struct index_head head;
    uint8_t *body = NULL;
    uint64_t len = 0;
    tamis_error e = pending_list_make(&pending, &x->allocator);
    if (e == TAMIS_OK)
        e = index_body(x, &pending, flags, write != NULL, &head, &body, &len);
    if (e == TAMIS_OK) {
        struct outline o = index_outline(x, &head, body, len, flags);
        struct payload p = {x, &head, &pending};
        *size = outline_header_len(&o) + o.payload_len;
        if (write)
            e = outline_write(&o, index_sections(&head), put_payload, &p, &x->allocator, write,
                              context);
    }
    mem_free(&x->allocator, body, 1, len);
    pending_list_free(&pending, &x->allocator);
    return e;
}

/* A mapped file whose counters are not in memory: its own bytes again. */
static bool only_mapped(const tamis_index *x, unsigned flags)
{
    return !index_counted(x) && !bits_alone(x, flags);
}

tamis_error tamis_index_encode(const tamis_index *x, unsigned flags, tamis_write write,
                               void *context)
{
    struct container c;
    uint64_t size;
    if (flags & ~(unsigned)(TAMIS_SAVE_NO_KEY | TAMIS_SAVE_BITS_ONLY))
        return TAMIS_EARG;
    if (!only_mapped(x, flags))
        return encode(x, flags, write, context, &size);
    tamis_error e = container_open(&c, x->mapping.data, x->mapping.len, KIND_INDEX, NULL);
    return e == TAMIS_OK
               ? container_write(&c, flags & TAMIS_SAVE_NO_KEY, &x->allocator, write, context)
               : e;
}

uint64_t tamis_index_encoded_size(const tamis_index *x, unsigned flags)
{
    uint64_t size = 0;
    if (only_mapped(x, flags))
        return x->mapping.len;
    return encode(x, flags, NULL, NULL, &size) == TAMIS_OK ? size : 0;
}
