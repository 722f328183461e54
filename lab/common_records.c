/* See common_records.h. */
#include "common_records.h"

#include "set/set.h"
#include "tamis/records.h"

#define CHUNK 1024

/* Array j is cells j m .. j m + m - 1; its address comes from the j-th probe. */
static void probe_segments(const struct family *family, tamis_digest digest, uint64_t units,
                           unsigned k, uint64_t *positions)
{
    uint64_t m = units / k;
    struct probe p = probe_first(digest);
    (void)family;
    for (unsigned j = 0; j < k; j++, probe_next(&p))
        positions[j] = j * m + mul_high(p.x, m);
}

/* Every vector of the one layer becomes one of q m bits and q hashes. */
static void reshape(tamis_records *x, unsigned q, uint64_t m)
{
    struct layer *layer = set_layers(&x->set)->l[0];
    MUST(terms_own(&x->set));
    set_family(&x->set)->probe = probe_segments;
    for (uint32_t i = 0; i < layer->parts; i++) {
        struct vector *old = layer->part[i].vector;
        if (!old)
            continue;
        struct vector *v = vector_new(set_allocator(&x->set), set_family(&x->set),
                                      (struct shape){TAMIS_SPREAD, q * m, q}, false, true);
        if (!v)
            MUST(TAMIS_ENOMEM);
        set_limits(set_opt(&x->set), v, UINT64_C(1) << 32, old->fpp);
        layer->part[i].vector = v;
        vector_free(old, set_allocator(&x->set));
    }
    set_layers(&x->set)->v[0] = layer->part[0].vector;
}

void records_new(struct records *r, unsigned p, unsigned q, uint64_t m, tamis_verifier verifier,
                 tamis_verify value, uint64_t stream)
{
    static const tamis_attribute names[RECORDS_P_MAX] = {
        {.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
    uint8_t family[TAMIS_KEY_LEN];
    tamis_reason reason = {0};
    lab_family(stream, family);
    tamis_records_options o = {.attributes = names,
                               .n_attributes = p,
                               .no_combos = true,
                               .verifier = verifier,
                               .value = value,
                               .set.capacity = 1000,
                               .set.growth = TAMIS_FIXED,
                               .set.layout = TAMIS_SPREAD,
                               .set.key = family,
                               .set.overfill = true};
    *r = (struct records){.p = p, .q = q, .m = m};
    MUST(tamis_records_new(&r->set, &o, &reason));
    if (m)
        reshape(r->set, q, m);
}

void records_free(struct records *r)
{
    tamis_records_free(r->set);
}

static void digests_of(const struct records *r, const uint64_t *values, size_t n, tamis_digest *out)
{
    for (size_t i = 0; i < n * r->p; i++)
        out[i] = tamis_records_digest(r->set, (uint32_t)(i % r->p), (tamis_key){&values[i], 8});
}

void records_add(struct records *r, const uint64_t *values, size_t n)
{
    tamis_digest digests[CHUNK * RECORDS_P_MAX];
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        digests_of(r, values + i * r->p, some, digests);
        MUST(tamis_records_add_many(r->set, digests, some, NULL, NULL));
    }
}

double records_share(const struct records *r, const uint64_t *values, size_t n)
{
    tamis_digest digests[CHUNK * RECORDS_P_MAX];
    uint8_t found[CHUNK];
    size_t hits = 0;
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        digests_of(r, values + i * r->p, some, digests);
        tamis_records_has_many(r->set, 0, digests, some, found);
        for (size_t j = 0; j < some; j++)
            hits += found[j];
    }
    return (double)hits / (double)n;
}

tamis_filter *concatenated_new(unsigned p, unsigned q, uint64_t m, uint64_t stream)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(stream, family);
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = TAMIS_SPREAD,
                       .bits = p * q * m,
                       .hashes = p * q,
                       .key = family,
                       .overfill = true};
    return lab_filter(&o);
}

void concatenated_add(tamis_filter *f, unsigned p, const uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        MUST(tamis_filter_add(f, values + i * p, 8 * p, NULL));
}

double concatenated_share(const tamis_filter *f, unsigned p, const uint64_t *values, size_t n)
{
    size_t hits = 0;
    for (size_t i = 0; i < n; i++)
        hits += tamis_filter_has(f, values + i * p, 8 * p);
    return (double)hits / (double)n;
}

void values_distinct(uint64_t stream, unsigned p, uint64_t *values, size_t n)
{
    lab_keys(stream, values, n * p);
}

void values_in_range(uint64_t *state, uint64_t range, unsigned p, uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n * p; i++)
        values[i] = rng_below(state, range);
}

void values_recombined(uint64_t *state, unsigned p, const uint64_t *stored, size_t n_stored,
                       uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t from[RECORDS_P_MAX];
        for (unsigned j = 0; j < p; j++) {
            bool again = true;
            while (again) {
                from[j] = (size_t)rng_below(state, n_stored);
                again = false;
                for (unsigned e = 0; e < j; e++)
                    again |= from[e] == from[j];
            }
            values[i * p + j] = stored[from[j] * p + j];
        }
    }
}
