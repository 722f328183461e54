/*
 * CF.*: the commands of cuckoo filters on deletable sets, with the arguments and replies of RedisBloom.
 *
 * A cuckoo filter has buckets of b fingerprints of 8 bits, and a query compares 2 b of them: so
 * BUCKETSIZE determines the rate, 1 - (1 - 1/255)^(2b), 1.6 % for the default of 2. The set keeps this rate in
 * total at every size, whereas in a cuckoo filter the rates of the parts add up. MAXITERATIONS is accepted and
 * ignored; EXPANSION 0 creates a set that does not grow, any other value one that does.
 */
#include "foreign.h"

#include <string.h>

#define CAPACITY_MAX   (1LL << 30)
#define BUCKET_MAX     255
#define ITERATIONS     20 /* RedisBloom's default, for INFO */
#define ITERATIONS_MAX 65535
#define EXPANSION_MAX  32768

/* ---- RESERVE --------------------------------------------------------------------------------- */

struct cuckoo {
    long long capacity, bucket, iterations, expansion;
};

/* Reads one option and its value; false if it has replied with an error. */
static bool read_option(RedisModuleCtx *ctx, struct cuckoo *c, RedisModuleString **argv)
{
    const struct {
        const char *name;
        long long *place, least, most;
    } options[] = {{"BUCKETSIZE", &c->bucket, 1, BUCKET_MAX},
                   {"MAXITERATIONS", &c->iterations, 1, ITERATIONS_MAX},
                   {"EXPANSION", &c->expansion, 0, EXPANSION_MAX}};
    for (int i = 0; i < 3; i++) {
        if (!is_word(argv[0], options[i].name))
            continue;
        if (rm.StringToLongLong(argv[1], options[i].place) != RM_OK)
            reply_printf(ctx, "Couldn't parse %s", options[i].name);
        else if (*options[i].place < options[i].least || *options[i].place > options[i].most)
            reply_printf(ctx, "%s: value must be in the range [%lld, %lld]", options[i].name,
                         options[i].least, options[i].most);
        else
            return true;
        return false;
    }
    size_t len;
    const char *word = rm.StringPtrLen(argv[0], &len);
    reply_printf(ctx, "ERR unknown option '%.*s'", len < 60 ? (int)len : 60, word);
    return false;
}

/* The slots of RedisBloom's filter of this capacity, which has a power of 2 of buckets; all of them may be in use. */
static uint64_t slots_for(const struct cuckoo *o)
{
    uint64_t buckets = 1;
    while (buckets < (uint64_t)(o->capacity / o->bucket))
        buckets *= 2;
    return buckets * (uint64_t)o->bucket;
}

COMMAND(command_cf_reserve)
{
    struct creation c;
    struct cuckoo o = {.bucket = server.cf_bucket, .iterations = ITERATIONS, .expansion = 1};
    if (argc < 3 || argc % 2 == 0)
        return rm.WrongArity(ctx);
    if (rm.StringToLongLong(argv[2], &o.capacity) != RM_OK)
        return rm.ReplyWithError(ctx, "Bad capacity");
    for (int i = 3; i < argc; i += 2)
        if (!read_option(ctx, &o, argv + i))
            return RM_OK;
    if (o.capacity < 2 * o.bucket || o.capacity > CAPACITY_MAX)
        return reply_printf(ctx, "Capacity must be in the range [2 * BUCKETSIZE, %lld]",
                            CAPACITY_MAX);
    creation_init(&c, WITH_RESERVE | WITH_CF);
    c.o.capacity = (uint64_t)o.capacity;
    if (o.expansion == 0 && follows(ctx) && slots_for(&o) > c.o.capacity)
        c.o.capacity = slots_for(&o);
    c.o.fpp = cuckoo_rate((uint64_t)o.bucket, 1);
    c.nonscaling = o.expansion == 0;
    creation_settle(&c);
    time_of_command(0);
    return creation_reserve(ctx, &c, argv[1], VALUE_DELETABLE);
}

/* ---- ADD and INSERT -------------------------------------------------------------------------- */

static int add_one(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool nx)
{
    if (argc != 3)
        return rm.WrongArity(ctx);
    struct adding a = {.name = argv[1], .items = argv + 2, .n = 1, .nx = nx, .dialect = CF};
    return add_items(ctx, &a, NULL);
}

COMMAND(command_cf_add)
{
    return add_one(ctx, argv, argc, false);
}

COMMAND(command_cf_addnx)
{
    return add_one(ctx, argv, argc, true);
}

