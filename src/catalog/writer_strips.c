/* Writes strips to the new file. See catalog_writer.h. */
#include "catalog_writer.h"

#include <stdlib.h>

#include "base/err.h"
#include "tamis/catalog.h"

/* ---- the new file ---------------------------------------------------------------------------- */

tamis_error new_file_init(tamis_catalog_writer *w, tamis_reason *reason)
{
    struct outline o = {.kind = KIND_CATALOG,
                        .body_len = catalog_body_len(&w->schema),
                        .sections = CATALOG_SECTIONS};
    w->sink.start = w->sink.at = outline_header_len(&o);
    w->sink.buffer = mem_new(&w->allocator, 1, SINK_BUFFER);
    return w->sink.buffer ? TAMIS_OK : writer_no_memory(reason);
}

void new_file_free(tamis_catalog_writer *w)
{
    mem_free(&w->allocator, w->sink.buffer, 1, SINK_BUFFER);
    mem_free(&w->allocator, w->sink.pages, w->sink.room, sizeof *w->sink.pages);
}

/* The checksums so far form a page, or the last part of one. */
static tamis_error sums_flush(tamis_catalog_writer *w, tamis_reason *reason)
{
    struct new_file *o = &w->sink;
    size_t len = o->n_sums * sizeof *o->sums;
    if (!ROOM_FOR_ONE(w, sink.pages, sink.n, sink.room))
        return writer_no_memory(reason);
    struct sums_page page = {spill_room(&w->spill, len), hash_of(o->sums, len)};
    o->pages[o->n++] = page;
    o->n_sums = 0;
    return spill_put(w, o->sums, len, page.at, reason);
}

/* The buffer is a whole number of pages, except the last time. */
static tamis_error new_file_flush(tamis_catalog_writer *w, tamis_reason *reason)
{
    struct new_file *o = &w->sink;
    tamis_error e = TAMIS_OK;
    for (size_t from = 0; from < o->used && e == TAMIS_OK; from += CATALOG_PAGE) {
        o->sums[o->n_sums++] =
            hash_of(o->buffer + from, (size_t)min_u64(CATALOG_PAGE, o->used - from));
        if (o->n_sums == SINK_SUMS)
            e = sums_flush(w, reason);
    }
    int error = e == TAMIS_OK ? file_write(w->file.fd, o->buffer, o->used, (int64_t)o->at) : 0;
    if (error)
        e = file_fail(reason, error, w->path, "writing");
    o->at += o->used;
    o->used = 0;
    return e;
}

tamis_error new_file_put(tamis_catalog_writer *w, const void *data, uint64_t len,
                         tamis_reason *reason)
{
    const uint8_t *from = data;
    while (len) {
        size_t some = (size_t)min_u64(len, SINK_BUFFER - w->sink.used);
        memcpy(w->sink.buffer + w->sink.used, from, some);
        w->sink.used += some;
        from += some;
        len -= some;
        if (w->sink.used < SINK_BUFFER)
            break;
        tamis_error e = new_file_flush(w, reason);
        if (e != TAMIS_OK)
            return e;
    }
    return TAMIS_OK;
}

tamis_error new_file_put_spilled(tamis_catalog_writer *w, uint64_t at, uint64_t len,
                                 tamis_reason *reason)
{
    uint8_t bytes[4096];
    tamis_error e = TAMIS_OK;
    for (uint64_t some; len && e == TAMIS_OK; at += some, len -= some) {
        some = min_u64(len, sizeof bytes);
        e = spill_get(w, bytes, (size_t)some, at, reason);
        if (e == TAMIS_OK)
            e = new_file_put(w, bytes, some, reason);
    }
    return e;
}

tamis_error new_file_copy(tamis_catalog_writer *w, uint64_t from, uint64_t len,
                          tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    for (uint64_t at = 0, some; at < len && e == TAMIS_OK; at += some) {
        some = min_u64(len - at, CATALOG_WINDOW);
        mapping_will_need(w->old->data + from + at, some);
        e = catalog_check(w->old, from + at, some, reason);
        if (e == TAMIS_OK)
            e = new_file_put(w, w->old->data + from + at, some, reason);
        tamis_catalog_rest(w->old);
    }
    return e;
}

tamis_error new_file_fill(tamis_catalog_writer *w, uint64_t to, tamis_reason *reason)
{
    static const uint8_t zeros[SECTION_ALIGN];
    return new_file_put(w, zeros, to - (w->sink.at + w->sink.used), reason);
}

tamis_error new_file_align(tamis_catalog_writer *w, tamis_reason *reason)
{
    return new_file_fill(w, round_up(w->sink.at + w->sink.used, SECTION_ALIGN), reason);
}

tamis_error new_file_end(tamis_catalog_writer *w, tamis_reason *reason)
{
    tamis_error e = w->sink.used ? new_file_flush(w, reason) : TAMIS_OK;
    return e == TAMIS_OK && w->sink.n_sums ? sums_flush(w, reason) : e;
}

/* ---- a strip --------------------------------------------------------------------------------- */

