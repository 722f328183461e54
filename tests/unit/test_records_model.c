/*
 * Records beside a model: an exact multiset of them, and where each copy was put. Random adds,
 * legal removals, removals of what is not there, questions of every kind, copies, unions, clearing;
 * tiny sizes and high rates, so that layers cover one another and removals stay pending. No member
 * may be denied, and every counter, bit and table entry must be what the copies explain.
 */
#include "fault.h"
#include "harness.h"
#include "histories.h"
#include "set/set.h"
#include "worlds.h"
#include "tamis/records.h"

#define LAYERS 128 /* that the model looks after */

struct model_layer {
    uint32_t id;
    uint32_t copies[RECORDS];
};

struct model {
    uint32_t copies[RECORDS]; /* of members; 0 or 1 in plain sets */
    uint32_t layers;
    struct model_layer layer[LAYERS];
};

/* What the runs came across, to see that they came across it. */
static struct {
    uint64_t pending, settled, cancelled, layers, denied, escaped;
} seen;

/* ---- the model ------------------------------------------------------------------------------- */

static struct model_layer *model_layer(struct model *m, uint32_t id)
{
    for (uint32_t i = 0; i < m->layers; i++)
        if (m->layer[i].id == id)
            return &m->layer[i];
    if (m->layers == LAYERS) { /* one that is gone */
        for (uint32_t i = 0; i < m->layers; i++) {
            uint32_t any = 0;
            for (uint32_t r = 0; r < RECORDS; r++)
                any |= m->layer[i].copies[r];
            if (any == 0) {
                m->layer[i] = (struct model_layer){.id = id};
                return &m->layer[i];
            }
        }
        return NULL;
    }
    m->layer[m->layers] = (struct model_layer){.id = id};
    return &m->layer[m->layers++];
}

static uint32_t model_total(const struct model *m)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < RECORDS; i++)
        total += m->copies[i];
    return total;
}

static uint32_t pending_copies(const tamis_records *x, const tamis_digest *record)
{
    uint32_t entry = pending_find(&x->set.stack->more->removals, record);
    return entry == NO_ENTRY
               ? 0
               : (uint32_t)atomic_load(&x->set.stack->more->removals.entries[entry].copies);
}

/* `left` copies of the record stay in all layers together: only one layer may have held it, or none
   keeps it, else nobody could know where to take it from. */
static bool model_settle(struct model *m, uint32_t record, uint32_t left)
{
    uint32_t stored = 0, holders = 0;
    struct model_layer *last = NULL;
    for (uint32_t i = 0; i < m->layers; i++) {
        stored += m->layer[i].copies[record];
        if (m->layer[i].copies[record]) {
            holders++;
            last = &m->layer[i];
        }
        if (left == 0)
            m->layer[i].copies[record] = 0;
    }
    if (stored == left || (left == 0 && ++seen.settled))
        return true;
    if (stored < left || holders != 1)
        return false;
    last->copies[record] = left;
    return true;
}

/* Settles in the model what the set has settled. */
static bool model_sync(struct world *w, struct model *m, const tamis_records *x)
{
    for (uint32_t r = 0; r < w->n; r++)
        if (!CHECK_MSG(model_settle(m, r, m->copies[r] + pending_copies(x, world_digests(w, r))),
                       "record %u: settled without proof", r))
            return false;
    return true;
}

/* Which layer grew, by comparing counts before and after an add. */
struct counts {
    uint32_t n;
    uint32_t id[LAYERS];
    uint64_t count[LAYERS];
};

static void counts_take(const tamis_records *x, struct counts *c)
{
    const struct layers *layers = set_layers(&x->set);
    c->n = 0;
    for (uint32_t i = 0; i < layers_count(layers) && i < LAYERS; i++) {
        c->id[c->n] = layers->l[i]->id;
        c->count[c->n++] = layers->l[i]->count;
    }
}

