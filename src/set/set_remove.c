/* Removes keys and records: from the layer that has them, or remembered until one layer is left
   (pending.h). Then drops what has become empty. */
#include "set.h"

uint32_t candidate_spots(const struct set *s, uint32_t id, const tamis_digest *key,
                         struct spot *out)
{
    struct layer *layer = set_layer_by_id(s, id);
    return layer ? layer_spots(s, layer, key, out) : 0;
}

void candidate_erase(struct set *s, uint32_t id, const tamis_digest *key, uint64_t copies)
{
    struct stack *stack = s->stack;
    uint32_t index = set_index_of(s, id);
    struct layer *layer = set_layers(s)->l[index];
    struct spot spots[SPOTS_MAX];
    uint64_t before = layer_count(s, layer);
    bool cleared = false;
    for (uint32_t n = layer_spots(s, layer, key, spots), i = 0; i < n; i++) {
        struct vector *v = spots[i].vector;
        uint64_t ones = v ? v->ones : 0;
        if (v)
            vector_erase(v, spots[i].digest, copies);
        cleared |= v ? v->ones < ones : table_sub(spots[i].table, spots[i].digest.a, copies) == 0;
    }
    layer->count -= min_u64(copies, layer->count);
    layer->load -= cleared && layer->load;
    uint64_t after = layer_count(s, layer);
    stack->stored -= before - after;
    stack->tidy_till = after ? stack->tidy_till - min_u64(stack->tidy_till, copies) : 0;
    if (index < stack->open) /* there may be room again */
        stack->open = index;
}

bool set_hides(const struct set *s, const tamis_digest *key)
{
    uint32_t entry = pending_find(&s->stack->more->removals, key);
    return entry != NO_ENTRY && s->stack->more->removals.entries[entry].hides &&
           atomic_load(&s->stack->more->removals.entries[entry].copies) > 0;
}

/* A removal tests at most this many pairs of vectors (all pairs of a thousand) and drops at most this many empty layers.
   Usually there is one; forged bytes may have more, and the rest waits for the next removal. */
#define PAIRS_TESTED (UINT64_C(1) << 19)
#define EMPTIES      64

/* After removals: drops everything if all that is stored is pending, drops empty layers, and unites
   vectors of a dynamic filter that fit into one. */
static void tidy(struct set *s)
{
    bool changed = true;
    unsigned dropped = 0;
    while (changed) {
        pending_settle(s);
        changed = false;
        if (s->stack->stored == atomic_load(&s->stack->more->removals.total)) {
            set_empty(s);
            return;
        }
        if (s->stack->tidy_till)
            return;
        const struct layers *layers = set_layers(s);
        dropped = 0;
        for (uint32_t i = layers_count(layers); i-- > 0 && layers_count(layers) > 1;)
            if (layer_count(s, layers->l[i]) == 0 && dropped++ < EMPTIES)
                set_drop(s, i);
        if (set_sliced(s))
            set_merge_pairs(s, PAIRS_TESTED,
                            &changed); /* if there is no memory: at a later removal */
    }
    if (dropped <= EMPTIES)
        s->stack->tidy_till = set_sliced(s) ? set_pair_distance(s) : UINT64_MAX;
    pending_settle(s);
}

/* Tests verifiers first: one of them rejects nearly everything that is absent. */
static bool layer_may_store(const struct set *s, struct layer *layer, const tamis_digest *key)
{
    struct spot spots[SPOTS_MAX];
    uint32_t n = layer_spots(s, layer, key, spots);
    if (spot_has(&spots[n - 1]))
        spots_prefetch(spots, n);
    while (n && spot_has(&spots[n - 1]) && spot_copies(&spots[n - 1]))
        n--;
    return n == 0;
}

uint32_t set_matches(const struct set *s, const tamis_digest *key, uint32_t *ids)
{
    const struct layers *layers = set_layers(s);
    struct match match;
    uint32_t n = 0;
    if (!s->stack->form && !set_match(s, *key, &match))
        return 0;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        if (s->stack->form ? layer_may_store(s, layers->l[i], key)
                           : match_has(&match, layers->v[i]) && vector_copies(layers->v[i], *key))
            ids[n++] = layers->l[i]->id;
    return n;
}

/* Is the removal settled now? */
static tamis_removed outcome_of(struct set *s, const tamis_digest *key)
{
    tidy(s);
    return pending_find(&s->stack->more->removals, key) != NO_ENTRY ? TAMIS_PENDING : TAMIS_REMOVED;
}

