/*
 * Where records end. A text that starts with a record is cut after a line end; in CSV a line end
 * inside quotes does not count, and the parser (reader_csv.c) must agree with the result.
 */
#ifndef TAMIS_READER_CUT_H
#define TAMIS_READER_CUT_H

#include "base/base.h"
#include "reader.h"

/* A search through a text that grows. Initialise with {.dialect = …}. */
struct cut {
    const struct dialect *dialect;
    size_t at;     /* everything before it is known */
    size_t record; /* start of the record that contains `at` */
    size_t quote;  /* inside quotes: where they open */
    bool quoted;
    size_t lined;          /* inside quotes: there is no line end before this position */
    size_t last;           /* the last record end found, 0 if none */
    struct parser *walker; /* JSON: with the dialect */
    bool lines;            /* each line is known to be a record, whatever is quoted */
    /* A quoted field contains line ends or continues after its quote, or a quote is stray. */
    bool folded;
    bool open; /* the text ended inside quotes: more text may change their record */
};

/* Does a byte after a quote end the field? */
ALWAYS_INLINE bool quote_ends(uint8_t next, uint8_t delimiter)
{
    return next == delimiter || next == '\n' || next == '\r';
}

/*
 * Continues to the first record end at or after `target` and returns it; 0: not found yet. `final`:
 * the text ends here, which is a record end.
 */
size_t cut_search(struct cut *cut, const uint8_t *data, size_t len, size_t target, bool final);

/* reader_array.c: the same for JSON whose records are not lines. */
size_t array_cut(struct cut *cut, const uint8_t *data, size_t len, size_t target, bool final);

uint64_t count_lines(const uint8_t *data, size_t len);

#endif
