/*
 * tamis: copies of filters on other hosts with a bound on their error, and directories of many
 * owners. Read tamis.h first.
 */
#ifndef TAMIS_REPLICA_PUBLIC_H
#define TAMIS_REPLICA_PUBLIC_H

#include "../tamis.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Copies of a filter on other hosts with a bound on their error. An origin watches a filter and
 * knows at any moment how much its copies differ; tamis_origin_due says when a chosen target is
 * exceeded and it is time to publish. Publishing writes messages, which the caller carries to the
 * followers by any means (the command line has Redis Streams and shared folders). A follower takes
 * the messages in order and answers from its copy; a "no" of a copy refers to its version. A
 * message that does not fit is refused and changes nothing.
 *
 * Copies consist of bits only: a key whose removal is pending answers "maybe" there.
 */
typedef struct tamis_origin tamis_origin;

#define TAMIS_OWNER_MAX 255 /* longest name of an origin, in bytes */

/* When to publish. Zero selects the default; a negative number disables the target. */
typedef struct tamis_targets {
    double member_miss;            /* share of the members that a copy denies; default 0.01 */
    double false_rate;             /* w_positive positive + w_disagree disagree; default: off */
    double w_positive, w_disagree; /* default 1, 1 */
    double dirty;                  /* share of bits changed, the classical rule; off by default */
    uint64_t max_age;              /* nanoseconds that a change may wait; default: no limit */
} tamis_targets;

/* The error of the copies, as known to the origin. Rates apply to keys drawn at random, hardly
   any of which are members; the numbers refer to the equations of Zhu and Jiang. */
typedef struct tamis_estimate {
    double own;            /* rate of the filter itself and of a fresh copy */
    double positive;       /* (12): a copy says "maybe" to a non-member */
    double disagree;       /* (10): the filter says "maybe" to a non-member, the copy "no" */
    double weighted;       /* (17) */
    double host;           /* (16): error rate of a host with `hosts` - 1 such copies */
    double member_miss;    /* share of the members that a copy denies */
    double dirty;          /* share of bits changed */
    uint64_t set, cleared; /* bits that became one or zero, including new vectors */
    uint64_t missed; /* members that a copy denies; nearly exact. In a smooth filter every add since
                              the version counts, also of a key that the copy has */
    bool unreachable; /* even a fresh copy exceeds the false rate: let the filter grow */
} tamis_estimate;

typedef struct tamis_origin_options {
    const char *owner; /* name, 1 to TAMIS_OWNER_MAX bytes */
    tamis_targets targets;
    uint32_t hosts;         /* for the estimate `host`; default 2 */
    uint64_t beat;          /* nanoseconds between heartbeats; default 10 s */
    uint64_t message_bytes; /* largest message, at least 1024 bytes; default 1 MiB */
    uint64_t epoch;         /* number of this run of the origin, above all earlier ones; default:
                               the clock, or nanoseconds since 1970 */
    bool no_key;       /* leave the family key out of snapshots and seal messages with a MAC made
                          with it: followers need the key and accept nothing else */
    tamis_clock clock; /* nanoseconds since any moment; default: the system's clock that is never
                          set */
    void *clock_context;
} tamis_origin_options;

/* The filter still belongs to the caller, who may use it as before (except with `shared_adds`:
   EKIND) and must keep it longer than the origin. A filter has one origin at a time. */
TAMIS_API tamis_error tamis_origin_new(tamis_origin **out, tamis_filter *filter,
                                       const tamis_origin_options *options, tamis_reason *reason);
TAMIS_API void tamis_origin_free(tamis_origin *origin);

TAMIS_API void tamis_origin_estimate(const tamis_origin *origin, tamis_estimate *estimate);

/* Which target is exceeded. Call it after every add or small batch of adds: it takes O(vectors),
   and the rates are recomputed only after the changes have grown by 1/32. */
typedef enum tamis_due {
    TAMIS_DUE_NOT = 0,
    TAMIS_DUE_FIRST,       /* nothing was published yet, or the last publication failed */
    TAMIS_DUE_WHOLE,       /* merged, folded, cleared: the changed bits are not known */
    TAMIS_DUE_MEMBER_MISS, /* one of the targets */
    TAMIS_DUE_FALSE_RATE,
    TAMIS_DUE_DIRTY,
    TAMIS_DUE_AGE
} tamis_due;
TAMIS_API tamis_due tamis_origin_due(tamis_origin *origin);

/*
 * Writes one or more messages and calls `write` once for each: the change since the last version,
 * or a snapshot if there is no such version. If nothing changed, nothing is written. If `write`
 * fails, the version number is not used again and the next publication is a snapshot, since
 * followers may have received a part. tamis_origin_snapshot writes the version last published. If
 * there are changes since then it writes a version of its own, to which no delta leads, so publish
 * first.
 */
