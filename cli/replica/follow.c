/*
 * tamis follow: copies of all origins of a stream, kept in memory and, by a thread of its own
 * (follow_save.h), in a folder. What a copy promises, it promises as of the last heartbeat of its origin.
 * A round costs the messages it takes, whatever the number of owners: 10,000 that send a heartbeat every
 * ten seconds are 1,000 messages a second.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ui/args.h"
#include "ui/escape.h"
#include "ui/progress.h"
#include "follow_save.h"
#include "serve.h"
#include "ui/report.h"
#include "sets/set_file.h"

#define WAIT_MS   100  /* for messages, so that nothing else waits longer */
#define OWNERS_MS 5000 /* between looks for owners that were never heard of */
#define PAUSE_MIN 200  /* between fetches of one snapshot that did not help */
#define PAUSE_MAX 10000
#define SHOW_MS   1000 /* between lines on a terminal */

/* What is known of an owner here, by its number. */
struct care {
    bool known, wanting;        /* wanting: in the list of those that need a snapshot */
    bool told;                  /* why it cannot be followed */
    uint64_t next_fetch, pause; /* milliseconds: when a snapshot may be asked for again */
};

struct following {
    struct replicas replicas; /* the saver's, but for the directory */
    struct saver saver;
    char position[CARRIER_POSITION];
    struct care *care;
    size_t n_care;
    uint32_t *wanting;
    size_t n_wanting, wanting_room;
    struct carrier *carrier;
    const uint8_t *key; /* or NULL */
    bool verbose, live, cut_off, out_of_memory;
    bool reached; /* what carries the messages, once */
    struct follow_counts counts;
    const struct serve_address *serve; /* or NULL */
    struct serving *serving;
    uint64_t next_owners, next_show, every_ms;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* It needs a snapshot, or may: it is in the list until it has one. */
static void want(struct following *f, uint32_t number)
{
    if (f->care[number].wanting)
        return;
    if (f->n_wanting == f->wanting_room) {
        size_t room = 2 * f->wanting_room + 64;
        uint32_t *grown = realloc(f->wanting, room * sizeof *grown);
        f->out_of_memory |= !grown;
        if (!grown)
            return;
        f->wanting = grown;
        f->wanting_room = room;
    }
    f->wanting[f->n_wanting++] = number;
    f->care[number].wanting = true;
}

/* Finds the owner or adds it, in doubt; NULL if it cannot be one, or out of memory. */
static struct care *care_of(struct following *f, const char *name, uint32_t *number)
{
    if (!name[0] || strlen(name) > TAMIS_OWNER_MAX)
        return NULL;
    if (tamis_directory_expect(f->replicas.directory, name, number, NULL) != TAMIS_OK) {
        f->out_of_memory = true;
        return NULL;
    }
    if (*number >= f->n_care) {
        size_t room = 2 * (size_t)*number + 64;
        struct care *grown = realloc(f->care, room * sizeof *grown);
        f->out_of_memory |= !grown;
        if (!grown)
            return NULL;
        memset(grown + f->n_care, 0, (room - f->n_care) * sizeof *grown);
        f->care = grown;
        f->n_care = room;
    }
    if (!f->care[*number].known)
        want(f, *number);
    f->care[*number].known = true;
    return &f->care[*number];
}

/* The saver removes its file. */
static void drop(struct following *f, uint32_t number)
{
    bool wanting = f->care[number].wanting; /* stays in the list */
    tamis_directory_drop(f->replicas.directory,
                         tamis_directory_name(f->replicas.directory, number));
    f->care[number] = (struct care){.wanting = wanting};
}

static const tamis_follower *copy_of(const struct following *f, uint32_t number)
{
    return tamis_directory_follower(f->replicas.directory, number);
}

static bool is_beat(const void *data, size_t len)
{
    tamis_message m;
    return tamis_message_read(&m, data, len, NULL) == TAMIS_OK && m.type == TAMIS_HEARTBEAT;
}

static void take(void *context, const char *owner, const void *data, size_t len, uint64_t age)
{
    struct following *f = context;
    uint32_t number;
    struct care *c = care_of(f, owner, &number);
    tamis_reason reason = {0};
    tamis_taken taken;
    f->counts.messages++;
    f->counts.bytes += len;
    if (!c)
        return;
    tamis_error e =
        tamis_directory_take(f->replicas.directory, owner, data, len, age, &taken, &reason);
    f->counts.applied += taken == TAMIS_APPLIED;
    f->counts.refused += e != TAMIS_OK;
    if (e != TAMIS_OK)
        want(f, number);
    if (e == TAMIS_EBASE && age != AGE_UNKNOWN && is_beat(data, len))
        c->next_fetch = 0; /* the origin lives: what it has for us may have changed */
    if (e != TAMIS_OK && (f->verbose || (e != TAMIS_EBASE && !c->told))) {
        remark("refused: %s: %s", reason.text, owner);
        c->told = true;
    }
    if (taken == TAMIS_HEARD && tamis_follower_freshness(copy_of(f, number)) == TAMIS_GONE)
        drop(f, number);
}

/* One that was forgotten is dropped, unless it lives. */
static void expect(void *context, const char *owner, bool forgotten)
{
    struct following *f = context;
    uint32_t number = tamis_directory_number(f->replicas.directory, owner);
    if (!forgotten)
        care_of(f, owner, &number);
    else if (number < TAMIS_OWNERS_MAX &&
             tamis_follower_freshness(copy_of(f, number)) != TAMIS_CURRENT)
        drop(f, number);
}

/* Whether it still needs one; fetches it if it is time. One that did not help (an origin that died
   half-way) is not fetched again and again. */
static bool fetch_snapshot(struct following *f, uint32_t number, bool *failed)
{
    const char *name = tamis_directory_name(f->replicas.directory, number);
    tamis_follower_facts facts;
    if (!name || !tamis_directory_copy(f->replicas.directory, number, &facts))
        return false;
    struct care *c = &f->care[number];
    if (!facts.needs_snapshot) {
        c->pause = 0;
        return false;
    }
    if (carrier_now() < c->next_fetch || *failed)
        return true;
    c->pause = c->pause ? (2 * c->pause < PAUSE_MAX ? 2 * c->pause : PAUSE_MAX) : PAUSE_MIN;
    c->next_fetch = carrier_now() + c->pause;
    int there = carrier_fetch(f->carrier, name, f->position, take, f);
    f->counts.snapshots += there > 0;
    *failed = there < 0;
    return true;
}

/* Meanwhile the list may grow. */
static void fetch_snapshots(struct following *f)
{
    size_t kept = 0;
    bool failed = false;
    for (size_t i = 0; i < f->n_wanting; i++) {
        uint32_t number = f->wanting[i];
        bool wants = fetch_snapshot(f, number, &failed);
        f->care[number].wanting = wants;
        if (wants)
            f->wanting[kept++] = number;
    }
    f->n_wanting = kept;
}

/* What an earlier run left; a copy that cannot be read is fetched anew. */
static bool resume(struct following *f)
{
    if (mkdir(f->replicas.folder, 0700) != 0 && errno != EEXIST)
        return complain("%s: %s: give a folder that can be made", strerror(errno),
                        f->replicas.folder),
               false;
    if (!replicas_lock(&f->replicas) || !replicas_read(&f->replicas, f->key, !f->serve, true))
        return false;
    memcpy(f->position, f->replicas.position, sizeof f->position);
    f->replicas.every = f->every_ms * 1000000;
    snprintf(f->replicas.serve, sizeof f->replicas.serve, "%s", f->serve ? f->serve->whole : "");
    const char *name;
    for (uint32_t i = 0, number; replicas_next(&f->replicas, &i, &name); i++) {
        struct replica *r = &f->replicas.replica[i];
        char path[PATH_MAX];
        tamis_reason reason = {0};
        replicas_path(&f->replicas, name, path);
        bool known = r->lease && f->replicas.boot[0];
        uint64_t age = known ? carrier_since(r->heard, carrier_clock()) : AGE_UNKNOWN;
        if (!care_of(f, name, &number))
            return complain("out of memory: %s: free some and run again", f->replicas.folder),
                   false;
        if (r->version &&
            tamis_directory_load(f->replicas.directory, name, path, age, &reason) != TAMIS_OK) {
            remark("%s: fetching it again", reason.text);
            r->epoch = r->version = 0;
        }
    }
    return true;
}

/* ---- what is shown --------------------------------------------------------------------------- */

static size_t count_current(const struct following *f)
{
    const char *name;
    size_t n = 0;
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++)
        n += tamis_follower_freshness(copy_of(f, i)) == TAMIS_CURRENT;
    return n;
}

