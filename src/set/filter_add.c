/* Adds keys: to plain filters in batches, to deletable ones key by key. */
#include "set.h"

/* ---- adding: plain --------------------------------------------------------------------------- */

static void prefetch_changes(const struct vector *v, const tamis_digest *digests, size_t n)
{
    struct bits dirty = v->bits;
    v->bits.kernel->prefetch(&v->bits, digests, n);
    if (!v->changes)
        return;
    dirty.words = v->changes->dirty.data;
    v->bits.kernel->prefetch(&dirty, digests, n);
}

static void vector_turn(struct vector *v, uint64_t position)
{
    uint64_t *turned = v->turned.data;
    vector_mark(v, position);
    if (v->changes)
        changes_turn(v->changes, position, true);
    if (turned)
        turned[position >> 6] |= UINT64_C(1) << (position & 63);
}

/* Adds bit by bit: to columns, and to vectors whose changes are watched or which are being written. */
static void vector_add_bits(struct vector *v, const tamis_digest *digests, size_t n, uint8_t *fresh)
{
    uint64_t positions[K_MAX];
    for (size_t i = 0; i < n; i++) {
        if (i % BATCH == 0 && v->stride == 1)
            prefetch_changes(v, digests + i, n - i < BATCH ? n - i : BATCH);
        vector_positions(v, digests[i], positions);
        fresh[i] = false;
        for (unsigned j = 0; j < v->bits.k; j++) {
            if (vector_bit(v, positions[j]))
                continue;
            vector_bit_set(v, positions[j]);
            vector_turn(v, positions[j]);
            fresh[i] = true;
        }
        if (v->changes && fresh[i])
            v->changes->missed += changes_deny(v->changes, v, positions);
    }
}

uint64_t vector_add(struct vector *v, const tamis_digest *digests, size_t n, uint8_t *fresh)
{
    uint64_t added = 0;
    if (v->stride != 1 || v->changes || v->turned.data)
        vector_add_bits(v, digests, n, fresh);
    else if (n == 1)
        fresh[0] = v->bits.kernel->add_one(&v->bits, digests[0]);
    else
        v->bits.kernel->add(&v->bits, digests, n, fresh);
    if (v->sums)
        vector_mark_digests(v, digests, fresh, n);
    for (size_t i = 0; i < n; i++)
        added += fresh[i];
    v->load += added;
    v->count += added;
    return added;
}

/* While other threads add: claims room first and returns what was not needed, so that the capacity
   is kept however the threads interleave. False if others took the room. */
static bool vector_add_shared(struct set *s, struct vector *v, const tamis_digest *digests,
                              size_t n, uint8_t *fresh)
{
    uint64_t repeated = 0;
    uint64_t before = __atomic_fetch_add(&v->load, n, __ATOMIC_RELAXED);
    if (before + n > v->capacity && !set_opt(s)->overfill) {
        __atomic_fetch_sub(&v->load, n, __ATOMIC_RELAXED);
        return false;
    }
    v->bits.kernel->prefetch(&v->bits, digests, n);
    v->bits.kernel->add_shared(&v->bits, digests, n, fresh);
    vector_mark_digests(v, digests, fresh, n);
    for (size_t i = 0; i < n; i++)
        repeated += !fresh[i];
    __atomic_fetch_sub(&v->load, repeated, __ATOMIC_RELAXED);
    __atomic_fetch_add(&v->count, n - repeated, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->stack->stored, n - repeated, __ATOMIC_RELAXED);
    return true;
}

/* The number of keys that can be added to the vector without checking its room for each. */
static uint64_t room_in(const struct set *s, const struct vector *v)
{
    uint64_t load = __atomic_load_n(&v->load, __ATOMIC_RELAXED);
    uint64_t room = v->capacity > load ? v->capacity - load : 0;
    if (set_opt(s)->items_max == 0 || set_opt(s)->growth == TAMIS_FIXED)
        return room;
    uint64_t stored = s->stack->stored;
    return min_u64(room, set_opt(s)->items_max > stored ? set_opt(s)->items_max - stored : 0);
}

static struct layer *newest_of(const struct set *s)
{
    const struct layers *layers = set_layers(s);
    return layers->l[layers_count(layers) - 1];
}

/* Must it be known, before a key is added, whether all its bits are set already? A fixed filter learns it while it sets
   them. */
static bool looks_first(const struct settings *opt)
{
    return !opt->add_always && opt->growth != TAMIS_FIXED;
}

/* Finds the digests that need not be added: all their bits are set in one vector (window: in the newest). */
static void find_present(struct set *s, const tamis_digest *digests, size_t n, uint8_t *present,
                         uint64_t now)
{
    if (!looks_first(set_opt(s))) {
        memset(present, 0, n);
    } else if (set_opt(s)->growth == TAMIS_WINDOW) {
        struct layer *newest = newest_of(s);
        const struct bits *bits = &newest->part[0].vector->bits;
        memset(present, 0, n);
        bits->kernel->prefetch(bits, digests, n);
        bits->kernel->has(bits, digests, n, present);
        for (size_t i = 0; i < n; i++)
            if (present[i])
                newest->last = now;
    } else {
        filter_bits_have(s, digests, n, present);
    }
}

