/* What the files of the parser share: the compiled selection, and the parser's state. */
#ifndef TAMIS_READER_PARSE_H
#define TAMIS_READER_PARSE_H

#include "base/base.h"
#include "reader.h"
#include "reader_header.h"

#define NO_NODE     UINT32_MAX
#define NO_SLOT     UINT32_MAX
#define PATH_PARTS  9    /* most parts of a path: it is split at its dots in up to 2^8 ways */
#define JSON_LEVELS 1024 /* deepest nesting */
#define TIME_KEPT   64

/* A key of a selected path. The nodes below it are those up to `end`. */
struct path_node {
    const char *name;
    size_t len;
    uint64_t lens;     /* lengths of the children's names: bit min(len, 63) */
    uint32_t position; /* the name as a position in an array, or NO_NODE */
    uint32_t slot;     /* of its value, or NO_SLOT */
    uint32_t parent, child, end;
    bool keys, positions; /* is some child a key, or a position? */
};

/* A text with a meaning: "-", "(empty)". */
struct mark {
    uint8_t len;
    char text[31];
};

/* The # lines of a log; see reader_columns.c. */
struct log_columns {
    uint8_t separator, set_separator;
    struct mark unset, empty;
    const uint8_t *names, *names_end, *types, *types_end; /* in the header; or NULL */
    size_t n;                                             /* columns of a record */
    bool *listed;          /* by column: it is a list; NULL: none is */
    uint32_t date, clock;  /* W3C: columns, or NO_SLOT */
    struct read_value day; /* W3C: the last #Date:, the date of records that have times only */
};

/*
 * Values go to slots. Slot i < n is attribute i; paths with dots have more, one for each way to split
 * them, in order of precedence.
 */
struct selection {
    struct dialect dialect;
    size_t n, n_slots;
    char *names;           /* copies, zero-terminated, consecutive */
    const uint8_t *header; /* owned by the caller */
    size_t header_len;

    uint32_t line, whole; /* the attributes that are the whole record: if there is no such field;
                             always */
    uint32_t time;        /* the attribute with the time */
    bool completes;       /* one of these exists */

    /* Columns of tables, fields of logs: slot[c] for columns c up to the last selected one; copy[i] =
       attribute whose column attribute i shares, or i. */
    uint32_t *slot;
    size_t n_columns;
    size_t n_headed; /* tables: columns of the header; 0: there is none */
    uint32_t *copy;
    bool copies;
    uint32_t fields; /* logs: the columns that are selected, as bits */
    bool *absent;
    struct log_columns columns;
    void *pattern; /* compiled; slot[g] is that of group g */

    /* JSONL: node 0 is the record. next[s]: the slot to use if slot s is missing. */
    struct path_node *node;
    uint32_t n_nodes, room;
    uint32_t *place; /* nodes by parent and name: a table with open addressing */
    uint32_t places; /* its size: a power of two, at least twice the number of nodes */
    uint32_t *next;
    bool choices;
};

struct json_level {
    const uint8_t *start;
    struct read_value *last; /* of a list: its last element, or NULL */
    uint32_t node;
    uint32_t list;     /* of an array: slot of its elements, or NO_SLOT */
    uint32_t before;   /* of an object: where the parser stores the follower of the last key */
    uint32_t position; /* in an array */
    uint8_t close;     /* the bracket that ends it */
    bool many;         /* in an element of an array, whose parts are lists */
    bool nulls;        /* of a list: null was an element */
    bool through;      /* such an element: `node` is that of the array */
};

struct parser {
    const struct selection *selection; /* for the header in force */
    bool turns;                        /* there are headers in the text */
    bool turned;            /* one was found that is not a record, or changes something */
    struct header head;     /* the header in force, if the text has any but the first */
    struct selection *own;  /* created for it */
    const uint8_t *unended; /* a header line without its line end, or NULL */
    uint64_t headers;       /* tables: rows that were headers, not records */
    const uint8_t *data, *at, *end;
    enum parsed (*next)(struct parser *parser, struct record *record);

