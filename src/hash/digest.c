/* Families: secrets derived from a key, digests of keys under them, and the probes that a digest
   yields. */
#include "digest.h"

#include <sodium.h>
#include <stdatomic.h>

#include "base/bytes.h"

static void probe_h3(const struct family *family, tamis_digest digest, uint64_t units, unsigned k,
                     uint64_t *positions);

tamis_error family_init(struct family *family, const tamis_allocator *a, tamis_hash hash,
                        const uint8_t *key)
{
    struct family f = {.hash = hash, .has_key = true, .probe = probe_double};
    f.secrets = secrets_get(key);
    if (!f.secrets)
        return TAMIS_ENOMEM;
    if (hash == TAMIS_H3) {
        f.probe = probe_h3;
        f.h3 = mem_new(a, K_MAX, sizeof *f.h3);
        if (!f.h3) {
            secrets_release(f.secrets);
            return TAMIS_ENOMEM;
        }
        h3_draw(f.h3, K_MAX, 64, f.secrets->key);
    }
    *family = f;
    return TAMIS_OK;
}

void family_free(struct family *family, const tamis_allocator *a)
{
    mem_free_secret(a, family->h3, K_MAX, sizeof *family->h3);
    secrets_release(family->secrets);
    family->h3 = NULL;
    family->secrets = NULL;
}

tamis_error family_copy(struct family *to, const struct family *from, const tamis_allocator *a)
{
    struct h3_matrix *h3 = from->h3 ? mem_new(a, K_MAX, sizeof *h3) : NULL;
    if (from->h3 && !h3)
        return TAMIS_ENOMEM;
    if (h3)
        memcpy(h3, from->h3, K_MAX * sizeof *h3);
    *to = *from;
    to->h3 = h3;
    secrets_share(to->secrets);
    return TAMIS_OK;
}

void family_check(const struct family *family, uint8_t out[TAMIS_KEY_LEN])
{
    key_check(family->secrets->key, family->hash, out);
}

uint32_t family_tag(const struct family *family)
{
    uint8_t check[TAMIS_KEY_LEN];
    family_check(family, check);
    return get_u32(check);
}

void key_check(const uint8_t key[TAMIS_KEY_LEN], tamis_hash hash, uint8_t out[TAMIS_KEY_LEN])
{
    key_stream(key, PURPOSE_CHECK, (uint64_t)hash, out);
}

bool family_standard(const struct family *family)
{
    return family->probe == (family->hash == TAMIS_H3 ? probe_h3 : probe_double);
}

bool family_equal(const struct family *x, const struct family *y)
{
    return x->hash == y->hash && x->probe == y->probe && x->probe_context == y->probe_context &&
           x->secrets == y->secrets; /* equal keys share one struct */
}

uint64_t process_secret(void)
{
    static _Atomic uint64_t secret;
    uint64_t word = atomic_load_explicit(&secret, memory_order_relaxed), drawn;
    if (LIKELY(word != 0))
        return word;
    do
        randombytes_buf(&drawn, sizeof drawn);
    while (drawn == 0);
    return atomic_compare_exchange_strong(&secret, &word, drawn) ? drawn : word;
}

tamis_digest family_digest(const struct family *family, const void *key, size_t len)
{
    if (LIKELY(family->hash != TAMIS_SIP)) /* 8 bytes are common and fast */
        return len == 8 ? digest_xxh3(family, key, 8) : digest_xxh3(family, key, len);
    return sip_digest(family->secrets->key, key, len);
}