static bool model_put(struct model *m, const tamis_records *x, const struct counts *before,
                      uint32_t record)
{
    const struct layers *layers = set_layers(&x->set);
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        uint64_t old = 0;
        for (uint32_t j = 0; j < before->n; j++)
            old = before->id[j] == layers->l[i]->id ? before->count[j] : old;
        if (layers->l[i]->count == old)
            continue;
        struct model_layer *mine = model_layer(m, layers->l[i]->id);
        if (!CHECK(mine && layers->l[i]->count == old + 1))
            return false;
        mine->copies[record]++;
        return true;
    }
    return CHECK_MSG(false, "record %u went nowhere", record);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Asked part by part, layer by layer. */
static bool has_plainly(const tamis_records *x, uint64_t mask, const tamis_digest *record)
{
    const struct layers *layers = set_layers(&x->set);
    struct spot spots[SPOTS_MAX];
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        layer_spots(&x->set, layers->l[i], record, spots);
        bool has = true;
        for (uint32_t j = 0; j < layers->l[i]->parts; j++) {
            uint64_t about = j < x->set.stack->form->attributes
                                 ? UINT64_C(1) << j
                                 : x->set.stack->form->masks[j - x->set.stack->form->attributes];
            if ((about & ~mask) == 0)
                has &= spot_has(&spots[j]);
        }
        if (has)
            return true;
    }
    return false;
}

static bool check_part(const struct part *part, uint64_t count)
{
    const struct vector *v = part->vector;
    if (!v || !v->deletable)
        return true;
    uint64_t sum = 0, ones = 0;
    for (uint64_t i = 0; i < vector_positions_total(v); i++) {
        uint64_t counter = counters_get(&v->counters, i);
        sum += counter;
        ones += counter > 0;
        seen.escaped += counter >= COUNTER_ESCAPE;
        if (!CHECK(vector_bit(v, i) == (counter > 0)))
            return false;
    }
    return CHECK(ones == v->ones) && CHECK(sum == v->bits.k * count) && CHECK(v->count == count);
}

/* Every counter of the layer is what its copies explain. */
static bool check_layer(const struct world *w, const struct model_layer *mine,
                        const tamis_records *x, struct layer *layer)
{
    uint64_t positions[K_MAX], total = 0;
    for (uint32_t j = 0; j < layer->parts; j++) {
        struct part *part = &layer->part[j];
        struct vector *v = part->vector;
        uint32_t *cells = v ? calloc(vector_positions_total(v), sizeof *cells) : NULL;
        struct table table = {.slots = NULL};
        bool same = true;
        total = 0;
        for (uint32_t r = 0; r < w->n; r++) {
            uint32_t copies = mine ? mine->copies[r] : 0;
            tamis_digest d = part_digest(&x->set, layer, j, world_digests(w, r));
            total += copies;
            if (v && copies) {
                vector_positions(v, d, positions);
                for (unsigned k = 0; k < v->bits.k; k++)
                    cells[positions[k]] += copies;
            } else if (copies) {
                same &= table_reserve(&table, &mem_system, 1);
                table_add(&table, d.a, copies);
            }
        }
        for (uint64_t i = 0; v && i < vector_positions_total(v); i++)
            same &= v->deletable ? counters_get(&v->counters, i) == cells[i]
                                 : vector_bit(v, i) == (cells[i] > 0);
        same &= v != NULL || (set_opt(&x->set)->deletable ? table_equal(&part->table, &table)
                                                          : part->table.used == table.used);
        table_free(&table, &mem_system);
        free(cells);
        if (!CHECK_MSG(same, "layer %u, part %u: not what its records explain", layer->id, j) ||
            !check_part(part, total))
            return false;
    }
    return CHECK(layer->count == total);
}

