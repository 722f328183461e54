/* What the interpreter notes after each step, and what it compares. See interp_machine.h. */
#include "interp_machine.h"

#include <stdlib.h>

#include "bits/lines_place.h"

/* ---- small things ---------------------------------------------------------------------------- */

void machine_index_keys(struct machine *m)
{
    for (uint32_t i = 0; i < m->keys; i++) {
        uint32_t at = m->digests[i].b % INDEX_ROOM;
        while (m->index[at])
            at = (at + 1) % INDEX_ROOM;
        m->index[at] = (uint16_t)(i + 1);
    }
}

/* The key of a digest, or m->keys. */
static uint32_t key_with(const struct machine *m, tamis_digest d)
{
    for (uint32_t at = d.b % INDEX_ROOM; m->index[at]; at = (at + 1) % INDEX_ROOM) {
        uint32_t key = m->index[at] - 1u;
        if (m->digests[key].a == d.a && m->digests[key].b == d.b)
            return key;
    }
    return m->keys;
}

/* All vectors have one shape, so their cells can be added up whatever key is where. */
static bool one_shape(const struct machine *m)
{
    return m->options.growth == TAMIS_FIXED || m->options.growth == TAMIS_DYNAMIC;
}

/* Is it known where every copy is? Removals from dynamic filters unite vectors, unions anything. */
static bool placed(const struct machine *m, const struct slot *s)
{
    bool movable = m->options.growth == TAMIS_DYNAMIC && m->options.deletable;
    return s->model.placed && !movable && m->options.growth != TAMIS_FIXED &&
           m->options.growth != TAMIS_SMOOTH;
}

bool machine_member(const struct machine *m, const struct slot *s, uint32_t key)
{
    if (m->options.growth == TAMIS_WINDOW && m->clock - s->model.added[key] > WINDOW)
        return false;
    return s->model.copies[key] > 0;
}

static const struct pending *pending_of(const struct slot *s, tamis_digest digest)
{
    const struct removals *r = &s->filter->set.stack->more->removals;
    for (uint32_t i = 0; i < r->room; i++) {
        const struct pending *p = removals_entry(r, i);
        if (p && p->digest.a == digest.a && p->digest.b == digest.b)
            return p;
    }
    return NULL;
}

bool machine_hidden(const struct slot *s, tamis_digest digest)
{
    const struct pending *p = pending_of(s, digest);
    return set_opt(&s->filter->set)->unique && p && p->hides && atomic_load(&p->copies) > 0;
}

/* ---- notes ----------------------------------------------------------------------------------- */

static struct vector *vector_of_id(const tamis_filter *f, uint32_t id)
{
    const struct layers *stack = set_layers(&f->set);
    for (uint32_t i = 0; i < layers_count(stack); i++)
        if (stack->l[i]->id == id)
            return stack->v[i];
    return NULL;
}

/* Vectors that went: of a window by age, of the others only when nothing was in them. */
static bool note_gone(struct machine *m, struct slot *s)
{
    struct model *model = &s->model;
    for (uint32_t i = 0; i < model->vectors;) {
        struct model_vector *v = &model->vector[i];
        if (vector_of_id(s->filter, v->id)) {
            i++;
            continue;
        }
        if (v->count && m->options.growth != TAMIS_WINDOW)
            return interp_fail(m, "vector %u went with %u copies in it", v->id, v->count);
        *v = model->vector[--model->vectors];
        m->report->seen[SEEN_SHRUNK]++;
    }
    return true;
}

/* Which vector took the key: the one whose count rose. */
static bool note_place(struct machine *m, struct slot *s, uint32_t key, bool fresh)
{
    const struct layers *stack = set_layers(&s->filter->set);
    uint32_t rose = 0;
    if (!placed(m, s))
        return true;
    if (!note_gone(m, s))
        return false;
    for (uint32_t i = 0; i < layers_count(stack); i++) {
        const struct vector *v = stack->v[i];
        uint32_t id = stack->l[i]->id;
        struct model_vector *mine = model_vector_at(&s->model, id);
        if (!mine) {
            s->model.placed = false; /* more vectors than the model looks after */
            return true;
        }
        if (v->count == mine->count)
            continue;
        if (v->count != mine->count + 1 || rose++)
            return interp_fail(m, "after an add vector %u has %llu copies, not %u", id,
                               (unsigned long long)v->count, mine->count);
        model_put(&s->model, id, key);
    }
    /* Counts, unless the filter is full; in a window, unless it is in the newest vector. */
    bool either = (m->options.add_always || m->options.growth == TAMIS_WINDOW) && !fresh;
    return rose == fresh || either || interp_fail(m, "add of key %u raised %u counts", key, rose);
}

