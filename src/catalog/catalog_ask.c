/*
 * Queries. Of a mapped file only the pages of the rows needed are touched, and checked the first
 * time: a row then costs a page fault and a checksum of 4 KiB, about a microsecond, and later
 * nothing. Attributes are queried first; combinations are queried for the remaining segments.
 */
#include "catalog_bytes.h"

#include "base/bytes.h"
#include "base/err.h"
#include "tamis/catalog.h"

#define CHOICES_MAX UINT64_C(65536)    /* choices of values tried for a combination */
#define ROWS_AHEAD  12                 /* every row halves the columns: few are left after these */
#define FETCH_FROM  ((size_t)64 << 20) /* smaller files are read ahead by the system */

/* ---- checksums ------------------------------------------------------------------------------- */

static bool is_checked(const uint64_t *checked, uint64_t page)
{
    return word_load(&checked[page >> 6]) >> (page & 63) & 1;
}

static void set_checked(uint64_t *checked, uint64_t page)
{
    __atomic_fetch_or(&checked[page >> 6], UINT64_C(1) << (page & 63), __ATOMIC_RELAXED);
}

static tamis_error damaged(tamis_reason *reason, uint64_t at)
{
    return fail_at(reason, TAMIS_ECHECKSUM, at,
                   "the checksum of the page at byte %llu does not match: index again",
                   (unsigned long long)at);
}

/* Checks the page of checksums that contains the checksum of a page. */
static tamis_error check_sums(const tamis_catalog *c, uint64_t page, tamis_reason *reason)
{
    uint64_t at = page * sizeof(uint64_t) / CATALOG_PAGE;
    if (is_checked(c->checked_sums, at))
        return TAMIS_OK;
    const struct section *sums = &c->at[CATALOG_SUMS], *tops = &c->at[CATALOG_TOPS];
    uint64_t from = sums->offset + at * CATALOG_PAGE;
    uint64_t len = min_u64(CATALOG_PAGE, sums->offset + sums->len - from);
    if (hash_of(c->data + from, len) != get_u64(c->data + tops->offset + at * sizeof(uint64_t)))
        return damaged(reason, from);
    set_checked(c->checked_sums, at);
    return TAMIS_OK;
}

static tamis_error check_page(const tamis_catalog *c, uint64_t page, tamis_reason *reason)
{
    tamis_error e = check_sums(c, page, reason);
    if (e != TAMIS_OK)
        return e;
    uint64_t from = c->payload + page * CATALOG_PAGE, sums = c->at[CATALOG_SUMS].offset;
    uint64_t len = min_u64(CATALOG_PAGE, sums - from);
    if (hash_of(c->data + from, len) != get_u64(c->data + sums + page * sizeof(uint64_t)))
        return damaged(reason, from);
    set_checked(c->checked, page);
    return TAMIS_OK;
}

tamis_error catalog_check(const tamis_catalog *c, uint64_t from, uint64_t len, tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    if (len == 0)
        return e;
    uint64_t last = (from + len - 1 - c->payload) / CATALOG_PAGE;
    for (uint64_t page = (from - c->payload) / CATALOG_PAGE; page <= last && e == TAMIS_OK; page++)
        if (!is_checked(c->checked, page))
            e = check_page(c, page, reason);
    return e;
}

tamis_error catalog_check_long(const tamis_catalog *c, uint64_t from, uint64_t len,
                               tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    for (; len > CATALOG_WINDOW && e == TAMIS_OK; from += CATALOG_WINDOW, len -= CATALOG_WINDOW) {
        e = catalog_check(c, from, CATALOG_WINDOW, reason);
        tamis_catalog_rest(c);
    }
    return e == TAMIS_OK ? catalog_check(c, from, len, reason) : e;
}

/* ---- strips ---------------------------------------------------------------------------------- */

struct bits shape_bits(const struct catalog_shape *shape, const struct family *family)
{
    return (struct bits){.units = shape->plan.units,
                         .k = shape->plan.k,
                         .family = family,
                         .kernel = kernel_choose(TAMIS_SPREAD, family)};
}

bool catalog_column_segment(const tamis_catalog *c, uint64_t column, uint32_t *segment,
                            tamis_reason *reason)
{
    const uint8_t *at = c->data + c->table.columns + column * sizeof(uint32_t);
    *segment = fetch_u32(at);
    if (*segment < c->head.segments || *segment == STRIP_NONE)
        return true;
    fail_at(reason, TAMIS_EFORMAT, (uint64_t)(at - c->data), "a column belongs to no segment");
    return false;
}

uint32_t catalog_distinct(const tamis_catalog *c, uint64_t segment, uint32_t relation)
{
    return fetch_u32(c->data + c->table.distinct +
                     (relation * c->head.segments + segment) * sizeof(uint32_t));
}

