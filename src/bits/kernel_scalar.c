/* Kernels in plain C: the spread layout (limited by memory, not arithmetic) on every machine,
   and the blocked layout where there are no wider registers. They are also the reference for the
   others. */
#include "kernel.h"

/* ---- one key ------------------------------------------------------------------------------------ */

ALWAYS_INLINE bool bits_have(const struct bits *bits, const void *key, size_t len)
{
    return bits->kernel->has_one(bits, family_digest(bits->family, key, len));
}

ALWAYS_INLINE bool bits_add(const struct bits *bits, const void *key, size_t len)
{
    return bits->kernel->add_one(bits, family_digest(bits->family, key, len));
}

bool quick_other(const struct set *set, const void *key, size_t len)
{
    return bits_have(quick_in(set)->bits, key, len);
}

bool quick_add_other(const struct set *set, const void *key, size_t len)
{
    return bits_add(quick_in(set)->bits, key, len);
}

static bool quick_of(const struct set *set, const void *key, size_t len)
{
    return bits_have(quick_in(set)->of, key, len);
}

bool quick_add_of(const struct set *set, const void *key, size_t len)
{
    return bits_add(quick_in(set)->of, key, len);
}

quick_fn quick_set(struct quick *quick, const struct bits *bits, bool brief)
{
    bool known = !brief && bits->k <= 16 && bits->family->hash == TAMIS_XXH3;
    quick_fn has = known ? bits->kernel->has_key[bits->k > 8] : NULL;
    quick_fn add = known ? bits->kernel->add_key[bits->k > 8] : NULL;
    if (!has || !add) {
        quick->of = bits;
        if (!brief)
            quick->add = quick_add_of;
        return quick_of;
    }
    unsigned last = bits->k % 8 ? bits->k % 8 : 8;
    quick->words = bits->words;
    quick->units = bits->units;
    quick->flip = digest_flip(bits->family);
    quick->least = (uint64_t)(8 - last) << 61;
    quick->mix = EIGHT_B;
    quick->one = 1;
    quick->bits = bits;
    quick->add = add;
    return has;
}

/* ---- spread ---------------------------------------------------------------------------------- */

/* A key that is not a member is rejected after two probes on average, so only EARLY probes are
   prefetched; keys that pass them prefetch the rest together. */
#define EARLY 3

ALWAYS_INLINE bool bit_is_set(const uint64_t *words, uint64_t position)
{
    return word_load(&words[position >> 6]) >> (position & 63) & 1;
}

ALWAYS_INLINE unsigned early(const struct bits *bits)
{
    return bits->k < EARLY ? bits->k : EARLY;
}

static void spread_prefetch(const struct bits *bits, const tamis_digest *digests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct probe p = probe_first(digests[i]);
        for (unsigned j = 0; j < early(bits); j++, probe_next(&p))
            fetch(&bits->words[mul_high(p.x, bits->units) >> 6]);
    }
}

ALWAYS_INLINE bool spread_look(const uint64_t *words, uint64_t units, unsigned k,
                               tamis_digest digest)
{
    struct probe p = probe_first(digest);
    for (unsigned j = 0; j < k; j++, probe_next(&p))
        if (!bit_is_set(words, mul_high(p.x, units)))
            return false;
    return true;
}

static bool spread_has_one(const struct bits *bits, tamis_digest digest)
{
    return spread_look(bits->words, bits->units, bits->k, digest);
}

/* Keys of 8 bytes under xxh3 need neither a call to hash them nor the family. */
static bool spread_has_key(const struct set *set, const void *key, size_t len)
{
    const struct quick *quick = quick_in(set);
    if (UNLIKELY(len != 8))
        return quick_other(set, key, len);
    return spread_look(quick->words, quick->units, quick->bits->k,
                       digest_eight_whole(quick->flip, key));
}

