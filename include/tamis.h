/*
 * tamis: "could this be here?"
 *
 * A filter is a set of keys that answers "no" for sure or "maybe" with a stated rate of error, in a
 * few bits a key. This header is meant to be read from top to bottom: rules, errors, keys, filters,
 * removal, set algebra, records, bytes and files, directories and catalogs, replicas, numbers. The
 * program examples/first.c uses most of it.
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
    uint64_t capacity; /* fixed: keys it holds. dynamic: upper bound on the set. scalable, flexible:
                          keys of the first vector. window: keys added within any one window, which
                          fit however they arrive; often many more do. 1024 */
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
    double tolerate;    /* dynamic: capacity is that of one vector, which meets fpp; vectors are
                             added until the rate reaches this bound (the pair beta < gamma) */
    uint32_t vectors;   /* dynamic: number of vectors for the capacity; 0: the planner's choice.
                             window: live vectors that turn by time, 8; what bursts fill before
                             their time comes on top, log2(vectors) at most */
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

typedef struct tamis_info {
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
    uint32_t vectors;
    uint32_t hashes;  /* of the vector with the most */
    uint64_t pending; /* removals remembered, not yet settled */
    double fpp;       /* stated; 0 when made as published, without a bound on the total */
    double fpp_now;   /* estimated from the real fill */
    double fill;      /* share of bits set */
    double expansion; /* as in the options, like the next two */
    uint64_t window, memory_limit;
} tamis_info;

TAMIS_API void tamis_filter_info(const tamis_filter *filter, tamis_info *info);
/* The same without distinct, fpp_now and fill, which read every bit of a plain filter. */
TAMIS_API void tamis_filter_brief(const tamis_filter *filter, tamis_info *info);
/* Another limit on memory, for growth to come; 0: none. What there is stays. */
TAMIS_API tamis_error tamis_filter_limit(tamis_filter *filter, uint64_t memory_limit);

typedef struct tamis_vector_info {
    uint64_t bits, capacity, items, ones;
    uint32_t hashes;
    double fpp;
} tamis_vector_info;

/* The i-th vector, oldest first; false if there is none. */
TAMIS_API bool tamis_filter_vector(const tamis_filter *filter, uint32_t i, tamis_vector_info *info);

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
                                         unsigned flags);
/* A new plain fixed filter with the bits both have. Single vectors of one shape and family. */
TAMIS_API tamis_error tamis_filter_intersect(tamis_filter **out, const tamis_filter *a,
                                             const tamis_filter *b);
/* Every vector to half its bits. ERATE if more than half full (unless RESTATE), ESHAPE if half would not
 * be whole: blocks must be even in number, the bits of a spread vector a multiple of 16. */
TAMIS_API tamis_error tamis_filter_fold(tamis_filter *filter, unsigned flags);
/* Same family, shape, bits, counters and pending removals. */
TAMIS_API bool tamis_filter_equal(const tamis_filter *a, const tamis_filter *b);
TAMIS_API bool tamis_filter_same_family(const tamis_filter *a, const tamis_filter *b);
/* The family key; false if the filter does not carry it. */
TAMIS_API bool tamis_filter_key(const tamis_filter *filter, uint8_t key[TAMIS_KEY_LEN]);

/* ---- Records --------------------------------------------------------------------------------- */

/*
 * An index is a set of records with 1 to 64 named attributes, to be asked about whole records or any
 * of the attributes: "could a record with ip=10.1.2.3 and user=ann be here?" That both values occur
 * does not say that they occur together: this takes a verifier, and there is one for the whole
 * record and for each declared combination of attributes. The stated rate is the total for single
 * attributes, for declared combinations and for whole records, even of values that are all stored.
 * Other subsets are answered by what is there, and the answer says that it is not verified.
 *
 * Growth, removal, threads and failure are as for filters; an index grows by layers, each with all
 * attributes and verifiers, and a record is in one of them.
 */
typedef struct tamis_index tamis_index;

#define TAMIS_ATTRIBUTES_MAX 64
#define TAMIS_COMBOS_MAX     63

/* How a value is written before it is compared or hashed; see tamis_value_normal. */
typedef enum tamis_type {
    TAMIS_BYTES = 0,
    TAMIS_INT = 1,
    TAMIS_DEC = 2,
    TAMIS_TIME = 3
} tamis_type;

typedef struct tamis_attribute {
    const char *name; /* 1 to 255 bytes */
    tamis_type type;
    uint64_t distinct; /* values expected, the missing one counted; 0: as many as records. Where
                          there are more, the index grows sooner; a fixed one is full */
} tamis_attribute;

typedef enum tamis_verifier {
    TAMIS_VERIFIER_DEFAULT = 0, /* filter */
    TAMIS_VERIFIER_NONE = 1,    /* PBF: any combination of stored values is "maybe" */
    TAMIS_VERIFIER_TABLE = 2,   /* PBF-HT: exact values, 21 to 43 bytes a record each */
    TAMIS_VERIFIER_FILTER = 3   /* PBF-BF: one more vector each */
} tamis_verifier;

/* What a verifier keeps of a record. The published sums collide: tamis_plan_verify_rates says how
   often, and the stated rate does not cover it. */
typedef enum tamis_verify {
    TAMIS_VERIFY_DEFAULT = 0,   /* mixed */
    TAMIS_VERIFY_MIXED = 1,     /* 64 bits mixed from the digests of the attributes */
    TAMIS_VERIFY_BASIC = 2,     /* sum of all addresses */
    TAMIS_VERIFY_ATTENUATED = 3 /* sum in which the j-th address weighs 2^-j */
} tamis_verify;