TAMIS_API tamis_error tamis_origin_publish(tamis_origin *origin, tamis_write write, void *context,
                                           tamis_reason *reason);
TAMIS_API tamis_error tamis_origin_snapshot(tamis_origin *origin, tamis_write write, void *context,
                                            tamis_reason *reason);
/* A heartbeat carries the version and the estimate. After a farewell, followers consider the
   origin gone. */
TAMIS_API tamis_error tamis_origin_beat(tamis_origin *origin, tamis_write write, void *context);
TAMIS_API tamis_error tamis_origin_farewell(tamis_origin *origin, tamis_write write, void *context);

typedef struct tamis_origin_facts {
    uint64_t epoch, version;                     /* version 0: nothing published yet */
    uint64_t deltas, snapshots, messages, bytes; /* written so far */
    uint64_t published_at;                       /* clock time of the last version */
    uint64_t beat;
} tamis_origin_facts;
TAMIS_API void tamis_origin_info(const tamis_origin *origin, tamis_origin_facts *facts);

typedef enum tamis_message_type {
    TAMIS_SNAPSHOT = 1,
    TAMIS_DELTA = 2,
    TAMIS_HEARTBEAT = 3,
    TAMIS_FAREWELL = 4
} tamis_message_type;

/* The header of a message, every byte of which has been checked. */
typedef struct tamis_message {
    tamis_message_type type;
    char owner[TAMIS_OWNER_MAX + 1];
    uint64_t epoch, from, version; /* a delta leads from version `from` to `version` */
    uint32_t part, parts;          /* large messages are sent in parts, numbered from 0 */
    uint64_t time;                 /* by the origin's clock, in nanoseconds */
    uint64_t beat;                 /* nanoseconds; in snapshots only */
    tamis_targets targets;         /* negative, or 0 for max_age: none; in snapshots only */
    tamis_estimate estimate; /* when it was sent: own, positive, disagree, member_miss to seven
                                digits, set, cleared, missed; other fields are not transmitted */
} tamis_message;
TAMIS_API tamis_error tamis_message_read(tamis_message *out, const void *data, size_t len,
                                         tamis_reason *reason);

typedef struct tamis_follower tamis_follower;

typedef struct tamis_follower_options {
    const uint8_t *key;  /* family key, for snapshots without it; messages must then be sealed
                            with it */
    uint32_t lease;      /* heartbeats that may be missed before the copy is stale; default 3 */
    uint64_t lease_most; /* longest lease in nanoseconds, whatever the origin announces; default
                            1 hour */
    tamis_clock clock;   /* nanoseconds since any moment; default: the system's clock that is never
                          set and keeps running while the machine sleeps */
    void *clock_context;
    const tamis_allocator *allocator;
} tamis_follower_options;

TAMIS_API tamis_error tamis_follower_new(tamis_follower **out,
                                         const tamis_follower_options *options,
                                         tamis_reason *reason);
TAMIS_API void tamis_follower_free(tamis_follower *follower);

typedef enum tamis_taken {
    TAMIS_APPLIED = 0,  /* the copy has a new version */
    TAMIS_HELD = 1,     /* one part; others are still missing */
    TAMIS_HEARD = 2,    /* a heartbeat or farewell */
    TAMIS_REPEATED = 3, /* already known */
    TAMIS_REFUSED = 4   /* refused, with an error */
} tamis_taken;

/*
 * Takes the next message. `age` is an upper bound on the nanoseconds since it was sent, as known to
 * its carrier (0: it was just sent). The time in the message may show that it is older: a message
 * that took longer than the fastest one of its origin is late by the difference. The lease starts
 * when the message was sent. EBASE: the message does not follow the version held here (the reason
 * names both); if it is from the same origin, the follower needs a snapshot from then on. EFAMILY:
 * it belongs to another family or owner. Other errors: it is damaged.
 */
TAMIS_API tamis_error tamis_follower_take(tamis_follower *follower, const void *message, size_t len,
                                          uint64_t age, tamis_taken *taken, tamis_reason *reason);

typedef enum tamis_freshness {
    TAMIS_CURRENT = 0,  /* within the lease and at the newest version known: the targets hold */
    TAMIS_UNKNOWN = 1,  /* no snapshot yet */
    TAMIS_BEHIND = 2,   /* a version is missing; the copy is being rebuilt */
    TAMIS_STALE = 3,    /* no message for so long that the lease has expired */
    TAMIS_GONE = 4,     /* the origin said farewell and will send nothing more */
    TAMIS_CONTESTED = 5 /* two origins publish under its name */
} tamis_freshness;
TAMIS_API tamis_freshness tamis_follower_freshness(const tamis_follower *follower);
/* The carrier was reached `age` nanoseconds ago and had no further messages. Once this has been
   called, a copy is current for at most one heartbeat after the last contact, so a follower that
   is cut off knows it. */
