/*
 * Catalogs of typed attributes against a model that shares no code: records are numbers, of which both the
 * text that is gathered and the answer that is expected are made. A segment with a record that matches is
 * always named, along lives of segments put, dropped, put again, and attributes that come later.
 */
#include "harness.h"
#include "tamis/catalog.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#define KEY ((const uint8_t *)"types of a model")

/* ---- records --------------------------------------------------------------------------------- */

enum { IP, PATH, LINE, CODE, LATER, P, LIST = 3, LINE_WORDS = 4 };

static const tamis_attribute attributes[P] = {{.name = "ip", .type = TAMIS_IP},
                                              {.name = "path", .type = TAMIS_PATH},
                                              {.name = "line", .type = TAMIS_WORDS},
                                              {.name = "code", .type = TAMIS_INT},
                                              {.name = "later", .type = TAMIS_DEC}};

/* A value of an attribute is a number: an address; three names of a path, 4 bits each; words, 4 bits each
   and whether a point joins them to the next; a code; quarters. */
struct record {
    unsigned n[P];
    uint32_t value[P][LIST];
};

static int text_of(int attribute, uint32_t v, char *out)
{
    int n = 0;
    switch (attribute) {
    case IP:
        return sprintf(out, "%s%u.%u.%u.%u", v & 1 ? "" : "::ffff:", v >> 24, v >> 16 & 255,
                       v >> 8 & 255, v & 255);
    case PATH:
        return sprintf(out, "/p%u/q%u/r%u", v & 15, v >> 4 & 15, v >> 8 & 15);
    case LINE:
        for (int i = 0; i < LINE_WORDS; i++, v >>= 5)
            n += sprintf(out + n, "%s%u%s", v & 1 ? "W" : "w", v & 15,
                         i + 1 == LINE_WORDS ? "!"
                         : v & 16            ? "."
                                             : " - ");
        return n;
    case CODE:
        return sprintf(out, "%s%u", v & 1 ? "0" : "", v);
    default:
        return sprintf(out, "%s%u.%02u", v & 1 ? "" : "-", v >> 3, 25 * (v >> 1 & 3));
    }
}

static double later_of(uint32_t v)
{
    return ((v >> 3) + 0.25 * (v >> 1 & 3)) * (v & 1 ? 1 : -1);
}

static uint32_t draw(int attribute, uint32_t segment, uint64_t *rng)
{
    uint32_t r = (uint32_t)rng_next(rng), near = segment % 6;
    switch (attribute) {
    case IP:
        return 10u << 24 | near << 16 | (r & 3) << 8 | (r >> 8 & 31);
    case PATH:
        return near | (r & 0xf30);
    case LINE:
        return (r & 0xfffff) | near;
    case CODE:
        return 100 * near + r % 150;
    default:
        return near << 6 | r % 256;
    }
}

/* ---- questions ------------------------------------------------------------------------------- */

enum { EQUAL, NETWORK, PREFIX, WORD, COMPOUND, RANGE, MISSING, KINDS };

struct question {
    int kind, attribute;
    uint32_t value, more;
};

static bool value_holds(const struct question *q, uint32_t v)
{
    uint32_t mask = q->kind == NETWORK && q->more ? UINT32_MAX << (32 - q->more) : 0;
    switch (q->kind) {
    case EQUAL:
        return q->attribute == LATER ? later_of(v) == later_of(q->value) : v == q->value;
    case NETWORK:
        return (v & mask) == (q->value & mask);
    case PREFIX: /* /pX/q and one digit of the second name */
        return (v & 15) == (q->value & 15) && ((v >> 4 & 15) == 1 || (v >> 4 & 15) >= 10);
    case WORD:
        for (int i = 0; i < LINE_WORDS; i++)
            if ((v >> 5 * i & 15) == q->value)
                return true;
        return false;
    case COMPOUND: /* two words, joined to each other and to no third */
        for (int i = 0; i + 1 < LINE_WORDS; i++)
            if ((v >> 5 * i & 15) == q->value && (v >> 5 * (i + 1) & 15) == q->more &&
                v >> (5 * i + 4) & 1 && !(i && v >> (5 * i - 1) & 1) &&
                !(i + 2 < LINE_WORDS && v >> (5 * i + 9) & 1))
                return true;
        return false;
    default:
        return q->attribute == CODE ? v >= q->value && v <= q->more
                                    : later_of(v) >= q->value && later_of(v) <= q->more;
    }
}

