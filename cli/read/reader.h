/*
 * The reader of inputs: records of tables, JSON and logs, plain or compressed, for index and find.
 *
 * The workload: gigabytes of records of about 100 bytes, of which a few attributes are selected; later a few
 * parts must be read again, quickly. So an input is cut into segments of whole records, each of which can be
 * read independently; a parser walks over the bytes of a segment and points at the values in place. Nothing is
 * allocated for a record.
 *
 *     input_open           the file, its compression, its format, its header
 *     input_next           the next segment with its text: by any number of threads
 *     input_read           a segment again, later, from what was kept of it
 *     selection_new        the selected attributes, for a header
 *     parser_begin, _next  the records of a text
 *
 * What a record is, and what its values are, does not depend on which attributes are selected:
 *
 * CSV    RFC 4180: a field may be quoted, then "" is a quote and delimiters and line ends are text.
 *        What the RFC leaves open is as in Python's csv: a quote inside a field that does not start
 *        with one is text; what follows a closing quote belongs to the value. Lines end with \n or
 *        \r\n; a \r elsewhere is text. Empty lines are not records. A row that is too short lacks
 *        its last attributes (missing); an empty cell is empty. A quote that is not closed makes
 *        its record bad up to the end of the line where it opens; the next line is read normally.
 *        A quote is not closed if no other follows within record_max bytes; or, across line ends,
 *        within quoted_max bytes; or, across line ends, if the field would continue after the other
 *        quote, which then opens another field; or, across line ends, if only the content of the file
 *        says that it is a table: it may as well be a log, whose quotes need not match.
 *        A row whose number of fields is not that of the header, and whose time is none, is unfit, but
 *        keeps its other values.
 * TSV    fields between tabs, records between line ends, nothing else: no quotes, no escapes. A
 *        quoted file with tabs is CSV with the delimiter tab.
 * Both   the first record is the header unless `headless`. An attribute is the name of a column,
 *        otherwise its number from 1. Of two columns with one name the last counts. A repeated header
 *        is not a record, and applies to what follows (reader_header.c).
 * JSONL  one object (or array) per line; blank lines are not records. An attribute is a key, or a
 *        path of keys and array positions (from 0) with dots: `request.headers.0`. A key of objects in
 *        an array is a list of their values: `resources.ARN`. A key that itself contains dots is found
 *        too, and comes first: {"a.b": 1} before {"a": {"b": 2}}. Of two equal keys the last counts, with
 *        everything below it (in elements of an array both). Strings are unescaped, and lone surrogates
 *        become the three bytes that UTF-8 would give them; numbers, true, false, objects and arrays
 *        are their unchanged text. null is missing. Every record is checked against RFC 8259, whether
 *        its parts are selected or not, with three exceptions: control characters in strings, NaN and
 *        Infinity (Python writes them), and bytes that are not UTF-8.
 * JSON   the same objects wherever they are: in arrays, wrapped, over several lines (reader_array.c).
 *        Elements of an array of values are a list. A path may lead into a string that contains JSON.
 * Logs   a line is a record: reader_access.c, _syslog.c, _logfmt.c, _columns.c, _pattern.c, _text.c.
 * All    a byte order mark at the start is skipped. Bytes that are not UTF-8 are kept. A line that does
 *        not fit its format is a record of that line alone.
 *
 * Memory: a text holds one segment, up to twice the requested size if a compressed file cannot be cut earlier,
 * and at least a record; an input as much again in the worst case, plus what the decoder needs (zstd: up to
 * 128 MiB, depending on the file).
 */
#ifndef TAMIS_READER_H
#define TAMIS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw_sums.h"
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

/* How a text is to be read. All zero: as detected, with records up to 1 GiB. Strings belong to the caller and must
   outlive what is created with them. */
struct dialect {
    enum read_format format;
    uint8_t delimiter; /* comma in CSV, tab in TSV; 0: as detected */
    bool headless;     /* CSV, TSV: the first record is not a header */
    bool tables;       /* records are expected: a header may stand alone */
    bool returns;      /* lines end with \r alone */
    bool
        in_lines; /* CSV: a quoted field ends in its line; set where CSV was detected by content alone */
    const char *records; /* JSON: where the records are; see reader_array.c. NULL: as detected */
    const char *pattern; /* PATTERN: a regular expression (PCRE2) with named groups */
    /* The attribute with the time, if the format defines none. Of several, each followed by \n: the one that most
       records at the start of an input have. */
    const char *time;
    const char *zone; /* for times without a zone, as in TZ; NULL: UTC */
    size_t record_max;
    size_t quoted_max; /* CSV: longest quoted text with line ends, in bytes; 0: 1 MiB */
};

/* A field in the documentation of a format. */
struct read_field {
    const char *name;
    const char *type; /* as in --attrs: text, int, ip, time, path, words */
    bool made;        /* derived: not in the record in this form */
};

