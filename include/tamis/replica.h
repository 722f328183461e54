/*
 * tamis: copies of filters on other hosts with a bound on how wrong they may be, and directories of many
 * owners. After tamis.h.
 */
#ifndef TAMIS_REPLICA_PUBLIC_H
#define TAMIS_REPLICA_PUBLIC_H

#include "../tamis.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Copies of a filter elsewhere, with a bound on how wrong they may be. An origin watches a filter and
 * knows at any moment how wrong its copies are: it asks to be published when a chosen target is
 * passed. Publishing writes messages, which the caller carries to followers as he likes (the command
 * line has Redis Streams and shared folders). A follower takes them in order and answers from its
 * copy: a "no" of a copy is as of its version. What does not belong is refused and changes nothing.
 *
 * Copies are of the bits alone: pending removals answer "maybe" there.
 */
typedef struct tamis_origin tamis_origin;

#define TAMIS_OWNER_MAX 255 /* bytes of the name of an origin */

/* When to publish; zero means default, and a negative number that it is no target. */
typedef struct tamis_targets {
    double member_miss;            /* share of the members that a copy denies; 0.01 */
    double false_rate;             /* w_positive positive + w_disagree disagree; not a target */
    double w_positive, w_disagree; /* 1, 1 */
    double dirty;                  /* share of bits changed, the classical rule; not a target */
    uint64_t max_age;              /* nanoseconds that a change may wait; no limit */
} tamis_targets;

/* The copies, as far as the origin knows. Rates are for keys drawn at random, which are hardly ever
   members; the numbers are those of Zhu and Jiang's equations. */
typedef struct tamis_estimate {
    double own;            /* the filter's own rate, and that of a fresh copy */
    double positive;       /* (12): a copy says "maybe" to a stranger */
    double disagree;       /* (10): the filter says "maybe" to a stranger and a copy "no" */
    double weighted;       /* (17) */
    double host;           /* (16): a host that holds copies of `hosts` - 1 such origins errs */
    double member_miss;    /* share of the members that a copy denies */
    double dirty;          /* share of bits changed */
    uint64_t set, cleared; /* bits that became one and zero, new vectors counted */
    uint64_t missed;       /* members that a copy denies; all but exact */
    bool unreachable;      /* a fresh copy is over the false rate: let the filter grow */
} tamis_estimate;

typedef struct tamis_origin_options {
    const char *owner; /* its name, 1 to TAMIS_OWNER_MAX bytes */
    tamis_targets targets;
    uint32_t hosts;         /* for the estimate of a host; 2 */
    uint64_t beat;          /* nanoseconds between heartbeats; 10 s */
    uint64_t message_bytes; /* most bytes of a message, from 1024; 1 MiB */
    uint64_t epoch;         /* number of this life of the origin, above those before; the clock, or
                               by default nanoseconds since 1970 */
    bool no_key;       /* leave the family key out of snapshots, and seal messages with a MAC made
                               with it: followers must have the key, and take nothing else */
    tamis_clock clock; /* nanoseconds since any moment; the system's, which is never set */
    void *clock_context;
} tamis_origin_options;

/* The filter stays the caller's, to be used as ever (but for `shared_adds`, EKIND), and must outlive
   the origin. A filter has one origin at a time. Beside readers an origin is as a writer. */
TAMIS_API tamis_error tamis_origin_new(tamis_origin **out, tamis_filter *filter,
                                       const tamis_origin_options *options, tamis_reason *reason);
TAMIS_API void tamis_origin_free(tamis_origin *origin);

TAMIS_API void tamis_origin_estimate(const tamis_origin *origin, tamis_estimate *estimate);

/* Which target is passed, to be asked after every add or handful of adds: O(vectors), and the rates
   are worked out again when the changes have grown by a thirty-second. */
typedef enum tamis_due {
    TAMIS_DUE_NOT = 0,
    TAMIS_DUE_FIRST,       /* nothing was published yet, or the last time failed half-way */
    TAMIS_DUE_WHOLE,       /* merged, folded, cleared: what changed is not known bit by bit */
    TAMIS_DUE_MEMBER_MISS, /* the targets */
    TAMIS_DUE_FALSE_RATE,
    TAMIS_DUE_DIRTY,
    TAMIS_DUE_AGE
} tamis_due;
TAMIS_API tamis_due tamis_origin_due(tamis_origin *origin);

