/* What the files of the parser share: the selection as compiled, the parser's state. */
#ifndef TAMIS_READER_PARSE_H
#define TAMIS_READER_PARSE_H

#include "base/base.h"
#include "reader.h"

#define NO_NODE     UINT32_MAX
#define NO_SLOT     UINT32_MAX
#define PATH_PARTS  9    /* most parts of a path: it is cut at its dots in 2^8 ways */
#define JSON_LEVELS 1024 /* deepest nesting */

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

    /* CSV, TSV: slot[c] for columns c up to the last wanted one; copy[i] = attribute whose column
       attribute i shares, else i. */
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

    uint8_t *scratch; /* values without their escapes */
    size_t scratch_len, scratch_room;
    uint8_t *tail; /* a last line without its end, with one */
    size_t tail_room;

    const uint8_t *record; /* the one last returned */
    const uint8_t *counted;
    uint64_t lines; /* before `counted` */

    struct json_level level[JSON_LEVELS + 1];
};

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
