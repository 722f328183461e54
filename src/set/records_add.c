/*
 * Adds records. Plain: a record that some layer already has in all its parts is skipped; the others
 * go, in batches, into the first layer that takes them. Deletable: every record counts, and one
 * that a layer appears to have goes there.
 *
 * A batch has the same result as its records one by one: it is split where a layer or a part could
 * become full and where a layer must be created, and the remaining records are queried again.
 */
#include "set.h"

#define COUNTED_AHEAD 3 /* records with counters: each touches about five cache lines per part */

static bool part_full(const struct part *part)
{
    return part->vector && vector_full(part->vector);
}

/* ---- which layer ----------------------------------------------------------------------------- */

static uint64_t layer_room(const struct set *s, const struct layer *layer)
{
    uint64_t load = layer_load(s, layer);
    return layer->capacity > load ? layer->capacity - load : 0;
}

/* A group of records that no layer has, and the number of the layer that each goes to. */
struct record_group {
    const tamis_digest *records;
    uint8_t who[BATCH];
    uint32_t to[BATCH]; /* by the number of the record */
    size_t n;
};

/* Assigns to the layer the unassigned records that it takes: those that set no bit in parts that
   are full. Returns how many it can take before another part becomes full. */
static uint64_t layer_claim(const struct set *s, struct record_group *g, uint32_t number)
{
    const struct layer *layer = set_layers(s)->l[number];
    uint64_t room = layer_room(s, layer);
    uint8_t who[BATCH] = {0};
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        if (g->to[g->who[i]] == NO_ENTRY)
            who[n++] = g->who[i];
    for (uint32_t j = 0; j < layer->parts && n; j++) {
        const struct vector *v = layer->part[j].vector;
        if (part_full(&layer->part[j]))
            n = records_keep(s, g->records, layer, j, false, who, n);
        else if (v)
            room = min_u64(room, v->capacity - v->load);
    }
    for (size_t i = 0; i < n; i++)
        g->to[who[i]] = number;
    return room;
}

/* Finds a layer for the first records of the group; returns how many go to the same one as the first.
   Later records may be present in that layer once these are added. */
static size_t group_place(const struct set *s, struct record_group *g)
{
    const struct layers *layers = set_layers(s);
    const uint32_t *first = &g->to[g->who[0]];
    uint64_t room = growth_room(s);
    size_t placed = 0;
    for (size_t i = 0; i < g->n; i++)
        g->to[g->who[i]] = NO_ENTRY;
    for (uint32_t i = 0; i < layers_count(layers) && room; i++)
        if (layer_room(s, layers->l[i]))
            room = min_u64(room, layer_claim(s, g, i));
    while (*first != NO_ENTRY && placed < g->n && placed < room && g->to[g->who[placed]] == *first)
        placed++;
    return placed;
}

/* Makes room in the tables of a layer for *n more values; or, at the memory limit, for as many
   as fit now. */
static tamis_error layer_reserve(struct set *s, struct layer *layer, size_t *n)
{
    uint64_t limit = s->memory_limit, grows = 0;
    size_t fits = *n;
    for (uint32_t j = set_width(s); j < layer->parts; j++) {
        const struct table *table = &layer->part[j].table;
        if (layer->part[j].vector)
            continue;
        grows += table_growth(table, *n);
        fits = (size_t)min_u64(fits, table_fits(table));
    }
    if (grows && limit && set_bytes(s) + grows > limit) {
        *n = fits;
        return fits ? TAMIS_OK : TAMIS_ESPACE;
    }
    for (uint32_t j = set_width(s); j < layer->parts; j++)
        if (!layer->part[j].vector && !table_reserve(&layer->part[j].table, set_allocator(s), *n))
            return TAMIS_ENOMEM;
    return TAMIS_OK;
}

/* ---- plain ----------------------------------------------------------------------------------- */

static void part_add(struct part *part, const tamis_digest *column, size_t n, uint8_t *fresh)
{
    if (!part->vector) {
        for (size_t i = 0; i < n; i++)
            fresh[i] = table_get(&part->table, column[i].a) == 0 &&
                       table_add(&part->table, column[i].a, 1) == 0;
        return;
    }
    vector_add(part->vector, column, n, fresh);
}

