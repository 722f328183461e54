/* Vectors, their kernels and the matrix: every row of the kernel table does the same bit for bit, and
 * as the model's own description says; one key is as many; a matrix is its columns.
 */
#include "harness.h"
#include "bits/matrix.h"
#include "model.h"
#include "bits/vector.h"

static const uint8_t family_key[TAMIS_KEY_LEN] = "vectors";

static struct family family_of(tamis_hash hash)
{
    struct family family;
    CHECK(family_init(&family, &mem_system, hash, family_key) == TAMIS_OK);
    return family;
}

static tamis_digest digest_at(uint64_t *rng)
{
    uint64_t a = rng_next(rng);
    return (tamis_digest){a, rng_next(rng)};
}

static void digests_at(uint64_t *rng, tamis_digest *digests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        digests[i] = digest_at(rng);
}

static struct model_shape model_of(const struct bits *bits)
{
    return (struct model_shape){bits->kernel->layout, bits->units, bits->k};
}

/* ---- the rows of the table ------------------------------------------------------------------- */

enum { ROWS_MAX = 3, MANY = 300 };

/* The blocked rows that this processor runs, whatever TAMIS_ISA says; the scalar one first. */
static unsigned blocked_rows(const struct kernel *rows[ROWS_MAX])
{
    unsigned n = 0;
    rows[n++] = &kernel_blocked;
#ifdef TAMIS_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        rows[n++] = &kernel_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        rows[n++] = &kernel_avx512;
#endif
    return n;
}

struct laid {
    struct bits bits;
    struct block block;
};

static size_t bytes_of(const struct bits *bits)
{
    return (size_t)(bits->units * bits->kernel->unit_bits + 7) / 8;
}

static struct laid laid_out(const struct kernel *kernel, const struct family *family,
                            uint64_t units, uint32_t k)
{
    struct laid laid = {.bits = {.units = units, .k = k, .family = family, .kernel = kernel}};
    CHECK(block_new(&mem_system, bytes_of(&laid.bits), &laid.block));
    laid.bits.words = laid.block.data;
    return laid;
}

static bool bit_of(const struct bits *bits, uint64_t position)
{
    return bits->words[position / 64] >> position % 64 & 1;
}

/* The bits that the model would set. */
static bool as_model(const struct bits *bits, const tamis_digest *digests, size_t n)
{
    struct model_shape shape = model_of(bits);
    uint64_t m = model_cells_total(&shape);
    uint32_t *cells = calloc(m, sizeof *cells);
    bool same = cells != NULL;
    for (size_t i = 0; same && i < n; i++)
        model_add_cells(&shape, digests[i], 1, cells);
    for (uint64_t p = 0; same && p < m; p++)
        same = bit_of(bits, p) == (cells[p] > 0);
    free(cells);
    return same;
}

/* All ways of asking give the same answers, which are what the bits say. */
static bool asks_agree(const struct bits *bits, const tamis_digest *digests, size_t n)
{
    uint8_t one[MANY], found[MANY] = {0}, stream[MANY], stack[MANY];
    uint64_t positions[K_MAX];
    const struct bits *const twice[] = {bits, bits};
    for (size_t i = 0; i < n; i += BATCH) {
        size_t some = n - i < BATCH ? n - i : BATCH;
        bits->kernel->prefetch(bits, digests + i, some);
        bits->kernel->has(bits, digests + i, some, found + i);
    }
    bits->kernel->has_stream(bits, digests, n, stream);
    bits->kernel->has_stack(twice, 2, digests, n, stack);
    for (size_t i = 0; i < n; i++) {
        bool all = true;
        bits->kernel->positions(bits, digests[i], positions);
        for (unsigned j = 0; j < bits->k; j++)
            all = all && bit_of(bits, positions[j]);
        one[i] = bits->kernel->has_one(bits, digests[i]);
        if (one[i] != all)
            return false;
    }
    return memcmp(one, found, n) == 0 && memcmp(one, stream, n) == 0 && memcmp(one, stack, n) == 0;
}

