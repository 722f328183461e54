/*
 * The rules of records: what a CSV, TSV or JSONL text means. For the tests in tests/python it prints
 * instead: the records of a file with "--dump FORMAT SEGMENT PATH ATTRIBUTE…", their fields with
 * "--fields PATH", what the times on standard input are with "--times ZONE REFERENCE".
 */
#include "harness.h"
#include "reader_help.h"
#include "read/reader_scan.h"

static void same(const char *file, int line, enum read_format format, const char *attributes,
                 const char *header, const char *text, size_t len, const char *expected)
{
    char *got = show_text(format, attributes, header, text, len);
    harness_check(strcmp(got, expected) == 0, file, line, "records",
                  "of <%.300s>: <%.300s>, not <%.300s>", text, got, expected);
    free(got);
}

#define CSV(text, expected) \
    same(__FILE__, __LINE__, READ_CSV, "a b c", "a,b,c", text, sizeof(text) - 1, expected)
#define TSV(text, expected) \
    same(__FILE__, __LINE__, READ_TSV, "a b c", "a\tb\tc", text, sizeof(text) - 1, expected)
#define JSON(attributes, text, expected) \
    same(__FILE__, __LINE__, READ_JSONL, attributes, NULL, text, sizeof(text) - 1, expected)

/* ---- CSV, TSV -------------------------------------------------------------------------------- */

TEST(csv_cells_are_present_empty_or_missing)
{
    CSV("1,2,3\n", "1|2|3\n");
    CSV("1,2,3", "1|2|3\n");
    CSV("1,,3\n,,\n", "1||3\n||\n");
    CSV("\"\",\"\",\"\"\n", "||\n");
    CSV("1\n1,2\n", "1|~|~\n1|2|~\n");
    CSV("1,2,\n", "1|2|\n");
    CSV("1,2,3,4,5\n", "1|2|3\n");
    CSV("", "");
    CSV(" 1 ,2 , 3\n", " 1 |2 | 3\n");
}

TEST(csv_quotes)
{
    CSV("\"1\",\"2,2\",\"3\"\n", "1|2,2|3\n");
    CSV("\"1\"\"1\",\"\"\"\",\"\"\"3\"\"\"\n", "1\"1|\"|\"3\"\n");
    CSV("\"1\n1\",\"2\r\n\",\"\n\"\n4\n", "1\\x0a1|2\\x0d\\x0a|\\x0a\n4|~|~\n");
    CSV("\"1\",2,\"3\"", "1|2|3\n");
    /* As Python's csv: a quote inside a field is text, and so is what follows a closing one. */
    CSV("1\"1,2\"\"2,\"3\"x\n", "1\"1|2\"\"2|3x\n");
    CSV("\"1\"x\"y\",\"\"z,3\n", "1x\"y\"|z|3\n");
    CSV("\"1\"\"\"x,2\n", "1\"x|2|~\n");
    CSV("1,2,3,\"4\n4\",\"5\"\"\n5\"\n6\n", "1|2|3\n6|~|~\n");
    CSV("1,2,3,x\"\n6,\"7\"\n", "1|2|3\n6|7|~\n");
}

TEST(csv_line_ends)
{
    CSV("1,2,3\r\n4,5,6\r\n", "1|2|3\n4|5|6\n");
    CSV("\"1\",\"2\",\"3\"\r\n4", "1|2|3\n4|~|~\n");
    CSV("1,2,3\r", "1|2|3\n");
    CSV("1,2,\r\n", "1|2|\n");
    CSV("\n\n1,2,3\n\r\n\n4\n\n\r\n", "1|2|3\n4|~|~\n");
    CSV("1\r2,\r3,4\r\r\n", "1\\x0d2|\\x0d3|4\\x0d\n");
    CSV("\"1\"\r,2\n", "1\\x0d|2|~\n");
    CSV("\r,2\n", "\\x0d|2|~\n");
    CSV("1,2,3,\r\n4\r\n", "1|2|3\n4|~|~\n");
}

TEST(csv_bytes_pass_as_they_are)
{
    CSV("\xff\xfe,\0,\xc3\xa9\n", "\\xff\\xfe|\\x00|\\xc3\\xa9\n");
    CSV("\"\xff\"\"\",\\n,'\n", "\\xff\"|\\x5cn|'\n");
}