/* One line, renewed in place: origins, the first few versions, the oldest age, the loosest bound. */
static void show(const struct following *f)
{
    char versions[80] = "";
    double oldest = 0, miss = 0;
    const char *name;
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++) {
        tamis_follower_facts facts;
        tamis_follower_info(copy_of(f, i), &facts);
        size_t len = strlen(versions);
        char shown[13];
        escape_text(shown, sizeof shown, name);
        if (len < 50)
            snprintf(versions + len, sizeof versions - len, " %s@%llu", shown,
                     (unsigned long long)facts.version);
        double age = (double)facts.age / 1e9;
        oldest = facts.version && age > oldest ? age : oldest;
        miss = facts.targets.member_miss > miss ? facts.targets.member_miss : miss;
    }
    fprintf(
        stderr,
        "\r%zu origins, %zu current:%s; heard %.0f s ago, miss <= %g %% as of then; %llu messages, "
        "%.1f MB\033[K",
        replicas_count(&f->replicas), count_current(f), versions, oldest, 100 * miss,
        (unsigned long long)f->counts.messages, (double)f->counts.bytes / 1e6);
}

static void report_owner(const char *name, const tamis_follower *follower)
{
    static const char *const names[] = {"current", "unknown", "behind",
                                        "stale",   "gone",    "contested"};
    tamis_follower_facts facts;
    tamis_follower_info(follower, &facts);
    report_group(name, name);
    report_text("state", "state", names[facts.freshness]);
    report_count("version", "version", facts.version);
    report_real("age", "seconds since it was heard", (double)facts.age / 1e9);
    report_rate("member_miss", "members missed at most, as of then", facts.targets.member_miss);
    report_rate("member_miss_now", "members missed, as of then", facts.estimate.member_miss);
    report_rate("positive", "false positives", facts.estimate.positive);
    report_count("items", "keys", facts.items);
    report_group_end();
}

