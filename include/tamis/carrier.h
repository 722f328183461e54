/*
 * tamis: follows origins that publish through Redis Streams, a shared folder or a web server. Read
 * tamis/replica.h first. These functions are in a separate library, libtamis-carrier, so that programs
 * which only use filters need none of the libraries for such connections.
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
 *     file:FOLDER                                       https://HOST/PATH (serves such a folder)
 *
 * The password comes from the environment: TAMIS_REDIS_PASSWORD, or the first line of the file that
 * TAMIS_REDIS_PASSWORD_FILE names.
 *
 * Messages are taken in one thread, the one that changes the directory: either a thread started by
 * tamis_following_start, or the caller's, round by round. An origin is in doubt until its copy has
 * arrived, and again from one heartbeat after the last contact with the address.
 */
typedef struct tamis_following tamis_following;

#define TAMIS_POSITION_MAX 64 /* bytes of a position, including the final zero */

typedef struct tamis_following_options {
    const char *position; /* where an earlier run, whose copies are loaded, stopped; or NULL */
    bool verbose;         /* report every refused message, not only the first of an owner */
    /* Called by the thread that follows, with one line of text: a message was refused, the connection was
       lost or restored. NULL: no reports. */
    void (*note)(void *context, const char *text);
    void *note_context;
} tamis_following_options;

/* The directory still belongs to the caller and must outlive the result. EARG: not a valid address. Does
   not connect yet. */
TAMIS_API tamis_error tamis_following_new(tamis_following **out, const char *address,
                                          tamis_directory *directory,
                                          const tamis_following_options *options,
                                          tamis_reason *reason);
/* Ends the thread, if one was started. */
TAMIS_API void tamis_following_free(tamis_following *following);

/* Follows in a separate thread until freed. EBUSY if there is one already. */
TAMIS_API tamis_error tamis_following_start(tamis_following *following, tamis_reason *reason);
/* One round in the caller's thread; waits for messages at most that long. EIO: the address was not reached
   and will be tried again; EARG: trying again will not help; ENOMEM. */
TAMIS_API tamis_error tamis_following_step(tamis_following *following, int milliseconds,
                                           tamis_reason *reason);

typedef struct tamis_following_facts {
    uint64_t messages, bytes;   /* taken so far */
    uint64_t versions, refused; /* versions: new ones of copies; refused: messages */
    uint64_t snapshots;         /* fetched */
    uint64_t reached;           /* nanoseconds since a round took all messages; UINT64_MAX: never */
    bool cut_off;               /* the last round failed */
} tamis_following_facts;
TAMIS_API void tamis_following_info(const tamis_following *following, tamis_following_facts *facts);
/* The current position. */
TAMIS_API void tamis_following_position(const tamis_following *following,
                                        char position[TAMIS_POSITION_MAX]);

#ifdef __cplusplus
}
#endif
#endif
