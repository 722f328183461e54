/* tamis index: makes a catalog of files of records, and updates it. */
#define _GNU_SOURCE
#include "index_choose.h"
#include "index_verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fleet/fleet.h"
#include "ui/args.h"
#include "read/attrs.h"
#include "ui/progress.h"
#include "ui/stop.h"
#include "sets/set_file.h"

#define SEGMENT     ((uint64_t)8 << 20)
#define SEGMENT_MIN 64
#define SEGMENT_MAX ((uint64_t)1 << 30)

struct index {
    struct index_run run;
    struct update plan;
    const char *out, *update, *attrs_text, *pattern, *records, *time, *zone;
    char *beside; /* INPUT.tamis */
    struct texts combos, include, exclude, append_only, forget;
    struct attrs attrs;
    double fpp;
    unsigned format, verifier;
    uint64_t segment;
    char delimiter;
    bool delimited, headless, json, verbose, skip_unknown, newly_skipped, reread;
    char here[256]; /* time zone of this machine */
    struct store_options files;
    struct fleet_publishing publish;
    struct inputs known, inputs; /* as they were, and as they will be */
    double start;
};

/* ---- inputs ---------------------------------------------------------------------------------- */

/* The same name, or two names of one folder or file; two hard links are two files. */
static bool same_root(const struct index *x, const char *known, const char *path,
                      const struct stat *st)
{
    struct stat other;
    if (strcmp(known, path) == 0)
        return true;
    char *opened = base_join(x->run.base, known);
    bool same = opened && stat(opened, &other) == 0 && other.st_dev == st->st_dev &&
                other.st_ino == st->st_ino && (S_ISDIR(st->st_mode) || st->st_nlink == 1);
    free(opened);
    return same;
}

/* A name from the command line becomes a root, named relative to the catalog's folder. */
static bool add_root(struct index *x, const char *given)
{
    struct stat st;
    if (strcmp(given, "-") == 0)
        return refuse("not a file: -: an input must be a file or folder, to be read again");
    if (stat(given, &st) != 0)
        return refuse("%s: %s: give files or folders", strerror(errno), given);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return refuse("not a file: %s: an input must be a file or folder, to be read again", given);
    char *path = base_call(x->run.base, given);
    for (size_t i = 0; path && i < x->known.n_roots; i++)
        if (same_root(x, x->known.root[i].path, path, &st)) {
            free(path);
            return true;
        }
    if (owned_adopt(&x->known.own, path) && inputs_add_root(&x->known, path, S_ISDIR(st.st_mode)))
        return true;
    return no_memory(given);
}

static bool find_base(struct index *x, const char *catalog)
{
    char *here = base_of(catalog, &x->run.base) ? base_call(x->run.base, ".") : NULL;
    bool found = here != NULL;
    free(here);
    if (found)
        return true;
    return refuse("%s: %s: check the name of its folder", strerror(errno), catalog);
}

/* A root that was given before, found by its earlier or its present name, or another one of it. */
static bool forget_root(struct index *x, const char *given)
{
    struct stat st;
    char *path = base_call(x->run.base, given);
    uint32_t i = 0;
    if (stat(given, &st) != 0)
        st = (struct stat){0}; /* it is gone */
    while (i < x->known.n_roots && strcmp(x->known.root[i].path, given) != 0 &&
           !(path && same_root(x, x->known.root[i].path, path, &st)))
        i++;
    free(path);
    if (i == x->known.n_roots)
        return refuse("not an input that was given: --forget %s: see tamis info --inputs", given);
    inputs_forget(&x->known, i);
    return true;
}

static bool add_rules(struct index *x, const struct texts *globs, enum rule_kind kind)
{
    for (size_t i = 0; i < globs->n; i++)
        if (!inputs_add_rule(&x->known, kind, globs->text[i]))
            return no_memory("inputs");
    return true;
}

