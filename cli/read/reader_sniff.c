/* Detects what a file is from its first bytes. See reader_sniff.h. */
#include "reader_sniff.h"

#include "base/base.h"
#include "reader_parse.h"
#include "reader_shape.h"

static struct sniff refused(enum sniff_class class, const char *what, const char *advice)
{
    return (struct sniff){.class = class, .what = what, .advice = advice};
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static const char EXTRACT[] = "extract it first",
                  UNPACK[] = "decompress it, or use gzip, zstd, bzip2, xz or lz4",
                  EXPORT[] = "export it as CSV or JSON lines",
                  RECODE[] = "make it UTF-8 with iconv", LEAVE[] = "leave it out";

/* The compression that is supported has been removed before this: only a second layer is left. */
static const struct foreign_magic {
    const char *bytes;
    uint16_t len, at;
    enum sniff_class class;
    const char *what, *advice;
} magics[] = {
    {"ustar", 5, 257, SNIFF_UNKNOWN, "a tar archive", EXTRACT},
    {"PK\x03\x04", 4, 0, SNIFF_UNKNOWN, "a zip archive", EXTRACT},
    {"PK\x05\x06", 4, 0, SNIFF_UNKNOWN, "a zip archive", EXTRACT},
    {"7z\xBC\xAF\x27\x1C", 6, 0, SNIFF_UNKNOWN, "a 7z archive", EXTRACT},
    {"Rar!\x1A\x07", 6, 0, SNIFF_UNKNOWN, "a rar archive", EXTRACT},
    {"!<arch>\n", 8, 0, SNIFF_UNKNOWN, "an ar archive", EXTRACT},
    {"\x1F\x9D", 2, 0, SNIFF_UNKNOWN, "a file from compress", UNPACK},
    {"LZIP", 4, 0, SNIFF_UNKNOWN, "an lzip-compressed file", UNPACK},
    {"\x1F\x8B", 2, 0, SNIFF_UNKNOWN, "a file compressed twice", UNPACK},
    {"\xFD\x37zXZ\x00", 6, 0, SNIFF_UNKNOWN, "a file compressed twice", UNPACK},
    {"\x5D\x00\x00", 3, 0, SNIFF_UNKNOWN, "a file compressed twice", UNPACK},
    {"BZh91AY&SY", 10, 0, SNIFF_UNKNOWN, "a file compressed twice", UNPACK},
    {"\x04\x22\x4D\x18", 4, 0, SNIFF_UNKNOWN, "a file compressed twice", UNPACK},
    {"\x28\xB5\x2F\xFD", 4, 0, SNIFF_UNKNOWN, "a file compressed twice", UNPACK},
    {"PAR1", 4, 0, SNIFF_UNKNOWN, "a Parquet file", EXPORT},
    {"PARE", 4, 0, SNIFF_UNKNOWN, "a Parquet file", EXPORT},
    {"ORC\n", 3, 0, SNIFF_UNKNOWN, "an ORC file", EXPORT},
    {"Obj\x01", 4, 0, SNIFF_UNKNOWN, "an Avro file", EXPORT},
    {"ARROW1", 6, 0, SNIFF_UNKNOWN, "an Arrow file", EXPORT},
    {"\xFF\xFE\x00\x00", 4, 0, SNIFF_UNKNOWN, "UTF-32 text", RECODE},
    {"\x00\x00\xFE\xFF", 4, 0, SNIFF_UNKNOWN, "UTF-32 text", RECODE},
    {"\xFF\xFE", 2, 0, SNIFF_UNKNOWN, "UTF-16 text", RECODE},
    {"\xFE\xFF", 2, 0, SNIFF_UNKNOWN, "UTF-16 text", RECODE},
    {"TAMIS\x00\r\n", 8, 0, SNIFF_BINARY, "a file of tamis", LEAVE},
    {"SQLite format 3\x00", 16, 0, SNIFF_BINARY, "an SQLite database", EXPORT},
    {"LPKSHHRH", 8, 0, SNIFF_BINARY, "a systemd journal", "export it with journalctl -o json"},
    {"ElfFile\x00", 8, 0, SNIFF_BINARY, "a Windows event log", EXPORT},
    {"\x7F"
     "ELF",
     4, 0, SNIFF_BINARY, "an ELF program", LEAVE},
    {"\x89PNG", 4, 0, SNIFF_BINARY, "a PNG picture", LEAVE},
    {"\xFF\xD8\xFF", 3, 0, SNIFF_BINARY, "a JPEG picture", LEAVE},
    {"GIF8", 4, 0, SNIFF_BINARY, "a GIF picture", LEAVE},
};

/* Bytes that rarely occur in text: control characters, except those that separate lines and
   pages, and ESC. */
static bool odd(uint8_t c)
{
    return (c < ' ' && !(c >= '\b' && c <= '\r') && c != 27) || c == 127;
}

static bool all_text(const void *data, size_t len)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < len; i++)
        if (odd(p[i]) || p[i] > 127)
            return false;
    return true;
}