static void spread_has(const struct bits *bits, const tamis_digest *digests, size_t n,
                       uint8_t *found)
{
    struct probe rest[BATCH];
    uint8_t who[BATCH];
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        struct probe p = probe_first(digests[i]);
        bool all = true;
        for (unsigned j = 0; j < early(bits) && all; j++, probe_next(&p))
            all = bit_is_set(bits->words, mul_high(p.x, bits->units));
        if (!all)
            continue;
        struct probe ahead = p;
        for (unsigned j = early(bits); j < bits->k; j++, probe_next(&ahead))
            fetch(&bits->words[mul_high(ahead.x, bits->units) >> 6]);
        rest[left] = p;
        who[left++] = (uint8_t)i;
    }
    for (size_t i = 0; i < left; i++) {
        struct probe p = rest[i];
        bool all = true;
        for (unsigned j = early(bits); j < bits->k && all; j++, probe_next(&p))
            all = bit_is_set(bits->words, mul_high(p.x, bits->units));
        found[who[i]] |= all;
    }
}

static void spread_has_stream(const struct bits *bits, const tamis_digest *digests, size_t n,
                              uint8_t *found)
{
    memset(found, 0, n);
    for (size_t i = 0; i < n; i += BATCH) {
        size_t some = n - i < BATCH ? n - i : BATCH;
        spread_prefetch(bits, digests + i, some);
        spread_has(bits, digests + i, some, found + i);
    }
}

/* Sets a bit; not 0 if it was not set. A lone writer stores the word either way: a branch on the
   bit would be mispredicted once or twice per key. Where writers share the words, a bit that is set
   costs no locked access. */
ALWAYS_INLINE uint64_t bit_set(uint64_t *words, uint64_t position, int shared)
{
    uint64_t *word = &words[position >> 6], old = word_load(word);
    uint64_t with = old | UINT64_C(1) << (position & 63);
    if (!shared)
        word_store(word, with);
    else if (with != old)
        return ~__atomic_fetch_or(word, with ^ old, __ATOMIC_RELAXED) & (with ^ old);
    return with ^ old;
}

/* The words, their number and k are copies, which no store to the words can change. */
ALWAYS_INLINE bool spread_set(uint64_t *words, uint64_t units, unsigned k, tamis_digest digest,
                              int shared)
{
    struct probe p = probe_first(digest);
    uint64_t changed = 0;
    for (unsigned j = 0; j < k; j++, probe_next(&p))
        changed |= bit_set(words, mul_high(p.x, units), shared);
    return changed != 0;
}

ALWAYS_INLINE bool spread_add_digest(const struct bits *bits, tamis_digest digest, int shared)
{
    return spread_set(bits->words, bits->units, bits->k, digest, shared);
}

ALWAYS_INLINE bool set_positions(const struct bits *bits, const uint64_t *positions, int shared)
{
    uint64_t changed = 0;
    for (unsigned j = 0; j < bits->k; j++)
        changed |= bit_set(bits->words, positions[j], shared);
    return changed != 0;
}

static void spread_add(const struct bits *bits, const tamis_digest *digests, size_t n,
                       uint8_t *fresh)
{
    enum { SOME = 8 }; /* all lines of the next keys: an add touches every probe */
    const struct bits to = *bits;
    uint64_t at[SOME][K_MAX];
    for (size_t i = 0; i < n; i += SOME) {
        size_t some = n - i < SOME ? n - i : SOME;
        for (size_t j = 0; j < some; j++) {
            struct probe p = probe_first(digests[i + j]);
            for (unsigned probe = 0; probe < to.k; probe++, probe_next(&p)) {
                at[j][probe] = mul_high(p.x, to.units);
                fetch(&to.words[at[j][probe] >> 6]);
            }
        }
        for (size_t j = 0; j < some; j++)
            fresh[i + j] = set_positions(&to, at[j], 0);
    }
}

static void spread_add_shared(const struct bits *bits, const tamis_digest *digests, size_t n,
                              uint8_t *fresh)
{
    for (size_t i = 0; i < n; i++)
        fresh[i] = spread_add_digest(bits, digests[i], 1);
}

