/* Segments: cut while the input is read, and read again individually. */
#define _GNU_SOURCE
#include "reader_input.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/err.h"
#include "reader_cut.h"

/* ---- memory ---------------------------------------------------------------------------------- */

static bool text_room(struct input_text *text, size_t room)
{
    if (room <= text->capacity)
        return true;
    uint8_t *memory = realloc(text->memory, room);
    if (!memory)
        return false;
    text->memory = memory;
    text->capacity = room;
    size_t lead = -(uintptr_t)memory & (HUGE_PAGE - 1);
    if (room >= lead + HUGE_PAGE) /* a quarter of the time of the first read is page faults */
        madvise(memory + lead, (room - lead) & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
    return true;
}

void input_text_free(struct input_text *text)
{
    source_free(text->source);
    free(text->memory);
    *text = (struct input_text){0};
}

void input_segment_free(struct input_segment *segment)
{
    free(segment->restart);
    free(segment->header);
    *segment = (struct input_segment){0};
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* The growing text of a segment. */
struct growth {
    struct input *input;
    struct input_text *text;
    struct cut cut;
    size_t len, target; /* target 0: not known yet */
    size_t chunk;
    bool final;
};

/* Bytes to take at once, so that little has to be put back. */
static size_t chunk_of(size_t segment)
{
    size_t chunk = segment / 32;
    return chunk < 64 ? 64 : chunk > SOURCE_CHUNK ? SOURCE_CHUNK : chunk;
}

/* Where the segment may end, once that is known. */
static size_t target_of(const struct growth *g)
{
    const struct input_private *own = g->input->own;
    const struct source *source = own->source;
    if (g->input->kind == PACK_NONE || own->walking)
        return own->segment;
    if (source->noted && source->point.out > own->next.offset + own->segment / 2)
        return (size_t)(source->point.out - own->next.offset);
    return g->len / 2 >= own->segment ? g->len : 0;
}

#define GROW_MIN   ((size_t)1 << 20)
#define FIRST_MOST ((uint64_t)64 << 20)

/* Reads more text; false: no memory. */
static bool grow(struct growth *g)
{
    size_t room = g->chunk, most = g->len < GROW_MIN ? GROW_MIN : g->len;
    bool seekable = g->input->kind == PACK_NONE && g->input->regular;
    if ((seekable || g->input->own->walking) && g->target > g->len)
        room += g->target - g->len;
    else if (g->len / 2 > g->input->own->segment && g->len / 4 > room)
        room = g->len / 4; /* a long record */
    room = room < most ? room : most;
    size_t need = g->len + room;
    if (need > g->text->capacity && !text_room(g->text, need + need / 4))
        return false;
    size_t got = input_take(g->input->own, g->text->memory + g->len, room);
    g->len += got;
    g->final = got == 0;
    return true;
}

/* From a plain pipe, what has arrived is enough. */
static size_t piped_end(struct growth *g)
{
    struct input_private *own = g->input->own;
    if (g->input->kind != PACK_NONE || g->input->regular || own->back.at < own->back.len)
        return 0;
    return g->cut.last;
}

static tamis_error out_of_memory(const struct input *input, tamis_reason *reason)
{
    return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
}

/* Reads until the text contains a segment; returns its length. 0: nothing is left. */
static tamis_error grow_segment(struct growth *g, size_t *end, tamis_reason *reason)
{
    struct source *source = g->input->own->source;
    *end = 0;
    while (*end == 0 && !g->final) {
        if (!g->target)
            g->target = target_of(g);
        if (!grow(g))
            return out_of_memory(g->input, reason);
        if (!g->target)
            g->target = target_of(g);
        bool whole = g->final && source->error == TAMIS_OK;
        *end =
            cut_search(&g->cut, g->text->memory, g->len, g->target ? g->target : SIZE_MAX, whole);
        if (g->cut.open) /* the last segment has it; reading continues there if the file grows */
            *end = g->len;
        if (*end == 0)
            *end = piped_end(g);
        if (*end == 0 && g->len - g->cut.record > g->input->dialect.record_max + g->chunk)
            *end = g->cut.last;
        if (*end == 0 && g->len - g->cut.record > g->input->dialect.record_max + g->chunk)
            return fail_at(reason, TAMIS_ELIMIT, g->input->own->next.offset + g->cut.record,
                           "%.120s: a record is longer than %zu bytes", g->input->path,
                           g->input->dialect.record_max);
    }
    if (*end == 0 && source->error != TAMIS_OK) { /* whole records first, then the error */
        *end = g->cut.last;
        if (*end == 0)
            return source_failed(source, reason);
    }
    return TAMIS_OK;
}

static bool copy_of(const uint8_t *from, size_t len, uint8_t **to, size_t *to_len)
{
    *to = len ? malloc(len) : NULL;
    *to_len = len;
    if (*to)
        memcpy(*to, from, len);
    return *to || !len;
}

/* Makes the first `end` bytes of the text a segment. */
static tamis_error take_segment(struct growth *g, size_t end, struct input_segment *segment,
                                tamis_reason *reason)
{
    struct input_private *own = g->input->own;
    struct source *source = own->source;
    *segment = own->next;
    segment->len = end;
    segment->lined = g->input->dialect.format == READ_CSV && !g->cut.folded;
    if (g->input->kind == PACK_NONE) {
        segment->at = own->next.offset;
        segment->at_len = end;
    } else {
        segment->at = own->restart.at;
        segment->at_len = source_at(source) - own->restart.at;
        segment->skip = own->next.offset - own->restart.out;
        if (!own->walking &&
            !copy_of(own->restart.blob, own->restart.len, &segment->restart, &segment->restart_len))
            return out_of_memory(g->input, reason);
    }
    if (own->turned &&
        !copy_of(own->head.data, own->head.len, &segment->header, &segment->header_len))
        return out_of_memory(g->input, reason);
    if (!input_give_back(own, g->text->memory + end, g->len - end))
        return out_of_memory(g->input, reason);
    own->next.offset += end;
    g->text->lines = own->unlined ? 0 : count_lines(g->text->memory, end);
    own->next.line += g->text->lines;
    if (source->noted && source->point.out <= own->next.offset) {
        free(own->restart.blob);
        own->restart = source->point;
        source->point = (struct restart){0};
        source->noted = false;
    }
    g->text->data = g->text->memory;
    g->text->len = end;
    g->text->of = *segment;
    g->text->passed = false;
    if (input_turn(g->input, g->text) != TAMIS_OK)
        return out_of_memory(g->input, reason);
    segment->turns = g->text->of.turns;
    own->next.timed = input_time_of(g->input, g->text, end, &own->next.time_before);
    g->text->passed = true;
    g->text->timed_behind = own->next.timed;
    g->text->time_behind = own->next.time_before;
    return TAMIS_OK;
}

/* Allocates a whole segment at once: growing costs more than reading. */
static bool first_room(const struct growth *g)
{
    const struct input *input = g->input;
    uint64_t text = input->kind == PACK_NONE ? input->size : 16 * min_u64(input->size, FIRST_MOST);
    uint64_t segment = min_u64(input->own->segment, FIRST_MOST);
    return text_room(g->text, (size_t)min_u64(segment + segment / 4, text) + 2 * g->chunk);
}

static tamis_error next_locked(struct input *input, struct input_segment *segment,
                               struct input_text *text, bool *more, tamis_reason *reason)
{
    struct input_private *own = input->own;
    struct growth g = {.input = input, .text = text, .chunk = chunk_of(own->segment)};
    size_t end;
    g.cut.dialect = &input->dialect;
    g.cut.walker = own->walker.parser;
    g.cut.lines = own->lined;
    if (!own->source->noted &&
        !own->walking) { /* counted from the last point, so that frames of equal size are paired */
        uint64_t far = own->restart.out + own->segment,
                 near = own->next.offset + own->segment / 2 + 1;
        own->source->want = far > near ? far : near;
    }
    if (!first_room(&g))
        return out_of_memory(input, reason);
    tamis_error error = grow_segment(&g, &end, reason);
    *more = error == TAMIS_OK && end > 0;
    if (*more)
        error = take_segment(&g, end, segment, reason);
    return error;
}

tamis_error input_next(struct input *input, struct input_segment *segment, struct input_text *text,
                       bool *more, tamis_reason *reason)
{
    *more = false;
    *segment = (struct input_segment){0};
    text->len = 0;
    pthread_mutex_lock(&input->own->lock);
    tamis_error error = next_locked(input, segment, text, more, reason);
    pthread_mutex_unlock(&input->own->lock);
    return error;
}

/* ---- reading again --------------------------------------------------------------------------- */

tamis_error input_go(struct input *input, const struct input_segment *to, struct raw_sums *sums,
                     tamis_reason *reason)
{
    struct input_private *own = input->own;
    struct restart from = {to->at, to->offset - to->skip, to->restart, to->restart_len};
    struct source *source;
    if (!input->regular || to->skip > to->offset)
        return fail(reason, TAMIS_EARG, "%.120s: cannot be read from the middle", input->path);
    tamis_error error = input_source(input, &from, &source, reason);
    if (error != TAMIS_OK)
        return error;
    source_free(own->source);
    own->source = source;
    if (sums) /* what precedes it is known, except for a part of a chunk */
        raw_sums_rest(sums, own->fd, to->at);
    (source->packed ? source->packed : source)->sums = sums;
    own->back.at = own->back.len = 0;
    free(own->restart.blob);
    own->restart = (struct restart){to->at, to->offset - to->skip, NULL, to->restart_len};
    if (to->restart_len && !(own->restart.blob = malloc(to->restart_len)))
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    if (to->restart_len)
        memcpy(own->restart.blob, to->restart, to->restart_len);
    own->next.offset = to->offset;
    own->next.line = to->line;
    own->next.timed = to->timed;
    own->next.time_before = to->time_before;
    const uint8_t *header = to->header ? to->header : own->turned ? input->header : NULL;
    size_t header_len = to->header ? to->header_len : input->header_len;
    own->turned = to->header != NULL;
    if (header && !header_set(&own->head, &input->dialect, header, header_len))
        return fail(reason, TAMIS_ENOMEM, "no memory to read %.120s", input->path);
    if (source_drop(source, to->skip))
        return TAMIS_OK;
    if (source->error == TAMIS_OK)
        return fail(reason, TAMIS_EFORMAT, "%.120s: shorter than it was", input->path);
    return source_failed(source, reason);
}

tamis_error input_walk(struct input *input, const struct input_segment *segment, size_t step,
                       bool lines, tamis_reason *reason)
{
    struct input_private *own = input->own;
    if (segment->len > UINT64_MAX - segment->offset ||
        (input->kind == PACK_NONE && segment->at != segment->offset))
        return fail(reason, TAMIS_EARG, "%.120s: this segment cannot be read in steps",
                    input->path);
    tamis_error error = input_go(input, segment, NULL, reason);
    if (error != TAMIS_OK)
        return error;
    own->source->stop = segment->offset + segment->len;
    own->segment = step;
    own->walking = true;
    own->unlined = !lines;
    own->calm = !segment->turns;
    own->lined = segment->lined;
    own->next.reference = segment->reference;
    return TAMIS_OK;
}

#define READ_STEP ((size_t)64 << 20)
#define SKIP_KEPT ((uint64_t)1 << 20) /* a short skip is read together with the segment */
#define IN_MOST   ((uint64_t)32 << 20)

/* A source at the segment's first byte, or *skip bytes before it. */
static tamis_error stand_at(struct input *input, const struct input_segment *segment,
                            struct input_text *text, uint64_t *skip, tamis_reason *reason)
{
    uint64_t start = segment->offset - segment->skip;
    struct source *source = text->source;
    bool goes_on = source && text->source_of == input->own->id && source->error == TAMIS_OK &&
                   source->out >= start && source->out <= segment->offset;
    if (!goes_on) {
        struct restart from = {segment->at, start, segment->restart, segment->restart_len};
        source_free(source);
        text->source = NULL;
        tamis_error error = input_source(input, &from, &text->source, reason);
        if (error != TAMIS_OK)
            return error;
        text->source_of = input->own->id;
        source = text->source;
        uint64_t most = min_u64(min_u64(segment->at_len, IN_MOST), input->size);
        if (input->kind == PACK_ZSTD && most > source->in_room)
            source->in_room = (size_t)most;
    }
    *skip = segment->offset - source->out;
    source->at_once = !goes_on && *skip <= SKIP_KEPT;
    if (*skip > SKIP_KEPT) {
        source_drop(source, *skip);
        *skip = 0;
    }
    return TAMIS_OK;
}

/* Reads `want` bytes to the start of the text's memory. The number is not trusted: memory grows
   with what the file has. */
static tamis_error read_text(struct input *input, struct input_text *text, uint64_t want,
                             tamis_reason *reason)
{
    size_t len = 0, got;
    do {
        size_t room = len < READ_STEP ? READ_STEP : 2 * len;
        room = room < want ? room : (size_t)want;
        if (!text_room(text, room + 1))
            return out_of_memory(input, reason);
        got = source_read(text->source, text->memory + len, room - len);
        len += got;
    } while (got && len < want);
    if (len == want)
        return TAMIS_OK;
    if (text->source->error == TAMIS_OK)
        return fail_at(reason, TAMIS_EFORMAT, text->source->at, "%.120s: shorter than it was",
                       input->path);
    return source_failed(text->source, reason);
}

tamis_error input_read(struct input *input, const struct input_segment *segment,
                       struct input_text *text, tamis_reason *reason)
{
    uint64_t skip;
    text->len = 0;
    if (!input->regular || segment->skip > segment->offset || segment->len > UINT64_MAX / 2)
        return fail(reason, TAMIS_EARG, "%.120s: cannot be read from the middle", input->path);
    tamis_error error = stand_at(input, segment, text, &skip, reason);
    if (error == TAMIS_OK)
        error = read_text(input, text, skip + segment->len, reason);
    if (error == TAMIS_OK) {
        text->data = text->memory + skip;
        text->len = (size_t)segment->len;
        text->of = *segment;
        text->passed = false;
    }
    return error;
}
