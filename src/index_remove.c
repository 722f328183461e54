/* Removing records: the places of pending.h are the layers, and a key is a digest an attribute. */
#include "index.h"

static uint32_t index_spots(const void *owner, uint32_t id, const tamis_digest *key,
                            struct spot *out)
{
    struct layer *layer = index_layer_by_id(owner, id);
    return layer ? index_layer_spots(owner, layer, key, out) : 0;
}

static void index_erase(void *owner, uint32_t id, const tamis_digest *key, uint64_t copies)
{
    tamis_index *x = owner;
    struct layer *layer = index_layer_by_id(x, id);
    struct spot spots[SPOTS_MAX];
    uint32_t n = index_layer_spots(x, layer, key, spots);
    bool cleared = false;
    for (uint32_t i = 0; i < n; i++) {
        if (spots[i].vector) {
            uint64_t ones = spots[i].vector->ones;
            vector_erase(spots[i].vector, spots[i].digest, copies);
            cleared |= spots[i].vector->ones < ones;
        } else {
            cleared |= table_sub(spots[i].table, spots[i].digest.a, copies) == 0;
        }
    }
    copies = min_u64(copies, layer->count);
    layer->count -= copies;
    layer->load -= cleared && layer->load;
    x->stored -= copies;
}

static const struct places index_places = {index_spots, index_erase};

struct removing index_removing(tamis_index *x)
{
    return (struct removing){&x->removals, &x->allocator, &index_places, x};
}

/* After removals: everything goes when all that is stored is pending; empty layers go. */
static void tidy(tamis_index *x)
{
    struct removing w = index_removing(x);
    pending_settle(&w);
    if (x->stored == atomic_load(&x->removals.total)) {
        index_empty(x);
        return;
    }
    const struct layers *layers = index_layers(x);
    for (uint32_t i = layers_count(layers); i-- > 0 && layers_count(layers) > 1;)
        if (layers->l[i]->count == 0)
            index_drop(x, i);
}

uint32_t index_matches(const tamis_index *x, const tamis_digest *record, uint32_t *ids)
{
    const struct layers *layers = index_layers(x);
    struct spot spots[SPOTS_MAX];
    uint32_t found = 0;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        uint32_t n = index_layer_spots(x, layers->l[i], record, spots), j = n;
        if (spot_has(&spots[n - 1]))
            spots_prefetch(spots, n);
        while (j && spot_has(&spots[j - 1]) && spot_copies(&spots[j - 1]))
            j--; /* verifiers first */
        if (j == 0)
            ids[found++] = layers->l[i]->id;
    }
    return found;
}

static tamis_removed remove_again(tamis_index *x, const struct removing *w, uint32_t entry,
                                  const tamis_digest *record)
{
    if (!pending_again(w, entry))
        return TAMIS_ABSENT;
    tidy(x);
    return pending_find(&x->removals, record) != NONE ? TAMIS_PENDING : TAMIS_REMOVED;
}

static tamis_error remove_one(tamis_index *x, const tamis_digest *record, tamis_removed *outcome)
{
    struct removing w = index_removing(x);
    uint32_t few[64], *ids = few, room = layers_count(index_layers(x));
    tamis_error e = TAMIS_OK;
    pending_settle(&w); /* what adds cancelled goes */
    uint32_t entry = pending_find(&x->removals, record);
    if (entry != NONE) {
        *outcome = remove_again(x, &w, entry, record);
        return TAMIS_OK;
    }
    if (room > 64 && !(ids = mem_new(&x->allocator, room, sizeof *ids)))
        return TAMIS_ENOMEM;
    uint32_t n = index_matches(x, record, ids);
    *outcome = n == 0 ? TAMIS_ABSENT : n == 1 ? TAMIS_REMOVED : TAMIS_PENDING;
    if (n == 1)
        pending_erase(&w, ids[0], record, 1);
    else if (n > 1)
        e = pending_remember(&w, record, 1, ids, n, false);
    if (ids != few)
        mem_free(&x->allocator, ids, room, sizeof *ids);
    if (e == TAMIS_OK && n > 0) {
        tidy(x);
        if (n > 1 && pending_find(&x->removals, record) == NONE)
            *outcome = TAMIS_REMOVED;
    }
    return e;
}

tamis_error tamis_index_remove_many(tamis_index *x, const tamis_digest *records, size_t n,
                                    uint8_t *outcomes, size_t *done)
{
    tamis_error e = !x->set.grow.deletable ? TAMIS_EKIND : index_writable(x);
    size_t i = 0;
    while (e == TAMIS_OK && i < n) {
        tamis_removed outcome = TAMIS_ABSENT;
        e = remove_one(x, records + i * x->set.attributes, &outcome);
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

tamis_error tamis_index_remove(tamis_index *x, const tamis_key *record, tamis_removed *outcome)
{
    tamis_digest digests[TAMIS_ATTRIBUTES_MAX];
    uint8_t result = TAMIS_ABSENT;
    tamis_index_digest_many(x, record, 1, digests);
    tamis_error e = tamis_index_remove_many(x, digests, 1, &result, NULL);
    if (outcome)
        *outcome = (tamis_removed)result;
    return e;
}
