/* What the files of the input share. */
#ifndef TAMIS_READER_INPUT_H
#define TAMIS_READER_INPUT_H

#include <pthread.h>

#include "reader_parse.h"
#include "reader_source.h"

#define SEGMENT_DEFAULT ((size_t)8 << 20)

/* Text taken from the source that will be returned again: [at, len). */
struct pushback {
    uint8_t *data;
    size_t at, len, room;
};

struct input_private {
    char *path;
    int fd;
    uint64_t id; /* unique in the process */
    size_t segment;
    pthread_mutex_t lock; /* for all fields below */
    struct source *source;
    struct pushback back;
    struct restart restart;    /* of the next segment */
    struct input_segment next; /* where it begins, its line, and what its times need */
    uint8_t *header;
    struct header head;    /* of the next segment */
    bool turned;           /* it is not the input's first header */
    bool walking;          /* walking through a segment of an earlier run, see input_walk(): */
    bool unlined;          /* line numbers are not needed */
    bool calm;             /* what is read contains no headers */
    bool lined;            /* as in the segment */
    char *records, *times; /* owned strings of the dialect */
    struct parsing turner; /* finds headers */
    struct parsing walker; /* JSON whose records are not lines: finds their ends */
    struct parsing clock;  /* finds the time of the last record; no parser: records have none */
};

/* reader_clock.c: which of several attributes has the time, by the start of the text; NULL: none of them. */
tamis_error input_time_name(struct input *input, const uint8_t *text, size_t len,
                            tamis_reason *reason);
/* Creates the clock, if the format or the dialect defines the time. */
tamis_error input_clock(struct input *input, tamis_reason *reason);
/* The time of the last record in the first `len` bytes of a text. With the lock. */
bool input_time_of(struct input *input, const struct input_text *text, size_t len,
                   struct stamp *time);

/* For the text after the last segment: does it contain headers, and which one is in force after it? With the lock. */
tamis_error input_turn(struct input *input, struct input_text *text);

/* reader_segment.c: goes to a segment of an earlier run. */
tamis_error input_go(struct input *input, const struct input_segment *to, struct raw_sums *sums,
                     tamis_reason *reason);
/* A source of the input's file that starts at `from`, or at its start. */
tamis_error input_source(const struct input *input, const struct restart *from, struct source **out,
                         tamis_reason *reason);
/* Takes up to `room` bytes of text, first from the pushback. */
size_t input_take(struct input_private *own, uint8_t *out, size_t room);
/* Puts the last `len` bytes taken, which are `data`, back. */
bool input_give_back(struct input_private *own, const uint8_t *data, size_t len);
/* Drops `skip` bytes of text; false: it ends before. */
bool source_drop(struct source *source, uint64_t skip);

#endif
