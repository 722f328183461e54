/* Indexes from bytes: what must agree in the payload, and then memory of their own or views of a mapped
   file. Once it is checked, only memory can be missing. */
#include "format.h"

#include "err.h"

/* ---- checks ---------------------------------------------------------------------------------- */

/* Hashes are even, and lookups are short because of it: on average a value lies 2 slots from its home.
   Values that someone chose may lie all in one run, and to make a table of them would take hours. */
#define FAR_MEAN  64
#define FAR_SMALL 65536 /* in all, for tables so small that it does not matter */

struct table_check table_check_begin(const struct index_head *head, uint32_t owner)
{
    uint64_t values = index_record(head, owner).load;
    return (struct table_check){.most = FAR_MEAN * values + FAR_SMALL,
                                .shift = table_shift((size_t)values)};
}

/* Values in order, each once, with copies. */
const char *table_check_pair(struct table_check *t, const uint8_t pair[TABLE_PAIR])
{
    uint64_t value = get_u64(pair), copies = get_u64(pair + 8), hash = table_hash(value);
    uint64_t home = hash >> t->shift;
    if (t->n && (hash < t->hash || (hash == t->hash && value <= t->value)))
        return "its values are not in order";
    if (copies == 0 || __builtin_add_overflow(t->copies, copies, &t->copies))
        return "copies of a value";
    t->next = max_u64(t->next, home) + 1;
    t->far += t->next - 1 - home;
    if (t->far > t->most)
        return "its values are too close to one another";
    t->n++, t->hash = hash, t->value = value;
    return NULL;
}

/* In a deletable index as many copies as the layer has records. */
const char *table_check_end(const struct table_check *t, const struct index_head *head,
                            uint32_t owner)
{
    if (head->head.counted && t->copies != index_layer_record(head, owner / head->parts).count)
        return "its copies are not the records of the layer";
    return NULL;
}

static tamis_error check_table(const struct container *c, const struct index_head *head,
                               uint32_t owner, tamis_reason *reason)
{
    uint64_t len;
    const uint8_t *pairs = container_find(c, SECTION_TABLE, owner, &len);
    struct table_check t = table_check_begin(head, owner);
    const char *wrong = NULL;
    for (uint64_t at = 0; at < len && !wrong; at += TABLE_PAIR)
        wrong = table_check_pair(&t, pairs + at);
    if (!wrong)
        wrong = table_check_end(&t, head, owner);
    if (wrong)
        return fail_at(reason, TAMIS_EFORMAT, pairs ? (uint64_t)(pairs - c->data) : c->payload,
                       "the table of part %u: %s", owner, wrong);
    return TAMIS_OK;
}

static tamis_error index_check(const struct container *c, const struct index_head *head,
                               tamis_reason *reason)
{
    tamis_error e = container_check_payload(c, reason);
    for (uint32_t i = 0; i < head->head.n * head->parts && e == TAMIS_OK; i++) {
        struct record r = index_record(head, i);
        e = r.units ? vector_check(c, &head->head, &r, i, reason) : check_table(c, head, i, reason);
    }
    return e == TAMIS_OK ? pending_check(c, &head->head, reason) : e;
}

tamis_error index_verify(const void *data, size_t len, tamis_reason *reason)
{
    struct container c;
    struct index_head head;
    uint8_t key[TAMIS_KEY_LEN];
    tamis_error e = index_open(&c, &head, data, len, reason);
    if (e == TAMIS_OK && c.has_key)
        e = container_key(&c, NULL, key, reason);
    return e == TAMIS_OK ? index_check(&c, &head, reason) : e;
}

/* ---- making ---------------------------------------------------------------------------------- */

struct source {
    const struct container *c;
    const struct index_head *head;
    bool view;
};

static bool load_table(const struct source *s, struct table *table, uint32_t owner,
                       const tamis_allocator *a)
{
    uint64_t len;
    struct table pairs = {.view = container_find(s->c, SECTION_TABLE, owner, &len)};
    pairs.used = (size_t)(len / TABLE_PAIR);
    if (!s->view)
        return table_unite(table, &pairs, a);
    *table = pairs;
    return true;
}

