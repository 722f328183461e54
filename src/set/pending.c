/* Pending removals: their table, what they watch, and when they can be settled. Only removals,
   and adds that cancel one, use it; lookups only check whether a unique key is hidden. */
#include "set.h"

/* ---- the table of pending removals ----------------------------------------------------------- */

static size_t keys_room(const struct removals *r)
{
    return r->width > 1 ? (size_t)r->room * r->width : 0;
}

void removals_free(struct removals *r, const tamis_allocator *a)
{
    uint32_t width = r->width;
    for (uint32_t i = 0; i < r->room; i++)
        mem_free(a, r->entries[i].candidates, r->entries[i].room, sizeof(uint32_t));
    mem_free(a, r->entries, r->room, sizeof *r->entries);
    mem_free(a, r->keys, keys_room(r), sizeof *r->keys);
    mem_free(a, r->queue, r->room, sizeof *r->queue);
    mem_free(a, r->index, r->index_room, sizeof *r->index);
    watches_free(&r->watches, a);
    *r = (struct removals)REMOVALS_NONE;
    r->width = width;
}

void removals_clear(struct removals *r)
{
    r->first_free = NO_ENTRY;
    for (uint32_t i = r->room; i-- > 0;) {
        r->entries[i].used = r->entries[i].queued = false;
        r->entries[i].next_free = r->first_free;
        r->first_free = i;
    }
    if (r->index)
        memset(r->index, 0, r->index_room * sizeof *r->index);
    r->used = r->queued = 0;
    r->probes = 0;
    atomic_store(&r->total, 0);
    watches_clear(&r->watches);
}

size_t removals_bytes(const struct removals *r)
{
    size_t bytes = r->room * (sizeof *r->entries + sizeof *r->queue) +
                   keys_room(r) * sizeof *r->keys + r->index_room * sizeof *r->index +
                   r->watches.room * (sizeof *r->watches.list + sizeof *r->watches.heads);
    for (uint32_t i = 0; i < r->room; i++)
        bytes += r->entries[i].room * sizeof(uint32_t);
    return bytes;
}

const struct pending *removals_entry(const struct removals *r, uint32_t i)
{
    return r->entries[i].used ? &r->entries[i] : NULL;
}

const tamis_digest *removals_key(const struct removals *r, uint32_t i)
{
    return r->width > 1 ? r->keys + (size_t)i * r->width : &r->entries[i].digest;
}

/* One digest for the whole key. */
static tamis_digest name_of(const struct removals *r, const tamis_digest *key)
{
    tamis_digest name = key[0];
    for (uint32_t i = 1; i < r->width; i++) {
        name.a = mul_fold(name.a ^ key[i].a, GOLDEN ^ key[i].b);
        name.b = (name.b << 7 | name.b >> 57) + key[i].b;
    }
    return name;
}

static uint32_t index_home(const struct removals *r, const tamis_digest *key)
{
    uint64_t secret = process_secret(), home = secret;
    for (uint32_t i = 0; i < r->width; i++)
        home = mul_fold(home ^ key[i].a, secret ^ key[i].b);
    return (uint32_t)home & (r->index_room - 1);
}

static uint32_t entry_home(const struct removals *r, uint32_t entry)
{
    return index_home(r, removals_key(r, entry));
}

static bool same_digest(tamis_digest x, tamis_digest y)
{
    return x.a == y.a && x.b == y.b;
}

static bool same_key(const struct removals *r, uint32_t entry, const tamis_digest *key)
{
    const tamis_digest *mine = removals_key(r, entry);
    for (uint32_t i = 0; i < r->width; i++)
        if (!same_digest(mine[i], key[i]))
            return false;
    return true;
}

uint32_t pending_find(const struct removals *r, const tamis_digest *key)
{
    if (r->used == 0)
        return NO_ENTRY;
    tamis_digest name = name_of(r, key);
    for (uint32_t i = index_home(r, key); r->index[i]; i = (i + 1) & (r->index_room - 1)) {
        uint32_t entry = r->index[i] - 1;
        if (same_digest(r->entries[entry].digest, name) && same_key(r, entry, key))
            return entry;
    }
    return NO_ENTRY;
}

