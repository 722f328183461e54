/* tamis add, remove, check: adds, removes and queries keys of a filter, or records. */
#include <string.h>

#include "ui/args.h"
#include "ui/cli.h"
#include "read/keys.h"
#include "ui/out.h"
#include "read/record_input.h"
#include "set_file.h"

/* What the three verbs share: a file, options, keys or records. */
struct key_job {
    struct keys keys;
    struct records records;
    struct store_options files;
    struct store store;
    bool json, verbose, removing;
    tamis_error error;
    uint64_t n, done; /* keys read; keys added, removed or found */
    uint64_t pending;
};

#define JOB_ARGS(job) KEYS_ARGS((job).keys), RECORDS_ARGS((job).records), STORE_KEY_ARG((job).files)

/* Options for keys are mistakes with records, and vice versa. */
static bool job_settle(struct key_job *job, const struct words *words)
{
    struct records *r = &job->records;
    if (!store_has_records(&job->store)) {
        const char *wrong = r->format     ? "--format"
                            : r->headless ? "--no-header"
                            : r->attrs    ? "--attrs"
                                          : NULL;
        if (wrong)
            return refuse("only for records: %s: %s is a filter and takes keys", wrong,
                          job->store.path);
        return keys_settle(&job->keys, words->word + 1, words->n - 1);
    }
    const char *wrong = job->keys.by_field ? "--field" : job->keys.zero ? "--null" : NULL;
    if (wrong)
        return refuse("only for keys: %s: %s holds records", wrong, job->store.path);
    r->word = words->word + 1;
    r->n_words = words->n - 1;
    r->strict = job->keys.strict;
    r->delimited = job->keys.delimited;
    r->delimiter = job->keys.delimiter;
    return true;
}

/* Reads the options and opens the file; false after complaining. */
static bool job_begin(struct key_job *job, int argc, char **argv, const struct arg *args, size_t n,
                      bool changes)
{
    struct words words = args_read(argc, argv, args, n);
    if (words.n == 0)
        return refuse("no file: FILE: name the filter, then keys, or pass keys on standard input");
    if (!(changes ? store_change(&job->store, words.word[0], TAMIS_KIND_NONE, &job->files)
                  : store_ask(&job->store, words.word[0], &job->files)))
        return false;
    if (job_settle(job, &words))
        return true;
    store_end(&job->store);
    return false;
}

static const char *things(const struct key_job *job)
{
    return store_has_records(&job->store) ? "records" : "keys";
}

/* ---- add and remove -------------------------------------------------------------------------- */

/* The outcome for each key or record that was to be changed. */
static bool changed(struct key_job *job, const uint8_t *outcomes, size_t done)
{
    job->n += done;
    for (size_t i = 0; i < done; i++) {
        job->done += job->removing ? outcomes[i] == TAMIS_REMOVED : outcomes[i];
        job->pending += job->removing && outcomes[i] == TAMIS_PENDING;
    }
    return job->error == TAMIS_OK;
}

static bool change_batch(void *context, struct batch *b)
{
    struct key_job *job = context;
    tamis_filter *f = as_filter(job->store.set);
    uint16_t who[KEYS_BATCH];
    size_t n = b->n_none ? batch_pack(b, who) : b->n, done = 0;
    job->error = job->removing ? tamis_filter_remove_many(f, b->digest, n, b->mark, &done)
                               : tamis_filter_add_many(f, b->digest, n, b->mark, &done);
    return changed(job, b->mark, done);
}

static bool change_records(void *context, struct record_batch *b)
{
    struct key_job *job = context;
    tamis_records *r = as_records(job->store.set);
    size_t done = 0;
    job->error = job->removing ? tamis_records_remove_many(r, b->digest, b->n, b->mark, &done)
                               : tamis_records_add_many(r, b->digest, b->n, b->mark, &done);
    return changed(job, b->mark, done);
}

static int complain_change(const struct key_job *job)
{
    const char *path = job->store.path,
               *kind = store_has_records(&job->store) ? "set of records" : "filter";
    if (job->error == TAMIS_EFULL)
        return complain(
            "the %s is full: %s: %llu %s went in before, none was saved; make a larger one "
            "(--capacity), one that grows (--growth), or allow --overfill",
            kind, path, (unsigned long long)job->n, things(job));
    if (job->error == TAMIS_EKIND)
        return complain("it is not deletable: %s: make one with create --deletable", path);
    return complain_of(job->error, NULL, path);
}

/* An add has no pending keys, and its others were members already. */
static void report_change(const struct key_job *job)
{
    unsigned long long n = job->n, done = job->done, pending = job->pending,
                       others = n - done - pending;
    if (job->verbose && job->removing)
        remark("%llu %s: %s: %llu removed, %llu pending, %llu absent", n, things(job),
               job->store.path, done, pending, others);
    else if (job->verbose)
        remark("%llu %s: %s: %llu added, %llu seemed to be members already", n, things(job),
               job->store.path, done, others);
    if (!job->json)
        return;
    json_open(NULL, '{');
    json_count(things(job), n);
    json_count(job->removing ? "removed" : "added", done);
    if (job->removing)
        json_count("pending", pending);
    json_count(job->removing ? "absent" : "already", others);
    if (store_has_records(&job->store))
        json_count("bad", job->records.bad);
    json_close();
}

