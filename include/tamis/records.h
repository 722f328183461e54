/*
 * tamis: records with several attributes, queried by whole record or by any of the attributes. Read
 * tamis.h first.
 */
#ifndef TAMIS_RECORDS_PUBLIC_H
#define TAMIS_RECORDS_PUBLIC_H

#include "../tamis.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A set of records with 1 to 64 named attributes, queried by whole record or by any of the
 * attributes: "could there be a record with ip=10.1.2.3 and user=ann?" That both values occur does
 * not mean that they occur together; this takes a verifier, and there is one for the whole record
 * and one for each declared combination of attributes. The stated rate is the total for single
 * attributes, for declared combinations and for whole records, even if all values are stored. Other
 * subsets are answered as well as possible, and the answer says that it is not verified.
 *
 * Growth, removal, threads and failure are as for filters. Records grow by layers; each layer has
 * all attributes and verifiers, and a record is in one layer.
 */
typedef struct tamis_records tamis_records;

#define TAMIS_ATTRIBUTES_MAX 64
#define TAMIS_COMBOS_MAX     63

/* The normal form in which a value is compared and hashed; see tamis_value_normal. */
typedef enum tamis_type {
    TAMIS_BYTES = 0, /* text */
    TAMIS_INT = 1,
    TAMIS_DEC = 2,
    TAMIS_TIME = 3,
    TAMIS_IP = 4,
    TAMIS_PATH = 5,
    TAMIS_WORDS = 6,
    TAMIS_FOLD = 7
} tamis_type;
#define TAMIS_TYPES 8

typedef struct tamis_attribute {
    const char *name; /* 1 to 255 bytes */
    tamis_type type;
    uint64_t distinct; /* distinct values expected, including the missing one; 0: as many as
                          records. With more, the set grows earlier, and a fixed one is full */
    bool bounds_only;  /* catalogs; int, dec, time: keep lowest and highest per segment, no keys */
} tamis_attribute;

typedef enum tamis_verifier {
    TAMIS_VERIFIER_DEFAULT = 0, /* filter */
    TAMIS_VERIFIER_NONE = 1,    /* PBF: any combination of stored values answers "maybe" */
    TAMIS_VERIFIER_TABLE = 2,   /* PBF-HT: exact values, 21 to 43 bytes per record and verifier */
    TAMIS_VERIFIER_FILTER = 3   /* PBF-BF: one more vector per verifier */
} tamis_verifier;

/* What a verifier keeps of a record. The published sums collide: tamis_plan_records_of
   computes how often, and the stated rate does not cover it. */
typedef enum tamis_verify {
    TAMIS_VERIFY_DEFAULT = 0,   /* mixed */
    TAMIS_VERIFY_MIXED = 1,     /* 64 bits mixed from the digests of the attributes */
    TAMIS_VERIFY_BASIC = 2,     /* sum of all addresses */
    TAMIS_VERIFY_ATTENUATED = 3 /* sum in which the j-th address weighs 2^-j */
} tamis_verify;

/* Zero selects the default. */
typedef struct tamis_records_options {
    const tamis_attribute *attributes;
    size_t n_attributes;
    const uint64_t *combos; /* sets of attributes to verify, bit i for attribute i. Default: */
    size_t n_combos;        /* all pairs if there are up to three attributes, */
    bool no_combos;         /* or only the whole record, with this set */
    tamis_verifier verifier;
    tamis_verify value;
    tamis_options set; /* as for filters, with records for keys and layers for vectors (dynamic:
                          not sliced); no window, unique, shared_adds, add_always, tolerate,
                          bits, hashes */
} tamis_records_options;

TAMIS_API tamis_error tamis_records_new(tamis_records **out, const tamis_records_options *options,
                                        tamis_reason *reason);
TAMIS_API void tamis_records_free(tamis_records *set);
TAMIS_API tamis_error tamis_records_clone(tamis_records **out, const tamis_records *set);
TAMIS_API tamis_error tamis_records_clear(tamis_records *set);
/* Both need the same attributes, combinations, verifier, growth and family; otherwise as for
   filters. */
TAMIS_API tamis_error tamis_records_merge(tamis_records *set, const tamis_records *other,
                                          unsigned flags, tamis_reason *reason);
TAMIS_API bool tamis_records_equal(const tamis_records *a, const tamis_records *b);
TAMIS_API bool tamis_records_key(const tamis_records *set, uint8_t key[TAMIS_KEY_LEN]);

/* Finds the number of the attribute with this name; if there is none, the reason lists the
   existing ones. */
TAMIS_API tamis_error tamis_records_attribute(const tamis_records *set, const char *name,
                                              uint32_t *number, tamis_reason *reason);

