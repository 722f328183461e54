/*
 * Reads the places with several threads, and prints what matches in their order.
 *
 * Threads take groups of places in turn. What a group prints is held back until all groups before it are printed. A
 * thread may be at most a window of groups ahead, and the group whose turn it is writes directly, so memory stays
 * bounded whatever matches. A thread prints without the lock, since a pipe may be full, so the other threads
 * continue.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "find_target.h"
#include "os/threads.h"
#include "ui/out.h"

#define WINDOW       4                  /* groups ahead, per thread */
#define PLACES_AHEAD ((size_t)32 << 20) /* bytes that a group may hold before its turn */
#define CHUNK        ((size_t)128 << 10)

/* Places [first, first + n) of one file, which are best read in sequence. */
struct place_group {
    size_t first, n;
    struct bytes out, header, last; /* headers of the first and last record */
    size_t relieved;                /* the length of `out` when it was last tried to print it */
    size_t *end;                    /* with a limit: where the records in `out` end */
    size_t n_ends, ends_room;
    bool done;
};

struct party {
    struct scan *scan;
    struct place_group *group;
    size_t n, next, turn; /* next to be taken, next to be printed */
    uint64_t printed; /* records, with a limit; of whoever has the turn, as what was printed last */
    bool printing;    /* a thread prints groups that are done */
    /* Memory of printed groups, for the next ones: fresh memory costs page faults. */
    struct bytes *spare;
    size_t n_spare;
    pthread_mutex_t lock;
    pthread_cond_t change;
    size_t told; /* the last file whose error was reported */
    bool lines;  /* line numbers may be needed */
    bool plain;  /* records are printed unchanged, and nothing but records */
    bool stop;
};

/* The state of a thread. */
struct hand {
    struct party *party;
    struct parser *parser;
    struct input_text text;
    struct input *input;
    struct selection *selection;
    size_t seen; /* the file it has open */
    char *path;
    struct needle needle;
    struct check check;
    struct span run; /* matching records, one after the other, that are to be printed as they are */
    struct tally tally;
    uint64_t unseen; /* bits: columns that some record had after all */
};

/* ---- printing -------------------------------------------------------------------------------- */

/* In the group's turn: prints the header of the first record, unless it was the last one printed. The output of the
   group contains later headers. */
static void print_header(struct scan *s, struct place_group *g)
{
    struct bytes *last = s->header;
    bool same = last->len && last->len == g->header.len &&
                memcmp(last->data, g->header.data, last->len) == 0;
    if (!same)
        put_bytes(g->header.data, g->header.len);
    g->header.len = 0;
    if (g->last.len) {
        last->len = 0;
        bytes_put(last, g->last.data, g->last.len);
    }
}

/* In the group's turn: prints what it holds. False if nothing more is to be printed. */
static bool print_group(struct party *p, struct place_group *g)
{
    struct scan *s = p->scan;
    size_t len = g->out.len;
    bool full = false;
    if (s->limit != UINT64_MAX) {
        uint64_t left = s->limit - p->printed;
        size_t n = g->n_ends < left ? g->n_ends : (size_t)left;
        len = n ? g->end[n - 1] : 0;
        p->printed += n;
        g->n_ends = 0;
        full = p->printed == s->limit;
    }
    if (len) {
        print_header(s, g);
        if (s->output->terminal)
            put_raw(g->out.data, len);
        else
            put_bytes(g->out.data, len);
    }
    g->out.len = g->relieved = 0;
    return !full && !put_failed();
}

static void group_free(struct place_group *g)
{
    bytes_end(&g->out);
    bytes_end(&g->header);
    bytes_end(&g->last);
    free(g->end);
    g->end = NULL;
}

/* With the lock: a group takes over memory, and leaves its own behind. */
static void group_start(struct party *p, struct place_group *g)
{
    if (p->n_spare)
        g->out = p->spare[--p->n_spare];
}

static void group_end(struct party *p, struct place_group *g)
{
    if (p->n_spare < p->scan->threads && !g->out.failed) {
        p->spare[p->n_spare++] = (struct bytes){.data = g->out.data, .room = g->out.room};
        g->out = (struct bytes){0};
    }
    group_free(g);
}

