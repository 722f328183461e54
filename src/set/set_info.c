/* Facts about sets. */
#include "set.h"

uint64_t set_bytes(const struct set *s)
{
    const struct layers *layers = set_layers(s);
    uint64_t bytes = s->size + terms_bytes(set_terms(s)) + s->lines.bytes;
    if (!set_has_stack(s))
        return bytes;
    bytes += sizeof *s->stack + (set_stacked(s) ? sizeof *s->stack->more : 0) +
             removals_bytes(&s->stack->more->removals) + sizeof *layers +
             layers->room * (sizeof *layers->l + sizeof *layers->v);
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct layer *layer = layers->l[i];
        bytes += layer_size(layer->parts);
        for (uint32_t j = 0; j < layer->parts; j++)
            bytes += layer->part[j].vector ? vector_bytes(layer->part[j].vector)
                                           : table_bytes(&layer->part[j].table);
    }
    for (const struct matrix *m = atomic_load(&s->stack->more->matrix); m; m = m->retired)
        bytes += sizeof *m + m->memory.size;
    return bytes + (s->stack->form ? sizeof *s->stack->form + s->stack->form->names_len : 0);
}

tamis_kind set_kind(const struct set *s)
{
    return s->stack->form ? TAMIS_KIND_RECORDS : TAMIS_KIND_FILTER;
}

tamis_error set_limit(struct set *s, uint64_t memory_limit)
{
    tamis_error e = set_writable(s);
    if (e == TAMIS_OK)
        s->memory_limit = memory_limit, smooth_limit(s);
    return e;
}

uint64_t set_memory_limit(const struct set *s)
{
    return s->memory_limit;
}

bool set_key(const struct set *s, uint8_t key[TAMIS_KEY_LEN])
{
    if (set_family(s)->has_key)
        memcpy(key, set_family(s)->secrets->key, TAMIS_KEY_LEN);
    return set_family(s)->has_key;
}

uint64_t set_items(const struct set *s, uint32_t *parts)
{
    *parts = layers_count(set_layers(s)) + (set_lines(s) != NULL);
    return set_stored(s) - atomic_load(&s->stack->more->removals.total);
}

void set_brief(const struct set *s, tamis_filter_facts *facts)
{
    const struct layers *layers = set_layers(s);
    uint64_t pending = atomic_load(&s->stack->more->removals.total);
    *facts = (tamis_filter_facts){
        .growth = set_opt(s)->growth,
        .layout = set_opt(s)->layout,
        .hash = set_family(s)->hash,
        .deletable = set_opt(s)->deletable,
        .unique = set_opt(s)->unique,
        .read_only = s->read_only,
        .bits_only = s->bits_only,
        .has_key = set_family(s)->has_key,
        .items = set_stored(s) - pending,
        .pending = pending,
        .fpp = set_opt(s)->tolerate != 0 && set_opt(s)->fpp > 0 ? set_opt(s)->tolerate
                                                                : set_opt(s)->fpp,
        .bytes = s->stack->mapping.data ? s->stack->mapping.len : set_bytes(s),
        .expansion = set_opt(s)->expansion,
        .window = set_opt(s)->growth == TAMIS_WINDOW ? set_opt(s)->window : 0,
        .memory_limit = s->memory_limit,
    };
    for (uint32_t i = 0; i < layers_count(layers) * set_parts(s); i++) {
        const struct vector *v = set_part(s, i)->vector;
        if (i % set_parts(s) == 0)
            facts->capacity += layers->l[i / set_parts(s)]->capacity;
        if (!v)
            continue;
        facts->vectors++;
        facts->bits += vector_positions_total(v);
        facts->hashes = v->bits.k > facts->hashes ? v->bits.k : facts->hashes;
    }
    if (set_lines(s)) {
        uint64_t taken = 0;
        facts->capacity = /* it grows with what is added */
            max_u64(set_opt(s)->capacity, facts->capacity + set_lines(s)->keys);
        facts->bits += lines_bits(set_lines(s), &taken);
    }
    if (set_opt(s)->items_max && set_opt(s)->items_max < facts->capacity)
        facts->capacity = set_opt(s)->items_max;
}

/* ---- filters --------------------------------------------------------------------------------- */

void tamis_filter_brief(const tamis_filter *f, tamis_filter_facts *info)
{
    set_brief(&f->set, info);
}

void tamis_filter_info(const tamis_filter *f, tamis_filter_facts *info)
{
    const struct layers *layers = set_layers(&f->set);
    double pass = 1;
    uint64_t ones = 0;
    tamis_filter_brief(f, info);
    for (uint32_t i = 0; i < info->vectors; i++) {
        const struct vector *v = layers->v[i];
        uint64_t here = vector_count_ones(v);
        info->distinct += plan_items(v->bits.kernel->layout, v->bits.units, v->bits.k, here);
        ones += here;
        pass *= 1 - vector_rate_now(v);
    }
    const struct lines *lines = set_lines(&f->set);
    info->fpp_now = 1 - pass * (1 - (lines ? lines_rate(lines) : 0));
    if (lines) /* a plain filter has each once */
        info->distinct += info->deletable ? lines_distinct(lines) : (double)lines->keys;
    if (lines)
        lines_bits(lines, &ones);
    info->fill = ones ? (double)ones / (double)info->bits : 0;
}