static bool record_holds(const struct question *q, const struct record *r)
{
    if (q->kind == MISSING)
        return r->n[q->attribute] == 0;
    for (unsigned i = 0; i < r->n[q->attribute]; i++)
        if (value_holds(q, r->value[q->attribute][i]))
            return true;
    return false;
}

struct asked {
    const tamis_schema *schema;
    uint32_t attribute;
    tamis_condition conditions[16];
    tamis_digest keys[512]; /* of networks up to 128 each */
    tamis_range ranges[4];
    size_t n, n_keys, n_ranges;
    bool parts;
};

static void take_key(void *context, tamis_key key, bool part)
{
    struct asked *a = context;
    a->keys[a->n_keys++] = part ? tamis_schema_part(a->schema, a->attribute, key)
                                : tamis_schema_digest(a->schema, a->attribute, key);
    a->parts |= part;
}

static void ask_keys(struct asked *a, tamis_op op, const char *text, int len)
{
    size_t first = a->n_keys;
    tamis_key value = {text, text ? (size_t)len : 0};
    a->parts = false;
    tamis_need need = tamis_type_ask(attributes[a->attribute].type, op, value, take_key, a);
    CHECK(need != TAMIS_NEED_WRONG);
    if (need == TAMIS_NEED_ANY)
        a->conditions[a->n++] = (tamis_condition){.attribute = a->attribute,
                                                  .keys = a->keys + first,
                                                  .n = a->n_keys - first,
                                                  .parts = a->parts};
    for (size_t i = first; need == TAMIS_NEED_ALL && i < a->n_keys; i++)
        a->conditions[a->n++] = (tamis_condition){
            .attribute = a->attribute, .keys = a->keys + i, .n = 1, .parts = a->parts};
}

static void ask_one(struct asked *a, const struct question *q)
{
    char text[100];
    int n = 0;
    a->attribute = (uint32_t)q->attribute;
    switch (q->kind) {
    case NETWORK:
        n = sprintf(text, "%u.%u.%u.%u/%u", q->value >> 24, q->value >> 16 & 255,
                    q->value >> 8 & 255, q->value & 255, q->more);
        ask_keys(a, TAMIS_NETWORK, text, n);
        return;
    case PREFIX:
        n = sprintf(text, "/p%u/q1", q->value & 15);
        ask_keys(a, TAMIS_PREFIX, text, n);
        return;
    case WORD:
        n = sprintf(text, "w%u", q->value);
        ask_keys(a, TAMIS_PHRASE, text, n);
        return;
    case COMPOUND:
        n = sprintf(text, "W%u.w%u", q->value, q->more);
        ask_keys(a, TAMIS_PHRASE, text, n);
        return;
    case RANGE:
        a->ranges[a->n_ranges] = (tamis_range){{q->value, 0}, {q->more, 0}};
        a->conditions[a->n++] = (tamis_condition){
            .attribute = a->attribute, .ranges = &a->ranges[a->n_ranges++], .n_ranges = 1};
        return;
    case EQUAL:
        n = text_of(q->attribute, q->value, text);
    }
    ask_keys(a, TAMIS_EQUAL, q->kind == MISSING ? NULL : text, n);
}

