/*
 * tamis: "could this be here?"
 *
 * A filter is a set of keys that answers a query with a certain "no" or with a "maybe" that is wrong
 * at a stated rate, in a few bits per key. Read this header from top to bottom: rules, errors, keys,
 * filters, removal, set algebra, bytes and files; examples/first.c uses most of it. Further headers:
 * tamis/records.h (records with several attributes), tamis/catalog.h (which segments of a data set may
 * contain a record), tamis/replica.h (copies on other hosts, directories of owners) and tamis/plan.h
 * (sizes and rates).
 *
 * Rules
 *
 * 1. "No" is a proof. No growth, merge, fold, legal removal, save or load turns a member into "no".
 * 2. The stated rate (fpp) is the total for keys that were never added: over all vectors of a
 *    filter, up to its capacity (fixed, dynamic), at every size (smooth, scalable, flexible), over all live
 *    vectors (window).
 * 3. Failure changes nothing: a function that returns an error leaves its arguments as they were.
 *    The library never prints, exits or aborts.
 * 4. Threads, for all headers. Two objects never share mutable state. On one object:
 *
 *    object            any number of threads, without locks     one thread beside them    alone
 *    filter, records   has, has_many, ask, digest               add (even if it grows)    all else
 *    window filter     has, has_many, digest                                              all else
 *    schema, catalog   all but close                                                      close
 *    gatherer                                                                             all
 *    catalog writer    put, each with its own gatherer                                    all else
 *    origin                                                                               all
 *    follower          has, has_many, freshness, info, filter,  take, load, contact       free
 *                      encode, save
 *    directory         locate, locate_many, digest, owners,     all else                  free
 *                      name, copy, save
 *    following         info                                     all else                  free
 *
 *    With the option `shared_adds`, plain fixed filters accept adds from any number of threads. An
 *    origin counts as the thread that adds to its filter. The formulas of tamis/plan.h and functions
 *    of values and types have no state.
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

/* The one list of errors: name and text, which tamis_error_text() returns. */
#define TAMIS_ERRORS(X)                                                                   \
    X(OK, "done")                                                                         \
    X(ENOMEM, "out of memory")                                                            \
    X(EARG, "an argument is out of range")                                                \
    X(EFULL, "full: the capacity is reached, and more keys would exceed the stated rate") \
    X(EFAMILY, "the structures belong to different families (key or hash)")               \
    X(ESHAPE, "the structures have different shapes")                                     \
    X(ERATE, "the result would break the stated rate")                                    \
    X(EKIND, "not supported by this kind of structure")                                   \
    X(EREADONLY, "the structure is read-only")                                            \
    X(ELIMIT, "larger than this version can handle")                                      \
    X(EFORMAT, "not a tamis structure, or damaged")                                       \
    X(EVERSION, "written by a newer version of tamis")                                    \
    X(ECHECKSUM, "damaged: a checksum does not match")                                    \
    X(EBASE, "the patch was made for another version of this structure")                  \
    X(EKEY, "the family key is not stored in this structure and was not given")           \
    X(EIO, "input or output failed")                                                      \
    X(EBUSY, "another process is writing to this file")                                   \
    X(ESYNC, "written and in place, but possibly not on disk yet")                        \
    X(ESPACE, "the memory limit is reached")

typedef enum tamis_error {
#define X(name, text) TAMIS_##name,
    TAMIS_ERRORS(X)
#undef X
        TAMIS_ERROR_COUNT
} tamis_error;

TAMIS_API const char *tamis_error_text(tamis_error error);
TAMIS_API const char *tamis_error_name(tamis_error error);

/* Why a call failed and where. Functions that take a reason fill it when they fail; NULL is allowed. The
   text is one line, in which control characters from file or attribute names appear as '?'. */
typedef struct tamis_reason {
    uint64_t offset;  /* byte offset in the input, 0 if none applies */
    int system_error; /* errno, or 0 */
    char text[200];
} tamis_reason;

/* ---- Memory ---------------------------------------------------------------------------------- */

/*
 * Where a filter takes its memory from. `alloc` returns memory aligned like malloc's, not zeroed,
 * or NULL. `free` gets the size that was requested. `zeroed` (may be NULL) does what `alloc` does
 * but returns zeroed memory; vectors use it, so an allocator that can provide zero pages untouched
 * saves a memset. Without an allocator the library uses libc, and huge pages from the kernel for
 * large vectors.
 */
