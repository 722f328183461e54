/*
 * The encoding of messages (docs/format.md): fields that all types share, the fields of its type,
 * the name of the owner, the part it carries, a checksum, and if it is sealed a MAC.
 */
#include "message.h"

#include <sodium.h>

#include "base/err.h"
#include "delta/patch.h"

#define MESSAGE_VERSION 1
#define FRONT_MAX       256 /* most bytes before the name */
#define SUM_LEN         8
#define MAC_LEN         16
#define FLAG_SEALED     1u

/* ---- fields ---------------------------------------------------------------------------------- */

bool targets_wrong(const tamis_targets *t)
{
    return !(t->member_miss < 1e300 && t->false_rate < 1e300 && t->dirty < 1e300 &&
             t->w_positive >= 0 && t->w_positive < 1e300 && t->w_disagree >= 0 &&
             t->w_disagree < 1e300);
}

/* Seven bits per byte, the lowest first, the top bit set in all but the last; always in the
   shortest form, so that equal messages are equal bytes. */
static void field_number(struct cursor *c, uint64_t *value)
{
    uint64_t left = *value, read = 0;
    uint8_t byte = 0x80;
    for (unsigned shift = 0; byte & 0x80; shift += 7, left >>= 7) {
        byte = (uint8_t)((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
        field_bytes(c, &byte, 1);
        if (shift > 63 || (shift == 63 && byte > 1) || (shift && byte == 0 && c->from))
            cursor_refuse(c, c->at, "a number is too long");
        if (c->wrong)
            break;
        read |= (uint64_t)(byte & 0x7F) << shift;
    }
    if (c->from)
        *value = c->wrong ? 0 : read;
}

/* A rate from 0 to 1 in four bytes. */
static void field_rate(struct cursor *c, double *value)
{
    float rate = (float)*value;
    size_t at = c->at;
    field_bytes(c, &rate, sizeof rate);
    if (!(rate >= 0 && rate <= 1))
        cursor_refuse(c, at, "a rate is out of range");
    if (c->from)
        *value = c->wrong ? 0 : (double)rate;
}

static void small_field(struct cursor *c, uint32_t *value)
{
    uint64_t wide = *value;
    field_number(c, &wide);
    if (wide > UINT32_MAX)
        cursor_refuse(c, c->at, "a number out of range");
    *value = (uint32_t)wide;
}

static void target_fields(struct cursor *c, tamis_targets *t)
{
    field_f64(c, &t->member_miss, "a target is not a number");
    field_f64(c, &t->false_rate, "a target is not a number");
    field_f64(c, &t->w_positive, "a weight is not a number");
    field_f64(c, &t->w_disagree, "a weight is not a number");
    field_f64(c, &t->dirty, "a target is not a number");
    field_number(c, &t->max_age);
}

static bool carries(const tamis_message *m)
{
    return m->type == TAMIS_SNAPSHOT || m->type == TAMIS_DELTA;
}

/* Type, flags and length of the name share one word with the format version. */
static void message_fields(struct cursor *c, struct envelope *e, uint32_t *word)
{
    field_u32(c, word);
    field_u32(c, &e->family);
    field_u64(c, &e->m.epoch);
    field_u64(c, &e->m.time);
    e->m.type = (tamis_message_type)(*word >> 8 & 0xFF);
    field_number(c, &e->m.version);
    field_rate(c, &e->m.estimate.own);
    field_rate(c, &e->m.estimate.positive);
    field_rate(c, &e->m.estimate.disagree);
    field_rate(c, &e->m.estimate.member_miss);
    field_number(c, &e->m.estimate.set);
    field_number(c, &e->m.estimate.cleared);
    field_number(c, &e->m.estimate.missed);
    if (carries(&e->m)) {
        small_field(c, &e->m.part);
        small_field(c, &e->m.parts);
        field_number(c, &e->whole_len);
        field_u64(c, &e->whole_sum);
    }
    if (e->m.type == TAMIS_DELTA)
        field_number(c, &e->m.from);
    if (e->m.type == TAMIS_SNAPSHOT) {
        field_number(c, &e->m.beat);
        target_fields(c, &e->m.targets);
    }
}

/* ---- seals ----------------------------------------------------------------------------------- */

static void seal(uint8_t mac[MAC_LEN], const uint8_t *data, size_t len,
                 const uint8_t key[TAMIS_KEY_LEN])
{
    static const char purpose[] = "tamis message";
    uint8_t made[crypto_generichash_KEYBYTES];
    crypto_generichash(made, sizeof made, (const uint8_t *)purpose, sizeof purpose, key,
                       TAMIS_KEY_LEN);
    crypto_generichash(mac, MAC_LEN, data, len, made, sizeof made);
    sodium_memzero(made, sizeof made);
}

bool envelope_sealed_by(const struct envelope *e, const uint8_t key[TAMIS_KEY_LEN])
{
    uint8_t mac[MAC_LEN];
    if (!e->sealed)
        return false;
    seal(mac, e->data, e->len - MAC_LEN, key);
    return sodium_memcmp(mac, e->data + e->len - MAC_LEN, MAC_LEN) == 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *envelope_wrong(const struct envelope *e)
{
    const tamis_message *m = &e->m;
    if (m->type < TAMIS_SNAPSHOT || m->type > TAMIS_FAREWELL)
        return "an unknown type of message";
    if (m->epoch == 0 || m->version == 0 || m->beat > BEAT_MAX)
        return "an impossible version, epoch or time between heartbeats";
    if (m->type == TAMIS_DELTA && (m->from == 0 || m->from >= m->version))
        return "an impossible version to start from";
    if (m->part >= m->parts)
        return "an impossible number of parts";
    if (carries(m) != (e->part_len != 0) || e->part_len > e->whole_len ||
        (m->parts == 1) != (e->part_len == e->whole_len) || (carries(m) && e->whole_len < m->parts))
        return "the parts do not add up to the whole";
    return targets_wrong(&m->targets) ? "an impossible target or weight" : NULL;
}

static tamis_error check_message(const uint8_t *data, size_t len, tamis_reason *reason)
{
    tamis_kind kind = tamis_kind_of(data, len);
    if (kind != TAMIS_KIND_MESSAGE)
        return fail(reason, kind == TAMIS_KIND_NONE ? TAMIS_EFORMAT : TAMIS_EKIND,
                    "not a message of a replica");
    uint8_t version = data[sizeof message_magic];
    if (version != MESSAGE_VERSION)
        return fail_at(reason, version ? TAMIS_EVERSION : TAMIS_EFORMAT, 4,
                       "version %u of messages: this version of tamis reads version %d", version,
                       MESSAGE_VERSION);
    size_t mac = data[6] & FLAG_SEALED ? MAC_LEN : 0,
           end = sizeof message_magic + 4 + SUM_LEN + mac;
    if (len < end || hash_of(data, len - SUM_LEN - mac) != get_u64(data + len - SUM_LEN - mac))
        return fail_at(reason, TAMIS_ECHECKSUM, len,
                       "the checksum of the message does not match: damaged or cut short");
    return TAMIS_OK;
}

tamis_error envelope_open(struct envelope *e, const void *data, size_t len, tamis_reason *reason)
{
    *e = (struct envelope){.m.parts = 1, .data = data, .len = len};
    tamis_error error = check_message(data, len, reason);
    if (error != TAMIS_OK)
        return error;
    uint32_t word = 0;
    e->sealed = e->data[6] & FLAG_SEALED;
    struct cursor c = cursor_read(data, len - SUM_LEN - (e->sealed ? MAC_LEN : 0));
    c.at = sizeof message_magic;
    message_fields(&c, e, &word);
    size_t owner_len = word >> 24;
    if ((word >> 16 & 0xFF) > FLAG_SEALED)
        cursor_refuse(&c, 6, "unknown flags");
    field_bytes(&c, e->m.owner, owner_len);
    if (owner_len == 0 || memchr(e->m.owner, 0, owner_len))
        cursor_refuse(&c, 7, "the name of the owner is invalid");
    if (c.wrong)
        return fail_at(reason, TAMIS_EFORMAT, c.wrong_at, "%s", c.wrong);
    e->part_len = c.len - c.at;
    e->part = e->part_len ? e->data + c.at : NULL;
    const char *wrong = envelope_wrong(e);
    return wrong ? fail_at(reason, TAMIS_EFORMAT, c.at, "%s", wrong) : TAMIS_OK;
}

tamis_error message_verify(const void *data, size_t len, tamis_reason *reason)
{
    struct envelope e;
    tamis_error error = envelope_open(&e, data, len, reason);
    if (error != TAMIS_OK || e.m.parts != 1 || e.part_len == 0)
        return error;
    if (hash_of(e.part, (size_t)e.part_len) != e.whole_sum)
        return fail(reason, TAMIS_ECHECKSUM, "the checksum of the payload does not match");
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

/* Writes everything before the part; returns its length. */
static size_t put_front(struct envelope *e, uint8_t to[FRONT_MAX + TAMIS_OWNER_MAX])
{
    size_t owner_len = strlen(e->m.owner);
    uint32_t word = MESSAGE_VERSION | (uint32_t)e->m.type << 8 |
                    (e->sealed ? FLAG_SEALED : 0) << 16 | (uint32_t)owner_len << 24;
    struct cursor c = cursor_write(to, FRONT_MAX + TAMIS_OWNER_MAX);
    field_bytes(&c, (uint8_t *)(uintptr_t)message_magic, sizeof message_magic);
    message_fields(&c, e, &word);
    field_bytes(&c, e->m.owner, owner_len);
    return c.at;
}

/* Writes one message to the sink, and from there in one piece. */
static tamis_error send_part(struct envelope *e, const struct family *family, struct sink *sink,
                             tamis_write write, void *context)
{
    uint8_t front[FRONT_MAX + TAMIS_OWNER_MAX], tail[SUM_LEN + MAC_LEN];
    sink->len = 0;
    if (sink_write(sink, front, put_front(e, front)) != 0 ||
        (e->part_len && sink_write(sink, e->part, (size_t)e->part_len) != 0))
        return TAMIS_ENOMEM;
    put_u64(tail, hash_of(sink->data, sink->len));
    if (sink_write(sink, tail, SUM_LEN) != 0)
        return TAMIS_ENOMEM;
    if (e->sealed) {
        seal(tail, sink->data, sink->len, family->secrets->key);
        if (sink_write(sink, tail, MAC_LEN) != 0)
            return TAMIS_ENOMEM;
    }
    return write(context, sink->data, sink->len) == 0 ? TAMIS_OK : TAMIS_EIO;
}

tamis_error envelope_send(const struct envelope *message, const struct family *family,
                          const void *whole, size_t len, uint64_t most, const tamis_allocator *a,
                          tamis_write write, void *context)
{
    struct envelope e = *message;
    struct sink sink = {.a = a};
    uint64_t part =
        most ? most - FRONT_MAX - strlen(e.m.owner) - SUM_LEN - MAC_LEN : max_u64(len, 1);
    e.family = family_tag(family);
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