static void index_put(struct removals *r, uint32_t entry)
{
    uint32_t i = entry_home(r, entry);
    while (r->index[i])
        i = (i + 1) & (r->index_room - 1);
    r->index[i] = entry + 1;
}

static void index_take(struct removals *r, uint32_t entry)
{
    uint32_t mask = r->index_room - 1, hole = entry_home(r, entry);
    while (r->index[hole] != entry + 1)
        hole = (hole + 1) & mask;
    for (uint32_t i = (hole + 1) & mask; r->index[i]; i = (i + 1) & mask) {
        uint32_t home = entry_home(r, r->index[i] - 1);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            r->index[hole] = r->index[i];
            hole = i;
        }
    }
    r->index[hole] = 0;
}

/* Makes room for one more entry, with its key, its slot in the index and in the queue. */
static bool reserve_entry(struct removals *r, const tamis_allocator *a)
{
    if (r->first_free != NO_ENTRY)
        return true;
    struct removals grown = *r;
    uint32_t room = r->room ? 2 * r->room : 16;
    grown.room = room, grown.index_room = 2 * room;
    grown.entries = mem_new0(a, room, sizeof *grown.entries);
    grown.keys = r->width > 1 ? mem_new(a, keys_room(&grown), sizeof *grown.keys) : NULL;
    grown.queue = mem_new(a, room, sizeof *grown.queue);
    grown.index = mem_new0(a, grown.index_room, sizeof *grown.index);
    bool made = grown.entries && grown.queue && grown.index && (grown.keys || r->width == 1);
    struct removals *old = made ? r : &grown; /* the one to free */
    if (made && r->room) {
        memcpy(grown.entries, r->entries, r->room * sizeof *grown.entries);
        memcpy(grown.queue, r->queue, r->queued * sizeof *grown.queue);
        if (grown.keys)
            memcpy(grown.keys, r->keys, keys_room(r) * sizeof *grown.keys);
    }
    mem_free(a, old->entries, old->room, sizeof *old->entries);
    mem_free(a, old->keys, keys_room(old), sizeof *old->keys);
    mem_free(a, old->queue, old->room, sizeof *old->queue);
    mem_free(a, old->index, old->index_room, sizeof *old->index);
    if (!made)
        return false;
    uint32_t before = r->room;
    *r = grown;
    for (uint32_t i = 0; i < before; i++)
        if (r->entries[i].used)
            index_put(r, i);
    for (uint32_t i = room; i-- > before;) {
        r->entries[i].next_free = r->first_free;
        r->first_free = i;
    }
    return true;
}

/* ---- watches --------------------------------------------------------------------------------- */

/* Folded twice, since otherwise nearby positions would have nearby hashes. */
static uint32_t watch_hash(uint32_t id, uint32_t spot, uint64_t position)
{
    uint64_t where = ((uint64_t)id + 1) * SPOTS_MAX + spot, secret = process_secret();
    return (uint32_t)mul_fold(mul_fold(position ^ secret, where * GOLDEN), secret);
}

/* Counters that are not in memory, those of a mapped file, do not fall. */
static unsigned spot_probes(const struct spot *spot)
{
    if (spot->vector)
        return spot->vector->deletable ? spot->vector->bits.k : 0;
    return spot->table->view == NULL;
}

static void spot_positions(const struct spot *spot, uint64_t *positions)
{
    if (spot->vector)
        vector_positions(spot->vector, spot->digest, positions);
    else
        positions[0] = spot->digest.a;
}

static uint64_t spot_value(const struct spot *spot, uint64_t position)
{
    return spot->vector ? counters_get(&spot->vector->counters, position)
                        : table_get(spot->table, position);
}

uint64_t spot_copies(const struct spot *spot)
{
    return spot->vector ? vector_copies(spot->vector, spot->digest)
                        : table_get(spot->table, spot->digest.a);
}

