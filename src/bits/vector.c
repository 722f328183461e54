/* One vector: its memory, its bits by position, its counters, and operations on whole vectors
   (union, intersection, fold). Batches of lookups and adds go directly to the kernels. */
#include "vector.h"

#include "base/bytes.h"
#include "bit_rows.h"
#include "plan/plan.h"

#define RATE_SAMPLE 65536 /* words or blocks sampled to estimate a rate */

uint64_t shape_step(tamis_layout layout)
{
    return layout == TAMIS_BLOCKED ? 1 : UNIT_STEP;
}

bool shape_valid(const struct shape *shape, const struct family *family)
{
    if (shape->layout != TAMIS_SPREAD && shape->layout != TAMIS_BLOCKED)
        return false;
    uint64_t unit_bits = layout_unit_bits(shape->layout);
    if (shape->units == 0 || shape->units > BITS_MAX / unit_bits ||
        shape->units % shape_step(shape->layout))
        return false;
    if (family->hash == TAMIS_H3 &&
        (shape->layout != TAMIS_SPREAD || shape->units > UINT64_C(1) << H3_ROWS))
        return false;
    return shape->k >= 1 && shape->k <= K_MAX;
}

struct shape vector_shape(const struct vector *v)
{
    return (struct shape){v->bits.kernel->layout, v->bits.units, v->bits.k};
}

bool shape_equal(const struct vector *x, const struct vector *y)
{
    return x->bits.kernel->layout == y->bits.kernel->layout && x->bits.units == y->bits.units &&
           x->bits.k == y->bits.k;
}

uint64_t vector_positions_total(const struct vector *v)
{
    return v->bits.units * v->bits.kernel->unit_bits;
}

struct vector *vector_new(const tamis_allocator *a, const struct family *family, struct shape shape,
                          bool deletable, bool own_bits)
{
    struct vector *v = mem_new0(a, 1, vector_size(deletable));
    if (!v)
        return NULL;
    v->bits.units = shape.units;
    v->bits.k = shape.k;
    v->bits.family = family;
    v->bits.kernel = kernel_choose(shape.layout, family);
    v->stride = 1;
    v->sliced = !own_bits;
    v->deletable = deletable;
    v->ones_max = UINT64_MAX;
    uint64_t m = vector_positions_total(v);
    if ((own_bits && !block_new(a, (size_t)(m + 7) / 8, &v->memory)) ||
        (deletable && !counters_new(&v->counters, a, m))) {
        vector_free(v, a);
        return NULL;
    }
    v->bits.words = v->memory.data;
    return v;
}

struct vector *vector_view(const tamis_allocator *a, const struct family *family,
                           struct shape shape, const uint64_t *words)
{
    struct vector *v = vector_new(a, family, shape, false, false);
    if (!v)
        return NULL;
    v->sliced = false;
    v->view = true;
    v->bits.words = (uint64_t *)(uintptr_t)words;
    return v;
}

void vector_free(struct vector *v, const tamis_allocator *a)
{
    if (!v)
        return;
    block_free(a, &v->memory);
    block_free(a, &v->turned);
    changes_free(v->changes, a);
    kept_sums_free(v->sums, a);
    if (v->deletable) {
        counters_free(&v->counters, a);
        kept_sums_free(v->counter_sums, a);
    }
    mem_free(a, v, 1, vector_size(v->deletable));
}

struct vector *vector_clone(const struct vector *v, const struct family *family,
                            const tamis_allocator *a)
{
    size_t len = (size_t)(vector_positions_total(v) + 7) / 8, size = vector_size(v->deletable);
    struct vector *copy = mem_new(a, 1, size);
    if (!copy)
        return NULL;
    memcpy(copy, v, size);
    copy->memory = copy->turned = (struct block){0};
    copy->view = false;
    copy->changes = NULL;
    copy->sums = NULL;
    if (v->deletable) {
        copy->counters = (struct counters){0};
        copy->counter_sums = NULL;
    }
    if ((!v->sliced && !block_copy(a, v->bits.words, len, len, &copy->memory)) ||
        (v->deletable && !counters_copy(&copy->counters, &v->counters, a))) {
        vector_free(copy, a);
        return NULL;
    }
    copy->bits.family = family;
    copy->bits.words = copy->memory.data;
    return copy;
}

