/*
 * Cuckoo filters of RedisBloom. They keep their own hash and layout when items are added and removed, so they
 * need no set on top, and RedisBloom can load them again at any time.
 *
 * A key has the hash h = murmur(key, 0) and the fingerprint f = h mod 255 + 1. In a part of n buckets, a power
 * of 2, f is in bucket h mod n or in bucket (h xor f * ALTERNATE) mod n; a slot with 0 is free. The i-th
 * part has expansion^i times as many buckets as the first. An add takes a free slot, in the newest part that
 * has one; else it moves fingerprints of the newest part to their other buckets, up to `iterations` of
 * them; else it adds a part.
 *
 * A removal clears a fingerprint in the newest part that has it. This is exact for keys that were added: the
 * number of buckets of a part is a multiple of that of every older part, so keys that share fingerprint and
 * buckets in one part share them in all older parts, and whichever fingerprint is cleared, the rest
 * answer for the other keys.
 *
 * In a file (type MBbloomCF, encoding 4):
 *
 *   unsigned   parts, buckets of the first, items, removals, slots per bucket, iterations, expansion
 *   each part  unsigned buckets, string: the slots
 *
 * and, with PARTIAL in the expansion, the number of missing bytes of an unfinished load. The first chunk is
 * packed and little-endian: items 8, buckets 8, removals 8, parts 8, slots per bucket 2, iterations 2, expansion 2.
 */
#include "foreign.h"

#include <string.h>

#define ALTERNATE    UINT64_C(0x5bd1e995)
#define PART_MAX     (UINT64_C(1) << 32) /* bytes: RedisBloom counts slots in 32 bits */
#define CUCKOO_PARTS 65535
#define GROWN_PARTS  1024 /* commands search all parts: 1024 take some 20 microseconds */
#define PARTIAL      ((uint64_t)1 << 40)

struct print {
    uint64_t h, other;
    unsigned char f;
};

static struct print print_of(const void *key, size_t len)
{
    uint64_t h = foreign_hash(key, len, 0);
    unsigned char f = (unsigned char)(h % 255 + 1);
    return (struct print){h, h ^ f * ALTERNATE, f};
}

static unsigned char *bucket_at(const struct foreign *f, const struct foreign_part *p, uint64_t h)
{
    return p->data + (h & (p->buckets - 1)) * f->bucket;
}

/* Finds a slot of the key in the part that contains `what`, or NULL. */
static unsigned char *slot_with(const struct foreign *f, const struct foreign_part *p,
                                const struct print *x, unsigned char what)
{
    unsigned char *slot = memchr(bucket_at(f, p, x->h), what, f->bucket);
    return slot ? slot : memchr(bucket_at(f, p, x->other), what, f->bucket);
}

/* The same in the newest part that has one. */
static unsigned char *newest_with(const struct foreign *f, const struct print *x,
                                  unsigned char what)
{
    unsigned char *slot = NULL;
    for (uint32_t i = f->n; i-- > 0 && !slot;)
        slot = slot_with(f, &f->part[i], x, what);
    return slot;
}

bool cuckoo_has(const struct foreign *f, const void *key, size_t len)
{
    struct print x = print_of(key, len);
    return newest_with(f, &x, x.f) != NULL;
}

uint64_t cuckoo_count(const struct foreign *f, const void *key, size_t len)
{
    struct print x = print_of(key, len);
    uint64_t n = 0;
    for (const struct foreign_part *p = f->part; p < f->part + f->n; p++)
        for (unsigned i = 0; i < f->bucket; i++)
            n += (bucket_at(f, p, x.h)[i] == x.f) + (bucket_at(f, p, x.other)[i] == x.f);
    return n;
}

