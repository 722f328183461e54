/*
 * Translates each clause of a question into conditions on keys and ranges, which a catalog can answer. A
 * clause without any is left to the check of the record.
 */
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "question_check.h"

/* The conditions being made. All keys are in one array, which moves as it grows. */
struct condition_list {
    const struct question *question;
    const tamis_schema *schema;
    uint32_t attribute;
    tamis_condition *condition;
    size_t n, room;
    size_t *first; /* for each condition: its first key */
    size_t firsts_room;
    tamis_digest *key;
    size_t n_keys, keys_room;
    tamis_range *range;
    size_t n_ranges, ranges_room;
    size_t longest; /* of several keys, all of which a value has: its length + 1 */
    bool parts, failed;
};

static void push_key(struct condition_list *a, tamis_key key, bool part)
{
    a->failed |= !room_for(&a->key, a->n_keys, &a->keys_room, sizeof *a->key);
    if (a->failed)
        return;
    a->key[a->n_keys++] = part ? tamis_schema_part(a->schema, a->attribute, key)
                               : tamis_schema_digest(a->schema, a->attribute, key);
    a->parts |= part;
}

static bool push_range(struct condition_list *a, const tamis_range *range)
{
    a->failed =
        a->failed || !array_add(&a->range, &a->n_ranges, &a->ranges_room, range, sizeof *range);
    return !a->failed;
}

/* One of several keys, of which a value has at least one. */
static void take_any(void *context, tamis_key key, bool part)
{
    push_key(context, key, part);
}

/* The longest of several keys, all of which a value has: most likely the rarest. */
static void take_longest(void *context, tamis_key key, bool part)
{
    struct condition_list *a = context;
    if (key.len < a->longest)
        return;
    if (a->longest)
        a->n_keys--;
    a->longest = key.len + 1;
    push_key(a, key, part);
}

/* A condition with the keys from `first` on. */
static void push_condition(struct condition_list *a, size_t first, size_t first_range)
{
    size_t room = a->room;
    a->failed |= !room_for(&a->condition, a->n, &room, sizeof *a->condition) ||
                 !room_for(&a->first, 2 * a->n + 1, &a->firsts_room, sizeof *a->first);
    if (a->failed)
        return;
    a->room = room;
    a->first[2 * a->n] = first;
    a->first[2 * a->n + 1] = first_range;
    a->condition[a->n++] = (tamis_condition){.attribute = a->attribute,
                                             .n = a->n_keys - first,
                                             .parts = a->parts,
                                             .n_ranges = a->n_ranges - first_range};
}

/* Each token is a separate condition. */
static void take_each(void *context, tamis_key key, bool part)
{
    struct condition_list *a = context;
    size_t first = a->n_keys;
    push_key(a, key, part);
    push_condition(a, first, a->n_ranges);
}

/* ---- clauses --------------------------------------------------------------------------------- */

/* A value as a range, for attributes of which only the lowest and highest are stored. */
static bool ask_order(struct condition_list *a, tamis_type type, tamis_key asked)
{
    tamis_range r;
    if (!tamis_value_order(type, asked, &r.low))
        return false;
    r.high = r.low;
    return push_range(a, &r);
}

/* The keys of one alternative; false: it may be anything. */
static bool ask_one(struct condition_list *a, tamis_type type, tamis_op op, tamis_key asked)
{
    size_t before = a->n_keys;
    if (op == TAMIS_EQUAL && tamis_schema_bounds_only(a->schema, a->attribute))
        return ask_order(a, type, asked);
    tamis_need need = tamis_type_ask(type, op, asked, take_any, a);
    if (need == TAMIS_NEED_ALL) {
        a->n_keys = before;
        a->longest = 0;
        tamis_type_ask(type, op, asked, take_longest, a);
    }
    return need == TAMIS_NEED_ANY || need == TAMIS_NEED_ALL;
}

static bool end_order(tamis_type type, const struct end *end, bool high, tamis_order *out)
{
    char text[TIME_NORMAL_MAX];
    tamis_key key = {end->text.data, end->text.len};
    *out = high ? (tamis_order){INT64_MAX, UINT64_MAX} : (tamis_order){INT64_MIN, 0};
    if (!end->there)
        return true;
    if (type == TAMIS_TIME)
        key = (tamis_key){text, time_write(end->time, text)};
    return tamis_value_order(type, key, out);
}

static bool ask_ranges(struct condition_list *a, const struct clause *c, tamis_type type)
{
    for (size_t i = 0; i < c->n_ranges; i++) {
        tamis_range r;
        if (!end_order(type, &c->range[i].low, false, &r.low) ||
            !end_order(type, &c->range[i].high, true, &r.high) || !push_range(a, &r))
            return false;
    }
    return true;
}

