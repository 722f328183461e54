/*
 * Building a plain fixed filter with several threads. Where all bits of a key lie in one unit, each
 * thread takes a range of units and picks its keys out of all of them: no line is shared, so no
 * atomic operation is needed, and every thread stays in its part of the memory. Elsewhere the keys
 * are divided and the bits set atomically.
 */
#include <pthread.h>

#include "filter.h"

#define THREADS_MAX 64
#define RUN         1024
#define LARGE       (UINT64_C(1) << 25)

struct part {
    const struct bits *bits;
    const tamis_digest *digests;
    size_t n;
    uint64_t first_unit, end_unit; /* local: its units */
    uint64_t added;
};

static uint64_t run_add(struct part *part, const tamis_digest *digests, size_t n, bool shared)
{
    uint8_t fresh[RUN];
    uint64_t added = 0;
    if (shared)
        part->bits->kernel->add_shared(part->bits, digests, n, fresh);
    else
        part->bits->kernel->add(part->bits, digests, n, fresh);
    for (size_t i = 0; i < n; i++)
        added += fresh[i];
    return added;
}

static void *local_part(void *context)
{
    struct part *part = context;
    tamis_digest mine[RUN];
    const tamis_digest *digests = part->digests;
    uint64_t units = part->bits->units, first = part->first_unit, mine_too = part->end_unit - first;
    size_t n = 0, all = part->n;
    for (size_t i = 0; i < all; i++) {
        mine[n] = digests[i]; /* kept if it is ours: no branch, since half of them are */
        n += mul_high(digests[i].a, units) - first < mine_too;
        if (n == RUN) {
            part->added += run_add(part, mine, n, false);
            n = 0;
        }
    }
    part->added += run_add(part, mine, n, false);
    return NULL;
}

static void *shared_part(void *context)
{
    struct part *part = context;
    for (size_t i = 0; i < part->n; i += RUN) {
        size_t some = part->n - i < RUN ? part->n - i : RUN;
        for (size_t j = 0; j < some; j += BATCH)
            part->bits->kernel->prefetch(part->bits, part->digests + i + j,
                                         some - j < BATCH ? some - j : BATCH);
        part->added += run_add(part, part->digests + i, some, true);
    }
    return NULL;
}

/* Runs the parts, each in a thread of its own while there are threads to be had. */
static void run_parts(struct part *parts, unsigned n, void *(*body)(void *))
{
    pthread_t thread[THREADS_MAX];
    bool started[THREADS_MAX] = {false};
    for (unsigned i = 1; i < n; i++)
        started[i] = pthread_create(&thread[i], NULL, body, &parts[i]) == 0;
    body(&parts[0]);
    for (unsigned i = 1; i < n; i++) {
        if (started[i])
            pthread_join(thread[i], NULL);
        else
            body(&parts[i]);
    }
}

tamis_error tamis_filter_build(tamis_filter *f, const tamis_digest *digests, size_t n,
                               unsigned threads)
{
    tamis_error e = filter_writable(f);
    if (e != TAMIS_OK)
        return e;
    if (f->set.growth != TAMIS_FIXED || f->set.deletable)
        return TAMIS_EKIND;
    struct vector *v = filter_stack(f)->v[0];
    if (threads == 0)
        threads = mem_cores();
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    bool large = vector_positions_total(v) / 8 >= LARGE; /* below, one thread is as fast */
    bool certainly_fits = v->load <= v->capacity && n <= v->capacity - v->load;
    if (threads < 2 || v->changes || v->turned.data || !large || n < threads * (size_t)RUN ||
        !(certainly_fits || f->set.overfill))
        return tamis_filter_add_many(f, digests, n, NULL, NULL);
    struct part parts[THREADS_MAX];
    bool local = v->bits.kernel->local;
    for (unsigned i = 0; i < threads; i++) {
        size_t from = n / threads * i, to = i + 1 == threads ? n : n / threads * (i + 1);
        parts[i] =
            (struct part){&v->bits,
                          local ? digests : digests + from,
                          local ? n : to - from,
                          v->bits.units / threads * i,
                          i + 1 == threads ? v->bits.units : v->bits.units / threads * (i + 1),
                          0};
    }
    run_parts(parts, threads, local ? local_part : shared_part);
    for (unsigned i = 0; i < threads; i++) {
        v->load += parts[i].added;
        v->count += parts[i].added;
        f->stored += parts[i].added;
    }
    return TAMIS_OK;
}
