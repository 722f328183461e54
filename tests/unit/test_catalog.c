/* Catalogs against a plain model: exact records of every segment. A segment that has a matching record
 * is always named, whatever was put, dropped and put again; others are named at the stated rates.
 */
#include "harness.h"
#include "tamis/catalog.h"

#include <math.h>
#include <sys/stat.h>

#define KEY ((const uint8_t *)"0123456789abcdef")

/* ---- the model ------------------------------------------------------------------------------- */

enum { P_MAX = 4 };

/* A record is a number for each attribute; 0 is missing. */
struct plain_segment {
    uint32_t id, n;
    uint32_t (*records)[P_MAX];
};

struct plain {
    uint32_t p, n;
    struct plain_segment *segments;
    uint32_t next_id;
};

static tamis_key value_of(uint32_t number, char *text)
{
    int len = snprintf(text, 16, "v%u", number);
    return number ? (tamis_key){text, (size_t)len} : (tamis_key){NULL, 0};
}

static void plain_free(struct plain *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        free(m->segments[i].records);
    free(m->segments);
}

static struct plain_segment *plain_add(struct plain *m, uint32_t n)
{
    m->segments = realloc(m->segments, (m->n + 1) * sizeof *m->segments);
    struct plain_segment *s = &m->segments[m->n++];
    *s = (struct plain_segment){.id = m->next_id++, .n = n};
    s->records = calloc(n + 1, sizeof *s->records);
    return s;
}

static void plain_drop(struct plain *m, uint32_t i)
{
    free(m->segments[i].records);
    memmove(&m->segments[i], &m->segments[i + 1], (m->n - i - 1) * sizeof *m->segments);
    m->n--;
}

/* Does the segment have a record with one of `sets` values for each attribute of the mask? */
static bool plain_has(const struct plain_segment *s, uint64_t mask, const uint32_t (*values)[P_MAX],
                      uint32_t choices)
{
    for (uint32_t i = 0; i < s->n; i++) {
        bool all = true;
        for (uint32_t at = 0; at < P_MAX && all; at++) {
            bool some = !(mask >> at & 1);
            for (uint32_t c = 0; c < choices; c++)
                some |= s->records[i][at] == values[c][at];
            all = some;
        }
        if (all)
            return true;
    }
    return false;
}

static void put_segment(tamis_catalog_writer *w, tamis_gather *g, const struct plain *m,
                        const struct plain_segment *s)
{
    char text[P_MAX][16], tag[32];
    tamis_key record[P_MAX];
    tamis_reason reason = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t at = 0; at < m->p; at++)
            record[at] = value_of(s->records[i][at], text[at]);
        CHECK(tamis_gather_add(g, record) == TAMIS_OK);
    }
    CHECK(tamis_gather_records(g) == s->n);
    int len = snprintf(tag, sizeof tag, "segment %u", s->id);
    CHECK_MSG(tamis_catalog_put(w, g, tag, (size_t)len, &reason) == TAMIS_OK, "%s", reason.text);
    CHECK(tamis_gather_records(g) == 0);
}

