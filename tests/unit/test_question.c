/* Questions: every form of a word, what it holds for, and what is said of what is not understood. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "logs/question_check.h"

static struct field known[] = {
    {"user", TAMIS_BYTES, 0, false}, {"status", TAMIS_INT, 1, false},
    {"ratio", TAMIS_DEC, 2, false},  {"t", TAMIS_TIME, 3, false},
    {"ip", TAMIS_IP, 4, false},      {"path", TAMIS_PATH, 5, false},
    {"msg", TAMIS_WORDS, 6, false},  {"host", TAMIS_FOLD, 7, false},
    {"x=y", TAMIS_BYTES, 8, false},  {"a.b", TAMIS_BYTES, NOT_INDEXED, false},
    {"user^2", TAMIS_INT, 9, false},
};
static const struct fields fields = {.field = known, .n = sizeof known / sizeof *known};
static struct time_context utc;

/* The words up to NULL as a question. */
static bool read_words(struct question *q, const char *const *words)
{
    char *copies[16];
    size_t n = 0;
    static char room[16][400];
    for (; words[n]; n++)
        copies[n] = strcpy(room[n], words[n]);
    utc = (struct time_context){.reference = 1700000000};
    return question_read(q, copies, n, &fields, &utc);
}

#define MISSING ((const char *)-1)

/* Whether the question holds where each of the columns has this one value: "a;b" is a list. */
static bool holds_for(const struct question *q, const char *text)
{
    struct check k;
    struct read_value values[16], elements[16];
    char copy[400];
    size_t n = 0;
    CHECK(check_start(&k, q));
    k.time = utc;
    k.period = NO_COLUMN;
    if (text == MISSING) {
        elements[n++] = (struct read_value){.state = VALUE_MISSING};
    } else {
        strcpy(copy, text);
        for (char *at = copy, *next; at; at = next) {
            next = strchr(at, ';');
            if (next)
                *next++ = 0;
            elements[n++] = (struct read_value){(const uint8_t *)at, strlen(at),
                                                *at ? VALUE_PRESENT : VALUE_EMPTY, NULL};
        }
        for (size_t i = 0; i + 1 < n; i++)
            elements[i].next = &elements[i + 1];
    }
    for (size_t i = 0; i < q->n_columns; i++)
        values[i] = elements[0];
    bool holds = check_holds(&k, values);
    CHECK(!k.gave_up);
    check_end(&k);
    return holds;
}

/* YES and NO are lists of values with bars between them; ! stands for missing. */
static void expect(const char *const *words, const char *yes, const char *no, int line)
{
    struct question q;
    if (!read_words(&q, words)) {
        CHECK_MSG(false, "line %d: %s", line, q.why);
        question_free(&q);
        return;
    }
    for (int side = 0; side < 2; side++) {
        char copy[800];
        strcpy(copy, side ? no : yes);
        for (char *at = copy, *next; at; at = next) {
            next = strchr(at, '|');
            if (next)
                *next++ = 0;
            if (holds_for(&q, strcmp(at, "!") == 0 ? MISSING : at) != (side == 0)) {
                char text[sizeof q.why + 100];
                snprintf(text, sizeof text, "%s %s '%s'", words[0],
                         side ? "holds for" : "does not hold for", at);
                CHECK_MSG(false, "line %d: %s", line, text);
            }
        }
    }
    question_free(&q);
}

#define EXPECT(yes, no, ...) expect((const char *const[]){__VA_ARGS__, NULL}, yes, no, __LINE__)

static void expect_wrong(const char *word, const char *part, int line)
{
    struct question q;
    char text[sizeof q.why + 100];
    const char *const words[] = {word, NULL};
    if (read_words(&q, words)) {
        snprintf(text, sizeof text, "'%s' is understood", word);
        CHECK_MSG(false, "line %d: %s", line, text);
    } else if (!strstr(q.why, part)) {
        snprintf(text, sizeof text, "'%s': %s", word, q.why);
        CHECK_MSG(false, "line %d: %s", line, text);
    }
    question_free(&q);
}

#define REFUSE(word, part) expect_wrong(word, part, __LINE__)