/* Memory for one strip: the rows of a block, and a window of every column. Columns are an odd
   number of cache lines apart, so that they do not collide in the cache. */
struct strip_room {
    uint64_t window, stride; /* in words */
    uint8_t rows[64 * BLOCK_WORDS * STRIP_COLUMNS / 8];
    uint64_t words[];
};

static size_t strip_room_size(uint64_t stride, uint32_t n)
{
    return sizeof(struct strip_room) + (size_t)stride * n * sizeof(uint64_t);
}

static struct strip_room *strip_room_new(const tamis_catalog_writer *w, uint64_t rows, uint32_t n)
{
    uint64_t most = w->memory / (WINDOW_SHARE * STRIP_COLUMNS * sizeof(uint64_t));
    uint64_t window = round_up((rows + 63) / 64, BLOCK_WORDS);
    window = min_u64(window, max_u64(BLOCK_WORDS, most / BLOCK_WORDS * BLOCK_WORDS));
    window = min_u64(window, WINDOW_WORDS);
    struct strip_room *room = mem_new(&w->allocator, 1, strip_room_size(window + 8, n));
    if (room) {
        room->window = window;
        room->stride = window + 8;
    }
    return room;
}

/* Reads columns from the rows of an old strip, from row `first` on. */
static void window_old(const tamis_catalog_writer *w, const struct column_source *sources,
                       uint32_t n, uint64_t first, uint64_t n_rows, uint64_t *words,
                       uint64_t stride)
{
    const struct catalog_strip *old = &w->old->strips[sources[0].strip];
    uint64_t *wanted[STRIP_COLUMNS] = {0};
    for (uint32_t i = 0; i < n; i++)
        wanted[sources[i].at] = words + i * stride;
    strip_columns(w->old->data + old->offset + strip_len(first, old->width), n_rows, old->width,
                  wanted, old->n);
    tamis_catalog_rest(w->old);
}

/* Reads `n_rows` rows from `first` on of all columns. */
static tamis_error window_read(const tamis_catalog_writer *w, const struct column_source *sources,
                               uint32_t n, uint64_t first, uint64_t n_rows, struct strip_room *room,
                               tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0, some; i < n && e == TAMIS_OK; i += some) {
        const struct column_source *s = &sources[i];
        uint64_t *words = room->words + i * room->stride;
        some = 1;
        if (s->strip == STRIP_NONE) {
            e = spill_get(w, words, (size_t)(n_rows + 63) / 64 * 8, s->at + first / 8, reason);
            continue;
        }
        while (i + some < n && s[some].strip == s->strip)
            some++;
        window_old(w, s, some, first, n_rows, words, room->stride);
    }
    return e;
}

static tamis_error strip_record(tamis_catalog_writer *w, uint32_t shape, uint32_t n,
                                tamis_reason *reason)
{
    if (!ROOM_FOR_ONE(w, strips, n_strips, strips_room))
        return writer_no_memory(reason);
    w->strips[w->n_strips++] =
        (struct catalog_strip){.shape = shape, .width = strip_width(n), .n = n};
    return TAMIS_OK;
}

static tamis_error column_record(tamis_catalog_writer *w, uint32_t segment, tamis_reason *reason)
{
    if (!ROOM_FOR_ONE(w, columns, n_columns, columns_room))
        return writer_no_memory(reason);
    w->columns[w->n_columns++] = segment;
    return TAMIS_OK;
}

static tamis_error window_write(tamis_catalog_writer *w, uint32_t n, uint64_t n_rows,
                                struct strip_room *room, tamis_reason *reason)
{
    uint64_t words = (n_rows + 63) / 64;
    uint32_t width = strip_width(n);
    const uint64_t *columns[STRIP_COLUMNS];
    tamis_error e = TAMIS_OK;
    for (uint64_t first = 0; first < words && e == TAMIS_OK; first += BLOCK_WORDS) {
        for (uint32_t i = 0; i < n; i++)
            columns[i] = room->words + i * room->stride + first;
        strip_rows(columns, n, min_u64(BLOCK_WORDS, words - first), width, room->rows);
        uint64_t here = min_u64(64 * BLOCK_WORDS, n_rows - 64 * first);
        e = new_file_put(w, room->rows, strip_len(here, width), reason);
    }
    return e;
}

static tamis_error strip_bytes(tamis_catalog_writer *w, const struct shape_work *shape, uint32_t n,
                               struct strip_room *room, tamis_reason *reason)
{
    uint64_t rows = shape->shape.plan.units, window = 64 * room->window;
    tamis_error e = new_file_align(w, reason);
    for (uint64_t first = 0; first < rows && e == TAMIS_OK; first += window) {
        uint64_t here = min_u64(window, rows - first);
        e = window_read(w, shape->columns, n, first, here, room, reason);
        if (e == TAMIS_OK)
            e = window_write(w, n, here, room, reason);
    }
    return e;
}

