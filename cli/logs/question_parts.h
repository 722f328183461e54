/* What the files of questions share. */
#ifndef TAMIS_QUESTION_PARTS_H
#define TAMIS_QUESTION_PARTS_H

#include "base/base.h"
#include "question.h"

enum op {
    OP_EQUAL,
    OP_NOT,
    OP_PREFIX,
    OP_BELOW,
    OP_UP_TO,
    OP_ABOVE,
    OP_FROM,
    OP_HAS,
    OP_MISSING,
    OP_FOREIGN
};

/* A word split in two. */
struct word {
    const char *whole, *text; /* text: after the operator */
    const struct field *field;
    enum op op;
};

/* Fills `why` of the question; returns false. */
bool wrong(struct question *q, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool question_no_memory(struct question *q);
const struct field *field_named(const struct fields *fields, const char *name, size_t len);
/* The same for a question, which may always name the line. It lives as long as the fields. */
const struct field *field_asked(const struct fields *fields, const char *name, size_t len);
/* A field that no sample had, as text; it lives as long as the question. NULL: no memory. */
const struct field *unseen_field(struct question *q, const char *name, size_t len);
/* Its type, for a message that refuses what the type does not have. */
const char *field_type_told(const struct field *field);
bool unknown_field(struct question *q, const char *name, size_t len, const char *word,
                   const struct fields *fields);

/* question_set.c: parse what follows a= or a!=, a^=, and a< and its like, into the clause. */
bool question_set(struct question *q, struct clause *c, const struct word *w);
bool question_prefix(struct question *q, struct clause *c, const struct word *w);
bool question_compare(struct question *q, struct clause *c, const struct word *w);
bool question_like_network(const char *text);

/* question_time.c: a moment as people write it: 2024-05-31, also with an hour or a minute, means all of it,
   from *from up to *to; 2h means that long ago; anything else is a single moment, written as in a record. */
bool moment_of(struct time_context *time, const char *text, size_t len, struct stamp *from,
               struct stamp *to, bool *exact);
/* 20240501, 202405 or 20240501100000, which is no moment: it would be one of 1970 or 2611. */
bool compact_date(const char *text, size_t len);

/* question_check.c */
/* Sorts values, networks and ranges, so that they can be searched. */
void clause_sort(struct clause *clause, tamis_type type);
/* Does it end before it begins? */
bool range_is_empty(const struct range *range, tamis_type type);

/* An address as 16 bytes, IPv4 as ::ffff:10.1.2.3: returns its version, 4 or 6; 0: it is none. */
unsigned address_of(const void *text, size_t len, uint8_t out[16]);

/* Clears the bits of an address after the network. */
ALWAYS_INLINE void network_mask(uint8_t address[16], unsigned bits)
{
    for (unsigned i = bits / 8; i < 16; i++)
        address[i] &= i == bits / 8 ? (uint8_t)(0xff00 >> bits % 8) : 0;
}

#endif
