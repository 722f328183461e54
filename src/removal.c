/* See removal.h. */
#include "removal.h"

#include "filter.h"

/* ---- the table of pending removals ----------------------------------------------------------- */

void removals_init(struct removals *r)
{
    *r = (struct removals){.first_free = NONE, .first_watch = NONE};
}

void removals_free(struct removals *r, const tamis_allocator *a)
{
    for (uint32_t i = 0; i < r->room; i++)
        mem_free(a, r->entries[i].candidates, r->entries[i].room, sizeof(uint32_t));
    mem_free(a, r->entries, r->room, sizeof *r->entries);
    mem_free(a, r->queue, r->room, sizeof *r->queue);
    mem_free(a, r->index, r->index_room, sizeof *r->index);
    mem_free(a, r->watches, r->watches_room, sizeof *r->watches);
    mem_free(a, r->heads, r->heads_room, sizeof *r->heads);
    removals_init(r);
}

static void watches_clear(struct removals *r)
{
    r->watches_used = 0;
    r->first_watch = NONE;
    for (uint32_t i = 0; i < r->heads_room; i++)
        r->heads[i] = NONE;
}

void removals_clear(struct removals *r)
{
    r->first_free = NONE;
    for (uint32_t i = r->room; i-- > 0;) {
        r->entries[i].used = r->entries[i].queued = false;
        r->entries[i].next_free = r->first_free;
        r->first_free = i;
    }
    if (r->index)
        memset(r->index, 0, r->index_room * sizeof *r->index);
    r->used = r->queued = r->cancelled = 0;
    atomic_store(&r->total, 0);
    watches_clear(r);
}

static uint32_t index_home(const struct removals *r, tamis_digest d)
{
    return (uint32_t)(mul_fold(d.a ^ (d.b >> 7), PROBE_STEP) & (r->index_room - 1));
}

static struct pending *find(const struct removals *r, tamis_digest d)
{
    if (r->used == 0)
        return NULL;
    for (uint32_t i = index_home(r, d); r->index[i]; i = (i + 1) & (r->index_room - 1)) {
        struct pending *p = &r->entries[r->index[i] - 1];
        if (p->digest.a == d.a && p->digest.b == d.b)
            return p;
    }
    return NULL;
}

const struct pending *removals_entry(const struct removals *r, uint32_t i)
{
    return r->entries[i].used ? &r->entries[i] : NULL;
}

static void index_put(struct removals *r, uint32_t entry)
{
    uint32_t i = index_home(r, r->entries[entry].digest);
    while (r->index[i])
        i = (i + 1) & (r->index_room - 1);
    r->index[i] = entry + 1;
}

static void index_take(struct removals *r, uint32_t entry)
{
    uint32_t mask = r->index_room - 1, hole = index_home(r, r->entries[entry].digest);
    while (r->index[hole] != entry + 1)
        hole = (hole + 1) & mask;
    for (uint32_t i = (hole + 1) & mask; r->index[i]; i = (i + 1) & mask) {
        uint32_t home = index_home(r, r->entries[r->index[i] - 1].digest);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            r->index[hole] = r->index[i];
            hole = i;
        }
    }
    r->index[hole] = 0;
}

/* Room for one more entry, with its place in the index and in the queue. */
static bool reserve_entry(struct removals *r, const tamis_allocator *a)
{
    if (r->first_free != NONE)
        return true;
    uint32_t room = r->room ? 2 * r->room : 16;
    struct pending *entries = mem_new0(a, room, sizeof *entries);
    uint32_t *queue = mem_new(a, room, sizeof *queue);
    uint32_t *index = mem_new0(a, 2 * (size_t)room, sizeof *index);
    if (!entries || !queue || !index) {
        mem_free(a, entries, room, sizeof *entries);
        mem_free(a, queue, room, sizeof *queue);
        mem_free(a, index, 2 * (size_t)room, sizeof *index);
        return false;
    }
    if (r->room) {
        memcpy(entries, r->entries, r->room * sizeof *entries);
        memcpy(queue, r->queue, r->queued * sizeof *queue);
    }
    mem_free(a, r->entries, r->room, sizeof *entries);
    mem_free(a, r->queue, r->room, sizeof *queue);
    mem_free(a, r->index, r->index_room, sizeof *index);
    uint32_t old = r->room;
    r->entries = entries, r->queue = queue, r->index = index;
    r->room = room, r->index_room = 2 * room;
    for (uint32_t i = 0; i < old; i++)
        if (entries[i].used)
            index_put(r, i);
    for (uint32_t i = room; i-- > old;) {
        entries[i].next_free = r->first_free;
        r->first_free = i;
    }
    return true;
}

/* ---- watches --------------------------------------------------------------------------------- */