TEST(csv_quote_that_is_not_closed_costs_its_line)
{
    CSV("1,\"2\n3,4,5\n", "bad: a quote is not closed\n3|4|5\n");
    CSV("1,2,3,\"4\n3,4,5\n", "bad: a quote is not closed\n3|4|5\n");
    CSV("1,\"2", "bad: a quote is not closed\n");
    /* A quote that opens another field closes none over line ends: nothing is swallowed. */
    CSV("1,\"2\n3,\"4\",5\n6,7,8\n", "bad: a quote is not closed\n3|4|5\n6|7|8\n");
    CSV("1,\"2\n3,say \"x\",5\n", "bad: a quote is not closed\n3|say \"x\"|5\n");
    CSV("1,2,3,\"4\n3,4,5,\"6\"\n", "bad: a quote is not closed\n3|4|5\n");
    CSV("1,\"2\n3,\"4\n5,\"6\n", "bad: a quote is not closed\nbad: a quote is not closed\n"
                                 "bad: a quote is not closed\n");
    CSV("1,\"2\"x,3\n4,\"5\n\"x,6\n", "1|2x|3\nbad: a quote is not closed\n"
                                      "bad: a quote is not closed\n");
    CSV("1,\"2\n\"\r\n4,\"5\n\"\r6,7\n", "1|2\\x0a|~\n4|5\\x0a\\x0d6|7\n");
    CSV("\"", "bad: a quote is not closed\n");
    CSV("\"\"\"", "bad: a quote is not closed\n");
    CSV("0\n\"a\nb\",\"2\n3,\"\"\"\"\"\",5\n", "0|~|~\nbad: a quote is not closed\n3|\"\"|5\n");
}

TEST(tsv_has_no_quotes_and_no_escapes)
{
    TSV("1\t2\t3\n", "1|2|3\n");
    TSV("\"1\t2\"\t\\t\r\n\n4\t\t", "\"1|2\"|\\x5ct\n4||\n");
    TSV("1,2\t\"\n\"\t5\n", "1,2|\"|~\n\"|5|~\n");
}

TEST(columns_have_names_and_numbers)
{
    static const char header[] = "ip,\"the \"\"user\"\"\",2,ip,path";
    static const char text[] = "a,b,c,d,e\n";
#define COLUMNS(attributes, expected) \
    same(__FILE__, __LINE__, READ_CSV, attributes, header, text, sizeof text - 1, expected)
    COLUMNS("path ip", "e|d\n"); /* of two the last */
    COLUMNS("1 5 6", "a|e|~\n");
    COLUMNS("2", "c\n"); /* a name before a number */
    COLUMNS("4 ip path 3 2", "d|d|e|c|c\n");
    COLUMNS("none 1", "~|a\n");
    COLUMNS("01 0", "~|~\n");
    same(__FILE__, __LINE__, READ_CSV, "3 1", NULL, text, sizeof text - 1, "c|a\n");

    struct dialect dialect = {.format = READ_CSV};
    const char *quoted[] = {"the \"user\"", "none", "x"};
    struct selection *s;
    CHECK(selection_new(&s, &dialect, quoted, 3, header, sizeof header - 1, NULL) == TAMIS_OK);
    CHECK(selection_absent(s, 0) == 1 && selection_absent(s, 2) == 2 &&
          selection_absent(s, 3) == 3);
    selection_free(s);
}

TEST(selections_that_cannot_be)
{
    struct dialect csv = {.format = READ_CSV}, json = {.format = READ_JSONL};
    struct selection *s = NULL;
    tamis_reason reason;
    CHECK(selection_new(&s, &csv, (const char *[]){"a", "a"}, 2, "a", 1, &reason) == TAMIS_EARG);
    CHECK(strstr(reason.text, "twice") != NULL);
    CHECK(selection_new(&s, &csv, (const char *[]){""}, 1, "a", 1, &reason) == TAMIS_EARG);
    /* a table without a header lacks what is not the number of a column */
    static const char *const other[] = {"1", "a", "0", "999999999", "1000001"};
    struct dialect headless = {.format = READ_CSV, .headless = true};
    CHECK(selection_new(&s, &headless, other, 5, NULL, 0, &reason) == TAMIS_OK);
    for (size_t i = 0; i < 5; i++)
        CHECK(selection_absent(s, i) == (i ? i : 1));
    selection_free(s);
    s = NULL;
    CHECK(selection_new(&s, &csv, NULL, 0, "a", 1, &reason) == TAMIS_EARG);
    CHECK(selection_new(&s, &json, (const char *[]){"1.2.3.4.5.6.7.8.9.0"}, 1, NULL, 0, &reason) ==
          TAMIS_EARG);
    CHECK(selection_new(&s, &(struct dialect){0}, (const char *[]){"a"}, 1, NULL, 0, NULL) ==
          TAMIS_EARG);
    CHECK(s == NULL);
}

