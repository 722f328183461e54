/* Threads: readers beside one thread that adds, to filters with every kind of growth and to records with
 * every verifier; and adds from several threads to a plain fixed filter. Run under the thread sanitizer
 * too.
 */
#include <pthread.h>
#include <sched.h>

#include "set/set.h"
#include "harness.h"
#include "tamis/records.h"
#include "tamis/replica.h"

static const uint8_t family_key[TAMIS_KEY_LEN] = "threads";

/* ---- readers beside one writer --------------------------------------------------------------- */

enum { READERS = 3, MANY = 70, P = 3 };

struct scene {
    tamis_filter *f;
    tamis_records *x;      /* or records, of P values that are made of the key */
    const uint32_t *order; /* keys in the order they are added */
    uint32_t n;
    _Atomic uint32_t published; /* this many are members */
    _Atomic uint64_t clock;
    _Atomic bool over;
    _Atomic uint64_t asked, readers;
    uint64_t window, tick; /* of windows; 0: members stay */
    uint32_t known;        /* members before the readers start: keys order[0 .. known-1] */
    bool wide;             /* keys of 8 bytes, which have a lookup of their own, instead of 4 */
    bool again;            /* members are added again and again */
};

static uint64_t scene_clock(void *context)
{
    struct scene *s = context;
    return atomic_load(&s->clock);
}

/* Was key i added within the window, whenever the answer was given? The clock moves on with adds. */
static bool still_due(struct scene *s, uint64_t added)
{
    return s->window == 0 || atomic_load(&s->clock) - added <= s->window;
}

static bool has(const struct scene *s, uint32_t key)
{
    uint64_t wide = key;
    return s->wide ? tamis_filter_has(s->f, &wide, sizeof wide)
                   : tamis_filter_has(s->f, &key, sizeof key);
}

static tamis_error add(const struct scene *s, uint32_t key)
{
    uint64_t wide = key;
    return s->wide ? tamis_filter_add(s->f, &wide, sizeof wide, NULL)
                   : tamis_filter_add(s->f, &key, sizeof key, NULL);
}

/* Of keys from..from+n-1 of the order; P for each where they are records. */
static void digests_of(const struct scene *s, uint32_t from, uint32_t n, tamis_digest *out)
{
    if (s->f && !s->wide) {
        tamis_filter_digest_fixed(s->f, s->order + from, sizeof *s->order, n, out);
        return;
    }
    for (uint32_t i = 0; s->f && i < n; i++) {
        uint64_t wide = s->order[from + i];
        out[i] = tamis_filter_digest(s->f, &wide, sizeof wide);
    }
    if (s->f)
        return;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < P; j++) {
            uint32_t value = j == 1 ? s->order[from + i] % 30 : s->order[from + i];
            out[i * P + j] = tamis_records_digest(s->x, j, (tamis_key){&value, sizeof value});
        }
}

static void ask_one(struct scene *s, uint32_t i, uint64_t added)
{
    bool found;
    if (s->f) {
        found = has(s, s->order[i]);
    } else {
        tamis_digest record[P];
        tamis_answer answer = {false, false};
        digests_of(s, i, 1, record);
        tamis_choice choices[2] = {{0, record, 1}, {2, record + 2, 1}};
        CHECK(tamis_records_ask(s->x, choices, 2, &answer, NULL) == TAMIS_OK);
        found = answer.maybe;
    }
    CHECK_MSG(found || !still_due(s, added), "key %u of %u", i, atomic_load(&s->published));
}

static void ask_many(struct scene *s, uint32_t from, uint64_t added, uint64_t mask)
{
    tamis_digest digests[MANY * P];
    uint8_t found[MANY];
    uint32_t members = atomic_load(&s->published) - from; /* once: it rises meanwhile */
    uint32_t n = members < MANY ? members : MANY;
    digests_of(s, from, n, digests);
    if (s->f)
        tamis_filter_has_many(s->f, digests, n, found);
    else
        tamis_records_has_many(s->x, mask, digests, n, found);
    bool due = still_due(s, added); /* of the first, so of all */
    for (uint32_t i = 0; i < n; i++)
        CHECK_MSG(found[i] || !due, "key %u in a batch, mask %u", from + i, (unsigned)mask);
}

