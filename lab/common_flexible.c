/* See common_flexible.h. */
#include "common_flexible.h"

#include <math.h>

#include "set/set.h"
#include "tamis/plan.h"

const char *const speed_names[SPEEDS] = {"λ1", "λ2", "λ3", "λ4", "λ5", "DBF"};

static unsigned speed_at(enum speed speed, unsigned i)
{
    switch (speed) {
    case LAMBDA1: /* 1, 2, 3, ... */
        return i + 1;
    case LAMBDA2: /* 1, 3, 5, ... */
        return 2 * i + 1;
    case LAMBDA3: /* 1, 1, 2, 2, 3, 3, ... */
        return i / 2 + 1;
    default:
        return 1;
    }
}

#define SPEEDS_GIVEN 32 /* more vectors than a million items take */

static size_t speeds_of(enum speed speed, uint8_t *out)
{
    for (unsigned i = 0; i < SPEEDS_GIVEN; i++) {
        unsigned lambda = speed_at(speed, i);
        out[i] = (uint8_t)(lambda < 30 ? lambda : 30);
    }
    return speed <= LAMBDA3 ? SPEEDS_GIVEN : 1;
}

void flexible_new(struct flexible *x, enum speed speed, tamis_hash hash, bool ask_first,
                  uint64_t stream)
{
    uint8_t family[TAMIS_KEY_LEN], lambdas[SPEEDS_GIVEN];
    lab_family(stream, family);
    tamis_options o = {.growth = speed == DBF ? TAMIS_DYNAMIC : TAMIS_FLEXIBLE,
                       .layout = TAMIS_SPREAD,
                       .hash = hash,
                       .bits = FLEX_BITS,
                       .hashes = FLEX_K,
                       .capacity = FLEX_ITEMS,
                       .key = family,
                       .add_always = !ask_first,
                       .lambdas = lambdas,
                       .n_lambdas = speeds_of(speed, lambdas)};
    if (speed == DBF)
        o.n_lambdas = 0;
    *x = (struct flexible){lab_filter(&o), speed, stream + 5, 1};
}

void flexible_dbf(struct flexible *x, uint64_t items, uint64_t stream)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(stream, family);
    tamis_options o = {.growth = TAMIS_DYNAMIC,
                       .layout = TAMIS_SPREAD,
                       .bits = FLEX_BITS,
                       .hashes = FLEX_K,
                       .capacity = items,
                       .key = family};
    *x = (struct flexible){lab_filter(&o), DBF, stream + 5, 1};
}

void flexible_draw(struct flexible *x)
{
    uint32_t vectors = layers_count(set_layers(&x->filter->set));
    if ((x->speed == LAMBDA4 || x->speed == LAMBDA5) && vectors != x->vectors)
        x->filter->set.opt.lambdas[0] =
            (uint8_t)(1 + rng_below(&x->state, x->speed == LAMBDA4 ? 3 : 5));
    x->vectors = vectors;
}

/* In steps too small to open two vectors. */
void flexible_add(struct flexible *x, const uint64_t *keys, size_t n)
{
    bool random = x->speed == LAMBDA4 || x->speed == LAMBDA5;
    size_t step = random ? FLEX_ITEMS / 2 : n;
    for (size_t i = 0; i < n; i += step) {
        lab_add(x->filter, keys + i, n - i < step ? n - i : step);
        flexible_draw(x);
    }
}

double flexible_rate(const struct flexible *x)
{
    double clear = 1;
    tamis_vector_facts v;
    for (uint32_t i = 0; tamis_filter_vector(x->filter, i, &v); i++)
        clear *= 1 - tamis_plan_rate_exp((double)v.bits, FLEX_K, (double)v.items);
    return 1 - clear;
}

double flexible_bits(const struct flexible *x)
{
    return (double)lab_bits(x->filter);
}

uint32_t flexible_rounds(const struct flexible *x)
{
    return layers_count(set_layers(&x->filter->set)) - 1;
}

double flexible_items(const struct flexible *x)
{
    tamis_filter_facts info;
    tamis_filter_info(x->filter, &info);
    return (double)info.items;
}

tamis_plan_flex flexible_plan(enum speed speed, uint64_t n)
{
    unsigned lambda[SPEEDS_GIVEN];
    for (unsigned i = 0; i < SPEEDS_GIVEN; i++)
        lambda[i] = speed_at(speed, i);
    size_t given = speed <= LAMBDA3 ? SPEEDS_GIVEN : 1;
    if (speed == LAMBDA4 || speed == LAMBDA5)
        return (tamis_plan_flex){.rate = NAN};
    return tamis_plan_flexible(FLEX_BITS, FLEX_ITEMS, FLEX_K, n, lambda, given);
}