TEST(other_delimiters)
{
    struct dialect dialect = {.format = READ_CSV, .delimiter = ';'};
    struct selection *s = select_words(&dialect, "b a", "a;b", 3);
    struct buf out = {0};
    show_records(&out, s, (const uint8_t *)"1,2;\"3;\"\n\";\";\n", 14, 0, 0, 1, NULL);
    CHECK_MSG(strcmp(out.data, "3;|1,2\n|;\n") == 0, "%s", out.data);
    buf_free(&out);
    selection_free(s);
}

/* ---- JSONL ----------------------------------------------------------------------------------- */

TEST(json_values)
{
    JSON("a b c", "{\"a\":\"x\",\"b\":\"\",\"c\":null}\n", "x||~\n");
    JSON("a b c", "{}\n{\"d\":1}\n", "~|~|~\n~|~|~\n");
    JSON("a b c", "{\"a\":1,\"b\":-1.50e+7,\"c\":true}\n", "1|-1.50e+7|true\n");
    JSON("a b c", "{\"a\":false,\"b\":NaN,\"c\":-Infinity}", "false|NaN|-Infinity\n");
    JSON("a b c", "{\"a\":{\"x\": [1, 2]},\"b\":[],\"c\":{}}\n", "{\"x\": [1, 2]}|[]|{}\n");
    JSON("a b", " \t{ \"a\" : \"x\" ,\t\"b\" : [ ] } \r\n", "x|[ ]\n");
    JSON("a", "\n\n{\"a\":1}\n  \n\r\n{\"a\":2}\n\t", "1\n2\n");
    JSON("a", "{\"a\":\"\xff\x01\t\"}\n", "\\xff\\x01\\x09\n");
    JSON("1 0", "[\"x\",{\"a\":1}]\n[]\n", "{\"a\":1}|x\n~|~\n");
    JSON("a", "{\"a\":[null]}\n{\"a\":[null,null]}\n{\"a\":[[null]]}\n", "~\n~\n[null]\n");
    JSON("a", "", "");
    JSON("a", "{\"a\":0}\n{\"a\":-0}\n{\"a\":0.0}\n{\"a\":1E5}\n", "0\n-0\n0.0\n1E5\n");
}

TEST(json_escapes)
{
    JSON("a", "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}\n", "\"\\x5c/\\x08\\x0c\\x0a\\x0d\\x09\n");
    JSON("a", "{\"a\":\"x\\u0041\\u00e9\\u20AC\\ud83d\\uDE00y\"}\n",
         "xA\\xc3\\xa9\\xe2\\x82\\xac\\xf0\\x9f\\x98\\x80y\n");
    JSON("a", "{\"a\":\"\\u0000\"}\n", "\\x00\n");
    /* Half a pair. */
    JSON("a", "{\"a\":\"\\ud83d\"}\n{\"a\":\"\\ude00\\ud83d\\u0041\"}\n",
         "\\xed\\xa0\\xbd\n\\xed\\xb8\\x80\\xed\\xa0\\xbdA\n");
    JSON("a", "{\"a\":\"\\ud83d\\ue000\"}\n", "\\xed\\xa0\\xbd\\xee\\x80\\x80\n");
    JSON("ab", "{\"\\u0061\\u0062\":1}\n", "1\n");
    JSON("a b", "{\"a\":\"\\n\",\"b\":\"x\\ty\"}\n{\"b\":\"\\/\"}", "\\x0a|x\\x09y\n~|/\n");
}

TEST(json_last_of_equal_keys_counts)
{
    JSON("a", "{\"a\":1,\"a\":2}\n", "2\n");
    JSON("a", "{\"a\":1,\"a\":null}\n", "~\n");
    JSON("a", "{\"a\":1,\"\\u0061\":\"\"}\n", "\n");
    JSON("a.b a.c", "{\"a\":{\"b\":1},\"a\":{\"c\":2}}\n", "~|2\n");
    JSON("a.b a", "{\"a\":{\"b\":1},\"a\":5}\n", "~|5\n");
    JSON("a.1", "{\"a\":[1,2],\"a\":[3]}\n", "~\n");
}

