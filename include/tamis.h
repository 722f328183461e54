/*
 * tamis: "could this be here?"
 *
 * A filter is a set of keys that answers "no" for sure or "maybe" with a stated rate of error, in a
 * few bits per key. This header is meant to be read from top to bottom: rules, errors, keys, filters,
 * removal, set algebra, bytes and files; examples/first.c uses most of it. Beside it are tamis/records.h
 * (records with several attributes), tamis/catalog.h (which segments of a data set may have a record),
 * tamis/replica.h (copies on other hosts, directories of owners) and tamis/plan.h (the numbers).
 *
 * Rules
 *
 * 1. "No" is a proof. No growth, merge, fold, legal removal, save or load turns a member into "no".
 * 2. The stated rate (fpp) is the total for keys that were never added: over all vectors of a
 *    filter, up to its capacity (fixed, dynamic), at every size (scalable, flexible), over all live
 *    vectors (window).
 * 3. Failure changes nothing: a function that returns an error has left its arguments as they were.
 *    The library never prints, exits or aborts.
 * 4. Threads. Any number of threads may ask (tamis_filter_has*) while one thread adds, growth
 *    included, without locks. Every other change (remove, merge, fold, expire, clear, restore) needs
 *    the filter to itself, and so does an add to a window filter that lets old vectors go. With the
 *    option `shared_adds`, plain fixed filters take adds from any number of threads. Two filters
 *    never share mutable state.
 * 5. Everything is deterministic given the family key and, for flexible and window filters, the
 *    clock.
 */
#ifndef TAMIS_H
#define TAMIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TAMIS_VERSION "0.1.0"

#if defined(__GNUC__)
#define TAMIS_API __attribute__((visibility("default")))
#else
#define TAMIS_API
#endif

/* ---- Errors ---------------------------------------------------------------------------------- */

/* One list: name and what it means. tamis_error_text() returns the text. */
#define TAMIS_ERRORS(X)                                                                     \
    X(OK, "done")                                                                           \
    X(ENOMEM, "out of memory")                                                              \
    X(EARG, "an argument is out of range")                                                  \
    X(EFULL, "full: the capacity is reached, and with more the stated rate would not hold") \
    X(EFAMILY, "the structures belong to different families (key or hash)")                 \
    X(ESHAPE, "the structures have different shapes")                                       \
    X(ERATE, "the result would break the stated rate")                                      \
    X(EKIND, "this kind of structure does not do that")                                     \
    X(EREADONLY, "the structure is read-only")                                              \
    X(ELIMIT, "larger than this version can handle")                                        \
    X(EFORMAT, "not a tamis structure, or damaged")                                         \
    X(EVERSION, "written by a newer version of tamis")                                      \
    X(ECHECKSUM, "damaged: a checksum does not match")                                      \
    X(EBASE, "the patch was made for another version of this structure")                    \
    X(EKEY, "the family key is not stored in this structure and was not given")             \
    X(EIO, "input or output failed")                                                        \
    X(EBUSY, "another process is writing to this file")                                     \
    X(ESYNC, "written and in its place, but perhaps not on the disk yet")                   \
    X(ESPACE, "it may not grow past its limit of memory")

typedef enum tamis_error {
#define X(name, text) TAMIS_##name,
    TAMIS_ERRORS(X)
#undef X
        TAMIS_ERROR_COUNT
} tamis_error;

TAMIS_API const char *tamis_error_text(tamis_error error);
TAMIS_API const char *tamis_error_name(tamis_error error);

/* What went wrong, where: filled by functions that take one, when they fail. May be NULL. The text is
   one line; control characters of names in it are shown as '?'. */
typedef struct tamis_reason {
    uint64_t offset;  /* byte offset in what was read, 0 if it has none */
    int system_error; /* errno, or 0 */
    char text[200];
} tamis_reason;

/* ---- Memory ---------------------------------------------------------------------------------- */

/*
 * Where a filter takes its memory from. `alloc` returns memory aligned as malloc's, or NULL; it is
 * not zeroed. `free` gets the size that was asked for. `zeroed` (may be NULL) is alloc for those who
 * have memory that is zero without being touched: vectors come from it. Without an allocator, libc and
 * (for large vectors) huge pages of the system.
 */
