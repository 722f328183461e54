/* The table of inputs in a catalog: bytes and back, and bytes that are none. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "logs/inputs.h"

static uint64_t state;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = state ^ state >> 29;
    return x >> (x >> 58); /* all sizes */
}

static struct input_segment draw_place(uint8_t *blob)
{
    struct input_segment s = {.offset = draw() >> 2, .len = draw() >> 2, .line = draw()};
    s.at = s.offset;
    s.at_len = s.len;
    if (draw() & 1) {
        s.at = draw() >> 2;
        s.at_len = draw() >> 2;
        s.skip = s.offset ? draw() % s.offset : 0;
    }
    if (draw() & 1) {
        s.restart_len = 1 + draw() % 64;
        s.restart = blob;
    }
    if (draw() & 1) {
        s.timed = true;
        s.time_before = (struct stamp){(int64_t)draw() - (1 << 20), draw() % 1000000000};
    }
    if (draw() & 1)
        s.reference = (int64_t)draw() - (1 << 20);
    s.turns = draw() & 1;
    s.lined = draw() & 1;
    return s;
}

static bool same_place(const struct input_segment *a, const struct input_segment *b)
{
    return a->offset == b->offset && a->len == b->len && a->line == b->line && a->at == b->at &&
           a->at_len == b->at_len && a->skip == b->skip && a->restart_len == b->restart_len &&
           a->timed == b->timed && a->time_before.seconds == b->time_before.seconds &&
           a->time_before.nanoseconds == b->time_before.nanoseconds &&
           a->reference == b->reference && a->turns == b->turns && a->lined == b->lined &&
           (a->restart_len == 0 || memcmp(a->restart, b->restart, a->restart_len) == 0);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_counts(const struct counts *a, const struct counts *b)
{
    return a->records == b->records && a->unfit == b->unfit && a->bad == b->bad;
}

static bool same_entry(const struct entry *a, const struct entry *b)
{
    return a->id == b->id && a->root == b->root && strcmp(a->path, b->path) == 0 &&
           a->file.device == b->file.device && a->file.inode == b->file.inode &&
           a->file.size == b->file.size && a->file.mtime == b->file.mtime &&
           a->file.ctime == b->file.ctime && a->file.racy == b->file.racy &&
           a->format == b->format && a->delimiter == b->delimiter && a->headless == b->headless &&
           a->returns == b->returns && same_text(a->array, b->array) &&
           same_text(a->time, b->time) && a->unknown == b->unknown && !a->sums == !b->sums &&
           (!a->sums || memcmp(a->sums, b->sums, raw_sums_len(a->file.size)) == 0) &&
           same_text(a->passed, b->passed) && a->text == b->text &&
           same_counts(&a->count, &b->count) && a->resumable == b->resumable &&
           a->damaged == b->damaged && a->unread == b->unread &&
           (!a->resumable ||
            (same_place(&a->resume, &b->resume) && same_counts(&a->open, &b->open)));
}

static void fill(struct inputs *in, uint8_t *blob)
{
    *in = (struct inputs){.segment = 1 + draw() % 100000, .next_id = UINT64_MAX};
    in->dialect = (struct dialect){
        .format = draw() % READ_FORMATS, .delimiter = (uint8_t)draw(), .headless = draw() & 1};
    in->dialect.records = draw() & 1 ? "a.b" : NULL;
    in->dialect.pattern = draw() & 1 ? "(?<a>.*)" : NULL;
    in->dialect.time = draw() & 1 ? "ts" : NULL;
    in->dialect.zone = draw() & 1 ? "Europe/Paris" : NULL;
    size_t roots = 1 + draw() % 5, n = draw() % 20;
    char name[64];
    for (size_t i = 0; i < roots; i++) {
        snprintf(name, sizeof name, "root%zu", i);
        CHECK(inputs_add_root(in, inputs_keep(in, name), draw() & 1));
    }
    for (size_t i = draw() % 4; i; i--)
        CHECK(inputs_add_rule(in, 1 + draw() % 3, inputs_keep(in, "*.csv")));
    in->skip_unknown = draw() & 1;
    in->chosen = draw() & 1;
    for (uint64_t k = draw() % 5; k; k--)
        inputs_add_field(in, k & 1 ? "user" : "a.b", (tamis_type)(draw() % TAMIS_TYPES));
    for (size_t i = 0; i < n; i++) {
        struct entry *e = inputs_add(in);
        CHECK(e != NULL);
        snprintf(name, sizeof name, "%s/%llu", i % 2 ? "" : "dir", (unsigned long long)draw());
        *e = (struct entry){.id = draw(),
                            .root = (uint32_t)(draw() % roots),
                            .path = inputs_keep(in, name),
                            .file = {.device = draw(),
                                     .inode = draw(),
                                     .size = draw() % (8 * RAW_CHUNK),
                                     .mtime = (int64_t)draw() * (draw() & 1 ? 1 : -1),
                                     .ctime = (int64_t)draw(),
                                     .racy = draw() & 1},
                            .format = draw() % READ_FORMATS,
                            .delimiter = (uint8_t)draw(),
                            .headless = draw() & 1,
                            .returns = draw() & 1,
                            .unknown = draw() & 1,
                            .passed = draw() & 1 ? "a tar archive" : NULL,
                            .text = draw(),
                            .count = {draw(), draw(), draw()},
                            .damaged = draw() & 1,
                            .unread = draw() & 1};
        e->time = draw() & 1 ? "eventTime" : NULL;
        e->array = e->format == READ_JSON ? "Records" : NULL;
        e->sums = e->unread || e->passed || e->file.size == 0 ? NULL : blob;
        if (draw() & 1) {
            e->resumable = true;
            e->resume = draw_place(blob);
            e->open = (struct counts){draw(), draw(), draw()};
        }
    }
}

TEST(note_and_back)
{
    uint8_t blob[64];
    state = harness_seed();
    for (size_t i = 0; i < sizeof blob; i++)
        blob[i] = (uint8_t)draw();
    for (int round = 0; round < 300; round++) {
        struct inputs in, out;
        struct bytes note = {0};
        fill(&in, blob);
        CHECK(inputs_encode(&in, &note));
        CHECK(inputs_decode(&out, note.data, note.len, NULL) == TAMIS_OK);
        CHECK(out.n == in.n && out.n_roots == in.n_roots && out.segment == in.segment &&
              out.next_id == in.next_id && out.dialect.format == in.dialect.format &&
              out.dialect.delimiter == in.dialect.delimiter &&
              out.dialect.headless == in.dialect.headless &&
              same_text(out.dialect.records, in.dialect.records) &&
              same_text(out.dialect.pattern, in.dialect.pattern) &&
              same_text(out.dialect.time, in.dialect.time) &&
              same_text(out.dialect.zone, in.dialect.zone) && out.n_rules == in.n_rules &&
              out.skip_unknown == in.skip_unknown && out.chosen == in.chosen &&
              out.n_fields == in.n_fields);
        for (size_t i = 0; i < in.n_fields; i++)
            CHECK(in.field[i].type == out.field[i].type &&
                  strcmp(in.field[i].name, out.field[i].name) == 0);
        for (size_t i = 0; i < in.n_rules; i++)
            CHECK(in.rule[i].kind == out.rule[i].kind &&
                  strcmp(in.rule[i].glob, out.rule[i].glob) == 0);
        for (size_t i = 0; i < in.n_roots; i++)
            CHECK(strcmp(in.root[i].path, out.root[i].path) == 0 &&
                  in.root[i].folder == out.root[i].folder);
        for (size_t i = 0; i < in.n; i++)
            CHECK(same_entry(&in.entry[i], &out.entry[i]));
        inputs_free(&in);
        inputs_free(&out);
        free(note.data);
    }
}

TEST(tag_and_back)
{
    uint8_t blob[64] = {1, 2, 3};
    state = harness_seed();
    for (int round = 0; round < 300; round++) {
        struct input_part part[10], back;
        struct bytes tag = {0};
        size_t n = draw() % 10, at = 0, i = 0;
        bool bad;
        tag.len = 0;
        for (size_t j = 0; j < n; j++) {
            part[j] = (struct input_part){draw(), {draw(), draw(), draw()}, draw_place(blob)};
            CHECK(tag_add(&tag, &part[j]));
        }
        for (; tag_next(tag.data, tag.len, &at, &back, &bad); i++)
            CHECK(i < n && back.id == part[i].id && same_counts(&back.count, &part[i].count) &&
                  same_place(&back.where, &part[i].where));
        CHECK(i == n && !bad);
        free(tag.data);
    }
}

/* Bytes that were cut or changed are refused or are other values, and never read past their end (in
   memory of their exact size, so that the sanitizer sees). */
TEST(damage)
{
    uint8_t blob[64] = {0};
    struct inputs in = {0}, out;
    struct bytes note = {0};
    struct input_part part;
    bool bad;
    state = harness_seed();
    do {
        inputs_free(&in);
        fill(&in, blob);
    } while (in.n < 5);
    CHECK(inputs_encode(&in, &note));
    for (size_t len = 0; len < note.len; len++) {
        uint8_t *copy = malloc(len + !len);
        memcpy(copy, note.data, len);
        CHECK(inputs_decode(&out, copy, len, NULL) == TAMIS_EFORMAT);
        free(copy);
    }
    for (int i = 0; i < 20000; i++) {
        uint8_t *copy = malloc(note.len);
        size_t at = 0;
        memcpy(copy, note.data, note.len);
        for (uint64_t n = 1 + draw() % 4; n; n--)
            copy[draw() % note.len] = (uint8_t)draw();
        if (inputs_decode(&out, copy, note.len, NULL) == TAMIS_OK) {
            for (size_t j = 0; j < out.n; j++)
                CHECK(out.entry[j].root < out.n_roots && strlen(out.entry[j].path) < note.len &&
                      out.entry[j].resume.restart_len < note.len);
            inputs_free(&out);
        }
        while (tag_next(copy, note.len, &at, &part, &bad))
            CHECK(at <= note.len && part.where.skip <= part.where.offset);
        free(copy);
    }
    note.data[0] = 5;
    CHECK(inputs_decode(&out, note.data, note.len, NULL) == TAMIS_EVERSION);
    note.data[0] = 1;
    CHECK(inputs_decode(&out, note.data, note.len, NULL) == TAMIS_EFORMAT);
    inputs_free(&in);
    free(note.data);
}

TEST(paths)
{
    char *base = NULL;
    static const char *const cases[][2] = {{"c.tamis", ""}, {"a/c.tamis", "a/"}, {"/c", "/"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(base_of(cases[i][0], &base) && strcmp(base, cases[i][1]) == 0);
        free(base);
    }
    char *joined = base_join("a/", "b"), *absolute = base_join("a/", "/b");
    char *here = base_join("a/", ".//b"), *dots = base_join("", "./b");
    CHECK(strcmp(joined, "a/b") == 0 && strcmp(absolute, "/b") == 0);
    CHECK(strcmp(here, "a/b") == 0 && strcmp(dots, "./b") == 0);
    free(joined);
    free(absolute);
    free(here);
    free(dots);
}

TEST(paths_are_called_from_a_catalog_the_shortest_way)
{
    static const char *const cases[][3] = {
        {"", "./a", "./a"},
        {"", "a//", "a"},
        {"", "..", ".."},
        {"", "/a/", "/a"},
        {"x/", "/", "/"},
        {"x/", "x", "."},
        {"x/", "x/", "."},
        {"x/", "./x/a", "a"},
        {"x/", "xy/a", "../xy/a"},
        {"x/", "a", "../a"},
        {"x/", ".", ".."},
        {"x/", ".a", "../.a"},
        {"x/", "..a/b", "../..a/b"},
        {"x/y/", "x", ".."},
        {"x/y/", "x/a", "../a"},
        {"x/y/", "x/y/a", "a"},
        {"x/y/", "x/y/../a", "../a"},
        {"x/", "z/../a", "../z/../a"},
        {"x/", "link/a", "../link/a"},
        {"link/", "x/y/a", "a"},
        {"link/", "link/a", "../../link/a"},
    };
    CHECK(mkdir("x", 0700) == 0 && mkdir("x/y", 0700) == 0 && symlink("x/y", "link") == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *called = base_call(cases[i][0], cases[i][1]);
        CHECK_MSG(called && strcmp(called, cases[i][2]) == 0, "%s from %s: %s", cases[i][1],
                  cases[i][0], called);
        free(called);
    }
    char *root = base_call("/", "a"), *cwd = realpath(".", NULL), *known = base_join("/", root);
    CHECK(root && strncmp(known, cwd, strlen(cwd)) == 0 && strcmp(known + strlen(cwd), "/a") == 0);
    free(root);
    free(cwd);
    free(known);
    CHECK(chdir("x/y") == 0);
    char *above = base_call("../../", "../a"), *top = base_call("../../", "../.././../a");
    CHECK(above && strcmp(above, "x/a") == 0 && top && strcmp(top, "../a") == 0);
    free(above);
    free(top);
    CHECK(chdir("../..") == 0);
    CHECK(base_call("no/such/folder/", "a") == NULL);
    CHECK(unlink("link") == 0 && rmdir("x/y") == 0 && rmdir("x") == 0);
}

/* ---- raw bytes ------------------------------------------------------------------------------- */

static void write_file(const char *path, const uint8_t *data, size_t len)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, len, f) == len && fclose(f) == 0);
}

