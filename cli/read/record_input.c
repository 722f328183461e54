/* Records from arguments or standard input. See record_input.h. */
#include "record_input.h"

#include <stdlib.h>
#include <string.h>

#include "attrs.h"
#include "ui/out.h"
#include "ui/progress.h"

static uint32_t attributes_of(const tamis_records *set)
{
    tamis_records_facts info;
    tamis_records_info(set, &info);
    return info.attributes;
}

static const char *record_name(const void *set, uint32_t attribute)
{
    return tamis_records_name(set, attribute);
}

void records_names(const tamis_records *set, uint64_t mask, char *out, size_t room)
{
    combo_text(mask, record_name, set, out, room);
}

void records_warn(const tamis_records *set, uint64_t mask)
{
    char names[2048];
    tamis_records_facts info;
    tamis_records_info(set, &info);
    if (tamis_records_verifies(set, mask))
        return;
    records_names(set, mask, names, sizeof names);
    if (info.verifier == TAMIS_VERIFIER_NONE)
        remark("not verified as a combination; make the set with --verifier filter");
    else
        remark("not verified as a combination; add --combo %s", names);
}

/* ---- from arguments -------------------------------------------------------------------------- */

/* Parses attr=value, attr= or attr!, which means missing: the value is then NULL. The attribute is the text before
   the first "=" that makes it one. Complains with the reason for the shortest that was tried. */
static bool cut_word(const tamis_records *set, char *word, uint32_t *attribute, tamis_key *value)
{
    tamis_reason reason = {0}, other;
    const char *text = NULL;
    size_t len = strlen(word);
    tamis_error e = TAMIS_EARG;
    if (len > 1 && word[len - 1] == '!' && !strchr(word, '=')) {
        word[len - 1] = 0;
        e = tamis_records_attribute(set, word, attribute, &reason);
        word[len - 1] = '!';
    }
    for (char *at = strchr(word, '='); at && e != TAMIS_OK; at = strchr(at + 1, '=')) {
        *at = 0;
        e = tamis_records_attribute(set, word, attribute, reason.text[0] ? &other : &reason);
        *at = '=';
        text = at + 1;
    }
    *value = (tamis_key){text, text ? strlen(text) : 0};
    if (e == TAMIS_OK)
        return true;
    if (reason.text[0])
        return refuse("%s: %s: name one of them", reason.text, word);
    return refuse("no value: %s: give attr=value, attr= (empty) or attr! (missing)", word);
}

/* The values of each attribute, one after the other. */
struct asked {
    tamis_choice choice[TAMIS_ATTRIBUTES_MAX];
    tamis_digest *digest; /* n_words for each attribute */
    uint64_t mask;
};

static bool read_words(const struct records *r, const struct records_work *work, struct asked *a)
{
    uint32_t attribute;
    tamis_key value;
    for (size_t i = 0; i < r->n_words; i++) {
        if (!cut_word(work->set, r->word[i], &attribute, &value))
            return false;
        tamis_choice *c = &a->choice[attribute];
        tamis_digest *to = a->digest + attribute * r->n_words;
        if (c->n && !work->asks)
            return refuse("two values: %s: a record has one for each attribute; give one record "
                          "at a time",
                          r->word[i]);
        to[c->n] = tamis_records_digest(work->set, attribute, value);
        *c = (tamis_choice){attribute, to, c->n + 1};
        a->mask |= UINT64_C(1) << attribute;
    }
    return true;
}

/* The arguments are one record: queries get its choices, others all its digests. */
static void use_words(struct records *r, const struct records_work *work, struct asked *a)
{
    uint32_t p = attributes_of(work->set);
    tamis_choice some[TAMIS_ATTRIBUTES_MAX];
    tamis_digest digest[TAMIS_ATTRIBUTES_MAX];
    static struct record_batch batch;
    size_t n = 0;
    r->mask = a->mask;
    for (uint32_t i = 0; i < p; i++) {
        if (a->choice[i].n)
            some[n++] = a->choice[i];
        digest[i] = a->choice[i].n ? *a->choice[i].values
                                   : tamis_records_digest(work->set, i, (tamis_key){NULL, 0});
    }
    if (work->asks) {
        work->ask(work->context, some, n);
        return;
    }
    batch.n = 1;
    batch.digest = digest;
    work->take(work->context, &batch);
}

