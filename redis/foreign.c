/*
 * Bloom filters of RedisBloom, loaded from its files and chunks and queried with their own hash and layout.
 * They never change: new items go into a tamis set on top of them (on_top.c).
 *
 * A filter is a chain of parts, oldest first. A key has two 64-bit words, a = murmur(key, SEED) and
 * b = murmur(key, a); its i-th bit in a part of m bits is (a + i b) mod m, where a + i b wraps at 2^64, and the
 * lowest bit of a byte comes first. The first part of a chain that grows has half the stated rate and each
 * later part half the rate of the one before; a chain that does not grow has one part with the stated rate.
 *
 * In a file (type MBbloom--, encodings 2 to 4):
 *
 *   unsigned   items, parts, options, growth (from encoding 4 on; else 2)
 *   each part  unsigned capacity, double rate, unsigned hashes, double bits per item, unsigned bits,
 *              unsigned log2 of the bits or 0, string: the bits, unsigned items
 *
 * followed by the set on top (option TOP), or by the number of missing bytes of an unfinished load (option
 * PARTIAL). Without these options RedisBloom can load it again. The first chunk is packed and little-endian:
 *
 *   items 8, parts 4, options 4, growth 4
 *   each part  bytes 8, bits 8, items 8, rate 8, bits per item 8, hashes 4, capacity 8, log2 1
 *
 * The other chunks contain the bytes of all parts in order; the cursor of a chunk is 1 plus the number of bytes up
 * to its end.
 */
#include "foreign.h"

#include <string.h>

#define SEED        UINT64_C(0xc6a4a7935bd1e995)
#define BLOOM_PARTS 1024
#define HASHES_MAX  2048 /* a rate of 5e-324, the lowest, needs 1075 */
#define SAMPLE_PAGE 4096
#define SAMPLE      ((uint64_t)4 << 20)
#define HEAD        sizeof(struct packed_head)
#define HEAD_PART   sizeof(struct packed_part)

enum { FORCE64 = 4, NO_SCALING = 8 }; /* bits of the options */

#define TOP     ((uint64_t)1 << 40)
#define PARTIAL ((uint64_t)1 << 41)

/* ---- asking ---------------------------------------------------------------------------------- */

/* MurmurHash64A by Austin Appleby, in the public domain. */
uint64_t foreign_hash(const void *key, size_t len, uint64_t seed)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *p = key;
    uint64_t h = seed ^ len * m, k;
    for (; len >= 8; p += 8, len -= 8) {
        memcpy(&k, p, 8);
        k *= m;
        k ^= k >> 47;
        h = (h ^ k * m) * m;
    }
    if (len) {
        k = 0;
        memcpy(&k, p, len);
        h = (h ^ k) * m;
    }
    h = (h ^ h >> 47) * m;
    return h ^ h >> 47;
}

static bool part_has(const struct foreign_part *p, uint64_t a, uint64_t b)
{
    uint64_t m = p->log2 ? UINT64_C(1) << p->log2 : p->bits;
    for (uint32_t i = 0; i < p->hashes; i++, a += b) {
        uint64_t at = a % m;
        if (!(p->data[at >> 3] >> (at & 7) & 1))
            return false;
    }
    return true;
}

bool foreign_has(const struct foreign *f, const void *key, size_t len)
{
    if (f->bucket)
        return cuckoo_has(f, key, len);
    uint64_t a = foreign_hash(key, len, SEED), b = foreign_hash(key, len, a);
    for (uint32_t i = f->n; i-- > 0;)
        if (part_has(&f->part[i], a, b))
            return true;
    return false;
}

bool foreign_scales(const struct foreign *f)
{
    return f->bucket ? f->growth > 0 : !(f->options & NO_SCALING);
}

double foreign_rate(const struct foreign *f)
{
    double rate = f->part[0].rate * (foreign_scales(f) ? 2 : 1);
    if (f->bucket)
        return cuckoo_rate_of_parts(f);
    return rate < 0.5 ? rate : 0.5;
}

static uint64_t data_bytes(const struct foreign *f)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < f->n; i++)
        all += f->part[i].bytes;
    return all;
}

