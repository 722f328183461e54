/* The tables, checksums and header of the new file. See catalog_writer.h. */
#include "catalog_writer.h"

#include <stdlib.h>

#include "base/err.h"
#include "tamis/catalog.h"

/* Assigns numbers in the new file to the remaining segments, and to shapes that have a strip. */
static void number_segments(tamis_catalog_writer *w)
{
    uint32_t next = 0;
    for (size_t i = 0; i < w->n_segments; i++)
        w->segments[i].number = w->segments[i].dropped ? STRIP_NONE : next++;
}

static uint64_t number_shapes(tamis_catalog_writer *w)
{
    uint32_t next = 0;
    for (size_t i = 0; i < w->n_shapes; i++)
        w->shapes[i].number = STRIP_NONE;
    for (size_t i = 0; i < w->n_strips; i++)
        w->shapes[w->strips[i].shape].number = 0;
    for (size_t i = 0; i < w->n_shapes; i++)
        if (w->shapes[i].number == 0)
            w->shapes[i].number = next++;
    return next;
}

/* ---- the table ------------------------------------------------------------------------------- */

static tamis_error put_shapes(tamis_catalog_writer *w, tamis_reason *reason)
{
    uint8_t bytes[SHAPE_LEN]; /* size of the longest record */
    static_assert(STRIP_LEN <= SHAPE_LEN && FRONT_LEN <= SHAPE_LEN, "room for each");
    tamis_error e = TAMIS_OK;
    for (size_t i = 0; i < w->n_shapes && e == TAMIS_OK; i++)
        if (w->shapes[i].number != STRIP_NONE) {
            catalog_shape_put(bytes, &w->shapes[i].shape);
            e = new_file_put(w, bytes, SHAPE_LEN, reason);
        }
    for (size_t i = 0; i < w->n_strips && e == TAMIS_OK; i++) {
        struct catalog_strip strip = w->strips[i];
        strip.shape = w->shapes[strip.shape].number;
        catalog_strip_put(bytes, &strip);
        e = new_file_put(w, bytes, STRIP_LEN, reason);
    }
    for (size_t i = 0; i < w->n_plans && e == TAMIS_OK; i++) {
        catalog_front_put(bytes, &w->plans[i].head);
        e = new_file_put(w, bytes, FRONT_LEN, reason);
    }
    return e;
}

static tamis_error put_columns(tamis_catalog_writer *w, tamis_reason *reason)
{
    uint8_t bytes[4];
    tamis_error e = TAMIS_OK;
    for (size_t i = 0; i < w->n_columns && e == TAMIS_OK; i++) {
        uint32_t segment = w->columns[i];
        put_u32(bytes, segment == STRIP_NONE ? STRIP_NONE : w->segments[segment].number);
        e = new_file_put(w, bytes, sizeof bytes, reason);
    }
    return e;
}

/* Writes 8 bytes for every remaining segment, given by `of`. */
static tamis_error put_each(tamis_catalog_writer *w, uint64_t (*of)(const struct segment_work *s),
                            bool summed, tamis_reason *reason)
{
    uint8_t bytes[8];
    uint64_t sum = 0;
    tamis_error e = TAMIS_OK;
    for (size_t i = 0; i < w->n_segments && e == TAMIS_OK; i++)
        if (!w->segments[i].dropped) {
            sum = (summed ? sum : 0) + of(&w->segments[i]);
            put_u64(bytes, sum);
            e = new_file_put(w, bytes, sizeof bytes, reason);
        }
    return e;
}

static uint64_t records_of(const struct segment_work *s)
{
    return s->records;
}

static uint64_t text_of(const struct segment_work *s)
{
    return s->text;
}

static uint64_t tag_of(const struct segment_work *s)
{
    return s->tag_len;
}

static tamis_error put_distinct(tamis_catalog_writer *w, tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    for (uint32_t r = 0; r < schema_relations(&w->schema); r++)
        for (size_t i = 0; i < w->n_segments && e == TAMIS_OK; i++)
            if (!w->segments[i].dropped)
                e = new_file_put(w, &segment_distinct(w, i)[r], sizeof(uint32_t), reason);
    return e;
}

static tamis_error put_bounds(tamis_catalog_writer *w, tamis_reason *reason)
{
    uint8_t bytes[BOUNDS_LEN];
    tamis_error e = TAMIS_OK;
    for (uint32_t at = 0; at < w->schema.ordered; at++)
        for (size_t i = 0; i < w->n_segments && e == TAMIS_OK; i++)
            if (!w->segments[i].dropped) {
                catalog_bounds_put(bytes, segment_bounds(w, i)[at]);
                e = new_file_put(w, bytes, sizeof bytes, reason);
            }
    return e;
}

static tamis_error put_segments(tamis_catalog_writer *w, uint64_t bounds_at, tamis_reason *reason)
{
    tamis_error e = put_each(w, records_of, false, reason);
    if (e == TAMIS_OK)
        e = put_each(w, text_of, false, reason);
    if (e == TAMIS_OK)
        e = put_each(w, tag_of, true, reason);
    if (e == TAMIS_OK)
        e = put_distinct(w, reason);
    if (e == TAMIS_OK)
        e = new_file_fill(w, bounds_at, reason);
    return e == TAMIS_OK ? put_bounds(w, reason) : e;
}

