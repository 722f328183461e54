/* The tables, checksums and header of the new file. See file_catalog.h. */
#include "file_catalog.h"

#include <stdlib.h>

#include "err.h"

/* Numbers in the new file: of segments that stay, of shapes that a strip has. */
static uint32_t *number_segments(const tamis_catalog_writer *w)
{
    uint32_t *numbers = mem_new(&w->allocator, w->n_segments, sizeof *numbers), next = 0;
    for (size_t i = 0; numbers && i < w->n_segments; i++)
        numbers[i] = w->segments[i].dropped ? STRIP_NONE : next++;
    return numbers;
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

static void fill_table(const tamis_catalog_writer *w, const struct catalog_table *t,
                       const uint32_t *numbers, uint8_t *to)
{
    uint32_t relations = schema_relations(&w->schema);
    uint64_t end = 0, n = 0;
    for (size_t i = 0; i < w->n_shapes; i++)
        if (w->shapes[i].number != STRIP_NONE)
            catalog_shape_put(to, &w->shapes[i].shape, w->shapes[i].number);
    for (size_t i = 0; i < w->n_strips; i++) {
        struct catalog_strip strip = w->strips[i];
        strip.shape = w->shapes[strip.shape].number;
        catalog_strip_put(to + t->strips, &strip, i);
    }
    for (size_t i = 0; i < w->n_columns; i++) {
        uint32_t segment = w->columns[i];
        put_u32(to + t->columns + 4 * i, segment == STRIP_NONE ? STRIP_NONE : numbers[segment]);
    }
    for (size_t i = 0; i < w->n_segments; i++) {
        if (w->segments[i].dropped)
            continue;
        end += w->segments[i].tag_len;
        put_u64(to + t->records + 8 * n, w->segments[i].records);
        put_u64(to + t->tag_ends + 8 * n, end);
        memcpy(to + t->distinct + 4 * n * relations, w->distinct + i * relations,
               relations * sizeof *w->distinct);
        n++;
    }
}

static tamis_error put_table(tamis_catalog_writer *w, const struct catalog_head *head,
                             tamis_reason *reason)
{
    struct catalog_table t = catalog_table_of(&w->schema, head);
    uint8_t *bytes = mem_new0(&w->allocator, 1, t.len);
    uint32_t *numbers = number_segments(w);
    tamis_error e = bytes && numbers ? new_file_align(w, reason)
                                     : fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
    if (e == TAMIS_OK) {
        fill_table(w, &t, numbers, bytes);
        e = new_file_put(w, bytes, t.len, reason);
    }
    mem_free(&w->allocator, bytes, 1, t.len);
    mem_free(&w->allocator, numbers, w->n_segments, sizeof *numbers);
    return e;
}

static tamis_error put_tags(tamis_catalog_writer *w, const void *note, size_t len,
                            tamis_reason *reason)
{
    tamis_error e = new_file_align(w, reason);
    for (size_t i = 0; i < w->n_segments && e == TAMIS_OK; i++)
        if (!w->segments[i].dropped)
            e = new_file_put(w, w->segments[i].tag, w->segments[i].tag_len, reason);
    if (e == TAMIS_OK)
        e = new_file_align(w, reason);
    if (e == TAMIS_OK)
        e = new_file_put(w, note, len, reason);
    return e == TAMIS_OK ? new_file_align(w, reason) : e;
}

/* Both sections of checksums, with the zeros that fill them up; from `at`. */
static tamis_error put_sums(tamis_catalog_writer *w, const struct section *sections,
                            struct catalog_head *head, uint64_t end, tamis_reason *reason)
{
    uint64_t from = sections[CATALOG_SUMS].offset, len = end - from;
    uint64_t n = sections[CATALOG_SUMS].len, tops = sections[CATALOG_TOPS].offset - from;
    uint8_t *bytes = mem_new0(&w->allocator, 1, len);
    if (!bytes)
        return fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
    memcpy(bytes, w->sink.sums, n);
    for (uint64_t at = 0, i = 0; at < n; at += CATALOG_PAGE, i++)
        put_u64(bytes + tops + 8 * i, hash_of(bytes + at, min_u64(CATALOG_PAGE, n - at)));
    head->tops_sum = hash_of(bytes + tops, sections[CATALOG_TOPS].len);
    int error = file_write(w->file.fd, bytes, len, (int64_t)from);
    mem_free(&w->allocator, bytes, 1, len);
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
        e = fail(reason, TAMIS_ENOMEM, "no memory to write a catalog");
    }
    mem_free(&w->allocator, header, 1, len);
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
                                .strips_len = w->sink.at + w->sink.used - w->sink.start,
                                .note_len = len};
    for (size_t i = 0; i < w->n_segments; i++)
        head.tags_len += w->segments[i].dropped ? 0 : w->segments[i].tag_len;
    uint64_t end = catalog_sections(&w->schema, &head, w->sink.start, sections);
    tamis_error e = put_table(w, &head, reason);
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
