/* Writes strips to the new file. See catalog_writer.h. */
#include "catalog_writer.h"

#include <stdlib.h>

#include "base/err.h"
#include "tamis/catalog.h"

/* ---- the new file ---------------------------------------------------------------------------- */

void new_file_init(tamis_catalog_writer *w)
{
    struct outline o = {.kind = KIND_CATALOG,
                        .body_len = catalog_body_len(&w->schema),
                        .sections = CATALOG_SECTIONS};
    w->sink.start = w->sink.at = outline_header_len(&o);
    w->sink.buffer = mem_new(&w->allocator, 1, SINK_BUFFER);
    if (!w->sink.buffer)
        writer_no_memory(w);
}

void new_file_free(tamis_catalog_writer *w)
{
    mem_free(&w->allocator, w->sink.buffer, 1, SINK_BUFFER);
    mem_free(&w->allocator, w->sink.pages, w->sink.room, sizeof *w->sink.pages);
}

/* The checksums so far form a page, or the last part of one. */
static bool sums_flush(tamis_catalog_writer *w)
{
    struct new_file *o = &w->sink;
    size_t len = o->n_sums * sizeof *o->sums;
    if (!ROOM_FOR_ONE(w, sink.pages, sink.n, sink.room))
        return writer_no_memory(w);
    struct sums_page page = {spill_room(&w->spill, len), hash_of(o->sums, len)};
    o->pages[o->n++] = page;
    o->n_sums = 0;
    return spill_put(w, o->sums, len, page.at);
}

/* The buffer is a whole number of pages, except the last time. */
static void new_file_flush(tamis_catalog_writer *w)
{
    struct new_file *o = &w->sink;
    for (size_t from = 0; from < o->used && !w->failed; from += CATALOG_PAGE) {
        o->sums[o->n_sums++] =
            hash_of(o->buffer + from, (size_t)min_u64(CATALOG_PAGE, o->used - from));
        if (o->n_sums == SINK_SUMS)
            sums_flush(w);
    }
    if (!w->failed)
        writer_check(w, file_write(w->file.fd, o->buffer, o->used, (int64_t)o->at), "writing");
    o->at += o->used;
    o->used = 0;
}

void new_file_put(tamis_catalog_writer *w, const void *data, uint64_t len)
{
    const uint8_t *from = data;
    while (len && !w->failed) {
        size_t some = (size_t)min_u64(len, SINK_BUFFER - w->sink.used);
        memcpy(w->sink.buffer + w->sink.used, from, some);
        w->sink.used += some;
        from += some;
        len -= some;
        if (w->sink.used == SINK_BUFFER)
            new_file_flush(w);
    }
}

void new_file_put_spilled(tamis_catalog_writer *w, uint64_t at, uint64_t len)
{
    uint8_t bytes[4096];
    for (uint64_t some; len && !w->failed; at += some, len -= some) {
        some = min_u64(len, sizeof bytes);
        if (spill_get(w, bytes, (size_t)some, at))
            new_file_put(w, bytes, some);
    }
}

void new_file_copy(tamis_catalog_writer *w, uint64_t from, uint64_t len)
{
    for (uint64_t at = 0, some; at < len && !w->failed; at += some) {
        some = min_u64(len - at, CATALOG_WINDOW);
        mapping_will_need(w->old->data + from + at, some);
        w->failed = catalog_check(w->old, from + at, some, &w->why);
        new_file_put(w, w->old->data + from + at, some);
        tamis_catalog_rest(w->old);
    }
}

void new_file_fill(tamis_catalog_writer *w, uint64_t to)
{
    static const uint8_t zeros[SECTION_ALIGN];
    new_file_put(w, zeros, to - (w->sink.at + w->sink.used));
}

void new_file_align(tamis_catalog_writer *w)
{
    new_file_fill(w, round_up(w->sink.at + w->sink.used, SECTION_ALIGN));
}

