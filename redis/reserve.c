/* RESERVE, and the options of RESERVE and INSERT. */
#include "module.h"
#include "tamis/plan.h"

#include <stdio.h>
#include <string.h>

#define BF_CAPACITY_MAX  (1LL << 30)
#define CAPACITY_MAX     (1LL << 40)
#define BF_EXPANSION_MAX 32768
#define SMOOTH_RATE_MIN  1e-4

/* ---- options: each takes a value and returns NULL or what is wrong ---------------------------- */

typedef const char *(*take_option)(struct creation *c, const RedisModuleString *value);

const char *creation_rate(struct creation *c, const RedisModuleString *s)
{
    if (rm.StringToDouble(s, &c->o.fpp) != RM_OK)
        return "ERR bad error rate";
    return c->o.fpp > 0 && c->o.fpp < 1
               ? NULL
               : "ERR error rate must be in the range (0.000000, 1.000000)";
}

const char *creation_capacity(struct creation *c, const RedisModuleString *s)
{
    long long n;
    if (rm.StringToLongLong(s, &n) != RM_OK)
        return "ERR bad capacity";
    c->o.capacity = (uint64_t)n;
    if (n < 1 || n > (c->bf ? BF_CAPACITY_MAX : CAPACITY_MAX))
        return c->bf ? "ERR capacity must be in the range [1, 1073741824]"
                     : "ERR capacity must be in the range [1, 1099511627776]";
    return NULL;
}

static const char *take_expansion(struct creation *c, const RedisModuleString *s)
{
    long long n;
    if (rm.StringToLongLong(s, &n) != RM_OK)
        return "ERR bad expansion";
    if (n < 0 || n > BF_EXPANSION_MAX)
        return "ERR expansion must be in the range [0, 32768]";
    c->o.expansion = (double)n;
    c->expands = n > 0;
    c->doubles = n == 2 && c->bf; /* RedisBloom's default: needs no special treatment */
    c->nonscaling |= n == 0;
    return NULL;
}

int word_of(const RedisModuleString *s, const char *const *words, int n)
{
    for (int i = 1; i < n; i++)
        if (is_word(s, words[i]))
            return i;
    return 0;
}

static const char *take_growth(struct creation *c, const RedisModuleString *s)
{
    c->o.growth = (tamis_growth)word_of(s, growth_names, 7);
    return c->o.growth ? NULL
                       : "ERR GROWTH is smooth, fixed, dynamic, scalable, flexible or window";
}

static const char *take_layout(struct creation *c, const RedisModuleString *s)
{
    c->o.layout = (tamis_layout)word_of(s, layout_names, 3);
    return c->o.layout ? NULL : "ERR LAYOUT is spread or blocked";
}

static const char *take_hash(struct creation *c, const RedisModuleString *s)
{
    c->o.hash = (tamis_hash)word_of(s, hash_names, 4);
    return c->o.hash ? NULL : "ERR HASH is sip, xxh3 or h3";
}

static const char *take_key(struct creation *c, const RedisModuleString *s)
{
    c->o.key = c->key;
    c->own = false; /* the last option wins */
    return key_from_hex(s, c->key) ? NULL : "ERR KEY is 32 hexadecimal digits";
}

/* Replicas receive the family key of the master this way. */
static const char *take_family(struct creation *c, const RedisModuleString *s)
{
    const char *error = take_key(c, s);
    c->own = true;
    return error;
}

static const char *take_window(struct creation *c, const RedisModuleString *s)
{
    double seconds;
    if (rm.StringToDouble(s, &seconds) != RM_OK || !(seconds >= 0.001 && seconds <= 1e9))
        return "ERR WINDOW is a number of seconds, from 0.001 to 1e9";
    c->o.window = (uint64_t)(seconds * 1e3 + 0.5) *
                  1000000; /* in whole milliseconds, which replicate exactly */
    return NULL;
}

/* Only once: the server has checked that the user may read the first model, and no other. */
static const char *take_like(struct creation *c, const RedisModuleString *s)
{
    if (c->like)
        return "ERR LIKE may be given only once";
    c->like = (RedisModuleString *)s;
    return NULL;
}

