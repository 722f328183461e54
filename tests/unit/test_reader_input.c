/*
 * Inputs: every way to cut, pack and read again a file gives the same records. Plain, gzip (one
 * member, many, many blocks), zstd (one frame, many), segments from one byte to the whole, read in
 * order, alone, and from the middle on. Damage is an error, never a crash, never another record.
 */
#include <pthread.h>
#include <sys/stat.h>

#include "harness.h"
#include "read/reader_cut.h"
#include "reader_help.h"

#define ALL ((size_t)1 << 40)

/* ---- texts ----------------------------------------------------------------------------------- */

/* `n` records with all that is odd in them; `wild`: with quotes that are not closed, too. */
static void make_csv(struct buf *out, uint64_t *rng, size_t n, bool wild)
{
    static const char *const cells[] = {"",
                                        "x",
                                        "\"\"",
                                        "\"q\"\"q\"",
                                        "\"two\nlines\"",
                                        "\"a,b\"",
                                        "5\" pipe",
                                        "10.0.0.1",
                                        "\"\r\n\"",
                                        "\"x\"y",
                                        "\xc3\xa9",
                                        "a longer cell, quoted\"",
                                        "some-user-name"};
    buf_say(out, "a,b,\"c\"%s", rng_next(rng) % 2 ? "\n" : "\r\n");
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0, columns = 1 + rng_next(rng) % 4; c < columns; c++) {
            const char *cell = cells[rng_next(rng) % (sizeof cells / sizeof *cells)];
            buf_say(out, "%s%s", c ? "," : "", cell);
        }
        if (wild && rng_next(rng) % 16 == 0)
            buf_say(out, ",\"open");
        if (rng_next(rng) % 16 == 0)
            buf_say(out, "\n");
        buf_say(out, "%s", rng_next(rng) % 4 ? "\n" : "\r\n");
    }
    if (rng_next(rng) % 2)
        buf_say(out, "last,one");
}

static void make_json(struct buf *out, uint64_t *rng, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t x = rng_next(rng);
        if (x % 32 == 0)
            buf_say(out, "not json\n");
        else if (x % 32 == 1)
            buf_say(out, "  \r\n");
        else
            buf_say(out, "{\"a\":\"%llx\",\"b\":{\"c\":\"x\\u00e9\\n%llu\"},\"c\":%llu}%s",
                    (unsigned long long)x >> 40, (unsigned long long)i,
                    (unsigned long long)(x >> 8) % 100, x % 2 ? "\n" : "\r\n");
    }
    if (rng_next(rng) % 2)
        buf_say(out, "{\"a\":\"last\"}");
}

static void make_text(struct buf *out, enum read_format format, uint64_t *rng, size_t n, bool wild)
{
    if (format == READ_JSONL)
        make_json(out, rng, n);
    else
        make_csv(out, rng, n, wild);
}

static const char *attributes_of(enum read_format format)
{
    return format == READ_JSONL ? "a b.c c" : format == READ_CSV ? "c a" : "1 2";
}

/* Shows a file cut at `segment`, and compares with what is expected. */
static void same_input(const char *path, enum read_format format, size_t segment,
                       const struct buf *expected, size_t *n)
{
    struct input_options options = {.dialect = {.format = format}, .segment = segment};
    struct buf got = {0};
    tamis_reason reason = {0};
    buf_add(&got, "", 0);
    tamis_error error = show_input(&got, NULL, path, &options, attributes_of(format),
                                   SHOW_RAW | SHOW_PLACE, n, &reason);
    CHECK_MSG(error == TAMIS_OK, "%s, segments of %zu: %s", path, segment, reason.text);
    CHECK_MSG(got.len == expected->len && memcmp(got.data, expected->data, got.len) == 0,
              "%s, segments of %zu: <%s>, not <%s>", path, segment, got.data, expected->data);
    buf_free(&got);
}

/* The records of a text in one piece: what all else must agree with. */
static void expect(struct buf *out, enum read_format format, const struct buf *text)
{
    struct input_options options = {.dialect = {.format = format}, .segment = ALL};
    write_file("whole", text->data, text->len);
    CHECK(show_input(out, NULL, "whole", &options, attributes_of(format), SHOW_RAW | SHOW_PLACE,
                     NULL, NULL) == TAMIS_OK);
    buf_add(out, "", 0);
}

/* ---- cutting --------------------------------------------------------------------------------- */

TEST(every_cut_gives_the_same_records)
{
    uint64_t rng = harness_seed();
    for (int round = 0; round < HARNESS_TIMES(60, 600); round++) {
        enum read_format format = (enum read_format)(READ_CSV + round % 3);
        struct buf text = {0}, expected = {0};
        size_t records = 0, n;
        make_text(&text, format, &rng, 1 + rng_next(&rng) % 20, false);
        expect(&expected, format, &text);
        for (size_t i = 0; i < expected.len; i++)
            records += expected.data[i] == '\n';
        for (size_t segment = 1; segment <= text.len + 1; segment += segment < 70 ? 1 : 37)
            same_input("whole", format, segment, &expected, &n);
        same_input("whole", format, 1, &expected, &n);
        CHECK_MSG(n >= records, "%zu segments, %zu records", n, records); /* or empty lines */
        buf_free(&text);
        buf_free(&expected);
    }
}

