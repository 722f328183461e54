/*
 * IP addresses and their networks. An address is its 4 or 16 bytes; an IPv4-mapped IPv6 address
 * (::ffff:10.1.2.3) is the IPv4 address. Stored networks end at whole bytes, so the key of a network is
 * the IP version, the length in bits and that many bits as bytes:
 *
 *     10.1.2.3     4 8 0a   4 16 0a01   4 24 0a0102
 *     2001:db8::1  6 32 20010db8   6 48 20010db80000   6 64 20010db800000000
 */
#include "types.h"

#include <arpa/inet.h>

#include "base/bytes.h"

struct ip {
    uint8_t bytes[16];
    unsigned len; /* 4 or 16 */
};

static const uint8_t kept[2][3] = {{8, 16, 24}, {32, 48, 64}};

/* ---- reading and writing --------------------------------------------------------------------- */

/* Four groups of one to three digits: the most frequent form in logs. */
static bool take_v4(struct text *t, uint8_t bytes[4])
{
    const char *at = t->at, *end = t->end;
    for (unsigned i = 0; i < 4; i++) {
        unsigned value = 0, n = 0;
        if (i && (at == end || *at++ != '.'))
            return false;
        for (; at < end && is_digit(*at) && n < 3; at++, n++)
            value = 10 * value + (unsigned)(*at - '0');
        if (n == 0 || value > 255 || (n > 1 && at[-(int)n] == '0'))
            return false;
        bytes[i] = (uint8_t)value;
    }
    t->at = at;
    return true;
}

#if WORDS_HAVE_VECTOR
/* A text of 8 to 15 bytes, without branches that depend on the lengths of the groups. */
static bool sixteen_v4(const char *at, size_t len, uint8_t bytes[4])
{
    uint8_t text[4 + 16] = {0}; /* a group is read together with the bytes before it */
    uint64_t last = get_u64(at + len - 8) >> (8 * (16 - len) - 1) >> 1;
    __m128i x = _mm_set_epi64x((int64_t)last, (int64_t)get_u64(at));
    unsigned dots = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8('.')));
    unsigned digits = (unsigned)_mm_movemask_epi8(bytes_in(x, '0', 9));
    if ((dots | digits) != (1u << len) - 1)
        return false;
    _mm_storeu_si128((__m128i *)(text + 4), x);
    dots |= 1u << len;
    for (unsigned i = 0, start = 0; i < 4; i++, dots &= dots - 1) {
        unsigned end = dots ? (unsigned)__builtin_ctz(dots) : start, n = end - start;
        if (n - 1 >= 3 || (n > 1 && text[4 + start] == '0'))
            return false;
        uint32_t group = get_u32(text + end) >> (8 * (4 - n)) << (8 * (4 - n));
        unsigned value = (group >> 24 & 15) + 10 * (group >> 16 & 15) + 100 * (group >> 8 & 15);
        if (value > 255)
            return false;
        bytes[i] = (uint8_t)value;
        start = end + 1;
    }
    return dots == 0;
}
#endif

/* The whole text. */
static bool read_v4(const char *at, size_t len, uint8_t bytes[4])
{
#if WORDS_HAVE_VECTOR
    if (LIKELY(len >= 8 && len <= 15))
        return sixteen_v4(at, len, bytes);
#endif
    struct text t = {at, at + len};
    return take_v4(&t, bytes) && t.at == t.end;
}

bool plain_ip(const char *value, size_t len, struct plain *plain)
{
    uint8_t bytes[4];
    (void)plain;
    return read_v4(value, len, bytes);
}

/* Up to the end or a slash. */
static bool take_v6(struct text *t, uint8_t bytes[16])
{
    char copy[INET6_ADDRSTRLEN];
    size_t len = 0;
    for (; t->at < t->end && *t->at && *t->at != '/' && len + 1 < sizeof copy; t->at++)
        copy[len++] = *t->at;
    copy[len] = 0;
    return inet_pton(AF_INET6, copy, bytes) == 1;
}

/* The address at the beginning of the text. */
static bool take_ip(struct text *t, struct ip *ip)
{
    ip->len = 4;
    if (take_v4(t, ip->bytes))
        return true;
    ip->len = 16;
    return take_v6(t, ip->bytes);
}

/* Turns an IPv4-mapped IPv6 address into the IPv4 address. */
static void unmap(struct ip *ip)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    if (ip->len != 16 || memcmp(ip->bytes, mapped, sizeof mapped) != 0)
        return;
    memmove(ip->bytes, ip->bytes + 12, 4);
    ip->len = 4;
}

static bool ip_read(struct text t, struct ip *ip)
{
    ip->len = 4;
    if (LIKELY(read_v4(t.at, (size_t)(t.end - t.at), ip->bytes)))
        return true;
    if (!take_ip(&t, ip) || t.at != t.end)
        return false;
    unmap(ip);
    return true;
}

