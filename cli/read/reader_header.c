/*
 * Headers in the middle of a text. Files are joined (cat, members of a gz file), and a server that is restarted writes
 * its header again, possibly with other columns: what follows is read with the new header.
 *
 * Zeek, W3C   a line #fields, #Fields: and the others that reader_columns.c reads; each replaces the earlier line
 *             of its name
 * CSV, TSV    a row of at least two different cells, of which each is the name of a column, or among which is the name
 *             of every column: the header again, in any order, with additional or missing columns. (A single column
 *             may well contain its own name as a value.)
 *
 * Few files have any, so a text is searched for lines that may be headers, at about 6 GB per second, while its segment is
 * cut. Only a text that has one is read by a parser that examines every row. A segment that does not begin with the
 * header of its file stores the one that it begins with, so that it can be read alone.
 */
#define _GNU_SOURCE
#include "reader_header.h"

#include <stdlib.h>

#include "base/base.h"
#include "reader_parse.h"
#include "reader_scan.h"

#define LONGEST(h) (h)->names.cell[(h)->longest].text, (h)->names.cell[(h)->longest].len

static bool is_table(const struct dialect *d)
{
    return (d->format == READ_CSV || d->format == READ_TSV) && !d->headless;
}

static bool is_hashed(const struct dialect *d)
{
    return d->format == READ_ZEEK || d->format == READ_W3C;
}

/* ---- lines with # ---------------------------------------------------------------------------- */

/* The length of the name of a directive; 0: the line is not a directive. */
static size_t directive_of(const struct dialect *d, const uint8_t *line, size_t len)
{
    static const char *const zeek[] = {"#separator",   "#set_separator", "#empty_field",
                                       "#unset_field", "#fields",        "#types"};
    static const char *const w3c[] = {"#Fields:", "#Date:"};
    const char *const *name = d->format == READ_ZEEK ? zeek : w3c;
    size_t n = d->format == READ_ZEEK ? sizeof zeek / sizeof *zeek : sizeof w3c / sizeof *w3c;
    for (size_t i = 0; i < n; i++) {
        size_t name_len = strlen(name[i]);
        if (len > name_len && memcmp(line, name[i], name_len) == 0)
            return name_len;
    }
    return 0;
}

