/* Digests and probes. What reaches the disk is frozen: the values below were written down once and
 * must never change, since files and other machines hold bits that they led to.
 */
#include <math.h>
#include <sodium.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "harness.h"
#include "bits/kernel.h"
#include "tamis.h"

/* The key is 0, 1, .. 15; the text is 1, 8, 15, .. in bytes. */
static uint8_t key[TAMIS_KEY_LEN], text[1000];

static void set_inputs(void)
{
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)i;
    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(7 * i + 1);
}

static struct family family_of(tamis_hash hash)
{
    struct family family;
    set_inputs();
    CHECK(family_init(&family, &mem_system, hash, key) == TAMIS_OK);
    return family;
}

struct frozen {
    size_t len;
    uint64_t a, b;
};

static const struct frozen frozen_xxh3[] = {
    {0, UINT64_C(0x97fadb6d150a8750), UINT64_C(0xe407d019e074f32f)},
    {1, UINT64_C(0xf6c2ac2271b8a3cf), UINT64_C(0xc85c4e22f4840c70)},
    {3, UINT64_C(0xab04ea8bb27a7e7c), UINT64_C(0xe3218344d64538b6)},
    {4, UINT64_C(0x0326db8ad86bcdf1), UINT64_C(0xd196dd78d88b307a)},
    {8, UINT64_C(0xf1c537328b02195b), UINT64_C(0x5377eb09815aac1d)},
    {9, UINT64_C(0xf1bc572669ff6d78), UINT64_C(0xa4ed4cc132d89452)},
    {16, UINT64_C(0xb0b989676936010c), UINT64_C(0xe3895d24900bd701)},
    {17, UINT64_C(0x077b5829f45da5f6), UINT64_C(0xd2077dcad0b59d70)},
    {64, UINT64_C(0xeb61986c380dd79b), UINT64_C(0x5536bec00b6bbd91)},
    {128, UINT64_C(0xeb166870c4be232a), UINT64_C(0x16a1812f2960c839)},
    {129, UINT64_C(0x21bf28c050de3d22), UINT64_C(0x058ab5ad961b4498)},
    {240, UINT64_C(0x1f1404e7eb92a28f), UINT64_C(0xd408ebec84b9a49c)},
    {241, UINT64_C(0x74b18aeaf2baaa9e), UINT64_C(0x572ae6084f7e4aac)},
    {1000, UINT64_C(0x4ececa7523c1bc13), UINT64_C(0xb2f6b96bc0f9f500)},
};

static const struct frozen frozen_sip[] = {
    {0, UINT64_C(0xe6a825ba047f81a3), UINT64_C(0x930255c71472f66d)}, /* its authors' test vector */
    {1, UINT64_C(0x4eb2bcbf1bad5900), UINT64_C(0xeccd3e8fa2a819de)},
    {3, UINT64_C(0xf206d8aaafe06da6), UINT64_C(0x94e0ee5723d991d0)},
    {4, UINT64_C(0xbcecbd40b5af7815), UINT64_C(0xa0219095858e13da)},
    {8, UINT64_C(0xbca91141e4c50163), UINT64_C(0x52b01e677f748524)},
    {9, UINT64_C(0xa8af5dc1f0dd92a7), UINT64_C(0xd64178a464ab1149)},
    {16, UINT64_C(0x4e46f897c328bda8), UINT64_C(0x645e69cea63b03fa)},
    {17, UINT64_C(0xd8f51eeca6e69057), UINT64_C(0x7f08bc041ad0a093)},
    {64, UINT64_C(0xeecf89dc2c534bf3), UINT64_C(0x89e71ffcc8404f03)},
    {128, UINT64_C(0x478304bf198e8a73), UINT64_C(0xd8c11fa4230c70e3)},
    {129, UINT64_C(0x3121feed0db1699b), UINT64_C(0x47933775f52ae529)},
    {240, UINT64_C(0x5cbcc51fb4c295ac), UINT64_C(0x82da3017ee63f4fa)},
    {241, UINT64_C(0x87e9986745aa9922), UINT64_C(0x58e914689ca08fba)},
    {1000, UINT64_C(0xa71aa75c5ad3af35), UINT64_C(0xc22a301e757d4cd7)},
};

