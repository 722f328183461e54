/* See common_replica.h. */
#include "common_replica.h"

#include "set/set.h"

#define CHUNK 4096

static tamis_filter *filter_for(const struct host *h, uint64_t m)
{
    uint8_t family[TAMIS_KEY_LEN];
    lab_family(h->state, family);
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = TAMIS_SPREAD,
                       .bits = m,
                       .hashes = h->k,
                       .key = family,
                       .deletable = true,
                       .overfill = true};
    return lab_filter(&o);
}

static void copy_is_true(struct host *h)
{
    if (h->copy)
        tamis_filter_free(h->copy);
    MUST(tamis_filter_clone(&h->copy, h->filter));
    memset(h->fresh, 0, h->n);
}

void host_new(struct host *h, uint64_t m, unsigned k, size_t n, uint64_t stream)
{
    *h = (struct host){.m = m, .k = k, .room = 4096, .next = stream << 20, .state = stream + 1};
    h->objects = lab_alloc(h->room, sizeof *h->objects);
    h->fresh = lab_alloc(h->room, sizeof *h->fresh);
    h->filter = filter_for(h, m);
    host_add(h, n);
    copy_is_true(h);
}

void host_free(struct host *h)
{
    tamis_filter_free(h->filter);
    tamis_filter_free(h->copy);
    free(h->objects);
    free(h->fresh);
}

void host_add(struct host *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (h->n == h->room)
            MUST(TAMIS_ELIMIT);
        lab_keys(h->next++, &h->objects[h->n], 1);
        MUST(tamis_filter_add(h->filter, &h->objects[h->n], 8, NULL));
        h->fresh[h->n++] = 1;
    }
}

static void delete_at(struct host *h, size_t i)
{
    tamis_removed outcome;
    MUST(tamis_filter_remove(h->filter, &h->objects[i], 8, &outcome));
    h->objects[i] = h->objects[--h->n];
    h->fresh[i] = h->fresh[h->n];
}

void host_delete(struct host *h, size_t n)
{
    for (; n && h->n; n--)
        delete_at(h, (size_t)rng_below(&h->state, h->n));
}

void host_delete_old(struct host *h, size_t n)
{
    while (n) {
        size_t i = (size_t)rng_below(&h->state, h->n);
        if (h->fresh[i])
            continue;
        delete_at(h, i);
        n--;
    }
}

uint64_t host_publish(struct host *h)
{
    uint64_t bytes = 0;
    MUST(
        tamis_filter_diff(h->copy, h->filter, TAMIS_SAVE_BITS_ONLY, lab_count_bytes, &bytes, NULL));
    copy_is_true(h);
    return bytes;
}

uint64_t host_resize(struct host *h, uint64_t m)
{
    tamis_filter_free(h->filter);
    h->m = m;
    h->filter = filter_for(h, m);
    lab_add(h->filter, h->objects, h->n);
    copy_is_true(h);
    return tamis_filter_encoded_size(h->filter, TAMIS_SAVE_BITS_ONLY);
}

void host_changed(const struct host *h, double *delta1, double *delta0)
{
    const struct vector *now = set_layers(&h->filter->set)->v[0],
                        *then = set_layers(&h->copy->set)->v[0];
    uint64_t ones = 0, zeros = 0;
    for (uint64_t i = 0; i < (h->m + 63) / 64; i++) {
        uint64_t a = vector_word(now, i), b = vector_word(then, i);
        ones += (uint64_t)__builtin_popcountll(a & ~b);
        zeros += (uint64_t)__builtin_popcountll(b & ~a);
    }
    *delta1 = (double)ones / (double)h->m;
    *delta0 = (double)zeros / (double)h->m;
}

double host_missed(const struct host *h)
{
    return h->n ? 1 - (double)lab_count(h->copy, h->objects, h->n) / (double)h->n : 0;
}

struct met host_ask(const struct host *h, uint64_t stream, uint64_t asked)
{
    uint64_t keys[CHUNK], positive = 0, disagree = 0;
    tamis_digest digests[CHUNK];
    uint8_t now[CHUNK], then[CHUNK];
    for (uint64_t i = 0; i < asked; i += CHUNK) {
        size_t some = asked - i < CHUNK ? (size_t)(asked - i) : CHUNK;
        lab_keys((UINT64_C(1) << 29) + stream * 64 + i / CHUNK, keys, some);
        tamis_filter_digest_fixed(h->filter, keys, 8, some, digests);
        tamis_filter_has_many(h->filter, digests, some, now);
        tamis_filter_has_many(h->copy, digests, some, then);
        for (size_t j = 0; j < some; j++) {
            positive += then[j];
            disagree += now[j] && !then[j];
        }
    }
    return (struct met){(double)positive / (double)asked, (double)disagree / (double)asked};
}