TEST(json_paths)
{
    JSON("a.b.c a.b a", "{\"a\":{\"b\":{\"c\":1}}}\n", "1|{\"c\":1}|{\"b\":{\"c\":1}}\n");
    JSON("a.0 a.1.b a.2", "{\"a\":[5,{\"b\":6}]}\n", "5|6|~\n");
    JSON("a.0", "{\"a\":{\"0\":7}}\n", "7\n");
    JSON("a.01", "{\"a\":[1,2]}\n{\"a\":{\"01\":7}}\n", "~\n7\n");
    JSON("a.b", "{\"b\":1,\"a\":2}\n{\"a\":[{\"b\":1}]}\n{\"a\":null}\n", "~\n1\n~\n");
    JSON("a.b b", "{\"x\":{\"a\":{\"b\":1},\"b\":2}}\n", "~|~\n");
    /* Keys with dots of their own, and which comes first. */
    JSON("a.b", "{\"a.b\":1}\n{\"a\":{\"b\":2}}\n{\"a\":{\"b\":2},\"a.b\":1}\n", "1\n2\n1\n");
    JSON("a.b", "{\"a.b\":null,\"a\":{\"b\":2}}\n{\"a.b\":1,\"a\":{},\"a\":{}}\n", "2\n1\n");
    JSON("a.b.c", "{\"a\":{\"b.c\":1}}\n{\"a.b\":{\"c\":2}}\n{\"a\":{\"b\":{\"c\":3}}}\n",
         "1\n2\n3\n");
    JSON("a.b.c",
         "{\"a\":{\"b\":{\"c\":3},\"b.c\":1},\"a.b\":{\"c\":2}}\n"
         "{\"a\":{\"b\":{\"c\":3},\"b.c\":1}}\n",
         "2\n1\n");
}

TEST(json_bad_records_are_skipped)
{
    static const char *const bad[] = {"x",
                                      "{",
                                      "}",
                                      "[",
                                      "{]",
                                      "[}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{,}",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "{\"a\" 1}",
                                      "{\"a\":1 \"b\":2}",
                                      "{a:1}",
                                      "{'a':1}",
                                      "{\"a\":'x'}",
                                      "{1:2}",
                                      "{\"a\":01}",
                                      "{\"a\":+1}",
                                      "{\"a\":.5}",
                                      "{\"a\":1.}",
                                      "{\"a\":1e}",
                                      "{\"a\":1e+}",
                                      "{\"a\":-}",
                                      "{\"a\":0x1}",
                                      "{\"a\":tru}",
                                      "{\"a\":truex}",
                                      "{\"a\":nul}",
                                      "{\"a\":True}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":\"\\u12\"}",
                                      "{\"a\":\"\\u12g4\"}",
                                      "{\"a\":\"x}",
                                      "{\"a\":\"x\\\"}",
                                      "{\"a\":1}x",
                                      "{\"a\":1}{\"a\":2}",
                                      "{\"a\":1},",
                                      "\"a\"",
                                      "1",
                                      "null",
                                      "{\"b\":\"\\x\"}",
                                      "{\"b\":01}",
                                      "{\"b\":[1,{]}}",
                                      "{\"a\":\v1}",
                                      "\xef\xbb\xbf{}",
                                      "{\"a\":-Inf}",
                                      "{\"a\":--1}",
                                      "{\"\\x\":1}",
                                      "{\"a\"::1}",
                                      "{\"a\":1,,}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int last = 0; last < 2; last++) { /* with and without a line after it */
            struct buf text = {0};
            buf_say(&text, "{\"a\":\"first\"}\n%s%s", bad[i], last ? "" : "\n{\"a\":\"second\"}\n");
            char *got = show_text(READ_JSONL, "a", NULL, text.data, text.len);
            const char *line = strchr(got, '\n');
            CHECK_MSG(strncmp(got, "first\nbad: ", 11) == 0, "%s: %s", bad[i], got);
            CHECK_MSG(last || strstr(line, "\nsecond\n"), "%s: %s", bad[i], got);
            free(got);
            buf_free(&text);
        }
}

TEST(json_nesting_has_a_limit)
{
    for (size_t depth = 1020; depth <= 1030; depth++) {
        struct buf text = {0};
        buf_say(&text, "{\"a\":");
        for (size_t i = 1; i < depth; i++)
            buf_add(&text, "[", 1);
        for (size_t i = 1; i < depth; i++)
            buf_add(&text, "]", 1);
        buf_say(&text, "}\n{\"a\":1}\n");
        char *got = show_text(READ_JSONL, "b", NULL, text.data, text.len);
        CHECK_MSG(strcmp(got, depth <= JSON_LEVELS ? "~\n~\n" : "bad: nested too deeply\n~\n") == 0,
                  "%zu: %s", depth, got);
        free(got);
        buf_free(&text);
    }
}

