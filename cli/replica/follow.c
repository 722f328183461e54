/*
 * tamis follow: copies of all origins of a stream, kept in a folder. Each second what changed is
 * saved, and then the status that says up to when each copy may be trusted. What a copy promises, it
 * promises as of the last heartbeat of its origin.
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
#include "replica_folder.h"
#include "serve.h"
#include "ui/report.h"
#include "sets/set_file.h"

#define WAIT_MS   100  /* for messages, so that nothing else waits longer */
#define OWNERS_MS 5000 /* between looks for owners that were never heard of */
#define PAUSE_MIN 200  /* between fetches of one snapshot that did not help */
#define PAUSE_MAX 10000

struct following {
    struct replicas replicas;
    struct carrier *carrier;
    const uint8_t *key; /* or NULL */
    bool verbose, live, cut_off, out_of_memory;
    bool reached; /* what carries the messages, once */
    struct follow_counts counts;
    const struct serve_address *serve; /* or NULL */
    struct serving *serving;
    uint64_t next_owners, next_save, every_ms;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static struct replica *owner_of(struct following *f, const char *name)
{
    bool good = name[0] && strlen(name) <= TAMIS_OWNER_MAX;
    struct replica *r = good ? replicas_get(&f->replicas, name) : NULL;
    f->out_of_memory |= good && !r;
    return r;
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
    struct replica *r = owner_of(f, owner);
    tamis_reason reason = {0};
    tamis_taken taken;
    f->counts.messages++;
    f->counts.bytes += len;
    if (!r)
        return;
    tamis_error e =
        tamis_directory_take(f->replicas.directory, owner, data, len, age, &taken, &reason);
    f->counts.applied += taken == TAMIS_APPLIED;
    f->counts.refused += e != TAMIS_OK;
    if (e == TAMIS_EBASE && age != AGE_UNKNOWN && is_beat(data, len))
        r->next_fetch = 0; /* the origin lives: what it has for us may have changed */
    if (e != TAMIS_OK && (f->verbose || (e != TAMIS_EBASE && !r->told))) {
        remark("refused: %s: %s", reason.text, owner);
        r->told = true;
    }
}

/* One that was forgotten is dropped, unless it lives. */
static void expect(void *context, const char *owner, bool forgotten)
{
    struct following *f = context;
    const char *name;
    if (!forgotten)
        owner_of(f, owner);
    for (uint32_t i = 0; forgotten && replicas_next(&f->replicas, &i, &name); i++)
        if (strcmp(name, owner) == 0 && tamis_follower_freshness(copy_of(f, i)) != TAMIS_CURRENT)
            replicas_drop(&f->replicas, i);
}

/* One that did not help (an origin that died half-way) is not fetched again and again. */
static void fetch_snapshots(struct following *f)
{
    const char *name;
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++) {
        struct replica *r = &f->replicas.replica[i];
        tamis_follower_facts facts;
        tamis_follower_info(copy_of(f, i), &facts);
        if (!facts.needs_snapshot) {
            r->pause = 0;
            continue;
        }
        if (carrier_now() < r->next_fetch)
            continue;
        r->pause = r->pause ? (2 * r->pause < PAUSE_MAX ? 2 * r->pause : PAUSE_MAX) : PAUSE_MIN;
        r->next_fetch = carrier_now() + r->pause;
        int there = carrier_fetch(f->carrier, name, f->replicas.position, take, f);
        f->counts.snapshots += there > 0;
        if (there < 0)
            return;
    }
}

/* Origins that said farewell. */
static void drop_gone(struct following *f)
{
    const char *name;
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++)
        if (tamis_follower_freshness(copy_of(f, i)) == TAMIS_GONE)
            replicas_drop(&f->replicas, i);
}

/* ---- saving ---------------------------------------------------------------------------------- */

static bool save_replica(struct following *f, uint32_t number, const char *name)
{
    char path[PATH_MAX];
    struct replica *r = &f->replicas.replica[number];
    const tamis_follower *follower = copy_of(f, number);
    tamis_follower_facts facts;
    tamis_reason reason = {0};
    tamis_follower_info(follower, &facts);
    if (facts.version && (facts.epoch != r->epoch || facts.version != r->version)) {
        replicas_path(&f->replicas, name, path);
        tamis_error e = tamis_follower_save(follower, path, &reason);
        if (e != TAMIS_OK)
            return complain_of(e, &reason, path), false;
        r->epoch = facts.epoch;
        r->version = facts.version;
    }
    uint64_t now = carrier_clock();
    r->heard = now > facts.age ? now - facts.age : 0;
    r->lease = facts.freshness == TAMIS_CURRENT ? facts.lease : 0;
    r->beat = facts.beat;
    return true;
}

static bool save(struct following *f)
{
    const char *name;
    f->replicas.reached = f->carrier->reached;
    drop_gone(f);
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++)
        if (!save_replica(f, i, name))
            return false;
    if (replicas_write(&f->replicas))
        return true;
    complain("%s: %s/status: make room, or check the permissions", strerror(errno),
             f->replicas.folder);
    return false;
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
    f->replicas.every = f->every_ms * 1000000;
    snprintf(f->replicas.serve, sizeof f->replicas.serve, "%s", f->serve ? f->serve->whole : "");
    const char *name;
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++) {
        struct replica *r = &f->replicas.replica[i];
        char path[PATH_MAX];
        tamis_reason reason = {0};
        replicas_path(&f->replicas, name, path);
        bool known = r->lease && f->replicas.boot[0];
        uint64_t age = known ? carrier_since(r->heard, carrier_clock()) : AGE_UNKNOWN;
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

/* One round: new owners, missing snapshots, messages, what is to be saved. */
static bool step(struct following *f)
{
    uint64_t now = carrier_now();
    if (!f->cut_off && now >= f->next_owners && carrier_owners(f->carrier, expect, f))
        f->next_owners = now + OWNERS_MS;
    if (!f->cut_off)
        fetch_snapshots(f);
    int n = carrier_receive(f->carrier, f->replicas.position, WAIT_MS, take, f);
    if (f->cut_off && n >= 0)
        f->next_owners = 0;
    say_connection(f, n >= 0);
    if (f->carrier->reached)
        tamis_directory_contact(f->replicas.directory,
                                carrier_since(f->carrier->reached, carrier_clock()));
    if (f->out_of_memory)
        return complain("out of memory: %s: free some and run again", f->replicas.folder), false;
    now = carrier_now();
    if (now < f->next_save)
        return true;
    f->next_save = now + f->every_ms;
    if (f->live)
        show(f);
    return save(f);
}

static int follow(struct following *f, bool once, uint64_t limit_ms)
{
    uint64_t until = carrier_now() + limit_ms;
    bool good = resume(f), all = false;
    if (good && f->serve)
        good = (f->serving =
                    serve_start(f->serve, f->replicas.directory, &f->counts, f->replicas.folder));
    while (good && !stopped && !f->carrier->hopeless && carrier_now() < until) {
        good = step(f);
        all = replicas_count(&f->replicas) && count_current(f) == replicas_count(&f->replicas);
        if (once && all && !f->cut_off)
            break;
    }
    serve_stop(f->serving);
    f->replicas.serve[0] = 0;
    if (f->live)
        fputs("\n", stderr);
    if (good && f->carrier->hopeless)
        return complain("%s: check the address", f->carrier->error);
    if (good && f->cut_off && !f->reached && !stopped)
        return complain("%s: never reached in that time: the copies are as they were",
                        f->carrier->error);
    if (good && !save(f))
        good = false;
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
    return status;
}