static bool holds(const char *path, const uint8_t *sums, uint64_t size)
{
    struct raw_id id;
    const char *why;
    uint64_t hashed = 0;
    int fd = raw_open(path, false, &id, &why);
    CHECK(fd >= 0);
    bool good = raw_sums_hold(fd, sums, size, &hashed);
    CHECK(hashed <= size);
    close(fd);
    return good;
}

/* Whatever the pieces in which the bytes come, and whether some come twice or never. */
TEST(sums_do_not_depend_on_how_bytes_come)
{
    static uint8_t data[3 * RAW_CHUNK + 77];
    static const size_t sizes[] = {0,          1, 1000, RAW_CHUNK - 1, RAW_CHUNK, RAW_CHUNK + 1,
                                   sizeof data};
    struct raw_id id;
    const char *why;
    state = harness_seed();
    for (size_t i = 0; i < sizeof data; i++)
        data[i] =
            (uint8_t)(state = state * 6364136223846793005u + 1442695040888963407u, state >> 56);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t size = sizes[s], keep = size ? draw() % size : 0;
        struct raw_sums a, b, c;
        write_file("raw", data, size);
        int fd = raw_open("raw", false, &id, &why);
        CHECK(fd >= 0 && id.size == size && id.racy);
        CHECK(raw_sums_start(&a, NULL, 0, 0) && raw_sums_start(&b, NULL, 0, 0));
        uint8_t *whole = raw_sums_end(&a, fd, size);
        for (size_t at = 0; at < size;) {
            size_t len = 1 + draw() % (size - at), back = at ? draw() % at : 0;
            raw_sums_feed(&b, at - back, data + at - back, back + len);
            raw_sums_feed(&b, b.at + 1, data, 9); /* a gap */
            at += draw() & 1 ? len : 0;
        }
        uint8_t *pieces = raw_sums_end(&b, fd, size);
        CHECK(whole && pieces && memcmp(whole, pieces, raw_sums_len(size)) == 0);
        CHECK(holds("raw", whole, size));
        /* Known up to some place: summed on from there. */
        raw_sums_free(&b);
        CHECK(raw_sums_start(&b, NULL, 0, 0));
        uint8_t *part = raw_sums_end(&b, fd, keep);
        CHECK(part && raw_sums_start(&c, part, keep, keep));
        CHECK(keep - c.at < RAW_CHUNK);
        uint8_t *grown = raw_sums_end(&c, fd, size);
        CHECK(grown && memcmp(whole, grown, raw_sums_len(size)) == 0);
        free(grown);
        raw_sums_free(&c);
        close(fd);
        /* Any byte counts, the known ones too. */
        if (size) {
            size_t at = draw() % size;
            data[at] ^= 1;
            write_file("raw", data, size);
            data[at] ^= 1;
            CHECK(!holds("raw", whole, size));
            CHECK((at >= keep) == holds("raw", part, keep));
            fd = raw_open("raw", false, &id, &why);
            CHECK(raw_sums_start(&c, part, keep, 0));
            grown = raw_sums_end(&c, fd, size);
            CHECK((grown != NULL) == (at >= keep));
            free(grown);
            raw_sums_free(&c);
            close(fd);
        }
        free(whole);
        free(pieces);
        free(part);
        raw_sums_free(&a);
        raw_sums_free(&b);
    }
    CHECK(unlink("raw") == 0);
}

