/*
 * Readers beside a writer: when may what was replaced be freed?
 *
 * Every thread that reads has a record of its own in one list of the process. It writes there the time at
 * which it went in, and 0 when it is out: two plain stores, no locked instruction, and nothing to keep in the
 * objects that are read. A writer replaces a pointer, takes a mark, and frees the old object once every reader
 * that is inside went in after the mark. Before it looks it has the system run a barrier on all processors
 * that run this process (membarrier, some microseconds, rarely), so that readers need none; where the system
 * has no such call, readers fence instead.
 *
 * A reader goes in before it loads a pointer and comes out when it is done with what the pointer led to. It may go
 * in again while it is inside.
 */
#ifndef TAMIS_READERS_H
#define TAMIS_READERS_H

#include <stdatomic.h>

#include "base/base.h"

struct reader {
    _Atomic uint64_t since; /* the time when it went in; 0: it is outside */
    struct reader *next;
    char line[48]; /* threads do not share a line */
};

/* The library may be loaded late, by dlopen: one pointer fits what the loader keeps for that. */
extern _Thread_local struct reader *reader_mine __attribute__((tls_model("initial-exec")));
extern _Atomic uint64_t readers_clock;
extern bool readers_fence; /* set before the first reader goes in */

struct reader *reader_join(void); /* this thread's record; cannot fail */

/* What readers_leave() wants. */
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

/* The time now: taken after something was replaced. */
uint64_t readers_mark(void);
/* The time when the reader went in that is inside for longest; UINT64_MAX: none is. What was replaced before a
   mark may be freed if this is not before the mark. */
uint64_t readers_oldest(void);

/* Part of what was replaced and readers may still be in: it is disposed of when no reader can be. */
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
