/*
 * Queries of records. The parts that a query needs are tested in turn, the verifier of exactly its
 * attributes first: it rejects nearly everything that is absent, including recombined values, so
 * that a "no" takes one cache miss per layer. The rest of a batch continues with the next part;
 * each step prefetches the lines of the whole batch before it tests.
 */
#include "base/err.h"
#include "set.h"

/* values of all attributes that remain after a layer's attributes were tested */
#define VALUES_MAX 4096
#define FEW        4     /* records */
#define STEPS_MAX  65536 /* partial choices tried per layer */

/* ---- many records ---------------------------------------------------------------------------- */

/* The parts that a query needs, in the order in which they are tested. */
struct record_query {
    uint32_t n;
    uint8_t part[PARTS_MAX];
};

static void question_of(const struct set *s, uint64_t mask, struct record_query *q)
{
    uint32_t p = s->stack->form->attributes;
    q->n = 0;
    for (int exact = 1; exact >= 0; exact--)
        for (uint32_t i = 0; i < s->stack->form->verifiers; i++)
            if ((s->stack->form->masks[i] & ~mask) == 0 &&
                (s->stack->form->masks[i] == mask) == exact)
                q->part[q->n++] = (uint8_t)(p + i);
    for (; mask; mask &= mask - 1)
        q->part[q->n++] = (uint8_t)__builtin_ctzll(mask);
}

static void part_prefetch(const struct part *part, const tamis_digest *column, size_t n)
{
    if (part->vector && !bits_small(&part->vector->bits))
        part->vector->bits.kernel->prefetch(&part->vector->bits, column, n);
    for (size_t i = 0; !part->vector && i < n; i++)
        table_prefetch(&part->table, column[i].a);
}

/* found[i] = the part has column[i]; at most BATCH. */
static void part_has(const struct part *part, const tamis_digest *column, size_t n, uint8_t *found)
{
    memset(found, 0, n);
    if (part->vector)
        part->vector->bits.kernel->has(&part->vector->bits, column, n, found);
    for (size_t i = 0; !part->vector && i < n; i++)
        found[i] = table_get(&part->table, column[i].a) != 0;
}

/* One batch of records, and those of them that no layer has so far. */
struct query_batch {
    const struct set *s;
    const struct record_query *q;
    const tamis_digest *records;
    uint8_t who[BATCH];
    size_t n;
};

void records_column(const struct set *s, const tamis_digest *records, const struct layer *layer,
                    uint32_t part, const uint8_t *who, size_t n, tamis_digest *column)
{
    uint32_t p = s->stack->form->attributes;
    size_t i = 0;
    do
        column[i] = part_digest(s, layer, part, records + (size_t)who[i] * p);
    while (++i < n);
}

/* Prefetches the lines of the first part in every layer at once. Published values differ between
   layers. */
static void batch_prefetch(const struct query_batch *b, const struct layers *layers, uint32_t n)
{
    tamis_digest column[BATCH];
    uint32_t first = b->q->part[0];
    if (first >= b->s->stack->form->attributes && b->s->stack->form->value != TAMIS_VERIFY_MIXED)
        return;
    records_column(b->s, b->records, layers->l[0], first, b->who, b->n, column);
    for (uint32_t j = n; j-- > 0;)
        part_prefetch(&layers->l[j]->part[first], column, b->n);
}

size_t records_keep(const struct set *s, const tamis_digest *records, const struct layer *layer,
                    uint32_t part, bool fetch, uint8_t *who, size_t n)
{
    tamis_digest column[BATCH];
    uint8_t has[BATCH];
    size_t kept = 0;
    records_column(s, records, layer, part, who, n, column);
    if (fetch)
        part_prefetch(&layer->part[part], column, n);
    part_has(&layer->part[part], column, n, has);
    for (size_t i = 0; i < n; i++) {
        who[kept] = who[i];
        kept += has[i];
    }
    return kept;
}

/* Sets found for the records that the layer has, and removes them from the batch. When few
   passed the first part there is little to overlap in the others, so their lines are prefetched
   all at once. */
