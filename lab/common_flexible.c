/* See common_flexible.h. */
#include "common_flexible.h"

#include <math.h>

#include "set/set.h"
#include "tamis/plan.h"

#define CHUNK 4096

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

/* Sizes that a speed chooses among, each time anew. */
static unsigned speed_sizes(enum speed speed)
{
    return speed == LAMBDA4 ? 3 : speed == LAMBDA5 ? 5 : 1;
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

static void one_filter(struct flexible *x, tamis_hash hash, uint64_t stream)
{
    uint8_t family[TAMIS_KEY_LEN], lambdas[SPEEDS_GIVEN];
    lab_family(stream, family);
    tamis_options o = {.growth = TAMIS_FLEXIBLE,
                       .layout = TAMIS_SPREAD,
                       .hash = hash,
                       .bits = FLEX_BITS,
                       .hashes = FLEX_K,
                       .capacity = FLEX_ITEMS,
                       .key = family,
                       .add_always = true,
                       .lambdas = lambdas,
                       .n_lambdas = speeds_of(x->speed, lambdas)};
    x->filter[0] = lab_filter(&o);
    x->filters = 1;
    x->vectors = 1;
}

static void by_sizes(struct flexible *x, tamis_hash hash, uint64_t stream)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(stream, family);
    x->sliced = true;
    x->filters = speed_sizes(x->speed);
    for (unsigned i = 0; i < x->filters; i++) {
        tamis_options o = {.growth = TAMIS_DYNAMIC,
                           .layout = TAMIS_SPREAD,
                           .hash = hash,
                           .bits = FLEX_BITS << i,
                           .hashes = FLEX_K,
                           .capacity = x->room << i,
                           .key = family,
                           .add_always = true};
        x->filter[i] = lab_filter(&o);
    }
}

void flexible_new(struct flexible *x, enum speed speed, tamis_hash hash, bool ask_first,
                  uint64_t stream)
{
    *x = (struct flexible){
        .speed = speed, .ask_first = ask_first, .room = FLEX_ITEMS, .state = stream + 5};
    if (speed <= LAMBDA3)
        one_filter(x, hash, stream);
    else
        by_sizes(x, hash, stream);
}

void flexible_dbf(struct flexible *x, uint64_t items, uint64_t stream)
{
    *x = (struct flexible){.speed = DBF, .ask_first = true, .room = items};
    by_sizes(x, TAMIS_XXH3, stream);
}

void flexible_rows(struct flexible *x, enum speed speed, uint64_t stream)
{
    *x = (struct flexible){.speed = speed, .ask_first = true, .state = stream + 5};
    one_filter(x, TAMIS_XXH3, stream);
}