/* Adds the first n of the group; set[i] = one of its bits was not set before. */
static void layer_add(struct set *s, struct layer *layer, const struct record_group *g, size_t n,
                      uint8_t *set)
{
    tamis_digest column[BATCH];
    uint8_t fresh[BATCH];
    memset(set, 0, n);
    for (uint32_t j = 0; j < layer->parts; j++) {
        records_column(s, g->records, layer, j, g->who, n, column);
        part_add(&layer->part[j], column, n, fresh);
        for (size_t i = 0; i < n; i++)
            set[i] |= fresh[i];
    }
    for (size_t i = 0; i < n; i++) {
        layer->load += set[i];
        layer->count += set[i];
        s->stack->stored += set[i];
    }
}

/* Adds as many of the group as go to one layer; one, if that layer had to be created first. */
static tamis_error add_group(struct set *s, struct record_group *g, uint8_t *set, size_t *done)
{
    struct layer *layer;
    tamis_error e = TAMIS_OK;
    size_t n = group_place(s, g);
    *done = 0;
    if (n)
        layer = set_layers(s)->l[g->to[g->who[0]]];
    else
        e = growth_layer(s, growth_room(s) == 0, &layer), n = 1;
    if (e == TAMIS_OK)
        e = layer_reserve(s, layer, &n);
    if (e != TAMIS_OK)
        return e;
    layer_add(s, layer, g, n, set);
    *done = n;
    return TAMIS_OK;
}

/* At most BATCH records. If they alternate between layers, only a few are processed at a time. */
static tamis_error add_plain(struct set *s, const tamis_digest *records, size_t n, uint8_t *fresh,
                             size_t *done)
{
    uint32_t p = s->stack->form->attributes;
    size_t window = BATCH;
    tamis_error e = TAMIS_OK;
    for (*done = 0; e == TAMIS_OK && *done < n;) {
        struct record_group g = {.records = records + *done * p};
        uint8_t present[BATCH], set[BATCH] = {0}, *to = fresh + *done;
        size_t some = n - *done < window ? n - *done : window, added = 0;
        records_bits_have(s, form_mask_all(s->stack->form), g.records, some, present);
        for (size_t i = 0; i < some; i++)
            if (!present[i])
                g.who[g.n++] = (uint8_t)i;
        memset(to, 0, some);
        if (g.n)
            e = add_group(s, &g, set, &added);
        for (size_t i = 0; i < added; i++)
            to[g.who[i]] = set[i];
        *done += added == g.n ? some : g.who[added];
        window = (size_t)min_u64(BATCH, added == g.n ? 2 * window : 2 * added + 2);
    }
    return e;
}

/* ---- deletable ------------------------------------------------------------------------------- */

static bool layer_has(const struct spot *spots, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) /* verifiers first */
        if (!spot_has(&spots[i]))
            return false;
    return true;
}

static bool layer_takes(const struct set *s, const struct layer *layer, const struct spot *spots)
{
    if (layer_room(s, layer) == 0)
        return false;
    for (uint32_t i = 0; i < layer->parts; i++)
        if (part_full(&layer->part[i]) && !spot_has(&spots[i]))
            return false;
    return true;
}

/* The newest layer that has the record, else the oldest that takes it, else NULL; and its spots. */
static struct layer *layer_for(const struct set *s, const tamis_digest *record, struct spot *spots,
                               bool *member)
{
    const struct layers *layers = set_layers(s);
    uint32_t n = layers_count(layers);
    *member = true;
    for (uint32_t i = n; i-- > 0;)
        if (layer_has(spots, layer_spots(s, layers->l[i], record, spots)))
            return layers->l[i];
    *member = false;
    for (uint32_t i = 0; i < n && growth_room(s); i++) {
        layer_spots(s, layers->l[i], record, spots);
        if (layer_takes(s, layers->l[i], spots))
            return layers->l[i];
    }
    return NULL;
}

static uint64_t layer_ones(const struct layer *layer)
{
    uint64_t ones = 0;
    for (uint32_t i = 0; i < layer->parts; i++)
        ones += layer->part[i].vector ? layer->part[i].vector->ones : 0;
    return ones;
}

/* Dynamic: all layers are full by their bits, although fewer records than promised were added.
   The layer with the fewest ones that has room, unless the bits of all together say full. */
