/* The parser: its memory, the header in force, counting lines. */
#include "reader_parse.h"
#include "regex.h"

#include <stdlib.h>

#include "reader_cut.h"
#include "reader_scan.h"

scan_how scan_choose(void)
{
    return SCAN_HAS_VECTOR && cpu_isa() != ISA_SCALAR;
}

struct chunk {
    struct chunk *next;
    size_t room;
    _Alignas(16) uint8_t data[];
};

#define CHUNK_MIN ((size_t)4096)

static void use_chunk(struct parser *ps, struct chunk *chunk)
{
    ps->chunk = chunk;
    ps->scratch = chunk->data;
    ps->scratch_room = chunk->room;
    ps->scratch_len = 0;
}

struct parser *parser_new(void)
{
    return calloc(1, sizeof(struct parser));
}

void parser_free(struct parser *ps)
{
    if (!ps)
        return;
    matcher_free(ps->matcher);
    header_free(&ps->head);
    selection_free(ps->own);
    free(ps->value);
    free(ps->seen);
    free(ps->follower);
    free(ps->tail);
    for (struct chunk *next; ps->chunks; ps->chunks = next) {
        next = ps->chunks->next;
        free(ps->chunks);
    }
    free(ps);
}

/* An array of at least n zeroed elements in place of *array, which had room for *room. */
static bool renew(void **array, size_t *room, size_t n, size_t size)
{
    if (n <= *room)
        return true;
    void *fresh = calloc(n, size);
    if (!fresh)
        return false;
    free(*array);
    *array = fresh;
    *room = n;
    return true;
}

static void set_piece(struct parser *ps, const void *data, size_t len)
{
    ps->data = ps->at = ps->record = ps->counted = ps->damage = data;
    ps->end = len ? ps->data + len : ps->data;
    ps->lines = 0;
    ps->asked = ps->timed = false;
    ps->time_len = 0;
}

tamis_error parser_begin(struct parser *ps, const struct selection *s, const void *data, size_t len)
{
    void *value = ps->value, *seen = ps->seen, *tail = ps->tail, *follower = ps->follower;
    size_t followers = 2 * (size_t)s->n_nodes;
    bool ok = renew(&value, &ps->n_values, s->n_slots, sizeof *ps->value);
    ok = renew(&seen, &ps->n_seen, s->n_nodes, sizeof *ps->seen) && ok;
    ok = renew(&follower, &ps->n_followers, followers, sizeof *ps->follower) && ok;
    if (s->n_nodes)
        ok = renew(&tail, &ps->n_tails, s->n_slots, sizeof *ps->tail) && ok;
    ps->value = value;
    ps->seen = seen;
    ps->tail = tail;
    ps->follower = follower;
    if (followers && ok)
        memset(follower, 0xFF, followers * sizeof *ps->follower);
    ps->selection = s;
    ps->turns = ps->turned = false;
    ps->unended = NULL;
    ps->headers = 0;
    if (UNLIKELY(ps->head.data)) {
        selection_free(ps->own);
        ps->own = NULL;
        header_free(&ps->head);
    }
    set_piece(ps, data, len);
    bool vector = scan_choose();
    ps->fit = format_of(s->dialect.format)->fit;
    ok = (s->dialect.format != READ_PATTERN || pattern_begin(ps)) && ok;
    ps->next = ps->fit                           ? line_next
               : s->dialect.format == READ_JSONL ? json_parser(vector)
               : s->dialect.format == READ_JSON  ? array_next
                                                 : csv_parser(&s->dialect, vector);
    ps->hashes = s->dialect.format == READ_ZEEK || s->dialect.format == READ_W3C;
    ps->text = data;
    ps->full = ps->lined = false;
    if (ps->clock.zone != s->dialect.zone)
        ps->clock = (struct time_context){.zone = s->dialect.zone};
    ps->clock.reference = 0;
    return ok ? TAMIS_OK : TAMIS_ENOMEM;
}

tamis_error parsing_begin(struct parsing *p, const struct dialect *dialect,
                          const char *const *names, size_t n, const uint8_t *header,
                          size_t header_len, const void *data, size_t len, tamis_reason *reason)
{
    tamis_error error = TAMIS_OK;
    if (!p->parser && !(p->parser = parser_new()))
        error = TAMIS_ENOMEM;
    if (error == TAMIS_OK && !p->selection)
        error = selection_new(&p->selection, dialect, names, n, header, header_len, reason);
    return error == TAMIS_OK ? parser_begin(p->parser, p->selection, data, len) : error;
}

void parsing_end(struct parsing *p)
{
    parser_free(p->parser);
    selection_free(p->selection);
    *p = (struct parsing){0};
}

/* ---- headers in the middle ------------------------------------------------------------------- */