TEST(quotes_that_are_not_closed_cost_their_line_however_it_is_cut)
{
    uint64_t rng = harness_seed() + 1;
    for (int round = 0; round < HARNESS_TIMES(300, 3000); round++) {
        struct buf text = {0}, expected = {0};
        if (round % 2) {
            make_csv(&text, &rng, 1 + rng_next(&rng) % 12, true);
        } else {
            buf_say(&text, "a,b,c\n");
            for (size_t i = 0, n = rng_next(&rng) % 60; i < n; i++)
                buf_add(&text, &"a,,\"\"\"\"\n\n\r"[rng_next(&rng) % 10], 1);
        }
        expect(&expected, READ_CSV, &text);
        for (size_t segment = 1; segment <= text.len + 1; segment++)
            same_input("whole", READ_CSV, segment, &expected, NULL);
        buf_free(&text);
        buf_free(&expected);
    }
}

/* The search for record ends agrees with the parser, whatever comes in one piece. */
TEST(cuts_are_where_the_parser_ends_records)
{
    uint64_t rng = harness_seed() + 2;
    for (int round = 0; round < HARNESS_TIMES(20000, 200000); round++) {
        struct buf text = {0};
        size_t len = rng_next(&rng) % (round % 2 ? 50 : 400),
               most = rng_next(&rng) % 2 ? 1 + rng_next(&rng) % 30 : 1000;
        for (size_t i = 0; i < len; i++)
            buf_add(&text,
                    &"a,,\"\"\"\"\n\n\raaaaaaaaaaaaaaaa"[rng_next(&rng) % (round % 4 ? 10 : 26)],
                    1);
        struct dialect dialect = {.format = READ_CSV,
                                  .delimiter = ',',
                                  .record_max = most,
                                  .quoted_max = 1 + rng_next(&rng) % (round % 3 ? 200 : 20),
                                  .in_lines = rng_next(&rng) % 3 == 0};
        struct selection *s = select_words(&dialect, "2", NULL, 0);
        struct parser *p = parser_new();
        struct record r;
        bool inside[400] = {0};
        CHECK(parser_begin(p, s, text.data, len) == TAMIS_OK);
        while (parser_next(p, &r) != PARSED_END)
            for (size_t i = 1; i < r.len + r.end_len; i++)
                inside[(size_t)(r.data - (const uint8_t *)text.data) + i] = true;
        struct cut cut = {.dialect = &dialect};
        size_t target = 1 + rng_next(&rng) % (len + 1), end = 0, seen = 0;
        size_t step = rng_next(&rng) % 2 ? 5 : 400;
        while (end == 0 && seen < len) { /* it comes bit by bit */
            seen += 1 + rng_next(&rng) % step;
            seen = seen < len ? seen : len;
            end = cut_search(&cut, (const uint8_t *)text.data, seen, target, seen == len);
        }
        size_t want = target;
        while (want < len && (text.data[want - 1] != '\n' || inside[want]))
            want++;
        CHECK_MSG(end == (want < len ? want : len), "<%s> of %zu from %zu: %zu, not %zu",
                  text.data ? text.data : "", most, target, end, want);
        for (size_t i = 1; i < end && !cut.folded; i++)
            CHECK_MSG(text.data[i - 1] != '\n' || !inside[i], "<%s>: folded at %zu", text.data, i);
        for (size_t i = 1; i < end && dialect.in_lines; i++)
            CHECK_MSG(text.data[i - 1] != '\n' || !inside[i], "<%s>: glued at %zu", text.data, i);
        CHECK_MSG(!cut.folded || memchr(text.data, '"', end), "<%s>: folded before %zu", text.data,
                  end);
        parser_free(p);
        selection_free(s);
        buf_free(&text);
    }
}

/* Whether the lines of a segment are records does not depend on what follows it. */
TEST(quoted_line_ends_behind_the_cut_do_not_count)
{
    const char text[] = "1,\"2\"\n3,\"4\n5\"\n6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n";
    struct dialect dialect = {
        .format = READ_CSV, .delimiter = ',', .record_max = 1000, .quoted_max = 1000};
    for (size_t target = 1; target <= 16; target++) {
        struct cut cut = {.dialect = &dialect};
        size_t end = cut_search(&cut, (const uint8_t *)text, sizeof text - 1, target, true);
        CHECK(end == (target <= 6 ? 6u : target <= 14 ? 14u : sizeof text - 1));
        CHECK_MSG(cut.folded == (target > 6), "cut at %zu", end);
    }
}

/* However the text arrives: a closing quote may be the last byte of what there is. */
TEST(quoted_line_ends_count_wherever_the_text_is_cut_off)
{
    const char text[] =
        "ann,1.50,10.0.0.1,1706741999,7\n,1e2,10.0.0.5,2024-02-01,+7\n\"h\ni\",15e-1,x\n"
        "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28\n";
    struct dialect dialect = {
        .format = READ_CSV, .delimiter = ',', .record_max = 1000, .quoted_max = 1000};
    for (size_t first = 1; first < sizeof text - 1; first++) {
        struct cut cut = {.dialect = &dialect};
        CHECK(cut_search(&cut, (const uint8_t *)text, first, SIZE_MAX, false) == 0);
        CHECK(cut_search(&cut, (const uint8_t *)text, sizeof text - 1, SIZE_MAX, true) ==
              sizeof text - 1);
        CHECK_MSG(cut.folded, "after %zu bytes", first);
    }
}

