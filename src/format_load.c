/* Filters from bytes: memory of their own, or views of a mapped file. What is read here was checked
   before; only memory can be missing. */
#include "format.h"

#include "err.h"

#define VERIFY_MAX ((uint64_t)64 << 20) /* a mapped payload up to this is checked at once */

struct source {
    const struct container *c;
    const struct filter_head *head;
    bool view;
};

void vector_from_record(struct vector *v, const struct record *r)
{
    v->id = r->id;
    v->slot = r->slot;
    v->capacity = r->capacity;
    v->load = r->load;
    v->count = r->count;
    v->ones = r->ones;
    v->ones_max = r->ones_max;
    v->fpp = r->fpp;
    v->born = r->born;
    v->last = r->last;
}

static bool load_counters(const struct source *s, struct vector *v, uint32_t i,
                          const tamis_allocator *a)
{
    uint64_t len, escapes_len;
    const uint8_t *nibbles = filter_section(s->c, SECTION_COUNTERS, i, &len);
    const uint8_t *escapes = filter_section(s->c, SECTION_ESCAPES, i, &escapes_len);
    if (!counters_reserve(&v->counters, a, (size_t)(escapes_len / 16)))
        return false;
    memcpy(v->counters.nibbles.data, nibbles, len);
    for (uint64_t at = 0; at < escapes_len; at += 16)
        counters_escape(&v->counters, get_u64(escapes + at), get_u64(escapes + at + 8));
    return true;
}

static bool load_vector(tamis_filter *f, const struct source *s, uint32_t i)
{
    const tamis_allocator *a = &f->allocator;
    struct record r = head_record(s->head, i);
    struct shape shape = {f->set.layout, r.units, r.k};
    bool sliced = s->head->width != 0, counted = s->head->counted && !s->view;
    uint64_t len;
    const uint8_t *bits = filter_section(s->c, SECTION_BITS, i, &len);
    struct vector *v = s->view && !sliced ? vector_view(a, &f->family, shape, (const void *)bits)
                                          : vector_new(a, &f->family, shape, counted, !sliced);
    if (!v)
        return false;
    if (counted && !load_counters(s, v, i, a)) {
        vector_free(v, a);
        return false;
    }
    if (!sliced && !s->view)
        memcpy(v->bits.words, bits, len);
    v->view = s->view;
    vector_from_record(v, &r);
    v->column = sliced ? i : 0;
    filter_put_back(f, v);
    return true;
}

static bool load_matrix(tamis_filter *f, const struct source *s)
{
    uint64_t len;
    const uint8_t *words = filter_section(s->c, SECTION_MATRIX, 0, &len);
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

static tamis_error load_pending(tamis_filter *f, const struct source *s)
{
    uint64_t len, candidates_len;
    const uint8_t *entries = filter_section(s->c, SECTION_PENDING, 0, &len);
    const uint8_t *candidates = filter_section(s->c, SECTION_CANDIDATES, 0, &candidates_len);
    uint32_t *ids = mem_new(&f->allocator, s->head->n, sizeof *ids);
    tamis_error e = ids ? TAMIS_OK : TAMIS_ENOMEM;
    for (uint64_t i = 0; e == TAMIS_OK && i < s->head->pending; i++) {
        const uint8_t *entry = entries + 32 * i;
        tamis_digest digest = {get_u64(entry), get_u64(entry + 8)};
        uint32_t n = get_u32(entry + 28);
        memcpy(ids, candidates, n * sizeof *ids);
        candidates += n * sizeof *ids;
        e = removals_remember(f, digest, get_u64(entry + 16), ids, n, get_u32(entry + 24));
    }
    mem_free(&f->allocator, ids, s->head->n, sizeof *ids);
    return e;
}

static tamis_error load_parts(tamis_filter *f, const struct source *s)
{
    const struct filter_head *head = s->head;
    f->next_id = head->next_id;
    f->grown = head->grown;
    f->holt = head->holt;
    f->base_rate = head->base_rate;
    f->family.has_key = s->c->has_key;
    f->bits_only = s->c->bits_only;
    f->read_only = s->c->bits_only || s->view;
    for (uint32_t i = 0; i < head->n; i++)
        if (!load_vector(f, s, i))
            return TAMIS_ENOMEM;
    if (head->width && !load_matrix(f, s))
        return TAMIS_ENOMEM;
    return head->pending ? load_pending(f, s) : TAMIS_OK;
}

static tamis_error load(tamis_filter **out, const struct source *s,
                        const tamis_open_options *options, tamis_reason *reason)
{
    const tamis_allocator *a = options && options->allocator ? options->allocator : &mem_system;
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
        return fail(reason, e, "no memory for the vectors");
    }
    *out = f;
    return TAMIS_OK;
}

tamis_error tamis_filter_decode(tamis_filter **out, const void *data, size_t len,
                                const tamis_open_options *options, tamis_reason *reason)
{
    struct container c;
    struct filter_head head;
    const tamis_allocator *a = options && options->allocator ? options->allocator : &mem_system;
    tamis_error e = filter_open(&c, &head, data, len, reason);
    if (e == TAMIS_OK)
        e = filter_check(&c, &head, a, reason);
    struct source source = {&c, &head, false};
    return e == TAMIS_OK ? load(out, &source, options, reason) : e;
}

/* A large file is trusted but for its header and for what is read now. */
static tamis_error check_mapping(const struct container *c, const struct filter_head *head,
                                 bool verify, tamis_reason *reason)
{
    if (verify || c->len - c->payload <= VERIFY_MAX)
        return filter_check(c, head, &mem_system, reason);
    for (uint32_t i = c->sections; head->pending && i-- > c->sections - 2;) {
        struct section s = container_section(c, i);
        tamis_error e = container_verify(c, s.offset, s.offset + s.len, reason);
        if (e != TAMIS_OK)
            return e;
    }
    return filter_check_pending(c, head, reason);
}

tamis_error filter_from_mapping(tamis_filter **out, struct mapping mapping,
                                const tamis_open_options *options, tamis_reason *reason)
{
    struct container c;
    struct filter_head head;
    tamis_error e = filter_open(&c, &head, mapping.data, mapping.len, reason);
    if (e == TAMIS_OK)
        e = check_mapping(&c, &head, options && options->verify, reason);
    struct source source = {&c, &head, true};
    if (e == TAMIS_OK)
        e = load(out, &source, options, reason);
    if (e == TAMIS_OK)
        (*out)->mapping = mapping;
    return e;
}