/* A column may be called ORCID: a magic number of letters must be followed by other bytes soon. */
static const struct foreign_magic *magic_of(const uint8_t *text, size_t len)
{
    bool plain = all_text(text, len < 512 ? len : 512);
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const struct foreign_magic *m = &magics[i];
        if (len >= (size_t)m->at + m->len && memcmp(text + m->at, m->bytes, m->len) == 0 &&
            !(plain && all_text(m->bytes, m->len)))
            return m;
    }
    return NULL;
}

/* Every second byte is zero, the others are text: ASCII in UTF-16. */
static bool wide(const uint8_t *text, size_t len)
{
    for (size_t side = 0; side < 2 && len >= 4 && memchr(text, 0, len); side++) {
        size_t zeros = 0, others = 0, plain = 0;
        for (size_t i = 0; i + 1 < len; i += 2) {
            uint8_t other = text[i + 1 - side];
            zeros += text[i + side] == 0;
            others += other == 0;
            plain += !odd(other) && other < 127;
        }
        if (2 * zeros > len / 2 && 32 * others < len / 2 && 4 * plain > 3 * (len / 2))
            return true;
    }
    return false;
}

/*
 * Do more than 1 in 32 bytes (plus one) not occur in text? A run of one byte counts once: a log
 * whose end was allocated and never written, or lost in a crash, has zeros there and is still a
 * log.
 */
static bool binary(const uint8_t *text, size_t len, uint8_t delimiter)
{
    size_t controls = 0, bytes = 0;
    for (size_t i = 0; i < len; i++) {
        bool control = odd(text[i]) && !(delimiter && text[i] == delimiter);
        bool again = control && i && text[i - 1] == text[i];
        bytes += !again;
        controls += control && !again;
    }
    return controls > 1 + bytes / 32 || (bytes && controls == bytes);
}

bool sniff_returns(const uint8_t *text, size_t len, bool given)
{
    size_t returns = 0, lines = 0;
    if (len == 0 || !memchr(text, '\r', len))
        return false;
    for (size_t i = 0; i < len; i++) {
        lines += text[i] == '\n';
        returns += text[i] == '\r' && i + 1 < len && text[i + 1] != '\n';
    }
    return returns > lines && !(given && lines);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool blank(const uint8_t *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] > ' ')
            return false;
    return true;
}

