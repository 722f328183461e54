/*
 * Writing a catalog. Segments come from several threads; each thread builds its columns in its own
 * memory and writes them to a spill file, so that memory is bounded for any amount of data. As soon as
 * a shape has 512 columns they become a strip, transposed window by window into the new file.
 *
 *     gather --> columns --> spill --(512 of a shape)--> strip --> new file --(commit)--> the file
 *
 * The first segments are held as digests until there are enough of them to plan shapes from their
 * sizes. Full strips of an old version are copied; the columns of its other strips go into new strips
 * together with new columns.
 *
 * Memory holds: the digests held; keys for the fronts, an eighth of the memory; a window of the columns
 * of a strip, 4 MiB, and as much of the old version; per segment about 60 bytes, plus 4 per relation
 * and 32 per ordered attribute. Tags and checksums of pages wait in the spill.
 */
#ifndef TAMIS_FILE_CATALOG_H
#define TAMIS_FILE_CATALOG_H

#include <errno.h>
#include <pthread.h>

#include "base/err.h"
#include "os/file.h"
#include "catalog_bytes.h"
#include "tamis/catalog.h"

#define BLOCK_WORDS  UINT64_C(64)       /* words of a column that are transposed together */
#define WINDOW_WORDS (16 * BLOCK_WORDS) /* most words that are read together */
/* fraction of the memory for a window of all columns of a strip */
#define WINDOW_SHARE 8
#define SINK_BUFFER  ((size_t)256 << 10)
#define SINK_SUMS    (CATALOG_PAGE / sizeof(uint64_t)) /* in a page of checksums */

/* A column that will be part of a strip: in the spill, or in a strip of the old version. */
struct column_source {
    uint32_t segment; /* old segments first, then in the order in which they were put */
    uint32_t strip;   /* strip of the old version, or STRIP_NONE */
    uint64_t at;      /* offset in the spill, or number of the column in the strip */
};

struct shape_work {
    struct catalog_shape shape;
    struct column_source *columns;
    size_t n, room;
    uint32_t number; /* number in the new file, or STRIP_NONE */
};

#define TAG_OLD UINT64_MAX

struct segment_work {
    uint64_t records, text;
    uint64_t tag_at; /* in the spill, or TAG_OLD: as in the old version */
    uint64_t tag_len;
    uint32_t number; /* in the new file, once known */
    bool dropped;
};

/* The digests of a segment that waits for the plan, by relation. */
struct held {
    struct held *next;
    uint32_t segment;
    uint64_t n;
    tamis_digest digests[];
};

/* A page of checksums in the spill, and its own checksum. */
struct sums_page {
    uint64_t at, sum;
};

/* The new file, written from front to back. */
struct new_file {
    uint64_t start, at; /* of the payload; of the buffer */
    size_t used;
    uint8_t *buffer;
    uint64_t sums[SINK_SUMS]; /* of pages; each full page of them goes to the spill */
    size_t n_sums;
    struct sums_page *pages;
    size_t n, room;
};

/* Keys of an attribute for its front: their first words in memory, and runs of them in the
   spill. */
struct front_run {
    uint64_t at, n;
    uint32_t level; /* runs of one level are merged */
};

struct front_work {
    uint64_t *words;
    size_t n, room;
    struct front_run *runs;
    size_t n_runs, runs_room;
    uint64_t given;
    bool lost; /* the old version has keys, but no front */
};

struct front_plan {
    struct catalog_front head;
    const struct catalog_front *old; /* the front in the old version, or NULL */
    bool fresh;                      /* takes the new keys */
    uint32_t bits;                   /* of a fingerprint, if there is room for all of them */
};

struct tamis_catalog_writer {
    tamis_allocator allocator;
    struct family family;
    tamis_schema schema;
    char *path;
    uint64_t memory;
    pthread_mutex_t lock;
    struct beside file;
    struct spill spill;
    struct new_file sink;
    tamis_catalog *old;
    struct shape_work *shapes;
    size_t n_shapes, shapes_room;
    struct catalog_strip *strips; /* written so far */
    size_t n_strips, strips_room;
    uint32_t *columns; /* their segments */
    size_t n_columns, columns_room;
    struct segment_work *segments;
    uint8_t *facts; /* FACTS_LEN each: distinct values of relations, bounds of attributes */
    size_t n_segments, segments_room;
    uint64_t live;
    double used[RELATIONS_MAX]; /* share of the rate used, by combination */
    bool used_known;
    struct held *held;
    uint64_t held_bytes;
    bool planned;
    struct front_work fronts[TAMIS_ATTRIBUTES_MAX];
    size_t front_words; /* waiting, in all attributes */
    struct front_plan *plans;
    size_t n_plans, plans_room;
    uint64_t strips_len;
    tamis_error failed; /* the first error; nothing more is written after it */
    tamis_reason why;   /* its reason, for every later caller */
    bool committed;
};

