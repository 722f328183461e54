/* The file of a catalog: damage is noticed before it is believed; if memory runs out, on a full disk and
 * under a kill the old version is whole; and an update of nothing changes nothing that can be asked.
 */
#include "fault.h"
#include "catalog/catalog_bytes.h"
#include "harness.h"
#include "histories.h"
#include "tamis/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define KEY ((const uint8_t *)"0123456789abcdef")

static const tamis_attribute attributes[2] = {{.name = "a"}, {.name = "b"}};

static tamis_catalog_options options(const tamis_allocator *a)
{
    return (tamis_catalog_options){
        .attributes = attributes, .n_attributes = 2, .segments = 50, .key = KEY, .allocator = a};
}

/* Segment i of version v has 20 + i % 7 records; record j is (i + v * 1000, j). */
static tamis_error put_some(tamis_catalog_writer *w, uint32_t from, uint32_t to, uint32_t version,
                            tamis_reason *reason)
{
    tamis_gather *g = NULL;
    tamis_error e = tamis_gather_new(&g, tamis_catalog_writer_schema(w));
    for (uint32_t i = from; i < to && e == TAMIS_OK; i++) {
        uint32_t mine = i + 1000 * version;
        for (uint32_t j = 0; j < 20 + i % 7 && e == TAMIS_OK; j++)
            e = tamis_gather_add(g, (tamis_key[]){{&mine, sizeof mine}, {&j, sizeof j}});
        if (e == TAMIS_OK)
            e = tamis_catalog_put(w, g, &mine, sizeof mine, reason);
    }
    tamis_gather_free(g);
    return e;
}

static tamis_error make(const char *path, uint32_t segments, uint32_t version,
                        const tamis_allocator *a, tamis_reason *reason)
{
    tamis_catalog_options o = options(a);
    tamis_catalog_writer *w = NULL;
    tamis_error e = tamis_catalog_create(&w, path, &o, reason);
    if (e != TAMIS_OK)
        return e;
    e = put_some(w, 0, segments, version, reason);
    if (e == TAMIS_OK)
        e = tamis_catalog_commit(w, "note", 4, reason);
    tamis_catalog_abandon(w);
    return e;
}

/* Drops every third segment and adds some. */
static tamis_error update(const char *path, uint32_t version, const tamis_allocator *a,
                          tamis_reason *reason)
{
    tamis_open_options o = {.allocator = a};
    tamis_catalog_writer *w = NULL;
    tamis_error e = tamis_catalog_update(&w, path, &o, NULL, reason);
    if (e != TAMIS_OK)
        return e;
    for (uint64_t i = 0; tamis_catalog_drop(w, i, NULL) == TAMIS_OK; i += 3)
        ;
    e = tamis_catalog_retag(w, 1, "retagged", 8, reason);
    if (e == TAMIS_OK)
        e = put_some(w, 0, 10, version, reason);
    if (e == TAMIS_OK)
        e = tamis_catalog_commit(w, "again", 5, reason);
    tamis_catalog_abandon(w);
    return e;
}

/* Asks for each segment by the value that it alone has; bits of what was found. */
static tamis_error ask_all(const tamis_catalog *c, uint64_t *sum, tamis_reason *reason)
{
    uint64_t found[8];
    const tamis_schema *s = tamis_catalog_schema(c);
    *sum = 0;
    for (uint64_t i = 0; i < tamis_catalog_segments(c); i++) {
        size_t len;
        const void *tag = tamis_catalog_tag(c, i, &len);
        uint32_t j = 3;
        tamis_digest d[2] = {tamis_schema_digest(s, 0, (tamis_key){tag, len}),
                             tamis_schema_digest(s, 1, (tamis_key){&j, sizeof j})};
        tamis_condition choices[2] = {{.attribute = 0, .keys = &d[0], .n = 1},
                                      {.attribute = 1, .keys = &d[1], .n = 1}};
        tamis_error e = tamis_catalog_ask(c, choices, 2, found, NULL, reason);
        if (e != TAMIS_OK)
            return e;
        *sum += found[i / 64] >> (i % 64) & 1;
    }
    return TAMIS_OK;
}

