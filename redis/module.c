/*
 * tamis as a module of Redis or Valkey. Read in this order: module.h; value.c and type.c (what a key holds);
 * release.c; secret.c (the family key); reserve.c, items.c, cuckoo.c, card_info.c, algebra.c, dump.c, load.c,
 * records.c, publication.c, publish_command.c (the commands); foreign.c, on_top.c, foreign_cuckoo.c (filters of
 * RedisBloom); command_table.c (the names of the commands).
 *
 *   loadmodule /path/tamis.so [bf=auto|yes|no] [ERROR_RATE p] [INITIAL_SIZE n] ...
 *   loadmodule /path/tamis.so settings=bf
 */
#include "module.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

enum bf { BF_AUTO, BF_YES, BF_NO, BF_WRONG };

/* Arguments are bf=..., or pairs of a name and a value. */
static enum bf read_arguments(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    static const char *const words[] = {"bf=auto", "bf=yes", "bf=no"};
    enum bf bf = BF_AUTO;
    for (int i = 0; i < argc; i++) {
        int word = 0;
        while (word < BF_WRONG && !is_word(argv[i], words[word]))
            word++;
        if (word < BF_WRONG)
            bf = (enum bf)word;
        else if (settings_argument(ctx, argv[i], i + 1 < argc ? argv[i + 1] : argv[i]))
            i++;
        else
            return BF_WRONG;
    }
    return bf;
}

/* A master with BF and CF commands replicates adds unchanged. A replica with bf=no can follow it nevertheless:
   these adds become TAMIS.ADD and TAMIS.MADD, which do the same to an existing filter, and its creation was
   replicated as TAMIS.RESERVE. An ADDNX is replicated only if it added its item, so it adds here too. */
static void follow_bf(RedisModuleCommandFilterCtx *command)
{
    static const struct {
        const char *theirs, *ours;
    } names[] = {{"BF.ADD", "TAMIS.ADD"},
                 {"BF.MADD", "TAMIS.MADD"},
                 {"CF.ADD", "TAMIS.ADD"},
                 {"CF.ADDNX", "TAMIS.ADD"}};
    const RedisModuleString *name = rm.CommandFilterArgGet(command, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_word(name, names[i].theirs) && rm.GetContextFlags(NULL) & RM_FLAG_SLAVE) {
            RedisModuleString *ours = rm.CreateString(NULL, names[i].ours, strlen(names[i].ours));
            rm.CommandFilterArgReplace(command, 0, ours);
            return;
        }
}

/* Logs what a server without BF and CF commands cannot follow. */
static void tell_without_bf(RedisModuleCtx *ctx, bool taken)
{
    if (taken)
        rm.Log(
            ctx, "warning",
            "another module has BF or CF commands: only TAMIS commands are added. A master that uses tamis "
            "through them cannot be followed, nor an append-only file be loaded: rewrite the file on a server "
            "that has them; on a replica, unexpected_error_replies in INFO counts what is missing");
    else
        rm.Log(
            ctx, "notice",
            "bf=no: only TAMIS commands are added. An append-only file with BF and CF commands cannot be "
            "loaded: rewrite it on a server that has them");
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *missing = api_load(ctx);
    if (missing) { /* the server may still have Log */
        if (rm.Log)
            rm.Log(ctx, "warning", "tamis needs Redis 7.0 or later: there is no %s", missing);
        return RM_ERR;
    }
    if (argc == 1 && is_word(argv[0], "settings=bf"))
        return settings_load_bf(ctx);
    if (rm.IsModuleNameBusy("tamis"))
        return RM_ERR;
    rm.SetModuleAttribs(ctx, "tamis", 100, 1);
    enum bf bf = read_arguments(ctx, argv, argc);
    if (bf == BF_WRONG)
        return RM_ERR;
    server.bf = bf == BF_YES || (bf == BF_AUTO && table_bf_free(ctx));
    bool taken = !server.bf && !table_bf_free(ctx);
    if (!server.bf)
        tell_without_bf(ctx, taken);
    rm.SetModuleOptions(ctx, RM_HANDLE_IO_ERRORS | RM_HANDLE_REPL_ASYNC_LOAD);
    /* The data type is registered last: it cannot be removed again if something fails. */
    if (!settings_register(ctx) || !table_register(ctx, server.bf) ||
        !type_register(ctx, server.bf)) {
        rm.Log(ctx, "warning", "another module has a name that tamis needs%s",
               bf == BF_YES ? ": bf=yes requires the BF commands" : "");
        return RM_ERR;
    }
    rm.RegisterInfoFunc(ctx, settings_info);
    settings_start(ctx);
    release_start();
    secret_start(ctx);
    publish_start(ctx);
    if (!server.bf && !taken)
        rm.RegisterCommandFilter(ctx, follow_bf, RM_FILTER_NOSELF);
    return RM_OK;
}
