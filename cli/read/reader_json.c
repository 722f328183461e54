/*
 * JSON: one pass over the bytes that checks the grammar and picks the selected values. No tree is built.
 *
 * One body reads two kinds of text. A line ends with \n, which its grammar never accepts: so only the search inside
 * strings checks for the end of the text. In *free* text (a last line without its end, records over several lines,
 * JSON in a string) line ends are blanks, and the end is checked at every step.
 *
 * Measured on one core of a 2.6 GHz EPYC, records of 131 bytes, four values of six: 1.7 GB/s here, up to 2.3 with
 * Debian's simdjson 3.0 (C++, on demand, which does not check values that are not selected). Reading the file takes
 * 0.13 ns per byte and the digests of the values 0.16, so another language and library would make the whole a sixth
 * faster.
 */
#include "reader_parse.h"

#include <stdio.h>

#include "reader_scan.h"

/* The byte at p; after the end of a free text, a byte that JSON does not use. */
ALWAYS_INLINE uint8_t at(const uint8_t *p, const uint8_t *end, bool free)
{
    return free && p >= end ? 0 : *p;
}

ALWAYS_INLINE const uint8_t *skip_blanks(const uint8_t *p, const uint8_t *end, bool free)
{
    for (uint8_t c; (c = at(p, end, free)) == ' ' || c == '\t' || c == '\r' || (free && c == '\n');)
        p++;
    return p;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* A repeated key replaces everything that the first one gave. */
static void forget(struct parser *ps, uint32_t from)
{
    const struct path_node *node = ps->selection->node;
    for (uint32_t i = from; i < node[from].end; i++)
        if (node[i].slot != NO_SLOT)
            ps->value[node[i].slot] = (struct read_value){0};
}

/* In elements of an array keys repeat, and all count. */
ALWAYS_INLINE uint32_t meet(struct parser *ps, uint32_t node, const struct json_level *in)
{
    if (UNLIKELY(ps->seen[node] == ps->turn) && !in->many)
        forget(ps, node);
    ps->seen[node] = ps->turn;
    return node;
}

ALWAYS_INLINE bool is_named(const struct path_node *node, const uint8_t *key, size_t len)
{
    return node->len == len && memcmp(node->name, key, len) == 0;
}

/* The node of a key in an object: probably the one that followed the key before when that was last
   met. In an element of an array a number is not a key but a position. */
ALWAYS_INLINE uint32_t child_of(struct parser *ps, struct json_level *in, const uint8_t *key,
                                size_t len)
{
    const struct path_node *node = ps->selection->node;
    uint32_t *follower = &ps->follower[in->before], i = *follower;
    if (i == NO_NODE || !is_named(&node[i], key, len)) {
        i = selection_child(ps->selection, in->node, key, len);
        if (i == NO_NODE)
            return NO_NODE;
        *follower = i;
    }
    in->before = 2 * i + 1;
    return in->through && node[i].position != NO_NODE ? NO_NODE : meet(ps, i, in);
}

/* The node of an element of an array by its position. *through: if the element is an object or
   array, its parts are also selected as those of the array. */
static uint32_t child_at(struct parser *ps, const struct json_level *in, bool *through)
{
    char name[16];
    if (in->node == NO_NODE)
        return NO_NODE;
    const struct path_node *node = &ps->selection->node[in->node];
    *through |= node->keys;
    if (in->through || !node->positions)
        return NO_NODE;
    int len = snprintf(name, sizeof name, "%u", (unsigned)in->position);
    uint32_t found = selection_child(ps->selection, in->node, name, (size_t)len);
    return found == NO_NODE ? NO_NODE : meet(ps, found, in);
}

/* The closing quote of the string that opens before p; NULL: an error. */
ALWAYS_INLINE const uint8_t *string_end(const uint8_t *p, const uint8_t *end, bool *escaped,
                                        struct fault *fault, scan_how vector)
{
    const uint8_t *quote = scan_for(p, end, '"', '\\', '\n', vector);
    *escaped = quote == end || *quote != '"';
    if (LIKELY(!*escaped))
        return quote;
    quote = json_string_end(quote, end, &fault->at);
    if (!quote)
        fault->why =
            fault->at == end || *fault->at == '\n' ? "a string is not closed" : "no such escape";
    return quote;
}

/* "key" and its colon; *node is the node it leads to. NULL: an error. */
ALWAYS_INLINE const uint8_t *take_key(struct parser *ps, const uint8_t *p, const uint8_t *end,
                                      struct json_level *in, uint32_t *node, struct fault *fault,
                                      scan_how vector, bool free)
{
    bool escaped;
    if (UNLIKELY(at(p, end, free) != '"')) {
        *fault = (struct fault){p, "a key is missing"};
        return NULL;
    }
    const uint8_t *key = p + 1, *quote = string_end(key, end, &escaped, fault, vector);
    if (UNLIKELY(!quote))
        return NULL;
    *node = NO_NODE;
    if (LIKELY(!escaped)) {
        if (in->node != NO_NODE)
            *node = child_of(ps, in, key, (size_t)(quote - key));
    } else if (in->node != NO_NODE) {
        if (!parser_room(ps, (size_t)(quote - key))) {
            *fault = (struct fault){p, NULL};
            return NULL;
        }
        uint8_t *plain = ps->scratch + ps->scratch_len;
        *node = child_of(ps, in, plain, json_unescape(key, quote, plain));
    }
    p = skip_blanks(quote + 1, end, free);
    if (UNLIKELY(at(p, end, free) != ':')) {
        *fault = (struct fault){p, "a colon is missing"};
        return NULL;
    }
    return p + 1;
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* The position after `word` if it is at p, otherwise NULL. */
ALWAYS_INLINE const uint8_t *literal(const uint8_t *p, const uint8_t *end, bool free,
                                     const char *word)
{
    for (; *word; p++, word++)
        if (at(p, end, free) != (uint8_t)*word)
            return NULL;
    return p;
}

/* The position after the digits at p, at least one; NULL: there is none. */
ALWAYS_INLINE const uint8_t *digits(const uint8_t *p, const uint8_t *end, bool free)
{
    if (!is_digit((char)at(p, end, free)))
        return NULL;
    while (is_digit((char)at(p, end, free)))
        p++;
    return p;
}

/* The position after the number at p, or NULL. */
ALWAYS_INLINE const uint8_t *number(const uint8_t *p, const uint8_t *end, bool free)
{
    if (at(p, end, free) == '-' && at(++p, end, free) == 'I')
        return literal(p, end, free, "Infinity");
    if (at(p, end, free) == '0')
        p++;
    else if (!(p = digits(p, end, free)))
        return NULL;
    if (at(p, end, free) == '.' && !(p = digits(p + 1, end, free)))
        return NULL;
    if ((at(p, end, free) | 0x20) == 'e') {
        uint8_t sign = at(++p, end, free);
        p = digits(p + (sign == '+' || sign == '-'), end, free);
    }
    return p;
}

/* A number or a literal, *null = whether it is that. */
ALWAYS_INLINE const uint8_t *word_end(const uint8_t *p, const uint8_t *end, bool free, bool *null)
{
    *null = false;
    switch (at(p, end, free)) {
    case 't':
        return literal(p, end, free, "true");
    case 'f':
        return literal(p, end, free, "false");
    case 'n':
        *null = true;
        return literal(p, end, free, "null");
    case 'N':
        return literal(p, end, free, "NaN");
    case 'I':
        return literal(p, end, free, "Infinity");
    default:
        return number(p, end, free);
    }
}

/* A scalar at p, and its value if it is selected. Returns the position after it; NULL: an error. */
ALWAYS_INLINE const uint8_t *take_scalar(struct parser *ps, const uint8_t *p, const uint8_t *end,
                                         struct read_value *value, struct fault *fault,
                                         scan_how vector, bool free)
{
    bool escaped, null;
    if (at(p, end, free) != '"') {
        const uint8_t *stop = word_end(p, end, free, &null);
        if (UNLIKELY(!stop))
            *fault = (struct fault){p, "a value is missing, or is none of JSON's"};
        else if (value && !null)
            value_set(value, p, (size_t)(stop - p));
        return stop;
    }
    const uint8_t *text = p + 1, *quote = string_end(text, end, &escaped, fault, vector);
    if (UNLIKELY(!quote))
        return NULL;
    if (!value)
        return quote + 1;
    if (LIKELY(!escaped)) {
        value_set(value, text, (size_t)(quote - text));
        return quote + 1;
    }
    if (!parser_room(ps, (size_t)(quote - text))) {
        *fault = (struct fault){p, NULL};
        return NULL;
    }
    uint8_t *plain = ps->scratch + ps->scratch_len;
    size_t len = json_unescape(text, quote, plain);
    ps->scratch_len += len;
    value_set(value, plain, len);
    return quote + 1;
}

/* ---- values ---------------------------------------------------------------------------------- */

ALWAYS_INLINE uint32_t slot_of(const struct parser *ps, uint32_t node)
{
    return node == NO_NODE ? NO_SLOT : ps->selection->node[node].slot;
}

/* Where the next value of a slot is stored; NULL: no memory. */
ALWAYS_INLINE struct read_value *place_of(struct parser *ps, uint32_t slot, bool many)
{
    struct read_value *to = &ps->value[slot];
    if (LIKELY(!many))
        return to;
    if (to->state != VALUE_MISSING)
        to = parser_element(ps, ps->tail[slot]);
    if (to)
        ps->tail[slot] = to;
    return to;
}

/* Stores a value in its slot, and in the list of the array that contains it. False: no memory. */
ALWAYS_INLINE bool give(struct parser *ps, struct json_level *in, uint32_t slot, bool many,
                        const struct read_value *value)
{
    struct read_value *to;
    if (slot != NO_SLOT && !(many && value->state == VALUE_MISSING)) {
        if (!(to = place_of(ps, slot, many)))
            return false;
        *to = *value;
    }
    if (LIKELY(!in || in->list == NO_SLOT))
        return true;
    if (value->state == VALUE_MISSING)
        return in->nulls = true;
    to = in->last ? parser_element(ps, in->last) : place_of(ps, in->list, in->many);
    if (!to)
        return false;
    *to = *value;
    to->next = NULL;
    in->last = to;
    if (in->many)
        ps->tail[in->list] = to;
    return true;
}

static const uint8_t *take_free(struct parser *ps, const uint8_t *p, const uint8_t *end,
                                struct json_level *base, uint32_t node, struct fault *fault);

/* A string of which parts are selected: those of the JSON that it may contain. */
static bool take_inner(struct parser *ps, struct json_level *top, uint32_t node,
                       const struct read_value *value)
{
    struct fault fault;
    const uint8_t *p = value->data, *end = p + value->len, *stop;
    p = skip_blanks(p, end, true);
    if (p == end || (*p != '{' && *p != '['))
        return true;
    if (top->many) { /* values of others cannot be removed */
        stop = take_free(ps, p, end, top, NO_NODE, &fault);
        if (!stop || skip_blanks(stop, end, true) != end)
            return stop || fault.why;
    }
    uint32_t slot = slot_of(ps, node);
    struct read_value own = slot != NO_SLOT ? ps->value[slot] : (struct read_value){0};
    struct read_value *last = top->many && slot != NO_SLOT ? ps->tail[slot] : NULL;
    p = take_free(ps, p, end, top, node, &fault);
    if (!p || skip_blanks(p, end, true) != end)
        forget(ps, node);
    if (slot != NO_SLOT)
        ps->value[slot] = own;
    if (last) {
        ps->tail[slot] = last;
        last->next = NULL;
    }
    return p || fault.why;
}

/* A scalar at p, the value of `node` in the level `top`. Returns the position after it; NULL: an error. */
ALWAYS_INLINE const uint8_t *take_plain(struct parser *ps, const uint8_t *p, const uint8_t *end,
                                        struct json_level *top, uint32_t node, struct fault *fault,
                                        scan_how vector, bool free)
{
    struct read_value value = {0};
    uint32_t slot = slot_of(ps, node);
    bool parts = node != NO_NODE && ps->selection->node[node].child != NO_NODE;
    bool wanted = slot != NO_SLOT || top->list != NO_SLOT || parts, text = at(p, end, free) == '"';
    bool alone = slot != NO_SLOT && top->list == NO_SLOT && !top->many;
    struct read_value *to =
        alone ? &ps->value[slot] : &value; /* a copy would wait for its stores */
    if (alone)
        *to = value;
    p = take_scalar(ps, p, end, wanted ? to : NULL, fault, vector, free);
    if (UNLIKELY(!p))
        return NULL;
    if (wanted && !((alone || give(ps, top, slot, top->many, to)) &&
                    (!parts || !text || take_inner(ps, top, node, to))))
        return *fault = (struct fault){p, NULL}, NULL;
    return p;
}

/* The node of the element at p, which starts with c. *through: its parts are selected as those of the array;
   those selected by its position have been taken then. If there is no memory, fault->why is NULL. */
static uint32_t take_element(struct parser *ps, const uint8_t *p, const uint8_t *end,
                             struct json_level *top, uint8_t c, bool *through, struct fault *fault)
{
    uint32_t node = child_at(ps, top, through);
    *through = *through && (c == '{' || c == '[');
    if (LIKELY(!*through))
        return node;
    fault->why = "";
    if (node != NO_NODE)
        take_free(ps, p, end, top, node, fault);
    return top->node;
}

/* The level that the bracket c at p opens. */
ALWAYS_INLINE struct json_level level_of(const uint8_t *p, uint32_t node, uint32_t list, uint8_t c,
                                         bool many, bool through)
{
    return (struct json_level){.start = p,
                               .node = node,
                               .list = list,
                               .before = 2 * node,
                               .close = (uint8_t)(c + 2),
                               .many = many,
                               .through = through};
}

/* A whole object or array at p, whose levels come above `base`. Returns the position after it; NULL: an error. */
ALWAYS_INLINE const uint8_t *take_all(struct parser *ps, const uint8_t *p, const uint8_t *end,
                                      struct json_level *const base, uint32_t node,
                                      struct fault *fault, scan_how vector, bool free)
{
    struct json_level *top = base;
    struct read_value value;
    bool through = false;
    for (;;) {
        uint8_t c = at(p, end, free);
        if (c == '{' || c == '[') {
            if (top == ps->level + JSON_LEVELS)
                return *fault = (struct fault){p, "nested too deeply"}, NULL;
            uint32_t list = c == '[' && !through ? slot_of(ps, node) : NO_SLOT;
            top[1] = level_of(p, node, list, c, top->many || through, through);
            top++;
            through = false;
            p = skip_blanks(p + 1, end, free);
            if (at(p, end, free) != top->close)
                goto element;
        } else {
            p = take_plain(ps, p, end, top, node, fault, vector, free);
            if (UNLIKELY(!p))
                return NULL;
            p = skip_blanks(p, end, free);
        }
        while ((c = at(p, end, free)) != ',') { /* after a value: what ends here */
            if (UNLIKELY(c != top->close))
                return *fault = (struct fault){p, "a comma or a bracket is missing"}, NULL;
            uint32_t slot = top->through ? NO_SLOT : slot_of(ps, top->node);
            const uint8_t *start = top->start;
            bool listed = top->last || top->nulls; /* its elements count */
            --top;
            if (slot != NO_SLOT || (top > base && top->list != NO_SLOT)) {
                value = (struct read_value){0};
                value_set(&value, start, (size_t)(p + 1 - start));
                if (!give(ps, top > base ? top : NULL, listed ? NO_SLOT : slot, top->many, &value))
                    return *fault = (struct fault){p, NULL}, NULL;
            }
            if (top == base)
                return p + 1;
            p = skip_blanks(p + 1, end, free);
        }
        p = skip_blanks(p + 1, end, free);
        top->position++;
    element:
        if (top->close == '}') {
            p = take_key(ps, p, end, top, &node, fault, vector, free);
            if (UNLIKELY(!p))
                return NULL;
            p = skip_blanks(p, end, free);
        } else {
            node = take_element(ps, p, end, top, at(p, end, free), &through, fault);
            if (UNLIKELY(through && !fault->why))
                return NULL;
        }
    }
}

static const uint8_t *take_free(struct parser *ps, const uint8_t *p, const uint8_t *end,
                                struct json_level *base, uint32_t node, struct fault *fault)
{
    return take_all(ps, p, end, base, node, fault, SCAN_HAS_VECTOR, true);
}

const uint8_t *json_value(struct parser *ps, const uint8_t *p, const uint8_t *end, bool wanted,
                          struct fault *fault)
{
    if (p < end && (*p == '{' || *p == '['))
        return take_free(ps, p, end, ps->level, wanted ? 0 : NO_NODE, fault);
    return take_scalar(ps, p, end, NULL, fault, SCAN_HAS_VECTOR, true);
}

const uint8_t *json_key(const uint8_t *p, const uint8_t *end, const uint8_t **key, size_t *len,
                        struct fault *fault)
{
    bool escaped;
    *fault = (struct fault){p, "a key is missing"};
    if (p == end || *p != '"')
        return NULL;
    const uint8_t *quote = string_end(p + 1, end, &escaped, fault, SCAN_HAS_VECTOR);
    if (!quote)
        return NULL;
    *key = p + 1;
    *len = (size_t)(quote - *key);
    p = skip_blanks(quote + 1, end, true);
    *fault = (struct fault){p, "a colon is missing"};
    return p < end && *p == ':' ? skip_blanks(p + 1, end, true) : NULL;
}

const uint8_t *json_blanks(const uint8_t *p, const uint8_t *end)
{
    return skip_blanks(p, end, true);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Of the ways to split a path at its dots, the first that led to a value. */
static void choose(struct parser *ps)
{
    const struct selection *s = ps->selection;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t slot = (uint32_t)i;
        while (slot != NO_SLOT && ps->value[slot].state == VALUE_MISSING)
            slot = s->next[slot];
        if (slot != NO_SLOT)
            ps->value[i] = ps->value[slot];
    }
}

void json_turn(struct parser *ps)
{
    if (++ps->turn == 0) {
        memset(ps->seen, 0, ps->n_seen * sizeof *ps->seen);
        ps->turn = 1;
    }
    parser_clear(ps);
}

void json_choose(struct parser *ps)
{
    if (ps->selection->choices)
        choose(ps);
}

/* The line [ps->record, newline) becomes the record; the last one has no line end. */
ALWAYS_INLINE void end_record(struct parser *ps, const uint8_t *newline, struct record *record)
{
    const uint8_t *start = ps->record;
    size_t cr = newline > start && newline[-1] == '\r';
    size_t end = newline < ps->end;
    ps->at = newline + end;
    record->data = start;
    record->len = (size_t)(newline - start) - cr;
    record->end_len = end + cr;
    record->values = ps->value;
}

/* The object of the line at p, which ends at `newline` if it is free (the last line, without a line end). */
ALWAYS_INLINE enum parsed take_line(struct parser *ps, const uint8_t *p, struct record *record,
                                    scan_how vector, bool free)
{
    struct fault fault = {p, "not an object"};
    const uint8_t *const end = ps->end;
    ps->record = ps->at;
    json_turn(ps);
    uint8_t c = at(p, end, free);
    p = LIKELY(c == '{' || c == '[') ? take_all(ps, p, end, ps->level, 0, &fault, vector, free)
                                     : NULL;
    if (LIKELY(p)) {
        p = skip_blanks(p, end, free);
        if (LIKELY(free ? p == end : *p == '\n')) {
            json_choose(ps);
            end_record(ps, p, record);
            return PARSED_RECORD;
        }
        fault = (struct fault){p, "something follows the object"};
    }
    if (!fault.why)
        return PARSED_NOMEM;
    end_record(ps, free ? end : memchr(fault.at, '\n', (size_t)(end - fault.at)), record);
    record->complaint = fault.why;
    return PARSED_BAD;
}

static enum parsed last_line(struct parser *ps, const uint8_t *p, struct record *record)
{
    return take_line(ps, p, record, SCAN_HAS_VECTOR, true);
}

ALWAYS_INLINE enum parsed json_next(struct parser *ps, struct record *record, scan_how vector)
{
    const uint8_t *p = ps->at, *const end = ps->end;
    for (;; ps->at = ++p) { /* skip blank lines */
        if (p == end)
            return PARSED_END;
        bool last = UNLIKELY(end[-1] != '\n') && !memchr(p, '\n', (size_t)(end - p));
        p = skip_blanks(p, end, last);
        if (p == end) {
            ps->at = end;
            return PARSED_END;
        }
        if (last)
            return last_line(ps, p, record);
        if (LIKELY(*p != '\n'))
            break;
    }
    return take_line(ps, p, record, vector, false);
}

static enum parsed next_vector(struct parser *ps, struct record *record)
{
    return json_next(ps, record, SCAN_HAS_VECTOR);
}

static enum parsed next_scalar(struct parser *ps, struct record *record)
{
    return json_next(ps, record, false);
}

parser_fn json_parser(bool vector)
{
    return vector ? next_vector : next_scalar;
}