/* Bytes of facts about a segment. */
ALWAYS_INLINE size_t facts_len(const tamis_schema *s)
{
    return (size_t)round_up(4 * schema_relations(s), 8) + s->ordered * sizeof(tamis_range);
}
ALWAYS_INLINE uint32_t *segment_distinct(const tamis_catalog_writer *w, size_t segment)
{
    return (uint32_t *)(w->facts + segment * facts_len(&w->schema));
}
ALWAYS_INLINE tamis_range *segment_bounds(const tamis_catalog_writer *w, size_t segment)
{
    return (tamis_range *)((uint8_t *)segment_distinct(w, segment) +
                           round_up(4 * schema_relations(&w->schema), 8));
}

#define NO_MEMORY_TO_WRITE "no memory to write a catalog"
#define SPILLING           "writing temporary data for"

/*
 * Errors stay in the writer: `failed` and `why` hold the first one, each step is skipped after it, and the call in
 * progress and all later ones return it. So steps are written one after the other, and those below that return a bool
 * say whether the writer can go on. Only steps under the lock may look at errors or record them.
 */
/* Records `error`, 0 or errno, of an operation on a file. */
bool writer_check(tamis_catalog_writer *w, int error, const char *doing);
ALWAYS_INLINE bool writer_no_memory(tamis_catalog_writer *w)
{
    return writer_check(w, ENOMEM, "");
}
/* Writes to the spill and reads from it, at an offset from spill_room. */
ALWAYS_INLINE bool spill_put(tamis_catalog_writer *w, const void *data, size_t len, uint64_t at)
{
    return writer_check(w, file_write(w->spill.fd, data, len, (int64_t)at), SPILLING);
}
ALWAYS_INLINE bool spill_get(tamis_catalog_writer *w, void *data, size_t len, uint64_t at)
{
    return writer_check(w, spill_read(&w->spill, data, len, at), "reading temporary data for");
}

/* For one more element of an array. */
#define ROOM_FOR_ONE(w, array, n, room) \
    array_room(&(w)->allocator, &(w)->array, (w)->n, &(w)->room, sizeof *(w)->array)

/* ---- catalog_writer.c ---- */
/* An error, with its reason, unless the writer can go on. */
tamis_error writer_ready(const tamis_catalog_writer *w, tamis_reason *reason);
/* Writes the tag of a segment to the spill. */
bool writer_tag(tamis_catalog_writer *w, struct segment_work *s, const void *tag, size_t len);
/* Adds a segment, whose facts are still to be filled in; a shape for columns; and a column of the shape, which waits
   for a strip. */
bool writer_segment(tamis_catalog_writer *w, const struct segment_work *s);
bool writer_shape(tamis_catalog_writer *w, uint32_t relation, const struct column_plan *plan);
void writer_column(tamis_catalog_writer *w, uint32_t shape, struct column_source column);

/* ---- writer_strips.c ---- */
void new_file_init(tamis_catalog_writer *w);
void new_file_free(tamis_catalog_writer *w);
void new_file_put(tamis_catalog_writer *w, const void *data, uint64_t len);
/* Zeros up to an offset less than SECTION_ALIGN away; or up to the next multiple of it. */
void new_file_fill(tamis_catalog_writer *w, uint64_t to);
void new_file_align(tamis_catalog_writer *w);
/* Everything was written, all pages have checksums, and these are in the spill. */
void new_file_end(tamis_catalog_writer *w);
/* Writes strips of the columns of a shape: as long as there are 512, or all. */
void strips_write(tamis_catalog_writer *w, struct shape_work *shape, bool all);
/* Keeps the remaining parts of the old version: full strips are copied, columns of others wait
   for strips_write. */
void strips_keep(tamis_catalog_writer *w);

/* Copies bytes of the spill, and checked bytes of the old version. */
void new_file_put_spilled(tamis_catalog_writer *w, uint64_t at, uint64_t len);
void new_file_copy(tamis_catalog_writer *w, uint64_t from, uint64_t len);

/* ---- writer_fronts.c ---- */
/* Under the lock: adds the keys of a segment. */
void fronts_put(tamis_catalog_writer *w, uint32_t attribute, const tamis_digest *digests,
                uint64_t n);
void fronts_write(tamis_catalog_writer *w);
void fronts_free(tamis_catalog_writer *w);

/* ---- writer_commit.c ---- */
void commit_write(tamis_catalog_writer *w, const void *note, size_t len);

#endif
