/*
 * The encoding of pending removals of filters and records: an entry has the digests of its key
 * (one, or one per attribute), the number of copies, whether it hides the key, and its number of
 * candidates; the candidates of all entries are a separate section.
 */
#include "format.h"

#include <stdlib.h>

#include "base/err.h"

/* ---- writing --------------------------------------------------------------------------------- */

/* The next candidate from *at on that is still a layer. */
static bool next_candidate(const struct pending_list *list, const struct pending *p, uint32_t *at)
{
    while (*at < p->n && !set_layer_by_id(list->set, p->candidates[*at]))
        ++*at;
    return *at < p->n;
}

static uint32_t count_candidates(const struct pending_list *list, const struct pending *p)
{
    uint32_t n = 0;
    for (uint32_t at = 0; next_candidate(list, p, &at); at++)
        n++;
    return n;
}

struct sortable {
    const tamis_digest *key;
    const struct pending *pending;
    uint32_t digests;
};

static int key_order(const void *left, const void *right)
{
    const struct sortable *x = left, *y = right;
    for (uint32_t i = 0; i < x->digests; i++) {
        int order = ORDER(x->key[i].a, y->key[i].a, ORDER(x->key[i].b, y->key[i].b, 0));
        if (order)
            return order;
    }
    return 0;
}

tamis_error pending_list_make(struct pending_list *out, const struct set *s)
{
    const tamis_allocator *a = set_allocator(s);
    const struct removals *r = &s->stack->more->removals;
    *out = (struct pending_list){.set = s};
    if (r->used == 0)
        return TAMIS_OK;
    struct sortable *found = mem_new(a, r->used, sizeof *found);
    out->list = found ? mem_new(a, r->used, sizeof *out->list) : NULL;
    for (uint32_t i = 0; out->list && i < r->room; i++) {
        const struct pending *p = removals_entry(r, i);
        uint32_t first = 0;
        if (p && atomic_load(&p->copies) && next_candidate(out, p, &first))
            found[out->n++] = (struct sortable){removals_key(r, i), p, r->width};
    }
    if (out->list)
        qsort(found, out->n, sizeof *found, key_order);
    for (uint64_t i = 0; i < out->n; i++)
        out->list[i] = found[i].pending;
    mem_free(a, found, r->used, sizeof *found);
    return out->list ? TAMIS_OK : TAMIS_ENOMEM;
}

void pending_list_free(struct pending_list *list)
{
    mem_free(set_allocator(list->set), list->list, list->set->stack->more->removals.used,
             sizeof *list->list);
    list->list = NULL;
}

void pending_list_count(const struct pending_list *list, struct head *head)
{
    head->pending = list->n;
    head->copies = head->candidates = 0;
    for (uint64_t i = 0; i < list->n; i++) {
        head->copies += atomic_load(&list->list[i]->copies);
        head->candidates += count_candidates(list, list->list[i]);
    }
}

void pending_put(const struct pending_list *list, uint8_t *to)
{
    const struct removals *r = &list->set->stack->more->removals;
    size_t key_len = r->width * sizeof(tamis_digest);
    for (uint64_t i = 0; i < list->n; i++, to += PENDING_LEN(r->width)) {
        const struct pending *p = list->list[i];
        memcpy(to, removals_key(r, (uint32_t)(p - r->entries)), key_len);
        put_u64(to + key_len, atomic_load(&p->copies));
        put_u32(to + key_len + 8, p->hides);
        put_u32(to + key_len + 12, count_candidates(list, p));
    }
    for (uint64_t i = 0; i < list->n; i++)
        for (uint32_t at = 0; next_candidate(list, list->list[i], &at); at++, to += 4)
            put_u32(to, list->list[i]->candidates[at]);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* A copy of one entry: in a mapped file it may change until the next read. */
struct pending_entry {
    tamis_digest key[TAMIS_ATTRIBUTES_MAX];
    uint64_t copies;
    uint32_t hides, n;
};

/* The encoded entries in turn. */
struct entries {
    const struct head *head;
    const uint8_t *at, *candidates; /* the next ones */
    uint64_t i, left;               /* entries so far; bytes of candidates left */
    struct pending_entry now, before;
    uint64_t copies;
};

/* The next entry, with its candidates in `ids`, which has room for head->n: returns NULL, or what is wrong. */
static const char *entry_next(struct entries *e, uint32_t *ids)
{
    const struct head *head = e->head;
    size_t key_len = head->digests * sizeof(tamis_digest);
    struct sortable before = {e->before.key, NULL, head->digests};
    struct sortable now = {e->now.key, NULL, head->digests};
    e->before = e->now;
    memcpy(e->now.key, e->at, key_len);
    e->now.copies = fetch_u64(e->at + key_len);
    e->now.hides = fetch_u32(e->at + key_len + 8);
    e->now.n = fetch_u32(e->at + key_len + 12);
    if (e->now.n > e->left / sizeof *ids)
        return "more candidates than there are";
    if (e->now.copies == 0 || e->now.n == 0 || e->now.n > head->n)
        return "nothing to remove";
    if (e->now.hides > (head->set.unique ? 1u : 0u))
        return "only unique filters hide keys";
    size_t len = e->now.n * sizeof *ids;
    memcpy(ids, e->candidates, len);
    for (uint32_t i = 0; i < e->now.n; i++)
        if (head_find(head, ids[i]) == head->n || (i && ids[i] <= ids[i - 1]))
            return "its candidates are not vectors in order";
    if (e->i && key_order(&before, &now) >= 0)
        return "not in order";
    if (__builtin_add_overflow(e->copies, e->now.copies, &e->copies))
        return "too many copies";
    e->at += PENDING_LEN(head->digests);
    e->candidates += len;
    e->left -= len;
    e->i++;
    return NULL;
}

tamis_error pending_take(const struct head *head, const uint8_t *entries, const uint8_t *candidates,
                         uint64_t at, struct set *s, tamis_reason *reason)
{
    const tamis_allocator *a = s ? set_allocator(s) : &mem_system;
    struct entries all = {.head = head, .at = entries, .candidates = candidates};
    all.left = 4 * head->candidates;
    uint32_t *ids = mem_new(a, head->n, sizeof *ids);
    tamis_error e = ids ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory to check it");
    while (e == TAMIS_OK && all.i < head->pending) {
        const char *wrong = entry_next(&all, ids);
        if (wrong)
            e = fail_at(reason, TAMIS_EFORMAT, at + (uint64_t)(all.at - entries),
                        "pending removal %llu: %s", (unsigned long long)all.i, wrong);
        else if (s)
            e = pending_remember(s, all.now.key, all.now.copies, ids, all.now.n, all.now.hides);
    }
    mem_free(a, ids, head->n, sizeof *ids);
    if (e == TAMIS_OK && (all.left || all.copies != head->copies))
        e = fail_at(reason, TAMIS_EFORMAT, BODY_AT + 224,
                    "the pending removals do not add up to their number");
    return e;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The encoded size of a candidate says little about its size in memory, especially in patches,
   where equal candidates cost almost nothing. No structure has more to watch than this. */
#define WATCH_FACTOR 4096
#define WATCH_BYTES  ((uint64_t)64 << 20)

size_t probes_for(uint64_t len)
{
    uint64_t bytes = len > UINT64_MAX / (2 * WATCH_FACTOR) ? UINT64_MAX / 2 : len * WATCH_FACTOR;
    return (size_t)((bytes + WATCH_BYTES) / (sizeof(struct watch) + sizeof(uint32_t)));
}
