/*
 * Gathers the values of a segment: for each relation an exact set of digests, with open addressing.
 * A segment of 70,000 records has tables of a few MiB, so a record costs a cache miss per relation:
 * digests wait in batches while their slots are prefetched.
 */
#include "catalog.h"

#include "base/bytes.h"
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

/* Number of slots for so many digests. */
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

ALWAYS_INLINE uint32_t seen_slots(const tamis_schema *s, uint32_t attribute)
{
    return s->types[attribute] == TAMIS_WORDS ? SEEN_WORDS : SEEN_SLOTS;
}

static bool seen_new(tamis_gather *g)
{
    const tamis_schema *s = g->schema;
    size_t slots = 0;
    for (uint32_t i = 0; i < s->attributes; i++)
        slots += seen_slots(s, i);
    if (!block_new(&g->allocator, 6 * slots * sizeof(uint64_t), &g->seen_memory))
        return false;
    uint64_t *at = g->seen_memory.data;
    for (uint32_t i = 0; i < s->attributes; at += 6 * seen_slots(s, i), i++) {
        g->seen_short[i] = at;
        g->seen_long[i] = at + 2 * seen_slots(s, i);
    }
    size_t whole = 2 * (size_t)SEEN_SLOTS * s->attributes;
    g->seen_whole = mem_new(&g->allocator, whole, sizeof *g->seen_whole);
    return g->seen_whole;
}

/* Invalidates all slots: they belong to an earlier segment. */
static void seen_forget(tamis_gather *g)
{
    if (++g->epoch < 1u << 24)
        return;
    g->epoch = 1;
    for (uint32_t i = 0; i < g->schema->attributes; i++)
        memset(g->seen_short[i], 0, 6 * seen_slots(g->schema, i) * sizeof(uint64_t));
}

/* Empties everything but the sets. */
static void gather_start(tamis_gather *g)
{
    for (uint32_t i = 0; i < g->schema->ordered; i++)
        g->bounds[i] = BOUNDS_NONE;
    for (uint32_t r = 0; r < g->relations; r++)
        g->unknown[r] = r < g->schema->attributes && g->schema->bounds_only[r];
    seen_forget(g);
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
    for (uint32_t i = 0; i < schema->attributes; i++)
        g->bare |= (uint64_t)schema->bounds_only[i] << i & ~g->combined;
    g->whole = mem_new(a, (size_t)LIST_MAX * schema->attributes, sizeof *g->whole);
    if (!g->whole || !seen_new(g)) {
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
    block_free(&a, &g->seen_memory);
    mem_free(&a, g->seen_whole, 2 * (size_t)SEEN_SLOTS * g->schema->attributes,
             sizeof *g->seen_whole);
    mem_free(&a, g->whole, (size_t)LIST_MAX * g->schema->attributes, sizeof *g->whole);
    mem_free(&a, g, 1, gather_size(g->relations));
}

tamis_error gather_settle(tamis_gather *g)
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
    if (g->waiting == GATHER_BATCH && gather_settle(g) != TAMIS_OK) {
        g->failed = true;
        return;
    }
    if (g->set[relation].size)
        __builtin_prefetch(set_slots(&g->set[relation]) + set_home(&g->set[relation], d), 1);
    g->batch[g->waiting++] = (struct gathered){d, relation};
}

/* ---- what was seen lately -------------------------------------------------------------------- */

/* Up to 12 bytes as two words, padded with zeros, or 13 to 28 as four: in registers, since a word that was
   just stored in pieces is slow to load as a whole. */
ALWAYS_INLINE void words_alone(const uint8_t *data, size_t len, unsigned words, uint64_t x[4])
{
    x[1] = 0;
    if (words == 4) {
        bool above = len >= 16;
        x[0] = get_u64(data);
        x[1] = above ? get_u64(data + 8) : get_u64(data + len - 8) >> (8 * (16 - len));
        uint64_t end = above ? get_u64(data + len - 8) : 0; /* of 16 to 28 bytes */
        x[2] = len >= 24 ? get_u64(data + 16) : end >> (8 * (23 - len) & 63) >> 8;
        x[3] = len > 24 ? end >> (8 * (32 - len)) : 0;
    } else if (len >= 8) {
        x[0] = get_u64(data);
        x[1] = (uint64_t)get_u32(data + len - 4) >> (8 * (12 - len));
    } else if (len >= 4) {
        x[0] = get_u32(data) | (uint64_t)get_u32(data + len - 4) << (8 * (len - 4));
    } else {
        x[0] = 0;
        for (size_t i = 0; i < len; i++)
            x[0] |= (uint64_t)data[i] << (8 * i);
    }
}

