/*
 * logfmt, as Heroku and Go programs write it: key=value key="a value" key
 *
 * A key is a run of bytes above the space that are neither = nor a quote; without = its value is empty.
 * A quoted value has the escapes of JSON; other backslashes are kept. Of two equal keys the last one
 * counts. A line starts with a key and its value, so prose does not fit.
 */
#include "reader_parse.h"

#include "reader_scan.h"

/* The slot of a key, or NO_SLOT. Keys have no parts: dots belong to them. */
ALWAYS_INLINE uint32_t slot_of(const struct selection *s, const uint8_t *key, size_t len)
{
    uint32_t node = s->n_nodes ? selection_child(s, 0, key, len) : NO_NODE;
    return node == NO_NODE ? NO_SLOT : s->node[node].slot;
}

/* The end of a key. */
ALWAYS_INLINE const uint8_t *key_end(const uint8_t *p, const uint8_t *end)
{
    while (p<end && * p> ' ' && *p != '=' && *p != '"')
        p++;
    return p;
}

/* The closing quote of the text at p, or NULL. */
ALWAYS_INLINE const uint8_t *quote_end(const uint8_t *p, const uint8_t *end, bool *escaped)
{
    *escaped = false;
    for (;; p += 2) {
        p = scan_for(p, end, '"', '\\', '"', SCAN_HAS_VECTOR);
        if (p >= end)
            return NULL;
        if (*p == '"')
            return p;
        *escaped = true;
        if (end - p < 2)
            return NULL;
    }
}

static bool give_escaped(struct parser *ps, uint32_t slot, const uint8_t *p, const uint8_t *quote)
{
    if (!parser_room(ps, (size_t)(quote - p)))
        return ps->full = true, false;
    uint8_t *plain = ps->scratch + ps->scratch_len;
    size_t len = json_unescape(p, quote, plain);
    ps->scratch_len += len;
    value_set(&ps->value[slot], plain, len);
    return true;
}

/* Counts keys with values and without; false: not logfmt. */
ALWAYS_INLINE bool take_pairs(struct parser *ps, const uint8_t *p, const uint8_t *end,
                              size_t *pairs, size_t *words)
{
    const struct selection *s = ps->selection;
    *pairs = *words = 0;
    for (;;) {
        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        if (p == end)
            return *pairs > 0;
        const uint8_t *key = p, *stop = key_end(p, end), *text, *quote;
        bool escaped = false;
        if (stop == key)
            return false;
        uint32_t slot = slot_of(s, key, (size_t)(stop - key));
        p = stop;
        if (p == end || *p != '=') {
            if (*pairs == 0 || (p < end && *p == '"'))
                return false;
            ++*words;
            if (slot != NO_SLOT)
                value_set(&ps->value[slot], stop, 0);
            continue;
        }
        ++*pairs;
        text = ++p;
        if (p < end && *p == '"') {
            quote = quote_end(++text, end, &escaped);
            if (!quote || (quote + 1 < end && quote[1] > ' '))
                return false;
            p = quote + 1;
        } else {
            quote = p = scan_for(p, end, ' ', '\t', ' ', SCAN_HAS_VECTOR);
        }
        if (slot != NO_SLOT && !escaped)
            value_set(&ps->value[slot], text, (size_t)(quote - text));
        else if (slot != NO_SLOT && !give_escaped(ps, slot, text, quote))
            return false;
    }
}

bool logfmt_fit(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    size_t pairs, words;
    return take_pairs(ps, line, end, &pairs, &words);
}

bool logfmt_sniff(struct parser *ps, const uint8_t *line, const uint8_t *end)
{
    size_t pairs, words;
    return take_pairs(ps, line, end, &pairs, &words) && pairs > 1 && pairs >= words;
}

/* The keys of a line in turn, for reader_fields(). */
const uint8_t *logfmt_key(const uint8_t *p, const uint8_t *end, const uint8_t **key, size_t *len)
{
    bool escaped;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    *key = p;
    p = key_end(p, end);
    *len = (size_t)(p - *key);
    if (*len == 0)
        return NULL;
    if (p == end || *p != '=')
        return p;
    p++;
    if (p < end && *p == '"') {
        p = quote_end(p + 1, end, &escaped);
        return p ? p + 1 : NULL;
    }
    return scan_for(p, end, ' ', '\t', ' ', SCAN_HAS_VECTOR);
}