typedef struct tamis_allocator {
    void *(*alloc)(void *context, size_t size);
    void (*free)(void *context, void *memory, size_t size);
    void *context;
    void *(*zeroed)(void *context, size_t size);
} tamis_allocator;

/* ---- Keys ------------------------------------------------------------------------------------ */

/* A key is bytes of any length. It is hashed once, to 128 bits; all below works on digests. */
typedef struct tamis_digest {
    uint64_t a; /* picks the block or the first probe */
    uint64_t b; /* picks the bits in the block or the steps between probes */
} tamis_digest;

typedef struct tamis_key {
    const void *data;
    size_t len;
} tamis_key;

#define TAMIS_KEY_LEN 16 /* a family key: secret, random unless given */

typedef enum tamis_hash {
    TAMIS_HASH_DEFAULT = 0, /* xxh3 */
    TAMIS_XXH3 = 1,         /* XXH3-128 under a secret made from the family key; fastest */
    TAMIS_SIP = 2,          /* SipHash-2-4-128; where strangers choose the keys */
    TAMIS_H3 = 3            /* Carter-Wegman H3 matrices over a 64-bit fingerprint; spread only */
} tamis_hash;

/* ---- Filters --------------------------------------------------------------------------------- */

typedef struct tamis_filter tamis_filter;

typedef enum tamis_growth {
    TAMIS_GROWTH_DEFAULT = 0, /* scalable */
    TAMIS_FIXED = 1,          /* one vector; full at its capacity */
    TAMIS_DYNAMIC = 2,        /* equal vectors up to a bound on the set (Guo et al.) */
    TAMIS_SCALABLE = 3,       /* vectors that grow geometrically, without bound */
    TAMIS_FLEXIBLE = 4,       /* vectors sized by the predicted arrival rate (Xie et al.) */
    TAMIS_WINDOW = 5          /* keys of the last so many seconds */
} tamis_growth;

typedef enum tamis_layout {
    TAMIS_LAYOUT_DEFAULT = 0, /* blocked; spread for dynamic filters and for h3 */
    TAMIS_SPREAD = 1,         /* k positions anywhere: the fewest bits */
    TAMIS_BLOCKED = 2         /* k positions in one cache line: one miss a lookup */
} tamis_layout;

/* Nanoseconds since any fixed moment; used by flexible and window filters only. A filter that is
   saved and loaded needs the same moment again. A clock that is set back counts as standing still: what
   the filter holds keeps its age and grows older from there. So one that was far ahead for a while and is
   right again lets windows forget as ever, all that they then hold within twice the usual time; what it
   made them forget while it was ahead stays forgotten. */
typedef uint64_t (*tamis_clock)(void *context);

#define TAMIS_LAMBDAS_MAX 64

/* Zero means default in every field: tamis_options o = {0}; is a fine start. */
typedef struct tamis_options {
    double fpp;        /* total false positive rate; 0.01 */
    uint64_t capacity; /* keys that fit at the stated rate: at most (fixed, dynamic), before it
                          grows (scalable, flexible), in any one window however they arrive
                          (window; often many more do). 1024 */
    tamis_growth growth;
    tamis_layout layout;
    tamis_hash hash;
    const uint8_t *key; /* TAMIS_KEY_LEN bytes of the family to join; random */
    bool deletable;     /* counters beside the bits; a multiset. Not for window */
    bool unique;        /* deletable: the caller never adds a key that is a member */
    bool overfill;      /* fixed, dynamic, window: past capacity go on, with a rising rate */
    bool shared_adds;   /* plain fixed: several threads may add at once (slower adds) */
    bool add_always;    /* growing plain: do not ask before adding; a repeated key counts again */
    double expansion;   /* scalable: factor from vector to vector; 0: the default schedule */
    double tolerate;    /* dynamic: it grows past the capacity, which one vector holds at fpp, until
                             the rate reaches this bound (the pair beta < gamma) */
    uint32_t vectors;   /* that share the capacity. dynamic: 0 is the planner's choice. window: 8,
                             which turn by time; what bursts fill before their time comes on top,
                             log2(vectors) at most */
    uint64_t bits;      /* as published: bits and hashes of one vector (of the first one),     */
    uint32_t hashes;    /* holding `capacity` keys; every vector alike, the total not bounded   */
    const uint8_t *lambdas; /* flexible: expansion speeds to use in turn, the last one repeats; */
    size_t n_lambdas;       /* without them the predicted arrival rate decides */
    uint64_t window;        /* window: nanoseconds a key is remembered; 24 hours */
    uint64_t memory_limit;  /* bytes the filter may grow to; past it ESPACE. No limit */
    tamis_clock clock;      /* the system's real-time clock */
    void *clock_context;
    const tamis_allocator *allocator; /* copied */
} tamis_options;

