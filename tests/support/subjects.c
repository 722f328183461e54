/* See subjects.h. */
#include "subjects.h"

#include "format/pieces.h"
#include "harness.h"
#include "set/set.h"

enum { STEP_RECORDS = 4 }; /* steps of a world for one of a history, which adds many keys */

static struct set *start_filter(struct subject *s, unsigned kind, uint64_t seed)
{
    struct history *h = &s->past.history;
    tamis_filter *f = history_new(h, kind, seed);
    s->kind = KIND_FILTER;
    s->name = history_kind(kind);
    s->opening = (tamis_open_options){.key = h->key, .clock = history_clock, .clock_context = h};
    return filter_set(f);
}

static struct set *start_records(struct subject *s, unsigned kind, uint64_t seed)
{
    static const char *const names[] = {"records",         "records deletable",
                                        "records, table",  "records, table, deletable",
                                        "records, filter", "records, filter, deletable"};
    tamis_records_options *o = &s->world.options;
    s->past.rng = seed * SUBJECT_KINDS + kind;
    world_draw(&s->world, &s->past.rng, kind % 2);
    o->verifier = (tamis_verifier)(TAMIS_VERIFIER_NONE + kind / 2 % 3);
    o->n_combos = o->verifier == TAMIS_VERIFIER_NONE ? 0 : o->n_combos;
    s->kind = KIND_RECORDS;
    s->name = names[kind % 6];
    s->opening = (tamis_open_options){.key = s->world.key, .clock = world_clock};
    return records_set(world_start(&s->world));
}

struct subject *subject_new(unsigned kind, uint64_t seed, unsigned steps)
{
    struct subject *s = calloc(1, sizeof *s);
    s->set = kind < HISTORY_KINDS ? start_filter(s, kind, seed)
                                  : start_records(s, kind - HISTORY_KINDS, seed);
    if (CHECK_MSG(s->set != NULL, "%s, seed %" PRIx64, s->name, seed)) {
        subject_steps(s, s->set, steps);
        s->bytes = bytes_of_set(s->set, 0);
    }
    CHECK_MSG(s->bytes.len > 0, "%s, seed %" PRIx64, s->name, seed);
    return s;
}

struct subject *subject_small(unsigned kind, uint64_t seed, size_t most)
{
    for (;; seed++) {
        struct subject *s = subject_new(kind, seed, 20);
        if (s->bytes.len < most)
            return s;
        subject_free(s);
    }
}

void subject_free(struct subject *s)
{
    set_free(s->set);
    world_free(&s->world);
    bytes_free(&s->bytes);
    free(s);
}

void subject_each(unsigned step, uint64_t seed, size_t most, void (*test)(struct subject *s))
{
    for (unsigned kind = 0; kind < SUBJECT_KINDS; kind += step) {
        unsigned long before = atomic_load(&harness.failed_checks);
        struct subject *s = subject_small(kind, seed, most);
        test(s);
        if (atomic_load(&harness.failed_checks) != before)
            printf("kind %u: %s\n", kind, s->name);
        subject_free(s);
    }
}

bool subject_deletable(const struct subject *s)
{
    return s->kind == KIND_FILTER ? s->past.history.options.deletable
                                  : s->world.options.set.deletable;
}

void subject_steps(struct subject *s, struct set *set, unsigned n)
{
    if (s->kind == KIND_FILTER)
        history_steps(&s->past.history, as_filter(set), n);
    else
        world_steps(&s->world, as_records(set), &s->past.rng, s->past.copies, STEP_RECORDS * n);
}

struct set *subject_sibling(struct subject *s, unsigned steps)
{
    struct past past = s->past;
    tamis_filter *f = NULL;
    tamis_records *x = NULL;
    CHECK((s->kind == KIND_FILTER ? tamis_filter_new(&f, &s->past.history.options, NULL)
                                  : tamis_records_new(&x, &s->world.options, NULL)) == TAMIS_OK);
    memset(s->past.history.copies, 0, sizeof s->past.history.copies);
    memset(s->past.copies, 0, sizeof s->past.copies);
    struct set *set = f ? filter_set(f) : records_set(x);
    subject_steps(s, set, steps);
    past.rng = s->past.rng;
    past.history.rng = s->past.history.rng;
    s->past = past;
    return set;
}