/* Chains by a hash of vector and position. Neither is stored: a false alarm only costs a look. */
static uint32_t *watch_head(const struct removals *r, uint32_t id, uint64_t position)
{
    return &r->heads[mul_fold(position + PROBE_STEP * (id + UINT64_C(1)), BLOCK_MIX) &
                     (r->heads_room - 1)];
}

static bool reserve_watches(struct removals *r, const tamis_allocator *a, size_t more)
{
    size_t need = (size_t)r->watches_used + more;
    if (need <= r->watches_room)
        return true;
    size_t room = r->watches_room ? r->watches_room : 256;
    while (room < need)
        room *= 2;
    if (room > NONE / 2)
        return false;
    struct watch *watches = mem_new(a, room, sizeof *watches);
    uint32_t *heads = mem_new(a, room, sizeof *heads);
    if (!watches || !heads) {
        mem_free(a, watches, room, sizeof *watches);
        mem_free(a, heads, room, sizeof *heads);
        return false;
    }
    mem_free(a, r->watches, r->watches_room, sizeof *watches);
    mem_free(a, r->heads, r->heads_room, sizeof *heads);
    r->watches = watches, r->heads = heads;
    r->watches_room = r->heads_room = (uint32_t)room;
    watches_clear(r);
    return true; /* empty now: the caller watches anew */
}

static void watch_add(struct removals *r, uint32_t *head, uint32_t entry)
{
    uint32_t at = r->first_watch;
    if (at == NONE)
        at = r->watches_used;
    else
        r->first_watch = r->watches[at].next;
    r->watches_used++;
    r->watches[at] = (struct watch){*head, entry};
    *head = at;
}

static void watch_remove(struct removals *r, uint32_t *head, uint32_t entry)
{
    for (uint32_t *link = head; *link != NONE; link = &r->watches[*link].next)
        if (r->watches[*link].entry == entry) {
            uint32_t at = *link;
            *link = r->watches[at].next;
            r->watches[at].next = r->first_watch;
            r->first_watch = at;
            r->watches_used--;
            return;
        }
}

/* Watches (or stops watching) every position of the entry in one vector. */
static void watch_vector(struct removals *r, uint32_t entry, const struct vector *v, bool on)
{
    uint64_t positions[K_MAX];
    vector_positions(v, r->entries[entry].digest, positions);
    for (unsigned j = 0; j < v->bits.k; j++) {
        uint32_t *head = watch_head(r, v->id, positions[j]);
        if (on)
            watch_add(r, head, entry);
        else
            watch_remove(r, head, entry);
    }
}

static void watch_entry(tamis_filter *f, uint32_t entry, bool on)
{
    struct pending *p = &f->removals.entries[entry];
    for (uint32_t i = 0; i < p->n; i++) {
        const struct vector *v = filter_vector_by_id(f, p->candidates[i]);
        if (v)
            watch_vector(&f->removals, entry, v, on);
    }
}

static void queue_entry(struct removals *r, uint32_t entry)
{
    struct pending *p = &r->entries[entry];
    if (p->queued || !p->used)
        return;
    p->queued = true;
    r->queue[r->queued++] = entry;
}

static size_t watches_needed(const tamis_filter *f)
{
    size_t need = 0;
    for (uint32_t i = 0; i < f->removals.room; i++) {
        const struct pending *p = removals_entry(&f->removals, i);
        for (uint32_t j = 0; p && j < p->n; j++) {
            const struct vector *v = filter_vector_by_id(f, p->candidates[j]);
            need += v ? v->bits.k : 0;
        }
    }
    return need;
}

static void watch_all(tamis_filter *f)
{
    watches_clear(&f->removals);
    for (uint32_t i = 0; i < f->removals.room; i++)
        if (f->removals.entries[i].used)
            watch_entry(f, i, true);
}

/* ---- settling -------------------------------------------------------------------------------- */

/* Takes copies out of a vector, and queues the entries that watch what it lowered. */
static void erase(tamis_filter *f, struct vector *v, tamis_digest digest, uint64_t copies)
{
    uint64_t before = v->count;
    vector_erase(v, digest, copies);
    f->stored -= before - v->count;
    struct removals *r = &f->removals;
    if (r->used == 0)
        return;
    uint64_t positions[K_MAX];
    vector_positions(v, digest, positions);
    for (unsigned j = 0; j < v->bits.k; j++) {
        uint32_t at = *watch_head(r, v->id, positions[j]);
        for (; at != NONE; at = r->watches[at].next)
            queue_entry(r, r->watches[at].entry);
    }
}