/* Zero means default. */
typedef struct tamis_index_options {
    const tamis_attribute *attributes;
    size_t n_attributes;
    const uint64_t *combos; /* sets of attributes to verify, bit i for attribute i. If none is */
    size_t n_combos;        /* given: all pairs when there are up to three attributes, */
    bool no_combos;         /* or with this nothing but whole records */
    tamis_verifier verifier;
    tamis_verify value;
    tamis_options set; /* as for filters, with records for keys and layers for vectors (dynamic: not
                          sliced); no window, unique, shared_adds, add_always, tolerate, bits, hashes */
} tamis_index_options;

TAMIS_API tamis_error tamis_index_new(tamis_index **out, const tamis_index_options *options,
                                      tamis_reason *reason);
TAMIS_API void tamis_index_free(tamis_index *index);
TAMIS_API tamis_error tamis_index_clone(tamis_index **out, const tamis_index *index);
TAMIS_API tamis_error tamis_index_clear(tamis_index *index);
/* The same attributes, combinations, verifier, growth and family; otherwise as filters. */
TAMIS_API tamis_error tamis_index_merge(tamis_index *index, const tamis_index *other,
                                        unsigned flags);
TAMIS_API bool tamis_index_equal(const tamis_index *a, const tamis_index *b);
TAMIS_API bool tamis_index_key(const tamis_index *index, uint8_t key[TAMIS_KEY_LEN]);

/* The number of the attribute of this name; if there is none, the reason lists those there are. */
TAMIS_API tamis_error tamis_index_attribute(const tamis_index *index, const char *name,
                                            uint32_t *number, tamis_reason *reason);

/*
 * A record is a value for each attribute, in order. A value without data is missing, which is a
 * value of its own: missing, empty and the text "null" are three. In a question `mask` says which of
 * the attributes count (bit i for attribute i; 0: all), the others are not looked at.
 */
typedef struct tamis_answer {
    bool maybe;    /* false: no such record, for sure */
    bool verified; /* something covers just these attributes: one alone, a declared combination or
                      the whole record; else the values may stem from several records */
} tamis_answer;

TAMIS_API tamis_error tamis_index_add(tamis_index *index, const tamis_key *record, bool *fresh);
TAMIS_API tamis_answer tamis_index_has(const tamis_index *index, const tamis_key *record,
                                       uint64_t mask);
TAMIS_API tamis_error tamis_index_remove(tamis_index *index, const tamis_key *record,
                                         tamis_removed *outcome);

/* Many at a time. A record is as many digests as there are attributes; `records` are n of them, one
   after the other. Digests of one attribute are not those of another. */
TAMIS_API tamis_digest tamis_index_digest(const tamis_index *index, uint32_t attribute,
                                          tamis_key value);
TAMIS_API void tamis_index_digest_many(const tamis_index *index, const tamis_key *records, size_t n,
                                       tamis_digest *out);
TAMIS_API tamis_error tamis_index_add_many(tamis_index *index, const tamis_digest *records,
                                           size_t n, uint8_t *fresh, size_t *done);
TAMIS_API void tamis_index_has_many(const tamis_index *index, uint64_t mask,
                                    const tamis_digest *records, size_t n, uint8_t *found);
TAMIS_API tamis_error tamis_index_remove_many(tamis_index *index, const tamis_digest *records,
                                              size_t n, uint8_t *outcomes, size_t *done);
/* Is there a verifier for just these attributes, or only one of them? */
TAMIS_API bool tamis_index_verifies(const tamis_index *index, uint64_t mask);

/* Several values for an attribute mean any of them: "maybe" if some choice of one each matches. A
   layer is asked for at most 65,536 partial choices and 4,096 values; past that it answers by its
   attributes alone, not verified. EARG if an attribute comes twice or is not there. */
typedef struct tamis_choice {
    uint32_t attribute;
    const tamis_digest *values;
    size_t n;
} tamis_choice;

TAMIS_API tamis_error tamis_index_ask(const tamis_index *index, const tamis_choice *choices,
                                      size_t n, tamis_answer *answer);

typedef struct tamis_records_info {
    uint32_t attributes, combos; /* the whole record not counted */
    tamis_verifier verifier;
    tamis_verify value;
    tamis_growth growth;
    tamis_layout layout;
    tamis_hash hash;
    bool deletable, read_only, has_key;
    bool bits_only;    /* saved without counters: read-only for good */
    uint64_t records;  /* deletable: adds less removals. plain: adds that were fresh */
    uint64_t capacity; /* records that the present layers hold */
    uint64_t bits;     /* of all vectors, without counters */
    uint64_t bytes;    /* all memory (of the file, when mapped) */
    uint32_t layers;
    uint64_t pending;
    double fpp;           /* stated */
    double fpp_attribute; /* now, for values not stored: the highest of the single attributes, */
    double fpp_fresh;     /* and whole records of such values */
    double fpp_record;    /* whole records of values that are all stored, but not together */
    double expansion;     /* as in the options, like the next one */
    uint64_t memory_limit;
} tamis_records_info;

TAMIS_API void tamis_index_info(const tamis_index *index, tamis_records_info *info);
/* The same without the rates now, which read every bit. */
TAMIS_API void tamis_index_brief(const tamis_index *index, tamis_records_info *info);
TAMIS_API tamis_error tamis_index_limit(tamis_index *index,
                                        uint64_t memory_limit); /* see filters */

typedef struct tamis_attribute_info {
    const char *name; /* as long as the index lives */
    tamis_type type;
    uint64_t bits;
    double
        distinct; /* values as the fill tells, added over layers: one in two layers counts twice */
    double fpp;   /* now, for a value not stored */
} tamis_attribute_info;

/* The name of attribute i, as long as the index lives; NULL if there is none. */
TAMIS_API const char *tamis_index_name(const tamis_index *index, uint32_t i);
/* Attribute i; false if there is none. */
TAMIS_API bool tamis_index_attribute_info(const tamis_index *index, uint32_t i,
                                          tamis_attribute_info *info);