static bool check_all(struct world *w, struct model *m, const tamis_records *x)
{
    const struct layers *layers = set_layers(&x->set);
    uint64_t stored = 0;
    seen.layers = layers_count(layers) > seen.layers ? layers_count(layers) : seen.layers;
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        stored += layers->l[i]->count;
        if (!CHECK_MSG(layers->l[i]->count || layers_count(layers) == 1, "an empty layer"))
            return false;
        if (!check_layer(w, model_layer(m, layers->l[i]->id), x, layers->l[i]))
            return false;
    }
    tamis_records_facts info;
    tamis_records_info(x, &info);
    bool empty = model_total(m) == 0 && info.set.pending == 0;
    return CHECK(stored == set_stored(&x->set)) && CHECK(info.set.items == model_total(m)) &&
           CHECK(!(w->options.set.deletable && empty) ||
                 (info.layers == 1 && set_stored(&x->set) == 0));
}

/* Members are found by any question; the library's way of asking is the plain one. */
static bool check_answers(struct world *w, struct model *m, const tamis_records *x, uint64_t *rng)
{
    uint8_t found[RECORDS];
    uint64_t all = form_mask_all(x->set.stack->form),
             mask = rng_next(rng) % 3 ? rng_next(rng) & all : all;
    mask = mask ? mask : all;
    memset(found, 2, sizeof found);
    tamis_records_has_many(x, mask, w->digests, w->n, found);
    for (uint32_t r = 0; r < w->n; r++) {
        if (!CHECK_MSG(!m->copies[r] || found[r] == 1, "member %u denied, mask %llx", r,
                       (unsigned long long)mask))
            return false;
        seen.denied += found[r] == 0;
        if (!CHECK(found[r] == has_plainly(x, mask, world_digests(w, r))))
            return false;
    }
    tamis_key keys[TAMIS_ATTRIBUTES_MAX];
    char text[TAMIS_ATTRIBUTES_MAX][16];
    uint32_t one = (uint32_t)(rng_next(rng) % w->n);
    world_keys(w, one, keys, text);
    tamis_answer answer = tamis_records_has(x, keys, mask);
    return CHECK(answer.maybe == found[one]) &&
           CHECK(answer.verified == tamis_records_verifies(x, mask));
}

#define VALUES 3 /* in a question, for one attribute */

/* All choices one by one. */
static bool any_choice(const tamis_records *x, const tamis_choice *choices, size_t n, uint64_t mask)
{
    tamis_digest record[TAMIS_ATTRIBUTES_MAX] = {{0, 0}};
    size_t at[TAMIS_ATTRIBUTES_MAX] = {0}, i;
    do {
        uint8_t found;
        for (i = 0; i < n; i++)
            record[choices[i].attribute] = choices[i].values[at[i]];
        tamis_records_has_many(x, mask, record, 1, &found);
        if (found)
            return true;
        for (i = 0; i < n && ++at[i] == choices[i].n; i++)
            at[i] = 0;
    } while (i < n);
    return false;
}

