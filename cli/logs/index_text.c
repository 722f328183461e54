/* The records of a text, gathered. See index_text.h. */
#include "index_text.h"

#include "read/reader_cut.h"
#include "read/reader_parse.h"

/* The record is one that may become another when the file grows. */
static void note_open(struct text_tally *t, const struct input_text *text,
                      const struct record *record)
{
    size_t at = (size_t)(record->data - text->data);
    if (at >= t->resume)
        return;
    t->resume = at;
    t->open_records = t->records;
    t->open_bad = t->bad;
}

/* Behind this record another may follow, whatever is there now. */
static void note_end(struct text_tally *t, const struct input_text *text,
                     const struct record *record)
{
    t->resume = (size_t)(record->data + record->len - text->data);
    t->open_records = t->records;
    t->open_bad = t->bad;
}

static tamis_error add_record(tamis_gather *gather, const struct record *record, size_t n,
                              uint64_t *present)
{
    tamis_key keys[TAMIS_ATTRIBUTES_MAX];
    uint64_t some = 0;
    for (size_t i = 0; i < n; i++) {
        const struct value *v = &record->values[i];
        bool there = v->state != VALUE_MISSING;
        keys[i].data = there ? v->len ? (const void *)v->data : "" : NULL;
        keys[i].len = there ? v->len : 0;
        some |= (uint64_t)there << i;
    }
    *present |= some;
    return tamis_gather_add(gather, keys);
}

tamis_error text_gather(struct parser *parser, const struct selection *selection,
                        const struct input_text *text, size_t n, tamis_gather *gather,
                        struct text_tally *t)
{
    struct record record;
    enum parsed parsed;
    bool csv = selection->dialect.format == READ_CSV;
    bool json = selection->dialect.format == READ_JSON; /* records end by themselves */
    bool closed = text->len == 0 || text->data[text->len - 1] == '\n';
    const uint8_t *open_end = closed || json ? NULL : text->data + text->len;
    *t = (struct text_tally){.resume = json ? 0 : text->len};
    tamis_error error = parser_begin(parser, selection, text->data, text->len);
    parser_context(parser, text);
    while (error == TAMIS_OK && (parsed = parser_next(parser, &record)) != PARSED_END) {
        if (UNLIKELY(parsed == PARSED_NOMEM))
            return TAMIS_ENOMEM;
        if (UNLIKELY(record.data + record.len + record.end_len == open_end ||
                     (csv && parsed == PARSED_BAD)))
            note_open(t, text, &record);
        error = add_record(gather, &record, n, &t->present);
        if (LIKELY(parsed == PARSED_RECORD)) {
            t->records++;
            t->unfit += record.unfit;
            if (json && !record.unfit)
                note_end(t, text, &record);
        } else if (t->bad++ == 0) {
            t->bad_line = parser_line(parser);
            t->complaint = record.complaint;
        }
    }
    tamis_gather_text(gather, text->len);
    t->open_records = t->resume < text->len ? t->records - t->open_records : 0;
    t->open_bad = t->resume < text->len ? t->bad - t->open_bad : 0;
    t->resume_line = count_lines(text->data, t->resume);
    return error;
}
