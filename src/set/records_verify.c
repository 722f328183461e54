/*
 * What a layer keeps of a record: the digests of its attributes, and for each verifier one value of
 * 64 bits made from the digests of its attributes.
 *
 *   mixed        a chain of multiplications over the digests. Two records collide with 2^-64.
 *   basic        V = sum of H_ij, the j-th address of attribute i, 1..m (Xiao and Hua, section 3.2)
 *   attenuated   W = sum of H_ij 2^(q-j), the published sum of H_ij / 2^j in steps of 2^-q, q the
 *                most probes of an attribute in the layer
 *
 * The sums are taken modulo 2^64. Addresses are those of a spread vector with the attribute's bits
 * and probes in any layout: the k bits of a block carry too little information. They depend on the
 * sizes, so the value of a record differs between layers.
 */
#include "set.h"

#include "hash/types.h"

#define VALUE_MIX UINT64_C(0xA0761D6478BD642F)
#define VALUE_A   UINT64_C(0xE7037ED1A0B428DB)
#define VALUE_B   UINT64_C(0x8EBC6AF09C88C6E3)

static uint64_t value_mixed(uint64_t mask, const tamis_digest *record)
{
    uint64_t value = mask * GOLDEN;
    for (; mask; mask &= mask - 1) {
        tamis_digest d = record[__builtin_ctzll(mask)];
        value = mul_fold(value ^ d.a, VALUE_MIX ^ d.b);
    }
    return value;
}

static uint64_t value_summed(const struct set *s, const struct layer *layer, uint64_t mask,
                             const tamis_digest *record, bool attenuated)
{
    uint64_t positions[K_MAX], sum = 0;
    unsigned q = 0;
    for (uint32_t i = 0; i < s->stack->form->attributes && attenuated; i++)
        q = layer->part[i].vector->bits.k > q ? layer->part[i].vector->bits.k : q;
    for (; mask; mask &= mask - 1) {
        unsigned i = (unsigned)__builtin_ctzll(mask);
        const struct vector *v = layer->part[i].vector;
        set_family(s)->probe(set_family(s), record[i], vector_positions_total(v), v->bits.k,
                             positions);
        for (unsigned j = 0; j < v->bits.k; j++)
            sum += (positions[j] + 1) << (attenuated ? q - 1 - j : 0);
    }
    return sum;
}

static tamis_digest digest_of(uint64_t value)
{
    return (tamis_digest){mix64(value + VALUE_A), mix64(value ^ VALUE_B)};
}

tamis_digest mixed_digest(uint64_t mask, const tamis_digest *record)
{
    return digest_of(value_mixed(mask, record));
}

tamis_digest part_digest(const struct set *s, const struct layer *layer, uint32_t part,
                         const tamis_digest *record)
{
    if (part < set_width(s))
        return record[part];
    uint64_t mask = s->stack->form->masks[part - s->stack->form->attributes];
    uint64_t value = s->stack->form->value == TAMIS_VERIFY_MIXED
                         ? value_mixed(mask, record)
                         : value_summed(s, layer, mask, record,
                                        s->stack->form->value == TAMIS_VERIFY_ATTENUATED);
    if (s->stack->form->verifier == TAMIS_VERIFIER_TABLE)
        return (tamis_digest){value, 0};
    return digest_of(value);
}

uint32_t layer_spots(const struct set *s, struct layer *layer, const tamis_digest *record,
                     struct spot *out)
{
    for (uint32_t i = 0; i < layer->parts; i++) {
        struct part *part = &layer->part[i];
        out[i].vector = part->vector;
        out[i].table = part->vector ? NULL : &part->table;
        out[i].digest = part_digest(s, layer, i, record);
    }
    return layer->parts;
}

bool spot_has(const struct spot *spot)
{
    return spot->vector ? spot->vector->bits.kernel->has_one(&spot->vector->bits, spot->digest)
                        : table_get(spot->table, spot->digest.a) != 0;
}

void spots_prefetch(const struct spot *spots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (spots[i].vector)
            vector_fetch(spots[i].vector, &spots[i].digest, 1);
        else
            table_prefetch(spots[i].table, spots[i].digest.a);
}

/* ---- digests of values ----------------------------------------------------------------------- */

/* The number of the attribute distinguishes equal values, bijectively in each word, so that
   nothing collides that did not collide before. Adding or XORing it would not be enough: values
   close to each other in one attribute would be close in the other, and be confused in both at
   once. */
static tamis_digest digest_in(tamis_digest d, uint64_t attribute)
{
    return (tamis_digest){mix64(d.a + (attribute + 1) * VALUE_A),
                          mix64(d.b + (attribute + 1) * VALUE_B)};
}

tamis_digest normal_digest(const struct family *family, uint32_t attribute, tamis_key normal)
{
    if (!normal.data) /* the empty value of an attribute that does not exist */
        return digest_in(family_digest(family, "", 0), (uint64_t)attribute + TAMIS_ATTRIBUTES_MAX);
    return digest_in(family_digest(family, normal.data, normal.len), attribute);
}

tamis_digest value_digest(const struct family *family, tamis_type type, uint32_t attribute,
                          tamis_key value)
{
    char normal[NORMAL_ROOM];
    return normal_digest(family, attribute, value_normal(type, value, normal));
}

tamis_digest value_part_digest(const struct family *family, uint32_t attribute, tamis_key part)
{
    return digest_in(family_digest(family, part.data, part.len),
                     (uint64_t)attribute + 2 * TAMIS_ATTRIBUTES_MAX);
}

tamis_digest tamis_records_digest(const tamis_records *x, uint32_t attribute, tamis_key value)
{
    const struct record_form *form = x->set.stack->form;
    tamis_type type = attribute < form->attributes ? form->types[attribute] : TAMIS_BYTES;
    return value_digest(set_family(&x->set), type, attribute, value);
}

void tamis_records_digest_many(const tamis_records *x, const tamis_key *records, size_t n,
                               tamis_digest *out)
{
    uint32_t p = x->set.stack->form->attributes;
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < p; j++)
            out[i * p + j] = tamis_records_digest(x, j, records[i * p + j]);
}
