/* The configuration of the server: tamis.NAME in redis.conf and CONFIG, and the section of INFO. */
#include "module.h"

#include <string.h>

struct settings_of_server server = {.error_rate = 0.01};

/* ---- numbers --------------------------------------------------------------------------------- */

static long long get_number(const char *name, void *place)
{
    (void)name;
    return *(long long *)place;
}

static int set_number(const char *name, long long n, void *place, RedisModuleString **error)
{
    (void)name;
    (void)error;
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

/* ---- registration ---------------------------------------------------------------------------- */

bool settings_register(RedisModuleCtx *ctx)
{
    static const struct {
        const char *name;
        long long *place, preset, least, most;
        unsigned flags;
    } numbers[] = {
        {"capacity", &server.capacity, 100, 1, 1LL << 30, 0},
        {"expansion", &server.expansion, 0, 0, 32768, 0},
        {"cf-capacity", &server.cf_capacity, 1024, 2, 1LL << 30, 0},
        {"cf-bucket-size", &server.cf_bucket, 2, 1, 255, 0},
        {"value-limit", &server.value_limit, 500LL << 20, 1 << 16, 1LL << 39, RM_CONFIG_MEMORY},
        {"work-limit", &server.work_limit, 8LL << 20, 1 << 16, 1LL << 42, RM_CONFIG_MEMORY},
    };
    if (!secret_set(NULL))
        return false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (rm.RegisterNumericConfig(ctx, numbers[i].name, numbers[i].preset, numbers[i].flags,
                                     numbers[i].least, numbers[i].most, get_number, set_number,
                                     NULL, numbers[i].place) != RM_OK)
            return false;
    return rm.RegisterStringConfig(ctx, "error-rate", "0.01", 0, get_rate, set_rate, NULL, NULL) ==
               RM_OK &&
           rm.RegisterStringConfig(ctx, "family-key", "random", RM_CONFIG_SENSITIVE, get_key,
                                   change_key, NULL, NULL) == RM_OK &&
           rm.LoadConfigs(ctx) == RM_OK;
}

void settings_info(RedisModuleInfoCtx *info, int for_crash_report)
{
    (void)for_crash_report;
    rm.InfoAddSection(info, "values");
    rm.InfoAddFieldCString(info, "version", TAMIS_VERSION);
    rm.InfoAddFieldULongLong(info, "values", value_count());
    rm.InfoAddFieldCString(info, "bf_aliases", server.bf ? "yes" : "no");
    rm.InfoAddFieldCString(info, "family",
                           server.key_given     ? "given"
                           : server.key_adopted ? "adopted"
                                                : "random");
    rm.InfoAddFieldULongLong(info, "value_limit", (unsigned long long)server.value_limit);
    rm.InfoAddFieldULongLong(info, "work_limit", (unsigned long long)server.work_limit);
}