TEST(equal_and_any_of_the_values)
{
    EXPECT("ann", "bob|Ann|annn||!", "user=ann");
    EXPECT("ann|bob", "cho|!", "user=ann", "user=bob");
    EXPECT("200|0200|+200| 200 ", "201|two|!", "status=200");
    EXPECT("1.5|1.50|15e-1", "1.51|x", "ratio=1.5");
    EXPECT("10.1.2.3|::ffff:10.1.2.3|::FFFF:a01:203", "10.1.2.30|!", "ip=10.1.2.3");
    EXPECT("2001:db8::1|2001:0db8:0:0::1", "2001:db8::2", "ip=2001:DB8::1");
    EXPECT("Ann|ANN|ann", "anna|!", "host=aNN");
    EXPECT("z", "y=z|!", "x=y=z");
    EXPECT("q", "!", "a.b=q");
    EXPECT("4", "5", "user^2=4", "user^2<5");
}

TEST(empty_and_missing)
{
    EXPECT("", "!| |x", "user=");
    EXPECT("!", "|x", "user!");
    EXPECT("!|x", "|y", "user!", "user=x");
    EXPECT("!|x|", "ann", "user!=ann");
    EXPECT("!|x", "", "user!=");
}

TEST(different_attributes_must_all_match)
{
    EXPECT("5", "6", "user=5", "status=5");
    EXPECT("5", "6|7", "user=5", "user=6", "status=5");
}

TEST(not_is_the_complement)
{
    EXPECT("!|x|", "a|b", "user!=a", "user!=b");
    EXPECT("!|11.0.0.1|x|", "10.1.2.3", "ip!=10.0.0.0/8");
    EXPECT("!|499|600|x", "500|599", "status!=500..599");
    EXPECT("!|..", "a..b", "user!=a..b");
}

TEST(comparisons)
{
    EXPECT("501|999999999999999999999", "500|499|x||!|-1", "status>500");
    EXPECT("500|501", "499|x", "status>=500");
    EXPECT("499|-3", "500|x|!", "status<500");
    EXPECT("500|499", "501|!", "status<=500");
    EXPECT("500|501", "499|502", "status>=500", "status<502");
    EXPECT("0.05|1e-9", "0.1|0.10", "ratio<0.1");
    EXPECT("-2", "-1|1", "ratio<-1");
}

TEST(ranges)
{
    EXPECT("500|599|0550", "499|600|x|!", "status=500..599");
    EXPECT("500|1000000", "499", "status=500..");
    EXPECT("-7|500", "501", "status=..500");
    EXPECT("7|500|510", "499|8", "status=7", "status=500..");
    EXPECT("0.5|1", "1.01", "ratio=0.5..1");
    EXPECT("a..b", "a|b", "user=a..b"); /* no order, no range */
    EXPECT("..", "a", "user=..");
    EXPECT("../x|1..b|a..5|...", "x|2", "user=../x", "user=1..b", "user=a..5", "user=...");
    EXPECT("500..", "501", "user==500..");
    /* many that overlap, in any order, with open ends and ends that are outside */
    EXPECT("1|5|9|20|29|30|40|45|70|100", "0|10|19|31|39|46|69", "status=40..45", "status=1..9",
           "status=22..23", "status=20..30", "status=21..22", "status=70..", "status=90..95",
           "status=2..3");
    EXPECT("-9|7|8", "9|10", "status=..7", "status=..3", "status=8");
    EXPECT("2024-05-01T12:00:00Z|2024-05-03T23:59:59Z",
           "2024-05-02|2024-05-04|2024-04-30T23:59:59Z", "t=2024-05-03", "t=2024-05-01",
           "t=2024-05-01T10");
}