static void ask_stranger(struct scene *s, uint64_t *rng)
{
    uint32_t other = UINT32_C(0x80000000) + (uint32_t)rng_next(rng) / 2;
    tamis_digest record[P] = {{rng_next(rng), 1}, {2, 3}, {rng_next(rng), 4}};
    uint8_t found;
    if (s->f)
        has(s, other);
    else
        tamis_records_has_many(s->x, 0, record, 1, &found);
}

static void *read_along(void *argument)
{
    struct scene *s = argument;
    uint64_t rng = harness_seed() + atomic_fetch_add(&s->readers, 1);
    while (!atomic_load(&s->over)) {
        uint32_t n = atomic_load_explicit(&s->published, memory_order_acquire);
        uint32_t last = s->window ? (uint32_t)(s->window / s->tick) : n;
        last = last < n ? last : n;
        if (n == 0)
            continue;
        uint32_t i = n - 1 - (uint32_t)(rng_next(&rng) % last);
        uint64_t added = 1000000 + (uint64_t)i * s->tick;
        if (atomic_fetch_add_explicit(&s->asked, 1, memory_order_relaxed) % 4)
            ask_one(s, i, added);
        else
            ask_many(s, i, added, rng_next(&rng) % (1 << P));
        ask_stranger(s, &rng);
    }
    return NULL;
}

/* Now and then the readers get their turn, so that none of this is over before they start. */
static void let_read(struct scene *s, uint32_t i)
{
    uint64_t wanted = (s->f ? UINT64_C(20000) : UINT64_C(4000)) * (i - s->known) / s->n;
    while (atomic_load(&s->asked) < wanted)
        sched_yield();
}

static void add_all(struct scene *s)
{
    for (uint32_t i = s->known; i < s->n;) {
        uint32_t some = i % 7 ? 1 : s->n - i < 50 ? s->n - i : 50; /* one, or many at once */
        tamis_error e = TAMIS_OK;
        if (s->f && (some == 1 || s->window)) {
            some = 1;
            e = add(s, s->order[i]);
        } else {
            tamis_digest digests[50 * P];
            digests_of(s, i, some, digests);
            e = s->f ? tamis_filter_add_many(s->f, digests, some, NULL, NULL)
                     : tamis_records_add_many(s->x, digests, some, NULL, NULL);
        }
        if (!CHECK_MSG(e == TAMIS_OK, "add: %s", tamis_error_name(e)))
            return;
        for (uint32_t j = 0; s->again && j < 2 * some; j++)
            CHECK(add(s, s->order[(i * UINT64_C(2654435761) + j / 3) % (i + 1)]) == TAMIS_OK);
        i += some;
        atomic_store_explicit(&s->published, i, memory_order_release);
        atomic_fetch_add(&s->clock, s->tick * some);
        let_read(s, i);
    }
}

static void play(struct scene *s)
{
    pthread_t readers[READERS];
    atomic_store(&s->published, s->known);
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_along, s) == 0);
    add_all(s);
    atomic_store(&s->over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    CHECK(atomic_load(&s->asked) > (s->f ? 10000 : 2000));
}

static uint32_t *keys_up_to(uint32_t n)
{
    uint32_t *keys = malloc(n * sizeof *keys);
    for (uint32_t i = 0; keys && i < n; i++)
        keys[i] = i;
    return keys;
}

static void read_keys_beside_adds(tamis_options o, uint32_t n, uint32_t least_vectors, bool wide)
{
    uint32_t *keys = keys_up_to(n);
    struct scene s = {.order = keys, .n = n, .tick = 1000, .clock = 1000000, .wide = wide};
    tamis_filter_facts info;
    s.again = o.growth == TAMIS_SMOOTH && o.deletable;
    o.key = family_key;
    o.clock = scene_clock;
    o.clock_context = &s;
    s.window = o.window;
    if (!CHECK(tamis_filter_new(&s.f, &o, NULL) == TAMIS_OK))
        return;
    play(&s);
    tamis_filter_info(s.f, &info);
    CHECK_MSG(info.vectors >= least_vectors, "%u vectors", info.vectors);
    for (uint32_t i = 0; i < n && !o.window; i++)
        CHECK(has(&s, i));
    tamis_filter_free(s.f);
    free(keys);
}

static void read_beside_adds(tamis_options o, uint32_t n, uint32_t least_vectors)
{
    read_keys_beside_adds(o, n, least_vectors, false);
}

static uint32_t times(uint32_t n)
{
    return harness_long() ? 10 * n : n;
}

