/* Strips into the new file. See file_catalog.h. */
#include "file_catalog.h"

#include <stdlib.h>

#include "err.h"

/* ---- the new file ---------------------------------------------------------------------------- */

tamis_error new_file_init(tamis_catalog_writer *w, tamis_reason *reason)
{
    struct outline o = {.kind = KIND_CATALOG,
                        .body_len = catalog_body_len(&w->schema),
                        .sections = CATALOG_SECTIONS};
    w->sink.start = w->sink.at = outline_header_len(&o);
    w->sink.buffer = mem_new(&w->allocator, 1, SINK_BUFFER);
    return w->sink.buffer ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
}

void new_file_free(tamis_catalog_writer *w)
{
    mem_free(&w->allocator, w->sink.buffer, 1, SINK_BUFFER);
    mem_free(&w->allocator, w->sink.sums, w->sink.room, sizeof *w->sink.sums);
}

/* The buffer is a whole number of pages, but for the last. */
static tamis_error new_file_flush(tamis_catalog_writer *w, tamis_reason *reason)
{
    struct sink *o = &w->sink;
    for (size_t from = 0; from < o->used; from += CATALOG_PAGE) {
        size_t len = (size_t)min_u64(CATALOG_PAGE, o->used - from);
        if (!array_room(&w->allocator, &o->sums, o->n, &o->room, sizeof *o->sums))
            return fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
        o->sums[o->n++] = hash_of(o->buffer + from, len);
    }
    int error = file_write(w->file.fd, o->buffer, o->used, (int64_t)o->at);
    if (error)
        return file_fail(reason, error, w->path, "writing");
    o->at += o->used;
    o->used = 0;
    return TAMIS_OK;
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

tamis_error new_file_align(tamis_catalog_writer *w, tamis_reason *reason)
{
    static const uint8_t zeros[SECTION_ALIGN];
    uint64_t at = w->sink.at + w->sink.used;
    return new_file_put(w, zeros, round_up(at, SECTION_ALIGN) - at, reason);
}

tamis_error new_file_end(tamis_catalog_writer *w, tamis_reason *reason)
{
    return w->sink.used ? new_file_flush(w, reason) : TAMIS_OK;
}

/* ---- a strip --------------------------------------------------------------------------------- */

/* Room for one: rows of a block, and the words of columns that come from old strips. */
struct strip_room {
    uint8_t rows[64 * BLOCK_WORDS * STRIP_COLUMNS / 8];
    uint64_t words[STRIP_COLUMNS][BLOCK_WORDS];
};

/* The words of block `first`, of all columns; those of old strips are taken out of their rows. */
static void block_columns(const tamis_catalog_writer *w, const struct source *sources, uint32_t n,
                          uint64_t first, uint64_t rows, struct strip_room *room,
                          const uint64_t **columns)
{
    for (uint32_t i = 0; i < n;) {
        if (sources[i].strip == STRIP_NONE) {
            const uint8_t *at = w->spill.mapping.data + sources[i].at;
            columns[i++] = (const uint64_t *)(const void *)at + first;
            continue;
        }
        const struct catalog_strip *old = &w->old->strips[sources[i].strip];
        uint64_t *wanted[STRIP_COLUMNS] = {0};
        for (uint32_t strip = sources[i].strip; i < n && sources[i].strip == strip; i++)
            columns[i] = wanted[sources[i].at] = room->words[i];
        const uint8_t *from = w->old->data + old->offset + 64 * first * old->width / 8;
        strip_columns(from, min_u64(64 * BLOCK_WORDS, rows - 64 * first), old->width, wanted,
                      old->n);
    }
}

static tamis_error strip_record(tamis_catalog_writer *w, uint32_t shape, uint32_t n,
                                tamis_reason *reason)
{
    if (!ROOM_FOR_ONE(w, strips, n_strips, strips_room))
        return fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
    w->strips[w->n_strips++] =
        (struct catalog_strip){.shape = shape, .width = strip_width(n), .n = n};
    return TAMIS_OK;
}

static tamis_error column_record(tamis_catalog_writer *w, uint32_t segment, tamis_reason *reason)
{
    if (!ROOM_FOR_ONE(w, columns, n_columns, columns_room))
        return fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
    w->columns[w->n_columns++] = segment;
    return TAMIS_OK;
}

static tamis_error strip_bytes(tamis_catalog_writer *w, const struct shape_work *shape,
                               const struct source *sources, uint32_t n, struct strip_room *room,
                               tamis_reason *reason)
{
    uint64_t rows = shape->shape.plan.units, words = (rows + 63) / 64;
    uint32_t width = strip_width(n);
    const uint64_t *columns[STRIP_COLUMNS];
    tamis_error e = new_file_align(w, reason);
    for (uint64_t first = 0; first < words && e == TAMIS_OK; first += BLOCK_WORDS) {
        block_columns(w, sources, n, first, rows, room, columns);
        strip_rows(columns, n, min_u64(BLOCK_WORDS, words - first), width, room->rows);
        uint64_t here = min_u64(64 * BLOCK_WORDS, rows - 64 * first);
        e = new_file_put(w, room->rows, strip_len(here, width), reason);
    }
    return e;
}

static tamis_error strip_write(tamis_catalog_writer *w, struct shape_work *shape, uint32_t n,
                               tamis_reason *reason)
{
    uint64_t bytes = 8 * strip_column_words(shape->shape.plan.units);
    struct strip_room *room = mem_new(&w->allocator, 1, sizeof *room);
    if (!room)
        return fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
    int error = spill_map(&w->spill, w->spill_end);
    tamis_error e = error ? file_fail(reason, error, w->path, "mapping what is beside")
                          : strip_bytes(w, shape, shape->columns, n, room, reason);
    mem_free(&w->allocator, room, 1, sizeof *room);
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
    const struct source *a = x, *b = y;
    if (a->segment != b->segment)
        return a->segment < b->segment ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Columns of a segment stay together. */
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

static uint32_t live_columns(const tamis_catalog_writer *w, const struct catalog_strip *strip)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < strip->n; i++) {
        uint32_t segment = catalog_column_segment(w->old, strip->column + i);
        n += segment != STRIP_NONE && !w->segments[segment].dropped;
    }
    return n;
}

