/* Saves the folder of a follower. See follow_save.h. */
#include "follow_save.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>

/* The status describes the copy before it was saved, so it never promises more than the file has. */
static bool save_copy(struct replicas *r, uint32_t number, const char *name)
{
    char path[PATH_MAX];
    struct replica *replica = &r->replica[number];
    tamis_follower_facts facts;
    tamis_reason reason = {0};
    uint64_t now = carrier_clock(); /* not after saving, which may take longer than the lease */
    if (!tamis_directory_copy(r->directory, number, &facts))
        return true; /* dropped just now: the next round removes its file */
    replica->name = name;
    if (facts.version && (facts.epoch != replica->epoch || facts.version != replica->version)) {
        replicas_path(r, name, path);
        tamis_error e = tamis_directory_save(r->directory, number, path, &reason);
        if (e == TAMIS_EKIND)
            return true;
        if (!succeeded(e, &reason, path))
            return false;
        replica->epoch = facts.epoch;
        replica->version = facts.version;
    }
    replica->heard = now > facts.age ? now - facts.age : 0;
    replica->lease = facts.freshness == TAMIS_CURRENT ? facts.lease : 0;
    replica->beat = facts.beat;
    replica->delay = facts.delay;
    return true;
}

static bool save_all(struct saver *s)
{
    struct replicas *r = s->replicas;
    uint32_t owners = tamis_directory_owners(r->directory);
    if (!replicas_reserve(r, owners))
        return false;
    for (uint32_t i = 0; i < owners; i++) {
        const char *name = tamis_directory_name(r->directory, i);
        if (!name && r->replica[i].name)
            replicas_remove(r, i);
        else if (name && !save_copy(r, i, name))
            return false;
    }
    return replicas_write(r);
}

static void *run(void *context)
{
    struct saver *s = context;
    bool good = true;
    pthread_mutex_lock(&s->lock);
    while (good && !s->stop) {
        struct timespec next;
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_sec += (time_t)(s->every_ms / 1000);
        next.tv_nsec += (long)(s->every_ms % 1000) * 1000000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        memcpy(s->replicas->position, s->position, sizeof s->position);
        s->replicas->reached = s->reached;
        bool noted = s->noted;
        pthread_mutex_unlock(&s->lock);
        good = !noted || save_all(s);
        pthread_mutex_lock(&s->lock);
        while (!s->stop && good && (noted || !s->noted) &&
               pthread_cond_timedwait(&s->wake, &s->lock, &next) != ETIMEDOUT)
            ;
    }
    pthread_mutex_unlock(&s->lock);
    atomic_store(&s->failed, !good);
    return NULL;
}

bool saver_start(struct saver *s, struct replicas *replicas, uint64_t every_ms)
{
    pthread_condattr_t steady;
    s->replicas = replicas;
    s->every_ms = every_ms ? every_ms : 1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &steady);
    pthread_condattr_destroy(&steady);
    int error = pthread_create(&s->thread, NULL, run, s);
    s->running = error == 0;
    if (error)
        complain("%s: no thread to save with: raise the limits of the process", strerror(error));
    return s->running;
}

void saver_note(struct saver *s, const char *position, uint64_t reached)
{
    pthread_mutex_lock(&s->lock);
    memcpy(s->position, position, sizeof s->position);
    s->reached = reached;
    if (!s->noted)
        pthread_cond_signal(&s->wake);
    s->noted = true;
    pthread_mutex_unlock(&s->lock);
}

bool saver_stop(struct saver *s, bool save)
{
    if (!s->running)
        return true;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->running = false;
    s->replicas->serve[0] = 0; /* it no longer serves */
    memcpy(s->replicas->position, s->position, sizeof s->position);
    s->replicas->reached = s->reached;
    return !atomic_load(&s->failed) && (!save || save_all(s));
}