/* Options of valkey-bloom, checked and ignored: the stated rate is the total, so there is no tightening,
   and the family key takes the place of the seed. */
static const char *take_tightening(struct creation *c, const RedisModuleString *s)
{
    double ratio;
    (void)c;
    if (rm.StringToDouble(s, &ratio) != RM_OK)
        return "ERR bad tightening ratio";
    return ratio > 0 && ratio < 1 ? NULL : "ERR tightening ratio must be in the range (0, 1)";
}

static const char *take_seed(struct creation *c, const RedisModuleString *s)
{
    size_t len;
    (void)c;
    rm.StringPtrLen(s, &len);
    return len == 32 ? NULL : "ERR invalid seed";
}

#define WITH_ALL (WITH_RESERVE | WITH_INSERT | WITH_RECORDS)

static const struct option {
    const char *name;
    int with;
    take_option take;
    const char *error; /* what BF.INSERT replies instead; of a number, what is wrong */
    size_t offset;     /* without `take`: of the uint64_t, from 1 on, or the bool to set */
} options[] = {
    {"CAPACITY", WITH_INSERT | WITH_BF | WITH_VALUE, creation_capacity, "Bad capacity", 0},
    {"ERROR", WITH_INSERT | WITH_BF | WITH_VALUE, creation_rate, "Bad error rate", 0},
    {"EXPANSION", WITH_ALL | WITH_BF | WITH_VALUE, take_expansion, "Bad expansion", 0},
    {"NONSCALING", WITH_ALL | WITH_BF, NULL, NULL, offsetof(struct creation, nonscaling)},
    {"TIGHTENING", WITH_INSERT | WITH_BF | WITH_VALUE, take_tightening, NULL, 0},
    {"SEED", WITH_INSERT | WITH_BF | WITH_VALUE, take_seed, NULL, 0},
    {"VALIDATESCALETO", WITH_INSERT | WITH_BF | WITH_VALUE, NULL, "ERR bad validatescaleto",
     offsetof(struct creation, scale_to)},
    {"NX", WITH_INSERT, NULL, NULL, offsetof(struct creation, nx)},
    {"NOCREATE", WITH_INSERT | WITH_BF, NULL, NULL, offsetof(struct creation, nocreate)},
    {"GROWTH", WITH_ALL | WITH_VALUE, take_growth, NULL, 0},
    {"WINDOW", WITH_RESERVE | WITH_INSERT | WITH_VALUE, take_window, NULL, 0},
    {"DELETABLE", WITH_ALL, NULL, NULL, offsetof(struct creation, o.deletable)},
    {"UNIQUE", WITH_RESERVE | WITH_INSERT, NULL, NULL, offsetof(struct creation, o.unique)},
    {"COMPACT", WITH_RESERVE | WITH_INSERT, NULL, NULL, offsetof(struct creation, compact)},
    {"LAYOUT", WITH_ALL | WITH_VALUE, take_layout, NULL, 0},
    {"HASH", WITH_ALL | WITH_VALUE, take_hash, NULL, 0},
    {"MAXMEM", WITH_ALL | WITH_VALUE, NULL, "ERR MAXMEM is a number of bytes",
     offsetof(struct creation, o.memory_limit)},
    {"KEY", WITH_ALL | WITH_VALUE, take_key, NULL, 0},
    {"FAMILY", WITH_ALL | WITH_VALUE, take_family, NULL, 0},
    {"LIKE", WITH_RESERVE | WITH_VALUE, take_like, NULL, 0},
    {"AT", WITH_ALL | WITH_VALUE, NULL, "ERR AT is a time in nanoseconds since 1970",
     offsetof(struct creation, at)},
};

static const struct option *option_of(const RedisModuleString *s, int with)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if ((options[i].with & with) == with && is_word(s, options[i].name))
            return &options[i];
    return NULL;
}