/*
 * Writes a message or several, `write` being called once for each: the change since the last version,
 * or a snapshot if there is none. Nothing is written when nothing changed. If `write` fails, the
 * version is burnt and the next publication is a snapshot, since followers may have got a part.
 * A snapshot on request is of the version last published; when there are changes since, it is a
 * version of its own which no delta leads to, so publish first.
 */
TAMIS_API tamis_error tamis_origin_publish(tamis_origin *origin, tamis_write write, void *context,
                                           tamis_reason *reason);
TAMIS_API tamis_error tamis_origin_snapshot(tamis_origin *origin, tamis_write write, void *context,
                                            tamis_reason *reason);
/* A heartbeat: version and estimate. Or a farewell, after which followers count the origin as gone. */
TAMIS_API tamis_error tamis_origin_beat(tamis_origin *origin, tamis_write write, void *context);
TAMIS_API tamis_error tamis_origin_farewell(tamis_origin *origin, tamis_write write, void *context);

typedef struct tamis_origin_facts {
    uint64_t epoch, version;                     /* version 0: nothing published yet */
    uint64_t deltas, snapshots, messages, bytes; /* written so far */
    uint64_t published_at;                       /* clock at the last version */
    uint64_t beat;
} tamis_origin_facts;
TAMIS_API void tamis_origin_info(const tamis_origin *origin, tamis_origin_facts *facts);

typedef enum tamis_message_type {
    TAMIS_SNAPSHOT = 1,
    TAMIS_DELTA = 2,
    TAMIS_HEARTBEAT = 3,
    TAMIS_FAREWELL = 4
} tamis_message_type;

/* What a message says of itself; every byte of it is checked. */
typedef struct tamis_message {
    tamis_message_type type;
    char owner[TAMIS_OWNER_MAX + 1];
    uint64_t epoch, from, version; /* a delta leads from version `from` to `version` */
    uint32_t part, parts;          /* large ones travel in parts, numbered from 0 */
    uint64_t time;                 /* of the origin's clock, in nanoseconds */
    uint64_t beat;                 /* nanoseconds; of snapshots alone */
    tamis_targets targets;         /* none: negative, or 0 for max_age; of snapshots alone */
    tamis_estimate estimate; /* when it was sent: own, positive, disagree, member_miss in seven
                                      digits, set, cleared, missed; the others are not told */
} tamis_message;
TAMIS_API tamis_error tamis_message_read(tamis_message *out, const void *data, size_t len,
                                         tamis_reason *reason);

typedef struct tamis_follower tamis_follower;

typedef struct tamis_follower_options {
    const uint8_t *key;  /* of the family, where snapshots come without it: messages must be sealed
                            with it */
    uint32_t lease;      /* heartbeats that may be missing before the copy is stale; 3 */
    uint64_t lease_most; /* nanoseconds that it may take, whatever the origin says; an hour */
    tamis_clock clock; /* nanoseconds since any moment; the system's, which is never set and goes on
                            while the machine sleeps */
    void *clock_context;
    const tamis_allocator *allocator;
} tamis_follower_options;

TAMIS_API tamis_error tamis_follower_new(tamis_follower **out,
                                         const tamis_follower_options *options);
TAMIS_API void tamis_follower_free(tamis_follower *follower);

typedef enum tamis_taken {
    TAMIS_APPLIED = 0,  /* the copy has a new version */
    TAMIS_HELD = 1,     /* a part: the others are to come */
    TAMIS_HEARD = 2,    /* a heartbeat or farewell */
    TAMIS_REPEATED = 3, /* known already */
    TAMIS_REFUSED = 4   /* with the error */
} tamis_taken;

/*
 * Takes the next message; `age` says how many nanoseconds ago it was sent at most, as far as its
 * carrier knows (0: it came at once). By its own time it may turn out to be older: what came later than
 * the fastest message of its origin is late by the difference. The lease runs from when it was sent.
 * EBASE: it does not follow on what is here (the reason names both versions); if it is of the same
 * origin, the follower needs a snapshot from then on. EFAMILY: of another family or owner. Other
 * errors: damaged. One thread takes while any number of others ask (freshness, has, has_many).
 */
