/*
 * Does a record match? Tests every clause on the values from the reader. Only this decides what
 * find prints; catalogs and needles merely save work.
 */
#define _GNU_SOURCE
#include "question_check.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "question_parts.h"
#include "read/regex.h"

/* Steps of a regular expression on one value, some tenths of a second; then find reports that the
   record was not searched. */
#define MATCH_LIMIT 10000000
#define NORMAL_MAX  4096 /* longer values have no normal form: they stand for themselves */

bool check_start(struct check *k, const struct question *q)
{
    bool any = false;
    *k = (struct check){.question = q, .time = {.zone = q->time ? q->time->zone : NULL}};
    for (size_t i = 0; i < q->n; i++)
        any |= q->clause[i].kind == CLAUSE_REGEX;
    k->matcher = any ? matcher_new(NULL, MATCH_LIMIT) : NULL;
    return !any || k->matcher;
}

void check_end(struct check *k)
{
    matcher_free(k->matcher);
    *k = (struct check){0};
}

static bool regex_holds(struct check *k, const struct clause *c, const struct read_value *v)
{
    const size_t *at;
    int n = regex_match(c->regex, k->matcher, v->data, v->len, &at);
    if (n < 0)
        k->gave_up = c->word;
    if (n > 0)
        k->spot = (struct span){v->data, 0};
    if (n > 0 && v->data && at[1] > at[0])
        k->spot = (struct span){v->data + at[0], at[1] - at[0]};
    return n > 0;
}

/* ---- sets ------------------------------------------------------------------------------------ */

static int by_span(const struct span *x, const struct span *y)
{
    return ORDER(x->len, y->len, x->len ? memcmp(x->data, y->data, x->len) : 0);
}

static int by_value(const void *a, const void *b)
{
    return by_span(&((const struct wanted *)a)->is, &((const struct wanted *)b)->is);
}

/* The widest first. */
static int by_network(const void *a, const void *b)
{
    const struct network *x = a, *y = b;
    return ORDER(x->bits, y->bits, memcmp(x->address, y->address, sizeof x->address));
}

static int compare_end(const struct end *end, tamis_type type, const struct span *normal,
                       const struct stamp *time)
{
    bool comparable;
    if (type != TAMIS_TIME)
        return tamis_value_compare(type, (tamis_key){normal->data, normal->len},
                                   (tamis_key){end->text.data, end->text.len}, &comparable);
    return ORDER(time->seconds, end->time.seconds,
                 ORDER(time->nanoseconds, end->time.nanoseconds, 0));
}

/* Does the range begin at or before the value, and end at or after it? */
static bool begins(const struct range *r, tamis_type type, const struct span *normal,
                   const struct stamp *time)
{
    int low = r->low.there ? compare_end(&r->low, type, normal, time) : 1;
    return low >= r->low.outside;
}

static bool ends(const struct range *r, tamis_type type, const struct span *normal,
                 const struct stamp *time)
{
    int high = r->high.there ? compare_end(&r->high, type, normal, time) : -1;
    return high <= -r->high.outside;
}

bool range_is_empty(const struct range *r, tamis_type type)
{
    return r->low.there && r->high.there && !ends(r, type, &r->low.text, &r->low.time);
}

static int by_low(const void *a, const void *b, void *type)
{
    const struct end *x = &((const struct range *)a)->low, *y = &((const struct range *)b)->low;
    if (!x->there || !y->there)
        return x->there - y->there;
    int order = compare_end(y, *(const tamis_type *)type, &x->text, &x->time);
    return order ? order : x->outside - y->outside;
}

static bool reaches_farther(const struct range *a, const struct range *b, tamis_type type)
{
    const struct end *x = &a->high, *y = &b->high;
    if (!x->there || !y->there)
        return y->there;
    int order = compare_end(y, type, &x->text, &x->time);
    return order ? order > 0 : y->outside && !x->outside;
}

void clause_sort(struct clause *c, tamis_type type)
{
    if (c->n_values > 1)
        qsort(c->value, c->n_values, sizeof *c->value, by_value);
    if (c->n_networks > 1)
        qsort(c->network, c->n_networks, sizeof *c->network, by_network);
    if (c->n_ranges > 1)
        qsort_r(c->range, c->n_ranges, sizeof *c->range, by_low, &type);
    for (size_t i = 1; i < c->n_ranges; i++) {
        struct range *r = &c->range[i];
        r->widest = reaches_farther(r, &c->range[r[-1].widest], type) ? i : r[-1].widest;
    }
}

