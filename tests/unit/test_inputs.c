/* The table of inputs in a catalog: bytes and back, and bytes that are none. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "inputs.h"

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
    return s;
}

static bool same_place(const struct input_segment *a, const struct input_segment *b)
{
    return a->offset == b->offset && a->len == b->len && a->line == b->line && a->at == b->at &&
           a->at_len == b->at_len && a->skip == b->skip && a->restart_len == b->restart_len &&
           (a->restart_len == 0 || memcmp(a->restart, b->restart, a->restart_len) == 0);
}

static bool same_entry(const struct entry *a, const struct entry *b)
{
    return a->id == b->id && a->root == b->root && strcmp(a->path, b->path) == 0 &&
           a->size == b->size && a->mtime == b->mtime && a->mark == b->mark && a->text == b->text &&
           a->records == b->records && a->bad == b->bad && a->resumable == b->resumable &&
           a->damaged == b->damaged && a->unread == b->unread &&
           (!a->resumable || (same_place(&a->resume, &b->resume) &&
                              a->open_records == b->open_records && a->open_bad == b->open_bad));
}

static void fill(struct inputs *in, uint8_t *blob)
{
    *in = (struct inputs){.segment = 1 + draw() % 100000, .next_id = UINT64_MAX};
    in->dialect = (struct dialect){
        .format = draw() % 4, .delimiter = (uint8_t)draw(), .headless = draw() & 1};
    size_t roots = 1 + draw() % 5, n = draw() % 20;
    char name[64];
    for (size_t i = 0; i < roots; i++) {
        snprintf(name, sizeof name, "root%zu", i);
        CHECK(inputs_add_root(in, inputs_keep(in, name), draw() & 1));
    }
    for (size_t i = 0; i < n; i++) {
        struct entry *e = inputs_add(in);
        CHECK(e != NULL);
        snprintf(name, sizeof name, "%s/%llu", i % 2 ? "" : "dir", (unsigned long long)draw());
        *e = (struct entry){.id = draw(),
                            .root = (uint32_t)(draw() % roots),
                            .path = inputs_keep(in, name),
                            .size = draw(),
                            .mtime = (int64_t)draw() * (draw() & 1 ? 1 : -1),
                            .mark = draw(),
                            .text = draw(),
                            .records = draw(),
                            .bad = draw(),
                            .damaged = draw() & 1,
                            .unread = draw() & 1};
        if (draw() & 1) {
            e->resumable = true;
            e->resume = draw_place(blob);
            e->open_records = draw();
            e->open_bad = draw();
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
              out.dialect.headless == in.dialect.headless);
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
        struct part part[10], back;
        struct bytes tag = {0};
        size_t n = draw() % 10, at = 0, i = 0;
        bool bad;
        tag_start(&tag);
        for (size_t j = 0; j < n; j++) {
            part[j] = (struct part){draw(), draw(), draw(), draw_place(blob)};
            CHECK(tag_add(&tag, &part[j]));
        }
        for (; tag_next(tag.data, tag.len, &at, &back, &bad); i++)
            CHECK(i < n && back.id == part[i].id && back.records == part[i].records &&
                  back.bad == part[i].bad && same_place(&back.where, &part[i].where));
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
    struct part part;
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
    note.data[0] = 2;
    CHECK(inputs_decode(&out, note.data, note.len, NULL) == TAMIS_EVERSION);
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

HARNESS_MAIN