TEST(times)
{
    EXPECT("2024-05-01T10:00:00Z|2024-05-01 12:00:00+02:00|1714557600",
           "2024-05-01T10:00:01Z|never|!", "t=2024-05-01T10:00:00Z");
    /* a day, an hour, a minute mean all of it */
    EXPECT("2024-05-01|2024-05-01T23:59:59.999Z", "2024-04-30T23:59:59Z|2024-05-02|!",
           "t=2024-05-01");
    EXPECT("2024-05-01T10:59:59Z", "2024-05-01T11:00:00Z|2024-05-01T09:59:59Z", "t=2024-05-01T10");
    EXPECT("2024-05-01T10:30:59Z", "2024-05-01T10:31:00Z", "t=2024-05-01T10:30");
    EXPECT("2024-05-01|2024-05-02T23:00:00Z", "2024-05-03|2024-04-30", "t=2024-05-01..2024-05-02");
    EXPECT("2024-05-02|2024-12-31", "2024-05-01T23:59:59.9Z", "t>2024-05-01");
    EXPECT("2024-05-01T00:00:00Z", "2024-04-30T23:59:59Z", "t>=2024-05-01");
    EXPECT("2024-05-01T23:59:59Z", "2024-05-02", "t<=2024-05-01");
    EXPECT("2024-04-30T23:59:59Z", "2024-05-01", "t<2024-05-01");
    EXPECT("2024-02-29T12:00:00Z", "2024-03-01", "t=2024-02-29");
    EXPECT("2023-12-31T23:59:59Z", "2024-01-01", "t=2023-12-31");
    EXPECT("2024-05-01", "2024-05-01T00:00:01Z", "t==2024-05-01"); /* the moment */
    EXPECT("2024-05-01T23:59:59Z", "2024-05-02", "t=2024/05/01", "t<=2024/05/01");
    EXPECT("2024-05-01T10:30:59Z", "2024-05-01T10:31:00Z", "t=2024/05/01 10:30");
    EXPECT("20240501|1970-08-23T06:21:41Z", "2024-05-01", "t==20240501");
    EXPECT("1714557600|2024-05-01T10:00:00Z", "2024-05-01T10:00:01Z", "t=1714557600",
           "t>=1714557600000", "t>20241301", "t>18");
    EXPECT("2024-05-01T08:30:00Z", "2024-05-01T10:30:00Z", "t=2024-05-01T10+02:00");
}

TEST(networks)
{
    EXPECT("10.1.0.0|10.1.127.255|::ffff:10.1.2.3", "10.1.128.0|10.2.0.0|x|!", "ip=10.1.0.0/17");
    EXPECT("10.1.2.3", "10.1.2.2", "ip=10.1.2.3/32");
    EXPECT("10.1.2.3|0.0.0.0", "::1|x", "ip=0.0.0.0/0");
    EXPECT("2001:db8:ffff::1", "2001:db9::", "ip=2001:db8::/32");
    EXPECT("::1|2001:db8::1", "10.1.2.3|::ffff:10.1.2.3", "ip=::/0");
    EXPECT("10.1.2.3|192.168.0.9|1.2.3.4", "192.168.1.1", "ip=10.0.0.0/8", "ip=192.168.0.0/24",
           "ip=1.2.3.4");
    EXPECT("10.1.0.0/16", "10.1.0.1", "user==10.1.0.0/16"); /* no address, no network */
    EXPECT("10.1.0.0/16", "10.1.0.1", "ip==10.1.0.0/16");
    EXPECT("and/16|/16|10.1.0.0/x", "10.1.0.1", "user=and/16", "user=/16", "user=10.1.0.0/x");
}

TEST(prefixes)
{
    EXPECT("/admin/|/admin/x", "/admin|/Admin/|x/admin/|!|", "path^=/admin/");
    EXPECT("annabel|ann|bob", "an|!", "user^=ann", "user=bob");
    EXPECT("WWW.example", "ww", "host^=www");
    EXPECT("10.1.2.3", "110.1.", "ip^=10.1.");
}

TEST(words)
{
    EXPECT("Connection refused|(connection  REFUSED)|x: connection,refused!",
           "connections refused|refused connection|connection was refused||!",
           "msg~connection refused");
    EXPECT("two words", "two  three words", "msg~\"two words\"");
    EXPECT("a b", "ab", "user~b");
    EXPECT("Error 500 x|error 500", "error 5000|error", "msg~error", "msg~500");
    EXPECT("from 10.1.2.3 port 22|10.1.2.3", "110.1.2.3|10.1.2.33|10.1.2.3.4", "msg~10.1.2.3");
    EXPECT("na\xc3\xafve", "na ve", "msg~NA\xc3\xafVE");
}

TEST(regular_expressions)
{
    EXPECT("/a/1|/a/22x", "/a/|/b/1||!", "path~/^\\/a\\/[0-9]+/");
    EXPECT("FOO", "bar", "msg~/fo+/i");
    EXPECT("foo", "FOO", "msg~/fo+/");
    EXPECT("", "x|!", "user~/^$/");
    EXPECT("na\xc3\xafve|na\xffve naxve", "na\xffve", "msg~/na.ve/");
    EXPECT("ab", "a|b", "user~/a/", "user~/b/");
}