/* The same if 32 bytes can be read from `data` on. */
ALWAYS_INLINE void words_within(const uint8_t *data, size_t len, unsigned words, uint64_t x[4])
{
    static const uint8_t keep[64] = {[0 ... 31] = 0xff};
    for (unsigned i = 0; i < words; i++)
        x[i] = get_u64(data + 8 * i) & get_u64(keep + 32 - len + 8 * i);
}

/* Was it seen in this segment? If not, it is recorded. */
ALWAYS_INLINE bool seen_before(const tamis_gather *g, uint64_t *slots, uint32_t n, unsigned words,
                               uint64_t x[4], size_t len, bool part, uint32_t *slot)
{
    uint64_t differs = 0, hash = 0;
    x[words - 1] |= (uint64_t)(g->epoch << 8 | (unsigned)part << 6 | (unsigned)(len + 1)) << 32;
    for (unsigned i = 0; i < words; i++)
        hash = (hash ^ x[i]) * EIGHT_A;
    *slot = (uint32_t)((hash >> 32) * n >> 32); /* the leading bits depend on every byte */
    uint64_t *there = slots + (size_t)words * *slot;
    for (unsigned i = 0; i < words; i++)
        differs |= there[i] ^ x[i];
    if (LIKELY(!differs))
        return true;
    for (unsigned i = 0; i < words; i++)
        there[i] = x[i];
    return false;
}

/* ---- keys of values -------------------------------------------------------------------------- */

struct giving {
    tamis_gather *gather;
    uint32_t attribute;
    bool nests, covered; /* covered: what is still to come was gathered with a part seen recently */
};

/* Gathers a part of a value; true if it was seen recently. `within`: 32 bytes can be read from
   `data` on. */
ALWAYS_INLINE bool gather_part(const struct giving *to, const uint8_t *data, size_t len,
                               uint32_t slots, bool within)
{
    tamis_gather *g = to->gather;
    uint32_t at = to->attribute, slot;
    uint64_t x[4];
    if (LIKELY(len <= SEEN_SHORT)) {
        within ? words_within(data, len, 2, x) : words_alone(data, len, 2, x);
        if (seen_before(g, g->seen_short[at], slots, 2, x, len, true, &slot))
            return true;
    } else if (len <= SEEN_LONG) {
        within ? words_within(data, len, 4, x) : words_alone(data, len, 4, x);
        if (seen_before(g, g->seen_long[at], slots, 4, x, len, true, &slot))
            return true;
    }
    gather_key(g, at, value_part_digest(g->schema->family, at, (tamis_key){data, len}));
    return false;
}

static void give_part(void *context, tamis_key key, bool part)
{
    struct giving *to = context;
    (void)part;
    if (!to->covered)
        to->covered = gather_part(to, key.data, key.len,
                                  seen_slots(to->gather->schema, to->attribute), false) &&
                      to->nests;
}

ALWAYS_INLINE bool give_word(void *context, const uint8_t *word, size_t len)
{
    return gather_part(context, word, len < WORD_LEN_MAX ? len : WORD_LEN_MAX, SEEN_WORDS, true);
}

/* Not inlined, since its buffer is larger than a page of the stack. */
static __attribute__((noinline)) unsigned gather_words(struct giving *to, tamis_key value)
{
    return words_each(value, give_word, to);
}

/* Returns the number of parts. */
ALWAYS_INLINE unsigned gather_parts(tamis_gather *g, uint32_t at, const struct type *type,
                                    tamis_key value)
{
    struct giving to = {g, at, type->nests, false};
    if (!type->parts || !value.data)
        return 0;
    if (type->splits && value.len <= WORDS_TEXT)
        return gather_words(&to, value);
    return type->parts(value, give_part, &to);
}

void bounds_widen(tamis_range *bounds, const tamis_range *by)
{
    if (tamis_order_compare(by->low, bounds->low) < 0)
        bounds->low = by->low;
    if (tamis_order_compare(by->high, bounds->high) > 0)
        bounds->high = by->high;
}

static void gather_order(tamis_gather *g, uint32_t at, tamis_order order)
{
    tamis_range *bounds = &g->bounds[g->schema->order_at[at]];
    if (order.whole <= bounds->low.whole || order.whole >= bounds->high.whole)
        bounds_widen(bounds, &(tamis_range){order, order});
}

