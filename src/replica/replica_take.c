/*
 * Takes messages, in one thread of a follower.
 *
 * Without a shared clock, nobody can tell how old a message is. But the clocks run at the same speed: the message that
 * took the least time from the origin's clock to ours is the yardstick, and a message that took longer is late by the
 * difference. A message that waited somewhere (in a stopped server, in a buffer) does not renew the lease for the time
 * that it waited.
 */
#include "follower.h"

#include "base/err.h"
#include "delta/patch.h"

struct old_copy {
    struct retired retired;
    tamis_filter *filter;
};

static void dispose(struct retired *retired, const tamis_allocator *a)
{
    struct old_copy *old = PART_OF(retired, struct old_copy, retired);
    tamis_filter_free(old->filter);
    mem_free(a, old, 1, sizeof *old);
}

/* How much later it arrived than the fastest. Clocks may have any zero: the differences may wrap. */
static uint64_t lateness(const tamis_follower *f, struct delays *d, const tamis_message *m,
                         uint64_t now)
{
    uint64_t span = follower_lease_span(f);
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
    return (uint64_t)delay - (uint64_t)min_i64(d->least[0], d->least[1]);
}

/* A message of an earlier run: if it was sent after the next one began, two origins have the
   same name. For the run before the newest that time is known; for others it counts as now. */
static void hear_rival(tamis_follower *f, const tamis_message *m)
{
    uint64_t now = f->clock(f->clock_context), late = 0;
    if (m->epoch == f->rival.epoch)
        late = lateness(f, &f->rival, m, now);
    if (now - late > f->taken_over && late < follower_lease_span(f))
        atomic_store(&f->contested, now + follower_lease_span(f) - late);
}

/* Its age, by the carrier or by its own time, whichever is greater. What an earlier run left behind, in a server that
   was restored from older data, does not touch the yardstick of the newest. */
static uint64_t age_of(tamis_follower *f, const tamis_message *m, uint64_t age)
{
    if (m->epoch > f->delays.epoch) {
        f->rival = f->delays;
        f->taken_over = f->arrived;
    }
    struct delays *d = m->epoch < f->delays.epoch ? &f->rival : &f->delays;
    age = max_u64(age, lateness(f, d, m, f->arrived));
    f->t.delay_epoch = m->epoch;
    f->t.delay = min_i64(d->least[0], d->least[1]);
    return age;
}