void family_digest_many(const struct family *family, const tamis_key *keys, size_t n,
                        tamis_digest *out)
{
    if (family->hash == TAMIS_SIP) {
        sip_digest_many(family->secrets->key, keys, n, out);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = family_digest(family, keys[i].data, keys[i].len);
}

void family_digest_fixed(const struct family *family, const uint8_t *keys, size_t width, size_t n,
                         tamis_digest *out)
{
    if (family->hash != TAMIS_SIP && width == 8) { /* with a known length the hash is inlined */
        for (size_t i = digest_eights(family, keys, n, out); i < n; i++)
            out[i] = digest_xxh3(family, keys + 8 * i, 8);
        return;
    }
    for (size_t i = 0; i < n;) {
        tamis_key key[64];
        size_t some = 0;
        for (; some < sizeof key / sizeof *key && i + some < n; some++)
            key[some] = (tamis_key){keys + width * (i + some), width};
        family_digest_many(family, key, some, out + i);
        i += some;
    }
}

void probe_double(const struct family *family, tamis_digest digest, uint64_t units, unsigned k,
                  uint64_t *positions)
{
    (void)family;
    struct probe p = probe_first(digest);
    for (unsigned j = 0; j < k; j++, probe_next(&p))
        positions[j] = mul_high(p.x, units);
}

/* ---- H3 -------------------------------------------------------------------------------------- */

uint32_t h3_address(const struct h3_matrix *matrix, uint64_t fingerprint)
{
    uint32_t address = matrix->constant;
    for (unsigned t = 0; t < 8; t++)
        address ^= matrix->table[t][(fingerprint >> (8 * t)) & 255];
    return address;
}

static void probe_h3(const struct family *family, tamis_digest digest, uint64_t units, unsigned k,
                     uint64_t *positions)
{
    for (unsigned j = 0; j < k; j++)
        positions[j] = ((uint64_t)h3_address(&family->h3[j], digest.a) * units) >> 32;
}

void h3_from_rows(struct h3_matrix *matrix, const uint64_t *rows, unsigned n_rows,
                  uint32_t constant)
{
    uint32_t columns[64] = {0};
    for (unsigned c = 0; c < 64; c++)
        for (unsigned i = 0; i < n_rows; i++)
            columns[c] |= (uint32_t)((rows[i] >> c) & 1) << (31 - i);
    matrix->constant = constant;
    for (unsigned t = 0; t < 8; t++) {
        matrix->table[t][0] = 0;
        for (unsigned v = 1; v < 256; v++) {
            unsigned lowest = (unsigned)__builtin_ctz(v);
            matrix->table[t][v] = matrix->table[t][v & (v - 1)] ^ columns[8 * t + lowest];
        }
    }
}

/* Adds the row to a basis in echelon form; false if it depends linearly on the earlier rows. */
static bool basis_add(uint64_t basis[64], uint64_t row)
{
    for (int bit = 63; bit >= 0 && row; bit--) {
        if (!(row >> bit & 1))
            continue;
        if (!basis[bit]) {
            basis[bit] = row;
            return true;
        }
        row ^= basis[bit];
    }
    return false;
}

void h3_draw(struct h3_matrix *matrices, unsigned n, unsigned width,
             const uint8_t key[TAMIS_KEY_LEN])
{
    uint64_t mask = width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;
    uint64_t rows[K_MAX][H3_ROWS], basis[64];
    uint64_t counter = 0;
    uint8_t drawn[16];
    for (unsigned j = 0; j < n; j++) {
        memset(basis, 0, sizeof basis);
        for (unsigned i = 0; i < H3_ROWS;) {
            key_stream(key, PURPOSE_H3, counter++, drawn);
            uint64_t row = get_u64(drawn) & mask;
            bool taken = false; /* equals a row of an earlier matrix: the condition of Theorem 3 */
            for (unsigned e = 0; e < j; e++)
                taken |= rows[e][i] == row;
            if (taken || !basis_add(basis, row))
                continue;
            rows[j][i++] = row;
        }
        key_stream(key, PURPOSE_H3, counter++, drawn);
        h3_from_rows(&matrices[j], rows[j], H3_ROWS, (uint32_t)get_u64(drawn));
    }
    explicit_bzero(rows, sizeof rows);
    explicit_bzero(basis, sizeof basis);
    explicit_bzero(drawn, sizeof drawn);
}
