/*
 * tamis: following origins wherever they publish, in a library of its own, libtamis-carrier. After
 * replica.h. Messages come by Redis Streams, a shared folder or a web server; filters alone need none of
 * the libraries for that.
 */
#ifndef TAMIS_CARRIER_PUBLIC_H
#define TAMIS_CARRIER_PUBLIC_H

#include "replica.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Keeps the copies of a directory up to date with all origins that publish to an address:
 *
 *     redis://[USER@]HOST[:PORT]/NAME[?db=N]            redis+unix:///SOCKET?name=NAME
 *     rediss://[USER@]HOST[:PORT]/NAME[?ca=FILE][&cert=FILE&key=FILE]   (TLS)
 *     file:FOLDER                                       https://HOST/PATH (what a folder has)
 *
 * A password is taken from the environment: TAMIS_REDIS_PASSWORD, or the first line of the file that
 * TAMIS_REDIS_PASSWORD_FILE names.
 *
 * It is the thread of the directory that takes messages: either one that it starts, or the caller's,
 * round by round. Any number of other threads query the directory meanwhile. An origin is in doubt until
 * its copy has come, and again one heartbeat after the address was last reached.
 */
typedef struct tamis_following tamis_following;

#define TAMIS_POSITION_MAX 64 /* bytes of a position, with the zero at its end */

typedef struct tamis_following_options {
    const char *position; /* where an earlier one stopped, with its copies loaded; else the start */
    bool verbose;         /* note every message that is refused, not only the first of an owner */
    /* Called with a line of text by the thread that follows: refused messages, a connection that is lost
       or there again. NULL: nothing is said. */
    void (*note)(void *context, const char *text);
    void *note_context;
} tamis_following_options;

/* The directory stays the caller's and must outlive it. EARG: not an address. Nothing is connected yet. */
TAMIS_API tamis_error tamis_following_new(tamis_following **out, const char *address,
                                          tamis_directory *directory,
                                          const tamis_following_options *options,
                                          tamis_reason *reason);
/* Ends the thread, if there is one. */
TAMIS_API void tamis_following_free(tamis_following *following);

/* Follows in a thread of its own until it is freed. EBUSY if there is one already. */
TAMIS_API tamis_error tamis_following_start(tamis_following *following);
/* One round in the caller's thread, which waits at most so long for messages. EIO: the address was not
   reached, and will be tried again; EARG: trying again does not help; ENOMEM. */
TAMIS_API tamis_error tamis_following_step(tamis_following *following, int milliseconds,
                                           tamis_reason *reason);

typedef struct tamis_following_facts {
    uint64_t messages, bytes;   /* taken so far */
    uint64_t versions, refused; /* new versions of copies; messages */
    uint64_t snapshots;         /* fetched */
    uint64_t reached; /* nanoseconds since all messages there were taken; UINT64_MAX: never */
    bool cut_off;     /* the last round failed */
} tamis_following_facts;
/* For any thread. */
TAMIS_API void tamis_following_info(const tamis_following *following, tamis_following_facts *facts);
/* Where it is, for the thread that takes the rounds. */
TAMIS_API void tamis_following_position(const tamis_following *following,
                                        char position[TAMIS_POSITION_MAX]);

#ifdef __cplusplus
}
#endif
#endif