/* Adds n digests with each row; bits, freshness and answers must be alike. */
static bool rows_agree(const struct kernel *const *rows, unsigned n_rows,
                       const struct family *family, uint64_t units, uint32_t k, size_t n,
                       uint64_t *rng)
{
    tamis_digest digests[MANY], others[MANY];
    uint8_t fresh[ROWS_MAX][MANY], shared[MANY];
    struct laid laid[ROWS_MAX];
    bool good = true;
    digests_at(rng, digests, n);
    digests_at(rng, others, MANY);
    for (size_t i = 0; i + 1 < n; i += 5) /* repeats, near and far */
        digests[i + 1] = digests[i / 2];
    memcpy(others, digests, n / 2 * sizeof *others);
    for (unsigned r = 0; r < n_rows; r++) {
        laid[r] = laid_out(rows[r], family, units, k);
        rows[r]->add(&laid[r].bits, digests, n, fresh[r]);
        good = good && asks_agree(&laid[r].bits, others, MANY) &&
               memcmp(fresh[r], fresh[0], n) == 0 &&
               memcmp(laid[r].block.data, laid[0].block.data, bytes_of(&laid[r].bits)) == 0 &&
               rows[r]->rate(&laid[r].bits, 1000) == rows[0]->rate(&laid[0].bits, 1000);
        struct laid twin = laid_out(rows[r], family, units, k);
        for (size_t i = 0; i < n; i++) /* one at a time, and as several threads would */
            rows[r]->add_shared(&twin.bits, &digests[i], 1, &shared[i]);
        good = good && memcmp(shared, fresh[0], n) == 0 &&
               memcmp(twin.block.data, laid[0].block.data, bytes_of(&twin.bits)) == 0;
        memset(twin.block.data, 0, bytes_of(&twin.bits));
        for (size_t i = 0; i < n; i++)
            shared[i] = rows[r]->add_one(&twin.bits, digests[i]);
        good = good && memcmp(shared, fresh[0], n) == 0 &&
               memcmp(twin.block.data, laid[0].block.data, bytes_of(&twin.bits)) == 0;
        block_free(&mem_system, &twin.block);
    }
    good = good && as_model(&laid[0].bits, digests, n);
    for (unsigned r = 0; r < n_rows; r++)
        block_free(&mem_system, &laid[r].block);
    return good;
}

TEST(blocked_rows_agree_bit_for_bit)
{
    const struct kernel *rows[ROWS_MAX];
    unsigned n_rows = blocked_rows(rows);
    struct family family = family_of(TAMIS_XXH3);
    uint64_t rng = harness_seed();
    if (getenv("TEST_VERBOSE"))
        printf("%u rows\n", n_rows);
    for (uint32_t k = 1; k <= K_MAX; k++)
        for (int i = 0; i < (harness_long() ? 200 : 12); i++) {
            uint64_t units = 8 * (1 + rng_next(&rng) % (i % 2 ? 4 : 60));
            size_t n = 1 + rng_next(&rng) % MANY;
            if (!CHECK_MSG(rows_agree(rows, n_rows, &family, units, k, n, &rng),
                           "k %u, %" PRIu64 " blocks, %zu keys", k, units, n))
                return;
        }
    family_free(&family, &mem_system);
}

/* The row for probe functions of a family's own, with the usual function, is the usual row. */
TEST(spread_rows_agree_bit_for_bit)
{
    const struct kernel *const rows[] = {&kernel_spread, &kernel_spread_probe};
    struct family family = family_of(TAMIS_XXH3);
    uint64_t rng = harness_seed();
    for (uint32_t k = 1; k <= K_MAX; k++)
        for (int i = 0; i < (harness_long() ? 200 : 12); i++) {
            uint64_t units = 8 * (1 + rng_next(&rng) % (i % 2 ? 20 : 2000));
            size_t n = 1 + rng_next(&rng) % MANY;
            if (!CHECK_MSG(rows_agree(rows, 2, &family, units, k, n, &rng),
                           "k %u, %" PRIu64 " bits, %zu keys", k, units, n))
                return;
        }
    family_free(&family, &mem_system);
}

