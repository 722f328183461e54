/* Cursors over fixed layouts and XXH3 checksums, for everything that reads or writes a header.
   Headers are read once per opened file; payloads are hashed at memory speed. */
#include "bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

bool bytes_are_zero(const void *data, size_t len)
{
    const uint8_t *bytes = data;
    uint64_t any = 0;
    for (; len >= 8; len -= 8, bytes += 8)
        any |= get_u64(bytes);
    for (; len; len--)
        any |= *bytes++;
    return any == 0;
}

/* ---- ones ------------------------------------------------------------------------------------ */

/* A full adder for 64 bits in parallel. */
ALWAYS_INLINE uint64_t add_bits(uint64_t *sum, uint64_t a, uint64_t b)
{
    uint64_t half = *sum ^ a, carry = (*sum & a) | (half & b);
    *sum = half ^ b;
    return carry;
}

static uint64_t word_ones(uint64_t x)
{
    x -= (x >> 1) & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (x * UINT64_C(0x0101010101010101)) >> 56;
}

/* Harley and Seal: full adders reduce eight words to ones, twos and fours, and only the eights
   are counted. Twice as fast as counting each word where the processor has no popcount. */
uint64_t bytes_ones(const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t total = 0, ones = 0, twos = 0, fours = 0;
    for (; len >= 64; len -= 64, p += 64) {
        uint64_t a = add_bits(&ones, get_u64(p), get_u64(p + 8));
        uint64_t b = add_bits(&ones, get_u64(p + 16), get_u64(p + 24));
        uint64_t c = add_bits(&twos, a, b);
        a = add_bits(&ones, get_u64(p + 32), get_u64(p + 40));
        b = add_bits(&ones, get_u64(p + 48), get_u64(p + 56));
        uint64_t d = add_bits(&twos, a, b);
        total += word_ones(add_bits(&fours, c, d));
    }
    total = 8 * total + 4 * word_ones(fours) + 2 * word_ones(twos) + word_ones(ones);
    for (; len >= 8; len -= 8, p += 8)
        total += word_ones(get_u64(p));
    for (; len; len--)
        total += word_ones(*p++);
    return total;
}

/* ---- cursors --------------------------------------------------------------------------------- */

struct cursor cursor_write(void *to, size_t len)
{
    return (struct cursor){.to = to, .len = len};
}

struct cursor cursor_read(const void *from, size_t len)
{
    return (struct cursor){.from = from, .len = len};
}

void cursor_refuse(struct cursor *c, size_t at, const char *what)
{
    if (!c->wrong) {
        c->wrong = what;
        c->wrong_at = at;
    }
}

void field_bytes(struct cursor *c, void *bytes, size_t len)
{
    if (c->len - c->at < len)
        cursor_refuse(c, c->at, "a field lies past the end");
    if (c->wrong) {
        if (c->from)
            memset(bytes, 0, len);
        return;
    }
    if (c->from)
        memcpy(bytes, c->from + c->at, len);
    else
        memcpy(c->to + c->at, bytes, len);
    c->at += len;
}

void field_u32(struct cursor *c, uint32_t *value)
{
    field_bytes(c, value, sizeof *value);
}

void field_u64(struct cursor *c, uint64_t *value)
{
    field_bytes(c, value, sizeof *value);
}

void field_f64(struct cursor *c, double *value, const char *name)
{
    size_t at = c->at;
    field_bytes(c, value, sizeof *value);
    if (!(*value - *value == 0)) { /* NaN or infinite */
        cursor_refuse(c, at, name);
        if (c->from)
            *value = 0;
    }
}

void field_zero(struct cursor *c, size_t len)
{
    size_t at = c->at;
    if (c->len - c->at < len)
        cursor_refuse(c, c->at, "a field lies past the end");
    if (c->wrong)
        return;
    if (c->to)
        memset(c->to + c->at, 0, len);
    else if (!bytes_are_zero(c->from + c->at, len))
        cursor_refuse(c, at, "a reserved field is not zero");
    c->at += len;
}

/* ---- characters ------------------------------------------------------------------------------ */

size_t utf8_decode(const uint8_t *s, size_t len, uint32_t *c)
{
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    for (size_t n = 1; n <= 4 && n <= len; n++) {
        if ((s[0] & forms[n - 1].mask) != forms[n - 1].lead)
            continue;
        *c = s[0] & (uint8_t)~forms[n - 1].mask;
        for (size_t i = 1; i < n; i++) {
            if ((s[i] & 0xC0) != 0x80)
                return 0;
            *c = *c << 6 | (s[i] & 0x3F);
        }
        bool fits = *c >= forms[n - 1].least && *c <= 0x10FFFF && (*c < 0xD800 || *c > 0xDFFF);
        return fits ? n : 0;
    }
    return 0;
}

/* ---- checksums ------------------------------------------------------------------------------- */

_Static_assert(sizeof(XXH3_state_t) + 63 <= sizeof(struct hash_stream), "room for XXH3's state");

static XXH3_state_t *state_of(const struct hash_stream *h)
{
    return (XXH3_state_t *)(void *)round_up((uintptr_t)h->room, 64);
}

uint64_t hash_of(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}

/* The state is the same for both lengths, as xxhash.h says. */
void hash_begin(struct hash_stream *h)
{
    XXH3_INITSTATE(state_of(h));
    XXH3_64bits_reset(state_of(h));
}

void hash_add(struct hash_stream *h, const void *data, size_t len)
{
    XXH3_64bits_update(state_of(h), data, len);
}

uint64_t hash_end(const struct hash_stream *h)
{
    return XXH3_64bits_digest(state_of(h));
}

void hash_end_128(const struct hash_stream *h, uint8_t out[16])
{
    XXH128_hash_t value = XXH3_128bits_digest(state_of(h));
    put_u64(out, value.low64);
    put_u64(out + 8, value.high64);
}
