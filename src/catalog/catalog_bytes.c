/*
 * The bytes of a catalog (docs/format.md). It is written from front to back before its length is
 * known: the strips, then all tables, then the checksums of pages and their checksums, and finally
 * the header, whose length depends only on the schema.
 */
#include "catalog_bytes.h"

#include "base/err.h"
#include "tamis/catalog.h"

#define CATALOG_HEAD_LEN 128
#define SECTION_FIRST    16 /* type of the strips; the others follow */

/* ---- fields ---------------------------------------------------------------------------------- */

static void head_fields_of(struct cursor *c, tamis_schema *s, struct catalog_head *h)
{
    uint32_t verifier = s->verifier;
    field_u32(c, &s->attributes);
    field_u32(c, &s->combos);
    field_u32(c, &verifier);
    field_u32(c, &s->names_len);
    field_f64(c, &s->fpp, "the rate is not a number");
    field_u64(c, &s->segments);
    field_u64(c, &h->segments);
    field_u64(c, &h->shapes);
    field_u64(c, &h->strips);
    field_u64(c, &h->columns);
    field_u64(c, &h->strips_len);
    field_u64(c, &h->tags_len);
    field_u64(c, &h->note_len);
    field_u64(c, &h->tops_sum);
    field_u64(c, &h->fronts);
    field_u64(c, &h->fronts_len);
    field_zero(c, 16);
    s->verifier = (tamis_verifier)verifier;
}

/* The rest of the schema, whose lengths the head contains. */
static void schema_fields(struct cursor *c, tamis_schema *s)
{
    for (uint32_t i = 0; i < s->combos; i++)
        field_u64(c, &s->masks[i]);
    for (uint32_t i = 0; i < s->attributes; i++) {
        uint32_t type = s->types[i] | (uint32_t)s->bounds_only[i] << 8;
        field_u32(c, &type);
        s->types[i] = (tamis_type)(type & ~256u);
        s->bounds_only[i] = type >> 8 & 1;
    }
    field_zero(c, s->attributes % 2 * sizeof(uint32_t));
    field_bytes(c, s->names, s->names_len);
    field_zero(c, (size_t)(round_up(s->names_len, 8) - s->names_len));
}

void catalog_shape_fields(struct cursor *c, struct catalog_shape *s)
{
    field_u32(c, &s->relation);
    field_u32(c, &s->plan.k);
    field_u64(c, &s->plan.units);
    field_u64(c, &s->plan.capacity);
    field_f64(c, &s->plan.rate, "the rate of a column is not a number");
    field_u32(c, &s->plan.most);
    field_zero(c, 4);
}

void catalog_strip_fields(struct cursor *c, struct catalog_strip *s)
{
    field_u32(c, &s->shape);
    field_u32(c, &s->width);
    field_u32(c, &s->n);
    field_zero(c, 4);
}

void catalog_front_fields(struct cursor *c, struct catalog_front *f)
{
    field_u32(c, &f->attribute);
    field_u32(c, &f->bits);
    field_u32(c, &f->buckets);
    field_zero(c, 4);
    field_u64(c, &f->n);
    field_u64(c, &f->most);
    field_u64(c, &f->given);
}

uint64_t catalog_body_len(const tamis_schema *s)
{
    return CATALOG_HEAD_LEN + 8 * (uint64_t)s->combos + round_up(4 * (uint64_t)s->attributes, 8) +
           round_up(s->names_len, 8);
}

void catalog_body(const tamis_schema *schema, const struct catalog_head *head, uint8_t *body)
{
    tamis_schema s = *schema;
    struct catalog_head h = *head;
    struct cursor c = cursor_write(body, (size_t)catalog_body_len(schema));
    head_fields_of(&c, &s, &h);
    schema_fields(&c, &s);
}

/* ---- offsets, and records of tables ---------------------------------------------------------- */

