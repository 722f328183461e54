/* Catalogs: creating, updating, putting segments. See catalog_writer.h. */
#include "catalog_writer.h"

#include "base/err.h"
#include "tamis/catalog.h"

#define HELD_SHARE(memory) ((memory) / 3 * 2) /* digests that wait for the plan */

/* Number of values of a relation for which columns are made. */
static uint64_t gathered(const tamis_gather *g, uint32_t relation)
{
    return g->unknown[relation] ? 0 : digest_set_count(&g->set[relation]);
}

/* ---- segments -------------------------------------------------------------------------------- */

static bool segments_room(tamis_catalog_writer *w)
{
    size_t before = w->segments_room, len = facts_len(&w->schema);
    if (w->n_segments < before)
        return true;
    size_t more = before ? 2 * before : 64;
    uint8_t *facts = mem_new(&w->allocator, more, len);
    struct segment_work *segments = mem_new(&w->allocator, more, sizeof *segments);
    if (!facts || !segments) {
        mem_free(&w->allocator, facts, more, len);
        mem_free(&w->allocator, segments, more, sizeof *segments);
        return false;
    }
    if (before) {
        memcpy(facts, w->facts, w->n_segments * len);
        memcpy(segments, w->segments, w->n_segments * sizeof *segments);
    }
    mem_free(&w->allocator, w->facts, before, len);
    mem_free(&w->allocator, w->segments, before, sizeof *segments);
    w->facts = facts;
    w->segments = segments;
    w->segments_room = more;
    return true;
}

bool writer_tag(tamis_catalog_writer *w, struct segment_work *s, const void *tag, size_t len)
{
    s->tag_at = spill_room(&w->spill, len);
    s->tag_len = len;
    return spill_put(w, tag, len, s->tag_at);
}

