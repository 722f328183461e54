/* Questions as JSON: written and parsed. See fleet_question.h. */
#define _GNU_SOURCE
#include "fleet_question.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "read/reader_parse.h"
#include "ui/out.h"

#define QUESTION_MOST ((size_t)256 << 20)

/* ---- writing --------------------------------------------------------------------------------- */

/* A member of an object, if there is a text, or an element of an array. */
static bool put_member(const char *key, const char *text)
{
    size_t left = text ? strlen(text) : 0, n;
    uint32_t c;
    for (const uint8_t *s = (const uint8_t *)text; left; s += n, left -= n)
        if ((n = utf8_decode(s, left, &c)) == 0)
            return refuse("not UTF-8: %s: it cannot be sent to other hosts", text);
    if (text)
        json_text(key, text);
    return true;
}

/* Where "=@FILE" starts in a word; NULL: it names no file. */
static char *list_of(char *word)
{
    char *at = strstr(word, "=@");
    return at && at > word && at[-1] != '=' && at[-1] != '^' && at[2] ? at : NULL;
}

static bool put_list(const char *path)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    FILE *file = fopen(path, "r");
    if (!file)
        return refuse("%s: %s: give a file with a value on each line", strerror(errno), path);
    bool good = put_member(NULL, "");
    while (good && (len = getline(&line, &room, file)) >= 0) {
        while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            line[--len] = 0;
        good = len == 0 || put_member(NULL, line);
    }
    fclose(file);
    free(line);
    return good;
}

static bool put_words(const struct travelling *q)
{
    size_t lists = 0;
    bool good = true;
    json_open("words", '[');
    for (size_t i = 0; good && i < q->n; i++) {
        char *list = list_of(q->words[i]), *word = NULL;
        if (list &&
            asprintf(&word, "%.*s=@%zu", (int)(list - q->words[i]), q->words[i], lists++) < 0)
            return no_memory("question");
        good = put_member(NULL, word ? word : q->words[i]);
        free(word);
    }
    json_close();
    json_open("lists", '[');
    for (size_t i = 0; good && i < q->n; i++) {
        const char *list = list_of(q->words[i]);
        good = !list || put_list(list + 2);
    }
    json_close();
    return good;
}

static bool put_known(const struct travelling *q)
{
    bool good = true;
    json_open("known", '[');
    for (size_t i = 0; good && i < q->n_known; i++)
        good = put_member(NULL, q->known[i].name);
    json_close();
    json_open("types", '[');
    for (size_t i = 0; i < q->n_known; i++)
        json_text(NULL, tamis_type_name(q->known[i].type));
    json_close();
    return good;
}

bool travelling_begin(const char *catalog, struct bytes *out)
{
    out->len = 0;
    put_into(out);
    put_text("{\"catalog\": ");
    bool good = put_member(NULL, catalog);
    put_text(", ");
    put_into(NULL);
    return good && (!out->failed || no_memory("question"));
}

bool travelling_write(const struct travelling *q, struct bytes *out)
{
    char limit[32];
    out->len = 0;
    snprintf(limit, sizeof limit, "%" PRIu64, q->limit);
    put_into(out);
    json_open(NULL, '{');
    json_count("tamis_question", 1);
    bool good = put_words(q) && put_member("since", q->since) && put_member("until", q->until) &&
                put_member("fields", q->fields) && put_member("count_by", q->count_by) &&
                put_member("count", q->count ? "true" : NULL) &&
                put_member("json", q->json ? "true" : NULL) &&
                put_member("file", q->file ? "true" : NULL) &&
                put_member("line", q->line ? "true" : NULL) &&
                put_member("tag", q->tag ? "true" : NULL) &&
                put_member("limit", q->limited ? limit : NULL) && put_known(q);
    json_close();
    put_into(NULL);
    return good && (!out->failed || no_memory("question"));
}

/* ---- reading --------------------------------------------------------------------------------- */

enum member {
    VERSION,
    CATALOG,
    WORDS,
    LISTS,
    SINCE,
    UNTIL,
    FIELDS,
    COUNT_BY,
    COUNTED,
    JSON,
    FILES,
    LINES,
    TAG,
    LIMIT,
    KNOWN,
    KINDS,
    MEMBERS
};
static const char *const member[MEMBERS] = {
    "tamis_question", "catalog", "words", "lists", "since", "until", "fields", "count_by",
    "count",          "json",    "file",  "line",  "tag",   "limit", "known",  "types"};

static bool not_a_question(const char *why)
{
    return refuse("not a question: %s: it comes from tamis find --fleet, of this version or an "
                  "older one",
                  why);
}

static void *adopt(struct travelling *q, void *memory)
{
    return owned_adopt(&q->own, memory) ? memory : NULL;
}

/* A copy of a value; NULL: it contains a zero byte, or no memory. */
static char *text_of(struct travelling *q, const struct read_value *v)
{
    return v->len && memchr(v->data, 0, v->len)
               ? NULL
               : adopt(q, strndup(v->len ? (const char *)v->data : "", v->len));
}

static bool take_text(struct travelling *q, const struct read_value *v, const char **out)
{
    if (v->state == VALUE_MISSING)
        return true;
    *out = v->next ? NULL : text_of(q, v);
    return *out != NULL;
}

static bool is_true(const struct read_value *v)
{
    return v->state == VALUE_PRESENT && v->len == 4 && memcmp(v->data, "true", 4) == 0;
}

