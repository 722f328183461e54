/* See histories.h. */
#include "histories.h"

#include "set/any_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/format.h"
#include "harness.h"

static uint64_t draw(struct history *h, uint64_t n)
{
    return rng_next(&h->rng) % n;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static const struct history_kind {
    const char *name;
    tamis_growth growth;
    tamis_layout layout;
    tamis_hash hash;
    bool deletable, unique, published, compact;
} kinds[HISTORY_KINDS] = {
    {"fixed spread", TAMIS_FIXED, TAMIS_SPREAD, TAMIS_XXH3, 0, 0, 0, 0},
    {"fixed blocked", TAMIS_FIXED, TAMIS_BLOCKED, TAMIS_XXH3, 0, 0, 0, 0},
    {"fixed spread sip", TAMIS_FIXED, TAMIS_SPREAD, TAMIS_SIP, 0, 0, 0, 0},
    {"fixed h3", TAMIS_FIXED, TAMIS_SPREAD, TAMIS_H3, 0, 0, 0, 0},
    {"fixed spread deletable", TAMIS_FIXED, TAMIS_SPREAD, TAMIS_XXH3, 1, 0, 0, 0},
    {"fixed blocked deletable", TAMIS_FIXED, TAMIS_BLOCKED, TAMIS_XXH3, 1, 0, 0, 0},
    {"fixed blocked unique", TAMIS_FIXED, TAMIS_BLOCKED, TAMIS_SIP, 1, 1, 0, 0},
    {"fixed published", TAMIS_FIXED, TAMIS_SPREAD, TAMIS_XXH3, 0, 0, 1, 0},
    {"dynamic", TAMIS_DYNAMIC, TAMIS_SPREAD, TAMIS_XXH3, 0, 0, 0, 0},
    {"dynamic h3", TAMIS_DYNAMIC, TAMIS_SPREAD, TAMIS_H3, 0, 0, 0, 0},
    {"dynamic deletable", TAMIS_DYNAMIC, TAMIS_SPREAD, TAMIS_XXH3, 1, 0, 0, 0},
    {"dynamic unique", TAMIS_DYNAMIC, TAMIS_SPREAD, TAMIS_XXH3, 1, 1, 0, 0},
    {"dynamic published", TAMIS_DYNAMIC, TAMIS_SPREAD, TAMIS_XXH3, 0, 0, 1, 0},
    {"dynamic published deletable", TAMIS_DYNAMIC, TAMIS_SPREAD, TAMIS_SIP, 1, 0, 1, 0},
    {"scalable spread", TAMIS_SCALABLE, TAMIS_SPREAD, TAMIS_XXH3, 0, 0, 0, 0},
    {"scalable blocked", TAMIS_SCALABLE, TAMIS_BLOCKED, TAMIS_XXH3, 0, 0, 0, 0},
    {"scalable blocked sip", TAMIS_SCALABLE, TAMIS_BLOCKED, TAMIS_SIP, 0, 0, 0, 0},
    {"scalable spread deletable", TAMIS_SCALABLE, TAMIS_SPREAD, TAMIS_XXH3, 1, 0, 0, 0},
    {"scalable blocked unique", TAMIS_SCALABLE, TAMIS_BLOCKED, TAMIS_XXH3, 1, 1, 0, 0},
    {"scalable spread unique", TAMIS_SCALABLE, TAMIS_SPREAD, TAMIS_XXH3, 1, 1, 1, 0},
    {"scalable published", TAMIS_SCALABLE, TAMIS_SPREAD, TAMIS_XXH3, 0, 0, 1, 0},
    {"flexible spread", TAMIS_FLEXIBLE, TAMIS_SPREAD, TAMIS_XXH3, 0, 0, 0, 0},
    {"flexible h3 published", TAMIS_FLEXIBLE, TAMIS_SPREAD, TAMIS_H3, 0, 0, 1, 0},
    {"flexible blocked deletable", TAMIS_FLEXIBLE, TAMIS_BLOCKED, TAMIS_XXH3, 1, 0, 0, 0},
    {"flexible spread unique", TAMIS_FLEXIBLE, TAMIS_SPREAD, TAMIS_XXH3, 1, 1, 0, 0},
    {"window spread", TAMIS_WINDOW, TAMIS_SPREAD, TAMIS_XXH3, 0, 0, 0, 0},
    {"window blocked", TAMIS_WINDOW, TAMIS_BLOCKED, TAMIS_XXH3, 0, 0, 0, 0},
    {"window published", TAMIS_WINDOW, TAMIS_BLOCKED, TAMIS_XXH3, 0, 0, 1, 0},
    {"smooth", TAMIS_SMOOTH, TAMIS_LAYOUT_DEFAULT, TAMIS_XXH3, 0, 0, 0, 0},
    {"smooth past a capacity", TAMIS_SMOOTH, TAMIS_BLOCKED, TAMIS_SIP, 0, 0, 0, 0},
    {"smooth deletable", TAMIS_SMOOTH, TAMIS_LAYOUT_DEFAULT, TAMIS_XXH3, 1, 0, 0, 0},
    {"smooth unique", TAMIS_SMOOTH, TAMIS_LAYOUT_DEFAULT, TAMIS_XXH3, 1, 1, 0, 0},
    {"smooth compact", TAMIS_SMOOTH, TAMIS_LAYOUT_DEFAULT, TAMIS_SIP, 0, 0, 0, 1},
    {"fixed compact", TAMIS_FIXED, TAMIS_LAYOUT_DEFAULT, TAMIS_SIP, 0, 0, 0, 1},
    {"scalable compact", TAMIS_SCALABLE, TAMIS_LAYOUT_DEFAULT, TAMIS_SIP, 0, 0, 0, 1},
};

const char *history_kind(unsigned kind)
{
    return kinds[kind].name;
}

uint64_t history_clock(void *history)
{
    return ((struct history *)history)->now;
}

size_t history_key(unsigned i, char out[24])
{
    return (size_t)snprintf(out, 24, "key-%u", i * 2654435761u);
}

static void choose(struct history *h, const struct history_kind *kind)
{
    static const double rates[] = {0.3, 0.05, 0.01, 0.001};
    tamis_options *o = &h->options;
    *o = (tamis_options){.growth = kind->growth,
                         .layout = kind->layout,
                         .hash = kind->hash,
                         .deletable = kind->deletable,
                         .unique = kind->unique,
                         .key = h->key,
                         .clock = history_clock,
                         .clock_context = h};
    o->fpp = rates[draw(h, 4)];
    o->capacity = 1 + draw(h, kind->growth == TAMIS_FIXED ? 400 : 60);
    if (kind->growth == TAMIS_DYNAMIC && !kind->published) {
        o->capacity = 40 + draw(h, 500);
        o->vectors = (uint32_t)(1 + draw(h, 20));
        if (draw(h, 4) == 0) {
            o->tolerate = 0.9;
            o->vectors = 0;
            o->capacity = 5 + draw(h, 40);
        }
    }
    if (kind->growth == TAMIS_WINDOW) {
        o->window = 1000 + draw(h, 100000);
        o->vectors = (uint32_t)(draw(h, 2) ? 0 : 2 + draw(h, 12));
    }
    if (kind->growth == TAMIS_SMOOTH && kind->layout == TAMIS_LAYOUT_DEFAULT && !kind->compact)
        o->capacity = 0; /* lines from the first key on */
    if (kind->growth == TAMIS_SCALABLE && draw(h, 3) == 0)
        o->expansion = 1 + (double)draw(h, 30) / 10;
    if (kind->growth == TAMIS_FLEXIBLE && draw(h, 2)) {
        for (int i = 0; i < 4; i++)
            h->lambdas[i] = (uint8_t)(1 + draw(h, 4));
        o->lambdas = h->lambdas;
        o->n_lambdas = 1 + draw(h, 4);
    }
    if (kind->published) {
        o->bits = 64 + draw(h, 3000);
        o->hashes = (uint32_t)(1 + draw(h, 12));
    }
    o->overfill = draw(h, 3) == 0;
    o->add_always = !kind->deletable && draw(h, 5) == 0;
    o->shared_adds = kind->growth == TAMIS_FIXED && !kind->deletable && draw(h, 4) == 0;
}

tamis_filter *history_new(struct history *h, unsigned kind, uint64_t seed)
{
    memset(h, 0, sizeof *h);
    h->rng = seed * HISTORY_KINDS + kind;
    h->now = 1000000;
    for (int i = 0; i < TAMIS_KEY_LEN; i++)
        h->key[i] = (uint8_t)draw(h, 256);
    choose(h, &kinds[kind]);
    h->forgets = kinds[kind].growth == TAMIS_WINDOW;
    struct set *s = NULL;
    tamis_reason reason;
    if (filter_new(&s, &h->options, kinds[kind].compact, &reason) != TAMIS_OK)
        printf("%s: %s\n", kinds[kind].name, reason.text);
    return as_filter(s);
}

void history_copy(struct history *to, const struct history *from)
{
    *to = *from;
    to->options.key = to->key;
    to->options.clock_context = to;
    if (to->options.lambdas)
        to->options.lambdas = to->lambdas;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void add(struct history *h, tamis_filter *f, unsigned i)
{
    char key[24];
    size_t len = history_key(i, key);
    if (h->options.unique && h->copies[i])
        return;
    if (tamis_filter_add(f, key, len, NULL) == TAMIS_OK)
        h->copies[i]++;
}

static void take(struct history *h, tamis_filter *f, unsigned i)
{
    char key[24];
    size_t len = history_key(i, key);
    tamis_removed outcome;
    if (h->copies[i] && tamis_filter_remove(f, key, len, &outcome) == TAMIS_OK)
        h->copies[i]--;
}

/* Merges with a filter like it that has some keys of its own. */
static void merge(struct history *h, tamis_filter *f)
{
    tamis_filter *other;
    uint32_t *copies = calloc(HISTORY_KEYS, sizeof *copies);
    if (tamis_filter_new(&other, &h->options, NULL) == TAMIS_OK) {
        for (unsigned i = 0; i < 40; i++) {
            char key[24];
            unsigned at = (unsigned)draw(h, HISTORY_KEYS);
            if (h->options.unique && (h->copies[at] || copies[at]))
                continue;
            if (tamis_filter_add(other, key, history_key(at, key), NULL) == TAMIS_OK)
                copies[at]++;
        }
        unsigned flags = TAMIS_MERGE_DISJOINT | (draw(h, 2) ? TAMIS_MERGE_RESTATE : 0u) |
                         (draw(h, 2) ? TAMIS_MERGE_CONCAT : 0u);
        if (tamis_filter_merge(f, other, flags, NULL) == TAMIS_OK)
            for (unsigned i = 0; i < HISTORY_KEYS; i++)
                h->copies[i] += copies[i];
        tamis_filter_free(other);
    }
    free(copies);
}

static void step(struct history *h, tamis_filter *f)
{
    uint64_t what = draw(h, 100);
    unsigned i = (unsigned)draw(h, HISTORY_KEYS), some = (unsigned)draw(h, 40);
    h->now += draw(h, 4000);
    if (what < 40) {
        for (unsigned j = 0; j < some; j++)
            add(h, f, (i + j) % HISTORY_KEYS);
    } else if (what < 75 && h->options.deletable) {
        for (unsigned j = 0; j < some; j++)
            take(h, f, (i + j) % HISTORY_KEYS);
    } else if (what < 85 && h->options.deletable && !h->options.unique) {
        for (unsigned j = 0; j < 10 + some; j++) /* past the small counters */
            add(h, f, i);
    } else if (what < 90) {
        h->now += draw(h, 40000);
        tamis_filter_expire(f);
    } else if (what < 93) {
        merge(h, f);
    } else if (what < 94) {
        tamis_filter_fold(f, draw(h, 2) ? TAMIS_MERGE_RESTATE : 0, NULL);
    } else if (what == 99 && draw(h, 4) == 0) {
        if (tamis_filter_clear(f) == TAMIS_OK)
            memset(h->copies, 0, sizeof h->copies);
    }
}

void history_steps(struct history *h, tamis_filter *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        step(h, f);
}

unsigned history_compare(const tamis_filter *x, const tamis_filter *y)
{
    unsigned differ = 0;
    for (unsigned i = 0; i < 2 * HISTORY_KEYS; i++) {
        char key[24];
        size_t len = history_key(i, key);
        differ += tamis_filter_has(x, key, len) != tamis_filter_has(y, key, len);
    }
    return differ;
}

unsigned history_denied(const struct history *h, const tamis_filter *f)
{
    unsigned denied = 0;
    for (unsigned i = 0; i < HISTORY_KEYS && !h->forgets; i++) {
        char key[24];
        denied += h->copies[i] && !tamis_filter_has(f, key, history_key(i, key));
    }
    return denied;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

int bytes_write(void *context, const void *data, size_t len)
{
    struct bytes *bytes = context;
    if (bytes->len + len > bytes->room) {
        bytes->room = 2 * (bytes->len + len);
        bytes->data = realloc(bytes->data, bytes->room);
    }
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
    return 0;
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

struct bytes bytes_of(const tamis_filter *f, unsigned flags)
{
    struct bytes bytes = {0};
    if (tamis_filter_encode(f, flags, bytes_write, &bytes) != TAMIS_OK)
        bytes_free(&bytes);
    return bytes;
}

bool bytes_equal(const struct bytes *x, const struct bytes *y)
{
    return x->len == y->len && x->len && memcmp(x->data, y->data, x->len) == 0;
}

struct bytes file_bytes(const char *path)
{
    struct bytes bytes = {0};
    char buffer[65536];
    FILE *file = fopen(path, "rb");
    size_t n;
    while (file && (n = fread(buffer, 1, sizeof buffer, file)) > 0)
        bytes_write(&bytes, buffer, n);
    if (file)
        fclose(file);
    return bytes;
}

void bytes_repair(struct bytes *bytes)
{
    container_repair(bytes->data, bytes->len);
}

void container_repair(uint8_t *d, size_t len)
{
    uint64_t header = get_u64(d + 24), body = get_u64(d + 32), n = get_u32(d + 40), sums = header;
    if (header > len || header < 136 || body > header - 136 || n > (header - 136 - body) / 24)
        return;
    const uint8_t *table = d + BODY_AT + body; /* u32 type, u32 owner, u64 offset, u64 length */
    for (uint64_t i = 0; i < n; i++)
        sums += round_up(get_u64(table + 24 * i + 16) % (2 * len), 64);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t from = get_u64(table + 24 * i + 8), bytes = get_u64(table + 24 * i + 16);
        for (uint64_t at = 0; at < bytes && from <= len && bytes <= len - from && sums + 8 <= len;
             at += PAGE, sums += 8)
            put_u64(d + sums, hash_of(d + from + at, bytes - at < PAGE ? bytes - at : PAGE));
    }
    put_u64(d + header - 8, hash_of(d, header - 8));
}

bool bytes_to_file(const struct bytes *bytes, const char *path)
{
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(bytes->data, 1, bytes->len, file) == bytes->len;
    return (!file || fclose(file) == 0) && written;
}
