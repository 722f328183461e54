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

/* The header in force, and data to exclude lines that cannot be headers. Initialise with {0}. */
struct header {
    uint8_t *data;
    size_t len;
    struct cells names;   /* tables: names of the columns */
    bool comes_again;     /* a row may repeat the header; then: */
    size_t longest;       /* the longest name without quotes */
    uint64_t second[256]; /* by first byte of names: a mask of their second bytes, modulo 64 */
};

/* What a line is: not a header; one that changes nothing; one that changes the header. */
enum turn { TURN_NONE, TURN_SAME, TURN_OTHER, TURN_FULL };

bool header_set(struct header *header, const struct dialect *dialect, const uint8_t *data,
                size_t len); /* false: no memory */
void header_free(struct header *header);
/* A line or row of a text, without its end. TURN_OTHER: it is now the header in force. */
enum turn header_take(struct header *header, const struct dialect *dialect, const uint8_t *line,
                      size_t len);
/* May a text contain a header? */
bool header_sees(const struct header *header, const struct dialect *dialect, const uint8_t *text,
                 size_t len);

#endif