/* Keys of all short lengths, most of 8 bytes, asked for and added from their bytes and by their
   digests. */
static void keys_agree(const struct kernel *kernel, const struct family *family, unsigned k,
                       uint64_t *rng)
{
    uint64_t units = kernel->unit_bits == 1 ? 4096 : 8;
    struct laid laid = laid_out(kernel, family, units, k),
                twin = laid_out(kernel, family, units, k);
    struct {
        char head[QUICK_AT];
        struct quick quick;
    } memory[3];
    const struct set *set = (void *)&memory[0], *brief = (void *)&memory[1];
    const struct set *into = (void *)&memory[2];
    quick_fn has = quick_set(&memory[0].quick, &laid.bits, false);
    quick_fn brief_has = quick_set(&memory[1].quick, &laid.bits, true);
    uint8_t key[40], fresh;
    quick_set(&memory[2].quick, &twin.bits, false);
    for (int i = 0; i < 400; i++) {
        size_t len = i % 2 ? 8 : (size_t)(i / 2 % 41);
        for (size_t j = 0; j < len; j++)
            key[j] = (uint8_t)rng_next(rng);
        tamis_digest digest = family_digest(family, key, len);
        CHECK(has(set, key, len) == kernel->has_one(&laid.bits, digest));
        CHECK(brief_has(brief, key, len) == has(set, key, len));
        if (i % 3 == 0) {
            kernel->add(&laid.bits, &digest, 1, &fresh);
            CHECK(has(set, key, len));
            CHECK(quick_in(into)->add(into, key, len) == fresh &&
                  !quick_in(into)->add(into, key, len));
            CHECK(memcmp(twin.block.data, laid.block.data, bytes_of(&laid.bits)) == 0);
        }
    }
    block_free(&mem_system, &twin.block);
    block_free(&mem_system, &laid.block);
}

TEST(key_is_its_digest)
{
    static const tamis_hash hashes[] = {TAMIS_XXH3, TAMIS_SIP, TAMIS_H3};
    uint64_t rng = harness_seed();
    for (int h = 0; h < 3; h++)
        for (unsigned k = 1; k <= 20; k++) {
            struct family family = family_of(hashes[h]);
            const struct kernel *rows[ROWS_MAX + 1];
            unsigned n_rows = hashes[h] == TAMIS_H3 ? 0 : blocked_rows(rows);
            rows[n_rows++] = kernel_choose(TAMIS_SPREAD, &family);
            for (unsigned r = 0; r < n_rows; r++)
                keys_agree(rows[r], &family, k, &rng);
            family_free(&family, &mem_system);
        }
}

/* Small ones, ones that a lookup fetches ahead, and now and then one that no cache holds. */
static uint64_t units_at(uint64_t *rng, const struct kernel *kernel, bool vast)
{
    uint64_t blocks = 8 * (1 + rng_next(rng) % 5);
    if (rng_next(rng) % 4 == 0)
        blocks = 4096;
    if (vast)
        blocks = (UINT64_C(1) << 19) + 64;
    return kernel == &kernel_spread ? 512 * blocks : blocks;
}

