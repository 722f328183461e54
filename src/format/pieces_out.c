/* See pieces.h: filters and indexes written a piece at a time. */
#include "pieces.h"

#include "format.h"

#define BUFFER  ((size_t)256 << 10)
#define SCAN    ((uint64_t)2 << 20) /* bytes of counters or slots looked through at a time */
#define LOOKS   ((size_t)4 << 20)   /* at slots of a table in a call: 64 for each pair of a piece */
#define ROWS    ((size_t)128 << 10) /* bytes of a matrix put together at a time */
#define ROW_MAX ((size_t)64 << 10)  /* of one row of it */
#define WORK    ((uint64_t)2 << 20) /* bytes gone over in a call before the header is ready, */
#define CALLS   256                 /* in about so many calls if they are more */
#define KNOWN   (BODY_AT + HEAD_LEN) /* bytes of the header that are known before */

/* A place in the payload. Plain data: to go back is to copy it. */
struct place {
    struct section_walk walk;
    struct section s;
    bool open;
    uint64_t done; /* bytes of the section, its zeros included */
    uint64_t scan; /* large counters: the position to look at next */
    struct table_walk pairs;
};

struct pieces_out {
    tamis_allocator allocator;
    uint8_t *header;
    uint64_t header_len, payload_len;
    struct head head; /* of the body in the header */
    uint64_t body_len;
    bool bits_only;
    tamis_hash hash;
    struct chunk_sums sums;
    uint8_t *sums_at;
    uint64_t *ones; /* of vectors, or columns */
    uint64_t n_ones;
    uint32_t *columns, *moved; /* of a matrix: see struct arrangement */
    uint32_t n_moved;
    uint8_t *aside; /* pending removals and candidates, one after the other */
    uint64_t aside_len, aside_room;
    uint8_t *buffer;
    bool ready;
    struct place now, before;
    uint64_t at, before_at; /* of these, in the payload */
};

/* ---- pieces of sections ---------------------------------------------------------------------- */

static size_t copy_bits(const struct vector *v, const struct place *p, uint8_t *to, size_t n)
{
    const uint8_t *turned = v->turned.data;
    memcpy(to, (const uint8_t *)v->bits.words + p->done, n);
    if (turned)
        for (size_t i = 0; i < n; i++)
            to[i] ^= turned[p->done + i];
    return n;
}

/* Rows come in groups that are whole words where they are narrower than that. */
static uint64_t group_rows(uint64_t width)
{
    return width < 64 ? 64 : 1;
}

static size_t copy_rows(const struct pieces_out *o, const struct matrix *matrix,
                        const struct place *p, uint8_t *to, size_t room)
{
    uint64_t width = o->head.width, group = group_rows(width), row = p->done * 8 / width;
    uint64_t rows = min_u64(matrix->bits.units - row, 8 * room / width);
    if (rows < matrix->bits.units - row)
        rows = rows / group * group;
    size_t len = (size_t)(rows * width / 8);
    if (o->n_moved == 0 && matrix->width == width) {
        memcpy(to, (const uint8_t *)matrix->bits.words + p->done, len);
        return len;
    }
    rows = min_u64(rows, 8 * ROWS / width / group * group); /* where they are put together */
    len = (size_t)(rows * width / 8);
    struct arrangement order = {o->columns, o->moved, o->n_moved};
    uint64_t *words = (uint64_t *)(void *)o->buffer;
    memset(words, 0, round_up(len, 8));
    matrix_rows(matrix, &order, row, rows, width, words);
    memcpy(to, words, len);
    return len;
}

/* Large counters in order of position, found by looking for 15s. */
static size_t copy_escapes(const struct counters *counters, struct place *p, uint8_t *to,
                           size_t room)
{
    const uint8_t *nibbles = counters->nibbles.data;
    uint64_t end = min_u64(counters->n, p->scan + 2 * SCAN);
    size_t len = 0;
    while (p->scan < end && len + 16 <= room) {
        uint64_t first = p->scan & ~UINT64_C(63), n = min_u64(64, counters->n - first);
        uint64_t set, large;
        counters_masks(nibbles + first / 2, (size_t)n / 2, &set, &large);
        large &= ~UINT64_C(0) << (p->scan & 63);
        for (; large && len + 16 <= room; large &= large - 1, len += 16) {
            uint64_t at = first + (uint64_t)__builtin_ctzll(large);
            put_u64(to + len, at);
            put_u64(to + len + 8, counters_get(counters, at));
            p->scan = at + 1;
        }
        if (!large)
            p->scan = first + 64;
    }
    return len;
}

