/*
 * Saves the folder of a follower in a thread of its own, so that a slow disk does not delay the thread that takes
 * messages: first the copies that changed, then the status. The position in the stream is taken before the
 * copies are saved, so it is never ahead of them.
 */
#ifndef TAMIS_FOLLOW_SAVE_H
#define TAMIS_FOLLOW_SAVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "replica_folder.h"

struct saver {
    struct replicas *replicas; /* used by this thread, except the directory */
    uint64_t every_ms;
    pthread_t thread;
    bool running;
    atomic_bool failed; /* and it was reported */
    /* Shared, under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    char position[CARRIER_POSITION];
    uint64_t reached;
    bool noted, stop;
};

/* False after complaining. */
bool saver_start(struct saver *s, struct replicas *replicas, uint64_t every_ms);
/* All messages up to this position have been taken. */
void saver_note(struct saver *s, const char *position, uint64_t reached);
/* Ends the thread; with `save`, saves once more. False if saving failed. */
bool saver_stop(struct saver *s, bool save);

#endif
