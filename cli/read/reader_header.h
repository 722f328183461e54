/* Headers in the middle of a text; see reader_header.c. */
#ifndef TAMIS_READER_HEADER_H
#define TAMIS_READER_HEADER_H

#include "reader.h"

struct cells {
    struct text_cell {
        const uint8_t *text;
        size_t len;
    } * cell;
    size_t n;
    uint8_t *memory;
};

/* The header that is in force, and what tells lines that cannot be one. Start with {0}. */
struct header {
    uint8_t *data;
    size_t len;
    struct cells names;   /* tables: of its columns, */
    bool comes_again;     /* there are some, so that a row may be one: */
    size_t longest;       /* of those without a quote, */
    uint64_t second[256]; /* by their first byte: bits of the second ones, modulo 64 */
};

/* What a line is: no header; one that changes nothing; one that does. */
enum turn { TURN_NONE, TURN_SAME, TURN_OTHER, TURN_FULL };

bool header_set(struct header *header, const struct dialect *dialect, const uint8_t *data,
                size_t len); /* false: no memory */
void header_free(struct header *header);
/* A line or row of a text, without its end. TURN_OTHER: the header is now what it says. */
enum turn header_take(struct header *header, const struct dialect *dialect, const uint8_t *line,
                      size_t len);
/* Whether a text may have a line of that kind. */
bool header_sees(const struct header *header, const struct dialect *dialect, const uint8_t *text,
                 size_t len);

#endif
