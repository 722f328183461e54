/* Files that others change while they are open. A mapped file may answer anything then, but no byte of
 * it is trusted twice: nothing is read or written out of bounds, which the sanitizers notice. Bytes
 * change between calls, and in the middle of calls, whenever memory is asked for.
 */
#include "fault.h"
#include "harness.h"
#include "histories.h"
#include "worlds.h"
#include "tamis/catalog.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define KEY ((const uint8_t *)"0123456789abcdef")

/* ---- who changes it -------------------------------------------------------------------------- */

struct shaker {
    tamis_allocator allocator; /* changes the file at the call counted down to */
    struct bytes good;
    int fd;
    uint64_t rng, countdown;
};

static bool put_at(const struct shaker *s, const void *data, size_t len, size_t at)
{
    return pwrite(s->fd, data, len, (off_t)at) == (ssize_t)len;
}

static void restore(const struct shaker *s)
{
    CHECK(put_at(s, s->good.data, s->good.len, 0));
}

/* Numbers of 4 or 8 bytes: small ones, huge ones, one bit; half of them in the first page. */
static void shake(struct shaker *s)
{
    unsigned n = 1 + (unsigned)(rng_next(&s->rng) % 64);
    for (unsigned i = 0; i < n; i++) {
        uint64_t drawn = rng_next(&s->rng), value = drawn >> 40;
        size_t wide = drawn & 1 ? 4 : 8, room = s->good.len;
        if (drawn & 2 && room > 4096)
            room = 4096;
        size_t at = (size_t)(rng_next(&s->rng) % (room / wide)) * wide;
        unsigned how = (unsigned)(drawn >> 8) % 4;
        if (how == 0)
            value = UINT64_MAX - (drawn >> 60);
        else if (how == 1)
            value = (drawn >> 50) % 1024;
        else if (how == 2) {
            memcpy(&value, s->good.data + at, wide);
            value ^= UINT64_C(1) << (drawn >> 16) % (8 * wide);
        }
        CHECK(put_at(s, &value, wide, at));
    }
}

static void *shaking_alloc(void *context, size_t size)
{
    struct shaker *s = context;
    if (s->countdown && --s->countdown == 0)
        shake(s);
    return malloc(size);
}

static void shaking_free(void *context, void *memory, size_t size)
{
    (void)context, (void)size;
    free(memory);
}

/* A file is there: from now on it can be shaken. */
static void shaker_begin(struct shaker *s, const char *path, uint64_t seed)
{
    *s = (struct shaker){.allocator = {shaking_alloc, shaking_free, s, NULL}, .rng = seed};
    s->good = file_bytes(path);
    s->fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(s->fd >= 0 && s->good.len >= 64);
}

static void shaker_end(struct shaker *s)
{
    close(s->fd);
    bytes_free(&s->good);
}

static tamis_open_options shaken(struct shaker *s)
{
    return (tamis_open_options){.allocator = &s->allocator};
}

static int drop_bytes(void *context, const void *data, size_t len)
{
    uint64_t *sum = context;
    for (size_t i = 0; i < len; i++)
        *sum += ((const uint8_t *)data)[i];
    return 0;
}

/* ---- filters --------------------------------------------------------------------------------- */

static void use_filter(tamis_filter *f, const tamis_filter *good)
{
    tamis_filter *other = NULL;
    tamis_filter_facts info;
    uint64_t sum = 0;
    for (unsigned i = 0; i < 2 * HISTORY_KEYS; i += 7) {
        char key[24];
        size_t len = history_key(i, key);
        sum += tamis_filter_has(f, key, len);
    }
    tamis_filter_info(f, &info);
    for (unsigned flags = 0; flags < 4; flags++)
        tamis_filter_encode(f, flags, drop_bytes, &sum);
    if (tamis_filter_clone(&other, f) == TAMIS_OK) {
        tamis_filter_add(other, "x", 1, NULL);
        tamis_filter_fold(other, 0, NULL);
        tamis_filter_encode(other, 0, drop_bytes, &sum);
        tamis_filter_free(other);
    }
    if (tamis_filter_clone(&other, good) == TAMIS_OK) {
        tamis_filter_merge(other, f, 0, NULL);
        tamis_filter_free(other);
    }
    if (tamis_filter_intersect(&other, good, f, NULL) == TAMIS_OK)
        tamis_filter_free(other);
    tamis_filter_equal(good, f);
    tamis_filter_diff(good, f, 0, drop_bytes, &sum, NULL);
    tamis_filter_diff(f, good, TAMIS_SAVE_BITS_ONLY, drop_bytes, &sum, NULL);
}