enum { N_FROZEN = sizeof frozen_xxh3 / sizeof *frozen_xxh3 };

static void check_frozen(tamis_hash hash, const struct frozen *frozen)
{
    struct family family = family_of(hash);
    for (unsigned i = 0; i < N_FROZEN; i++) {
        tamis_digest d = family_digest(&family, text, frozen[i].len);
        CHECK_MSG(d.a == frozen[i].a && d.b == frozen[i].b, "hash %d, %zu bytes", (int)hash,
                  frozen[i].len);
    }
    family_free(&family, &mem_system);
}

TEST(digests_are_frozen)
{
    check_frozen(TAMIS_XXH3, frozen_xxh3);
    check_frozen(TAMIS_SIP, frozen_sip);
    check_frozen(TAMIS_H3, frozen_xxh3); /* its fingerprint is word a of the same digest */
}

TEST(probes_are_frozen)
{
    static const uint64_t spread[] = {4444444,   1000000006, 942478439, 709677045,
                                      656529941, 574276359,  401815185, 816613243,
                                      714290142, 564295328,  205362449, 585301081};
    struct family family = family_of(TAMIS_XXH3);
    uint64_t positions[64];
    tamis_digest d = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
    probe_double(&family, d, 1000000007, 12, positions);
    CHECK(memcmp(positions, spread, sizeof spread) == 0);
    family_free(&family, &mem_system);
}

static const uint64_t fingerprints[] = {0, 1, 69, UINT64_C(0x0123456789abcdef), UINT64_MAX};

TEST(h3_is_frozen)
{
    static const uint32_t frozen[4][5] = {
        {0x47eb23d5, 0x1681eeeb, 0x1da33304, 0xc43f940b, 0x4c5e0a14},
        {0x98fb0cc8, 0x86e7b842, 0x422f4e96, 0x0fbc45e4, 0x3cc0ec14},
        {0x190448b5, 0x611f600d, 0x2b239242, 0x077f46a4, 0xca850826},
        {0xa5afb340, 0xafdd2ded, 0xf5315cef, 0x00bb7097, 0x15b00f4b},
    };
    struct family family = family_of(TAMIS_H3);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 5; j++)
            CHECK_MSG(h3_address(&family.h3[21 * i], fingerprints[j]) == frozen[i][j],
                      "matrix %u, fingerprint %u", 21 * i, j);
    family_free(&family, &mem_system);
}

TEST(key_checks_are_frozen)
{
    static const uint8_t frozen[3][4] = {
        {0xbf, 0xe2, 0xfd, 0xa4}, {0x9a, 0x71, 0x00, 0xfb}, {0xf9, 0xb3, 0x01, 0x70}};
    for (int hash = TAMIS_XXH3; hash <= TAMIS_H3; hash++) {
        struct family family = family_of((tamis_hash)hash);
        uint8_t check[TAMIS_KEY_LEN];
        family_check(&family, check);
        CHECK(memcmp(check, frozen[hash - 1], 4) == 0);
        CHECK(memcmp(check, key, 4) != 0); /* it tells nothing of the key */
        family_free(&family, &mem_system);
    }
}

/* ---- the same from the libraries that define it ---------------------------------------------- */