static tamis_error remove_one(struct set *s, const tamis_digest *key, tamis_removed *outcome)
{
    uint32_t few[64], *ids = few, room = layers_count(set_layers(s));
    struct removals *removals = &s->stack->more->removals;
    tamis_error e = TAMIS_OK;
    if (removals->queued)
        pending_settle(s); /* removes entries that adds have cancelled */
    uint32_t entry = pending_find(removals, key);
    if (entry != NO_ENTRY) {
        *outcome = pending_again(s, entry) ? outcome_of(s, key) : TAMIS_ABSENT;
        return TAMIS_OK;
    }
    if (room > 64 && !(ids = mem_new(set_allocator(s), room, sizeof *ids)))
        return TAMIS_ENOMEM;
    uint32_t n = set_matches(s, key, ids);
    if (n == 1)
        pending_erase(s, ids[0], key, 1);
    else if (n > 1)
        e = pending_remember(s, key, 1, ids, n, set_opt(s)->unique);
    if (ids != few)
        mem_free(set_allocator(s), ids, room, sizeof *ids);
    if (e == TAMIS_OK)
        *outcome = n ? outcome_of(s, key) : TAMIS_ABSENT;
    return e;
}

static tamis_error remove_many(struct set *s, const tamis_digest *keys, size_t n, uint8_t *outcomes,
                               size_t *done)
{
    tamis_error e = !set_opt(s)->deletable ? TAMIS_EKIND : set_writable(s);
    size_t i = 0;
    if (e == TAMIS_OK && set_lines(s)) {
        smooth_remove(s, keys, n, outcomes);
        i = n;
    }
    while (e == TAMIS_OK && i < n) {
        tamis_removed outcome;
        if (!s->stack->form && i % BATCH == 0)
            filter_fetch(s, keys + i, min_u64(n - i, BATCH));
        e = remove_one(s, keys + i * set_width(s), &outcome);
        if (e != TAMIS_OK)
            break;
        if (outcomes)
            outcomes[i] = (uint8_t)outcome;
        i++;
    }
    if (done)
        *done = i;
    return e;
}

tamis_error tamis_filter_remove_many(tamis_filter *f, const tamis_digest *digests, size_t n,
                                     uint8_t *outcomes, size_t *done)
{
    return remove_many(&f->set, digests, n, outcomes, done);
}

tamis_error tamis_records_remove_many(tamis_records *x, const tamis_digest *records, size_t n,
                                      uint8_t *outcomes, size_t *done)
{
    return remove_many(&x->set, records, n, outcomes, done);
}

tamis_error tamis_filter_remove(tamis_filter *f, const void *key, size_t len,
                                tamis_removed *outcome)
{
    tamis_digest digest = family_digest(set_family(&f->set), key, len);
    uint8_t result = TAMIS_ABSENT;
    tamis_error e = remove_many(&f->set, &digest, 1, &result, NULL);
    if (outcome)
        *outcome = (tamis_removed)result;
    return e;
}

uint64_t tamis_filter_count(const tamis_filter *f, const void *key, size_t len)
{
    const struct set *s = &f->set;
    const struct layers *layers = set_layers(s);
    tamis_digest digest = family_digest(set_family(s), key, len);
    struct match match;
    uint64_t copies = 0;
    if (!set_opt(s)->deletable || !set_counted(s))
        return tamis_filter_has(f, key, len);
    if (set_lines(s))
        return lines_count(set_lines(s), digest);
    if (!set_match(s, digest, &match))
        return 0;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        if (match_has(&match, layers->v[i]))
            copies += vector_copies(layers->v[i], digest);
    uint32_t entry = pending_find(&s->stack->more->removals, &digest);
    uint64_t gone =
        entry == NO_ENTRY ? 0 : atomic_load(&s->stack->more->removals.entries[entry].copies);
    return copies - min_u64(gone, copies);
}

tamis_error tamis_records_remove(tamis_records *x, const tamis_key *record, tamis_removed *outcome)
{
    tamis_digest digests[TAMIS_ATTRIBUTES_MAX];
    uint8_t result = TAMIS_ABSENT;
    tamis_records_digest_many(x, record, 1, digests);
    tamis_error e = remove_many(&x->set, digests, 1, &result, NULL);
    if (outcome)
        *outcome = (tamis_removed)result;
    return e;
}