static void report(const struct following *f, bool json)
{
    report_open(json);
    report_count("origins", "origins", replicas_count(&f->replicas));
    report_count("current", "current", count_current(f));
    report_count("messages", "messages", f->counts.messages);
    report_size("bytes", "bytes", f->counts.bytes);
    report_count("applied", "versions taken", f->counts.applied);
    report_count("refused", "messages refused", f->counts.refused);
    report_count("snapshots", "snapshots fetched", f->counts.snapshots);
    report_group("owners", "owners");
    const char *name;
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++)
        report_owner(name, copy_of(f, i));
    report_group_end();
    report_close();
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void say_connection(struct following *f, bool good)
{
    if (!good && !f->cut_off)
        remark("%s: trying again", f->carrier->error);
    if (good && f->cut_off)
        remark("there again: %zu origins", replicas_count(&f->replicas));
    f->cut_off = !good;
    f->counts.cut_off = !good;
    f->counts.reached = f->carrier->reached;
    f->reached |= good;
}

/* One round: new owners, missing snapshots, messages. */
static bool step(struct following *f)
{
    uint64_t now = carrier_now();
    if (!f->cut_off && now >= f->next_owners && carrier_owners(f->carrier, expect, f))
        f->next_owners = now + OWNERS_MS;
    if (!f->cut_off)
        fetch_snapshots(f);
    int n = carrier_receive(f->carrier, f->position, WAIT_MS, take, f);
    if (f->cut_off && n >= 0)
        f->next_owners = 0;
    say_connection(f, n >= 0);
    if (f->carrier->reached)
        tamis_directory_contact(f->replicas.directory,
                                carrier_since(f->carrier->reached, carrier_clock()));
    if (f->out_of_memory)
        return complain("out of memory: %s: free some and run again", f->replicas.folder), false;
    saver_note(&f->saver, f->position, f->carrier->reached);
    now = carrier_now();
    if (f->live && now >= f->next_show) {
        f->next_show = now + SHOW_MS;
        show(f);
    }
    return !atomic_load(&f->saver.failed);
}

