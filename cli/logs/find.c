/* tamis find: the records of a catalog's inputs that match. */
#include "find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ui/args.h"
#include "ui/out.h"
#include "ui/report.h"
#include "sets/set_file.h"

struct find {
    bool count, segments, explain, json, trust;
    bool limited;
    uint64_t limit, threads;
    struct store_options files;

    tamis_catalog *catalog;
    char *base;
    struct inputs inputs;
    struct when when;
    struct sight sight;
    struct missed missed;
    struct places places;
    uint64_t *bits; /* candidates, */
    uint64_t *hit;  /* and those in which something matched */
    tamis_catalog_answer answer;
    double start;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t words_of(const struct find *f)
{
    return (tamis_catalog_segments(f->catalog) + 63) / 64;
}

static uint64_t ones(const uint64_t *bits, uint64_t words)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < words; i++)
        n += (uint64_t)__builtin_popcountll(bits[i]);
    return n;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool open_catalog(struct find *f, const char *path)
{
    tamis_reason reason = {0};
    size_t len;
    WIPED_KEY key[TAMIS_KEY_LEN];
    tamis_open_options o = {.verify = f->files.verify};
    if (f->files.key_file) {
        if (!store_read_key(f->files.key_file, key))
            return false;
        o.key = key;
    }
    mapped_name = path;
    tamis_error error = tamis_catalog_open(&f->catalog, path, &o, &reason);
    const void *note = error == TAMIS_OK ? tamis_catalog_note(f->catalog, &len) : NULL;
    if (error == TAMIS_OK)
        error = inputs_decode(&f->inputs, note, len, &reason);
    if (error != TAMIS_OK)
        return complain_of(error, &reason, path), false;
    f->bits = calloc(words_of(f) + 1, sizeof *f->bits);
    f->hit = calloc(words_of(f) + 1, sizeof *f->hit);
    if (f->bits && f->hit && base_of(path, &f->base))
        return true;
    return complain("out of memory: %s: free some memory and run again", path), false;
}

/* The attributes asked for, as --combo would name them. One that is declared did not help because
   the values have too many combinations. */
static void name_combo(const struct find *f)
{
    char text[1024];
    size_t len = 0;
    const tamis_schema *schema = tamis_catalog_schema(f->catalog);
    uint64_t asked = 0, combo;
    for (size_t i = 0; i < f->when.n; i++)
        asked |= (uint64_t)1 << f->when.clause[i].attribute;
    for (uint32_t i = 0; (combo = tamis_schema_combo(schema, i)) != 0; i++)
        if (combo == asked) {
            remark("not verified as a combination: too many choices: give fewer values");
            return;
        }
    for (size_t i = 0; i < f->when.n && len + 260 < sizeof text; i++)
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? "+" : "", f->when.name[i]);
    remark("not verified as a combination; add --combo %s", text);
}

/* Words do not say which whole values there are. */
static bool ask(struct find *f, const char *path)
{
    tamis_reason reason = {0};
    size_t n = 0;
    tamis_condition *conditions = calloc(f->when.n, sizeof *conditions);
    if (!conditions)
        return complain("out of memory: conditions: free some memory and run again"), false;
    for (size_t i = 0; i < f->when.n; i++) {
        const struct clause *c = &f->when.clause[i];
        if (c->type == TAMIS_WORDS)
            continue;
        conditions[n] = (tamis_condition){.attribute = c->attribute, .keys = c->digest, .n = c->n};
        n++;
    }
    tamis_error error = tamis_catalog_ask(f->catalog, conditions, n, f->bits, &f->answer, &reason);
    free(conditions);
    if (error != TAMIS_OK)
        return complain_of(error, &reason, path), false;
    if (!f->answer.verified)
        name_combo(f);
    return true;
}

static bool look(struct find *f)
{
    bool good = f->trust ? sight_trust(&f->sight, &f->inputs)
                         : sight_take(&f->sight, &f->inputs, f->base, (unsigned)f->threads);
    if (good)
        sight_missed(&f->sight, &f->inputs, f->base, &f->missed);
    return good;
}

/* ---- telling --------------------------------------------------------------------------------- */

