/* Settings (tamis.NAME in redis.conf and CONFIG), those of other modules, and the section of INFO. */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUE_LIMIT_MIN (1 << 16)

struct settings_of_server server = {.error_rate = 0.01};

/* ---- numbers --------------------------------------------------------------------------------- */

static long long get_number(const char *name, void *place)
{
    (void)name;
    return *(long long *)place;
}

static bool too_low(const long long *place, long long n)
{
    return place == &server.value_limit && n && n < VALUE_LIMIT_MIN;
}

static int set_number(const char *name, long long n, void *place, RedisModuleString **error)
{
    if (too_low(place, n)) {
        *error = rm.CreateStringPrintf(NULL, "%s is 0 or at least 64kb", name);
        return RM_ERR;
    }
    *(long long *)place = n;
    return RM_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The server does not free what a getter returned, so it is kept here until the next call. */
static RedisModuleString *shown;

/* Wipes the last one, which may be the family key. */
static RedisModuleString *show(RedisModuleString *text)
{
    size_t len = 0;
    if (shown) {
        explicit_bzero((char *)rm.StringPtrLen(shown, &len), len);
        rm.FreeString(NULL, shown);
    }
    return shown = text;
}

static RedisModuleString *get_rate(const char *name, void *unused)
{
    (void)name;
    (void)unused;
    return show(rm.CreateStringPrintf(NULL, "%.15g", server.error_rate));
}

static int set_rate(const char *name, RedisModuleString *text, void *unused,
                    RedisModuleString **error)
{
    struct creation c;
    (void)name;
    (void)unused;
    const char *wrong = creation_rate(&c, text);
    if (wrong) {
        *error = rm.CreateString(NULL, wrong + 4, strlen(wrong) - 4);
        return RM_ERR;
    }
    server.error_rate = c.o.fpp;
    return RM_OK;
}

static RedisModuleString *get_key(const char *name, void *unused)
{
    WIPED_HEX hex[KEY_HEX];
    (void)name;
    (void)unused;
    key_to_hex(server.secrets->key, hex);
    return show(rm.CreateString(NULL, hex, KEY_HEX - 1));
}

/* "random" keeps the present key: drawn at the start, or adopted from values that were loaded. */
static int change_key(const char *name, RedisModuleString *text, void *unused,
                      RedisModuleString **error)
{
    WIPED_KEY key[TAMIS_KEY_LEN];
    (void)name;
    (void)unused;
    if (is_word(text, "random"))
        return RM_OK;
    if (!key_from_hex(text, key)) {
        *error = rm.CreateStringPrintf(NULL, "a family key is 32 hexadecimal digits");
        return RM_ERR;
    }
    if (!secret_set(key)) {
        *error = rm.CreateStringPrintf(NULL, "no memory for a key");
        return RM_ERR;
    }
    show(NULL);
    server.key_given = true;
    return RM_OK;
}

/* ---- the limit of a value --------------------------------------------------------------------- */

static uint64_t maxmemory; /* of the server; 0: none */
static bool evicts;

uint64_t value_limit(void)
{
    if (server.value_limit)
        return (uint64_t)server.value_limit;
    uint64_t memory = maxmemory;
    if (!memory)
        memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return memory / 2 > VALUE_LIMIT_MIN ? memory / 2 : VALUE_LIMIT_MIN;
}

/* The bytes of a value also have a header and checksums, 8 bytes for each 4096. */
uint64_t value_limit_encoded(void)
{
    uint64_t limit = value_limit();
    return limit + limit / 256 + 65536;
}

bool settings_evicts(void)
{
    return evicts;
}

/* Reads a setting of the server. */
static void ask_server(RedisModuleCtx *ctx, const char *name, char text[32])
{
    size_t len = 0;
    const char *said = NULL;
    RedisModuleCallReply *reply = rm.Call(ctx, "CONFIG", "cc", "GET", name);
    if (reply && rm.CallReplyType(reply) == RM_REPLY_ARRAY && rm.CallReplyLength(reply) == 2)
        said = rm.CallReplyStringPtr(rm.CallReplyArrayElement(reply, 1), &len);
    snprintf(text, 32, "%.*s", said ? (int)len : 0, said ? said : "");
    if (reply)
        rm.FreeCallReply(reply);
}

/* Runs at the start and after each CONFIG SET, so that the creation of a value need not query the server. */
static void read_maxmemory(RedisModuleCtx *ctx)
{
    char text[32];
    ask_server(ctx, "maxmemory", text);
    maxmemory = strtoull(text, NULL, 10);
    ask_server(ctx, "maxmemory-policy", text);
    evicts = maxmemory && strcmp(text, "noeviction") != 0;
}

static void config_changed(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)event, (void)sub, (void)data;
    read_maxmemory(ctx);
}

