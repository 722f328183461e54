/*
 * Steps of whole lives, for smooth filters: crowds of up to 33,000 keys that come and go, so that lines grow, split, shrink
 * and are joined; thousands of copies of one key; patches; bytes in pieces while keys are added; memory that fails;
 * limits of memory. See interp_machine.h.
 */
#include "interp_machine.h"

#include <math.h>
#include <stdlib.h>

#include "format/pieces.h"
#include "histories.h"

#define RUN        512
#define CROWD_MOST 150000 /* keys of one filter */

/* Any number of keys, none of which is in the universe of the program. */
static void crowd_digests(uint64_t from, size_t n, tamis_digest digests[RUN])
{
    for (size_t i = 0; i < n; i++) {
        uint64_t x = (from + i) * UINT64_C(0x9E3779B97F4A7C15);
        x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
        digests[i] = (tamis_digest){x ^ x >> 31, x * UINT64_C(0xD6E8FEB86659FD93)};
    }
}

/* ---- crowds ---------------------------------------------------------------------------------- */

static size_t some_of(uint64_t left)
{
    return left < RUN ? (size_t)left : RUN;
}

/* Adds new keys; an error ends it: there is no room, or memory fails. */
static tamis_error crowd_add(struct machine *m, struct slot *s, uint64_t n)
{
    tamis_digest digests[RUN];
    uint8_t fresh[RUN];
    struct crowd *crowd = &s->crowd[s->crowds];
    tamis_error e = TAMIS_OK;
    uint64_t from = m->next_crowd;
    *crowd = (struct crowd){from, 0};
    for (uint64_t left = n; left && e == TAMIS_OK;) {
        size_t some = some_of(left), done;
        crowd_digests(from + crowd->n, some, digests);
        e = tamis_filter_add_many(s->filter, digests, some, fresh, &done);
        for (size_t i = 0; i < done; i++)
            s->model.fresh += fresh[i];
        crowd->n += done;
        left -= done;
    }
    m->next_crowd += n;
    s->crowd_keys += crowd->n;
    s->crowds += crowd->n > 0;
    m->report->steps += 1 + n / 16;
    return e;
}

static bool step_come(struct machine *m, struct slot *s, uint64_t n)
{
    if (s->crowds == CROWDS || s->crowd_keys + n > CROWD_MOST)
        return true;
    tamis_error e = crowd_add(m, s, n);
    return e == TAMIS_OK || (e == TAMIS_ESPACE && m->options.memory_limit) ||
           interp_fail(m, "adds of %llu keys: %s", (unsigned long long)n, tamis_error_name(e));
}

/* Removes the first or the last n keys of a crowd. */
static bool crowd_remove(struct machine *m, struct slot *s, uint32_t which, uint64_t n, bool first)
{
    tamis_digest digests[RUN];
    uint8_t outcomes[RUN];
    struct crowd *crowd = &s->crowd[which];
    uint64_t from = first ? crowd->from : crowd->from + crowd->n - n;
    m->report->steps += 1 + n / 16;
    for (uint64_t i = 0; i < n; i += RUN) {
        size_t some = some_of(n - i), done;
        crowd_digests(from + i, some, digests);
        tamis_error e = tamis_filter_remove_many(s->filter, digests, some, outcomes, &done);
        if (e != TAMIS_OK || done != some)
            return interp_fail(m, "removals: %s", tamis_error_name(e));
        for (size_t j = 0; j < some; j++)
            if (outcomes[j] != TAMIS_REMOVED)
                return interp_fail(m, "key %llu of a crowd is not removed",
                                   (unsigned long long)(from + i + j));
    }
    crowd->from += first ? n : 0;
    crowd->n -= n;
    s->crowd_keys -= n;
    if (crowd->n == 0)
        *crowd = s->crowd[--s->crowds];
    return true;
}

static bool step_go(struct machine *m, struct slot *s, uint32_t which, uint32_t share)
{
    if (!m->options.deletable || s->crowds == 0)
        return true;
    which %= s->crowds;
    return crowd_remove(m, s, which, 1 + (s->crowd[which].n - 1) * share / 255, share % 2);
}