/*
 * A record is one value per attribute, in order. A value without data is missing, which is a value
 * of its own: missing, empty and the text "null" are three different values. In a query, `mask`
 * selects the attributes that count (bit i for attribute i; 0: all); the values of the others are
 * ignored.
 */
typedef struct tamis_answer {
    bool maybe;    /* false: certainly no such record */
    bool verified; /* just these attributes are covered: by one attribute, a declared combination
                      or the whole record; otherwise the values may come from several records */
} tamis_answer;

TAMIS_API tamis_error tamis_records_add(tamis_records *set, const tamis_key *record, bool *fresh);
TAMIS_API tamis_answer tamis_records_has(const tamis_records *set, const tamis_key *record,
                                         uint64_t mask);
TAMIS_API tamis_error tamis_records_remove(tamis_records *set, const tamis_key *record,
                                           tamis_removed *outcome);

/* Batches. A record is one digest per attribute; `records` holds n records, one after the other.
   Equal values of two attributes have different digests. */
TAMIS_API tamis_digest tamis_records_digest(const tamis_records *set, uint32_t attribute,
                                            tamis_key value);
TAMIS_API void tamis_records_digest_many(const tamis_records *set, const tamis_key *records,
                                         size_t n, tamis_digest *out);
TAMIS_API tamis_error tamis_records_add_many(tamis_records *set, const tamis_digest *records,
                                             size_t n, uint8_t *fresh, size_t *done);
TAMIS_API void tamis_records_has_many(const tamis_records *set, uint64_t mask,
                                      const tamis_digest *records, size_t n, uint8_t *found);
TAMIS_API tamis_error tamis_records_remove_many(tamis_records *set, const tamis_digest *records,
                                                size_t n, uint8_t *outcomes, size_t *done);
/* True if there is a verifier for exactly these attributes, or if there is only one of them. */
TAMIS_API bool tamis_records_verifies(const tamis_records *set, uint64_t mask);

/* Several values for an attribute mean any of them: the answer is "maybe" if some choice of one
   value per attribute matches. A layer tries at most 65,536 partial choices and 4,096 values;
   past that it answers from its attributes only, not verified. EARG if an attribute occurs twice
   or does not exist. */
typedef struct tamis_choice {
    uint32_t attribute;
    const tamis_digest *values;
    size_t n;
} tamis_choice;

TAMIS_API tamis_error tamis_records_ask(const tamis_records *set, const tamis_choice *choices,
                                        size_t n, tamis_answer *answer, tamis_reason *reason);

typedef struct tamis_records_facts {
    uint32_t attributes, combos; /* not counting the whole record */
    tamis_verifier verifier;
    tamis_verify value;
    uint32_t layers;
    double fpp_attribute; /* now, for values not stored: highest of the single attributes, */
    double fpp_fresh;     /* and for whole records of such values */
    double fpp_record;    /* for whole records whose values are all stored, but not together */
    tamis_filter_facts
        set; /* as for filters: items and capacity count records, vectors those of all parts;
                distinct, fpp_now and fill are 0 */
} tamis_records_facts;

TAMIS_API void tamis_records_info(const tamis_records *set, tamis_records_facts *facts);
/* Omits the present rates, which have to read every bit. */
TAMIS_API void tamis_records_brief(const tamis_records *set, tamis_records_facts *facts);
TAMIS_API tamis_error tamis_records_limit(tamis_records *set,
                                          uint64_t memory_limit); /* as for filters */

typedef struct tamis_attribute_facts {
    const char *name; /* valid as long as the records */
    tamis_type type;
    uint64_t bits;
    double distinct; /* estimated from the fill, summed over layers: a value in two layers counts
                     twice */
    double fpp;      /* now, for a value not stored */
} tamis_attribute_facts;

/* The name of attribute i, valid as long as the records; NULL if there is no such attribute. */
TAMIS_API const char *tamis_records_name(const tamis_records *set, uint32_t i);
/* Attribute i; false if there is no such attribute. */
TAMIS_API bool tamis_records_attribute_info(const tamis_records *set, uint32_t i,
                                            tamis_attribute_facts *facts);
/* The present rate of queries with this mask for values that are not stored (fresh), or that are
   all stored but not together; 1 if nothing verifies the latter. */
TAMIS_API double tamis_records_rate(const tamis_records *set, uint64_t mask, bool fresh);
/* Combination i, as a mask; 0 if there is no such combination. */
TAMIS_API uint64_t tamis_records_combo(const tamis_records *set, uint32_t i);

