/* tamis find: prints the matching records of the inputs of catalogs. */
#include "logs/find.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fleet/fleet_question.h"
#include "read/attrs.h"
#include "ui/args.h"
#include "ui/out.h"
#include "ui/progress.h"
#include "ui/report.h"
#include "sets/set_file.h"
#include "logs/find_target.h"

struct find {
    struct travelling asked; /* from the arguments, or from where `question` is read */
    bool segments, explain, trust;
    uint64_t threads;
    struct store_options files;
    struct fleet_find fleet;
    const char *question;
    char **asked_words; /* the catalog, and its words */

    struct target *target; /* the catalogs that are queried */
    size_t n;
    struct output output;
    struct bytes header;
    struct tally tally;
    uint64_t matches;
    double start;
};

static uint64_t ones(const uint64_t *bits, uint64_t words)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < words; i++)
        n += (uint64_t)__builtin_popcountll(bits[i]);
    return n;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The attributes of equality, in the form of --combo. A declared combination did not help
   because the values have too many choices. */
static void name_combo(const struct target *t)
{
    char text[1024];
    const tamis_schema *schema = tamis_catalog_schema(t->catalog);
    const struct question *q = &t->question;
    uint64_t asked = 0, combo;
    for (size_t i = 0; i < q->n; i++) {
        const struct clause *c = &q->clause[i];
        if (!t->prunes[i] || !c->open || c->column == PERIOD)
            continue;
        asked |= UINT64_C(1) << q->column[c->column].attribute;
    }
    for (uint32_t i = 0; (combo = tamis_schema_combo(schema, i)) != 0; i++)
        if (combo == asked) {
            remark("not verified as a combination: too many choices: give fewer values");
            return;
        }
    schema_names(schema, asked, text, sizeof text);
    if (asked & (asked - 1))
        remark("not verified as a combination; add --combo %s", text);
}

static bool ask(struct target *t)
{
    if (!target_ask(t))
        return false;
    if (!t->answer.verified)
        name_combo(t);
    sight_missed(&t->sight, &t->inputs, t->base, &t->missed);
    return places_find(&t->places, &t->inputs, &t->sight, t->catalog, t->bits);
}

/* ---- telling --------------------------------------------------------------------------------- */

static int list_places(const struct find *f, const struct target *t)
{
    for (size_t i = 0; i < t->places.n; i++) {
        const struct place *p = &t->places.place[i];
        char *path = base_join(t->base, t->sight.seen[p->seen].path);
        if (!path)
            return no_memory("inputs"), TROUBLE;
        if (f->asked.json) {
            json_open(NULL, '{');
            json_text("file", path);
            json_count("offset", p->where.offset);
            if (p->kind == PLACE_PART) {
                json_count("length", p->where.len);
                json_count("line", p->where.line);
                json_count("segment", p->segment);
            } else {
                json_flag("to_the_end", true);
            }
            json_close();
        } else {
            put_name(path);
            put_format("\t%llu\t", (unsigned long long)p->where.offset);
            if (p->kind == PLACE_PART)
                put_format("%llu\n", (unsigned long long)p->where.len);
            else
                put_text("-\n");
        }
        free(path);
    }
    return t->places.n ? FOUND : NONE;
}

/* Shown only if it happened; JSON always has it. */
static void report_event(const struct find *f, const char *key, const char *label, uint64_t n)
{
    if (f->asked.json || n)
        report_count(key, label, n);
}

/* Which clauses could rule out segments, and which are only checked on records. */
static void report_clauses(const struct target *t)
{
    const struct question *q = &t->question;
    report_group("conditions", "conditions");
    for (size_t i = 0; i < q->n; i++)
        report_text(q->clause[i].word, q->clause[i].word,
                    t->prunes[i] ? "rejects segments"
                    : q->clause[i].negative
                        ? "only filters records: what is excluded may be anywhere"
                    : q->clause[i].column != PERIOD &&
                            q->column[q->clause[i].column].attribute == NOT_INDEXED
                        ? "only filters records: its attribute is not indexed"
                        : "only filters records: the type of its attribute has no keys for it");
    report_end();
}

