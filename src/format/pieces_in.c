/* The one validator; see pieces.h. Bytes are stored where they will be used, or stay in place if
   all of them are available, and are checked there. The checksums come last: other errors are
   held until they are known, so that damaged bytes are always reported as such. */

#include "base/err.h"
#include "sections.h"

/* ---- the header ------------------------------------------------------------------------------ */

static tamis_error make_set(struct pieces_in *in, const uint8_t key[TAMIS_KEY_LEN])
{
    const struct container *view = in->view ? &in->c : NULL;
    struct family_key family = {in->c.hash, key, in->c.has_key};
    tamis_error e = set_from_head(&in->set, &in->head, &in->allocator, family, in->c.bits_only);
    if (e == TAMIS_OK && in->options.clock && set_stacked(in->set)) {
        in->set->stack->more->clock = in->options.clock;
        in->set->stack->more->clock_context = in->options.clock_context;
    }
    for (uint32_t i = 0; e == TAMIS_OK && i < in->head.n; i++)
        if (!layer_read(in->set, &in->head, i, view))
            e = TAMIS_ENOMEM;
    if (e == TAMIS_OK &&
        (!matrix_read(in->set, &in->head, view) || !lines_read(in->set, &in->head, view)))
        e = TAMIS_ENOMEM;
    if (e == TAMIS_OK)
        in->set->read_only |= in->view != NULL;
    return e;
}

/* Where the parts that are not vectors begin and end. */
static void find_late(struct pieces_in *in)
{
    struct section_walk walk = in->walk;
    struct section s;
    in->late = in->tables = in->c.sums;
    while (section_next(&walk, &s)) {
        if (s.type >= SECTION_ESCAPES && s.type != SECTION_LINES)
            in->late = min_u64(in->late, s.offset);
        if (s.type >= SECTION_TABLE && s.type != SECTION_LINES)
            in->tables = min_u64(in->tables, s.offset);
    }
}

/* Checks the family first, so that nothing is allocated for a structure of another one. */
static tamis_error take_family(struct pieces_in *in, const uint8_t **key, tamis_reason *reason)
{
    in->c.data = in->view ? in->view : in->header.data;
    tamis_error e = container_family(&in->c, reason);
    in->keyless = e == TAMIS_OK && !in->c.has_key;
    if (e != TAMIS_OK || (in->keyless && in->verify))
        return e;
    return container_key(&in->c, in->c.has_key && in->adopts ? NULL : in->options.key, key, reason);
}

static tamis_error take_header(struct pieces_in *in, tamis_reason *reason)
{
    static const uint8_t none[TAMIS_KEY_LEN]; /* if nothing is made of the bytes */
    const uint8_t *key = none;
    const uint8_t *data = in->view ? in->view : in->header.data;
    tamis_error e = set_open(&in->c, &in->head, in->kind, data, in->total, reason);
    if (e == TAMIS_OK)
        e = take_family(in, &key, reason);
    in->walk = head_sections(&in->head);
    in->walk.offset = in->header_len;
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
    in->sums = in->pages.next = mem_new(&in->allocator, in->c.pages, sizeof(uint64_t));
    e = in->ones && in->sums ? make_set(in, key) : TAMIS_ENOMEM;
    if (e == TAMIS_OK && !in->view) /* the set has the key; no copy stays while pieces arrive */
        explicit_bzero(in->header.data + KEY_AT, TAMIS_KEY_LEN);
    return e == TAMIS_OK ? e : fail(reason, e, "no memory for the vectors");
}

static tamis_error take_lengths(struct pieces_in *in, const uint8_t *front, tamis_reason *reason)
{
    uint64_t total;
    tamis_error e = prefix_check(front, in->total, reason);
    if (e != TAMIS_OK)
        return e;
    prefix_lengths(front, PREFIX_LEN, &total, &in->header_len);
    bool records = tamis_kind_of(front, PREFIX_LEN) == TAMIS_KIND_RECORDS;
    if (!in->kind)
        in->kind = records ? KIND_RECORDS : KIND_FILTER;
    if (in->header_len > in->most_aside)
        return fail_at(reason, TAMIS_EKIND, 24, "too many vectors to be read in pieces");
    return TAMIS_OK;
}

static tamis_error add_header(struct pieces_in *in, const uint8_t **data, size_t *len,
                              tamis_reason *reason)
{
    uint64_t want = in->header_len ? in->header_len : min_u64(PREFIX_LEN, in->total);
    size_t some = (size_t)min_u64(*len, want - in->have);
    if (!in->view && sink_write(&in->header, *data, some) != 0)
        return fail(reason, TAMIS_ENOMEM, "no memory for the header");
    bool late = in->have < FAMILY_END; /* its family was not known before */
    in->have += some;
    *data += some;
    *len -= some;
    if (in->have == want)
        return in->header_len ? take_header(in, reason)
                              : take_lengths(in, in->view ? in->view : in->header.data, reason);
    const uint8_t *key;
    return late && in->have >= FAMILY_END ? take_family(in, &key, reason) : TAMIS_OK;
}