void new_file_end(tamis_catalog_writer *w)
{
    if (!w->failed && w->sink.used)
        new_file_flush(w);
    if (!w->failed && w->sink.n_sums)
        sums_flush(w);
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
static void window_read(tamis_catalog_writer *w, const struct column_source *sources, uint32_t n,
                        uint64_t first, uint64_t n_rows, struct strip_room *room)
{
    for (uint32_t i = 0, some; i < n && !w->failed; i += some) {
        const struct column_source *s = &sources[i];
        uint64_t *words = room->words + i * room->stride;
        some = 1;
        if (s->strip == STRIP_NONE) {
            spill_get(w, words, (size_t)(n_rows + 63) / 64 * 8, s->at + first / 8);
            continue;
        }
        while (i + some < n && s[some].strip == s->strip)
            some++;
        window_old(w, s, some, first, n_rows, words, room->stride);
    }
}

static void strip_record(tamis_catalog_writer *w, uint32_t shape, uint32_t n)
{
    if (ROOM_FOR_ONE(w, strips, n_strips, strips_room))
        w->strips[w->n_strips++] =
            (struct catalog_strip){.shape = shape, .width = strip_width(n), .n = n};
    else
        writer_no_memory(w);
}

static void column_record(tamis_catalog_writer *w, uint32_t segment)
{
    if (ROOM_FOR_ONE(w, columns, n_columns, columns_room))
        w->columns[w->n_columns++] = segment;
    else
        writer_no_memory(w);
}

static void window_write(tamis_catalog_writer *w, uint32_t n, uint64_t n_rows,
                         struct strip_room *room)
{
    uint64_t words = (n_rows + 63) / 64;
    uint32_t width = strip_width(n);
    const uint64_t *columns[STRIP_COLUMNS];
    for (uint64_t first = 0; first < words && !w->failed; first += BLOCK_WORDS) {
        for (uint32_t i = 0; i < n; i++)
            columns[i] = room->words + i * room->stride + first;
        strip_rows(columns, n, min_u64(BLOCK_WORDS, words - first), width, room->rows);
        uint64_t here = min_u64(64 * BLOCK_WORDS, n_rows - 64 * first);
        new_file_put(w, room->rows, strip_len(here, width));
    }
}

static bool strip_write(tamis_catalog_writer *w, struct shape_work *shape, uint32_t n)
{
    uint64_t rows = shape->shape.plan.units, bytes = 8 * strip_column_words(rows);
    struct strip_room *room = strip_room_new(w, rows, n);
    if (!room)
        return writer_no_memory(w);
    new_file_align(w);
    for (uint64_t first = 0, window = 64 * room->window; first < rows; first += window) {
        uint64_t here = min_u64(window, rows - first);
        window_read(w, shape->columns, n, first, here, room);
        window_write(w, n, here, room);
    }
    mem_free(&w->allocator, room, 1, strip_room_size(room->stride, n));
    strip_record(w, (uint32_t)(shape - w->shapes), n);
    for (uint32_t i = 0; i < n && !w->failed; i++) {
        column_record(w, shape->columns[i].segment);
        if (shape->columns[i].strip == STRIP_NONE)
            spill_forget(&w->spill, shape->columns[i].at, bytes);
    }
    memmove(shape->columns, shape->columns + n, (shape->n - n) * sizeof *shape->columns);
    shape->n -= n;
    return !w->failed;
}

static int compare_sources(const void *x, const void *y)
{
    const struct column_source *a = x, *b = y;
    return ORDER(a->segment, b->segment, ORDER(a->at, b->at, 0));
}

/* The columns of a segment stay together. */
void strips_write(tamis_catalog_writer *w, struct shape_work *shape, bool all)
{
    if (shape->n && (shape->n >= STRIP_COLUMNS || all))
        qsort(shape->columns, shape->n, sizeof *shape->columns, compare_sources);
    while (!w->failed && (shape->n >= STRIP_COLUMNS || (all && shape->n))) {
        size_t n = shape->n < STRIP_COLUMNS ? shape->n : STRIP_COLUMNS;
        while (n < shape->n && n > 1 && shape->columns[n].segment == shape->columns[n - 1].segment)
            n--;
        strip_write(w, shape, (uint32_t)n);
    }
}

/* ---- strips of the old version --------------------------------------------------------------- */

/* Reads the segments of its columns once, and counts those that remain. */
static uint32_t strip_segments(tamis_catalog_writer *w, const struct catalog_strip *strip,
                               uint32_t segments[STRIP_COLUMNS])
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < strip->n && !w->failed; i++) {
        if (!catalog_column_segment(w->old, strip->column + i, &segments[i], &w->why))
            w->failed = TAMIS_EFORMAT;
        else
            live += segments[i] != STRIP_NONE && !w->segments[segments[i]].dropped;
    }
    return live;
}

/* Copies an entire old strip, which is checked. */
static void strip_copy(tamis_catalog_writer *w, const struct catalog_strip *strip, uint64_t len,
                       const uint32_t *segments)
{
    new_file_align(w);
    new_file_copy(w, strip->offset, len);
    strip_record(w, strip->shape, strip->n);
    for (uint32_t i = 0; i < strip->n; i++)
        column_record(w, segments[i]);
}

/* Checks an entire old strip, whose columns wait for a new one. */
static void strip_take(tamis_catalog_writer *w, const struct catalog_strip *strip, uint64_t len,
                       const uint32_t *segments)
{
    uint32_t number = (uint32_t)(strip - w->old->strips);
    w->failed = catalog_check_long(w->old, strip->offset, len, &w->why);
    for (uint32_t i = 0; i < strip->n && !w->failed; i++)
        if (segments[i] != STRIP_NONE && !w->segments[segments[i]].dropped)
            writer_column(w, strip->shape, (struct column_source){segments[i], number, i});
}

/* A strip is kept as it is if it has most of its columns and is half full; or if it is the only
   one that does not, and nothing will be added. Shapes of the old version keep their numbers. */
void strips_keep(tamis_catalog_writer *w)
{
    for (uint32_t i = 0; w->old && i < w->old->head.strips && !w->failed; i++) {
        const struct catalog_strip *strip = &w->old->strips[i];
        uint64_t len = strip_len(w->old->shapes[strip->shape].plan.units, strip->width);
        uint32_t segments[STRIP_COLUMNS], live = strip_segments(w, strip, segments), others = 0;
        if (w->failed || live == 0)
            continue;
        for (uint32_t j = 0; j < w->old->head.strips; j++)
            others += j != i && w->old->strips[j].shape == strip->shape &&
                      w->old->strips[j].n < STRIP_COLUMNS / 2;
        bool full = strip->n >= STRIP_COLUMNS / 2 && 4 * live >= 3 * strip->n;
        bool alone = live == strip->n && others == 0 && w->shapes[strip->shape].n == 0;
        (full || alone ? strip_copy : strip_take)(w, strip, len, segments);
    }
}