/* Several vectors at once, of one k or of many: any of them. */
TEST(stack_is_any_of_its_vectors)
{
    const struct kernel *rows[ROWS_MAX + 1];
    unsigned n_rows = blocked_rows(rows);
    struct family family = family_of(TAMIS_XXH3);
    uint64_t rng = harness_seed();
    rows[n_rows++] = &kernel_spread;
    for (unsigned run = 0; run < 60; run++) {
        const struct kernel *kernel = rows[run % n_rows];
        struct laid laid[9];
        const struct bits *stack[9];
        size_t vectors = 1 + run / n_rows % 9, n = 1 + rng_next(&rng) % MANY;
        bool mixed = rng_next(&rng) % 2;
        uint32_t k = rng_next(&rng) % 2 ? 8 : 1 + (uint32_t)(rng_next(&rng) % 20);
        tamis_digest digests[MANY];
        uint8_t found[MANY], fresh[MANY];
        digests_at(&rng, digests, MANY);
        for (size_t v = 0; v < vectors; v++) {
            uint32_t own = 1 + (uint32_t)(rng_next(&rng) % 12);
            laid[v] = laid_out(kernel, &family, units_at(&rng, kernel, run % 20 == 19 && v == 0),
                               mixed ? own : k);
            stack[v] = &laid[v].bits;
            kernel->add(stack[v], digests + 20 * v, 20, fresh);
        }
        kernel->has_stack(stack, vectors, digests, n, found);
        for (size_t i = 0; i < n; i++) {
            bool any = false;
            for (size_t v = 0; v < vectors; v++)
                any |= kernel->has_one(stack[v], digests[i]);
            CHECK(found[i] == any && (any || i >= 20 * vectors));
            CHECK(kernel->has_any(stack, vectors, digests[i]) == any);
        }
        for (size_t v = 0; v < vectors; v++)
            block_free(&mem_system, &laid[v].block);
    }
    family_free(&family, &mem_system);
}

/* More vectors than are asked together, of one k or of every k there is, and no key at all. */
TEST(high_stacks)
{
    enum { HIGH = 66, NONE = 7 };
    const struct kernel *rows[ROWS_MAX + 1];
    unsigned n_rows = blocked_rows(rows);
    struct family family = family_of(TAMIS_XXH3);
    uint64_t rng = harness_seed();
    rows[n_rows++] = &kernel_spread;
    for (unsigned run = 0; run < 2 * n_rows; run++) {
        const struct kernel *kernel = rows[run / 2];
        struct laid laid[HIGH];
        const struct bits *stack[HIGH];
        tamis_digest digests[2 * HIGH];
        uint8_t found[2 * HIGH] = {NONE}, fresh;
        digests_at(&rng, digests, 2 * HIGH);
        for (size_t v = 0; v < HIGH; v++) {
            uint64_t units = kernel == &kernel_spread ? 4096 : 1 + v % 9;
            laid[v] = laid_out(kernel, &family, units, run % 2 ? 8 : 1 + (uint32_t)v % K_MAX);
            stack[v] = &laid[v].bits;
            kernel->add(stack[v], &digests[v], 1, &fresh);
        }
        kernel->has_stack(stack, HIGH, digests, 0, found);
        CHECK(found[0] == NONE);
        for (size_t vectors = HIGH - 4; vectors <= HIGH; vectors++) {
            kernel->has_stack(stack, vectors, digests, 2 * HIGH, found);
            for (size_t i = 0; i < 2 * HIGH; i++) {
                bool any = false;
                for (size_t v = 0; v < vectors; v++)
                    any |= kernel->has_one(stack[v], digests[i]);
                CHECK(found[i] == any && (any || i >= vectors));
                CHECK(kernel->has_any(stack, vectors, digests[i]) == any);
            }
        }
        for (size_t v = 0; v < HIGH; v++)
            block_free(&mem_system, &laid[v].block);
    }
    family_free(&family, &mem_system);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Positions lie in the vector, are the bits that an add sets and no others, and are the model's. */
TEST(positions_are_the_bits_that_add_sets)
{
    static const tamis_hash hashes[] = {TAMIS_XXH3, TAMIS_SIP, TAMIS_H3};
    uint64_t rng = harness_seed(), positions[K_MAX], modelled[K_MAX];
    for (int h = 0; h < 3; h++)
        for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++)
            for (uint32_t k = 1; k <= K_MAX; k++) {
                struct family family = family_of(hashes[h]);
                struct shape shape = {(tamis_layout)layout, 8 * (1 + rng_next(&rng) % 100), k};
                if (!shape_valid(&shape, &family)) {
                    CHECK(hashes[h] == TAMIS_H3 && layout == TAMIS_BLOCKED);
                    family_free(&family, &mem_system);
                    continue;
                }
                struct vector *v = vector_new(&mem_system, &family, shape, false, true);
                tamis_digest digest = digest_at(&rng);
                struct model_shape model = model_of(&v->bits);
                uint8_t fresh = 0;
                v->bits.kernel->add(&v->bits, &digest, 1, &fresh);
                vector_positions(v, digest, positions);
                model_positions(&model, digest, modelled);
                CHECK(fresh && vector_has(v, digest));
                struct vector *filled = vector_new(&mem_system, &family, shape, false, true);
                filled->bits.kernel->fill(&filled->bits, &digest, 1);
                for (uint64_t w = 0; w < (vector_positions_total(v) + 63) / 64; w++)
                    CHECK(vector_word(v, w) == vector_word(filled, w));
                vector_free(filled, &mem_system);
                CHECK(hashes[h] == TAMIS_H3 ||
                      memcmp(positions, modelled, k * sizeof *positions) == 0);
                for (uint32_t j = 0; j < k; j++)
                    if (CHECK(positions[j] < vector_positions_total(v) &&
                              (vector_bit(v, positions[j]) || j)))
                        vector_bit_clear(v, positions[j]);
                CHECK(vector_count_ones(v) == 0);
                vector_free(v, &mem_system);
                family_free(&family, &mem_system);
            }
}