TEST(readers_beside_scalable_growth)
{
    read_beside_adds((tamis_options){.growth = TAMIS_SCALABLE, .capacity = 8}, times(40000), 3);
    read_beside_adds((tamis_options){.capacity = 8, .expansion = 1.5, .layout = TAMIS_SPREAD},
                     times(20000), 10);
    read_beside_adds((tamis_options){.growth = TAMIS_SCALABLE, .capacity = 8, .deletable = true},
                     times(20000), 3);
}

/* The matrix is widened from one column to hundreds. */
TEST(readers_beside_dynamic_growth)
{
    read_beside_adds(
        (tamis_options){.growth = TAMIS_DYNAMIC, .bits = 256, .hashes = 9, .capacity = 12},
        times(4000), 200);
    read_beside_adds(
        (tamis_options){
            .growth = TAMIS_DYNAMIC, .bits = 256, .hashes = 9, .capacity = 12, .deletable = true},
        times(3000), 150);
}

/* Lines grow some 30 times, and are split into 16 parts. Where keys may be added again, copies go to stashes, which
   are replaced. */
TEST(readers_beside_smooth_growth)
{
    read_beside_adds((tamis_options){.growth = TAMIS_SMOOTH}, times(60000), 0);
    read_beside_adds((tamis_options){.growth = TAMIS_SMOOTH, .capacity = 50}, times(5000), 1);
    read_beside_adds((tamis_options){.growth = TAMIS_SMOOTH, .deletable = true}, times(20000), 0);
    /* The short path of keys of 8 bytes begins when lines are split and their slots have 16 bits: at 10 % from 32,768
       keys on. */
    read_keys_beside_adds((tamis_options){.growth = TAMIS_SMOOTH, .fpp = 0.1}, times(60000), 0,
                          true);
}

TEST(readers_beside_flexible_growth)
{
    read_beside_adds((tamis_options){.growth = TAMIS_FLEXIBLE, .capacity = 20}, times(2000), 10);
    read_beside_adds((tamis_options){.growth = TAMIS_FLEXIBLE, .capacity = 20, .deletable = true},
                     times(3000), 20);
}

TEST(readers_beside_fixed_adds)
{
    read_beside_adds((tamis_options){.growth = TAMIS_FIXED, .capacity = 100000}, 40000, 1);
    read_keys_beside_adds((tamis_options){.growth = TAMIS_FIXED, .capacity = 100000}, 40000, 1,
                          true);
    read_beside_adds((tamis_options){.growth = TAMIS_FIXED, .capacity = 100000, .deletable = true},
                     40000, 1);
}

/* Vectors are dropped while readers may be in them. */
TEST(readers_beside_a_window)
{
    tamis_options o = {.growth = TAMIS_WINDOW, .capacity = 1000, .window = 1000 * 1000};
    read_beside_adds(o, times(30000), 2);
    o.vectors = 40;
    o.layout = TAMIS_SPREAD;
    read_beside_adds(o, times(30000), 10);
}

/* Pending removals are taken back by adds, beside readers who look them up; and new keys make the
   filter grow. */
TEST(readers_beside_cancelled_removals)
{
    enum { FIRST = 600, ALL = 3000 };
    uint64_t pending = 0;
    for (int run = 0; run < (harness_long() ? 40 : 4); run++) {
        tamis_options o = {.growth = run % 2 ? TAMIS_DYNAMIC : TAMIS_SCALABLE,
                           .layout = TAMIS_SPREAD,
                           .bits = 48,
                           .hashes = 3,
                           .capacity = 10,
                           .deletable = true,
                           .unique = true,
                           .key = family_key};
        struct scene s = {.n = ALL, .clock = 1000000};
        uint32_t order[ALL], members = 0, removed = 0, gone[FIRST];
        if (!CHECK(tamis_filter_new(&s.f, &o, NULL) == TAMIS_OK))
            return;
        for (uint32_t i = 0; i < FIRST; i++)
            CHECK(tamis_filter_add(s.f, &i, sizeof i, NULL) == TAMIS_OK);
        for (uint32_t i = 0; i < FIRST; i++) /* some stay, some go: most of those are pending */
            if (i % 3) {
                order[members++] = i;
            } else {
                CHECK(tamis_filter_remove(s.f, &i, sizeof i, NULL) == TAMIS_OK);
                gone[removed++] = i;
            }
        tamis_filter_facts info;
        tamis_filter_info(s.f, &info);
        pending += info.pending;
        s.known = members;
        memcpy(order + members, gone, removed * sizeof *gone);
        for (uint32_t i = FIRST; i < ALL; i++)
            order[i] = i;
        s.order = order;
        play(&s);
        tamis_filter_info(s.f, &info);
        CHECK(info.pending == 0 && info.items == ALL);
        tamis_filter_free(s.f);
    }
    CHECK_MSG(pending > 100, "%" PRIu64 " pending", pending);
}