bool tamis_filter_vector(const tamis_filter *f, uint32_t i, tamis_vector_facts *info)
{
    const struct layers *layers = set_layers(&f->set);
    if (i >= layers_count(layers))
        return false;
    const struct vector *v = layers->v[i];
    *info = (tamis_vector_facts){
        .bits = vector_positions_total(v),
        .capacity = v->capacity,
        .items = v->count,
        .ones = vector_count_ones(v),
        .hashes = v->bits.k,
        .fpp = v->fpp,
    };
    return true;
}

tamis_error tamis_filter_limit(tamis_filter *f, uint64_t memory_limit)
{
    return set_limit(&f->set, memory_limit);
}

bool tamis_filter_key(const tamis_filter *f, uint8_t key[TAMIS_KEY_LEN])
{
    return set_key(&f->set, key);
}

bool tamis_filter_same_family(const tamis_filter *a, const tamis_filter *b)
{
    return family_equal(set_family(&a->set), set_family(&b->set));
}

/* ---- records --------------------------------------------------------------------------------- */

/* Probability that the verification value of a record that the layer does not have equals a
   stored one. Sizes of attributes may differ: the smallest gives a safe estimate. */
static double collisions(const struct record_form *form, const struct layer *layer, uint64_t mask)
{
    unsigned q = K_MAX;
    uint64_t m = UINT64_MAX;
    for (uint64_t left = mask; left; left &= left - 1) {
        const struct vector *v = layer->part[__builtin_ctzll(left)].vector;
        q = v->bits.k < q ? v->bits.k : q;
        m = min_u64(m, vector_positions_total(v));
    }
    tamis_plan_verify rates =
        plan_verify_rates((unsigned)__builtin_popcountll(mask), q, (double)m, (double)layer->load);
    return form->value == TAMIS_VERIFY_BASIC        ? rates.basic_mean
           : form->value == TAMIS_VERIFY_ATTENUATED ? rates.attenuated_mean
                                                    : rates.mixed;
}

static double layer_rate_now(const struct record_form *form, const struct layer *layer,
                             uint64_t mask, bool fresh)
{
    double rate = 1;
    for (uint32_t i = 0; i < form->verifiers; i++) {
        const struct vector *v = layer->part[form->attributes + i].vector;
        if (form->masks[i] != mask && !(fresh && (form->masks[i] & ~mask) == 0))
            continue;
        double meet = collisions(form, layer, form->masks[i]);
        rate *= v ? meet + (1 - meet) * vector_rate_now(v) : meet;
    }
    for (uint64_t left = mask; left && fresh; left &= left - 1)
        rate *= vector_rate_now(layer->part[__builtin_ctzll(left)].vector);
    return layer->count ? rate : 0;
}

double tamis_records_rate(const tamis_records *x, uint64_t mask, bool fresh)
{
    const struct record_form *form = x->set.stack->form;
    const struct layers *layers = set_layers(&x->set);
    double pass = 1;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        pass *= 1 - layer_rate_now(form, layers->l[i], form_mask_of(form, mask), fresh);
    return 1 - pass;
}

void tamis_records_brief(const tamis_records *x, tamis_records_facts *info)
{
    const struct record_form *form = x->set.stack->form;
    *info = (tamis_records_facts){
        .attributes = form->attributes,
        .combos = form->verifiers ? form->verifiers - 1 : 0,
        .verifier = form->verifier,
        .value = form->value,
        .layers = layers_count(set_layers(&x->set)),
    };
    set_brief(&x->set, &info->set);
}

void tamis_records_info(const tamis_records *x, tamis_records_facts *info)
{
    tamis_records_brief(x, info);
    for (uint32_t i = 0; i < info->attributes; i++) {
        double rate = tamis_records_rate(x, UINT64_C(1) << i, true);
        info->fpp_attribute = rate > info->fpp_attribute ? rate : info->fpp_attribute;
    }
    info->fpp_fresh = tamis_records_rate(x, 0, true);
    info->fpp_record = tamis_records_rate(x, 0, false);
}

tamis_error tamis_records_limit(tamis_records *x, uint64_t memory_limit)
{
    return set_limit(&x->set, memory_limit);
}

bool tamis_records_key(const tamis_records *x, uint8_t key[TAMIS_KEY_LEN])
{
    return set_key(&x->set, key);
}

bool tamis_records_attribute_info(const tamis_records *x, uint32_t i, tamis_attribute_facts *info)
{
    const struct record_form *form = x->set.stack->form;
    const struct layers *layers = set_layers(&x->set);
    if (i >= form->attributes)
        return false;
    *info = (tamis_attribute_facts){.name = form_name(form, i), .type = form->types[i]};
    for (uint32_t j = 0; j < layers_count(layers); j++) {
        const struct vector *v = layers->l[j]->part[i].vector;
        info->bits += vector_positions_total(v);
        info->distinct +=
            plan_items(set_opt(&x->set)->layout, v->bits.units, v->bits.k, vector_count_ones(v));
    }
    info->fpp = tamis_records_rate(x, UINT64_C(1) << i, true);
    return true;
}