TAMIS_API tamis_error tamis_filter_new(tamis_filter **out, const tamis_options *options,
                                       tamis_reason *reason);
TAMIS_API void tamis_filter_free(tamis_filter *filter);
TAMIS_API tamis_error tamis_filter_clone(tamis_filter **out, const tamis_filter *filter);

/* One key at a time. `fresh` (may be NULL): false if the key seemed to be a member already. */
TAMIS_API tamis_error tamis_filter_add(tamis_filter *filter, const void *key, size_t len,
                                       bool *fresh);
TAMIS_API bool tamis_filter_has(const tamis_filter *filter, const void *key, size_t len);

/*
 * Many at a time: several times faster. Digest the keys with the filter's family, then add or ask.
 * tamis_filter_add_many stops at the first key that cannot be added; `done` (may be NULL) says how
 * many were. `fresh` (may be NULL) and `found` are arrays of n bytes, 1 or 0.
 */
TAMIS_API tamis_digest tamis_filter_digest(const tamis_filter *filter, const void *key, size_t len);
TAMIS_API void tamis_filter_digest_many(const tamis_filter *filter, const tamis_key *keys, size_t n,
                                        tamis_digest *out);
TAMIS_API void tamis_filter_digest_fixed(const tamis_filter *filter, const void *keys, size_t width,
                                         size_t n, tamis_digest *out); /* n keys of width bytes */
TAMIS_API tamis_error tamis_filter_add_many(tamis_filter *filter, const tamis_digest *digests,
                                            size_t n, uint8_t *fresh, size_t *done);
TAMIS_API void tamis_filter_has_many(const tamis_filter *filter, const tamis_digest *digests,
                                     size_t n, uint8_t *found);
/* The same with several threads, plain fixed filters only, others EKIND: at the capacity it stops, with
 * the first keys added. threads 0: all cores. */
TAMIS_API tamis_error tamis_filter_build(tamis_filter *filter, const tamis_digest *digests,
                                         size_t n, unsigned threads);

/* Window filters: lets go of what is older than the window (adds do so too). */
TAMIS_API tamis_error tamis_filter_expire(tamis_filter *filter);
/* Back to empty and to one vector; family, growth and rate stay. */
TAMIS_API tamis_error tamis_filter_clear(tamis_filter *filter);

typedef struct tamis_filter_facts {
    tamis_growth growth;
    tamis_layout layout;
    tamis_hash hash;
    bool deletable, unique, read_only, has_key;
    bool bits_only;    /* saved or patched without counters: read-only for good */
    uint64_t items;    /* deletable: adds less removals. plain: adds that were fresh, in a window
                          to its newest vector: a key that is young again counts again */
    double distinct;   /* distinct keys as the fill of the vectors tells */
    uint64_t capacity; /* keys the present vectors hold together at the stated rate */
    uint64_t bits;     /* of all vectors, without counters */
    uint64_t bytes;    /* all memory of the filter (of the file, when mapped) */
    uint32_t vectors;  /* now */
    uint32_t hashes;   /* of the vector with the most */
    uint64_t pending;  /* removals remembered, not yet settled */
    double fpp;        /* stated; 0 when made as published, without a bound on the total */
    double fpp_now;    /* estimated from the real fill */
    double fill;       /* share of bits set */
    double expansion;  /* as in the options, like the next two */
    uint64_t window, memory_limit;
} tamis_filter_facts;

TAMIS_API void tamis_filter_info(const tamis_filter *filter, tamis_filter_facts *info);
/* The same without distinct, fpp_now and fill, which read every bit of a plain filter. */
TAMIS_API void tamis_filter_brief(const tamis_filter *filter, tamis_filter_facts *info);
/* Another limit on memory, for growth to come; 0: none. What there is stays. */
TAMIS_API tamis_error tamis_filter_limit(tamis_filter *filter, uint64_t memory_limit);