static struct layer *layer_spare(const struct set *s, const tamis_digest *record,
                                 struct spot *spots)
{
    const struct layers *layers = set_layers(s);
    struct layer *best = NULL;
    if (set_opt(s)->growth != TAMIS_DYNAMIC)
        return NULL;
    for (uint32_t j = 0; j < layers->l[0]->parts; j++)
        if (growth_over(layers, j))
            return NULL;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        struct layer *layer = layers->l[i];
        bool takes = layer_room(s, layer) != 0;
        layer_spots(s, layer, record, spots);
        for (uint32_t j = 0; j < layer->parts && takes; j++) { /* whatever its bits say */
            const struct vector *v = spots[j].vector;
            takes = !v || vector_load(v) < v->capacity || spot_has(&spots[j]);
        }
        if (takes && (!best || layer_ones(layer) < layer_ones(best)))
            best = layer;
    }
    return best;
}

/* Adds a copy of a record to a layer; the spots are its parts with their digests of the record. */
static tamis_error layer_insert(struct set *s, struct layer *layer, const struct spot *spots,
                                bool member)
{
    size_t one = 1;
    bool set = false;
    for (uint32_t i = 0; i < layer->parts; i++)
        if (spots[i].vector && !vector_reserve(spots[i].vector, set_allocator(s)))
            return TAMIS_ENOMEM;
    tamis_error e = member ? TAMIS_OK : layer_reserve(s, layer, &one);
    if (e != TAMIS_OK)
        return e;
    for (uint32_t i = 0; i < layer->parts; i++)
        set |= spots[i].vector ? vector_insert(spots[i].vector, spots[i].digest)
                               : table_add(spots[i].table, spots[i].digest.a, 1) == 0;
    layer->load += set;
    layer->count++;
    s->stack->stored++;
    return TAMIS_OK;
}

static tamis_error add_deletable(struct set *s, const tamis_digest *record, uint8_t *fresh)
{
    struct spot spots[SPOTS_MAX];
    bool member;
    *fresh = 0;
    if (pending_cancel(&s->stack->more->removals, record))
        return TAMIS_OK;
    struct layer *layer = layer_for(s, record, spots, &member);
    if (!layer) {
        bool full = growth_room(s) == 0;
        if (!full && growth_bound(s))
            layer = layer_spare(s, record, spots);
        tamis_error e = layer ? TAMIS_OK : growth_layer(s, full, &layer);
        if (e != TAMIS_OK)
            return e;
        layer_spots(s, layer, record, spots);
    }
    tamis_error e = layer_insert(s, layer, spots, member);
    *fresh = e == TAMIS_OK && !member;
    return e;
}

/* Prefetches bits and counters of a record in the layer where it most likely goes. */
static void fetch_counted(const struct set *s, const tamis_digest *record)
{
    const struct layers *layers = set_layers(s);
    struct spot spots[SPOTS_MAX];
    uint32_t i = 0;
    while (i + 1 < layers_count(layers) && layer_room(s, layers->l[i]) == 0)
        i++;
    spots_prefetch(spots, layer_spots(s, layers->l[i], record, spots));
}

/* At most BATCH records. */
static tamis_error add_counted(struct set *s, const tamis_digest *records, size_t n, uint8_t *fresh,
                               size_t *done)
{
    tamis_error e = TAMIS_OK;
    for (size_t i = 0; i < n && i < COUNTED_AHEAD; i++)
        fetch_counted(s, records + i * s->stack->form->attributes);
    for (*done = 0; *done < n; (*done)++) {
        if (*done + COUNTED_AHEAD < n)
            fetch_counted(s, records + (*done + COUNTED_AHEAD) * s->stack->form->attributes);
        e = add_deletable(s, records + *done * s->stack->form->attributes, fresh + *done);
        if (e != TAMIS_OK)
            break;
    }
    return e;
}

/* ---- both ------------------------------------------------------------------------------------ */

tamis_error tamis_records_add_many(tamis_records *x, const tamis_digest *records, size_t n,
                                   uint8_t *fresh, size_t *done)
{
    struct set *s = &x->set;
    size_t all = 0;
    tamis_error e = set_writable(s);
    if (e == TAMIS_OK)
        e = set_add_many(s, set_opt(s)->deletable ? add_counted : add_plain, BATCH, records, n,
                         fresh, &all);
    if (s->guarded)
        set_reclaim(s, false);
    if (done)
        *done = all;
    return e;
}

tamis_error tamis_records_add(tamis_records *x, const tamis_key *record, bool *fresh)
{
    tamis_digest digests[TAMIS_ATTRIBUTES_MAX];
    uint8_t new_here = 0;
    tamis_records_digest_many(x, record, 1, digests);
    tamis_error e = tamis_records_add_many(x, digests, 1, &new_here, NULL);
    if (fresh)
        *fresh = new_here;
    return e;
}