/* The rate now of questions with this mask about values that are not stored (fresh) or all stored,
   but not together. 1 where nothing verifies the latter. */
TAMIS_API double tamis_index_rate(const tamis_index *index, uint64_t mask, bool fresh);
/* Combination i, as a mask; 0 if there is none. */
TAMIS_API uint64_t tamis_index_combo(const tamis_index *index, uint32_t i);

/*
 * The normal form of a value, so that different ways to write one value meet. Returns its length, or
 * 0 if the bytes are no value of the type (or there is no room: len + 32 bytes always do); then they
 * stand for themselves, as text does that is no number. Spaces around it and one pair of double
 * quotes do not count. Over 4,096 bytes nothing but bytes is recognised.
 *
 *   int    sign and digits: 7, 07, +7 -> 7; -0 -> 0
 *   dec    with point and exponent, exact: 1.50, 1.5, 15e-1 -> 15e-1; 100 -> 1e2
 *   time   2024-01-31T23:59:59.50+01:00, 20240131T225959.5Z, 2024-01-31 22:59:59,5,
 *          1706741999.5 (seconds since 1970) -> 2024-01-31T22:59:59.5Z. Without an offset it is
 *          UTC; a date is its first moment; second 60 is the next minute; years 0000 to 9999
 */
TAMIS_API size_t tamis_value_normal(tamis_type type, const void *value, size_t len, void *out,
                                    size_t room);

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
   holds for whatever is opened: indexes, directories and catalogs too. What is loaded is read. */
TAMIS_API tamis_error tamis_filter_open(tamis_filter **out, const char *path,
                                        const tamis_open_options *options, tamis_reason *reason);
/* Reads the file into memory, every byte checked; may be changed and saved again. */
TAMIS_API tamis_error tamis_filter_load(tamis_filter **out, const char *path,
                                        const tamis_open_options *options, tamis_reason *reason);

/* The same for indexes; verifiers that are tables are asked where they lie in the file. */
TAMIS_API uint64_t tamis_index_encoded_size(const tamis_index *index, unsigned save_flags);
TAMIS_API tamis_error tamis_index_encode(const tamis_index *index, unsigned save_flags,
                                         tamis_write write, void *context);
TAMIS_API tamis_error tamis_index_decode(tamis_index **out, const void *data, size_t len,
                                         const tamis_open_options *options, tamis_reason *reason);
TAMIS_API tamis_error tamis_index_save(const tamis_index *index, const char *path,
                                       unsigned save_flags, tamis_reason *reason);
TAMIS_API tamis_error tamis_index_open(tamis_index **out, const char *path,
                                       const tamis_open_options *options, tamis_reason *reason);
TAMIS_API tamis_error tamis_index_load(tamis_index **out, const char *path,
                                       const tamis_open_options *options, tamis_reason *reason);