/* An integer in normal form: most are, and this test takes a tenth of the time. */
static bool is_plain_int(const struct read_value *v)
{
    if (v->len == 0 || v->len > 18 || (v->data[0] == '0' && v->len > 1))
        return false;
    for (size_t i = 0; i < v->len; i++)
        if ((uint8_t)(v->data[i] - '0') > 9)
            return false;
    return true;
}

/* The normal form of a value, in `room`, or the value itself. */
static struct span normal_of(struct check *k, tamis_type type, const struct read_value *v,
                             uint8_t room[NORMAL_MAX + 40], bool *is)
{
    size_t n = 0;
    if (type == TAMIS_INT && is_plain_int(v)) {
        *is = true;
        return (struct span){v->data, v->len};
    }
    if (type != TAMIS_BYTES && v->len <= NORMAL_MAX)
        n = type == TAMIS_TIME ? time_normal(&k->time, v->data, v->len, (char *)room)
                               : tamis_value_normal(type, v->data, v->len, room, NORMAL_MAX + 40);
    *is = n > 0;
    return n ? (struct span){room, n} : (struct span){v->data, v->len};
}

/* Ranges are sorted by their low ends: of those that begin before the value, the one that reaches
   farthest has it, or none has. */
static const struct range *in_ranges(struct check *k, const struct clause *c, tamis_type type,
                                     const struct read_value *v, const struct span *normal, bool is)
{
    struct stamp time = {0};
    if (type == TAMIS_TIME && time_read(&k->time, v->data, v->len, &time))
        k->timed = is = true;
    if (!is)
        return NULL;
    size_t n = SEARCH(i, c->n_ranges, begins(&c->range[i], type, normal, &time));
    const struct range *widest = n ? &c->range[c->range[n - 1].widest] : NULL;
    return widest && ends(widest, type, normal, &time) ? widest : NULL;
}