bool cuckoo_remove(struct foreign *f, const void *key, size_t len)
{
    struct print x = print_of(key, len);
    unsigned char *slot = newest_with(f, &x, x.f);
    if (!slot)
        return false;
    *slot = 0;
    f->items -= f->items > 0;
    f->removals++;
    f->rate_now = -1;
    return true;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static unsigned char exchange(unsigned char *slot, unsigned char f)
{
    unsigned char was = *slot;
    *slot = f;
    return was;
}

/* Puts the fingerprint in the place of another, which moves to its other bucket, and so on until there is a
   free slot. If none is found, all moves are undone. */
static bool make_room(const struct foreign *f, const struct foreign_part *p, const struct print *x)
{
    unsigned char moving = x->f, *slot;
    uint64_t at = x->h;
    unsigned victim = 0, i;
    for (i = 0; i < f->iterations; i++) {
        moving = exchange(bucket_at(f, p, at) + victim, moving);
        at ^= moving * ALTERNATE;
        slot = memchr(bucket_at(f, p, at), 0, f->bucket);
        if (slot) {
            *slot = moving;
            return true;
        }
        victim = (victim + 1) % f->bucket;
    }
    while (i-- > 0) {
        victim = (victim + f->bucket - 1) % f->bucket;
        at ^= moving * ALTERNATE;
        moving = exchange(bucket_at(f, p, at) + victim, moving);
    }
    return false;
}

/* Returns the filter with one more part, and frees the old struct; NULL if there is no memory. */
static struct foreign *with_part(struct foreign *f, uint64_t buckets)
{
    struct foreign *more = foreign_new(f->n + 1, CUCKOO_PARTS);
    unsigned char *data = more ? rm.TryAlloc(buckets * f->bucket) : NULL;
    if (!data) {
        rm.Free(more);
        return NULL;
    }
    memory_clear(data, buckets * f->bucket);
    memcpy(more, f, sizeof *f + f->n * sizeof *f->part);
    more->n++;
    more->part[f->n] = (struct foreign_part){.buckets = buckets,
                                             .capacity = buckets * f->bucket,
                                             .bytes = buckets * f->bucket,
                                             .data = data};
    rm.Free(f);
    return more;
}

static tamis_error add_part(struct foreign **at, uint64_t most)
{
    struct foreign *f = *at;
    uint64_t buckets = f->part[f->n - 1].buckets * f->growth, bytes = buckets * f->bucket;
    if (f->growth == 0 || f->n >= (most == UINT64_MAX ? CUCKOO_PARTS : GROWN_PARTS))
        return TAMIS_EFULL;
    if (bytes > PART_MAX || foreign_bytes(f) + bytes > most)
        return TAMIS_ESPACE;
    struct foreign *more = with_part(f, buckets);
    if (more)
        *at = more;
    return more ? TAMIS_OK : TAMIS_ENOMEM;
}

tamis_error cuckoo_add(struct foreign **at, const void *key, size_t len, uint64_t most)
{
    struct print x = print_of(key, len);
    struct foreign *f = *at;
    unsigned char *slot = newest_with(f, &x, 0);
    if (!slot && !make_room(f, &f->part[f->n - 1], &x)) {
        tamis_error e = add_part(at, most);
        if (e != TAMIS_OK)
            return e;
        f = *at;
        slot = newest_with(f, &x, 0);
    }
    if (slot)
        *slot = x.f;
    f->items++;
    f->rate_now = -1;
    return TAMIS_OK;
}

/* ---- rates ----------------------------------------------------------------------------------- */

double cuckoo_rate(uint64_t slots, double taken)
{
    double none = 1;
    for (uint64_t i = 0; i < 2 * slots; i++)
        none *= 1 - taken / 255;
    return 1 - none;
}

double cuckoo_rate_of_parts(const struct foreign *f)
{
    double rate = (double)f->n * cuckoo_rate(f->bucket, 1);
    return rate < 0.5 ? rate : 0.5;
}

/* ---- files and chunks ------------------------------------------------------------------------ */

static bool power_of_2(uint64_t x)
{
    return x && !(x & (x - 1));
}

/* A filter whose parts have no memory yet; NULL, and why. */
static struct foreign *cuckoo_new(uint64_t n, uint64_t buckets, uint64_t bucket,
                                  uint64_t iterations, uint64_t expansion, const char **why)
{
    *why = "its parameters are not what RedisBloom makes";
    if (!power_of_2(buckets) || bucket < 1 || bucket > 255 || iterations < 1 ||
        iterations > 65535 || expansion > 65535 || (expansion && !power_of_2(expansion)) ||
        (!expansion && n != 1))
        return NULL;
    *why = "it states no parts or more than 65535, or there is no memory";
    struct foreign *f = foreign_new(n, CUCKOO_PARTS);
    if (!f)
        return NULL;
    *why = "a part of it has more than 4 GB";
    f->bucket = (uint32_t)bucket;
    f->iterations = (uint32_t)iterations;
    f->growth = (uint32_t)expansion;
    for (uint32_t i = 0; i < n; i++, buckets *= expansion) {
        if (buckets > PART_MAX / bucket) {
            foreign_free(f);
            return NULL;
        }
        f->part[i].buckets = buckets;
        f->part[i].capacity = f->part[i].bytes = buckets * bucket;
    }
    return f;
}

static bool load_parts(RedisModuleIO *io, struct foreign *f, uint64_t most, const char **why)
{
    for (struct foreign_part *p = f->part; p < f->part + f->n; p++) {
        size_t len = 0;
        *why = "cut short";
        uint64_t buckets = rm.LoadUnsigned(io);
        if (!rm.IsIOError(io))
            p->data = (unsigned char *)rm.LoadStringBuffer(io, &len);
        if (rm.IsIOError(io) || !p->data)
            return false;
        *why = "its parts are not what RedisBloom makes";
        if (buckets != p->buckets || len != p->bytes)
            return false;
        *why = "it has more bytes than tamis.value-limit";
        if (len > most)
            return false;
        most -= len;
    }
    return true;
}

struct foreign *cuckoo_load(RedisModuleIO *io, int encoding, uint64_t most, const char **why)
{
    uint64_t word[7];
    *why = "its encoding is not 4";
    if (encoding != 4)
        return NULL;
    *why = "cut short";
    for (int i = 0; i < 7; i++) {
        word[i] = rm.LoadUnsigned(io);
        if (rm.IsIOError(io))
            return NULL;
    }
    struct foreign *f = cuckoo_new(word[0], word[1], word[4], word[5], word[6] & ~PARTIAL, why);
    bool good = f && load_parts(io, f, most, why);
    if (!good || (word[6] & PARTIAL && !foreign_load_missing(io, f, why))) {
        foreign_free(f);
        return NULL;
    }
    f->items = word[2];
    f->removals = word[3];
    return f;
}

void cuckoo_save(RedisModuleIO *io, const struct foreign *f)
{
    const uint64_t word[7] = {f->n,      f->part[0].buckets, f->items, f->removals,
                              f->bucket, f->iterations,      f->growth};
    for (int i = 0; i < 7; i++)
        rm.SaveUnsigned(io, word[i] | (i == 6 && f->missing ? PARTIAL : 0));
    for (const struct foreign_part *p = f->part; p < f->part + f->n; p++) {
        rm.SaveUnsigned(io, p->buckets);
        rm.SaveStringBuffer(io, (const char *)p->data, p->bytes);
    }
    if (f->missing)
        rm.SaveUnsigned(io, f->missing);
}

struct packed_cuckoo {
    uint64_t items, buckets, removals, n;
    uint16_t bucket, iterations, growth;
} __attribute__((packed));

bool cuckoo_head(size_t len)
{
    return len == sizeof(struct packed_cuckoo);
}

struct foreign *cuckoo_begin(const void *data, const char **why)
{
    struct packed_cuckoo p;
    memcpy(&p, data, sizeof p);
    struct foreign *f = cuckoo_new(p.n, p.buckets, p.bucket, p.iterations, p.growth, why);
    if (f) {
        f->items = p.items;
        f->removals = p.removals;
    }
    return f;
}

bool cuckoo_head_bytes(const struct foreign *f, struct buffer *out)
{
    const struct packed_cuckoo p = {f->items,
                                    f->part[0].buckets,
                                    f->removals,
                                    f->n,
                                    (uint16_t)f->bucket,
                                    (uint16_t)f->iterations,
                                    (uint16_t)f->growth};
    return buffer_add(out, &p, sizeof p);
}