static void batch_layer(struct query_batch *b, const struct layer *layer, uint8_t *found)
{
    tamis_digest column[BATCH];
    uint8_t left[BATCH];
    size_t n = b->n, kept = 0;
    memcpy(left, b->who, n);
    n = records_keep(b->s, b->records, layer, b->q->part[0], false, left, n);
    bool few = n <= FEW;
    for (uint32_t j = 1; j < b->q->n && n && few; j++) {
        records_column(b->s, b->records, layer, b->q->part[j], left, n, column);
        part_prefetch(&layer->part[b->q->part[j]], column, n);
    }
    for (uint32_t j = 1; j < b->q->n && n; j++)
        n = records_keep(b->s, b->records, layer, b->q->part[j], !few, left, n);
    for (size_t i = 0; i < n; i++)
        found[left[i]] = 1;
    for (size_t i = 0; i < b->n && n; i++) {
        b->who[kept] = b->who[i];
        kept += !found[b->who[i]];
    }
    b->n = n ? kept : b->n;
}

void records_bits_have(const struct set *s, uint64_t mask, const tamis_digest *records, size_t n,
                       uint8_t *found)
{
    struct record_query q;
    uint32_t p = s->stack->form->attributes;
    question_of(s, mask, &q);
    memset(found, 0, n);
    const struct layers *layers = set_layers(s);
    uint32_t count = layers_count(layers);
    for (size_t done = 0; done < n; done += BATCH) {
        struct query_batch b = {.s = s, .q = &q, .records = records + done * p};
        b.n = n - done < BATCH ? n - done : BATCH;
        for (size_t i = 0; i < b.n; i++)
            b.who[i] = (uint8_t)i;
        batch_prefetch(&b, layers, count);
        for (uint32_t j = count; j-- > 0 && b.n;)
            batch_layer(&b, layers->l[j], found + done);
    }
}

void tamis_records_has_many(const tamis_records *x, uint64_t mask, const tamis_digest *records,
                            size_t n, uint8_t *found)
{
    const struct set *s = &x->set;
    uint64_t inside = s->guarded ? readers_enter() : 0;
    records_bits_have(s, form_mask_of(s->stack->form, mask), records, n, found);
    if (s->guarded)
        readers_leave(inside);
}

bool tamis_records_verifies(const tamis_records *x, uint64_t mask)
{
    const struct record_form *form = x->set.stack->form;
    mask = form_mask_of(form, mask);
    if ((mask & (mask - 1)) == 0)
        return true;
    for (uint32_t i = 0; i < form->verifiers; i++)
        if (form->masks[i] == mask)
            return true;
    return false;
}

tamis_answer tamis_records_has(const tamis_records *x, const tamis_key *record, uint64_t mask)
{
    tamis_digest digests[TAMIS_ATTRIBUTES_MAX] = {{0, 0}};
    uint8_t found;
    mask = form_mask_of(x->set.stack->form, mask);
    for (uint64_t left = mask; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        digests[i] = tamis_records_digest(x, i, record[i]);
    }
    tamis_records_has_many(x, mask, digests, 1, &found);
    return (tamis_answer){found, tamis_records_verifies(x, mask)};
}

/* ---- any of several values ------------------------------------------------------------------- */

/* Searches for a choice of values that one layer has: depth first over the attributes; a
   verifier is tested as soon as all its attributes are chosen. */
struct choice_search {
    const struct set *set;
    const struct layer *layer;
    const tamis_choice *choice[TAMIS_ATTRIBUTES_MAX]; /* those that occur in a verifier */
    uint32_t n;
    uint32_t values[VALUES_MAX];           /* values that the layer has, choice by choice */
    size_t from[TAMIS_ATTRIBUTES_MAX + 1]; /* start of the values of each */
    uint64_t due[TAMIS_ATTRIBUTES_MAX];    /* verifiers to test after each, as bits */
    tamis_digest record[TAMIS_ATTRIBUTES_MAX];
    uint32_t steps;
};

static bool search_due(const struct choice_search *s, uint32_t level)
{
    for (uint64_t due = s->due[level]; due; due &= due - 1) {
        uint32_t part = s->set->stack->form->attributes + (uint32_t)__builtin_ctzll(due);
        tamis_digest digest = part_digest(s->set, s->layer, part, s->record);
        uint8_t found;
        part_has(&s->layer->part[part], &digest, 1, &found);
        if (!found)
            return false;
    }
    return true;
}

/* True if a choice was found, or if there are too many to try. */
static bool search_from(struct choice_search *s, uint32_t level)
{
    if (level == s->n)
        return true;
    for (size_t i = s->from[level]; i < s->from[level + 1]; i++) {
        if (++s->steps > STEPS_MAX)
            return true;
        s->record[s->choice[level]->attribute] = s->choice[level]->values[s->values[i]];
        if (search_due(s, level) && search_from(s, level + 1))
            return true;
    }
    return false;
}