/* Writes the table at `at`. */
static tamis_error put_table(tamis_catalog_writer *w, const struct catalog_head *head, uint64_t at,
                             tamis_reason *reason)
{
    struct catalog_table t = catalog_table_of(&w->schema, head);
    tamis_error e = new_file_fill(w, at, reason);
    if (e == TAMIS_OK)
        e = put_shapes(w, reason);
    if (e == TAMIS_OK)
        e = put_columns(w, reason);
    if (e == TAMIS_OK)
        e = new_file_fill(w, at + t.records, reason);
    if (e == TAMIS_OK)
        e = put_segments(w, at + t.bounds, reason);
    return e;
}

/* ---- tags, the note, checksums --------------------------------------------------------------- */

static tamis_error put_tags(tamis_catalog_writer *w, const void *note, size_t len,
                            tamis_reason *reason)
{
    tamis_error e = new_file_align(w, reason);
    uint64_t seen = 0; /* of the old version, since pages were last released */
    for (size_t i = 0; i < w->n_segments && e == TAMIS_OK; i++) {
        const struct segment_work *s = &w->segments[i];
        size_t old_len;
        if (s->dropped)
            continue;
        if (s->tag_at != TAG_OLD) {
            e = new_file_put_spilled(w, s->tag_at, s->tag_len, reason);
            continue;
        }
        const void *old = tamis_catalog_tag(w->old, i, &old_len);
        e = old_len == s->tag_len
                ? new_file_put(w, old, old_len, reason)
                : fail(reason, TAMIS_ECHECKSUM, "%s was changed by another program", w->path);
        seen += old_len;
        if (seen > CATALOG_WINDOW) {
            tamis_catalog_rest(w->old);
            seen = 0;
        }
    }
    if (e == TAMIS_OK)
        e = new_file_align(w, reason);
    if (e == TAMIS_OK)
        e = new_file_put(w, note, len, reason);
    return e == TAMIS_OK ? new_file_align(w, reason) : e;
}

/* Writes both sections of checksums, padded with zeros. */
static tamis_error put_sums(tamis_catalog_writer *w, const struct section *sections,
                            struct catalog_head *head, uint64_t end, tamis_reason *reason)
{
    const struct section *sums = &sections[CATALOG_SUMS], *tops = &sections[CATALOG_TOPS];
    uint64_t page[SINK_SUMS];
    uint8_t *bytes = mem_new0(&w->allocator, 1, end - tops->offset);
    int error = 0;
    if (!bytes)
        return writer_no_memory(reason);
    for (uint64_t i = 0, at = 0; at < sums->len && !error; i++, at += sizeof page) {
        size_t len = (size_t)min_u64(sizeof page, sums->len - at);
        error = spill_read(&w->spill, page, len, w->sink.pages[i].at);
        if (!error)
            error = file_write(w->file.fd, page, len, (int64_t)(sums->offset + at));
        put_u64(bytes + 8 * i, w->sink.pages[i].sum);
    }
    head->tops_sum = hash_of(bytes, tops->len);
    if (!error)
        error = file_write(w->file.fd, bytes, end - tops->offset, (int64_t)tops->offset);
    mem_free(&w->allocator, bytes, 1, end - tops->offset);
    return error ? file_fail(reason, error, w->path, "writing") : TAMIS_OK;
}

static tamis_error put_header(tamis_catalog_writer *w, const struct section *sections,
                              const struct catalog_head *head, uint64_t end, tamis_reason *reason)
{
    uint64_t len = w->sink.start, body_len = catalog_body_len(&w->schema);
    uint8_t *header = mem_new0(&w->allocator, 1, len), *body = mem_new0(&w->allocator, 1, body_len);
    tamis_error e = TAMIS_OK;
    if (header && body) {
        struct outline o = {.kind = KIND_CATALOG,
                            .no_key = !w->family.has_key,
                            .family = &w->family,
                            .body = body,
                            .body_len = body_len,
                            .sections = CATALOG_SECTIONS,
                            .payload_len = end - len};
        catalog_body(&w->schema, head, body);
        outline_header(&o, sections, header);
        int error = file_write(w->file.fd, header, len, 0);
        if (error)
            e = file_fail(reason, error, w->path, "writing");
    } else {
        e = writer_no_memory(reason);
    }
    mem_free_secret(&w->allocator, header, 1, len);
    mem_free(&w->allocator, body, 1, body_len);
    return e;
}

tamis_error commit_write(tamis_catalog_writer *w, const void *note, size_t len,
                         tamis_reason *reason)
{
    struct section sections[CATALOG_SECTIONS];
    struct catalog_head head = {.segments = w->live,
                                .shapes = number_shapes(w),
                                .strips = w->n_strips,
                                .columns = w->n_columns,
                                .strips_len = w->strips_len,
                                .fronts = w->n_plans,
                                .fronts_len =
                                    w->sink.at + w->sink.used -
                                    round_up(w->sink.start + w->strips_len, SECTION_ALIGN),
                                .note_len = len};
    for (size_t i = 0; i < w->n_segments; i++)
        head.tags_len += w->segments[i].dropped ? 0 : w->segments[i].tag_len;
    uint64_t end = catalog_sections(&w->schema, &head, w->sink.start, sections);
    number_segments(w);
    tamis_error e = put_table(w, &head, sections[CATALOG_TABLE].offset, reason);
    if (e == TAMIS_OK)
        e = put_tags(w, note, len, reason);
    if (e == TAMIS_OK)
        e = new_file_end(w, reason);
    if (e == TAMIS_OK)
        e = put_sums(w, sections, &head, end, reason);
    if (e == TAMIS_OK)
        e = put_header(w, sections, &head, end, reason);
    return e == TAMIS_OK ? beside_replace(&w->file, w->path, reason) : e;
}
