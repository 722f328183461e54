/*
 * What sets are created with, shared by sets created alike: a server may have a million small filters of a few
 * kinds, or of thousands of capacities, and the settings, family and allocator of one take three times the memory of its
 * keys. A tree holds the kinds in use, each under the bits of its hash from the lowest on, so that it needs no memory of
 * its own and has no limit. Sets of h3, whose matrices are large, have their own terms, and so have sets whose terms are
 * being changed.
 */
#include "set.h"

static struct terms *known; /* the root; protected by the process lock */

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

static uint64_t bits_of_real(double x)
{
    uint64_t bits;
    x += 0; /* equal numbers have equal bits */
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The hash of what distinguishes the kinds that occur; equal terms have equal hashes. */
static uint64_t terms_hash(const struct terms *t)
{
    const struct settings *o = &t->opt;
    const uint64_t words[] = {o->capacity,
                              bits_of_real(o->fpp),
                              bits_of_real(o->budget),
                              bits_of_real(o->expansion),
                              o->items_max,
                              o->window,
                              o->shape.units,
                              (uint64_t)o->growth | (uint64_t)o->layout << 4 |
                                  (uint64_t)t->family.hash << 8 | (uint64_t)o->deletable << 12 |
                                  (uint64_t)o->compact << 13 | (uint64_t)o->vectors_max << 32,
                              (uintptr_t)t->family.secrets,
                              (uintptr_t)t->allocator.context};
    uint64_t hash = BLOCK_MIX;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = mul_fold(hash ^ words[i], GOLDEN) + hash;
    return hash;
}

/* Where equal terms are in the tree, or would be. */
static struct terms **find_place(const struct terms *t)
{
    struct terms **at = &known;
    for (uint64_t bits = t->hash; *at; bits >>= 1) {
        if (*at == t || ((*at)->hash == t->hash && terms_equal(*at, t)))
            break;
        at = &(*at)->child[bits & 1];
    }
    return at;
}

/* Any leaf below can take its place: the hashes agree in the bits that lead there. */
static void leave_tree(const struct terms *t)
{
    struct terms **at = find_place(t), **leaf = at;
    while ((*leaf)->child[0] || (*leaf)->child[1])
        leaf = &(*leaf)->child[(*leaf)->child[0] == NULL];
    struct terms *other = *leaf;
    *leaf = NULL;
    if (other != t) {
        memcpy(other->child, t->child, sizeof t->child);
        *at = other;
    }
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
    t->child[0] = t->child[1] = NULL;
    if (family_copy(&t->family, &like->family, &t->allocator) == TAMIS_OK)
        return t;
    mem_free(&t->allocator, t, 1, sizeof *t);
    return NULL;
}

/* The equal terms in the tree, with one more holder; otherwise these terms, entered. */
static struct terms *terms_known(struct terms *t)
{
    if (t->family.h3)
        return t;
    t->hash = terms_hash(t);
    process_lock();
    struct terms **at = find_place(t);
    if (!*at)
        *at = t;
    struct terms *like = *at;
    like->holders++;
    process_unlock();
    if (like != t)
        terms_free(t);
    return like;
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
    if (last && t->holders)
        leave_tree(t);
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
