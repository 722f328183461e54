/*
 * The body of an index: the head that filters have, its own settings, the names of its attributes, and
 * a record for every layer and for every part of a layer.
 *
 *     head | counts | masks | attributes | names | layers | parts of layer 0 | parts of layer 1 | ...
 */
#include "format.h"

#include "err.h"

#define ATTRIBUTE_FIELDS 16

static uint64_t settings_len(const struct index_head *head)
{
    return HEAD_LEN + INDEX_HEAD_LEN + 8 * (uint64_t)head->set.verifiers +
           ATTRIBUTE_FIELDS * (uint64_t)head->set.attributes + round_up(head->names_len, 8);
}

uint64_t index_body_len(const struct index_head *head)
{
    return settings_len(head) + head->head.n * (LAYER_LEN + RECORD_LEN * (uint64_t)(head->parts));
}

static void lists_fields(struct cursor *c, struct index_settings *set)
{
    for (uint32_t i = 0; i < set->verifiers; i++)
        field_u64(c, &set->masks[i]);
    for (uint32_t i = 0; i < set->attributes; i++) {
        uint32_t type = set->types[i];
        field_u64(c, &set->distinct[i]);
        field_u32(c, &type);
        field_zero(c, 4);
        if (type > TAMIS_TIME)
            cursor_refuse(c, c->at - 8, "an unknown type");
        else
            set->types[i] = (tamis_type)type;
    }
}

void index_head_fields(struct cursor *c, struct index_head *head)
{
    struct index_settings *set = &head->set;
    uint32_t verifier = set->verifier, value = set->value;
    head_fields(c, &head->head);
    size_t start = c->at;
    field_u32(c, &set->attributes);
    field_u32(c, &set->verifiers);
    field_u32(c, &verifier);
    field_u32(c, &value);
    field_u64(c, &head->names_len);
    field_zero(c, 8);
    if (set->attributes > TAMIS_ATTRIBUTES_MAX || set->verifiers > VERIFIERS_MAX ||
        head->names_len > TAMIS_ATTRIBUTES_MAX * (ATTRIBUTE_LEN + 1))
        cursor_refuse(c, start, "more attributes or verifiers than an index has");
    if (verifier > TAMIS_VERIFIER_FILTER || value > TAMIS_VERIFY_ATTENUATED)
        cursor_refuse(c, start + 8, "an unknown verifier");
    if (c->wrong)
        return;
    set->verifier = (tamis_verifier)verifier;
    set->value = (tamis_verify)value;
    lists_fields(c, set);
}

void layer_fields(struct cursor *c, struct layer_record *layer)
{
    field_u32(c, &layer->id);
    field_u32(c, &layer->slot);
    field_u64(c, &layer->capacity);
    field_u64(c, &layer->load);
    field_u64(c, &layer->count);
    field_f64(c, &layer->fpp, "the rate of a layer is no number");
    field_u64(c, &layer->born);
    field_zero(c, 16);
}

struct layer_record index_layer_record(const struct index_head *head, uint32_t layer)
{
    struct layer_record r;
    struct cursor c = cursor_read(head->head.records + LAYER_LEN * (size_t)layer, LAYER_LEN);
    layer_fields(&c, &r);
    return r;
}

struct record index_record(const struct index_head *head, uint32_t owner)
{
    struct record r;
    struct cursor c = cursor_read(head->records + RECORD_LEN * (size_t)owner, RECORD_LEN);
    record_fields(&c, &r);
    return r;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* As many names as attributes, each of 1 to 255 bytes and its final 0, no two alike. */
static const char *names_wrong(const struct index_head *head)
{
    const char *name[TAMIS_ATTRIBUTES_MAX];
    uint64_t at = 0;
    for (uint32_t i = 0; i < head->set.attributes; i++) {
        const char *end = memchr(head->names + at, 0, head->names_len - at);
        name[i] = head->names + at;
        if (!end || end == name[i] || end - name[i] > ATTRIBUTE_LEN)
            return "the name of an attribute";
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(name[i], name[j]) == 0)
                return "two attributes of one name";
        at = (uint64_t)(end - head->names) + 1;
    }
    if (at != head->names_len ||
        !bytes_are_zero(head->names + at, round_up(head->names_len, 8) - head->names_len))
        return "the names";
    return NULL;
}

static const char *table_wrong(const struct record *r)
{
    bool more = r->id || r->slot || r->k || r->units || r->capacity || r->count || r->ones ||
                r->ones_max || r->fpp != 0 || r->born || r->last || r->escapes;
    if (more || r->load > SIZE_MAX / 64)
        return "what no table has";
    return NULL;
}