/* Pairs of a table, in order. It may have few of them in many slots; and values that someone chose lie
   in long runs, each of which is looked through for every value. */
static size_t copy_pairs(const struct table *table, struct place *p, uint8_t *to, size_t room)
{
    size_t len = 0, most = p->pairs.looked + LOOKS;
    p->pairs.table = table; /* it may have moved */
    p->pairs.stop = p->pairs.from + SCAN / sizeof(struct table_slot);
    while (len + TABLE_PAIR <= room && p->pairs.looked < most && table_next(&p->pairs)) {
        put_u64(to + len, p->pairs.value);
        put_u64(to + len + 8, p->pairs.count);
        len += TABLE_PAIR;
    }
    return len;
}

/* What of it is not bits that lie as they are written. */
static size_t copy_found(const struct part *part, struct place *p, uint8_t *to, size_t room,
                         uint64_t *work)
{
    uint64_t from = p->scan / 2 + p->pairs.from * sizeof(struct table_slot);
    size_t looked = p->pairs.looked;
    size_t n = p->s.type == SECTION_ESCAPES ? copy_escapes(&part->vector->counters, p, to, room)
                                            : copy_pairs(&part->table, p, to, room);
    *work += p->scan / 2 + p->pairs.from * sizeof(struct table_slot) - from;
    if (p->pairs.looked - looked >= LOOKS)
        *work += SCAN;
    return n;
}

/* Some of the next bytes, perhaps none: then it was work, or it is the end. */
static size_t pull(const struct pieces_out *o, const struct set *s, struct place *p, uint8_t *to,
                   size_t room, uint64_t *work)
{
    if (!p->open) {
        p->open = section_next(&p->walk, &p->s);
        p->done = p->scan = 0;
        p->pairs = (struct table_walk){0};
        if (!p->open)
            return 0;
    }
    const struct part *part = set_part(s, p->s.owner);
    const struct vector *v = part->vector;
    size_t n = (size_t)min_u64(room, p->s.len > p->done ? p->s.len - p->done : 0);
    if (n == 0) {
        n = (size_t)min_u64(room, round_up(p->s.len, SECTION_ALIGN) - p->done);
        memset(to, 0, n);
    } else if (p->s.type == SECTION_BITS) {
        n = copy_bits(v, p, to, n);
    } else if (p->s.type == SECTION_MATRIX) {
        n = copy_rows(o, atomic_load(&s->matrix), p, to, n);
    } else if (p->s.type == SECTION_COUNTERS) {
        memcpy(to, (const uint8_t *)v->counters.nibbles.data + p->done, n);
    } else if (p->s.type == SECTION_ESCAPES || p->s.type == SECTION_TABLE) {
        n = copy_found(part, p, to, n, work);
    } else {
        uint64_t from = p->s.type == SECTION_PENDING ? 0 : o->aside_len - p->s.len;
        memcpy(to, o->aside + from + p->done, n);
    }
    *work += n;
    p->done += n;
    p->open = p->done < round_up(p->s.len, SECTION_ALIGN);
    return n;
}

/* ---- the header ------------------------------------------------------------------------------ */

static int aside_write(void *context, const void *data, size_t len)
{
    struct pieces_out *o = context;
    if (len > o->aside_room - o->aside_len)
        return 1;
    memcpy(o->aside + o->aside_len, data, len);
    o->aside_len += len;
    return 0;
}

static tamis_error put_aside(struct pieces_out *o, struct pending_list *list)
{
    uint64_t len = 0, candidates = 0;
    if (!pending_section(&o->head, SECTION_PENDING, &len) ||
        !pending_section(&o->head, SECTION_CANDIDATES, &candidates))
        return TAMIS_OK;
    if (len + candidates > PIECES_ASIDE)
        return TAMIS_EKIND;
    o->aside_room = len + candidates;
    o->aside = mem_new(&o->allocator, 1, o->aside_room);
    if (!o->aside)
        return TAMIS_ENOMEM;
    struct writer w = {.write = aside_write, .context = o};
    pending_put(list, &w);
    pending_put_candidates(list, &w);
    return w.failed || o->aside_len != o->aside_room ? TAMIS_EARG : TAMIS_OK;
}

