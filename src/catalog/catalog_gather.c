/*
 * Gathers the values of a segment: for each relation an exact set of digests, with open addressing.
 * A segment of 70,000 records has tables of a few MiB, so a record costs a cache miss per relation:
 * digests wait in batches while their slots are prefetched. So do the values of a few records, until
 * the slots of those seen recently, half a MiB of them, are there.
 */
#include "catalog.h"

#include "catalog_seen.h"
#include "hash/words.h"
#include "tamis/catalog.h"

#define SET_FIRST UINT64_C(256) /* slots */

/* ---- sets ------------------------------------------------------------------------------------ */

ALWAYS_INLINE tamis_digest *set_slots(const struct digest_set *set)
{
    return set->memory.data;
}

/* By the leading bits, like the first probe of a vector: digests listed in order are added in
   order. */
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

/* Number of slots for this many digests. */
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

/* A table much larger than its contents is freed, so that one large segment has no lasting
   effect. */
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

bool gather_digests(tamis_gather *g, uint32_t relation, const tamis_digest *digests, uint64_t n,
                    bool slots)
{
    struct digest_set *set = &g->set[relation];
    for (uint64_t i = 0; i < n; i++) {
        bool zero = !(digests[i].a | digests[i].b);
        if (!zero && !set_room(set, &g->allocator, 1))
            return false;
        if (!zero)
            set_put(set, digests[i]);
        set->zero |= zero && !slots;
    }
    return true;
}

/* ---- records --------------------------------------------------------------------------------- */

static size_t gather_size(uint32_t relations)
{
    return sizeof(tamis_gather) + relations * sizeof(struct digest_set);
}

/* Slots of an attribute, if this many have some. */
static uint32_t seen_slots(const tamis_schema *s, uint32_t attributes)
{
    uint64_t slots = s->memory / SEEN_SHARE / (attributes ? attributes : 1);
    return slots < SEEN_LEAST ? SEEN_LEAST : slots > SEEN_MOST ? SEEN_MOST : (uint32_t)slots;
}

static bool lanes_new(tamis_gather *g)
{
    const tamis_schema *s = g->schema;
    uint32_t keyed = 0, combined = 0;
    uint64_t masks = 0;
    for (uint32_t i = 0; i < s->combos; i++)
        masks |= s->masks[i];
    for (uint32_t i = 0; i < s->attributes; i++) {
        combined += masks >> i & 1;
        keyed += !s->bounds_only[i] || (masks >> i & 1);
    }
    uint32_t slots = seen_slots(s, keyed);
    g->batch_records = GATHER_BATCH / s->attributes;
    if (!block_new(&g->allocator, 6 * sizeof(uint64_t) * slots * keyed, &g->seen) ||
        !block_new(&g->allocator, 2 * sizeof(tamis_digest) * slots * combined, &g->seen_whole))
        return false;
    uint64_t *at = g->seen.data;
    tamis_digest *whole = g->seen_whole.data;
    for (uint32_t i = 0; i < s->attributes; i++) {
        struct gathering *lane = &g->lane[i];
        lane->type = &types[s->types[i]];
        if (s->bounds_only[i] && !(masks >> i & 1))
            continue;
        lane->slots = slots;
        lane->seen_short = at;
        lane->seen_long = at + 2 * (size_t)slots;
        at += 6 * (size_t)slots;
        if (masks >> i & 1) {
            lane->whole = whole;
            whole += 2 * (size_t)slots;
        }
    }
    return true;
}

/* Invalidates all slots: they belong to an earlier segment. */
static void seen_forget(tamis_gather *g)
{
    if (++g->epoch < 1u << 24)
        return;
    g->epoch = 1;
    memset(g->seen.data, 0, g->seen.size);
}