TAMIS_API tamis_error tamis_follower_take(tamis_follower *follower, const void *message, size_t len,
                                          uint64_t age, tamis_taken *taken, tamis_reason *reason);

typedef enum tamis_freshness {
    TAMIS_CURRENT = 0,  /* within the lease, and of the last version heard of: the targets hold */
    TAMIS_UNKNOWN = 1,  /* no snapshot yet */
    TAMIS_BEHIND = 2,   /* a version is missing: being rebuilt */
    TAMIS_STALE = 3,    /* nothing was heard for so long that the lease ran out */
    TAMIS_GONE = 4,     /* the origin said farewell: nothing more is to be expected of it */
    TAMIS_CONTESTED = 5 /* two origins publish under its name */
} tamis_freshness;
TAMIS_API tamis_freshness tamis_follower_freshness(const tamis_follower *follower);
/* What carries the messages was reached `age` nanoseconds ago and had no others. Once this was called,
   a copy is current for one heartbeat after the last contact at most: whoever is cut off knows. */
TAMIS_API void tamis_follower_contact(tamis_follower *follower, uint64_t age);

/* What the copy says, whatever its freshness; true if there is none. */
TAMIS_API bool tamis_follower_has(const tamis_follower *follower, const void *key, size_t len);
TAMIS_API void tamis_follower_has_many(const tamis_follower *follower, const tamis_key *keys,
                                       size_t n, uint8_t *found);

typedef struct tamis_follower_facts {
    char owner[TAMIS_OWNER_MAX + 1]; /* empty before the first message */
    tamis_freshness freshness;
    bool needs_snapshot;
    uint64_t epoch, version; /* of the copy; 0, 0: none */
    uint64_t newest;         /* version that was heard of */
    uint64_t age;            /* nanoseconds since the last message was sent */
    uint64_t lease;          /* nanoseconds it holds, counted from then, */
    uint64_t beat;           /* and between heartbeats, or the most that is believed of it */
    tamis_targets targets;   /* of the origin, */
    tamis_estimate
        estimate;         /* and how wrong copies of `newest` were at the last message; but host */
    uint64_t items, bits; /* of the copy */
    uint64_t applied, refused, repeated, bytes; /* messages so far, and the bytes of all */
} tamis_follower_facts;
TAMIS_API void tamis_follower_info(const tamis_follower *follower, tamis_follower_facts *facts);

/* The copy as a filter of its own, bits only; EKIND if there is none. */
TAMIS_API tamis_error tamis_follower_filter(const tamis_follower *follower, tamis_filter **out);
/* Everything in one message, a snapshot: to be kept in a file and taken by a new follower, which
   then goes on where this one stopped. It is stale until it hears from its origin. */
TAMIS_API tamis_error tamis_follower_encode(const tamis_follower *follower, tamis_write write,
                                            void *context);
TAMIS_API tamis_error tamis_follower_save(const tamis_follower *follower, const char *path,
                                          tamis_reason *reason);
/* As tamis_follower_take of what was saved. With an age past the lease (UINT64_MAX) the copy is stale
   until something is heard of its origin. */
TAMIS_API tamis_error tamis_follower_load(tamis_follower *follower, const char *path, uint64_t age,
                                          tamis_reason *reason);

/* ---- Directories ----------------------------------------------------------------------------- */

/*
 * A directory is many sets side by side, one per owner: "who may have this key?" A set is put as keys
 * or as a filter, or is the copy of an origin, kept up to date by its messages. Sets are bit-sliced:
 * those of one family and shape share a matrix, so a question reads a few rows of bits whatever the
 * number of owners. Owners whose copy is not current (no copy yet, stale, being rebuilt) are in doubt:
 * they count as possible, and are reported apart.
 *
 * One thread puts, takes, expects and drops; any number of others ask meanwhile, and see each owner
 * before or after a change. A delta costs the bits it changes. Copies take their memory twice, as
 * filters and as columns, unless they stay whole.
 */
typedef struct tamis_directory tamis_directory;

typedef struct tamis_directory_options {
    double fpp;         /* of each owner whose keys are put; 0.01 */
    tamis_hash hash;    /* of keys that are put, */
    const uint8_t *key; /* and their family; also that of snapshots that come without their key */
    uint32_t lease;     /* as tamis_follower_options */
    uint64_t lease_most;
    tamis_clock clock;
    void *clock_context;
    bool whole; /* copies are not bit-sliced but asked in turn: for few questions, or none */
    const tamis_allocator *allocator;
} tamis_directory_options;

