/*
 * Where records end. A text that starts with a record is cut behind a line end; in CSV a line end
 * inside quotes does not count, and the parser (reader_csv.c) must agree with what is found here.
 */
#ifndef TAMIS_READER_CUT_H
#define TAMIS_READER_CUT_H

#include "base/base.h"
#include "reader.h"

/* A search through a text that grows. Start with {.dialect = …}. */
struct cut {
    const struct dialect *dialect;
    size_t at;     /* everything before is known */
    size_t record; /* start of the record that `at` is in */
    size_t quote;  /* inside quotes: where they open */
    bool quoted;
    size_t lined;          /* inside quotes: there is no line end in them before this */
    size_t last;           /* the last record end found, 0 if none */
    struct parser *walker; /* JSON: with the dialect */
    bool open; /* the text ended inside quotes: more of it may make another record of theirs */
};

/* Whether a byte behind a quote ends the field. */
ALWAYS_INLINE bool quote_ends(uint8_t next, uint8_t delimiter)
{
    return next == delimiter || next == '\n' || next == '\r';
}

/*
 * Goes on to the first record end at or after `target`, and returns it; 0: there is none yet.
 * `final`: the text ends here, so that its end is one.
 */
size_t cut_search(struct cut *cut, const uint8_t *data, size_t len, size_t target, bool final);

/* reader_array.c: the same for JSON whose records are no lines. */
size_t array_cut(struct cut *cut, const uint8_t *data, size_t len, size_t target, bool final);

uint64_t count_lines(const uint8_t *data, size_t len);

#endif