/* Replaces the selection by one for the header in force. */
static void turn_selection(struct parser *ps)
{
    const struct selection *s = ps->selection;
    const char **names = malloc(s->n * sizeof *names), *name = s->names;
    struct selection *fresh = NULL;
    tamis_error error = names ? TAMIS_OK : TAMIS_ENOMEM;
    for (size_t i = 0; names && i < s->n; i++, name += strlen(name) + 1)
        names[i] = name;
    if (names)
        error = selection_new(&fresh, &s->dialect, names, s->n, ps->head.data, ps->head.len, NULL);
    free(names);
    ps->full |= error == TAMIS_ENOMEM;
    if (!fresh) /* no new one, with a million columns: what was known is still valid */
        return;
    selection_free(ps->own);
    ps->selection = ps->own = fresh;
}

bool parser_turn(struct parser *ps, const uint8_t *line, size_t len)
{
    enum turn turn = header_take(&ps->head, &ps->selection->dialect, line, len);
    ps->full |= turn == TURN_FULL;
    if (turn == TURN_OTHER)
        turn_selection(ps);
    ps->turned |= turn == TURN_OTHER || (turn == TURN_SAME && !ps->hashes);
    return turn != TURN_NONE;
}

void parser_piece(struct parser *ps, const struct input_text *text, const void *data, size_t len)
{
    set_piece(ps, data, len);
    ps->timed = text->of.timed;
    ps->before = text->of.time_before;
}

void parser_context(struct parser *ps, const struct input_text *text)
{
    const struct selection *s = ps->selection;
    ps->text = text->data;
    ps->timed = text->of.timed;
    ps->lined = text->of.lined;
    ps->before = text->of.time_before;
    ps->clock.reference = text->of.reference;
    ps->turns = text->of.turns;
    if (!text->of.header && !text->of.turns)
        return;
    const uint8_t *header = text->of.header ? text->of.header : s->header;
    size_t len = text->of.header ? text->of.header_len : s->header_len;
    ps->full |= !header_set(&ps->head, &s->dialect, header, len);
    if (text->of.header && !ps->full)
        turn_selection(ps);
}

const uint8_t *parser_header(const struct parser *ps, size_t *len)
{
    *len = ps->head.data ? ps->head.len : ps->selection->header_len;
    return ps->head.data ? ps->head.data : ps->selection->header;
}

enum parsed parser_row(struct parser *ps, struct record *record)
{
    enum parsed parsed;
    record->unfit = false;
    while ((parsed = ps->next(ps, record)) == PARSED_RECORD && UNLIKELY(ps->turns) && !ps->hashes &&
           parser_turn(ps, record->data, record->len)) {
        ps->unended = record->end_len ? NULL : record->data;
        ps->headers++;
    }
    return UNLIKELY(ps->full) ? PARSED_NOMEM : parsed;
}

enum parsed parser_next(struct parser *ps, struct record *record)
{
    enum parsed parsed = parser_row(ps, record);
    if (UNLIKELY(parsed == PARSED_BAD)) {
        record->unfit = true;
        parser_clear(ps);
    }
    if (ps->selection->completes && LIKELY(parsed == PARSED_RECORD || parsed == PARSED_BAD)) {
        parser_complete(ps, record);
        if (UNLIKELY(ps->full))
            return PARSED_NOMEM;
    }
    return parsed;
}

void parser_share(struct parser *ps)
{
    const uint32_t *copy = ps->selection->copy;
    for (size_t i = 0; i < ps->selection->n; i++)
        ps->value[i] = ps->value[copy[i]];
}

uint64_t parser_line(struct parser *ps)
{
    ps->lines += count_lines(ps->counted, (size_t)(ps->record - ps->counted));
    ps->counted = ps->record;
    return ps->lines;
}

void parser_clear(struct parser *ps)
{
    memset(ps->value, 0, ps->selection->n_slots * sizeof *ps->value);
    ps->scratch_len = 0;
    if (UNLIKELY(ps->chunk != ps->chunks))
        use_chunk(ps, ps->chunks);
}

bool parser_room(struct parser *ps, size_t len)
{
    if (LIKELY(ps->scratch_room - ps->scratch_len >= len))
        return true;
    struct chunk *next = ps->chunk ? ps->chunk->next : NULL;
    while (next && next->room < len)
        next = next->next;
    if (!next) { /* each is at least twice as large as the one before: there are few, and little is
                    wasted */
        size_t room = ps->chunk ? 2 * ps->chunk->room : CHUNK_MIN;
        room = room < len ? len : room;
        next = malloc(sizeof *next + room);
        if (!next)
            return false;
        next->room = room;
        next->next = ps->chunk ? ps->chunk->next : NULL;
        *(ps->chunk ? &ps->chunk->next : &ps->chunks) = next;
    }
    use_chunk(ps, next);
    return true;
}

struct read_value *parser_element(struct parser *ps, struct read_value *last)
{
    const size_t align = _Alignof(struct read_value);
    if (!parser_room(ps, sizeof(struct read_value) + align - 1)) {
        ps->full = true;
        return NULL;
    }
    ps->scratch_len = (ps->scratch_len + align - 1) & ~(align - 1);
    struct read_value *next = (struct read_value *)(void *)(ps->scratch + ps->scratch_len);
    ps->scratch_len += sizeof *next;
    *next = (struct read_value){0};
    last->next = next;
    return next;
}
