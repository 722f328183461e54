/*
 * The reader of inputs: records of tables, JSON and logs, plain or compressed, for index and find.
 *
 * The workload: gigabytes of records of about 100 bytes, of which a few attributes are wanted;
 * later a handful of places must be read again, at once. So an input is cut into segments of whole
 * records, each of which can be read alone; a parser walks over the bytes of a segment and points
 * at the values where they lie. Nothing is allocated for a record.
 *
 *     input_open           the file, its compression, its format, its header
 *     input_next           the next segment with its text: by any number of threads
 *     input_read           a segment again, later, from what was kept of it
 *     selection_new        the wanted attributes, for a header
 *     parser_begin, _next  the records of a text
 *
 * What is a record, and what is its value, is the same whoever asks for which attributes:
 *
 * CSV    RFC 4180: a field may be quoted, then "" is a quote and delimiters and line ends are text.
 *        As Python's csv reads what the RFC leaves open: a quote inside a field that does not start
 *        with one is text; what follows a closing quote belongs to the value. Lines end with \n or
 *        \r\n; a \r elsewhere is text. Empty lines are no records. A row that is too short lacks
 *        its last attributes (missing); an empty cell is empty. A quote that is not closed makes
 *        its record bad up to the end of the line where it opens; the next line is read as any
 *        other. Not closed is a quote that no other follows within record_max bytes; or, over
 *        line ends, within quoted_max bytes; or, over line ends, one behind which the field would
 *        go on: that opens another field.
 * TSV    fields between tabs, records between line ends, nothing else: no quotes, no escapes. A
 *        quoted file with tabs is CSV with the delimiter tab.
 * Both   the first record is the header unless `headless`. An attribute is the name of a column,
 *        else its number from 1. Of two columns with one name the last counts. A header that comes
 *        again is no record, and says what follows (reader_header.c).
 * JSONL  one object (or array) a line; lines of blanks are no records. An attribute is a key, or a
 *        path of keys and array positions (from 0) with dots: `request.headers.0`. A key of objects in
 *        an array is a list of what they have there: `resources.ARN`. A key that
 *        itself has dots is found too, and comes first: {"a.b": 1} before {"a": {"b": 2}}. Of
 *        two equal keys the last counts, with all below it (in elements of an array both). Strings lose their escapes, and lone
 *        surrogates become the three bytes that UTF-8 would give them; numbers, true, false,
 *        objects and arrays are their text as it stands. null is missing. Every record is checked
 *        against RFC 8259, wanted parts or not, with three liberties: control characters in
 *        strings, NaN and Infinity (Python writes them), and bytes that are not UTF-8.
 * JSON   the same objects wherever they are: in arrays, wrapped, over several lines (reader_array.c).
 *        Elements of an array of values are a list. A path leads into a string that holds JSON.
 * Logs   a line is a record: reader_access.c, _syslog.c, _logfmt.c, _columns.c, _pattern.c, _text.c.
 * All    a byte order mark at the start is skipped. Bytes that are not UTF-8 pass as they are. A line
 *        that its format does not fit is a record of that line alone.
 *
 * Memory: a text holds one segment, up to twice the size asked for where a compressed file has no
 * place to cut, and never less than a record; an input as much again in the worst case, and what
 * the decoder needs (zstd: up to 128 MiB, as the file asks).
 */
#ifndef TAMIS_READER_H
#define TAMIS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "logs/raw_sums.h"
#include "tamis.h"
#include "time_read.h"

/* The order is that of the bytes in a catalog. */
enum read_format {
    READ_AUTO,
    READ_CSV,
    READ_TSV,
    READ_JSONL,
    READ_JSON,
    READ_COMBINED,
    READ_COMMON,
    READ_SYSLOG,
    READ_LOGFMT,
    READ_ZEEK,
    READ_W3C,
    READ_PATTERN,
    READ_TEXT
};
#define READ_FORMATS (READ_TEXT + 1)
/* Their names, in that order, for --format. */
#define READ_FORMAT_NAMES \
    "auto|csv|tsv|jsonl|json|combined|common|syslog|logfmt|zeek|w3c|pattern|text"

#define READ_RECORD_MAX ((size_t)1 << 30)
#define READ_QUOTED_MAX ((size_t)1 << 20)

/* How a text is to be read. All zero: as the input says, records up to 1 GiB. Strings belong to the
   caller, and live as long as what is made with them. */
struct dialect {
    enum read_format format;
    uint8_t delimiter;   /* comma in CSV, tab in TSV; 0: as it looks */
    bool headless;       /* CSV, TSV: the first record is no header */
    bool returns;        /* lines end with \r alone */
    const char *records; /* JSON: where the records are; see reader_array.c. NULL: as it looks */
    const char *pattern; /* PATTERN: a regular expression (PCRE2) with named groups */
    const char *time;    /* the attribute that says when, where the format has none of its own */
    const char *zone;    /* of times that have none, as TZ names it; NULL: UTC */
    size_t record_max;
    size_t quoted_max; /* CSV: bytes in quotes that have line ends among them; 0: 1 MiB */
};