static tamis_error check_parts(const struct index_head *head, const uint8_t *body, tamis_hash hash,
                               tamis_reason *reason)
{
    struct family family = {.hash = hash};
    for (uint32_t i = 0; i < head->head.n * head->parts; i++) {
        struct record r;
        struct cursor c = cursor_read(head->records + RECORD_LEN * (size_t)i, RECORD_LEN);
        record_fields(&c, &r);
        bool table =
            i % head->parts >= head->set.attributes && head->set.verifier == TAMIS_VERIFIER_TABLE;
        const char *wrong = c.wrong ? c.wrong
                            : table ? table_wrong(&r)
                                    : record_wrong(&r, &head->head, &family);
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT,
                           BODY_AT + (uint64_t)(head->records - body) + RECORD_LEN * (uint64_t)i +
                               c.wrong_at,
                           "part %u of layer %u: %s", i % head->parts, i / head->parts, wrong);
    }
    return TAMIS_OK;
}

static tamis_error check_layers(const struct index_head *head, const uint8_t *body,
                                tamis_reason *reason)
{
    uint64_t stored = 0;
    uint32_t next_id = 0;
    for (uint32_t i = 0; i < head->head.n; i++) {
        struct layer_record r;
        const uint8_t *at = head->head.records + LAYER_LEN * (size_t)i;
        struct cursor c = cursor_read(at, LAYER_LEN);
        layer_fields(&c, &r);
        const char *wrong = c.wrong;
        if (!wrong && (r.id < next_id || r.id >= head->head.next_id))
            wrong = "its id";
        if (!wrong && !(r.fpp >= 0))
            wrong = "its rate";
        if (!wrong && __builtin_add_overflow(stored, r.count, &stored))
            wrong = "too many records";
        if (wrong)
            return fail_at(reason, TAMIS_EFORMAT, BODY_AT + (uint64_t)(at - body) + c.wrong_at,
                           "layer %u: %s", i, wrong);
        next_id = r.id + 1;
    }
    if (stored != head->head.stored)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + 168,
                       "the records of the layers do not add up to those of the index");
    return TAMIS_OK;
}

static const char *head_wrong(const struct index_head *head, uint64_t len, tamis_hash hash)
{
    struct family family = {.hash = hash};
    const char *wrong = index_settings_wrong(&head->set, &family);
    if (wrong)
        return wrong;
    if (head->head.n == 0 || head->head.n > STACK_MAX || len != index_body_len(head) ||
        (head->set.grow.growth == TAMIS_FIXED && head->head.n != 1))
        return "the number of layers";
    if (head->head.width)
        return "an index has no matrix";
    return head_pending_wrong(&head->head);
}

tamis_error index_head_parse(struct index_head *head, const uint8_t *body, uint64_t len,
                             bool bits_only, tamis_hash hash, tamis_reason *reason)
{
    *head = (struct index_head){0};
    struct cursor c = cursor_read(body, len);
    index_head_fields(&c, head);
    if (c.wrong)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + c.wrong_at, "%s", c.wrong);
    head->set.grow = head->head.set;
    head->parts = head->set.attributes + head->set.verifiers;
    head->head.digests = head->set.attributes;
    head->head.counted = head->head.set.deletable && !bits_only;
    const char *wrong = head_wrong(head, len, hash); /* now the lengths are right */
    if (!wrong) {
        head->names = (const char *)body + c.at;
        head->head.records = body + settings_len(head);
        head->head.record_len = LAYER_LEN;
        head->records = head->head.records + LAYER_LEN * (size_t)head->head.n;
        wrong = names_wrong(head);
    }
    if (wrong)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT, "the settings cannot be: %s", wrong);
    tamis_error e = check_layers(head, body, reason);
    return e == TAMIS_OK ? check_parts(head, body, hash, reason) : e;
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool section_length(const void *of, uint32_t type, uint32_t owner, uint64_t *len)
{
    const struct index_head *head = of;
    struct record r;
    if (type == SECTION_PENDING || type == SECTION_CANDIDATES)
        return owner == 0 && pending_section(&head->head, type, len);
    if (type == SECTION_MATRIX)
        return false;
    r = index_record(head, owner);
    uint64_t m = record_positions(&head->head, &r);
    switch (type) {
    case SECTION_BITS:
        *len = m / 8;
        return m != 0;
    case SECTION_COUNTERS:
        *len = m / 2;
        return m != 0 && head->head.counted;
    case SECTION_ESCAPES:
        *len = 16 * r.escapes;
        return r.escapes != 0;
    case SECTION_TABLE:
        *len = TABLE_PAIR * r.load;
        return m == 0 && r.load;
    default:
        return false;
    }
}

struct section_walk index_sections(const struct index_head *head)
{
    return (struct section_walk){
        .length = section_length, .of = head, .owners = head->head.n * head->parts};
}

tamis_error index_open(struct container *c, struct index_head *head, const void *data, size_t len,
                       tamis_reason *reason)
{
    tamis_error e = container_open(c, data, len, KIND_INDEX, reason);
    if (e == TAMIS_OK)
        e = index_head_parse(head, c->data + BODY_AT, c->body_len, c->bits_only, c->hash, reason);
    return e == TAMIS_OK ? container_check_sections(c, index_sections(head), reason) : e;
}
