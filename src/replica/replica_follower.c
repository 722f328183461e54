/*
 * Followers. One thread takes messages; any number query. The copy is a whole filter, replaced by
 * the next one in a single store: readers see the old version or the new one. The old one is freed
 * when all readers that were inside have left.
 *
 * Without a shared clock, nobody can tell how old a message is. But the clocks run at the same
 * speed: the message that took the least time from the origin's clock to ours is the yardstick, and
 * a message that took longer is late by the difference. A message that waited somewhere (in a
 * server that was stopped, in a buffer) does not renew the lease for the time it waited.
 */
#include "replica.h"

#include "base/err.h"
#include "os/readers.h"
#include "delta/patch.h"
#include "tamis/replica.h"

#define LEASE_DEFAULT 3
#define LEASE_MOST    (UINT64_C(3600) * 1000000000)

struct old_copy {
    struct retired retired;
    tamis_filter *filter;
};

/* From the clock of one run of the origin to ours: the smallest difference in this span and in
   the previous one. A span lasts at least a lease by both clocks: a burst after a stall does not
   end it, and clocks that drift apart by a second per day are off by less than a millisecond. */
struct delays {
    uint64_t epoch;
    int64_t least[2];
    uint64_t here, there; /* clocks when the span began */
};

/* What is known about the origin; together with the copy it is a version. */
struct told {
    struct envelope last;                          /* the last one accepted */
    uint64_t epoch, version, newest_epoch, newest; /* held, and known */
    uint64_t heard;                                /* clock when the last one was sent */
    tamis_targets targets;                         /* from the last snapshot */
    uint64_t applied, refused, repeated, bytes;
    bool needs_snapshot;
};
#define TOLD_WORDS ((sizeof(struct told) + 7) / 8)

struct tamis_follower {
    tamis_allocator a;
    tamis_filter *_Atomic copy;
    _Atomic uint64_t turn; /* odd while these words and the copy change together */
    _Atomic uint64_t told[TOLD_WORDS];
    _Atomic int condition;              /* a tamis_freshness, without regard to the lease */
    _Atomic uint64_t expires;           /* clock at which the lease expires */
    _Atomic uint64_t contact;           /* at which the carrier was reached; 0: unknown */
    const _Atomic uint64_t *contact_at; /* the one that counts: this one, or its directory's */
    _Atomic uint64_t contested;         /* until when another origin of its name counts as alive */
    _Atomic uint64_t beat;
    tamis_clock clock;
    void *clock_context;
    uint32_t lease;
    uint64_t lease_most;
    struct secrets *given; /* of a key for snapshots without theirs, or NULL */
    /* Only for the thread that takes messages. */
    struct retired *retired;
    struct told t;
    struct delays delays, rival; /* of the newest run, and of the previous one */
    uint64_t taken_over;         /* clock when the newest run was first heard of */
    struct envelope held;        /* the message whose parts are being collected; parts 0: none */
    struct sink parts;
    follower_swap swap; /* of a directory, or NULL */
    void *swap_context;
    struct retired gone; /* from a directory whose readers may be in it */
};

/* ---- what others see ------------------------------------------------------------------------- */

/* Publishes the copy, and what is known from now on: other threads see both as before or both as
   after. */
static void tell(tamis_follower *f, tamis_filter *copy)
{
    uint64_t words[TOLD_WORDS] = {0}, turn = atomic_load_explicit(&f->turn, memory_order_relaxed);
    memcpy(words, &f->t, sizeof f->t);
    atomic_store_explicit(&f->turn, turn + 1, memory_order_relaxed);
    for (size_t i = 0; i < TOLD_WORDS; i++)
        atomic_store_explicit(&f->told[i], words[i], memory_order_release);
    atomic_store(&f->copy, copy);
    atomic_store_explicit(&f->turn, turn + 2, memory_order_release);
}

/* For a reader inside (readers.h): the copy, or NULL, what is known about it, and how fresh it
   is. A copy becomes current after its version was published, so that no other version is called
   current. */
