/*
 * tamis as a module of Redis or Valkey. Order of reading: module.h, value.c and type.c (what a key
 * holds), secret.c (the family key), create.c, keys.c, report.c, set_verbs.c, dump.c, load.c,
 * record_input.c, publish.c (the commands), value_table.c (their names).
 *
 *   loadmodule /path/tamis.so [bf=auto|yes|no]
 */
#include "module.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

enum bf { BF_AUTO, BF_YES, BF_NO, BF_WRONG };

static enum bf read_arguments(RedisModuleString **argv, int argc)
{
    enum bf bf = BF_AUTO;
    for (int i = 0; i < argc && bf != BF_WRONG; i++)
        bf = is_word(argv[i], "bf=auto")  ? BF_AUTO
             : is_word(argv[i], "bf=yes") ? BF_YES
             : is_word(argv[i], "bf=no")  ? BF_NO
                                          : BF_WRONG;
    return bf;
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *missing = api_load(ctx);
    if (missing) { /* the first ones may be there */
        if (rm.Log)
            rm.Log(ctx, "warning", "tamis needs Redis 7.0 or later: there is no %s", missing);
        return RM_ERR;
    }
    if (rm.IsModuleNameBusy("tamis"))
        return RM_ERR;
    rm.SetModuleAttribs(ctx, "tamis", 100, 1);
    enum bf bf = read_arguments(argv, argc);
    if (bf == BF_WRONG) {
        rm.Log(ctx, "warning", "the arguments are bf=auto, bf=yes or bf=no");
        return RM_ERR;
    }
    server.bf = bf == BF_YES || (bf == BF_AUTO && table_bf_free(ctx));
    if (bf == BF_AUTO && !server.bf)
        rm.Log(ctx, "notice", "another module has the BF commands: only TAMIS commands are added");
    rm.SetModuleOptions(ctx, RM_HANDLE_IO_ERRORS | RM_HANDLE_REPL_ASYNC_LOAD);
    /* The type comes last: the server cannot take it back. */
    if (!settings_register(ctx) || !table_register(ctx, server.bf) || !type_register(ctx)) {
        rm.Log(ctx, "warning", "a name that tamis needs is taken%s",
               bf == BF_YES ? ": bf=yes insists on the BF commands" : "");
        return RM_ERR;
    }
    rm.RegisterInfoFunc(ctx, settings_info);
    secret_start(ctx);
    publish_start(ctx);
    return RM_OK;
}