typedef struct tamis_vector_facts {
    uint64_t bits, capacity, items, ones;
    uint32_t hashes;
    double fpp;
} tamis_vector_facts;

/* The i-th vector, oldest first; false if there is none. */
TAMIS_API bool tamis_filter_vector(const tamis_filter *filter, uint32_t i,
                                   tamis_vector_facts *info);

/* ---- Removal --------------------------------------------------------------------------------- */

/*
 * Only members may be removed: removing a key that was never added, or more often than it was
 * added, can make other keys "no" (at about the false positive rate); what the counters can refute
 * is refused as ABSENT. A removal that could belong to several vectors is remembered exactly and
 * settled as soon as it is certain (PENDING): until then the key answers "maybe", or "no" at once
 * in a `unique` filter. Nothing is left behind once all keys are removed.
 */
typedef enum tamis_removed {
    TAMIS_REMOVED = 0,
    TAMIS_ABSENT = 1, /* not a member, for sure; nothing changed */
    TAMIS_PENDING = 2
} tamis_removed;

TAMIS_API tamis_error tamis_filter_remove(tamis_filter *filter, const void *key, size_t len,
                                          tamis_removed *outcome);
/* outcomes (may be NULL): n bytes, each a tamis_removed. */
TAMIS_API tamis_error tamis_filter_remove_many(tamis_filter *filter, const tamis_digest *digests,
                                               size_t n, uint8_t *outcomes, size_t *done);

/* ---- Set algebra ----------------------------------------------------------------------------- */

typedef enum tamis_merge_flags {
    TAMIS_MERGE_RESTATE = 1, /* if the stated rate cannot be kept, state the new one */
    TAMIS_MERGE_CONCAT = 2,  /* keep the vectors apart even where they could be united */
    TAMIS_MERGE_DISJOINT = 4 /* the caller states that the sets are disjoint (keeps `unique`) */
} tamis_merge_flags;

/*
 * filter := filter united with other. Same family, both plain or both deletable, same growth and
 * layout. Vectors of one shape whose keys fit into one are united bit by bit, the others are
 * appended. ERATE when the total would pass the stated rate (unless RESTATE).
 */
TAMIS_API tamis_error tamis_filter_merge(tamis_filter *filter, const tamis_filter *other,
                                         unsigned flags, tamis_reason *reason);
/* A new plain fixed filter with the bits both have. Single vectors of one shape and family. */
TAMIS_API tamis_error tamis_filter_intersect(tamis_filter **out, const tamis_filter *a,
                                             const tamis_filter *b, tamis_reason *reason);
/* Every vector to half its bits. ERATE if more than half full (unless RESTATE), ESHAPE if half would not
 * be whole: blocks must be even in number, the bits of a spread vector a multiple of 16. */
TAMIS_API tamis_error tamis_filter_fold(tamis_filter *filter, unsigned flags, tamis_reason *reason);
/* Same family, shape, bits, counters and pending removals. */
TAMIS_API bool tamis_filter_equal(const tamis_filter *a, const tamis_filter *b);
TAMIS_API bool tamis_filter_same_family(const tamis_filter *a, const tamis_filter *b);
/* The family key; false if the filter does not carry it. */
TAMIS_API bool tamis_filter_key(const tamis_filter *filter, uint8_t key[TAMIS_KEY_LEN]);

/* ---- Bytes and files ------------------------------------------------------------------------- */

/*
 * One encoding (docs/format.md) for files, messages and values in other stores, and one validator
 * for all of them. The family key is stored too, unless left out on purpose.
 */
typedef enum tamis_save_flags {
    TAMIS_SAVE_NO_KEY = 1,   /* then the key must be given to ask */
    TAMIS_SAVE_BITS_ONLY = 2 /* no counters, no pending removals: the result is read-only */
} tamis_save_flags;

/* Takes the next bytes; 0, or any other number to stop (the call then returns EIO). */
typedef int (*tamis_write)(void *context, const void *data, size_t len);