struct catalog_table catalog_table_of(const tamis_schema *s, const struct catalog_head *h,
                                      uint64_t at)
{
    struct catalog_table t = {.shapes = at, .strips = at + SHAPE_LEN * h->shapes};
    t.fronts = t.strips + STRIP_LEN * h->strips;
    t.columns = t.fronts + FRONT_LEN * h->fronts;
    t.records = t.columns + round_up(4 * h->columns, 8);
    t.texts = t.records + 8 * h->segments;
    t.tag_ends = t.texts + 8 * h->segments;
    t.distinct = t.tag_ends + 8 * h->segments;
    t.bounds = t.distinct + round_up(4 * h->segments * schema_relations(s), 8);
    t.end = t.bounds + BOUNDS_LEN * h->segments * s->ordered;
    return t;
}

void catalog_bounds_put(uint8_t to[BOUNDS_LEN], tamis_range bounds)
{
    put_u64(to, (uint64_t)bounds.low.whole);
    put_u64(to + 8, bounds.low.part);
    put_u64(to + 16, (uint64_t)bounds.high.whole);
    put_u64(to + 24, bounds.high.part);
}

uint64_t catalog_sections(const tamis_schema *schema, const struct catalog_head *head, uint64_t at,
                          struct section out[CATALOG_SECTIONS])
{
    uint64_t payload = at;
    uint64_t lens[CATALOG_SECTIONS] = {head->strips_len, head->fronts_len,
                                       catalog_table_of(schema, head, 0).end, head->tags_len,
                                       head->note_len};
    for (uint32_t i = 0; i < CATALOG_SECTIONS; i++) {
        if (i >= CATALOG_SUMS) { /* 8 bytes for each earlier page */
            uint64_t of = i == CATALOG_SUMS ? at - payload : out[CATALOG_SUMS].len;
            lens[i] = 8 * ((of + CATALOG_PAGE - 1) / CATALOG_PAGE);
        }
        out[i] = (struct section){SECTION_FIRST + i, 0, at, lens[i]};
        at = round_up(at + lens[i], SECTION_ALIGN);
    }
    return at;
}

/* ---- reading --------------------------------------------------------------------------------- */

static tamis_error wrong_at(tamis_reason *reason, uint64_t at, const char *what)
{
    return fail_at(reason, TAMIS_EFORMAT, at, "%s", what);
}

static tamis_error parse_body(tamis_catalog *c, const struct container *box, tamis_reason *reason)
{
    tamis_schema *s = &c->schema;
    struct catalog_head *head = &c->head;
    const uint8_t *body = box->data + BODY_AT;
    if (box->body_len < CATALOG_HEAD_LEN)
        return wrong_at(reason, BODY_AT, "the body is too short");
    struct cursor at = cursor_read(body, (size_t)box->body_len);
    head_fields_of(&at, s, head);
    if (s->attributes > TAMIS_ATTRIBUTES_MAX || s->combos > TAMIS_COMBOS_MAX ||
        s->names_len > sizeof s->names || box->body_len != catalog_body_len(s))
        return wrong_at(reason, BODY_AT, "the body has the wrong length");
    schema_fields(&at, s);
    if (at.wrong)
        return wrong_at(reason, BODY_AT + at.wrong_at, at.wrong);
    const char *wrong = schema_wrong(s);
    if (wrong)
        return wrong_at(reason, BODY_AT, wrong);
    uint64_t most = c->len; /* no part is longer than the whole, so nothing overflows */
    if (head->segments > SEGMENTS_MAX || head->segments > most || head->shapes > most ||
        head->strips > most || head->columns > most || head->strips_len > most ||
        head->tags_len > most || head->note_len > most || head->fronts_len > most ||
        head->shapes >= STRIP_NONE || head->strips >= STRIP_NONE ||
        head->fronts > FRONTS_MAX * TAMIS_ATTRIBUTES_MAX)
        return wrong_at(reason, BODY_AT + 32, "a count exceeds the size of the file");
    return TAMIS_OK;
}