TEST(records_longer_than_allowed)
{
    struct input_options options = {.dialect = {.format = READ_JSONL, .record_max = 1000},
                                    .segment = 64};
    struct buf text = {0}, got = {0};
    tamis_reason reason;
    buf_say(&text, "{\"a\":1}\n{\"a\":\"");
    for (int i = 0; i < 3000; i++)
        buf_add(&text, "x", 1);
    buf_say(&text, "\"}\n{\"a\":2}\n");
    write_file("long.jsonl", text.data, text.len);
    CHECK(show_input(&got, NULL, "long.jsonl", &options, "a", 0, NULL, &reason) == TAMIS_ELIMIT);
    CHECK(reason.offset == 8 && strstr(reason.text, "long.jsonl"));
    CHECK(strcmp(got.data, "1\n") == 0);
    buf_free(&text);
    buf_free(&got);
}

/* Quotes around line ends reach READ_QUOTED_MAX bytes far. Beyond that the first line is bad, and
   every other is read: the same wherever it is cut. */
TEST(quotes_over_line_ends_reach_a_mebibyte)
{
    for (size_t more = 0; more < 2; more++) {
        struct buf text = {0};
        size_t records = 0, bad = 0, lines = 0;
        buf_say(&text, "a,b\n0,\"x\n");
        while (text.len < 7 + READ_QUOTED_MAX + more - 40)
            buf_say(&text, "%zu,y\n", ++lines);
        while (text.len < 7 + READ_QUOTED_MAX + more)
            buf_say(&text, "z");
        buf_say(&text, "\"\nlast,z\n");
        write_file("quoted", text.data, text.len);
        for (size_t segment = (size_t)1 << 16; segment <= (size_t)1 << 22; segment *= 8) {
            struct input_options options = {.dialect = {.format = READ_CSV}, .segment = segment};
            struct buf got = {0};
            records = bad = 0;
            CHECK(show_input(&got, NULL, "quoted", &options, "a", 0, NULL, NULL) == TAMIS_OK);
            for (const char *at = got.data; *at; at = strchr(at, '\n') + 1)
                strncmp(at, "bad", 3) == 0 ? bad++ : records++;
            CHECK_MSG(bad == more && records == (more ? lines + 2 : 2), "%zu bad, %zu records", bad,
                      records);
            buf_free(&got);
        }
        buf_free(&text);
    }
}

TEST(lines_of_100_MiB)
{
    size_t len = (size_t)HARNESS_TIMES(100, 100) << 20;
    struct buf text = {0};
    for (int quoted = 0; quoted < 3; quoted++) {
        text.len = 0;
        buf_say(&text, quoted == 2 ? "{\"b\":\"\\n" : quoted ? "a,b\n1,\"" : "a,b\n1,");
        buf_add(&text, "", 0);
        size_t start = text.len;
        for (size_t i = 0; i < len / 64; i++)
            buf_add(&text,
                    quoted == 1
                        ? "\"\"a,b ccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
                        : "0123456789012345678901234567890123456789012345678901234567890123",
                    64);
        size_t bytes = text.len - start;
        buf_say(&text, quoted == 2 ? "\",\"a\":1}\n" : quoted ? "\"\n2,x\n" : "\n2,x\n");
        write_file("long", text.data, text.len);
        struct input_options options = {.segment = (size_t)1 << 20};
        struct input *input;
        CHECK(input_open(&input, "long", &options, NULL) == TAMIS_OK);
        struct selection *s =
            select_words(&input->dialect, "b a", input->header, input->header_len);
        struct parser *p = parser_new();
        struct input_text t = {0};
        struct input_segment segment;
        struct record r;
        bool more;
        CHECK(input_next(input, &segment, &t, &more, NULL) == TAMIS_OK && more);
        CHECK(parser_begin(p, s, t.data, t.len) == TAMIS_OK && parser_next(p, &r) == PARSED_RECORD);
        CHECK(r.values[0].len == (quoted == 2 ? bytes + 1 : quoted ? bytes / 64 * 63 : bytes));
        CHECK(r.values[1].len == 1 && r.values[1].data[0] == '1');
        input_segment_free(&segment);
        parser_free(p);
        selection_free(s);
        input_text_free(&t);
        input_close(input);
    }
    remove("long");
    buf_free(&text);
}

/* ---- packing --------------------------------------------------------------------------------- */

static const struct way {
    const char *name;
    enum packing kind;
    size_t part, flush;
} packings[] = {
    {"one.gz", PACK_GZIP, 0, 0},      {"members.gz", PACK_GZIP, 700, 0},
    {"blocks.gz", PACK_GZIP, 0, 200}, {"both.gz", PACK_GZIP, 3000, 100},
    {"one.zst", PACK_ZSTD, 0, 0},     {"frames.zst", PACK_ZSTD, 500, 0},
    {"small.zst", PACK_ZSTD, 7, 0},   {"one.bz2", PACK_BZIP2, 0, 0},
    {"two.bz2", PACK_BZIP2, 2000, 0}, {"one.xz", PACK_XZ, 0, 0},
    {"two.xz", PACK_XZ, 2000, 0},     {"one.lzma", PACK_LZMA, 0, 0},
    {"one.lz4", PACK_LZ4, 0, 0},      {"frames.lz4", PACK_LZ4, 500, 0},
};
#define N_PACKINGS (sizeof packings / sizeof *packings)