static void shake_filter(unsigned kind, uint64_t seed, unsigned rounds)
{
    struct history h;
    struct shaker s;
    tamis_filter *good = history_new(&h, kind, seed), *f;
    history_steps(&h, good, 300);
    CHECK(tamis_filter_save(good, "file", 0, NULL) == TAMIS_OK);
    shaker_begin(&s, "file", seed);
    tamis_open_options o = shaken(&s);
    for (unsigned i = 0; i < rounds; i++) {
        if (CHECK(tamis_filter_open(&f, "file", &o, NULL) == TAMIS_OK)) {
            shake(&s);
            use_filter(f, good);
            tamis_filter_free(f);
        }
        restore(&s);
        for (int load = 0; load < 2; load++) {
            s.countdown = 1 + rng_next(&s.rng) % 16;
            if ((load ? tamis_filter_load : tamis_filter_open)(&f, "file", &o, NULL) == TAMIS_OK) {
                use_filter(f, good);
                tamis_filter_free(f);
            }
            restore(&s);
        }
        s.countdown = 0;
    }
    shaker_end(&s);
    tamis_filter_free(good);
}

TEST(filters_of_every_kind)
{
    for (unsigned kind = 0; kind < HISTORY_KINDS; kind++)
        shake_filter(kind, harness_seed() + kind, HARNESS_TIMES(12, 100));
    unlink("file");
}

/* Two filters with the same keys side by side: each removal could belong to either, so it is pending,
   and lies in the file. */
TEST(filters_with_pending_removals)
{
    struct shaker s;
    tamis_filter *good = NULL, *same, *f;
    tamis_filter_facts info;
    tamis_options o = {.deletable = true, .fpp = 1e-9, .key = KEY};
    CHECK(tamis_filter_new(&good, &o, NULL) == TAMIS_OK);
    for (uint64_t i = 0; i < 300; i++)
        CHECK(tamis_filter_add(good, &i, sizeof i, NULL) == TAMIS_OK);
    CHECK(tamis_filter_clone(&same, good) == TAMIS_OK);
    CHECK(tamis_filter_merge(good, same, TAMIS_MERGE_CONCAT | TAMIS_MERGE_RESTATE, NULL) ==
          TAMIS_OK);
    tamis_filter_free(same);
    for (uint64_t i = 0; i < 300; i++)
        CHECK(tamis_filter_remove(good, &i, sizeof i, NULL) == TAMIS_OK);
    tamis_filter_brief(good, &info);
    CHECK(info.pending == 300);
    CHECK(tamis_filter_save(good, "file", 0, NULL) == TAMIS_OK);
    shaker_begin(&s, "file", harness_seed());
    tamis_open_options opening = shaken(&s);
    for (unsigned i = 0; i < HARNESS_TIMES(200, 2000); i++) {
        s.countdown = 1 + rng_next(&s.rng) % 64;
        if ((i % 2 ? tamis_filter_load : tamis_filter_open)(&f, "file", &opening, NULL) ==
            TAMIS_OK) {
            use_filter(f, good);
            tamis_filter_free(f);
        }
        s.countdown = 0;
        restore(&s);
    }
    shaker_end(&s);
    tamis_filter_free(good);
    unlink("file");
}

/* ---- indexes --------------------------------------------------------------------------------- */

static void use_index(const struct world *w, tamis_records *x, const tamis_records *good)
{
    tamis_records *other = NULL;
    tamis_records_facts info;
    uint64_t sum = world_compare(w, x, good);
    tamis_records_info(x, &info);
    for (unsigned flags = 0; flags < 4; flags++)
        tamis_records_encode(x, flags, drop_bytes, &sum);
    if (tamis_records_clone(&other, x) == TAMIS_OK) {
        tamis_records_add_many(other, w->digests, w->n, NULL, NULL);
        tamis_records_encode(other, 0, drop_bytes, &sum);
        tamis_records_free(other);
    }
    if (tamis_records_clone(&other, good) == TAMIS_OK) {
        tamis_records_merge(other, x, 0, NULL);
        tamis_records_free(other);
    }
    tamis_records_equal(good, x);
}

static void shake_index(struct world *w, tamis_records *good, uint64_t seed, unsigned rounds)
{
    struct shaker s;
    tamis_records *x;
    CHECK(tamis_records_save(good, "file", 0, NULL) == TAMIS_OK);
    shaker_begin(&s, "file", seed);
    tamis_open_options o = shaken(&s);
    for (unsigned i = 0; i < rounds; i++) {
        if (CHECK(tamis_records_open(&x, "file", &o, NULL) == TAMIS_OK)) {
            shake(&s);
            use_index(w, x, good);
            tamis_records_free(x);
        }
        restore(&s);
        for (int load = 0; load < 2; load++) {
            s.countdown = 1 + rng_next(&s.rng) % 32;
            if ((load ? tamis_records_load : tamis_records_open)(&x, "file", &o, NULL) ==
                TAMIS_OK) {
                use_index(w, x, good);
                tamis_records_free(x);
            }
            restore(&s);
        }
        s.countdown = 0;
    }
    shaker_end(&s);
}

