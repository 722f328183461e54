/*
 * What a window promises, beside a model that knows nothing of vectors: it keeps the time of the last
 * add of each key. However the keys arrive, as long as no more than the capacity were added within one
 * window none is refused; none is forgotten within the window, and all are gone a span after it; and the
 * rate holds for all vectors together. A clock that is set back stands still for the model: what is in
 * the filter then is gone after twice the time at most.
 */
#include "harness.h"
#include "tamis.h"

#include <math.h>

#define SECOND UINT64_C(1000000000)
#define WINDOW (1000 * SECOND)

struct add {
    uint64_t key, at;
};

/* All adds in order of time; those from `live` on are within the window. */
struct model {
    uint64_t clock;          /* what the filter is shown */
    uint64_t shown, elapsed; /* the last reading, and time that passed in the model */
    uint64_t set_back;       /* when it was, if ever */
    struct add *adds;
    size_t n, room, live;
    uint64_t capacity, span, next_key;
    bool failed;
};

static tamis_filter *window_make(struct model *m, uint64_t capacity, uint32_t vectors, double fpp)
{
    uint64_t words[2] = {harness_seed(), capacity + vectors};
    uint8_t key[TAMIS_KEY_LEN];
    memcpy(key, words, sizeof key);
    *m = (struct model){.clock = 50 * WINDOW,
                        .shown = 50 * WINDOW,
                        .elapsed = 50 * WINDOW,
                        .capacity = capacity,
                        .span = WINDOW / (vectors - 1)};
    tamis_options o = {.growth = TAMIS_WINDOW,
                       .fpp = fpp,
                       .capacity = capacity,
                       .vectors = vectors,
                       .window = WINDOW,
                       .key = key,
                       .clock = harness_clock,
                       .clock_context = &m->clock};
    tamis_filter *f = NULL;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    return f;
}

/* The filter reads its clock now. */
static void model_tick(struct model *m)
{
    m->elapsed += m->clock > m->shown ? m->clock - m->shown : 0;
    m->set_back = m->clock < m->shown ? m->elapsed : m->set_back;
    m->shown = m->clock;
    while (m->live < m->n && m->elapsed - m->adds[m->live].at > WINDOW)
        m->live++;
}

/* Adds within the window, repeats too: this many are at most in use. */
static uint64_t model_room(struct model *m)
{
    model_tick(m);
    return m->capacity - (m->n - m->live);
}

static void window_add(tamis_filter *f, struct model *m, uint64_t key)
{
    model_tick(m);
    tamis_error e = tamis_filter_add(f, &key, sizeof key, NULL);
    if (m->n == m->room) {
        m->room = m->room ? 2 * m->room : 1024;
        m->adds = realloc(m->adds, m->room * sizeof *m->adds);
    }
    m->adds[m->n++] = (struct add){key, m->elapsed};
    m->failed |=
        !CHECK_MSG(e == TAMIS_OK, "%s: refused with %" PRIu64 " of %" PRIu64 " in the window",
                   tamis_error_name(e), (uint64_t)(m->n - 1 - m->live), m->capacity);
}

static bool window_has(const tamis_filter *f, uint64_t key)
{
    return tamis_filter_has(f, &key, sizeof key);
}

/* Keys within the window, and those long gone; keys that came again count for their last time. */
static void window_check(tamis_filter *f, struct model *m, uint64_t *rng)
{
    unsigned early = 0, late = 0;
    model_tick(m);
    CHECK(tamis_filter_expire(f) == TAMIS_OK);
    for (unsigned i = 0; i < 200 && m->live < m->n; i++)
        early += !window_has(f, m->adds[m->live + rng_next(rng) % (m->n - m->live)].key);
    for (unsigned i = 0; i < 200 && m->live; i++) {
        struct add a = m->adds[rng_next(rng) % m->live];
        bool again = a.key < 3; /* only such come again: see below */
        uint64_t from = a.at > m->set_back ? a.at : m->set_back, most = WINDOW + m->span;
        most *= m->set_back ? 2 : 1;
        late += !again && m->elapsed - from > most && window_has(f, a.key);
    }
    m->failed |= !CHECK_MSG(early == 0 && late == 0, "%u forgotten early, %u late", early, late);
}

static uint64_t fresh_key(struct model *m)
{
    return UINT64_C(1) << 40 | m->next_key++;
}

static void burst(tamis_filter *f, struct model *m, uint64_t n)
{
    uint64_t room = model_room(m);
    for (n = n < room ? n : room; n > 0 && !m->failed; n--)
        window_add(f, m, fresh_key(m));
}

/* What some clients do: nothing, a trickle, a burst of all that fits, just enough to fill the newest
   vector, a key that comes again and again; and what clocks do. */
