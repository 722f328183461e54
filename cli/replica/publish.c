/*
 * tamis publish: an origin. Lines of standard input change the filter. When a target is passed the change is
 * published, at most once per --min-gap, so that a burst becomes one or two messages. Messages that cannot be
 * sent wait in order until the carrier is reachable again; meanwhile the filter keeps changing, but nothing more
 * is published. Changes are logged (change_log.h) before they are acknowledged.
 *
 * With every heartbeat, but at least every 10 s, the origin checks what the carrier has: what was lost is
 * published again. If the snapshot there has a later epoch, another origin has taken the name, and this one ends.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "ui/args.h"
#include "change_log.h"
#include "outbox.h"
#include "ui/out.h"
#include "ui/report.h"
#include "ui/stop.h"
#include "ui/supervise.h"
#include "sets/set_file.h"

#define RUN           256 /* keys added or removed between checks of the targets */
#define LINE_PIECE    ((size_t)1 << 16)
#define RETRY_MS      100
#define HELD_UP_MS    50    /* if a carrier takes longer, input has piled up */
#define LOOK_MS       10000 /* between checks of the carrier, at most */
#define ADVANCE_LOOKS 6     /* checks after which an idle owner releases old messages */
#define RENEW_LOOKS   60    /* checks after which a busy owner sends a new snapshot */
#define LOG_MIN       ((uint64_t)1 << 22) /* bytes of log that do not justify saving the file */

struct publishing {
    struct store store;
    const char *owner;
    tamis_origin *origin;
    struct outbox box;
    struct change_log log;
    uint64_t beat_ms, next_beat, look_ms, next_look, looks, save_ms, next_save;
    uint64_t gap_ms, next_publish; /* milliseconds, at least, between publications */
    uint64_t age_ms;               /* --max-age, which is checked so often, or every second */
    char end;
    bool strict, changed, window, ack;
    uint64_t acknowledged; /* lines */
    uint64_t log_most;     /* bytes of log that justify saving the file */
    struct bytes line;     /* an incomplete line */
    tamis_digest run[RUN];
    size_t n_run, run_most;
    double miss;    /* the target */
    uint64_t items; /* at the start */
    bool removing;
    uint64_t added, removed, absent, bad, lines, first_bad;
    tamis_error error;
};

/* ---- messages -------------------------------------------------------------------------------- */

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
    tamis_error e = tamis_origin_publish(p->origin, outbox_add, &p->box, &reason);
    if (e == TAMIS_OK && snapshot)
        e = tamis_origin_snapshot(p->origin, outbox_add, &p->box, &reason);
    if (e == TAMIS_OK && p->box.n && p->box.message[p->box.n - 1].type == TAMIS_SNAPSHOT)
        e = tamis_origin_beat(p->origin, outbox_add, &p->box); /* tells followers of the snapshot */
    failed(p, e, &reason);
    outbox_send(&p->box);
    p->next_publish = carrier_now() + p->gap_ms;
    if (p->box.deltas == 0)
        p->looks = 0;
}

/* False if it has to wait because of --min-gap. */
static bool publish_if_due(struct publishing *p)
{
    if (!outbox_send(&p->box) || tamis_origin_due(p->origin) == TAMIS_DUE_NOT)
        return true;
    if (carrier_now() < p->next_publish)
        return false;
    publish(p, outbox_snapshot_due(&p->box));
    return true;
}

/* Does the carrier have everything that was sent, and is the name still ours? */
static void look(struct publishing *p)
{
    struct carrier_state state;
    if (!outbox_send(&p->box) || !carrier_state(p->box.carrier, p->owner, &state))
        return;
    if (state.there && state.epoch > p->box.epoch && p->error == TAMIS_OK) {
        p->error = TAMIS_EBUSY;
        complain("another process now publishes as %s: %s: stop one of them, or give it another "
                 "--as",
                 p->owner, p->store.path);
        return;
    }
    p->looks++;
    if (!state.whole || state.epoch != p->box.epoch || outbox_snapshot_due(&p->box) ||
        (p->box.deltas && p->looks >= RENEW_LOOKS))
        publish(p, true);
    else if (!p->box.deltas && p->looks % ADVANCE_LOOKS == 0)
        carrier_advance(p->box.carrier, p->owner);
}