/* The address for half the size is half the address: one digest serves vectors of every size. */
TEST(addresses_are_prefixes)
{
    static const tamis_hash hashes[] = {TAMIS_XXH3, TAMIS_SIP, TAMIS_H3};
    uint64_t rng = harness_seed(), whole[K_MAX], half[K_MAX];
    for (int i = 0; i < 3000; i++) {
        struct family family = family_of(hashes[i % 3]);
        tamis_layout layout = i % 2 && i % 3 < 2 ? TAMIS_BLOCKED : TAMIS_SPREAD;
        struct bits bits = {.units = 16 * (1 + rng_next(&rng) % (UINT64_C(1) << (i % 20))),
                            .k = 1 + (uint32_t)(rng_next(&rng) % K_MAX),
                            .family = &family,
                            .kernel = kernel_choose(layout, &family)};
        tamis_digest digest = digest_at(&rng);
        bits.kernel->positions(&bits, digest, whole);
        bits.units /= 2;
        bits.kernel->positions(&bits, digest, half);
        bool prefix = true;
        uint64_t unit = layout == TAMIS_BLOCKED ? 512 : 1;
        for (uint32_t j = 0; j < bits.k; j++)
            prefix &= whole[j] / (2 * unit) * unit + whole[j] % unit == half[j];
        CHECK_MSG(prefix, "layout %d, %" PRIu64 " units, k %u", (int)layout, bits.units, bits.k);
        family_free(&family, &mem_system);
    }
}

/* Probe functions of a family's own: the lab and the papers bring theirs. */
static void own_probe(const struct family *family, tamis_digest digest, uint64_t units, unsigned k,
                      uint64_t *positions)
{
    const uint64_t *step = family->probe_context;
    for (unsigned j = 0; j < k; j++)
        positions[j] = (digest.a + j * *step) % units;
}

TEST(families_may_bring_their_probes)
{
    struct family family = family_of(TAMIS_XXH3), usual = family_of(TAMIS_XXH3);
    uint64_t step = 7;
    CHECK(family_equal(&family, &usual));
    family.probe = own_probe;
    family.probe_context = &step;
    CHECK(!family_equal(&family, &usual));
    struct shape shape = {TAMIS_SPREAD, 64, 4};
    struct vector *v = vector_new(&mem_system, &family, shape, true, true);
    CHECK(v->bits.kernel == &kernel_spread_probe && vector_reserve(v, &mem_system));
    CHECK(vector_insert(v, (tamis_digest){60, 0}));
    CHECK(vector_bit(v, 60) && vector_bit(v, 3) && vector_bit(v, 10) && vector_bit(v, 17));
    CHECK(vector_count_ones(v) == 4 && vector_has(v, (tamis_digest){60, 99}));
    CHECK(!vector_has(v, (tamis_digest){61, 0}));
    vector_erase(v, (tamis_digest){60, 1}, 1);
    CHECK(vector_count_ones(v) == 0);
    vector_free(v, &mem_system);
    family_free(&family, &mem_system);
    family_free(&usual, &mem_system);
}