/* The ones of a Bloom filter, or the used slots of a cuckoo filter. */
static uint64_t count_taken(const unsigned char *data, size_t len, bool slots)
{
    uint64_t n = 0, word = 0;
    for (size_t i = 0; slots && i < len; i++)
        n += data[i] != 0;
    for (size_t i = 0; !slots && i < len; i += 8) {
        word = 0;
        memcpy(&word, data + i, len - i < 8 ? len - i : 8);
        n += (uint64_t)__builtin_popcountll(word);
    }
    return n;
}

/* The share of the bits or slots of a part that are in use. In a large filter, only every n-th page is counted: 4 MB
   take a millisecond, and determine the rate to about 0.3 %. */
static double part_taken(const struct foreign *f, const struct foreign_part *p)
{
    const uint64_t step = SAMPLE_PAGE * (1 + data_bytes(f) / SAMPLE);
    uint64_t taken = 0, seen = 0;
    for (uint64_t at = 0; at < p->bytes; at += step) {
        size_t len = p->bytes - at < SAMPLE_PAGE ? (size_t)(p->bytes - at) : SAMPLE_PAGE;
        taken += count_taken(p->data + at, len, f->bucket);
        seen += len;
    }
    seen = f->bucket ? seen : 8 * seen < p->bits ? 8 * seen : p->bits;
    return (double)taken / (double)seen;
}

static double part_rate_now(const struct foreign *f, const struct foreign_part *p)
{
    double taken = part_taken(f, p), rate = 1;
    if (f->bucket)
        return cuckoo_rate(f->bucket, taken);
    for (uint32_t i = 0; i < p->hashes && rate > 1e-30; i++)
        rate *= taken;
    return rate;
}

double foreign_rate_now(struct foreign *f)
{
    double none = 1;
    for (uint32_t i = 0; i < f->n && f->rate_now < 0; i++)
        none *= 1 - part_rate_now(f, &f->part[i]);
    if (f->rate_now < 0)
        f->rate_now = 1 - none;
    return f->rate_now;
}

uint64_t foreign_capacity(const struct foreign *f)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < f->n; i++)
        all += f->part[i].capacity;
    return all;
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t foreign_bytes(const struct foreign *f)
{
    return sizeof *f + f->n * sizeof *f->part + (size_t)data_bytes(f);
}

void foreign_free(struct foreign *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n; i++)
        rm.Free(f->part[i].data);
    rm.Free(f);
}

struct foreign *foreign_new(uint64_t n, uint64_t most)
{
    size_t len = sizeof(struct foreign) + (size_t)n * sizeof(struct foreign_part);
    struct foreign *f = n >= 1 && n <= most ? rm.TryAlloc(len) : NULL;
    if (f) {
        memset(f, 0, len);
        f->n = (uint32_t)n;
        f->growth = 2;
        f->rate_now = -1;
    }
    return f;
}

struct foreign *foreign_copy(const struct foreign *f)
{
    struct foreign *copy = foreign_new(f->n, f->n);
    if (!copy)
        return NULL;
    memcpy(copy, f, sizeof *f + f->n * sizeof *f->part);
    for (uint32_t i = 0; i < f->n; i++)
        copy->part[i].data = NULL;
    for (uint32_t i = 0; i < f->n; i++) {
        copy->part[i].data = rm.TryAlloc(f->part[i].bytes);
        if (!copy->part[i].data) {
            foreign_free(copy);
            return NULL;
        }
        mem_copy(copy->part[i].data, f->part[i].data, f->part[i].bytes);
    }
    return copy;
}

void foreign_move(struct foreign **f, void *(*move)(void *context, void *memory), void *context)
{
    void *moved = move(context, *f);
    if (moved)
        *f = moved;
    for (uint32_t i = 0; i < (*f)->n; i++) {
        moved = move(context, (*f)->part[i].data);
        if (moved)
            (*f)->part[i].data = moved;
    }
}

/* Could RedisBloom have made these parameters, and do they match the number of bytes? */
static bool part_good(const struct foreign_part *p)
{
    return p->rate > 0 && p->rate < 1 && p->bits_each > 0 && p->bits_each < 1e6 && p->hashes >= 1 &&
           p->hashes <= HASHES_MAX && p->bits >= 1 && p->bytes <= UINT64_MAX / 16 &&
           p->bits <= 8 * (uint64_t)p->bytes && p->log2 < 63 &&
           (p->log2 == 0 || p->bits >= UINT64_C(1) << p->log2);
}

