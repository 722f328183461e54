/* What an index says of itself. */
#include "index.h"

uint64_t index_bytes(const tamis_index *x)
{
    const struct layers *layers = index_layers(x);
    uint64_t bytes = sizeof *x + x->names_len + removals_bytes(&x->removals);
    for (const struct layers *l = layers; l; l = l->retired)
        bytes += sizeof *l + l->room * sizeof *l->l;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct layer *layer = layers->l[i];
        bytes += sizeof *layer + layer->parts * sizeof *layer->part;
        for (uint32_t j = 0; j < layer->parts; j++)
            bytes += layer->part[j].vector ? vector_bytes(layer->part[j].vector)
                                           : table_bytes(&layer->part[j].table);
    }
    if (x->family.h3)
        bytes += K_MAX * sizeof *x->family.h3;
    return bytes + (x->guard ? sizeof *x->guard : 0);
}

/* Chance that the verification value of a record that the layer has not is one that it has. Sizes
   of attributes may differ: the smallest tells the most cautious. */
static double collisions(const tamis_index *x, const struct layer *layer, uint64_t mask)
{
    unsigned q = K_MAX;
    uint64_t m = UINT64_MAX;
    for (uint64_t left = mask; left; left &= left - 1) {
        const struct vector *v = layer->part[__builtin_ctzll(left)].vector;
        q = v->bits.k < q ? v->bits.k : q;
        m = min_u64(m, vector_positions_total(v));
    }
    tamis_plan_verify rates = tamis_plan_verify_rates((unsigned)__builtin_popcountll(mask), q,
                                                      (double)m, (double)layer->load);
    switch (x->set.value) {
    case TAMIS_VERIFY_BASIC:
        return rates.basic_mean;
    case TAMIS_VERIFY_ATTENUATED:
        return rates.attenuated_mean;
    default:
        return rates.mixed;
    }
}

static double verifier_rate(const tamis_index *x, const struct layer *layer, uint32_t i)
{
    const struct vector *v = layer->part[x->set.attributes + i].vector;
    double meet = collisions(x, layer, x->set.masks[i]);
    return v ? meet + (1 - meet) * vector_rate_now(v) : meet;
}

static double layer_rate(const tamis_index *x, const struct layer *layer, uint64_t mask, bool fresh)
{
    double rate = 1;
    for (uint32_t i = 0; i < x->set.verifiers; i++)
        if (x->set.masks[i] == mask || (fresh && (x->set.masks[i] & ~mask) == 0))
            rate *= verifier_rate(x, layer, i);
    for (uint64_t left = mask; left && fresh; left &= left - 1)
        rate *= vector_rate_now(layer->part[__builtin_ctzll(left)].vector);
    return layer->count ? rate : 0;
}

double tamis_index_rate(const tamis_index *x, uint64_t mask, bool fresh)
{
    const struct layers *layers = index_layers(x);
    double pass = 1;
    mask &= index_mask_all(x);
    mask = mask ? mask : index_mask_all(x);
    for (uint32_t i = 0; i < layers_count(layers); i++)
        pass *= 1 - layer_rate(x, layers->l[i], mask, fresh);
    return 1 - pass;
}

void tamis_index_brief(const tamis_index *x, tamis_records_info *info)
{
    const struct layers *layers = index_layers(x);
    const struct settings *set = &x->set.grow;
    *info = (tamis_records_info){
        .attributes = x->set.attributes,
        .combos = x->set.verifiers ? x->set.verifiers - 1 : 0,
        .verifier = x->set.verifier,
        .value = x->set.value,
        .growth = set->growth,
        .layout = set->layout,
        .hash = x->family.hash,
        .deletable = set->deletable,
        .read_only = x->read_only,
        .bits_only = x->bits_only,
        .has_key = x->family.has_key,
        .bytes = x->mapping.data ? x->mapping.len : index_bytes(x),
        .layers = layers_count(layers),
        .pending = atomic_load(&x->removals.total),
        .fpp = set->fpp,
        .expansion = set->expansion,
        .memory_limit = set->memory_limit,
    };
    info->records = x->stored - info->pending;
    for (uint32_t i = 0; i < info->layers; i++) {
        const struct layer *layer = layers->l[i];
        info->capacity += layer->capacity;
        for (uint32_t j = 0; j < layer->parts; j++)
            if (layer->part[j].vector)
                info->bits += vector_positions_total(layer->part[j].vector);
    }
    if (set->items_max && set->items_max < info->capacity)
        info->capacity = set->items_max;
}

void tamis_index_info(const tamis_index *x, tamis_records_info *info)
{
    tamis_index_brief(x, info);
    for (uint32_t i = 0; i < info->attributes; i++) {
        double rate = tamis_index_rate(x, UINT64_C(1) << i, true);
        info->fpp_attribute = rate > info->fpp_attribute ? rate : info->fpp_attribute;
    }
    info->fpp_fresh = tamis_index_rate(x, 0, true);
    info->fpp_record = tamis_index_rate(x, 0, false);
}

tamis_error tamis_index_limit(tamis_index *x, uint64_t memory_limit)
{
    if (x->read_only)
        return TAMIS_EREADONLY;
    x->set.grow.memory_limit = memory_limit;
    return TAMIS_OK;
}

const char *tamis_index_name(const tamis_index *x, uint32_t i)
{
    return i < x->set.attributes ? index_name(x, i) : NULL;
}

bool tamis_index_attribute_info(const tamis_index *x, uint32_t i, tamis_attribute_info *info)
{
    const struct layers *layers = index_layers(x);
    if (i >= x->set.attributes)
        return false;
    *info = (tamis_attribute_info){.name = index_name(x, i), .type = x->set.types[i]};
    for (uint32_t j = 0; j < layers_count(layers); j++) {
        const struct vector *v = layers->l[j]->part[i].vector;
        info->bits += vector_positions_total(v);
        info->distinct += tamis_plan_items((int)x->set.grow.layout, v->bits.units, v->bits.k,
                                           vector_count_ones(v));
    }
    info->fpp = tamis_index_rate(x, UINT64_C(1) << i, true);
    return true;
}

uint64_t tamis_index_combo(const tamis_index *x, uint32_t i)
{
    return x->set.verifiers && i < x->set.verifiers - 1 ? x->set.masks[i + 1] : 0;
}

bool tamis_index_key(const tamis_index *x, uint8_t key[TAMIS_KEY_LEN])
{
    if (x->family.has_key)
        memcpy(key, x->family.key, TAMIS_KEY_LEN);
    return x->family.has_key;
}
