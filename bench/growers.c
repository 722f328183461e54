/* What grows with its keys, behind one interface: a smooth filter, and libbloom's filters stacked as RedisBloom
   stacks its own: each for twice the keys of the one before, at half its rate. */
#include "bench.h"

#include <bloom.h>
#include <stdlib.h>

#define FIRST  1000
#define LAYERS 32

static void *smooth_make(size_t n, double fpp)
{
    tamis_options o = {.growth = TAMIS_SMOOTH, .fpp = fpp, .deletable = true};
    tamis_filter *f = NULL;
    (void)n;
    return tamis_filter_new(&f, &o, NULL) == TAMIS_OK ? f : NULL;
}

static bool smooth_add(void *f, uint64_t key)
{
    return tamis_filter_add(f, &key, sizeof key, NULL) == TAMIS_OK;
}

static bool smooth_has(void *f, uint64_t key)
{
    return tamis_filter_has(f, &key, sizeof key);
}

static bool smooth_remove(void *f, uint64_t key)
{
    return tamis_filter_remove(f, &key, sizeof key, NULL) == TAMIS_OK;
}

static size_t smooth_bytes(void *f)
{
    tamis_filter_facts facts;
    tamis_filter_brief(f, &facts);
    return (size_t)facts.bytes;
}

static void smooth_free(void *f)
{
    tamis_filter_free(f);
}

const struct grower grower_smooth = {"tamis smooth", smooth_make,  smooth_add, smooth_has,
                                     smooth_remove,  smooth_bytes, smooth_free};

/* ---- libbloom -------------------------------------------------------------------------------- */

struct stack {
    struct bloom layer[LAYERS];
    unsigned n;
    size_t left; /* keys that the last one takes */
    double fpp;  /* of the next */
};

static bool stack_push(struct stack *s)
{
    size_t room = (size_t)FIRST << s->n;
    if (s->n == LAYERS || room > INT32_MAX || bloom_init(&s->layer[s->n], (int)room, s->fpp) != 0)
        return false;
    s->n++;
    s->left = room;
    s->fpp /= 2;
    return true;
}

static void *stack_make(size_t n, double fpp)
{
    struct stack *s = calloc(1, sizeof *s);
    (void)n;
    if (s)
        s->fpp = fpp / 2;
    return s;
}

static bool stack_has(void *stack, uint64_t key)
{
    struct stack *s = stack;
    for (unsigned i = s->n; i-- > 0;)
        if (bloom_check(&s->layer[i], &key, sizeof key) == 1)
            return true;
    return false;
}

static bool stack_add(void *stack, uint64_t key)
{
    struct stack *s = stack;
    if (stack_has(s, key))
        return true;
    if (s->left == 0 && !stack_push(s))
        return false;
    s->left--;
    return bloom_add(&s->layer[s->n - 1], &key, sizeof key) >= 0;
}

static size_t stack_bytes(void *stack)
{
    const struct stack *s = stack;
    size_t bytes = sizeof *s;
    for (unsigned i = 0; i < s->n; i++)
        bytes += (size_t)s->layer[i].bytes;
    return bytes;
}

static void stack_free(void *stack)
{
    struct stack *s = stack;
    for (unsigned i = 0; i < s->n; i++)
        bloom_free(&s->layer[i]);
    free(s);
}

const struct grower grower_libbloom = {"libbloom, stacked", stack_make, stack_add, stack_has, NULL,
                                       stack_bytes,         stack_free};