TEST(bare_words_are_asked_of_the_line)
{
    EXPECT("a Connection refused", "refused", "connection");
    EXPECT("user=ann", "user x ann", "\"user=ann\"", "\"user\"");
    EXPECT("the user", "users", "\"user\"");
    EXPECT("GET http://x/y?a=b HTTP", "GET x", "http://x/y?a=b");
    struct question q;
    CHECK(read_words(&q, (const char *const[]){"refused", NULL}));
    CHECK(q.n_columns == 1 && strcmp(q.name[0], "line") == 0);
    question_free(&q);
}

TEST(the_line_is_always_an_attribute)
{
    EXPECT("1,ann", "1,Ann|1,ann,2|ann", "line=1,ann");
    EXPECT("1,ann|x", "a b", "line!=a b");
    EXPECT("1,ann|1,bob", "11,ann", "line^=1,");
    EXPECT("1,ann", "1,bob", "line~ANN");
    EXPECT("!", "|x", "line!");
    REFUSE("line>5", "no order");
    REFUSE("line", "\"line\"");
}

TEST(text_may_look_like_a_pattern)
{
    EXPECT("connection refuse d", "connection refused", "\"connection*\"", "msg~\"refuse[d]\"");
    EXPECT("sshd[123]: Failed|x sshd 123 failed", "sshd 123", "sshd[123] failed", "\"sshd[123]\"");
    EXPECT("GET /usr/bin HTTP", "usr", "/usr/bin", "/usr");
    EXPECT("well, a!b c|a b", "b a", "a!b");
    EXPECT("C:\\Windows host$ what?", "C: Windows", "C:\\Windows", "host$", "what?");
    EXPECT("~x", "x", "user=~x");
    EXPECT("~/bin/", "/bin/", "user==~/bin/");
    EXPECT("a^b", "ab", "user==a^b");
    EXPECT("x@y z", "x y", "x@y");
}

TEST(of_lists_any_element_counts)
{
    EXPECT("a;b|b|c;b", "a;c|!", "user=b");
    EXPECT("1;20", "5;7", "status<5", "status>10");
    EXPECT("a;c", "a;b", "user!=b");
    EXPECT("x;two words", "two;words", "msg~two words");
}

/* Writes a list; the word that names it. */
static const char *list_word(const char *before, const void *text, size_t len)
{
    static char word[40];
    FILE *f = fopen("list", "w");
    CHECK(f && fwrite(text, 1, len, f) == len && fclose(f) == 0);
    snprintf(word, sizeof word, "%s@list", before);
    return word;
}

#define LIST(before, text) list_word(before, text, sizeof text - 1)

TEST(lists_from_files)
{
    EXPECT("10.1.2.3|10.2.9.9|::1|not an address|9.9.9.9", "10.1.2.4|!|",
           LIST("ip=", "10.1.2.3\r\n\n10.2.0.0/16\nnot an address\n::1"), "ip=9.9.9.9");
    EXPECT("ann|!", "10.1.2.3|bob", LIST("user!=", "10.1.2.3\nbob\n"));
    REFUSE("ip=@nosuch-file", "No such file");
    REFUSE("ip=@/dev/null", "an empty list");
    REFUSE("ip=@/", "Is a directory");
    EXPECT("@x", "x", "user==@x");
}

TEST(each_line_of_a_list_is_read_like_a_value)
{
    EXPECT("2024-05-01T10:00:00Z|2024-05-02T23:59:59.5Z|1714780801",
           "2024-04-30T23:59:59Z|2024-05-03|2024-05-04T00:00:02Z",
           LIST("t=", "2024-05-02\n2024-05-01\n2024-05-04T00:00:01Z\n"));
    EXPECT("7|404|500|0500|1000", "8|403|499|x", LIST("status=", "404\n500..\n7\n"));
    EXPECT("8|x|!", "7|500|599", LIST("status!=", "500..599\n7\n"));
    EXPECT("0.5|1|7", "1.5", LIST("ratio=", "7.0\n0.5..1\n"));
    EXPECT("ANN", "bob", LIST("host=", "ann\n"));
    EXPECT("a*b|500..|@x|=|", "501|x|!", LIST("user=", "=a*b\n=500..\n=@x\n==\n=\n"));
    REFUSE(LIST("user=", "ann\nbob\na*\n"), "list:3: * has no meaning here: a*: ");
    REFUSE(LIST("user=", "ann\n10.0.0.0/8\n"), "list:2: user is text, which has no networks: ");
    REFUSE(LIST("user=", "\n\n500..\n"), "list:3: user is text, which has no ranges: ");
    REFUSE(LIST("status=", "5\n500..x\n"), "list:2: not a whole number: 'x' in 500..x: ");
    REFUSE(LIST("ip=", "10.0.0.0/33\n"), "list:1: not a network: 10.0.0.0/33: ");
    REFUSE(LIST("user=", "ann\n@more\n"), "list:2: a list in a list: @more: write =@more ");
    REFUSE(LIST("user=", "a\0n\0n\0\n"), "list:1: not text: ");
}

