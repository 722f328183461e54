/* The pages of a follower that serves: owners, health, metrics. See serve.h. */
#include "serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ui/out.h"

#define NOT_KNOWN __builtin_nan("") /* null in JSON */

enum { STATES = TAMIS_CONTESTED + 1 };
const char *const serve_state[STATES] = {"current", "unknown", "behind",
                                         "stale",   "gone",    "contested"};

/* One owner at a moment. Doubt is as shown in answers. */
struct owner_view {
    const char *name; /* first: see answers_by_name */
    bool doubt;
    tamis_follower_facts facts;
};

/* All of them, by number; NULL: no memory. */
static struct owner_view *views_of(const tamis_directory *d, size_t *n)
{
    size_t owners = tamis_directory_owners(d), words = (owners + 63) / 64;
    uint64_t none, *doubt = calloc(words + 1, sizeof *doubt);
    struct owner_view *views = malloc((owners + 1) * sizeof *views);
    *n = 0;
    if (doubt && views)
        tamis_directory_locate_many(d, NULL, 0, &none, doubt, words);
    for (uint32_t i = 0; doubt && views && i < owners; i++) {
        struct owner_view *v = &views[*n];
        v->name = tamis_directory_name(d, i);
        v->doubt = doubt[i / 64] >> i % 64 & 1;
        *n += v->name && tamis_directory_copy(d, i, &v->facts);
    }
    free(doubt);
    if (!doubt) {
        free(views);
        return NULL;
    }
    return views;
}

static double in_seconds(uint64_t nanoseconds)
{
    return (double)nanoseconds / 1e9;
}

static double reached(const tamis_following_facts *f)
{
    return f->reached == UINT64_MAX ? NOT_KNOWN : in_seconds(f->reached);
}

static void owner_facts(const struct owner_view *v)
{
    const tamis_follower_facts *f = &v->facts;
    json_open(NULL, '{');
    json_text("owner", v->name);
    json_text("state", serve_state[f->freshness]);
    json_flag("doubt", v->doubt);
    json_count("epoch", f->epoch);
    json_count("version", f->version);
    json_count("newest", f->newest);
    json_real("age", in_seconds(f->age));
    json_real("lease", in_seconds(f->lease));
    json_real("member_miss", f->targets.member_miss < 0 ? NOT_KNOWN : f->targets.member_miss);
    json_real("member_miss_now", f->estimate.member_miss);
    json_real("positive", f->estimate.positive);
    json_count("items", f->items);
    json_count("bits", f->bits);
    json_count("bytes", f->bytes);
    json_close();
}

bool serve_owners(const tamis_directory *d, enum answers_form form)
{
    size_t n;
    struct owner_view *views = views_of(d, &n);
    if (!views)
        return false;
    qsort(views, n, sizeof *views, answers_by_name);
    if (form == ANSWERS_OBJECT) {
        json_open(NULL, '{');
        json_open("owners", '[');
    }
    for (size_t i = 0; i < n; i++)
        if (form == ANSWERS_OBJECT)
            owner_facts(&views[i]);
        else
            answers_owner(form, views[i].name, views[i].doubt, views[i].facts.version);
    if (form == ANSWERS_OBJECT) {
        json_close();
        json_close();
    }
    free(views);
    return true;
}

unsigned serve_health(const tamis_directory *d, const tamis_following *following)
{
    tamis_following_facts follow;
    tamis_following_info(following, &follow);
    size_t live, current = 0;
    struct owner_view *views = views_of(d, &live);
    for (size_t i = 0; views && i < live; i++)
        current += !views[i].doubt;
    free(views);
    json_open(NULL, '{');
    json_text("status", !current                           ? "unavailable"
                        : current < live || follow.cut_off ? "doubt"
                                                           : "ok");
    json_count("owners", live);
    json_count("current", current);
    json_count("doubt", live - current);
    json_flag("cut_off", follow.cut_off);
    json_real("reached", reached(&follow));
    json_close();
    return current ? 200 : 503;
}

/* ---- metrics --------------------------------------------------------------------------------- */

const double serve_bucket[SERVE_BUCKETS - 1] = {20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3,
                                                2e-3,  5e-3,  10e-3,  50e-3,  250e-3};

