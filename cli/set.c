/* tamis add, remove, check: keys into a filter, out of it, and asked. */
#include <string.h>

#include "args.h"
#include "cli.h"
#include "keys.h"
#include "out.h"
#include "store.h"

/* What the three have in common: a file, options, keys. */
struct job {
    struct keys keys;
    struct store_options files;
    const char *path;
    bool json, verbose;
    tamis_filter *filter;
    tamis_error error;
    uint64_t n, done; /* keys seen; those added, removed or found */
    uint64_t pending;
};

/* Reads the options; true if there is work, else *status says how it ended. */
static bool job_begin(struct job *job, int argc, char **argv, const struct arg *args, size_t n,
                      int *status)
{
    struct words words;
    enum args_outcome outcome = args_read(argc, argv, args, n, &words);
    *status = outcome == ARGS_HELPED ? FOUND : TROUBLE;
    if (outcome != ARGS_READ)
        return false;
    if (words.n == 0) {
        complain("no file: FILE: name the filter, then keys, or give keys on standard input");
        return false;
    }
    job->path = words.word[0];
    return keys_settle(&job->keys, words.word + 1, words.n - 1);
}

/* ---- add ------------------------------------------------------------------------------------- */

static bool add_batch(void *context, struct batch *b)
{
    struct job *job = context;
    uint16_t who[KEYS_BATCH];
    size_t n = b->n_none ? batch_pack(b, who) : b->n, done;
    job->error = tamis_filter_add_many(job->filter, b->digest, n, b->mark, &done);
    job->n += done;
    for (size_t i = 0; i < done; i++)
        job->done += b->mark[i];
    return job->error == TAMIS_OK;
}

static void report_add(const struct job *job)
{
    unsigned long long n = job->n, added = job->done;
    if (job->verbose)
        remark("%llu keys: %s: %llu added, %llu seemed to be members already", n, job->path, added,
               n - added);
    if (!job->json)
        return;
    json_open(NULL, '{');
    json_count("keys", n);
    json_count("added", added);
    json_count("already", n - added);
    json_close('}');
}

int verb_add(int argc, char **argv)
{
    struct job job = {.keys = KEYS_DEFAULT};
    const struct arg args[] = {
        KEYS_ARGS(job.keys),
        STORE_KEY_ARG(job.files),
        STORE_WRITE_ARG(job.files),
        ARG("json", 0, ARG_FLAG, &job.json),
        ARG("verbose", 'v', ARG_FLAG, &job.verbose),
    };
    int status;
    struct store store;
    if (!job_begin(&job, argc, argv, args, COUNT(args), &status))
        return status;
    if (!store_begin(&store, job.path, &job.files))
        return TROUBLE;
    job.filter = store.filter;
    const struct work work = {store.filter, NULL, add_batch, &job};
    status = keys_run(&job.keys, &work);
    if (job.error == TAMIS_EFULL)
        status =
            complain("the filter is full: %s: %llu keys went in before, none was saved; make a "
                     "larger one (--capacity), one that grows (--growth), or allow --overfill",
                     job.path, (unsigned long long)job.n);
    else if (job.error != TAMIS_OK)
        status = complain_of(job.error, NULL, job.path);
    if (status == FOUND && job.n && !store_save(&store, 0))
        status = TROUBLE;
    if (status == FOUND)
        report_add(&job);
    store_end(&store);
    return status;
}

/* ---- remove ---------------------------------------------------------------------------------- */

static bool remove_batch(void *context, struct batch *b)
{
    struct job *job = context;
    uint16_t who[KEYS_BATCH];
    size_t n = b->n_none ? batch_pack(b, who) : b->n, done = 0;
    job->error = tamis_filter_remove_many(job->filter, b->digest, n, b->mark, &done);
    job->n += done;
    for (size_t i = 0; i < done; i++) {
        job->done += b->mark[i] == TAMIS_REMOVED;
        job->pending += b->mark[i] == TAMIS_PENDING;
    }
    return job->error == TAMIS_OK;
}

