/*
 * tamis follow: keeps copies of all origins of an address in memory (tamis/carrier.h). A thread saves them to a
 * folder (follow_save.h), and an HTTP server may answer queries (serve.h).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "ui/args.h"
#include "ui/escape.h"
#include "ui/progress.h"
#include "follow_save.h"
#include "tamis/carrier.h"
#include "serve.h"
#include "ui/report.h"
#include "ui/stop.h"
#include "ui/supervise.h"
#include "sets/set_file.h"

#define WAIT_MS 100  /* for messages, so that other work is not delayed longer */
#define SHOW_MS 1000 /* between updates on a terminal */

struct follow {
    struct replicas replicas; /* used by the saver, except the directory */
    struct saver saver;
    tamis_following *following;
    const char *address;
    const uint8_t *key; /* or NULL */
    bool verbose, live;
    const struct serve_address *serve; /* or NULL */
    struct serving *serving;
    uint64_t next_show, every_ms;
};

static const tamis_follower *copy_of(const struct follow *f, uint32_t number)
{
    return tamis_directory_follower(f->replicas.directory, number);
}

static void say(void *context, const char *text)
{
    (void)context;
    remark("%s", text);
}

/* Loads the copies of an earlier run; those that cannot be read are fetched again. */
static bool resume(struct follow *f)
{
    if (mkdir(f->replicas.folder, 0700) != 0 && errno != EEXIST)
        return refuse("%s: %s: give a folder that can be created", strerror(errno),
                      f->replicas.folder);
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
        bool known = f->replicas.boot[0];
        uint64_t age = known && r->lease ? carrier_since(r->heard, carrier_clock()) : AGE_UNKNOWN;
        if (r->version &&
            tamis_directory_load(f->replicas.directory, name, path, age,
                                 known ? r->delay : TAMIS_DELAY_UNKNOWN, &reason) != TAMIS_OK) {
            remark("%s: fetching it again", reason.text);
            r->epoch = r->version = 0;
        }
    }
    return true;
}

/* ---- reports --------------------------------------------------------------------------------- */

static size_t count_current(const struct follow *f)
{
    const char *name;
    size_t n = 0;
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++)
        n += tamis_follower_freshness(copy_of(f, i)) == TAMIS_CURRENT;
    return n;
}

/* One line, updated in place: origins, the first few versions, the oldest age, the loosest bound. */
static void show(const struct follow *f)
{
    tamis_following_facts all;
    tamis_following_info(f->following, &all);
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
        (unsigned long long)all.messages, (double)all.bytes / 1e6);
}

static void report_owner(const char *name, const tamis_follower *follower)
{
    tamis_follower_facts facts;
    tamis_follower_info(follower, &facts);
    report_group(name, name);
    report_text("state", "state", serve_state[facts.freshness]);
    report_count("version", "version", facts.version);
    report_real("age", "seconds since it was heard", (double)facts.age / 1e9);
    report_rate("member_miss", "members missed at most, as of then", facts.targets.member_miss);
    report_rate("member_miss_now", "members missed, as of then", facts.estimate.member_miss);
    report_rate("positive", "false positives", facts.estimate.positive);
    report_count("items", "keys", facts.items);
    report_end();
}