static tamis_error find_columns(struct pieces_out *o, const struct set *s)
{
    uint32_t n = o->head.n;
    if (o->head.width == 0)
        return TAMIS_OK;
    if (o->head.width / 8 > ROW_MAX)
        return TAMIS_EKIND;
    o->columns = mem_new(&o->allocator, n, sizeof *o->columns);
    o->moved = mem_new(&o->allocator, n, sizeof *o->moved);
    if (!o->columns || !o->moved)
        return TAMIS_ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        o->columns[i] = (uint32_t)set_layers(s)->v[i]->column;
        if (o->columns[i] != i)
            o->moved[o->n_moved++] = i;
    }
    return TAMIS_OK;
}

/* The header but for ones and checksums, with a copy of the body. */
static tamis_error put_header(struct pieces_out *o, const struct outline *outline)
{
    struct section_walk walk = head_sections(&o->head);
    o->header_len = outline_header_len(outline);
    o->payload_len = outline->payload_len;
    o->body_len = outline->body_len;
    if (o->header_len > PIECES_ASIDE)
        return TAMIS_EKIND;
    o->n_ones = max_u64(walk.owners, o->head.width);
    o->header = mem_new0(&o->allocator, 1, o->header_len);
    o->ones = mem_new0(&o->allocator, o->n_ones, sizeof *o->ones);
    o->buffer = mem_new(&o->allocator, 1, BUFFER);
    if (!o->header || !o->ones || !o->buffer)
        return TAMIS_ENOMEM;
    o->sums_at = outline_front(outline, walk, o->header);
    sums_begin(&o->sums, o->sums_at);
    return head_parse(&o->head, o->head.kind, o->header + BODY_AT, o->body_len, o->bits_only,
                      o->hash, NULL);
}

static tamis_error begin(struct pieces_out *o, const struct set *s, unsigned flags)
{
    uint8_t *body = NULL;
    struct pending_list list;
    tamis_error e = pending_list_make(&list, s);
    if (e == TAMIS_OK)
        e = set_body(s, &list, s->bits_only, false, &o->head, &body);
    if (e == TAMIS_OK) {
        struct outline outline = set_outline(s, &o->head, body, flags);
        e = put_header(o, &outline);
        mem_free(&s->allocator, body, 1, outline.body_len);
    }
    if (e == TAMIS_OK)
        e = put_aside(o, &list);
    pending_list_free(&list);
    return e == TAMIS_OK ? find_columns(o, s) : e;
}

tamis_error pieces_out_begin(struct pieces_out **out, const struct set *s, unsigned flags)
{
    const tamis_allocator *a = &s->allocator;
    /* Only as a whole: probes of the caller's, counters in a file, or more removals than can be sorted
       in a moment. */
    if (!family_standard(&s->family) || !set_counted(s) || s->removals.used > PIECES_ASIDE / 64)
        return TAMIS_EKIND;
    struct pieces_out *o = mem_new0(a, 1, sizeof *o);
    if (!o)
        return TAMIS_ENOMEM;
    o->allocator = *a;
    o->bits_only = s->bits_only;
    o->hash = s->family.hash;
    tamis_error e = begin(o, s, flags);
    o->now.walk = head_sections(&o->head);
    if (e == TAMIS_OK)
        *out = o;
    else
        pieces_out_end(o);
    return e == TAMIS_EFORMAT ? TAMIS_EARG : e; /* never write what would not be read */
}

void pieces_out_end(struct pieces_out *o)
{
    if (!o)
        return;
    tamis_allocator a = o->allocator;
    mem_free_secret(&a, o->header, 1, o->header_len);
    mem_free(&a, o->ones, o->n_ones, sizeof *o->ones);
    mem_free(&a, o->columns, o->head.n, sizeof *o->columns);
    mem_free(&a, o->moved, o->head.n, sizeof *o->moved);
    mem_free(&a, o->aside, 1, o->aside_room);
    mem_free(&a, o->buffer, 1, BUFFER);
    mem_free(&a, o, 1, sizeof *o);
}

uint64_t pieces_out_size(const struct pieces_out *o)
{
    return o->header_len + o->payload_len;
}

/* ---- going over it --------------------------------------------------------------------------- */

static void count_ones(struct pieces_out *o, const struct section *s, const uint8_t *data,
                       size_t len)
{
    uint64_t width = o->head.width;
    if (s->type == SECTION_BITS)
        o->ones[s->owner] += bytes_ones(data, len);
    else if (s->type == SECTION_MATRIX)
        matrix_count_ones(data, 8 * len / width, width, o->ones);
}

