/* The body of a filter: settings, counts, and a record for every vector. That of an index begins with
   the same head, and its parts have the same records. */
#include "format.h"

#include "err.h"

enum {
    SET_DELETABLE = 1,
    SET_UNIQUE = 2,
    SET_OVERFILL = 4,
    SET_SHARED_ADDS = 8,
    SET_ADD_ALWAYS = 16,
    SET_PUBLISHED = 32,
    SET_ALL = 63
};

static uint32_t flags_of(const struct settings *set)
{
    return (set->deletable ? SET_DELETABLE : 0u) | (set->unique ? SET_UNIQUE : 0u) |
           (set->overfill ? SET_OVERFILL : 0u) | (set->shared_adds ? SET_SHARED_ADDS : 0u) |
           (set->add_always ? SET_ADD_ALWAYS : 0u) | (set->published ? SET_PUBLISHED : 0u);
}

static void set_flags(struct settings *set, uint32_t flags)
{
    set->deletable = flags & SET_DELETABLE;
    set->unique = flags & SET_UNIQUE;
    set->overfill = flags & SET_OVERFILL;
    set->shared_adds = flags & SET_SHARED_ADDS;
    set->add_always = flags & SET_ADD_ALWAYS;
    set->published = flags & SET_PUBLISHED;
}

static void settings_fields(struct cursor *c, struct settings *set)
{
    uint32_t growth = set->growth, layout = set->layout, flags = flags_of(set);
    uint32_t shape_layout = set->shape.layout;
    size_t start = c->at;
    field_u32(c, &growth);
    field_u32(c, &layout);
    field_u32(c, &flags);
    field_u32(c, &set->vectors_max);
    field_f64(c, &set->fpp, "the rate is no number");
    field_f64(c, &set->budget, "the budget is no number");
    field_u64(c, &set->capacity);
    field_u64(c, &set->items_max);
    field_f64(c, &set->expansion, "the expansion is no number");
    field_f64(c, &set->tolerate, "the tolerated rate is no number");
    field_u32(c, &shape_layout);
    field_u32(c, &set->shape.k);
    field_u64(c, &set->shape.units);
    field_u64(c, &set->window);
    field_u64(c, &set->memory_limit);
    field_u32(c, &set->n_lambdas);
    field_zero(c, 4);
    field_bytes(c, set->lambdas, TAMIS_LAMBDAS_MAX);
    if (flags & ~(uint32_t)SET_ALL)
        cursor_refuse(c, start + 8, "unknown settings");
    if (growth > TAMIS_WINDOW || layout > TAMIS_BLOCKED || shape_layout > TAMIS_BLOCKED)
        cursor_refuse(c, start, "an unknown growth or layout");
    if (c->wrong || !c->from)
        return;
    set->growth = (tamis_growth)growth;
    set->layout = (tamis_layout)layout;
    set->shape.layout = (tamis_layout)shape_layout;
    set_flags(set, flags);
}

void head_fields(struct cursor *c, struct head *head)
{
    settings_fields(c, &head->set);
    field_u64(c, &head->stored);
    field_u32(c, &head->next_id);
    field_u32(c, &head->grown);
    field_f64(c, &head->forecast.holt.level, "the forecast is no number");
    field_f64(c, &head->forecast.holt.trend, "the forecast is no number");
    field_u32(c, &head->forecast.holt.n);
    field_u32(c, &head->n);
    field_f64(c, &head->forecast.base_rate, "the base rate is no number");
    field_u64(c, &head->width);
    field_u64(c, &head->pending);
    field_u64(c, &head->candidates);
    field_u64(c, &head->copies);
    field_zero(c, 8);
}

void record_fields(struct cursor *c, struct record *r)
{
    field_u32(c, &r->id);
    field_u32(c, &r->slot);
    field_u64(c, &r->units);
    field_u32(c, &r->k);
    field_zero(c, 4);
    field_u64(c, &r->capacity);
    field_u64(c, &r->load);
    field_u64(c, &r->count);
    field_u64(c, &r->ones);
    field_u64(c, &r->ones_max);
    field_f64(c, &r->fpp, "the rate of a vector is no number");
    field_u64(c, &r->born);
    field_u64(c, &r->last);
    field_u64(c, &r->escapes);
}

struct record head_record(const struct head *head, uint32_t i)
{
    struct record r;
    struct cursor c = cursor_read(head->records + RECORD_LEN * (size_t)i, RECORD_LEN);
    record_fields(&c, &r);
    return r;
}

uint64_t record_positions(const struct head *head, const struct record *record)
{
    return record->units * layout_unit_bits(head->set.layout);
}

struct record record_of(const struct vector *v, bool counted)
{
    return (struct record){
        .id = v->id,
        .slot = v->slot,
        .k = v->bits.k,
        .units = v->bits.units,
        .capacity = v->capacity,
        .load = v->load,
        .count = v->count,
        .ones_max = counted ? v->ones_max : UINT64_MAX,
        .fpp = v->fpp,
        .born = v->born,
        .last = v->last,
        .escapes = counted ? v->counters.used : 0,
    };
}

void vector_from_record(struct vector *v, const struct record *r)
{
    v->id = r->id;
    v->slot = r->slot;
    v->capacity = r->capacity;
    v->load = r->load;
    v->count = r->count;
    v->ones = r->ones;
    v->ones_max = r->ones_max;
    v->fpp = r->fpp;
    v->born = r->born;
    v->last = r->last;
}

