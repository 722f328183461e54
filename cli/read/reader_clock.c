/*
 * The state before a piece of text: the time, and the header in force. A line that does not fit its format has the time
 * of the record before it, which may be in another piece of the text: a search starts in the middle, and a segment is
 * read alone. So a segment stores the time before it, and a parser that starts in the middle looks back.
 *
 * The record before is the last one that has a value for its time; if that is not a time, none is known.
 *
 * Lines of a stack trace between the rows of a table are rows by its syntax. A row that has not as many fields as the
 * header, and no time where its time should be, does not fit: only its time is replaced, since it may as well be a row
 * whose last fields, all empty, were not written. Likewise an array between objects has the time of the record
 * before, like any other line that is not an object.
 */
#include "reader_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#include "reader_input.h"

static void keep_time(struct parser *ps, const struct read_value *value)
{
    ps->asked = true;
    ps->timed = false;
    ps->time_len = value->len <= TIME_KEPT ? value->len : 0;
    if (ps->time_len)
        memcpy(ps->time, value->data, ps->time_len);
}

/* Parses the stored time; false: there is none. */
static bool clock_read(struct parser *ps)
{
    if (ps->time_len) {
        ps->timed = time_read(&ps->clock, ps->time, ps->time_len, &ps->before);
        ps->time_len = 0;
    }
    return ps->timed;
}

/* Is the record a line between the rows of its table? Otherwise its time is kept. */
static bool between_rows(struct parser *ps, const struct record *record,
                         const struct read_value *time)
{
    const struct selection *s = ps->selection;
    struct stamp stamp;
    if (time->state == VALUE_PRESENT && time_read(&ps->clock, time->data, time->len, &stamp)) {
        ps->asked = ps->timed = true;
        ps->time_len = 0;
        ps->before = stamp;
        return false;
    }
    if (csv_fields(&s->dialect, record->data, record->len) != s->n_headed)
        return true;
    if (time->state != VALUE_MISSING)
        keep_time(ps, time);
    return false;
}

/* Keeps the time of a record that fits; false: it has none of its own. */
static bool own_time(struct parser *ps, struct record *record)
{
    const struct read_value *time = &ps->value[ps->selection->time];
    if (record->unfit)
        return false;
    if (ps->selection->n_headed)
        record->unfit = between_rows(ps, record, time);
    else if (time->state != VALUE_MISSING)
        keep_time(ps, time);
    return !record->unfit && time->state != VALUE_MISSING;
}

/* Is a record without a time of its own between those that have one? */
static bool between_records(const struct parser *ps, const struct record *record)
{
    const uint8_t *end = record->data + record->len;
    return record->unfit || ps->selection->dialect.format == READ_TEXT ||
           (selection_by_path(ps->selection) && *json_blanks(record->data, end) == '[');
}

/* Finds the last time in the records of [from, to). */
static bool last_time(struct parser *ps, const uint8_t *from, const uint8_t *to)
{
    struct record r;
    enum parsed parsed;
    bool found = false;
    ps->at = ps->damage = from;
    ps->end = to;
    while ((parsed = parser_row(ps, &r)) == PARSED_RECORD || parsed == PARSED_BAD)
        found |= parsed == PARSED_RECORD && own_time(ps, &r);
    ps->full |= parsed == PARSED_NOMEM;
    return found;
}

#define LOOK_FIRST ((size_t)4 << 10)

static void parser_look_back(struct parser *ps, const uint8_t *from, const uint8_t *to)
{
    const struct dialect *d = &ps->selection->dialect;
    const uint8_t *at = ps->at, *end = ps->end, *record = ps->record, *damage = ps->damage;
    size_t len = (size_t)(to - from);
    /* where a line is not always a record, everything is read */
    bool lines = len && !ps->turns && d->format != READ_JSON &&
                 (d->format != READ_CSV || ps->lined || d->in_lines || !memchr(from, '"', len));
    for (size_t span = LOOK_FIRST;; span *= 8) {
        const uint8_t *start = from, *line = NULL;
        if (lines && span < len) {
            line = memchr(to - span, '\n', span);
            if (!line)
                continue;
            start = line + 1;
        }
        if (last_time(ps, start, to) || !line)
            break;
    }
    ps->at = at;
    ps->end = end;
    ps->record = record;
    ps->damage = damage;
    parser_clear(ps);
}

/* Sets the time of a record between others; `valued`: it has values, which looking back overwrites. */
static void set_time(struct parser *ps, const struct record *record, bool valued,
                     struct read_value *time)
{
    struct record again;
    if (!ps->asked && ps->text < ps->data) {
        parser_look_back(ps, ps->text, ps->data);
        if (valued) {
            ps->at = record->data;
            ps->full |= ps->next(ps, &again) == PARSED_NOMEM;
        }
    }
    ps->asked = true;
    *time = (struct read_value){0};
    if (clock_read(ps))
        value_set(time, (const uint8_t *)ps->shown, time_write(ps->before, ps->shown));
}

void parser_complete(struct parser *ps, struct record *record)
{
    const struct selection *s = ps->selection;
    if (s->time != NO_SLOT) {
        struct read_value *time = &ps->value[s->time];
        bool valued = !record->unfit;
        if (!own_time(ps, record) && between_records(ps, record))
            set_time(ps, record, valued, time);
        for (size_t i = 0; s->copies && i < s->n; i++)
            if (s->copy[i] == s->time)
                ps->value[i] = *time;
    }
    if (s->line != NO_SLOT && ps->value[s->line].state == VALUE_MISSING)
        value_set(&ps->value[s->line], record->data, record->len);
    if (s->whole != NO_SLOT)
        value_set(&ps->value[s->whole], record->data, record->len);
}