void settings_start(RedisModuleCtx *ctx)
{
    read_maxmemory(ctx);
    rm.SubscribeToServerEvent(ctx, (RedisModuleEvent){RM_EVENT_CONFIG, 1}, config_changed);
}

/* ---- registration ---------------------------------------------------------------------------- */

static struct number {
    const char *name;
    long long *place, preset, least, most;
    unsigned flags;
} numbers[] = {
    {"capacity", &server.capacity, 100, 1, 1LL << 30, 0},
    {"expansion", &server.expansion, 0, 0, 32768, 0},
    {"cf-capacity", &server.cf_capacity, 1024, 2, 1LL << 30, 0},
    {"cf-bucket-size", &server.cf_bucket, 2, 1, 255, 0},
    {"value-limit", &server.value_limit, 0, 0, 1LL << 40, RM_CONFIG_MEMORY},
    {"work-limit", &server.work_limit, 8LL << 20, 1 << 16, 1LL << 42, RM_CONFIG_MEMORY},
};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static char rate_preset[32] = "0.01";
static bool
    registered; /* before: values given go into the defaults; after: they take effect at once */

/* Names of these settings in RedisBloom and valkey-bloom: as arguments of loadmodule, with or without bf., and in
   the configuration file (bf- and cf- in Redis 8, bf. in Valkey). NULL: accepted and ignored. */
static const struct theirs {
    const char *name, *ours;
} theirs[] = {
    {"ERROR_RATE", "error-rate"},
    {"bf-error-rate", "error-rate"},
    {"bf.bloom-fp-rate", "error-rate"},
    {"INITIAL_SIZE", "capacity"},
    {"bf-initial-size", "capacity"},
    {"bf.bloom-capacity", "capacity"},
    {"bf-expansion-factor", "expansion"},
    {"bf.bloom-expansion", "expansion"},
    {"cf-initial-size", "cf-capacity"},
    {"cf-bucket-size", "cf-bucket-size"},
    {"bf.bloom-memory-usage-limit", "value-limit"},
    {"CF_MAX_EXPANSIONS", NULL},
    {"cf-max-expansions", NULL},
    {"cf-max-iterations", NULL},
    {"cf-expansion-factor", NULL},
    {"bf.bloom-tightening-ratio", NULL},
    {"bf.bloom-use-random-seed", NULL},
    {"bf.bloom-defrag-enabled", NULL},
};

enum { THEIRS = sizeof theirs / sizeof *theirs };

/* NULL for error-rate, which is not an integer. */
static struct number *number_of(const char *ours)
{
    for (int i = 0; i < NUMBERS; i++)
        if (strcmp(numbers[i].name, ours) == 0)
            return &numbers[i];
    return NULL;
}

/* Sets one of ours from a value of theirs; false if the value is out of range. Their default expansion, 2,
   becomes our 0, the schedule; their 0 means NONSCALING and is refused. */
