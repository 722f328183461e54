/*
 * Followers: what others see of a copy. One thread takes messages (replica_take.c); any number query. The copy is a
 * whole filter, replaced by the next one in a single store: readers see the old version or the new one. The old one
 * is freed when all readers that were inside have left.
 */
#include "follower.h"

#include "base/err.h"

#define LEASE_DEFAULT 3
#define LEASE_MOST    (UINT64_C(3600) * 1000000000)

/* ---- the state that readers see -------------------------------------------------------------- */

void follower_tell(tamis_follower *f, tamis_filter *copy)
{
    uint64_t words[TOLD_WORDS] = {0}, turn = atomic_load_explicit(&f->turn, memory_order_relaxed);
    memcpy(words, &f->t, sizeof f->t);
    atomic_store_explicit(&f->turn, turn + 1, memory_order_relaxed);
    for (size_t i = 0; i < TOLD_WORDS; i++)
        atomic_store_explicit(&f->told[i], words[i], memory_order_release);
    atomic_store(&f->copy, copy);
    atomic_store_explicit(&f->turn, turn + 2, memory_order_release);
}

/* For a reader inside (readers.h): the copy, or NULL, what is known about it, and how fresh it is. A copy
   becomes current after its version was published, so that no other version is called current. */
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

tamis_error tamis_follower_new(tamis_follower **out, const tamis_follower_options *options,
                               tamis_reason *reason)
{
    static const tamis_follower_options defaults;
    const tamis_follower_options *o = options ? options : &defaults;
    const tamis_allocator *a = o->allocator ? o->allocator : &mem_system;
    struct secrets *given = o->key ? secrets_get(o->key) : NULL;
    tamis_follower *f = mem_new0(a, 1, sizeof *f);
    if (!f || (o->key && !given)) {
        mem_free(a, f, 1, sizeof *f);
        secrets_release(given);
        return fail(reason, TAMIS_ENOMEM, "no memory for a follower");
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
    follower_tell(f, NULL);
    atomic_store(&f->beat, BEAT_DEFAULT); /* until a snapshot states it */
    atomic_store(&f->condition, TAMIS_UNKNOWN);
    *out = f;
    return TAMIS_OK;
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

void follower_join(tamis_follower *f, follower_swap swap, void *context,
                   const _Atomic uint64_t *contact)
{
    f->swap = swap;
    f->swap_context = context;
    f->contact_at = contact;
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

uint64_t follower_lease_span(const tamis_follower *f)
{
    uint64_t lease;
    return __builtin_mul_overflow(atomic_load(&f->beat), f->lease, &lease)
               ? f->lease_most
               : min_u64(lease, f->lease_most);
}

tamis_freshness tamis_follower_freshness(const tamis_follower *f)
{
    int condition = atomic_load(&f->condition);
    uint64_t now = f->clock(f->clock_context);
    if (condition != TAMIS_GONE && now < atomic_load(&f->contested))
        return TAMIS_CONTESTED;
    if (condition != TAMIS_CURRENT)
        return (tamis_freshness)condition;
    /* When the lease ends, or a heartbeat after the last contact, whichever comes first. */
    uint64_t contact = atomic_load(f->contact_at);
    uint64_t lost = contact ? contact + follower_beat(f) : UINT64_MAX;
    return now < min_u64(follower_lease(f), lost) ? TAMIS_CURRENT : TAMIS_STALE;
}

void tamis_follower_contact(tamis_follower *f, uint64_t age)
{
    uint64_t now = f->clock(f->clock_context);
    atomic_store(&f->contact, now > age ? now - age : 1);
}

/* ---- facts and copies ------------------------------------------------------------------------ */

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
        .delay = t.epoch && t.epoch == t.delay_epoch ? t.delay : TAMIS_DELAY_UNKNOWN,
        .lease = follower_lease_span(f),
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
        facts->items = set_stored(&copy->set);
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

tamis_error tamis_follower_filter(tamis_filter **out, const tamis_follower *f, tamis_reason *reason)
{
    uint64_t inside = readers_enter();
    const tamis_filter *copy = atomic_load(&f->copy);
    tamis_error error = copy ? fail_so(reason, tamis_filter_clone(out, copy))
                             : fail(reason, TAMIS_EKIND, "there is no copy yet");
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
        error = envelope_send(e, set_family(&copy->set), whole.data, whole.len, 0, &f->a, write,
                              context);
    else if (error == TAMIS_EIO)
        error = TAMIS_ENOMEM;
    readers_leave(inside);
    sink_free(&whole);
    return error;
}