unsigned subject_compare(const struct subject *s, struct set *x, struct set *y)
{
    return s->kind == KIND_FILTER ? history_compare(as_filter(x), as_filter(y))
                                  : world_compare(&s->world, as_records(x), as_records(y));
}

unsigned subject_lost(const struct subject *s, struct set *x, struct set *y)
{
    unsigned lost = 0;
    if (s->kind != KIND_FILTER) /* none of them answers "no" to what its bits have */
        return subject_compare(s, x, y);
    for (unsigned i = 0; i < 2 * HISTORY_KEYS; i++) {
        char key[24];
        size_t len = history_key(i, key);
        lost +=
            tamis_filter_has(as_filter(x), key, len) && !tamis_filter_has(as_filter(y), key, len);
    }
    return lost;
}

unsigned subject_denied(const struct subject *s, struct set *set)
{
    if (s->kind == KIND_FILTER)
        return history_denied(&s->past.history, as_filter(set));
    unsigned denied = 0;
    uint8_t found[RECORDS];
    for (uint32_t i = 0; i <= s->world.p; i++) {
        tamis_records_has_many(as_records(set), i < s->world.p ? UINT64_C(1) << i : 0,
                               s->world.digests, s->world.n, found);
        for (uint32_t r = 0; r < s->world.n; r++)
            denied += s->past.copies[r] && !found[r];
    }
    return denied;
}

struct bytes bytes_of_set(const struct set *set, unsigned flags)
{
    struct bytes bytes = {0};
    if (set_encode(set, flags, bytes_write, &bytes) != TAMIS_OK)
        bytes_free(&bytes);
    return bytes;
}

tamis_error set_decode(struct set **out, enum kind kind, const struct bytes *bytes,
                       const tamis_open_options *o, tamis_reason *reason)
{
    tamis_filter *f = NULL;
    tamis_records *x = NULL;
    tamis_error e = kind == KIND_FILTER
                        ? tamis_filter_decode(&f, bytes->data, bytes->len, o, reason)
                        : tamis_records_decode(&x, bytes->data, bytes->len, o, reason);
    *out = f ? filter_set(f) : records_set(x);
    return e;
}

/* ---- sets made for a purpose ----------------------------------------------------------------- */

struct set *set_of(enum kind kind, tamis_records_options o)
{
    static const tamis_attribute attributes[] = {{.name = "a"}, {.name = "b", .distinct = 50}};
    tamis_filter *f = NULL;
    tamis_records *x = NULL;
    o.attributes = attributes;
    o.n_attributes = 2;
    tamis_reason reason = {0};
    tamis_error e = kind == KIND_FILTER ? tamis_filter_new(&f, &o.set, &reason)
                                        : tamis_records_new(&x, &o, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
    return f ? filter_set(f) : records_set(x);
}

/* The record of item i: the item itself, and one of fifty values. */
#define RECORD(i) ((tamis_key[]){{&(i), sizeof(i)}, {&(uint64_t){(i) % 50}, sizeof(uint64_t)}})

tamis_error item_add(struct set *set, uint64_t i)
{
    return set_kind(set) == TAMIS_KIND_FILTER ? tamis_filter_add(as_filter(set), &i, sizeof i, NULL)
                                              : tamis_records_add(as_records(set), RECORD(i), NULL);
}

tamis_error item_remove(struct set *set, uint64_t i)
{
    return set_kind(set) == TAMIS_KIND_FILTER
               ? tamis_filter_remove(as_filter(set), &i, sizeof i, NULL)
               : tamis_records_remove(as_records(set), RECORD(i), NULL);
}

bool item_has(struct set *set, uint64_t i)
{
    return set_kind(set) == TAMIS_KIND_FILTER
               ? tamis_filter_has(as_filter(set), &i, sizeof i)
               : tamis_records_has(as_records(set), RECORD(i), 3).maybe;
}