unsigned address_of(const void *text, size_t len, uint8_t out[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char copy[64];
    if (len >= sizeof copy)
        return 0;
    memcpy(copy, text, len);
    copy[len] = 0;
    memcpy(out, mapped, sizeof mapped);
    return inet_pton(AF_INET, copy, out + 12) == 1 ? 4
           : inet_pton(AF_INET6, copy, out) == 1   ? 6
                                                   : 0;
}

/* The network that an address in normal form belongs to: one search per prefix length. */
static const struct network *in_networks(const struct clause *c, const struct span *normal)
{
    struct network here = {0};
    uint8_t address[16];
    unsigned version = address_of(normal->data, normal->len, address);
    for (size_t i = 0; version && i < c->n_networks;) {
        here.bits = c->network[i].bits;
        if (version == 4 && here.bits < 96) { /* not in an IPv6 network */
            i++;
            continue;
        }
        memcpy(here.address, address, sizeof address);
        network_mask(here.address, here.bits);
        const struct network *found =
            bsearch(&here, c->network, c->n_networks, sizeof here, by_network);
        if (found)
            return found;
        while (i < c->n_networks && c->network[i].bits == here.bits)
            i++;
    }
    return NULL;
}

static bool has_prefix(const struct clause *c, const struct span *text, const char **tag)
{
    for (size_t i = 0; i < c->n_prefixes; i++) {
        const struct span *p = &c->prefix[i].is;
        if (text->len >= p->len && memcmp(text->data, p->data, p->len) == 0)
            return *tag = c->prefix[i].given, true;
    }
    return false;
}

/* Is a value in the set? *tag: as it was given. */
static bool in_any_set(struct check *k, tamis_type type, const struct clause *c,
                       const struct read_value *v, const char **tag)
{
    uint8_t room[NORMAL_MAX + 40];
    bool is;
    const struct wanted here = {normal_of(k, type, v, room, &is), NULL}, *value = NULL;
    const struct span text = type == TAMIS_FOLD ? here.is : (struct span){v->data, v->len};
    if (c->n_values == 1)
        value = by_value(&here, c->value) == 0 ? c->value : NULL;
    else if (c->n_values)
        value = bsearch(&here, c->value, c->n_values, sizeof here, by_value);
    if (value)
        return *tag = value->given, true;
    if (c->n_networks && is) {
        const struct network *network = in_networks(c, &here.is);
        if (network)
            return *tag = network->given, true;
    }
    *tag = c->word;
    if (c->n_prefixes && has_prefix(c, &text, tag))
        return true;
    const struct range *range = c->n_ranges ? in_ranges(k, c, type, v, &here.is, is) : NULL;
    if (range)
        *tag = range->given;
    return range != NULL;
}

/* The same; the usual set has one value, and its type no normal form. */
ALWAYS_INLINE bool in_set(struct check *k, tamis_type type, const struct clause *c,
                          const struct read_value *v, const char **tag)
{
    if (type != TAMIS_BYTES || c->n_values != 1 || c->n_prefixes)
        return in_any_set(k, type, c, v, tag);
    const struct wanted *one = c->value;
    *tag = one->given;
    return v->len == one->is.len && (v->len == 0 || memcmp(v->data, one->is.data, v->len) == 0);
}

/* ---- clauses --------------------------------------------------------------------------------- */

static bool value_holds(struct check *k, tamis_type type, const struct clause *c,
                        const struct read_value *v, const char **tag)
{
    switch (c->kind) {
    case CLAUSE_SET:
        return in_set(k, type, c, v, tag);
    case CLAUSE_WORDS:
        return tamis_type_match(TAMIS_WORDS, TAMIS_PHRASE, (tamis_key){v->data, v->len},
                                (tamis_key){c->phrase.data, c->phrase.len});
    default:
        return regex_holds(k, c, v);
    }
}

static const struct read_value *value_of(const struct check *k, const struct clause *c,
                                         const struct read_value *values, tamis_type *type)
{
    static const struct read_value none = {.state = VALUE_MISSING};
    size_t column = c->column == PERIOD ? k->period : c->column;
    *type = column == NO_COLUMN ? TAMIS_BYTES : k->question->column[column].type;
    return column == NO_COLUMN ? &none : &values[column];
}

/* Any element of a list counts. */
static bool clause_holds(struct check *k, const struct clause *c, const struct read_value *values)
{
    tamis_type type;
    const struct read_value *v = value_of(k, c, values, &type);
    const char *tag = c->word;
    if (v->state == VALUE_MISSING) {
        k->timeless += c->column == PERIOD;
        if (c->tagged)
            k->tag = c->negative ? c->word : "!";
        return c->missing != c->negative;
    }
    k->timed = false;
    while (v && !value_holds(k, type, c, v, &tag))
        v = v->next;
    k->timeless += c->column == PERIOD && !k->timed;
    if (c->tagged)
        k->tag = v ? tag : c->word;
    return (v != NULL) != c->negative;
}

bool check_holds(struct check *k, const struct read_value *values)
{
    const struct question *q = k->question;
    for (size_t i = 0; i < q->n; i++)
        if (!clause_holds(k, &q->clause[i], values))
            return false;
    return true;
}

/* ---- for people ------------------------------------------------------------------------------ */

/* For words: where the phrase occurs. */
static struct span spot_of(const struct check *k, const struct clause *c,
                           const struct read_value *v)
{
    if (c->kind == CLAUSE_REGEX)
        return k->spot;
    if (c->kind == CLAUSE_SET)
        return (struct span){v->data, v->len};
    for (size_t i = 0; i + c->phrase.len <= v->len; i++)
        if (strncasecmp((const char *)v->data + i, (const char *)c->phrase.data, c->phrase.len) ==
            0)
            return (struct span){v->data + i, c->phrase.len};
    return (struct span){v->data, 0};
}

void check_spots(struct check *k, const struct read_value *values,
                 void (*spot)(void *context, struct span bytes), void *context)
{
    const struct question *q = k->question;
    for (size_t i = 0; i < q->n; i++) {
        const struct clause *c = &q->clause[i];
        tamis_type type;
        const char *tag;
        const struct read_value *v = value_of(k, c, values, &type);
        for (; !c->negative && c->column != PERIOD && v && v->state != VALUE_MISSING; v = v->next)
            if (value_holds(k, type, c, v, &tag))
                spot(context, spot_of(k, c, v));
    }
}