#define TAMIS_OWNERS_MAX 262144 /* names that a directory ever had */

TAMIS_API tamis_error tamis_directory_new(tamis_directory **out,
                                          const tamis_directory_options *options,
                                          tamis_reason *reason);
TAMIS_API void tamis_directory_free(tamis_directory *directory);

/* The owner's set is these n keys (repeats do no harm), by their digests here; what it was before is
   gone. The stated rate holds for each owner. */
TAMIS_API tamis_digest tamis_directory_digest(const tamis_directory *directory, const void *key,
                                              size_t len);
TAMIS_API tamis_error tamis_directory_put(tamis_directory *directory, const char *owner,
                                          const tamis_digest *digests, size_t n,
                                          tamis_reason *reason);
/* The set of each of n owners is what its filter has now, of any family, at the filter's rate; the
   filter is not needed afterwards. Dozens at a time are sliced much faster than one by one. */
TAMIS_API tamis_error tamis_directory_put_filters(tamis_directory *directory,
                                                  const char *const *owners,
                                                  const tamis_filter *const *filters, size_t n,
                                                  tamis_reason *reason);
/* An origin whose messages are to come: in doubt until then. Sets *number, unless NULL. */
TAMIS_API tamis_error tamis_directory_expect(tamis_directory *directory, const char *owner,
                                             uint32_t *number, tamis_reason *reason);
/* A message of this owner, expected or not, or with NULL of whoever it says; otherwise as
   tamis_follower_take. EFAMILY if it is another's, EKIND if the owner's set was put. */
TAMIS_API tamis_error tamis_directory_take(tamis_directory *directory, const char *owner,
                                           const void *message, size_t len, uint64_t age,
                                           tamis_taken *taken, tamis_reason *reason);
/* The same for what tamis_follower_save wrote; see tamis_follower_load. */
TAMIS_API tamis_error tamis_directory_load(tamis_directory *directory, const char *owner,
                                           const char *path, uint64_t age, tamis_reason *reason);
/* As tamis_follower_contact, for all owners that are told by messages. */
TAMIS_API void tamis_directory_contact(tamis_directory *directory, uint64_t age);
/* EARG if there is no such owner. */
TAMIS_API tamis_error tamis_directory_drop(tamis_directory *directory, const char *owner);

/* Owners have numbers below tamis_directory_owners, for life: a dropped one keeps its number should it
   come again, and has no name until then. Names stay where they are. */
TAMIS_API uint32_t tamis_directory_owners(const tamis_directory *directory);
TAMIS_API const char *tamis_directory_name(const tamis_directory *directory, uint32_t number);
TAMIS_API uint64_t tamis_directory_items(const tamis_directory *directory, uint32_t number);
/* The copy of an origin, for the thread that takes; NULL if the owner's set was put. */
TAMIS_API const tamis_follower *tamis_directory_follower(const tamis_directory *directory,
                                                         uint32_t number);

typedef struct tamis_place {
    uint32_t owner;
    bool doubt; /* not known; else its set, which is current, has the key */
} tamis_place;

/* Rising numbers of owners; returns how many there are, of which at most `room` were written. */
TAMIS_API size_t tamis_directory_locate(const tamis_directory *directory, const void *key,
                                        size_t len, tamis_place *places, size_t room);
/* Many keys: bit i of the `words` words for each key is set if owner i may have it, and bit i of
   `doubt` if owner i is in doubt, whatever the key. Owners from 64 * words on are left out. */
TAMIS_API void tamis_directory_locate_many(const tamis_directory *directory, const tamis_key *keys,
                                           size_t n, uint64_t *hits, uint64_t *doubt, size_t words);

typedef struct tamis_directory_facts {
    uint32_t owners;         /* without dropped ones */
    uint32_t shapes;         /* matrices */
    uint64_t columns, items; /* in use; of all owners together */
    uint64_t bits, bytes;    /* of the columns in use; of all matrices */
    double fpp, fpp_now;     /* stated; the highest of an owner whose keys were put */
} tamis_directory_facts;

/* For the thread that puts. */
TAMIS_API void tamis_directory_info(const tamis_directory *directory, tamis_directory_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