void vector_positions(const struct vector *v, tamis_digest digest, uint64_t *positions)
{
    v->bits.kernel->positions(&v->bits, digest, positions);
}

struct kept_sums *vector_sums(const struct vector *v, bool counters, const tamis_allocator *a)
{
    struct vector *own = (struct vector *)(uintptr_t)v; /* a reader may start to keep them */
    return kept_sums_at(counters ? &own->counter_sums : &own->sums, a,
                        vector_positions_total(v) / (counters ? 2 : 8));
}

void vector_mark_digests(struct vector *v, const tamis_digest *digests, const uint8_t *fresh,
                         size_t n)
{
    uint64_t positions[K_MAX];
    for (size_t i = 0; v->sums && i < n; i++) {
        if (!fresh[i])
            continue;
        vector_positions(v, digests[i], positions);
        for (unsigned j = 0; j < (v->bits.kernel->local ? 1 : v->bits.k); j++)
            vector_mark(v, positions[j]); /* a block lies in one page */
    }
}

static struct rows vector_rows(const struct vector *v)
{
    return (struct rows){v->bits.words, v->stride, v->column};
}

uint64_t vector_word(const struct vector *v, uint64_t i)
{
    uint64_t m = vector_positions_total(v), n = min_u64(64, m - 64 * i), word = 0;
    if (v->stride == 1) {
        word = word_load(&v->bits.words[i]);
        return n == 64 ? word : word & ((UINT64_C(1) << n) - 1);
    }
    for (uint64_t j = 0; j < n; j++)
        word |= (uint64_t)vector_bit(v, 64 * i + j) << j;
    return word;
}

bool vector_has(const struct vector *v, tamis_digest digest)
{
    if (v->stride == 1) {
        uint8_t found = 0;
        v->bits.kernel->has(&v->bits, &digest, 1, &found);
        return found;
    }
    uint64_t positions[K_MAX];
    vector_positions(v, digest, positions);
    for (unsigned j = 0; j < v->bits.k; j++)
        if (!vector_bit(v, positions[j]))
            return false;
    return true;
}

void vector_clear(struct vector *v)
{
    uint64_t m = vector_positions_total(v);
    struct rows rows = vector_rows(v);
    if (v->stride == 1)
        memset(v->bits.words, 0, (size_t)(m + 7) / 8);
    else
        rows_clear(&rows, m);
    if (v->deletable) {
        memset(v->counters.nibbles.data, 0, (size_t)(m + 1) / 2);
        table_clear(&v->counters.escapes);
        kept_sums_spoil(v->counter_sums);
    }
    v->load = v->count = v->ones = 0;
    kept_sums_spoil(v->sums);
    if (v->changes)
        v->changes->lost = true;
}

static uint64_t ones_of(const struct vector *v)
{
    uint64_t m = vector_positions_total(v);
    struct rows rows = vector_rows(v);
    return v->stride == 1 ? bytes_ones(v->bits.words, (size_t)(m + 7) / 8) : rows_ones(&rows, m);
}

uint64_t vector_count_ones(const struct vector *v)
{
    return v->deletable || v->view ? v->ones : ones_of(v);
}

double vector_rate_now(const struct vector *v)
{
    if (v->stride == 1)
        return v->bits.kernel->rate(&v->bits, RATE_SAMPLE);
    double fill = (double)vector_count_ones(v) / (double)vector_positions_total(v), rate = 1;
    for (unsigned j = 0; j < v->bits.k; j++)
        rate *= fill;
    return rate;
}

size_t vector_bytes(const struct vector *v)
{
    const struct counters *counters = v->deletable ? &v->counters : NULL;
    return vector_size(counters) + v->memory.size +
           (counters ? counters->nibbles.size + table_bytes(&counters->escapes) : 0);
}