static bool take_theirs(const char *ours, const RedisModuleString *value)
{
    long long n;
    struct creation c;
    struct number *s = number_of(ours);
    if (!s) {
        if (creation_rate(&c, value))
            return false;
        snprintf(rate_preset, sizeof rate_preset, "%.15g", c.o.fpp);
        server.error_rate = c.o.fpp;
        return true;
    }
    bool expansion = s->place == &server.expansion;
    if (rm.StringToLongLong(value, &n) != RM_OK || n < s->least + expansion || n > s->most ||
        too_low(s->place, n))
        return false;
    s->preset = expansion && n == 2 ? 0 : n;
    if (registered)
        *s->place = s->preset;
    return true;
}

/* The present value of one of ours, as they write it. */
static void show_theirs(const char *ours, char text[32])
{
    const struct number *s = ours ? number_of(ours) : NULL;
    long long n = s ? registered ? *s->place : s->preset : 0;
    if (s)
        snprintf(text, 32, "%lld", n == 0 && s->place == &server.expansion ? 2 : n);
    else
        snprintf(text, 32, "%s", ours ? rate_preset : "");
    if (ours && !s && registered)
        snprintf(text, 32, "%.15g", server.error_rate);
}

bool settings_argument(RedisModuleCtx *ctx, const RedisModuleString *name,
                       const RedisModuleString *value)
{
    size_t len, value_len;
    const char *text = rm.StringPtrLen(name, &len), *given = rm.StringPtrLen(value, &value_len);
    for (const struct theirs *t = theirs; t < theirs + THEIRS; t++) {
        bool bare = is_word(name, t->name + 3) && strncmp(t->name, "bf.", 3) == 0;
        if (!bare && !is_word(name, t->name))
            continue;
        if (t->ours && !take_theirs(t->ours, value)) {
            rm.Log(ctx, "warning", "the argument %s cannot be '%.*s'; see tamis.%s", text,
                   (int)value_len, given, t->ours);
            return false;
        }
        if (t->ours)
            rm.Log(ctx, "notice", "the argument %s sets tamis.%s", text, t->ours);
        else
            rm.Log(ctx, "notice", "the argument %s has no effect in tamis and is ignored", text);
        return true;
    }
    rm.Log(
        ctx, "warning",
        "unknown argument '%.*s': tamis knows bf=auto|yes|no, settings=bf alone, and the arguments of "
        "RedisBloom and valkey-bloom, such as ERROR_RATE 0.001; its settings are tamis.error-rate and so on",
        len < 100 ? (int)len : 100, text);
    return false;
}

bool settings_register(RedisModuleCtx *ctx)
{
    if (!secret_set(NULL))
        return false;
    for (int i = 0; i < NUMBERS; i++)
        if (rm.RegisterNumericConfig(ctx, numbers[i].name, numbers[i].preset, numbers[i].flags,
                                     numbers[i].least, numbers[i].most, get_number, set_number,
                                     NULL, numbers[i].place) != RM_OK)
            return false;
    registered = rm.RegisterStringConfig(ctx, "error-rate", rate_preset, 0, get_rate, set_rate,
                                         NULL, NULL) == RM_OK &&
                 rm.RegisterStringConfig(ctx, "family-key", "random", RM_CONFIG_SENSITIVE, get_key,
                                         change_key, NULL, NULL) == RM_OK &&
                 rm.LoadConfigs(ctx) == RM_OK;
    return registered;
}

/* ---- their names, in the configuration file ---------------------------------------------------- */

static bool named_bf; /* this module is loaded as bf too */

bool settings_named_bf(void)
{
    return named_bf;
}

static RedisModuleString *get_theirs(const char *name, void *entry)
{
    char text[32];
    (void)name;
    show_theirs(((const struct theirs *)entry)->ours, text);
    return show(rm.CreateString(NULL, text, strlen(text)));
}