typedef struct tamis_open_options {
    const uint8_t *key; /* for structures saved without theirs */
    bool verify;        /* check every checksum even where a mapped file is large */
    bool wait;          /* tamis_file_lock: wait for the other process */
    bool read;          /* what opens a file: read it into memory, do not map it */
    tamis_clock clock;
    void *clock_context;
    const tamis_allocator *allocator;
} tamis_open_options;

TAMIS_API uint64_t tamis_filter_encoded_size(const tamis_filter *filter, unsigned save_flags);
TAMIS_API tamis_error tamis_filter_encode(const tamis_filter *filter, unsigned save_flags,
                                          tamis_write write, void *context);
/* A filter of its own from bytes, every byte checked. options may be NULL. */
TAMIS_API tamis_error tamis_filter_decode(tamis_filter **out, const void *data, size_t len,
                                          const tamis_open_options *options, tamis_reason *reason);

/* Written beside, synced, renamed: whatever happens, the old file or the new one is whole. ESYNC: the
   new one is there, but the folder could not be synced, so a power failure may bring the old one back;
   after any other error nothing has changed. Killed at the last step, it leaves a file .tamis-* behind,
   which the next save of the same file removes. A new file
   with the key is readable by its owner alone; one that replaces another has its owner and permissions,
   unless the key would come to lie where there was none. */
TAMIS_API tamis_error tamis_filter_save(const tamis_filter *filter, const char *path,
                                        unsigned save_flags, tamis_reason *reason);
/* Maps the file, read-only: ready at once whatever its size. Header and sizes are always checked,
   the rest up to 64 MiB (`verify`: always). Counters stay in the file: a deletable filter that was
   opened can be asked and saved again, but not merged into another, and a clone of it has bits only.

   A mapped file is still the file. Replace it (as all that saves here does) and the mapping keeps the
   old one. If someone writes into it instead, answers change with it, but nothing else: no byte of it
   is used as an address unchecked. If someone makes it shorter, touching what is gone raises SIGBUS,
   which ends a program that does not catch it. Where that may happen (a file that strangers may write
   to, a network file system) set `read`: all of the file is then read before the call returns. This
   holds for whatever is opened: records and catalogs too. What is loaded is read. */
TAMIS_API tamis_error tamis_filter_open(tamis_filter **out, const char *path,
                                        const tamis_open_options *options, tamis_reason *reason);
/* Reads the file into memory, every byte checked; may be changed and saved again. */
TAMIS_API tamis_error tamis_filter_load(tamis_filter **out, const char *path,
                                        const tamis_open_options *options, tamis_reason *reason);

/* What bytes or a file are, as their beginning says. */
typedef enum tamis_kind {
    TAMIS_KIND_NONE = 0,
    TAMIS_KIND_FILTER = 1,
    TAMIS_KIND_RECORDS = 2,
    TAMIS_KIND_CATALOG = 4,
    TAMIS_KIND_MESSAGE = 5,
    TAMIS_KIND_PATCH = 6
} tamis_kind;

TAMIS_API tamis_kind tamis_kind_of(const void *data, size_t len);
TAMIS_API tamis_error tamis_file_kind(const char *path, tamis_kind *kind, tamis_reason *reason);
/* Checks every byte of a file, whatever it is. */
TAMIS_API tamis_error tamis_file_verify(const char *path, tamis_reason *reason);

/* One writer at a time, across processes: lock, load, change, save, unlock. */
typedef struct tamis_lock tamis_lock;
TAMIS_API tamis_error tamis_file_lock(tamis_lock **out, const char *path,
                                      const tamis_open_options *options, tamis_reason *reason);
TAMIS_API void tamis_file_unlock(tamis_lock *lock);

/*
 * The change from one version of a filter to a later one, coded close to its entropy. A patch
 * applies to the version it was made from and to no other (EBASE). With TAMIS_SAVE_BITS_ONLY it
 * carries bits alone, and the patched filter is read-only.
 */
TAMIS_API tamis_error tamis_filter_diff(const tamis_filter *older, const tamis_filter *newer,
                                        unsigned save_flags, tamis_write write, void *context,
                                        tamis_reason *reason);
TAMIS_API tamis_error tamis_filter_apply(tamis_filter *filter, const void *patch, size_t len,
                                         tamis_reason *reason);

#ifdef __cplusplus
}
#endif
#endif