static const tamis_filter *told_of(const tamis_follower *f, struct told *t,
                                   tamis_freshness *freshness)
{
    uint64_t words[TOLD_WORDS] = {0}, turn;
    const tamis_filter *copy;
    do {
        turn = atomic_load_explicit(&f->turn, memory_order_acquire);
        for (size_t i = 0; i < TOLD_WORDS; i++)
            words[i] = atomic_load_explicit(&f->told[i], memory_order_acquire);
        copy = atomic_load(&f->copy);
        *freshness = tamis_follower_freshness(f);
    } while (turn % 2 || turn != atomic_load_explicit(&f->turn, memory_order_acquire));
    memcpy(t, words, sizeof *t);
    return copy;
}

/* ---- making ---------------------------------------------------------------------------------- */

tamis_error tamis_follower_new(tamis_follower **out, const tamis_follower_options *options)
{
    static const tamis_follower_options defaults;
    const tamis_follower_options *o = options ? options : &defaults;
    const tamis_allocator *a = o->allocator ? o->allocator : &mem_system;
    struct secrets *given = o->key ? secrets_get(o->key) : NULL;
    tamis_follower *f = mem_new0(a, 1, sizeof *f);
    if (!f || (o->key && !given)) {
        mem_free(a, f, 1, sizeof *f);
        secrets_release(given);
        return TAMIS_ENOMEM;
    }
    f->given = given;
    f->contact_at = &f->contact;
    f->a = *a;
    f->clock = o->clock ? o->clock : clock_steady;
    f->clock_context = o->clock_context;
    f->lease = o->lease ? o->lease : LEASE_DEFAULT;
    f->lease_most = o->lease_most ? o->lease_most : LEASE_MOST;
    f->parts.a = &f->a;
    f->t.needs_snapshot = true;
    tell(f, NULL);
    atomic_store(&f->beat, BEAT_DEFAULT); /* until a snapshot tells */
    atomic_store(&f->condition, TAMIS_UNKNOWN);
    *out = f;
    return TAMIS_OK;
}

static void dispose(struct retired *retired, const tamis_allocator *a)
{
    struct old_copy *old = PART_OF(retired, struct old_copy, retired);
    tamis_filter_free(old->filter);
    mem_free(a, old, 1, sizeof *old);
}

void tamis_follower_free(tamis_follower *f)
{
    if (!f)
        return;
    retired_free(&f->retired, true, &f->a);
    tamis_filter_free(atomic_load(&f->copy));
    sink_free(&f->parts);
    tamis_allocator a = f->a;
    secrets_release(f->given);
    mem_free(&a, f, 1, sizeof *f);
}

/* ---- asking ---------------------------------------------------------------------------------- */

bool tamis_follower_has(const tamis_follower *f, const void *key, size_t len)
{
    uint64_t inside = readers_enter();
    const tamis_filter *copy = atomic_load(&f->copy);
    bool found = !copy || tamis_filter_has(copy, key, len);
    readers_leave(inside);
    return found;
}

void tamis_follower_has_many(const tamis_follower *f, const tamis_key *keys, size_t n,
                             uint8_t *found)
{
    enum { RUN = 64 };
    tamis_digest digests[RUN];
    uint64_t inside = readers_enter();
    const tamis_filter *copy = atomic_load(&f->copy);
    if (!copy)
        memset(found, 1, n);
    for (size_t i = 0; copy && i < n; i += RUN) {
        size_t some = n - i < RUN ? n - i : RUN;
        tamis_filter_digest_many(copy, keys + i, some, digests);
        tamis_filter_has_many(copy, digests, some, found + i);
    }
    readers_leave(inside);
}

static void follower_dispose(struct retired *retired, const tamis_allocator *a)
{
    (void)a;
    tamis_follower_free(PART_OF(retired, struct tamis_follower, gone));
}

void follower_retire(tamis_follower *f, struct retired **list)
{
    retire(list, &f->gone, follower_dispose);
}

void follower_watch(tamis_follower *f, follower_swap swap, void *context)
{
    f->swap = swap;
    f->swap_context = context;
}

const tamis_filter *follower_copy(const tamis_follower *f)
{
    return atomic_load(&f->copy);
}

uint64_t follower_lease(const tamis_follower *f)
{
    bool contested = f->clock(f->clock_context) < atomic_load(&f->contested);
    bool current = atomic_load(&f->condition) == TAMIS_CURRENT;
    return current && !contested ? atomic_load(&f->expires) : 0;
}

uint64_t follower_beat(const tamis_follower *f)
{
    return min_u64(atomic_load(&f->beat), f->lease_most);
}