/* With the lock, which is released meanwhile: prints all groups that are done and whose turn it is. */
static void print_ready(struct party *p)
{
    while (!p->printing && p->turn < p->n && p->group[p->turn].done && !p->stop) {
        struct place_group *g = &p->group[p->turn];
        p->printing = true;
        pthread_mutex_unlock(&p->lock);
        bool more = print_group(p, g);
        pthread_mutex_lock(&p->lock);
        group_end(p, g);
        p->printing = false;
        p->stop |= !more;
        p->turn++;
        pthread_cond_broadcast(&p->change);
    }
    pthread_cond_broadcast(&p->change);
}

/* For a group that holds much output, and much more than when it was last tried: prints it if the group has its turn,
   which it then keeps until it is done; if it is too much, waits for the turn. */
static void relieve(struct party *p, struct place_group *g)
{
    if (g->out.len < g->relieved + CHUNK)
        return;
    g->relieved = g->out.len;
    pthread_mutex_lock(&p->lock);
    while (g->out.len > PLACES_AHEAD && &p->group[p->turn] != g && !p->stop)
        pthread_cond_wait(&p->change, &p->lock);
    bool mine = &p->group[p->turn] == g && !p->stop;
    pthread_mutex_unlock(&p->lock);
    if (!mine || print_group(p, g))
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_mutex_unlock(&p->lock);
}

/* Adds the run to what the group prints; false: no memory. */
static bool end_run(struct hand *h, struct place_group *g)
{
    bool good = bytes_put(&g->out, h->run.data, h->run.len);
    h->run.len = 0;
    return good;
}

static bool is_plain(const struct scan *s)
{
    const struct output *o = s->output;
    return o->form == OUT_RECORDS && !o->terminal && !o->file && !o->line && !o->tag &&
           s->limit == UINT64_MAX;
}

/* For plain output: a record with its line end extends the run that it follows, which saves copying record by
   record where most records match. */
static bool keep_plain(struct hand *h, struct place_group *g, const struct record *r)
{
    size_t len = r->len + r->end_len;
    if (h->run.data + h->run.len != r->data || h->run.len >= CHUNK) {
        if (!end_run(h, g))
            return false;
        h->run.data = r->data;
    }
    h->run.len += len;
    if (LIKELY(r->end_len && r->data[len - 1] == '\n'))
        return true;
    return end_run(h, g) && bytes_put(&g->out, "\n", 1);
}

static bool note_end(struct place_group *g)
{
    return array_add(&g->end, &g->n_ends, &g->ends_room, &g->out.len, sizeof g->out.len);
}

/* ---- trouble --------------------------------------------------------------------------------- */

/* A truncated input fails in each of its places, but counts once. */
static void tell(struct party *p, size_t seen, tamis_error error, const tamis_reason *reason)
{
    struct target *t = p->scan->target;
    const char *path = t->sight.seen[seen].path;
    char *opened = base_join(t->base, path);
    pthread_mutex_lock(&p->lock);
    if (!p->stop && p->told != seen) {
        if (t->missed.n == 0)
            t->missed.slow = error == TAMIS_EARG;
        missed_add(&t->missed, t->base, path, input_trouble(error, reason, opened ? opened : path),
                   false);
    }
    p->told = seen;
    p->stop |= error == TAMIS_ENOMEM;
    pthread_mutex_unlock(&p->lock);
    free(opened);
}

static bool stopped(struct party *p)
{
    pthread_mutex_lock(&p->lock);
    bool stop = p->stop;
    pthread_mutex_unlock(&p->lock);
    return stop;
}

/* ---- a text ---------------------------------------------------------------------------------- */

/* On a terminal: the header of the first record is printed before the group; a header that changes within it,
   before the record. */