static void report(const struct follow *f, bool json)
{
    tamis_following_facts facts = {0};
    if (f->following)
        tamis_following_info(f->following, &facts);
    report_open(json);
    report_count("origins", "origins", replicas_count(&f->replicas));
    report_count("current", "current", count_current(f));
    report_count("messages", "messages", facts.messages);
    report_size("bytes", "bytes", facts.bytes);
    report_count("applied", "versions taken", facts.versions);
    report_count("refused", "messages refused", facts.refused);
    report_count("snapshots", "snapshots fetched", facts.snapshots);
    report_group("owners", "owners");
    const char *name;
    for (uint32_t i = 0; replicas_next(&f->replicas, &i, &name); i++)
        report_owner(name, copy_of(f, i));
    report_end();
    report_end();
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* One round; then the saver may save its result. */
static tamis_error step(struct follow *f, tamis_reason *reason)
{
    char position[TAMIS_POSITION_MAX];
    tamis_following_facts facts;
    tamis_error e = tamis_following_step(f->following, WAIT_MS, reason);
    tamis_following_position(f->following, position);
    uint64_t clock = carrier_clock(), now = clock / 1000000;
    tamis_following_info(f->following, &facts);
    saver_note(&f->saver, position, facts.reached < clock ? clock - facts.reached : 0);
    if (f->live && now >= f->next_show) {
        f->next_show = now + SHOW_MS;
        show(f);
    }
    return e;
}

/* Starts the other threads; false after complaining. */
static bool begin(struct follow *f)
{
    tamis_reason reason = {0};
    tamis_following_options options = {
        .position = f->replicas.position, .verbose = f->verbose, .note = say};
    tamis_error e =
        tamis_following_new(&f->following, f->address, f->replicas.directory, &options, &reason);
    if (e != TAMIS_OK)
        return refuse("%s", reason.text);
    if (f->serve && !(f->serving = serve_start(f->serve, f->replicas.directory, f->following,
                                               f->replicas.folder)))
        return false;
    return saver_start(&f->saver, &f->replicas, f->every_ms);
}

static int follow(struct follow *f, bool once, uint64_t limit_ms)
{
    uint64_t until = carrier_now() + limit_ms;
    bool all = false, reached = false;
    tamis_error e = TAMIS_OK;
    tamis_reason reason = {0};
    bool good = resume(f) && begin(f);
    if (good && !stop_signal)
        do { /* at least one round, even with a short --for */
            e = step(f, &reason);
            reached |= e == TAMIS_OK;
            if (reached)
                supervise_turn();
            size_t n = replicas_count(&f->replicas);
            all = once && e == TAMIS_OK && n && count_current(f) == n;
        } while (!stop_signal && carrier_now() < until && !all &&
                 (e == TAMIS_OK || e == TAMIS_EIO) && !atomic_load(&f->saver.failed));
    bool never = e != TAMIS_OK && !reached && !stop_signal, lost = e != TAMIS_OK && e != TAMIS_EIO;
    supervise_tell("STOPPING=1");
    serve_stop(f->serving);
    if (f->live)
        fputs("\n", stderr);
    good = saver_stop(&f->saver, good && !lost && !never) && good;
    if (good && lost)
        return complain("%s: check the address", reason.text);
    if (good && never)
        return complain("%s: not reached in that time: the copies are unchanged", reason.text);
    return !good ? TROUBLE : once && !all ? NONE : FOUND;
}

int verb_follow(int argc, char **argv)
{
    struct follow f = {.every_ms = 1000};
    const char *folder = NULL, *key_file = NULL, *serve = NULL;
    struct serve_address address;
    bool once = false, json = false;
    uint64_t limit_ns = UINT64_MAX / 2, every_ns = UINT64_C(1000000000);
    WIPED_KEY key[TAMIS_KEY_LEN];
    const struct arg args[] = {
        ARG("output", 'o', ARG_TEXT, &folder),
        ARG("once", 0, ARG_FLAG, &once),
        ARG("for", 0, ARG_TIME, &limit_ns),
        ARG("every", 0, ARG_TIME, &every_ns),
        ARG("key-file", 0, ARG_TEXT, &key_file),
        ARG("verbose", 'v', ARG_FLAG, &f.verbose),
        ARG("json", 0, ARG_FLAG, &json),
        ARG("serve", 0, ARG_TEXT, &serve),
        ARG("max-lease", 0, ARG_WHILE, &f.replicas.lease_most),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n != 1 || !folder)
        return complain("an address and -o are needed: tamis follow redis://HOST:PORT/NAME -o "
                        "DIRECTORY: see tamis help follow");
    if ((serve && !serve_address_read(&address, serve)) ||
        (key_file && !store_read_key(key_file, key)))
        return TROUBLE;
    f.serve = serve ? &address : NULL;
    f.key = key_file ? key : NULL;
    char error[256];
    f.every_ms = every_ns / 1000000;
    f.replicas.folder = folder;
    f.live = progress_may();
    f.address = words.word[0];
    struct carrier *known = carrier_open(f.address, error); /* a wrong address creates no folder */
    if (!known)
        return complain("%s", error);
    carrier_close(known);
    stop_catch();
    int status = follow(&f, once, limit_ns / 1000000);
    if (json)
        report(&f, true);
    tamis_following_free(f.following);
    replicas_free(&f.replicas);
    return status;
}
