/* The records of a text, gathered for a catalog. */
#ifndef TAMIS_INDEX_TEXT_H
#define TAMIS_INDEX_TEXT_H

#include "read/reader.h"
#include "tamis/catalog.h"

struct text_tally {
    uint64_t records, bad; /* both are gathered, */
    uint64_t unfit;        /* and so are, among the first, lines that their format does not fit */
    uint64_t present;      /* bit i: some record has attribute i */
    uint64_t bad_line;     /* lines of the text before the first bad record, */
    const char *complaint;
    /* Reading goes on here if the file grows: before a last record without line end, and in CSV
       before a bad one, whose quote may yet be closed. Else the end of the text. */
    size_t resume;
    uint64_t resume_line;            /* lines of the text before it */
    uint64_t open_records, open_bad; /* behind it */
    struct input_segment before;     /* the time there; the caller's to find */
};

tamis_error text_gather(struct parser *parser, const struct selection *selection,
                        const struct input_text *text, size_t n_attributes, tamis_gather *gather,
                        struct text_tally *tally);

#endif