/* Adds a segment, whose distinct values are still to be filled in. */
bool writer_segment(tamis_catalog_writer *w, const struct segment_work *s)
{
    if (w->n_segments >= SEGMENTS_MAX) {
        w->failed = fail(&w->why, TAMIS_ELIMIT, "a catalog has at most 2^31 segments");
        return false;
    }
    if (!segments_room(w))
        return writer_no_memory(w);
    w->segments[w->n_segments++] = *s;
    w->live++;
    return true;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* What a segment takes in a relation. */
struct allotment {
    uint32_t shape, columns;
    uint64_t at; /* offset in the spill */
};

bool writer_shape(tamis_catalog_writer *w, uint32_t relation, const struct column_plan *plan)
{
    if (!ROOM_FOR_ONE(w, shapes, n_shapes, shapes_room))
        return writer_no_memory(w);
    w->shapes[w->n_shapes++] =
        (struct shape_work){.shape = {relation, *plan}, .number = STRIP_NONE};
    return true;
}

void writer_column(tamis_catalog_writer *w, uint32_t shape, struct column_source column)
{
    if (ROOM_FOR_ONE(w, shapes[shape].columns, shapes[shape].n, shapes[shape].room))
        w->shapes[shape].columns[w->shapes[shape].n++] = column;
    else
        writer_no_memory(w);
}

/* The rate used by the columns of combinations in the old version. */
static void count_used(tamis_catalog_writer *w)
{
    const tamis_catalog *old = w->old;
    for (uint32_t i = 0; !w->used_known && old && i < old->head.strips; i++)
        for (uint32_t j = 0; j < old->strips[i].n; j++) {
            uint32_t segment; /* a wrong number is found when the columns are read */
            const struct catalog_shape *shape = &old->shapes[old->strips[i].shape];
            if (catalog_column_segment(old, old->strips[i].column + j, &segment, NULL) &&
                segment != STRIP_NONE && !w->segments[segment].dropped)
                w->used[w->shapes[old->strips[i].shape].shape.relation] += shape->plan.rate;
        }
    w->used_known = true;
}

static double rate_of(tamis_catalog_writer *w, uint32_t relation)
{
    count_used(w);
    return relation < w->schema.attributes
               ? w->schema.fpp
               : catalog_share(&w->schema, w->live - 1, w->used[relation]);
}

/* The shape with the fewest bits for n values. The more shapes there are, the more waste is
   accepted. */
static bool place_choose(tamis_catalog_writer *w, uint32_t relation, uint64_t n,
                         struct allotment *out)
{
    double rate = rate_of(w, relation);
    uint32_t known = 0;
    for (size_t i = 0; i < w->n_shapes; i++)
        known += w->shapes[i].shape.relation == relation;
    struct column_choice choice = {n, rate, known < 8 ? 1.08 : known < 24 ? 1.25 : 4, 0, 0};
    for (size_t i = 0; i < w->n_shapes; i++)
        if (w->shapes[i].shape.relation == relation)
            column_choice_offer(&choice, &w->shapes[i].shape.plan, i);
    out->shape = (uint32_t)choice.best;
    if (choice.bits == 0) {
        struct column_plan plan;
        if (!column_plan_one(&plan, n, rate))
            w->failed = fail(&w->why, TAMIS_ELIMIT, "no column holds %llu values at the rate %g",
                             (unsigned long long)n, rate);
        if (w->failed || !writer_shape(w, relation, &plan))
            return false;
        out->shape = (uint32_t)w->n_shapes - 1;
    }
    const struct column_plan *plan = &w->shapes[out->shape].shape.plan;
    out->columns = column_plan_columns(plan, n);
    out->at = spill_room(&w->spill, out->columns * 8 * strip_column_words(plan->units));
    w->used[relation] += out->columns * plan->rate;
    return true;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Zeroed words in reusable memory. */
static uint64_t *scratch_words(struct block *scratch, const tamis_allocator *a, uint64_t words)
{
    if (scratch->size < 8 * words + 64) {
        block_free(a, scratch);
        if (!block_new(a, 8 * words + 64, scratch))
            return NULL;
    }
    memset(scratch->data, 0, 8 * words);
    return scratch->data;
}

/* Needs no lock, since the shapes are given. Returns 0 or errno. */
static int place_build(const tamis_catalog_writer *w, const struct catalog_shape *shape,
                       const struct allotment *place, const tamis_digest *digests, uint64_t n,
                       struct block *scratch)
{
    uint64_t column_words = strip_column_words(shape->plan.units);
    struct bits bits = shape_bits(shape, &w->family);
    uint64_t *words = scratch_words(scratch, &w->allocator, column_words * place->columns);
    if (!words)
        return ENOMEM;
    strip_build(&bits, digests, n, place->columns, column_words, words);
    return file_write(w->spill.fd, words, 8 * column_words * place->columns, (int64_t)place->at);
}

static void place_record(tamis_catalog_writer *w, uint32_t segment, const struct allotment *place)
{
    uint64_t bytes = 8 * strip_column_words(w->shapes[place->shape].shape.plan.units);
    for (uint32_t i = 0; i < place->columns; i++) {
        struct column_source column = {segment, STRIP_NONE, place->at + i * bytes};
        writer_column(w, place->shape, column);
    }
    strips_write(w, &w->shapes[place->shape], false);
}

/* ---- held segments, and the plan ------------------------------------------------------------- */

static size_t held_size(uint64_t n)
{
    return sizeof(struct held) + n * sizeof(tamis_digest);
}

static bool hold(tamis_catalog_writer *w, const tamis_gather *g, uint32_t segment)
{
    uint64_t n = 0;
    for (uint32_t r = 0; r < g->relations; r++)
        n += gathered(g, r);
    struct held *held = mem_new(&w->allocator, 1, held_size(n));
    if (!held)
        return writer_no_memory(w);
    *held = (struct held){.next = w->held, .segment = segment, .n = n};
    w->held = held;
    w->held_bytes += held_size(n);
    tamis_digest *at = held->digests;
    for (uint32_t r = 0; r < g->relations; at += gathered(g, r), r++) {
        if (gathered(g, r))
            digest_set_list(&g->set[r], at);
        if (r < w->schema.attributes)
            fronts_put(w, r, at, gathered(g, r));
    }
    return !w->failed;
}

static bool plan_relation(tamis_catalog_writer *w, uint32_t relation, bool last)
{
    struct column_plan plans[PLANS_MAX];
    uint64_t *sizes = mem_new(&w->allocator, w->n_segments, sizeof *sizes);
    size_t n = 0, found = 0;
    if (!sizes)
        return writer_no_memory(w);
    for (size_t i = 0; i < w->n_segments; i++) {
        uint32_t size = segment_distinct(w, i)[relation];
        if (size && size != DISTINCT_UNKNOWN)
            sizes[n++] = size;
    }
    double rate = relation < w->schema.attributes ? w->schema.fpp : catalog_share(&w->schema, 0, 0);
    if (n)
        found = column_plans(plans, sizes, n, rate, !last);
    mem_free(&w->allocator, sizes, w->n_segments, sizeof *sizes);
    for (size_t i = 0; i < found && !w->failed; i++)
        writer_shape(w, relation, &plans[i]);
    return !w->failed;
}

static void build_held(tamis_catalog_writer *w, const struct held *held, struct block *scratch)
{
    const tamis_digest *digests = held->digests;
    uint32_t relations = schema_relations(&w->schema);
    for (uint32_t r = 0; r < relations && !w->failed; r++) {
        uint64_t n = segment_distinct(w, held->segment)[r];
        struct allotment place;
        if (n == 0 || n == DISTINCT_UNKNOWN || !place_choose(w, r, n, &place))
            continue;
        const struct catalog_shape *shape = &w->shapes[place.shape].shape;
        if (writer_check(w, place_build(w, shape, &place, digests, n, scratch), SPILLING))
            place_record(w, held->segment, &place);
        digests += n;
    }
}

/* Plans shapes for everything held (`last`: and for nothing more), then builds its columns. */
static void plan_and_build(tamis_catalog_writer *w, bool last)
{
    struct block scratch = {0};
    uint64_t live = w->live;
    for (uint32_t r = 0; r < schema_relations(&w->schema) && !w->failed; r++)
        plan_relation(w, r, last);
    w->planned = true;
    struct held *before = NULL; /* restore the order of arrival */
    for (struct held *next; w->held; w->held = next) {
        next = w->held->next;
        w->held->next = before;
        before = w->held;
    }
    w->held = before;
    while (w->held && !w->failed) {
        struct held *held = w->held;
        w->live = held->segment + 1; /* as it was on arrival */
        build_held(w, held, &scratch);
        w->held = held->next;
        mem_free(&w->allocator, held, 1, held_size(held->n));
    }
    w->live = live;
    w->held_bytes = 0;
    block_free(&w->allocator, &scratch);
}

/* ---- putting --------------------------------------------------------------------------------- */

tamis_error writer_ready(const tamis_catalog_writer *w, tamis_reason *reason)
{
    if (w->committed)
        return fail(reason, TAMIS_EARG, "%s was already committed", w->path);
    if (w->failed && reason)
        *reason = w->why;
    return w->failed;
}

bool writer_check(tamis_catalog_writer *w, int error, const char *doing)
{
    if (error && !w->failed)
        w->failed = error == ENOMEM ? fail(&w->why, TAMIS_ENOMEM, NO_MEMORY_TO_WRITE)
                                    : file_fail(&w->why, error, w->path, doing);
    return !w->failed;
}

/* Assigns a number to the segment, whose facts are copied. */
static bool put_begin(tamis_catalog_writer *w, const tamis_gather *g, const void *tag, size_t len)
{
    struct segment_work s = {.records = g->records, .text = g->text ? g->text : g->values_len};
    if (!writer_tag(w, &s, tag, len) || !writer_segment(w, &s))
        return false;
    size_t segment = w->n_segments - 1;
    for (uint32_t r = 0; r < g->relations; r++) {
        uint64_t n = gathered(g, r);
        if (n >= DISTINCT_UNKNOWN && !w->failed)
            w->failed = fail(&w->why, TAMIS_ELIMIT, "the segment has too many values");
        segment_distinct(w, segment)[r] = g->unknown[r] ? DISTINCT_UNKNOWN : (uint32_t)n;
    }
    memcpy(segment_bounds(w, segment), g->bounds, w->schema.ordered * sizeof *g->bounds);
    return !w->failed;
}

/* Builds the columns of the segment in relation r. The lock is released meanwhile: the place in the spill is theirs. */
static void put_relation(tamis_catalog_writer *w, tamis_gather *g, uint32_t r, uint32_t segment,
                         tamis_digest *list)
{
    struct allotment place;
    uint64_t n = gathered(g, r);
    if (n == 0 || !place_choose(w, r, n, &place))
        return;
    struct catalog_shape shape = w->shapes[place.shape].shape;
    pthread_mutex_unlock(&w->lock);
    digest_set_list(&g->set[r], list);
    int error = place_build(w, &shape, &place, list, n, &g->scratch);
    pthread_mutex_lock(&w->lock);
    if (writer_check(w, error, SPILLING) && r < w->schema.attributes)
        fronts_put(w, r, list, n);
    if (!w->failed)
        place_record(w, segment, &place);
}

static bool put_build(tamis_catalog_writer *w, tamis_gather *g, uint32_t segment)
{
    uint64_t most = 0;
    for (uint32_t r = 0; r < g->relations; r++)
        most = max_u64(most, gathered(g, r));
    tamis_digest *list = mem_new(&g->allocator, most, sizeof *list);
    if (!list)
        return writer_no_memory(w);
    for (uint32_t r = 0; r < g->relations && !w->failed; r++)
        put_relation(w, g, r, segment, list);
    mem_free(&g->allocator, list, most, sizeof *list);
    return !w->failed;
}

tamis_error tamis_catalog_put(tamis_catalog_writer *w, tamis_gather *g, const void *tag, size_t len,
                              tamis_reason *reason)
{
    if (g->schema != &w->schema)
        return fail(reason, TAMIS_EARG, "the gatherer belongs to another catalog");
    if (gather_settle(g) != TAMIS_OK)
        return fail(reason, TAMIS_ENOMEM, NO_MEMORY_TO_WRITE);
    pthread_mutex_lock(&w->lock);
    if (writer_ready(w, NULL) == TAMIS_OK && put_begin(w, g, tag, len)) {
        uint32_t segment = (uint32_t)w->n_segments - 1;
        if (w->planned)
            put_build(w, g, segment);
        else if (hold(w, g, segment) && w->held_bytes >= HELD_SHARE(w->memory))
            plan_and_build(w, false);
    }
    tamis_error e = writer_ready(w, reason);
    pthread_mutex_unlock(&w->lock);
    if (e == TAMIS_OK)
        tamis_gather_clear(g);
    return e;
}

/* ---- segments of the old version -------------------------------------------------------------- */

static tamis_error old_segment(const tamis_catalog_writer *w, uint64_t segment,
                               tamis_reason *reason)
{
    uint64_t n = w->old ? w->old->head.segments : 0;
    tamis_error e = writer_ready(w, reason);
    if (e == TAMIS_OK && segment >= n)
        e = fail(reason, TAMIS_EARG, "no segment %llu: the old file has %llu",
                 (unsigned long long)segment, (unsigned long long)n);
    if (e == TAMIS_OK && w->segments[segment].dropped)
        e = fail(reason, TAMIS_EARG, "segment %llu was already dropped",
                 (unsigned long long)segment);
    return e;
}

tamis_error tamis_catalog_drop(tamis_catalog_writer *w, uint64_t segment, tamis_reason *reason)
{
    pthread_mutex_lock(&w->lock);
    tamis_error e = old_segment(w, segment, reason);
    if (e == TAMIS_OK) {
        w->segments[segment].dropped = true;
        w->live--;
    }
    pthread_mutex_unlock(&w->lock);
    return e;
}

tamis_error tamis_catalog_retag(tamis_catalog_writer *w, uint64_t segment, const void *tag,
                                size_t len, tamis_reason *reason)
{
    pthread_mutex_lock(&w->lock);
    tamis_error e = old_segment(w, segment, reason);
    if (e == TAMIS_OK && !writer_tag(w, &w->segments[segment], tag, len))
        e = writer_ready(w, reason);
    pthread_mutex_unlock(&w->lock);
    return e;
}

/* ---- the end --------------------------------------------------------------------------------- */

tamis_error tamis_catalog_commit(tamis_catalog_writer *w, const void *note, size_t len,
                                 tamis_reason *reason)
{
    tamis_error e = writer_ready(w, reason);
    if (e != TAMIS_OK)
        return e;
    if (!w->planned)
        plan_and_build(w, true);
    strips_keep(w);
    for (size_t i = 0; i < w->n_shapes; i++)
        strips_write(w, &w->shapes[i], true);
    w->strips_len = w->sink.at + w->sink.used - w->sink.start;
    fronts_write(w);
    if (!w->failed)
        commit_write(w, note, len);
    e = writer_ready(w, reason);
    w->committed = e == TAMIS_OK;
    return e;
}

void tamis_catalog_abandon(tamis_catalog_writer *w)
{
    if (!w)
        return;
    tamis_allocator a = w->allocator;
    for (size_t i = 0; i < w->n_shapes; i++)
        mem_free(&a, w->shapes[i].columns, w->shapes[i].room, sizeof *w->shapes[i].columns);
    mem_free(&a, w->shapes, w->shapes_room, sizeof *w->shapes);
    mem_free(&a, w->strips, w->strips_room, sizeof *w->strips);
    mem_free(&a, w->columns, w->columns_room, sizeof *w->columns);
    mem_free(&a, w->segments, w->segments_room, sizeof *w->segments);
    mem_free(&a, w->facts, w->segments_room, facts_len(&w->schema));
    for (struct held *next; w->held; w->held = next) {
        next = w->held->next;
        mem_free(&a, w->held, 1, held_size(w->held->n));
    }
    fronts_free(w);
    new_file_free(w);
    tamis_catalog_close(w->old);
    beside_close(&w->file);
    spill_close(&w->spill);
    family_free(&w->family, &a);
    pthread_mutex_destroy(&w->lock);
    mem_free(&a, w->path, strlen(w->path) + 1, 1);
    mem_free(&a, w, 1, sizeof *w);
}