static int words_run(struct records *r, const struct records_work *work)
{
    struct asked a = {.digest = calloc(TAMIS_ATTRIBUTES_MAX * r->n_words, sizeof *a.digest)};
    bool good = a.digest ? read_words(r, work, &a) : no_memory("records");
    if (good)
        use_words(r, work, &a);
    free(a.digest);
    return good ? FOUND : TROUBLE;
}

/* ---- from standard input --------------------------------------------------------------------- */

struct record_reading {
    struct records *r;
    const struct records_work *work;
    struct input *input;
    struct selection *selection;
    struct parser *parser;
    struct input_text text;
    uint32_t p;
    uint64_t skipped; /* bit i: attribute i does not count */
    struct record_batch batch;
    bool stopped;
};

/* The attributes named by --attrs; complains. */
static bool read_attrs(const struct records *r, const tamis_records *set, uint64_t *mask)
{
    char *list = strdup(r->attrs), *rest = list;
    tamis_reason reason = {0};
    bool good = list ? true : no_memory("records");
    for (char *name; good && (name = strsep(&rest, ","));) {
        uint32_t number;
        good = tamis_records_attribute(set, name, &number, &reason) == TAMIS_OK;
        if (good)
            *mask |= UINT64_C(1) << number;
        else
            complain("%s: --attrs %s: name some of them, with commas between them", reason.text,
                     r->attrs);
    }
    free(list);
    return good;
}

/* The attributes that the input has: in queries the others do not count. */
static bool settle_mask(struct record_reading *g)
{
    uint64_t all = UINT64_MAX >> (TAMIS_ATTRIBUTES_MAX - g->p), there = all, wanted = 0;
    bool headless = g->input->dialect.headless, table = headless || g->input->header_len;
    if (g->r->attrs && !read_attrs(g->r, g->work->set, &wanted))
        return false;
    for (size_t i = 0; table && (i = selection_absent(g->selection, i)) < g->p; i++)
        there &= ~(UINT64_C(1) << i);
    wanted = wanted ? wanted : g->work->asks ? there : all;
    uint64_t lacking = wanted & ~there;
    if (table && (there == 0 || (lacking && (headless || g->r->attrs))))
        return refuse(
            "no column '%s': standard input: %s",
            tamis_records_name(g->work->set, (uint32_t)__builtin_ctzll(lacking ? lacking : all)),
            headless ? "without a header, columns have numbers, from 1"
                     : "give records with a header that names the attributes");
    if (table && lacking) {
        char names[1024];
        records_names(g->work->set, lacking, names, sizeof names);
        remark("no column: standard input: %s is missing in every record", names);
    }
    g->r->mask = wanted;
    g->skipped = all & ~wanted;
    return true;
}

static bool open_input(struct record_reading *g)
{
    const char *names[TAMIS_ATTRIBUTES_MAX];
    struct records *r = g->r;
    struct input_options o = {
        .dialect = {.format = r->format ? (enum read_format)(r->format - 1) : READ_AUTO,
                    .delimiter = r->delimited ? (uint8_t)r->delimiter : 0,
                    .headless = r->headless,
                    .tables = true}};
    tamis_reason reason = {0};
    tamis_error e = input_open(&g->input, "-", &o, &reason);
    for (uint32_t i = 0; i < g->p; i++)
        names[i] = tamis_records_name(g->work->set, i);
    if (e == TAMIS_OK)
        e = selection_new(&g->selection, &g->input->dialect, names, g->p, g->input->header,
                          g->input->header_len, &reason);
    if (e != TAMIS_OK)
        return complain_input(e, &reason, "standard input", "nothing was changed"), false;
    g->parser = parser_new();
    g->batch.digest = calloc((size_t)RECORDS_BATCH * g->p, sizeof *g->batch.digest);
    return (g->parser && g->batch.digest ? true : no_memory("records")) && settle_mask(g);
}

