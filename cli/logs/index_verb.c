/* tamis index: a catalog of files of records, made and kept up to date. */
#define _GNU_SOURCE
#include "index_verb.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ui/args.h"
#include "read/attrs.h"
#include "ui/out.h"
#include "ui/report.h"
#include "sets/set_file.h"

#define SEGMENT     ((uint64_t)8 << 20)
#define SEGMENT_MIN 64
#define SEGMENT_MAX ((uint64_t)1 << 30)

struct index {
    const char *out, *update, *attrs_text;
    struct texts combos, include, exclude, append_only, forget;
    struct attrs attrs;
    double fpp;
    unsigned format, verifier;
    uint64_t segment, threads;
    char delimiter;
    bool delimited, headless, strict, json, verbose, skip_unknown;
    struct store_options files;
    struct inputs known, inputs; /* as they were, and as they will be */
    char *base;
    double start;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void interrupt(int signal_number)
{
    index_interrupted = signal_number;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* One name, or two of one folder or file; two hard links are two files. */
static bool same_root(const struct index *x, const char *known, const char *path,
                      const struct stat *st)
{
    struct stat other;
    if (strcmp(known, path) == 0)
        return true;
    char *opened = base_join(x->base, known);
    bool same = opened && stat(opened, &other) == 0 && other.st_dev == st->st_dev &&
                other.st_ino == st->st_ino && (S_ISDIR(st->st_mode) || st->st_nlink == 1);
    free(opened);
    return same;
}

/* A name from the command line becomes a root, called as it is called from the catalog's folder. */
static bool add_root(struct index *x, const char *given)
{
    struct stat st;
    if (strcmp(given, "-") == 0)
        return complain("not a file: -: an input must be a file or folder, to be read again"),
               false;
    if (stat(given, &st) != 0)
        return complain("%s: %s: give files or folders", strerror(errno), given), false;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return complain("not a file: %s: an input must be a file or folder, to be read again",
                        given),
               false;
    char *path = base_call(x->base, given);
    for (size_t i = 0; path && i < x->known.n_roots; i++)
        if (same_root(x, x->known.root[i].path, path, &st)) {
            free(path);
            return true;
        }
    if (inputs_adopt(&x->known, path) && inputs_add_root(&x->known, path, S_ISDIR(st.st_mode)))
        return true;
    return complain("out of memory: %s: free some memory and run again", given), false;
}

static bool find_base(struct index *x, const char *catalog)
{
    char *here = base_of(catalog, &x->base) ? base_call(x->base, ".") : NULL;
    bool found = here != NULL;
    free(here);
    if (found)
        return true;
    complain("%s: %s: check the name of its folder", strerror(errno), catalog);
    return false;
}

/* A root that was given before, by its name then or by what it is called here. */
static bool forget_root(struct index *x, const char *given)
{
    char *path = base_call(x->base, given);
    uint32_t i = 0;
    while (i < x->known.n_roots && strcmp(x->known.root[i].path, given) != 0 &&
           !(path && strcmp(x->known.root[i].path, path) == 0))
        i++;
    free(path);
    if (i == x->known.n_roots)
        return complain("not an input that was given: --forget %s: see tamis info --inputs", given),
               false;
    inputs_forget(&x->known, i);
    return true;
}

static bool add_rules(struct index *x, const struct texts *globs, enum rule_kind kind)
{
    for (size_t i = 0; i < globs->n; i++)
        if (!inputs_add_rule(&x->known, kind, globs->text[i]))
            return complain("out of memory: inputs: free some memory and run again"), false;
    return true;
}

/* What is known, and what was said now. */
static bool set_scope(struct index *x, const struct words *words)
{
    struct inputs *known = &x->known, *in = &x->inputs;
    bool good = add_rules(x, &x->include, RULE_INCLUDE) &&
                add_rules(x, &x->exclude, RULE_EXCLUDE) &&
                add_rules(x, &x->append_only, RULE_APPEND_ONLY);
    known->skip_unknown |= x->skip_unknown;
    for (size_t i = 0; good && i < x->forget.n; i++)
        good = forget_root(x, x->forget.text[i]);
    for (size_t i = 0; good && i < words->n; i++)
        good = add_root(x, words->word[i]);
    if (good && known->n_roots == 0)
        good = !complain("no input is left: --forget: remove the catalog instead");
    in->dialect = known->dialect;
    in->segment = known->segment;
    in->next_id = known->next_id;
    in->skip_unknown = known->skip_unknown;
    for (size_t i = 0; good && i < known->n_roots; i++)
        good = inputs_add_root(in, known->root[i].path, known->root[i].folder);
    for (size_t i = 0; good && i < known->n_rules; i++)
        good = inputs_add_rule(in, known->rule[i].kind, known->rule[i].glob);
    return good;
}

bool plan_task(struct index_run *run, size_t entry, uint64_t bytes)
{
    if ((run->n_tasks & (run->n_tasks + 1)) == 0) { /* room for 2^k - 1 */
        struct task *fresh = realloc(run->task, (2 * run->n_tasks + 1) * sizeof *fresh);
        if (!fresh)
            return complain("out of memory: inputs: free some memory and run again"), false;
        run->task = fresh;
    }
    run->task[run->n_tasks++] = (struct task){.entry = entry, .bytes = bytes};
    return true;
}

bool plan_new(struct index_run *run, uint32_t root, const char *path, uint64_t bytes)
{
    struct inputs *in = run->inputs;
    struct entry *e = inputs_add(in);
    const char *kept = e ? inputs_keep(in, path) : NULL;
    if (!kept)
        return complain("out of memory: inputs: free some memory and run again"), false;
    *e = (struct entry){.id = in->next_id++, .root = root, .path = kept};
    return plan_task(run, in->n - 1, bytes);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void report(const struct index *x, const struct index_run *run, const struct update *u,
                   const char *path)
{
    const struct tally *t = &run->tally;
    struct stat st;
    uint64_t bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    double time = seconds() - x->start;
    if (x->json) {
        report_open(true);
        report_count("inputs", "", inputs_count(run->inputs));
        report_count("read", "", t->inputs);
        if (u) {
            report_count("new", "", u->fresh);
            report_count("changed", "", u->changed);
            report_count("grown", "", u->grown);
            report_count("renamed", "", u->renamed);
            report_count("removed", "", u->gone);
        }
        report_count("failed", "", t->failed);
        report_count("records_read", "", t->records);
        report_count("bad_records", "", t->bad);
        report_count("bytes_read", "", t->bytes);
        report_count("segments_added", "", t->segments);
        report_count("catalog_bytes", "", bytes);
        report_real("seconds", "", time);
        report_close();
    } else if (x->verbose) {
        if (u)
            remark("%zu new, %zu changed, %zu grown, %zu renamed, %zu removed, %zu as before",
                   u->fresh, u->changed, u->grown, u->renamed, u->gone, u->same);
        remark("%llu records in %llu segments read from %llu inputs, %llu bad: %.1f MB of text in "
               "%.2f s, catalog %.1f MB",
               (unsigned long long)t->records, (unsigned long long)t->segments,
               (unsigned long long)t->inputs, (unsigned long long)t->bad, 1e-6 * (double)t->bytes,
               time, 1e-6 * (double)bytes);
    }
}

/* How the first input that can be read begins, so that names can be compared. */
static void tell_start(const struct index_run *run)
{
    enum { MOST = 100 };
    const struct input_options options = {.dialect = run->inputs->dialect, .segment = 4096};
    for (size_t i = 0; i < run->inputs->n; i++) {
        struct input *input = NULL;
        struct input_segment segment = {0};
        struct input_text text = {0};
        tamis_reason reason;
        bool more = false;
        char *path = base_join(run->base, run->inputs->entry[i].path);
        if (path && input_open(&input, path, &options, &reason) == TAMIS_OK && !input->header)
            input_next(input, &segment, &text, &more, &reason);
        const uint8_t *start = input && input->header ? input->header : text.data;
        size_t len = input && input->header ? input->header_len : more ? text.len : 0;
        const uint8_t *end = len ? memchr(start, '\n', len) : NULL;
        len = end ? (size_t)(end - start) : len;
        if (len)
            remark("%s begins: %.*s%s", path, len > MOST ? MOST : (int)len, (const char *)start,
                   len > MOST ? "..." : "");
        input_text_free(&text);
        input_segment_free(&segment);
        input_close(input);
        free(path);
        if (len)
            break;
    }
}

/* What may have records and was not read: find will say so, too. */
static void tell_passed(const struct index_run *run, const struct update *u)
{
    if (!u->passed)
        return;
    const struct entry *e = &run->inputs->entry[u->first_passed];
    char *path = base_join(run->base, e->path);
    remark(
        "not read: %s: it is %s; %zu such in all, which tamis info --inputs lists: give --exclude "
        "or --skip-unknown",
        path ? path : e->path, e->passed, u->passed);
    free(path);
}

/* A catalog without a record proves nothing, and one in which no record has any of the attributes
   nothing that anyone wants to know: text of another form, or a slip of the pen. */
static bool worth_keeping(const struct index_run *run)
{
    uint32_t n = tamis_schema_attributes(run->schema), absent = 0;
    for (uint32_t i = 0; run->tally.records && i < n; i++)
        if (!(run->tally.present >> i & 1)) {
            absent++;
            remark("no record has the attribute: %s: check the names in --attrs, and --delimiter",
                   tamis_schema_name(run->schema, i));
        }
    if (absent)
        tell_start(run);
    if (run->tally.records == 0 && run->tally.failed == 0)
        complain("no record: %s: give CSV or TSV with a header, or one JSON object a line; see "
                 "--format and --delimiter",
                 run->inputs->root[0].path);
    return run->tally.records && absent < n;
}

static bool commit(struct index_run *run)
{
    struct bytes note = {0};
    tamis_reason reason = {0};
    bool good = inputs_encode(run->inputs, &note) ||
                !complain("out of memory: %s: free some memory and run again", run->path);
    if (good) {
        tamis_error error = tamis_catalog_commit(run->writer, note.data, note.len, &reason);
        good = error == TAMIS_OK;
        if (!good)
            complain_of(error, &reason, run->path);
    }
    free(note.data);
    return good;
}

/* Reads the tasks and writes the catalog. */
static int finish(const struct index *x, struct index_run *run, const struct update *u)
{
    const struct sigaction action = {.sa_handler = interrupt};
    uint64_t records = 0;
    sigaction(SIGINT, &action, NULL); /* not before: one who waits for the lock just ends */
    sigaction(SIGTERM, &action, NULL);
    if (!index_work(run) || (!x->update && !worth_keeping(run)) || !commit(run))
        return TROUBLE;
    for (size_t i = 0; i < run->inputs->n; i++)
        records += run->inputs->entry[i].records;
    tell_passed(run, u);
    report(x, run, x->update ? u : NULL, run->path);
    if (records == 0)
        return complain("no record is left: %s: check its inputs", run->path);
    return run->tally.failed ? TROUBLE : FOUND;
}

/* ---- a new catalog --------------------------------------------------------------------------- */

/* A file that is there must be a catalog, be it damaged: -o before the name of an input is easily
   forgotten. */
static bool may_replace(const char *path)
{
    tamis_kind kind = TAMIS_KIND_NONE;
    tamis_reason reason = {0};
    struct stat st;
    if (stat(path, &st) != 0 || st.st_size == 0)
        return true;
    tamis_error error = tamis_file_kind(path, &kind, &reason);
    if (error == TAMIS_OK && kind == TAMIS_KIND_CATALOG)
        return true;
    if (error == TAMIS_EIO)
        return complain_of(error, &reason, path), false;
    complain("the file exists and is no catalog: %s: give another name after -o", path);
    return false;
}

static bool create(struct index *x, struct index_run *run)
{
    tamis_reason reason = {0};
    uint64_t text = 0;
    for (size_t i = 0; i < run->n_tasks; i++)
        text += text_expected(x->inputs.entry[run->task[i].entry].path, run->task[i].bytes);
    const tamis_catalog_options options = {
        .attributes = x->attrs.list,
        .n_attributes = x->attrs.n,
        .combos = x->attrs.n_combos ? x->attrs.combos : NULL,
        .n_combos = x->attrs.n_combos,
        .no_combos = x->attrs.no_combos,
        .verifier = x->verifier == 1 ? TAMIS_VERIFIER_NONE : TAMIS_VERIFIER_FILTER,
        .fpp = x->fpp,
        .segments = 2 * (text / x->segment) + 50, /* room for updates */
    };
    tamis_error error = tamis_catalog_create(&run->writer, x->out, &options, &reason);
    if (error != TAMIS_OK)
        return complain_of(error, &reason, x->out), false;
    run->schema = tamis_catalog_writer_schema(run->writer);
    return true;
}

static int index_new(struct index *x, const struct words *words)
{
    struct store store;
    struct update update = {0};
    struct index_run run = {
        .inputs = &x->inputs, .path = x->out, .threads = (unsigned)x->threads, .strict = x->strict};
    bool good = find_base(x, x->out);
    run.base = x->base;
    x->known.segment = x->segment;
    x->known.dialect =
        (struct dialect){.format = x->format ? (enum read_format)(x->format - 1) : READ_AUTO,
                         .delimiter = (uint8_t)x->delimiter,
                         .headless = x->headless};
    good = good && set_scope(x, words) && update_plan(&run, &x->known, NULL, &update);
    if (good && run.n_tasks == 0 && run.tally.failed == 0) {
        const struct entry *e = update.passed ? &x->inputs.entry[update.first_passed] : NULL;
        good = !complain("no inputs: %s: no file in it can be read%s%s; see tamis help index",
                         words->word[0], e ? ", for example " : "", e ? e->passed : "");
    }
    int status = TROUBLE;
    if (good && store_lock(&store, x->out, &x->files)) {
        if (may_replace(x->out) && create(x, &run))
            status = finish(x, &run, &update);
        tamis_catalog_abandon(run.writer);
        store_end(&store);
    }
    free(run.task);
    return status;
}

/* ---- an update ------------------------------------------------------------------------------- */

static int update_locked(struct index *x, const struct words *words, tamis_catalog *old,
                         struct index_run *run)
{
    struct update update = {0};
    tamis_reason reason = {0};
    size_t len;
    const void *note = tamis_catalog_note(old, &len);
    tamis_error error = inputs_decode(&x->known, note, len, &reason);
    if (error == TAMIS_OK)
        error = tamis_catalog_update(&run->writer, x->update, NULL, NULL, &reason);
    if (error != TAMIS_OK)
        return complain_of(error, &reason, x->update);
    run->schema = tamis_catalog_writer_schema(run->writer);
    size_t roots = x->known.n_roots, rules = x->known.n_rules;
    bool said = x->forget.n || (x->skip_unknown && !x->known.skip_unknown);
    if (!set_scope(x, words))
        return TROUBLE;
    update.any = said || x->known.n_roots != roots || x->known.n_rules != rules;
    if (!update_plan(run, &x->known, old, &update))
        return TROUBLE;
    if (update.any)
        return finish(x, run, &update);
    report(x, run, &update, x->update);
    return run->tally.failed ? TROUBLE : FOUND;
}

static int index_update(struct index *x, const struct words *words)
{
    struct index_run run = {.inputs = &x->inputs,
                            .path = x->update,
                            .threads = (unsigned)x->threads,
                            .strict = x->strict};
    struct store store;
    tamis_catalog *old = NULL;
    tamis_reason reason = {0};
    int status = TROUBLE;
    if (!find_base(x, x->update) || !store_lock(&store, x->update, &x->files))
        return TROUBLE;
    run.base = x->base;
    tamis_error error = tamis_catalog_open(&old, x->update, NULL, &reason);
    if (error != TAMIS_OK)
        complain_of(error, &reason, x->update);
    else
        status = update_locked(x, words, old, &run);
    tamis_catalog_abandon(run.writer);
    tamis_catalog_close(old);
    store_end(&store);
    free(run.task);
    return status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static bool options_fit(struct index *x, const struct words *words)
{
    if (!x->update && x->forget.n)
        return complain("no catalog to forget it: --forget %s: give --update CATALOG",
                        x->forget.text[0]),
               false;
    bool shaped = x->attrs_text || x->combos.n || x->fpp > 0 || x->format || x->verifier ||
                  x->segment || x->delimited || x->headless;
    if (x->update && x->out)
        return complain("two catalogs: -o and --update: give one of them"), false;
    if (x->update && shaped)
        return complain("options for a new catalog: --update %s: they do not apply to one that "
                        "exists; make a new one with -o",
                        x->update),
               false;
    if (!x->update && !x->out)
        return complain("no catalog: -o: say where to write it"), false;
    if (!x->update && !x->attrs_text)
        return complain("no attributes: --attrs: name those to ask for, such as ip,user"), false;
    if (!x->update && words->n == 0)
        return complain("no inputs: INPUT: give files or folders"), false;
    if (x->segment && (x->segment < SEGMENT_MIN || x->segment > SEGMENT_MAX))
        return complain("wrong value '%llu': --segment: give 64 to 1Gi",
                        (unsigned long long)x->segment),
               false;
    if (x->delimited && (x->delimiter == '\n' || x->delimiter == '\r' || x->delimiter == '"'))
        return complain("it cannot part columns: --delimiter: give another byte"), false;
    if (x->threads > 256)
        return complain("too many threads: --threads: give at most 256"), false;
    x->segment = x->segment ? x->segment : SEGMENT;
    if (x->threads == 0)
        x->threads = processors();
    return true;
}

/* What an interrupted program leaves is what was there; the shell is told how it ended. */
static int end_interrupted(int status)
{
    if (index_interrupted) {
        signal(index_interrupted, SIG_DFL);
        raise(index_interrupted);
    }
    return status;
}

int verb_index(int argc, char **argv)
{
    struct index x = {.start = seconds()};
    const struct arg args[] = {
        ARG("output", 'o', ARG_TEXT, &x.out),
        ARG("update", 0, ARG_TEXT, &x.update),
        ARG("attrs", 0, ARG_TEXT, &x.attrs_text),
        ARG("combo", 0, ARG_TEXTS, &x.combos),
        ARG("fpp", 0, ARG_RATE, &x.fpp),
        ARG_ONE_OF("verifier", &x.verifier, "none|filter"),
        ARG_ONE_OF("format", &x.format, READ_FORMAT_NAMES),
        ARG_GIVEN("delimiter", ARG_BYTE, &x.delimiter, &x.delimited),
        ARG("no-header", 0, ARG_FLAG, &x.headless),
        ARG("segment", 0, ARG_COUNT, &x.segment),
        ARG("threads", 'j', ARG_COUNT, &x.threads),
        ARG("include", 0, ARG_TEXTS, &x.include),
        ARG("exclude", 0, ARG_TEXTS, &x.exclude),
        ARG("append-only", 0, ARG_TEXTS, &x.append_only),
        ARG("skip-unknown", 0, ARG_FLAG, &x.skip_unknown),
        ARG("forget", 0, ARG_TEXTS, &x.forget),
        ARG("strict", 0, ARG_FLAG, &x.strict),
        ARG("json", 0, ARG_FLAG, &x.json),
        ARG("verbose", 'v', ARG_FLAG, &x.verbose),
        STORE_WRITE_ARG(x.files),
    };
    struct words words;
    enum args_outcome outcome = args_read(argc, argv, args, COUNT(args), &words);
    if (outcome != ARGS_READ)
        return outcome == ARGS_HELPED ? FOUND : TROUBLE;
    if (!options_fit(&x, &words) ||
        (x.attrs_text && !attrs_read(&x.attrs, x.attrs_text, &x.combos)))
        return TROUBLE;
    int status = x.update ? index_update(&x, &words) : index_new(&x, &words);
    attrs_free(&x.attrs);
    inputs_free(&x.inputs);
    inputs_free(&x.known);
    free(x.base);
    return end_interrupted(status);
}