static int list_places(const struct find *f)
{
    for (size_t i = 0; i < f->places.n; i++) {
        const struct place *p = &f->places.place[i];
        char *path = base_join(f->base, f->sight.seen[p->seen].path);
        if (!path)
            return complain("out of memory: inputs: free some memory and run again");
        if (f->json) {
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
            json_close('}');
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
    return f->places.n ? FOUND : NONE;
}

/* People are spared what did not happen. */
static void report_event(const struct find *f, const char *key, const char *label, uint64_t n)
{
    if (f->json || n)
        report_count(key, label, n);
}

static void explain(const struct find *f, const struct scan *s)
{
    uint64_t text = 0, records = 0, renamed = 0, gone = 0, looks[LOOK_PASSED + 1] = {0};
    uint64_t candidates = ones(f->bits, words_of(f)), hits = ones(f->hit, words_of(f));
    for (size_t i = 0; i < f->inputs.n; i++) {
        const struct entry *e = &f->inputs.entry[i];
        text += e->text;
        records += e->records;
        gone += f->sight.where[i] == NOWHERE && !e->passed;
    }
    for (size_t i = 0; i < f->sight.n; i++) {
        const struct seen *seen = &f->sight.seen[i];
        looks[seen->look]++;
        renamed += (seen->look == LOOK_SAME || seen->look == LOOK_GROWN) &&
                   strcmp(seen->path, f->inputs.entry[seen->entry].path) != 0;
    }
    report_open(f->json);
    report_count("inputs", "inputs", inputs_count(&f->inputs));
    report_count("records", "records", records);
    report_count("segments", "segments", f->answer.segments);
    report_count("rejected_by_attributes", "  rejected by attributes", f->answer.by_attributes);
    report_count("rejected_by_combinations", "  rejected by combinations", f->answer.by_verifier);
    report_count("candidates", "  candidates", candidates);
    report_count("read_in_vain", "  read in vain", candidates - hits);
    if (f->json || f->when.n > 1)
        report_flag("verified", "verified as a combination", f->answer.verified);
    report_event(f, "grown", "inputs that grew (tail read)", looks[LOOK_GROWN]);
    report_event(f, "changed", "inputs that changed (read whole)", looks[LOOK_CHANGED]);
    report_event(f, "renamed", "inputs renamed", renamed);
    report_event(f, "removed", "inputs removed", gone + looks[LOOK_GONE]);
    report_event(f, "new", "new files (read whole)", looks[LOOK_NEW]);
    report_event(f, "not_searched", "not searched", f->missed.n + f->missed.unknown);
    report_count("matches", "matching records", s->matches);
    report_size("bytes_read", "bytes of files read", s->bytes_read);
    report_size("bytes_total", "  of", f->sight.bytes);
    report_size("unindexed_bytes_read", "  of which not indexed yet", s->unindexed);
    report_size("bytes_hashed", "bytes hashed to prove what is known", f->sight.hashed);
    report_size("text_read", "bytes of text read", s->text_read);
    report_size("text_total", "  of", text);
    report_real("seconds", "seconds", seconds() - f->start);
    report_close();
}

static int read_places(struct find *f)
{
    struct scan s = {.inputs = &f->inputs,
                     .sight = &f->sight,
                     .missed = &f->missed,
                     .base = f->base,
                     .when = &f->when,
                     .places = &f->places,
                     .threads = (unsigned)f->threads,
                     .quiet = f->count || f->explain,
                     .json = f->json,
                     .limit = f->limited ? f->limit : UINT64_MAX,
                     .hit = f->hit};
    if (!scan_run(&s))
        return TROUBLE;
    if (f->explain) {
        explain(f, &s);
    } else if (f->count && f->json) {
        json_open(NULL, '{');
        json_count("matches", s.matches);
        json_close('}');
    } else if (f->count) {
        put_format("%llu\n", (unsigned long long)s.matches);
    }
    return s.matches ? FOUND : NONE;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static bool options_fit(struct find *f, const struct words *words)
{
    if (words->n == 0)
        return complain("no catalog: CATALOG: give one made by tamis index"), false;
    if (words->n == 1)
        return complain("no condition: %s: give attr=value, attr= (empty) or attr! (missing)",
                        words->word[0]),
               false;
    if (f->count + f->segments + f->explain > 1)
        return complain("two kinds of answer: --count, --segments, --explain: give one of them"),
               false;
    if (f->limited && f->limit == 0)
        return complain("wrong value '0': --limit: give 1 or more"), false;
    if (f->threads > 256)
        return complain("too many threads: --threads: give at most 256"), false;
    if (f->threads == 0)
        f->threads = processors();
    return true;
}

static void find_free(struct find *f)
{
    when_free(&f->when);
    inputs_free(&f->inputs);
    tamis_catalog_close(f->catalog);
    sight_free(&f->sight);
    free(f->missed.path);
    free(f->places.place);
    free(f->bits);
    free(f->hit);
    free(f->base);
}

int verb_find(int argc, char **argv)
{
    struct find f = {.start = seconds()};
    const struct arg args[] = {
        ARG("count", 'c', ARG_FLAG, &f.count),
        ARG("segments", 0, ARG_FLAG, &f.segments),
        ARG("explain", 0, ARG_FLAG, &f.explain),
        ARG("json", 0, ARG_FLAG, &f.json),
        ARG_GIVEN("limit", ARG_COUNT, &f.limit, &f.limited),
        ARG("trust", 0, ARG_FLAG, &f.trust),
        ARG("threads", 'j', ARG_COUNT, &f.threads),
        STORE_KEY_ARG(f.files),
        STORE_READ_ARG(f.files),
    };
    struct words words;
    enum args_outcome outcome = args_read(argc, argv, args, COUNT(args), &words);
    if (outcome != ARGS_READ)
        return outcome == ARGS_HELPED ? FOUND : TROUBLE;
    int status = TROUBLE;
    const char *path = words.word[0];
    if (options_fit(&f, &words) && open_catalog(&f, path) &&
        when_read(&f.when, words.word + 1, words.n - 1, tamis_catalog_schema(f.catalog)) &&
        ask(&f, path) && look(&f) &&
        places_find(&f.places, &f.inputs, &f.sight, f.catalog, f.bits)) {
        status = f.segments ? list_places(&f) : read_places(&f);
        status = missed_tell(&f.missed, path, status);
    }
    find_free(&f);
    return status;
}