tamis_range catalog_bounds(const tamis_catalog *c, uint64_t segment, uint32_t attribute)
{
    uint64_t at = c->schema.order_at[attribute] * c->head.segments + segment;
    const uint8_t *from = c->data + c->table.bounds + at * BOUNDS_LEN;
    return (tamis_range){{(int64_t)fetch_u64(from), fetch_u64(from + 8)},
                         {(int64_t)fetch_u64(from + 16), fetch_u64(from + 24)}};
}

/* Reading pages from disk one after the other takes long: if the first one is not in memory, all
   pages that a query is about to touch, including those of checksums, are requested at once.
   False if there is nothing to request. */
static bool strip_fetch(const tamis_catalog *c, const struct catalog_strip *strip,
                        tamis_digest digest, bool ask)
{
    struct bits bits = shape_bits(&c->shapes[strip->shape], &c->family);
    uint64_t rows[K_MAX];
    bits.kernel->positions(&bits, digest, rows);
    for (unsigned j = 0; j < bits.k && j < ROWS_AHEAD; j++) {
        uint64_t at = strip->offset + rows[j] * strip->width / 8;
        uint64_t page = (at - c->payload) / CATALOG_PAGE;
        if (ask && (is_checked(c->checked, page) || mapping_resident(c->data + at)))
            return false;
        ask = false;
        mapping_will_need(c->data + at, 1);
        mapping_will_need(c->data + c->at[CATALOG_SUMS].offset + page * sizeof(uint64_t), 1);
    }
    return true;
}

static void relation_fetch(const tamis_catalog *c, uint32_t relation, tamis_digest digest)
{
    bool ask = true;
    if (c->mapping.len < FETCH_FROM)
        return;
    for (uint32_t i = c->first[relation]; i != STRIP_NONE; i = c->strips[i].next, ask = false)
        if (!strip_fetch(c, &c->strips[i], digest, ask))
            return;
}

/* left &= the row at this bit; returns whether anything is left. A row of whole bytes has at most 8
   words. Not the kernel of matrices: between two rows the page of the second is checked, and rows
   are as narrow as the columns allow, so they begin at any byte. */
static bool and_row(const uint8_t *strip, uint64_t at, uint32_t width, uint64_t left[8])
{
    if (width < 8)
        return (left[0] &= strip[at / 8] >> (at % 8)) != 0;
    uint64_t words[8] = {0}, any = 0;
    memcpy(words, strip + at / 8, width / 8);
    for (unsigned i = 0; i < 8; i++)
        any |= left[i] &= words[i];
    return any != 0;
}

static tamis_error strip_ask(const tamis_catalog *c, const struct catalog_strip *strip,
                             tamis_digest digest, uint64_t *segments, tamis_reason *reason)
{
    struct bits bits = shape_bits(&c->shapes[strip->shape], &c->family);
    const uint8_t *data = c->data + strip->offset;
    uint64_t rows[K_MAX], left[8] = {0}, row_bytes = (strip->width + 7) / 8;
    bits.kernel->positions(&bits, digest, rows);
    for (unsigned j = 0; j < bits.k; j++)
        __builtin_prefetch(data + rows[j] * strip->width / 8);
    for (uint32_t i = 0; i < strip->n; i += 64)
        left[i / 64] = strip->n - i < 64 ? (UINT64_C(1) << (strip->n - i)) - 1 : UINT64_MAX;
    for (unsigned j = 0; j < bits.k; j++) {
        uint64_t at = rows[j] * strip->width;
        tamis_error e = catalog_check(c, strip->offset + at / 8, row_bytes, reason);
        if (e != TAMIS_OK)
            return e;
        if (!and_row(data, at, strip->width, left))
            return TAMIS_OK;
    }
    for (unsigned i = 0; i < 8; i++)
        for (uint64_t bits_left = left[i]; bits_left; bits_left &= bits_left - 1) {
            uint64_t column = strip->column + 64 * i + (unsigned)__builtin_ctzll(bits_left);
            uint32_t segment;
            if (!catalog_column_segment(c, column, &segment, reason))
                return TAMIS_EFORMAT;
            if (segment != STRIP_NONE)
                segments[segment >> 6] |= UINT64_C(1) << (segment & 63);
        }
    return TAMIS_OK;
}

/* Adds the segments that may have the digest. */
static tamis_error relation_ask(const tamis_catalog *c, uint32_t relation, tamis_digest digest,
                                uint64_t *segments, tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    relation_fetch(c, relation, digest);
    for (uint32_t i = c->first[relation]; i != STRIP_NONE && e == TAMIS_OK; i = c->strips[i].next)
        e = strip_ask(c, &c->strips[i], digest, segments, reason);
    return e;
}