static void beat(struct publishing *p)
{
    if (p->window)
        failed(p, tamis_filter_expire(as_filter(p->store.set)), NULL);
    if (p->error == TAMIS_OK && outbox_send(&p->box)) {
        if (tamis_origin_due(p->origin) != TAMIS_DUE_NOT) /* since the last check */
            publish(p, outbox_snapshot_due(&p->box));
        failed(p, tamis_origin_beat(p->origin, outbox_add, &p->box), NULL);
        outbox_send(&p->box);
    }
}

/* ---- lines of input -------------------------------------------------------------------------- */

/* At most a quarter of the keys that copies may miss. */
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
    if (!change_log_add(&p->log, p->removing, p->run, done))
        p->error = TAMIS_EIO;
    *(p->removing ? &p->removed : &p->added) += done;
    p->changed |= done != 0;
    p->n_run = 0;
    if (e == TAMIS_EKIND && p->removing && p->error == TAMIS_OK) {
        p->error = e;
        complain("it is not deletable: %s: lines with - need one made with create --deletable",
                 p->store.path);
    }
    failed(p, e, NULL);
    if (!p->gap_ms) /* else all input read so far goes into one message */
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

static void take_piece(struct publishing *p, const char *data, size_t len)
{
    while (len && p->error == TAMIS_OK) {
        const char *end = memchr(data, p->end, len);
        size_t here = end ? (size_t)(end - data) : len;
        if (!end || p->line.len) {
            if (!bytes_put(&p->line, data, here))
                return failed(p, TAMIS_ENOMEM, NULL);
            if (end)
                take_line(p, (char *)p->line.data, p->line.len);
            p->line.len = end ? 0 : p->line.len;
        } else {
            take_line(p, data, here);
        }
        data += here + (end != NULL);
        len -= here + (end != NULL);
    }
}

/* Acknowledges all lines so far, after one sync. */
static void acknowledge(struct publishing *p)
{
    if (!p->ack || p->lines == p->acknowledged || p->error != TAMIS_OK)
        return;
    if (!change_log_sync(&p->log)) {
        p->error = TAMIS_EIO;
        return;
    }
    p->acknowledged = p->lines;
    put_format("%llu\n", (unsigned long long)p->lines);
    put_flush();
}