/* Most copies of the key that the layer may have. */
static uint64_t copies_in_layer(struct set *s, uint32_t id, const tamis_digest *key)
{
    struct spot spots[SPOTS_MAX];
    uint32_t n = candidate_spots(s, id, key, spots);
    uint64_t copies = n ? UINT64_MAX : 0;
    for (uint32_t part = 0; part < n && copies; part++)
        copies = min_u64(copies, spot_copies(&spots[part]));
    return copies;
}

/* Watches every position of the entry in one layer, for that many copies or fewer. */
static void watch_candidate(struct set *s, uint32_t entry, uint32_t id, uint64_t level)
{
    struct removals *r = &s->stack->more->removals;
    struct pending *p = &r->entries[entry];
    struct spot spots[SPOTS_MAX];
    uint64_t positions[K_MAX];
    uint32_t n = candidate_spots(s, id, removals_key(r, entry), spots);
    for (uint32_t part = 0; part < n; part++) {
        unsigned probes = spot_probes(&spots[part]);
        spot_positions(&spots[part], positions);
        for (unsigned j = 0; j < probes; j++) {
            uint64_t each = positions_repeat(positions, probes, j), value;
            if (__builtin_mul_overflow(level, each, &value) ||
                __builtin_add_overflow(value, each - 1, &value))
                value = UINT64_MAX;
            p->watches = watch_add(&r->watches, watch_hash(id, part, positions[j]), value, entry,
                                   p->watches);
        }
    }
}

/*
 * Watches for what could settle an entry with two or more candidates that allow more than its
 * copies. With fewer copies than candidates only the loss of a candidate can settle it. Otherwise,
 * with `spare` copies allowed beyond those of n candidates, one of them must lose spare / n, or all
 * it has.
 */
static void watch_entry(struct set *s, uint32_t entry, uint64_t spare)
{
    const struct pending *p = &s->stack->more->removals.entries[entry];
    uint64_t share = (spare - 1) / p->n + 1;
    bool few = atomic_load(&p->copies) < p->n;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t id = p->candidates[i];
        uint64_t here =
            few ? 0 : copies_in_layer(s, id, removals_key(&s->stack->more->removals, entry));
        watch_candidate(s, entry, id, here - min_u64(here, share));
    }
}

/* Queues the entry to be checked again; until then it need not watch. */
static void queue_entry(struct removals *r, uint32_t entry)
{
    struct pending *p = &r->entries[entry];
    watch_remove(&r->watches, p->watches);
    p->watches = NO_ENTRY;
    if (p->queued)
        return;
    p->queued = true;
    r->queue[r->queued++] = entry;
}

/* A candidate may be gone: it was dropped when its last copy left. */
static size_t probes_of(struct set *s, const tamis_digest *key, const uint32_t *candidates,
                        uint32_t n)
{
    struct spot spots[SPOTS_MAX];
    size_t probes = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t part = candidate_spots(s, candidates[i], key, spots); part-- > 0;)
            probes += spot_probes(&spots[part]);
    return probes;
}

/* ---- settling -------------------------------------------------------------------------------- */

void pending_erase(struct set *s, uint32_t id, const tamis_digest *key, uint64_t copies)
{
    struct removals *r = &s->stack->more->removals;
    candidate_erase(s, id, key, copies);
    if (r->used == 0)
        return;
    struct spot spots[SPOTS_MAX];
    uint64_t positions[K_MAX];
    uint32_t n = candidate_spots(s, id, key, spots);
    for (uint32_t part = 0; part < n; part++) {
        spot_positions(&spots[part], positions);
        for (unsigned j = 0; j < spot_probes(&spots[part]); j++) {
            uint64_t value = spot_value(&spots[part], positions[j]);
            uint32_t hash = watch_hash(id, part, positions[j]), at;
            while ((at = watch_told(&r->watches, hash, value)) != NO_ENTRY)
                queue_entry(r, r->watches.list[at].who);
        }
    }
}