typedef struct tamis_allocator {
    void *(*alloc)(void *context, size_t size);
    void (*free)(void *context, void *memory, size_t size);
    void *context;
    void *(*zeroed)(void *context, size_t size);
} tamis_allocator;

/* ---- Keys ------------------------------------------------------------------------------------ */

/* A key is a string of bytes of any length. It is hashed once, to 128 bits; everything else works on this digest. */
typedef struct tamis_digest {
    uint64_t a; /* picks the block or the first probe */
    uint64_t b; /* picks the bits in the block or the steps between probes */
} tamis_digest;

typedef struct tamis_key {
    const void *data;
    size_t len;
} tamis_key;

#define TAMIS_KEY_LEN 16 /* length of a family key: secret, and random unless given */

typedef enum tamis_hash {
    TAMIS_HASH_DEFAULT = 0, /* xxh3 */
    TAMIS_XXH3 = 1,         /* XXH3-128 under a secret derived from the family key; fastest */
    TAMIS_SIP = 2,          /* SipHash-2-4-128; for keys chosen by untrusted parties */
    TAMIS_H3 = 3            /* Carter-Wegman H3 over a 64-bit fingerprint; spread layout only */
} tamis_hash;

/* ---- Filters --------------------------------------------------------------------------------- */

typedef struct tamis_filter tamis_filter;

typedef enum tamis_growth {
    /* smooth; but scalable for rates below 0.0001 and if an option is set that only vectors support */
    TAMIS_GROWTH_DEFAULT = 0,
    TAMIS_FIXED = 1,    /* one vector; full at its capacity */
    TAMIS_DYNAMIC = 2,  /* equal vectors up to a bound on the size of the set (Guo et al.) */
    TAMIS_SCALABLE = 3, /* vectors that grow geometrically, without bound */
    TAMIS_FLEXIBLE = 4, /* vectors sized by the predicted arrival rate (Xie et al.) */
    TAMIS_WINDOW = 5,   /* remembers the keys of a time span, then forgets them */
    TAMIS_SMOOTH = 6    /* lines of fingerprints, split and joined: any size, exact removal */
} tamis_growth;

typedef enum tamis_layout {
    TAMIS_LAYOUT_DEFAULT = 0, /* blocked; spread for dynamic filters and for h3 */
    TAMIS_SPREAD = 1,         /* k positions anywhere: fewest bits */
    TAMIS_BLOCKED = 2         /* k positions in one cache line: one cache miss per lookup */
} tamis_layout;

/* Returns nanoseconds since any fixed moment; only flexible and window filters use it. A filter
   that is saved and loaded needs a clock with the same starting point. If the clock is set back,
   time stands still for the filter: keys keep their age and grow older from there. A clock that
   ran far ahead for a while and was then corrected lets a window forget its keys within twice
   the usual time; keys that the window dropped while the clock was ahead stay dropped. */
typedef uint64_t (*tamis_clock)(void *context);

#define TAMIS_LAMBDAS_MAX 64

/* Zero selects the default in every field: tamis_options o = {0}; is a good start. */
typedef struct tamis_options {
    double fpp;        /* total false positive rate; default 0.01 */
    uint64_t capacity; /* keys that fit at the stated rate: in all (fixed, dynamic), before it
                          grows (scalable, flexible), or within any one window, however they
                          arrive (window; often many more fit). Default 1024. smooth: keys
                          in the vector that a plain filter begins with; default: no vector.
                          With default growth, a capacity below 512 means no vector either */
    tamis_growth growth;
    tamis_layout layout;
    tamis_hash hash;
    const uint8_t *key; /* TAMIS_KEY_LEN bytes of the family to join; default: random */
    bool deletable;     /* keys can be removed; a multiset, with counters. Not for window filters */
    bool unique;        /* deletable: the caller never adds a key that is already a member */
    bool overfill;      /* fixed, dynamic, window: accept keys past the capacity at a rising rate */
    bool shared_adds;   /* plain fixed: several threads may add at once (slower adds) */
    bool add_always;    /* growing plain: do not query before adding; a repeated key counts again */
    double expansion;   /* scalable: size ratio of successive vectors; 0: the default schedule */
    double tolerate;    /* dynamic: one vector holds the capacity at fpp; the filter grows past it
                             until the rate reaches this bound (the pair beta < gamma) */
    uint32_t vectors;   /* number of vectors that share the capacity. dynamic: 0 lets the planner
                             choose. window: default 8, replaced in turn as time passes; bursts
                             that fill one early add at most log2(vectors) more */
    uint64_t bits;      /* as published: bits and hashes of one vector (the first one) that    */
    uint32_t hashes;    /* holds `capacity` keys; later ones likewise, the total rate not bounded */
    const uint8_t *lambdas; /* flexible: expansion speeds, used in turn; the last one repeats. */
    size_t n_lambdas;       /* Without them the predicted arrival rate decides */
    uint64_t window;        /* window: nanoseconds a key is remembered; default 24 hours */
    uint64_t memory_limit;  /* bytes the filter may grow to, then ESPACE; default: no limit */
    tamis_clock clock;      /* default: the system's real-time clock */
    void *clock_context;
    const tamis_allocator *allocator; /* copied */
} tamis_options;