/* Bytes that change behind the reader's back are not vouched for: the sums are of what was read. */
TEST(sums_are_of_the_bytes_that_were_read)
{
    static uint8_t data[3 * RAW_CHUNK];
    struct raw_sums sums;
    struct input *input = NULL;
    struct input_text text = {0};
    struct input_segment segment;
    bool more = true;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = i % 8 == 7 ? '\n' : 'a';
    write_file("raw.csv", data, sizeof data);
    CHECK(raw_sums_start(&sums, NULL, 0, 0));
    const struct input_options options = {.segment = 65536, .file = true, .sums = &sums};
    CHECK(input_open(&input, "raw.csv", &options, NULL) == TAMIS_OK);
    for (int i = 0; more; i++) {
        CHECK(input_next(input, &segment, &text, &more, NULL) == TAMIS_OK);
        input_segment_free(&segment);
        if (i == 8) {
            FILE *f = fopen("raw.csv", "r+b");
            CHECK(f && fputs("edited", f) >= 0 && fclose(f) == 0);
        }
    }
    uint8_t *sum = input_sums(input, &sums);
    CHECK(sum && sums.at == sizeof data && !holds("raw.csv", sum, sizeof data));
    write_file("raw.csv", data, sizeof data);
    CHECK(holds("raw.csv", sum, sizeof data));
    free(sum);
    raw_sums_free(&sums);
    input_text_free(&text);
    input_close(input);
    CHECK(unlink("raw.csv") == 0);
}

