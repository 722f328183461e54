/*
 * The body of a set: settings and counts, then for records their form, and a record for every layer and
 * for every part of a layer. A layer of a filter is one vector, with one record for both.
 *
 *     filter:   head | vectors
 *     smooth:   head | vectors | lines | parts of the lines
 *     records:  head | counts | masks | attributes | names | layers | parts of layer 0 | ...
 */
#include "format.h"

#include "base/err.h"

#define FORM_LEN         32 /* after the head */
#define ATTRIBUTE_FIELDS 16
#define LAYER_LEN        64

/* ---- fields ---------------------------------------------------------------------------------- */

/* One of the values of an enum, from 0 to `most`. */
static void field_choice(struct cursor *c, void *choice, uint32_t most, const char *unknown)
{
    uint32_t value;
    memcpy(&value, choice, sizeof value);
    field_u32(c, &value);
    if (value > most)
        cursor_refuse(c, c->at - sizeof value, unknown);
    else
        memcpy(choice, &value, sizeof value);
}
_Static_assert(sizeof(tamis_growth) == sizeof(uint32_t), "an enum is saved as a u32");

/* One bit for each of these settings, in this order. */
static void field_flags(struct cursor *c, struct settings *set)
{
    bool *const flag[] = {&set->deletable,  &set->unique,    &set->overfill, &set->shared_adds,
                          &set->add_always, &set->published, &set->compact};
    const unsigned n = sizeof flag / sizeof *flag;
    uint32_t flags = 0;
    for (unsigned i = 0; c->to && i < n; i++)
        flags |= (uint32_t)*flag[i] << i;
    field_u32(c, &flags);
    if (flags >> n)
        cursor_refuse(c, c->at - sizeof flags, "unknown settings");
    for (unsigned i = 0; c->from && i < n; i++)
        *flag[i] = flags >> i & 1;
}

static void settings_fields(struct cursor *c, struct settings *set)
{
    static const char unknown[] = "an unknown growth or layout";
    field_choice(c, &set->growth, TAMIS_SMOOTH, unknown);
    field_choice(c, &set->layout, TAMIS_BLOCKED, unknown);
    field_flags(c, set);
    field_u32(c, &set->vectors_max);
    field_f64(c, &set->fpp, "the rate is not a number");
    field_f64(c, &set->budget, "the budget is not a number");
    field_u64(c, &set->capacity);
    field_u64(c, &set->items_max);
    field_f64(c, &set->expansion, "the expansion is not a number");
    field_f64(c, &set->tolerate, "the tolerated rate is not a number");
    field_choice(c, &set->shape.layout, TAMIS_BLOCKED, unknown);
    field_u32(c, &set->shape.k);
    field_u64(c, &set->shape.units);
    field_u64(c, &set->window);
    field_u64(c, &set->memory_limit);
    field_u32(c, &set->n_lambdas);
    field_zero(c, 4);
    field_bytes(c, set->lambdas, TAMIS_LAMBDAS_MAX);
}

void head_fields(struct cursor *c, struct head *head)
{
    settings_fields(c, &head->set);
    field_u64(c, &head->stored);
    field_u32(c, &head->next_id);
    field_u32(c, &head->grown);
    field_f64(c, &head->forecast.holt.level, "the forecast is not a number");
    field_f64(c, &head->forecast.holt.trend, "the forecast is not a number");
    field_u32(c, &head->forecast.holt.n);
    field_u32(c, &head->n);
    field_f64(c, &head->forecast.base_rate, "the base rate is not a number");
    field_u64(c, &head->width);
    field_u64(c, &head->pending);
    field_u64(c, &head->candidates);
    field_u64(c, &head->copies);
    field_u32(c, &head->line_parts);
    field_zero(c, 4);
}

static void lists_fields(struct cursor *c, struct record_form *form)
{
    for (uint32_t i = 0; i < form->verifiers; i++)
        field_u64(c, &form->masks[i]);
    for (uint32_t i = 0; i < form->attributes; i++) {
        field_u64(c, &form->distinct[i]);
        field_choice(c, &form->types[i], TAMIS_TYPES - 1, "an unknown type");
        field_zero(c, 4);
    }
}

