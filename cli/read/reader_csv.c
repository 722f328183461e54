/*
 * CSV and TSV: one body, with quotes or without. A quote counts only at the start of a field, so
 * that 5" is text. After the last selected column only the end of the record is searched for.
 */
#include "reader_parse.h"

#include "reader_cut.h"
#include "reader_scan.h"

/* ---- one field ------------------------------------------------------------------------------- */

/* The field at `start`. The text of quoted fields is [text, quote), with every quote in it
   doubled if `doubled`, then [quote + 1, stop). */
struct csv_field {
    const uint8_t *text, *quote; /* quote NULL: the field is [text, stop) unchanged */
    const uint8_t *stop;         /* the delimiter, the line end (\r\n: its \r) or the end */
    const uint8_t *next;         /* the same, after a \r */
    bool doubled;
};

/* How a text is read: the same for every field of a record. */
struct how {
    const uint8_t *end;   /* of the text */
    const uint8_t *limit; /* of the record */
    size_t quoted_max;
    uint8_t delimiter;
    bool quotes, in_lines;
};

/*
 * The closing quote of the field whose text starts at p. NULL: there is none before the limit; or
 * it belongs to another field, since this one would contain line ends and be too long, or continue
 * after the quote. (A stray quote is usually matched by the next opening one.) Searching costs no
 * more than reading twice: the next line that leaves a quote open ends the search too.
 */
ALWAYS_INLINE const uint8_t *closing_quote(const uint8_t *p, const struct how *how, bool *doubled,
                                           scan_how vector)
{
    const uint8_t *const text = p, *const end = how->end;
    *doubled = false;
    for (;;) {
        p = scan_for(p, how->limit, '"', '"', '"', vector);
        if (UNLIKELY(p >= how->limit))
            return NULL;
        if (LIKELY(p + 1 == end || p[1] != '"'))
            break;
        *doubled = true;
        p += 2;
    }
    bool ends = p + 1 == end || quote_ends(p[1], how->delimiter);
    size_t len = (size_t)(p - text);
    if (UNLIKELY(!ends || len > how->quoted_max || how->in_lines) && memchr(text, '\n', len))
        return NULL;
    return p;
}

/* The field at p, which may be the end; false: its quote is not closed. */
ALWAYS_INLINE bool take_field(struct csv_field *field, const uint8_t *p, const struct how *how,
                              scan_how vector)
{
    const uint8_t *const end = how->end;
    field->text = p;
    field->quote = NULL;
    if (how->quotes && p < end && *p == '"') {
        field->text = p + 1;
        field->quote = closing_quote(p + 1, how, &field->doubled, vector);
        if (UNLIKELY(!field->quote))
            return false;
        p = field->quote + 1;
    }
    const uint8_t *least = p;
    p = scan_for(p, end, how->delimiter, '\n', '\n', vector);
    bool line_end = p == end || *p == '\n';
    field->stop = p - (line_end && p > least && p[-1] == '\r');
    field->next = p;
    return true;
}

/* A field that is not contiguous in the text. */
static size_t join_field(const struct csv_field *field, uint8_t *out)
{
    uint8_t *const start = out;
    for (const uint8_t *p = field->text; p < field->quote;) {
        const uint8_t *quote =
            field->doubled ? memchr(p, '"', (size_t)(field->quote - p)) : field->quote;
        size_t len = quote ? (size_t)(quote - p) : (size_t)(field->quote - p);
        memcpy(out, p, len);
        out += len;
        p += len;
        if (p < field->quote) {
            *out++ = '"';
            p += 2;
        }
    }
    size_t rest = (size_t)(field->stop - (field->quote + 1));
    memcpy(out, field->quote + 1, rest);
    return (size_t)(out + rest - start);
}

/* Stores the value of a field in `value`; false: no memory. */
ALWAYS_INLINE bool take_value(struct parser *ps, const struct csv_field *field,
                              struct read_value *value)
{
    if (LIKELY(!field->quote)) {
        value_set(value, field->text, (size_t)(field->stop - field->text));
        return true;
    }
    if (LIKELY(!field->doubled && field->stop == field->quote + 1)) {
        value_set(value, field->text, (size_t)(field->quote - field->text));
        return true;
    }
    if (!parser_room(ps, (size_t)(field->stop - field->text)))
        return false;
    uint8_t *out = ps->scratch + ps->scratch_len;
    size_t len = join_field(field, out);
    ps->scratch_len += len;
    value_set(value, out, len);
    return true;
}

/* ---- records --------------------------------------------------------------------------------- */

/* From the delimiter at p to the end of the record; NULL with *open: a quote is not closed. */
ALWAYS_INLINE const uint8_t *record_end(const uint8_t *p, const struct how *how,
                                        const uint8_t **open, scan_how vector)
{
    const uint8_t *const end = how->end;
    if (!how->quotes)
        return scan_for(p, end, '\n', '\n', '\n', vector);
    for (;;) {
        bool doubled;
        p = scan_for(p, end, '"', '\n', '\n', vector);
        if (LIKELY(p == end || *p == '\n'))
            return p;
        if (p[-1] == how->delimiter) {
            *open = p;
            p = closing_quote(p + 1, how, &doubled, vector);
            if (UNLIKELY(!p))
                return NULL;
        }
        p++;
    }
}