static void explain(const struct find *f, const struct target *t, const struct scan *s)
{
    uint64_t text = 0, records = 0, renamed = 0, gone = 0, looks[LOOK_PASSED + 1] = {0};
    uint64_t candidates = ones(t->bits, target_words(t)), hits = ones(t->hit, target_words(t));
    for (size_t i = 0; i < t->inputs.n; i++) {
        const struct entry *e = &t->inputs.entry[i];
        text += e->text;
        records += e->count.records;
        gone += t->sight.where[i] == NOWHERE && !e->passed;
    }
    for (size_t i = 0; i < t->sight.n; i++) {
        const struct seen *seen = &t->sight.seen[i];
        looks[seen->look]++;
        renamed += (seen->look == LOOK_SAME || seen->look == LOOK_GROWN) &&
                   strcmp(seen->path, t->inputs.entry[seen->entry].path) != 0;
    }
    report_open(f->asked.json);
    if (f->n > 1)
        report_text("catalog", "catalog", t->path);
    report_count("inputs", "inputs", inputs_count(&t->inputs));
    report_count("records", "records", records);
    report_count("segments", "segments", t->answer.segments);
    report_count("rejected_by_attributes", "  rejected by attributes", t->answer.by_attributes);
    report_count("rejected_by_combinations", "  rejected by combinations", t->answer.by_verifier);
    report_count("candidates", "  candidates", candidates);
    report_count("false_candidates", "  false candidates", candidates - hits);
    report_clauses(t);
    if (f->asked.json || t->question.n > 1)
        report_flag("verified", "verified as a combination", t->answer.verified);
    report_event(f, "grown", "inputs that grew (tail read)", looks[LOOK_GROWN]);
    report_event(f, "changed", "inputs that changed (read whole)", looks[LOOK_CHANGED]);
    report_event(f, "renamed", "inputs renamed", renamed);
    report_event(f, "removed", "inputs removed", gone + looks[LOOK_GONE]);
    report_event(f, "new", "new files (read whole)", looks[LOOK_NEW]);
    report_event(f, "not_searched", "not searched", t->missed.n + t->missed.unknown);
    report_count("matches", "matching records", s->matches);
    report_event(f, "timeless", "matching records without a time, left out", s->timeless);
    report_size("bytes_read", "bytes of files read", s->bytes_read);
    report_size("bytes_total", "  of", t->sight.bytes);
    report_size("unindexed_bytes_read", "  of which not indexed yet", s->unindexed);
    report_size("bytes_hashed", "bytes hashed to prove what is known", t->sight.hashed);
    report_size("text_read", "bytes of text read", s->text_read);
    report_size("text_total", "  of", text);
    report_real("seconds", "seconds", seconds() - f->start);
    report_end();
}