/* When the lease ends, or a heartbeat after the last contact, whichever comes first. */
static uint64_t follower_expires(const tamis_follower *f)
{
    uint64_t expires = follower_lease(f), contact = atomic_load(f->contact_at);
    return contact ? min_u64(expires, contact + follower_beat(f)) : expires;
}

tamis_freshness tamis_follower_freshness(const tamis_follower *f)
{
    int condition = atomic_load(&f->condition);
    uint64_t now = f->clock(f->clock_context);
    if (condition != TAMIS_GONE && now < atomic_load(&f->contested))
        return TAMIS_CONTESTED;
    if (condition != TAMIS_CURRENT)
        return (tamis_freshness)condition;
    return now < follower_expires(f) ? TAMIS_CURRENT : TAMIS_STALE;
}

void follower_share_contact(tamis_follower *f, const _Atomic uint64_t *contact)
{
    f->contact_at = contact;
}

void tamis_follower_contact(tamis_follower *f, uint64_t age)
{
    uint64_t now = f->clock(f->clock_context);
    atomic_store(&f->contact, now > age ? now - age : 1);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static uint64_t lease_of(const tamis_follower *f)
{
    uint64_t lease;
    return __builtin_mul_overflow(atomic_load(&f->beat), f->lease, &lease)
               ? f->lease_most
               : min_u64(lease, f->lease_most);
}

/* How much later it arrived than the fastest. Clocks may have any zero: the differences may
   wrap. */
static uint64_t lateness(const tamis_follower *f, struct delays *d, const tamis_message *m,
                         uint64_t now)
{
    uint64_t span = lease_of(f);
    int64_t delay = (int64_t)(now - m->time);
    if (d->epoch != m->epoch)
        *d = (struct delays){m->epoch, {delay, delay}, now, m->time};
    if (now - d->here >= span && (int64_t)(m->time - d->there) >= (int64_t)span) {
        d->least[1] = d->least[0];
        d->least[0] = delay;
        d->here = now;
        d->there = m->time;
    }
    if (delay < d->least[0])
        d->least[0] = delay;
    return (uint64_t)delay - (uint64_t)(d->least[0] < d->least[1] ? d->least[0] : d->least[1]);
}

/* A message of an earlier run: if it was sent after the next one began, two origins have the
   same name. For the run before the newest that time is known; for others it counts as now. */
static void hear_rival(tamis_follower *f, const tamis_message *m)
{
    uint64_t now = f->clock(f->clock_context), late = 0;
    if (m->epoch == f->rival.epoch)
        late = lateness(f, &f->rival, m, now);
    if (now - late > f->taken_over && late < lease_of(f))
        atomic_store(&f->contested, now + lease_of(f) - late);
}

/* Its age, by the carrier or by its own time, whichever is greater. */
static uint64_t age_of(tamis_follower *f, const tamis_message *m, uint64_t age)
{
    uint64_t now = f->clock(f->clock_context);
    if (m->epoch != f->delays.epoch) {
        f->rival = f->delays;
        f->taken_over = now;
    }
    return max_u64(age, lateness(f, &f->delays, m, now));
}

static void settle(tamis_follower *f)
{
    bool newest = f->t.epoch == f->t.newest_epoch && f->t.version >= f->t.newest;
    int condition = TAMIS_CURRENT;
    if (f->t.last.m.type == TAMIS_FAREWELL)
        condition = TAMIS_GONE;
    else if (!atomic_load(&f->copy))
        condition = TAMIS_UNKNOWN;
    else if (!newest)
        condition = TAMIS_BEHIND;
    if (condition == TAMIS_CURRENT || condition == TAMIS_GONE)
        f->t.needs_snapshot = false;
    atomic_store(&f->condition, condition);
}

/* A message of the origin that is not older than what is known: the lease starts again, unless
   another was sent later (a snapshot fetched after a heartbeat). */
static void hear(tamis_follower *f, const struct envelope *e, uint64_t age)
{
    if (e->m.type == TAMIS_SNAPSHOT) {
        atomic_store(&f->beat, e->m.beat);
        f->t.targets = e->m.targets;
    }
    uint64_t now = f->clock(f->clock_context), lease = lease_of(f), expires = 0;
    uint64_t heard = now > age ? now - age : 0;
    bool other = e->m.epoch != f->t.newest_epoch;
    if (age < lease)
        expires = now > UINT64_MAX - (lease - age) ? UINT64_MAX : now + (lease - age);
    if (other || e->m.version > f->t.newest) {
        f->t.newest_epoch = e->m.epoch;
        f->t.newest = e->m.version;
    }
    if (!other && heard < f->t.heard)
        return;
    f->t.heard = heard;
    f->t.last = *e;
    f->t.last.part = f->t.last.data = NULL;
    settle(f); /* before the lease starts again: it must not be that of a copy that is behind */
    atomic_store(&f->expires, expires);
}

static tamis_error gap(tamis_follower *f, const struct envelope *e, uint64_t age,
                       tamis_reason *reason)
{
    hear(f, e, age);
    f->t.needs_snapshot = true;
    settle(f);
    return fail(reason, TAMIS_EBASE,
                "%s: made for version %llu of epoch %llu, here is version %llu of epoch %llu: a "
                "snapshot is needed",
                e->m.owner, (unsigned long long)(e->m.from ? e->m.from : e->m.version),
                (unsigned long long)e->m.epoch, (unsigned long long)f->t.version,
                (unsigned long long)f->t.epoch);
}

/* Collects the parts; *whole is set when they are complete. */
static tamis_error gather(tamis_follower *f, const struct envelope *e, struct sink *whole,
                          tamis_taken *taken, tamis_reason *reason)
{
    const tamis_message *m = &e->m, *h = &f->held.m;
    bool same = h->parts == m->parts && h->type == m->type && h->epoch == m->epoch &&
                h->from == m->from && h->version == m->version &&
                f->held.whole_len == e->whole_len && f->held.whole_sum == e->whole_sum;
    if (same && m->part < h->part) {
        *taken = TAMIS_REPEATED;
        return TAMIS_OK;
    }
    if (m->part != (same ? h->part : 0))
        return fail(reason, TAMIS_EBASE,
                    "%s: part %u of %u of version %llu came without those "
                    "before it",
                    m->owner, m->part + 1, m->parts, (unsigned long long)m->version);
    if (!same) {
        f->held = *e;
        f->parts.len = 0;
    }
    if (e->part_len > e->whole_len - f->parts.len)
        return fail(reason, TAMIS_EFORMAT, "%s: the parts are longer than the whole", m->owner);
    if (sink_write(&f->parts, e->part, (size_t)e->part_len) != 0)
        return fail(reason, TAMIS_ENOMEM, "no memory for the parts of a message");
    f->held.m.part = m->part + 1;
    *taken = TAMIS_HELD;
    if (f->held.m.part < m->parts)
        return TAMIS_OK;
    *whole = f->parts;
    f->parts = (struct sink){.a = &f->a};
    f->held.m.parts = 0;
    return TAMIS_OK;
}

static tamis_error decode_snapshot(tamis_follower *f, const struct envelope *e,
                                   const struct sink *whole, tamis_filter **made,
                                   tamis_reason *reason)
{
    tamis_open_options options = {.key = f->given ? f->given->key : NULL, .allocator = &f->a};
    tamis_error error = tamis_filter_decode(made, whole->data, whole->len, &options, reason);
    if (error != TAMIS_OK)
        return error;
    if ((*made)->set.bits_only && family_tag(&(*made)->set.family) == e->family)
        return TAMIS_OK;
    tamis_filter_free(*made);
    return fail(reason, TAMIS_EFORMAT, "%s: the snapshot is not what its message says", e->m.owner);
}

/* The next version, from the whole message; everything that can fail comes before the swap. */
static tamis_error apply(tamis_follower *f, const struct envelope *e, const struct sink *whole,
                         tamis_reason *reason)
{
    tamis_filter *made = NULL, *old = atomic_load(&f->copy);
    struct set *patched;
    if (whole->len != e->whole_len || hash_of(whole->data, whole->len) != e->whole_sum)
        return fail(reason, TAMIS_ECHECKSUM, "%s: the parts do not make the whole", e->m.owner);
    struct old_copy *node = mem_new0(&f->a, 1, sizeof *node);
    tamis_error error = node ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory for a version");
    if (error == TAMIS_OK)
        error = e->m.type == TAMIS_SNAPSHOT
                    ? decode_snapshot(f, e, whole, &made, reason)
                    : patch_apply(&old->set, whole->data, whole->len, &patched, reason);
    if (error == TAMIS_OK && !made)
        made = as_filter(patched);
    if (error != TAMIS_OK) {
        mem_free(&f->a, node, 1, sizeof *node);
        return error;
    }
    if (f->swap)
        f->swap(f->swap_context, old, made);
    f->t.epoch = e->m.epoch;
    f->t.version = e->m.version;
    f->t.applied++;
    tell(f, made);
    if (old) {
        node->filter = old;
        retire(&f->retired, &node->retired, dispose);
    } else {
        mem_free(&f->a, node, 1, sizeof *node);
    }
    retired_free(&f->retired, false, &f->a);
    return TAMIS_OK;
}

static tamis_error take_carried(tamis_follower *f, const struct envelope *e, uint64_t age,
                                tamis_taken *taken, tamis_reason *reason)
{
    struct sink whole = {
        .a = &f->a, .data = (uint8_t *)(uintptr_t)e->part, .len = (size_t)e->part_len};
    bool one = e->m.parts == 1;
    tamis_error error = TAMIS_OK;
    if (!one) {
        whole = (struct sink){.a = &f->a};
        error = gather(f, e, &whole, taken, reason);
        if (error == TAMIS_OK && !whole.data) {
            if (*taken == TAMIS_HELD)
                hear(f, e, age), settle(f);
            return TAMIS_OK;
        }
    }
    if (error == TAMIS_OK)
        error = apply(f, e, &whole, reason);
    if (!one)
        sink_free(&whole);
    hear(f, e, age);
    if (error == TAMIS_OK)
        *taken = TAMIS_APPLIED;
    else
        f->t.needs_snapshot = true; /* such a version exists, but cannot be reached this way */
    settle(f);
    return error;
}

/* Is the run of the origin that was heard of last still going on, whether or not the copy
   belongs to it? */
static bool origin_lives(const tamis_follower *f)
{
    return f->clock(f->clock_context) < atomic_load(&f->expires) &&
           atomic_load(&f->condition) != TAMIS_GONE;
}

static tamis_error take(tamis_follower *f, const struct envelope *e, uint64_t age,
                        tamis_taken *taken, tamis_reason *reason)
{
    const tamis_message *m = &e->m;
    const tamis_filter *copy = atomic_load(&f->copy);
    if (f->t.last.m.owner[0] && strcmp(f->t.last.m.owner, m->owner) != 0)
        return fail(reason, TAMIS_EFAMILY, "a message of %.60s, this is a copy of %.60s", m->owner,
                    f->t.last.m.owner);
    if (f->given && !envelope_sealed_by(e, f->given->key))
        return fail(reason, TAMIS_EFAMILY,
                    e->sealed ? "%s: not sealed with the key that was given"
                              : "%s: not sealed: published with its key, or forged",
                    m->owner);
    if (m->epoch < f->t.newest_epoch && origin_lives(f)) {
        hear_rival(f, m);
        return fail(reason, TAMIS_EBASE, "%s: of epoch %llu, which ended before epoch %llu",
                    m->owner, (unsigned long long)m->epoch, (unsigned long long)f->t.newest_epoch);
    }
    bool here = copy && m->epoch == f->t.epoch;
    if (here && e->family != family_tag(&copy->set.family))
        return fail(reason, TAMIS_EFAMILY, "%s: the message is of another family", m->owner);
    age = age_of(f, m, age);
    bool old = here && (m->type == TAMIS_HEARTBEAT || m->type == TAMIS_FAREWELL
                            ? m->version < f->t.version
                            : m->version <= f->t.version);
    if (old && !(m->type == TAMIS_SNAPSHOT && m->version == f->t.version)) {
        *taken = TAMIS_REPEATED;
        return TAMIS_OK;
    }
    if (m->type == TAMIS_SNAPSHOT) {
        if (!old)
            return take_carried(f, e, age, taken, reason);
        hear(f, e, age); /* exactly the version that is held: as good as a heartbeat */
        settle(f);
        *taken = TAMIS_REPEATED;
        return TAMIS_OK;
    }
    if (m->type != TAMIS_FAREWELL &&
        (!here || (m->type == TAMIS_DELTA ? m->from : m->version) != f->t.version))
        return gap(f, e, age, reason);
    if (m->type == TAMIS_DELTA)
        return take_carried(f, e, age, taken, reason);
    hear(f, e, age);
    settle(f);
    *taken = TAMIS_HEARD;
    return TAMIS_OK;
}

tamis_error follower_take(tamis_follower *f, const struct envelope *e, size_t len, uint64_t age,
                          tamis_taken *taken, tamis_reason *reason)
{
    f->t.bytes += len;
    *taken = TAMIS_REFUSED;
    retired_free(&f->retired, false, &f->a);
    tamis_error error = take(f, e, age, taken, reason);
    if (error != TAMIS_OK)
        *taken = TAMIS_REFUSED;
    f->t.refused += error != TAMIS_OK;
    f->t.repeated += *taken == TAMIS_REPEATED;
    tell(f, atomic_load(&f->copy));
    return error;
}

tamis_error tamis_follower_take(tamis_follower *f, const void *message, size_t len, uint64_t age,
                                tamis_taken *taken, tamis_reason *reason)
{
    struct envelope e;
    tamis_taken outcome = TAMIS_REFUSED;
    tamis_error error = envelope_open(&e, message, len, reason);
    if (error == TAMIS_OK)
        error = follower_take(f, &e, len, age, &outcome, reason);
    else
        f->t.bytes += len, f->t.refused++, tell(f, atomic_load(&f->copy));
    if (taken)
        *taken = outcome;
    return error;
}

/* ---- what is known --------------------------------------------------------------------------- */

void tamis_follower_info(const tamis_follower *f, tamis_follower_facts *facts)
{
    struct told t;
    tamis_freshness freshness;
    uint64_t inside = readers_enter();
    const tamis_filter *copy = told_of(f, &t, &freshness);
    uint64_t now = f->clock(f->clock_context);
    *facts = (tamis_follower_facts){
        .freshness = freshness,
        .needs_snapshot = t.needs_snapshot,
        .epoch = t.epoch,
        .version = t.version,
        .newest = t.newest,
        .age = now > t.heard ? now - t.heard : 0,
        .lease = lease_of(f),
        .beat = follower_beat(f),
        .targets = t.targets,
        .estimate = t.last.m.estimate,
        .applied = t.applied,
        .refused = t.refused,
        .repeated = t.repeated,
        .bytes = t.bytes,
    };
    memcpy(facts->owner, t.last.m.owner, sizeof facts->owner);
    if (copy) {
        const struct layers *layers = set_layers(&copy->set);
        facts->items = copy->set.stored;
        for (uint32_t i = 0; i < layers_count(layers); i++)
            facts->bits += vector_positions_total(layers->v[i]);
        tamis_estimate *s = &facts->estimate; /* what messages leave out */
        s->weighted = t.targets.w_positive * s->positive + t.targets.w_disagree * s->disagree;
        s->dirty = facts->bits ? (double)(s->set + s->cleared) / (double)facts->bits : 0;
        s->unreachable =
            t.targets.false_rate >= 0 && t.targets.w_positive * s->own > t.targets.false_rate;
    }
    readers_leave(inside);
}

tamis_error tamis_follower_filter(const tamis_follower *f, tamis_filter **out)
{
    uint64_t inside = readers_enter();
    const tamis_filter *copy = atomic_load(&f->copy);
    tamis_error error = copy ? tamis_filter_clone(out, copy) : TAMIS_EKIND;
    readers_leave(inside);
    return error;
}

tamis_error tamis_follower_encode(const tamis_follower *f, tamis_write write, void *context)
{
    struct told t;
    tamis_freshness freshness;
    uint64_t inside = readers_enter();
    const tamis_filter *copy = told_of(f, &t, &freshness);
    struct sink whole = {.a = &f->a};
    struct envelope *e = &t.last;
    tamis_error error = copy ? TAMIS_OK : TAMIS_EKIND;
    e->m.type = TAMIS_SNAPSHOT;
    e->m.epoch = t.epoch;
    e->m.version = t.version;
    e->m.from = 0;
    e->m.beat = atomic_load(&f->beat);
    e->m.targets = t.targets;
    e->sealed = f->given != NULL;
    if (copy)
        error = tamis_filter_encode(copy, TAMIS_SAVE_BITS_ONLY, sink_write, &whole);
    if (error == TAMIS_OK)
        error =
            envelope_send(e, &copy->set.family, whole.data, whole.len, 0, &f->a, write, context);
    else if (error == TAMIS_EIO)
        error = TAMIS_ENOMEM;
    readers_leave(inside);
    sink_free(&whole);
    return error;
}