static tamis_error finish_header(struct pieces_out *o)
{
    struct section_walk walk = head_sections(&o->head);
    uint8_t *records = o->header + (o->head.records - o->header);
    sums_end(&o->sums);
    for (uint32_t i = 0; i < walk.owners; i++) { /* those of tables are 0 */
        struct record r = head_record(&o->head, i);
        struct cursor c = cursor_write(records + RECORD_LEN * (size_t)i, RECORD_LEN);
        r.ones = o->ones[i];
        record_fields(&c, &r);
    }
    header_seal(o->header, o->header_len);
    o->now = (struct place){.walk = walk};
    o->before = o->now;
    o->at = o->before_at = 0;
    o->ready = true;
    struct head head; /* never write what would not be read */
    tamis_error e = head_parse(&head, o->head.kind, o->header + BODY_AT, o->body_len, o->bits_only,
                               o->hash, NULL);
    return e == TAMIS_OK ? TAMIS_OK : TAMIS_EARG;
}

static tamis_error prepare(struct pieces_out *o, const struct set *s, uint64_t most)
{
    tamis_error e = TAMIS_OK;
    for (uint64_t work = 0; work < most && !o->ready && e == TAMIS_OK;) {
        uint8_t *to = o->buffer + ROWS; /* before it rows are put together */
        size_t n = pull(o, s, &o->now, to, BUFFER - ROWS, &work);
        count_ones(o, &o->now.s, to, n);
        sums_write(&o->sums, to, n);
        o->at += n;
        if (o->at == o->payload_len)
            e = finish_header(o);
    }
    return e;
}

/* Before the header is ready, the first bytes of it and then one at a time. */
static tamis_error read_header(struct pieces_out *o, const struct set *s, uint64_t at, void *to,
                               size_t room, size_t *len)
{
    tamis_error e = o->ready ? TAMIS_OK : prepare(o, s, max_u64(WORK, o->payload_len / CALLS));
    uint64_t end = o->ready ? o->header_len : at ? at + 1 : KNOWN - CALLS;
    if (e == TAMIS_OK && end > (o->ready ? o->header_len : KNOWN))
        e = TAMIS_EARG;
    if (e != TAMIS_OK)
        return e;
    *len = (size_t)min_u64(room, end - at);
    memcpy(to, o->header + at, *len);
    return TAMIS_OK;
}

tamis_error pieces_out_read(struct pieces_out *o, const struct set *s, uint64_t at, void *to,
                            size_t room, size_t *len)
{
    *len = 0;
    if (at < o->header_len)
        return read_header(o, s, at, to, room, len);
    at -= o->header_len;
    if (!o->ready || (at != o->at && at != o->before_at))
        return TAMIS_EARG;
    if (at != o->at) {
        o->now = o->before;
        o->at = at;
    }
    o->before = o->now;
    o->before_at = o->at;
    for (uint64_t work = 0; work < room && o->at < o->payload_len;) {
        size_t n = pull(o, s, &o->now, (uint8_t *)to + *len, room - *len, &work);
        if (n == 0 && *len) /* what is left has no room for a row or a counter */
            break;
        *len += n;
        o->at += n;
    }
    return TAMIS_OK;
}

/* ---- keeping the bits of a moment ------------------------------------------------------------ */

static bool vector_keep(struct vector *v, const tamis_allocator *a)
{
    return v->turned.base || block_new(a, (size_t)(vector_positions_total(v) + 7) / 8, &v->turned);
}

/* Tables keep no moment: what is added goes between the values that they had. */
bool pieces_keep(struct set *s)
{
    uint32_t n = layers_count(set_layers(s)) * set_parts(s);
    bool kept = !s->opt.deletable && !s->opt.shared_adds && !set_sliced(s) &&
                s->opt.growth != TAMIS_WINDOW && !s->read_only;
    for (uint32_t i = 0; kept && i < n; i++) {
        struct vector *v = set_part(s, i)->vector;
        kept = v && vector_keep(v, &s->allocator);
    }
    if (!kept)
        pieces_keep_end(s);
    return kept;
}

void pieces_keep_end(struct set *s)
{
    for (uint32_t i = 0; i < layers_count(set_layers(s)) * set_parts(s); i++)
        if (set_part(s, i)->vector)
            block_free(&s->allocator, &set_part(s, i)->vector->turned);
}
