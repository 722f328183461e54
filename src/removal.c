/* See removal.h. */
#include "removal.h"

#include "filter.h"

/* ---- the vectors of a filter as places ------------------------------------------------------- */

static uint32_t filter_spots(const void *owner, uint32_t id, const tamis_digest *key,
                             struct spot *out)
{
    out->vector = filter_vector_by_id(owner, id);
    out->table = NULL;
    out->digest = *key;
    return out->vector != NULL;
}

static void filter_erase(void *owner, uint32_t id, const tamis_digest *key, uint64_t copies)
{
    tamis_filter *f = owner;
    uint32_t place = filter_place_of(f, id);
    struct vector *v = filter_stack(f)->v[place];
    uint64_t before = v->count;
    vector_erase(v, *key, copies);
    f->stored -= before - v->count;
    f->tidy_till = v->count ? f->tidy_till - min_u64(f->tidy_till, copies) : 0;
    if (place < f->open) /* there may be room again */
        f->open = place;
}

static const struct places filter_places = {filter_spots, filter_erase};

struct removing filter_removing(tamis_filter *f)
{
    return (struct removing){&f->removals, &f->allocator, &filter_places, f};
}

bool removals_hide(const struct removals *r, tamis_digest digest)
{
    uint32_t entry = pending_find(r, &digest);
    return entry != NONE && r->entries[entry].hides && atomic_load(&r->entries[entry].copies) > 0;
}

bool removals_cancel(struct removals *r, tamis_digest digest)
{
    return pending_cancel(r, &digest);
}

tamis_error removals_remember(tamis_filter *f, tamis_digest digest, uint64_t copies,
                              const uint32_t *candidates, uint32_t n, bool hides)
{
    struct removing w = filter_removing(f);
    return pending_remember(&w, &digest, copies, candidates, n, hides);
}

void removals_rename(tamis_filter *f, uint32_t from, uint32_t to)
{
    struct removing w = filter_removing(f);
    pending_rename(&w, from, to);
}

tamis_error removals_rebuild(tamis_filter *f)
{
    struct removing w = filter_removing(f);
    return pending_rebuild(&w);
}

/* ---- the operations -------------------------------------------------------------------------- */

/* A removal looks at so many pairs of vectors (at all of a thousand vectors), and drops so many that
   are empty. There is one at a time, unless someone made the bytes; what is left waits for the next. */
#define PAIRS   (UINT64_C(1) << 19)
#define EMPTIES 64

/* After removals: everything goes when all that is stored is pending; empty vectors go; vectors of a
   dynamic filter that fit into one are united. */
static void tidy(tamis_filter *f)
{
    struct removing w = filter_removing(f);
    bool changed = true;
    unsigned dropped = 0;
    while (changed) {
        pending_settle(&w);
        changed = false;
        if (f->stored == atomic_load(&f->removals.total)) {
            filter_empty(f);
            return;
        }
        if (f->tidy_till)
            return;
        struct stack *stack = filter_stack(f);
        dropped = 0;
        for (uint32_t i = stack_count(stack); i-- > 0 && stack_count(stack) > 1;)
            if (stack->v[i]->count == 0 && dropped++ < EMPTIES)
                filter_drop(f, i);
        if (f->set.growth == TAMIS_DYNAMIC)
            filter_merge_pairs(f, PAIRS, &changed); /* without memory: another time */
    }
    if (dropped <= EMPTIES)
        f->tidy_till = f->set.growth == TAMIS_DYNAMIC ? filter_pair_distance(f) : UINT64_MAX;
    pending_settle(&w);
}

/* The ids of the vectors that may store the digest; room for all of them. */
static uint32_t matches(const tamis_filter *f, tamis_digest digest, uint32_t *ids)
{
    const struct stack *stack = filter_stack(f);
    struct match match;
    uint32_t n = 0;
    if (!filter_match(f, digest, &match))
        return 0;
    for (uint32_t i = 0; i < stack_count(stack); i++)
        if (match_has(&match, stack->v[i]) && vector_copies(stack->v[i], digest))
            ids[n++] = stack->v[i]->id;
    return n;
}

/* A removal of a key that is pending already. */
static void remove_again(tamis_filter *f, const struct removing *w, uint32_t entry,
                         tamis_digest digest, tamis_removed *outcome)
{
    *outcome = TAMIS_ABSENT;
    if (!pending_again(w, entry))
        return;
    tidy(f);
    *outcome = pending_find(&f->removals, &digest) != NONE ? TAMIS_PENDING : TAMIS_REMOVED;
}

tamis_error filter_remove_one(tamis_filter *f, tamis_digest digest, tamis_removed *outcome)
{
    struct removing w = filter_removing(f);
    uint32_t few[64], *ids = few, room = stack_count(filter_stack(f));
    tamis_error e = TAMIS_OK;
    pending_settle(&w); /* what adds cancelled goes */
    uint32_t entry = pending_find(&f->removals, &digest);
    if (entry != NONE) {
        remove_again(f, &w, entry, digest, outcome);
        return TAMIS_OK;
    }
    if (room > 64 && !(ids = mem_new(&f->allocator, room, sizeof *ids)))
        return TAMIS_ENOMEM;
    uint32_t n = matches(f, digest, ids);
    *outcome = n == 0 ? TAMIS_ABSENT : n == 1 ? TAMIS_REMOVED : TAMIS_PENDING;
    if (n == 1)
        pending_erase(&w, ids[0], &digest, 1);
    else if (n > 1)
        e = pending_remember(&w, &digest, 1, ids, n, f->set.unique);
    if (ids != few)
        mem_free(&f->allocator, ids, room, sizeof *ids);
    if (e == TAMIS_OK && n > 0) {
        tidy(f);
        if (n > 1 && pending_find(&f->removals, &digest) == NONE)
            *outcome = TAMIS_REMOVED;
    }
    return e;
}

tamis_error tamis_filter_remove_many(tamis_filter *f, const tamis_digest *digests, size_t n,
                                     uint8_t *outcomes, size_t *done)
{
    tamis_error e = !f->set.deletable ? TAMIS_EKIND : filter_writable(f);
    size_t i = 0;
    for (; e == TAMIS_OK && i < n; i++) {
        tamis_removed outcome;
        if (i % BATCH == 0)
            filter_fetch(f, digests + i, min_u64(n - i, BATCH));
        e = filter_remove_one(f, digests[i], &outcome);
        if (e == TAMIS_OK && outcomes)
            outcomes[i] = (uint8_t)outcome;
    }
    if (done)
        *done = e == TAMIS_OK || i == 0 ? i : i - 1;
    return e;
}

tamis_error tamis_filter_remove(tamis_filter *f, const void *key, size_t len,
                                tamis_removed *outcome)
{
    tamis_digest digest = family_digest(&f->family, key, len);
    uint8_t result = TAMIS_ABSENT;
    tamis_error e = tamis_filter_remove_many(f, &digest, 1, &result, NULL);
    if (outcome)
        *outcome = (tamis_removed)result;
    return e;
}
