/*
 * Origins. The vectors of the filter record their changes (dirty.h); an origin adds them up,
 * estimates the error of copies of the last version, and writes the next one.
 */
#include "replica.h"

#include "base/err.h"
#include "delta/patch.h"
#include "plan/plan.h"

#define MESSAGE_DEFAULT ((uint64_t)1 << 20)
#define MISS_DEFAULT    0.01
#define SLACK           1.1 /* if the false rate is unreachable: relative to that of a fresh copy */

/* A vector as it was published. */
struct published {
    uint32_t id;
    struct shape shape;
    uint64_t ones;
};

struct tamis_origin {
    tamis_filter *f;
    tamis_allocator a;
    tamis_targets targets;
    uint32_t hosts;
    uint64_t message_bytes;
    tamis_clock clock;
    void *clock_context;
    struct envelope envelope; /* what all messages have in common */
    struct patch_base base;   /* the last version, if version is not 0 */
    struct published *published;
    uint32_t n_published;
    uint64_t version, next; /* next: none above it was ever written */
    bool torn;              /* the last messages were not all sent */
    uint64_t first_change;  /* clock when changes were first noticed; 0: none */
    uint64_t checked;       /* changed bits when the rate was last computed */
    double rate;            /* weighted, as of then */
    double rate_own;        /* and that of a fresh copy */
    uint64_t deltas, snapshots, messages, bytes, published_at;
};

/* ---- making ---------------------------------------------------------------------------------- */

static void settle_targets(tamis_targets *t)
{
    if (t->member_miss == 0)
        t->member_miss = MISS_DEFAULT;
    if (t->false_rate == 0)
        t->false_rate = -1;
    if (t->dirty == 0)
        t->dirty = -1;
    if (t->w_positive == 0 && t->w_disagree == 0)
        t->w_positive = t->w_disagree = 1;
}

static tamis_error check_options(const tamis_filter *f, const tamis_origin_options *o,
                                 tamis_reason *reason)
{
    size_t len = o->owner ? strlen(o->owner) : 0;
    if (len == 0 || len > TAMIS_OWNER_MAX)
        return fail(reason, TAMIS_EARG, "an origin has a name of 1 to %d bytes", TAMIS_OWNER_MAX);
    if (targets_wrong(&o->targets))
        return fail(reason, TAMIS_EARG, "a target or weight is out of range");
    if (o->message_bytes && o->message_bytes < MESSAGE_BYTES_MIN)
        return fail(reason, TAMIS_EARG, "a message has at least %d bytes", MESSAGE_BYTES_MIN);
    if (o->beat > BEAT_MAX)
        return fail(reason, TAMIS_EARG, "the time between heartbeats is out of range");
    if (set_opt(&f->set)->shared_adds)
        return fail(reason, TAMIS_EKIND,
                    "a filter with shared_adds does not record what changed: create it without");
    if (!family_standard(set_family(&f->set)))
        return fail(reason, TAMIS_EKIND,
                    "filters with a caller's probe function cannot be published");
    return TAMIS_OK;
}

tamis_error tamis_origin_new(tamis_origin **out, tamis_filter *f, const tamis_origin_options *o,
                             tamis_reason *reason)
{
    tamis_error e = check_options(f, o, reason);
    if (e != TAMIS_OK)
        return e;
    tamis_origin *origin = mem_new0(set_allocator(&f->set), 1, sizeof *origin);
    if (!origin)
        return fail(reason, TAMIS_ENOMEM, "no memory for an origin");
    origin->f = f;
    origin->a = set_terms(&f->set)->allocator;
    origin->targets = o->targets;
    settle_targets(&origin->targets);
    origin->hosts = o->hosts ? o->hosts : 2;
    origin->message_bytes = o->message_bytes ? o->message_bytes : MESSAGE_DEFAULT;
    origin->clock = o->clock ? o->clock : clock_steady;
    origin->clock_context = o->clock_context;
    tamis_message *m = &origin->envelope.m;
    memcpy(m->owner, o->owner, strlen(o->owner) + 1);
    m->epoch = o->epoch    ? o->epoch
               : !o->clock ? clock_real(NULL)
                           : max_u64(1, o->clock(o->clock_context));
    m->beat = o->beat ? o->beat : BEAT_DEFAULT;
    origin->envelope.sealed = o->no_key;
    m->targets = origin->targets;
    *out = origin;
    return TAMIS_OK;
}

