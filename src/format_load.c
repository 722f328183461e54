/* Filters from bytes: memory of their own, or views of a mapped file. What is read here was checked
   before; only memory can be missing. */
#include "format.h"

#include "err.h"

struct source {
    const struct container *c;
    const struct head *head;
    bool view;
};

static bool load_vector(tamis_filter *f, const struct source *s, uint32_t i)
{
    struct record r = head_record(s->head, i);
    struct vector *v = vector_load(s->c, s->head, &r, i, s->view, &f->family, &f->allocator);
    if (v)
        filter_put_back(f, v);
    return v != NULL;
}

static bool load_matrix(tamis_filter *f, const struct source *s)
{
    uint64_t len;
    const uint8_t *words = container_find(s->c, SECTION_MATRIX, 0, &len);
    const struct bits *shape = &filter_stack(f)->v[0]->bits;
    struct matrix *matrix =
        s->view ? matrix_view(&f->allocator, shape, s->head->width, (const void *)words)
                : matrix_new(&f->allocator, shape, s->head->width);
    if (!matrix)
        return false;
    if (!s->view)
        memcpy(matrix->bits.words, words, len);
    atomic_store(&f->matrix, matrix);
    filter_place_columns(f);
    return true;
}

void filter_from_head(tamis_filter *f, const struct container *c, const struct head *head,
                      bool view)
{
    f->next_id = head->next_id;
    f->grown = head->grown;
    f->forecast = head->forecast;
    f->family.has_key = c->has_key;
    f->bits_only = c->bits_only;
    f->read_only = c->bits_only || view;
}

static tamis_error load_parts(tamis_filter *f, const struct source *s)
{
    const struct head *head = s->head;
    filter_from_head(f, s->c, head, s->view);
    for (uint32_t i = 0; i < head->n; i++)
        if (!load_vector(f, s, i))
            return TAMIS_ENOMEM;
    if (head->width && !load_matrix(f, s))
        return TAMIS_ENOMEM;
    struct removing w = filter_removing(f);
    return head->pending ? pending_load(s->c, head, &w) : TAMIS_OK;
}

static tamis_error load(tamis_filter **out, const struct source *s,
                        const tamis_open_options *options, tamis_reason *reason)
{
    const tamis_allocator *a = open_allocator(options);
    uint8_t key[TAMIS_KEY_LEN];
    tamis_error e = container_key(s->c, options ? options->key : NULL, key, reason);
    if (e != TAMIS_OK)
        return e;
    tamis_filter *f;
    uint32_t room = (uint32_t)max_u64(4, s->head->n);
    e = filter_make(&f, a, &s->head->set, s->c->hash, key, room);
    if (e != TAMIS_OK)
        return fail(reason, e, "no memory for a filter");
    if (options && options->clock) {
        f->clock = options->clock;
        f->clock_context = options->clock_context;
    }
    e = load_parts(f, s);
    if (e != TAMIS_OK) {
        tamis_filter_free(f);
        return fail(reason, e, "%s", load_wrong(e));
    }
    *out = f;
    return TAMIS_OK;
}

tamis_error tamis_filter_decode(tamis_filter **out, const void *data, size_t len,
                                const tamis_open_options *options, tamis_reason *reason)
{
    struct container c;
    struct head head;
    tamis_error e = filter_open(&c, &head, data, len, reason);
    if (e == TAMIS_OK)
        e = filter_check(&c, &head, open_allocator(options), reason);
    struct source source = {&c, &head, false};
    return e == TAMIS_OK ? load(out, &source, options, reason) : e;
}

tamis_error filter_from_mapping(tamis_filter **out, struct mapping mapping,
                                const tamis_open_options *options, tamis_reason *reason)
{
    struct container c;
    struct head head;
    tamis_error e = filter_open(&c, &head, mapping.data, mapping.len, reason);
    if (e == TAMIS_OK)
        e = open_checks_all(options, &c) ? filter_check(&c, &head, &mem_system, reason)
                                         : pending_check_mapped(&c, &head, reason);
    struct source source = {&c, &head, true};
    if (e == TAMIS_OK)
        e = load(out, &source, options, reason);
    if (e == TAMIS_OK)
        (*out)->mapping = mapping;
    return e;
}
