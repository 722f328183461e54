/* Threads that read inputs and gather segments. See index_verb.h. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "fleet/fleet.h"
#include "index_verb.h"
#include "index_text.h"
#include "os/threads.h"
#include "ui/progress.h"
#include "ui/stop.h"

/* Tasks [first, first + n). Shared: one file, whose segments any thread may take. */
struct job {
    size_t first, n;
    bool shared;
    uint64_t text;
};

/* A file being read. */
struct opened {
    struct input *input;
    struct selection *selection;
    struct entry *entry;
    struct raw_sums sums;
    char *path;
    unsigned users;
    bool ended, clean;
    uint64_t done;             /* bytes of the file, for progress */
    struct input_segment last; /* the last segment, with its restart point */
    struct text_tally end;     /* what was found in it */
    uint64_t bad_line;         /* the first bad record */
    char complaint[120];
    struct opened *next;
};

struct crew {
    struct index_run *run;
    const char *names[TAMIS_ATTRIBUTES_MAX];
    struct job *job;
    size_t n_jobs, next_job;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct opened *opened; /* files that can be shared */
    unsigned opening;      /* threads that may soon have opened one */
    bool stop;             /* an error occurred */
};

struct worker {
    struct crew *crew;
    struct parser *parser;
    tamis_gather *gather;
    struct text_keys keys;
    struct input_text text;
    struct bytes tag;
    uint64_t gathered; /* bytes of text */
};

/* ---- jobs ------------------------------------------------------------------------------------ */

uint64_t text_expected(const char *path, uint64_t bytes)
{
    bool packed = read_packed_suffix(path) > 0;
    return packed && bytes < UINT64_MAX / 6 ? 6 * bytes : bytes;
}

static int by_size(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return ORDER(y->text, x->text, ORDER(x->first, y->first, 0));
}

/* Opening a tiny file takes about 10 us, so a candidate with this many files is read in 3 ms; 20,000 files make 80
   segments, not 2. */
#define PACK_FILES 256

static bool make_jobs(struct crew *c)
{
    const struct index_run *run = c->run;
    uint64_t segment = run->inputs->segment;
    bool packing = false;
    c->job = calloc(run->n_tasks + 1, sizeof *c->job);
    if (!c->job)
        return false;
    for (size_t i = 0; i < run->n_tasks; i++) {
        const struct task *t = &run->task[i];
        uint64_t text = text_expected(run->inputs->entry[t->entry].path, t->bytes);
        bool large = text > segment / 2;
        struct job *last = c->n_jobs ? &c->job[c->n_jobs - 1] : NULL;
        if (!large && packing && last && last->n < PACK_FILES && last->text + text <= segment) {
            last->n++;
            last->text += text;
        } else {
            c->job[c->n_jobs++] = (struct job){i, 1, large, text};
        }
        packing = !large;
    }
    /* so that the last job to end is a small one */
    qsort(c->job, c->n_jobs, sizeof *c->job, by_size);
    return true;
}

/* ---- trouble --------------------------------------------------------------------------------- */

/* The first error counts; other threads stop silently. Under the lock. */
static void stop_all(struct crew *c)
{
    c->stop = true;
    pthread_cond_broadcast(&c->change);
}

static void break_off(struct crew *c, tamis_error error, const tamis_reason *reason,
                      const char *path)
{
    pthread_mutex_lock(&c->lock);
    if (!c->stop)
        complain_of(error, reason, path);
    stop_all(c);
    pthread_mutex_unlock(&c->lock);
}

static bool stopped(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    if (stop_signal)
        stop_all(c);
    bool stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    return stop;
}

