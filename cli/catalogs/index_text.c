/* Gathers the records of a text. See index_text.h. */
#include "index_text.h"

#include <stdlib.h>

#include "read/reader_cut.h"
#include "read/reader_parse.h"

/* The record may change when the file grows. */
static void note_open(struct text_tally *t, const struct input_text *text,
                      const struct record *record)
{
    size_t at = (size_t)(record->data - text->data);
    if (at >= t->resume)
        return;
    t->resume = at;
    t->open = t->count;
}

/* Another record may follow this one when the file grows. */
static void note_end(struct text_tally *t, const struct input_text *text,
                     const struct record *record)
{
    t->resume = (size_t)(record->data + record->len - text->data);
    t->open = t->count;
}

static bool room_of(struct text_keys *k, size_t n)
{
    if (n <= k->room)
        return true;
    tamis_key *key = realloc(k->key, 2 * n * sizeof *key);
    if (key)
        k->key = key;
    char(*time)[TIME_NORMAL_MAX] = key ? realloc(k->time, 2 * n * sizeof *time) : NULL;
    if (time) {
        k->time = time;
        k->room = 2 * n;
    }
    return time != NULL;
}

void text_keys_free(struct text_keys *k)
{
    free(k->key);
    free(k->time);
}

/* Times in their normal form: the library knows neither zones nor omitted years. */
static tamis_key key_of(struct text_keys *k, const struct read_value *v, size_t at, bool time)
{
    size_t n = 0;
    if (v->state == VALUE_MISSING)
        return (tamis_key){NULL, 0};
    if (time)
        n = time_normal(&k->clock, v->data, v->len, k->time[at]);
    if (n)
        return (tamis_key){k->time[at], n};
    return (tamis_key){v->len ? (const void *)v->data : "", v->len};
}

/* Some value is a list. */
static tamis_error add_lists(struct text_keys *k, const struct record *record, tamis_gather *gather)
{
    tamis_values values[TAMIS_ATTRIBUTES_MAX];
    size_t at = 0, total = 0;
    for (size_t i = 0; i < k->n; i++)
        for (const struct read_value *v = &record->values[i]; v; v = v->next)
            total++;
    if (!room_of(k, total))
        return TAMIS_ENOMEM;
    for (size_t i = 0; i < k->n; i++) {
        const struct read_value *v = &record->values[i];
        values[i] = (tamis_values){k->key + at, 0};
        for (; v && v->state != VALUE_MISSING; v = v->next, at++, values[i].n++)
            k->key[at] = key_of(k, v, at, k->times >> i & 1);
    }
    return tamis_gather_add_lists(gather, values);
}

static tamis_error add_record(struct text_keys *k, const struct record *record,
                              tamis_gather *gather, uint64_t *present)
{
    uint64_t some = 0;
    bool lists = false;
    for (size_t i = 0; i < k->n; i++) {
        const struct read_value *v = &record->values[i];
        bool there = v->state != VALUE_MISSING;
        const void *data = v->len ? (const void *)v->data : "";
        k->key[i] = (tamis_key){there ? data : NULL, there ? v->len : 0};
        some |= (uint64_t)there << i;
        lists |= v->next != NULL;
    }
    *present |= some;
    if (UNLIKELY(lists))
        return add_lists(k, record, gather);
    for (uint64_t left = k->times & some; left; left &= left - 1) {
        size_t i = (size_t)__builtin_ctzll(left);
        k->key[i] = key_of(k, &record->values[i], i, true);
    }
    return tamis_gather_add(gather, k->key);
}

bool text_keys_start(struct text_keys *k, const tamis_schema *schema, const char *zone)
{
    *k = (struct text_keys){.n = tamis_schema_attributes(schema), .clock = {.zone = zone}};
    for (uint32_t i = 0; i < k->n; i++)
        k->times |= (uint64_t)(tamis_schema_type(schema, i) == TAMIS_TIME) << i;
    return room_of(k, TAMIS_ATTRIBUTES_MAX);
}

tamis_error text_gather(struct text_keys *keys, struct parser *parser,
                        const struct selection *selection, const struct input_text *text,
                        tamis_gather *gather, struct text_tally *t)
{
    struct record record;
    enum parsed parsed;
    bool csv = selection->dialect.format == READ_CSV;
    bool json = selection->dialect.format == READ_JSON; /* records need no line end */
    bool closed = text->len == 0 || text->data[text->len - 1] == '\n';
    const uint8_t *open_end = closed || json ? NULL : text->data + text->len;
    *t = (struct text_tally){.resume = json ? 0 : text->len};
    tamis_error error = parser_begin(parser, selection, text->data, text->len);
    parser_context(parser, text);
    keys->clock.reference = text->of.reference;
    while (error == TAMIS_OK && (parsed = parser_next(parser, &record)) != PARSED_END) {
        if (UNLIKELY(parsed == PARSED_NOMEM))
            return TAMIS_ENOMEM;
        if (UNLIKELY(record.data + record.len + record.end_len == open_end ||
                     (csv && parsed == PARSED_BAD)))
            note_open(t, text, &record);
        error = add_record(keys, &record, gather, &t->present);
        if (LIKELY(parsed == PARSED_RECORD)) {
            t->count.records++;
            t->count.unfit += record.unfit;
            if (json && !record.unfit)
                note_end(t, text, &record);
        } else if (t->count.bad++ == 0) {
            t->bad_line = parser_line(parser);
            t->complaint = record.complaint;
        }
    }
    t->headers = parser->headers;
    if (parser->unended) /* a header may still change */
        note_open(t, text, &(struct record){.data = parser->unended});
    tamis_gather_text(gather, text->len);
    struct counts before = t->resume < text->len ? t->open : t->count;
    t->open = t->count;
    counts_take(&t->open, &before);
    bool whole = text->passed && t->resume == text->len;
    t->resume_line = whole ? text->lines : count_lines(text->data, t->resume);
    return error;
}