/* More bits than 32-bit numbers count: pages that are not touched cost nothing. */
TEST(large_vectors_are_addressed_whole)
{
    struct family family = family_of(TAMIS_XXH3);
    uint64_t rng = harness_seed(), far = 0, positions[K_MAX];
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        uint64_t bits = (UINT64_C(1) << 33) + 4096 * 8;
        struct shape shape = {(tamis_layout)layout, layout == TAMIS_BLOCKED ? bits / 512 : bits, 4};
        struct vector *v = vector_new(&mem_system, &family, shape, false, true);
        tamis_digest digests[20];
        uint8_t fresh[20];
        if (!CHECK(v != NULL))
            break;
        digests_at(&rng, digests, 20);
        v->bits.kernel->add(&v->bits, digests, 20, fresh);
        for (int i = 0; i < 20; i++) {
            vector_positions(v, digests[i], positions);
            far += positions[0] >> 32 != 0;
            CHECK(fresh[i] && vector_has(v, digests[i]));
            for (int j = 0; j < 4; j++)
                CHECK(positions[j] < bits && vector_bit(v, positions[j]));
        }
        CHECK(far > 0 && !vector_has(v, digest_at(&rng)));
        vector_free(v, &mem_system);
    }
    family_free(&family, &mem_system);
}

/* ---- deletable vectors ----------------------------------------------------------------------- */

/* Against an array of plain numbers, through 15 and back, with copies and comparisons. */
TEST(counters_count_exactly)
{
    enum { N = 61 };
    uint64_t rng = harness_seed(), plain[N] = {0};
    struct counters c, copy;
    CHECK(counters_new(&c, &mem_system, N));
    for (int i = 0; i < 40000; i++) {
        uint64_t p = rng_next(&rng) % N, by = rng_next(&rng) % (i % 100 == 0 ? 3000 : 12);
        bool up = rng_next(&rng) % 2;
        CHECK(counters_reserve(&c, &mem_system, 1));
        if (up) {
            CHECK(counters_add(&c, p, by) == plain[p]);
            plain[p] += by;
        } else {
            plain[p] -= by < plain[p] ? by : plain[p];
            CHECK(counters_sub(&c, p, by) == plain[p]);
        }
        CHECK(counters_get(&c, p) == plain[p]);
        if (i % 1000)
            continue;
        CHECK(counters_copy(&copy, &c, &mem_system) && counters_equal(&c, &copy));
        for (uint64_t j = 0; j < N; j++)
            CHECK(counters_get(&copy, j) == plain[j]);
        CHECK(counters_reserve(&copy, &mem_system, 1));
        counters_add(&copy, p, 1);
        CHECK(!counters_equal(&c, &copy) && !counters_equal(&copy, &c));
        counters_free(&copy, &mem_system);
    }
    counters_free(&c, &mem_system);
}