/* Adds digests that no vector has to one with room, as many as it takes. The vector itself notices repeated keys. */
static tamis_error add_missing(struct set *s, const tamis_digest *digests, size_t n, uint8_t *fresh,
                               size_t *done, uint64_t now)
{
    const struct settings *opt = set_opt(s);
    const struct layer *newest = newest_of(s);
    struct layer *layer;
    tamis_error e = growth_active(s, &layer);
    *done = 0;
    bool full = e == TAMIS_EFULL || e == TAMIS_ESPACE, window = opt->growth == TAMIS_WINDOW;
    if (full && !window) { /* members are not refused */
        filter_bits_have(s, digests, 1, fresh);
        *done = fresh[0];
        fresh[0] = 0;
        return *done ? TAMIS_OK : e;
    }
    if (e != TAMIS_OK)
        return e;
    struct vector *v = layer->part[0].vector;
    size_t some = n > 1 ? (size_t)min_u64(n, max_u64(1, room_in(s, v))) : 1;
    if (window && layer != newest)
        some = 1; /* presence was tested in another vector */
    if (!opt->shared_adds)
        s->stack->stored += vector_add(v, digests, some, fresh);
    else if (!vector_add_shared(s, v, digests, some, fresh))
        return TAMIS_OK;
    if (window)
        layer->last = now;
    if (opt->add_always) /* as published: every add counts, whether it set a bit or not */
        for (size_t i = 0; i < some; i++)
            v->load += !fresh[i], v->count += !fresh[i], s->stack->stored += !fresh[i];
    *done = some;
    return TAMIS_OK;
}

/* One key, and no window. */
static tamis_error add_one_plain(struct set *s, tamis_digest digest, uint8_t *fresh)
{
    uint64_t now = set_now(s);
    uint8_t present = 0;
    size_t done = 0;
    tamis_error e = TAMIS_OK;
    if (looks_first(set_opt(s)))
        filter_bits_have(s, &digest, 1, &present);
    for (*fresh = 0; e == TAMIS_OK && !present && !done;)
        e = add_missing(s, &digest, 1, fresh, &done, now);
    return e;
}

/* Stops where a vector becomes full: later keys must be looked up again, because they may be in it
   now. So a batch has the same result as its keys one by one. */
static tamis_error add_some_plain(struct set *s, const tamis_digest *digests, size_t n,
                                  uint8_t *fresh, size_t *done, uint64_t now)
{
    tamis_digest missing[BATCH];
    uint8_t set[BATCH], who[BATCH] = {0};
    size_t m = 0, added = 0;
    bool window = set_opt(s)->growth == TAMIS_WINDOW;
    const struct layer *newest = newest_of(s);
    tamis_error e = TAMIS_OK;
    find_present(s, digests, n, fresh, now);
    for (size_t i = 0; i < n; i++) {
        if (fresh[i])
            continue;
        missing[m] = digests[i];
        who[m++] = (uint8_t)i;
    }
    if (m)
        e = add_missing(s, missing, m, set, &added, now);
    memset(fresh, 0, n);
    for (size_t i = 0; i < added; i++)
        fresh[who[i]] = set[i];
    *done = added == m ? n : who[added];
    if (window && added && newest_of(s) != newest)
        *done = who[added - 1] + 1u; /* later keys were looked up in another vector */
    return e;
}

static tamis_error add_batch_plain(struct set *s, const tamis_digest *digests, size_t n,
                                   uint8_t *fresh, size_t *done)
{
    uint64_t now = set_now(s);
    bool window = set_opt(s)->growth == TAMIS_WINDOW;
    /* Windows: a key in an older vector is added again, but is not fresh. */
    uint8_t had[BATCH] = {0};
    tamis_error e = window ? growth_turn(s, now) : TAMIS_OK;
    if (window && e == TAMIS_OK)
        filter_bits_have(s, digests, n, had);
    for (*done = 0; e == TAMIS_OK && *done < n;) {
        size_t some;
        e = add_some_plain(s, digests + *done, n - *done, fresh + *done, &some, now);
        *done += some;
    }
    for (size_t i = 0; window && i < *done; i++)
        fresh[i] = fresh[i] && !had[i];
    return e;
}

/* ---- adding: deletable ----------------------------------------------------------------------- */

/* The layer that already has all bits of the digest, or NULL. */
static struct layer *matching(const struct set *s, tamis_digest digest)
{
    const struct layers *layers = set_layers(s);
    struct match match;
    if (!set_match(s, digest, &match))
        return NULL;
    for (uint32_t i = layers_count(layers); i-- > 0;)
        if (match_has(&match, layers->v[i]))
            return layers->l[i];
    return NULL;
}