static struct question question_draw(uint32_t p, uint64_t *rng)
{
    static const int of[KINDS] = {-1, IP, PATH, LINE, LINE, -2, -1};
    uint32_t r = (uint32_t)rng_next(rng);
    struct question q = {.kind = (int)(rng_next(rng) % KINDS)};
    q.attribute = of[q.kind] >= 0    ? of[q.kind]
                  : of[q.kind] == -1 ? (int)(r % p)
                  : p == P && r % 2  ? LATER
                                     : CODE;
    q.value = draw(q.attribute, (uint32_t)rng_next(rng), rng);
    if (q.kind == NETWORK)
        q.more = r % 33;
    if (q.kind == WORD || q.kind == COMPOUND) {
        q.value &= 15;
        q.more = r & 15;
    }
    if (q.kind == RANGE) {
        q.value = r % 700;
        q.more = q.value + r / 700 % 60;
    }
    return q;
}

/* ---- lives ----------------------------------------------------------------------------------- */

struct segment {
    uint32_t id, n, p; /* attributes there were when it was put */
    struct record *records;
};

struct model {
    struct segment segment[400];
    uint32_t n, next;
};

static void put_segment(tamis_catalog_writer *w, tamis_gather *g, struct segment *s, uint32_t p,
                        uint64_t *rng)
{
    tamis_reason reason = {0};
    s->p = p;
    s->records = calloc(s->n + 1, sizeof *s->records);
    for (uint32_t i = 0; i < s->n; i++) {
        struct record *r = &s->records[i];
        char text[P][LIST][100];
        tamis_key keys[P][LIST];
        tamis_values record[P];
        for (int at = 0; at < P; at++) {
            r->n[at] = (unsigned)(rng_next(rng) % (LIST + 1));
            for (unsigned j = 0; j < r->n[at]; j++) {
                r->value[at][j] = draw(at, s->id, rng);
                int len = text_of(at, r->value[at][j], text[at][j]);
                keys[at][j] = (tamis_key){text[at][j], (size_t)len};
            }
            record[at] = (tamis_values){keys[at], r->n[at]};
        }
        CHECK(tamis_gather_add_lists(g, record) == TAMIS_OK);
    }
    tamis_gather_text(g, 100 * s->n);
    CHECK_MSG(tamis_catalog_put(w, g, NULL, 0, &reason) == TAMIS_OK, "%s", reason.text);
}

static bool segment_holds(const struct segment *s, const struct question *q, int n)
{
    for (uint32_t i = 0; i < s->n; i++) {
        bool all = true;
        for (int j = 0; j < n && all; j++)
            all = record_holds(&q[j], &s->records[i]);
        if (all)
            return true;
    }
    return false;
}

/* Returns how many candidates were none. */
static uint64_t compare(const struct model *m, const tamis_catalog *c, uint32_t p, uint64_t *named,
                        uint64_t *rng)
{
    uint64_t vain = 0, found[8];
    tamis_reason reason = {0};
    CHECK(tamis_catalog_segments(c) == m->n);
    for (int round = 0; round < 300; round++) {
        struct asked a = {.schema = tamis_catalog_schema(c)};
        struct question q[3];
        int n = 1 + (int)(rng_next(rng) % 3);
        for (int i = 0; i < n; i++) {
            q[i] = question_draw(p, rng);
            ask_one(&a, &q[i]);
        }
        CHECK_MSG(tamis_catalog_ask(c, a.conditions, a.n, found, NULL, &reason) == TAMIS_OK, "%s",
                  reason.text);
        for (uint32_t i = 0; i < m->n; i++) {
            bool is = found[i / 64] >> (i % 64) & 1, has = segment_holds(&m->segment[i], q, n);
            CHECK_MSG(is || !has, "segment %u, kinds %d %d %d", m->segment[i].id, q[0].kind,
                      n > 1 ? q[1].kind : -1, n > 2 ? q[2].kind : -1);
            vain += is && !has;
            *named += is;
        }
    }
    return vain;
}