/* False at the end of the input. */
static bool read_some(struct publishing *p, int wait)
{
    static char piece[LINE_PIECE];
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    int ready = poll(&input, 1, wait);
    if (ready <= 0)
        return true;
    ssize_t len = read(STDIN_FILENO, piece, sizeof piece);
    if (len > 0)
        take_piece(p, piece, (size_t)len);
    if (len == 0 && p->line.len) {
        take_line(p, (char *)p->line.data, p->line.len);
        p->line.len = 0;
    }
    if (len < 0 && errno != EINTR && errno != EAGAIN) {
        p->error = TAMIS_EIO;
        complain("%s: standard input: what was read so far is published", strerror(errno));
    }
    run_end(p);
    acknowledge(p);
    return len > 0 || (len < 0 && (errno == EINTR || errno == EAGAIN));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void save(struct publishing *p)
{
    if (!p->changed)
        return;
    if (change_log_save(&p->log, &p->store))
        p->changed = false;
    else
        p->error = TAMIS_EIO;
}

static bool strict_stop(const struct publishing *p)
{
    return p->strict && p->bad;
}

/* Milliseconds until the next action is due. */
static uint64_t wait_of(const struct publishing *p, bool gap)
{
    uint64_t now = carrier_now(), next = now + (p->age_ms < 1000 ? p->age_ms : 1000);
    const uint64_t times[] = {p->next_beat, p->next_look, p->next_save,
                              gap ? p->next_publish : next, p->box.n ? now + RETRY_MS : next};
    for (size_t i = 0; i < COUNT(times); i++)
        next = times[i] < next ? times[i] : next;
    return next > now ? next - now : 0;
}

static void run(struct publishing *p, bool stay)
{
    bool open = true, gap = false, held_up = false;
    publish(p, false);
    p->next_beat = carrier_now() + p->beat_ms;
    p->next_look = carrier_now() + p->look_ms;
    p->next_save = carrier_now() + p->save_ms;
    while (!stop_signal && p->error == TAMIS_OK && !p->box.carrier->hopeless && (open || stay) &&
           !strict_stop(p)) {
        supervise_turn(); /* something was published, or waits for the server */
        if (open)
            open = read_some(p, (int)wait_of(p, gap));
        else
            carrier_sleep(wait_of(p, gap));
        uint64_t now = carrier_now();
        gap = !publish_if_due(p);
        if (now >= p->next_look) {
            look(p);
            p->next_look = now + p->look_ms;
        }
        held_up = !held_up && carrier_now() > now + HELD_UP_MS;
        if (held_up)
            continue; /* a heartbeat would vouch for the input that has piled up: read it first */
        if (now >= p->next_beat) {
            beat(p);
            p->next_beat = now + p->beat_ms;
        }
        if (now >= p->next_save || p->log.end > p->log_most) {
            save(p);
            p->next_save = now + p->save_ms;
        }
    }
}

/* Sends what is left, if the carrier is reachable in time. */
static bool finish(struct publishing *p, uint64_t linger_ms)
{
    uint64_t until = carrier_now() + linger_ms;
    for (int i = 0; i < 2 && p->error != TAMIS_EBUSY; i++) {
        while (!outbox_send(&p->box) && !p->box.carrier->hopeless && carrier_now() < until)
            carrier_sleep(RETRY_MS);
        if (i == 0 && p->box.n == 0)
            publish(p, false);
    }
    return p->box.n == 0;
}

/* The epoch must be higher than the last one, even if the clock was set back. */
static bool find_epoch(struct publishing *p, uint64_t wait_ms)
{
    uint64_t until = carrier_now() + wait_ms;
    struct carrier *c = p->box.carrier;
    struct carrier_state state;
    bool told;
    while (!(told = carrier_state(c, p->owner, &state)) && !stop_signal && !c->hopeless &&
           carrier_now() < until) {
        if (!p->box.cut_off)
            remark("%s: trying again", c->error);
        p->box.cut_off = true;
        carrier_sleep(RETRY_MS);
    }
    if (!told)
        return refuse("%s: nothing was published: check the address", c->error);
    p->box.cut_off = false;
    p->box.epoch = clock_real(NULL);
    if (state.there && state.epoch >= p->box.epoch)
        p->box.epoch = state.epoch + 1;
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
    report_end();
}

struct choices {
    struct store_options files;
    const char *to, *as, *miss, *weights;
    uint64_t max_age, beat, linger, save, gap; /* nanoseconds */
    double false_rate, dirty;
    uint64_t message;
    bool zero, strict, stay, retire, no_key, json, verbose, has_rate, has_dirty;
};

static uint64_t milliseconds(uint64_t nanoseconds)
{
    return nanoseconds / 1000000 ? nanoseconds / 1000000 : 1;
}

static void set_times(const struct choices *c, struct publishing *p, tamis_origin_options *o)
{
    o->targets.max_age = c->max_age;
    o->beat = c->beat == ARG_NONE ? UINT64_C(1) << 60 : c->beat; /* 36 years */
    p->beat_ms = milliseconds(o->beat);
    p->look_ms = p->beat_ms < LOOK_MS ? p->beat_ms : LOOK_MS;
    p->save_ms = milliseconds(c->save);
    p->age_ms = o->targets.max_age ? o->targets.max_age / 1000000 + 1 : 1000;
    p->gap_ms = c->gap == ARG_NONE ? 0 : c->gap / 1000000;
}

static bool read_targets(const struct choices *c, tamis_targets *t)
{
    double weights[2];
    if (c->miss && strcmp(c->miss, "off") == 0)
        t->member_miss = -1;
    else if (c->miss && !parse_rate(c->miss, &t->member_miss))
        return refuse("wrong value '%s': --member-miss: give a rate such as 1%%, or off", c->miss);
    if (c->weights && parse_list(c->weights, weights, 2) != 2)
        return refuse("wrong value '%s': --weights: give two numbers such as 1,10", c->weights);
    if (c->weights)
        t->w_positive = weights[0], t->w_disagree = weights[1];
    t->false_rate = c->has_rate ? c->false_rate : -1;
    t->dirty = c->has_dirty ? c->dirty : -1;
    return true;
}

/* Replays the log of a process that was killed. */
static bool recover(struct publishing *p)
{
    tamis_filter_facts info;
    uint64_t replayed;
    if (!change_log_open(&p->log, &p->store, &replayed))
        return false;
    if (replayed)
        remark("replayed %llu changes of a process that was killed: %s",
               (unsigned long long)replayed, p->log.path);
    p->changed = replayed != 0;
    tamis_filter_info(as_filter(p->store.set), &info);
    p->window = info.growth == TAMIS_WINDOW;
    p->items = info.items;
    p->log_most = info.bits / 8 > LOG_MIN ? info.bits / 8 : LOG_MIN;
    return true;
}

static void say_what_was_wrong(const struct publishing *p, bool delivered)
{
    if (p->bad)
        complain("%llu lines do not begin with + or -: standard input, the first is line %llu: %s",
                 (unsigned long long)p->bad, (unsigned long long)p->first_bad,
                 p->strict ? "nothing after it was read" : "they were skipped");
    if (!delivered && p->error != TAMIS_EBUSY)
        complain("%s: %zu messages were not sent: the file %s", p->box.carrier->error, p->box.n,
                 p->changed ? "could not be saved" : "is saved, publish it again");
}

static int publish_with(struct publishing *p, const struct choices *c, tamis_origin_options *o)
{
    tamis_reason reason = {0};
    stop_catch();
    if (!recover(p) || !find_epoch(p, c->stay ? UINT64_MAX / 2 : c->linger / 1000000))
        return TROUBLE;
    o->epoch = p->box.epoch;
    tamis_error e = tamis_origin_new(&p->origin, as_filter(p->store.set), o, &reason);
    if (e != TAMIS_OK)
        return complain_of(e, &reason, p->store.path);
    p->miss = o->targets.member_miss == 0 ? 0.01 : o->targets.member_miss;
    set_run(p);
    run(p, c->stay);
    supervise_tell("STOPPING=1");
    bool delivered = finish(p, c->linger / 1000000);
    if (delivered && c->retire && p->error == TAMIS_OK)
        delivered = tamis_origin_farewell(p->origin, outbox_add, &p->box) == TAMIS_OK &&
                    outbox_send(&p->box) && carrier_retire(p->box.carrier, p->owner, false);
    save(p);
    say_what_was_wrong(p, delivered);
    if (c->json || c->verbose)
        report(p, c->json);
    return delivered && p->error == TAMIS_OK && !strict_stop(p) ? FOUND : TROUBLE;
}

int verb_publish(int argc, char **argv)
{
    struct choices c = {.beat = UINT64_C(10000000000),
                        .linger = UINT64_C(30000000000),
                        .save = UINT64_C(60000000000),
                        .gap = 20000000};
    struct publishing p = {.log.fd = -1};
    const struct arg args[] = {
        ARG("to", 0, ARG_TEXT, &c.to),
        ARG("as", 0, ARG_TEXT, &c.as),
        ARG("member-miss", 0, ARG_TEXT, &c.miss),
        ARG_GIVEN("false-rate", ARG_RATE, &c.false_rate, &c.has_rate),
        ARG("weights", 0, ARG_TEXT, &c.weights),
        ARG_GIVEN("dirty", ARG_RATE, &c.dirty, &c.has_dirty),
        ARG("max-age", 0, ARG_TIME, &c.max_age),
        ARG("beat", 0, ARG_WHILE, &c.beat),
        ARG("linger", 0, ARG_TIME, &c.linger),
        ARG("save", 0, ARG_TIME, &c.save),
        ARG("min-gap", 0, ARG_WHILE, &c.gap),
        ARG("ack", 0, ARG_FLAG, &p.ack),
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
    tamis_origin_options o = {.owner = c.as, .message_bytes = c.message, .no_key = c.no_key};
    p.owner = p.box.owner = c.as;
    p.end = c.zero ? 0 : '\n';
    p.strict = c.strict;
    if (!read_targets(&c, &o.targets))
        return TROUBLE;
    set_times(&c, &p, &o);
    c.files.replays = true;
    p.box.carrier = carrier_open(c.to, error);
    if (!p.box.carrier)
        return complain("%s: --to", error);
    p.box.carrier->open_to_all = c.no_key;
    int status = store_change(&p.store, words.word[0], TAMIS_KIND_FILTER, &c.files)
                     ? publish_with(&p, &c, &o)
                     : TROUBLE;
    outbox_free(&p.box);
    bytes_end(&p.line);
    tamis_origin_free(p.origin);
    change_log_close(&p.log);
    store_end(&p.store);
    carrier_close(p.box.carrier);
    return status;
}
