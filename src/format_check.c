/* Every byte of a payload of vectors: what must agree there. Nothing here trusts alignment. And how
   vectors come out of it. */
#include "format.h"

#include "err.h"

#define ESCAPES 4096 /* words written at a time */

/* ---- one vector ------------------------------------------------------------------------------ */

/* The bits of a vector in the payload: its own section, or a column of the matrix. */
struct bit_source {
    const uint8_t *bytes;
    uint64_t positions, stride, column;
};

static uint64_t source_word(const struct bit_source *s, uint64_t i)
{
    uint64_t word = 0, n = min_u64(64, s->positions - 64 * i);
    if (s->stride == 1) {
        memcpy(&word, s->bytes + 8 * i, (size_t)n / 8);
        return word;
    }
    for (uint64_t j = 0; j < n; j++) {
        uint64_t at = (64 * i + j) * s->stride + s->column;
        word |= (uint64_t)(s->bytes[at >> 3] >> (at & 7) & 1) << j;
    }
    return word;
}

/* A bit is set where its counter is not 0, and every counter of 15 has its large value, in order. */
static tamis_error check_counters(const struct container *c, const struct bit_source *bits,
                                  uint32_t i, tamis_reason *reason)
{
    uint64_t len, escapes_len, used = 0;
    const uint8_t *nibbles = container_find(c, SECTION_COUNTERS, i, &len);
    const uint8_t *escapes = container_find(c, SECTION_ESCAPES, i, &escapes_len);
    for (uint64_t w = 0; 64 * w < bits->positions; w++) {
        uint64_t set, large, n = min_u64(64, bits->positions - 64 * w);
        counters_masks(nibbles + 32 * w, (size_t)n / 2, &set, &large);
        if (set != source_word(bits, w))
            return fail_at(reason, TAMIS_EFORMAT, (uint64_t)(nibbles - c->data) + 32 * w,
                           "vector %u: bits and counters do not agree", i);
        for (; large; large &= large - 1, used += 16) {
            uint64_t at = 64 * w + (uint64_t)__builtin_ctzll(large);
            if (used == escapes_len || get_u64(escapes + used) != at ||
                get_u64(escapes + used + 8) < COUNTER_ESCAPE)
                return fail_at(reason, TAMIS_EFORMAT,
                               (uint64_t)(escapes ? escapes - c->data : nibbles - c->data) + used,
                               "vector %u: the large counters are not in their table", i);
        }
    }
    if (used != escapes_len)
        return fail_at(reason, TAMIS_EFORMAT, (uint64_t)(escapes - c->data) + used,
                       "vector %u: a large counter without its mark", i);
    return TAMIS_OK;
}

static tamis_error check_bits(const struct container *c, const struct head *head,
                              const struct bit_source *bits, uint64_t ones, const struct record *r,
                              uint32_t i, tamis_reason *reason)
{
    if (ones != r->ones)
        return fail_at(reason, TAMIS_EFORMAT, (uint64_t)(bits->bytes - c->data),
                       "vector %u has %llu bits set, not %llu", i, (unsigned long long)ones,
                       (unsigned long long)r->ones);
    return head->counted ? check_counters(c, bits, i, reason) : TAMIS_OK;
}

tamis_error vector_check(const struct container *c, const struct head *head, const struct record *r,
                         uint32_t owner, tamis_reason *reason)
{
    uint64_t len;
    struct bit_source bits = {
        .bytes = container_find(c, SECTION_BITS, owner, &len),
        .positions = record_positions(head, r),
        .stride = 1,
    };
    return check_bits(c, head, &bits, bytes_ones(bits.bytes, len), r, owner, reason);
}

static tamis_error check_column(const struct container *c, const struct head *head, uint32_t i,
                                const uint64_t *ones, tamis_reason *reason)
{
    struct record r = head_record(head, i);
    uint64_t len;
    struct bit_source bits = {
        .bytes = container_find(c, SECTION_MATRIX, 0, &len),
        .positions = record_positions(head, &r),
        .stride = head->width,
        .column = i,
    };
    return check_bits(c, head, &bits, ones[i], &r, i, reason);
}

/* ---- reading vectors ------------------------------------------------------------------------- */

