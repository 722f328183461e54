/* The module of tamis, with an allocator that fails on request: loadmodule fault.so /path/tamis.so. It
   stands between the server and the module where the module asks for the server's functions.

   FAULT.ARM n [after]   the n-th time from now that it asks for memory it gets none (0: never), and if
                         so after that
   FAULT.FAILED          how often that was since */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef int (*command)(RedisModuleCtx *, RedisModuleString **, int);
typedef int (*get_function)(const char *, void *);

static get_function server_get;
static void *(*server_try)(size_t);
static int (*create)(RedisModuleCtx *, const char *, command, const char *, int, int, int);
static int (*reply)(RedisModuleCtx *, long long);
static int (*number)(const RedisModuleString *, long long *);
static const char *(*text)(const RedisModuleString *, size_t *);

static long long left, failed;
static int after;

static void *fault_try(size_t size)
{
    if (left > 0 && --left == 0) {
        left = after ? 1 : 0;
        failed++;
        return NULL;
    }
    return server_try(size);
}

static int fault_get(const char *name, void *target)
{
    int e = server_get(name, target);
    if (strcmp(name, "RedisModule_TryAlloc") == 0) {
        void *(*ours)(size_t) = fault_try;
        memcpy(&server_try, target, sizeof server_try);
        memcpy(target, &ours, sizeof ours);
    }
    return e;
}

static int arm(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc < 2 || number(argv[1], &left) != 0)
        left = 0;
    after = argc > 2;
    failed = 0;
    return reply(ctx, left);
}

static int tell(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    return reply(ctx, failed);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    get_function ours = fault_get;
    size_t len;
    command load;
    memcpy(&server_get, ctx, sizeof server_get);
    server_get("RedisModule_CreateCommand", (void *)&create);
    server_get("RedisModule_ReplyWithLongLong", (void *)&reply);
    server_get("RedisModule_StringToLongLong", (void *)&number);
    server_get("RedisModule_StringPtrLen", (void *)&text);
    void *module = argc ? dlopen(text(argv[0], &len), RTLD_NOW | RTLD_LOCAL) : NULL;
    void *start = module ? dlsym(module, "RedisModule_OnLoad") : NULL;
    if (!start)
        return 1;
    memcpy(&load, &start, sizeof load);
    memcpy(ctx, &ours, sizeof ours);
    int e = load(ctx, argv + 1, argc - 1);
    memcpy(ctx, &server_get, sizeof server_get);
    if (e == 0)
        e = create(ctx, "fault.arm", arm, "readonly", 0, 0, 0);
    return e ? e : create(ctx, "fault.failed", tell, "readonly", 0, 0, 0);
}