TAMIS_API tamis_error tamis_filter_new(tamis_filter **out, const tamis_options *options,
                                       tamis_reason *reason);
TAMIS_API void tamis_filter_free(tamis_filter *filter);
TAMIS_API tamis_error tamis_filter_clone(tamis_filter **out, const tamis_filter *filter);

/* One key at a time. `fresh` (may be NULL) is false if the key already appeared to be a member. */
TAMIS_API tamis_error tamis_filter_add(tamis_filter *filter, const void *key, size_t len,
                                       bool *fresh);
TAMIS_API bool tamis_filter_has(const tamis_filter *filter, const void *key, size_t len);

/*
 * Batches are several times faster: digest the keys with the filter's family, then add or query the
 * digests. tamis_filter_add_many stops at the first key that cannot be added; `done` (may be NULL)
 * receives the number of keys added. `fresh` (may be NULL) and `found` are arrays of n bytes, each
 * 1 or 0.
 */
TAMIS_API tamis_digest tamis_filter_digest(const tamis_filter *filter, const void *key, size_t len);
TAMIS_API void tamis_filter_digest_many(const tamis_filter *filter, const tamis_key *keys, size_t n,
                                        tamis_digest *out);
TAMIS_API void tamis_filter_digest_fixed(const tamis_filter *filter, const void *keys, size_t width,
                                         size_t n, tamis_digest *out); /* `width` bytes each */
TAMIS_API tamis_error tamis_filter_add_many(tamis_filter *filter, const tamis_digest *digests,
                                            size_t n, uint8_t *fresh, size_t *done);
TAMIS_API void tamis_filter_has_many(const tamis_filter *filter, const tamis_digest *digests,
                                     size_t n, uint8_t *found);
/* Adds with several threads; plain fixed filters only (others: EKIND). It stops at the capacity,
   with the first keys added. threads = 0 uses all cores. */
TAMIS_API tamis_error tamis_filter_build(tamis_filter *filter, const tamis_digest *digests,
                                         size_t n, unsigned threads);

/* Window filters: drops everything older than the window. Adds do this too. */
TAMIS_API tamis_error tamis_filter_expire(tamis_filter *filter);
/* Empties the filter and returns it to its initial size; family, growth and rate stay. */
TAMIS_API tamis_error tamis_filter_clear(tamis_filter *filter);

typedef struct tamis_filter_facts {
    tamis_growth growth;
    tamis_layout layout;
    tamis_hash hash;
    bool deletable, unique, read_only, has_key;
    bool bits_only; /* saved or patched without counters: permanently read-only */
    uint64_t items; /* deletable: adds minus removals. plain: adds that were fresh; in a window,
                          fresh in the newest vector: a key that is added again later counts again */
    double
        distinct; /* distinct keys, estimated from the fill of the vectors, or from some of the entries */
    uint64_t capacity; /* keys that fit at the stated rate in the present vectors; if there are
                          lines, at least as many as there are keys */
    uint64_t bits;     /* in all vectors and lines, counters excluded */
    uint64_t bytes;    /* total memory of the filter (of the file, if mapped), without the 300 bytes
                          that it shares with filters of the same options and family */
    uint32_t vectors;  /* number of vectors now; lines are none */
    uint32_t hashes;   /* most probes of any vector */
    uint64_t pending;  /* removals remembered but not yet settled */
    double fpp;        /* stated rate; 0 for sizes as published, which do not bound the total */
    double fpp_now;    /* estimated from the actual fill */
    double fill;       /* share of the bits that are set, or in used slots of lines */
    double expansion;  /* as in the options, like the next two fields */
    uint64_t window, memory_limit;
} tamis_filter_facts;