int verb_change_keys(int argc, char **argv)
{
    bool removing = strcmp(argv[0], "remove") == 0;
    struct key_job job = {.keys = KEYS_DEFAULT, .removing = removing};
    const struct arg args[] = {
        JOB_ARGS(job),
        STORE_WRITE_ARG(job.files),
        ARG("json", 0, ARG_FLAG, &job.json),
        ARG("verbose", 'v', ARG_FLAG, &job.verbose),
    };
    if (!job_begin(&job, argc, argv, args, COUNT(args), true))
        return TROUBLE;
    const struct work keys = {as_filter(job.store.set), NULL, change_batch, &job};
    const struct records_work records = {as_records(job.store.set), false, change_records, NULL,
                                         &job};
    int status = store_has_records(&job.store) ? records_run(&job.records, &records)
                                               : keys_run(&job.keys, &keys);
    bool any = removing ? job.done + job.pending > 0 : job.n > 0;
    if (job.error != TAMIS_OK)
        status = complain_change(&job);
    if (status == FOUND && any && !store_save(&job.store, 0))
        status = TROUBLE;
    if (status == FOUND)
        report_change(&job);
    if (status == FOUND && removing && !any)
        status = NONE;
    store_end(&job.store);
    return status;
}

/* ---- check ----------------------------------------------------------------------------------- */

struct key_check {
    struct key_job job;
    bool others, count, quiet;
    bool warned, verified;
};

static void check_ask(void *context, struct batch *b)
{
    const struct key_check *c = context;
    tamis_filter_has_many(as_filter(c->job.store.set), b->digest, b->n, b->mark);
    for (size_t i = 0; b->n_none && i < b->n; i++)
        if (b->key[i].data == key_none.data)
            b->mark[i] = 0;
}

static bool check_take(void *context, struct batch *b)
{
    struct key_check *c = context;
    uint8_t mark = !c->others;
    size_t found = 0;
    if (c->quiet || c->count)
        for (size_t i = 0; i < b->n; i++)
            found += b->mark[i] == mark;
    else
        found = batch_print(b, mark, c->job.keys.end);
    c->job.n += b->n;
    c->job.done += found;
    return !(c->quiet && c->job.done);
}

static void check_warn(struct key_check *c)
{
    if (!c->warned)
        records_warn(as_records(c->job.store.set), c->job.records.mask);
    c->warned = true;
    c->verified = tamis_records_verifies(as_records(c->job.store.set), c->job.records.mask);
}

static bool check_records(void *context, struct record_batch *b)
{
    struct key_check *c = context;
    bool print = !c->quiet && !c->count;
    check_warn(c);
    tamis_records_has_many(as_records(c->job.store.set), c->job.records.mask, b->digest, b->n,
                           b->mark);
    for (size_t i = 0; i < b->n; i++) {
        const tamis_key *text = &b->text[i];
        if (b->mark[i] == c->others)
            continue;
        c->job.done++;
        if (!print)
            continue;
        put_bytes(text->data, text->len);
        if (text->len == 0 || ((const char *)text->data)[text->len - 1] != '\n')
            put_text("\n");
    }
    c->job.n += b->n;
    return !(c->quiet && c->job.done);
}

/* The query in the arguments; it is printed as it was written. */
static void check_choices(void *context, const tamis_choice *choices, size_t n)
{
    struct key_check *c = context;
    const struct records *r = &c->job.records;
    tamis_answer answer = {0};
    check_warn(c);
    c->job.error = tamis_records_ask(as_records(c->job.store.set), choices, n, &answer, NULL);
    if (c->verified && !answer.verified)
        remark("not verified as a combination: too many choices: give fewer values");
    c->verified &= answer.verified;
    c->job.n = 1;
    c->job.done = answer.maybe != c->others;
    for (size_t i = 0; c->job.done && !c->quiet && !c->count && i < r->n_words; i++) {
        put_text(i ? " " : "");
        put_text(r->word[i]);
        put_text(i + 1 < r->n_words ? "" : "\n");
    }
}

static void report_check(const struct key_check *c)
{
    if (!c->job.json) {
        put_format("%llu\n", (unsigned long long)c->job.done);
        return;
    }
    uint64_t found = c->others ? c->job.n - c->job.done : c->job.done;
    json_open(NULL, '{');
    json_count(things(&c->job), c->job.n);
    json_count("found", found);
    json_count("missing", c->job.n - found);
    if (store_has_records(&c->job.store)) {
        json_flag("verified", c->verified);
        json_count("bad", c->job.records.bad);
    }
    json_close();
}

int verb_check(int argc, char **argv)
{
    struct key_check c = {.job = {.keys = KEYS_DEFAULT}};
    const struct arg args[] = {
        JOB_ARGS(c.job),
        STORE_READ_ARG(c.job.files),
        ARG("attrs", 0, ARG_TEXT, &c.job.records.attrs),
        ARG("invert-match", 'v', ARG_FLAG, &c.others),
        ARG("count", 'c', ARG_FLAG, &c.count),
        ARG("quiet", 'q', ARG_FLAG, &c.quiet),
        ARG("json", 0, ARG_FLAG, &c.job.json),
    };
    if (!job_begin(&c.job, argc, argv, args, COUNT(args), false))
        return TROUBLE;
    c.count |= c.job.json;
    const struct store *store = &c.job.store;
    const struct work keys = {as_filter(store->set), check_ask, check_take, &c};
    const struct records_work records = {as_records(store->set), true, check_records, check_choices,
                                         &c};
    int status = store_has_records(store) ? records_run(&c.job.records, &records)
                                          : keys_run(&c.job.keys, &keys);
    if (c.job.error != TAMIS_OK)
        status = complain_of(c.job.error, NULL, store->path);
    if (status == FOUND && c.count && !c.quiet)
        report_check(&c);
    store_end(&c.job.store);
    return status == FOUND && c.job.done == 0 ? NONE : status;
}
