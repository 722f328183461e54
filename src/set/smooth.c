/*
 * Smooth filters: lines of fingerprints (bits/lines.h), which grow and shrink by themselves, so one layer of
 * them suffices at any size. A plain filter with a stated capacity starts with a vector of that capacity, the
 * cheapest way to hold that many keys; further keys go into lines. Both together use half of the stated rate,
 * so that two such filters can be united: their vectors are then kept side by side and take no more keys. The
 * vector has nine tenths of the half (10^7 keys at 1 % take 14.8 MB; with the whole half 14.5), and the lines have most
 * of the rest, in slots four bits wider than the rate alone would need: a hundredth is left for what the parts of a
 * union gain until they are full. From 0.1 % on, two that hold ten times their capacity are united. At lower rates the
 * widest slots need more than this share: two are then united only up to their capacity.
 *
 * Lines alone use the whole rate. In a union rates add up, and known bits that are lost never come back: at 1 % two
 * sets of 2 * 10^6 keys fit, and six of 10^5; three of 10^6 do not, unless the rate may be restated.
 *
 * A compact filter is to take no more memory than RedisBloom's stack of vectors, of which each is twice as large as the
 * one before and has half of its rate: fingerprints that serve any size would take twice as much where the first ones
 * are full. So it has such a stack too (growth.c). Its first vector has 0.56 of the rate, or 0.7 if it is blocked: it
 * takes 2 % less than RedisBloom's then, and the stack 2 or 7 % more. Up to SMALL_CAPACITY keys, what follows the vector at
 * first is in pages (small.c), which take a third less on average. When they are outgrown they become lines, and the stack
 * goes on. Up to PAGE_CAPACITY there is no vector. Two that hold more than one vector can take are united only if their
 * rates happen to fit, or if the rate may be restated.
 */
#include "set.h"

void smooth_limit(struct set *s)
{
    struct lines *l = set_lines(s);
    if (!l)
        return;
    uint64_t others = set_bytes(s) - l->bytes, limit = s->memory_limit;
    l->limit = limit == 0 ? 0 : limit > others ? limit - others : 1;
    l->refused = 0;
}

tamis_error smooth_start(struct set *s)
{
    const struct terms *t = set_terms(s);
    if (set_lines(s))
        return TAMIS_OK;
    if (s->memory_limit && layers_count(set_layers(s)) > 0 &&
        set_bytes(s) + lines_least(t->opt.budget) > s->memory_limit)
        return TAMIS_ESPACE;
    /* The first line is made for this rate too: at 0.1 %, 20 keys with slots of 20 bits would use up most of it. */
    bool alone = layers_count(set_layers(s)) == 0;
    double rate = alone ? t->opt.budget : smooth_lines_rate(&t->opt);
    tamis_error e = lines_init(&s->lines, &t->allocator, rate);
    if (e != TAMIS_OK)
        return e;
    s->lines.width = (uint8_t)lines_width(t->opt.budget);
    smooth_limit(s);
    set_quick(s);
    return TAMIS_OK;
}

/* What the vectors use of the rate. Those of a union take no more keys, nor does the one beside lines that grow. */
static double vectors_rate(const struct set *s)
{
    const struct layers *layers = set_layers(s);
    double sum = 0;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        const struct vector *v = layers->v[i];
        bool own = set_opt(s)->compact && layers->l[i]->slot != SLOT_NONE;
        sum += own ? v->fpp
                   : tamis_plan_rate(v->bits.kernel->layout, v->bits.units, v->bits.k,
                                     (double)v->load);
    }
    return sum;
}

double smooth_rate_left(const struct set *s)
{
    const struct lines *l = set_lines(s);
    return set_opt(s)->fpp - vectors_rate(s) - (l ? lines_rate(l) : 0);
}