/* The counts that are always exact. */
static bool check_counts(struct machine *m, struct slot *s)
{
    uint64_t pending = atomic_load(&s->filter->set.stack->more->removals.total);
    uint64_t members = s->model.total + s->crowd_keys;
    if (s->model.deletable && set_stored(&s->filter->set) != members + pending)
        return interp_fail(m, "%llu copies stored and %llu pending, but %llu members",
                           (unsigned long long)set_stored(&s->filter->set),
                           (unsigned long long)pending, (unsigned long long)members);
    return true;
}

bool machine_note_full(struct machine *m, struct slot *s)
{
    m->report->seen[SEEN_FULL]++;
    return check_counts(m, s);
}

bool machine_note_copy(struct machine *m, struct slot *s, uint32_t key, bool fresh)
{
    struct model *model = &s->model;
    bool noted = true;
    model->added[key] = m->clock;
    if (model->deletable) {
        model->copies[key]++;
        model->total++;
        if (model->pending[key]) {
            model->pending[key]--;
            m->report->seen[SEEN_CANCELLED]++;
        } else {
            noted = note_place(m, s, key, true);
        }
    } else {
        model->total += !model->copies[key];
        model->copies[key] = 1;
        model->fresh += fresh;
        noted = note_place(m, s, key, fresh);
    }
    return noted;
}

bool machine_note_add(struct machine *m, struct slot *s, uint32_t key, bool fresh)
{
    if (!machine_note_copy(m, s, key, fresh) || !check_counts(m, s))
        return false;
    return tamis_filter_has(s->filter, m->bytes[key], KEY_LEN) ||
           interp_fail(m, "key %u was just added and is denied", key);
}

/* Reads what is pending. A key's copies, stored in all, can only have become fewer: then they were
   settled. `before` says how many were stored, `key` had one more member. */
static bool note_pending(struct machine *m, struct slot *s, uint32_t key)
{
    struct model *model = &s->model;
    const struct removals *r = &s->filter->set.stack->more->removals;
    uint32_t now[MODEL_KEYS] = {0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->room; i++) {
        const struct pending *p = removals_entry(r, i);
        uint32_t who = p ? key_with(m, p->digest) : 0;
        if (!p)
            continue;
        if (who == m->keys)
            return interp_fail(m, "a digest is pending that was never removed");
        now[who] += (uint32_t)atomic_load(&p->copies);
        sum += atomic_load(&p->copies);
    }
    if (sum != atomic_load(&r->total))
        return interp_fail(m, "the pending removals do not add up");
    for (uint32_t i = 0; i < m->keys; i++) {
        uint32_t before = model->copies[i] + model->pending[i] + (i == key);
        uint32_t after = model->copies[i] + now[i];
        if (after > before)
            return interp_fail(m, "key %u: more pending than was removed", i);
        m->report->seen[SEEN_SETTLED] += now[i] < model->pending[i];
        if (after < before && placed(m, s) && !model_settle(model, i, after))
            return interp_fail(m, "key %u: settled where it may not be", i);
        model->pending[i] = now[i];
    }
    return true;
}

bool machine_sync(struct machine *m, struct slot *s)
{
    return note_pending(m, s, m->keys) && (one_shape(m) || !s->model.placed || note_gone(m, s));
}

/* Nothing is left: the filter is as it was created. */
static bool check_empty(struct machine *m, struct slot *s)
{
    tamis_filter_facts info;
    tamis_filter_info(s->filter, &info);
    const struct settings *opt = set_opt(&s->filter->set);
    uint32_t vectors = opt->growth != TAMIS_SMOOTH || (opt->capacity && !opt->deletable);
    if (info.items || info.pending || info.vectors != vectors || info.fill > 0)
        return interp_fail(m, "empty, but items %llu, pending %llu, vectors %u, fill %g",
                           (unsigned long long)info.items, (unsigned long long)info.pending,
                           info.vectors, info.fill);
    return true;
}

