/* A module called "bf" that owns BF.ADD, as another Bloom filter module would. */
typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef int (*command)(RedisModuleCtx *, RedisModuleString **, int);

static void (*attribs)(RedisModuleCtx *, const char *, int, int);
static int (*create)(RedisModuleCtx *, const char *, command, const char *, int, int, int);
static int (*reply)(RedisModuleCtx *, const char *);

static int add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    return reply(ctx, "theirs");
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    int (*get)(const char *, void *) = *(int (**)(const char *, void *))ctx;
    (void)argv;
    (void)argc;
    get("RedisModule_SetModuleAttribs", (void *)&attribs);
    get("RedisModule_CreateCommand", (void *)&create);
    get("RedisModule_ReplyWithSimpleString", (void *)&reply);
    attribs(ctx, "bf", 1, 1);
    return create(ctx, "bf.add", add, "write", 1, 1, 1);
}