/* When reading, it leaves the names where they are. */
static void form_fields(struct cursor *c, struct record_form *form)
{
    uint64_t names_len = form->names_len;
    size_t start = c->at;
    field_u32(c, &form->attributes);
    field_u32(c, &form->verifiers);
    field_choice(c, &form->verifier, TAMIS_VERIFIER_FILTER, "an unknown verifier");
    field_choice(c, &form->value, TAMIS_VERIFY_ATTENUATED, "an unknown verifier");
    field_u64(c, &names_len);
    field_zero(c, 8);
    if (form->attributes > TAMIS_ATTRIBUTES_MAX || form->verifiers > VERIFIERS_MAX ||
        names_len > NAMES_MAX)
        cursor_refuse(c, start, "more attributes or verifiers than records can have");
    if (c->wrong)
        return;
    form->names_len = (uint32_t)names_len;
    lists_fields(c, form);
}

void record_fields(struct cursor *c, struct part_record *r)
{
    field_u32(c, &r->id);
    field_u32(c, &r->slot);
    field_u64(c, &r->units);
    field_u32(c, &r->k);
    field_u32(c, &r->layout);
    field_u64(c, &r->capacity);
    field_u64(c, &r->load);
    field_u64(c, &r->count);
    field_u64(c, &r->ones_max);
    field_f64(c, &r->fpp, "the rate of a vector is not a number");
    field_u64(c, &r->born);
    field_u64(c, &r->last);
    field_u64(c, &r->escapes);
}

static void layer_fields(struct cursor *c, struct layer_record *layer)
{
    field_u32(c, &layer->id);
    field_u32(c, &layer->slot);
    field_u64(c, &layer->capacity);
    field_u64(c, &layer->load);
    field_u64(c, &layer->count);
    field_f64(c, &layer->fpp, "the rate of a layer is not a number");
    field_u64(c, &layer->born);
    field_zero(c, 16);
}

/* The rate and the width of the lines. */
static void lines_fields(struct cursor *c, struct head *head)
{
    field_f64(c, &head->line_fpp, "the rate of the lines is not a number");
    field_u32(c, &head->line_width);
    field_zero(c, 4);
}

void part_fields(struct cursor *c, struct part_facts *p)
{
    field_u32(c, &p->lines);
    field_u32(c, &p->depth);
    field_u32(c, &p->width);
    field_u32(c, &p->stash);
    field_u32(c, &p->stashed);
    field_u32(c, &p->coarse);
    field_u32(c, &p->excess);
    field_zero(c, 4);
    field_u64(c, &p->used);
    field_u64(c, &p->keys);
    field_u64(c, &p->mass);
    field_zero(c, 8);
}

struct part_facts head_part(const struct head *head, uint32_t i)
{
    struct part_facts p;
    struct cursor c = cursor_read(head->lines + LINES_LEN + PART_LEN * (size_t)i, PART_LEN);
    part_fields(&c, &p);
    return p;
}

static bool of_records(const struct head *head)
{
    return head->kind == KIND_RECORDS;
}

struct part_record head_record(const struct head *head, uint32_t owner)
{
    struct part_record r;
    struct cursor c = cursor_read(head->records + RECORD_LEN * (size_t)owner, RECORD_LEN);
    record_fields(&c, &r);
    return r;
}

/* The cursor says what is wrong with it. */
static struct layer_record layer_record(const struct head *head, uint32_t i, struct cursor *c)
{
    struct layer_record l = {0};
    struct part_record r;
    *c = cursor_read(head->layers + head->layer_len * (size_t)i, head->layer_len);
    if (of_records(head)) {
        layer_fields(c, &l);
        l.last = l.born;
        return l;
    }
    record_fields(c, &r);
    return (struct layer_record){r.id, r.slot, r.capacity, r.load, r.count, r.fpp, r.born, r.last};
}

struct layer_record head_layer(const struct head *head, uint32_t i)
{
    struct cursor c;
    return layer_record(head, i, &c);
}

struct shape record_shape(const struct head *head, const struct part_record *record)
{
    tamis_layout layout = record->layout ? (tamis_layout)record->layout : head->set.layout;
    return (struct shape){layout, record->units, record->k};
}

uint64_t record_positions(const struct head *head, const struct part_record *record)
{
    return record->units * layout_unit_bits(record_shape(head, record).layout);
}

uint32_t head_find(const struct head *head, uint32_t id)
{
    /* ids ascend, except in windows, where they are not searched */
    const uint8_t *first = head->layers;
    uint32_t at = SEARCH(i, head->n, get_u32(first + head->layer_len * (size_t)i) < id);
    return at < head->n && get_u32(first + head->layer_len * (size_t)at) == id ? at : head->n;
}

/* ---- the body of a header -------------------------------------------------------------------- */

