/*
 * Gathering the values of a segment: a set of digests for each relation, exact, by open addressing. A
 * segment of 70,000 records has tables of some MiB, so a record costs a cache miss for each relation:
 * digests wait in batches with their slots on the way.
 */
#include "catalog.h"
#include "tamis/catalog.h"

#define SET_FIRST UINT64_C(256) /* slots */

/* ---- sets ------------------------------------------------------------------------------------ */

ALWAYS_INLINE tamis_digest *set_slots(const struct digest_set *set)
{
    return set->memory.data;
}

/* By the first bits, as a vector's first probe: what is listed in order is added in order. */
ALWAYS_INLINE uint64_t set_home(const struct digest_set *set, tamis_digest d)
{
    return mul_high(d.a, set->size);
}

static void set_put(struct digest_set *set, tamis_digest d)
{
    tamis_digest *slots = set_slots(set);
    uint64_t i = set_home(set, d);
    while (slots[i].a | slots[i].b) {
        if (slots[i].a == d.a && slots[i].b == d.b)
            return;
        i = (i + 1) & (set->size - 1);
    }
    slots[i] = d;
    set->n++;
}

/* Slots for so many. */
static uint64_t set_size(uint64_t n)
{
    uint64_t size = SET_FIRST;
    while (size - size / 4 <= n)
        size *= 2;
    return size;
}

static bool set_room(struct digest_set *set, const tamis_allocator *a, uint64_t more)
{
    uint64_t size = set_size(set->n + more);
    if (size <= set->size)
        return true;
    struct digest_set larger = {.size = size, .zero = set->zero};
    size_t bytes;
    if (!mul_size((size_t)size, sizeof(tamis_digest), &bytes) ||
        !block_new(a, bytes, &larger.memory))
        return false;
    const tamis_digest *slots = set_slots(set);
    for (uint64_t i = 0; i < set->size; i++)
        if (slots[i].a | slots[i].b)
            set_put(&larger, slots[i]);
    block_free(a, &set->memory);
    *set = larger;
    return true;
}

uint64_t digest_set_count(const struct digest_set *set)
{
    return set->n + set->zero;
}

void digest_set_list(const struct digest_set *set, tamis_digest *out)
{
    const tamis_digest *slots = set_slots(set);
    if (set->zero)
        *out++ = (tamis_digest){0, 0};
    for (uint64_t i = 0; i < set->size; i++)
        if (slots[i].a | slots[i].b)
            *out++ = slots[i];
}

/* A table much larger than what was in it goes, so that one large segment is not remembered. */
static void digests_clear(struct digest_set *set, const tamis_allocator *a)
{
    if (set->size > SET_FIRST && set->n < set->size / 16) {
        block_free(a, &set->memory);
        *set = (struct digest_set){0};
        return;
    }
    if (set->size)
        memset(set->memory.data, 0, (size_t)set->size * sizeof(tamis_digest));
    set->n = 0;
    set->zero = false;
}

/* ---- records --------------------------------------------------------------------------------- */

static size_t gather_size(uint32_t relations)
{
    return sizeof(tamis_gather) + relations * sizeof(struct digest_set);
}

tamis_error tamis_gather_new(tamis_gather **out, const tamis_schema *schema)
{
    uint32_t relations = schema_relations(schema);
    const tamis_allocator *a = schema->allocator;
    tamis_gather *g = mem_new0(a, 1, gather_size(relations));
    if (!g)
        return TAMIS_ENOMEM;
    g->schema = schema;
    g->allocator = *a;
    g->relations = relations;
    g->batch = mem_new(a, (size_t)GATHER_BATCH * relations, sizeof *g->batch);
    if (!g->batch) {
        tamis_gather_free(g);
        return TAMIS_ENOMEM;
    }
    *out = g;
    return TAMIS_OK;
}

void tamis_gather_free(tamis_gather *g)
{
    if (!g)
        return;
    tamis_allocator a = g->allocator;
    for (uint32_t i = 0; i < g->relations; i++)
        block_free(&a, &g->set[i].memory);
    block_free(&a, &g->scratch);
    mem_free(&a, g->batch, (size_t)GATHER_BATCH * g->relations, sizeof *g->batch);
    mem_free(&a, g, 1, gather_size(g->relations));
}

tamis_error gather_settle(tamis_gather *g)
{
    for (uint32_t r = 0; r < g->relations; r++) {
        struct digest_set *set = &g->set[r];
        if (!set_room(set, &g->allocator, g->waiting)) /* done twice does no harm */
            return TAMIS_ENOMEM;
        for (size_t i = 0; i < g->waiting; i++) {
            tamis_digest d = g->batch[i * g->relations + r];
            if (LIKELY(d.a | d.b))
                set_put(set, d);
            else
                set->zero = true;
        }
    }
    g->waiting = 0;
    return TAMIS_OK;
}

tamis_error tamis_gather_add(tamis_gather *g, const tamis_key *record)
{
    const tamis_schema *s = g->schema;
    if (g->waiting == GATHER_BATCH) {
        tamis_error e = gather_settle(g);
        if (e != TAMIS_OK)
            return e;
    }
    tamis_digest *d = g->batch + g->waiting * g->relations;
    for (uint32_t i = 0; i < s->attributes; i++)
        d[i] = value_digest(s->family, s->types[i], i, record[i]);
    for (uint32_t i = 0; i < s->combos; i++)
        d[s->attributes + i] = mixed_digest(s->masks[i], d);
    for (uint32_t r = 0; r < g->relations; r++)
        if (g->set[r].size)
            __builtin_prefetch(set_slots(&g->set[r]) + set_home(&g->set[r], d[r]), 1);
    g->waiting++;
    g->records++;
    return TAMIS_OK;
}

uint64_t tamis_gather_records(const tamis_gather *g)
{
    return g->records;
}

uint64_t tamis_gather_bytes(const tamis_gather *g)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < g->relations && g->records; r++)
        bytes += set_size(g->set[r].n + g->waiting) * sizeof(tamis_digest);
    return bytes;
}

void tamis_gather_clear(tamis_gather *g)
{
    for (uint32_t r = 0; r < g->relations; r++)
        digests_clear(&g->set[r], &g->allocator);
    g->waiting = 0;
    g->records = 0;
}
