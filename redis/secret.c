/*
 * The key of the server's family. Whoever has it can construct items that collide in all values of the
 * server. It is in all that a server must be able to load again (RDB and AOF files, replicas, the server's own DUMP).
 * A client gets it only if CONFIG GET would reveal it anyway.
 *
 * A key that was not configured is drawn at the start, and replaced by the one under which earlier
 * values were made. Not every value shows which key that was, since clients create and load values of their own
 * families: values of the server's family are saved with a mark, and replicated with FAMILY, not KEY.
 */
#include "module.h"

#include <stdio.h>
#include <string.h>

bool key_from_hex(const RedisModuleString *s, uint8_t key[TAMIS_KEY_LEN])
{
    size_t len;
    const char *text = rm.StringPtrLen(s, &len);
    return len == 2 * TAMIS_KEY_LEN && hex_bytes(key, text, TAMIS_KEY_LEN);
}

void key_to_hex(const uint8_t key[TAMIS_KEY_LEN], char hex[KEY_HEX])
{
    for (size_t i = 0; i < TAMIS_KEY_LEN; i++)
        snprintf(hex + 2 * i, 3, "%02x", key[i]);
}

void key_wipe_hex(char (*hex)[KEY_HEX])
{
    explicit_bzero(hex, sizeof *hex);
}

bool secret_set(const uint8_t *key)
{
    struct secrets *secrets = secrets_get(key);
    if (!secrets)
        return false;
    secrets_release(server.secrets);
    server.secrets = secrets;
    return true;
}

bool secret_is(const uint8_t key[TAMIS_KEY_LEN])
{
    return memcmp(key, server.secrets->key, TAMIS_KEY_LEN) == 0;
}

/* ---- where it comes from --------------------------------------------------------------------- */

/* The first key that arrives decides. */
void secret_adopt(const uint8_t key[TAMIS_KEY_LEN])
{
    if (server.key_given || server.key_adopted)
        return;
    server.key_adopted = secret_set(key);
}

/* RESTORE, which may be replayed from an append-only file, can bring forged marks;
   but the server reports a key as loaded, just afterwards, only for those in its own files. */
static struct secrets *offered;

void secret_offer(const uint8_t *key)
{
    struct secrets *before = offered;
    offered = key ? secrets_get(key) : NULL;
    secrets_release(before);
}

/* A module that is refused while loading is unloaded again. */
static __attribute__((destructor)) void unload(void)
{
    secret_offer(NULL);
    secrets_release(server.secrets);
    server.secrets = NULL;
}

static int loaded(RedisModuleCtx *ctx, int events, const char *event, RedisModuleString *name)
{
    (void)ctx, (void)events, (void)event, (void)name;
    if (offered)
        secret_adopt(offered->key);
    secret_offer(NULL);
    return RM_OK;
}

static void loading(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)ctx, (void)event, (void)sub, (void)data;
    secret_offer(NULL);
}

void secret_start(RedisModuleCtx *ctx)
{
    rm.SubscribeToKeyspaceEvents(ctx, RM_NOTIFY_LOADED, loaded);
    rm.SubscribeToServerEvent(ctx, (RedisModuleEvent){RM_EVENT_LOADING, 1}, loading);
}

/* ---- who may have it ------------------------------------------------------------------------- */

/* Commands of modules have no category before Redis 7.2, so the permission required is that for
   another command that reveals the key and is in @admin and @dangerous. The user who runs a
   script is unknown: not allowed there. */
bool secret_told(RedisModuleCtx *ctx)
{
    static const char *const words[] = {"CONFIG", "GET", "tamis.family-key"};
    RedisModuleString *argv[3], *name = rm.GetClientUserNameById(ctx, rm.GetClientId(ctx));
    RedisModuleUser *user = name ? rm.GetModuleUserFromUserName(name) : NULL;
    for (int i = 0; i < 3; i++)
        argv[i] = rm.CreateString(ctx, words[i], strlen(words[i]));
    bool told = user && rm.ACLCheckCommandPermissions(user, argv, 3) == RM_OK;
    for (int i = 0; i < 3; i++)
        rm.FreeString(ctx, argv[i]);
    if (user)
        rm.FreeModuleUser(user);
    if (name)
        rm.FreeString(ctx, name);
    if (!told)
        rm.ReplyWithError(
            ctx, "NOPERM WITHKEY needs the permission for CONFIG GET, and is not for scripts");
    return told;
}

/* Not while loading: the server never frees what it then keeps for its logs. */
void secret_redact(RedisModuleCtx *ctx, int position)
{
    if (!(rm.GetContextFlags(ctx) & RM_FLAG_LOADING))
        rm.RedactClientCommandArgument(ctx, position);
}

void secret_redact_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    for (int i = 0; i + 1 < argc && !is_word(argv[i], "ITEMS"); i++)
        if (is_word(argv[i], "KEY") || is_word(argv[i], "FAMILY"))
            secret_redact(ctx, i + 1);
}
