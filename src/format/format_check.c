/* Every byte of the payload of a set: what must agree there. Nothing here trusts alignment. */
#include "format.h"

#include "base/err.h"

/* ---- vectors --------------------------------------------------------------------------------- */

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

/* `ones` of the columns, where there is a matrix. */
static tamis_error check_vector(const struct container *c, const struct head *head,
                                const struct record *r, uint32_t owner, const uint64_t *ones,
                                tamis_reason *reason)
{
    uint64_t len;
    struct bit_source bits = {
        .bytes = container_find(c, ones ? SECTION_MATRIX : SECTION_BITS, ones ? 0 : owner, &len),
        .positions = record_positions(head, r),
        .stride = ones ? head->width : 1,
        .column = ones ? owner : 0,
    };
    return check_bits(c, head, &bits, ones ? ones[owner] : bytes_ones(bits.bytes, len), r, owner,
                      reason);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Hashes are even, and lookups are short because of it: on average a value lies 2 slots from its home.
   Values that someone chose may lie all in one run, and to make a table of them would take hours. */
#define FAR_MEAN  64
#define FAR_SMALL 65536 /* in all, for tables so small that it does not matter */

struct table_check table_check_begin(const struct head *head, uint32_t owner)
{
    uint64_t values = head_record(head, owner).load;
    return (struct table_check){.most = FAR_MEAN * values + FAR_SMALL,
                                .shift = table_shift((size_t)values)};
}

/* Values in order, each once, with copies. */
const char *table_check_pair(struct table_check *t, const uint8_t pair[TABLE_PAIR])
{
    uint64_t value = get_u64(pair), copies = get_u64(pair + 8), hash = table_hash(value);
    uint64_t home = hash >> t->shift;
    if (t->n && (hash < t->hash || (hash == t->hash && value <= t->value)))
        return "its values are not in order";
    if (copies == 0 || __builtin_add_overflow(t->copies, copies, &t->copies))
        return "copies of a value";
    t->next = max_u64(t->next, home) + 1;
    t->far += t->next - 1 - home;
    if (t->far > t->most)
        return "its values are too close to one another";
    t->n++, t->hash = hash, t->value = value;
    return NULL;
}

/* In a deletable index as many copies as the layer has records. */
const char *table_check_end(const struct table_check *t, const struct head *head, uint32_t owner)
{
    if (head->counted && t->copies != head_layer(head, owner / head->parts).count)
        return "its copies are not the records of the layer";
    return NULL;
}

static tamis_error check_table(const struct container *c, const struct head *head, uint32_t owner,
                               tamis_reason *reason)
{
    uint64_t len;
    const uint8_t *pairs = container_find(c, SECTION_TABLE, owner, &len);
    struct table_check t = table_check_begin(head, owner);
    const char *wrong = NULL;
    for (uint64_t at = 0; at < len && !wrong; at += TABLE_PAIR)
        wrong = table_check_pair(&t, pairs + at);
    if (!wrong)
        wrong = table_check_end(&t, head, owner);
    if (wrong)
        return fail_at(reason, TAMIS_EFORMAT, pairs ? (uint64_t)(pairs - c->data) : c->payload,
                       "the table of part %u: %s", owner, wrong);
    return TAMIS_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static tamis_error count_columns(const struct container *c, const struct head *head,
                                 const tamis_allocator *a, uint64_t **ones, tamis_reason *reason)
{
    uint64_t len;
    const uint8_t *matrix = container_find(c, SECTION_MATRIX, 0, &len);
    *ones = mem_new0(a, head->width, sizeof **ones);
    if (!*ones)
        return fail(reason, TAMIS_ENOMEM, "no memory to check the matrix");
    matrix_count_ones(matrix, head->set.shape.units, head->width, *ones);
    for (uint64_t i = head->n; i < head->width; i++)
        if ((*ones)[i])
            return fail_at(reason, TAMIS_EFORMAT, (uint64_t)(matrix - c->data),
                           "bits are set in a column without a vector");
    return TAMIS_OK;
}

tamis_error set_check(const struct container *c, const struct head *head, const tamis_allocator *a,
                      tamis_reason *reason)
{
    uint64_t *ones = NULL;
    tamis_error e = container_check_payload(c, reason);
    if (e == TAMIS_OK && head->width)
        e = count_columns(c, head, a, &ones, reason);
    for (uint32_t i = 0; i < head->n * head->parts && e == TAMIS_OK; i++) {
        struct record r = head_record(head, i);
        e = r.units ? check_vector(c, head, &r, i, ones, reason) : check_table(c, head, i, reason);
    }
    mem_free(a, ones, head->width, sizeof *ones);
    return e == TAMIS_OK ? pending_check(c, head, reason) : e;
}

tamis_error set_verify(enum kind kind, const void *data, size_t len, tamis_reason *reason)
{
    struct container c;
    struct head head;
    const uint8_t *key;
    tamis_error e = set_open(&c, &head, kind, data, len, reason);
    if (e == TAMIS_OK && c.has_key)
        e = container_key(&c, NULL, &key, reason);
    return e == TAMIS_OK ? set_check(&c, &head, &mem_system, reason) : e;
}