TEST(indexes_of_every_verifier)
{
    uint64_t rng = harness_seed();
    unsigned seen[TAMIS_VERIFIER_FILTER + 1][2] = {{0}};
    for (unsigned i = 0; i < HARNESS_TIMES(60, 400); i++) {
        struct world w;
        uint32_t copies[RECORDS] = {0};
        bool deletable = i % 2;
        world_draw(&w, &rng, deletable);
        tamis_records *x = world_start(&w);
        if (x) {
            world_steps(&w, x, &rng, copies, 200);
            seen[w.options.verifier][deletable]++;
            shake_index(&w, x, rng_next(&rng), 3);
            tamis_records_free(x);
        }
        world_free(&w);
    }
    for (unsigned v = TAMIS_VERIFIER_NONE; v <= TAMIS_VERIFIER_FILTER; v++)
        CHECK_MSG(seen[v][0] && seen[v][1], "verifier %u", v);
    unlink("file");
}

/* ---- catalogs -------------------------------------------------------------------------------- */

enum { SEGMENTS = 40, VALUES = 30 };

static tamis_key value_of(unsigned segment, unsigned i, unsigned at, char text[24])
{
    int len = snprintf(text, 24, "%u-%u", at ? i : 100 * segment + i, at);
    return (tamis_key){text, (size_t)len};
}

static void put_segment(tamis_catalog_writer *w, tamis_gather *g, unsigned segment)
{
    char text[2][24], tag[100];
    for (unsigned i = 0; i < VALUES + segment; i++) {
        tamis_key record[2] = {value_of(segment, i, 0, text[0]), value_of(segment, i, 1, text[1])};
        tamis_gather_add(g, record);
    }
    memset(tag, 'a' + (int)(segment % 26), sizeof tag);
    tamis_catalog_put(w, g, tag, 1 + segment * 2, NULL);
}

static void make_catalog(const char *path)
{
    static const tamis_attribute attributes[] = {{.name = "a"}, {.name = "b"}};
    tamis_catalog_options o = {.attributes = attributes, .n_attributes = 2, .key = KEY};
    tamis_catalog_writer *w = NULL;
    tamis_gather *g = NULL;
    CHECK(tamis_catalog_create(&w, path, &o, NULL) == TAMIS_OK);
    CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
    for (unsigned i = 0; i < SEGMENTS; i++)
        put_segment(w, g, i);
    CHECK(tamis_catalog_commit(w, "note", 4, NULL) == TAMIS_OK);
    tamis_gather_free(g);
    tamis_catalog_abandon(w);
}

static void use_catalog(const tamis_catalog *c)
{
    const tamis_schema *schema = tamis_catalog_schema(c);
    uint64_t found[(SEGMENTS + 63) / 64], sum = 0;
    tamis_catalog_facts facts;
    tamis_relation_facts relation;
    size_t len;
    for (unsigned i = 0; i < SEGMENTS; i++) {
        char text[24];
        tamis_digest a = tamis_schema_digest(schema, 0, value_of(i, 3, 0, text));
        tamis_digest b = tamis_schema_digest(schema, 1, value_of(i, 3, 1, text));
        tamis_condition choices[] = {{.attribute = 0, .keys = &a, .n = 1},
                                     {.attribute = 1, .keys = &b, .n = 1}};
        tamis_catalog_ask(c, choices, 2, found, NULL, NULL);
        tamis_catalog_ask(c, choices + 1, 1, found, NULL, NULL);
        const uint8_t *tag = tamis_catalog_tag(c, i, &len);
        for (size_t j = 0; j < len; j++)
            sum += tag[j];
        sum += tamis_catalog_records(c, i);
    }
    const uint8_t *note = tamis_catalog_note(c, &len);
    for (size_t j = 0; j < len; j++)
        sum += note[j];
    tamis_catalog_rest(c);
    tamis_catalog_info(c, &facts);
    for (uint32_t i = 0; tamis_catalog_relation(c, i, &relation); i++)
        sum += relation.columns;
    (void)sum; /* reading is all that matters */
}

TEST(catalogs_that_are_asked)
{
    struct shaker s;
    tamis_catalog *c;
    make_catalog("file");
    shaker_begin(&s, "file", harness_seed());
    tamis_open_options o = shaken(&s);
    for (unsigned i = 0; i < HARNESS_TIMES(400, 4000); i++) {
        s.countdown = i % 2 ? 1 + rng_next(&s.rng) % 10 : 0;
        o.verify = i % 3 == 0;
        if (tamis_catalog_open(&c, "file", &o, NULL) == TAMIS_OK) {
            use_catalog(c); /* its pages are checked now, and will not be again */
            shake(&s);
            use_catalog(c);
            tamis_catalog_close(c);
        }
        restore(&s);
    }
    shaker_end(&s);
    unlink("file");
}