/* Out of the table; its watches are off. */
static void forget(tamis_filter *f, uint32_t entry)
{
    struct removals *r = &f->removals;
    struct pending *p = &r->entries[entry];
    uint64_t copies = atomic_load(&p->copies);
    if (copies == 0)
        r->cancelled--;
    atomic_store(&r->total, atomic_load(&r->total) - copies);
    index_take(r, entry);
    p->used = false;
    p->next_free = r->first_free;
    r->first_free = entry;
    r->used--;
}

/* Drops the candidates that lost a bit of the key. Returns what the counters allow in the rest. */
static uint64_t refresh(tamis_filter *f, uint32_t entry)
{
    struct pending *p = &f->removals.entries[entry];
    uint64_t allowed = 0;
    for (uint32_t i = 0; i < p->n;) {
        struct vector *v = filter_vector_by_id(f, p->candidates[i]);
        uint64_t copies = v ? vector_copies(v, p->digest) : 0;
        if (copies == 0) {
            if (v)
                watch_vector(&f->removals, entry, v, false);
            p->candidates[i] = p->candidates[--p->n];
            continue;
        }
        allowed += copies;
        i++;
    }
    return allowed;
}

static void settle_entry(tamis_filter *f, uint32_t entry)
{
    struct pending *p = &f->removals.entries[entry];
    uint64_t copies = atomic_load(&p->copies), allowed = refresh(f, entry);
    if (p->n > 1 && copies < allowed)
        return;
    tamis_digest digest = p->digest;
    uint32_t n = p->n, *candidates = p->candidates;
    watch_entry(f, entry, false);
    forget(f, entry); /* its candidates stay where they are until the entry is used again */
    for (uint32_t i = 0; i < n; i++) {
        struct vector *v = filter_vector_by_id(f, candidates[i]);
        uint64_t here = v ? vector_copies(v, digest) : 0;
        if (here)
            erase(f, v, digest, min_u64(here, copies));
    }
}

static void settle(tamis_filter *f)
{
    struct removals *r = &f->removals;
    while (r->queued) {
        uint32_t entry = r->queue[--r->queued];
        r->entries[entry].queued = false;
        if (r->entries[entry].used)
            settle_entry(f, entry);
    }
}

/* Entries that adds cancelled: readers are out, so they can go. */
static void purge(tamis_filter *f)
{
    struct removals *r = &f->removals;
    for (uint32_t i = 0; i < r->room && r->cancelled; i++)
        if (r->entries[i].used && atomic_load(&r->entries[i].copies) == 0) {
            watch_entry(f, i, false);
            forget(f, i);
        }
}

void removals_rename(tamis_filter *f, uint32_t from, uint32_t to)
{
    struct removals *r = &f->removals;
    for (uint32_t i = 0; i < r->room; i++) {
        struct pending *p = &r->entries[i];
        for (uint32_t j = 0; p->used && j < p->n; j++) {
            if (p->candidates[j] != from)
                continue;
            p->candidates[j] = to;
            for (uint32_t other = 0; other < p->n; other++)
                if (other != j && p->candidates[other] == to) {
                    p->candidates[j] = p->candidates[--p->n];
                    break;
                }
            queue_entry(r, i);
            break;
        }
    }
    if (r->used)
        watch_all(f);
}

/* After removals: everything goes when all that is stored is pending; empty vectors go; vectors of a
   dynamic filter that fit into one are united. */
static void tidy(tamis_filter *f)
{
    bool changed = true;
    while (changed) {
        settle(f);
        changed = false;
        if (f->stored == atomic_load(&f->removals.total)) {
            filter_empty(f);
            return;
        }
        struct stack *stack = filter_stack(f);
        for (uint32_t i = stack_count(stack); i-- > 0 && stack_count(stack) > 1;)
            if (stack->v[i]->count == 0)
                filter_drop(f, i);
        if (f->set.growth == TAMIS_DYNAMIC)
            filter_merge_pairs(f, false, &changed); /* without memory: another time */
    }
}

/* ---- the operations -------------------------------------------------------------------------- */

bool removals_hide(const struct removals *r, tamis_digest digest)
{
    const struct pending *p = find(r, digest);
    return p && p->hides && atomic_load(&p->copies) > 0;
}

bool removals_cancel(struct removals *r, tamis_digest digest)
{
    if (LIKELY(atomic_load_explicit(&r->total, memory_order_relaxed) == 0))
        return false;
    struct pending *p = find(r, digest);
    uint64_t copies = p ? atomic_load(&p->copies) : 0;
    if (copies == 0)
        return false;
    atomic_store(&p->copies, copies - 1);
    r->cancelled += copies == 1;
    atomic_store(&r->total, atomic_load(&r->total) - 1);
    return true;
}

