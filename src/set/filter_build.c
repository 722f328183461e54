/*
 * Builds a plain fixed filter with several threads. Where all bits of a key are in one unit, each
 * thread takes a range of units and selects its keys from all of them: no cache line is shared, so
 * no atomic operation is needed, and every thread stays in its part of the memory. Otherwise the
 * keys are divided and the bits set atomically.
 */
#include "os/threads.h"
#include "set.h"

#define RUN          1024
#define THREADS_FROM (UINT64_C(1) << 25)

struct share {
    const struct bits *bits;
    const tamis_digest *digests;
    size_t n;
    uint64_t first_unit, end_unit; /* local layouts: its units */
    uint64_t added;
};

static uint64_t run_add(struct share *share, const tamis_digest *digests, size_t n, bool shared)
{
    uint8_t fresh[RUN];
    uint64_t added = 0;
    if (shared)
        share->bits->kernel->add_shared(share->bits, digests, n, fresh);
    else
        share->bits->kernel->add(share->bits, digests, n, fresh);
    for (size_t i = 0; i < n; i++)
        added += fresh[i];
    return added;
}

static void *local_share(void *context)
{
    struct share *share = context;
    tamis_digest mine[RUN];
    const tamis_digest *digests = share->digests;
    uint64_t units = share->bits->units, first = share->first_unit,
             mine_too = share->end_unit - first;
    size_t n = 0, all = share->n;
    for (size_t i = 0; i < all; i++) {
        mine[n] = digests[i]; /* kept if it is ours: no branch, since half of them are */
        n += mul_high(digests[i].a, units) - first < mine_too;
        if (n == RUN) {
            share->added += run_add(share, mine, n, false);
            n = 0;
        }
    }
    share->added += run_add(share, mine, n, false);
    return NULL;
}

static void *shared_share(void *context)
{
    struct share *share = context;
    for (size_t i = 0; i < share->n; i += RUN) {
        size_t some = share->n - i < RUN ? share->n - i : RUN;
        for (size_t j = 0; j < some; j += BATCH)
            share->bits->kernel->prefetch(share->bits, share->digests + i + j,
                                          some - j < BATCH ? some - j : BATCH);
        share->added += run_add(share, share->digests + i, some, true);
    }
    return NULL;
}

tamis_error tamis_filter_build(tamis_filter *f, const tamis_digest *digests, size_t n,
                               unsigned threads)
{
    struct set *s = &f->set;
    tamis_error e = set_writable(s);
    if (e != TAMIS_OK)
        return e;
    if (set_opt(s)->growth != TAMIS_FIXED || set_opt(s)->deletable)
        return TAMIS_EKIND;
    struct vector *v = set_layers(s)->v[0];
    threads = threads == 0 ? processors() : threads < THREADS_MAX ? threads : THREADS_MAX;
    /* smaller ones are as fast with one thread */
    bool large = vector_positions_total(v) / 8 >= THREADS_FROM;
    bool certainly_fits = v->load <= v->capacity && n <= v->capacity - v->load;
    if (threads < 2 || vector_watched(v) || !large || n < threads * (size_t)RUN ||
        !(certainly_fits || set_opt(s)->overfill))
        return tamis_filter_add_many(f, digests, n, NULL, NULL);
    struct share shares[THREADS_MAX];
    bool local = v->bits.kernel->local;
    for (unsigned i = 0; i < threads; i++) {
        size_t from = n / threads * i, to = i + 1 == threads ? n : n / threads * (i + 1);
        shares[i] =
            (struct share){&v->bits,
                           local ? digests : digests + from,
                           local ? n : to - from,
                           v->bits.units / threads * i,
                           i + 1 == threads ? v->bits.units : v->bits.units / threads * (i + 1),
                           0};
    }
    threads_run(local ? local_share : shared_share, shares, sizeof *shares, threads);
    for (unsigned i = 0; i < threads; i++) {
        v->load += shares[i].added;
        v->count += shares[i].added;
        s->stack->stored += shares[i].added;
    }
    return TAMIS_OK;
}