static tamis_error place_sections(tamis_catalog *c, const struct container *box,
                                  tamis_reason *reason)
{
    uint64_t end = catalog_sections(&c->schema, &c->head, box->payload, c->at);
    const struct section *tops = &c->at[CATALOG_TOPS];
    if (box->sections != CATALOG_SECTIONS || box->bits_only || end != c->len)
        return wrong_at(reason, 40, "the sections do not match the catalog");
    for (uint32_t i = 0; i < CATALOG_SECTIONS; i++) {
        struct section have = container_section(box, i), want = c->at[i];
        if (have.type != want.type || have.owner != want.owner || have.offset != want.offset ||
            have.len != want.len)
            return wrong_at(reason, BODY_AT + box->body_len,
                            "the sections do not match the catalog");
    }
    c->payload = box->payload;
    c->table = catalog_table_of(&c->schema, &c->head, c->at[CATALOG_TABLE].offset);
    if (hash_of(c->data + tops->offset, tops->len) != c->head.tops_sum)
        return fail_at(reason, TAMIS_ECHECKSUM, tops->offset,
                       "the checksum of the checksums does not match");
    return TAMIS_OK;
}

static tamis_error make_room(tamis_catalog *c, tamis_reason *reason)
{
    const tamis_allocator *a = &c->allocator;
    c->shapes = mem_new0(a, c->head.shapes, sizeof *c->shapes);
    c->strips = mem_new0(a, c->head.strips, sizeof *c->strips);
    c->fronts = mem_new0(a, c->head.fronts, sizeof *c->fronts);
    c->checked = mem_new0(a, CHECKED_WORDS(c, CATALOG_SUMS), sizeof *c->checked);
    c->checked_sums = mem_new0(a, CHECKED_WORDS(c, CATALOG_TOPS), sizeof *c->checked_sums);
    if (!c->shapes || !c->strips || !c->fronts || !c->checked || !c->checked_sums)
        return fail(reason, TAMIS_ENOMEM, "no memory for a catalog");
    return TAMIS_OK;
}

static tamis_error parse_shapes(tamis_catalog *c, tamis_reason *reason)
{
    for (uint32_t i = 0; i < c->head.shapes; i++) {
        struct catalog_shape *s = &c->shapes[i];
        uint64_t offset = c->table.shapes + SHAPE_LEN * (uint64_t)i;
        struct cursor at = cursor_read(c->data + offset, SHAPE_LEN);
        catalog_shape_fields(&at, s);
        struct shape shape = {TAMIS_SPREAD, s->plan.units, s->plan.k};
        if (at.wrong)
            return wrong_at(reason, offset + at.wrong_at, at.wrong);
        if (s->relation >= schema_relations(&c->schema) || !shape_valid(&shape, &c->family) ||
            s->plan.capacity == 0 || s->plan.most == 0 || !(s->plan.rate > 0 && s->plan.rate < 1))
            return wrong_at(reason, offset, "a column has an impossible shape");
    }
    return TAMIS_OK;
}

static tamis_error parse_strips(tamis_catalog *c, tamis_reason *reason)
{
    uint64_t end = c->at[CATALOG_STRIPS].offset, column = 0;
    memset(c->first, 0xff, sizeof c->first);
    for (uint32_t i = 0; i < c->head.strips; i++) {
        struct catalog_strip *s = &c->strips[i];
        uint64_t offset = c->table.strips + STRIP_LEN * (uint64_t)i;
        struct cursor at = cursor_read(c->data + offset, STRIP_LEN);
        catalog_strip_fields(&at, s);
        if (at.wrong || s->shape >= c->head.shapes || !strip_width_valid(s->width) || s->n == 0 ||
            strip_width(s->n) != s->width)
            return wrong_at(reason, offset, "a strip is impossible");
        s->offset = round_up(end, SECTION_ALIGN);
        s->column = column;
        column += s->n;
        end = s->offset + strip_len(c->shapes[s->shape].plan.units, s->width);
        if (end > c->at[CATALOG_STRIPS].offset + c->head.strips_len || column > c->head.columns)
            return wrong_at(reason, offset, "a strip lies past the end");
        uint32_t *first = &c->first[c->shapes[s->shape].relation];
        s->next = *first;
        *first = i;
    }
    if (end != c->at[CATALOG_STRIPS].offset + c->head.strips_len || column != c->head.columns)
        return wrong_at(reason, c->at[CATALOG_STRIPS].offset, "the strips do not match the table");
    return TAMIS_OK;
}