/* The length up to the layers. */
static uint64_t before_layers(const struct head *head)
{
    return of_records(head) ? HEAD_LEN + FORM_LEN + 8 * (uint64_t)head->form.verifiers +
                                  ATTRIBUTE_FIELDS * (uint64_t)head->form.attributes +
                                  round_up(head->form.names_len, 8)
                            : HEAD_LEN;
}

uint64_t head_body_len(const struct head *head)
{
    uint64_t layer = of_records(head) ? LAYER_LEN : 0;
    uint64_t lines = head->line_parts ? LINES_LEN + PART_LEN * (uint64_t)head->line_parts : 0;
    return before_layers(head) + head->n * (layer + RECORD_LEN * (uint64_t)head->parts) + lines;
}

static struct part_record part_record(const struct head *head, const struct layer *layer,
                                      uint32_t i)
{
    const struct vector *v = layer->part[i].vector;
    if (!v)
        return (struct part_record){.load = layer->part[i].table.used};
    tamis_layout layout = v->bits.kernel->layout;
    struct part_record r = {
        .k = v->bits.k,
        .layout = layout == head->set.layout ? 0 : (uint32_t)layout,
        .units = v->bits.units,
        .capacity = v->capacity,
        .load = v->load,
        .count = v->count,
        .ones_max = head->counted ? v->ones_max : UINT64_MAX,
        .fpp = v->fpp,
        .escapes = head->counted ? v->counters.escapes.used : 0,
    };
    if (!of_records(head))
        r.id = layer->id, r.slot = layer->slot, r.born = layer->born, r.last = layer->last;
    return r;
}

bool head_write(struct head *head, const struct set *s, uint8_t *body)
{
    const struct layers *layers = set_layers(s);
    struct cursor c = cursor_write(body, head_body_len(head));
    head_fields(&c, head);
    if (of_records(head)) {
        form_fields(&c, &head->form);
        field_bytes(&c, (void *)(uintptr_t)s->stack->form->names, s->stack->form->names_len);
        field_zero(&c, round_up(s->stack->form->names_len, 8) - s->stack->form->names_len);
    }
    for (uint32_t i = 0; of_records(head) && i < head->n; i++) {
        const struct layer *l = layers->l[i];
        struct layer_record r = {l->id,    l->slot, l->capacity, l->load,
                                 l->count, l->fpp,  l->born,     l->last};
        layer_fields(&c, &r);
    }
    for (uint32_t i = 0; i < head->n * head->parts; i++) {
        const struct layer *l = layers->l[i / head->parts];
        struct part_record r = part_record(head, l, i % head->parts);
        record_fields(&c, &r);
    }
    if (head->line_parts)
        lines_fields(&c, head);
    for (uint32_t i = 0; i < head->line_parts; i++) {
        struct part_facts p = part_facts(lines_part(set_lines(s), i));
        part_fields(&c, &p);
    }
    return !c.wrong;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const char *record_wrong(const struct part_record *r, const struct head *head,
                                const struct family *family)
{
    struct shape shape = record_shape(head, r);
    bool other = r->layout == TAMIS_SPREAD && head->set.layout == TAMIS_BLOCKED &&
                 head->set.growth == TAMIS_SMOOTH;
    if ((r->layout && !other) || !shape_valid(&shape, family))
        return "no vector has this shape";
    uint64_t m = record_positions(head, r);
    if (r->ones_max != UINT64_MAX && !(head->counted && r->ones_max <= 4 * m))
        return "an impossible limit on the bits set";
    if (r->escapes > (head->counted ? m : 0))
        return "more large counters than bits";
    if (!(r->fpp >= 0))
        return "the rate of a vector";
    return NULL;
}

static const char *table_wrong(const struct part_record *r)
{
    bool more = r->id || r->slot || r->k || r->layout || r->units || r->capacity || r->count ||
                r->ones_max || r->fpp != 0 || r->born || r->last || r->escapes;
    if (more || r->load > SIZE_MAX / 64)
        return "fields that a table does not have";
    return NULL;
}

/* The names are followed by zeros up to a multiple of 8 bytes. */
static const char *form_names_wrong(const struct record_form *form)
{
    uint16_t at[TAMIS_ATTRIBUTES_MAX];
    uint64_t end = round_up(form->names_len, 8);
    if (!bytes_are_zero(form->names + form->names_len, end - form->names_len))
        return "the names of the attributes";
    return names_wrong(form->names, form->names_len, form->attributes, at);
}

static tamis_error check_parts(const struct head *head, const uint8_t *body, tamis_hash hash,
                               tamis_reason *reason)
{
    const struct shape *one = &head->set.shape;
    struct family family = {.hash = hash};
    for (uint32_t i = 0; i < head->n * head->parts; i++) {
        uint32_t part = i % head->parts;
        const uint8_t *at = head->records + RECORD_LEN * (size_t)i;
        struct part_record r;
        struct cursor c = cursor_read(at, RECORD_LEN);
        record_fields(&c, &r);
        bool table = part >= head->digests && head->form.verifier == TAMIS_VERIFIER_TABLE;
        const char *wrong = c.wrong ? c.wrong
                            : table ? table_wrong(&r)
                                    : record_wrong(&r, head, &family);
        if (!wrong && of_records(head) && (r.id || r.slot || r.born || r.last))
            wrong = "fields that only layers have";
        if (!wrong && head->width && (r.units != one->units || r.k != one->k))
            wrong = "vectors of a dynamic filter have one shape";
        uint64_t where = BODY_AT + (uint64_t)(at - body) + c.wrong_at;
        if (wrong && of_records(head))
            return fail_at(reason, TAMIS_EFORMAT, where, "part %u of layer %u: %s", part,
                           i / head->parts, wrong);
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, where, "vector %u: %s", i, wrong);
    }
    return TAMIS_OK;
}

