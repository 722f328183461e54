/* See worlds.h. */
#include "worlds.h"

#include "harness.h"
#include "tamis/records.h"

/* Values: 0 is missing, 1 empty, the others short texts; equal in different attributes. */
tamis_key world_value(uint32_t value, char text[16])
{
    if (value == 0)
        return (tamis_key){NULL, 0};
    if (value == 1)
        return (tamis_key){"", 0};
    return (tamis_key){text, (size_t)snprintf(text, 16, "v%u", value)};
}

void world_keys(const struct world *w, uint32_t record, tamis_key *keys, char text[][16])
{
    for (uint32_t i = 0; i < w->p; i++)
        keys[i] = world_value(w->value[record][i], text[i]);
}

const tamis_digest *world_digests(const struct world *w, uint32_t record)
{
    return w->digests + (size_t)record * w->p;
}

static bool same_record(const struct world *w, uint32_t a, uint32_t b)
{
    return memcmp(w->value[a], w->value[b], w->p * sizeof w->value[0][0]) == 0;
}

static void draw_records(struct world *w, uint64_t *rng)
{
    uint32_t values = 2 + (uint32_t)(rng_next(rng) % 6), wanted = w->n;
    w->n = 0;
    for (uint32_t tries = 0; tries < 8 * wanted && w->n < wanted; tries++) {
        uint32_t *value = w->value[w->n];
        bool known = false;
        for (uint32_t i = 0; i < w->p; i++)
            value[i] = (uint32_t)(rng_next(rng) % (i == 0 ? 4 * values : values));
        for (uint32_t i = 0; i < w->n; i++)
            known |= same_record(w, i, w->n);
        w->n += !known;
    }
}

static void draw_attributes(struct world *w, uint64_t *rng)
{
    static const uint32_t few[] = {1, 2, 2, 3, 3, 4, 5, 20, 64};
    w->p = few[rng_next(rng) % (sizeof few / sizeof *few)];
    for (uint32_t i = 0; i < w->p; i++) {
        snprintf(w->names[i], sizeof w->names[i], "a%u", i);
        w->attributes[i].name = w->names[i];
        w->attributes[i].distinct = rng_next(rng) % 3 ? 0 : 1 + rng_next(rng) % 6;
    }
    w->options.attributes = w->attributes;
    w->options.n_attributes = w->p;
    uint32_t n = (uint32_t)(rng_next(rng) % 4);
    for (uint32_t i = 0; i < n && w->p > 2; i++) {
        uint64_t mask = 0;
        while ((mask & (mask - 1)) == 0)
            mask |= UINT64_C(1) << rng_next(rng) % w->p;
        w->combos[w->options.n_combos++] = mask;
    }
    w->options.combos = w->combos;
}

uint64_t world_clock(void *context)
{
    (void)context;
    return UINT64_C(1700000000) * 1000000000;
}

void world_draw(struct world *w, uint64_t *rng, bool deletable)
{
    static const double rates[] = {0.9, 0.7, 0.3, 0.02};
    static const double factors[] = {0, 1, 1, 1.5, 2};
    *w = (struct world){0};
    draw_attributes(w, rng);
    tamis_records_options *o = &w->options;
    o->set.fpp = rates[rng_next(rng) % 4];
    uint64_t most = rng_next(rng) % 2 ? 4 : 40;
    o->set.capacity = 1 + rng_next(rng) % most;
    o->set.layout = 1 + rng_next(rng) % 2;
    o->verifier = 1 + rng_next(rng) % 3;
    o->value = 1 + rng_next(rng) % 3;
    o->set.deletable = deletable;
    o->set.expansion = factors[rng_next(rng) % 5];
    static const uint8_t lambdas[] = {1, 1, 2, 1};
    switch (rng_next(rng) % 8) {
    case 0:
        o->set.growth = TAMIS_FIXED;
        o->set.capacity = 8 + rng_next(rng) % 64;
        o->set.overfill = rng_next(rng) % 2;
        break;
    case 1:
    case 2:
    case 3: /* equal shares: here layers cover one another most */
        o->set.growth = TAMIS_DYNAMIC;
        o->set.vectors = 2 + (uint32_t)(rng_next(rng) % 3);
        o->set.capacity = o->set.vectors * (1 + rng_next(rng) % 10);
        o->set.layout = TAMIS_SPREAD;
        o->set.overfill = rng_next(rng) % 2;
        break;
    case 4:
        o->set.growth = TAMIS_FLEXIBLE;
        o->set.lambdas = lambdas;
        o->set.n_lambdas = sizeof lambdas;
        break;
    default:
        o->set.growth = TAMIS_SCALABLE;
    }
    if (o->set.layout == TAMIS_SPREAD && rng_next(rng) % 6 == 0)
        o->set.hash = TAMIS_H3;
    if (o->verifier == TAMIS_VERIFIER_NONE)
        o->n_combos = 0;
    for (unsigned i = 0; i < TAMIS_KEY_LEN; i++)
        w->key[i] = (uint8_t)rng_next(rng);
    o->set.key = w->key;
    o->set.clock = world_clock;
    w->n = 4 + (uint32_t)(rng_next(rng) % (w->p > 5 ? 24 : RECORDS - 4));
    draw_records(w, rng);
}

tamis_records *world_start(struct world *w)
{
    tamis_records *x = NULL;
    if (tamis_records_new(&x, &w->options, NULL) != TAMIS_OK)
        return NULL;
    w->digests = calloc((size_t)w->n * w->p, sizeof *w->digests);
    for (uint32_t r = 0; r < w->n; r++) {
        tamis_key keys[TAMIS_ATTRIBUTES_MAX];
        char text[TAMIS_ATTRIBUTES_MAX][16];
        world_keys(w, r, keys, text);
        tamis_records_digest_many(x, keys, 1, w->digests + (size_t)r * w->p);
    }
    return x;
}

void world_free(struct world *w)
{
    free(w->digests);
    w->digests = NULL;
}

void world_steps(const struct world *w, tamis_records *x, uint64_t *rng, uint32_t *copies,
                 unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        uint32_t r = (uint32_t)(rng_next(rng) % w->n);
        const tamis_digest *record = world_digests(w, r);
        if (w->options.set.deletable && copies[r] && rng_next(rng) % 2) {
            tamis_records_remove_many(x, record, 1, NULL, NULL);
            copies[r]--;
        } else if (tamis_records_add_many(x, record, 1, NULL, NULL) == TAMIS_OK) {
            copies[r]++;
        }
    }
}

unsigned world_compare(const struct world *w, const tamis_records *x, const tamis_records *y)
{
    uint8_t mine[RECORDS], theirs[RECORDS];
    unsigned differ = 0;
    for (uint32_t i = 0; i < w->p + 8; i++) {
        uint64_t mask = i < w->p ? UINT64_C(1) << i : 0; /* one attribute, all, a combination */
        if (i > w->p)
            mask = tamis_records_combo(x, i - w->p - 1);
        tamis_records_has_many(x, mask, w->digests, w->n, mine);
        tamis_records_has_many(y, mask, w->digests, w->n, theirs);
        for (uint32_t r = 0; r < w->n; r++)
            differ += mine[r] != theirs[r];
    }
    return differ;
}

struct bytes bytes_of_records(const tamis_records *x, unsigned flags)
{
    struct bytes bytes = {0};
    if (tamis_records_encode(x, flags, bytes_write, &bytes) != TAMIS_OK)
        bytes_free(&bytes);
    return bytes;
}
