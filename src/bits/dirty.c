/* The bits of a vector that differ from those last published, counted as they change: an add or
   removal at an origin costs k bits, and the decision to publish does not read the vector. */
#include "dirty.h"

#include "vector.h"

static size_t dirty_len(const struct changes *c)
{
    return (size_t)(c->positions + 7) / 8;
}

struct changes *changes_new(const tamis_allocator *a, const struct vector *v, const void *owner)
{
    struct changes *c = mem_new0(a, 1, sizeof *c);
    if (!c)
        return NULL;
    c->owner = owner;
    c->positions = vector_positions_total(v);
    c->ones = vector_count_ones(v);
    c->touched = mem_new0(a, pages_of(dirty_len(c)), 1);
    if (c->touched && block_new(a, dirty_len(c), &c->dirty))
        return c;
    changes_free(c, a);
    return NULL;
}

void changes_free(struct changes *c, const tamis_allocator *a)
{
    if (!c)
        return;
    block_free(a, &c->dirty);
    mem_free(a, c->touched, pages_of(dirty_len(c)), 1);
    mem_free(a, c, 1, sizeof *c);
}

void changes_reset(struct changes *c, const struct vector *v)
{
    if (c->lost)
        c->ones = vector_count_ones(v);
    else
        c->ones += c->set - c->cleared;
    for (uint64_t at = 0; at < dirty_len(c); at += PAGE)
        if (c->touched[at / PAGE])
            memset((uint8_t *)c->dirty.data + at, 0, (size_t)min_u64(PAGE, dirty_len(c) - at));
    memset(c->touched, 0, pages_of(dirty_len(c)));
    c->set = c->cleared = c->missed = 0;
    c->lost = false;
}

bool changes_deny(const struct changes *c, const struct vector *v, const uint64_t *positions)
{
    const uint64_t *dirty = c->dirty.data;
    for (unsigned j = 0; j < v->bits.k; j++) {
        uint64_t at = positions[j];
        if (vector_bit(v, at) == (dirty[at >> 6] >> (at & 63) & 1))
            return true;
    }
    return false;
}