/* ---- deletable ------------------------------------------------------------------------------- */

bool vector_reserve(struct vector *v, const tamis_allocator *a)
{
    return counters_reserve(&v->counters, a, v->bits.k);
}

void vector_fetch(const struct vector *v, const tamis_digest *digests, size_t n)
{
    const uint8_t *nibbles = v->counters.nibbles.data;
    uint64_t positions[K_MAX];
    bool apart = v->stride == 1 && v->bits.kernel->unit_bits == 1;
    if (v->stride == 1 && !apart)
        v->bits.kernel->prefetch(&v->bits, digests, n);
    for (size_t i = 0; i < n; i++) {
        vector_positions(v, digests[i], positions);
        for (unsigned j = 0; j < v->bits.k; j++) {
            fetch(&nibbles[positions[j] / 2]);
            if (apart) /* a kernel prefetches only the bits that a lookup reads first */
                fetch(&v->bits.words[positions[j] / 64]);
        }
    }
}

bool vector_insert(struct vector *v, tamis_digest digest)
{
    uint64_t positions[K_MAX];
    bool fresh = false;
    vector_positions(v, digest, positions);
    for (unsigned j = 0; j < v->bits.k; j++) {
        vector_mark_counter(v, positions[j]);
        if (counters_add(&v->counters, positions[j], 1) != 0)
            continue;
        vector_bit_set(v, positions[j]);
        vector_mark(v, positions[j]);
        if (v->changes)
            changes_turn(v->changes, positions[j], true);
        v->ones++;
        fresh = true;
    }
    v->count++;
    v->load += fresh;
    if (v->changes && fresh)
        v->changes->missed += changes_deny(v->changes, v, positions);
    return fresh;
}

uint64_t positions_repeat(const uint64_t *positions, unsigned k, unsigned j)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < k; i++)
        n += positions[i] == positions[j];
    return n;
}

uint64_t vector_copies(const struct vector *v, tamis_digest digest)
{
    uint64_t positions[K_MAX], least = UINT64_MAX, words = 0;
    unsigned k = v->bits.k;
    vector_positions(v, digest, positions);
    for (unsigned j = 0; j < k; j++)
        words |= UINT64_C(1) << (positions[j] >> 6 & 63);
    bool apart = (unsigned)__builtin_popcountll(words) == k; /* up to 8 in a block always are */
    for (unsigned j = 0; j < k && least; j++) {
        uint64_t n = counters_get(&v->counters, positions[j]);
        least = min_u64(least, apart ? n : n / positions_repeat(positions, k, j));
    }
    return least;
}

void vector_erase(struct vector *v, tamis_digest digest, uint64_t copies)
{
    uint64_t positions[K_MAX];
    bool cleared = false;
    vector_positions(v, digest, positions);
    for (unsigned j = 0; j < v->bits.k; j++) {
        vector_mark_counter(v, positions[j]);
        if (!vector_bit(v, positions[j]) || counters_sub(&v->counters, positions[j], copies) != 0)
            continue;
        vector_bit_clear(v, positions[j]);
        vector_mark(v, positions[j]);
        if (v->changes)
            changes_turn(v->changes, positions[j], false);
        v->ones--;
        cleared = true;
    }
    if (v->changes && cleared && v->changes->missed)
        v->changes->missed -= changes_deny(v->changes, v, positions);
    v->count -= min_u64(copies, v->count);
    v->load -= cleared && v->load;
}

/* ---- whole vectors --------------------------------------------------------------------------- */

bool vector_unite_reserve(struct vector *to, const struct vector *from, const tamis_allocator *a)
{
    if (!to->deletable)
        return true;
    return counters_reserve(&to->counters, a, counters_sum_escapes(&to->counters, &from->counters));
}

/* The number of keys that two plain vectors hold together: they may share some, so the bits
   limit it. */
static uint64_t united_load(const struct vector *to, const struct vector *from, uint64_t before,
                            uint64_t other, uint64_t after)
{
    if (after == before || after == other)
        return after == before ? to->load : from->load;
    double items = plan_items(to->bits.kernel->layout, to->bits.units, to->bits.k, after);
    uint64_t most = max_u64(to->load, from->load), sum = to->load + from->load;
    return min_u64(sum, max_u64(most, (uint64_t)items + 1));
}