/* With 64 probes in 8 bits every position repeats; what goes in comes out. */
TEST(repeated_positions_count_and_uncount)
{
    struct family family = family_of(TAMIS_XXH3);
    uint64_t rng = harness_seed();
    for (int i = 0; i < 500; i++) {
        tamis_layout layout = i % 2 ? TAMIS_BLOCKED : TAMIS_SPREAD;
        struct shape shape = {layout, 8, 1 + (uint32_t)(rng_next(&rng) % K_MAX)};
        struct vector *v = vector_new(&mem_system, &family, shape, true, true);
        tamis_digest digests[10];
        digests_at(&rng, digests, 10);
        for (int j = 0; j < 10; j++) {
            CHECK(vector_reserve(v, &mem_system));
            vector_insert(v, digests[j]);
            CHECK(j || vector_copies(v, digests[0]) == 1);
        }
        CHECK(v->count == 10);
        for (int j = 0; j < 10; j++) {
            CHECK(vector_has(v, digests[j]) && vector_copies(v, digests[j]) >= 1);
            vector_erase(v, digests[j], 1);
        }
        CHECK(v->count == 0 && v->ones == 0);
        for (uint64_t p = 0; p < vector_positions_total(v); p++)
            CHECK(!vector_bit(v, p) && counters_get(&v->counters, p) == 0);
        vector_free(v, &mem_system);
    }
    family_free(&family, &mem_system);
}

/* ---- the matrix ------------------------------------------------------------------------------ */

/* Of the struct; its bits are the same. */
static struct vector copy_of(const struct vector *v)
{
    struct vector copy = {0};
    memcpy(&copy, v, vector_size(v->deletable));
    return copy;
}

static struct matrix *matrix_of(struct vector *const *columns, uint64_t n, uint64_t width)
{
    struct matrix *matrix = matrix_new(&mem_system, &columns[0]->bits, width);
    for (uint64_t c = 0; matrix && c < n; c++) {
        struct vector column = copy_of(columns[c]);
        column.bits.words = matrix->bits.words;
        column.stride = width;
        column.column = c;
        for (uint64_t p = 0; p < column.bits.units; p++)
            if (vector_bit(columns[c], p))
                vector_bit_set(&column, p);
    }
    return matrix;
}

/* Every query, alone and among others, and every bit. */
static bool matrix_is(const struct matrix *matrix, struct vector *const *columns, uint64_t n,
                      const tamis_digest *digests, size_t n_digests)
{
    uint8_t found[64] = {0};
    uint64_t *match = malloc(matrix_words(matrix) * sizeof *match);
    uint64_t *counts = calloc(matrix->width + 64, sizeof *counts);
    bool good = match && counts && CHECK(n_digests <= 64);
    matrix_has(matrix, digests, n_digests, found);
    for (size_t i = 0; good && i < n_digests; i++) {
        bool any = false, said = matrix_match(matrix, digests[i], match);
        for (uint64_t c = 0; good && c < matrix->width; c++) {
            bool has = c < n && vector_has(columns[c], digests[i]);
            /* without any match what is left may be anything but a match */
            good = !said ? !has : (match[c / 64] >> c % 64 & 1) == has;
            any |= has;
        }
        good = good && said == any && found[i] == any;
    }
    if (good)
        matrix_count_ones(matrix->bits.words, matrix->bits.units, matrix->width, counts);
    for (uint64_t c = 0; good && c < matrix->width; c++)
        good = counts[c] == (c < n ? vector_count_ones(columns[c]) : 0);
    free(match);
    free(counts);
    return good;
}