/* The fields of a format; NULL, with *n = 0, if its files name them or there are none. */
const struct read_field *read_fields(enum read_format format, size_t *n);
bool read_names_fields(enum read_format format); /* do its files or records name them? */
bool read_timed(enum read_format format);        /* does its documentation define the time? */

/* Attributes that every format has, unless it has fields of these names: the whole record unchanged; and its time, if
   fields of the format define it. READ_WHOLE is the record, whatever its fields are. */
#define READ_LINE  "line"
#define READ_TIME  "time"
#define READ_WHOLE "\n"

const char *read_format_name(enum read_format format);
/* The length of the suffix for compression in the name of a file; 0: none. */
size_t read_packed_suffix(const char *path);
/* Does the name of a file imply its format, as for input_open()? */
bool read_format_named(const char *path);

/* ---- records --------------------------------------------------------------------------------- */

enum value_state {
    VALUE_MISSING, /* no such key, null, a row too short */
    VALUE_EMPTY,   /* present, without bytes */
    VALUE_PRESENT
};

struct read_value {
    const uint8_t *data;
    size_t len;
    enum value_state state;
    const struct read_value *next; /* the next element of an array; NULL: none */
};

struct record {
    const uint8_t *data; /* unchanged, without its line end */
    size_t len;
    size_t end_len; /* bytes of the line end that follows: 0 (end of the text), 1 or 2 */
    const struct read_value *values; /* of the attributes, valid until the parser continues */
    /* A line that does not fit its format, such as part of a stack trace: all values are missing except the line
       itself and the time, which is that of the previous record, as time_write() writes it. */
    bool unfit;
    const char *complaint; /* of a bad record: why */
};

/* The selected attributes in the texts of one input. Immutable: threads share it. */
struct selection;

/* `dialect` and `header` are those of the input (see struct input) and must outlive it. EARG: a name that is empty or
   given twice, more than 8 dots. */
tamis_error selection_new(struct selection **out, const struct dialect *dialect,
                          const char *const *names, size_t n, const void *header, size_t header_len,
                          tamis_reason *reason);
void selection_free(struct selection *selection);
/* CSV, TSV: the first attribute from `from` on that is not in the header (without one: not the number of a column), so
   that all records lack it; the number of attributes if there is none. */
size_t selection_absent(const struct selection *selection, size_t from);
/* Do values of an attribute occur unchanged in their records, except for quotes and escapes? Derived ones do not,
   such as the severity of syslog or the time of a record without one. */
bool selection_plain(const struct selection *selection, size_t attribute);

/* PARSED_BAD: a record that does not fit because it is damaged, which is worth reporting. */
enum parsed { PARSED_END, PARSED_RECORD, PARSED_BAD, PARSED_NOMEM };

/* One for each thread. Its memory grows to the largest record that has an escaped value. */
struct parser;
struct input_text;

struct parser *parser_new(void); /* NULL: no memory */
void parser_free(struct parser *parser);
/* `data` must be whole records: the text of a segment. */
tamis_error parser_begin(struct parser *parser, const struct selection *selection, const void *data,
                         size_t len);
/* Sets the text of which `data` is a piece: what precedes it determines the time and the header in force. (A text
   that contains headers is read from its start.) Otherwise nothing is known before `data`. Call it after
   parser_begin(). */
void parser_context(struct parser *parser, const struct input_text *text);
/* Another piece of the text given to parser_context(), which contains no headers. */
void parser_piece(struct parser *parser, const struct input_text *text, const void *data,
                  size_t len);
enum parsed parser_next(struct parser *parser, struct record *record);
/* The number of lines in the text before the record last returned. Counted on demand. */
uint64_t parser_line(struct parser *parser);
/* The header with which it was read; NULL: none. */
const uint8_t *parser_header(const struct parser *parser, size_t *len);

/* Visits every field of the records of a text, for choosing among them: the names in the order of their first
   occurrence (dotted paths in JSON), then for each record its values. `visit` returns false to stop. Errors: memory.
   */
struct input;
typedef bool (*read_visit)(void *context, uint64_t record, const char *name,
                           const struct read_value *value);
tamis_error reader_fields(const struct input *input, const struct input_text *text,
                          read_visit visit, void *context, tamis_reason *reason);

/* ---- inputs ---------------------------------------------------------------------------------- */

enum packing {
    PACK_NONE,
    PACK_GZIP,
    PACK_ZSTD,
    PACK_BZIP2,
    PACK_XZ,
    PACK_LZMA,
    PACK_LZ4,
    PACK_UTF16LE,
    PACK_UTF16BE
};

struct input_options {
    struct dialect dialect;
    size_t segment; /* approximate bytes of text in a segment; 8 MiB */
    /* Starts with this segment of an earlier run instead of the first. */
    const struct input_segment *from;
    bool file;    /* must be a regular file, which can be read again; opening does not wait */
    bool no_link; /* must not be a link */
    struct raw_sums *sums; /* started by the caller; NULL: no checksums of what is read */
};