static void forget_base(tamis_origin *o, struct patch_base *base)
{
    mem_free(set_allocator(&o->f->set), base->body, 1, base->len);
    lines_copy_free(base->lines, &o->a);
    base->body = NULL;
    base->lines = NULL;
}

static void forget_published(tamis_origin *o)
{
    mem_free(&o->a, o->published, o->n_published, sizeof *o->published);
    forget_base(o, &o->base);
    o->published = NULL;
}

void tamis_origin_free(tamis_origin *o)
{
    if (!o)
        return;
    const struct layers *layers = set_layers(&o->f->set);
    for (uint32_t i = 0; i < layers_count(layers); i++)
        if (layers->v[i]->changes && layers->v[i]->changes->owner == o) {
            changes_free(layers->v[i]->changes, set_allocator(&o->f->set));
            layers->v[i]->changes = NULL;
        }
    forget_published(o);
    tamis_allocator a = o->a;
    mem_free(&a, o, 1, sizeof *o);
}

void tamis_origin_info(const tamis_origin *o, tamis_origin_facts *facts)
{
    *facts =
        (tamis_origin_facts){o->envelope.m.epoch, o->version, o->deltas,       o->snapshots,
                             o->messages,         o->bytes,   o->published_at, o->envelope.m.beat};
}

/* ---- how wrong the copies are ---------------------------------------------------------------- */

/* Its changes since the last version, or NULL: it is new, or changed as a whole. */
static const struct changes *known_changes(const tamis_origin *o, const struct vector *v)
{
    const struct changes *c = v->changes;
    return c && c->owner == o && !c->lost ? c : NULL;
}

static const struct published *find_published(const tamis_origin *o, uint32_t id)
{
    for (uint32_t i = 0; i < o->n_published; i++)
        if (o->published[i].id == id)
            return &o->published[i];
    return NULL;
}

/* What is known without reading bits. */
struct origin_tally {
    uint64_t bits, items, missed;
    uint64_t added, removed; /* entries of lines */
    bool whole;              /* some changes of a published vector are unknown */
};

/* The keys that lines gained and lost since they were published. Lines count them, so nothing else is read. */
static void tally_lines(const tamis_origin *o, struct origin_tally *t)
{
    const struct lines *now = set_lines(&o->f->set), *then = o->base.lines;
    uint64_t added = now ? lines_added(now) : 0, removed = now ? now->removed : 0;
    bool same = now && then && lines_added(then) <= added && then->removed <= removed;
    t->added = same ? added - lines_added(then) : now ? now->keys : 0;
    t->removed = same ? removed - then->removed : then ? then->keys : 0;
    if (!now)
        return;
    t->items += now->keys;
    t->missed += min_u64(t->added, now->keys);
    t->bits += (t->added + t->removed) * now->width;
}

static struct origin_tally tally_of(const tamis_origin *o)
{
    const struct layers *layers = set_layers(&o->f->set);
    struct origin_tally t = {0};
    uint32_t same = 0;
    tally_lines(o, &t);
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct vector *v = layers->v[i];
        const struct changes *c = known_changes(o, v);
        uint64_t load = vector_load(v);
        t.items += load;
        t.bits += c ? c->set + c->cleared : v->bits.k * load + 1;
        t.missed += c ? min_u64(c->missed, load) : load;
        t.whole |= !c && find_published(o, layers->l[i]->id);
        same += c != NULL;
    }
    t.bits += o->n_published - same; /* dropped ones */
    return t;
}

static struct plan_copy copy_of(const tamis_origin *o, const struct vector *v, bool fresh)
{
    const struct changes *c = known_changes(o, v);
    struct shape s = vector_shape(v);
    struct plan_copy p = {.layout = s.layout, .units = s.units, .k = s.k};
    if (c) {
        p.ones = c->ones + c->set - c->cleared;
        p.copy_ones = c->ones;
        p.both = c->ones - c->cleared;
    } else {
        p.ones = vector_count_ones(v);
    }
    if (fresh)
        p.copy_ones = p.both = p.ones;
    return p;
}