/* Smooth, unless an option was given or configured that only vectors support. */
static tamis_growth default_growth(const struct creation *c)
{
    bool expands = (c->expands && !c->doubles) || (!c->at && server.expansion > 0);
    bool vectors = c->with & WITH_RECORDS || c->o.layout || c->o.hash == TAMIS_H3 || expands ||
                   c->o.fpp < SMOOTH_RATE_MIN;
    return vectors && !(c->with & WITH_CF) ? TAMIS_SCALABLE : TAMIS_SMOOTH;
}

const char *creation_settle(struct creation *c)
{
    c->chosen = !c->o.growth;
    tamis_growth growth = c->chosen ? default_growth(c) : c->o.growth;
    if (!(c->with & WITH_INSERT) && c->nonscaling && c->expands)
        return "Nonscaling filters cannot expand";
    if (c->nonscaling && c->o.growth > TAMIS_FIXED)
        return "ERR NONSCALING and EXPANSION 0 mean GROWTH fixed";
    if (c->expands && !c->doubles && !c->nonscaling && growth != TAMIS_SCALABLE)
        return "ERR EXPANSION goes with GROWTH scalable";
    if (c->o.window && growth != TAMIS_WINDOW)
        return "ERR WINDOW goes with GROWTH window";
    c->o.growth = c->nonscaling ? TAMIS_FIXED : growth;
    c->compact |= c->bf; /* RedisBloom has no union */
    if (c->compact && c->o.growth != TAMIS_SMOOTH && c->o.growth != TAMIS_FIXED &&
        c->o.growth != TAMIS_SCALABLE)
        return "ERR COMPACT goes with GROWTH smooth, fixed or scalable";
    if (c->o.growth != TAMIS_SCALABLE)
        c->o.expansion = 0;
    else if (!c->expands) /* a replicated command states all parameters */
        c->o.expansion = c->at ? 0 : (double)server.expansion;
    return NULL;
}

void creation_wipe(struct creation *c)
{
    key_wipe(&c->key);
}

void creation_init(struct creation *c, int with)
{
    *c = (struct creation){.with = with, .bf = with & WITH_BF};
    c->o.deletable = with & WITH_CF;
    c->o.fpp = c->o.deletable ? cuckoo_rate((uint64_t)server.cf_bucket, 1) : server.error_rate;
    c->o.capacity = (uint64_t)(c->o.deletable ? server.cf_capacity : server.capacity);
    c->o.hash = TAMIS_SIP;
    c->o.key = server.secrets->key;
    c->o.clock = value_clock;
    c->o.allocator = &value_allocator;
}

const char *creation_one(struct creation *c, RedisModuleString **argv, int argc, int *i)
{
    bool insert = c->with & WITH_INSERT;
    const struct option *option = option_of(argv[*i], c->with);
    if (!option) {
        size_t len;
        const char *word = rm.StringPtrLen(argv[*i], &len);
        if (c->bf && insert)
            return "Unknown argument received";
        snprintf(c->error, sizeof c->error, "ERR unknown option '%.*s'", len < 60 ? (int)len : 60,
                 word);
        return c->error;
    }
    bool value = option->with & WITH_VALUE;
    if (value && *i + 1 == argc) {
        if (c->bf && insert)
            return "ERR wrong number of arguments for 'bf.insert' command";
        if (option->take == take_expansion)
            return "ERR no expansion";
        snprintf(c->error, sizeof c->error, "ERR %s needs a value", option->name);
        return c->error;
    }
    long long n;
    const char *error = NULL;
    if (option->take)
        error = option->take(c, value ? argv[*i + 1] : NULL);
    else if (!value)
        *(bool *)((char *)c + option->offset) = true;
    else if (rm.StringToLongLong(argv[*i + 1], &n) != RM_OK || n < 1)
        error = option->error;
    else
        *(uint64_t *)(void *)((char *)c + option->offset) = (uint64_t)n;
    if (error)
        return c->bf && insert && option->error ? option->error : error;
    *i += 1 + value;
    return NULL;
}