static tamis_error ask(const tamis_catalog *c, uint64_t mask, const uint32_t (*values)[P_MAX],
                       uint32_t choices, uint64_t *found, tamis_catalog_answer *answer)
{
    const tamis_schema *s = tamis_catalog_schema(c);
    tamis_condition choice[P_MAX];
    tamis_digest digests[P_MAX][8];
    char text[16];
    size_t n = 0;
    tamis_reason reason = {0};
    for (uint32_t at = 0; at < P_MAX; at++) {
        if (!(mask >> at & 1))
            continue;
        for (uint32_t i = 0; i < choices; i++)
            digests[at][i] = tamis_schema_digest(s, at, value_of(values[i][at], text));
        choice[n++] = (tamis_condition){.attribute = at, .keys = digests[at], .n = choices};
    }
    tamis_error e = tamis_catalog_ask(c, choice, n, found, answer, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s", reason.text);
    return e;
}

/* Tags, numbers and answers agree with the model; returns the number of false candidates. */
static uint64_t compare(const struct plain *m, const tamis_catalog *c, uint32_t questions,
                        uint32_t range, uint64_t *rng)
{
    uint64_t vain = 0, *found = calloc(m->n / 64 + 1, sizeof *found);
    CHECK(tamis_catalog_segments(c) == m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        char want[32];
        size_t len;
        const void *tag = tamis_catalog_tag(c, i, &len);
        CHECK((size_t)snprintf(want, sizeof want, "segment %u", m->segments[i].id) == len);
        CHECK(memcmp(tag, want, len) == 0);
        CHECK(tamis_catalog_records(c, i) == m->segments[i].n);
    }
    for (uint32_t q = 0; q < questions; q++) {
        uint32_t values[4][P_MAX], choices = 1 + (uint32_t)(rng_next(rng) % 3);
        uint64_t mask = 1 + rng_next(rng) % ((UINT64_C(1) << m->p) - 1), named = 0, missed = 0;
        tamis_catalog_answer answer;
        for (uint32_t i = 0; i < choices; i++)
            for (uint32_t at = 0; at < P_MAX; at++)
                values[i][at] = (uint32_t)(rng_next(rng) % range);
        uint32_t from = m->n ? (uint32_t)(rng_next(rng) % m->n) : 0;
        if (m->n && m->segments[from].n && q % 2) /* a record that is there */
            memcpy(values[0], m->segments[from].records[rng_next(rng) % m->segments[from].n],
                   sizeof values[0]);
        if (ask(c, mask, (const uint32_t(*)[P_MAX])values, choices, found, &answer) != TAMIS_OK)
            break;
        for (uint32_t i = 0; i < m->n; i++) {
            bool is = found[i / 64] >> (i % 64) & 1;
            bool has = plain_has(&m->segments[i], mask, (const uint32_t(*)[P_MAX])values, choices);
            missed += has && !is;
            vain += is && !has;
            named += is;
        }
        CHECK_MSG(missed == 0, "%" PRIu64 " segments missed, mask %" PRIx64, missed, mask);
        CHECK(answer.candidates == named && answer.segments == m->n);
        CHECK(answer.by_attributes + answer.by_verifier + answer.candidates == m->n);
    }
    free(found);
    return vain;
}

static const tamis_attribute attributes[P_MAX] = {
    {.name = "ip"}, {.name = "user"}, {.name = "path"}, {.name = "status"}};

static tamis_catalog_options options_for(uint32_t p)
{
    return (tamis_catalog_options){.attributes = attributes, .n_attributes = p, .key = KEY};
}

static void fill_random(struct plain *m, struct plain_segment *s, uint32_t range, uint64_t *rng)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t at = 0; at < m->p; at++)
            s->records[i][at] = (uint32_t)(rng_next(rng) % range);
}

/* ---- nothing is missed ----------------------------------------------------------------------- */

static void play(uint32_t p, const tamis_catalog_options *o, uint32_t rounds, uint32_t most,
                 uint64_t seed)
{
    uint64_t rng = seed;
    struct plain m = {.p = p};
    tamis_reason reason = {0};
    for (uint32_t round = 0; round < rounds; round++) {
        tamis_catalog_writer *w = NULL;
        tamis_gather *g = NULL;
        tamis_error e = round ? tamis_catalog_update(&w, "c.tamis", NULL, NULL, &reason)
                              : tamis_catalog_create(&w, "c.tamis", o, &reason);
        if (!CHECK_MSG(e == TAMIS_OK, "%s", reason.text))
            break;
        CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
        for (uint32_t i = m.n; i-- > 0;)
            if (rng_next(&rng) % 4 == 0) {
                CHECK(tamis_catalog_drop(w, i, NULL) == TAMIS_OK);
                CHECK(tamis_catalog_drop(w, i, NULL) == TAMIS_EARG);
                plain_drop(&m, i);
            }
        uint32_t more = (uint32_t)(rng_next(&rng) % most);
        for (uint32_t i = 0; i < more; i++) {
            uint32_t n = rng_next(&rng) % 8 ? 20 + (uint32_t)(rng_next(&rng) % 30)
                                            : (uint32_t)(rng_next(&rng) % 400);
            struct plain_segment *s = plain_add(&m, n);
            fill_random(&m, s, 300, &rng);
            put_segment(w, g, &m, s);
        }
        tamis_gather_free(g);
        CHECK_MSG(tamis_catalog_commit(w, "note", 4, &reason) == TAMIS_OK, "%s", reason.text);
        tamis_catalog_abandon(w);
        CHECK_MSG(tamis_file_verify("c.tamis", &reason) == TAMIS_OK, "%s", reason.text);
        tamis_catalog *c = NULL;
        if (!CHECK_MSG(tamis_catalog_open(&c, "c.tamis", NULL, &reason) == TAMIS_OK, "%s",
                       reason.text))
            break;
        size_t len;
        CHECK(memcmp(tamis_catalog_note(c, &len), "note", 4) == 0 && len == 4);
        compare(&m, c, 60, 320, &rng);
        tamis_catalog_close(c);
    }
    plain_free(&m);
}