static void check_whole(const char *path, uint64_t segments, uint64_t strangers)
{
    tamis_reason reason = {0};
    tamis_catalog *c = NULL;
    uint64_t sum;
    CHECK_MSG(tamis_file_verify(path, &reason) == TAMIS_OK, "%s", reason.text);
    if (!CHECK_MSG(tamis_catalog_open(&c, path, NULL, &reason) == TAMIS_OK, "%s", reason.text))
        return;
    CHECK(ask_all(c, &sum, &reason) == TAMIS_OK);
    CHECK_MSG(tamis_catalog_segments(c) == segments && sum + strangers >= segments,
              "%" PRIu64 " of %" PRIu64, sum, segments);
    tamis_catalog_close(c);
}

static unsigned files_here(void)
{
    DIR *dir = opendir(".");
    unsigned n = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        n += entry->d_name[0] != '.' || entry->d_name[1] == 't';
    closedir(dir);
    return n;
}

/* ---- damage ---------------------------------------------------------------------------------- */

static struct bytes read_bytes(const char *path)
{
    struct bytes bytes = {0};
    char buffer[4096];
    FILE *file = fopen(path, "rb");
    for (size_t n; file && (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
        bytes_write(&bytes, buffer, n);
    if (file)
        fclose(file);
    return bytes;
}

TEST(a_short_file_is_refused)
{
    tamis_reason reason = {0};
    tamis_catalog *c = NULL;
    CHECK(make("c.tamis", 12, 0, NULL, &reason) == TAMIS_OK);
    struct bytes bytes = read_bytes("c.tamis");
    for (size_t len = 0; len < bytes.len; len += len < 200 || bytes.len - len < 200 ? 1 : 61) {
        CHECK_MSG(catalog_from_mapping(&c, (struct mapping){.data = bytes.data, .len = len}, NULL,
                                       &reason) != TAMIS_OK,
                  "%zu", len);
        CHECK(catalog_verify((struct mapping){.data = bytes.data, .len = len}, &reason) !=
              TAMIS_OK);
    }
    bytes_free(&bytes);
}

TEST(a_flipped_bit_is_noticed)
{
    uint64_t rng = harness_seed(), refused = 0, later = 0;
    tamis_reason reason = {0};
    CHECK(make("c.tamis", 40, 0, NULL, &reason) == TAMIS_OK);
    struct bytes bytes = read_bytes("c.tamis");
    for (int i = 0; i < HARNESS_TIMES(10000, 200000); i++) {
        size_t at = (size_t)(rng_next(&rng) % (i % 3              ? bytes.len
                                               : bytes.len < 9000 ? bytes.len
                                                                  : 9000));
        uint8_t flip = (uint8_t)(1u << rng_next(&rng) % 8);
        uint64_t sum;
        tamis_catalog *c = NULL;
        ((uint8_t *)bytes.data)[at] ^= flip;
        CHECK_MSG(catalog_verify((struct mapping){.data = bytes.data, .len = bytes.len}, &reason) !=
                      TAMIS_OK,
                  "byte %zu", at);
        tamis_open_options all = {.verify = true};
        CHECK(catalog_from_mapping(&c, (struct mapping){.data = bytes.data, .len = bytes.len}, &all,
                                   &reason) != TAMIS_OK);
        if (catalog_from_mapping(&c, (struct mapping){.data = bytes.data, .len = bytes.len}, NULL,
                                 &reason) == TAMIS_OK) {
            tamis_error e = ask_all(c, &sum, &reason); /* an error, or nothing of it was touched */
            CHECK(e == TAMIS_ECHECKSUM || (e == TAMIS_OK && sum == 40));
            later += e != TAMIS_OK;
            tamis_catalog_close(c);
        } else {
            refused++;
        }
        ((uint8_t *)bytes.data)[at] ^= flip;
    }
    CHECK(refused > 0 && later > 0);
    bytes_free(&bytes);
}

/* Bytes whose checksums are right but that no writer writes. */
static void repair(struct bytes *bytes)
{
    uint8_t *data = bytes->data;
    uint64_t header, body_len, sums, n, tops, tops_len, from;
    memcpy(&header, data + 24, 8);
    memcpy(&body_len, data + 32, 8);
    const uint8_t *sections = data + 128 + body_len;
    memcpy(&sums, sections + 24 * 5 + 8, 8);
    memcpy(&n, sections + 24 * 5 + 16, 8);
    memcpy(&tops, sections + 24 * 6 + 8, 8);
    memcpy(&tops_len, sections + 24 * 6 + 16, 8);
    for (uint64_t i = 0; i < n / 8; i++) {
        from = header + 4096 * i;
        uint64_t hash = hash_of(data + from, from + 4096 > sums ? sums - from : 4096);
        memcpy(data + sums + 8 * i, &hash, 8);
    }
    for (uint64_t i = 0; i < tops_len / 8; i++) {
        uint64_t len = n - 4096 * i < 4096 ? n - 4096 * i : 4096;
        uint64_t hash = hash_of(data + sums + 4096 * i, len);
        memcpy(data + tops + 8 * i, &hash, 8);
    }
    uint64_t hash = hash_of(data + tops, tops_len);
    memcpy(data + 128 + 88, &hash, 8);
    hash = hash_of(data, header - 8);
    memcpy(data + header - 8, &hash, 8);
}

TEST(forged_bytes_do_no_harm)
{
    uint64_t rng = harness_seed(), accepted = 0;
    tamis_reason reason = {0};
    CHECK(make("c.tamis", 30, 0, NULL, &reason) == TAMIS_OK);
    struct bytes bytes = read_bytes("c.tamis"), copy = read_bytes("c.tamis");
    for (int i = 0; i < HARNESS_TIMES(3000, 50000); i++) {
        uint64_t sum;
        tamis_catalog *c = NULL;
        /* the body, or the tables behind the strips */
        size_t at = i % 2 ? 128 + (size_t)(rng_next(&rng) % 150)
                          : bytes.len - 1 - (size_t)(rng_next(&rng) % 2500);
        ((uint8_t *)bytes.data)[at] = (uint8_t)rng_next(&rng);
        repair(&bytes);
        catalog_verify((struct mapping){.data = bytes.data, .len = bytes.len}, &reason);
        if (catalog_from_mapping(&c, (struct mapping){.data = bytes.data, .len = bytes.len}, NULL,
                                 &reason) == TAMIS_OK) {
            ask_all(c, &sum, &reason);
            tamis_relation_facts facts;
            for (uint32_t r = 0; tamis_catalog_relation(c, r, &facts); r++)
                ;
            tamis_catalog_close(c);
            accepted++;
        }
        memcpy(bytes.data, copy.data, copy.len);
    }
    CHECK(accepted > 0);
    bytes_free(&bytes), bytes_free(&copy);
}

/* ---- without memory or room ------------------------------------------------------------------ */

TEST(without_memory_the_old_file_stays)
{
    struct fault fault;
    tamis_reason reason = {0};
    fault_init(&fault);
    CHECK(make("m.tamis", 30, 0, NULL, &reason) == TAMIS_OK);
    unlink("n.tamis");
    unsigned files = files_here();
    tamis_error e = TAMIS_ENOMEM;
    for (uint64_t at = 1; e != TAMIS_OK && at < 3000; at++) {
        fault_arm(&fault, at, at % 2);
        e = update("m.tamis", 1, &fault.allocator, &reason);
        CHECK_MSG(e == TAMIS_OK || e == TAMIS_ENOMEM, "%s: %s", tamis_error_text(e), reason.text);
        CHECK(fault_clean(&fault));
        if (e != TAMIS_OK && at % 16 == 0)
            check_whole("m.tamis", 30, 0);
    }
    CHECK(e == TAMIS_OK);
    check_whole("m.tamis", 30, 1); /* 10 went, 10 came; one has another tag */
    for (uint64_t at = 1, done = 0; !done && at < 3000; at++) {
        fault_arm(&fault, at, false);
        e = make("n.tamis", 15, 0, &fault.allocator, &reason);
        CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
        CHECK(fault_clean(&fault));
        done = e == TAMIS_OK;
    }
    tamis_open_options o = {.allocator = &fault.allocator};
    e = TAMIS_ENOMEM;
    for (uint64_t at = 1; e != TAMIS_OK && at < 100; at++) {
        tamis_catalog *c = NULL;
        uint64_t sum;
        fault_arm(&fault, at, true);
        e = tamis_catalog_open(&c, "n.tamis", &o, &reason);
        if (e == TAMIS_OK)
            e = ask_all(c, &sum, &reason);
        CHECK(e == TAMIS_OK || e == TAMIS_ENOMEM);
        tamis_catalog_close(c);
        CHECK(fault_clean(&fault));
    }
    CHECK(e == TAMIS_OK);
    CHECK(files_here() == files + 1);
}

/* Every limit up to the size of the new file, in a child, where writes past it fail. */
TEST(on_a_full_disk_the_old_file_stays)
{
    tamis_reason reason = {0};
    CHECK(make("f.tamis", 30, 0, NULL, &reason) == TAMIS_OK);
    struct bytes before = read_bytes("f.tamis");
    unsigned files = files_here();
    for (rlim_t limit = 0; limit < before.len; limit += 1 + before.len / 25) {
        pid_t child = fork();
        if (child == 0) {
            struct rlimit most = {limit, limit};
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &most);
            tamis_error e = update("f.tamis", 1, NULL, &reason);
            _exit(e == TAMIS_EIO && reason.system_error && reason.text[0] ? 0 : 1);
        }
        int status = 1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK_MSG(status == 0, "limit %lu", (unsigned long)limit);
        struct bytes after = read_bytes("f.tamis");
        CHECK(bytes_equal(&before, &after));
        bytes_free(&after);
    }
    CHECK(files_here() == files);
    bytes_free(&before);
}

/* Threads that come after the one that failed say the same: any of them may be the first to speak. */
TEST(a_full_disk_is_called_that_by_all_who_write)
{
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit most = {4096, 4096};
        tamis_reason first = {0}, again = {0}, last = {0};
        tamis_catalog_options o = options(NULL);
        tamis_catalog_writer *w = NULL;
        bool good = tamis_catalog_create(&w, "full.tamis", &o, NULL) == TAMIS_OK;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &most);
        good = good && put_some(w, 0, 3000, 1, &first) == TAMIS_EIO && first.system_error == EFBIG;
        good = good && put_some(w, 0, 1, 1, &again) == TAMIS_EIO && again.system_error == EFBIG;
        good = good && tamis_catalog_commit(w, "note", 4, &last) == TAMIS_EIO &&
               last.system_error == EFBIG && strcmp(first.text, last.text) == 0;
        tamis_catalog_abandon(w);
        _exit(good ? 0 : 1);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

TEST(a_killed_writer_leaves_the_old_file_or_the_new)
{
    uint64_t rng = harness_seed();
    tamis_reason reason = {0};
    CHECK(make("k.tamis", 30, 0, NULL, &reason) == TAMIS_OK);
    unsigned files = files_here();
    unsigned kills = HARNESS_TIMES(20, 200);
    for (unsigned i = 0; i < kills; i++) {
        struct stat before = {0}, now = {0};
        CHECK(stat("k.tamis", &before) == 0);
        pid_t child = fork();
        if (child == 0) {
            for (uint32_t version = 1;; version++)
                if (update("k.tamis", version, NULL, &reason) != TAMIS_OK)
                    _exit(1);
        }
        while (i % 2 && stat("k.tamis", &now) == 0 && now.st_ino == before.st_ino &&
               waitpid(child, NULL, WNOHANG) == 0)
            usleep(500); /* every second one has replaced it once */
        struct timespec some = {0, (long)(rng_next(&rng) % 20000000)};
        nanosleep(&some, NULL);
        kill(child, SIGKILL);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        tamis_catalog *c = NULL;
        CHECK_MSG(tamis_file_verify("k.tamis", &reason) == TAMIS_OK, "%s", reason.text);
        if (CHECK(tamis_catalog_open(&c, "k.tamis", NULL, &reason) == TAMIS_OK)) {
            uint64_t sum, n = tamis_catalog_segments(c);
            CHECK(ask_all(c, &sum, &reason) == TAMIS_OK && sum + 1 >= n && n >= 20);
            tamis_catalog_close(c);
        }
    }
    CHECK(files_here() <= files + kills / 2); /* a name given just before the rename may stay */
}

TEST(updates_of_nothing_keep_the_answers)
{
    tamis_reason reason = {0};
    CHECK(make("u.tamis", 45, 0, NULL, &reason) == TAMIS_OK);
    struct bytes first = read_bytes("u.tamis");
    for (int i = 0; i < 3; i++) {
        tamis_catalog_writer *w = NULL;
        CHECK(tamis_catalog_update(&w, "u.tamis", NULL, NULL, &reason) == TAMIS_OK);
        CHECK(tamis_catalog_commit(w, "note", 4, &reason) == TAMIS_OK);
        tamis_catalog_abandon(w);
        check_whole("u.tamis", 45, 0);
    }
    struct bytes last = read_bytes("u.tamis");
    CHECK(bytes_equal(&first, &last)); /* the same state gives the same bytes */
    bytes_free(&first), bytes_free(&last);
    for (int i = 0; i < 12; i++) { /* many small updates do not make many strips */
        tamis_catalog_writer *w = NULL;
        CHECK(tamis_catalog_update(&w, "u.tamis", NULL, NULL, &reason) == TAMIS_OK);
        CHECK(put_some(w, 0, 2, 5 + (uint32_t)i, &reason) == TAMIS_OK);
        CHECK(tamis_catalog_commit(w, "note", 4, &reason) == TAMIS_OK);
        tamis_catalog_abandon(w);
    }
    check_whole("u.tamis", 69, 0);
    tamis_catalog *c = NULL;
    tamis_relation_facts facts;
    if (CHECK(tamis_catalog_open(&c, "u.tamis", NULL, &reason) == TAMIS_OK)) {
        CHECK(tamis_catalog_relation(c, 1, &facts));
        CHECK_MSG(facts.strips <= 4, "%u strips", facts.strips);
        tamis_catalog_close(c);
    }
}

TEST(the_key_is_kept_for_its_owner)
{
    struct stat st;
    tamis_reason reason = {0};
    tamis_catalog *c = NULL;
    uint8_t key[TAMIS_KEY_LEN];
    CHECK(make("p.tamis", 3, 0, NULL, &reason) == TAMIS_OK);
    CHECK(stat("p.tamis", &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(tamis_catalog_open(&c, "p.tamis", NULL, &reason) == TAMIS_OK);
    CHECK(tamis_catalog_key(c, key) && memcmp(key, KEY, sizeof key) == 0);
    tamis_catalog_close(c);
    tamis_open_options wrong = {.key = (const uint8_t *)"another key 1234"};
    CHECK(tamis_catalog_open(&c, "p.tamis", &wrong, &reason) == TAMIS_EKEY);
}

HARNESS_MAIN
