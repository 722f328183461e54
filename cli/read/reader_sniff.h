/*
 * What a file is, by its first bytes: one of the formats, or something else, which must not be taken
 * for one. A reader that is wrong here loses records in silence: an Apache log read as CSV swallows
 * lines at every quote, a JSON array is one record, a file with bare CR line ends is one header.
 */
#ifndef TAMIS_READER_SNIFF_H
#define TAMIS_READER_SNIFF_H

#include "reader.h"

#define SNIFF_LEN ((size_t)64 << 10) /* bytes of text that are looked at */

enum sniff_class {
    SNIFF_READABLE,
    SNIFF_BINARY, /* nobody would search it as records: out of scope */
    SNIFF_UNKNOWN /* it may hold records, but is not read: in scope */
};

struct sniff {
    enum sniff_class class;
    enum read_format format; /* of what is readable; and how: */
    uint8_t delimiter;
    bool headless;
    char records[64];
    bool full;          /* there was no memory to tell */
    const char *what;   /* else: "a tar archive"; */
    const char *advice; /* and what to do: "extract it first" */
};

/*
 * The start of a text, decompressed. `whole`: it is all of it. In `dialect`, a format that is given
 * is believed: then only what is no text at all is refused. `named`: the name of the file says the
 * format. A delimiter that is given says that it is a table.
 */
struct sniff sniff_text(const struct dialect *dialect, bool named, const uint8_t *text, size_t len,
                        bool whole);

/* Whether lines end with a bare CR: there are more of them than of line feeds; if the format is given,
   there is no line feed. */
bool sniff_returns(const uint8_t *text, size_t len, bool given);

/* The same for a file, through its compression. Errors: it cannot be opened, read, or decompressed
   at all. */
tamis_error sniff_file(const char *path, const struct dialect *dialect, struct sniff *out,
                       tamis_reason *reason);

#endif