static void pack(struct buf *out, const struct way *way, const struct buf *text)
{
    if (way->kind == PACK_ZSTD)
        pack_zst(out, text->data, text->len, way->part);
    else if (way->kind == PACK_GZIP)
        pack_gz(out, text->data, text->len, way->part, way->flush);
    else
        pack_frames(out, way->kind, text->data, text->len, way->part);
}

TEST(packed_is_as_plain)
{
    uint64_t rng = harness_seed() + 3;
    static const size_t sizes[] = {1, 50, 300, 1000, 2500, 100000};
    for (int round = 0; round < HARNESS_TIMES(20, 200); round++) {
        enum read_format format = (enum read_format)(READ_CSV + round % 3);
        struct buf text = {0}, expected = {0};
        make_text(&text, format, &rng, rng_next(&rng) % 300, round % 4 == 0);
        expect(&expected, format, &text);
        for (size_t i = 0; i < N_PACKINGS; i++) {
            struct buf packed = {0};
            pack(&packed, &packings[i], &text);
            write_file(packings[i].name, packed.data, packed.len);
            for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
                same_input(packings[i].name, format, sizes[j], &expected, NULL);
            buf_free(&packed);
        }
        buf_free(&text);
        buf_free(&expected);
    }
}

/* ---- reading again --------------------------------------------------------------------------- */

struct kept {
    struct input_segment segment[4096];
    size_t n;
    struct buf text; /* of all */
};

static struct kept *keep(const char *path, const struct input_options *options)
{
    struct kept *k = calloc(1, sizeof *k);
    struct input *input;
    struct input_text text = {0};
    bool more;
    CHECK(input_open(&input, path, options, NULL) == TAMIS_OK);
    while (input_next(input, &k->segment[k->n], &text, &more, NULL) == TAMIS_OK && more) {
        CHECK(k->segment[k->n].offset == k->segment[0].offset + k->text.len);
        buf_add(&k->text, text.data, text.len);
        if (!CHECK(++k->n < 4096))
            break;
    }
    buf_add(&k->text, "", 0);
    input_text_free(&text);
    input_close(input);
    return k;
}

static void kept_free(struct kept *k)
{
    for (size_t i = 0; i < k->n; i++)
        input_segment_free(&k->segment[i]);
    buf_free(&k->text);
    free(k);
}

static void check_read(struct input *input, const struct kept *k, size_t i, struct input_text *text)
{
    tamis_reason reason = {0};
    const struct input_segment *s = &k->segment[i];
    tamis_error error = input_read(input, s, text, &reason);
    CHECK_MSG(error == TAMIS_OK, "%s, segment %zu: %s", input->path, i, reason.text);
    CHECK(text->of.lined == s->lined);
    CHECK_MSG(text->len == s->len &&
                  memcmp(text->data, k->text.data + (s->offset - k->segment[0].offset), s->len) ==
                      0,
              "%s, segment %zu", input->path, i);
}

TEST(segments_can_be_read_alone)
{
    uint64_t rng = harness_seed() + 4;
    for (int round = 0; round < HARNESS_TIMES(9, 60); round++) {
        enum read_format format = (enum read_format)(READ_CSV + round % 3);
        struct buf text = {0};
        make_text(&text, format, &rng, 1000 + rng_next(&rng) % 1000, false);
        for (size_t i = 0; i <= N_PACKINGS; i++) {
            struct buf packed = {0};
            const char *path = i < N_PACKINGS ? packings[i].name : "plain";
            if (i < N_PACKINGS)
                pack(&packed, &packings[i], &text);
            else
                buf_add(&packed, text.data, text.len);
            write_file(path, packed.data, packed.len);
            struct input_options options = {.dialect.format = format,
                                            .segment = 100 + rng_next(&rng) % 3000};
            struct kept *k = keep(path, &options);
            struct input *input;
            struct input_text one = {0};
            CHECK(input_open(&input, path, &options, NULL) == TAMIS_OK);
            for (size_t j = 0; j < 40; j++)
                check_read(input, k, rng_next(&rng) % k->n, &one);
            for (size_t j = 0; j < k->n; j += 1 + rng_next(&rng) % 3)
                check_read(input, k, j, &one);
            input_text_free(&one);
            input_close(input);

            size_t from = rng_next(&rng) % k->n;
            options.from = &k->segment[from];
            struct kept *rest = keep(path, &options);
            size_t before = k->segment[from].offset - k->segment[0].offset;
            CHECK(rest->text.len == k->text.len - before);
            CHECK(memcmp(rest->text.data, k->text.data + before, rest->text.len) == 0);
            CHECK(rest->segment[0].line == k->segment[from].line);
            kept_free(rest);
            kept_free(k);
            buf_free(&packed);
        }
        buf_free(&text);
    }
}