static void put_le64(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le64(const uint8_t *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

/* Block i of the stream for a purpose: SipHash-2-4-128 under the key of purpose and i, both as eight
   bytes, low first. */
static void stream_block(uint64_t purpose, uint64_t i, uint8_t out[16])
{
    uint8_t message[16];
    put_le64(message, purpose);
    put_le64(message + 8, i);
    crypto_shorthash_siphashx24(out, message, sizeof message, key);
}

/* xxh3: XXH3-128 under a secret of twelve such blocks, purpose 1; its low word is a, its high b. */
TEST(xxh3_is_keyed_as_described)
{
    struct family family = family_of(TAMIS_XXH3);
    uint8_t secret[192];
    for (unsigned i = 0; i < 12; i++)
        stream_block(1, i, secret + 16 * i);
    for (size_t len = 0; len <= sizeof text; len++) {
        tamis_digest d = family_digest(&family, text, len);
        XXH128_hash_t h = XXH3_128bits_withSecret(text, len, secret, sizeof secret);
        CHECK_MSG(d.a == h.low64 && d.b == h.high64, "%zu bytes", len);
    }
    family_free(&family, &mem_system);
}

TEST(sip_is_the_one_of_libsodium)
{
    struct family family = family_of(TAMIS_SIP);
    for (size_t len = 0; len <= sizeof text; len++) {
        uint8_t out[16];
        uint8_t *exact = malloc(len + 1); /* whoever reads behind it is noticed */
        memcpy(exact + 1, text, len);
        tamis_digest d = family_digest(&family, exact + 1, len);
        crypto_shorthash_siphashx24(out, text, len, key);
        CHECK_MSG(d.a == get_le64(out) && d.b == get_le64(out + 8), "%zu bytes", len);
        free(exact);
    }
    family_free(&family, &mem_system);
}

/* The ways to digest many keys give the digests of each. */
TEST(many_digests_are_each)
{
    for (int hash = TAMIS_XXH3; hash <= TAMIS_H3; hash++) {
        set_inputs();
        tamis_options o = {.hash = (tamis_hash)hash, .key = key};
        tamis_filter *f = NULL;
        tamis_digest many[50], one;
        CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
        for (size_t width = 1; width <= 20; width++) {
            tamis_key keys[50];
            tamis_filter_digest_fixed(f, text, width, 50, many);
            for (size_t i = 0; i < 50; i++) {
                one = tamis_filter_digest(f, text + width * i, width);
                CHECK(one.a == many[i].a && one.b == many[i].b);
                keys[i] = (tamis_key){text + i, width * i / 2};
            }
            tamis_filter_digest_many(f, keys, 50, many);
            for (size_t i = 0; i < 50; i++) {
                one = tamis_filter_digest(f, keys[i].data, keys[i].len);
                CHECK(one.a == many[i].a && one.b == many[i].b);
            }
        }
        tamis_filter_free(f);
    }
}

TEST(families_are_random_unless_given)
{
    tamis_filter *a = NULL, *b = NULL, *c = NULL;
    uint8_t one[TAMIS_KEY_LEN], other[TAMIS_KEY_LEN];
    CHECK(tamis_filter_new(&a, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_new(&b, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_key(a, one) && tamis_filter_key(b, other));
    CHECK(memcmp(one, other, sizeof one) != 0 && !tamis_filter_same_family(a, b));
    tamis_digest x = tamis_filter_digest(a, "key", 3), y = tamis_filter_digest(b, "key", 3);
    CHECK(x.a != y.a && x.b != y.b);
    tamis_options o = {.key = one};
    CHECK(tamis_filter_new(&c, &o, NULL) == TAMIS_OK);
    tamis_digest z = tamis_filter_digest(c, "key", 3);
    CHECK(x.a == z.a && x.b == z.b && tamis_filter_same_family(a, c));
    tamis_filter_free(a);
    tamis_filter_free(b);
    tamis_filter_free(c);
}

/* ---- H3 -------------------------------------------------------------------------------------- */

/* Xie et al., section 6.1: the two matrices, and h(69) = 2 and 5. */
TEST(h3_of_the_paper)
{
    static const uint64_t rows[3] = {0x6d, 0xc4, 0x1e}; /* 01101101, 11000100, 00011110 */
    struct h3_matrix two, three;
    h3_from_rows(&two, rows, 2, 0);
    h3_from_rows(&three, rows, 3, 0);
    CHECK(h3_address(&two, 69) >> 30 == 2);
    CHECK(h3_address(&three, 69) >> 29 == 5);
    for (uint64_t x = 0; x < 256; x++) { /* Theorem 4 on its example: one row less is one shift */
        CHECK(h3_address(&two, x) >> 30 == h3_address(&three, x) >> 29 >> 1);
        unsigned bits = 0;
        for (int i = 0; i < 3; i++)
            bits = 2 * bits + (unsigned)__builtin_parityll(rows[i] & x);
        CHECK(h3_address(&three, x) >> 29 == bits);
    }
}

/* Row i of a drawn matrix, out of what single bits are sent to. */
static uint64_t row_of(const struct h3_matrix *matrix, unsigned i)
{
    uint64_t row = 0;
    for (unsigned c = 0; c < 64; c++) {
        uint32_t column = h3_address(matrix, UINT64_C(1) << c) ^ matrix->constant;
        row |= (uint64_t)(column >> (31 - i) & 1) << c;
    }
    return row;
}

static unsigned rank_of(const uint64_t *rows, unsigned n)
{
    uint64_t left[64];
    unsigned rank = 0;
    memcpy(left, rows, n * sizeof *rows);
    for (unsigned bit = 0; bit < 64; bit++)
        for (unsigned i = rank; i < n; i++) {
            if (!(left[i] >> bit & 1))
                continue;
            uint64_t pivot = left[i];
            left[i] = left[rank];
            left[rank++] = pivot;
            for (unsigned j = rank; j < n; j++)
                left[j] ^= left[j] >> bit & 1 ? pivot : 0;
            break;
        }
    return rank;
}

TEST(h3_matrices_have_full_rank_and_distinct_rows)
{
    struct family family = family_of(TAMIS_H3);
    static uint64_t rows[K_MAX][H3_ROWS];
    for (unsigned j = 0; j < K_MAX; j++) {
        for (unsigned i = 0; i < H3_ROWS; i++)
            rows[j][i] = row_of(&family.h3[j], i);
        CHECK_MSG(rank_of(rows[j], H3_ROWS) == H3_ROWS, "matrix %u", j);
    }
    unsigned equal = 0, constants = 0;
    for (unsigned j = 0; j < K_MAX; j++)
        for (unsigned e = 0; e < j; e++) {
            for (unsigned i = 0; i < H3_ROWS; i++)
                equal += rows[j][i] == rows[e][i];
            constants += family.h3[j].constant == family.h3[e].constant;
        }
    CHECK(equal == 0 && constants == 0);
    struct h3_matrix narrow[K_MAX]; /* over 32 columns too: then the rows are a basis */
    h3_draw(narrow, 8, 32, key);
    for (unsigned j = 0; j < 8; j++) {
        uint64_t drawn[H3_ROWS];
        for (unsigned i = 0; i < H3_ROWS; i++) {
            drawn[i] = row_of(&narrow[j], i);
            CHECK(drawn[i] >> 32 == 0);
        }
        CHECK(rank_of(drawn, H3_ROWS) == H3_ROWS);
    }
    family_free(&family, &mem_system);
}

/* Linear but for the constant, which is where fingerprint 0 goes. */
TEST(h3_is_linear_and_a_constant)
{
    struct family family = family_of(TAMIS_H3);
    uint64_t rng = harness_seed();
    for (unsigned j = 0; j < K_MAX; j++) {
        const struct h3_matrix *h = &family.h3[j];
        CHECK(h3_address(h, 0) == h->constant);
        for (int i = 0; i < 200; i++) {
            uint64_t x = rng_next(&rng), y = rng_next(&rng);
            CHECK((h3_address(h, x) ^ h3_address(h, y) ^ h3_address(h, x ^ y)) == h->constant);
        }
    }
    family_free(&family, &mem_system);
}

/* Theorem 4, at every size that is a power of two: a row less is a shift, and what the probes of a
   vector of that size are. */
TEST(h3_shifts_with_the_size)
{
    struct family family = family_of(TAMIS_H3);
    uint64_t rng = harness_seed(), positions[8], larger[8];
    for (int i = 0; i < 500; i++) {
        tamis_digest d = {.a = rng_next(&rng)};
        d.b = rng_next(&rng);
        for (unsigned l = 3; l < 32; l++) {
            family.probe(&family, d, UINT64_C(1) << l, 8, positions);
            family.probe(&family, d, UINT64_C(2) << l, 8, larger);
            for (unsigned j = 0; j < 8; j++)
                CHECK(positions[j] == larger[j] >> 1 &&
                      positions[j] == h3_address(&family.h3[j], d.a) >> (32 - l));
        }
    }
    family_free(&family, &mem_system);
}

/* ---- uniformity ------------------------------------------------------------------------------ */

/* Chi-square of n counts that should be equal, in standard deviations (Wilson and Hilferty). */
static double deviation(const uint32_t *counts, size_t n)
{
    double sum = 0, chi = 0, freedom = (double)n - 1;
    for (size_t i = 0; i < n; i++)
        sum += counts[i];
    double expected = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    double spread = 2 / (9 * freedom);
    return (cbrt(chi / freedom) - (1 - spread)) / sqrt(spread);
}

/* Keys that only count up: each probe is uniform, and so are two of them together. */
static void check_uniform(tamis_hash hash, tamis_layout layout, uint64_t units)
{
    enum { K = 10, KEYS = 40000 };
    struct family family = family_of(hash);
    struct bits bits = {
        .units = units, .k = K, .family = &family, .kernel = kernel_choose(layout, &family)};
    uint64_t m = units * bits.kernel->unit_bits, positions[K], pairs = units <= 40 ? units : 1;
    uint32_t *counts = calloc(K * m, sizeof *counts);
    uint32_t *both = calloc((K - 1) * pairs * pairs, sizeof *both);
    for (uint32_t i = 0; i < KEYS; i++) {
        bits.kernel->positions(&bits, family_digest(&family, &i, sizeof i), positions);
        for (unsigned j = 0; j < K; j++)
            counts[j * m + positions[j]]++;
        for (unsigned j = 1; j < K && pairs > 1 && layout == TAMIS_SPREAD; j++)
            both[((j - 1) * pairs + positions[j - 1]) * pairs + positions[j]]++;
    }
    for (unsigned j = 0; j < K; j++) {
        double single = deviation(counts + j * m, m);
        CHECK_MSG(fabs(single) < 6, "hash %d, layout %d, %" PRIu64 " units, probe %u: %g",
                  (int)hash, (int)layout, units, j, single);
        if (j == 0 || pairs == 1 || layout != TAMIS_SPREAD)
            continue;
        double pair = deviation(both + (j - 1) * pairs * pairs, pairs * pairs);
        CHECK_MSG(pair < 6, "hash %d, %" PRIu64 " units, probes %u and %u: %g", (int)hash, units,
                  j - 1, j, pair);
    }
    free(counts);
    free(both);
    family_free(&family, &mem_system);
}

TEST(probes_are_uniform_in_small_vectors)
{
    static const uint64_t spread[] = {8, 16, 40, 104, 1000};
    for (int hash = TAMIS_XXH3; hash <= TAMIS_H3; hash++)
        for (unsigned i = 0; i < 5; i++)
            check_uniform((tamis_hash)hash, TAMIS_SPREAD, spread[i]);
    for (int hash = TAMIS_XXH3; hash <= TAMIS_SIP; hash++)
        check_uniform((tamis_hash)hash, TAMIS_BLOCKED, 8);
}

/* One bit of a key more or less turns half the bits of its digest. */
TEST(digests_avalanche)
{
    for (int hash = TAMIS_XXH3; hash <= TAMIS_SIP; hash++) {
        struct family family = family_of((tamis_hash)hash);
        uint64_t turned = 0, n = 0;
        for (uint64_t i = 0; i < 200; i++)
            for (int bit = 0; bit < 64; bit++, n++) {
                uint64_t x = i * UINT64_C(0x9e3779b97f4a7c15), y = x ^ UINT64_C(1) << bit;
                tamis_digest p = family_digest(&family, &x, 8), q = family_digest(&family, &y, 8);
                turned += (uint64_t)__builtin_popcountll(p.a ^ q.a) +
                          (uint64_t)__builtin_popcountll(p.b ^ q.b);
            }
        double mean = (double)turned / (double)n, sigma = sqrt(32.0 / (double)n);
        CHECK_MSG(fabs(mean - 64) < 6 * sigma, "hash %d: %g bits of 128", hash, mean);
        family_free(&family, &mem_system);
    }
}

HARNESS_MAIN