static tamis_error add_deletable(struct set *s, tamis_digest digest, uint8_t *fresh)
{
    *fresh = set_opt(s)->unique && set_hides(s, &digest);
    if (pending_cancel(&s->stack->more->removals, &digest))
        return TAMIS_OK;
    struct layer *layer = matching(s, digest);
    bool member = layer != NULL;
    tamis_error e = member ? TAMIS_OK : growth_active(s, &layer);
    if (e != TAMIS_OK)
        return e;
    struct vector *v = layer->part[0].vector;
    if (!vector_reserve(v, set_allocator(s)))
        return TAMIS_ENOMEM;
    vector_insert(v, digest);
    s->stack->stored++;
    *fresh = !member;
    return TAMIS_OK;
}

void filter_fetch(const struct set *s, const tamis_digest *digests, size_t n)
{
    const struct layers *layers = set_layers(s);
    uint32_t newest = layers_count(layers) - 1;
    if (n == 1) /* prefetching does not help a single key */
        return;
    vector_fetch(layers->v[newest], digests, n); /* most keys are there, or go there */
    for (uint32_t j = newest; j-- > 0 && layers->v[j]->stride == 1;)
        layers->v[j]->bits.kernel->prefetch(&layers->v[j]->bits, digests, n);
}

static tamis_error add_batch_deletable(struct set *s, const tamis_digest *digests, size_t n,
                                       uint8_t *fresh, size_t *done)
{
    filter_fetch(s, digests, n);
    for (*done = 0; *done < n; (*done)++) {
        tamis_error e = add_deletable(s, digests[*done], &fresh[*done]);
        if (e != TAMIS_OK)
            return e;
    }
    return TAMIS_OK;
}

/* Plain filters of one vector with room: adds directly to it, as many keys as certainly fit. */
static size_t add_run(struct set *s, const tamis_digest *digests, size_t n, uint8_t *fresh)
{
    enum { RUN = 1024 };
    struct vector *v = s->stack->into;
    size_t done = 0;
    if (!v)
        return 0;
    uint8_t unused[RUN] = {0};
    while (done < n) {
        size_t some = n - done < RUN ? n - done : RUN;
        if (v->load + some > v->capacity)
            break;
        s->stack->stored += vector_add(v, digests + done, some, fresh ? fresh + done : unused);
        done += some;
    }
    return done;
}

tamis_error tamis_filter_add_many(tamis_filter *f, const tamis_digest *digests, size_t n,
                                  uint8_t *fresh, size_t *done)
{
    struct set *s = &f->set;
    bool smooth = set_opt(s)->growth == TAMIS_SMOOTH;
    tamis_error e = set_writable(s);
    size_t all = e == TAMIS_OK ? add_run(s, digests, n, fresh) : 0;
    if (e == TAMIS_OK)
        e = set_add_many(s,
                         smooth                  ? smooth_add
                         : set_opt(s)->deletable ? add_batch_deletable
                                                 : add_batch_plain,
                         smooth ? SMOOTH_BATCH : BATCH, digests, n, fresh, &all);
    if (done)
        *done = all;
    return e;
}

/* Apart, so that the common case saves few registers. */
static __attribute__((noinline)) tamis_error add_singly(struct set *s, const void *key, size_t len,
                                                        bool *fresh)
{
    uint8_t new_here = 0;
    tamis_digest digest = family_digest(set_family(s), key, len);
    const struct settings *opt = set_opt(s);
    size_t done;
    tamis_error e = s->read_only                  ? TAMIS_EREADONLY
                    : opt->growth == TAMIS_SMOOTH ? smooth_add(s, &digest, 1, &new_here, &done)
                    : opt->deletable              ? add_deletable(s, digest, &new_here)
                    : opt->growth == TAMIS_WINDOW ? add_batch_plain(s, &digest, 1, &new_here, &done)
                                                  : add_one_plain(s, digest, &new_here);
    if (fresh)
        *fresh = new_here;
    return e;
}

tamis_error tamis_filter_add(tamis_filter *f, const void *key, size_t len, bool *fresh)
{
    struct set *s = &f->set;
    struct vector *v = s->stack->into;
    if (UNLIKELY(!v || s->read_only || vector_watched(v) || v->load >= v->capacity))
        return add_singly(s, key, len, fresh);
    bool new_here = s->size < sizeof *s ? quick_add_of(s, key, len) : s->quick.add(s, key, len);
    v->load += new_here;
    v->count += new_here;
    s->stack->stored += new_here;
    if (fresh)
        *fresh = new_here;
    return TAMIS_OK;
}

tamis_error tamis_filter_expire(tamis_filter *f)
{
    struct set *s = &f->set;
    if (set_opt(s)->growth != TAMIS_WINDOW)
        return TAMIS_EKIND;
    tamis_error e = set_writable(s);
    return e == TAMIS_OK ? growth_turn(s, set_now(s)) : e;
}
