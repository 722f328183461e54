/* Every byte of a filter's payload: what must agree there. Nothing here trusts alignment. */
#include "format.h"

#include "err.h"

const uint8_t *filter_section(const struct container *c, uint32_t type, uint32_t owner,
                              uint64_t *len)
{
    uint32_t low = 0, high = c->sections; /* sections are in order of type and owner */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct section s = container_section(c, middle);
        if (s.type == type && s.owner == owner) {
            *len = s.len;
            return c->data + s.offset;
        }
        if (s.type < type || (s.type == type && s.owner < owner))
            low = middle + 1;
        else
            high = middle;
    }
    *len = 0;
    return NULL;
}

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
    const uint8_t *nibbles = filter_section(c, SECTION_COUNTERS, i, &len);
    const uint8_t *escapes = filter_section(c, SECTION_ESCAPES, i, &escapes_len);
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

static tamis_error check_vector(const struct container *c, const struct filter_head *head,
                                uint32_t i, const uint64_t *column_ones, tamis_reason *reason)
{
    struct record r = head_record(head, i);
    uint64_t len, ones;
    bool sliced = head->width != 0;
    struct bit_source bits = {
        .bytes = filter_section(c, sliced ? SECTION_MATRIX : SECTION_BITS, sliced ? 0 : i, &len),
        .positions = record_positions(head, &r),
        .stride = sliced ? head->width : 1,
        .column = sliced ? i : 0,
    };
    ones = sliced ? column_ones[i] : bytes_ones(bits.bytes, len);
    if (ones != r.ones)
        return fail_at(reason, TAMIS_EFORMAT, (uint64_t)(bits.bytes - c->data),
                       "vector %u has %llu bits set, not %llu", i, (unsigned long long)ones,
                       (unsigned long long)r.ones);
    return head->counted ? check_counters(c, &bits, i, reason) : TAMIS_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static const char *entry_wrong(const struct filter_head *head, const uint8_t *entry,
                               const uint8_t *candidates, uint32_t n)
{
    if (get_u64(entry + 16) == 0 || n == 0 || n > head->n)
        return "nothing to remove";
    if (get_u32(entry + 24) > (head->set.unique ? 1u : 0u))
        return "only unique filters hide keys";
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = get_u32(candidates + 4 * (size_t)i);
        if (head_find(head, id) == head->n || (i && id <= get_u32(candidates + 4 * (size_t)i - 4)))
            return "its candidates are not vectors in order";
    }
    return NULL;
}

tamis_error filter_check_pending(const struct container *c, const struct filter_head *head,
                                 tamis_reason *reason)
{
    uint64_t len, candidates_len, used = 0, copies = 0, a = 0, b = 0;
    const uint8_t *entries = filter_section(c, SECTION_PENDING, 0, &len);
    const uint8_t *candidates = filter_section(c, SECTION_CANDIDATES, 0, &candidates_len);
    for (uint64_t i = 0; i < head->pending; i++) {
        const uint8_t *entry = entries + 32 * i;
        uint64_t x = get_u64(entry), y = get_u64(entry + 8);
        uint32_t n = get_u32(entry + 28);
        const char *wrong = n > (candidates_len - used) / 4
                                ? "more candidates than there are"
                                : entry_wrong(head, entry, candidates + used, n);
        if (!wrong && i && (x < a || (x == a && y <= b)))
            wrong = "not in order";
        if (!wrong && __builtin_add_overflow(copies, get_u64(entry + 16), &copies))
            wrong = "too many copies";
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, (uint64_t)(entry - c->data),
                           "pending removal %llu: %s", (unsigned long long)i, wrong);
        used += 4 * (uint64_t)n;
        a = x, b = y;
    }
    if (used != candidates_len || copies != head->copies)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + 224,
                       "the pending removals do not add up to their number");
    return TAMIS_OK;
}

static tamis_error check_vectors(const struct container *c, const struct filter_head *head,
                                 const tamis_allocator *a, tamis_reason *reason)
{
    uint64_t *ones = NULL, len;
    tamis_error e = TAMIS_OK;
    if (head->width) {
        const uint8_t *matrix = filter_section(c, SECTION_MATRIX, 0, &len);
        ones = mem_new0(a, head->width, sizeof *ones);
        if (!ones)
            return fail(reason, TAMIS_ENOMEM, "no memory to check the matrix");
        matrix_count_ones(matrix, head->set.shape.units, head->width, ones);
        for (uint64_t i = head->n; i < head->width && e == TAMIS_OK; i++)
            if (ones[i])
                e = fail_at(reason, TAMIS_EFORMAT, (uint64_t)(matrix - c->data),
                            "bits are set in a column without a vector");
    }
    for (uint32_t i = 0; i < head->n && e == TAMIS_OK; i++)
        e = check_vector(c, head, i, ones, reason);
    mem_free(a, ones, head->width, sizeof *ones);
    return e;
}

tamis_error filter_check(const struct container *c, const struct filter_head *head,
                         const tamis_allocator *a, tamis_reason *reason)
{
    tamis_error e = container_verify(c, c->payload, c->len, reason);
    if (e == TAMIS_OK)
        e = container_check_gaps(c, reason);
    if (e == TAMIS_OK)
        e = check_vectors(c, head, a, reason);
    return e == TAMIS_OK ? filter_check_pending(c, head, reason) : e;
}

tamis_error filter_verify(const void *data, size_t len, tamis_reason *reason)
{
    struct container c;
    struct filter_head head;
    uint8_t key[TAMIS_KEY_LEN];
    tamis_error e = filter_open(&c, &head, data, len, reason);
    if (e == TAMIS_OK && c.has_key)
        e = container_key(&c, NULL, key, reason);
    return e == TAMIS_OK ? filter_check(&c, &head, &mem_system, reason) : e;
}