    struct read_value *value; /* by slot */
    size_t n_values;
    struct read_value **tail; /* by slot: the last of a list from elements of an array */
    size_t n_tails;
    uint32_t *seen; /* by node: the turn in which its key was last met */
    size_t n_seen;
    uint32_t turn;
    /* JSON: the keys met last: at 2 * node the first one in the node, at 2 * node + 1 the one after
       it; NO_NODE: none */
    uint32_t *follower;
    size_t n_followers;

    bool (*fit)(struct parser *parser, const uint8_t *line, const uint8_t *end);
    const uint8_t *damage; /* JSON: everything before this is lines that do not fit */
    bool hashes;           /* lines that start with # are not records */
    bool full;             /* out of memory */

    /* Unescaped values and elements of lists: in chunks, which never move. */
    struct chunk *chunk, *chunks; /* in use; all */
    uint8_t *scratch;             /* of the one in use */
    size_t scratch_len, scratch_room;

    struct matcher *matcher; /* for the pattern */
    struct time_context clock;
    const uint8_t *text;         /* start of the text of which `data` is a piece */
    bool asked;                  /* the state before `data` is known: */
    bool lined;                  /* each line of the text is a record */
    bool timed;                  /* the previous record has a time: */
    size_t time_len;             /* as written, unless this is 0 */
    uint8_t time[TIME_KEPT];     /* longer ones are not times */
    struct stamp before;         /* otherwise this */
    char shown[TIME_NORMAL_MAX]; /* time of a record that does not fit */
    uint8_t joined[TIME_KEPT];   /* W3C: date and time */

    const uint8_t *record; /* the last one returned */
    const uint8_t *counted;
    uint64_t lines; /* before `counted` */

    struct json_level level[JSON_LEVELS + 1];
};

/* A parser and the selection that it reads with; {0} at first. */
struct parsing {
    struct selection *selection;
    struct parser *parser;
};
/* Begins to read a text; makes the parser and the selection if they do not exist yet. */
tamis_error parsing_begin(struct parsing *parsing, const struct dialect *dialect,
                          const char *const *names, size_t n, const uint8_t *header,
                          size_t header_len, const void *data, size_t len, tamis_reason *reason);
void parsing_end(struct parsing *parsing);

/* reader_select.c: the child of a node by its name, or NO_NODE. */
uint32_t selection_child(const struct selection *selection, uint32_t parent, const void *name,
                         size_t len);

/* Copies values to attributes that share their column with another. */
void parser_share(struct parser *parser);

/* Makes all values missing, and the scratch empty. */
void parser_clear(struct parser *parser);
/* Makes room for `len` more bytes at ps->scratch + ps->scratch_len. */
bool parser_room(struct parser *parser, size_t len);
/* Appends an element of a list after `last`; NULL: no memory, which is recorded. */
struct read_value *parser_element(struct parser *parser, struct read_value *last);

ALWAYS_INLINE void value_set(struct read_value *value, const uint8_t *data, size_t len)
{
    *value = (struct read_value){data, len, len ? VALUE_PRESENT : VALUE_EMPTY, NULL};
}

/* The function of a format, with vectors or without. */
typedef enum parsed (*parser_fn)(struct parser *parser, struct record *record);
parser_fn csv_parser(const struct dialect *dialect, bool vector);
parser_fn json_parser(bool vector);
/* Formats of lines: the next line that is not empty, parsed with ps->fit. */
enum parsed line_next(struct parser *parser, struct record *record);

/* A log format: is a line, without its end, a record of it? Then its values are set. */
typedef bool fit_fn(struct parser *parser, const uint8_t *line, const uint8_t *end);
extern fit_fn access_fit, combined_sniff, syslog_fit, syslog_sniff, logfmt_fit, logfmt_sniff,
    zeek_fit, w3c_fit, pattern_fit, text_fit;