static void live(uint64_t memory, uint32_t rounds, uint64_t seed)
{
    const uint64_t combos[] = {1 << IP | 1 << CODE, 1 << IP | 1 << PATH | 1 << CODE};
    tamis_catalog_options o = {.attributes = attributes,
                               .n_attributes = P - 1,
                               .key = KEY,
                               .combos = combos,
                               .n_combos = 2,
                               .memory = memory};
    const uint64_t combo = 1 << LATER | 1 << IP;
    tamis_catalog_options later = {.attributes = attributes + LATER,
                                   .n_attributes = 1,
                                   .combos = &combo,
                                   .n_combos = 1,
                                   .memory = memory};
    tamis_catalog_options same = {.memory = memory};
    static struct model m;
    uint64_t rng = seed, vain = 0, named = 0;
    tamis_reason reason = {0};
    m = (struct model){.n = 0};
    for (uint32_t round = 0; round < rounds; round++) {
        tamis_catalog_writer *w = NULL;
        tamis_gather *g = NULL;
        tamis_catalog *c = NULL;
        uint32_t p = round < 2 ? P - 1 : P;
        tamis_error e = round == 0 ? tamis_catalog_create(&w, "y.tamis", &o, &reason)
                                   : tamis_catalog_update(&w, "y.tamis", NULL,
                                                          round == 2 ? &later : &same, &reason);
        if (!CHECK_MSG(e == TAMIS_OK, "%s", reason.text))
            break;
        for (uint32_t i = m.n; i-- > 0;)
            if (rng_next(&rng) % 8 == 0) {
                CHECK(tamis_catalog_drop(w, i, NULL) == TAMIS_OK);
                free(m.segment[i].records);
                memmove(&m.segment[i], &m.segment[i + 1], (--m.n - i) * sizeof *m.segment);
            }
        CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
        for (uint64_t more = 5 + rng_next(&rng) % 30; more; more--) {
            struct segment *s = &m.segment[m.n++];
            *s = (struct segment){.id = m.next++, .n = (uint32_t)(rng_next(&rng) % 60)};
            put_segment(w, g, s, p, &rng);
        }
        tamis_gather_free(g);
        CHECK_MSG(tamis_catalog_commit(w, NULL, 0, &reason) == TAMIS_OK, "%s", reason.text);
        tamis_catalog_abandon(w);
        CHECK_MSG(tamis_file_verify("y.tamis", &reason) == TAMIS_OK, "%s", reason.text);
        if (!CHECK(tamis_catalog_open(&c, "y.tamis", NULL, &reason) == TAMIS_OK))
            break;
        vain += compare(&m, c, p, &named, &rng);
        tamis_catalog_close(c);
    }
    CHECK_MSG(vain * 4 < named * 3, "%" PRIu64 " of %" PRIu64 " candidates", vain, named);
    for (uint32_t i = 0; i < m.n; i++)
        free(m.segment[i].records);
}

TEST(a_segment_that_matches_is_named_whatever_the_types)
{
    live(0, 6, harness_seed());
    live(65536, 6, harness_seed() + 1); /* fronts in runs, columns planned early */
}

/* ---- fronts ---------------------------------------------------------------------------------- */

static tamis_catalog_writer *front_writer(bool first, uint64_t memory)
{
    tamis_catalog_options o = {.attributes = attributes + CODE,
                               .n_attributes = 1,
                               .key = KEY,
                               .memory = memory,
                               .fpp = 0.1};
    tamis_catalog_writer *w = NULL;
    tamis_error e = first ? tamis_catalog_create(&w, "f.tamis", &o, NULL)
                          : tamis_catalog_update(&w, "f.tamis", NULL,
                                                 &(tamis_catalog_options){.memory = memory}, NULL);
    CHECK(e == TAMIS_OK);
    return w;
}