/* What bytes or a file are, as their beginning says. */
typedef enum tamis_kind {
    TAMIS_KIND_NONE = 0,
    TAMIS_KIND_FILTER = 1,
    TAMIS_KIND_INDEX = 2,
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

/* ---- Catalogs -------------------------------------------------------------------------------- */

/*
 * A catalog is a file about the segments of a data set (pieces of log files, tables, whatever can be
 * read apart from the rest), whose records have named attributes. Asked for some values it names the
 * segments that may have a matching record. Every attribute and every declared combination of
 * attributes is a *relation*; of each, every segment has a column of a bit-sliced matrix.
 *
 * The stated rate is for each segment where one attribute is asked for, and for all segments
 * together where a declared combination is: of a hundred questions about pairs of values that never
 * occur together, though each occurs everywhere, 99 name no segment at 1 %.
 *
 * A schema says what the attributes are. It belongs to the catalog or the writer it comes from, never
 * changes, and may be used by any number of threads.
 */
typedef struct tamis_schema tamis_schema;

/* The number of the attribute of this name; if there is none, the reason lists those there are. */
TAMIS_API tamis_error tamis_schema_attribute(const tamis_schema *schema, const char *name,
                                             uint32_t *number, tamis_reason *reason);
TAMIS_API uint32_t tamis_schema_attributes(const tamis_schema *schema);
TAMIS_API const char *tamis_schema_name(const tamis_schema *schema, uint32_t attribute);
TAMIS_API tamis_type tamis_schema_type(const tamis_schema *schema, uint32_t attribute);
/* Combination i, as a mask; 0 if there is none. */
TAMIS_API uint64_t tamis_schema_combo(const tamis_schema *schema, uint32_t i);
TAMIS_API tamis_verifier tamis_schema_verifier(const tamis_schema *schema);
TAMIS_API double tamis_schema_fpp(const tamis_schema *schema);
/* As in an index: the value is brought to the normal form of its type, without data it is missing. */
TAMIS_API tamis_digest tamis_schema_digest(const tamis_schema *schema, uint32_t attribute,
                                           tamis_key value);

/*
 * Gathering: what one segment has of each relation, exactly and once. One for each thread. A record
 * takes some 16 to 64 bytes for each relation in which it is new; see tamis_gather_bytes, and cut the
 * segment before it is too much.
 */
typedef struct tamis_gather tamis_gather;

TAMIS_API tamis_error tamis_gather_new(tamis_gather **out, const tamis_schema *schema);
TAMIS_API void tamis_gather_free(tamis_gather *gather);
/* One value for each attribute, in order; without data it is missing. */
TAMIS_API tamis_error tamis_gather_add(tamis_gather *gather, const tamis_key *record);
TAMIS_API uint64_t tamis_gather_records(const tamis_gather *gather);
/* Memory that what was gathered takes. Empty it is 0: memory that was taken for a segment serves the
   next one. */
TAMIS_API uint64_t tamis_gather_bytes(const tamis_gather *gather);
TAMIS_API void tamis_gather_clear(tamis_gather *gather); /* lets go of what was gathered */

/* Zero means default. */
typedef struct tamis_catalog_options {
    const tamis_attribute *attributes; /* `distinct` is not used: it is counted */
    size_t n_attributes;
    const uint64_t *combos;  /* sets of attributes to verify, bit i for attribute i. If none is */
    size_t n_combos;         /* given: all pairs when there are two or three attributes, */
    bool no_combos;          /* or with this none */
    tamis_verifier verifier; /* filter, or none: then there are no combinations */
    double fpp;              /* 0.01 */
    uint64_t segments;       /* expected in all; 1000. With more the rate still holds, but those
                                past it take more bits for their combinations */
    uint64_t memory; /* bytes the writer may hold, whatever the size of the data, beside some
                                200 a segment; 96 MiB */
    tamis_hash hash;
    const uint8_t *key;
    const tamis_allocator *allocator;
} tamis_catalog_options;

/*
 * Writing: a new file, or a new version of one. It is made beside (as large again while it is written)
 * and takes its place at the commit, synced; until then, whatever happens, nothing has changed.
 */
typedef struct tamis_catalog_writer tamis_catalog_writer;

TAMIS_API tamis_error tamis_catalog_create(tamis_catalog_writer **out, const char *path,
                                           const tamis_catalog_options *options,
                                           tamis_reason *reason);
/* Starts with all the file has. Takes no lock: see tamis_file_lock. */
TAMIS_API tamis_error tamis_catalog_update(tamis_catalog_writer **out, const char *path,
                                           const tamis_open_options *options, tamis_reason *reason);
TAMIS_API const tamis_schema *tamis_catalog_writer_schema(const tamis_catalog_writer *writer);
/* A segment of the old file, by its number there. EARG if there is none or it was dropped. */
TAMIS_API tamis_error tamis_catalog_drop(tamis_catalog_writer *writer, uint64_t segment);
TAMIS_API tamis_error tamis_catalog_retag(tamis_catalog_writer *writer, uint64_t segment,
                                          const void *tag, size_t len, tamis_reason *reason);
/* One segment more: all that was gathered (which is empty afterwards), and bytes of the caller's
   about it. Threads may call it together. After an error there is nothing to do but to abandon. */
TAMIS_API tamis_error tamis_catalog_put(tamis_catalog_writer *writer, tamis_gather *gather,
                                        const void *tag, size_t len, tamis_reason *reason);
/* `note`: bytes of the caller's about the whole. */
TAMIS_API tamis_error tamis_catalog_commit(tamis_catalog_writer *writer, const void *note,
                                           size_t len, tamis_reason *reason);
/* Frees the writer, after a commit too; without one the file is as it was. */
TAMIS_API void tamis_catalog_abandon(tamis_catalog_writer *writer);

/*
 * Asking. The file is mapped and ready at once whatever its size: what names and places everything is
 * checked, and each piece of the rest when a question touches it for the first time. Any number of
 * threads may ask.
 */
typedef struct tamis_catalog tamis_catalog;

TAMIS_API tamis_error tamis_catalog_open(tamis_catalog **out, const char *path,
                                         const tamis_open_options *options, tamis_reason *reason);
TAMIS_API void tamis_catalog_close(tamis_catalog *catalog);
/* The pages of the file that were read need not stay in memory: they come back when they are touched.
   For one who goes through much of a large one. */
TAMIS_API void tamis_catalog_rest(const tamis_catalog *catalog);
TAMIS_API const tamis_schema *tamis_catalog_schema(const tamis_catalog *catalog);
TAMIS_API bool tamis_catalog_key(const tamis_catalog *catalog, uint8_t key[TAMIS_KEY_LEN]);
/* Segments are numbered from 0 in the order they were put, dropped ones gone. What is returned is as
   long-lived as the catalog. */
TAMIS_API uint64_t tamis_catalog_segments(const tamis_catalog *catalog);
/* NULL if there is no such segment, or the file was changed since it was opened. Tags and the note are
   bytes of the file: unless it was read, check what was copied. */
TAMIS_API const void *tamis_catalog_tag(const tamis_catalog *catalog, uint64_t segment,
                                        size_t *len);
TAMIS_API const void *tamis_catalog_note(const tamis_catalog *catalog, size_t *len);
TAMIS_API uint64_t tamis_catalog_records(const tamis_catalog *catalog, uint64_t segment);

typedef struct tamis_catalog_answer {
    bool verified; /* something covers just these attributes: one alone, or a declared combination;
                      else the values may stem from several records */
    uint64_t segments;      /* asked, */
    uint64_t by_attributes; /* rejected by the attributes, */
    uint64_t by_verifier;   /* then by combinations, */
    uint64_t candidates;    /* and left */
} tamis_catalog_answer;

/* Bit i of `segments` ((n + 63) / 64 words for n segments): segment i may have a record with one of
   the values for each of the attributes. Every combination whose attributes are all asked for is
   used, as long as there are at most 65,536 choices of its values; past that it is not verified. */
TAMIS_API tamis_error tamis_catalog_ask(const tamis_catalog *catalog, const tamis_choice *choices,
                                        size_t n, uint64_t *segments, tamis_catalog_answer *answer,
                                        tamis_reason *reason);

typedef struct tamis_catalog_facts {
    uint32_t attributes, combos;
    tamis_verifier verifier;
    tamis_hash hash;
    bool has_key;
    uint64_t segments, records, bytes; /* of the file */
    uint32_t strips;                   /* matrices of up to 512 columns */
    double fpp;
} tamis_catalog_facts;

typedef struct tamis_relation_facts {
    uint64_t mask; /* one attribute, or a combination */
    uint32_t shapes, strips;
    uint64_t columns, bytes;
    uint64_t distinct, distinct_most; /* summed over the segments, and of one of them */
    uint64_t rows;                    /* bits of the longest column */
    uint32_t hashes;                  /* of the column with the most */
    double fpp;     /* stated: of a segment (attributes), of all together (combinations) */
    double fpp_now; /* as the columns are: the highest of a segment, or all together */
} tamis_relation_facts;

TAMIS_API void tamis_catalog_info(const tamis_catalog *catalog, tamis_catalog_facts *facts);
/* Relation i: attributes first, then combinations; false if there is none. */
TAMIS_API bool tamis_catalog_relation(const tamis_catalog *catalog, uint32_t i,
                                      tamis_relation_facts *facts);
/* ---- Replicas -------------------------------------------------------------------------------- */

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
    uint64_t epoch;         /* number of this life of the origin, above those before; the clock */
    bool no_key;            /* leave the family key out of snapshots: followers must have it */
    tamis_clock clock;      /* nanoseconds since 1970; the system's real-time clock */
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
    uint64_t time, beat;           /* of the origin's clock; nanoseconds */
    tamis_targets targets;         /* none: negative, or 0 for max_age */
    tamis_estimate estimate;       /* when it was sent */
} tamis_message;
TAMIS_API tamis_error tamis_message_read(tamis_message *out, const void *data, size_t len,
                                         tamis_reason *reason);