/*
 * The normal form of a value, which makes different spellings of one value equal. Returns its length,
 * or 0 if the bytes are not a value of the type (or do not fit into `room`; len + 32 bytes are always
 * enough). Such bytes are used as they are. Surrounding spaces and one pair of double quotes are
 * ignored. Values over 4,096 bytes are always used as they are.
 *
 *   int    sign and digits: 7, 07, +7 -> 7; -0 -> 0
 *   dec    with point and exponent, exact: 1.50, 1.5, 15e-1 -> 15e-1; 100 -> 1e2
 *   time   2024-01-31T23:59:59.50+01:00, 20240131T225959.5Z, 2024-01-31 22:59:59,5,
 *          1706741999.5 (seconds since 1970) -> 2024-01-31T22:59:59.5Z. Without an offset it is
 *          UTC; a date means its first moment; second 60 is the next minute; years 0000 to 9999
 *   ip     10.1.2.3; IPv6 as in RFC 5952; ::ffff:10.1.2.3 -> 10.1.2.3
 *   fold   ASCII letters in lower case; spaces and quotes are kept
 */
TAMIS_API size_t tamis_value_normal(tamis_type type, const void *value, size_t len, void *out,
                                    size_t room);

/* "text", "int", "dec", "time", "ip", "path", "words", "fold"; NULL for no type. */
TAMIS_API const char *tamis_type_name(tamis_type type);
TAMIS_API bool tamis_type_named(const char *name, tamis_type *type);

/*
 * Values of int, dec and time have an order. A tamis_order is floor(value) and the fraction times
 * 2^64, limited to the lowest or highest order if the value exceeds 64 bits. A lower value never
 * has a higher order, but two close values may have the same. Times count in seconds since 1970.
 */
typedef struct tamis_order {
    int64_t whole;
    uint64_t part;
} tamis_order;

TAMIS_API bool tamis_type_ordered(tamis_type type);
TAMIS_API int tamis_order_compare(tamis_order x, tamis_order y);
/* False if the bytes are not a value of the type. */
TAMIS_API bool tamis_value_order(tamis_type type, tamis_key value, tamis_order *order);
/* Negative, 0 or positive, exactly, if both are values of the type. */
TAMIS_API int tamis_value_compare(tamis_type type, tamis_key x, tamis_key y, bool *comparable);

/*
 * The keys of a value in a catalog: the whole value in its normal form, and parts of it.
 *
 *   ip      its networks: /8, /16 and /24 for IPv4, /32, /48 and /64 for IPv6
 *   path    every prefix that ends at a slash
 *   words   every token and every compound of tokens instead of the whole, if there are any. A token is
 *           a maximal run of letters, digits, _ and bytes from 0x80 on, with ASCII letters in lower
 *           case; tokens joined by one and the same of . : - / @ form a compound. Only the first 255
 *           bytes of a longer one count
 *
 * The same bytes as a whole value and as a part are two different keys.
 */
typedef void (*tamis_give)(void *context, tamis_key key, bool part);
TAMIS_API void tamis_type_keys(tamis_type type, tamis_key value, tamis_give give, void *context);

typedef enum tamis_op {
    TAMIS_EQUAL = 0,   /* same normal form; without data: missing */
    TAMIS_NETWORK = 1, /* ip only: ADDRESS/BITS */
    TAMIS_PREFIX = 2,  /* begins with the text */
    TAMIS_PHRASE = 3   /* contains the tokens of the text in sequence, compounds whole */
} tamis_op;

typedef enum tamis_need {
    TAMIS_NEED_NONE = 0, /* the type has no keys for this: any value may match */
    TAMIS_NEED_ANY = 1,  /* a matching value has at least one of the keys */
    TAMIS_NEED_ALL = 2,  /* a matching value has all of the keys */
    TAMIS_NEED_WRONG = 3 /* not a valid query: not a network, or no token */
} tamis_need;

/* The keys that a query needs, and whether a value matches the query. */
TAMIS_API tamis_need tamis_type_ask(tamis_type type, tamis_op op, tamis_key asked, tamis_give give,
                                    void *context);
TAMIS_API bool tamis_type_match(tamis_type type, tamis_op op, tamis_key value, tamis_key asked);

/* As for filters; verifiers that are tables are queried in the mapped file. */
TAMIS_API uint64_t tamis_records_encoded_size(const tamis_records *set, unsigned save_flags);
TAMIS_API tamis_error tamis_records_encode(const tamis_records *set, unsigned save_flags,
                                           tamis_write write, void *context);
TAMIS_API tamis_error tamis_records_decode(tamis_records **out, const void *data, size_t len,
                                           const tamis_open_options *options, tamis_reason *reason);
TAMIS_API tamis_error tamis_records_save(const tamis_records *set, const char *path,
                                         unsigned save_flags, tamis_reason *reason);
TAMIS_API tamis_error tamis_records_open(tamis_records **out, const char *path,
                                         const tamis_open_options *options, tamis_reason *reason);
TAMIS_API tamis_error tamis_records_load(tamis_records **out, const char *path,
                                         const tamis_open_options *options, tamis_reason *reason);

#ifdef __cplusplus
}
#endif
#endif