static tamis_error strip_copy(tamis_catalog_writer *w, const struct catalog_strip *strip,
                              tamis_reason *reason)
{
    uint64_t len = strip_len(w->old->shapes[strip->shape].plan.units, strip->width);
    tamis_error e = new_file_align(w, reason);
    if (e == TAMIS_OK)
        e = new_file_put(w, w->old->data + strip->offset, len, reason);
    if (e == TAMIS_OK)
        e = strip_record(w, strip->shape, strip->n, reason);
    for (uint32_t i = 0; i < strip->n && e == TAMIS_OK; i++) {
        e = column_record(w, catalog_column_segment(w->old, strip->column + i), reason);
    }
    return e;
}

static tamis_error strip_take(tamis_catalog_writer *w, uint32_t number, tamis_reason *reason)
{
    const struct catalog_strip *strip = &w->old->strips[number];
    struct shape_work *shape = &w->shapes[strip->shape];
    for (uint32_t i = 0; i < strip->n; i++) {
        uint32_t segment = catalog_column_segment(w->old, strip->column + i);
        if (segment == STRIP_NONE || w->segments[segment].dropped)
            continue;
        if (!ROOM_FOR_ONE(w, shapes[strip->shape].columns, shapes[strip->shape].n,
                          shapes[strip->shape].room))
            return fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
        shape->columns[shape->n++] = (struct source){segment, number, i};
    }
    return TAMIS_OK;
}

/* A strip is kept as it is if it has most of its columns and is half full; or if it is the only one
   that is not, and nothing is to be added. Shapes of the old version have their old numbers. */
tamis_error strips_keep(tamis_catalog_writer *w, tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t i = 0; w->old && i < w->old->n_strips && e == TAMIS_OK; i++) {
        const struct catalog_strip *strip = &w->old->strips[i];
        uint32_t live = live_columns(w, strip), others = 0;
        if (live == 0)
            continue;
        e = catalog_check(w->old, strip->offset,
                          strip_len(w->old->shapes[strip->shape].plan.units, strip->width), reason);
        for (uint32_t j = 0; j < w->old->n_strips; j++)
            others += j != i && w->old->strips[j].shape == strip->shape &&
                      w->old->strips[j].n < STRIP_COLUMNS / 2;
        bool full = strip->n >= STRIP_COLUMNS / 2 && 4 * live >= 3 * strip->n;
        bool alone = live == strip->n && others == 0 && w->shapes[strip->shape].n == 0;
        if (e == TAMIS_OK)
            e = full || alone ? strip_copy(w, strip, reason) : strip_take(w, i, reason);
    }
    return e;
}
