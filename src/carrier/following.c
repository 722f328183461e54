/*
 * Follows all origins of an address into a directory: new owners, missing snapshots, messages. The cost of a round
 * depends on the messages it takes, not on the number of owners: 10,000 owners with a heartbeat every ten seconds
 * send 1,000 messages per second.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "carrier.h"
#include "tamis/carrier.h"

#define WAIT_MS   100  /* for messages, so that other work is not delayed longer */
#define OWNERS_MS 5000 /* between checks for owners that have sent no message */
#define PAUSE_MIN 200  /* between fetches of a snapshot that was of no use */
#define PAUSE_MAX 10000

/* An owner, by its number in the directory. */
struct followed {
    bool known, wanting;        /* wanting: in the list `wanting` */
    bool told;                  /* that its messages are refused, and why */
    uint64_t next_fetch, pause; /* milliseconds: when a snapshot may be fetched again */
};

struct tamis_following {
    tamis_directory *directory;
    struct carrier *carrier;
    tamis_following_options options;
    char position[CARRIER_POSITION];
    struct followed *owner;
    size_t n_owner;
    uint32_t *wanting;
    size_t n_wanting, wanting_room;
    uint64_t next_owners;
    bool out_of_memory, was_cut_off;
    _Atomic uint64_t messages, bytes, versions, refused, snapshots, reached;
    atomic_bool cut_off, stop;
    pthread_t thread;
    bool running;
};