TEST(catalogs_that_are_updated)
{
    uint64_t rng = harness_seed();
    make_catalog("good");
    struct bytes good = file_bytes("good");
    for (unsigned i = 0; i < HARNESS_TIMES(200, 2000); i++) {
        struct shaker s;
        tamis_catalog_writer *w = NULL;
        tamis_gather *g = NULL;
        CHECK(bytes_to_file(&good, "file"));
        shaker_begin(&s, "file", rng_next(&rng));
        tamis_open_options o = shaken(&s);
        s.countdown = i % 2 ? 1 + rng_next(&rng) % 200 : 0;
        if (tamis_catalog_update(&w, "file", &o, NULL, NULL) == TAMIS_OK) {
            CHECK(tamis_gather_new(&g, tamis_catalog_writer_schema(w)) == TAMIS_OK);
            tamis_catalog_drop(w, rng_next(&rng) % SEGMENTS, NULL);
            tamis_catalog_retag(w, rng_next(&rng) % SEGMENTS, "new", 3, NULL);
            shake(&s);
            put_segment(w, g, SEGMENTS + 1);
            tamis_catalog_commit(w, "note", 4, NULL);
            tamis_gather_free(g);
            tamis_catalog_abandon(w);
        }
        shaker_end(&s);
    }
    bytes_free(&good);
    unlink("file"), unlink("good");
}

/* ---- files that become shorter --------------------------------------------------------------- */

/* Whatever was opened with `read` does not notice. (Mapped, it would end with SIGBUS.) */
TEST(a_file_that_was_read_may_be_cut)
{
    static const tamis_attribute attributes[] = {{.name = "a"}, {.name = "b"}};
    tamis_open_options read = {.read = true};
    tamis_options fo = {.capacity = 50000, .key = KEY};
    tamis_records_options xo = {
        .attributes = attributes, .n_attributes = 2, .set.capacity = 50000, .set.key = KEY};
    tamis_filter *f = NULL, *opened;
    tamis_records *x = NULL, *records;
    tamis_key record[] = {{"a", 1}, {"b", 1}};
    CHECK(tamis_filter_new(&f, &fo, NULL) == TAMIS_OK);
    CHECK(tamis_filter_add(f, "key", 3, NULL) == TAMIS_OK);
    CHECK(tamis_filter_save(f, "file", 0, NULL) == TAMIS_OK);
    if (CHECK(tamis_filter_open(&opened, "file", &read, NULL) == TAMIS_OK)) {
        CHECK(truncate("file", 0) == 0);
        CHECK(history_compare(f, opened) == 0 && tamis_filter_has(opened, "key", 3));
        struct bytes bytes = bytes_of(f, 0), again = bytes_of(opened, 0);
        CHECK(bytes_equal(&bytes, &again));
        bytes_free(&bytes), bytes_free(&again);
        CHECK(tamis_filter_add(opened, "x", 1, NULL) == TAMIS_EREADONLY);
        tamis_filter_free(opened);
    }
    CHECK(tamis_records_new(&x, &xo, NULL) == TAMIS_OK);
    CHECK(tamis_records_add(x, record, NULL) == TAMIS_OK);
    CHECK(tamis_records_save(x, "file", 0, NULL) == TAMIS_OK);
    if (CHECK(tamis_records_open(&records, "file", &read, NULL) == TAMIS_OK)) {
        CHECK(truncate("file", 0) == 0);
        CHECK(tamis_records_equal(records, x));
        tamis_records_free(records);
    }
    make_catalog("file");
    tamis_catalog *c;
    if (CHECK(tamis_catalog_open(&c, "file", &read, NULL) == TAMIS_OK)) {
        CHECK(truncate("file", 0) == 0);
        use_catalog(c);
        tamis_catalog_rest(c);
        use_catalog(c);
        tamis_catalog_close(c);
    }
    tamis_filter_free(f);
    tamis_records_free(x);
    unlink("file");
}

static void ask_what_was_cut(void)
{
    tamis_catalog *c;
    make_catalog("file");
    if (CHECK(tamis_catalog_open(&c, "file", NULL, NULL) == TAMIS_OK)) {
        CHECK(truncate("file", 0) == 0);
        use_catalog(c);
    }
}

/* As the header says. */
TEST(a_mapped_file_that_is_cut_ends_with_a_signal)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGBUS, SIG_DFL);
        ask_what_was_cut();
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    unlink("file");
}

HARNESS_MAIN