static void metric(const char *name, const char *type, const char *help)
{
    put_format("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(double value)
{
    if (value - value != 0)
        put_text("NaN\n");
    else
        put_format("%.12g\n", value);
}

static void single(const char *name, const char *type, const char *help, double value)
{
    metric(name, type, help);
    put_format("%s ", name);
    number(value);
}

/* Names are UTF-8 there, with three escapes. */
static void label(const char *name)
{
    uint32_t c;
    for (size_t left = strlen(name), took; left; name += took, left -= took) {
        took = utf8_decode((const uint8_t *)name, left, &c);
        if (*name == '\n')
            put_text("\\n"), took = 1;
        else if (*name == '"' || *name == '\\')
            put_format("\\%c", *name), took = 1;
        else if (took)
            put_bytes(name, took);
        else
            put_text("\xEF\xBF\xBD"), took = 1;
    }
}

static const struct {
    const char *name, *type, *help;
} owner_metric[] = {
    {"tamis_owner_doubt", "gauge", "1 if the owner counts as possible for every key"},
    {"tamis_owner_age_seconds", "gauge", "Since the last message was sent"},
    {"tamis_owner_version", "gauge", "Version of the copy"},
    {"tamis_owner_member_miss_bound", "gauge", "Share of members that a current copy may deny"},
    {"tamis_owner_member_miss", "gauge", "Share that it denied at the last message"},
    {"tamis_owner_false_positive_rate", "gauge", "Of the copy"},
    {"tamis_owner_items", "gauge", "Keys in the copy"},
    {"tamis_owner_versions_total", "counter", "Versions taken"},
    {"tamis_owner_refused_total", "counter", "Messages refused"},
    {"tamis_owner_bytes_total", "counter", "Bytes of messages"},
};

/* In the order of the table. */
static double owner_value(const struct owner_view *v, size_t i)
{
    const tamis_follower_facts *f = &v->facts;
    const double values[COUNT(owner_metric)] = {
        v->doubt,
        in_seconds(f->age),
        (double)f->version,
        f->targets.member_miss < 0 ? NOT_KNOWN : f->targets.member_miss,
        f->estimate.member_miss,
        f->estimate.positive,
        (double)f->items,
        (double)f->applied,
        (double)f->refused,
        (double)f->bytes,
    };
    return values[i];
}

/* All series of a metric must be adjacent. */
static void owner_metrics(const struct owner_view *views, size_t n)
{
    for (size_t i = 0; i < COUNT(owner_metric); i++) {
        metric(owner_metric[i].name, owner_metric[i].type, owner_metric[i].help);
        for (size_t j = 0; j < n; j++) {
            put_format("%s{owner=\"", owner_metric[i].name);
            label(views[j].name);
            put_text("\"} ");
            number(owner_value(&views[j], i));
        }
    }
}

static void state_metrics(const struct owner_view *views, size_t n)
{
    uint64_t count[STATES] = {0};
    for (size_t i = 0; i < n; i++)
        count[views[i].facts.freshness]++;
    metric("tamis_owners", "gauge", "Owners by the state of their copy");
    for (size_t i = 0; i < STATES; i++)
        put_format("tamis_owners{state=\"%s\"} %llu\n", serve_state[i],
                   (unsigned long long)count[i]);
}

static void serve_own_metrics(const struct serve_counts *s)
{
    static const char *const codes[] = {"2xx", "4xx", "5xx", "other"};
    uint64_t sum = 0;
    metric("tamis_http_requests_total", "counter", "Requests by status");
    for (size_t i = 0; i < COUNT(codes); i++)
        put_format("tamis_http_requests_total{code=\"%s\"} %llu\n", codes[i],
                   (unsigned long long)atomic_load(&s->requests[i]));
    single("tamis_http_connections", "gauge", "Open now", (double)atomic_load(&s->connections));
    single("tamis_located_keys_total", "counter", "Keys looked up", (double)atomic_load(&s->keys));
    metric("tamis_locate_seconds", "histogram", "From a whole request to its answer");
    for (size_t i = 0; i < SERVE_BUCKETS; i++) {
        sum += atomic_load(&s->bucket[i]);
        if (i + 1 < SERVE_BUCKETS)
            put_format("tamis_locate_seconds_bucket{le=\"%g\"} %llu\n", serve_bucket[i],
                       (unsigned long long)sum);
    }
    put_format("tamis_locate_seconds_bucket{le=\"+Inf\"} %llu\ntamis_locate_seconds_sum %.9g\n"
               "tamis_locate_seconds_count %llu\n",
               (unsigned long long)sum, in_seconds(atomic_load(&s->nanoseconds)),
               (unsigned long long)sum);
}

void serve_metrics(const tamis_directory *d, const tamis_following *following,
                   const struct serve_counts *s)
{
    size_t n;
    struct owner_view *views = views_of(d, &n);
    tamis_following_facts f;
    tamis_following_info(following, &f);
    metric("tamis_build_info", "gauge", "Version of tamis");
    put_text("tamis_build_info{version=\"" TAMIS_VERSION "\"} 1\n");
    single("tamis_carrier_up", "gauge", "1 if the address that is followed was reached last time",
           !f.cut_off);
    single("tamis_carrier_age_seconds", "gauge", "Since all messages there were taken",
           reached(&f));
    single("tamis_messages_total", "counter", "Messages", (double)f.messages);
    single("tamis_bytes_total", "counter", "Bytes of messages", (double)f.bytes);
    single("tamis_versions_total", "counter", "Versions taken", (double)f.versions);
    single("tamis_refused_total", "counter", "Messages refused", (double)f.refused);
    single("tamis_snapshots_total", "counter", "Fetched", (double)f.snapshots);
    if (views) {
        state_metrics(views, n);
        owner_metrics(views, n);
    }
    free(views);
    serve_own_metrics(s);
}
