/* See pieces.h: filters and indexes read a piece at a time. The checks are those of
   format_check.c, in the order in which the bytes come; a chunk with a wrong
   checksum is that, whatever else is in it. */
#include "pieces.h"

#include "base/err.h"
#include "format.h"

struct bytes {
    uint8_t *data;
    uint64_t len, room;
};

struct pieces_in {
    tamis_allocator allocator;
    tamis_open_options options;
    struct secrets *given; /* of the key in the options */
    bool keyless;          /* the bytes came without theirs, */
    bool adopts;           /* and what is made of them has it all the same */
    uint64_t total, have, most_aside;
    struct bytes header, aside; /* aside: the payload from `late` to `tables`, which is neither */
    uint64_t header_len, late, tables;
    enum kind kind;
    struct container c;
    struct head head;
    struct set *set; /* none until the header is here */
    struct section_walk walk;
    struct section s;
    bool open;
    uint64_t done;    /* bytes of the section, its zeros included, */
    uint64_t checked; /* and those that were looked at */
    uint64_t *ones;   /* of vectors, or columns */
    uint64_t n_ones;
    uint64_t large; /* counters of 15 in this section */
    uint64_t last;  /* position of the last large counter, plus 1 */
    struct table_check pairs;
    size_t next; /* slot of a table that the next value may have */
    struct bytes
        held; /* bytes of tables, and all after them, that are not in one: see take_pairs */
    struct hash_stream hash;
    uint64_t chunk, chunk_done;
    tamis_error wrong; /* found in this chunk, if its checksum is right */
    tamis_reason reason;
};