static tamis_error strip_write(tamis_catalog_writer *w, struct shape_work *shape, uint32_t n,
                               tamis_reason *reason)
{
    uint64_t bytes = 8 * strip_column_words(shape->shape.plan.units);
    struct strip_room *room = strip_room_new(w, shape->shape.plan.units, n);
    if (!room)
        return writer_no_memory(reason);
    tamis_error e = strip_bytes(w, shape, n, room, reason);
    mem_free(&w->allocator, room, 1, strip_room_size(room->stride, n));
    if (e == TAMIS_OK)
        e = strip_record(w, (uint32_t)(shape - w->shapes), n, reason);
    for (uint32_t i = 0; i < n && e == TAMIS_OK; i++) {
        e = column_record(w, shape->columns[i].segment, reason);
        if (shape->columns[i].strip == STRIP_NONE)
            spill_forget(&w->spill, shape->columns[i].at, bytes);
    }
    memmove(shape->columns, shape->columns + n, (shape->n - n) * sizeof *shape->columns);
    shape->n -= n;
    return e;
}

static int compare_sources(const void *x, const void *y)
{
    const struct column_source *a = x, *b = y;
    return ORDER(a->segment, b->segment, ORDER(a->at, b->at, 0));
}

/* The columns of a segment stay together. */
tamis_error strips_write(tamis_catalog_writer *w, struct shape_work *shape, bool all,
                         tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    if (shape->n && (shape->n >= STRIP_COLUMNS || all))
        qsort(shape->columns, shape->n, sizeof *shape->columns, compare_sources);
    while (e == TAMIS_OK && (shape->n >= STRIP_COLUMNS || (all && shape->n))) {
        size_t n = shape->n < STRIP_COLUMNS ? shape->n : STRIP_COLUMNS;
        while (n < shape->n && n > 1 && shape->columns[n].segment == shape->columns[n - 1].segment)
            n--;
        e = strip_write(w, shape, (uint32_t)n, reason);
    }
    return e;
}

/* ---- strips of the old version --------------------------------------------------------------- */

/* Reads the segments of its columns once, and counts those that remain. */
static tamis_error strip_segments(const tamis_catalog_writer *w, const struct catalog_strip *strip,
                                  uint32_t segments[STRIP_COLUMNS], uint32_t *live,
                                  tamis_reason *reason)
{
    *live = 0;
    for (uint32_t i = 0; i < strip->n; i++) {
        if (!catalog_column_segment(w->old, strip->column + i, &segments[i], reason))
            return TAMIS_EFORMAT;
        *live += segments[i] != STRIP_NONE && !w->segments[segments[i]].dropped;
    }
    return TAMIS_OK;
}

/* Checks an entire old strip, and copies it if it stays as it is. */
static tamis_error strip_pass(tamis_catalog_writer *w, const struct catalog_strip *strip,
                              bool copied, tamis_reason *reason)
{
    uint64_t len = strip_len(w->old->shapes[strip->shape].plan.units, strip->width);
    if (!copied)
        return catalog_check_long(w->old, strip->offset, len, reason);
    tamis_error e = new_file_align(w, reason);
    return e == TAMIS_OK ? new_file_copy(w, strip->offset, len, reason) : e;
}

static tamis_error strip_copy(tamis_catalog_writer *w, const struct catalog_strip *strip,
                              const uint32_t *segments, tamis_reason *reason)
{
    tamis_error e = strip_record(w, strip->shape, strip->n, reason);
    for (uint32_t i = 0; i < strip->n && e == TAMIS_OK; i++)
        e = column_record(w, segments[i], reason);
    return e;
}

static tamis_error strip_take(tamis_catalog_writer *w, uint32_t number, const uint32_t *segments,
                              tamis_reason *reason)
{
    const struct catalog_strip *strip = &w->old->strips[number];
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; i < strip->n && e == TAMIS_OK; i++)
        if (segments[i] != STRIP_NONE && !w->segments[segments[i]].dropped)
            e = writer_column(w, strip->shape, (struct column_source){segments[i], number, i},
                              reason);
    return e;
}

/* A strip is kept as it is if it has most of its columns and is half full; or if it is the only
   one that does not, and nothing will be added. Shapes of the old version keep their numbers. */
tamis_error strips_keep(tamis_catalog_writer *w, tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; w->old && i < w->old->n_strips && e == TAMIS_OK; i++) {
        const struct catalog_strip *strip = &w->old->strips[i];
        uint32_t segments[STRIP_COLUMNS], live, others = 0;
        e = strip_segments(w, strip, segments, &live, reason);
        if (e != TAMIS_OK || live == 0)
            continue;
        for (uint32_t j = 0; j < w->old->n_strips; j++)
            others += j != i && w->old->strips[j].shape == strip->shape &&
                      w->old->strips[j].n < STRIP_COLUMNS / 2;
        bool full = strip->n >= STRIP_COLUMNS / 2 && 4 * live >= 3 * strip->n;
        bool alone = live == strip->n && others == 0 && w->shapes[strip->shape].n == 0;
        e = strip_pass(w, strip, full || alone, reason);
        if (e == TAMIS_OK)
            e = full || alone ? strip_copy(w, strip, segments, reason)
                              : strip_take(w, i, segments, reason);
    }
    return e;
}
