/* The parser's memory, and the counting of lines. */
#include "reader_parse.h"

#include <stdlib.h>

#include "bits/kernel.h"
#include "reader_cut.h"
#include "reader_scan.h"

scan_how scan_choose(void)
{
    return SCAN_HAS_VECTOR && cpu_isa() != ISA_SCALAR;
}

struct parser *parser_new(void)
{
    return calloc(1, sizeof(struct parser));
}

void parser_free(struct parser *ps)
{
    if (!ps)
        return;
    free(ps->value);
    free(ps->seen);
    free(ps->scratch);
    free(ps->tail);
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

tamis_error parser_begin(struct parser *ps, const struct selection *s, const void *data, size_t len)
{
    void *value = ps->value, *seen = ps->seen;
    bool ok = renew(&value, &ps->n_values, s->n_slots, sizeof *ps->value);
    ok = renew(&seen, &ps->n_seen, s->n_nodes, sizeof *ps->seen) && ok;
    ps->value = value;
    ps->seen = seen;
    ps->selection = s;
    ps->data = ps->at = ps->record = ps->counted = data;
    ps->end = len ? ps->data + len : ps->data;
    ps->lines = 0;
    bool vector = scan_choose();
    ps->fit = format_of(s->dialect.format)->fit;
    ps->next = ps->fit                ? line_next
               : selection_by_path(s) ? json_parser(vector)
                                      : csv_parser(&s->dialect, vector);
    ps->text = data;
    ps->full = ps->asked = ps->timed = false;
    ps->time_len = 0;
    if (ps->clock.zone != s->dialect.zone)
        ps->clock = (struct time_context){.zone = s->dialect.zone};
    ps->clock.reference = 0;
    return ok ? TAMIS_OK : TAMIS_ENOMEM;
}

enum parsed parser_next(struct parser *ps, struct record *record)
{
    record->unfit = false;
    enum parsed parsed = ps->next(ps, record);
    if (UNLIKELY(parsed == PARSED_BAD)) {
        record->unfit = true;
        memset(ps->value, 0, ps->selection->n_slots * sizeof *ps->value);
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

bool parser_room(struct parser *ps, size_t len)
{
    size_t need = ps->scratch_len + len;
    if (LIKELY(need <= ps->scratch_room))
        return true;
    size_t room = need < 4096 ? 4096 : need + need / 2;
    uint8_t *fresh = malloc(room);
    if (!fresh)
        return false;
    for (size_t i = 0; i < ps->selection->n_slots; i++) {
        struct value *v = &ps->value[i];
        if (ps->scratch && (uintptr_t)v->data - (uintptr_t)ps->scratch < ps->scratch_len)
            v->data = fresh + (v->data - ps->scratch);
    }
    if (ps->scratch_len)
        memcpy(fresh, ps->scratch, ps->scratch_len);
    free(ps->scratch);
    ps->scratch = fresh;
    ps->scratch_room = room;
    return true;
}
