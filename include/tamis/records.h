/*
 * tamis: records with several attributes, to be asked about whole records or any of the attributes. After
 * tamis.h.
 */
#ifndef TAMIS_RECORDS_PUBLIC_H
#define TAMIS_RECORDS_PUBLIC_H

#include "../tamis.h"

#ifdef __cplusplus
extern "C" {
#endif

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
typedef struct tamis_records tamis_records;

#define TAMIS_ATTRIBUTES_MAX 64
#define TAMIS_COMBOS_MAX     63

/* How a value is written before it is compared or hashed; see tamis_value_normal. */
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
    uint64_t distinct; /* values expected, the missing one counted; 0: as many as records. Where
                          there are more, the index grows sooner; a fixed one is full */
    bool bounds_only;  /* catalogs, int, dec and time: lowest and highest of a segment, no keys */
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
typedef struct tamis_records_options {
    const tamis_attribute *attributes;
    size_t n_attributes;
    const uint64_t *combos; /* sets of attributes to verify, bit i for attribute i. If none is */
    size_t n_combos;        /* given: all pairs when there are up to three attributes, */
    bool no_combos;         /* or with this nothing but whole records */
    tamis_verifier verifier;
    tamis_verify value;
    tamis_options set; /* as for filters, with records for keys and layers for vectors (dynamic: not
                          sliced); no window, unique, shared_adds, add_always, tolerate, bits, hashes */
} tamis_records_options;

TAMIS_API tamis_error tamis_records_new(tamis_records **out, const tamis_records_options *options,
                                        tamis_reason *reason);
TAMIS_API void tamis_records_free(tamis_records *index);
TAMIS_API tamis_error tamis_records_clone(tamis_records **out, const tamis_records *index);
TAMIS_API tamis_error tamis_records_clear(tamis_records *index);
/* The same attributes, combinations, verifier, growth and family; otherwise as filters. */
TAMIS_API tamis_error tamis_records_merge(tamis_records *index, const tamis_records *other,
                                          unsigned flags, tamis_reason *reason);
TAMIS_API bool tamis_records_equal(const tamis_records *a, const tamis_records *b);
TAMIS_API bool tamis_records_key(const tamis_records *index, uint8_t key[TAMIS_KEY_LEN]);

/* The number of the attribute of this name; if there is none, the reason lists those there are. */
TAMIS_API tamis_error tamis_records_attribute(const tamis_records *index, const char *name,
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

TAMIS_API tamis_error tamis_records_add(tamis_records *index, const tamis_key *record, bool *fresh);
TAMIS_API tamis_answer tamis_records_has(const tamis_records *index, const tamis_key *record,
                                         uint64_t mask);
TAMIS_API tamis_error tamis_records_remove(tamis_records *index, const tamis_key *record,
                                           tamis_removed *outcome);

/* Many at a time. A record is as many digests as there are attributes; `records` are n of them, one
   after the other. Digests of one attribute are not those of another. */
TAMIS_API tamis_digest tamis_records_digest(const tamis_records *index, uint32_t attribute,
                                            tamis_key value);
TAMIS_API void tamis_records_digest_many(const tamis_records *index, const tamis_key *records,
                                         size_t n, tamis_digest *out);
TAMIS_API tamis_error tamis_records_add_many(tamis_records *index, const tamis_digest *records,
                                             size_t n, uint8_t *fresh, size_t *done);
TAMIS_API void tamis_records_has_many(const tamis_records *index, uint64_t mask,
                                      const tamis_digest *records, size_t n, uint8_t *found);
TAMIS_API tamis_error tamis_records_remove_many(tamis_records *index, const tamis_digest *records,
                                                size_t n, uint8_t *outcomes, size_t *done);
/* Is there a verifier for just these attributes, or only one of them? */
TAMIS_API bool tamis_records_verifies(const tamis_records *index, uint64_t mask);

/* Several values for an attribute mean any of them: "maybe" if some choice of one each matches. A
   layer is asked for at most 65,536 partial choices and 4,096 values; past that it answers by its
   attributes alone, not verified. EARG if an attribute comes twice or is not there. */
typedef struct tamis_choice {
    uint32_t attribute;
    const tamis_digest *values;
    size_t n;
} tamis_choice;

TAMIS_API tamis_error tamis_records_ask(const tamis_records *index, const tamis_choice *choices,
                                        size_t n, tamis_answer *answer, tamis_reason *reason);

typedef struct tamis_records_facts {
    uint32_t attributes, combos; /* the whole record not counted */
    tamis_verifier verifier;
    tamis_verify value;
    uint32_t layers;
    double fpp_attribute; /* now, for values not stored: the highest of the single attributes, */
    double fpp_fresh;     /* and whole records of such values */
    double fpp_record;    /* whole records of values that are all stored, but not together */
    tamis_filter_facts
        set; /* as of filters: items and capacity are records, vectors those of all parts;
                               distinct, fpp_now and fill are 0 */
} tamis_records_facts;

TAMIS_API void tamis_records_info(const tamis_records *index, tamis_records_facts *info);
/* The same without the rates now, which read every bit. */
TAMIS_API void tamis_records_brief(const tamis_records *index, tamis_records_facts *info);
TAMIS_API tamis_error tamis_records_limit(tamis_records *index,
                                          uint64_t memory_limit); /* see filters */

typedef struct tamis_attribute_facts {
    const char *name; /* as long as the index lives */
    tamis_type type;
    uint64_t bits;
    double
        distinct; /* values as the fill tells, added over layers: one in two layers counts twice */
    double fpp;   /* now, for a value not stored */
} tamis_attribute_facts;

/* The name of attribute i, as long as the index lives; NULL if there is none. */
TAMIS_API const char *tamis_records_name(const tamis_records *index, uint32_t i);
/* Attribute i; false if there is none. */
TAMIS_API bool tamis_records_attribute_info(const tamis_records *index, uint32_t i,
                                            tamis_attribute_facts *info);
/* The rate now of questions with this mask about values that are not stored (fresh) or all stored,
   but not together. 1 where nothing verifies the latter. */
TAMIS_API double tamis_records_rate(const tamis_records *index, uint64_t mask, bool fresh);
/* Combination i, as a mask; 0 if there is none. */
TAMIS_API uint64_t tamis_records_combo(const tamis_records *index, uint32_t i);

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
 *   ip     10.1.2.3; version 6 as RFC 5952 has it; ::ffff:10.1.2.3 -> 10.1.2.3
 *   fold   capital letters of ASCII as small ones; spaces and quotes do count
 */
TAMIS_API size_t tamis_value_normal(tamis_type type, const void *value, size_t len, void *out,
                                    size_t room);

/* "text", "int", "dec", "time", "ip", "path", "words", "fold"; NULL for no type. */
TAMIS_API const char *tamis_type_name(tamis_type type);
TAMIS_API bool tamis_type_named(const char *name, tamis_type *type);

/*
 * Values of int, dec and time have an order. As a tamis_order it is floor(value) and its fraction times
 * 2^64, past 64 bits the lowest or highest there is: of two values the lower one never has the higher
 * order, but two that differ little may have the same. Times count in seconds since 1970.
 */
typedef struct tamis_order {
    int64_t whole;
    uint64_t part;
} tamis_order;

TAMIS_API bool tamis_type_ordered(tamis_type type);
TAMIS_API int tamis_order_compare(tamis_order x, tamis_order y);
/* False for a value that is none of its type. */
TAMIS_API bool tamis_value_order(tamis_type type, tamis_key value, tamis_order *order);
/* Below 0, 0 or above, exactly, if both are values of the type. */
TAMIS_API int tamis_value_compare(tamis_type type, tamis_key x, tamis_key y, bool *comparable);

/*
 * The keys that a value gives to a catalog: the whole of it in its normal form, and parts of it.
 *
 *   ip      its networks: /8, /16 and /24 of version 4, /32, /48 and /64 of version 6
 *   path    every prefix that ends at a slash
 *   words   every token, and every compound of tokens; these alone, if there are any. A token is a run
 *           of letters, digits, _ and bytes from 0x80 on, as long as can be, with capitals of ASCII as
 *           small letters; tokens with one and the same of . : - / @ between them are a compound. Of more
 *           than 255 bytes the first 255 count
 *
 * Equal bytes as a whole value and as a part are two keys.
 */
typedef void (*tamis_give)(void *context, tamis_key key, bool part);
TAMIS_API void tamis_type_keys(tamis_type type, tamis_key value, tamis_give give, void *context);

typedef enum tamis_op {
    TAMIS_EQUAL = 0,   /* the same normal form; without data: missing */
    TAMIS_NETWORK = 1, /* ip only: ADDRESS/BITS */
    TAMIS_PREFIX = 2,  /* begins with the text */
    TAMIS_PHRASE = 3   /* has the tokens of the text, one after the other; compounds whole */
} tamis_op;

typedef enum tamis_need {
    TAMIS_NEED_NONE = 0, /* the keys of the type do not help: any value may match */
    TAMIS_NEED_ANY = 1,  /* a value that matches gives one of the keys, or more */
    TAMIS_NEED_ALL = 2,  /* it gives all of them */
    TAMIS_NEED_WRONG = 3 /* no such question: not a network, or no token */
} tamis_need;

/* The keys that a question needs, and whether a value matches it. */
TAMIS_API tamis_need tamis_type_ask(tamis_type type, tamis_op op, tamis_key asked, tamis_give give,
                                    void *context);
TAMIS_API bool tamis_type_match(tamis_type type, tamis_op op, tamis_key value, tamis_key asked);

/* As for filters; verifiers that are tables are asked where they lie in the file. */
TAMIS_API uint64_t tamis_records_encoded_size(const tamis_records *index, unsigned save_flags);
TAMIS_API tamis_error tamis_records_encode(const tamis_records *index, unsigned save_flags,
                                           tamis_write write, void *context);
TAMIS_API tamis_error tamis_records_decode(tamis_records **out, const void *data, size_t len,
                                           const tamis_open_options *options, tamis_reason *reason);
TAMIS_API tamis_error tamis_records_save(const tamis_records *index, const char *path,
                                         unsigned save_flags, tamis_reason *reason);
TAMIS_API tamis_error tamis_records_open(tamis_records **out, const char *path,
                                         const tamis_open_options *options, tamis_reason *reason);
TAMIS_API tamis_error tamis_records_load(tamis_records **out, const char *path,
                                         const tamis_open_options *options, tamis_reason *reason);

#ifdef __cplusplus
}
#endif
#endif
