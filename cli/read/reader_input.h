/* What the files of the input share. */
#ifndef TAMIS_READER_INPUT_H
#define TAMIS_READER_INPUT_H

#include <pthread.h>

#include "reader_header.h"
#include "reader_source.h"

#define SEGMENT_DEFAULT ((size_t)8 << 20)

/* Text that was taken from the source and is still to be given out: [at, len). */
struct pushback {
    uint8_t *data;
    size_t at, len, room;
};

struct input_private {
    char *path;
    int fd;
    uint64_t id; /* never the same in a process */
    size_t segment;
    pthread_mutex_t lock; /* for all below */
    struct source *source;
    struct pushback back;
    struct restart restart; /* for the segment to come */
    uint64_t offset, line;  /* likewise */
    bool timed;             /* likewise */
    struct stamp time_before;
    int64_t reference; /* when the file was last written to, in seconds */
    uint8_t *header;
    struct header head; /* for the segment to come; */
    bool turned;        /* it is not the input's */
    bool walking;       /* through a segment known from before, see input_walk(): */
    bool unlined;       /* nobody asks for lines */
    bool calm;          /* there are no headers in what is read */
    struct parser *turner;
    struct selection *turner_selection;
    char *records;         /* what the dialect has */
    struct parser *walker; /* JSON whose records are no lines: finds their ends */
    struct selection *walker_selection;
    struct parser *clock; /* finds the time of the last record; NULL: records have none */
    struct selection *clock_selection;
};

/* reader_clock.c: makes the clock, if the format or the dialect says what the time is. */
tamis_error input_clock(struct input *input, tamis_reason *reason);
/* The time of the last record in the first `len` bytes of a text. With the lock. */
bool input_time_of(struct input *input, const struct input_text *text, size_t len,
                   struct stamp *time);

/* The text is what follows the last segment: whether there are headers in it, and the one that is in
   force behind it. With the lock. */
tamis_error input_turn(struct input *input, struct input_text *text);

/* reader_segment.c: goes to a segment known from before. */
tamis_error input_go(struct input *input, const struct input_segment *to, struct raw_sums *sums,
                     tamis_reason *reason);
/* A source of the input's file that starts at `from`, or at its start. */
tamis_error input_source(const struct input *input, const struct restart *from, struct source **out,
                         tamis_reason *reason);
/* Text up to `room` bytes, from the pushback first. */
size_t input_take(struct input_private *own, uint8_t *out, size_t room);
/* The last `len` bytes taken, again to be taken; `data` are they. */
bool input_give_back(struct input_private *own, const uint8_t *data, size_t len);
/* Text until `skip` bytes are dropped; false: it ends before. */
bool source_drop(struct source *source, uint64_t skip);

#endif
