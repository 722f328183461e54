/* What the files of the parser share: the selection as compiled, the parser's state. */
#ifndef TAMIS_READER_PARSE_H
#define TAMIS_READER_PARSE_H

#include "base/base.h"
#include "reader.h"

#define NO_NODE     UINT32_MAX
#define NO_SLOT     UINT32_MAX
#define PATH_PARTS  9    /* most parts of a path: it is cut at its dots in 2^8 ways */
#define JSON_LEVELS 1024 /* deepest nesting */
#define TIME_KEPT   64

/* A key of a wanted path. The nodes below it are those up to `end`. */
struct path_node {
    const char *name;
    size_t len;
    uint64_t lens;     /* of the children's names: bit min(len, 63) */
    uint32_t position; /* the name as a position in an array, else NO_NODE */
    uint32_t slot;     /* where its value goes, else NO_SLOT */
    uint32_t child, sibling, end;
};

/*
 * Values go to slots. Slot i < n is attribute i; paths with dots have more, one for each way to cut
 * them, in the order in which they count.
 */
struct selection {
    struct dialect dialect;
    size_t n, n_slots;
    char *names; /* copies, zero-terminated, one after the other */

    uint32_t line, whole; /* the attribute that is the whole record if it is missing; always */
    uint32_t time;        /* the attribute that says when */
    bool completes;       /* one of these is there */

    /* Columns of tables, fields of logs: slot[c] for columns c up to the last wanted one;
       copy[i] = attribute whose column attribute i shares, else i. */
    uint32_t *slot;
    size_t n_columns;
    uint32_t *copy;
    bool copies;
    bool *absent;

    /* JSONL: node 0 is the record. next[s]: the slot to look at when slot s is missing. */
    struct path_node *node;
    uint32_t n_nodes, room;
    uint32_t *next;
    bool choices;
};

struct json_level {
    const uint8_t *start;
    uint32_t node;
    uint32_t position; /* in an array */
    uint8_t close;     /* the bracket that ends it */
};

struct parser {
    const struct selection *selection;
    const uint8_t *data, *at, *end;
    enum parsed (*next)(struct parser *parser, struct record *record);

    struct value *value; /* by slot */
    size_t n_values;
    uint32_t *seen; /* by node: the turn in which its key was last met */
    size_t n_seen;
    uint32_t turn;

    bool (*fit)(struct parser *parser, const uint8_t *line, const uint8_t *end);
    bool full; /* there was no memory */

    uint8_t *scratch; /* values without their escapes */
    size_t scratch_len, scratch_room;
    uint8_t *tail; /* a last line without its end, with one */
    size_t tail_room;

    struct time_context clock;
    const uint8_t *text;         /* where the text starts that `data` is a piece of */
    bool asked;                  /* what is before `data` is known: */
    bool timed;                  /* the record before has a time: */
    size_t time_len;             /* as it stands, unless it is 0 */
    uint8_t time[TIME_KEPT];     /* (longer ones are none) */
    struct stamp before;         /* else this */
    char shown[TIME_NORMAL_MAX]; /* the time of an unfit record */

    const uint8_t *record; /* the one last returned */
    const uint8_t *counted;
    uint64_t lines; /* before `counted` */

    struct json_level level[JSON_LEVELS + 1];
};

/* Attributes whose columns others have too get their values. */
void parser_share(struct parser *parser);

/* Room for `len` bytes more at the end of the scratch; values that lie in it move along. */
bool parser_room(struct parser *parser, size_t len);

ALWAYS_INLINE void value_set(struct value *value, const uint8_t *data, size_t len)
{
    value->data = data;
    value->len = len;
    value->state = len ? VALUE_PRESENT : VALUE_EMPTY;
}

/* The function of a format, with vectors or without. */
typedef enum parsed (*parser_fn)(struct parser *parser, struct record *record);
parser_fn csv_parser(const struct dialect *dialect, bool vector);
parser_fn json_parser(bool vector);
/* Formats of lines: the next one that is not empty, with what ps->fit makes of it. */
enum parsed line_next(struct parser *parser, struct record *record);

/* A log format: whether a line, without its end, is a record of it; then its values are set. */
typedef bool (*fit_fn)(struct parser *parser, const uint8_t *line, const uint8_t *end);
bool access_fit(struct parser *parser, const uint8_t *line, const uint8_t *end);
bool combined_sniff(struct parser *parser, const uint8_t *line, const uint8_t *end);
bool text_fit(struct parser *parser, const uint8_t *line, const uint8_t *end);

/* A format, as reader_formats.c has it. */
struct format {
    const char *name;
    fit_fn fit;   /* of formats of lines */
    fit_fn sniff; /* whether a line speaks for it; NULL: it is not found so */
    const struct read_field *field;
    size_t n_fields;
};
const struct format *format_of(enum read_format format);

/* reader_clock.c: the time of the last record in [from, to) becomes that of the parser. */
void parser_look_back(struct parser *parser, const uint8_t *from, const uint8_t *to);
/* Fills in what all formats have: the line, and the time of what does not fit. */
void parser_complete(struct parser *parser, struct record *record);

ALWAYS_INLINE bool selection_by_path(const struct selection *s)
{
    return s->dialect.format == READ_JSONL || s->dialect.format == READ_JSON;
}

/* reader_csv.c: a field of a header at `*at`, copied without its quotes to `out`, which has room
   for the whole header; its length. *at is then behind the delimiter, or NULL after the last. */
size_t csv_header_field(const struct dialect *dialect, const uint8_t **at, const uint8_t *end,
                        uint8_t *out);

/* reader_string.c: JSON strings. `p` is behind the opening quote and the string has a backslash or
   its line end comes first. The closing quote, or NULL with *bad = where it is not JSON. */
const uint8_t *json_string_end(const uint8_t *p, const uint8_t *end, const uint8_t **bad);
/* A string that json_string_end accepted, without its escapes; the length. */
size_t json_unescape(const uint8_t *p, const uint8_t *quote, uint8_t *out);

#endif