/* Lines: an entry matches the same keys at every size, so what both have is what was published
   minus what was removed. */
static struct plan_copy copy_of_lines(const tamis_origin *o, bool fresh)
{
    const struct lines *now = set_lines(&o->f->set), *then = fresh ? now : o->base.lines;
    struct origin_tally t = {0};
    tally_lines(o, &t);
    double own = now ? lines_rate_rough(now) : 0, copy = then ? lines_rate_rough(then) : 0;
    double kept = 1;
    if (!fresh && then && then->keys)
        kept = 1 - (double)min_u64(t.removed, then->keys) / (double)then->keys;
    return (struct plan_copy){.rates = {own, copy, copy * kept < own ? copy * kept : own}};
}

/* All vectors of the filter, and those that only copies have. */
static uint32_t list_copies(const tamis_origin *o, bool fresh, struct plan_copy *out)
{
    const struct layers *layers = set_layers(&o->f->set);
    uint32_t n = layers_count(layers);
    for (uint32_t i = 0; i < n; i++)
        out[i] = copy_of(o, layers->v[i], fresh);
    for (uint32_t i = 0; !fresh && i < o->n_published; i++) {
        const struct published *p = &o->published[i];
        const struct layer *layer = set_layer_by_id(&o->f->set, p->id);
        if (!layer || !known_changes(o, layer->part[0].vector))
            out[n++] = (struct plan_copy){.layout = p->shape.layout,
                                          .units = p->shape.units,
                                          .k = p->shape.k,
                                          .copy_ones = p->ones};
    }
    if (set_lines(&o->f->set) || o->base.lines)
        out[n++] = copy_of_lines(o, fresh);
    return n;
}

static void estimate(const tamis_origin *o, bool fresh, tamis_estimate *out)
{
    struct plan_copy few[64], *copies = few;
    uint32_t room = layers_count(set_layers(&o->f->set)) + o->n_published + 1;
    struct origin_tally t = tally_of(o);
    uint64_t bits = 0;
    *out = (tamis_estimate){.positive = 1, .disagree = 1, .member_miss = 1, .own = 1, .host = 1};
    if (room > 64 && !(copies = mem_new(&o->a, room, sizeof *copies)))
        return; /* if there is no memory, nothing is promised */
    uint32_t n = list_copies(o, fresh, copies);
    tamis_plan_replica r =
        plan_replica_stack(copies, n, o->hosts, o->targets.w_positive, o->targets.w_disagree);
    *out = (tamis_estimate){.own = r.own,
                            .positive = r.positive,
                            .disagree = r.disagree,
                            .weighted = r.weighted,
                            .host = r.host};
    for (uint32_t i = 0; i < n; i++) {
        const struct plan_copy *c = &copies[i];
        bits += c->units * layout_unit_bits(c->layout);
        out->set += c->ones - c->both;
        out->cleared += c->copy_ones - c->both;
    }
    const struct lines *lines = set_lines(&o->f->set);
    if (lines) {
        uint64_t taken = 0;
        bits += lines_bits(lines, &taken);
        out->set += fresh ? 0 : t.added * lines->width;
        out->cleared += fresh ? 0 : t.removed * lines->width;
    }
    out->dirty = bits ? (double)(out->set + out->cleared) / (double)bits : 0;
    out->missed = fresh ? 0 : t.missed;
    out->member_miss = plan_member_miss((double)out->missed, (double)t.items, 0);
    out->unreachable =
        o->targets.false_rate >= 0 && o->targets.w_positive * r.own > o->targets.false_rate;
    if (copies != few)
        mem_free(&o->a, copies, room, sizeof *copies);
}

void tamis_origin_estimate(const tamis_origin *o, tamis_estimate *out)
{
    estimate(o, false, out);
}

/* The rate is recomputed when the changes have grown by 1/32 since then. */
static bool rate_passed(tamis_origin *o, uint64_t bits)
{
    if (bits < o->checked || bits - o->checked > o->checked / 32 || o->checked == 0) {
        tamis_estimate now;
        estimate(o, false, &now);
        o->checked = bits;
        o->rate = now.weighted;
        o->rate_own = now.own;
    }
    double fresh = SLACK * o->targets.w_positive * o->rate_own;
    return o->rate > (fresh > o->targets.false_rate ? fresh : o->targets.false_rate);
}