static bool chain_good(const struct foreign *f, const char **why)
{
    *why = "its parts are not what RedisBloom makes";
    for (uint32_t i = 0; i < f->n; i++)
        if (!part_good(&f->part[i]))
            return false;
    *why = "it was made by a RedisBloom before 1.1, which had a hash of 32 bits";
    return f->options & FORCE64;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool load_part(RedisModuleIO *io, struct foreign_part *p)
{
    size_t len = 0;
    p->capacity = rm.LoadUnsigned(io);
    p->rate = rm.LoadDouble(io);
    uint64_t hashes = rm.LoadUnsigned(io);
    p->hashes = hashes <= HASHES_MAX ? (uint32_t)hashes : 0;
    p->bits_each = rm.LoadDouble(io);
    p->bits = rm.LoadUnsigned(io);
    uint64_t log2 = rm.LoadUnsigned(io);
    p->log2 = log2 < 64 ? (uint32_t)log2 : 64;
    if (rm.IsIOError(io))
        return false;
    p->data = (unsigned char *)rm.LoadStringBuffer(io, &len);
    p->bytes = p->data ? len : 0;
    p->items = rm.IsIOError(io) ? 0 : rm.LoadUnsigned(io);
    return !rm.IsIOError(io) && p->data;
}

/* Of a filter that is still being loaded in chunks. */
bool foreign_load_missing(RedisModuleIO *io, struct foreign *f, const char **why)
{
    *why = "it states more missing bytes than it has";
    f->missing = rm.LoadUnsigned(io);
    return !rm.IsIOError(io) && f->missing <= data_bytes(f);
}

static bool load_parts(RedisModuleIO *io, struct foreign *f, uint64_t most, const char **why)
{
    for (struct foreign_part *p = f->part; p < f->part + f->n; p++) {
        *why = "cut short";
        if (!load_part(io, p))
            return false;
        *why = "it has more bytes than tamis.value-limit";
        if (p->bytes > most)
            return false;
        most -= p->bytes;
    }
    return chain_good(f, why);
}

struct foreign *foreign_load(RedisModuleIO *io, int encoding, uint64_t most, bool *top,
                             const char **why)
{
    *why = "its encoding is not one of 2 to 4";
    if (encoding < 2 || encoding > 4)
        return NULL;
    *why = "cut short";
    uint64_t items = rm.LoadUnsigned(io), n = rm.LoadUnsigned(io), options = rm.LoadUnsigned(io);
    uint64_t growth = encoding == 4 ? rm.LoadUnsigned(io) : 2;
    if (rm.IsIOError(io))
        return NULL;
    *why = "it states no parts or more than 1024, or there is no memory";
    struct foreign *f = foreign_new(n, BLOOM_PARTS);
    if (!f)
        return NULL;
    f->items = items;
    f->options = options & ~(TOP | PARTIAL);
    f->growth = (uint32_t)growth;
    *top = options & TOP;
    bool partial = options & PARTIAL; /* and so without a set on top */
    if (load_parts(io, f, most, why) && (!partial || (foreign_load_missing(io, f, why) && !*top)))
        return f;
    foreign_free(f);
    return NULL;
}

void foreign_save(RedisModuleIO *io, const struct foreign *f, bool top)
{
    rm.SaveUnsigned(io, f->items);
    rm.SaveUnsigned(io, f->n);
    rm.SaveUnsigned(io, f->options | (top ? TOP : 0) | (f->missing ? PARTIAL : 0));
    rm.SaveUnsigned(io, f->growth);
    for (const struct foreign_part *p = f->part; p < f->part + f->n; p++) {
        rm.SaveUnsigned(io, p->capacity);
        rm.SaveDouble(io, p->rate);
        rm.SaveUnsigned(io, p->hashes);
        rm.SaveDouble(io, p->bits_each);
        rm.SaveUnsigned(io, p->bits);
        rm.SaveUnsigned(io, p->log2);
        rm.SaveStringBuffer(io, (const char *)p->data, p->bytes);
        rm.SaveUnsigned(io, p->items);
    }
    if (f->missing)
        rm.SaveUnsigned(io, f->missing);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* The first chunk: the bytes of the structs in memory, since tamis needs a little-endian machine. */
struct packed_head {
    uint64_t items;
    uint32_t n, options, growth;
} __attribute__((packed));

struct packed_part {
    uint64_t bytes, bits, items;
    double rate, bits_each;
    uint32_t hashes;
    uint64_t capacity;
    uint8_t log2;
} __attribute__((packed));

bool foreign_head(const void *data, size_t len, enum command_dialect dialect)
{
    struct packed_head head;
    if (cuckoo_head(len))
        return dialect != BF;
    if (dialect == CF || len < HEAD + HEAD_PART || (len - HEAD) % HEAD_PART)
        return false;
    memcpy(&head, data, HEAD);
    return head.n == (len - HEAD) / HEAD_PART && head.options <= 15;
}

/* Allocates the parts, of up to `most` bytes together; all bytes are missing. */
static bool take_parts(struct foreign *f, uint64_t most)
{
    for (uint32_t i = 0; i < f->n; i++) {
        struct foreign_part *p = &f->part[i];
        if (p->bytes > most)
            return false;
        most -= p->bytes;
        p->data = rm.TryAlloc(p->bytes);
        if (!p->data)
            return false;
        memory_clear(p->data, p->bytes);
    }
    f->missing = data_bytes(f);
    return true;
}

static struct foreign *begin_parts(const unsigned char *data, size_t len, const char **why)
{
    struct packed_head head;
    *why = "no memory";
    struct foreign *f = foreign_new((len - HEAD) / HEAD_PART, BLOOM_PARTS);
    if (!f)
        return NULL;
    memcpy(&head, data, HEAD);
    f->items = head.items;
    f->options = head.options;
    f->growth = head.growth;
    for (uint32_t i = 0; i < f->n; i++) {
        struct packed_part p;
        memcpy(&p, data + HEAD + i * HEAD_PART, HEAD_PART);
        f->part[i] = (struct foreign_part){.bytes = (size_t)p.bytes,
                                           .bits = p.bits,
                                           .items = p.items,
                                           .rate = p.rate,
                                           .bits_each = p.bits_each,
                                           .hashes = p.hashes,
                                           .capacity = p.capacity,
                                           .log2 = p.log2};
    }
    if (chain_good(f, why))
        return f;
    foreign_free(f);
    return NULL;
}

struct foreign *foreign_begin(const void *data, size_t len, uint64_t most, const char **why)
{
    struct foreign *f = cuckoo_head(len) ? cuckoo_begin(data, why) : begin_parts(data, len, why);
    if (!f)
        return NULL;
    *why = "no memory, or more than tamis.value-limit";
    if (take_parts(f, most))
        return f;
    foreign_free(f);
    return NULL;
}

/* Finds byte `at` of all parts; returns how many bytes its part has from there on, 0 after the last. */
static size_t find_byte(const struct foreign *f, uint64_t at, unsigned char **data)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (at < f->part[i].bytes) {
            *data = f->part[i].data + at;
            return f->part[i].bytes - (size_t)at;
        }
        at -= f->part[i].bytes;
    }
    return 0;
}

