/* See format_pieces.h: filters read a piece at a time. The checks are those of format_check.c, in the
   order in which the bytes come; a chunk with a wrong checksum is that, whatever else is in it. */
#include "format_pieces.h"

#include "err.h"
#include "format.h"

struct bytes {
    uint8_t *data;
    uint64_t len, room;
};

struct filter_in {
    tamis_allocator allocator;
    tamis_open_options options;
    uint8_t key[TAMIS_KEY_LEN];
    uint64_t total, have, most_aside;
    struct bytes header, aside; /* aside: the payload from `late` on, which is not vectors */
    uint64_t header_len, late;
    struct container c;
    struct head head;
    tamis_filter *f; /* NULL until the header is here */
    struct section_walk walk;
    struct section s;
    bool open;
    uint64_t done;    /* bytes of the section, its zeros included, */
    uint64_t checked; /* and those that were looked at */
    uint64_t *ones;   /* of vectors, or columns */
    uint64_t n_ones;
    uint64_t large; /* counters of 15 in this section */
    uint64_t last;  /* position of the last large counter, plus 1 */
    struct hash_stream hash;
    uint64_t chunk, chunk_done;
    tamis_error wrong; /* found in this chunk, if its checksum is right */
    tamis_reason reason;
};

static bool bytes_add(const tamis_allocator *a, struct bytes *b, const void *data, size_t len)
{
    if (b->len + len > b->room) {
        uint64_t room = max_u64(b->len + len, 2 * b->room);
        uint8_t *grown = mem_grow(a, b->data, (size_t)b->room, (size_t)room, 1);
        if (!grown)
            return false;
        b->data = grown;
        b->room = room;
    }
    memcpy(b->data + b->len, data, len);
    b->len += len;
    return true;
}

/* ---- the header ------------------------------------------------------------------------------ */

static tamis_error make_vectors(struct filter_in *in)
{
    const struct head *head = &in->head;
    const tamis_allocator *a = &in->f->allocator;
    for (uint32_t i = 0; i < head->n; i++) {
        struct record r = head_record(head, i);
        struct shape shape = {head->set.layout, r.units, r.k};
        struct vector *v = vector_new(a, &in->f->family, shape, head->counted, head->width == 0);
        if (v && head->counted && !counters_reserve(&v->counters, a, (size_t)r.escapes)) {
            vector_free(v, a);
            v = NULL;
        }
        if (!v)
            return TAMIS_ENOMEM;
        vector_from_record(v, &r);
        v->column = head->width ? i : 0;
        filter_put_back(in->f, v);
    }
    if (head->width) {
        struct matrix *matrix = matrix_new(a, &filter_stack(in->f)->v[0]->bits, head->width);
        if (!matrix)
            return TAMIS_ENOMEM;
        atomic_store(&in->f->matrix, matrix);
        filter_place_columns(in->f);
    }
    return TAMIS_OK;
}

static tamis_error make_filter(struct filter_in *in, const uint8_t key[TAMIS_KEY_LEN])
{
    const struct head *head = &in->head;
    tamis_error e = filter_make(&in->f, &in->allocator, &head->set, in->c.hash, key,
                                (uint32_t)max_u64(4, head->n));
    if (e != TAMIS_OK)
        return e;
    if (in->options.clock) {
        in->f->clock = in->options.clock;
        in->f->clock_context = in->options.clock_context;
    }
    filter_from_head(in->f, &in->c, head, false);
    in->n_ones = max_u64(head->n, head->width);
    in->ones = mem_new0(&in->allocator, in->n_ones, sizeof *in->ones);
    return in->ones ? make_vectors(in) : TAMIS_ENOMEM;
}

/* Where what is not vectors begins. */
static uint64_t find_late(const struct filter_in *in)
{
    struct section_walk walk = in->walk;
    struct section s;
    while (section_next(&walk, &s))
        if (s.type >= SECTION_ESCAPES)
            return s.offset;
    return in->total;
}