const char *creation_options(struct creation *c, RedisModuleString **argv, int argc, int i)
{
    while (i < argc) {
        if (c->with & WITH_INSERT && is_word(argv[i], "ITEMS")) {
            c->items = i + 1;
            break;
        }
        const char *error = creation_one(c, argv, argc, &i);
        if (error)
            return error;
    }
    return creation_settle(c);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Takes the family and the hash of another value. */
static const char *join_family(RedisModuleCtx *ctx, struct creation *c)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, c->like, RM_READ);
    struct value *model = find_value(key, VALUE_FILTER, &error);
    if (!model && !error)
        error = "ERR LIKE: there is no such key";
    if (model) {
        tamis_filter_facts info = {0};
        struct set *set = value_set(model);
        if (set)
            set_brief(set, &info);
        else
            error = no_memory;
        value_set_back(model, set);
        c->o.hash = set ? info.hash : c->o.hash;
        if (c->o.hash == TAMIS_H3 && c->chosen && c->o.growth == TAMIS_SMOOTH)
            c->o.growth = TAMIS_SCALABLE;
        c->o.key = c->key;
        value_key(model, c->key);
    }
    rm.CloseKey(key);
    return error;
}

const char *creation_key_word(RedisModuleCtx *ctx, const struct creation *c)
{
    return (follows(ctx) ? c->own : secret_is(c->o.key)) ? "FAMILY" : "KEY";
}

/* The library then decides between a vector and lines alone, in the same way wherever the command is run. */
static bool chosen_smooth(const struct creation *c)
{
    return c->chosen && c->o.growth == TAMIS_SMOOTH;
}

size_t creation_words(RedisModuleCtx *ctx, const struct creation *c,
                      RedisModuleString *words[CREATION_WORDS])
{
    WIPED_HEX hex[KEY_HEX];
    size_t n = 0;
    const tamis_options *o = &c->o;
    key_to_hex(o->key, hex);
    SAY("%.17g", o->fpp);
    SAY("%llu", (unsigned long long)o->capacity);
    if (!chosen_smooth(c)) {
        SAY("GROWTH");
        SAY("%s", growth_names[o->growth]);
    }
    SAY("HASH");
    SAY("%s", hash_names[o->hash]);
    SAY("%s", creation_key_word(ctx, c));
    SAY("%s", hex);
    SAY("MAXMEM");
    SAY("%llu", (unsigned long long)o->memory_limit);
    SAY("AT");
    SAY("%llu", (unsigned long long)value_clock(NULL));
    if (o->expansion > 0) {
        SAY("EXPANSION");
        SAY("%lld", (long long)o->expansion);
    }
    if (o->layout) {
        SAY("LAYOUT");
        SAY("%s", layout_names[o->layout]);
    }
    if (o->window) {
        SAY("WINDOW");
        SAY("%.17g", (double)(o->window / 1000000) / 1e3);
    }
    if (o->deletable)
        SAY("DELETABLE");
    if (o->unique)
        SAY("UNIQUE");
    if (c->compact)
        SAY("COMPACT");
    return n;
}

/* Replicates TAMIS.RESERVE with every parameter, so that replicas create the same value. */
static void replicate_creation(RedisModuleCtx *ctx, const struct creation *c,
                               RedisModuleString *name)
{
    RedisModuleString *words[CREATION_WORDS];
    size_t n = creation_words(ctx, c, words);
    rm.Replicate(ctx, "TAMIS.RESERVE", "sv", name, words, n);
    for (size_t i = 0; i < n; i++)
        rm.FreeString(ctx, words[i]);
}

int creation_failed(RedisModuleCtx *ctx, const struct creation *c, tamis_error e,
                    const tamis_reason *reason)
{
    if (e == TAMIS_ESPACE)
        return reply_printf(ctx,
                            "ERR could not create filter: it would take more than %llu bytes, the "
                            "limit of a value (MAXMEM, tamis.value-limit). Spread the keys "
                            "over several filters",
                            (unsigned long long)c->o.memory_limit);
    if (e == TAMIS_ENOMEM)
        return reply_failure(ctx, NULL, e, NULL);
    return reply_printf(ctx, "ERR could not create filter: %s", reason->text);
}