/* Larger than zlib's window and the reader's chunks, so that restart points are in the middle. */
TEST(restart_points_make_packed_files_seekable)
{
    uint64_t rng = harness_seed() + 5;
    struct buf text = {0}, packed = {0};
    make_json(&text, &rng, 60000);
    pack_gz(&packed, text.data, text.len, 0, 0);
    write_file("big.jsonl.gz", packed.data, packed.len);
    struct input_options options = {.segment = 200000};
    struct kept *k = keep("big.jsonl.gz", &options);
    CHECK_MSG(k->n > 7, "%zu segments", k->n);
    for (size_t i = 1; i < k->n; i++) {
        CHECK_MSG(k->segment[i].skip < 1000, "skips %llu", (unsigned long long)k->segment[i].skip);
        CHECK(k->segment[i].at > k->segment[i - 1].at && k->segment[i].restart_len < 20000);
    }
    struct input *input;
    struct input_text t = {0};
    CHECK(input_open(&input, "big.jsonl.gz", &options, NULL) == TAMIS_OK);
    for (size_t i = k->n; i-- > 0;)
        check_read(input, k, i, &t);
    /* Damaged points are an error or other text, never a crash. */
    for (int round = 0; round < 300; round++) {
        struct input_segment s = k->segment[1 + rng_next(&rng) % (k->n - 1)];
        uint8_t *blob = malloc(s.restart_len);
        memcpy(blob, s.restart, s.restart_len);
        s.restart_len = round % 3 ? s.restart_len : rng_next(&rng) % s.restart_len;
        blob[rng_next(&rng) % (round % 2 ? 8 : s.restart_len + 1)] ^=
            (uint8_t)(1 + rng_next(&rng) % 255);
        s.restart = blob;
        input_read(input, &s, &t, NULL);
        free(blob);
    }
    input_text_free(&t);
    input_close(input);
    kept_free(k);
    buf_free(&packed);

    pack_zst(&packed, text.data, text.len, 100000);
    write_file("big.jsonl.zst", packed.data, packed.len);
    k = keep("big.jsonl.zst", &options);
    CHECK_MSG(k->n > 7, "%zu segments", k->n);
    for (size_t i = 1; i < k->n; i++)
        CHECK_MSG(k->segment[i].skip < 1000, "skips %llu", (unsigned long long)k->segment[i].skip);
    kept_free(k);
    buf_free(&packed);
    buf_free(&text);
}

/* UTF-16 of a text that is UTF-8, with a mark. */
static void widen(struct buf *out, const struct buf *text, bool big)
{
    uint32_t c = 0xFEFF;
    for (size_t i = 0, more = 0; i <= text->len; i++) {
        uint32_t units[2] = {c, c < 0x10000 ? 0 : 0xDC00 + (c & 0x3FF)};
        if (c >= 0x10000)
            units[0] = 0xD800 + ((c - 0x10000) >> 10);
        for (size_t j = 0; more == 0 && j < (c < 0x10000 ? 1 : 2); j++) {
            uint8_t bytes[2] = {(uint8_t)(units[j] >> (big ? 8 : 0)),
                                (uint8_t)(units[j] >> (big ? 0 : 8))};
            buf_add(out, bytes, 2);
        }
        uint8_t b = i < text->len ? (uint8_t)text->data[i] : 0;
        c = more       ? c << 6 | (b & 0x3F)
            : b < 0x80 ? b
            : b < 0xE0 ? b & 0x1F
            : b < 0xF0 ? b & 0xF
                       : b & 7;
        more = more ? more - 1 : b < 0x80 ? 0 : b < 0xE0 ? 1 : b < 0xF0 ? 2 : 3;
    }
}

/* UTF-16 in a compression is entered where the compression is, in the middle of a character too: what
   is unpacked for a segment does not grow with what is before it. */
TEST(packed_utf16_is_seekable)
{
    static const struct way ways[] = {{"one.gz", PACK_GZIP, 0, 0},
                                      {"members.gz", PACK_GZIP, 77777, 0},
                                      {"frames.zst", PACK_ZSTD, 77777, 0},
                                      {"frames.lz4", PACK_LZ4, 77777, 0}};
    struct buf text = {0};
    uint64_t rng = harness_seed() + 6;
    for (int i = 0; i < 20000; i++)
        buf_say(&text, "{\"a\":\"%llx \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"}\n",
                (unsigned long long)rng_next(&rng));
    for (size_t i = 0; i < 2 * sizeof ways / sizeof *ways; i++) {
        const struct way *way = &ways[i / 2];
        struct buf wide = {0}, packed = {0};
        widen(&wide, &text, i % 2);
        pack(&packed, way, &wide);
        write_file(way->name, packed.data, packed.len);
        struct input_options options = {.dialect.format = READ_JSONL, .segment = 50000};
        struct kept *k = keep(way->name, &options);
        struct input *input;
        struct input_text t = {0};
        uint64_t skipped = 0;
        CHECK_MSG(k->n > 5, "%s: %zu segments", way->name, k->n);
        CHECK(k->text.len == text.len && memcmp(k->text.data, text.data, text.len) == 0);
        for (size_t j = 0; j < k->n; j++)
            skipped += k->segment[j].skip;
        CHECK_MSG(skipped < text.len / 2, "%s: %llu of %zu bytes are unpacked and skipped",
                  way->name, (unsigned long long)skipped, text.len);
        CHECK(input_open(&input, way->name, &options, NULL) == TAMIS_OK);
        for (size_t j = k->n; j-- > 0;)
            check_read(input, k, j, &t);
        struct input_segment odd = k->segment[k->n - 1];
        uint8_t blob[] = {4};
        odd.restart = blob;
        odd.restart_len = 1;
        CHECK(input_read(input, &odd, &t, NULL) == TAMIS_EFORMAT);
        input_text_free(&t);
        input_close(input);
        kept_free(k);
        buf_free(&wide);
        buf_free(&packed);
    }
    buf_free(&text);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* The segments that come of a damaged file can be read again. */