static tamis_error take_header(struct filter_in *in, tamis_reason *reason)
{
    uint8_t key[TAMIS_KEY_LEN];
    tamis_error e = filter_open(&in->c, &in->head, in->header.data, in->total, reason);
    if (e == TAMIS_OK)
        e = container_key(&in->c, in->c.has_key ? NULL : in->options.key, key, reason);
    if (e != TAMIS_OK)
        return e;
    in->walk = filter_sections(&in->head);
    in->walk.offset = in->header_len;
    in->late = find_late(in);
    if (in->total - in->late > in->most_aside)
        return fail_at(reason, TAMIS_EKIND, in->late,
                       "too many large counters or removals to be read in pieces");
    e = make_filter(in, key);
    hash_begin(&in->hash);
    return e == TAMIS_OK ? e : fail(reason, e, "no memory for the vectors");
}

static tamis_error add_header(struct filter_in *in, const uint8_t **data, size_t *len,
                              tamis_reason *reason)
{
    uint64_t want = in->header_len ? in->header_len : PREFIX_LEN;
    size_t some = (size_t)min_u64(*len, want - in->header.len);
    if (!bytes_add(&in->allocator, &in->header, *data, some))
        return fail(reason, TAMIS_ENOMEM, "no memory for the header");
    in->have += some;
    *data += some;
    *len -= some;
    if (in->header.len < want)
        return TAMIS_OK;
    if (in->header_len)
        return take_header(in, reason);
    uint64_t total;
    if (!prefix_lengths(in->header.data, PREFIX_LEN, &total, &in->header_len) ||
        in->header_len > in->total || in->header_len < BODY_AT)
        return fail_at(reason, TAMIS_EFORMAT, 24, "the lengths in the header do not agree");
    if (in->header_len > in->most_aside)
        return fail_at(reason, TAMIS_EKIND, 24, "too many vectors to be read in pieces");
    return TAMIS_OK;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* The first thing that is wrong in a chunk; said when its checksum is known. */
static void note_wrong(struct filter_in *in, const char *what)
{
    if (in->wrong == TAMIS_OK)
        in->wrong =
            fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset, "vector %u: %s", in->s.owner, what);
}

static void check_ones(struct filter_in *in, uint32_t i, uint64_t ones)
{
    struct record r = head_record(&in->head, i);
    if (ones != r.ones && in->wrong == TAMIS_OK)
        in->wrong = fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset,
                            "vector %u has %llu bits set, not %llu", i, (unsigned long long)ones,
                            (unsigned long long)r.ones);
}

static void look_at_bits(struct filter_in *in, const struct vector *v)
{
    const uint8_t *bytes = (const uint8_t *)v->bits.words;
    in->ones[in->s.owner] += bytes_ones(bytes + in->checked, in->done - in->checked);
    in->checked = in->done;
    if (in->done == in->s.len)
        check_ones(in, in->s.owner, in->ones[in->s.owner]);
}

/* By groups of rows that are whole words. */
static void look_at_matrix(struct filter_in *in)
{
    const struct matrix *matrix = atomic_load(&in->f->matrix);
    uint64_t width = in->head.width, step = width < 64 ? 8 * width : width / 8;
    bool all = in->done == in->s.len;
    uint64_t to = all ? in->done : in->done / step * step;
    matrix_count_ones((const uint8_t *)matrix->bits.words + in->checked,
                      8 * (to - in->checked) / width, width, in->ones);
    in->checked = to;
    for (uint64_t i = 0; all && i < width; i++)
        if (i < in->head.n)
            check_ones(in, (uint32_t)i, in->ones[i]);
        else if (in->ones[i])
            note_wrong(in, "bits are set in a column without a vector");
}

/* A bit is set where its counter is not 0; those of 15 are counted, for the next section. */
static void look_at_counters(struct filter_in *in, const struct vector *v)
{
    const uint8_t *nibbles = v->counters.nibbles.data;
    bool all = in->done == in->s.len;
    uint64_t to = all ? in->done : in->done / 32 * 32;
    for (; in->checked < to; in->checked += 32) {
        uint64_t set, large, n = min_u64(32, to - in->checked);
        counters_masks(nibbles + in->checked, (size_t)n, &set, &large);
        if (set != vector_word(v, in->checked / 32))
            note_wrong(in, "bits and counters do not agree");
        in->large += (uint64_t)__builtin_popcountll(large);
    }
    if (all && in->large != head_record(&in->head, in->s.owner).escapes)
        note_wrong(in, "the large counters are not in their table");
}