static void some_time(tamis_filter *f, struct model *m, uint64_t *rng, bool clocks)
{
    uint64_t draw = rng_next(rng) % (clocks ? 24 : 22), span = m->span;
    tamis_vector_facts v = {0};
    tamis_filter_facts info;
    switch (draw < 18 ? draw % 6 : draw) {
    case 0:
        m->clock += rng_next(rng) % (2 * span);
        break;
    case 1: /* a trickle over some spans */
        for (uint64_t i = rng_next(rng) % 40; i > 0 && model_room(m); i--) {
            window_add(f, m, fresh_key(m));
            m->clock += rng_next(rng) % (span / 2);
        }
        break;
    case 2:
        burst(f, m, m->capacity);
        break;
    case 3:
        burst(f, m, rng_next(rng) % (m->capacity / 2 + 1) + 1);
        break;
    case 4: /* the newest is full, and no more */
        tamis_filter_info(f, &info);
        tamis_filter_vector(f, info.vectors - 1, &v);
        burst(f, m, v.capacity - (v.items < v.capacity ? v.items : v.capacity));
        m->clock += span / 3;
        break;
    case 5:
        if (model_room(m))
            window_add(f, m, rng_next(rng) % 3);
        break;
    case 22: /* set back; far ahead and back would be a window more for the model, too */
        m->clock -= rng_next(rng) % (m->clock < 20 * WINDOW ? m->clock / 2 + 1 : 10 * WINDOW);
        break;
    case 23:
        m->clock += rng_next(rng) % (5 * WINDOW);
        if (model_room(m))
            window_add(f, m, fresh_key(m));
        m->clock -= rng_next(rng) % (6 * WINDOW);
        break;
    default: /* steadily, for some windows */
        for (uint64_t i = 0; i < 64; i++, m->clock += WINDOW / 16)
            burst(f, m, 1 + m->capacity / 20);
    }
}

static void run(uint64_t capacity, uint32_t vectors, uint64_t *rng, bool clocks)
{
    struct model m;
    tamis_filter *f = window_make(&m, capacity, vectors, 1e-9);
    unsigned most = 0;
    tamis_filter_facts info;
    for (unsigned step = 0; step < 120 && !m.failed; step++) {
        some_time(f, &m, rng, clocks);
        window_check(f, &m, rng);
        tamis_filter_info(f, &info);
        most = info.vectors > most ? info.vectors : most;
        double sum = 0;
        tamis_vector_facts v;
        for (uint32_t i = 0; tamis_filter_vector(f, i, &v); i++)
            sum += v.fpp;
        CHECK_MSG(sum <= 1e-9 * (1 + 1e-12), "shares sum to %g", sum);
    }
    CHECK_MSG(most <= vectors + 11, "%u vectors of %u", most, vectors);
    tamis_filter_free(f);
    free(m.adds);
}

TEST(the_capacity_fits_however_it_arrives)
{
    static const uint32_t counts[] = {2, 3, 4, 8, 50};
    static const uint64_t capacities[] = {1, 7, 100, 3000};
    uint64_t rng = harness_seed();
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 4; j++)
            run(capacities[j], counts[i], &rng, false);
}

TEST(clocks_that_are_set)
{
    static const uint32_t counts[] = {2, 8, 50};
    uint64_t rng = harness_seed();
    for (size_t i = 0; i < 3; i++)
        run(500, counts[i], &rng, true);
}

/* Ten keys per second for four seconds, then all at once: a window of two seconds had no room for 100. */
TEST(a_burst_after_a_trickle)
{
    static const uint64_t capacities[] = {100, 100000};
    for (size_t i = 0; i < 2; i++) {
        struct model m;
        tamis_filter *f = window_make(&m, capacities[i], 8, 0.01);
        for (unsigned j = 0; j < 40; j++, m.clock += WINDOW / 20)
            window_add(f, &m, fresh_key(&m));
        burst(f, &m, capacities[i]);
        tamis_filter_facts info;
        tamis_filter_info(f, &info);
        CHECK_MSG(info.fpp_now <= 0.01 && (double)info.capacity <= 5 * (double)capacities[i],
                  "%g, room for %" PRIu64, info.fpp_now, info.capacity);
        tamis_filter_free(f);
        free(m.adds);
    }
}

/* Once ten years ahead and back: what was added then goes a window and a span later, as the rest. */
TEST(a_clock_that_was_far_ahead)
{
    struct model m;
    tamis_filter *f = window_make(&m, 100, 8, 1e-9);
    window_add(f, &m, fresh_key(&m));
    m.clock += UINT64_C(10) * 365 * 86400 * SECOND;
    window_add(f, &m, fresh_key(&m));
    m.clock -= UINT64_C(10) * 365 * 86400 * SECOND;
    uint64_t rng = harness_seed();
    for (unsigned i = 0; i < 100; i++, m.clock += WINDOW / 20) {
        if (model_room(&m))
            window_add(f, &m, fresh_key(&m));
        window_check(f, &m, &rng);
    }
    for (size_t i = 0; i < 70; i++) /* 5 windows later, all but those of the last one and a span */
        CHECK(!window_has(f, m.adds[i].key));
    tamis_filter_free(f);
    free(m.adds);
}

HARNESS_MAIN