/* Gathers all keys of a value; in a combination it counts as a whole. */
static tamis_digest gather_keys(tamis_gather *g, uint32_t at, const struct type *type,
                                tamis_key value, tamis_key normal)
{
    const tamis_schema *s = g->schema;
    unsigned parts = gather_parts(g, at, type, value);
    bool keyless = s->bounds_only[at] || (parts && type->splits);
    if (keyless && !(g->combined >> at & 1))
        return (tamis_digest){0, 0};
    tamis_digest whole = normal_digest(s->family, at, normal);
    if (!keyless)
        gather_key(g, at, whole);
    return whole;
}

/* A value whose normal form has to be made, in a buffer larger than a page of the stack. */
static __attribute__((noinline)) tamis_digest
gather_normal(tamis_gather *g, uint32_t at, const struct type *type, tamis_key value)
{
    char room[NORMAL_ROOM];
    tamis_key normal = value_normal(g->schema->types[at], value, room);
    if (type->order && normal.data == room)
        gather_order(g, at, type->order(room, normal.len));
    return gather_keys(g, at, type, value, normal);
}

/* A value that was not seen recently. */
static tamis_digest gather_fresh(tamis_gather *g, uint32_t at, tamis_key value)
{
    const struct type *type = &types[g->schema->types[at]];
    tamis_order order;
    if (type->normal && value.data) {
        if (!type->plain || !type->plain(value.data, value.len, &order))
            return gather_normal(g, at, type, value);
        if (type->order)
            gather_order(g, at, order);
    }
    return gather_keys(g, at, type, value, value);
}

/* The value, or for a long one its digest if it covers all bytes, is looked up among those seen
   recently: also a text, since agents and messages repeat, and splitting one costs twenty times its
   digest. But not a value that only has an order: it is read as quickly. */
static void gather_value(tamis_gather *g, uint32_t at, tamis_key value, tamis_digest *whole)
{
    const struct type *type = &types[g->schema->types[at]];
    const uint8_t *data = value.data;
    bool seen, is_short = value.len <= SEEN_SHORT;
    uint32_t slot;
    uint64_t x[4] = {0};
    g->values_len += value.len;
    if (!data || g->bare >> at & 1 || (value.len > SEEN_LONG && (type->normal || !type->parts))) {
        *whole = gather_fresh(g, at, value);
        return;
    }
    if (is_short) {
        words_alone(data, value.len, 2, x);
        seen = seen_before(g, g->seen_short[at], SEEN_SLOTS, 2, x, value.len, false, &slot);
    } else if (value.len <= SEEN_LONG) {
        words_alone(data, value.len, 4, x);
        seen = seen_before(g, g->seen_long[at], SEEN_SLOTS, 4, x, value.len, false, &slot);
    } else {
        *whole = normal_digest(g->schema->family, at, value);
        x[0] = whole->a;
        x[1] = whole->b;
        seen = seen_before(g, g->seen_long[at], SEEN_SLOTS, 4, x, SEEN_DIGEST, false, &slot);
    }
    if (!(g->combined >> at & 1)) {
        if (!seen)
            gather_fresh(g, at, value);
        return;
    }
    tamis_digest *digest = &g->seen_whole[SEEN_SLOTS * (2 * at + !is_short) + slot];
    if (!seen)
        *digest = gather_fresh(g, at, value);
    *whole = *digest;
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

static tamis_error record_end(tamis_gather *g)
{
    if (UNLIKELY(g->failed)) {
        g->failed = false;
        seen_forget(g); /* lost values must be gathered again */
        return TAMIS_ENOMEM;
    }
    g->records++;
    return TAMIS_OK;
}

tamis_error tamis_gather_add_lists(tamis_gather *g, const tamis_values *record)
{
    const tamis_schema *s = g->schema;
    tamis_digest past;
    for (uint32_t i = 0; i < s->attributes; i++) {
        tamis_digest *whole = g->whole + LIST_MAX * i;
        if (record[i].n == 0)
            gather_value(g, i, (tamis_key){NULL, 0}, whole);
        for (size_t j = 0; j < record[i].n; j++)
            gather_value(g, i, record[i].value[j], j < LIST_MAX ? &whole[j] : &past);
    }
    for (uint32_t i = 0; i < s->combos; i++)
        gather_combo(g, i, record);
    return record_end(g);
}

tamis_error tamis_gather_add(tamis_gather *g, const tamis_key *record)
{
    const tamis_schema *s = g->schema;
    tamis_digest whole[TAMIS_ATTRIBUTES_MAX];
    for (uint32_t i = 0; i < s->attributes; i++)
        gather_value(g, i, record[i], &whole[i]);
    for (uint32_t i = 0; i < s->combos; i++)
        gather_key(g, s->attributes + i, mixed_digest(s->masks[i], whole));
    return record_end(g);
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