void follower_expect(tamis_follower *f, int64_t delay)
{
    uint64_t now = f->clock(f->clock_context);
    f->t.delay_epoch = f->t.newest_epoch;
    f->t.delay = delay;
    if (delay != TAMIS_DELAY_UNKNOWN)
        f->delays = (struct delays){f->t.newest_epoch, {delay, delay}, now, now - (uint64_t)delay};
    follower_tell(f, atomic_load(&f->copy));
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

/* A message of the origin that is not older than the copy. The lease is as long as the latest snapshot says, and starts when
   the message was sent that was sent last: messages come again with a snapshot that was fetched, and their ages, measured
   again, may be greater than before. */
static void hear(tamis_follower *f, const struct envelope *e, uint64_t age)
{
    if (e->m.type == TAMIS_SNAPSHOT) {
        atomic_store(&f->beat, e->m.beat);
        f->t.targets = e->m.targets;
    }
    uint64_t now = f->arrived, lease = follower_lease_span(f), expires = 0;
    uint64_t heard = now > age ? now - age : 0;
    bool other = e->m.epoch != f->t.newest_epoch;
    if (other || e->m.version > f->t.newest) {
        f->t.newest_epoch = e->m.epoch;
        f->t.newest = e->m.version;
    }
    if (other || heard >= f->t.heard || e->m.type == TAMIS_FAREWELL) { /* the last of its run */
        f->t.heard = heard;
        f->t.last = *e;
        f->t.last.part = f->t.last.data = NULL;
    } else {
        age = now - f->t.heard;
    }
    if (age < lease)
        expires = now > UINT64_MAX - (lease - age) ? UINT64_MAX : now + (lease - age);
    settle(f); /* before the lease starts again: it must not be that of a copy that is behind */
    atomic_store(&f->expires, expires);
}

static tamis_error gap(tamis_follower *f, const struct envelope *e, uint64_t age,
                       tamis_reason *reason)
{
    hear(f, e, age);
    f->t.needs_snapshot = true;
    settle(f);
    return fail(
        reason, TAMIS_EBASE,
        "%s: made for version %llu of epoch %llu, but the copy has version %llu of epoch %llu: a "
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
                    "%s: part %u of %u of version %llu arrived without those before it", m->owner,
                    m->part + 1, m->parts, (unsigned long long)m->version);
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
    if ((*made)->set.bits_only && family_tag(set_family(&(*made)->set)) == e->family)
        return TAMIS_OK;
    tamis_filter_free(*made);
    return fail(reason, TAMIS_EFORMAT, "%s: the snapshot does not match its message", e->m.owner);
}

/* The next version, from the whole message; everything that can fail comes before the swap. */
static tamis_error apply(tamis_follower *f, const struct envelope *e, const struct sink *whole,
                         tamis_reason *reason)
{
    tamis_filter *made = NULL, *old = atomic_load(&f->copy);
    struct set *patched;
    if (whole->len != e->whole_len || hash_of(whole->data, whole->len) != e->whole_sum)
        return fail(reason, TAMIS_ECHECKSUM, "%s: the parts do not match the whole", e->m.owner);
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
    follower_tell(f, made);
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
                hear(f, e, age);
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

static tamis_error take(tamis_follower *f, const struct envelope *e, uint64_t age,
                        tamis_taken *taken, tamis_reason *reason)
{
    const tamis_message *m = &e->m;
    const tamis_filter *copy = atomic_load(&f->copy);
    if (f->t.last.m.owner[0] && strcmp(f->t.last.m.owner, m->owner) != 0)
        return fail(reason, TAMIS_EFAMILY, "the message is from %.60s, but this is a copy of %.60s",
                    m->owner, f->t.last.m.owner);
    if (f->given && !envelope_sealed_by(e, f->given->key))
        return fail(reason, TAMIS_EFAMILY,
                    e->sealed
                        ? "%s: the message is not sealed with the given key"
                        : "%s: the message is not sealed: it was published with its key, or forged",
                    m->owner);
    /* The run that was heard of last is still going on, whether or not the copy belongs to it. */
    if (m->epoch < f->t.newest_epoch && f->clock(f->clock_context) < atomic_load(&f->expires) &&
        atomic_load(&f->condition) != TAMIS_GONE) {
        hear_rival(f, m);
        return fail(reason, TAMIS_EBASE,
                    "%s: the message is of epoch %llu, which ended before epoch %llu", m->owner,
                    (unsigned long long)m->epoch, (unsigned long long)f->t.newest_epoch);
    }
    bool here = copy && m->epoch == f->t.epoch;
    if (here && e->family != family_tag(set_family(&copy->set)))
        return fail(reason, TAMIS_EFAMILY, "%s: the message is of another family", m->owner);
    age = age_of(f, m, age);
    bool changes = m->type == TAMIS_SNAPSHOT || m->type == TAMIS_DELTA;
    if (here && m->version < f->t.version) {
        *taken = TAMIS_REPEATED;
        return TAMIS_OK;
    }
    if (here && m->version == f->t.version && changes) { /* as good as a heartbeat */
        hear(f, e, age);
        *taken = TAMIS_REPEATED;
        return TAMIS_OK;
    }
    if (m->type == TAMIS_SNAPSHOT)
        return take_carried(f, e, age, taken, reason);
    if (m->type != TAMIS_FAREWELL &&
        (!here || (m->type == TAMIS_DELTA ? m->from : m->version) != f->t.version))
        return gap(f, e, age, reason);
    if (m->type == TAMIS_DELTA)
        return take_carried(f, e, age, taken, reason);
    hear(f, e, age);
    *taken = TAMIS_HEARD;
    return TAMIS_OK;
}

tamis_error follower_take(tamis_follower *f, const struct envelope *e, size_t len, uint64_t arrived,
                          uint64_t age, tamis_taken *taken, tamis_reason *reason)
{
    f->arrived = arrived;
    f->t.bytes += len;
    *taken = TAMIS_REFUSED;
    retired_free(&f->retired, false, &f->a);
    tamis_error error = take(f, e, age, taken, reason);
    if (error != TAMIS_OK)
        *taken = TAMIS_REFUSED;
    f->t.refused += error != TAMIS_OK;
    f->t.repeated += *taken == TAMIS_REPEATED;
    follower_tell(f, atomic_load(&f->copy));
    return error;
}

tamis_error tamis_follower_take(tamis_follower *f, const void *message, size_t len, uint64_t age,
                                tamis_taken *taken, tamis_reason *reason)
{
    struct envelope e;
    tamis_taken outcome = TAMIS_REFUSED;
    uint64_t arrived = f->clock(f->clock_context);
    tamis_error error = envelope_open(&e, message, len, reason);
    if (error == TAMIS_OK)
        error = follower_take(f, &e, len, arrived, age, &outcome, reason);
    else
        f->t.bytes += len, f->t.refused++, follower_tell(f, atomic_load(&f->copy));
    if (taken)
        *taken = outcome;
    return error;
}
