/* The one writer; see pieces.h. Bytes are written from front to back, and the checksums of pages
   and the ones of vectors are computed on the way. Equal sets give equal bytes, whatever the
   allocator, the layout of hash tables or the order of columns in a matrix. */

#include "sections.h"

/* bytes built at a time for parts that are not stored as they are written */
#define BUFFER ((size_t)128 << 10)
#define SPAN   ((size_t)256 << 10) /* bytes passed at a time where everything is written */
#define SCAN   ((uint64_t)2 << 20) /* bytes of counters or slots scanned at a time */
/* slots of a table scanned per call: 64 for each pair of a piece */
#define LOOKS   ((size_t)4 << 20)
#define ROW_MAX ((size_t)64 << 10) /* longest row of a matrix that can be written in pieces */

/* A position in the payload. Plain data: to go back, copy it. */
struct payload_position {
    struct section_walk walk;
    struct section s;
    bool open;
    uint64_t at;   /* bytes of the payload before it */
    uint64_t done; /* bytes of the section, including padding */
    uint64_t scan; /* large counters: the next position to test */
    struct table_walk pairs;
};

struct pieces_out {
    tamis_allocator allocator;
    uint8_t *header, *sums; /* sums: of all pages */
    uint64_t header_len, payload_len, sums_len;
    struct head head;          /* of the body in the header, of a set */
    uint64_t *ones, n_ones;    /* of vectors, or columns */
    uint32_t *columns, *moved; /* of a matrix: see struct arrangement */
    uint32_t n_moved;
    uint8_t *aside; /* pending removals and their candidates */
    uint64_t aside_len;
    uint8_t *buffer;
    size_t buffer_len;
    struct payload_position now, before;
    uint64_t summed; /* bytes of the payload that `sums` and `ones` cover */
    bool piecewise;  /* reads the bits as of its beginning, if they are kept */
    struct page_sums pages;
};

/* ---- sections -------------------------------------------------------------------------------- */

/* The bits as of pieces_keep. */
size_t bits_make(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                 uint64_t *work)
{
    const struct vector *v = set_part(s, o->now.s.owner)->vector;
    const uint8_t *turned = v->turned.data, *bits = (const uint8_t *)v->bits.words;
    (void)work;
    for (size_t i = 0; i < room; i++)
        to[i] = bits[o->now.done + i] ^ turned[o->now.done + i];
    return room;
}

/* Rows narrower than a word come in groups of whole words. */
static uint64_t group_len(uint64_t width)
{
    return width < 64 ? 8 * width : width / 8;
}

/* In the order of the vectors. */
size_t matrix_make(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                   uint64_t *work)
{
    uint64_t width = o->head.width;
    struct arrangement order = {o->columns, o->moved, o->n_moved};
    (void)work;
    memset(to, 0, round_up(room, 8));
    matrix_rows(atomic_load(&s->stack->more->matrix), &order, o->now.done * 8 / width,
                room * 8 / width, width, (uint64_t *)(void *)to);
    return room;
}

/* In order of position, found by scanning for counters of 15: no memory, no sorting. */
size_t escapes_make(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                    uint64_t *work)
{
    const struct counters *counters = &set_part(s, o->now.s.owner)->vector->counters;
    const uint8_t *nibbles = counters->nibbles.data;
    uint64_t *scan = &o->now.scan, begin = *scan, end = min_u64(counters->n, begin + 2 * SCAN);
    size_t len = 0;
    while (*scan < end && len + 16 <= room) {
        uint64_t first = *scan & ~UINT64_C(63), n = min_u64(64, counters->n - first);
        uint64_t set, large;
        counters_masks(nibbles + first / 2, (size_t)n / 2, &set, &large);
        large &= ~UINT64_C(0) << (*scan & 63);
        for (; large && len + 16 <= room; large &= large - 1, len += 16) {
            uint64_t at = first + (uint64_t)__builtin_ctzll(large);
            put_u64(to + len, at);
            put_u64(to + len + 8, counters_get(counters, at));
            *scan = at + 1;
        }
        if (!large)
            *scan = first + 64;
    }
    *work += (*scan - begin) / 2;
    return len;
}