/* Are they JSON lines? Not if the records are inside one value, or span several lines. */
static struct sniff sniff_json(const uint8_t *text, size_t len, bool lines)
{
    struct json_shape shape = json_shape_of(text, len);
    bool list = text[0] == '[', alone = !shape.end || blank(text + shape.end, len - shape.end);
    size_t seen = shape.end ? shape.end : len;
    struct sniff sniff = {.format = READ_JSONL};
    const uint8_t *name = text + shape.name;
    bool wraps = !list && shape.listed && shape.name_len < sizeof sniff.records &&
                 (shape.keys == 1 || (alone && 2 * shape.listed > seen)) &&
                 !memchr(name, '.', shape.name_len) && !memchr(name, '\\', shape.name_len);
    if (shape.broken && lines && !(list && shape.nested && shape.lines))
        return sniff; /* bad records, each of which is reported */
    if (!lines || wraps || shape.lines || (list && shape.nested && alone))
        sniff.format = READ_JSON;
    if (wraps)
        memcpy(sniff.records, name, shape.name_len);
    else if (!list)
        strcpy(sniff.records, ".");
    return sniff;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A row of a table, as seen in the first pass over a text. */
struct row {
    size_t columns, end; /* end 0: the text ends inside quotes */
    bool quote;          /* a quote inside a field that does not start with one */
    bool blank;          /* a space between other characters */
    bool gap;            /* an empty cell, except the first */
};

static struct row row_of(const uint8_t *text, size_t len, const struct dialect *d)
{
    const uint8_t delimiter = d->delimiter;
    const bool quotes = d->format == READ_CSV;
    struct row row = {.columns = 1};
    bool start = true, inside = false;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = text[i];
        if (inside && !(d->in_lines && c == '\n')) {
            inside = c != '"';
        } else if (c == '\n') {
            row.end = i + 1;
            return row;
        } else if (quotes && c == '"') {
            bool doubled = i && text[i - 1] == '"';
            row.quote |= !start && !doubled;
            inside = start || doubled;
        } else {
            row.columns += c == delimiter;
            row.blank |= c == ' ';
            row.gap |= c == delimiter && start && i;
        }
        start = !inside && c == delimiter;
    }
    row.end = inside ? 0 : len;
    return row;
}

/* What a cell looks like: names of columns look like none of these. */
enum cell { CELL_TEXT, CELL_NUMBER, CELL_YEAR, CELL_TIME, CELL_IP };

