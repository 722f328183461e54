/* Formats of lines, and the fallback for every text: a line is a record, with a time if it
   starts with one. */
#include "reader_parse.h"

enum parsed line_next(struct parser *ps, struct record *record)
{
    const uint8_t *p = ps->at, *const end = ps->end, *line, *stop;
    do {
        if (p == end) {
            ps->at = end;
            return PARSED_END;
        }
        line = p;
        stop = memchr(p, '\n', (size_t)(end - p));
        p = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        stop -= stop > line && stop[-1] == '\r';
        if (stop > line && *line == '#' && ps->hashes) {
            ps->unended = p == stop ? line : NULL;
            if (ps->turns)
                parser_turn(ps, line, (size_t)(stop - line));
            stop = line;
        }
    } while (stop == line);
    ps->at = p;
    ps->record = line;
    record->data = line;
    record->len = (size_t)(stop - line);
    record->end_len = (size_t)(p - stop);
    record->values = ps->value;
    parser_clear(ps);
    record->unfit = !ps->fit(ps, line, stop);
    record->complaint = "it does not fit the format";
    if (record->unfit)
        parser_clear(ps);
    else if (ps->selection->copies)
        parser_share(ps);
    return ps->full ? PARSED_NOMEM : PARSED_RECORD;
}

/* A time at the start of the line, in brackets or not. */
bool text_fit(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    struct stamp stamp;
    size_t bracket;
    if (ps->selection->slot[0] == NO_SLOT)
        return true;
    size_t len = time_lead_line(&ps->clock, line, (size_t)(end - line), &bracket, &stamp);
    if (len)
        value_set(&ps->value[ps->selection->slot[0]], line + bracket, len);
    return true;
}
