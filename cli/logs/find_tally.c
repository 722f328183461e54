/* tamis find --count-by: counts each value of an attribute in the matching records. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "find.h"
#include "ui/out.h"

/* A value and its count, followed by the bytes. A missing value has no bytes and `missing` set. */
struct counted {
    uint64_t n;
    size_t len;
    bool missing;
    uint8_t data[];
};

static struct counted **place_of(struct counted **slot, size_t room, const uint8_t *data,
                                 size_t len, bool missing)
{
    size_t i = (size_t)(hash_of(data, len) + missing) & (room - 1);
    while (slot[i] && (slot[i]->len != len || slot[i]->missing != missing ||
                       (len && memcmp(slot[i]->data, data, len) != 0)))
        i = (i + 1) & (room - 1);
    return &slot[i];
}

static bool tally_grow(struct tally *t)
{
    size_t room = t->room ? 2 * t->room : 64;
    struct counted **fresh = calloc(room, sizeof *fresh);
    if (!fresh)
        return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->slot[i])
            *place_of(fresh, room, t->slot[i]->data, t->slot[i]->len, t->slot[i]->missing) =
                t->slot[i];
    free(t->slot);
    t->slot = fresh;
    t->room = room;
    return true;
}

bool tally_put(struct tally *t, const uint8_t *data, size_t len, bool missing, uint64_t n)
{
    if (2 * t->n >= t->room && !tally_grow(t))
        return false;
    struct counted **at = place_of(t->slot, t->room, data, len, missing);
    if (!*at) {
        *at = malloc(sizeof **at + len);
        if (!*at)
            return false;
        **at = (struct counted){.len = len, .missing = missing};
        if (len)
            memcpy((*at)->data, data, len);
        t->n++;
    }
    (*at)->n += n;
    return true;
}

bool tally_add(struct tally *t, const struct read_value *v)
{
    bool good = true;
    if (v->state == VALUE_MISSING)
        return tally_put(t, NULL, 0, true, 1);
    for (; good && v; v = v->next)
        good = tally_put(t, v->data, v->len, false, 1);
    return good;
}

bool tally_merge(struct tally *t, const struct tally *from)
{
    bool good = true;
    for (size_t i = 0; good && i < from->room; i++)
        if (from->slot[i])
            good = tally_put(t, from->slot[i]->data, from->slot[i]->len, from->slot[i]->missing,
                             from->slot[i]->n);
    return good;
}

void tally_free(struct tally *t)
{
    for (size_t i = 0; i < t->room; i++)
        free(t->slot[i]);
    free(t->slot);
    *t = (struct tally){0};
}

/* The most frequent first, then by their bytes; missing last among equal counts. */
static int by_count(const void *a, const void *b)
{
    const struct counted *x = *(struct counted *const *)a, *y = *(struct counted *const *)b;
    size_t len = x->len < y->len ? x->len : y->len;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    if (x->missing != y->missing)
        return x->missing - y->missing;
    int order = len ? memcmp(x->data, y->data, len) : 0;
    return order ? order : ORDER(x->len, y->len, 0);
}

void tally_print(struct tally *t, uint64_t most, bool json)
{
    size_t n = 0;
    for (size_t i = 0; i < t->room; i++)
        if (t->slot[i])
            t->slot[n++] = t->slot[i];
    t->room = t->n = n;
    if (n)
        qsort(t->slot, n, sizeof *t->slot, by_count);
    for (size_t i = 0; i < n && i < most; i++) {
        const struct counted *c = t->slot[i];
        if (json) {
            json_open(NULL, '{');
            json_count("count", c->n);
            if (!c->missing)
                json_bytes("value", c->data, c->len);
            json_close();
        } else {
            put_format("%llu\t", (unsigned long long)c->n);
            put_bytes(c->missing ? (const void *)"!" : c->data, c->missing ? 1 : c->len);
            put_text("\n");
        }
    }
}