static bool check_choices(struct world *w, struct model *m, const tamis_records *x, uint64_t *rng)
{
    tamis_choice choices[TAMIS_ATTRIBUTES_MAX];
    tamis_digest values[TAMIS_ATTRIBUTES_MAX][VALUES];
    uint32_t number[TAMIS_ATTRIBUTES_MAX][VALUES];
    uint64_t mask = 0;
    size_t n = 0;
    uint32_t start = (uint32_t)(rng_next(rng) % w->p), most = 1 + (uint32_t)(rng_next(rng) % 5);
    for (uint32_t i = start; i < w->p && n < most; i += 1 + (uint32_t)(rng_next(rng) % 2)) {
        tamis_choice *c = &choices[n];
        *c = (tamis_choice){i, values[n], 1 + (size_t)(rng_next(rng) % VALUES)};
        for (size_t j = 0; j < c->n; j++) {
            number[n][j] = w->value[rng_next(rng) % w->n][i];
            char text[16];
            values[n][j] = tamis_records_digest(x, i, world_value(number[n][j], text));
        }
        mask |= UINT64_C(1) << i;
        n++;
    }
    tamis_answer answer = {false, false};
    bool member = false;
    for (uint32_t r = 0; r < w->n; r++) {
        bool fits = m->copies[r] > 0;
        for (size_t i = 0; i < n && fits; i++) {
            bool any = false;
            for (size_t j = 0; j < choices[i].n; j++)
                any |= number[i][j] == w->value[r][choices[i].attribute];
            fits &= any;
        }
        member |= fits;
    }
    return CHECK(tamis_records_ask(x, choices, n, &answer, NULL) == TAMIS_OK) &&
           CHECK(answer.maybe || !member) &&
           CHECK(answer.maybe == any_choice(x, choices, n, mask)) &&
           CHECK(answer.verified == tamis_records_verifies(x, mask));
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool step_add(struct world *w, struct model *m, tamis_records *x, uint32_t record)
{
    struct counts before;
    counts_take(x, &before);
    bool fresh, member = m->copies[record] > 0;
    uint64_t stored = set_stored(&x->set);
    bool cancels = pending_copies(x, world_digests(w, record)) > 0;
    tamis_key keys[TAMIS_ATTRIBUTES_MAX];
    char text[TAMIS_ATTRIBUTES_MAX][16];
    world_keys(w, record, keys, text);
    tamis_error e = tamis_records_add(x, keys, &fresh);
    if (e == TAMIS_EFULL && !w->options.set.overfill)
        return CHECK(w->options.set.growth == TAMIS_FIXED ||
                     w->options.set.growth == TAMIS_DYNAMIC) &&
               CHECK(!member) && CHECK(set_stored(&x->set) == stored);
    if (!CHECK(e == TAMIS_OK) || !CHECK(!(member && fresh)))
        return false;
    seen.cancelled += cancels;
    if (!w->options.set.deletable) {
        m->copies[record] |= fresh;
        return CHECK(set_stored(&x->set) == stored + fresh) &&
               (!fresh || model_put(m, x, &before, record));
    }
    m->copies[record]++;
    return CHECK(set_stored(&x->set) == stored + !cancels) &&
           (cancels || model_put(m, x, &before, record));
}

/* Plain sets deny nothing that they called present; the model holds what was fresh. */
static bool step_remove(struct world *w, struct model *m, tamis_records *x, uint32_t record)
{
    tamis_removed outcome;
    tamis_key keys[TAMIS_ATTRIBUTES_MAX];
    char text[TAMIS_ATTRIBUTES_MAX][16];
    world_keys(w, record, keys, text);
    if (m->copies[record] == 0) {
        uint8_t found;
        tamis_records_has_many(x, 0, world_digests(w, record), 1, &found);
        if (found && !pending_copies(x, world_digests(w, record)))
            return true; /* not to be told from a member: an illegal removal */
        if (found)
            return true;
        return CHECK(tamis_records_remove(x, keys, &outcome) == TAMIS_OK) &&
               CHECK(outcome == TAMIS_ABSENT);
    }
    m->copies[record]--;
    if (!CHECK(tamis_records_remove(x, keys, &outcome) == TAMIS_OK))
        return false;
    seen.pending += outcome == TAMIS_PENDING;
    bool waits = pending_copies(x, world_digests(w, record)) > 0;
    return CHECK(outcome != TAMIS_ABSENT) && CHECK(waits == (outcome == TAMIS_PENDING)) &&
           model_sync(w, m, x);
}

static bool step_clone(tamis_records **x)
{
    tamis_records *copy;
    if (!CHECK(tamis_records_clone(&copy, *x) == TAMIS_OK) || !CHECK(tamis_records_equal(*x, copy)))
        return false;
    tamis_records_free(*x);
    *x = copy;
    return true;
}

/* What was saved is loaded, or mapped: the same in all that shows, now and later. */
static bool step_save(struct world *w, tamis_records **x)
{
    tamis_records *loaded = NULL, *mapped = NULL;
    tamis_reason reason = {0};
    struct bytes bytes = bytes_of_records(*x, 0);
    bool good =
        CHECK(bytes.len && bytes.len == tamis_records_encoded_size(*x, 0)) &&
        CHECK_MSG(tamis_records_decode(&loaded, bytes.data, bytes.len, NULL, &reason) == TAMIS_OK,
                  "%s", reason.text) &&
        CHECK(bytes_to_file(&bytes, "model.tamis")) &&
        CHECK_MSG(tamis_records_open(&mapped, "model.tamis", NULL, &reason) == TAMIS_OK, "%s",
                  reason.text);
    if (good) {
        struct bytes again = bytes_of_records(loaded, 0), last = bytes_of_records(mapped, 0);
        good = CHECK(bytes_equal(&bytes, &again)) && CHECK(bytes_equal(&bytes, &last)) &&
               CHECK(tamis_records_equal(*x, loaded)) && CHECK(world_compare(w, *x, mapped) == 0);
        bytes_free(&again), bytes_free(&last);
        tamis_records_free(*x);
        *x = loaded;
    }
    tamis_records_free(mapped);
    bytes_free(&bytes);
    return good;
}

static bool step(struct world *w, struct model *m, tamis_records **x, uint64_t *rng, bool grows)
{
    uint32_t record = (uint32_t)(rng_next(rng) % w->n);
    uint64_t what = rng_next(rng) % 64;
    if (what == 0)
        return rng_next(rng) % 2 ? step_clone(x) : step_save(w, x);
    if (what < 3)
        return check_choices(w, m, *x, rng);
    if (what < 5)
        return check_answers(w, m, *x, rng);
    if (what == 5 && rng_next(rng) % 16 == 0) {
        memset(m->copies, 0, sizeof m->copies);
        m->layers = 0;
        return CHECK(tamis_records_clear(*x) == TAMIS_OK) && check_all(w, m, *x);
    }
    bool adds = !w->options.set.deletable || (grows ? what % 4 != 0 : what % 4 == 0);
    return adds ? step_add(w, m, *x, record) : step_remove(w, m, *x, record);
}

/* Removes all that is left, in random order. */
static bool remove_all(struct world *w, struct model *m, tamis_records *x, uint64_t *rng)
{
    while (model_total(m)) {
        uint32_t record = (uint32_t)(rng_next(rng) % w->n);
        if (m->copies[record] && !step_remove(w, m, x, record))
            return false;
    }
    const struct layers *layers = set_layers(&x->set);
    bool clean = layers_count(layers) == 1 && set_stored(&x->set) == 0 &&
                 x->set.stack->more->removals.total == 0;
    for (uint32_t j = 0; j < layers->l[0]->parts && clean; j++) {
        const struct part *part = &layers->l[0]->part[j];
        clean = part->vector ? part->vector->ones == 0 && part->vector->counters.escapes.used == 0
                             : part->table.used == 0;
        for (uint64_t i = 0; part->vector && i < vector_positions_total(part->vector); i++)
            clean &= !vector_bit(part->vector, i);
    }
    return CHECK(clean) && check_all(w, m, x);
}

static bool run_world(uint64_t seed, bool deletable)
{
    static struct world w;
    static struct model m;
    uint64_t rng = seed;
    tamis_records *x;
    world_draw(&w, &rng, deletable);
    memset(&m, 0, sizeof m);
    if (!CHECK((x = world_start(&w)) != NULL))
        return false;
    uint32_t steps = 100 + (uint32_t)(rng_next(&rng) % 200);
    bool good = true, grows = true;
    for (uint32_t i = 0; i < steps && good; i++) {
        if (i % 50 == 49)
            grows = !grows;
        good = step(&w, &m, &x, &rng, grows);
        if (good && i % 40 == 0)
            good = check_all(&w, &m, x) && check_answers(&w, &m, x, &rng);
    }
    good = good && check_all(&w, &m, x) && check_answers(&w, &m, x, &rng) &&
           (!deletable || remove_all(&w, &m, x, &rng));
    tamis_records_free(x);
    world_free(&w);
    return CHECK_MSG(good, "world %llx", (unsigned long long)seed);
}

TEST(deletable_records_do_as_the_model)
{
    uint64_t rng = harness_seed();
    int runs = HARNESS_TIMES(500, 20000);
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < runs; i++)
        if (!run_world(rng_next(&rng), true))
            return;
    if (getenv("TEST_VERBOSE"))
        printf(
            "pending %llu, settled %llu, cancelled %llu, layers %llu, denied %llu, escaped %llu\n",
            (unsigned long long)seen.pending, (unsigned long long)seen.settled,
            (unsigned long long)seen.cancelled, (unsigned long long)seen.layers,
            (unsigned long long)seen.denied, (unsigned long long)seen.escaped);
    CHECK_MSG(seen.pending && seen.settled && seen.cancelled && seen.layers > 4 && seen.denied &&
                  seen.escaped,
              "pending %llu, settled %llu, cancelled %llu, layers %llu, denied %llu, escaped %llu",
              (unsigned long long)seen.pending, (unsigned long long)seen.settled,
              (unsigned long long)seen.cancelled, (unsigned long long)seen.layers,
              (unsigned long long)seen.denied, (unsigned long long)seen.escaped);
}