/* Pairs of a table, in order. It may have few pairs in many slots; and values chosen by an
   attacker form long runs, each of which is scanned for every value. */
size_t table_make(struct pieces_out *o, const struct set *s, uint8_t *to, size_t room,
                  uint64_t *work)
{
    struct table_walk *pairs = &o->now.pairs;
    size_t len = 0, from = pairs->from, most = pairs->looked + LOOKS;
    pairs->table = &set_part(s, o->now.s.owner)->table; /* the table may have moved */
    pairs->stop = from + SCAN / sizeof(struct table_slot);
    while (len + TABLE_PAIR <= room && pairs->looked < most && table_next(pairs)) {
        put_u64(to + len, pairs->value);
        put_u64(to + len + 8, pairs->count);
        len += TABLE_PAIR;
    }
    *work += (pairs->from - from) * sizeof(struct table_slot) + (pairs->looked < most ? 0 : SCAN);
    return len;
}

/* The bytes of the section in memory, or NULL if they have to be built. */
static const uint8_t *section_bytes(const struct pieces_out *o, const struct set *s)
{
    const struct section *section = &o->now.s;
    switch (section->type) {
    case SECTION_ONES:
        return (const uint8_t *)o->ones;
    case SECTION_PENDING:
        return o->aside;
    case SECTION_CANDIDATES:
        return o->aside + o->aside_len - section->len;
    case SECTION_MATRIX:
        if (o->n_moved || atomic_load(&s->stack->more->matrix)->width != o->head.width)
            return NULL;
        break;
    case SECTION_LINES:
        if (o->piecewise && lines_moment(set_lines(s)))
            return part_data(lines_held(set_lines(s), section->owner / PART_PIECES),
                             section->owner % PART_PIECES);
        break;
    default:
        if (section->type == SECTION_BITS && o->piecewise &&
            set_part(s, section->owner)->vector->turned.data)
            return NULL;
    }
    uint8_t *(*data)(const struct set *, uint32_t) = section_kinds[section->type].data;
    return data ? data(s, section->owner) : NULL;
}

/* Adds new bytes to the checksums and the ones. */
static void note(struct pieces_out *o, const uint8_t *data, uint64_t n)
{
    const struct payload_position *p = &o->now;
    uint64_t known = o->summed > p->at ? o->summed - p->at : 0;
    if (known >= n)
        return;
    o->summed = p->at + n;
    if (p->done >= p->s.len) /* padding */
        return;
    page_sums_add(&o->pages, data + known, n - known);
    if (p->done + n == p->s.len)
        page_sums_end(&o->pages);
    if (p->s.type == SECTION_BITS)
        o->ones[p->s.owner] += bytes_ones(data + known, (size_t)(n - known));
    else if (p->s.type == SECTION_MATRIX)
        matrix_count_ones(data + known, 8 * (n - known) / o->head.width, o->head.width, o->ones);
}

/* Some of the next bytes of the payload, in place; possibly none: then it was scanning, the room
   is too small for a row, or it is the end. */