bool machine_note_removal(struct machine *m, struct slot *s, uint32_t key, tamis_removed outcome)
{
    struct model *model = &s->model;
    uint32_t pending = model->pending[key];
    model->copies[key]--;
    model->total--;
    if (!note_pending(m, s, key))
        return false;
    if ((outcome == TAMIS_PENDING) != (model->pending[key] == pending + 1))
        return interp_fail(m, "key %u: outcome %d, pending %u, before %u", key, (int)outcome,
                           model->pending[key], pending);
    m->report->seen[SEEN_PENDING] += outcome == TAMIS_PENDING;
    if (!check_counts(m, s) || (placed(m, s) && !note_gone(m, s)))
        return false;
    if (model->total == 0 && s->crowds == 0) {
        m->report->seen[SEEN_EMPTIED]++;
        bool unique = model->unique;
        model_clear(model);
        model->unique = unique;
        return check_empty(m, s);
    }
    if (model->copies[key] && !tamis_filter_has(s->filter, m->bytes[key], KEY_LEN))
        return interp_fail(m, "key %u has %u copies left and is denied", key, model->copies[key]);
    return true;
}

/* ---- unions ---------------------------------------------------------------------------------- */

/* Where the other's keys went: known if each of its vectors became one more here. */
static bool adopt(struct slot *s, const struct model *theirs, const tamis_filter *other,
                  const tamis_filter *before)
{
    const struct layers *from = set_layers(&other->set), *now = set_layers(&s->filter->set);
    uint32_t last = 0, n = layers_count(from);
    bool any = false;
    uint32_t grown = layers_count(now) - layers_count(set_layers(&before->set)), full = 0;
    for (uint32_t i = 0; i < n; i++)
        full += from->v[i]->count > 0;
    if (layers_count(now) < layers_count(set_layers(&before->set)) || grown != full)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct model_vector *source = NULL;
        uint32_t id = UINT32_MAX;
        for (uint32_t j = 0; j < theirs->vectors; j++)
            if (theirs->vector[j].id == from->l[i]->id)
                source = &theirs->vector[j];
        if (!source || source->count == 0)
            continue;
        for (uint32_t j = 0; j < layers_count(now); j++) /* the next new id, in order */
            if (!vector_of_id(before, now->l[j]->id) && (!any || now->l[j]->id > last) &&
                now->l[j]->id < id)
                id = now->l[j]->id;
        struct model_vector *made =
            s->model.vectors < MODEL_VECTORS ? model_vector_at(&s->model, id) : NULL;
        if (!made)
            return false;
        *made = *source;
        made->id = last = id;
        any = true;
    }
    return true;
}