/* As many as there are counters of 15, rising, each at one of those: so all of them. */
static void look_at_escapes(struct filter_in *in, struct vector *v)
{
    const uint8_t *nibbles = v->counters.nibbles.data;
    const uint8_t *entries = in->aside.data + (in->s.offset - in->late);
    for (; in->checked + 16 <= in->done; in->checked += 16) {
        uint64_t at = get_u64(entries + in->checked), value = get_u64(entries + in->checked + 8);
        if (in->wrong != TAMIS_OK)
            continue;
        if (at < in->last || at >= v->counters.n || value < COUNTER_ESCAPE ||
            (nibbles[at / 2] >> (4 * (at & 1)) & 15) != COUNTER_ESCAPE) {
            note_wrong(in, "the large counters are not in their table");
            continue;
        }
        counters_escape(&v->counters, at, value);
        in->last = at + 1;
    }
}

/* Some bytes of a section, or of the zeros after it, which are not kept: they must be. */
static tamis_error take(struct filter_in *in, const uint8_t *data, size_t len, tamis_reason *reason)
{
    struct vector *v = filter_stack(in->f)->v[in->s.owner];
    bool aside = in->s.type >= SECTION_ESCAPES, zeros = in->done >= in->s.len;
    if (aside && !bytes_add(&in->allocator, &in->aside, data, len))
        return fail(reason, TAMIS_ENOMEM, "no memory for what is not vectors");
    if (zeros && !bytes_are_zero(data, len))
        return fail_at(reason, TAMIS_EFORMAT, in->have, "what fills up a section is not zero");
    if (!zeros && in->s.type == SECTION_BITS)
        memcpy((uint8_t *)v->bits.words + in->done, data, len);
    if (!zeros && in->s.type == SECTION_MATRIX)
        memcpy((uint8_t *)atomic_load(&in->f->matrix)->bits.words + in->done, data, len);
    if (!zeros && in->s.type == SECTION_COUNTERS)
        memcpy((uint8_t *)v->counters.nibbles.data + in->done, data, len);
    in->done += len;
    if (zeros)
        return TAMIS_OK;
    if (in->s.type == SECTION_BITS)
        look_at_bits(in, v);
    else if (in->s.type == SECTION_MATRIX)
        look_at_matrix(in);
    else if (in->s.type == SECTION_COUNTERS)
        look_at_counters(in, v);
    else if (in->s.type == SECTION_ESCAPES)
        look_at_escapes(in, v);
    return TAMIS_OK;
}

static tamis_error end_chunk(struct filter_in *in, tamis_reason *reason)
{
    tamis_error e = container_check_sum(&in->c, in->chunk, hash_end(&in->hash), reason);
    if (e == TAMIS_OK && in->wrong != TAMIS_OK) {
        e = in->wrong;
        if (reason)
            *reason = in->reason;
    }
    in->chunk++;
    in->chunk_done = 0;
    hash_begin(&in->hash);
    return e;
}