/* ---- questions ------------------------------------------------------------------------------- */

struct query {
    const tamis_catalog *c;
    const tamis_condition *of[TAMIS_ATTRIBUTES_MAX]; /* condition on whole values, per attribute */
    tamis_digest *keys[TAMIS_ATTRIBUTES_MAX];        /* and those of its keys that pass the front */
    size_t n_keys[TAMIS_ATTRIBUTES_MAX];
    uint64_t mask;
    uint64_t words;
    uint64_t *left;  /* segments not rejected so far */
    uint64_t *found; /* for one condition or combination */
};

static uint64_t count(const struct query *q)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < q->words; i++)
        n += (uint64_t)__builtin_popcountll(q->left[i]);
    return n;
}

static void keep_found(const struct query *q)
{
    for (uint64_t i = 0; i < q->words; i++)
        q->left[i] &= q->found[i];
}

static tamis_error query_of(struct query *q, const tamis_condition *conditions, size_t n,
                            tamis_reason *reason)
{
    for (size_t i = 0; i < n; i++) {
        const tamis_condition *c = &conditions[i];
        uint32_t at = c->attribute;
        if (at >= q->c->schema.attributes)
            return fail(reason, TAMIS_EARG, "there is no attribute %u, only %u", at,
                        q->c->schema.attributes);
        if (c->n_ranges && !tamis_type_ordered(q->c->schema.types[at]))
            return fail(reason, TAMIS_EARG, "attribute \"%.40s\" has no order",
                        tamis_schema_name(&q->c->schema, at));
        if (c->parts || c->n_ranges || (q->of[at] && q->of[at]->n <= c->n))
            continue;
        q->of[at] = c;
        q->mask |= UINT64_C(1) << at;
    }
    return TAMIS_OK;
}

/* Segments whose values in the relation are unknown are always candidates. */
static void add_unknown(const struct query *q, uint32_t relation)
{
    for (uint64_t i = 0; i < q->c->head.segments; i++)
        if (catalog_distinct(q->c, i, relation) == DISTINCT_UNKNOWN)
            q->found[i >> 6] |= UINT64_C(1) << (i & 63);
}

static int by_low(const void *a, const void *b)
{
    return tamis_order_compare(((const tamis_range *)a)->low, ((const tamis_range *)b)->low);
}

/* Sorted by their low ends, each with the highest end of those up to it: of the ranges that begin before the end of a
   segment, one reaches its start if the highest end does. */
static void sort_ranges(tamis_range *ranges, size_t n)
{
    qsort(ranges, n, sizeof *ranges, by_low);
    for (size_t i = 1; i < n; i++)
        if (tamis_order_compare(ranges[i].high, ranges[i - 1].high) < 0)
            ranges[i].high = ranges[i - 1].high;
}

static bool meets_any(const tamis_range *sorted, size_t n, const tamis_range *here)
{
    size_t before = SEARCH(i, n, tamis_order_compare(sorted[i].low, here->high) <= 0);
    return before && tamis_order_compare(here->low, sorted[before - 1].high) <= 0;
}

static tamis_error add_in_range(const struct query *q, const tamis_condition *c,
                                tamis_reason *reason)
{
    const tamis_allocator *a = &q->c->allocator;
    tamis_range *sorted = mem_new(a, c->n_ranges, sizeof *sorted);
    if (!sorted)
        return fail(reason, TAMIS_ENOMEM, "no memory for a query");
    memcpy(sorted, c->ranges, c->n_ranges * sizeof *sorted);
    sort_ranges(sorted, c->n_ranges);
    for (uint64_t i = 0; i < q->c->head.segments; i++) {
        tamis_range here = catalog_bounds(q->c, i, c->attribute);
        if (tamis_order_compare(here.low, here.high) <= 0 && meets_any(sorted, c->n_ranges, &here))
            q->found[i >> 6] |= UINT64_C(1) << (i & 63);
    }
    mem_free(a, sorted, c->n_ranges, sizeof *sorted);
    return TAMIS_OK;
}

static tamis_error ask_condition(struct query *q, const tamis_condition *c, tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    uint32_t at = c->attribute;
    memset(q->found, 0, q->words * sizeof *q->found);
    for (size_t i = 0; i < c->n && e == TAMIS_OK; i++) {
        bool somewhere = true;
        if (q->c->first_front[at] != STRIP_NONE)
            e = fronts_find(q->c, at, c->keys[i].a, &somewhere, reason);
        if (e != TAMIS_OK || !somewhere)
            continue;
        e = relation_ask(q->c, at, c->keys[i], q->found, reason);
        if (c == q->of[at])
            q->keys[at][q->n_keys[at]++] = c->keys[i];
    }
    if (c->n)
        add_unknown(q, at);
    if (c->n_ranges && e == TAMIS_OK)
        e = add_in_range(q, c, reason);
    keep_found(q);
    return e;
}