bool creation_limit(RedisModuleCtx *ctx, struct creation *c)
{
    if (c->o.memory_limit > value_limit() && !follows(ctx)) {
        reply_printf(ctx, "ERR MAXMEM is above tamis.value-limit, %llu bytes",
                     (unsigned long long)value_limit());
        return false;
    }
    if (!c->o.memory_limit)
        c->o.memory_limit = value_limit();
    return true;
}

/* A filter that has grown takes up to three times the memory of a vector for all its keys. */
static bool scales_to(double fpp, uint64_t n, uint64_t limit)
{
    uint64_t bits = tamis_plan_vector(TAMIS_BLOCKED, n, fpp).bits;
    return bits && bits / 8 <= limit / 3;
}

/* The result is exact to a thousandth, because planning a vector takes 60 microseconds. */
uint64_t creation_scales_to(double fpp, uint64_t limit)
{
    uint64_t most = 0;
    for (uint64_t step = CAPACITY_MAX; step > most / 1024; step /= 2)
        most += scales_to(fpp, most + step, limit) ? step : 0;
    return most;
}

/* VALIDATESCALETO: could the filter grow to that many keys? Returns false if it has replied. */
static bool scales(RedisModuleCtx *ctx, const struct creation *c)
{
    if (c->nonscaling && c->scale_to > c->o.capacity) {
        rm.ReplyWithError(ctx, "ERR cannot use NONSCALING and VALIDATESCALETO options together");
        return false;
    }
    bool good = c->nonscaling || scales_to(c->o.fpp, c->scale_to, c->o.memory_limit);
    if (!good)
        rm.ReplyWithError(
            ctx, "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit");
    return good;
}

static tamis_error make_set(const struct creation *c, struct set **out, tamis_reason *reason)
{
    if (c->records)
        return records_make(c->records, out, reason);
    tamis_options o = c->o;
    o.growth = chosen_smooth(c) ? TAMIS_GROWTH_DEFAULT : o.growth;
    return filter_new(out, &o, c->compact, reason);
}

tamis_error creation_set(RedisModuleCtx *ctx, struct creation *c, struct set **out,
                         tamis_reason *reason)
{
    uint64_t limit = c->o.memory_limit;
    tamis_error e = make_set(c, out, reason);
    if (e != TAMIS_ESPACE || !follows(ctx))
        return e;
    c->o.memory_limit = 0;
    e = make_set(c, out, reason);
    c->o.memory_limit = limit;
    return e == TAMIS_OK ? set_limit(*out, limit) : e;
}

void creation_leave_room(RedisModuleCtx *ctx, struct creation *c)
{
    if (!follows(ctx) || !c->bf || c->o.growth != TAMIS_FIXED)
        return;
    double more = (double)c->o.capacity * c->o.fpp / (1 - c->o.fpp), root = 1;
    double variance = more / (1 - c->o.fpp);
    while (root * root < variance)
        root *= 1.25;
    more += 6 * root;
    c->o.capacity += more < (double)CAPACITY_MAX ? (uint64_t)more : CAPACITY_MAX;
}

struct value *creation_make(RedisModuleCtx *ctx, struct creation *c, RedisModuleKey *key,
                            RedisModuleString *name)
{
    struct set *set = NULL;
    tamis_reason reason = {0};
    creation_leave_room(ctx, c);
    if (!creation_limit(ctx, c))
        return NULL;
    if (c->scale_to && !follows(ctx) && !scales(ctx, c))
        return NULL;
    tamis_error e = creation_set(ctx, c, &set, &reason);
    struct value *v = e == TAMIS_OK ? value_of(set) : NULL;
    if (v && !value_settle(v, true)) {
        value_free(v);
        v = NULL;
    }
    if (!v) {
        creation_failed(ctx, c, e == TAMIS_OK ? TAMIS_ENOMEM : e, &reason);
        return NULL;
    }
    rm.ModuleTypeSetValue(key, type, v);
    if (c->records)
        records_replicate(ctx, c->records);
    else
        replicate_creation(ctx, c, name);
    if (follows(ctx) && c->own)
        secret_adopt(c->o.key);
    notify(ctx, "tamis.reserve", name);
    return v;
}

/* ---- commands -------------------------------------------------------------------------------- */