static size_t next(struct pieces_out *o, const struct set *s, const uint8_t **from, size_t room,
                   uint64_t *work)
{
    static const uint8_t zeros[SECTION_ALIGN];
    struct payload_position *p = &o->now;
    if (!p->open) {
        p->open = section_next(&p->walk, &p->s);
        p->done = p->scan = 0;
        p->pairs = (struct table_walk){0};
        if (!p->open)
            return 0;
    }
    uint64_t left = p->s.len > p->done ? p->s.len - p->done : 0;
    size_t n = (size_t)min_u64(room, left ? left : round_up(p->s.len, SECTION_ALIGN) - p->done);
    const uint8_t *bytes = left ? section_bytes(o, s) : zeros;
    if (left && !bytes)
        n = (size_t)min_u64(n, o->buffer_len);
    if (p->s.type == SECTION_MATRIX && n < left)
        n -= n % group_len(o->head.width);
    if (bytes) {
        *from = left ? bytes + p->done : zeros;
    } else {
        *from = o->buffer;
        n = n ? section_kinds[p->s.type].make(o, s, o->buffer, n, work) : 0;
    }
    note(o, *from, n);
    *work += n;
    p->done += n;
    p->at += n;
    p->open = p->done < round_up(p->s.len, SECTION_ALIGN);
    return n;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static tamis_error put_header(struct pieces_out *o, const struct outline *outline,
                              struct section_walk walk)
{
    o->header_len = outline_header_len(outline);
    o->payload_len = outline->payload_len;
    o->sums_len = sums_len(outline->pages);
    o->now.walk = o->before.walk = walk;
    o->header = mem_new0(&o->allocator, 1, o->header_len);
    if (!o->header)
        return TAMIS_ENOMEM;
    outline_front(outline, walk, o->header);
    return TAMIS_OK;
}

static tamis_error put_aside(struct pieces_out *o, const struct pending_list *list, uint64_t most)
{
    uint64_t len = PENDING_LEN(o->head.digests) * o->head.pending + 4 * o->head.candidates;
    if (len == 0)
        return TAMIS_OK;
    if (len > most)
        return TAMIS_EKIND;
    o->aside_len = len;
    o->aside = mem_new(&o->allocator, 1, len);
    if (!o->aside)
        return TAMIS_ENOMEM;
    pending_put(list, o->aside);
    return TAMIS_OK;
}

static tamis_error find_columns(struct pieces_out *o, const struct set *s)
{
    uint32_t n = o->head.n;
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

static tamis_error begin(struct pieces_out *o, const struct set *s, unsigned flags, uint64_t most)
{
    bool bits_only = (flags & TAMIS_SAVE_BITS_ONLY) || s->bits_only;
    struct pending_list list;
    uint8_t *body = NULL;
    tamis_error e = pending_list_make(&list, s);
    if (e == TAMIS_OK)
        e = set_body(s, &list, bits_only, &o->head, &body);
    if (e == TAMIS_OK) {
        struct outline outline = {.kind = o->head.kind,
                                  .bits_only = bits_only,
                                  .no_key = (flags & TAMIS_SAVE_NO_KEY) || !set_family(s)->has_key,
                                  .family = set_family(s),
                                  .body = body,
                                  .body_len = head_body_len(&o->head)};
        outline_count(&outline, head_sections(&o->head));
        e = outline_header_len(&outline) > most ? TAMIS_EKIND : TAMIS_OK;
        if (e == TAMIS_OK)
            e = put_header(o, &outline, head_sections(&o->head));
        if (e == TAMIS_OK)
            head_moved(&o->head, body, o->header + BODY_AT);
        mem_free(set_allocator(s), body, 1, outline.body_len);
    }
    if (e == TAMIS_OK)
        e = put_aside(o, &list, most);
    pending_list_free(&list);
    o->n_ones = max_u64((uint64_t)o->head.n * o->head.parts, o->head.width);
    o->buffer_len = (size_t)round_up(
        max_u64(min_u64(BUFFER, o->payload_len), group_len(o->head.width)), SECTION_ALIGN);
    o->ones = mem_new0(&o->allocator, o->n_ones, sizeof *o->ones);
    o->buffer = mem_new(&o->allocator, 1, o->buffer_len);
    if (e == TAMIS_OK && (!o->ones || !o->buffer))
        e = TAMIS_ENOMEM;
    return e == TAMIS_OK && o->head.width ? find_columns(o, s) : e;
}

tamis_error set_out_begin(struct pieces_out **out, const struct set *s, unsigned flags,
                          uint64_t most, bool sums)
{
    const tamis_allocator *a = set_allocator(s);
    if (flags & ~(unsigned)(TAMIS_SAVE_NO_KEY | TAMIS_SAVE_BITS_ONLY))
        return TAMIS_EARG;
    if (!family_standard(set_family(s)))
        return TAMIS_EKIND; /* it has a probe function of the caller */
    struct pieces_out *o = mem_new(a, 1, sizeof *o);
    if (!o)
        return TAMIS_ENOMEM;
    /* there may be thousands of small sets */
    memset(o, 0, offsetof(struct pieces_out, pages.page));
    o->allocator = *a;
    tamis_error e = begin(o, s, flags, most);
    if (e == TAMIS_OK && sums && o->sums_len) {
        o->sums = o->pages.next = mem_new0(a, 1, o->sums_len);
        e = o->sums ? TAMIS_OK : TAMIS_ENOMEM;
    }
    if (e == TAMIS_OK)
        *out = o;
    else
        pieces_out_end(o);
    return e == TAMIS_EFORMAT ? TAMIS_EARG : e; /* never write what could not be read */
}

tamis_error pieces_out_begin(struct pieces_out **out, const struct set *s, unsigned flags)
{
    /* Only as a whole: counters in a file, or too many removals or columns for one call. */
    if (!set_counted(s) || s->stack->more->removals.used > PIECES_ASIDE / 64 ||
        (set_sliced(s) && atomic_load(&s->stack->more->matrix)->width / 8 > ROW_MAX))
        return TAMIS_EKIND;
    tamis_error e = set_out_begin(out, s, flags, PIECES_ASIDE, true);
    if (e == TAMIS_OK)
        (*out)->piecewise = true;
    return e;
}

void pieces_out_end(struct pieces_out *o)
{
    if (!o)
        return;
    tamis_allocator a = o->allocator;
    mem_free_secret(&a, o->header, 1, o->header_len);
    mem_free(&a, o->sums, 1, o->sums_len);
    mem_free(&a, o->ones, o->n_ones, sizeof *o->ones);
    mem_free(&a, o->columns, o->head.n, sizeof *o->columns);
    mem_free(&a, o->moved, o->head.n, sizeof *o->moved);
    mem_free(&a, o->aside, 1, o->aside_len);
    mem_free(&a, o->buffer, 1, o->buffer_len);
    mem_free(&a, o, 1, sizeof *o);
}

uint64_t pieces_out_size(const struct pieces_out *o)
{
    return o->header_len + o->payload_len + o->sums_len;
}

/* ---- reading and writing the encoding -------------------------------------------------------- */

tamis_error pieces_out_read(struct pieces_out *o, const struct set *s, uint64_t at, void *to,
                            size_t room, size_t *len)
{
    uint64_t past = o->header_len + o->payload_len;
    bool header = at < o->header_len;
    *len = 0;
    if (header || (at >= past && at - past <= o->sums_len && o->summed == o->payload_len)) {
        *len = (size_t)min_u64(room, header ? o->header_len - at : past + o->sums_len - at);
        if (*len)
            memcpy(to, header ? o->header + at : o->sums + (at - past), *len);
        return TAMIS_OK;
    }
    at -= o->header_len;
    if (at >= o->payload_len || (at != o->now.at && at != o->before.at))
        return TAMIS_EARG;
    if (at != o->now.at)
        o->now = o->before;
    o->before = o->now;
    for (uint64_t work = 0; work < room && o->now.at < o->payload_len;) {
        const uint8_t *from;
        size_t n = next(o, s, &from, room - *len, &work);
        if (n == 0 && *len) /* the rest has no room for a row or a counter */
            break;
        memcpy((uint8_t *)to + *len, from, n);
        *len += n;
    }
    return TAMIS_OK;
}

tamis_error pieces_out_write(struct pieces_out *o, const struct set *s, tamis_write write,
                             void *context)
{
    size_t span = max_u64(SPAN, group_len(o->head.width));
    bool failed = write(context, o->header, (size_t)o->header_len) != 0;
    while (!failed && o->now.at < o->payload_len) {
        const uint8_t *from;
        uint64_t work = 0;
        size_t n = next(o, s, &from, span, &work);
        failed = n && write(context, from, n) != 0;
    }
    if (!failed && o->sums_len)
        failed = write(context, o->sums, (size_t)o->sums_len) != 0;
    return failed ? TAMIS_EIO : TAMIS_OK;
}

/* The stored checksums of the next section, brought up to date; NULL if there are none. Records
   have no fingerprints, and columns have no stored checksums. */
static const struct kept_sums *section_sums(const struct set *s, const struct section *section)
{
    bool counters = section->type == SECTION_COUNTERS;
    unsigned piece = section->owner % PART_PIECES;
    struct kept_sums *sums = NULL;
    if (section->type == SECTION_LINES && piece <= PART_STASH)
        sums = part_sums(lines_part(set_lines(s), section->owner / PART_PIECES), piece,
                         set_allocator(s));
    else if (section->type == SECTION_BITS || counters)
        sums = vector_sums(set_part(s, section->owner)->vector, counters, set_allocator(s));
    if (sums)
        kept_sums_refresh(sums, section_kinds[section->type].data(s, section->owner));
    return sums;
}

static tamis_error fingerprint(struct pieces_out *o, const struct set *s, uint8_t out[16])
{
    struct hash_stream hash;
    struct section_walk walk = head_sections(&o->head);
    struct section section;
    const uint8_t *from;
    hash_begin(&hash);
    hash_add(&hash, o->header, (size_t)o->header_len - sizeof(uint64_t));
    while (section_next(&walk, &section) &&
           section.type != SECTION_ONES) { /* follows from the bits */
        uint64_t pages = walk.pages - walk.page;
        const struct kept_sums *kept = section_sums(s, &section);
        uint8_t *sums = kept ? NULL : mem_new(&o->allocator, pages, sizeof(uint64_t));
        if (!kept && !sums)
            return TAMIS_ENOMEM;
        if (kept) {
            hash_add(&hash, kept->top, (size_t)((pages + PAGES_TOP - 1) / PAGES_TOP * 8));
            continue;
        }
        o->now = (struct payload_position){.s = section, .open = true, .at = section.offset};
        o->pages.next = sums;
        while (o->now.open) { /* passes it, for its checksums */
            uint64_t work = 0;
            next(o, s, &from, SPAN, &work);
        }
        tops_add(&hash, sums, pages);
        mem_free(&o->allocator, sums, pages, sizeof(uint64_t));
    }
    hash_end_128(&hash, out);
    return TAMIS_OK;
}

tamis_error set_fingerprint(const struct set *s, bool bits_only, uint8_t out[16])
{
    struct pieces_out *o;
    unsigned flags = TAMIS_SAVE_NO_KEY | (bits_only ? TAMIS_SAVE_BITS_ONLY : 0u);
    tamis_error e = set_out_begin(&o, s, flags, UINT64_MAX, false);
    if (e == TAMIS_OK) {
        e = fingerprint(o, s, out);
        pieces_out_end(o);
    }
    return e;
}

/* ---- keeping the bits of a moment ------------------------------------------------------------ */

/* Tables cannot be kept: added values go between existing ones. */
bool pieces_keep(struct set *s)
{
    uint32_t n = layers_count(set_layers(s)) * set_parts(s);
    bool counters = set_opt(s)->deletable && set_opt(s)->growth != TAMIS_SMOOTH;
    bool kept = !counters && !set_opt(s)->shared_adds && !set_sliced(s) &&
                set_opt(s)->growth != TAMIS_WINDOW && !s->read_only &&
                (!set_lines(s) || lines_hold(set_lines(s)));
    for (uint32_t i = 0; kept && i < n; i++) {
        struct vector *v = set_part(s, i)->vector;
        uint64_t m = v ? vector_positions_total(v) : 0;
        kept =
            v && (v->turned.base || block_new(set_allocator(s), (size_t)(m + 7) / 8, &v->turned));
    }
    if (!kept)
        pieces_keep_end(s);
    return kept;
}

void pieces_keep_end(struct set *s)
{
    for (uint32_t i = 0; i < layers_count(set_layers(s)) * set_parts(s); i++)
        if (set_part(s, i)->vector)
            block_free(set_allocator(s), &set_part(s, i)->vector->turned);
    if (set_lines(s))
        lines_hold_end(set_lines(s));
}