/* A field that the documentation of a format names. */
struct read_field {
    const char *name;
    const char *type; /* as --attrs has it: text, int, ip, time, path, words */
    bool is_time;     /* it says when */
    bool made;        /* it does not stand in the record as it is */
};

/* Those of a format; NULL, with *n = 0, if its files name them or it has none. */
const struct read_field *read_fields(enum read_format format, size_t *n);
bool read_names_fields(enum read_format format); /* its files or records name them */
bool read_timed(enum read_format format);        /* its documentation says which one says when */

/* Attributes that every format has, unless it has fields of these names: the whole record as it is;
   and, of formats whose fields say when, that. READ_WHOLE is the record whatever its fields are. */
#define READ_LINE  "line"
#define READ_TIME  "time"
#define READ_WHOLE "\n"

const char *read_format_name(enum read_format format);
bool read_format_of(const char *name, enum read_format *out);
/* The length of what the name of a file has at its end for its compression; 0: nothing. */
size_t read_packed_suffix(const char *path);
/* Whether the name of a file says its format: how input_open() knows it. */
bool read_format_named(const char *path);

/* ---- records --------------------------------------------------------------------------------- */

enum value_state {
    VALUE_MISSING, /* no such key, null, a row too short */
    VALUE_EMPTY,   /* there, of no bytes */
    VALUE_PRESENT
};

struct value {
    const uint8_t *data;
    size_t len;
    enum value_state state;
    const struct value *next; /* the next element of an array; NULL: none */
};

struct record {
    const uint8_t *data; /* as it was, without its line end */
    size_t len;
    size_t end_len; /* bytes of the line end that follows: 0 (end of the text), 1 or 2 */
    const struct value *values; /* of the attributes, valid until the parser goes on */
    /* A line that its format does not fit, a stack trace say: all values are missing but the line
       itself and the time, which is that of the record before, as time_write() has it. */
    bool unfit;
    const char *complaint; /* of a bad record: why */
    const uint8_t *bad_at; /* of a bad record: where, within it */
};

/* The wanted attributes in the texts of one input. Fixed once made: threads share it. */
struct selection;

/* `dialect` and `header` are those of the input (see struct input) and must stay. EARG: a name that is empty or
   given twice, more than 8 dots, a name without a header. */
tamis_error selection_new(struct selection **out, const struct dialect *dialect,
                          const char *const *names, size_t n, const void *header, size_t header_len,
                          tamis_reason *reason);
void selection_free(struct selection *selection);
/* CSV, TSV: the first attribute from `from` on that the header lacks, so that all records miss it;
   the number of attributes if there is none. */
size_t selection_absent(const struct selection *selection, size_t from);
/* Whether values of an attribute stand in their records as they are, but for quotes and escapes: not
   those that are made, such as a syslog's severity or the time of a record that has none itself. */
bool selection_plain(const struct selection *selection, size_t attribute);

/* PARSED_BAD: an unfit record that is damaged rather than something else, which is worth a word. */
enum parsed { PARSED_END, PARSED_RECORD, PARSED_BAD, PARSED_NOMEM };

/* One for each thread. Its memory grows to the largest record that has an escaped value. */
struct parser;
struct input_text;

struct parser *parser_new(void); /* NULL: no memory */
void parser_free(struct parser *parser);
/* `data` are whole records: the text of a segment. */
tamis_error parser_begin(struct parser *parser, const struct selection *selection, const void *data,
                         size_t len);
/* The text of which `data` is a piece: what is before it says what time it was, and which header is in
   force. (A text that has headers in it is read from its start.) Without this nothing is known before
   `data`. Call it after parser_begin(). */
void parser_context(struct parser *parser, const struct input_text *text);
enum parsed parser_next(struct parser *parser, struct record *record);
/* The lines of the text before the record last returned. Counted when asked. */
uint64_t parser_line(struct parser *parser);
/* The header by which it was read; NULL: none. */
const uint8_t *parser_header(const struct parser *parser, size_t *len);

/* Every field of the records of a text, for choosing among them: names in the order in which they
   first appear (dotted paths in JSON), then for each record the values that are there. False from
   `visit` stops. Errors: memory. */
struct input;
typedef bool (*read_visit)(void *context, uint64_t record, const char *name,
                           const struct value *value);
tamis_error reader_fields(const struct input *input, const struct input_text *text,
                          read_visit visit, void *context, tamis_reason *reason);

/* ---- inputs ---------------------------------------------------------------------------------- */

enum packing {
    PACK_NONE,
    PACK_GZIP,
    PACK_ZSTD,
    PACK_BZIP2,
    PACK_XZ,
    PACK_LZ4,
    PACK_UTF16LE,
    PACK_UTF16BE
};

