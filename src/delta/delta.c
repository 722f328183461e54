/* The arithmetic coder, and what is built from single binary decisions; see delta.h. */
#include "delta.h"

#define TOP       (UINT64_C(1) << 56) /* the whole range */
#define BOTTOM    (UINT64_C(1) << 48) /* below it, a byte is output */
#define SEEN_MAX  255
#define RATE_LAST (131072u / (2u * SEEN_MAX + 3u))

/* ---- probabilities --------------------------------------------------------------------------- */

void models_reset(struct model *models, size_t n)
{
    for (size_t i = 0; i < n; i++)
        models[i] = (struct model){32768, 0};
}

/* Moves towards the bit by 1 / (seen + 1.5): the mean of all past bits at first, and of about
   the last 250 once 255 were seen. Never reaches 0 or 1. */
static void model_learn(struct model *m, bool bit)
{
    uint32_t rate = m->seen < SEEN_MAX ? 131072u / (2u * m->seen + 3u) : RATE_LAST;
    if (bit)
        m->chance = (uint16_t)(m->chance + (((65536u - m->chance) * (uint64_t)rate) >> 16));
    else
        m->chance = (uint16_t)(m->chance - ((m->chance * (uint64_t)rate) >> 16));
    m->seen += m->seen < SEEN_MAX;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void flush(struct delta_out *o)
{
    hash_add(&o->hash, o->buffer, o->used);
    if (!o->failed && o->used)
        o->failed = o->write(o->context, o->buffer, o->used) != 0;
    o->used = 0;
}

static void put(struct delta_out *o, uint8_t byte)
{
    if (o->used == DELTA_PIECE)
        flush(o);
    o->buffer[o->used++] = byte;
}

void out_begin(struct delta_out *o, tamis_write write, void *context)
{
    o->low = o->pending = 0;
    o->range = TOP;
    o->any = o->failed = false;
    o->used = 0;
    o->write = write;
    o->context = context;
    hash_begin(&o->hash);
}

void out_bytes(struct delta_out *o, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < len; i++)
        put(o, bytes[i]);
}

/* Outputs the pending byte and the 0xff bytes after it, once it is known whether there is a
   carry. */
static void put_held(struct delta_out *o)
{
    uint8_t carry = (uint8_t)(o->low >> 56);
    if (o->any)
        put(o, (uint8_t)(o->cache + carry));
    for (; o->pending; o->pending--)
        put(o, (uint8_t)(0xff + carry));
}

static void shift(struct delta_out *o)
{
    if (o->low < BOTTOM * 0xff || o->low >= TOP) {
        put_held(o);
        o->cache = (uint8_t)(o->low >> 48);
        o->any = true;
    } else {
        o->pending++;
    }
    o->low = (o->low & (BOTTOM - 1)) << 8;
}

static void normalise(struct delta_out *o)
{
    while (o->range < BOTTOM) {
        shift(o);
        o->range <<= 8;
    }
}

void out_bit(struct delta_out *o, struct model *model, bool bit)
{
    uint64_t bound = (o->range >> 16) * model->chance;
    if (bit) {
        o->range = bound;
    } else {
        o->low += bound;
        o->range -= bound;
    }
    model_learn(model, bit);
    normalise(o);
}

void out_direct(struct delta_out *o, uint64_t value, unsigned bits)
{
    while (bits) {
        unsigned some = (bits - 1) % 16 + 1;
        bits -= some;
        o->range >>= some;
        o->low += o->range * (value >> bits & ((UINT64_C(1) << some) - 1));
        normalise(o);
    }
}

void out_number(struct delta_out *o, struct number_models *models, uint64_t value)
{
    unsigned len = value ? 64 - (unsigned)__builtin_clzll(value) : 0;
    for (unsigned i = 0; i < len; i++)
        out_bit(o, &models->bits[i], true);
    if (len < 64)
        out_bit(o, &models->bits[len], false);
    if (len > 1)
        out_direct(o, value, len - 1);
}

/* The number in the range with the most zero bytes at its end, which are omitted. */
bool out_end(struct delta_out *o)
{
    unsigned bytes = 7;
    uint64_t end = o->low;
    for (unsigned n = 0; n < 7; n++) {
        uint64_t mask = (TOP >> (8 * n)) - 1, rounded = (o->low + mask) & ~mask;
        if (rounded - o->low < o->range) {
            end = rounded;
            bytes = n;
            break;
        }
    }
    o->low = end;
    for (; bytes; bytes--)
        shift(o);
    put_held(o);
    flush(o);
    uint8_t sum[8];
    put_u64(sum, hash_end(&o->hash));
    if (!o->failed)
        o->failed = o->write(o->context, sum, sizeof sum) != 0;
    return !o->failed;
}

/* ---- reading --------------------------------------------------------------------------------- */

static uint8_t next(struct delta_in *in)
{
    if (in->at < in->len)
        return in->data[in->at++];
    in->broken |= in->at++ - in->len > 8;
    return 0;
}

void in_begin(struct delta_in *in, const uint8_t *data, size_t len)
{
    *in = (struct delta_in){.data = data, .len = len, .range = TOP};
    for (int i = 0; i < 7; i++)
        in->code = in->code << 8 | next(in);
}

static void refill(struct delta_in *in)
{
    while (in->range < BOTTOM) {
        in->code = in->code << 8 | next(in);
        in->range <<= 8;
    }
}

bool in_bit(struct delta_in *in, struct model *model)
{
    uint64_t bound = (in->range >> 16) * model->chance;
    bool bit = in->code < bound;
    if (bit) {
        in->range = bound;
    } else {
        in->code -= bound;
        in->range -= bound;
    }
    model_learn(model, bit);
    refill(in);
    return bit;
}

uint64_t in_direct(struct delta_in *in, unsigned bits)
{
    uint64_t value = 0;
    while (bits) {
        unsigned some = (bits - 1) % 16 + 1;
        bits -= some;
        in->range >>= some;
        uint64_t part = in->code / in->range;
        if (part >> some) { /* not the output of this coder */
            in->broken = true;
            part = in->code = 0;
        }
        in->code -= part * in->range;
        value = value << some | part;
        refill(in);
    }
    return value;
}

uint64_t in_number(struct delta_in *in, struct number_models *models)
{
    unsigned len = 0;
    while (len < 64 && in_bit(in, &models->bits[len]))
        len++;
    if (len < 2)
        return len;
    return UINT64_C(1) << (len - 1) | in_direct(in, len - 1);
}

/* ---- images ---------------------------------------------------------------------------------- */

void out_image(struct delta_out *o, struct byte_models *models, const uint8_t *from,
               const uint8_t *to, size_t len)
{
    bool before = false;
    for (size_t i = 0; i < len; i += 8) {
        bool changed = get_u64(from + i) != get_u64(to + i);
        out_bit(o, &models->word[before], changed);
        before = changed;
        for (size_t j = i; changed && j < i + 8; j++) {
            out_bit(o, &models->byte, from[j] != to[j]);
            if (from[j] != to[j])
                out_direct(o, to[j], 8);
        }
    }
}

void in_image(struct delta_in *in, struct byte_models *models, const uint8_t *from, uint8_t *to,
              size_t len)
{
    bool before = false;
    memcpy(to, from, len);
    for (size_t i = 0; i < len; i += 8) {
        bool changed = in_bit(in, &models->word[before]);
        before = changed;
        for (size_t j = i; changed && j < i + 8; j++)
            if (in_bit(in, &models->byte))
                to[j] = (uint8_t)in_direct(in, 8);
    }
}
