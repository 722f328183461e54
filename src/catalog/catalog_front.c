/*
 * Fronts: lists of keys in front of the columns of an attribute. Of a list of 100,000 addresses to
 * look for, most occur nowhere, and querying the columns of all segments for each would read half
 * the catalog; a front settles one in two cache lines, for any number of segments.
 *
 * A front contains the first `bits` bits of the digest of every key of the attribute in any
 * segment, sorted. The first `buckets` of them select the bucket, the others are stored:
 *
 *     entries   n of `bits - buckets` bits, packed; then
 *     ends      u32 for each bucket: the number of entries up to its end
 *
 * With 16 to 32 entries per bucket this takes 26 bits per key at 10^-6, less than any vector, and
 * two such lists can be merged in any amount of memory, without the keys. A vector would have to be
 * sized in advance, but the number of values of a catalog that is updated for years is unknown. A
 * smooth filter would take 37 bits at 10^-4, for adds and removals that no front ever sees.
 *
 * Fingerprints cannot become longer, so a front takes only as many keys as it was planned for. The
 * next front is planned for as many keys as there are: the fronts of an attribute double, and are
 * few. A key occurs nowhere if none of them contains it.
 */
#include "catalog_bytes.h"

#include "base/bytes.h"
#include "base/err.h"

/* ---- sizes and checks ------------------------------------------------------------------------ */

static uint32_t entry_bits(const struct catalog_front *f)
{
    return f->bits - f->buckets;
}

static uint64_t entries_len(const struct catalog_front *f)
{
    return round_up((f->n * entry_bits(f) + 7) / 8, 8);
}

uint64_t front_len(const struct catalog_front *f)
{
    return entries_len(f) + round_up(UINT64_C(4) << f->buckets, 8);
}

double front_rate(const struct catalog_front *f)
{
    double rate = (double)f->n;
    for (uint32_t i = 0; i < f->bits; i++)
        rate /= 2;
    return rate;
}

bool front_valid(const struct catalog_front *f, const tamis_schema *s)
{
    return f->attribute < s->attributes && f->n < UINT32_MAX && f->buckets <= 32 &&
           f->bits > f->buckets && f->bits <= 64 && f->bits - f->buckets <= ENTRY_BITS_MAX;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Entry i. Eight bytes can be read: the ends follow. */
static uint64_t entry_at(const tamis_catalog *c, const struct catalog_front *f, uint64_t i)
{
    uint64_t bit = i * entry_bits(f);
    return fetch_u64(c->data + f->offset + bit / 8) >> (bit % 8) &
           ((UINT64_C(1) << entry_bits(f)) - 1);
}

/* The entries from .. to - 1 of a bucket, after checking their bytes. */
static tamis_error bucket_of(const tamis_catalog *c, const struct catalog_front *f, uint64_t bucket,
                             uint64_t *from, uint64_t *to, tamis_reason *reason)
{
    uint64_t ends = f->offset + entries_len(f), at = ends + 4 * bucket;
    tamis_error e = catalog_check(c, bucket ? at - 4 : at, bucket ? 8 : 4, reason);
    if (e != TAMIS_OK)
        return e;
    *from = bucket ? fetch_u32(c->data + at - 4) : 0;
    *to = fetch_u32(c->data + at);
    if (*from > *to || *to > f->n)
        return fail_at(reason, TAMIS_EFORMAT, at, "a bucket ends out of order");
    uint64_t first = *from * entry_bits(f) / 8, last = *to * entry_bits(f) / 8;
    return catalog_check(c, f->offset + first, last - first + 8, reason);
}

static tamis_error front_find(const tamis_catalog *c, const struct catalog_front *f, uint64_t word,
                              bool *found, tamis_reason *reason)
{
    uint64_t print = word >> (64 - f->bits), from, to;
    uint64_t entry = print & ((UINT64_C(1) << entry_bits(f)) - 1);
    tamis_error e = bucket_of(c, f, print >> entry_bits(f), &from, &to, reason);
    if (e != TAMIS_OK)
        return e;
    uint64_t at = from + SEARCH(i, to - from, entry_at(c, f, from + i) < entry);
    *found = at < to && entry_at(c, f, at) == entry;
    return TAMIS_OK;
}

tamis_error fronts_find(const tamis_catalog *c, uint32_t attribute, uint64_t word, bool *found,
                        tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    *found = false;
    for (uint32_t i = c->first_front[attribute]; i != STRIP_NONE && !*found && e == TAMIS_OK;
         i = c->fronts[i].next)
        e = front_find(c, &c->fronts[i], word, found, reason);
    return e;
}

/* ---- in order -------------------------------------------------------------------------------- */

bool front_next(struct front_reader *r, uint64_t *word, tamis_error *e, tamis_reason *reason)
{
    const struct catalog_front *f = r->front;
    while (r->at == r->to) {
        if (r->bucket >> f->buckets || *e != TAMIS_OK)
            return false;
        uint64_t before = r->to;
        *e = bucket_of(r->catalog, f, r->bucket, &r->at, &r->to, reason);
        if (*e != TAMIS_OK)
            return false;
        if (r->at != before) {
            *e = fail_at(reason, TAMIS_EFORMAT, f->offset, "a bucket ends out of order");
            return false;
        }
        r->bucket++;
        if (r->bucket % FRONT_REST == 0)
            tamis_catalog_rest(r->catalog);
    }
    uint64_t print = (r->bucket - 1) << entry_bits(f) | entry_at(r->catalog, f, r->at++);
    *word = print << (64 - f->bits);
    return true;
}

/* Checks that every bucket ends where the next one begins, and that all entries are in order. */
tamis_error front_check(const tamis_catalog *c, const struct catalog_front *f, tamis_reason *reason)
{
    struct front_reader r = {.catalog = c, .front = f};
    tamis_error e = TAMIS_OK;
    uint64_t word, before = 0, n = 0;
    for (; front_next(&r, &word, &e, reason); before = word, n++)
        if (n && word <= before)
            return fail_at(reason, TAMIS_EFORMAT, f->offset, "a front is not in order");
    if (e != TAMIS_OK)
        return e;
    uint64_t used = f->n * entry_bits(f), ends = f->offset + entries_len(f);
    bool rest = used % 8 && c->data[f->offset + used / 8] >> (used % 8);
    uint64_t behind = f->offset + (used + 7) / 8, end = ends + (UINT64_C(4) << f->buckets);
    if (n != f->n || rest || !bytes_are_zero(c->data + behind, ends - behind) ||
        !bytes_are_zero(c->data + end, f->offset + front_len(f) - end))
        return fail_at(reason, TAMIS_EFORMAT, f->offset, "a front does not match the table");
    return TAMIS_OK;
}
