/*
 * Pending removals in bytes, for filters and indexes alike: an entry has the digests of its key (one,
 * or one for each attribute), copies, whether it hides the key, and how many candidates it has; the
 * candidates of all entries are a section of their own.
 */
#include "format.h"

#include <stdlib.h>

#include "err.h"

static size_t entry_len(const struct head *head)
{
    return 16 * (size_t)head->digests + 16;
}

bool pending_section(const struct head *head, uint32_t type, uint64_t *len)
{
    *len = type == SECTION_PENDING ? entry_len(head) * head->pending : 4 * head->candidates;
    return (type == SECTION_PENDING || type == SECTION_CANDIDATES) && head->pending;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The next candidate from *at on that is still a place. */
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
        if (x->key[i].a != y->key[i].a)
            return x->key[i].a < y->key[i].a ? -1 : 1;
        if (x->key[i].b != y->key[i].b)
            return x->key[i].b < y->key[i].b ? -1 : 1;
    }
    return 0;
}

tamis_error pending_list_make(struct pending_list *out, const struct set *s)
{
    const tamis_allocator *a = &s->allocator;
    const struct removals *r = &s->removals;
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
    mem_free(&list->set->allocator, list->list, list->set->removals.used, sizeof *list->list);
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

void pending_put(const struct pending_list *list, struct writer *w)
{
    const struct removals *r = &list->set->removals;
    for (uint64_t i = 0; i < list->n; i++) {
        const struct pending *p = list->list[i];
        uint8_t rest[16];
        put(w, removals_key(r, (uint32_t)(p - r->entries)), r->width * sizeof(tamis_digest));
        put_u64(rest, atomic_load(&p->copies));
        put_u32(rest + 8, p->hides);
        put_u32(rest + 12, count_candidates(list, p));
        put(w, rest, sizeof rest);
    }
}

void pending_put_candidates(const struct pending_list *list, struct writer *w)
{
    for (uint64_t i = 0; i < list->n; i++)
        for (uint32_t at = 0; next_candidate(list, list->list[i], &at); at++) {
            uint8_t bytes[4];
            put_u32(bytes, list->list[i]->candidates[at]);
            put(w, bytes, sizeof bytes);
        }
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const char *entry_wrong(const struct head *head, const uint8_t *rest,
                               const uint8_t *candidates, uint64_t left)
{
    uint32_t n = get_u32(rest + 12);
    if (n > left / 4)
        return "more candidates than there are";
    if (get_u64(rest) == 0 || n == 0 || n > head->n)
        return "nothing to remove";
    if (get_u32(rest + 8) > (head->set.unique ? 1u : 0u))
        return "only unique filters hide keys";
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = get_u32(candidates + 4 * (size_t)i);
        if (head_find(head, id) == head->n || (i && id <= get_u32(candidates + 4 * (size_t)i - 4)))
            return "its candidates are not vectors in order";
    }
    return NULL;
}

/* Is the key of the entry larger than that of the one before it? */
static bool key_rises(const struct head *head, const uint8_t *entry)
{
    const uint8_t *before = entry - entry_len(head);
    for (uint32_t i = 0; i < 2 * head->digests; i++) {
        uint64_t x = get_u64(before + 8 * (size_t)i), y = get_u64(entry + 8 * (size_t)i);
        if (x != y)
            return x < y;
    }
    return false;
}

tamis_error pending_check(const struct container *c, const struct head *head, tamis_reason *reason)
{
    uint64_t len, candidates_len, used = 0, copies = 0;
    const uint8_t *entries = container_find(c, SECTION_PENDING, 0, &len);
    const uint8_t *candidates = container_find(c, SECTION_CANDIDATES, 0, &candidates_len);
    for (uint64_t i = 0; i < head->pending; i++) {
        const uint8_t *entry = entries + entry_len(head) * i;
        const uint8_t *rest = entry + 16 * (size_t)head->digests;
        const char *wrong = entry_wrong(head, rest, candidates + used, candidates_len - used);
        if (!wrong && i && !key_rises(head, entry))
            wrong = "not in order";
        if (!wrong && __builtin_add_overflow(copies, get_u64(rest), &copies))
            wrong = "too many copies";
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, container_offset(c, entry),
                           "pending removal %llu: %s", (unsigned long long)i, wrong);
        used += 4 * (uint64_t)get_u32(rest + 12);
    }
    if (used != candidates_len || copies != head->copies)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + 224,
                       "the pending removals do not add up to their number");
    return TAMIS_OK;
}

tamis_error pending_check_mapped(const struct container *c, const struct head *head,
                                 tamis_reason *reason)
{
    static const uint32_t types[] = {SECTION_PENDING, SECTION_CANDIDATES};
    for (unsigned i = 0; head->pending && i < 2; i++) {
        uint64_t len, at = (uint64_t)(container_find(c, types[i], 0, &len) - c->data);
        tamis_error e = container_verify(c, at, at + len, reason);
        if (e != TAMIS_OK)
            return e;
    }
    return pending_check(c, head, reason);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What a candidate takes in bytes says little about what it takes in memory, above all in patches,
   where those that are alike cost next to nothing. No structure has more to watch than this. */
#define WATCH_FACTOR 4096
#define WATCH_BYTES  ((uint64_t)64 << 20)

size_t probes_for(uint64_t len)
{
    uint64_t bytes = len > UINT64_MAX / (2 * WATCH_FACTOR) ? UINT64_MAX / 2 : len * WATCH_FACTOR;
    return (size_t)((bytes + WATCH_BYTES) / (sizeof(struct watch) + sizeof(uint32_t)));
}

const char *load_wrong(tamis_error e)
{
    return e == TAMIS_ELIMIT ? "its pending removals take more memory than so many bytes can mean"
                             : "no memory for it";
}

tamis_error pending_load(const struct container *c, const struct head *head, struct set *s)
{
    uint64_t len, candidates_len;
    const uint8_t *entries = container_find(c, SECTION_PENDING, 0, &len);
    const uint8_t *candidates = container_find(c, SECTION_CANDIDATES, 0, &candidates_len);
    size_t key_len = head->digests * sizeof(tamis_digest);
    uint32_t *ids = mem_new(&s->allocator, head->n, sizeof *ids);
    tamis_error e = ids ? TAMIS_OK : TAMIS_ENOMEM;
    s->removals.probes_max = probes_for(c->len);
    for (uint64_t i = 0; e == TAMIS_OK && i < head->pending; i++) {
        const uint8_t *entry = entries + entry_len(head) * i, *rest = entry + key_len;
        tamis_digest key[TAMIS_ATTRIBUTES_MAX];
        uint32_t n = get_u32(rest + 12);
        memcpy(key, entry, key_len);
        memcpy(ids, candidates, n * sizeof *ids);
        candidates += n * sizeof *ids;
        e = pending_remember(s, key, get_u64(rest), ids, n, get_u32(rest + 8));
    }
    mem_free(&s->allocator, ids, head->n, sizeof *ids);
    s->removals.probes_max = 0;
    return e;
}
