/*
 * A family: a secret key and a hash. Structures of one family give a key the same digest, so they can
 * be compared and merged. Everything below works with positions; the family also defines how a digest
 * becomes the k probes of a spread vector:
 *
 *   xxh3, sip   enhanced double hashing on the two words of the digest: x is advanced by y, and y is
 *               rotated and advanced by a growing multiple of an odd constant. Plain double hashing (y
 *               fixed) exceeds the rate by 4 % to several times in small vectors or with many probes.
 *               Without the rotation only the leading bits of y count: keys close to each other in x
 *               and y share all their probes, which alone gives 23 times the rate for 100 keys at 1e-9,
 *               and 2 to 7 times for one or two keys at 1e-4 and 1e-5.
 *   h3          k matrices over GF(2) of 32 rows by 64 (or 32) columns; the product is an address of
 *               32 bits, of which a vector of 2^l bits uses the first l rows (Xie et al., section
 *               6, Algorithm 2), and a vector of any other size the prefix that mul_high takes.
 */
#ifndef TAMIS_DIGEST_H
#define TAMIS_DIGEST_H

#include "base/base.h"
#include "secrets.h"

#define H3_ROWS 32

struct family;

/* The k positions (0..units-1) of a digest in a spread vector. The lab supplies its own
   functions. */
typedef void (*probe_fn)(const struct family *family, tamis_digest digest, uint64_t units,
                         unsigned k, uint64_t *positions);

/* One matrix as tables: table[t][v] is the XOR of the columns that byte t with value v selects. */
struct h3_matrix {
    uint32_t table[8][256];
    uint32_t constant; /* XORed in, so that fingerprint 0 is not a special case */
};

struct family {
    struct secrets *secrets;
    tamis_hash hash;
    bool has_key;         /* false: the key is known here, but neither revealed nor saved */
    struct h3_matrix *h3; /* K_MAX of them, or NULL */
    probe_fn probe;
    void *probe_context;
};

/* Initialises the family from the key (NULL: a random one). */
tamis_error family_init(struct family *family, const tamis_allocator *a, tamis_hash hash,
                        const uint8_t *key);
/* Wipes everything derived from the key, and the key itself with the last family that uses it. */
void family_free(struct family *family, const tamis_allocator *a);
tamis_error family_copy(struct family *to, const struct family *from, const tamis_allocator *a);
/* A value to store instead of the key, by which the key can be recognised. */
void family_check(const struct family *family, uint8_t out[TAMIS_KEY_LEN]);
void key_check(const uint8_t key[TAMIS_KEY_LEN], tamis_hash hash, uint8_t out[TAMIS_KEY_LEN]);
/* Its first bytes, for patches and messages: a heartbeat has room for no more. */
uint32_t family_tag(const struct family *family);
/* True if the probes follow from the hash, false if the family has a probe function of its own. */
bool family_standard(const struct family *family);
bool family_equal(const struct family *x, const struct family *y);

/* A word that nobody outside this process knows. Tables in memory whose entries may come from
   forged bytes use it, so that nobody can make the entries collide. */
uint64_t process_secret(void);

tamis_digest family_digest(const struct family *family, const void *key, size_t len);
void family_digest_many(const struct family *family, const tamis_key *keys, size_t n,
                        tamis_digest *out);
void family_digest_fixed(const struct family *family, const uint8_t *keys, size_t width, size_t n,
                         tamis_digest *out);
/* Digests keys of 8 bytes under xxh3, eight at a time. Returns how many it did, 0 if it cannot. */
size_t digest_eights(const struct family *family, const uint8_t *keys, size_t n, tamis_digest *out);

/* sip.c: under a secret of 16 bytes. */
tamis_digest sip_digest(const uint8_t *secret, const void *key, size_t len);
void sip_digest_many(const uint8_t *secret, const tamis_key *keys, size_t n, tamis_digest *out);

/* The digest of an 8-byte key, inlined for the shortest paths. Not for sip. */
#define XXH_INLINE_ALL
#include <xxhash.h>

ALWAYS_INLINE tamis_digest digest_xxh3(const struct family *family, const void *key, size_t len)
{
    XXH128_hash_t h = XXH3_128bits_withSecret(key, len, family->secrets->xxh3, SECRET_LEN);
    return (tamis_digest){h.low64, h.high64};
}

/*
 * The same in steps, for lookups in which every instruction counts: what the secret adds to the
 * key, computed once; the product; and its two words.
 */
#define EIGHT_A UINT64_C(0x9FB21C651E98DF25)
#define EIGHT_B UINT64_C(0x165667919E3779F9)

ALWAYS_INLINE uint64_t digest_flip(const struct family *family)
{
    const uint8_t *secret = family->secrets->xxh3;
    return XXH_readLE64(secret + 16) ^ XXH_readLE64(secret + 24);
}

/* Word b still needs its final mix: b ^= b >> 37, b *= EIGHT_B, b ^= b >> 32. */
ALWAYS_INLINE tamis_digest digest_eight(uint64_t flip, const void *key)
{
    uint64_t word = XXH_readLE64(key);
    unsigned __int128 product = (unsigned __int128)(word ^ flip) * (XXH_PRIME64_1 + (8 << 2));
    tamis_digest d = {(uint64_t)product, (uint64_t)(product >> 64)};
    d.b += d.a << 1;
    d.a ^= d.b >> 3;
    d.a = (d.a ^ d.a >> 35) * EIGHT_A;
    d.a ^= d.a >> 28;
    return d;
}

ALWAYS_INLINE tamis_digest digest_eight_whole(uint64_t flip, const void *key)
{
    tamis_digest d = digest_eight(flip, key);
    d.b = (d.b ^ d.b >> 37) * EIGHT_B;
    d.b ^= d.b >> 32;
    return d;
}

/* Enhanced double hashing: the default probe function, and its body for the kernels. */
struct probe {
    uint64_t x, y, step;
};

ALWAYS_INLINE struct probe probe_first(tamis_digest d)
{
    return (struct probe){d.a, d.b, GOLDEN};
}

ALWAYS_INLINE void probe_next(struct probe *p)
{
    p->x += p->y;
    p->y = (p->y << 21 | p->y >> 43) + p->step;
    p->step += GOLDEN;
}

void probe_double(const struct family *family, tamis_digest digest, uint64_t units, unsigned k,
                  uint64_t *positions);

/* H3 from rows as published: bit w-1 of a row is its first column, row 0 yields the first
   (highest) bit of the address. */
void h3_from_rows(struct h3_matrix *matrix, const uint64_t *rows, unsigned n_rows,
                  uint32_t constant);
uint32_t h3_address(const struct h3_matrix *matrix, uint64_t fingerprint);
/* Draws matrices 0..n-1 of full row rank over `width` columns, with rows distinct across
   matrices. */
void h3_draw(struct h3_matrix *matrices, unsigned n, unsigned width,
             const uint8_t key[TAMIS_KEY_LEN]);

#endif