void vector_fill_columns(struct vector *to, const struct vector *from, uint64_t n)
{
    struct rows mine = vector_rows(to), theirs = vector_rows(from);
    rows_or(&mine, &theirs, vector_positions_total(to), n);
}

/* Bit by bit, since each change has to be noted. */
static void unite_noting(struct vector *to, const struct vector *from)
{
    for (uint64_t i = 0; i < vector_positions_total(to); i++)
        if (vector_bit(from, i) && !vector_bit(to, i)) {
            vector_bit_set(to, i);
            changes_turn(to->changes, i, true);
        }
    to->changes->missed += from->changes ? from->changes->missed : from->load;
}

void vector_unite(struct vector *to, const struct vector *from)
{
    struct rows mine = vector_rows(to), theirs = vector_rows(from);
    uint64_t m = vector_positions_total(to);
    uint64_t before = vector_count_ones(to), other = vector_count_ones(from);
    kept_sums_spoil(to->sums);
    if (to->deletable)
        kept_sums_spoil(to->counter_sums);
    if (to->deletable && to->changes)
        unite_noting(to, from);
    else
        rows_or(&mine, &theirs, m, 1);
    uint64_t after = ones_of(to);
    if (to->deletable) {
        counters_sum(&to->counters, &from->counters);
        to->ones = after;
        to->load += from->load;
        to->count += from->count;
    } else {
        to->load = to->count = united_load(to, from, before, other, after);
        if (to->changes)
            to->changes->lost = true;
    }
}

bool vector_intersect(struct vector *v, const struct vector *x, const struct vector *y,
                      const tamis_allocator *a)
{
    uint64_t m = vector_positions_total(v);
    struct rows first = vector_rows(x), second = vector_rows(y), out = vector_rows(v);
    struct block plain = {0};
    if (y->stride != 1) {
        if (!block_new(a, (size_t)(m + 7) / 8, &plain))
            return false;
        struct rows columns = second;
        second = (struct rows){plain.data, 1, 0};
        rows_or(&second, &columns, m, 1);
    }
    rows_or(&out, &first, m, 1);
    for (uint64_t i = 0; i < (m + 63) / 64; i++)
        v->bits.words[i] &= second.words[i];
    block_free(a, &plain);
    return true;
}

struct vector *vector_fold(const struct vector *v, const struct family *family,
                           const tamis_allocator *a)
{
    struct shape shape = vector_shape(v);
    uint32_t unit_bits = v->bits.kernel->unit_bits;
    shape.units /= 2;
    struct vector *half = vector_new(a, family, shape, v->deletable, !v->sliced);
    if (!half)
        return NULL;
    half->fpp = v->fpp, half->capacity = v->capacity, half->column = v->column;
    half->load = v->load, half->count = v->count;
    if (!v->sliced) {
        rows_fold(half->bits.words, v->bits.words, shape.units, unit_bits);
        half->ones = v->deletable ? ones_of(half) : 0;
    }
    if (v->deletable && !counters_fold(&half->counters, &v->counters, unit_bits, a)) {
        vector_free(half, a);
        return NULL;
    }
    return half;
}

bool vector_equal(const struct vector *x, const struct vector *y)
{
    if (!shape_equal(x, y) || x->deletable != y->deletable)
        return false;
    if (x->deletable && x->count != y->count)
        return false; /* plain vectors count adds that seemed fresh, which depends on the order */
    uint64_t m = vector_positions_total(x);
    if (x->stride == 1 && y->stride == 1) {
        if (memcmp(x->bits.words, y->bits.words, (size_t)(m + 7) / 8) != 0)
            return false;
    } else {
        for (uint64_t i = 0; i < m; i++)
            if (vector_bit(x, i) != vector_bit(y, i))
                return false;
    }
    return !x->deletable || counters_equal(&x->counters, &y->counters);
}