/* Reads the options up to ITEMS; returns the position of the first item, or 0 if it has replied. */
static int insert_options(RedisModuleCtx *ctx, struct creation *c, RedisModuleString **argv,
                          int argc)
{
    long long n;
    for (int i = 2; i < argc; i++) {
        bool last = i + 1 == argc;
        if (is_word(argv[i], "ITEMS") && !last)
            return i + 1;
        if (is_word(argv[i], "NOCREATE")) {
            c->nocreate = true;
        } else if (is_word(argv[i], "CAPACITY") && !last) {
            if (rm.StringToLongLong(argv[++i], &n) != RM_OK) {
                rm.ReplyWithError(ctx, "Bad capacity");
                return 0;
            }
            if (n < 2 * server.cf_bucket || n > CAPACITY_MAX) {
                reply_printf(ctx, "Capacity must be in the range [cf-bucket-size * 2, %lld]",
                             CAPACITY_MAX);
                return 0;
            }
            c->o.capacity = (uint64_t)n;
        } else if (!is_word(argv[i], "ITEMS") && !is_word(argv[i], "CAPACITY")) {
            rm.ReplyWithError(ctx, "Unknown argument received");
            return 0;
        }
    }
    rm.WrongArity(ctx);
    return 0;
}

static int insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool nx)
{
    struct creation c;
    if (argc < 4)
        return rm.WrongArity(ctx);
    creation_init(&c, WITH_INSERT | WITH_CF);
    creation_settle(&c);
    int first = insert_options(ctx, &c, argv, argc);
    struct adding a = {.name = argv[1],
                       .items = argv + first,
                       .n = (size_t)(argc - first),
                       .many = true,
                       .nx = nx,
                       .dialect = CF};
    return first ? add_items(ctx, &a, &c) : RM_OK;
}

COMMAND(command_cf_insert)
{
    return insert(ctx, argv, argc, false);
}

COMMAND(command_cf_insertnx)
{
    return insert(ctx, argv, argc, true);
}

/* ---- the others ------------------------------------------------------------------------------ */

COMMAND(command_cf_count)
{
    const char *error;
    size_t len;
    if (argc != 3)
        return rm.WrongArity(ctx);
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ);
    const struct value *v = find_value(key, VALUE_ITEMS, &error);
    const char *item = rm.StringPtrLen(argv[2], &len);
    uint64_t n = 0;
    if (v && v->foreign)
        n = v->deletable ? cuckoo_count(v->foreign, item, len) : 0;
    else if (v)
        n = v->small ? value_has(v, item, len) : tamis_filter_count(as_filter(v->set), item, len);
    if (error && strcmp(error, WRONG_TYPE) != 0)
        rm.ReplyWithError(ctx, error);
    else
        rm.ReplyWithLongLong(ctx, (long long)n);
    rm.CloseKey(key);
    return RM_OK;
}

COMMAND(command_cf_del)
{
    if (argc != 3)
        return rm.WrongArity(ctx);
    time_of_command(0);
    return remove_items(ctx, argv[1], argv + 2, 1, false, CF);
}

static void say_cuckoo(RedisModuleCtx *ctx, const struct value *v, const uint64_t figures[7])
{
    static const char *const names[7] = {
        "Number of buckets",       "Number of filters", "Number of items inserted",
        "Number of items deleted", "Bucket size",       "Expansion rate",
        "Max iterations"};
    rm.ReplyWithMap(ctx, 8);
    say_count(ctx, "Size", value_bytes(v));
    for (int i = 0; i < 7; i++)
        say_count(ctx, names[i], figures[i]);
}

/* Replies with the figures of a cuckoo filter of these items. Pending removals are shown as deletions; a cuckoo filter
   counts its deletions since it was last compacted. */
static void reply_cf_info(RedisModuleCtx *ctx, struct value *v, RedisModuleString **argv, int argc)
{
    (void)argv, (void)argc;
    tamis_filter_facts info;
    const struct foreign *f = v->foreign;
    if (f) {
        say_cuckoo(ctx, v,
                   (const uint64_t[7]){f->part[0].buckets, f->n, f->items, f->removals, f->bucket,
                                       f->growth, f->iterations});
        return;
    }
    set_brief(v->set, &info);
    uint64_t bucket = 1, buckets = 1;
    while (bucket < BUCKET_MAX && cuckoo_rate(bucket, 1) < info.fpp * (1 - 1e-9))
        bucket++;
    while (buckets < info.capacity / bucket)
        buckets *= 2;
    say_cuckoo(ctx, v,
               (const uint64_t[7]){
                   buckets, info.vectors ? info.vectors : 1, /* a smooth filter has one part */
                   info.items, info.pending, bucket, info.growth != TAMIS_FIXED, ITERATIONS});
}

COMMAND(command_cf_info)
{
    return argc != 2 ? rm.WrongArity(ctx)
                     : with_value(ctx, argv, argc, VALUE_DELETABLE, RM_READ, reply_cf_info);
}

/* There is nothing to compact: removals take effect at once. */
COMMAND(command_cf_compact)
{
    const char *error;
    if (argc != 2)
        return rm.WrongArity(ctx);
    RedisModuleKey *key = rm.OpenKey(ctx, argv[1], RM_READ);
    if (find_value(key, VALUE_DELETABLE, &error))
        rm.ReplyWithSimpleString(ctx, "OK");
    else
        rm.ReplyWithError(ctx, "Cuckoo filter was not found");
    rm.CloseKey(key);
    return RM_OK;
}