static void read_again(const char *path, const struct input_options *options)
{
    struct input *input;
    if (input_open(&input, path, options, NULL) != TAMIS_OK)
        return;
    struct kept *k = keep(path, options);
    struct input_text text = {0};
    for (size_t i = 0; i < k->n; i++)
        check_read(input, k, i, &text);
    input_text_free(&text);
    for (size_t i = k->n; i-- > 0;) {
        check_read(input, k, i, &text);
        input_text_free(&text);
    }
    input_close(input);
    kept_free(k);
}

/* Reads what can be read of a damaged file: all whole records that come are a start of `expected`.
   */
static void survive(const char *path, enum read_format format, const struct buf *expected, bool cut)
{
    struct input_options options = {.dialect.format = format, .segment = 300};
    struct buf got = {0};
    tamis_reason reason = {0};
    buf_add(&got, "", 0);
    tamis_error error =
        show_input(&got, NULL, path, &options, "1 2", SHOW_RAW | SHOW_PLACE, NULL, &reason);
    CHECK_MSG(error == TAMIS_OK || strstr(reason.text, path), "%s", reason.text);
    read_again(path, &options);
    if (cut) {
        CHECK(error != TAMIS_OK || got.len <= expected->len);
        CHECK_MSG(got.len <= expected->len && memcmp(got.data, expected->data, got.len) == 0,
                  "<%s>, not <%s>", got.data, expected->data);
    }
    buf_free(&got);
}

TEST(damaged_files_are_errors_with_what_is_whole_before)
{
    uint64_t rng = harness_seed() + 6;
    struct buf text = {0}, expected = {0};
    make_csv(&text, &rng, 120, false);
    struct input_options options = {.dialect.format = READ_CSV, .segment = ALL};
    write_file("whole", text.data, text.len);
    CHECK(show_input(&expected, NULL, "whole", &options, "1 2", SHOW_RAW | SHOW_PLACE, NULL,
                     NULL) == TAMIS_OK);
    for (size_t i = 0; i < N_PACKINGS; i++) {
        struct buf packed = {0};
        pack(&packed, &packings[i], &text);
        for (size_t len = 8; len < packed.len;
             len += 1 + (harness_long() ? 0 : rng_next(&rng) % 8)) {
            write_file("damaged", packed.data, len);
            bool member = packings[i].part != 0; /* it may be whole after all */
            survive("damaged", READ_CSV, &expected, !member);
        }
        for (int round = 0; round < HARNESS_TIMES(300, 4000); round++) {
            size_t at = rng_next(&rng) % packed.len;
            char old = packed.data[at];
            packed.data[at] ^= (char)(1 << rng_next(&rng) % 8);
            write_file("damaged", packed.data, packed.len);
            survive("damaged", READ_CSV, &expected, false);
            packed.data[at] = old;
        }
        buf_free(&packed);
    }
    buf_free(&text);
    buf_free(&expected);
}

/* A few bytes that stand for much text: the decoder has some when the file has no more. */
TEST(truncation_of_text_that_packs_well)
{
    struct buf text = {0};
    buf_say(&text, "a,b\n");
    for (int i = 0; i < 3000; i++)
        buf_say(&text, "%d,some text\n", i / 1000);
    struct input_options options = {.dialect.format = READ_CSV, .segment = 300};
    for (size_t i = 0; i < N_PACKINGS; i++) {
        struct buf packed = {0};
        pack(&packed, &packings[i], &text);
        size_t step = (packed.len > 1000 ? packed.len / 100 : 1) * (harness_slow() ? 4 : 1);
        for (size_t len = 8; len < packed.len; len += step) {
            write_file("damaged", packed.data, len);
            read_again("damaged", &options);
        }
        buf_free(&packed);
    }
    buf_free(&text);
}

TEST(truncation_is_told_with_its_place)
{
    struct buf text = {0}, packed = {0}, got = {0};
    tamis_reason reason;
    uint64_t rng = harness_seed();
    make_json(&text, &rng, 20000);
    for (int zst = 0; zst < 2; zst++) {
        packed.len = got.len = 0;
        if (zst)
            pack_zst(&packed, text.data, text.len, 0);
        else
            pack_gz(&packed, text.data, text.len, 0, 1000);
        write_file("cut", packed.data, packed.len - 5);
        struct input_options options = {.dialect.format = READ_JSONL, .segment = 10000};
        CHECK(show_input(&got, NULL, "cut", &options, "a", 0, NULL, &reason) == TAMIS_EFORMAT);
        CHECK_MSG(reason.offset == packed.len - 5 && strstr(reason.text, "cut: "), "%s",
                  reason.text);
        CHECK(got.len > 1000);
    }
    /* What follows the last member: zeros are padding, other bytes are not. */
    packed.len = 0;
    pack_gz(&packed, text.data, text.len, 0, 0);
    size_t len = packed.len;
    struct input_options options = {0};
    buf_add(&packed, "\0\0\0\0\0\0\0", 7);
    write_file("padded", packed.data, packed.len);
    CHECK(show_input(NULL, NULL, "padded", &options, "a", 0, NULL, &reason) == TAMIS_OK);
    packed.data[len + 3] = 'x';
    write_file("padded", packed.data, packed.len);
    CHECK(show_input(NULL, NULL, "padded", &options, "a", 0, NULL, &reason) == TAMIS_EFORMAT);
    buf_free(&text);
    buf_free(&packed);
    buf_free(&got);
}

