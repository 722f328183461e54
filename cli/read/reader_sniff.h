/*
 * Detects what a file is from its first bytes: one of the formats, or something else, which must
 * not be mistaken for one. A wrong answer loses records silently: an Apache log read as CSV loses
 * lines at every quote, a JSON array becomes one record, a file with bare CR line ends one header.
 */
#ifndef TAMIS_READER_SNIFF_H
#define TAMIS_READER_SNIFF_H

#include "reader.h"

#define SNIFF_LEN ((size_t)64 << 10) /* bytes of text that are examined */

enum sniff_class {
    SNIFF_READABLE,
    SNIFF_BINARY, /* nobody would search it for records: out of scope */
    SNIFF_UNKNOWN /* it may contain records, but cannot be read: in scope */
};

struct sniff {
    enum sniff_class class;
    enum read_format format; /* of readable text */
    uint8_t delimiter;
    bool headless;
    char records[64];
    bool full;          /* no memory */
    const char *what;   /* otherwise: "a tar archive" */
    const char *advice; /* and what to do: "extract it first" */
};

/*
 * The start of a text, decompressed. `whole`: it is complete. A format given in `dialect` is
 * trusted: only what is not text is then refused. `named`: the name of the file implies the format.
 * A given delimiter means that it is a table.
 */
struct sniff sniff_text(const struct dialect *dialect, bool named, const uint8_t *text, size_t len,
                        bool whole);

/* Do lines end with a bare CR? True if there are more of them than line feeds; if the format is
   given, if there is no line feed. */
bool sniff_returns(const uint8_t *text, size_t len, bool given);

/* The same for a file, through its compression. Errors: it cannot be opened, read, or
   decompressed. */
tamis_error sniff_file(const char *path, const struct dialect *dialect, struct sniff *out,
                       tamis_reason *reason);

#endif
