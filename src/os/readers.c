/* The process-wide list of reading threads. See readers.h. */
#define _GNU_SOURCE
#include "readers.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local struct reader *reader_mine __attribute__((tls_model("initial-exec")));
struct reader reader_slow = {.since = 1};
_Thread_local struct reader *reader_quick __attribute__((tls_model("initial-exec"))) = &reader_slow;
_Atomic uint64_t readers_clock = 1;
bool readers_fence;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reader *readers; /* protected by the lock */
static pthread_key_t key;      /* its destructor runs when a thread ends */
static bool keyed;
/* A thread got no memory for its record: from then on nobody knows whether a reader is inside. */
static struct reader unlisted;
static atomic_bool lost;

static void reader_end(void *mine)
{
    pthread_mutex_lock(&lock);
    for (struct reader **at = &readers; *at; at = &(*at)->next)
        if (*at == mine) {
            *at = (*at)->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    reader_mine = NULL;
    reader_quick = &reader_slow;
    free(mine);
}

static void hold(void)
{
    pthread_mutex_lock(&lock);
}

static void let_go(void)
{
    pthread_mutex_unlock(&lock);
}

static void start(void)
{
    readers_fence = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
    pthread_atfork(hold, let_go, let_go); /* the child finds the list consistent */
    keyed = pthread_key_create(&key, reader_end) == 0;
}

/* The destructor's code is unloaded with the library, so the key and the record of the unloading
   thread go first. */
static __attribute__((destructor)) void stop(void)
{
    if (keyed)
        pthread_key_delete(key);
    keyed = false;
    if (reader_mine && reader_mine != &unlisted)
        reader_end(reader_mine);
}

struct reader *reader_join(void)
{
    pthread_once(&once, start);
    struct reader *r = keyed ? calloc(1, sizeof *r) : NULL;
    if (!r || pthread_setspecific(key, r) != 0) {
        free(r);
        atomic_store(&lost, true);
        return reader_mine = &unlisted;
    }
    pthread_mutex_lock(&lock);
    r->next = readers;
    readers = r;
    pthread_mutex_unlock(&lock);
    reader_quick = readers_fence ? &reader_slow : r;
    return reader_mine = r;
}

uint64_t readers_oldest(void)
{
    uint64_t oldest = UINT64_MAX;
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    bool others = readers && (readers != reader_mine || readers->next);
    if (others &&
        (readers_fence || syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0))
        atomic_thread_fence(memory_order_seq_cst);
    for (const struct reader *r = readers; r; r = r->next) {
        uint64_t since = atomic_load_explicit(&r->since, memory_order_acquire);
        if (since && since < oldest)
            oldest = since;
    }
    pthread_mutex_unlock(&lock);
    return atomic_load(&lost) ? 0 : oldest;
}

void retire(struct retired **list, struct retired *retired,
            void (*dispose)(struct retired *retired, const tamis_allocator *a))
{
    *retired = (struct retired){*list, atomic_fetch_add(&readers_clock, 1) + 1, dispose};
    *list = retired;
}

/* The newest comes first: everything behind one that may be freed may be freed too. */
void retired_free(struct retired **list, bool alone, const tamis_allocator *a)
{
    uint64_t oldest = *list && !alone ? readers_oldest() : UINT64_MAX;
    while (*list && (*list)->mark > oldest)
        list = &(*list)->next;
    for (struct retired *r = *list, *next; r; r = next) {
        next = r->next;
        r->dispose(r, a);
    }
    *list = NULL;
}