/* Checks the parts of lines: each is possible, and together they cover every position once. Adds up their keys. */
static tamis_error check_lines(const struct head *head, const uint8_t *body, uint64_t *keys,
                               tamis_reason *reason)
{
    uint32_t position = 0;
    for (uint32_t i = 0; i < head->line_parts; i++) {
        const uint8_t *at = head->lines + LINES_LEN + PART_LEN * (size_t)i;
        struct part_facts p;
        struct cursor c = cursor_read(at, PART_LEN);
        part_fields(&c, &p);
        const char *wrong = c.wrong ? c.wrong : part_facts_wrong(&p);
        uint32_t positions = SHELF_LEN >> (wrong ? 0 : p.depth);
        if (!wrong && (position % positions || position + positions > SHELF_LEN))
            wrong = "its position";
        if (!wrong && __builtin_add_overflow(*keys, p.keys, keys))
            wrong = "too many keys";
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, BODY_AT + (uint64_t)(at - body) + c.wrong_at,
                           "part %u of the lines: %s", i, wrong);
        position += positions;
    }
    return position == SHELF_LEN || head->line_parts == 0
               ? TAMIS_OK
               : fail_at(reason, TAMIS_EFORMAT, BODY_AT + (uint64_t)(head->lines - body),
                         "the parts of the lines do not cover all positions");
}

static tamis_error check_layers(const struct head *head, const uint8_t *body, uint64_t stored,
                                tamis_reason *reason)
{
    bool records = of_records(head);
    uint32_t next_id = 0;
    for (uint32_t i = 0; i < head->n; i++) {
        struct cursor c;
        struct layer_record r = layer_record(head, i, &c);
        const char *wrong = c.wrong;
        if (!wrong && (r.id < next_id || r.id >= head->next_id))
            wrong = "its id";
        if (!wrong && !(r.fpp >= 0))
            wrong = "its rate";
        if (!wrong && __builtin_add_overflow(stored, r.count, &stored))
            wrong = records ? "too many records" : "too many keys";
        uint64_t at = (uint64_t)(head->layers - body) + head->layer_len * (uint64_t)i;
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, BODY_AT + at + c.wrong_at, "%s %u: %s",
                           records ? "layer" : "vector", i, wrong);
        if (head->set.growth != TAMIS_WINDOW) /* merged windows are sorted by age */
            next_id = r.id + 1;
    }
    if (stored == head->stored)
        return TAMIS_OK;
    return fail_at(reason, TAMIS_EFORMAT, BODY_AT + 168,
                   records ? "the records of the layers do not add up to the total"
                           : "the keys of the vectors do not add up to those of the filter");
}

/* All bytes zero: it is saved like that. */
static bool forecast_none(const struct forecast *f)
{
    const double none[3] = {0}, has[3] = {f->holt.level, f->holt.trend, f->base_rate};
    return f->holt.n == 0 && memcmp(has, none, sizeof none) == 0;
}

static const char *pending_wrong(const struct head *head)
{
    bool counted = head->counted && head->set.growth != TAMIS_SMOOTH;
    if ((!counted && head->pending) || (head->pending == 0) != (head->copies == 0) ||
        head->pending > UINT32_MAX / 4 || head->candidates < head->pending ||
        head->candidates > head->pending * head->n || head->copies < head->pending)
        return "the pending removals";
    if (head->set.growth == TAMIS_SMOOTH && !forecast_none(&head->forecast))
        return "a forecast in a smooth filter";
    return head->forecast.base_rate >= 0 ? NULL : "the base rate";
}

