/* Replicas inside: what origins, followers and directories of replicas share. */
#ifndef TAMIS_REPLICA_H
#define TAMIS_REPLICA_H

#include "base.h"
#include "format_message.h"

uint64_t replica_clock(void *context);   /* real time: origins */
uint64_t monotonic_clock(void *context); /* followers */

/* What a follower holds, and until when it may be trusted (clock); for the thread that takes. */
const tamis_filter *follower_copy(const tamis_follower *f);
uint64_t follower_expires(const tamis_follower *f); /* 0: not at all */

#endif
