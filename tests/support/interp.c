/* See interp.h. The checks are in interp_check.c. */
#include "interp_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

bool interp_fail(struct machine *m, const char *format, ...)
{
    if (m->report->failed)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(m->report->text, sizeof m->report->text, format, args);
    va_end(args);
    m->report->failed = true;
    m->report->at = m->step_at;
    return false;
}

/* ---- the filter that the first bytes choose -------------------------------------------------- */

enum {
    FLAG_DELETABLE = 1,
    FLAG_UNIQUE = 2,
    FLAG_BLOCKED = 4,
    FLAG_PUBLISHED = 8,
    FLAG_OVERFILL = 16,
    FLAG_ADD_ALWAYS = 32
};

static void choose_sizes(tamis_options *o, const uint8_t h[8])
{
    static const uint16_t capacities[] = {1, 2, 3, 7, 8, 10, 16, 24, 33, 64, 65, 100, 200};
    static const double rates[] = {0.3, 0.1, 0.05, 0.01, 1e-3, 1e-4};
    static const uint16_t bits[] = {8, 16, 48, 64, 128, 256, 1280, 4096, 8192};
    static const uint8_t hashes[] = {1, 2, 3, 3, 5, 7, 9, 17};
    o->capacity = capacities[h[2] % 13];
    o->fpp = rates[h[3] % 6];
    if (h[1] & FLAG_PUBLISHED) {
        o->bits = bits[h[6] % 9];
        o->hashes = hashes[h[6] / 9 % 8];
    }
}

static tamis_growth growth_of(uint8_t byte)
{
    return byte % 6 == 3 ? TAMIS_SMOOTH : (tamis_growth)(byte % 5 + 1);
}

/* A layout, a hash for vectors and their sizes are not for lines; a capacity is, in half of the plain ones. */
static void choose_smooth(tamis_options *o, const uint8_t h[8])
{
    o->layout = TAMIS_LAYOUT_DEFAULT;
    o->hash = o->hash == TAMIS_H3 ? TAMIS_XXH3 : o->hash;
    o->bits = o->hashes = 0;
    if (h[6] % 6 == 5)
        o->fpp = 0.5;
    if (h[1] & FLAG_BLOCKED)
        o->capacity = 0;
}

static void choose_growth(struct machine *m, const uint8_t h[8])
{
    static const double expansions[] = {0, 1, 2, 4};
    static const uint8_t lambdas[3][4] = {{1, 1, 1, 1}, {1, 2, 1, 3}, {2, 1, 4, 1}};
    tamis_options *o = &m->options;
    o->growth = growth_of(h[0]);
    bool growing =
        o->growth == TAMIS_SCALABLE || o->growth == TAMIS_FLEXIBLE || o->growth == TAMIS_SMOOTH;
    if (o->growth == TAMIS_SCALABLE)
        o->expansion = expansions[h[5] % 4];
    if (o->growth == TAMIS_FLEXIBLE && h[5] % 4) {
        o->lambdas = lambdas[h[5] % 4 - 1];
        o->n_lambdas = 4;
    }
    if (o->growth == TAMIS_DYNAMIC && !(h[1] & FLAG_PUBLISHED)) {
        o->vectors = h[5] % 8 < 3 ? 0 : h[5] % 8;
        if (h[5] & 8 && o->fpp < 0.2)
            o->tolerate = 0.25;
    }
    if (o->growth == TAMIS_WINDOW) {
        o->vectors = 2 + h[5] % 7;
        o->window = WINDOW;
    }
    o->overfill = !growing && h[1] & FLAG_OVERFILL;
    o->add_always = o->growth != TAMIS_FIXED && !o->deletable && h[1] & FLAG_ADD_ALWAYS;
    if (o->growth == TAMIS_FLEXIBLE && !o->lambdas)
        o->memory_limit = (1 << 17) + (o->hash == TAMIS_H3 ? K_MAX * sizeof(struct h3_matrix) : 0);
}