/*
 * A segment: what is needed to read its text again. Reading starts at byte `at` of the file, where a decoder can
 * start (with the help of `restart`), and drops `skip` bytes of text.
 *
 *     plain         at = offset, skip = 0
 *     .zst .bz2     at is the start of a frame. A frame much longer than a segment contains several
 *     .xz .lzma .lz4 segments, so skip may be large: input_read continues from its position if possible
 *     UTF-16        at is the start of a character
 *     .gz           at is the start of a member, or the end of a deflate block; then `restart` has the
 *                   32 KiB of text before it, compressed: about 10 KiB for each segment
 */
struct input_segment {
    uint64_t offset, len; /* of its records in the text of the input */
    uint64_t line;        /* number of its first line, from 1 */
    uint64_t at, at_len;  /* bytes of the file that reading it touches */
    uint64_t skip;
    uint8_t *restart; /* from malloc, owned by the caller, stored unchanged. NULL: none */
    size_t restart_len;
    /* Needed for its times: that of the last record before it, if one could be read; and when the file was last
       written, which determines the year of times without one. */
    bool timed;
    struct stamp time_before;
    int64_t reference; /* seconds */
    /* The header that it begins with, if that is not the first one of its file; owned by the caller, like `restart`.
       And whether the segment contains headers. */
    uint8_t *header;
    size_t header_len;
    bool turns;
    /* CSV: each line is a record, and a value without quotes occurs unchanged; false: not known. */
    bool lined;
};

void input_segment_free(struct input_segment *segment);
/* What a segment that begins after `len` bytes of a text needs from them: the time of the last record, the header in
   force. False: no memory. */
bool input_before(struct input *input, const struct input_text *text, size_t len,
                  struct input_segment *segment);

/* The text of a segment and what is needed to read it; the header is that of the segment. One per thread, initialised
   with {0}. It may be used with several inputs in turn. */
struct input_text {
    const uint8_t *data;
    size_t len;
    uint8_t *memory;
    size_t capacity;
    struct input_segment of; /* the segment; what it owns is still its owner's */
    bool passed,
        timed_behind; /* passed: from input_next(), with the lines in it and the time after it */
    uint64_t lines;
    struct stamp time_behind;
    struct source *source; /* an open decoder, at the end of the last segment read */
    uint64_t source_of;    /* the input it belongs to */
};

void input_text_free(struct input_text *text);

struct input {
    const char *path;       /* a copy */
    enum packing kind;      /* by content */
    enum packing wide;      /* encoding of the decompressed text: UTF-16, or PACK_NONE */
    struct dialect dialect; /* complete: format and delimiter are known */
    const uint8_t *header;  /* of CSV and TSV, without its line end; NULL: none */
    size_t header_len;      /* 0: the file is empty */
    uint64_t size;          /* of the file when it was opened; 0 for a pipe */
    bool regular;           /* can be read again: not a pipe */
    struct raw_id id;       /* of a regular file when it was opened */
    struct input_private *own;
};

/* "-" is standard input. Formats are recognised by name: .csv .tsv .tab .jsonl .ndjson .json, before the suffix of a
   compression; otherwise by content, see reader_sniff.h. EKIND: not readable. */
tamis_error input_open(struct input **out, const char *path, const struct input_options *options,
                       tamis_reason *reason);
void input_close(struct input *input);
/* The checksums of its bytes, after it was read to the end; see raw_sums_end(). */
uint8_t *input_sums(const struct input *input, struct raw_sums *sums);

/*
 * The next segment and its text; *more = false: there is none. Several threads may call it at once: each gets another
 * segment. Segments end at the first record end after `segment` bytes (compressed: after the first point from there on
 * where a decoder can start). From a pipe: what has arrived, up to that size. Bytes of a regular file beyond the size
 * that it had when opened are not read.
 *
 * Damaged or truncated compression: the whole records before it come first, then the error, with the offset in
 * the file.
 */
tamis_error input_next(struct input *input, struct input_segment *segment, struct input_text *text,
                       bool *more, tamis_reason *reason);

/*
 * Goes to a segment of an earlier run, which input_next() then returns in pieces of about `step` bytes: they stay in
 * the cache until they are searched. (Measured on 160 MB of access logs with a value in one line of ten: a fifth less
 * processor time.) Without `lines`, the pieces do not have their line numbers. Only one thread may use it.
 */
tamis_error input_walk(struct input *input, const struct input_segment *segment, size_t step,
                       bool lines, tamis_reason *reason);

/* Reads a segment of an earlier run. Several threads may call it at once, each with its own text. */
tamis_error input_read(struct input *input, const struct input_segment *segment,
                       struct input_text *text, tamis_reason *reason);

#endif