/* Makes room for an entry with these candidates; after it nothing can fail. */
static tamis_error reserve(tamis_filter *f, uint32_t n, size_t probes)
{
    struct removals *r = &f->removals;
    const tamis_allocator *a = &f->allocator;
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
    uint32_t before = r->watches_room;
    if (!reserve_watches(r, a, probes))
        return TAMIS_ENOMEM;
    if (r->watches_room != before)
        watch_all(f);
    return TAMIS_OK;
}

tamis_error removals_remember(tamis_filter *f, tamis_digest digest, uint64_t copies,
                              const uint32_t *candidates, uint32_t n, bool hides)
{
    struct removals *r = &f->removals;
    struct pending *p = find(r, digest);
    if (p) {
        atomic_store(&p->copies, atomic_load(&p->copies) + copies);
        p->hides &= hides;
        atomic_store(&r->total, atomic_load(&r->total) + copies);
        return TAMIS_OK;
    }
    size_t probes = 0;
    for (uint32_t i = 0; i < n; i++)
        probes += filter_vector_by_id(f, candidates[i])->bits.k;
    tamis_error e = reserve(f, n, probes);
    if (e != TAMIS_OK)
        return e;
    uint32_t entry = r->first_free;
    p = &r->entries[entry];
    r->first_free = p->next_free;
    p->digest = digest;
    atomic_store(&p->copies, copies);
    p->n = n;
    memcpy(p->candidates, candidates, n * sizeof *candidates);
    p->used = true;
    p->hides = hides;
    p->queued = false;
    r->used++;
    index_put(r, entry);
    atomic_store(&r->total, atomic_load(&r->total) + copies);
    watch_entry(f, entry, true);
    return TAMIS_OK;
}

/* A removal of a key that is pending already. */
static void remove_again(tamis_filter *f, struct pending *p, tamis_removed *outcome)
{
    struct removals *r = &f->removals;
    uint64_t copies = atomic_load(&p->copies);
    if (p->hides || copies + 1 > refresh(f, (uint32_t)(p - r->entries))) {
        *outcome = TAMIS_ABSENT;
        return;
    }
    atomic_store(&p->copies, copies + 1);
    atomic_store(&r->total, atomic_load(&r->total) + 1);
    queue_entry(r, (uint32_t)(p - r->entries));
    tidy(f);
    *outcome = find(r, p->digest) ? TAMIS_PENDING : TAMIS_REMOVED;
}

/* The ids of the vectors that may store the digest; room for all of them. */
static uint32_t matches(const tamis_filter *f, tamis_digest digest, uint32_t *ids)
{
    const struct stack *stack = filter_stack(f);
    uint32_t n = 0;
    for (uint32_t i = 0; i < stack_count(stack); i++)
        if (vector_has(stack->v[i], digest) && vector_copies(stack->v[i], digest))
            ids[n++] = stack->v[i]->id;
    return n;
}

tamis_error filter_remove_one(tamis_filter *f, tamis_digest digest, tamis_removed *outcome)
{
    uint32_t few[64], *ids = few, room = stack_count(filter_stack(f));
    tamis_error e = TAMIS_OK;
    purge(f);
    struct pending *p = find(&f->removals, digest);
    if (p) {
        remove_again(f, p, outcome);
        return TAMIS_OK;
    }
    if (room > 64 && !(ids = mem_new(&f->allocator, room, sizeof *ids)))
        return TAMIS_ENOMEM;
    uint32_t n = matches(f, digest, ids);
    *outcome = n == 0 ? TAMIS_ABSENT : n == 1 ? TAMIS_REMOVED : TAMIS_PENDING;
    if (n == 1)
        erase(f, filter_vector_by_id(f, ids[0]), digest, 1);
    else if (n > 1)
        e = removals_remember(f, digest, 1, ids, n, f->set.unique);
    if (ids != few)
        mem_free(&f->allocator, ids, room, sizeof *ids);
    if (e == TAMIS_OK && n > 0) {
        tidy(f);
        if (n > 1 && !find(&f->removals, digest))
            *outcome = TAMIS_REMOVED;
    }
    return e;
}

tamis_error removals_rebuild(tamis_filter *f)
{
    struct removals *r = &f->removals;
    if (r->used == 0)
        return TAMIS_OK;
    watches_clear(r);
    if (!reserve_watches(r, &f->allocator, watches_needed(f)))
        return TAMIS_ENOMEM;
    watch_all(f);
    for (uint32_t i = 0; i < r->room; i++)
        queue_entry(r, i);
    settle(f);
    return TAMIS_OK;
}

tamis_error tamis_filter_remove_many(tamis_filter *f, const tamis_digest *digests, size_t n,
                                     uint8_t *outcomes, size_t *done)
{
    tamis_error e = !f->set.deletable ? TAMIS_EKIND : filter_writable(f);
    size_t i = 0;
    for (; e == TAMIS_OK && i < n; i++) {
        tamis_removed outcome;
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
