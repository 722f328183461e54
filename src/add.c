/* Adding keys: plain filters in batches, deletable ones key by key. */
#include "filter.h"

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
    if (v->changes)
        changes_turn(v->changes, position, true);
    if (turned)
        turned[position >> 6] |= UINT64_C(1) << (position & 63);
}

void vector_add_bits(struct vector *v, const tamis_digest *digests, size_t n, uint8_t *fresh)
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

static void vector_add(tamis_filter *f, struct vector *v, const tamis_digest *digests, size_t n,
                       uint8_t *fresh)
{
    uint64_t added = 0;
    if (v->stride != 1 || v->changes || v->turned.data)
        vector_add_bits(v, digests, n, fresh);
    else if (n == 1)
        fresh[0] = v->bits.kernel->add_one(&v->bits, digests[0]);
    else
        v->bits.kernel->add(&v->bits, digests, n, fresh);
    for (size_t i = 0; i < n; i++)
        added += fresh[i];
    v->load += added;
    v->count += added;
    f->stored += added;
}

/* Beside other threads: the room is claimed first and what was not needed given back, so that the
   capacity holds however they interleave. False if others took the room. */
static bool vector_add_shared(tamis_filter *f, struct vector *v, const tamis_digest *digests,
                              size_t n, uint8_t *fresh)
{
    uint64_t repeated = 0;
    uint64_t before = __atomic_fetch_add(&v->load, n, __ATOMIC_RELAXED);
    if (before + n > v->capacity && !f->set.overfill) {
        __atomic_fetch_sub(&v->load, n, __ATOMIC_RELAXED);
        return false;
    }
    v->bits.kernel->prefetch(&v->bits, digests, n);
    v->bits.kernel->add_shared(&v->bits, digests, n, fresh);
    for (size_t i = 0; i < n; i++)
        repeated += !fresh[i];
    __atomic_fetch_sub(&v->load, repeated, __ATOMIC_RELAXED);
    __atomic_fetch_add(&v->count, n - repeated, __ATOMIC_RELAXED);
    __atomic_fetch_add(&f->stored, n - repeated, __ATOMIC_RELAXED);
    return true;
}

/* How many keys may be added to the vector without looking at each whether it is still room. */
static uint64_t room_in(const tamis_filter *f, const struct vector *v)
{
    uint64_t load = __atomic_load_n(&v->load, __ATOMIC_RELAXED);
    uint64_t room = v->capacity > load ? v->capacity - load : 0;
    if (f->set.items_max == 0 || f->set.growth == TAMIS_FIXED)
        return room;
    uint64_t stored = f->stored;
    return min_u64(room, f->set.items_max > stored ? f->set.items_max - stored : 0);
}

static struct vector *filter_newest(const tamis_filter *f)
{
    const struct stack *stack = filter_stack(f);
    return stack->v[stack_count(stack) - 1];
}

/* Which digests need no adding: all their bits are set in one vector (window: in the newest). */
static void find_present(tamis_filter *f, const tamis_digest *digests, size_t n, uint8_t *present,
                         uint64_t now)
{
    const struct stack *stack = filter_stack(f);
    if (f->set.add_always || f->set.growth == TAMIS_FIXED) {
        memset(present, 0, n);
    } else if (f->set.growth == TAMIS_WINDOW) {
        struct vector *newest = stack->v[stack_count(stack) - 1];
        memset(present, 0, n);
        newest->bits.kernel->prefetch(&newest->bits, digests, n);
        newest->bits.kernel->has(&newest->bits, digests, n, present);
        for (size_t i = 0; i < n; i++)
            if (present[i])
                newest->last = now;
    } else {
        filter_bits_have(f, digests, n, present);
    }
}

/* Adds digests that are in no vector to one with room, as many as it takes. The same key twice is
   noticed by the vector it goes into. */