typedef struct tamis_follower tamis_follower;

typedef struct tamis_follower_options {
    const uint8_t *key; /* of the family, where snapshots come without it */
    uint32_t lease;     /* heartbeats that may be missing before the copy is stale; 3 */
    tamis_clock clock;  /* nanoseconds since any moment; the system's monotonic clock */
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
 * Takes the next message; `age` says how many nanoseconds ago it was sent (0 if that is not known).
 * EBASE: it does not follow on what is here (the reason names both versions); if it is of the same
 * origin, the follower needs a snapshot from then on. EFAMILY: of another family or owner. Other
 * errors: damaged. One thread takes while any number of others ask (freshness, has, has_many).
 */
TAMIS_API tamis_error tamis_follower_take(tamis_follower *follower, const void *message, size_t len,
                                          uint64_t age, tamis_taken *taken, tamis_reason *reason);

typedef enum tamis_freshness {
    TAMIS_CURRENT = 0, /* within the lease, and of the last version heard of: the targets hold */
    TAMIS_UNKNOWN = 1, /* no snapshot yet */
    TAMIS_BEHIND = 2,  /* a version is missing: being rebuilt */
    TAMIS_STALE = 3,   /* nothing was heard for so long that the lease ran out */
    TAMIS_GONE = 4     /* the origin said farewell: nothing more is to be expected of it */
} tamis_freshness;
TAMIS_API tamis_freshness tamis_follower_freshness(const tamis_follower *follower);

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
    uint64_t lease;          /* nanoseconds it holds, counted from then; 0: for ever */
    tamis_targets targets;   /* of the origin, */
    tamis_estimate estimate; /* and how wrong copies of `newest` were at the last message */
    uint64_t items, bits;    /* of the copy */
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
                                          const tamis_digest *digests, size_t n);
/* The set of each of n owners is what its filter has now, of any family, at the filter's rate; the
   filter is not needed afterwards. Dozens at a time are sliced much faster than one by one. */
TAMIS_API tamis_error tamis_directory_put_filters(tamis_directory *directory,
                                                  const char *const *owners,
                                                  const tamis_filter *const *filters, size_t n);
/* An origin whose messages are to come: in doubt until then. Sets *number, unless NULL. */
TAMIS_API tamis_error tamis_directory_expect(tamis_directory *directory, const char *owner,
                                             uint32_t *number);
/* A message of this owner, expected or not, or with NULL of whoever it says; otherwise as
   tamis_follower_take. EFAMILY if it is another's, EKIND if the owner's set was put. */
TAMIS_API tamis_error tamis_directory_take(tamis_directory *directory, const char *owner,
                                           const void *message, size_t len, uint64_t age,
                                           tamis_taken *taken, tamis_reason *reason);
/* The same for what tamis_follower_save wrote; see tamis_follower_load. */
TAMIS_API tamis_error tamis_directory_load(tamis_directory *directory, const char *owner,
                                           const char *path, uint64_t age, tamis_reason *reason);
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

/* ---- Numbers --------------------------------------------------------------------------------- */

/*
 * The formulas behind every filter: sizes, rates, capacities, thresholds, as published and corrected.
 * The library and `tamis plan` ask here and nowhere else. All are pure and never allocate; an
 * argument outside a formula's domain gives NaN (or 0 for whole numbers). Rates are probabilities,
 * sizes are bits unless a unit is named. "exp form" is (1-e^{-kn/m})^k; "exact" is the occupancy law
 * of k n independent throws into m cells. `layout` is a tamis_layout: a unit of TAMIS_SPREAD is one
 * bit, of TAMIS_BLOCKED a block of 512; 0 means blocked. DBF, SFBF, PBF name the papers on dynamic,
 * flexible and parallel filters.
 */

/* ---- one vector: what the library sizes itself with ---- */

typedef struct tamis_plan_size {
    uint64_t units; /* bits (spread) or blocks (blocked) */
    uint64_t bits;  /* 0: cannot be had */
    unsigned k;
    double rate; /* after n keys; NaN if it cannot be had */
} tamis_plan_size;

/* Smallest vector, its units a multiple of 8 (of 64 from 64,000 on, so that it can be folded), whose
 * rate after n distinct keys is at most p; k in 1..64 for the fewest bits, the smallest k among those
 * within 0.5 % (1 % for blocked vectors of more than 8 probes). bits is 0 if p is not in (0,1) or the
 * vector would pass 2^40 bits; n = 0 is planned as 1. */
TAMIS_API tamis_plan_size tamis_plan_vector(int layout, uint64_t n, double p);

