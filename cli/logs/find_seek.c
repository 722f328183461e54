/*
 * The records of a text that may match. A value that is asked for as bytes stands in its record as
 * it is, unless something is escaped: a line of JSON with a backslash, a CSV field with quotes. So a
 * search for the bytes of a value finds the lines worth parsing, at several times the speed of
 * parsing all; where nearly every line is worth it, all are parsed.
 */
#define _GNU_SOURCE
#include "find.h"

#include <string.h>

#include "read/reader_cut.h"
#include "read/reader_parse.h"
#include "read/reader_scan.h"

#define DENSE 256 /* bytes between hits below which everything is parsed */

/* The longest value that a record must have. */
static const struct wanted *needle_of(const struct when *when, const struct selection *selection)
{
    const struct wanted *best = NULL;
    for (size_t i = 0; i < when->n; i++) {
        const struct clause *c = &when->clause[i];
        const struct wanted *v = c->value;
        if (c->type == TAMIS_BYTES && c->n == 1 && !v->missing && v->len &&
            selection_plain(selection, i) && (!best || v->len > best->len))
            best = v;
    }
    return best;
}

tamis_error seek_begin(struct seek *k, struct parser *parser, const struct selection *selection,
                       const struct when *when, const struct input_text *text)
{
    enum read_format format = selection->dialect.format;
    *k = (struct seek){.parser = parser,
                       .text = text,
                       .selection = selection,
                       .start = text->data,
                       .at = text->data,
                       .end = text->data + text->len,
                       .counted = text->data};
    k->needle = needle_of(when, selection);
    if (format == READ_CSV && text->len && memchr(text->data, '"', text->len))
        k->needle = NULL;
    if (format == READ_JSON) /* whose records are no lines */
        k->needle = NULL;
    k->escapes = format == READ_JSONL || format == READ_LOGFMT;
    if (k->needle)
        return TAMIS_OK;
    k->at = k->end;
    tamis_error error = parser_begin(parser, selection, text->data, text->len);
    parser_context(parser, text);
    return error;
}

#if SCAN_HAS_VECTOR
/* Where both the first and the last byte of the needle stand, 16 places at a time. */
static const uint8_t *search_vector(const uint8_t *p, const uint8_t *end, const uint8_t *needle,
                                    size_t len)
{
    const __m128i first = _mm_set1_epi8((char)needle[0]),
                  last = _mm_set1_epi8((char)needle[len - 1]);
    for (; (size_t)(end - p) >= len + 15; p += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)p);
        __m128i b = _mm_loadu_si128((const __m128i *)(p + len - 1));
        __m128i both = _mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last));
        for (unsigned mask = (unsigned)_mm_movemask_epi8(both); mask; mask &= mask - 1) {
            const uint8_t *at = p + __builtin_ctz(mask);
            if (memcmp(at, needle, len) == 0)
                return at;
        }
    }
    return (size_t)(end - p) < len ? NULL : memmem(p, (size_t)(end - p), needle, len);
}
#endif

/* The needle in [p, end), else end. */
static const uint8_t *search(const uint8_t *p, const uint8_t *end, const struct wanted *needle)
{
    const uint8_t *at;
#if SCAN_HAS_VECTOR
    if (scan_choose())
        at = search_vector(p, end, needle->data, needle->len);
    else
#endif
        at = memmem(p, (size_t)(end - p), needle->data, needle->len);
    return at ? at : end;
}

/* The next place worth parsing from k->at on; the end if there is none. */
static const uint8_t *next_place(struct seek *k)
{
    if (k->hit < k->at)
        k->hit = search(k->at, k->end, k->needle);
    if (!k->escapes)
        return k->hit;
    if (k->escape < k->at) { /* up to the hit will do */
        const uint8_t *at = memchr(k->at, '\\', (size_t)(k->hit - k->at));
        k->escape = at ? at : k->hit;
    }
    return k->escape < k->hit ? k->escape : k->hit;
}

/* The line of the next place goes to the parser; false: there is none. */
static bool next_line(struct seek *k, tamis_error *error)
{
    const uint8_t *place = next_place(k), *line, *end;
    if (place == k->end)
        return false;
    line = memrchr(k->at, '\n', (size_t)(place - k->at));
    line = line ? line + 1 : k->at;
    end = memchr(place, '\n', (size_t)(k->end - place));
    end = end ? end + 1 : k->end;
    k->runs++;
    if (k->runs > 64 && k->runs * DENSE > (uint64_t)(end - k->start))
        end = k->end;
    *error = parser_begin(k->parser, k->selection, line, (size_t)(end - line));
    parser_context(k->parser, k->text);
    k->at = end;
    return true;
}

enum parsed seek_next(struct seek *k, struct record *record)
{
    for (;;) {
        tamis_error error = TAMIS_OK;
        if (!k->needle || k->running) {
            enum parsed parsed = parser_next(k->parser, record);
            if (parsed != PARSED_END || !k->needle)
                return parsed;
            k->running = false;
        }
        if (k->at == k->end || !next_line(k, &error))
            return PARSED_END;
        if (error != TAMIS_OK)
            return PARSED_NOMEM;
        k->running = true;
    }
}

uint64_t seek_line(struct seek *k, const struct record *record)
{
    k->lines += count_lines(k->counted, (size_t)(record->data - k->counted));
    k->counted = record->data;
    return k->lines;
}