TEST(plain_records_do_as_the_model)
{
    uint64_t rng = harness_seed() + 1;
    int runs = HARNESS_TIMES(300, 20000);
    for (int i = 0; i < runs; i++)
        if (!run_world(rng_next(&rng), false))
            return;
}

/* ---- pairs that must agree ------------------------------------------------------------------- */

/* Also in what only the next add would show. */
static bool same_loads(const tamis_records *x, const tamis_records *y)
{
    const struct layers *a = set_layers(&x->set), *b = set_layers(&y->set);
    bool same = layers_count(a) == layers_count(b) && set_stored(&x->set) == set_stored(&y->set);
    for (uint32_t i = 0; same && i < layers_count(a); i++) {
        const struct layer *l = a->l[i], *k = b->l[i];
        same = l->load == k->load && l->count == k->count && l->capacity == k->capacity &&
               l->slot == k->slot && l->id == k->id;
        for (uint32_t j = 0; j < l->parts && same; j++)
            same = !l->part[j].vector || l->part[j].vector->load == k->part[j].vector->load;
    }
    return same && tamis_records_equal(x, y);
}

#define ADDS 400

static bool batches(uint64_t seed, bool deletable)
{
    static struct world w;
    uint64_t rng = seed;
    tamis_records *one, *many;
    uint8_t fresh_one[ADDS], fresh_many[ADDS];
    size_t added = 0, done = 0;
    world_draw(&w, &rng, deletable);
    if (!CHECK((one = world_start(&w)) != NULL) ||
        !CHECK(tamis_records_clone(&many, one) == TAMIS_OK))
        return false;
    tamis_digest *records = calloc((size_t)ADDS * w.p, sizeof *records);
    for (uint32_t i = 0; i < ADDS; i++)
        memcpy(records + (size_t)i * w.p, world_digests(&w, (uint32_t)(rng_next(&rng) % w.n)),
               w.p * sizeof *records);
    tamis_error e = TAMIS_OK, last = TAMIS_OK;
    while (added < ADDS && e == TAMIS_OK) {
        e = tamis_records_add_many(one, records + added * w.p, 1, fresh_one + added, NULL);
        added += e == TAMIS_OK;
    }
    while (done < ADDS && last == TAMIS_OK) {
        size_t some = 1 + (size_t)(rng_next(&rng) % 150), here;
        some = some < ADDS - done ? some : ADDS - done;
        last = tamis_records_add_many(many, records + done * w.p, some, fresh_many + done, &here);
        done += here;
    }
    bool good = CHECK(done == added) && CHECK(e == last) &&
                CHECK(memcmp(fresh_one, fresh_many, added) == 0) && CHECK(same_loads(one, many));
    tamis_records_free(one);
    tamis_records_free(many);
    free(records);
    world_free(&w);
    return CHECK_MSG(good, "world %llx", (unsigned long long)seed);
}