bool counters_load(const struct container *c, struct vector *v, uint32_t owner,
                   const tamis_allocator *a)
{
    uint64_t len, escapes_len;
    const uint8_t *nibbles = container_find(c, SECTION_COUNTERS, owner, &len);
    const uint8_t *escapes = container_find(c, SECTION_ESCAPES, owner, &escapes_len);
    if (!counters_reserve(&v->counters, a, (size_t)(escapes_len / 16)))
        return false;
    memcpy(v->counters.nibbles.data, nibbles, len);
    for (uint64_t at = 0; at < escapes_len; at += 16)
        counters_escape(&v->counters, get_u64(escapes + at), get_u64(escapes + at + 8));
    return true;
}

struct vector *vector_load(const struct container *c, const struct head *head,
                           const struct record *r, uint32_t owner, bool view,
                           const struct family *family, const tamis_allocator *a)
{
    struct shape shape = {head->set.layout, r->units, r->k};
    bool sliced = head->width != 0, counted = head->counted && !view;
    uint64_t len;
    const uint8_t *bits = container_find(c, SECTION_BITS, owner, &len);
    struct vector *v = view && !sliced ? vector_view(a, family, shape, (const void *)bits)
                                       : vector_new(a, family, shape, counted, !sliced);
    if (!v)
        return NULL;
    if (counted && !counters_load(c, v, owner, a)) {
        vector_free(v, a);
        return NULL;
    }
    if (!sliced && !view)
        memcpy(v->bits.words, bits, len);
    v->view = view;
    vector_from_record(v, r);
    v->column = sliced ? owner : 0;
    return v;
}

/* ---- writing vectors ------------------------------------------------------------------------- */

/* In order of position, found by looking for counters of 15: no memory, no sorting. */
void counters_put_escapes(const struct counters *counters, struct writer *w)
{
    uint64_t buffer[ESCAPES];
    size_t n = 0;
    const uint8_t *nibbles = counters->nibbles.data;
    for (uint64_t i = 0; i < counters->n; i += 2) {
        uint8_t both = nibbles[i / 2];
        if ((both & 15) != COUNTER_ESCAPE && both >> 4 != COUNTER_ESCAPE)
            continue;
        for (uint64_t at = i; at < i + 2; at++) {
            if ((both >> (4 * (at - i)) & 15) != COUNTER_ESCAPE)
                continue;
            buffer[n++] = at;
            buffer[n++] = counters_get(counters, at);
        }
        if (n + 4 > ESCAPES) {
            put(w, buffer, n * sizeof *buffer);
            n = 0;
        }
    }
    put(w, buffer, n * sizeof *buffer);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static tamis_error check_vectors(const struct container *c, const struct head *head,
                                 const tamis_allocator *a, tamis_reason *reason)
{
    uint64_t *ones = NULL, len;
    tamis_error e = TAMIS_OK;
    if (head->width) {
        const uint8_t *matrix = container_find(c, SECTION_MATRIX, 0, &len);
        ones = mem_new0(a, head->width, sizeof *ones);
        if (!ones)
            return fail(reason, TAMIS_ENOMEM, "no memory to check the matrix");
        matrix_count_ones(matrix, head->set.shape.units, head->width, ones);
        for (uint64_t i = head->n; i < head->width && e == TAMIS_OK; i++)
            if (ones[i])
                e = fail_at(reason, TAMIS_EFORMAT, (uint64_t)(matrix - c->data),
                            "bits are set in a column without a vector");
    }
    for (uint32_t i = 0; i < head->n && e == TAMIS_OK; i++) {
        struct record r = head_record(head, i);
        e = ones ? check_column(c, head, i, ones, reason) : vector_check(c, head, &r, i, reason);
    }
    mem_free(a, ones, head->width, sizeof *ones);
    return e;
}

tamis_error filter_check(const struct container *c, const struct head *head,
                         const tamis_allocator *a, tamis_reason *reason)
{
    tamis_error e = container_check_payload(c, reason);
    if (e == TAMIS_OK)
        e = check_vectors(c, head, a, reason);
    return e == TAMIS_OK ? pending_check(c, head, reason) : e;
}

tamis_error filter_verify(const void *data, size_t len, tamis_reason *reason)
{
    struct container c;
    struct head head;
    uint8_t key[TAMIS_KEY_LEN];
    tamis_error e = filter_open(&c, &head, data, len, reason);
    if (e == TAMIS_OK && c.has_key)
        e = container_key(&c, NULL, key, reason);
    return e == TAMIS_OK ? filter_check(&c, &head, &mem_system, reason) : e;
}
