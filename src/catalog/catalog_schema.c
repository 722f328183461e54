/* The attributes and combinations of a catalog. See catalog.h. */
#include "catalog.h"

#include "base/err.h"
#include "tamis/catalog.h"

/* ---- making ---------------------------------------------------------------------------------- */

static tamis_error take_attributes(tamis_schema *s, const tamis_catalog_options *o,
                                   tamis_reason *reason)
{
    if (s->attributes + o->n_attributes < 1 || !(o->attributes || o->n_attributes == 0) ||
        o->n_attributes > TAMIS_ATTRIBUTES_MAX - s->attributes)
        return fail(reason, TAMIS_EARG, "a catalog has 1 to %d attributes", TAMIS_ATTRIBUTES_MAX);
    for (size_t i = 0; i < o->n_attributes; i++) {
        const tamis_attribute *at = &o->attributes[i];
        tamis_error e = attribute_add(at, s->names, &s->names_len, s->attributes, reason);
        if (e != TAMIS_OK)
            return e;
        s->types[s->attributes] = at->type;
        s->bounds_only[s->attributes++] = at->bounds_only;
    }
    return TAMIS_OK;
}

static tamis_error take_combos(tamis_schema *s, const tamis_catalog_options *o,
                               tamis_reason *reason)
{
    if (o->no_combos || s->verifier == TAMIS_VERIFIER_NONE)
        return TAMIS_OK;
    for (size_t i = 0; i < o->n_combos; i++) {
        if (mask_listed(s->masks, s->combos, o->combos[i]))
            continue;
        if (s->combos == TAMIS_COMBOS_MAX)
            return fail(reason, TAMIS_EARG, "a catalog has at most %d combinations",
                        TAMIS_COMBOS_MAX);
        s->masks[s->combos++] = o->combos[i];
    }
    return TAMIS_OK;
}

/* Attributes whose whole values are not keys are rarely queried together with others. */
static bool keyless(const tamis_schema *s, uint32_t attribute)
{
    return s->bounds_only[attribute] || s->types[attribute] == TAMIS_WORDS;
}

/* All pairs of two or three attributes. */
static void take_pairs(tamis_schema *s, const tamis_catalog_options *o)
{
    uint32_t p = s->attributes;
    if (o->no_combos || o->n_combos || s->verifier == TAMIS_VERIFIER_NONE || p > 3)
        return;
    for (uint32_t i = 0; i < p; i++)
        for (uint32_t j = i + 1; j < p; j++)
            if (!keyless(s, i) && !keyless(s, j))
                s->masks[s->combos++] = UINT64_C(1) << i | UINT64_C(1) << j;
}

tamis_error schema_extend(tamis_schema *s, const tamis_catalog_options *o, tamis_reason *reason)
{
    tamis_error e = take_attributes(s, o, reason);
    if (e == TAMIS_OK)
        e = take_combos(s, o, reason);
    if (e != TAMIS_OK)
        return e;
    const char *wrong = schema_wrong(s);
    return wrong ? fail(reason, TAMIS_EARG, "invalid settings: %s", wrong) : TAMIS_OK;
}

tamis_error schema_from(tamis_schema *s, const tamis_catalog_options *o, tamis_reason *reason)
{
    *s = (tamis_schema){.verifier = o->verifier ? o->verifier : TAMIS_VERIFIER_FILTER,
                        .fpp = o->fpp == 0 ? CATALOG_FPP : o->fpp,
                        .segments = o->segments ? o->segments : 1000};
    tamis_error e = schema_extend(s, o, reason);
    if (e == TAMIS_OK)
        take_pairs(s, o);
    return e;
}

tamis_error schema_like(tamis_schema *s, const tamis_catalog_options *o, tamis_reason *reason)
{
    *s = *o->like;
    s->fpp = o->fpp == 0 ? s->fpp : o->fpp;
    s->segments = o->segments ? o->segments : s->segments;
    const char *wrong = schema_wrong(s);
    return wrong ? fail(reason, TAMIS_EARG, "impossible settings: %s", wrong) : TAMIS_OK;
}

