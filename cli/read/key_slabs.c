/*
 * Standard input in slabs. One thread reads, one slab after the other, in a ring:
 *
 *     tail of the slab before | read from the input ...... end | tail
 *     ^ data                                             whole ^     ^ len
 *
 * With one thread the ring has one slab, and its batches are cut, queried and taken in turn, so that they stay in the
 * cache. With more threads, any free worker cuts and queries the batches of a slab, and the reader takes them in
 * order.
 */
#define _GNU_SOURCE /* memrchr, F_SETPIPE_SZ */
#include "key_slabs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/args.h"
#include "ui/out.h"
#include "ui/progress.h"

#define SLAB   ((size_t)1 << 20)
#define A_TIME ((size_t)1 << 20) /* most bytes read at once */

struct slab {
    char *data;
    size_t room, len, whole;
    struct batch **batch; /* with several threads */
    size_t n, batch_room;
    bool done, no_memory;
};

struct key_reader {
    struct keys *keys;
    const struct work *work;
    struct slab *ring;
    size_t n_ring;
    size_t filled, claimed, taken; /* slabs read, started and taken so far */
    bool at_end;
    uint64_t number; /* of the next line */
    pthread_mutex_t mutex;
    pthread_cond_t some, ready;
    bool closing;
};

/* ---- reading --------------------------------------------------------------------------------- */

uint64_t keys_input_size(void)
{
    struct stat st;
    off_t at;
    if (fstat(STDIN_FILENO, &st) != 0 || !S_ISREG(st.st_mode) ||
        (at = lseek(STDIN_FILENO, 0, SEEK_CUR)) < 0 || at >= st.st_size)
        return 0;
    return (uint64_t)(st.st_size - at);
}

static bool input_waits(void)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 0) == 0;
}

static bool slab_grow(struct slab *s, size_t room)
{
    if (room <= s->room)
        return true;
    char *data = realloc(s->data, room);
    if (!data)
        return refuse("out of memory: standard input: a line is too long");
    s->data = data;
    s->room = room;
    return true;
}

/* Reads once into the slab. Before waiting for input, results so far are written. */
static bool slab_read(struct key_reader *r, struct slab *s)
{
    size_t room = s->room - s->len - 1; /* one byte for the line end that the last line may lack */
    if (input_waits())
        put_flush();
    for (;;) {
        ssize_t n = read(STDIN_FILENO, s->data + s->len, room < A_TIME ? room : A_TIME);
        if (n >= 0) {
            s->len += (size_t)n;
            r->at_end = n == 0;
            return true;
        }
        if (errno != EINTR)
            return refuse("%s: standard input: it could not be read to its end", strerror(errno));
    }
}

/* Fills the next slab with whole lines, at least one unless the input ends. */
static bool slab_fill(struct key_reader *r)
{
    struct slab *s = &r->ring[r->filled % r->n_ring];
    const struct slab *before = &r->ring[(r->filled + r->n_ring - 1) % r->n_ring];
    size_t tail = before->len - before->whole, searched = 0;
    if (!slab_grow(s, tail + SLAB < SLAB * 2 ? SLAB * 2 : tail * 2))
        return false;
    if (tail)
        memmove(s->data, before->data + before->whole, tail);
    s->len = tail;
    s->whole = 0;
    while (!s->whole && !r->at_end) {
        if (!slab_grow(s, s->room - s->len < SLAB ? s->room * 2 : s->room) || !slab_read(r, s))
            return false;
        const char *end = memrchr(s->data + searched, r->keys->end, s->len - searched);
        s->whole = end ? (size_t)(end - s->data) + 1 : 0;
        searched = s->len;
    }
    if (r->at_end && s->whole < s->len) { /* a last line without a line end gets one */
        s->data[s->len++] = r->keys->end;
        s->whole = s->len;
    }
    return true;
}

/* ---- one thread ------------------------------------------------------------------------------ */

/* False: stop. */
static bool batch_take(struct key_reader *r, struct batch *b, int *status)
{
    b->number = r->number;
    r->number += b->n;
    if (!batch_judge(b, r->keys)) {
        *status = TROUBLE;
        return false;
    }
    return r->work->take(r->work->context, b) && !put_failed();
}

static int run_alone(struct key_reader *r)
{
    struct batch *b = malloc(sizeof *b);
    int status = b ? FOUND : complain("out of memory: batch of keys: free some memory");
    bool more = b != NULL;
    while (more && !r->at_end) {
        if (!slab_fill(r)) {
            status = TROUBLE;
            break;
        }
        const struct slab *s = &r->ring[r->filled++ % r->n_ring];
        for (const char *at = s->data, *to = at + s->whole; at < to && more;) {
            at = batch_cut(b, r->keys, at, to);
            batch_ask(b, r->keys, r->work);
            more = batch_take(r, b, &status);
        }
        progress_step(s->whole);
    }
    free(b);
    return status;
}

