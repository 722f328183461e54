/*
 * The folder of a follower, written by a thread of its own, so that no disk holds up the thread that takes
 * messages: the copies that changed, then the status that speaks of them. Copies are read beside the
 * thread that changes them; the position in the stream is the one from before, so that what the files
 * have is never older than it says.
 */
#ifndef TAMIS_FOLLOW_SAVE_H
#define TAMIS_FOLLOW_SAVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "replica_folder.h"

struct saver {
    struct replicas *replicas; /* of this thread, but for the directory */
    uint64_t every_ms;
    pthread_t thread;
    bool running;
    atomic_bool failed; /* and said so */
    /* Shared, for as long as it takes to copy it. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    char position[CARRIER_POSITION];
    uint64_t reached;
    bool noted, stop;
};

/* False after complaining. */
bool saver_start(struct saver *s, struct replicas *replicas, uint64_t every_ms);
/* Where the follower is, after all messages up to there were taken. */
void saver_note(struct saver *s, const char *position, uint64_t reached);
/* Ends the thread; with `save`, after a last time. False if writing failed. */
bool saver_stop(struct saver *s, bool save);

#endif