static bool spread_add_one(const struct bits *bits, tamis_digest digest)
{
    return spread_add_digest(bits, digest, 0);
}

static bool spread_add_key(const struct set *set, const void *key, size_t len)
{
    const struct quick *quick = quick_in(set);
    if (UNLIKELY(len != 8))
        return quick_add_other(set, key, len);
    return spread_set(quick->words, quick->units, quick->bits->k,
                      digest_eight_whole(quick->flip, key), 0);
}

static void spread_fill(const struct bits *bits, const tamis_digest *digests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct probe p = probe_first(digests[i]);
        for (unsigned j = 0; j < bits->k; j++, probe_next(&p)) {
            uint64_t at = mul_high(p.x, bits->units);
            bits->words[at >> 6] |= UINT64_C(1) << (at & 63);
        }
    }
}

void fill_positions(const struct bits *bits, const tamis_digest *digests, size_t n)
{
    uint64_t positions[K_MAX];
    for (size_t i = 0; i < n; i++) {
        bits->kernel->positions(bits, digests[i], positions);
        for (unsigned j = 0; j < bits->k; j++)
            bits->words[positions[j] >> 6] |= UINT64_C(1) << (positions[j] & 63);
    }
}

static void spread_positions(const struct bits *bits, tamis_digest digest, uint64_t *positions)
{
    bits->family->probe(bits->family, digest, bits->units, bits->k, positions);
}

static double spread_rate(const struct bits *bits, uint64_t sample)
{
    uint64_t n = (bits->units + 63) / 64, step = n > sample ? n / sample : 1;
    uint64_t ones = 0, seen = 0;
    for (uint64_t i = 0; i < n; i += step) {
        ones += (uint64_t)__builtin_popcountll(word_load(&bits->words[i]));
        seen += min_u64(64, bits->units - 64 * i);
    }
    return to_power((double)ones / (double)seen, bits->k);
}

const struct kernel kernel_spread = {
    .name = "spread",
    .layout = TAMIS_SPREAD,
    .unit_bits = 1,
    .has_key = {spread_has_key, spread_has_key},
    .add_key = {spread_add_key, spread_add_key},
    .prefetch = spread_prefetch,
    .has_one = spread_has_one,
    .has = spread_has,
    .has_any = any_in_turn,
    .has_stack = stack_by_groups,
    .has_stream = spread_has_stream,
    .add = spread_add,
    .add_one = spread_add_one,
    .add_shared = spread_add_shared,
    .fill = spread_fill,
    .positions = spread_positions,
    .rate = spread_rate,
};

/* ---- spread, with a probe function of the family's own --------------------------------------- */

static void probe_prefetch(const struct bits *bits, const tamis_digest *digests, size_t n)
{
    /* computing the addresses would cost as much as fetching the lines */
    (void)bits, (void)digests, (void)n;
}

static bool probe_has_one(const struct bits *bits, tamis_digest digest)
{
    uint64_t positions[K_MAX];
    spread_positions(bits, digest, positions);
    for (unsigned j = 0; j < bits->k; j++)
        if (!bit_is_set(bits->words, positions[j]))
            return false;
    return true;
}

static void probe_has(const struct bits *bits, const tamis_digest *digests, size_t n,
                      uint8_t *found)
{
    for (size_t i = 0; i < n; i++)
        found[i] |= probe_has_one(bits, digests[i]);
}

static void probe_has_stream(const struct bits *bits, const tamis_digest *digests, size_t n,
                             uint8_t *found)
{
    for (size_t i = 0; i < n; i++)
        found[i] = probe_has_one(bits, digests[i]);
}

ALWAYS_INLINE bool probe_add_key(const struct bits *bits, tamis_digest digest, int shared)
{
    uint64_t positions[K_MAX];
    spread_positions(bits, digest, positions);
    return set_positions(bits, positions, shared);
}