bool life_all_go(struct machine *m, struct slot *s)
{
    while (m->options.deletable && s->crowds)
        if (!crowd_remove(m, s, 0, s->crowd[0].n, false))
            return false;
    return true;
}

void life_copy(struct slot *to, const struct slot *from)
{
    memcpy(to->crowd, from->crowd, sizeof to->crowd);
    to->crowds = from->crowds;
    to->crowd_keys = from->crowd_keys;
}

bool life_may_merge(const struct slot *s, const struct slot *other)
{
    return s->crowds + other->crowds < CROWDS && s->crowd_keys + other->crowd_keys <= CROWD_MOST;
}

bool life_disjoint(const struct slot *s, const struct slot *other)
{
    bool apart = true;
    for (uint32_t i = 0; i < s->crowds; i++)
        for (uint32_t j = 0; j < other->crowds; j++)
            apart &= s->crowd[i].from + s->crowd[i].n <= other->crowd[j].from ||
                     other->crowd[j].from + other->crowd[j].n <= s->crowd[i].from;
    return apart;
}

void life_merge(struct slot *s, const struct slot *other)
{
    for (uint32_t i = 0, n = other->crowds; i < n; i++)
        s->crowd[s->crowds++] = other->crowd[i];
    s->crowd_keys += other->crowd_keys;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Batches of every kernel of this machine find the same. */
static bool kernels_agree(struct machine *m, const struct slot *s, const tamis_digest *digests,
                          size_t n)
{
    static const struct lines_kernel *const kernels[] = {&lines_scalar,
#ifdef TAMIS_X86
                                                         &lines_avx2, &lines_avx512
#endif
    };
    const struct lines *l = set_lines(&s->filter->set);
    size_t all = sizeof kernels / sizeof *kernels, here = (size_t)cpu_isa() + 1;
    uint8_t found[RUN], other[RUN];
    for (size_t i = 0; l && i < here && i < all; i++) {
        kernels[i]->has(lines_root_of(l), digests, n, i ? other : found);
        if (i && memcmp(found, other, n) != 0)
            return interp_fail(m, "%s finds others than %s", kernels[i]->name, kernels[0]->name);
    }
    return true;
}

bool life_check(struct machine *m, struct slot *s)
{
    tamis_digest digests[RUN];
    uint8_t found[RUN];
    tamis_filter_facts info;
    uint64_t hits = 0, asked = 4 * RUN;
    for (uint32_t c = 0; c < s->crowds; c++)
        for (uint64_t i = 0; i < s->crowd[c].n; i += RUN) {
            size_t some = some_of(s->crowd[c].n - i);
            crowd_digests(s->crowd[c].from + i, some, digests);
            tamis_filter_has_many(s->filter, digests, some, found);
            for (size_t j = 0; j < some; j++)
                if (!found[j])
                    return interp_fail(m, "key %llu of a crowd is denied",
                                       (unsigned long long)(s->crowd[c].from + i + j));
            if (i % (16 * RUN) == 0 && !kernels_agree(m, s, digests, some))
                return false;
        }
    tamis_filter_info(s->filter, &info);
    for (uint64_t i = 0; i < asked; i += RUN) {
        crowd_digests((UINT64_C(1) << 60) + m->next_crowd + i, RUN, digests);
        tamis_filter_has_many(s->filter, digests, RUN, found);
        for (size_t j = 0; j < RUN; j++)
            hits += found[j];
    }
    if (!kernels_agree(m, s, digests, RUN))
        return false;
    double most = info.fpp_now * (double)asked;
    if ((double)hits > most + 7 * sqrt(most) + 4) /* it is made many times */
        return interp_fail(m, "%llu of %llu found at a rate of %g", (unsigned long long)hits,
                           (unsigned long long)asked, info.fpp_now);
    if (info.vectors == 0 && info.fpp_now > info.fpp) /* the bits of small vectors vary */
        return interp_fail(m, "a rate of %g, but %g is stated", info.fpp_now, info.fpp);
    if (info.memory_limit && info.bytes > info.memory_limit)
        return interp_fail(m, "%llu bytes, but %llu are the limit", (unsigned long long)info.bytes,
                           (unsigned long long)info.memory_limit);
    return true;
}

/* ---- other steps ----------------------------------------------------------------------------- */

static bool step_copies(struct machine *m, struct slot *s, uint32_t key, uint32_t n)
{
    tamis_digest digests[RUN];
    if (s->model.unique || s->model.copies[key] + n > 5000)
        return true;
    for (size_t i = 0; i < RUN; i++)
        digests[i] = m->digests[key];
    m->report->steps += 1 + n / 16;
    for (uint32_t left = n; left;) {
        size_t some = some_of(left), done;
        uint8_t fresh[RUN];
        tamis_error e = tamis_filter_add_many(s->filter, digests, some, fresh, &done);
        if (e != TAMIS_OK && !(e == TAMIS_ESPACE && m->options.memory_limit))
            return interp_fail(m, "copies of key %u: %s", key, tamis_error_name(e));
        for (size_t i = 0; i < done; i++)
            if (!machine_note_copy(m, s, key, fresh[i]))
                return false;
        left = e == TAMIS_OK ? left - (uint32_t)some : 0;
    }
    return true;
}

/* What changes one filter into another, applied to a copy. */
static bool step_patch(struct machine *m, struct slot *s, struct slot *other, bool keep)
{
    struct bytes patch = {0};
    tamis_filter *made = NULL;
    tamis_reason reason = {0};
    m->report->steps++;
    if (tamis_filter_clone(&made, other->filter) != TAMIS_OK)
        return interp_fail(m, "clone");
    tamis_filter_limit(made, 0);
    tamis_error e = tamis_filter_diff(made, s->filter, 0, bytes_write, &patch, &reason);
    if (e == TAMIS_OK)
        e = tamis_filter_apply(made, patch.data, patch.len, &reason);
    bytes_free(&patch);
    bool good = e == TAMIS_OK && tamis_filter_equal(made, s->filter);
    if (!good)
        interp_fail(m, "a patch: %s, %s", tamis_error_name(e), reason.text);
    if (!good || !keep || other == s) {
        tamis_filter_free(made);
        return good;
    }
    tamis_filter_free(other->filter);
    other->filter = made;
    model_copy(&other->model, &s->model);
    life_copy(other, s);
    return interp_check(m, other);
}

/* The pieces of this moment, while keys are added. */
static bool pieces_pull_beside(struct machine *m, struct slot *s, struct bytes *bytes)
{
    enum { ROOM = 1 << 16 };
    struct pieces_out *out;
    uint8_t *piece = malloc(ROOM);
    tamis_error e = pieces_out_begin(&out, &s->filter->set, 0);
    bool good = e == TAMIS_OK && piece && pieces_keep(&s->filter->set);
    for (uint64_t total = good ? pieces_out_size(out) : 0; good && bytes->len < total;) {
        size_t len;
        if (s->crowds < CROWDS && s->crowd_keys < CROWD_MOST)
            e = crowd_add(m, s, 300);
        good = (e == TAMIS_OK || m->options.memory_limit) &&
               pieces_out_read(out, &s->filter->set, bytes->len, piece, ROOM, &len) == TAMIS_OK &&
               bytes_write(bytes, piece, len) == 0;
    }
    pieces_keep_end(&s->filter->set);
    if (out)
        pieces_out_end(out);
    free(piece);
    return good || interp_fail(m, "pieces: %s", tamis_error_name(e));
}

static bool step_pieces(struct machine *m, struct slot *s, uint32_t size)
{
    struct bytes bytes = {0};
    struct set *loaded = NULL;
    tamis_filter *before;
    tamis_reason reason = {0};
    tamis_open_options o = {.clock = m->options.clock, .clock_context = m->options.clock_context};
    if (tamis_filter_clone(&before, s->filter) != TAMIS_OK)
        return interp_fail(m, "clone");
    bool good = pieces_pull_beside(m, s, &bytes);
    struct pieces_in *in = good ? pieces_in_begin(bytes.len, bytes.len, &o) : NULL;
    tamis_error e = in ? TAMIS_OK : TAMIS_ENOMEM;
    for (size_t at = 0, some; good && e == TAMIS_OK && at < bytes.len; at += some) {
        some = bytes.len - at < 1000 + 97 * size ? bytes.len - at : 1000 + 97 * size;
        e = pieces_in_add(in, bytes.data + at, some, &reason);
    }
    if (good && e == TAMIS_OK)
        e = pieces_in_end(in, &loaded, &reason);
    if (in)
        pieces_in_free(in);
    if (good && e != TAMIS_OK)
        good = interp_fail(m, "pieces: %s", reason.text);
    if (good && !tamis_filter_equal(as_filter(loaded), before))
        good = interp_fail(m, "pieces of another moment");
    if (loaded)
        tamis_filter_free(as_filter(loaded));
    tamis_filter_free(before);
    bytes_free(&bytes);
    return good && interp_check(m, s);
}

/* Memory fails once, or from some call on: what could not be done changed nothing, and what needs none is done. */
static bool step_fault(struct machine *m, struct slot *s, struct slot *other, uint32_t what,
                       uint32_t at)
{
    tamis_filter *before, *made = NULL;
    tamis_error e = TAMIS_OK;
    bool good = true;
    uint64_t fresh = s->model.fresh;
    if (s->crowds == CROWDS || tamis_filter_clone(&before, s->filter) != TAMIS_OK)
        return true;
    fault_arm(&m->fault, 1 + at / 2, at % 2);
    if (what % 4 == 0) {
        e = crowd_add(m, s, 1);
        good = e == TAMIS_OK || (tamis_filter_equal(s->filter, before) && fresh == s->model.fresh);
    } else if (what % 4 == 1) {
        e = crowd_add(m, s, 700);
    } else if (what % 4 == 2) {
        good = step_go(m, s, at, what);
    } else if (life_may_merge(s, other) && tamis_filter_clone(&made, s->filter) == TAMIS_OK) {
        e = tamis_filter_merge(made, other->filter, TAMIS_MERGE_RESTATE, NULL);
        good = e == TAMIS_OK || tamis_filter_equal(made, before);
    }
    fault_arm(&m->fault, 0, false);
    tamis_filter_free(made);
    tamis_filter_free(before);
    good = good && (e == TAMIS_OK || e == TAMIS_ENOMEM || m->options.memory_limit);
    if (!good)
        return interp_fail(m, "without memory, step %u: %s", what % 4, tamis_error_name(e));
    return interp_check(m, s);
}

static bool step_limit(struct machine *m, struct slot *s, uint32_t more)
{
    tamis_filter_facts info;
    tamis_filter_brief(s->filter, &info);
    m->report->steps++;
    m->options.memory_limit = 1; /* of some filter */
    return tamis_filter_limit(s->filter, more ? info.bytes + info.bytes * more / 128 : 0) ==
               TAMIS_OK ||
           interp_fail(m, "limit");
}

bool life_step(struct machine *m, uint32_t what, struct slot *s)
{
    uint32_t x = machine_take(m), y = machine_take(m);
    struct slot *other = &m->slot[y % SLOTS];
    m->report->seen[SEEN_LIVES]++;
    switch (what) {
    case 0: /* one or two more than a part holds, or just a split */
        return step_come(m, s, x % 2 ? 32700 : 17000 + y * 64) && interp_check(m, s);
    case 1:
    case 2:
    case 3:
    case 4:
        return step_come(m, s, (UINT64_C(1) << x % 14) + y);
    case 5:
    case 6:
    case 7:
    case 8:
        return step_go(m, s, x, y) && interp_check(m, s);
    case 9:
    case 10:
        return step_copies(m, s, x % m->keys, y * 20);
    case 11:
    case 12:
        return step_patch(m, s, other, x % 2);
    case 13:
    case 14:
        return step_pieces(m, s, x);
    case 15:
        return step_limit(m, s, x % 64);
    case 16:
        return life_all_go(m, s) && interp_check(m, s);
    default:
        return step_fault(m, s, other, x, y % 32);
    }
}