static bool dirty_passed(const tamis_origin *o, uint64_t bits)
{
    const struct layers *layers = set_layers(&o->f->set);
    uint64_t all = 0;
    for (uint32_t i = 0; i < layers_count(layers); i++)
        all += vector_positions_total(layers->v[i]);
    uint64_t taken = 0;
    all += set_lines(&o->f->set) ? lines_bits(set_lines(&o->f->set), &taken) : 0;
    return (double)bits > o->targets.dirty * (double)all;
}

tamis_due tamis_origin_due(tamis_origin *o)
{
    const tamis_targets *t = &o->targets;
    if (o->version == 0 || o->torn)
        return TAMIS_DUE_FIRST;
    struct origin_tally now = tally_of(o);
    if (now.whole)
        return TAMIS_DUE_WHOLE;
    if (now.bits == 0)
        return TAMIS_DUE_NOT;
    if (t->member_miss >= 0 && (double)now.missed > t->member_miss * (double)now.items)
        return TAMIS_DUE_MEMBER_MISS;
    if (t->false_rate >= 0 && rate_passed(o, now.bits))
        return TAMIS_DUE_FALSE_RATE;
    if (t->dirty >= 0 && dirty_passed(o, now.bits))
        return TAMIS_DUE_DIRTY;
    if (t->max_age) {
        uint64_t clock = o->clock(o->clock_context);
        /* the clock was set back: start from there */
        if (o->first_change == 0 || clock < o->first_change)
            o->first_change = clock;
        if (clock - o->first_change >= t->max_age)
            return TAMIS_DUE_AGE;
    }
    return TAMIS_DUE_NOT;
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* Everything that a version needs, made before anything is written. */
struct edition {
    struct patch_base base;
    struct published *published;
    struct changes **changes; /* for vectors that have none yet */
    uint32_t n;
    struct lines_follow lines;
    struct sink whole;
};

static void edition_free(tamis_origin *o, struct edition *ed)
{
    for (uint32_t i = 0; ed->changes && i < ed->n; i++)
        changes_free(ed->changes[i], set_allocator(&o->f->set));
    mem_free(&o->a, ed->changes, ed->n, sizeof *ed->changes);
    mem_free(&o->a, ed->published, ed->n, sizeof *ed->published);
    forget_base(o, &ed->base);
    lines_follow_drop(&ed->lines);
    sink_free(&ed->whole);
}

static tamis_error edition_begin(tamis_origin *o, struct edition *ed)
{
    struct set *f = &o->f->set;
    const struct layers *layers = set_layers(f);
    ed->n = layers_count(layers);
    ed->whole.a = &o->a;
    ed->base.owner = o;
    ed->published = mem_new(&o->a, ed->n, sizeof *ed->published);
    ed->changes = mem_new0(&o->a, ed->n, sizeof *ed->changes);
    if (!ed->published || !ed->changes)
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < ed->n; i++) {
        struct vector *v = layers->v[i];
        if (v->changes && v->changes->owner != o)
            return TAMIS_EBUSY; /* it has another origin */
        if (!v->changes && !(ed->changes[i] = changes_new(set_allocator(f), v, o)))
            return TAMIS_ENOMEM;
    }
    tamis_error e = patch_body(f, true, &ed->base.body, &ed->base.len);
    if (e == TAMIS_OK && set_lines(f))
        e = lines_follow_begin(&ed->lines, o->base.lines, set_lines(f), &o->a);
    return e == TAMIS_OK ? set_fingerprint(f, true, ed->base.print) : e;
}

/* The present filter is the version that copies have. */
static void edition_commit(tamis_origin *o, struct edition *ed, uint64_t version)
{
    const struct layers *layers = set_layers(&o->f->set);
    for (uint32_t i = 0; i < ed->n; i++) {
        struct vector *v = layers->v[i];
        if (ed->changes[i])
            v->changes = ed->changes[i];
        else
            changes_reset(v->changes, v);
        ed->changes[i] = NULL;
        ed->published[i] = (struct published){layers->l[i]->id, vector_shape(v), v->changes->ones};
    }
    if (set_lines(&o->f->set)) {
        o->base.lines = NULL;
        ed->base.lines = lines_follow_end(&ed->lines, set_lines(&o->f->set));
    }
    forget_published(o);
    o->base = ed->base;
    o->published = ed->published;
    o->n_published = ed->n;
    ed->base.body = NULL;
    ed->base.lines = NULL;
    ed->published = NULL;
    o->version = version;
    o->published_at = o->clock(o->clock_context);
    o->torn = false;
    o->first_change = o->checked = 0;
}