TAMIS_API void tamis_follower_contact(tamis_follower *follower, uint64_t age);

/* The answer of the copy, whatever its freshness; true if there is no copy. */
TAMIS_API bool tamis_follower_has(const tamis_follower *follower, const void *key, size_t len);
TAMIS_API void tamis_follower_has_many(const tamis_follower *follower, const tamis_key *keys,
                                       size_t n, uint8_t *found);

#define TAMIS_DELAY_UNKNOWN INT64_MAX
typedef struct tamis_follower_facts {
    char owner[TAMIS_OWNER_MAX + 1]; /* empty before the first message */
    tamis_freshness freshness;
    bool needs_snapshot;
    uint64_t epoch, version; /* of the copy; 0, 0: no copy */
    uint64_t newest;         /* newest version known */
    uint64_t age;            /* nanoseconds since the last message was sent */
    int64_t delay;         /* by which the clock here is ahead of the origin's, plus the way of the
                                fastest message; TAMIS_DELAY_UNKNOWN */
    uint64_t lease;        /* nanoseconds that the lease lasts from then */
    uint64_t beat;         /* nanoseconds between heartbeats, limited by lease_most */
    tamis_targets targets; /* of the origin */
    tamis_estimate estimate; /* of copies of `newest` at the last message, without host */
    uint64_t items, bits;    /* in the copy */
    uint64_t applied, refused, repeated, bytes; /* messages so far, and their total size */
} tamis_follower_facts;
TAMIS_API void tamis_follower_info(const tamis_follower *follower, tamis_follower_facts *facts);

/* The copy as an independent filter with bits only; EKIND if there is no copy. */
TAMIS_API tamis_error tamis_follower_filter(tamis_filter **out, const tamis_follower *follower,
                                            tamis_reason *reason);
/* Writes the whole state as one message, a snapshot, to be kept in a file and taken by a new
   follower, which then continues where this one stopped. The copy is stale until the follower
   hears from its origin. EKIND if there is no copy. */
TAMIS_API tamis_error tamis_follower_encode(const tamis_follower *follower, tamis_write write,
                                            void *context);
TAMIS_API tamis_error tamis_follower_save(const tamis_follower *follower, const char *path,
                                          tamis_reason *reason);
/* tamis_follower_take for a saved file. With an age beyond the lease (UINT64_MAX) the copy is
   stale until the follower hears from its origin. `delay` is that of tamis_follower_info by the same
   clock, or TAMIS_DELAY_UNKNOWN: then nobody can tell whether the first message waited at its origin. */
TAMIS_API tamis_error tamis_follower_load(tamis_follower *follower, const char *path, uint64_t age,
                                          int64_t delay, tamis_reason *reason);

/* ---- Directories ----------------------------------------------------------------------------- */

/*
 * A directory holds many sets side by side, one per owner, and answers "who may have this key?" A
 * set is given as keys or as a filter, or it is the copy of an origin that messages keep up to
 * date. Sets are bit-sliced: those of equal family and shape share a matrix, so a query reads a few
 * rows of bits for any number of owners. Owners whose copy is not current (no copy yet, stale,
 * being rebuilt) are in doubt: they count as possible and are reported separately.
 *
 * A query beside a change (see the table of threads in tamis.h) sees each owner either before or
 * after it. Applying a delta costs in proportion to the bits it changes.
 * Copies take memory twice, as filters and as columns, unless `whole` is set.
 */
typedef struct tamis_directory tamis_directory;

typedef struct tamis_directory_options {
    double fpp;         /* of each owner whose keys are put; default 0.01 */
    tamis_hash hash;    /* of keys that are put */
    const uint8_t *key; /* their family; also used for snapshots without a key */
    uint32_t lease;     /* as in tamis_follower_options */
    uint64_t lease_most;
    tamis_clock clock;
    void *clock_context;
    bool whole; /* copies are not bit-sliced but queried in turn: for few or no queries */
    const tamis_allocator *allocator;
} tamis_directory_options;

#define TAMIS_OWNERS_MAX 262144 /* number of names that a directory may ever have */

TAMIS_API tamis_error tamis_directory_new(tamis_directory **out,
                                          const tamis_directory_options *options,
                                          tamis_reason *reason);
TAMIS_API void tamis_directory_free(tamis_directory *directory);