/* Layers and tables grow. */
TEST(readers_beside_records)
{
    enum { RECORDS = 8000 };
    static const tamis_attribute attributes[P] = {
        {.name = "a"}, {.name = "b", .distinct = 9}, {.name = "c"}};
    uint32_t *keys = keys_up_to(RECORDS);
    for (unsigned run = 0; run < 6; run++) {
        unsigned verifier = 1 + run % 3, deletable = run / 3;
        tamis_records_options o = {.attributes = attributes,
                                   .n_attributes = P,
                                   .verifier = (tamis_verifier)verifier,
                                   .value = verifier == 3 ? 1 + deletable : 1,
                                   .set.deletable = deletable,
                                   .set.layout = 1 + verifier % 2,
                                   .set.key = family_key,
                                   .set.capacity = 50};
        struct scene s = {.order = keys, .n = RECORDS, .clock = 1000000};
        tamis_records_facts info;
        if (!CHECK(tamis_records_new(&s.x, &o, NULL) == TAMIS_OK))
            break;
        play(&s);
        tamis_records_info(s.x, &info);
        CHECK_MSG(info.layers >= 3 && info.set.items == RECORDS, "%u layers", info.layers);
        for (uint32_t i = 0; i < RECORDS; i += MANY)
            ask_many(&s, i, 0, 0);
        tamis_records_free(s.x);
    }
    free(keys);
}

/* ---- adds from several threads --------------------------------------------------------------- */

enum { ADDERS = 4 };

struct adder {
    tamis_filter *f;
    uint32_t from, to;
    uint64_t fresh, full;
};

static void *add_along(void *argument)
{
    struct adder *a = argument;
    for (uint32_t i = a->from; i < a->to;) {
        enum { SOME = 100 };
        uint32_t keys[SOME], some = i % 3 ? 1 : a->to - i < SOME ? a->to - i : SOME;
        tamis_digest digests[SOME];
        uint8_t fresh[SOME] = {0};
        size_t done;
        for (uint32_t j = 0; j < some; j++)
            keys[j] = i + j;
        tamis_filter_digest_fixed(a->f, keys, sizeof *keys, some, digests);
        tamis_error e = tamis_filter_add_many(a->f, digests, some, fresh, &done);
        for (size_t j = 0; j < done; j++) {
            a->fresh += fresh[j];
            CHECK(tamis_filter_has(a->f, &keys[j], sizeof *keys));
        }
        CHECK(e == TAMIS_OK ? done == some : e == TAMIS_EFULL && done < some);
        a->full += e == TAMIS_EFULL;
        i += e == TAMIS_OK ? some : (uint32_t)done + 1;
    }
    return NULL;
}

/* Threads add ranges that overlap by half. Returns how often the filter was full. */
static uint64_t add_together(tamis_layout layout, uint64_t capacity, uint32_t each)
{
    tamis_options o = {.growth = TAMIS_FIXED,
                       .layout = layout,
                       .capacity = capacity,
                       .shared_adds = true,
                       .key = family_key};
    struct adder adders[ADDERS];
    pthread_t threads[ADDERS];
    tamis_filter *f = NULL;
    tamis_filter_facts info;
    uint64_t fresh = 0, full = 0;
    if (!CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK))
        return 0;
    for (uint32_t i = 0; i < ADDERS; i++) {
        adders[i] = (struct adder){f, i * each / 2, i * each / 2 + each, 0, 0};
        CHECK(pthread_create(&threads[i], NULL, add_along, &adders[i]) == 0);
    }
    for (uint32_t i = 0; i < ADDERS; i++) {
        pthread_join(threads[i], NULL);
        fresh += adders[i].fresh;
        full += adders[i].full;
    }
    tamis_filter_info(f, &info);
    CHECK_MSG(info.items == fresh, "%" PRIu64 " items, %" PRIu64 " fresh", info.items, fresh);
    CHECK_MSG(info.items <= capacity, "%" PRIu64 " items of %" PRIu64, info.items, capacity);
    CHECK(set_layers(&f->set)->v[0]->load == info.items);
    if (full == 0)
        for (uint32_t i = 0; i < adders[ADDERS - 1].to; i++)
            CHECK(tamis_filter_has(f, &i, sizeof i));
    tamis_filter_free(f);
    return full;
}