static bool bytes_add(const tamis_allocator *a, struct bytes *b, const void *data, size_t len)
{
    if (b->len + len > b->room) {
        uint64_t room = max_u64(b->len + len, 2 * b->room);
        uint8_t *grown = mem_grow_secret(a, b->data, (size_t)b->room, (size_t)room);
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

static tamis_error make_set(struct pieces_in *in, const uint8_t key[TAMIS_KEY_LEN])
{
    tamis_open_options options = in->options;
    options.allocator = &in->allocator;
    tamis_error e = set_from_head(&in->set, &in->c, &in->head, &options, key);
    for (uint32_t i = 0; e == TAMIS_OK && i < in->head.n; i++)
        if (!layer_read(in->set, &in->head, i, part_blank, &in->head))
            e = TAMIS_ENOMEM;
    if (e == TAMIS_OK && in->head.width) {
        const struct bits *shape = &set_layers(in->set)->v[0]->bits;
        struct matrix *matrix = matrix_new(&in->allocator, shape, in->head.width);
        if (!matrix)
            return TAMIS_ENOMEM;
        atomic_store(&in->set->matrix, matrix);
        set_place_columns(in->set);
    }
    return e;
}

/* Where what is not vectors begins, and where it ends. */
static void find_late(struct pieces_in *in)
{
    struct section_walk walk = in->walk;
    struct section s;
    in->late = in->tables = in->total;
    while (section_next(&walk, &s)) {
        if (s.type >= SECTION_ESCAPES)
            in->late = min_u64(in->late, s.offset);
        if (s.type == SECTION_TABLE)
            in->tables = min_u64(in->tables, s.offset);
    }
}

/* A table without values has no section. */
static tamis_error check_empty_tables(const struct pieces_in *in, tamis_reason *reason)
{
    for (uint32_t i = 0; i < in->walk.owners && in->kind == KIND_INDEX; i++) {
        struct record r = head_record(&in->head, i);
        struct table_check none = {0};
        const char *wrong = r.units || r.load ? NULL : table_check_end(&none, &in->head, i);
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, in->header_len, "the table of part %u: %s", i,
                           wrong);
    }
    return TAMIS_OK;
}

static tamis_error open_header(struct pieces_in *in, tamis_reason *reason)
{
    struct container *c = &in->c;
    tamis_error e = container_open(c, in->header.data, in->total, in->kind, reason);
    if (e == TAMIS_OK)
        e = head_parse(&in->head, in->kind, c->data + BODY_AT, c->body_len, c->bits_only, c->hash,
                       reason);
    if (e != TAMIS_OK)
        return e;
    in->walk = head_sections(&in->head);
    e = container_check_sections(c, in->walk, reason);
    in->walk.offset = in->header_len;
    return e;
}

/* Before anything is done for a structure of another family. */
static tamis_error take_family(struct pieces_in *in, const uint8_t **key, tamis_reason *reason)
{
    in->c.data = in->header.data;
    tamis_error e = container_family(&in->c, reason);
    in->keyless = e == TAMIS_OK && !in->c.has_key;
    return e == TAMIS_OK
               ? container_key(&in->c, in->c.has_key ? NULL : in->options.key, key, reason)
               : e;
}

static tamis_error take_header(struct pieces_in *in, tamis_reason *reason)
{
    const uint8_t *key;
    tamis_error e = open_header(in, reason);
    if (e == TAMIS_OK)
        e = take_family(in, &key, reason);
    if (e == TAMIS_OK)
        e = check_empty_tables(in, reason);
    if (e != TAMIS_OK)
        return e;
    find_late(in);
    if (in->tables - in->late > in->most_aside)
        return fail_at(reason, TAMIS_EKIND, in->late,
                       "too many large counters or removals to be read in pieces");
    in->c.has_key |= in->adopts;
    in->n_ones = max_u64(in->walk.owners, in->head.width);
    in->ones = mem_new0(&in->allocator, in->n_ones, sizeof *in->ones);
    e = in->ones ? make_set(in, key) : TAMIS_ENOMEM;
    if (e == TAMIS_OK) /* the set has it: not here too, until the last piece has come */
        explicit_bzero(in->header.data + KEY_AT, TAMIS_KEY_LEN);
    hash_begin(&in->hash);
    return e == TAMIS_OK ? e : fail(reason, e, "no memory for the vectors");
}

static tamis_error take_lengths(struct pieces_in *in, tamis_reason *reason)
{
    uint64_t total;
    if (!prefix_lengths(in->header.data, PREFIX_LEN, &total, &in->header_len) ||
        in->header_len > in->total || in->header_len <= FAMILY_END)
        return fail_at(reason, TAMIS_EFORMAT, 24, "the lengths in the header do not agree");
    bool index = tamis_kind_of(in->header.data, PREFIX_LEN) == TAMIS_KIND_RECORDS;
    in->kind = index ? KIND_INDEX : KIND_FILTER;
    if (in->header_len > in->most_aside)
        return fail_at(reason, TAMIS_EKIND, 24, "too many vectors to be read in pieces");
    return TAMIS_OK;
}

static tamis_error add_header(struct pieces_in *in, const uint8_t **data, size_t *len,
                              tamis_reason *reason)
{
    const uint8_t *key;
    uint64_t want = !in->header_len               ? PREFIX_LEN
                    : in->header.len < FAMILY_END ? FAMILY_END
                                                  : in->header_len;
    size_t some = (size_t)min_u64(*len, want - in->header.len);
    if (!bytes_add(&in->allocator, &in->header, *data, some))
        return fail(reason, TAMIS_ENOMEM, "no memory for the header");
    in->have += some;
    *data += some;
    *len -= some;
    if (in->header.len < want)
        return TAMIS_OK;
    return want == PREFIX_LEN   ? take_lengths(in, reason)
           : want == FAMILY_END ? take_family(in, &key, reason)
                                : take_header(in, reason);
}

/* ---- sections -------------------------------------------------------------------------------- */

/* The first thing that is wrong in a chunk; said when its checksum is known. */
static void note_wrong(struct pieces_in *in, const char *what)
{
    if (in->wrong == TAMIS_OK)
        in->wrong =
            fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset, "vector %u: %s", in->s.owner, what);
}

static void check_ones(struct pieces_in *in, uint32_t i, uint64_t ones)
{
    struct record r = head_record(&in->head, i);
    if (ones != r.ones && in->wrong == TAMIS_OK)
        in->wrong = fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset,
                            "vector %u has %llu bits set, not %llu", i, (unsigned long long)ones,
                            (unsigned long long)r.ones);
}

static void look_at_bits(struct pieces_in *in, const struct vector *v)
{
    const uint8_t *bytes = (const uint8_t *)v->bits.words;
    in->ones[in->s.owner] += bytes_ones(bytes + in->checked, in->done - in->checked);
    in->checked = in->done;
    if (in->done == in->s.len)
        check_ones(in, in->s.owner, in->ones[in->s.owner]);
}