/* Segments of n numbers each, from `first` on, each with some of the one before. */
static void front_put(tamis_catalog_writer *w, uint64_t first, uint64_t segments, uint64_t n,
                      uint64_t text)
{
    tamis_gather *g = NULL;
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (uint64_t i = 0; i < segments; i++) {
        for (uint64_t j = 0; j < n + n / 4; j++) {
            char number[24];
            int len = sprintf(number, "%" PRIu64, first + i * n + j);
            CHECK(tamis_gather_add(g, &(tamis_key){number, (size_t)len}) == TAMIS_OK);
        }
        tamis_gather_text(g, text);
        CHECK(tamis_catalog_put(w, g, NULL, 0, NULL) == TAMIS_OK);
    }
    tamis_gather_free(g);
    CHECK(tamis_catalog_commit(w, NULL, 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
}

static tamis_error front_ask(const tamis_catalog *c, uint64_t number, uint64_t *named)
{
    char text[24];
    int len = sprintf(text, "%" PRIu64, number);
    tamis_digest d =
        tamis_schema_digest(tamis_catalog_schema(c), 0, (tamis_key){text, (size_t)len});
    uint64_t found[64] = {0};
    tamis_catalog_answer answer;
    tamis_condition condition = {.attribute = 0, .keys = &d, .n = 1};
    tamis_error e = tamis_catalog_ask(c, &condition, 1, found, &answer, NULL);
    *named = e == TAMIS_OK ? answer.candidates : 0;
    return e;
}

static uint64_t front_named(const tamis_catalog *c, uint64_t number)
{
    uint64_t named;
    CHECK(front_ask(c, number, &named) == TAMIS_OK);
    return named;
}

/* With columns at one in ten, 50 segments have five false candidates for an absent value; the front names none. */
TEST(a_front_settles_what_is_nowhere)
{
    for (int little = 0; little < 2; little++) {
        uint64_t n = 2000, text = 4000000;
        front_put(front_writer(true, little ? 65536 : 0), 0, 50, n, text);
        tamis_catalog *c = NULL;
        tamis_relation_facts facts;
        tamis_reason reason = {0};
        CHECK_MSG(tamis_file_verify("f.tamis", &reason) == TAMIS_OK, "%s", reason.text);
        CHECK(tamis_catalog_open(&c, "f.tamis", NULL, NULL) == TAMIS_OK);
        CHECK(tamis_catalog_relation(c, 0, &facts));
        CHECK_MSG(facts.front_keys == 50 * n + n / 4, "%" PRIu64, facts.front_keys);
        CHECK(facts.front_fpp <= 1e-6 && facts.front_bytes <= 50 * text / 200);
        CHECK_MSG(facts.front_bytes * 8 <= 28 * facts.front_keys, "%g bits per key",
                  8.0 * (double)facts.front_bytes / (double)facts.front_keys);
        uint64_t named = 0, missed = 0;
        for (uint64_t i = 0; i < 100000; i++)
            named += front_named(c, 1000000 + i);
        for (uint64_t i = 0; i < 50 * n; i += 7)
            missed += front_named(c, i) == 0;
        CHECK_MSG(named <= 5 && missed == 0, "%" PRIu64 " named, %" PRIu64 " missed", named,
                  missed);
        tamis_catalog_close(c);
    }
}

static void turn_page(int fd, off_t at, size_t len)
{
    uint8_t page[4096];
    CHECK(pread(fd, page, len, at) == (ssize_t)len);
    for (size_t i = 0; i < len; i++)
        page[i] ^= 0xFF;
    CHECK(pwrite(fd, page, len, at) == (ssize_t)len);
}

/* Wherever a page is damaged, opening or asking says so: no value that is there is denied. */
TEST(a_damaged_front_denies_nothing)
{
    front_put(front_writer(true, 0), 0, 50, 2000, 4000000);
    struct stat file;
    int fd = open("f.tamis", O_RDWR);
    uint64_t noticed = 0, denied = 0;
    if (!CHECK(fd >= 0 && fstat(fd, &file) == 0))
        return;
    for (off_t at = 0; at < file.st_size; at += 4096) {
        size_t len = file.st_size - at < 4096 ? (size_t)(file.st_size - at) : 4096;
        tamis_catalog *c = NULL;
        turn_page(fd, at, len);
        tamis_error e = tamis_catalog_open(&c, "f.tamis", NULL, NULL);
        bool opened = e == TAMIS_OK;
        for (uint64_t i = 0, named; e == TAMIS_OK && i < 100000; i += 97) {
            e = front_ask(c, i, &named);
            denied += e == TAMIS_OK && named == 0;
        }
        CHECK(e == TAMIS_OK || e == TAMIS_ECHECKSUM || !opened);
        noticed += e != TAMIS_OK;
        tamis_catalog_close(c);
        turn_page(fd, at, len);
    }
    close(fd);
    CHECK_MSG(denied == 0 && noticed > 80, "%" PRIu64 " denied, %" PRIu64 " pages noticed", denied,
              noticed);
}

/* Where there is little text, fingerprints are shorter, and then there are none at all; what is there is
   found all the same, now and after an update. */
TEST(fronts_stay_within_their_share_of_the_text)
{
    static const uint64_t texts[] = {2000000, 600000, 200000, 10};
    for (int i = 0; i < 4; i++) {
        front_put(front_writer(true, 0), 0, 20, 2000, texts[i]);
        front_put(front_writer(false, 0), 50000, 20, 2000, texts[i]);
        tamis_catalog *c = NULL;
        tamis_relation_facts facts;
        uint64_t missed = 0;
        CHECK(tamis_catalog_open(&c, "f.tamis", NULL, NULL) == TAMIS_OK);
        CHECK(tamis_catalog_relation(c, 0, &facts));
        uint64_t most = 40 * texts[i] / 200;
        CHECK_MSG(facts.front_bytes <= (most > 8192 ? most : 8192), "%" PRIu64, facts.front_bytes);
        CHECK((facts.front_keys > 0) == (i < 2) || i == 2);
        CHECK(i > 0 || facts.front_fpp < 1e-6);
        for (uint64_t j = 0; j < 40000; j += 3)
            missed += front_named(c, j < 20000 ? j : 30000 + j) == 0;
        CHECK_MSG(missed == 0, "%" PRIu64 " missed", missed);
        tamis_catalog_close(c);
    }
}

/* Of four attributes the one with the most values does not fit. The room that it leaves is for the others, whose
   fingerprints are equally long: an attribute of few values is not exact at the expense of the others. */
TEST(fronts_share_the_room)
{
    static const uint64_t values[] = {64000, 39000, 37000, 17000};
    static const char *const names[] = {"wide", "path", "host", "user"};
    const uint64_t text = 37000000;
    tamis_attribute several[4];
    for (int i = 0; i < 4; i++) {
        several[i] = attributes[CODE];
        several[i].name = names[i];
    }
    tamis_catalog_options o = {.attributes = several, .n_attributes = 4, .key = KEY};
    tamis_catalog_writer *w = NULL;
    tamis_gather *g = NULL;
    CHECK(tamis_catalog_create(&w, "f.tamis", &o, NULL) == TAMIS_OK);
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (uint64_t i = 0; i < values[0]; i++) {
        char number[4][24];
        tamis_key record[4];
        for (int j = 0; j < 4; j++)
            record[j] =
                (tamis_key){number[j], (size_t)sprintf(number[j], "%" PRIu64, i % values[j])};
        CHECK(tamis_gather_add(g, record) == TAMIS_OK);
    }
    tamis_gather_text(g, text);
    CHECK(tamis_catalog_put(w, g, NULL, 0, NULL) == TAMIS_OK);
    tamis_gather_free(g);
    CHECK(tamis_catalog_commit(w, NULL, 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);

    tamis_catalog *c = NULL;
    tamis_relation_facts facts;
    uint64_t bytes = 0;
    CHECK(tamis_catalog_open(&c, "f.tamis", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_relation(c, 0, &facts) && facts.front_keys == 0);
    for (uint32_t i = 1; i < 4; i++) {
        CHECK(tamis_catalog_relation(c, i, &facts) && facts.front_keys > values[i] - 100);
        CHECK_MSG(facts.front_fpp < 0.003 && facts.front_fpp > 0.0001, "%s: %g", names[i],
                  facts.front_fpp);
        bytes += facts.front_bytes;
    }
    CHECK_MSG(bytes <= text / 200 && bytes > text / 220, "%" PRIu64, bytes);
    tamis_catalog_close(c);
}

/* From a handful of keys to 60,000 in updates: the rate holds, every key is found. */
TEST(fronts_grow_with_updates)
{
    uint64_t next = 0;
    tamis_catalog *c = NULL;
    tamis_relation_facts facts;
    for (uint64_t n = 8; n <= 32768; n *= 2) {
        front_put(front_writer(n == 8, 0), next, 1, n, 2000 * n);
        next += n;
    }
    CHECK(tamis_catalog_open(&c, "f.tamis", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_relation(c, 0, &facts));
    CHECK_MSG(facts.front_keys >= next && facts.front_fpp < 5e-6, "%" PRIu64 " keys, %g",
              facts.front_keys, facts.front_fpp);
    uint64_t missed = 0, named = 0;
    for (uint64_t i = 0; i < next; i += 5)
        missed += front_named(c, i) == 0;
    for (uint64_t i = 0; i < 50000; i++)
        named += front_named(c, 1000000 + i);
    CHECK_MSG(missed == 0 && named <= 10, "%" PRIu64 " missed, %" PRIu64 " named", missed, named);
    CHECK(facts.front_forgotten == 0);
    tamis_catalog_close(c);
    tamis_catalog_writer *w = front_writer(false, 0);
    CHECK(tamis_catalog_drop(w, 12, NULL) == TAMIS_OK); /* the last, half of all */
    CHECK(tamis_catalog_commit(w, NULL, 0, NULL) == TAMIS_OK);
    tamis_catalog_abandon(w);
    CHECK(tamis_catalog_open(&c, "f.tamis", NULL, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_relation(c, 0, &facts));
    CHECK_MSG(fabs(facts.front_forgotten - 0.5) < 0.01, "%g", facts.front_forgotten);
    tamis_catalog_close(c);
}

/* ---- many ranges ----------------------------------------------------------------------------- */

/* Segments from `low[i]` to `low[i] + wide[i]`, of one code at least. */
static tamis_catalog *range_catalog(const uint32_t *low, const uint32_t *wide, size_t n)
{
    static const tamis_attribute code = {.name = "code", .type = TAMIS_INT, .bounds_only = true};
    tamis_catalog_options o = {.attributes = &code, .n_attributes = 1, .key = KEY};
    tamis_catalog_writer *w = NULL;
    tamis_catalog *c = NULL;
    tamis_gather *g = NULL;
    CHECK(tamis_catalog_create(&w, "r.tamis", &o, NULL) == TAMIS_OK);
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (size_t i = 0; i < n; i++) {
        for (int high = 0; high < 2; high++) {
            char text[24];
            int len = sprintf(text, "%u", low[i] + high * wide[i]);
            CHECK(tamis_gather_add(g, &(tamis_key){text, (size_t)len}) == TAMIS_OK);
        }
        CHECK(tamis_catalog_put(w, g, NULL, 0, NULL) == TAMIS_OK);
    }
    CHECK(tamis_catalog_commit(w, NULL, 0, NULL) == TAMIS_OK);
    CHECK(tamis_catalog_open(&c, "r.tamis", NULL, NULL) == TAMIS_OK);
    tamis_gather_free(g);
    tamis_catalog_abandon(w);
    return c;
}

/* In any order, overlapping, one within another, and empty ones: each segment as one by one. */
TEST(any_of_many_ranges_may_meet_a_segment)
{
    enum { SEGMENTS = 70 };
    uint64_t rng = harness_seed(), met = 0, all = 0;
    uint32_t low[SEGMENTS], wide[SEGMENTS];
    tamis_range ranges[64];
    for (size_t i = 0; i < SEGMENTS; i++) {
        low[i] = (uint32_t)(rng_next(&rng) % (10000));
        wide[i] = (uint32_t)(rng_next(&rng) % (i % 3 ? 10 : 2000));
    }
    tamis_catalog *c = range_catalog(low, wide, SEGMENTS);
    for (int round = 0; round < HARNESS_TIMES(200, 20000); round++) {
        size_t n = 1 + (rng_next(&rng) % (round % 2 ? 64 : 6));
        for (size_t i = 0; i < n; i++) {
            int64_t at = (int64_t)(rng_next(&rng) % (10000));
            int64_t len = (int64_t)(rng_next(&rng) % (i % 7 ? 20 : 300));
            ranges[i] = (tamis_range){{at, i & 1}, {at + len, 0}};
        }
        const tamis_condition asked = {.ranges = ranges, .n_ranges = n};
        uint64_t bits[2] = {0}, wrong = 0;
        CHECK(tamis_catalog_ask(c, &asked, 1, bits, NULL, NULL) == TAMIS_OK);
        for (size_t i = 0; i < SEGMENTS; i++) {
            const tamis_range here = {{low[i], 0}, {low[i] + wide[i], 0}};
            bool meets = false;
            for (size_t j = 0; j < n; j++)
                meets |= tamis_order_compare(here.low, ranges[j].high) <= 0 &&
                         tamis_order_compare(ranges[j].low, here.high) <= 0;
            wrong += meets != (bits[i / 64] >> i % 64 & 1);
            met += meets;
            all++;
        }
        CHECK_MSG(wrong == 0, "%zu ranges: %" PRIu64 " segments differ", n, wrong);
    }
    CHECK(met > all / 100 && met < all);
    tamis_catalog_close(c);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Keys that all differ, with memory for a few: runs of the fronts are merged in tiers. */
COST(fronts_are_merged_in_tiers, 160000)
{
    front_put(front_writer(true, 65536), 0, n / 1000, 1000, 1 << 20);
}

/* Segments and ranges: not every one is compared with every other. */
COST(ranges_are_searched, 1 << 16)
{
    size_t segments = n / 64;
    uint32_t *low = calloc(segments, sizeof *low), *wide = calloc(segments, sizeof *wide);
    tamis_range *ranges = calloc(n, sizeof *ranges);
    uint64_t *bits = calloc(segments / 64 + 1, sizeof *bits);
    for (size_t i = 0; i < segments; i++)
        low[i] = (uint32_t)(128 * i + 1);
    for (size_t i = 0; i < n; i++)
        ranges[i].low.whole = ranges[i].high.whole = (int64_t)(2 * (i * 7919 % n));
    tamis_catalog *c = range_catalog(low, wide, segments);
    const tamis_condition asked = {.ranges = ranges, .n_ranges = n};
    tamis_catalog_answer answer;
    CHECK(tamis_catalog_ask(c, &asked, 1, bits, &answer, NULL) == TAMIS_OK);
    CHECK(answer.candidates == 0);
    tamis_catalog_close(c);
    free(low);
    free(wide);
    free(ranges);
    free(bits);
}

/* One line of words, all different, and of bytes that are all one token. */
COST(long_lines_are_cut_once, 1 << 20)
{
    tamis_catalog_options o = {.attributes = attributes + LINE, .n_attributes = 1, .key = KEY};
    tamis_catalog_writer *w = NULL;
    tamis_gather *g = NULL;
    char *text = malloc(n + 16);
    CHECK(tamis_catalog_create(&w, "l.tamis", &o, NULL) == TAMIS_OK);
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (size_t i = 0; i < n; i += 8)
        sprintf(text + i, "%07zx.", i / 8);
    CHECK(tamis_gather_add(g, &(tamis_key){text, n}) == TAMIS_OK);
    memset(text, 'x', n);
    CHECK(tamis_gather_add(g, &(tamis_key){text, n}) == TAMIS_OK);
    tamis_gather_free(g);
    tamis_catalog_abandon(w);
    free(text);
}

HARNESS_MAIN