TAMIS_API void tamis_filter_info(const tamis_filter *filter, tamis_filter_facts *facts);
/* Omits distinct, fpp_now and fill, which have to read every bit of a plain filter. */
TAMIS_API void tamis_filter_brief(const tamis_filter *filter, tamis_filter_facts *facts);
/* Changes the memory limit for future growth; 0: none. Memory already in use is unaffected. */
TAMIS_API tamis_error tamis_filter_limit(tamis_filter *filter, uint64_t memory_limit);

typedef struct tamis_vector_facts {
    uint64_t bits, capacity, items, ones;
    uint32_t hashes;
    double fpp;
} tamis_vector_facts;

/* The i-th vector, oldest first; false if there is no such vector. */
TAMIS_API bool tamis_filter_vector(const tamis_filter *filter, uint32_t i,
                                   tamis_vector_facts *facts);

/* ---- Removal --------------------------------------------------------------------------------- */

/*
 * Only members may be removed. Removing a key that was never added, or more often than it was
 * added, can turn other keys into "no" (at about the false positive rate); whatever the counters
 * can disprove is refused as ABSENT. A removal that could belong to several vectors is remembered
 * exactly and settled as soon as it is certain (PENDING). Until then the key answers "maybe", or
 * immediately "no" in a `unique` filter. Nothing is left behind once all keys have been removed.
 */
typedef enum tamis_removed {
    TAMIS_REMOVED = 0,
    TAMIS_ABSENT = 1, /* certainly not a member; nothing changed */
    TAMIS_PENDING = 2
} tamis_removed;

TAMIS_API tamis_error tamis_filter_remove(tamis_filter *filter, const void *key, size_t len,
                                          tamis_removed *outcome);
/* outcomes (may be NULL): n bytes, each one a tamis_removed. */
TAMIS_API tamis_error tamis_filter_remove_many(tamis_filter *filter, const tamis_digest *digests,
                                               size_t n, uint8_t *outcomes, size_t *done);
/* An upper bound on how often the key was added and not removed; it is too high only where other keys cover
   this one, and may be 0 for a key that was never added but is found. For a plain filter, 1 or 0. */
TAMIS_API uint64_t tamis_filter_count(const tamis_filter *filter, const void *key, size_t len);

/* ---- Set algebra ----------------------------------------------------------------------------- */

typedef enum tamis_merge_flags {
    TAMIS_MERGE_RESTATE = 1, /* if the stated rate cannot be kept, state the new one */
    TAMIS_MERGE_CONCAT = 2,  /* keep the vectors separate even where they could be united */
    TAMIS_MERGE_DISJOINT = 4 /* the caller guarantees that the sets are disjoint (keeps `unique`) */
} tamis_merge_flags;

/*
 * Makes `filter` the union of both. They must have the same family, growth and layout, and both be
 * plain or both deletable. Vectors of equal shape whose keys fit into one are ORed; the others are
 * appended. ERATE if the total would exceed the stated rate (unless RESTATE), ESPACE at the memory limit.
 */
TAMIS_API tamis_error tamis_filter_merge(tamis_filter *filter, const tamis_filter *other,
                                         unsigned flags, tamis_reason *reason);
/* A new plain fixed filter with the bits that both have. Each must be a single vector of the
   same shape and family. */
TAMIS_API tamis_error tamis_filter_intersect(tamis_filter **out, const tamis_filter *a,
                                             const tamis_filter *b, tamis_reason *reason);
/* Halves every vector. ERATE if it is more than half full (unless RESTATE). ESHAPE if a vector cannot be
   halved: the number of blocks must be even, the bits of a spread vector a multiple of 16. */
TAMIS_API tamis_error tamis_filter_fold(tamis_filter *filter, unsigned flags, tamis_reason *reason);
/* True for equal family, shape, bits, counters, fingerprints and pending removals. */
TAMIS_API bool tamis_filter_equal(const tamis_filter *a, const tamis_filter *b);
TAMIS_API bool tamis_filter_same_family(const tamis_filter *a, const tamis_filter *b);
/* Copies the family key; false if the filter does not carry it. */
TAMIS_API bool tamis_filter_key(const tamis_filter *filter, uint8_t key[TAMIS_KEY_LEN]);