bool machine_note_merge(struct machine *m, struct slot *s, const struct slot *other,
                        const tamis_filter *before, unsigned flags)
{
    struct model *model = &s->model;
    const struct model *theirs = &other->model;
    uint32_t pending = 0;
    for (uint32_t i = 0; i < m->keys; i++)
        pending += model->pending[i] + theirs->pending[i];
    bool known = placed(m, s) && theirs->placed && pending == 0;
    model->placed = known && adopt(s, theirs, other == s ? before : other->filter, before);
    bool unique = model->unique && theirs->unique && flags & TAMIS_MERGE_DISJOINT;
    model->total = 0;
    for (uint32_t i = 0; i < m->keys; i++) {
        uint32_t sum = model->copies[i] + theirs->copies[i];
        model->copies[i] = model->deletable ? sum : sum > 0;
        model->pending[i] += theirs->pending[i];
        model->total += model->copies[i];
        if (theirs->copies[i] && theirs->added[i] > model->added[i])
            model->added[i] = theirs->added[i];
    }
    model->unique = unique;
    model->counted = false;
    model->merged = true;
    life_merge(s, other);
    m->report->seen[SEEN_MERGED]++;
    if (set_opt(&s->filter->set)->unique != unique)
        return interp_fail(m, "merge: unique is %d", set_opt(&s->filter->set)->unique);
    return machine_sync(m, s) && check_counts(m, s);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool check_answers(struct machine *m, struct slot *s)
{
    uint8_t found[MODEL_KEYS];
    tamis_filter_has_many(s->filter, m->digests, m->keys, found);
    for (uint32_t i = 0; i < m->keys; i++) {
        bool member = machine_member(m, s, i);
        if (member && !found[i])
            return interp_fail(m, "key %u is a member (%u copies, %u pending) and is denied", i,
                               s->model.copies[i], s->model.pending[i]);
        if (member || !s->model.unique || !s->model.pending[i])
            continue;
        bool hidden = machine_hidden(s, m->digests[i]);
        if ((hidden || !s->model.merged) && found[i])
            return interp_fail(m, "key %u is pending in a unique filter and not denied", i);
    }
    return true;
}

static bool check_info(struct machine *m, struct slot *s)
{
    const struct model *model = &s->model;
    tamis_filter_facts info;
    const struct lines *lines = set_lines(&s->filter->set);
    uint64_t pending = 0, items = lines ? lines->keys : 0;
    tamis_filter_info(s->filter, &info);
    for (uint32_t i = 0; i < m->keys; i++)
        pending += model->pending[i];
    for (uint32_t i = 0; i < info.vectors; i++) {
        tamis_vector_facts v;
        if (!tamis_filter_vector(s->filter, i, &v) || v.ones > v.bits)
            return interp_fail(m, "vector %u of %u is strange", i, info.vectors);
        items += v.items;
    }
    if (info.pending != pending || items != info.items + pending)
        return interp_fail(m, "info: %llu pending, %llu items; model: %llu and %llu",
                           (unsigned long long)info.pending, (unsigned long long)info.items,
                           (unsigned long long)pending, (unsigned long long)model->total);
    if (model->deletable && info.items != model->total + s->crowd_keys)
        return interp_fail(m, "items %llu, members %llu", (unsigned long long)info.items,
                           (unsigned long long)(model->total + s->crowd_keys));
    /* A key that only the slot of a coarse entry matches, beyond its keys, is found, and stored nevertheless. */
    uint64_t found_too = m->options.growth == TAMIS_SMOOTH ? model->fresh / 4096 : 0;
    if (!model->deletable && model->counted && m->options.growth != TAMIS_WINDOW &&
        !m->options.add_always &&
        (info.items < model->fresh || info.items - model->fresh > found_too))
        return interp_fail(m, "items %llu, fresh adds %llu", (unsigned long long)info.items,
                           (unsigned long long)model->fresh);
    bool rates = info.fpp >= 0 && info.fpp <= 1 && info.fpp_now >= 0 && info.fpp_now <= 1 &&
                 info.fill >= 0 && info.fill <= 1 && info.distinct >= 0;
    return rates || interp_fail(m, "info: rate %g, now %g, fill %g, distinct %g", info.fpp,
                                info.fpp_now, info.fill, info.distinct);
}

static struct model_shape shape_of(const struct vector *v)
{
    return (struct model_shape){v->bits.kernel->layout, v->bits.units, v->bits.k};
}

/* Cells of this many copies by key, in a vector of this shape. */
static bool cells_of(struct machine *m, const struct vector *v, const uint16_t *some,
                     const struct model *all)
{
    struct model_shape shape = shape_of(v);
    uint64_t n = model_cells_total(&shape), positions[K_MAX];
    if (n > m->cells_room) {
        free(m->cells);
        m->cells = malloc(n * sizeof *m->cells);
        m->cells_room = m->cells ? n : 0;
        if (!m->cells)
            return false;
    }
    memset(m->cells, 0, n * sizeof *m->cells);
    for (uint32_t i = 0; i < m->keys; i++) {
        uint32_t copies = some ? some[i] : all->copies[i] + all->pending[i];
        if (copies && m->options.hash != TAMIS_H3) {
            model_add_cells(&shape, m->digests[i], copies, m->cells);
        } else if (copies) { /* its matrices have a test of their own */
            vector_positions(v, m->digests[i], positions);
            for (unsigned j = 0; j < v->bits.k; j++)
                m->cells[positions[j]] += copies;
        }
    }
    return true;
}

/* Bits and counters of one vector agree, whatever is in it. */
static bool check_vector(struct machine *m, const struct vector *v, uint32_t id)
{
    uint64_t n = vector_positions_total(v), ones = 0, sum = 0;
    if (!v->deletable)
        return true;
    for (uint64_t p = 0; p < n; p++) {
        uint64_t counter = counters_get(&v->counters, p);
        if (vector_bit(v, p) != (counter > 0))
            return interp_fail(m, "vector %u: bit %llu is %d, its counter %llu", id,
                               (unsigned long long)p, vector_bit(v, p),
                               (unsigned long long)counter);
        ones += counter > 0;
        sum += counter;
    }
    m->report->seen[SEEN_ESCAPE] += v->counters.escapes.used > 0;
    if (ones != v->ones || sum != v->bits.k * v->count)
        return interp_fail(m, "vector %u: %llu ones of %llu, %llu counted for %llu copies", id,
                           (unsigned long long)ones, (unsigned long long)v->ones,
                           (unsigned long long)sum, (unsigned long long)v->count);
    return true;
}

/* Vectors first to last together hold the cells in m->cells. */
static bool check_cells(struct machine *m, struct vector *const *v, uint32_t n)
{
    uint64_t total = vector_positions_total(v[0]);
    for (uint64_t p = 0; p < total; p++) {
        uint64_t counted = 0;
        bool bit = false;
        for (uint32_t i = 0; i < n; i++) {
            bit |= vector_bit(v[i], p);
            counted += v[i]->deletable ? counters_get(&v[i]->counters, p) : 0;
        }
        if (bit != (m->cells[p] > 0) || (v[0]->deletable && counted != m->cells[p]))
            return interp_fail(m, "one of %u vectors: cell %llu is %d, %llu; should be %u", n,
                               (unsigned long long)p, bit, (unsigned long long)counted,
                               m->cells[p]);
    }
    return true;
}

static bool check_vectors(struct machine *m, struct slot *s)
{
    const struct layers *stack = set_layers(&s->filter->set);
    uint32_t n = layers_count(stack);
    for (uint32_t i = 0; i < n; i++)
        if (!check_vector(m, stack->v[i], stack->l[i]->id))
            return false;
    if (one_shape(m) && !(cells_of(m, stack->v[0], NULL, &s->model) && check_cells(m, stack->v, n)))
        return false;
    for (uint32_t i = 0; i < n && placed(m, s); i++) {
        struct model_vector *mine = model_vector_at(&s->model, stack->l[i]->id);
        if (!mine) {
            s->model.placed = false;
            break;
        }
        if (mine->count != stack->v[i]->count)
            return interp_fail(m, "vector %u: %llu copies, not %u", mine->id,
                               (unsigned long long)stack->v[i]->count, mine->count);
        if (!cells_of(m, stack->v[i], mine->copies, NULL) || !check_cells(m, &stack->v[i], 1))
            return false;
    }
    return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct entries {
    struct machine *m;
    const struct slot *s;
    uint64_t copies;
    bool compare; /* each is a member's */
};

/* An entry begins as its key does. There are no more copies of it than of members that it matches. */
static tamis_error check_entry(void *context, uint64_t place, unsigned known, uint64_t copies)
{
    struct entries *e = context;
    uint64_t members = 0;
    e->copies += copies;
    for (uint32_t i = 0; e->compare && i < e->m->keys; i++)
        if ((e->m->digests[i].a ^ place) >> (64 - known) == 0)
            members += e->s->model.copies[i];
    if (e->compare && copies > members)
        interp_fail(e->m, "%llu entries of %u bits for %llu members", (unsigned long long)copies,
                    known, (unsigned long long)members);
    return TAMIS_OK;
}

static bool check_lines(struct machine *m, struct slot *s)
{
    const struct lines *lines = set_lines(&s->filter->set);
    struct entries e = {.m = m, .s = s};
    e.compare = m->options.deletable || !(s->model.merged || m->options.add_always);
    e.compare &= s->crowds == 0; /* they would have to be compared too */
    if (!lines)
        return true;
    lines_each(lines, check_entry, &e);
    if (e.copies != lines->keys)
        return interp_fail(m, "%llu entries in lines of %llu keys", (unsigned long long)e.copies,
                           (unsigned long long)lines->keys);
    for (uint32_t i = 0; i < lines_parts(lines); i++)
        if (part_wrong(lines_part(lines, i)))
            return interp_fail(m, "part %u of the lines: %s", i, part_wrong(lines_part(lines, i)));
    m->report->seen[SEEN_LINES]++;
    return !m->report->failed;
}

bool interp_check(struct machine *m, struct slot *s)
{
    m->report->seen[SEEN_GROWN] += layers_count(set_layers(&s->filter->set)) > 1;
    bool empty = s->model.total == 0 && s->crowds == 0 && m->options.growth != TAMIS_WINDOW;
    bool lives = m->options.growth == TAMIS_SMOOTH;
    return !m->report->failed && (!lives || life_check(m, s)) && machine_sync(m, s) &&
           check_counts(m, s) && check_answers(m, s) && check_info(m, s) && check_vectors(m, s) &&
           check_lines(m, s) && (!empty || check_empty(m, s));
}

/* ---- faults from outside --------------------------------------------------------------------- */

#define PLANT_AFTER 20 /* steps */

bool machine_plants(const struct machine *m, enum interp_plant plant)
{
    return m->plant == plant && !m->report->planted && m->report->steps > PLANT_AFTER;
}

/* In the first vector: a bit that is set, clear, or counted twice. */
static bool plant_cell(enum interp_plant plant, struct vector *v)
{
    for (uint64_t p = 0; p < vector_positions_total(v); p++) {
        if (plant == PLANT_BIT && vector_bit(v, p))
            vector_bit_clear(v, p);
        else if (plant == PLANT_RESIDUE && !vector_bit(v, p))
            vector_bit_set(v, p);
        else if (plant == PLANT_COUNTER && v->deletable && counters_get(&v->counters, p) > 1)
            counters_sub(&v->counters, p, 1);
        else
            continue;
        return true;
    }
    return false;
}

/* In the first line that has some: a slot less, one more, or a copy in the stash less. */
static bool plant_slot(enum interp_plant plant, const struct lines *lines)
{
    struct body *b = lines_part(lines, 0);
    struct stash *stash = atomic_load(&b->stash);
    for (uint32_t i = 0; plant == PLANT_COUNTER && stash && i < stash->room; i++)
        if ((stash->entry[i] & 0xfff) > 1)
            return stash->entry[i]--;
    for (uint32_t i = 0; plant != PLANT_COUNTER && i < b->lines; i++) {
        uint8_t *line = body_line(b, i);
        unsigned used = lines_kernel()->used(line, b->width);
        if (used == 0 || used == line_slots(b->width))
            continue;
        uint32_t slot = slot_get(line, b->width, used - 1);
        slot_put(line, b->width, plant == PLANT_BIT ? used - 1 : used,
                 plant == PLANT_BIT ? 0 : slot ^ 2);
        return true;
    }
    return false;
}

static bool plant_pending(struct removals *r)
{
    for (uint32_t i = 0; i < r->room; i++) {
        uint64_t copies = r->entries[i].used ? atomic_load(&r->entries[i].copies) : 0;
        if (copies == 0)
            continue;
        atomic_store(&r->entries[i].copies, copies - 1);
        atomic_store(&r->total, atomic_load(&r->total) - 1);
        return true;
    }
    return false;
}

void machine_plant(struct machine *m, struct slot *s)
{
    const struct lines *lines = set_lines(&s->filter->set);
    bool known = m->options.deletable || m->options.growth == TAMIS_FIXED || placed(m, s) || lines;
    if (m->plant == PLANT_PENDING && machine_plants(m, PLANT_PENDING))
        m->report->planted = plant_pending(&s->filter->set.stack->more->removals);
    else if (machine_plants(m, m->plant) && m->plant >= PLANT_BIT && known)
        m->report->planted = lines ? plant_slot(m->plant, lines)
                                   : plant_cell(m->plant, set_layers(&s->filter->set)->v[0]);
}