/* An input that cannot be read (further) is reported; with --strict it ends the run. */
static void input_failed(struct crew *c, tamis_error error, const tamis_reason *reason,
                         const char *path, const char *done)
{
    pthread_mutex_lock(&c->lock);
    bool fatal = c->run->strict || error == TAMIS_ENOMEM;
    if (!c->stop)
        complain_input(error, reason, path, fatal ? "nothing was changed" : done);
    c->run->tally.failed++;
    if (fatal)
        stop_all(c);
    pthread_mutex_unlock(&c->lock);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void opened_free(struct opened *o)
{
    input_close(o->input);
    raw_sums_free(&o->sums);
    selection_free(o->selection);
    input_segment_free(&o->last);
    input_segment_free(&o->end.before);
    free(o->path);
    free(o);
}

#define PATIENT ((uint64_t)1 << 30) /* bytes that cannot be compared with their checksums in 2 s */

/* A large file that was written a moment ago would be hashed by every find: waits until its time
   has passed. */
static void let_settle(const char *path, bool follow)
{
    struct raw_id id;
    const char *why;
    const struct timespec nap = {0, RAW_RACY / 20};
    for (int i = 0; i <= 20 && raw_look(path, follow, &id, &why) && id.size >= PATIENT && id.racy &&
                    !stop_signal;
         i++)
        nanosleep(&nap, NULL);
}

static bool open_input(struct crew *c, struct opened *o, const struct task *t, tamis_reason *reason,
                       tamis_error *error)
{
    struct inputs *in = c->run->inputs;
    struct entry *e = o->entry;
    bool folder = in->root[e->root].folder;
    struct input_options options = {.dialect = in->dialect,
                                    .segment = in->segment,
                                    .from = t->tail ? &t->from : NULL,
                                    .file = true,
                                    .no_link = folder,
                                    .sums = &o->sums};
    size_t n = tamis_schema_attributes(c->run->schema);
    if (!raw_sums_start(&o->sums, t->tail ? e->sums : NULL, t->tail ? e->file.size : 0,
                        t->tail ? t->from.at : 0))
        return *error = TAMIS_ENOMEM, false;
    if (t->tail) /* whatever its present name */
        entry_restore(e, &options.dialect);
    let_settle(o->path, !folder);
    *error = input_open(&o->input, o->path, &options, reason);
    if (*error == TAMIS_OK)
        *error = selection_new(&o->selection, &o->input->dialect, c->names, n, o->input->header,
                               o->input->header_len, reason);
    return *error == TAMIS_OK;
}

/* NULL: it cannot be opened (which was reported), or there is no memory. */
static struct opened *opened_new(struct crew *c, const struct task *t)
{
    struct inputs *in = c->run->inputs;
    struct opened *o = calloc(1, sizeof *o);
    tamis_reason reason = {0};
    tamis_error error = TAMIS_ENOMEM;
    if (o) {
        o->entry = &in->entry[t->entry];
        o->path = base_join(c->run->base, o->entry->path);
        o->users = 1;
    }
    if (o && o->path && open_input(c, o, t, &reason, &error)) {
        o->done = t->tail ? t->from.at : 0;
        o->entry->file = o->input->id;
        pthread_mutex_lock(&c->lock);
        bool kept = entry_keep(in, o->entry, &o->input->dialect);
        pthread_mutex_unlock(&c->lock);
        if (kept)
            return o;
        error = TAMIS_ENOMEM;
    }
    if (o)
        o->entry->unread = true;
    input_failed(c, error, &reason, o && o->path ? o->path : "inputs", "it was skipped");
    if (o)
        opened_free(o);
    return NULL;
}

/* Where to continue when the file grows. */
static bool settle_resume(struct inputs *in, struct opened *o)
{
    struct entry *e = o->entry;
    struct input_segment *last = &o->last, *to = &e->resume;
    if (last->len == 0)
        return true;
    *to = o->end.before;
    to->offset = last->offset + o->end.resume;
    to->line = last->line + o->end.resume_line;
    to->reference = last->reference;
    o->end.before.header = NULL;
    if (to->header && !owned_adopt(&in->own, to->header))
        return false;
    e->resumable = true;
    e->open = o->end.open;
    to->at = to->offset;
    if (o->input->kind == PACK_NONE)
        return true;
    if (o->clean && o->end.resume == last->len) { /* appended data starts a frame or member */
        to->at = o->input->size;
        return true;
    }
    to->at = last->at;
    to->skip = to->offset - (last->offset - last->skip);
    to->restart = last->restart;
    to->restart_len = last->restart_len;
    last->restart = NULL;
    return !to->restart || owned_adopt(&in->own, to->restart);
}

/* The last user of a file closes it. */
static void opened_finish(struct crew *c, struct opened *o)
{
    struct entry *e = o->entry;
    uint8_t *sums = input_sums(o->input, &o->sums);
    pthread_mutex_lock(&c->lock);
    e->sums = sums;
    e->unread = !sums; /* it is shorter, or was changed meanwhile */
    e->damaged = o->ended && !o->clean;
    bool kept = settle_resume(c->run->inputs, o);
    if (sums)
        kept = owned_adopt(&c->run->inputs->own, sums) && kept;
    if (o->bad_line && !c->stop)
        remark("bad record: %s, line %llu: %s: %llu found only by their lines", o->path,
               (unsigned long long)o->bad_line, o->complaint, (unsigned long long)e->count.bad);
    c->run->tally.inputs++;
    progress_step(o->input->size > o->done ? o->input->size - o->done : 0);
    pthread_mutex_unlock(&c->lock);
    if (!kept)
        break_off(c, TAMIS_ENOMEM, NULL, o->path);
    opened_free(o);
}

/* ---- segments -------------------------------------------------------------------------------- */

static bool put_segment(struct worker *w)
{
    struct crew *c = w->crew;
    tamis_reason reason = {0};
    if (w->tag.len == 0) {
        w->gathered = 0;
        return true;
    }
    tamis_error error =
        c->run->publisher ? publisher_take(c->run->publisher, w->gather, &reason) : TAMIS_OK;
    if (error == TAMIS_OK)
        error = tamis_catalog_put(c->run->writer, w->gather, w->tag.data, w->tag.len, &reason);
    if (error != TAMIS_OK)
        break_off(c, error, &reason, c->run->path);
    pthread_mutex_lock(&c->lock);
    c->run->tally.segments++;
    pthread_mutex_unlock(&c->lock);
    w->tag.len = 0;
    w->gathered = 0;
    return error == TAMIS_OK;
}

/* Adds what a text had to its entry and to the totals. May take the segment, and what precedes
   the next one. Under the lock. */
static void account(struct crew *c, struct opened *o, struct input_segment *segment,
                    struct text_tally *t)
{
    struct index_tally *all = &c->run->tally;
    struct entry *e = o->entry;
    uint64_t done = segment->at + segment->at_len;
    counts_add(&e->count, &t->count);
    counts_add(&all->count, &t->count);
    all->headers += t->headers;
    all->bytes += segment->len;
    all->present |= t->present;
    if (t->count.bad && (!o->bad_line || segment->line + t->bad_line < o->bad_line)) {
        o->bad_line = segment->line + t->bad_line;
        snprintf(o->complaint, sizeof o->complaint, "%s", t->complaint);
    }
    if (segment->offset >= o->last.offset) {
        input_segment_free(&o->last);
        input_segment_free(&o->end.before);
        o->last = *segment;
        segment->restart = segment->header = NULL;
        o->end = *t;
        t->before.header = NULL;
        e->text = o->last.offset + o->last.len;
    }
    if (done > o->done) {
        progress_step(done - o->done);
        o->done = done;
    }
}

/* --strict: the first bad record ends the run. */
static bool refuse_bad(struct worker *w, const struct opened *o,
                       const struct input_segment *segment, const struct text_tally *t)
{
    struct crew *c = w->crew;
    if (!c->run->strict || !t->count.bad)
        return false;
    pthread_mutex_lock(&c->lock);
    if (!c->stop)
        complain("bad record: %s, line %llu: %s: nothing was changed; leave out --strict to skip "
                 "such records",
                 o->path, (unsigned long long)(segment->line + t->bad_line), t->complaint);
    stop_all(c);
    pthread_mutex_unlock(&c->lock);
    return true;
}

/* Gathers the text of a segment and records its position in the tag. Takes the segment. */
static bool take_text(struct worker *w, struct opened *o, struct input_segment *segment)
{
    struct crew *c = w->crew;
    struct text_tally t;
    tamis_error error = text_gather(&w->keys, w->parser, o->selection, &w->text, w->gather, &t);
    const struct input_part part = {o->entry->id, t.count, *segment};
    if (error == TAMIS_OK && (t.count.records || t.count.bad) && !tag_add(&w->tag, &part))
        error = TAMIS_ENOMEM;
    if (error == TAMIS_OK && !input_before(o->input, &w->text, t.resume, &t.before))
        error = TAMIS_ENOMEM;
    bool good = error == TAMIS_OK && !refuse_bad(w, o, segment, &t);
    if (error != TAMIS_OK)
        break_off(c, error, NULL, o->path);
    if (good) {
        w->gathered += segment->len;
        pthread_mutex_lock(&c->lock);
        account(c, o, segment, &t);
        pthread_mutex_unlock(&c->lock);
    }
    input_segment_free(&t.before);
    input_segment_free(segment);
    return good;
}

/* The segments of a file, as long as there are some. `alone`: each is also a segment of the
   catalog. */
static bool read_opened(struct worker *w, struct opened *o, bool alone)
{
    struct crew *c = w->crew;
    bool more = true;
    while (more && !stopped(c)) {
        struct input_segment segment;
        tamis_reason reason = {0};
        tamis_error error = input_next(o->input, &segment, &w->text, &more, &reason);
        if (!more) {
            pthread_mutex_lock(&c->lock);
            bool first = !o->ended;
            o->ended = true;
            if (first)
                o->clean = error == TAMIS_OK;
            pthread_mutex_unlock(&c->lock);
            if (error != TAMIS_OK && first)
                input_failed(c, error, &reason, o->path, "the rest of it was skipped");
            break;
        }
        if (!take_text(w, o, &segment))
            return false;
        if ((alone || w->gathered >= c->run->inputs->segment) && !put_segment(w))
            return false;
    }
    return !stopped(c);
}

/* ---- jobs at work ---------------------------------------------------------------------------- */

static bool do_pack(struct worker *w, const struct job *job)
{
    struct crew *c = w->crew;
    bool good = true;
    for (size_t i = job->first; good && i < job->first + job->n; i++) {
        struct opened *o = opened_new(c, &c->run->task[i]);
        if (!o) {
            good = !stopped(c);
            continue;
        }
        good = read_opened(w, o, false);
        opened_finish(c, o);
    }
    return good && put_segment(w);
}

/* Leaves a shared file; the last thread ends it. */
static void leave(struct crew *c, struct opened *o)
{
    pthread_mutex_lock(&c->lock);
    bool last = --o->users == 0;
    for (struct opened **at = &c->opened; last && *at; at = &(*at)->next)
        if (*at == o) {
            *at = o->next;
            break;
        }
    pthread_mutex_unlock(&c->lock);
    if (last)
        opened_finish(c, o);
}

static bool do_shared(struct worker *w, const struct job *job)
{
    struct crew *c = w->crew;
    struct opened *o = opened_new(c, &c->run->task[job->first]);
    pthread_mutex_lock(&c->lock);
    c->opening--;
    if (o) {
        o->next = c->opened;
        c->opened = o;
    }
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    if (!o)
        return !stopped(c);
    bool good = read_opened(w, o, true);
    leave(c, o);
    return good;
}

/* A file that another thread has open and that has not ended; waits for those being opened.
   NULL: there is nothing left to do. Under the lock. */
static struct opened *find_open(struct crew *c)
{
    for (;;) {
        if (c->stop)
            return NULL;
        for (struct opened *o = c->opened; o; o = o->next)
            if (!o->ended) {
                o->users++;
                return o;
            }
        if (c->opening == 0)
            return NULL;
        pthread_cond_wait(&c->change, &c->lock);
    }
}

static void *work(void *context)
{
    struct worker *w = context;
    struct crew *c = w->crew;
    for (bool good = true; good;) {
        struct opened *help = NULL;
        const struct job *job = NULL;
        pthread_mutex_lock(&c->lock);
        if (!c->stop && c->next_job < c->n_jobs) {
            job = &c->job[c->next_job++];
            c->opening += job->shared;
        } else {
            help = find_open(c);
        }
        pthread_mutex_unlock(&c->lock);
        if (!job && !help)
            break;
        if (help) {
            good = read_opened(w, help, true);
            leave(c, help);
        } else {
            good = job->shared ? do_shared(w, job) : do_pack(w, job);
        }
    }
    return NULL;
}

/* ---- the crew -------------------------------------------------------------------------------- */

static bool worker_start(struct worker *w, struct crew *c)
{
    w->crew = c;
    w->parser = parser_new();
    return w->parser && text_keys_start(&w->keys, c->run->schema, c->run->inputs->dialect.zone) &&
           tamis_gather_new(&w->gather, c->run->schema) == TAMIS_OK;
}

static void worker_end(struct worker *w)
{
    parser_free(w->parser);
    tamis_gather_free(w->gather);
    text_keys_free(&w->keys);
    input_text_free(&w->text);
    free(w->tag.data);
}

static bool run_crew(struct crew *c, struct worker *workers, unsigned n)
{
    bool good = true;
    for (unsigned i = 0; i < n && good; i++)
        good = worker_start(&workers[i], c);
    if (!good)
        return refuse("out of memory: -j %u: give fewer threads", n);
    threads_run(work, workers, sizeof *workers, n);
    return !c->stop;
}

bool index_work(struct index_run *run)
{
    struct crew c = {.run = run};
    unsigned n = (unsigned)run->threads;
    struct worker *workers = calloc(n, sizeof *workers);
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->n_tasks; i++)
        bytes += run->task[i].bytes;
    for (uint32_t i = 0; i < tamis_schema_attributes(run->schema); i++)
        c.names[i] = tamis_schema_name(run->schema, i);
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.change, NULL);
    bool good = workers && make_jobs(&c);
    if (!good)
        no_memory("inputs");
    progress_start(bytes);
    good = good && run_crew(&c, workers, n);
    progress_end();
    for (unsigned i = 0; workers && i < n; i++)
        worker_end(&workers[i]);
    free(workers);
    free(c.job);
    pthread_cond_destroy(&c.change);
    pthread_mutex_destroy(&c.lock);
    return good && !stop_signal;
}