TEST(batches_end_as_one_by_one)
{
    uint64_t rng = harness_seed() + 2;
    for (int i = 0; i < HARNESS_TIMES(150, 5000); i++)
        if (!batches(rng_next(&rng), i % 2))
            return;
}

/* Two sets of one family, filled at random; the union has what either has. */
static bool unions(uint64_t seed, bool deletable)
{
    static struct world w;
    static struct model m;
    uint64_t rng = seed;
    tamis_records *x, *y, *before;
    world_draw(&w, &rng, deletable);
    memset(&m, 0, sizeof m);
    if (!CHECK((x = world_start(&w)) != NULL) || !CHECK(tamis_records_clone(&y, x) == TAMIS_OK))
        return false;
    uint32_t adds = (uint32_t)(rng_next(&rng) % 160), in_x[RECORDS] = {0}, in_y[RECORDS] = {0};
    for (uint32_t i = 0; i < adds; i++) {
        uint32_t r = (uint32_t)(rng_next(&rng) % w.n), *mine = i % 2 ? in_x : in_y;
        tamis_records *to = i % 2 ? x : y;
        if (deletable && mine[r] && rng_next(&rng) % 4) {
            m.copies[r]--, mine[r]--;
            CHECK(tamis_records_remove_many(to, world_digests(&w, r), 1, NULL, NULL) == TAMIS_OK);
        } else if (tamis_records_add_many(to, world_digests(&w, r), 1, NULL, NULL) == TAMIS_OK) {
            m.copies[r]++, mine[r]++;
        }
    }
    seen.pending +=
        (y->set.stack->more->removals.total > 0) + (x->set.stack->more->removals.total > 0);
    CHECK(tamis_records_clone(&before, x) == TAMIS_OK);
    unsigned flags = rng_next(&rng) % 2 ? TAMIS_MERGE_RESTATE : 0;
    flags |= rng_next(&rng) % 4 == 0 ? TAMIS_MERGE_CONCAT : 0;
    tamis_error e = tamis_records_merge(x, y, flags, NULL);
    bool good = true;
    if (e != TAMIS_OK) {
        good = CHECK(e == TAMIS_ERATE && !(flags & TAMIS_MERGE_RESTATE)) &&
               CHECK(same_loads(x, before));
    } else {
        tamis_records_facts info;
        tamis_records_info(x, &info);
        good = check_answers(&w, &m, x, &rng) &&
               CHECK(!deletable || info.set.items == model_total(&m));
        for (uint32_t r = 0; deletable && r < w.n; r++)
            while (good && m.copies[r]) {
                tamis_removed outcome;
                uint8_t result;
                m.copies[r]--;
                good = CHECK(tamis_records_remove_many(x, world_digests(&w, r), 1, &result, NULL) ==
                             TAMIS_OK);
                outcome = (tamis_removed)result;
                good = good && CHECK(outcome != TAMIS_ABSENT) && check_answers(&w, &m, x, &rng);
            }
        good = good && (!deletable || remove_all(&w, &m, x, &rng));
    }
    tamis_records_free(x);
    tamis_records_free(y);
    tamis_records_free(before);
    world_free(&w);
    return CHECK_MSG(good, "world %llx", (unsigned long long)seed);
}