const char *schema_wrong(tamis_schema *s)
{
    if (s->attributes < 1 || s->attributes > TAMIS_ATTRIBUTES_MAX)
        return "the number of attributes is out of range";
    if (s->verifier != TAMIS_VERIFIER_NONE && s->verifier != TAMIS_VERIFIER_FILTER)
        return "the verifier must be none or filter";
    if (s->combos > (s->verifier == TAMIS_VERIFIER_NONE ? 0 : TAMIS_COMBOS_MAX))
        return "the number of combinations is out of range";
    if (!(s->fpp > 0 && s->fpp < 1))
        return "the rate must be between 0 and 1";
    if (s->segments == 0 || s->segments > SEGMENTS_MAX)
        return "the expected number of segments is out of range";
    uint64_t all = UINT64_MAX >> (TAMIS_ATTRIBUTES_MAX - s->attributes);
    for (uint32_t i = 0; i < s->combos; i++)
        if (combo_wrong(s->masks, i, all))
            return "a combination needs two or more of the attributes";
    s->ordered = 0;
    for (uint32_t i = 0; i < s->attributes; i++) {
        bool ordered = tamis_type_ordered(s->types[i]);
        if ((unsigned)s->types[i] >= TAMIS_TYPES || (s->bounds_only[i] && !ordered))
            return "an attribute has an unknown type";
        s->order_at[i] = ordered ? (uint8_t)s->ordered++ : ORDER_NONE;
    }
    return names_wrong(s->names, s->names_len, s->attributes, s->name_at);
}

/* ---- asking ---------------------------------------------------------------------------------- */

tamis_error tamis_schema_attribute(const tamis_schema *s, const char *name, uint32_t *number,
                                   tamis_reason *reason)
{
    return attribute_find(s->names, s->attributes, name, number, reason);
}

uint32_t tamis_schema_attributes(const tamis_schema *s)
{
    return s->attributes;
}

const char *tamis_schema_name(const tamis_schema *s, uint32_t attribute)
{
    return attribute < s->attributes ? s->names + s->name_at[attribute] : NULL;
}

tamis_type tamis_schema_type(const tamis_schema *s, uint32_t attribute)
{
    return attribute < s->attributes ? s->types[attribute] : TAMIS_BYTES;
}

bool tamis_schema_bounds_only(const tamis_schema *s, uint32_t attribute)
{
    return attribute < s->attributes && s->bounds_only[attribute];
}

uint64_t tamis_schema_combo(const tamis_schema *s, uint32_t i)
{
    return i < s->combos ? s->masks[i] : 0;
}

bool tamis_schema_alike(const tamis_schema *x, const tamis_schema *y)
{
    return x->attributes == y->attributes && x->combos == y->combos &&
           x->names_len == y->names_len && memcmp(x->names, y->names, x->names_len) == 0 &&
           memcmp(x->types, y->types, x->attributes * sizeof *x->types) == 0 &&
           memcmp(x->bounds_only, y->bounds_only, x->attributes * sizeof *x->bounds_only) == 0 &&
           memcmp(x->masks, y->masks, x->combos * sizeof *x->masks) == 0 &&
           family_equal(x->family, y->family);
}

tamis_digest tamis_schema_digest(const tamis_schema *s, uint32_t attribute, tamis_key value)
{
    return value_digest(s->family, tamis_schema_type(s, attribute), attribute, value);
}

tamis_digest tamis_schema_part(const tamis_schema *s, uint32_t attribute, tamis_key part)
{
    return value_part_digest(s->family, attribute, part);
}

uint64_t schema_mask(const tamis_schema *s, uint32_t relation)
{
    return relation < s->attributes ? UINT64_C(1) << relation : s->masks[relation - s->attributes];
}

/* The expected segments share seven eighths of the rate. Each further segment gets a share of
   the rest that falls with their number, so that some is always left: with L segments, of which
   S were expected, a column has about (L/S)^-1.5 of the share of the first ones, which takes 0.7
   more bits per value for each doubling. */
double catalog_share(const tamis_schema *s, uint64_t live, double used)
{
    double planned = 0.875 * s->fpp / (double)s->segments, left = s->fpp - used;
    if (live < s->segments && left - planned >= 0.12 * s->fpp)
        return planned;
    double share = left / (2 * (double)max_u64(s->segments, live)), step = planned;
    while (step > share && step > 1e-300)
        step /= 2;
    return step;
}
