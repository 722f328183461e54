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

static void put_shapes(tamis_catalog_writer *w)
{
    uint8_t bytes[SHAPE_LEN]; /* size of the longest record */
    struct cursor c;
    static_assert(STRIP_LEN <= SHAPE_LEN && FRONT_LEN <= SHAPE_LEN, "room for each");
    for (size_t i = 0; i < w->n_shapes; i++)
        if (w->shapes[i].number != STRIP_NONE) {
            c = cursor_write(bytes, SHAPE_LEN);
            catalog_shape_fields(&c, &w->shapes[i].shape);
            new_file_put(w, bytes, SHAPE_LEN);
        }
    for (size_t i = 0; i < w->n_strips; i++) {
        struct catalog_strip strip = w->strips[i];
        strip.shape = w->shapes[strip.shape].number;
        c = cursor_write(bytes, STRIP_LEN);
        catalog_strip_fields(&c, &strip);
        new_file_put(w, bytes, STRIP_LEN);
    }
    for (size_t i = 0; i < w->n_plans; i++) {
        c = cursor_write(bytes, FRONT_LEN);
        catalog_front_fields(&c, &w->plans[i].head);
        new_file_put(w, bytes, FRONT_LEN);
    }
}

static void put_columns(tamis_catalog_writer *w)
{
    uint8_t bytes[4];
    for (size_t i = 0; i < w->n_columns; i++) {
        uint32_t segment = w->columns[i];
        put_u32(bytes, segment == STRIP_NONE ? STRIP_NONE : w->segments[segment].number);
        new_file_put(w, bytes, sizeof bytes);
    }
}

/* Writes 8 bytes for every remaining segment, given by `of`. */
static void put_each(tamis_catalog_writer *w, uint64_t (*of)(const struct segment_work *s),
                     bool summed)
{
    uint8_t bytes[8];
    uint64_t sum = 0;
    for (size_t i = 0; i < w->n_segments; i++)
        if (!w->segments[i].dropped) {
            sum = (summed ? sum : 0) + of(&w->segments[i]);
            put_u64(bytes, sum);
            new_file_put(w, bytes, sizeof bytes);
        }
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

static void put_distinct(tamis_catalog_writer *w)
{
    for (uint32_t r = 0; r < schema_relations(&w->schema); r++)
        for (size_t i = 0; i < w->n_segments; i++)
            if (!w->segments[i].dropped)
                new_file_put(w, &segment_distinct(w, i)[r], sizeof(uint32_t));
}

static void put_bounds(tamis_catalog_writer *w)
{
    uint8_t bytes[BOUNDS_LEN];
    for (uint32_t at = 0; at < w->schema.ordered; at++)
        for (size_t i = 0; i < w->n_segments; i++)
            if (!w->segments[i].dropped) {
                catalog_bounds_put(bytes, segment_bounds(w, i)[at]);
                new_file_put(w, bytes, sizeof bytes);
            }
}

/* Writes the table at `at`. */
static void put_table(tamis_catalog_writer *w, const struct catalog_head *head, uint64_t at)
{
    struct catalog_table t = catalog_table_of(&w->schema, head, at);
    new_file_fill(w, at);
    put_shapes(w);
    put_columns(w);
    new_file_fill(w, t.records);
    put_each(w, records_of, false);
    put_each(w, text_of, false);
    put_each(w, tag_of, true);
    put_distinct(w);
    new_file_fill(w, t.bounds);
    put_bounds(w);
}

/* ---- tags, the note, checksums --------------------------------------------------------------- */

static void put_tags(tamis_catalog_writer *w, const void *note, size_t len)
{
    uint64_t seen = 0; /* of the old version, since pages were last released */
    new_file_align(w);
    for (size_t i = 0; i < w->n_segments && !w->failed; i++) {
        const struct segment_work *s = &w->segments[i];
        size_t old_len;
        if (s->dropped)
            continue;
        if (s->tag_at != TAG_OLD) {
            new_file_put_spilled(w, s->tag_at, s->tag_len);
            continue;
        }
        const void *old = tamis_catalog_tag(w->old, i, &old_len);
        if (old_len != s->tag_len)
            w->failed =
                fail(&w->why, TAMIS_ECHECKSUM, "%s was changed by another program", w->path);
        new_file_put(w, old, old_len);
        seen += old_len;
        if (seen > CATALOG_WINDOW) {
            tamis_catalog_rest(w->old);
            seen = 0;
        }
    }
    new_file_align(w);
    new_file_put(w, note, len);
    new_file_align(w);
}

/* Writes both sections of checksums, padded with zeros. */
static bool put_sums(tamis_catalog_writer *w, const struct section *sections,
                     struct catalog_head *head, uint64_t end)
{
    const struct section *sums = &sections[CATALOG_SUMS], *tops = &sections[CATALOG_TOPS];
    uint64_t page[SINK_SUMS];
    uint8_t *bytes = mem_new0(&w->allocator, 1, end - tops->offset);
    int error = 0;
    if (!bytes)
        return writer_no_memory(w);
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
    return writer_check(w, error, "writing");
}

static bool put_header(tamis_catalog_writer *w, const struct section *sections,
                       const struct catalog_head *head, uint64_t end)
{
    uint64_t len = w->sink.start, body_len = catalog_body_len(&w->schema);
    uint8_t *header = mem_new0(&w->allocator, 1, len), *body = mem_new0(&w->allocator, 1, body_len);
    int error = ENOMEM;
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
        error = file_write(w->file.fd, header, len, 0);
    }
    mem_free_secret(&w->allocator, header, 1, len);
    mem_free(&w->allocator, body, 1, body_len);
    return writer_check(w, error, "writing");
}

void commit_write(tamis_catalog_writer *w, const void *note, size_t len)
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
    put_table(w, &head, sections[CATALOG_TABLE].offset);
    put_tags(w, note, len);
    new_file_end(w);
    if (!w->failed && put_sums(w, sections, &head, end) && put_header(w, sections, &head, end))
        w->failed = beside_replace(&w->file, w->path, &w->why);
}