static bool ask_set(struct condition_list *a, const struct clause *c, tamis_type type)
{
    size_t first = a->n_keys, first_range = a->n_ranges;
    bool good = true;
    a->parts = false;
    for (size_t i = 0; good && i < c->n_values; i++)
        good = ask_one(a, type, TAMIS_EQUAL, (tamis_key){c->value[i].is.data, c->value[i].is.len});
    for (size_t i = 0; good && i < c->n_prefixes; i++)
        good =
            ask_one(a, type, TAMIS_PREFIX, (tamis_key){c->prefix[i].is.data, c->prefix[i].is.len});
    for (size_t i = 0; good && i < c->n_networks; i++)
        good = ask_one(a, type, TAMIS_NETWORK,
                       (tamis_key){c->network[i].given, strlen(c->network[i].given)});
    if (good && c->missing)
        push_key(a, (tamis_key){NULL, 0}, false);
    good = good && !(c->missing && tamis_schema_bounds_only(a->schema, a->attribute));
    good = good && ask_ranges(a, c, type);
    if (good) {
        push_condition(a, first, first_range);
    } else {
        a->n_keys = first;
        a->n_ranges = first_range;
    }
    return good;
}

/* Adds the conditions of the clause, if it is about this column; false: it only filters. */
static bool ask_clause(struct condition_list *a, const struct clause *c, size_t column)
{
    const struct field *field = &a->question->column[column];
    size_t before = a->n;
    if (field->attribute == NOT_INDEXED || c->negative || c->kind == CLAUSE_REGEX)
        return false;
    a->attribute = field->attribute;
    if (c->kind == CLAUSE_SET)
        return ask_set(a, c, field->type);
    tamis_type_ask(field->type, TAMIS_PHRASE, (tamis_key){c->phrase.data, c->phrase.len}, take_each,
                   a);
    return a->n > before;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Nothing can be ruled out. */
static void ask_all(const tamis_catalog *catalog, uint64_t *bits, tamis_catalog_answer *answer)
{
    uint64_t n = tamis_catalog_segments(catalog);
    for (uint64_t i = 0; i < n; i++)
        bits[i / 64] |= UINT64_C(1) << i % 64;
    *answer = (tamis_catalog_answer){.verified = true, .segments = n, .candidates = n};
}

/* With the times of records in this column. */
static tamis_error ask_with(struct condition_list *a, const tamis_catalog *catalog, size_t period,
                            uint64_t *segments, bool *prunes, tamis_catalog_answer *answer,
                            tamis_reason *reason)
{
    const struct question *q = a->question;
    uint64_t words = (tamis_catalog_segments(catalog) + 63) / 64;
    uint64_t *bits = calloc(words + 1, sizeof *bits);
    a->n = a->n_keys = a->n_ranges = 0;
    for (size_t i = 0; i < q->n; i++) {
        size_t column = q->clause[i].column == PERIOD ? period : q->clause[i].column;
        prunes[i] = column != NO_COLUMN && ask_clause(a, &q->clause[i], column);
    }
    for (size_t i = 0; !a->failed && i < a->n; i++) {
        a->condition[i].keys = a->key + a->first[2 * i];
        a->condition[i].ranges = a->range + a->first[2 * i + 1];
    }
    tamis_error error = a->failed || !bits ? TAMIS_ENOMEM : TAMIS_OK;
    if (error == TAMIS_OK && a->n)
        error = tamis_catalog_ask(catalog, a->condition, a->n, bits, answer, reason);
    else if (error == TAMIS_OK)
        ask_all(catalog, bits, answer);
    for (uint64_t i = 0; error == TAMIS_OK && i < words; i++)
        segments[i] |= bits[i];
    free(bits);
    return error;
}

/* What several columns of times together ruled out. */
static void count_both(const tamis_catalog *catalog, const uint64_t *segments,
                       tamis_catalog_answer *answer)
{
    uint64_t n = tamis_catalog_segments(catalog), left = 0;
    for (uint64_t i = 0; i < n; i++)
        left += segments[i / 64] >> i % 64 & 1;
    answer->candidates = left;
    if (answer->by_verifier > n - left)
        answer->by_verifier = n - left;
    answer->by_attributes = n - left - answer->by_verifier;
}

tamis_error question_ask(const struct question *q, const tamis_catalog *catalog, uint64_t *segments,
                         bool *prunes, tamis_catalog_answer *answer, tamis_reason *reason)
{
    struct condition_list a = {.question = q, .schema = tamis_catalog_schema(catalog)};
    tamis_error error = TAMIS_OK;
    size_t n = q->n_pruning ? q->n_pruning : 1;
    for (size_t i = 0; error == TAMIS_OK && i < n; i++)
        error = ask_with(&a, catalog, q->n_pruning ? q->period[i] : NO_COLUMN, segments, prunes,
                         answer, reason);
    if (error == TAMIS_OK && n > 1)
        count_both(catalog, segments, answer);
    free(a.condition);
    free(a.first);
    free(a.key);
    free(a.range);
    return error;
}