static void try_matrix(uint64_t n, uint64_t units, uint32_t k, uint64_t *rng)
{
    struct family family = family_of(TAMIS_XXH3);
    struct shape shape = {TAMIS_SPREAD, units, k};
    struct vector **columns = calloc(n + 1, sizeof *columns);
    tamis_digest digests[40];
    uint8_t fresh;
    digests_at(rng, digests, 40);
    for (uint64_t c = 0; c < n; c++) {
        columns[c] = vector_new(&mem_system, &family, shape, false, true);
        for (uint64_t i = 0; i < units / (3 * k) + 1; i++) {
            tamis_digest d = i ? digest_at(rng) : digests[rng_next(rng) % 20];
            columns[c]->bits.kernel->add(&columns[c]->bits, &d, 1, &fresh);
        }
    }
    uint64_t width = matrix_width_for(n);
    struct matrix *matrix = matrix_of(columns, n, width);
    CHECK(width >= n && (width <= 64 || width % 64 == 0));
    CHECK_MSG(matrix_is(matrix, columns, n, digests, 40), "%" PRIu64 " columns", n);
    struct matrix *wider = matrix_resize(matrix, &mem_system, matrix_width_for(width + 1));
    CHECK_MSG(matrix_is(wider, columns, n, digests, 40), "%" PRIu64 " columns, wider", n);
    struct matrix *back = matrix_resize(wider, &mem_system, width);
    CHECK_MSG(matrix_is(back, columns, n, digests, 40), "%" PRIu64 " columns, narrow again", n);
    uint64_t to = rng_next(rng) % n; /* the last column takes the place of another, and goes */
    matrix_column_move(back, to, n - 1);
    struct vector *gone = columns[to], last = copy_of(columns[n - 1]);
    columns[to] = columns[n - 1];
    if (to != n - 1) {
        last.bits.words = back->bits.words;
        last.stride = back->width;
        last.column = n - 1;
        vector_clear(&last);
        CHECK_MSG(matrix_is(back, columns, n - 1, digests, 40), "%" PRIu64 " columns, moved", n);
        vector_free(gone, &mem_system);
    }
    for (uint64_t c = 0; c + (to != n - 1) < n; c++)
        vector_free(columns[c], &mem_system);
    matrix_free(matrix, &mem_system);
    matrix_free(wider, &mem_system);
    matrix_free(back, &mem_system);
    free(columns);
    family_free(&family, &mem_system);
}

TEST(matrix_is_its_columns)
{
    static const uint16_t widths[] = {1,   2,   3,   4,   5,   6,   7,   8,   9,   12,
                                      13,  16,  17,  31,  32,  33,  47,  48,  49,  63,
                                      64,  65,  100, 127, 128, 129, 192, 193, 256, 300,
                                      383, 384, 385, 511, 512, 513, 640, 641, 1300};
    uint64_t rng = harness_seed();
    for (unsigned i = 0; i < sizeof widths / sizeof *widths; i++) {
        uint64_t units = 8 * (1 + rng_next(&rng) % 40);
        try_matrix(widths[i], units, 1 + (uint32_t)(rng_next(&rng) % 12), &rng);
    }
    for (int i = 0; i < (harness_long() ? 300 : 30); i++) {
        uint64_t n = 1 + rng_next(&rng) % 200, units = 8 * (1 + rng_next(&rng) % 20);
        try_matrix(n, units, 1 + (uint32_t)(rng_next(&rng) % 20), &rng);
    }
}

static void compare_rows(rows_fn wide, uint64_t *rng)
{
    enum { WORDS = 40, N = 30 };
    struct block block;
    uint64_t stride = 1 + rng_next(rng) % WORDS, n = 1 + rng_next(rng) % stride, rows[K_MAX];
    unsigned k = 1 + (unsigned)(rng_next(rng) % K_MAX);
    uint64_t first[WORDS], second[WORDS];
    CHECK(block_new(&mem_system, N * WORDS * 8, &block));
    uint64_t *words = block.data;
    for (uint64_t i = 0; i < N * stride; i++)
        words[i] = rng_next(rng) | rng_next(rng) | rng_next(rng) | rng_next(rng);
    for (unsigned j = 0; j < k; j++)
        rows[j] = rng_next(rng) % N;
    bool x = rows_scalar(words, stride, n, rows, k, first);
    bool y = wide(words, stride, n, rows, k, second);
    CHECK_MSG(x == y && (!x || memcmp(first, second, n * 8) == 0),
              "%" PRIu64 " of %" PRIu64 " words, k %u", n, stride, k);
    block_free(&mem_system, &block);
}

TEST(rows_of_a_matrix_are_anded_alike)
{
    uint64_t rng = harness_seed();
    for (int run = 0; run < 4000; run++) {
        compare_rows(kernel_rows(), &rng);
#ifdef TAMIS_X86
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
            compare_rows(rows_avx512, &rng);
        if (__builtin_cpu_supports("avx2"))
            compare_rows(rows_avx2, &rng);
#endif
    }
}

HARNESS_MAIN