/* Writes list `number` to an anonymous file; its path, or NULL. */
static char *open_list(struct travelling *q, const struct read_value *v, size_t number)
{
    size_t at = 0;
    char *path = NULL;
    int fd = memfd_create("tamis-list", 0);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    for (; v && v->state != VALUE_MISSING && at <= number + 1; v = v->next) {
        at += v->len == 0;
        if (v->len && at == number + 1 && file) {
            fwrite(v->data, 1, v->len, file);
            fputc('\n', file);
        }
    }
    bool good = file && at > number && fflush(file) == 0 &&
                asprintf(&path, "/proc/self/fd/%d", fd) >= 0 && adopt(q, path);
    if (!good && fd >= 0)
        close(fd);
    return good ? path : NULL; /* open until the process ends */
}

/* A word as find expects it: lists are named by file. */
static char *word_of(struct travelling *q, const struct read_value *v,
                     const struct read_value *lists)
{
    char *word = text_of(q, v), *list = word ? list_of(word) : NULL, *end, *whole = NULL;
    if (!list)
        return word;
    unsigned long number = strtoul(list + 2, &end, 10);
    char *path = *end == 0 && number < 64 ? open_list(q, lists, number) : NULL;
    if (!path || asprintf(&whole, "%.*s=@%s", (int)(list - word), word, path) < 0)
        return NULL;
    return adopt(q, whole);
}

static bool take_words(struct travelling *q, const struct read_value *values)
{
    size_t n = 0;
    for (const struct read_value *v = &values[WORDS]; v && v->state != VALUE_MISSING; v = v->next)
        n++;
    q->words = adopt(q, calloc(n + 1, sizeof *q->words));
    for (const struct read_value *v = &values[WORDS]; q->words && q->n < n; v = v->next)
        if (!(q->words[q->n++] = word_of(q, v, &values[LISTS])))
            return false;
    return q->words != NULL;
}

static bool take_known(struct travelling *q, const struct read_value *values)
{
    const struct read_value *name = &values[KNOWN], *type = &values[KINDS];
    size_t n = 0;
    for (const struct read_value *v = name; v && v->state != VALUE_MISSING; v = v->next)
        n++;
    q->known = adopt(q, calloc(n + 1, sizeof *q->known));
    for (; q->known && q->n_known < n && type; name = name->next, type = type->next) {
        struct note_field *f = &q->known[q->n_known++];
        const char *kind = text_of(q, type);
        f->name = text_of(q, name);
        if (!f->name || !kind || !tamis_type_named(kind, &f->type))
            return false;
    }
    return q->known && q->n_known == n;
}

static bool take_members(struct travelling *q, const struct read_value *v)
{
    const char *version = NULL, *limit = NULL;
    char *end = "";
    if (!take_text(q, &v[VERSION], &version) || !version || strcmp(version, "1") != 0)
        return not_a_question(version ? "another version" : "no version");
    bool good = take_text(q, &v[CATALOG], &q->catalog) && take_text(q, &v[SINCE], &q->since) &&
                take_text(q, &v[UNTIL], &q->until) && take_text(q, &v[FIELDS], &q->fields) &&
                take_text(q, &v[COUNT_BY], &q->count_by) && take_text(q, &v[LIMIT], &limit);
    q->count = is_true(&v[COUNTED]);
    q->json = is_true(&v[JSON]);
    q->file = is_true(&v[FILES]);
    q->line = is_true(&v[LINES]);
    q->tag = is_true(&v[TAG]);
    q->limited = limit != NULL;
    q->limit = limit ? strtoull(limit, &end, 10) : 0;
    if (!good || *end || (limit && !q->limit))
        return not_a_question("a member of the wrong type");
    if (!take_words(q, v))
        return not_a_question("its words, or a list that they name");
    return take_known(q, v) || not_a_question("its fields");
}

bool travelling_read(struct travelling *q, int fd)
{
    struct bytes text = {0};
    const struct dialect dialect = {.format = READ_JSONL};
    struct parsing p = {0};
    struct record record;
    *q = (struct travelling){0};
    bool good = (bytes_read(&text, fd, QUESTION_MOST) && text.len < QUESTION_MOST) ||
                not_a_question("it cannot be read");
    while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
        text.len--;
    bytes_put(&text, "\n", 1);
    good = adopt(q, text.data) && good;
    good = good && ((!text.failed && parsing_begin(&p, &dialect, member, MEMBERS, NULL, 0,
                                                   text.data, text.len, NULL) == TAMIS_OK) ||
                    no_memory("question"));
    good = good && ((parser_next(p.parser, &record) == PARSED_RECORD && !record.unfit) ||
                    not_a_question("no JSON object on one line"));
    good = good && take_members(q, record.values);
    parsing_end(&p);
    return good;
}

struct target_question travelling_asks(const struct travelling *q)
{
    return (struct target_question){.words = q->words,
                                    .n = q->n,
                                    .since = q->since,
                                    .until = q->until,
                                    .fields = q->count_by ? q->count_by : q->fields};
}

void travelling_counts(const struct travelling *q, struct tally *tally, uint64_t matches)
{
    if (q->count_by) {
        tally_print(tally, q->limited ? q->limit : UINT64_MAX, q->json);
    } else if (q->count && q->json) {
        json_open(NULL, '{');
        json_count("matches", matches);
        json_close();
    } else if (q->count) {
        put_format("%" PRIu64 "\n", matches);
    }
}

void travelling_free(struct travelling *q)
{
    owned_free(&q->own);
    *q = (struct travelling){0};
}
