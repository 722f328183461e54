/* Starts writers: creates a catalog, or updates one with everything it has. See catalog_writer.h. */
#include "catalog_writer.h"

#include "base/err.h"
#include "tamis/catalog.h"

static tamis_error writer_new(tamis_catalog_writer **out, const tamis_allocator *a,
                              const char *path, tamis_reason *reason)
{
    tamis_catalog_writer *w = mem_new0(a, 1, sizeof *w);
    if (!w)
        return fail(reason, TAMIS_ENOMEM, NO_MEMORY_TO_WRITE);
    w->allocator = *a;
    w->file.folder = w->file.fd = w->spill.fd = -1;
    w->path = mem_new(a, strlen(path) + 1, 1);
    if (!w->path || pthread_mutex_init(&w->lock, NULL) != 0) {
        mem_free(a, w->path, strlen(path) + 1, 1);
        mem_free(a, w, 1, sizeof *w);
        return fail(reason, TAMIS_ENOMEM, NO_MEMORY_TO_WRITE);
    }
    memcpy(w->path, path, strlen(path) + 1);
    *out = w;
    return TAMIS_OK;
}

/* The schema and the family are already set, unless the writer has failed. */
static void writer_files(tamis_catalog_writer *w)
{
    if (w->failed)
        return;
    w->schema.family = &w->family;
    w->schema.allocator = &w->allocator;
    w->schema.memory = w->memory;
    w->failed = beside_open(&w->file, w->path, family_beside(w->path, w->family.has_key), &w->why);
    if (!w->failed && writer_check(w, spill_open(&w->spill, &w->file), SPILLING))
        new_file_init(w);
}

static tamis_error writer_give(tamis_catalog_writer **out, tamis_catalog_writer *w,
                               tamis_reason *reason)
{
    tamis_error e = writer_ready(w, reason);
    if (e == TAMIS_OK)
        *out = w;
    else
        tamis_catalog_abandon(w);
    return e;
}

tamis_error tamis_catalog_create(tamis_catalog_writer **out, const char *path,
                                 const tamis_catalog_options *o, tamis_reason *reason)
{
    static const tamis_catalog_options none;
    tamis_catalog_writer *w;
    o = o ? o : &none;
    if ((unsigned)o->hash > TAMIS_H3)
        return fail(reason, TAMIS_EARG, "an unknown hash");
    tamis_error e = writer_new(&w, o->allocator ? o->allocator : &mem_system, path, reason);
    if (e != TAMIS_OK)
        return e;
    w->memory = o->memory ? o->memory : CATALOG_MEMORY;
    w->failed = (o->like ? schema_like : schema_from)(&w->schema, o, &w->why);
    if (!w->failed && (o->like ? family_copy(&w->family, o->like->family, &w->allocator)
                               : family_init(&w->family, &w->allocator,
                                             o->hash ? o->hash : TAMIS_XXH3, o->key)) != TAMIS_OK)
        writer_no_memory(w);
    writer_files(w);
    w->planned = o->joinable; /* shapes planned from its own segments would be unique */
    for (uint32_t i = 0; o->joinable && i < w->schema.attributes; i++)
        w->fronts[i].lost = true;
    return writer_give(out, w, reason);
}

/* Combinations come after all attributes, including new ones. */
static uint32_t relation_now(const tamis_catalog_writer *w, uint32_t old)
{
    uint32_t attributes = w->old->schema.attributes;
    return old < attributes ? old : old + w->schema.attributes - attributes;
}

/* Copies what the old version knows about a segment; nothing is known about relations added by the update. */
static void take_facts(tamis_catalog_writer *w, uint64_t segment)
{
    const tamis_schema *s = &w->schema, *old = &w->old->schema;
    uint32_t *distinct = segment_distinct(w, segment);
    tamis_range *bounds = segment_bounds(w, segment);
    for (uint32_t r = 0; r < schema_relations(s); r++)
        distinct[r] = DISTINCT_UNKNOWN;
    for (uint32_t r = 0; r < schema_relations(old); r++) {
        uint32_t n = catalog_distinct(w->old, segment, r);
        distinct[relation_now(w, r)] = n;
        if (r < old->attributes && w->old->first_front[r] == STRIP_NONE && n &&
            n != DISTINCT_UNKNOWN)
            w->fronts[r].lost = true;
    }
    for (uint32_t i = 0; i < s->attributes; i++)
        if (s->order_at[i] != ORDER_NONE)
            bounds[s->order_at[i]] =
                i < old->attributes ? catalog_bounds(w->old, segment, i) : BOUNDS_UNKNOWN;
}

static void take_old(tamis_catalog_writer *w)
{
    const tamis_catalog *old = w->old;
    for (uint64_t i = 0; i < old->head.segments && !w->failed; i++) {
        size_t len;
        tamis_catalog_tag(old, i, &len);
        const struct segment_work s = {.records = tamis_catalog_records(old, i),
                                       .text = catalog_text(old, i),
                                       .tag_at = TAG_OLD,
                                       .tag_len = len};
        if (writer_segment(w, &s))
            take_facts(w, i);
    }
    for (uint32_t i = 0; i < old->head.shapes && !w->failed; i++)
        writer_shape(w, relation_now(w, old->shapes[i].relation), &old->shapes[i].plan);
    w->planned = old->head.shapes > 0;
    tamis_catalog_rest(old);
}

tamis_error tamis_catalog_update(tamis_catalog_writer **out, const char *path,
                                 const tamis_open_options *o, const tamis_catalog_options *more,
                                 tamis_reason *reason)
{
    tamis_catalog_writer *w;
    tamis_error e = writer_new(&w, o && o->allocator ? o->allocator : &mem_system, path, reason);
    if (e != TAMIS_OK)
        return e;
    w->memory = more && more->memory ? more->memory : CATALOG_MEMORY;
    w->failed = tamis_catalog_open(&w->old, path, o, &w->why);
    if (!w->failed) {
        w->schema = w->old->schema;
        if (family_copy(&w->family, &w->old->family, &w->allocator) != TAMIS_OK)
            writer_no_memory(w);
    }
    if (!w->failed && more)
        w->failed = schema_extend(&w->schema, more, &w->why);
    writer_files(w);
    if (!w->failed)
        take_old(w);
    return writer_give(out, w, reason);
}

const tamis_schema *tamis_catalog_writer_schema(const tamis_catalog_writer *w)
{
    return &w->schema;
}