/* Tests the attribute for all values of a choice; keeps those it has, while there is room. */
static bool layer_values(struct choice_search *s, const tamis_choice *choice, bool keep, bool *full)
{
    const struct part *part = &s->layer->part[choice->attribute];
    size_t at = s->from[s->n];
    uint8_t found[BATCH];
    bool any = false;
    for (size_t done = 0; done < choice->n && !(any && !keep); done += BATCH) {
        size_t some = choice->n - done < BATCH ? choice->n - done : BATCH;
        part_prefetch(part, choice->values + done, some);
        part_has(part, choice->values + done, some, found);
        for (size_t i = 0; i < some; i++) {
            any |= found[i];
            if (!found[i] || !keep)
                continue;
            if (at == VALUES_MAX)
                *full = true;
            else
                s->values[at++] = (uint32_t)(done + i);
        }
    }
    if (keep) {
        s->choice[s->n++] = choice;
        s->from[s->n] = at;
    }
    return any;
}

enum layer_found { FOUND_NONE, FOUND_PARTS, FOUND_CHOICE };

/* `about`: attributes of the verifiers that the query contains, whose bits are in `verifiers`. */
static enum layer_found layer_ask(struct choice_search *s, const tamis_choice *choices, size_t n,
                                  uint64_t about, uint64_t verifiers)
{
    bool full = false;
    s->n = 0;
    s->steps = 0;
    s->from[0] = 0;
    for (size_t i = 0; i < n; i++) {
        bool keep = about >> choices[i].attribute & 1;
        if (!layer_values(s, &choices[i], keep, &full))
            return FOUND_NONE;
    }
    if (full)
        return FOUND_PARTS;
    uint64_t chosen = 0;
    for (uint32_t level = 0; level < s->n; level++) {
        chosen |= UINT64_C(1) << s->choice[level]->attribute;
        s->due[level] = 0;
        for (uint64_t v = verifiers; v; v &= v - 1) {
            uint64_t mask = s->set->stack->form->masks[__builtin_ctzll(v)];
            if ((mask & ~chosen) == 0 && mask >> s->choice[level]->attribute & 1)
                s->due[level] |= v & -v;
        }
    }
    if (!search_from(s, 0))
        return FOUND_NONE;
    return s->steps > STEPS_MAX ? FOUND_PARTS : FOUND_CHOICE;
}

static tamis_error choices_mask(const struct set *s, const tamis_choice *choices, size_t n,
                                uint64_t *mask, tamis_reason *reason)
{
    *mask = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t attribute = choices[i].attribute;
        if (attribute >= s->stack->form->attributes || choices[i].n > UINT32_MAX)
            return fail(reason, TAMIS_EARG, "there is no attribute %u, or too many values of it",
                        attribute);
        if (*mask >> attribute & 1)
            return fail(reason, TAMIS_EARG, "attribute %.100s is queried twice",
                        form_name(s->stack->form, attribute));
        *mask |= UINT64_C(1) << attribute;
    }
    return n ? TAMIS_OK : fail(reason, TAMIS_EARG, "the query names no attribute");
}

tamis_error tamis_records_ask(const tamis_records *x, const tamis_choice *choices, size_t n,
                              tamis_answer *answer, tamis_reason *reason)
{
    const struct set *s = &x->set;
    uint64_t mask, about = 0, verifiers = 0;
    tamis_error e = choices_mask(s, choices, n, &mask, reason);
    if (e != TAMIS_OK)
        return e;
    for (uint32_t i = 0; i < s->stack->form->verifiers; i++)
        if ((s->stack->form->masks[i] & ~mask) == 0) {
            verifiers |= UINT64_C(1) << i;
            about |= s->stack->form->masks[i];
        }
    uint64_t inside = s->guarded ? readers_enter() : 0;
    const struct layers *layers = set_layers(s);
    enum layer_found best = FOUND_NONE;
    struct choice_search search = {.set = s};
    for (uint32_t i = layers_count(layers); i-- > 0 && best != FOUND_CHOICE;) {
        search.layer = layers->l[i];
        enum layer_found found = layer_ask(&search, choices, n, about, verifiers);
        best = found > best ? found : best;
    }
    if (s->guarded)
        readers_leave(inside);
    answer->maybe = best != FOUND_NONE;
    answer->verified = best != FOUND_PARTS && tamis_records_verifies(x, mask);
    return TAMIS_OK;
}
