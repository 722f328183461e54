/*
 * What sets are created with, shared by sets created alike: a server may have a million small filters of a few
 * kinds, and the settings, family and allocator of one take three times the memory of its keys. A table holds
 * the kinds in use, up to KINDS. Sets of further kinds have their own terms, and so have sets of h3, whose
 * matrices are large, and sets whose terms are being changed.
 */
#include "set.h"

#define KINDS 64 /* at a time: 20 KB that are not counted for any set */

static struct terms *known[KINDS]; /* protected by the process lock */

static bool settings_equal(const struct settings *x, const struct settings *y)
{
    return x->growth == y->growth && x->layout == y->layout && x->fpp == y->fpp &&
           x->budget == y->budget && x->capacity == y->capacity && x->deletable == y->deletable &&
           x->unique == y->unique && x->overfill == y->overfill &&
           x->shared_adds == y->shared_adds && x->add_always == y->add_always &&
           x->compact == y->compact && x->expansion == y->expansion && x->tolerate == y->tolerate &&
           x->vectors_max == y->vectors_max && x->items_max == y->items_max &&
           x->shape.layout == y->shape.layout && x->shape.units == y->shape.units &&
           x->shape.k == y->shape.k && x->published == y->published &&
           x->n_lambdas == y->n_lambdas && memcmp(x->lambdas, y->lambdas, sizeof x->lambdas) == 0 &&
           x->window == y->window;
}

static bool terms_equal(const struct terms *x, const struct terms *y)
{
    return x->family.secrets == y->family.secrets && x->family.hash == y->family.hash &&
           x->family.has_key == y->family.has_key && x->family.probe == y->family.probe &&
           x->family.probe_context == y->family.probe_context &&
           x->allocator.alloc == y->allocator.alloc && x->allocator.free == y->allocator.free &&
           x->allocator.zeroed == y->allocator.zeroed &&
           x->allocator.context == y->allocator.context && settings_equal(&x->opt, &y->opt);
}

static void terms_free(struct terms *t)
{
    tamis_allocator a = t->allocator;
    family_free(&t->family, &a);
    mem_free(&a, t, 1, sizeof *t);
}

static struct terms *terms_new(const struct terms *like)
{
    struct terms *t = mem_new(&like->allocator, 1, sizeof *t);
    if (!t)
        return NULL;
    *t = *like;
    t->holders = 0;
    if (family_copy(&t->family, &like->family, &t->allocator) == TAMIS_OK)
        return t;
    mem_free(&t->allocator, t, 1, sizeof *t);
    return NULL;
}

/* The equal terms in the table, with one more holder; otherwise these terms, entered if there is room. */
static struct terms *terms_known(struct terms *t)
{
    struct terms **vacant = NULL, *like = NULL;
    if (t->family.h3)
        return t;
    process_lock();
    for (struct terms **at = known; at < known + KINDS && !like; at++)
        if (!*at)
            vacant = vacant ? vacant : at;
        else if (terms_equal(*at, t))
            like = *at;
    if (!like && vacant)
        like = *vacant = t;
    if (like)
        like->holders++;
    process_unlock();
    if (like && like != t)
        terms_free(t);
    return like ? like : t;
}

tamis_error terms_get(struct terms **out, const tamis_allocator *a, const struct settings *opt,
                      struct family_key key)
{
    struct terms *t = mem_new0(a, 1, sizeof *t);
    if (!t)
        return TAMIS_ENOMEM;
    t->allocator = *a;
    t->opt = *opt;
    t->opt.memory_limit = 0; /* each set has its own */
    tamis_error e = family_init(&t->family, a, key.hash, key.key);
    if (e != TAMIS_OK) {
        mem_free(a, t, 1, sizeof *t);
        return e;
    }
    t->family.has_key = key.has_key;
    *out = terms_known(t);
    return TAMIS_OK;
}

struct terms *terms_share(struct terms *t)
{
    process_lock();
    bool shared = t->holders > 0;
    t->holders += shared;
    process_unlock();
    return shared ? t : terms_new(t);
}

void terms_release(struct terms *t)
{
    process_lock();
    bool last = t->holders <= 1;
    for (struct terms **at = known; last && t->holders && at < known + KINDS; at++)
        if (*at == t)
            *at = NULL;
    t->holders -= !last;
    process_unlock();
    if (last)
        terms_free(t);
}

tamis_error terms_own(struct set *s)
{
    struct terms *t = set_terms(s), *own = t->holders ? terms_new(t) : t;
    if (!own)
        return TAMIS_ENOMEM;
    if (own != t) {
        s->lines.allocator = &own->allocator;
        set_adopt_family(s);
        terms_release(t);
    }
    return TAMIS_OK;
}

void terms_settle(struct set *s)
{
    struct terms *t = set_terms(s);
    if (t->holders == 0) {
        t = terms_known(t);
        s->lines.allocator = &t->allocator;
        set_adopt_family(s);
    }
}

uint64_t terms_bytes(const struct terms *t)
{
    return t->holders ? 0 : t->family.h3 ? sizeof *t + K_MAX * sizeof *t->family.h3 : sizeof *t;
}