/* Removes it from the table; it watches nothing. */
static void forget(struct removals *r, uint32_t entry)
{
    struct pending *p = &r->entries[entry];
    uint64_t copies = atomic_load(&p->copies);
    atomic_store(&r->total, atomic_load(&r->total) - copies);
    index_take(r, entry);
    r->probes -= p->probes;
    p->used = false;
    p->next_free = r->first_free;
    r->first_free = entry;
    r->used--;
}

/* Drops candidates that lost a bit of the key. Returns what the counters allow in the rest. */
static uint64_t refresh(struct set *s, uint32_t entry)
{
    struct pending *p = &s->stack->more->removals.entries[entry];
    uint64_t allowed = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        uint64_t copies =
            copies_in_layer(s, p->candidates[i], removals_key(&s->stack->more->removals, entry));
        if (copies == 0)
            continue;
        p->candidates[n++] = p->candidates[i];
        allowed = allowed + copies < allowed ? UINT64_MAX : allowed + copies;
    }
    p->n = n;
    return allowed;
}

static void settle_entry(struct set *s, uint32_t entry)
{
    struct pending *p = &s->stack->more->removals.entries[entry];
    uint64_t copies = atomic_load(&p->copies), allowed = copies ? refresh(s, entry) : 0;
    if (p->n > 1 && copies < allowed) {
        watch_entry(s, entry, allowed - copies);
        return;
    }
    forget(&s->stack->more->removals,
           entry); /* key and candidates stay until the entry is reused */
    const tamis_digest *key = removals_key(&s->stack->more->removals, entry);
    for (uint32_t i = 0; copies && i < p->n; i++) {
        uint64_t here = copies_in_layer(s, p->candidates[i], key);
        if (here)
            pending_erase(s, p->candidates[i], key, min_u64(here, copies));
    }
}

void pending_settle(struct set *s)
{
    struct removals *r = &s->stack->more->removals;
    while (r->queued) {
        uint32_t entry = r->queue[--r->queued];
        r->entries[entry].queued = false;
        settle_entry(s, entry);
    }
}

/* The index of the layer among the candidates, or where it would be inserted. */
static uint32_t candidate_at(const struct pending *p, uint32_t id)
{
    return SEARCH(i, p->n, p->candidates[i] < id);
}

bool pending_has(const struct pending *p, uint32_t id)
{
    uint32_t at = candidate_at(p, id);
    return at < p->n && p->candidates[at] == id;
}

void pending_rename(struct set *s, uint32_t from, uint32_t to)
{
    struct removals *r = &s->stack->more->removals;
    for (uint32_t i = 0; i < r->room; i++) {
        struct pending *p = &r->entries[i];
        if (!p->used || !pending_has(p, from))
            continue;
        uint32_t *at = p->candidates + candidate_at(p, from);
        memmove(at, at + 1, (size_t)(p->candidates + p->n-- - (at + 1)) * sizeof *at);
        if (!pending_has(p, to)) {
            at = p->candidates + candidate_at(p, to);
            memmove(at + 1, at, (size_t)(p->candidates + p->n++ - at) * sizeof *at);
            *at = to;
        }
        queue_entry(r, i);
    }
}

/* ---- remembering ----------------------------------------------------------------------------- */

bool pending_cancel(struct removals *r, const tamis_digest *key)
{
    if (LIKELY(atomic_load_explicit(&r->total, memory_order_relaxed) == 0))
        return false;
    uint32_t entry = pending_find(r, key);
    struct pending *p = entry != NO_ENTRY ? &r->entries[entry] : NULL;
    uint64_t copies = p ? atomic_load(&p->copies) : 0;
    if (copies == 0)
        return false;
    atomic_store(&p->copies, copies - 1);
    atomic_store(&r->total, atomic_load(&r->total) - 1);
    if (copies == 1)
        queue_entry(r, entry);
    return true;
}