/* Empties everything but the sets. */
static void gather_start(tamis_gather *g)
{
    for (uint32_t i = 0; i < g->schema->ordered; i++)
        g->bounds[i] = BOUNDS_NONE;
    for (uint32_t r = 0; r < g->relations; r++)
        g->unknown[r] = r < g->schema->attributes && g->schema->bounds_only[r];
    seen_forget(g);
    g->waiting = g->n_records = g->n_pending = 0;
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
    g->whole = mem_new(a, (size_t)LIST_MAX * schema->attributes, sizeof *g->whole);
    if (!g->whole || !lanes_new(g)) {
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
    block_free(&a, &g->seen);
    block_free(&a, &g->seen_whole);
    mem_free(&a, g->whole, (size_t)LIST_MAX * g->schema->attributes, sizeof *g->whole);
    mem_free(&a, g, 1, gather_size(g->relations));
}

static tamis_error batch_settle(tamis_gather *g)
{
    for (size_t i = 0; i < g->waiting; i++) { /* inserting twice does no harm */
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
    if (g->waiting == GATHER_BATCH && batch_settle(g) != TAMIS_OK) {
        g->failed = true;
        return;
    }
    if (g->set[relation].size)
        __builtin_prefetch(set_slots(&g->set[relation]) + set_home(&g->set[relation], d), 1);
    g->batch[g->waiting++] = (struct gathered){d, relation};
}

/* ---- keys of values -------------------------------------------------------------------------- */

struct giving {
    tamis_gather *gather;
    const struct gathering *lane;
    uint32_t attribute;
    bool covered; /* what is still to come was gathered with a part seen recently */
};

/* Gathers a part of a value; true if it was seen recently. `within`: 32 bytes can be read from
   `data` on. */
ALWAYS_INLINE bool gather_part(const struct giving *to, const uint8_t *data, size_t len,
                               bool within)
{
    tamis_gather *g = to->gather;
    const struct gathering *lane = to->lane;
    uint64_t x[4];
    if (LIKELY(len <= SEEN_SHORT)) {
        within ? words_within(data, len, 2, x) : words_alone(data, len, 2, x);
        if (seen_before(lane->seen_short, seen_slot(g, lane->slots, 2, x, len, true), 2, x))
            return true;
    } else if (len <= SEEN_LONG) {
        within ? words_within(data, len, 4, x) : words_alone(data, len, 4, x);
        if (seen_before(lane->seen_long, seen_slot(g, lane->slots, 4, x, len, true), 4, x))
            return true;
    }
    gather_key(g, to->attribute,
               value_part_digest(g->schema->family, to->attribute, (tamis_key){data, len}));
    return false;
}

static void give_part(void *context, tamis_key key, bool part)
{
    struct giving *to = context;
    (void)part;
    if (!to->covered)
        to->covered = gather_part(to, key.data, key.len, false) && to->lane->type->nests;
}

ALWAYS_INLINE bool give_word(void *context, const uint8_t *word, size_t len)
{
    return gather_part(context, word, len < WORD_LEN_MAX ? len : WORD_LEN_MAX, true);
}

/* Not inlined, since its buffer is larger than a page of the stack. */
static __attribute__((noinline)) unsigned gather_words(struct giving *to, tamis_key value)
{
    return words_each(value, give_word, to);
}

/* Returns the number of parts. */
static unsigned gather_parts(tamis_gather *g, uint32_t at, const struct gathering *lane,
                             tamis_key value)
{
    struct giving to = {g, lane, at, false};
    if (lane->type->splits && value.len <= WORDS_TEXT)
        return gather_words(&to, value);
    return lane->type->parts(value, give_part, &to);
}

void bounds_widen(tamis_range *bounds, const tamis_range *by)
{
    if (tamis_order_compare(by->low, bounds->low) < 0)
        bounds->low = by->low;
    if (tamis_order_compare(by->high, bounds->high) > 0)
        bounds->high = by->high;
}

ALWAYS_INLINE void gather_order(tamis_gather *g, uint32_t at, tamis_order order)
{
    tamis_range *bounds = &g->bounds[g->schema->order_at[at]];
    if (order.whole <= bounds->low.whole || order.whole >= bounds->high.whole)
        bounds_widen(bounds, &(tamis_range){order, order});
}

/* Gathers all keys of a value; in a combination it counts as a whole. */
ALWAYS_INLINE tamis_digest gather_keys(tamis_gather *g, uint32_t at, const struct gathering *lane,
                                       tamis_key value, tamis_key normal)
{
    const tamis_schema *s = g->schema;
    unsigned parts = lane->type->parts && value.data ? gather_parts(g, at, lane, value) : 0;
    bool keyless = s->bounds_only[at] || (parts && lane->type->splits);
    if (keyless && !lane->whole)
        return (tamis_digest){0, 0};
    tamis_digest whole = normal_digest(s->family, at, normal);
    if (!keyless)
        gather_key(g, at, whole);
    return whole;
}

/* A value whose normal form has to be made, in a buffer larger than a page of the stack. */
static __attribute__((noinline)) tamis_digest
gather_normal(tamis_gather *g, uint32_t at, const struct gathering *lane, tamis_key value)
{
    char room[NORMAL_ROOM];
    tamis_key normal = value_normal(g->schema->types[at], value, room);
    if (lane->type->order && normal.data == room)
        gather_order(g, at, lane->type->order(room, normal.len));
    return gather_keys(g, at, lane, value, normal);
}

/* A value that was not seen recently. */
ALWAYS_INLINE tamis_digest gather_fresh(tamis_gather *g, uint32_t at, struct gathering *lane,
                                        tamis_key value)
{
    const struct type *type = lane->type;
    if (type->normal && value.data) {
        if (!type->plain || !type->plain(value.data, value.len, &lane->plain))
            return gather_normal(g, at, lane, value);
        if (type->order)
            gather_order(g, at, lane->plain.order);
    }
    return gather_keys(g, at, lane, value, value);
}

/* The value, or for a long one its digest if it covers all bytes, is looked up among those seen
   recently: also a text, since agents and messages repeat, and splitting one costs twenty times its
   digest. But not a value that only has an order: it is read as quickly. */
ALWAYS_INLINE bool value_pends(const struct gathering *lane, tamis_key value)
{
    return value.data && lane->slots && value.len <= SEEN_LONG;
}

/* Starts to fetch the slot of a value. */
ALWAYS_INLINE void value_fetch(const tamis_gather *g, uint32_t at, tamis_key value,
                               struct fetched *p)
{
    const struct gathering *lane = &g->lane[at];
    bool is_short = value.len <= SEEN_SHORT;
    unsigned words = is_short ? 2 : 4;
    if (is_short) {
        words_alone(value.data, value.len, 2, p->x);
        p->slot = seen_slot(g, lane->slots, 2, p->x, value.len, false);
    } else {
        words_alone(value.data, value.len, 4, p->x);
        p->slot = seen_slot(g, lane->slots, 4, p->x, value.len, false);
    }
    p->len = (uint8_t)value.len;
    p->words = (uint8_t)words;
    p->attribute = (uint8_t)at;
    __builtin_prefetch((is_short ? lane->seen_short : lane->seen_long) + (size_t)words * p->slot,
                       1);
    if (lane->whole)
        __builtin_prefetch(lane->whole + (is_short ? 0 : lane->slots) + p->slot, 1);
}

/* Gathers a value whose slot was fetched, with its bytes. */
ALWAYS_INLINE tamis_digest value_gather(tamis_gather *g, const struct fetched *p, const void *bytes)
{
    struct gathering *lane = &g->lane[p->attribute];
    bool is_short = p->words == 2;
    bool seen = is_short ? seen_before(lane->seen_short, p->slot, 2, p->x)
                         : seen_before(lane->seen_long, p->slot, 4, p->x);
    tamis_digest *digest =
        lane->whole ? lane->whole + (is_short ? 0 : lane->slots) + p->slot : NULL;
    if (LIKELY(seen))
        return digest ? *digest : (tamis_digest){0, 0};
    tamis_digest whole = gather_fresh(g, p->attribute, lane, (tamis_key){bytes, p->len});
    if (digest)
        *digest = whole;
    return whole;
}

/* A value that does not wait. */
static tamis_digest gather_value(tamis_gather *g, uint32_t at, tamis_key value)
{
    struct gathering *lane = &g->lane[at];
    struct fetched p;
    if (value_pends(lane, value)) {
        value_fetch(g, at, value, &p);
        return value_gather(g, &p, value.data);
    }
    if (!value.data || !lane->slots || lane->type->normal || !lane->type->parts)
        return gather_fresh(g, at, lane, value);
    tamis_digest whole = normal_digest(g->schema->family, at, value);
    uint64_t x[4] = {whole.a, whole.b};
    if (!seen_before(lane->seen_long, seen_slot(g, lane->slots, 4, x, SEEN_DIGEST, false), 4, x))
        gather_fresh(g, at, lane, value);
    return whole;
}

static void gather_combos(tamis_gather *g, const tamis_digest *whole)
{
    const tamis_schema *s = g->schema;
    for (uint32_t i = 0; i < s->combos; i++)
        gather_key(g, s->attributes + i, mixed_digest(s->masks[i], whole));
}

/* Lost values must be gathered again. */
static tamis_error gather_failed(tamis_gather *g)
{
    g->failed = false;
    seen_forget(g);
    for (uint32_t i = 0; i < g->n_pending; i++) { /* with the new epoch in their tags */
        struct fetched *p = &g->pending[i];
        struct fetched again;
        value_fetch(g, p->attribute, (tamis_key){p->x, p->len}, &again);
        again.record = p->record;
        *p = again;
    }
    return TAMIS_ENOMEM;
}

/* Gathers the records that wait. */
static tamis_error values_settle(tamis_gather *g)
{
    uint32_t attributes = g->schema->attributes;
    for (uint32_t i = 0; i < g->n_pending; i++) {
        const struct fetched *p = &g->pending[i];
        g->digests[p->record * attributes + p->attribute] = value_gather(g, p, p->x);
    }
    for (uint32_t i = 0; i < g->n_records && g->schema->combos; i++)
        gather_combos(g, g->digests + i * attributes);
    if (UNLIKELY(g->failed))
        return gather_failed(g);
    g->n_pending = g->n_records = 0;
    return TAMIS_OK;
}

tamis_error gather_settle(tamis_gather *g)
{
    tamis_error e = values_settle(g);
    return e == TAMIS_OK ? batch_settle(g) : e;
}

/* Every choice of one value per attribute, like the digits of a number. */
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
    uint64_t len = 0;
    for (uint32_t i = 0; i < s->attributes; i++) {
        tamis_digest *whole = g->whole + LIST_MAX * i;
        if (record[i].n == 0)
            *whole = gather_value(g, i, (tamis_key){NULL, 0});
        for (size_t j = 0; j < record[i].n; j++) {
            tamis_digest digest = gather_value(g, i, record[i].value[j]);
            len += record[i].value[j].len;
            if (j < LIST_MAX)
                whole[j] = digest;
        }
    }
    for (uint32_t i = 0; i < s->combos; i++)
        gather_combo(g, i, record);
    if (UNLIKELY(g->failed))
        return gather_failed(g);
    g->values_len += len;
    g->records++;
    return TAMIS_OK;
}

tamis_error tamis_gather_add(tamis_gather *g, const tamis_key *record)
{
    uint32_t attributes = g->schema->attributes;
    uint64_t len = 0;
    if (g->n_records == g->batch_records && values_settle(g) != TAMIS_OK)
        return TAMIS_ENOMEM;
    tamis_digest *whole = g->digests + g->n_records * attributes;
    uint32_t n = g->n_pending;
    for (uint32_t i = 0; i < attributes; i++) {
        len += record[i].len;
        if (LIKELY(value_pends(&g->lane[i], record[i]))) {
            value_fetch(g, i, record[i], &g->pending[n]);
            g->pending[n++].record = (uint8_t)g->n_records;
        } else {
            whole[i] = gather_value(g, i, record[i]);
        }
    }
    if (UNLIKELY(g->failed))
        return gather_failed(g);
    g->n_pending = n;
    g->n_records++;
    g->values_len += len;
    g->records++;
    return TAMIS_OK;
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
        digests_clear(&g->set[r], &g->allocator);
    gather_start(g);
}