/* Sets the owner's set to these n keys (duplicates do no harm), digested with
   tamis_directory_digest; a previous set is replaced. The stated rate holds for each owner. */
TAMIS_API tamis_digest tamis_directory_digest(const tamis_directory *directory, const void *key,
                                              size_t len);
TAMIS_API tamis_error tamis_directory_put(tamis_directory *directory, const char *owner,
                                          const tamis_digest *digests, size_t n,
                                          tamis_reason *reason);
/* Sets the set of each of n owners to the present content of its filter, of any family, at the
   filter's rate; the filters are not needed afterwards. Slicing dozens at a time is much faster
   than one by one. */
TAMIS_API tamis_error tamis_directory_put_filters(tamis_directory *directory,
                                                  const char *const *owners,
                                                  const tamis_filter *const *filters, size_t n,
                                                  tamis_reason *reason);
/* Announces an origin, which is in doubt until its first message. Sets *number unless NULL. */
TAMIS_API tamis_error tamis_directory_expect(tamis_directory *directory, const char *owner,
                                             uint32_t *number, tamis_reason *reason);
/* Takes a message of this owner, expected or not, or with NULL of the owner that it names;
   otherwise as tamis_follower_take. EFAMILY if it belongs to another owner, EKIND if the owner's
   set was put. */
TAMIS_API tamis_error tamis_directory_take(tamis_directory *directory, const char *owner,
                                           const void *message, size_t len, uint64_t age,
                                           tamis_taken *taken, tamis_reason *reason);
/* The same for a file of tamis_follower_save; see tamis_follower_load. */
TAMIS_API tamis_error tamis_directory_load(tamis_directory *directory, const char *owner,
                                           const char *path, uint64_t age, int64_t delay,
                                           tamis_reason *reason);
/* Saves the copy of an origin for tamis_directory_load. The file is replaced as a
   whole but not synced: after a power failure it may be damaged, which loading reports. EKIND if there
   is no copy. */
TAMIS_API tamis_error tamis_directory_save(const tamis_directory *directory, uint32_t number,
                                           const char *path, tamis_reason *reason);
/* tamis_follower_contact for all owners that are kept up to date by messages. */
TAMIS_API void tamis_directory_contact(tamis_directory *directory, uint64_t age);
/* EARG if there is no such owner. */
TAMIS_API tamis_error tamis_directory_drop(tamis_directory *directory, const char *owner,
                                           tamis_reason *reason);

/* Owners have permanent numbers below tamis_directory_owners: a dropped owner keeps its number
   in case it returns, and has no name until then. Pointers to names stay valid. */
TAMIS_API uint32_t tamis_directory_owners(const tamis_directory *directory);
/* The number of the owner with this name; TAMIS_OWNERS_MAX if there is none. */
TAMIS_API uint32_t tamis_directory_number(const tamis_directory *directory, const char *owner);
TAMIS_API const char *tamis_directory_name(const tamis_directory *directory, uint32_t number);
/* What is known of the copy of an origin; false if the owner's set was put, or there is no such owner. */
TAMIS_API bool tamis_directory_copy(const tamis_directory *directory, uint32_t number,
                                    tamis_follower_facts *facts);
/* The copy itself, valid until the next change; NULL if the owner's set was put. */
TAMIS_API const tamis_follower *tamis_directory_follower(const tamis_directory *directory,
                                                         uint32_t number);

typedef struct tamis_place {
    uint32_t owner;
    bool doubt; /* not known; otherwise its set is current and has the key */
} tamis_place;

/* Writes at most `room` owners, in rising order of their numbers, and returns how many there
   are. */
TAMIS_API size_t tamis_directory_locate(const tamis_directory *directory, const void *key,
                                        size_t len, tamis_place *places, size_t room);
/* Many keys: bit i of a key's `words` words is set if owner i may have the key, and bit i of
   `doubt` if owner i is in doubt, for any key. Owners from 64 * words on are left out. */
TAMIS_API void tamis_directory_locate_many(const tamis_directory *directory, const tamis_key *keys,
                                           size_t n, uint64_t *hits, uint64_t *doubt, size_t words);

typedef struct tamis_directory_facts {
    uint32_t owners;         /* without dropped owners */
    uint32_t shapes;         /* number of matrices */
    uint64_t columns, items; /* columns in use; items of all owners */
    uint64_t bits, bytes;    /* bits of the columns in use; bytes of all matrices */
    double fpp, fpp_now;     /* stated; the highest of any owner whose keys were put */
} tamis_directory_facts;

TAMIS_API void tamis_directory_info(const tamis_directory *directory, tamis_directory_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