__attribute__((format(printf, 2, 3))) static void note(const tamis_following *f, const char *format,
                                                       ...)
{
    char text[640];
    va_list args;
    if (!f->options.note)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->options.note(f->options.note_context, text);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* Puts the owner into the list of those that may need a snapshot. */
static void want(tamis_following *f, uint32_t number)
{
    if (f->owner[number].wanting)
        return;
    if (!array_room(NULL, &f->wanting, f->n_wanting, &f->wanting_room, sizeof *f->wanting)) {
        f->out_of_memory = true;
        return;
    }
    f->wanting[f->n_wanting++] = number;
    f->owner[number].wanting = true;
}

/* Finds the owner or adds it, in doubt; NULL: not a valid name, or no memory. */
static struct followed *owner_of(tamis_following *f, const char *name, uint32_t *number)
{
    if (!name[0] || strlen(name) > TAMIS_OWNER_MAX)
        return NULL;
    if (tamis_directory_expect(f->directory, name, number, NULL) != TAMIS_OK) {
        f->out_of_memory = true;
        return NULL;
    }
    size_t had = f->n_owner;
    if (!array_room(NULL, &f->owner, *number, &f->n_owner, sizeof *f->owner)) {
        f->out_of_memory = true;
        return NULL;
    }
    memset(f->owner + had, 0, (f->n_owner - had) * sizeof *f->owner);
    if (!f->owner[*number].known)
        want(f, *number);
    f->owner[*number].known = true;
    return &f->owner[*number];
}

static void drop(tamis_following *f, uint32_t number)
{
    bool wanting = number < f->n_owner && f->owner[number].wanting; /* stays in the list */
    tamis_directory_drop(f->directory, tamis_directory_name(f->directory, number), NULL);
    if (number < f->n_owner)
        f->owner[number] = (struct followed){.wanting = wanting};
}

static tamis_freshness freshness(const tamis_following *f, uint32_t number)
{
    const tamis_follower *copy = tamis_directory_follower(f->directory, number);
    return copy ? tamis_follower_freshness(copy) : TAMIS_CURRENT; /* it was put as a set */
}

static void take(void *context, const char *name, const void *data, size_t len, uint64_t age)
{
    tamis_following *f = context;
    uint32_t number;
    struct followed *owner = owner_of(f, name, &number);
    tamis_reason reason = {0};
    tamis_message m;
    tamis_taken taken;
    f->messages++;
    f->bytes += len;
    if (!owner)
        return;
    tamis_error e = tamis_directory_take(f->directory, name, data, len, age, &taken, &reason);
    f->versions += taken == TAMIS_APPLIED;
    f->refused += e != TAMIS_OK;
    if (e != TAMIS_OK)
        want(f, number);
    if (e == TAMIS_EBASE && age != AGE_UNKNOWN &&
        tamis_message_read(&m, data, len, NULL) == TAMIS_OK && m.type == TAMIS_HEARTBEAT)
        owner->next_fetch = 0; /* the origin is alive and may have a new snapshot */
    if (e != TAMIS_OK && (f->options.verbose || (e != TAMIS_EBASE && !owner->told))) {
        note(f, "refused: %s: %s", reason.text, name);
        owner->told = true;
    }
    if (taken == TAMIS_HEARD && freshness(f, number) == TAMIS_GONE)
        drop(f, number);
}

/* A forgotten owner is dropped, unless its copy is current. */
static void expect(void *context, const char *name, bool forgotten)
{
    tamis_following *f = context;
    uint32_t number = tamis_directory_number(f->directory, name);
    if (!forgotten)
        owner_of(f, name, &number);
    else if (number < TAMIS_OWNERS_MAX && freshness(f, number) != TAMIS_CURRENT)
        drop(f, number);
}

/* Fetches the snapshot of an owner, if it is time; returns whether it may still need one. A snapshot that is of no
   use, because its origin died meanwhile, is fetched at growing intervals. */
static bool fetch_snapshot(tamis_following *f, uint32_t number, bool *failed)
{
    const char *name = tamis_directory_name(f->directory, number);
    tamis_follower_facts facts;
    if (!name || !tamis_directory_copy(f->directory, number, &facts))
        return false;
    struct followed *owner = &f->owner[number];
    if (!facts.needs_snapshot) {
        owner->pause = 0;
        return false;
    }
    if (carrier_now() < owner->next_fetch || *failed)
        return true;
    uint64_t pause = 2 * owner->pause < PAUSE_MAX ? 2 * owner->pause : PAUSE_MAX;
    owner->pause = owner->pause ? pause : PAUSE_MIN;
    owner->next_fetch = carrier_now() + owner->pause;
    int there = carrier_fetch(f->carrier, name, f->position, take, f);
    f->snapshots += there > 0;
    *failed = there < 0;
    return true;
}

/* The list may grow meanwhile. */
static void fetch_snapshots(tamis_following *f)
{
    size_t kept = 0;
    bool failed = false;
    for (size_t i = 0; i < f->n_wanting; i++) {
        uint32_t number = f->wanting[i];
        bool wants = fetch_snapshot(f, number, &failed);
        f->owner[number].wanting = wants;
        if (wants)
            f->wanting[kept++] = number;
    }
    f->n_wanting = kept;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void note_connection(tamis_following *f, bool good)
{
    if (!good && !f->was_cut_off)
        note(f, "%s: trying again", f->carrier->error);
    if (good && f->was_cut_off)
        note(f, "reachable again: %u origins", tamis_directory_owners(f->directory));
    f->was_cut_off = !good;
    atomic_store(&f->cut_off, !good);
    atomic_store(&f->reached, f->carrier->reached);
}

tamis_error tamis_following_step(tamis_following *f, int milliseconds, tamis_reason *reason)
{
    uint64_t now = carrier_now();
    if (!f->was_cut_off && now >= f->next_owners && carrier_owners(f->carrier, expect, f))
        f->next_owners = now + OWNERS_MS;
    if (!f->was_cut_off)
        fetch_snapshots(f);
    int n = carrier_receive(f->carrier, f->position, milliseconds, take, f);
    if (f->was_cut_off && n >= 0)
        f->next_owners = 0;
    note_connection(f, n >= 0);
    if (f->carrier->reached)
        tamis_directory_contact(f->directory, carrier_since(f->carrier->reached, carrier_clock()));
    if (f->out_of_memory)
        return fail(reason, TAMIS_ENOMEM, "no memory for the owners");
    if (n >= 0)
        return TAMIS_OK;
    return fail(reason, f->carrier->hopeless ? TAMIS_EARG : TAMIS_EIO, "%s", f->carrier->error);
}

static void *run(void *context)
{
    tamis_following *f = context;
    while (!atomic_load(&f->stop))
        if (tamis_following_step(f, WAIT_MS, NULL) == TAMIS_EARG)
            carrier_sleep(PAUSE_MAX / 10); /* a wrong password may be corrected */
    return NULL;
}

tamis_error tamis_following_start(tamis_following *f, tamis_reason *reason)
{
    if (f->running)
        return fail(reason, TAMIS_EBUSY, "a thread already follows it");
    f->running = pthread_create(&f->thread, NULL, run, f) == 0;
    return f->running ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory for a thread");
}

tamis_error tamis_following_new(tamis_following **out, const char *address,
                                tamis_directory *directory, const tamis_following_options *options,
                                tamis_reason *reason)
{
    char error[256] = "";
    tamis_following *f = calloc(1, sizeof *f);
    if (!f)
        return fail(reason, TAMIS_ENOMEM, "no memory to follow %s", address);
    f->directory = directory;
    if (options)
        f->options = *options;
    if (options && options->position)
        snprintf(f->position, sizeof f->position, "%s", options->position);
    f->options.position = NULL;
    f->carrier = carrier_open(address, error);
    if (!f->carrier) {
        free(f);
        return fail(reason, TAMIS_EARG, "%s", error);
    }
    const char *name; /* copies that are there already */
    for (uint32_t i = 0, number; i < tamis_directory_owners(directory); i++)
        if ((name = tamis_directory_name(directory, i)) && tamis_directory_follower(directory, i))
            owner_of(f, name, &number);
    *out = f;
    return TAMIS_OK;
}

void tamis_following_free(tamis_following *f)
{
    if (!f)
        return;
    atomic_store(&f->stop, true);
    if (f->running)
        pthread_join(f->thread, NULL);
    carrier_close(f->carrier);
    free(f->owner);
    free(f->wanting);
    free(f);
}

void tamis_following_info(const tamis_following *f, tamis_following_facts *facts)
{
    uint64_t reached = atomic_load(&f->reached);
    *facts = (tamis_following_facts){
        .messages = atomic_load(&f->messages),
        .bytes = atomic_load(&f->bytes),
        .versions = atomic_load(&f->versions),
        .refused = atomic_load(&f->refused),
        .snapshots = atomic_load(&f->snapshots),
        .reached = reached ? carrier_since(reached, carrier_clock()) : UINT64_MAX,
        .cut_off = atomic_load(&f->cut_off),
    };
}

void tamis_following_position(const tamis_following *f, char position[TAMIS_POSITION_MAX])
{
    memcpy(position, f->position, sizeof f->position);
}
