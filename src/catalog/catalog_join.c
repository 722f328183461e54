/*
 * Takes over segments of other catalogs. A host that collects the summaries of a fleet gets a catalog of one
 * segment for each host and day, tens of thousands of them. Joined, the columns of one shape are side by side,
 * 512 per strip, and a query reads as many rows as if all segments had been gathered together. The shapes are
 * those of the original writers, which for `joinable` catalogs come from one ladder of sizes: hosts of all
 * sizes have 16 shapes per octave.
 */
#include "catalog_writer.h"

#include "base/err.h"
#include "tamis/catalog.h"

#define JOIN_WORDS 512 /* of each column at a time: 2 MiB for 512 columns */

struct joining {
    tamis_catalog_writer *w;
    const tamis_catalog *from;
    uint32_t *number; /* number here of each of its segments, or STRIP_NONE */
    uint64_t *words;
};

static bool plan_equal(const struct column_plan *x, const struct column_plan *y)
{
    return x->units == y->units && x->k == y->k && x->most == y->most &&
           x->capacity == y->capacity && !(x->rate < y->rate) && !(x->rate > y->rate);
}

static uint32_t shape_find(tamis_catalog_writer *w, const struct catalog_shape *shape)
{
    uint32_t i = 0;
    while (i < w->n_shapes && !(w->shapes[i].shape.relation == shape->relation &&
                                plan_equal(&w->shapes[i].shape.plan, &shape->plan)))
        i++;
    if (i == w->n_shapes)
        writer_shape(w, shape->relation, &shape->plan);
    return i;
}

static void segment_join(struct joining *j, uint64_t segment)
{
    tamis_catalog_writer *w = j->w;
    size_t len;
    const void *tag = tamis_catalog_tag(j->from, segment, &len);
    struct segment_work s = {.records = tamis_catalog_records(j->from, segment),
                             .text = catalog_text(j->from, segment)};
    if (!tag)
        w->failed = fail(&w->why, TAMIS_EFORMAT, "a segment without a tag");
    if (!tag || !writer_tag(w, &s, tag, len) || !writer_segment(w, &s))
        return;
    j->number[segment] = (uint32_t)w->n_segments - 1;
    for (uint32_t r = 0; r < schema_relations(&w->schema); r++)
        segment_distinct(w, w->n_segments - 1)[r] = catalog_distinct(j->from, segment, r);
    for (uint32_t i = 0; i < w->schema.attributes; i++)
        if (w->schema.order_at[i] != ORDER_NONE)
            segment_bounds(w, w->n_segments - 1)[w->schema.order_at[i]] =
                catalog_bounds(j->from, segment, i);
}

/* Assigns room in the spill, consecutively from `at` on, to the columns that are taken over; returns their number. */
static uint32_t columns_record(struct joining *j, const struct catalog_strip *strip, uint32_t shape,
                               bool wanted[STRIP_COLUMNS], uint64_t *at)
{
    tamis_catalog_writer *w = j->w;
    const struct column_plan *plan = &w->shapes[shape].shape.plan;
    uint64_t bytes = 8 * strip_column_words(plan->units);
    uint32_t segments[STRIP_COLUMNS], n = 0;
    for (uint32_t i = 0; i < strip->n; i++) {
        if (!catalog_column_segment(j->from, strip->column + i, &segments[i], &w->why))
            return w->failed = TAMIS_EFORMAT, 0;
        wanted[i] = segments[i] != STRIP_NONE && j->number[segments[i]] != STRIP_NONE;
        n += wanted[i];
    }
    *at = spill_room(&w->spill, n * bytes);
    w->used[w->shapes[shape].shape.relation] += n * plan->rate;
    for (uint32_t i = 0, k = 0; i < strip->n; i++)
        if (wanted[i])
            writer_column(
                w, shape,
                (struct column_source){j->number[segments[i]], STRIP_NONE, *at + k++ * bytes});
    return n;
}

/* Transposes rows to columns in the spill, a window at a time. */
static void columns_spill(const struct joining *j, const struct catalog_strip *strip,
                          const bool wanted[STRIP_COLUMNS], uint64_t at)
{
    tamis_catalog_writer *w = j->w;
    uint64_t rows = j->from->shapes[strip->shape].plan.units, words = strip_column_words(rows);
    uint64_t *column[STRIP_COLUMNS] = {0};
    for (uint32_t i = 0, k = 0; i < strip->n; i++)
        if (wanted[i])
            column[i] = j->words + JOIN_WORDS * k++;
    w->failed = catalog_check_long(j->from, strip->offset, strip_len(rows, strip->width), &w->why);
    for (uint64_t first = 0; first < words && !w->failed; first += JOIN_WORDS) {
        uint64_t some = min_u64(JOIN_WORDS, words - first);
        uint64_t n = 64 * first < rows ? min_u64(64 * some, rows - 64 * first) : 0;
        memset(j->words, 0, (size_t)STRIP_COLUMNS * JOIN_WORDS * sizeof *j->words);
        strip_columns(j->from->data + strip->offset + strip_len(64 * first, strip->width), n,
                      strip->width, column, strip->n);
        uint64_t to = at + 8 * first;
        for (uint32_t i = 0; i < strip->n && !w->failed; i++) {
            if (!wanted[i])
                continue;
            spill_put(w, column[i], 8 * (size_t)some, to);
            to += 8 * words;
        }
        tamis_catalog_rest(j->from);
    }
}

static void strip_join(struct joining *j, const struct catalog_strip *strip)
{
    bool wanted[STRIP_COLUMNS];
    uint64_t at = 0;
    uint32_t shape = shape_find(j->w, &j->from->shapes[strip->shape]);
    if (j->w->failed || !columns_record(j, strip, shape, wanted, &at) || j->w->failed)
        return;
    columns_spill(j, strip, wanted, at);
    strips_write(j->w, &j->w->shapes[shape], false);
}

static void join_all(struct joining *j, const uint64_t *segments)
{
    for (uint32_t i = 0; i < j->w->schema.attributes; i++)
        j->w->fronts[i].lost = true;
    for (uint64_t i = 0; i < j->from->head.segments && !j->w->failed; i++) {
        j->number[i] = STRIP_NONE;
        if (!segments || segments[i >> 6] >> (i & 63) & 1)
            segment_join(j, i);
    }
    for (uint32_t i = 0; i < j->from->head.strips && !j->w->failed; i++)
        strip_join(j, &j->from->strips[i]);
}

tamis_error tamis_catalog_join(tamis_catalog_writer *w, const tamis_catalog *from,
                               const uint64_t *segments, tamis_reason *reason)
{
    struct joining j = {.w = w, .from = from};
    if (!tamis_schema_alike(&w->schema, &from->schema))
        return fail(reason, TAMIS_EARG,
                    "the joined catalog has different attributes or a different key");
    j.number = mem_new(&w->allocator, from->head.segments + 1, sizeof *j.number);
    j.words = mem_new(&w->allocator, (size_t)STRIP_COLUMNS * JOIN_WORDS, sizeof *j.words);
    pthread_mutex_lock(&w->lock);
    tamis_error e = writer_ready(w, reason);
    if (e == TAMIS_OK) {
        if (j.number && j.words)
            join_all(&j, segments);
        else
            writer_no_memory(w);
        e = writer_ready(w, reason);
    }
    pthread_mutex_unlock(&w->lock);
    mem_free(&w->allocator, j.number, from->head.segments + 1, sizeof *j.number);
    mem_free(&w->allocator, j.words, (size_t)STRIP_COLUMNS * JOIN_WORDS, sizeof *j.words);
    return e;
}
