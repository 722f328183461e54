/*
 * Readers beside a writer: when may a replaced object be freed?
 *
 * Every reading thread has a record in one list of the process. It stores there the time at which
 * it entered, and 0 when it leaves: two plain stores, no locked instruction, and nothing to
 * maintain in the objects being read. A writer replaces a pointer, takes a mark, and frees the old
 * object once every reader that is inside entered after the mark. Before it looks, it has the
 * kernel run a barrier on all processors that run this process (membarrier, a few microseconds,
 * rarely), so that readers need none; where the kernel has no such call, readers use a fence
 * instead.
 *
 * A reader enters before it loads a pointer and leaves when it no longer uses what the pointer led
 * to. It may enter again while it is inside.
 */
#ifndef TAMIS_READERS_H
#define TAMIS_READERS_H

#include <stdatomic.h>

#include "base/base.h"

struct reader {
    _Atomic uint64_t since; /* time when it entered; 0: outside */
    struct reader *next;
    char line[48]; /* keeps threads on separate cache lines */
};

/* The library may be loaded late, by dlopen: two pointers fit into the TLS space that the loader
   reserves for that. */
extern _Thread_local struct reader *reader_mine __attribute__((tls_model("initial-exec")));
/* The same if readers need no fence; otherwise, and before the thread has entered once, reader_slow, which looks as if
   the thread were inside. */
extern struct reader reader_slow __attribute__((visibility("hidden")));
extern _Thread_local struct reader *reader_quick __attribute__((tls_model("initial-exec")));
/* Hidden here too, so that they are reached without the table of global offsets. */
extern _Atomic uint64_t readers_clock __attribute__((visibility("hidden")));
/* Set before the first reader enters. */
extern bool readers_fence __attribute__((visibility("hidden")));

struct reader *reader_join(void); /* this thread's record; cannot fail */

/* Returns the argument for readers_leave(). */
ALWAYS_INLINE uint64_t readers_enter(void)
{
    struct reader *r = LIKELY(reader_mine) ? reader_mine : reader_join();
    uint64_t before = atomic_load_explicit(&r->since, memory_order_relaxed);
    if (LIKELY(before == 0))
        atomic_store_explicit(&r->since, atomic_load_explicit(&readers_clock, memory_order_acquire),
                              memory_order_release);
    if (UNLIKELY(readers_fence))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
    return before;
}

ALWAYS_INLINE void readers_leave(uint64_t before)
{
    atomic_store_explicit(&reader_mine->since, before, memory_order_release);
}

/* The time when the longest-present reader entered; UINT64_MAX if nobody is inside. An object that was
   retired before that may be freed. */
uint64_t readers_oldest(void);

/* Embedded in an object that was replaced but may still be read; it is disposed of when no
   reader can be inside. */
struct retired {
    struct retired *next;
    uint64_t mark;
    void (*dispose)(struct retired *retired, const tamis_allocator *a);
};

void retire(struct retired **list, struct retired *retired,
            void (*dispose)(struct retired *retired, const tamis_allocator *a));
/* `alone`: the caller knows that no reader is inside. */
void retired_free(struct retired **list, bool alone, const tamis_allocator *a);

#endif