static tamis_error add_missing(tamis_filter *f, const tamis_digest *digests, size_t n,
                               uint8_t *fresh, size_t *done, uint64_t now)
{
    const struct vector *newest = filter_newest(f);
    struct vector *v;
    tamis_error e = growth_active(f, &v);
    *done = 0;
    bool full = e == TAMIS_EFULL || e == TAMIS_ESPACE;
    if (full && f->set.growth != TAMIS_WINDOW) { /* no reason to refuse a member */
        filter_bits_have(f, digests, 1, fresh);
        *done = fresh[0];
        fresh[0] = 0;
        return *done ? TAMIS_OK : e;
    }
    if (e != TAMIS_OK)
        return e;
    size_t some = (size_t)min_u64(n, max_u64(1, room_in(f, v)));
    if (f->set.growth == TAMIS_WINDOW && v != newest)
        some = 1; /* presence was asked of another vector */
    if (!f->set.shared_adds)
        vector_add(f, v, digests, some, fresh);
    else if (!vector_add_shared(f, v, digests, some, fresh))
        return TAMIS_OK;
    if (f->set.growth == TAMIS_WINDOW)
        v->last = now;
    if (f->set.add_always) /* as published: every add counts, whether it set a bit or not */
        for (size_t i = 0; i < some; i++)
            v->load += !fresh[i], v->count += !fresh[i], f->stored += !fresh[i];
    *done = some;
    return TAMIS_OK;
}

/* One key, and no window. */
static tamis_error add_one_plain(tamis_filter *f, tamis_digest digest, uint8_t *fresh)
{
    uint64_t now = filter_now(f);
    uint8_t present;
    size_t done = 0;
    tamis_error e = TAMIS_OK;
    find_present(f, &digest, 1, &present, now);
    for (*fresh = 0; e == TAMIS_OK && !present && !done;)
        e = add_missing(f, &digest, 1, fresh, &done, now);
    return e;
}

/* Up to where a vector is full: what comes after must be asked for again, since it may be in there
   now. So a batch ends as its keys one by one would. */
static tamis_error add_some_plain(tamis_filter *f, const tamis_digest *digests, size_t n,
                                  uint8_t *fresh, size_t *done, uint64_t now)
{
    tamis_digest missing[BATCH];
    uint8_t set[BATCH], who[BATCH] = {0};
    size_t m = 0, added = 0;
    bool window = f->set.growth == TAMIS_WINDOW;
    const struct vector *newest = filter_newest(f);
    tamis_error e = TAMIS_OK;
    find_present(f, digests, n, fresh, now);
    for (size_t i = 0; i < n; i++) {
        if (fresh[i])
            continue;
        missing[m] = digests[i];
        who[m++] = (uint8_t)i;
    }
    if (m)
        e = add_missing(f, missing, m, set, &added, now);
    memset(fresh, 0, n);
    for (size_t i = 0; i < added; i++)
        fresh[who[i]] = set[i];
    *done = added == m ? n : who[added];
    if (window && added && filter_newest(f) != newest)
        *done = who[added - 1] + 1u; /* what comes after was asked of another vector */
    return e;
}

static tamis_error add_batch_plain(tamis_filter *f, const tamis_digest *digests, size_t n,
                                   uint8_t *fresh, size_t *done)
{
    uint64_t now = filter_now(f);
    bool window = f->set.growth == TAMIS_WINDOW;
    uint8_t had[BATCH] = {
        0}; /* windows: a key in an older vector is added again, but is not fresh */
    tamis_error e = window ? growth_turn(f, now) : TAMIS_OK;
    if (window && e == TAMIS_OK)
        filter_bits_have(f, digests, n, had);
    for (*done = 0; e == TAMIS_OK && *done < n;) {
        size_t some;
        e = add_some_plain(f, digests + *done, n - *done, fresh + *done, &some, now);
        *done += some;
    }
    for (size_t i = 0; window && i < *done; i++)
        fresh[i] = fresh[i] && !had[i];
    return e;
}

/* ---- adding: deletable ----------------------------------------------------------------------- */

/* The vector that already has all bits of the digest, or NULL. */
static struct vector *matching(const tamis_filter *f, tamis_digest digest)
{
    const struct stack *stack = filter_stack(f);
    struct match match;
    if (!filter_match(f, digest, &match))
        return NULL;
    for (uint32_t i = stack_count(stack); i-- > 0;)
        if (match_has(&match, stack->v[i]))
            return stack->v[i];
    return NULL;
}

