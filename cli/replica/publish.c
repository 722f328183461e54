/*
 * tamis publish: an origin. Lines of standard input change the filter; whenever a target is passed,
 * what changed goes out. Messages that cannot be sent wait, in order, and are sent when the carrier is
 * there again; meanwhile the filter goes on, and no more is published than what waits.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/args.h"
#include "carrier/carrier.h"
#include "ui/cli.h"
#include "ui/report.h"
#include "sets/set_file.h"

#define RUN          256 /* keys added or removed between two looks at the targets */
#define PIECE        ((size_t)1 << 16)
#define SNAPSHOT_MIN ((uint64_t)1 << 18) /* bytes of messages that are no reason for a snapshot */
#define RETRY_MS     100

struct message {
    void *data;
    size_t len;
    bool snapshot;
};

struct outbox {
    struct message *message;
    size_t n, room;
    uint64_t since; /* bytes sent since the last snapshot, */
    uint64_t last;  /* and the bytes of that one */
};

struct publishing {
    struct store store;
    const char *owner;
    struct carrier *carrier;
    tamis_origin *origin;
    struct outbox box;
    uint64_t epoch, beat_ms, next_beat, save_ms, next_save;
    char end;
    bool strict, changed, window;
    bool out_of_memory, cut_off; /* cut off: the carrier failed, and this was said */
    char *line;                  /* the start of a line that is not all there yet */
    size_t line_len, line_room;
    tamis_digest run[RUN];
    size_t n_run, run_most;
    double miss;    /* the target */
    uint64_t items; /* at the start */
    bool removing;
    uint64_t added, removed, absent, bad, lines, first_bad;
    tamis_error error;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* ---- what goes out --------------------------------------------------------------------------- */

static int box_add(void *context, const void *data, size_t len)
{
    struct publishing *p = context;
    struct outbox *box = &p->box;
    tamis_message message;
    if (box->n == box->room) {
        size_t room = box->room ? 2 * box->room : 16;
        struct message *grown = realloc(box->message, room * sizeof *grown);
        if (!grown)
            return -1;
        box->message = grown;
        box->room = room;
    }
    if (tamis_message_read(&message, data, len, NULL) != TAMIS_OK)
        return -1;
    struct message *next = &box->message[box->n];
    next->data = malloc(len);
    if (!next->data)
        return -1;
    memcpy(next->data, data, len);
    next->len = len;
    next->snapshot = message.type == TAMIS_SNAPSHOT;
    box->n++;
    return 0;
}

static void box_drop(struct outbox *box, size_t n)
{
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        free(box->message[i].data);
    memmove(box->message, box->message + n, (box->n - n) * sizeof *box->message);
    box->n -= n;
}

/* The snapshot at the front of the box, all its parts. */
static bool send_snapshot(struct publishing *p)
{
    struct outbox *box = &p->box;
    size_t n = 0;
    uint64_t bytes = 0;
    while (n < box->n && box->message[n].snapshot)
        bytes += box->message[n++].len;
    struct carrier_part *parts = malloc(n * sizeof *parts);
    if (!parts)
        return carrier_fail(p->carrier, "out of memory");
    for (size_t i = 0; i < n; i++)
        parts[i] = (struct carrier_part){box->message[i].data, box->message[i].len};
    bool sent = carrier_replace(p->carrier, p->owner, p->epoch, parts, n);
    free(parts);
    if (!sent)
        return false;
    box_drop(box, n);
    box->since = 0;
    box->last = bytes;
    return true;
}

/* Sends what waits; false if something still does. */
static bool box_send(struct publishing *p)
{
    struct outbox *box = &p->box;
    while (box->n) {
        bool snapshot = box->message[0].snapshot;
        bool sent = snapshot ? send_snapshot(p)
                             : carrier_send(p->carrier, p->owner, box->message[0].data,
                                            box->message[0].len);
        if (!sent) {
            if (!p->cut_off)
                remark("%s: trying again", p->carrier->error);
            p->cut_off = true;
            return false;
        }
        if (!snapshot) {
            box->since += box->message[0].len;
            box_drop(box, 1);
        }
    }
    if (p->cut_off)
        remark("%s is there again", p->owner);
    p->cut_off = false;
    return true;
}

static void failed(struct publishing *p, tamis_error e, const tamis_reason *reason)
{
    if (e != TAMIS_OK && p->error == TAMIS_OK) {
        p->error = e;
        complain_of(e, reason, p->store.path);
    }
}

static void publish(struct publishing *p, bool snapshot)
{
    tamis_reason reason = {0};
    tamis_error e = tamis_origin_publish(p->origin, box_add, p, &reason);
    if (e == TAMIS_OK && snapshot)
        e = tamis_origin_snapshot(p->origin, box_add, p, &reason);
    if (e == TAMIS_OK && p->box.n && p->box.message[p->box.n - 1].snapshot)
        e = tamis_origin_beat(p->origin, box_add, p); /* so that followers hear of it */
    failed(p, e, &reason);
    box_send(p);
}

/* Is a snapshot wanted, so that the messages since the last one can go? */
static bool snapshot_due(const struct publishing *p)
{
    uint64_t most = p->box.last > SNAPSHOT_MIN ? p->box.last : SNAPSHOT_MIN;
    return p->box.last && p->box.since > most;
}

static void publish_if_due(struct publishing *p)
{
    if (p->box.n ? !box_send(p) : false)
        return;
    if (tamis_origin_due(p->origin) != TAMIS_DUE_NOT)
        publish(p, snapshot_due(p));
}

static void beat(struct publishing *p)
{
    uint64_t epoch = 0;
    if (p->window)
        failed(p, tamis_filter_expire(as_filter(p->store.set)), NULL);
    if (!box_send(p))
        return;
    int there = carrier_last_epoch(p->carrier, p->owner, &epoch);
    if (there == 0 || (there > 0 && epoch != p->epoch)) {
        publish(p, true); /* the carrier lost what it had */
        return;
    }
    failed(p, tamis_origin_beat(p->origin, box_add, p), NULL);
    if (box_send(p) && snapshot_due(p))
        publish(p, true);
}

/* ---- what comes in --------------------------------------------------------------------------- */

/* No more keys at once than a quarter of what may be missed. */
static void set_run(struct publishing *p)
{
    uint64_t gone = p->removed - p->absent, items = p->items + p->added;
    double most = p->miss * (double)(items > gone ? items - gone : 0) / 4;
    p->run_most = p->miss < 0 || most > RUN ? RUN : most > 1 ? (size_t)most : 1;
}

static void run_end(struct publishing *p)
{
    uint8_t outcomes[RUN];
    size_t done = 0;
    if (p->n_run == 0 || p->error != TAMIS_OK)
        return;
    tamis_filter *f = as_filter(p->store.set);
    tamis_error e = p->removing ? tamis_filter_remove_many(f, p->run, p->n_run, outcomes, &done)
                                : tamis_filter_add_many(f, p->run, p->n_run, NULL, &done);
    for (size_t i = 0; p->removing && i < done; i++)
        p->absent += outcomes[i] == TAMIS_ABSENT;
    *(p->removing ? &p->removed : &p->added) += done;
    p->changed |= done != 0;
    p->n_run = 0;
    if (e == TAMIS_EKIND && p->removing && p->error == TAMIS_OK) {
        p->error = e;
        complain("it is not deletable: %s: lines with - need one made with create --deletable",
                 p->store.path);
    }
    failed(p, e, NULL);
    publish_if_due(p);
    set_run(p);
}

static void take_line(struct publishing *p, const char *line, size_t len)
{
    p->lines++;
    if (len == 0 || (line[0] != '+' && line[0] != '-')) {
        if (p->bad++ == 0)
            p->first_bad = p->lines;
        return;
    }
    bool removing = line[0] == '-';
    if (p->n_run >= p->run_most || removing != p->removing)
        run_end(p);
    p->removing = removing;
    p->run[p->n_run++] = tamis_filter_digest(as_filter(p->store.set), line + 1, len - 1);
}

/* Keeps the start of a line whose end is to come. */
static bool keep(struct publishing *p, const char *data, size_t len)
{
    if (p->line_len + len > p->line_room) {
        size_t room = 2 * (p->line_len + len);
        char *grown = realloc(p->line, room);
        if (!grown) {
            failed(p, TAMIS_ENOMEM, NULL);
            return false;
        }
        p->line = grown;
        p->line_room = room;
    }
    if (len)
        memcpy(p->line + p->line_len, data, len);
    p->line_len += len;
    return true;
}

static void take_piece(struct publishing *p, const char *data, size_t len)
{
    while (len && p->error == TAMIS_OK) {
        const char *end = memchr(data, p->end, len);
        size_t here = end ? (size_t)(end - data) : len;
        if (!end || p->line_len) {
            if (!keep(p, data, here))
                return;
            if (end)
                take_line(p, p->line, p->line_len);
            p->line_len = end ? 0 : p->line_len;
        } else {
            take_line(p, data, here);
        }
        data += here + (end != NULL);
        len -= here + (end != NULL);
    }
}

/* False at the end of the input. */
static bool read_some(struct publishing *p, int wait)
{
    static char piece[PIECE];
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    int ready = poll(&input, 1, wait);
    if (ready <= 0)
        return true;
    ssize_t len = read(STDIN_FILENO, piece, sizeof piece);
    if (len > 0)
        take_piece(p, piece, (size_t)len);
    if (len == 0 && p->line_len) {
        take_line(p, p->line, p->line_len);
        p->line_len = 0;
    }
    if (len < 0 && errno != EINTR && errno != EAGAIN) {
        p->error = TAMIS_EIO;
        complain("%s: standard input: what came so far is published", strerror(errno));
    }
    run_end(p);
    return len > 0 || (len < 0 && (errno == EINTR || errno == EAGAIN));
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void save(struct publishing *p)
{
    if (!p->changed)
        return;
    if (store_save(&p->store, 0))
        p->changed = false;
    else
        p->error = TAMIS_EIO;
}

static bool strict_stop(const struct publishing *p)
{
    return p->strict && p->bad;
}

static void run(struct publishing *p, bool stay)
{
    bool open = true;
    publish(p, false);
    p->next_beat = carrier_now() + p->beat_ms;
    p->next_save = carrier_now() + p->save_ms;
    while (!stopped && p->error == TAMIS_OK && !p->carrier->hopeless && (open || stay) &&
           !strict_stop(p)) {
        uint64_t now = carrier_now(),
                 next = p->next_beat < p->next_save ? p->next_beat : p->next_save;
        uint64_t wait = p->box.n ? RETRY_MS : next > now ? next - now : 0;
        wait = wait < 1000 ? wait : 1000; /* ages pass without a sign */
        if (open)
            open = read_some(p, (int)wait);
        else
            carrier_sleep(wait);
        publish_if_due(p);
        now = carrier_now();
        if (now >= p->next_beat) {
            beat(p);
            p->next_beat = now + p->beat_ms;
        }
        if (now >= p->next_save) {
            save(p);
            p->next_save = now + p->save_ms;
        }
    }
}

/* What is left goes out, if the carrier comes back in time. */
static bool finish(struct publishing *p, uint64_t linger_ms)
{
    uint64_t until = carrier_now() + linger_ms;
    while (!box_send(p) && !p->carrier->hopeless && carrier_now() < until)
        carrier_sleep(RETRY_MS);
    if (p->box.n == 0)
        publish(p, false);
    while (!box_send(p) && !p->carrier->hopeless && carrier_now() < until)
        carrier_sleep(RETRY_MS);
    return p->box.n == 0;
}

/* The epoch is above that of the last life, whatever the clock says. */
static bool find_epoch(struct publishing *p, uint64_t wait_ms)
{
    uint64_t until = carrier_now() + wait_ms, last = 0;
    int there;
    while ((there = carrier_last_epoch(p->carrier, p->owner, &last)) < 0 && !stopped &&
           !p->carrier->hopeless && carrier_now() < until) {
        if (!p->cut_off)
            remark("%s: trying again", p->carrier->error);
        p->cut_off = true;
        carrier_sleep(RETRY_MS);
    }
    if (there < 0)
        return complain("%s: nothing was published: check the address", p->carrier->error), false;
    p->cut_off = false;
    p->epoch = clock_real(NULL);
    if (there && last >= p->epoch)
        p->epoch = last + 1;
    return true;
}

static void report(const struct publishing *p, bool json)
{
    tamis_origin_facts facts;
    tamis_origin_info(p->origin, &facts);
    report_open(json);
    report_text("owner", "owner", p->owner);
    report_count("version", "version", facts.version);
    report_count("added", "keys added", p->added);
    report_count("removed", "keys removed", p->removed - p->absent);
    report_count("absent", "keys that were absent", p->absent);
    report_count("deltas", "deltas", facts.deltas);
    report_count("snapshots", "snapshots", facts.snapshots);
    report_count("messages", "messages", facts.messages);
    report_size("bytes", "bytes sent", facts.bytes);
    report_close();
}

struct choices {
    struct store_options files;
    const char *to, *as, *miss, *weights, *max_age, *beat, *linger, *save;
    double false_rate, dirty;
    uint64_t message;
    bool zero, strict, stay, retire, no_key, json, verbose, has_rate, has_dirty;
};

static bool read_times(const struct choices *c, struct publishing *p, tamis_origin_options *o,
                       uint64_t *linger)
{
    uint64_t save_every = UINT64_C(60000000000);
    const struct {
        const char *text, *name;
        uint64_t *to;
    } times[] = {{c->max_age, "--max-age", &o->targets.max_age},
                 {c->linger, "--linger", linger},
                 {c->save, "--save", &save_every}};
    for (size_t i = 0; i < COUNT(times); i++)
        if (times[i].text && !parse_time(times[i].text, times[i].to))
            return complain("wrong value '%s': %s: give a time such as 30s or 5m", times[i].text,
                            times[i].name),
                   false;
    o->beat = UINT64_C(10000000000);
    bool none = c->beat && strcmp(c->beat, "none") == 0;
    if (none)
        o->beat = UINT64_C(1) << 60; /* 36 years */
    else if (c->beat && !parse_time(c->beat, &o->beat))
        return complain("wrong value '%s': --beat: give a time such as 10s, or none", c->beat),
               false;
    p->beat_ms = o->beat / 1000000 ? o->beat / 1000000 : 1;
    p->save_ms = save_every / 1000000 ? save_every / 1000000 : 1;
    return true;
}

static bool read_targets(const struct choices *c, tamis_targets *t)
{
    double weights[2];
    if (c->miss && strcmp(c->miss, "off") == 0)
        t->member_miss = -1;
    else if (c->miss && !parse_rate(c->miss, &t->member_miss))
        return complain("wrong value '%s': --member-miss: give a rate such as 1%%, or off",
                        c->miss),
               false;
    if (c->weights && parse_list(c->weights, weights, 2) != 2)
        return complain("wrong value '%s': --weights: give two numbers such as 1,10", c->weights),
               false;
    if (c->weights)
        t->w_positive = weights[0], t->w_disagree = weights[1];
    t->false_rate = c->has_rate ? c->false_rate : -1;
    t->dirty = c->has_dirty ? c->dirty : -1;
    return true;
}

static int publish_with(struct publishing *p, const struct choices *c, tamis_origin_options *o,
                        uint64_t linger)
{
    tamis_reason reason = {0};
    tamis_filter_facts info;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!find_epoch(p, c->stay ? UINT64_MAX / 2 : linger / 1000000))
        return TROUBLE;
    o->epoch = p->epoch;
    tamis_error e = tamis_origin_new(&p->origin, as_filter(p->store.set), o, &reason);
    if (e != TAMIS_OK)
        return complain_of(e, &reason, p->store.path);
    tamis_filter_info(as_filter(p->store.set), &info);
    p->window = info.growth == TAMIS_WINDOW;
    p->miss = o->targets.member_miss == 0 ? 0.01 : o->targets.member_miss;
    p->items = info.items;
    set_run(p);
    run(p, c->stay);
    bool delivered = finish(p, linger / 1000000);
    if (delivered && c->retire)
        delivered = tamis_origin_farewell(p->origin, box_add, p) == TAMIS_OK && box_send(p) &&
                    carrier_retire(p->carrier, p->owner);
    save(p);
    if (p->bad)
        complain("%llu lines do not begin with + or -: standard input, the first is line %llu: %s",
                 (unsigned long long)p->bad, (unsigned long long)p->first_bad,
                 p->strict ? "nothing after it was read" : "they were skipped");
    if (!delivered)
        complain("%s: %zu messages were not sent: the file %s", p->carrier->error, p->box.n,
                 p->changed ? "could not be saved" : "is saved, publish it again");
    if (c->json || c->verbose)
        report(p, c->json);
    return delivered && p->error == TAMIS_OK && !strict_stop(p) ? FOUND : TROUBLE;
}

int verb_publish(int argc, char **argv)
{
    struct choices c = {0};
    struct publishing p = {0};
    const struct arg args[] = {
        ARG("to", 0, ARG_TEXT, &c.to),
        ARG("as", 0, ARG_TEXT, &c.as),
        ARG("member-miss", 0, ARG_TEXT, &c.miss),
        ARG_GIVEN("false-rate", ARG_RATE, &c.false_rate, &c.has_rate),
        ARG("weights", 0, ARG_TEXT, &c.weights),
        ARG_GIVEN("dirty", ARG_RATE, &c.dirty, &c.has_dirty),
        ARG("max-age", 0, ARG_TEXT, &c.max_age),
        ARG("beat", 0, ARG_TEXT, &c.beat),
        ARG("linger", 0, ARG_TEXT, &c.linger),
        ARG("save", 0, ARG_TEXT, &c.save),
        ARG("message", 0, ARG_COUNT, &c.message),
        ARG("stay", 0, ARG_FLAG, &c.stay),
        ARG("retire", 0, ARG_FLAG, &c.retire),
        ARG("no-key", 0, ARG_FLAG, &c.no_key),
        ARG("null", '0', ARG_FLAG, &c.zero),
        ARG("strict", 0, ARG_FLAG, &c.strict),
        ARG("verbose", 'v', ARG_FLAG, &c.verbose),
        ARG("json", 0, ARG_FLAG, &c.json),
        STORE_KEY_ARG(c.files),
        STORE_WRITE_ARG(c.files),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n != 1 || !c.to || !c.as)
        return complain("a file, --to and --as are needed: tamis publish FILE --to "
                        "redis://HOST:PORT/NAME --as OWNER: see tamis help publish");
    if (!c.as[0] || strlen(c.as) > TAMIS_OWNER_MAX)
        return complain("not a name of 1 to %d bytes: --as: give such a name", TAMIS_OWNER_MAX);
    char error[256];
    uint64_t linger = UINT64_C(30000000000);
    tamis_origin_options o = {.owner = c.as, .message_bytes = c.message, .no_key = c.no_key};
    p.owner = c.as;
    p.end = c.zero ? 0 : '\n';
    p.strict = c.strict;
    if (!read_times(&c, &p, &o, &linger) || !read_targets(&c, &o.targets))
        return TROUBLE;
    p.carrier = carrier_open(c.to, error);
    if (!p.carrier)
        return complain("%s: --to", error);
    int status = store_change(&p.store, words.word[0], TAMIS_KIND_FILTER, &c.files)
                     ? publish_with(&p, &c, &o, linger)
                     : TROUBLE;
    box_drop(&p.box, p.box.n);
    free(p.box.message);
    free(p.line);
    tamis_origin_free(p.origin);
    store_end(&p.store);
    carrier_close(p.carrier);
    return status;
}