static void keep_header(struct hand *h, struct place_group *g)
{
    struct bytes *last = &g->last;
    size_t len;
    const uint8_t *header = parser_header(h->parser, &len);
    bool first = !last->data, ended = len == 0 || header[len - 1] == '\n';
    if (!first && last->len == len + !ended && (len == 0 || memcmp(last->data, header, len) == 0))
        return;
    last->len = 0;
    bytes_put(last, header, len);
    bytes_put(last, "\n", !ended);
    put_into(first ? &g->header : &g->out);
    if (first)
        put_bytes(last->data, last->len);
    else
        put_shown(last->data, last->len);
    put_into(NULL);
}

static bool keep_match(struct hand *h, struct place_group *g, const struct input_segment *where,
                       struct seek *seek, const struct record *r)
{
    const struct scan *s = h->party->scan;
    const struct output *o = s->output;
    if (h->party->plain)
        return keep_plain(h, g, r);
    if (o->form == OUT_TALLY)
        return tally_add(&h->tally, &r->values[s->target->column[0]]);
    if (o->form == OUT_NOTHING)
        return s->limit == UINT64_MAX || note_end(g);
    enum read_format format = h->input->dialect.format;
    struct found f = {.path = h->path,
                      .json = format == READ_JSONL || format == READ_JSON,
                      .offset = where->offset + (uint64_t)(r->data - h->text.data),
                      .record = r,
                      .check = &h->check};
    if (o->line || o->form == OUT_JSON)
        f.line = where->line + seek_line(seek, r);
    if (o->form == OUT_RECORDS && o->terminal && h->input->header)
        keep_header(h, g);
    out_record(o, &g->out, &f);
    return !g->out.failed && !g->header.failed && !g->last.failed &&
           (s->limit == UINT64_MAX || note_end(g));
}

/* A regular expression that gave up has not searched the record: this must be reported. */
static tamis_error give_up(struct hand *h, const struct input_segment *where, struct seek *seek,
                           const struct record *r, tamis_reason *reason)
{
    const char *word = h->check.gave_up;
    h->check.gave_up = NULL;
    return fail(reason, TAMIS_EARG, "the regular expression in %.60s takes too long on line %llu",
                word, (unsigned long long)(where->line + seek_line(seek, r)));
}

/* Scans the text in memory for matches. */
static tamis_error scan_text(struct hand *h, struct place_group *g,
                             const struct input_segment *where, uint64_t *matches,
                             tamis_reason *reason)
{
    const struct scan *s = h->party->scan;
    struct record r;
    enum parsed parsed;
    struct seek seek;
    tamis_error error = seek_begin(&seek, h->parser, h->selection, &h->needle, &h->text);
    h->check.time.reference = h->text.of.reference;
    h->run = (struct span){h->text.data, 0};
    while (error == TAMIS_OK && *matches < s->limit &&
           (parsed = seek_next(&seek, &r)) != PARSED_END) {
        if (parsed == PARSED_NOMEM) {
            error = TAMIS_ENOMEM;
            break;
        }
        for (uint64_t left = s->unseen & ~h->unseen; UNLIKELY(left); left &= left - 1) {
            int column = __builtin_ctzll(left);
            if (r.values[column].state != VALUE_MISSING)
                h->unseen |= UINT64_C(1) << column;
        }
        bool holds = check_holds(&h->check, r.values);
        if (h->check.gave_up)
            error = give_up(h, where, &seek, &r, reason);
        else if (holds && keep_match(h, g, where, &seek, &r))
            ++*matches;
        else if (holds)
            error = TAMIS_ENOMEM;
        if (holds)
            relieve(h->party, g);
    }
    return end_run(h, g) || error != TAMIS_OK ? error : TAMIS_ENOMEM;
}

/* ---- places ---------------------------------------------------------------------------------- */

static void hand_close(struct hand *h)
{
    input_close(h->input);
    selection_free(h->selection);
    free(h->path);
    h->input = NULL;
    h->selection = NULL;
    h->path = NULL;
    h->seen = NOWHERE;
}

