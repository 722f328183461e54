/* Facts about a catalog and its relations. See catalog.h. */
#include "catalog_bytes.h"

#include "base/bytes.h"
#include "tamis/catalog.h"
#include "tamis/plan.h"

void catalog_dispose(tamis_catalog *c)
{
    const tamis_allocator *a = &c->allocator;
    family_free(&c->family, a);
    mem_free(a, c->shapes, c->head.shapes, sizeof *c->shapes);
    mem_free(a, c->strips, c->head.strips, sizeof *c->strips);
    mem_free(a, c->fronts, c->head.fronts, sizeof *c->fronts);
    mem_free(a, c->checked, CHECKED_WORDS(c, CATALOG_SUMS), sizeof *c->checked);
    mem_free(a, c->checked_sums, CHECKED_WORDS(c, CATALOG_TOPS), sizeof *c->checked_sums);
    mem_free(a, c, 1, sizeof *c);
}

void tamis_catalog_close(tamis_catalog *c)
{
    if (!c)
        return;
    struct mapping mapping = c->mapping;
    catalog_dispose(c);
    mapping_free(&mapping);
}

void tamis_catalog_rest(const tamis_catalog *c)
{
    mapping_rest(&c->mapping);
}

const tamis_schema *tamis_catalog_schema(const tamis_catalog *c)
{
    return &c->schema;
}

bool tamis_catalog_key(const tamis_catalog *c, uint8_t key[TAMIS_KEY_LEN])
{
    if (c->family.has_key)
        memcpy(key, c->family.secrets->key, TAMIS_KEY_LEN);
    return c->family.has_key;
}

uint64_t tamis_catalog_segments(const tamis_catalog *c)
{
    return c->head.segments;
}

const void *tamis_catalog_tag(const tamis_catalog *c, uint64_t segment, size_t *len)
{
    if (segment >= c->head.segments) {
        *len = 0;
        return NULL;
    }
    const uint8_t *at = c->data + c->table.tag_ends + segment * sizeof(uint64_t);
    uint64_t from = segment ? fetch_u64(at - sizeof(uint64_t)) : 0, end = fetch_u64(at);
    /* false: the file was modified since it was opened */
    bool there = from <= end && end <= c->head.tags_len;
    *len = there ? (size_t)(end - from) : 0;
    return there ? c->data + c->at[CATALOG_TAGS].offset + from : NULL;
}

const void *tamis_catalog_note(const tamis_catalog *c, size_t *len)
{
    *len = (size_t)c->head.note_len;
    return c->data + c->at[CATALOG_NOTE].offset;
}

uint64_t tamis_catalog_records(const tamis_catalog *c, uint64_t segment)
{
    return segment < c->head.segments
               ? get_u64(c->data + c->table.records + segment * sizeof(uint64_t))
               : 0;
}

uint64_t catalog_text(const tamis_catalog *c, uint64_t segment)
{
    return segment < c->head.segments
               ? get_u64(c->data + c->table.texts + segment * sizeof(uint64_t))
               : 0;
}

bool tamis_catalog_bounds(const tamis_catalog *c, uint64_t segment, uint32_t attribute,
                          tamis_range *bounds)
{
    if (segment >= c->head.segments ||
        !tamis_type_ordered(tamis_schema_type(&c->schema, attribute)))
        return false;
    *bounds = catalog_bounds(c, segment, attribute);
    return tamis_order_compare(bounds->low, bounds->high) <= 0;
}

void tamis_catalog_info(const tamis_catalog *c, tamis_catalog_facts *facts)
{
    *facts = (tamis_catalog_facts){.attributes = c->schema.attributes,
                                   .combos = c->schema.combos,
                                   .verifier = c->schema.verifier,
                                   .hash = c->family.hash,
                                   .has_key = c->family.has_key,
                                   .segments = c->head.segments,
                                   .bytes = c->len,
                                   .strips = c->head.strips,
                                   .fpp = c->schema.fpp};
    for (uint64_t i = 0; i < c->head.segments; i++) {
        facts->records += tamis_catalog_records(c, i);
        facts->text += catalog_text(c, i);
    }
}

static void strip_facts(const tamis_catalog *c, const struct catalog_strip *strip,
                        uint32_t relation, tamis_relation_facts *facts)
{
    const struct column_plan *plan = &c->shapes[strip->shape].plan;
    uint32_t before = STRIP_NONE;
    for (uint32_t i = 0; i < strip->n; i++) {
        uint32_t segment;
        if (!catalog_column_segment(c, strip->column + i, &segment, NULL) ||
            segment == STRIP_NONE || segment == before) /* the columns of a segment are adjacent */
            continue;
        before = segment;
        double rate = column_plan_rate(plan, catalog_distinct(c, segment, relation));
        if (relation >= c->schema.attributes)
            facts->fpp_now += rate;
        else if (rate > facts->fpp_now)
            facts->fpp_now = rate;
    }
    facts->strips++;
    facts->columns += strip->n;
    facts->bytes += strip_len(plan->units, strip->width);
    facts->rows = max_u64(facts->rows, plan->units);
    facts->hashes = plan->k > facts->hashes ? plan->k : facts->hashes;
}

static void front_facts(const tamis_catalog *c, uint32_t attribute, tamis_relation_facts *facts)
{
    uint64_t given = 0;
    for (uint32_t i = c->first_front[attribute]; i != STRIP_NONE; i = c->fronts[i].next) {
        const struct catalog_front *f = &c->fronts[i];
        facts->front_bytes += front_len(f);
        facts->front_keys += f->n;
        facts->front_fpp += front_rate(f);
        given += f->given;
    }
    facts->front_forgotten =
        given > facts->distinct ? 1 - (double)facts->distinct / (double)given : 0;
}

bool tamis_catalog_relation(const tamis_catalog *c, uint32_t i, tamis_relation_facts *facts)
{
    if (i >= schema_relations(&c->schema))
        return false;
    *facts = (tamis_relation_facts){.mask = schema_mask(&c->schema, i), .fpp = c->schema.fpp};
    for (uint32_t s = 0; s < c->head.shapes; s++)
        facts->shapes += c->shapes[s].relation == i;
    for (uint32_t s = c->first[i]; s != STRIP_NONE; s = c->strips[s].next)
        strip_facts(c, &c->strips[s], i, facts);
    for (uint64_t s = 0; s < c->head.segments; s++) {
        uint64_t distinct = catalog_distinct(c, s, i);
        if (distinct == DISTINCT_UNKNOWN)
            continue;
        facts->distinct += distinct;
        facts->distinct_most = max_u64(facts->distinct_most, distinct);
    }
    if (i < c->schema.attributes)
        front_facts(c, i, facts);
    return true;
}