static void probe_add(const struct bits *bits, const tamis_digest *digests, size_t n,
                      uint8_t *fresh)
{
    for (size_t i = 0; i < n; i++)
        fresh[i] = probe_add_key(bits, digests[i], 0);
}

static bool probe_add_one(const struct bits *bits, tamis_digest digest)
{
    return probe_add_key(bits, digest, 0);
}

static void probe_add_shared(const struct bits *bits, const tamis_digest *digests, size_t n,
                             uint8_t *fresh)
{
    for (size_t i = 0; i < n; i++)
        fresh[i] = probe_add_key(bits, digests[i], 1);
}

const struct kernel kernel_spread_probe = {
    .name = "spread, own probes",
    .layout = TAMIS_SPREAD,
    .unit_bits = 1,
    .prefetch = probe_prefetch,
    .has_one = probe_has_one,
    .has = probe_has,
    .has_any = any_in_turn,
    .has_stack = stack_by_groups,
    .has_stream = probe_has_stream,
    .add = probe_add,
    .add_one = probe_add_one,
    .add_shared = probe_add_shared,
    .fill = fill_positions,
    .positions = spread_positions,
    .rate = spread_rate,
};

/* ---- blocked --------------------------------------------------------------------------------- */

void blocked_prefetch(const struct bits *bits, const tamis_digest *digests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fetch(&bits->words[8 * mul_high(digests[i].a, bits->units)]);
}

/* The k bits of word b, one word per lane. */
ALWAYS_INLINE void block_masks(uint64_t b, unsigned k, uint64_t masks[8])
{
    unsigned rotation = (unsigned)(b >> 61);
    memset(masks, 0, 8 * sizeof *masks);
    for (; k; b = mul_fold(b, BLOCK_MIX)) {
        unsigned r = k < 8 ? k : 8;
        for (unsigned j = 0; j < r; j++) {
            unsigned lane = (rotation + j) & 7;
            masks[lane] |= UINT64_C(1) << ((b >> (6 * lane)) & 63);
        }
        k -= r;
    }
}

static bool blocked_has_one(const struct bits *bits, tamis_digest digest)
{
    const uint64_t *block = &bits->words[8 * mul_high(digest.a, bits->units)];
    uint64_t b = digest.b, miss = 0;
    unsigned rotation = (unsigned)(b >> 61);
    for (unsigned k = bits->k; k && !miss; b = mul_fold(b, BLOCK_MIX)) {
        unsigned r = k < 8 ? k : 8;
        for (unsigned j = 0; j < r; j++) {
            unsigned lane = (rotation + j) & 7;
            miss |= ~(word_load(&block[lane]) >> ((b >> (6 * lane)) & 63)) & 1;
        }
        k -= r;
    }
    return !miss;
}

static void blocked_has(const struct bits *bits, const tamis_digest *digests, size_t n,
                        uint8_t *found)
{
    for (size_t i = 0; i < n; i++)
        found[i] |= blocked_has_one(bits, digests[i]);
}

static void blocked_has_stream(const struct bits *bits, const tamis_digest *digests, size_t n,
                               uint8_t *found)
{
    blocked_prefetch(bits, digests, n < AHEAD ? n : AHEAD);
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            blocked_prefetch(bits, &digests[i + AHEAD], 1);
        found[i] = blocked_has_one(bits, digests[i]);
    }
}

ALWAYS_INLINE bool blocked_add_key(const struct bits *bits, tamis_digest digest, int shared)
{
    uint64_t *block = &bits->words[8 * mul_high(digest.a, bits->units)];
    uint64_t masks[8], changed = 0;
    block_masks(digest.b, bits->k, masks);
    for (unsigned lane = 0; lane < 8; lane++) {
        uint64_t old = word_load(&block[lane]), missing = masks[lane] & ~old;
        if (!shared)
            word_store(&block[lane], old | missing);
        else if (missing)
            missing &= ~__atomic_fetch_or(&block[lane], missing, __ATOMIC_RELAXED);
        changed |= missing;
    }
    return changed != 0;
}