/* Opens the input of a place; one that is read to the end is opened at its start. */
static tamis_error hand_open(struct hand *h, const struct place *place, tamis_reason *reason)
{
    const struct target *t = h->party->scan->target;
    const struct question *q = &t->question;
    const struct seen *seen = &t->sight.seen[place->seen];
    bool known = place->kind != PLACE_WHOLE;
    if (h->seen == place->seen && place->kind == PLACE_PART)
        return TAMIS_OK;
    hand_close(h);
    struct input_options options = {.dialect = t->inputs.dialect,
                                    .segment = t->inputs.segment,
                                    .from = place->kind == PLACE_TAIL ? &place->where : NULL,
                                    .file = true,
                                    .no_link = t->inputs.root[seen->root].folder};
    if (known)
        entry_restore(&t->inputs.entry[seen->entry], &options.dialect);
    h->path = base_join(t->base, seen->path);
    if (!h->path)
        return TAMIS_ENOMEM;
    tamis_error error = input_open(&h->input, h->path, &options, reason);
    if (error == TAMIS_OK && known && !t->sight.trusted &&
        (h->input->id.inode != seen->file.inode || h->input->size < seen->file.size))
        error = fail(reason, TAMIS_EIO, "replaced while it was searched");
    if (error == TAMIS_OK)
        error = selection_new(&h->selection, &h->input->dialect, q->name, q->n_columns,
                              h->input->header, h->input->header_len, reason);
    if (error == TAMIS_OK) {
        h->check.period = question_period_of(q, &h->input->dialect);
        needle_of(&h->needle, q, h->selection);
    }
    if (error == TAMIS_OK)
        h->seen = place->kind == PLACE_PART ? place->seen : NOWHERE;
    return error;
}

/* Adds what was read to the totals. */
static void account(struct party *p, const struct place *place, uint64_t matches, uint64_t bytes,
                    uint64_t text)
{
    struct scan *s = p->scan;
    pthread_mutex_lock(&p->lock);
    s->matches += matches;
    s->bytes_read += bytes;
    s->text_read += text;
    s->unindexed += place->kind == PLACE_PART ? 0 : bytes;
    if (matches && place->kind == PLACE_PART)
        s->target->hit[place->segment / 64] |= UINT64_C(1) << place->segment % 64;
    pthread_mutex_unlock(&p->lock);
}

#define STEP ((size_t)256 << 10) /* at most a quarter of the second-level cache */

/* Reads a file from its position to the end; or a part of it, in steps, unless a decoder must read what is before
   it, or is fastest with whole frames (zstd). */
static tamis_error scan_rest(struct hand *h, struct place_group *g, const struct place *place,
                             tamis_reason *reason)
{
    struct party *p = h->party;
    bool more = true;
    tamis_error error = TAMIS_OK;
    uint64_t at = place->where.at, all = 0;
    if (place->kind == PLACE_PART)
        error = input_walk(h->input, &place->where, STEP, p->lines, reason);
    while (more && error == TAMIS_OK && !stopped(p)) {
        struct input_segment segment;
        uint64_t matches = 0;
        error = input_next(h->input, &segment, &h->text, &more, reason);
        if (!more)
            break;
        error = scan_text(h, g, &segment, &matches, reason);
        uint64_t end = segment.at + segment.at_len;
        account(p, place, matches, end > at ? end - at : 0, segment.len);
        at = end > at ? end : at;
        input_segment_free(&segment);
        all += matches;
        if (all >= p->scan->limit)
            break;
    }
    return error;
}

static tamis_error scan_part(struct hand *h, struct place_group *g, const struct place *place,
                             tamis_reason *reason)
{
    uint64_t matches = 0;
    enum packing kind = h->input->kind;
    bool enters = kind == PACK_GZIP && g->n == 1 && place->where.skip <= STEP;
    if (kind == PACK_NONE || enters)
        return scan_rest(h, g, place, reason);
    tamis_error error = input_read(h->input, &place->where, &h->text, reason);
    if (error == TAMIS_OK) {
        error = scan_text(h, g, &place->where, &matches, reason);
        account(h->party, place, matches, place->where.at_len, place->where.len);
    }
    return error;
}

static void scan_group(struct hand *h, struct place_group *g)
{
    struct party *p = h->party;
    for (size_t i = g->first; i < g->first + g->n && !stopped(p); i++) {
        const struct place *place = &p->scan->target->places.place[i];
        tamis_reason reason = {0};
        tamis_error error = hand_open(h, place, &reason);
        if (error == TAMIS_OK)
            error = place->kind == PLACE_PART ? scan_part(h, g, place, &reason)
                                              : scan_rest(h, g, place, &reason);
        if (error != TAMIS_OK) {
            tell(p, place->seen, error, &reason);
            hand_close(h);
        }
    }
}

