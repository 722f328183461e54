/* Gathers the records of a text for a catalog. */
#ifndef TAMIS_INDEX_TEXT_H
#define TAMIS_INDEX_TEXT_H

#include "logs/inputs.h"
#include "tamis/catalog.h"

struct text_tally {
    struct counts count; /* damaged ones are gathered too */
    uint64_t headers;    /* rows that were treated as headers, not records */
    uint64_t present;    /* bit i: some record has attribute i */
    uint64_t bad_line;   /* lines of the text before the first bad record */
    const char *complaint;
    /* Where reading continues if the file grows: before a last record without a line end, and in
       CSV before a bad one, whose quote may yet be closed. Otherwise the end of the text. */
    size_t resume;
    uint64_t resume_line;        /* lines of the text before it */
    struct counts open;          /* after that position */
    struct input_segment before; /* what a segment there needs; the caller frees it */
};

/* Turns values into keys; one per thread. */
struct text_keys {
    size_t n;       /* number of attributes */
    uint64_t times; /* bit i: attribute i is a time */
    struct time_context clock;
    tamis_key *key;                /* of a record */
    char (*time)[TIME_NORMAL_MAX]; /* storage of the keys of times */
    size_t room;
};

bool text_keys_start(struct text_keys *keys, const tamis_schema *schema, const char *zone);
void text_keys_free(struct text_keys *keys);
tamis_error text_gather(struct text_keys *keys, struct parser *parser,
                        const struct selection *selection, const struct input_text *text,
                        tamis_gather *gather, struct text_tally *tally);

#endif