/* ---- the payload ----------------------------------------------------------------------------- */

/* Some bytes of a section, or of the padding after it, which is not stored: it must be zero. */
static tamis_error take(struct pieces_in *in, const uint8_t *data, size_t len, tamis_reason *reason)
{
    const struct section_kind *kind = &section_kinds[in->s.type];
    bool zeros = in->done >= in->s.len, after = in->s.offset >= in->tables;
    struct sink *to = after ? &in->held : &in->aside;
    bool keep = after ? !zeros || in->wrong != TAMIS_OK || in->s.type == SECTION_ONES : !kind->data;
    if (zeros) {
        tamis_error e = gap_check(data, len, in->have, reason);
        if (e != TAMIS_OK)
            return e;
    } else {
        page_sums_add(&in->pages, data, len);
    }
    if (!in->view && keep && sink_write(to, data, len) != 0)
        return fail(reason, TAMIS_ENOMEM, "no memory for what is being checked");
    if (!in->view && !zeros && kind->data)
        memcpy(kind->data(in->set, in->s.owner) + in->done, data, len);
    in->done += len;
    if (!zeros && kind->look)
        kind->look(in);
    if (!zeros && in->done == in->s.len)
        page_sums_end(&in->pages);
    return TAMIS_OK;
}

/* Is this a section that is not checked? */
static bool passed_over(const struct pieces_in *in, const struct section *s)
{
    bool lines = s->type == SECTION_LINES && s->owner % PART_PIECES <= PART_STASH;
    return in->skim && s->type != SECTION_PENDING && s->type != SECTION_CANDIDATES &&
           s->type != SECTION_ONES && (s->type != SECTION_LINES || lines);
}

/* At most to the end of the section. */
static tamis_error add_section(struct pieces_in *in, const uint8_t **data, size_t *len,
                               tamis_reason *reason)
{
    if (!in->open) {
        in->open = section_next(&in->walk, &in->s);
        in->done = in->checked = in->large = in->last = in->next = 0;
        in->pages.next = in->sums + sizeof(uint64_t) * in->walk.page;
    }
    uint64_t whole = round_up(in->s.len, SECTION_ALIGN);
    bool passed = passed_over(in, &in->s);
    uint64_t end = in->done < in->s.len && !passed ? in->s.len : whole;
    size_t some = (size_t)min_u64(*len, end - in->done);
    tamis_error e = TAMIS_OK;
    if (passed)
        in->done += some;
    else
        e = take(in, *data, some, reason);
    in->have += some;
    *data += some;
    *len -= some;
    in->open = in->done < whole;
    return e;
}

/* All bytes have arrived: `sums` are the checksums. */
static tamis_error check_sums(struct pieces_in *in, const uint8_t *sums, tamis_reason *reason)
{
    struct section_walk walk = head_sections(&in->head);
    uint64_t used = sizeof(uint64_t) * in->c.pages;
    struct section s;
    tamis_error e = TAMIS_OK;
    for (walk.offset = in->header_len; e == TAMIS_OK && section_next(&walk, &s);)
        for (uint64_t i = walk.page; e == TAMIS_OK && i < walk.pages && !passed_over(in, &s); i++)
            e = page_check(&s, i - walk.page, get_u64(in->sums + sizeof(uint64_t) * i),
                           sums + sizeof(uint64_t) * walk.page, reason);
    if (e == TAMIS_OK)
        e = gap_check(sums + used, sums_len(in->c.pages) - used, in->c.sums + used, reason);
    if (e == TAMIS_OK && in->wrong != TAMIS_OK) {
        e = in->wrong;
        if (reason)
            *reason = in->reason;
    }
    return e;
}

static tamis_error add_sums(struct pieces_in *in, const uint8_t **data, size_t *len,
                            tamis_reason *reason)
{
    if (!in->view && sink_write(&in->held, *data, *len) != 0)
        return fail(reason, TAMIS_ENOMEM, "no memory for what is being checked");
    in->have += *len;
    *len = 0;
    if (in->have < in->total)
        return TAMIS_OK;
    return check_sums(in,
                      in->view ? in->view + in->c.sums
                               : in->held.data + in->held.len - (in->total - in->c.sums),
                      reason);
}

/* ---- bytes as they arrive -------------------------------------------------------------------- */