void smooth_free(struct set *s)
{
    lines_free(&s->lines);
    s->lines = (struct lines){.allocator = s->lines.allocator};
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Clearing may have freed the lines. */
static bool has_one(const struct set *s, tamis_digest digest)
{
    const struct lines *l = set_lines(s);
    return (l && lines_has_one(l, digest)) || layers_have_one(set_layers(s), digest);
}

void smooth_have(const struct set *s, const tamis_digest *digests, size_t n, uint8_t *found)
{
    uint64_t inside = readers_enter();
    bool vectors = layers_count(set_layers(s)) > 0;
    if (n == 1)
        found[0] = has_one(s, digests[0]);
    else
        lines_has(set_lines(s), digests, n, found);
    for (size_t i = 0; vectors && n > 1 && i < n; i += BATCH) {
        uint8_t there[BATCH];
        size_t some = n - i < BATCH ? n - i : BATCH;
        layers_have(set_layers(s), digests + i, some, there);
        for (size_t j = 0; j < some; j++)
            found[i + j] |= there[j];
    }
    readers_leave(inside);
}

static bool smooth_has_key(const struct set *s, const void *key, size_t len)
{
    tamis_digest digest = family_digest(set_family(s), key, len);
    uint64_t inside = readers_enter();
    bool found = has_one(s, digest);
    readers_leave(inside);
    return found;
}

static bool smooth_lines_have(const struct set *s, const void *key, size_t len)
{
    return lines_kernel()->has_place(s, family_digest(set_family(s), key, len).a);
}

quick_fn smooth_quick(struct set *s)
{
    bool alone = layers_count(set_layers(s)) == 0;
    if (!alone)
        return smooth_has_key;
    if (set_family(s)->hash != TAMIS_XXH3 || !lines_kernel()->has_key)
        return smooth_lines_have;
    s->quick.other = smooth_lines_have;
    s->quick.flip = digest_flip(set_family(s));
    return lines_kernel()->has_key;
}

/* ---- adding and removing --------------------------------------------------------------------- */

/* May keys be skipped that are found and will stay so? */
static bool adds_once(const struct set *s)
{
    return !set_opt(s)->deletable && !set_opt(s)->add_always;
}

/* The vector that takes new keys, created if necessary; NULL: lines take them. */
static tamis_error smooth_into(struct set *s, struct vector **into)
{
    const struct layers *layers = set_layers(s);
    uint32_t n = layers_count(layers), i = n;
    bool grows = n && set_opt(s)->compact;
    struct layer *layer = NULL;
    tamis_error e = TAMIS_OK;
    while (i && (layers->l[i - 1]->slot == SLOT_NONE || vector_full(layers->v[i - 1])))
        i--;
    if (i && (grows || !set_lines(s)))
        layer = layers->l[i - 1];
    else
        e = grows ? growth_grow(s, &layer) : smooth_start(s);
    *into = layer && e == TAMIS_OK ? layer->part[0].vector : NULL;
    return e;
}

/* Up to BATCH keys that the vectors may have. */
static tamis_error add_batch(struct set *s, const tamis_digest *digests, size_t n, uint8_t *fresh,
                             size_t *done)
{
    tamis_digest rest[BATCH];
    uint8_t there[BATCH], found[BATCH], who[BATCH] = {0};
    size_t m = 0, added = 0;
    bool once = adds_once(s);
    struct vector *v;
    if (set_opt(s)->compact)
        filter_bits_have(s, digests, n, there);
    else
        layers_have(set_layers(s), digests, n, there);
    for (size_t i = 0; i < n; i++) {
        fresh[i] = false;
        if (there[i] && once)
            continue;
        rest[m] = digests[i];
        who[m++] = (uint8_t)i;
    }
    tamis_error e = m ? smooth_into(s, &v) : TAMIS_OK;
    if (m && e == TAMIS_OK && v) {
        added = (size_t)min_u64(m, v->capacity - v->load);
        s->stack->stored += vector_add(v, rest, added, found);
    } else if (m && e == TAMIS_OK) {
        e = lines_add_many(set_lines(s), rest, m, once, found, &added);
    }
    for (size_t i = 0; i < added; i++)
        fresh[who[i]] = found[i] && !there[who[i]];
    *done = added == m ? n : who[added];
    return e;
}

tamis_error smooth_add(struct set *s, const tamis_digest *digests, size_t n, uint8_t *fresh,
                       size_t *done)
{
    tamis_error e = TAMIS_OK;
    struct lines *l = set_lines(s);
    *done = 0;
    if (l && UNLIKELY(lines_moment(l)) && !lines_hold_for(l, digests, n))
        return TAMIS_ENOMEM;
    if (l && layers_count(set_layers(s)) == 0)
        return lines_add_many(l, digests, n, adds_once(s), fresh, done);
    while (*done < n && e == TAMIS_OK) {
        size_t added;
        e = add_batch(s, digests + *done, min_u64(n - *done, BATCH), fresh + *done, &added);
        *done += added;
    }
    return e;
}

void smooth_remove(struct set *s, const tamis_digest *digests, size_t n, uint8_t *outcomes)
{
    uint8_t taken[SMOOTH_BATCH];
    for (size_t done = 0, some; done < n; done += some) {
        some = min_u64(n - done, sizeof taken);
        lines_remove_many(set_lines(s), digests + done, some, taken);
        for (size_t i = 0; outcomes && i < some; i++)
            outcomes[done + i] = taken[i] ? TAMIS_REMOVED : TAMIS_ABSENT;
    }
}

/* ---- union ----------------------------------------------------------------------------------- */

tamis_error smooth_unite(struct set *s, const struct set *other)
{
    const struct lines *theirs = set_lines(other);
    if (!theirs || theirs->keys == 0)
        return TAMIS_OK;
    tamis_error e = smooth_start(s);
    smooth_limit(s);
    return e == TAMIS_OK ? lines_unite(set_lines(s), theirs) : e;
}

tamis_error smooth_settle(struct set *s, unsigned flags)
{
    if (layers_count(set_layers(s)) == 1 && !set_lines(s))
        return TAMIS_OK; /* united as vectors, within their capacity */
    /* Further keys go into lines, the vectors stay as they are. */
    tamis_error e = set_opt(s)->compact ? TAMIS_OK : smooth_start(s);
    if (e != TAMIS_OK)
        return e;
    struct lines *l = set_lines(s);
    smooth_limit(s); /* there may be more vectors */
    /* What fills the free slots of the parts belongs to the rate: no part is rebuilt until then. */
    double vectors = vectors_rate(s), rate = l ? lines_rate_full(l) : 0, fpp = set_opt(s)->fpp;
    double share = smooth_lines_rate(set_opt(s)), lines = rate > share ? rate : share;
    if (vectors + rate >= fpp * 255 / 256) { /* too little is left for parts that grow */
        double sum = (vectors + lines) * 17 / 16;
        if (!(flags & TAMIS_MERGE_RESTATE))
            return TAMIS_ERATE;
        set_opt(s)->fpp = fpp = sum < 1 ? sum : 1;
    }
    double left = fpp - vectors;
    if (l && (rate > l->fpp || l->fpp > left))
        l->fpp = left > 0 ? left : lines;
    return TAMIS_OK;
}

bool smooth_equal(const struct set *x, const struct set *y)
{
    const struct lines *a = set_lines(x), *b = set_lines(y);
    return a && b ? lines_equal(a, b) : (!a || a->keys == 0) && (!b || b->keys == 0);
}