/* Combines the stored settings with the present options. */
static bool set_scope(struct index *x, const struct words *words)
{
    struct inputs *known = &x->known, *in = &x->inputs;
    bool good = add_rules(x, &x->include, RULE_INCLUDE) &&
                add_rules(x, &x->exclude, RULE_EXCLUDE) &&
                add_rules(x, &x->append_only, RULE_APPEND_ONLY);
    x->newly_skipped = x->skip_unknown && !known->skip_unknown;
    known->skip_unknown |= x->skip_unknown;
    for (size_t i = 0; good && i < x->forget.n; i++)
        good = forget_root(x, x->forget.text[i]);
    for (size_t i = 0; good && i < words->n; i++)
        good = add_root(x, words->word[i]);
    if (good && known->n_roots == 0)
        good = refuse("no input is left: --forget: remove the catalog instead");
    in->dialect = known->dialect;
    in->segment = known->segment;
    in->next_id = known->next_id;
    in->skip_unknown = known->skip_unknown;
    in->chosen = known->chosen;
    for (size_t i = 0; good && i < known->n_roots; i++)
        good = inputs_add_root(in, known->root[i].path, known->root[i].folder);
    for (size_t i = 0; good && i < known->n_rules; i++)
        good = inputs_add_rule(in, known->rule[i].kind, known->rule[i].glob);
    for (size_t i = 0; good && i < known->n_fields; i++)
        good = inputs_add_field(in, known->field[i].name, known->field[i].type);
    return good;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool commit(const struct index_run *run)
{
    struct bytes note = {0};
    tamis_reason reason = {0};
    bool good = inputs_encode(run->inputs, &note) || no_memory(run->path);
    good = good && (!run->publisher || publisher_save(run->publisher, note.data, note.len));
    good = good && succeeded(tamis_catalog_commit(run->writer, note.data, note.len, &reason),
                             &reason, run->path);
    free(note.data);
    return good;
}

/* Reads the tasks and writes the catalog. */
static int finish(struct index *x)
{
    struct index_run *run = &x->run;
    uint64_t records = 0;
    /* not before: while waiting for the lock, a signal simply ends the program */
    stop_catch();
    for (size_t i = 0; run->publisher && i < run->n_tasks; i++)
        publisher_covers(run->publisher, run->inputs->entry[run->task[i].entry].id);
    if (!index_work(run) || (!x->update && !index_worth_keeping(run)) || !commit(run))
        return TROUBLE;
    for (size_t i = 0; i < run->inputs->n; i++)
        records += run->inputs->entry[i].count.records;
    index_tell_passed(run, &x->plan);
    index_report(run, x->update ? &x->plan : NULL, x->json, x->verbose, seconds() - x->start);
    if (run->publisher &&
        !publisher_send(run->publisher, run->schema, run->inputs, run->tally.failed))
        return TROUBLE;
    if (records == 0)
        return complain("no record is left: %s: check its inputs", run->path);
    return run->tally.failed ? TROUBLE : FOUND;
}

/* Summaries of what this run reads, if they are to be published: of everything, unless the
   earlier ones are of exactly this catalog. */
static bool publishing_open(struct index *x, const void *note, size_t len)
{
    bool all;
    if (!x->publish.url)
        return true;
    x->run.publisher = publisher_open(&x->publish, x->run.path, note, len, &all);
    x->reread |= x->run.publisher && all && x->update;
    return x->run.publisher != NULL;
}

/* ---- a new catalog --------------------------------------------------------------------------- */

/* An existing file must be a catalog, damaged or not: -o before the name of an input is easily
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
        return succeeded(error, &reason, path);
    return refuse("the file exists and is not a catalog: %s: give another name after -o", path);
}

static uint64_t text_of(const struct index_run *run)
{
    uint64_t text = 0;
    for (size_t i = 0; i < run->n_tasks; i++)
        text += text_expected(run->inputs->entry[run->task[i].entry].path, run->task[i].bytes);
    return text;
}

/* Chooses the attributes if none are given, and the types that are not given. */
static bool choose(struct index *x)
{
    const struct index_run *run = &x->run;
    size_t *entries = calloc(run->n_tasks + 1, sizeof *entries);
    if (!entries)
        return no_memory("inputs");
    for (size_t i = 0; i < run->n_tasks; i++)
        entries[i] = run->task[i].entry;
    for (size_t i = 0; x->time && i < x->attrs.n; i++)
        if (strcmp(x->attrs.names[i], x->time) == 0) {
            x->attrs.list[i].type = TAMIS_TIME;
            x->attrs.typed[i] = true;
        }
    bool good = choose_attributes(&x->inputs, x->run.base, entries, run->n_tasks, text_of(run),
                                  &x->attrs, x->verbose);
    free(entries);
    if (good && run->publisher)
        choose_times(&x->inputs, &x->attrs);
    return good;
}

/* There is a writer; `anew`: all inputs are read. */
static bool begin(struct index_run *run, bool anew)
{
    run->schema = tamis_catalog_writer_schema(run->writer);
    return !run->publisher || publisher_start(run->publisher, run->schema, run->inputs, anew);
}

/* A new file; with the key of an old one that it replaces. */
static bool create(struct index *x, const uint8_t *key, tamis_hash hash)
{
    struct index_run *run = &x->run;
    tamis_reason reason = {0};
    uint8_t joined[TAMIS_KEY_LEN];
    if (run->publisher && publisher_key(run->publisher, joined, &hash))
        key = joined;
    const tamis_catalog_options options = {
        .attributes = x->attrs.list,
        .n_attributes = x->attrs.n,
        .combos = x->attrs.n_combos ? x->attrs.combos : NULL,
        .n_combos = x->attrs.n_combos,
        .no_combos = x->attrs.no_combos,
        .verifier = x->verifier == 1 ? TAMIS_VERIFIER_NONE : TAMIS_VERIFIER_FILTER,
        .fpp = x->fpp,
        .key = key,
        .hash = hash,
        .segments = 2 * (text_of(run) / x->segment) + 50, /* room for updates */
    };
    tamis_error error = tamis_catalog_create(&run->writer, x->out, &options, &reason);
    explicit_bzero(joined, sizeof joined);
    return succeeded(error, &reason, x->out) && begin(run, true);
}

/* Reported once, before the inputs are read; each of them would refuse it. */
static bool pattern_is_valid(const char *pattern)
{
    const struct dialect dialect = {.format = READ_PATTERN, .pattern = pattern};
    const char *whole = READ_WHOLE;
    struct selection *selection = NULL;
    tamis_reason reason = {0};
    tamis_error error =
        pattern ? selection_new(&selection, &dialect, &whole, 1, NULL, 0, &reason) : TAMIS_OK;
    selection_free(selection);
    return error == TAMIS_OK || refuse("%s: see man pcre2pattern", reason.text);
}

static int index_new(struct index *x, const struct words *words)
{
    struct store store;
    bool good = find_base(x, x->out);
    x->known.segment = x->segment;
    x->known.chosen = !x->attrs_text;
    time_zone_here(x->here, sizeof x->here);
    x->known.dialect = (struct dialect){.format = x->format    ? (enum read_format)(x->format - 1)
                                                  : x->pattern ? READ_PATTERN
                                                  : x->records ? READ_JSON
                                                               : READ_AUTO,
                                        .delimiter = (uint8_t)x->delimiter,
                                        .headless = x->headless,
                                        .pattern = x->pattern,
                                        .records = x->records,
                                        .time = x->time,
                                        .zone = x->zone ? x->zone : x->here};
    good = good && pattern_is_valid(x->pattern) && set_scope(x, words) &&
           update_plan(&x->run, &x->known, NULL, &x->plan) && publishing_open(x, NULL, 0);
    if (good && x->run.n_tasks == 0 && x->run.tally.failed == 0) {
        const struct entry *e = x->plan.passed ? &x->inputs.entry[x->plan.first_passed] : NULL;
        good = refuse("no inputs: %s: no file in it can be read%s%s; see tamis help index",
                      words->word[0], e ? ", for example " : "", e ? e->passed : "");
    }
    int status = TROUBLE;
    if (good && choose(x) && store_lock(&store, x->out, &x->files)) {
        if (may_replace(x->out) && create(x, NULL, 0))
            status = finish(x);
        tamis_catalog_abandon(x->run.writer);
        store_end(&store);
    }
    return status;
}

/* ---- an update ------------------------------------------------------------------------------- */

/* The writer, with new attributes. */
static bool start_update(struct index_run *run)
{
    struct index *x = PART_OF(run, struct index, run);
    tamis_reason reason = {0};
    if (run->n_tasks && !choose(x))
        return false;
    const struct attrs *a = &x->attrs;
    const tamis_catalog_options more = {.attributes = a->list + a->n_known,
                                        .n_attributes = a->n - a->n_known,
                                        .combos = a->combos,
                                        .n_combos = a->n_combos,
                                        .no_combos = a->n_combos == 0};
    tamis_error error = tamis_catalog_update(
        &run->writer, x->update, NULL, more.n_attributes || more.n_combos ? &more : NULL, &reason);
    return succeeded(error, &reason, x->update) && begin(run, false);
}

/* --reread: everything again, with the original options. */
static int reread(struct index *x, const tamis_catalog *old)
{
    uint8_t key[TAMIS_KEY_LEN];
    tamis_catalog_facts facts;
    const tamis_schema *schema = tamis_catalog_schema(old);
    uint64_t combo;
    bool keyed = tamis_catalog_key(old, key);
    int status = TROUBLE;
    tamis_catalog_info(old, &facts);
    if (x->inputs.chosen && !x->attrs_text)
        x->attrs = (struct attrs){0};
    for (uint32_t i = 0; x->attrs.n && (combo = tamis_schema_combo(schema, i)) != 0; i++)
        x->attrs.combos[x->attrs.n_combos++] = combo;
    x->attrs.no_combos = x->attrs.n && !x->attrs.n_combos;
    x->known.n = x->inputs.n_fields = 0;
    x->fpp = facts.fpp;
    x->verifier = facts.verifier == TAMIS_VERIFIER_NONE ? 1 : 0;
    x->segment = x->inputs.segment;
    x->out = x->update;
    if (update_plan(&x->run, &x->known, NULL, &x->plan) && choose(x) &&
        create(x, keyed ? key : NULL, facts.hash))
        status = finish(x);
    explicit_bzero(key, sizeof key);
    return status;
}

static int update_locked(struct index *x, const struct words *words, tamis_catalog *old)
{
    struct index_run *run = &x->run;
    tamis_reason reason = {0};
    size_t len;
    const void *note = tamis_catalog_note(old, &len);
    if (!succeeded(inputs_decode(&x->known, note, len, &reason), &reason, x->update) ||
        !inputs_zone(&x->known, x->update))
        return TROUBLE;
    size_t roots = x->known.n_roots, rules = x->known.n_rules;
    attrs_known(&x->attrs, tamis_catalog_schema(old));
    if (!set_scope(x, words) || !attrs_read(&x->attrs, x->attrs_text, &x->combos))
        return TROUBLE;
    if (!publishing_open(x, note, len))
        return TROUBLE;
    if (x->reread)
        return reread(x, old);
    x->plan.any = x->forget.n || x->known.n_roots != roots || x->known.n_rules != rules ||
                  x->attrs.n > x->attrs.n_known || x->attrs.n_combos || x->newly_skipped;
    run->start = start_update;
    if (!update_plan(run, &x->known, old, &x->plan))
        return TROUBLE;
    if (x->plan.any)
        return finish(x);
    index_report(run, &x->plan, x->json, x->verbose, seconds() - x->start);
    if (run->publisher &&
        !publisher_send(run->publisher, tamis_catalog_schema(old), run->inputs, run->tally.failed))
        return TROUBLE;
    return run->tally.failed ? TROUBLE : FOUND;
}

static int index_update(struct index *x, const struct words *words)
{
    struct store store;
    tamis_catalog *old = NULL;
    tamis_reason reason = {0};
    int status = TROUBLE;
    if (!find_base(x, x->update) || !store_lock(&store, x->update, &x->files))
        return TROUBLE;
    if (succeeded(tamis_catalog_open(&old, x->update, NULL, &reason), &reason, x->update))
        status = update_locked(x, words, old);
    tamis_catalog_abandon(x->run.writer);
    tamis_catalog_close(old);
    store_end(&store);
    return status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Was an option given that only applies to a new catalog? */
static bool is_shaped(const struct index *x)
{
    return x->fpp > 0 || x->format || x->verifier || x->segment || x->delimited || x->headless ||
           x->pattern || x->records || x->time || x->zone;
}

static bool name_beside(struct index *x, const char *input)
{
    if (!catalog_beside(input, &x->beside))
        return refuse("no name for the catalog: %s: give one with -o", input);
    return x->beside || no_memory(input);
}

/* The catalog meant; an existing one is updated, unless a new one is requested. */
static bool name_catalog(struct index *x, const struct words *words)
{
    tamis_kind kind = TAMIS_KIND_NONE;
    if (x->update)
        return (x->update = x->beside = catalog_meant(x->update)) != NULL;
    if (!x->out && words->n > 1)
        return refuse("no name for the catalog: several inputs: give one with -o");
    if (!x->out && !name_beside(x, words->word[0]))
        return false;
    x->out = x->out ? x->out : x->beside;
    if (!is_shaped(x) && !x->attrs_text && !x->combos.n &&
        tamis_file_kind(x->out, &kind, NULL) == TAMIS_OK && kind == TAMIS_KIND_CATALOG) {
        x->update = x->out;
        x->out = NULL;
    }
    return true;
}

static bool options_fit(struct index *x, const struct words *words)
{
    if (!x->update && x->forget.n)
        return refuse("no catalog to forget it: --forget %s: give --update CATALOG",
                      x->forget.text[0]);
    bool shaped = is_shaped(x);
    if (x->update && x->out)
        return refuse("two catalogs: -o and --update: give one of them");
    if (x->update && shaped)
        return refuse("options for a new catalog: --update %s: they do not apply to one that "
                      "exists; make a new one with -o",
                      x->update);
    if (!x->update && words->n == 0)
        return refuse("no inputs: INPUT: give files or folders");
    if (!x->update && x->combos.n && !x->attrs_text)
        return refuse("no attributes: --combo %s: name them with --attrs", x->combos.text[0]);
    if (!x->publish.url != !x->publish.host)
        return refuse("--publish ADDRESS and --as HOST belong together: give both");
    if (!x->publish.url && (x->publish.day || x->publish.keep || x->publish.seal))
        return refuse("nothing is published: --day, --keep, --seal: give --publish and --as");
    if (x->publish.host && !host_valid(x->publish.host))
        return refuse("not a name of a host: --as %s: give letters, digits, '.', '_' and '-', a "
                      "letter or digit first",
                      x->publish.host);
    if (x->reread && !x->update)
        return refuse("no catalog to read again: --reread: give --update CATALOG");
    if (x->segment && (x->segment < SEGMENT_MIN || x->segment > SEGMENT_MAX))
        return refuse("wrong value '%llu': --segment: give 64 to 1Gi",
                      (unsigned long long)x->segment);
    if (x->zone && !time_zone_known(x->zone))
        return refuse(
            "unknown time zone: --tz %s: give a name such as Europe/Paris; install tzdata "
            "if this is one",
            x->zone);
    if (x->delimited && (x->delimiter == '\n' || x->delimiter == '\r' || x->delimiter == '"'))
        return refuse("not a valid separator: --delimiter: give another byte");
    x->segment = x->segment ? x->segment : SEGMENT;
    return threads_settle(&x->run.threads);
}

int verb_index(int argc, char **argv)
{
    struct index x = {.start = seconds(), .publish = {.now = time(NULL)}};
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
        ARG("threads", 'j', ARG_COUNT, &x.run.threads),
        ARG("include", 0, ARG_TEXTS, &x.include),
        ARG("exclude", 0, ARG_TEXTS, &x.exclude),
        ARG("append-only", 0, ARG_TEXTS, &x.append_only),
        ARG("skip-unknown", 0, ARG_FLAG, &x.skip_unknown),
        ARG("forget", 0, ARG_TEXTS, &x.forget),
        ARG("reread", 0, ARG_FLAG, &x.reread),
        ARG("pattern", 0, ARG_TEXT, &x.pattern),
        ARG("records", 0, ARG_TEXT, &x.records),
        ARG("time", 0, ARG_TEXT, &x.time),
        ARG("tz", 0, ARG_TEXT, &x.zone),
        ARG("strict", 0, ARG_FLAG, &x.run.strict),
        ARG("publish", 0, ARG_TEXT, &x.publish.url),
        ARG("as", 0, ARG_TEXT, &x.publish.host),
        ARG("day", 0, ARG_TEXT, &x.publish.day),
        ARG("keep", 0, ARG_COUNT, &x.publish.keep),
        ARG("seal", 0, ARG_TEXT, &x.publish.seal),
        ARG("json", 0, ARG_FLAG, &x.json),
        ARG("verbose", 'v', ARG_FLAG, &x.verbose),
        STORE_WRITE_ARG(x.files),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (!options_fit(&x, &words) || !name_catalog(&x, &words) ||
        (!x.update && !attrs_read(&x.attrs, x.attrs_text, &x.combos)))
        return TROUBLE;
    x.run.inputs = &x.inputs;
    x.run.path = x.update ? x.update : x.out;
    int status = x.update ? index_update(&x, &words) : index_new(&x, &words);
    publisher_close(x.run.publisher);
    attrs_free(&x.attrs);
    inputs_free(&x.inputs);
    inputs_free(&x.known);
    free(x.run.base);
    free(x.run.task);
    free(x.beside);
    stop_obey(); /* everything is as it was */
    return status;
}