/* As filters are filled: adds that set no bit do not count, so that more keys than n come until n of
 * them did. Smallest vector whose rate is at most p then; and the adds that set a bit until the rate of a
 * vector is p. At one half that is 39 % more bits, at a tenth 3 %: up to there it is as tamis_plan_vector,
 * and a filter that takes keys past its capacity until so many set a bit is over its rate by 6 % of it at
 * most (at 1 % by 0.8 %). */
TAMIS_API tamis_plan_size tamis_plan_filled(int layout, uint64_t n, double p);
TAMIS_API uint64_t tamis_plan_takes(int layout, uint64_t units, unsigned k, double p);

/* The same as tamis_plan_vector with k given. */
TAMIS_API tamis_plan_size tamis_plan_vector_of(int layout, uint64_t n, double p, unsigned k);

/* False positive rate of a vector after n distinct keys. k in 1..64, else NaN. */
TAMIS_API double tamis_plan_rate(int layout, uint64_t units, unsigned k, double n);

/* Largest whole n whose rate is at most p; 0 if there is none. */
TAMIS_API uint64_t tamis_plan_capacity(int layout, uint64_t units, unsigned k, double p);

/* How many distinct keys give this many ones, -(m/k) ln(1-ones/m) with the exact chance that one
 * key leaves a bit alone in place of e^{-k/m}. A full vector only says "at least": it is read as
 * half a bit short of full. */
TAMIS_API double tamis_plan_items(int layout, uint64_t units, unsigned k, uint64_t ones);

/* Rate of a vector in which the share `fill` of the bits is set: fill^k (spread), or the rate at
 * the number of keys that gives this fill (blocked). */
TAMIS_API double tamis_plan_fill_rate(int layout, uint64_t units, unsigned k, double fill);

/* ---- one vector: the published forms, spread layout ---- */

TAMIS_API double tamis_plan_rate_exp(double m, double k, double n);      /* (1-e^{-kn/m})^k */
TAMIS_API double tamis_plan_rate_discrete(double m, double k, double n); /* (1-(1-1/m)^{kn})^k */
/* Exact occupancy, k in 1..64, in some 50 steps for any m (past 2^24 bits by the expansion, which is right
 * to ten digits there); and what tamis_plan_rate uses: exact under 2^16 bits, then
 * the exp form with its first correction in 1/m. */
TAMIS_API double tamis_plan_rate_exact(uint64_t m, unsigned k, double n);
TAMIS_API double tamis_plan_rate_spread(uint64_t m, unsigned k, double n);
/* The blocked layout's own forms, behind tamis_plan_rate and tamis_plan_items. */
TAMIS_API double tamis_plan_rate_blocked(uint64_t units, unsigned k, double n);
TAMIS_API double tamis_plan_items_blocked(uint64_t units, unsigned k, double ones);
TAMIS_API double tamis_plan_capacity_real(double m, double k,
                                          double p); /* SFBF (2): -(m/k)ln(1-p^{1/k}) */
TAMIS_API uint64_t tamis_plan_capacity_whole(double m, double k, double p); /* its floor */
TAMIS_API double tamis_plan_capacity_best(double m,
                                          double p);       /* DBF sec. 4, k = (m/n)ln2, unrounded */
TAMIS_API double tamis_plan_bits_best(double n, double p); /* n ln p / ln .6185, unrounded */
/* Smallest m, to the bit, with exp form <= p for some integer k. */
TAMIS_API tamis_plan_size tamis_plan_bits_whole(uint64_t n, double p);

/* DBF Thm 3: chance that BF(A) AND BF(B) = BF(A and B). a = #(A-B), b = #(B-A), c = #(A and B).
 * The published value is a lower bound. The exact one takes k*a, k*b <= 2^16, m <= 2^20 and at
 * most some thousand bits in common; NaN beyond. */
TAMIS_API double tamis_plan_and_bound(double m, double k, double a, double b);
TAMIS_API double tamis_plan_and_exact(uint64_t m, unsigned k, uint64_t a, uint64_t b, uint64_t c);

/* ---- dynamic (DBF): rows of m bits, k probes, c items each; exp form throughout ---- */

TAMIS_API uint64_t tamis_plan_dynamic_rows(uint64_t c, uint64_t n); /* s = ceil(n/c) */
TAMIS_API double tamis_plan_dynamic_rate(double m, double k, uint64_t c, uint64_t n); /* (3) */
/* (4): both sets' rows side by side, unmerged */
TAMIS_API double tamis_plan_dynamic_union(double m, double k, uint64_t c, uint64_t na, uint64_t nb);
/* (6): rate of the OR of two single filters minus that of the two-row union; 0 for k = 1 */
TAMIS_API double tamis_plan_dynamic_union_gain(double m, double k, double na, double nb);
TAMIS_API double tamis_plan_dynamic_f1(double m, double k, uint64_t c,
                                       uint64_t n); /* (9), 0 for one row */
TAMIS_API double tamis_plan_dynamic_f2(double m, double k, uint64_t c, uint64_t n); /* (10) */
/* Items that match several rows: expected number c(s-1)f1 + n_l f2, and the bound n f2. */
TAMIS_API double tamis_plan_dynamic_multi(double m, double k, uint64_t c, uint64_t n);
TAMIS_API double tamis_plan_dynamic_multi_bound(double m, double k, uint64_t c, uint64_t n);
/* Items that already tested positive when they were inserted: sum of (3) over 0..n-1. */
TAMIS_API double tamis_plan_dynamic_present(double m, double k, uint64_t c, uint64_t n);
TAMIS_API double tamis_plan_dynamic_insert_ratio(double f,
                                                 double s); /* sec. 3.5.1: s(1-(1-f)^{s-1}) */
TAMIS_API double tamis_plan_dynamic_bound(double m, double k, uint64_t c, uint64_t n); /* (12) */
/* (13): bits of one filter of equal rate over those of the s rows, with the rows' k, and with the
 * k that suits the one filter. */
