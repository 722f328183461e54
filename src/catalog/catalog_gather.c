/*
 * Gathering the values of a segment: a set of digests for each relation, exact, by open addressing. A
 * segment of 70,000 records has tables of some MiB, so a record costs a cache miss for each relation:
 * digests wait in batches with their slots on the way.
 */
#include "catalog.h"
#include "hash/types.h"
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
    if (LIKELY(set->n + more < set->size - set->size / 4))
        return true;
    uint64_t size = set_size(set->n + more);
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
static void set_clear(struct digest_set *set, const tamis_allocator *a)
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

/* Nothing gathered, but for the sets. */
static void gather_start(tamis_gather *g)
{
    for (uint32_t i = 0; i < g->schema->ordered; i++)
        g->bounds[i] = BOUNDS_NONE;
    for (uint32_t r = 0; r < g->relations; r++)
        g->unknown[r] = r < g->schema->attributes && g->schema->bounds_only[r];
    g->waiting = 0;
    g->records = g->text = g->values_len = 0;
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
    for (uint32_t i = 0; i < schema->combos; i++)
        g->combined |= schema->masks[i];
    g->whole = mem_new(a, (size_t)LIST_MAX * schema->attributes, sizeof *g->whole);
    if (!g->whole) {
        tamis_gather_free(g);
        return TAMIS_ENOMEM;
    }
    gather_start(g);
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
    mem_free(&a, g->whole, (size_t)LIST_MAX * g->schema->attributes, sizeof *g->whole);
    mem_free(&a, g, 1, gather_size(g->relations));
}

tamis_error gather_settle(tamis_gather *g)
{
    for (size_t i = 0; i < g->waiting; i++) { /* done twice does no harm */
        struct digest_set *set = &g->set[g->batch[i].relation];
        tamis_digest d = g->batch[i].digest;
        if (!set_room(set, &g->allocator, 1))
            return TAMIS_ENOMEM;
        if (LIKELY(d.a | d.b))
            set_put(set, d);
        else
            set->zero = true;
    }
    g->waiting = 0;
    return TAMIS_OK;
}

static void gather_key(tamis_gather *g, uint32_t relation, tamis_digest d)
{
    if (g->waiting == GATHER_BATCH && gather_settle(g) != TAMIS_OK) {
        g->failed = true;
        return;
    }
    if (g->set[relation].size)
        __builtin_prefetch(set_slots(&g->set[relation]) + set_home(&g->set[relation], d), 1);
    g->batch[g->waiting++] = (struct gathered){d, relation};
}

struct giving {
    tamis_gather *gather;
    uint32_t attribute;
};

static void give_part(void *context, tamis_key key, bool part)
{
    const struct giving *to = context;
    (void)part;
    gather_key(to->gather, to->attribute,
               value_part_digest(to->gather->schema->family, to->attribute, key));
}

static void widen(tamis_range *bounds, tamis_order order)
{
    if (tamis_order_compare(order, bounds->low) < 0)
        bounds->low = order;
    if (tamis_order_compare(order, bounds->high) > 0)
        bounds->high = order;
}

/* All keys of a value; in a combination it counts as a whole. */
static void gather_value(tamis_gather *g, uint32_t at, tamis_key value, tamis_digest *whole)
{
    const tamis_schema *s = g->schema;
    const struct type *type = &types[s->types[at]];
    char room[NORMAL_ROOM];
    tamis_key normal = value_normal(s->types[at], value, room);
    g->values_len += value.len;
    if (s->order_at[at] != ORDER_NONE && normal.data == room)
        widen(&g->bounds[s->order_at[at]], type->order(room, normal.len));
    bool parts =
        type->parts && value.data && type->parts(value, give_part, &(struct giving){g, at}) > 0;
    bool keyless = s->bounds_only[at] || (parts && type->splits);
    if (keyless && !(g->combined >> at & 1))
        return;
    *whole = normal_digest(s->family, at, normal);
    if (!keyless)
        gather_key(g, at, *whole);
}

/* Every choice of one value for each attribute, counted like the digits of a number. */
static void gather_combo(tamis_gather *g, uint32_t combo, const tamis_values *record)
{
    const tamis_schema *s = g->schema;
    uint64_t mask = s->masks[combo];
    size_t n = 1;
    tamis_digest chosen[TAMIS_ATTRIBUTES_MAX];
    for (uint64_t left = mask; left && n <= LIST_MAX; left &= left - 1) {
        size_t here = record[__builtin_ctzll(left)].n;
        n = here > LIST_MAX ? LIST_MAX + 1 : n * (here ? here : 1);
    }
    g->unknown[s->attributes + combo] |= n > LIST_MAX;
    for (size_t i = 0; i < n && n <= LIST_MAX; i++) {
        size_t rest = i;
        for (uint64_t left = mask; left; left &= left - 1) {
            uint32_t at = (uint32_t)__builtin_ctzll(left);
            size_t here = record[at].n ? record[at].n : 1;
            chosen[at] = g->whole[LIST_MAX * at + rest % here];
            rest /= here;
        }
        gather_key(g, s->attributes + combo, mixed_digest(mask, chosen));
    }
}

tamis_error tamis_gather_add_lists(tamis_gather *g, const tamis_values *record)
{
    const tamis_schema *s = g->schema;
    tamis_digest past;
    g->failed = false;
    for (uint32_t i = 0; i < s->attributes; i++) {
        tamis_digest *whole = g->whole + LIST_MAX * i;
        if (record[i].n == 0)
            gather_value(g, i, (tamis_key){NULL, 0}, whole);
        for (size_t j = 0; j < record[i].n; j++)
            gather_value(g, i, record[i].value[j], j < LIST_MAX ? &whole[j] : &past);
    }
    for (uint32_t i = 0; i < s->combos; i++)
        gather_combo(g, i, record);
    if (g->failed)
        return TAMIS_ENOMEM;
    g->records++;
    return TAMIS_OK;
}

tamis_error tamis_gather_add(tamis_gather *g, const tamis_key *record)
{
    tamis_values values[TAMIS_ATTRIBUTES_MAX];
    for (uint32_t i = 0; i < g->schema->attributes; i++)
        values[i] = (tamis_values){&record[i], 1};
    return tamis_gather_add_lists(g, values);
}

void tamis_gather_text(tamis_gather *g, uint64_t bytes)
{
    g->text += bytes;
}

uint64_t tamis_gather_records(const tamis_gather *g)
{
    return g->records;
}

uint64_t tamis_gather_bytes(tamis_gather *g)
{
    uint64_t bytes = 0;
    gather_settle(g);
    for (uint32_t r = 0; r < g->relations && g->records; r++)
        bytes += set_size(g->set[r].n) * sizeof(tamis_digest);
    return bytes;
}

void tamis_gather_clear(tamis_gather *g)
{
    for (uint32_t r = 0; r < g->relations; r++)
        set_clear(&g->set[r], &g->allocator);
    gather_start(g);
}
