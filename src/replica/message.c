/*
 * The bytes of messages (docs/format.md). The body is 208 bytes and the name of the owner, filled up
 * to a multiple of 8; one section holds the part that is carried, none if nothing is.
 */
#include "message.h"

#include "base/err.h"
#include "delta/patch.h"
#include "format/pieces.h"
#include "tamis/replica.h"

#define BODY_LEN 208

/* ---- bytes in memory ------------------------------------------------------------------------- */

int sink_write(void *context, const void *data, size_t len)
{
    struct sink *s = context;
    if (len > s->room - s->len) {
        size_t room = s->room + s->room / 2 > s->len + len ? s->room + s->room / 2 : s->len + len;
        uint8_t *grown = room < s->len ? NULL : mem_grow_secret(s->a, s->data, s->room, room + 64);
        s->failed |= !grown;
        if (!grown)
            return -1;
        s->data = grown;
        s->room = room + 64;
    }
    memcpy(s->data + s->len, data, len);
    s->len += len;
    return 0;
}

void sink_free(struct sink *s)
{
    mem_free_secret(s->a, s->data, s->room, 1); /* a snapshot may bring the key */
    *s = (struct sink){.a = s->a};
}

/* ---- fields ---------------------------------------------------------------------------------- */

bool targets_wrong(const tamis_targets *t)
{
    return !(t->member_miss < 1e300 && t->false_rate < 1e300 && t->dirty < 1e300 &&
             t->w_positive >= 0 && t->w_positive < 1e300 && t->w_disagree >= 0 &&
             t->w_disagree < 1e300);
}

static void target_fields(struct cursor *c, tamis_targets *t)
{
    field_f64(c, &t->member_miss, "a target that is no number");
    field_f64(c, &t->false_rate, "a target that is no number");
    field_f64(c, &t->w_positive, "a weight that is no number");
    field_f64(c, &t->w_disagree, "a weight that is no number");
    field_f64(c, &t->dirty, "a target that is no number");
    field_u64(c, &t->max_age);
}

static void estimate_fields(struct cursor *c, tamis_estimate *e)
{
    uint32_t unreachable = e->unreachable;
    double *const rates[] = {&e->own,  &e->positive,    &e->disagree, &e->weighted,
                             &e->host, &e->member_miss, &e->dirty};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        field_f64(c, rates[i], "a rate that is no number");
    field_u64(c, &e->set);
    field_u64(c, &e->cleared);
    field_u64(c, &e->missed);
    field_u32(c, &unreachable);
    field_zero(c, 4);
    if (unreachable > 1)
        cursor_refuse(c, c->at - 8, "a flag that is neither 0 nor 1");
    e->unreachable = unreachable;
}