TEST(only_regular_files_are_opened)
{
    struct raw_id id;
    const char *why = NULL;
    CHECK(mkfifo("fifo", 0600) == 0 && symlink("fifo", "way") == 0 && mkdir("dir", 0700) == 0);
    CHECK(raw_open("fifo", true, &id, &why) == -1 && strcmp(why, "not a regular file") == 0);
    CHECK(raw_open("way", true, &id, &why) == -1 && strcmp(why, "not a regular file") == 0);
    CHECK(raw_open("dir", true, &id, &why) == -1 && strcmp(why, "Is a directory") == 0);
    CHECK(raw_open("/dev/null", true, &id, &why) == -1);
    CHECK(raw_open("nosuch", true, &id, &why) == -1 &&
          strcmp(why, "No such file or directory") == 0);
    write_file("file", (const uint8_t *)"x", 1);
    CHECK(unlink("way") == 0 && symlink("file", "way") == 0);
    CHECK(raw_open("way", false, &id, &why) == -1 && strcmp(why, "not a regular file") == 0);
    int fd = raw_open("way", true, &id, &why);
    CHECK(fd >= 0 && id.size == 1);
    close(fd);
    CHECK(unlink("way") == 0 && unlink("fifo") == 0 && rmdir("dir") == 0 && unlink("file") == 0);
}

HARNESS_MAIN