TEST(many_attributes)
{
    struct buf names = {0}, text = {0}, expected = {0};
    buf_say(&text, "{");
    for (int i = 0; i < 64; i++) {
        buf_say(&names, "key%d.x ", i);
        buf_say(&text, "%s\"key%d\":{\"y\":0,\"x\":\"v\\u0061%d\"}", i ? "," : "", i, i);
        buf_say(&expected, "%sva%d", i ? "|" : "", i);
    }
    buf_say(&text, "}\n");
    buf_say(&expected, "\n");
    char *got = show_text(READ_JSONL, names.data, NULL, text.data, text.len);
    CHECK_MSG(strcmp(got, expected.data) == 0, "%s", got);
    free(got);
    buf_free(&names);
    buf_free(&text);
    buf_free(&expected);
}

TEST(escaped_values_stay_while_others_grow)
{
    for (int csv = 0; csv < 2; csv++) {
        struct buf text = {0}, expected = {0};
        buf_say(&text, csv ? "\"\"\"\",\"\"\"" : "{\"a\":\"\\u0022\",\"b\":\"\\\"");
        buf_say(&expected, "\"|\"");
        for (int i = 0; i < 30000; i++) {
            buf_add(&text, "x", 1);
            buf_add(&expected, "x", 1);
        }
        buf_say(&text, csv ? "\"\n" : "\"}\n");
        buf_say(&expected, "\n");
        char *got =
            show_text(csv ? READ_CSV : READ_JSONL, "a b", csv ? "a,b" : NULL, text.data, text.len);
        CHECK(strcmp(got, expected.data) == 0);
        free(got);
        buf_free(&text);
        buf_free(&expected);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static void places(enum read_format format, const char *attributes, const char *header,
                   const char *text, const char *expected)
{
    struct dialect dialect = {.format = format};
    struct selection *s = select_words(&dialect, attributes, header, header ? strlen(header) : 0);
    struct buf out = {0};
    show_records(&out, s, (const uint8_t *)text, strlen(text), SHOW_RAW | SHOW_PLACE, 100, 7, NULL);
    CHECK_MSG(strcmp(out.data, expected) == 0, "<%s>, not <%s>", out.data, expected);
    buf_free(&out);
    selection_free(s);
}

TEST(records_are_as_they_were_and_where_they_were)
{
    places(
        READ_CSV, "a", "a,b", "1,2\r\n\n\"x\ny\",\"\"\n3\r\n\"4,\n5",
        "100:7 [1,2\\x0d\\x0a] 1\n106:9 [\"x\\x0ay\",\"\"\\x0a] x\\x0ay\n115:11 [3\\x0d\\x0a] 3\n"
        "118:12 [\"4,\\x0a] bad: a quote is not closed\n122:13 [5] 5\n");
    places(READ_JSONL, "a", NULL, "\n {\"a\":1}\r\nx\n{\"a\":\"\\u0032\"}",
           "101:8 [ {\"a\":1}\\x0d\\x0a] 1\n111:9 [x\\x0a] bad: not an object\n"
           "113:10 [{\"a\":\"\\x5cu0032\"}] 2\n");
    places(READ_TSV, "a", "a", "1\n\n2", "100:7 [1\\x0a] 1\n103:9 [2] 2\n");
}

TEST(values_point_into_the_text_unless_escaped)
{
    static const char text[] = "{\"a\":\"x\\n\",\"b\":\"yy\"}"; /* without its end, too */
    struct dialect dialect = {.format = READ_JSONL};
    struct selection *s = select_words(&dialect, "a b", NULL, 0);
    struct parser *p = parser_new();
    struct record r;
    CHECK(parser_begin(p, s, text, sizeof text - 1) == TAMIS_OK);
    CHECK(parser_next(p, &r) == PARSED_RECORD);
    CHECK(r.data == (const uint8_t *)text && r.len == sizeof text - 1 && r.end_len == 0);
    CHECK(r.values[1].data == (const uint8_t *)text + 16 && r.values[1].len == 2);
    CHECK(r.values[0].len == 2 && memcmp(r.values[0].data, "x\n", 2) == 0);
    CHECK(parser_next(p, &r) == PARSED_END && parser_next(p, &r) == PARSED_END);
    parser_free(p);
    selection_free(s);
}

/* ---- two ways to one answer ------------------------------------------------------------------ */

TEST(scanning_finds_the_first)
{
    uint64_t rng = harness_seed();
    for (int round = 0; round < 20000; round++) {
        size_t len = rng_next(&rng) % 70, at = len;
        uint8_t *data = malloc(len + 1);
        for (size_t i = 0; i < len; i++)
            data[i] =
                (uint8_t)("abcdefgh\x80\xff\x01\0,\n\"\\"[rng_next(&rng) % (round % 2 ? 13 : 16)]);
        uint8_t a = ',', b = round % 3 ? '\n' : 0, c = round % 5 ? '"' : 0x80;
        for (size_t i = len; i-- > 0;)
            at = data[i] == a || data[i] == b || data[i] == c ? i : at;
        uint8_t *exact = malloc(len ? len : 1);
        memcpy(exact, data, len);
        CHECK(scan_for(exact, exact + len, a, b, c, true && SCAN_HAS_VECTOR) == exact + at);
        CHECK(scan_for(exact, exact + len, a, b, c, false) == exact + at);
        free(exact);
        free(data);
    }
}

/* Texts that look like the format, with all that is odd in it. */
static void random_text(struct buf *out, enum read_format format, uint64_t *rng, size_t parts)
{
    static const char *const csv[] = {"a",
                                      "b,",
                                      ",",
                                      "\"",
                                      "\"\"",
                                      "\n",
                                      "\r\n",
                                      "\r",
                                      "\",\"",
                                      "\"\n",
                                      "longer text than one step takes",
                                      ",\"",
                                      "\xff"};
    static const char *const json[] = {
        "{",           "}",
        "[",           "]",
        ":",           ",",
        "\"a\"",       "\"a\":",
        "{\"a\":1}\n", "{\"a\":\"",
        "\\n",         "\\",
        "\\u0041",     "\\ud83d\\ude00",
        "\n",          "\r\n",
        " ",           "1.5",
        "null",        "\"b\":{\"a\":2},",
        "\"",          "{\"b\":{\"a\":[1,\"x\"]},\"a\":\"longer text than one step takes\"}\n",
        "true"};
    for (size_t i = 0; i < parts; i++) {
        const char *part = format == READ_JSONL ? json[rng_next(rng) % (sizeof json / sizeof *json)]
                                                : csv[rng_next(rng) % (sizeof csv / sizeof *csv)];
        buf_add(out, part, strlen(part));
    }
}

static char *show_with(const struct selection *s, parser_fn next, const uint8_t *data, size_t len)
{
    struct parser *p = parser_new();
    struct record r;
    struct buf out = {0};
    enum parsed kind;
    CHECK(parser_begin(p, s, data, len) == TAMIS_OK);
    p->next = next;
    while ((kind = parser_next(p, &r)) != PARSED_END) {
        buf_say(&out, "%d %zu %zu %zu %s ", (int)kind, (size_t)(r.data - data), r.len, r.end_len,
                kind == PARSED_BAD ? r.complaint : "");
        for (size_t i = 0; kind == PARSED_RECORD && i < s->n; i++) {
            buf_say(&out, "%d:", (int)r.values[i].state);
            buf_add(&out, r.values[i].data, r.values[i].len);
        }
    }
    buf_add(&out, "", 1);
    parser_free(p);
    return out.data;
}

TEST(vector_and_scalar_parsers_agree)
{
    uint64_t rng = harness_seed();
    for (int round = 0; round < HARNESS_TIMES(20000, 200000); round++) {
        enum read_format format = (enum read_format)(READ_CSV + round % 3);
        struct dialect dialect = {.format = format,
                                  .record_max = round % 2 ? 40 : 0,
                                  .quoted_max = round % 5 ? 0 : 8,
                                  .in_lines = round % 4 == 0};
        struct selection *s = format == READ_JSONL
                                  ? select_words(&dialect, "a b b.a b.a.1", NULL, 0)
                                  : select_words(&dialect, "b a", "a,b,c", 5);
        struct buf text = {0};
        random_text(&text, format, &rng, rng_next(&rng) % 60);
        uint8_t *exact = malloc(text.len ? text.len : 1);
        if (text.len)
            memcpy(exact, text.data, text.len);
        bool json = format == READ_JSONL;
        char *one =
            show_with(s, json ? json_parser(true) : csv_parser(&dialect, true), exact, text.len);
        char *two =
            show_with(s, json ? json_parser(false) : csv_parser(&dialect, false), exact, text.len);
        CHECK_MSG(strcmp(one, two) == 0, "of <%s>: <%s> and <%s>", text.data, one, two);
        free(one);
        free(two);
        free(exact);
        buf_free(&text);
        selection_free(s);
    }
}

/* ---- for Python ------------------------------------------------------------------------------ */

/* One line a record: for each value P, E or M and its bytes in hex, elements of lists with + between,
   and U first if it is unfit; or "bad". The first line says the format. */
static int dump(int argc, char **argv)
{
    struct input_options options = {.segment = strtoull(argv[1], NULL, 10)};
    options.dialect.pattern = getenv("DUMP_PATTERN");
    options.dialect.records = getenv("DUMP_RECORDS");
    options.dialect.time = getenv("DUMP_TIME");
    options.dialect.zone = getenv("DUMP_ZONE");
    struct input *input;
    struct selection *s;
    tamis_reason reason;
    int format = READ_AUTO;
    while (format < READ_FORMATS && strcmp(argv[0], read_format_name(format)) != 0)
        format++;
    options.dialect.format = (enum read_format)format;
    if (format == READ_FORMATS || input_open(&input, argv[2], &options, &reason) != TAMIS_OK ||
        selection_new(&s, &input->dialect, (const char *const *)(argv + 3), (size_t)argc - 3,
                      input->header, input->header_len, &reason) != TAMIS_OK)
        return fprintf(stderr, "%s\n", reason.text), 2;
    struct parser *p = parser_new();
    struct input_text text = {0};
    struct input_segment segment;
    bool more;
    tamis_error error;
    puts(read_format_name(input->dialect.format));
    while ((error = input_next(input, &segment, &text, &more, &reason)) == TAMIS_OK && more) {
        struct record r;
        enum parsed kind;
        parser_begin(p, s, text.data, text.len);
        parser_context(p, &text);
        while ((kind = parser_next(p, &r)) != PARSED_END) {
            if (kind == PARSED_RECORD && r.unfit)
                printf("U ");
            for (size_t i = 0; kind == PARSED_RECORD && i < s->n; i++) {
                for (const struct read_value *v = &r.values[i]; v; v = v->next) {
                    printf("%s%c", v == &r.values[i] ? "" : "+", "MEP"[v->state]);
                    for (size_t j = 0; j < v->len; j++)
                        printf("%02x", v->data[j]);
                }
                putchar(' ');
            }
            puts(kind == PARSED_BAD ? "bad" : "");
        }
        input_segment_free(&segment);
    }
    parser_free(p);
    selection_free(s);
    input_text_free(&text);
    input_close(input);
    return error == TAMIS_OK ? 0 : (fprintf(stderr, "%s\n", reason.text), 1);
}

/* One line a value: the record, the name, its bytes in hex. */
static bool show_field(void *context, uint64_t record, const char *name,
                       const struct read_value *value)
{
    (void)context;
    printf("%llu %s ", (unsigned long long)record, name);
    for (; value; value = value->next) {
        for (size_t j = 0; j < value->len; j++)
            printf("%02x", value->data[j]);
        putchar(value->next ? '+' : '\n');
    }
    return true;
}

static int fields(const char *path)
{
    struct input_options options = {.dialect.pattern = getenv("DUMP_PATTERN")};
    struct input *input;
    struct input_text text = {0};
    struct input_segment segment;
    tamis_reason reason = {0};
    bool more;
    tamis_error error = input_open(&input, path, &options, &reason);
    if (error == TAMIS_OK)
        error = input_next(input, &segment, &text, &more, &reason);
    if (error == TAMIS_OK && more)
        error = reader_fields(input, &text, show_field, NULL, &reason);
    if (error != TAMIS_OK)
        return fprintf(stderr, "%s\n", reason.text), 1;
    input_segment_free(&segment);
    input_text_free(&text);
    input_close(input);
    return 0;
}

/* What the last time was changes nothing. */
TEST(times_one_after_the_other)
{
    static const char *const times[] = {"2024-05-01T10:00:00Z",
                                        "2024-05-01T23:59:59Z",
                                        "2024-05-01T23:59:60Z",
                                        "2024-05-01T24:00:00Z",
                                        "2024-05-01T10:60:00Z",
                                        "2024-05-01T1:00:00Z",
                                        "2024-05-01T10:00:00.5Z",
                                        "2024-05-01T10:00:00,25Z",
                                        "2024-05-01T10:00:00.50Z",
                                        "2024-05-01T10:00:00.Z",
                                        "2024-05-01T10:00:00",
                                        "2024-05-01T10:00:00.125",
                                        "2024-05-01T10:00:00+02:00",
                                        "2024-05-01T10:00:00.5-02:00",
                                        "2024-05-01T10:00:00 UTC",
                                        "2024-05-01T10:00Z",
                                        "2024-05-01 10:00:00Z",
                                        "2024/05/01T10:00:00Z",
                                        "2024-05-01",
                                        "2024-05-02T00:00:00Z",
                                        "2024-10-27T02:30:00",
                                        "2024-10-27T03:30:00",
                                        "0000-05-01T10:00:00Z",
                                        "0001-01-01T00:00:00+02:00",
                                        "9999-12-31T23:59:59-02:00",
                                        "01/May/2024:10:00:00 +0000",
                                        "01/May/2024:22:00:01 -0700",
                                        "01/May/2024:10:00:00",
                                        "01/May/2024:10:0a:00 +0000",
                                        "May  1 10:00:00",
                                        "1714557600.25",
                                        "x",
                                        ""};
    const size_t n = sizeof times / sizeof *times;
    char alone[TIME_NORMAL_MAX], after[TIME_NORMAL_MAX];
    for (size_t i = 0; i < n * n; i++) {
        const uint8_t *first = (const uint8_t *)times[i / n], *text = (const uint8_t *)times[i % n];
        size_t len = strlen(times[i % n]);
        struct time_context fresh = {.zone = "Europe/Paris", .reference = 1714600000}, used = fresh;
        struct stamp x = {0}, y = {0}, z;
        time_read(&used, first, strlen(times[i / n]), &z);
        used.reference = fresh.reference = 1700000000;
        bool good = time_read(&fresh, text, len, &x);
        CHECK(time_read(&used, text, len, &y) == good);
        CHECK(!good || (x.seconds == y.seconds && x.nanoseconds == y.nanoseconds));
        fresh = (struct time_context){.zone = fresh.zone, .reference = fresh.reference};
        size_t alone_len = time_normal(&fresh, text, len, alone);
        CHECK(time_normal(&used, text, len, after) == alone_len &&
              memcmp(alone, after, alone_len) == 0);
    }
}

/* Keys may come in any order, which changes from record to record. */
TEST(json_keys_in_any_order)
{
    static const char *const member[] = {"\"a\":1", "\"bb\":{\"a\":2,\"c\":3}",
                                         "\"c\":[{\"c\":4},{\"a\":5,\"c\":6}]", "\"d\":7",
                                         "\"x\":{\"a\":8}"};
    static const unsigned fact = 120;
    struct buf text = {0}, expected = {0};
    for (unsigned i = 0; i < 4 * fact; i++) {
        unsigned order[5] = {0, 1, 2, 3, 4}, rest = i * 37 % fact;
        buf_say(&text, "%s", "{");
        for (unsigned left = 5; left > 0; left--) {
            unsigned at = rest % left, taken = order[at];
            rest /= left;
            for (unsigned j = at; j + 1 < left; j++)
                order[j] = order[j + 1];
            buf_say(&text, "%s", left < 5 ? "," : "");
            buf_say(&text, "%s", member[taken]);
        }
        buf_say(&text, "%s", "}\n");
        buf_say(&expected, "%s", "1|3|2|7|5\n");
    }
    same(__FILE__, __LINE__, READ_JSONL, "a bb.c bb.a d c.a", NULL, text.data, text.len,
         expected.data);
    buf_free(&text);
    buf_free(&expected);
}

/* One line each: seconds and nanoseconds and the normal form, or "-". */
static int times(const char *zone, long long reference)
{
    struct time_context context = {.zone = *zone ? zone : NULL, .reference = reference};
    char line[256], normal[TIME_NORMAL_MAX];
    while (fgets(line, sizeof line, stdin)) {
        struct stamp stamp;
        size_t len = strcspn(line, "\n");
        if (!time_read(&context, (const uint8_t *)line, len, &stamp))
            puts("-");
        else
            printf("%lld %u %.*s\n", (long long)stamp.seconds, stamp.nanoseconds,
                   (int)time_normal(&context, (const uint8_t *)line, len, normal), normal);
    }
    return 0;
}

struct harness harness;

int main(int argc, char **argv)
{
    if (argc > 5 && strcmp(argv[1], "--dump") == 0)
        return dump(argc - 2, argv + 2);
    if (argc == 3 && strcmp(argv[1], "--fields") == 0)
        return fields(argv[2]);
    if (argc == 4 && strcmp(argv[1], "--times") == 0)
        return times(argv[2], atoll(argv[3]));
    return harness_main(argc, argv);
}