static bool all_current(const struct following *f)
{
    size_t n = replicas_count(&f->replicas);
    return n && !f->cut_off && count_current(f) == n;
}

static int follow(struct following *f, bool once, uint64_t limit_ms)
{
    uint64_t until = carrier_now() + limit_ms;
    bool all = false;
    bool good = resume(f) &&
                (!f->serve || (f->serving = serve_start(f->serve, f->replicas.directory, &f->counts,
                                                        f->replicas.folder))) &&
                saver_start(&f->saver, &f->replicas, f->every_ms);
    while (good && !stopped && !f->carrier->hopeless && carrier_now() < until && !all) {
        good = step(f);
        all = once && all_current(f);
    }
    bool never = f->cut_off && !f->reached && !stopped;
    serve_stop(f->serving);
    if (f->live)
        fputs("\n", stderr);
    good = saver_stop(&f->saver, good && !f->carrier->hopeless && !never) && good;
    if (good && f->carrier->hopeless)
        return complain("%s: check the address", f->carrier->error);
    if (good && never)
        return complain("%s: never reached in that time: the copies are as they were",
                        f->carrier->error);
    return !good ? TROUBLE : once && !all ? NONE : FOUND;
}

int verb_follow(int argc, char **argv)
{
    struct following f = {.every_ms = 1000};
    const char *folder = NULL, *limit = NULL, *every = NULL, *key_file = NULL, *most = NULL;
    const char *serve = NULL;
    struct serve_address address;
    bool once = false, json = false;
    uint64_t limit_ns = UINT64_MAX / 2, every_ns = UINT64_C(1000000000);
    WIPED_KEY key[TAMIS_KEY_LEN];
    const struct arg args[] = {
        ARG("output", 'o', ARG_TEXT, &folder),   ARG("once", 0, ARG_FLAG, &once),
        ARG("for", 0, ARG_TEXT, &limit),         ARG("every", 0, ARG_TEXT, &every),
        ARG("key-file", 0, ARG_TEXT, &key_file), ARG("verbose", 'v', ARG_FLAG, &f.verbose),
        ARG("json", 0, ARG_FLAG, &json),         ARG("max-lease", 0, ARG_TEXT, &most),
        ARG("serve", 0, ARG_TEXT, &serve),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n != 1 || !folder)
        return complain("an address and -o are needed: tamis follow redis://HOST:PORT/NAME -o "
                        "DIRECTORY: see tamis help follow");
    if (limit && !parse_time(limit, &limit_ns))
        return complain("wrong value '%s': --for: give a time such as 30s or 5m", limit);
    if (every && !parse_time(every, &every_ns))
        return complain("wrong value '%s': --every: give a time such as 1s or 200ms", every);
    if (most && strcmp(most, "none") == 0)
        f.replicas.lease_most = UINT64_MAX;
    else if (most && !parse_time(most, &f.replicas.lease_most))
        return complain("wrong value '%s': --max-lease: give a time such as 1h, or none", most);
    if ((serve && !serve_address_read(&address, serve)) ||
        (key_file && !store_read_key(key_file, key)))
        return TROUBLE;
    f.serve = serve ? &address : NULL;
    f.key = key_file ? key : NULL;
    char error[256];
    struct sigaction action = {.sa_handler = on_signal};
    f.every_ms = every_ns / 1000000;
    f.replicas.folder = folder;
    f.live = progress_may();
    f.carrier = carrier_open(words.word[0], error);
    if (!f.carrier)
        return complain("%s", error);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int status = follow(&f, once, limit_ns / 1000000);
    if (json)
        report(&f, true);
    replicas_free(&f.replicas);
    carrier_close(f.carrier);
    free(f.care);
    free(f.wanting);
    return status;
}