TAMIS_API double tamis_plan_dynamic_size_ratio(double m, double k, double c, double s);
TAMIS_API double tamis_plan_dynamic_size_ratio_best(double m, double k, double c, double s);
TAMIS_API double tamis_plan_dynamic_one_rate(double m, double k, uint64_t c, uint64_t n); /* (14) */

/* Sec. 4.2. Probabilities of the set sizes 1..N, filled into p[0..N-1], summing to 1. Return 0, or
 * -1 on bad arguments. zipf: the commonest size is the smallest (min), the largest (max), or the
 * ranks are shuffled by `seed` (random). */
TAMIS_API int tamis_plan_sizes_uniform(double *p, size_t N);
TAMIS_API int tamis_plan_sizes_normal(double *p, size_t N, double mean, double sd);
TAMIS_API int tamis_plan_sizes_zipf_min(double *p, size_t N, double theta);
TAMIS_API int tamis_plan_sizes_zipf_max(double *p, size_t N, double theta);
TAMIS_API int tamis_plan_sizes_zipf_random(double *p, size_t N, double theta, uint64_t seed);
/* Turns weights (any non-negative histogram) into cumulative probabilities, in place. */
TAMIS_API int tamis_plan_sizes_cumulate(double *p, size_t N);

typedef struct tamis_plan_rows {
    uint64_t s;       /* number of vectors with the fewest expected bits; 0: bad arguments */
    uint64_t c;       /* capacity of each, ceil(N/s) */
    double delta;     /* rate allowed to each, 1-(1-alpha)^{1/s} */
    uint64_t m;       /* bits of each by the formula, ceil(c ln delta / ln .6185) */
    uint64_t m_whole; /* bits of each that really keep delta with an integer k... */
    unsigned k;       /* ...which is this one */
    double used;      /* expected number of vectors in use, sum of r_i */
    double bits;      /* expected bits, m * used */
    double one;       /* bits of one filter for N */
    double ratio;     /* bits / one */
} tamis_plan_rows;

/* Best s in 1..min(N, 1000) for the *cumulative* distribution cum[0..N-1]. */
TAMIS_API tamis_plan_rows tamis_plan_dynamic_best(const double *cum, size_t N, double alpha);
/* The same figures for a given s. */
TAMIS_API tamis_plan_rows tamis_plan_dynamic_at(const double *cum, size_t N, double alpha,
                                                uint64_t s);

typedef struct tamis_plan_limits {
    double one;         /* items one filter takes from rate beta to rate gamma, real */
    uint64_t one_whole; /* floor */
    double rows;        /* full rows a dynamic filter takes, floor(ln(1-gamma)/ln(1-beta)) */
    double partial;     /* items of the partial row that follows, real */
    double dynamic;     /* n0 rows + partial */
    uint64_t dynamic_whole;
} tamis_plan_limits;

/* Sec. 4.3: how far filters sized for n0 items at rate beta go before the rate passes gamma. */
TAMIS_API tamis_plan_limits tamis_plan_dynamic_limits(double k, double n0, double beta,
                                                      double gamma);

/* ---- growing stacks: scalable and flexible ---- */

/* Slots for the small vectors of the start, before those for large ones. */
#define TAMIS_PLAN_SMALL 4

/* Share of the total rate p that vector `slot` of a growing stack gets. The sum over all slots is at
 * most p. */
TAMIS_API double tamis_plan_share(unsigned slot, double p);

/* The first slot for a vector of this capacity, given that of the first: 0 or TAMIS_PLAN_SMALL. */
TAMIS_API unsigned tamis_plan_slot(uint64_t first, uint64_t capacity);

/* The vector for n keys with this share of the total rate p. Blocked vectors of one stack have the
 * same k, that of a large vector, because then a lookup makes the bits of a key once; only shares below
 * p/1000, and vectors that would pass 2^40 bits with it, have the best of their own. */
TAMIS_API tamis_plan_size tamis_plan_in_stack(int layout, uint64_t n, double share, double p);

/* No vector of a growing stack is smaller than this part of all before it, whatever the expansion or
 * the forecast says: n keys are in some 16 + 11 log2(n / (16 first)) vectors at most, so that adding
 * them costs n log n and not n^2. */
#define TAMIS_PLAN_PARTS 16

/* Capacity of the next vector, given those of the first and the largest so far and their total.
 * expansion 0: x6 up to 216 times the first, then to a total of 1,600 times the first, then the total
 * doubles; >= 1: ceil(largest * expansion), or ceil(total / TAMIS_PLAN_PARTS) if that is more; anything else
 * counts as 1. At most 2^40. */
TAMIS_API uint64_t tamis_plan_next_capacity(uint64_t first, uint64_t largest, uint64_t total,
                                            double expansion);

typedef struct tamis_plan_layer {
    uint64_t capacity, load, bits;
    unsigned k;
    double share; /* rate it is sized for */
    double rate;  /* rate at its load */
} tamis_plan_layer;

typedef struct tamis_plan_stack {
    size_t layers; /* 0: bad arguments, or more layers than room */
    double bits, items;
    double rate;     /* of the whole stack */
    double per_item; /* bits / items */
} tamis_plan_stack;

/* Our stack for n keys: capacity of the first vector, expansion as above, total rate p. Writes
 * the layers to out[0..room-1]. */
TAMIS_API tamis_plan_stack tamis_plan_grow(int layout, uint64_t first, double expansion, double p,
                                           uint64_t n, tamis_plan_layer *out, size_t room);

/* The course report's stack: layer i has 2^i m bits, the same k and the same p. `round` says what
 * a layer holds of N_i = -(2^i m/k) ln(1-p^{1/k}): +1 ceil (its code), -1 floor (keeps p). */
TAMIS_API double tamis_plan_report_capacity(double m, double k, double p, unsigned i);
TAMIS_API tamis_plan_stack tamis_plan_report(double m, unsigned k, double p, uint64_t n, int round,
                                             tamis_plan_layer *out, size_t room);