struct counting {
    tamis_origin *o;
    tamis_write write;
    void *context;
};

static int counting_write(void *context, const void *data, size_t len)
{
    struct counting *c = context;
    int failed = c->write(c->context, data, len);
    c->o->messages += !failed;
    c->o->bytes += failed ? 0 : len;
    return failed;
}

static tamis_error send(tamis_origin *o, tamis_message_type type, uint64_t from, uint64_t version,
                        const struct sink *whole, tamis_write write, void *context)
{
    struct counting counting = {o, write, context};
    struct envelope e = o->envelope;
    e.m.type = type;
    e.m.from = from;
    e.m.version = version;
    e.m.time = o->clock(o->clock_context);
    estimate(o, whole != NULL, &e.m.estimate);
    return envelope_send(&e, set_family(&o->f->set), whole ? whole->data : NULL,
                         whole ? whole->len : 0, o->message_bytes, &o->a, counting_write,
                         &counting);
}

static tamis_error publish(tamis_origin *o, struct edition *ed, bool snapshot, tamis_write write,
                           void *context)
{
    tamis_error e = edition_begin(o, ed);
    if (e != TAMIS_OK)
        return e;
    bool same =
        o->version && !o->torn && memcmp(o->base.print, ed->base.print, sizeof ed->base.print) == 0;
    if (same && !snapshot) { /* the bits are those that copies have, whatever happened */
        edition_commit(o, ed, o->version);
        return TAMIS_OK;
    }
    snapshot = snapshot || o->version == 0 || o->torn;
    if (snapshot)
        e = tamis_filter_encode(
            o->f, TAMIS_SAVE_BITS_ONLY | (o->envelope.sealed ? TAMIS_SAVE_NO_KEY : 0u), sink_write,
            &ed->whole);
    else
        e = patch_changes(&o->f->set, &o->base, ed->base.print, sink_write, &ed->whole);
    if (e != TAMIS_OK)
        return e == TAMIS_EIO ? TAMIS_ENOMEM : e; /* a sink fails only for lack of memory */
    uint64_t version = same ? o->version : o->next + 1;
    o->next = max_u64(o->next, version);
    e = send(o, snapshot ? TAMIS_SNAPSHOT : TAMIS_DELTA, snapshot ? 0 : o->version, version,
             &ed->whole, write, context);
    if (e != TAMIS_OK) {
        o->torn = true;
        return e;
    }
    o->snapshots += snapshot;
    o->deltas += !snapshot;
    edition_commit(o, ed, version);
    return TAMIS_OK;
}

static tamis_error publish_with(tamis_origin *o, bool snapshot, tamis_write write, void *context,
                                tamis_reason *reason)
{
    struct edition ed = {0};
    tamis_error e = publish(o, &ed, snapshot, write, context);
    edition_free(o, &ed);
    if (e == TAMIS_EBUSY)
        return fail(reason, TAMIS_EARG, "the filter already has another origin");
    return e == TAMIS_OK ? e : fail(reason, e, "not published: %s", tamis_error_text(e));
}

tamis_error tamis_origin_publish(tamis_origin *o, tamis_write write, void *context,
                                 tamis_reason *reason)
{
    return publish_with(o, false, write, context, reason);
}

tamis_error tamis_origin_snapshot(tamis_origin *o, tamis_write write, void *context,
                                  tamis_reason *reason)
{
    return publish_with(o, true, write, context, reason);
}

tamis_error tamis_origin_beat(tamis_origin *o, tamis_write write, void *context)
{
    return o->version ? send(o, TAMIS_HEARTBEAT, 0, o->version, NULL, write, context) : TAMIS_EKIND;
}

tamis_error tamis_origin_farewell(tamis_origin *o, tamis_write write, void *context)
{
    return o->version ? send(o, TAMIS_FAREWELL, 0, o->version, NULL, write, context) : TAMIS_EKIND;
}