TEST(several_threads_add)
{
    for (int layout = TAMIS_SPREAD; layout <= TAMIS_BLOCKED; layout++) {
        uint32_t each = times(20000);
        CHECK(add_together((tamis_layout)layout, UINT64_C(5) * each, each) == 0);
        CHECK(add_together((tamis_layout)layout, each, each) > 0); /* too many: full at the end */
        CHECK(add_together((tamis_layout)layout, 100, each) > 0);
    }
}

/* Full is full: one at a time, to the last key that fits. */
TEST(shared_adds_fill_to_the_capacity)
{
    tamis_options o = {.growth = TAMIS_FIXED, .capacity = 500, .fpp = 1e-6, .shared_adds = true};
    tamis_filter *f = NULL;
    tamis_filter_facts info;
    CHECK(tamis_filter_new(&f, &o, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < 500; i++)
        CHECK(tamis_filter_add(f, &i, sizeof i, NULL) == TAMIS_OK);
    uint32_t more = 1000, member = 3;
    CHECK(tamis_filter_add(f, &more, sizeof more, NULL) == TAMIS_EFULL);
    CHECK(tamis_filter_add(f, &member, sizeof member, NULL) == TAMIS_OK);
    tamis_filter_info(f, &info);
    CHECK(info.items == 500);
    tamis_filter_free(f);
}

TEST(only_plain_fixed_filters_share_adds)
{
    tamis_filter *f = NULL;
    CHECK(tamis_filter_new(&f, &(tamis_options){.shared_adds = true}, NULL) == TAMIS_EARG);
    CHECK(tamis_filter_new(
              &f, &(tamis_options){.growth = TAMIS_FIXED, .deletable = true, .shared_adds = true},
              NULL) == TAMIS_EARG);
    CHECK(f == NULL);
}

/* ---- two versions compared by several threads at once ----------------------------------------- */

struct comparison {
    const tamis_filter *older, *newer;
    uint64_t bytes, sum;
};

static int sum_bytes(void *context, const void *data, size_t len)
{
    struct comparison *c = context;
    for (size_t i = 0; i < len; i++)
        c->sum = c->sum * 31 + ((const uint8_t *)data)[i];
    c->bytes += len;
    return 0;
}

static void *compare(void *argument)
{
    struct comparison *c = argument;
    CHECK(tamis_filter_diff(c->older, c->newer, 0, sum_bytes, c, NULL) == TAMIS_OK);
    return NULL;
}

/* The checksums that a comparison needs are made by whoever comes first, and kept. */
TEST(several_threads_compare)
{
    tamis_options o = {.growth = TAMIS_FIXED, .capacity = 100000, .key = family_key};
    tamis_filter *older = NULL, *newer = NULL;
    CHECK(tamis_filter_new(&older, &o, NULL) == TAMIS_OK);
    for (uint32_t i = 0; i < 50000; i++)
        CHECK(tamis_filter_add(older, &i, sizeof i, NULL) == TAMIS_OK);
    CHECK(tamis_filter_clone(&newer, older) == TAMIS_OK);
    for (uint32_t round = 0; round < 5; round++) {
        struct comparison c[READERS];
        pthread_t threads[READERS];
        for (uint32_t i = 50000 + 10 * round; i < 50010 + 10 * round; i++)
            CHECK(tamis_filter_add(newer, &i, sizeof i, NULL) == TAMIS_OK);
        for (unsigned i = 0; i < READERS; i++) {
            c[i] = (struct comparison){.older = older, .newer = newer};
            CHECK(pthread_create(&threads[i], NULL, compare, &c[i]) == 0);
        }
        for (unsigned i = 0; i < READERS; i++) {
            pthread_join(threads[i], NULL);
            CHECK(c[i].bytes > 50 && c[i].bytes == c[0].bytes && c[i].sum == c[0].sum);
        }
    }
    tamis_filter_free(older), tamis_filter_free(newer);
}

HARNESS_MAIN
