/*
 * Merges what was gathered with what was gathered elsewhere or earlier: the digests of each relation, without
 * duplicates. In this way the updates of a day become one segment; between updates, the digests wait in a file.
 *
 * The bytes, all little-endian: a magic word, records, text, then the lowest and highest value of each ordered
 * attribute (32 bytes), then the number of digests of each relation (all ones: not known), then the digests
 * (16 bytes each) by relation, and finally the XXH3 of everything before.
 */
#include "catalog_bytes.h"

#include "base/bytes.h"
#include "base/err.h"
#include "tamis/catalog.h"

#define GATHERED_MAGIC UINT64_C(0x0131726468746167)
#define NOT_KNOWN      UINT64_MAX

tamis_error tamis_gather_merge(tamis_gather *g, tamis_gather *from, uint64_t without,
                               tamis_reason *reason)
{
    if (!tamis_schema_alike(g->schema, from->schema))
        return fail(reason, TAMIS_EARG, "the gathered keys belong to another schema");
    bool good = gather_settle(g) == TAMIS_OK && gather_settle(from) == TAMIS_OK;
    for (uint32_t r = 0; good && r < g->relations; r++) {
        struct digest_set *set = &from->set[r];
        bool left_out = r < g->schema->attributes && without >> r & 1;
        g->unknown[r] |= from->unknown[r] || left_out;
        g->set[r].zero |= set->zero && !left_out;
        if (!left_out)
            good = gather_digests(g, r, set->memory.data, set->size, true);
    }
    if (!good)
        return fail(reason, TAMIS_ENOMEM, "no memory for the gathered keys");
    for (uint32_t i = 0; i < g->schema->ordered; i++)
        bounds_widen(&g->bounds[i], &from->bounds[i]);
    g->records += from->records;
    g->text += from->text ? from->text : from->values_len;
    return TAMIS_OK;
}

tamis_error tamis_gather_bounds(tamis_gather *g, const tamis_catalog *c, uint64_t segment,
                                tamis_reason *reason)
{
    if (!tamis_schema_alike(g->schema, &c->schema) || segment >= c->head.segments)
        return fail(reason, TAMIS_EARG, "the gathered keys belong to another schema");
    for (uint32_t r = 0; r < g->relations; r++)
        g->unknown[r] = true;
    for (uint32_t i = 0; i < g->schema->attributes; i++) {
        if (g->schema->order_at[i] == ORDER_NONE)
            continue;
        tamis_range known = catalog_bounds(c, segment, i);
        bounds_widen(&g->bounds[g->schema->order_at[i]], &known);
    }
    g->records += tamis_catalog_records(c, segment);
    g->text += catalog_text(c, segment);
    return TAMIS_OK;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static size_t front_bytes(const tamis_schema *s)
{
    return 3 * sizeof(uint64_t) + s->ordered * BOUNDS_LEN + schema_relations(s) * sizeof(uint64_t);
}

tamis_error tamis_gather_encode(tamis_gather *g, tamis_write write, void *context)
{
    size_t len = front_bytes(g->schema) + sizeof(uint64_t);
    if (gather_settle(g) != TAMIS_OK)
        return TAMIS_ENOMEM;
    for (uint32_t r = 0; r < g->relations; r++)
        len += g->unknown[r] ? 0 : digest_set_count(&g->set[r]) * sizeof(tamis_digest);
    uint8_t *data = mem_new(&g->allocator, len, 1), *at = data;
    if (!data)
        return TAMIS_ENOMEM;
    put_u64(at, GATHERED_MAGIC);
    put_u64(at + 8, g->records);
    put_u64(at + 16, g->text ? g->text : g->values_len);
    at += 24;
    for (uint32_t i = 0; i < g->schema->ordered; i++, at += BOUNDS_LEN)
        catalog_bounds_put(at, g->bounds[i]);
    uint8_t *digests = at + g->relations * sizeof(uint64_t);
    for (uint32_t r = 0; r < g->relations; r++, at += sizeof(uint64_t)) {
        uint64_t n = g->unknown[r] ? 0 : digest_set_count(&g->set[r]);
        put_u64(at, g->unknown[r] ? NOT_KNOWN : n);
        if (n) /* words are little-endian on all supported machines */
            digest_set_list(&g->set[r], (tamis_digest *)digests);
        digests += n * sizeof(tamis_digest);
    }
    put_u64(digests, hash_of(data, len - sizeof(uint64_t)));
    tamis_error e = write(context, data, len) == 0 ? TAMIS_OK : TAMIS_EIO;
    mem_free(&g->allocator, data, len, 1);
    return e;
}

static tamis_error not_gathered(tamis_reason *reason)
{
    return fail(reason, TAMIS_EFORMAT, "not gathered with this schema, or damaged");
}

tamis_error tamis_gather_decode(tamis_gather *g, const void *data, size_t len, tamis_reason *reason)
{
    const uint8_t *at = data, *end = at + len;
    size_t front = front_bytes(g->schema);
    if (len < front + sizeof(uint64_t) || get_u64(at) != GATHERED_MAGIC ||
        get_u64(end - sizeof(uint64_t)) != hash_of(data, len - sizeof(uint64_t)))
        return not_gathered(reason);
    const uint8_t *counts = at + 24 + g->schema->ordered * BOUNDS_LEN, *digests = at + front;
    uint64_t left = (len - front - sizeof(uint64_t)) / sizeof(tamis_digest);
    for (uint32_t r = 0; r < g->relations; r++) {
        uint64_t n = get_u64(counts + r * sizeof(uint64_t));
        if (n != NOT_KNOWN && n > left)
            return not_gathered(reason);
        left -= n == NOT_KNOWN ? 0 : n;
    }
    if (left || (len - front) % sizeof(tamis_digest) != sizeof(uint64_t))
        return not_gathered(reason);
    bool good = gather_settle(g) == TAMIS_OK;
    for (uint32_t r = 0; good && r < g->relations; r++) {
        uint64_t n = get_u64(counts + r * sizeof(uint64_t));
        g->unknown[r] |= n == NOT_KNOWN;
        for (uint64_t i = 0; n != NOT_KNOWN && good && i < n;
             i++, digests += sizeof(tamis_digest)) {
            tamis_digest d = {get_u64(digests), get_u64(digests + 8)};
            good = gather_digests(g, r, &d, 1, false);
        }
    }
    if (!good)
        return fail(reason, TAMIS_ENOMEM, "no memory for the gathered keys");
    g->records += get_u64(at + 8);
    g->text += get_u64(at + 16);
    for (uint32_t i = 0; i < g->schema->ordered; i++) {
        const uint8_t *b = at + 24 + i * BOUNDS_LEN;
        bounds_widen(&g->bounds[i], &(tamis_range){{(int64_t)get_u64(b), get_u64(b + 8)},
                                                   {(int64_t)get_u64(b + 16), get_u64(b + 24)}});
    }
    return TAMIS_OK;
}