/* Reserves memory for an entry with these candidates; after that nothing can fail. */
static tamis_error reserve(struct set *s, uint32_t n, size_t probes)
{
    struct removals *r = &s->stack->more->removals;
    const tamis_allocator *a = set_allocator(s);
    if (r->probes_max && probes > r->probes_max - min_u64(r->probes, r->probes_max))
        return TAMIS_ELIMIT;
    if (!reserve_entry(r, a))
        return TAMIS_ENOMEM;
    struct pending *p = &r->entries[r->first_free];
    if (p->room < n) {
        uint32_t *candidates = mem_new(a, n, sizeof *candidates);
        if (!candidates)
            return TAMIS_ENOMEM;
        mem_free(a, p->candidates, p->room, sizeof *candidates);
        p->candidates = candidates;
        p->room = n;
    }
    return watches_reserve(&r->watches, a, r->probes + probes) ? TAMIS_OK : TAMIS_ENOMEM;
}

tamis_error pending_remember(struct set *s, const tamis_digest *key, uint64_t copies,
                             const uint32_t *candidates, uint32_t n, bool hides)
{
    struct removals *r = &s->stack->more->removals;
    uint32_t entry = pending_find(r, key);
    if (entry != NO_ENTRY) {
        struct pending *p = &r->entries[entry];
        atomic_store(&p->copies, atomic_load(&p->copies) + copies);
        p->hides &= hides;
        atomic_store(&r->total, atomic_load(&r->total) + copies);
        queue_entry(r, entry);
        return TAMIS_OK;
    }
    size_t probes = probes_of(s, key, candidates, n);
    tamis_error e = reserve(s, n, probes);
    if (e != TAMIS_OK)
        return e;
    entry = r->first_free;
    struct pending *p = &r->entries[entry];
    r->first_free = p->next_free;
    p->digest = name_of(r, key);
    if (r->width > 1)
        memcpy(r->keys + (size_t)entry * r->width, key, r->width * sizeof *key);
    atomic_store(&p->copies, copies);
    p->n = n;
    memcpy(p->candidates, candidates, n * sizeof *candidates);
    p->used = true;
    p->hides = hides;
    p->queued = false;
    p->watches = NO_ENTRY;
    p->probes = (uint32_t)probes;
    r->probes += probes;
    r->used++;
    index_put(r, entry);
    atomic_store(&r->total, atomic_load(&r->total) + copies);
    queue_entry(r, entry);
    return TAMIS_OK;
}

bool pending_again(struct set *s, uint32_t entry)
{
    struct removals *r = &s->stack->more->removals;
    struct pending *p = &r->entries[entry];
    uint64_t copies = atomic_load(&p->copies);
    queue_entry(r, entry);
    if (p->hides || copies >= refresh(s, entry))
        return false;
    atomic_store(&p->copies, copies + 1);
    atomic_store(&r->total, atomic_load(&r->total) + 1);
    return true;
}

tamis_error pending_rebuild(struct set *s)
{
    struct removals *r = &s->stack->more->removals;
    size_t need = 0;
    if (!set_stacked(s))
        return TAMIS_OK;
    for (uint32_t i = 0; i < r->room; i++) {
        const struct pending *p = removals_entry(r, i);
        need += p ? probes_of(s, removals_key(r, i), p->candidates, p->n) : 0;
    }
    if (!watches_reserve(&r->watches, set_allocator(s), need))
        return TAMIS_ENOMEM;
    r->probes = need;
    for (uint32_t i = 0; i < r->room; i++) {
        struct pending *p = &r->entries[i];
        if (!p->used)
            continue;
        p->probes = (uint32_t)probes_of(s, removals_key(r, i), p->candidates, p->n);
        queue_entry(r, i);
    }
    pending_settle(s);
    return TAMIS_OK;
}

/* ---- comparison ------------------------------------------------------------------------------ */

bool pending_equal(const struct removals *x, const struct removals *y)
{
    if (x->width != y->width || atomic_load(&x->total) != atomic_load(&y->total))
        return false;
    for (uint32_t i = 0; i < x->room; i++) {
        const struct pending *p = removals_entry(x, i);
        uint64_t copies = p ? atomic_load(&p->copies) : 0;
        uint32_t other = copies ? pending_find(y, removals_key(x, i)) : NO_ENTRY;
        if (copies && (other == NO_ENTRY || atomic_load(&y->entries[other].copies) != copies))
            return false;
    }
    return true;
}