/* ---- several threads ------------------------------------------------------------------------- */

static struct batch *next_batch(struct slab *s)
{
    size_t had = s->batch_room;
    if (!room_for(&s->batch, s->n, &s->batch_room, sizeof *s->batch))
        return NULL;
    memset(s->batch + had, 0, (s->batch_room - had) * sizeof *s->batch);
    if (!s->batch[s->n])
        s->batch[s->n] = malloc(sizeof(struct batch));
    return s->batch[s->n];
}

static void slab_ask(struct slab *s, const struct keys *keys, const struct work *work)
{
    s->n = 0;
    s->no_memory = false;
    for (const char *at = s->data, *to = at + s->whole; at < to; s->n++) {
        struct batch *b = next_batch(s);
        if (!b) {
            s->no_memory = true;
            return;
        }
        at = batch_cut(b, keys, at, to);
        batch_ask(b, keys, work);
    }
}

static void *worker(void *context)
{
    struct key_reader *r = context;
    pthread_mutex_lock(&r->mutex);
    for (;;) {
        while (!r->closing && r->claimed == r->filled)
            pthread_cond_wait(&r->some, &r->mutex);
        if (r->closing)
            break;
        struct slab *s = &r->ring[r->claimed++ % r->n_ring];
        pthread_mutex_unlock(&r->mutex);
        slab_ask(s, r->keys, r->work);
        pthread_mutex_lock(&r->mutex);
        s->done = true;
        pthread_cond_signal(&r->ready);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* Takes the oldest slab once it is done. */
static bool slab_take(struct key_reader *r, int *status)
{
    struct slab *s = &r->ring[r->taken % r->n_ring];
    pthread_mutex_lock(&r->mutex);
    while (!s->done)
        pthread_cond_wait(&r->ready, &r->mutex);
    pthread_mutex_unlock(&r->mutex);
    r->taken++;
    s->done = false;
    for (size_t i = 0; i < s->n; i++)
        if (!batch_take(r, s->batch[i], status))
            return false;
    progress_step(s->whole);
    if (s->no_memory)
        *status = complain("out of memory: batch of keys: use fewer threads");
    return !s->no_memory;
}

/* Reads ahead while there is a free slab and something to read, otherwise takes. One slab stays
   behind to hold the tail. */
static int read_and_take(struct key_reader *r)
{
    int status = FOUND;
    while (!r->at_end || r->taken < r->filled) {
        bool room = r->filled - r->taken < r->n_ring - 1 && !r->at_end;
        if (room && (r->taken == r->filled || !input_waits())) {
            if (!slab_fill(r))
                return TROUBLE;
            pthread_mutex_lock(&r->mutex);
            r->filled++;
            pthread_cond_signal(&r->some);
            pthread_mutex_unlock(&r->mutex);
        } else if (!slab_take(r, &status)) {
            break;
        }
    }
    return status;
}

static int run_threads(struct key_reader *r, size_t n)
{
    pthread_t thread[THREADS_MAX];
    size_t started = 0;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->some, NULL);
    pthread_cond_init(&r->ready, NULL);
    while (started < n && pthread_create(&thread[started], NULL, worker, r) == 0)
        started++;
    int status = started ? read_and_take(r) : run_alone(r);
    pthread_mutex_lock(&r->mutex);
    r->closing = true;
    pthread_cond_broadcast(&r->some);
    pthread_mutex_unlock(&r->mutex);
    for (size_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return status;
}

static void reader_free(struct key_reader *r)
{
    for (size_t i = 0; i < r->n_ring; i++) {
        for (size_t j = 0; j < r->ring[i].batch_room; j++)
            free(r->ring[i].batch[j]);
        free(r->ring[i].batch);
        free(r->ring[i].data);
    }
    free(r->ring);
}

int slabs_run(struct keys *keys, const struct work *work)
{
    size_t threads = (size_t)keys->threads;
    struct key_reader r = {.keys = keys, .work = work, .number = 1};
    r.n_ring = threads > 1 ? 2 * threads + 2 : 1;
    r.ring = calloc(r.n_ring, sizeof *r.ring);
    if (!r.ring)
        return complain("out of memory: buffers for standard input: free some memory");
    /* if it is a pipe and this is permitted */
    (void)fcntl(STDIN_FILENO, F_SETPIPE_SZ, (int)A_TIME);
    progress_start(keys_input_size());
    int status = threads > 1 ? run_threads(&r, threads) : run_alone(&r);
    progress_end();
    reader_free(&r);
    return status;
}