/* Replaces the line of the same name in the header by `line`. New names invalidate the types. */
static enum turn take_directive(struct header *h, const struct dialect *d, const uint8_t *line,
                                size_t len)
{
    size_t name = directive_of(d, line, len), kept = 0;
    bool fields = name && len > 7 && memcmp(line, "#fields", 7) == 0;
    if (!name)
        return TURN_NONE;
    uint8_t *fresh = malloc(h->len + len + 2);
    bool same = false;
    if (!fresh)
        return TURN_FULL;
    for (size_t at = 0, next; at < h->len; at = next) {
        const uint8_t *old = h->data + at, *stop = memchr(old, '\n', h->len - at);
        size_t old_len = stop ? (size_t)(stop - old) : h->len - at;
        next = at + old_len + 1;
        bool bare = old_len > 0 && old[old_len - 1] == '\r';
        bool named = old_len > name && memcmp(old, line, name) == 0;
        if (named) /* the last one counts */
            same = old_len - bare == len && memcmp(old, line, len) == 0;
        if (named || (fields && old_len > 6 && memcmp(old, "#types", 6) == 0))
            continue;
        memcpy(fresh + kept, old, old_len);
        fresh[kept + old_len] = '\n';
        kept += old_len + 1;
    }
    if (same)
        return free(fresh), TURN_SAME;
    memcpy(fresh + kept, line, len);
    fresh[kept + len] = '\n';
    free(h->data);
    h->data = fresh;
    h->len = kept + len + 1;
    return TURN_OTHER;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void cells_free(struct cells *cells)
{
    free(cells->cell);
    free(cells->memory);
}

static int by_text(const void *a, const void *b)
{
    const struct text_cell *x = a, *y = b;
    return ORDER(x->len, y->len, memcmp(x->text, y->text, x->len));
}

/* The cells of a row, sorted, since a table may have a million columns; false: no memory. */
static bool cells_read(struct cells *cells, const struct dialect *d, const uint8_t *row, size_t len)
{
    size_t most = 1;
    for (size_t i = 0; i < len; i++)
        most += row[i] == d->delimiter;
    *cells = (struct cells){malloc(most * sizeof *cells->cell), 0, malloc(len + 1)};
    uint8_t *to = cells->memory;
    for (const uint8_t *at = row; cells->cell && to && at && cells->n < most;) {
        size_t n = csv_header_field(d, &at, row + len, to);
        cells->cell[cells->n++] = (struct text_cell){to, n};
        to += n;
    }
    if (cells->n)
        qsort(cells->cell, cells->n, sizeof *cells->cell, by_text);
    return cells->cell && cells->memory;
}

static bool cells_have(const struct cells *cells, const struct text_cell *wanted)
{
    return bsearch(wanted, cells->cell, cells->n, sizeof *wanted, by_text) != NULL;
}

/* Are all of `some` among `all`, and none of them twice? */
static bool cells_within(const struct cells *some, const struct cells *all)
{
    for (size_t i = 0; i < some->n; i++)
        if ((i && by_text(&some->cell[i - 1], &some->cell[i]) == 0) ||
            !cells_have(all, &some->cell[i]))
            return false;
    return true;
}

static const uint8_t *past_mark(const uint8_t *row, size_t *len)
{
    bool mark = *len >= 3 && memcmp(row, "\xEF\xBB\xBF", 3) == 0;
    *len -= mark ? 3 : 0;
    return mark ? row + 3 : row;
}

/* Is the first cell of a row one of the names? */
static bool first_is_name(const struct header *h, const struct dialect *d, const uint8_t *row,
                          size_t len)
{
    if (!(h->second[row[0]] >> ((len > 1 ? row[1] : '\n') & 63) & 1))
        return false;
    row = past_mark(row, &len);
    const uint8_t *stop = memchr(row, d->delimiter, len);
    struct text_cell first = {row, stop ? (size_t)(stop - row) : len};
    if (first.len && *row == '"') { /* cells with quotes inside are left to header_take() */
        if (first.len < 2 || memchr(row + 1, '"', first.len - 2) || row[first.len - 1] != '"')
            return true;
        first = (struct text_cell){row + 1, first.len - 2};
    }
    return cells_have(&h->names, &first);
}

/* Are all cells of the row names, or all names among the cells? */
static enum turn row_is(const struct header *h, const struct dialect *d, const uint8_t *row,
                        size_t len)
{
    struct cells cells;
    enum turn turn = TURN_NONE;
    if (!cells_read(&cells, d, row, len))
        turn = TURN_FULL;
    else if (cells.n > 1 && (cells_within(&cells, &h->names) || cells_within(&h->names, &cells)))
        turn = len == h->len && memcmp(row, h->data, len) == 0 ? TURN_SAME : TURN_OTHER;
    cells_free(&cells);
    return turn;
}

static enum turn take_row(struct header *h, const struct dialect *d, const uint8_t *row, size_t len)
{
    const uint8_t *end = row + len;
    if (len == 0 || !h->comes_again ||
        !(first_is_name(h, d, row, len) || scan_find(row, end, LONGEST(h), false) < end))
        return TURN_NONE;
    row = past_mark(row, &len);
    enum turn turn = row_is(h, d, row, len);
    if (turn == TURN_OTHER && !header_set(h, d, row, len))
        turn = TURN_FULL;
    return turn;
}

/* Collects the first bytes of names; quotes and a byte order mark may precede them. */
static void note_starts(struct header *h, uint8_t delimiter)
{
    const uint64_t any = ~UINT64_C(0), one = 1;
    memset(h->second, 0, sizeof h->second);
    h->longest = 0;
    h->second['"'] = h->second[0xEF] = any;
    for (size_t i = 0; i < h->names.n; i++) {
        const struct text_cell *c = &h->names.cell[i];
        if (c->len == 0)
            h->second[delimiter] = any;
        else
            h->second[c->text[0]] |= one << ((c->len > 1 ? c->text[1] : delimiter) & 63);
        if (c->len >= h->names.cell[h->longest].len && !memchr(c->text, '"', c->len))
            h->longest = i;
    }
    h->comes_again = h->names.n > 1 && h->names.cell[h->longest].len > 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

bool header_set(struct header *h, const struct dialect *d, const uint8_t *data, size_t len)
{
    uint8_t *fresh = malloc(len + 1);
    struct cells names = {0};
    bool ok = fresh && (!is_table(d) || cells_read(&names, d, data, len));
    if (!ok) {
        free(fresh);
        cells_free(&names);
        return false;
    }
    if (len)
        memcpy(fresh, data, len);
    header_free(h);
    h->data = fresh;
    h->len = len;
    h->names = names;
    note_starts(h, d->delimiter);
    return true;
}

void header_free(struct header *h)
{
    free(h->data);
    cells_free(&h->names);
    h->data = NULL;
    h->len = 0;
    h->names = (struct cells){0};
}

enum turn header_take(struct header *h, const struct dialect *d, const uint8_t *line, size_t len)
{
    return is_table(d)    ? take_row(h, d, line, len)
           : is_hashed(d) ? take_directive(h, d, line, len)
                          : TURN_NONE;
}

/* A row with all names contains the longest of them, whatever it begins with. */
static bool sees_longest(const struct header *h, const struct dialect *d, const uint8_t *text,
                         size_t len)
{
    const uint8_t *const end = text + len, *at = text;
    for (int hits = 0; (at = scan_find(at, end, LONGEST(h), false)) < end; hits++) {
        const uint8_t *row = memrchr(text, '\n', (size_t)(at - text));
        const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
        row = row ? row + 1 : text;
        stop = stop ? stop : end;
        size_t row_len = (size_t)(stop - row) - (stop > row && stop[-1] == '\r');
        row = past_mark(row, &row_len);
        if (hits == 16 || row_is(h, d, row, row_len) != TURN_NONE) /* it is an ordinary word */
            return true;
        at = stop;
    }
    return false;
}

bool header_sees(const struct header *h, const struct dialect *d, const uint8_t *text, size_t len)
{
    bool table = is_table(d) && h->comes_again, hashed = is_hashed(d);
    const uint8_t *end = text + len, *stop;
    for (const uint8_t *p = text; (table || hashed) && p < end; p = stop + 1) {
        stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        size_t line = (size_t)(stop - p) - (stop > p && stop[-1] == '\r');
        if (line && (table ? first_is_name(h, d, p, line) : *p == '#' && directive_of(d, p, line)))
            return true;
    }
    return table && sees_longest(h, d, text, len);
}