struct pieces_in *pieces_in_begin(uint64_t total, uint64_t aside, const tamis_open_options *options)
{
    const tamis_allocator *a = open_allocator(options);
    struct pieces_in *in = mem_new(a, 1, sizeof *in);
    if (!in)
        return NULL;
    memset(in, 0, offsetof(struct pieces_in, pages.page));
    in->allocator = *a;
    in->header.a = in->aside.a = in->held.a = &in->allocator;
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

void pieces_in_want(struct pieces_in *in, enum kind kind)
{
    in->kind = kind;
}

tamis_error pieces_in_add(struct pieces_in *in, const void *data, size_t len, tamis_reason *reason)
{
    const uint8_t *at = data;
    tamis_error e = TAMIS_OK;
    if (len > in->total - in->have)
        return fail_at(reason, TAMIS_EFORMAT, in->total, "too long");
    while (len && e == TAMIS_OK)
        e = !in->set                ? add_header(in, &at, &len, reason)
            : in->have < in->c.sums ? add_section(in, &at, &len, reason)
                                    : add_sums(in, &at, &len, reason);
    return e;
}

uint64_t pieces_in_total(const struct pieces_in *in)
{
    return in->total;
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

static tamis_error take_pending(struct pieces_in *in, tamis_reason *reason)
{
    struct section_walk walk = head_sections(&in->head);
    struct section s;
    walk.offset = in->header_len;
    while (section_next(&walk, &s) && s.type != SECTION_PENDING)
        continue;
    const uint8_t *entries =
        in->view ? in->view + s.offset : in->aside.data + (s.offset - in->late);
    const uint8_t *candidates = entries + round_up(s.len, SECTION_ALIGN);
    tamis_error e = pending_take(&in->head, entries, candidates, s.offset, NULL, reason);
    if (e != TAMIS_OK || in->verify)
        return e;
    in->set->stack->more->removals.probes_max = probes_for(in->total);
    e = pending_take(&in->head, entries, candidates, s.offset, in->set, NULL);
    in->set->stack->more->removals.probes_max = 0;
    if (e == TAMIS_OK)
        return e;
    return fail(
        reason, e,
        e == TAMIS_ELIMIT
            ? "its pending removals would take more memory than this many bytes can describe"
        : e == TAMIS_EFORMAT ? "it was changed while it was read"
                             : "no memory for it");
}

tamis_error pieces_in_end(struct pieces_in *in, struct set **out, tamis_reason *reason)
{
    tamis_error e = TAMIS_OK;
    if (in->have < PREFIX_LEN && in->have == in->total)
        e = prefix_check(in->header.data, in->have, reason);
    if (e == TAMIS_OK && (in->have != in->total || !in->set))
        e = fail_at(reason, TAMIS_EFORMAT, in->have, "cut short");
    if (e == TAMIS_OK && in->head.pending)
        e = take_pending(in, reason);
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
    sink_free(&in->header);
    sink_free(&in->aside);
    sink_free(&in->held);
    mem_free(&a, in->ones, in->n_ones, sizeof *in->ones);
    mem_free(&a, in->sums, in->c.pages, sizeof(uint64_t));
    secrets_release(in->given);
    mem_free(&a, in, 1, sizeof *in);
}

tamis_error set_read(struct set **out, enum kind kind, const void *data, size_t len, unsigned how,
                     const tamis_open_options *options, tamis_reason *reason)
{
    struct pieces_in *in = pieces_in_begin(len, UINT64_MAX, options);
    struct set *s = NULL;
    if (!in)
        return fail(reason, TAMIS_ENOMEM, "no memory to read it");
    in->kind = kind;
    in->verify = how & READ_VERIFY;
    in->skim = how & READ_SKIM;
    in->view = how & READ_VIEW && (uintptr_t)data % sizeof(uint64_t) == 0 ? data : NULL;
    tamis_error e = pieces_in_add(in, data, len, reason);
    if (e == TAMIS_OK)
        e = pieces_in_end(in, &s, reason);
    pieces_in_free(in);
    if (e == TAMIS_OK && out)
        *out = s;
    else
        set_free(s);
    return e;
}

/* ---- again ----------------------------------------------------------------------------------- */

struct writer {
    tamis_write write;
    void *context;
    bool failed;
};

static void put(struct writer *w, const void *data, uint64_t len)
{
    if (!w->failed && len)
        w->failed = w->write(w->context, data, (size_t)len) != 0;
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

/* The sections that begin before `end`, up to it; `aside` holds those between vectors and tables. */
static void put_sections(const struct pieces_in *in, struct writer *w, bool tables, uint64_t end)
{
    static const uint8_t zeros[SECTION_ALIGN];
    struct section_walk walk = head_sections(&in->head);
    struct section s;
    walk.offset = in->header_len;
    while (section_next(&walk, &s) && s.offset < end) {
        uint64_t there = end - s.offset, pad = round_up(s.len, SECTION_ALIGN) - s.len;
        if (s.offset < (tables ? in->tables : 0))
            continue;
        if (tables)
            put_pairs(in, s.owner, w);
        else
            put(w, section_kinds[s.type].data(in->set, s.owner), min_u64(there, s.len));
        put(w, zeros, there > s.len ? min_u64(there - s.len, pad) : 0);
    }
}

tamis_error pieces_in_encode(const struct pieces_in *in, tamis_write write, void *context)
{
    struct writer w = {.write = write, .context = context};
    if (in->set) {
        put(&w, in->header.data, KEY_AT);
        put(&w, in->keyless ? in->header.data + KEY_AT : set_family(in->set)->secrets->key,
            TAMIS_KEY_LEN);
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
           (size_t)(sizeof(uint64_t) * in->c.pages) + (size_t)pieces_in_makes(in);
}