static const char *head_wrong(const struct head *head, uint64_t len, tamis_hash hash)
{
    struct family family = {.hash = hash};
    bool records = of_records(head);
    const char *wrong = records ? record_form_wrong(&head->form, &head->set) : NULL;
    if (!wrong)
        wrong = settings_wrong(&head->set, &family);
    if (wrong)
        return wrong;
    bool smooth = head->set.growth == TAMIS_SMOOTH;
    if (head->line_parts > (smooth ? SHELF_LEN : 0) || (head->set.deletable && smooth && head->n))
        return "the parts of lines";
    if ((head->n == 0 && head->line_parts == 0) ||
        head->n > layers_max(head->set.growth, records) || len != head_body_len(head) ||
        (head->set.growth == TAMIS_FIXED && head->n != 1))
        return records ? "the number of layers" : "the number of vectors";
    if (records && head->width)
        return "records have no matrix";
    if (!records &&
        head->width != (head->set.growth == TAMIS_DYNAMIC ? matrix_width_for(head->n) : 0))
        return "the width of the matrix";
    return pending_wrong(head);
}

tamis_error head_parse(struct head *head, enum kind kind, const uint8_t *body, uint64_t len,
                       bool bits_only, tamis_hash hash, tamis_reason *reason)
{
    *head = (struct head){.kind = kind, .parts = 1, .digests = 1};
    struct cursor c = cursor_read(body, len);
    head_fields(&c, head);
    if (of_records(head)) {
        form_fields(&c, &head->form);
        head->parts = head->form.attributes + head->form.verifiers;
        head->digests = head->form.attributes;
    }
    if (c.wrong)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + c.wrong_at, "%s", c.wrong);
    head->counted = head->set.deletable && !bits_only;
    const char *wrong = head_wrong(head, len, hash); /* the lengths are correct here */
    if (!wrong) {
        head->form.names = (const char *)body + c.at;
        head->layers = head->records = body + before_layers(head);
        head->layer_len = of_records(head) ? LAYER_LEN : RECORD_LEN;
        if (of_records(head))
            head->records += LAYER_LEN * (size_t)head->n;
        head->lines = head->records + RECORD_LEN * (size_t)head->parts * head->n;
        wrong = of_records(head) ? form_names_wrong(&head->form) : NULL;
    }
    if (!wrong && head->line_parts) {
        c = cursor_read(head->lines, LINES_LEN);
        lines_fields(&c, head);
        wrong = c.wrong                                           ? c.wrong
                : !(head->line_fpp > 0) || !(head->line_fpp <= 1) ? "the rate of the lines"
                : !width_valid(head->line_width)                  ? "the width of the lines"
                                                                  : NULL;
    }
    if (wrong)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT, "impossible settings: %s", wrong);
    uint64_t keys = 0;
    tamis_error e = check_parts(head, body, hash, reason);
    if (e == TAMIS_OK)
        e = check_lines(head, body, &keys, reason);
    return e == TAMIS_OK ? check_layers(head, body, keys, reason) : e;
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool section_length(const void *head, uint32_t type, uint32_t owner, uint64_t *len)
{
    const struct head *of = head;
    uint32_t owners = type == SECTION_LINES ? PART_PIECES * of->line_parts : of->n * of->parts;
    return owner < owners && section_kinds[type].length &&
           section_kinds[type].length(head, owner, len);
}

void head_moved(struct head *head, const uint8_t *from, const uint8_t *to)
{
    head->layers = to + (head->layers - from);
    head->records = to + (head->records - from);
    head->lines = to + (head->lines - from);
    head->form.names = (const char *)to + (head->form.names - (const char *)from);
}

struct section_walk head_sections(const struct head *head)
{
    uint32_t owners = (uint32_t)max_u64(head->n * head->parts, PART_PIECES * head->line_parts);
    return (struct section_walk){.length = section_length, .of = head, .owners = owners};
}

tamis_error set_open(struct container *c, struct head *head, enum kind kind, const void *data,
                     size_t len, tamis_reason *reason)
{
    tamis_error e = container_open(c, data, len, kind, reason);
    if (e == TAMIS_OK)
        e = head_parse(head, kind, c->data + BODY_AT, c->body_len, c->bits_only, c->hash, reason);
    return e == TAMIS_OK ? container_check_sections(c, head_sections(head), reason) : e;
}