TEST(a_segment_that_matches_is_named)
{
    uint64_t seed = harness_seed();
    for (uint32_t p = 1; p <= 4; p++) {
        tamis_catalog_options o = options_for(p);
        play(p, &o, 6, 40, seed + p);
    }
    uint64_t combos[2] = {3, 13};
    tamis_catalog_options o = options_for(4);
    o.combos = combos;
    o.n_combos = 2;
    o.segments = 10; /* fewer than there will be */
    play(4, &o, 6, 60, seed);
    o.verifier = TAMIS_VERIFIER_NONE;
    play(4, &o, 3, 60, seed);
    o = options_for(3);
    o.hash = TAMIS_SIP;
    o.memory = 65536; /* planned early */
    play(3, &o, 5, 200, seed);
    o.hash = TAMIS_H3;
    play(3, &o, 3, 60, seed);
}

TEST(many_segments_make_several_strips)
{
    uint64_t rng = harness_seed();
    tamis_catalog_options o = options_for(2);
    o.segments = 1500;
    o.memory = 1 << 20;
    play(2, &o, 1, 1, rng);
    struct plain m = {.p = 2};
    tamis_catalog_writer *w = NULL;
    tamis_gather *g = NULL;
    tamis_reason reason = {0};
    CHECK(tamis_catalog_create(&w, "c.tamis", &o, &reason) == TAMIS_OK);
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (uint32_t i = 0; i < 1500; i++) {
        struct plain_segment *s = plain_add(&m, 30 + (uint32_t)(rng_next(&rng) % 4));
        fill_random(&m, s, 5000, &rng);
        put_segment(w, g, &m, s);
    }
    tamis_gather_free(g);
    CHECK_MSG(tamis_catalog_commit(w, NULL, 0, &reason) == TAMIS_OK, "%s", reason.text);
    CHECK(tamis_catalog_commit(w, NULL, 0, &reason) == TAMIS_EARG);
    tamis_catalog_abandon(w);
    tamis_catalog *c = NULL;
    CHECK(tamis_file_verify("c.tamis", &reason) == TAMIS_OK);
    if (CHECK(tamis_catalog_open(&c, "c.tamis", NULL, &reason) == TAMIS_OK)) {
        tamis_relation_facts facts;
        compare(&m, c, 300, 5000, &rng);
        CHECK(tamis_catalog_relation(c, 0, &facts) && facts.strips >= 3 && facts.columns >= 1500);
        CHECK(tamis_catalog_relation(c, 2, &facts) && facts.mask == 3 && facts.fpp_now <= 0.0101);
        CHECK(!tamis_catalog_relation(c, 3, &facts));
        tamis_catalog_close(c);
    }
    /* full strips are kept with their gaps, then lose them */
    for (uint32_t often = 20; often > 1; often /= 3) {
        CHECK(tamis_catalog_update(&w, "c.tamis", NULL, NULL, &reason) == TAMIS_OK);
        for (uint32_t i = m.n; i-- > 0;)
            if (rng_next(&rng) % often == 0) {
                CHECK(tamis_catalog_drop(w, i, NULL) == TAMIS_OK);
                plain_drop(&m, i);
            }
        CHECK_MSG(tamis_catalog_commit(w, NULL, 0, &reason) == TAMIS_OK, "%s", reason.text);
        tamis_catalog_abandon(w);
        CHECK_MSG(tamis_file_verify("c.tamis", &reason) == TAMIS_OK, "%s", reason.text);
        if (CHECK(tamis_catalog_open(&c, "c.tamis", NULL, &reason) == TAMIS_OK)) {
            compare(&m, c, 150, 5000, &rng);
            tamis_catalog_close(c);
        }
    }
    plain_free(&m);
}