static tamis_error parse_fronts(tamis_catalog *c, tamis_reason *reason)
{
    uint64_t end = c->at[CATALOG_FRONTS].offset;
    uint32_t *last[TAMIS_ATTRIBUTES_MAX], fronts[TAMIS_ATTRIBUTES_MAX] = {0};
    memset(c->first_front, 0xff, sizeof c->first_front);
    for (uint32_t i = 0; i < TAMIS_ATTRIBUTES_MAX; i++)
        last[i] = &c->first_front[i];
    for (uint32_t i = 0; i < c->head.fronts; i++) {
        struct catalog_front *f = &c->fronts[i];
        uint64_t offset = c->table.fronts + FRONT_LEN * (uint64_t)i;
        struct cursor at = cursor_read(c->data + offset, FRONT_LEN);
        catalog_front_fields(&at, f);
        if (at.wrong || !front_valid(f, &c->schema) || fronts[f->attribute]++ == FRONTS_MAX)
            return wrong_at(reason, offset, "a front is impossible");
        f->offset = round_up(end, SECTION_ALIGN);
        end = f->offset + front_len(f);
        if (end > c->at[CATALOG_FRONTS].offset + c->head.fronts_len)
            return wrong_at(reason, offset, "a front lies past the end");
        f->next = STRIP_NONE; /* keeps their order */
        *last[f->attribute] = i;
        last[f->attribute] = &f->next;
    }
    if (end != c->at[CATALOG_FRONTS].offset + c->head.fronts_len)
        return wrong_at(reason, c->at[CATALOG_FRONTS].offset, "the fronts do not match the table");
    return TAMIS_OK;
}

/* On a pass from front to back: of what was read since `last`, at most a window stays in memory. */
static void passed(const tamis_catalog *c, uint64_t at, uint64_t *last)
{
    if (at - *last < CATALOG_WINDOW)
        return;
    tamis_catalog_rest(c);
    *last = at;
}

static tamis_error check_segments(const tamis_catalog *c, tamis_reason *reason)
{
    uint64_t before = 0, at = c->table.columns, last = at;
    for (uint64_t i = 0; i < c->head.columns; i++, at += 4) {
        uint32_t segment;
        if (!catalog_column_segment(c, i, &segment, reason))
            return TAMIS_EFORMAT;
        passed(c, at, &last);
    }
    at = c->table.tag_ends;
    for (uint64_t i = 0; i < c->head.segments; i++, at += 8) {
        uint64_t end = fetch_u64(c->data + at);
        if (end < before || end > c->head.tags_len)
            return wrong_at(reason, at, "a tag ends out of order");
        before = end;
        passed(c, at, &last);
    }
    if (before != c->head.tags_len)
        return wrong_at(reason, c->at[CATALOG_TAGS].offset, "tags do not belong to a segment");
    return TAMIS_OK;
}

static tamis_error parse_table(tamis_catalog *c, tamis_reason *reason)
{
    uint64_t from = c->table.shapes;
    /* including tags and note */
    tamis_error e = catalog_check_long(c, from, c->at[CATALOG_SUMS].offset - from, reason);
    if (e == TAMIS_OK)
        e = parse_shapes(c, reason);
    if (e == TAMIS_OK)
        e = parse_strips(c, reason);
    if (e == TAMIS_OK)
        e = parse_fronts(c, reason);
    if (e == TAMIS_OK)
        e = check_segments(c, reason);
    return e;
}

static tamis_error fill(tamis_catalog *c, const uint8_t *key, bool ask, tamis_reason *reason)
{
    struct container box;
    const uint8_t *own = (const uint8_t[TAMIS_KEY_LEN]){0};
    tamis_error e = container_open(&box, c->data, c->len, KIND_CATALOG, reason);
    if (e == TAMIS_OK && (ask || box.has_key))
        e = container_key(&box, key, &own, reason);
    if (e == TAMIS_OK)
        e = fail_so(reason, family_init(&c->family, &c->allocator, box.hash, own));
    if (e != TAMIS_OK)
        return e;
    c->family.has_key = box.has_key;
    e = parse_body(c, &box, reason);
    if (e == TAMIS_OK)
        e = place_sections(c, &box, reason);
    if (e == TAMIS_OK)
        e = make_room(c, reason);
    if (e == TAMIS_OK)
        e = parse_table(c, reason);
    return e;
}

/* ---- every byte ------------------------------------------------------------------------------ */