static enum cell cell_of(const uint8_t *p, size_t len)
{
    struct time_context context = {0};
    struct stamp stamp;
    size_t digits = 0, dots = 0, colons = 0, hex = 0;
    for (; len && *p == ' '; len--)
        p++;
    while (len && p[len - 1] == ' ')
        len--;
    if (len >= 2 && *p == '"' && p[len - 1] == '"')
        p++, len -= 2;
    for (size_t i = 0; i < len; i++) {
        digits += p[i] >= '0' && p[i] <= '9';
        dots += p[i] == '.';
        colons += p[i] == ':';
        hex += (p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'f';
    }
    bool sign = len && (*p == '-' || *p == '+');
    if (digits == 0)
        return CELL_TEXT;
    if (digits + dots == len && dots == 3)
        return CELL_IP;
    if (colons > 1 && digits + colons + dots + hex == len)
        return CELL_IP;
    if (digits + dots + sign == len && dots <= 1)
        return len == 4 && digits == 4 && (*p == '1' || *p == '2') ? CELL_YEAR : CELL_NUMBER;
    return time_read(&context, p, len, &stamp) ? CELL_TIME : CELL_TEXT;
}

/* May a name of a column have it outside quotes? Between blanks fewer bytes are left, since text has blanks too. */
static bool in_name(uint8_t c, uint8_t delimiter)
{
    bool plain = ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9') || c >= 0x80;
    return delimiter != ' ' ? c != ' ' : plain || memchr(" \"_-.%/#@+()", c, 13);
}

/* The kinds of the first cells of a row; returns their number. *words: all may be names of columns. */
static size_t cells_of(const uint8_t *text, size_t len, uint8_t delimiter, enum cell *cell,
                       size_t most, bool *words)
{
    size_t n = 0, start = 0;
    bool inside = false;
    *words = true;
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    for (size_t i = 0; i <= len && n < most; i++) {
        if (i < len && text[i] == '"')
            inside = !inside;
        *words &= i == len || inside || in_name(text[i], delimiter);
        if (i == len || (text[i] == delimiter && !inside)) {
            cell[n++] = cell_of(text + start, i - start);
            start = i + 1;
        }
    }
    return n;
}

#define CELLS 64

struct csv_sample {
    size_t width, rows, misfits;
    bool names; /* the first row may be a header: no quote in a name, no space in a lone one */
    bool words; /* its cells may be names of columns */
    bool typed; /* some column has numbers, times or addresses, but the first row has none */
    bool alike; /* some do, also in the first row, and the others have none in either */
};

/* What the first two rows say. A header has no numbers, times or addresses, but perhaps years. */
static void compare_rows(struct csv_sample *t, const enum cell *first, const enum cell *second,
                         size_t n)
{
    bool any = false, same = true, below = false, header = true;
    for (size_t i = 0; i < n; i++) {
        any |= first[i] != CELL_TEXT;
        same &= first[i] == second[i];
        below |= first[i] == CELL_TEXT && second[i] != CELL_TEXT;
        header &= first[i] == CELL_TEXT || first[i] == CELL_YEAR;
    }
    t->alike = any && same;
    t->typed = below && header;
    t->words &= header;
}

/* The rows of a text, which should be as wide as the first. */
static struct csv_sample table_of(const struct dialect *d, const uint8_t *text, size_t len,
                                  bool whole)
{
    struct csv_sample t = {.names = true};
    enum cell first[CELLS], second[CELLS];
    bool words;
    for (size_t at = 0; at < len;) {
        struct row row = row_of(text + at, len - at, d);
        size_t end = row.end ? at + row.end : len;
        bool cut = end == len && (text[len - 1] != '\n' || !row.end) &&
                   !whole; /* it continues beyond the head */
        if (blank(text + at, end - at)) {
            at = end;
            continue;
        }
        if (t.width == 0) {
            t.width = row.columns;
            t.names =
                !row.quote && !(row.columns == 1 && row.blank) && !(row.gap && d->delimiter == ' ');
            cells_of(text + at, end - at, d->delimiter, first, CELLS, &t.words);
        } else if (!cut) {
            if (t.rows++ == 0 && row.columns == t.width) {
                size_t n = cells_of(text + at, end - at, d->delimiter, second, CELLS, &words);
                compare_rows(&t, first, second, n);
            }
            t.misfits += row.columns != t.width || !row.end;
        }
        at = end;
    }
    return t;
}

/* Is it a table? Two rows may have another width, and if there are many, one row in ten. (A log line has quotes
   and spaces where a header has none.) */
static bool is_table(const struct dialect *d, const struct csv_sample *t)
{
    return (d->headless || t->names) && t->misfits <= 2 + t->rows / 10;
}

/*
 * The table in the text, by the delimiter that gives the most columns; *delimiter is 0 if it is not
 * a table. Spaces separate columns only if nothing else does, all rows are equally wide, at least
 * three, and there are numbers or the like below names that are not: two lines of text are often so.
 */
static struct csv_sample find_table(const struct dialect *dialect, const uint8_t *text, size_t len,
                                    bool whole, uint8_t *delimiter)
{
    static const char candidates[] = ",;|\t ";
    struct csv_sample best = {0};
    *delimiter = 0;
    for (const char *c = candidates; *c; c++) {
        struct dialect d = *dialect;
        d.delimiter = (uint8_t)*c;
        if (*delimiter && best.width > 1 && (*c == ' ' || *delimiter == ','))
            break;
        struct csv_sample t = table_of(&d, text, len, whole);
        bool good = is_table(&d, &t) && (*c == ',' || t.width > 1);
        if (*c == ' ')
            good = good && t.typed && t.words && t.misfits == 0 && t.rows > 1;
        if (good && t.width > best.width) {
            best = t;
            *delimiter = (uint8_t)*c;
        }
    }
    return best;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Does the parser's `fit` accept half of the lines of the text? Incomplete lines at the end do
   not count. */
static bool most_lines_fit(struct parser *ps, const uint8_t *text, size_t len, bool whole)
{
    struct record record;
    size_t fit = 0, lines = 0;
    ps->at = text;
    ps->end = text + len;
    while (line_next(ps, &record) == PARSED_RECORD) {
        if (ps->at == ps->end && !record.end_len && !whole && lines)
            break;
        lines++;
        fit += !record.unfit;
    }
    return fit && 2 * fit >= lines;
}

/* Are half of the lines JSON? The last may be cut off, and if it is the only one, it is believed. */
static bool objects_fit(struct parser *ps, const uint8_t *text, size_t len, bool whole)
{
    struct record r;
    enum parsed parsed;
    size_t good = 0, bad = 0;
    while ((parsed = parser_next(ps, &r)) == PARSED_RECORD || parsed == PARSED_BAD) {
        bool open = r.data + r.len == text + len && !whole;
        good += !open && parsed == PARSED_RECORD;
        bad += !open && parsed == PARSED_BAD;
    }
    return good >= bad;
}

/* Does the user's pattern fit, or are they JSON lines? */
static bool format_fits(const struct dialect *dialect, enum read_format format, const uint8_t *text,
                        size_t len, bool whole, bool *full)
{
    struct dialect d = *dialect;
    const char *line = READ_WHOLE;
    struct parsing p = {0};
    d.format = format;
    tamis_error error = parsing_begin(&p, &d, &line, 1, NULL, 0, text, len, NULL);
    bool fits = error == TAMIS_OK &&
                (format == READ_JSONL ? objects_fit : most_lines_fit)(p.parser, text, len, whole);
    *full |= error == TAMIS_ENOMEM;
    parsing_end(&p);
    return fits;
}

/* Do half of the lines begin like objects, although the first does not? */
static bool objects_follow(const uint8_t *text, size_t len)
{
    size_t lines = 0, objects = 0;
    for (const uint8_t *at = text, *end = text + len; at; lines++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at && at + 1 < end ? at + 1 : NULL;
        objects += at && *at == '{';
    }
    return objects && 2 * objects >= lines;
}

/* The first line starts with a time that is not a separate cell. */
static bool timed_line(const uint8_t *text, size_t len)
{
    struct time_context context = {0};
    struct stamp stamp;
    size_t bracket;
    while (len && (*text == ' ' || *text == '\t'))
        text++, len--;
    size_t time = time_lead_line(&context, text, len, &bracket, &stamp), end = bracket + time;
    return time && end < len && text[end] != ',' && text[end] != ';' && text[end] != '|' &&
           text[end] != '\t';
}

/* ---- all ------------------------------------------------------------------------------------- */

static struct sniff sniff_bytes(const uint8_t *text, size_t len)
{
    const struct foreign_magic *magic = magic_of(text, len);
    if (magic)
        return refused(magic->class, magic->what, magic->advice);
    if (wide(text, len))
        return refused(SNIFF_UNKNOWN, "UTF-16 text without a byte order mark", RECODE);
    return (struct sniff){0};
}

static bool starts(const uint8_t *text, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* The format of lines that most lines have; READ_AUTO: none. */
static enum read_format line_format(const uint8_t *text, size_t len, bool whole, bool *full)
{
    for (const uint8_t *line = text, *end = text + len; line && line < end && *line == '#';) {
        size_t left = (size_t)(end - line);
        if (starts(line, left, "#separator") || starts(line, left, "#fields"))
            return READ_ZEEK;
        if (starts(line, left, "#Fields:"))
            return READ_W3C;
        line = memchr(line, '\n', left);
        line += line != NULL;
    }
    static const struct selection none = {.line = NO_SLOT, .whole = NO_SLOT, .time = NO_SLOT};
    struct read_value nowhere;
    struct parser *ps = len ? parser_new() : NULL;
    enum read_format found = READ_AUTO;
    *full |= len && !ps;
    for (int i = READ_AUTO; ps && !found && i < READ_FORMATS; i++) {
        ps->selection = &none;
        ps->value = &nowhere;
        ps->fit = format_of((enum read_format)i)->sniff;
        if (ps->fit && most_lines_fit(ps, text, len, whole))
            found = (enum read_format)i;
        ps->value = NULL;
    }
    parser_free(ps);
    return found;
}

/* Does the sample look like a header with values, or like values alone? A line of text must not be mistaken for a
   header, which is not a record: commas alone do not make it one. */
static bool has_values(const struct dialect *d, const struct csv_sample *t, bool whole)
{
    if (d->headless || d->tables)
        return true;
    bool header = t->words ? t->typed || t->width > 1 : t->typed && t->misfits == 0;
    return t->rows ? (header || t->alike) && 2 * t->misfits <= t->rows : !whole;
}

/* A table, if it looks like one or the options say so; otherwise text. */
static struct sniff sniff_table(const struct dialect *dialect, const uint8_t *text, size_t len,
                                bool whole)
{
    struct dialect d = *dialect;
    bool named = d.format == READ_CSV, told = d.delimiter != 0; /* then there are columns */
    struct sniff sniff = {.format = READ_CSV, .delimiter = d.delimiter, .headless = d.headless};
    if (len == 0)
        return sniff;
    const uint8_t *line = len ? memchr(text, '\n', len) : NULL;
    bool tab = !named && len && memchr(text, '\t', line ? (size_t)(line - text) : len);
    d.format = READ_CSV;
    if (told)
        return sniff.format = tab ? READ_TSV : READ_CSV, sniff;
    if (tab) {
        d.format = READ_TSV;
        d.delimiter = '\t';
        struct csv_sample t = table_of(&d, text, len, whole);
        bool indented = *text == '\t' && !t.typed; /* a stack trace */
        if (!is_table(&d, &t) || !has_values(&d, &t, whole) || indented)
            return sniff.format = READ_TEXT, sniff;
        sniff.format = READ_TSV;
        sniff.headless |= t.alike;
        return sniff;
    }
    struct csv_sample t = find_table(&d, text, len, whole, &sniff.delimiter);
    if (sniff.delimiter)
        sniff.headless |= t.alike && t.rows > 0;
    if (!named && (!sniff.delimiter || !has_values(&d, &t, whole) || timed_line(text, len)))
        sniff.format = READ_TEXT;
    return sniff;
}

struct sniff sniff_text(const struct dialect *dialect, bool named, const uint8_t *text, size_t len,
                        bool whole)
{
    struct dialect d = *dialect;
    bool given = d.format != READ_AUTO && !named;
    whole = whole && len <= SNIFF_LEN;
    len = len < SNIFF_LEN ? len : SNIFF_LEN;
    struct sniff sniff = sniff_bytes(text, len);
    if (sniff.class == SNIFF_READABLE && !given && binary(text, len, d.delimiter))
        sniff = refused(SNIFF_BINARY, "binary data", LEAVE);
    sniff.format = d.format;
    if (sniff.class != SNIFF_READABLE || (given && d.format != READ_JSON))
        return sniff;
    const uint8_t *begin = text;
    while (len && (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\n'))
        text++, len--;
    if (d.format == READ_AUTO && d.pattern &&
        format_fits(&d, READ_PATTERN, text, len, whole, &sniff.full)) {
        sniff.format = READ_PATTERN;
        return sniff;
    }
    bool object = len && *text == '{', list = len && *text == '[';
    struct json_shape shape = list ? json_shape_of(text, len) : (struct json_shape){0};
    if (d.format == READ_AUTO && shape.broken && !shape.nested)
        list = false; /* [2026-01-02 ...] of a log */
    if (d.format == READ_JSON || ((object || list) && d.records))
        return len ? sniff_json(text, len, false) : sniff;
    struct sniff json = object || list ? sniff_json(text, len, true) : sniff;
    if ((object || list) &&
        (d.format == READ_JSONL ||
         (d.format == READ_AUTO && (json.format == READ_JSON ||
                                    format_fits(&d, READ_JSONL, text, len, whole, &sniff.full)))))
        return json;
    if (d.format == READ_AUTO && !object && !list && objects_follow(text, len) &&
        format_fits(&d, READ_JSONL, text, len, whole, &sniff.full))
        return sniff.format = READ_JSONL, sniff; /* a log that begins with a banner */
    if (d.format == READ_AUTO)
        sniff.format = d.format = line_format(text, len, whole, &sniff.full);
    if (sniff.full)
        return sniff;
    for (; len && text > begin && (text[-1] == ' ' || text[-1] == '\t'); len++)
        text--; /* in a table they are columns, or in a name */
    if (d.format == READ_AUTO || d.format == READ_CSV)
        return sniff_table(&d, text, len, whole);
    return sniff;
}