/* By groups of rows that are whole words. */
static void look_at_matrix(struct pieces_in *in)
{
    const struct matrix *matrix = atomic_load(&in->set->matrix);
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
static void look_at_counters(struct pieces_in *in, const struct vector *v)
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
static void look_at_escapes(struct pieces_in *in, struct vector *v)
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

/* Bytes that are whole pairs go to the table; after something wrong nothing does, and the bytes are
   held until the end of the chunk, when the load is over. */
static tamis_error take_pairs(struct pieces_in *in, const uint8_t *data, size_t len,
                              tamis_reason *reason)
{
    struct table *table = &set_part(in->set, in->s.owner)->table;
    struct bytes *held = &in->held;
    uint64_t at = 0;
    if (!bytes_add(&in->allocator, held, data, len))
        return fail(reason, TAMIS_ENOMEM, "no memory for what is being checked");
    for (; in->wrong == TAMIS_OK && at + TABLE_PAIR <= held->len; at += TABLE_PAIR) {
        const char *wrong = table_check_pair(&in->pairs, held->data + at);
        bool last = in->checked + TABLE_PAIR == in->s.len;
        if (!wrong && last)
            wrong = table_check_end(&in->pairs, &in->head, in->s.owner);
        if (wrong) {
            in->wrong = fail_at(&in->reason, TAMIS_EFORMAT, in->s.offset,
                                "the table of part %u: %s", in->s.owner, wrong);
            break;
        }
        table_append(table, &in->next, in->pairs.value, get_u64(held->data + at + 8));
        in->checked += TABLE_PAIR;
    }
    held->len -= at;
    memmove(held->data, held->data + at, held->len);
    return TAMIS_OK;
}

/* Some bytes of a section that go to their place, and are looked at there. */
static void take_bits(struct pieces_in *in, const uint8_t *data, size_t len)
{
    struct vector *v = set_part(in->set, in->s.owner)->vector;
    if (in->s.type == SECTION_BITS)
        memcpy((uint8_t *)v->bits.words + in->done, data, len);
    else if (in->s.type == SECTION_MATRIX)
        memcpy((uint8_t *)atomic_load(&in->set->matrix)->bits.words + in->done, data, len);
    else if (in->s.type == SECTION_COUNTERS)
        memcpy((uint8_t *)v->counters.nibbles.data + in->done, data, len);
    in->done += len;
    if (in->s.type == SECTION_BITS)
        look_at_bits(in, v);
    else if (in->s.type == SECTION_MATRIX)
        look_at_matrix(in);
    else if (in->s.type == SECTION_COUNTERS)
        look_at_counters(in, v);
    else if (in->s.type == SECTION_ESCAPES)
        look_at_escapes(in, v);
}

/* Some bytes of a section, or of the zeros after it, which are not kept: they must be. */
static tamis_error take(struct pieces_in *in, const uint8_t *data, size_t len, tamis_reason *reason)
{
    bool table = in->s.type == SECTION_TABLE, zeros = in->done >= in->s.len;
    bool aside = in->s.type >= SECTION_ESCAPES && !table;
    if (zeros && !bytes_are_zero(data, len))
        return fail_at(reason, TAMIS_EFORMAT, in->have, "what fills up a section is not zero");
    if (aside && !bytes_add(&in->allocator, &in->aside, data, len))
        return fail(reason, TAMIS_ENOMEM, "no memory for what is not vectors");
    if (!zeros && !table) {
        take_bits(in, data, len);
        return TAMIS_OK;
    }
    in->done += len;
    return table && (!zeros || in->wrong != TAMIS_OK) ? take_pairs(in, data, len, reason)
                                                      : TAMIS_OK;
}

static tamis_error end_chunk(struct pieces_in *in, tamis_reason *reason)
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
static tamis_error add_payload(struct pieces_in *in, const uint8_t **data, size_t *len,
                               tamis_reason *reason)
{
    if (!in->open) {
        in->open = section_next(&in->walk, &in->s);
        in->done = in->checked = in->large = in->last = in->next = 0;
        if (in->s.type == SECTION_TABLE)
            in->pairs = table_check_begin(&in->head, in->s.owner);
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

struct pieces_in *pieces_in_begin(uint64_t total, uint64_t aside, const tamis_open_options *options)
{
    const tamis_allocator *a = open_allocator(options);
    struct pieces_in *in = mem_new0(a, 1, sizeof *in);
    if (!in)
        return NULL;
    in->allocator = *a;
    in->total = total;
    in->most_aside = aside;
    if (options)
        in->options = *options;
    if (in->options.key) {
        in->given = secrets_get(in->options.key);
        if (!in->given) {
            mem_free(a, in, 1, sizeof *in);
            return NULL;
        }
        in->options.key = in->given->key;
    }
    return in;
}

tamis_error pieces_in_add(struct pieces_in *in, const void *data, size_t len, tamis_reason *reason)
{
    const uint8_t *at = data;
    tamis_error e = TAMIS_OK;
    if (len > in->total - in->have)
        return fail_at(reason, TAMIS_EFORMAT, in->total, "too long");
    while (len && e == TAMIS_OK)
        e = in->set ? add_payload(in, &at, &len, reason) : add_header(in, &at, &len, reason);
    return e;
}

uint64_t pieces_in_have(const struct pieces_in *in)
{
    return in->have;
}

const uint8_t *pieces_in_key(const struct pieces_in *in)
{
    return in->options.key;
}

void pieces_in_adopt(struct pieces_in *in)
{
    in->adopts = true;
}

bool pieces_in_keyless(const struct pieces_in *in)
{
    return in->keyless;
}

tamis_error pieces_in_end(struct pieces_in *in, struct set **out, tamis_reason *reason)
{
    const struct head *head = &in->head;
    if (in->have != in->total || !in->set)
        return fail_at(reason, TAMIS_EFORMAT, in->have, "cut short");
    in->c.late = in->aside.data;
    in->c.late_at = in->late;
    tamis_error e = TAMIS_OK;
    if (head->pending) {
        e = pending_check(&in->c, head, reason);
        if (e == TAMIS_OK && (e = pending_load(&in->c, head, in->set)) != TAMIS_OK)
            fail(reason, e, "%s", load_wrong(e));
    }
    if (e == TAMIS_OK) {
        *out = in->set;
        in->set = NULL;
    }
    return e;
}

void pieces_in_free(struct pieces_in *in)
{
    if (!in)
        return;
    tamis_allocator a = in->allocator;
    set_free(in->set);
    mem_free_secret(&a, in->header.data, 1, in->header.room);
    mem_free(&a, in->aside.data, 1, in->aside.room);
    mem_free(&a, in->held.data, 1, in->held.room);
    mem_free(&a, in->ones, in->n_ones, sizeof *in->ones);
    secrets_release(in->given);
    mem_free(&a, in, 1, sizeof *in);
}

static const uint8_t *bytes_of(const struct pieces_in *in, const struct section *s)
{
    if (s->type == SECTION_MATRIX)
        return (const uint8_t *)atomic_load(&in->set->matrix)->bits.words;
    const struct vector *v = set_part(in->set, s->owner)->vector;
    return s->type == SECTION_BITS ? (const uint8_t *)v->bits.words : v->counters.nibbles.data;
}

static void put_pairs(const struct pieces_in *in, uint32_t owner, struct writer *w)
{
    struct table_walk walk = {.table = &set_part(in->set, owner)->table};
    while (table_next(&walk)) {
        uint8_t pair[TABLE_PAIR];
        put_u64(pair, walk.value);
        put_u64(pair + 8, walk.count);
        put(w, pair, sizeof pair);
    }
}

/* The sections that begin before `end`, as far as it; aside are those between vectors and tables. */
static void put_sections(const struct pieces_in *in, struct writer *w, bool tables, uint64_t end)
{
    struct section_walk walk = head_sections(&in->head);
    struct section s;
    walk.offset = in->header_len;
    while (section_next(&walk, &s) && s.offset < end) {
        uint64_t here = end - s.offset, pad = round_up(s.len, SECTION_ALIGN) - s.len;
        if (s.offset < (tables ? in->tables : 0))
            continue;
        if (tables)
            put_pairs(in, s.owner, w);
        else
            put(w, bytes_of(in, &s), min_u64(here, s.len));
        put_zeros(w, here > s.len ? min_u64(here - s.len, pad) : 0);
    }
}

tamis_error pieces_in_encode(const struct pieces_in *in, tamis_write write, void *context)
{
    struct writer w = {.write = write, .context = context};
    if (in->set) {
        bool key = !in->keyless;
        put(&w, in->header.data, KEY_AT);
        put(&w, key ? in->set->family.secrets->key : in->header.data + KEY_AT, TAMIS_KEY_LEN);
        put(&w, in->header.data + KEY_AT + TAMIS_KEY_LEN, in->header.len - KEY_AT - TAMIS_KEY_LEN);
        put_sections(in, &w, false, min_u64(in->have, in->late));
        put(&w, in->aside.data, in->aside.len);
        put_sections(in, &w, true, in->have - in->held.len);
        put(&w, in->held.data, in->held.len);
    } else
        put(&w, in->header.data, in->header.len);
    return w.failed ? TAMIS_EIO : TAMIS_OK;
}

uint64_t pieces_in_makes(const struct pieces_in *in)
{
    return in->set ? set_bytes(in->set) : 0;
}

size_t pieces_in_bytes(const struct pieces_in *in)
{
    return sizeof *in + (size_t)(in->header.room + in->aside.room + in->held.room) +
           (size_t)pieces_in_makes(in);
}
