/* The configuration of the server: tamis.NAME in redis.conf and CONFIG, and the section of INFO. */
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

static int set_number(const char *name, long long n, void *place, RedisModuleString **error)
{
    if (place == &server.value_limit && n && n < VALUE_LIMIT_MIN) {
        *error = rm.CreateStringPrintf(NULL, "%s is 0 or at least 64kb", name);
        return RM_ERR;
    }
    *(long long *)place = n;
    return RM_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The server frees what set_text gave it, but keeps what get_text gave until the next call. */
static RedisModuleString *shown;

/* It may have been the key: nothing is left of it. */
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
    return show(rm.CreateStringPrintf(NULL, "%.10g", server.error_rate));
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

/* "random" leaves the key as it is: made at the start, or taken from the values that were loaded. */
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

bool settings_evicts(void)
{
    return evicts;
}

/* A setting of the server, as text. */
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

/* With every CONFIG SET that changed something: they are asked for here, not by each creation. */
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

/* Arguments of loadmodule: what RedisBloom and valkey-bloom call these settings, in the versions there
   are. NULL: it is known and means nothing here. */
static const struct {
    const char *theirs, *ours;
} arguments[] = {
    {"ERROR_RATE", "error-rate"},         {"bf-error-rate", "error-rate"},
    {"bf.bloom-fp-rate", "error-rate"},   {"INITIAL_SIZE", "capacity"},
    {"bf-initial-size", "capacity"},      {"bf.bloom-capacity", "capacity"},
    {"EXPANSION", "expansion"},           {"bf-expansion-factor", "expansion"},
    {"bf.bloom-expansion", "expansion"},  {"CF_INITIAL_SIZE", "cf-capacity"},
    {"cf-initial-size", "cf-capacity"},   {"CF_BUCKET_SIZE", "cf-bucket-size"},
    {"cf-bucket-size", "cf-bucket-size"}, {"bf.bloom-memory-usage-limit", "value-limit"},
    {"CF_MAX_EXPANSIONS", NULL},          {"cf-max-expansions", NULL},
    {"CF_MAX_ITERATIONS", NULL},          {"cf-max-iterations", NULL},
    {"CF_EXPANSION_FACTOR", NULL},        {"cf-expansion-factor", NULL},
    {"bf.bloom-tightening-ratio", NULL},  {"bf.bloom-use-random-seed", NULL},
    {"bf.bloom-defrag-enabled", NULL},
};

/* The default of a setting from now on; false: it cannot be. */
static bool preset(const char *ours, const RedisModuleString *value)
{
    long long n;
    struct creation c;
    if (strcmp(ours, "error-rate") == 0) {
        if (creation_rate(&c, value))
            return false;
        snprintf(rate_preset, sizeof rate_preset, "%.10g", c.o.fpp);
        return true;
    }
    for (int i = 0; i < NUMBERS; i++) {
        struct number *s = &numbers[i];
        if (strcmp(s->name, ours) != 0)
            continue;
        if (rm.StringToLongLong(value, &n) != RM_OK || n < s->least || n > s->most)
            return false;
        bool doubles = s->place == &server.expansion && n == 2; /* their default, as 0 is ours */
        if (s->place == &server.expansion && n == 0)            /* would mean NONSCALING */
            return false;
        s->preset = doubles ? 0 : n;
        return true;
    }
    return false;
}

bool settings_argument(RedisModuleCtx *ctx, const RedisModuleString *name,
                       const RedisModuleString *value)
{
    size_t len, value_len;
    const char *text = rm.StringPtrLen(name, &len), *given = rm.StringPtrLen(value, &value_len);
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        if (!is_word(name, arguments[i].theirs))
            continue;
        const char *ours = arguments[i].ours;
        if (ours && !preset(ours, value)) {
            rm.Log(ctx, "warning", "the argument %s cannot be '%.*s'; see tamis.%s",
                   arguments[i].theirs, (int)value_len, given, ours);
            return false;
        }
        if (ours)
            rm.Log(ctx, "notice", "the argument %s sets tamis.%s", arguments[i].theirs, ours);
        else
            rm.Log(ctx, "notice", "the argument %s means nothing to tamis and is passed over",
                   arguments[i].theirs);
        return true;
    }
    rm.Log(
        ctx, "warning",
        "unknown argument '%.*s': tamis knows bf=auto|yes|no and the arguments of RedisBloom and "
        "valkey-bloom, such as ERROR_RATE 0.001; its settings are tamis.error-rate and so on",
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
    return rm.RegisterStringConfig(ctx, "error-rate", rate_preset, 0, get_rate, set_rate, NULL,
                                   NULL) == RM_OK &&
           rm.RegisterStringConfig(ctx, "family-key", "random", RM_CONFIG_SENSITIVE, get_key,
                                   change_key, NULL, NULL) == RM_OK &&
           rm.LoadConfigs(ctx) == RM_OK;
}

/* ---- INFO ------------------------------------------------------------------------------------ */

void settings_info(RedisModuleInfoCtx *info, int for_crash_report)
{
    (void)for_crash_report;
    const struct {
        const char *name;
        unsigned long long n;
    } counts[] = {{"values", value_count()},
                  {"foreign", value_count_foreign()},
                  {"bytes", value_memory()},
                  {"published", publish_count()},
                  {"dumps", dump_count()},
                  {"refused_adds", server.refused},
                  {"freed_beside", release_count()},
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