static int read_places(struct find *f, struct target *t)
{
    f->output.target = t;
    struct scan s = {.target = t,
                     .output = &f->output,
                     .header = &f->header,
                     .tally = f->asked.count_by ? &f->tally : NULL,
                     .threads = (unsigned)f->threads,
                     .limit = f->asked.limited && !f->asked.count_by ? f->asked.limit - f->matches
                                                                     : UINT64_MAX};
    if (!scan_run(&s))
        return TROUBLE;
    f->matches += s.matches;
    if (f->explain)
        explain(f, t, &s);
    else if (s.timeless)
        remark("left out because they have no time: %llu matching record%s",
               (unsigned long long)s.timeless, s.timeless == 1 ? "" : "s");
    return s.matches ? FOUND : NONE;
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Is there a query, or should the attributes be listed? */
static bool is_asked(const struct find *f)
{
    const struct travelling *q = &f->asked;
    return q->since || q->until || q->count || q->count_by || q->fields || q->file || q->line ||
           q->tag || q->limited || f->segments || f->explain;
}

static bool options_fit(struct find *f, const struct words *words, bool split, size_t before)
{
    if (words->n == 0)
        return refuse("no catalog: CATALOG: give one made by tamis index, or its folder");
    if (split && before == 0)
        return refuse("no catalog: --: give at least one before it");
    if (f->asked.count + f->segments + f->explain + (f->asked.count_by != NULL) > 1)
        return refuse("two kinds of answer: --count, --count-by, --segments, --explain: give one "
                      "of them");
    if (f->asked.fields && (f->asked.count || f->segments || f->explain || f->asked.count_by))
        return refuse(
            "no records to print: --fields: leave it out, or leave out --count and the others");
    if (f->asked.limited && f->asked.limit == 0)
        return refuse("wrong value '0': --limit: give 1 or more");
    return threads_settle(&f->threads);
}

static void choose_form(struct find *f)
{
    struct output *o = &f->output;
    o->form = f->asked.count_by              ? OUT_TALLY
              : f->asked.count || f->explain ? OUT_NOTHING
              : f->asked.json                ? OUT_JSON
              : f->asked.fields              ? OUT_FIELDS
                                             : OUT_RECORDS;
    o->file = f->asked.file;
    o->line = f->asked.line;
    o->tag = f->asked.tag;
    o->chosen = f->asked.fields != NULL;
    o->terminal = o->form == OUT_RECORDS && isatty(STDOUT_FILENO);
    const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
    o->colour = o->terminal && !(none && *none) && term && strcmp(term, "dumb") != 0;
}

static void tell_doubt(const struct question *q, const struct clause *c)
{
    const struct field *f = c->column == PERIOD ? NULL : &q->column[c->column];
    if (!f)
        remark("none: --since %s: that is later than --until", c->doubt);
    else if (c->doubted == DOUBT_RANGE)
        remark("none: %s: the range ends before it begins", c->doubt);
    else if (c->doubted == DOUBT_REGEX)
        remark("none: %s: = compares whole values; for a regular expression write %s~/regex/",
               c->doubt, f->name);
    else if (c->doubted == DOUBT_QUOTES)
        remark("none: %s: the quotes were searched as part of the value; leave them to the shell",
               c->doubt);
    else if (c->doubted == DOUBT_NAME)
        remark(
            "none: %s: that was searched as words of the line; for the attribute write %.*s=VALUE",
            c->doubt, (int)strcspn(c->doubt, NAME_ENDS), c->doubt);
    else if (c->doubted == DOUBT_NETWORK)
        remark("none: %s: that was searched as words; for the addresses of a network write "
               "ATTR=NETWORK, for an attribute of type ip",
               c->doubt);
    else
        remark(
            "none: %s: that is not a value of type %s, so it was searched as text; write %s== to mean that, or "
            "a value of the type",
            c->doubt, tamis_type_name(f->type), f->name);
}

static bool is_connective(const char *word)
{
    return strcasecmp(word, "and") == 0 || strcasecmp(word, "or") == 0 ||
           strcasecmp(word, "not") == 0;
}

/* If nothing was found, remarks on values and words that were perhaps not meant literally. */
static void tell_doubts(const struct find *f)
{
    struct stat st;
    for (size_t i = 0; i < f->asked.n; i++)
        if (is_connective(f->asked.words[i])) {
            remark(
                "none: %s: that was searched as a word of the line; values of one attribute are alternatives "
                "(a=v a=w), all else must hold, and a!=v excludes",
                f->asked.words[i]);
            return;
        }
    for (size_t i = 0; f->n == 1 && i < f->asked.n; i++)
        if (stat(f->asked.words[i], &st) == 0) {
            remark("none: %s: that was searched as a word of the line; to search it as a catalog, "
                   "write -- after the catalogs",
                   f->asked.words[i]);
            return;
        }
    for (size_t i = 0; i < f->n; i++) {
        const struct question *q = &f->target[i].question;
        for (size_t j = 0; j < q->n; j++)
            if (q->clause[j].doubt) {
                tell_doubt(q, &q->clause[j]);
                return;
            }
    }
}

static int find_all(struct find *f)
{
    int status = NONE;
    bool stops = f->asked.limited && !f->asked.count_by && !f->segments;
    for (size_t i = 0; i < f->n; i++)
        if (!ask(&f->target[i]))
            return TROUBLE;
    f->output.target = f->target;
    if (f->output.form == OUT_FIELDS)
        out_header(&f->output);
    size_t asked = 0;
    for (; asked < f->n && !(stops && f->matches >= f->asked.limit); asked++) {
        struct target *t = &f->target[asked];
        int one = f->segments ? list_places(f, t) : read_places(f, t);
        status = one == TROUBLE || status == TROUBLE ? TROUBLE : one == FOUND ? FOUND : status;
    }
    for (size_t i = 0; i < asked; i++) /* what was found in one catalog counts for all of them */
        status = missed_tell(&f->target[i].missed, f->target[i].path, status);
    if (status != TROUBLE && !f->segments && !f->question &&
        !targets_unseen(f->target, f->n, stops && f->matches >= f->asked.limit))
        return TROUBLE;
    travelling_counts(&f->asked, &f->tally, f->matches);
    if (status == NONE)
        tell_doubts(f);
    return status;
}

/* Parses the question for each catalog; false after complaining. */
static bool read_questions(struct find *f, char **words, size_t n)
{
    f->asked.words = words;
    f->asked.n = n;
    struct target_question asked = travelling_asks(&f->asked);
    asked.all_fields = f->output.form == OUT_JSON;
    asked.one = f->asked.count_by != NULL;
    asked.tag = f->asked.tag;
    for (size_t i = 0; i < f->n; i++)
        if (!target_look(&f->target[i], f->trust, (unsigned)f->threads))
            return false;
    return targets_join(f->target, f->n) &&
           targets_know(f->target, f->n, f->asked.known, f->asked.n_known) &&
           targets_read(f->target, f->n, &asked);
}

static void find_free(struct find *f)
{
    targets_free(f->target, f->n);
    free(f->asked_words);
    travelling_free(&f->asked);
    free(f->header.data);
    tally_free(&f->tally);
}

/* ---- other hosts ----------------------------------------------------------------------------- */

/* --fleet: the same question, to the hosts that may have a match. */
static int ask_fleet(struct find *f, const struct words *words)
{
    if (f->segments || f->explain || f->trust || f->question)
        return complain(
            "only for a single host: --segments, --explain, --trust, --question: run find there");
    if (words->n == 0 && !f->asked.since && !f->asked.until)
        return complain("no question: --fleet %s: give what to find", f->fleet.address);
    if (!options_fit(f, &(struct words){words->word, 1}, false, 0))
        return TROUBLE;
    f->asked.words = words->word;
    f->asked.n = words->n;
    return fleet_find(&f->fleet, &f->asked);
}

/* --question -: everything from standard input, except the catalog if one is given. */
static bool take_question(struct find *f, struct words *words)
{
    struct travelling *q = &f->asked;
    if (strcmp(f->question, "-") != 0 || words->n > 1)
        return refuse("a question comes from standard input: --question -: give at most a catalog "
                      "with it");
    put_text(ANSWER_FIRST);
    if (!travelling_read(q, STDIN_FILENO))
        return false;
    const char *catalog = words->n ? words->word[0] : q->catalog;
    char **all = calloc(q->n + 2, sizeof *all);
    if (!catalog || !all) {
        free(all);
        return refuse("no catalog: --question -: give one here or in the question");
    }
    all[0] = (char *)(uintptr_t)catalog;
    memcpy(all + 1, q->words, q->n * sizeof *all);
    f->asked_words = all;
    *words = (struct words){all, q->n + 1};
    return true;
}

/* A pattern of the shell matches both logs and logs.tamis: one catalog, which is searched once. */
static bool open_catalogs(struct find *f, char **operands, size_t n)
{
    struct stat st, other;
    f->target = calloc(n + 1, sizeof *f->target);
    if (!f->target)
        return no_memory("the catalogs");
    for (size_t i = 0; i < n; i++) {
        struct target *t = &f->target[f->n++];
        bool again = false;
        if (!target_open(t, operands[i], &f->files))
            return false;
        for (size_t j = 0; j + 1 < f->n && stat(t->path, &st) == 0; j++)
            again |= stat(f->target[j].path, &other) == 0 && other.st_dev == st.st_dev &&
                     other.st_ino == st.st_ino;
        if (again) {
            target_free(t);
            *t = (struct target){0};
            f->n--;
        }
    }
    return true;
}

int verb_find(int argc, char **argv)
{
    struct find f = {.start = seconds()};
    size_t before = 0;
    bool split = false;
    const struct arg args[] = {
        ARG("count", 'c', ARG_FLAG, &f.asked.count),
        ARG("count-by", 0, ARG_TEXT, &f.asked.count_by),
        ARG("fields", 0, ARG_TEXT, &f.asked.fields),
        ARG("since", 0, ARG_TEXT, &f.asked.since),
        ARG("until", 0, ARG_TEXT, &f.asked.until),
        ARG("segments", 0, ARG_FLAG, &f.segments),
        ARG("explain", 0, ARG_FLAG, &f.explain),
        ARG("json", 0, ARG_FLAG, &f.asked.json),
        ARG("with-filename", 'H', ARG_FLAG, &f.asked.file),
        ARG("line-number", 'n', ARG_FLAG, &f.asked.line),
        ARG("tag", 0, ARG_FLAG, &f.asked.tag),
        ARG_GIVEN("limit", ARG_COUNT, &f.asked.limit, &f.asked.limited),
        ARG("trust", 0, ARG_FLAG, &f.trust),
        ARG("threads", 'j', ARG_COUNT, &f.threads),
        ARG("fleet", 0, ARG_TEXT, &f.fleet.address),
        ARG("via", 0, ARG_TEXT, &f.fleet.via),
        ARG("fresh", 0, ARG_FLAG, &f.fleet.fresh),
        ARG("parallel", 0, ARG_COUNT, &f.fleet.parallel),
        ARG("timeout", 0, ARG_TIME, &f.fleet.timeout),
        ARG("seal", 0, ARG_TEXT, &f.fleet.seal),
        ARG("output", 'o', ARG_TEXT, &f.fleet.folder),
        ARG("verbose", 'v', ARG_FLAG, &f.fleet.verbose),
        ARG("question", 0, ARG_TEXT, &f.question),
        {NULL, 0, ARG_SPLIT, &before, &split, NULL},
        STORE_KEY_ARG(f.files),
        STORE_READ_ARG(f.files),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    int status = TROUBLE;
    if (f.fleet.address)
        return ask_fleet(&f, &words);
    bool good =
        (!f.question || take_question(&f, &words)) && options_fit(&f, &words, split, before);
    size_t n = split ? before : words.n ? 1 : 0;
    choose_form(&f);
    good = good && open_catalogs(&f, words.word, n);
    if (good && n == words.n && !is_asked(&f))
        status = targets_about(f.target, f.n, f.asked.json);
    else if (good && read_questions(&f, words.word + n, words.n - n))
        status = find_all(&f);
    if (f.question)
        put_format(ANSWER_LAST "%d\n", status);
    find_free(&f);
    return status;
}
