/*
 * UTF-16 with a byte order mark, as Windows writes it, converted to UTF-8. It is treated like a
 * compression that can be entered at any character; compressed UTF-16, where the compression can be
 * entered. Unpaired surrogates and a last odd byte become U+FFFD. Not iconv(), which stops at each
 * of them.
 */
#include "reader_source.h"

#include <stdlib.h>

#include "reader_parse.h"

/* A character that did not fit into the output. */
struct half_character {
    uint8_t bytes[4];
    size_t at, len;
};

ALWAYS_INLINE uint32_t unit_at(const struct source *s, size_t at, bool big)
{
    const uint8_t *p = s->in + at;
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

/* The next character; false: there is none. */
static bool take_char(struct source *s, bool big, uint32_t *c)
{
    while (s->in_len - s->in_at < 4 && source_fill(s))
        ;
    size_t left = s->in_len - s->in_at;
    if (left == 0)
        return false;
    *c = 0xFFFD;
    if (left == 1) {
        s->in_at++;
        return true;
    }
    uint32_t unit = unit_at(s, s->in_at, big);
    s->in_at += 2;
    if (unit < 0xD800 || unit > 0xDFFF) {
        *c = unit;
    } else if (unit < 0xDC00 && left >= 4) {
        uint32_t low = unit_at(s, s->in_at, big);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *c = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            s->in_at += 2;
        }
    }
    return true;
}

/* Records that the text can be reached again from here: if it is compressed, through a restart point
   of the compression within the last few bytes. Such a point is requested when one is due, and is
   some way ahead, because `in` has already been decompressed. */
static void wide_note(struct source *s)
{
    struct source *packed = s->packed;
    struct restart *point = packed ? &packed->point : NULL;
    uint64_t here = packed ? packed->out - (s->in_len - s->in_at) : 0;
    if (!packed) {
        source_note(s, NULL, 0);
    } else if (!packed->noted) {
        packed->want = 0;
    } else if (here >= point->out) {
        uint8_t *blob = malloc(1 + point->len);
        if (blob) {
            blob[0] = (uint8_t)(here - point->out);
            if (point->len)
                memcpy(blob + 1, point->blob, point->len);
            source_note(s, blob, 1 + point->len);
            s->point.at = point->at;
        }
        packed->noted = false;
    }
}

static size_t wide_step(struct source *s, uint8_t *out, size_t room)
{
    bool big = s->decoder == &decoder_utf16be;
    struct half_character *rest = s->state;
    size_t made = 0;
    uint32_t c;
    while (made < room) {
        if (rest->at < rest->len) {
            out[made++] = rest->bytes[rest->at++];
            s->out++;
            continue;
        }
        if (s->out >= s->want)
            wide_note(s);
        bool first = s->at == s->in_len - s->in_at;
        if (!take_char(s, big, &c)) {
            s->ended = true;
            break;
        }
        if (first && c == 0xFEFF)
            continue;
        rest->len = utf8_put(c, rest->bytes);
        rest->at = 0;
    }
    return made;
}

const struct decoder decoder_utf16le = {
    .name = "UTF-16", .state = sizeof(struct half_character), .step = wide_step};
const struct decoder decoder_utf16be = {
    .name = "UTF-16", .state = sizeof(struct half_character), .step = wide_step};
