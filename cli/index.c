/* tamis index: a catalog of files of records, made and kept up to date. */
#define _GNU_SOURCE
#include "index.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "attrs.h"
#include "out.h"
#include "report.h"
#include "store.h"

#define SEGMENT     ((uint64_t)8 << 20)
#define SEGMENT_MIN 64
#define SEGMENT_MAX ((uint64_t)1 << 30)

struct index {
    const char *out, *update, *attrs_text;
    struct texts combos;
    struct attrs attrs;
    double fpp;
    unsigned format, verifier;
    uint64_t segment, threads;
    char delimiter;
    bool delimited, headless, strict, json, verbose;
    struct store_options files;
    struct inputs inputs;
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
    for (size_t i = 0; path && i < x->inputs.n_roots; i++)
        if (same_root(x, x->inputs.root[i].path, path, &st)) {
            free(path);
            return true;
        }
    if (inputs_adopt(&x->inputs, path) && inputs_add_root(&x->inputs, path, S_ISDIR(st.st_mode)))
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

bool find_names(struct index_run *run, struct names *names)
{
    if (!names_walk(names, run->inputs, run->base))
        return false;
    for (size_t i = 0; i < names->shut.n; i++)
        run->tally.failed += name_hides(&names->shut.name[i]);
    bool stop = run->strict && run->tally.failed;
    names_tell_shut(names, run->base, stop ? "nothing was changed" : "its files are not found");
    return !stop;
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

bool plan_new(struct index_run *run, uint32_t root, const char *path)
{
    struct stat st;
    struct inputs *in = run->inputs;
    struct entry *e = inputs_add(in);
    const char *kept = e ? inputs_keep(in, path) : NULL;
    char *opened = kept ? base_join(run->base, kept) : NULL;
    if (!opened)
        return complain("out of memory: inputs: free some memory and run again"), false;
    uint64_t bytes = stat(opened, &st) == 0 ? (uint64_t)st.st_size : 0;
    free(opened);
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
        report_count("inputs", "", run->inputs->n);
        report_count("read", "", t->inputs);
        if (u) {
            report_count("new", "", u->fresh);
            report_count("changed", "", u->changed);
            report_count("grown", "", u->grown);
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
            remark("%zu new, %zu changed, %zu grown, %zu removed, %zu as before", u->fresh,
                   u->changed, u->grown, u->gone, u->same);
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

/* A name that nothing has is a slip of the pen, most often, and text without any record is of
   another form. */
static void name_absent(const struct index_run *run)
{
    uint64_t bytes = 0;
    bool absent = false;
    for (size_t i = 0; i < run->inputs->n; i++)
        bytes += run->inputs->entry[i].size;
    if (run->tally.records == 0 && bytes)
        remark("no record: %s: give CSV or TSV with a header, or one JSON object a line; see "
               "--format and --delimiter",
               run->inputs->root[0].path);
    for (uint32_t i = 0; run->tally.records && i < tamis_schema_attributes(run->schema); i++)
        if (!(run->tally.present >> i & 1)) {
            remark("no record has the attribute: %s: check the names in --attrs, and --delimiter",
                   tamis_schema_name(run->schema, i));
            absent = true;
        }
    if (absent)
        tell_start(run);
}

/* Reads the tasks and writes the catalog. */
static int finish(const struct index *x, struct index_run *run, const struct update *u,
                  const char *path)
{
    struct bytes note = {0};
    tamis_reason reason = {0};
    const struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL); /* not before: one who waits for the lock just ends */
    sigaction(SIGTERM, &action, NULL);
    bool good = index_work(run);
    if (good && !inputs_encode(run->inputs, &note))
        good = !complain("out of memory: %s: free some memory and run again", path);
    if (good) {
        tamis_error error = tamis_catalog_commit(run->writer, note.data, note.len, &reason);
        good = error == TAMIS_OK;
        if (!good)
            complain_of(error, &reason, path);
    }
    free(note.data);
    if (!good)
        return TROUBLE;
    if (!u)
        name_absent(run);
    report(x, run, u, path);
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
    struct names names = {0};
    struct store store;
    struct index_run run = {
        .inputs = &x->inputs, .path = x->out, .threads = (unsigned)x->threads, .strict = x->strict};
    bool good = find_base(x, x->out);
    run.base = x->base;
    x->inputs.segment = x->segment;
    x->inputs.dialect =
        (struct dialect){.format = x->format ? (enum read_format)(x->format - 1) : READ_AUTO,
                         .delimiter = (uint8_t)x->delimiter,
                         .headless = x->headless};
    for (size_t i = 0; good && i < words->n; i++)
        good = add_root(x, words->word[i]);
    good = good && find_names(&run, &names);
    if (good && names.files.n == 0)
        good = !complain("no inputs: %s: no file in it is called .csv, .tsv, .tab, .jsonl, .ndjson "
                         "or .json (.1 or a date and .gz or .zst may follow); others are read if "
                         "named",
                         words->word[0]);
    for (size_t i = 0; good && i < names.files.n; i++)
        good = plan_new(&run, names.files.name[i].root, names.files.name[i].path);
    names_free(&names);
    int status = TROUBLE;
    if (good && store_lock(&store, x->out, &x->files)) {
        if (may_replace(x->out) && create(x, &run))
            status = finish(x, &run, NULL, x->out);
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
    struct inputs known;
    struct update update = {0};
    tamis_reason reason = {0};
    size_t len;
    const void *note = tamis_catalog_note(old, &len);
    tamis_error error = inputs_decode(&known, note, len, &reason);
    if (error == TAMIS_OK)
        error = tamis_catalog_update(&run->writer, x->update, NULL, &reason);
    if (error != TAMIS_OK) {
        inputs_free(&known);
        return complain_of(error, &reason, x->update);
    }
    run->schema = tamis_catalog_writer_schema(run->writer);
    x->inputs.dialect = known.dialect;
    x->inputs.segment = known.segment;
    x->inputs.next_id = known.next_id;
    bool good = true;
    for (size_t i = 0; good && i < known.n_roots; i++)
        good = inputs_add_root(&x->inputs, known.root[i].path, known.root[i].folder);
    for (size_t i = 0; good && i < words->n; i++)
        good = add_root(x, words->word[i]);
    good = good && update_plan(run, &known, old, &update);
    int status = TROUBLE;
    if (good && !update.any && x->inputs.n_roots == known.n_roots) {
        report(x, run, &update, x->update);
        status = run->tally.failed ? TROUBLE : FOUND;
    } else if (good) {
        status = finish(x, run, &update, x->update);
    }
    inputs_free(&known);
    return status;
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
    if (x->threads == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        x->threads = cores < 1 ? 1 : cores > 256 ? 256 : (uint64_t)cores;
    }
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
        ARG_ONE_OF("format", &x.format, "auto|csv|tsv|jsonl"),
        ARG_GIVEN("delimiter", ARG_BYTE, &x.delimiter, &x.delimited),
        ARG("no-header", 0, ARG_FLAG, &x.headless),
        ARG("segment", 0, ARG_COUNT, &x.segment),
        ARG("threads", 'j', ARG_COUNT, &x.threads),
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
    free(x.base);
    return end_interrupted(status);
}