uint32_t head_find(const struct head *head, uint32_t id)
{
    uint32_t low = 0, high = head->n; /* ids rise, but in windows, where nobody asks */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t here = get_u32(head->records + head->record_len * (size_t)middle);
        if (here == id)
            return middle;
        if (here < id)
            low = middle + 1;
        else
            high = middle;
    }
    return head->n;
}

/* ---- checks ---------------------------------------------------------------------------------- */

const char *record_wrong(const struct record *r, const struct head *head,
                         const struct family *family)
{
    struct shape shape = {head->set.layout, r->units, r->k};
    if (!shape_valid(&shape, family))
        return "no vector has this shape";
    uint64_t m = record_positions(head, r);
    if (r->ones > m)
        return "more bits set than there are";
    if (r->ones_max != UINT64_MAX && !(head->counted && r->ones_max <= 4 * m))
        return "a limit on the bits set that no vector has";
    if (r->escapes > (head->counted ? r->ones : 0))
        return "more large counters than bits set";
    if (!(r->fpp >= 0))
        return "the rate of a vector";
    return NULL;
}

static bool record_of_dynamic(const struct record *r, const struct head *head)
{
    return head->set.growth != TAMIS_DYNAMIC ||
           (r->units == head->set.shape.units && r->k == head->set.shape.k);
}

static tamis_error check_records(const struct head *head, tamis_hash hash, tamis_reason *reason)
{
    struct family family = {.hash = hash};
    uint64_t stored = 0;
    uint32_t next_id = 0;
    for (uint32_t i = 0; i < head->n; i++) {
        size_t at = HEAD_LEN + RECORD_LEN * (size_t)i;
        struct record r;
        struct cursor c = cursor_read(head->records + RECORD_LEN * (size_t)i, RECORD_LEN);
        record_fields(&c, &r);
        const char *wrong = c.wrong ? c.wrong : record_wrong(&r, head, &family);
        if (!wrong && !record_of_dynamic(&r, head))
            wrong = "vectors of a dynamic filter have one shape";
        if (!wrong && (r.id < next_id || r.id >= head->next_id))
            wrong = "its id";
        if (!wrong && __builtin_add_overflow(stored, r.count, &stored))
            wrong = "too many keys";
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, BODY_AT + at + c.wrong_at, "vector %u: %s", i,
                           wrong);
        if (head->set.growth != TAMIS_WINDOW) /* merged windows are in order of age */
            next_id = r.id + 1;
    }
    if (stored != head->stored)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + 168,
                       "the keys of the vectors do not add up to those of the filter");
    return TAMIS_OK;
}

const char *head_pending_wrong(const struct head *head)
{
    if ((!head->counted && head->pending) || (head->pending == 0) != (head->copies == 0) ||
        head->pending > UINT32_MAX / 4 || head->candidates < head->pending ||
        head->candidates > head->pending * head->n || head->copies < head->pending)
        return "the pending removals";
    return head->forecast.base_rate >= 0 ? NULL : "the base rate";
}

static const char *head_wrong(const struct head *head, uint64_t len, tamis_hash hash)
{
    struct family family = {.hash = hash};
    const char *wrong = settings_wrong(&head->set, &family);
    if (wrong)
        return wrong;
    if (head->n == 0 || head->n > filter_vectors_max(head->set.growth) ||
        len != HEAD_LEN + RECORD_LEN * (uint64_t)head->n ||
        (head->set.growth == TAMIS_FIXED && head->n != 1))
        return "the number of vectors";
    if (head->width != (head->set.growth == TAMIS_DYNAMIC ? matrix_width_for(head->n) : 0))
        return "the width of the matrix";
    return head_pending_wrong(head);
}

tamis_error head_parse(struct head *head, const uint8_t *body, uint64_t len, bool bits_only,
                       tamis_hash hash, tamis_reason *reason)
{
    *head = (struct head){0};
    struct cursor c = cursor_read(body, len);
    head_fields(&c, head);
    if (c.wrong)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + c.wrong_at, "%s", c.wrong);
    head->records = body + HEAD_LEN;
    head->record_len = RECORD_LEN;
    head->digests = 1;
    head->counted = head->set.deletable && !bits_only;
    const char *wrong = head_wrong(head, len, hash);
    if (wrong)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT, "the settings cannot be: %s", wrong);
    return check_records(head, hash, reason);
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool section_length(const void *of, uint32_t type, uint32_t i, uint64_t *len)
{
    const struct head *head = of;
    struct record r;
    switch (type) {
    case SECTION_BITS:
        r = head_record(head, i);
        *len = record_positions(head, &r) / 8;
        return head->width == 0;
    case SECTION_MATRIX:
        *len = i == 0 ? head->set.shape.units * head->width / 8 : 0;
        return i == 0 && head->width;
    case SECTION_COUNTERS:
        r = head_record(head, i);
        *len = record_positions(head, &r) / 2;
        return head->counted;
    case SECTION_ESCAPES:
        r = head_record(head, i);
        *len = 16 * r.escapes;
        return r.escapes != 0;
    default:
        return i == 0 && pending_section(head, type, len);
    }
}

struct section_walk filter_sections(const struct head *head)
{
    return (struct section_walk){.length = section_length, .of = head, .owners = head->n};
}

tamis_error filter_open(struct container *c, struct head *head, const void *data, size_t len,
                        tamis_reason *reason)
{
    tamis_error e = container_open(c, data, len, KIND_FILTER, reason);
    if (e == TAMIS_OK)
        e = head_parse(head, c->data + BODY_AT, c->body_len, c->bits_only, c->hash, reason);
    return e == TAMIS_OK ? container_check_sections(c, filter_sections(head), reason) : e;
}