static void body_fields(struct cursor *c, struct envelope *e, uint32_t *owner_len)
{
    uint32_t type = e->m.type;
    field_u32(c, &type);
    field_u32(c, owner_len);
    field_u32(c, &e->m.part);
    field_u32(c, &e->m.parts);
    field_u64(c, &e->m.epoch);
    field_u64(c, &e->m.from);
    field_u64(c, &e->m.version);
    field_u64(c, &e->m.time);
    field_u64(c, &e->m.beat);
    field_u64(c, &e->whole_len);
    field_u64(c, &e->whole_sum);
    target_fields(c, &e->m.targets);
    estimate_fields(c, &e->m.estimate);
    e->m.type = (tamis_message_type)type;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *envelope_wrong(const struct envelope *e)
{
    const tamis_message *m = &e->m;
    const tamis_estimate *s = &m->estimate;
    bool carries = m->type == TAMIS_SNAPSHOT || m->type == TAMIS_DELTA;
    if (m->type < TAMIS_SNAPSHOT || m->type > TAMIS_FAREWELL)
        return "an unknown type of message";
    if (m->epoch == 0 || m->version == 0 || m->beat > BEAT_MAX)
        return "a version, epoch or beat that cannot be";
    if (m->type == TAMIS_DELTA ? m->from == 0 || m->from >= m->version : m->from != 0)
        return "a version to start from that cannot be";
    if (m->part >= m->parts || (!carries && m->parts != 1))
        return "a number of parts that cannot be";
    if (carries != (e->part_len != 0) || e->part_len > e->whole_len ||
        (m->parts == 1) != (e->part_len == e->whole_len) || (carries && e->whole_len < m->parts))
        return "parts that do not make the whole";
    if (!carries && (e->whole_len || e->whole_sum))
        return "a part where there is none";
    if (targets_wrong(&m->targets))
        return "a target or weight that cannot be";
    const double rates[] = {s->own, s->positive, s->disagree, s->host, s->member_miss, s->dirty};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (!(rates[i] >= 0 && rates[i] <= 1))
            return "a rate that is none";
    return s->weighted >= 0 ? NULL : "a rate that is none";
}

static tamis_error read_owner(struct envelope *e, const struct container *c, uint32_t len,
                              tamis_reason *reason)
{
    const uint8_t *name = c->data + BODY_AT + BODY_LEN;
    if (len == 0 || len > TAMIS_OWNER_MAX || c->body_len != BODY_LEN + round_up(len, 8) ||
        memchr(name, 0, len) || !bytes_are_zero(name + len, c->body_len - BODY_LEN - len))
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + 4, "the name of the owner cannot be");
    memcpy(e->m.owner, name, len);
    e->m.owner[len] = 0;
    return TAMIS_OK;
}

static bool part_length(const void *of, uint32_t type, uint32_t owner, uint64_t *len)
{
    const struct envelope *e = of;
    (void)owner;
    *len = e->part_len;
    return type == SECTION_PART && e->part_len;
}

static tamis_error read_part(struct envelope *e, struct container *c, tamis_reason *reason)
{
    e->part = NULL;
    e->part_len = 0;
    if (c->sections > 1 || (c->sections == 0 && c->payload != c->len))
        return fail_at(reason, TAMIS_EFORMAT, 40, "a message has one section at most");
    if (c->sections == 0)
        return TAMIS_OK;
    struct section s = container_section(c, 0);
    struct section_walk walk = {.length = part_length, .of = e, .owners = 1};
    e->part_len = s.len; /* what it must be, the versions and the whole will tell */
    tamis_error error = container_check_sections(c, walk, reason);
    if (error != TAMIS_OK)
        return error;
    e->part = c->data + s.offset;
    error = container_check_pages(c, &s, reason);
    if (error == TAMIS_OK)
        error = container_check_gaps(c, reason);
    uint64_t used = c->sums + sizeof(uint64_t) * c->pages;
    return error == TAMIS_OK ? gap_check(c->data + used, c->len - used, used, reason) : error;
}

tamis_error envelope_open(struct envelope *e, const void *data, size_t len, tamis_reason *reason)
{
    struct container c;
    uint32_t owner_len = 0;
    memset(e, 0, sizeof *e);
    tamis_error error = container_open(&c, data, len, KIND_MESSAGE, reason);
    if (error != TAMIS_OK)
        return error;
    if (c.body_len < BODY_LEN || c.has_key || !c.bits_only)
        return fail_at(reason, TAMIS_EFORMAT, 32, "the header is not that of a message");
    struct cursor at = cursor_read(c.data + BODY_AT, BODY_LEN);
    body_fields(&at, e, &owner_len);
    if (at.wrong)
        return fail_at(reason, TAMIS_EFORMAT, BODY_AT + at.wrong_at, "%s", at.wrong);
    e->hash = c.hash;
    memcpy(e->check, c.check, sizeof e->check);
    error = read_owner(e, &c, owner_len, reason);
    if (error == TAMIS_OK)
        error = read_part(e, &c, reason);
    if (error != TAMIS_OK)
        return error;
    const char *wrong = envelope_wrong(e);
    return wrong ? fail_at(reason, TAMIS_EFORMAT, BODY_AT, "%s", wrong) : TAMIS_OK;
}