struct input_options {
    struct dialect dialect;
    size_t segment; /* bytes of text in a segment, about; 8 MiB */
    /* Start with this segment, known from before, instead of the first. */
    const struct input_segment *from;
    bool file;    /* an input that can be read again: a regular file, opened without waiting */
    bool no_link; /* and not by way of a link */
    struct raw_sums
        *sums; /* started by the caller: sums up what is read, from the first segment on */
};

/*
 * A segment: what is needed to read its text again. Reading starts at byte `at` of the file, where
 * a decoder can start (with the help of `restart`), and drops `skip` bytes of text.
 *
 *     plain         at = offset, skip = 0
 *     .zst .bz2     at is the start of a frame. A frame much longer than a segment holds several
 *     .xz .lz4      segments, then skip is large: input_read goes on where it stands if it can
 *     UTF-16        at is the start of a character
 *     .gz           at is the start of a member, or the end of a deflate block; then `restart` has
 *                   the 32 KiB of text before it, compressed: about 10 KiB for each segment
 */
struct input_segment {
    uint64_t offset, len; /* of its records in the text of the input */
    uint64_t line;        /* number of its first line, from 1 */
    uint64_t at, at_len;  /* bytes of the file that reading it touches */
    uint64_t skip;
    uint8_t *restart; /* the caller's, from malloc; to be kept as it is. NULL: none */
    size_t restart_len;
    /* What times in it need: that of the last record before it, if one was readable; and when the
       file was last written to, which says the year of those without one. */
    bool timed;
    struct stamp time_before;
    int64_t reference; /* seconds */
    /* The header that it begins with, if that is not the first one of its file; the caller's, as
       `restart` is. And whether there are headers in it. */
    uint8_t *header;
    size_t header_len;
    bool turns;
};

void input_segment_free(struct input_segment *segment);
/* What a segment that begins behind `len` bytes of a text keeps of those: the time of the last record,
   the header in force. False: no memory. */
bool input_before(struct input *input, const struct input_text *text, size_t len,
                  struct input_segment *segment);

/* The text of a segment and what it needs to be read, of which the header is the segment's. One for each
   thread; start with {0}. It may be used with one input after the other. */
struct input_text {
    const uint8_t *data;
    size_t len;
    uint8_t *memory;
    size_t capacity;
    bool timed; /* as the segment has it */
    struct stamp time_before;
    int64_t reference;
    const uint8_t *header;
    size_t header_len;
    bool turns;
    bool
        lined; /* CSV: as far as is known, each line is a record, and a value that has no quote stands as it is */
    bool passed, timed_behind; /* passed: from input_next(), and what is the time behind it */
    struct stamp time_behind;
    struct source *source; /* an open decoder, at the end of the segment last read */
    uint64_t source_of;    /* the input it belongs to */
};

void input_text_free(struct input_text *text);

struct input {
    const char *path;       /* a copy */
    enum packing kind;      /* by content */
    enum packing wide;      /* what the unpacked text is: UTF-16, or PACK_NONE */
    struct dialect dialect; /* complete: format and delimiter are known */
    const uint8_t *header;  /* of CSV and TSV, without its line end; NULL: none */
    size_t header_len;      /* 0: the file is empty */
    uint64_t size;          /* of the file when it was opened; 0 for a pipe */
    bool regular;           /* a file that can be read again: no pipe */
    struct raw_id id;       /* of a regular file, when it was opened */
    struct input_private *own;
};

/* "-" is standard input. Formats by name: .csv .tsv .tab .jsonl .ndjson .json, under a compression's
   suffix; else by content, see reader_sniff.h. EKIND: it is nothing that is read. */
tamis_error input_open(struct input **out, const char *path, const struct input_options *options,
                       tamis_reason *reason);
void input_close(struct input *input);
/* The sums of its bytes, once it has been read to the end; see raw_sums_end(). */
uint8_t *input_sums(const struct input *input, struct raw_sums *sums);

/*
 * The next segment and its text; *more = false: there is none. Threads may call it together: each
 * gets another segment. Segments end at the first record end after `segment` bytes (compressed:
 * after the first point from there on where a decoder can start). From a pipe: what has come, up to
 * that. The bytes of a regular file beyond the size it had when opened are left alone.
 *
 * Damaged or truncated compression: the whole records before it come first, then the error, with
 * the offset in the file.
 */
tamis_error input_next(struct input *input, struct input_segment *segment, struct input_text *text,
                       bool *more, tamis_reason *reason);

/*
 * Goes to a segment known from before: input_next() then gives it in pieces of about `step` bytes, which
 * stay in the cache from where they are read to where they are searched. (Measured on 160 MB of access
 * logs, a value in one line of ten: a fifth less processor time.) Without `lines` those pieces do not know
 * their first one. Not for threads together.
 */
tamis_error input_walk(struct input *input, const struct input_segment *segment, size_t step,
                       bool lines, tamis_reason *reason);

/* A segment known from before. Threads may call it together, each with its own text. */
tamis_error input_read(struct input *input, const struct input_segment *segment,
                       struct input_text *text, tamis_reason *reason);

#endif