/* ---- Bytes and files ------------------------------------------------------------------------- */

/*
 * Files, messages and values in other stores share one encoding (docs/format.md) and one validator.
 * The family key is stored too, unless a flag leaves it out.
 */
typedef enum tamis_save_flags {
    TAMIS_SAVE_NO_KEY = 1,   /* queries then need the key from the caller */
    TAMIS_SAVE_BITS_ONLY = 2 /* no counters, no pending removals: the result is read-only */
} tamis_save_flags;

/* Takes the next bytes. Returns 0, or anything else to stop; the call then returns EIO. */
typedef int (*tamis_write)(void *context, const void *data, size_t len);

typedef struct tamis_open_options {
    const uint8_t *key; /* for structures saved without their key */
    bool verify;        /* check every checksum even if a mapped file is large */
    bool wait;          /* tamis_file_lock: wait for the other process */
    bool read;          /* when opening a file: read it into memory instead of mapping it */
    tamis_clock clock;
    void *clock_context;
    const tamis_allocator *allocator;
} tamis_open_options;

TAMIS_API uint64_t tamis_filter_encoded_size(const tamis_filter *filter, unsigned save_flags);
TAMIS_API tamis_error tamis_filter_encode(const tamis_filter *filter, unsigned save_flags,
                                          tamis_write write, void *context);
/* An independent filter from bytes, all of which are checked. options may be NULL. */
TAMIS_API tamis_error tamis_filter_decode(tamis_filter **out, const void *data, size_t len,
                                          const tamis_open_options *options, tamis_reason *reason);

/* Writes a temporary file, syncs it and renames it, so that at any moment either the old file or
   the new one is complete. ESYNC: the new file is in place, but the folder could not be synced, so
   a power failure may bring the old one back. After any other error nothing has changed. A process
   killed in the last step leaves a file .tamis-* behind, which the next save of the same file
   removes. A new file with the key is readable by its owner only. A file that replaces another
   keeps that file's owner and permissions, except that access to the key is never widened. */
TAMIS_API tamis_error tamis_filter_save(const tamis_filter *filter, const char *path,
                                        unsigned save_flags, tamis_reason *reason);
/* Maps the file read-only, which takes the same time for any size. The header and all sizes are
   always checked, payloads up to 64 MiB too (larger ones with `verify`). Counters stay in the file:
   an opened deletable filter can be queried and saved again, but not merged into another, and a
   clone of it has only bits. Smooth filters have no counters: they can be merged into others, and a
   clone can be changed. The mapping reflects the file. When a file is replaced by renaming,
   as every save here does, the mapping keeps the old contents. If someone writes into the file
   instead, the answers change, but nothing worse happens: no byte of it is used as an address
   unchecked. If someone truncates it, access to the missing part raises SIGBUS, which ends a
   program that does not catch it. Where this may happen (files that untrusted parties can write to,
   network file systems), set `read`: the whole file is then read before the call returns. The same
   holds for records and catalogs. The functions called load always read. */
TAMIS_API tamis_error tamis_filter_open(tamis_filter **out, const char *path,
                                        const tamis_open_options *options, tamis_reason *reason);
/* Reads the file into memory and checks every byte; the filter may be changed and saved again. */
TAMIS_API tamis_error tamis_filter_load(tamis_filter **out, const char *path,
                                        const tamis_open_options *options, tamis_reason *reason);

/* The kind of a file or of encoded bytes, as their first bytes state it. */
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
/* Checks every byte of a file of any kind. */
TAMIS_API tamis_error tamis_file_verify(const char *path, tamis_reason *reason);

/* One writer at a time, across processes: lock, load, change, save, unlock. */
typedef struct tamis_lock tamis_lock;
TAMIS_API tamis_error tamis_file_lock(tamis_lock **out, const char *path,
                                      const tamis_open_options *options, tamis_reason *reason);
TAMIS_API void tamis_file_unlock(tamis_lock *lock);

/*
 * The change from one version of a filter to a later one, coded close to its entropy. A patch
 * applies only to the version it was made from (EBASE). With TAMIS_SAVE_BITS_ONLY it carries only
 * the bits, and the patched filter is read-only.
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