static void blocked_add(const struct bits *bits, const tamis_digest *digests, size_t n,
                        uint8_t *fresh)
{
    for (size_t i = 0; i < n; i += BATCH) {
        size_t some = n - i < BATCH ? n - i : BATCH;
        blocked_prefetch(bits, digests + i, some);
        for (size_t j = i; j < i + some; j++)
            fresh[j] = blocked_add_key(bits, digests[j], 0);
    }
}

static bool blocked_add_one(const struct bits *bits, tamis_digest digest)
{
    return blocked_add_key(bits, digest, 0);
}

void blocked_add_shared(const struct bits *bits, const tamis_digest *digests, size_t n,
                        uint8_t *fresh)
{
    for (size_t i = 0; i < n; i++)
        fresh[i] = blocked_add_key(bits, digests[i], 1);
}

void blocked_positions(const struct bits *bits, tamis_digest digest, uint64_t *positions)
{
    uint64_t base = BLOCK_BITS * mul_high(digest.a, bits->units), b = digest.b;
    unsigned rotation = (unsigned)(b >> 61);
    for (unsigned k = bits->k; k; b = mul_fold(b, BLOCK_MIX)) {
        unsigned r = k < 8 ? k : 8;
        for (unsigned j = 0; j < r; j++) {
            unsigned lane = (rotation + j) & 7;
            *positions++ = base + 64 * lane + ((b >> (6 * lane)) & 63);
        }
        k -= r;
    }
}

/* The mean over blocks and rotations of the product over the lanes of fill^(probes in the lane). */
double blocked_rate(const struct bits *bits, uint64_t sample)
{
    uint64_t step = bits->units > sample ? bits->units / sample : 1, seen = 0;
    unsigned q = bits->k / 8, r = bits->k % 8;
    double sum = 0;
    for (uint64_t i = 0; i < bits->units; i += step, seen++) {
        double fill[8], all = 1, part = 0;
        for (unsigned lane = 0; lane < 8; lane++) {
            uint64_t word = word_load(&bits->words[8 * i + lane]);
            fill[lane] = (double)__builtin_popcountll(word) / 64;
            all *= to_power(fill[lane], q);
        }
        for (unsigned rotation = 0; rotation < 8; rotation++) {
            double product = 1;
            for (unsigned j = 0; j < r; j++)
                product *= fill[(rotation + j) & 7];
            part += product / 8;
        }
        sum += all * part;
    }
    return sum / (double)seen;
}

const struct kernel kernel_blocked = {
    .name = "blocked",
    .layout = TAMIS_BLOCKED,
    .unit_bits = BLOCK_BITS,
    .local = true,
    .prefetch = blocked_prefetch,
    .has_one = blocked_has_one,
    .has = blocked_has,
    .has_any = any_in_turn,
    .has_stack = stack_by_groups,
    .has_stream = blocked_has_stream,
    .add = blocked_add,
    .add_one = blocked_add_one,
    .add_shared = blocked_add_shared,
    .fill = fill_positions,
    .positions = blocked_positions,
    .rate = blocked_rate,
};

/* ---- rows of a matrix ------------------------------------------------------------------------ */

bool rows_scalar(const uint64_t *words, uint64_t stride, uint64_t n, const uint64_t *rows,
                 unsigned k, uint64_t *left)
{
    uint64_t any = 0;
    for (uint64_t i = 0; i < n; i++)
        any |= left[i] = word_load(&words[rows[0] * stride + i]);
    for (unsigned j = 1; j < k && any; j++) {
        const uint64_t *row = words + rows[j] * stride;
        any = 0;
        for (uint64_t i = 0; i < n; i++)
            any |= left[i] &= word_load(&row[i]);
    }
    return any != 0;
}