/* Fills the record up to the line end (or the end of the text) at p. */
ALWAYS_INLINE void end_record(struct parser *ps, const uint8_t *p, struct record *record)
{
    const uint8_t *start = ps->record;
    bool newline = p < ps->end;
    size_t cr = p > start && p[-1] == '\r';
    ps->at = p + newline;
    record->data = start;
    record->len = (size_t)(p - start) - cr;
    record->end_len = cr + newline;
    record->values = ps->value;
}

/* A record whose quote at `open` is not closed: it is the text up to the next line end. */
static enum parsed bad_record(struct parser *ps, const uint8_t *open, struct record *record)
{
    const uint8_t *p = memchr(open, '\n', (size_t)(ps->end - open));
    end_record(ps, p ? p : ps->end, record);
    record->complaint = "a quote is not closed";
    return PARSED_BAD;
}

/* Skips empty lines; NULL: the text ends. */
ALWAYS_INLINE const uint8_t *record_start(struct parser *ps)
{
    const uint8_t *p = ps->at, *end = ps->end;
    while (p < end && (*p == '\n' || (*p == '\r' && (p + 1 == end || p[1] == '\n'))))
        p++;
    ps->at = p;
    return p < end ? p : NULL;
}

ALWAYS_INLINE enum parsed csv_next(struct parser *ps, struct record *record, uint8_t delimiter,
                                   bool quotes, scan_how vector)
{
    const struct selection *s = ps->selection;
    const uint8_t *p = record_start(ps), *const end = ps->end, *open = p;
    if (!p)
        return PARSED_END;
    size_t most = s->dialect.record_max;
    const struct how how = {end,
                            (size_t)(end - p) > most ? p + most : end,
                            s->dialect.quoted_max,
                            delimiter,
                            quotes,
                            s->dialect.in_lines};
    ps->record = p;
    parser_clear(ps);
    for (size_t column = 0; column < s->n_columns; column++) {
        struct csv_field field;
        uint32_t slot = s->slot[column];
        open = p;
        if (UNLIKELY(!take_field(&field, p, &how, vector)))
            return bad_record(ps, open, record);
        if (slot != NO_SLOT && UNLIKELY(!take_value(ps, &field, &ps->value[slot])))
            return PARSED_NOMEM;
        p = field.next;
        if (p == end || *p == '\n')
            goto done;
        p++;
    }
    p = record_end(p - 1, &how, &open, vector);
    if (UNLIKELY(!p))
        return bad_record(ps, open, record);
done:
    if (s->copies)
        parser_share(ps);
    end_record(ps, p, record);
    return PARSED_RECORD;
}

/* ---- instances ------------------------------------------------------------------------------- */

static enum parsed csv_vector(struct parser *ps, struct record *record)
{
    return csv_next(ps, record, ps->selection->dialect.delimiter, true, SCAN_HAS_VECTOR);
}

static enum parsed csv_scalar(struct parser *ps, struct record *record)
{
    return csv_next(ps, record, ps->selection->dialect.delimiter, true, false);
}

static enum parsed tsv_vector(struct parser *ps, struct record *record)
{
    return csv_next(ps, record, ps->selection->dialect.delimiter, false, SCAN_HAS_VECTOR);
}

static enum parsed tsv_scalar(struct parser *ps, struct record *record)
{
    return csv_next(ps, record, ps->selection->dialect.delimiter, false, false);
}

parser_fn csv_parser(const struct dialect *dialect, bool vector)
{
    if (dialect->format == READ_TSV)
        return vector ? tsv_vector : tsv_scalar;
    return vector ? csv_vector : csv_scalar;
}

size_t csv_header_field(const struct dialect *dialect, const uint8_t **at, const uint8_t *end,
                        uint8_t *out)
{
    struct csv_field field;
    struct how how = {end,
                      end,
                      dialect->quoted_max,
                      dialect->delimiter,
                      dialect->format == READ_CSV,
                      dialect->in_lines};
    const uint8_t *p = *at;
    *at = NULL;
    if (!take_field(&field, p, &how, false)) {
        how.quotes = false;
        take_field(&field, p, &how, false);
    }
    if (field.next < end && *field.next == dialect->delimiter)
        *at = field.next + 1;
    if (field.quote)
        return join_field(&field, out);
    size_t len = (size_t)(field.stop - field.text);
    memcpy(out, field.text, len);
    return len;
}

size_t csv_fields(const struct dialect *dialect, const uint8_t *row, size_t len)
{
    const uint8_t *p = row, *const end = row + len;
    const struct how how = {end,
                            end,
                            dialect->quoted_max,
                            dialect->delimiter,
                            dialect->format == READ_CSV,
                            dialect->in_lines};
    struct csv_field field;
    size_t n = 1;
    for (; take_field(&field, p, &how, false) && field.next < end; p = field.next + 1)
        n++;
    return n;
}