static void report_remove(const struct job *job)
{
    unsigned long long n = job->n, removed = job->done, pending = job->pending;
    if (job->verbose)
        remark("%llu keys: %s: %llu removed, %llu pending, %llu absent", n, job->path, removed,
               pending, n - removed - pending);
    if (!job->json)
        return;
    json_open(NULL, '{');
    json_count("keys", n);
    json_count("removed", removed);
    json_count("pending", pending);
    json_count("absent", n - removed - pending);
    json_close('}');
}

int verb_remove(int argc, char **argv)
{
    struct job job = {.keys = KEYS_DEFAULT};
    const struct arg args[] = {
        KEYS_ARGS(job.keys),
        STORE_KEY_ARG(job.files),
        STORE_WRITE_ARG(job.files),
        ARG("json", 0, ARG_FLAG, &job.json),
        ARG("verbose", 'v', ARG_FLAG, &job.verbose),
    };
    int status;
    struct store store;
    if (!job_begin(&job, argc, argv, args, COUNT(args), &status))
        return status;
    if (!store_begin(&store, job.path, &job.files))
        return TROUBLE;
    job.filter = store.filter;
    const struct work work = {store.filter, NULL, remove_batch, &job};
    status = keys_run(&job.keys, &work);
    if (job.error == TAMIS_EKIND)
        status = complain("it is not deletable: %s: make one with create --deletable", job.path);
    else if (job.error != TAMIS_OK)
        status = complain_of(job.error, NULL, job.path);
    bool changed = job.done + job.pending > 0;
    if (status == FOUND && changed && !store_save(&store, 0))
        status = TROUBLE;
    if (status == FOUND)
        report_remove(&job);
    store_end(&store);
    return status == FOUND && !changed ? NONE : status;
}

/* ---- check ----------------------------------------------------------------------------------- */

struct check {
    struct job job;
    bool others, count, quiet;
};

static void check_ask(void *context, struct batch *b)
{
    const struct check *c = context;
    tamis_filter_has_many(c->job.filter, b->digest, b->n, b->mark);
    for (size_t i = 0; b->n_none && i < b->n; i++)
        if (b->key[i].data == key_none.data)
            b->mark[i] = 0;
}

static bool check_take(void *context, struct batch *b)
{
    struct check *c = context;
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

static void report_check(const struct check *c)
{
    if (!c->job.json) {
        put_format("%llu\n", (unsigned long long)c->job.done);
        return;
    }
    uint64_t found = c->others ? c->job.n - c->job.done : c->job.done;
    json_open(NULL, '{');
    json_count("keys", c->job.n);
    json_count("found", found);
    json_count("missing", c->job.n - found);
    json_close('}');
}

int verb_check(int argc, char **argv)
{
    struct check c = {.job = {.keys = KEYS_DEFAULT}};
    const struct arg args[] = {
        KEYS_ARGS(c.job.keys),
        STORE_KEY_ARG(c.job.files),
        STORE_READ_ARG(c.job.files),
        ARG("invert-match", 'v', ARG_FLAG, &c.others),
        ARG("count", 'c', ARG_FLAG, &c.count),
        ARG("quiet", 'q', ARG_FLAG, &c.quiet),
        ARG("json", 0, ARG_FLAG, &c.job.json),
    };
    int status;
    if (!job_begin(&c.job, argc, argv, args, COUNT(args), &status))
        return status;
    c.job.filter = store_open(c.job.path, &c.job.files);
    if (!c.job.filter)
        return TROUBLE;
    c.count |= c.job.json;
    const struct work work = {c.job.filter, check_ask, check_take, &c};
    status = keys_run(&c.job.keys, &work);
    if (status == FOUND && c.count && !c.quiet)
        report_check(&c);
    tamis_filter_free(c.job.filter);
    return status == FOUND && c.job.done == 0 ? NONE : status;
}
