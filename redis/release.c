/*
 * Freeing large values in the background. DEL, expiry and RENAME onto a key free in the main thread of the server
 * by default, and returning the pages of a full filter of 350 MB takes 100 ms or more. So large values go to a
 * thread of the module, whatever the lazyfree settings. Calls from other threads of the server (UNLINK) free
 * at once.
 *
 * This is off where the server evicts keys: it checks its memory after each eviction and would evict too many
 * while the first ones are still being freed. Its lazyfree-lazy-eviction waits for them.
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
static atomic_ullong
    beside; /* values that the thread has freed; read by crash reports, without lock */

static void *free_values(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct value *v = waiting;
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
    runs = runs || pthread_create(&thread, NULL, free_values, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return runs;
}

/* In a forked child, which saves, this thread does not exist: values are freed directly. */
static void forget_thread(void)
{
    main_thread = 0;
}

void release_start(void)
{
    main_thread = pthread_self();
    pthread_atfork(NULL, NULL, forget_thread);
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