void index_put_layer(tamis_index *x, struct layer *layer, const struct layer_record *r)
{
    layer->id = r->id, layer->slot = r->slot, layer->capacity = r->capacity;
    layer->load = r->load, layer->count = r->count, layer->fpp = r->fpp, layer->born = r->born;
    index_put_back(x, layer);
}

static bool load_layer(tamis_index *x, const struct source *s, uint32_t number)
{
    const tamis_allocator *a = &x->allocator;
    struct layer_record r = index_layer_record(s->head, number);
    struct layer *layer = layer_new(a, s->head->parts);
    bool made = layer != NULL;
    for (uint32_t i = 0; made && i < s->head->parts; i++) {
        uint32_t owner = number * s->head->parts + i;
        struct record record = index_record(s->head, owner);
        struct part *part = &layer->part[i];
        if (record.units)
            part->vector =
                vector_load(s->c, &s->head->head, &record, owner, s->view, &x->family, a);
        made = record.units ? part->vector != NULL : load_table(s, &part->table, owner, a);
    }
    if (!made) {
        layer_free(layer, a);
        return false;
    }
    index_put_layer(x, layer, &r);
    return true;
}

static tamis_error load_parts(tamis_index *x, const struct source *s)
{
    const struct head *head = &s->head->head;
    x->read_only |= s->view;
    for (uint32_t i = 0; i < head->n; i++)
        if (!load_layer(x, s, i))
            return TAMIS_ENOMEM;
    struct removing w = index_removing(x);
    return head->pending ? pending_load(s->c, head, &w) : TAMIS_OK;
}

tamis_error index_from_head(tamis_index **out, const struct container *c,
                            const struct index_head *head, const tamis_open_options *options,
                            const uint8_t key[TAMIS_KEY_LEN])
{
    const tamis_allocator *a = open_allocator(options);
    tamis_index *x;
    tamis_error e = index_make(&x, a, &head->set, head->names, (size_t)head->names_len,
                               (uint32_t)max_u64(4, head->head.n));
    if (e != TAMIS_OK)
        return e;
    e = family_init(&x->family, a, c->hash, key);
    if (e != TAMIS_OK) {
        tamis_index_free(x);
        return e;
    }
    if (options && options->clock) {
        x->clock = options->clock;
        x->clock_context = options->clock_context;
    }
    x->next_id = head->head.next_id;
    x->grown = head->head.grown;
    x->forecast = head->head.forecast;
    x->family.has_key = c->has_key;
    x->bits_only = x->read_only = c->bits_only;
    *out = x;
    return TAMIS_OK;
}

static tamis_error load(tamis_index **out, const struct source *s,
                        const tamis_open_options *options, tamis_reason *reason)
{
    uint8_t key[TAMIS_KEY_LEN];
    tamis_index *x;
    tamis_error e = container_key(s->c, options ? options->key : NULL, key, reason);
    if (e != TAMIS_OK)
        return e;
    e = index_from_head(&x, s->c, s->head, options, key);
    if (e != TAMIS_OK)
        return fail(reason, e, "no memory for an index");
    e = load_parts(x, s);
    if (e != TAMIS_OK) {
        tamis_index_free(x);
        return fail(reason, e, "%s", load_wrong(e));
    }
    *out = x;
    return TAMIS_OK;
}

tamis_error tamis_index_decode(tamis_index **out, const void *data, size_t len,
                               const tamis_open_options *options, tamis_reason *reason)
{
    struct container c;
    struct index_head head;
    tamis_error e = index_open(&c, &head, data, len, reason);
    if (e == TAMIS_OK)
        e = index_check(&c, &head, reason);
    struct source source = {&c, &head, false};
    return e == TAMIS_OK ? load(out, &source, options, reason) : e;
}

tamis_error index_from_mapping(tamis_index **out, struct mapping mapping,
                               const tamis_open_options *options, tamis_reason *reason)
{
    struct container c;
    struct index_head head;
    tamis_error e = index_open(&c, &head, mapping.data, mapping.len, reason);
    if (e == TAMIS_OK)
        e = open_checks_all(options, &c) ? index_check(&c, &head, reason)
                                         : pending_check_mapped(&c, &head.head, reason);
    struct source source = {&c, &head, true};
    if (e == TAMIS_OK)
        e = load(out, &source, options, reason);
    if (e == TAMIS_OK)
        (*out)->mapping = mapping;
    return e;
}
