/*
 * Frees and copies large values in the background.
 *
 * By default DEL, expiry and RENAME onto a key free memory in the main thread of the server, and returning the pages
 * of a full filter of 350 MB takes 100 ms or more. So large values are passed to a thread of the module, whatever the
 * lazyfree settings are. Calls from other threads of the server (UNLINK) free at once. This is off if the server evicts keys: it
 * checks its memory after each eviction and would evict too many while the first ones are still being freed. Its
 * lazyfree-lazy-eviction waits for them.
 *
 * COPY allocates the new value and replies; the thread copies the bytes, 124 MB in 80 ms. A command that uses the new
 * value meanwhile, or changes or frees the old one, waits until the copy is complete, and so does a fork, whose child
 * has no such thread. The old value can be read.
 */
#include "module.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define LARGE ((size_t)4 << 20)

static pthread_t main_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct value *waiting; /* linked by next_freed */
static bool runs;
/* Values that the thread has freed and copied; crash reports read them without the lock. */
static atomic_ullong beside, copied_beside;

struct copying {
    struct copying *next;
    const struct value *from, *to;
    struct mem_later bytes;
    bool begun;
};

static struct copying *copies; /* in the order in which they are done */
static pthread_cond_t copied = PTHREAD_COND_INITIALIZER;
atomic_uint copies_under_way;

/* Does the first copy, in whichever thread needs it, unless another one is doing it. Called with the lock, which
   is released meanwhile. */
static void copy_step(void)
{
    struct copying *c = copies;
    if (c->begun) {
        pthread_cond_wait(&copied, &lock);
        return;
    }
    c->begun = true;
    pthread_mutex_unlock(&lock);
    mem_copy_now(&c->bytes);
    pthread_mutex_lock(&lock);
    copies = c->next;
    rm.Free(c);
    copied_beside++;
    copies_under_way--;
    pthread_cond_broadcast(&copied);
}

/* Copies come first: a value that waits to be freed may be the source of one. */
static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct value *v = waiting;
        if (copies) {
            copy_step();
            continue;
        }
        if (!v) {
            pthread_cond_wait(&more, &lock);
            continue;
        }
        waiting = v->next_freed;
        beside++;
        pthread_mutex_unlock(&lock);
        value_free(v);
        pthread_mutex_lock(&lock);
    }
    return NULL;
}

/* Signals are blocked in the thread: the server handles them. */
static bool start_thread(void)
{
    sigset_t all, was;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    runs = runs || pthread_create(&thread, NULL, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return runs;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    while (copies)
        copy_step();
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* In a forked child, which saves, this thread does not exist: values are freed directly. */
static void in_child(void)
{
    main_thread = 0;
    pthread_mutex_unlock(&lock);
}

void release_start(void)
{
    if (pthread_atfork(before_fork, after_fork, in_child) == 0)
        main_thread = pthread_self();
}

/* A reader of the old value need not wait. */
static bool concerns(const struct value *v, bool reads)
{
    for (const struct copying *c = copies; c; c = c->next)
        if (c->to == v || (c->from == v && !reads))
            return true;
    return false;
}

void copy_finish(const struct value *v, bool reads)
{
    pthread_mutex_lock(&lock);
    while (concerns(v, reads))
        copy_step();
    pthread_mutex_unlock(&lock);
}

/* Copies in this thread if there is little, or if there is no other thread. */
void copy_beside(const struct value *from, const struct value *to, struct mem_later *bytes)
{
    bool mine = main_thread && pthread_equal(main_thread, pthread_self());
    struct copying *c = mine && bytes->n && value_bytes(to) > LARGE ? rm.TryAlloc(sizeof *c) : NULL;
    if (c) {
        *c = (struct copying){.from = from, .to = to, .bytes = *bytes};
        pthread_mutex_lock(&lock);
        bool queued = start_thread();
        if (queued) {
            struct copying **last = &copies;
            while (*last)
                last = &(*last)->next;
            *last = c;
            copies_under_way++;
            pthread_cond_signal(&more);
        }
        pthread_mutex_unlock(&lock);
        if (queued) {
            *bytes = (struct mem_later){0};
            return;
        }
        rm.Free(c);
    }
    mem_copy_now(bytes);
}

void release_value(struct value *v)
{
    bool queued = false;
    if (main_thread && pthread_equal(main_thread, pthread_self()) && !settings_evicts() &&
        value_bytes(v) > LARGE) {
        pthread_mutex_lock(&lock);
        queued = start_thread();
        if (queued) {
            v->next_freed = waiting;
            waiting = v;
            pthread_cond_signal(&more);
        }
        pthread_mutex_unlock(&lock);
    }
    if (!queued)
        value_free(v);
}

unsigned long long release_count(void)
{
    return beside;
}

unsigned long long copy_count(void)
{
    return copied_beside;
}
