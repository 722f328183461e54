/*
 * Types of values. One row per type gives the normal form of a value, the keys of a value, the keys
 * that a query needs, and the order of values, if any. Records, catalogs, the command line and the
 * module know types only through this table.
 */
#ifndef TAMIS_TYPES_H
#define TAMIS_TYPES_H

#include "base/base.h"
#include "tamis/records.h"

#define VALUE_LEN_MAX 4096 /* longer values have no normal form */
#define NORMAL_ROOM   (VALUE_LEN_MAX + 32)
#define WORD_LEN_MAX  255 /* only this many bytes of a token form its key */

/* The remaining input, and the output, which always has enough room. */
struct text {
    const char *at, *end;
};

struct out {
    char *start, *at;
};

/* What is known of a value that is its own normal form. Kept from value to value; zeros at first. */
struct plain {
    tamis_order order;
    uint64_t minute[2]; /* of a time: the text of its date, hour and minute, and their order */
    int64_t start;
};

struct type {
    const char *name;
    bool trims;  /* surrounding spaces and a pair of double quotes are ignored */
    bool splits; /* only its parts are keys, unless it has none */
    bool nests;  /* its parts come from the longest on, and a value with one has those after it */
    /* Is the value its own normal form, as almost always? False: it may be. Sets the order, if the type
       has one. */
    bool (*plain)(const char *value, size_t len, struct plain *plain);
    bool (*normal)(struct text text, struct out *out);
    unsigned (*parts)(tamis_key value, tamis_give give, void *context); /* returns their number */
    tamis_op serves; /* the operator that the parts support, and the keys it needs */
    tamis_need (*ask)(tamis_key asked, tamis_give give, void *context);
    tamis_order (*order)(const char *normal, size_t len);
    int (*compare)(const char *x, size_t x_len, const char *y, size_t y_len); /* normal forms */
};

extern const struct type types[TAMIS_TYPES];

/* Writes at least `width` digits. */
ALWAYS_INLINE void put_number(struct out *o, uint64_t value, unsigned base, unsigned width)
{
    char digits[20];
    unsigned n = 0;
    for (; value || n < width; value /= base)
        digits[n++] = "0123456789abcdef"[value % base];
    while (n)
        *o->at++ = digits[--n];
}

/* ---- value_normal.c, value_ip.c ---- */
bool normal_int(struct text text, struct out *out);
bool normal_dec(struct text text, struct out *out);
bool normal_time(struct text text, struct out *out);
bool normal_fold(struct text text, struct out *out);
bool normal_ip(struct text text, struct out *out);
/* Strips surrounding spaces and one pair of double quotes. */
void trim_quoted(struct text *text);
/* The normal form of a value, written to `normal`, or the value itself if it has none. */
tamis_key value_normal(tamis_type type, tamis_key value, char normal[NORMAL_ROOM]);

bool plain_ip(const char *value, size_t len, struct plain *plain);
unsigned ip_parts(tamis_key value, tamis_give give, void *context);
tamis_need ip_ask(tamis_key asked, tamis_give give, void *context);
bool ip_match(tamis_key value, tamis_key network);

/* ---- value_order.c ---- */
bool plain_int(const char *value, size_t len, struct plain *plain);
bool plain_time(const char *value, size_t len, struct plain *plain);
tamis_order order_int(const char *normal, size_t len);
tamis_order order_dec(const char *normal, size_t len);
tamis_order order_time(const char *normal, size_t len);
int compare_int(const char *x, size_t x_len, const char *y, size_t y_len);
int compare_dec(const char *x, size_t x_len, const char *y, size_t y_len);
int compare_time(const char *x, size_t x_len, const char *y, size_t y_len);

/* ---- words.c ---- */
unsigned words_parts(tamis_key value, tamis_give give, void *context);
/* The keys that every text with the phrase has. */
tamis_need words_ask(tamis_key phrase, tamis_give give, void *context);
bool words_any(tamis_key text); /* does it contain a token? */
bool words_match(tamis_key value, tamis_key phrase);

ALWAYS_INLINE char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

#endif