TEST(unions_have_what_either_has)
{
    uint64_t rng = harness_seed() + 3;
    seen.pending = 0;
    for (int i = 0; i < (harness_long() ? 5000 : 300); i++)
        if (!unions(rng_next(&rng), i % 4))
            return;
    CHECK_MSG(seen.pending > 4, "pending before unions: %llu", (unsigned long long)seen.pending);
}

/* ---- out of memory --------------------------------------------------------------------------- */

enum op { OP_ADD, OP_REMOVE, OP_CLONE, OP_MERGE, OPS };

static tamis_error run_op(struct world *w, tamis_records *x, const tamis_records *other, enum op op,
                          uint32_t record)
{
    tamis_records *copy;
    tamis_error e = TAMIS_OK;
    switch (op) {
    case OP_ADD:
        return tamis_records_add_many(x, world_digests(w, record), 1, NULL, NULL);
    case OP_REMOVE:
        return tamis_records_remove_many(x, world_digests(w, record), 1, NULL, NULL);
    case OP_MERGE:
        return tamis_records_merge(x, other, TAMIS_MERGE_RESTATE, NULL);
    default:
        e = tamis_records_clone(&copy, x);
        if (e == TAMIS_OK)
            tamis_records_free(copy);
        return e;
    }
}

/* The op fails at its first allocation, then at its second... until it succeeds; each time the set
   is as before. */
