/* The inside of replicas: what origins, followers and directories share. */
#ifndef TAMIS_REPLICA_H
#define TAMIS_REPLICA_H

#include "message.h"

/* tamis_follower_take for a message that was opened; `taken` is required. `age` is that of its arrival: taking it may
   last longer than a lease. */
tamis_error follower_take(tamis_follower *f, const struct envelope *e, size_t len, uint64_t arrived,
                          uint64_t age, tamis_taken *taken, tamis_reason *reason);
/* After a file was taken: the delay of earlier messages of its run, or TAMIS_DELAY_UNKNOWN. */
void follower_expect(tamis_follower *f, int64_t delay);
/* The copy of a follower, for the thread that takes messages. */
const tamis_filter *follower_copy(const tamis_follower *f);
/* Until when (clock) its lease allows trusting the copy; 0: not at all. And for how long after the last
   contact it may be trusted. */
uint64_t follower_lease(const tamis_follower *f);
uint64_t follower_beat(const tamis_follower *f);
/* Called before a new version replaces the previous one (NULL: the first). */
typedef void (*follower_swap)(void *context, const tamis_filter *before, const tamis_filter *after);
/* For a directory: `swap` is called from now on, and the time of the last contact is the one that all its
   followers share. */
void follower_join(tamis_follower *f, follower_swap swap, void *context,
                   const _Atomic uint64_t *contact);
/* Frees it when the readers of a directory have left it. */
void follower_retire(tamis_follower *f, struct retired **list);

#endif