/* At most to the end of the section, or of the chunk. */
static tamis_error add_payload(struct filter_in *in, const uint8_t **data, size_t *len,
                               tamis_reason *reason)
{
    if (!in->open) {
        in->open = section_next(&in->walk, &in->s);
        in->done = in->checked = in->large = in->last = 0;
    }
    uint64_t end = in->done < in->s.len ? in->s.len : round_up(in->s.len, SECTION_ALIGN);
    size_t some = (size_t)min_u64(*len, min_u64(end - in->done, CHUNK - in->chunk_done));
    tamis_error e = take(in, *data, some, reason);
    if (e != TAMIS_OK)
        return e;
    hash_add(&in->hash, *data, some);
    in->have += some;
    in->chunk_done += some;
    *data += some;
    *len -= some;
    in->open = in->done < round_up(in->s.len, SECTION_ALIGN);
    return in->chunk_done == CHUNK || in->have == in->total ? end_chunk(in, reason) : TAMIS_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

uint64_t pieces_total(const void *data, size_t len)
{
    uint64_t total, header;
    return prefix_lengths(data, len, &total, &header) && total >= len ? total : 0;
}

struct filter_in *filter_in_begin(uint64_t total, uint64_t aside, const tamis_open_options *options)
{
    const tamis_allocator *a = open_allocator(options);
    struct filter_in *in = mem_new0(a, 1, sizeof *in);
    if (!in)
        return NULL;
    in->allocator = *a;
    in->total = total;
    in->most_aside = aside;
    if (options)
        in->options = *options;
    if (in->options.key) {
        memcpy(in->key, in->options.key, TAMIS_KEY_LEN);
        in->options.key = in->key;
    }
    return in;
}

tamis_error filter_in_add(struct filter_in *in, const void *data, size_t len, tamis_reason *reason)
{
    const uint8_t *at = data;
    tamis_error e = TAMIS_OK;
    if (len > in->total - in->have)
        return fail_at(reason, TAMIS_EFORMAT, in->total, "too long");
    while (len && e == TAMIS_OK)
        e = in->f ? add_payload(in, &at, &len, reason) : add_header(in, &at, &len, reason);
    return e;
}

uint64_t filter_in_have(const struct filter_in *in)
{
    return in->have;
}

tamis_error filter_in_end(struct filter_in *in, tamis_filter **out, tamis_reason *reason)
{
    if (in->have != in->total || !in->f)
        return fail_at(reason, TAMIS_EFORMAT, in->have, "cut short");
    in->c.late = in->aside.data;
    in->c.late_at = in->late;
    tamis_error e = TAMIS_OK;
    if (in->head.pending) {
        struct removing w = filter_removing(in->f);
        e = pending_check(&in->c, &in->head, reason);
        if (e == TAMIS_OK && (e = pending_load(&in->c, &in->head, &w)) != TAMIS_OK)
            fail(reason, e, "no memory for the removals");
    }
    if (e == TAMIS_OK) {
        *out = in->f;
        in->f = NULL;
    }
    return e;
}

void filter_in_free(struct filter_in *in)
{
    if (!in)
        return;
    tamis_allocator a = in->allocator;
    tamis_filter_free(in->f);
    mem_free(&a, in->header.data, 1, in->header.room);
    mem_free(&a, in->aside.data, 1, in->aside.room);
    mem_free(&a, in->ones, in->n_ones, sizeof *in->ones);
    mem_free(&a, in, 1, sizeof *in);
}

static const uint8_t *bytes_of(const struct filter_in *in, const struct section *s)
{
    const struct vector *v = filter_stack(in->f)->v[s->owner];
    if (s->type == SECTION_MATRIX)
        return (const uint8_t *)atomic_load(&in->f->matrix)->bits.words;
    return s->type == SECTION_BITS ? (const uint8_t *)v->bits.words : v->counters.nibbles.data;
}

tamis_error filter_in_encode(const struct filter_in *in, tamis_write write, void *context)
{
    struct writer w = {.write = write, .context = context};
    struct section_walk walk = filter_sections(&in->head);
    struct section s;
    put(&w, in->header.data, in->header.len);
    walk.offset = in->header_len;
    while (in->f && section_next(&walk, &s) && s.offset < min_u64(in->have, in->late)) {
        uint64_t here = in->have - s.offset, pad = round_up(s.len, SECTION_ALIGN) - s.len;
        put(&w, bytes_of(in, &s), min_u64(here, s.len));
        put_zeros(&w, here > s.len ? min_u64(here - s.len, pad) : 0);
    }
    put(&w, in->aside.data, in->aside.len);
    return w.failed ? TAMIS_EIO : TAMIS_OK;
}

size_t filter_in_bytes(const struct filter_in *in)
{
    tamis_info info = {0};
    if (in->f && stack_count(filter_stack(in->f)))
        tamis_filter_brief(in->f, &info);
    return sizeof *in + (size_t)(in->header.room + in->aside.room) + (size_t)info.bytes;
}