static void *work(void *context)
{
    struct hand *h = context;
    struct party *p = h->party;
    size_t window = WINDOW * (size_t)p->scan->threads;
    pthread_mutex_lock(&p->lock);
    while (!p->stop && p->next < p->n) {
        if (p->next - p->turn >= window) {
            pthread_cond_wait(&p->change, &p->lock);
            continue;
        }
        struct place_group *g = &p->group[p->next++];
        group_start(p, g);
        pthread_mutex_unlock(&p->lock);
        scan_group(h, g);
        pthread_mutex_lock(&p->lock);
        g->done = true;
        print_ready(p);
    }
    pthread_cond_broadcast(&p->change);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Places that a decoder reaches only by reading what precedes them form one group. */
static bool make_groups(struct party *p)
{
    const struct places *all = &p->scan->target->places;
    p->group = calloc(all->n + 1, sizeof *p->group);
    if (!p->group)
        return false;
    for (size_t i = 0; i < all->n; i++) {
        const struct place *here = &all->place[i], *before = i ? here - 1 : NULL;
        bool together = before && before->seen == here->seen && here->kind == PLACE_PART &&
                        before->kind == PLACE_PART && before->where.at == here->where.at;
        if (together)
            p->group[p->n - 1].n++;
        else
            p->group[p->n++] = (struct place_group){.first = i, .n = 1};
    }
    return true;
}

static bool run_party(struct party *p, struct hand *hands, unsigned n)
{
    bool good = true;
    for (unsigned i = 0; i < n && good; i++) {
        hands[i].party = p;
        hands[i].seen = NOWHERE;
        good = (hands[i].parser = parser_new()) != NULL &&
               check_start(&hands[i].check, &p->scan->target->question);
    }
    if (good)
        threads_run(work, hands, sizeof *hands, n);
    for (unsigned i = 0; i < n; i++) {
        hand_close(&hands[i]);
        parser_free(hands[i].parser);
        input_text_free(&hands[i].text);
        p->scan->timeless += hands[i].check.timeless;
        p->scan->target->seen |= hands[i].unseen;
        check_end(&hands[i].check);
        good = (!good || !p->scan->tally || tally_merge(p->scan->tally, &hands[i].tally)) && good;
        tally_free(&hands[i].tally);
    }
    return good;
}

bool scan_run(struct scan *s)
{
    struct party p = {.scan = s, .told = NOWHERE};
    const struct question *q = &s->target->question;
    for (size_t i = 0; i < q->n_columns && i < 64; i++)
        s->unseen |= (uint64_t)q->column[i].unseen << i;
    p.plain = is_plain(s);
    p.lines = s->output->line || s->output->form == OUT_JSON;
    for (size_t i = 0; i < q->n; i++) /* a slow expression is reported with its line */
        p.lines |= q->clause[i].kind == CLAUSE_REGEX;
    p.spare = calloc(s->threads, sizeof *p.spare);
    bool good = p.spare && make_groups(&p);
    unsigned n = s->threads < p.n ? s->threads : (unsigned)p.n;
    struct hand *hands = good && n ? calloc(n, sizeof *hands) : NULL;
    if (n && hands) {
        pthread_mutex_init(&p.lock, NULL);
        pthread_cond_init(&p.change, NULL);
        good = run_party(&p, hands, n);
        pthread_cond_destroy(&p.change);
        pthread_mutex_destroy(&p.lock);
    }
    good = good && (n == 0 || hands);
    if (s->matches > s->limit)
        s->matches = s->limit;
    for (size_t i = 0; p.group && i < p.n; i++)
        group_free(&p.group[i]);
    for (size_t i = 0; i < p.n_spare; i++)
        bytes_end(&p.spare[i]);
    free(p.spare);
    free(p.group);
    free(hands);
    return good || no_memory("inputs");
}