/* ---- rates by class of question -------------------------------------------------------------- */

struct world {
    struct plain m;
    tamis_catalog *c;
};

/* `n` segments of `records` records with values below `range`, in two goes if `twice`. */
static bool world_make(struct world *x, const tamis_catalog_options *o, uint32_t n,
                       uint32_t records, uint32_t range, bool twice, uint64_t *rng)
{
    tamis_catalog_writer *w = NULL;
    tamis_gather *g = NULL;
    tamis_reason reason = {0};
    *x = (struct world){.m.p = (uint32_t)o->n_attributes};
    for (int go = 0; go <= twice; go++) {
        tamis_error e = go ? tamis_catalog_update(&w, "w.tamis", NULL, NULL, &reason)
                           : tamis_catalog_create(&w, "w.tamis", o, &reason);
        if (!CHECK_MSG(e == TAMIS_OK, "%s", reason.text))
            return false;
        for (uint32_t i = 0; go && i < n / 4; i++) { /* the first quarter goes, others come */
            CHECK(tamis_catalog_drop(w, i, NULL) == TAMIS_OK);
            plain_drop(&x->m, 0);
        }
        CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
        for (uint32_t i = 0; i < (go ? n / 2 : n); i++) {
            struct plain_segment *s = plain_add(&x->m, records);
            for (uint32_t j = 0; j < s->n; j++)
                for (uint32_t at = 0; at < x->m.p; at++)
                    s->records[j][at] = 1 + (uint32_t)(rng_next(rng) % range);
            put_segment(w, g, &x->m, s);
        }
        tamis_gather_free(g);
        CHECK_MSG(tamis_catalog_commit(w, NULL, 0, &reason) == TAMIS_OK, "%s", reason.text);
        tamis_catalog_abandon(w);
    }
    return CHECK(tamis_catalog_open(&x->c, "w.tamis", NULL, &reason) == TAMIS_OK);
}

static void world_free(struct world *x)
{
    tamis_catalog_close(x->c);
    plain_free(&x->m);
}

/* False candidates over all questions; `tries` counts segments that had no match. */
static uint64_t vain_of(const struct world *x, uint64_t mask, uint32_t questions, uint32_t low,
                        uint32_t range, uint64_t *tries, uint64_t *rng)
{
    uint64_t found[64], vain = 0;
    for (uint32_t q = 0; q < questions; q++) {
        uint32_t values[1][P_MAX];
        tamis_catalog_answer answer;
        for (uint32_t at = 0; at < P_MAX; at++)
            values[0][at] = low + (uint32_t)(rng_next(rng) % range);
        if (ask(x->c, mask, (const uint32_t(*)[P_MAX])values, 1, found, &answer) != TAMIS_OK)
            break;
        CHECK(answer.verified);
        for (uint32_t i = 0; i < x->m.n; i++) {
            bool is = found[i / 64] >> (i % 64) & 1;
            bool has = plain_has(&x->m.segments[i], mask, (const uint32_t(*)[P_MAX])values, 1);
            CHECK(is || !has);
            vain += is && !has;
            *tries += !has;
        }
    }
    return vain;
}

/* Up to six deviations over what is expected; segments are some hundred independent vectors. */
static bool at_most(uint64_t seen, double expected)
{
    return (double)seen <= expected + 6 * sqrt(expected + 1) + 0.1 * expected;
}

static void rates(const tamis_catalog_options *o, uint32_t n, bool twice, uint64_t seed)
{
    uint64_t rng = seed, tries = 0;
    struct world x;
    uint32_t questions = HARNESS_TIMES(2500, 20000);
    if (!world_make(&x, o, n, 300, 5000, twice, &rng))
        return;
    uint64_t fresh = vain_of(&x, 1, questions / 4, 1u << 20, 1u << 20, &tries, &rng);
    CHECK_MSG(at_most(fresh, o->fpp * (double)tries), "fresh values: %" PRIu64 " of %" PRIu64,
              fresh, tries);
    tries = 0;
    uint64_t elsewhere = vain_of(&x, 2, questions / 4, 1, 5000, &tries, &rng);
    CHECK_MSG(at_most(elsewhere, o->fpp * (double)tries), "stored elsewhere: %" PRIu64, elsewhere);
    world_free(&x);
    /* every value is in nearly every segment, a pair in one of thirty */
    if (!world_make(&x, o, n, 400, 100, twice, &rng))
        return;
    uint64_t together = vain_of(&x, 3, questions, 1, 100, &tries, &rng);
    CHECK_MSG(at_most(together, o->fpp * questions), "recombined: %" PRIu64 " for %u questions",
              together, questions);
    tamis_relation_facts facts;
    CHECK(tamis_catalog_relation(x.c, 2, &facts) && facts.fpp_now <= o->fpp);
    CHECK(tamis_catalog_relation(x.c, 0, &facts) && facts.fpp_now <= o->fpp * 1.01);
    world_free(&x);
}