/* RESERVE key LIKE model: an empty filter with all parameters of the model. */
static int reserve_alike(RedisModuleCtx *ctx, const struct creation *c, RedisModuleString *name)
{
    const char *error, *model_error;
    RedisModuleKey *from = rm.OpenKey(ctx, c->like, RM_READ);
    RedisModuleKey *key = rm.OpenKey(ctx, name, RM_READ | RM_WRITE);
    struct value *there = find_value(key, VALUE_ITEMS, &error), *v = NULL;
    struct value *model = find_value(from, VALUE_FILTER, &model_error);
    if (there || error) {
        rm.ReplyWithError(ctx, there ? EXISTS : error);
    } else if (!model) {
        rm.ReplyWithError(ctx, model_error ? model_error : "ERR LIKE: there is no such key");
    } else if (!too_much(ctx, value_bytes(model), "State rate and capacity before LIKE.")) {
        v = value_copy(model);
        struct set *set = v ? value_set(v) : NULL;
        if (set)
            value_set_keep(v, set);
        if (!set || set_clear(set) != TAMIS_OK) {
            value_free(v);
            v = NULL;
            reply_failure(ctx, NULL, TAMIS_ENOMEM, NULL);
        }
    }
    if (v) {
        put_value(key, v);
        rm.Replicate(ctx, "TAMIS.RESERVE", "scscl", name, "LIKE", c->like, "AT",
                     (long long)value_clock(NULL));
        notify(ctx, "tamis.reserve", name);
        rm.ReplyWithSimpleString(ctx, "OK");
    }
    rm.CloseKey(key);
    rm.CloseKey(from);
    return RM_OK;
}

int creation_reserve(RedisModuleCtx *ctx, struct creation *c, RedisModuleString *name,
                     enum value_kind kind)
{
    const char *error;
    RedisModuleKey *key = rm.OpenKey(ctx, name, RM_READ | RM_WRITE);
    const struct value *there = find_value(key, kind, &error);
    if (there || error)
        rm.ReplyWithError(ctx, there ? EXISTS : error);
    else if (creation_make(ctx, c, key, name))
        rm.ReplyWithSimpleString(ctx, "OK");
    rm.CloseKey(key);
    return RM_OK;
}

/* Tells the server which arguments are keys. */
static int reserve_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    int i = 2;
    rm.KeyAtPos(ctx, 1);
    while (i + 1 < argc && !is_word(argv[i], "LIKE"))
        i++;
    if (i + 1 < argc)
        rm.KeyAtPos(ctx, i + 1);
    return RM_OK;
}

static int reserve(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool bf)
{
    WIPED_CREATION c;
    const char *error = NULL;
    if (rm.IsKeysPositionRequest(ctx)) /* of any number of arguments; there is no one to reply to */
        return reserve_keys(ctx, argv, bf ? 2 : argc);
    if (argc < 4 || (bf && argc > 7))
        return rm.WrongArity(ctx);
    creation_init(&c, WITH_RESERVE | (bf ? WITH_BF : 0));
    bool alike = !bf && is_word(argv[2], "LIKE");
    if (!alike)
        error = creation_rate(&c, argv[2]);
    if (!alike && !error)
        error = creation_capacity(&c, argv[3]);
    if (!error)
        error = creation_options(&c, argv, argc, alike ? 2 : 4);
    secret_redact_options(ctx, argv, argc);
    if (error)
        return rm.ReplyWithError(ctx, error);
    time_of_command(c.at);
    if (alike && argc != 4 + (c.at ? 2 : 0))
        return rm.ReplyWithError(ctx, "ERR LIKE without rate and capacity takes no other options");
    if (alike)
        return reserve_alike(ctx, &c, argv[1]);
    if (c.like)
        error = join_family(ctx, &c);
    if (error)
        return rm.ReplyWithError(ctx, error);
    return creation_reserve(ctx, &c, argv[1], VALUE_ITEMS);
}

COMMAND(command_reserve)
{
    return reserve(ctx, argv, argc, false);
}

COMMAND(command_bf_reserve)
{
    return reserve(ctx, argv, argc, true);
}