TEST(a_byte_order_mark_is_no_part_of_a_list)
{
    EXPECT("10.1.2.3|10.2.9.9", "10.1.2.4",
           LIST("ip=", "\xef\xbb\xbf"
                       "10.1.2.3\n10.2.0.0/16\n"));
    EXPECT("ann|bob",
           "\xef\xbb\xbf"
           "ann",
           LIST("user=", "\xef\xbb\xbf"
                         "ann\r\nbob\r\n"));
    EXPECT("\xef\xbb\xbf"
           "bob|ann",
           "bob",
           LIST("user=", "ann\n\xef\xbb\xbf"
                         "bob\n"));
    REFUSE(LIST("user=", "\xef\xbb\xbf\n"), "an empty list");
}

TEST(literally)
{
    EXPECT("a*b", "ab", "user==a*b");
    EXPECT("=x", "x", "user===x");
    EXPECT("", "=", "user==");
    EXPECT("500..", "501", "status==500..");
    EXPECT("abc", "12", "status==abc");
}

TEST(a_value_that_is_none_of_its_type_stands_for_its_text)
{
    static const char *const words[] = {"status=5xx", "t=2024-13-01", "ip=localhost", "ratio=x"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct question q;
        CHECK(read_words(&q, (const char *const[]){words[i], NULL}));
        CHECK(q.clause[0].doubt && strcmp(q.clause[0].doubt, words[i]) == 0);
        CHECK(holds_for(&q, strchr(words[i], '=') + 1));
        question_free(&q);
    }
}

TEST(what_is_not_understood_says_what_to_write)
{
    REFUSE("usr=ann", "'usr'");
    REFUSE("usr=ann", "user, status");
    REFUSE("usr!", "'usr'");
    REFUSE("usr>5", "'usr'");
    REFUSE("user", "\"user\"");
    REFUSE("status", "status=VALUE");
    REFUSE("user>=5", "user:int");
    REFUSE("user=500..",
           "user is text, which has no ranges: user=500..: write user==500.. for the text");
    REFUSE("user=..1.5", "user:int, user:dec or user:time");
    REFUSE("path=-7..5", "path is path, which has no ranges");
    REFUSE("user=2024-05-01..2024-05-02", "user==2024-05-01..2024-05-02");
    REFUSE("user!=500..599", "write user!==500..599 for the text");
    REFUSE("user=10.1.0.0/16",
           "user is text, which has no networks: user=10.1.0.0/16: write user==10.1.0.0/16");
    REFUSE("host=2001:db8::/32", "host:ip");
    REFUSE("user!=10.1.0.0/16", "user!==10.1.0.0/16");
    REFUSE("ip<10.0.0.1", "no order");
    REFUSE("user=a*", "user^=PREFIX");
    REFUSE("err*", "line~/regex/");
    REFUSE("status=500..abc", "whole number");
    REFUSE("status=..", "status=1..");
    REFUSE("status>", "whole number");
    REFUSE("t>yesterdayish", "2024-05-31");
    REFUSE("ip=10.1.0.0/33", "10.1.0.0/16");
    REFUSE("ip=host/8", "ip==host/8");
    REFUSE("path~/adm", "path~/regex/");
    REFUSE("path~/(/", "regular expression");
    REFUSE("msg~", "no word");
    REFUSE("msg~\"--\"", "no word");
    REFUSE("---", "no word");
    REFUSE("path^=", "path^=TEXT");
    /* the habits of other tools */
    REFUSE(
        "!word",
        "!word: write 'line~/(?s)^(?!.*word)/' for those without it, or '\"!word\"' for the text");
    REFUSE("line!~x", "line!~x: write 'line~/(?s)^(?!.*x)/' for those without it");
    REFUSE("user!~/an+/", "write 'user~/(?s)^(?!.*an+)/'");
    REFUSE("usr!~x", "! stands before = ");
    REFUSE("user=~/an+/", "write user~/an+/, or user==~/an+/ for the text");
    REFUSE("user^an", "write user^=an");
    REFUSE("/refus/", "write line~/refus/, or '\"/refus/\"' for the text");
    REFUSE("/REFUS/i", "line~/REFUS/i");
    EXPECT("h sshd[123]: x|h sshd 123", "h sshd[12]: x", "sshd[123]", "sshd[123]:", "[123]:");
    EXPECT("[error] [pool-1-a] x", "[warn] [pool-1-a] y", "[error]", "[pool-1-a]");
    REFUSE("[0-9]+", "words are not a pattern");
    REFUSE("[^a]", "words are not a pattern");
    REFUSE("refuse[d]", "write 'line~/refuse[d]/', or '\"refuse[d]\"' for the text");
    REFUSE("^refused", "line~/^refused/");
    REFUSE("error|refused", "line~/error|refused/");
    REFUSE("msg~refuse[d]", "write 'msg~/refuse[d]/', or 'msg~\"refuse[d]\"' for the text");
    REFUSE("msg~hel*", "write 'msg~/regex/', or 'msg~\"hel*\"' for the text");
    REFUSE("msg~two wor*", "msg~/regex/");
    REFUSE("line~@list", "write line=@list, or 'line~\"@list\"' for the text");
    REFUSE("@list", "'\"@list\"'");
    REFUSE("path^=/a*", "write path^=/a, or 'path~/regex/'");
    REFUSE("ip^=@l", "write ip=@l, or 'ip~/^@l/' for the text");
    REFUSE("ip^=10.1.0.0/16", "ip=10.1.0.0/16");
    REFUSE("t=20240501", "not a time: t=20240501: write 2024-05-01, or t==20240501 for the number");
    REFUSE("t>202405", "not a time: '202405'");
    REFUSE("t=20240501..", "not a time: '20240501'");
    REFUSE("t>=20240501100000", "2024-05-31T10:00");
    REFUSE("", "attr=VALUE");
}