/* ---- which attribute ------------------------------------------------------------------------- */

#define TIMES_MAX 128 /* more do not fit into a list of the index */

/* Splits the list. Names of a format come first. */
static size_t split_names(char *list, const char *first, const char *name[TIMES_MAX])
{
    size_t n = 0;
    if (first)
        name[n++] = first;
    for (char *end; n < TIMES_MAX && (end = strchr(list, '\n')); list = end + 1) {
        *end = 0;
        if (!first || strcmp(list, first) != 0)
            name[n++] = list;
    }
    return n;
}

tamis_error input_time_name(struct input *input, const uint8_t *text, size_t len,
                            tamis_reason *reason)
{
    struct dialect *d = &input->dialect;
    const char *name[TIMES_MAX], *best = NULL;
    size_t there[TIMES_MAX] = {0}, most = 0;
    struct parsing p = {0};
    struct record r;
    enum parsed parsed;
    if (!d->time || !strchr(d->time, '\n'))
        return TAMIS_OK;
    char *list = input->own->times = strdup(d->time);
    if (!list)
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    d->time = NULL;
    size_t n = split_names(list, format_of(d->format)->time, name);
    tamis_error error =
        parsing_begin(&p, d, name, n, input->header, input->header_len, text, len, reason);
    while (error == TAMIS_OK &&
           ((parsed = parser_next(p.parser, &r)) == PARSED_RECORD || parsed == PARSED_BAD))
        for (size_t i = 0; parsed == PARSED_RECORD && i < n; i++)
            there[i] += r.values[i].state == VALUE_PRESENT;
    for (size_t i = 0; i < n; i++)
        if (there[i] > most) {
            most = there[i];
            best = name[i];
        }
    parsing_end(&p);
    d->time = best;
    return error == TAMIS_ENOMEM ? error : TAMIS_OK;
}

/* ---- segments -------------------------------------------------------------------------------- */

tamis_error input_clock(struct input *input, tamis_reason *reason)
{
    struct input_private *own = input->own;
    const char *name = input->dialect.time;
    if (!name)
        name = format_of(input->dialect.format)->time;
    if (!name)
        return TAMIS_OK;
    tamis_error error = parsing_begin(&own->clock, &input->dialect, &name, 1, input->header,
                                      input->header_len, "", 0, reason);
    if (error != TAMIS_OK)
        parsing_end(&own->clock);
    return error == TAMIS_ENOMEM ? error : TAMIS_OK; /* otherwise there is no such column */
}

bool input_time_of(struct input *input, const struct input_text *text, size_t len,
                   struct stamp *time)
{
    const struct parsing *clock = &input->own->clock;
    struct parser *ps = clock->parser;
    if (!ps || parser_begin(ps, clock->selection, text->data, len) != TAMIS_OK)
        return false;
    parser_context(ps, text);
    if (ps->turns ||
        selection_absent(ps->selection, 0) != 0) /* otherwise there is no such column */
        parser_look_back(ps, text->data, text->data + len);
    bool timed = clock_read(ps);
    *time = ps->before;
    return timed;
}

/* The header in force after `len` bytes of a text that contains headers. Called with the lock. */
static tamis_error turn_over(struct input *input, const struct input_text *text, size_t len)
{
    struct input_private *own = input->own;
    const char *whole = READ_WHOLE;
    struct record r;
    enum parsed parsed;
    if (parsing_begin(&own->turner, &input->dialect, &whole, 1, input->header, input->header_len,
                      text->data, len, NULL) != TAMIS_OK)
        return TAMIS_ENOMEM;
    parser_context(own->turner.parser, text);
    while ((parsed = parser_row(own->turner.parser, &r)) == PARSED_RECORD || parsed == PARSED_BAD)
        ;
    return parsed == PARSED_NOMEM ? TAMIS_ENOMEM : TAMIS_OK;
}

tamis_error input_turn(struct input *input, struct input_text *text)
{
    struct input_private *own = input->own;
    text->of.turns = input->header && !own->calm &&
                     header_sees(&own->head, &input->dialect, text->data, text->len);
    if (!text->of.turns)
        return TAMIS_OK;
    tamis_error error = turn_over(input, text, text->len);
    if (error != TAMIS_OK)
        return error;
    const struct header *now = &own->turner.parser->head;
    text->of.turns = own->turner.parser->turned;
    if (now->len == own->head.len && memcmp(now->data, own->head.data, now->len) == 0)
        return TAMIS_OK;
    own->turned = true;
    return header_set(&own->head, &input->dialect, now->data, now->len) ? TAMIS_OK : TAMIS_ENOMEM;
}

bool input_before(struct input *input, const struct input_text *text, size_t len,
                  struct input_segment *segment)
{
    struct input_private *own = input->own;
    const uint8_t *header = text->of.header;
    size_t header_len = text->of.header_len;
    bool good = true;
    pthread_mutex_lock(&own->lock);
    if (text->passed && len == text->len) {
        segment->timed = text->timed_behind;
        segment->time_before = text->time_behind;
    } else {
        segment->timed = input_time_of(input, text, len, &segment->time_before);
    }
    segment->reference = text->of.reference;
    if (text->of.turns && (good = turn_over(input, text, len) == TAMIS_OK) &&
        own->turner.parser->turned) {
        header = own->turner.parser->head.data;
        header_len = own->turner.parser->head.len;
    }
    if (good && header && (good = (segment->header = malloc(header_len + 1)) != NULL)) {
        memcpy(segment->header, header, header_len);
        segment->header_len = header_len;
    }
    pthread_mutex_unlock(&own->lock);
    return good;
}