static void choose_keys(struct machine *m, const uint8_t h[8])
{
    static const uint16_t keys[] = {8, 32, 64, 100, 200, 300, 512};
    m->keys = keys[h[4] % 7];
    uint64_t most = 40 * m->options.capacity; /* this many vectors are enough */
    if (m->keys > most)
        m->keys = most < 8 ? 8 : (uint32_t)most;
    for (uint32_t i = 0; i < m->keys; i++) {
        m->bytes[i][0] = (uint8_t)i;
        m->bytes[i][1] = (uint8_t)(i >> 8);
        m->bytes[i][2] = h[7];
    }
}

/* False: no filter can be made from these bytes, which is no failure. */
static bool choose(struct machine *m, const uint8_t h[8])
{
    static const uint8_t family_key[TAMIS_KEY_LEN] = "interpreter key";
    tamis_options *o = &m->options;
    static const tamis_hash hashes[] = {TAMIS_XXH3, TAMIS_XXH3, TAMIS_SIP, TAMIS_H3};
    o->hash = hashes[h[1] >> 6];
    o->key = family_key;
    o->clock = harness_clock;
    o->clock_context = &m->clock;
    o->deletable = growth_of(h[0]) != TAMIS_WINDOW && h[1] & FLAG_DELETABLE;
    o->unique = o->deletable && h[1] & FLAG_UNIQUE;
    choose_sizes(o, h);
    choose_growth(m, h);
    bool spread = o->growth == TAMIS_DYNAMIC || o->hash == TAMIS_H3 || !(h[1] & FLAG_BLOCKED);
    o->layout = spread ? TAMIS_SPREAD : TAMIS_BLOCKED;
    choose_keys(m, h);
    if (o->growth == TAMIS_SMOOTH)
        choose_smooth(o, h);
    if (o->growth == TAMIS_SMOOTH && h[5] & 1)
        o->allocator = &m->fault.allocator;
    struct slot *first = &m->slot[0];
    tamis_error e = tamis_filter_new(&first->filter, o, NULL);
    if (e != TAMIS_OK) {
        if (e != TAMIS_EARG && e != TAMIS_ELIMIT)
            interp_fail(m, "new: %s", tamis_error_name(e));
        return false;
    }
    for (uint32_t i = 0; i < m->keys; i++)
        m->digests[i] = tamis_filter_digest(first->filter, m->bytes[i], KEY_LEN);
    machine_index_keys(m);
    for (unsigned i = 0; i < SLOTS; i++) {
        if (i && tamis_filter_clone(&m->slot[i].filter, first->filter) != TAMIS_OK)
            return interp_fail(m, "clone of an empty filter");
        if (!model_init(&m->slot[i].model, m->keys, o->deletable, o->unique))
            return false;
    }
    return true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static uint32_t take(struct machine *m)
{
    return m->at < m->end ? *m->at++ : 0;
}

uint32_t machine_take(struct machine *m)
{
    return take(m);
}

static uint32_t take_key(struct machine *m)
{
    uint32_t low = take(m);
    return (low | take(m) << 8) % m->keys;
}

/* The first member from `key` on, or m->keys. */
static uint32_t member_from(const struct machine *m, const struct slot *s, uint32_t key)
{
    for (uint32_t i = 0; i < m->keys; i++)
        if (s->model.copies[(key + i) % m->keys])
            return (key + i) % m->keys;
    return m->keys;
}

/* A key that may be added: any, or in unique filters one that is no member. */
static uint32_t addable_from(const struct machine *m, const struct slot *s, uint32_t key)
{
    for (uint32_t i = 0; i < m->keys; i++)
        if (!s->model.unique || !s->model.copies[(key + i) % m->keys])
            return (key + i) % m->keys;
    return m->keys;
}

/* Steps made many times differ in this. */
static uint32_t shuffle_next(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* ---- adding and removing --------------------------------------------------------------------- */

/* An error that the filter may give when there is no room. */
static bool is_full(const struct machine *m, tamis_error e)
{
    bool bound = m->options.growth != TAMIS_SCALABLE && m->options.growth != TAMIS_FLEXIBLE &&
                 m->options.growth != TAMIS_SMOOTH;
    return e == TAMIS_EFULL ? bound && !m->options.overfill
                            : e == TAMIS_ESPACE && m->options.memory_limit != 0;
}

static bool step_add(struct machine *m, struct slot *s, uint32_t key)
{
    key = addable_from(m, s, key);
    if (key == m->keys || s->model.copies[key] > 5000)
        return true;
    bool had = tamis_filter_has(s->filter, m->bytes[key], KEY_LEN), fresh = !had;
    tamis_error e = TAMIS_OK;
    m->report->steps++;
    m->clock += 1000;
    if (machine_plants(m, PLANT_ADD) && !had)
        m->report->planted = true;
    else
        e = tamis_filter_add(s->filter, m->bytes[key], KEY_LEN, &fresh);
    bool counts = m->options.growth == TAMIS_SMOOTH && m->options.deletable;
    if (is_full(m, e) &&
        (!had || m->options.growth == TAMIS_WINDOW || m->options.add_always || counts))
        return machine_note_full(m, s);
    if (e != TAMIS_OK)
        return interp_fail(m, "add of key %u: %s", key, tamis_error_name(e));
    bool aged = m->options.growth == TAMIS_WINDOW && had; /* what was found may have just gone */
    if (!m->options.add_always && !aged && fresh == had)
        return interp_fail(m, "add of key %u: fresh is %d, was found %d", key, fresh, had);
    return machine_note_add(m, s, key, fresh);
}

/* The same keys one at a time to a copy: it must come out equal. */
static bool step_add_batch(struct machine *m, struct slot *s, const uint32_t *keys, uint32_t n)
{
    tamis_digest digests[256];
    tamis_filter *many;
    size_t done;
    if (tamis_filter_clone(&many, s->filter) != TAMIS_OK)
        return interp_fail(m, "clone");
    for (uint32_t i = 0; i < n; i++)
        digests[i] = m->digests[keys[i]];
    tamis_error e = tamis_filter_add_many(many, digests, n, NULL, &done);
    uint64_t clock = m->clock;
    bool limited = m->options.memory_limit && m->options.growth == TAMIS_SMOOTH;
    bool good = e == TAMIS_OK ? done == n : is_full(m, e) && done < n;
    if (!good)
        interp_fail(m, "add_many: %s, %zu of %u", tamis_error_name(e), done, n);
    for (uint32_t i = 0; good && i < done; i++) {
        bool fresh;
        m->clock = clock; /* a batch is one moment */
        m->report->steps++;
        tamis_error one = tamis_filter_add(s->filter, m->bytes[keys[i]], KEY_LEN, &fresh);
        if (one == TAMIS_ESPACE && limited) { /* a copy may be smaller, and have room for more */
            tamis_filter_free(many);
            return machine_note_full(m, s);
        }
        if (one != TAMIS_OK)
            good = interp_fail(m, "add_many took key %u of %u, add did not: %s", i, n,
                               tamis_error_name(one));
        good = good && machine_note_add(m, s, keys[i], fresh);
    }
    if (good && e != TAMIS_OK && !limited &&
        tamis_filter_add(s->filter, m->bytes[keys[done]], KEY_LEN, NULL) != e)
        good = interp_fail(m, "add takes key %zu, add_many did not", done);
    if (good && !limited && !tamis_filter_equal(s->filter, many))
        good = interp_fail(m, "%zu keys one by one and at once differ", done);
    if (good && take(m) & 1) { /* go on with either */
        tamis_filter *one = s->filter;
        s->filter = many;
        many = one;
    }
    tamis_filter_free(many);
    m->clock += 1000;
    return good;
}

static bool step_remove(struct machine *m, struct slot *s, uint32_t key)
{
    key = member_from(m, s, key);
    if (key == m->keys || !m->options.deletable)
        return true;
    tamis_removed outcome = TAMIS_REMOVED;
    tamis_error e = TAMIS_OK;
    m->report->steps++;
    if (machine_plants(m, PLANT_REMOVE))
        m->report->planted = true;
    else
        e = tamis_filter_remove(s->filter, m->bytes[key], KEY_LEN, &outcome);
    if (e != TAMIS_OK || outcome == TAMIS_ABSENT)
        return interp_fail(m, "removal of member %u: %s, outcome %d", key, tamis_error_name(e),
                           (int)outcome);
    if (machine_plants(m, PLANT_TWICE)) {
        tamis_removed again;
        tamis_filter_remove(s->filter, m->bytes[key], KEY_LEN, &again);
        m->report->planted = again == TAMIS_REMOVED;
    }
    return machine_note_removal(m, s, key, outcome);
}

/* What the counters can refute is refused, and changes nothing. */
static bool step_remove_absent(struct machine *m, struct slot *s, uint32_t key)
{
    while (key < m->keys && s->model.copies[key])
        key++;
    if (key >= m->keys || !m->options.deletable)
        return true;
    tamis_filter *before;
    uint8_t bits;
    filter_bits_have(&s->filter->set, &m->digests[key], 1, &bits);
    if (bits && !machine_hidden(s, m->digests[key]))
        return true; /* not to be told from a member: an illegal removal */
    if (tamis_filter_clone(&before, s->filter) != TAMIS_OK)
        return interp_fail(m, "clone");
    tamis_removed outcome;
    m->report->steps++;
    tamis_error e = tamis_filter_remove(s->filter, m->bytes[key], KEY_LEN, &outcome);
    bool good = e == TAMIS_OK && outcome == TAMIS_ABSENT && tamis_filter_equal(before, s->filter);
    tamis_filter_free(before);
    return good || interp_fail(m, "removal of absent key %u: %s, outcome %d", key,
                               tamis_error_name(e), (int)outcome);
}

/* All of them, copy by copy: ascending, descending or in some order. Nothing may be left. */
static bool step_remove_all(struct machine *m, struct slot *s, uint32_t order)
{
    uint32_t state = order;
    if (!m->options.deletable || s->model.total > 3000)
        return true;
    for (uint32_t i = 0; s->model.total; i++) {
        uint32_t key = order % 3 == 0   ? 0
                       : order % 3 == 1 ? m->keys - 1 - i % m->keys
                                        : shuffle_next(&state) % m->keys;
        if (!step_remove(m, s, key))
            return false;
    }
    return interp_check(m, s);
}

/* ---- whole filters --------------------------------------------------------------------------- */

static bool step_clone(struct machine *m, struct slot *s, struct slot *to)
{
    tamis_filter *copy;
    if (tamis_filter_clone(&copy, s->filter) != TAMIS_OK)
        return interp_fail(m, "clone");
    bool equal = tamis_filter_equal(copy, s->filter) && tamis_filter_equal(s->filter, copy);
    tamis_filter_free(to->filter);
    to->filter = copy;
    if (to != s) {
        model_copy(&to->model, &s->model);
        life_copy(to, s);
    }
    return equal || interp_fail(m, "a clone differs");
}

/* A failed merge or fold: one of these errors, and nothing changed. */
static bool refused(struct machine *m, const struct slot *s, const tamis_filter *before,
                    const char *what, tamis_error e, unsigned flags)
{
    bool lines = e == TAMIS_EKIND && set_lines(&s->filter->set); /* they shrink by themselves */
    bool expected = lines || e == TAMIS_ESHAPE ||
                    (e == TAMIS_ERATE && !(flags & TAMIS_MERGE_RESTATE)) ||
                    (e == TAMIS_ESPACE && m->options.memory_limit);
    tamis_filter_facts was, is;
    m->report->seen[SEEN_REFUSED]++;
    tamis_filter_info(before, &was);
    tamis_filter_info(s->filter, &is);
    if (!expected)
        return interp_fail(m, "%s: %s", what, tamis_error_name(e));
    if (!tamis_filter_equal(s->filter, before) || was.items != is.items || was.fpp != is.fpp ||
        was.capacity != is.capacity || was.unique != is.unique)
        return interp_fail(m, "%s failed with %s and changed the filter", what,
                           tamis_error_name(e));
    return true;
}

static bool step_merge(struct machine *m, struct slot *s, struct slot *other, unsigned flags)
{
    tamis_filter *before;
    uint32_t vectors =
        layers_count(set_layers(&s->filter->set)) + layers_count(set_layers(&other->filter->set));
    if (s->model.total + other->model.total > 4000 || vectors > 64 || !life_may_merge(s, other))
        return true;
    bool part = s->model.unique && other->model.unique && s != other && life_disjoint(s, other);
    if (!life_disjoint(s, other))
        flags &= ~(unsigned)TAMIS_MERGE_DISJOINT;
    for (uint32_t i = 0; i < m->keys && flags & TAMIS_MERGE_DISJOINT; i++) {
        if (!s->model.copies[i] || !other->model.copies[i])
            continue;
        if (!part)
            flags &= ~(unsigned)TAMIS_MERGE_DISJOINT;
        else if (!step_remove(m, s, i)) /* to make it true; some of them will be pending */
            return false;
    }
    if (tamis_filter_clone(&before, s->filter) != TAMIS_OK)
        return interp_fail(m, "clone");
    m->report->steps++;
    tamis_error e = tamis_filter_merge(s->filter, other->filter, flags, NULL);
    bool good = e == TAMIS_OK ? machine_note_merge(m, s, other, before, flags)
                              : refused(m, s, before, "merge", e, flags);
    tamis_filter_free(before);
    return good && interp_check(m, s) && interp_check(m, other);
}

static bool step_fold(struct machine *m, struct slot *s, unsigned flags)
{
    tamis_filter *before;
    if (tamis_filter_clone(&before, s->filter) != TAMIS_OK)
        return interp_fail(m, "clone");
    m->report->steps++;
    tamis_error e = tamis_filter_fold(s->filter, flags, NULL);
    bool good = true;
    if (e != TAMIS_OK)
        good = refused(m, s, before, "fold", e, flags);
    else
        m->report->seen[SEEN_FOLDED]++;
    const struct layers *was = set_layers(&before->set), *is = set_layers(&s->filter->set);
    for (uint32_t i = 0; good && e == TAMIS_OK && i < layers_count(was); i++)
        if (layers_count(is) != layers_count(was) ||
            2 * is->v[i]->bits.units != was->v[i]->bits.units)
            good = interp_fail(m, "fold: vector %u is not half of what it was", i);
    tamis_filter_free(before);
    return good && machine_sync(m, s) && interp_check(m, s);
}

static bool step_intersect(struct machine *m, struct slot *s, const struct slot *other)
{
    tamis_filter *both;
    m->report->steps++;
    tamis_error e = tamis_filter_intersect(&both, s->filter, other->filter, NULL);
    if (e != TAMIS_OK)
        return e == TAMIS_EKIND || e == TAMIS_ESHAPE ||
               interp_fail(m, "intersect: %s", tamis_error_name(e));
    bool good = true;
    for (uint32_t i = 0; good && i < m->keys; i++)
        if (machine_member(m, s, i) && machine_member(m, other, i))
            good = tamis_filter_has(both, m->bytes[i], KEY_LEN) ||
                   interp_fail(m, "key %u is in both, not in the intersection", i);
    tamis_filter_free(both);
    return good;
}

static bool step_clear(struct machine *m, struct slot *s)
{
    tamis_error e = tamis_filter_clear(s->filter);
    m->report->steps++;
    model_clear(&s->model);
    s->crowds = 0;
    s->crowd_keys = 0;
    s->model.unique = set_opt(&s->filter->set)->unique;
    return e == TAMIS_OK ? interp_check(m, s) : interp_fail(m, "clear: %s", tamis_error_name(e));
}

static bool step_expire(struct machine *m, struct slot *s, uint32_t by)
{
    bool window = m->options.growth == TAMIS_WINDOW;
    m->clock += window ? (uint64_t)by * (WINDOW / 64) : by * UINT64_C(100);
    m->report->steps++;
    tamis_error e = tamis_filter_expire(s->filter);
    if (e != (window ? TAMIS_OK : TAMIS_EKIND))
        return interp_fail(m, "expire: %s", tamis_error_name(e));
    return machine_sync(m, s) && interp_check(m, s);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Adds of n keys from `key` on, `step` apart: runs, the same key again and again, random ones. */
static bool add_series(struct machine *m, struct slot *s, uint32_t n, uint32_t key, uint32_t step)
{
    for (uint32_t i = 0; i < n; i++, key += step)
        if (!step_add(m, s, key % m->keys))
            return false;
    return true;
}

static bool add_batch(struct machine *m, struct slot *s, uint32_t n, uint32_t key, uint32_t spread)
{
    uint32_t keys[256], state = key, taken = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = (key + shuffle_next(&state) % spread) % m->keys;
        bool again = s->model.copies[x] > 0;
        for (uint32_t j = 0; s->model.unique && j < taken; j++)
            again |= keys[j] == x;
        if (!s->model.unique || !again)
            keys[taken++] = x;
    }
    if (m->options.growth == TAMIS_FLEXIBLE && !m->options.n_lambdas) {
        /* many keys in one moment are a forecast of huge vectors: let time pass */
        for (uint32_t i = 0; i < taken; i++)
            if (!step_add(m, s, keys[i]))
                return false;
        return true;
    }
    return step_add_batch(m, s, keys, taken);
}

static bool churn(struct machine *m, struct slot *s, uint32_t n, uint32_t key)
{
    uint32_t state = key;
    for (uint32_t i = 0; i < n; i++)
        if (!step_add(m, s, shuffle_next(&state) % m->keys) ||
            !step_remove(m, s, shuffle_next(&state) % m->keys))
            return false;
    return true;
}

static bool remove_series(struct machine *m, struct slot *s, uint32_t n, uint32_t key,
                          uint32_t step)
{
    for (uint32_t i = 0; i < n; i++, key += step)
        if (!step_remove(m, s, key % m->keys))
            return false;
    return true;
}

/* Every case takes its arguments in order, so that a program reads alike everywhere. */
static bool one_step(struct machine *m, uint32_t what, struct slot *s)
{
    struct slot *other;
    uint32_t key, n;
    switch (what) {
    case 10: /* the same key past 15 copies */
        key = take_key(m);
        return add_series(m, s, 10 + take(m) % 30, key, 0);
    case 11:
    case 12: /* a run */
        key = take_key(m);
        return add_series(m, s, take(m) % 64, key, 1);
    case 13:
    case 14: /* a batch with repeats */
        key = take_key(m);
        return add_batch(m, s, take(m), key, 40);
    case 15:
        key = take_key(m);
        return add_batch(m, s, 60 + take(m) % 16, key, m->keys);
    case 16: /* to the brim */
        key = take_key(m);
        return add_series(m, s, m->keys, key, 1);
    case 17:
    case 18:
        key = take_key(m);
        return remove_series(m, s, take(m) % 64, key, 1);
    case 19:
        key = take_key(m);
        return remove_series(m, s, 1 + take(m) % 16, key, 7);
    case 20:
        return step_remove_all(m, s, take(m));
    case 21:
        return step_remove_absent(m, s, take_key(m));
    case 22:
        key = take_key(m);
        return churn(m, s, take(m), key);
    case 23:
        return step_clone(m, s, s) && machine_reload(m, s);
    case 24:
        return step_clone(m, s, &m->slot[take(m) % SLOTS]);
    case 25:
    case 26:
        other = &m->slot[take(m) % SLOTS];
        n = take(m) % 8;
        return step_merge(m, s, other, n);
    case 27:
        return step_fold(m, s, take(m) & 1 ? TAMIS_MERGE_RESTATE : 0);
    case 28:
        return step_intersect(m, s, &m->slot[take(m) % SLOTS]);
    case 29:
        return take(m) % 4 == 0 ? step_clear(m, s) : interp_check(m, s);
    case 30:
    case 31:
        return step_expire(m, s, take(m));
    default:
        return what % 2 ? step_remove(m, s, take_key(m)) : step_add(m, s, take_key(m));
    }
}

/* Steps of one program; a fuzzer would make them endless. */
#define STEPS_MAX 20000

static void run(struct machine *m)
{
    uint32_t n = 0;
    while (m->at < m->end && m->report->steps < STEPS_MAX) {
        m->step_at = (size_t)(m->at - m->start);
        uint32_t byte = take(m);
        struct slot *s = &m->slot[(byte >> 5) % SLOTS];
        if (m->report->planted)
            break; /* the last check tells */
        bool life = byte >= 192 && m->options.growth == TAMIS_SMOOTH;
        if (!(life ? life_step(m, byte % 32, s) : one_step(m, byte % 32, s)))
            return;
        machine_plant(m, s);
        if (++n % 8 == 0 && !interp_check(m, s))
            return;
    }
    for (unsigned i = 0; i < SLOTS; i++)
        if (!interp_check(m, &m->slot[i]))
            return;
    for (unsigned i = 0; i < SLOTS && !m->report->planted; i++)
        if (!life_all_go(m, &m->slot[i]) || !step_remove_all(m, &m->slot[i], m->start[7] + i))
            return;
}

bool interp_run(const uint8_t *program, size_t len, enum interp_plant plant,
                struct interp_report *report)
{
    *report = (struct interp_report){0};
    if (len < 8)
        return true;
    struct machine *m = calloc(1, sizeof *m);
    if (!m)
        return true;
    m->report = report;
    m->plant = plant;
    m->start = program;
    m->at = program + 8;
    m->end = program + len;
    m->clock = 1000000;
    fault_init(&m->fault);
    if (choose(m, program))
        run(m);
    for (unsigned i = 0; i < SLOTS; i++) {
        tamis_filter_free(m->slot[i].filter);
        model_free(&m->slot[i].model);
    }
    if (!fault_clean(&m->fault))
        interp_fail(m, "%zu blocks are left", m->fault.blocks);
    free(m->cells);
    free(m);
    return !report->failed;
}

/* ---- making programs ------------------------------------------------------------------------- */

size_t interp_random(uint64_t *rng, uint8_t *program, size_t room)
{
    bool short_one = rng_next(rng) % 4 > 0; /* a draw a statement: the same in every build */
    size_t len = 8 + rng_next(rng) % (short_one ? 80 : room - 8);
    for (size_t i = 0; i < len; i++)
        program[i] = (uint8_t)rng_next(rng);
    if (rng_next(rng) % 4) /* mostly deletable, and half of them as published: tiny and crowded */
        program[1] |= FLAG_DELETABLE;
    if (rng_next(rng) % 2) {
        program[1] |= FLAG_PUBLISHED;
        program[6] = (uint8_t)(rng_next(rng) % 6);
        program[6] += (uint8_t)(9 * (rng_next(rng) % 5));
    }
    return len;
}

void interp_smooth(uint8_t *program, bool deletable, bool capacity)
{
    program[0] = 3; /* growth_of() */
    program[1] &= (uint8_t) ~(FLAG_DELETABLE | FLAG_BLOCKED);
    program[1] |= (uint8_t)((deletable ? FLAG_DELETABLE : 0) | (capacity ? 0 : FLAG_BLOCKED));
}

static bool fails(const uint8_t *program, size_t len, enum interp_plant plant, size_t *runs)
{
    struct interp_report report;
    (*runs)++;
    return !interp_run(program, len, plant, &report);
}

/* Drops pieces, largest first; then makes bytes smaller. */
static bool shrink_once(uint8_t *program, size_t *len, enum interp_plant plant, size_t *runs)
{
    uint8_t *tried = malloc(*len);
    bool better = false;
    for (size_t piece = *len / 2; tried && piece; piece /= 2)
        for (size_t i = 8; i + piece <= *len && *runs < 20000;) {
            memcpy(tried, program, i);
            memcpy(tried + i, program + i + piece, *len - i - piece);
            if (fails(tried, *len - piece, plant, runs)) {
                *len -= piece;
                memcpy(program, tried, *len);
                better = true;
            } else {
                i += piece;
            }
        }
    free(tried);
    for (size_t i = 0; i < *len && *runs < 20000; i++) {
        uint8_t byte = program[i], smaller[] = {0, 1, (uint8_t)(byte / 2), (uint8_t)(byte - 1)};
        for (unsigned j = 0; j < 4 && program[i] == byte; j++) {
            program[i] = smaller[j] < byte ? smaller[j] : byte;
            if (program[i] != byte && !fails(program, *len, plant, runs))
                program[i] = byte;
        }
        better |= program[i] != byte;
    }
    return better;
}

size_t interp_shrink(uint8_t *program, size_t len, enum interp_plant plant,
                     struct interp_report *report)
{
    size_t runs = 0;
    while (runs < 20000 && shrink_once(program, &len, plant, &runs))
        continue;
    interp_run(program, len, plant, report);
    return len;
}