static tamis_error add_deletable(tamis_filter *f, tamis_digest digest, uint8_t *fresh)
{
    *fresh = f->set.unique && removals_hide(&f->removals, digest);
    if (removals_cancel(&f->removals, digest))
        return TAMIS_OK;
    struct vector *v = matching(f, digest);
    bool member = v != NULL;
    tamis_error e = member ? TAMIS_OK : growth_active(f, &v);
    if (e != TAMIS_OK)
        return e;
    if (!vector_reserve(v, &f->allocator))
        return TAMIS_ENOMEM;
    vector_insert(v, digest);
    f->stored++;
    v->last = filter_now(f);
    *fresh = !member;
    return TAMIS_OK;
}

void filter_fetch(const tamis_filter *f, const tamis_digest *digests, size_t n)
{
    const struct stack *stack = filter_stack(f);
    uint32_t newest = stack_count(stack) - 1;
    if (n == 1) /* what one key touches is on its way soon enough */
        return;
    vector_fetch(stack->v[newest], digests, n); /* most keys are there, or go there */
    for (uint32_t j = newest; j-- > 0 && stack->v[j]->stride == 1;)
        stack->v[j]->bits.kernel->prefetch(&stack->v[j]->bits, digests, n);
}

static tamis_error add_batch_deletable(tamis_filter *f, const tamis_digest *digests, size_t n,
                                       uint8_t *fresh, size_t *done)
{
    filter_fetch(f, digests, n);
    for (*done = 0; *done < n; (*done)++) {
        tamis_error e = add_deletable(f, digests[*done], &fresh[*done]);
        if (e != TAMIS_OK)
            return e;
    }
    return TAMIS_OK;
}

/* Plain fixed filters with room: straight into the vector, as far as it certainly fits. */
static size_t add_run(tamis_filter *f, const tamis_digest *digests, size_t n, uint8_t *fresh)
{
    enum { RUN = 1024 };
    if (f->set.growth != TAMIS_FIXED || f->set.deletable || f->set.shared_adds)
        return 0;
    uint8_t unused[RUN] = {0};
    struct vector *v = filter_stack(f)->v[0];
    size_t done = 0;
    while (done < n) {
        size_t some = n - done < RUN ? n - done : RUN;
        if (v->load + some > v->capacity)
            break;
        vector_add(f, v, digests + done, some, fresh ? fresh + done : unused);
        done += some;
    }
    return done;
}

tamis_error tamis_filter_add_many(tamis_filter *f, const tamis_digest *digests, size_t n,
                                  uint8_t *fresh, size_t *done)
{
    uint8_t unused[BATCH] = {0};
    tamis_error e = filter_writable(f);
    size_t all = e == TAMIS_OK ? add_run(f, digests, n, fresh) : 0;
    while (e == TAMIS_OK && all < n) {
        size_t some = n - all < BATCH ? n - all : BATCH, added;
        uint8_t *to = fresh ? fresh + all : unused;
        e = f->set.deletable ? add_batch_deletable(f, digests + all, some, to, &added)
                             : add_batch_plain(f, digests + all, some, to, &added);
        all += e == TAMIS_OK ? some : added;
    }
    if (done)
        *done = all;
    return e;
}

tamis_error tamis_filter_add(tamis_filter *f, const void *key, size_t len, bool *fresh)
{
    uint8_t new_here = 0;
    tamis_error e = TAMIS_OK;
    struct vector *v = f->into;
    if (LIKELY(v && !f->read_only && !v->changes && !v->turned.data && v->load < v->capacity)) {
        new_here = f->quick.add(&f->quick, key, len); /* the common case, on the shortest path */
        v->load += new_here;
        v->count += new_here;
        f->stored += new_here;
    } else {
        tamis_digest digest = family_digest(&f->family, key, len);
        bool plain = !f->set.deletable && f->set.growth != TAMIS_WINDOW && !f->read_only;
        e = plain ? add_one_plain(f, digest, &new_here)
                  : tamis_filter_add_many(f, &digest, 1, &new_here, NULL);
    }
    if (fresh)
        *fresh = new_here;
    return e;
}

tamis_error tamis_filter_expire(tamis_filter *f)
{
    if (f->set.growth != TAMIS_WINDOW)
        return TAMIS_EKIND;
    tamis_error e = filter_writable(f);
    return e == TAMIS_OK ? growth_turn(f, filter_now(f)) : e;
}
