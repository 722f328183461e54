/* Queries of a filter: the bits of its vectors, and what a pending removal hides. */
#include "set.h"

tamis_digest tamis_filter_digest(const tamis_filter *f, const void *key, size_t len)
{
    return family_digest(set_family(&f->set), key, len);
}

void tamis_filter_digest_many(const tamis_filter *f, const tamis_key *keys, size_t n,
                              tamis_digest *out)
{
    family_digest_many(set_family(&f->set), keys, n, out);
}

void tamis_filter_digest_fixed(const tamis_filter *f, const void *keys, size_t width, size_t n,
                               tamis_digest *out)
{
    family_digest_fixed(set_family(&f->set), keys, width, n, out);
}

void layers_have(const struct layers *layers, const tamis_digest *digests, size_t n, uint8_t *found)
{
    const struct bits *first = &layers->v[0]->bits;
    uint32_t vectors = layers_count(layers);
    if (n == 1)
        found[0] = layers_have_one(layers, digests[0]);
    else if (vectors == 1)
        first->kernel->has_stream(first, digests, n, found);
    else
        (atomic_load_explicit(&layers->mixed, memory_order_relaxed)
             ? stack_by_groups
             : first->kernel->has_stack)(layers->v, vectors, digests, n, found);
}

void filter_bits_have(const struct set *s, const tamis_digest *digests, size_t n, uint8_t *found)
{
    if (set_lines(s)) {
        smooth_have(s, digests, n, found);
        return;
    }
    if (!s->guarded) {
        layers_have(set_layers(s), digests, n, found);
        return;
    }
    uint64_t inside = readers_enter();
    const struct matrix *matrix = atomic_load(&s->stack->more->matrix);
    if (matrix) {
        memset(found, 0, n);
        matrix_has(matrix, digests, n, found);
    } else {
        layers_have(set_layers(s), digests, n, found);
    }
    readers_leave(inside);
}

void tamis_filter_has_many(const tamis_filter *f, const tamis_digest *digests, size_t n,
                           uint8_t *found)
{
    const struct set *s = &f->set;
    filter_bits_have(s, digests, n, found);
    if (!set_opt(s)->unique)
        return;
    for (size_t i = 0; i < n; i++)
        if (found[i] && set_hides(s, &digests[i]))
            found[i] = 0;
}

bool filter_has_with_care(const struct set *s, const void *key, size_t len)
{
    tamis_digest digest = family_digest(set_family(s), key, len);
    uint8_t found;
    tamis_filter_has_many(PART_OF(s, tamis_filter, set), &digest, 1, &found);
    return found;
}

bool filter_has_in_layers(const struct set *s, const void *key, size_t len)
{
    return layers_have_one(set_layers(s), family_digest(set_family(s), key, len));
}

bool tamis_filter_has(const tamis_filter *f, const void *key, size_t len)
{
    return __atomic_load_n(&f->set.quick.has, __ATOMIC_ACQUIRE)(&f->set, key, len);
}