tamis_error message_verify(const void *data, size_t len, tamis_reason *reason)
{
    struct envelope e;
    tamis_error error = envelope_open(&e, data, len, reason);
    if (error != TAMIS_OK || e.m.parts != 1 || e.part_len == 0)
        return error;
    if (hash_of(e.part, (size_t)e.part_len) != e.whole_sum)
        return fail_at(reason, TAMIS_ECHECKSUM, BODY_AT + 64,
                       "the sum of the whole does not match");
    return e.m.type == TAMIS_SNAPSHOT ? set_verify(KIND_FILTER, e.part, (size_t)e.part_len, reason)
                                      : patch_verify(e.part, (size_t)e.part_len, reason);
}

tamis_error tamis_message_read(tamis_message *out, const void *data, size_t len,
                               tamis_reason *reason)
{
    struct envelope e;
    tamis_error error = envelope_open(&e, data, len, reason);
    if (error == TAMIS_OK)
        *out = e.m;
    return error;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* One message into the sink, and from there in one piece. */
static tamis_error send_part(struct envelope *e, const struct family *family, struct sink *sink,
                             tamis_write write, void *context)
{
    uint8_t body[BODY_LEN + TAMIS_OWNER_MAX + 1] = {0};
    uint32_t owner_len = (uint32_t)strlen(e->m.owner);
    struct cursor at = cursor_write(body, BODY_LEN);
    struct section_walk walk = {.length = part_length, .of = e, .owners = 1};
    struct outline o = {.kind = KIND_MESSAGE,
                        .bits_only = true,
                        .no_key = true,
                        .family = family,
                        .body = body,
                        .body_len = BODY_LEN + round_up(owner_len, 8)};
    outline_count(&o, walk);
    body_fields(&at, e, &owner_len);
    memcpy(body + BODY_LEN, e->m.owner, owner_len);
    sink->len = 0;
    struct pieces_out *out;
    tamis_error error = part_out_begin(&out, &o, walk, e->part, sink->a);
    if (error == TAMIS_OK)
        error = pieces_out_write(out, NULL, sink_write, sink);
    pieces_out_end(out);
    if (error == TAMIS_EIO || error == TAMIS_ENOMEM)
        return TAMIS_ENOMEM; /* the sink fails for want of memory alone */
    return error == TAMIS_OK && write(context, sink->data, sink->len) != 0 ? TAMIS_EIO : error;
}

/* Most bytes of a part so that its message has at most `most`. */
static uint64_t part_most(const struct envelope *e, uint64_t most)
{
    uint64_t header = BODY_AT + BODY_LEN + round_up(strlen(e->m.owner), 8) + 24 + 8;
    uint64_t sums = sums_len(most / PAGE + 1);
    return (most - round_up(header, SECTION_ALIGN) - sums) / SECTION_ALIGN * SECTION_ALIGN;
}

tamis_error envelope_send(const struct envelope *message, const struct family *family,
                          const void *whole, size_t len, uint64_t most, const tamis_allocator *a,
                          tamis_write write, void *context)
{
    struct envelope e = *message;
    struct sink sink = {.a = a};
    uint64_t part = most ? part_most(&e, most) : max_u64(len, 1);
    e.whole_len = len;
    e.whole_sum = len ? hash_of(whole, len) : 0;
    e.m.parts = (uint32_t)max_u64(1, (len + part - 1) / part);
    tamis_error error = TAMIS_OK;
    for (e.m.part = 0; e.m.part < e.m.parts && error == TAMIS_OK; e.m.part++) {
        uint64_t from = e.m.part * part;
        e.part = len ? (const uint8_t *)whole + from : NULL;
        e.part_len = min_u64(part, len - from);
        error = send_part(&e, family, &sink, write, context);
    }
    sink_free(&sink);
    return error;
}