static void batch_end(struct record_reading *g)
{
    if (g->batch.n && !g->stopped)
        g->stopped = !g->work->take(g->work->context, &g->batch) || put_failed();
    g->batch.n = 0;
}

static void batch_put(struct record_reading *g, const struct record *record)
{
    struct record_batch *b = &g->batch;
    tamis_digest *to = b->digest + b->n * g->p;
    for (uint32_t i = 0; i < g->p; i++) {
        const struct read_value *v = &record->values[i];
        tamis_key key = {v->len ? (const void *)v->data : "", v->len};
        if (v->state == VALUE_MISSING)
            key.data = NULL;
        if (!(g->skipped >> i & 1))
            to[i] = tamis_records_digest(g->work->set, i, key);
    }
    b->text[b->n++] = (tamis_key){record->data, record->len + record->end_len};
    if (b->n == RECORDS_BATCH)
        batch_end(g);
}

/* Counts an invalid record; false: stop. */
static bool skip_bad(struct record_reading *g, const struct record *record, uint64_t first_line)
{
    struct records *r = g->r;
    if (r->bad++ == 0) {
        r->first_bad = first_line + parser_line(g->parser);
        r->first_bad_text = record->complaint;
    }
    if (r->strict)
        complain("bad record: standard input, line %llu: %s: nothing was changed; leave out "
                 "--strict to skip such records",
                 (unsigned long long)r->first_bad, r->first_bad_text);
    return !r->strict;
}

static bool read_text(struct record_reading *g, uint64_t first_line)
{
    struct record record;
    enum parsed parsed = PARSED_END;
    bool good = parser_begin(g->parser, g->selection, g->text.data, g->text.len) == TAMIS_OK;
    parser_context(g->parser, &g->text);
    while (good && !g->stopped && (parsed = parser_next(g->parser, &record)) != PARSED_END) {
        if (parsed == PARSED_RECORD && !record.unfit)
            batch_put(g, &record);
        else
            good = parsed != PARSED_NOMEM ? skip_bad(g, &record, first_line) : no_memory("records");
    }
    batch_end(g); /* printed records point into the text */
    return good;
}

static int input_run(struct records *r, const struct records_work *work)
{
    struct record_reading *g = calloc(1, sizeof *g);
    if (!g)
        return no_memory("records"), TROUBLE;
    g->r = r, g->work = work, g->p = attributes_of(work->set);
    bool good = open_input(g), more = good;
    progress_start(0);
    while (good && more && !g->stopped) {
        struct input_segment segment = {0};
        tamis_reason reason = {0};
        tamis_error e = input_next(g->input, &segment, &g->text, &more, &reason);
        if (e != TAMIS_OK)
            good = complain_input(e, &reason, "standard input",
                                  "it could not be read to its end") == FOUND;
        else if (more)
            good = read_text(g, segment.line);
        progress_step(segment.at_len);
        input_segment_free(&segment);
        put_flush(); /* others may be waiting for the results so far */
    }
    progress_end();
    free(g->batch.digest);
    parser_free(g->parser);
    input_text_free(&g->text);
    selection_free(g->selection);
    input_close(g->input);
    free(g);
    return good ? FOUND : TROUBLE;
}

int records_run(struct records *r, const struct records_work *work)
{
    if (r->n_words && (r->format || r->headless || r->delimited || r->attrs))
        return complain("only for standard input: %s: leave it out, or leave out the arguments",
                        r->format     ? "--format"
                        : r->headless ? "--no-header"
                        : r->attrs    ? "--attrs"
                                      : "--delimiter");
    int status = r->n_words ? words_run(r, work) : input_run(r, work);
    if (status == FOUND && r->bad)
        remark("bad record: standard input, line %llu: %s: %llu skipped",
               (unsigned long long)r->first_bad, r->first_bad_text, (unsigned long long)r->bad);
    return status;
}