/* Number of choices of one value per attribute; past CHOICES_MAX the exact number does not
   matter. */
static uint64_t choices_of(const struct query *q, uint64_t mask)
{
    uint64_t n = 1;
    for (; mask && n && n <= CHOICES_MAX; mask &= mask - 1) {
        size_t here = q->n_keys[__builtin_ctzll(mask)];
        n = here > CHOICES_MAX ? CHOICES_MAX + 1 : n * here;
    }
    return n;
}

/* Tries every choice of values for the attributes of a combination, like the digits of a number. */
static tamis_error ask_combo(const struct query *q, uint32_t combo, tamis_reason *reason)
{
    const tamis_schema *s = &q->c->schema;
    uint64_t mask = s->masks[combo], n = choices_of(q, mask);
    tamis_digest record[TAMIS_ATTRIBUTES_MAX];
    tamis_error e = TAMIS_OK;
    memset(q->found, 0, q->words * sizeof *q->found);
    for (uint64_t i = 0; i < n && e == TAMIS_OK; i++) {
        uint64_t rest = i;
        for (uint64_t left = mask; left; left &= left - 1) {
            uint32_t at = (uint32_t)__builtin_ctzll(left);
            record[at] = q->keys[at][rest % q->n_keys[at]];
            rest /= q->n_keys[at];
        }
        e = relation_ask(q->c, s->attributes + combo, mixed_digest(mask, record), q->found, reason);
    }
    add_unknown(q, s->attributes + combo);
    keep_found(q);
    return e;
}

/* The combination of exactly these attributes first, then those of subsets. */
static tamis_error ask_combos(const struct query *q, bool *verified, tamis_reason *reason)
{
    const tamis_schema *s = &q->c->schema;
    tamis_error e = TAMIS_OK;
    for (int exact = 1; exact >= 0; exact--)
        for (uint32_t i = 0; i < s->combos && e == TAMIS_OK; i++) {
            if (s->masks[i] & ~q->mask || (s->masks[i] == q->mask) != exact ||
                choices_of(q, s->masks[i]) > CHOICES_MAX)
                continue;
            *verified |= exact;
            if (count(q) > 0)
                e = ask_combo(q, i, reason);
        }
    return e;
}

static void query_free(struct query *q)
{
    const tamis_allocator *a = &q->c->allocator;
    mem_free(a, q->found, q->words, sizeof *q->found);
    for (uint64_t left = q->mask; left; left &= left - 1) {
        uint32_t at = (uint32_t)__builtin_ctzll(left);
        mem_free(a, q->keys[at], q->of[at]->n, sizeof *q->keys[at]);
    }
}

/* Allocates memory and starts with all segments. */
static tamis_error query_start(struct query *q, tamis_reason *reason)
{
    const tamis_catalog *c = q->c;
    q->found = mem_new(&c->allocator, q->words, sizeof *q->found);
    bool good = q->found;
    for (uint64_t left = q->mask; left; left &= left - 1) {
        uint32_t at = (uint32_t)__builtin_ctzll(left);
        q->keys[at] = mem_new(&c->allocator, q->of[at]->n, sizeof *q->keys[at]);
        good &= q->keys[at] != NULL;
    }
    for (uint64_t i = 0; i < q->words; i++)
        q->left[i] = c->head.segments - 64 * i < 64
                         ? (UINT64_C(1) << (c->head.segments - 64 * i)) - 1
                         : UINT64_MAX;
    return good ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory for a query");
}

tamis_error tamis_catalog_ask(const tamis_catalog *c, const tamis_condition *conditions, size_t n,
                              uint64_t *segments, tamis_catalog_answer *answer,
                              tamis_reason *reason)
{
    struct query q = {.c = c, .words = (c->head.segments + 63) / 64, .left = segments};
    tamis_error e = query_of(&q, conditions, n, reason);
    if (e != TAMIS_OK)
        return e;
    e = query_start(&q, reason);
    for (size_t i = 0; i < n && e == TAMIS_OK; i++)
        e = ask_condition(&q, &conditions[i], reason);
    uint64_t passed = count(&q);
    bool verified = (q.mask & (q.mask - 1)) == 0;
    if (e == TAMIS_OK)
        e = ask_combos(&q, &verified, reason);
    uint64_t candidates = count(&q);
    query_free(&q);
    if (answer && e == TAMIS_OK)
        *answer = (tamis_catalog_answer){verified, c->head.segments, c->head.segments - passed,
                                         passed - candidates, candidates};
    return e;
}