TEST(files_that_shrink_while_they_are_read)
{
    struct buf text = {0};
    uint64_t rng = harness_seed();
    make_json(&text, &rng, 12000);
    write_file("shrinks", text.data, text.len);
    struct input_options options = {.segment = 20000};
    struct input *input;
    struct input_text t = {0};
    struct input_segment s;
    tamis_reason reason;
    bool more;
    CHECK(input_open(&input, "shrinks", &options, NULL) == TAMIS_OK);
    CHECK(truncate("shrinks", 400000) == 0);
    tamis_error error;
    size_t got = 0;
    while ((error = input_next(input, &s, &t, &more, &reason)) == TAMIS_OK && more) {
        got += s.len;
        input_segment_free(&s);
    }
    CHECK_MSG(error == TAMIS_EIO && strstr(reason.text, "shorter"), "%s", reason.text);
    CHECK(got > 399000 && got <= 400000);
    input_text_free(&t);
    input_close(input);
    buf_free(&text);
}

TEST(files_that_grow_are_read_as_they_were)
{
    struct input_options options = {.segment = 10};
    struct input *input;
    struct input_text t = {0};
    struct input_segment s;
    bool more;
    size_t got = 0;
    write_file("grows", "a,b\n1,2\n3,4\n5", 13);
    CHECK(input_open(&input, "grows", &options, NULL) == TAMIS_OK);
    FILE *f = fopen("grows", "ab");
    fprintf(f, ",6\n7,8\n");
    fclose(f);
    while (input_next(input, &s, &t, &more, NULL) == TAMIS_OK && more)
        got += s.len;
    CHECK_MSG(got == 9, "%zu", got);
    input_text_free(&t);
    input_close(input);
}

/* ---- what an input is ------------------------------------------------------------------------ */

static void detect(const char *path, const char *text, size_t len, enum read_format format,
                   const char *header)
{
    struct input *input = NULL;
    struct input_options options = {0};
    tamis_reason reason = {0};
    write_file(path, text, len);
    if (!CHECK_MSG(input_open(&input, path, &options, &reason) == TAMIS_OK, "%s", reason.text))
        return;
    CHECK_MSG(input->dialect.format == format, "%s: %s", path,
              read_format_name(input->dialect.format));
    CHECK(input->regular && input->size == len && strcmp(input->path, path) == 0);
    if (header)
        CHECK_MSG(input->header && input->header_len == strlen(header) &&
                      memcmp(input->header, header, input->header_len) == 0,
                  "%s: %.*s", path, (int)input->header_len, (const char *)input->header);
    else
        CHECK(input->header == NULL);
    input_close(input);
    remove(path);
}

#define DETECT(path, text, format, header) detect(path, text, sizeof(text) - 1, format, header)

TEST(formats_are_seen)
{
    DETECT("x.csv", "{\"a\"\n", READ_CSV, "{\"a\"");
    DETECT("x.TSV", "a,b\n", READ_TSV, "a,b");
    DETECT("x.jsonl", "a,b\n", READ_JSONL, NULL);
    DETECT("x.ndjson.gz", "a,b\n", READ_JSONL, NULL);
    DETECT("x.csv.zst", "{}\n", READ_CSV, "{}");
    DETECT("x.csv.1", "{}\n", READ_CSV, "{}");
    DETECT("x.tsv-20261115.gz", "a,b\n", READ_TSV, "a,b");
    DETECT("x.jsonl.2026-11-15_23-00", "a,b\n", READ_JSONL, NULL);
    DETECT("x.jsonl.", "a,b\n1,2\n", READ_CSV, "a,b");
    DETECT("x.jsonl-a1", "a,b\n1,2\n", READ_CSV, "a,b");
    DETECT("x.jsonl1", "a,b\n1,2\n", READ_CSV, "a,b");
    DETECT("2026-11-15", "a,b\n1,2\n", READ_CSV, "a,b");
    DETECT("x.log", "\n {\"a\":1}\n", READ_JSONL, NULL);
    DETECT("x", "a,b\tc\n1\t2\n", READ_TSV, "a,b\tc");
    DETECT("x", "a,b\nc\td\n", READ_TEXT, NULL); /* no row has two columns */
    DETECT("x", "a,b\nc\td\ne,f\n", READ_CSV, "a,b");
    DETECT("x", "\xef\xbb\xbf{}\n", READ_JSONL, NULL);
    DETECT("x", "\xef\xbb\xbf\"a\",b\r\n1,2\r\n", READ_CSV, "\"a\",b");
    DETECT("x.csv", "\n\r\n\na,\"b\nb\"\r\n1,2\n", READ_CSV, "a,\"b\nb\"");
    DETECT("x", "\n\r\n\na,\"b\nc,d\"\r\n1,2\n", READ_CSV, "a,\"b");
    DETECT("x", "", READ_CSV, "");
    DETECT("x", "\n\n", READ_CSV, "");
    DETECT("x", "a,b", READ_TEXT, NULL);
    DETECT("x.csv", "a,b", READ_CSV, "a,b");
    DETECT("x.csv", "\"a,b\n1,2\n", READ_CSV, "\"a,b");
}