/* A format, as in reader_formats.c. */
struct format {
    const char *name;
    fit_fn *fit;      /* of formats of lines */
    fit_fn *sniff;    /* is a line typical of it? NULL: not detected this way */
    const char *time; /* the field with the time; NULL: only the user knows */
    const struct read_field *field;
    size_t n_fields;
};
const struct format *format_of(enum read_format format);

/* reader_array.c: records that are not lines. */
enum parsed array_next(struct parser *parser, struct record *record);
/* Where they start in a text with the parser's dialect; SIZE_MAX: more text is needed. */
size_t array_start(struct parser *parser, const uint8_t *data, size_t len, bool final);

/* reader_parse.c: the next row that is not a header. */
enum parsed parser_row(struct parser *parser, struct record *record);
/* Is a line of a text with headers a header? Then it is in force. */
bool parser_turn(struct parser *parser, const uint8_t *line, size_t len);

/* ---- reader_clock.c ---- */
/* Fills in what all formats have: the line, and the time of records that do not fit. */
void parser_complete(struct parser *parser, struct record *record);

ALWAYS_INLINE bool selection_by_path(const struct selection *s)
{
    return s->dialect.format == READ_JSONL || s->dialect.format == READ_JSON;
}

/* reader_csv.c: copies the field of a header at `*at` without its quotes to `out`, which has room for
   the whole header; returns its length. *at is then after the delimiter, or NULL after the last. */
size_t csv_header_field(const struct dialect *dialect, const uint8_t **at, const uint8_t *end,
                        uint8_t *out);

/* The number of fields of a row. */
size_t csv_fields(const struct dialect *dialect, const uint8_t *row, size_t len);

/* reader_columns.c: parses a header; and iterates over its names or types, from *at on. */
void columns_read(struct log_columns *columns, enum read_format format, const uint8_t *header,
                  size_t len);
bool columns_next(const struct log_columns *columns, const uint8_t **at, const uint8_t *end,
                  const uint8_t **text, size_t *len);

/* reader_pattern.c: compiles the pattern of a selection. EARG: it is not valid. */
tamis_error pattern_compile(struct selection *selection, tamis_reason *reason);
bool pattern_begin(struct parser *parser); /* false: no memory */

/* reader_logfmt.c: the key at p; returns the position after its value, NULL if there is none. */
const uint8_t *logfmt_key(const uint8_t *p, const uint8_t *end, const uint8_t **key, size_t *len);

/* What is wrong with JSON: where parsing stopped, and why; NULL: there was no memory. */
struct fault {
    const uint8_t *at;
    const char *why;
};

/* reader_json.c: free JSON. The value at p, with its parts if they are selected; returns the position
   after it, NULL for a fault. */
const uint8_t *json_value(struct parser *parser, const uint8_t *p, const uint8_t *end, bool wanted,
                          struct fault *fault);
/* The key at p, unchanged, and the position after its colon. */
const uint8_t *json_key(const uint8_t *p, const uint8_t *end, const uint8_t **key, size_t *len,
                        struct fault *fault);
const uint8_t *json_blanks(const uint8_t *p, const uint8_t *end);
/* Before a record, and after it. */
void json_turn(struct parser *parser);
void json_choose(struct parser *parser);

/* reader_string.c: JSON strings. `p` is after the opening quote, and the string contains a backslash
   or ends after its line. Returns the closing quote, or NULL with *bad = where it is not JSON. */
const uint8_t *json_string_end(const uint8_t *p, const uint8_t *end, const uint8_t **bad);
/* Unescapes the string up to its closing quote; returns its length, which never grows. Invalid
   escapes are kept: json_string_end() accepts none. */
/* Encodes a character as UTF-8 and returns its length. Also for halves of surrogate pairs. */
size_t utf8_put(uint32_t c, uint8_t *out);
size_t json_unescape(const uint8_t *p, const uint8_t *quote, uint8_t *out);

#endif