static bool until_it_works(struct world *w, struct fault *fault, tamis_records *x,
                           const tamis_records *other, enum op op, uint32_t record)
{
    tamis_records *before;
    tamis_error e = TAMIS_ENOMEM;
    if (!CHECK(tamis_records_clone(&before, x) == TAMIS_OK))
        return false;
    for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 20000; n += 1 + n / 8) {
        fault_arm(fault, n, n % 2);
        e = run_op(w, x, other, op, record);
        fault_arm(fault, 0, false);
        if (e == TAMIS_ENOMEM && !CHECK(same_loads(x, before)))
            break;
    }
    tamis_records_free(before);
    return CHECK(e != TAMIS_ENOMEM);
}

static bool faults(uint64_t seed, bool deletable)
{
    static struct world w;
    struct fault fault;
    uint64_t rng = seed;
    tamis_records *x = NULL, *other = NULL;
    tamis_error e = TAMIS_ENOMEM;
    fault_init(&fault);
    world_draw(&w, &rng, deletable);
    w.options.set.allocator = &fault.allocator;
    for (uint64_t n = 1; e == TAMIS_ENOMEM && n < 20000; n += 1 + n / 8) {
        fault_arm(&fault, n, n % 2);
        e = tamis_records_new(&x, &w.options, NULL);
        fault_arm(&fault, 0, false);
        if (e != TAMIS_OK && !CHECK(e == TAMIS_ENOMEM && fault_clean(&fault)))
            return false;
    }
    tamis_records_free(x);
    if (!CHECK(e == TAMIS_OK) || !CHECK((x = world_start(&w)) != NULL) ||
        !CHECK(tamis_records_clone(&other, x) == TAMIS_OK))
        return false;
    uint32_t copies[RECORDS] = {0};
    bool good = true;
    for (uint32_t i = 0; i < 12; i++)
        tamis_records_add_many(other, world_digests(&w, (uint32_t)(rng_next(&rng) % w.n)), 1, NULL,
                               NULL);
    for (uint32_t i = 0; i < 40 && good; i++) {
        uint32_t r = (uint32_t)(rng_next(&rng) % w.n);
        bool removes = copies[r] && deletable && rng_next(&rng) % 2;
        uint64_t stored = set_stored(&x->set);
        good = until_it_works(&w, &fault, x, other, removes ? OP_REMOVE : OP_ADD, r);
        if (removes)
            copies[r]--;
        else
            copies[r] += !deletable || set_stored(&x->set) > stored;
    }
    good = good && until_it_works(&w, &fault, x, other, OP_CLONE, 0) &&
           until_it_works(&w, &fault, x, other, OP_MERGE, 0);
    fault_arm(&fault, 1, true); /* clearing cannot fail */
    good = good && CHECK(tamis_records_clear(x) == TAMIS_OK) && CHECK(set_stored(&x->set) == 0);
    fault_arm(&fault, 0, false);
    tamis_records_free(x);
    tamis_records_free(other);
    world_free(&w);
    return CHECK(fault_clean(&fault)) && CHECK_MSG(good, "world %llx", (unsigned long long)seed);
}

TEST(out_of_memory_changes_nothing)
{
    uint64_t rng = harness_seed() + 4;
    for (int i = 0; i < HARNESS_TIMES(30, 1000); i++)
        if (!faults(rng_next(&rng), i % 2))
            return;
}

HARNESS_MAIN