/* Its closed forms, with real capacities: expansions i = ceil(log2(n/n0+1))-1. */
TAMIS_API double tamis_plan_report_expansions(double m, double k, double p, double n);

typedef struct tamis_plan_flex {
    size_t vectors;              /* 0: bad arguments */
    double bits;                 /* (5), the baseline included */
    double rate;                 /* (3),(4): product over the vectors */
    double load;                 /* "load factor": bits per item */
    double load_min, load_max;   /* (6) */
    double load_tight;           /* m0/n0 + m_i/n, the tighter upper bound */
    double last_bits, last_load; /* the active vector */
} tamis_plan_flex;

/* SFBF of n items: vectors of 2^(lambda-1) m0 bits and 2^(lambda-1) n0 items. lambda[0] is the
 * baseline; past the end the last lambda repeats. */
TAMIS_API tamis_plan_flex tamis_plan_flexible(double m0, uint64_t n0, double k, uint64_t n,
                                              const unsigned *lambda, size_t n_lambda);
/* clamp(ceil(log2(predicted/base))+1, 1, max) */
TAMIS_API unsigned tamis_plan_lambda(double predicted, double base, unsigned max);

/* Holt's linear forecaster on the logarithm of an arrival rate. Start with all zero. */
typedef struct tamis_plan_holt {
    double level, trend;
    uint32_t n;
} tamis_plan_holt;

TAMIS_API void tamis_plan_holt_add(tamis_plan_holt *h,
                                   double rate);                 /* ignores rates not in (0, inf) */
TAMIS_API double tamis_plan_holt_next(const tamis_plan_holt *h); /* NaN before the first rate */

/* ---- index (PBF): p attributes, q arrays of m cells each, n records ---- */

typedef struct tamis_plan_verify {      /* chance that a value not stored meets a stored one */
    double basic, basic_mean;           /* Thm 5.3: bound, mean over random records */
    double attenuated, attenuated_mean; /* Thm 5.4 */
    double mixed;                       /* ours: 64 mixed bits */
} tamis_plan_verify;

typedef struct tamis_plan_index_rates { /* for one class of queries */
    double pbf;                         /* Thm 5.2 */
    double ht_basic, ht_basic_mean;     /* Thm 5.5 */
    double ht_attenuated, ht_attenuated_mean;
    double ht_mixed;
    double bf, bf_mean, bf_mixed; /* Thm 5.6, values attenuated (bound, mean) or mixed */
} tamis_plan_index_rates;

typedef struct tamis_plan_index {
    double attribute; /* rate of one attribute for a value not stored, Thm 5.1 */
    double stored;    /* rho: chance that a value drawn from the range is stored */
    tamis_plan_verify verify;
    tamis_plan_index_rates fresh;      /* no value of the query is stored */
    tamis_plan_index_rates in_range;   /* values drawn from the same range as the records */
    tamis_plan_index_rates recombined; /* every value stored, never in one record */
} tamis_plan_index;

TAMIS_API tamis_plan_verify tamis_plan_verify_rates(unsigned p, unsigned q, double m, double n);
/* range: number of possible values of an attribute, 0 if unbounded (then rho = 0, and the n
 * values of an attribute are all distinct). */
TAMIS_API tamis_plan_index tamis_plan_index_of(unsigned p, unsigned q, double m, double n,
                                               double range);

/* ---- replicas: the origin has n items; since the copy was made, the share delta1 of its bits
 * became one and delta0 zero ---- */

typedef struct tamis_plan_replica {
    double items;         /* (6): items in the copy */
    double own;           /* P1(n)^k, the origin's own rate */
    double disagree;      /* (10): B says yes and the copy no, for a random object */
    double positive;      /* (12): false positives of the copy */
    double overall;       /* (13) */
    double host_positive; /* (14), (15), (16): a host that holds `hosts`-1 such copies */
    double host_disagree;
    double host;
    double host_exclusive; /* (16) with the two events of one copy exclusive, as they are */
    double weighted;       /* (17) */
    double added;          /* members added since the copy was made, from delta1 */
    double member_miss;    /* share of true members that the copy denies */
} tamis_plan_replica;

/* NaN in every field if the shares cannot be: delta1 <= P1(n), delta0 <= P0(n), give or take the
 * six deviations by which a real vector may differ. */
TAMIS_API tamis_plan_replica tamis_plan_replica_of(double m, double k, double n, double delta1,
                                                   double delta0, double hosts, double w_pos,
                                                   double w_neg);
/* One vector of an origin and of its copy: ones in the one, in the other, and in both. A vector that
 * the copy does not have yet has 0 and 0 of the latter, one that the origin has no more 0 and 0 of
 * the origin's. Blocks are taken to be filled as their ones tell. */
typedef struct tamis_plan_copy {
    int layout;
    uint64_t units;
    unsigned k;
    uint64_t ones, copy_ones, both;
} tamis_plan_copy;

/* The same for a stack of vectors, from what was counted: the origin says "maybe" if any of its
 * vectors does. items, added and member_miss are NaN. */
TAMIS_API tamis_plan_replica tamis_plan_replica_stack(const tamis_plan_copy *vectors, size_t n,
                                                      double hosts, double w_pos, double w_neg);
/* (a/n)(1-rate), with the number of members added known exactly */
TAMIS_API double tamis_plan_member_miss(double added, double n, double copy_rate);

/* Entropy of a change, in bits: `changed` of m bits (spread); or `changed` bits over `touched` of
 * `blocks` blocks of 512 bits. */
TAMIS_API double tamis_plan_entropy(double m, double changed);
TAMIS_API double tamis_plan_entropy_blocks(double blocks, double touched, double changed);

#ifdef __cplusplus
}
#endif
#endif