/* RFC 5952: lower case, no leading zeros, and the first of the longest runs of zero groups, if
   longer than one group, as a double colon. */
static void put_v6(struct out *o, const uint8_t bytes[16])
{
    unsigned longest = 1, gap = 8;
    for (unsigned i = 0, run = 0; i < 8; i++) {
        run = bytes[2 * i] | bytes[2 * i + 1] ? 0 : run + 1;
        if (run > longest) {
            longest = run;
            gap = i + 1 - run;
        }
    }
    for (unsigned i = 0; i < 8;) {
        if (i == gap) {
            *o->at++ = ':';
            i += longest;
            if (i == 8)
                *o->at++ = ':';
            continue;
        }
        if (i)
            *o->at++ = ':';
        put_number(o, (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1], 16, 1);
        i++;
    }
}

static void ip_write(const struct ip *ip, struct out *o)
{
    if (ip->len == 16) {
        put_v6(o, ip->bytes);
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        if (i)
            *o->at++ = '.';
        put_number(o, ip->bytes[i], 10, 1);
    }
}

bool normal_ip(struct text t, struct out *o)
{
    struct ip ip;
    if (!ip_read(t, &ip))
        return false;
    ip_write(&ip, o);
    return true;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool ip_of(tamis_key value, struct ip *ip)
{
    struct text t = {value.data, (const char *)value.data + value.len};
    if (!value.data || value.len > VALUE_LEN_MAX)
        return false;
    trim_quoted(&t);
    return ip_read(t, ip);
}

static void give_network(const struct ip *ip, unsigned bits, tamis_give give, void *context)
{
    uint8_t key[2 + 8] = {ip->len == 4 ? 4 : 6, (uint8_t)bits};
    memcpy(key + 2, ip->bytes, bits / 8);
    give(context, (tamis_key){key, 2 + bits / 8}, true);
}

unsigned ip_parts(tamis_key value, tamis_give give, void *context)
{
    struct ip ip;
    if (!ip_of(value, &ip))
        return 0;
    for (unsigned i = 3; i-- > 0;)
        give_network(&ip, kept[ip.len == 16][i], give, context);
    return 3;
}

/* Parses ADDRESS/BITS. */
static bool network_of(tamis_key asked, struct ip *ip, unsigned *bits)
{
    struct text t = {asked.data, (const char *)asked.data + asked.len};
    if (!asked.data || !take_ip(&t, ip) || t.at == t.end || *t.at++ != '/' || t.at == t.end)
        return false;
    const char *digits = t.at;
    for (*bits = 0; t.at < t.end && is_digit(*t.at) && t.at - digits < 3; t.at++)
        *bits = 10 * *bits + (unsigned)(*t.at - '0');
    if (t.at != t.end || *bits > 8 * ip->len || (*digits == '0' && t.at - digits > 1))
        return false;
    struct ip short_one = *ip;
    unmap(&short_one);
    if (short_one.len != ip->len && *bits >= 96) {
        *ip = short_one;
        *bits -= 96;
    }
    return true;
}

/* The stored network that contains this one; an IPv4 network larger than the stored ones
   consists of several of them. */
tamis_need ip_ask(tamis_key asked, tamis_give give, void *context)
{
    struct ip ip;
    unsigned bits;
    char normal[64];
    struct out o = {normal, normal};
    if (!network_of(asked, &ip, &bits))
        return TAMIS_NEED_WRONG;
    if (bits == 8 * ip.len) {
        ip_write(&ip, &o);
        give(context, (tamis_key){normal, (size_t)(o.at - o.start)}, false);
        return TAMIS_NEED_ANY;
    }
    for (unsigned i = 3; i-- > 0;)
        if (bits >= kept[ip.len == 16][i]) {
            give_network(&ip, kept[ip.len == 16][i], give, context);
            return TAMIS_NEED_ANY;
        }
    if (ip.len == 16 || bits == 0)
        return TAMIS_NEED_NONE;
    unsigned n = 1u << (8 - bits), first = ip.bytes[0] & ~(n - 1);
    for (unsigned i = 0; i < n; i++) {
        ip.bytes[0] = (uint8_t)(first + i);
        give_network(&ip, 8, give, context);
    }
    return TAMIS_NEED_ANY;
}

bool ip_match(tamis_key value, tamis_key asked)
{
    struct ip ip, network;
    unsigned bits;
    if (!network_of(asked, &network, &bits) || !ip_of(value, &ip) || ip.len != network.len ||
        memcmp(ip.bytes, network.bytes, bits / 8) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || (ip.bytes[bits / 8] ^ network.bytes[bits / 8]) >> (8 - rest) == 0;
}
