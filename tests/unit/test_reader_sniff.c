/* What files are, by their first bytes: what must be read, and what must not be taken for it. */
#include "harness.h"
#include "reader_help.h"
#include "read/reader_sniff.h"

struct sample {
    const char *text; /* up to its first zero, or `len` bytes */
    size_t len;
    const char *what; /* NULL: it is read, as */
    enum read_format format;
    enum read_format named; /* what the name of the file says */
};

static void check_sample(const struct sample *s)
{
    size_t len = s->len ? s->len : strlen(s->text);
    struct dialect dialect = {.format = s->named};
    struct sniff got =
        sniff_text(&dialect, s->named != READ_AUTO, (const uint8_t *)s->text, len, true);
    if (s->what)
        CHECK_MSG(got.class != SNIFF_READABLE && strcmp(got.what, s->what) == 0 && got.advice[0],
                  "<%.60s>: %s, not %s", s->text, got.what ? got.what : "read", s->what);
    else
        CHECK_MSG(got.class == SNIFF_READABLE && got.format == s->format, "<%.60s>: %s", s->text,
                  got.what ? got.what : read_format_name(got.format));
}

TEST(what_is_read)
{
    static const char log[] =
        "10.0.0.1 - - [01/Jan/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 12 \"-\" \"Mozilla/5.0\"\n"
        "10.0.0.2 - - [01/Jan/2026:10:00:01 +0000] \"GET / HTTP/1.1\" 200 12 \"-\" \"A, b\"\n";
    static const struct sample samples[] = {
        {"", 0, NULL, READ_CSV, READ_AUTO},
        {log, 0, NULL, READ_COMBINED, READ_AUTO},
        {"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a.gif HTTP/1.0\" 200 2326\n", 0,
         NULL, READ_COMMON, READ_AUTO},
        {"[2026-01-02 10:00] INFO start\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"id\na,b\na,b\na,b\n", 0, NULL, READ_TEXT, READ_AUTO},
        /* a header needs values below it, or the name of the file: a line of text would be lost */
        {"disk full, giving up\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"disk full, giving up\n", 0, NULL, READ_CSV, READ_CSV},
        {"error\twhy\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"disk full, giving up\nretrying, attempt 2\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"disk full, giving up\nretrying, attempt 2\n", 0, NULL, READ_CSV, READ_CSV},
        {"server started, version 2\nlistening\nready\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"started,now\nlistening\nready\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"a user | logged in\nhe | left\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"42 started\nwith 42\nand 43\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"42, 43 seen\nwith, 42\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"42, started\nwith 42\nand 43\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"a start, now\nport, 22\ndone\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"[INFO] started\n42 seen\n43 seen\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"USER PID %CPU 1K-blocks\nann 1 0.5 3\nbob 2 0.1 4\n", 0, NULL, READ_CSV, READ_AUTO},
        {"\"a name\" b\nx 1\ny 2\n", 0, NULL, READ_CSV, READ_AUTO},
        {"42, started\nwith, 42\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"city,2019,2020\nCork,1,2\n", 0, NULL, READ_CSV, READ_AUTO},
        {"user,city\nann,Cork\n", 0, NULL, READ_CSV, READ_AUTO},
        {"\"a user\",city\nann,Cork\n", 0, NULL, READ_CSV, READ_AUTO},
        {"error\nwarning\nfine\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"x", 0, NULL, READ_TEXT, READ_AUTO},
        {"10.0.0.1\n10.0.0.2\n", 0, NULL, READ_CSV, READ_AUTO},
        {"2026-01-02 10:00:00,123 INFO a\n2026-01-02 10:00:00,124 INFO b\n", 0, NULL, READ_TEXT,
         READ_AUTO},
        {"\n\r\n \n", 0, NULL, READ_CSV, READ_AUTO},
        {"id\n1\n2\n", 0, NULL, READ_CSV, READ_AUTO},
        {"a,b\r\n1,2\r\n3\r\n", 0, NULL, READ_CSV, READ_AUTO},
        {"a,b\n\"x\ny\",\"p\"\"q\"\n5\" pipe,2\n", 0, NULL, READ_CSV, READ_AUTO},
        {"ORCID,name\n1,x\n", 0, NULL, READ_CSV, READ_AUTO},
        {"PAR1,GIF8\n1,x\n", 0, NULL, READ_CSV, READ_AUTO},
        {"a b,c d\n1,x\n", 0, NULL, READ_CSV, READ_AUTO},
        {"a\tb c\n1\t2\n", 0, NULL, READ_TSV, READ_AUTO},
        /* a blank before the first name is a column without one, if numbers are below */
        {"\ta\tb\nx\t1\t2\nx\t1\t2\nx\t1\t2\n", 0, NULL, READ_TSV, READ_AUTO},
        {" a b\nx 1 2\ny 3 4\n", 0, NULL, READ_CSV, READ_AUTO},
        /* two lines of text, of which the second has a number; and an indented one */
        {"starting the server now\nlistening on port 8080\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"  at failed: x for a.b\n1715177814.5 refused by peer for c\n1715177815.5 refused by peer for d\n",
         0, NULL, READ_TEXT, READ_AUTO},
        {"\n  at user ann\nfor 10.0.0.1 now\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"\tat A.b(A.java:5)\n\tat A.c(A.java:7)\n", 0, NULL, READ_TEXT, READ_AUTO},
        {"{\"a\":1}\n{\"a\":2}\n", 0, NULL, READ_JSONL, READ_AUTO},
        {"{\"a\":1}", 0, NULL, READ_JSONL, READ_JSONL},
        {"{\"a\":1,\n{\"a\":2}\n", 0, NULL, READ_JSONL, READ_JSONL}, /* a bad line, others good */
        {"{\"a\":\"cut\n{\"a\":2}\n", 0, NULL, READ_JSONL, READ_AUTO},
        {"{\"a\":1,\"b\":\n{\"a\":2}\n{\"a\":3}\n", 0, NULL, READ_JSONL, READ_JSONL},
        {"{\"user\":\"ann\",\"path\":\"/shop/cart\",\"cart\":[{\"n\":1}]}\n", 0, NULL, READ_JSONL,
         READ_JSONL},
        {"{\"cart\":[{\"n\":1},{\"n\":2}],\"id\":1}\n{\"cart\":[],\"id\":2}\n", 0, NULL, READ_JSONL,
         READ_JSONL},
        {"{\"a\":[1,2]}\n", 0, NULL, READ_JSONL, READ_JSONL},
        {"[1,\"x\"]\n", 0, NULL, READ_JSONL, READ_JSONL},
        {"[{\"a\":1}]\n[{\"a\":2}]\n", 0, NULL, READ_JSONL, READ_AUTO},
        {"[{\"a\":1},{\"a\":2}]", 0, NULL, READ_JSON, READ_AUTO},
        {"[{\"a\":1},{\"a\":2}]\n", 0, NULL, READ_JSON, READ_JSONL},
        {"[\n{\"a\":1},\n{\"a\":2}\n]\n", 0, NULL, READ_JSON, READ_JSONL},
        {" [ [1,2],\n [3,4] ]\n", 0, NULL, READ_JSON, READ_AUTO},
        {"[\n", 0, NULL, READ_JSON, READ_JSONL},
        {"{\"Records\":[{\"id\":1},{\"id\":2}]}\n", 0, NULL, READ_JSON, READ_JSONL},
        {"{\"Records\":[{\"id\":1}]}\n{\"Records\":[{\"id\":2}]}\n", 0, NULL, READ_JSON, READ_AUTO},
        {"{\"n\":2,\"results\":[{\"id\":\"abcdef\"},{\"id\":\"abcdef\"}]}\n", 0, NULL, READ_JSON,
         READ_AUTO},
        {"{\n\"Records\": [\n{\"id\":1}\n]}\n", 0, NULL, READ_JSON, READ_AUTO},
        {"{\n  \"a\": 1,\n  \"b\": [true, null, -1.5e3]\n}\n{\n  \"a\": 2\n}\n", 0, NULL, READ_JSON,
         READ_AUTO},
        {"{\n", 0, NULL, READ_JSON, READ_JSONL},
        {"not json\n", 0, NULL, READ_JSONL, READ_JSONL},
        {"{not json\n", 0, NULL, READ_CSV, READ_CSV},
        {"any text, at all\nsaid \"so\"", 0, NULL, READ_CSV, READ_CSV},
        {"caf\xe9,b\n1,2\n", 0, NULL, READ_CSV, READ_AUTO},
        {"a,b\n1,2\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32, NULL, READ_CSV,
         READ_CSV},
        {"a,b\n1,\x1b[1mbold\x1b[0m\n", 0, NULL, READ_CSV, READ_CSV},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        check_sample(&samples[i]);
}

TEST(what_is_refused)
{
    static const struct sample samples[] = {
        {"\xff\xfe"
         "a\0,\0",
         6, "UTF-16 text", 0, READ_CSV},
        {"a\0,\0b\0\n\0", 8, "UTF-16 text without a byte order mark", 0, READ_CSV},
        {"\0a\0,\0b\0\n", 8, "UTF-16 text without a byte order mark", 0, READ_AUTO},
        {"PAR1\x15\x04\x15\x80", 8, "a Parquet file", 0, READ_CSV},
        {"PK\x03\x04\x14\0", 6, "a zip archive", 0, READ_AUTO},
        {"SQLite format 3\0", 16, "an SQLite database", 0, READ_AUTO},
        {"\x01\x02\x03\x80\x05\x06\x07", 7, "binary data", 0, READ_JSONL},
        {"\0\0\0\0", 4, "binary data", 0, READ_CSV},
        {"\x1f\x8b\x08\0", 4, "a file compressed twice", 0, READ_AUTO},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        check_sample(&samples[i]);
}

/* A format that is given is believed: then only what is no text is refused. */
TEST(what_is_given_is_believed)
{
    struct dialect dialect = {.format = READ_JSONL};
    static const char array[] = "[{\"a\":1},{\"a\":2}]", wide[] = "a\0,\0b\0\n";
    CHECK(sniff_text(&dialect, false, (const uint8_t *)array, strlen(array), true).class ==
          SNIFF_READABLE);
    CHECK(sniff_text(&dialect, false, (const uint8_t *)wide, sizeof wide, true).class ==
          SNIFF_UNKNOWN);
    static const char ragged[] = "a b\n1 2 3\n1 2 3\n1\n1 2 3 4\n";
    dialect = (struct dialect){.headless = true};
    CHECK(sniff_text(&dialect, true, (const uint8_t *)ragged, strlen(ragged), true).class ==
          SNIFF_READABLE); /* one column */
    dialect.delimiter = ' ';
    struct sniff got = sniff_text(&dialect, true, (const uint8_t *)ragged, strlen(ragged), true);
    CHECK(got.class == SNIFF_READABLE && got.format == READ_CSV);
}

/* The first bytes of a long text cut what is in them anywhere. */
TEST(every_start_of_a_text_is_what_the_text_is)
{
    static const char lines[] = "{\"a\":\"x\",\"b\":[1,{\"c\":null}]}\n{\"a\":\"y\"}\n",
                      table[] = "id,name\n1,\"a,\nb\"\"\"\n2,x\n3,\"\"\n4,z\n5,\"q\n\"\n",
                      array[] = "[{\"a\":\"x\"},\n{\"a\":\"y\"},\n{\"a\":\"z\"}]\n";
    struct dialect dialect = {0};
    for (size_t len = 1; len < sizeof lines; len++)
        CHECK(sniff_text(&dialect, true, (const uint8_t *)lines, len, false).format == READ_JSONL);
    for (size_t len = 1; len < sizeof table; len++) {
        struct sniff got = sniff_text(&dialect, true, (const uint8_t *)table, len, false);
        CHECK(got.class == SNIFF_READABLE && got.format == READ_CSV);
    }
    for (size_t len = 2; len < sizeof array; len++) {
        struct sniff got = sniff_text(&dialect, true, (const uint8_t *)array, len, false);
        CHECK(got.class == SNIFF_READABLE && got.format == READ_JSON);
    }
}

/* A tar archive under gzip and zstd; nothing at all; what is not there. */
TEST(files_are_looked_at_through_their_compression)
{
    uint8_t tar[1024] = "some/name";
    struct buf packed = {0};
    struct dialect dialect = {0};
    struct sniff got;
    tamis_reason reason = {0};
    memcpy(tar + 257, "ustar", 6);
    write_file("t.csv", tar, sizeof tar);
    CHECK(sniff_file("t.csv", &dialect, &got, &reason) == TAMIS_OK);
    CHECK(got.class == SNIFF_UNKNOWN && strcmp(got.what, "a tar archive") == 0);
    for (int zst = 0; zst < 2; zst++) {
        packed.len = 0;
        if (zst)
            pack_zst(&packed, tar, sizeof tar, 0);
        else
            pack_gz(&packed, tar, sizeof tar, 0, 0);
        write_file("t.csv.gz", packed.data, packed.len);
        CHECK(sniff_file("t.csv.gz", &dialect, &got, &reason) == TAMIS_OK);
        CHECK(got.class == SNIFF_UNKNOWN && strcmp(got.what, "a tar archive") == 0);
    }
    write_file("none", "", 0);
    CHECK(sniff_file("none", &dialect, &got, &reason) == TAMIS_OK && got.class == SNIFF_READABLE);
    CHECK(sniff_file("missing", &dialect, &got, &reason) == TAMIS_EIO && reason.system_error);
    buf_free(&packed);
}

HARNESS_MAIN