static int set_theirs(const char *name, RedisModuleString *value, void *entry,
                      RedisModuleString **error)
{
    size_t len;
    const struct theirs *t = entry;
    const char *text = rm.StringPtrLen(value, &len);
    if (!t->ours && len)
        rm.Log(NULL, "notice", "tamis: %s has no effect in tamis and is ignored", t->name);
    if (!t->ours || take_theirs(t->ours, value))
        return RM_OK;
    *error = rm.CreateStringPrintf(NULL, "%s cannot be '%.*s'; see tamis.%s", name, (int)len, text,
                                   t->ours);
    return RM_ERR;
}

/* INFO bf, for what reads valkey-bloom's. */
static void info_of_valkey(RedisModuleInfoCtx *info, int for_crash_report)
{
    (void)for_crash_report;
    const struct value_counts n = value_counts();
    rm.InfoAddSection(info, "bloom_core_metrics");
    rm.InfoAddFieldULongLong(info, "bloom_total_memory_bytes", n.bytes);
    rm.InfoAddFieldULongLong(info, "bloom_num_objects", n.values);
    rm.InfoAddFieldULongLong(info, "bloom_num_filters_across_objects", n.parts);
    rm.InfoAddFieldULongLong(info, "bloom_num_items_across_objects", n.items);
}

/* The server prefixes the settings of a module with the module's name, so bf.bloom-capacity needs a module
   called bf: this one, loaded a second time. Redis 8 has RedisBloom's names, without a prefix: only
   one family is registered, since two names of one setting would reset each other to their defaults. Either
   module may be loaded first, since CONFIG REWRITE may reorder the lines. */
int settings_load_bf(RedisModuleCtx *ctx)
{
    bool bare = !rm.is_valkey && rm.GetServerVersion() >= 0x080000;
    if (rm.IsModuleNameBusy("bf")) {
        rm.Log(ctx, "warning", "settings=bf: another module is called bf and has these settings");
        return RM_ERR;
    }
    rm.SetModuleAttribs(ctx, "bf", 100, 1);
    for (const struct theirs *t = theirs; t < theirs + THEIRS; t++) {
        char preset[32];
        bool dotted = strncmp(t->name, "bf.", 3) == 0, dashed = strncmp(t->name + 1, "f-", 2) == 0;
        show_theirs(t->ours, preset);
        if ((bare ? dashed : dotted) &&
            rm.RegisterStringConfig(ctx, t->name + (dotted ? 3 : 0), preset,
                                    dotted ? 0 : RM_CONFIG_UNPREFIXED, get_theirs, set_theirs, NULL,
                                    (void *)t) != RM_OK)
            return RM_ERR;
    }
    if (!bare)
        rm.RegisterInfoFunc(ctx, info_of_valkey);
    named_bf = rm.LoadConfigs(ctx) == RM_OK;
    return named_bf ? RM_OK : RM_ERR;
}

/* ---- INFO ------------------------------------------------------------------------------------ */

void settings_info(RedisModuleInfoCtx *info, int for_crash_report)
{
    (void)for_crash_report;
    const struct value_counts n = value_counts();
    const struct {
        const char *name;
        unsigned long long n;
    } counts[] = {{"values", n.values},
                  {"foreign", n.foreign},
                  {"items", n.items},
                  {"parts", n.parts},
                  {"bytes", n.bytes},
                  {"published", publish_count()},
                  {"dumps", dump_count()},
                  {"refused_adds", server.refused},
                  {"freed_beside", release_count()},
                  {"copied_beside", copy_count()},
                  {"value_limit", value_limit()},
                  {"work_limit", (unsigned long long)server.work_limit}};
    rm.InfoAddSection(info, "values");
    rm.InfoAddFieldCString(info, "version", TAMIS_VERSION);
    rm.InfoAddFieldCString(info, "bf_aliases", server.bf ? "yes" : "no");
    rm.InfoAddFieldCString(info, "family",
                           server.key_given     ? "given"
                           : server.key_adopted ? "adopted"
                                                : "random");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        rm.InfoAddFieldULongLong(info, counts[i].name, counts[i].n);
}