void flexible_free(struct flexible *x)
{
    for (unsigned i = 0; i < x->filters; i++)
        tamis_filter_free(x->filter[i]);
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* One filter: the random speeds are drawn one by one, when a vector was opened. */
static void draw(struct flexible *x)
{
    uint32_t vectors = layers_count(set_layers(&x->filter[0]->set));
    if (speed_sizes(x->speed) > 1 && vectors != x->vectors) {
        MUST(terms_own(&x->filter[0]->set));
        set_opt(&x->filter[0]->set)->lambdas[0] =
            (uint8_t)(1 + rng_below(&x->state, speed_sizes(x->speed)));
    }
    x->vectors = vectors;
}

/* Vectors of one filter one by one, newest first: their rates are low, so all of them are looked at. */
static bool has(const struct flexible *x, const tamis_digest *digest)
{
    const struct layers *layers = set_layers(&x->filter[0]->set);
    uint8_t found = 0;
    for (unsigned i = 0; i < x->filters && x->sliced && !found; i++)
        tamis_filter_has_many(x->filter[i], digest, 1, &found);
    for (uint32_t i = layers_count(layers); i-- > 0 && !x->sliced && !found;)
        found = layers->v[i]->bits.kernel->has_one(&layers->v[i]->bits, *digest);
    return found;
}

bool flexible_has(const struct flexible *x, uint64_t key)
{
    tamis_digest digest = tamis_filter_digest(x->filter[0], &key, 8);
    return has(x, &digest);
}

/* Into the vector that is being filled; the filter opens the next one by itself. */
static size_t fill(struct flexible *x, const tamis_digest *digests, size_t n)
{
    size_t some = x->ask_first ? 1 : n;
    if (x->sliced && x->load == x->room << x->size) {
        x->size = (unsigned)rng_below(&x->state, x->filters);
        x->load = 0;
    }
    if (x->sliced && (x->room << x->size) - x->load < some)
        some = (size_t)((x->room << x->size) - x->load);
    MUST(tamis_filter_add_many(x->filter[x->size], digests, some, NULL, NULL));
    x->load += some;
    if (!x->sliced)
        draw(x);
    return some;
}

void flexible_add_digest(struct flexible *x, tamis_digest digest)
{
    if (!x->ask_first || !has(x, &digest))
        fill(x, &digest, 1);
}

void flexible_add(struct flexible *x, const uint64_t *keys, size_t n)
{
    tamis_digest digests[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        tamis_filter_digest_fixed(x->filter[0], keys + i, 8, some, digests);
        for (size_t j = 0; j < some;)
            j += x->ask_first && has(x, &digests[j]) ? 1 : fill(x, &digests[j], some - j);
    }
}

/* ---- what there is --------------------------------------------------------------------------- */

/* From the vectors themselves: the library's own facts count ones, too often for this many vectors. A
   size that no vector has yet counts for nothing, though its filter has an empty one. */
static const struct layers *opened(const struct flexible *x, unsigned i)
{
    return i == 0 || set_stored(&x->filter[i]->set) ? set_layers(&x->filter[i]->set) : NULL;
}

double flexible_rate(const struct flexible *x)
{
    double clear = 1;
    if (x->sliced) { /* all vectors but the last are full, and alike but for their size */
        clear = 1 - tamis_plan_rate_exp((double)(FLEX_BITS << x->size), FLEX_K, (double)x->load);
        return 1 - clear * pow(1 - tamis_plan_rate_exp(FLEX_BITS, FLEX_K, (double)x->room),
                               flexible_rounds(x));
    }
    const struct layers *layers = opened(x, 0);
    for (uint32_t i = 0; i < layers_count(layers); i++)
        clear *= 1 - tamis_plan_rate_exp((double)layers->v[i]->bits.units, FLEX_K,
                                         (double)layers->v[i]->count);
    return 1 - clear;
}

double flexible_bits(const struct flexible *x)
{
    double bits = 0;
    for (unsigned i = 0; i < x->filters; i++) {
        const struct layers *layers = opened(x, i);
        for (uint32_t j = 0; layers && j < layers_count(layers); j++)
            bits += (double)layers->v[j]->bits.units;
    }
    return bits;
}

uint32_t flexible_rounds(const struct flexible *x)
{
    uint32_t vectors = 0;
    for (unsigned i = 0; i < x->filters; i++)
        vectors += opened(x, i) ? layers_count(opened(x, i)) : 0;
    return vectors - 1;
}

double flexible_items(const struct flexible *x)
{
    double items = 0;
    for (unsigned i = 0; i < x->filters; i++)
        items += (double)set_stored(&x->filter[i]->set);
    return items;
}

double flexible_last(const struct flexible *x)
{
    if (x->sliced)
        return (double)(FLEX_BITS << x->size) / (double)x->load;
    const struct vector *v = opened(x, 0)->v[flexible_rounds(x)];
    return (double)v->bits.units / (double)v->count;
}

tamis_plan_flex flexible_plan(enum speed speed, uint64_t n)
{
    unsigned lambda[SPEEDS_GIVEN];
    for (unsigned i = 0; i < SPEEDS_GIVEN; i++)
        lambda[i] = speed_at(speed, i);
    size_t given = speed <= LAMBDA3 ? SPEEDS_GIVEN : 1;
    if (speed_sizes(speed) > 1)
        return (tamis_plan_flex){.rate = NAN};
    return tamis_plan_flexible(FLEX_BITS, FLEX_ITEMS, FLEX_K, n, lambda, given);
}

#define MAWI_ROUNDS 1232 /* 1,261,568 published bits, the first vector left out, of 1024 each */

uint64_t flexible_mawi(uint64_t stream)
{
    struct flexible x;
    uint64_t n = 0, most = UINT64_C(1) << 20, *keys = lab_alloc(most, sizeof *keys);
    lab_keys(stream, keys, most);
    flexible_new(&x, DBF, TAMIS_XXH3, true, stream);
    for (; flexible_rounds(&x) < MAWI_ROUNDS; n += FLEX_ITEMS / 2)
        flexible_add(&x, keys + n, FLEX_ITEMS / 2);
    flexible_free(&x);
    free(keys);
    return n + FLEX_ITEMS;
}

/* ---- questions ------------------------------------------------------------------------------- */

void questions_new(struct questions *q, const struct flexible *x, uint64_t stream, size_t asked)
{
    uint64_t *keys = lab_alloc(asked, sizeof *keys);
    *q = (struct questions){lab_alloc(asked, sizeof *q->denied), asked, asked, 0};
    lab_keys(stream + (UINT64_C(1) << 30), keys, asked);
    tamis_filter_digest_fixed(x->filter[0], keys, 8, asked, q->denied);
    free(keys);
}

/* Keeps those that were not found. */
static void keep_denied(struct questions *q, const uint8_t *found)
{
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++) {
        q->denied[n] = q->denied[i];
        n += !found[i];
    }
    q->n = n;
}

double questions_ask(struct questions *q, const struct flexible *x)
{
    uint8_t *found = lab_alloc(q->asked, 1);
    for (unsigned i = 0; i < x->filters && x->sliced; i++) {
        tamis_filter_has_many(x->filter[i], q->denied, q->n, found);
        keep_denied(q, found);
    }
    struct layers *layers = set_layers(&x->filter[0]->set);
    for (uint32_t i = q->from; i < layers_count(layers) && !x->sliced; i++) {
        const struct bits *bits = &layers->v[i]->bits;
        bits->kernel->has_stream(bits, q->denied, q->n, found);
        keep_denied(q, found);
        q->from = i;
    }
    free(found);
    return 1 - (double)q->n / (double)q->asked;
}

void questions_free(struct questions *q)
{
    free(q->denied);
}