TEST(rates_hold_for_every_class_of_question)
{
    tamis_catalog_options o = options_for(2);
    o.fpp = 0.05;
    o.segments = 200;
    rates(&o, 200, false, harness_seed());
    o.memory = 1 << 20;
    rates(&o, 200, true, harness_seed());
    o.segments = 10; /* twenty times as many come */
    rates(&o, 200, true, harness_seed());
}

TEST(pairs_without_a_verifier_are_named_everywhere)
{
    uint64_t rng = harness_seed(), found[4];
    tamis_catalog_options o = options_for(2);
    struct world with, without;
    double named[2] = {0};
    o.segments = 200;
    bool made = world_make(&with, &o, 200, 400, 100, false, &rng);
    o.verifier = TAMIS_VERIFIER_NONE;
    if (!made || !world_make(&without, &o, 200, 400, 100, false, &rng))
        return;
    for (int i = 0; i < 300; i++) {
        uint32_t values[1][P_MAX] = {
            {1 + (uint32_t)(rng_next(&rng) % 100), 1 + (uint32_t)(rng_next(&rng) % 100), 0, 0}};
        tamis_catalog_answer answer;
        ask(with.c, 3, (const uint32_t(*)[P_MAX])values, 1, found, &answer);
        CHECK(answer.verified);
        for (uint32_t j = 0; j < with.m.n; j++)
            named[0] +=
                (double)((found[j / 64] >> (j % 64) & 1) &&
                         !plain_has(&with.m.segments[j], 3, (const uint32_t(*)[P_MAX])values, 1));
        ask(without.c, 3, (const uint32_t(*)[P_MAX])values, 1, found, &answer);
        CHECK(!answer.verified && answer.by_verifier == 0);
        for (uint32_t j = 0; j < without.m.n; j++)
            named[1] += (double)((found[j / 64] >> (j % 64) & 1) &&
                                 !plain_has(&without.m.segments[j], 3,
                                            (const uint32_t(*)[P_MAX])values, 1));
    }
    CHECK_MSG(named[1] >= 20 * (named[0] + 1), "%g and %g", named[0], named[1]);
    world_free(&with), world_free(&without);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Share of records of 120 bytes, every value new, the worst there is. */
static double size_of(uint32_t segments, uint32_t combos)
{
    enum { RECORDS = 2000, RAW = 120 };
    static const uint64_t masks[] = {3, 5, 6, 7};
    tamis_catalog_options o = options_for(3);
    tamis_catalog_writer *w = NULL;
    tamis_gather *g = NULL;
    struct stat st = {0};
    uint64_t next = 0;
    o.fpp = 0.01;
    o.combos = masks;
    o.n_combos = combos;
    o.segments = segments;
    CHECK(tamis_catalog_create(&w, "s.tamis", &o, NULL) == TAMIS_OK);
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (uint32_t i = 0; i < segments; i++) {
        for (uint32_t j = 0; j < RECORDS; j++, next++) {
            tamis_key record[3] = {{&next, 8}, {&next, 8}, {&next, 8}};
            CHECK(tamis_gather_add(g, record) == TAMIS_OK);
        }
        CHECK(tamis_catalog_put(w, g, "tag", 3, NULL) == TAMIS_OK);
    }
    tamis_gather_free(g);
    CHECK(tamis_catalog_commit(w, NULL, 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(stat("s.tamis", &st) == 0);
    return (double)st.st_size / ((double)segments * RECORDS * RAW);
}

TEST(a_catalog_is_small)
{
    static const uint32_t segments[] = {200, 1250};
    for (int i = 0; i < (harness_slow() ? 1 : 2); i++) {
        double one = size_of(segments[i], 1), two = size_of(segments[i], 2);
        printf("%u segments: %.2f %% of the records with one combination, %.2f %% more with two\n",
               segments[i], 100 * one, 100 * (two - one));
        CHECK_MSG(one <= 0.06, "%g", one);
        CHECK_MSG(two - one <= 0.027, "%g", two - one);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct peak {
    tamis_allocator allocator;
    size_t now, most;
};

static void *peak_alloc(void *context, size_t size)
{
    struct peak *p = context;
    p->now += size;
    p->most = p->now > p->most ? p->now : p->most;
    return malloc(size);
}

static void peak_free(void *context, void *memory, size_t size)
{
    ((struct peak *)context)->now -= size;
    free(memory);
}

/* The most that a writer of this many segments had at once, what was gathered included. */
static size_t peak_of(uint32_t segments, uint64_t memory)
{
    struct peak p = {.allocator = {.alloc = peak_alloc, .free = peak_free, .context = &p}};
    tamis_catalog_options o = options_for(2);
    tamis_catalog_writer *w = NULL;
    tamis_gather *g = NULL;
    uint64_t next = 0;
    o.memory = memory;
    o.segments = segments;
    o.allocator = &p.allocator;
    CHECK(tamis_catalog_create(&w, "p.tamis", &o, NULL) == TAMIS_OK);
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (uint32_t i = 0; i < segments; i++) {
        for (uint32_t j = 0; j < 1000; j++, next++)
            CHECK(tamis_gather_add(g, (tamis_key[]){{&next, 8}, {&next, 8}}) == TAMIS_OK);
        CHECK(tamis_catalog_put(w, g, "tag", 3, NULL) == TAMIS_OK);
    }
    tamis_gather_free(g);
    CHECK(tamis_catalog_commit(w, NULL, 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(p.now == 0);
    return p.most;
}

TEST(memory_is_bounded_whatever_there_is_to_write)
{
    enum { MEMORY = 4 << 20, TABLES = 300 }; /* a segment's tag, numbers and checksums, doubled */
    size_t few = peak_of(300, MEMORY), many = peak_of(2000, MEMORY);
    CHECK_MSG(few <= MEMORY && many <= MEMORY, "%zu and %zu", few, many);
    CHECK_MSG(many <= few + 1700 * TABLES, "%zu and %zu", few, many);
}

/* ---- values ---------------------------------------------------------------------------------- */

TEST(values_are_brought_to_their_normal_form)
{
    static const tamis_attribute typed[2] = {{.name = "n", .type = TAMIS_INT}, {.name = "text"}};
    tamis_catalog_options o = {.attributes = typed, .n_attributes = 2, .key = KEY};
    tamis_catalog_writer *w = NULL;
    tamis_gather *g = NULL;
    tamis_catalog *c = NULL;
    tamis_reason reason = {0};
    CHECK(tamis_catalog_create(&w, "v.tamis", &o, &reason) == TAMIS_OK);
    const tamis_schema *s = tamis_catalog_writer_schema(w);
    CHECK(tamis_gather_new(&g, s) == TAMIS_OK);
    CHECK(tamis_gather_add(g, (tamis_key[]){{"007", 3}, {"", 0}}) == TAMIS_OK);
    CHECK(tamis_catalog_put(w, g, NULL, 0, &reason) == TAMIS_OK);
    CHECK(tamis_catalog_put(w, g, "none", 4, &reason) == TAMIS_OK); /* a segment of no records */
    CHECK(tamis_gather_add(g, (tamis_key[]){{"8", 1}, {NULL, 0}}) == TAMIS_OK);
    tamis_gather_clear(g);
    CHECK(tamis_gather_records(g) == 0);
    uint32_t number;
    CHECK(tamis_schema_attribute(s, "text", &number, &reason) == TAMIS_OK && number == 1);
    CHECK(tamis_schema_attribute(s, "x", &number, &reason) == TAMIS_EARG);
    CHECK(strstr(reason.text, "n, text") != NULL);
    tamis_gather_free(g);
    CHECK(tamis_catalog_commit(w, NULL, 0, &reason) == TAMIS_OK);
    tamis_catalog_abandon(w);
    if (!CHECK(tamis_catalog_open(&c, "v.tamis", NULL, &reason) == TAMIS_OK))
        return;
    s = tamis_catalog_schema(c);
    tamis_digest seven = tamis_schema_digest(s, 0, (tamis_key){"+7", 2}),
                 eight = tamis_schema_digest(s, 0, (tamis_key){"8", 1}),
                 empty = tamis_schema_digest(s, 1, (tamis_key){"", 0}),
                 missing = tamis_schema_digest(s, 1, (tamis_key){NULL, 0});
    tamis_catalog_answer answer;
    uint64_t found;
    CHECK(tamis_catalog_ask(c, &(tamis_condition){.attribute = 0, .keys = &seven, .n = 1}, 1,
                            &found, &answer, &reason) == TAMIS_OK &&
          found == 1 && answer.candidates == 1 && answer.by_attributes == 1);
    CHECK(tamis_catalog_ask(c, &(tamis_condition){.attribute = 0, .keys = &eight, .n = 1}, 1,
                            &found, &answer, &reason) == TAMIS_OK &&
          found == 0);
    CHECK(tamis_catalog_ask(c, &(tamis_condition){.attribute = 1, .keys = &empty, .n = 1}, 1,
                            &found, NULL, NULL) == TAMIS_OK &&
          found == 1);
    CHECK(tamis_catalog_ask(c, &(tamis_condition){.attribute = 1, .keys = &missing, .n = 1}, 1,
                            &found, NULL, NULL) == TAMIS_OK &&
          found == 0);
    CHECK(tamis_catalog_ask(c, &(tamis_condition){.attribute = 1, .keys = NULL, .n = 0}, 1, &found,
                            NULL, NULL) == TAMIS_OK &&
          found == 0);
    tamis_condition twice[2] = {{.attribute = 1, .keys = &empty, .n = 1},
                                {.attribute = 1, .keys = &missing, .n = 1}},
                    none = {.attribute = 7, .keys = &empty, .n = 1};
    CHECK(tamis_catalog_ask(c, twice, 2, &found, NULL, &reason) == TAMIS_OK && found == 0);
    CHECK(tamis_catalog_ask(c, &none, 1, &found, NULL, &reason) == TAMIS_EARG);
    CHECK(tamis_catalog_ask(c, twice, 0, &found, NULL, &reason) == TAMIS_OK && found == 3);
    tamis_catalog_close(c);
}

TEST(options_are_checked)
{
    tamis_catalog_writer *w = NULL;
    tamis_reason reason = {0};
    uint64_t one = 1, far = 8;
    tamis_catalog_options o = options_for(2), bad;
    CHECK(tamis_catalog_create(&w, "o.tamis", NULL, &reason) == TAMIS_EARG);
    bad = o, bad.fpp = 1.5;
    CHECK(tamis_catalog_create(&w, "o.tamis", &bad, &reason) == TAMIS_EARG && reason.text[0]);
    bad = o, bad.verifier = TAMIS_VERIFIER_TABLE;
    CHECK(tamis_catalog_create(&w, "o.tamis", &bad, &reason) == TAMIS_EARG);
    bad = o, bad.combos = &one, bad.n_combos = 1;
    CHECK(tamis_catalog_create(&w, "o.tamis", &bad, &reason) == TAMIS_EARG);
    bad = o, bad.combos = &far, bad.n_combos = 1;
    CHECK(tamis_catalog_create(&w, "o.tamis", &bad, &reason) == TAMIS_EARG);
    bad = o, bad.n_attributes = 65;
    CHECK(tamis_catalog_create(&w, "o.tamis", &bad, &reason) == TAMIS_EARG);
    CHECK(tamis_catalog_create(&w, "no/such/folder", &o, &reason) == TAMIS_EIO);
    CHECK(tamis_catalog_update(&w, "o.tamis", NULL, NULL, &reason) == TAMIS_EIO);
    tamis_catalog *c = NULL;
    tamis_filter *f = NULL;
    CHECK(tamis_filter_new(&f, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_filter_save(f, "f.tamis", 0, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_open(&c, "f.tamis", NULL, &reason) == TAMIS_EKIND);
    tamis_filter_free(f);
}

HARNESS_MAIN