bool foreign_add_chunk(struct foreign *f, uint64_t cursor, const void *chunk, size_t len)
{
    unsigned char *to = NULL;
    uint64_t have = data_bytes(f) - f->missing;
    if (!len || cursor != have + len + 1 || find_byte(f, have, &to) < len)
        return false;
    memcpy(to, chunk, len);
    f->missing -= len;
    return true;
}

size_t foreign_chunk(const struct foreign *f, uint64_t cursor, const void **chunk, size_t most)
{
    unsigned char *data = NULL;
    uint64_t have = data_bytes(f) - f->missing;
    size_t len = cursor && cursor - 1 < have ? find_byte(f, cursor - 1, &data) : 0;
    *chunk = data;
    len = len < most ? len : most;
    return len < have - (cursor - 1) ? len : (size_t)(have - (cursor - 1));
}

bool foreign_head_bytes(const struct foreign *f, struct buffer *out)
{
    const struct packed_head head = {f->items, f->n, (uint32_t)f->options, f->growth};
    if (f->bucket)
        return cuckoo_head_bytes(f, out);
    bool good = buffer_add(out, &head, HEAD);
    for (const struct foreign_part *x = f->part; good && x < f->part + f->n; x++) {
        const struct packed_part p = {x->bytes,     x->bits,   x->items,    x->rate,
                                      x->bits_each, x->hashes, x->capacity, (uint8_t)x->log2};
        good = buffer_add(out, &p, HEAD_PART);
    }
    return good;
}