/* Checks for zeros up to the next strip and in unused columns. */
static tamis_error check_strip(const tamis_catalog *c, const struct catalog_strip *s, uint64_t end,
                               uint64_t *last, tamis_reason *reason)
{
    uint64_t rows = c->shapes[s->shape].plan.units;
    passed(c, s->offset, last);
    if (!bytes_are_zero(c->data + end, s->offset - end))
        return wrong_at(reason, end, "the padding of a strip is not zero");
    if (s->width == s->n)
        return TAMIS_OK;
    uint64_t *spare[STRIP_COLUMNS] = {0}, words[8][8];
    for (uint32_t i = s->n; i < s->width; i++)
        spare[i] = words[i - s->n];
    for (uint64_t row = 0; row < rows; row += 512) {
        uint64_t at = s->offset + strip_len(row, s->width);
        passed(c, at, last);
        memset(words, 0, sizeof words);
        strip_columns(c->data + at, min_u64(512, rows - row), s->width, spare, s->width);
        if (!bytes_are_zero(words, sizeof words))
            return wrong_at(reason, s->offset, "an unused column has a bit set");
    }
    return TAMIS_OK;
}

static tamis_error check_all(const tamis_catalog *c, tamis_reason *reason)
{
    uint64_t end = c->at[CATALOG_STRIPS].offset, last = end;
    tamis_error e =
        catalog_check_long(c, c->payload, c->at[CATALOG_SUMS].offset - c->payload, reason);
    if (e == TAMIS_OK && c->at[CATALOG_SUMS].len == 0 && c->at[CATALOG_SUMS].offset != c->payload)
        e = wrong_at(reason, c->at[CATALOG_SUMS].offset, "pages have no checksums");
    for (uint32_t i = 0; i < c->head.strips && e == TAMIS_OK; i++) {
        e = check_strip(c, &c->strips[i], end, &last, reason);
        end = c->strips[i].offset +
              strip_len(c->shapes[c->strips[i].shape].plan.units, c->strips[i].width);
    }
    end = c->at[CATALOG_FRONTS].offset;
    for (uint32_t i = 0; i < c->head.fronts && e == TAMIS_OK; i++) {
        if (!bytes_are_zero(c->data + end, c->fronts[i].offset - end))
            return wrong_at(reason, end, "the padding of a front is not zero");
        e = front_check(c, &c->fronts[i], reason);
        end = c->fronts[i].offset + front_len(&c->fronts[i]);
    }
    struct container box;
    if (e == TAMIS_OK)
        e = container_open(&box, c->data, c->len, KIND_CATALOG, reason);
    return e == TAMIS_OK ? container_check_gaps(&box, reason) : e;
}

/* ---- opening ------------------------------------------------------------------------------------ */

static tamis_error from_bytes(tamis_catalog **out, struct mapping bytes,
                              const tamis_open_options *o, bool ask, tamis_reason *reason)
{
    const tamis_allocator *a = open_allocator(o);
    tamis_catalog *c = mem_new0(a, 1, sizeof *c);
    if (!c)
        return fail(reason, TAMIS_ENOMEM, "no memory for a catalog");
    c->allocator = *a;
    c->mapping = bytes.kept ? bytes : (struct mapping){0};
    c->data = bytes.data;
    c->len = bytes.len;
    c->schema.family = &c->family;
    c->schema.allocator = &c->allocator;
    tamis_error e = fill(c, o ? o->key : NULL, ask, reason);
    if (e == TAMIS_OK && o && o->verify)
        e = check_all(c, reason);
    if (e != TAMIS_OK) {
        catalog_dispose(c);
        return e;
    }
    *out = c;
    return TAMIS_OK;
}

tamis_error catalog_from_mapping(tamis_catalog **out, struct mapping mapping,
                                 const tamis_open_options *options, tamis_reason *reason)
{
    return from_bytes(out, mapping, options, true, reason);
}

tamis_error catalog_verify(struct mapping mapping, tamis_reason *reason)
{
    tamis_open_options o = {.verify = true};
    tamis_catalog *c;
    tamis_error e = from_bytes(&c, mapping, &o, false, reason);
    if (e == TAMIS_OK)
        catalog_dispose(c);
    return e;
}