TEST(periods)
{
    struct question q;
    CHECK(read_words(&q, (const char *const[]){"user=ann", NULL}));
    CHECK(question_period(&q, "2024-05-01T10:00", "2024-05-01T11"));
    CHECK(question_period_field(&q, &known[3]) && question_period_field(&q, &known[3]));
    CHECK(q.n_periods == 1 && q.n_columns == 2 && q.n == 2);
    struct check k;
    CHECK(check_start(&k, &q));
    static const struct {
        const char *time;
        bool holds;
    } cases[] = {{"2024-05-01T09:59:59Z", false},
                 {"2024-05-01T10:00:00Z", true},
                 {"2024-05-01T11:59:59Z", true},
                 {"2024-05-01T12:00:00Z", false},
                 {"never", false}};
    struct read_value values[2] = {{(const uint8_t *)"ann", 3, VALUE_PRESENT, NULL}};
    k.period = q.period[0];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        values[1] = (struct read_value){(const uint8_t *)cases[i].time, strlen(cases[i].time),
                                        VALUE_PRESENT, NULL};
        CHECK(check_holds(&k, values) == cases[i].holds);
    }
    CHECK_MSG(k.timeless == 1, "nobody knows when never is");
    values[1] = (struct read_value){.state = VALUE_MISSING};
    CHECK(!check_holds(&k, values) && k.timeless == 2);
    k.period = NO_COLUMN; /* a format without times */
    CHECK(!check_holds(&k, values) && k.timeless == 3);
    check_end(&k);
    question_free(&q);
    CHECK(read_words(&q, (const char *const[]){NULL}));
    CHECK(question_period(&q, "2h", NULL));
    CHECK(!question_period(&q, "soon", NULL) && strstr(q.why, "soon"));
    CHECK(!question_period(&q, "20240501", NULL) && strstr(q.why, "2024-05-31"));
    question_free(&q);
}

TEST(a_regular_expression_that_takes_too_long_is_no_answer)
{
    struct question q;
    char text[64];
    struct check k;
    CHECK(read_words(&q, (const char *const[]){"user~/^(a+)+$/", NULL}));
    CHECK(check_start(&k, &q));
    memset(text, 'a', sizeof text);
    text[60] = '!';
    const struct read_value value = {(const uint8_t *)text, 61, VALUE_PRESENT, NULL};
    CHECK(!check_holds(&k, &value));
    CHECK(k.gave_up && strcmp(k.gave_up, "user~/^(a+)+$/") == 0);
    check_end(&k);
    question_free(&q);
}

HARNESS_MAIN