TEST(empty_inputs_have_no_records)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "a,b",
                                        "a,b\n",
                                        "\n\na,b\r\n\r\n",
                                        "\xef\xbb\xbf",
                                        ("\xef\xbb\xbf"
                                         "a,b\n\n")};
    struct input_options options = {.segment = 1};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buf got = {0}, packed = {0};
        buf_add(&got, "", 0);
        write_file("empty.csv", texts[i], strlen(texts[i]));
        CHECK(show_input(&got, NULL, "empty.csv", &options, "a", 0, NULL, NULL) == TAMIS_OK);
        pack_gz(&packed, texts[i], strlen(texts[i]), 0, 0);
        write_file("empty.csv.gz", packed.data, packed.len);
        CHECK(show_input(&got, NULL, "empty.csv.gz", &options, "a", 0, NULL, NULL) == TAMIS_OK);
        packed.len = 0;
        pack_zst(&packed, texts[i], strlen(texts[i]), 0);
        write_file("empty.csv.zst", packed.data, packed.len);
        CHECK(show_input(&got, NULL, "empty.csv.zst", &options, "a", 0, NULL, NULL) == TAMIS_OK);
        CHECK_MSG(got.len == 0, "%zu: %s", i, got.data);
        buf_free(&got);
        buf_free(&packed);
    }
}

TEST(byte_order_marks_are_no_text)
{
    struct buf got = {0};
    struct input_options options = {0};
    write_file("bom", "\xef\xbb\xbf{\"a\":1}\n{\"a\":2}\n", 19);
    CHECK(show_input(&got, NULL, "bom", &options, "a", SHOW_PLACE, NULL, NULL) == TAMIS_OK);
    CHECK_MSG(strcmp(got.data, "3:1 1\n11:2 2\n") == 0, "%s", got.data);
    buf_free(&got);
    write_file("bom", "\xef\xbb\xbf\"a\"\n1\n", 9);
    CHECK(show_input(&got, NULL, "bom", &options, "a", SHOW_PLACE, NULL, NULL) == TAMIS_OK);
    CHECK_MSG(strcmp(got.data, "7:2 1\n") == 0, "%s", got.data);
    buf_free(&got);
}

TEST(inputs_that_cannot_be_read)
{
    struct input *input = NULL;
    struct input_options options = {0};
    tamis_reason reason;
    CHECK(input_open(&input, "no/such", &options, &reason) == TAMIS_EIO);
    CHECK(strstr(reason.text, "no/such") && reason.system_error != 0);
    CHECK(input_open(&input, ".", &options, &reason) == TAMIS_EIO);
    write_file("wide",
               "\xff\xfe"
               "a\0,\0",
               6);
    write_file("x.xz",
               "\xfd"
               "7zXZ\0\0\4\xe6\xd6",
               10);
    CHECK(input_open(&input, "x.xz", &options, &reason) == TAMIS_EFORMAT);
    CHECK(strstr(reason.text, "xz at byte") != NULL);
    write_file("bad.gz", "\x1f\x8bxxxxxxxxxxxxxxxxx", 19);
    CHECK(input_open(&input, "bad.gz", &options, &reason) == TAMIS_EFORMAT);
    options.dialect.delimiter = '"';
    CHECK(input_open(&input, "wide", &options, &reason) == TAMIS_EARG);
    CHECK(input == NULL);
}

/* ---- pipes ----------------------------------------------------------------------------------- */

/* What has come is given out before more comes: a reader that waited for more would wait for ever,
   because the one who writes goes on only then. No clock has a part in it. */
TEST(pipes_give_records_as_they_come)
{
    static const struct {
        const char *piece, *text;
    } steps[] = {{"2\n3,4\n\"5\n", "1,2\n3,4\n"}, {"\",6\n", "\"5\n\",6\n"}, {"7,8", "7,8"}};
    int fds[2], standard = dup(STDIN_FILENO);
    if (!CHECK(pipe(fds) == 0))
        return;
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    struct input *input;
    struct input_options options = {.dialect.tables = true};
    struct input_text text = {0};
    struct input_segment segment;
    uint64_t offset = 4;
    bool more;
    CHECK(write(fds[1], "a,b\n1,", 6) == 6);
    if (!CHECK(input_open(&input, "-", &options, NULL) == TAMIS_OK))
        return;
    CHECK(input->header_len == 3 && memcmp(input->header, "a,b", 3) == 0);
    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(steps[i].piece);
        CHECK(write(fds[1], steps[i].piece, len) == (ssize_t)len);
        if (i == 2)
            close(fds[1]);
        CHECK(input_next(input, &segment, &text, &more, NULL) == TAMIS_OK && more);
        CHECK_MSG(text.len == strlen(steps[i].text) && !memcmp(text.data, steps[i].text, text.len),
                  "%zu: <%.*s>", i, (int)text.len, text.data);
        CHECK(segment.offset == offset && segment.len == text.len);
        offset += text.len;
    }
    CHECK(input_next(input, &segment, &text, &more, NULL) == TAMIS_OK && !more);
    input_text_free(&text);
    input_close(input);
    dup2(standard, STDIN_FILENO);
    close(standard);
}

HARNESS_MAIN
